// SPDX-License-Identifier: GPL-2.0
/*
 * timers.c - the rate limits of many QPs let them all send at the same moment
 *
 *	timers DEVICE GID_INDEX PEER_DEVICE PEER_GID_INDEX
 *
 * Each sends a message, whose rate limit is such that the next one is due when that of
 * all others is.  UC, to a QP that does not exist: nobody else's time is spent.
 */
#include "pair.h"

#define QPS	300
#define LEN	60000
/* What a packet of 1,024 bytes has around it, by which a rate is meant. */
#define WIRE	(LEN + (LEN + 1023) / 1024 * 58)
#define NOBODY	0x000010

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static void write_to_nobody(struct ibv_qp *qp, struct ibv_mr *mr)
{
	struct ibv_sge sge = { (uintptr_t)mr->addr, LEN, mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
	}, *bad;

	must(!ibv_post_send(qp, &wr, &bad), "post_send");
}

static void all_at_once(void)
{
	struct ibv_cq *cq = ibv_create_cq(a.ctx, 2 * QPS, NULL, NULL, 0);
	struct ibv_qp *qp[QPS];
	struct ibv_mr *mr = ibv_reg_mr(a.pd, calloc(1, LEN), LEN, 0);
	uint64_t due, last;
	int i, n = 0;

	must(cq && mr, "a CQ and a region");
	a.cq = cq;
	for (i = 0; i < QPS; i++) {
		qp[i] = new_qp(&a);
		connect_qp(&a, qp[i], &b, NOBODY);
	}
	due = now_ns() + 2000000000;
	for (i = 0; i < QPS; i++) {
		uint64_t left = due - now_ns();
		struct ibv_qp_rate_limit_attr limit = {
			.rate_limit = WIRE * 8000000ULL / left,
		};

		CHECK((int64_t)left > 100000000);
		CHECK(!ibv_modify_qp_rate_limit(qp[i], &limit));
		write_to_nobody(qp[i], mr);
		write_to_nobody(qp[i], mr);
	}
	for (last = now_ns(); n < 2 * QPS && now_ns() < last + 20000000000; usleep(1000)) {
		struct ibv_wc wc;

		while (ibv_poll_cq(cq, 1, &wc) == 1) {
			CHECK(wc.status == IBV_WC_SUCCESS);
			n++;
			last = now_ns();
		}
	}
	CHECK(n == 2 * QPS);
	/* Nobody was earlier than he may. */
	CHECK(last > due - 100000000);
	for (i = 0; i < QPS; i++)
		must(!ibv_destroy_qp(qp[i]), "destroy_qp");
	must(!ibv_destroy_cq(cq) && !ibv_dereg_mr(mr), "destroy");
}

int main(int argc, char **argv)
{
	must(argc == 5, "usage: timers DEVICE GID_INDEX PEER_DEVICE PEER_GID_INDEX");
	end_open(&a, argv[1], argv[2]);
	end_open(&b, argv[3], argv[4]);
	pair_type = IBV_QPT_UC;
	good = true;
	all_at_once();
	point("300 queue pairs whose rate limits end at one moment");
	printf("1..%d\n", count);
	return failed != 0;
}
