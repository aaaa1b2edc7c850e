// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * directed.c - scripted cases: one pair, exact losses, exact expectations
 *
 * What chance seldom brings about, and what the model cannot know from outside:
 * how often and when something is sent again, and which packet ends a wait.
 */
#include "engine.h"
#include "sim.h"

static struct sim_qp *a, *b;
static int checks;

/* Everything that happened, in order. */
struct seen {
	u32 wr_id;
	u32 status;
	u32 byte_len;
};
static struct seen send_log[256], recv_log[256];
static u32 sends, recvs;

/* Request packets that a put on the wire. */
struct sent {
	u64 at;
	u8 opcode;
	u32 psn;
	bool ackreq;
	u64 va;
	u32 dma_len;
};
static struct sent wire[4096];
static u32 wired;
static u32 acks;	/* ACK packets that b put on the wire */
static u32 last_msn;	/* in an AETH from b */
static u32 opcodes[256];	/* packets of each, of both */

/* Lose the packet of this opcode and PSN, so many times. */
static struct {
	struct sim_qp *from;
	int opcode;		/* -1: any */
	u32 psn;
	u32 times;
} lose;
/* Lose the packets of these PSNs, each the first time. */
static struct {
	struct sim_qp *from;
	u32 psn, end;
} lose_each;

#define CHECK(cond, ...) do {			\
	checks++;				\
	if (!(cond))				\
		sim_fail(a, __VA_ARGS__);	\
} while (0)

static void on_cqe(struct sim_qp *qp, const struct rove_cqe *cqe, bool recv,
		   bool solicited)
{
	struct seen *log = recv ? recv_log : send_log;
	u32 *n = recv ? &recvs : &sends;

	if (qp != (recv ? b : a))
		return;
	CHECK(*n < ARRAY_SIZE(send_log), "too many completions");
	log[(*n)++] = (struct seen) { cqe->wr_id, cqe->status, cqe->byte_len };
}

static u32 bth_psn(const u8 *bth)
{
	return bth[9] << 16 | bth[10] << 8 | bth[11];
}

static u64 be(const u8 *p, u32 n)
{
	u64 v = 0;

	while (n--)
		v = v << 8 | *p++;
	return v;
}

static bool on_packet(struct sim_qp *qp, const u8 *bth)
{
	u32 psn = bth_psn(bth);

	opcodes[bth[0]]++;
	if (qp == b && bth[0] == ROVE_OP_ACKNOWLEDGE)
		acks++;
	if (qp == b && rove_opcodes[bth[0]].flags & ROVE_OPF_AETH)
		last_msn = be(bth + 13, 3);
	if (qp == a && wired < ARRAY_SIZE(wire)) {
		bool reth = rove_opcodes[bth[0]].flags & ROVE_OPF_RETH;

		wire[wired++] = (struct sent) {
			.at = sim.now,
			.opcode = bth[0],
			.psn = psn,
			.ackreq = bth[8] & 0x80,
			.va = reth ? be(bth + 12, 8) : 0,
			.dma_len = reth ? be(bth + 24, 4) : 0,
		};
	}
	if (lose.times && lose.from == qp && lose.psn == psn &&
	    (lose.opcode < 0 || lose.opcode == bth[0])) {
		lose.times--;
		return true;
	}
	if (lose_each.from == qp && psn == lose_each.psn && psn != lose_each.end) {
		lose_each.psn = psn_add(psn, 1);
		return true;
	}
	return false;
}

/* How often has a sent @psn? */
static u32 count(u32 psn)
{
	u32 i, n = 0;

	for (i = 0; i < wired; i++)
		n += wire[i].psn == psn;
	return n;
}

/* A pair in RTS with plain settings, PSNs from 100 (a) and 5000 (b). */
static void start(u32 mtu)
{
	struct sim_qp *qp[2];
	u32 i;

	sim_end_round();
	a = user_still_pair(ROVE_SVC_RC, 128, 128, mtu);
	b = a->peer;
	qp[0] = a;
	qp[1] = b;
	for (i = 0; i < 2; i++) {
		rove_tqp_start_responder(&qp[i]->t, i ? 100 : 5000);
		rove_tqp_start_requester(&qp[i]->t, i ? 5000 : 100);
		qp[i]->on_cqe = on_cqe;
		qp[i]->on_packet = on_packet;
	}
	sends = 0;
	recvs = 0;
	wired = 0;
	acks = 0;
	lose.times = 0;
	lose_each.from = NULL;
	memset(opcodes, 0, sizeof(opcodes));
}

static struct rove_send_wqe *post(u8 op, u32 len, u8 flags)
{
	struct rove_send_wqe *wqe = user_post(a, op, len, flags);

	wqe->remote_addr = (a->mr_target->va + 7) & ~7ULL;
	wqe->rkey = a->mr_target->key;
	return wqe;
}

static void post_recv(u32 len)
{
	user_post_recv(b, len);
}

static void go(void)
{
	tqp_send(a);
	sim_run_until(NULL, 100 * NS_PER_S);
}

#define SIGNALED	ROVE_WR_SIGNALED

static void expect_flush(u32 from, u32 to)
{
	CHECK(sends == to, "%u completions, not %u", sends, to);
	for (; from < to; from++)
		CHECK(send_log[from].status == ROVE_WC_WR_FLUSH_ERR &&
		      send_log[from].wr_id == send_log[from - 1].wr_id + 1,
		      "completion %u: %u for %x", from, send_log[from].status,
		      send_log[from].wr_id);
}

/* A packet made by hand, from a to b. */
static void inject(u8 opcode, u32 psn, u32 ext_len, const u8 *ext,
		  u32 payload, bool run)
{
	u8 bth[512] = {
		opcode, 0x40, 0xff, 0xff,
		0, b->t.qpn >> 16, b->t.qpn >> 8, b->t.qpn,
		0x80, psn >> 16, psn >> 8, psn,
	};

	memcpy(bth + 12, ext, ext_len);
	memset(bth + 12 + ext_len, 0x77, payload);
	net_inject(a, bth, 12 + ext_len + payload + 4);
	if (run)
		sim_run_until(NULL, NS_PER_S);
}

static void put(u8 *p, u64 v, u32 n)
{
	while (n--) {
		p[n] = v;
		v >>= 8;
	}
}

static bool pristine(void)
{
	return !memcmp(a->tmem, a->tshadow, a->tsize);
}

/* ---- time and retries ---- */

static void retry_exhausted(void)
{
	u32 retry, timeout, i;

	for (retry = 0; retry <= 7; retry++) {
		for (timeout = 8; timeout <= 12; timeout += 2) {
			u64 t = max(4096ULL << timeout, NS_PER_MS);

			start(1024);
			a->t.retry_cnt = retry;
			a->t.timeout = timeout;
			b->blackhole = true;
			post(ROVE_WR_RDMA_WRITE, 8, 0);
			post(ROVE_WR_SEND, 8, 0);
			post(ROVE_WR_RDMA_READ, 8, SIGNALED);
			go();
			CHECK(count(100) == retry + 1, "sent %u times with retry_cnt %u",
			      count(100), retry);
			CHECK(send_log[0].status == ROVE_WC_RETRY_EXC_ERR,
			      "status %u", send_log[0].status);
			expect_flush(1, 3);
			CHECK(a->t.state == ROVE_TQP_ERR, "state %d", a->t.state);
			for (i = 3; i < wired; i++)
				CHECK(wire[i].at - wire[i - 3].at >= t &&
				      wire[i].at - wire[i - 3].at < 4 * t,
				      "retry after %llu ns of %llu",
				      wire[i].at - wire[i - 3].at, t);
		}
	}
}

/* timeout 0: wait for ever. */
static void no_timeout(void)
{
	start(1024);
	a->t.timeout = 0;
	b->blackhole = true;
	post(ROVE_WR_RDMA_WRITE, 8, SIGNALED);
	go();
	CHECK(wired == 1 && !sends, "%u packets, %u completions", wired, sends);
}

/* Progress gives back all retries. */
static void retries_refilled(void)
{
	u32 i;

	start(1024);
	for (i = 0; i < 5; i++) {
		lose.from = a;
		lose.opcode = -1;
		lose.psn = psn_add(100, i);
		lose.times = 7;
		post(ROVE_WR_RDMA_WRITE, 8, SIGNALED);
		go();
		CHECK(sends == i + 1 && !send_log[i].status, "after 7 losses: %u",
		      send_log[i].status);
	}
}

static void rnr_exhausted(void)
{
	u32 retry;

	for (retry = 0; retry < 7; retry++) {
		start(1024);
		a->t.rnr_retry = retry;
		post(ROVE_WR_SEND, 8, 0);
		post(ROVE_WR_SEND, 8, 0);
		go();
		CHECK(count(100) == retry + 1, "sent %u times with rnr_retry %u",
		      count(100), retry);
		CHECK(send_log[0].status == ROVE_WC_RNR_RETRY_EXC_ERR, "status %u",
		      send_log[0].status);
		expect_flush(1, 2);
		CHECK(b->t.state == ROVE_TQP_RTS && !recvs, "the responder suffers");
	}
}

static u32 rnr_limit;

static bool enough_sent(void)
{
	return wired >= rnr_limit;
}

/* rnr_retry 7: for ever, each after the time the NAK says, or ever longer up to 1.28 ms. */
static void rnr_for_ever(void)
{
	u32 code, i;

	for (code = 0; code < 32; code++) {
		u64 delay, want;

		start(1024);
		delay = rove_rnr_delay(code);
		b->t.min_rnr_timer = code;
		/* A short timeout must not cut the wait short. */
		a->t.timeout = 8;
		post(ROVE_WR_RDMA_WRITE_WITH_IMM, 8, SIGNALED);
		rnr_limit = 12;
		tqp_send(a);
		sim_run_until(enough_sent, 100 * NS_PER_S);
		for (i = 1; i < wired; i++) {
			want = max(delay, 10000ULL << min(i - 1, 7U));
			CHECK(wire[i].at - wire[i - 1].at >= want &&
			      wire[i].at - wire[i - 1].at < want + 100000,
			      "RNR code %u: waits %llu ns, not %llu", code,
			      wire[i].at - wire[i - 1].at, want);
		}
		post_recv(0);
		sim_run_until(NULL, 100 * NS_PER_S);
		CHECK(sends == 1 && !send_log[0].status && recvs == 1 &&
		      !recv_log[0].status, "no end to RNR");
		CHECK(!stats.counter[ROVE_CNT_TIMEOUT], "timeouts while waiting");
	}
}

/* A tail that is lost costs one timeout, a hole none. */
static void loss_in_the_middle(void)
{
	u64 t;

	start(256);
	lose.from = a;
	lose.opcode = -1;
	lose.psn = 103;
	lose.times = 1;
	post(ROVE_WR_RDMA_WRITE, 2560, SIGNALED);
	t = sim.now;
	go();
	CHECK(sends == 1 && !send_log[0].status, "status %u", send_log[0].status);
	CHECK(wire[wired - 1].at - t < NS_PER_MS, "a hole costs %llu ns",
	      wire[wired - 1].at - t);
	CHECK(count(102) == 1 && count(103) == 2 && count(109) == 2,
	      "goes back to the wrong place");
	/* Nor does the next hole. */
	lose.psn = 113;
	lose.times = 1;
	post(ROVE_WR_RDMA_WRITE, 2560, SIGNALED);
	go();
	CHECK(sends == 2 && !stats.counter[ROVE_CNT_TIMEOUT], "%llu timeouts",
	      stats.counter[ROVE_CNT_TIMEOUT]);
}

static u64 probes;

static bool probed(void)
{
	return stats.counter[ROVE_CNT_PROBE] > probes;
}

/*
 * Of a tail that is lost nobody knows: a probe finds out, long before the timeout and
 * without a retry.  Nor does anybody know when what a NAK asked for is lost, too.
 */
static void tail_lost(void)
{
	u64 t;
	u32 i;

	start(256);
	a->t.timeout = 20;
	post(ROVE_WR_RDMA_WRITE, 8, SIGNALED);
	go();
	lose.from = a;
	lose.opcode = -1;
	lose.psn = 103;
	lose.times = 1;
	post(ROVE_WR_RDMA_WRITE, 8, SIGNALED);
	post(ROVE_WR_RDMA_WRITE, 512, SIGNALED);
	t = sim.now;
	go();
	CHECK(sends == 3 && !send_log[2].status, "%u completions", sends);
	CHECK(stats.counter[ROVE_CNT_PROBE] && !stats.counter[ROVE_CNT_TIMEOUT],
	      "%llu probes, %llu timeouts", stats.counter[ROVE_CNT_PROBE],
	      stats.counter[ROVE_CNT_TIMEOUT]);
	CHECK(wire[wired - 1].at - t < 20 * NS_PER_MS && !a->t.req.retried,
	      "a tail costs %llu ns", wire[wired - 1].at - t);
	lose.psn = 106;
	lose.times = 2;
	post(ROVE_WR_RDMA_WRITE, 2560, SIGNALED);
	t = sim.now;
	go();
	CHECK(sends == 4 && !stats.counter[ROVE_CNT_TIMEOUT], "%llu timeouts",
	      stats.counter[ROVE_CNT_TIMEOUT]);
	CHECK(wire[wired - 1].at - t < 20 * NS_PER_MS, "a NAK unheard costs %llu ns",
	      wire[wired - 1].at - t);
	/* A loss leaves a small window, which grows again. */
	CHECK(a->t.req.cwnd < a->t.req.window && a->t.req.cwnd > ROVE_MIN_CWND,
	      "window %u", a->t.req.cwnd);
	/* Ten packets are lost, and the first probe: not each waits for its own. */
	for (i = 0; i < 10; i++)
		post(ROVE_WR_RDMA_WRITE, 8, SIGNALED);
	/* All ten at once: what came after them would show that they are missing. */
	a->t.req.cwnd = a->t.req.window;
	a->blackhole = true;
	probes = stats.counter[ROVE_CNT_PROBE];
	t = sim.now;
	tqp_send(a);
	sim_run_until(probed, 100 * NS_PER_S);
	a->blackhole = false;
	go();
	CHECK(sends == 14 && stats.counter[ROVE_CNT_PROBE] <= probes + 2 &&
	      !stats.counter[ROVE_CNT_TIMEOUT], "%u completions, %llu probes", sends,
	      stats.counter[ROVE_CNT_PROBE] - probes);
	CHECK(wire[wired - 1].at - t < 100 * NS_PER_MS, "ten cost %llu ns",
	      wire[wired - 1].at - t);
}

/*
 * Nor does anybody know when what asks for a response is lost and nothing comes behind it, or the
 * end of the response, even if all of that is lost, and what was asked for behind it.
 */
static void response_tail_lost(void)
{
	static const struct {
		u32 opcode, length;
		u32 from, to;	/* of two, the responses' packets that are lost; none: requests */
		u32 again;	/* packets that ask again */
	} lost[] = {
		{ ROVE_WR_RDMA_READ, 8, 0, 0, 2 },
		{ ROVE_WR_RDMA_READ, 8, 0, 2, 2 },
		{ ROVE_WR_RDMA_READ, 8, 1, 2, 1 },
		{ ROVE_WR_RDMA_READ, 2000, 0, 0, 2 },
		{ ROVE_WR_RDMA_READ, 2000, 0, 16, 2 },
		{ ROVE_WR_RDMA_READ, 2000, 15, 16, 1 },
		{ ROVE_WR_RDMA_READ, 70 * 256, 70, 140, 2 },
		{ ROVE_WR_RDMA_READ, 70 * 256, 139, 140, 1 },
		{ ROVE_WR_RDMA_READ, 70 * 256, 71, 140, 2 },
		{ ROVE_WR_ATOMIC_FETCH_AND_ADD, 8, 0, 0, 2 },
		{ ROVE_WR_ATOMIC_FETCH_AND_ADD, 8, 0, 2, 2 },
		{ ROVE_WR_ATOMIC_FETCH_AND_ADD, 8, 1, 2, 1 },
		{ ROVE_WR_ATOMIC_WRITE, 8, 0, 0, 2 },
		{ ROVE_WR_ATOMIC_WRITE, 8, 1, 2, 1 },
	};
	u32 i, sent;
	u64 t;

	for (i = 0; i < ARRAY_SIZE(lost); i++) {
		start(256);
		probes = stats.counter[ROVE_CNT_PROBE];
		a->t.timeout = 20;
		post(ROVE_WR_RDMA_READ, 8, SIGNALED);
		go();
		lose_each.from = b;
		lose_each.psn = 101 + lost[i].from;
		lose_each.end = 101 + lost[i].to;
		a->blackhole = !lost[i].to;
		post(lost[i].opcode, lost[i].length, SIGNALED);
		post(lost[i].opcode, lost[i].length, SIGNALED);
		t = sim.now;
		tqp_send(a);
		sent = wired;
		a->blackhole = false;
		go();
		CHECK(sends == 3 && !send_log[1].status && !send_log[2].status,
		      "%u: %u completions, status %u", i, sends, send_log[1].status);
		CHECK(probed() && !stats.counter[ROVE_CNT_TIMEOUT] && !a->t.req.retried,
		      "%u: %llu probes, %llu timeouts", i, stats.counter[ROVE_CNT_PROBE] - probes,
		      stats.counter[ROVE_CNT_TIMEOUT]);
		CHECK(wire[wired - 1].at - t < 25 * NS_PER_MS, "%u: it costs %llu ns", i,
		      wire[wired - 1].at - t);
		CHECK(wired == sent + lost[i].again, "%u: asked again by %u packets", i,
		      wired - sent);
	}
}

/* The ACK is lost: sent again, executed once. */
static void ack_lost(void)
{
	start(256);
	lose.from = b;
	lose.opcode = ROVE_OP_ACKNOWLEDGE;
	lose.psn = 100;
	lose.times = 2;
	post_recv(8);
	post_recv(8);
	post(ROVE_WR_SEND, 8, SIGNALED);
	go();
	CHECK(sends == 1 && !send_log[0].status && recvs == 1, "%u sends, %u receives",
	      sends, recvs);
	CHECK(count(100) == 3, "sent %u times", count(100));
}

/* ---- READs and atomics ---- */

/* Only what is missing of a READ is asked for again (9.7.5.1.3). */
static void read_partial(void)
{
	u32 i, psn;

	for (psn = 100; psn < 108; psn++) {
		start(256);
		lose.from = b;
		lose.opcode = -1;
		lose.psn = psn;
		lose.times = 1;
		post(ROVE_WR_RDMA_READ, 2000, SIGNALED);
		go();
		CHECK(sends == 1 && !send_log[0].status &&
		      send_log[0].byte_len == 2000, "READ: %u, %u bytes",
		      send_log[0].status, send_log[0].byte_len);
		CHECK(wired == 2 && wire[1].psn == psn &&
		      wire[1].va == wire[0].va + (psn - 100) * 256 &&
		      wire[1].dma_len == 2000 - (psn - 100) * 256,
		      "asks again for %u bytes at psn %u", wire[1].dma_len,
		      wire[1].psn);
		for (i = 0; i < 2000; i++)
			CHECK(a->send_mem.mem[i] ==
			      a->tmem[(-a->mr_target->va & 7) + i],
			      "READ byte %u", i);
	}
}

static void atomic_replayed(void)
{
	struct rove_send_wqe *wqe;
	u64 v0, v;
	u8 *p;

	start(256);
	p = a->tmem + (-a->mr_target->va & 7);
	memcpy(&v0, p, 8);
	lose.from = b;
	lose.opcode = ROVE_OP_ATOMIC_ACK;
	lose.psn = 100;
	lose.times = 3;
	wqe = post(ROVE_WR_ATOMIC_FETCH_AND_ADD, 8, SIGNALED);
	wqe->compare_add = 1000;
	wqe = post(ROVE_WR_ATOMIC_FETCH_AND_ADD, 8, SIGNALED);
	wqe->compare_add = 1;
	wqe->sge[0].addr += 8;
	go();
	memcpy(&v, p, 8);
	CHECK(v == v0 + 1001, "executed %lld times", (v - v0) / 1000);
	memcpy(&v, a->send_mem.mem, 8);
	CHECK(v == v0, "the first returned %llx, not %llx", v, v0);
	memcpy(&v, a->send_mem.mem + 8, 8);
	CHECK(v == v0 + 1000, "the second returned %llx, not %llx", v, v0 + 1000);
}

static void atomic_misaligned(void)
{
	u32 i;

	for (i = 1; i < 8; i++) {
		start(256);
		post(ROVE_WR_ATOMIC_FETCH_AND_ADD, 8, SIGNALED)->remote_addr += i;
		go();
		CHECK(sends == 1 && send_log[0].status == ROVE_WC_REM_INV_REQ_ERR,
		      "status %u", send_log[0].status);
		CHECK(pristine(), "executed all the same");
	}
}

/* The responder has fewer resources than the requester thinks. */
static void no_resources(void)
{
	start(256);
	rove_tqp_max_res(&b->t, 0);
	post(ROVE_WR_RDMA_READ, 8, SIGNALED);
	post(ROVE_WR_RDMA_WRITE, 8, SIGNALED);
	go();
	CHECK(send_log[0].status == ROVE_WC_REM_INV_REQ_ERR, "status %u",
	      send_log[0].status);
	expect_flush(1, 2);
	CHECK(b->event[ROVE_EVENT_QP_REQ_ERR] == 1 && b->t.state == ROVE_TQP_ERR,
	      "no event");
}

/* Eight bytes or none (hazard 38); once, however often it is asked for. */
static void atomic_write(void)
{
	u32 len;

	for (len = 0; len <= 16; len += 4) {
		start(256);
		post(ROVE_WR_ATOMIC_WRITE, len, SIGNALED);
		go();
		CHECK(sends == 1 && send_log[0].status ==
		      (len == 8 ? ROVE_WC_SUCCESS : ROVE_WC_LOC_LEN_ERR),
		      "length %u: status %u", len, send_log[0].status);
		CHECK(len == 8 || pristine(), "executed all the same");
	}
	for (len = 1; len < 8; len++) {
		start(256);
		post(ROVE_WR_ATOMIC_WRITE, 8, SIGNALED)->remote_addr += len;
		go();
		CHECK(send_log[0].status == ROVE_WC_REM_INV_REQ_ERR && pristine(),
		      "status %u", send_log[0].status);
	}

	/* Its answer is lost, and comes again without another store. */
	start(256);
	memset(&stats, 0, sizeof(stats));
	lose.from = b;
	lose.opcode = ROVE_OP_READ_RESP_ONLY;
	lose.psn = 100;
	lose.times = 1;
	post(ROVE_WR_ATOMIC_WRITE, 8, SIGNALED);
	go();
	CHECK(sends == 1 && !send_log[0].status && !lose.times, "status %u",
	      send_log[0].status);
	CHECK(count(100) == 2, "asked for %u times", count(100));
	CHECK(stats.counter[ROVE_CNT_RDMA_ATOMIC_RX] == 1, "executed again");
}

/* ---- work without packets (hazard 51) ---- */

static u32 bound, bound_sent, bound_done;

/* Binds, says when, and refuses those with a length. */
static u32 on_local(const struct rove_send_wqe *wqe)
{
	bound++;
	bound_sent = psn_diff(a->t.req.psn_next, 100);
	bound_done = a->t.req.done;
	return wqe->bind.length ? ROVE_WC_MW_BIND_ERR : ROVE_WC_SUCCESS;
}

static void local_start(void)
{
	start(256);
	a->on_local = on_local;
	bound = 0;
	lose.from = a;
	lose.opcode = -1;
	lose.psn = 100;
	lose.times = 0;
}

/* At its place among the packets, once, and complete when all before it is. */
static void local_in_order(void)
{
	u32 lost;

	for (lost = 0; lost < 4; lost++) {
		local_start();
		lose.psn = 100 + lost;
		lose.times = lost;
		post(ROVE_WR_RDMA_WRITE, 512, SIGNALED);
		post(ROVE_WR_BIND_MW, 0, SIGNALED);
		post(ROVE_WR_BIND_MW, 0, SIGNALED);
		post(ROVE_WR_RDMA_WRITE, 8, SIGNALED);
		go();
		CHECK(bound == 2 && bound_sent == 2, "%u times, %u packets before",
		      bound, bound_sent);
		CHECK(bound_done == 0, "waited for");
		CHECK(sends == 4, "%u completions", sends);
		for (u32 i = 0; i < 4; i++)
			CHECK(send_log[i].wr_id == send_log[0].wr_id + i &&
			      !send_log[i].status, "completion %u: %u for %x", i,
			      send_log[i].status, send_log[i].wr_id);
	}
}

/* A fence waits for the READ, and nobody for ever, though nothing is signalled. */
static void local_fence(void)
{
	u8 i, fence;

	for (i = 0; i < 2; i++) {
		fence = i ? ROVE_WR_FENCE : 0;
		local_start();
		lose.psn = 100;
		lose.times = 1;
		post(ROVE_WR_RDMA_READ, 512, 0);
		post(ROVE_WR_BIND_MW, 0, fence);
		post(ROVE_WR_RDMA_WRITE, 8, fence);
		post(ROVE_WR_LOCAL_INV, 0, fence)->invalidate_rkey =
			a->mr_alias->key;
		post(ROVE_WR_BIND_MW, 0, fence | SIGNALED);
		go();
		CHECK(bound == 2, "executed %u times", bound);
		CHECK(sends == 1 && !send_log[0].status,
		      "%u completions", sends);
		CHECK(bound_done == 4, "the last executed after %u", bound_done);
	}
	local_start();
	post(ROVE_WR_RDMA_READ, 512, 0);
	post(ROVE_WR_BIND_MW, 0, ROVE_WR_FENCE);
	go();
	CHECK(bound == 1 && bound_done == 1, "the fence does not hold");
}

/* What precedes it is acknowledged at once, not after a timeout. */
static void local_last(void)
{
	local_start();
	post(ROVE_WR_RDMA_WRITE, 8, 0);
	post(ROVE_WR_BIND_MW, 0, SIGNALED);
	post(ROVE_WR_BIND_MW, 0, SIGNALED);
	go();
	CHECK(bound == 2 && sends == 2, "%u executed, %u completions", bound, sends);
	CHECK(!stats.counter[ROVE_CNT_TIMEOUT], "after a timeout");
}

/* One that is refused ends the queue, when all before it is complete. */
static void local_refused(void)
{
	local_start();
	post(ROVE_WR_RDMA_WRITE, 8, SIGNALED);
	post(ROVE_WR_BIND_MW, 0, SIGNALED);
	post(ROVE_WR_BIND_MW, 0, SIGNALED)->bind.length = 1;
	post(ROVE_WR_BIND_MW, 0, SIGNALED);
	post(ROVE_WR_RDMA_WRITE, 8, SIGNALED);
	go();
	CHECK(bound == 2, "%u executed", bound);
	CHECK(!send_log[0].status && !send_log[1].status &&
	      send_log[2].status == ROVE_WC_MW_BIND_ERR, "%u %u %u",
	      send_log[0].status, send_log[1].status, send_log[2].status);
	expect_flush(3, 5);
}

/* Zero bytes need no key (hazard 39). */
static void zero_length(void)
{
	struct rove_send_wqe *wqe;

	start(256);
	wqe = post(ROVE_WR_RDMA_WRITE, 0, SIGNALED);
	wqe->rkey = 0xdeadbeef;
	wqe->remote_addr = U64_MAX;
	wqe = post(ROVE_WR_RDMA_READ, 0, SIGNALED);
	wqe->rkey = 0xdeadbeef;
	wqe->remote_addr = U64_MAX;
	go();
	CHECK(sends == 2 && !send_log[0].status && !send_log[1].status,
	      "%u, %u", send_log[0].status, send_log[1].status);
}

/* ---- acknowledgments ---- */

/* A batch is acknowledged by few ACKs. */
static void coalesced(void)
{
	u32 i;

	start(1024);
	for (i = 0; i < 128; i++)
		post(ROVE_WR_RDMA_WRITE, 8, SIGNALED);
	go();
	CHECK(sends == 128, "%u completions", sends);
	CHECK(acks <= 16, "%u ACKs for 128 WRITEs", acks);
	CHECK(wired == 128, "%u packets for 128 WRITEs", wired);
}

/* SENDs keep to the credits, but for one that asks for more (9.7.7.2.5). */
static void credits(void)
{
	u8 ack[20] = { ROVE_OP_ACKNOWLEDGE, 0x40, 0xff, 0xff };
	u32 i;

	start(1024);
	b->blackhole = true;
	a->t.timeout = 0;
	for (i = 0; i < 4; i++)
		post(ROVE_WR_SEND, 8, SIGNALED);
	go();
	CHECK(wired == 4, "%u packets", wired);
	/* The first has arrived, and there is room for three more. */
	put(ack + 5, a->t.qpn, 3);
	put(ack + 9, 100, 3);
	put(ack + 12, 3 << 24 | 1, 4);
	net_inject(b, ack, sizeof(ack));
	sim_run_until(NULL, NS_PER_S);
	for (i = 0; i < 4; i++)
		post(ROVE_WR_SEND, 8, SIGNALED);
	go();
	CHECK(sends == 1 && wired == 4, "sends beyond the credits");
	/* Nothing is under way: one may ask. */
	put(ack + 9, 103, 3);
	put(ack + 12, 4, 4);
	net_inject(b, ack, sizeof(ack));
	sim_run_until(NULL, NS_PER_S);
	CHECK(sends == 4 && wired == 5 && wire[4].ackreq, "%u packets", wired);
	/* Two more. */
	put(ack + 9, 104, 3);
	put(ack + 12, 2 << 24 | 5, 4);
	net_inject(b, ack, sizeof(ack));
	sim_run_until(NULL, NS_PER_S);
	CHECK(wired == 7, "%u packets", wired);
}

/* ---- super-packets ---- */

/* Packets in each that one end has sent. */
static u32 train[64], trains;

static void on_train(struct sim_qp *qp, u32 npkts)
{
	CHECK(trains < ARRAY_SIZE(train), "too many super-packets");
	train[trains++] = npkts;
}

/* @n messages in one call leave in super-packets of @want packets, 0: the end. */
static void expect_trains(u8 op, const u32 *len, u32 n, u32 mtu, const u32 *want)
{
	struct sim_qp *from;
	struct mr *mr;
	u32 i;

	start(mtu);
	a->t.req.window = 256;
	from = op == ROVE_WR_RDMA_READ ? b : a;
	from->same_id = false;
	from->on_train = on_train;
	trains = 0;
	mr = mr_add(b, 0, b->recv_mem.mem, b->recv_mem.size,
		    ROVE_ACCESS_REMOTE_WRITE | ROVE_ACCESS_REMOTE_READ);
	for (i = 0; i < n; i++) {
		struct rove_send_wqe *wqe =
			post(op, len[i], i == n - 1 ? SIGNALED : 0);

		wqe->remote_addr = 0;
		wqe->rkey = mr->key;
	}
	for (i = 0; i < n && takes_recv(op); i++)
		post_recv(len[i]);
	go();
	CHECK(sends == 1 && !send_log[0].status, "status %u", send_log[0].status);
	for (i = 0; i < trains && want[i]; i++)
		CHECK(train[i] == want[i],
		      "operation %u at MTU %u: super-packet %u is of %u, not %u",
		      op, mtu, i, train[i], want[i]);
	CHECK(i == trains && !want[i], "operation %u at MTU %u: %u super-packets",
	      op, mtu, trains);
}

static void super_packets(void)
{
	static const u32 whole[] = { 65536 }, odd[] = { 64 * 256 - 1 };
	static const u32 falling[] = { 100, 100, 50, 50, 48, 100, 100 };
	static u32 small[70];
	u32 i;

	for (i = 0; i < ARRAY_SIZE(small); i++)
		small[i] = 8;
	/* 63 packets of 1,040 bytes, or 16 of 4,112, are too long. */
	expect_trains(ROVE_WR_SEND, whole, 1, 1024, (u32 []) { 62, 2, 0 });
	expect_trains(ROVE_WR_SEND, whole, 1, 4096, (u32 []) { 15, 1, 0 });
	/* The first is longer by its RETH or AETH, a response's last as well. */
	expect_trains(ROVE_WR_RDMA_WRITE, whole, 1, 1024, (u32 []) { 2, 62, 0 });
	expect_trains(ROVE_WR_RDMA_WRITE, whole, 1, 4096, (u32 []) { 2, 14, 0 });
	expect_trains(ROVE_WR_RDMA_READ, whole, 1, 1024, (u32 []) { 2, 61, 1, 0 });
	expect_trains(ROVE_WR_RDMA_READ, whole, 1, 4096, (u32 []) { 2, 13, 1, 0 });
	/* 64 packets, not one more; one cut short ends it. */
	expect_trains(ROVE_WR_SEND, odd, 1, 256, (u32 []) { 64, 0 });
	expect_trains(ROVE_WR_RDMA_WRITE, small, 70, 256, (u32 []) { 64, 6, 0 });
	expect_trains(ROVE_WR_SEND, falling, 7, 1024, (u32 []) { 3, 2, 2, 0 });
}

/* Every message counts, each once, in answers of every kind. */
static void message_numbers(void)
{
	static const u8 op[] = { ROVE_WR_SEND, ROVE_WR_RDMA_WRITE, ROVE_WR_RDMA_READ,
		ROVE_WR_ATOMIC_FETCH_AND_ADD, ROVE_WR_RDMA_WRITE_WITH_IMM };
	u32 i;

	start(256);
	for (i = 0; i < 50; i++) {
		u8 o = op[i % ARRAY_SIZE(op)];

		post_recv(1000);
		post(o, o == ROVE_WR_ATOMIC_FETCH_AND_ADD ? 8 : 1000, SIGNALED);
		go();
		CHECK(last_msn == i + 1, "MSN %u after %u messages", last_msn, i + 1);
	}
}

/* Long messages go in several bursts and are still one message on the wire. */
static void long_messages(void)
{
	start(256);
	post_recv(50000);
	post(ROVE_WR_SEND, 50000, SIGNALED);
	b->mr_recv->len = 50000;
	a->mr_target->len = 50000;
	a->tmem = realloc(a->tmem, 50100);
	a->mr_target->mem = a->tmem;
	b->recv_mem.mem = realloc(b->recv_mem.mem, 66000);
	b->mr_recv->mem = b->recv_mem.mem;
	a->mr_target->va = 4096;
	post(ROVE_WR_RDMA_READ, 50000, SIGNALED)->remote_addr = 4096;
	post(ROVE_WR_RDMA_WRITE, 50000, SIGNALED)->remote_addr = 4096;
	go();
	CHECK(sends == 3 && !send_log[0].status && !send_log[1].status &&
	      !send_log[2].status, "status %u, %u, %u", send_log[0].status,
	      send_log[1].status, send_log[2].status);
	CHECK(opcodes[ROVE_OP_SEND_FIRST] == 1 && opcodes[ROVE_OP_SEND_LAST] == 1 &&
	      opcodes[ROVE_OP_SEND_MIDDLE] == 194, "SEND cut wrong");
	CHECK(opcodes[ROVE_OP_WRITE_FIRST] == 1 && opcodes[ROVE_OP_WRITE_LAST] == 1 &&
	      opcodes[ROVE_OP_WRITE_MIDDLE] == 194, "WRITE cut wrong");
	CHECK(opcodes[ROVE_OP_READ_RESP_FIRST] == 1 &&
	      opcodes[ROVE_OP_READ_RESP_LAST] == 1 &&
	      opcodes[ROVE_OP_READ_RESP_MIDDLE] == 194, "READ response cut wrong");
}

static void established(void)
{
	start(1024);
	b->t.state = ROVE_TQP_RTR;
	post(ROVE_WR_RDMA_WRITE, 8, SIGNALED);
	post(ROVE_WR_RDMA_WRITE, 8, SIGNALED);
	go();
	CHECK(b->event[ROVE_EVENT_COMM_EST] == 1, "COMM_EST %u times",
	      b->event[ROVE_EVENT_COMM_EST]);
	CHECK(sends == 2 && !send_log[1].status, "no answer in RTR");
}

/* A READ that comes again does not swallow the ACK of what came since. */
static void ack_not_forgotten(void)
{
	u8 reth[16];
	u32 i;

	start(256);
	post(ROVE_WR_RDMA_READ, 100, SIGNALED);
	go();
	put(reth, wire[0].va, 8);
	put(reth + 8, a->mr_target->key, 4);
	put(reth + 12, 100, 4);
	for (i = 0; i < 20; i++) {
		post_recv(8);
		inject(ROVE_OP_SEND_ONLY, 101 + i, 0, reth, 8, false);
		inject(ROVE_OP_READ_REQUEST, 100, 16, reth, 0, true);
		CHECK(acks == i + 1, "%u ACKs of %u SENDs", acks, i + 1);
	}
}

/* ---- errors ---- */

/* All before the bad one is well, also what is not signalled. */
static void error_in_the_middle(void)
{
	u32 i;

	start(1024);
	for (i = 0; i < 20; i++)
		post_recv(8);
	for (i = 0; i < 10; i++)
		post(ROVE_WR_SEND, 8, i % 3 ? 0 : SIGNALED);
	post(ROVE_WR_RDMA_WRITE, 8, 0)->rkey ^= 0x100;
	for (i = 0; i < 10; i++)
		post(ROVE_WR_SEND, 8, 0);
	go();
	CHECK(sends == 4 + 1 + 10, "%u completions", sends);
	for (i = 0; i < 4; i++)
		CHECK(!send_log[i].status, "completion %u: %u", i, send_log[i].status);
	CHECK(send_log[4].status == ROVE_WC_REM_ACCESS_ERR &&
	      send_log[4].wr_id == send_log[3].wr_id + 1, "status %u",
	      send_log[4].status);
	expect_flush(5, 15);
	CHECK(recvs == 20 && !recv_log[9].status &&
	      recv_log[10].status == ROVE_WC_WR_FLUSH_ERR, "%u receives", recvs);
	CHECK(b->event[ROVE_EVENT_QP_ACCESS_ERR] == 1, "no event");
}

/* What the QP does not grant is refused, however good the key. */
static void qp_rights(void)
{
	static const u8 op[] = { ROVE_WR_RDMA_WRITE, ROVE_WR_RDMA_READ,
				 ROVE_WR_ATOMIC_FETCH_AND_ADD };
	static const u32 right[] = { ROVE_ACCESS_REMOTE_WRITE,
		ROVE_ACCESS_REMOTE_READ, ROVE_ACCESS_REMOTE_ATOMIC };
	u32 i, len;

	for (i = 0; i < ARRAY_SIZE(op); i++) {
		for (len = op[i] == ROVE_WR_ATOMIC_FETCH_AND_ADD ? 8 : 0; len <= 8;
		     len += 8) {
			start(256);
			b->t.access &= ~right[i];
			post(op[i], len, SIGNALED);
			go();
			CHECK(sends == 1 &&
			      (send_log[0].status == ROVE_WC_REM_ACCESS_ERR ||
			       send_log[0].status == ROVE_WC_REM_INV_REQ_ERR),
			      "operation %u of %u bytes not granted: status %u",
			      op[i], len, send_log[0].status);
			CHECK(pristine() && b->t.state == ROVE_TQP_ERR,
			      "operation %u not granted is executed", op[i]);
		}
	}
}

/* A WRITE that leaves its region in the last packet writes nothing before it. */
static void beyond_region(void)
{
	struct rove_send_wqe *wqe;

	start(256);
	wqe = post(ROVE_WR_RDMA_WRITE, 512, SIGNALED);
	wqe->remote_addr = a->mr_target->va + a->tsize - 511;
	go();
	CHECK(sends == 1 && send_log[0].status == ROVE_WC_REM_ACCESS_ERR,
	      "WRITE beyond its region: status %u", send_log[0].status);
	CHECK(pristine(), "WRITE beyond its region is executed in part");
}

/* One byte too many for 32 bits, or for a message: an error, not a wrap. */
static void too_long(void)
{
	static const u32 len[][2] = {
		{ 0x80000000, 0x80000000 }, { 0xffffffff, 1 }, { 0x80000000, 1 },
		{ 0xffffffff, 0xffffffff }, { 0x80000001, 0 },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(len); i++) {
		struct rove_send_wqe *wqe;

		start(1024);
		wqe = post(ROVE_WR_RDMA_WRITE, 8, SIGNALED);
		wqe->num_sge = 2;
		wqe->sge[1] = wqe->sge[0];
		wqe->sge[0].length = len[i][0];
		wqe->sge[1].length = len[i][1];
		go();
		CHECK(sends == 1 && send_log[0].status == ROVE_WC_LOC_LEN_ERR &&
		      !wired, "%u + %u bytes: status %u", len[i][0], len[i][1],
		      send_log[0].status);
	}
}

/* ---- what a peer must not get away with ---- */

/* A repeated READ may not reach further than the original (hazard 6). */
static void wicked_duplicate(void)
{
	u8 reth[16], ext[28] = {};
	u32 n;

	start(256);
	post(ROVE_WR_RDMA_READ, 100, SIGNALED);
	go();
	CHECK(sends == 1 && !send_log[0].status, "READ: %u", send_log[0].status);
	n = stats.pkts;
	put(reth, wire[0].va, 8);
	put(reth + 8, a->mr_target->key, 4);
	put(reth + 12, 101, 4);
	inject(ROVE_OP_READ_REQUEST, 100, 16, reth, 0, true);
	CHECK(stats.pkts == n, "a longer repetition is answered");
	put(reth, wire[0].va + 1, 8);
	put(reth + 12, 100, 4);
	inject(ROVE_OP_READ_REQUEST, 100, 16, reth, 0, true);
	CHECK(stats.pkts == n, "another address is answered");
	put(reth, wire[0].va, 8);
	put(reth + 8, b->mr_recv->key, 4);
	inject(ROVE_OP_READ_REQUEST, 100, 16, reth, 0, true);
	CHECK(stats.pkts == n, "another key is answered");
	put(reth + 8, a->mr_target->key, 4);
	put(ext, wire[0].va & ~7ULL, 8);
	put(ext + 8, a->mr_target->key, 4);
	inject(ROVE_OP_FETCH_ADD, 100, 28, ext, 0, true);
	CHECK(stats.pkts == n && pristine(), "an atomic in its place is answered");
	inject(ROVE_OP_READ_REQUEST, 100, 16, reth, 0, true);
	CHECK(stats.pkts == n + 1, "the true repetition is not answered");
	CHECK(b->t.state == ROVE_TQP_RTS, "state %d", b->t.state);
}

/* Lengths and sequences of packets that no honest peer sends. */
static void wicked_requests(void)
{
	static const struct {
		u8 opcode;
		u32 dma_len;
		u32 payload;
	} t[] = {
		{ ROVE_OP_WRITE_ONLY, 8, 4 }, { ROVE_OP_WRITE_ONLY, 8, 12 },
		{ ROVE_OP_WRITE_ONLY, 0, 4 }, { ROVE_OP_WRITE_ONLY, 256, 260 },
		{ ROVE_OP_WRITE_FIRST, 256, 256 }, { ROVE_OP_WRITE_FIRST, 512, 252 },
		{ ROVE_OP_WRITE_FIRST, 512, 260 }, { ROVE_OP_WRITE_FIRST, 0x80000001, 256 },
		{ ROVE_OP_WRITE_FIRST, 0xffffffff, 256 }, { ROVE_OP_WRITE_LAST, 0, 8 },
		{ ROVE_OP_WRITE_MIDDLE, 0, 256 }, { ROVE_OP_SEND_LAST, 0, 8 },
		{ ROVE_OP_SEND_MIDDLE, 0, 256 }, { ROVE_OP_SEND_FIRST, 0, 252 },
		{ ROVE_OP_READ_REQUEST, 0x80000001, 0 }, { ROVE_OP_READ_REQUEST, 0xffffffff, 0 },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(t); i++) {
		bool reth = rove_opcodes[t[i].opcode].flags & ROVE_OPF_RETH;
		u8 ext[16];

		start(256);
		post_recv(4000);
		put(ext, a->mr_target->va, 8);
		put(ext + 8, a->mr_target->key, 4);
		put(ext + 12, t[i].dma_len, 4);
		inject(t[i].opcode, 100, reth ? 16 : 0, ext, t[i].payload, true);
		CHECK(b->t.state == ROVE_TQP_ERR && acks == 1,
		      "wicked request %u: state %d, %u ACKs", i, b->t.state, acks);
		CHECK(pristine(), "wicked request %u wrote", i);
		CHECK(recvs == 1 && recv_log[0].status, "wicked request %u is received", i);
	}
}

/* A message that stops half-way and another that begins. */
static void wicked_sequence(void)
{
	static const u8 second[] = {
		ROVE_OP_SEND_ONLY, ROVE_OP_WRITE_ONLY, ROVE_OP_SEND_FIRST,
		ROVE_OP_READ_REQUEST, ROVE_OP_FETCH_ADD, ROVE_OP_WRITE_MIDDLE,
		ROVE_OP_WRITE_LAST,
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(second); i++) {
		u16 f = rove_opcodes[second[i]].flags;
		u8 ext[28] = {};

		start(256);
		post_recv(4000);
		inject(ROVE_OP_SEND_FIRST, 100, 0, ext, 256, true);
		CHECK(b->t.state == ROVE_TQP_RTS, "state %d", b->t.state);
		put(ext, (a->mr_target->va + 7) & ~7ULL, 8);
		put(ext + 8, a->mr_target->key, 4);
		if (f & ROVE_OPF_RETH)
			put(ext + 12, 256, 4);
		inject(second[i], 101, f & ROVE_OPF_RETH ? 16 :
		       f & ROVE_OPF_ATOMIC ? 28 : 0, ext,
		       f & ROVE_OPF_PAYLOAD ? 256 : 0, true);
		CHECK(b->t.state == ROVE_TQP_ERR && pristine(),
		      "opcode %x within a SEND: state %d", second[i], b->t.state);
	}
}

/* Answers to what was never asked change nothing. */
static void wicked_answers(void)
{
	u32 i;

	start(256);
	b->blackhole = true;
	a->t.timeout = 0;
	for (i = 0; i < 4; i++)
		post(ROVE_WR_RDMA_READ, 8, SIGNALED);
	go();
	for (i = 0; i < 5000; i++) {
		static const u8 op[] = { ROVE_OP_ACKNOWLEDGE, ROVE_OP_READ_RESP_ONLY,
			ROVE_OP_READ_RESP_FIRST, ROVE_OP_READ_RESP_MIDDLE,
			ROVE_OP_READ_RESP_LAST, ROVE_OP_ATOMIC_ACK };
		u8 opcode = op[below(6)], bth[64] = { opcode, 0x40, 0xff, 0xff };
		u32 psn = 100 + 4 + below(1 << 22), n = rove_opcodes[opcode].hdr_len;

		if (rnd() & 1)
			psn = psn_add(100, -between(1, 1 << 22));
		put(bth + 5, a->t.qpn, 3);
		put(bth + 9, psn, 3);
		put(bth + 12, rnd(), 4);
		if (rove_opcodes[opcode].flags & ROVE_OPF_PAYLOAD)
			n += 8;
		net_inject(b, bth, n + 4);
	}
	sim_run_until(NULL, NS_PER_S);
	CHECK(!sends && a->t.state == ROVE_TQP_RTS && wired == 4,
	      "%u completions, %u packets", sends, wired);
}

/* READ responses of a length that was not asked for (hazard 37). */
static void wicked_response(void)
{
	static const u32 len[] = { 0, 4, 96, 104, 256, 300 };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(len); i++) {
		u8 bth[400] = { ROVE_OP_READ_RESP_ONLY, 0x40, 0xff, 0xff };

		start(256);
		b->blackhole = true;
		a->t.timeout = 0;
		memset(a->send_mem.mem, UNTOUCHED, 1024);
		post(ROVE_WR_RDMA_READ, 100, SIGNALED);
		go();
		put(bth + 5, a->t.qpn, 3);
		put(bth + 9, 100, 3);
		net_inject(b, bth, 16 + len[i] + 4);
		sim_run_until(NULL, NS_PER_S);
		CHECK(sends == 1 && send_log[0].status == ROVE_WC_BAD_RESP_ERR,
		      "response of %u bytes: status %u", len[i], send_log[0].status);
		CHECK(a->send_mem.mem[100] == UNTOUCHED, "wrote beyond");
	}
}

/*
 * Anything at all, around the PSNs expected: no crash, no completion too many,
 * nothing written outside the one region that the packets name.
 */
static void noise(void)
{
	u32 round, i;

	for (round = 0; round < 300; round++) {
		start(256);
		for (i = 0; i < 8; i++) {
			post_recv(below(600));
			post(below(10), 8 * between(1, 60), SIGNALED)->invalidate_rkey = rnd();
		}
		tqp_send(a);
		b->blackhole = rnd() & 1;
		for (i = 0; i < 200; i++) {
			bool to_a = rnd() & 1;
			u8 opcode = below(0x18), bth[600];
			struct sim_qp *to = to_a ? a : b;
			u32 n = 12 + 4 * below(rnd() & 1 ? 12 : 130);
			u32 pad = below(8) ? 0 : below(4);
			u32 base = to_a ? a->t.req.psn_una : b->t.resp.epsn;

			fill(bth, n, rnd());
			bth[0] = opcode;
			bth[1] = 0x40 | pad << 4;
			put(bth + 2, 0xffff, 2);
			put(bth + 5, to->t.qpn, 3);
			put(bth + 9, psn_add(base, below(4) ? 0 : between(0, 8) - 4), 3);
			if (rnd() & 1 && n >= 28) {
				put(bth + 12, b->peer->mr_target->va + 8 * below(300), 8);
				put(bth + 20, a->mr_target->key, 4);
				put(bth + 24, below(2) ? n - 28 - pad : below(1000), 4);
			}
			net_inject(to->peer, bth, n + 4);
			if (rnd() & 1)
				sim_run_until(NULL, 100 * NS_PER_S);
		}
		sim_run_until(NULL, 100 * NS_PER_S);
		rove_tqp_error(&a->t);
		rove_tqp_error(&b->t);
		CHECK(sends == 8 && recvs == 8, "%u sends, %u receives of 8", sends,
		      recvs);
		for (i = 0; i < 8; i++)
			CHECK(send_log[i].wr_id == send_log[0].wr_id + i &&
			      recv_log[i].wr_id == recv_log[0].wr_id + i, "order");
	}
}

/* ---- what is counted ---- */

#define COUNTED(c, n)					\
	CHECK(stats.counter[ROVE_CNT_##c] == (n), #c " is %llu",	\
	      stats.counter[ROVE_CNT_##c])

/* Each cause once, so that who looks at the counters finds it. */
static void counted(void)
{
	u8 reth[16] = {};

	memset(&stats, 0, sizeof(stats));
	start(256);
	a->t.rnr_retry = 1;
	post(ROVE_WR_SEND, 8, SIGNALED);
	go();
	COUNTED(RNR_NAK_TX, 2);
	COUNTED(BAD_RING, 0);
	COUNTED(RNR_NAK_RX, 2);
	COUNTED(RNR_EXC, 1);

	memset(&stats, 0, sizeof(stats));
	start(256);
	a->t.retry_cnt = 2;
	b->blackhole = true;
	post(ROVE_WR_RDMA_WRITE, 8, SIGNALED);
	go();
	COUNTED(TIMEOUT, 3);
	COUNTED(RETRANS, 2);
	COUNTED(RETRY_EXC, 1);
	COUNTED(DUP_REQUEST, 2);
	COUNTED(RDMA_WRITE_RX, 1);

	memset(&stats, 0, sizeof(stats));
	start(256);
	b->rq_broken = true;
	post(ROVE_WR_SEND, 8, SIGNALED);
	go();
	COUNTED(BAD_RING, 1);
	COUNTED(NAK_TX, 1);
	COUNTED(NAK_RX, 1);
	CHECK(b->event[ROVE_EVENT_QP_FATAL] == 1 && b->t.state == ROVE_TQP_ERR &&
	      send_log[0].status == ROVE_WC_REM_OP_ERR, "a broken receive ring");

	memset(&stats, 0, sizeof(stats));
	start(256);
	a->sq_broken = true;
	tqp_send(a);
	COUNTED(BAD_RING, 1);
	CHECK(a->event[ROVE_EVENT_QP_FATAL] == 1 && a->t.state == ROVE_TQP_ERR,
	      "a broken send ring");

	memset(&stats, 0, sizeof(stats));
	start(256);
	post_recv(8);
	post(ROVE_WR_SEND, 8, 0);
	post(ROVE_WR_RDMA_READ, 8, 0);
	post(ROVE_WR_ATOMIC_FETCH_AND_ADD, 8, SIGNALED);
	go();
	COUNTED(SEND_RX, 1);
	COUNTED(RDMA_READ_RX, 1);
	COUNTED(RDMA_ATOMIC_RX, 1);
	CHECK(send_log[0].status == 0, "status %u", send_log[0].status);
	inject(ROVE_OP_SEND_ONLY, 200, 0, reth, 8, true);
	COUNTED(OUT_OF_SEQ, 1);
	COUNTED(SEQ_NAK_TX, 1);
	inject(ROVE_OP_SEND_ONLY, 300, 0, reth, 8, true);
	COUNTED(OUT_OF_SEQ, 2);
	COUNTED(SEQ_NAK_TX, 1);
	rove_tqp_error(&b->t);
	inject(ROVE_OP_SEND_ONLY, 103, 0, reth, 8, true);
	COUNTED(RX_BAD_STATE, 1);
}

static bool read_waits(void)
{
	return b->t.resp.res_count;
}

static bool answer_due(void)
{
	return b->ack_owed || stats.pkts > 1;
}

/* Whoever has much to send or to answer lets others have their turn. */
static void in_turns(void)
{
	static const u8 op[] = { ROVE_WR_RDMA_WRITE, ROVE_WR_RDMA_READ };
	u32 i, most;

	for (i = 0; i < ARRAY_SIZE(op); i++) {
		struct mr *mr;
		struct sim_qp *from;
		u8 *mem;

		start(1024);
		from = i ? b : a;
		a->t.req.window = 4096;
		a->t.req.cwnd = 4096;
		mem = malloc(1 << 20);
		mr = mr_add(b, 0, mem, 1 << 20, ROVE_ACCESS_REMOTE_WRITE |
			    ROVE_ACCESS_REMOTE_READ | ROVE_ACCESS_LOCAL_WRITE);
		a->mr_local->len = 1 << 20;
		a->send_mem.mem = realloc(a->send_mem.mem, 1 << 20);
		a->mr_local->mem = a->send_mem.mem;
		a->mr_local->va = 0;
		post(op[i], 1 << 20, SIGNALED)->rkey = mr->key;
		((struct rove_send_wqe *)(a->sq + (size_t)((a->sq_prod - 1) &
			(a->sq_depth - 1)) * a->sq_stride))->remote_addr = 0;
		stats.pkts = 0;
		rove_tqp_send(&a->t, sim.now);
		if (i) {
			net_flush(a);
			sim_run_until(answer_due, 100 * NS_PER_S);
			if (stats.pkts <= 1)
				env_run_deferred(b);
		}
		most = stats.pkts;
		net_flush(from);
		CHECK(most >= 64 && most <= 192, "%u packets at once", most);
		sim_run_until(NULL, 100 * NS_PER_S);
		CHECK(sends == 1 && !send_log[0].status, "status %u", send_log[0].status);
		free(mem);
	}
}

/* The region goes between a READ and its answer: a NAK of that READ's PSN. */
static void region_gone(void)
{
	u32 tries = 0;

	do {
		start(256);
		post(ROVE_WR_RDMA_WRITE, 8, 0);
		post(ROVE_WR_RDMA_READ, 1000, SIGNALED);
		stats.pkts = 0;
		tqp_send(a);
		sim_run_until(read_waits, 100 * NS_PER_S);
		/* It may have been answered in the same moment. */
	} while (!b->t.resp.reply_count && ++tries < 100);
	CHECK(b->t.resp.reply_count, "always answered at once");
	a->mr_target->valid = false;
	sim_run_until(NULL, 100 * NS_PER_S);
	CHECK(sends == 1 && send_log[0].status == ROVE_WC_REM_ACCESS_ERR &&
	      count(101) == 1, "status %u, asked for %u times", send_log[0].status,
	      count(101));
	CHECK(b->t.state == ROVE_TQP_ERR, "state %d", b->t.state);
}

/* Numbers of more than 24 bits are taken as 24. */
static void numbers(void)
{
	start(256);
	rove_tqp_start_requester(&a->t, 0xff000064);
	rove_tqp_start_responder(&b->t, 0xff000064);
	b->t.state = ROVE_TQP_RTS;
	post(ROVE_WR_RDMA_WRITE, 600, SIGNALED);
	go();
	CHECK(sends == 1 && !send_log[0].status && wired == 3 && wire[0].psn == 100,
	      "status %u, %u packets", send_log[0].status, wired);
}

/* While memory is on its way the peer waits, each time twice as long, and no longer. */
static void page_waits(void)
{
	static struct scenario paging;
	u64 last = 0, wait = 0;
	u32 i;

	start(256);
	paging = *sim.sc;
	paging.paging = 1000000;
	sim.sc = &paging;
	a->t.timeout = 0;
	post(ROVE_WR_RDMA_WRITE, 8, SIGNALED);
	rnr_limit = 14;
	tqp_send(a);
	sim_run_until(enough_sent, 100 * NS_PER_S);
	for (i = 1; i < wired; i++) {
		u64 want = rove_rnr_delay(min(8 + 2 * (i - 1), 24U));

		wait = wire[i].at - last;
		last = wire[i].at;
		if (i > 1)
			CHECK(wait >= want && wait < want + 100000,
			      "wait %u is %llu ns, not %llu", i, wait, want);
	}
	COUNTED(PAGE_NAK_TX, 13);
	paging.paging = 0;
	sim_run_until(NULL, 100 * NS_PER_S);
	CHECK(sends == 1 && !send_log[0].status, "no end to it");
}

/* ---- XRC ---- */

/* a sends, b receives; what b knows of the SRQ is its number. */
static void start_xrc(void)
{
	start(256);
	a->t.service = ROVE_SVC_XRC;
	b->t.service = ROVE_SVC_XRC;
	b->t.target = true;
	b->t.srq = true;
}

static u32 srqn_sent;
static u32 requests_sent;

static bool see_xrceth(struct sim_qp *qp, const u8 *bth)
{
	u32 flags = rove_opcodes[bth[0]].flags;

	CHECK((bth[0] & ROVE_SVC_MASK) == ROVE_SVC_XRC, "opcode %x", bth[0]);
	CHECK(!(flags & ROVE_OPF_REQUEST) == !(flags & ROVE_OPF_XRCETH),
	      "XRCETH in opcode %x", bth[0]);
	if (flags & ROVE_OPF_XRCETH) {
		CHECK(!bth[12], "reserved bits of XRCETH");
		srqn_sent = be(bth + 13, 3);
		requests_sent++;
	}
	return false;
}

static void xrc(void)
{
	static const u8 ops[] = {
		ROVE_WR_SEND, ROVE_WR_SEND_WITH_IMM, ROVE_WR_RDMA_WRITE,
		ROVE_WR_RDMA_WRITE_WITH_IMM, ROVE_WR_RDMA_READ,
		ROVE_WR_ATOMIC_CMP_AND_SWP, ROVE_WR_ATOMIC_FETCH_AND_ADD,
	};
	u32 i;

	start_xrc();
	a->on_packet = see_xrceth;
	b->on_packet = see_xrceth;
	requests_sent = 0;
	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		post_recv(1000);
		post(ops[i], i < 5 ? 1000 : 8, SIGNALED)->srqn = SIM_SRQN;
		go();
		CHECK(sends == i + 1 && send_log[i].status == ROVE_WC_SUCCESS,
		      "operation %u: status %u", ops[i], send_log[i].status);
		CHECK(srqn_sent == SIM_SRQN, "SRQ %x", srqn_sent);
	}
	CHECK(recvs == 3 && requests_sent == 4 * 4 + 3, "%u receives, %u requests",
	      recvs, requests_sent);

	/* An SRQ that is not there ends the connection. */
	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		start_xrc();
		post_recv(1000);
		post(ops[i], 8, SIGNALED)->srqn = SIM_SRQN - 1;
		go();
		CHECK(sends == 1 && !recvs &&
		      send_log[0].status == ROVE_WC_REM_INV_REQ_ERR,
		      "operation %u: status %u", ops[i], send_log[0].status);
		CHECK(b->t.state == ROVE_TQP_ERR &&
		      b->event[ROVE_EVENT_QP_REQ_ERR] == 1,
		      "state %d", b->t.state);
	}
}

/* Packets made by hand: @psn, @srqn, then @payload bytes. */
static void inject_xrc(u8 op, u32 psn, u32 srqn, u32 payload)
{
	u8 eth[4];

	put(eth, srqn, 4);
	inject(ROVE_SVC_XRC | op, psn, sizeof(eth), eth, payload, true);
}

static void xrc_packets(void)
{
	/* The message is for one SRQ from its beginning to its end. */
	start_xrc();
	post_recv(1000);
	inject_xrc(ROVE_OP_SEND_FIRST, 100, SIM_SRQN | 0xff000000, 256);
	CHECK(b->t.resp.in_msg, "reserved bits count");
	inject_xrc(ROVE_OP_SEND_LAST, 101, SIM_SRQN2, 4);
	CHECK(recvs == 1 && recv_log[0].status == ROVE_WC_REM_INV_REQ_ERR &&
	      b->t.state == ROVE_TQP_ERR, "%u receives, state %d", recvs,
	      b->t.state);
	/* Too short for its header; of another service; to an initiator. */
	start_xrc();
	post_recv(1000);
	inject(ROVE_SVC_XRC | ROVE_OP_SEND_ONLY, 100, 0, (u8 *)"", 0, true);
	inject(ROVE_OP_SEND_ONLY, 100, 0, (u8 *)"", 4, true);
	inject(ROVE_SVC_UC | ROVE_OP_SEND_ONLY, 100, 0, (u8 *)"", 4, true);
	CHECK(!recvs && b->t.resp.epsn == 100, "%u receives", recvs);
	b->t.target = false;
	inject_xrc(ROVE_OP_SEND_ONLY, 100, SIM_SRQN, 4);
	CHECK(!recvs && b->t.resp.epsn == 100, "%u receives", recvs);
	b->t.target = true;
	inject_xrc(ROVE_OP_SEND_ONLY, 100, SIM_SRQN, 4);
	CHECK(recvs == 1 && recv_log[0].byte_len == 4, "%u receives", recvs);
}

int directed_run(void)
{
	static void (*const cases[])(void) = {
		retry_exhausted, no_timeout, retries_refilled, rnr_exhausted,
		rnr_for_ever, loss_in_the_middle, tail_lost, response_tail_lost, ack_lost,
		read_partial,
		atomic_replayed, atomic_misaligned, no_resources, zero_length, coalesced, credits,
		message_numbers, ack_not_forgotten, long_messages, established,
		error_in_the_middle, qp_rights, beyond_region, too_long,
		wicked_duplicate, wicked_requests,
		atomic_write, local_in_order, local_fence, local_last, local_refused,
		wicked_sequence, wicked_answers, wicked_response, noise, super_packets,
		xrc, xrc_packets, counted, in_turns, page_waits,
		region_gone, numbers,
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
