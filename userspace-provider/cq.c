// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The life of a completion queue: create, arm, resize, forget a QP, destroy.
 */
#include <errno.h>
#include <stdlib.h>

#include "rove.h"

ROVE_RESP(rove_cq_resp, ib_uverbs_ex_create_cq_resp, rove_create_cq_resp);
ROVE_RESP(rove_resize_resp, ib_uverbs_resize_cq_resp, rove_create_cq_resp);

#define TIMESTAMPS	(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |		\
			 IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)

static int map_ring(struct rove_cq *cq, struct rove_ring *ring,
		    const struct rove_ring_info *info)
{
	return rove_ring_map(ring, cq->vcq.cq.context->cmd_fd, info,
			     sizeof(struct rove_cqe));
}

static struct rove_cq *create(struct ibv_context *context,
			      const struct ibv_cq_init_attr_ex *attr,
			      bool single_threaded, struct ibv_pd *pd)
{
	union rove_cq_resp resp = {};
	struct ibv_create_cq_ex cmd = {};
	struct ibv_cq_init_attr_ex ask = {
		.cqe = attr->cqe,
		.cq_context = attr->cq_context,
		.channel = attr->channel,
		.comp_vector = attr->comp_vector,
		/* All that the kernel need know of how the CQ is polled. */
		.wc_flags = attr->wc_flags & TIMESTAMPS ?
			    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP : 0,
	};
	struct rove_pd *owner;
	struct rove_cq *cq;
	int ret;

	cq = rove_object_alloc(pd, sizeof(*cq), ROVE_RESOURCE_CQ, &owner);
	if (!cq)
		return NULL;
	cq->owner = owner;

	ret = rove_cmd_create_cq_ex(context, &ask, &cq->vcq, &cmd, sizeof(cmd),
				    &resp.core, sizeof(resp));
	if (ret)
		goto free_cq;

	ret = map_ring(cq, &cq->ring, &resp.own.cq);
	if (ret)
		goto destroy;

	rove_lock_init(&cq->lock, single_threaded);
	rove_lock_init(&cq->arm_lock, single_threaded);
	return cq;

destroy:
	/*
	 * libibverbs prepares these two only once we have returned the CQ,
	 * but looks at them here.
	 */
	pthread_mutex_init(&cq->vcq.cq.mutex, NULL);
	pthread_cond_init(&cq->vcq.cq.cond, NULL);
	ibv_cmd_destroy_cq(&cq->vcq.cq);
free_cq:
	rove_object_free(owner, cq, ROVE_RESOURCE_CQ);
	errno = ret;
	return NULL;
}

struct ibv_cq *rove_create_cq(struct ibv_context *context, int cqe,
			      struct ibv_comp_channel *channel,
			      int comp_vector)
{
	struct ibv_cq_init_attr_ex attr = {
		.channel = channel,
		.comp_vector = comp_vector,
	};
	struct rove_cq *cq;

	if (cqe < 1) {
		errno = EINVAL;
		return NULL;
	}
	attr.cqe = cqe;
	cq = create(context, &attr, false, NULL);
	return cq ? &cq->vcq.cq : NULL;
}

struct ibv_cq_ex *rove_create_cq_ex(struct ibv_context *context,
				    struct ibv_cq_init_attr_ex *attr)
{
	bool single_threaded = false;
	struct ibv_pd *pd = NULL;
	struct rove_cq *cq;

	if (attr->cqe < 1) {
		errno = EINVAL;
		return NULL;
	}
	if ((attr->wc_flags & ~rove_cq_wc_flags) ||
	    (attr->comp_mask & ~(uint32_t)(IBV_CQ_INIT_ATTR_MASK_FLAGS |
					   IBV_CQ_INIT_ATTR_MASK_PD)))
		goto unsupported;

	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) {
		if (attr->flags & ~(uint32_t)IBV_CREATE_CQ_ATTR_SINGLE_THREADED)
			goto unsupported;
		single_threaded = attr->flags;
	}
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) {
		pd = attr->parent_domain;
		if (!pd || !to_rove_pd(pd)->real) {
			errno = EINVAL;
			return NULL;
		}
		single_threaded |= to_rove_pd(pd)->td != NULL;
	}

	cq = create(context, attr, single_threaded, pd);
	if (!cq)
		return NULL;
	rove_cq_set_ex_ops(&cq->vcq.cq_ex, attr->wc_flags);
	return &cq->vcq.cq_ex;

unsupported:
	errno = EOPNOTSUPP;
	return NULL;
}

/*
 * Arming costs no system call: the kernel looks at the word after each
 * completion that it stores.  A wish for the next completion is not weakened
 * by a later one for the next solicited one; the kernel takes both back when
 * it sends the event.
 */
int rove_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	const uint32_t want = solicited_only ? ROVE_CQ_ARM_SOLICITED :
					       ROVE_CQ_ARM_NEXT;
	struct rove_cq *cq = to_rove_cq(ibcq);
	struct rove_ring_hdr *hdr;
	uint32_t old;
	int ret = 0;

	rove_lock(&cq->arm_lock);
	hdr = cq->ring.hdr;
	if (unlikely(!hdr)) {
		ret = EIO;
		goto unlock;
	}
	old = __atomic_load_n(&hdr->arm, __ATOMIC_RELAXED);
	while (old != want && old != ROVE_CQ_ARM_NEXT &&
	       !__atomic_compare_exchange_n(&hdr->arm, &old, want, true,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	/* Polls from here on see what the kernel stored before it saw us. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
unlock:
	rove_unlock(&cq->arm_lock);
	return ret;
}

/*
 * The kernel allocates the new ring, moves there what we have not polled, carries
 * over the arm word, and answers with the new ring's whereabouts.
 *
 * From then on the old ring is dead.  Should the new one not be mappable, the
 * old one is given up to make room and the attempt repeated; should that fail
 * too, the CQ has no ring: polling and arming it fail, but nothing is lost,
 * and another ibv_resize_cq() brings the completions back.
 */
int rove_resize_cq(struct ibv_cq *ibcq, int cqe)
{
	struct rove_cq *cq = to_rove_cq(ibcq);
	union rove_resize_resp resp = {};
	struct ibv_resize_cq cmd = {};
	struct rove_ring ring;
	int ret;

	if (cqe < 1)
		return EINVAL;

	rove_lock(&cq->lock);
	rove_lock(&cq->arm_lock);

	ret = ibv_cmd_resize_cq(ibcq, cqe, &cmd, sizeof(cmd),
				&resp.core, sizeof(resp));
	if (ret)
		goto unlock;

	ret = map_ring(cq, &ring, &resp.own.cq);
	rove_ring_unmap(&cq->ring);
	if (ret)
		ret = map_ring(cq, &ring, &resp.own.cq);
	cq->ring = ring;
	cq->cons = 0;
	cq->prod = 0;
unlock:
	rove_unlock(&cq->arm_lock);
	rove_unlock(&cq->lock);
	return ret;
}

/* Moderation: fewer events for many completions. */
int rove_modify_cq(struct ibv_cq *ibcq, struct ibv_modify_cq_attr *attr)
{
	struct ibv_modify_cq cmd = {};

	return ibv_cmd_modify_cq(ibcq, attr, &cmd, sizeof(cmd));
}

/**
 * rove_cq_forget_qp - removes a QP's completions
 * @ibcq: where they are
 * @qp_num: whose; the kernel adds no more of them
 *
 * What remains is moved up to the producer, newest first, so that it is
 * still taken in order; the consumer index then skips the gap.  The kernel
 * does not touch the slots in between.
 */
void rove_cq_forget_qp(struct ibv_cq *ibcq, uint32_t qp_num)
{
	struct rove_cq *cq = to_rove_cq(ibcq);
	const struct rove_cqe *from;
	uint32_t gone = 0;
	uint32_t index;

	rove_lock(&cq->lock);
	if (!cq->ring.hdr)
		goto unlock;
	cq->prod = rove_index_load(&cq->ring.hdr->prod);
	if (cq->prod - cq->cons > cq->ring.depth) {
		cq->prod = cq->cons;
		goto unlock;
	}
	for (index = cq->prod; index != cq->cons; index--) {
		from = rove_ring_slot(&cq->ring, index - 1);
		if (from->qp_num == qp_num)
			gone++;
		else if (gone)
			*(struct rove_cqe *)rove_ring_slot(&cq->ring,
					index - 1 + gone) = *from;
	}
	if (gone) {
		cq->cons += gone;
		rove_index_store(&cq->ring.hdr->cons, cq->cons);
	}
unlock:
	rove_unlock(&cq->lock);
}

int rove_destroy_cq(struct ibv_cq *ibcq)
{
	struct rove_cq *cq = to_rove_cq(ibcq);
	int ret = ibv_cmd_destroy_cq(ibcq);

	if (ret)
		return ret;
	rove_ring_unmap(&cq->ring);
	rove_lock_destroy(&cq->arm_lock);
	rove_lock_destroy(&cq->lock);
	rove_object_free(cq->owner, cq, ROVE_RESOURCE_CQ);
	return 0;
}
