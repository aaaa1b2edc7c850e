/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A libibverbs and a kernel for the provider's tests: the functions it
 * imports, and rings in a memory file that stands in for the command file.
 */
#ifndef ROVE_TEST_FAKE_H
#define ROVE_TEST_FAKE_H

#include "../rove.h"

/* The kernel's view of a ring. */
struct fake_ring {
	struct rove_ring_info info;
	struct rove_ring_hdr *hdr;
	char *slots;
};

/* What the provider gave us. */
extern const struct verbs_device_ops *fake_device;
extern const struct verbs_context_ops *fake_ops;

/* The rings made last. */
extern struct fake_ring fake_sq, fake_rq, fake_cq, fake_srq;

/* How the next objects are to be. */
extern uint32_t fake_sq_depth, fake_rq_depth, fake_cq_depth;
extern struct ibv_qp_cap fake_cap;
extern void (*fake_spoil)(struct rove_ring_info *info);

/* So much longer is libibverbs' struct ibv_qp_ex than that of the headers. */
extern size_t fake_growth;

/* The wake-up calls seen, and what to answer. */
extern unsigned int fake_writes, fake_ioctls;
extern int fake_write_errno, fake_write_errno_count;
extern unsigned char fake_last_write[64];
extern int fake_modify_errno;

/* How often the CPU was left to others; how long they take, us (-1: as it is). */
extern unsigned int fake_yields;
extern int fake_others_us;

/* What the last CQ was asked to be. */
extern uint64_t fake_cq_wc_flags;

/* Live objects, to see leaks and double frees. */
extern int fake_live;

static inline void *fake_slot(const struct fake_ring *ring, uint32_t index)
{
	return ring->slots +
	       (index & (ring->info.depth - 1)) * (size_t)ring->info.stride;
}

struct ibv_context *fake_open(void);

#endif
