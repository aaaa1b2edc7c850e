// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * rogue.c - an honest end whose program or peer breaks the rules
 *
 *	responder	what comes in is whatever a peer can think of: every opcode, lengths,
 *			keys and addresses around those that are right, PSNs around
 *			those expected
 *	requester	answers to work that was posted, forged likewise; work requests of
 *			chance bytes among it
 *
 * What must hold: each work request completes once, in order; nothing is written where no
 * right was given; a request gets one answer at most, and a READ no more than it
 * asked for; UC and UD never answer.
 */
#include "sim.h"

#define ROUNDS		1500
#define STEPS		60
#define QKEY		0x0badcafe
#define SECRET		512	/* bytes of memory that nobody has a right to */

static struct sim_qp *q;	/* the honest end */
static int checks;
static bool forge_answers;
static u32 sends, recvs;	/* completed */
static u32 posted_recvs;
static u32 answers;		/* ACKs, NAKs, atomic results that left */
static u64 data_packets;	/* READ responses that left */
static u32 requests;		/* that the rogue has sent */
static u64 asked;		/* packets of READ responses that they ask for */
static u8 secret[SECRET], kept[SECRET];
static struct mr *mr_secret;
static u32 recv_room[WRS];
static u8 packet[ROVE_MAX_HDR + 3 * 4096 + 8];	/* the last that was forged */
static u32 packet_len;
static u32 repeat_asks;	/* packets of data that it asks for */

#define CHECK(cond, ...) do {			\
	checks++;				\
	if (!(cond))				\
		sim_fail(q, __VA_ARGS__);	\
} while (0)

static void on_cqe(struct sim_qp *qp, const struct rove_cqe *cqe, bool recv,
		   bool solicited)
{
	u32 *n = recv ? &recvs : &sends;

	CHECK(qp == q, "a completion for the rogue");
	if (!recv) {
		/* The unsignalled ones before it are complete, too. */
		CHECK((u32)cqe->wr_id - *n < qp->sq_prod - qp->sq_psn - *n,
		      "send completion of %llx after %u", (u64)cqe->wr_id, *n);
		*n = cqe->wr_id + 1;
		return;
	}
	CHECK(cqe->wr_id == *n, "receive completion of %llx, not %u",
	      (u64)cqe->wr_id, *n);
	CHECK(cqe->status || cqe->opcode == ROVE_WC_RECV_RDMA_WITH_IMM ||
	      cqe->byte_len <= recv_room[*n % WRS], "%u bytes in a receive of %u",
	      cqe->byte_len, recv_room[*n % WRS]);
	(*n)++;
}

/* Nothing reaches the rogue's engine: it has none. */
static bool on_packet(struct sim_qp *qp, const u8 *bth)
{
	u32 flags = rove_opcodes[bth[0]].flags;

	CHECK(flags & ROVE_OPF_VALID && (bth[0] & ROVE_SVC_MASK) == q->t.service,
	      "sends opcode %x", bth[0]);
	if (!(flags & ROVE_OPF_REQUEST)) {
		if (flags & ROVE_OPF_READ)
			data_packets++;
		else
			answers++;
	}
	return true;
}

static u32 on_local(const struct rove_send_wqe *wqe)
{
	return below(4) ? ROVE_WC_SUCCESS : ROVE_WC_MW_BIND_ERR;
}

static void start(u8 service, bool target)
{
	sim_end_round();
	q = user_still_pair(service, 32, 32, 256 << below(5));
	q->t.target = target;
	q->t.srq = target;
	q->t.retry_cnt = below(3);
	q->t.rnr_retry = below(8);
	if (q->t.timeout && rnd() & 1)
		q->t.timeout = rnd() & 1 ? 8 : 0;
	q->t.qkey = QKEY;
	q->t.sq_sig_all = rnd() & 1;
	rove_tqp_max_res(&q->t, below(4));
	q->on_cqe = on_cqe;
	q->on_packet = on_packet;
	q->on_local = on_local;
	q->rq_level = 0;		/* nobody else posts */
	q->peer->rq_level = 0;
	fill(secret, SECRET, 4711);
	memcpy(kept, secret, SECRET);
	mr_secret = mr_add(q, 0x5ec2e7000, secret, SECRET, 0);
	q->sq_psn = q->sq_prod;		/* work request 0 */
	sends = recvs = answers = requests = posted_recvs = 0;
	asked = data_packets = 0;
	packet_len = 0;
}

static u32 local_key(void)
{
	switch (below(8)) {
	case 0:
		return mr_secret->key;
	case 1:
		return q->mr_local->key ^ 1;
	case 2:
		return q->mr_ro->key;
	default:
		return q->mr_local->key;
	}
}

static u32 remote_key(void)
{
	switch (below(8)) {
	case 0:
		return mr_secret->key;
	case 1:
		return rnd();
	case 2:
		return q->peer->mr_noright->key;
	case 3:
		return q->peer->mr_talias->key;
	default:
		return q->peer->mr_target->key;
	}
}

static u32 some_length(void)
{
	switch (below(8)) {
	case 0:
		return 0;
	case 1:
		return q->t.mtu;
	case 2:
		return below(3 * q->t.mtu);
	case 3:
		return rnd() & 1 ? U32_MAX - below(16) : ROVE_MAX_MSG + below(3) - 1;
	default:
		return below(128);
	}
}

static u64 some_address(void)
{
	const struct mr *mr = q->peer->mr_target;

	switch (below(8)) {
	case 0:
		return mr_secret->va + below(SECRET);
	case 1:
		return -(u64)below(4096);
	case 2:
		return mr->va + mr->len - below(64);
	default:
		return (mr->va + below(512) + 7) & ~7ULL;
	}
}

static void post_send(void)
{
	struct rove_send_wqe *wqe = env_sq_slot(q);
	u32 i;

	if (!wqe)
		return;
	if (!below(4)) {
		fill((u8 *)wqe, q->sq_stride, rnd());
	} else {
		memset(wqe, 0, q->sq_stride);
		wqe->opcode = below(17);
		/* What the kernel's own users may post, too. */
		if (wqe->opcode == 16)
			wqe->opcode = ROVE_WR_REG_MR;
		wqe->flags = below(16);
		wqe->num_sge = below(4);
		wqe->inline_len = below(70);
		wqe->remote_addr = some_address();
		wqe->rkey = remote_key();
		wqe->srqn = SIM_SRQN;
		if (q->t.service == ROVE_SVC_UD) {
			wqe->ah = below(3);
			wqe->remote_qpn = q->peer->t.qpn;
		}
		for (i = 0; i < 2; i++)
			wqe->sge[i] = (struct rove_sge) {
				q->mr_local->va + below(256), some_length(),
				local_key()
			};
	}
	wqe->wr_id = q->sq_prod++ - q->sq_psn;
	tqp_send(q);
}

static void post_recv(void)
{
	struct rove_recv_wqe *wqe = env_rq_slot(q);
	u32 i, len;

	if (!wqe)
		return;
	wqe->wr_id = posted_recvs;
	wqe->num_sge = below(8) ? below(3) : rnd();
	recv_room[posted_recvs % WRS] = 0;
	for (i = 0; i < 2; i++) {
		len = below(2 * q->t.mtu);
		if (i < wqe->num_sge)
			recv_room[posted_recvs % WRS] += len;
		wqe->sge[i] = (struct rove_sge) {
			q->mr_recv->va + below(512), len,
			below(16) ? q->mr_recv->key : local_key()
		};
	}
	posted_recvs++;
	q->rq_prod++;
}

static u8 *put(u8 *p, u64 v, u32 n)
{
	u32 i;

	for (i = n; i--; v >>= 8)
		p[i] = v;
	return p + n;
}

static u8 pick_opcode(void)
{
	static const u8 answer[] = {
		ROVE_OP_ACKNOWLEDGE, ROVE_OP_ACKNOWLEDGE, ROVE_OP_READ_RESP_FIRST,
		ROVE_OP_READ_RESP_MIDDLE, ROVE_OP_READ_RESP_LAST,
		ROVE_OP_READ_RESP_ONLY, ROVE_OP_ATOMIC_ACK,
	};

	if (!below(32))
		return rnd();
	if (forge_answers && below(8))
		return q->t.service | answer[below(ARRAY_SIZE(answer))];
	return q->t.service | below(0x20);
}

/* A packet with a right ICRC, right in most of its fields. */
static void forge(void)
{
	u8 opcode = pick_opcode(), *bth = packet, *p = bth;
	u32 flags = rove_opcodes[opcode].flags, payload = 0, pad, psn, dma_len;

	if (flags & ROVE_OPF_PAYLOAD || !below(32))
		payload = min3(some_length(), 2 * q->t.mtu + 4, 4092U);
	pad = below(16) ? -payload & 3 : below(4);
	psn = flags & ROVE_OPF_REQUEST ? q->t.resp.epsn : q->t.req.psn_una;
	if (!below(3))
		psn += below(9) - 4;
	else if (!below(8))
		psn += rnd();
	dma_len = below(4) ? payload : some_length();
	if (flags & ROVE_OPF_READ)
		dma_len = some_length();

	p = put(p, opcode, 1);
	p = put(p, (below(4) ? 0x40 : 0xc0) | pad << 4 | !below(64), 1);
	p = put(p, below(64) ? ROVE_PKEY_DEFAULT : rnd(), 2);
	p = put(p, q->t.qpn, 4);
	p = put(p, (u32)!!below(3) << 31 | (psn & ROVE_PSN_MASK), 4);
	if (flags & ROVE_OPF_XRCETH)
		p = put(p, below(8) ? SIM_SRQN : SIM_SRQN + below(3), 4);
	if (flags & ROVE_OPF_DETH) {
		p = put(p, below(8) ? QKEY : rnd(), 4);
		p = put(p, rnd(), 4);
	}
	if (flags & (ROVE_OPF_RETH | ROVE_OPF_ATOMICETH)) {
		p = put(p, some_address() + !below(16), 8);
		p = put(p, remote_key(), 4);
	}
	if (flags & ROVE_OPF_RETH)
		p = put(p, dma_len, 4);
	if (flags & ROVE_OPF_ATOMICETH) {
		p = put(p, rnd(), 8);
		p = put(p, rnd(), 8);
	}
	if (flags & ROVE_OPF_AETH) {
		static const u8 kind[] = { ROVE_AETH_ACK, ROVE_AETH_RNR_NAK, 0x40,
					   ROVE_AETH_NAK, 0x80 };

		p = put(p, kind[below(ARRAY_SIZE(kind))] | below(32), 1);
		p = put(p, q->t.req.ssn + below(8) - 4, 3);
	}
	if (flags & ROVE_OPF_ATOMICACK)
		p = put(p, rnd(), 8);
	if (flags & ROVE_OPF_IMM)
		p = put(p, rnd(), 4);
	if (flags & ROVE_OPF_INV)
		p = put(p, remote_key(), 4);
	repeat_asks = dma_len / q->t.mtu + 1;
	if (flags & ROVE_OPF_REQUEST) {
		requests++;
		if (flags & ROVE_OPF_READ)
			asked += repeat_asks;
		if ((opcode & ~ROVE_SVC_MASK) == ROVE_OP_ATOMIC_WRITE)
			asked++;
	}
	memset(p, 0x77, payload + pad);
	p += payload + pad;
	/* Cut short, with an ICRC that is right for it. */
	if (!below(32))
		p = bth + below(p - bth);
	packet_len = p - bth + ROVE_ICRC_LEN;
	net_inject(q->peer, bth, packet_len);
}

/* The same once more. */
static void repeat(void)
{
	u32 flags = rove_opcodes[packet[0]].flags;

	if (!packet_len)
		return;
	if (packet_len >= 12 + ROVE_ICRC_LEN && flags & ROVE_OPF_REQUEST) {
		requests++;
		asked += flags & ROVE_OPF_READ ? repeat_asks : 1;
	}
	net_inject(q->peer, packet, packet_len);
}

static bool moment_over(void)
{
	static u32 left;

	if (left && event_pending())
		left--;
	else
		left = event_pending() ? 12 : 0;
	return !left;
}

static void step(void)
{
	switch (below(16)) {
	case 0 ... 1:
		post_send();
		break;
	case 2:
		post_recv();
		break;
	case 3:
		sim_run_until(moment_over, NS_PER_S);
		break;
	case 4:
		sim_run_until(NULL, 1000 * NS_PER_S);
		break;
	case 5:
		/* Who waits looks by itself. */
		if (!rove_tqp_waits(&q->t))
			tqp_send(q);
		break;
	case 6:
		if (below(4))
			break;
		q->peer->mr_target->valid = rnd() & 1;
		q->mr_local->valid = rnd() & 1;
		q->mr_recv->valid = rnd() & 1;
		q->sq_broken = !below(8);
		q->rq_broken = !below(8);
		break;
	case 7:
		if (q->t.state == ROVE_TQP_RTS && !below(4)) {
			q->draining = true;
			q->drained = false;
			rove_tqp_drain(&q->t);
			/* SQD is where this may be changed, or taken away. */
			if (rnd() & 1)
				q->t.max_rd_atomic = below(4);
		} else if (q->t.state >= ROVE_TQP_SQD && q->t.state < ROVE_TQP_ERR) {
			rove_tqp_resume(&q->t, sim.now);
		}
		net_flush(q);
		break;
	case 8:
		repeat();
		break;
	default:
		forge();
	}
}

static void one_round(u8 service, bool target)
{
	bool silent = service == ROVE_SVC_UC || service == ROVE_SVC_UD;
	u32 i;

	start(service, target);
	/* For SENDs in hand: its own first. */
	for (i = below(4); i; i--)
		post_recv();
	if (forge_answers)
		for (i = below(4); i; i--)
			post_send();
	/* As long as the bytes last, if it is those that decide. */
	for (i = 0; sim.input_end ? sim.input != NULL : i < STEPS; i++)
		step();
	sim_run_until(NULL, 1000 * NS_PER_S);
	CHECK(!silent || (!answers && !data_packets), "an answer where there is none");
	CHECK(answers <= requests && data_packets <= asked,
	      "%u answers to %u requests, %llu packets of data of %llu", answers,
	      requests, data_packets, asked);
	q->sq_broken = false;
	q->rq_broken = false;
	rove_tqp_error(&q->t);
	rove_tqp_flush(&q->t);
	CHECK(q->sq_released == q->sq_prod && (q->rq_fetched == q->rq_prod || q->t.srq),
	      "work requests are left");
	CHECK(q->t.srq || recvs == posted_recvs, "%u receives of %u", recvs, posted_recvs);
	CHECK(!memcmp(secret, kept, SECRET), "memory without rights was written");
}

static int some_rounds(u32 rounds)
{
	static const u8 services[] = {
		ROVE_SVC_RC, ROVE_SVC_RC, ROVE_SVC_UC, ROVE_SVC_UD, ROVE_SVC_XRC,
	};
	u32 i;

	checks = 0;
	for (i = 0; i < rounds; i++) {
		u8 service = services[below(ARRAY_SIZE(services))];

		one_round(service, service == ROVE_SVC_XRC && !forge_answers);
	}
	return checks;
}

int rogue_run(void)
{
	forge_answers = !strcmp(sim.sc->name, "requester");
	return some_rounds(sim.input ? 1 : ROUNDS);
}

int rogue_some(void)
{
	forge_answers = rnd() & 1;
	return some_rounds(between(1, 30));
}
