// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * datagram.c - UD: scripted cases and noise
 *
 * Address handle 1 leads to the peer, all others nowhere.
 */
#include "sim.h"

#define QKEY	0x11223344U

static struct sim_qp *a, *b;
static int checks;

struct seen {
	struct rove_cqe cqe;
	bool solicited;
};
static struct seen sent[64], got[64];
static u32 sends, recvs;

#define CHECK(cond, ...) do {			\
	checks++;				\
	if (!(cond))				\
		sim_fail(a, __VA_ARGS__);	\
} while (0)

static void on_cqe(struct sim_qp *qp, const struct rove_cqe *cqe, bool recv,
		   bool solicited)
{
	struct seen *log = recv ? got : sent;
	u32 *n = recv ? &recvs : &sends;

	if (qp != (recv ? b : a))
		return;
	CHECK(*n < ARRAY_SIZE(sent), "too many completions");
	CHECK(recv || solicited == !!cqe->status, "a completion of what was sent, solicited");
	log[(*n)++] = (struct seen) { *cqe, solicited };
}

static u8 last[64];	/* BTH and DETH that a put on the wire */
static u32 wired;

static bool on_packet(struct sim_qp *qp, const u8 *bth)
{
	if (qp == a) {
		memcpy(last, bth, 24);
		wired++;
	}
	return false;
}

static u32 be(const u8 *p, u32 n)
{
	u32 v = 0;

	while (n--)
		v = v << 8 | *p++;
	return v;
}

/* A pair in RTS; only its memory and its network are used, not its connection. */
static void start(u32 mtu)
{
	struct sim_qp *qp[2];
	u32 i;

	sim_end_round();
	a = user_still_pair(ROVE_SVC_UD, 32, 32, mtu);
	b = a->peer;
	qp[0] = a;
	qp[1] = b;
	for (i = 0; i < 2; i++) {
		qp[i]->t.qkey = QKEY;
		rove_tqp_start_requester(&qp[i]->t, 0xfffffe);
		qp[i]->on_cqe = on_cqe;
		qp[i]->on_packet = on_packet;
	}
	sends = 0;
	recvs = 0;
	wired = 0;
}

static struct rove_send_wqe *post(u8 op, u32 len, u8 flags)
{
	struct rove_send_wqe *wqe = user_post(a, op, len, flags);

	wqe->ah = 1;
	wqe->remote_qpn = b->t.qpn;
	wqe->remote_qkey = QKEY;
	return wqe;
}

static struct rove_recv_wqe *post_recv(u32 len)
{
	return user_post_recv(b, len);
}

static void go(void)
{
	tqp_send(a);
	sim_run_until(NULL, 100 * NS_PER_S);
}

#define SIGNALED	ROVE_WR_SIGNALED

static u64 counted(enum rove_counter c)
{
	return stats.counter[c];
}

/* Payload, network header, immediate data, numbers. */
static void message(void)
{
	static const u32 lengths[] = { 0, 1, 2, 3, 4, 63, 1000, 1024 };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		u32 len = lengths[i];
		bool imm = i & 1;
		struct rove_send_wqe *wqe;
		const struct rove_cqe *c;

		start(1024);
		fill(b->mr_recv->mem, 1100, 7);
		fill(a->mr_local->mem, len, i);
		post_recv(ROVE_GRH_LEN + len);
		wqe = post(imm ? ROVE_WR_SEND_WITH_IMM : ROVE_WR_SEND, len,
			   SIGNALED | (i & 2 ? ROVE_WR_SOLICITED : 0));
		wqe->imm_data = cpu_to_be32(0xcafe0000 + i);
		go();
		CHECK(sends == 1 && !sent[0].cqe.status && recvs == 1,
		      "%u sends, %u receives", sends, recvs);
		c = &got[0].cqe;
		CHECK(!c->status && c->byte_len == ROVE_GRH_LEN + len &&
		      c->src_qp == a->t.qpn && c->opcode == ROVE_WC_RECV &&
		      got[0].solicited == !!(i & 2), "completion");
		CHECK(c->wc_flags == (ROVE_WC_WITH_GRH |
				      (imm ? ROVE_WC_WITH_IMM : 0)), "flags %x",
		      c->wc_flags);
		CHECK(!imm || c->imm_data == cpu_to_be32(0xcafe0000 + i), "immediate");
		CHECK(c->sl == sim_origin.sl && c->vlan_id == sim_origin.vlan_id &&
		      c->network_hdr_type == sim_origin.network_hdr_type, "origin");
		CHECK(!memcmp(b->mr_recv->mem, sim_origin.grh, ROVE_GRH_LEN) &&
		      !memcmp(b->mr_recv->mem + ROVE_GRH_LEN, a->mr_local->mem, len),
		      "%u bytes differ", len);
		CHECK(be(last + 5, 3) == b->t.qpn && be(last + 8, 1) == 0 &&
		      be(last + 9, 3) == 0xfffffe && be(last + 12, 4) == QKEY &&
		      be(last + 16, 4) == a->t.qpn, "headers");
	}
}

/* PSNs go round; unsignalled ones leave no trace; order is kept. */
static void many(void)
{
	u32 i;

	start(1024);
	for (i = 0; i < 20; i++)
		post_recv(200);
	for (i = 0; i < 20; i++)
		post(ROVE_WR_SEND, i, i == 19 ? SIGNALED : 0);
	go();
	CHECK(sends == 1 && recvs == 20 && be(last + 9, 3) == 17, "%u, %u, psn %x",
	      sends, recvs, be(last + 9, 3));
	CHECK(b->t.resp.msn == 20 && counted(ROVE_CNT_UD_TX) == 20 &&
	      counted(ROVE_CNT_UD_RX) == 20, "%u messages counted", b->t.resp.msn);
	for (i = 0; i < 20; i++)
		CHECK(got[i].cqe.byte_len == ROVE_GRH_LEN + i &&
		      got[i].cqe.wr_id == got[0].cqe.wr_id + i, "order");
}

/* With the high bit set it is the QP's own that is sent. */
static void qkeys(void)
{
	static const struct { u32 wr, own, peer; bool fits; } t[] = {
		{ QKEY, 1, QKEY, true }, { QKEY, QKEY, QKEY + 1, false },
		{ 0x80000000, QKEY, QKEY, true }, { 0xffffffff, QKEY, QKEY, true },
		{ 0x80010000, 5, 0x80010000, false }, { 0x80010000, 0x80010000, 0x80010000, true },
		{ 0x80000000 | QKEY, 5, QKEY, false }, { 0, QKEY, 0, true },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(t); i++) {
		u64 before = counted(ROVE_CNT_RX_BAD_QKEY);

		start(1024);
		a->t.qkey = t[i].own;
		b->t.qkey = t[i].peer;
		post_recv(100);
		post(ROVE_WR_SEND, 8, SIGNALED)->remote_qkey = t[i].wr;
		go();
		CHECK(sends == 1 && !sent[0].cqe.status, "sender, row %u", i);
		CHECK(recvs == t[i].fits, "row %u", i);
		CHECK(counted(ROVE_CNT_RX_BAD_QKEY) - before == !t[i].fits,
		      "Q_Key violations, row %u", i);
	}
}

/* Longer than the buffer: dropped, and the buffer takes the next (hazard 41). */
static void too_long(void)
{
	start(1024);
	fill(b->mr_recv->mem, 300, 9);
	post_recv(ROVE_GRH_LEN + 100);
	post(ROVE_WR_SEND, 101, 0);
	post(ROVE_WR_SEND, 1024, 0);
	go();
	CHECK(!recvs && counted(ROVE_CNT_UD_RX_TOO_LONG) == 2, "%u received", recvs);
	CHECK(b->t.state == ROVE_TQP_RTS && !b->event[ROVE_EVENT_QP_FATAL],
	      "state %d", b->t.state);
	post(ROVE_WR_SEND, 100, 0);
	go();
	CHECK(recvs == 1 && !got[0].cqe.status &&
	      got[0].cqe.byte_len == ROVE_GRH_LEN + 100, "after it");
	/* No room even for the network header. */
	post_recv(ROVE_GRH_LEN - 1);
	post(ROVE_WR_SEND, 0, 0);
	go();
	CHECK(recvs == 1 && counted(ROVE_CNT_UD_RX_TOO_LONG) == 3, "half a header");
	/* The longest that there is. */
	start(4096);
	post_recv(ROVE_GRH_LEN + 4096);
	post(ROVE_WR_SEND, 4096, 0);
	go();
	CHECK(recvs == 1 && got[0].cqe.byte_len == ROVE_GRH_LEN + 4096, "%u received", recvs);
}

/* What does not fit the path is no error, and is not sent (C10-93.1.1). */
static void beyond_path(void)
{
	start(512);
	post_recv(2000);
	post(ROVE_WR_SEND, 513, SIGNALED);
	go();
	CHECK(sends == 1 && !sent[0].cqe.status && !wired && !recvs &&
	      counted(ROVE_CNT_UD_TX_TOO_LONG) == 1,
	      "%u sent, %u on the wire", sends, wired);
	post(ROVE_WR_SEND, 512, SIGNALED);
	go();
	CHECK(sends == 2 && wired == 1 && recvs == 1, "the next");
}

static void nobody_waits(void)
{
	start(1024);
	post(ROVE_WR_SEND, 8, SIGNALED);
	go();
	CHECK(sends == 1 && !sent[0].cqe.status && !recvs &&
	      counted(ROVE_CNT_UD_RX_NO_WQE) == 1, "no receive work request");
	post_recv(100);
	post(ROVE_WR_SEND, 8, SIGNALED);
	go();
	CHECK(recvs == 1, "the next");
}

/* A bad work request: SQE; flushed until RTS; receiving goes on. */
static void queue_error(void)
{
	u32 kind;

	for (kind = 0; kind < 7; kind++) {
		u32 want = ROVE_WC_LOC_QP_OP_ERR, i;
		struct rove_send_wqe *wqe;

		start(1024);
		post_recv(100);
		post(ROVE_WR_SEND, 8, 0);
		wqe = post(ROVE_WR_SEND, 8, 0);
		switch (kind) {
		case 0:
			wqe->ah = 2;
			break;
		case 1:
			wqe->opcode = ROVE_WR_RDMA_WRITE;
			break;
		case 2:
			wqe->num_sge = 3;
			break;
		case 3:
			wqe->flags = ROVE_WR_INLINE;
			wqe->inline_len = 65;
			break;
		case 4:
			wqe->sge[0].lkey ^= 1;
			want = ROVE_WC_LOC_PROT_ERR;
			break;
		case 5:
			wqe->opcode = 0xff;
			break;
		case 6:
			wqe->ah = 0xffffffff;
			break;
		}
		post(ROVE_WR_SEND, 8, 0);
		go();
		CHECK(a->t.state == ROVE_TQP_SQE && a->told_sqe, "state %d, kind %u",
		      a->t.state, kind);
		CHECK(sends == 2 && sent[0].cqe.status == want &&
		      sent[1].cqe.status == ROVE_WC_WR_FLUSH_ERR, "kind %u: %u", kind,
		      sent[0].cqe.status);
		CHECK(sent[0].cqe.byte_len == (kind % 2 || kind == 2 ? 0 : 8) &&
		      !sent[1].cqe.byte_len, "kind %u: %u bytes, then %u", kind,
		      sent[0].cqe.byte_len, sent[1].cqe.byte_len);
		CHECK(!rove_tqp_waits(&a->t), "nobody would flush");
		post(ROVE_WR_SEND, 8, 0);
		go();
		CHECK(sends == 3 && sent[2].cqe.status == ROVE_WC_WR_FLUSH_ERR &&
		      recvs == 1 && wired == 1, "kind %u: posted in SQE", kind);
		rove_tqp_resume(&a->t, sim.now);
		post_recv(100);
		for (i = 0; i < 3; i++)
			post(ROVE_WR_SEND, 8, SIGNALED);
		go();
		CHECK(sends == 6 && !sent[5].cqe.status && recvs == 2, "kind %u: not back",
		      kind);
	}
}

/* A receive work request that is no good ends the QP. */
static void receive_error(void)
{
	struct rove_recv_wqe *two;

	start(1024);
	post_recv(100)->sge[0].lkey ^= 1;
	post_recv(100);
	post(ROVE_WR_SEND, 8, 0);
	go();
	CHECK(recvs == 2 && got[0].cqe.status == ROVE_WC_LOC_PROT_ERR &&
	      got[1].cqe.status == ROVE_WC_WR_FLUSH_ERR &&
	      b->t.state == ROVE_TQP_ERR, "lkey");
	start(1024);
	post_recv(100)->num_sge = 3;
	post(ROVE_WR_SEND, 8, 0);
	go();
	CHECK(recvs == 1 && got[0].cqe.status == ROVE_WC_LOC_QP_OP_ERR &&
	      b->t.state == ROVE_TQP_ERR, "num_sge");
	start(1024);
	two = post_recv(100);
	two->num_sge = 2;
	two->sge[1] = two->sge[0];
	two->sge[0].lkey ^= 1;
	two->sge[0].length = ROVE_GRH_LEN;
	post(ROVE_WR_SEND, 8, 0);
	go();
	CHECK(recvs == 1 && got[0].cqe.status == ROVE_WC_LOC_PROT_ERR &&
	      b->event[ROVE_EVENT_QP_FATAL] == 1, "lkey of two");
	start(1024);
	b->rq_broken = true;
	post(ROVE_WR_SEND, 8, 0);
	go();
	CHECK(!recvs && b->t.state == ROVE_TQP_ERR &&
	      counted(ROVE_CNT_BAD_RING) == 1, "ring");
	/* The receive that one before has had is not used again. */
	start(1024);
	post_recv(100);
	post(ROVE_WR_SEND, 8, 0);
	go();
	b->rq_broken = true;
	post(ROVE_WR_SEND, 8, 0);
	go();
	CHECK(recvs == 1 && !got[0].cqe.status && counted(ROVE_CNT_UD_RX) == 1 &&
	      counted(ROVE_CNT_BAD_RING) == 2, "ring, behind another");
	start(1024);
	a->sq_broken = true;
	go();
	CHECK(a->t.state == ROVE_TQP_ERR && a->event[ROVE_EVENT_QP_FATAL] == 1 &&
	      counted(ROVE_CNT_BAD_RING) == 3, "send ring");
}

static void states(void)
{
	start(1024);
	post_recv(100);
	b->t.state = ROVE_TQP_INIT;
	post(ROVE_WR_SEND, 8, 0);
	go();
	CHECK(!recvs && counted(ROVE_CNT_RX_BAD_STATE) == 1, "INIT");
	b->t.state = ROVE_TQP_RTR;
	post(ROVE_WR_SEND, 8, 0);
	go();
	CHECK(recvs == 1, "RTR");
	/* Drained at once, and silent until RTS. */
	a->draining = true;
	rove_tqp_drain(&a->t);
	CHECK(a->event[ROVE_EVENT_SQ_DRAINED] == 1, "drained");
	post_recv(100);
	post(ROVE_WR_SEND, 8, SIGNALED);
	tqp_send(a);
	CHECK(!sends && wired == 2, "SQD");
	/* The program goes on some time after it was told. */
	go();
	CHECK(sends == 1 && recvs == 2, "RTS");
	rove_tqp_error(&a->t);
	post(ROVE_WR_SEND, 8, 0);
	rove_tqp_flush(&a->t);
	CHECK(sends == 2 && sent[1].cqe.status == ROVE_WC_WR_FLUSH_ERR, "ERR");
}

/* An XRC target of datagrams, if there were one: nothing is ever fetched. */
static void no_send_queue(void)
{
	start(1024);
	a->t.req.depth = 0;
	post(ROVE_WR_SEND, 8, SIGNALED);
	go();
	rove_tqp_error(&a->t);
	CHECK(!sends && !wired && a->sq_fetched != a->sq_prod, "%u sent", sends);
}

/* What other services say is not for a UD QP, nor UD's for others. */
static void services(void)
{
	u32 svc, op, n = 0;

	start(1024);
	post_recv(600);
	for (svc = 0; svc < 256; svc += 0x20) {
		for (op = 0; op < 0x20; op++) {
			u8 bth[512] = {
				svc | op, 0x40, 0xff, 0xff,
				0, b->t.qpn >> 16, b->t.qpn >> 8, b->t.qpn,
				0, 0, 0, 0, QKEY >> 24, QKEY >> 16 & 0xff,
				QKEY >> 8 & 0xff, QKEY & 0xff,
			};

			if (svc == ROVE_SVC_UD && (op == ROVE_OP_SEND_ONLY ||
						   op == ROVE_OP_SEND_ONLY_IMM))
				continue;
			net_inject(a, bth, 60);
			sim_run_until(NULL, NS_PER_S);
			n++;
		}
	}
	CHECK(n == 254 && !recvs && b->t.state == ROVE_TQP_RTS, "%u received", recvs);
	b->t.service = ROVE_SVC_RC;
	post(ROVE_WR_SEND, 8, 0);
	go();
	CHECK(!recvs && counted(ROVE_CNT_RX_BAD_SERVICE), "an RC QP took a datagram");
}

/* Datagrams of chance bytes: nothing but the buffer is written. */
static void noise(void)
{
	u32 round, i;

	for (round = 0; round < 100; round++) {
		u32 posted = between(1, 16), size = below(400);
		u8 *guard;

		start(1024);
		guard = b->mr_recv->mem + size;
		fill(guard, 200, round);
		for (i = 0; i < posted; i++)
			post_recv(size);
		for (i = 0; i < 100; i++) {
			u32 n = 12 + below(rnd() & 1 ? 20 : 400);
			u8 bth[600], keep[200];

			fill(bth, n, rnd());
			bth[0] = ROVE_SVC_UD | (4 + below(2));
			bth[1] = 0x40 | below(4) << 4;
			bth[2] = bth[3] = 0xff;
			bth[5] = b->t.qpn >> 16;
			bth[6] = b->t.qpn >> 8;
			bth[7] = b->t.qpn;
			if (below(4) && n >= 16)
				memcpy(bth + 12, (u8[]){ 0x11, 0x22, 0x33, 0x44 }, 4);
			memcpy(keep, guard, sizeof(keep));
			net_inject(a, bth, n + 4);
			sim_run_until(NULL, NS_PER_S);
			CHECK(!memcmp(keep, guard, sizeof(keep)), "written behind the buffer");
		}
		CHECK(b->t.state == ROVE_TQP_RTS && recvs <= posted, "%u of %u", recvs,
		      posted);
		for (i = 0; i < recvs; i++)
			CHECK(!got[i].cqe.status &&
			      got[i].cqe.byte_len >= ROVE_GRH_LEN &&
			      got[i].cqe.byte_len <= size, "length %u of %u",
			      got[i].cqe.byte_len, size);
	}
}

int datagram_run(void)
{
	static void (*const cases[])(void) = {
		message, many, qkeys, too_long, beyond_path, nobody_waits,
		queue_error, receive_error, states, no_send_queue,
		services, noise,
	};
	u32 i;

	checks = 0;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		trace(NULL, "case %u", i);
		memset(&stats, 0, sizeof(stats));
		cases[i]();
	}
	return checks;
}
