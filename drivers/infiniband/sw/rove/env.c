// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * env.c - the kernel as the transport's environment: queues, completions,
 * timers, events (transport/env.h; data.c has the part that moves bytes, net_ud.c that about
 * a datagram's way, xrc.c that about SRQs that are found by number)
 *
 * Called by the transport with the QP locked.
 */
#include <linux/hrtimer.h>
#include "defer.h"
#include "doorbell.h"
#include "fetch.h"
#include "net.h"
#include "qp.h"
#include "srq.h"
#include "xrc.h"
#include "trace.h"
#include "transport/env.h"

int rove_env_sq_fetch(struct rove_tqp *t, struct rove_swqe *w)
{
	struct rove_ring *r = &tqp_to_rqp(t)->sq;
	int n = r->depth ? rove_ring_avail(r) : 0;

	if (n <= 0)
		return n;
	rove_take_send(r, w);
	trace_rove_wr(tqp_to_rqp(t), &w->wqe);
	return 1;
}

bool rove_env_sq_pending(struct rove_tqp *t)
{
	struct rove_ring *r = &tqp_to_rqp(t)->sq;

	return r->depth && rove_ring_avail(r);
}

void rove_env_sq_release(struct rove_tqp *t)
{
	/* Pairs with the load of who posts: the slot was read before. */
	smp_store_release(&tqp_to_rqp(t)->sq.hdr->cons, t->req.done);
}

int rove_env_rq_fetch(struct rove_tqp *t, struct rove_rwqe *w)
{
	struct rove_qp *qp = tqp_to_rqp(t);
	struct rove_ring *r = &qp->rq;
	int n;

	if (unlikely(!r->depth))
		return qp->srq ? rove_srq_fetch(qp->srq, w, t->max_sge_recv) : 0;
	n = rove_ring_avail(r);
	if (n <= 0)
		return n;
	rove_take_recv(r, w, t->max_sge_recv);
	return 1;
}

u32 rove_env_rq_credits(struct rove_tqp *t)
{
	struct rove_qp *qp = tqp_to_rqp(t);

	if (unlikely(!qp->rq.depth))
		/* Others may take what this one would tell of (9.7.7.2.5). */
		return t->srq ? ROVE_NO_CREDITS : 0;
	return max(rove_ring_avail(&qp->rq), 0);
}

/**
 * struct completions - what the QP that this CPU has locked has completed
 * @n: of @cqe in use
 * @recv: they are for the receive queue's CQ
 * @solicited: one of them is
 * @cqe: the completions
 *
 * Handed to the CQ together, for one lock and one barrier.  By rove_cpu.lock.
 */
struct completions {
	u32 n;
	bool recv;
	bool solicited;
	struct rove_cqe cqe[32];
};

static DEFINE_PER_CPU(struct completions, completions);

void rove_env_flush_cqes(struct rove_qp *qp)
{
	struct completions *c = this_cpu_ptr(&completions);
	struct rove_cq *cq = to_rcq(c->recv ? qp->ibqp.recv_cq :
					      qp->ibqp.send_cq);
	int ret;

	if (!c->n)
		return;
	rove_cq_note_peer(cq, qp->local_peer);
	ret = rove_cq_add(cq, c->cqe, c->n, c->solicited);
	c->n = 0;
	c->solicited = false;
	if (!ret)
		return;
	__set_bit(c->recv ? ROVE_QP_NOTIFY_RECV_CQ : ROVE_QP_NOTIFY_SEND_CQ,
		  &qp->deferred);
	if (ret < 0)
		__set_bit(ROVE_QP_CQ_OVERRUN, &qp->deferred);
}

void rove_env_complete(struct rove_tqp *t, struct rove_cqe *cqe, bool recv,
		       bool solicited)
{
	struct completions *c = this_cpu_ptr(&completions);

	if (c->n == ARRAY_SIZE(c->cqe) || (c->n && c->recv != recv))
		rove_env_flush_cqes(tqp_to_rqp(t));
	cqe->qp_num = t->qpn;
	trace_rove_complete(tqp_to_rqp(t), cqe, recv);
	if (unlikely(t->target)) {
		if (rove_xrc_complete(tqp_to_rqp(t), cqe, solicited) < 0)
			__set_bit(ROVE_QP_CQ_OVERRUN,
				  &tqp_to_rqp(t)->deferred);
		return;
	}
	c->recv = recv;
	c->solicited |= solicited;
	c->cqe[c->n++] = *cqe;
}

/* Does the peer say when it has arrived?  Of acknowledgments the newest counts. */
static bool acknowledged(const struct rove_burst *b)
{
	return b->service != ROVE_SVC_UC && b->kind != ROVE_BURST_READ_RESPONSE &&
	       b->kind != ROVE_BURST_ATOMIC_ACK && b->kind != ROVE_BURST_ATOMIC_WRITE_ACK;
}

int rove_env_emit(struct rove_tqp *t, const struct rove_burst *b)
{
	struct rove_qp *qp = tqp_to_rqp(t);
	int ret;

	if (unlikely(qp->pace.kbps) && rove_pace_wait(qp, b))
		return -EAGAIN;
	ret = rove_net_emit(qp, b);
	if (!acknowledged(b))
		qp->unacked_at = jiffies;
	if (unlikely(qp->pace.kbps) && !ret)
		rove_pace_sent(qp, b);
	trace_rove_tx(qp, b, ret);
	return ret;
}

void rove_env_defer_send(struct rove_tqp *t)
{
	struct rove_qp *qp = tqp_to_rqp(t);

	if (!qp->deferring)
		rove_defer(qp);
}

bool rove_env_hold_ack(struct rove_tqp *t, u64 now)
{
	return rove_doorbell_expects(tqp_to_rqp(t), now);
}

void rove_env_arm_timer(struct rove_tqp *t, u64 deadline)
{
	struct rove_qp *qp = tqp_to_rqp(t);

	if (qp->dead)
		return;
	/* It will let what memory was wanting for go on, and then ask for the deadline. */
	if (qp->no_memory && hrtimer_is_queued(&qp->timer) &&
	    ktime_before(hrtimer_get_expires(&qp->timer), ns_to_ktime(deadline)))
		return;
	hrtimer_start(&qp->timer, ns_to_ktime(deadline), HRTIMER_MODE_ABS_SOFT);
}

u64 rove_env_lag(struct rove_tqp *t)
{
	struct rove_qp *qp = tqp_to_rqp(t);

	/* Another machine's answer waits in no backlog but its own. */
	if (t->req.rtt && !qp->local_peer && skb_queue_empty_lockless(&qp->backlog))
		return 0;
	return rove_net_lag();
}

void rove_env_event(struct rove_tqp *t, enum rove_tqp_event event)
{
	struct rove_qp *qp = tqp_to_rqp(t);

	if (event == ROVE_EVENT_SQ_DRAINED && !qp->attr.en_sqd_async_notify)
		return;
	__set_bit(ROVE_QP_EVENT + event, &qp->deferred);
}

void rove_env_state_changed(struct rove_tqp *t)
{
	trace_rove_state(tqp_to_rqp(t));
	if (t->state == ROVE_TQP_ERR)
		rove_doorbell_error(tqp_to_rqp(t));
}

/* Counted because something is sent again, or no more. */
static bool is_retry(enum rove_counter counter)
{
	switch (counter) {
	case ROVE_CNT_TIMEOUT:
	case ROVE_CNT_SEQ_NAK_RX:
	case ROVE_CNT_IMPLIED_NAK:
	case ROVE_CNT_RNR_NAK_RX:
	case ROVE_CNT_RETRANS:
	case ROVE_CNT_PROBE:
	case ROVE_CNT_RETRY_EXC:
	case ROVE_CNT_RNR_EXC:
		return true;
	default:
		return false;
	}
}

void rove_env_count(struct rove_tqp *t, enum rove_counter counter)
{
	struct rove_qp *qp = tqp_to_rqp(t);

	this_cpu_inc(qp->stats->cnt[counter]);
	if (trace_rove_retry_enabled() && is_retry(counter))
		trace_rove_retry(qp, counter);
}
