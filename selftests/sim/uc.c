// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * uc.c - unreliable services, UC and UD: streams of random messages; scripted cases
 * of UC
 *
 * What the model knows: a message is complete at its sender when its packets have
 * left, once, whatever becomes of them.  It arrives whole or not at all, and the
 * receive that it would have used serves the next one.
 *
 *	uc	  nothing is lost, so nothing may be
 *	uc-loss	  single packets are lost: exactly their messages may be missing
 *	uc-chaos  repeated, late and damaged packets: what arrives is something that
 *		  was sent, whole; how often and in which order nobody promises
 *	ud, ...	  likewise; a message is one packet
 */
#include "sim.h"

#define PAIRS	3
#define MSGS	400
#define ROUNDS	25
#define RECVS	(2 * MSGS)
#define QKEY	0x31415926

struct msg {
	u8 op;
	u32 len;
	u64 seed;
	__be32 imm;
	u32 toff;
	u32 first_psn;
	bool signaled;
	bool lost;
};

/* What one QP sends to its peer. */
struct stream {
	struct sim_qp *from;
	struct sim_qp *to;
	u8 *smem;		/* payloads, one behind the other */
	u8 *rmem;		/* a place for each receive */
	struct mr *mr_send;
	struct mr *mr_recv;
	u64 shead;
	u32 recv_len;
	u32 n;			/* messages posted */
	u32 done;		/* of these, complete */
	u32 psn;		/* of the next message */
	u32 posted;		/* receives */
	u32 got;
	u32 last;		/* message that came last, plus 1 */
	struct msg msg[MSGS];
};

static struct stream streams[2 * PAIRS];
static u32 nstreams;
static u8 service;
static bool watched;		/* the model sees which packets are lost */
static u32 msgs;		/* messages of a stream */
static int checks;
static u8 scratch[1 << 17];

#define CHECK(qp, cond, ...) do {		\
	checks++;				\
	if (!(cond))				\
		sim_fail(qp, __VA_ARGS__);	\
} while (0)

/* Everything arrives, in order, but for what the model has seen lost. */
static bool orderly(void)
{
	return !sim.sc->dup && !sim.sc->ghost && !sim.sc->reorder &&
	       !sim.sc->drop && !sim.sc->corrupt;
}

static u32 npkts(const struct sim_qp *qp, u32 len)
{
	return len && service == ROVE_SVC_UC ? (len - 1) / qp->t.mtu + 1 : 1;
}

static struct stream *stream_of(const struct sim_qp *qp, bool to)
{
	u32 i;

	for (i = 0; (to ? streams[i].to : streams[i].from) != qp; i++)
		;
	return &streams[i];
}

/* ---- completions ---- */

static void sent(struct stream *s, const struct rove_cqe *cqe)
{
	u32 k = s->done;

	while (k < s->n && !s->msg[k].signaled)
		k++;
	CHECK(s->from, k < s->n && cqe->wr_id == k,
	      "send completion of %llx, not of %u", (u64)cqe->wr_id, k);
	CHECK(s->from, cqe->status == ROVE_WC_SUCCESS && cqe->wc_flags == 0 &&
	      cqe->opcode == (is_write(s->msg[k].op) ? ROVE_WC_RDMA_WRITE :
						       ROVE_WC_SEND),
	      "send %u: status %u, opcode %u", k, cqe->status, cqe->opcode);
	/* All its packets are out, and none of the next. */
	CHECK(s->from, s->from->t.req.psn_next ==
	      psn_add(s->msg[k].first_psn, npkts(s->from, s->msg[k].len)),
	      "send %u completes at psn %x", k, s->from->t.req.psn_next);
	s->done = k + 1;
}

static void post_receives(struct stream *s)
{
	while (s->posted < RECVS) {
		struct rove_recv_wqe *wqe = env_rq_slot(s->to);

		if (!wqe)
			break;
		wqe->wr_id = s->posted;
		wqe->num_sge = 1;
		wqe->sge[0] = (struct rove_sge) {
			(u64)s->posted++ * s->recv_len, s->recv_len,
			s->mr_recv->key
		};
		s->to->rq_prod++;
	}
}

/* Is it this message that has arrived? */
static bool is_it(struct stream *s, const struct msg *m,
		  const struct rove_cqe *cqe)
{
	bool write = m->op == ROVE_WR_RDMA_WRITE_WITH_IMM;
	u8 *at = write ? s->from->tmem + m->toff :
			 s->rmem + (u64)s->got * s->recv_len;
	u32 flags = m->op == ROVE_WR_SEND ? 0 : ROVE_WC_WITH_IMM;
	u32 len = m->len;

	if (service == ROVE_SVC_UD) {
		if (cqe->src_qp != s->from->t.qpn ||
		    memcmp(at, sim_origin.grh, ROVE_GRH_LEN))
			return false;
		at += ROVE_GRH_LEN;
		len += ROVE_GRH_LEN;
		flags |= ROVE_WC_WITH_GRH;
	}
	if (!takes_recv(m->op) || cqe->byte_len != len || cqe->wc_flags != flags ||
	    (flags & ROVE_WC_WITH_IMM && cqe->imm_data != m->imm) ||
	    cqe->opcode != (write ? ROVE_WC_RECV_RDMA_WITH_IMM : ROVE_WC_RECV))
		return false;
	fill(scratch, m->len, m->seed);
	return !memcmp(at, scratch, m->len);
}

static void received(struct stream *s, const struct rove_cqe *cqe)
{
	u32 k = orderly() ? s->last : 0;

	CHECK(s->to, s->got < s->posted && cqe->wr_id == s->got &&
	      cqe->status == ROVE_WC_SUCCESS,
	      "receive completion of %llx, status %u, not of %u",
	      (u64)cqe->wr_id, cqe->status, s->got);
	/* Of those of which no packet is lost: two may be alike. */
	while (k < s->n && (s->msg[k].lost || !is_it(s, &s->msg[k], cqe)))
		k++;
	CHECK(s->to, k < s->n, "receive %u: %u bytes that nobody has sent, or not whole",
	      s->got, cqe->byte_len);
	/* Whose packets arrive in order, that must arrive. */
	for (; orderly() && s->last < k; s->last++)
		CHECK(s->to, s->msg[s->last].lost ||
		      !takes_recv(s->msg[s->last].op),
		      "message %u never arrived", s->last);
	s->last = k + 1;
	s->got++;
	stats.recvs++;
	post_receives(s);
}

static void on_cqe(struct sim_qp *qp, const struct rove_cqe *cqe, bool recv,
		   bool solicited)
{
	if (recv)
		received(stream_of(qp, true), cqe);
	else
		sent(stream_of(qp, false), cqe);
}

/* ---- the network ---- */

/* Lose packets, and know which message they were of. */
static bool lose_some(struct sim_qp *qp, const u8 *bth)
{
	struct stream *s = stream_of(qp, false);
	u32 psn = bth[9] << 16 | bth[10] << 8 | bth[11], k;

	CHECK(qp, (bth[0] & ROVE_SVC_MASK) == service && !(bth[8] & 0x80),
	      "opcode %x, AckReq %u", bth[0], bth[8] >> 7);
	if (below(50))
		return false;
	for (k = s->n; psn_diff(psn, s->msg[k - 1].first_psn) < 0; k--)
		;
	s->msg[k - 1].lost = true;
	stats.dropped++;
	return true;
}

/* ---- programs ---- */

static void new_stream(struct sim_qp *from)
{
	struct stream *s = &streams[nstreams++];

	memset(s, 0, sizeof(*s));
	s->from = from;
	s->to = from->peer;
	s->psn = from->sq_psn;
	s->recv_len = max(sim.sc->max_len, from->t.mtu + ROVE_GRH_LEN);
	s->smem = malloc((u64)MSGS * sim.sc->max_len);
	s->rmem = malloc((u64)RECVS * s->recv_len);
	s->mr_send = mr_add(from, 0, s->smem, (u64)MSGS * sim.sc->max_len, 0);
	s->mr_recv = mr_add(s->to, 0, s->rmem, (u64)RECVS * s->recv_len,
			    ROVE_ACCESS_LOCAL_WRITE);
	from->on_cqe = on_cqe;
	from->on_packet = watched ? lose_some : NULL;
}

static void post_message(struct stream *s)
{
	static const u8 ops[] = {
		ROVE_WR_SEND, ROVE_WR_SEND_WITH_IMM, ROVE_WR_RDMA_WRITE,
		ROVE_WR_RDMA_WRITE_WITH_IMM,
	};
	struct rove_send_wqe *wqe = env_sq_slot(s->from);
	struct msg *m = &s->msg[s->n];
	bool ud = service == ROVE_SVC_UD;
	u32 max_len = ud ? min(s->from->t.mtu, sim.sc->max_len) : sim.sc->max_len;
	u32 cut;

	if (!wqe || s->n == msgs)
		return;
	memset(wqe, 0, sizeof(*wqe));
	m->op = ops[below(ud ? 2 : 4)];
	m->len = below(4) ? below(64) : below(max_len + 1);
	m->seed = rnd();
	m->imm = rnd();
	m->toff = below(s->from->tsize - m->len + 1);
	m->first_psn = s->psn;
	m->signaled = s->n == msgs - 1 || below(3);
	s->psn = psn_add(s->psn, npkts(s->from, m->len));

	wqe->wr_id = s->n++;
	wqe->opcode = m->op;
	wqe->flags = m->signaled ? ROVE_WR_SIGNALED : 0;
	wqe->imm_data = m->imm;
	if (ud) {
		wqe->ah = 1;
		wqe->remote_qpn = s->to->t.qpn;
		wqe->remote_qkey = QKEY;
	} else {
		wqe->remote_addr = s->from->mr_target->va + m->toff;
		wqe->rkey = s->from->mr_target->key;
	}
	if (m->len <= 64 && rnd() & 1) {
		wqe->flags |= ROVE_WR_INLINE;
		wqe->inline_len = m->len;
		fill((u8 *)wqe->sge, m->len, m->seed);
	} else {
		fill(s->smem + s->shead, m->len, m->seed);
		cut = below(m->len + 1);
		wqe->num_sge = 2;
		wqe->sge[0] = (struct rove_sge) { s->shead, cut, s->mr_send->key };
		wqe->sge[1] = (struct rove_sge) { s->shead + cut, m->len - cut,
						  s->mr_send->key };
		s->shead += m->len;
	}
	s->from->sq_prod++;
	stats.wrs++;
}

static bool ran;

static bool has_run(void)
{
	bool was = ran;

	ran = true;
	return was;
}

/* Streams of @n messages over one service or the other. */
static void one_round(u8 svc, u32 pairs, u32 n)
{
	static const enum rove_counter silent[] = {
		ROVE_CNT_ACK_TX, ROVE_CNT_TIMEOUT, ROVE_CNT_RETRANS,
		ROVE_CNT_RNR_NAK_TX,
	};
	u64 before[ARRAY_SIZE(silent)];
	u32 i, left;

	sim_end_round();
	service = svc;
	msgs = n;
	nstreams = 0;
	for (i = 0; i < ARRAY_SIZE(silent); i++)
		before[i] = stats.counter[silent[i]];
	for (i = 0; i < pairs; i++) {
		struct sim_qp *a = user_still_pair(svc, 1 << below(7), 128,
						   256 << below(5));

		a->t.qkey = QKEY;
		a->peer->t.qkey = QKEY;
		new_stream(a);
		new_stream(a->peer);
	}
	do {
		left = 0;
		for (i = 0; i < nstreams; i++) {
			struct stream *s = &streams[i];
			u32 k = below(8);

			post_receives(s);
			while (k--)
				post_message(s);
			env_doorbell(s->from, below(3000));
			left += msgs - s->n;
		}
		/* Some of what follows happens before the next posts. */
		for (i = below(4 * nstreams); i && event_pending(); i--) {
			ran = false;
			sim_run_until(has_run, NS_PER_S);
		}
	} while (left);
	sim_run_until(NULL, 100 * NS_PER_S);

	for (i = 0; i < nstreams; i++) {
		struct stream *s = &streams[i];
		struct sim_qp *qp = s->from;

		CHECK(qp, s->done == msgs && qp->sq_released == qp->sq_prod,
		      "only %u messages are complete", s->done);
		CHECK(qp, qp->t.req.psn_next == s->psn, "psn %x, not %x",
		      qp->t.req.psn_next, s->psn);
		CHECK(qp, qp->t.state == ROVE_TQP_RTS, "state %d", qp->t.state);
		for (; orderly() && s->last < msgs; s->last++)
			CHECK(qp, s->msg[s->last].lost ||
			      !takes_recv(s->msg[s->last].op),
			      "message %u never arrived", s->last);
		/* In order and all there: the target is what they make of it. */
		if (orderly() && !watched) {
			for (left = 0; left < msgs; left++)
				if (is_write(s->msg[left].op))
					fill(qp->tshadow + s->msg[left].toff,
					     s->msg[left].len, s->msg[left].seed);
			CHECK(qp, !memcmp(qp->tmem, qp->tshadow, qp->tsize),
			      "the target differs");
		}
		free(s->smem);
		free(s->rmem);
	}
	for (i = 0; i < ARRAY_SIZE(silent); i++)
		CHECK(NULL, stats.counter[silent[i]] == before[i],
		      "an unreliable service behaves like RC");
}

void unreliable_round(u8 svc, u32 pairs, u32 n)
{
	watched = false;
	one_round(svc, min(pairs, (u32)PAIRS), min(n, (u32)MSGS));
}

/* ---- scripted cases ---- */

static struct sim_qp *a, *b;
static struct rove_cqe log_s[16], log_r[16];
static u32 sends, recvs;

static void note_cqe(struct sim_qp *qp, const struct rove_cqe *cqe, bool recv,
		     bool solicited)
{
	if (recv && qp == b)
		log_r[recvs++ % 16] = *cqe;
	if (!recv && qp == a)
		log_s[sends++ % 16] = *cqe;
}

static void start(u32 mtu)
{
	sim_end_round();
	a = user_still_pair(ROVE_SVC_UC, 16, 128, mtu);
	b = a->peer;
	a->on_cqe = note_cqe;
	b->on_cqe = note_cqe;
	b->t.resp.epsn = 100;
	a->t.req.psn_next = 100;
	a->t.req.psn_una = 100;
	a->t.req.psn_top = 100;
	sends = 0;
	recvs = 0;
}

static struct rove_send_wqe *post(u8 op, u32 len)
{
	struct rove_send_wqe *wqe = user_post(a, op, len, ROVE_WR_SIGNALED);

	wqe->remote_addr = a->mr_target->va;
	wqe->rkey = a->mr_target->key;
	return wqe;
}

static struct rove_recv_wqe *post_recv(u32 len)
{
	return user_post_recv(b, len);
}

static void go(void)
{
	tqp_send(a);
	sim_run_until(NULL, NS_PER_S);
}

static void put(u8 *p, u64 v, u32 n)
{
	while (n--) {
		p[n] = v;
		v >>= 8;
	}
}

/* A packet made by hand: a RETH of @dma_len, if there is to be one, then payload. */
static void inject(u8 opcode, u32 psn, u32 dma_len, u32 payload)
{
	u32 ext = rove_opcodes[opcode].flags & ROVE_OPF_RETH ? 16 : 0;
	u8 bth[4200] = { opcode, 0x40, 0xff, 0xff };

	put(bth + 5, b->t.qpn, 3);
	put(bth + 9, psn, 3);
	if (ext) {
		put(bth + 12, a->mr_target->va, 8);
		put(bth + 20, a->mr_target->key, 4);
		put(bth + 24, dma_len, 4);
	}
	memset(bth + 12 + ext, 0x77, payload);
	net_inject(a, bth, 12 + ext + payload + 4);
	sim_run_until(NULL, NS_PER_S);
}

#define UC(op)	(ROVE_SVC_UC | ROVE_OP_##op)

/* What does not fit the receive, or finds none, is gone; the next one fits. */
static void refused_messages(void)
{
	start(256);
	post(ROVE_WR_SEND, 10);		/* no receive */
	go();
	post_recv(300);
	post(ROVE_WR_SEND, 301);	/* too long, in its second packet */
	post(ROVE_WR_SEND, 300);
	post(ROVE_WR_RDMA_WRITE_WITH_IMM, 300);	/* no receive again */
	go();
	CHECK(a, sends == 4 && recvs == 1 && log_r[0].byte_len == 300 &&
	      log_r[0].status == 0, "%u sends, %u receives", sends, recvs);
	post_recv(300);
	post(ROVE_WR_RDMA_WRITE_WITH_IMM, 300)->rkey ^= 1;
	post(ROVE_WR_RDMA_WRITE, 300)->remote_addr = a->mr_target->va + a->tsize;
	b->t.access = 0;
	go();
	post(ROVE_WR_RDMA_WRITE_WITH_IMM, 300);
	go();
	b->t.access = ROVE_ACCESS_REMOTE_WRITE;
	post(ROVE_WR_RDMA_WRITE_WITH_IMM, 2);
	go();
	CHECK(a, sends == 8 && recvs == 2 && log_r[1].byte_len == 2,
	      "%u sends, %u receives", sends, recvs);
	CHECK(b, b->t.state == ROVE_TQP_RTS && a->t.state == ROVE_TQP_RTS,
	      "states %d, %d", a->t.state, b->t.state);
	CHECK(b, !memcmp(a->tmem + 300, a->tshadow + 300, a->tsize - 300),
	      "memory was written to");
}

/* Packets that do not go on with the message under way. */
static void broken_sequences(void)
{
	u64 dropped = stats.counter[ROVE_CNT_UC_RX_DROPPED];

	start(256);
	post_recv(4096);
	inject(UC(SEND_MIDDLE), 100, 0, 256);	/* of nothing, and next: one dropped */
	inject(UC(SEND_LAST), 101, 0, 12);
	inject(UC(SEND_FIRST), 102, 0, 256);
	inject(UC(SEND_LAST), 104, 0, 12);	/* a hole */
	inject(UC(SEND_LAST), 103, 0, 12);	/* too late */
	inject(UC(SEND_FIRST), 500, 0, 256);
	inject(UC(SEND_FIRST), 501, 0, 256);	/* and another */
	inject(UC(SEND_MIDDLE), 502, 0, 252);	/* short */
	inject(UC(SEND_LAST), 503, 0, 12);
	inject(UC(SEND_FIRST), 504, 0, 256);
	inject(UC(WRITE_MIDDLE), 505, 0, 256);	/* of another sort */
	inject(UC(SEND_LAST), 506, 0, 12);
	inject(UC(SEND_ONLY), 507, 0, 260);	/* longer than the MTU */
	inject(UC(WRITE_FIRST), 508, 400, 256);
	inject(UC(WRITE_LAST), 509, 0, 148);	/* RETH said 144 */
	inject(UC(WRITE_ONLY), 510, 100, 96);
	inject(UC(WRITE_ONLY), 511, 1U << 31 | 1, 96);
	inject(ROVE_OP_SEND_ONLY, 512, 0, 4);	/* RC: not for a UC QP */
	inject(ROVE_OP_ACKNOWLEDGE, 512, 0, 4);
	CHECK(b, !recvs, "%u receives", recvs);
	CHECK(b, stats.counter[ROVE_CNT_UC_RX_DROPPED] == dropped + 9,
	      "%llu messages dropped",
	      stats.counter[ROVE_CNT_UC_RX_DROPPED] - dropped);
	inject(UC(SEND_FIRST), 0xffffff, 0, 256);
	inject(UC(SEND_LAST), 0, 0, 12);
	CHECK(b, recvs == 1 && log_r[0].byte_len == 268 && !log_r[0].status,
	      "%u receives of %u", recvs, log_r[0].byte_len);
	CHECK(b, b->t.state == ROVE_TQP_RTS, "state %d", b->t.state);
}

/* A bad work request stops the send queue alone. */
static void bad_sends(void)
{
	static const u8 ops[] = {
		ROVE_WR_RDMA_READ, ROVE_WR_ATOMIC_FETCH_AND_ADD,
		ROVE_WR_SEND_WITH_INV, ROVE_WR_SEND, 200,
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		struct rove_send_wqe *wqe;

		start(256);
		post_recv(4096);
		wqe = post(ops[i], 8);
		if (ops[i] == ROVE_WR_SEND)
			wqe->sge[0].lkey ^= 1;
		post(ROVE_WR_SEND, 8);
		go();
		CHECK(a, sends == 2 && log_s[0].status == (ops[i] == ROVE_WR_SEND ?
		      ROVE_WC_LOC_PROT_ERR : ROVE_WC_LOC_QP_OP_ERR) &&
		      log_s[1].status == ROVE_WC_WR_FLUSH_ERR,
		      "operation %u: %u completions, status %u", ops[i], sends,
		      log_s[0].status);
		CHECK(a, a->t.state == ROVE_TQP_SQE && a->told_sqe && !recvs, "state %d",
		      a->t.state);
		/* What is posted meanwhile is flushed; what comes in is taken. */
		post(ROVE_WR_SEND, 8);
		go();
		CHECK(a, sends == 3 && log_s[2].status == ROVE_WC_WR_FLUSH_ERR,
		      "%u completions", sends);
		rove_tqp_resume(&a->t, sim.now);
		net_flush(a);
		post(ROVE_WR_SEND, 8);
		go();
		CHECK(a, sends == 4 && !log_s[3].status && recvs == 1,
		      "%u sends, %u receives", sends, recvs);
	}
}

/* What is wrong at the receiver ends its QP; the sender never knows. */
static void bad_receives(void)
{
	u32 i;

	for (i = 0; i < 3; i++) {
		struct rove_recv_wqe *wqe;

		start(256);
		wqe = post_recv(100);
		post_recv(100);
		if (i == 0)
			wqe->num_sge = 3;
		else if (i == 1)
			wqe->sge[0].lkey ^= 1;
		else
			b->rq_broken = true;
		post(ROVE_WR_SEND, 100);
		go();
		CHECK(a, sends == 1 && !log_s[0].status &&
		      a->t.state == ROVE_TQP_RTS, "status %u", log_s[0].status);
		CHECK(b, b->t.state == ROVE_TQP_ERR &&
		      b->event[ROVE_EVENT_QP_FATAL] == 1, "state %d", b->t.state);
		if (i == 2)
			continue;
		CHECK(b, recvs == 2 && log_r[0].status ==
		      (i ? ROVE_WC_LOC_PROT_ERR : ROVE_WC_LOC_QP_OP_ERR) &&
		      log_r[1].status == ROVE_WC_WR_FLUSH_ERR,
		      "%u receives, status %u", recvs, log_r[0].status);
	}
	/* A receive that waits for the next message is flushed, once. */
	start(256);
	post_recv(100);
	post_recv(100);
	inject(UC(SEND_FIRST), 100, 0, 256);
	inject(UC(SEND_ONLY), 101, 0, 256);
	rove_tqp_error(&b->t);
	CHECK(b, recvs == 2 && log_r[0].status == ROVE_WC_WR_FLUSH_ERR &&
	      (u32)(log_r[0].wr_id + 1) == (u32)log_r[1].wr_id, "%u receives", recvs);
}

/* SQD: what has begun is sent to its end, the rest waits. */
static void drained(void)
{
	start(256);
	post_recv(4096);
	post_recv(4096);
	post(ROVE_WR_SEND, 1000);
	go();
	a->draining = true;
	rove_tqp_drain(&a->t);
	CHECK(a, a->event[ROVE_EVENT_SQ_DRAINED] == 1, "not drained");
	post(ROVE_WR_SEND, 1000);
	tqp_send(a);
	CHECK(a, sends == 1 && !a->out, "%u sends", sends);
	/* That it is drained has it resumed. */
	sim_run_until(NULL, NS_PER_S);
	CHECK(a, sends == 2 && recvs == 2, "%u sends", sends);
}

int uc_run(void)
{
	u32 i;

	checks = 0;
	watched = strstr(sim.sc->name, "-loss");
	for (i = 0; i < max(ROUNDS * scale / 100, 5U); i++)
		one_round(sim.sc->name[1] == 'c' ? ROVE_SVC_UC : ROVE_SVC_UD, PAIRS, MSGS);
	if (!orderly() || watched || service == ROVE_SVC_UD)
		return checks;
	refused_messages();
	broken_sequences();
	bad_sends();
	bad_receives();
	drained();
	return checks;
}
