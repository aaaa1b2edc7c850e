// SPDX-License-Identifier: GPL-2.0
/*
 * ah_routes.c - a UD QP that writes by turns through two address handles, which
 * keep a route each
 *
 *	ah_routes DEV-A GID-INDEX-A DEV-B GID-INDEX-B
 *
 * Plain libibverbs.  For each line on standard input A sends eight datagrams to B;
 * prints how many have come.
 */
#include <stdint.h>
#include <unistd.h>

#include "points.h"

#define QKEY	0x11111111

struct end {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	union ibv_gid gid;
	char buf[4096];
};

static struct end a, b;

static void open_end(struct end *e, const char *name, int gid_index)
{
	struct ibv_qp_init_attr init = { .cap = { 64, 64, 1, 1, 0 }, .qp_type = IBV_QPT_UD };
	struct ibv_context *ctx = open_device(name);

	e->pd = ibv_alloc_pd(ctx);
	e->cq = ibv_create_cq(ctx, 128, NULL, NULL, 0);
	e->mr = ibv_reg_mr(e->pd, e->buf, sizeof(e->buf), IBV_ACCESS_LOCAL_WRITE);
	init.send_cq = init.recv_cq = e->cq;
	e->qp = ibv_create_qp(e->pd, &init);
	if (!e->mr || !e->qp || ibv_query_gid(ctx, 1, gid_index, &e->gid))
		die(name);
	ud_to_rts(e->qp, QKEY);
}

/* Completions of @e's within a second, @n at most */
static int done(struct end *e, int n)
{
	struct ibv_wc wc;
	int i, have = 0;

	for (i = 0; i < 1000 && have < n; i++) {
		while (have < n && ibv_poll_cq(e->cq, 1, &wc) == 1)
			have += !wc.status;
		usleep(1000);
	}
	return have;
}

int main(int argc, char **argv)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1, .grh.hop_limit = 64 };
	struct ibv_sge sge = { .length = 64 };
	struct ibv_send_wr swr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
				   .send_flags = IBV_SEND_SIGNALED }, *bad_s;
	struct ibv_recv_wr rwr = { .sg_list = &sge, .num_sge = 1 }, *bad_r;
	struct ibv_ah *ah[2];
	char line[16];
	int i, posted = 0;

	if (argc != 5)
		return 2;
	open_end(&a, argv[1], atoi(argv[2]));
	open_end(&b, argv[3], atoi(argv[4]));
	attr.grh.sgid_index = atoi(argv[2]);
	attr.grh.dgid = b.gid;
	for (i = 0; i < 2; i++) {
		ah[i] = ibv_create_ah(a.pd, &attr);
		if (!ah[i])
			die("create_ah");
	}
	while (fgets(line, sizeof(line), stdin)) {
		sge.addr = (uintptr_t)b.buf;
		sge.length = sizeof(b.buf);
		sge.lkey = b.mr->lkey;
		for (; posted < 8; posted++)
			if (ibv_post_recv(b.qp, &rwr, &bad_r))
				die("post_recv");
		sge.addr = (uintptr_t)a.buf;
		sge.length = 64;
		sge.lkey = a.mr->lkey;
		for (i = 0; i < 8; i++) {
			swr.wr.ud.ah = ah[i % 2];
			swr.wr.ud.remote_qpn = b.qp->qp_num;
			swr.wr.ud.remote_qkey = QKEY;
			if (ibv_post_send(a.qp, &swr, &bad_s))
				die("post_send");
		}
		if (done(&a, 8) != 8)
			die("sends");
		i = done(&b, 8);
		posted -= i;
		printf("%d\n", i);
		fflush(stdout);
	}
	return ibv_destroy_qp(a.qp) || ibv_destroy_ah(ah[0]) || ibv_destroy_ah(ah[1]);
}
