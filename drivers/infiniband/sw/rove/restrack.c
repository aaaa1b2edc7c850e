// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * restrack.c - driver details of objects: how full a queue is, where a QP's
 * protocol stands, what a region is made of
 */
#include <net/netlink.h>
#include <rdma/rdma_netlink.h>
#include <rdma/restrack.h>
#include "cq.h"
#include "mr.h"
#include "qp.h"
#include "region.h"
#include "restrack.h"
#include "srq.h"

struct detail {
	const char *name;
	u64 value;
};

/* All of @d in the driver's part of the message, or none. */
static int put(struct sk_buff *msg, const struct detail *d, u32 n)
{
	struct nlattr *table = nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER);
	u32 i;

	if (!table)
		return -EMSGSIZE;
	for (i = 0; i < n; i++) {
		if (rdma_nl_put_driver_u64(msg, d[i].name, d[i].value)) {
			nla_nest_cancel(msg, table);
			return -EMSGSIZE;
		}
	}
	nla_nest_end(msg, table);
	return 0;
}

static u32 filled(const struct rove_ring *r)
{
	return r->depth ? max(rove_ring_avail(r), 0) : 0;
}

int rove_fill_res_qp(struct sk_buff *msg, struct ib_qp *ibqp)
{
	struct rove_qp *qp = to_rqp(ibqp);
	struct rove_tqp *t = &qp->t;

	rove_qp_lock(qp);
	{
		const struct detail d[] = {
			{ "sq_depth", qp->sq.depth },
			{ "sq_posted", filled(&qp->sq) },
			{ "sq_outstanding", t->req.fetched - t->req.done },
			{ "rq_depth", qp->rq.depth },
			{ "rq_posted", filled(&qp->rq) },
			{ "mtu", t->mtu },
			{ "psn_next", t->req.psn_next },
			{ "psn_unacked", t->req.psn_una },
			{ "psn_expected", t->resp.epsn },
			{ "msn", t->resp.msn },
			{ "cwnd", t->req.cwnd },
			{ "retried", t->req.retried },
			{ "rnr_retried", t->req.rnr_retried },
			{ "rate_limit_kbps", qp->pace.kbps },
			{ "udp_sport", ntohs(qp->sport) },
		};

		rove_qp_unlock(qp);
		return put(msg, d, ARRAY_SIZE(d));
	}
}

int rove_fill_res_cq(struct sk_buff *msg, struct ib_cq *ibcq)
{
	struct rove_cq *cq = to_rcq(ibcq);
	struct rove_ring_hdr *hdr;
	unsigned long flags;

	spin_lock_irqsave(&cq->lock, flags);
	/* NULL when it has just been destroyed */
	hdr = cq->user ? cq->ring.hdr : NULL;
	{
		const struct detail d[] = {
			{ "depth", cq->ring.depth },
			{ "produced", cq->ring.prod },
			{ "consumed", hdr ? READ_ONCE(hdr->cons) : cq->ring.cons },
			{ "armed", hdr ? READ_ONCE(hdr->arm) : cq->armed },
			{ "overrun", cq->overrun },
			{ "moderation_count", cq->mod_count },
			{ "moderation_us", cq->mod_period },
		};

		spin_unlock_irqrestore(&cq->lock, flags);
		return put(msg, d, ARRAY_SIZE(d));
	}
}

int rove_fill_res_mr(struct sk_buff *msg, struct ib_mr *ibmr)
{
	struct rove_region *r;

	/* rereg_mr replaces it */
	rcu_read_lock();
	r = READ_ONCE(to_rmr(ibmr)->region);
	spin_lock_bh(&r->lock);
	{
		const struct detail d[] = {
			{ "kind", r->kind },
			{ "access", r->access },
			{ "usable", !!r->pd },
			{ "block_shift", r->shift },
			{ "windows", r->windows },
			{ "users", refcount_read(&r->refs) },
		};

		spin_unlock_bh(&r->lock);
		rcu_read_unlock();
		return put(msg, d, ARRAY_SIZE(d));
	}
}

int rove_fill_res_srq(struct sk_buff *msg, struct ib_srq *ibsrq)
{
	struct rove_srq *srq = to_rsrq(ibsrq);

	spin_lock_bh(&srq->lock);
	{
		const struct detail d[] = {
			{ "depth", srq->ring.depth },
			{ "posted", filled(&srq->ring) },
			{ "max_sge", srq->max_sge },
			{ "limit", srq->limit },
		};

		spin_unlock_bh(&srq->lock);
		return put(msg, d, ARRAY_SIZE(d));
	}
}
