// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * region.c - see region.h
 */
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/random.h>
#include <linux/slab.h>
#include "dev.h"
#include "odp.h"
#include "qp.h"
#include "region.h"

#define INSERT_TRIES	100

static const struct rhashtable_params table = {
	.key_len = sizeof_field(struct rove_region, index),
	.key_offset = offsetof(struct rove_region, index),
	.head_offset = offsetof(struct rove_region, node),
	.automatic_shrinking = true,
};

int rove_region_table_init(struct rove_dev *rdev)
{
	return rhashtable_init(&rdev->regions, &table);
}

void rove_region_table_destroy(struct rove_dev *rdev)
{
	WARN_ON(atomic_read(&rdev->regions.nelems));
	rhashtable_destroy(&rdev->regions);
}

void rove_region_unref(struct rove_region *r)
{
	if (refcount_dec_and_test(&r->refs))
		complete(&r->released);
}

void rove_region_put(struct rove_region *r)
{
	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		read_unlock(&r->held);
	rove_region_unref(r);
}

/*
 * The kernel's region for all memory trusts the kernel with its addresses, but a
 * peer that was given its key not to make this machine fault on a hole.
 */
static bool dma_covers(u64 va, u64 len, int access)
{
	u64 end;

	if (check_add_overflow(va, len, &end) || end > ULONG_MAX)
		return false;
	if (!(access & ROVE_REGION_REMOTE))
		return true;
	return virt_addr_valid((void *)(unsigned long)va) &&
	       virt_addr_valid((void *)(unsigned long)(end - 1));
}

bool rove_region_special_allows(const struct rove_region *r, const struct rove_qp *qp,
				u64 va, u64 len, int access)
{
	if (r->kind == ROVE_REGION_DMA)
		return dma_covers(va, len, access);
	if (r->kind == ROVE_REGION_ODP || r->kind == ROVE_REGION_NULL)
		return rove_region_covers(r, va, len);
	/* A window's key is no local one. */
	return access & ROVE_REGION_REMOTE &&
	       (!r->qp_serial || r->qp_serial == qp->serial) &&
	       rove_region_covers(r, va, len);
}

struct rove_region *rove_region_find(struct rove_dev *rdev, u32 key)
{
	u32 index = key >> 8;

	return rhashtable_lookup(&rdev->regions, &index, table);
}

struct rove_region *rove_region_get(const struct rove_qp *qp, struct ib_pd *pd,
				    u32 key, u64 va, u64 len, int access)
{
	struct rove_region *r;

	rcu_read_lock();
	/* Without references: gone from the table by now, or replaced. */
	do {
		r = rove_region_find(qp->rdev, key);
	} while (r && !refcount_inc_not_zero(&r->refs));
	rcu_read_unlock();
	if (!r)
		return NULL;
	/*
	 * Pairs with rove_region_close(): it sees the reference, or we see that
	 * the region is closed.
	 */
	smp_mb__after_atomic();
	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		read_lock(&r->held);
	if (rove_region_allows(r, qp, pd, key, va, len, access))
		return r;
	rove_region_put(r);
	return NULL;
}

/* What is written to a ROVE_REGION_NULL, whoever writes it; nobody reads it. */
static u8 discarded[PAGE_SIZE] __aligned(sizeof(u64));

void *rove_region_special_addr(const struct rove_region *r, u64 va, u32 *len,
			       bool write)
{
	if (r->kind == ROVE_REGION_DMA)
		return (void *)(unsigned long)va;
	if (r->kind == ROVE_REGION_NULL) {
		*len = min_t(u32, *len, PAGE_SIZE);
		return write ? discarded : page_address(ZERO_PAGE(0));
	}
	return rove_odp_addr(r, va, len, write);
}

struct rove_region *rove_region_alloc(struct ib_pd *pd,
				      enum rove_region_kind kind)
{
	struct rove_region *r = kzalloc(sizeof(*r), ROVE_GFP_OBJECT);

	if (!r)
		return NULL;
	r->kind = kind;
	r->home = pd;
	rwlock_init(&r->held);
	spin_lock_init(&r->lock);
	refcount_set(&r->refs, 1);
	init_completion(&r->released);
	return r;
}

int rove_region_set_contiguous(struct rove_region *r, void *vaddr, u64 offset,
			       u64 length)
{
	/* One block, however large. */
	r->blocks = kvmalloc(sizeof(*r->blocks), ROVE_GFP_OBJECT);
	if (!r->blocks)
		return -ENOMEM;
	r->blocks[0] = vaddr;
	r->shift = 63;
	r->offset = offset;
	r->length = length;
	return 0;
}

int rove_region_publish(struct rove_dev *rdev, struct rove_region *r)
{
	int i, err;

	for (i = 0; i < INSERT_TRIES; i++) {
		r->key = get_random_u32();
		r->index = r->key >> 8;
		if (!r->index)
			continue;
		err = rhashtable_lookup_insert_fast(&rdev->regions, &r->node,
						    table);
		if (err != -EEXIST)
			return err;
	}
	return -ENOMEM;
}

/* No window is bound to it, nor will be.  @r->lock held. */
static int kill(struct rove_region *r)
{
	if (r->windows)
		return -EBUSY;
	r->dying = true;
	return 0;
}

int rove_region_replace(struct rove_dev *rdev, struct rove_region *old,
			struct rove_region *new)
{
	int err;

	new->key = old->key;
	new->index = old->index;
	/* Who sees that it is dying, to bind a window to it, finds the other. */
	spin_lock_bh(&old->lock);
	err = kill(old);
	if (!err)
		err = rhashtable_replace_fast(&rdev->regions, &old->node,
					      &new->node, table);
	spin_unlock_bh(&old->lock);
	return err;
}

void rove_region_drain(struct rove_region *r)
{
	rove_region_unref(r);
	wait_for_completion(&r->released);
}

void rove_region_withdraw(struct rove_dev *rdev, struct rove_region *r)
{
	rhashtable_remove_fast(&rdev->regions, &r->node, table);
	rove_region_drain(r);
}

void rove_region_free(struct rove_region *r)
{
	kfree_rcu(r, rcu);
}

void rove_region_close(struct rove_region *r)
{
	WRITE_ONCE(r->pd, NULL);
	/* Pairs with rove_region_get(). */
	smp_mb();
	if (IS_ENABLED(CONFIG_PREEMPT_RT)) {
		write_lock(&r->held);
		write_unlock(&r->held);
	} else {
		while (refcount_read(&r->refs) > 1)
			cpu_relax();
	}
	/* What was copied is seen by who does something else with the memory. */
	smp_mb();
}

void rove_region_open(struct rove_region *r, struct ib_pd *pd)
{
	/* Pairs with rove_region_allows(). */
	smp_store_release(&r->pd, pd);
}

/*
 * A window's lock is taken before its region's, which lockdep is told: no region
 * is both.
 */
int rove_region_use(struct rove_region *r)
{
	int err = -EINVAL;

	spin_lock_nested(&r->lock, SINGLE_DEPTH_NESTING);
	if (!r->dying) {
		r->windows++;
		err = 0;
	}
	spin_unlock(&r->lock);
	return err;
}

void rove_region_unuse(struct rove_region *r)
{
	spin_lock_nested(&r->lock, SINGLE_DEPTH_NESTING);
	r->windows--;
	spin_unlock(&r->lock);
}

void rove_region_unbind(struct rove_region *w)
{
	struct rove_region *r = w->parent;

	rove_region_close(w);
	w->parent = NULL;
	if (r)
		rove_region_unuse(r);
}

int rove_region_kill(struct rove_region *r)
{
	int err;

	spin_lock_bh(&r->lock);
	err = kill(r);
	spin_unlock_bh(&r->lock);
	return err;
}

/* May @qp invalidate it?  @r->lock held. */
static bool may_invalidate(const struct rove_region *r, const struct rove_qp *qp,
			   u32 key, bool remote)
{
	if (r->key != key || r->home != qp->pd || r->windows)
		return false;
	if (r->kind == ROVE_REGION_WINDOW)
		return r->pd && r->qp_serial == qp->serial;
	/* A peer can invalidate what it could use, nothing else. */
	return !remote || (r->pd && r->access & ROVE_REGION_REMOTE);
}

int rove_region_invalidate(struct rove_qp *qp, u32 key, bool remote)
{
	struct rove_region *r;
	int err = -EINVAL;

	rcu_read_lock();
	r = rove_region_find(qp->rdev, key);
	if (r && r->invalidatable) {
		spin_lock_bh(&r->lock);
		if (may_invalidate(r, qp, key, remote)) {
			rove_region_unbind(r);
			err = 0;
		}
		spin_unlock_bh(&r->lock);
	}
	rcu_read_unlock();
	return err;
}
