// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * mr.c - memory regions: programs' memory, and all of the kernel's
 *
 * ib_core believes in a device without DMA ("virtual DMA"), so the addresses in
 * the scatter list of a pinned region are kernel addresses of its pages.
 */
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <rdma/ib_umem.h>
#include <rdma/rove-abi.h>
#include "dmabuf.h"
#include "mr.h"
#include "odp.h"
#include "dev.h"

#if !IS_ENABLED(CONFIG_INFINIBAND_VIRT_DMA)
#error "rove needs CONFIG_INFINIBAND_VIRT_DMA"
#endif

struct rove_mr *rove_mr_alloc(struct ib_pd *ibpd, enum rove_region_kind kind,
			      int access)
{
	struct rove_dev *rdev = to_rdev(ibpd->device);
	struct rove_mr *mr;

	if (rove_dev_charge(rdev, &rdev->num_mr, ROVE_MAX_MR,
			    "memory regions"))
		return NULL;
	mr = kzalloc(sizeof(*mr), ROVE_GFP_OBJECT);
	if (!mr)
		goto err_uncharge;
	mr->region = rove_region_alloc(ibpd, kind);
	if (!mr->region)
		goto err_free;
	mr->region->access = access;
	/* ib_core sets these two only when it is in the table already */
	mr->ibmr.device = ibpd->device;
	mr->ibmr.pd = ibpd;
	return mr;

err_free:
	kfree(mr);
err_uncharge:
	rove_dev_uncharge(&rdev->num_mr);
	return NULL;
}

int rove_mr_publish(struct rove_mr *mr, bool open)
{
	int err;

	if (open)
		mr->region->pd = mr->ibmr.pd;
	err = rove_region_publish(to_rdev(mr->ibmr.device), mr->region);
	mr->ibmr.lkey = mr->region->key;
	mr->ibmr.rkey = mr->region->key;
	/* for who imports it */
	mr->ibmr.iova = mr->region->iova;
	mr->ibmr.length = mr->region->length;
	return err;
}

void rove_mr_free(struct rove_mr *mr)
{
	rove_dev_uncharge(&to_rdev(mr->ibmr.device)->num_mr);
	if (mr->region->kind != ROVE_REGION_ODP)
		kvfree(mr->region->blocks);
	else if (mr->region->odp)
		rove_odp_close(mr->region->odp);
	rove_region_free(mr->region);
	if (mr->umem)
		ib_umem_release(mr->umem);
	if (mr->dmabuf)
		rove_dmabuf_free(mr->dmabuf);
	kfree(mr);
}

/*
 * The largest block size such that where memory is not contiguous one block
 * ends and another begins.
 */
static u8 rove_umem_shift(struct ib_umem *umem)
{
	u64 borders = BIT_ULL(30);
	struct scatterlist *sg;
	u64 prev_end = 0;
	int i;

	for_each_sgtable_dma_sg(&umem->sgt_append.sgt, sg, i) {
		u64 addr = sg_dma_address(sg);

		if (i && addr != prev_end)
			borders |= addr | prev_end;
		prev_end = addr + sg_dma_len(sg);
	}
	return __ffs64(borders);
}

/* Fill in the blocks of a region for pinned pages. */
static int rove_mr_map(struct rove_region *r, struct ib_umem *umem)
{
	struct scatterlist *sg = umem->sgt_append.sgt.sgl;
	u64 size, pos, n;
	int i;

	r->shift = rove_umem_shift(umem);
	size = BIT_ULL(r->shift);
	/* where the first page lies in its block */
	pos = sg_dma_address(sg) & (size - 1);
	r->offset = pos + ib_umem_offset(umem);
	n = ((r->offset + r->length - 1) >> r->shift) + 1;
	r->blocks = kvmalloc_array(n, sizeof(*r->blocks), ROVE_GFP_OBJECT);
	if (!r->blocks)
		return -ENOMEM;

	/* @pos: where a piece of contiguous memory begins, counted in blocks */
	for_each_sgtable_dma_sg(&umem->sgt_append.sgt, sg, i) {
		u64 addr = sg_dma_address(sg) - (pos & (size - 1));
		u64 end = pos + sg_dma_len(sg);
		u64 block = pos >> r->shift;

		for (; block < n && block << r->shift < end; block++) {
			r->blocks[block] = (void *)(unsigned long)addr;
			addr += size;
		}
		pos = end;
	}
	return 0;
}

int rove_mr_check_access(struct ib_device *ibdev, int access)
{
	if (access & ~ROVE_MR_ACCESS) {
		rove_refuse(ibdev, "memory region: access %#x, %#x is not known",
			    access, access & ~ROVE_MR_ACCESS);
		return -EOPNOTSUPP;
	}
	if (access & (IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC) &&
	    !(access & IB_ACCESS_LOCAL_WRITE)) {
		rove_refuse(ibdev,
			    "memory region: access %#x: remote write and atomics need local write",
			    access);
		return -EINVAL;
	}
	return 0;
}

int rove_mr_check_range(struct ib_device *ibdev, u64 iova, u64 length)
{
	u64 end;

	if (length && !check_add_overflow(iova, length - 1, &end))
		return 0;
	rove_refuse(ibdev,
		    "memory region: %llu bytes at %#llx, at least 1 byte, and addresses must not wrap",
		    length, iova);
	return -EINVAL;
}

/* Pin a program's memory, and make it what the region translates to. */
static struct ib_umem *rove_mr_pin(struct ib_device *ibdev,
				   struct rove_region *r, u64 start, u64 length,
				   u64 iova, int access)
{
	struct ib_umem *umem;
	int err;

	umem = rove_umem_get(ibdev, start, length, access);
	if (IS_ERR(umem)) {
		if (PTR_ERR(umem) == -ENOMEM)
			rove_refuse(ibdev,
				    "memory region: no memory to pin %llu bytes; RLIMIT_MEMLOCK is %lu KiB, %llu KiB of it in use",
				    length, rlimit(RLIMIT_MEMLOCK) >> 10,
				    (u64)atomic64_read(&current->mm->pinned_vm) <<
				    (PAGE_SHIFT - 10));
		return umem;
	}
	r->iova = access & IB_ZERO_BASED ? 0 : iova;
	r->length = length;
	err = rove_mr_map(r, umem);
	if (!err)
		return umem;
	ib_umem_release(umem);
	return ERR_PTR(err);
}

/* A region of all addresses, with no memory of its own. */
static struct ib_mr *rove_whole_mr(struct ib_pd *ibpd, enum rove_region_kind kind, int access)
{
	struct rove_mr *mr;
	int err;

	mr = rove_mr_alloc(ibpd, kind, access);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->region->length = U64_MAX;
	err = rove_mr_publish(mr, true);
	if (!err)
		return &mr->ibmr;
	rove_mr_free(mr);
	return ERR_PTR(err);
}

struct ib_mr *rove_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length,
			       u64 iova, int access,
			       ROVE_DMAH_ARG struct ib_udata *udata)
{
	struct rove_reg_mr_req req = {};
	struct ib_umem *umem;
	struct rove_mr *mr;
	int err;

	if (ROVE_HAVE_DMAH)
		return ERR_PTR(-EOPNOTSUPP);
	if (udata) {
		err = rove_get_request(udata, &req, sizeof(req));
		if (err)
			return ERR_PTR(err);
		if (req.flags & ~ROVE_MR_NULL || req.rsvd)
			return ERR_PTR(-EINVAL);
		if (req.flags & ROVE_MR_NULL)
			return rove_whole_mr(ibpd, ROVE_REGION_NULL, IB_ACCESS_LOCAL_WRITE);
	}
	err = rove_mr_check_access(ibpd->device, access & ~IB_ACCESS_ON_DEMAND);
	if (!err && !(access & IB_ACCESS_ON_DEMAND && length == U64_MAX))
		err = rove_mr_check_range(ibpd->device, iova, length);
	if (err)
		return ERR_PTR(err);
	if (access & IB_ACCESS_ON_DEMAND)
		return rove_odp_reg_mr(ibpd, start, length, iova, access);
	mr = rove_mr_alloc(ibpd, ROVE_REGION_PAGES, access);
	if (!mr)
		return ERR_PTR(-ENOMEM);

	umem = rove_mr_pin(ibpd->device, mr->region, start, length, iova, access);
	if (IS_ERR(umem)) {
		err = PTR_ERR(umem);
		goto err_free;
	}
	mr->umem = umem;
	err = rove_mr_publish(mr, true);
	if (err)
		goto err_free;
	return &mr->ibmr;

err_free:
	rove_mr_free(mr);
	return ERR_PTR(err);
}

/*
 * The same pages, or others.  A program's memory is its own to pin: not that of
 * another process that was given the file descriptor.
 */
static int rove_mr_retranslate(struct rove_mr *mr, struct rove_region *new,
			       struct ib_umem **umem, bool trans, u64 start,
			       u64 length, u64 iova)
{
	struct rove_region *old = mr->region;

	if (!trans) {
		if (mr->umem->writable || !ib_access_writable(new->access)) {
			new->iova = old->iova;
			new->length = old->length;
			new->offset = old->offset;
			new->shift = old->shift;
			new->blocks = old->blocks;
			return 0;
		}
		start = mr->umem->address;
		length = old->length;
		iova = old->iova;
	}
	if (mr->umem->owning_mm != current->mm)
		return -EPERM;
	*umem = rove_mr_pin(mr->ibmr.device, new, start, length, iova,
			    new->access);
	return PTR_ERR_OR_ZERO(*umem);
}

/*
 * What is to be is prepared while the old goes on being used, and then takes its
 * place at once.  Whatever fails, the region is as it was (hazard 27).
 */
struct ib_mr *rove_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start,
				 u64 length, u64 iova, int access,
				 struct ib_pd *pd, struct ib_udata *udata)
{
	struct rove_mr *mr = to_rmr(ibmr);
	struct rove_region *old = mr->region, *new;
	bool trans = flags & IB_MR_REREG_TRANS;
	struct ib_umem *umem = NULL;
	int err = rove_no_request(udata);

	if (err)
		return ERR_PTR(err);

	/* Only what was pinned by its address can be told again by one. */
	if (!mr->umem) {
		rove_refuse(ibmr->device,
			    "rereg_mr: only for memory that was registered by its address, and not on demand");
		return ERR_PTR(-EOPNOTSUPP);
	}
	if (!(flags & IB_MR_REREG_ACCESS))
		access = old->access;
	err = rove_mr_check_access(ibmr->device, access);
	if (!err && trans)
		err = rove_mr_check_range(ibmr->device, iova, length);
	if (err)
		return ERR_PTR(err);
	new = rove_region_alloc(flags & IB_MR_REREG_PD ? pd : old->home,
				ROVE_REGION_PAGES);
	if (!new)
		return ERR_PTR(-ENOMEM);
	new->access = access;
	new->pd = new->home;
	err = rove_mr_retranslate(mr, new, &umem, trans, start, length, iova);
	if (err)
		goto err_free;
	err = rove_region_replace(to_rdev(ibmr->device), old, new);
	if (err)
		goto err_unpin;
	WRITE_ONCE(mr->region, new);
	rove_region_drain(old);
	if (umem) {
		swap(umem, mr->umem);
		ib_umem_release(umem);
		kvfree(old->blocks);
	}
	rove_region_free(old);
	return NULL;

err_unpin:
	if (umem) {
		ib_umem_release(umem);
		kvfree(new->blocks);
	}
err_free:
	rove_region_free(new);
	return ERR_PTR(err);
}

struct ib_mr *rove_get_dma_mr(struct ib_pd *ibpd, int access)
{
	/* never a program's (hazard 6) */
	if (ibpd->uobject)
		return ERR_PTR(-EPERM);
	if (access & ~ROVE_MR_ACCESS)
		return ERR_PTR(-EOPNOTSUPP);
	return rove_whole_mr(ibpd, ROVE_REGION_DMA, access);
}

/* Nobody copies to or from the region any more when this returns. */
int rove_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct rove_mr *mr = to_rmr(ibmr);
	int err;

	err = rove_region_kill(mr->region);
	if (err)
		return err;
	rove_region_withdraw(to_rdev(ibmr->device), mr->region);
	rove_mr_free(mr);
	return 0;
}
