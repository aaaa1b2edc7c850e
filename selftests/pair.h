/* SPDX-License-Identifier: GPL-2.0 */
/*
 * pair.h - for test programs that want two connected RC QPs, one on each device,
 * in one process: pair_open() and pair_close() as often as an error has ended a
 * connection.
 */
#ifndef PAIR_H
#define PAIR_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "points.h"

#define DEPTH	64
#define KB	1024ul
#define MB	(1024 * KB)
#define ALL	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
		 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

struct end {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	union ibv_gid gid;
	int gid_index;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

static struct end a, b;
static uint32_t first_psn;	/* of connections made from now on */
static enum ibv_qp_type pair_type = IBV_QPT_RC;	/* or UC: of QPs made from now on */

static inline void end_open(struct end *e, const char *name, const char *gid)
{
	e->ctx = open_device(name);
	e->gid_index = atoi(gid);
	if (ibv_query_gid(e->ctx, 1, e->gid_index, &e->gid))
		die("query_gid");
	e->pd = ibv_alloc_pd(e->ctx);
	if (!e->pd)
		die("alloc_pd");
}

static inline struct ibv_qp *new_qp(struct end *e)
{
	struct ibv_qp_init_attr init = {
		.send_cq = e->cq,
		.recv_cq = e->cq,
		.cap = { DEPTH, DEPTH, 4, 4, 64 },
		.qp_type = pair_type,
	};
	struct ibv_qp *qp = ibv_create_qp(e->pd, &init);

	if (!qp)
		die("create_qp");
	return qp;
}

static inline void connect_qp(struct end *e, struct ibv_qp *qp, struct end *peer,
			      uint32_t qpn)
{
	struct ibv_qp_attr attr = attr_to(&peer->gid, e->gid_index, qpn);

	attr.sq_psn = first_psn;
	attr.rq_psn = first_psn;
	must(!to_rts_as(qp, attr), "to RTS");
}

static inline void pair_open(void)
{
	a.cq = ibv_create_cq(a.ctx, DEPTH * 4, NULL, NULL, 0);
	b.cq = ibv_create_cq(b.ctx, DEPTH * 4, NULL, NULL, 0);
	if (!a.cq || !b.cq)
		die("create_cq");
	a.qp = new_qp(&a);
	b.qp = new_qp(&b);
	connect_qp(&a, a.qp, &b, b.qp->qp_num);
	connect_qp(&b, b.qp, &a, a.qp->qp_num);
}

static inline void pair_close(void)
{
	if (ibv_destroy_qp(a.qp) || ibv_destroy_qp(b.qp) ||
	    ibv_destroy_cq(a.cq) || ibv_destroy_cq(b.cq))
		die("destroy");
}

/* A test with a connection of its own. */
static inline void run(const char *name, void (*fn)(void))
{
	good = true;
	pair_open();
	fn();
	pair_close();
	point(name);
}

/* The next completion's status, or -1 when none comes. */
static inline int done(struct ibv_cq *cq, struct ibv_wc *wc)
{
	struct ibv_wc mine;
	int i, n = 0;

	if (!wc)
		wc = &mine;
	for (i = 0; i < 100000 && !n; i++) {
		n = ibv_poll_cq(cq, 1, wc);
		if (!n && i > 100)
			usleep(200);
	}
	return n == 1 ? (int)wc->status : -1;
}

/* One RDMA operation; the status of its completion, or -1. */
static inline int rdma(struct end *e, struct ibv_qp *qp, enum ibv_wr_opcode op,
		       void *mine, uint32_t len, uint32_t lkey, uint64_t theirs,
		       uint32_t rkey)
{
	struct ibv_sge sge = { (uintptr_t)mine, len, lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = len ? 1 : 0, .opcode = op,
		.send_flags = IBV_SEND_SIGNALED,
	}, *bad;

	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = theirs;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = theirs;
		wr.wr.rdma.rkey = rkey;
	}
	return ibv_post_send(qp, &wr, &bad) ? -1 : done(e->cq, NULL);
}

static inline int post_recv(struct end *e, void *to, uint32_t len, uint32_t lkey)
{
	struct ibv_sge sge = { (uintptr_t)to, len, lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = len ? 1 : 0 }, *bad;

	return ibv_post_recv(e->qp, &wr, &bad);
}

static inline void scramble(void *p, size_t len)
{
	uint8_t *c = p;

	while (len--)
		*c++ = rand();
}

#endif /* PAIR_H */
