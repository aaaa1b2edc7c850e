// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * env.c - what the transport asks of the world (env.h), simulated
 *
 * Each function also checks that the transport may ask this now.
 */
#include "sim.h"

/* ---- memory regions ---- */

static struct mr **mrs;
static u32 nmrs, mrs_room;

struct mr *mr_add(struct sim_qp *owner, u64 va, u8 *mem, u64 len, u32 access)
{
	struct mr *mr = calloc(1, sizeof(*mr));

	if (nmrs == mrs_room) {
		mrs_room = mrs_room ? mrs_room * 2 : 256;
		mrs = realloc(mrs, mrs_room * sizeof(*mrs));
	}
	/* 0 is nobody's. */
	mr->key = (nmrs << 8 | (rnd() & 0xff)) ?: 1;
	mr->access = access;
	mr->valid = true;
	mr->owner = owner;
	mr->va = va;
	mr->len = len;
	mr->mem = mem;
	mrs[nmrs++] = mr;
	return mr;
}

struct mr *mr_find(const struct sim_qp *owner, u32 key)
{
	struct mr *mr = key >> 8 < nmrs ? mrs[key >> 8] : NULL;

	return mr && mr->key == key && mr->valid &&
	       (mr->owner == owner || (mr->srq && mr->srq == owner->srq)) ? mr : NULL;
}

struct mr *mr_check(const struct sim_qp *owner, u32 key, u64 va, u64 len,
		    u32 access)
{
	struct mr *mr = mr_find(owner, key);

	if (!mr || (access & ~mr->access) || va < mr->va ||
	    va - mr->va > mr->len || len > mr->len - (va - mr->va))
		return NULL;
	return mr;
}

u8 *mr_range(const struct sim_qp *owner, u32 key, u64 va, u64 len, u32 access)
{
	struct mr *mr = mr_check(owner, key, va, len, access);

	return mr ? mr->mem + (va - mr->va) : NULL;
}

void mr_clear(void)
{
	while (nmrs)
		free(mrs[--nmrs]);
}

/* ---- buffers that the environment lends to the transport ---- */

void env_setup_buffers(struct sim_qp *qp)
{
	struct rove_tqp *t = &qp->t;
	u32 room = max(t->max_sge_send * (u32)sizeof(struct rove_sge), t->max_inline);

	room = round_up(room, 16);
	qp->sq_stride = sizeof(struct rove_send_wqe) + room;
	qp->rq_stride = sizeof(struct rove_recv_wqe) +
			t->max_sge_recv * sizeof(struct rove_sge);
	qp->sq = malloc((size_t)qp->sq_depth * qp->sq_stride);
	qp->rq = malloc((size_t)qp->rq_depth * qp->rq_stride);

	t->req.depth = qp->sq_depth;
	t->req.stride = sizeof(struct rove_swqe) + room;
	t->req.ring = calloc(t->req.depth, t->req.stride);
	t->resp.rwqe.sge = calloc(t->max_sge_recv, sizeof(struct rove_sge));
	t->resp.res = calloc(ROVE_MAX_RD_ATOMIC, sizeof(*t->resp.res));
	t->resp.replies = calloc(ROVE_MAX_RD_ATOMIC, sizeof(*t->resp.replies));
}

void env_free_buffers(struct sim_qp *qp)
{
	free(qp->sq);
	free(qp->rq);
	free(qp->t.req.ring);
	free(qp->t.resp.rwqe.sge);
	free(qp->t.resp.res);
	free(qp->t.resp.replies);
}

void env_reset_queues(struct sim_qp *qp)
{
	/* Free-running indices, so start them just below their wrap too. */
	qp->sq_prod = qp->sq_fetched = qp->sq_released = -between(0, 100);
	qp->rq_prod = qp->rq_fetched = -between(0, 100);
	qp->sq_broken = false;
	qp->rq_broken = false;
	qp->timer_at = ROVE_NO_DEADLINE;
	qp->timer_ev = ROVE_NO_DEADLINE;
	qp->ack_owed = false;
	qp->send_owed = false;
	qp->user_owed = false;
	qp->rnr_armed = false;
	qp->blackhole = false;
	qp->absent = false;
}

/* ---- queues ---- */

struct rove_send_wqe *env_sq_slot(struct sim_qp *qp)
{
	if (qp->sq_prod - qp->sq_released >= qp->sq_depth)
		return NULL;
	return (void *)(qp->sq + (size_t)(qp->sq_prod & (qp->sq_depth - 1)) *
			qp->sq_stride);
}

struct rove_recv_wqe *env_rq_slot(struct sim_qp *qp)
{
	if (qp->rq_prod - qp->rq_fetched >= qp->rq_depth)
		return NULL;
	return (void *)((u8 *)qp->rq + (size_t)(qp->rq_prod & (qp->rq_depth - 1)) *
			qp->rq_stride);
}

struct rove_recv_wqe *env_srq_slot(struct sim_srq *srq)
{
	if (srq->prod - srq->fetched >= srq->depth)
		return NULL;
	return (void *)(srq->ring + (size_t)(srq->prod & (srq->depth - 1)) *
			srq->stride);
}

int rove_env_sq_fetch(struct rove_tqp *t, struct rove_swqe *w)
{
	struct sim_qp *qp = to_qp(t);
	u8 *slot;

	if (qp->sq_broken)
		return -EINVAL;
	if (qp->sq_fetched == qp->sq_prod)
		return 0;
	slot = qp->sq + (size_t)(qp->sq_fetched++ & (qp->sq_depth - 1)) *
	       qp->sq_stride;
	memcpy(&w->wqe, slot, qp->sq_stride);
	/* A program may write here at any time: only the copy counts. */
	memset(slot, 0x5a, qp->sq_stride);
	return 1;
}

bool rove_env_sq_pending(struct rove_tqp *t)
{
	struct sim_qp *qp = to_qp(t);

	return qp->sq_fetched != qp->sq_prod;
}

void rove_env_sq_release(struct rove_tqp *t)
{
	struct sim_qp *qp = to_qp(t);

	if (qp->sq_fetched == qp->sq_released)
		sim_fail(qp, "released a send slot that was not fetched");
	qp->sq_released++;
}

static void take_recv(struct rove_tqp *t, struct rove_rwqe *w,
		      struct rove_recv_wqe *wqe, u32 stride)
{
	u32 i;

	w->wr_id = wqe->wr_id;
	w->num_sge = wqe->num_sge;
	w->length = 0;
	for (i = 0; wqe->num_sge <= t->max_sge_recv && i < wqe->num_sge; i++) {
		w->sge[i] = wqe->sge[i];
		w->length += wqe->sge[i].length;
	}
	memset(wqe, 0x5a, stride);
}

/* Who takes it has it: the model knows it as that QP's from now on. */
static int srq_fetch(struct sim_qp *qp, struct rove_rwqe *w)
{
	struct sim_srq *srq = qp->srq;

	if (srq->fetched == srq->prod) {
		/* Nobody else may be awake to post. */
		env_schedule_user(qp, below(20000));
		return 0;
	}
	if (qp->t.state == ROVE_TQP_ERR)
		sim_fail(qp, "takes from a shared queue in the error state");
	*rr_at(qp, qp->r_posted++) = srq->rr[(srq->posted - (srq->prod - srq->fetched)) % WRS];
	take_recv(&qp->t, w, (void *)(srq->ring + (size_t)(srq->fetched++ &
				(srq->depth - 1)) * srq->stride), srq->stride);
	return 1;
}

int rove_env_rq_fetch(struct rove_tqp *t, struct rove_rwqe *w)
{
	struct sim_qp *qp = to_qp(t);

	if (qp->srq)
		return srq_fetch(qp, w);
	if (qp->rq_broken)
		return -EINVAL;
	if (qp->rq_fetched == qp->rq_prod)
		return 0;
	take_recv(t, w, (void *)((u8 *)qp->rq + (size_t)(qp->rq_fetched++ &
				(qp->rq_depth - 1)) * qp->rq_stride), qp->rq_stride);
	return 1;
}

u32 rove_env_rq_credits(struct rove_tqp *t)
{
	struct sim_qp *qp = to_qp(t);

	return qp->count_credits && !qp->srq ? qp->rq_prod - qp->rq_fetched : ROVE_NO_CREDITS;
}

/* What no completion says, whatever it is of. */
static void check_cqe(const struct sim_qp *qp, const struct rove_cqe *cqe, bool recv)
{
	static const u32 nak[] = {
		[ROVE_WC_REM_INV_REQ_ERR] = 0x61,
		[ROVE_WC_REM_ACCESS_ERR] = 0x62,
		[ROVE_WC_REM_OP_ERR] = 0x63,
	};
	u32 want = !recv && cqe->status < ARRAY_SIZE(nak) ? nak[cqe->status] : 0;

	if (cqe->vendor_err != want)
		sim_fail(qp, "vendor_err %x with status %u", cqe->vendor_err, cqe->status);
	if (cqe->status && cqe->byte_len && (recv || cqe->status == ROVE_WC_LOC_LEN_ERR))
		sim_fail(qp, "%u bytes with status %u", cqe->byte_len, cqe->status);
	if (cqe->status && cqe->wc_flags)
		sim_fail(qp, "flags %x with status %u", cqe->wc_flags, cqe->status);
}

void rove_env_complete(struct rove_tqp *t, struct rove_cqe *cqe, bool recv,
		       bool solicited)
{
	struct sim_qp *qp = to_qp(t);

	cqe->qp_num = t->qpn;
	check_cqe(qp, cqe, recv);
	trace(qp, "%s completion %llx status %u opcode %u len %u flags %x",
	      recv ? "recv" : "send", (u64)cqe->wr_id, cqe->status, cqe->opcode,
	      cqe->byte_len, cqe->wc_flags);
	sim.last_progress = sim.now;
	sim.events_since = 0;
	if (qp->on_cqe) {
		qp->on_cqe(qp, cqe, recv, solicited);
		return;
	}
	model_cqe(qp, cqe, recv, solicited);
	env_schedule_user(qp, below(5000));
}

/* ---- packets ---- */

void env_doorbell(struct sim_qp *qp, u64 delay)
{
	if (!qp->send_owed) {
		qp->send_owed = true;
		event_add(sim.now + delay, EV_SEND, qp->epoch, qp);
	}
}

void env_schedule_user(struct sim_qp *qp, u64 delay)
{
	if (!qp->user_owed) {
		qp->user_owed = true;
		event_add(sim.now + delay, EV_USER, qp->epoch, qp);
	}
}

/* May the payload of a request be read? */
static bool readable(struct sim_qp *qp, const struct rove_burst *b)
{
	const struct rove_send_wqe *wqe = &b->wqe->wqe;
	u64 offset = b->offset, left = b->length;
	u32 i;

	if (wqe->flags & ROVE_WR_INLINE) {
		if (offset + left > wqe->inline_len)
			sim_fail(qp, "burst beyond the inline data");
		return true;
	}
	for (i = 0; left; i++) {
		const struct rove_sge *sge;
		u64 n;

		if (i == wqe->num_sge)
			sim_fail(qp, "burst beyond the SGE list");
		sge = &wqe->sge[i];
		if (offset >= sge->length) {
			offset -= sge->length;
			continue;
		}
		n = min(left, sge->length - offset);
		if (!mr_check(qp, sge->lkey, sge->addr + offset, n, 0))
			return false;
		left -= n;
		offset = 0;
	}
	return true;
}

static void check_shape(struct sim_qp *qp, const struct rove_burst *b)
{
	bool payload = b->kind == ROVE_BURST_SEND || b->kind == ROVE_BURST_WRITE ||
		       b->kind == ROVE_BURST_READ_RESPONSE ||
		       b->kind == ROVE_BURST_ATOMIC_WRITE ||
		       b->kind == ROVE_BURST_DATAGRAM;

	if (!b->npkts || b->psn > ROVE_PSN_MASK || b->mtu != qp->t.mtu ||
	    (payload ? (b->length > (u64)b->npkts * b->mtu ||
			(b->npkts > 1 && b->length <= (b->npkts - 1) * b->mtu) ||
			(!b->last && b->length != b->npkts * b->mtu)) :
		       (b->npkts != 1 || b->length)))
		sim_fail(qp, "burst kind %d: %u packets for %u bytes, psn %x",
			 b->kind, b->npkts, b->length, b->psn);
}

int rove_env_dest(struct rove_tqp *t, u32 ah)
{
	return ah == 1 ? (int)t->mtu : -EINVAL;
}

/* A PSN for which an RNR NAK came rests until its time is over (9.7.5.2.8). */
static void check_rnr(struct sim_qp *qp, const struct rove_burst *b)
{
	if (!qp->rnr_armed || psn_diff(qp->rnr_psn, b->psn) < 0 ||
	    psn_diff(qp->rnr_psn, psn_add(b->psn, b->npkts)) >= 0)
		return;
	if (sim.now < qp->rnr_until)
		sim_fail(qp, "psn %x sent %llu ns before its RNR time was over",
			 qp->rnr_psn, qp->rnr_until - sim.now);
	qp->rnr_armed = false;
}

/*
 * The first packet of a work request: in order, not while drained, fences and
 * max_rd_atomic respected.  Of earlier READs and atomics only those that are
 * signalled are known not to be complete.
 */
static void check_begin(struct sim_qp *qp, struct wr *wr, u64 idx)
{
	u32 rd = 0;
	u64 i;

	if (idx < qp->emitted)
		sim_fail(qp, "work request %llu begins after %llu", idx,
			 qp->emitted - 1);
	if (qp->drained)
		sim_fail(qp, "work request %llu begins after SQ_DRAINED", idx);
	if (qp->draining && idx >= qp->drain_emitted)
		sim_fail(qp, "work request %llu begins while draining", idx);
	if (wr->flags & ROVE_WR_FENCE || is_answered(wr->op))
		for (i = qp->done; i < idx; i++)
			if (wr_at(qp, i)->signaled && is_answered(wr_at(qp, i)->op))
				rd++;
	if (rd && wr->flags & ROVE_WR_FENCE)
		sim_fail(qp, "work request %llu passes its fence", idx);
	if (is_answered(wr->op) && rd >= qp->t.max_rd_atomic)
		sim_fail(qp, "more than %u READs and atomics outstanding",
			 qp->t.max_rd_atomic);
	qp->emitted = idx + 1;
	wr->emitted = true;
}

static u64 find_request(struct sim_qp *qp, u64 wr_id)
{
	u64 idx = qp->done + (u32)((u32)wr_id - (u32)qp->done);

	/* An earlier request may be sent again after it is done, if unsignalled. */
	if (idx >= qp->posted)
		idx = qp->posted - (u32)((u32)qp->posted - (u32)wr_id);
	if (wr_at(qp, idx)->wr_id != wr_id)
		sim_fail(qp, "sends an unknown work request %llx", wr_id);
	return idx;
}

/* The first packet of a work request, from who is not rove. */
void env_begins(struct sim_qp *qp, u64 wr_id)
{
	u64 idx = find_request(qp, wr_id);

	check_begin(qp, wr_at(qp, idx), idx);
}

static void check_request(struct sim_qp *qp, const struct rove_burst *b)
{
	u64 idx = find_request(qp, b->wqe->wqe.wr_id);
	struct wr *wr = wr_at(qp, idx);

	check_rnr(qp, b);
	if (!wr->emitted)
		check_begin(qp, wr, idx);
	if ((u64)b->offset + b->length > wr->len)
		sim_fail(qp, "burst beyond its message");
	if (psn_diff(psn_add(b->psn, b->npkts), qp->t.req.psn_una) >
	    (s32)qp->t.req.window && !is_answered(wr->op))
		sim_fail(qp, "sends beyond its window");
}

int rove_env_emit(struct rove_tqp *t, const struct rove_burst *b)
{
	struct sim_qp *qp = to_qp(t);

	check_shape(qp, b);
	if (b->wqe && b->kind != ROVE_BURST_DATAGRAM && psn_diff(b->psn, t->req.psn_una) < 0)
		sim_fail(qp, "sends psn %x, which is acknowledged", b->psn);
	if (t->state < ROVE_TQP_RTR)
		sim_fail(qp, "sends in state %d", t->state);
	if (chance(sim.sc->eagain)) {
		trace(qp, "tx blocked");
		env_doorbell(qp, below(20000));
		return -EAGAIN;
	}
	if (qp->absent && b->psn == qp->psn_absent)
		return -EINPROGRESS;
	if (b->length && chance(sim.sc->absent)) {
		env_doorbell(qp, below(50000));
		return -EINPROGRESS;
	}
	if (b->kind == ROVE_BURST_READ_RESPONSE && chance(sim.sc->gone))
		return -EFAULT;
	if (b->length && (b->kind == ROVE_BURST_READ_RESPONSE ?
			  !mr_check(qp, b->rkey, b->va + b->offset, b->length,
				    ROVE_ACCESS_REMOTE_READ) :
			  !readable(qp, b)))
		return -EFAULT;
	if (b->wqe && !qp->on_cqe)
		check_request(qp, b);
	net_send(qp, b);
	return 0;
}

void rove_env_defer_send(struct rove_tqp *t)
{
	struct sim_qp *qp = to_qp(t);

	if (!qp->ack_owed) {
		qp->ack_owed = true;
		event_add(sim.now + (rnd() & 1 ? below(6000) : 0), EV_ACK,
			  qp->epoch, qp);
	}
}

bool rove_env_hold_ack(struct rove_tqp *t, u64 now)
{
	struct sim_qp *qp = to_qp(t);

	if (qp->hold_ns)
		env_doorbell(qp, qp->hold_ns);
	return qp->hold_ns;
}

/* What is true of a requester whenever nobody is in it. */
void env_check(struct sim_qp *qp)
{
	const struct rove_requester *req = &qp->t.req;
	u32 i, rd = 0;

	if (qp->gbn || (qp->t.state != ROVE_TQP_RTS && qp->t.state != ROVE_TQP_SQD) ||
	    qp->t.service == ROVE_SVC_UD)
		return;
	if (psn_diff(req->psn_next, req->psn_una) < 0 ||
	    psn_diff(req->psn_top, req->psn_next) < 0 ||
	    psn_diff(req->psn_ackreq, req->psn_una) < 0 ||
	    psn_diff(req->psn_top, req->psn_ackreq) < 0)
		if (qp->t.service != ROVE_SVC_UC)
			sim_fail(qp, "psn_una %x, next %x, top %x, ackreq %x", req->psn_una,
				 req->psn_next, req->psn_top, req->psn_ackreq);
	if (req->cur - req->done > req->fetched - req->done ||
	    req->fetched - req->done > req->depth)
		sim_fail(qp, "done %u, cur %u, fetched %u", req->done, req->cur, req->fetched);
	if (req->cwnd > req->window || req->cwnd < min(req->window, 4U))
		sim_fail(qp, "cwnd %u of %u", req->cwnd, req->window);
	for (i = req->done; i != req->fetched; i++) {
		const struct rove_swqe *w = rove_swqe(req, i);
		s32 sent = psn_diff(req->psn_next, w->first_psn);

		rd += w->started && is_answered(w->wqe.opcode);
		if (!w->started || !w->npkts)
			continue;
		/* Half of all PSNs is as far ahead as behind, and a message may take so many. */
		if (sent == -(1 << 23))
			sent = 1 << 23;
		/* All before @cur is sent to its end, what stands there is not. */
		if ((s32)(i - req->cur) < 0 ? sent < (s32)w->npkts :
		    i == req->cur ? sent < 0 || sent >= (s32)w->npkts : sent > 0)
			sim_fail(qp, "slot %u, cur %u: %d of %u packets sent", i, req->cur,
				 sent, w->npkts);
	}
	if (rd != req->rd_outstanding)
		sim_fail(qp, "%u READs and atomics outstanding, not %u", req->rd_outstanding, rd);
}

/* Packets at hand have been handled. */
void env_run_deferred(struct sim_qp *qp)
{
	qp->ack_owed = false;
	if (qp->gbn)
		gbn_send(qp);
	else
		rove_tqp_send(&qp->t, sim.now);
}

/* ---- memory, by key ---- */

int rove_env_check_rkey(struct rove_tqp *t, u32 rkey, u64 va, u32 len,
			u32 access)
{
	if (!len)
		sim_fail(to_qp(t), "asked for a key check of no bytes");
	return mr_check(to_qp(t), rkey, va, len, access) ? 0 : -EFAULT;
}

static void place(struct mr *mr, u64 va, const u8 *src, u32 len)
{
	if (!big_write(mr, va, src, len))
		memcpy(mr->mem + (va - mr->va), src, len);
}

int rove_env_write(struct rove_tqp *t, u32 rkey, u64 va,
		   const struct rove_pkt *pkt)
{
	struct mr *mr = mr_check(to_qp(t), rkey, va, pkt->payload_len,
				 ROVE_ACCESS_REMOTE_WRITE);

	if (!mr)
		return -EFAULT;
	if (chance(sim.sc->paging))
		return -EAGAIN;
	place(mr, va, net_payload(pkt), pkt->payload_len);
	return 0;
}

int rove_env_scatter(struct rove_tqp *t, const struct rove_sge *sge,
		     u32 num_sge, u32 offset, const struct rove_pkt *pkt,
		     const void *data, u32 len)
{
	struct sim_qp *qp = to_qp(t);
	const u8 *src = data ? data : net_payload(pkt);
	u32 i;

	if (!data)
		len = pkt->payload_len;
	if (chance(sim.sc->paging))
		return -EAGAIN;
	for (i = 0; len; i++) {
		struct mr *mr;
		u32 n;

		if (i == num_sge)
			sim_fail(qp, "scatter beyond the SGE list");
		if (offset >= sge[i].length) {
			offset -= sge[i].length;
			continue;
		}
		n = min(len, sge[i].length - offset);
		mr = mr_check(qp, sge[i].lkey, sge[i].addr + offset, n,
			      ROVE_ACCESS_LOCAL_WRITE);
		if (!mr)
			return -EFAULT;
		place(mr, sge[i].addr + offset, src, n);
		src += n;
		len -= n;
		offset = 0;
	}
	return 0;
}

int rove_env_atomic(struct rove_tqp *t, u32 rkey, u64 va, bool cmp_swap,
		    u64 compare, u64 swap_add, u64 *orig)
{
	u8 *p = mr_range(to_qp(t), rkey, va, 8, ROVE_ACCESS_REMOTE_ATOMIC);
	u64 v;

	if (va & 7)
		sim_fail(to_qp(t), "atomic at %llx", va);
	if (!p)
		return -EFAULT;
	if (chance(sim.sc->paging))
		return -EAGAIN;
	memcpy(&v, p, 8);
	*orig = v;
	v = !cmp_swap ? v + swap_add : v == compare ? swap_add : v;
	memcpy(p, &v, 8);
	return 0;
}

int rove_env_atomic_write(struct rove_tqp *t, u32 rkey, u64 va,
			  const struct rove_pkt *pkt)
{
	if (va & 7 || pkt->payload_len != 8)
		sim_fail(to_qp(t), "atomic write of %u at %llx", pkt->payload_len, va);
	return rove_env_write(t, rkey, va, pkt);
}

int rove_env_srq(struct rove_tqp *t, u32 srqn)
{
	return srqn == SIM_SRQN || srqn == SIM_SRQN2 ? 0 : -EINVAL;
}

int rove_env_srq_domain(struct rove_tqp *t, u32 srqn)
{
	return chance(sim.sc->gone) ? -EINVAL : rove_env_srq(t, srqn);
}

int rove_env_invalidate(struct rove_tqp *t, u32 key)
{
	struct mr *mr = mr_find(to_qp(t), key);

	if (!mr)
		return -EINVAL;
	trace(to_qp(t), "invalidate of %x", key);
	mr->valid = false;
	return 0;
}

u32 rove_env_local(struct rove_tqp *t, const struct rove_send_wqe *wqe)
{
	struct sim_qp *qp = to_qp(t);
	struct wr *wr;
	u64 idx;

	trace(qp, "local work %llx", (u64)wqe->wr_id);
	if (wqe->opcode == ROVE_WR_LOCAL_INV)
		return rove_env_invalidate(t, wqe->invalidate_rkey) ?
		       ROVE_WC_MW_BIND_ERR : ROVE_WC_SUCCESS;
	if (qp->on_cqe)
		return qp->on_local ? qp->on_local(wqe) : ROVE_WC_MW_BIND_ERR;
	if (wqe->opcode != ROVE_WR_BIND_MW)
		return ROVE_WC_LOC_QP_OP_ERR;
	/* What it binds is nothing to the model, only that it is its turn. */
	idx = find_request(qp, wqe->wr_id);
	wr = wr_at(qp, idx);
	if (wr->emitted)
		sim_fail(qp, "work request %llu is executed twice", idx);
	if (wr->bad)
		return ROVE_WC_MW_BIND_ERR;
	check_begin(qp, wr, idx);
	return ROVE_WC_SUCCESS;
}

/* ---- the rest ---- */

/* Timers are late, as timers are, and a call too many does no harm. */
void rove_env_arm_timer(struct rove_tqp *t, u64 deadline)
{
	struct sim_qp *qp = to_qp(t);
	u64 at;

	qp->timer_at = deadline;
	if (deadline == ROVE_NO_DEADLINE)
		return;
	at = max(deadline, sim.now) + below(20000);
	if (at < qp->timer_ev) {
		qp->timer_ev = at;
		event_add(at, EV_TIMER, qp->epoch, qp);
	}
}

u64 rove_env_lag(struct rove_tqp *t)
{
	return chance(sim.sc->lag) ? between(10, 100) * NS_PER_MS : 0;
}

void rove_env_event(struct rove_tqp *t, enum rove_tqp_event event)
{
	struct sim_qp *qp = to_qp(t);

	trace(qp, "event %d", event);
	user_event(qp, event);
}

void rove_env_state_changed(struct rove_tqp *t)
{
	struct sim_qp *qp = to_qp(t);

	if (t->state == ROVE_TQP_SQE) {
		qp->told_sqe = true;
		return;
	}
	trace(qp, "goes to the error state");
	if (t->state != ROVE_TQP_ERR)
		sim_fail(qp, "state changed to %d", t->state);
	qp->killed = true;
	user_failed(qp);
}

void rove_env_count(struct rove_tqp *t, enum rove_counter counter)
{
	static const char *const name[] = {
#define X(sym, text) text,
		ROVE_COUNTERS(X)
#undef X
	};

	if ((u32)counter >= ROVE_CNT_MAX)
		sim_fail(to_qp(t), "counter %u", counter);
	stats.counter[counter]++;
	trace(to_qp(t), "counts %s", name[counter]);
}

void sim_warn(const char *file, int line, const char *what)
{
	sim_fail(NULL, "warning at %s:%d: %s", file, line, what);
}
