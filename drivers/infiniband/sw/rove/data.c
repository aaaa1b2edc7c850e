// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * data.c - see data.h; and the part of the transport's environment that moves
 * bytes by key
 *
 * A region is held from its look-up to the end of the copy, never longer:
 * dereg_mr waits for no peer.
 */
#include <linux/atomic.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include "data.h"
#include "mr.h"
#include "qp.h"
#include "transport/env.h"

static struct rove_mr *get(struct rove_qp *qp, u32 key, u64 va, u64 len,
			   int access)
{
	return rove_mr_get(qp->rdev, qp->ibqp.pd, key, va, len, access);
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

/* Go to the next piece with bytes in it and hold its region. */
static int source_map(struct rove_source *src)
{
	const struct rove_burst *b = src->b;
	bool read = b->kind == ROVE_BURST_READ_RESPONSE;
	const struct rove_sge *sge = read ? NULL : b->wqe->wqe.sge;

	while (!src->left) {
		rove_source_done(src);
		if (read || ++src->sge >= b->wqe->wqe.num_sge)
			return -EFAULT;
		src->va = sge[src->sge].addr;
		src->left = sge[src->sge].length;
	}
	if (!src->mr)
		src->mr = get(src->qp, read ? b->rkey : sge[src->sge].lkey,
			      src->va, src->left,
			      read ? IB_ACCESS_REMOTE_READ : 0);
	return src->mr ? 0 : -EFAULT;
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
		const void *from;
		u32 n;

		if (source_map(src))
			return -EFAULT;
		n = min(len, src->left);
		from = rove_mr_addr(src->mr, src->va, &n);
		memcpy(dst, from, n);
		dst += n;
		src->va += n;
		src->left -= n;
		len -= n;
	}
	return 0;
}

void rove_source_done(struct rove_source *src)
{
	if (src->mr)
		rove_mr_put(src->mr);
	src->mr = NULL;
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
	struct rove_mr *mr = get(tqp_to_rqp(t), rkey, va, len, access);

	if (!mr)
		return -EFAULT;
	rove_mr_put(mr);
	return 0;
}

int rove_env_write(struct rove_tqp *t, u32 rkey, u64 va,
		   const struct rove_pkt *pkt)
{
	struct rove_mr *mr = get(tqp_to_rqp(t), rkey, va, pkt->payload_len,
				 IB_ACCESS_REMOTE_WRITE);

	if (!mr)
		return -EFAULT;
	copy_in(mr, va, pkt->buf + pkt->hdr_len, pkt->payload_len);
	rove_mr_put(mr);
	return 0;
}

int rove_env_scatter(struct rove_tqp *t, const struct rove_sge *sge,
		     u32 num_sge, u32 offset, const struct rove_pkt *pkt,
		     const void *data, u32 len)
{
	u32 i;

	if (!data)
		data = pkt->buf + pkt->hdr_len;
	for (i = 0; len && i < num_sge; i++) {
		struct rove_mr *mr;
		u32 n;

		if (offset >= sge[i].length) {
			offset -= sge[i].length;
			continue;
		}
		n = min(len, sge[i].length - offset);
		mr = get(tqp_to_rqp(t), sge[i].lkey, sge[i].addr + offset, n,
			 IB_ACCESS_LOCAL_WRITE);
		if (!mr)
			return -EFAULT;
		copy_in(mr, sge[i].addr + offset, data, n);
		rove_mr_put(mr);
		data += n;
		len -= n;
		offset = 0;
	}
	return len ? -EFAULT : 0;
}

int rove_env_atomic(struct rove_tqp *t, u32 rkey, u64 va, bool cmp_swap,
		    u64 compare, u64 swap_add, u64 *orig)
{
	struct rove_mr *mr = get(tqp_to_rqp(t), rkey, va, sizeof(u64),
				 IB_ACCESS_REMOTE_ATOMIC);
	u32 len = sizeof(u64);
	u64 *addr;
	int ret = -EFAULT;

	if (!mr)
		return ret;
	addr = rove_mr_addr(mr, va, &len);
	/*
	 * A region may begin at an odd address under an even IOVA; then what
	 * the peer thinks aligned is not, and might even straddle two pages.
	 */
	if (len == sizeof(u64) && IS_ALIGNED((uintptr_t)addr, sizeof(u64))) {
		if (cmp_swap)
			*orig = cmpxchg64(addr, compare, swap_add);
		else
			*orig = atomic64_fetch_add(swap_add, (atomic64_t *)addr);
		ret = 0;
	}
	rove_mr_put(mr);
	return ret;
}

int rove_env_invalidate(struct rove_tqp *t, u32 key, bool remote)
{
	/* Regions registered by reg_mr cannot be invalidated (10.6.5). */
	return -EINVAL;
}
