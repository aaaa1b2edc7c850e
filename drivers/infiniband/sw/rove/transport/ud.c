// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * ud.c - unreliable datagrams, those of the GSI among them (IBTA vol. 1, 9.8.3)
 *
 * A message is one packet, sent once and complete when it is on its way.  What
 * comes in is placed behind 40 bytes for its network header.  What cannot be is
 * dropped; nobody learns of it but the counters, and the receive work request
 * waits for the next datagram.
 *
 * At most one send work request is in hand: it waits for room to be sent.
 */
#include <linux/errno.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include "engine.h"
#include "env.h"

/* Payload of a packet at most, whatever the path. */
#define MAX_PAYLOAD	4096

/* The work request in hand is done with. */
static void complete_send(struct rove_tqp *t, const struct rove_swqe *w, u32 status)
{
	struct rove_requester *req = &t->req;
	struct rove_cqe cqe = {
		.wr_id = w->wqe.wr_id,
		.byte_len = w->length,
		.status = status,
		.opcode = ROVE_WC_SEND,
	};

	/* Its slot must be free before the completion is seen. */
	req->cur = ++req->done;
	rove_env_sq_release(t);
	if (status != ROVE_WC_SUCCESS || t->sq_sig_all ||
	    w->wqe.flags & ROVE_WR_SIGNALED)
		rove_env_complete(t, &cqe, false, status != ROVE_WC_SUCCESS);
}

/* Sum the payload and find what is wrong with a work request. */
static u32 validate(struct rove_tqp *t, struct rove_swqe *w)
{
	const struct rove_send_wqe *wqe = &w->wqe;
	u64 length = 0;
	u32 i;

	w->length = 0;
	if (wqe->opcode != ROVE_WR_SEND && wqe->opcode != ROVE_WR_SEND_WITH_IMM)
		return ROVE_WC_LOC_QP_OP_ERR;
	if (wqe->flags & ROVE_WR_INLINE) {
		if (wqe->inline_len > t->max_inline)
			return ROVE_WC_LOC_QP_OP_ERR;
		length = wqe->inline_len;
	} else {
		if (wqe->num_sge > t->max_sge_send)
			return ROVE_WC_LOC_QP_OP_ERR;
		for (i = 0; i < wqe->num_sge; i++)
			length += wqe->sge[i].length;
	}
	/* That is too long for any path, as the port will say. */
	w->length = min_t(u64, length, ROVE_MAX_MSG);
	return ROVE_WC_SUCCESS;
}

/* 1: there is a work request in hand; 0: none; an error: the ring is broken. */
static int fetch(struct rove_tqp *t)
{
	struct rove_requester *req = &t->req;
	struct rove_swqe *w = rove_swqe(req, req->done);
	int ret;

	if (req->fetched != req->done)
		return 1;
	if (!req->depth)
		return 0;
	ret = rove_env_sq_fetch(t, w);
	if (ret > 0) {
		req->fetched++;
		w->status = validate(t, w);
	}
	return ret;
}

/* Emit it: 0 also if it is too long, for that is no error (C10-93.1.1). */
static int emit(struct rove_tqp *t, const struct rove_swqe *w)
{
	struct rove_requester *req = &t->req;
	u32 qkey = w->wqe.remote_qkey;
	struct rove_burst b = {
		.kind = ROVE_BURST_DATAGRAM,
		.first = true,
		.last = true,
		.solicited = w->wqe.flags & ROVE_WR_SOLICITED,
		.psn = req->psn_next,
		.npkts = 1,
		.mtu = t->mtu,
		.length = w->length,
		.wqe = w,
		.rkey = qkey & ROVE_QKEY_OWN ? t->qkey : qkey,
		.dma_len = t->qpn,
	};
	int ret;

	ret = rove_env_dest(t, w->wqe.ah);
	if (ret < 0)
		return ret;
	if (w->length > ret) {
		rove_env_count(t, ROVE_CNT_UD_TX_TOO_LONG);
		req->budget -= ROVE_PACKET_COST;
		return 0;
	}
	t->dest_qpn = w->wqe.remote_qpn & ROVE_PSN_MASK;
	ret = rove_env_emit(t, &b);
	if (ret)
		return ret;
	rove_env_count(t, ROVE_CNT_UD_TX);
	req->psn_next = psn_add(req->psn_next, 1);
	req->psn_una = req->psn_next;
	req->budget -= rove_burst_cost(&b);
	return 0;
}

/*
 * One work request: false when there is none, or none may be sent now.  One in
 * error stops the send queue alone: what follows is flushed until the program
 * brings the QP back from SQE to RTS (10.3.1.7).
 */
static bool send_one(struct rove_tqp *t)
{
	struct rove_requester *req = &t->req;
	struct rove_swqe *w;
	u32 status;
	int ret;

	ret = fetch(t);
	if (ret < 0)
		rove_tqp_bad_ring(t);
	if (ret <= 0)
		return false;
	w = rove_swqe(req, req->done);
	status = w->status;
	if (!status) {
		ret = emit(t, w);
		if (ret == -EAGAIN || ret == -EINPROGRESS)
			return false;
		if (ret == -EFAULT)
			status = ROVE_WC_LOC_PROT_ERR;
		else if (ret)
			status = ROVE_WC_LOC_QP_OP_ERR;
	}
	if (status) {
		t->state = ROVE_TQP_SQE;
		rove_env_state_changed(t);
	}
	complete_send(t, w, status);
	return true;
}

void rove_ud_run(struct rove_tqp *t)
{
	struct rove_requester *req = &t->req;

	req->budget = ROVE_RUN_BUDGET;
	while (t->state == ROVE_TQP_RTS) {
		if (req->budget <= 0) {
			rove_env_defer_send(t);
			break;
		}
		if (!send_one(t))
			break;
	}
	if (t->state == ROVE_TQP_SQE)
		rove_req_flush(t);
	/* What had begun when SQD was asked for is sent yet. */
	if (t->state == ROVE_TQP_SQD && req->fetched != req->done)
		send_one(t);
	rove_req_check_drained(t);
}

static void complete_recv(struct rove_tqp *t, u32 status,
			  const struct rove_pkt *pkt)
{
	struct rove_responder *resp = &t->resp;
	struct rove_cqe cqe = {
		.wr_id = resp->rwqe.wr_id,
		.status = status,
		.opcode = ROVE_WC_RECV,
		.src_qp = pkt->src_qpn,
	};

	resp->have_rwqe = false;
	if (status == ROVE_WC_SUCCESS) {
		cqe.byte_len = ROVE_GRH_LEN + pkt->payload_len;
		cqe.wc_flags = ROVE_WC_WITH_GRH;
		cqe.sl = pkt->origin->sl;
		cqe.network_hdr_type = pkt->origin->network_hdr_type;
		cqe.vlan_id = pkt->origin->vlan_id;
		if (pkt->op->flags & ROVE_OPF_IMM) {
			cqe.wc_flags |= ROVE_WC_WITH_IMM;
			cqe.imm_data = pkt->imm;
		}
	}
	rove_env_complete(t, &cqe, true,
			  status != ROVE_WC_SUCCESS || pkt->solicited);
}

/* The receive queue is broken, or a work request in it: that ends the QP. */
static void fail_recv(struct rove_tqp *t, u32 status, const struct rove_pkt *pkt)
{
	if (t->resp.have_rwqe)
		complete_recv(t, status, pkt);
	rove_env_event(t, ROVE_EVENT_QP_FATAL);
	rove_tqp_error(t);
}

static bool need_rwqe(struct rove_tqp *t, const struct rove_pkt *pkt)
{
	int ret = rove_next_rwqe(t);

	if (!ret)
		rove_env_count(t, ROVE_CNT_UD_RX_NO_WQE);
	else if (ret < 0)
		fail_recv(t, ROVE_WC_LOC_QP_OP_ERR, pkt);
	return ret > 0;
}

static int place(struct rove_tqp *t, const struct rove_pkt *pkt)
{
	const struct rove_rwqe *w = &t->resp.rwqe;
	int ret;

	ret = rove_env_scatter(t, w->sge, w->num_sge, 0, NULL,
			       pkt->origin->grh, ROVE_GRH_LEN);
	if (!ret && pkt->payload_len)
		ret = rove_env_scatter(t, w->sge, w->num_sge, ROVE_GRH_LEN, pkt,
				       NULL, pkt->payload_len);
	return ret;
}

void rove_ud_rx(struct rove_tqp *t, const struct rove_pkt *pkt)
{
	if (t->state < ROVE_TQP_RTR || t->state == ROVE_TQP_ERR) {
		rove_env_count(t, ROVE_CNT_RX_BAD_STATE);
		return;
	}
	if (pkt->qkey != t->qkey) {
		rove_env_count(t, ROVE_CNT_RX_BAD_QKEY);
		return;
	}
	if (!need_rwqe(t, pkt))
		return;
	if (pkt->payload_len > MAX_PAYLOAD ||
	    ROVE_GRH_LEN + pkt->payload_len > t->resp.rwqe.length) {
		rove_env_count(t, ROVE_CNT_UD_RX_TOO_LONG);
		return;
	}
	if (place(t, pkt)) {
		fail_recv(t, ROVE_WC_LOC_PROT_ERR, pkt);
		return;
	}
	rove_env_count(t, ROVE_CNT_UD_RX);
	t->resp.msn = psn_add(t->resp.msn, 1);
	complete_recv(t, ROVE_WC_SUCCESS, pkt);
}
