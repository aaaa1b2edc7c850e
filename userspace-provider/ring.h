/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * One ring of <rdma/rove-abi.h>, mapped: where its words and slots are and
 * how they are read and written.  Who may call: whoever holds the lock of the
 * queue that owns the ring (rove.h).  Indices that we own are kept by that
 * queue in private memory; the copies in the ring are only ever written.
 */
#ifndef ROVE_RING_H
#define ROVE_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rdma/rove-abi.h>

/**
 * struct rove_ring - a mapped ring; constant while mapped
 * @hdr: the control words; NULL when there is no ring
 * @slots: slot 0
 * @map_size: bytes mapped at @hdr
 * @depth: slots, a power of two
 * @stride: bytes a slot
 */
struct rove_ring {
	struct rove_ring_hdr *hdr;
	char *slots;
	size_t map_size;
	uint32_t depth;
	uint32_t stride;
};

int rove_ring_map(struct rove_ring *ring, int cmd_fd,
		  const struct rove_ring_info *info, uint64_t min_stride);
void rove_ring_unmap(struct rove_ring *ring);

static inline void *rove_ring_slot(const struct rove_ring *ring, uint32_t index)
{
	return ring->slots + (size_t)(index & (ring->depth - 1)) * ring->stride;
}

/* An index of the kernel: after it, what the kernel wrote before it is seen. */
static inline uint32_t rove_index_load(const __u32 *index)
{
	return __atomic_load_n(index, __ATOMIC_ACQUIRE);
}

/* An index of ours: the kernel that sees it sees what we wrote before it. */
static inline void rove_index_store(__u32 *index, uint32_t value)
{
	__atomic_store_n(index, value, __ATOMIC_RELEASE);
}

/*
 * Hands slots to the kernel.  True when it does not watch this ring and wants
 * a wake-up call.  The kernel sets the flag, fences and looks at @prod again;
 * we store @prod, fence and look at the flag: one of us sees the other.
 */
static inline bool rove_ring_publish(struct rove_ring *ring, uint32_t prod)
{
	rove_index_store(&ring->hdr->prod, prod);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return __atomic_load_n(&ring->hdr->flags, __ATOMIC_RELAXED) &
	       ROVE_RING_NEED_WAKEUP;
}

#endif /* ROVE_RING_H */
