// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * ibv_wr_*(): work requests built in place, in the slots of the send ring.
 * The kernel sees none of them before ibv_wr_complete() stores the index, so
 * to abort is to forget.
 */
#include <errno.h>

#include "wqe.h"

/**
 * rove_send_ops_of - what a QP can send
 * @type: of the QP
 *
 * Nothing: there are no such QPs.
 */
uint64_t rove_send_ops_of(enum ibv_qp_type type)
{
	const uint64_t datagrams = IBV_QP_EX_WITH_SEND |
				   IBV_QP_EX_WITH_SEND_WITH_IMM;
	const uint64_t unreliable = datagrams | IBV_QP_EX_WITH_RDMA_WRITE |
				    IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
				    IBV_QP_EX_WITH_LOCAL_INV |
				    IBV_QP_EX_WITH_BIND_MW;

	switch (type) {
	case IBV_QPT_RC:
	case IBV_QPT_XRC_SEND:
		return unreliable | IBV_QP_EX_WITH_RDMA_READ |
		       IBV_QP_EX_WITH_ATOMIC_WRITE |
		       IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
		       IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
		       IBV_QP_EX_WITH_SEND_WITH_INV;
	case IBV_QPT_UC:
		return unreliable;
	case IBV_QPT_UD:
		return datagrams;
	default:
		return 0;
	}
}

/* The first error counts, and ends what can be done up to wr_complete(). */
static void fail(struct rove_qp *qp, int err)
{
	if (!qp->wr_err)
		qp->wr_err = err;
	qp->wr_cur = NULL;
}

static void wr_start(struct ibv_qp_ex *ibqp)
{
	struct rove_qp *qp = to_rove_qp_ex(ibqp);

	rove_lock(&qp->sq.lock);
	qp->wr_first = qp->sq.prod;
	qp->wr_cur = NULL;
	qp->wr_err = rove_may_send(qp) ? 0 : EINVAL;
}

static void wr_abort(struct ibv_qp_ex *ibqp)
{
	struct rove_qp *qp = to_rove_qp_ex(ibqp);

	qp->sq.prod = qp->wr_first;
	qp->wr_cur = NULL;
	rove_unlock(&qp->sq.lock);
}

static int wr_complete(struct ibv_qp_ex *ibqp)
{
	struct rove_qp *qp = to_rove_qp_ex(ibqp);
	bool wake = false;
	int err = qp->wr_err;

	if (unlikely(err)) {
		wr_abort(ibqp);
		return err;
	}
	if (likely(qp->sq.prod != qp->wr_first))
		wake = rove_ring_publish(&qp->sq.ring, qp->sq.prod);
	qp->wr_cur = NULL;
	rove_unlock(&qp->sq.lock);

	return wake ? rove_wakeup(&ibqp->qp_base, IB_USER_VERBS_CMD_POST_SEND) :
		      0;
}

/* The next slot, begun; NULL after an error. */
static struct rove_send_wqe *begin(struct ibv_qp_ex *ibqp, uint8_t opcode)
{
	struct rove_qp *qp = to_rove_qp_ex(ibqp);
	struct rove_send_wqe *wqe;

	if (unlikely(qp->wr_err))
		return NULL;
	if (unlikely(ibqp->wr_flags & ~ROVE_WQE_FLAGS)) {
		fail(qp, EINVAL);
		return NULL;
	}
	if (unlikely(rove_wq_full(&qp->sq))) {
		fail(qp, rove_no_room(&qp->sq));
		return NULL;
	}

	wqe = rove_ring_slot(&qp->sq.ring, qp->sq.prod++);
	/* What is inline is said by the setter. */
	rove_wqe_begin(wqe, ibqp->wr_id, opcode,
		       (ibqp->wr_flags & ~ROVE_WR_INLINE) | qp->always);
	qp->wr_cur = wqe;
	return wqe;
}

static void wr_send(struct ibv_qp_ex *ibqp)
{
	begin(ibqp, ROVE_WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *ibqp, __be32 imm_data)
{
	struct rove_send_wqe *wqe = begin(ibqp, ROVE_WR_SEND_WITH_IMM);

	if (likely(wqe))
		wqe->imm_data = imm_data;
}

static void wr_send_inv(struct ibv_qp_ex *ibqp, uint32_t invalidate_rkey)
{
	struct rove_send_wqe *wqe = begin(ibqp, ROVE_WR_SEND_WITH_INV);

	if (likely(wqe))
		wqe->invalidate_rkey = invalidate_rkey;
}

static struct rove_send_wqe *begin_remote(struct ibv_qp_ex *ibqp,
					  uint8_t opcode, uint32_t rkey,
					  uint64_t remote_addr)
{
	struct rove_send_wqe *wqe = begin(ibqp, opcode);

	if (likely(wqe)) {
		wqe->rkey = rkey;
		wqe->remote_addr = remote_addr;
	}
	return wqe;
}

static void wr_rdma_write(struct ibv_qp_ex *ibqp, uint32_t rkey,
			  uint64_t remote_addr)
{
	begin_remote(ibqp, ROVE_WR_RDMA_WRITE, rkey, remote_addr);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ibqp, uint32_t rkey,
			      uint64_t remote_addr, __be32 imm_data)
{
	struct rove_send_wqe *wqe;

	wqe = begin_remote(ibqp, ROVE_WR_RDMA_WRITE_WITH_IMM, rkey,
			   remote_addr);
	if (likely(wqe))
		wqe->imm_data = imm_data;
}

static void wr_rdma_read(struct ibv_qp_ex *ibqp, uint32_t rkey,
			 uint64_t remote_addr)
{
	begin_remote(ibqp, ROVE_WR_RDMA_READ, rkey, remote_addr);
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ibqp, uint32_t rkey,
			      uint64_t remote_addr, uint64_t compare,
			      uint64_t swap)
{
	struct rove_send_wqe *wqe;

	wqe = begin_remote(ibqp, ROVE_WR_ATOMIC_CMP_AND_SWP, rkey, remote_addr);
	if (likely(wqe)) {
		wqe->compare_add = compare;
		wqe->swap = swap;
	}
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ibqp, uint32_t rkey,
				uint64_t remote_addr, uint64_t add)
{
	struct rove_send_wqe *wqe;

	wqe = begin_remote(ibqp, ROVE_WR_ATOMIC_FETCH_AND_ADD, rkey,
			   remote_addr);
	if (likely(wqe))
		wqe->compare_add = add;
}

static void wr_set_ud_addr(struct ibv_qp_ex *ibqp, struct ibv_ah *ah,
			   uint32_t remote_qpn, uint32_t remote_qkey)
{
	struct rove_qp *qp = to_rove_qp_ex(ibqp);

	if (likely(qp->wr_cur))
		rove_wqe_set_dest(qp->wr_cur, ah, remote_qpn, remote_qkey);
}

static void wr_atomic_write(struct ibv_qp_ex *ibqp, uint32_t rkey,
			    uint64_t remote_addr, const void *value)
{
	struct rove_qp *qp = to_rove_qp_ex(ibqp);
	struct rove_send_wqe *wqe;
	uint32_t have = 0;

	wqe = begin_remote(ibqp, ROVE_WR_ATOMIC_WRITE, rkey, remote_addr);
	if (unlikely(!wqe))
		return;
	if (unlikely(!rove_wqe_add_inline(wqe, &have, qp->max_inline, value, 8))) {
		fail(qp, EINVAL);
		return;
	}
	wqe->flags |= ROVE_WR_INLINE;
	wqe->inline_len = have;
}

static void wr_local_inv(struct ibv_qp_ex *ibqp, uint32_t invalidate_rkey)
{
	struct rove_send_wqe *wqe = begin(ibqp, ROVE_WR_LOCAL_INV);

	if (likely(wqe))
		wqe->invalidate_rkey = invalidate_rkey;
}

static void wr_bind_mw(struct ibv_qp_ex *ibqp, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *bind_info)
{
	struct rove_send_wqe *wqe = begin(ibqp, ROVE_WR_BIND_MW);

	if (likely(wqe) && (mw->type != IBV_MW_TYPE_2 ||
			    rove_wqe_set_bind(wqe, mw, rkey, bind_info)))
		fail(to_rove_qp_ex(ibqp), EINVAL);
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *ibqp, uint32_t remote_srqn)
{
	struct rove_qp *qp = to_rove_qp_ex(ibqp);

	if (likely(qp->wr_cur))
		qp->wr_cur->srqn = remote_srqn;
}

static void wr_set_sge_list(struct ibv_qp_ex *ibqp, size_t num_sge,
			    const struct ibv_sge *sg_list)
{
	struct rove_qp *qp = to_rove_qp_ex(ibqp);

	if (unlikely(!qp->wr_cur))
		return;
	if (unlikely(num_sge > qp->sq.max_sge)) {
		fail(qp, EINVAL);
		return;
	}
	rove_wqe_set_sges(qp->wr_cur, sg_list, num_sge);
}

static void wr_set_sge(struct ibv_qp_ex *ibqp, uint32_t lkey, uint64_t addr,
		       uint32_t length)
{
	const struct ibv_sge sge = {
		.addr = addr,
		.length = length,
		.lkey = lkey,
	};

	wr_set_sge_list(ibqp, 1, &sge);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ibqp, size_t num_buf,
				    const struct ibv_data_buf *buf_list)
{
	struct rove_qp *qp = to_rove_qp_ex(ibqp);
	struct rove_send_wqe *wqe = qp->wr_cur;
	uint32_t have = 0;
	size_t i;

	if (unlikely(!wqe))
		return;
	if (unlikely(!rove_may_inline(wqe->opcode))) {
		fail(qp, EINVAL);
		return;
	}
	for (i = 0; i < num_buf; i++) {
		if (unlikely(!rove_wqe_add_inline(wqe, &have, qp->max_inline,
						  buf_list[i].addr,
						  buf_list[i].length))) {
			fail(qp, EINVAL);
			return;
		}
	}
	wqe->flags |= ROVE_WR_INLINE;
	wqe->inline_len = have;
}

static void wr_set_inline_data(struct ibv_qp_ex *ibqp, void *addr,
			       size_t length)
{
	const struct ibv_data_buf buf = { .addr = addr, .length = length };

	wr_set_inline_data_list(ibqp, 1, &buf);
}

/**
 * rove_qp_set_ex_ops - makes a QP usable by ibv_wr_start()
 * @qp: new
 * @send_ops: the operations the program wants; within rove_send_ops_of()
 */
void rove_qp_set_ex_ops(struct ibv_qp_ex *qp, uint64_t send_ops)
{
	qp->wr_start = wr_start;
	qp->wr_complete = wr_complete;
	qp->wr_abort = wr_abort;
	qp->wr_set_sge = wr_set_sge;
	qp->wr_set_sge_list = wr_set_sge_list;
	qp->wr_set_inline_data = wr_set_inline_data;
	qp->wr_set_inline_data_list = wr_set_inline_data_list;
	if (to_rove_qp_ex(qp)->datagrams)
		qp->wr_set_ud_addr = wr_set_ud_addr;
	if (to_rove_qp_ex(qp)->xrc)
		qp->wr_set_xrc_srqn = wr_set_xrc_srqn;

	if (send_ops & IBV_QP_EX_WITH_SEND)
		qp->wr_send = wr_send;
	if (send_ops & IBV_QP_EX_WITH_SEND_WITH_IMM)
		qp->wr_send_imm = wr_send_imm;
	if (send_ops & IBV_QP_EX_WITH_SEND_WITH_INV)
		qp->wr_send_inv = wr_send_inv;
	if (send_ops & IBV_QP_EX_WITH_ATOMIC_WRITE)
		rove_set_wr_atomic_write(qp, wr_atomic_write);
	if (send_ops & IBV_QP_EX_WITH_LOCAL_INV)
		qp->wr_local_inv = wr_local_inv;
	if (send_ops & IBV_QP_EX_WITH_BIND_MW)
		qp->wr_bind_mw = wr_bind_mw;
	if (send_ops & IBV_QP_EX_WITH_RDMA_WRITE)
		qp->wr_rdma_write = wr_rdma_write;
	if (send_ops & IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM)
		qp->wr_rdma_write_imm = wr_rdma_write_imm;
	if (send_ops & IBV_QP_EX_WITH_RDMA_READ)
		qp->wr_rdma_read = wr_rdma_read;
	if (send_ops & IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP)
		qp->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	if (send_ops & IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)
		qp->wr_atomic_fetch_add = wr_atomic_fetch_add;
}
