/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * cq.h - completion queues
 *
 * QPs add completions under their own lock; the CQ's lock nests inside.
 * The event that an armed CQ wants is sent later, with no lock held, by
 * rove_cq_notify() (hazard 58).
 */
#ifndef ROVE_CQ_H
#define ROVE_CQ_H

#include <linux/hrtimer.h>
#include <linux/mutex.h>
#include <rdma/ib_verbs.h>
#include "compat.h"
#include "ring.h"

/**
 * struct rove_cq - a completion queue
 * @ibcq: what ib_core sees
 * @resizing: one at a time
 * @lock: guards all below; taken with interrupts off, since kernel consumers
 *	may poll and arm from anywhere
 * @ring: completions; the kernel produces.  @ring.cons is used for a kernel
 *	consumer only: a program's is in shared memory
 * @user: a program consumes
 * @timestamps: the consumer asked for them
 * @local_peer: a QP has been told to have one; see ROVE_RING_LOCAL_PEER
 * @armed: kernel consumers: enum rove_cq_arm (a program arms in the ring)
 * @event_due: an event is owed; cleared by rove_cq_notify()
 * @overrun: a completion was lost for want of room; no more are added
 * @overrun_event: IB_EVENT_CQ_ERR is owed; cleared by rove_cq_notify()
 * @mod_count: moderation: completions that an event waits for; 0: no number
 * @mod_period: moderation: microseconds that an event waits; 0: no time
 * @held: completions since an event began to wait; 0: none does
 * @mod_timer: ends the wait after @mod_period
 */
struct rove_cq {
	struct ib_cq ibcq;
	struct mutex resizing;	/* see above */
	spinlock_t lock;	/* see above */
	struct rove_ring ring;
	bool user;
	bool timestamps;
	bool local_peer;
	u8 armed;
	bool event_due;
	bool overrun;
	bool overrun_event;
	u16 mod_count;
	u16 mod_period;
	u32 held;
	struct hrtimer mod_timer;
};

static inline struct rove_cq *to_rcq(struct ib_cq *ibcq)
{
	return container_of(ibcq, struct rove_cq, ibcq);
}

/**
 * rove_cq_add() - add completions
 * @cq: the CQ
 * @cqe: copied; @timestamp is filled in here, 0 unless the CQ was created with
 *	IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION
 * @n: their number
 * @solicited: one of them counts for a CQ armed for solicited ones
 *
 * Context: any; takes the CQ's lock.
 * Return: 1 when rove_cq_notify() must be called soon, with no lock held;
 * 0 otherwise; -ENOSPC when there was no room: a completion is lost, the
 * CQ is dead, rove_cq_notify() must be called, and the QP belongs in the error
 * state.
 */
int rove_cq_add(struct rove_cq *cq, const struct rove_cqe *cqe, u32 n,
		bool solicited);

/**
 * rove_cq_local_peer() - have who polls know that a peer is on this machine
 * @cq: the CQ
 *
 * Context: any; takes the CQ's lock.
 */
void rove_cq_local_peer(struct rove_cq *cq);

/* The same, before each completion of a QP whose peer is @local, or not: cheap. */
static inline void rove_cq_note_peer(struct rove_cq *cq, bool local)
{
	if (unlikely(local && !READ_ONCE(cq->local_peer)))
		rove_cq_local_peer(cq);
}

/* Does the consumer want an event, rather than poll? */
bool rove_cq_armed(struct rove_cq *cq);

/**
 * rove_cq_notify() - send the events owed
 * @cq: the CQ
 *
 * Calls into the consumer.  The caller keeps the CQ from being destroyed: it
 * holds a QP that uses it.
 *
 * Context: softirq or process; no rove lock held.
 */
void rove_cq_notify(struct rove_cq *cq);

/**
 * rove_cq_forget() - drop the completions of a QP that is destroyed
 * @cq: a kernel consumer's CQ
 * @qpn: the QP, which adds no more
 *
 * A completion tells a kernel consumer its QP (ib_wc.qp), which the consumer looks
 * into.  It drains a QP before it destroys it, but not what an SRQ gave to it.  An event
 * that moderation holds back is sent: who then frees the CQ counts on none coming.
 *
 * Context: may sleep; no rove lock held.
 */
void rove_cq_forget(struct rove_cq *cq, u32 qpn);

/*
 * ib_device_ops.  create, resize and destroy sleep; the rest may be called from
 * anywhere.  A program polls and arms in shared memory: polling its CQ here is
 * -EOPNOTSUPP.
 */
int rove_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		   struct rove_cq_arg *arg);
int rove_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata);
int rove_resize_cq(struct ib_cq *ibcq, rove_resize_arg cqe,
		   struct ib_udata *udata);
int rove_modify_cq(struct ib_cq *ibcq, u16 count, u16 period);
int rove_poll_cq(struct ib_cq *ibcq, int num, struct ib_wc *wc);
int rove_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags);
int rove_peek_cq(struct ib_cq *ibcq, int wc_cnt);

#endif /* ROVE_CQ_H */
