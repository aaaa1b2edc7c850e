// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * data.c - see data.h; and the part of the transport's environment that moves
 * bytes by key
 *
 * A region stays held from its look-up until another is needed or the QP is
 * unlocked: the packets of a train mostly need the same.  Never longer, so
 * dereg_mr waits for no peer.
 */
#include <linux/atomic.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include "data.h"
#include "mr.h"
#include "qp.h"
#include "srq.h"
#include "transport/env.h"

/* The region for an access, or NULL; good until the next call. */
static struct rove_mr *hold_in(struct rove_qp *qp, struct ib_pd *pd, u32 key,
			       u64 va, u64 len, int access)
{
	if (qp->mr && rove_mr_allows(qp->mr, pd, key, va, len, access))
		return qp->mr;
	rove_data_release(qp);
	qp->mr = rove_mr_get(qp->rdev, pd, key, va, len, access);
	return qp->mr;
}

static struct rove_mr *hold(struct rove_qp *qp, u32 key, u64 va, u64 len,
			    int access)
{
	return hold_in(qp, qp->ibqp.pd, key, va, len, access);
}

void rove_data_release(struct rove_qp *qp)
{
	if (qp->mr)
		rove_mr_put(qp->mr);
	qp->mr = NULL;
}

void rove_source_init(struct rove_source *src, struct rove_qp *qp,
		      const struct rove_burst *b)
{
	u32 skip = b->offset;

	*src = (struct rove_source) { .qp = qp, .b = b };
	if (b->kind == ROVE_BURST_READ_RESPONSE) {
		src->va = b->va + b->offset;
		src->left = b->length;
	} else if (b->wqe->wqe.flags & ROVE_WR_INLINE) {
		src->va = skip;
		src->left = b->length;
	} else {
		const struct rove_sge *sge = b->wqe->wqe.sge;

		while (src->sge < b->wqe->wqe.num_sge &&
		       skip >= sge[src->sge].length)
			skip -= sge[src->sge++].length;
		if (src->sge < b->wqe->wqe.num_sge) {
			src->va = sge[src->sge].addr + skip;
			src->left = sge[src->sge].length - skip;
		}
	}
}

/* The region of the next piece with bytes in it; NULL: there is none. */
static struct rove_mr *source_map(struct rove_source *src)
{
	const struct rove_burst *b = src->b;
	const struct rove_sge *sge;

	if (b->kind == ROVE_BURST_READ_RESPONSE)
		return hold(src->qp, b->rkey, src->va, src->left,
			    IB_ACCESS_REMOTE_READ);
	sge = b->wqe->wqe.sge;
	while (!src->left) {
		if (++src->sge >= b->wqe->wqe.num_sge)
			return NULL;
		src->va = sge[src->sge].addr;
		src->left = sge[src->sge].length;
	}
	return hold(src->qp, sge[src->sge].lkey, src->va, src->left, 0);
}

int rove_source_read(struct rove_source *src, void *dst, u32 len)
{
	const struct rove_burst *b = src->b;

	if (b->kind != ROVE_BURST_READ_RESPONSE &&
	    b->wqe->wqe.flags & ROVE_WR_INLINE) {
		memcpy(dst, (const u8 *)b->wqe->wqe.sge + src->va, len);
		src->va += len;
		return 0;
	}
	while (len) {
		struct rove_mr *mr = source_map(src);
		const void *from;
		u32 n;

		if (!mr)
			return -EFAULT;
		n = min(len, src->left);
		from = rove_mr_addr(mr, src->va, &n);
		memcpy(dst, from, n);
		dst += n;
		src->va += n;
		src->left -= n;
		len -= n;
	}
	return 0;
}

static void copy_in(struct rove_mr *mr, u64 va, const void *from, u32 len)
{
	while (len) {
		u32 n = len;
		void *to = rove_mr_addr(mr, va, &n);

		memcpy(to, from, n);
		from += n;
		va += n;
		len -= n;
	}
}

int rove_env_check_rkey(struct rove_tqp *t, u32 rkey, u64 va, u32 len,
			u32 access)
{
	return hold(tqp_to_rqp(t), rkey, va, len, access) ? 0 : -EFAULT;
}

int rove_env_write(struct rove_tqp *t, u32 rkey, u64 va,
		   const struct rove_pkt *pkt)
{
	const struct rove_payload *pl = pkt->buf;
	struct rove_mr *mr = hold(tqp_to_rqp(t), rkey, va, pkt->payload_len,
				  IB_ACCESS_REMOTE_WRITE);
	u32 i;

	if (!mr)
		return -EFAULT;
	for (i = 0; i < pl->n; i++) {
		copy_in(mr, va, pl->piece[i].iov_base, pl->piece[i].iov_len);
		va += pl->piece[i].iov_len;
	}
	return 0;
}

/* A place in a list of SGEs, and the domain of their keys. */
struct target {
	struct ib_pd *pd;
	const struct rove_sge *sge;
	u32 left;
	u32 offset;
};

/* Put @len bytes where @to points, and move it on. */
static int scatter(struct rove_qp *qp, struct target *to, const void *data,
		   u32 len)
{
	while (len) {
		struct rove_mr *mr;
		u64 va;
		u32 n;

		if (!to->left)
			return -EFAULT;
		if (to->offset >= to->sge->length) {
			to->offset -= to->sge->length;
			to->sge++;
			to->left--;
			continue;
		}
		n = min(len, to->sge->length - to->offset);
		va = to->sge->addr + to->offset;
		mr = hold_in(qp, to->pd, to->sge->lkey, va, n,
			     IB_ACCESS_LOCAL_WRITE);
		if (!mr)
			return -EFAULT;
		copy_in(mr, va, data, n);
		to->offset += n;
		data += n;
		len -= n;
	}
	return 0;
}

int rove_env_scatter(struct rove_tqp *t, const struct rove_sge *sge,
		     u32 num_sge, u32 offset, const struct rove_pkt *pkt,
		     const void *data, u32 len)
{
	struct rove_qp *qp = tqp_to_rqp(t);
	struct target to = {
		.pd = qp->ibqp.pd,
		.sge = sge,
		.left = num_sge,
		.offset = offset,
	};
	const struct rove_payload *pl;
	int ret = 0;
	u32 i;

	/* An SRQ may be of another domain than the QP. */
	if (unlikely(qp->srq) && sge == t->resp.rwqe.sge)
		to.pd = qp->srq->ibsrq.pd;
	if (data)
		return scatter(qp, &to, data, len);
	pl = pkt->buf;
	for (i = 0; i < pl->n && !ret; i++)
		ret = scatter(qp, &to, pl->piece[i].iov_base,
			      pl->piece[i].iov_len);
	return ret;
}

int rove_env_atomic(struct rove_tqp *t, u32 rkey, u64 va, bool cmp_swap,
		    u64 compare, u64 swap_add, u64 *orig)
{
	struct rove_mr *mr = hold(tqp_to_rqp(t), rkey, va, sizeof(u64),
				  IB_ACCESS_REMOTE_ATOMIC);
	u32 len = sizeof(u64);
	u64 *addr;

	if (!mr)
		return -EFAULT;
	addr = rove_mr_addr(mr, va, &len);
	/*
	 * A region may begin at an odd address under an even IOVA; then what
	 * the peer thinks aligned is not, and might even straddle two pages.
	 */
	if (len != sizeof(u64) || !IS_ALIGNED((uintptr_t)addr, sizeof(u64)))
		return -EFAULT;
	if (cmp_swap)
		*orig = cmpxchg64(addr, compare, swap_add);
	else
		*orig = atomic64_fetch_add(swap_add, (atomic64_t *)addr);
	return 0;
}

int rove_env_invalidate(struct rove_tqp *t, u32 key, bool remote)
{
	/* Regions registered by reg_mr cannot be invalidated (10.6.5). */
	return -EINVAL;
}
