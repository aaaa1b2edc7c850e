// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * fastreg.c - see fastreg.h
 *
 * Such a region is allocated once, closed, and is then used again and again:
 * its consumer fills in the blocks (ib_map_mr_sg), gives the key new low bits
 * (ib_update_fast_reg_key), posts IB_WR_REG_MR, which opens it, and in the end
 * has it closed by LOCAL_INV or by the peer's SEND with Invalidate.  Nobody looks
 * at the blocks of a closed region, so they are filled in without a lock.
 */
#include <linux/log2.h>
#include <linux/slab.h>
#include "dev.h"
#include "fastreg.h"
#include "mr.h"
#include "qp.h"
#include "region.h"
#include "transport/tqp.h"

struct ib_mr *rove_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type, u32 max)
{
	struct rove_mr *mr;
	int err;

	if (type != IB_MR_TYPE_MEM_REG) {
		rove_refuse(ibpd->device, "alloc_mr: type %d: there is IB_MR_TYPE_MEM_REG",
			    type);
		return ERR_PTR(-EOPNOTSUPP);
	}
	if (!max || max > ROVE_MAX_FASTREG_BLOCKS) {
		rove_refuse(ibpd->device, "alloc_mr: %u pages, 1 to %u are allowed",
			    max, ROVE_MAX_FASTREG_BLOCKS);
		return ERR_PTR(-EINVAL);
	}
	mr = rove_mr_alloc(ibpd, ROVE_REGION_PAGES, 0);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->max_blocks = max;
	mr->region->invalidatable = true;
	mr->region->blocks = kvcalloc(max, sizeof(*mr->region->blocks),
				      ROVE_GFP_OBJECT);
	err = mr->region->blocks ? rove_mr_publish(mr, false) : -ENOMEM;
	if (err) {
		rove_mr_free(mr);
		return ERR_PTR(err);
	}
	return &mr->ibmr;
}

static int set_block(struct ib_mr *ibmr, u64 addr)
{
	struct rove_mr *mr = to_rmr(ibmr);

	if (mr->num_blocks == mr->max_blocks)
		return -ENOMEM;
	mr->region->blocks[mr->num_blocks++] = (void *)(unsigned long)addr;
	return 0;
}

int rove_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int nents,
		   unsigned int *offset)
{
	struct rove_mr *mr = to_rmr(ibmr);

	mr->num_blocks = 0;
	mr->region->shift = ilog2(ibmr->page_size);
	return ib_sg_to_pages(ibmr, sg, nents, offset, set_block);
}

int rove_fastreg_fill(struct rove_send_wqe *wqe, const struct ib_reg_wr *wr)
{
	struct rove_mr *mr = to_rmr(wr->mr);
	u64 offset = wr->mr->iova & (wr->mr->page_size - 1);

	if (!mr->max_blocks || wr->key >> 8 != mr->region->index ||
	    rove_mr_check_access(wr->mr->device, wr->access) ||
	    !wr->mr->length ||
	    offset + wr->mr->length > (u64)mr->num_blocks * wr->mr->page_size)
		return -EINVAL;
	wqe->rkey = wr->key;
	wqe->remote_addr = wr->mr->iova;
	wqe->bind.length = wr->mr->length;
	wqe->bind.access = wr->access;
	return 0;
}

u32 rove_fastreg_execute(struct rove_qp *qp, const struct rove_send_wqe *wqe)
{
	u32 status = ROVE_WC_MW_BIND_ERR;
	struct rove_region *r;

	rcu_read_lock();
	r = rove_region_find(qp->rdev, wqe->rkey);
	if (r && r->invalidatable && r->kind == ROVE_REGION_PAGES &&
	    r->home == qp->ibqp.pd) {
		spin_lock_bh(&r->lock);
		/* It has to be invalid, and its consumer not about to free it. */
		if (!r->pd && !r->dying) {
			r->key = wqe->rkey;
			r->iova = wqe->remote_addr;
			r->length = wqe->bind.length;
			r->access = wqe->bind.access;
			r->offset = r->iova & (BIT_ULL(r->shift) - 1);
			rove_region_open(r, r->home);
			status = ROVE_WC_SUCCESS;
		}
		spin_unlock_bh(&r->lock);
	}
	rcu_read_unlock();
	return status;
}
