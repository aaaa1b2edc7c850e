// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * xrc.c - extended reliable connections: SRQs that are found by number
 *
 * A target QP has neither a protection domain nor a CQ: each packet names an SRQ,
 * which has both.  The QP holds the SRQ that it took last.  The SRQ knows its
 * holders, so that it can be destroyed under them.
 *
 * XRC is for programs only, so a completion may be announced with the QP locked: no
 * handler of a kernel consumer is called.
 */
#include "cq.h"
#include "dev.h"
#include "qp.h"
#include "srq.h"
#include "xrc.h"
#include "transport/env.h"

int rove_alloc_xrcd(struct ib_xrcd *xrcd, struct ib_udata *udata)
{
	return rove_no_request(udata);
}

int rove_dealloc_xrcd(struct ib_xrcd *xrcd, struct ib_udata *udata)
{
	return 0;
}

void rove_xrc_table_init(struct rove_dev *rdev)
{
	xa_init_flags(&rdev->srqs, XA_FLAGS_ALLOC1);
}

void rove_xrc_table_destroy(struct rove_dev *rdev)
{
	xa_destroy(&rdev->srqs);
}

/* Numbers go round, so that one is not used again soon. */
int rove_xrc_publish(struct rove_srq *srq)
{
	struct rove_dev *rdev = to_rdev(srq->ibsrq.device);
	int ret;

	ret = xa_alloc_cyclic(&rdev->srqs, &srq->ibsrq.ext.xrc.srq_num, srq,
			      XA_LIMIT(1, ROVE_PSN_MASK), &rdev->next_srq,
			      ROVE_GFP_OBJECT);
	return min(ret, 0);
}

/* QP and SRQ locked. */
static void detach(struct rove_qp *qp)
{
	list_del_init(&qp->srq_holder);
	/* What it has taken is lost with the SRQ or the QP. */
	qp->t.resp.have_rwqe = false;
	qp->srq = NULL;
	qp->pd = NULL;
}

void rove_xrc_let_go(struct rove_qp *qp)
{
	struct rove_srq *srq = qp->srq;

	if (!qp->t.target || !srq)
		return;
	spin_lock(&srq->lock);
	detach(qp);
	spin_unlock(&srq->lock);
}

void rove_xrc_withdraw(struct rove_srq *srq)
{
	struct rove_qp *qp;

	xa_erase(&to_rdev(srq->ibsrq.device)->srqs, srq->ibsrq.ext.xrc.srq_num);
	spin_lock_bh(&srq->lock);
	srq->broken = true;
	while (!list_empty(&srq->holders)) {
		qp = list_first_entry(&srq->holders, struct rove_qp, srq_holder);
		/* It lets go before it is waited for: the reference is good. */
		rove_qp_get(qp);
		spin_unlock_bh(&srq->lock);
		rove_qp_lock(qp);
		if (qp->srq == srq)
			rove_xrc_let_go(qp);
		rove_qp_unlock(qp);
		rove_qp_put(qp);
		spin_lock_bh(&srq->lock);
	}
	spin_unlock_bh(&srq->lock);
	/* Who has found it by its number is done with it after this. */
	synchronize_rcu_expedited();
}

/* Within rcu_read_lock(). */
static struct rove_srq *find(struct rove_qp *qp, u32 srqn)
{
	struct rove_srq *srq = xa_load(&qp->rdev->srqs, srqn);

	return srq && srq->ibsrq.ext.xrc.xrcd == qp->xrcd ? srq : NULL;
}

static bool attach(struct rove_qp *qp, struct rove_srq *srq)
{
	bool alive;

	spin_lock(&srq->lock);
	alive = !srq->broken;
	if (alive) {
		list_add(&qp->srq_holder, &srq->holders);
		qp->srq = srq;
	}
	spin_unlock(&srq->lock);
	return alive;
}

int rove_env_srq(struct rove_tqp *t, u32 srqn)
{
	struct rove_qp *qp = tqp_to_rqp(t);
	struct rove_srq *srq;
	int ret = 0;

	if (!qp->srq || qp->srq->ibsrq.ext.xrc.srq_num != srqn) {
		rove_xrc_let_go(qp);
		rcu_read_lock();
		srq = find(qp, srqn);
		if (!srq || !attach(qp, srq))
			ret = -EINVAL;
		rcu_read_unlock();
	}
	if (!ret)
		qp->pd = qp->srq->ibsrq.pd;
	return ret;
}

int rove_env_srq_domain(struct rove_tqp *t, u32 srqn)
{
	struct rove_qp *qp = tqp_to_rqp(t);
	struct rove_srq *srq;

	/*
	 * Only compared with, so it does no harm that the domain may be gone by
	 * then: its regions are.
	 */
	rcu_read_lock();
	srq = find(qp, srqn);
	qp->pd = srq ? srq->ibsrq.pd : NULL;
	rcu_read_unlock();
	return srq ? 0 : -EINVAL;
}

int rove_xrc_complete(struct rove_qp *qp, const struct rove_cqe *cqe,
		      bool solicited)
{
	struct rove_cq *cq = to_rcq(qp->srq->ibsrq.ext.cq);
	int ret;

	rove_cq_note_peer(cq, qp->local_peer);
	ret = rove_cq_add(cq, cqe, 1, solicited);
	if (ret)
		rove_cq_notify(cq);
	return ret;
}
