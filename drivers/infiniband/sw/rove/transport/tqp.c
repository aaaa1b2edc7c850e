// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * tqp.c - a QP's states, and the way in for packets, posts and time
 */
#include <linux/build_bug.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include "engine.h"
#include "env.h"

void rove_tqp_reset(struct rove_tqp *t)
{
	struct rove_requester *req = &t->req;
	struct rove_responder *resp = &t->resp;

	*req = (struct rove_requester) {
		.ring = req->ring,
		.depth = req->depth,
		.stride = req->stride,
		.window = req->window,
		.rto_deadline = ROVE_NO_DEADLINE,
		.probe_deadline = ROVE_NO_DEADLINE,
		.alarm = ROVE_NO_DEADLINE,
		.rnr_deadline = ROVE_NO_DEADLINE,
	};
	*resp = (struct rove_responder) {
		.rwqe.sge = resp->rwqe.sge,
		.res = resp->res,
		.replies = resp->replies,
		.max_res = resp->max_res,
		.fatal = -1,
	};
	t->state = ROVE_TQP_RESET;
	t->timer = ROVE_NO_DEADLINE;
}

void rove_tqp_max_res(struct rove_tqp *t, u32 n)
{
	t->resp.max_res = n;
	t->resp.res_next = 0;
	t->resp.res_count = 0;
	t->resp.res_last = 0;
	t->resp.reply_head = 0;
	t->resp.reply_count = 0;
}

void rove_tqp_start_responder(struct rove_tqp *t, u32 psn)
{
	t->resp.epsn = psn & ROVE_PSN_MASK;
	t->state = ROVE_TQP_RTR;
}

void rove_tqp_start_requester(struct rove_tqp *t, u32 psn)
{
	struct rove_requester *req = &t->req;

	psn &= ROVE_PSN_MASK;
	req->psn_next = psn;
	req->psn_una = psn;
	req->psn_top = psn;
	req->psn_ackreq = psn;
	req->cwnd = min(req->window, ROVE_FIRST_CWND);
	req->ssthresh = req->window;
	req->step = 1;
	req->rtt_min = ROVE_NO_DEADLINE;
	req->rtt_next = ROVE_NO_DEADLINE;
	req->probe_wait = ROVE_FIRST_PROBE_NS;
	t->state = ROVE_TQP_RTS;
}

/* Keep one timer armed for the earliest deadline; too early does no harm. */
static void rearm(struct rove_tqp *t)
{
	u64 deadline = min(t->req.alarm, t->req.rnr_deadline);

	if (deadline < t->timer) {
		t->timer = deadline;
		rove_env_arm_timer(t, deadline);
	}
}

void rove_tqp_drain(struct rove_tqp *t)
{
	t->state = ROVE_TQP_SQD;
	t->req.drained = false;
	rove_req_check_drained(t);
}

void rove_tqp_resume(struct rove_tqp *t, u64 now)
{
	t->state = ROVE_TQP_RTS;
	rove_tqp_send(t, now);
}

void rove_tqp_retime(struct rove_tqp *t, u64 now)
{
	rove_req_retime(t, now);
	rearm(t);
}

void rove_tqp_error(struct rove_tqp *t)
{
	if (t->state == ROVE_TQP_ERR)
		return;
	t->state = ROVE_TQP_ERR;
	rove_env_state_changed(t);
	rove_tqp_flush(t);
	if (t->srq && t->service != ROVE_SVC_XRC)
		rove_env_event(t, ROVE_EVENT_LAST_WQE);
}

void rove_tqp_bad_ring(struct rove_tqp *t)
{
	rove_env_count(t, ROVE_CNT_BAD_RING);
	rove_env_event(t, ROVE_EVENT_QP_FATAL);
	rove_tqp_error(t);
}

void rove_tqp_flush(struct rove_tqp *t)
{
	rove_req_flush(t);
	rove_resp_flush(t);
}

void rove_tqp_send(struct rove_tqp *t, u64 now)
{
	if (unlikely(t->service == ROVE_SVC_UD)) {
		rove_ud_run(t);
		return;
	}
	if (t->resp.ack_held) {
		/* Behind what is posted, to share its train. */
		t->resp.ack_held = false;
		rove_req_run(t, now);
		rove_resp_run(t);
	} else {
		rove_resp_run(t);
		rove_req_run(t, now);
	}
	rearm(t);
}

void rove_tqp_answer(struct rove_tqp *t)
{
	if (t->service != ROVE_SVC_UD)
		rove_resp_run(t);
}

bool rove_tqp_waits(const struct rove_tqp *t)
{
	/* In SQE what is posted is flushed, by whoever looks. */
	if (t->state == ROVE_TQP_SQE)
		return false;
	return t->state != ROVE_TQP_RTS || t->req.cur != t->req.fetched ||
	       t->req.fetched - t->req.done >= t->req.depth;
}

/* Not RC, or not for this service. */
static noinline void rx_other(struct rove_tqp *t, const struct rove_pkt *pkt,
			      u64 now)
{
	if ((pkt->opcode & ROVE_SVC_MASK) != t->service)
		rove_env_count(t, ROVE_CNT_RX_BAD_SERVICE);
	else if (t->service == ROVE_SVC_UD)
		rove_ud_rx(t, pkt);
	else if (t->service == ROVE_SVC_UC)
		rove_uc_rx(t, pkt);
	else if (!(pkt->op->flags & ROVE_OPF_REQUEST) && !t->target)
		rove_req_rx(t, pkt, now);
	else if (pkt->op->flags & ROVE_OPF_REQUEST && t->target)
		rove_resp_rx(t, pkt, now);
	else
		rove_env_count(t, ROVE_CNT_RX_BAD_SERVICE);
	rearm(t);
}

void rove_tqp_rx(struct rove_tqp *t, const struct rove_pkt *pkt, u64 now)
{
	BUILD_BUG_ON(ROVE_SVC_RC);
	if (unlikely((pkt->opcode & ROVE_SVC_MASK) | t->service)) {
		rx_other(t, pkt, now);
		return;
	}
	if (pkt->op->flags & ROVE_OPF_REQUEST) {
		rove_resp_rx(t, pkt, now);
		return;
	}
	rove_req_rx(t, pkt, now);
	rearm(t);
}

void rove_tqp_timer(struct rove_tqp *t, u64 now)
{
	t->timer = ROVE_NO_DEADLINE;
	rove_req_timer(t, now);
	rearm(t);
}
