// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * model.c - what must be in memory and in the completion queues
 *
 * The model executes each stream's requests on a shadow of its target region,
 * in the order they were posted, as far as completions prove that the peer has
 * executed them.  A receive completion proves it for the request that it
 * belongs to and all before it, and at that moment nothing after it has begun:
 * the target must equal the shadow.  A send completion proves it too, but
 * later requests may have been executed already.
 */
#include "sim.h"

static u8 scratch[1 << 20];

static bool overlaps(const struct wr *a, u32 toff, u32 len)
{
	return a->toff < toff + len && toff < a->toff + a->len;
}

/* Execute up to, not including, @end. */
static void execute(struct sim_qp *qp, u64 end)
{
	for (; qp->exec < end; qp->exec++) {
		struct wr *wr = wr_at(qp, qp->exec);
		u8 *p = qp->tshadow + wr->toff;
		u64 v;

		if (is_write(wr->op)) {
			fill(p, wr->len, wr->seed);
		} else if (wr->op == ROVE_WR_RDMA_READ && wr->len) {
			wr->snap = malloc(wr->len);
			memcpy(wr->snap, p, wr->len);
		} else if (is_atomic(wr->op)) {
			memcpy(&wr->orig, p, 8);
			if (wr->op == ROVE_WR_ATOMIC_FETCH_AND_ADD)
				v = wr->orig + wr->compare_add;
			else
				v = wr->orig == wr->compare_add ? wr->swap : wr->orig;
			memcpy(p, &v, 8);
		}
	}
}

static void differ(const struct sim_qp *qp, const char *what, u64 idx,
		   const u8 *got, const u8 *want, u32 len)
{
	u32 i;

	for (i = 0; i < len && got[i] == want[i]; i++)
		;
	if (i < len)
		sim_fail(qp, "%s of work request %llu: byte %u of %u is %02x, not %02x",
			 what, idx, i, len, got[i], want[i]);
}

static void compare(const struct sim_qp *qp, const char *what, u64 idx,
		    const u8 *got, const u8 *want, u32 len)
{
	if (len && memcmp(got, want, len))
		differ(qp, what, idx, got, want, len);
}

static void untouched(const struct sim_qp *qp, const char *what, u64 idx,
		      const u8 *p, u32 len)
{
	u32 i;

	for (i = 0; i < len; i++)
		if (p[i] != UNTOUCHED)
			sim_fail(qp, "%s of work request %llu: byte %u was written",
				 what, idx, i);
}

/*
 * Pieces of memory hold @len bytes of @want, and UNTOUCHED beyond them and
 * around.
 */
static void check_pieces(const struct sim_qp *qp, const char *what, u64 idx,
			 const u8 *mem, const u32 *off, const u32 *sge_len,
			 u32 nsge, const u8 *want, u32 len)
{
	u32 i;

	for (i = 0; i < nsge; i++) {
		const u8 *p = mem + off[i];
		u32 n = min(len, sge_len[i]);

		compare(qp, what, idx, p, want, n);
		untouched(qp, what, idx, p + n, sge_len[i] - n + 8);
		untouched(qp, what, idx, p - 8, 8);
		if (!n)
			continue;
		want += n;
		len -= n;
	}
}

/* The whole target region; only when nothing later can have been executed. */
void model_check_target(struct sim_qp *qp)
{
	compare(qp, "target region after", qp->exec, qp->tmem, qp->tshadow,
		qp->tsize);
}

/* May a later request have changed the target of @wr already? */
static bool overwritten(struct sim_qp *qp, u64 idx)
{
	struct wr *wr = wr_at(qp, idx);
	u64 i;

	for (i = idx + 1; i < qp->posted; i++) {
		struct wr *later = wr_at(qp, i);

		if ((is_write(later->op) || is_atomic(later->op)) &&
		    overlaps(later, wr->toff, wr->len))
			return true;
	}
	return false;
}

/* A work request is complete without error. */
static void check_done(struct sim_qp *qp, u64 idx)
{
	struct wr *wr = wr_at(qp, idx);

	if (wr->bad)
		sim_fail(qp, "work request %llu succeeds, bad as it is (%d)",
			 idx, wr->bad);
	if (wr->op != ROVE_WR_LOCAL_INV && !wr->emitted)
		sim_fail(qp, "work request %llu was never sent", idx);
	if (is_write(wr->op)) {
		if (!overwritten(qp, idx))
			compare(qp, "target", idx, qp->tmem + wr->toff,
				qp->tshadow + wr->toff, wr->len);
	} else if (wr->op == ROVE_WR_RDMA_READ) {
		check_pieces(qp, "READ data", idx, qp->send_mem.mem, wr->off,
			     wr->sge_len, wr->nsge, wr->snap, wr->len);
	} else if (is_atomic(wr->op)) {
		check_pieces(qp, "atomic result", idx, qp->send_mem.mem, wr->off,
			     wr->sge_len, wr->nsge, (u8 *)&wr->orig, 8);
	} else if (wr->op == ROVE_WR_LOCAL_INV) {
		if (mr_find(qp, wr->inv_key))
			sim_fail(qp, "key %x was not invalidated", wr->inv_key);
	} else if (takes_recv(wr->op) && wr->recv_idx >= qp->peer->r_done && !qp->peer->killed) {
		sim_fail(qp, "SEND %llu completes before its receive", idx);
	}
}

static u32 send_opcode(u8 op)
{
	switch (op) {
	case ROVE_WR_RDMA_WRITE:
	case ROVE_WR_RDMA_WRITE_WITH_IMM:
		return ROVE_WC_RDMA_WRITE;
	case ROVE_WR_RDMA_READ:
		return ROVE_WC_RDMA_READ;
	case ROVE_WR_ATOMIC_CMP_AND_SWP:
		return ROVE_WC_COMP_SWAP;
	case ROVE_WR_ATOMIC_FETCH_AND_ADD:
		return ROVE_WC_FETCH_ADD;
	case ROVE_WR_LOCAL_INV:
		return ROVE_WC_LOCAL_INV;
	case ROVE_WR_BIND_MW:
		return ROVE_WC_BIND_MW;
	case ROVE_WR_ATOMIC_WRITE:
		return ROVE_WC_ATOMIC_WRITE;
	default:
		return ROVE_WC_SEND;
	}
}

/* Which errors may this work request, the first to fail, end with? */
static u32 allowed(struct sim_qp *qp, struct wr *wr)
{
	struct sim_qp *peer = qp->peer;
	bool gone = peer->killed || peer->dead || peer->blackhole || qp->blackhole;
	u32 set = 0;

	if (wr->bad)
		set |= wr->expect;
	if (qp->killed)
		set |= 1 << ROVE_WC_WR_FLUSH_ERR;
	if (gone || sim.sc->finite)
		set |= 1 << ROVE_WC_RETRY_EXC_ERR;
	if (qp->t.rnr_retry < 7)
		set |= 1 << ROVE_WC_RNR_RETRY_EXC_ERR;
	if (qp->key_pulled && !is_send(wr->op))
		set |= 1 << ROVE_WC_REM_ACCESS_ERR;
	/* A READ that comes again is not answered any more, but ends nothing. */
	if ((qp->key_pulled || !peer->t.access) && wr->op == ROVE_WR_RDMA_READ)
		set |= 1 << ROVE_WC_RETRY_EXC_ERR;
	if (qp->key_pulled && wr->op == ROVE_WR_SEND_WITH_INV)
		set |= 1 << ROVE_WC_REM_INV_REQ_ERR | 1 << ROVE_WC_REM_ACCESS_ERR;
	if (qp->local_pulled)
		set |= 1 << ROVE_WC_LOC_PROT_ERR;
	if (peer->recv_pulled && is_send(wr->op))
		set |= 1 << ROVE_WC_REM_OP_ERR;
	if (peer->t.access == 0)
		set |= 1 << ROVE_WC_REM_ACCESS_ERR | 1 << ROVE_WC_REM_INV_REQ_ERR;
	if (peer->rq_broken)
		set |= 1 << ROVE_WC_REM_OP_ERR;
	if (takes_recv(wr->op) && wr->recv_idx < peer->r_posted &&
	    (rr_at(peer, wr->recv_idx)->bad == BAD_RECV_NUM_SGE ||
	     (is_send(wr->op) && rr_at(peer, wr->recv_idx)->bad)))
		set |= 1 << ROVE_WC_REM_OP_ERR;
	return set;
}

static void send_error(struct sim_qp *qp, const struct rove_cqe *cqe, u64 idx)
{
	struct wr *wr = wr_at(qp, idx);

	if (!sim.sc->bad && !sim.sc->finite && !sim.stopped)
		sim_fail(qp, "work request %llu fails with status %u", idx,
			 cqe->status);
	if (cqe->byte_len && cqe->byte_len != wr->len && !wr->bad)
		sim_fail(qp, "byte_len %u of %u, status %u", cqe->byte_len, wr->len,
			 cqe->status);
	if (qp->sq_error) {
		if (cqe->status != ROVE_WC_WR_FLUSH_ERR)
			sim_fail(qp, "work request %llu ends with %u after the first error",
				 idx, cqe->status);
	} else if (!(allowed(qp, wr) >> cqe->status & 1)) {
		sim_fail(qp, "work request %llu (bad %d) ends with status %u, allowed %x",
			 idx, wr->bad, cqe->status, allowed(qp, wr));
	}
	if (!qp->sq_error) {
		qp->sq_error = true;
		trace(qp, "first error: %u", cqe->status);
	}
	qp->killed = true;
}

static void send_cqe(struct sim_qp *qp, const struct rove_cqe *cqe)
{
	bool failed = cqe->status != ROVE_WC_SUCCESS;
	u64 idx = qp->done;
	struct wr *wr;

	/* The next that must complete; after an error each one must. */
	while (idx < qp->posted && wr_at(qp, idx)->wr_id != cqe->wr_id &&
	       !qp->sq_error && !wr_at(qp, idx)->signaled)
		idx++;
	wr = wr_at(qp, idx);
	if (idx == qp->posted || wr->wr_id != cqe->wr_id)
		sim_fail(qp, "completion of %llx, not of %llu (%llx)",
			 (u64)cqe->wr_id, idx, wr->wr_id);
	if (idx >= qp->posted - (qp->sq_prod - qp->sq_released))
		sim_fail(qp, "work request %llu completes before its slot is free", idx);
	if (!failed && qp->sq_error)
		sim_fail(qp, "work request %llu succeeds after an error", idx);
	if (!failed && !wr->signaled)
		sim_fail(qp, "work request %llu completes but is not signalled", idx);

	if (!qp->sq_error)
		execute(qp, max(failed ? idx : idx + 1, qp->exec));
	for (; qp->done < idx; qp->done++)
		check_done(qp, qp->done);
	if (failed) {
		send_error(qp, cqe, idx);
	} else {
		check_done(qp, idx);
		if (cqe->opcode != send_opcode(wr->op))
			sim_fail(qp, "opcode %u of operation %u", cqe->opcode, wr->op);
		if (is_rd(wr->op) && cqe->byte_len != wr->len)
			sim_fail(qp, "byte_len %u of %u", cqe->byte_len, wr->len);
		if (cqe->wc_flags)
			sim_fail(qp, "wc_flags %x of a send", cqe->wc_flags);
	}
	qp->done = idx + 1;
}

static void check_received(struct sim_qp *qp, const struct rove_cqe *cqe,
			   struct rr *rr)
{
	struct sim_qp *from = qp->peer;
	u64 idx = from->expect[qp->r_done % WRS];
	struct wr *wr = wr_at(from, idx);
	bool write = wr->op == ROVE_WR_RDMA_WRITE_WITH_IMM;
	u32 flags = 0;

	if (wr->bad)
		sim_fail(qp, "receives bad work request %llu (%d)", idx, wr->bad);
	if (rr->bad == BAD_RECV_NUM_SGE || (!write && rr->bad && wr->len))
		sim_fail(qp, "receives into a bad receive request (%d)", rr->bad);
	execute(from, max(idx + 1, from->exec));
	if (from->exec != idx + 1)
		sim_fail(qp, "receive of %llu completes after that of %llu", idx,
			 from->exec - 1);

	if (cqe->opcode != (write ? ROVE_WC_RECV_RDMA_WITH_IMM : ROVE_WC_RECV) ||
	    cqe->byte_len != wr->len)
		sim_fail(qp, "receive with opcode %u, %u bytes; sent: operation %u, %u bytes",
			 cqe->opcode, cqe->byte_len, wr->op, wr->len);
	if (wr->op == ROVE_WR_SEND_WITH_IMM || write)
		flags = ROVE_WC_WITH_IMM;
	else if (wr->op == ROVE_WR_SEND_WITH_INV)
		flags = ROVE_WC_WITH_INV;
	if (cqe->wc_flags != flags)
		sim_fail(qp, "wc_flags %x, not %x", cqe->wc_flags, flags);
	if (flags == ROVE_WC_WITH_IMM && cqe->imm_data != wr->imm)
		sim_fail(qp, "immediate data %x, not %x", cqe->imm_data, wr->imm);
	if (flags == ROVE_WC_WITH_INV) {
		if (cqe->invalidated_rkey != wr->inv_key)
			sim_fail(qp, "invalidated %x, not %x",
				 cqe->invalidated_rkey, wr->inv_key);
		if (mr_find(qp, wr->inv_key))
			sim_fail(qp, "key %x was not invalidated", wr->inv_key);
	}

	if (!write)
		fill(scratch, wr->len, wr->seed);
	check_pieces(qp, "receive", idx, rr->mem, rr->off, rr->sge_len,
		     rr->nsge, scratch, write ? 0 : wr->len);
	if (write)
		compare(qp, "target", idx, from->tmem + wr->toff,
			from->tshadow + wr->toff, wr->len);
	if (!below(32))
		model_check_target(from);
}

static void recv_error(struct sim_qp *qp, const struct rove_cqe *cqe,
		       struct rr *rr)
{
	struct sim_qp *from = qp->peer;
	u32 set = 0;

	if (!sim.sc->bad && !sim.sc->finite && !sim.stopped)
		sim_fail(qp, "receive %llu fails with status %u", qp->r_done,
			 cqe->status);
	if (qp->rq_error || qp->killed)
		set |= 1 << ROVE_WC_WR_FLUSH_ERR;
	if (!qp->rq_error && (rr->bad == BAD_RECV_LKEY || qp->recv_pulled))
		set |= 1 << ROVE_WC_LOC_PROT_ERR;
	if (!qp->rq_error && rr->bad == BAD_RECV_NUM_SGE)
		set |= 1 << ROVE_WC_LOC_QP_OP_ERR;
	if (!qp->rq_error && qp->r_done < from->recv_seq) {
		struct wr *wr = wr_at(from, from->expect[qp->r_done % WRS]);

		if (wr->bad == BAD_TOO_LONG)
			set |= 1 << ROVE_WC_LOC_LEN_ERR;
		if (wr->bad == BAD_INV_KEY ||
		    (wr->op == ROVE_WR_SEND_WITH_INV && from->key_pulled))
			set |= 1 << ROVE_WC_REM_INV_REQ_ERR |
			       1 << ROVE_WC_LOC_ACCESS_ERR;
		/* It had passed once, and was put off for want of a page. */
		if (wr->op == ROVE_WR_RDMA_WRITE_WITH_IMM &&
		    (from->key_pulled || !qp->t.access))
			set |= 1 << ROVE_WC_LOC_ACCESS_ERR;
	}
	if (!(set >> cqe->status & 1))
		sim_fail(qp, "receive %llu ends with status %u, allowed %x",
			 qp->r_done, cqe->status, set);
	qp->rq_error = true;
	/* The end of the QP follows, at the latest when the NAK is out. */
	qp->killed = true;
}

static void recv_cqe(struct sim_qp *qp, const struct rove_cqe *cqe,
		     bool solicited)
{
	struct sim_qp *from = qp->peer;
	struct rr *rr = rr_at(qp, qp->r_done);

	if (qp->r_done == qp->r_posted || cqe->wr_id != rr->wr_id)
		sim_fail(qp, "receive completion of %llx, not of %llu",
			 (u64)cqe->wr_id, qp->r_done);
	if (cqe->status != ROVE_WC_SUCCESS) {
		recv_error(qp, cqe, rr);
	} else {
		if (qp->r_done >= from->recv_seq)
			sim_fail(qp, "receive completion of nothing");
		if (qp->rq_error)
			sim_fail(qp, "receive %llu succeeds after an error",
				 qp->r_done);
		check_received(qp, cqe, rr);
		if (solicited != !!(wr_at(from, from->expect[qp->r_done % WRS])->flags &
				    ROVE_WR_SOLICITED))
			sim_fail(qp, "receive %llu: solicited is %d", qp->r_done,
				 solicited);
	}
	qp->r_done++;
	stats.recvs++;
}

void model_cqe(struct sim_qp *qp, const struct rove_cqe *cqe, bool recv,
	       bool solicited)
{
	if (cqe->status != ROVE_WC_SUCCESS && !solicited)
		sim_fail(qp, "an error that is not solicited");
	if (cqe->status == ROVE_WC_SUCCESS && !recv && solicited)
		sim_fail(qp, "a send that is solicited");
	if (recv)
		recv_cqe(qp, cqe, solicited);
	else
		send_cqe(qp, cqe);
}

/*
 * The QP is in the error state: everything has come back.  Requests that were
 * not complete may have been executed or not, or half: what they would have
 * written is taken as it is, all else must be as the shadow has it.
 */
void model_after_error(struct sim_qp *qp)
{
	u64 end = qp->posted - (qp->sq_broken ? qp->sq_prod - qp->sq_fetched : 0);
	u64 i;

	/* What has not come back was complete before, and not signalled. */
	while (qp->done < end) {
		if (qp->sq_error || wr_at(qp, qp->done)->signaled)
			sim_fail(qp, "send %llu of %llu never completed",
				 qp->done, qp->posted);
		execute(qp, max(qp->done + 1, qp->exec));
		check_done(qp, qp->done++);
	}
	if (qp->r_posted - qp->r_done != (qp->rq_broken ? qp->rq_prod - qp->rq_fetched : 0))
		sim_fail(qp, "%llu of %llu receives never completed",
			 qp->r_posted - qp->r_done, qp->r_posted);
	if (qp->t.resp.reply_count)
		sim_fail(qp, "owes answers in the error state");
	if (qp->event[ROVE_EVENT_LAST_WQE] !=
	    (qp->srq && qp->t.service != ROVE_SVC_XRC))
		sim_fail(qp, "LAST_WQE %u times", qp->event[ROVE_EVENT_LAST_WQE]);
	for (i = qp->exec; i < qp->posted; i++) {
		struct wr *wr = wr_at(qp, i);

		if (is_write(wr->op) || is_atomic(wr->op))
			memcpy(qp->tshadow + wr->toff, qp->tmem + wr->toff, wr->len);
	}
	model_check_target(qp);
	qp->exec = qp->posted;
	qp->done = qp->posted;
	qp->emitted = qp->posted;
	qp->r_done = qp->r_posted;
	qp->recv_seq = qp->peer->r_posted;
}

/* All work is complete and the wire is silent. */
void model_round_end(void)
{
	u32 i;

	for (i = 0; i < sim.nqps; i++) {
		struct sim_qp *qp = sim.qp[i];

		if (qp->exec != qp->posted)
			sim_fail(qp, "only %llu of %llu requests executed",
				 qp->exec, qp->posted);
		model_check_target(qp);
		if (qp->t.state != ROVE_TQP_RTS)
			sim_fail(qp, "state %d at the end", qp->t.state);
		if (!qp->gbn && !rove_tqp_idle(&qp->t))
			sim_fail(qp, "not idle at the end");
		qp->killed = true;
		rove_tqp_error(&qp->t);
		model_after_error(qp);
	}
}
