// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * byhand.c - one end, and packets made by hand: what it answers, and when it asks again
 *
 * There is no peer.  All that the end sends is written down and lost, all that it
 * receives stands in the case, so every packet, completion and counter is known.
 */
#include "engine.h"
#include "sim.h"

#define MTU		256
#define PSN		100	/* its first */
#define EPSN		5000	/* that it expects */
#define SIGNALED	ROVE_WR_SIGNALED
#define ACK_PLAIN	(ROVE_AETH_ACK | ROVE_AETH_NO_CREDIT)

static struct sim_qp *q;
static struct scenario sc;	/* the round's own, to change */
static int checks;

static struct {
	u64 at;
	u8 opcode;
	u32 psn;
	bool ask;
	u8 syndrome;
	u32 msn;
	u32 len;	/* that a READ request of RC's asks for */
} wire[4096];
static u32 wired;
static struct rove_cqe sent[256], got[256];
static u32 sends, recvs;
static u32 again;	/* so often what is done is posted once more */
static u32 local_status;	/* of local work */

#define CHECK(cond, ...) do {			\
	checks++;				\
	if (!(cond))				\
		sim_fail(q, __VA_ARGS__);	\
} while (0)

#define COUNTED(c, n)					\
	CHECK(stats.counter[ROVE_CNT_##c] == (n), #c " is %llu, not %u",	\
	      stats.counter[ROVE_CNT_##c], (u32)(n))

static u64 get(const u8 *p, u32 n)
{
	u64 v = 0;

	while (n--)
		v = v << 8 | *p++;
	return v;
}

static void put(u8 *p, u64 v, u32 n)
{
	while (n--) {
		p[n] = v;
		v >>= 8;
	}
}

static bool on_packet(struct sim_qp *qp, const u8 *bth)
{
	bool aeth = rove_opcodes[bth[0]].flags & ROVE_OPF_AETH;

	CHECK(wired < ARRAY_SIZE(wire), "too many packets");
	wire[wired].at = sim.now;
	wire[wired].opcode = bth[0];
	wire[wired].psn = get(bth + 9, 3);
	wire[wired].ask = bth[8] & 0x80;
	wire[wired].syndrome = aeth ? bth[12] : 0;
	wire[wired].msn = aeth ? get(bth + 13, 3) : 0;
	wire[wired].len = bth[0] == ROVE_OP_READ_REQUEST ? get(bth + 24, 4) : 0;
	wired++;
	return true;
}

static void on_cqe(struct sim_qp *qp, const struct rove_cqe *cqe, bool recv,
		   bool solicited)
{
	struct rove_cqe *log = recv ? got : sent;
	u32 *n = recv ? &recvs : &sends;

	if (again) {
		again--;
		user_post(q, ROVE_WR_SEND, MTU + 1, SIGNALED)->ah = 1;
		return;
	}
	CHECK(*n < ARRAY_SIZE(sent), "too many completions");
	log[(*n)++] = *cqe;
}

static u32 on_local(const struct rove_send_wqe *wqe)
{
	if (again) {
		again--;
		user_post(q, wqe->opcode, 0, 0);
	}
	return local_status;
}

/* It waits for ever for an acknowledgment, unless a case has it otherwise. */
static void start_queues(u8 service, u32 sq_depth, u32 rq_depth)
{
	sim_end_round();
	sc = *sim.sc;
	sim.sc = &sc;
	sc.paging = 0;
	sc.absent = 0;
	sc.eagain = 0;
	q = user_still_pair(service, sq_depth, rq_depth, MTU);
	rove_tqp_start_responder(&q->t, EPSN);
	rove_tqp_start_requester(&q->t, PSN);
	q->t.timeout = 0;
	q->on_cqe = on_cqe;
	q->on_packet = on_packet;
	q->on_local = on_local;
	q->gro = false;
	local_status = ROVE_WC_SUCCESS;
	sends = 0;
	recvs = 0;
	wired = 0;
	memset(sent, 0, sizeof(sent));
	memset(got, 0, sizeof(got));
	memset(&stats, 0, sizeof(stats));
}

static void start(u8 service)
{
	start_queues(service, 128, 128);
}

static void window(u32 n)
{
	q->t.req.window = n;
	q->t.req.cwnd = n;
	q->t.req.ssthresh = n;
}

static void run(void)
{
	sim_run_until(NULL, 100 * NS_PER_S);
}

static struct rove_send_wqe *post(u8 op, u32 len, u8 flags)
{
	struct rove_send_wqe *wqe = user_post(q, op, len, flags);

	wqe->remote_addr = 8;
	wqe->rkey = 1;
	return wqe;
}

static struct rove_recv_wqe *post_recv(u32 len)
{
	return user_post_recv(q, len);
}

static void go(void)
{
	tqp_send(q);
	run();
}

/* A response, not yet looked at: its AETH, and payload. */
static void answer_soon(u8 opcode, u32 psn, u8 syndrome, u32 msn, u32 payload)
{
	u32 n = rove_opcodes[opcode].hdr_len;
	u8 bth[600] = { opcode, 0x40 | (-payload & 3) << 4, 0xff, 0xff };

	put(bth + 5, q->t.qpn, 3);
	put(bth + 9, psn, 3);
	if (rove_opcodes[opcode].flags & ROVE_OPF_AETH)
		put(bth + 12, (u32)syndrome << 24 | msn, 4);
	memset(bth + n, 0x77, payload);
	net_inject(q->peer, bth, n + ((payload + 3) & ~3) + ROVE_ICRC_LEN);
}

static void answer(u8 opcode, u32 psn, u8 syndrome, u32 msn, u32 payload)
{
	answer_soon(opcode, psn, syndrome, msn, payload);
	run();
}

static void ack(u32 psn, u32 msn)
{
	answer(ROVE_OP_ACKNOWLEDGE, psn, ACK_PLAIN, msn, 0);
}

static u32 srqn = SIM_SRQN;	/* of XRC requests */
static u32 beyond;		/* so much higher are the addresses that requests name */

/* A request, not yet looked at; @len: what its RETH says. */
static void request(u8 opcode, u32 psn, bool ask, u32 len, u32 payload)
{
	u32 flags = rove_opcodes[opcode].flags, n = 12;
	u8 bth[600] = { opcode, 0x40 | (-payload & 3) << 4, 0xff, 0xff };

	put(bth + 5, q->t.qpn, 3);
	bth[8] = ask << 7;
	put(bth + 9, psn, 3);
	if (flags & ROVE_OPF_XRCETH) {
		put(bth + n, srqn, 4);
		n += 4;
	}
	if (flags & (ROVE_OPF_RETH | ROVE_OPF_ATOMICETH)) {
		put(bth + n, ((q->peer->mr_target->va + 7) & ~7ULL) + beyond, 8);
		put(bth + n + 8, q->peer->mr_target->key, 4);
		if (flags & ROVE_OPF_RETH)
			put(bth + n + 12, len, 4);
	}
	n = rove_opcodes[opcode].hdr_len;
	memset(bth + n, 0x77, payload);
	net_inject(q->peer, bth, n + ((payload + 3) & ~3) + ROVE_ICRC_LEN);
}

static bool untouched(void)
{
	return !memcmp(q->peer->tmem, q->peer->tshadow, q->peer->tsize);
}

/* ---- requester ---- */

/*
 * While more follows, each fourth part of the window is asked for, and after 64 packets
 * what a program waits for; of long messages after 16, or an eighth of the window.
 */
static void asks(void)
{
	static const struct {
		u32 npkts;
		u32 window;
		u32 spacing;
	} longer[] = { { 8, 2048, 128 }, { 64, 2048, 256 }, { 16, 1152, 144 } };
	static const u8 op[] = { ROVE_WR_RDMA_WRITE, ROVE_WR_SEND };
	struct mr *mr;
	u32 i, k, odd;

	start(ROVE_SVC_RC);
	window(320);
	mr = mr_add(q, 0, q->send_mem.mem, 65536, 0);
	post(ROVE_WR_RDMA_WRITE, 65536, SIGNALED)->sge[0] =
		(struct rove_sge) { 0, 65536, mr->key };
	go();
	CHECK(wired == 256, "%u packets", wired);
	for (i = 0; i < wired; i++)
		CHECK(wire[i].ask == (i == 127 || i == 255), "packet %u: %d", i,
		      wire[i].ask);

	start(ROVE_SVC_RC);
	window(16);
	for (i = 0; i < 7; i++)
		post(ROVE_WR_RDMA_WRITE, 8, 0);
	go();
	for (i = 0; i < 7; i++)
		CHECK(wire[i].ask == (i == 3 || i == 6), "packet %u: %d", i, wire[i].ask);

	for (k = 0; k < 4; k++) {
		odd = k & 1;	/* the 64th is not waited for */
		start(ROVE_SVC_RC);
		window(1024);
		for (i = 0; i < 128; i++)
			post(op[k / 2], 8, odd && i == 63 ? 0 : SIGNALED);
		go();
		CHECK(wired == 128, "%u packets", wired);
		for (i = 0; i < wired; i++)
			CHECK(wire[i].ask == (i == 63 + odd || i == 127),
			      "operation %u, message %u: %d", op[k / 2], i, wire[i].ask);
	}

	/* Each completes with an entry, asked for or not. */
	start(ROVE_SVC_RC);
	window(1024);
	q->t.sq_sig_all = true;
	for (i = 0; i < 128; i++)
		post(ROVE_WR_RDMA_WRITE, 8, 0);
	go();
	for (i = 0; i < wired; i++)
		CHECK(wire[i].ask == (i == 63 || i == 127), "message %u: %d", i, wire[i].ask);

	/* What follows may be held back for long. */
	start(ROVE_SVC_RC);
	window(64);
	q->t.paced = true;
	for (i = 0; i < 4; i++)
		post(ROVE_WR_RDMA_WRITE, 8, 0);
	go();
	for (i = 0; i < 4; i++)
		CHECK(wire[i].ask, "message %u does not ask", i);

	for (k = 0; k < ARRAY_SIZE(longer); k++) {
		u32 npkts = longer[k].npkts, spacing = longer[k].spacing;

		start(ROVE_SVC_RC);
		window(longer[k].window);
		mr = mr_add(q, 0, q->send_mem.mem, npkts * MTU, 0);
		for (i = 0; i < 4 * spacing / npkts; i++)
			post(ROVE_WR_RDMA_WRITE, npkts * MTU, SIGNALED)->sge[0] =
				(struct rove_sge) { 0, npkts * MTU, mr->key };
		go();
		CHECK(wired == 4 * spacing, "%u packets", wired);
		for (i = 0; i < wired; i++)
			CHECK(wire[i].ask == !((i + 1) % spacing), "packet %u: %d", i,
			      wire[i].ask);
	}
}

/* SENDs and the credits that are told of. */
static void credits(void)
{
	u32 i;

	start(ROVE_SVC_RC);
	post(ROVE_WR_SEND, 8, SIGNALED);
	post(ROVE_WR_SEND, 8, SIGNALED);
	go();
	CHECK(wired == 2, "%u packets", wired);
	for (i = 0; i < 6; i++)
		post(ROVE_WR_SEND, 8, SIGNALED);
	/* Two messages and credits for three: up to the fifth. */
	answer(ROVE_OP_ACKNOWLEDGE, PSN + 1, 3, 2, 0);
	CHECK(wired == 5 && !wire[3].ask && wire[4].ask, "%u packets, asks %d", wired,
	      wire[4].ask);
	/* The same ACK again, and one more. */
	answer(ROVE_OP_ACKNOWLEDGE, PSN + 1, 4, 2, 0);
	CHECK(wired == 6 && sends == 2, "unsolicited credits: %u packets", wired);
	/* A WRITE needs none. */
	answer(ROVE_OP_ACKNOWLEDGE, PSN + 5, ACK_PLAIN, 6, 0);
	CHECK(wired == 8, "credits not counted: %u packets", wired);
	COUNTED(RX_UNEXPECTED, 0);

	/* Where READs follow, only their answers may tell. */
	start(ROVE_SVC_RC);
	post(ROVE_WR_SEND, 8, SIGNALED);
	go();
	answer(ROVE_OP_ACKNOWLEDGE, PSN, 1, 1, 0);
	post(ROVE_WR_SEND, 8, SIGNALED);
	post(ROVE_WR_RDMA_READ, 8, SIGNALED);
	for (i = 0; i < 3; i++)
		post(ROVE_WR_SEND, 8, SIGNALED);
	go();
	CHECK(wired == 3, "%u packets", wired);
	answer(ROVE_OP_READ_RESP_ONLY, PSN + 2, 2, 3, 8);
	CHECK(wired == 5 && q->t.req.lsn == 5, "%u packets, LSN %u", wired, q->t.req.lsn);
	ack(PSN + 4, 5);
	/* Not one that is under way, all of it that has gone acknowledged. */
	start(ROVE_SVC_RC);
	window(4);
	post(ROVE_WR_SEND, 8 * MTU, SIGNALED);
	go();
	answer(ROVE_OP_ACKNOWLEDGE, PSN + 3, ACK_PLAIN, 0, 0);
	CHECK(wired == 8 && q->t.req.ssn == 1, "%u packets, SSN %u", wired, q->t.req.ssn);
	/* Old ones, and none: nothing is taken back. */
	for (i = 0; i < 2; i++) {
		start(ROVE_SVC_RC);
		post(ROVE_WR_SEND, 8, SIGNALED);
		go();
		answer(ROVE_OP_ACKNOWLEDGE, PSN, 3, 1, 0);
		post(ROVE_WR_ATOMIC_FETCH_AND_ADD, 8, SIGNALED);
		go();
		answer(ROVE_OP_ATOMIC_ACK, PSN + 1, i ? ROVE_AETH_NO_CREDIT : 0, 2, 0);
		CHECK(sends == 2 && q->t.req.lsn_valid && q->t.req.lsn == 4, "LSN %u",
		      q->t.req.lsn);
	}
}

/* What is complete, and nothing more to do: nobody is woken. */
static void nothing_follows(void)
{
	u32 i;

	start(ROVE_SVC_RC);
	for (i = 0; i < 20; i++) {
		post(ROVE_WR_RDMA_WRITE, 8, SIGNALED);
		tqp_send(q);
		stats.events = 0;
		ack(PSN + i, i + 1);
		CHECK(sends == i + 1 && stats.events == 1, "%u completions, %llu events",
		      sends, stats.events);
	}
}

/* An answer shows that an earlier READ's or atomic's was lost: at once, and once. */
static void implied_nak(void)
{
	static const struct {
		u8 opcode;
		u8 syndrome;
		u32 psn;
	} t[] = {
		{ ROVE_OP_ACKNOWLEDGE, ACK_PLAIN, PSN + 1 },
		{ ROVE_OP_ACKNOWLEDGE, ACK_PLAIN, PSN },
		{ ROVE_OP_ACKNOWLEDGE, ROVE_AETH_RNR_NAK | 1, PSN + 1 },
		{ ROVE_OP_ACKNOWLEDGE, ROVE_AETH_NAK | ROVE_NAK_PSN_SEQ, PSN + 1 },
		{ ROVE_OP_ACKNOWLEDGE, ROVE_AETH_NAK | ROVE_NAK_REM_OP, PSN + 2 },
		{ ROVE_OP_READ_RESP_ONLY, ACK_PLAIN, PSN + 2 },
		{ ROVE_OP_ATOMIC_ACK, ACK_PLAIN, PSN + 2 },
	};
	static const u8 first[] = { ROVE_WR_RDMA_READ, ROVE_WR_ATOMIC_FETCH_AND_ADD,
				    ROVE_WR_ATOMIC_WRITE };
	u32 i, k;

	for (i = 0; i < ARRAY_SIZE(t); i++) {
		for (k = 0; k < ARRAY_SIZE(first); k++) {
			start(ROVE_SVC_RC);
			post(first[k], 8, SIGNALED);
			post(ROVE_WR_SEND, 8, SIGNALED);
			post(t[i].opcode == ROVE_OP_ATOMIC_ACK ?
			     ROVE_WR_ATOMIC_FETCH_AND_ADD : ROVE_WR_RDMA_READ, 8, SIGNALED);
			go();
			CHECK(wired == 3, "%u packets", wired);
			answer(t[i].opcode, t[i].psn, t[i].syndrome, 1, 8 *
			       (t[i].opcode == ROVE_OP_READ_RESP_ONLY));
			CHECK(wired == 6 && wire[3].psn == PSN && !sends,
			      "case %u: %u packets", i, wired);
			answer(t[i].opcode, t[i].psn, t[i].syndrome, 1, 8 *
			       (t[i].opcode == ROVE_OP_READ_RESP_ONLY));
			CHECK(wired == 6, "case %u: twice", i);
			COUNTED(IMPLIED_NAK, 1);
			CHECK(q->t.req.cwnd == 4, "cwnd %u", q->t.req.cwnd);
		}
	}
}

/*
 * The last packet has not asked for an acknowledgment, for more was to follow, and that waits for
 * its payload, perhaps until this one is complete.
 */
static void absent_behind(void)
{
	start(ROVE_SVC_RC);
	q->absent = true;
	q->psn_absent = PSN + 1;
	post(ROVE_WR_RDMA_WRITE, 8, SIGNALED);
	post(ROVE_WR_RDMA_WRITE, 8, SIGNALED);
	go();
	CHECK(wired == 2 && !wire[0].ask && wire[1].psn == PSN && wire[1].ask, "%u packets", wired);
	go();
	CHECK(wired == 2, "%u packets", wired);
	ack(PSN, 1);
	CHECK(sends == 1 && !sent[0].status && wired == 2, "%u completions", sends);
	q->absent = false;
	go();
	CHECK(wired == 3 && wire[2].psn == PSN + 1 && wire[2].ask, "%u packets", wired);
}

/* Answers of another sort than the request's change nothing. */
static void wrong_sort(void)
{
	static const u8 op[] = { ROVE_WR_SEND, ROVE_WR_RDMA_WRITE, ROVE_WR_RDMA_READ,
		ROVE_WR_ATOMIC_CMP_AND_SWP, ROVE_WR_ATOMIC_FETCH_AND_ADD,
		ROVE_WR_ATOMIC_WRITE };
	u32 i, atomic;

	for (i = 0; i < ARRAY_SIZE(op); i++) {
		for (atomic = 0; atomic < 2; atomic++) {
			if (op[i] == ROVE_WR_RDMA_READ || op[i] == ROVE_WR_ATOMIC_WRITE ?
			    !atomic : atomic && is_atomic(op[i]))
				continue;
			start(ROVE_SVC_RC);
			memset(q->send_mem.mem, UNTOUCHED, 8);
			post(op[i], 8, SIGNALED);
			go();
			answer(atomic ? ROVE_OP_ATOMIC_ACK : ROVE_OP_READ_RESP_ONLY, PSN,
			       ACK_PLAIN, 1, atomic ? 0 : 8);
			CHECK(!sends && wired == 1 && q->t.state == ROVE_TQP_RTS &&
			      q->send_mem.mem[0] == UNTOUCHED,
			      "operation %u: %u completions, state %d", op[i], sends,
			      q->t.state);
			COUNTED(RX_UNEXPECTED, 1);
		}
	}
}

/* The last packet of a READ that does not say so, and the lengths (hazard 37). */
static void bad_responses(void)
{
	static const struct {
		u8 op;
		u32 len;
		u8 opcode;
		u32 payload;
		bool good;
	} t[] = {
		{ ROVE_WR_RDMA_READ, 100, ROVE_OP_READ_RESP_ONLY, 100, true },
		{ ROVE_WR_RDMA_READ, 100, ROVE_OP_READ_RESP_LAST, 100, true },
		{ ROVE_WR_RDMA_READ, 100, ROVE_OP_READ_RESP_FIRST, 100, false },
		{ ROVE_WR_RDMA_READ, 100, ROVE_OP_READ_RESP_MIDDLE, 100, false },
		{ ROVE_WR_RDMA_READ, 100, ROVE_OP_READ_RESP_ONLY, 99, false },
		{ ROVE_WR_RDMA_READ, 100, ROVE_OP_READ_RESP_ONLY, 101, false },
		{ ROVE_WR_RDMA_READ, 0, ROVE_OP_READ_RESP_ONLY, 0, true },
		{ ROVE_WR_RDMA_READ, 0, ROVE_OP_READ_RESP_ONLY, 1, false },
		{ ROVE_WR_ATOMIC_WRITE, 8, ROVE_OP_READ_RESP_ONLY, 0, true },
		{ ROVE_WR_ATOMIC_WRITE, 8, ROVE_OP_READ_RESP_ONLY, 8, false },
		{ ROVE_WR_RDMA_READ, 600, ROVE_OP_READ_RESP_FIRST, 255, false },
		{ ROVE_WR_RDMA_READ, 600, ROVE_OP_READ_RESP_FIRST, 257, false },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(t); i++) {
		start(ROVE_SVC_RC);
		post(t[i].op, t[i].len, SIGNALED);
		go();
		answer(t[i].opcode, PSN, ACK_PLAIN, 1, t[i].payload);
		CHECK(sends == 1 && sent[0].status == (t[i].good ? ROVE_WC_SUCCESS :
						       ROVE_WC_BAD_RESP_ERR),
		      "row %u: %u completions, status %u", i, sends, sent[0].status);
	}
}

/* What an answer may say, and what it may not. */
static void syndromes(void)
{
	static const u8 fatal[] = { 0, ROVE_WC_REM_INV_REQ_ERR,
				    ROVE_WC_REM_ACCESS_ERR, ROVE_WC_REM_OP_ERR };
	u32 s;

	for (s = 0; s < 256; s++) {
		u32 kind = s & ROVE_AETH_KIND, code = s & ROVE_AETH_VALUE;
		bool known = kind == ROVE_AETH_ACK || kind == ROVE_AETH_RNR_NAK ||
			     (kind == ROVE_AETH_NAK && code < 4);

		start(ROVE_SVC_RC);
		post(ROVE_WR_RDMA_WRITE, 8, SIGNALED);
		go();
		answer(ROVE_OP_ACKNOWLEDGE, PSN, s, 1, 0);
		COUNTED(RX_UNEXPECTED, !known);
		COUNTED(RNR_NAK_RX, kind == ROVE_AETH_RNR_NAK);
		COUNTED(SEQ_NAK_RX, s == ROVE_AETH_NAK);
		COUNTED(NAK_RX, known && s > ROVE_AETH_NAK);
		COUNTED(TIMEOUT, 0);
		if (known && s > ROVE_AETH_NAK)
			CHECK(sends == 1 && sent[0].status == fatal[code] &&
			      q->t.state == ROVE_TQP_ERR, "NAK %u: status %u", code,
			      sent[0].status);
		else
			CHECK(sends == (kind == ROVE_AETH_ACK) && !sent[0].status &&
			      q->t.state == ROVE_TQP_RTS, "syndrome %x: %u completions",
			      s, sends);
		CHECK(wired == 1 + (s == ROVE_AETH_NAK || kind == ROVE_AETH_RNR_NAK),
		      "syndrome %x: %u packets", s, wired);
	}
}

/* Numbers that were never sent, or are long done. */
static void old_news(void)
{
	u32 i;

	start(ROVE_SVC_RC);
	for (i = 0; i < 4; i++)
		post(ROVE_WR_RDMA_WRITE, 8, SIGNALED);
	go();
	ack(PSN + 1, 2);
	ack(PSN + 4, 4);
	ack(PSN, 1);
	ack(PSN - 1, 1);
	CHECK(sends == 2 && wired == 4, "%u completions, %u packets", sends, wired);
	COUNTED(RX_UNEXPECTED, 3);
	ack(PSN + 3, 4);
	CHECK(sends == 4, "%u completions", sends);
}

/* Twice the timeout, thrice when that has brought nothing; a millisecond at least. */
static void timeouts(void)
{
	u64 t = 4096ULL << 10, wait;
	u32 i;

	start(ROVE_SVC_RC);
	q->t.timeout = 10;
	q->t.retry_cnt = 3;
	post(ROVE_WR_RDMA_WRITE, 8, SIGNALED);
	go();
	CHECK(wired == 4 && sends == 1 && sent[0].status == ROVE_WC_RETRY_EXC_ERR,
	      "%u packets, status %u", wired, sent[0].status);
	for (i = 1; i < wired; i++) {
		wait = wire[i].at - wire[i - 1].at;
		CHECK(wait >= (i == 1 ? 2 : 3) * t && wait < (i == 1 ? 2 : 3) * t + 25000,
		      "retry %u after %llu ns of %llu", i, wait, t);
	}
	start(ROVE_SVC_RC);
	q->t.timeout = 1;
	q->t.retry_cnt = 1;
	post(ROVE_WR_RDMA_WRITE, 8, SIGNALED);
	go();
	wait = wire[1].at - wire[0].at;
	CHECK(wired == 2 && wait >= NS_PER_MS && wait < NS_PER_MS + 25000,
	      "a short timeout takes %llu ns", wait);
}

static u32 awaited;

static bool acknowledged(void)
{
	return q->t.req.psn_una == awaited;
}

/* A READ of four packets and one of one have been asked for, and the first has come. */
static void first_response(u32 depth)
{
	start(ROVE_SVC_RC);
	window(64);
	q->t.req.depth = depth;
	q->t.retry_cnt = 3;
	post(ROVE_WR_RDMA_READ, 4 * MTU, SIGNALED);
	post(ROVE_WR_RDMA_READ, MTU, SIGNALED);
	go();
	answer_soon(ROVE_OP_READ_RESP_FIRST, PSN, ACK_PLAIN, 1, MTU);
	awaited = PSN + 1;
	sim_run_until(acknowledged, NS_PER_S);
	CHECK(wired == min(depth, 2U) && !sends, "%u packets", wired);
}

static bool nak_taken(void)
{
	return stats.counter[ROVE_CNT_SEQ_NAK_RX];
}

/* The second is asked for again, but not yet; the peer's other answers are still to come. */
static void nak(void)
{
	sc.eagain = 1000000;
	answer_soon(ROVE_OP_ACKNOWLEDGE, PSN + 1, ROVE_AETH_NAK | ROVE_NAK_PSN_SEQ, 1, 0);
	sim_run_until(nak_taken, NS_PER_S);
	window(64);
	CHECK(q->t.req.retried == 1, "%u retries", q->t.req.retried);
}

/* What comes between the first and the last of a READ's responses, at the same time. */
static void response_middles(void)
{
	u32 i;

	/* As long as a packet may be, and none of them the last. */
	for (i = 0; i < 2; i++) {
		first_response(128);
		answer_soon(ROVE_OP_READ_RESP_MIDDLE, PSN + 1, 0, 0, i ? MTU : MTU - 4);
		answer_soon(ROVE_OP_READ_RESP_MIDDLE, PSN + 2, 0, 0, MTU);
		answer(ROVE_OP_READ_RESP_MIDDLE, PSN + 3, 0, 0, MTU);
		CHECK(sends == 2 && sent[0].status == ROVE_WC_BAD_RESP_ERR &&
		      q->t.req.psn_una == PSN + (i ? 3 : 1), "%u completions, PSN %x", sends,
		      q->t.req.psn_una);
	}
	/* The next piece is asked for, although the peer does not end the one before. */
	first_response(128);
	q->t.req.psn_next = PSN + 2;
	q->t.req.cur = q->t.req.done;
	answer(ROVE_OP_READ_RESP_MIDDLE, PSN + 1, 0, 0, MTU);
	CHECK(wired == 4 && wire[2].psn == PSN + 2, "%u packets", wired);
	/* Not of what is no READ. */
	start(ROVE_SVC_RC);
	window(64);
	post(ROVE_WR_RDMA_WRITE, 8, SIGNALED);
	post(ROVE_WR_RDMA_WRITE, 3 * MTU, SIGNALED);
	go();
	answer_soon(ROVE_OP_ACKNOWLEDGE, PSN, ACK_PLAIN, 1, 0);
	answer(ROVE_OP_READ_RESP_MIDDLE, PSN + 1, 0, 0, MTU);
	CHECK(sends == 1 && q->t.req.psn_una == PSN + 1, "PSN %x", q->t.req.psn_una);
	COUNTED(RX_UNEXPECTED, 1);
	/* Nor after the end. */
	first_response(1);
	rove_tqp_error(&q->t);
	answer(ROVE_OP_READ_RESP_MIDDLE, PSN + 1, 0, 0, MTU);
	COUNTED(RX_BAD_STATE, 1);
	/* Each lets more be under way. */
	first_response(128);
	q->t.req.cwnd = 8;
	q->t.req.ssthresh = 64;
	answer(ROVE_OP_READ_RESP_MIDDLE, PSN + 1, 0, 0, MTU);
	CHECK(q->t.req.cwnd == 9, "%u packets", q->t.req.cwnd);
	/* The first of what was asked for in pieces tells of credits, the next cannot. */
	first_response(128);
	q->t.req.lsn_valid = true;
	q->t.req.lsn = 1;
	answer(ROVE_OP_READ_RESP_FIRST, PSN + 1, 1, 1, MTU);
	CHECK(q->t.req.psn_una == PSN + 2 && q->t.req.lsn == 2, "PSN %x, LSN %u",
	      q->t.req.psn_una, q->t.req.lsn);
	sim.now++;
	answer(ROVE_OP_READ_RESP_MIDDLE, PSN + 2, 0, 0, MTU);
	CHECK(q->t.req.psn_una == PSN + 3 && q->t.req.lsn == 2, "PSN %x, LSN %u",
	      q->t.req.psn_una, q->t.req.lsn);
	/* Each is a sign of life. */
	first_response(128);
	q->t.timeout = 14;
	sim.now += 1000;
	answer_soon(ROVE_OP_READ_RESP_MIDDLE, PSN + 1, 0, 0, MTU);
	awaited = PSN + 2;
	sim_run_until(acknowledged, NS_PER_S);
	CHECK(q->t.req.rto_deadline == sim.now + (8192ULL << 14), "until %llu",
	      q->t.req.rto_deadline);
	/* It gives back what retries have used. */
	first_response(128);
	nak();
	sc.eagain = 0;
	tqp_send(q);
	CHECK(wired == 4 && wire[2].psn == PSN + 1, "%u packets", wired);
	answer(ROVE_OP_READ_RESP_MIDDLE, PSN + 1, 0, 0, MTU);
	CHECK(!q->t.req.retried, "%u retries", q->t.req.retried);
}

/* What has arrived of an answer is not asked for again, although it was to be. */
static void response_anyway(void)
{
	first_response(128);
	nak();
	answer_soon(ROVE_OP_READ_RESP_MIDDLE, PSN + 1, 0, 0, MTU);
	answer_soon(ROVE_OP_READ_RESP_MIDDLE, PSN + 2, 0, 0, MTU);
	awaited = PSN + 3;
	sim_run_until(acknowledged, NS_PER_S);
	sc.eagain = 0;
	run();
	CHECK(wired == 4 && wire[2].psn == PSN + 3, "%u packets, %x", wired, wire[2].psn);
}

static bool probed(void)
{
	return stats.counter[ROVE_CNT_PROBE];
}

static bool timed_out(void)
{
	return stats.counter[ROVE_CNT_TIMEOUT] == awaited;
}

static bool rto_put_off(void)
{
	return q->t.req.rto_put_off;
}

static bool asked_again(void)
{
	return wired == awaited;
}

/*
 * A machine that is behind, by 10 to 100 ms, waits for longer before it takes anything for
 * lost; but not for ever, though it be behind for ever.
 */
static void behind(void)
{
	u64 took;

	start(ROVE_SVC_RC);
	q->t.timeout = 10;
	q->t.retry_cnt = 1;
	sc.lag = 1000000;
	post(ROVE_WR_RDMA_WRITE, 8, SIGNALED);
	tqp_send(q);
	for (awaited = 1; awaited < 3; awaited++) {
		took = sim.now;
		sim_run_until(timed_out, NS_PER_S);
		took = sim.now - took;
		COUNTED(TIMEOUT, awaited);
		CHECK(took > 48 * NS_PER_MS && took < 415 * NS_PER_MS, "%llu ns", took);
	}
	CHECK(sends == 1 && sent[0].status == ROVE_WC_RETRY_EXC_ERR, "status %u", sent[0].status);
	/* Meanwhile it asks, when it is time for that. */
	start(ROVE_SVC_RC);
	q->t.timeout = 10;
	post(ROVE_WR_RDMA_WRITE, 8, SIGNALED);
	tqp_send(q);
	sim_run_until(rto_put_off, NS_PER_S);
	CHECK(q->t.req.probe_deadline < sim.now + 100 * NS_PER_MS, "%llu",
	      q->t.req.probe_deadline);
	/* The oldest packet is sent again, if the timeout is a long one. */
	start(ROVE_SVC_RC);
	q->t.timeout = 20;
	post(ROVE_WR_RDMA_WRITE, 8, SIGNALED);
	awaited = 2;
	took = sim.now;
	tqp_send(q);
	sim_run_until(asked_again, NS_PER_S);
	took = sim.now - took;
	COUNTED(PROBE, 1);
	CHECK(wired == 2 && took > 120 * NS_PER_MS && took < 310 * NS_PER_MS,
	      "%u packets after %llu ns", wired, took);
	/* Put off once is enough. */
	awaited = 3;
	took = sim.now;
	sim_run_until(asked_again, NS_PER_S);
	took = sim.now - took;
	CHECK(wired == 3 && took < 210 * NS_PER_MS, "%u packets after %llu ns", wired, took);
	sc.lag = 0;
}

/* What waits without a timeout is timed from when there is one, and no longer without it. */
static void other_timeout(void)
{
	start(ROVE_SVC_RC);
	q->t.timeout = 0;
	post(ROVE_WR_RDMA_WRITE, 8, SIGNALED);
	tqp_send(q);
	CHECK(q->t.timer == ROVE_NO_DEADLINE, "%llu", q->t.timer);
	sim.now += NS_PER_S;
	q->t.timeout = 14;
	rove_tqp_retime(&q->t, sim.now);
	CHECK(q->t.req.rto_deadline == sim.now + 2 * (4096ULL << 14) &&
	      q->t.timer == q->t.req.alarm, "%llu", q->t.timer);
	q->t.timeout = 0;
	rove_tqp_retime(&q->t, sim.now);
	CHECK(q->t.req.alarm == ROVE_NO_DEADLINE, "%llu", q->t.req.alarm);
	ack(PSN, 1);
	CHECK(sends == 1 && !sent[0].status && wired == 1, "%u packets", wired);
}

/* The timer, when it should have come 8 ms ago. */
static void late(void)
{
	sim.now = q->t.req.probe_deadline + 2 * ROVE_PROBE_NS;
	tqp_timer(q);
}

/* @n WRITEs are sent, and then nothing is heard, until the oldest is sent again. */
static void writes_until_probed(u32 n)
{
	start(ROVE_SVC_RC);
	q->t.timeout = 20;
	while (n--)
		post(ROVE_WR_RDMA_WRITE, 8, SIGNALED);
	tqp_send(q);
	sim_run_until(probed, NS_PER_S);
}

/* A probe is answered by what it says and no more: what was sent behind it is lost. */
static void loss_found(void)
{
	u64 t;
	u32 i;

	writes_until_probed(3);
	CHECK(wired == 4 && wire[3].psn == PSN && wire[3].ask, "%u packets", wired);
	t = sim.now;
	ack(PSN, 1);
	CHECK(!sent[0].status && wire[4].psn == PSN + 1 && wire[5].psn == PSN + 2,
	      "status %u, psn %x", sent[0].status, wire[4].psn);
	CHECK(wire[4].at - t >= ROVE_PROBE_NS && wire[4].at - t < ROVE_PROBE_NS + 50000,
	      "sent again after %llu ns", wire[4].at - t);
	CHECK(sends == 3 && sent[1].status == ROVE_WC_RETRY_EXC_ERR, "status %u",
	      sent[1].status);

	/* All of them came, and an answer is lost: no ACK says so in its PSN. */
	for (i = 0; i < 2; i++) {
		start(ROVE_SVC_RC);
		q->t.timeout = 20;
		q->t.retry_cnt = 0;
		post(ROVE_WR_RDMA_WRITE, 2 * MTU, SIGNALED);
		post(i ? ROVE_WR_ATOMIC_FETCH_AND_ADD : ROVE_WR_RDMA_READ, 8, SIGNALED);
		tqp_send(q);
		sim_run_until(probed, NS_PER_S);
		CHECK(wired == 4 && wire[3].psn == PSN && wire[3].ask, "%u packets", wired);
		t = sim.now;
		answer_soon(ROVE_OP_ACKNOWLEDGE, PSN + 1, ACK_PLAIN, 2, 0);
		awaited = 5;
		sim_run_until(asked_again, NS_PER_S);
		CHECK(wired == 5 && wire[4].psn == PSN + 2 &&
		      wire[4].at - t < ROVE_PROBE_NS + 50000, "%u packets, %x", wired,
		      wire[4].psn);
	}
	/* What has been answered for good says nothing of what is asked for later. */
	writes_until_probed(2);
	answer_soon(ROVE_OP_ACKNOWLEDGE, PSN + 1, ACK_PLAIN, 2, 0);
	awaited = PSN + 2;
	sim_run_until(acknowledged, NS_PER_S);
	post(ROVE_WR_RDMA_WRITE, 8, SIGNALED);
	post(ROVE_WR_RDMA_READ, 8, SIGNALED);
	tqp_send(q);
	answer_soon(ROVE_OP_ACKNOWLEDGE, PSN + 2, ACK_PLAIN, 3, 0);
	awaited = PSN + 3;
	sim_run_until(acknowledged, NS_PER_S);
	CHECK(!q->t.req.lost, "taken for lost");
	/* Not asked for, it says nothing of the kind: the answer may still come. */
	start(ROVE_SVC_RC);
	q->t.timeout = 14;
	post(ROVE_WR_RDMA_WRITE, 2 * MTU, SIGNALED);
	post(ROVE_WR_RDMA_READ, 8, SIGNALED);
	tqp_send(q);
	t = sim.now;
	awaited = 4;
	answer_soon(ROVE_OP_ACKNOWLEDGE, PSN + 1, ACK_PLAIN, 1, 0);
	sim_run_until(asked_again, NS_PER_S);
	CHECK(wired == 4 && wire[3].psn == PSN + 2 && wire[3].at - t > 10 * ROVE_PROBE_NS,
	      "%u packets, the last after %llu ns", wired, wire[3].at - t);

	/* A machine that is late waits for what may be here, but only once a silence. */
	start(ROVE_SVC_RC);
	q->t.timeout = 20;
	for (i = 0; i < 2; i++) {
		post(ROVE_WR_RDMA_WRITE, 8, SIGNALED);
		tqp_send(q);
		wired = 0;
		late();
		CHECK(!wired, "asked though it was late");
		late();
		CHECK(wired == 1 && wire[0].psn == PSN + i && wire[0].ask, "%u packets", wired);
		late();
		CHECK(wired == 2, "%u packets", wired);
		answer_soon(ROVE_OP_ACKNOWLEDGE, PSN + i, ACK_PLAIN, i + 1, 0);
		awaited = PSN + i + 1;
		sim_run_until(acknowledged, NS_PER_S);
	}
}

static bool resent(void)
{
	return stats.counter[ROVE_CNT_RETRANS];
}

/* Each probe that brings nothing doubles the wait for the next; a NAK ends the asking. */
static void probes(void)
{
	u32 i;

	writes_until_probed(1);
	awaited = 4;
	sim_run_until(asked_again, 10 * NS_PER_S);
	for (i = 2; i < 4; i++) {
		u64 wait = wire[i].at - wire[i - 1].at, before = wire[i - 1].at - wire[i - 2].at;

		CHECK(wait > before * 19 / 10 && wait < before * 21 / 10,
		      "%llu ns, then %llu", before, wait);
	}
	/* What was sent twice tells no time. */
	CHECK(!q->t.req.rtt_since, "timed");
	writes_until_probed(3);
	CHECK(q->t.req.rtt_since, "not timed");
	answer_soon(ROVE_OP_ACKNOWLEDGE, PSN, ROVE_AETH_NAK | ROVE_NAK_PSN_SEQ, 0, 0);
	sim_run_until(resent, NS_PER_S);
	answer_soon(ROVE_OP_ACKNOWLEDGE, PSN, ACK_PLAIN, 1, 0);
	awaited = PSN + 1;
	sim_run_until(acknowledged, NS_PER_S);
	CHECK(wired == 7 && !q->t.req.lost, "%u packets; or taken for the probe's answer",
	      wired);
}

/* How much may be under way: little after a loss, fast up to half of it, then slowly more. */
static void congestion(void)
{
	u32 i;

	start(ROVE_SVC_RC);
	for (i = 0; i < 60; i++)
		post(ROVE_WR_RDMA_WRITE, 8, SIGNALED);
	go();
	CHECK(q->t.req.cwnd == 64 && wired == 60, "cwnd %u", q->t.req.cwnd);
	answer(ROVE_OP_ACKNOWLEDGE, PSN + 1, ROVE_AETH_NAK, 1, 0);
	CHECK(q->t.req.cwnd == 4 && q->t.req.ssthresh == 32 && wired == 60 + 4,
	      "cwnd %u, %u packets", q->t.req.cwnd, wired);
	ack(PSN + 10, 11);
	CHECK(q->t.req.cwnd == 14 && wired == 60 + 4 + 14, "cwnd %u, %u packets",
	      q->t.req.cwnd, wired);
	/* A NAK that comes twice counts once. */
	for (i = 0; i < 4; i++)
		answer(ROVE_OP_ACKNOWLEDGE, PSN + 11 + i / 2, ROVE_AETH_NAK, 11 + i / 2, 0);
	CHECK(q->t.req.cwnd == 4 && q->t.req.ssthresh == 4, "cwnd %u", q->t.req.cwnd);
	CHECK(q->t.req.retried == 1 && wired == 60 + 4 + 14 + 4 + 4,
	      "%u retries, %u packets", q->t.req.retried, wired);
	ack(PSN + 13, 14);
	CHECK(q->t.req.cwnd == 4, "cwnd %u", q->t.req.cwnd);
	ack(PSN + 59, 60);
	CHECK(q->t.req.cwnd == 5 && sends == 60, "cwnd %u", q->t.req.cwnd);

	start(ROVE_SVC_RC);
	window(8);
	for (i = 0; i < 8; i++)
		post(ROVE_WR_RDMA_WRITE, 8, SIGNALED);
	go();
	answer(ROVE_OP_ACKNOWLEDGE, PSN, ROVE_AETH_NAK, 0, 0);
	CHECK(q->t.req.cwnd == 4, "cwnd %u of 8", q->t.req.cwnd);

	/* Also after one that nobody told of. */
	writes_until_probed(40);
	answer_soon(ROVE_OP_ACKNOWLEDGE, PSN, ACK_PLAIN, 1, 0);
	sim_run_until(resent, NS_PER_S);
	CHECK(q->t.req.cwnd == 4 && wired == 40 + 1 + 4, "cwnd %u, %u packets",
	      q->t.req.cwnd, wired);
}

/* One that takes @rtt, the @n-th. */
static void round_trip(u32 n, u64 rtt)
{
	post(ROVE_WR_RDMA_WRITE, 8, SIGNALED);
	go();
	sim.now += rtt;
	ack(PSN + n, n + 1);
}

/* A window begins small, and grows faster where answers come as fast as ever. */
static void growth(void)
{
	static const u64 rtt[] = { 100000, 149000, 151000 };
	u32 i;

	start(ROVE_SVC_RC);
	q->t.req.window = 512;
	rove_tqp_start_requester(&q->t, PSN);
	for (i = 0; i < 20; i++)
		post(ROVE_WR_RDMA_WRITE, 8, SIGNALED);
	go();
	ack(PSN + 9, 10);
	CHECK(q->t.req.cwnd == ROVE_FIRST_CWND + 10 && !q->t.req.grown, "cwnd %u, and %u",
	      q->t.req.cwnd, q->t.req.grown);
	start(ROVE_SVC_RC);
	for (i = 0; i < ARRAY_SIZE(rtt); i++) {
		round_trip(i, rtt[i]);
		CHECK(q->t.req.rtt_min == rtt[0] &&
		      q->t.req.step == (i < 2 ? ROVE_CWND_STEP : 1),
		      "step %u after %llu of %llu ns", q->t.req.step, rtt[i],
		      q->t.req.rtt_min);
	}
	/* They come late: a queue fills, and slow start is over. */
	CHECK(q->t.req.ssthresh == 64, "ssthresh %u", q->t.req.ssthresh);
	q->t.req.cwnd = 16;
	round_trip(i, rtt[0] + ROVE_QUEUE_NS + 1000);
	CHECK(q->t.req.ssthresh == 16, "ssthresh %u", q->t.req.ssthresh);
	/* Where answers always take long no queue is to blame. */
	start(ROVE_SVC_RC);
	q->t.req.window = 512;
	rove_tqp_start_requester(&q->t, PSN);
	for (i = 0; i < 3; i++) {
		round_trip(i, 20 * NS_PER_MS);
		CHECK(q->t.req.ssthresh == 512 && q->t.req.rtt >= 20 * NS_PER_MS &&
		      q->t.req.probe_wait == 2 * q->t.req.rtt + ROVE_PROBE_NS,
		      "ssthresh %u, a probe after %llu ns", q->t.req.ssthresh,
		      q->t.req.probe_wait);
	}
}

/* The time that an answer takes: of what was asked, and the longest of late counts. */
static void round_trips(void)
{
	u64 rtt;

	start(ROVE_SVC_RC);
	round_trip(0, 20 * NS_PER_MS);
	rtt = q->t.req.rtt;
	CHECK(rtt >= 20 * NS_PER_MS, "%llu ns", rtt);
	post(ROVE_WR_RDMA_WRITE, 3 * MTU, SIGNALED);
	go();
	CHECK(wired == 4 && wire[3].ask && !wire[2].ask, "%u packets", wired);
	sim.now += NS_PER_MS;
	ack(PSN + 1, 1);
	CHECK(q->t.req.rtt_since && q->t.req.rtt == rtt, "taken of what did not ask");
	ack(PSN + 3, 2);
	CHECK(!q->t.req.rtt_since && q->t.req.rtt == rtt - rtt / 8, "%llu ns after %llu",
	      q->t.req.rtt, rtt);
}

/* The fastest answer: not to what was sent twice, nor long ago. */
static void fastest(void)
{
	start(ROVE_SVC_RC);
	round_trip(0, 20 * NS_PER_MS);
	post(ROVE_WR_RDMA_WRITE, 8, SIGNALED);
	go();
	answer(ROVE_OP_ACKNOWLEDGE, PSN + 1, ROVE_AETH_NAK | ROVE_NAK_PSN_SEQ, 1, 0);
	CHECK(q->t.req.rtt_since && wired == 3, "not timed; %u packets", wired);
	sim.now += 10000;
	ack(PSN + 1, 2);
	CHECK(!q->t.req.rtt_since && q->t.req.rtt_min == 20 * NS_PER_MS, "%llu ns",
	      q->t.req.rtt_min);
	/* A packet more, and it does tell. */
	round_trip(2, NS_PER_MS);
	CHECK(q->t.req.rtt_min == NS_PER_MS, "%llu ns", q->t.req.rtt_min);

	start(ROVE_SVC_RC);
	round_trip(0, NS_PER_MS);
	sim.now += ROVE_RTT_MIN_NS - 10 * NS_PER_MS;
	round_trip(1, 3 * NS_PER_MS);
	CHECK(q->t.req.rtt_min == NS_PER_MS && q->t.req.rtt_next == NS_PER_MS,
	      "%llu ns, too soon", q->t.req.rtt_min);
	sim.now += 10 * NS_PER_MS;
	round_trip(2, 3 * NS_PER_MS);
	round_trip(3, 2 * NS_PER_MS);
	round_trip(4, 4 * NS_PER_MS);
	CHECK(q->t.req.rtt_min == NS_PER_MS && q->t.req.step == 1, "%llu ns, too soon",
	      q->t.req.rtt_min);
	sim.now += ROVE_RTT_MIN_NS;
	round_trip(5, 3 * NS_PER_MS - 1);
	CHECK(q->t.req.rtt_min == 2 * NS_PER_MS && q->t.req.step == ROVE_CWND_STEP,
	      "%llu ns, for ever", q->t.req.rtt_min);

	/* Two CPUs do not see the same time. */
	post(ROVE_WR_RDMA_WRITE, 8, SIGNALED);
	go();
	q->t.req.rtt_since = sim.now + 1;
	ack(PSN + 6, 7);
	CHECK(!q->t.req.rtt_since && q->t.req.rtt_min == 2 * NS_PER_MS &&
	      q->t.req.rtt < NS_PER_S, "%llu ns", q->t.req.rtt);
}

/* Of a first PSN 24 bits count, also where two are compared. */
static void first_psn(void)
{
	start(ROVE_SVC_RC);
	rove_tqp_start_requester(&q->t, 0xff000000 | PSN);
	post(ROVE_WR_RDMA_WRITE, 8, SIGNALED);
	go();
	answer(ROVE_OP_ACKNOWLEDGE, PSN, ROVE_AETH_NAK | ROVE_NAK_PSN_SEQ, 0, 0);
	CHECK(wired == 2 && wire[1].psn == PSN, "%u packets", wired);
	COUNTED(SEQ_NAK_RX, 1);
	COUNTED(IMPLIED_NAK, 0);
}

/* The wait over, one message alone asks whether there is a receive now. */
static void rnr_probe(void)
{
	u32 i;

	start(ROVE_SVC_RC);
	for (i = 0; i < 4; i++)
		post(ROVE_WR_SEND, 600, i == 3 ? SIGNALED : 0);
	go();
	CHECK(wired == 12, "%u packets", wired);
	q->t.req.retried = 2;
	q->t.rnr_retry = 3;
	answer(ROVE_OP_ACKNOWLEDGE, PSN, ROVE_AETH_RNR_NAK | 10, 0, 0);
	CHECK(!q->t.req.retried && q->t.req.rnr_retried == 1,
	      "%u retries, %u of RNR", q->t.req.retried, q->t.req.rnr_retried);
	CHECK(wired == 15 && wire[12].psn == PSN && wire[14].ask && !wire[13].ask,
	      "%u packets", wired);
	CHECK(wire[12].at - wire[11].at >= rove_rnr_delay(10), "too early");
	ack(PSN + 2, 1);
	CHECK(wired == 24 && wire[15].psn == PSN + 3 && !q->t.req.rnr_retried,
	      "%u packets", wired);
	ack(PSN + 11, 4);
	CHECK(sends == 1 && !sent[0].status, "%u completions", sends);
}

/* In SQD other numbers of retries may be allowed: what has been used up counts. */
static void other_retries(void)
{
	u32 i;

	start(ROVE_SVC_RC);
	q->t.rnr_retry = 6;
	post(ROVE_WR_SEND, 8, SIGNALED);
	go();
	for (i = 1; i <= 2; i++) {
		answer(ROVE_OP_ACKNOWLEDGE, PSN, ROVE_AETH_RNR_NAK | 10, 0, 0);
		CHECK(wired == i + 1 && !sends, "%u packets", wired);
	}
	q->t.rnr_retry = 2;
	answer(ROVE_OP_ACKNOWLEDGE, PSN, ROVE_AETH_RNR_NAK | 10, 0, 0);
	CHECK(wired == 3 && sends == 1 && sent[0].status == ROVE_WC_RNR_RETRY_EXC_ERR,
	      "%u packets, status %u", wired, sent[0].status);

	start(ROVE_SVC_RC);
	q->t.rnr_retry = 0;
	q->t.retry_cnt = 0;
	post(ROVE_WR_SEND, 8, SIGNALED);
	go();
	q->t.rnr_retry = 1;
	q->t.retry_cnt = 1;
	answer(ROVE_OP_ACKNOWLEDGE, PSN, ROVE_AETH_NAK | ROVE_NAK_PSN_SEQ, 0, 0);
	answer(ROVE_OP_ACKNOWLEDGE, PSN, ROVE_AETH_RNR_NAK | 10, 0, 0);
	CHECK(wired == 3 && !sends, "%u packets", wired);
	ack(PSN, 1);
	CHECK(sends == 1 && !sent[0].status, "status %u", sent[0].status);
}

/* Its memory on its way, an answer is asked for once more, which costs no retry. */
static void waits_for_pages(void)
{
	static const u8 op[] = { ROVE_WR_RDMA_READ, ROVE_WR_ATOMIC_FETCH_AND_ADD };
	u32 i, k;
	u64 at;

	for (i = 0; i < 2; i++) {
		u8 opcode = i ? ROVE_OP_ATOMIC_ACK : ROVE_OP_READ_RESP_ONLY;

		start(ROVE_SVC_RC);
		sc.paging = 1000000;
		post(op[i], 8, SIGNALED);
		post(op[i], 8, SIGNALED);
		tqp_send(q);
		/* One asks alone, twice as late each time, up to 51 ms. */
		for (k = 1; k <= 10; k++) {
			u64 t = sim.now, wait = 200000ULL << min(k - 1, 8U);

			answer(opcode, PSN, ACK_PLAIN, 1, i ? 0 : 8);
			CHECK(wired == k + 2 && wire[k + 1].psn == PSN && !sends, "%u packets",
			      wired);
			CHECK(wire[k + 1].at - t >= wait && wire[k + 1].at - t < wait + 30000,
			      "asks again after %llu ns", wire[k + 1].at - t);
			COUNTED(PAGE_WAIT, k);
		}
		COUNTED(TIMEOUT, 0);
		CHECK(!q->t.req.retried, "costs a retry");
		sc.paging = 0;
		answer(opcode, PSN, ACK_PLAIN, 1, i ? 0 : 8);
		CHECK(sends == 1 && !sent[0].status && wired == k + 2 &&
		      wire[k + 1].psn == PSN + 1, "status %u, %u packets", sent[0].status,
		      wired);
		/* And anew with the next. */
		sc.paging = 1000000;
		at = sim.now;
		answer(opcode, PSN + 1, ACK_PLAIN, 2, i ? 0 : 8);
		CHECK(wired == k + 3 && wire[k + 2].at - at < 230000, "%u packets", wired);
		/* And memory that is not there at all. */
		start(ROVE_SVC_RC);
		post(op[i], 8, SIGNALED)->sge[0].lkey = q->mr_ro->key;
		go();
		answer(opcode, PSN, ACK_PLAIN, 1, i ? 0 : 8);
		CHECK(sends == 1 && sent[0].status == ROVE_WC_LOC_PROT_ERR, "status %u",
		      sent[0].status);
	}
}

/* In SQD the right to READ may be taken away from one that waits for its turn. */
static void rights_taken_away(bool look)
{
	start(ROVE_SVC_RC);
	q->t.max_rd_atomic = 1;
	post(ROVE_WR_RDMA_READ, 8, SIGNALED);
	post(ROVE_WR_RDMA_READ, 8, SIGNALED);
	post(ROVE_WR_RDMA_WRITE, 8, SIGNALED);
	go();
	CHECK(wired == 1 && rove_tqp_waits(&q->t), "%u packets", wired);
	q->draining = true;
	rove_tqp_drain(&q->t);
	q->t.max_rd_atomic = 0;
	if (look)
		tqp_send(q);
	CHECK(!sends, "fails before its turn");
	answer(ROVE_OP_READ_RESP_ONLY, PSN, ACK_PLAIN, 1, 8);
	CHECK(sends == 3 && !sent[0].status && sent[1].status == ROVE_WC_LOC_QP_OP_ERR &&
	      sent[2].status == ROVE_WC_WR_FLUSH_ERR, "%u completions, status %u", sends,
	      sent[1].status);
	CHECK(wired == 1 && q->t.state == ROVE_TQP_ERR, "%u packets", wired);
}

static void rights_taken(void)
{
	rights_taken_away(false);
	rights_taken_away(true);
}

/* Local work completes as what it is. */
static void local_work(void)
{
	static const u32 op[][2] = {
		{ ROVE_WR_BIND_MW, ROVE_WC_BIND_MW },
		{ ROVE_WR_REG_MR, ROVE_WC_REG_MR },
		{ ROVE_WR_LOCAL_INV, ROVE_WC_LOCAL_INV },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(op); i++) {
		start(ROVE_SVC_RC);
		post(op[i][0], 8, SIGNALED)->invalidate_rkey = q->mr_alias->key;
		go();
		CHECK(sends == 1 && !sent[0].status && sent[0].opcode == op[i][1] &&
		      !sent[0].byte_len, "operation %u: status %u, opcode %u", op[i][0],
		      sent[0].status, sent[0].opcode);
	}
	/* Refused, it fails there and then. */
	start(ROVE_SVC_RC);
	local_status = ROVE_WC_MW_BIND_ERR;
	post(ROVE_WR_BIND_MW, 0, SIGNALED);
	tqp_send(q);
	CHECK(sends == 1 && sent[0].status == local_status, "%u completions, status %u", sends,
	      sent[0].status);
	/* One that has to wait for what is before it asks for that. */
	start(ROVE_SVC_RC);
	post(ROVE_WR_RDMA_WRITE, 8, 0);
	post(ROVE_WR_LOCAL_INV, 0, SIGNALED)->invalidate_rkey = q->mr_alias->key;
	go();
	CHECK(wired == 2 && !wire[0].ask && wire[1].ask && wire[1].psn == PSN && !sends &&
	      wire[1].at - wire[0].at < ROVE_PROBE_NS, "%u packets", wired);
	ack(PSN, 1);
	CHECK(sends == 1 && !sent[0].status, "%u completions", sends);
	/* So is what stands before one that does not wait, if nothing else follows. */
	start(ROVE_SVC_RC);
	post(ROVE_WR_RDMA_WRITE, 8, 0);
	post(ROVE_WR_BIND_MW, 0, 0);
	go();
	CHECK(wired == 2 && !wire[0].ask && wire[1].ask && wire[1].psn == PSN &&
	      wire[1].at - wire[0].at < ROVE_PROBE_NS, "%u packets", wired);
}

/* ---- states ---- */

/* Where nothing is to be received nothing is. */
static void states(void)
{
	static const u8 state[] = { ROVE_TQP_RESET, ROVE_TQP_INIT, ROVE_TQP_RTR,
				    ROVE_TQP_RTS, ROVE_TQP_SQD, ROVE_TQP_ERR };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(state); i++) {
		bool responds = i >= 2 && i <= 4, requests = i == 3 || i == 4;

		start(ROVE_SVC_RC);
		post_recv(8);
		post(ROVE_WR_RDMA_WRITE, 8, SIGNALED);
		go();
		q->t.state = state[i];
		q->draining = state[i] == ROVE_TQP_SQD;
		request(ROVE_OP_WRITE_ONLY, EPSN, true, 8, 8);
		run();
		CHECK(untouched() == !responds && wired == 1 + responds,
		      "WRITE in state %u: %u packets", state[i], wired);
		COUNTED(RX_BAD_STATE, !responds);
		COUNTED(RDMA_WRITE_RX, responds);
		request(ROVE_OP_SEND_ONLY, EPSN + 1, true, 8, 8);
		run();
		CHECK(recvs == responds, "SEND in state %u", state[i]);
		COUNTED(RX_BAD_STATE, 2 * !responds);
		ack(PSN, 1);
		CHECK(sends == requests, "ACK in state %u", state[i]);
		COUNTED(RX_BAD_STATE, 2 * !responds + !requests);
		q->t.state = ROVE_TQP_RTS;
	}
}

/* What was sent for once is sent in SQD, too, and no more.  UC tells of its first packet. */
static void in_between(void)
{
	u32 i;

	start(ROVE_SVC_UD);
	sc.eagain = 1000000;
	post(ROVE_WR_SEND, 8, SIGNALED)->ah = 1;
	tqp_send(q);
	q->draining = true;
	rove_tqp_drain(&q->t);
	CHECK(!wired && !q->event[ROVE_EVENT_SQ_DRAINED], "%u packets", wired);
	sc.eagain = 0;
	tqp_send(q);
	CHECK(wired == 1 && q->event[ROVE_EVENT_SQ_DRAINED] == 1, "%u packets", wired);
	start(ROVE_SVC_RC);
	post(ROVE_WR_RDMA_WRITE, 8, SIGNALED);
	go();
	q->draining = true;
	rove_tqp_drain(&q->t);
	CHECK(!q->event[ROVE_EVENT_SQ_DRAINED], "drained");
	ack(PSN, 1);
	CHECK(sends == 1 && q->event[ROVE_EVENT_SQ_DRAINED] == 1, "not drained");

	/* SQD comes where 120 packets have been sent, and the last did not ask: more followed. */
	start(ROVE_SVC_RC);
	q->t.mtu = 512;
	window(1024);
	for (i = 0; i < 128; i++)
		post(ROVE_WR_RDMA_WRITE, 512, 0);
	tqp_send(q);
	CHECK(wired == 120 && !wire[119].ask, "%u packets", wired);
	q->draining = true;
	q->drain_emitted = 120;
	rove_tqp_drain(&q->t);
	tqp_send(q);
	run();
	CHECK(wired == 121 && wire[120].psn == PSN + 119 && wire[120].ask, "%u packets", wired);
	ack(PSN + 119, 120);
	CHECK(q->event[ROVE_EVENT_SQ_DRAINED] == 1, "not drained");
	start(ROVE_SVC_UC);
	q->t.state = ROVE_TQP_RTR;
	request(ROVE_SVC_UC | ROVE_OP_WRITE_ONLY, EPSN, false, 8, 8);
	run();
	CHECK(q->event[ROVE_EVENT_COMM_EST] == 1 && !untouched(), "no event");
}

/* Who receives XRC requests gets no answers, and who sends them no requests. */
static void xrc_sides(void)
{
	start(ROVE_SVC_XRC);
	q->t.target = true;
	q->t.srq = true;
	answer(ROVE_SVC_XRC | ROVE_OP_ACKNOWLEDGE, PSN, ACK_PLAIN, 1, 0);
	COUNTED(RX_BAD_SERVICE, 1);
	request(ROVE_SVC_XRC | ROVE_OP_WRITE_ONLY, EPSN, true, 8, 8);
	run();
	CHECK(!untouched() && wired == 1, "%u packets", wired);
	start(ROVE_SVC_XRC);
	request(ROVE_SVC_XRC | ROVE_OP_WRITE_ONLY, EPSN, true, 8, 8);
	run();
	CHECK(untouched() && !wired, "%u packets", wired);
	COUNTED(RX_BAD_SERVICE, 1);
	COUNTED(RX_BAD_STATE, 0);
}

/* ---- responder ---- */

/* Who does not ask is not answered; a batch is, once. */
static void acks_wanted(void)
{
	u32 i;

	start(ROVE_SVC_RC);
	for (i = 0; i < 10; i++)
		request(ROVE_OP_WRITE_ONLY, EPSN + i, false, 8, 8);
	run();
	CHECK(!wired && !untouched(), "%u packets", wired);
	request(ROVE_OP_WRITE_ONLY, EPSN + 10, true, 8, 8);
	run();
	CHECK(wired == 1 && wire[0].psn == EPSN + 10 && wire[0].msn == 11 &&
	      wire[0].syndrome == ACK_PLAIN, "%u packets", wired);
	/* One that came before, asking or not: the newest again. */
	request(ROVE_OP_WRITE_ONLY, EPSN + 3, false, 8, 8);
	run();
	CHECK(wired == 2 && wire[1].psn == EPSN + 10 && wire[1].msn == 11, "%u packets",
	      wired);
	COUNTED(DUP_REQUEST, 1);
	COUNTED(ACK_TX, 2);
}

/* A READ or an atomic is answered, not acknowledged: who lost the answer would not ask. */
static void acks_of_others(void)
{
	u32 i;

	start(ROVE_SVC_RC);
	rove_tqp_max_res(&q->t, 4);
	request(ROVE_OP_WRITE_ONLY, EPSN, true, 8, 8);
	run();
	/* More of them than are remembered at last. */
	for (i = 0; i < 3; i++) {
		u32 base = EPSN + 1 + 4 * i;

		request(ROVE_OP_READ_REQUEST, base, true, 3 * MTU, 0);
		request(i == 1 ? ROVE_OP_FETCH_ADD : ROVE_OP_READ_REQUEST, base + 3, true, 0, 0);
		run();
		wired = 0;
		request(ROVE_OP_WRITE_ONLY, EPSN, true, 8, 8);
		run();
		CHECK(wired == 1 && wire[0].opcode == ROVE_OP_ACKNOWLEDGE &&
		      wire[0].psn == (i < 2 ? EPSN : EPSN + 4) && wire[0].msn == 3 + 2 * i,
		      "acknowledgment of %u, message %u", wire[0].psn, wire[0].msn);
	}
	wired = 0;
	request(ROVE_OP_WRITE_ONLY, EPSN + 13, true, 8, 8);
	request(ROVE_OP_READ_REQUEST, EPSN + 14, true, MTU, 0);
	request(ROVE_OP_WRITE_ONLY, EPSN + 15, true, 8, 8);
	run();
	CHECK(wired && wire[wired - 1].opcode == ROVE_OP_ACKNOWLEDGE &&
	      wire[wired - 1].psn == EPSN + 15, "acknowledgment of %u", wire[wired - 1].psn);
	request(ROVE_OP_READ_REQUEST, EPSN + 16, true, MTU, 0);
	run();
	wired = 0;
	request(ROVE_OP_WRITE_ONLY, EPSN + 13, true, 8, 8);
	run();
	CHECK(wired == 1 && wire[0].psn == EPSN + 15, "acknowledgment of %u", wire[0].psn);

	/* The READ's PSN comes round again, for a WRITE. */
	start(ROVE_SVC_RC);
	rove_tqp_max_res(&q->t, 4);
	request(ROVE_OP_READ_REQUEST, EPSN, true, MTU, 0);
	run();
	wired = 0;
	q->t.resp.epsn = EPSN - 1;
	request(ROVE_OP_WRITE_ONLY, EPSN - 1, false, 8, 8);
	request(ROVE_OP_WRITE_ONLY, EPSN, true, 8, 8);
	run();
	CHECK(wired == 1 && wire[0].psn == EPSN, "acknowledgment of %u", wire[0].psn);
}

/*
 * A message whose memory is on its way has its receive work request, which it keeps: the
 * repetition cannot be for another SRQ.
 */
static void xrc_stays(void)
{
	u32 i;

	for (i = 0; i < 2; i++) {
		start(ROVE_SVC_XRC);
		q->t.target = true;
		q->t.srq = true;
		post_recv(8);
		sc.paging = 1000000;
		request(ROVE_SVC_XRC | ROVE_OP_SEND_ONLY, EPSN, true, 0, 8);
		run();
		CHECK(wired == 1 && (wire[0].syndrome & ROVE_AETH_KIND) == ROVE_AETH_RNR_NAK,
		      "syndrome %x", wire[0].syndrome);
		sc.paging = 0;
		srqn = i ? SIM_SRQN2 : SIM_SRQN;
		request(ROVE_SVC_XRC | ROVE_OP_SEND_ONLY, EPSN, true, 0, 8);
		srqn = SIM_SRQN;
		run();
		CHECK(wired == 2 && recvs == 1, "%u packets, %u receives", wired, recvs);
		if (i)
			CHECK(wire[1].syndrome == (ROVE_AETH_NAK | ROVE_NAK_INV_REQ) &&
			      got[0].status == ROVE_WC_REM_INV_REQ_ERR, "syndrome %x, status %u",
			      wire[1].syndrome, got[0].status);
		else
			CHECK(wire[1].syndrome == ACK_PLAIN && !got[0].status,
			      "syndrome %x, status %u", wire[1].syndrome, got[0].status);
	}
}

static bool written(void)
{
	return stats.counter[ROVE_CNT_RDMA_WRITE_RX];
}

/* A gap is told of once, until what is missing has come. */
static void gaps(void)
{
	start(ROVE_SVC_RC);
	request(ROVE_OP_WRITE_ONLY, EPSN + 1, true, 8, 8);
	run();
	request(ROVE_OP_WRITE_ONLY, EPSN + 2, true, 8, 8);
	run();
	CHECK(wired == 1 && wire[0].syndrome == ROVE_AETH_NAK && wire[0].psn == EPSN &&
	      untouched(), "%u packets", wired);
	COUNTED(OUT_OF_SEQ, 2);
	request(ROVE_OP_WRITE_ONLY, EPSN, true, 8, 8);
	run();
	CHECK(wired == 2 && wire[1].syndrome == ACK_PLAIN && wire[1].psn == EPSN,
	      "%u packets", wired);
	request(ROVE_OP_WRITE_ONLY, EPSN + 2, true, 8, 8);
	run();
	CHECK(wired == 3 && wire[2].syndrome == ROVE_AETH_NAK &&
	      wire[2].psn == EPSN + 1 && wire[2].msn == 1, "%u packets", wired);
	COUNTED(SEQ_NAK_TX, 2);

	/* It comes while the NAK waits for room: no reason any more. */
	start(ROVE_SVC_RC);
	sc.eagain = 1000000;
	request(ROVE_OP_WRITE_ONLY, EPSN + 1, true, 8, 8);
	request(ROVE_OP_WRITE_ONLY, EPSN, true, 8, 8);
	sim_run_until(written, NS_PER_S);
	sc.eagain = 0;
	tqp_send(q);
	CHECK(wired == 1 && wire[0].syndrome == ACK_PLAIN && wire[0].psn == EPSN,
	      "%u packets, syndrome %x", wired, wire[0].syndrome);
	COUNTED(SEQ_NAK_TX, 1);
}

static bool all_in(void)
{
	return stats.counter[ROVE_CNT_RDMA_READ_RX] + stats.counter[ROVE_CNT_RDMA_ATOMIC_RX] +
	       stats.counter[ROVE_CNT_DUP_REQUEST] == awaited;
}

/* UC tells nobody of a gap, and counts it; the message that has it is dropped. */
static void uc_gaps(void)
{
	start(ROVE_SVC_UC);
	post_recv(4 * MTU);
	request(ROVE_SVC_UC | ROVE_OP_WRITE_ONLY, EPSN, false, 8, 8);
	request(ROVE_SVC_UC | ROVE_OP_WRITE_ONLY, EPSN + 1, false, 8, 8);
	run();
	COUNTED(OUT_OF_SEQ, 0);
	request(ROVE_SVC_UC | ROVE_OP_SEND_ONLY, EPSN + 3, false, 0, 8);
	run();
	COUNTED(OUT_OF_SEQ, 1);
	COUNTED(UC_RX_DROPPED, 0);
	CHECK(recvs == 1, "%u receives", recvs);
	post_recv(4 * MTU);
	request(ROVE_SVC_UC | ROVE_OP_SEND_FIRST, EPSN + 4, false, 0, MTU);
	request(ROVE_SVC_UC | ROVE_OP_SEND_LAST, EPSN + 6, false, 0, 8);
	run();
	COUNTED(OUT_OF_SEQ, 2);
	COUNTED(UC_RX_DROPPED, 1);
	CHECK(recvs == 1 && !wired, "%u receives", recvs);
	/* A message that arrives ends what was dropped: the rest of another is one more. */
	beyond = 1 << 20;
	request(ROVE_SVC_UC | ROVE_OP_WRITE_FIRST, EPSN + 7, false, 2 * MTU, MTU);
	beyond = 0;
	request(ROVE_SVC_UC | ROVE_OP_WRITE_ONLY, EPSN + 8, false, 8, 8);
	run();
	COUNTED(UC_RX_DROPPED, 2);
	request(ROVE_SVC_UC | ROVE_OP_SEND_MIDDLE, EPSN + 9, false, 0, MTU);
	request(ROVE_SVC_UC | ROVE_OP_SEND_MIDDLE, EPSN + 10, false, 0, MTU);
	run();
	COUNTED(UC_RX_DROPPED, 3);
	/* The receive that the SEND above has had is not used again. */
	rove_tqp_reset(&q->t);
	q->t.state = ROVE_TQP_INIT;
	rove_tqp_start_responder(&q->t, EPSN);
	run();
	post_recv(MTU);
	request(ROVE_SVC_UC | ROVE_OP_SEND_ONLY, EPSN, false, 0, 8);
	run();
	q->rq_fetched = q->rq_prod;
	memset(q->recv_mem.mem, UNTOUCHED, 8);
	recvs = 0;
	request(ROVE_SVC_UC | ROVE_OP_SEND_ONLY, EPSN + 1, false, 0, 8);
	run();
	CHECK(!recvs && q->recv_mem.mem[0] == UNTOUCHED, "nobody's memory is written to");
	COUNTED(UC_RX_DROPPED, 4);
	/* Nor of what ends it. */
	q->rq_broken = true;
	request(ROVE_SVC_UC | ROVE_OP_SEND_ONLY, EPSN + 2, false, 0, 8);
	run();
	CHECK(q->t.state == ROVE_TQP_ERR && q->event[ROVE_EVENT_QP_FATAL] == 1 && !wired,
	      "state %d", q->t.state);
	COUNTED(NAK_TX, 0);
	/* Before there is anybody to receive. */
	start(ROVE_SVC_UC);
	q->t.state = ROVE_TQP_INIT;
	request(ROVE_SVC_UC | ROVE_OP_WRITE_ONLY, EPSN, false, 8, 8);
	run();
	COUNTED(RX_BAD_STATE, 1);
	CHECK(untouched(), "written to in INIT");
}

static bool dropped(void)
{
	return stats.counter[ROVE_CNT_RX_BAD_STATE] == awaited;
}

/* READs that wait for their answer, one of them asked for again: each is answered once. */
static bool refused(void)
{
	return stats.counter[ROVE_CNT_NAK_TX];
}

static void pending_replies(void)
{
	u32 again, i;

	for (again = 0; again < 4; again++) {
		start(ROVE_SVC_RC);
		rove_tqp_max_res(&q->t, 16);
		sc.eagain = 1000000;
		for (i = 0; i < 4; i++)
			request(ROVE_OP_READ_REQUEST, EPSN + 2 * i, true, 2 * MTU, 0);
		request(ROVE_OP_READ_REQUEST, EPSN + 2 * again, true, 2 * MTU, 0);
		/* The second half of it alone. */
		request(ROVE_OP_READ_REQUEST, EPSN + 2 * again + 1, true, MTU, 0);
		awaited = 6;
		sim_run_until(all_in, NS_PER_S);
		sc.eagain = 0;
		run();
		CHECK(wired == 8, "%u answers to 8 packets' READs", wired);
		for (i = 0; i < wired; i++)
			CHECK(wire[i].psn == EPSN + i && wire[i].opcode == (i & 1 ?
			      ROVE_OP_READ_RESP_LAST : ROVE_OP_READ_RESP_FIRST) &&
			      wire[i].msn == i / 2 + 1,
			      "answer %u: psn %x", i, wire[i].psn);
	}
}

/* Other resources: what was kept for the old ones is gone. */
static void resources_anew(void)
{
	u32 i;

	start(ROVE_SVC_RC);
	rove_tqp_max_res(&q->t, 4);
	q->t.access |= ROVE_ACCESS_REMOTE_ATOMIC;
	for (i = 0; i < 4; i++)
		request(ROVE_OP_FETCH_ADD, EPSN + i, true, 0, 0);
	run();
	CHECK(wired == 4 && wire[3].opcode == ROVE_OP_ATOMIC_ACK, "%u answers", wired);
	rove_tqp_max_res(&q->t, 4);
	request(ROVE_OP_FETCH_ADD, EPSN + 3, true, 0, 0);
	run();
	CHECK(wired == 4, "%u answers", wired);

	start(ROVE_SVC_RC);
	rove_tqp_max_res(&q->t, 4);
	sc.eagain = 1000000;
	request(ROVE_OP_READ_REQUEST, EPSN, true, MTU, 0);
	awaited = 1;
	sim_run_until(all_in, NS_PER_S);
	rove_tqp_max_res(&q->t, 4);
	sc.eagain = 0;
	run();
	CHECK(!wired, "%u answers", wired);

	/* One is enough for one that comes again ... */
	start(ROVE_SVC_RC);
	rove_tqp_max_res(&q->t, 1);
	for (i = 0; i < 3; i++) {
		request(ROVE_OP_READ_REQUEST, EPSN, true, 8, 0);
		run();
		CHECK(wired == i + 1 && wire[i].psn == EPSN, "%u answers", wired);
	}
	/* ... and is not given up for another before it was answered. */
	sc.eagain = 1000000;
	request(ROVE_OP_READ_REQUEST, EPSN + 1, true, 8, 0);
	request(ROVE_OP_READ_REQUEST, EPSN + 2, true, 8, 0);
	sim_run_until(refused, NS_PER_S);
	sc.eagain = 0;
	run();
	CHECK(wired == 5 && wire[3].opcode == ROVE_OP_READ_RESP_ONLY &&
	      wire[4].syndrome == (ROVE_AETH_NAK | ROVE_NAK_INV_REQ), "%u packets, syndrome %x",
	      wired, wire[4].syndrome);
}

/* What is owed when the QP ends is not sent any more. */
static void last_debts(void)
{
	start(ROVE_SVC_RC);
	sc.eagain = 1000000;
	request(ROVE_OP_READ_REQUEST, EPSN, true, 8, 0);
	awaited = 1;
	sim_run_until(all_in, NS_PER_S);
	request(ROVE_OP_WRITE_ONLY, EPSN + 1, true, 8, 8);
	sim_run_until(written, NS_PER_S);
	sc.eagain = 0;
	rove_tqp_error(&q->t);
	rove_tqp_answer(&q->t);
	net_flush(q);
	CHECK(!wired, "%u packets", wired);

	start(ROVE_SVC_RC);
	sc.eagain = 1000000;
	request(ROVE_OP_WRITE_ONLY, EPSN, true, 8, 8);
	sim_run_until(written, NS_PER_S);
	sc.eagain = 0;
	rove_tqp_answer(&q->t);
	net_flush(q);
	CHECK(wired == 1 && wire[0].syndrome == ACK_PLAIN, "%u packets", wired);
}

/* Was nothing but an acknowledgment of @psn sent, and did it wait? */
static bool ack_alone(u32 psn, bool waited, u64 since)
{
	return wired == 1 && wire[0].opcode == ROVE_OP_ACKNOWLEDGE && wire[0].psn == psn &&
	       (wire[0].at - since >= q->hold_ns) == waited;
}

/* One message's acknowledgment waits for the answer, and goes behind it. */
static void acks_held(void)
{
	static const u8 nak[] = { 0, ROVE_AETH_NAK | ROVE_NAK_PSN_SEQ,
				  ROVE_AETH_NAK | ROVE_NAK_REM_OP };
	static const u32 status[] = { ROVE_WC_BAD_RESP_ERR, ROVE_WC_RETRY_EXC_ERR,
				      ROVE_WC_REM_OP_ERR };
	u64 since;
	u32 i;

	start(ROVE_SVC_RC);
	q->hold_ns = 20 * NS_PER_MS;
	request(ROVE_OP_WRITE_ONLY, EPSN, true, 8, 8);
	sim_run_until(written, NS_PER_S);
	CHECK(!untouched() && !wired, "%u packets", wired);
	post(ROVE_WR_RDMA_WRITE, 8, SIGNALED);
	tqp_send(q);
	CHECK(wired == 2 && wire[0].opcode == ROVE_OP_WRITE_ONLY && wire[1].psn == EPSN &&
	      wire[1].opcode == ROVE_OP_ACKNOWLEDGE, "%u packets, %x, %x", wired,
	      wire[0].opcode, wire[1].opcode);
	run();
	CHECK(wired == 2, "%u packets", wired);

	/* A response goes before what is posted. */
	wired = 0;
	request(ROVE_OP_READ_REQUEST, EPSN + 1, true, 8, 0);
	post(ROVE_WR_RDMA_WRITE, 8, SIGNALED);
	run();
	CHECK(wired == 2 && wire[0].opcode == ROVE_OP_READ_RESP_ONLY &&
	      wire[1].opcode == ROVE_OP_WRITE_ONLY, "%u packets, %x first", wired,
	      wire[0].opcode);

	/* So does one that is asked for while an acknowledgment is held. */
	wired = 0;
	request(ROVE_OP_WRITE_ONLY, EPSN + 2, true, 8, 8);
	request(ROVE_OP_READ_REQUEST, EPSN + 3, true, 8, 0);
	post(ROVE_WR_RDMA_WRITE, 8, SIGNALED);
	run();
	CHECK(wired == 2 && wire[0].opcode == ROVE_OP_READ_RESP_ONLY && wire[0].psn == EPSN + 3,
	      "%u packets, %x first", wired, wire[0].opcode);

	/* And the NAK of one that comes too early. */
	wired = 0;
	request(ROVE_OP_WRITE_ONLY, EPSN + 4, true, 8, 8);
	request(ROVE_OP_WRITE_ONLY, EPSN + 6, true, 8, 8);
	post(ROVE_WR_RDMA_WRITE, 8, SIGNALED);
	run();
	CHECK(wired == 2 && wire[0].syndrome == (ROVE_AETH_NAK | ROVE_NAK_PSN_SEQ) &&
	      wire[0].psn == EPSN + 5, "%u packets, %x first", wired, wire[0].opcode);

	/* None comes. */
	start(ROVE_SVC_RC);
	q->hold_ns = 20 * NS_PER_MS;
	since = sim.now;
	request(ROVE_OP_WRITE_ONLY, EPSN, true, 8, 8);
	run();
	CHECK(ack_alone(EPSN, true, since), "%u packets", wired);

	/* A second message, the beginning of one, and one that came before do not wait. */
	wired = 0;
	since = sim.now;
	request(ROVE_OP_WRITE_ONLY, EPSN + 1, true, 8, 8);
	request(ROVE_OP_WRITE_ONLY, EPSN + 2, true, 8, 8);
	run();
	CHECK(ack_alone(EPSN + 2, false, since), "%u packets", wired);
	wired = 0;
	since = sim.now;
	request(ROVE_OP_WRITE_FIRST, EPSN + 3, true, MTU + 8, MTU);
	run();
	CHECK(ack_alone(EPSN + 3, false, since), "%u packets", wired);
	wired = 0;
	since = sim.now;
	request(ROVE_OP_WRITE_FIRST, EPSN + 3, true, MTU + 8, MTU);
	run();
	CHECK(ack_alone(EPSN + 3, false, since), "%u packets", wired);

	/* Not what the peer may wait for to post a receive. */
	start(ROVE_SVC_RC);
	q->hold_ns = 20 * NS_PER_MS;
	q->t.rnr_retry = 0;
	since = sim.now;
	request(ROVE_OP_WRITE_ONLY, EPSN, true, 8, 8);
	run();
	CHECK(ack_alone(EPSN, false, since), "%u packets", wired);
	start(ROVE_SVC_RC);
	q->hold_ns = 20 * NS_PER_MS;
	post(ROVE_WR_SEND, 8, SIGNALED);
	tqp_send(q);
	answer_soon(ROVE_OP_ACKNOWLEDGE, PSN, ROVE_AETH_RNR_NAK | 1, 0, 0);
	run();
	wired = 0;
	since = sim.now;
	request(ROVE_OP_WRITE_ONLY, EPSN, true, 8, 8);
	run();
	CHECK(ack_alone(EPSN, false, since), "%u packets", wired);

	/* It could not be sent: not behind still more. */
	start(ROVE_SVC_RC);
	q->hold_ns = 20 * NS_PER_MS;
	request(ROVE_OP_WRITE_ONLY, EPSN, true, 8, 8);
	sim_run_until(written, NS_PER_S);
	sc.eagain = 1000000;
	tqp_send(q);
	CHECK(!wired, "%u packets", wired);
	sc.eagain = 0;
	post(ROVE_WR_RDMA_WRITE, 8, SIGNALED);
	tqp_send(q);
	CHECK(wired == 2 && wire[0].opcode == ROVE_OP_ACKNOWLEDGE, "%u packets, %x first", wired,
	      wire[0].opcode);

	/* What is posted fails, or makes no sense, and ends the QP. */
	for (i = 0; i < 2; i++) {
		start(ROVE_SVC_RC);
		q->hold_ns = 20 * NS_PER_MS;
		request(ROVE_OP_WRITE_ONLY, EPSN, true, 8, 8);
		sim_run_until(written, NS_PER_S);
		post(ROVE_WR_RDMA_WRITE, 8, SIGNALED)->opcode = 0x55;
		q->sq_broken = i;
		tqp_send(q);
		CHECK(wired == 1 && wire[0].psn == EPSN && q->t.state == ROVE_TQP_ERR,
		      "%u packets", wired);
	}

	/* What was posted before fails, in each way. */
	for (i = 0; i < 3; i++) {
		start(ROVE_SVC_RC);
		q->t.retry_cnt = 0;
		post(ROVE_WR_RDMA_READ, 8, SIGNALED);
		go();
		q->hold_ns = 20 * NS_PER_MS;
		request(ROVE_OP_WRITE_ONLY, EPSN, true, 8, 8);
		if (i)
			answer_soon(ROVE_OP_ACKNOWLEDGE, PSN, nak[i], 0, 0);
		else
			answer_soon(ROVE_OP_READ_RESP_ONLY, PSN, ACK_PLAIN, 1, 4);
		run();
		CHECK(wired == 2 && wire[1].psn == EPSN && wire[1].syndrome == ACK_PLAIN &&
		      sends == 1 && sent[0].status == status[i] &&
		      q->t.state == ROVE_TQP_ERR, "way %u: %u packets, status %u", i, wired,
		      sent[0].status);
	}

	/* Who may not post does not answer. */
	start(ROVE_SVC_RC);
	q->hold_ns = 20 * NS_PER_MS;
	q->t.state = ROVE_TQP_RTR;
	since = sim.now;
	request(ROVE_OP_WRITE_ONLY, EPSN, true, 8, 8);
	run();
	CHECK(ack_alone(EPSN, false, since), "%u packets", wired);

	/* The QP ends. */
	start(ROVE_SVC_RC);
	q->hold_ns = 20 * NS_PER_MS;
	request(ROVE_OP_WRITE_ONLY, EPSN, true, 8, 8);
	sim_run_until(written, NS_PER_S);
	rove_tqp_answer(&q->t);
	net_flush(q);
	CHECK(wired == 1 && wire[0].psn == EPSN, "%u packets", wired);

	/* It has ended: who looks whether one waits finds none. */
	start(ROVE_SVC_RC);
	q->hold_ns = 20 * NS_PER_MS;
	request(ROVE_OP_WRITE_ONLY, EPSN, true, 8, 8);
	sim_run_until(written, NS_PER_S);
	CHECK(q->t.resp.ack_held, "%u packets", wired);
	rove_tqp_error(&q->t);
	CHECK(!q->t.resp.ack_held && !wired, "%u packets", wired);
}

/* Taken from the QP in the middle of a WRITE, and between a READ and its repetition. */
static void access_taken(void)
{
	start(ROVE_SVC_RC);
	request(ROVE_OP_WRITE_FIRST, EPSN, false, 2 * MTU, MTU);
	run();
	q->t.access &= ~ROVE_ACCESS_REMOTE_WRITE;
	request(ROVE_OP_WRITE_LAST, EPSN + 1, true, 0, MTU);
	run();
	CHECK(wired == 1 && wire[0].syndrome == (ROVE_AETH_NAK | ROVE_NAK_REM_ACCESS) &&
	      q->t.state == ROVE_TQP_ERR, "%u packets", wired);

	start(ROVE_SVC_RC);
	q->t.access &= ~ROVE_ACCESS_REMOTE_WRITE;
	request(ROVE_OP_ATOMIC_WRITE, EPSN, true, 8, 8);
	run();
	CHECK(wired == 1 && wire[0].syndrome == (ROVE_AETH_NAK | ROVE_NAK_REM_ACCESS) &&
	      untouched(), "%u packets", wired);

	start(ROVE_SVC_RC);
	request(ROVE_OP_READ_REQUEST, EPSN, true, 8, 0);
	run();
	CHECK(wired == 1 && wire[0].opcode == ROVE_OP_READ_RESP_ONLY, "%u packets", wired);
	q->t.access &= ~ROVE_ACCESS_REMOTE_READ;
	request(ROVE_OP_READ_REQUEST, EPSN, true, 8, 0);
	run();
	CHECK(wired == 1 && q->t.state == ROVE_TQP_RTS, "%u packets", wired);
	request(ROVE_OP_READ_REQUEST, EPSN + 1, true, 8, 0);
	run();
	CHECK(wired == 2 && wire[1].syndrome == (ROVE_AETH_NAK | ROVE_NAK_REM_ACCESS),
	      "%u packets", wired);
}

static void reads_soon(const u32 *psn, u32 n, u32 len)
{
	u32 i;

	for (i = 0; i < n; i++)
		request(ROVE_OP_READ_REQUEST, EPSN + psn[i], true, len, 0);
	awaited += n;
	sim_run_until(all_in, NS_PER_S);
}

static void expect_answers(u32 from, const u32 *psn, u32 n)
{
	u32 i;

	CHECK(wired == from + n, "%u answers", wired - from);
	for (i = 0; i < n && from + i < wired; i++)
		CHECK(wire[from + i].psn == EPSN + psn[i] && wire[from + i].msn == 1 + psn[i],
		      "answer %u: psn %x, message %u", i, wire[from + i].psn, wire[from + i].msn);
}

/* READs that come again, in whatever order, are answered in their own. */
static void answers_in_order(void)
{
	static const u32 again[] = { 1, 3, 0, 2, 1 }, order[] = { 0, 1, 2, 3, 4 };

	start(ROVE_SVC_RC);
	rove_tqp_max_res(&q->t, 4);
	awaited = 0;
	reads_soon(order, 4, MTU);
	run();
	expect_answers(0, order, 4);
	sc.eagain = 1000000;
	reads_soon(again, 5, MTU);
	sc.eagain = 0;
	run();
	expect_answers(4, order, 4);
	/* The oldest of them is let go for a new one. */
	sc.eagain = 1000000;
	reads_soon(again, 4, MTU);
	reads_soon(order + 4, 1, MTU);
	sc.eagain = 0;
	run();
	expect_answers(8, order + 1, 4);
}

/* A READ of which @sent packets have gone; all but its first are asked for again. */
static void tail_again(u32 sent)
{
	static const u32 tail = 1, behind = 3;

	start(ROVE_SVC_RC);
	rove_tqp_max_res(&q->t, 3);
	sc.eagain = 1000000;
	awaited = 0;
	request(ROVE_OP_READ_REQUEST, EPSN, true, 3 * MTU, 0);
	awaited++;
	reads_soon(&behind, 1, MTU);
	q->t.resp.replies[q->t.resp.reply_head].sent = sent;
	beyond = MTU;
	reads_soon(&tail, 1, 2 * MTU);
	beyond = 0;
	sc.eagain = 0;
	run();
}

/* Who asks again for the tail of one asks again for those behind it, too. */
static void cut_replies(void)
{
	tail_again(2);
	CHECK(wired == 2 && wire[0].psn == EPSN + 1 && wire[1].psn == EPSN + 2,
	      "%u answers, psn %x", wired, wire[0].psn);
	/* Of one that will be sent anyway nothing is cut off. */
	tail_again(1);
	CHECK(wired == 3 && wire[0].psn == EPSN + 1 && wire[2].psn == EPSN + 3,
	      "%u answers, psn %x", wired, wire[0].psn);
}

/* A READ, of which two packets have gone, comes again; @behind: another is behind it. */
static void gone_in_part(bool behind)
{
	start(ROVE_SVC_RC);
	rove_tqp_max_res(&q->t, 3);
	sc.eagain = 1000000;
	request(ROVE_OP_READ_REQUEST, EPSN, true, 3 * MTU, 0);
	if (behind)
		request(ROVE_OP_READ_REQUEST, EPSN + 3, true, MTU, 0);
	awaited = 1 + behind;
	sim_run_until(all_in, NS_PER_S);
	q->t.resp.replies[q->t.resp.reply_head].sent = 2;
	request(ROVE_OP_READ_REQUEST, EPSN, true, 3 * MTU, 0);
	awaited++;
	sim_run_until(all_in, NS_PER_S);
}

/* A copy of a request, made by the network, takes the place of no answer that is to be sent. */
static void copies(void)
{
	static const u8 op[] = { ROVE_OP_READ_REQUEST, ROVE_OP_FETCH_ADD };
	static const u32 order[] = { 1, 3, 4, 5 };
	u32 i, k;

	for (k = 0; k < 4; k++) {
		u8 asked = op[k & 1];

		start(ROVE_SVC_RC);
		rove_tqp_max_res(&q->t, 4);
		request(asked, EPSN, true, 8, 0);
		request(asked, EPSN + 1, true, 8, 0);
		run();
		CHECK(wired == 2, "%u answers", wired);
		/* Two more, of which nothing has gone yet, and the first once more. */
		sc.eagain = 1000000;
		request(op[k / 2], EPSN + 2, true, 8, 0);
		request(asked, EPSN + 3, true, 8, 0);
		request(asked, EPSN, true, 8, 0);
		awaited = 5;
		sim_run_until(all_in, NS_PER_S);
		sc.eagain = 0;
		run();
		CHECK(wired == 5 && wire[2].psn == EPSN && wire[3].psn == EPSN + 2 &&
		      wire[4].psn == EPSN + 3, "%u answers", wired);
		COUNTED(DUP_REQUEST, 1);
	}
	/* Nor does one that asks for a part only, which the network has kept back for long. */
	start(ROVE_SVC_RC);
	rove_tqp_max_res(&q->t, 3);
	request(ROVE_OP_READ_REQUEST, EPSN, true, 3 * MTU, 0);
	run();
	CHECK(wired == 3, "%u answers", wired);
	awaited = 1;
	sc.eagain = 1000000;
	reads_soon(&order[1], 1, 2 * MTU);
	reads_soon(&order[3], 1, MTU);
	beyond = MTU;
	reads_soon(&order[0], 1, MTU);
	beyond = 0;
	sc.eagain = 0;
	run();
	CHECK(wired == 7, "%u answers", wired);
	for (i = 0; i < 4; i++)
		CHECK(wire[3 + i].psn == EPSN + order[i], "answer %u: psn %x", i, wire[3 + i].psn);
	/* One that has gone in part is sent from its beginning, and what is behind it as well. */
	gone_in_part(true);
	sc.eagain = 0;
	run();
	CHECK(wired == 4, "%u answers", wired);
	for (i = 0; i < 4; i++)
		CHECK(wire[i].psn == EPSN + i, "answer %u: psn %x", i, wire[i].psn);
	/* Who waits for it is told that it cannot be had any more. */
	gone_in_part(false);
	q->t.access &= ~ROVE_ACCESS_REMOTE_READ;
	sc.eagain = 0;
	run();
	CHECK(wired == 1 && wire[0].psn == EPSN &&
	      wire[0].syndrome == (ROVE_AETH_NAK | ROVE_NAK_REM_ACCESS), "%u packets", wired);
}

/* There is no room for such a copy where a peer has many pieces of one READ sent again. */
static void full_of_pieces(void)
{
	u32 i;

	start(ROVE_SVC_RC);
	rove_tqp_max_res(&q->t, 3);
	request(ROVE_OP_READ_REQUEST, EPSN, true, 8, 0);
	request(ROVE_OP_READ_REQUEST, EPSN + 1, true, 3 * MTU, 0);
	run();
	CHECK(wired == 4, "%u answers", wired);
	sc.eagain = 1000000;
	for (i = 0; i < 3; i++) {
		beyond = i * MTU;
		request(ROVE_OP_READ_REQUEST, EPSN + 1 + i, true, MTU, 0);
	}
	beyond = 0;
	request(ROVE_OP_READ_REQUEST, EPSN, true, 8, 0);
	awaited = 6;
	sim_run_until(all_in, NS_PER_S);
	sc.eagain = 0;
	run();
	CHECK(wired == 7, "%u answers", wired);
	for (i = 0; i < 3; i++)
		CHECK(wire[4 + i].psn == EPSN + 1 + i, "psn %x", wire[4 + i].psn);
}

/*
 * What is asked for anew takes the place of what waits to be sent again, of the oldest: the
 * peer has had that.
 */
static void oldest_given_up(void)
{
	u32 i, k;

	for (k = 0; k < 3; k++) {
		start(ROVE_SVC_RC);
		rove_tqp_max_res(&q->t, 3);
		/* Wherever in the ring it stands. */
		for (i = 0; i < 3 + k; i++) {
			request(ROVE_OP_READ_REQUEST, EPSN + i, true, 8, 0);
			run();
		}
		wired = 0;
		sc.eagain = 1000000;
		for (i = 0; i < 3; i++)
			request(ROVE_OP_READ_REQUEST, EPSN + k + i, true, 8, 0);
		request(ROVE_OP_READ_REQUEST, EPSN + k + 3, true, 8, 0);
		awaited = 3 + k + 4;
		sim_run_until(all_in, NS_PER_S);
		sc.eagain = 0;
		run();
		CHECK(wired == 3, "%u answers", wired);
		for (i = 0; i < 3; i++)
			CHECK(wire[i].psn == EPSN + k + 1 + i, "answer %u: psn %x", i,
			      wire[i].psn);
	}
}

/* Another request by the number of one that was answered is not that one again. */
static void other_sort_again(void)
{
	static const struct {
		u8 opcode;
		u32 len;
		u32 payload;
	} t[] = {
		{ ROVE_OP_READ_REQUEST, 8, 0 }, { ROVE_OP_FETCH_ADD, 0, 0 },
		{ ROVE_OP_ATOMIC_WRITE, 8, 8 },
	};
	u32 i, k;

	for (i = 0; i < ARRAY_SIZE(t); i++) {
		for (k = 0; k < ARRAY_SIZE(t); k++) {
			start(ROVE_SVC_RC);
			request(t[i].opcode, EPSN, true, t[i].len, t[i].payload);
			run();
			request(t[k].opcode, EPSN, true, t[k].len, t[k].payload);
			run();
			CHECK(wired == 1 + (i == k), "opcode %x after %x: %u answers",
			      t[k].opcode, t[i].opcode, wired);
			COUNTED(DUP_REQUEST, 1);
		}
	}
	/* Nor is what would begin where it ended. */
	start(ROVE_SVC_RC);
	request(ROVE_OP_READ_REQUEST, EPSN, true, MTU, 0);
	request(ROVE_OP_WRITE_ONLY, EPSN + 1, true, 8, 8);
	run();
	CHECK(wired == 2, "%u packets", wired);
	beyond = MTU;
	request(ROVE_OP_READ_REQUEST, EPSN + 1, true, 0, 0);
	run();
	beyond = 0;
	CHECK(wired == 2, "opcode %x for what was no READ", wire[2].opcode);
	/* The end of one is, but nothing behind that. */
	start(ROVE_SVC_RC);
	request(ROVE_OP_READ_REQUEST, EPSN, true, 3 * MTU, 0);
	run();
	CHECK(wired == 3, "%u packets", wired);
	beyond = MTU;
	request(ROVE_OP_READ_REQUEST, EPSN + 1, true, 2 * MTU + 1, 0);
	run();
	CHECK(wired == 3, "%u packets beyond the end", wired - 3);
	request(ROVE_OP_READ_REQUEST, EPSN + 1, true, 2 * MTU, 0);
	run();
	beyond = 0;
	CHECK(wired == 5 && wire[3].psn == EPSN + 1, "%u packets", wired);
}

/* The right word for what is wrong: too long is invalid, beyond the region no access. */
static void refusals(void)
{
	static const struct {
		u8 opcode;
		u32 len;
		u32 payload;
		u8 nak;
	} t[] = {
		{ ROVE_OP_READ_REQUEST, 0x80000000, 0, ROVE_NAK_REM_ACCESS },
		{ ROVE_OP_READ_REQUEST, 0x80000001, 0, ROVE_NAK_INV_REQ },
		{ ROVE_OP_WRITE_FIRST, 0x80000000, MTU, ROVE_NAK_REM_ACCESS },
		{ ROVE_OP_WRITE_FIRST, 0x80000001, MTU, ROVE_NAK_INV_REQ },
		{ ROVE_OP_WRITE_ONLY, MTU + 1, MTU + 1, ROVE_NAK_INV_REQ },
		{ ROVE_OP_WRITE_FIRST, 2 * MTU, MTU - 1, ROVE_NAK_INV_REQ },
		{ ROVE_OP_WRITE_FIRST, MTU, MTU, ROVE_NAK_INV_REQ },
		{ ROVE_OP_ATOMIC_WRITE, 8, 4, ROVE_NAK_INV_REQ },
		{ ROVE_OP_ATOMIC_WRITE, 4, 8, ROVE_NAK_INV_REQ },
		{ ROVE_OP_ATOMIC_WRITE, 4, 4, ROVE_NAK_INV_REQ },
		{ ROVE_OP_ATOMIC_WRITE, 16, 16, ROVE_NAK_INV_REQ },
		{ ROVE_OP_SEND_ONLY, 0, MTU + 1, ROVE_NAK_INV_REQ },
		{ ROVE_OP_SEND_ONLY, 0, 101, ROVE_NAK_INV_REQ },
		{ ROVE_OP_SEND_MIDDLE, 0, MTU, ROVE_NAK_INV_REQ },
		/* Nobody's key. */
		{ ROVE_OP_SEND_ONLY_INV, 0, 8, ROVE_NAK_INV_REQ },
		/* Reserved, and FLUSH with its headers. */
		{ 0x15, 0, 0, ROVE_NAK_INV_REQ },
		{ 0x18, 0, MTU, ROVE_NAK_INV_REQ },
		{ 0x1c, 0, 20, ROVE_NAK_INV_REQ },
		{ 0x1f, 0, 8, ROVE_NAK_INV_REQ },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(t); i++) {
		start(ROVE_SVC_RC);
		post_recv(100);
		request(t[i].opcode, EPSN, true, t[i].len, t[i].payload);
		run();
		CHECK(wired == 1 && wire[0].psn == EPSN && wire[0].msn == 0 &&
		      wire[0].syndrome == (ROVE_AETH_NAK | t[i].nak),
		      "row %u: %u packets, syndrome %x", i, wired, wire[0].syndrome);
		CHECK(untouched() && q->t.state == ROVE_TQP_ERR &&
		      q->event[t[i].nak == ROVE_NAK_INV_REQ ? ROVE_EVENT_QP_REQ_ERR :
			       ROVE_EVENT_QP_ACCESS_ERR] == 1, "row %u: state %d", i,
		      q->t.state);
		COUNTED(NAK_TX, 1);
		COUNTED(RNR_NAK_TX, 0);
	}
	/* A buffer that its owner may not write to. */
	start(ROVE_SVC_RC);
	post_recv(100)->sge[0].lkey ^= 1;
	request(ROVE_OP_SEND_ONLY, EPSN, true, 0, 8);
	run();
	CHECK(wired == 1 && wire[0].psn == EPSN && wire[0].msn == 0 &&
	      wire[0].syndrome == (ROVE_AETH_NAK | ROVE_NAK_REM_OP) && recvs == 1 &&
	      got[0].status == ROVE_WC_LOC_PROT_ERR && q->event[ROVE_EVENT_QP_FATAL] == 1,
	      "%u packets, syndrome %x, status %u", wired, wire[0].syndrome, got[0].status);
	/* A SEND that goes on where a WRITE has begun. */
	start(ROVE_SVC_RC);
	post_recv(2 * MTU);
	request(ROVE_OP_WRITE_FIRST, EPSN, false, 3 * MTU, MTU);
	request(ROVE_OP_SEND_MIDDLE, EPSN + 1, true, 0, MTU);
	run();
	CHECK(wired == 1 && wire[0].syndrome == (ROVE_AETH_NAK | ROVE_NAK_INV_REQ) &&
	      wire[0].psn == EPSN + 1, "%u packets", wired);
	/* A message whose last packet is empty. */
	start(ROVE_SVC_RC);
	post_recv(2 * MTU);
	request(ROVE_OP_SEND_FIRST, EPSN, false, 0, MTU);
	request(ROVE_OP_SEND_LAST, EPSN + 1, false, 0, 0);
	run();
	CHECK(wired == 1 && wire[0].syndrome == (ROVE_AETH_NAK | ROVE_NAK_INV_REQ) &&
	      recvs == 1 && got[0].status == ROVE_WC_REM_INV_REQ_ERR, "%u packets", wired);
}

/* The NAK that ends it still to be sent: nothing is received any more. */
static void last_words(void)
{
	static const u32 event[] = { ROVE_EVENT_QP_FATAL, ROVE_EVENT_QP_REQ_ERR,
				     ROVE_EVENT_QP_ACCESS_ERR };
	static const u8 nak[] = { ROVE_NAK_REM_OP, ROVE_NAK_INV_REQ, ROVE_NAK_REM_ACCESS };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(event); i++) {
		start(ROVE_SVC_RC);
		sc.eagain = 1000000;
		q->rq_broken = !i;
		q->t.access = i == 2 ? 0 : q->t.access;
		request(i == 2 ? ROVE_OP_WRITE_ONLY : ROVE_OP_SEND_ONLY, EPSN, true, 8,
			i == 1 ? MTU + 4 : 8);
		request(ROVE_OP_WRITE_ONLY, EPSN, true, 8, 8);
		request(ROVE_OP_WRITE_ONLY, EPSN + 1, true, 8, 8);
		request(ROVE_OP_WRITE_ONLY, EPSN - 1, true, 8, 8);
		awaited = 3;
		sim_run_until(dropped, NS_PER_S);
		q->t.access = -1;
		sc.eagain = 0;
		run();
		CHECK(untouched() && wired == 1 && wire[0].psn == EPSN &&
		      wire[0].syndrome == (ROVE_AETH_NAK | nak[i]) &&
		      q->event[event[i]] == 1, "event %u: %u packets", event[i], wired);
		COUNTED(RX_BAD_STATE, 3);
		COUNTED(DUP_REQUEST, 0);
	}
}

/* What comes between the first and the last of a message. */
static void middles(void)
{
	static const u8 op[][3] = {
		{ ROVE_OP_SEND_FIRST, ROVE_OP_SEND_MIDDLE, ROVE_OP_SEND_ONLY },
		{ ROVE_OP_WRITE_FIRST, ROVE_OP_WRITE_MIDDLE, ROVE_OP_WRITE_ONLY },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(op); i++) {
		/* It begins none. */
		start(ROVE_SVC_RC);
		post_recv(4 * MTU);
		post_recv(4 * MTU);
		request(op[i][2], EPSN, false, 8, 8);
		request(op[i][1], EPSN + 1, false, 0, MTU);
		run();
		CHECK(wired == 1 && wire[0].syndrome == (ROVE_AETH_NAK | ROVE_NAK_INV_REQ),
		      "opcode %x: %u packets", op[i][1], wired);
		/* It is as long as a packet may be. */
		start(ROVE_SVC_RC);
		post_recv(4 * MTU);
		request(op[i][0], EPSN, false, 4 * MTU, MTU);
		request(op[i][1], EPSN + 1, false, 0, MTU - 4);
		run();
		CHECK(wired == 1 && wire[0].syndrome == (ROVE_AETH_NAK | ROVE_NAK_INV_REQ),
		      "opcode %x: %u packets", op[i][1], wired);
		/* It may ask for an acknowledgment. */
		start(ROVE_SVC_RC);
		post_recv(4 * MTU);
		request(op[i][0], EPSN, false, 4 * MTU, MTU);
		request(op[i][1], EPSN + 1, true, 0, MTU);
		run();
		CHECK(wired == 1 && wire[0].syndrome == ACK_PLAIN && wire[0].psn == EPSN + 1,
		      "opcode %x: %u packets", op[i][1], wired);
		/* Nothing comes after what ends the connection. */
		start(ROVE_SVC_RC);
		post_recv(4 * MTU);
		sc.eagain = 1000000;
		request(op[i][0], EPSN, false, 4 * MTU, MTU);
		request(op[i][1], EPSN + 1, false, 0, MTU + 4);
		request(op[i][1], EPSN + 1, false, 0, MTU);
		request(op[i][1], EPSN + 2, false, 0, MTU);
		request(op[i][1], EPSN + 3, false, 0, MTU);
		awaited = 3;
		sim_run_until(dropped, NS_PER_S);
		sc.eagain = 0;
		run();
		COUNTED(RX_BAD_STATE, 3);
		start(ROVE_SVC_RC);
		post_recv(4 * MTU);
		request(op[i][0], EPSN, false, 4 * MTU, MTU);
		run();
		rove_tqp_error(&q->t);
		request(op[i][1], EPSN + 1, false, 0, MTU);
		run();
		COUNTED(RX_BAD_STATE, 1);
	}
}

/* Payload where there is none: no packet at all. */
static void malformed(void)
{
	start(ROVE_SVC_RC);
	post(ROVE_WR_RDMA_WRITE, 8, SIGNALED);
	go();
	request(ROVE_OP_READ_REQUEST, EPSN, true, 8, 4);
	request(ROVE_OP_FETCH_ADD, EPSN, true, 0, 4);
	answer(ROVE_OP_ACKNOWLEDGE, PSN, ACK_PLAIN, 1, 4);
	CHECK(wired == 1 && !sends && untouched() && q->t.state == ROVE_TQP_RTS,
	      "%u packets, %u completions", wired, sends);
}

/* A datagram goes where its work request says, and is then no longer under way. */
static void datagram(void)
{
	struct rove_send_wqe *wqe;

	start(ROVE_SVC_UD);
	wqe = post(ROVE_WR_SEND, 8, SIGNALED);
	wqe->ah = 1;
	wqe->remote_qpn = 0xff123456;
	go();
	CHECK(wired == 1 && sends == 1 && q->t.dest_qpn == 0x123456, "to %x",
	      q->t.dest_qpn);
	CHECK(rove_tqp_idle(&q->t), "not idle");
}

/* Messages of all kinds are counted in what answers them. */
static void message_numbers(void)
{
	static const struct {
		u8 opcode;
		u32 len;
		u32 payload;
	} t[] = {
		{ ROVE_OP_SEND_ONLY, 0, 8 }, { ROVE_OP_WRITE_ONLY, 8, 8 },
		{ ROVE_OP_READ_REQUEST, 8, 0 }, { ROVE_OP_FETCH_ADD, 0, 0 },
		{ ROVE_OP_COMPARE_SWAP, 0, 0 }, { ROVE_OP_ATOMIC_WRITE, 8, 8 },
		{ ROVE_OP_SEND_ONLY_IMM, 0, 0 }, { ROVE_OP_WRITE_ONLY_IMM, 0, 0 },
	};
	u32 i;

	start(ROVE_SVC_RC);
	for (i = 0; i < 40; i++) {
		post_recv(8);
		request(t[i % 8].opcode, EPSN + i, true, t[i % 8].len, t[i % 8].payload);
		run();
		CHECK(wired == i + 1 && wire[i].msn == i + 1 && wire[i].psn == EPSN + i,
		      "opcode %x: message %u, %u packets", t[i % 8].opcode, wire[i].msn,
		      wired);
	}
	COUNTED(SEND_RX, 10);
	COUNTED(RDMA_WRITE_RX, 10);
	COUNTED(RDMA_READ_RX, 5);
	COUNTED(RDMA_ATOMIC_RX, 15);
}

/* Waits for memory grow, and are forgotten when a packet was taken. */
static void page_naks(void)
{
	u32 i, k;

	start(ROVE_SVC_RC);
	for (k = 0; k < 3; k++) {
		sc.paging = 1000000;
		for (i = 0; i < 10; i++) {
			request(ROVE_OP_WRITE_ONLY, EPSN + k, true, 8, 8);
			run();
			CHECK(wire[wired - 1].syndrome ==
			      (ROVE_AETH_RNR_NAK | min(8 + 2 * i, 24U)),
			      "wait %u: syndrome %x", i, wire[wired - 1].syndrome);
		}
		sc.paging = 0;
		request(ROVE_OP_WRITE_ONLY, EPSN + k, true, 8, 8);
		run();
		CHECK(wire[wired - 1].syndrome == ACK_PLAIN && wired == 11 * (k + 1),
		      "%u packets", wired);
	}
	COUNTED(PAGE_NAK_TX, 30);

	/* A receive work request waits along. */
	start(ROVE_SVC_RC);
	post_recv(8);
	sc.paging = 1000000;
	request(ROVE_OP_SEND_ONLY, EPSN, true, 8, 8);
	run();
	CHECK(wired == 1 && wire[0].syndrome == (ROVE_AETH_RNR_NAK | 8) && !recvs,
	      "syndrome %x, %u received", wire[0].syndrome, recvs);
	sc.paging = 0;
	request(ROVE_OP_SEND_ONLY, EPSN, true, 8, 8);
	run();
	CHECK(recvs == 1 && !got[0].status && q->t.state == ROVE_TQP_RTS, "%u received, status %u",
	      recvs, got[0].status);

	start(ROVE_SVC_RC);
	sc.paging = 1000000;
	request(ROVE_OP_ATOMIC_WRITE, EPSN, true, 8, 8);
	run();
	CHECK(wired == 1 && wire[0].syndrome == (ROVE_AETH_RNR_NAK | 8), "syndrome %x",
	      wire[0].syndrome);
	sc.paging = 0;
	request(ROVE_OP_ATOMIC_WRITE, EPSN, true, 8, 8);
	run();
	CHECK(wired == 2 && wire[1].syndrome == ACK_PLAIN && !untouched(), "syndrome %x",
	      wire[1].syndrome);
}

/* ---- turns ---- */

/*
 * So much in a call: 120 packets of 512 bytes, and the next at the next call; or up to
 * what the program waits for, after 64 packets, if more follows.
 */
static void budgets(void)
{
	static const u32 posts[] = { 64, 100 };
	u32 i, k;

	start(ROVE_SVC_RC);
	q->t.mtu = 512;
	window(1024);
	for (i = 0; i < 128; i++)
		post(ROVE_WR_RDMA_WRITE, 512, 0);
	tqp_send(q);
	CHECK(wired == 120 && q->ack_owed, "%u WRITEs", wired);
	run();
	CHECK(wired == 128, "%u WRITEs", wired);

	for (k = 0; k < 2; k++) {
		start(ROVE_SVC_RC);
		window(1024);
		for (i = 0; i < posts[k]; i++)
			post(ROVE_WR_RDMA_WRITE, 8, i == 63 ? SIGNALED : 0);
		tqp_send(q);
		CHECK(wired == 64 && wire[63].ask && q->ack_owed == (posts[k] > 64),
		      "%u of %u WRITEs", wired, posts[k]);
		run();
		CHECK(wired == posts[k], "%u of %u WRITEs", wired, posts[k]);
	}

	start(ROVE_SVC_UD);
	q->t.mtu = 512;
	for (i = 0; i < 128; i++)
		post(ROVE_WR_SEND, 512, 0)->ah = 1;
	tqp_send(q);
	CHECK(wired == 120 && q->ack_owed, "%u datagrams", wired);
	run();
	CHECK(wired == 128, "%u datagrams", wired);

	start(ROVE_SVC_RC);
	q->t.mtu = 512;
	rove_tqp_max_res(&q->t, ROVE_MAX_RD_ATOMIC);
	sc.eagain = 1000000;
	for (i = 0; i < ROVE_MAX_RD_ATOMIC; i++)
		request(ROVE_OP_READ_REQUEST, EPSN + i, true, 512, 0);
	awaited = ROVE_MAX_RD_ATOMIC;
	sim_run_until(all_in, NS_PER_S);
	sc.eagain = 0;
	stats.pkts = 0;
	tqp_send(q);
	CHECK(wired == 120, "%u answers", wired);
	run();
	CHECK(wired == 128, "%u answers", wired);

	/* What sends nothing, and is posted as fast as it is done: 512 bytes each. */
	start(ROVE_SVC_RC);
	again = 1000;
	post(ROVE_WR_BIND_MW, 0, 0);
	tqp_send(q);
	CHECK(again == 1000 - 240 && q->ack_owed, "%u more", again);
	run();
	CHECK(!again, "%u more", again);

	start(ROVE_SVC_UD);
	again = 1000;
	post(ROVE_WR_SEND, MTU + 1, SIGNALED)->ah = 1;
	tqp_send(q);
	CHECK(again == 1000 - 240 && q->ack_owed, "%u more", again);
	run();
	CHECK(!again && !wired, "%u more", again);
}

/* Local work requests behind what is not acknowledged: not without end. */
static void many_locals(void)
{
	start_queues(ROVE_SVC_RC, 8192, 128);
	post(ROVE_WR_RDMA_WRITE, 8, 0);
	again = 6000;
	post(ROVE_WR_BIND_MW, 0, 0);
	tqp_send(q);
	run();
	CHECK(q->t.req.cur - q->t.req.done == ROVE_LOCALS_MAX && again, "%u are done",
	      q->t.req.cur - q->t.req.done);
	answer_soon(ROVE_OP_ACKNOWLEDGE, PSN, ROVE_AETH_ACK | ROVE_AETH_NO_CREDIT, 1, 0);
	run();
	CHECK(q->t.req.cur == q->t.req.done && !again, "%u more, %u not done", again,
	      q->t.req.fetched - q->t.req.done);
}

/* The machine was busy: the probe is put off, once. */
static void put_off(void)
{
	u64 late;

	start(ROVE_SVC_RC);
	q->t.timeout = 20;
	post(ROVE_WR_RDMA_WRITE, 8, SIGNALED);
	tqp_send(q);
	late = q->t.req.probe_deadline + 2 * ROVE_PROBE_NS;
	rove_tqp_timer(&q->t, late);
	CHECK(wired == 1 && q->t.req.probe_deadline == late + ROVE_PROBE_NS,
	      "%u packets, again in %llu ns", wired, q->t.req.probe_deadline - late);
	late += 3 * ROVE_PROBE_NS;
	rove_tqp_timer(&q->t, late);
	net_flush(q);
	CHECK(wired == 2, "%u packets", wired);
}

/* What happens once a time may happen another time, after there was progress. */
static void once_again(void)
{
	u32 i;

	/* One NAK, one retry, however often it comes. */
	start(ROVE_SVC_RC);
	q->t.rnr_retry = 3;
	post(ROVE_WR_SEND, 8, SIGNALED);
	tqp_send(q);
	for (i = 0; i < 3; i++)
		answer_soon(ROVE_OP_ACKNOWLEDGE, PSN, ROVE_AETH_RNR_NAK | 16, 0, 0);
	run();
	CHECK(q->t.req.rnr_retried == 1, "%u retries", q->t.req.rnr_retried);

	start(ROVE_SVC_RC);
	for (i = 0; i < 2; i++) {
		wired = 0;
		post(ROVE_WR_RDMA_READ, 8, SIGNALED);
		post(ROVE_WR_RDMA_WRITE, 8, SIGNALED);
		go();
		answer(ROVE_OP_ACKNOWLEDGE, PSN + 2 * i + 1, ACK_PLAIN, 2 * i + 2, 0);
		CHECK(wired == 4, "%u packets, time %u", wired, i);
		answer(ROVE_OP_READ_RESP_ONLY, PSN + 2 * i, ACK_PLAIN, 2 * i + 1, 8);
		ack(PSN + 2 * i + 1, 2 * i + 2);
	}
	COUNTED(IMPLIED_NAK, 2);
	CHECK(sends == 4, "%u completions", sends);
}

/* What has a fence waits for the answers to READs and atomics before it, and for no more. */
static void fences(void)
{
	start(ROVE_SVC_RC);
	post(ROVE_WR_RDMA_READ, 8, SIGNALED);
	post(ROVE_WR_RDMA_WRITE, 8, SIGNALED | ROVE_WR_FENCE);
	post(ROVE_WR_RDMA_WRITE, 8, SIGNALED | ROVE_WR_FENCE);
	go();
	CHECK(wired == 1, "%u packets", wired);
	answer(ROVE_OP_READ_RESP_ONLY, PSN, ACK_PLAIN, 1, 8);
	CHECK(wired == 3 && sends == 1, "%u packets, %u done", wired, sends);

	/* Local work as well. */
	for (u32 i = 0; i < 2; i++) {
		start(ROVE_SVC_RC);
		post(ROVE_WR_RDMA_READ, 8, SIGNALED);
		post(ROVE_WR_BIND_MW, 0, SIGNALED | (i ? ROVE_WR_FENCE : 0));
		go();
		CHECK(q->t.req.cur - q->t.req.done == 2 - i, "%u begun",
		      q->t.req.cur - q->t.req.done);
		answer(ROVE_OP_READ_RESP_ONLY, PSN, ACK_PLAIN, 1, 8);
		CHECK(sends == 2 && !sent[1].status, "%u done", sends);
	}
}

/* The packets of a READ's response from @from on, @n of them. */
static void read_response(u32 from, u32 n)
{
	while (n--)
		answer(ROVE_OP_READ_RESP_MIDDLE, PSN + from++, 0, 0, MTU);
}

/* The whole response to the @i-th of READs of @npkts packets each. */
static void read_answered(u32 i, u32 npkts)
{
	u32 psn = PSN + i * npkts;

	answer(ROVE_OP_READ_RESP_FIRST, psn, ACK_PLAIN, i + 1, MTU);
	read_response(i * npkts + 1, npkts - 2);
	answer(ROVE_OP_READ_RESP_LAST, psn + npkts - 1, ACK_PLAIN, i + 1, MTU);
}

/* @n requests of @len bytes, of which eight may be outstanding. */
static void stream(u32 opcode, u32 n, u32 len)
{
	start(ROVE_SVC_RC);
	q->t.max_rd_atomic = 8;
	while (n--)
		post(opcode, len, SIGNALED);
}

/* READs whose responses were lost are not all asked for again at once. */
static void reads_again(void)
{
	u32 i;

	stream(ROVE_WR_RDMA_READ, 8, 2 * MTU);
	go();
	CHECK(wired == 8, "%u packets", wired);
	answer(ROVE_OP_READ_RESP_FIRST, PSN + 2, ACK_PLAIN, 2, MTU);
	CHECK(wired == 10 && wire[8].psn == PSN && wire[9].psn == PSN + 2 &&
	      q->t.req.cwnd == 4, "%u packets, cwnd %u", wired, q->t.req.cwnd);
	for (i = 0; i < 8; i++)
		read_answered(i, 2);
	CHECK(wired == 16 && sends == 8 && !sent[7].status, "%u packets, %u done", wired, sends);
}

/* A program that streams has READs sent, and so answered, a quarter of them together. */
static void reads_together(void)
{
	u32 i;

	stream(ROVE_WR_RDMA_READ, 13, 3 * MTU);
	go();
	CHECK(wired == 8, "%u packets", wired);
	for (i = 0; i < 5; i++) {
		read_answered(i, 3);
		CHECK(wired == 8 + (i + 1) / 2 * 2, "%u packets, %u done", wired, sends);
	}
	read_answered(5, 3);
	CHECK(wired == 13 && sends == 6, "%u packets, %u done", wired, sends);

	/* Short responses share trains, and an atomic's. */
	stream(ROVE_WR_RDMA_READ, 9, 2 * MTU);
	go();
	read_answered(0, 2);
	CHECK(wired == 9 && sends == 1, "%u packets, %u done", wired, sends);
	stream(ROVE_WR_ATOMIC_FETCH_AND_ADD, 9, 8);
	go();
	answer(ROVE_OP_ATOMIC_ACK, PSN, ACK_PLAIN, 1, 0);
	CHECK(wired == 9 && sends == 1, "%u packets, %u done", wired, sends);

	/* And long ones fill their own. */
	for (u32 more = 0; more <= 1; more++) {
		stream(ROVE_WR_RDMA_READ, 8, 3 * MTU);
		post(ROVE_WR_RDMA_READ, ROVE_RUN_BUDGET + more, SIGNALED);
		go();
		read_answered(0, 3);
		CHECK(wired == 8 + more && sends == 1, "%u packets, %u done", wired, sends);
	}
}

/* What was sent last, the @i-th, asks for @npkts packets from @idx on. */
static void asks_for(u32 i, u32 idx, u32 npkts)
{
	CHECK(wired == i + 1 && wire[i].psn == PSN + idx && wire[i].len == npkts * MTU,
	      "%u packets, not %u; asks for %u at %u", wired, i + 1, wire[i].len, wire[i].psn);
}

/*
 * What the response to a long READ was too much for is not asked for at once again; nor
 * beyond what the peer may have taken for one request, whichever it has had.
 */
static void read_in_pieces(void)
{
	start(ROVE_SVC_RC);
	window(256);
	post(ROVE_WR_RDMA_READ, 250 * MTU, SIGNALED);
	post(ROVE_WR_RDMA_READ, 140 * MTU, SIGNALED);
	q->t.max_rd_atomic = 1;
	go();
	asks_for(0, 0, 250);
	read_response(1, 1);
	asks_for(1, 0, 64);
	CHECK(q->t.req.cwnd == 4, "cwnd %u", q->t.req.cwnd);
	read_response(0, 3);
	/* one of those is lost, too */
	read_response(4, 1);
	asks_for(2, 3, 61);
	q->t.req.cwnd = 129;
	read_response(3, 61);
	/* twice that, but to where such a one ends */
	asks_for(3, 64, 64);
	/* of what was sent at first some comes after all */
	read_response(64, 70);
	asks_for(4, 128, 122);
	read_response(137, 1);
	asks_for(5, 134, 58);
	CHECK(q->t.req.ssn == 1, "SSN %u", q->t.req.ssn);
	read_response(134, 58);
	asks_for(6, 192, 58);
	read_response(192, 57);
	/* what was never asked for is, as far as the window goes or a bit more: a message each */
	q->t.req.ssthresh = 0;
	q->t.req.cwnd = 5;
	/* of what was asked for again some had never been: it is the peer that has counted */
	answer(ROVE_OP_READ_RESP_LAST, PSN + 249, 0, 4, MTU);
	asks_for(7, 250, 64);
	CHECK(sends == 1 && q->t.req.ssn == 5, "%u done, SSN %u", sends, q->t.req.ssn);
	read_response(250, 1);
	read_response(252, 1);
	asks_for(8, 251, 63);
	q->t.req.cwnd = 70;
	read_response(251, 63);
	asks_for(9, 314, 70);
	CHECK(q->t.req.ssn == 6, "SSN %u", q->t.req.ssn);
	read_response(314, 70);
	asks_for(10, 384, 6);
	CHECK(q->t.req.ssn == 7, "SSN %u", q->t.req.ssn);
	read_response(384, 5);
	answer(ROVE_OP_READ_RESP_LAST, PSN + 389, 0, 8, MTU);
	CHECK(sends == 2 && !sent[0].status && !sent[1].status, "%u done", sends);
	CHECK(q->t.req.ssn == 8, "SSN %u", q->t.req.ssn);
	COUNTED(IMPLIED_NAK, 4);
}

/* Pieces double in size as far as the window goes, and anew in each READ. */
static void reads_in_pieces(void)
{
	u32 i;

	for (i = 127; i <= 128; i++) {
		start(ROVE_SVC_RC);
		window(512);
		post(ROVE_WR_RDMA_READ, 250 * MTU, SIGNALED);
		go();
		read_response(1, 1);
		asks_for(1, 0, 64);
		q->t.req.ssthresh = 0;
		q->t.req.cwnd = 127;
		read_response(0, 64);
		asks_for(2, 64, 64);
		q->t.req.cwnd = i;
		q->t.req.grown = 0;
		read_response(64, 64);
		asks_for(3, 128, i < 128 ? 64 : 122);
	}
	start(ROVE_SVC_RC);
	window(512);
	post(ROVE_WR_RDMA_READ, 250 * MTU, SIGNALED);
	post(ROVE_WR_RDMA_READ, 140 * MTU, SIGNALED);
	q->t.max_rd_atomic = 2;
	go();
	asks_for(1, 250, 140);
	read_response(1, 1);
	asks_for(2, 0, 64);
	q->t.req.ssthresh = 0;
	q->t.req.cwnd = 126;
	read_response(0, 64);
	asks_for(3, 64, 64);
	read_response(64, 64);
	asks_for(4, 128, 64);
	q->t.req.cwnd = 140;
	read_response(128, 64);
	CHECK(wired == 7 && wire[5].psn == PSN + 192 && wire[5].len == 58 * MTU &&
	      wire[6].psn == PSN + 250 && wire[6].len == 64 * MTU, "asks again for %u, %u",
	      wire[5].len, wire[6].len);
}

/* A ring that is full has to wait, though all of it has been sent. */
static void full(void)
{
	u32 i;

	start_queues(ROVE_SVC_RC, 16, 128);
	for (i = 0; i < 16; i++)
		post(ROVE_WR_RDMA_WRITE, 8, SIGNALED);
	tqp_send(q);
	CHECK(wired == 16 && rove_tqp_waits(&q->t), "%u packets", wired);
	ack(PSN + 15, 16);
	CHECK(sends == 16 && !rove_tqp_waits(&q->t), "%u completions", sends);
}

static void flushed(struct sim_qp *qp, const struct rove_cqe *cqe, bool recv,
		    bool solicited)
{
	CHECK(cqe->status == ROVE_WC_WR_FLUSH_ERR, "status %u", cqe->status);
	sends += !recv;
	recvs += recv;
}

/* A queue that holds more than is flushed in one go. */
static void long_queues(void)
{
	const u32 n = ROVE_FLUSH_MAX + 3;
	u32 i, k;

	for (k = 0; k < 2; k++) {
		start_queues(ROVE_SVC_RC, n, n);
		q->on_cqe = flushed;
		for (i = 0; i < n; i++) {
			if (k)
				post(ROVE_WR_SEND, 8, 0);
			else
				post_recv(8);
		}
		rove_tqp_error(&q->t);
		CHECK(q->ack_owed, "as if all was done");
		q->ack_owed = false;
		rove_tqp_flush(&q->t);
		CHECK(!q->ack_owed && sends + recvs == n, "%u of %u flushed", sends + recvs, n);
	}
}

/* Of one that is shared nothing more is taken, and that is told. */
static void last_of_shared(void)
{
	start(ROVE_SVC_RC);
	q->t.srq = true;
	rove_tqp_error(&q->t);
	CHECK(q->event[ROVE_EVENT_LAST_WQE] == 1, "not told");
	q->t.srq = false;
	start(ROVE_SVC_XRC);
	q->t.srq = true;
	rove_tqp_error(&q->t);
	CHECK(!q->event[ROVE_EVENT_LAST_WQE], "told of another QP's");
	q->t.srq = false;
}

/* From SQE there is a way back, and what is posted then is sent. */
static void back_from_sqe(void)
{
	start(ROVE_SVC_UC);
	post(ROVE_WR_RDMA_READ, 8, SIGNALED);
	post(ROVE_WR_RDMA_WRITE, 8, SIGNALED);
	go();
	CHECK(sends == 2 && sent[1].status == ROVE_WC_WR_FLUSH_ERR && !wired &&
	      q->t.state == ROVE_TQP_SQE && q->told_sqe, "%u completions, state %u", sends,
	      q->t.state);
	q->t.state = ROVE_TQP_RTS;
	post(ROVE_WR_RDMA_WRITE, 8, SIGNALED);
	go();
	CHECK(sends == 3 && !sent[2].status && wired == 1, "%u completions, %u packets", sends,
	      wired);
}

/* In SQE a send queue that cannot be read is not looked at for ever. */
static void broken_in_sqe(void)
{
	start(ROVE_SVC_UC);
	post(ROVE_WR_RDMA_READ, 8, SIGNALED);
	go();
	CHECK(sends == 1 && q->t.state == ROVE_TQP_SQE, "state %u", q->t.state);
	q->sq_broken = true;
	go();
	CHECK(q->t.state == ROVE_TQP_ERR && q->event[ROVE_EVENT_QP_FATAL] == 1, "state %u",
	      q->t.state);
	COUNTED(BAD_RING, 1);
}

/* The NAK that ends it still to be sent, in the middle of a message. */
static void last_middle(void)
{
	start(ROVE_SVC_RC);
	request(ROVE_OP_WRITE_FIRST, EPSN, false, 2 * MTU, MTU);
	run();
	memcpy(q->peer->tshadow, q->peer->tmem, q->peer->tsize);
	sc.eagain = 1000000;
	q->rq_broken = true;
	request(ROVE_OP_WRITE_LAST_IMM, EPSN + 1, true, 0, MTU);
	request(ROVE_OP_WRITE_MIDDLE, EPSN + 1, false, 0, MTU);
	awaited = 1;
	sim_run_until(dropped, NS_PER_S);
	sc.eagain = 0;
	run();
	CHECK(untouched() && wired == 1 && q->event[ROVE_EVENT_QP_FATAL] == 1, "%u packets",
	      wired);
	COUNTED(RX_BAD_STATE, 1);
}

/* The responder's resources anew: nothing of the old ones has a say. */
static void nothing_old(void)
{
	u32 i;

	start(ROVE_SVC_RC);
	rove_tqp_max_res(&q->t, 8);
	request(ROVE_OP_WRITE_ONLY, EPSN, true, 8, 8);
	for (i = 1; i < 6; i++)
		request(ROVE_OP_READ_REQUEST, EPSN + i, true, 8, 0);
	run();
	CHECK(wired >= 5, "%u packets", wired);
	rove_tqp_max_res(&q->t, 2);
	wired = 0;
	request(ROVE_OP_WRITE_ONLY, EPSN, true, 8, 8);
	run();
	CHECK(wired == 1 && wire[0].opcode == ROVE_OP_ACKNOWLEDGE && wire[0].psn == EPSN + 5,
	      "%u packets, psn %x", wired, wire[0].psn);
	wired = 0;
	request(ROVE_OP_READ_REQUEST, EPSN + 6, true, 8, 0);
	run();
	CHECK(wired == 1 && wire[0].opcode == ROVE_OP_READ_RESP_ONLY && wire[0].psn == EPSN + 6,
	      "%u packets, psn %x", wired, wire[0].psn);
	request(ROVE_OP_READ_REQUEST, EPSN + 6, true, 8, 0);
	run();
	CHECK(wired == 2 && wire[1].psn == EPSN + 6, "%u packets", wired);
}

/* One READ of @n packets, and nothing is heard, until its first piece is asked for again. */
static void read_until_probed(u32 n)
{
	start(ROVE_SVC_RC);
	window(256);
	q->t.timeout = 20;
	post(ROVE_WR_RDMA_READ, n * MTU, SIGNALED);
	tqp_send(q);
	sim_run_until(probed, NS_PER_S);
	asks_for(1, 0, min(n, 64U));
}

/* Packets @from to @to of the response, all at once, the last one as the end of a response. */
static void responses_soon(u32 from, u32 to)
{
	for (; from < to - 1; from++)
		answer_soon(ROVE_OP_READ_RESP_MIDDLE, PSN + from, 0, 0, MTU);
	answer_soon(ROVE_OP_READ_RESP_LAST, PSN + from, ACK_PLAIN, 1, MTU);
	awaited = PSN + to;
	sim_run_until(acknowledged, NS_PER_S);
}

/* The first piece of what a READ waits for is asked for again: what is behind it may be lost. */
static void response_probed(void)
{
	u32 k;
	u64 t;

	/* It comes without an end: the response to what was asked for at first is on its way. */
	read_until_probed(140);
	for (k = 0; k < 64; k++)
		answer_soon(ROVE_OP_READ_RESP_MIDDLE, PSN + k, 0, 0, MTU);
	awaited = PSN + 64;
	sim_run_until(acknowledged, NS_PER_S);
	CHECK(!q->t.req.lost, "lost");
	/* It ends, and nothing follows. */
	read_until_probed(140);
	responses_soon(0, 64);
	CHECK(q->t.req.lost, "not lost");
	awaited = 3;
	t = sim.now;
	sim_run_until(asked_again, NS_PER_S);
	asks_for(2, 64, 64);
	CHECK(wire[2].at - t >= ROVE_PROBE_NS && wire[2].at - t < ROVE_PROBE_NS + 50000,
	      "after %llu ns", wire[2].at - t);
	/* The end of what was asked for then says nothing of what is asked for now. */
	responses_soon(64, 128);
	CHECK(!q->t.req.lost, "lost");
	/* Each of what follows is a reason to wait for more. */
	start(ROVE_SVC_RC);
	q->t.timeout = 20;
	for (k = 0; k < 3; k++)
		post(ROVE_WR_RDMA_READ, MTU, SIGNALED);
	tqp_send(q);
	sim_run_until(probed, NS_PER_S);
	responses_soon(0, 1);
	CHECK(q->t.req.lost, "not lost");
	responses_soon(1, 2);
	CHECK(sends == 2 && !q->t.req.lost, "%u done, or lost", sends);
	/* What was sent behind the probe had no time to come. */
	read_until_probed(1);
	post(ROVE_WR_RDMA_READ, 8, SIGNALED);
	tqp_send(q);
	responses_soon(0, 1);
	CHECK(sends == 1 && !q->t.req.lost, "%u done, or lost", sends);
}

/* A part of a READ, with another behind it, that the peer would forget: it is left alone. */
static void parts_unprobed(void)
{
	u32 i;

	for (i = 0; i < 2; i++) {
		start(ROVE_SVC_RC);
		window(256);
		q->t.timeout = 18;
		post(ROVE_WR_RDMA_READ, (64 + i) * MTU, SIGNALED);
		post(ROVE_WR_RDMA_READ, 8, SIGNALED);
		tqp_send(q);
		awaited = 3;
		sim_run_until(asked_again, 10 * NS_PER_S);
		asks_for(2, 0, 64);
		COUNTED(PROBE, !i);
		COUNTED(TIMEOUT, i);
	}
}

int byhand_run(void)
{
	static void (*const cases[])(void) = {
		asks, credits, nothing_follows, implied_nak, wrong_sort, bad_responses,
		absent_behind, syndromes, old_news, timeouts, behind, other_timeout,
		response_middles, response_anyway, loss_found, probes, congestion, growth,
		round_trips, fastest, first_psn, rnr_probe, other_retries, waits_for_pages,
		rights_taken, local_work, states, in_between, xrc_sides, xrc_stays, acks_wanted,
		acks_held, acks_of_others, access_taken, many_locals, put_off, once_again,
		fences, reads_again, reads_together, read_in_pieces, reads_in_pieces,
		response_probed, parts_unprobed, full, last_middle, nothing_old, long_queues,
		last_of_shared, back_from_sqe, broken_in_sqe, gaps, uc_gaps, pending_replies,
		resources_anew, last_debts, answers_in_order, cut_replies, copies,
		full_of_pieces, oldest_given_up, other_sort_again, refusals, last_words, middles,
		message_numbers, malformed, datagram, page_naks, budgets,
	};
	u32 i;

	checks = 0;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		trace(NULL, "case %u", i);
		cases[i]();
	}
	sim_end_round();
	return checks;
}
