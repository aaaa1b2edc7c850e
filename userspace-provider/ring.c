// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Mapping a ring, and the proof that both sides see one layout.
 */
#define _FILE_OFFSET_BITS 64	/* offsets are 64 bits in 32-bit programs too */

#include <assert.h>
#include <errno.h>
#include <sys/mman.h>

#include "ring.h"

static_assert(sizeof(struct rove_ring_hdr) == ROVE_RING_SLOTS, "ring header");
static_assert(offsetof(struct rove_ring_hdr, prod) == 0, "prod");
static_assert(offsetof(struct rove_ring_hdr, cons) == 64, "cons");
static_assert(offsetof(struct rove_ring_hdr, flags) == 128, "flags");
static_assert(offsetof(struct rove_ring_hdr, arm) == 192, "arm");

static_assert(sizeof(struct rove_sge) == 16, "sge");
static_assert(sizeof(struct rove_send_wqe) == 64, "send WQE");
static_assert(offsetof(struct rove_send_wqe, opcode) == 8, "opcode");
static_assert(offsetof(struct rove_send_wqe, flags) == 9, "flags");
static_assert(offsetof(struct rove_send_wqe, num_sge) == 10, "num_sge");
static_assert(offsetof(struct rove_send_wqe, inline_len) == 12, "inline_len");
static_assert(offsetof(struct rove_send_wqe, imm_data) == 16, "imm_data");
static_assert(offsetof(struct rove_send_wqe, rkey) == 20, "rkey");
static_assert(offsetof(struct rove_send_wqe, remote_addr) == 24, "remote_addr");
static_assert(offsetof(struct rove_send_wqe, compare_add) == 32, "compare_add");
static_assert(offsetof(struct rove_send_wqe, swap) == 40, "swap");
static_assert(offsetof(struct rove_send_wqe, srqn) == 48, "srqn");
static_assert(offsetof(struct rove_send_wqe, sge) == 64, "sge");

static_assert(sizeof(struct rove_recv_wqe) == 16, "receive WQE");
static_assert(offsetof(struct rove_recv_wqe, num_sge) == 8, "num_sge");
static_assert(offsetof(struct rove_recv_wqe, sge) == 16, "sge");

static_assert(sizeof(struct rove_cqe) == 64, "CQE");
static_assert(offsetof(struct rove_cqe, timestamp) == 8, "timestamp");
static_assert(offsetof(struct rove_cqe, byte_len) == 16, "byte_len");
static_assert(offsetof(struct rove_cqe, wc_flags) == 28, "wc_flags");
static_assert(offsetof(struct rove_cqe, qp_num) == 36, "qp_num");
static_assert(offsetof(struct rove_cqe, pkey_index) == 48, "pkey_index");

static_assert(sizeof(struct rove_ring_info) == 24, "ring info");
static_assert(sizeof(struct rove_alloc_ucontext_resp) == 16, "context answer");
static_assert(sizeof(struct rove_dm_info) == 16, "DM answer");
static_assert(sizeof(struct rove_create_ah_resp) == 8, "AH answer");
static_assert(sizeof(struct rove_reg_mr_req) == 8, "MR request");
static_assert(sizeof(struct rove_create_cq_resp) == 24, "CQ answer");
static_assert(sizeof(struct rove_create_srq_resp) == 24, "SRQ answer");
static_assert(sizeof(struct rove_modify_srq) == 8, "MODIFY_SRQ");
static_assert(sizeof(struct rove_create_qp_resp) == 48, "QP answer");

/**
 * rove_ring_map - maps the ring that the kernel describes
 * @ring: filled in, or left without a ring on failure
 * @cmd_fd: command file of the context
 * @info: from the kernel
 * @min_stride: what the caller is going to write into a slot, or read
 *
 * EPROTO says that the module and this library do not agree on the layout.
 */
int rove_ring_map(struct rove_ring *ring, int cmd_fd,
		  const struct rove_ring_info *info, uint64_t min_stride)
{
	uint64_t end = ROVE_RING_SLOTS + (uint64_t)info->depth * info->stride;
	void *map;

	*ring = (struct rove_ring){};
	if (!info->depth || (info->depth & (info->depth - 1)) ||
	    info->stride < min_stride || info->stride % 8 ||
	    end > info->mmap_size)
		return EPROTO;

	map = mmap(NULL, info->mmap_size, PROT_READ | PROT_WRITE, MAP_SHARED,
		   cmd_fd, (off_t)info->mmap_offset);
	if (map == MAP_FAILED)
		return errno;

	ring->hdr = map;
	ring->slots = (char *)map + ROVE_RING_SLOTS;
	ring->map_size = info->mmap_size;
	ring->depth = info->depth;
	ring->stride = info->stride;
	return 0;
}

void rove_ring_unmap(struct rove_ring *ring)
{
	if (ring->hdr)
		munmap(ring->hdr, ring->map_size);
	*ring = (struct rove_ring){};
}
