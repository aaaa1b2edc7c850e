// SPDX-License-Identifier: GPL-2.0
/*
 * verbs.c - what a device tells of itself, and the smaller extended verbs:
 * moderation, clocks, parent and thread domains, what is refused
 *
 *	verbs DEV-A GID-INDEX-A DEV-B GID-INDEX-B
 *
 * Plain libibverbs.  A sends to B.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "points.h"

#define DEPTH	256

struct end {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *chan;
	struct ibv_cq_ex *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	union ibv_gid gid;
	int gid_index;
	char buf[65536];
};

static struct end a, b;

static void run(const char *name, void (*fn)(void))
{
	good = true;
	fn();
	point(name);
}

static void open_end(struct end *e, const char *name, const char *gid)
{
	struct ibv_qp_init_attr init = {
		.cap = { DEPTH, DEPTH, 2, 2, 64 },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	struct ibv_cq_init_attr_ex cq = {
		.cqe = DEPTH,
		.wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
			    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
	};

	e->ctx = open_device(name);
	e->gid_index = atoi(gid);
	if (ibv_query_gid(e->ctx, 1, e->gid_index, &e->gid))
		die("query_gid");
	e->pd = ibv_alloc_pd(e->ctx);
	e->chan = ibv_create_comp_channel(e->ctx);
	if (!e->pd || !e->chan)
		die("alloc_pd");
	e->mr = ibv_reg_mr(e->pd, e->buf, sizeof(e->buf),
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	cq.channel = e->chan;
	e->cq = ibv_create_cq_ex(e->ctx, &cq);
	if (!e->cq)
		die("create_cq_ex");
	init.send_cq = init.recv_cq = ibv_cq_ex_to_cq(e->cq);
	e->qp = ibv_create_qp(e->pd, &init);
	if (!e->qp || !e->mr)
		die("create_qp");
}

static void connect_qp(struct ibv_qp *qp, const struct end *peer, uint32_t qpn, int gid_index)
{
	must(!to_rts_as(qp, attr_to(&peer->gid, gid_index, qpn)), "to RTS");
}

static uint64_t now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

/* Completions taken from the CQ; -1: one of them failed */
static int drain(struct end *e)
{
	struct ibv_wc wc;
	int n = 0;

	while (ibv_poll_cq(ibv_cq_ex_to_cq(e->cq), 1, &wc) > 0) {
		if (wc.status)
			return -1;
		n++;
	}
	return n;
}

static bool wait_for(struct end *e, int n)
{
	uint64_t end = now(CLOCK_MONOTONIC) + 10000000000ULL;
	int more, have = 0;

	while (have < n && now(CLOCK_MONOTONIC) < end) {
		more = drain(e);
		if (more < 0)
			return false;
		have += more;
		if (!more)
			usleep(50);
	}
	return have == n;
}

/* One message; it has arrived, and its completion is in B's CQ, on return. */
static bool message(void)
{
	struct ibv_sge to = { (uintptr_t)b.buf, 64, b.mr->lkey };
	struct ibv_sge from = { (uintptr_t)a.buf, 64, a.mr->lkey };
	struct ibv_recv_wr rwr = { .sg_list = &to, .num_sge = 1 }, *bad_r;
	struct ibv_send_wr swr = {
		.sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND,
	}, *bad_s;

	return !ibv_post_recv(b.qp, &rwr, &bad_r) && !ibv_post_send(a.qp, &swr, &bad_s) &&
	       wait_for(&a, 1);
}

static bool event_within(int ms)
{
	struct pollfd p = { .fd = b.chan->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *ctx;

	if (poll(&p, 1, ms) != 1 || ibv_get_cq_event(b.chan, &cq, &ctx))
		return false;
	ibv_ack_cq_events(cq, 1);
	return true;
}

static int arm(void)
{
	return ibv_req_notify_cq(ibv_cq_ex_to_cq(b.cq), 0);
}

static int moderate(int n, int us)
{
	struct ibv_modify_cq_attr attr = {
		.attr_mask = IBV_CQ_ATTR_MODERATE,
		.moderate = { .cq_count = n, .cq_period = us },
	};

	return ibv_modify_cq(ibv_cq_ex_to_cq(b.cq), &attr);
}

/* Events for @n messages, when the program arms anew after each event. */
static int events_for(int n)
{
	int i, events = 0;

	if (arm())
		return -1;
	for (i = 0; i < n; i++) {
		if (!message())
			return -1;
		/* an event that is due is under way: the first of all tells how long that takes */
		if (event_within(i ? 30 : 3000)) {
			events++;
			if (arm())
				return -1;
		}
	}
	drain(&b);
	return events;
}

static void t_count(void)
{
	int i;

	CHECK(events_for(32) == 32);
	CHECK(!moderate(8, 0));
	CHECK(!arm());
	for (i = 0; i < 7; i++)
		CHECK(message());
	CHECK(!event_within(100));
	CHECK(message());
	CHECK(event_within(3000));
	CHECK(!event_within(50));	/* not armed: no second one */
	CHECK(drain(&b) == 8);
	CHECK(!moderate(0, 0));
	CHECK(events_for(4) == 4);
}

static void t_fewer(void)
{
	int got;

	CHECK(!moderate(8, 60000));
	CHECK(!arm());
	got = 0;
	for (int i = 0; i < 32; i++) {
		CHECK(message());
		while (event_within(i % 8 == 7 ? 3000 : 0)) {
			got++;
			CHECK(!arm());
			if (i % 8 == 7)
				break;
		}
	}
	drain(&b);
	printf("# 32 messages, %d events\n", got);
	CHECK(got >= 4 && got <= 16);
	CHECK(!moderate(0, 0));
}

static void t_period(void)
{
	uint64_t begin, took;

	CHECK(!moderate(1000, 50000));
	CHECK(!arm());
	begin = now(CLOCK_MONOTONIC);
	CHECK(message() && message());
	CHECK(event_within(3000));
	took = now(CLOCK_MONOTONIC) - begin;
	printf("# period 50 ms, event after %.1f ms\n", took / 1e6);
	CHECK(took >= 50000000);
	CHECK(drain(&b) == 2);

	/* nothing for a CQ that is not armed */
	CHECK(message());
	CHECK(!event_within(120));
	drain(&b);

	/* what is held back comes when moderation ends */
	CHECK(!moderate(1000, 0));
	CHECK(!arm());
	CHECK(message());
	CHECK(!event_within(100));
	CHECK(!moderate(0, 0));
	CHECK(event_within(3000));
	drain(&b);
}

/* A count that can never come does not hold the event of a full ring. */
static void t_full(void)
{
	struct ibv_modify_cq_attr attr = {
		.attr_mask = IBV_CQ_ATTR_MODERATE,
		.moderate = { .cq_count = 65535 },
	};
	struct ibv_cq *cq = ibv_create_cq(b.ctx, 16, NULL, NULL, 0);

	CHECK(cq);
	CHECK(!ibv_modify_cq(cq, &attr));
	attr.attr_mask = 1 << 5;
	CHECK(ibv_modify_cq(cq, &attr) == EINVAL || ibv_modify_cq(cq, &attr) == EOPNOTSUPP);
	CHECK(!ibv_destroy_cq(cq));

	CHECK(!moderate(65535, 0));
	CHECK(!arm());
	for (int i = 0; i < DEPTH - 1; i++)
		CHECK(message());
	CHECK(!event_within(100));
	CHECK(message());
	CHECK(event_within(3000));
	CHECK(drain(&b) == DEPTH);
	CHECK(!moderate(0, 0));
}

/* More completions at once than there is room for: who sleeps is woken for those that fitted. */
static void t_overrun(void)
{
	struct ibv_cq *cq = ibv_create_cq(a.ctx, 16, NULL, a.chan, 0), *which;
	struct ibv_qp_init_attr init = {
		.cap = { 64, 1, 1, 1, 0 },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	struct pollfd p = { .fd = a.chan->fd, .events = POLLIN };
	struct ibv_sge sge = { (uintptr_t)a.buf, 8, a.mr->lkey };
	struct ibv_send_wr wr[20], *bad;
	struct ibv_wc wc[20];
	struct ibv_qp *qa, *qb;
	void *ctx;
	int i;

	CHECK(cq);
	init.send_cq = init.recv_cq = cq;
	qa = ibv_create_qp(a.pd, &init);
	init.send_cq = init.recv_cq = ibv_cq_ex_to_cq(b.cq);
	qb = ibv_create_qp(b.pd, &init);
	CHECK(qa && qb);
	connect_qp(qa, &b, qb->qp_num, a.gid_index);
	connect_qp(qb, &a, qa->qp_num, b.gid_index);
	CHECK(!ibv_req_notify_cq(cq, 0));
	for (i = 0; i < 20; i++)
		wr[i] = (struct ibv_send_wr){
			.next = i < 19 ? &wr[i + 1] : NULL,
			.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
			.wr.rdma = { (uintptr_t)b.buf, b.mr->rkey },
		};
	CHECK(!ibv_post_send(qa, wr, &bad));
	CHECK(poll(&p, 1, 5000) == 1);
	CHECK(!ibv_get_cq_event(a.chan, &which, &ctx) && which == cq);
	ibv_ack_cq_events(cq, 1);
	CHECK(ibv_poll_cq(cq, 20, wc) > 0 && !wc[0].status);
	CHECK(!ibv_destroy_qp(qa) && !ibv_destroy_qp(qb) && !ibv_destroy_cq(cq));
}

/* A full CQ has room for another completion as soon as one is looked at. */
static void t_session(void)
{
	struct ibv_poll_cq_attr attr = {};
	bool right = true;
	int i;

	for (i = 0; i < DEPTH; i++)
		CHECK(message());
	CHECK(!ibv_start_poll(b.cq, &attr));
	for (i = 0; i < 3 * DEPTH && right; i++)
		right = b.cq->status == IBV_WC_SUCCESS && message() && !ibv_next_poll(b.cq);
	ibv_end_poll(b.cq);
	CHECK(right && drain(&b) == DEPTH - 1);
}

static void t_clock(void)
{
	struct ibv_poll_cq_attr attr = {};
	struct ibv_values_ex val = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };
	struct ibv_device_attr_ex dev;
	uint64_t last = 0, last_wall = 0;
	int i, n = 0, ret = ENOENT;

	CHECK(!ibv_query_device_ex(b.ctx, NULL, &dev));
	CHECK(dev.completion_timestamp_mask == UINT64_MAX && dev.hca_core_clock == 1000000);

	for (i = 0; i < 20; i++) {
		uint64_t raw0, raw1, wall0, wall1, ts, wall;

		CHECK(!ibv_query_rt_values_ex(b.ctx, &val));
		raw0 = val.raw_clock.tv_sec * 1000000000ULL + val.raw_clock.tv_nsec;
		wall0 = now(CLOCK_REALTIME);
		CHECK(message());
		CHECK(!ibv_start_poll(b.cq, &attr));
		CHECK(b.cq->status == IBV_WC_SUCCESS);
		CHECK(ibv_wc_read_opcode(b.cq) == IBV_WC_RECV);
		ts = ibv_wc_read_completion_ts(b.cq);
		wall = ibv_wc_read_completion_wallclock_ns(b.cq);
		ibv_end_poll(b.cq);
		CHECK(!ibv_query_rt_values_ex(b.ctx, &val));
		raw1 = val.raw_clock.tv_sec * 1000000000ULL + val.raw_clock.tv_nsec;
		wall1 = now(CLOCK_REALTIME);
		/* between post and poll, and never backwards */
		CHECK(raw0 <= ts && ts <= raw1);
		CHECK(ts > last);
		/* two clocks are read one after the other: a little either way */
		CHECK(wall + 1000000 >= wall0 && wall <= wall1 + 1000000);
		CHECK(wall + 1000000 > last_wall);
		last = ts;
		last_wall = wall;
	}

	/* and within one session of polling */
	for (i = 0; i < 5; i++)
		CHECK(message());
	for (ret = ibv_start_poll(b.cq, &attr); !ret; ret = ibv_next_poll(b.cq)) {
		CHECK(ibv_wc_read_completion_ts(b.cq) > last);
		last = ibv_wc_read_completion_ts(b.cq);
		n++;
	}
	CHECK(ret == ENOENT && n == 5);
	ibv_end_poll(b.cq);

	val.comp_mask = 1 << 7;
	CHECK(ibv_query_rt_values_ex(b.ctx, &val) == EINVAL);
}

/* A program's allocator: of what kind, how often; it gives no memory for CQs. */
static struct {
	int given[4], back[4];
	bool wrong;
} memory;

static void *give(struct ibv_pd *pd, void *context, size_t size, size_t alignment,
		  uint64_t type)
{
	void *p;

	memory.wrong |= !pd || context != &memory || type >> 32 != 0x726f7665 ||
			!(uint32_t)type || (uint32_t)type > 3 || alignment & (alignment - 1);
	if ((uint32_t)type == 2)
		return IBV_ALLOCATOR_USE_DEFAULT;
	memory.given[type & 3]++;
	if (posix_memalign(&p, alignment, size))
		return NULL;
	return memset(p, 0xa5, size);
}

static void *give_nothing(struct ibv_pd *pd, void *context, size_t size, size_t alignment,
			  uint64_t type)
{
	return NULL;
}

static void take_back(struct ibv_pd *pd, void *context, void *p, uint64_t type)
{
	memory.wrong |= !pd || context != &memory;
	memory.back[type & 3]++;
	free(p);
}

/* A QP under a thread domain sends and receives like any; who uses what is kept. */
static void t_domains(void)
{
	struct ibv_td_init_attr tdi = {}, tdx = { .comp_mask = 1 };
	struct ibv_parent_domain_init_attr pdi = { .pd = a.pd, .pd_context = &memory };
	struct ibv_srq_init_attr srq_init = { .attr = { .max_wr = 8, .max_sge = 1 } };
	struct ibv_qp_init_attr init = {
		.cap = { 8, 8, 1, 1, 0 }, .qp_type = IBV_QPT_RC, .sq_sig_all = 1,
	};
	struct ibv_cq_init_attr_ex cqi = {
		.cqe = 8, .wc_flags = IBV_WC_STANDARD_FLAGS,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
	};
	struct ibv_sge sge = { (uintptr_t)a.buf, 64, a.mr->lkey };
	struct ibv_send_wr swr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad_s;
	struct ibv_recv_wr rwr = { .sg_list = &sge, .num_sge = 1 }, *bad_r;
	struct ibv_poll_cq_attr pa = {};
	struct ibv_td *td;
	struct ibv_pd *parent;
	struct ibv_srq *srq;
	struct ibv_cq_ex *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	int n, ret;

	FAILS(ibv_alloc_td(a.ctx, &tdx), EOPNOTSUPP);
	td = ibv_alloc_td(a.ctx, &tdi);
	CHECK(td);
	pdi.td = td;
	pdi.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
	FAILS(ibv_alloc_parent_domain(a.ctx, &pdi), EINVAL);	/* which one? */
	pdi.comp_mask = 1 << 7;
	FAILS(ibv_alloc_parent_domain(a.ctx, &pdi), EOPNOTSUPP);
	pdi.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
			IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
	pdi.alloc = give_nothing;
	pdi.free = take_back;
	parent = ibv_alloc_parent_domain(a.ctx, &pdi);
	CHECK(parent);
	FAILS(ibv_create_srq(parent, &srq_init), ENOMEM);
	CHECK(!ibv_dealloc_pd(parent));
	pdi.alloc = give;
	parent = ibv_alloc_parent_domain(a.ctx, &pdi);
	CHECK(parent);
	CHECK(ibv_dealloc_td(td) == EBUSY);
	pdi.pd = NULL;
	FAILS(ibv_alloc_parent_domain(a.ctx, &pdi), EINVAL);

	cqi.parent_domain = a.pd;	/* no parent domain */
	FAILS(ibv_create_cq_ex(a.ctx, &cqi), EINVAL);
	cqi.parent_domain = parent;
	cq = ibv_create_cq_ex(a.ctx, &cqi);
	CHECK(cq);
	init.send_cq = init.recv_cq = ibv_cq_ex_to_cq(cq);
	qp = ibv_create_qp(parent, &init);
	srq = ibv_create_srq(parent, &srq_init);
	CHECK(srq && memory.given[1] == 1 && memory.given[3] == 1);
	CHECK(ibv_dealloc_pd(parent) == EBUSY);
	CHECK(!ibv_destroy_srq(srq) && memory.back[3] == 1);
	init.cap.max_send_wr = 1 << 30;
	FAILS(ibv_create_qp(parent, &init), EINVAL);
	CHECK(memory.given[1] == 2 && memory.back[1] == 1);
	mr = ibv_reg_mr(parent, a.buf, sizeof(a.buf), IBV_ACCESS_LOCAL_WRITE);
	CHECK(qp && mr);
	connect_qp(qp, &a, qp->qp_num, a.gid_index);	/* to itself */
	sge.lkey = mr->lkey;
	CHECK(!ibv_post_recv(qp, &rwr, &bad_r) && !ibv_post_send(qp, &swr, &bad_s));
	for (n = 0; n < 2; ) {
		ret = ibv_start_poll(cq, &pa);
		if (ret == ENOENT)
			continue;
		CHECK(!ret && cq->status == IBV_WC_SUCCESS);
		n++;
		ibv_end_poll(cq);
	}
	CHECK(!ibv_dereg_mr(mr) && !ibv_destroy_qp(qp) && memory.back[1] == 2);
	CHECK(!memory.wrong && !memory.back[2]);
	CHECK(!ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
	CHECK(!ibv_dealloc_pd(parent) && !ibv_dealloc_td(td));
}

/* @n WRITEs of 64 KiB; have they been posted? */
static bool post_writes(int n)
{
	struct ibv_sge sge = { (uintptr_t)a.buf, sizeof(a.buf), a.mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = { (uintptr_t)b.buf, b.mr->rkey },
	}, *bad;

	while (n--)
		if (ibv_post_send(a.qp, &wr, &bad))
			return false;
	return true;
}

/* Is no more sent in any part of @n WRITEs of 64 KiB than in @kbps, but for three of them? */
static bool evenly(int n, double kbps)
{
	double each = 8.0 * sizeof(a.buf) * 1e6 / kbps;		/* ns */
	uint64_t end = now(CLOCK_MONOTONIC) + 20000000000ULL, at[DEPTH];
	struct ibv_poll_cq_attr pa = {};
	int i, j;

	if (!post_writes(n))
		return false;
	for (i = 0; i < n && now(CLOCK_MONOTONIC) < end; ) {
		if (ibv_start_poll(a.cq, &pa))
			continue;
		at[i++] = a.cq->status ? 0 : ibv_wc_read_completion_ts(a.cq);
		ibv_end_poll(a.cq);
	}
	if (i < n)
		return false;
	for (i = 0; i < n; i++)
		for (j = i + 1; j < n; j++)
			if (!at[i] || (j - i - 3) * each > at[j] - at[i])
				return false;
	return true;
}

/* Megabits a second of about @n WRITEs of 64 KiB, after the first; < 0: failed */
static double write_rate(int n)
{
	uint64_t begin;
	int first;

	if (!post_writes(n + 1))
		return -1;
	do
		first = drain(&a);
	while (!first);
	begin = now(CLOCK_MONOTONIC);
	n -= first - 1;
	if (first < 0 || !wait_for(&a, n))
		return -1;
	return n * 8.0 * sizeof(a.buf) * 1e3 / (now(CLOCK_MONOTONIC) - begin);
}

static void t_rate(void)
{
	struct ibv_qp_attr attr = { .rate_limit = 20000 };
	struct ibv_qp_rate_limit_attr limit = { .rate_limit = 80000 };
	struct ibv_device_attr_ex dev;
	double rate;

	CHECK(!ibv_query_device_ex(a.ctx, NULL, &dev));
	CHECK(dev.packet_pacing_caps.supported_qpts ==
	      (1 << IBV_QPT_RC | 1 << IBV_QPT_UC | 1 << IBV_QPT_UD | 1 << IBV_QPT_XRC_SEND));
	CHECK(dev.packet_pacing_caps.qp_rate_limit_min == 1);
	CHECK(dev.packet_pacing_caps.qp_rate_limit_max == UINT32_MAX);

	CHECK(!ibv_modify_qp(a.qp, &attr, IBV_QP_RATE_LIMIT));
	rate = write_rate(40);
	printf("# limit 20 Mbit/s: payload at %.1f\n", rate);
	/* a slow machine need not keep up, but bits are not bytes */
	CHECK(rate > 5 && rate < 20);
	CHECK(evenly(40, 20000));

	CHECK(!ibv_modify_qp_rate_limit(a.qp, &limit));
	rate = write_rate(120);
	printf("# limit 80 Mbit/s: payload at %.1f\n", rate);
	CHECK(rate > 20 && rate < 80);

	/* with a transition, too, and for ever is not what 0 means */
	attr.rate_limit = 0;
	attr.qp_state = IBV_QPS_RTS;
	CHECK(!ibv_modify_qp(a.qp, &attr, IBV_QP_STATE | IBV_QP_RATE_LIMIT));
	rate = write_rate(200);
	printf("# no limit: payload at %.1f\n", rate);
	CHECK(rate > 80);

	limit.max_burst_sz = 4096;
	CHECK(ibv_modify_qp_rate_limit(a.qp, &limit) == EOPNOTSUPP);
}

/*
 * Payload is placed by the kernel's memcpy(), which stores in whatever order is
 * fast: to poll on data is no substitute for a completion.
 */
static void t_in_order(void)
{
	CHECK(ibv_query_qp_data_in_order(a.qp, IBV_WR_RDMA_WRITE, 0) == 0);
	CHECK(ibv_query_qp_data_in_order(a.qp, IBV_WR_RDMA_READ, 0) == 0);
	CHECK(ibv_query_qp_data_in_order(a.qp, IBV_WR_SEND, 0) == 0);
}

static void t_unsupported(void)
{
	struct ibv_qp_init_attr init = {
		.cap = { 8, 8, 1, 1, 0 }, .qp_type = IBV_QPT_RAW_PACKET,
		.send_cq = ibv_cq_ex_to_cq(a.cq), .recv_cq = ibv_cq_ex_to_cq(a.cq),
	};
	struct ibv_wq_init_attr wq = {
		.wq_type = IBV_WQT_RQ, .max_wr = 8, .max_sge = 1, .pd = a.pd,
		.cq = ibv_cq_ex_to_cq(a.cq),
	};
	struct ibv_rwq_ind_table_init_attr rss = {};
	struct ibv_counters_init_attr counters = {};
	struct ibv_flow_attr flow = {
		.type = IBV_FLOW_ATTR_NORMAL, .size = sizeof(flow), .port = 1,
	};

	FAILS(ibv_create_qp(a.pd, &init), EOPNOTSUPP);
	FAILS(ibv_create_flow(a.qp, &flow), EOPNOTSUPP);
	FAILS(ibv_create_wq(a.ctx, &wq), EOPNOTSUPP);
	FAILS(ibv_create_rwq_ind_table(a.ctx, &rss), EOPNOTSUPP);
	FAILS(ibv_create_counters(a.ctx, &counters), EOPNOTSUPP);
	FAILS(ibv_create_cq(a.ctx, 8, NULL, NULL, 100000), EINVAL);
}

/* What is promised is granted, and one more is refused. */
static void t_limits(void)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.send_cq = ibv_cq_ex_to_cq(a.cq), .recv_cq = ibv_cq_ex_to_cq(a.cq),
	};
	struct ibv_device_attr_ex ex;
	struct ibv_device_attr *dev = &ex.orig_attr;
	struct ibv_cq *cq;
	struct ibv_qp *qp;

	CHECK(!ibv_query_device_ex(a.ctx, NULL, &ex));

	/* at least rdma_rxe's, as Linux 6.12 has them */
	CHECK(dev->max_qp >= (1 << 20) - 16);
	CHECK(dev->max_qp_wr >= 1 << 20);
	CHECK(dev->max_sge >= 32 && dev->max_sge_rd >= 32);
	CHECK(dev->max_cq >= 1 << 20 && dev->max_cqe >= 1 << 15);
	CHECK(dev->max_pd >= 1 << 20 && dev->max_mr >= (1 << 19) - 1);
	CHECK(dev->max_qp_rd_atom >= 128 && dev->max_qp_init_rd_atom >= 128);
	CHECK(dev->max_res_rd_atom >= 0x3f000);
	CHECK(dev->max_ah >= (1 << 15) - 1);

	CHECK(dev->vendor_id && dev->phys_port_cnt == 1 && ex.phys_port_cnt_ex == 1);
	CHECK(dev->atomic_cap != IBV_ATOMIC_NONE);
	CHECK(dev->page_size_cap & sysconf(_SC_PAGESIZE));
	CHECK(!ex.rss_caps.supported_qpts && !ex.max_wq_type_rq && !ex.raw_packet_caps);
	CHECK(!ex.tm_caps.max_num_tags && !ex.tso_caps.max_tso);
	CHECK(ex.cq_mod_caps.max_cq_count && ex.cq_mod_caps.max_cq_period);

	cq = ibv_create_cq(a.ctx, dev->max_cqe, NULL, NULL, 0);
	CHECK(cq && !ibv_destroy_cq(cq));
	FAILS(ibv_create_cq(a.ctx, dev->max_cqe + 1, NULL, NULL, 0), EINVAL);

	init.cap = (struct ibv_qp_cap) { dev->max_qp_wr, 1, 1, 1, 0 };
	qp = ibv_create_qp(a.pd, &init);
	CHECK(qp && init.cap.max_send_wr >= (uint32_t)dev->max_qp_wr && !ibv_destroy_qp(qp));
	init.cap = (struct ibv_qp_cap) { 1, dev->max_qp_wr, 1, 1, 0 };
	qp = ibv_create_qp(a.pd, &init);
	CHECK(qp && !ibv_destroy_qp(qp));
	init.cap = (struct ibv_qp_cap) { 1, 1, dev->max_sge, dev->max_sge, 0 };
	qp = ibv_create_qp(a.pd, &init);
	CHECK(qp && !ibv_destroy_qp(qp));
	init.cap = (struct ibv_qp_cap) { dev->max_qp_wr + 1, 1, 1, 1, 0 };
	FAILS(ibv_create_qp(a.pd, &init), EINVAL);
	init.cap = (struct ibv_qp_cap) { 1, dev->max_qp_wr + 1, 1, 1, 0 };
	FAILS(ibv_create_qp(a.pd, &init), EINVAL);
	init.cap = (struct ibv_qp_cap) { 1, 1, dev->max_sge + 1, 1, 0 };
	FAILS(ibv_create_qp(a.pd, &init), EINVAL);
	init.cap = (struct ibv_qp_cap) { 1, 1, 1, dev->max_sge + 1, 0 };
	FAILS(ibv_create_qp(a.pd, &init), EINVAL);
	/* all at once is more than there is memory for: refused, and nobody harmed */
	init.cap = (struct ibv_qp_cap) { dev->max_qp_wr, 1, dev->max_sge, 1, 1024 };
	qp = ibv_create_qp(a.pd, &init);
	CHECK(qp || errno == ENOMEM || errno == EINVAL);
	CHECK(!qp || !ibv_destroy_qp(qp));
}

/* Each of these stands for something that another test uses, or that is refused. */
static void t_caps(void)
{
	const uint64_t has = IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_SRQ_RESIZE |
			     IBV_DEVICE_XRC | IBV_DEVICE_MEM_WINDOW |
			     IBV_DEVICE_MEM_WINDOW_TYPE_2B |
			     IBV_DEVICE_MEM_MGT_EXTENSIONS |
			     1ull << 40 /* IB_UVERBS_DEVICE_ATOMIC_WRITE */;
	const uint64_t none = IBV_DEVICE_AUTO_PATH_MIG | IBV_DEVICE_RAW_MULTI |
			      IBV_DEVICE_UD_IP_CSUM | IBV_DEVICE_RC_IP_CSUM |
			      IBV_DEVICE_RAW_IP_CSUM | IBV_DEVICE_MEM_WINDOW_TYPE_2A |
			      IBV_DEVICE_MANAGED_FLOW_STEERING | 1ull << 38 /* FLUSH_GLOBAL */ |
			      1ull << 39 /* FLUSH_PERSISTENT */;
	const uint32_t paged = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV |
			       IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ |
			       IBV_ODP_SUPPORT_ATOMIC | IBV_ODP_SUPPORT_SRQ_RECV;
	struct ibv_device_attr_ex ex;

	CHECK(!ibv_query_device_ex(a.ctx, NULL, &ex));
	if ((ex.device_cap_flags_ex & has) != has || ex.device_cap_flags_ex & none)
		printf("# flags %#llx\n", (unsigned long long)ex.device_cap_flags_ex);
	CHECK((ex.device_cap_flags_ex & has) == has && !(ex.device_cap_flags_ex & none));
	CHECK(ex.orig_attr.atomic_cap == IBV_ATOMIC_HCA && !ex.pci_atomic_caps.fetch_add &&
	      !ex.pci_atomic_caps.swap && !ex.pci_atomic_caps.compare_swap);
	CHECK(ex.max_dm_size && ex.orig_attr.max_mw && ex.orig_attr.max_srq);
	CHECK(ex.completion_timestamp_mask == UINT64_MAX && ex.hca_core_clock == 1000000);
	if (ex.odp_caps.general_caps) {
		CHECK(ex.odp_caps.general_caps ==
		      (IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT));
		CHECK(ex.odp_caps.per_transport_caps.rc_odp_caps == paged &&
		      ex.xrc_odp_caps == paged);
		CHECK(!ex.odp_caps.per_transport_caps.uc_odp_caps &&
		      ex.odp_caps.per_transport_caps.ud_odp_caps == IBV_ODP_SUPPORT_SEND);
	}
}

int main(int argc, char **argv)
{
	if (argc != 5)
		return 2;
	open_end(&a, argv[1], argv[2]);
	open_end(&b, argv[3], argv[4]);
	connect_qp(a.qp, &b, b.qp->qp_num, a.gid_index);
	connect_qp(b.qp, &a, a.qp->qp_num, b.gid_index);

	run("query_device_ex: limits at least rdma_rxe's, and kept", t_limits);
	run("query_device_ex: what it says it can, it can", t_caps);
	run("moderation by count: one event for eight messages", t_count);
	run("moderation: 32 messages, fewer events", t_fewer);
	run("moderation by time: the event comes then, and not before", t_period);
	run("moderation: a full CQ waits for nothing", t_full);
	run("a CQ overrun at once: an event for what fitted", t_overrun);
	run("work posted while a CQ is polled: it is as large as it says", t_session);
	run("completion timestamps: monotonic, between post and poll; wall clock", t_clock);
	run("thread and parent domains", t_domains);
	run("a rate limit is kept", t_rate);
	run("data in order: not promised", t_in_order);
	run("raw packet QPs, flow steering, WQs, counters: EOPNOTSUPP", t_unsupported);
	printf("1..%d\n", count);
	return failed > 0;
}
