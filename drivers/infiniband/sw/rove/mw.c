// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * mw.c - see mw.h
 *
 * A window is a struct rove_region with the blocks of another: while it is bound, that
 * other one can neither be deregistered nor changed.  One of type 1 may be bound
 * by any QP of its domain, again and again, and is used by all of them; one of
 * type 2B belongs to the QP that binds it until it is invalidated.
 */
#include <linux/overflow.h>
#include "dev.h"
#include "mw.h"
#include "qp.h"

/* Local write is what programs put there, and means nothing. */
#define BIND_ACCESS	(ROVE_REGION_REMOTE | IB_ACCESS_LOCAL_WRITE | \
			 IB_ZERO_BASED)

int rove_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata)
{
	struct rove_mw *mw = container_of(ibmw, struct rove_mw, ibmw);
	struct rove_dev *rdev = to_rdev(ibmw->device);
	int err;

	err = rove_no_request(udata);
	if (err)
		return err;
	err = rove_dev_charge(rdev, &rdev->num_mw, ROVE_MAX_MW, "memory windows");
	if (err)
		return err;
	mw->region = rove_region_alloc(ibmw->pd, ROVE_REGION_WINDOW);
	if (!mw->region) {
		err = -ENOMEM;
		goto err_uncharge;
	}
	mw->region->invalidatable = ibmw->type == IB_MW_TYPE_2;
	err = rove_region_publish(rdev, mw->region);
	if (err)
		goto err_free;
	ibmw->rkey = mw->region->key;
	return 0;

err_free:
	rove_region_free(mw->region);
err_uncharge:
	rove_dev_uncharge(&rdev->num_mw);
	return err;
}

int rove_dealloc_mw(struct ib_mw *ibmw)
{
	struct rove_mw *mw = container_of(ibmw, struct rove_mw, ibmw);
	struct rove_dev *rdev = to_rdev(ibmw->device);

	spin_lock_bh(&mw->region->lock);
	mw->region->dying = true;
	rove_region_unbind(mw->region);
	spin_unlock_bh(&mw->region->lock);
	rove_region_withdraw(rdev, mw->region);
	rove_region_free(mw->region);
	rove_dev_uncharge(&rdev->num_mw);
	return 0;
}

/* May this part of the region be bound with these rights?  (10.6.7.2) */
static bool may_bind(const struct rove_qp *qp, const struct rove_region *r,
		     const struct rove_send_wqe *wqe)
{
	u32 access = wqe->bind.access;

	/* Pairs with rove_region_open(), and is NULL of one that is not in use. */
	if (smp_load_acquire(&r->pd) != qp->ibqp.pd || r->key != wqe->bind.lkey ||
	    !(r->access & IB_ACCESS_MW_BIND) || access & ~BIND_ACCESS)
		return false;
	if (access & (IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC) &&
	    !(r->access & IB_ACCESS_LOCAL_WRITE))
		return false;
	return rove_region_covers(r, wqe->remote_addr, wqe->bind.length);
}

/*
 * The pages that a window is to be bound to, or NULL.  Another domain's are not even
 * held for a moment, in which their owner could not free them.  Within rcu_read_lock().
 */
static struct rove_region *use_pages(const struct rove_qp *qp, u32 key)
{
	struct rove_region *r = rove_region_find(qp->rdev, key), *gone;

	do {
		if (!r || r->kind != ROVE_REGION_PAGES || r->home != qp->ibqp.pd)
			return NULL;
		if (!rove_region_use(r))
			return r;
		/* It is about to go; or another has taken its place. */
		gone = r;
		r = rove_region_find(qp->rdev, key);
	} while (r != gone);
	return NULL;
}

/* @w and @wqe->bind.length are good; @w->lock held. */
static u32 bind(struct rove_qp *qp, struct rove_region *w,
		const struct rove_send_wqe *wqe)
{
	struct rove_region *old = w->parent, *r;
	bool type_2 = w->invalidatable;

	/* First, so that it stays what it is. */
	r = use_pages(qp, wqe->bind.lkey);
	if (!r)
		return ROVE_WC_MW_BIND_ERR;
	if (!may_bind(qp, r, wqe)) {
		rove_region_unuse(r);
		return ROVE_WC_MW_BIND_ERR;
	}
	rove_region_close(w);
	if (old)
		rove_region_unuse(old);
	w->parent = r;
	w->key = wqe->rkey;
	w->access = wqe->bind.access & ROVE_REGION_REMOTE;
	w->qp_serial = type_2 ? qp->serial : 0;
	w->iova = wqe->bind.access & IB_ZERO_BASED ? 0 : wqe->remote_addr;
	w->length = wqe->bind.length;
	w->shift = r->shift;
	w->blocks = r->blocks;
	w->offset = wqe->remote_addr - r->iova + r->offset;
	rove_region_open(w, w->home);
	return ROVE_WC_SUCCESS;
}

u32 rove_mw_bind(struct rove_qp *qp, const struct rove_send_wqe *wqe)
{
	u32 status = ROVE_WC_MW_BIND_ERR;
	struct rove_region *w;

	rcu_read_lock();
	w = rove_region_find(qp->rdev, wqe->rkey);
	if (!w || w->kind != ROVE_REGION_WINDOW || w->home != qp->ibqp.pd)
		goto out;
	spin_lock_bh(&w->lock);
	if (w->dying) {
		/* nothing any more */
	} else if (!wqe->bind.length) {
		/* Bound to no bytes it is not bound; type 2 has LOCAL_INV for that. */
		if (!w->invalidatable) {
			rove_region_unbind(w);
			w->key = wqe->rkey;
			status = ROVE_WC_SUCCESS;
		}
	} else if (!w->invalidatable || !w->pd) {
		status = bind(qp, w, wqe);
	}
	spin_unlock_bh(&w->lock);
out:
	rcu_read_unlock();
	return status;
}
