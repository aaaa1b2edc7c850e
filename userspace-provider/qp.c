// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The life of a queue pair: create, modify, query, destroy.
 */
#include <errno.h>
#include <stdlib.h>

#include "rove.h"

/* ibv_cmd_create_qp_ex() itself hands no flags on. */
struct rove_qp_req {
	struct ibv_create_qp core;
	struct rove_create_qp_req own;
};

static_assert(sizeof(struct rove_qp_req) == sizeof(struct ibv_create_qp) +
	      sizeof(struct rove_create_qp_req), "QP request");

ROVE_RESP(rove_qp_resp, ib_uverbs_create_qp_resp, rove_create_qp_resp);

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* A queue that the QP does not have stays without a ring and always full. */
static int map_wq(struct rove_wq *wq, int cmd_fd,
		  const struct rove_ring_info *info, uint64_t wqe_size,
		  uint32_t max_wr, uint32_t max_sge)
{
	int ret;

	if (!info->mmap_size)
		return 0;
	ret = rove_ring_map(&wq->ring, cmd_fd, info, wqe_size);
	if (ret)
		return ret;
	wq->limit = smaller(max_wr, wq->ring.depth);
	wq->max_sge = max_sge;
	return 0;
}

static int map_queues(struct rove_qp *qp, const struct ibv_qp_cap *cap,
		      const struct rove_create_qp_resp *resp)
{
	uint64_t sges = (uint64_t)cap->max_send_sge * sizeof(struct rove_sge);
	uint64_t payload = sges > cap->max_inline_data ? sges :
							 cap->max_inline_data;
	int cmd_fd = qp->vqp.qp.context->cmd_fd;
	int ret;

	ret = map_wq(&qp->sq, cmd_fd, &resp->sq,
		     sizeof(struct rove_send_wqe) + payload,
		     cap->max_send_wr, cap->max_send_sge);
	if (ret)
		return ret;

	ret = map_wq(&qp->rq, cmd_fd, &resp->rq,
		     sizeof(struct rove_recv_wqe) +
		     (uint64_t)cap->max_recv_sge * sizeof(struct rove_sge),
		     cap->max_recv_wr, cap->max_recv_sge);
	if (ret)
		rove_ring_unmap(&qp->sq.ring);
	return ret;
}

/* Is all there that this type needs? */
static bool complete(const struct ibv_qp_init_attr_ex *attr)
{
	if (attr->qp_type == IBV_QPT_XRC_RECV)
		return (attr->comp_mask & IBV_QP_INIT_ATTR_XRCD) && attr->xrcd;
	return (attr->comp_mask & IBV_QP_INIT_ATTR_PD) && attr->pd &&
	       attr->send_cq &&
	       (attr->recv_cq || attr->qp_type == IBV_QPT_XRC_SEND);
}

struct ibv_qp *rove_create_qp_ex(struct ibv_context *context,
				 struct ibv_qp_init_attr_ex *attr)
{
	bool target = attr->qp_type == IBV_QPT_XRC_RECV;
	bool receives = !target && attr->qp_type != IBV_QPT_XRC_SEND;
	/*
	 * Field by field: the program's structure may be an older, shorter one.  A CQ
	 * that such a QP has no use for can be destroyed before it.  A target is of no
	 * domain, but has the one that is named: librdmacm takes it from there.
	 */
	struct ibv_qp_init_attr_ex ask = {
		.qp_context = attr->qp_context,
		.pd = attr->comp_mask & IBV_QP_INIT_ATTR_PD ? attr->pd : NULL,
		.send_cq = target ? NULL : attr->send_cq,
		.recv_cq = receives ? attr->recv_cq : NULL,
		.srq = attr->srq,
		.cap = attr->cap,
		.qp_type = attr->qp_type,
		.sq_sig_all = attr->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
	};
	union rove_qp_resp resp = {};
	struct rove_qp_req cmd = {};
	bool datagrams = attr->qp_type == IBV_QPT_UD;
	bool single_threaded = false;
	uint64_t ops = 0;
	struct rove_pd *owner;
	struct rove_qp *qp;
	int ret;

	if (attr->comp_mask & ~(uint32_t)(IBV_QP_INIT_ATTR_PD |
					  (target ? IBV_QP_INIT_ATTR_XRCD : 0) |
					  IBV_QP_INIT_ATTR_CREATE_FLAGS |
					  IBV_QP_INIT_ATTR_SEND_OPS_FLAGS))
		goto unsupported;
	if (!rove_send_ops_of(attr->qp_type) && !target)
		goto unsupported;
	if ((attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) &&
	    attr->create_flags) {
		if (!datagrams ||
		    attr->create_flags != IBV_QP_CREATE_BLOCK_SELF_MCAST_LB)
			goto unsupported;
		cmd.own.flags = ROVE_QP_NO_OWN_MULTICAST;
	}
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) {
		ops = attr->send_ops_flags;
		if (ops & ~rove_send_ops_of(attr->qp_type))
			goto unsupported;
	}
	if (!complete(attr)) {
		errno = EINVAL;
		return NULL;
	}

	qp = rove_object_alloc(target ? NULL : attr->pd, sizeof(*qp), ROVE_RESOURCE_QP,
			       &owner);
	if (!qp)
		return NULL;
	qp->owner = owner;

	if (target) {
		ask.comp_mask = IBV_QP_INIT_ATTR_XRCD;
		ask.xrcd = attr->xrcd;
	} else {
		single_threaded = to_rove_pd(attr->pd)->td != NULL;
	}
	ret = ibv_cmd_create_qp_ex(context, &qp->vqp, &ask, &cmd.core, sizeof(cmd),
				   &resp.core, sizeof(resp));
	if (ret)
		goto free_qp;

	ret = EPROTO;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS && !rove_mark_qp_ex(&qp->vqp))
		goto destroy;

	ret = map_queues(qp, &ask.cap, &resp.own);
	if (ret)
		goto destroy;

	rove_lock_init(&qp->sq.lock, single_threaded);
	rove_lock_init(&qp->rq.lock, single_threaded);
	qp->max_inline = ask.cap.max_inline_data;
	qp->datagrams = datagrams;
	qp->xrc = attr->qp_type == IBV_QPT_XRC_SEND;
	qp->always = attr->sq_sig_all ? ROVE_WR_SIGNALED : 0;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		rove_qp_set_ex_ops(&qp->vqp.qp_ex, ops);
	attr->cap = ask.cap;
	return &qp->vqp.qp;

destroy:
	ibv_cmd_destroy_qp(&qp->vqp.qp);
free_qp:
	rove_object_free(owner, qp, ROVE_RESOURCE_QP);
	errno = ret;
	return NULL;

unsupported:
	errno = EOPNOTSUPP;
	return NULL;
}

struct ibv_qp *rove_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = {
		.qp_context = attr->qp_context,
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.srq = attr->srq,
		.cap = attr->cap,
		.qp_type = attr->qp_type,
		.sq_sig_all = attr->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};
	struct ibv_qp *qp = rove_create_qp_ex(pd->context, &ex);

	if (qp)
		attr->cap = ex.cap;
	return qp;
}

/* Completions of a QP that is gone, or starts anew, are nobody's. */
static void forget_completions(struct rove_qp *qp)
{
	struct ibv_qp *ibqp = &qp->vqp.qp;

	if (ibqp->send_cq)
		rove_cq_forget_qp(ibqp->send_cq, ibqp->qp_num);
	if (ibqp->recv_cq && ibqp->recv_cq != ibqp->send_cq)
		rove_cq_forget_qp(ibqp->recv_cq, ibqp->qp_num);
}

/* The kernel has set both indices of the ring to 0. */
static void restart(struct rove_wq *wq)
{
	wq->prod = 0;
	wq->cons = 0;
}

/* A rate limit goes into the longer command only. */
static int modify(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask)
{
	struct ib_uverbs_ex_modify_qp_resp resp = {};
	struct ibv_modify_qp_ex cmd_ex = {};
	struct ibv_modify_qp cmd = {};

	if (mask & IBV_QP_RATE_LIMIT)
		return ibv_cmd_modify_qp_ex(ibqp, attr, mask, &cmd_ex,
					    sizeof(cmd_ex), &resp, sizeof(resp));
	return ibv_cmd_modify_qp(ibqp, attr, mask, &cmd, sizeof(cmd));
}

int rove_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask)
{
	struct rove_qp *qp = to_rove_qp(ibqp);
	bool reset = (mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_RESET;
	int ret;

	if (!reset) {
		ret = modify(ibqp, attr, mask);
		if (!ret && (mask & IBV_QP_STATE))
			qp->state = attr->qp_state;
		return ret;
	}

	/* Nobody may post between the kernel's return to 0 and ours. */
	rove_lock(&qp->sq.lock);
	rove_lock(&qp->rq.lock);
	ret = modify(ibqp, attr, mask);
	if (!ret) {
		qp->state = IBV_QPS_RESET;
		restart(&qp->sq);
		restart(&qp->rq);
	}
	rove_unlock(&qp->rq.lock);
	rove_unlock(&qp->sq.lock);

	if (!ret)
		forget_completions(qp);
	return ret;
}

int rove_modify_qp_rate_limit(struct ibv_qp *ibqp,
			      struct ibv_qp_rate_limit_attr *limit)
{
	struct ibv_qp_attr attr = { .rate_limit = limit->rate_limit };

	if (limit->comp_mask)
		return EINVAL;
	/* How it is kept is not to be chosen. */
	if (limit->max_burst_sz || limit->typical_pkt_sz)
		return EOPNOTSUPP;
	return modify(ibqp, &attr, IBV_QP_RATE_LIMIT);
}

int rove_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask,
		  struct ibv_qp_init_attr *init_attr)
{
	struct ibv_query_qp cmd = {};

	return ibv_cmd_query_qp(ibqp, attr, mask, init_attr,
				&cmd, sizeof(cmd));
}

int rove_destroy_qp(struct ibv_qp *ibqp)
{
	struct rove_qp *qp = to_rove_qp(ibqp);
	int ret = ibv_cmd_destroy_qp(ibqp);

	if (ret)
		return ret;
	forget_completions(qp);
	rove_ring_unmap(&qp->sq.ring);
	rove_ring_unmap(&qp->rq.ring);
	rove_lock_destroy(&qp->rq.lock);
	rove_lock_destroy(&qp->sq.lock);
	rove_object_free(qp->owner, qp, ROVE_RESOURCE_QP);
	return 0;
}
