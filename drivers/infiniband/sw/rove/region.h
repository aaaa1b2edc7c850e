/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * region.h - what a key stands for: memory, who may use it and how
 *
 * Memory regions (mr.c, fastreg.c) and memory windows (mw.c) differ in how they
 * come to be; to the data path each is a struct rove_region, found by its key. It is
 * a flat array of equally large blocks of kernel addresses, so that an address
 * is found by one shift and one index.
 *
 * The data path looks a key up for each access, holds the region only while it
 * copies, and so never delays its owner for longer than that.
 *
 * Who may change what: a region in use does not change.  Its owner takes it out of
 * use (rove_region_close()), waits until nobody copies any more, changes it, and
 * puts it into use again (rove_region_open()); or puts another into its place
 * in the table (rove_region_replace()).  @lock makes them take turns.
 */
#ifndef ROVE_REGION_H
#define ROVE_REGION_H

#include <linux/completion.h>
#include <linux/rhashtable.h>
#include <linux/spinlock.h>
#include <rdma/ib_verbs.h>

struct rove_dev;
struct rove_odp;
struct rove_qp;

enum rove_region_kind {
	ROVE_REGION_PAGES,	/* blocks of memory, with local and remote rights */
	ROVE_REGION_WINDOW,	/* a window: remote rights on a region's blocks */
	ROVE_REGION_DMA,	/* all kernel memory; addresses are kernel virtual */
	ROVE_REGION_ODP,	/* paged on demand: odp.h */
	ROVE_REGION_NULL,	/* no memory: discards, and yields zeros; local only */
};

/**
 * struct rove_region - memory behind a key
 * @node: in rove_dev.regions
 * @index: key >> 8, what the table is keyed by; random, and never changes
 * @key: all 32 bits, local and remote; @lock
 * @pd: the domain whose QPs may use it, or NULL: nobody, at present
 * @access: enum ib_access_flags
 * @kind: enum rove_region_kind; never changes
 * @shift: log2 of the block size
 * @iova: address of the first byte, as keys' users give it
 * @length: bytes
 * @offset: of @iova's byte in block 0
 * @blocks: kernel address of each block; the first may begin before the region's
 *	memory, the last end after it.  A window's are its region's
 * @odp: of a ROVE_REGION_ODP, in place of blocks
 * @qp_serial: windows of type 2: the only QP that may use it (rove_qp.serial);
 *	else 0
 * @refs: one for the owner, one for each copy under way
 * @held: PREEMPT_RT: read-locked by each copy under way
 * @lock: guards changes, see above, and what follows
 * @home: the domain that it was allocated in; never changes
 * @invalidatable: by LOCAL_INV and SEND with Invalidate; never changes
 * @dying: no window may be bound to it any more
 * @windows: how many windows are bound to it
 * @parent: window: the region that it is bound to, or NULL
 * @released: completed when @refs falls to zero
 * @rcu: frees the structure after the last look-up may have seen it
 */
struct rove_region {
	struct rhash_head node;
	u32 index;
	u32 key;
	struct ib_pd *pd;
	int access;
	u8 kind;
	u8 shift;
	u64 iova;
	u64 length;
	u64 offset;
	union {
		void **blocks;
		struct rove_odp *odp;
	};
	u64 qp_serial;
	refcount_t refs;
	rwlock_t held;

	spinlock_t lock;
	struct ib_pd *home;
	bool invalidatable;
	bool dying;
	u32 windows;
	struct rove_region *parent;
	struct completion released;
	struct rcu_head rcu;
};

#define ROVE_REGION_REMOTE	(IB_ACCESS_REMOTE_WRITE | \
				 IB_ACCESS_REMOTE_READ | \
				 IB_ACCESS_REMOTE_ATOMIC)

/* The link's table of regions.  Context: may sleep. */
int rove_region_table_init(struct rove_dev *rdev);
void rove_region_table_destroy(struct rove_dev *rdev);

/* ---- for the data path ---- */

/**
 * rove_region_get() - look a key up for an access
 * @qp: the QP that asks
 * @pd: the protection domain that it asks for
 * @key: the whole key, local or remote
 * @va: start of the access
 * @len: its bytes; 0 is refused (such an access needs no region)
 * @access: IB_ACCESS_* rights needed, all of them; 0: local read
 *
 * A program's QP never gets a ROVE_REGION_DMA of the kernel's: PDs differ.
 *
 * Context: softirqs off; does not sleep.
 * Return: the region, held until rove_region_put(); NULL when the key, the domain,
 * the rights or the bounds do not fit (overflow of @va + @len included).
 */
struct rove_region *rove_region_get(const struct rove_qp *qp, struct ib_pd *pd,
				    u32 key, u64 va, u64 len, int access);

/* Nothing here can overflow: @va - @r->iova is used only when not negative. */
static inline bool rove_region_covers(const struct rove_region *r, u64 va, u64 len)
{
	return va >= r->iova && va - r->iova <= r->length &&
	       len <= r->length - (va - r->iova);
}

/* What depends on the kind, when it is not ROVE_REGION_PAGES. */
bool rove_region_special_allows(const struct rove_region *r, const struct rove_qp *qp,
				u64 va, u64 len, int access);
void *rove_region_special_addr(const struct rove_region *r, u64 va, u32 *len,
			       bool write);

/* Does a region that is held allow one more access?  Parameters as above. */
static inline bool rove_region_allows(const struct rove_region *r,
				      const struct rove_qp *qp, struct ib_pd *pd,
				      u32 key, u64 va, u64 len, int access)
{
	/*
	 * Pairs with rove_region_open(): all else is as new as this.  A closed region has
	 * no domain, and a QP that is out of use may have none either.
	 */
	if (smp_load_acquire(&r->pd) != pd || !pd || r->key != key || !len ||
	    (r->access & access) != access)
		return false;
	if (unlikely(r->kind != ROVE_REGION_PAGES))
		return rove_region_special_allows(r, qp, va, len, access);
	return rove_region_covers(r, va, len);
}

/* Let go of what rove_region_get() has given.  Context: as there. */
void rove_region_put(struct rove_region *r);

/* Give back a reference that was taken without it.  Context: any. */
void rove_region_unref(struct rove_region *r);

/**
 * rove_region_addr() - where an address of the region is in kernel memory
 * @r: held
 * @va: inside it
 * @len: how many bytes from there on are wanted; cut to what is contiguous
 * @write: to be written to
 *
 * Context: any.
 * Return: the kernel address; NULL when a page is missing (ROVE_REGION_ODP).
 */
static inline void *rove_region_addr(const struct rove_region *r, u64 va,
				     u32 *len, bool write)
{
	u64 off, in_block, left;

	if (unlikely(r->kind > ROVE_REGION_WINDOW))
		return rove_region_special_addr(r, va, len, write);

	off = va - r->iova + r->offset;
	in_block = off & (BIT_ULL(r->shift) - 1);
	left = BIT_ULL(r->shift) - in_block;
	*len = min_t(u64, *len, left);
	return r->blocks[off >> r->shift] + in_block;
}

/* ---- for owners ---- */

/**
 * rove_region_alloc() - a region that nobody can use or find yet
 * @pd: its home
 * @kind: what it is
 *
 * Context: may sleep.
 * Return: the region, or NULL.
 */
struct rove_region *rove_region_alloc(struct ib_pd *pd,
				      enum rove_region_kind kind);

/**
 * rove_region_set_contiguous() - back it by memory that is contiguous to the kernel
 * @r: not in use
 * @vaddr: kernel address of that memory
 * @offset: of the region in it
 * @length: bytes of the region
 *
 * Context: may sleep.
 * Return: 0 or -ENOMEM.
 */
int rove_region_set_contiguous(struct rove_region *r, void *vaddr, u64 offset,
			       u64 length);

/**
 * rove_region_publish() - give it a key, and put it into the table
 * @rdev: its link
 * @r: filled in; with @pd set it may be used at once
 *
 * Keys cannot be guessed: all their bits are random.
 *
 * Context: may sleep.
 * Return: 0 or -ENOMEM.
 */
int rove_region_publish(struct rove_dev *rdev, struct rove_region *r);

/**
 * rove_region_replace() - put another into its place in the table
 * @rdev: its link
 * @old: in the table; the caller retires it with rove_region_free()
 * @new: filled in; gets the key of @old.  Every access finds the one or the other
 *
 * Context: may sleep.
 * Return: 0, or -EBUSY when a window is bound to @old.
 */
int rove_region_replace(struct rove_dev *rdev, struct rove_region *old,
			struct rove_region *new);

/**
 * rove_region_withdraw() - take it out of the table
 * @rdev: its link
 * @r: in the table
 *
 * Nobody copies to or from the region any more when this returns.
 *
 * Context: may sleep.
 */
void rove_region_withdraw(struct rove_dev *rdev, struct rove_region *r);

/* Wait for those who hold it, when it is no longer in the table.  May sleep. */
void rove_region_drain(struct rove_region *r);

/* The structure alone, which nobody can find any more. */
void rove_region_free(struct rove_region *r);

/**
 * rove_region_find() - the region that a key might stand for
 * @rdev: the link
 * @key: its low 8 bits are ignored
 *
 * Context: rcu_read_lock(), within which the answer is good.
 * Return: the region, whatever its state, or NULL.
 */
struct rove_region *rove_region_find(struct rove_dev *rdev, u32 key);

/**
 * rove_region_close() - take a region out of use
 * @r: its @lock held, softirqs off
 *
 * Nobody copies to or from it any more when this returns.  Who copies does so
 * with softirqs off and for not longer than a QP is locked, so this spins, or, on
 * PREEMPT_RT, where that can be pre-empted by who would spin, sleeps as for a lock.  The
 * caller must hold no region itself.
 */
void rove_region_close(struct rove_region *r);

/**
 * rove_region_open() - put a region into use
 * @r: closed, filled in; its @lock held
 * @pd: for the QPs of this domain
 */
void rove_region_open(struct rove_region *r, struct ib_pd *pd);

/**
 * rove_region_use() - bind a window to a region
 * @r: the region; cannot go or change until rove_region_unuse()
 *
 * Context: a window's @lock may be held.
 * Return: 0, or -EINVAL when @r is about to go.
 */
int rove_region_use(struct rove_region *r);
void rove_region_unuse(struct rove_region *r);

/* Close a region, and if it is a window, bind it to nothing.  Its @lock held. */
void rove_region_unbind(struct rove_region *w);

/**
 * rove_region_kill() - let no window be bound to it any more
 * @r: the region
 *
 * Return: 0, or -EBUSY when there is one.
 */
int rove_region_kill(struct rove_region *r);

/**
 * rove_region_invalidate() - LOCAL_INV, and the Invalidate of a SEND
 * @qp: locked; it holds no region
 * @key: the key
 * @remote: asked for by the peer
 *
 * Return: 0; -EINVAL when the key may not be invalidated from this QP (10.6.5).
 */
int rove_region_invalidate(struct rove_qp *qp, u32 key, bool remote);

#endif /* ROVE_REGION_H */
