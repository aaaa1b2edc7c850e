/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * odp.h - on-demand paging: regions whose pages come when they are needed, and go
 * when the kernel wants them
 *
 * An access that misses a page ends with -EAGAIN; a worker brings the page and
 * lets the QP try again.  While a QP holds such a region it has it read-locked, so
 * that no page goes while somebody copies.
 */
#ifndef ROVE_ODP_H
#define ROVE_ODP_H

#include <linux/spinlock.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>
#include "region.h"

struct rove_dev;
struct rove_misses;
struct rove_mr;
struct rove_odp_owner;

/**
 * struct rove_odp - what a region has that is paged on demand
 * @owner: who its memory belongs to, and who brings it; odp.c
 * @rdev: whose counters count its pages, unless @closed
 * @refs: the region's, and one for each request for pages that is on its way: that can
 *	take as long as it likes, and nobody waits for it
 * @closed: the region is gone; changed with @owner's lock held
 * @start: where in that process the region's first byte is
 * @limit: pages of kernel memory that @owner may have locked, as it was when it
 *	registered the region
 * @chunks: struct chunk (odp.c) by address / 2 MiB; those that are remembered.
 *	Changed with @owner's lock held; what is taken out goes when nobody has @lock
 * @lock: read: nobody takes pages, or chunks, away
 * @gate: held by who waits for @lock, so that a writer comes before readers that come after it:
 *	rwlocks let softirqs pass it, and of many QPs one always has the lock
 * @faults: pages brought because they were needed
 * @invalidations: pages taken away
 * @prefetches: pages brought because they will be needed
 */
struct rove_odp {
	struct rove_odp_owner *owner;
	struct rove_dev *rdev;
	refcount_t refs;
	bool closed;
	u64 start;
	unsigned long limit;
	struct xarray chunks;
	rwlock_t lock;		/* see above */
	spinlock_t gate;	/* see above */
	atomic64_t faults;
	atomic64_t invalidations;
	atomic64_t prefetches;
};

/* Its pages stay where they are until rove_odp_release().  Softirqs off; none is held. */
static inline void rove_odp_hold(struct rove_odp *odp) __acquires(&odp->lock)
{
	spin_lock(&odp->gate);
	read_lock(&odp->lock);
	spin_unlock(&odp->gate);
}

static inline void rove_odp_release(struct rove_odp *odp) __releases(&odp->lock)
{
	read_unlock(&odp->lock);
}

#ifdef CONFIG_INFINIBAND_ON_DEMAND_PAGING

/* Where @va is, as rove_region_addr(); NULL: a page is missing.  @r locked. */
void *rove_odp_addr(const struct rove_region *r, u64 va, u32 *len, bool write);

/**
 * rove_odp_fault() - have pages brought
 * @qp: locked; it is let run again when they are there
 * @r: locked by @qp
 * @va: the first that is missing
 * @len: bytes from there on that will be needed, too
 * @write: to be written to
 * @responder: for the responder, else for the requester; each waits for one page
 *	to read and one to write
 *
 * Return: -EAGAIN; -EFAULT when this has been tried and cannot be.
 */
int rove_odp_fault(struct rove_qp *qp, struct rove_region *r, u64 va, u32 len,
		   bool write, bool responder);

/*
 * A QP that goes, or begins anew, wants nothing any more; what is on its way need not
 * be waited for.  Locked.  What it returns, or NULL, is for rove_odp_cancel().
 */
struct rove_misses *rove_odp_forget(struct rove_qp *qp);
/* Take back what no worker has begun with.  Sleeps, but not for pages. */
void rove_odp_cancel(struct rove_misses *all);

/* reg_mr with IB_ACCESS_ON_DEMAND; @length U64_MAX at 0: all of the process. */
struct ib_mr *rove_odp_reg_mr(struct ib_pd *ibpd, u64 start, u64 length,
			      u64 iova, int access);
/* When nobody can find or holds the region.  Sleeps, but not for pages. */
void rove_odp_close(struct rove_odp *odp);

/* ib_device_ops */
int rove_advise_mr(struct ib_pd *ibpd, enum ib_uverbs_advise_mr_advice advice,
		   u32 flags, struct ib_sge *sge, u32 num_sge,
		   struct uverbs_attr_bundle *attrs);
int rove_fill_stat_mr(struct sk_buff *msg, struct ib_mr *ibmr);

int rove_odp_init(void);
void rove_odp_exit(void);

#else

static inline void *rove_odp_addr(const struct rove_region *r, u64 va, u32 *len,
				  bool write)
{
	return NULL;
}

static inline int rove_odp_fault(struct rove_qp *qp, struct rove_region *r,
				 u64 va, u32 len, bool write, bool responder)
{
	return -EFAULT;
}

static inline struct rove_misses *rove_odp_forget(struct rove_qp *qp)
{
	return NULL;
}

static inline void rove_odp_cancel(struct rove_misses *all)
{
}

static inline struct ib_mr *rove_odp_reg_mr(struct ib_pd *ibpd, u64 start,
					    u64 length, u64 iova, int access)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static inline void rove_odp_close(struct rove_odp *odp)
{
}

#define rove_advise_mr		NULL
#define rove_fill_stat_mr	NULL

static inline int rove_odp_init(void)
{
	return 0;
}

static inline void rove_odp_exit(void)
{
}

#endif

#endif /* ROVE_ODP_H */
