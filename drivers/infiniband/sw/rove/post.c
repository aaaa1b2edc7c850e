// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * post.c - ib_post_send() and ib_post_recv()
 *
 * A kernel consumer's work requests go into a ring like a program's and are
 * handled by the same code; only the ring is not mapped.  Consumers post from any
 * context, hard interrupts included: the rings have a lock of their own for
 * that, and the QP's lock is never taken under it nor it under the QP's.
 *
 * From a program these calls are the wake-up for what it posted to its rings.
 */
#include <linux/preempt.h>
#include "defer.h"
#include "doorbell.h"
#include "fastreg.h"
#include "qp.h"

/* Let the QP look at its rings, as directly as the context permits. */
static void kick(struct rove_qp *qp)
{
	if (in_task() && !irqs_disabled())
		rove_doorbell_wakeup(qp);
	else
		rove_defer(qp);
}

static bool ring_full(const struct rove_ring *r, u32 prod)
{
	/* Pairs with rove_env_sq_release(): the slots may be written to. */
	return prod - smp_load_acquire(&r->hdr->cons) >= r->depth;
}

static void put_sges(struct rove_sge *to, const struct ib_sge *from, int n)
{
	int i;

	for (i = 0; i < n; i++) {
		to[i].addr = from[i].addr;
		to[i].length = from[i].length;
		to[i].lkey = from[i].lkey;
	}
}

static int put_inline(struct rove_qp *qp, struct rove_send_wqe *wqe,
		      const struct ib_send_wr *wr)
{
	u8 *to = (u8 *)wqe->sge;
	size_t len = 0;
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		const struct ib_sge *sge = &wr->sg_list[i];

		if (sge->length > qp->cap.max_inline_data - len)
			return -EINVAL;
		memcpy(to + len, (void *)(uintptr_t)sge->addr, sge->length);
		len += sge->length;
	}
	wqe->num_sge = 0;
	wqe->inline_len = len;
	return 0;
}

static int put_send(struct rove_qp *qp, struct rove_send_wqe *wqe,
		    const struct ib_send_wr *wr)
{
	/* The kernel's numbers are user space's, and ours are those. */
	BUILD_BUG_ON(ROVE_WR_RDMA_WRITE != (int)IB_WR_RDMA_WRITE ||
		     ROVE_WR_RDMA_WRITE_WITH_IMM != (int)IB_WR_RDMA_WRITE_WITH_IMM ||
		     ROVE_WR_SEND != (int)IB_WR_SEND ||
		     ROVE_WR_SEND_WITH_IMM != (int)IB_WR_SEND_WITH_IMM ||
		     ROVE_WR_RDMA_READ != (int)IB_WR_RDMA_READ ||
		     ROVE_WR_ATOMIC_CMP_AND_SWP != (int)IB_WR_ATOMIC_CMP_AND_SWP ||
		     ROVE_WR_ATOMIC_FETCH_AND_ADD != (int)IB_WR_ATOMIC_FETCH_AND_ADD ||
		     ROVE_WR_LOCAL_INV != (int)IB_WR_LOCAL_INV ||
		     ROVE_WR_REG_MR != (int)IB_WR_REG_MR ||
		     ROVE_WR_SEND_WITH_INV != (int)IB_WR_SEND_WITH_INV);

	if (wr->num_sge < 0 || wr->num_sge > qp->cap.max_send_sge)
		return -EINVAL;
	*wqe = (struct rove_send_wqe) {
		.wr_id = wr->wr_id,
		.opcode = wr->opcode,
		.flags = wr->send_flags & (ROVE_WR_FENCE | ROVE_WR_SIGNALED |
					   ROVE_WR_SOLICITED | ROVE_WR_INLINE),
		.num_sge = wr->num_sge,
	};
	if (qp->t.service == ROVE_SVC_UD) {
		if (wr->opcode != IB_WR_SEND && wr->opcode != IB_WR_SEND_WITH_IMM)
			return -EINVAL;
		wqe->ah = to_rah(ud_wr(wr)->ah)->number;
		wqe->remote_qpn = ud_wr(wr)->remote_qpn;
		wqe->remote_qkey = ud_wr(wr)->remote_qkey;
	}
	/* 6.1 has no name for ATOMIC WRITE, but it might be given its number. */
	switch ((int)wr->opcode) {
	case IB_WR_SEND:
		break;
	case IB_WR_SEND_WITH_IMM:
		wqe->imm_data = wr->ex.imm_data;
		break;
	case IB_WR_SEND_WITH_INV:
		wqe->invalidate_rkey = wr->ex.invalidate_rkey;
		break;
	case IB_WR_RDMA_WRITE_WITH_IMM:
		wqe->imm_data = wr->ex.imm_data;
		fallthrough;
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_READ:
	case ROVE_WR_ATOMIC_WRITE:
		wqe->remote_addr = rdma_wr(wr)->remote_addr;
		wqe->rkey = rdma_wr(wr)->rkey;
		break;
	case IB_WR_ATOMIC_CMP_AND_SWP:
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		wqe->remote_addr = atomic_wr(wr)->remote_addr;
		wqe->compare_add = atomic_wr(wr)->compare_add;
		wqe->swap = atomic_wr(wr)->swap;
		wqe->rkey = atomic_wr(wr)->rkey;
		break;
	case IB_WR_LOCAL_INV:
		wqe->num_sge = 0;
		wqe->invalidate_rkey = wr->ex.invalidate_rkey;
		return 0;
	case IB_WR_REG_MR:
		wqe->num_sge = 0;
		return rove_fastreg_fill(wqe, reg_wr(wr));
	default:
		return -EOPNOTSUPP;
	}
	if (wqe->flags & ROVE_WR_INLINE)
		return put_inline(qp, wqe, wr);
	put_sges(wqe->sge, wr->sg_list, wr->num_sge);
	return 0;
}

int rove_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		   const struct ib_send_wr **bad_wr)
{
	struct rove_qp *qp = to_rqp(ibqp);
	struct rove_ring *r = &qp->sq;
	unsigned long flags;
	int ret = 0;
	u32 prod;

	if (qp->user) {
		/* A program's requests come by the ring alone. */
		if (wr) {
			*bad_wr = wr;
			return -EINVAL;
		}
		rove_doorbell_wakeup(qp);
		return 0;
	}
	if (READ_ONCE(qp->t.state) < ROVE_TQP_RTS) {
		*bad_wr = wr;
		return -EINVAL;
	}
	if (!r->depth) {
		*bad_wr = wr;
		return -ENOMEM;
	}
	spin_lock_irqsave(&qp->sq_post_lock, flags);
	prod = r->hdr->prod;
	for (; wr; wr = wr->next) {
		ret = ring_full(r, prod) ? -ENOMEM :
		      put_send(qp, rove_ring_slot(r, prod), wr);
		if (ret) {
			*bad_wr = wr;
			break;
		}
		prod++;
	}
	/* Pairs with rove_ring_avail(): the slots are written. */
	smp_store_release(&r->hdr->prod, prod);
	spin_unlock_irqrestore(&qp->sq_post_lock, flags);
	kick(qp);
	return ret;
}

int rove_post_recvs(struct rove_ring *r, spinlock_t *lock, u32 max_sge,
		    const struct ib_recv_wr *wr,
		    const struct ib_recv_wr **bad_wr)
{
	unsigned long flags;
	int ret = 0;
	u32 prod;

	spin_lock_irqsave(lock, flags);
	prod = r->hdr->prod;
	for (; wr; wr = wr->next) {
		struct rove_recv_wqe *wqe;

		if (ring_full(r, prod))
			ret = -ENOMEM;
		else if (wr->num_sge < 0 || wr->num_sge > max_sge)
			ret = -EINVAL;
		if (ret) {
			*bad_wr = wr;
			break;
		}
		wqe = rove_ring_slot(r, prod++);
		wqe->wr_id = wr->wr_id;
		wqe->num_sge = wr->num_sge;
		put_sges(wqe->sge, wr->sg_list, wr->num_sge);
	}
	/* Pairs with rove_ring_avail(): the slots are written. */
	smp_store_release(&r->hdr->prod, prod);
	spin_unlock_irqrestore(lock, flags);
	return ret;
}

int rove_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		   const struct ib_recv_wr **bad_wr)
{
	struct rove_qp *qp = to_rqp(ibqp);
	int ret;

	if (qp->user) {
		if (wr) {
			*bad_wr = wr;
			return -EINVAL;
		}
		rove_doorbell_wakeup(qp);
		return 0;
	}
	if (READ_ONCE(qp->t.state) == ROVE_TQP_RESET) {
		*bad_wr = wr;
		return -EINVAL;
	}
	if (!qp->rq.depth) {
		*bad_wr = wr;
		return ibqp->srq ? -EINVAL : -ENOMEM;
	}
	ret = rove_post_recvs(&qp->rq, &qp->rq_post_lock, qp->cap.max_recv_sge,
			      wr, bad_wr);
	/*
	 * Nobody waits for a receive to be posted but the flush of a dead QP.  Pairs with
	 * rove_doorbell_error(): the flush sees the post, or this sees the state.
	 */
	smp_mb();
	if (READ_ONCE(qp->t.state) == ROVE_TQP_ERR)
		kick(qp);
	return ret;
}
