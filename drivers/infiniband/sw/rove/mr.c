// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * mr.c - memory regions, and their translation
 *
 * ib_core believes in a device without DMA ("virtual DMA"), so the addresses in
 * the scatter list of a pinned region are kernel addresses of its pages.
 */
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <rdma/ib_umem.h>
#include "mr.h"
#include "dev.h"

#if !IS_ENABLED(CONFIG_INFINIBAND_VIRT_DMA)
#error "rove needs CONFIG_INFINIBAND_VIRT_DMA"
#endif

#define ROVE_MR_INDEX_MASK	0xffffff
#define ROVE_MR_INSERT_TRIES	100

/*
 * IB_ACCESS_OPTIONAL (relaxed ordering) and IB_ACCESS_HUGETLB are hints that
 * change nothing here.
 */
#define ROVE_MR_ACCESS	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | \
			 IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC | \
			 IB_ACCESS_HUGETLB | IB_ACCESS_OPTIONAL)

#define ROVE_MR_REMOTE	(IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ | \
			 IB_ACCESS_REMOTE_ATOMIC)

static const struct rhashtable_params rove_mr_params = {
	.key_len = sizeof_field(struct rove_mr, index),
	.key_offset = offsetof(struct rove_mr, index),
	.head_offset = offsetof(struct rove_mr, node),
	.automatic_shrinking = true,
};

int rove_mr_table_init(struct rove_dev *rdev)
{
	return rhashtable_init(&rdev->mrs, &rove_mr_params);
}

void rove_mr_table_destroy(struct rove_dev *rdev)
{
	WARN_ON(atomic_read(&rdev->mrs.nelems));
	rhashtable_destroy(&rdev->mrs);
}

void rove_mr_put(struct rove_mr *mr)
{
	if (refcount_dec_and_test(&mr->refs))
		complete(&mr->released);
}

/*
 * The kernel's region for all memory trusts the kernel with its addresses, but a
 * peer that was given its key not to make this machine fault on a hole.
 */
static bool rove_dma_mr_covers(u64 va, u64 len, int access)
{
	u64 end;

	if (check_add_overflow(va, len, &end) || end > ULONG_MAX)
		return false;
	if (!(access & ROVE_MR_REMOTE))
		return true;
	return virt_addr_valid((void *)(unsigned long)va) &&
	       virt_addr_valid((void *)(unsigned long)(end - 1));
}

/* Nothing here can overflow: @va - @mr->iova is used only when not negative. */
static bool rove_mr_covers(const struct rove_mr *mr, u64 va, u64 len)
{
	return va >= mr->iova && va - mr->iova <= mr->length &&
	       len <= mr->length - (va - mr->iova);
}

bool rove_mr_allows(const struct rove_mr *mr, struct ib_pd *pd, u32 key,
		    u64 va, u64 len, int access)
{
	if (mr->ibmr.lkey != key || mr->ibmr.pd != pd || !len ||
	    (mr->access & access) != access)
		return false;
	if (mr->type == ROVE_MR_DMA)
		return rove_dma_mr_covers(va, len, access);
	return rove_mr_covers(mr, va, len);
}

struct rove_mr *rove_mr_get(struct rove_dev *rdev, struct ib_pd *pd, u32 key,
			    u64 va, u64 len, int access)
{
	u32 index = key >> 8;
	struct rove_mr *mr;

	rcu_read_lock();
	mr = rhashtable_lookup(&rdev->mrs, &index, rove_mr_params);
	if (mr && (!rove_mr_allows(mr, pd, key, va, len, access) ||
		   !refcount_inc_not_zero(&mr->refs)))
		mr = NULL;
	rcu_read_unlock();
	return mr;
}

void *rove_mr_addr(const struct rove_mr *mr, u64 va, u32 *len)
{
	u64 off, in_block, left;

	if (mr->type == ROVE_MR_DMA)
		return (void *)(unsigned long)va;

	off = va - mr->iova + mr->offset;
	in_block = off & (BIT_ULL(mr->shift) - 1);
	left = BIT_ULL(mr->shift) - in_block;
	*len = min_t(u64, *len, left);
	return mr->blocks[off >> mr->shift] + in_block;
}

/* Keys cannot be guessed: all their bits are random. */
static int rove_mr_publish(struct rove_dev *rdev, struct rove_mr *mr)
{
	int i, err;

	for (i = 0; i < ROVE_MR_INSERT_TRIES; i++) {
		u32 key = get_random_u32();

		mr->index = key >> 8;
		if (!mr->index)
			continue;
		mr->ibmr.lkey = key;
		mr->ibmr.rkey = key;
		err = rhashtable_lookup_insert_fast(&rdev->mrs, &mr->node,
						    rove_mr_params);
		if (err != -EEXIST)
			return err;
	}
	return -ENOMEM;
}

static struct rove_mr *rove_mr_alloc(struct ib_pd *ibpd, enum rove_mr_type type,
				     int access)
{
	struct rove_dev *rdev = to_rdev(ibpd->device);
	struct rove_mr *mr;

	if (rove_dev_charge(&rdev->num_mr, ROVE_MAX_MR))
		return NULL;
	mr = kzalloc(sizeof(*mr), GFP_KERNEL_ACCOUNT);
	if (!mr) {
		rove_dev_uncharge(&rdev->num_mr);
		return NULL;
	}
	/* ib_core sets these two only when it is in the table already */
	mr->ibmr.device = ibpd->device;
	mr->ibmr.pd = ibpd;
	mr->type = type;
	mr->access = access;
	refcount_set(&mr->refs, 1);
	init_completion(&mr->released);
	return mr;
}

/* After an RCU grace period if it was in the table. */
static void rove_mr_free(struct rove_dev *rdev, struct rove_mr *mr)
{
	kvfree(mr->blocks);
	if (mr->umem)
		ib_umem_release(mr->umem);
	rove_dev_uncharge(&rdev->num_mr);
	kfree_rcu(mr, rcu);
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

static int rove_mr_map(struct rove_mr *mr)
{
	struct ib_umem *umem = mr->umem;
	struct scatterlist *sg = umem->sgt_append.sgt.sgl;
	u64 size, pos, n;
	int i;

	mr->shift = rove_umem_shift(umem);
	size = BIT_ULL(mr->shift);
	/* where the first page lies in its block */
	pos = sg_dma_address(sg) & (size - 1);
	mr->offset = pos + ib_umem_offset(umem);
	n = ((mr->offset + mr->length - 1) >> mr->shift) + 1;
	mr->blocks = kvmalloc_array(n, sizeof(*mr->blocks),
				    GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!mr->blocks)
		return -ENOMEM;

	/* @pos: where a piece of contiguous memory begins, counted in blocks */
	for_each_sgtable_dma_sg(&umem->sgt_append.sgt, sg, i) {
		u64 addr = sg_dma_address(sg) - (pos & (size - 1));
		u64 end = pos + sg_dma_len(sg);
		u64 block = pos >> mr->shift;

		for (; block < n && block << mr->shift < end; block++) {
			mr->blocks[block] = (void *)(unsigned long)addr;
			addr += size;
		}
		pos = end;
	}
	return 0;
}

static int rove_mr_check(u64 length, int access)
{
	if (access & ~ROVE_MR_ACCESS)
		return -EOPNOTSUPP;
	if (access & (IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC) &&
	    !(access & IB_ACCESS_LOCAL_WRITE))
		return -EINVAL;
	if (!length || length > ROVE_MAX_MR_SIZE)
		return -EINVAL;
	return 0;
}

struct ib_mr *rove_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length,
			       u64 iova, int access,
			       ROVE_DMAH_ARG struct ib_udata *udata)
{
	struct rove_dev *rdev = to_rdev(ibpd->device);
	struct rove_mr *mr;
	u64 end;
	int err;

	if (ROVE_HAVE_DMAH)
		return ERR_PTR(-EOPNOTSUPP);
	err = rove_mr_check(length, access);
	if (err)
		return ERR_PTR(err);
	if (check_add_overflow(iova, length - 1, &end))
		return ERR_PTR(-EINVAL);
	mr = rove_mr_alloc(ibpd, ROVE_MR_USER, access);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->iova = iova;
	mr->length = length;

	mr->umem = rove_umem_get(ibpd->device, start, length, access);
	if (IS_ERR(mr->umem)) {
		err = PTR_ERR(mr->umem);
		mr->umem = NULL;
		goto err_free;
	}
	err = rove_mr_map(mr);
	if (err)
		goto err_free;
	err = rove_mr_publish(rdev, mr);
	if (err)
		goto err_free;
	return &mr->ibmr;

err_free:
	rove_mr_free(rdev, mr);
	return ERR_PTR(err);
}

struct ib_mr *rove_get_dma_mr(struct ib_pd *ibpd, int access)
{
	struct rove_dev *rdev = to_rdev(ibpd->device);
	struct rove_mr *mr;
	int err;

	/* never a program's (hazard 6) */
	if (ibpd->uobject)
		return ERR_PTR(-EPERM);
	if (access & ~ROVE_MR_ACCESS)
		return ERR_PTR(-EOPNOTSUPP);
	mr = rove_mr_alloc(ibpd, ROVE_MR_DMA, access);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->length = U64_MAX;

	err = rove_mr_publish(rdev, mr);
	if (err) {
		rove_mr_free(rdev, mr);
		return ERR_PTR(err);
	}
	return &mr->ibmr;
}

/* Nobody copies to or from the region any more when this returns. */
int rove_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct rove_dev *rdev = to_rdev(ibmr->device);
	struct rove_mr *mr = to_rmr(ibmr);

	rhashtable_remove_fast(&rdev->mrs, &mr->node, rove_mr_params);
	rove_mr_put(mr);
	wait_for_completion(&mr->released);
	rove_mr_free(rdev, mr);
	return 0;
}
