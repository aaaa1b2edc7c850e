// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Shared receive queues: create, modify, query, destroy, post.
 *
 * Posting never makes a system call: nobody has to be told, for whoever has use
 * for a receive looks at the ring.
 */
#include <errno.h>
#include <stdlib.h>

#include "wqe.h"

ROVE_RESP(rove_srq_resp, ib_uverbs_create_srq_resp, rove_create_srq_resp);

/* MODIFY_SRQ, and behind it what is ours. */
struct modify_cmd {
	struct ibv_modify_srq core;
	struct rove_modify_srq own;
};

static_assert(offsetof(struct modify_cmd, own) == sizeof(struct ibv_modify_srq),
	      "MODIFY_SRQ");

static uint64_t wqe_size(const struct rove_srq *srq)
{
	return sizeof(struct rove_recv_wqe) +
	       (uint64_t)srq->rq.max_sge * sizeof(struct rove_sge);
}

static struct rove_srq *create(struct ibv_context *context,
			       struct ibv_srq_init_attr_ex *attr)
{
	union rove_srq_resp resp = {};
	struct ibv_create_xsrq cmd = {};
	struct rove_srq *srq;
	struct rove_pd *owner;
	int ret;

	srq = rove_object_alloc(attr->pd, sizeof(*srq), ROVE_RESOURCE_SRQ, &owner);
	if (!srq)
		return NULL;
	srq->owner = owner;

	ret = ibv_cmd_create_srq_ex(context, &srq->vsrq, attr, &cmd,
				    sizeof(cmd), &resp.core, sizeof(resp));
	if (ret)
		goto free_srq;

	srq->rq.max_sge = attr->attr.max_sge;
	ret = rove_ring_map(&srq->rq.ring, context->cmd_fd, &resp.own.rq,
			    wqe_size(srq));
	if (ret)
		goto destroy;
	srq->rq.limit = srq->rq.ring.depth;
	rove_lock_init(&srq->rq.lock, to_rove_pd(attr->pd)->td != NULL);
	/* libibverbs does so for ibv_create_srq() only. */
	srq->vsrq.srq.srq_context = attr->srq_context;
	srq->vsrq.srq.pd = attr->pd;
	return srq;

destroy:
	ibv_cmd_destroy_srq(&srq->vsrq.srq);
free_srq:
	rove_object_free(owner, srq, ROVE_RESOURCE_SRQ);
	errno = ret;
	return NULL;
}

struct ibv_srq *rove_create_srq(struct ibv_pd *pd,
				struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr_ex ask = {
		.srq_context = attr->srq_context,
		.attr = attr->attr,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_BASIC,
		.pd = pd,
	};
	struct rove_srq *srq = create(pd->context, &ask);

	if (!srq)
		return NULL;
	attr->attr = ask.attr;
	return &srq->vsrq.srq;
}

struct ibv_srq *rove_create_srq_ex(struct ibv_context *context,
				   struct ibv_srq_init_attr_ex *attr)
{
	struct ibv_srq_init_attr_ex ask = {
		.srq_context = attr->srq_context,
		.attr = attr->attr,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE,
		.srq_type = IBV_SRQT_BASIC,
	};
	uint32_t needs = IBV_SRQ_INIT_ATTR_PD;
	struct rove_srq *srq;

	if (attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE)
		ask.srq_type = attr->srq_type;
	if (ask.srq_type == IBV_SRQT_XRC)
		needs |= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
	else if (ask.srq_type != IBV_SRQT_BASIC)
		goto unsupported;
	if (attr->comp_mask & ~(needs | IBV_SRQ_INIT_ATTR_TYPE))
		goto unsupported;
	if ((attr->comp_mask & needs) != needs || !attr->pd) {
		errno = EINVAL;
		return NULL;
	}
	ask.comp_mask |= needs;
	ask.pd = attr->pd;
	if (ask.srq_type == IBV_SRQT_XRC) {
		ask.xrcd = attr->xrcd;
		ask.cq = attr->cq;
	}

	srq = create(context, &ask);
	if (!srq)
		return NULL;
	attr->attr = ask.attr;
	return &srq->vsrq.srq;

unsupported:
	errno = EOPNOTSUPP;
	return NULL;
}

int rove_get_srq_num(struct ibv_srq *ibsrq, uint32_t *num)
{
	struct rove_srq *srq = to_rove_srq(ibsrq);

	if (srq->vsrq.srq_type != IBV_SRQT_XRC)
		return EINVAL;
	*num = srq->vsrq.srq_num;
	return 0;
}

static int map_ring(struct rove_srq *srq, struct rove_ring *ring,
		    const struct rove_ring_info *info)
{
	return rove_ring_map(ring, srq->vsrq.srq.context->cmd_fd, info,
			     wqe_size(srq));
}

/*
 * The kernel moves what it has not taken to the beginning of a new ring.  From then
 * on the old one is dead, and makes room if the new one cannot be mapped at
 * once; should that fail too, nothing can be posted until another resize succeeds.
 */
static int resize(struct rove_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	struct rove_ring_info info = {};
	struct modify_cmd cmd = {
		.own.ring_info = (uintptr_t)&info,
	};
	struct rove_wq *rq = &srq->rq;
	struct rove_ring ring;
	int ret;

	rove_lock(&rq->lock);
	ret = ibv_cmd_modify_srq(&srq->vsrq.srq, attr, mask, &cmd.core,
				 sizeof(cmd));
	if (ret)
		goto unlock;

	ret = map_ring(srq, &ring, &info);
	rove_ring_unmap(&rq->ring);
	if (ret)
		ret = map_ring(srq, &ring, &info);
	rq->ring = ring;
	rq->limit = ring.depth;
	rq->cons = ring.hdr ? rove_index_load(&ring.hdr->cons) : 0;
	rq->prod = ring.hdr ? rove_index_load(&ring.hdr->prod) : 0;
unlock:
	rove_unlock(&rq->lock);
	return ret;
}

int rove_modify_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr, int mask)
{
	struct ibv_modify_srq cmd = {};

	if (mask & IBV_SRQ_MAX_WR)
		return resize(to_rove_srq(ibsrq), attr, mask);
	return ibv_cmd_modify_srq(ibsrq, attr, mask, &cmd, sizeof(cmd));
}

int rove_query_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr)
{
	struct ibv_query_srq cmd = {};

	return ibv_cmd_query_srq(ibsrq, attr, &cmd, sizeof(cmd));
}

int rove_destroy_srq(struct ibv_srq *ibsrq)
{
	struct rove_srq *srq = to_rove_srq(ibsrq);
	int ret = ibv_cmd_destroy_srq(ibsrq);

	if (ret)
		return ret;
	rove_ring_unmap(&srq->rq.ring);
	rove_lock_destroy(&srq->rq.lock);
	rove_object_free(srq->owner, srq, ROVE_RESOURCE_SRQ);
	return 0;
}

int rove_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr,
		       struct ibv_recv_wr **bad_wr)
{
	struct rove_wq *rq = &to_rove_srq(ibsrq)->rq;
	uint32_t first;
	int ret = 0;

	rove_lock(&rq->lock);
	first = rq->prod;
	for (; wr; wr = wr->next) {
		ret = unlikely(rove_wq_full(rq)) ? ENOMEM :
		      rove_fill_recv(rq, wr);
		if (unlikely(ret)) {
			*bad_wr = wr;
			break;
		}
	}
	if (likely(rq->prod != first))
		rove_index_store(&rq->ring.hdr->prod, rq->prod);
	rove_unlock(&rq->lock);
	return ret;
}
