/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Filling a slot of the send ring, shared by ibv_post_send() (post.c) and the
 * ibv_wr_*() builders (wr.c), or of a receive ring.  Nothing is read back from the slot for a
 * decision that matters: another thread may be scribbling there.
 */
#ifndef ROVE_WQE_H
#define ROVE_WQE_H

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "rove.h"

/* Nobody translates opcodes and flags, or scatter/gather entries. */
static_assert(ROVE_WR_RDMA_WRITE == (int)IBV_WR_RDMA_WRITE &&
	      ROVE_WR_RDMA_WRITE_WITH_IMM == (int)IBV_WR_RDMA_WRITE_WITH_IMM &&
	      ROVE_WR_SEND == (int)IBV_WR_SEND &&
	      ROVE_WR_SEND_WITH_IMM == (int)IBV_WR_SEND_WITH_IMM &&
	      ROVE_WR_RDMA_READ == (int)IBV_WR_RDMA_READ &&
	      ROVE_WR_ATOMIC_CMP_AND_SWP == (int)IBV_WR_ATOMIC_CMP_AND_SWP &&
	      ROVE_WR_ATOMIC_FETCH_AND_ADD == (int)IBV_WR_ATOMIC_FETCH_AND_ADD &&
	      ROVE_WR_LOCAL_INV == (int)IBV_WR_LOCAL_INV &&
	      ROVE_WR_BIND_MW == (int)IBV_WR_BIND_MW &&
	      ROVE_WR_ATOMIC_WRITE == (int)IBV_WR_ATOMIC_WRITE &&
	      ROVE_WR_SEND_WITH_INV == (int)IBV_WR_SEND_WITH_INV, "opcodes");
static_assert(ROVE_WR_FENCE == (int)IBV_SEND_FENCE &&
	      ROVE_WR_SIGNALED == (int)IBV_SEND_SIGNALED &&
	      ROVE_WR_SOLICITED == (int)IBV_SEND_SOLICITED &&
	      ROVE_WR_INLINE == (int)IBV_SEND_INLINE, "flags");
static_assert(sizeof(struct ibv_sge) == sizeof(struct rove_sge) &&
	      offsetof(struct ibv_sge, length) ==
	      offsetof(struct rove_sge, length) &&
	      offsetof(struct ibv_sge, lkey) ==
	      offsetof(struct rove_sge, lkey), "sge");

#define ROVE_WQE_FLAGS	(ROVE_WR_FENCE | ROVE_WR_SIGNALED | \
			 ROVE_WR_SOLICITED | ROVE_WR_INLINE)

/* Work may be handed in from RTS on; in SQE and ERR it is flushed. */
static inline bool rove_may_send(const struct rove_qp *qp)
{
	return qp->state >= IBV_QPS_RTS;
}

static inline bool rove_may_inline(uint8_t opcode)
{
	return opcode != ROVE_WR_RDMA_READ &&
	       opcode != ROVE_WR_LOCAL_INV &&
	       opcode != ROVE_WR_BIND_MW &&
	       opcode != ROVE_WR_ATOMIC_CMP_AND_SWP &&
	       opcode != ROVE_WR_ATOMIC_FETCH_AND_ADD;
}

/* A request without payload; the fields of its opcode are the caller's. */
static inline void rove_wqe_begin(struct rove_send_wqe *wqe, uint64_t wr_id,
				  uint8_t opcode, uint8_t flags)
{
	wqe->wr_id = wr_id;
	wqe->opcode = opcode;
	wqe->flags = flags;
	wqe->num_sge = 0;
	wqe->inline_len = 0;
}

static inline void rove_wqe_set_sges(struct rove_send_wqe *wqe,
				     const struct ibv_sge *sge, uint32_t num)
{
	wqe->num_sge = num;
	if (num)
		memcpy(wqe->sge, sge, num * sizeof(*sge));
}

/* UD: to whom. */
static inline void rove_wqe_set_dest(struct rove_send_wqe *wqe,
				     struct ibv_ah *ah, uint32_t qpn,
				     uint32_t qkey)
{
	wqe->ah = to_rove_ah(ah)->number;
	wqe->remote_qpn = qpn;
	wqe->remote_qkey = qkey;
}

/*
 * Appends to the inline payload, of which @have bytes are there.  False when
 * there is no room for it.
 */
static inline bool rove_wqe_add_inline(struct rove_send_wqe *wqe,
				       uint32_t *have, uint32_t max,
				       const void *from, size_t len)
{
	if (unlikely(len > max - *have))
		return false;
	if (len)
		memcpy((char *)wqe->sge + *have, from, len);
	*have += len;
	return true;
}

/* The next slot of a receive ring, which has room. */
static inline int rove_fill_recv(struct rove_wq *rq,
				 const struct ibv_recv_wr *wr)
{
	struct rove_recv_wqe *wqe = rove_ring_slot(&rq->ring, rq->prod);

	if (unlikely((unsigned int)wr->num_sge > rq->max_sge))
		return EINVAL;
	wqe->wr_id = wr->wr_id;
	wqe->num_sge = wr->num_sge;
	if (wr->num_sge)
		memcpy(wqe->sge, wr->sg_list,
		       wr->num_sge * sizeof(*wr->sg_list));
	rq->prod++;
	return 0;
}

/*
 * The rest of a BIND_MW that has been begun; an errno.  A parent domain is its domain to
 * the kernel, and has its handle.
 */
static inline int rove_wqe_set_bind(struct rove_send_wqe *wqe,
				    const struct ibv_mw *mw, uint32_t rkey,
				    const struct ibv_mw_bind_info *info)
{
	if (unlikely((rkey ^ mw->rkey) >> 8 || (!info->mr && info->length) ||
		     (info->mr && info->mr->pd->handle != mw->pd->handle)))
		return EINVAL;
	wqe->rkey = rkey;
	wqe->remote_addr = info->addr;
	wqe->bind.length = info->length;
	wqe->bind.access = info->mw_access_flags;
	wqe->bind.lkey = info->mr ? info->mr->lkey : 0;
	return 0;
}

#endif /* ROVE_WQE_H */
