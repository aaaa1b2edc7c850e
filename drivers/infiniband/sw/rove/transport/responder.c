// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * responder.c - the receiving half of an RC, XRC or UC QP (IBTA vol. 1, 9.7.4, 9.7.5.1,
 * 9.7.8; 9.8.2)
 *
 * A request packet is executed when its turn comes, then answered: SENDs and
 * WRITEs by an ACK that covers all before it, READs and atomics by their response.
 * Answers leave in the order of the requests: first the replies in the FIFO,
 * then a NAK, or else an ACK.
 *
 * On UC nothing is answered.  A message that cannot be executed, or of which a packet
 * is missing, is dropped, and its receive work request serves the next one.
 */
#include <linux/errno.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include "engine.h"
#include "env.h"

/* AETH credit codes (table 47): each second one doubles. */
u32 rove_credits_decode(u8 code)
{
	if (code < 4)
		return code;
	return (2 + (code & 1)) << (code / 2 - 1);
}

u8 rove_credits_encode(u32 credits)
{
	u32 log;

	if (credits == ROVE_NO_CREDITS)
		return ROVE_AETH_NO_CREDIT;
	if (credits < 2)
		return credits;
	log = ilog2(credits);
	return min(2 * log + (credits >> (log - 1) & 1),
		   (u32)ROVE_AETH_NO_CREDIT - 1);
}

u64 rove_rnr_delay(u8 code)
{
	/* Table 46, in units of 10 us. */
	static const u32 delay[32] = {
		65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192,
		256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192,
		12288, 16384, 24576, 32768, 49152,
	};

	return delay[code & ROVE_AETH_VALUE] * 10000ULL;
}

static u8 ack_syndrome(struct rove_tqp *t)
{
	return ROVE_AETH_ACK | rove_credits_encode(rove_env_rq_credits(t));
}

/* Owe the peer a NAK for the packet expected. */
static void owe_nak(struct rove_tqp *t, u8 syndrome)
{
	struct rove_responder *resp = &t->resp;

	resp->nak = syndrome;
	resp->nak_psn = resp->epsn;
	resp->nak_sent = true;
	resp->ack_held = false;
	rove_env_defer_send(t);
}

/* The receive work request in use ends with @status. */
static void complete_recv(struct rove_tqp *t, u32 status,
			  const struct rove_pkt *pkt)
{
	struct rove_responder *resp = &t->resp;
	struct rove_cqe cqe = {
		.wr_id = resp->rwqe.wr_id,
		.status = status,
		.opcode = ROVE_WC_RECV,
		.src_qp = t->dest_qpn,
	};

	if (!resp->have_rwqe)
		return;
	resp->have_rwqe = false;
	if (status == ROVE_WC_SUCCESS) {
		if (pkt->op->flags & ROVE_OPF_WRITE) {
			cqe.opcode = ROVE_WC_RECV_RDMA_WITH_IMM;
			cqe.byte_len = resp->msg_len;
		} else {
			cqe.byte_len = resp->received;
		}
		if (pkt->op->flags & ROVE_OPF_IMM) {
			cqe.wc_flags = ROVE_WC_WITH_IMM;
			cqe.imm_data = pkt->imm;
		} else if (pkt->op->flags & ROVE_OPF_INV) {
			cqe.wc_flags = ROVE_WC_WITH_INV;
			cqe.invalidated_rkey = pkt->inv_rkey;
		}
	}
	rove_env_complete(t, &cqe, true,
			  status != ROVE_WC_SUCCESS || pkt->solicited);
}

/*
 * A request that cannot be executed: NAK it, end the receive work request in
 * use with @status, and go to the error state once the NAK is out (9.9.3).  On UC only
 * what is wrong at this end has consequences.
 */
static void refuse(struct rove_tqp *t, enum rove_nak nak, u32 status,
		   enum rove_tqp_event event)
{
	if (t->service == ROVE_SVC_UC) {
		if (nak != ROVE_NAK_REM_OP)
			return;
		complete_recv(t, status, NULL);
		rove_env_event(t, event);
		rove_tqp_error(t);
		return;
	}
	rove_env_count(t, ROVE_CNT_NAK_TX);
	complete_recv(t, status, NULL);
	t->resp.fatal = event;
	owe_nak(t, ROVE_AETH_NAK | nak);
}

static void refuse_invalid(struct rove_tqp *t)
{
	refuse(t, ROVE_NAK_INV_REQ, ROVE_WC_REM_INV_REQ_ERR,
	       ROVE_EVENT_QP_REQ_ERR);
}

static void refuse_access(struct rove_tqp *t)
{
	refuse(t, ROVE_NAK_REM_ACCESS, ROVE_WC_LOC_ACCESS_ERR,
	       ROVE_EVENT_QP_ACCESS_ERR);
}

/*
 * Memory for the packet is on its way: let the peer wait, each time twice as long,
 * from 160 us to 41 ms.  A page comes from nowhere or from far.
 */
static void refuse_for_now(struct rove_tqp *t)
{
	struct rove_responder *resp = &t->resp;
	u32 code = 8 + 2 * resp->page_naks;

	/* UC has no word for it: the message is dropped. */
	if (t->service == ROVE_SVC_UC)
		return;
	rove_env_count(t, ROVE_CNT_PAGE_NAK_TX);
	if (resp->page_naks < 8)
		resp->page_naks++;
	owe_nak(t, ROVE_AETH_RNR_NAK | code);
}

/* The memory that the peer named could not be written to: yet, or at all. */
static void refuse_memory(struct rove_tqp *t, int err)
{
	if (err == -EAGAIN)
		refuse_for_now(t);
	else
		refuse_access(t);
}

int rove_next_rwqe(struct rove_tqp *t)
{
	struct rove_responder *resp = &t->resp;
	int ret;

	if (resp->have_rwqe)
		return 1;
	ret = rove_env_rq_fetch(t, &resp->rwqe);
	if (ret < 0)
		rove_env_count(t, ROVE_CNT_BAD_RING);
	if (ret <= 0)
		return ret;
	resp->have_rwqe = true;
	return resp->rwqe.num_sge <= t->max_sge_recv ? 1 : -EINVAL;
}

/*
 * Have a receive work request in hand.  False: there is none (the peer is
 * told to come back) or the queue is broken.
 */
static bool need_rwqe(struct rove_tqp *t)
{
	int ret = rove_next_rwqe(t);

	if (ret < 0) {
		refuse(t, ROVE_NAK_REM_OP, ROVE_WC_LOC_QP_OP_ERR,
		       ROVE_EVENT_QP_FATAL);
	} else if (!ret && t->service != ROVE_SVC_UC) {
		rove_env_count(t, ROVE_CNT_RNR_NAK_TX);
		owe_nak(t, ROVE_AETH_RNR_NAK | t->min_rnr_timer);
	}
	return ret > 0;
}

/* @flags: enum rove_opcode_flags of the packet. */
static __always_inline bool rx_send(struct rove_tqp *t, const struct rove_pkt *pkt,
				    u32 flags)
{
	struct rove_responder *resp = &t->resp;
	int ret = 0;

	if (!need_rwqe(t))
		return false;
	if (flags & ROVE_OPF_FIRST) {
		rove_env_count(t, ROVE_CNT_SEND_RX);
		resp->received = 0;
	}
	if ((u64)resp->received + pkt->payload_len >
	    min_t(u64, resp->rwqe.length, ROVE_MAX_MSG)) {
		refuse(t, ROVE_NAK_INV_REQ, ROVE_WC_LOC_LEN_ERR,
		       ROVE_EVENT_QP_REQ_ERR);
		return false;
	}
	if (pkt->payload_len)
		ret = rove_env_scatter(t, resp->rwqe.sge, resp->rwqe.num_sge,
				       resp->received, pkt, NULL,
				       pkt->payload_len);
	if (ret == -EAGAIN) {
		refuse_for_now(t);
		return false;
	}
	if (ret) {
		refuse(t, ROVE_NAK_REM_OP, ROVE_WC_LOC_PROT_ERR,
		       ROVE_EVENT_QP_FATAL);
		return false;
	}
	if (flags & ROVE_OPF_INV &&
	    rove_env_invalidate(t, pkt->inv_rkey)) {
		refuse_invalid(t);
		return false;
	}
	resp->received += pkt->payload_len;
	if (flags & ROVE_OPF_LAST)
		complete_recv(t, ROVE_WC_SUCCESS, pkt);
	return true;
}

static __always_inline bool rx_write(struct rove_tqp *t, const struct rove_pkt *pkt,
				     u32 flags)
{
	struct rove_responder *resp = &t->resp;
	bool first = flags & ROVE_OPF_FIRST;
	u64 va = first ? pkt->va : resp->va;
	u32 rkey = first ? pkt->rkey : resp->rkey;
	u32 left = first ? pkt->dma_len : resp->left;
	int ret = 0;

	if (first && left > ROVE_MAX_MSG) {
		refuse_invalid(t);
		return false;
	}
	/* The right may be taken from the QP in the middle of a message, too. */
	if (!(t->access & ROVE_ACCESS_REMOTE_WRITE) ||
	    (first && left &&
	     rove_env_check_rkey(t, rkey, va, left, ROVE_ACCESS_REMOTE_WRITE))) {
		refuse_access(t);
		return false;
	}
	if (flags & ROVE_OPF_LAST ? pkt->payload_len != left :
				    pkt->payload_len >= left) {
		refuse_invalid(t);
		return false;
	}
	if (flags & ROVE_OPF_IMM && !need_rwqe(t))
		return false;
	if (pkt->payload_len)
		ret = rove_env_write(t, rkey, va, pkt);
	if (ret) {
		refuse_memory(t, ret);
		return false;
	}
	if (first) {
		rove_env_count(t, ROVE_CNT_RDMA_WRITE_RX);
		resp->msg_len = left;
	}
	resp->va = va + pkt->payload_len;
	resp->rkey = rkey;
	resp->left = left - pkt->payload_len;
	if (flags & ROVE_OPF_IMM)
		complete_recv(t, ROVE_WC_SUCCESS, pkt);
	return true;
}

/* The @i-th pending reply, the oldest first; or where the next one goes. */
static struct rove_reply *reply_at(const struct rove_responder *resp, u32 i)
{
	return &resp->replies[(resp->reply_head + i) % resp->max_res];
}

/* Remember what was executed, for duplicates, and answer it. */
static void reply(struct rove_tqp *t, const struct rove_resource *res, bool again)
{
	struct rove_responder *resp = &t->resp;

	*reply_at(resp, resp->reply_count++) = (struct rove_reply) {
		.res = *res,
		.again = again,
	};
	/* It acknowledges all before it; one sent before says nothing new. */
	if (!again)
		resp->ack_due = false;
	resp->ack_held = false;
	rove_env_defer_send(t);
}

static void remember(struct rove_responder *resp, const struct rove_resource *res)
{
	resp->res[resp->res_next] = *res;
	resp->res_next = (resp->res_next + 1) % resp->max_res;
	resp->res_count = min(resp->res_count + 1, resp->max_res);
	resp->res_last = min(resp->res_last + 1, resp->max_res);
}

/*
 * Room for one more reply.  A peer that keeps to max_rd_atomic may send a new
 * READ or atomic while we still hold the repetition of an old answer: it has
 * had that answer meanwhile, or it would not send the new one.
 */
static bool reply_room(struct rove_responder *resp)
{
	if (resp->reply_count < resp->max_res)
		return true;
	if (!resp->reply_count || !reply_at(resp, 0)->again)
		return false;
	resp->reply_head = (resp->reply_head + 1) % resp->max_res;
	resp->reply_count--;
	return true;
}

static bool rx_read(struct rove_tqp *t, const struct rove_pkt *pkt)
{
	struct rove_responder *resp = &t->resp;
	struct rove_resource res = {
		.kind = ROVE_BURST_READ_RESPONSE,
		.psn = pkt->psn,
		.npkts = rove_npkts(t, pkt->dma_len),
		.va = pkt->va,
		.rkey = pkt->rkey,
		.length = pkt->dma_len,
		.msn = psn_add(resp->msn, 1),
	};

	if (pkt->dma_len > ROVE_MAX_MSG || !reply_room(resp)) {
		refuse_invalid(t);
		return false;
	}
	if (!(t->access & ROVE_ACCESS_REMOTE_READ) ||
	    (res.length && rove_env_check_rkey(t, res.rkey, res.va, res.length,
					       ROVE_ACCESS_REMOTE_READ))) {
		refuse_access(t);
		return false;
	}
	if (t->service == ROVE_SVC_XRC)
		res.srqn = pkt->srqn;
	rove_env_count(t, ROVE_CNT_RDMA_READ_RX);
	remember(resp, &res);
	reply(t, &res, false);
	/* The PSNs of the response belong to the request (9.7.3.1). */
	resp->epsn = psn_add(resp->epsn, res.npkts - 1);
	return true;
}

static bool rx_atomic(struct rove_tqp *t, const struct rove_pkt *pkt)
{
	struct rove_responder *resp = &t->resp;
	struct rove_resource res = {
		.kind = ROVE_BURST_ATOMIC_ACK,
		.psn = pkt->psn,
		.npkts = 1,
		.msn = psn_add(resp->msn, 1),
	};
	int ret = -EFAULT;

	if (pkt->va & 7 || !reply_room(resp)) {
		refuse_invalid(t);
		return false;
	}
	if (t->access & ROVE_ACCESS_REMOTE_ATOMIC)
		ret = rove_env_atomic(t, pkt->rkey, pkt->va,
				      (pkt->opcode & ~ROVE_SVC_MASK) ==
				      ROVE_OP_COMPARE_SWAP,
				      pkt->compare, pkt->swap_add,
				      &res.atomic_orig);
	if (ret) {
		refuse_memory(t, ret);
		return false;
	}
	rove_env_count(t, ROVE_CNT_RDMA_ATOMIC_RX);
	remember(resp, &res);
	reply(t, &res, false);
	return true;
}

/* A WRITE of 8 bytes that nobody sees half done, answered like a READ. */
static bool rx_atomic_write(struct rove_tqp *t, const struct rove_pkt *pkt)
{
	struct rove_responder *resp = &t->resp;
	struct rove_resource res = {
		.kind = ROVE_BURST_ATOMIC_WRITE_ACK,
		.psn = pkt->psn,
		.npkts = 1,
		.msn = psn_add(resp->msn, 1),
	};
	int ret = -EFAULT;

	if (pkt->va & 7 || pkt->dma_len != sizeof(u64) ||
	    pkt->payload_len != sizeof(u64) || !reply_room(resp)) {
		refuse_invalid(t);
		return false;
	}
	if (t->access & ROVE_ACCESS_REMOTE_WRITE)
		ret = rove_env_atomic_write(t, pkt->rkey, pkt->va, pkt);
	if (ret) {
		refuse_memory(t, ret);
		return false;
	}
	rove_env_count(t, ROVE_CNT_RDMA_ATOMIC_RX);
	remember(resp, &res);
	reply(t, &res, false);
	return true;
}

/* What a READ or an atomic is answered with. */
static enum rove_burst_kind answer_to(const struct rove_pkt *pkt)
{
	if (pkt->op->flags & ROVE_OPF_READ)
		return ROVE_BURST_READ_RESPONSE;
	if ((pkt->opcode & ~ROVE_SVC_MASK) == ROVE_OP_ATOMIC_WRITE)
		return ROVE_BURST_ATOMIC_WRITE_ACK;
	return ROVE_BURST_ATOMIC_ACK;
}

/* The first pending reply that ends at @psn or later; @resp->reply_count if none does. */
static u32 find_reply(const struct rove_responder *resp, u32 psn)
{
	u32 i;

	for (i = 0; i < resp->reply_count; i++) {
		const struct rove_resource *res = &reply_at(resp, i)->res;

		if (psn_diff(psn, psn_add(res->psn, res->npkts - 1)) <= 0)
			break;
	}
	return i;
}

/* Make room for one more reply before the @i-th. */
static void insert_reply(struct rove_responder *resp, u32 i)
{
	u32 j;

	resp->reply_head = (resp->reply_head + resp->max_res - 1) % resp->max_res;
	resp->reply_count++;
	for (j = 0; j < i; j++)
		*reply_at(resp, j) = *reply_at(resp, j + 1);
}

/*
 * @res has been asked for again, and the @i-th pending reply is all of that, or newer: it may
 * be the network that has repeated it, and the answer be there.  So nothing pending is lost
 * by it.  Only who asks for one in pieces, and does not wait for them, can have filled the FIFO.
 */
static void reply_between(struct rove_tqp *t, const struct rove_resource *res, u32 i)
{
	struct rove_responder *resp = &t->resp;

	if (reply_at(resp, i)->res.psn != res->psn) {
		if (resp->reply_count == resp->max_res)
			return;
		insert_reply(resp, i);
		reply_at(resp, i)->again = true;
	}
	reply_at(resp, i)->res = *res;
	reply_at(resp, i)->sent = 0;
	rove_env_defer_send(t);
}

/*
 * A READ again, perhaps only its tail, or an atomic again (9.7.5.1.3): READs are
 * executed again, atomics answered from memory.  Who asks for a tail of what is being sent has
 * gone back, so it will ask again for what stood in the FIFO behind it.
 */
static void rx_duplicate_rd(struct rove_tqp *t, const struct rove_pkt *pkt)
{
	struct rove_responder *resp = &t->resp;
	u32 place = find_reply(resp, pkt->psn), i, skip = 0;
	enum rove_burst_kind kind = answer_to(pkt);
	struct rove_resource res = {};
	bool whole = true;

	if (place < resp->reply_count) {
		const struct rove_reply *r = reply_at(resp, place);

		/* It will be sent anyway. */
		if (psn_diff(pkt->psn, psn_add(r->res.psn, r->sent)) >= 0)
			return;
	}
	/* The newest first: PSNs come round again. */
	for (i = 0; i < resp->res_count; i++) {
		res = resp->res[(resp->res_next + resp->max_res - 1 - i) %
				resp->max_res];
		skip = psn_diff(pkt->psn, res.psn);
		/* Another request by the same number is not that one again. */
		if (skip < res.npkts && res.kind == kind)
			break;
	}
	if (i == resp->res_count)
		return;
	if (kind == ROVE_BURST_READ_RESPONSE) {
		u64 offset = (u64)skip * t->mtu;

		/* It must lie within what was asked and granted before. */
		if (pkt->rkey != res.rkey || pkt->va != res.va + offset ||
		    pkt->dma_len > res.length - offset)
			return;
		whole = pkt->dma_len == res.length;
		res.va = pkt->va;
		res.length = pkt->dma_len;
		res.psn = pkt->psn;
		res.npkts = rove_npkts(t, pkt->dma_len);
	}
	if (place < resp->reply_count &&
	    (whole || psn_diff(reply_at(resp, place)->res.psn, res.psn) > 0)) {
		reply_between(t, &res, place);
		return;
	}
	resp->reply_count = place;
	if (reply_room(resp))
		reply(t, &res, true);
}

static void rx_duplicate(struct rove_tqp *t, const struct rove_pkt *pkt)
{
	rove_env_count(t, ROVE_CNT_DUP_REQUEST);
	if (pkt->op->flags & (ROVE_OPF_READ | ROVE_OPF_ATOMIC)) {
		rx_duplicate_rd(t, pkt);
	} else {
		t->resp.ack_due = true;
		rove_env_defer_send(t);
	}
}

/* Does the packet fit where we are in a message (9.7.4.1.2), and its length? */
static bool in_sequence(const struct rove_tqp *t, const struct rove_pkt *pkt)
{
	const struct rove_responder *resp = &t->resp;
	u32 flags = pkt->op->flags;

	if (resp->in_msg) {
		if (flags & ROVE_OPF_FIRST ||
		    !(flags & (resp->msg_write ? ROVE_OPF_WRITE : ROVE_OPF_SEND)))
			return false;
	} else if (!(flags & ROVE_OPF_FIRST)) {
		return false;
	}
	if (!(flags & ROVE_OPF_LAST))
		return pkt->payload_len == t->mtu;
	return pkt->payload_len <= t->mtu &&
	       (pkt->payload_len || flags & ROVE_OPF_FIRST);
}

static bool execute(struct rove_tqp *t, const struct rove_pkt *pkt)
{
	u32 flags = pkt->op->flags;

	if (!in_sequence(t, pkt)) {
		refuse_invalid(t);
		return false;
	}
	if (flags & ROVE_OPF_SEND)
		return rx_send(t, pkt, flags);
	if (flags & ROVE_OPF_WRITE)
		return rx_write(t, pkt, flags);
	if (flags & ROVE_OPF_READ)
		return rx_read(t, pkt);
	if (flags & ROVE_OPF_RETH)
		return rx_atomic_write(t, pkt);
	return rx_atomic(t, pkt);
}

static void established(struct rove_tqp *t)
{
	if (!t->resp.comm_est && t->state == ROVE_TQP_RTR) {
		t->resp.comm_est = true;
		rove_env_event(t, ROVE_EVENT_COMM_EST);
	}
}

/* A packet was executed, in its turn. */
static void take(struct rove_tqp *t, const struct rove_pkt *pkt)
{
	struct rove_responder *resp = &t->resp;
	u32 flags = pkt->op->flags;

	resp->in_msg = !(flags & ROVE_OPF_LAST);
	resp->msg_write = flags & ROVE_OPF_WRITE;
	if (flags & (ROVE_OPF_SEND | ROVE_OPF_WRITE))
		resp->res_last = 0;
	if (flags & ROVE_OPF_LAST)
		resp->msn = psn_add(resp->msn, 1);
}

/*
 * What begins a message is welcome, whatever its PSN (9.8.2.2.1): what should have
 * come before it is lost.  What goes on with one has to be the next of it.
 */
void rove_uc_rx(struct rove_tqp *t, const struct rove_pkt *pkt)
{
	struct rove_responder *resp = &t->resp;
	bool first = pkt->op->flags & ROVE_OPF_FIRST;
	bool next = pkt->psn == resp->epsn;

	if (t->state < ROVE_TQP_RTR || t->state == ROVE_TQP_ERR) {
		rove_env_count(t, ROVE_CNT_RX_BAD_STATE);
		return;
	}
	resp->epsn = psn_add(pkt->psn, 1);
	if (!next)
		rove_env_count(t, ROVE_CNT_OUT_OF_SEQ);
	if (resp->in_msg && (first || !next)) {
		rove_env_count(t, ROVE_CNT_UC_RX_DROPPED);
		resp->in_msg = false;
	}
	if (first || resp->in_msg) {
		established(t);
		resp->skipping = false;
		if (execute(t, pkt)) {
			take(t, pkt);
			return;
		}
		rove_env_count(t, ROVE_CNT_UC_RX_DROPPED);
		resp->in_msg = false;
	} else if (next && !resp->skipping) {
		/* Not the rest of what was dropped, nor behind a hole: it never began. */
		rove_env_count(t, ROVE_CNT_UC_RX_DROPPED);
	}
	resp->skipping = !(pkt->op->flags & ROVE_OPF_LAST);
}

/*
 * XRC: the SRQ that the packet names must be there, and be that of the message under
 * way, or of one that is to be repeated and has its receive work request already.
 * Its protection domain is the one that counts, for RDMA too (A14).
 */
static bool choose_srq(struct rove_tqp *t, const struct rove_pkt *pkt)
{
	struct rove_responder *resp = &t->resp;

	if (((resp->in_msg || resp->have_rwqe) && pkt->srqn != resp->srqn) ||
	    rove_env_srq(t, pkt->srqn)) {
		refuse_invalid(t);
		return false;
	}
	resp->srqn = pkt->srqn;
	return true;
}

/* The next packet acknowledges nothing that was refused before it. */
static void next_psn(struct rove_responder *resp)
{
	resp->epsn = psn_add(resp->epsn, 1);
	resp->nak = 0;
	resp->nak_sent = false;
	resp->page_naks = 0;
}

/*
 * The next packet of RC's message under way, and neither its first nor its last: what
 * most of a stream is.
 */
static bool is_next_middle(const struct rove_tqp *t, const struct rove_pkt *pkt)
{
	const struct rove_responder *resp = &t->resp;

	return pkt->psn == resp->epsn && resp->in_msg &&
	       pkt->opcode == (resp->msg_write ? ROVE_OP_WRITE_MIDDLE : ROVE_OP_SEND_MIDDLE) &&
	       pkt->payload_len == t->mtu && !pkt->ackreq &&
	       (t->state == ROVE_TQP_RTS || t->state == ROVE_TQP_RTR) && resp->fatal < 0;
}

/*
 * The acknowledgment of one message may wait for what the program answers, and share a
 * train with it; a second message's does not.  Never where the answer could be refused for
 * want of a receive that the peer posts upon the acknowledgment: it has happened, or would
 * be the end.
 */
static void owe_ack(struct rove_tqp *t, bool end_of_message, u64 now)
{
	struct rove_responder *resp = &t->resp;

	resp->ack_held = end_of_message && !resp->ack_due && t->state == ROVE_TQP_RTS &&
			 !resp->never_hold && t->rnr_retry && rove_env_hold_ack(t, now);
	resp->ack_due = true;
	if (!resp->ack_held)
		rove_env_defer_send(t);
}

static noinline void rx_any(struct rove_tqp *t, const struct rove_pkt *pkt, u64 now)
{
	struct rove_responder *resp = &t->resp;
	u32 flags = pkt->op->flags;
	s32 ahead;

	if (t->state < ROVE_TQP_RTR || t->state == ROVE_TQP_ERR ||
	    resp->fatal >= 0) {
		rove_env_count(t, ROVE_CNT_RX_BAD_STATE);
		return;
	}
	ahead = psn_diff(pkt->psn, resp->epsn);
	if (ahead < 0) {
		rx_duplicate(t, pkt);
		return;
	}
	if (ahead > 0) {
		rove_env_count(t, ROVE_CNT_OUT_OF_SEQ);
		if (!resp->nak_sent) {
			rove_env_count(t, ROVE_CNT_SEQ_NAK_TX);
			owe_nak(t, ROVE_AETH_NAK | ROVE_NAK_PSN_SEQ);
		}
		return;
	}
	established(t);
	if (unlikely(t->service == ROVE_SVC_XRC) && !choose_srq(t, pkt))
		return;
	if (!execute(t, pkt))
		return;

	next_psn(resp);
	take(t, pkt);
	if (pkt->ackreq && flags & (ROVE_OPF_SEND | ROVE_OPF_WRITE))
		owe_ack(t, flags & ROVE_OPF_LAST, now);
}

void rove_resp_rx(struct rove_tqp *t, const struct rove_pkt *pkt, u64 now)
{
	if (unlikely(!is_next_middle(t, pkt)))
		rx_any(t, pkt, now);
	else if (t->resp.msg_write ? rx_write(t, pkt, ROVE_OPF_WRITE) :
				     rx_send(t, pkt, ROVE_OPF_SEND))
		next_psn(&t->resp);
}

/* Send some of the oldest reply; what that cost, or an error. */
static int send_reply(struct rove_tqp *t, struct rove_reply *r)
{
	struct rove_burst b = {
		.kind = r->res.kind,
		.service = t->service,
		.first = !r->sent,
		.psn = psn_add(r->res.psn, r->sent),
		.npkts = min(r->res.npkts - r->sent, rove_burst_pkts(t)),
		.mtu = t->mtu,
		.offset = r->sent * t->mtu,
		.va = r->res.va,
		.rkey = r->res.rkey,
		.syndrome = ack_syndrome(t),
		.msn = r->res.msn,
		.atomic_orig = r->res.atomic_orig,
	};
	int ret;

	b.last = r->sent + b.npkts == r->res.npkts;
	b.length = b.last ? r->res.length - b.offset : b.npkts * t->mtu;
	/* A READ reads what is there now, if it still may. */
	if (b.kind == ROVE_BURST_READ_RESPONSE &&
	    (!(t->access & ROVE_ACCESS_REMOTE_READ) ||
	     (unlikely(t->service == ROVE_SVC_XRC) &&
	      rove_env_srq_domain(t, r->res.srqn))))
		return -EFAULT;
	ret = rove_env_emit(t, &b);
	if (ret)
		return ret;
	r->sent += b.npkts;
	return rove_burst_cost(&b);
}

static bool send_replies(struct rove_tqp *t)
{
	struct rove_responder *resp = &t->resp;
	int budget = ROVE_RUN_BUDGET;

	while (resp->reply_count) {
		struct rove_reply *r = reply_at(resp, 0);
		int n;

		if (budget <= 0) {
			rove_env_defer_send(t);
			return false;
		}
		n = send_reply(t, r);
		if (n == -EFAULT) {
			/*
			 * The region went away after it was checked.  A READ
			 * that came again may be a late copy from the network:
			 * no reason to end a connection that has moved on.
			 */
			if (r->again) {
				r->sent = r->res.npkts;
				goto next;
			}
			resp->epsn = psn_add(r->res.psn, r->sent);
			resp->reply_count = 0;
			refuse_access(t);
			return true;
		}
		if (n < 0)
			return false;
		budget -= n;
next:
		if (r->sent == r->res.npkts) {
			resp->reply_head = (resp->reply_head + 1) % resp->max_res;
			resp->reply_count--;
		}
	}
	return true;
}

/*
 * What an acknowledgment names: the last packet of a SEND or WRITE, not of a READ or an
 * atomic behind it.  These are acknowledged by their responses: to who has lost one, an
 * ACK of its PSN is an implied NAK at best, and rdma_rxe takes it for the end of the READ.
 */
static u32 ack_psn(const struct rove_responder *resp)
{
	u32 oldest = resp->res_next + resp->max_res - resp->res_last;

	/* By count: PSNs come round again. */
	return psn_add(resp->res_last ? resp->res[oldest % resp->max_res].psn : resp->epsn,
		       -1);
}

void rove_resp_run(struct rove_tqp *t)
{
	struct rove_responder *resp = &t->resp;
	struct rove_burst b = {
		.kind = ROVE_BURST_ACK,
		.service = t->service,
		.first = true,
		.last = true,
		.npkts = 1,
		.mtu = t->mtu,
	};
	int fatal;

	if (t->state < ROVE_TQP_RTR || t->state == ROVE_TQP_ERR ||
	    !send_replies(t) || (!resp->nak && !resp->ack_due))
		return;
	b.msn = resp->msn;
	if (resp->nak) {
		b.syndrome = resp->nak;
		b.psn = resp->nak_psn;
	} else {
		b.syndrome = ack_syndrome(t);
		b.psn = ack_psn(resp);
	}
	if (rove_env_emit(t, &b) == -EAGAIN)
		return;
	rove_env_count(t, ROVE_CNT_ACK_TX);
	resp->nak = 0;
	resp->ack_due = false;
	fatal = resp->fatal;
	if (fatal >= 0) {
		rove_env_event(t, fatal);
		rove_tqp_error(t);
	}
}

void rove_resp_flush(struct rove_tqp *t)
{
	struct rove_responder *resp = &t->resp;
	u32 i;

	/* Nobody will send it any more, or look whether there is one. */
	resp->ack_held = false;
	complete_recv(t, ROVE_WC_WR_FLUSH_ERR, NULL);
	/* What is posted to a shared queue is the others'. */
	for (i = 0; !t->srq && i < ROVE_FLUSH_MAX; i++) {
		if (rove_env_rq_fetch(t, &resp->rwqe) <= 0)
			break;
		resp->have_rwqe = true;
		complete_recv(t, ROVE_WC_WR_FLUSH_ERR, NULL);
	}
	if (i == ROVE_FLUSH_MAX)
		rove_env_defer_send(t);
	resp->reply_count = 0;
}
