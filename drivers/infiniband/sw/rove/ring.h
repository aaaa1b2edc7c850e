/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * ring.h - queues in memory that the kernel allocates and a program maps
 *
 * The layout is in <rdma/rove-abi.h>.  What a program can write (its indices,
 * the slots it fills) is read once with the accessors here and never believed;
 * what the kernel writes there for the program is never read back.  A kernel
 * consumer's rings are the same, only not mapped.
 *
 * Lifetime: the pages are counted by their mappings, so they outlive the queue
 * and even this module; no vm_operations of this module are set on the mapping
 * (hazard 62).  A child made by fork() shares them, as any MAP_SHARED memory.
 */
#ifndef ROVE_RING_H
#define ROVE_RING_H

#include <rdma/ib_verbs.h>
#include <rdma/rove-abi.h>

struct rove_ring_mem;

/**
 * struct rove_ring - the kernel's view of one ring
 * @mem: the memory and its mmap entry
 * @hdr: shared control words
 * @slots: shared slots
 * @depth: slots, a power of two; 0: there is no ring
 * @stride: bytes a slot
 * @prod: completion rings: next slot to fill; authoritative
 * @cons: send and receive rings, and a kernel consumer's completion rings:
 *	next slot to take; authoritative.  A program's completion rings: what it
 *	was when the kernel last looked
 *
 * @prod and @cons are guarded by the lock of the queue that the ring is in.
 */
struct rove_ring {
	struct rove_ring_mem *mem;
	struct rove_ring_hdr *hdr;
	void *slots;
	u32 depth;
	u32 stride;
	u32 prod;
	u32 cons;
};

/**
 * rove_ring_alloc() - allocate a zeroed ring
 * @r: filled in
 * @uctx: context whose program will map it, or NULL for a kernel consumer
 * @depth: slots wanted; rounded up to a power of two; not 0
 * @stride: bytes a slot, a multiple of 16
 * @info: filled in for the program; NULL for a kernel consumer
 *
 * Context: may sleep.
 * Return: 0, -ENOMEM, -EINVAL when it would be larger than 2 GiB.
 */
int rove_ring_alloc(struct rove_ring *r, struct ib_ucontext *uctx, u32 depth,
		    u32 stride, struct rove_ring_info *info);

/**
 * rove_ring_free() - give a ring up
 * @r: as filled in by rove_ring_alloc(), or all zero
 *
 * The mapped pages live on until they are unmapped.
 *
 * Context: may sleep.
 */
void rove_ring_free(struct rove_ring *r);

/**
 * rove_ring_detach() - take a ring out of a queue that others may still look at
 * @r: the queue's; is all zero afterwards
 *
 * ib_core shows an object (`rdma resource`) until its driver has destroyed it, and
 * somewhat longer.
 *
 * Context: the queue is locked, as it is by who looks.
 * Return: the ring, for rove_ring_free().
 */
static inline struct rove_ring rove_ring_detach(struct rove_ring *r)
{
	struct rove_ring ring = *r;

	*r = (struct rove_ring) {};
	return ring;
}

/**
 * rove_ring_mem_alloc() - zeroed memory that a program may map
 * @uctx: its context, or NULL
 * @size: bytes, a multiple of the page size
 *
 * Context: may sleep.
 * Return: the memory, given up by rove_ring_mem_put(), or an error.
 */
struct rove_ring_mem *rove_ring_mem_alloc(struct ib_ucontext *uctx, size_t size);
void rove_ring_mem_put(struct rove_ring_mem *mem);
/* Where the kernel sees it, and the program's offset for mmap(). */
void *rove_ring_mem_addr(const struct rove_ring_mem *mem);
u64 rove_ring_mem_offset(struct rove_ring_mem *mem);

/*
 * ib_device_ops.mmap and .mmap_free.  A mapping must be shared, not executable,
 * and be exactly one ring; else -EINVAL or -EPERM.
 */
int rove_mmap(struct ib_ucontext *uctx, struct vm_area_struct *vma);
void rove_mmap_free(struct rdma_user_mmap_entry *entry);

static inline void *rove_ring_slot(const struct rove_ring *r, u32 i)
{
	return r->slots + (size_t)(i & (r->depth - 1)) * r->stride;
}

/**
 * rove_ring_avail() - slots that the program has filled and nobody has taken
 * @r: a send or receive ring
 *
 * Pairs with the program's store-release of the producer index: the slots may
 * be read when it returns.
 *
 * Return: their number, or -EINVAL when the producer index is impossible.
 */
static inline int rove_ring_avail(const struct rove_ring *r)
{
	/* Pairs with the store of who posts: the slots may be read. */
	u32 n = smp_load_acquire(&r->hdr->prod) - r->cons;

	return likely(n <= r->depth) ? (int)n : -EINVAL;
}

/**
 * rove_ring_move_some() - copy slots to a ring that is to replace another
 * @from: the ring in use; who guards it is locked
 * @to: not in use yet, with slots as large and room for those from @cons to @end
 * @base: consumer index of @from when this began, whose slot is @to's first
 * @cons: the oldest slot that nobody has taken; what has been meanwhile is left behind
 * @end: behind the newest
 * @at: the next to be copied; @base at first
 *
 * Few enough for a lock to be held, whatever the ring's size.
 *
 * Return: is there more?
 */
bool rove_ring_move_some(const struct rove_ring *from, struct rove_ring *to, u32 base,
			 u32 cons, u32 end, u32 *at);

/**
 * rove_post_recvs() - add a kernel consumer's work requests to a receive ring
 * @r: the ring; it is not mapped
 * @lock: guards its producer's end
 * @max_sge: SGEs that one may have
 * @wr: the list
 * @bad_wr: the first that was not added, if any
 *
 * Context: any.
 * Return: 0, -ENOMEM: the ring is full; -EINVAL: too many SGEs.
 */
int rove_post_recvs(struct rove_ring *r, spinlock_t *lock, u32 max_sge,
		    const struct ib_recv_wr *wr,
		    const struct ib_recv_wr **bad_wr);

#endif /* ROVE_RING_H */
