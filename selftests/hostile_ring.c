// SPDX-License-Identifier: GPL-2.0
/*
 * hostile_ring.c - an unprivileged program that writes what it likes to the
 * rings it shares with the kernel
 *
 *	hostile_ring DEV-A GID-INDEX-A DEV-B GID-INDEX-B MODE [SEED] [SECONDS]
 *
 * MODE: cases      one thing wrong at a time: the QP goes to error with the right
 *                  completion or event
 *       scribble   SECONDS of random words all over the rings from another thread
 *       mmap       mappings that must be refused, and ones that outlive their queue
 *       idle       queues that are left alone after that: the kernel must not look
 *                  at them for ever
 *       hold       rings mapped while link and module go away (a line on stdin
 *                  says that they are gone)
 *       traffic    no hostility: checked traffic till stdin ends, for others to
 *                  disturb; SEED is a file that counts the rounds
 *
 * Knows the provider's structures (userspace-provider/rove.h) to find the
 * rings.  Meanwhile another process has checked traffic on the same links.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "points.h"
#include "rove.h"

#define BUF		65536
#define DEPTH		64
#define CQ_DEPTH	(4 * DEPTH)
#define SGES		4
#define INLINE		128
#define NONE		(-1)		/* no completion */
#define ANY		(-2)		/* whatever it is */

static int wait_ms = 30000;
static int timeout = 14;		/* of the QPs: 4 us * 2^timeout a try */
static uint64_t rnd_state;
static uint64_t rnd(void)
{
	rnd_state ^= rnd_state << 13;
	rnd_state ^= rnd_state >> 7;
	rnd_state ^= rnd_state << 17;
	return rnd_state;
}

/* --- a connection ------------------------------------------------------------ */

struct end {
	const char *name;
	int gid_index;
	struct ibv_context *ctx;
	struct ibv_pd *pd, *pd2;
	struct ibv_mr *mr, *ro, *foreign;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct rove_qp *rq;	/* the same, as the provider sees it */
	char *buf;
	union ibv_gid gid;
};

static struct end A, B;

static struct ibv_context *open_nonblock(const char *name)
{
	struct ibv_context *ctx = open_device(name);

	fcntl(ctx->async_fd, F_SETFL, O_NONBLOCK);
	return ctx;
}

static void end_open(struct end *e)
{
	e->ctx = open_nonblock(e->name);
	e->pd = ibv_alloc_pd(e->ctx);
	e->pd2 = ibv_alloc_pd(e->ctx);
	must(e->pd && e->pd2, "alloc_pd");
	e->buf = mmap(NULL, BUF, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	e->mr = ibv_reg_mr(e->pd, e->buf, BUF, IBV_ACCESS_LOCAL_WRITE |
			   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
			   IBV_ACCESS_REMOTE_ATOMIC);
	e->ro = ibv_reg_mr(e->pd, e->buf, BUF, 0);
	e->foreign = ibv_reg_mr(e->pd2, e->buf, BUF, IBV_ACCESS_LOCAL_WRITE);
	must(e->mr && e->ro && e->foreign, "reg_mr");
	must(!ibv_query_gid(e->ctx, 1, e->gid_index, &e->gid), "query_gid");
}

static void qp_open_as(struct end *e, enum ibv_qp_type type, int depth)
{
	struct ibv_qp_init_attr init = {
		.cap = {
			.max_send_wr = depth,
			.max_recv_wr = DEPTH,
			.max_send_sge = SGES,
			.max_recv_sge = SGES,
			.max_inline_data = INLINE,
		},
		.qp_type = type,
	};

	e->cq = ibv_create_cq(e->ctx, CQ_DEPTH, NULL, NULL, 0);
	must(e->cq, "create_cq");
	init.send_cq = e->cq;
	init.recv_cq = e->cq;
	e->qp = ibv_create_qp(e->pd, &init);
	must(e->qp, "create_qp");
	e->rq = to_rove_qp(e->qp);
}

static void qp_open(struct end *e)
{
	qp_open_as(e, IBV_QPT_RC, DEPTH);
}

static void events_clear(struct end *e)
{
	struct ibv_async_event ev;

	while (!ibv_get_async_event(e->ctx, &ev))
		ibv_ack_async_event(&ev);
}

static void qp_close(struct end *e)
{
	events_clear(e);
	must(!ibv_destroy_qp(e->qp), "destroy_qp");
	must(!ibv_destroy_cq(e->cq), "destroy_cq");
}

static void to_rts(struct end *e, struct end *peer)
{
	struct ibv_qp_attr attr = attr_to(&peer->gid, e->gid_index, peer->qp->qp_num);

	attr.min_rnr_timer = 1;
	attr.timeout = timeout;
	attr.rnr_retry = 6;
	must(!to_rts_as(e->qp, attr), "to RTS");
}

/* A's send queue takes @depth requests. */
static void pair_open_as(int depth)
{
	qp_open_as(&A, IBV_QPT_RC, depth);
	qp_open(&B);
	to_rts(&A, &B);
	to_rts(&B, &A);
}

static void pair_open(void)
{
	pair_open_as(DEPTH);
}

static void pair_close(void)
{
	qp_close(&A);
	qp_close(&B);
}

/* The wake-up call, without the provider. */
static void kick(struct end *e)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_post_send body;
	} msg = {
		.hdr = {
			.command = IB_USER_VERBS_CMD_POST_SEND,
			.in_words = sizeof(msg) / 4,
			.out_words = 1,
		},
		.body.qp_handle = e->qp->handle,
		.body.wqe_size = sizeof(struct ib_uverbs_send_wr),
	};
	uint32_t answer;

	msg.body.response = (uintptr_t)&answer;
	if (write(e->ctx->cmd_fd, &msg, sizeof(msg)) != sizeof(msg))
		note("wake-up: %s\n", strerror(errno));
}

/* The next slot, as a good 64-byte WRITE. */
static struct rove_send_wqe *put_send(struct end *e, uint64_t wr_id)
{
	struct end *peer = e == &A ? &B : &A;
	struct rove_wq *sq = &e->rq->sq;
	struct rove_send_wqe *w = rove_ring_slot(&sq->ring, sq->prod++);

	memset(w, 0, sq->ring.stride);
	w->wr_id = wr_id;
	w->opcode = ROVE_WR_RDMA_WRITE;
	w->flags = ROVE_WR_SIGNALED;
	w->num_sge = 1;
	w->rkey = peer->mr->rkey;
	w->remote_addr = (uintptr_t)peer->buf + 4096;
	w->sge[0] = (struct rove_sge) { (uintptr_t)e->buf, 64, e->mr->lkey };
	return w;
}

static struct rove_recv_wqe *put_recv(struct end *e, uint64_t wr_id)
{
	struct rove_wq *rq = &e->rq->rq;
	struct rove_recv_wqe *w = rove_ring_slot(&rq->ring, rq->prod++);

	memset(w, 0, rq->ring.stride);
	w->wr_id = wr_id;
	w->num_sge = 1;
	w->sge[0] = (struct rove_sge) {
		(uintptr_t)e->buf + 8192, 64, e->mr->lkey
	};
	return w;
}

static void publish(struct end *e)
{
	rove_index_store(&e->rq->rq.ring.hdr->prod, e->rq->rq.prod);
	rove_index_store(&e->rq->sq.ring.hdr->prod, e->rq->sq.prod);
	kick(e);
}

/* --- what must come of it ------------------------------------------------------ */

static int last_status;	/* of what expect_wc() has got */

static bool expect_wc(struct end *e, uint64_t wr_id, int status, int or_status)
{
	uint64_t end = now_ms() + wait_ms;
	struct ibv_wc wc;
	bool late;
	int n;

	/* It may be stopped for long here: what has come meanwhile is not late. */
	do {
		late = now_ms() >= end;
		n = ibv_poll_cq(e->cq, 1, &wc);
		if (!n)
			usleep(200);
	} while (!n && !late);
	if (n <= 0) {
		note("%s: no completion of request %d (%d)\n", e->name,
		     (int)wr_id, n);
		return false;
	}
	last_status = wc.status;
	if (wc.wr_id == wr_id && (status == ANY || (int)wc.status == status ||
				  (int)wc.status == or_status))
		return true;
	note("%s: request %d, status %d; wanted %d, %d or %d\n", e->name,
	     (int)wc.wr_id, wc.status, (int)wr_id, status, or_status);
	return false;
}

static bool expect_event(struct end *e, int type)
{
	uint64_t end = now_ms() + wait_ms;
	struct ibv_async_event ev;

	while (now_ms() < end) {
		if (!ibv_get_async_event(e->ctx, &ev)) {
			ibv_ack_async_event(&ev);
			if ((int)ev.event_type == type)
				return true;
			if (ev.event_type == IBV_EVENT_COMM_EST)
				continue;
			note("%s: event %d\n", e->name, ev.event_type);
		}
		usleep(200);
	}
	note("%s: no event %d\n", e->name, type);
	return false;
}

static bool state_is(struct end *e, enum ibv_qp_state want)
{
	struct ibv_qp_init_attr init;
	uint64_t end = now_ms() + wait_ms;
	struct ibv_qp_attr attr;
	int err;

	do {
		err = ibv_query_qp(e->qp, &attr, IBV_QP_STATE, &init);
		if (err || attr.qp_state == want)
			break;
		usleep(500);
	} while (now_ms() < end);
	if (!err && attr.qp_state == want)
		return true;
	note("%s: state %d, wanted %d\n", e->name, attr.qp_state, want);
	return false;
}

/* --- the other process -------------------------------------------------------- */

struct victim {
	volatile uint64_t rounds;
	volatile int stop, bad;
};

static struct victim *victim;
static pid_t victim_pid;

static void victim_run(void)
{
	struct ibv_sge ss = { 0 }, rs = { 0 };
	struct ibv_send_wr wr = {
		.sg_list = &ss, .num_sge = 1, .opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	}, *bad_wr;
	struct ibv_recv_wr rwr = { .sg_list = &rs, .num_sge = 1 }, *bad_rwr;
	uint64_t round;
	uint32_t i;

	end_open(&A);
	end_open(&B);
	pair_open();
	ss = (struct ibv_sge) { (uintptr_t)A.buf, 5000, A.mr->lkey };
	rs = (struct ibv_sge) { (uintptr_t)B.buf, 5000, B.mr->lkey };
	for (round = 1; !victim->stop; round++) {
		for (i = 0; i < 1250; i++)
			((uint32_t *)A.buf)[i] = i * 77 + round;
		if (ibv_post_recv(B.qp, &rwr, &bad_rwr) ||
		    ibv_post_send(A.qp, &wr, &bad_wr) ||
		    !expect_wc(&B, 0, IBV_WC_SUCCESS, NONE) ||
		    !expect_wc(&A, 0, IBV_WC_SUCCESS, NONE) ||
		    memcmp(A.buf, B.buf, 5000)) {
			note("other process: round %d\n", (int)round);
			victim->bad = 1;
			exit(1);
		}
		victim->rounds = round;
		usleep(1000);
	}
	exit(0);
}

static void victim_start(void)
{
	uint64_t end = now_ms() + wait_ms;

	victim = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	fflush(stdout);
	victim_pid = fork();
	if (!victim_pid)
		victim_run();
	while (!victim->rounds && now_ms() < end && !victim->bad)
		usleep(1000);
	must(victim->rounds, "the other process does not run");
}

/* Still going, and still right? */
static void victim_check(const char *when)
{
	uint64_t end = now_ms() + wait_ms, before = victim->rounds;

	while (victim->rounds < before + 3 && !victim->bad && now_ms() < end)
		usleep(1000);
	outcome(!victim->bad && victim->rounds >= before + 3,
		"another process is undisturbed: %s", when);
}

static void victim_end(void)
{
	int status = -1;

	victim->stop = 1;
	waitpid(victim_pid, &status, 0);
	note("the other process did %d rounds\n", (int)victim->rounds);
	outcome(!status, "another process ends well");
}

/* --- one thing wrong -------------------------------------------------------------- */

struct send_case {
	const char *name;
	void (*spoil)(struct rove_send_wqe *w, uint64_t v);
	uint64_t value;
	int status, or_status;
};

static void set_opcode(struct rove_send_wqe *w, uint64_t v) { w->opcode = v; }
static void set_num_sge(struct rove_send_wqe *w, uint64_t v) { w->num_sge = v; }
static void set_lkey(struct rove_send_wqe *w, uint64_t v) { w->sge[0].lkey ^= v; }
static void set_addr(struct rove_send_wqe *w, uint64_t v) { w->sge[0].addr = v; }
static void set_len(struct rove_send_wqe *w, uint64_t v) { w->sge[0].length = v; }
static void set_flags(struct rove_send_wqe *w, uint64_t v) { w->flags |= v; }
static void set_wrap(struct rove_send_wqe *w, uint64_t v)
{
	w->sge[0].addr = v;
	w->sge[0].length = 0x1000;
}

static void set_sum(struct rove_send_wqe *w, uint64_t v)
{
	int i;

	w->num_sge = SGES;
	for (i = 0; i < SGES; i++) {
		w->sge[i] = w->sge[0];
		w->sge[i].length = v;
	}
}

static void set_inline(struct rove_send_wqe *w, uint64_t v)
{
	w->flags |= ROVE_WR_INLINE;
	w->num_sge = 0;
	w->inline_len = v;
}

static void set_inline_sge(struct rove_send_wqe *w, uint64_t v)
{
	set_inline(w, 16);
	w->num_sge = v;
}

static void set_foreign(struct rove_send_wqe *w, uint64_t v)
{
	w->sge[0].lkey = A.foreign->lkey;
}

static void set_dead(struct rove_send_wqe *w, uint64_t v)
{
	struct ibv_mr *mr = ibv_reg_mr(A.pd, A.buf, BUF, 0);

	w->sge[0].lkey = mr->lkey;
	ibv_dereg_mr(mr);
}

static void set_read_ro(struct rove_send_wqe *w, uint64_t v)
{
	w->opcode = ROVE_WR_RDMA_READ;
	w->sge[0].lkey = A.ro->lkey;
}

static void set_read_inline(struct rove_send_wqe *w, uint64_t v)
{
	set_inline(w, 16);
	w->opcode = v;
}

static void set_atomic_len(struct rove_send_wqe *w, uint64_t v)
{
	w->opcode = ROVE_WR_ATOMIC_FETCH_AND_ADD;
	w->sge[0].length = v;
}

static void set_rkey(struct rove_send_wqe *w, uint64_t v) { w->rkey ^= v; }
static void set_remote(struct rove_send_wqe *w, uint64_t v) { w->remote_addr = v; }
static void set_remote_read(struct rove_send_wqe *w, uint64_t v)
{
	w->opcode = ROVE_WR_RDMA_READ;
	w->remote_addr = v;
}

static const struct send_case send_cases[] = {
#define OP(n) { "opcode " #n, set_opcode, n, IBV_WC_LOC_QP_OP_ERR, NONE }
	OP(10), OP(11), OP(14), OP(16), OP(31), OP(32), OP(64), OP(127),
	OP(128), OP(0xf0), OP(255),
	{ "LOCAL_INV of nobody's key", set_opcode, ROVE_WR_LOCAL_INV,
	  IBV_WC_MW_BIND_ERR, NONE },
	{ "BIND_MW of nobody's window", set_opcode, ROVE_WR_BIND_MW,
	  IBV_WC_MW_BIND_ERR, NONE },
#define NSGE(n) { "num_sge " #n, set_num_sge, n, IBV_WC_LOC_QP_OP_ERR, NONE }
	NSGE(33), NSGE(255), NSGE(4096), NSGE(65535),
#define INL(n) { "inline_len " #n, set_inline, n, IBV_WC_LOC_QP_OP_ERR, IBV_WC_LOC_LEN_ERR }
	INL(1025), INL(65536), INL(0x80000000), INL(0xffffffff), INL(0xfffffff0),
	{ "inline with num_sge", set_inline_sge, 65535, IBV_WC_SUCCESS,
	  IBV_WC_LOC_QP_OP_ERR },
	{ "lkey one off", set_lkey, 1, IBV_WC_LOC_PROT_ERR, NONE },
	{ "lkey of nobody", set_lkey, 0x55aa5500, IBV_WC_LOC_PROT_ERR, NONE },
	{ "lkey of another PD", set_foreign, 0, IBV_WC_LOC_PROT_ERR, NONE },
	{ "lkey of a dead MR", set_dead, 0, IBV_WC_LOC_PROT_ERR, NONE },
	{ "address 0", set_addr, 0, IBV_WC_LOC_PROT_ERR, NONE },
	{ "address in the kernel", set_addr, 0xffff888000000000ULL,
	  IBV_WC_LOC_PROT_ERR, NONE },
	{ "address that wraps", set_wrap, 0xfffffffffffffc00ULL,
	  IBV_WC_LOC_PROT_ERR, NONE },
	{ "length behind the end", set_len, BUF + 1, IBV_WC_LOC_PROT_ERR, NONE },
	{ "length 2^31 + 1", set_len, 0x80000001, IBV_WC_LOC_LEN_ERR, NONE },
	{ "lengths that add up to 2^32", set_sum, 0x40000000,
	  IBV_WC_LOC_LEN_ERR, NONE },
	{ "lengths that add up to 2^34", set_sum, 0xffffffff,
	  IBV_WC_LOC_LEN_ERR, NONE },
	{ "flags nobody knows", set_flags, 0xf0, IBV_WC_SUCCESS,
	  IBV_WC_LOC_QP_OP_ERR },
	{ "READ to where one may not write", set_read_ro, 0,
	  IBV_WC_LOC_PROT_ERR, NONE },
	{ "READ inline", set_read_inline, ROVE_WR_RDMA_READ,
	  IBV_WC_LOC_QP_OP_ERR, NONE },
	{ "atomic inline", set_read_inline, ROVE_WR_ATOMIC_CMP_AND_SWP,
	  IBV_WC_LOC_QP_OP_ERR, NONE },
	{ "atomic of 4 bytes", set_atomic_len, 4, IBV_WC_LOC_LEN_ERR, NONE },
	{ "rkey one off", set_rkey, 1, IBV_WC_REM_ACCESS_ERR, NONE },
	{ "remote address that wraps", set_remote, 0xffffffffffffffe0ULL,
	  IBV_WC_REM_ACCESS_ERR, NONE },
	{ "remote address in the kernel", set_remote_read, 0xffff888000000000ULL,
	  IBV_WC_REM_ACCESS_ERR, NONE },
};

/* A good one, the bad one, and one that is flushed because of it. */
static void send_case(const struct send_case *c)
{
	bool good;

	pair_open();
	put_send(&A, 1);
	c->spoil(put_send(&A, 2), c->value);
	put_send(&A, 3);
	publish(&A);
	good = expect_wc(&A, 1, IBV_WC_SUCCESS, NONE) &&
	       expect_wc(&A, 2, c->status, c->or_status);
	if (c->status != IBV_WC_SUCCESS)
		good = good && expect_wc(&A, 3, IBV_WC_WR_FLUSH_ERR, NONE) &&
		       state_is(&A, IBV_QPS_ERR);
	outcome(good, "send ring: %s", c->name);
	pair_close();
}

static void send_index(const char *name, uint32_t by)
{
	bool good;

	pair_open();
	put_send(&A, 1);
	publish(&A);
	good = expect_wc(&A, 1, IBV_WC_SUCCESS, NONE);
	rove_index_store(&A.rq->sq.ring.hdr->prod, A.rq->sq.prod + by);
	kick(&A);
	outcome(good && expect_event(&A, IBV_EVENT_QP_FATAL) &&
		state_is(&A, IBV_QPS_ERR), "send ring, producer: %s", name);
	pair_close();
}

struct recv_case {
	const char *name;
	void (*spoil)(struct rove_recv_wqe *w);
	int status;	/* of the receive */
	int peer;	/* of the send */
};

static void r_num_sge(struct rove_recv_wqe *w) { w->num_sge = SGES + 1000; }
static void r_num_sge_max(struct rove_recv_wqe *w) { w->num_sge = 0xffffffff; }
static void r_lkey(struct rove_recv_wqe *w) { w->sge[0].lkey ^= 0x100; }
static void r_ro(struct rove_recv_wqe *w) { w->sge[0].lkey = B.ro->lkey; }
static void r_foreign(struct rove_recv_wqe *w) { w->sge[0].lkey = B.foreign->lkey; }
static void r_short(struct rove_recv_wqe *w) { w->sge[0].length = 63; }
static void r_none(struct rove_recv_wqe *w) { w->num_sge = 0; }
static void r_kernel(struct rove_recv_wqe *w) { w->sge[0].addr = 0xffff888000000000ULL; }
static void r_wrap(struct rove_recv_wqe *w)
{
	w->sge[0].addr = 0xffffffffffffffe0ULL;
	w->sge[0].length = 0xffffffff;
}

static const struct recv_case recv_cases[] = {
	{ "num_sge too large", r_num_sge, IBV_WC_LOC_QP_OP_ERR, IBV_WC_REM_OP_ERR },
	{ "num_sge 2^32 - 1", r_num_sge_max, IBV_WC_LOC_QP_OP_ERR, IBV_WC_REM_OP_ERR },
	{ "lkey of nobody", r_lkey, IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR },
	{ "lkey without write", r_ro, IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR },
	{ "lkey of another PD", r_foreign, IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR },
	{ "address in the kernel", r_kernel, IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR },
	{ "address that wraps", r_wrap, IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR },
	{ "too short", r_short, IBV_WC_LOC_LEN_ERR, IBV_WC_REM_INV_REQ_ERR },
	{ "no SGE", r_none, IBV_WC_LOC_LEN_ERR, IBV_WC_REM_INV_REQ_ERR },
};

static void recv_case(const struct recv_case *c)
{
	bool good;

	pair_open();
	c->spoil(put_recv(&B, 1));
	put_recv(&B, 2);
	publish(&B);
	put_send(&A, 1)->opcode = ROVE_WR_SEND;
	publish(&A);
	good = expect_wc(&A, 1, c->peer, NONE) && state_is(&B, IBV_QPS_ERR);
	good = good && expect_wc(&B, 1, c->status, NONE) &&
	       expect_wc(&B, 2, IBV_WC_WR_FLUSH_ERR, NONE);
	outcome(good, "receive ring: %s", c->name);
	pair_close();
}

static void recv_index(const char *name, uint32_t by)
{
	bool good;

	pair_open();
	rove_index_store(&B.rq->rq.ring.hdr->prod, B.rq->rq.prod + by);
	put_send(&A, 1)->opcode = ROVE_WR_SEND;
	publish(&A);
	good = expect_wc(&A, 1, IBV_WC_REM_OP_ERR, NONE) &&
	       expect_event(&B, IBV_EVENT_QP_FATAL) && state_is(&B, IBV_QPS_ERR);
	outcome(good, "receive ring, producer: %s", name);
	pair_close();
}

/* Have so many completions come? */
static bool completed(struct rove_ring *r, uint32_t n)
{
	uint64_t end = now_ms() + wait_ms;

	while (rove_index_load(&r->hdr->prod) != n)
		if (now_ms() >= end)
			return false;
	return true;
}

static void cq_index(const char *name, uint32_t by)
{
	struct rove_ring *r;
	bool good = true;
	int i;

	pair_open();
	r = &to_rove_cq(A.cq)->ring;
	/* The kernel looks at the index when it knows of no more room. */
	for (i = 0; i < CQ_DEPTH && good; i++) {
		put_send(&A, i);
		publish(&A);
		good = completed(r, i + 1);
	}
	rove_index_store(&r->hdr->cons, CQ_DEPTH + by);
	put_send(&A, i);
	publish(&A);
	outcome(good && expect_event(&A, IBV_EVENT_CQ_ERR) &&
		state_is(&A, IBV_QPS_ERR), "completion ring, consumer: %s", name);
	pair_close();
}

/* What the kernel writes it does not read: traffic goes on. */
static void kernel_words(void)
{
	struct rove_ring_hdr *sq, *rq, *cq;
	uint32_t done;
	bool good;
	int i;

	pair_open();
	sq = A.rq->sq.ring.hdr;
	rq = B.rq->rq.ring.hdr;
	cq = to_rove_cq(A.cq)->ring.hdr;
	for (i = 1, good = true; i <= 200 && good; i++) {
		uint32_t junk = i & 1 ? 0xffffffff : (uint32_t)rnd();

		sq->cons = junk;
		sq->flags = junk;
		sq->arm = junk;
		rq->cons = junk;
		rq->flags = junk;
		done = cq->prod;
		cq->flags = junk;
		cq->arm = junk | 8;
		put_recv(&B, i);
		publish(&B);
		put_send(&A, i)->opcode = ROVE_WR_SEND;
		publish(&A);
		good = expect_wc(&A, i, IBV_WC_SUCCESS, NONE) &&
		       expect_wc(&B, i, IBV_WC_SUCCESS, NONE) &&
		       cq->prod == done + 1;
	}
	outcome(good, "header words that are the kernel's");
	pair_close();
}

/*
 * Requests changed while the kernel takes them: those that it has count as they were, the
 * first that it takes as nonsense ends the queue pair.
 */
static void changed_later(void)
{
	bool good = true;
	int i, j;

	for (i = 0; i < 8 && good; i++) {
		struct rove_send_wqe *w[DEPTH];
		bool ended = false;

		pair_open();
		for (j = 0; j < DEPTH; j++) {
			w[j] = put_send(&A, j);
			if (j & 1)
				w[j]->opcode = ROVE_WR_RDMA_READ;
		}
		publish(&A);
		for (j = 0; j < DEPTH; j++)
			memset((char *)w[j] + 8, 0xff, 120);
		for (j = 0; j < DEPTH && good; j++) {
			good = expect_wc(&A, j, ended ? IBV_WC_WR_FLUSH_ERR : ANY, NONE);
			ended |= last_status != IBV_WC_SUCCESS;
		}
		pair_close();
	}
	outcome(good, "requests changed after the doorbell all complete");
}

/* A command without the provider: its answer's bytes are @resp's. */
static bool command(uint32_t number, void *msg, size_t len, void *resp, size_t room)
{
	struct ib_uverbs_cmd_hdr *hdr = msg;

	*hdr = (struct ib_uverbs_cmd_hdr) { number, len / 4, room / 4 };
	/* Where there is an answer, each body begins with where it is to go. */
	if (room)
		memcpy(hdr + 1, &resp, sizeof(resp));
	return write(A.ctx->cmd_fd, msg, len) == (ssize_t)len;
}

/*
 * ib_core creates an XRC target without telling that it is a program's, and with the
 * sizes that the program has asked for: it gets no queues all the same.
 */
static void odd_target(void)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_open_xrcd body;
	} open = { .body = { .fd = -1, .oflags = O_CREAT } };
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_create_qp body;
	} create = {
		.body = {
			.user_handle = 1, .qp_type = IB_UVERBS_QPT_XRC_TGT,
			.max_send_wr = 64, .max_inline_data = 0xffffffd0,
		},
	};
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_modify_qp body;
	} modify = {
		.body = {
			.attr_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				     IBV_QP_ACCESS_FLAGS,
			.qp_state = IBV_QPS_INIT, .port_num = 1,
		},
	};
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_post_send body;
		struct ib_uverbs_send_wr wr;
	} post = {
		.body = { .wr_count = 1, .wqe_size = sizeof(post.wr) },
		.wr = { .opcode = IBV_WR_SEND },
	};
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_destroy_qp body;
	} destroy = {};
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_close_xrcd body;
	} close = {};
	struct ib_uverbs_create_qp_resp qp = {};
	struct ib_uverbs_open_xrcd_resp xrcd = {};
	uint64_t answer[16];
	bool good;

	qp_open(&A);
	good = command(IB_USER_VERBS_CMD_OPEN_XRCD, &open, sizeof(open), &xrcd, sizeof(xrcd));
	create.body.pd_handle = xrcd.xrcd_handle;
	good = good && command(IB_USER_VERBS_CMD_CREATE_QP, &create, sizeof(create), &qp,
			       sizeof(qp));
	outcome(good && !qp.max_send_wr && !qp.max_inline_data,
		"an XRC target asked for with a send queue has none");
	modify.body.qp_handle = qp.qp_handle;
	good = good && command(IB_USER_VERBS_CMD_MODIFY_QP, &modify, sizeof(modify), NULL, 0);
	modify.body.attr_mask = IBV_QP_STATE;
	modify.body.qp_state = IBV_QPS_ERR;
	good = good && command(IB_USER_VERBS_CMD_MODIFY_QP, &modify, sizeof(modify), NULL, 0);
	if (!good)
		note("modify_qp: %s\n", strerror(errno));
	post.body.qp_handle = qp.qp_handle;
	good = good && !command(IB_USER_VERBS_CMD_POST_SEND, &post, sizeof(post), answer,
				sizeof(answer));
	outcome(good, "a request posted to it by a command is refused");
	destroy.body.qp_handle = qp.qp_handle;
	good = command(IB_USER_VERBS_CMD_DESTROY_QP, &destroy, sizeof(destroy), answer,
		       sizeof(answer));
	close.body.xrcd_handle = xrcd.xrcd_handle;
	good &= command(IB_USER_VERBS_CMD_CLOSE_XRCD, &close, sizeof(close), NULL, 0);
	outcome(good, "and it goes");
	qp_close(&A);
}

/*
 * @msg is refused with a request that the driver does not know, and obeyed without it.
 * Returns what the answer begins with, which is a handle.
 */
static uint32_t grown_command(const char *what, uint32_t number, void *msg, size_t len,
			      bool answers)
{
	uint64_t *request = msg + len - sizeof(*request), answer[32] = {};
	size_t room = answers ? sizeof(answer) : 0;
	bool refused, done;
	uint32_t handle;

	*request = 1ULL << 63;
	refused = !command(number, msg, len, answer, room) && errno == EOPNOTSUPP;
	*request = 0;
	memset(answer, 0xff, room);
	done = command(number, msg, len, answer, room);
	if (!done)
		note("%s: %s\n", what, strerror(errno));
	outcome(refused, "%s with a request that is not known", what);
	outcome(done && !answer[31], "%s with one that is empty, and more room than answers",
		what);
	memcpy(&handle, answer, sizeof(handle));
	return handle;
}

#define COMMAND(body_type, words, ...)					\
	struct {							\
		struct ib_uverbs_cmd_hdr hdr;				\
		struct body_type body;					\
		uint64_t request[words];				\
	} msg = { .body = { __VA_ARGS__ } }
#define GROWN(number, body_type, words, ...) ({				\
	COMMAND(body_type, words, __VA_ARGS__);				\
	grown_command(#number, IB_USER_VERBS_CMD_##number, &msg, sizeof(msg), true); })

/* What a provider that is newer than the module may say: rove-abi.h. */
static void grown_commands(void)
{
	struct ibv_context raw = {}, *ctx = A.ctx;
	uint32_t pd, cq, mr, qp;
	char path[128];
	int async_fd;

	snprintf(path, sizeof(path), "/dev/infiniband/%s", ctx->device->dev_name);
	raw.cmd_fd = open(path, O_RDWR | O_CLOEXEC);
	must(raw.cmd_fd >= 0, path);
	A.ctx = &raw;
	async_fd = GROWN(GET_CONTEXT, ib_uverbs_get_context, 1);
	GROWN(QUERY_DEVICE, ib_uverbs_query_device, 1);
	pd = GROWN(ALLOC_PD, ib_uverbs_alloc_pd, 1);
	cq = GROWN(CREATE_CQ, ib_uverbs_create_cq, 1, .cqe = 1, .comp_channel = -1);
	GROWN(RESIZE_CQ, ib_uverbs_resize_cq, 1, .cq_handle = cq, .cqe = 8);
	GROWN(CREATE_SRQ, ib_uverbs_create_srq, 1, .pd_handle = pd, .max_wr = 1, .max_sge = 1);
	qp = GROWN(CREATE_QP, ib_uverbs_create_qp, 2, .pd_handle = pd, .send_cq_handle = cq,
		   .recv_cq_handle = cq, .max_send_wr = 1, .max_recv_wr = 1,
		   .qp_type = IB_UVERBS_QPT_RC);
	{
		COMMAND(ib_uverbs_modify_qp, 1, .qp_handle = qp,
			.attr_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				     IBV_QP_ACCESS_FLAGS,
			.qp_state = IBV_QPS_INIT, .port_num = 1);

		grown_command("MODIFY_QP", IB_USER_VERBS_CMD_MODIFY_QP, &msg, sizeof(msg), false);
	}
	{
		COMMAND(ib_uverbs_create_ah, 1, .pd_handle = pd, .attr = {
				.grh = { .sgid_index = A.gid_index, .hop_limit = 1 },
				.is_global = 1, .port_num = 1,
			});

		memcpy(msg.body.attr.grh.dgid, &B.gid, sizeof(B.gid));
		grown_command("CREATE_AH", IB_USER_VERBS_CMD_CREATE_AH, &msg, sizeof(msg), true);
	}
	mr = GROWN(REG_MR, ib_uverbs_reg_mr, 2, .pd_handle = pd, .start = (uintptr_t)A.buf,
		   .hca_va = (uintptr_t)A.buf, .length = BUF,
		   .access_flags = IBV_ACCESS_LOCAL_WRITE);
	GROWN(REREG_MR, ib_uverbs_rereg_mr, 1, .mr_handle = mr,
	      .flags = IBV_REREG_MR_CHANGE_ACCESS);
	GROWN(ALLOC_MW, ib_uverbs_alloc_mw, 1, .pd_handle = pd, .mw_type = IBV_MW_TYPE_1);
	GROWN(OPEN_XRCD, ib_uverbs_open_xrcd, 1, .fd = -1, .oflags = O_CREAT);
	/* All goes with its context. */
	close(async_fd);
	close(raw.cmd_fd);
	A.ctx = ctx;
}

/* uverbs commands that a ring's owner has no business with. */
static void odd_commands(void)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_post_send body;
		struct ib_uverbs_send_wr wr;
	} msg = {
		.hdr = {
			.command = IB_USER_VERBS_CMD_POST_SEND,
			.in_words = sizeof(msg) / 4,
			.out_words = 1,
		},
		.body = { .wr_count = 1, .wqe_size = sizeof(msg.wr) },
		.wr = { .opcode = IBV_WR_SEND },
	};
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_poll_cq body;
	} poll = {
		.hdr = {
			.command = IB_USER_VERBS_CMD_POLL_CQ,
			.in_words = sizeof(poll) / 4,
			.out_words = 16,
		},
		.body.ne = 1,
	};
	uint32_t answer[64];
	ssize_t n;

	pair_open();
	msg.body.response = (uintptr_t)answer;
	msg.body.qp_handle = A.qp->handle;
	n = write(A.ctx->cmd_fd, &msg, sizeof(msg));
	outcome(n < 0 && errno == EINVAL, "a request posted by a command");
	poll.body.response = (uintptr_t)answer;
	poll.body.cq_handle = A.cq->handle;
	n = write(A.ctx->cmd_fd, &poll, sizeof(poll));
	outcome(n < 0 && (errno == EOPNOTSUPP || errno == EINVAL),
		"a completion polled by a command");
	pair_close();
}

static void run_cases(void)
{
	unsigned int i;

	for (i = 0; i < sizeof(send_cases) / sizeof(*send_cases); i++)
		send_case(&send_cases[i]);
	victim_check("bad send requests");
	for (i = 0; i < sizeof(recv_cases) / sizeof(*recv_cases); i++)
		recv_case(&recv_cases[i]);
	victim_check("bad receive requests");
	send_index("one too far", DEPTH + 1);
	send_index("back by one", -1);
	send_index("half the world away", 0x80000000);
	recv_index("one too far", DEPTH + 1);
	recv_index("back by one", -1);
	recv_index("half the world away", 0x80000000);
	cq_index("one ahead", 1);
	cq_index("further behind than it is deep", -(CQ_DEPTH + 1));
	cq_index("half the world away", 0x80000000);
	kernel_words();
	changed_later();
	odd_commands();
	odd_target();
	grown_commands();
	victim_check("bad indices");
}

/* --- the scribbler ------------------------------------------------------------------ */

static struct rove_ring *volatile rings[6];
static volatile int scribble_stop;
static pthread_mutex_t rings_lock = PTHREAD_MUTEX_INITIALIZER;

static void scribble_word(struct rove_ring *r)
{
	static const uint32_t nasty[] = {
		0, 1, 2, 0x7fffffff, 0x80000000, 0xffffffff, 0xfffffc00, 33,
		64, 65, 256, 1024, 1025, 65535,
	};
	uint64_t dice = rnd();
	uint32_t value = dice & 1 ? nasty[(dice >> 8) % 14] : (uint32_t)(dice >> 32);
	volatile uint32_t *word;
	size_t off;

	/* mostly in the slots' first 128 bytes, now and then in the header */
	if (dice % 509 == 0)
		off = (rnd() % 4) * 64;
	else
		off = ROVE_RING_SLOTS + (rnd() % r->depth) * r->stride +
		      rnd() % (r->stride < 128 ? r->stride : 128);
	word = (volatile uint32_t *)((char *)r->hdr + (off & ~3UL));
	switch ((dice >> 16) & 3) {
	case 0:
		*word = value;
		break;
	case 1:
		*word ^= 1U << (value & 31);
		break;
	case 2:
		*(volatile uint8_t *)word = value;
		break;
	default:
		/* keys that are good, for once, with lengths that are not */
		*word = dice & 2 ? A.mr->lkey : B.mr->rkey;
	}
}

static void *scribbler(void *arg)
{
	int i;

	while (!scribble_stop) {
		pthread_mutex_lock(&rings_lock);
		for (i = 0; i < 64; i++)
			if (rings[i % 6])
				scribble_word(rings[i % 6]);
		pthread_mutex_unlock(&rings_lock);
	}
	return NULL;
}

static void set_rings(bool on)
{
	pthread_mutex_lock(&rings_lock);
	rings[0] = on ? &A.rq->sq.ring : NULL;
	rings[1] = on ? &B.rq->rq.ring : NULL;
	rings[2] = on ? &to_rove_cq(A.cq)->ring : NULL;
	rings[3] = on ? &B.rq->sq.ring : NULL;
	rings[4] = on ? &A.rq->sq.ring : NULL;
	rings[5] = on ? &to_rove_cq(B.cq)->ring : NULL;
	pthread_mutex_unlock(&rings_lock);
}

static void run_scribble(int seconds)
{
	uint64_t end = now_ms() + seconds * 1000ULL;
	int lives = 0, posts = 0, i, j;
	struct ibv_wc wc[16];
	pthread_t thread;

	must(!pthread_create(&thread, NULL, scribbler, NULL), "thread");
	while (now_ms() < end) {
		pair_open();
		set_rings(true);
		for (i = 0; i < 40; i++) {
			static const uint8_t ops[] = {
				ROVE_WR_SEND, ROVE_WR_RDMA_WRITE,
				ROVE_WR_RDMA_READ, ROVE_WR_ATOMIC_CMP_AND_SWP,
				ROVE_WR_SEND_WITH_IMM, ROVE_WR_SEND_WITH_INV,
				ROVE_WR_RDMA_WRITE_WITH_IMM, ROVE_WR_LOCAL_INV,
				ROVE_WR_BIND_MW, ROVE_WR_ATOMIC_WRITE,
			};

			for (j = 0; j < 8; j++) {
				struct end *e = rnd() & 1 ? &A : &B;
				struct rove_send_wqe *w = put_send(e, posts++);
				/* mostly what does not end it at once */
				int op = rnd() % 64;

				w->opcode = ops[op < 10 ? op : op % 3];
				put_recv(&A, posts);
				put_recv(&B, posts);
			}
			publish(&A);
			publish(&B);
			ibv_poll_cq(A.cq, 16, wc);
			ibv_poll_cq(B.cq, 16, wc);
		}
		set_rings(false);
		pair_close();
		lives++;
	}
	scribble_stop = 1;
	pthread_join(thread, NULL);
	note("%d connections, %d requests\n", lives, posts);
	outcome(lives > 0, "scribbled over all rings");
	victim_check("scribbling");
}

/* --- mappings --------------------------------------------------------------------------- */

static size_t page;

/* Where a mapping of ours is in the device's file. */
static off_t offset_of(void *addr, size_t *size)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long from, to, off;
	char line[512];

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx %*s %lx", &from, &to, &off) != 3 ||
		    from != (uintptr_t)addr)
			continue;
		*size = to - from;
		fclose(f);
		return off;
	}
	must(false, "mapping");
	return 0;
}

static bool map_fails(int fd, size_t size, int prot, int flags, off_t off,
		      int want)
{
	void *p = mmap(NULL, size, prot, flags, fd, off);

	if (p != MAP_FAILED) {
		munmap(p, size);
		note("mapped %zu bytes at %#lx\n", size, (long)off);
		return false;
	}
	if (errno == want || (want == EPERM && errno == EACCES))
		return true;
	note("%zu bytes at %#lx: %s\n", size, (long)off, strerror(errno));
	return false;
}

static sigjmp_buf caught;
static void on_fault(int sig)
{
	siglongjmp(caught, sig);
}

static bool readable(const volatile char *p, size_t size)
{
	struct sigaction sa = { .sa_handler = on_fault }, bus, segv;
	volatile size_t i;
	volatile bool good = true;

	sigaction(SIGBUS, &sa, &bus);
	sigaction(SIGSEGV, &sa, &segv);
	if (!sigsetjmp(caught, 1)) {
		for (i = 0; i < size; i += 64)
			(void)p[i];
	} else {
		note("fault at byte %zu of a ring\n", i);
		good = false;
	}
	sigaction(SIGBUS, &bus, NULL);
	sigaction(SIGSEGV, &segv, NULL);
	return good;
}

static volatile off_t race_off;
static volatile size_t race_size;
static volatile int race_stop, race_hits;

static void *race_mmap(void *arg)
{
	while (!race_stop) {
		size_t size = race_size;
		char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED,
			       A.ctx->cmd_fd, race_off);

		if (p == MAP_FAILED)
			continue;
		p[0] ^= 1;
		p[size - 1] ^= 1;
		race_hits++;
		munmap(p, size);
	}
	return NULL;
}

static void run_mmap(int seconds)
{
	const int rw = PROT_READ | PROT_WRITE;
	struct ibv_context *other = open_nonblock(A.name);
	uint64_t end;
	int fd = A.ctx->cmd_fd, i, status;
	struct rove_ring *r, *c;
	pthread_t thread;
	char *again, *cqmap;
	size_t size, csize;
	off_t off, coff;
	pid_t pid;
	bool good;

	pair_open();
	r = &A.rq->sq.ring;
	off = offset_of(r->hdr, &size);
	c = &to_rove_cq(A.cq)->ring;
	coff = offset_of(c->hdr, &csize);

	outcome(map_fails(fd, size + page, rw, MAP_SHARED, off, EINVAL), "mmap: one page more");
	outcome(size == page || map_fails(fd, size - page, rw, MAP_SHARED, off, EINVAL),
		"mmap: one page less");
	outcome(map_fails(fd, page, rw, MAP_SHARED, off + page, EINVAL), "mmap: from the middle");
	outcome(map_fails(fd, size, rw, MAP_SHARED, 1L << 40, EINVAL) &&
		map_fails(fd, size, rw, MAP_SHARED, 0x7ffffffffffff000L, EINVAL),
		"mmap: at an offset of nobody");
	outcome(map_fails(fd, size, rw, MAP_PRIVATE, off, EINVAL), "mmap: private");
	outcome(map_fails(fd, size, PROT_READ | PROT_EXEC, MAP_SHARED, off, EPERM),
		"mmap: executable");
	outcome(mprotect(r->hdr, size, PROT_READ | PROT_EXEC) && errno == EACCES,
		"mprotect: executable");
	outcome(map_fails(other->cmd_fd, size, rw, MAP_SHARED, off, EINVAL),
		"mmap: another context's ring");
	outcome(mremap(r->hdr, size, size + page, MREMAP_MAYMOVE) == MAP_FAILED,
		"mremap: larger");
	for (i = 0, good = true; i < 4096; i++) {
		void *p = mmap(NULL, page * (1 + rnd() % 8), rw, MAP_SHARED, fd,
			       (rnd() % 4096) * page);

		if (p != MAP_FAILED)
			good &= readable(p, page);
	}
	outcome(good, "mmap: random sizes and offsets");

	/* a child sees the same memory and does no harm by going away */
	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(!readable((char *)r->hdr, size));
	waitpid(pid, &status, 0);
	outcome(!status, "a child has the rings");

	/* twice mapped, in part unmapped, moved: the kernel has its own view */
	again = mmap(NULL, csize, rw, MAP_SHARED, fd, coff);
	outcome(again != MAP_FAILED && !memcmp(again, c->hdr, csize), "mmap: a ring twice");
	munmap(again + csize - page, page);
	cqmap = mmap(NULL, csize, PROT_READ, MAP_SHARED, fd, coff);
	for (i = 0, good = true; i < DEPTH * 6 && good; i++) {
		put_send(&A, i);
		publish(&A);
		good = expect_wc(&A, i, IBV_WC_SUCCESS, NONE);
	}
	outcome(good, "munmap of a part: traffic goes on");
	munmap(again, csize - page);

	/* all that is mapped stays when the queues are gone */
	again = mmap(NULL, size, rw, MAP_SHARED, fd, off);
	pair_close();
	outcome(again != MAP_FAILED && cqmap != MAP_FAILED && readable(again, size) &&
		readable(cqmap, csize), "rings outlive their queues");
	memset(again, 0xff, size);
	outcome(map_fails(fd, size, rw, MAP_SHARED, off, EINVAL), "mmap: a ring that is gone");

	race_off = off;
	race_size = size;
	must(!pthread_create(&thread, NULL, race_mmap, NULL), "thread");
	end = now_ms() + seconds * 1000ULL;
	for (i = 0; now_ms() < end; i++) {
		qp_open(&A);
		race_off = offset_of(A.rq->sq.ring.hdr, &size);
		race_size = size;
		usleep(rnd() % 500);
		qp_close(&A);
	}
	race_stop = 1;
	pthread_join(thread, NULL);
	note("%d queue pairs, mapped %d times behind their back\n", i, race_hits);
	outcome(i > 0 && race_hits > 0, "mmap against destroy");
	munmap(again, size);
	ibv_close_device(other);
	victim_check("mapping");
}

/* --- left alone -------------------------------------------------------------------------- */

/*
 * The look-again timers' ticks, of all QPs of a link, end when the program does nothing.
 * Nobody else uses the links in this mode.
 */
static bool nobody_looks(void)
{
	uint64_t end = now_ms() + wait_ms, ticks = hw_counter(A.name, "sq_ring_polls"), before;

	do {
		before = ticks;
		usleep(200000);
		ticks = hw_counter(A.name, "sq_ring_polls");
	} while (ticks != before && now_ms() < end);
	if (ticks != before)
		note("%d ticks of the timer since the last look\n", (int)(ticks - before));
	return ticks == before;
}

static void small_queues(void)
{
	bool good = true;
	int depth, i, j;

	for (depth = 1; depth <= 9; depth++) {
		pair_open_as(depth);
		/* in a row, without waiting: the kernel expects more of the kind */
		for (i = 0; i < 50 && good; i++) {
			for (j = 0; j < depth; j++) {
				put_send(&A, j);
				publish(&A);
			}
			for (j = 0; j < depth && good; j++)
				good = expect_wc(&A, j, IBV_WC_SUCCESS, NONE);
		}
		good = good && nobody_looks();
		if (!good)
			note("with a send queue of %d\n", depth);
		pair_close();
	}
	outcome(good, "idle: send queues of 1 to 9 requests");
}

/* More requests than the queue may have under way, and none of them is answered. */
static void beyond_depth(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	int i;

	timeout = 23;
	pair_open_as(8);
	timeout = 14;
	must(!ibv_modify_qp(B.qp, &attr, IBV_QP_STATE), "to ERR");
	/* the kernel has copied the first eight, so the ring has room */
	for (i = 0; i < 16; i++) {
		put_send(&A, i);
		publish(&A);
	}
	outcome(nobody_looks() && state_is(&A, IBV_QPS_RTS),
		"idle: requests beyond the queue's depth, and no answer");
	pair_close();
}

/* A UD QP takes a bad request for the end of its send queue only. */
static void index_in_sqe(void)
{
	struct ibv_sge sge = { (uintptr_t)A.buf, 64, 0xdead };
	struct ibv_ah_attr to = {
		.is_global = 1, .port_num = 1,
		.grh = { .dgid = B.gid, .sgid_index = A.gid_index, .hop_limit = 64 },
	};
	struct ibv_send_wr wr = {
		.wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.ud = { .remote_qpn = 1234, .remote_qkey = 1 },
	}, *bad;
	bool good;

	qp_open_as(&A, IBV_QPT_UD, DEPTH);
	ud_to_rts(A.qp, 1);
	wr.wr.ud.ah = ibv_create_ah(A.pd, &to);
	must(wr.wr.ud.ah, "create_ah");
	must(!ibv_post_send(A.qp, &wr, &bad), "post_send");
	good = expect_wc(&A, 1, IBV_WC_LOC_PROT_ERR, NONE) && state_is(&A, IBV_QPS_SQE);
	A.rq->sq.prod += 1000;
	publish(&A);
	good = good && expect_event(&A, IBV_EVENT_QP_FATAL) && state_is(&A, IBV_QPS_ERR);
	outcome(nobody_looks() && good, "idle: an impossible index in SQE");
	ibv_destroy_ah(wr.wr.ud.ah);
	qp_close(&A);
}

static void run_idle(void)
{
	uint64_t ticks = hw_counter(A.name, "sq_ring_polls");

	small_queues();
	outcome(hw_counter(A.name, "sq_ring_polls") != ticks, "idle: it did look before");
	beyond_depth();
	index_in_sqe();
}

/* --- link and module go away --------------------------------------------------------------- */

#define MANY	8192

/* A QP with more receives than are flushed in one go. */
static struct ibv_cq *deep_open(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_cq *cq = ibv_create_cq(A.ctx, MANY, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {
		.cap = { 1, MANY, 1, 1, 0 }, .qp_type = IBV_QPT_RC,
		.send_cq = cq, .recv_cq = cq,
	};
	struct ibv_qp *qp = cq ? ibv_create_qp(A.pd, &init) : NULL;
	struct ibv_recv_wr wr = {}, *bad;
	int i;

	must(qp, "a deep QP");
	must(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			    IBV_QP_ACCESS_FLAGS), "modify_qp");
	for (i = 0; i < MANY; i++)
		must(!ibv_post_recv(qp, &wr, &bad), "post_recv");
	return cq;
}

/* How many of them were. */
static int deep_flushed(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int n = 0;

	while (ibv_poll_cq(cq, 1, &wc) == 1)
		n += wc.status == IBV_WC_WR_FLUSH_ERR;
	return n;
}

static void run_hold(void)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;
	struct ibv_recv_wr rwr = { .wr_id = 7 }, *rbad;
	struct rove_ring *sq, *rq, *cq;
	struct ibv_cq *deep_cq;
	char line[16];
	bool good;
	int i;

	pair_open();
	deep_cq = deep_open();
	for (i = 0; i < 5; i++)
		put_recv(&A, i);
	publish(&A);
	sq = &A.rq->sq.ring;
	rq = &A.rq->rq.ring;
	cq = &to_rove_cq(A.cq)->ring;
	printf("# ready\n");
	fflush(stdout);
	must(fgets(line, sizeof(line), stdin), "stdin");

	for (i = 0, good = true; i < 5; i++)
		good = good && expect_wc(&A, i, IBV_WC_WR_FLUSH_ERR, NONE);
	outcome(good, "flush completions can be read when all is gone");
	i = deep_flushed(deep_cq);
	if (i != MANY)
		note("%d of %d\n", i, MANY);
	outcome(i == MANY, "and there are as many as there were receives");
	outcome(expect_event(&A, IBV_EVENT_DEVICE_FATAL), "the device is reported dead");
	outcome(readable((char *)sq->hdr, sq->map_size) &&
		readable((char *)rq->hdr, rq->map_size) &&
		readable((char *)cq->hdr, cq->map_size), "rings are readable");
	memset(cq->slots, 0xff, cq->map_size - ROVE_RING_SLOTS);
	memset(sq->slots, 0xff, sq->map_size - ROVE_RING_SLOTS);
	outcome(mprotect(rq->hdr, rq->map_size, PROT_READ) == 0 &&
		mprotect(rq->hdr, rq->map_size, PROT_READ | PROT_WRITE) == 0,
		"and writable, and may change rights");
	fflush(stdout);
	if (!fork())
		_exit(!readable((char *)sq->hdr, sq->map_size));
	wait(&i);
	outcome(!i, "a child may have them");
	i = ibv_post_send(A.qp, &wr, &bad);
	note("post_send: %d, post_recv: %d\n", i, ibv_post_recv(A.qp, &rwr, &rbad));
	outcome(map_fails(A.ctx->cmd_fd, sq->map_size, PROT_READ, MAP_SHARED, 0, EIO),
		"mmap of a dead device fails");
	/* may fail, must not hang or crash */
	i = ibv_destroy_qp(A.qp) | ibv_destroy_cq(A.cq) << 8;
	note("destroy: %#x\n", i);
	outcome(true, "destroyed");
}

/* --- somebody to be attacked ------------------------------------------------------------------ */

#define IDLE	16	/* connections of which nothing is expected */
#define SHARED	96	/* queue pairs with one SRQ, each of them to be ended */
#define WAITING	31	/* queue pairs of a kind that wait for an answer, likewise */
#define BLOCK	8192	/* around what each of them waits for */
#define GUARD	0xc5	/* what nothing that is sent may change */
/* Of the buffers, between where the traffic goes: wrong WRITEs name the first. */
#define GUARDED	8192
#define GUARDED_LEN (32768 - GUARDED)

static bool one_round(uint32_t round)
{
	static const uint8_t ops[] = {
		ROVE_WR_SEND, ROVE_WR_RDMA_WRITE, ROVE_WR_RDMA_READ,
	};
	struct end *e = round & 1 ? &A : &B, *peer = e == &A ? &B : &A;
	uint8_t op = ops[round % 3];
	struct end *from = op == ROVE_WR_RDMA_READ ? peer : e;
	struct end *to = from == e ? peer : e;
	struct rove_send_wqe *w;
	struct rove_recv_wqe *r;
	uint32_t i, len = 5000;

	for (i = 0; i < len / 4; i++)
		((uint32_t *)from->buf)[i] = i * 77 + round;
	memset(to->buf + 32768, 0, len);
	if (op == ROVE_WR_SEND) {
		r = put_recv(peer, round);
		r->sge[0].addr = (uintptr_t)to->buf + 32768;
		r->sge[0].length = len;
		publish(peer);
	}
	w = put_send(e, round);
	w->opcode = op;
	w->sge[0].length = len;
	w->remote_addr = (uintptr_t)peer->buf;
	if (op == ROVE_WR_RDMA_READ)
		w->sge[0].addr += 32768;
	else
		w->remote_addr += 32768;
	publish(e);
	return (op != ROVE_WR_SEND ||
		expect_wc(peer, round, IBV_WC_SUCCESS, NONE)) &&
	       expect_wc(e, round, IBV_WC_SUCCESS, NONE) &&
	       !memcmp(from->buf, to->buf + 32768, len);
}

/* Targets of the other services on B; what a plain program would make. */
static void other_services(void)
{
	struct ibv_cq *cq = ibv_create_cq(B.ctx, 64, NULL, NULL, 0);
	struct ibv_srq_init_attr srq_init = { .attr = { 64, 1, 0 } };
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .cap = { 16, 64, 1, 1, 0 },
	};
	struct ibv_sge sge = { (uintptr_t)B.buf + 49152, 2048, B.mr->lkey };
	struct ibv_recv_wr recv = { .sg_list = &sge, .num_sge = 1 }, *bad;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 0x11223344,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC,
	};
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = 0xabcd,
		.max_dest_rd_atomic = 4, .min_rnr_timer = 1,
		.ah_attr = { .is_global = 1, .port_num = 1,
			     .grh = { .dgid = A.gid, .sgid_index = B.gid_index,
				      .hop_limit = 64 } },
	};
	struct ibv_xrcd_init_attr domain = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1, .oflags = O_CREAT,
	};
	struct ibv_srq_init_attr_ex xrc_srq_init = {
		.attr = { 64, 1, 0 }, .srq_type = IBV_SRQT_XRC, .pd = B.pd, .cq = cq,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
	};
	struct ibv_qp_init_attr_ex xrc_init = {
		.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD,
	};
	struct ibv_qp *ud, *uc, *shared[2 * SHARED], *unready[2];
	struct ibv_srq *xrc_srq;
	uint32_t xrc_srqn;
	int i;

	must(cq, "create_cq");
	init.qp_type = IBV_QPT_UD;
	ud = ibv_create_qp(B.pd, &init);
	init.qp_type = IBV_QPT_UC;
	uc = ibv_create_qp(B.pd, &init);
	init.qp_type = IBV_QPT_RC;
	init.srq = ibv_create_srq(B.pd, &srq_init);
	must(init.srq, "create_srq");
	xrc_init.xrcd = ibv_open_xrcd(B.ctx, &domain);
	must(xrc_init.xrcd, "open_xrcd");
	xrc_srq_init.xrcd = xrc_init.xrcd;
	xrc_srq = ibv_create_srq_ex(B.ctx, &xrc_srq_init);
	must(xrc_srq && !ibv_get_srq_num(xrc_srq, &xrc_srqn), "create_srq_ex");
	for (i = 0; i < 2 * SHARED; i++) {
		shared[i] = i < SHARED ? ibv_create_qp(B.pd, &init) :
					 ibv_create_qp_ex(B.ctx, &xrc_init);
		must(shared[i], "create_qp");
	}
	for (i = 0; i < 2; i++) {
		unready[i] = ibv_create_qp(B.pd, &init);
		must(unready[i], "create_qp");
		printf("# service unready %u\n", unready[i]->qp_num);
	}
	must(!ibv_modify_qp(unready[1], &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			    IBV_QP_ACCESS_FLAGS), "RC to INIT");
	must(ud && uc, "create_qp");
	must(!ibv_modify_qp(ud, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			    IBV_QP_QKEY) &&
	     !ibv_modify_qp(ud, &rtr, IBV_QP_STATE), "UD to RTR");
	must(!ibv_modify_qp(uc, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			    IBV_QP_ACCESS_FLAGS) &&
	     !ibv_modify_qp(uc, &rtr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN), "UC to RTR");
	for (i = 0; i < 2 * SHARED; i++)
		must(!ibv_modify_qp(shared[i], &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
				    IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) &&
		     !ibv_modify_qp(shared[i], &rtr, IBV_QP_STATE | IBV_QP_AV |
				    IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
		     "RC with SRQ, XRC target to RTR");
	for (i = 0; i < 32; i++)
		must(!ibv_post_recv(ud, &recv, &bad) && !ibv_post_recv(uc, &recv, &bad) &&
		     !ibv_post_srq_recv(init.srq, &recv, &bad) &&
		     !ibv_post_srq_recv(xrc_srq, &recv, &bad), "post_recv");
	printf("# service ud %u\n# service uc %u\n", ud->qp_num, uc->qp_num);
	printf("# service xrc_srq %u\n", xrc_srqn);
	for (i = 0; i < 2 * SHARED; i++)
		printf("# service %s %u\n", i < SHARED ? "srq" : "xrc", shared[i]->qp_num);
}

/* Those that wait on B, and what for. */
static const struct {
	const char *name;
	enum ibv_qp_type type;
	enum ibv_wr_opcode op;
	uint32_t len;
} waits[] = {
	{ "READ", IBV_QPT_RC, IBV_WR_RDMA_READ, 3000 },
	{ "atomic", IBV_QPT_RC, IBV_WR_ATOMIC_FETCH_AND_ADD, 8 },
	{ "SEND", IBV_QPT_RC, IBV_WR_SEND, 100 },
	{ "XRC-READ", IBV_QPT_XRC_SEND, IBV_WR_RDMA_READ, 3000 },
};

#define WAITS	(WAITING * (int)(sizeof(waits) / sizeof(*waits)))

static uint8_t *waited;		/* a block for each, the place for the answer in its middle */
static struct ibv_cq *waited_cq;

/* One of B's, whose peer would be on A, and never acknowledges: without an end to the waiting. */
static void to_rts_alone(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = attr_to(&A.gid, B.gid_index, 0xabcd);

	attr.timeout = 0;
	must(!to_rts_as(qp, attr), "to RTS");
}

/*
 * A program that answers each message at once: it spins, until for two seconds
 * none has come.
 */
static void *echo(void *arg)
{
	struct ibv_qp *qp = arg;
	struct ibv_sge sge = { (uintptr_t)B.buf + 49152, 64, B.mr->lkey };
	struct ibv_recv_wr *rbad, recv = { .sg_list = &sge, .num_sge = 1 };
	struct ibv_send_wr *sbad, send = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND };
	struct ibv_cq *cq = qp->recv_cq;
	struct ibv_wc wc;
	void *unused;

	for (;;) {
		uint64_t end = now_ms() + 2000;

		while (now_ms() < end) {
			if (ibv_poll_cq(cq, 1, &wc) < 1)
				continue;
			if (wc.status || ibv_post_send(qp, &send, &sbad) ||
			    ibv_post_recv(qp, &recv, &rbad))
				return NULL;
			end = now_ms() + 2000;
		}
		if (ibv_req_notify_cq(cq, 0) || ibv_get_cq_event(cq->channel, &cq, &unused))
			return NULL;
		ibv_ack_cq_events(cq, 1);
	}
}

static void echo_start(void)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(B.ctx);
	struct ibv_sge sge = { (uintptr_t)B.buf + 49152, 64, B.mr->lkey };
	struct ibv_recv_wr *bad, recv = { .sg_list = &sge, .num_sge = 1 };
	struct ibv_qp_init_attr init = {
		.cap = { 64, 64, 1, 1, 0 }, .qp_type = IBV_QPT_RC,
	};
	pthread_t thread;
	struct ibv_qp *qp;
	int i;

	must(channel, "create_comp_channel");
	init.recv_cq = ibv_create_cq(B.ctx, 64, NULL, channel, 0);
	init.send_cq = ibv_create_cq(B.ctx, 64, NULL, NULL, 0);
	qp = init.recv_cq && init.send_cq ? ibv_create_qp(B.pd, &init) : NULL;
	must(qp, "create_qp");
	to_rts_alone(qp);
	for (i = 0; i < 32; i++)
		must(!ibv_post_recv(qp, &recv, &bad), "post_recv");
	must(!pthread_create(&thread, NULL, echo, qp), "a thread");
	printf("# service echo %u\n", qp->qp_num);
}

/* Requests that nobody answers but the attacker. */
static void wait_for_answers(void)
{
	struct ibv_qp_init_attr_ex init = {
		.cap = { 1, 0, 1, 0, 0 }, .comp_mask = IBV_QP_INIT_ATTR_PD, .pd = B.pd,
	};
	struct ibv_mr *mr;
	int i;

	waited_cq = ibv_create_cq(B.ctx, 2 * WAITS, NULL, NULL, 0);
	waited = mmap(NULL, WAITS * BLOCK, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(waited_cq && waited != MAP_FAILED, "memory for answers");
	memset(waited, GUARD, WAITS * BLOCK);
	mr = ibv_reg_mr(B.pd, waited, WAITS * BLOCK, IBV_ACCESS_LOCAL_WRITE);
	must(mr, "reg_mr");
	init.send_cq = waited_cq;
	init.recv_cq = waited_cq;
	for (i = 0; i < WAITS; i++) {
		struct ibv_sge sge = {
			(uintptr_t)waited + i * BLOCK + BLOCK / 4, waits[i / WAITING].len, mr->lkey
		};
		struct ibv_send_wr *bad, wr = {
			.wr_id = i, .sg_list = &sge, .num_sge = 1, .opcode = waits[i / WAITING].op,
			.send_flags = IBV_SEND_SIGNALED,
		};
		struct ibv_qp *qp;

		init.qp_type = waits[i / WAITING].type;
		qp = ibv_create_qp_ex(B.ctx, &init);
		must(qp, "create_qp");
		to_rts_alone(qp);
		must(!ibv_post_send(qp, &wr, &bad), "post_send");
		printf("# waiting %s %u\n", waits[i / WAITING].name, qp->qp_num);
	}
}

static bool is_guard(const void *at, size_t len)
{
	const uint8_t *p = at;
	size_t i;

	for (i = 0; i < len && p[i] == GUARD; i++)
		;
	if (i < len)
		note("byte %zu of %zu is %#x\n", i, len, p[i]);
	return i == len;
}

/* Whatever has answered them: nothing else was written, and each is complete once at most. */
static void answers_kept_their_place(void)
{
	bool once = true, place = true, seen[WAITS] = {};
	struct ibv_wc wc;
	int i, n = 0;

	while (ibv_poll_cq(waited_cq, 1, &wc) == 1 && wc.wr_id < (unsigned int)WAITS) {
		once &= !seen[wc.wr_id];
		seen[wc.wr_id] = true;
		n++;
	}
	for (i = 0; i < WAITS; i++) {
		uint8_t *block = waited + i * BLOCK;
		uint32_t len = waits[i / WAITING].op == IBV_WR_SEND ? 0 : waits[i / WAITING].len;

		place &= is_guard(block, BLOCK / 4) &&
			 is_guard(block + BLOCK / 4 + len, BLOCK - BLOCK / 4 - len);
	}
	note("%d of %d that waited have been answered\n", n, WAITS);
	outcome(once, "who waited for an answer has one completion at most");
	outcome(place, "and nothing but the place for it was written");
}

static void run_traffic(const char *path)
{
	struct pollfd in = { .fd = 0, .events = POLLIN | POLLHUP };
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644), i;
	uint64_t round;

	must(fd >= 0, path);
	for (i = 0; i < IDLE; i++) {
		pair_open();
		printf("# idle %u %u\n", A.qp->qp_num, B.qp->qp_num);
	}
	other_services();
	wait_for_answers();
	echo_start();
	memset(A.buf + GUARDED, GUARD, GUARDED_LEN);
	memset(B.buf + GUARDED, GUARD, GUARDED_LEN);
	pair_open();
	printf("# ready %u %u\n", A.qp->qp_num, B.qp->qp_num);
	printf("# rkey %u %llu\n", B.mr->rkey, (unsigned long long)(uintptr_t)B.buf + GUARDED);
	fflush(stdout);
	for (round = 1; !poll(&in, 1, 1); round++) {
		if (!one_round(round)) {
			outcome(false, "checked traffic");
			exit(1);
		}
		if (pwrite(fd, &round, sizeof(round), 0) != sizeof(round))
			exit(1);
	}
	note("%d rounds\n", (int)round);
	outcome(state_is(&A, IBV_QPS_RTS) && state_is(&B, IBV_QPS_RTS),
		"checked traffic to the end");
	outcome(is_guard(A.buf + GUARDED, GUARDED_LEN) && is_guard(B.buf + GUARDED, GUARDED_LEN),
		"what was refused wrote nothing");
	answers_kept_their_place();
}

int main(int argc, char **argv)
{
	const char *mode;
	int seconds;

	if (argc < 6) {
		fprintf(stderr, "usage: %s DEV GID DEV GID MODE [SEED] [SECONDS]\n",
			*argv);
		return 2;
	}
	page = sysconf(_SC_PAGESIZE);
	A.name = argv[1];
	A.gid_index = atoi(argv[2]);
	B.name = argv[3];
	B.gid_index = atoi(argv[4]);
	mode = argv[5];
	rnd_state = argc > 6 ? strtoull(argv[6], NULL, 0) : now_ms();
	rnd_state += !rnd_state;
	seconds = argc > 7 ? atoi(argv[7]) : 10;
	setvbuf(stdout, NULL, _IOLBF, 0);
	note("%s, user %d, seed %#llx\n", mode, (int)getuid(),
	     (unsigned long long)rnd_state);
	if (strcmp(mode, "hold") && strcmp(mode, "traffic") && strcmp(mode, "idle"))
		victim_start();
	end_open(&A);
	end_open(&B);
	if (!strcmp(mode, "cases"))
		run_cases();
	else if (!strcmp(mode, "scribble"))
		run_scribble(seconds);
	else if (!strcmp(mode, "mmap"))
		run_mmap(seconds);
	else if (!strcmp(mode, "idle"))
		run_idle();
	else if (!strcmp(mode, "traffic"))
		run_traffic(argc > 6 ? argv[6] : "/dev/null");
	else
		run_hold();
	if (victim)
		victim_end();
	printf("1..%d\n", count);
	return failed > 0;
}
