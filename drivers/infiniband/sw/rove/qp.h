/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * qp.h - queue pairs: the verbs' object around the transport's struct rove_tqp
 *
 * One spinlock a QP guards everything on the data path.  It is taken with
 * softirqs off by whoever has something for the transport: a poster (post.c,
 * doorbell.c), the receive path (net_rx.c), a timer.  What must not be done under
 * it, events to consumers and the like, is noted in @deferred and done by
 * rove_qp_unlock().
 *
 * Lifetime: the receive path finds a QP by number and is done with it within
 * one RCU read-side section; who keeps it longer takes a reference.
 * destroy_qp puts the QP out of sight, stops its timers, and waits for
 * readers and references.  Packets in flight refer to its struct rove_flow, which
 * may outlive it: a packet stuck in a qdisc delays nobody.
 */
#ifndef ROVE_QP_H
#define ROVE_QP_H

#include <linux/completion.h>
#include <linux/hrtimer.h>
#include <linux/local_lock.h>
#include <linux/percpu.h>
#include <linux/rhashtable.h>
#include <linux/skbuff.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>
#include "av.h"
#include "cq.h"
#include "dev.h"
#include "pace.h"
#include "ring.h"
#include "transport/icrc.h"
#include "transport/tqp.h"
#include "transport/train.h"

struct rove_flow;
struct rove_misses;
struct rove_region;
struct rove_srq;

/* Bits of &rove_qp.deferred: what rove_qp_unlock() has to do. */
enum rove_qp_deferred {
	ROVE_QP_NOTIFY_SEND_CQ,
	ROVE_QP_NOTIFY_RECV_CQ,
	ROVE_QP_CQ_OVERRUN,
	ROVE_QP_EVENT,		/* + enum rove_tqp_event */
};

/**
 * struct rove_ticks - how often the look-again window's timer looks; doorbell.c
 * @interval: nanoseconds between ticks
 * @early: the last one found nothing
 */
struct rove_ticks {
	u32 interval;
	bool early;
};

/**
 * struct rove_doorbell - how a QP's send ring is being watched; doorbell.c
 * @watched: NEED_WAKEUP is clear
 * @open: the look-again window is open
 * @sync: acknowledgments come too soon to find posts: the timer must; set without the lock
 * @alone: the timer was set when all had been acknowledged
 * @dozes: once closed for a pause, the window is opened by the next wake-up call
 * @in_row: wake-up calls in a row without a sign that the program waited for anything
 * @fews: ticks in a row that found few posts and nothing under way
 * @vain: ticks in a row before which nothing had been posted, whoever might have found it
 * @posted: posts that there had been at the last tick
 * @ticks: those while something is under way, and those when all is acknowledged
 * @msn: messages received at the last wake-up
 * @cq_prod: completions in the send CQ at the last wake-up
 * @answers: messages in a row that the program answered soon
 * @enough: of these, for the next answer to be expected
 * @asked_at: when the last came, ns; 0: answered
 */
struct rove_doorbell {
	bool watched;
	bool open;
	bool sync;
	bool alone;
	bool dozes;
	u8 in_row;
	u8 fews;
	u8 vain;
	u32 posted;
	struct rove_ticks ticks[2];
	u32 msn;
	u32 cq_prod;
	u8 answers;
	u8 enough;
	u64 asked_at;
};

/**
 * struct rove_qp - a queue pair
 * @ibqp: what ib_core sees
 * @t: protocol state; guarded by @lock
 * @rdev: its link
 * @serial: never another QP's, unlike its number
 * @node: in rove_dev.qps
 * @list: in rove_dev.qp_list
 * @ud_node: in rove_pd.ud_qps, or nowhere
 * @lock: guards what is said to be guarded by it, and calls to the transport
 * @deferred: enum rove_qp_deferred bits; guarded by @lock
 * @sq: send ring; @sq.cons guarded by @lock
 * @rq: receive ring; likewise
 * @srq: takes the place of @rq; or NULL.  XRC target: the one held; xrc.c
 * @srq_holder: XRC target: in that SRQ's list; guarded by its lock
 * @xrcd: XRC target: its domain
 * @pd: whose keys count; XRC target: of the SRQ at hand; guarded by @lock
 * @sq_post_lock: kernel consumers' posts to @sq; may be taken in hard interrupts
 * @rq_post_lock: likewise for @rq
 * @user: the rings belong to a program
 * @av: path to the peer; written by modify_qp under @lock; UD: where @tx goes
 * @route: for @av; guarded by @lock
 * @sport: UDP source port
 * @dest: UD: serial number of the rove_dest that @av was taken from, or 0
 * @ip_id: next IPv4 identification; guarded by @lock
 * @local_peer: it is on this machine
 * @unacked_at: when that was sent last of which nobody says that it has arrived, jiffies
 * @stream: messages come in numbers; counts down with each that comes alone
 * @cpu: its home; see defer.h
 * @backlog: received and not yet worked off; in order, and before what comes later.
 *	Filled under its own lock, emptied with @lock held, too
 * @backlog_bytes: memory of its skbs
 * @tx: packets built and not yet sent; empty whenever @lock is free
 * @train: the last of @tx, if more may join it
 * @icrc: its headers
 * @region: used last; held until @lock is released; data.c
 * @misses: pages that it waits for, once it has waited for one; odp.c
 * @flow: counts skbs handed to the stack and not yet freed; net_tx.c
 * @no_own_multicast: what it sends to a group that it is in does not come back
 * @no_memory: memory was wanting for a packet, or to ask for a page; @timer will let the
 *	transport try again
 * @timer: the transport's timer
 * @timer_due: it has expired, and defer.c is to say so; guarded by @lock
 * @window: looks at the send ring while its NEED_WAKEUP is clear, and ends the wait of an
 *	acknowledgment for an answer; doorbell.c
 * @db: doorbell state; doorbell.c
 * @defer_node: in a CPU's list of QPs that have something to send; defer.c
 * @defer_queued: bit 0: it is in such a list
 * @deferring: defer.c looks after it, and will let it send; guarded by @lock
 * @no_caller: defer.c has it locked, so no consumer is being called back from within
 *	its own call; guarded by @lock, cleared when that is given back
 * @refs: references; see above
 * @released: completed when @refs falls to zero
 * @event_work: tells consumers of @events, which are due; they may sleep
 * @events: bits of enum rove_tqp_event
 * @dead: destroy has begun: no timer may be armed any more; guarded by @lock
 * @attr: attributes as modify_qp was given them, for query_qp; guarded by @lock
 * @cap: capacities granted
 * @stats: where to count what happens to it; stats.h; guarded by @lock
 * @pace: its rate limit
 */
struct rove_qp {
	struct ib_qp ibqp;
	struct rove_tqp t;
	struct rove_dev *rdev;
	u64 serial;
	struct rhash_head node;
	struct list_head list;
	struct list_head ud_node;

	spinlock_t lock;
	unsigned long deferred;
	struct rove_ring sq;
	struct rove_ring rq;
	struct rove_srq *srq;
	struct list_head srq_holder;
	struct ib_xrcd *xrcd;
	struct ib_pd *pd;
	spinlock_t sq_post_lock;
	spinlock_t rq_post_lock;
	bool user;

	struct rove_av av;
	struct rove_route route;
	__be16 sport;
	u64 dest;
	u16 ip_id;
	bool local_peer;
	u8 stream;
	unsigned long unacked_at;
	int cpu;
	struct sk_buff_head backlog;
	atomic_t backlog_bytes;
	struct sk_buff_head tx;
	struct rove_train train;
	struct rove_icrc icrc;
	struct rove_region *region;
	struct rove_misses *misses;
	struct rove_flow *flow;
	bool no_own_multicast;
	bool no_memory;
	bool timer_due;

	struct hrtimer timer;
	struct hrtimer window;
	struct rove_doorbell db;
	struct llist_node defer_node;
	unsigned long defer_queued;
	bool deferring;
	bool no_caller;

	refcount_t refs;
	struct completion released;
	struct work_struct event_work;
	unsigned long events;
	bool dead;
	struct ib_qp_attr attr;
	struct ib_qp_cap cap;
	struct rove_stats __percpu *stats;
	struct rove_pace pace;
};

static inline struct rove_qp *to_rqp(struct ib_qp *ibqp)
{
	return container_of(ibqp, struct rove_qp, ibqp);
}

static inline struct rove_qp *tqp_to_rqp(struct rove_tqp *t)
{
	return container_of(t, struct rove_qp, t);
}

/* The QP of this number, or NULL; valid within rcu_read_lock(). */
struct rove_qp *rove_qp_find(struct rove_dev *rdev, u32 qpn);

static inline void rove_qp_get(struct rove_qp *qp)
{
	refcount_inc(&qp->refs);
}

static inline void rove_qp_put(struct rove_qp *qp)
{
	if (refcount_dec_and_test(&qp->refs))
		complete(&qp->released);
}

/**
 * struct rove_cpu - the part of a CPU in which a QP is locked
 * @lock: guards what each CPU has one of for the QP that it has locked, where softirqs that are
 *	off do not (PREEMPT_RT); taken with the QP's lock, and inside it
 * @sender: who gives packets to the stack there, with a QP locked
 */
struct rove_cpu {
	local_lock_t lock;
	struct task_struct *sender;
};

DECLARE_PER_CPU(struct rove_cpu, rove_cpu);

/*
 * The receive path passes the lock on from function to function, as packets want,
 * which sparse cannot follow: lockdep watches it, sparse is told of nothing.
 */
static inline void rove_qp_lock(struct rove_qp *qp)
{
	spin_lock_bh(&qp->lock);
	local_lock_nested_bh(&rove_cpu.lock);
	__release(&qp->lock);
}

static inline bool rove_qp_trylock(struct rove_qp *qp)
{
	if (!spin_trylock_bh(&qp->lock))
		return false;
	local_lock_nested_bh(&rove_cpu.lock);
	__release(&qp->lock);
	return true;
}

/* Hand the CQs what was completed.  QP locked; rove_qp_unlock() calls it. */
void rove_env_flush_cqes(struct rove_qp *qp);

/* Memory was wanting for something: have the QP run again in a moment.  QP locked. */
void rove_qp_want_memory(struct rove_qp *qp);

/* The transport's timer has expired; @now in ns.  QP locked. */
void rove_qp_timer_due(struct rove_qp *qp, u64 now);

/* Completes and sends what is due, releases the lock, then does what was deferred. */
void rove_qp_unlock(struct rove_qp *qp);

/*
 * The link is going away: every QP to the error state, its work flushed, with
 * IB_EVENT_DEVICE_FATAL left to the caller.  No QP can be created afterwards.
 */
void rove_qp_flush_all(struct rove_dev *rdev);

int rove_qp_table_init(struct rove_dev *rdev);
void rove_qp_table_destroy(struct rove_dev *rdev);

/**
 * rove_pd_send_rest() - send the datagrams that programs have posted in a protection domain
 * @ibpd: the domain
 *
 * Before something goes that they need.  What cannot be sent now, for want of memory or
 * by its rate limit, waits on.  Where all goes, with the process or the link, only the first
 * call does so.  May sleep.
 */
void rove_pd_send_rest(struct ib_pd *ibpd);

/* ib_device_ops */
int rove_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init,
		   struct ib_udata *udata);
int rove_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		   struct ib_udata *udata);
int rove_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		  struct ib_qp_init_attr *init);
int rove_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata);
int rove_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		   const struct ib_send_wr **bad_wr);
int rove_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		   const struct ib_recv_wr **bad_wr);

#endif /* ROVE_QP_H */
