// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * user.c - programs: connect, post at random, poll, drain, fail, connect again
 *
 * A program keeps to the rules of the verbs except where its scenario says
 * "bad".  The rule that matters most for what the model can know: a WRITE or
 * atomic to a place that an unfinished READ reads is fenced, since a READ may
 * be executed again.
 */
#include "sim.h"

#define LOCAL_RIGHTS	(ROVE_ACCESS_LOCAL_WRITE)
#define REMOTE_RIGHTS	(ROVE_ACCESS_LOCAL_WRITE | ROVE_ACCESS_REMOTE_WRITE | \
			 ROVE_ACCESS_REMOTE_READ | ROVE_ACCESS_REMOTE_ATOMIC)

#define GUARD		8	/* bytes before and after memory to be written */

/* ---- payload ---- */

void fill(u8 *p, u32 len, u64 seed)
{
	u64 word;

	for (; len >= 8; len -= 8, p += 8) {
		seed += 0x9e3779b97f4a7c15ULL;
		word = (seed ^ seed >> 29) * 0xbf58476d1ce4e5b9ULL;
		word ^= word >> 32;
		memcpy(p, &word, 8);
	}
	seed = mix(seed);
	memcpy(p, &seed, len);
}

static u8 scratch[1 << 20];

/* ---- arenas ---- */

static bool arena_get(struct arena *a, u32 len, u32 *off)
{
	u64 pos = a->head % a->size, head = a->head;

	if (pos + len > a->size) {
		head += a->size - pos;
		pos = 0;
	}
	if (head + len - a->tail > a->size)
		return false;
	a->head = head + len;
	*off = pos;
	return true;
}

/*
 * Cut @len bytes into at most @max pieces of arena memory, some of them empty.
 * Returns the number of pieces, or -1 and the arena as it was.
 */
static int arena_sges(struct arena *a, u32 len, u32 max, u32 *off, u32 *sge_len)
{
	u64 head = a->head;
	u32 n, i;

	if (!max)
		return len ? -1 : 0;
	n = rnd() & 1 ? 1 : between(1, max);
	if (!len && rnd() & 1)
		n = 0;
	for (i = 0; i < n; i++) {
		u32 part = i == n - 1 ? len : below(len + 1);

		if (!arena_get(a, part + 2 * GUARD + below(8), &off[i])) {
			a->head = head;
			return -1;
		}
		off[i] += GUARD;
		sge_len[i] = part;
		len -= part;
		memset(a->mem + off[i] - GUARD, UNTOUCHED, part + 2 * GUARD);
	}
	return n;
}

static void arena_init(struct arena *a, u64 size)
{
	a->mem = malloc(size);
	a->size = size;
	a->head = 0;
	a->tail = 0;
	memset(a->mem, UNTOUCHED, size);
}

/* ---- connections ---- */

/* Any address, also one whose region ends where the address space does. */
static u64 random_va(u64 len)
{
	u64 va = rnd();

	switch (below(8)) {
	case 0:
		return -len;
	case 1:
		return 0;
	default:
		return va >> below(48) & -(len + 1);
	}
}

static u32 pow2_between(u32 lo, u32 hi)
{
	return lo << below(ilog2(hi / lo) + 1);
}

static void new_target(struct sim_qp *qp)
{
	struct sim_qp *peer = qp->peer;
	u64 va = random_va(qp->tsize);

	qp->mr_target = mr_add(peer, va, qp->tmem, qp->tsize, REMOTE_RIGHTS);
	qp->mr_noright = mr_add(peer, va, qp->tmem, qp->tsize, LOCAL_RIGHTS);
	qp->mr_talias = mr_add(peer, va, qp->tmem, qp->tsize, REMOTE_RIGHTS);
	qp->talias_read = 0;
	qp->key_pulled = false;
}

static void new_alias(struct sim_qp *qp)
{
	qp->mr_alias = mr_add(qp, qp->mr_local->va, qp->send_mem.mem,
			      qp->send_mem.size, LOCAL_RIGHTS);
}

static struct sim_srq *srqs[2];

/* One of the round's shared receive queues. */
static struct sim_srq *get_srq(void)
{
	struct sim_srq **at = &srqs[below(ARRAY_SIZE(srqs))], *srq = *at;

	if (srq)
		return srq;
	srq = calloc(1, sizeof(*srq));
	*at = srq;
	srq->depth = pow2_between(2, 128);
	srq->max_sge = between(1, MAX_SGE);
	srq->stride = sizeof(struct rove_recv_wqe) +
		      srq->max_sge * sizeof(struct rove_sge);
	srq->ring = malloc((size_t)srq->depth * srq->stride);
	srq->prod = srq->fetched = -between(0, 100);
	srq->need = min(sim.sc->max_len, 4096U);
	arena_init(&srq->mem, 64 * (srq->need + 128));
	srq->mr = mr_add(NULL, random_va(srq->mem.size), srq->mem.mem,
			 srq->mem.size, LOCAL_RIGHTS);
	srq->mr->srq = srq;
	return srq;
}

void user_free_srqs(void)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(srqs); i++) {
		if (srqs[i]) {
			free(srqs[i]->mem.mem);
			free(srqs[i]->ring);
		}
		free(srqs[i]);
		srqs[i] = NULL;
	}
}

static void setup(struct sim_qp *qp)
{
	const struct scenario *sc = sim.sc;
	struct rove_tqp *t = &qp->t;

	if (t->target ||
	    (t->service == ROVE_SVC_RC && !qp->gbn && chance(sc->srq)))
		qp->srq = get_srq();

	qp->sq_depth = pow2_between(1, 128);
	qp->rq_depth = pow2_between(1, 128);
	t->max_sge_send = between(1, MAX_SGE);
	t->max_sge_recv = between(1, MAX_SGE);
	t->max_inline = below(4) ? below(MAX_INLINE + 1) : 0;
	t->sq_sig_all = !below(8);
	t->req.window = below(4) ? pow2_between(4, 256) : between(1, 16);
	if (sc->bulk) {
		qp->sq_depth = 128;
		qp->rq_depth = 128;
		t->req.window = 256;
	}
	qp->count_credits = rnd() & 1;
	if (qp->srq) {
		t->srq = true;
		t->max_sge_recv = qp->srq->max_sge;
	}
	env_setup_buffers(qp);

	qp->max_send = min(sc->max_len, below(8) ? 4096U : 60000U);
	if (qp->srq)
		qp->max_send = qp->srq->need;
	arena_init(&qp->send_mem, max(4U * sc->max_len, 65536U));
	arena_init(&qp->recv_mem, max(6U * qp->max_send, 65536U));
	qp->tsize = max(2 * sc->max_len, 4096U) + below(64);
	qp->tmem = malloc(qp->tsize);
	qp->tshadow = malloc(qp->tsize);
	fill(qp->tmem, qp->tsize, rnd());
	memcpy(qp->tshadow, qp->tmem, qp->tsize);
	qp->mr_local = mr_add(qp, random_va(qp->send_mem.size), qp->send_mem.mem,
			      qp->send_mem.size, LOCAL_RIGHTS);
	qp->mr_ro = mr_add(qp, qp->mr_local->va, qp->send_mem.mem,
			   qp->send_mem.size, 0);
	new_alias(qp);
	qp->mr_recv = mr_add(qp, random_va(qp->recv_mem.size), qp->recv_mem.mem,
			     qp->recv_mem.size, LOCAL_RIGHTS);
}

/* A pair of QPs, set up but not connected. */
struct sim_qp *user_new_pair(void)
{
	struct sim_qp *pair[2];
	u32 i;

	for (i = 0; i < 2; i++) {
		struct sim_qp *qp = calloc(1, sizeof(*qp));

		qp->idx = sim.nqps;
		sim.qp[sim.nqps++] = qp;
		pair[i] = qp;
	}
	pair[0]->peer = pair[1];
	pair[1]->peer = pair[0];
	if (chance(sim.sc->xrc)) {
		pair[0]->t.service = ROVE_SVC_XRC;
		pair[1]->t.service = ROVE_SVC_XRC;
		pair[1]->t.target = true;
	} else if (chance(sim.sc->gbn)) {
		pair[rnd() & 1]->gbn = gbn_new();
	}
	for (i = 0; i < 2; i++)
		setup(pair[i]);
	return pair[0];
}

/*
 * A pair in RTS for scripts: plain settings and only memory that chance has chosen,
 * and nobody that posts by himself.
 */
struct sim_qp *user_still_pair(u8 service, u32 sq_depth, u32 rq_depth, u32 mtu)
{
	struct sim_qp *a = user_new_pair(), *qp[2] = { a, a->peer };
	u32 i;

	for (i = 0; i < 2; i++) {
		env_free_buffers(qp[i]);
		qp[i]->sq_depth = sq_depth;
		qp[i]->rq_depth = rq_depth;
		qp[i]->t.max_sge_send = 2;
		qp[i]->t.max_sge_recv = 2;
		qp[i]->t.max_inline = 64;
		qp[i]->t.sq_sig_all = false;
		qp[i]->t.req.window = 64;
		qp[i]->count_credits = false;
		env_setup_buffers(qp[i]);
	}
	user_connect(a);
	user_start(a);
	user_start(a->peer);
	event_clear();
	for (i = 0; i < 2; i++) {
		struct rove_tqp *t = &qp[i]->t;
		u32 epsn = t->resp.epsn;

		env_reset_queues(qp[i]);
		t->service = service;
		/* Of datagrams one at a time is in hand, as the kernel has it. */
		if (service == ROVE_SVC_UD)
			t->req.depth = 1;
		rove_tqp_reset(t);
		t->mtu = mtu;
		t->retry_cnt = 7;
		t->rnr_retry = 7;
		t->min_rnr_timer = 1;
		t->timeout = service == ROVE_SVC_RC || service == ROVE_SVC_XRC ? 10 : 0;
		t->max_rd_atomic = 4;
		rove_tqp_max_res(t, 4);
		t->state = ROVE_TQP_INIT;
		rove_tqp_start_responder(t, epsn);
		rove_tqp_start_requester(t, qp[i]->sq_psn);
		memset(qp[i]->event, 0, sizeof(qp[i]->event));
	}
	return a;
}

struct rove_send_wqe *user_post(struct sim_qp *qp, u8 op, u32 len, u8 flags)
{
	struct rove_send_wqe *wqe = env_sq_slot(qp);

	memset(wqe, 0, sizeof(*wqe));
	wqe->wr_id = qp->sq_prod++;
	wqe->opcode = op;
	wqe->flags = flags;
	wqe->num_sge = !!len;
	if (len)
		wqe->sge[0] = (struct rove_sge) {
			qp->mr_local->va, len, qp->mr_local->key
		};
	return wqe;
}

struct rove_recv_wqe *user_post_recv(struct sim_qp *qp, u32 len)
{
	struct rove_recv_wqe *wqe = env_rq_slot(qp);

	wqe->wr_id = qp->rq_prod++;
	wqe->num_sge = !!len;
	if (len)
		wqe->sge[0] = (struct rove_sge) {
			qp->mr_recv->va, len, qp->mr_recv->key
		};
	return wqe;
}

static u32 random_psn(void)
{
	if (sim.sc->wrap || !below(4))
		return ROVE_PSN_MASK - below(600);
	return rnd() & ROVE_PSN_MASK;
}

/*
 * Addresses and what lies between them.  Two pairs may share a flow: then what
 * the network merges is not for one QP alone.
 */
static void choose_path(struct sim_qp *qp, const struct sim_qp *like)
{
	const struct scenario *sc = sim.sc;

	fill(qp->addr, sizeof(qp->addr), rnd());
	qp->sport = 0xc000 | rnd();
	qp->tos = rnd();
	qp->ttl = between(2, 255);
	qp->ip_options = below(16) ? 0 : 4 * between(1, 10);
	qp->gro = rnd() & 1;
	qp->hold_ns = sc->run || rnd() & 1 ? 0 : below(500000);
	if (like) {
		memcpy(qp->addr, like->addr, sizeof(qp->addr));
		qp->sport = like->sport;
		qp->gro = like->gro;
	}
	qp->ip_id = rnd();
	qp->same_id = sc->bulk ? sc->same_id : !below(8);
	/* An ID that means nothing, as many peers have it. */
	if (qp->same_id)
		qp->ip_id = 0;
	qp->split = below(3) * 500000;
}

/* What RESET to RTS sets, for both ends. */
void user_connect(struct sim_qp *a)
{
	const struct scenario *sc = sim.sc;
	const struct sim_qp *like = sim.qp[below(sim.nqps) & ~1];
	bool alone = like == a || rnd() & 1;
	bool v6 = !alone ? like->v6 : sc->ip == 6 || (!sc->ip && rnd() & 1);
	u32 mtu = pow2_between(256, 4096), i;
	struct sim_qp *qp[2] = { a, a->peer };
	u32 psn[2] = { random_psn(), random_psn() };

	for (i = 0; i < 2; i++) {
		struct rove_tqp *t = &qp[i]->t;

		/* What is left of the connection before is not for this one. */
		t->qpn = (rnd() & 0xfff000) | (qp[i]->epoch & 0xff) << 4 | qp[i]->idx;
		t->mtu = mtu;
		t->access = REMOTE_RIGHTS & ~ROVE_ACCESS_LOCAL_WRITE;
		t->retry_cnt = sc->finite ? below(8) : 250;
		t->rnr_retry = sc->finite && sc->rnr ? below(8) : 7;
		t->min_rnr_timer = below(16) ? between(1, 14) : below(32);
		t->timeout = between(9, 13);
		qp[i]->v6 = v6;
		choose_path(qp[i], alone ? NULL : i ? like->peer : like);
		qp[i]->rq_level = between(1, qp[i]->srq ? qp[i]->srq->depth : qp[i]->rq_depth);
		if (t->service == ROVE_SVC_XRC && !t->target)
			qp[i]->rq_level = 0;
	}
	for (i = 0; i < 2; i++) {
		struct rove_tqp *t = &qp[i]->t;
		u32 res = below(16) ? between(1, 16) : below(ROVE_MAX_RD_ATOMIC + 1);

		t->dest_qpn = qp[!i]->t.qpn;
		qp[!i]->t.max_rd_atomic = rnd() & 1 ? res : below(res + 1);
		env_reset_queues(qp[i]);
		rove_tqp_reset(t);
		if (t->state != ROVE_TQP_RESET)
			sim_fail(qp[i], "state %d after reset", t->state);
		rove_tqp_max_res(t, res);
		t->state = ROVE_TQP_INIT;
	}
	for (i = 0; i < 2; i++) {
		rove_tqp_start_responder(&qp[i]->t, psn[!i]);
		qp[i]->sq_psn = psn[i];
		if (qp[i]->gbn)
			gbn_connect(qp[i], psn[i], psn[!i]);
		trace(qp[i], "connected: qpn %06x mtu %u psn %06x window %u depth %u/%u "
		      "rd %u/%u timeout %u retry %u rnr %u/%u%s",
		      qp[i]->t.qpn, mtu, psn[i], qp[i]->t.req.window,
		      qp[i]->sq_depth, qp[i]->rq_depth, qp[i]->t.max_rd_atomic,
		      qp[i]->t.resp.max_res, qp[i]->t.timeout, qp[i]->t.retry_cnt,
		      qp[i]->t.rnr_retry, qp[i]->t.min_rnr_timer,
		      qp[i]->count_credits ? " credits" : "");
	}
}

/* RTR to RTS: the peer may have been there, and busy, for a while. */
void user_ready(struct sim_qp *qp)
{
	if (qp->t.state != ROVE_TQP_RTR)
		return;
	if (qp->event[ROVE_EVENT_COMM_EST] > 1)
		sim_fail(qp, "COMM_EST %u times", qp->event[ROVE_EVENT_COMM_EST]);
	trace(qp, "is ready to send");
	rove_tqp_start_requester(&qp->t, qp->sq_psn);
	env_schedule_user(qp, 0);
}

void user_start(struct sim_qp *qp)
{
	new_target(qp);
	env_schedule_user(qp, below(10000));
	event_add(sim.now + (rnd() & 1 ? 0 : below(100000)), EV_RTS, qp->epoch, qp);
}

void user_free(struct sim_qp *qp)
{
	u64 i;

	for (i = 0; i < WRS; i++)
		free(qp->wr[i].snap);
	env_free_buffers(qp);
	free(qp->send_mem.mem);
	free(qp->recv_mem.mem);
	free(qp->tmem);
	free(qp->tshadow);
	free(qp->gbn);
	net_discard(qp);
	free(qp);
}

/* ---- receives ---- */

/* Lay a receive request of @need bytes out; false when memory is full. */
static bool fill_recv(struct rr *rr, struct rove_recv_wqe *wqe, struct arena *mem,
		      const struct mr *mr, u32 max_sge, u32 need)
{
	u32 i;
	int n;

	memset(rr, 0, sizeof(*rr));
	n = arena_sges(mem, need, max_sge, rr->off, rr->sge_len);
	if (n < 0)
		return false;
	rr->nsge = n;
	rr->total = need;
	rr->mem = mem->mem;
	rr->arena_end = mem->head;
	if (chance(sim.sc->bad / 4))
		rr->bad = need && rnd() & 1 ? BAD_RECV_LKEY : BAD_RECV_NUM_SGE;
	wqe->num_sge = n;
	if (rr->bad == BAD_RECV_NUM_SGE)
		wqe->num_sge = max_sge + 1 + below(rnd() & 1 ? 4 : U32_MAX / 2);
	for (i = 0; i < rr->nsge; i++)
		wqe->sge[i] = (struct rove_sge) {
			.addr = mr->va + rr->off[i],
			.length = rr->sge_len[i],
			.lkey = rr->bad == BAD_RECV_LKEY ? mr->key ^ 1 : mr->key,
		};
	return true;
}

/* Whoever gets it, it is long enough. */
static bool post_srq_recv(struct sim_srq *srq)
{
	struct rove_recv_wqe *wqe = env_srq_slot(srq);
	struct rr *rr = &srq->rr[srq->posted % WRS];

	if (!wqe || srq->posted - srq->freed >= WRS - 1 ||
	    !fill_recv(rr, wqe, &srq->mem, srq->mr, srq->max_sge,
		       srq->need + below(64)))
		return false;
	rr->srq_idx = srq->posted;
	rr->wr_id = mix((uintptr_t)srq->depth + 99) << 32 | (u32)srq->posted;
	wqe->wr_id = rr->wr_id;
	srq->polled[srq->posted % WRS] = false;
	srq->posted++;
	srq->prod++;
	trace(NULL, "posts shared receive %llx of %u", rr->wr_id, rr->total);
	return true;
}

static bool post_recv(struct sim_qp *qp)
{
	struct sim_qp *peer = qp->peer;
	struct rove_recv_wqe *wqe;
	struct rr *rr = rr_at(qp, qp->r_posted);
	u32 need = 0;

	if (qp->srq)
		return post_srq_recv(qp->srq);
	wqe = env_rq_slot(qp);
	if (!wqe || qp->r_posted - qp->r_polled >= WRS - 1)
		return false;
	if (qp->r_posted < peer->recv_seq) {
		/* The SEND is known: fit it, often exactly. */
		struct wr *wr = wr_at(peer, peer->expect[qp->r_posted % WRS]);

		if (wr->op != ROVE_WR_RDMA_WRITE_WITH_IMM)
			need = wr->len;
		if (rnd() & 1)
			need += below(64);
	} else {
		need = rnd() & 1 ? below(100) : below(qp->max_send + 1);
		if (sim.sc->bulk && below(8))
			need = min(512U, qp->max_send);
	}
	if (!fill_recv(rr, wqe, &qp->recv_mem, qp->mr_recv, qp->t.max_sge_recv, need))
		return false;
	rr->wr_id = mix(qp->epoch * MAX_QPS + qp->idx + 77) << 32 | (u32)qp->r_posted;
	wqe->wr_id = rr->wr_id;
	qp->rq_prod++;
	qp->r_posted++;
	trace(qp, "posts receive %llx of %u in %u", rr->wr_id, need, rr->nsge);
	return true;
}

/* ---- sends ---- */

static u32 pick_len(const struct sim_qp *qp, u32 max)
{
	u32 mtu = qp->t.mtu, len;

	switch (below(32)) {
	case 0 ... 1:
		len = 0;
		break;
	case 2 ... 20:
		len = below(65);
		break;
	case 21 ... 25:
		len = below(600);
		break;
	case 26:
		len = mtu * between(1, 5) - 1 + below(3);
		break;
	case 27 ... 28:
		len = below(mtu + 1);
		break;
	case 29 ... 30:
		len = below(4 * mtu);
		break;
	default:
		len = below(max + 1);
	}
	return min(len, max);
}

static u8 pick_op(const struct sim_qp *qp)
{
	static const u8 op[64] = {
		[0 ... 7] = ROVE_WR_SEND,
		[8 ... 9] = ROVE_WR_ATOMIC_WRITE,
		[10 ... 14] = ROVE_WR_SEND_WITH_IMM,
		[15 ... 17] = ROVE_WR_SEND_WITH_INV,
		[18 ... 32] = ROVE_WR_RDMA_WRITE,
		[33 ... 37] = ROVE_WR_RDMA_WRITE_WITH_IMM,
		[38 ... 50] = ROVE_WR_RDMA_READ,
		[51 ... 55] = ROVE_WR_ATOMIC_CMP_AND_SWP,
		[56 ... 61] = ROVE_WR_ATOMIC_FETCH_AND_ADD,
		[62] = ROVE_WR_LOCAL_INV,
		[63] = ROVE_WR_BIND_MW,
	};

	return op[below(64)];
}

/* Does an unfinished READ read what @wr will change? */
static bool needs_fence(struct sim_qp *qp, const struct wr *wr)
{
	u64 i;

	if (wr->op == ROVE_WR_SEND_WITH_INV)
		return qp->talias_read > qp->done;
	if (!wr->len || wr->op == ROVE_WR_RDMA_READ || is_send(wr->op))
		return false;
	for (i = qp->done; i < qp->posted; i++) {
		const struct wr *r = wr_at(qp, i);

		if (r->op == ROVE_WR_RDMA_READ && r->toff < wr->toff + wr->len &&
		    wr->toff < r->toff + r->len)
			return true;
	}
	return false;
}

#define S(status)	(1U << ROVE_WC_##status)

/*
 * Make a valid work request invalid, if it lends itself to it.  @wqe is
 * changed, @wr gets to know what completion is right.
 */
static void spoil(struct sim_qp *qp, struct wr *wr, struct rove_send_wqe *wqe)
{
	bool rd = is_rd(wr->op), write = is_write(wr->op);
	enum bad_kind bad = between(1, BAD_KINDS - 1);
	u32 i;

	for (i = 0; i < wr->nsge && !wr->sge_len[i]; i++)
		;
	switch (bad) {
	case BAD_LKEY:
		if (i == wr->nsge)
			return;
		wqe->sge[i].lkey ^= 0x3000000;
		wr->expect = S(LOC_PROT_ERR);
		break;
	case BAD_LKEY_RO:
		if (!rd || i == wr->nsge)
			return;
		wqe->sge[i].lkey = qp->mr_ro->key;
		wr->expect = S(LOC_PROT_ERR);
		break;
	case BAD_RKEY:
		if (!(rd || write) || !wr->len)
			return;
		wqe->rkey ^= 1U << below(32);
		wr->expect = S(REM_ACCESS_ERR);
		break;
	case BAD_RANGE:
		if (!(rd || write) || !wr->len)
			return;
		wqe->remote_addr = qp->mr_target->va + qp->tsize - wr->len + 1;
		if (wr->op == ROVE_WR_ATOMIC_WRITE || is_atomic(wr->op))
			wqe->remote_addr = (qp->mr_target->va + qp->tsize) & ~7ULL;
		wr->expect = S(REM_ACCESS_ERR);
		break;
	case BAD_WRAP:
		if (!(rd || write) || wr->len < 2 || is_atomic(wr->op) ||
		    wr->op == ROVE_WR_ATOMIC_WRITE)
			return;
		wqe->remote_addr = -(u64)between(1, wr->len - 1);
		wr->expect = S(REM_ACCESS_ERR);
		break;
	case BAD_RIGHTS:
		if (!(rd || write) || !wr->len)
			return;
		wqe->rkey = qp->mr_noright->key;
		wr->expect = S(REM_ACCESS_ERR);
		break;
	case BAD_QP_RIGHTS:
		if (!(rd || write))
			return;
		qp->peer->t.access = 0;
		wr->expect = S(REM_ACCESS_ERR) | S(REM_INV_REQ_ERR);
		break;
	case BAD_ALIGN:
		if (!is_atomic(wr->op) && wr->op != ROVE_WR_ATOMIC_WRITE)
			return;
		wqe->remote_addr += between(1, 7);
		wr->expect = S(REM_INV_REQ_ERR);
		break;
	case BAD_OPCODE:
		i = between(10, 255);
		/* a kernel consumer's, and one that could be right */
		if (i == ROVE_WR_REG_MR || i == ROVE_WR_ATOMIC_WRITE)
			return;
		wqe->opcode = i;
		wr->expect = S(LOC_QP_OP_ERR);
		break;
	case BAD_NUM_SGE:
		if (wr->flags & ROVE_WR_INLINE || is_local(wr->op))
			return;
		wqe->num_sge = qp->t.max_sge_send + between(1, 60000);
		wr->expect = S(LOC_QP_OP_ERR);
		break;
	case BAD_INLINE:
		if (is_local(wr->op))
			return;
		wqe->flags |= ROVE_WR_INLINE;
		wqe->num_sge = 0;
		wqe->inline_len = rnd() & 1 ? U32_MAX - below(64) :
				  qp->t.max_inline + 1;
		wr->expect = S(LOC_QP_OP_ERR) | S(LOC_LEN_ERR);
		break;
	case BAD_LENGTH:
		if (!wr->nsge || is_local(wr->op))
			return;
		if (is_atomic(wr->op)) {
			wqe->sge[0].length = 0;
			wqe->num_sge = 1;
			wqe->sge[0].length = below(8);
		} else if (wr->nsge > 1 && rnd() & 1) {
			/* The sum is 2^32: zero in 32 bits. */
			wqe->num_sge = 2;
			wqe->sge[0].length = 1U << 31;
			wqe->sge[1].length = 1U << 31;
		} else {
			wqe->num_sge = 1;
			wqe->sge[0].length = ROVE_MAX_MSG + 1;
		}
		wr->expect = S(LOC_LEN_ERR);
		break;
	case BAD_INV_KEY:
		if (wr->op != ROVE_WR_SEND_WITH_INV)
			return;
		wqe->invalidate_rkey ^= 1U << below(32);
		wr->expect = S(REM_INV_REQ_ERR) | S(REM_ACCESS_ERR) | S(REM_OP_ERR);
		break;
	case BAD_LOCAL_INV:
		if (wr->op != ROVE_WR_LOCAL_INV)
			return;
		wqe->invalidate_rkey ^= 1U << below(32);
		wr->expect = S(MW_BIND_ERR);
		break;
	case BAD_BIND:
		if (wr->op != ROVE_WR_BIND_MW)
			return;
		wr->expect = S(MW_BIND_ERR);
		break;
	default:
		return;
	}
	wr->bad = bad;
	trace(qp, "  spoilt: kind %d", bad);
}

/* A SEND one byte longer than the receive that waits for it. */
static bool too_long(struct sim_qp *qp, struct wr *wr)
{
	struct sim_qp *peer = qp->peer;
	struct rr *rr = rr_at(peer, qp->recv_seq);

	if (!is_send(wr->op) || !chance(sim.sc->bad) ||
	    qp->recv_seq >= peer->r_posted || rr->bad ||
	    rr->total >= qp->peer->max_send)
		return false;
	wr->len = rr->total + 1;
	wr->bad = BAD_TOO_LONG;
	wr->expect = S(REM_INV_REQ_ERR);
	return true;
}

/* Choose operation, length and target. */
static void choose(struct sim_qp *qp, struct wr *wr)
{
	struct sim_qp *peer = qp->peer;
	bool have_recv = qp->recv_seq < peer->r_posted;
	/* Many of a sort in a row are what fills super-packets. */
	struct wr *like = sim.sc->bulk && qp->posted && below(32) ?
			  wr_at(qp, qp->posted - 1) : NULL;

	wr->op = like ? like->op : pick_op(qp);
	if (takes_recv(wr->op) && !have_recv &&
	    (!sim.sc->rnr || qp->recv_seq - peer->r_done >= WRS / 2))
		wr->op = ROVE_WR_RDMA_WRITE;
	if (is_answered(wr->op) && !qp->t.max_rd_atomic)
		wr->op = ROVE_WR_RDMA_WRITE;
	if (wr->op == ROVE_WR_SEND_WITH_INV && qp->key_pulled)
		wr->op = ROVE_WR_SEND;

	if (is_local(wr->op)) {
		wr->len = 0;
	} else if (is_send(wr->op)) {
		u32 room = have_recv ? rr_at(peer, qp->recv_seq)->total :
				       peer->max_send;

		if (!too_long(qp, wr))
			wr->len = like ? min(like->len, room) : pick_len(qp, room);
	} else if (is_atomic(wr->op) || wr->op == ROVE_WR_ATOMIC_WRITE) {
		wr->len = 8;
		wr->toff = below(qp->tsize - 15);
		wr->toff += -(qp->mr_target->va + wr->toff) & 7;
		wr->compare_add = rnd();
		wr->swap = rnd();
		if (rnd() & 1)	/* likely to be equal */
			memcpy(&wr->compare_add, qp->tshadow + wr->toff, 8);
	} else {
		wr->len = like ? like->len : pick_len(qp, sim.sc->max_len);
		wr->toff = below(qp->tsize - wr->len + 1);
	}
}

/* Inline bytes, or SGEs with the payload in them; false when memory is full. */
static bool lay_out(struct sim_qp *qp, struct wr *wr, struct rove_send_wqe *wqe)
{
	u32 i, done = 0;
	int n;

	wr->seed = rnd();
	if (!is_rd(wr->op) && !is_local(wr->op) &&
	    wr->len <= qp->t.max_inline && rnd() & 1) {
		wr->flags |= ROVE_WR_INLINE;
		wqe->inline_len = wr->len;
		fill((u8 *)wqe->sge, wr->len, wr->seed);
		return true;
	}
	n = arena_sges(&qp->send_mem, wr->len, qp->t.max_sge_send, wr->off,
		       wr->sge_len);
	if (n < 0)
		return false;
	wr->nsge = n;
	wqe->num_sge = n;
	if (n && !is_rd(wr->op))
		fill(scratch, wr->len, wr->seed);
	for (i = 0; i < wr->nsge; i++) {
		struct mr *mr = below(3) ? qp->mr_local :
				!is_rd(wr->op) && rnd() & 1 ? qp->mr_ro : qp->mr_alias;

		if (!is_rd(wr->op))
			memcpy(qp->send_mem.mem + wr->off[i], scratch + done,
			       wr->sge_len[i]);
		done += wr->sge_len[i];
		wqe->sge[i] = (struct rove_sge) {
			.addr = mr->va + wr->off[i],
			.length = wr->sge_len[i],
			.lkey = mr->key,
		};
	}
	return true;
}

/* The keys named; one that is to be invalidated is not named any more. */
static void use_keys(struct sim_qp *qp, struct wr *wr, struct rove_send_wqe *wqe)
{
	wr->rkey = qp->key_pulled || below(3) ? qp->mr_target->key :
						qp->mr_talias->key;
	if (wr->rkey == qp->mr_talias->key && wr->op == ROVE_WR_RDMA_READ)
		qp->talias_read = qp->posted + 1;
	wqe->rkey = wr->rkey;
	wqe->srqn = SIM_SRQN;
	wr->imm = rnd();
	wqe->imm_data = wr->imm;
	if (wr->op == ROVE_WR_LOCAL_INV) {
		wr->inv_key = qp->mr_alias->key;
		wqe->invalidate_rkey = wr->inv_key;
		new_alias(qp);
	} else if (wr->op == ROVE_WR_SEND_WITH_INV) {
		wr->inv_key = qp->mr_talias->key;
		wqe->invalidate_rkey = wr->inv_key;
		qp->mr_talias = mr_add(qp->peer, qp->mr_target->va, qp->tmem,
				       qp->tsize, REMOTE_RIGHTS);
		qp->talias_read = 0;
	}
}

/*
 * Signalled often enough that memory and slots come back; unsignalled often
 * enough to try what that means.
 */
static void choose_flags(struct sim_qp *qp, struct wr *wr, bool last)
{
	u64 silent = qp->posted - qp->last_signaled;

	if (needs_fence(qp, wr) || !below(sim.sc->bulk ? 200 : 12))
		wr->flags |= ROVE_WR_FENCE;
	if (!below(4))
		wr->flags |= ROVE_WR_SOLICITED;
	if (last || below(3) || silent >= 24 || silent >= qp->sq_depth / 2)
		wr->flags |= ROVE_WR_SIGNALED;
	wr->signaled = wr->flags & ROVE_WR_SIGNALED || qp->t.sq_sig_all;
}

/* Post a request; @last: one that is sure to complete with an entry. */
static bool post_send(struct sim_qp *qp, bool last)
{
	struct rove_send_wqe *wqe = env_sq_slot(qp);
	struct wr *wr = wr_at(qp, qp->posted);

	if (!wqe || qp->posted - qp->polled >= WRS - 1)
		return false;
	free(wr->snap);
	memset(wr, 0, sizeof(*wr));
	memset(wqe, 0, sizeof(*wqe));
	if (last)
		wr->op = ROVE_WR_RDMA_WRITE;
	else
		choose(qp, wr);
	if (!lay_out(qp, wr, wqe))
		return false;
	choose_flags(qp, wr, last);
	use_keys(qp, wr, wqe);
	if (takes_recv(wr->op)) {
		wr->recv_idx = qp->recv_seq;
		qp->expect[qp->recv_seq++ % WRS] = qp->posted;
	}
	wr->arena_end = qp->send_mem.head;
	wr->wr_id = mix(qp->epoch * MAX_QPS + qp->idx) << 32 | (u32)qp->posted;

	wqe->wr_id = wr->wr_id;
	wqe->opcode = wr->op;
	wqe->flags = wr->flags;
	wqe->remote_addr = qp->mr_target->va + wr->toff;
	wqe->compare_add = wr->compare_add;
	wqe->swap = wr->swap;
	if (!wr->bad && !last && chance(sim.sc->bad))
		spoil(qp, wr, wqe);
	trace(qp, "posts %llx op %u flags %x len %u toff %u sges %u%s", wr->wr_id,
	      wr->op, wr->flags, wr->len, wr->toff, wr->nsge,
	      wr->bad ? " BAD" : "");
	qp->sq_prod++;
	qp->posted++;
	stats.wrs++;
	if (wr->signaled)
		qp->last_signaled = qp->posted;
	return true;
}

/* ---- the program's main loop ---- */

/* Take what has completed: its memory may be used for something else now. */
static void poll(struct sim_qp *qp)
{
	while (qp->polled < qp->done) {
		struct wr *wr = wr_at(qp, qp->polled);
		u32 i;

		/* What is sent from now on from here is wrong. */
		for (i = 0; i < wr->nsge; i++)
			memset(qp->send_mem.mem + wr->off[i], 0xdd,
			       min(wr->sge_len[i], 2048U));
		qp->send_mem.tail = wr->arena_end;
		qp->polled++;
	}
	while (qp->r_polled < qp->r_done) {
		struct rr *rr = rr_at(qp, qp->r_polled++);

		if (!qp->srq) {
			qp->recv_mem.tail = rr->arena_end;
			continue;
		}
		/* Others may be done earlier or later than they were posted. */
		qp->srq->polled[rr->srq_idx % WRS] = true;
		while (qp->srq->freed < qp->srq->posted &&
		       qp->srq->polled[qp->srq->freed % WRS])
			qp->srq->mem.tail = qp->srq->rr[qp->srq->freed++ % WRS].arena_end;
	}
}

static void misbehave(struct sim_qp *qp)
{
	switch (below(8)) {
	case 0:
		trace(qp, "sends into a black hole");
		qp->blackhole = true;
		qp->peer->blackhole = true;
		break;
	case 1:
		trace(qp, "pulls its key");
		qp->peer->key_pulled = true;
		qp->peer->mr_target->valid = false;
		qp->peer->mr_talias->valid = false;
		break;
	case 2:
		trace(qp, "breaks its send ring");
		qp->sq_broken = true;
		env_doorbell(qp, 0);
		break;
	case 3:
		if (qp->srq)
			break;
		trace(qp, "breaks its receive ring");
		qp->rq_broken = true;
		break;
	case 4:
		user_kill(qp);
		break;
	case 5:
		trace(qp, "pulls its local key");
		qp->local_pulled = true;
		qp->mr_local->valid = false;
		break;
	case 6:
		if (qp->srq)
			break;
		trace(qp, "pulls the key of its receives");
		qp->recv_pulled = true;
		qp->mr_recv->valid = false;
		break;
	}
}

static bool may_post(const struct sim_qp *qp)
{
	return sim.posting && sim.quota && !qp->dead && !qp->t.target &&
	       qp->t.state >= ROVE_TQP_RTS;
}

static void drain(struct sim_qp *qp)
{
	trace(qp, "drains");
	qp->draining = true;
	qp->drained = false;
	qp->drain_emitted = qp->posted - (qp->sq_prod - qp->sq_fetched);
	stats.drains++;
	rove_tqp_drain(&qp->t);
	/* As if another had been set: what is under way is timed anew. */
	if (qp->t.service == ROVE_SVC_RC)
		rove_tqp_retime(&qp->t, sim.now);
}

static bool wants_recv(const struct sim_qp *qp)
{
	if (qp->srq)
		return qp->srq->prod - qp->srq->fetched < qp->rq_level;
	return qp->r_posted - qp->r_done < qp->rq_level;
}

void user_run(struct sim_qp *qp)
{
	const struct scenario *sc = sim.sc;
	u32 n, posted = 0;
	bool stuck = false;

	if (sim.stopped)
		return;
	if (rnd() & 3)
		poll(qp);
	if (qp->dead)
		return;

	if (chance(sc->starve) && sim.now >= qp->starve_until)
		qp->starve_until = sim.now + below(3 * NS_PER_MS);
	if (sim.now >= qp->starve_until) {
		for (n = between(1, 16); n && wants_recv(qp); n--)
			if (!post_recv(qp))
				break;
	}
	for (n = between(1, sc->bulk ? 64 : 16); n && may_post(qp); n--) {
		if (!post_send(qp, false)) {
			stuck = qp->last_signaled != qp->posted;
			break;
		}
		sim.quota -= sim.quota > 0;	/* it may have ended meanwhile */
		posted++;
	}
	/* Without one more signalled request nobody would tell us to go on. */
	if ((stuck || !sim.quota) && qp->last_signaled != qp->posted &&
	    post_send(qp, true)) {
		posted++;
		stuck = false;
	}
	if (chance(sc->bad / 8))
		misbehave(qp);
	if (qp->dead)
		return;
	/* No doorbell when the transport says that it will look by itself. */
	if (posted && rnd() & 1 && rove_tqp_waits(&qp->t))
		trace(qp, "leaves the doorbell alone");
	else if (posted && rnd() & 1)
		tqp_send(qp);
	else if (posted || !below(16))	/* a look at the ring does no harm */
		env_doorbell(qp, below(5000));
	if (qp->t.state == ROVE_TQP_RTS && !qp->gbn && chance(sc->drain))
		drain(qp);
	if (posted || qp->polled < qp->done || qp->r_polled < qp->r_done)
		env_schedule_user(qp, between(200, 3000));
	else if (sim.now < qp->starve_until)
		env_schedule_user(qp, qp->starve_until - sim.now);
	else if (stuck)
		env_schedule_user(qp, 20000);
}

/* ---- errors ---- */

/* One end has failed: give the other time to notice, then start again. */
void user_failed(struct sim_qp *qp)
{
	struct sim_qp *a = qp->idx & 1 ? qp->peer : qp;

	if (sim.stopped || sim.sc->run)
		return;
	qp->dead = true;
	if (a->recycling)
		return;
	a->recycling = true;
	event_add(sim.now + below(40 * NS_PER_MS), EV_RECYCLE, a->epoch, a);
}

void user_kill(struct sim_qp *qp)
{
	if (qp->t.state == ROVE_TQP_ERR)
		return;
	trace(qp, "moves to the error state");
	qp->killed = true;
	rove_tqp_error(&qp->t);
}

void user_event(struct sim_qp *qp, enum rove_tqp_event event)
{
	qp->event[event]++;
	switch (event) {
	case ROVE_EVENT_SQ_DRAINED:
		if (!qp->draining || qp->drained || qp->t.state != ROVE_TQP_SQD)
			sim_fail(qp, "SQ_DRAINED out of turn");
		if (qp->sq_released != qp->sq_fetched)
			sim_fail(qp, "SQ_DRAINED with work begun and not complete");
		qp->drained = true;
		event_add(sim.now + below(NS_PER_MS), EV_RESUME, qp->epoch, qp);
		break;
	case ROVE_EVENT_QP_FATAL:
	case ROVE_EVENT_QP_REQ_ERR:
	case ROVE_EVENT_QP_ACCESS_ERR:
		if (!sim.sc->bad && !sim.sc->run)
			sim_fail(qp, "fatal event %d", event);
		qp->killed = true;
		break;
	case ROVE_EVENT_COMM_EST:
		if (qp->t.state != ROVE_TQP_RTR)
			sim_fail(qp, "COMM_EST in state %d", qp->t.state);
		break;
	default:
		break;
	}
}

/* Everything posted must have come back; then a new connection. */
void user_recycle(struct sim_qp *a)
{
	struct sim_qp *qp[2] = { a, a->peer };
	u32 i, n;

	stats.errors++;
	for (i = 0; i < 2; i++) {
		user_kill(qp[i]);
		poll(qp[i]);
		/* Posts to a QP in the error state are flushed too. */
		for (n = below(4); n && !qp[i]->sq_broken && !qp[i]->t.target; n--)
			post_send(qp[i], false);
		for (n = below(4); n && qp[i]->rq_level && !qp[i]->rq_broken; n--)
			post_recv(qp[i]);
		rove_tqp_flush(&qp[i]->t);
	}
	for (i = 0; i < 2; i++)
		model_after_error(qp[i]);
	for (i = 0; i < 2; i++) {
		poll(qp[i]);
		qp[i]->epoch++;
		qp[i]->dead = false;
		qp[i]->killed = false;
		qp[i]->recycling = false;
		qp[i]->draining = false;
		qp[i]->drained = false;
		qp[i]->sq_error = false;
		qp[i]->rq_error = false;
		qp[i]->local_pulled = false;
		qp[i]->recv_pulled = false;
		qp[i]->mr_local->valid = true;
		qp[i]->mr_recv->valid = true;
		qp[i]->starve_until = 0;
		qp[i]->last_signaled = qp[i]->posted;
		memset(qp[i]->event, 0, sizeof(qp[i]->event));
	}
	user_connect(a);
	for (i = 0; i < 2; i++) {
		if (qp[i]->mr_alias)
			new_alias(qp[i]);
		user_start(qp[i]);
	}
}
