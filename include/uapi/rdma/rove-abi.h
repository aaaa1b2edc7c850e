/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR Linux-OpenIB */
/*
 * rove: the memory and the commands that the kernel module and the provider
 * library share.
 *
 * Each queue is a ring in memory that the kernel allocates and the program
 * maps: one struct rove_ring_hdr, then, from ROVE_RING_SLOTS on, a power-of-two
 * number of slots of equal size.  Producer and consumer indices run free
 * (they wrap at 2^32, not at the ring's size); slot i is i & (depth - 1).
 *
 *   ring        producer        consumer        slot
 *   send        program         kernel          struct rove_send_wqe
 *   receive     program         kernel          struct rove_recv_wqe
 *   shared      program         kernel          struct rove_recv_wqe
 *   completion  kernel          program         struct rove_cqe
 *
 * The side that produces fills a slot and then stores @prod with release
 * semantics; the other loads @prod with acquire semantics before it reads the
 * slot, and stores @cons with release semantics when it is done with it.
 * The kernel trusts nothing here: it keeps its own copy of every index that
 * it owns, reads the program's once, and copies a work request before it
 * looks at it.
 *
 * The wake-up call is the uverbs command POST_SEND (send ring) or POST_RECV
 * (receive ring) with no work request in it (wr_count 0).
 *
 * All fields are in host byte order unless typed __be32.  Only fixed-size
 * types with explicit padding are used, so that 32-bit and 64-bit programs
 * see one layout; the provider and the module assert the sizes.
 *
 * The driver's part of a command may grow.  A module that does not know all of
 * a request refuses it (EOPNOTSUPP), unless the rest is zero; of an answer's
 * buffer it zeroes what it does not know.
 */
#ifndef ROVE_ABI_H
#define ROVE_ABI_H

#include <linux/types.h>

/* Version of this interface, compared by libibverbs when it matches. */
#define ROVE_UVERBS_ABI_VERSION	1

/*
 * ib_core has no number for us.  "rove" in ASCII; matches no number in
 * enum rdma_driver_id, which counts up from zero.
 */
#define ROVE_DRIVER_ID		0x726f7665

#define ROVE_RING_SLOTS		256	/* offset of slot 0 in the mapping */

/**
 * enum rove_ring_flags - bits of &rove_ring_hdr.flags, written by the kernel
 * @ROVE_RING_NEED_WAKEUP: the kernel does not watch this ring.  Whoever moves
 *	@prod makes the wake-up call afterwards (a full memory barrier between
 *	the store of @prod and the load of this flag).  For a send queue it
 *	means that nobody polls; for a receive queue, which nobody needs to
 *	poll, that the QP is in the error state and posts are to be flushed.
 *	Never set for a shared receive queue.
 * @ROVE_RING_LOCAL_PEER: completion queues only: a QP's packets come from this
 *	very machine, so its peer may be a program that wants the CPU on which
 *	this one polls.  Once set it stays.
 */
enum rove_ring_flags {
	ROVE_RING_NEED_WAKEUP	= 1 << 0,
	ROVE_RING_LOCAL_PEER	= 1 << 1,
};

/**
 * enum rove_cq_arm - values of &rove_ring_hdr.arm, written by the program
 * @ROVE_CQ_ARM_NONE: no event wanted; the kernel writes it when it sends one
 * @ROVE_CQ_ARM_SOLICITED: at the next solicited or failed completion
 * @ROVE_CQ_ARM_NEXT: at the next completion
 */
enum rove_cq_arm {
	ROVE_CQ_ARM_NONE	= 0,
	ROVE_CQ_ARM_SOLICITED	= 1,
	ROVE_CQ_ARM_NEXT	= 2,
};

/**
 * struct rove_ring_hdr - the control words, each on a cache line of its writer
 * @prod: index of the next slot to be filled; written by the producer
 * @cons: index of the next slot to be taken; written by the consumer
 * @flags: enum rove_ring_flags; written by the kernel
 * @arm: enum rove_cq_arm; completion queues only; the program sets it, then
 *	executes a full barrier, then looks at @prod once more
 */
struct rove_ring_hdr {
	__u32 prod;
	__u32 rsvd0[15];
	__u32 cons;
	__u32 rsvd1[15];
	__u32 flags;
	__u32 rsvd2[15];
	__u32 arm;
	__u32 rsvd3[15];
};

/**
 * struct rove_sge - one piece of local memory
 * @addr: address in the memory region
 * @length: bytes
 * @lkey: local key of the region
 */
struct rove_sge {
	__aligned_u64 addr;
	__u32 length;
	__u32 lkey;
};

/**
 * enum rove_wr_opcode - work request operations
 *
 * The values are those of enum ibv_wr_opcode, so that no side translates.
 */
enum rove_wr_opcode {
	ROVE_WR_RDMA_WRITE		= 0,
	ROVE_WR_RDMA_WRITE_WITH_IMM	= 1,
	ROVE_WR_SEND			= 2,
	ROVE_WR_SEND_WITH_IMM		= 3,
	ROVE_WR_RDMA_READ		= 4,
	ROVE_WR_ATOMIC_CMP_AND_SWP	= 5,
	ROVE_WR_ATOMIC_FETCH_AND_ADD	= 6,
	ROVE_WR_LOCAL_INV		= 7,
	ROVE_WR_BIND_MW			= 8,
	ROVE_WR_SEND_WITH_INV		= 9,
	ROVE_WR_ATOMIC_WRITE		= 15,
};

/* Bits of &rove_send_wqe.flags; the values of enum ibv_send_flags. */
enum rove_wr_flags {
	ROVE_WR_FENCE		= 1 << 0,
	ROVE_WR_SIGNALED	= 1 << 1,
	ROVE_WR_SOLICITED	= 1 << 2,
	ROVE_WR_INLINE		= 1 << 3,
};

/**
 * struct rove_bind - what a key is to stand for
 * @length: bytes; they begin at &rove_send_wqe.remote_addr
 * @access: enum ibv_access_flags
 * @lkey: key of the memory region; 0 with @length 0: of none
 */
struct rove_bind {
	__aligned_u64 length;
	__u32 access;
	__u32 lkey;
};

/**
 * struct rove_send_wqe - a slot of the send ring
 * @wr_id: returned in the completion
 * @opcode: enum rove_wr_opcode
 * @flags: enum rove_wr_flags
 * @num_sge: entries in @sge; 0 with ROVE_WR_INLINE
 * @inline_len: bytes of inline payload with ROVE_WR_INLINE, else 0
 * @imm_data: immediate data as it goes on the wire
 * @invalidate_rkey: key to invalidate (SEND_WITH_INV, LOCAL_INV)
 * @remote_addr: RDMA and atomics: address at the responder; BIND_MW: local address
 * @rkey: RDMA and atomics: key of the responder's region; BIND_MW: the window's new
 *	key, which differs from its old one in the low 8 bits only
 * @remote_qkey: UD: Q_Key for the receiver; with the high bit set, the QP's own
 * @ah: UD: number of the address handle, from &struct rove_create_ah_resp
 * @remote_qpn: UD: number of the receiver
 * @compare_add: atomics: value compared with, or added
 * @swap: CMP_AND_SWP: value written when equal
 * @bind: BIND_MW
 * @srqn: XRC: number of the SRQ that receives
 * @rsvd: zero
 * @sge: local memory, in order; with ROVE_WR_INLINE the payload itself stands
 *	here
 *
 * The slot size, hence the room for @sge or the payload, is in the ring's
 * &rove_ring_info.stride.
 */
struct rove_send_wqe {
	__aligned_u64 wr_id;
	__u8 opcode;
	__u8 flags;
	__u16 num_sge;
	__u32 inline_len;
	union {
		__be32 imm_data;
		__u32 invalidate_rkey;
	};
	union {
		__u32 rkey;
		__u32 remote_qkey;
	};
	union {
		__aligned_u64 remote_addr;
		struct {
			__u32 ah;
			__u32 remote_qpn;
		};
	};
	union {
		struct {
			__aligned_u64 compare_add;
			__aligned_u64 swap;
		};
		struct rove_bind bind;
	};
	__u32 srqn;
	__u32 rsvd[3];
	struct rove_sge sge[];
};

/**
 * struct rove_recv_wqe - a slot of the receive ring
 * @wr_id: returned in the completion
 * @num_sge: entries in @sge
 * @sge: where the message goes, in order
 */
struct rove_recv_wqe {
	__aligned_u64 wr_id;
	__u32 num_sge;
	__u32 rsvd;
	struct rove_sge sge[];
};

/* &rove_cqe.status; the values of enum ibv_wc_status. */
enum rove_wc_status {
	ROVE_WC_SUCCESS			= 0,
	ROVE_WC_LOC_LEN_ERR		= 1,
	ROVE_WC_LOC_QP_OP_ERR		= 2,
	ROVE_WC_LOC_PROT_ERR		= 4,
	ROVE_WC_WR_FLUSH_ERR		= 5,
	ROVE_WC_MW_BIND_ERR		= 6,
	ROVE_WC_BAD_RESP_ERR		= 7,
	ROVE_WC_LOC_ACCESS_ERR		= 8,
	ROVE_WC_REM_INV_REQ_ERR		= 9,
	ROVE_WC_REM_ACCESS_ERR		= 10,
	ROVE_WC_REM_OP_ERR		= 11,
	ROVE_WC_RETRY_EXC_ERR		= 12,
	ROVE_WC_RNR_RETRY_EXC_ERR	= 13,
	ROVE_WC_FATAL_ERR		= 19,
	ROVE_WC_GENERAL_ERR		= 21,
};

/* &rove_cqe.opcode; the values of enum ibv_wc_opcode. */
enum rove_wc_opcode {
	ROVE_WC_SEND			= 0,
	ROVE_WC_RDMA_WRITE		= 1,
	ROVE_WC_RDMA_READ		= 2,
	ROVE_WC_COMP_SWAP		= 3,
	ROVE_WC_FETCH_ADD		= 4,
	ROVE_WC_BIND_MW			= 5,
	ROVE_WC_LOCAL_INV		= 6,
	ROVE_WC_ATOMIC_WRITE		= 9,
	ROVE_WC_RECV			= 128,
	ROVE_WC_RECV_RDMA_WITH_IMM	= 129,
};

/* &rove_cqe.wc_flags; the values of enum ibv_wc_flags. */
enum rove_wc_flags {
	ROVE_WC_WITH_GRH		= 1 << 0,
	ROVE_WC_WITH_IMM		= 1 << 1,
	ROVE_WC_WITH_INV		= 1 << 3,
};

/* &rove_cqe.network_hdr_type; the values of enum rdma_network_type. */
enum rove_network_hdr {
	ROVE_NETWORK_IPV4		= 2,
	ROVE_NETWORK_IPV6		= 3,
};

#define ROVE_NO_VLAN	0xffff

/**
 * struct rove_cqe - a slot of the completion ring
 * @wr_id: of the work request
 * @timestamp: nanoseconds of CLOCK_MONOTONIC when it was written
 * @byte_len: bytes received, read or exchanged; undefined for other sends
 * @status: enum rove_wc_status
 * @opcode: enum rove_wc_opcode
 * @wc_flags: enum rove_wc_flags
 * @imm_data: immediate data as on the wire, with ROVE_WC_WITH_IMM
 * @invalidated_rkey: with ROVE_WC_WITH_INV
 * @qp_num: of the local QP
 * @src_qp: UD: the sender
 * @sl: UD: service level: the priority that the datagram's DSCP stands for
 * @network_hdr_type: UD: enum rove_network_hdr
 * @vlan_id: UD: of the VLAN that the datagram came by, or ROVE_NO_VLAN
 * @vendor_err: AETH syndrome that ended the request, or 0
 * @pkey_index: UD: always 0
 * @rsvd: zero
 */
struct rove_cqe {
	__aligned_u64 wr_id;
	__aligned_u64 timestamp;
	__u32 byte_len;
	__u32 status;
	__u32 opcode;
	__u32 wc_flags;
	union {
		__be32 imm_data;
		__u32 invalidated_rkey;
	};
	__u32 qp_num;
	__u32 src_qp;
	__u32 vendor_err;
	__u32 pkey_index;
	__u8 sl;
	__u8 network_hdr_type;
	__u16 vlan_id;
	__u32 rsvd[2];
};

/**
 * struct rove_ring_info - how to map and walk one ring
 * @mmap_offset: for mmap(2) on the command file descriptor
 * @mmap_size: bytes, a multiple of the page size; 0: the QP has no such ring
 * @depth: slots, a power of two
 * @stride: bytes from one slot to the next
 */
struct rove_ring_info {
	__aligned_u64 mmap_offset;
	__u32 mmap_size;
	__u32 depth;
	__u32 stride;
	__u32 rsvd;
};

/* Driver part of the answer to GET_CONTEXT. */
struct rove_alloc_ucontext_resp {
	__u32 max_inline;	/* the largest max_inline_data of a QP */
	__u32 max_sge;
	__aligned_u64 features;	/* none defined yet: 0 */
};

/* Driver part of the answer to CREATE_AH. */
struct rove_create_ah_resp {
	__u32 ah;		/* for &rove_send_wqe.ah; never 0 */
	__u32 rsvd;
};

/* Driver part of the answers to CREATE_CQ and RESIZE_CQ. */
struct rove_create_cq_resp {
	struct rove_ring_info cq;
};

/* Driver part of the answers to CREATE_SRQ and CREATE_XSRQ. */
struct rove_create_srq_resp {
	struct rove_ring_info rq;
};

/**
 * struct rove_modify_srq - driver part of MODIFY_SRQ, if the queue is resized
 * @ring_info: address of a struct rove_ring_info: the command has no answer, so the
 *	kernel writes there where the new ring is.  What was posted and not taken
 *	stands at its beginning; its indices say how much that is.
 */
struct rove_modify_srq {
	__aligned_u64 ring_info;
};

/**
 * enum rove_create_qp_flags - bits of &rove_create_qp_req.flags
 * @ROVE_QP_NO_OWN_MULTICAST: UD: what it sends to a multicast group that it has
 *	attached to does not come back to it; other flags are refused
 */
enum rove_create_qp_flags {
	ROVE_QP_NO_OWN_MULTICAST	= 1 << 0,
};

/* Driver part of CREATE_QP; may be left out. */
struct rove_create_qp_req {
	__u32 flags;		/* enum rove_create_qp_flags */
	__u32 rsvd;		/* zero */
};

/* Driver part of the answer to CREATE_QP; with an SRQ there is no receive ring. */
struct rove_create_qp_resp {
	struct rove_ring_info sq;
	struct rove_ring_info rq;
};

/**
 * enum rove_reg_mr_flags - bits of &rove_reg_mr_req.flags
 * @ROVE_MR_NULL: no memory: what is written is discarded, what is read is zero.
 *	For local access only; address, length and access flags are ignored
 */
enum rove_reg_mr_flags {
	ROVE_MR_NULL		= 1 << 0,
};

/* Driver part of REG_MR; may be left out. */
struct rove_reg_mr_req {
	__u32 flags;		/* enum rove_reg_mr_flags; others are refused */
	__u32 rsvd;		/* zero */
};

/* Attributes and methods of ours: the first that are a driver's own. */
enum rove_alloc_dm_attrs {
	ROVE_ATTR_ALLOC_DM_RESP	= 1 << 12,	/* struct rove_dm_info */
};

enum rove_dm_methods {
	ROVE_METHOD_DM_QUERY	= 1 << 12,	/* of device memory that there is */
};

enum rove_query_dm_attrs {
	ROVE_ATTR_QUERY_DM_HANDLE	= 1 << 12,
	ROVE_ATTR_QUERY_DM_RESP,	/* struct rove_dm_info */
};

/**
 * struct rove_dm_info - driver part of the answer to DM_ALLOC, and that to
 *	ROVE_METHOD_DM_QUERY
 * @mmap_offset: for mmap(2) on the command file descriptor
 * @mmap_size: bytes, a multiple of the page size
 * @length: bytes that the program asked for
 */
struct rove_dm_info {
	__aligned_u64 mmap_offset;
	__u32 mmap_size;
	__u32 length;
};

#endif /* ROVE_ABI_H */
