/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * mr.h - memory regions, and their translation
 *
 * A region is a flat array of equally large blocks of kernel addresses, so
 * that an address is found by one shift and one index.  The data path looks a
 * key up for each access, holds the region only while it copies, and so never
 * delays dereg_mr for longer than that.
 *
 * A region does not change between reg_mr and dereg_mr, so its holders need no
 * lock.
 */
#ifndef ROVE_MR_H
#define ROVE_MR_H

#include <linux/completion.h>
#include <linux/rhashtable.h>
#include <rdma/ib_verbs.h>
#include "compat.h"

struct rove_dev;

enum rove_mr_type {
	ROVE_MR_USER,		/* pinned pages of a program */
	ROVE_MR_DMA,		/* all kernel memory; addresses are kernel virtual */
};

/**
 * struct rove_mr - a memory region
 * @ibmr: what ib_core sees; lkey == rkey
 * @node: in rove_dev.mrs
 * @index: key >> 8, what the table is keyed by; random
 * @type: enum rove_mr_type
 * @access: enum ib_access_flags
 * @iova: address of the first byte, as keys' users give it
 * @length: bytes
 * @umem: the pinned pages
 * @shift: log2 of the block size, at least PAGE_SHIFT
 * @offset: of @iova's byte in block 0
 * @blocks: kernel address of each block, a multiple of the block size; the
 *	first may begin before the region's memory, the last end after it
 * @refs: one for the owner, one for each copy under way
 * @released: completed when @refs falls to zero
 * @rcu: frees the structure after the last lookup may have seen it
 */
struct rove_mr {
	struct ib_mr ibmr;
	struct rhash_head node;
	u32 index;
	enum rove_mr_type type;
	int access;
	u64 iova;
	u64 length;
	struct ib_umem *umem;
	u8 shift;
	u64 offset;
	void **blocks;
	refcount_t refs;
	struct completion released;
	struct rcu_head rcu;
};

static inline struct rove_mr *to_rmr(struct ib_mr *ibmr)
{
	return container_of(ibmr, struct rove_mr, ibmr);
}

/**
 * rove_mr_get() - look a key up for an access
 * @rdev: the link
 * @pd: the protection domain of the QP that asks
 * @key: the whole key, local or remote
 * @va: start of the access
 * @len: its bytes; 0 is refused (such an access needs no region)
 * @access: IB_ACCESS_* rights needed, all of them; 0: local read
 *
 * A program's QP never gets a ROVE_MR_DMA region of the kernel's: PDs differ.
 *
 * Context: any; does not sleep.
 * Return: the region, held until rove_mr_put(); NULL when the key, the domain,
 * the rights or the bounds do not fit (overflow of @va + @len included).
 */
struct rove_mr *rove_mr_get(struct rove_dev *rdev, struct ib_pd *pd, u32 key,
			    u64 va, u64 len, int access);

/*
 * Does a region that is held allow one more access?  Parameters as above.  Context:
 * any.
 */
bool rove_mr_allows(const struct rove_mr *mr, struct ib_pd *pd, u32 key,
		    u64 va, u64 len, int access);

/* Let go of a region.  Context: any. */
void rove_mr_put(struct rove_mr *mr);

/**
 * rove_mr_addr() - where an address of the region is in kernel memory
 * @mr: held
 * @va: inside it
 * @len: how many bytes from there on are wanted; cut to what is contiguous
 *
 * Context: any.
 * Return: the kernel address.
 */
void *rove_mr_addr(const struct rove_mr *mr, u64 va, u32 *len);

/* The link's table of regions.  Context: may sleep. */
int rove_mr_table_init(struct rove_dev *rdev);
void rove_mr_table_destroy(struct rove_dev *rdev);

/*
 * ib_device_ops; all sleep.  reg_user_mr: -EOPNOTSUPP for access flags that do
 * not exist here, -EINVAL for remote rights without the local one, a length of
 * 0 or one beyond ROVE_MAX_MR_SIZE, and what pinning the pages says.
 */
struct ib_mr *rove_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length,
			       u64 iova, int access,
			       ROVE_DMAH_ARG struct ib_udata *udata);
struct ib_mr *rove_get_dma_mr(struct ib_pd *ibpd, int access);
int rove_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata);

#endif /* ROVE_MR_H */
