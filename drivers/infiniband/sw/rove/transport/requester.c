// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * requester.c - the sending half of an RC or UC QP (IBTA vol. 1, 9.7.2, 9.7.3,
 * 9.7.5.2; 9.8.2)
 *
 * Three indices run over the private ring of work requests, each behind the
 * next, and two PSNs over their packets:
 *
 *	done         cur           fetched
 *	 |  sent,     |  to be      |
 *	 |  unacked   |  sent       |  free
 *	psn_una      psn_next
 *
 * A retry moves cur and psn_next back to done and psn_una.  A work request
 * leaves at done, in order, when its last packet is acknowledged or its
 * response is complete.
 *
 * On UC nobody acknowledges, so a packet counts as acknowledged when it has left:
 * nothing is sent again, psn_una is psn_next, and a work request is complete with
 * its last packet.
 */
#include <linux/errno.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include "engine.h"
#include "env.h"

static bool is_atomic(const struct rove_swqe *w)
{
	return w->wqe.opcode == ROVE_WR_ATOMIC_CMP_AND_SWP ||
	       w->wqe.opcode == ROVE_WR_ATOMIC_FETCH_AND_ADD;
}

static bool is_atomic_write(const struct rove_swqe *w)
{
	return w->wqe.opcode == ROVE_WR_ATOMIC_WRITE;
}

/* Complete with a response, not with an ACK. */
static bool is_read_or_atomic(const struct rove_swqe *w)
{
	return w->wqe.opcode == ROVE_WR_RDMA_READ || is_atomic(w) ||
	       is_atomic_write(w);
}

/* Nothing is sent for it. */
static bool is_local(const struct rove_swqe *w)
{
	return w->wqe.opcode == ROVE_WR_LOCAL_INV ||
	       w->wqe.opcode == ROVE_WR_BIND_MW ||
	       w->wqe.opcode == ROVE_WR_REG_MR;
}

/* Does it take a receive work request from the peer? */
static bool takes_receive(const struct rove_swqe *w)
{
	return w->wqe.opcode == ROVE_WR_SEND ||
	       w->wqe.opcode == ROVE_WR_SEND_WITH_IMM ||
	       w->wqe.opcode == ROVE_WR_SEND_WITH_INV ||
	       w->wqe.opcode == ROVE_WR_RDMA_WRITE_WITH_IMM;
}

static u32 wc_opcode(const struct rove_swqe *w)
{
	switch (w->wqe.opcode) {
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
	case ROVE_WR_ATOMIC_WRITE:
		return ROVE_WC_ATOMIC_WRITE;
	case ROVE_WR_BIND_MW:
		return ROVE_WC_BIND_MW;
	case ROVE_WR_REG_MR:
		return ROVE_WC_REG_MR;
	default:
		return ROVE_WC_SEND;
	}
}

static void complete_send(struct rove_tqp *t, const struct rove_swqe *w,
			  u32 status, u32 vendor_err)
{
	struct rove_cqe cqe = {
		.wr_id = w->wqe.wr_id,
		.byte_len = w->length,
		.status = status,
		.opcode = wc_opcode(w),
		.vendor_err = vendor_err,
	};

	rove_env_complete(t, &cqe, false, status != ROVE_WC_SUCCESS);
}

/*
 * Take the oldest work request out of the ring.  Its slot must be free before the
 * completion is seen: who polls that may post again at once.  The copy
 * returned is good until the next one is fetched.
 */
static struct rove_swqe *take_oldest(struct rove_tqp *t)
{
	struct rove_requester *req = &t->req;
	struct rove_swqe *w = rove_swqe(req, req->done);

	if (req->cur == req->done)
		req->cur++;
	req->done++;
	rove_env_sq_release(t);
	return w;
}

/* The oldest work request is complete, and the local ones behind it that are done. */
static void retire(struct rove_tqp *t)
{
	struct rove_requester *req = &t->req;
	struct rove_swqe *w;

	do {
		w = take_oldest(t);
		if (w->started && is_read_or_atomic(w))
			req->rd_outstanding--;
		if (t->sq_sig_all || w->wqe.flags & ROVE_WR_SIGNALED)
			complete_send(t, w, ROVE_WC_SUCCESS, 0);
		w = rove_swqe(req, req->done);
	} while (req->done != req->fetched && w->started && !w->npkts);
}

/*
 * The send queue is about to end the QP: an acknowledgment that is owed goes first.
 * False: what goes is a NAK that has ended it.
 */
static bool last_words(struct rove_tqp *t)
{
	rove_tqp_answer(t);
	return t->state != ROVE_TQP_ERR;
}

/*
 * The oldest work request ends in error and takes the QP with it, or where the
 * peer knows nothing of it, the send queue (10.3.1.7).  A first error stays the one
 * reported: what follows is flushed (10.3.1.6).
 */
static void fail(struct rove_tqp *t, u32 status, u32 vendor_err)
{
	if (!last_words(t))
		return;
	complete_send(t, take_oldest(t), status, vendor_err);
	if (t->service == ROVE_SVC_UC) {
		t->state = ROVE_TQP_SQE;
		rove_env_state_changed(t);
	} else {
		rove_tqp_error(t);
	}
}

/*
 * The standard lets a timeout be noticed between one and four times the time
 * that was asked for (9.7.6.1.3).  Twice, since the peer's softirq may be kept
 * waiting by what else its machine does; longer when a retry has brought
 * nothing, lest retries are what keeps it busy.
 */
static u64 rto(const struct rove_tqp *t)
{
	u32 factor = t->req.retried ? 3 : 2;

	return max(factor * (4096ULL << t->timeout), ROVE_MIN_RTO_NS);
}

/* A request waits, and its answer, and both for longer before it is known for how long. */
#define LAGS	4

static void set_alarm(struct rove_requester *req, u64 rto, u64 probe)
{
	req->rto_deadline = rto;
	req->probe_deadline = probe;
	req->alarm = min(rto, probe);
}

static void stop_rto(struct rove_requester *req)
{
	req->rto_put_off = false;
	req->probe_put_off = false;
	set_alarm(req, ROVE_NO_DEADLINE, ROVE_NO_DEADLINE);
}

static void probe_at(struct rove_requester *req, u64 when)
{
	set_alarm(req, req->rto_deadline, when);
}

static void restart_rto(struct rove_tqp *t, u64 now)
{
	struct rove_requester *req = &t->req;

	stop_rto(req);
	if (t->timeout && req->psn_una != req->psn_next)
		set_alarm(req, now + rto(t), now + req->probe_wait);
}

/*
 * How fast an answer can be.  The way may change, so what was long ago does not count; but
 * it does for so long that the queue was empty in between.
 */
static void take_fastest(struct rove_requester *req, u64 rtt, u64 now)
{
	if (now - req->rtt_anew > ROVE_RTT_MIN_NS) {
		req->rtt_anew = now;
		req->rtt_min = req->rtt_next;
		req->rtt_next = rtt;
	}
	req->rtt_next = min(rtt, req->rtt_next);
	req->rtt_min = min(rtt, req->rtt_min);
}

/*
 * Take the time from a request for an acknowledgment to the answer.  Nothing was
 * sent again meanwhile, so it is the answer to that request, or if that itself was sent
 * again to an earlier one: it has taken so long at least (Karn's algorithm).
 * The slowest of late counts, lest a queue that fills is taken for a loss.
 */
static void measure(struct rove_requester *req, u64 now)
{
	u64 rtt = now - req->rtt_since;

	req->rtt_since = 0;
	/* Another CPU may have sent after this one had looked at the clock. */
	if ((s64)rtt < 0)
		return;
	req->rtt = max(rtt, req->rtt - req->rtt / 8);
	req->probe_wait = 2 * req->rtt + ROVE_PROBE_NS;
	if (req->rtt_again)
		return;
	take_fastest(req, rtt, now);
	/* Where no queue is, more may go at once (TCP Illinois). */
	req->step = 2 * rtt < 3 * req->rtt_min ? ROVE_CWND_STEP : 1;
	/* A queue fills: what more is sent will make it overflow (HyStart). */
	if (rtt - req->rtt_min > ROVE_QUEUE_NS)
		req->ssthresh = min(req->ssthresh, req->cwnd);
}

/* @n packets have arrived: slow start, then congestion avoidance (RFC 5681). */
static void grow(struct rove_requester *req, u32 n)
{
	if (req->cwnd < req->ssthresh) {
		req->cwnd = min(req->cwnd + n, req->ssthresh);
		return;
	}
	req->grown += n;
	if (req->grown >= req->cwnd) {
		req->grown = 0;
		req->cwnd = min(req->cwnd + req->step, req->window);
	}
}

/*
 * What was sent has been lost, and what is behind the hole was sent for nothing, as the
 * peer keeps nothing of it.  It may still stand in the queue that lost it: begin anew
 * with little (Tahoe), and reach half of what was too much.
 */
static void shrink(struct rove_requester *req)
{
	u32 least = min(req->window, ROVE_MIN_CWND);

	req->ssthresh = max(req->cwnd / 2, least);
	req->cwnd = least;
	req->grown = 0;
}

/* Everything up to, not including, @psn has arrived at the peer. */
static void progress(struct rove_tqp *t, u32 psn, u64 now)
{
	struct rove_requester *req = &t->req;

	if (req->rtt_since && psn_diff(psn, req->rtt_psn) >= 0)
		measure(req, now);
	if (req->cwnd < req->window)
		grow(req, psn_diff(psn, req->psn_una));
	req->psn_una = psn;
	req->probing &= psn_diff(psn, req->probe_psn) <= 0;
	req->lost = false;
	req->retried = 0;
	req->rnr_retried = 0;
	req->rnr_deadline = ROVE_NO_DEADLINE;
	req->rnr_probe = false;
	req->page_waits = 0;
	req->went_back = false;
	/* The peer may have more than we have sent again: skip forward. */
	if (psn_diff(psn, req->psn_next) > 0)
		req->psn_next = psn;
	if (psn_diff(psn, req->psn_ackreq) > 0)
		req->psn_ackreq = psn;
	req->progress_at = now;
	restart_rto(t, now);
}

/* Bring @cur to the work request that @psn_next lies in. */
static void catch_up(struct rove_tqp *t)
{
	struct rove_requester *req = &t->req;

	while (req->cur != req->fetched) {
		const struct rove_swqe *w = rove_swqe(req, req->cur);

		if (!w->started ||
		    psn_diff(req->psn_next, psn_add(w->first_psn, w->npkts - 1)) <= 0)
			break;
		req->cur++;
	}
}

/*
 * Take a cumulative acknowledgment of all packets before @psn.  READs and
 * atomics are complete only with their response, so it stops at one.
 */
static void acknowledge(struct rove_tqp *t, u32 psn, u64 now)
{
	struct rove_requester *req = &t->req;
	u32 una = req->psn_una;

	if (psn_diff(psn, una) <= 0)
		return;
	while (req->done != req->fetched) {
		struct rove_swqe *w = rove_swqe(req, req->done);

		if (!w->started || is_read_or_atomic(w))
			break;
		/* Compare with the last packet: 2^23 packets are legal. */
		if (psn_diff(psn, psn_add(w->first_psn, w->npkts - 1)) <= 0) {
			una = psn;
			break;
		}
		una = psn_add(w->first_psn, w->npkts);
		retire(t);
	}
	if (una != req->psn_una)
		progress(t, una, now);
}

/* Send again from the oldest packet that is not acknowledged (go-back-N). */
static void go_back(struct rove_tqp *t)
{
	struct rove_requester *req = &t->req;

	req->rtt_since = 0;
	req->probing = false;
	req->lost = false;
	req->psn_next = req->psn_una;
	req->psn_ackreq = req->psn_una;
	req->cur = req->done;
	req->went_back = true;
	req->read_piece = 0;
	req->progress_at = 0;
	stop_rto(req);
}

/* Nothing is sent until the time that the peer has asked for is over, or memory looked for. */
static bool is_paused(const struct rove_requester *req)
{
	return req->rnr_deadline != ROVE_NO_DEADLINE;
}

/* Go back, and begin at @until with one message alone. */
static void pause_until(struct rove_tqp *t, u64 until)
{
	go_back(t);
	t->req.rnr_probe = true;
	t->req.rnr_deadline = until;
}

/* A retry that counts: false when there is none left and the QP has failed. */
static bool retry(struct rove_tqp *t)
{
	struct rove_requester *req = &t->req;

	if (req->retried >= t->retry_cnt) {
		rove_env_count(t, ROVE_CNT_RETRY_EXC);
		fail(t, ROVE_WC_RETRY_EXC_ERR, 0);
		return false;
	}
	req->retried++;
	shrink(req);
	go_back(t);
	return true;
}

/*
 * A response shows that an earlier READ or atomic response was lost (9.7.5.2.4).
 * Later responses keep showing it, so once is enough until there is progress.
 */
static void implied_nak(struct rove_tqp *t)
{
	if (t->req.went_back)
		return;
	rove_env_count(t, ROVE_CNT_IMPLIED_NAK);
	shrink(&t->req);
	go_back(t);
}

/* Sum the payload and find what is wrong with a work request. */
static void validate(struct rove_tqp *t, struct rove_swqe *w)
{
	const struct rove_send_wqe *wqe = &w->wqe;
	u64 length = 0;
	u32 i;

	w->started = false;
	w->length = 0;
	w->npkts = 0;
	w->status = ROVE_WC_LOC_QP_OP_ERR;
	if (wqe->opcode > ROVE_WR_SEND_WITH_INV && !is_local(w) &&
	    !is_atomic_write(w))
		return;
	if (t->service == ROVE_SVC_UC &&
	    (is_read_or_atomic(w) || wqe->opcode == ROVE_WR_SEND_WITH_INV))
		return;
	if (wqe->flags & ROVE_WR_INLINE) {
		if (wqe->inline_len > t->max_inline ||
		    (is_read_or_atomic(w) && !is_atomic_write(w)))
			return;
		length = wqe->inline_len;
	} else {
		if (wqe->num_sge > t->max_sge_send)
			return;
		for (i = 0; i < wqe->num_sge; i++)
			length += wqe->sge[i].length;
	}
	if (is_read_or_atomic(w) && !t->max_rd_atomic)
		return;
	if (length > ROVE_MAX_MSG ||
	    (is_atomic(w) && length < sizeof(u64)) ||
	    (is_atomic_write(w) && length != sizeof(u64))) {
		w->status = ROVE_WC_LOC_LEN_ERR;
		return;
	}
	w->length = is_atomic(w) ? sizeof(u64) : length;
	w->status = ROVE_WC_SUCCESS;
}

static bool fetch(struct rove_tqp *t)
{
	struct rove_requester *req = &t->req;
	struct rove_swqe *w;
	int ret;

	if (t->state != ROVE_TQP_RTS || req->fetched - req->done >= req->depth)
		return false;
	w = rove_swqe(req, req->fetched);
	ret = rove_env_sq_fetch(t, w);
	if (ret < 0 && last_words(t))
		rove_tqp_bad_ring(t);
	if (ret <= 0)
		return false;
	validate(t, w);
	req->fetched++;
	return true;
}

/* Is the peer, by the credits it told us, out of receive work requests? */
static bool out_of_credits(const struct rove_requester *req, u32 ssn)
{
	return req->lsn_valid && psn_diff(ssn, req->lsn) > 0;
}

/*
 * May one more READ or atomic be outstanding?  As many are as the peer has resources for, while
 * a program streams.  If one went whenever one is answered, each would cross the network
 * alone, and so would each response, for ever (as with TCP's silly windows): a quarter of
 * them go together.  Short responses keep together anyway: those of up to two packets
 * share a train, as longer ones do not, whose middle is without an AETH.  Very long ones fill
 * trains of their own, and what is posted behind them would wait for long.
 */
static bool may_ask(struct rove_tqp *t, const struct rove_swqe *w)
{
	struct rove_requester *req = &t->req;

	if (req->rd_outstanding >= t->max_rd_atomic)
		req->rd_full = true;
	else if (req->rd_outstanding <= t->max_rd_atomic - t->max_rd_atomic / 4 ||
		 w->length <= 2 * t->mtu || w->length > ROVE_RUN_BUDGET)
		req->rd_full = false;
	return !req->rd_full;
}

/* May the next work request begin?  If so it gets its PSNs. */
static bool start(struct rove_tqp *t, struct rove_swqe *w)
{
	struct rove_requester *req = &t->req;
	bool rd = is_read_or_atomic(w);

	if (w->wqe.flags & ROVE_WR_FENCE && req->rd_outstanding)
		return false;
	if (rd && !t->max_rd_atomic) {
		/* Taken away in SQD. */
		w->status = ROVE_WC_LOC_QP_OP_ERR;
		return false;
	}
	if (rd && !may_ask(t, w))
		return false;
	/* With nothing under way, one message may go to ask for credits. */
	if (takes_receive(w) && req->psn_una != req->psn_next &&
	    out_of_credits(req, psn_add(req->ssn, 1)))
		return false;
	if (rd)
		req->rd_outstanding++;
	req->ssn = psn_add(req->ssn, 1);
	w->first_psn = req->psn_next;
	w->npkts = rove_npkts(t, w->length);
	w->started = true;
	return true;
}

/* Does the program wait for this message's completion, and not have one soon anyway? */
static bool is_waited_for(const struct rove_tqp *t, const struct rove_swqe *w, u32 next)
{
	const struct rove_requester *req = &t->req;
	s32 enough = min(ROVE_ACK_MESSAGES * w->npkts, req->window / 8);

	return (t->sq_sig_all || w->wqe.flags & ROVE_WR_SIGNALED) &&
	       psn_diff(next, req->psn_ackreq) >= max(enough, ROVE_ACK_SPACING);
}

/* What is sent last should ask for an acknowledgment; is this last? */
static bool want_ackreq(struct rove_tqp *t, const struct rove_swqe *w, u32 next,
			bool end_of_message)
{
	struct rove_requester *req = &t->req;

	/* What is held back might wait for longer than the RTO. */
	if (psn_diff(next, req->psn_ackreq) >= (s32)(req->cwnd / 4) || unlikely(t->paced))
		return true;
	if (end_of_message && req->rnr_probe)
		return true;
	if (!end_of_message || req->cur + 1 != req->fetched)
		return false;
	/* What follows is likely of the same kind; a WRITE needs no credits. */
	return t->state == ROVE_TQP_SQD || !rove_env_sq_pending(t) ||
	       (takes_receive(w) && out_of_credits(req, psn_add(req->ssn, 1)));
}

/* Account for packets sent up to, not including, @next. */
static void advance(struct rove_tqp *t, u32 next, bool ackreq, u64 now)
{
	struct rove_requester *req = &t->req;
	bool again = psn_diff(next, req->psn_top) <= 0;

	if (psn_diff(req->psn_next, req->psn_top) < 0)
		rove_env_count(t, ROVE_CNT_RETRANS);
	req->psn_next = next;
	if (!again)
		req->psn_top = next;
	if (ackreq) {
		req->psn_ackreq = next;
		if (!req->rtt_since && next == req->psn_top) {
			req->rtt_psn = next;
			req->rtt_since = now;
			req->rtt_again = again;
		}
	}
	if (req->rto_deadline == ROVE_NO_DEADLINE)
		restart_rto(t, now);
	catch_up(t);
}

/* Packets @idx to @idx + @n of a SEND or WRITE. */
static struct rove_burst payload_burst(const struct rove_tqp *t,
				       const struct rove_swqe *w, u32 idx, u32 n)
{
	struct rove_burst b = {
		.kind = w->wqe.opcode == ROVE_WR_RDMA_WRITE ||
			w->wqe.opcode == ROVE_WR_RDMA_WRITE_WITH_IMM ?
			ROVE_BURST_WRITE : ROVE_BURST_SEND,
		.service = t->service,
		.first = !idx,
		.last = idx + n == w->npkts,
		.solicited = w->wqe.flags & ROVE_WR_SOLICITED &&
			     takes_receive(w),
		.psn = psn_add(w->first_psn, idx),
		.npkts = n,
		.mtu = t->mtu,
		.offset = idx * t->mtu,
		.wqe = w,
		.va = w->wqe.remote_addr,
		.rkey = w->wqe.rkey,
		.dma_len = w->length,
	};

	b.length = b.last ? w->length - b.offset : n * t->mtu;
	return b;
}

/* UC: the packets are gone.  @last: so is the message, which is complete. */
static void forget(struct rove_tqp *t, bool last)
{
	t->req.psn_una = t->req.psn_next;
	if (last)
		retire(t);
}

static int emit_payload(struct rove_tqp *t, const struct rove_swqe *w, u64 now)
{
	struct rove_requester *req = &t->req;
	u32 idx = psn_diff(req->psn_next, w->first_psn);
	s32 room = req->cwnd - psn_diff(req->psn_next, req->psn_una);
	struct rove_burst b;
	bool waited;
	u32 next;
	int ret;

	if (room <= 0)
		return -EBUSY;
	b = payload_burst(t, w, idx, min3(w->npkts - idx, (u32)room,
					  rove_burst_pkts(t)));
	next = psn_add(b.psn, b.npkts);
	waited = b.last && is_waited_for(t, w, next);
	b.ackreq = t->service != ROVE_SVC_UC && (waited || want_ackreq(t, w, next, b.last));
	ret = rove_env_emit(t, &b);
	if (!ret) {
		/* The peer is to answer that, while we go on with what is behind it. */
		req->budget = waited && b.ackreq ? 0 : req->budget - (int)rove_burst_cost(&b);
		advance(t, next, b.ackreq, now);
		if (t->service == ROVE_SVC_UC)
			forget(t, b.last);
	}
	return ret;
}

/*
 * A READ is asked for again in pieces, lest the response be too much at once, again.  The
 * peer repeats no more than what one request has asked for, and which of several it has
 * taken is not known.  So pieces end at multiples of their size, a power of two, that is the
 * smallest at first and doubles from one piece to the next at most: none goes on beyond
 * where one ends that was asked for earlier.
 */
static u32 piece_size(const struct rove_requester *req, u32 idx)
{
	if (!idx || !req->read_piece)
		return ROVE_READ_PIECE;
	return 2 * req->read_piece <= req->cwnd ? 2 * req->read_piece : req->read_piece;
}

/* Packets from @idx on that may be asked for again at once, in pieces of this size. */
static u32 asked_again(const struct rove_requester *req, const struct rove_swqe *w, u32 idx,
		       u32 piece)
{
	u32 before = psn_diff(req->psn_top, psn_add(w->first_psn, idx));

	return min3(w->npkts - idx, before, piece - idx % piece);
}

/* Ask for a response: to an atomic, or for the packets @idx to @idx + @n of a READ's. */
static int emit_request(struct rove_tqp *t, const struct rove_swqe *w, u32 idx, u32 n)
{
	struct rove_burst b = {
		.kind = ROVE_BURST_ATOMIC,
		.service = t->service,
		.first = true,
		.last = true,
		.psn = psn_add(w->first_psn, idx),
		.npkts = 1,
		.mtu = t->mtu,
		.wqe = w,
		.va = w->wqe.remote_addr + (u64)idx * t->mtu,
		.rkey = w->wqe.rkey,
	};

	if (w->wqe.opcode == ROVE_WR_RDMA_READ) {
		b.kind = ROVE_BURST_READ_REQUEST;
		b.dma_len = idx + n == w->npkts ? w->length - idx * t->mtu : n * t->mtu;
	} else if (is_atomic_write(w)) {
		b.kind = ROVE_BURST_ATOMIC_WRITE;
		b.length = w->length;
		b.dma_len = w->length;
	}
	return rove_env_emit(t, &b);
}

static int emit_read(struct rove_tqp *t, const struct rove_swqe *w, u64 now)
{
	struct rove_requester *req = &t->req;
	u32 idx = psn_diff(req->psn_next, w->first_psn);
	u32 n = min(w->npkts - idx, ROVE_READ_CHUNK);
	/* This packet, and perhaps some behind it, were asked for before. */
	bool again = psn_diff(req->psn_top, req->psn_next) > 0;
	s32 room = req->cwnd - psn_diff(req->psn_next, req->psn_una);
	u32 piece = 0;
	int ret;

	/* The next piece of a long READ waits for the one before it. */
	if (idx && req->psn_next != req->psn_una)
		return -EBUSY;
	/*
	 * Its response is what fills the queues on the way: once these have lost some no more
	 * is asked for than may go, but for the end of the last piece.
	 */
	if (req->cwnd < req->window) {
		if (room <= 0)
			return -EBUSY;
		n = min_t(u32, n, max_t(u32, room, ROVE_READ_PIECE));
	}
	if (again) {
		piece = piece_size(req, idx);
		n = asked_again(req, w, idx, piece);
	}
	ret = emit_request(t, w, idx, n);
	if (ret)
		return ret;
	req->read_piece = piece;
	/* The peer takes each piece for a message. */
	if (idx && !again)
		req->ssn = psn_add(req->ssn, 1);
	advance(t, psn_add(req->psn_next, n), true, now);
	return 0;
}

static int emit_atomic(struct rove_tqp *t, const struct rove_swqe *w, u64 now)
{
	int ret = emit_request(t, w, 0, 1);

	if (!ret)
		advance(t, psn_add(w->first_psn, 1), true, now);
	return ret;
}

static int emit(struct rove_tqp *t, const struct rove_swqe *w, u64 now)
{
	if (w->wqe.opcode == ROVE_WR_RDMA_READ)
		return emit_read(t, w, now);
	if (is_read_or_atomic(w))
		return emit_atomic(t, w, now);
	return emit_payload(t, w, now);
}

/* Packet @idx of a SEND or WRITE again, which asks for an acknowledgment this time. */
static int emit_asking(struct rove_tqp *t, const struct rove_swqe *w, u32 idx)
{
	struct rove_burst b = payload_burst(t, w, idx, 1);

	b.ackreq = true;
	return rove_env_emit(t, &b);
}

/*
 * Nothing more can be sent and the last packet did not ask for an
 * acknowledgment, because more was expected to follow: send it again, asking.
 */
static void probe(struct rove_tqp *t, u64 now)
{
	struct rove_requester *req = &t->req;
	u32 last = req->cur, next;
	struct rove_swqe *w;

	/* The oldest one is never local: such a one is not waited for. */
	do {
		if (last == req->done)
			return;
		w = rove_swqe(req, --last);
	} while (!w->npkts);
	next = psn_add(w->first_psn, w->npkts);
	if (psn_diff(req->psn_ackreq, next) >= 0 || is_read_or_atomic(w))
		return;
	if (emit_asking(t, w, w->npkts - 1))
		return;
	req->psn_ackreq = next;
	restart_rto(t, now);
}

/*
 * Invalidate waits until no earlier request can need the key for a retry.  To let
 * a key stand for something need not wait: it is done, in its turn, and completes
 * when all before it has.
 */
static bool run_local(struct rove_tqp *t, struct rove_swqe *w)
{
	struct rove_requester *req = &t->req;

	if (req->cur != req->done && w->wqe.opcode == ROVE_WR_LOCAL_INV)
		return false;
	if (w->wqe.flags & ROVE_WR_FENCE && req->rd_outstanding)
		return false;
	/* They leave the ring, or are passed over, all in one go. */
	if (req->cur - req->done >= ROVE_LOCALS_MAX)
		return false;
	/* A program can post such as fast as they are done. */
	req->budget -= ROVE_PACKET_COST;
	w->status = rove_env_local(t, &w->wqe);
	if (w->status)
		return true;
	w->length = 0;
	w->first_psn = req->psn_next;
	w->started = true;
	if (req->cur == req->done)
		retire(t);
	else
		req->cur++;
	return true;
}

/* One step; false when there is nothing to do or nothing may be done now. */
static bool step(struct rove_tqp *t, u64 now)
{
	struct rove_requester *req = &t->req;
	struct rove_swqe *w;
	int ret;

	if (is_paused(req) || (t->state != ROVE_TQP_RTS && t->state != ROVE_TQP_SQD))
		return false;
	if (req->budget <= 0 && (req->cur != req->fetched || rove_env_sq_pending(t))) {
		rove_env_defer_send(t);
		return false;
	}
	if (req->cur == req->fetched && !fetch(t)) {
		/* Nothing follows that the last packet expected: local work, or SQD came. */
		if (req->cur != req->done &&
		    (t->state == ROVE_TQP_SQD || !rove_swqe(req, req->cur - 1)->npkts))
			probe(t, now);
		return false;
	}
	w = rove_swqe(req, req->cur);
	if (w->status) {
		/* It fails in its turn, when all before it is complete. */
		if (req->cur != req->done)
			probe(t, now);
		else
			fail(t, w->status, 0);
		return false;
	}
	if (is_local(w)) {
		if (run_local(t, w))
			return true;
		probe(t, now);
		return false;
	}
	if (!w->started && !start(t, w)) {
		probe(t, now);
		return w->status;
	}
	if (req->rnr_probe && req->cur != req->done)
		return false;
	ret = emit(t, w, now);
	if (ret == -EFAULT) {
		w->status = ROVE_WC_LOC_PROT_ERR;
		return true;
	}
	/* It may take long, and what was sent before has counted on it to ask. */
	if (ret == -EINPROGRESS)
		probe(t, now);
	return !ret;
}

void rove_req_run(struct rove_tqp *t, u64 now)
{
	t->req.budget = ROVE_RUN_BUDGET;
	while (step(t, now))
		;
	if (t->state == ROVE_TQP_SQE)
		rove_req_flush(t);
	rove_req_check_drained(t);
}

void rove_req_check_drained(struct rove_tqp *t)
{
	struct rove_requester *req = &t->req;

	if (t->state == ROVE_TQP_SQD && req->done == req->fetched &&
	    !req->drained) {
		req->drained = true;
		rove_env_event(t, ROVE_EVENT_SQ_DRAINED);
	}
}

/*
 * The peer says how long to wait at least (9.7.5.2.8). Where it is not ready time after time
 * the wait doubles from 10 us to 1.28 ms, if it asks for less: a QP that retries for ever
 * is not to keep this machine busy.
 */
static void rx_rnr_nak(struct rove_tqp *t, u8 code, u64 now)
{
	struct rove_requester *req = &t->req;

	rove_env_count(t, ROVE_CNT_RNR_NAK_RX);
	/* Perhaps it waits for an acknowledgment that goes along with what it is to receive. */
	t->resp.never_hold = true;
	/* One NAK, one retry, however often the network repeats it. */
	if (is_paused(req))
		return;
	if (t->rnr_retry != ROVE_RNR_RETRY_INFINITE && req->rnr_retried >= t->rnr_retry) {
		rove_env_count(t, ROVE_CNT_RNR_EXC);
		fail(t, ROVE_WC_RNR_RETRY_EXC_ERR, 0);
		return;
	}
	pause_until(t, now + max(rove_rnr_delay(code), 10000ULL << req->rnr_retried));
	if (req->rnr_retried < ROVE_RNR_RETRY_INFINITE)
		req->rnr_retried++;
	/* The peer is there: what came before was not its silence. */
	req->retried = 0;
}

static void rx_nak(struct rove_tqp *t, u8 syndrome)
{
	static const u8 status[] = {
		[ROVE_NAK_INV_REQ] = ROVE_WC_REM_INV_REQ_ERR,
		[ROVE_NAK_REM_ACCESS] = ROVE_WC_REM_ACCESS_ERR,
		[ROVE_NAK_REM_OP] = ROVE_WC_REM_OP_ERR,
	};
	u8 code = syndrome & ROVE_AETH_VALUE;

	if (code == ROVE_NAK_PSN_SEQ) {
		rove_env_count(t, ROVE_CNT_SEQ_NAK_RX);
		/*
		 * Some peers (rdma_rxe) NAK what was sent behind a request that
		 * got an RNR NAK; that wait will end in a retry anyway.  One that is
		 * repeated, or comes late, tells of what has been sent again.
		 */
		if (!is_paused(&t->req) && !t->req.went_back)
			retry(t);
	} else if (code < ARRAY_SIZE(status)) {
		rove_env_count(t, ROVE_CNT_NAK_RX);
		fail(t, status[code], syndrome);
	} else {
		rove_env_count(t, ROVE_CNT_RX_UNEXPECTED);
	}
}

static u32 lsn_of(const struct rove_pkt *pkt)
{
	return psn_add(pkt->msn, rove_credits_decode(pkt->syndrome & ROVE_AETH_VALUE));
}

static void rx_credits(struct rove_requester *req, const struct rove_pkt *pkt)
{
	req->lsn_valid = (pkt->syndrome & ROVE_AETH_VALUE) != ROVE_AETH_NO_CREDIT;
	req->lsn = lsn_of(pkt);
}

/*
 * A response acknowledges what is before it, and may be the only one to tell of credits.
 * Not all peers do; and one that is repeated tells of old ones.
 */
static void rx_more_credits(struct rove_requester *req, const struct rove_pkt *pkt)
{
	if (pkt->op->flags & ROVE_OPF_AETH && req->lsn_valid &&
	    (pkt->syndrome & ROVE_AETH_VALUE) != ROVE_AETH_NO_CREDIT &&
	    psn_diff(lsn_of(pkt), req->lsn) > 0)
		req->lsn = lsn_of(pkt);
}

/*
 * All that was sent has arrived, and ends with a message: the peer's count is the right one.
 * It took each piece for a message of a READ of which it had not had the whole request.
 */
static void count_anew(struct rove_requester *req, const struct rove_pkt *pkt)
{
	if (pkt->op->flags & ROVE_OPF_AETH && req->psn_una == req->psn_top &&
	    (req->cur == req->fetched || !rove_swqe(req, req->cur)->started))
		req->ssn = pkt->msn;
}

/*
 * The probe is answered, but not all that had been sent by then.  That is lost; or the answer is
 * to what came by first: see what follows.
 */
static void await_rest(struct rove_tqp *t, u64 now)
{
	struct rove_requester *req = &t->req;

	if (psn_diff(req->psn_una, req->probe_top) >= 0)
		return;
	req->lost = true;
	probe_at(req, now + ROVE_PROBE_NS);
}

static void rx_ack(struct rove_tqp *t, const struct rove_pkt *pkt, u64 now)
{
	struct rove_requester *req = &t->req;
	u8 value = pkt->syndrome & ROVE_AETH_VALUE;
	bool is_ack = (pkt->syndrome & ROVE_AETH_KIND) == ROVE_AETH_ACK;
	bool probed = req->probing && psn_diff(pkt->psn, req->probe_psn) >= 0;

	/* An ACK covers its own PSN, a NAK all before it. */
	acknowledge(t, is_ack ? psn_add(pkt->psn, 1) : pkt->psn, now);
	if (is_ack) {
		rx_credits(req, pkt);
		if (psn_diff(pkt->psn, req->psn_una) >= 0) {
			implied_nak(t);
		} else if (probed && (pkt->psn == req->probe_psn ||
				      is_read_or_atomic(rove_swqe(req, req->done)))) {
			/*
			 * It has the packet that asked, and nothing of what was sent
			 * before that; or the answer to a READ or an atomic would have
			 * come before.
			 */
			await_rest(t, now);
		}
		return;
	}
	if (pkt->psn != req->psn_una) {
		implied_nak(t);
		return;
	}
	switch (pkt->syndrome & ROVE_AETH_KIND) {
	case ROVE_AETH_RNR_NAK:
		rx_rnr_nak(t, value, now);
		break;
	case ROVE_AETH_NAK:
		rx_nak(t, pkt->syndrome);
		break;
	default:
		rove_env_count(t, ROVE_CNT_RX_UNEXPECTED);
	}
}

/*
 * Memory for the response is on its way.  It is asked for once more when it may be
 * there, alone; the peer has done nothing wrong, so this costs no retry.  Memory that is long
 * in coming is looked for less and less often, as the responder has it.
 */
static void wait_for_page(struct rove_tqp *t, u64 now)
{
	struct rove_requester *req = &t->req;

	rove_env_count(t, ROVE_CNT_PAGE_WAIT);
	pause_until(t, now + (ROVE_PAGE_WAIT_NS << req->page_waits));
	if (req->page_waits < ROVE_PAGE_WAITS)
		req->page_waits++;
}

/*
 * The response that the oldest work request waits for, or NULL: everything
 * before @pkt is acknowledged by it, what is missing is asked for again.
 */
static struct rove_swqe *rx_response(struct rove_tqp *t,
				     const struct rove_pkt *pkt, u64 now)
{
	struct rove_requester *req = &t->req;
	struct rove_swqe *w;

	acknowledge(t, pkt->psn, now);
	if (pkt->psn != req->psn_una) {
		implied_nak(t);
		return NULL;
	}
	w = rove_swqe(req, req->done);
	if (!w->started || !is_read_or_atomic(w) ||
	    !is_atomic(w) !=
	    !!(pkt->op->flags & ROVE_OPF_READ)) {
		rove_env_count(t, ROVE_CNT_RX_UNEXPECTED);
		return NULL;
	}
	rx_more_credits(req, pkt);
	return w;
}

/* The packet is the response that was waited for, or its next part. */
static void responded(struct rove_tqp *t, const struct rove_pkt *pkt, bool complete, u64 now)
{
	/* Where it ends, which may be within the response to what was asked for at first. */
	bool probed = t->req.probing && pkt->op->flags & ROVE_OPF_LAST;

	if (complete)
		retire(t);
	progress(t, psn_add(pkt->psn, 1), now);
	if (probed)
		await_rest(t, now);
}

/* Bring a READ's data to its place: false if that is not possible, or not yet. */
static bool place(struct rove_tqp *t, const struct rove_swqe *w, const struct rove_pkt *pkt,
		  u32 offset, u64 now)
{
	int ret = rove_env_scatter(t, w->wqe.sge, w->wqe.num_sge, offset, pkt, NULL,
				   pkt->payload_len);

	if (likely(!ret))
		return true;
	if (ret == -EAGAIN)
		wait_for_page(t, now);
	else
		fail(t, ROVE_WC_LOC_PROT_ERR, 0);
	return false;
}

static void rx_read_response(struct rove_tqp *t, const struct rove_pkt *pkt,
			     u64 now)
{
	struct rove_swqe *w = rx_response(t, pkt, now);
	u32 idx, offset, expect;

	if (!w)
		return;
	idx = psn_diff(pkt->psn, w->first_psn);
	offset = idx * t->mtu;
	/* What says that an ATOMIC WRITE is done is a response without data. */
	expect = is_atomic_write(w) ? 0 : min(w->length - offset, t->mtu);
	if (pkt->payload_len != expect ||
	    (idx == w->npkts - 1 && !(pkt->op->flags & ROVE_OPF_LAST))) {
		fail(t, ROVE_WC_BAD_RESP_ERR, 0);
		return;
	}
	if (expect && !place(t, w, pkt, offset, now))
		return;
	responded(t, pkt, idx == w->npkts - 1, now);
}

static void rx_atomic_ack(struct rove_tqp *t, const struct rove_pkt *pkt,
			  u64 now)
{
	struct rove_swqe *w = rx_response(t, pkt, now);
	int ret;

	if (!w)
		return;
	ret = rove_env_scatter(t, w->wqe.sge, w->wqe.num_sge, 0, NULL,
			       &pkt->atomic_orig, sizeof(pkt->atomic_orig));
	if (ret == -EAGAIN) {
		wait_for_page(t, now);
		return;
	}
	if (ret) {
		fail(t, ROVE_WC_LOC_PROT_ERR, 0);
		return;
	}
	responded(t, pkt, true, now);
}

/* What a response lets go is sent once the packets at hand are handled. */
static void go_on(struct rove_tqp *t)
{
	if (t->state != ROVE_TQP_ERR &&
	    (t->req.cur != t->req.fetched || rove_env_sq_pending(t)))
		rove_env_defer_send(t);
}

static noinline void rx_any(struct rove_tqp *t, const struct rove_pkt *pkt, u64 now)
{
	struct rove_requester *req = &t->req;

	if (t->state != ROVE_TQP_RTS && t->state != ROVE_TQP_SQD) {
		rove_env_count(t, ROVE_CNT_RX_BAD_STATE);
		return;
	}
	/* An ACK once more, unsolicited: new credits (9.7.7.2). */
	if ((pkt->opcode & ~ROVE_SVC_MASK) == ROVE_OP_ACKNOWLEDGE &&
	    (pkt->syndrome & ROVE_AETH_KIND) == ROVE_AETH_ACK &&
	    pkt->psn == psn_add(req->psn_una, -1)) {
		rx_credits(req, pkt);
		go_on(t);
		return;
	}
	/* Old news, or an answer to what was never sent. */
	if (psn_diff(pkt->psn, req->psn_una) < 0 ||
	    psn_diff(pkt->psn, req->psn_top) >= 0) {
		rove_env_count(t, ROVE_CNT_RX_UNEXPECTED);
		return;
	}
	if (pkt->op->flags & ROVE_OPF_READ)
		rx_read_response(t, pkt, now);
	else if (pkt->op->flags & ROVE_OPF_ATOMIC)
		rx_atomic_ack(t, pkt, now);
	else
		rx_ack(t, pkt, now);
	count_anew(req, pkt);
	rove_req_check_drained(t);
	go_on(t);
}

/*
 * The next packet of the response to a READ of RC's, with more of it to come, that came
 * together with the one before: of what progress() does only the PSN is left to do.  What
 * most of a stream of READs is.
 */
static bool is_next_middle(const struct rove_tqp *t, const struct rove_pkt *pkt, u64 now)
{
	const struct rove_requester *req = &t->req;
	const struct rove_swqe *w = rove_swqe(req, req->done);

	return pkt->opcode == ROVE_OP_READ_RESP_MIDDLE && pkt->psn == req->psn_una &&
	       pkt->payload_len == t->mtu && psn_diff(req->psn_next, pkt->psn) > 1 &&
	       req->progress_at == now && req->cwnd == req->window &&
	       t->state == ROVE_TQP_RTS && w->wqe.opcode == ROVE_WR_RDMA_READ &&
	       psn_diff(pkt->psn, psn_add(w->first_psn, w->npkts - 1)) < 0;
}

void rove_req_rx(struct rove_tqp *t, const struct rove_pkt *pkt, u64 now)
{
	struct rove_requester *req = &t->req;
	const struct rove_swqe *w;

	if (!is_next_middle(t, pkt, now)) {
		rx_any(t, pkt, now);
		return;
	}
	w = rove_swqe(req, req->done);
	if (place(t, w, pkt, psn_diff(pkt->psn, w->first_psn) * t->mtu, now))
		req->psn_una = psn_add(pkt->psn, 1);
}

/*
 * The peer has been silent for longer than it takes to answer.  What was sent last may
 * be lost, and nobody there knows of it; or its NAK, or the packet that this
 * asked for.  The oldest packet, sent again, finds out, and costs no retry: what
 * its acknowledgment does not cover has been lost.  Of a READ, that is the first piece of what
 * is missing, as if gone back to.
 */
static void probe_oldest(struct rove_tqp *t, u64 now)
{
	struct rove_requester *req = &t->req;
	const struct rove_swqe *w = rove_swqe(req, req->done);
	u32 idx = psn_diff(req->psn_una, w->first_psn), n = 1;

	probe_at(req, ROVE_NO_DEADLINE);
	if (w->wqe.opcode == ROVE_WR_RDMA_READ) {
		n = asked_again(req, w, idx, ROVE_READ_PIECE);
		/*
		 * A peer that is asked again for a part takes it for a retry, and forgets what
		 * it has still to answer behind that.
		 */
		if (n < w->npkts && psn_diff(req->psn_next, psn_add(w->first_psn, w->npkts)) > 0)
			return;
	}
	if (psn_diff(req->rtt_psn, psn_add(req->psn_una, n)) <= 0)
		req->rtt_since = 0;
	if (!(is_read_or_atomic(w) ? emit_request(t, w, idx, n) : emit_asking(t, w, idx))) {
		rove_env_count(t, ROVE_CNT_PROBE);
		req->probe_psn = psn_add(req->psn_una, n - 1);
		req->probe_top = req->psn_next;
		req->probing = true;
	}
	req->probe_wait *= 2;
	probe_at(req, now + req->probe_wait);
}

static void silence(struct rove_tqp *t, u64 now)
{
	struct rove_requester *req = &t->req;
	u64 lag = rove_env_lag(t);

	if (!req->probe_put_off &&
	    (lag > ROVE_PROBE_NS || now - req->probe_deadline > ROVE_PROBE_NS)) {
		/* This machine is busy: the answer may be here already. */
		req->probe_put_off = true;
		probe_at(req, now + max(2 * lag, ROVE_PROBE_NS));
	} else if (req->lost) {
		shrink(req);
		go_back(t);
		rove_req_run(t, now);
	} else {
		probe_oldest(t, now);
	}
}

/* No retry is used up for what this machine is late with, but no silence is excused twice. */
static bool may_be_late(struct rove_tqp *t, u64 now)
{
	struct rove_requester *req = &t->req;
	u64 late = LAGS * rove_env_lag(t);

	if (req->rto_put_off || late <= rto(t))
		return false;
	req->rto_put_off = true;
	set_alarm(req, now + late, req->probe_deadline);
	return true;
}

void rove_req_timer(struct rove_tqp *t, u64 now)
{
	struct rove_requester *req = &t->req;

	if (now >= req->rnr_deadline) {
		req->rnr_deadline = ROVE_NO_DEADLINE;
		rove_req_run(t, now);
	}
	if (now >= req->rto_deadline && !may_be_late(t, now)) {
		rove_env_count(t, ROVE_CNT_TIMEOUT);
		if (retry(t))
			rove_req_run(t, now);
	} else if (now >= req->probe_deadline) {
		silence(t, now);
	}
}

void rove_req_retime(struct rove_tqp *t, u64 now)
{
	restart_rto(t, now);
}

void rove_req_flush(struct rove_tqp *t)
{
	struct rove_requester *req = &t->req;
	u32 i;

	stop_rto(req);
	req->rnr_deadline = ROVE_NO_DEADLINE;
	while (req->done != req->fetched)
		complete_send(t, take_oldest(t), ROVE_WC_WR_FLUSH_ERR, 0);
	for (i = 0; i < ROVE_FLUSH_MAX; i++) {
		struct rove_swqe *w = rove_swqe(req, req->fetched);
		int ret = req->depth ? rove_env_sq_fetch(t, w) : 0;

		/* In SQE somebody would look at it again and again. */
		if (ret < 0 && t->state == ROVE_TQP_SQE) {
			rove_tqp_bad_ring(t);
			return;
		}
		if (ret <= 0)
			break;
		w->length = 0;
		req->fetched++;
		complete_send(t, take_oldest(t), ROVE_WC_WR_FLUSH_ERR, 0);
	}
	if (i == ROVE_FLUSH_MAX)
		rove_env_defer_send(t);
}
