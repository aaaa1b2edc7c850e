// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * srq.c - shared receive queues: create, modify, query, destroy, post, take
 */
#include <linux/uaccess.h>
#include <rdma/uverbs_ioctl.h>
#include "dev.h"
#include "fetch.h"
#include "srq.h"
#include "xrc.h"

static void send_events(struct work_struct *work)
{
	static const enum ib_event_type types[] = {
		[ROVE_SRQ_LIMIT_REACHED] = IB_EVENT_SRQ_LIMIT_REACHED,
		[ROVE_SRQ_ERR] = IB_EVENT_SRQ_ERR,
	};
	struct rove_srq *srq = container_of(work, struct rove_srq, event_work);
	int i;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		struct ib_event ev = {
			.device = srq->ibsrq.device,
			.element.srq = &srq->ibsrq,
			.event = types[i],
		};

		if (test_and_clear_bit(i, &srq->events) &&
		    srq->ibsrq.event_handler)
			srq->ibsrq.event_handler(&ev, srq->ibsrq.srq_context);
	}
}

static void event_due(struct rove_srq *srq, enum rove_srq_event event)
{
	set_bit(event, &srq->events);
	schedule_work(&srq->event_work);
}

/* @n work requests are left; the limit is disarmed when it tells.  SRQ locked. */
static void check_limit(struct rove_srq *srq, u32 n)
{
	if (likely(n >= srq->limit))
		return;
	srq->limit = 0;
	event_due(srq, ROVE_SRQ_LIMIT_REACHED);
}

int rove_srq_fetch(struct rove_srq *srq, struct rove_rwqe *w, u32 room)
{
	u32 max_sge = min(srq->max_sge, room);
	int n;

	spin_lock(&srq->lock);
	n = srq->broken ? -EINVAL : rove_ring_avail(&srq->ring);
	if (likely(n > 0)) {
		rove_take_recv(&srq->ring, w, max_sge);
		/* More than were copied; an XRC target has room for more. */
		if (unlikely(w->num_sge > max_sge))
			w->num_sge = U32_MAX;
		check_limit(srq, n - 1);
		n = 1;
	} else if (n < 0 && !srq->broken) {
		srq->broken = true;
		event_due(srq, ROVE_SRQ_ERR);
	}
	spin_unlock(&srq->lock);
	return n;
}

static int check_size(struct ib_device *ibdev, u32 max_wr, u32 max_sge)
{
	if (max_wr && max_wr <= ROVE_MAX_SRQ_WR && max_sge <= ROVE_MAX_SGE)
		return 0;
	rove_refuse(ibdev, "SRQ of %u work requests (1 to %u), %u SGEs (at most %u)",
		    max_wr, ROVE_MAX_SRQ_WR, max_sge, ROVE_MAX_SGE);
	return -EINVAL;
}

static int alloc_ring(struct rove_ring *r, u32 max_wr, u32 max_sge,
		      struct ib_udata *udata, struct rove_ring_info *info)
{
	struct rove_ucontext *uctx =
		rdma_udata_to_drv_context(udata, struct rove_ucontext, ibuc);

	return rove_ring_alloc(r, udata ? &uctx->ibuc : NULL, max_wr,
			       sizeof(struct rove_recv_wqe) +
			       max_sge * sizeof(struct rove_sge), info);
}

/* Errors: -EOPNOTSUPP: type; -EINVAL: size; -ENOMEM; -EFAULT. */
int rove_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init,
		    struct ib_udata *udata)
{
	struct rove_dev *rdev = to_rdev(ibsrq->device);
	struct rove_srq *srq = to_rsrq(ibsrq);
	struct rove_create_srq_resp resp = {};
	bool xrc = init->srq_type == IB_SRQT_XRC;
	int ret;

	/* No kernel consumer has a use for XRC. */
	if (init->srq_type != IB_SRQT_BASIC && !(xrc && udata))
		return -EOPNOTSUPP;
	ret = check_size(ibsrq->device, init->attr.max_wr, init->attr.max_sge);
	if (ret)
		return ret;
	if (udata && udata->outlen < sizeof(resp))
		return -EINVAL;
	ret = rove_no_request(udata);
	if (ret)
		return ret;
	ret = rove_dev_charge(rdev, &rdev->num_srq, ROVE_MAX_SRQ, "SRQs");
	if (ret)
		return ret;

	spin_lock_init(&srq->lock);
	spin_lock_init(&srq->post_lock);
	mutex_init(&srq->resize_lock);
	INIT_WORK(&srq->event_work, send_events);
	INIT_LIST_HEAD(&srq->holders);
	srq->user = udata;
	srq->max_sge = init->attr.max_sge;
	ret = alloc_ring(&srq->ring, init->attr.max_wr, srq->max_sge, udata,
			 &resp.rq);
	if (ret)
		goto err_charge;
	if (udata) {
		ret = ib_copy_to_udata(udata, &resp, sizeof(resp));
		if (ret)
			goto err_ring;
	}
	init->attr.max_wr = srq->ring.depth;
	/* Last, for then packets find it. */
	if (xrc) {
		ret = rove_xrc_publish(srq);
		if (ret)
			goto err_ring;
	}
	return 0;

err_ring:
	rove_ring_free(&srq->ring);
err_charge:
	rove_dev_uncharge(&rdev->num_srq);
	return ret;
}

/* ib_core knows that no QP uses it, but for those that find it by number. */
int rove_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata)
{
	struct rove_srq *srq = to_rsrq(ibsrq);
	struct rove_ring ring;

	if (ibsrq->srq_type == IB_SRQT_XRC)
		rove_xrc_withdraw(srq);
	cancel_work_sync(&srq->event_work);
	spin_lock_bh(&srq->lock);
	ring = rove_ring_detach(&srq->ring);
	spin_unlock_bh(&srq->lock);
	rove_ring_free(&ring);
	rove_dev_uncharge(&to_rdev(ibsrq->device)->num_srq);
	return 0;
}

/*
 * Move some of what nobody has taken yet to @to (rove_ring_move_some()).  When all is
 * there @to becomes the SRQ's ring, and the old one @to.  SRQ locked, posts too.
 * 1: there is more.
 */
static int move_some(struct rove_srq *srq, struct rove_ring *to, u32 base, u32 *at)
{
	struct rove_ring *from = &srq->ring;
	int n = rove_ring_avail(from);
	u32 end = from->cons + n;

	if (n < 0 || n > to->depth || srq->limit > to->depth)
		return -EINVAL;
	if (rove_ring_move_some(from, to, base, from->cons, end, at))
		return 1;
	to->cons = from->cons - base;
	WRITE_ONCE(to->hdr->cons, to->cons);
	/* The program reads it once the command has returned. */
	smp_store_release(&to->hdr->prod, end - base);
	swap(*from, *to);
	return 0;
}

static int move_all(struct rove_srq *srq, struct rove_ring *to)
{
	u32 base, at;
	int ret;

	spin_lock_bh(&srq->lock);
	base = srq->ring.cons;
	spin_unlock_bh(&srq->lock);
	at = base;
	do {
		spin_lock_bh(&srq->lock);
		if (srq->user) {
			ret = move_some(srq, to, base, &at);
		} else {
			spin_lock_irq(&srq->post_lock);
			ret = move_some(srq, to, base, &at);
			spin_unlock_irq(&srq->post_lock);
		}
		spin_unlock_bh(&srq->lock);
		cond_resched();
	} while (ret > 0);
	return ret;
}

/*
 * Tell a program of the ring that it gets: the command has no answer, but says where
 * one is wanted.
 */
static int tell_ring(struct ib_udata *udata, const struct rove_ring_info *info)
{
	struct rove_modify_srq cmd;
	int ret;

	if (udata->inlen < sizeof(cmd))
		return -EINVAL;
	ret = rove_get_request(udata, &cmd, sizeof(cmd));
	if (ret)
		return ret;
	return copy_to_user(u64_to_user_ptr(cmd.ring_info), info,
			    sizeof(*info)) ? -EFAULT : 0;
}

/* The old ring is untouched until nothing can fail any more (hazards 8 and 9). */
static int resize(struct rove_srq *srq, u32 max_wr, struct ib_udata *udata)
{
	struct rove_ring_info info = {};
	struct rove_ring ring = {};
	int ret;

	ret = check_size(srq->ibsrq.device, max_wr, srq->max_sge);
	if (ret)
		return ret;
	ret = alloc_ring(&ring, max_wr, srq->max_sge, udata, &info);
	if (ret)
		return ret;
	if (udata)
		ret = tell_ring(udata, &info);
	if (!ret) {
		ret = move_all(srq, &ring);
		if (ret)
			rove_refuse(srq->ibsrq.device,
				    "modify_srq: max_wr %u is less than the limit, or than what is posted",
				    max_wr);
	}
	rove_ring_free(&ring);
	return ret;
}

static int set_limit(struct rove_srq *srq, u32 limit)
{
	int ret = -EINVAL;
	u32 depth;

	spin_lock_bh(&srq->lock);
	depth = srq->ring.depth;
	if (limit <= depth) {
		ret = 0;
		srq->limit = limit;
		/* Were there no work request left, nobody would take one. */
		check_limit(srq, max(rove_ring_avail(&srq->ring), 0));
	}
	spin_unlock_bh(&srq->lock);
	if (ret)
		rove_refuse(srq->ibsrq.device, "modify_srq: srq_limit %u, at most %u",
			    limit, depth);
	return ret;
}

/* Errors: -EINVAL: size or limit, or more are posted than would fit; -ENOMEM; -EFAULT. */
int rove_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr,
		    enum ib_srq_attr_mask mask, struct ib_udata *udata)
{
	struct rove_srq *srq = to_rsrq(ibsrq);
	int ret = 0;

	if (mask & ~(IB_SRQ_MAX_WR | IB_SRQ_LIMIT))
		return -EINVAL;
	/* Nothing is changed if one of the two is wrong. */
	if ((mask & IB_SRQ_LIMIT && mask & IB_SRQ_MAX_WR) &&
	    attr->srq_limit > attr->max_wr) {
		rove_refuse(ibsrq->device, "modify_srq: srq_limit %u, at most max_wr: %u",
			    attr->srq_limit, attr->max_wr);
		return -EINVAL;
	}
	if (mask & IB_SRQ_MAX_WR) {
		mutex_lock(&srq->resize_lock);
		ret = resize(srq, attr->max_wr, udata);
		mutex_unlock(&srq->resize_lock);
	}
	if (!ret && mask & IB_SRQ_LIMIT)
		ret = set_limit(srq, attr->srq_limit);
	return ret;
}

int rove_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr)
{
	struct rove_srq *srq = to_rsrq(ibsrq);

	spin_lock_bh(&srq->lock);
	attr->max_wr = srq->ring.depth;
	attr->max_sge = srq->max_sge;
	attr->srq_limit = srq->limit;
	spin_unlock_bh(&srq->lock);
	return 0;
}

/* A kernel consumer's; a program posts to the ring alone. */
int rove_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
		       const struct ib_recv_wr **bad_wr)
{
	struct rove_srq *srq = to_rsrq(ibsrq);

	if (srq->user) {
		*bad_wr = wr;
		return -EINVAL;
	}
	return rove_post_recvs(&srq->ring, &srq->post_lock, srq->max_sge, wr,
			       bad_wr);
}
