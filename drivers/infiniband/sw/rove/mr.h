/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * mr.h - memory regions as ib_core knows them
 *
 * What the data path uses of one is its struct rove_region.  The structures here
 * are ib_core's and belong to whoever registers and deregisters.
 */
#ifndef ROVE_MR_H
#define ROVE_MR_H

#include <rdma/ib_verbs.h>
#include "compat.h"
#include "region.h"

struct rove_dmabuf;

/**
 * struct rove_mr - a memory region
 * @ibmr: what ib_core sees; lkey == rkey
 * @region: what its key stands for
 * @umem: the pinned pages of a program, or NULL
 * @dmabuf: the buffer of another driver's that it is in, or NULL
 * @max_blocks: fast registration: blocks that there is room for; else 0
 * @num_blocks: fast registration: blocks filled in
 */
struct rove_mr {
	struct ib_mr ibmr;
	struct rove_region *region;
	struct ib_umem *umem;
	struct rove_dmabuf *dmabuf;
	u32 max_blocks;
	u32 num_blocks;
};

static inline struct rove_mr *to_rmr(struct ib_mr *ibmr)
{
	return container_of(ibmr, struct rove_mr, ibmr);
}

/*
 * Rights that there are, but for IB_ACCESS_ON_DEMAND.  IB_ACCESS_OPTIONAL (relaxed ordering) and
 * IB_ACCESS_HUGETLB are hints that change nothing here.
 */
#define ROVE_MR_ACCESS	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | \
			 IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC | \
			 IB_ACCESS_MW_BIND | IB_ZERO_BASED | \
			 IB_ACCESS_HUGETLB | IB_ACCESS_OPTIONAL)

/**
 * rove_mr_check_access() - may a region have these rights?
 * @ibdev: says in the log what is wrong with them
 * @access: IB_ACCESS_*
 *
 * Return: 0; -EOPNOTSUPP for rights that do not exist here; -EINVAL for remote
 * rights without the local one.
 */
int rove_mr_check_access(struct ib_device *ibdev, int access);
/* Can there be a region of @length bytes at @iova?  0 or -EINVAL. */
int rove_mr_check_range(struct ib_device *ibdev, u64 iova, u64 length);

/* A region that nobody can use yet; NULL: no memory, or too many.  Sleeps. */
struct rove_mr *rove_mr_alloc(struct ib_pd *ibpd, enum rove_region_kind kind,
			      int access);
/* Give it its key; @open: it may be used at once.  0 or an error.  Sleeps. */
int rove_mr_publish(struct rove_mr *mr, bool open);
/* All of one that nobody can find.  Sleeps. */
void rove_mr_free(struct rove_mr *mr);

/*
 * ib_device_ops; all sleep.  reg_user_mr: -EOPNOTSUPP for access flags that do
 * not exist here, -EINVAL for remote rights without the local one, a length of
 * 0 or addresses that wrap, and what pinning the pages says.
 */
struct ib_mr *rove_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length,
			       u64 iova, int access,
			       ROVE_DMAH_ARG struct ib_udata *udata);
struct ib_mr *rove_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start,
				 u64 length, u64 iova, int access,
				 struct ib_pd *pd, struct ib_udata *udata);
struct ib_mr *rove_get_dma_mr(struct ib_pd *ibpd, int access);
int rove_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata);

#endif /* ROVE_MR_H */
