/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * sim.h - the simulator's parts, and what they know of each other
 *
 *	sim.c		options, scenarios, rounds, verdicts
 *	event.c		simulated time: a heap of events
 *	swarm.c		draws the settings of a round
 *	user.c		programs that post at random, poll, drain, reconnect
 *	    |  struct rove_send_wqe in rings
 *	transport/	the code under test, as the kernel compiles it
 *	    |  env.h
 *	env.c		rings, keys, timers for the transport; checks its calls
 *	net.c		builds real IP packets and super-packets of them; takes them apart
 *	path.c		drops, repeats, delays, corrupts, splits and merges them
 *	model.c		what must be in memory and in the completion queues
 *	vectors.c	packets and tables made by others
 *	directed.c	scripted cases with exact expectations
 *	byhand.c	one end, and packets made by hand
 *	datagram.c	those of UD
 *	uc.c		UC and UD: a model of their own
 *	rogue.c		a peer, and a program, that break the rules
 *	gbn.c		a peer that is not rove: plain go-back-N
 *	big.c		messages of gigabytes in memory that is not there
 *
 * Everything is single threaded and decided by one seed: a round that fails
 * fails again.
 *
 * Each QP sends one stream of requests to its peer.  All remote memory that a
 * stream touches is that stream's alone, so its content follows from the
 * order in which an RC QP must execute requests, and the model can compute it.
 */
#ifndef SIM_H
#define SIM_H

#include <linux/kernel.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include "env.h"
#include "icrc.h"
#include "train.h"

#define MAX_QPS		16
/* the SRQs that have a number */
#define SIM_SRQN	0xabcdef
#define SIM_SRQN2	0xabcdf0
#define MAX_SGE		8
#define MAX_INLINE	256
#define WRS		1024	/* work requests that the model remembers */
#define UNTOUCHED	0xa7	/* fills memory that nobody may write */
#define NS_PER_MS	1000000ULL
#define NS_PER_S	1000000000ULL

struct sim_qp;

/* ---- what a scenario is ---- */

/* Probabilities are in parts per million. */
struct scenario {
	const char *name;
	u32 msgs;		/* work requests in all, per unit of --scale */
	u32 drop;
	u32 dup;
	u32 ghost;		/* a copy arrives much later */
	u32 reorder;
	u32 corrupt;		/* flip one bit of the IP datagram */
	u32 slow;		/* delay a packet and all behind it by ms */
	u32 remark;		/* rewrite what routers may rewrite */
	u32 eagain;		/* the stack has no room */
	u32 paging;		/* memory is on its way for what has come */
	u32 absent;		/* what is to be sent is on its way to memory */
	u32 lag;		/* the machine says that it is behind */
	u32 gone;		/* a region is, between a READ and its answer */
	u32 starve;		/* stop posting receives for a while */
	u32 drain;		/* go through SQD */
	u32 bad;		/* post something invalid, pull a key, kill a QP */
	u8 ip;			/* 4, 6, or 0 for any */
	bool no_icrc;		/* nothing is corrupted: save the time */
	bool rnr;		/* SENDs may be posted before their receives */
	bool wrap;		/* start PSNs just below 2^24 */
	bool finite;		/* retry_cnt at most 7, so retries can run out */
	bool bulk;		/* deep queues, wide windows: long super-packets */
	bool same_id;		/* peers that give all their packets one IP ID */
	u32 max_len;
	int (*run)(void);	/* not a random round: returns checks made */
	bool by_name;		/* long: only when asked for */
	u32 jump;		/* the clock goes on without anything happening */
	u32 srq;		/* pairs that receive from shared queues */
	u32 xrc;		/* pairs that are XRC */
	u32 gbn;		/* pairs of which one end is not rove: gbn.c */
	u8 unreliable;		/* UC or UD instead */
	bool swarm;		/* each round draws its own settings: swarm.c */
};

/* ---- the round in progress ---- */

struct sim {
	const struct scenario *sc;
	u64 seed;
	u64 rng;
	u64 now;
	u64 quota;		/* work requests still to be posted */
	bool posting;		/* users may post */
	bool stopped;		/* users are gone; only packets still move */
	u32 nqps;
	struct sim_qp *qp[MAX_QPS];
	u64 last_progress;
	u64 events_since;	/* events since last_progress */
	jmp_buf fail;
	bool verbose;
	const u8 *input;	/* decides, if not NULL, instead of @rng */
	const u8 *input_end;
};

extern struct sim sim;
extern u32 scale;	/* per cent */

/* Figures over all rounds of a scenario. */
struct stats {
	u64 wrs;
	u64 recvs;
	u64 pkts;
	u64 trains;		/* super-packets and single packets that were sent */
	u64 split;		/* super-packets that the network split */
	u64 merged;		/* what it merged with what came before */
	u64 whole;		/* super-packets that arrived as they were sent */
	u64 mixed;		/* those merged of several QPs' packets */
	u64 dropped;
	u64 dupped;
	u64 reordered;
	u64 corrupted;
	u64 events;
	u64 sim_ns;
	u64 errors;		/* connections that ended in an error, as expected */
	u64 drains;
	u64 counter[ROVE_CNT_MAX];
};

extern struct stats stats;

void sim_fail(const struct sim_qp *qp, const char *fmt, ...)
	__attribute__((format(printf, 2, 3), noreturn));
void sim_trace(const struct sim_qp *qp, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
#define trace(...) do { if (unlikely(sim.verbose)) sim_trace(__VA_ARGS__); } while (0)

/* ---- randomness ---- */

static inline u64 mix(u64 z)
{
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

/* ---- input.c: a string of bytes instead of a seed ---- */
u64 input_rnd(void);
u32 input_below(u32 n);
bool input_chance(u32 ppm);

static inline u64 rnd(void)
{
	if (unlikely(sim.input))
		return input_rnd();
	return mix(sim.rng += 0x9e3779b97f4a7c15ULL);
}

/* 0 to @n - 1; 0 for 0. */
static inline u32 below(u32 n)
{
	if (unlikely(sim.input))
		return input_below(n);
	return ((rnd() >> 32) * n) >> 32;
}

static inline u32 between(u32 lo, u32 hi)
{
	return lo + below(hi - lo + 1);
}

static inline bool chance(u32 ppm)
{
	if (unlikely(sim.input))
		return ppm && input_chance(ppm);
	return ppm && below(1000000) < ppm;
}

/* ---- events ---- */

enum event_type {
	EV_PKT,		/* arg: struct train */
	EV_GRO,		/* no arg */
	EV_TIMER,	/* the rest: struct sim_qp */
	EV_ACK,
	EV_SEND,
	EV_USER,
	EV_RESUME,
	EV_RTS,
	EV_RECYCLE,
};

struct event {
	u64 at;
	u64 seq;
	enum event_type type;
	u32 epoch;	/* of the QP; an event of an earlier life is dropped */
	void *arg;
};

void event_add(u64 at, enum event_type type, u32 epoch, void *arg);
bool event_next(struct event *ev);
bool event_pending(void);
void event_clear(void);

/* ---- memory ---- */

/*
 * A registered region of one QP's protection domain.  A virtual one has no
 * memory behind it: see big.c.
 */
struct mr {
	u32 key;
	u32 access;
	bool valid;
	bool is_virtual;
	struct sim_qp *owner;
	const struct sim_srq *srq;	/* it belongs to all who receive from there */
	u64 va;
	u64 len;
	u8 *mem;
};

struct mr *mr_add(struct sim_qp *owner, u64 va, u8 *mem, u64 len, u32 access);
struct mr *mr_find(const struct sim_qp *owner, u32 key);
void mr_clear(void);
struct mr *mr_check(const struct sim_qp *owner, u32 key, u64 va, u64 len,
		    u32 access);
u8 *mr_range(const struct sim_qp *owner, u32 key, u64 va, u64 len, u32 access);

/* A ring of local memory: allocated in order, freed in order. */
struct arena {
	u8 *mem;
	u64 size;
	u64 head;
	u64 tail;
};

/* ---- a QP: environment, user and model ---- */

/* What is wrong on purpose with a work request. */
enum bad_kind {
	BAD_NONE,
	BAD_LKEY,
	BAD_LKEY_RO,		/* READ or atomic into memory not writable */
	BAD_RKEY,
	BAD_RANGE,		/* one byte beyond the region */
	BAD_WRAP,		/* address + length wraps */
	BAD_RIGHTS,		/* region without the right */
	BAD_QP_RIGHTS,		/* QP without the right */
	BAD_ALIGN,		/* atomic not on 8 bytes */
	BAD_TOO_LONG,		/* SEND one byte longer than its receive */
	BAD_OPCODE,
	BAD_NUM_SGE,
	BAD_INLINE,
	BAD_LENGTH,		/* more than 2^31, or an atomic of not 8 */
	BAD_INV_KEY,		/* SEND with Invalidate of nobody's key */
	BAD_LOCAL_INV,
	BAD_BIND,		/* that the environment refuses */
	BAD_RECV_LKEY,		/* of a receive request */
	BAD_RECV_NUM_SGE,
	BAD_KINDS,
};

/* A send work request as the model remembers it. */
struct wr {
	u64 wr_id;
	u8 op;
	u8 flags;
	bool signaled;		/* by its flag or the QP's sq_sig_all */
	bool emitted;
	enum bad_kind bad;
	u32 expect;		/* bad: set of statuses allowed */
	u32 len;
	u32 nsge;
	u32 off[MAX_SGE];	/* of each SGE in the local arena */
	u32 sge_len[MAX_SGE];
	u64 seed;		/* of its payload */
	u32 toff;		/* offset in the target region */
	u32 rkey;
	__be32 imm;
	u32 inv_key;
	u64 compare_add;
	u64 swap;
	u64 recv_idx;		/* which receive it consumes */
	u64 arena_end;
	u8 *snap;		/* READ: what it must return */
	u64 orig;		/* atomic: what it must return */
};

/* A receive work request as the model remembers it. */
struct rr {
	u64 wr_id;
	enum bad_kind bad;
	u32 total;
	u32 nsge;
	u32 off[MAX_SGE];
	u32 sge_len[MAX_SGE];
	u64 arena_end;
	u8 *mem;		/* of the arena that it is in */
	u64 srq_idx;
};

/* A receive queue that several QPs take from; what one has taken is then its own. */
struct sim_srq {
	struct arena mem;
	struct mr *mr;
	u8 *ring;
	u32 depth;
	u32 stride;
	u32 prod;
	u32 fetched;
	u32 max_sge;
	u32 need;		/* each takes any message */
	struct rr rr[WRS];
	bool polled[WRS];
	u64 posted;
	u64 freed;
};

struct gbn;

struct sim_qp {
	struct rove_tqp t;
	struct gbn *gbn;	/* in the place of the transport */
	struct sim_qp *peer;
	u32 idx;
	u32 epoch;

	/* addresses */
	bool v6;
	u8 addr[16];
	u16 sport;
	u8 tos;
	u8 ttl;
	u8 ip_options;		/* bytes */
	u16 ip_id;
	bool same_id;		/* it sends single packets, all of one ID */
	u32 split;		/* how many of its super-packets are split (ppm) */
	bool gro;		/* what comes to it may be merged */
	u32 hold_ns;		/* its acknowledgments wait so long for what is posted */
	u64 last_arrival;	/* of a packet sent by this QP */
	bool blackhole;		/* packets it sends vanish */
	bool absent;		/* what psn_absent is to carry is on its way to memory */
	u32 psn_absent;

	/* what the engine call under way has sent so far: super-packets */
	struct rove_train fill;	/* the last of them takes more as this says */
	struct train *out;
	struct train *out_last;

	/* queues */
	u8 *sq;
	u32 sq_stride;
	u32 sq_depth;
	u32 sq_prod;
	u32 sq_fetched;
	u32 sq_released;
	bool sq_broken;		/* an impossible producer index */
	struct rove_recv_wqe *rq;
	u32 rq_stride;
	u32 rq_depth;
	u32 rq_prod;
	u32 rq_fetched;
	bool rq_broken;
	struct sim_srq *srq;	/* instead of rq */
	bool count_credits;

	/* calls owed to the transport */
	u64 timer_at;		/* when rove_tqp_timer() is wanted */
	u64 timer_ev;		/* when the next timer event fires */
	bool ack_owed;
	bool send_owed;
	bool user_owed;

	/* user */
	struct arena send_mem;
	struct arena recv_mem;
	struct mr *mr_local;	/* send_mem, writable */
	struct mr *mr_ro;	/* send_mem, read only */
	struct mr *mr_alias;	/* send_mem, until LOCAL_INV */
	struct mr *mr_recv;
	u32 max_send;		/* longest SEND when its receive is not posted yet */
	u32 rq_level;		/* receives to keep posted */
	u64 starve_until;
	u64 last_signaled;	/* posted when the last signalled one was posted */
	bool dead;		/* its connection ends; no more posts but to test flush */
	bool told_sqe;		/* the transport has said that it is in SQE */
	bool killed;		/* user or responder put it into the error state */
	bool recycling;
	bool draining;
	bool drained;
	u64 drain_emitted;	/* fetched when SQD was entered */
	u32 event[ROVE_EVENT_MAX];
	u32 sq_psn;

	/* the target region of this QP's stream, at the peer */
	u8 *tmem;
	u8 *tshadow;
	u32 tsize;
	struct mr *mr_target;
	struct mr *mr_talias;	/* until SEND with Invalidate */
	u64 talias_read;	/* last READ that named mr_talias, plus 1 */
	struct mr *mr_noright;
	bool key_pulled;	/* the user deregistered mr_target */
	bool local_pulled;	/* mr_local */
	bool recv_pulled;	/* mr_recv */

	/* the model: free-running indices into the rings below */
	struct wr wr[WRS];
	u64 posted;
	u64 exec;		/* executed at the peer for sure, in the shadow */
	u64 done;		/* completed for sure */
	u64 emitted;		/* first packet was sent */
	u64 polled;
	u64 recv_seq;		/* receives that wr[] consume */
	u64 expect[WRS];	/* receive index to work request index */
	struct rr rr[WRS];
	u64 r_posted;
	u64 r_done;
	u64 r_polled;
	bool sq_error;		/* a failed completion was seen */
	bool rq_error;

	/* the wire: what the peer's NAKs allow */
	u32 rnr_psn;		/* may not be sent again before @rnr_until */
	u64 rnr_until;
	bool rnr_armed;

	/* directed tests and big messages take completions themselves */
	void (*on_cqe)(struct sim_qp *qp, const struct rove_cqe *cqe, bool recv,
		       bool solicited);
	bool (*on_packet)(struct sim_qp *qp, const u8 *bth);	/* true: lose it */
	void (*on_train)(struct sim_qp *qp, u32 npkts);
	u32 (*on_local)(const struct rove_send_wqe *wqe);
};

static inline bool is_send(u8 op)
{
	return op == ROVE_WR_SEND || op == ROVE_WR_SEND_WITH_IMM ||
	       op == ROVE_WR_SEND_WITH_INV;
}

static inline bool is_write(u8 op)
{
	return op == ROVE_WR_RDMA_WRITE || op == ROVE_WR_RDMA_WRITE_WITH_IMM ||
	       op == ROVE_WR_ATOMIC_WRITE;
}

static inline bool is_atomic(u8 op)
{
	return op == ROVE_WR_ATOMIC_CMP_AND_SWP ||
	       op == ROVE_WR_ATOMIC_FETCH_AND_ADD;
}

/* No packet is sent for it. */
static inline bool is_local(u8 op)
{
	return op == ROVE_WR_LOCAL_INV || op == ROVE_WR_BIND_MW;
}

/* The answer brings data. */
static inline bool is_rd(u8 op)
{
	return op == ROVE_WR_RDMA_READ || is_atomic(op);
}

/* An ACK does not complete it. */
static inline bool is_answered(u8 op)
{
	return is_rd(op) || op == ROVE_WR_ATOMIC_WRITE;
}

static inline bool takes_recv(u8 op)
{
	return is_send(op) || op == ROVE_WR_RDMA_WRITE_WITH_IMM;
}

static inline struct sim_qp *to_qp(struct rove_tqp *t)
{
	return container_of(t, struct sim_qp, t);
}

static inline struct wr *wr_at(struct sim_qp *qp, u64 i)
{
	return &qp->wr[i % WRS];
}

static inline struct rr *rr_at(struct sim_qp *qp, u64 i)
{
	return &qp->rr[i % WRS];
}

/* ---- env.c ---- */
void env_setup_buffers(struct sim_qp *qp);
void env_reset_queues(struct sim_qp *qp);
void env_free_buffers(struct sim_qp *qp);
struct rove_send_wqe *env_sq_slot(struct sim_qp *qp);
struct rove_recv_wqe *env_rq_slot(struct sim_qp *qp);
struct rove_recv_wqe *env_srq_slot(struct sim_srq *srq);
void env_doorbell(struct sim_qp *qp, u64 delay);
void env_schedule_user(struct sim_qp *qp, u64 delay);
void env_run_deferred(struct sim_qp *qp);
void env_begins(struct sim_qp *qp, u64 wr_id);
void env_check(struct sim_qp *qp);

/* ---- net.c ---- */
struct train;
void net_send(struct sim_qp *qp, const struct rove_burst *b);
void net_flush(struct sim_qp *qp);
void net_discard(struct sim_qp *qp);
void net_receive(struct train *tr);
void net_inject(struct sim_qp *from, const u8 *bth, u32 len);
void net_put(struct sim_qp *from, const u8 *bth, u32 len);
const u8 *net_payload(const struct rove_pkt *pkt);
u32 crc32(u32 crc, const void *buf, size_t len);
__le32 icrc_of(struct rove_icrc *headers, const u8 *bth, u32 len);
const char *opcode_name(u8 opcode);
extern u32 net_unsent;	/* QPs whose packets wait for net_flush() */

/* ---- gbn.c ---- */
struct gbn *gbn_new(void);
void gbn_connect(struct sim_qp *qp, u32 psn, u32 epsn);
void gbn_send(struct sim_qp *qp);
void gbn_timer(struct sim_qp *qp);
void gbn_rx(struct sim_qp *qp, const u8 *bth, u32 len);

/* What the transport has sent leaves when the call that made it is over. */
static inline void tqp_send(struct sim_qp *qp)
{
	if (qp->gbn)
		gbn_send(qp);
	else
		rove_tqp_send(&qp->t, sim.now);
	net_flush(qp);
}

static inline void tqp_timer(struct sim_qp *qp)
{
	if (qp->gbn)
		gbn_timer(qp);
	else
		rove_tqp_timer(&qp->t, sim.now);
	net_flush(qp);
}

/* ---- path.c ---- */
void path_arrive(struct train *tr);
void path_poll(void);
void path_clear(void);

/* ---- swarm.c ---- */
const struct scenario *swarm_draw(const struct scenario *base);

/* ---- user.c ---- */
struct sim_qp *user_new_pair(void);
struct sim_qp *user_still_pair(u8 service, u32 sq_depth, u32 rq_depth, u32 mtu);
/* A script's request, or receive, of @len bytes: filled in, and in the ring. */
struct rove_send_wqe *user_post(struct sim_qp *qp, u8 op, u32 len, u8 flags);
struct rove_recv_wqe *user_post_recv(struct sim_qp *qp, u32 len);
void user_connect(struct sim_qp *qp);
void user_start(struct sim_qp *qp);
void user_ready(struct sim_qp *qp);
void user_run(struct sim_qp *qp);
void user_recycle(struct sim_qp *qp);
void user_free(struct sim_qp *qp);
void user_free_srqs(void);
void user_kill(struct sim_qp *qp);
void user_failed(struct sim_qp *qp);
void user_event(struct sim_qp *qp, enum rove_tqp_event event);
void fill(u8 *p, u32 len, u64 seed);

/* ---- model.c ---- */
void model_cqe(struct sim_qp *qp, const struct rove_cqe *cqe, bool recv,
	       bool solicited);
void model_check_target(struct sim_qp *qp);
void model_after_error(struct sim_qp *qp);
void model_round_end(void);

/* ---- sim.c ---- */
void sim_run_until(bool (*done)(void), u64 limit);
void sim_end_round(void);
void sim_by_input(const char *scenario, const u8 *input, size_t len);

/* Where all datagrams seem to come from. */
extern const struct rove_origin sim_origin;

/* ---- vectors.c, directed.c, byhand.c, datagram.c, big.c: number of checks made ---- */
int vectors_run(void);
int directed_run(void);
int byhand_run(void);
int uc_run(void);
void unreliable_round(u8 svc, u32 pairs, u32 n);
int datagram_run(void);
int rogue_run(void);
int rogue_some(void);
int big_run(void);
int big_psn_run(void);
bool big_read(struct mr *mr, u64 va, u8 *dst, u32 len);
bool big_write(struct mr *mr, u64 va, const u8 *src, u32 len);

#endif /* SIM_H */
