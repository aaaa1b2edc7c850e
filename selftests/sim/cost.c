// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * cost.c - what the engine costs: a loss-free stream through two QPs
 *
 *	cost [-q]	-q: as few messages as do, for callgrind
 *
 * The smallest environment there is: packets are headers and a length, no payload is
 * copied and no CRC taken, keys are not looked up, completions are counted.  What is
 * left is transport/: rove_tqp_send(), rove_tqp_rx() and for each packet what costpkt.c
 * does.
 *
 * A line of output a case: operation, bytes, MTU, packets of a message, messages
 * measured, and nanoseconds a message of requester and responder.  The script
 * `cost' runs this under callgrind, where requester_turn() and responder_turn()
 * say whose an instruction is, and measure() what belongs to a case.
 */
#include <linux/kernel.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "cost.h"
#include "env.h"

#define DEPTH		256	/* of the queues; a power of two */
#define WINDOW		256	/* packets */
#define SIGNAL_EVERY	16	/* messages */
#define WIRE		1024	/* packets on their way in one direction */
#define TRIES		7	/* the fastest counts */

/* One end of the connection. */
struct end {
	struct rove_tqp t;
	struct end *peer;
	u32 posted;		/* sends */
	u32 fetched;
	u32 released;
	u32 received;		/* receives completed */
	bool owed;		/* a call of rove_tqp_send() */
	u32 npkts;		/* on their way to the peer */
	struct {
		u8 hdr[ROVE_MAX_HDR];
		u32 len;
	} wire[WIRE];
	u64 events[ROVE_CNT_MAX];
};

/* A work request with its one SGE. */
struct request {
	struct rove_send_wqe wqe;
	struct rove_sge sge;
};

static struct end a, b;
static struct request request;
static u64 now;

static struct end *to_end(struct rove_tqp *t)
{
	return container_of(t, struct end, t);
}

static void die(const char *what)
{
	fprintf(stderr, "cost: %s\n", what);
	exit(1);
}

/* ---- the environment ---- */

/* Its own copy, as the kernel's is; not the one that the transport is charged. */
static inline void copy_request(struct rove_send_wqe *to)
{
	const u64 *src = (const u64 *)&request;
	u64 *dst = (u64 *)to;
	u32 i;

	for (i = 0; i < sizeof(request) / sizeof(u64); i++)
		dst[i] = src[i];
}

int rove_env_sq_fetch(struct rove_tqp *t, struct rove_swqe *w)
{
	struct end *e = to_end(t);

	if (e->fetched == e->posted)
		return 0;
	copy_request(&w->wqe);
	w->wqe.wr_id = e->fetched++;
	w->wqe.flags = e->fetched % SIGNAL_EVERY ? 0 : ROVE_WR_SIGNALED;
	return 1;
}

bool rove_env_sq_pending(struct rove_tqp *t)
{
	struct end *e = to_end(t);

	return e->fetched != e->posted;
}

void rove_env_sq_release(struct rove_tqp *t)
{
	to_end(t)->released++;
}

int rove_env_rq_fetch(struct rove_tqp *t, struct rove_rwqe *w)
{
	w->num_sge = 1;
	w->sge[0] = request.sge;
	w->length = request.sge.length;
	return 1;
}

u32 rove_env_rq_credits(struct rove_tqp *t)
{
	return DEPTH;
}

void rove_env_complete(struct rove_tqp *t, struct rove_cqe *cqe, bool recv,
		       bool solicited)
{
	if (cqe->status)
		die("a work request has failed");
	to_end(t)->received += recv;
}

/* IPv4 without options, and UDP. */
static const u8 ip_header[28] = { 0x45 };

int rove_env_emit(struct rove_tqp *t, const struct rove_burst *burst)
{
	struct end *e = to_end(t);
	struct rove_icrc icrc;
	struct rove_frame f;
	u32 i;

	if (e->npkts + burst->npkts > WIRE)
		die("more packets than the window allows");
	rove_icrc_begin(&icrc, ip_header, 20);
	for (i = 0; i < burst->npkts; i++) {
		u8 *hdr = e->wire[e->npkts].hdr;

		if (i > 1)
			memcpy(hdr, e->wire[e->npkts - 1].hdr, f.hdr_len);
		cost_make_packet(&icrc, burst, i, t->dest_qpn, hdr, &f);
		e->wire[e->npkts++].len = rove_frame_len(&f);
	}
	return 0;
}

void rove_env_defer_send(struct rove_tqp *t)
{
	to_end(t)->owed = true;
}

bool rove_env_hold_ack(struct rove_tqp *t, u64 now)
{
	return false;
}

int rove_env_dest(struct rove_tqp *t, u32 ah)
{
	return -1;
}

int rove_env_srq(struct rove_tqp *t, u32 srqn)
{
	return -EINVAL;
}

int rove_env_srq_domain(struct rove_tqp *t, u32 srqn)
{
	return -EINVAL;
}

int rove_env_check_rkey(struct rove_tqp *t, u32 rkey, u64 va, u32 len, u32 access)
{
	return 0;
}

int rove_env_write(struct rove_tqp *t, u32 rkey, u64 va, const struct rove_pkt *pkt)
{
	return 0;
}

int rove_env_scatter(struct rove_tqp *t, const struct rove_sge *sge, u32 num_sge,
		     u32 offset, const struct rove_pkt *pkt, const void *data,
		     u32 len)
{
	return 0;
}

int rove_env_atomic(struct rove_tqp *t, u32 rkey, u64 va, bool cmp_swap,
		    u64 compare, u64 swap_add, u64 *orig)
{
	return -EFAULT;
}

int rove_env_atomic_write(struct rove_tqp *t, u32 rkey, u64 va,
			  const struct rove_pkt *pkt)
{
	return -EFAULT;
}

int rove_env_invalidate(struct rove_tqp *t, u32 key)
{
	return -EINVAL;
}

u32 rove_env_local(struct rove_tqp *t, const struct rove_send_wqe *wqe)
{
	return ROVE_WC_LOC_QP_OP_ERR;
}

void rove_env_arm_timer(struct rove_tqp *t, u64 deadline)
{
}

u64 rove_env_lag(struct rove_tqp *t)
{
	return 0;
}

void rove_env_event(struct rove_tqp *t, enum rove_tqp_event event)
{
}

void rove_env_state_changed(struct rove_tqp *t)
{
	die("the connection has failed");
}

void rove_env_count(struct rove_tqp *t, enum rove_counter counter)
{
	to_end(t)->events[counter]++;
}

void sim_warn(const char *file, int line, const char *what)
{
	die(what);
}

/* ---- the stream ---- */

/* All packets from the other end, and then what they have deferred. */
static void take_packets(struct end *e)
{
	struct rove_row row = {};
	struct rove_icrc icrc;
	struct rove_pkt pkt;
	u32 i;

	rove_icrc_begin(&icrc, ip_header, 20);
	for (i = 0; i < e->peer->npkts; i++) {
		if (!cost_take_packet(&icrc, &row, &pkt, i, e->peer->wire[i].hdr,
				      e->peer->wire[i].len))
			die("a packet was refused");
		rove_tqp_rx(&e->t, &pkt, now);
	}
	e->peer->npkts = 0;
	while (e->owed) {
		e->owed = false;
		rove_tqp_send(&e->t, now);
	}
}

/* Callgrind is told of these by name: there must be one of each. */
#define NAMED	__attribute__((__noinline__, __noclone__))

static NAMED void requester_turn(bool doorbell)
{
	if (doorbell)
		rove_tqp_send(&a.t, now);
	else
		take_packets(&a);
}

static NAMED void responder_turn(void)
{
	take_packets(&b);
}

static double clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1e9 + ts.tv_nsec;
}

/* Messages done, @messages or some more; @ns: what the two sides took. */
static u64 stream(u32 messages, double *ns)
{
	u32 from = a.released, stalled = 0;
	double t[4];

	ns[0] = 0;
	ns[1] = 0;
	while (a.released - from < messages) {
		u32 before = a.released;

		now += 10000;
		a.posted = a.released + DEPTH;
		t[0] = clock_ns();
		requester_turn(true);
		t[1] = clock_ns();
		responder_turn();
		t[2] = clock_ns();
		requester_turn(false);
		t[3] = clock_ns();
		ns[0] += t[1] - t[0] + t[3] - t[2];
		ns[1] += t[2] - t[1];
		stalled = before == a.released ? stalled + 1 : 0;
		if (stalled > 1000)
			die("the stream stands still");
	}
	return a.released - from;
}

static NAMED u64 measure(u32 messages, double *ns)
{
	return stream(messages, ns);
}

static void start(struct end *e, struct end *peer, u32 mtu)
{
	u32 stride = sizeof(struct rove_swqe) + sizeof(struct rove_sge);

	memset(e, 0, sizeof(*e));
	e->peer = peer;
	e->t.qpn = e == &a ? 1 : 2;
	e->t.dest_qpn = e == &a ? 2 : 1;
	e->t.mtu = mtu;
	e->t.access = ROVE_ACCESS_REMOTE_WRITE | ROVE_ACCESS_REMOTE_READ;
	e->t.retry_cnt = 7;
	e->t.rnr_retry = 7;
	e->t.timeout = 14;
	e->t.max_rd_atomic = 16;
	e->t.max_sge_send = 1;
	e->t.max_sge_recv = 1;
	e->t.req.window = WINDOW;
	e->t.req.depth = DEPTH;
	e->t.req.stride = stride;
	e->t.req.ring = calloc(DEPTH, stride);
	e->t.resp.rwqe.sge = calloc(1, sizeof(struct rove_sge));
	e->t.resp.res = calloc(ROVE_MAX_RD_ATOMIC, sizeof(*e->t.resp.res));
	e->t.resp.replies = calloc(ROVE_MAX_RD_ATOMIC, sizeof(*e->t.resp.replies));
	rove_tqp_reset(&e->t);
	rove_tqp_max_res(&e->t, 16);
	rove_tqp_start_responder(&e->t, 1);
	rove_tqp_start_requester(&e->t, 1);
}

static void stop(struct end *e)
{
	if (e->events[ROVE_CNT_RETRANS] || e->events[ROVE_CNT_OUT_OF_SEQ])
		die("something was lost");
	free(e->t.req.ring);
	free(e->t.resp.rwqe.sge);
	free(e->t.resp.res);
	free(e->t.resp.replies);
}

static void run(const char *name, u8 op, u32 len, u32 mtu, bool quick)
{
	u32 npkts = (len - 1) / mtu + 1, i;
	double best[2] = { INFINITY, INFINITY }, ns[2];
	u64 done = 0;

	start(&a, &b, mtu);
	start(&b, &a, mtu);
	request = (struct request) {
		.wqe = { .opcode = op, .num_sge = 1, .remote_addr = 0x1000, .rkey = 5 },
		.sge = { 0x2000, len, 7 },
	};
	/* Everything has been touched before it is measured. */
	stream(2 * DEPTH, ns);
	for (i = 0; i < (quick ? 1 : TRIES); i++) {
		done = measure((quick ? 4096 : 200000) / npkts, ns);
		best[0] = fmin(best[0], ns[0] / done);
		best[1] = fmin(best[1], ns[1] / done);
	}
	if (op == ROVE_WR_SEND && b.received < done)
		die("messages are missing");
	printf("%s %u %u %u %llu %.2f %.2f\n", name, len, mtu, npkts, done,
	       best[0], best[1]);
	stop(&a);
	stop(&b);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		u8 op;
	} ops[] = {
		{ "SEND", ROVE_WR_SEND },
		{ "WRITE", ROVE_WR_RDMA_WRITE },
		{ "READ", ROVE_WR_RDMA_READ },
	};
	bool quick = argc > 1 && !strcmp(argv[1], "-q");
	u32 i;

	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		/* One packet: the MTU makes no difference. */
		run(ops[i].name, ops[i].op, 64, 1024, quick);
		run(ops[i].name, ops[i].op, 65536, 1024, quick);
		run(ops[i].name, ops[i].op, 65536, 4096, quick);
	}
	return 0;
}
