// SPDX-License-Identifier: GPL-2.0
/*
 * srq.c - shared receive queues: what no program of the distribution looks at
 *
 *	srq DEV-A GID-INDEX-A DEV-B GID-INDEX-B
 *
 * Several QPs on A share a queue; a QP on B sends to each.  Plain libibverbs,
 * but for the hostile cases, which find the ring in the provider's structures
 * (userspace-provider/rove.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "points.h"
#include "rove.h"

#define QPS	4
#define DEPTH	64
#define SIZE	256		/* bytes of a receive */
#define SLOTS	1024		/* receives that have memory of their own */
#define WAIT_MS	10000		/* for what must come */
#define QUIET_MS 300		/* for what must not */

struct end {
	struct ibv_context *ctx;
	struct ibv_pd *pd, *pd2;
	struct ibv_mr *mr, *mr2;
	struct ibv_cq *cq;
	struct ibv_qp *qp[QPS];
	char *buf;
	union ibv_gid gid;
	int gid_index;
};

static struct end a, b;
static struct ibv_srq *srq;

/* ---- a network of QPs ---- */

static void open_end(struct end *e, const char *name, const char *gid)
{
	e->ctx = open_device(name);
	fcntl(e->ctx->async_fd, F_SETFL, O_NONBLOCK);
	e->gid_index = atoi(gid);
	if (ibv_query_gid(e->ctx, 1, e->gid_index, &e->gid))
		die("query_gid");
	e->pd = ibv_alloc_pd(e->ctx);
	e->pd2 = ibv_alloc_pd(e->ctx);
	e->buf = calloc(SLOTS, SIZE);
	e->mr = ibv_reg_mr(e->pd, e->buf, SLOTS * SIZE, IBV_ACCESS_LOCAL_WRITE);
	e->mr2 = ibv_reg_mr(e->pd2, e->buf, SLOTS * SIZE, IBV_ACCESS_LOCAL_WRITE);
	e->cq = ibv_create_cq(e->ctx, 4096, NULL, NULL, 0);
	if (!e->mr || !e->mr2 || !e->cq)
		die("set-up");
}

static struct ibv_qp *create_qp(struct end *e, struct ibv_srq *use)
{
	struct ibv_qp_init_attr init = {
		.send_cq = e->cq,
		.recv_cq = e->cq,
		.srq = use,
		/* of receives nothing is looked at that has an SRQ */
		.cap = { DEPTH, use ? UINT32_MAX : DEPTH, 1, use ? UINT32_MAX : 1, 0 },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	struct ibv_qp *qp = ibv_create_qp(e->pd, &init);

	if (!qp)
		die("create_qp");
	return qp;
}

static void connect_qp(struct end *e, struct ibv_qp *qp, struct end *peer,
		       struct ibv_qp *peer_qp, int rnr_retry)
{
	struct ibv_qp_attr attr = attr_to(&peer->gid, e->gid_index, peer_qp->qp_num);

	attr.path_mtu = IBV_MTU_256;
	attr.min_rnr_timer = 1;
	attr.rnr_retry = rnr_retry;
	must(!to_rts_as(qp, attr), "to RTS");
}

static struct ibv_srq *create_srq(struct ibv_pd *pd, uint32_t wr, uint32_t sge)
{
	struct ibv_srq_init_attr init = { .attr = { wr, sge, 0 } };

	return ibv_create_srq(pd, &init);
}

/* Pair @i: A's QP takes from @use. */
static void pair(int i, struct ibv_srq *use, int rnr_retry)
{
	a.qp[i] = create_qp(&a, use);
	b.qp[i] = create_qp(&b, NULL);
	connect_qp(&a, a.qp[i], &b, b.qp[i], 7);
	connect_qp(&b, b.qp[i], &a, a.qp[i], rnr_retry);
}

static void unpair(int i)
{
	if (a.qp[i] && (ibv_destroy_qp(a.qp[i]) || ibv_destroy_qp(b.qp[i])))
		die("destroy_qp");
	a.qp[i] = NULL;
	b.qp[i] = NULL;
}

static bool event(enum ibv_event_type type, const void *element, int ms);

/* Leave nothing behind, whatever a case has left undone. */
static void clear(void)
{
	struct ibv_wc wc;
	int i;

	for (i = 0; i < QPS; i++)
		unpair(i);
	if (srq && ibv_destroy_srq(srq))
		die("destroy_srq");
	srq = NULL;
	while (ibv_poll_cq(a.cq, 1, &wc) > 0 || ibv_poll_cq(b.cq, 1, &wc) > 0)
		;
	while (event(-1, NULL, 0))
		;
}

static void run(const char *name, void (*fn)(void))
{
	good = true;
	fn();
	clear();
	point(name);
}

/* ---- traffic and events ---- */

static int post_in(struct ibv_srq *to, uint32_t slot, struct ibv_mr *mr)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)a.buf + slot * SIZE,
		.length = SIZE,
		.lkey = mr->lkey,
	};
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	memset(a.buf + slot * SIZE, 0, SIZE);
	return ibv_post_srq_recv(to, &wr, &bad);
}

/* Receives @from to, not including, @to, each with its number as wr_id. */
static int post(uint32_t from, uint32_t to)
{
	int ret = 0;

	for (; from < to && !ret; from++)
		ret = post_in(srq, from, a.mr);
	return ret;
}

static int post_send(int i, uint8_t value)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)b.buf + value * SIZE,
		.length = SIZE,
		.lkey = b.mr->lkey,
	};
	struct ibv_send_wr wr = {
		.wr_id = value,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
	};
	struct ibv_send_wr *bad;

	memset(b.buf + value * SIZE, value, SIZE);
	return ibv_post_send(b.qp[i], &wr, &bad);
}

static bool poll_one(struct end *e, struct ibv_wc *wc, int ms)
{
	for (; ibv_poll_cq(e->cq, 1, wc) != 1; ms--) {
		if (ms <= 0)
			return false;
		usleep(1000);
	}
	return true;
}

/* A message over pair @i goes into receive @slot. */
static bool deliver(int i, uint32_t slot)
{
	uint8_t value = 1 + slot % 255;
	struct ibv_wc wc;
	int n;

	if (post_send(i, value) || !poll_one(&b, &wc, WAIT_MS) || wc.status ||
	    !poll_one(&a, &wc, WAIT_MS) || wc.status || wc.wr_id != slot ||
	    wc.byte_len != SIZE || wc.qp_num != a.qp[i]->qp_num) {
		printf("# message %u over pair %d: status %d, wr_id %lu\n", slot,
		       i, wc.status, (unsigned long)wc.wr_id);
		return false;
	}
	for (n = 0; n < SIZE; n++)
		if (a.buf[slot * SIZE + n] != (char)value)
			return false;
	return true;
}

/* The next event of A is this one (-1: any). */
static bool event(enum ibv_event_type type, const void *element, int ms)
{
	struct pollfd fd = { .fd = a.ctx->async_fd, .events = POLLIN };
	struct ibv_async_event ev;
	bool is_it;

	if (poll(&fd, 1, ms) != 1 || ibv_get_async_event(a.ctx, &ev))
		return false;
	is_it = (int)type == -1 || (ev.event_type == type &&
				    ev.element.qp == element);
	if (!is_it)
		printf("# event: %s\n", ibv_event_type_str(ev.event_type));
	ibv_ack_async_event(&ev);
	return is_it;
}

static bool limit_event(int ms)
{
	return event(IBV_EVENT_SRQ_LIMIT_REACHED, srq, ms);
}

static int modify(uint32_t max_wr, uint32_t limit, int mask)
{
	struct ibv_srq_attr attr = { .max_wr = max_wr, .srq_limit = limit };

	return ibv_modify_srq(srq, &attr, mask);
}

static struct ibv_srq_attr query(void)
{
	struct ibv_srq_attr attr;

	if (ibv_query_srq(srq, &attr))
		die("query_srq");
	return attr;
}

/* ---- cases ---- */

static bool refused(uint32_t wr, uint32_t sge)
{
	struct ibv_srq *s;

	errno = 0;
	s = create_srq(a.pd, wr, sge);
	if (!s)
		return errno == EINVAL;
	ibv_destroy_srq(s);
	return false;
}

static void sizes(void)
{
	struct ibv_device_attr dev;

	CHECK(!ibv_query_device(a.ctx, &dev));
	CHECK(dev.max_srq > 0 && dev.max_srq_wr > 0 && dev.max_srq_sge > 0);
	CHECK(dev.device_cap_flags & IBV_DEVICE_SRQ_RESIZE);
	CHECK(refused(0, 1));
	CHECK(refused(dev.max_srq_wr + 1, 1));
	CHECK(refused(UINT32_MAX, 1));
	CHECK(refused(1, dev.max_srq_sge + 1));
	CHECK(refused(1, UINT32_MAX));
	srq = create_srq(a.pd, dev.max_srq_wr, 1);
	CHECK(srq);
	CHECK(query().max_wr == (uint32_t)dev.max_srq_wr);
	CHECK(query().max_sge == 1 && query().srq_limit == 0);
	CHECK(!ibv_destroy_srq(srq));
	srq = create_srq(a.pd, 1, dev.max_srq_sge);
	CHECK(srq);
	CHECK(query().max_sge == (uint32_t)dev.max_srq_sge);
}

static void full(void)
{
	struct ibv_recv_wr wr = { .num_sge = 2 }, *bad = NULL;
	struct ibv_sge sge[2] = {};
	uint32_t n;

	srq = create_srq(a.pd, 10, 1);
	CHECK(srq);
	n = query().max_wr;
	CHECK(n >= 10 && !post(0, n));
	CHECK(post(n, n + 1) == ENOMEM);
	pair(0, srq, 7);
	CHECK(deliver(0, 0));
	CHECK(!post(n, n + 1));
	CHECK(post(n + 1, n + 2) == ENOMEM);
	CHECK(deliver(0, 1));
	wr.sg_list = sge;
	CHECK(ibv_post_srq_recv(srq, &wr, &bad) == EINVAL && bad == &wr);
	bad = NULL;
	wr.num_sge = 1;
	CHECK(ibv_post_recv(a.qp[0], &wr, &bad) == EINVAL && bad == &wr);
}

static void busy(void)
{
	srq = create_srq(a.pd, DEPTH, 1);
	CHECK(srq);
	pair(0, srq, 7);
	CHECK(ibv_destroy_srq(srq) == EBUSY);
	CHECK(!post(0, 1));
	CHECK(deliver(0, 0));
}

static void several(void)
{
	uint32_t slot;
	int i;

	srq = create_srq(a.pd, DEPTH, 1);
	CHECK(srq);
	for (i = 0; i < QPS; i++)
		pair(i, srq, 7);
	for (slot = 0; slot < 512; slot += 32) {
		CHECK(!post(slot, slot + 32));
		for (i = 0; i < 32; i++)
			CHECK(deliver((i * 7 + i / 3) % QPS, slot + i));
	}
}

static void limit(void)
{
	srq = create_srq(a.pd, 16, 1);
	CHECK(srq);
	pair(0, srq, 7);
	CHECK(!post(0, 8));
	CHECK(modify(0, query().max_wr + 1, IBV_SRQ_LIMIT) == EINVAL);
	CHECK(!modify(0, 5, IBV_SRQ_LIMIT));
	CHECK(query().srq_limit == 5);
	CHECK(deliver(0, 0) && deliver(0, 1) && deliver(0, 2));
	CHECK(!limit_event(QUIET_MS));		/* five are left */
	CHECK(deliver(0, 3));
	CHECK(limit_event(WAIT_MS));
	CHECK(query().srq_limit == 0);
	CHECK(deliver(0, 4) && deliver(0, 5));
	CHECK(!limit_event(QUIET_MS));		/* once, until armed again */
	CHECK(!modify(0, 2, IBV_SRQ_LIMIT));
	CHECK(!limit_event(QUIET_MS));
	CHECK(deliver(0, 6));
	CHECK(limit_event(WAIT_MS));
	CHECK(!modify(0, 2, IBV_SRQ_LIMIT));	/* it is below already */
	CHECK(limit_event(WAIT_MS));
	CHECK(!post(8, 12) && !modify(0, 3, IBV_SRQ_LIMIT));
	CHECK(!modify(0, 0, IBV_SRQ_LIMIT));	/* not wanted any more */
	CHECK(deliver(0, 7) && deliver(0, 8) && deliver(0, 9) && deliver(0, 10));
	CHECK(!limit_event(QUIET_MS));
}

static void resize(void)
{
	uint32_t n;

	srq = create_srq(a.pd, 8, 1);
	CHECK(srq);
	pair(0, srq, 7);
	pair(1, srq, 7);
	/* the ring's indices are not at its beginning */
	CHECK(!post(0, 5));
	for (n = 0; n < 5; n++)
		CHECK(deliver(n & 1, n));
	CHECK(!post(5, 13) && post(13, 14) == ENOMEM);
	CHECK(!modify(100, 0, IBV_SRQ_MAX_WR));
	CHECK(query().max_wr >= 100);
	CHECK(!post(13, 100));
	for (n = 5; n < 90; n++)
		CHECK(deliver(n & 1, n));
	CHECK(modify(0, 0, IBV_SRQ_MAX_WR) == EINVAL);
	CHECK(modify(UINT32_MAX, 0, IBV_SRQ_MAX_WR) == EINVAL);
	CHECK(modify(8, 0, IBV_SRQ_MAX_WR) == EINVAL);	/* ten are posted */
	CHECK(modify(16, 17, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT) == EINVAL);
	CHECK(query().max_wr >= 100 && query().srq_limit == 0);
	CHECK(!modify(16, 3, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT));
	CHECK(query().max_wr == 16 && query().srq_limit == 3);
	CHECK(modify(2, 0, IBV_SRQ_MAX_WR) == EINVAL);
	CHECK(!post(100, 106) && post(106, 107) == ENOMEM);
	for (n = 90; n < 103; n++)
		CHECK(deliver(n & 1, n));
	CHECK(!limit_event(QUIET_MS));
	CHECK(deliver(0, 103));
	CHECK(limit_event(WAIT_MS));
}

static void *resizer(void *arg)
{
	volatile bool *stop = arg;
	uint32_t n = 0;

	/* With a pause, lest it hold the lock all the time. */
	for (; !*stop; usleep(500))
		if (modify(n++ & 1 ? 1024 : 4096, 0, IBV_SRQ_MAX_WR))
			die("resize under traffic");
	return NULL;
}

static void resize_busy(void)
{
	volatile bool stop = false;
	uint32_t slot = 0, got = 0, sent = 0;
	bool there[SLOTS] = {};
	struct ibv_wc wc;
	pthread_t th;
	int i, n;

	srq = create_srq(a.pd, 1024, 1);
	CHECK(srq);
	for (i = 0; i < QPS; i++)
		pair(i, srq, 7);
	pthread_create(&th, NULL, resizer, (void *)&stop);
	for (n = 0; n < 4000 && good; ) {
		/* more than are moved in one go */
		while (slot - got < 900 && !there[slot % SLOTS] &&
		       !post_in(srq, slot % SLOTS, a.mr))
			there[slot++ % SLOTS] = true;
		for (; sent - n < 16 && sent < 4000; sent++)
			if (post_send(sent % QPS, sent % 64))
				good = false;
		if (ibv_poll_cq(b.cq, 1, &wc) == 1 && wc.status) {
			printf("# send %d: status %u\n", n, wc.status);
			good = false;
		}
		if (!poll_one(&a, &wc, WAIT_MS)) {
			printf("# receive %d of %u sent, %u posted: none\n", n, sent, slot);
			good = false;
			break;
		}
		/*
		 * None is lost, none comes twice.  They are taken in order, but
		 * what one QP has taken may be complete before another's.
		 */
		if (wc.status || wc.wr_id >= SLOTS || !there[wc.wr_id]) {
			printf("# receive %d: status %u, slot %llu\n", n, wc.status,
			       (unsigned long long)wc.wr_id);
			good = false;
			break;
		}
		there[wc.wr_id] = false;
		got++;
		n++;
	}
	stop = true;
	pthread_join(th, NULL);
	CHECK(good && n == 4000);
}

/* MODIFY_SRQ by hand, its answer to be written to @where. */
static int raw_resize(uint32_t max_wr, uint64_t where, bool with_own)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_modify_srq core;
		struct rove_modify_srq own;
	} cmd = {
		.hdr.command = IB_USER_VERBS_CMD_MODIFY_SRQ,
		.core = {
			.srq_handle = srq->handle,
			.attr_mask = IBV_SRQ_MAX_WR,
			.max_wr = max_wr,
		},
		.own.ring_info = where,
	};
	size_t len = with_own ? sizeof(cmd) :
				sizeof(cmd) - sizeof(cmd.own);

	cmd.hdr.in_words = len / 4;
	return write(a.ctx->cmd_fd, &cmd, len) == (ssize_t)len ? 0 : errno;
}

/* Nobody learns of the new ring: the old one stays (hazards 8 and 9). */
static void resize_fault(void)
{
	int i;

	srq = create_srq(a.pd, 16, 1);
	CHECK(srq);
	pair(0, srq, 7);
	CHECK(!post(0, 16));
	for (i = 0; i < 50; i++) {
		CHECK(raw_resize(64, 0, true) == EFAULT);
		CHECK(raw_resize(64, -8ULL, true) == EFAULT);
		CHECK(raw_resize(64, 1, true) == EFAULT);
		CHECK(raw_resize(64, (uintptr_t)&raw_resize, true) == EFAULT);
		CHECK(raw_resize(64, 0, false) == EINVAL);
	}
	CHECK(query().max_wr == 16);
	for (i = 0; i < 16; i++)
		CHECK(deliver(0, i));
}

static void empty(void)
{
	struct ibv_wc wc;

	srq = create_srq(a.pd, 16, 1);
	CHECK(srq);
	pair(0, srq, 1);
	CHECK(!post_send(0, 9));
	CHECK(poll_one(&b, &wc, WAIT_MS));
	CHECK(wc.status == IBV_WC_RNR_RETRY_EXC_ERR);
	/* patient: it waits for the post */
	pair(1, srq, 7);
	CHECK(!post_send(1, 9));
	CHECK(!poll_one(&b, &wc, QUIET_MS));
	CHECK(!post(0, 1));
	CHECK(poll_one(&b, &wc, WAIT_MS) && !wc.status);
	CHECK(poll_one(&a, &wc, WAIT_MS) && !wc.status && wc.wr_id == 0);
}

static int to_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

/* What is posted to the queue is the other QPs'. */
static void flush(void)
{
	struct ibv_wc wc;

	srq = create_srq(a.pd, 16, 1);
	CHECK(srq);
	pair(0, srq, 7);
	pair(1, srq, 7);
	CHECK(!post(0, 8));
	CHECK(deliver(0, 0) && deliver(1, 1));
	CHECK(!to_state(a.qp[0], IBV_QPS_ERR));
	CHECK(event(IBV_EVENT_QP_LAST_WQE_REACHED, a.qp[0], WAIT_MS));
	CHECK(!poll_one(&a, &wc, QUIET_MS));
	CHECK(!to_state(a.qp[0], IBV_QPS_ERR));
	CHECK(!event(-1, NULL, QUIET_MS));	/* once */
	CHECK(deliver(1, 2) && deliver(1, 3));
	unpair(0);
	CHECK(deliver(1, 4));
	/* and again, from RESET on */
	CHECK(!to_state(b.qp[1], IBV_QPS_RESET));
	CHECK(!to_state(a.qp[1], IBV_QPS_ERR));
	CHECK(event(IBV_EVENT_QP_LAST_WQE_REACHED, a.qp[1], WAIT_MS));
	CHECK(!to_state(a.qp[1], IBV_QPS_RESET));
	connect_qp(&a, a.qp[1], &b, b.qp[1], 7);
	connect_qp(&b, b.qp[1], &a, a.qp[1], 7);
	CHECK(deliver(1, 5) && deliver(1, 6) && deliver(1, 7));
}

/* The queue's keys are of its own domain, not of the QP's. */
static void domains(void)
{
	struct ibv_wc wc;

	srq = create_srq(a.pd2, 16, 1);
	CHECK(srq);
	pair(0, srq, 7);
	CHECK(!post_in(srq, 0, a.mr2));
	CHECK(deliver(0, 0));
	CHECK(!post_in(srq, 1, a.mr));
	CHECK(!post_send(0, 1));
	CHECK(poll_one(&a, &wc, WAIT_MS));
	CHECK(wc.status == IBV_WC_LOC_PROT_ERR && wc.wr_id == 1);
	CHECK(poll_one(&b, &wc, WAIT_MS));
	CHECK(wc.status == IBV_WC_REM_OP_ERR);
	CHECK(a.buf[SIZE] == 0);
}

static void extended(void)
{
	struct ibv_srq_init_attr_ex init = {
		.attr = { 20, 2, 0 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_BASIC,
		.pd = a.pd,
	};
	uint32_t num;

	srq = ibv_create_srq_ex(a.ctx, &init);
	CHECK(srq && init.attr.max_wr >= 20 && init.attr.max_sge == 2);
	/* only an XRC SRQ has a number */
	CHECK(ibv_get_srq_num(srq, &num));
	pair(0, srq, 7);
	CHECK(!post(0, 2));
	CHECK(deliver(0, 0) && deliver(0, 1));
	init.srq_type = IBV_SRQT_TM;
	errno = 0;
	CHECK(!ibv_create_srq_ex(a.ctx, &init) && errno == EOPNOTSUPP);
	init.srq_type = IBV_SRQT_BASIC;
	init.comp_mask = IBV_SRQ_INIT_ATTR_TYPE;
	errno = 0;
	CHECK(!ibv_create_srq_ex(a.ctx, &init) && errno == EINVAL);
}

/* ---- hostile programs ---- */

static struct rove_ring *ring_of(struct ibv_srq *s)
{
	return &to_rove_srq(s)->rq.ring;
}

/* An impossible index ends the queue and who takes from it, nobody else. */
static void bad_index(void)
{
	struct ibv_srq *other = create_srq(a.pd, 16, 1);
	struct ibv_wc wc;

	srq = create_srq(a.pd, 16, 1);
	CHECK(srq && other);
	pair(0, srq, 7);
	pair(1, other, 7);
	pair(2, srq, 7);
	CHECK(!post(0, 4) && !post_in(other, 50, a.mr));
	CHECK(deliver(0, 0));
	ring_of(srq)->hdr->prod += 1000;
	CHECK(!post_send(0, 1));
	CHECK(poll_one(&b, &wc, WAIT_MS) && wc.status == IBV_WC_REM_OP_ERR);
	CHECK(event(IBV_EVENT_SRQ_ERR, srq, WAIT_MS));
	CHECK(event(IBV_EVENT_QP_FATAL, a.qp[0], WAIT_MS));
	CHECK(event(IBV_EVENT_QP_LAST_WQE_REACHED, a.qp[0], WAIT_MS));
	/* It stays broken, and is reported once. */
	ring_of(srq)->hdr->prod -= 1000;
	CHECK(!post_send(2, 1));
	CHECK(poll_one(&b, &wc, WAIT_MS) && wc.status == IBV_WC_REM_OP_ERR);
	CHECK(event(IBV_EVENT_QP_FATAL, a.qp[2], WAIT_MS));
	CHECK(event(IBV_EVENT_QP_LAST_WQE_REACHED, a.qp[2], WAIT_MS));
	unpair(0);
	unpair(2);
	CHECK(deliver(1, 50));
	unpair(1);
	CHECK(!ibv_destroy_srq(other));
}

/* A work request with too many SGEs ends the QP that takes it (hazards 1 and 2). */
static void bad_wqe(void)
{
	static const uint32_t nums[] = { 2, 32, 33, 65536, UINT32_MAX };
	struct rove_recv_wqe *wqe;
	struct ibv_wc wc;
	unsigned int i;

	srq = create_srq(a.pd, 8, 1);
	CHECK(srq);
	pair(1, srq, 7);
	for (i = 0; i < sizeof(nums) / sizeof(nums[0]); i++) {
		pair(0, srq, 7);
		wqe = rove_ring_slot(ring_of(srq), to_rove_srq(srq)->rq.prod);
		CHECK(!post(i, i + 1));
		wqe->num_sge = nums[i];
		CHECK(!post_send(0, 1));
		CHECK(poll_one(&a, &wc, WAIT_MS));
		CHECK(wc.status == IBV_WC_LOC_QP_OP_ERR && wc.wr_id == i);
		CHECK(poll_one(&b, &wc, WAIT_MS));
		CHECK(wc.status == IBV_WC_REM_OP_ERR);
		unpair(0);
		CHECK(!post(100, 101));
		CHECK(deliver(1, 100));
	}
}

static void *scribbler(void *arg)
{
	struct rove_ring *ring = ring_of(srq);
	uint32_t *word = (uint32_t *)ring->hdr;
	volatile bool *stop = arg;
	uint64_t x = 88172645463325252ULL;

	while (!*stop) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		/* mostly the slots: a bad index ends it all too soon */
		word[(x >> 8) % 64 < 62 ? 64 + (x >> 20) % (ring->map_size / 4 - 64) :
					  32 + (x >> 20) % 32] = x >> 32;
		if (!(x & 0xffff))
			__atomic_store_n(&ring->hdr->prod, x >> 16,
					 __ATOMIC_RELAXED);
	}
	return NULL;
}

static void scribble(void)
{
	struct ibv_srq *other = create_srq(a.pd, 16, 1);
	struct rove_ring_info info;
	volatile bool stop = false;
	struct ibv_wc wc;
	pthread_t th;
	int round, n;

	CHECK(other);
	pair(1, other, 7);
	for (round = 0; round < 40; round++) {
		srq = create_srq(a.pd, 64, 4);
		CHECK(srq);
		pair(0, srq, 7);
		stop = false;
		pthread_create(&th, NULL, scribbler, (void *)&stop);
		for (n = 0; n < 16; n++) {
			post(n, n + 1);
			post_send(0, n);
			poll_one(&b, &wc, 20);
			poll_one(&a, &wc, 1);
		}
		/* Our mapping stays the old ring's. */
		raw_resize(128, (uintptr_t)&info, true);
		stop = true;
		pthread_join(th, NULL);
		unpair(0);
		CHECK(!ibv_destroy_srq(srq));
		srq = NULL;
		while (ibv_poll_cq(a.cq, 1, &wc) > 0 ||
		       ibv_poll_cq(b.cq, 1, &wc) > 0)
			;
		CHECK(!post_in(other, 50, a.mr));
		CHECK(deliver(1, 50));
	}
	CHECK(!post_in(other, 50, a.mr));
	CHECK(deliver(1, 50));
	unpair(1);
	CHECK(!ibv_destroy_srq(other));
}

int main(int argc, char **argv)
{
	if (argc != 5) {
		fprintf(stderr, "usage: srq DEV-A GID-INDEX-A DEV-B GID-INDEX-B\n");
		return 2;
	}
	open_end(&a, argv[1], argv[2]);
	open_end(&b, argv[3], argv[4]);

	run("sizes that are granted and refused", sizes);
	run("full is full; receives of another kind are refused", full);
	run("it cannot be destroyed while QPs use it", busy);
	run("several QPs take from it in order", several);
	run("limit: one event each time it is armed", limit);
	run("resize: nothing posted is lost", resize);
	run("resize under traffic", resize_busy);
	run("resize: whoever cannot be told keeps the old ring", resize_fault);
	run("empty: RNR NAK", empty);
	run("a QP's end flushes nothing of it; last WQE event", flush);
	run("protection domain is the queue's own", domains);
	run("ibv_create_srq_ex", extended);
	run("hostile: a producer index out of range", bad_index);
	run("hostile: work requests with too many SGEs", bad_wqe);
	run("hostile: scribbled all over", scribble);
	printf("1..%d\n", count);
	return failed != 0;
}
