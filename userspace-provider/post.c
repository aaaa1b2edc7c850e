// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * ibv_post_send() and ibv_post_recv().
 *
 * A list is written into the ring under the queue's lock and handed to the
 * kernel by one store.  When a request in the middle is bad, those before it
 * are posted and it is named, as the manual page says.  The wake-up call, if
 * the kernel asks for one, comes after the lock is released.
 */
#include <errno.h>

#include "wqe.h"

static int fill_inline(struct rove_qp *qp, struct rove_send_wqe *wqe,
		       const struct ibv_send_wr *wr)
{
	uint32_t have = 0;
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		const struct ibv_sge *sge = &wr->sg_list[i];

		if (!rove_wqe_add_inline(wqe, &have, qp->max_inline,
					 (void *)(uintptr_t)sge->addr,
					 sge->length))
			return EINVAL;
	}
	wqe->inline_len = have;
	return 0;
}

static int fill_send(struct rove_qp *qp, struct rove_send_wqe *wqe,
		     const struct ibv_send_wr *wr)
{
	if (unlikely(wr->send_flags & ~ROVE_WQE_FLAGS) ||
	    unlikely((unsigned int)wr->num_sge > qp->sq.max_sge))
		return EINVAL;

	if (unlikely(qp->xrc))
		wqe->srqn = wr->qp_type.xrc.remote_srqn;
	if (qp->datagrams) {
		if (unlikely(wr->opcode != IBV_WR_SEND &&
			     wr->opcode != IBV_WR_SEND_WITH_IMM))
			return EINVAL;
		rove_wqe_set_dest(wqe, wr->wr.ud.ah, wr->wr.ud.remote_qpn,
				  wr->wr.ud.remote_qkey);
	}
	switch ((int)wr->opcode) {
	case IBV_WR_SEND:
		break;
	case IBV_WR_SEND_WITH_IMM:
		wqe->imm_data = wr->imm_data;
		break;
	case IBV_WR_SEND_WITH_INV:
		wqe->invalidate_rkey = wr->invalidate_rkey;
		break;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		wqe->imm_data = wr->imm_data;
		/* fall through */
	case IBV_WR_ATOMIC_WRITE:
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_READ:
		wqe->remote_addr = wr->wr.rdma.remote_addr;
		wqe->rkey = wr->wr.rdma.rkey;
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		wqe->swap = wr->wr.atomic.swap;
		/* fall through */
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		wqe->remote_addr = wr->wr.atomic.remote_addr;
		wqe->rkey = wr->wr.atomic.rkey;
		wqe->compare_add = wr->wr.atomic.compare_add;
		break;
	case IBV_WR_LOCAL_INV:
		wqe->invalidate_rkey = wr->invalidate_rkey;
		break;
	case IBV_WR_BIND_MW:
		if (wr->bind_mw.mw->type != IBV_MW_TYPE_2 ||
		    rove_wqe_set_bind(wqe, wr->bind_mw.mw, wr->bind_mw.rkey,
				      &wr->bind_mw.bind_info))
			return EINVAL;
		break;
	default:
		return EINVAL;
	}

	rove_wqe_begin(wqe, wr->wr_id, wr->opcode, wr->send_flags | qp->always);
	if (wr->send_flags & IBV_SEND_INLINE)
		return rove_may_inline(wr->opcode) ?
		       fill_inline(qp, wqe, wr) : EINVAL;
	rove_wqe_set_sges(wqe, wr->sg_list, wr->num_sge);
	return 0;
}

int rove_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr,
		   struct ibv_send_wr **bad_wr)
{
	struct rove_qp *qp = to_rove_qp(ibqp);
	struct ibv_send_wr *list = wr;
	struct rove_wq *sq = &qp->sq;
	bool wake = false;
	uint32_t first;
	int ret = 0;
	int err;

	rove_lock(&sq->lock);
	first = sq->prod;
	for (; wr; wr = wr->next) {
		if (unlikely(!rove_may_send(qp)))
			ret = EINVAL;
		else if (unlikely(rove_wq_full(sq)))
			ret = rove_no_room(sq);
		else
			ret = fill_send(qp, rove_ring_slot(&sq->ring, sq->prod),
					wr);
		if (unlikely(ret)) {
			*bad_wr = wr;
			break;
		}
		sq->prod++;
	}
	if (likely(sq->prod != first))
		wake = rove_ring_publish(&sq->ring, sq->prod);
	rove_unlock(&sq->lock);

	if (wake) {
		err = rove_wakeup(ibqp, IB_USER_VERBS_CMD_POST_SEND);
		if (unlikely(err) && !ret) {
			*bad_wr = list;
			ret = err;
		}
	}
	return ret;
}

int rove_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr,
		   struct ibv_recv_wr **bad_wr)
{
	struct rove_qp *qp = to_rove_qp(ibqp);
	struct ibv_recv_wr *list = wr;
	struct rove_wq *rq = &qp->rq;
	bool wake = false;
	uint32_t first;
	int ret = 0;
	int err;

	rove_lock(&rq->lock);
	first = rq->prod;
	for (; wr; wr = wr->next) {
		if (unlikely(qp->state == IBV_QPS_RESET))
			ret = EINVAL;
		else if (unlikely(rove_wq_full(rq)))
			ret = rove_no_room(rq);
		else
			ret = rove_fill_recv(rq, wr);
		if (unlikely(ret)) {
			*bad_wr = wr;
			break;
		}
	}
	if (likely(rq->prod != first))
		wake = rove_ring_publish(&rq->ring, rq->prod);
	rove_unlock(&rq->lock);

	if (unlikely(wake)) {
		err = rove_wakeup(ibqp, IB_USER_VERBS_CMD_POST_RECV);
		if (unlikely(err) && !ret) {
			*bad_wr = list;
			ret = err;
		}
	}
	return ret;
}
