// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * gbn.c - a peer that is not rove: plain go-back-N, as IBTA vol. 1, 9.7 describes it
 *
 * It stands in the place of the transport at one end of a pair: the same program posts
 * to it, the same model judges it.  It shares no line with transport/: it reads and
 * writes packets byte by byte, keeps nothing that comes out of order, and goes back to
 * the oldest packet that is not acknowledged whenever something is missing.  What
 * implementations do differently is drawn for each connection: struct gbn.
 *
 * What comes to it was sent by rove, so what is wrong with that is a failure.  It is for
 * RC on a connection that does not end in an error.
 */
#include "sim.h"

#define PSN_MASK	0xffffff
#define SLOTS		128	/* most send work requests, READs and atomics */

/* Opcodes (table 38). */
enum {
	SEND_FIRST, SEND_MIDDLE, SEND_LAST, SEND_LAST_IMM, SEND_ONLY, SEND_ONLY_IMM,
	WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST, WRITE_LAST_IMM, WRITE_ONLY,
	WRITE_ONLY_IMM, READ_REQUEST, READ_FIRST, READ_MIDDLE, READ_LAST, READ_ONLY,
	ACK, ATOMIC_ACK, COMPARE_SWAP, FETCH_ADD,
	SEND_LAST_INV = 0x16, SEND_ONLY_INV, STORE8 = 0x1d,
};

/* A READ or atomic that was executed. */
struct answer {
	u8 opcode;
	u32 psn;
	u32 npkts;
	u64 va;
	u32 rkey;
	u32 len;
	u32 msn;
	u64 orig;
};

struct gbn {
	/* What sort of peer it is. */
	u32 window;
	u32 ask_every;		/* packets; 0: the last of a message asks */
	bool ask_late;		/* only the last of all, or of a full window */
	bool whole_reads;	/* begins a READ anew, instead of asking for the rest */
	bool ack_later;		/* when more packets may have come */
	bool ack_unasked;	/* each message */
	bool nak_behind_rnr;	/* what comes behind what it could not receive */

	/* requester: work requests @done to @fetched */
	struct {
		struct rove_swqe w;
		u8 more[MAX_INLINE];	/* SGEs or inline bytes */
	} ring[SLOTS];
	u32 done;
	u32 fetched;
	u32 first[SLOTS];
	u32 npkts[SLOTS];	/* 0: local */
	u32 end;		/* PSN of the next one fetched */
	u32 una;		/* oldest PSN not acknowledged */
	u32 next;
	u32 top;		/* one past the highest that was sent */
	u32 asked;		/* @next when an ACK was asked for last */
	bool went_back;
	bool waits;		/* after an RNR NAK, until @wake */
	u64 wake;
	u64 deadline;

	/* responder */
	u32 epsn;
	u32 msn;
	bool in_msg;
	bool is_write;
	bool have;		/* a receive work request */
	struct rove_rwqe recv;
	struct rove_sge sge[MAX_SGE];
	u32 got;		/* bytes of the message */
	u64 va;
	u32 rkey;
	u32 len;
	bool nak_out;
	bool ack_due;
	struct answer answer[SLOTS];
	u32 answers;
};

/* ---- numbers ---- */

static u32 plus(u32 psn, u32 n)
{
	return (psn + n) & PSN_MASK;
}

/* Does @a come before @b? */
static bool before(u32 a, u32 b)
{
	return ((a - b) & PSN_MASK) >= 1 << 23;
}

static u32 between_psns(u32 from, u32 to)
{
	return (to - from) & PSN_MASK;
}

static u64 get(const u8 *p, u32 n)
{
	u64 v = 0;

	while (n--)
		v = v << 8 | *p++;
	return v;
}

static u8 *put(u8 *p, u64 v, u32 n)
{
	u32 i;

	for (i = n; i--; v >>= 8)
		p[i] = v;
	return p + n;
}

static u64 rnr_ns(u8 code)
{
	/* Table 46, in us. */
	static const u32 us[32] = {
		655360, 10, 20, 30, 40, 60, 80, 120, 160, 240, 320, 480, 640, 960, 1280,
		1920, 2560, 3840, 5120, 7680, 10240, 15360, 20480, 30720, 40960, 61440,
		81920, 122880, 163840, 245760, 327680, 491520,
	};

	return us[code & 31] * 1000ULL;
}

/* The highest credit code (table 47) that does not promise too much. */
static u8 credit_code(u32 credits)
{
	u32 code = 0, value, step = 1;

	if (credits == ROVE_NO_CREDITS)
		return 31;
	/* 0 1 2 3 4 6 8 12 16 24 ... */
	for (value = 1; value <= credits && code < 30; value += step) {
		code++;
		if (code >= 4 && !(code & 1))
			step *= 2;
	}
	return code;
}

/* ---- packets out ---- */

static u8 *head(struct sim_qp *qp, u8 *p, u8 opcode, u32 psn, bool solicited,
		bool ask)
{
	p = put(p, opcode, 1);
	p = put(p, 0x40 | solicited << 7, 1);	/* the pad count comes later */
	p = put(p, 0xffff, 2);
	p = put(p, qp->t.dest_qpn, 4);
	return put(p, (u32)ask << 31 | psn, 4);
}

/* @p: the end of the headers in @pkt; @n bytes of payload stand there. */
static void out(struct sim_qp *qp, u8 *pkt, u8 *p, u32 n)
{
	u32 pad = -n & 3;

	pkt[1] |= pad << 4;
	memset(p + n, 0, pad);
	net_put(qp, pkt, p + n + pad - pkt + ROVE_ICRC_LEN);
}

static u8 *aeth(struct sim_qp *qp, u8 *p, u8 syndrome, u32 msn)
{
	p = put(p, syndrome, 1);
	return put(p, msn, 3);
}

static u8 ack_syndrome(struct sim_qp *qp)
{
	return credit_code(rove_env_rq_credits(&qp->t));
}

static void send_ack(struct sim_qp *qp, u8 syndrome, u32 psn)
{
	struct gbn *g = qp->gbn;
	u8 pkt[64], *p = head(qp, pkt, ACK, psn, false, false);

	p = aeth(qp, p, syndrome, g->msn);
	out(qp, pkt, p, 0);
	g->ack_due = false;
}

static void ack_now(struct sim_qp *qp)
{
	send_ack(qp, ack_syndrome(qp), plus(qp->gbn->epsn, -1));
}

/* ---- requester ---- */

static struct rove_send_wqe *wqe_at(struct sim_qp *qp, u32 i)
{
	return &qp->gbn->ring[i % SLOTS].w.wqe;
}

static u32 length(const struct rove_send_wqe *wqe)
{
	u32 i, len = 0;

	if (is_atomic(wqe->opcode))
		return 8;
	if (wqe->flags & ROVE_WR_INLINE)
		return wqe->inline_len;
	for (i = 0; i < wqe->num_sge; i++)
		len += wqe->sge[i].length;
	return len;
}

/* Bytes @from to @from + @n of the local memory of a work request. */
static void local_bytes(struct sim_qp *qp, const struct rove_send_wqe *wqe,
			u32 from, u8 *bytes, u32 n, bool store)
{
	u32 i, part;

	if (wqe->flags & ROVE_WR_INLINE) {
		memcpy(bytes, (const u8 *)wqe->sge + from, n);
		return;
	}
	for (i = 0; n; i++) {
		const struct rove_sge *sge = &wqe->sge[i];
		u8 *mem;

		if (from >= sge->length) {
			from -= sge->length;
			continue;
		}
		part = min(n, sge->length - from);
		mem = mr_range(qp, sge->lkey, sge->addr + from, part,
			       store ? ROVE_ACCESS_LOCAL_WRITE : 0);
		if (!mem)
			sim_fail(qp, "gbn: local key %x", sge->lkey);
		memcpy(store ? mem : bytes, store ? bytes : mem, part);
		bytes += part;
		n -= part;
		from = 0;
	}
}

static u32 wc_opcode(u8 op)
{
	static const u8 wc[] = {
		[ROVE_WR_RDMA_WRITE] = ROVE_WC_RDMA_WRITE,
		[ROVE_WR_RDMA_WRITE_WITH_IMM] = ROVE_WC_RDMA_WRITE,
		[ROVE_WR_RDMA_READ] = ROVE_WC_RDMA_READ,
		[ROVE_WR_ATOMIC_CMP_AND_SWP] = ROVE_WC_COMP_SWAP,
		[ROVE_WR_ATOMIC_FETCH_AND_ADD] = ROVE_WC_FETCH_ADD,
		[ROVE_WR_LOCAL_INV] = ROVE_WC_LOCAL_INV,
		[ROVE_WR_BIND_MW] = ROVE_WC_BIND_MW,
		[ROVE_WR_ATOMIC_WRITE] = ROVE_WC_ATOMIC_WRITE,
	};

	return op < ARRAY_SIZE(wc) ? wc[op] : ROVE_WC_SEND;
}

/* The oldest work request is complete. */
static void complete(struct sim_qp *qp)
{
	const struct rove_send_wqe *wqe = wqe_at(qp, qp->gbn->done++);
	struct rove_cqe cqe = {
		.wr_id = wqe->wr_id,
		.byte_len = length(wqe),
		.opcode = wc_opcode(wqe->opcode),
	};

	rove_env_sq_release(&qp->t);
	if (qp->t.sq_sig_all || wqe->flags & ROVE_WR_SIGNALED)
		rove_env_complete(&qp->t, &cqe, false, false);
}

static u64 rto(struct sim_qp *qp)
{
	return 2 * (4096ULL << qp->t.timeout);
}

static void arm(struct sim_qp *qp)
{
	struct gbn *g = qp->gbn;

	rove_env_arm_timer(&qp->t, g->waits ? g->wake : g->deadline);
}

/* Everything before @psn is done with. */
static void progress(struct sim_qp *qp, u32 psn)
{
	struct gbn *g = qp->gbn;

	g->una = psn;
	if (before(g->next, psn))
		g->next = psn;
	if (before(g->asked, psn))
		g->asked = psn;
	g->went_back = false;
	g->waits = false;
	g->deadline = psn == g->next ? ROVE_NO_DEADLINE : sim.now + rto(qp);
	arm(qp);
}

static void go_back(struct sim_qp *qp)
{
	struct gbn *g = qp->gbn;
	u32 i = g->done % SLOTS;

	g->next = g->una;
	if (g->whole_reads && g->done != g->fetched && g->npkts[i])
		g->next = g->first[i];
	g->asked = g->next;
	g->went_back = true;
	g->deadline = sim.now + rto(qp);
	arm(qp);
	rove_env_defer_send(&qp->t);
}

/* Everything before @psn has arrived; READs and atomics are not complete with that. */
static void acknowledged(struct sim_qp *qp, u32 psn)
{
	struct gbn *g = qp->gbn;
	u32 una = g->una;

	while (g->done != g->fetched && before(una, psn)) {
		u32 i = g->done % SLOTS, end = plus(g->first[i], g->npkts[i]);

		if (!g->npkts[i] || is_answered(wqe_at(qp, g->done)->opcode))
			break;
		if (before(psn, end)) {
			una = psn;
			break;
		}
		una = end;
		complete(qp);
	}
	if (una != g->una)
		progress(qp, una);
}

static void fetch(struct sim_qp *qp)
{
	struct gbn *g = qp->gbn;

	while (qp->t.state == ROVE_TQP_RTS && g->fetched - g->done < SLOTS) {
		struct rove_send_wqe *wqe = wqe_at(qp, g->fetched);
		u32 i = g->fetched % SLOTS;

		if (rove_env_sq_fetch(&qp->t, &g->ring[i].w) <= 0)
			break;
		g->first[i] = g->end;
		g->npkts[i] = is_local(wqe->opcode) ? 0 :
			      max(1U, DIV_ROUND_UP(length(wqe), qp->t.mtu));
		g->end = plus(g->end, g->npkts[i]);
		g->fetched++;
	}
}

/* READs and atomics before work request @i that are not complete. */
static u32 unanswered(struct sim_qp *qp, u32 i)
{
	u32 k, n = 0;

	for (k = qp->gbn->done; k != i; k++)
		n += is_answered(wqe_at(qp, k)->opcode);
	return n;
}

static u8 request_opcode(const struct rove_send_wqe *wqe, bool first, bool last)
{
	u8 base = is_write(wqe->opcode) ? WRITE_FIRST : SEND_FIRST;
	bool imm = wqe->opcode == ROVE_WR_SEND_WITH_IMM ||
		   wqe->opcode == ROVE_WR_RDMA_WRITE_WITH_IMM;

	switch (wqe->opcode) {
	case ROVE_WR_RDMA_READ:
		return READ_REQUEST;
	case ROVE_WR_ATOMIC_CMP_AND_SWP:
		return COMPARE_SWAP;
	case ROVE_WR_ATOMIC_FETCH_AND_ADD:
		return FETCH_ADD;
	case ROVE_WR_ATOMIC_WRITE:
		return STORE8;
	case ROVE_WR_SEND_WITH_INV:
		if (last)
			return first ? SEND_ONLY_INV : SEND_LAST_INV;
	}
	if (!last)
		return first ? base : base + 1;
	return base + (first ? 4 : 2) + imm;
}

/* Send packet @idx of work request @i, which is that of @next. */
static void send_request(struct sim_qp *qp, u32 i, u32 idx)
{
	static u8 pkt[ROVE_MAX_HDR + 4096 + 8];
	struct gbn *g = qp->gbn;
	const struct rove_send_wqe *wqe = wqe_at(qp, i);
	u32 len = length(wqe), at = idx * qp->t.mtu, n = min(len - at, qp->t.mtu);
	bool read = wqe->opcode == ROVE_WR_RDMA_READ;
	bool last = read || idx == g->npkts[i % SLOTS] - 1;
	u32 step = read ? g->npkts[i % SLOTS] - idx : 1;
	u32 end = plus(g->next, step);
	u8 opcode = request_opcode(wqe, !idx, last), *p;
	const struct rove_send_wqe *then = wqe_at(qp, i + 1);
	bool more = i + 1 != g->fetched && g->npkts[(i + 1) % SLOTS] &&
		    !(then->flags & ROVE_WR_FENCE) && !is_answered(then->opcode) &&
		    between_psns(g->una, end) < g->window;
	bool ask = is_answered(wqe->opcode) ||
		   (g->ask_every && between_psns(g->asked, end) >= g->ask_every) ||
		   (last && !(g->ask_late && more)) ||
		   between_psns(g->una, end) >= g->window || g->went_back;

	p = head(qp, pkt, opcode, g->next, last && takes_recv(wqe->opcode) &&
		 wqe->flags & ROVE_WR_SOLICITED, ask);
	if (read || is_atomic(wqe->opcode) || (is_write(wqe->opcode) && !idx)) {
		p = put(p, wqe->remote_addr + at, 8);
		p = put(p, wqe->rkey, 4);
		if (is_atomic(wqe->opcode)) {
			bool cas = opcode == COMPARE_SWAP;

			p = put(p, cas ? wqe->swap : wqe->compare_add, 8);
			p = put(p, cas ? wqe->compare_add : 0, 8);
		} else {
			p = put(p, len - at, 4);
		}
	}
	if (last && (wqe->opcode == ROVE_WR_SEND_WITH_IMM ||
		     wqe->opcode == ROVE_WR_RDMA_WRITE_WITH_IMM)) {
		memcpy(p, &wqe->imm_data, 4);
		p += 4;
	} else if (last && wqe->opcode == ROVE_WR_SEND_WITH_INV) {
		p = put(p, wqe->invalidate_rkey, 4);
	}
	if (is_rd(wqe->opcode))
		n = 0;
	local_bytes(qp, wqe, at, p, n, false);
	if (!idx && !before(g->next, g->top))
		env_begins(qp, wqe->wr_id);
	out(qp, pkt, p, n);
	g->next = end;
	if (before(g->top, end))
		g->top = end;
	if (ask)
		g->asked = end;
	if (g->deadline == ROVE_NO_DEADLINE) {
		g->deadline = sim.now + rto(qp);
		arm(qp);
	}
}

static void send_requests(struct sim_qp *qp)
{
	struct gbn *g = qp->gbn;
	u32 i;

	fetch(qp);
	for (i = g->done; i != g->fetched && !g->waits; ) {
		struct rove_send_wqe *wqe = wqe_at(qp, i);
		u32 first = g->first[i % SLOTS], n = g->npkts[i % SLOTS];

		/* Local work waits for all before it. */
		if (!n) {
			if (i != g->done)
				break;
			if (rove_env_local(&qp->t, wqe))
				sim_fail(qp, "gbn: local work is refused");
			complete(qp);
			i++;
			fetch(qp);
			continue;
		}
		if (!before(g->next, plus(first, n))) {
			i++;
			continue;
		}
		if (g->next == first &&
		    ((wqe->flags & ROVE_WR_FENCE && unanswered(qp, i)) ||
		     (is_answered(wqe->opcode) &&
		      unanswered(qp, i) >= qp->t.max_rd_atomic)))
			break;
		if (g->next != g->una && between_psns(g->una, g->next) >= g->window &&
		    !before(g->next, g->una))
			break;
		send_request(qp, i, between_psns(first, g->next));
	}
}

/* Something before @psn is missing; once is enough until there is progress. */
static void missing(struct sim_qp *qp)
{
	if (!qp->gbn->went_back && !qp->gbn->waits)
		go_back(qp);
}

static void rx_ack(struct sim_qp *qp, u8 syndrome, u32 psn)
{
	struct gbn *g = qp->gbn;

	acknowledged(qp, syndrome >> 5 ? psn : plus(psn, 1));
	switch (syndrome >> 5) {
	case 0:
		/* A READ or atomic that is acknowledged, and not answered. */
		if (!before(psn, g->una))
			missing(qp);
		break;
	case 1:
		if (psn != g->una) {
			missing(qp);
			break;
		}
		if (g->waits)
			break;
		go_back(qp);
		g->waits = true;
		g->deadline = ROVE_NO_DEADLINE;
		g->wake = sim.now + rnr_ns(syndrome);
		arm(qp);
		break;
	case 3:
		if (syndrome & 31)
			sim_fail(qp, "gbn: NAK %x, and nothing is wrong", syndrome);
		missing(qp);
		break;
	default:
		sim_fail(qp, "gbn: syndrome %x", syndrome);
	}
}

static void rx_answer(struct sim_qp *qp, u8 opcode, u32 psn, const u8 *ext,
		      u32 n)
{
	struct gbn *g = qp->gbn;
	const struct rove_send_wqe *wqe;
	u32 i, idx;
	bool last;

	acknowledged(qp, psn);
	if (psn != g->una) {
		missing(qp);
		return;
	}
	i = g->done % SLOTS;
	idx = between_psns(g->first[i], psn);
	if (g->done == g->fetched || idx >= g->npkts[i])
		sim_fail(qp, "gbn: an answer to nothing");
	wqe = wqe_at(qp, g->done);
	last = idx == g->npkts[i] - 1;
	if (opcode == ATOMIC_ACK) {
		u64 v = get(ext + 4, 8);

		if (!is_atomic(wqe->opcode))
			sim_fail(qp, "gbn: an atomic's answer to operation %u", wqe->opcode);
		local_bytes(qp, wqe, 0, (u8 *)&v, 8, true);
	} else {
		u32 hdr = opcode == READ_MIDDLE ? 0 : 4;
		u32 want = wqe->opcode == ROVE_WR_ATOMIC_WRITE ? 0 :
			   min(length(wqe) - idx * qp->t.mtu, qp->t.mtu);

		if (is_atomic(wqe->opcode) || !is_answered(wqe->opcode) ||
		    last != (opcode == READ_LAST || opcode == READ_ONLY))
			sim_fail(qp, "gbn: opcode %x answers operation %u", opcode, wqe->opcode);
		if (n - hdr != want)
			sim_fail(qp, "gbn: %u bytes of a READ, not %u", n - hdr, want);
		local_bytes(qp, wqe, idx * qp->t.mtu, (u8 *)ext + hdr, want, true);
	}
	if (last)
		complete(qp);
	progress(qp, plus(psn, 1));
}

static void rx_response(struct sim_qp *qp, u8 opcode, u32 psn, const u8 *ext,
			u32 n)
{
	struct gbn *g = qp->gbn;

	if (before(psn, g->una))
		return;
	if (!before(psn, g->top))
		sim_fail(qp, "gbn: psn %x was never sent", psn);
	if (opcode == ACK)
		rx_ack(qp, ext[0], psn);
	else
		rx_answer(qp, opcode, psn, ext, n);
	rove_env_defer_send(&qp->t);
}

/* ---- responder ---- */

static void send_read(struct sim_qp *qp, const struct answer *a)
{
	static u8 pkt[ROVE_MAX_HDR + 4096 + 8];
	u32 i, mtu = qp->t.mtu;

	for (i = 0; i < a->npkts; i++) {
		bool last = i == a->npkts - 1;
		u32 n = last ? a->len - i * mtu : mtu;
		u8 opcode = a->npkts == 1 ? READ_ONLY : last ? READ_LAST :
			    i ? READ_MIDDLE : READ_FIRST;
		u8 *mem = mr_range(qp, a->rkey, a->va + i * mtu, n,
				   ROVE_ACCESS_REMOTE_READ), *p;

		if (n && !mem)
			return;		/* it was invalidated since */
		p = head(qp, pkt, opcode, plus(a->psn, i), false, false);
		if (opcode != READ_MIDDLE)
			p = aeth(qp, p, ack_syndrome(qp), a->msn);
		if (n)
			memcpy(p, mem, n);
		out(qp, pkt, p, n);
	}
}

static void send_answer(struct sim_qp *qp, const struct answer *a)
{
	u8 pkt[64], *p;

	if (a->opcode == READ_REQUEST) {
		send_read(qp, a);
	} else {
		p = head(qp, pkt, a->opcode == STORE8 ? READ_ONLY : ATOMIC_ACK, a->psn,
			 false, false);
		p = aeth(qp, p, ack_syndrome(qp), a->msn);
		if (a->opcode != STORE8)
			p = put(p, a->orig, 8);
		out(qp, pkt, p, 0);
	}
	qp->gbn->ack_due = false;
}

/* What was executed before (9.7.5.1): an ACK again, a READ again, an atomic's result. */
static void duplicate(struct sim_qp *qp, u8 opcode, u32 psn, const u8 *ext)
{
	struct gbn *g = qp->gbn;
	u32 i, skip;

	if (opcode < READ_REQUEST || opcode == SEND_LAST_INV || opcode == SEND_ONLY_INV) {
		ack_now(qp);
		return;
	}
	for (i = 0; i < min(g->answers, qp->t.resp.max_res); i++) {
		struct answer a = g->answer[(g->answers - 1 - i) % SLOTS];

		skip = between_psns(a.psn, psn);
		if (skip >= a.npkts)
			continue;
		if (opcode != a.opcode)
			sim_fail(qp, "gbn: psn %x was opcode %x, not %x", psn, a.opcode, opcode);
		if (opcode == READ_REQUEST) {
			a.va += (u64)skip * qp->t.mtu;
			if (get(ext, 8) != a.va || get(ext + 8, 4) != a.rkey ||
			    get(ext + 12, 4) > a.len - skip * qp->t.mtu)
				sim_fail(qp, "gbn: another READ at psn %x", psn);
			a.len = get(ext + 12, 4);
			a.psn = psn;
			a.npkts = max(1U, DIV_ROUND_UP(a.len, qp->t.mtu));
		}
		send_answer(qp, &a);
		return;
	}
}

static void nak(struct sim_qp *qp, u8 syndrome)
{
	qp->gbn->nak_out = true;
	send_ack(qp, syndrome, qp->gbn->epsn);
}

static bool have_recv(struct sim_qp *qp)
{
	struct gbn *g = qp->gbn;

	if (g->have)
		return true;
	if (rove_env_rq_fetch(&qp->t, &g->recv) > 0) {
		g->have = true;
		return true;
	}
	nak(qp, 0x20 | qp->t.min_rnr_timer);
	if (g->nak_behind_rnr)
		g->nak_out = false;
	return false;
}

static void received(struct sim_qp *qp, const u8 *bth, const u8 *ext, bool imm,
		     bool inv)
{
	struct gbn *g = qp->gbn;
	struct rove_cqe cqe = {
		.wr_id = g->recv.wr_id,
		.byte_len = g->got,
		.opcode = g->is_write ? ROVE_WC_RECV_RDMA_WITH_IMM : ROVE_WC_RECV,
		.src_qp = qp->t.dest_qpn,
	};

	if (imm) {
		cqe.wc_flags = ROVE_WC_WITH_IMM;
		memcpy(&cqe.imm_data, ext, 4);
	} else if (inv) {
		cqe.wc_flags = ROVE_WC_WITH_INV;
		cqe.invalidated_rkey = get(ext, 4);
	}
	g->have = false;
	rove_env_complete(&qp->t, &cqe, true, bth[1] & 0x80);
}

/* A packet of a SEND or WRITE; false: not now. */
static bool message(struct sim_qp *qp, const u8 *bth, const u8 *ext, u32 n)
{
	struct gbn *g = qp->gbn;
	u8 opcode = bth[0];
	bool inv = opcode == SEND_LAST_INV || opcode == SEND_ONLY_INV;
	bool write = opcode >= WRITE_FIRST && !inv;
	u8 place = inv ? opcode == SEND_ONLY_INV ? 4 : 2 : opcode % 6;
	bool first = place == 0 || place >= 4, last = place >= 2;
	bool imm = !inv && (place == 3 || place == 5);
	u32 hdr = 4 * (imm || inv);
	const u8 *data;
	u32 i, part;

	if (first == g->in_msg || (g->in_msg && write != g->is_write))
		sim_fail(qp, "gbn: opcode %x is out of place", opcode);
	if (!last && bth[1] & 0x80)
		sim_fail(qp, "gbn: solicited, in the midst of a message");
	if ((!write || imm) && !have_recv(qp))
		return false;
	if (write && first) {
		g->va = get(ext, 8);
		g->rkey = get(ext + 8, 4);
		g->len = get(ext + 12, 4);
		ext += 16;
		n -= 16;
	}
	data = ext + hdr;
	n -= hdr;
	if (first)
		g->got = 0;
	if (last ? n > qp->t.mtu || (!n && !first) : n != qp->t.mtu)
		sim_fail(qp, "gbn: %u bytes in opcode %x", n, opcode);
	g->is_write = write;
	if (write) {
		u8 *mem = mr_range(qp, g->rkey, g->va + g->got, n,
				   ROVE_ACCESS_REMOTE_WRITE);

		if (last ? g->got + n != g->len : g->got + n >= g->len)
			sim_fail(qp, "gbn: %u bytes of a WRITE of %u", g->got + n, g->len);
		if (n && !mem)
			sim_fail(qp, "gbn: remote key %x", g->rkey);
		if (n)
			memcpy(mem, data, n);
	} else {
		u32 at = g->got, left = n;

		for (i = 0; left; i++) {
			const struct rove_sge *sge = &g->recv.sge[i];

			if (i == g->recv.num_sge)
				sim_fail(qp, "gbn: a SEND is too long");
			if (at >= sge->length) {
				at -= sge->length;
				continue;
			}
			part = min(left, sge->length - at);
			memcpy(mr_range(qp, sge->lkey, sge->addr + at, part,
					ROVE_ACCESS_LOCAL_WRITE),
			       data + n - left, part);
			left -= part;
			at = 0;
		}
	}
	g->got += n;
	g->in_msg = !last;
	if (inv && rove_env_invalidate(&qp->t, get(ext, 4)))
		sim_fail(qp, "gbn: asked to invalidate %llx", get(ext, 4));
	if (last)
		g->msn = plus(g->msn, 1);
	if (last && (!write || imm))
		received(qp, bth, ext, imm, inv);
	return true;
}

/* A READ or atomic. */
static void answer(struct sim_qp *qp, const u8 *bth, const u8 *ext, u32 n)
{
	struct gbn *g = qp->gbn;
	struct answer *a = &g->answer[g->answers++ % SLOTS];
	u8 *mem;
	u64 v;

	if (g->in_msg)
		sim_fail(qp, "gbn: opcode %x is out of place", bth[0]);
	g->msn = plus(g->msn, 1);
	*a = (struct answer) {
		.opcode = bth[0],
		.psn = g->epsn,
		.npkts = 1,
		.va = get(ext, 8),
		.rkey = get(ext + 8, 4),
		.msn = g->msn,
	};
	if (bth[0] == READ_REQUEST) {
		a->len = get(ext + 12, 4);
		a->npkts = max(1U, DIV_ROUND_UP(a->len, qp->t.mtu));
		if (a->len && !mr_range(qp, a->rkey, a->va, a->len, ROVE_ACCESS_REMOTE_READ))
			sim_fail(qp, "gbn: remote key %x", a->rkey);
	} else {
		mem = mr_range(qp, a->rkey, a->va, 8, bth[0] == STORE8 ?
			       ROVE_ACCESS_REMOTE_WRITE : ROVE_ACCESS_REMOTE_ATOMIC);
		if (!mem || a->va & 7)
			sim_fail(qp, "gbn: atomic at %llx, remote key %x", a->va, a->rkey);
		memcpy(&a->orig, mem, 8);
		if (bth[0] == STORE8) {
			if (get(ext + 12, 4) != 8 || n != 16 + 8)
				sim_fail(qp, "gbn: atomic write of %u bytes", n - 16);
			memcpy(mem, ext + 16, 8);
		} else {
			v = get(ext + 12, 8);
			if (bth[0] == FETCH_ADD)
				v += a->orig;
			else if (get(ext + 20, 8) != a->orig)
				v = a->orig;
			memcpy(mem, &v, 8);
		}
	}
	g->epsn = plus(g->epsn, a->npkts - 1);
	send_answer(qp, a);
}

static void rx_request(struct sim_qp *qp, const u8 *bth, u32 psn, const u8 *ext,
		       u32 n)
{
	struct gbn *g = qp->gbn;
	u8 opcode = bth[0];
	bool ask = bth[8] & 0x80;

	if (before(psn, g->epsn)) {
		duplicate(qp, opcode, psn, ext);
		return;
	}
	if (psn != g->epsn) {
		if (!g->nak_out)
			nak(qp, 0x60);
		return;
	}
	if (opcode < READ_REQUEST || opcode == SEND_LAST_INV || opcode == SEND_ONLY_INV) {
		if (!message(qp, bth, ext, n))
			return;
		if (ask || (g->ack_unasked && !g->in_msg))
			g->ack_due = true;
	} else {
		answer(qp, bth, ext, n);
	}
	g->epsn = plus(g->epsn, 1);
	g->nak_out = false;
	if (!g->ack_due)
		return;
	if (g->ack_later)
		rove_env_defer_send(&qp->t);
	else
		ack_now(qp);
}

/* ---- what the simulator calls ---- */

void gbn_rx(struct sim_qp *qp, const u8 *bth, u32 len)
{
	u32 pad = bth[1] >> 4 & 3, psn = get(bth + 9, 3), n = len - 12 - pad - 4;

	if (bth[0] >> 5 || bth[1] & 15 || !(bth[1] & 0x40) || bth[8] & 0x7f)
		sim_fail(qp, "gbn: header %llx %llx", get(bth, 8), get(bth + 8, 4));
	switch (bth[0]) {
	case READ_FIRST ... ATOMIC_ACK:
		rx_response(qp, bth[0], psn, bth + 12, n);
		break;
	case SEND_FIRST ... READ_REQUEST:
	case COMPARE_SWAP ... FETCH_ADD:
	case SEND_LAST_INV ... SEND_ONLY_INV:
	case STORE8:
		rx_request(qp, bth, psn, bth + 12, n);
		break;
	default:
		sim_fail(qp, "gbn: opcode %x", bth[0]);
	}
}

void gbn_send(struct sim_qp *qp)
{
	send_requests(qp);
	if (qp->gbn->ack_due)
		ack_now(qp);
}

void gbn_timer(struct sim_qp *qp)
{
	struct gbn *g = qp->gbn;

	if (g->waits && sim.now >= g->wake) {
		g->waits = false;
		g->deadline = sim.now + rto(qp);
	} else if (!g->waits && sim.now >= g->deadline) {
		go_back(qp);
	}
	arm(qp);
	send_requests(qp);
}

/* A new connection; @psn: its first, @epsn: the peer's. */
void gbn_connect(struct sim_qp *qp, u32 psn, u32 epsn)
{
	struct gbn *g = qp->gbn;

	*g = (struct gbn) {
		.window = 1 << below(8),
		.ask_every = rnd() & 1 ? 0 : between(1, 64),
		.ask_late = rnd() & 1,
		.whole_reads = rnd() & 1,
		.ack_later = rnd() & 1,
		.ack_unasked = !below(4),
		.nak_behind_rnr = rnd() & 1,
		.recv.sge = g->sge,
		.una = psn,
		.next = psn,
		.end = psn,
		.top = psn,
		.asked = psn,
		.epsn = epsn,
		.deadline = ROVE_NO_DEADLINE,
	};
	trace(qp, "is a go-back-N peer: window %u, asks every %u%s%s%s%s%s", g->window,
	      g->ask_every, g->ask_late ? " late" : "",
	      g->whole_reads ? ", whole READs" : "", g->ack_later ? ", coalesces" : "",
	      g->ack_unasked ? ", unasked" : "", g->nak_behind_rnr ? ", NAKs behind RNR" : "");
}

struct gbn *gbn_new(void)
{
	return calloc(1, sizeof(struct gbn));
}
