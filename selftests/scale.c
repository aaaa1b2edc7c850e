// SPDX-License-Identifier: GPL-2.0
/*
 * scale.c - many connections, one after another and all at once
 *
 *	scale DEV-A GID-INDEX-A DEV-B GID-INDEX-B cycles N
 *	scale DEV-A GID-INDEX-A DEV-B GID-INDEX-B many N
 *
 * cycles: N times connect, move checked data both ways, disconnect.
 * many: N queue pairs (N / 2 connections) alive at once; then checked data on all of
 * them, posted to all before any completion is looked at.
 */
#include <malloc.h>
#include <sys/mman.h>
#include "pair.h"

#define MSG	2000
#define SLOTS	(4 * MB / MSG)	/* each connection of 4,096 queue pairs has its own */

static char *buf;
static struct ibv_mr *a_mr, *b_mr;

static bool message(struct ibv_qp *from, struct ibv_qp *to, uint32_t slot)
{
	struct ibv_sge out = { (uintptr_t)buf + slot % SLOTS * MSG, MSG, a_mr->lkey };
	struct ibv_sge in = { (uintptr_t)buf + 4 * MB + slot % SLOTS * MSG, MSG, b_mr->lkey };
	struct ibv_recv_wr *rbad, recv = { .wr_id = slot, .sg_list = &in, .num_sge = 1 };
	struct ibv_send_wr *bad, send = {
		.wr_id = slot, .sg_list = &out, .num_sge = 1,
		.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
	};

	return !ibv_post_recv(to, &recv, &rbad) && !ibv_post_send(from, &send, &bad);
}

static void cycles(int n)
{
	int i;

	good = true;
	for (i = 0; i < n && good; i++) {
		char *mine = buf, *theirs = buf + 4 * MB, *back = buf + MB;

		memset(mine, i * 7 + 1, MSG);
		memset(theirs, 0, MSG);
		memset(back, 0, MSG);
		pair_open();
		good = message(a.qp, b.qp, 0) && !done(a.cq, NULL) && !done(b.cq, NULL) &&
		       !memcmp(mine, theirs, MSG);
		memset(theirs, 0, MSG);
		good = good &&
		       !rdma(&b, b.qp, IBV_WR_RDMA_READ, theirs, MSG, b_mr->lkey,
			     (uintptr_t)mine, a_mr->rkey) &&
		       !memcmp(mine, theirs, MSG) &&
		       !rdma(&b, b.qp, IBV_WR_RDMA_WRITE, theirs, MSG, b_mr->lkey,
			     (uintptr_t)back, a_mr->rkey) &&
		       !memcmp(mine, back, MSG);
		pair_close();
	}
	printf("# %d of %d cycles\n", i, n);
	point("connect, transfer, disconnect");
}

/* All completions of a CQ: @n successes. */
static bool all_done(struct ibv_cq *cq, int n)
{
	struct ibv_wc wc;

	while (n--)
		if (done(cq, &wc)) {
			printf("# status %d of request %d, %d to come\n", wc.status,
			       (int)wc.wr_id, n);
			return false;
		}
	return true;
}

/*
 * Have what the program itself will need: where memory is short (oom.sh), it is to be
 * a queue pair that finds none.
 */
static void settle_down(void)
{
	void *heap;

	mallopt(M_MMAP_THRESHOLD, 1 << 30);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	heap = malloc(8 * MB);
	if (!heap || mlockall(MCL_CURRENT))
		die("memory");
	memset(heap, 1, 8 * MB);
	free(heap);
}

static void many(int n)
{
	struct ibv_qp_init_attr init = { .cap = { 4, 4, 1, 1, 0 }, .qp_type = IBV_QPT_RC };
	struct ibv_qp **qa = calloc(n, sizeof(*qa)), **qb = calloc(n, sizeof(*qb));
	int i, round;

	n /= 2;
	good = true;
	settle_down();
	a.cq = ibv_create_cq(a.ctx, n * 4, NULL, NULL, 0);
	b.cq = ibv_create_cq(b.ctx, n * 4, NULL, NULL, 0);
	if (!a.cq || !b.cq)
		die("create_cq");
	for (i = 0; i < n; i++) {
		init.send_cq = a.cq;
		init.recv_cq = a.cq;
		qa[i] = ibv_create_qp(a.pd, &init);
		init.send_cq = b.cq;
		init.recv_cq = b.cq;
		qb[i] = ibv_create_qp(b.pd, &init);
		if (!qa[i] || !qb[i])
			die("create_qp");
		connect_qp(&a, qa[i], &b, qb[i]->qp_num);
		connect_qp(&b, qb[i], &a, qa[i]->qp_num);
	}
	printf("# %d queue pairs\n", 2 * n);
	for (round = 0; round < 3 && good; round++) {
		scramble(buf, SLOTS * MSG);
		memset(buf + 4 * MB, 0, SLOTS * MSG);
		for (i = 0; i < n && good; i++)
			good = message(qa[i], qb[i], i);
		good = good && all_done(a.cq, n) && all_done(b.cq, n) &&
		       !memcmp(buf, buf + 4 * MB, (n < (int)SLOTS ? n : (int)SLOTS) * MSG);
	}
	point("traffic on all of them");
	good = true;
	for (i = 0; i < n; i++)
		good &= !ibv_destroy_qp(qa[i]) && !ibv_destroy_qp(qb[i]);
	good &= !ibv_destroy_cq(a.cq) && !ibv_destroy_cq(b.cq);
	point("and destroyed");
}

int main(int argc, char **argv)
{
	if (argc < 7) {
		fprintf(stderr, "usage: %s DEV GID DEV GID cycles|many N\n", *argv);
		return 2;
	}
	end_open(&a, argv[1], argv[2]);
	end_open(&b, argv[3], argv[4]);
	buf = aligned_alloc(4096, 8 * MB);
	memset(buf, 0, 8 * MB);
	a_mr = ibv_reg_mr(a.pd, buf, 8 * MB, ALL);
	b_mr = ibv_reg_mr(b.pd, buf, 8 * MB, ALL);
	if (!a_mr || !b_mr)
		die("reg_mr");
	if (!strcmp(argv[5], "cycles"))
		cycles(atoi(argv[6]));
	else
		many(atoi(argv[6]));
	printf("1..%d\n", count);
	return failed > 0;
}
