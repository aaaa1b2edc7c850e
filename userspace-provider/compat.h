/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * libibverbs' private interface, and what differs between its numbers: 34
 * (rdma-core v38 to v56), 57 (v57, v58), 59 (v59 to v63), 64, 65.  No other
 * file looks at the number.
 */
#ifndef ROVE_COMPAT_H
#define ROVE_COMPAT_H

#include <stdbool.h>
#include <infiniband/driver.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>

/* 57 passes a list of file descriptors, 59 a CQ buffer: we have neither. */
#if IBVERBS_PABI_VERSION >= 57
#define rove_cmd_get_context(ctx, cmd, cmd_size, resp, resp_size)	\
	ibv_cmd_get_context(ctx, cmd, cmd_size, NULL, resp, resp_size)
#else
#define rove_cmd_get_context ibv_cmd_get_context
#endif

#if IBVERBS_PABI_VERSION >= 59
#define rove_cmd_create_cq_ex(ctx, attr, cq, cmd, cmd_size, resp, resp_size) \
	ibv_cmd_create_cq_ex(ctx, attr, NULL, cq, cmd, cmd_size, resp,	\
			     resp_size, 0)
#else
#define rove_cmd_create_cq_ex(ctx, attr, cq, cmd, cmd_size, resp, resp_size) \
	ibv_cmd_create_cq_ex(ctx, attr, cq, cmd, cmd_size, resp, resp_size, 0)
#endif

/*
 * v44 came with ATOMIC WRITE.  To an enumerator the preprocessor is blind: who builds
 * says what is missing.
 */
#ifdef ROVE_NO_ATOMIC_WRITE
#define IBV_WR_ATOMIC_WRITE		15
#define IBV_QP_EX_WITH_ATOMIC_WRITE	0
#define rove_set_wr_atomic_write(qp, fn)	((void)(fn))
#else
#define rove_set_wr_atomic_write(qp, fn)	((qp)->wr_atomic_write = (fn))
#endif

/*
 * Under number 34 struct ibv_qp_ex has grown twice (v44, v45), and has shifted what libibverbs
 * keeps of a QP behind it.  So there is room for that, of a newer one than that of the
 * headers, and a QP is marked as one for ibv_wr_start() where the library looks.
 */
#define ROVE_QP_GROWTH	64

/* False: the library is older than the headers, or grown by more than that. */
static inline bool rove_mark_qp_ex(struct verbs_qp *vqp)
{
	size_t growth;

	for (growth = 0; growth <= ROVE_QP_GROWTH; growth += sizeof(void *)) {
		uint32_t *mask = (uint32_t *)((char *)&vqp->comp_mask + growth);
		uint32_t was = *mask;

		*mask |= VERBS_QP_EX;
		if (ibv_qp_to_qp_ex(&vqp->qp))
			return true;
		*mask = was;
	}
	return false;
}

/*
 * Declares union @name, an answer of the kernel: struct @core of uverbs
 * followed by our own struct @own.
 */
#define ROVE_RESP(name, core_t, own_t)					\
	union name {							\
		struct core_t core;					\
		struct {						\
			unsigned char room[sizeof(struct core_t)];	\
			struct own_t own;				\
		};							\
	};								\
	static_assert(offsetof(union name, own) == sizeof(struct core_t), \
		      #name);						\
	static_assert(sizeof(union name) ==				\
		      sizeof(struct core_t) + sizeof(struct own_t), #name)

#ifndef likely
#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)
#endif

#endif /* ROVE_COMPAT_H */
