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
#include "fastreg.h"
#include "mw.h"
#include "odp.h"
#include "qp.h"
#include "region.h"
#include "srq.h"
#include "transport/env.h"

static noinline struct rove_region *hold_another(struct rove_qp *qp, struct ib_pd *pd,
						 u32 key, u64 va, u64 len, int access)
{
	rove_data_release(qp);
	qp->region = rove_region_get(qp, pd, key, va, len, access);
	if (qp->region && unlikely(qp->region->kind == ROVE_REGION_ODP)) {
		rove_odp_hold(qp->region->odp);
		/* Unseen by sparse. */
		__release(&qp->region->odp->lock);
	}
	return qp->region;
}

/* The region for an access, or NULL; good until the next call. */
static __always_inline struct rove_region *hold_in(struct rove_qp *qp, struct ib_pd *pd,
						   u32 key, u64 va, u64 len, int access)
{
	if (likely(qp->region &&
		   rove_region_allows(qp->region, qp, pd, key, va, len, access)))
		return qp->region;
	return hold_another(qp, pd, key, va, len, access);
}

static struct rove_region *hold(struct rove_qp *qp, u32 key, u64 va, u64 len,
				int access)
{
	return hold_in(qp, qp->pd, key, va, len, access);
}

void rove_data_release(struct rove_qp *qp)
{
	struct rove_region *r = qp->region;

	if (!r)
		return;
	qp->region = NULL;
	if (unlikely(r->kind == ROVE_REGION_ODP)) {
		__acquire(&r->odp->lock);
		rove_odp_release(r->odp);
	}
	rove_region_put(r);
}

/* @va of the region held is not there (yet); @len bytes will be needed. */
static int missing(struct rove_qp *qp, u64 va, u32 len, bool write,
		   bool responder)
{
	struct rove_region *r = qp->region;

	if (r->kind != ROVE_REGION_ODP)
		return -EFAULT;
	return rove_odp_fault(qp, r, va, len, write, responder);
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
		src->from = (const u8 *)b->wqe->wqe.sge + skip;
		src->ready = b->length;
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
static struct rove_region *source_map(struct rove_source *src)
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

/* All that was found is read: find more. */
static int source_find(struct rove_source *src)
{
	struct rove_region *r = source_map(src);
	u32 n;

	if (!r)
		return -EFAULT;
	n = src->left;
	src->from = rove_region_addr(r, src->va, &n, false);
	if (unlikely(!src->from))
		return missing(src->qp, src->va, src->left, false,
			       src->b->kind == ROVE_BURST_READ_RESPONSE);
	src->ready = n;
	src->va += n;
	src->left -= n;
	return 0;
}

int rove_source_read(struct rove_source *src, void *dst, u32 len)
{
	while (len) {
		u32 n;

		if (!src->ready) {
			int ret = source_find(src);

			if (unlikely(ret))
				return ret;
		}
		n = min(len, src->ready);
		memcpy(dst, src->from, n);
		dst += n;
		src->from += n;
		src->ready -= n;
		len -= n;
	}
	return 0;
}

/* How much of @len was copied: less when the memory that follows is missing. */
static __always_inline u32 copy_in(struct rove_region *r, u64 va, const void *from, u32 len)
{
	u32 done = 0;

	while (done < len) {
		u32 n = len - done;
		void *to = rove_region_addr(r, va + done, &n, true);

		if (unlikely(!to))
			break;
		memcpy(to, from + done, n);
		done += n;
	}
	return done;
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
	struct rove_qp *qp = tqp_to_rqp(t);
	struct rove_region *r = hold(qp, rkey, va, pkt->payload_len,
				     IB_ACCESS_REMOTE_WRITE);
	u32 i;

	if (!r)
		return -EFAULT;
	for (i = 0; i < pl->n; i++) {
		u32 n = copy_in(r, va, pl->piece[i].iov_base,
				pl->piece[i].iov_len);

		va += n;
		if (unlikely(n < pl->piece[i].iov_len))
			/* the rest of the message needs its pages, too */
			return missing(qp, va, pkt->op->flags & ROVE_OPF_FIRST ?
				       pkt->dma_len : t->resp.left, true, true);
	}
	return 0;
}

/* A place in a list of SGEs, the domain of their keys, and which half wants it. */
struct target {
	struct ib_pd *pd;
	const struct rove_sge *sge;
	u32 left;
	u32 offset;
	bool responder;
};

/* Put @len bytes where @to points, and move it on. */
static int scatter(struct rove_qp *qp, struct target *to, const void *data,
		   u32 len)
{
	while (len) {
		struct rove_region *r;
		u32 n, done;
		u64 va;

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
		r = hold_in(qp, to->pd, to->sge->lkey, va, n,
			    IB_ACCESS_LOCAL_WRITE);
		if (!r)
			return -EFAULT;
		done = copy_in(r, va, data, n);
		if (unlikely(done < n))
			return missing(qp, va + done,
				       to->sge->length - to->offset - done,
				       true, to->responder);
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
		.pd = qp->pd,
		.sge = sge,
		.left = num_sge,
		.offset = offset,
		.responder = sge == t->resp.rwqe.sge,
	};
	const struct rove_payload *pl;
	int ret = 0;
	u32 i;

	/* An SRQ may be of another domain than the QP. */
	if (unlikely(qp->srq) && to.responder)
		to.pd = qp->srq->ibsrq.pd;
	if (data)
		return scatter(qp, &to, data, len);
	pl = pkt->buf;
	for (i = 0; i < pl->n && !ret; i++)
		ret = scatter(qp, &to, pl->piece[i].iov_base,
			      pl->piece[i].iov_len);
	return ret;
}

/* Eight bytes at @va that the peer may access at once, in *@word. */
static int find_word(struct rove_qp *qp, u32 rkey, u64 va, int access,
		     u64 **word)
{
	struct rove_region *r = hold(qp, rkey, va, sizeof(u64), access);
	u32 len = sizeof(u64);
	u64 *addr;

	if (!r)
		return -EFAULT;
	addr = rove_region_addr(r, va, &len, true);
	if (unlikely(!addr))
		return missing(qp, va, sizeof(u64), true, true);
	/*
	 * A region may begin at an odd address under an even IOVA; then what
	 * the peer thinks aligned is not, and might even straddle two pages.
	 */
	if (len != sizeof(u64) || !IS_ALIGNED((uintptr_t)addr, sizeof(u64)))
		return -EFAULT;
	*word = addr;
	return 0;
}

int rove_env_atomic(struct rove_tqp *t, u32 rkey, u64 va, bool cmp_swap,
		    u64 compare, u64 swap_add, u64 *orig)
{
	u64 *addr;
	int ret = find_word(tqp_to_rqp(t), rkey, va, IB_ACCESS_REMOTE_ATOMIC,
			    &addr);

	if (ret)
		return ret;
	if (cmp_swap)
		*orig = cmpxchg64(addr, compare, swap_add);
	else
		*orig = atomic64_fetch_add(swap_add, (atomic64_t *)addr);
	return 0;
}

int rove_env_atomic_write(struct rove_tqp *t, u32 rkey, u64 va,
			  const struct rove_pkt *pkt)
{
	const struct rove_payload *pl = pkt->buf;
	u64 *addr, value = 0;
	u32 i, len, n = 0;
	int ret = find_word(tqp_to_rqp(t), rkey, va, IB_ACCESS_REMOTE_WRITE,
			    &addr);

	if (ret)
		return ret;
	for (i = 0; i < pl->n && n < sizeof(value); i++) {
		len = min_t(size_t, pl->piece[i].iov_len, sizeof(value) - n);
		memcpy((u8 *)&value + n, pl->piece[i].iov_base, len);
		n += len;
	}
	/* Who sees it sees what was written before. */
	smp_store_release(addr, value);
	return 0;
}

int rove_env_invalidate(struct rove_tqp *t, u32 key)
{
	struct rove_qp *qp = tqp_to_rqp(t);

	rove_data_release(qp);
	return rove_region_invalidate(qp, key, true);
}

u32 rove_env_local(struct rove_tqp *t, const struct rove_send_wqe *wqe)
{
	struct rove_qp *qp = tqp_to_rqp(t);

	rove_data_release(qp);
	switch (wqe->opcode) {
	case ROVE_WR_LOCAL_INV:
		return rove_region_invalidate(qp, wqe->invalidate_rkey, false) ?
		       ROVE_WC_MW_BIND_ERR : ROVE_WC_SUCCESS;
	case ROVE_WR_REG_MR:
		/* Not from a program's ring, whatever it says (hazard 4). */
		return qp->user ? ROVE_WC_LOC_QP_OP_ERR :
				  rove_fastreg_execute(qp, wqe);
	case ROVE_WR_BIND_MW:
		return rove_mw_bind(qp, wqe);
	default:
		return ROVE_WC_LOC_QP_OP_ERR;
	}
}
