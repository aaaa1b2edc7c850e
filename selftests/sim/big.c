// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * big.c - messages of gigabytes in memory that is not there
 *
 * A virtual region has no memory: what is read from it is a function of the
 * address, and what is written to it must be that function of the address it
 * came from.  A bitmap sees that every byte arrives.
 */
#include "sim.h"

/* A prime number of random bytes: no shift by a power of two goes unnoticed. */
#define PATTERN		65521
#define GRAIN		256	/* bytes a bit of the map */
#define GIANT		ROVE_MAX_MSG

static u8 pattern[PATTERN + 4096];

static struct {
	u64 shift;	/* an address written holds the pattern of address - shift */
	u64 base;
	u64 bytes;	/* placed, with repetitions */
	u8 *map;
} sink;

static u32 completions[2];
static u32 status[2];
static u32 byte_len[2];

bool big_read(struct mr *mr, u64 va, u8 *dst, u32 len)
{
	if (!mr || !mr->is_virtual)
		return false;
	memcpy(dst, pattern + va % PATTERN, len);
	return true;
}

bool big_write(struct mr *mr, u64 va, const u8 *src, u32 len)
{
	u64 off = va - sink.base, i;

	if (!mr->is_virtual)
		return false;
	if (memcmp(src, pattern + (va - sink.shift) % PATTERN, len))
		sim_fail(mr->owner, "wrong bytes at offset %llx", off);
	for (i = off / GRAIN; i < (off + len + GRAIN - 1) / GRAIN; i++)
		sink.map[i / 8] |= 1 << i % 8;
	sink.bytes += len;
	return true;
}

static void on_cqe(struct sim_qp *qp, const struct rove_cqe *cqe, bool recv,
		   bool solicited)
{
	completions[recv]++;
	status[recv] = cqe->status;
	byte_len[recv] = cqe->byte_len;
}

static struct mr *virtual_mr(struct sim_qp *qp, u64 va, u64 len)
{
	struct mr *mr = mr_add(qp, va, NULL, len, ROVE_ACCESS_LOCAL_WRITE |
			       ROVE_ACCESS_REMOTE_WRITE | ROVE_ACCESS_REMOTE_READ);

	mr->is_virtual = true;
	return mr;
}

/* One message of @len bytes at path MTU @mtu, from a to b (READ: b to a). */
static void transfer(u8 op, u32 len, u32 mtu)
{
	struct sim_qp *a = user_new_pair(), *b = a->peer, *qp[2] = { a, b };
	struct rove_send_wqe *wqe;
	u64 local = rnd() >> 8, remote = rnd() >> 8, missing = 0, i;
	struct mr *mr_a, *mr_b;

	env_free_buffers(a);
	env_free_buffers(b);
	for (i = 0; i < 2; i++) {
		qp[i]->t.max_sge_send = 3;
		qp[i]->t.max_sge_recv = 3;
		qp[i]->t.req.window = 256;
		env_setup_buffers(qp[i]);
	}
	user_connect(a);
	for (i = 0; i < 2; i++) {
		struct rove_tqp *t = &qp[i]->t;

		env_reset_queues(qp[i]);
		rove_tqp_reset(t);
		t->mtu = mtu;
		t->max_rd_atomic = 1;
		t->timeout = 14;
		t->retry_cnt = 7;
		rove_tqp_max_res(t, 1);
		rove_tqp_start_responder(t, ROVE_PSN_MASK - 1000);
		rove_tqp_start_requester(t, ROVE_PSN_MASK - 1000);
		qp[i]->on_cqe = on_cqe;
	}
	mr_a = virtual_mr(a, local, len);
	mr_b = virtual_mr(b, remote, len);
	memset(completions, 0, sizeof(completions));
	sink.bytes = 0;
	sink.base = op == ROVE_WR_RDMA_READ ? local : remote;
	sink.shift = op == ROVE_WR_RDMA_READ ? local - remote : remote - local;
	memset(sink.map, 0, GIANT / GRAIN / 8 + 1);

	if (op == ROVE_WR_SEND) {
		struct rove_recv_wqe *rwqe = env_rq_slot(b);

		rwqe->wr_id = 1;
		rwqe->num_sge = 2;
		rwqe->sge[0] = (struct rove_sge) { remote, len / 3, mr_b->key };
		rwqe->sge[1] = (struct rove_sge) { remote + len / 3, len - len / 3,
						   mr_b->key };
		b->rq_prod++;
	}
	wqe = env_sq_slot(a);
	memset(wqe, 0, sizeof(*wqe));
	wqe->wr_id = 1;
	wqe->opcode = op;
	wqe->flags = ROVE_WR_SIGNALED;
	wqe->num_sge = 3;
	wqe->sge[0] = (struct rove_sge) { local, 1, mr_a->key };
	wqe->sge[1] = (struct rove_sge) { local + 1, len - 100, mr_a->key };
	wqe->sge[2] = (struct rove_sge) { local + len - 99, 99, mr_a->key };
	wqe->remote_addr = remote;
	wqe->rkey = mr_b->key;
	a->sq_prod++;
	tqp_send(a);
	sim_run_until(NULL, 100 * NS_PER_S);

	if (completions[0] != 1 || status[0] || completions[1] != (op == ROVE_WR_SEND))
		sim_fail(a, "operation %u of %u bytes at MTU %u: status %u, %u and %u completions",
			 op, len, mtu, status[0], completions[0], completions[1]);
	if ((op == ROVE_WR_SEND && byte_len[1] != len) ||
	    (op == ROVE_WR_RDMA_READ && byte_len[0] != len))
		sim_fail(a, "byte_len %u, %u", byte_len[0], byte_len[1]);
	for (i = 0; i < (len + GRAIN - 1ULL) / GRAIN; i++)
		missing += !(sink.map[i / 8] >> i % 8 & 1);
	if (missing || sink.bytes < len)
		sim_fail(a, "%llu of %u bytes never arrived", missing * GRAIN, len);
	sim_end_round();
}

static void init(void)
{
	fill(pattern, PATTERN, 1);
	memcpy(pattern + PATTERN, pattern, sizeof(pattern) - PATTERN);
	if (!sink.map)
		sink.map = malloc(GIANT / GRAIN / 8 + 1);
}

int big_run(void)
{
	init();
	transfer(ROVE_WR_RDMA_READ, GIANT, 4096);
#ifdef __SANITIZE_ADDRESS__
	return 1;	/* the others take too long so */
#endif
	transfer(ROVE_WR_RDMA_WRITE, GIANT, 4096);
	transfer(ROVE_WR_SEND, GIANT - 3, 4096);
	return 3;
}

/* 2^23 packets: half of all PSNs. */
int big_psn_run(void)
{
	init();
	transfer(ROVE_WR_RDMA_READ, GIANT, 256);
	transfer(ROVE_WR_RDMA_WRITE, GIANT, 256);
	return 2;
}
