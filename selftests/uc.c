// SPDX-License-Identifier: GPL-2.0
/*
 * uc.c - messages over UC: one that has lost a packet is dropped whole, and the next
 * one takes its receive
 *
 *	uc DEV-A GID-INDEX-A DEV-B GID-INDEX-B all|some [write]
 *
 * a sends, or with "write" writes with immediate data, which says what.  The last argument
 * but that tells what must arrive: all, or some and not all.
 */
#include "pair.h"

#define LEN	(128 * KB)	/* several bursts: what netem drops is one as a whole */
#define WORDS	(LEN / 4)
#define BATCH	8		/* few: nothing but netem may drop, and receives are never short */
#define ROUNDS	60
#define PLACES	(2 * BATCH)	/* of WRITEs */

static uint32_t *out, *in;	/* what is sent, and where it goes */
static uint32_t *into;		/* where WRITEs go */
static struct ibv_mr *src, *dst, *place;
static uint32_t sent, whole;
static uint32_t next;		/* message that may arrive */
static bool writes;
static bool mark;		/* has this round's come? */

static int receive_into(uint32_t slot)
{
	struct ibv_sge sge = { (uintptr_t)(in + slot * WORDS), LEN, dst->lkey };
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_recv(b.qp, &wr, &bad);
}

static int post(uint32_t *what, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)what, len, src->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	}, *bad;

	/* Each message of a round has a place of its own, which only later rounds use again. */
	if (writes && len == LEN) {
		wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
		wr.imm_data = *what / WORDS;
		wr.wr.rdma.remote_addr = (uintptr_t)(into + *what / WORDS % PLACES * WORDS);
		wr.wr.rdma.rkey = place->rkey;
	}
	return ibv_post_send(a.qp, &wr, &bad);
}

/* Each word of message k is k * WORDS and the word's place. */
static void arrived(const struct ibv_wc *wc, uint32_t round)
{
	uint32_t *got = in + wc->wr_id * WORDS, i;

	if (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
		got = into + wc->imm_data % PLACES * WORDS;
		CHECK(*got == wc->imm_data * WORDS);
	}
	if (wc->byte_len == sizeof(*got)) {
		mark |= *got == round;
		return;
	}
	CHECK(wc->byte_len == LEN && *got % WORDS == 0 && *got / WORDS < sent);
	for (i = 0; i < WORDS; i++)
		CHECK(got[i] == *got + i);
	/* in the order that they were sent in, and once */
	CHECK(*got / WORDS >= next);
	next = *got / WORDS + 1;
	whole++;
}

/* What has come, until the mark or until nothing does. */
static void drain(uint32_t round)
{
	struct ibv_wc wc;
	int idle;

	for (idle = 0; idle < 200 && !mark; idle++) {
		if (!ibv_poll_cq(b.cq, 1, &wc)) {
			usleep(200);
			continue;
		}
		idle = 0;
		CHECK(wc.status == IBV_WC_SUCCESS);
		arrived(&wc, round);
		CHECK(good && !receive_into(wc.wr_id));
	}
}

static void t_send(void)
{
	uint32_t round, i, k;
	int tries;

	for (i = 0; i < DEPTH; i++)
		CHECK(!receive_into(i));
	for (round = 0; round < ROUNDS; round++) {
		for (k = 0; k < BATCH; k++) {
			for (i = 0; i < WORDS; i++)
				out[k * WORDS + i] = sent * WORDS + i;
			sent++;
			CHECK(!post(out + k * WORDS, LEN));
		}
		/* the sender learns nothing of what is lost */
		for (k = 0; k < BATCH; k++)
			CHECK(done(a.cq, NULL) == IBV_WC_SUCCESS);
		/* a mark may be lost, too */
		mark = false;
		for (tries = 0; tries < 100 && !mark; tries++) {
			out[0] = round;
			CHECK(!post(out, sizeof(*out)));
			CHECK(done(a.cq, NULL) == IBV_WC_SUCCESS);
			drain(round);
			CHECK(good);
		}
		CHECK(mark);
	}
}

int main(int argc, char **argv)
{
	if (argc != 6 && argc != 7)
		return 2;
	writes = argc == 7;
	end_open(&a, argv[1], argv[2]);
	end_open(&b, argv[3], argv[4]);
	out = malloc(BATCH * LEN);
	in = malloc(DEPTH * LEN);
	src = ibv_reg_mr(a.pd, out, BATCH * LEN, 0);
	dst = ibv_reg_mr(b.pd, in, DEPTH * LEN, IBV_ACCESS_LOCAL_WRITE);
	into = calloc(PLACES, LEN);
	place = ibv_reg_mr(b.pd, into, PLACES * LEN,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!src || !dst || !place)
		die("reg_mr");
	pair_type = IBV_QPT_UC;
	pair_open();
	good = true;
	t_send();
	printf("# %u of %u messages have arrived\n", whole, sent);
	return !(good && (strcmp(argv[5], "all") ? whole && whole < sent : whole == sent));
}
