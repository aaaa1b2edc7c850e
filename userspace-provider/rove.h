/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The provider's objects: who owns what, and which lock guards it.
 *
 *   rove.c     device, context, registration with libibverbs
 *   dm.c       device memory
 *   pd.c mr.c mw.c ah.c  protection and thread domains, regions, windows, addresses
 *   cq.c cq_poll.c       completion queues: life cycle, polling
 *   qp.c                 queue pairs: life cycle
 *   srq.c xrc.c          shared receive queues; XRC domains
 *   post.c wr.c          ibv_post_*(), ibv_wr_*()
 *   ring.c ring.h        the memory shared with the kernel
 *   wakeup.c             the one system call of the data path
 *
 * Lifetime: an object lives from its create to its destroy call; the program
 * promises to use it in between only, as with any provider.  The kernel keeps
 * the pages of a ring until we unmap them, so that queues can be read after
 * the device is gone.
 *
 * Order of locks: a CQ's poll lock, then its arm lock; a send queue's, then a
 * receive queue's.  No lock of a QP is held together with one of a CQ.
 */
#ifndef ROVE_H
#define ROVE_H

#include <pthread.h>

#include "compat.h"
#include "ring.h"

/**
 * struct rove_lock - a spin lock that can be told there is nothing to exclude
 * @lock: the lock
 * @single_threaded: the program promised to use the object from one thread at
 *	a time (thread domain, IBV_CREATE_CQ_ATTR_SINGLE_THREADED)
 */
struct rove_lock {
	pthread_spinlock_t lock;
	bool single_threaded;
};

static inline void rove_lock_init(struct rove_lock *lock, bool single_threaded)
{
	pthread_spin_init(&lock->lock, PTHREAD_PROCESS_PRIVATE);
	lock->single_threaded = single_threaded;
}

static inline void rove_lock_destroy(struct rove_lock *lock)
{
	pthread_spin_destroy(&lock->lock);
}

static inline void rove_lock(struct rove_lock *lock)
{
	if (!lock->single_threaded)
		pthread_spin_lock(&lock->lock);
}

static inline void rove_unlock(struct rove_lock *lock)
{
	if (!lock->single_threaded)
		pthread_spin_unlock(&lock->lock);
}

/**
 * struct rove_context - an open device
 * @vctx: what libibverbs knows of it
 * @wakeup_by_ioctl: write(2) was refused once (wakeup.c); set, never cleared
 */
struct rove_context {
	struct verbs_context vctx;
	bool wakeup_by_ioctl;
};

/**
 * struct rove_td - a thread domain: a promise, and nothing in the kernel
 * @td: the public part
 * @users: parent domains that hold it; atomic
 */
struct rove_td {
	struct ibv_td td;
	unsigned int users;
};

/**
 * struct rove_pd - a protection domain, or a parent domain around one
 * @pd: the public part
 * @real: parent domain: the protection domain inside, else NULL
 * @td: parent domain: the thread domain inside, or NULL
 * @imported: it is another's; held by the program until ibv_unimport_pd()
 * @users: who imported it, parent domains around it, and what lies in memory of its
 *	allocator; atomic
 * @alloc: parent domain: the program's allocator, or NULL
 * @free: gives back what @alloc gave
 * @alloc_context: for both
 */
struct rove_pd {
	struct ibv_pd pd;
	struct rove_pd *real;
	struct rove_td *td;
	bool imported;
	unsigned int users;
	void *(*alloc)(struct ibv_pd *pd, void *pd_context, size_t size,
		       size_t alignment, uint64_t resource_type);
	void (*free)(struct ibv_pd *pd, void *pd_context, void *ptr,
		     uint64_t resource_type);
	void *alloc_context;
};

/* Of memory that a program's allocator gives; a cache line. */
#define ROVE_OBJECT_ALIGN	64

/* What a program's allocator is told that the memory is for, and whose (rove(7)). */
#define ROVE_RESOURCE_TYPE(type)	((uint64_t)ROVE_DRIVER_ID << 32 | (type))
enum rove_resource {
	ROVE_RESOURCE_QP = 1,
	ROVE_RESOURCE_CQ = 2,
	ROVE_RESOURCE_SRQ = 3,
};

/**
 * struct rove_ah - an address handle
 * @ah: the public part
 * @number: what the kernel knows it by in send work requests
 */
struct rove_ah {
	struct ibv_ah ah;
	uint32_t number;
};

/**
 * struct rove_cq - a completion queue
 * @vcq: what libibverbs knows of it
 * @owner: domain whose allocator it lies in, or NULL; constant, as in the others
 * @lock: guards all below; held from ibv_start_poll() to ibv_end_poll()
 * @arm_lock: guards @ring.hdr too, for who arms the CQ in between those two;
 *	@ring changes under both locks
 * @ring: the completions
 * @cons: next CQE to be taken
 * @prod: the kernel's index as last read; CQEs before it may be looked at
 * @cur: extended poll: the CQE that ibv_wc_read_*() are about
 */
struct rove_cq {
	struct verbs_cq vcq;
	struct rove_pd *owner;
	struct rove_lock lock;
	struct rove_lock arm_lock;
	struct rove_ring ring;
	uint32_t cons;
	uint32_t prod;
	struct rove_cqe cur;
};

/**
 * struct rove_wq - one half of a QP: a ring that we fill and the kernel empties
 * @lock: guards all below
 * @ring: the work requests
 * @prod: next slot to be filled
 * @cons: the kernel's index as last read
 * @limit: work requests that the program may have outstanding; 0: no ring
 * @max_sge: scatter/gather entries in one
 */
struct rove_wq {
	struct rove_lock lock;
	struct rove_ring ring;
	uint32_t prod;
	uint32_t cons;
	uint32_t limit;
	uint32_t max_sge;
};

/**
 * struct rove_qp - a queue pair
 * @vqp: what libibverbs knows of it
 * @room: likewise; see compat.h
 * @owner: domain whose allocator it lies in, or NULL
 * @sq: send queue
 * @rq: receive queue
 * @state: as ibv_modify_qp() has it; what libibverbs keeps, ibv_query_qp() of another thread can
 *	set back
 * @max_inline: largest inline payload; constant
 * @datagrams: it is of type UD; constant
 * @xrc: it sends to XRC SRQs; constant
 * @always: ROVE_WR_SIGNALED when the QP was created with sq_sig_all, else 0
 * @wr_first: ibv_wr_*(): @sq.prod at ibv_wr_start(), to go back to
 * @wr_cur: ibv_wr_*(): the request that setters are about; NULL after an error
 * @wr_err: ibv_wr_*(): the first error since ibv_wr_start()
 *
 * The last three are guarded by @sq.lock, held from ibv_wr_start() to
 * ibv_wr_complete() or ibv_wr_abort().
 */
struct rove_qp {
	struct verbs_qp vqp;
	char room[ROVE_QP_GROWTH];
	struct rove_pd *owner;
	struct rove_wq sq;
	struct rove_wq rq;
	enum ibv_qp_state state;
	uint32_t max_inline;
	bool datagrams;
	bool xrc;
	uint8_t always;
	uint32_t wr_first;
	struct rove_send_wqe *wr_cur;
	int wr_err;
};

/**
 * struct rove_srq - a shared receive queue
 * @vsrq: what libibverbs knows of it
 * @owner: domain whose allocator it lies in, or NULL
 * @rq: the ring; @rq.ring changes under its lock
 */
struct rove_srq {
	struct verbs_srq vsrq;
	struct rove_pd *owner;
	struct rove_wq rq;
};

static inline struct rove_context *to_rove_ctx(struct ibv_context *context)
{
	return container_of(context, struct rove_context, vctx.context);
}

static inline struct rove_pd *to_rove_pd(struct ibv_pd *pd)
{
	return container_of(pd, struct rove_pd, pd);
}

static inline struct rove_ah *to_rove_ah(struct ibv_ah *ah)
{
	return container_of(ah, struct rove_ah, ah);
}

static inline struct rove_cq *to_rove_cq(struct ibv_cq *cq)
{
	return container_of(cq, struct rove_cq, vcq.cq);
}

static inline struct rove_cq *to_rove_cq_ex(struct ibv_cq_ex *cq)
{
	return container_of(cq, struct rove_cq, vcq.cq_ex);
}

static inline struct rove_qp *to_rove_qp(struct ibv_qp *qp)
{
	return container_of(qp, struct rove_qp, vqp.qp);
}

static inline struct rove_qp *to_rove_qp_ex(struct ibv_qp_ex *qp)
{
	return container_of(qp, struct rove_qp, vqp.qp_ex);
}

static inline struct rove_srq *to_rove_srq(struct ibv_srq *srq)
{
	return container_of(srq, struct rove_srq, vsrq.srq);
}

/*
 * No room for another work request.  The kernel's cache line is touched only
 * when our last knowledge of it says "full".  An index that makes no sense
 * (further ahead than we are) reads as full too.
 */
static inline bool rove_wq_full(struct rove_wq *wq)
{
	if (likely(wq->prod - wq->cons < wq->limit))
		return false;
	if (!wq->limit)
		return true;
	wq->cons = rove_index_load(&wq->ring.hdr->cons);
	return wq->prod - wq->cons >= wq->limit;
}

/* What a post is answered with then: there is no room yet, or no queue at all. */
static inline int rove_no_room(const struct rove_wq *wq)
{
	return wq->limit ? ENOMEM : EINVAL;
}

/* pd.c */
struct ibv_pd *rove_alloc_pd(struct ibv_context *context);
int rove_dealloc_pd(struct ibv_pd *ibpd);
struct ibv_pd *rove_import_pd(struct ibv_context *context, uint32_t handle);
void rove_unimport_pd(struct ibv_pd *ibpd);
struct ibv_td *rove_alloc_td(struct ibv_context *context,
			     struct ibv_td_init_attr *attr);
int rove_dealloc_td(struct ibv_td *ibtd);
void *rove_object_alloc(struct ibv_pd *ibpd, size_t size, enum rove_resource type,
			struct rove_pd **owner);
void rove_object_free(struct rove_pd *owner, void *object, enum rove_resource type);
struct ibv_pd *rove_alloc_parent_domain(struct ibv_context *context,
				struct ibv_parent_domain_init_attr *attr);

/* mr.c */
struct ibv_mr *rove_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
			   uint64_t iova, int access);
int rove_rereg_mr(struct verbs_mr *vmr, int flags, struct ibv_pd *pd,
		  void *addr, size_t length, int access);
int rove_dereg_mr(struct verbs_mr *vmr);
struct ibv_mr *rove_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset,
				  size_t length, uint64_t iova, int fd, int access);
struct ibv_mr *rove_alloc_null_mr(struct ibv_pd *pd);
struct ibv_mr *rove_import_mr(struct ibv_pd *pd, uint32_t handle);
void rove_unimport_mr(struct ibv_mr *mr);

/* mw.c */
struct ibv_mw *rove_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int rove_dealloc_mw(struct ibv_mw *mw);
int rove_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);

/* dm.c */
struct ibv_dm *rove_alloc_dm(struct ibv_context *context,
			     struct ibv_alloc_dm_attr *attr);
int rove_free_dm(struct ibv_dm *ibdm);
struct ibv_dm *rove_import_dm(struct ibv_context *context, uint32_t handle);
void rove_unimport_dm(struct ibv_dm *ibdm);
struct ibv_mr *rove_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *ibdm,
			      uint64_t offset, size_t length, unsigned int access);

/* ah.c */
struct ibv_ah *rove_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr);
int rove_destroy_ah(struct ibv_ah *ah);

/* cq.c */
struct ibv_cq *rove_create_cq(struct ibv_context *context, int cqe,
			      struct ibv_comp_channel *channel,
			      int comp_vector);
struct ibv_cq_ex *rove_create_cq_ex(struct ibv_context *context,
				    struct ibv_cq_init_attr_ex *attr);
int rove_resize_cq(struct ibv_cq *ibcq, int cqe);
int rove_modify_cq(struct ibv_cq *ibcq, struct ibv_modify_cq_attr *attr);
int rove_destroy_cq(struct ibv_cq *ibcq);
int rove_req_notify_cq(struct ibv_cq *ibcq, int solicited_only);
void rove_cq_forget_qp(struct ibv_cq *ibcq, uint32_t qp_num);

/* cq_poll.c */
int rove_poll_cq(struct ibv_cq *ibcq, int num, struct ibv_wc *wc);
void rove_cq_set_ex_ops(struct ibv_cq_ex *cq, uint64_t wc_flags);
extern const uint64_t rove_cq_wc_flags;

/* qp.c */
struct ibv_qp *rove_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
struct ibv_qp *rove_create_qp_ex(struct ibv_context *context,
				 struct ibv_qp_init_attr_ex *attr);
int rove_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask);
int rove_modify_qp_rate_limit(struct ibv_qp *ibqp,
			      struct ibv_qp_rate_limit_attr *limit);
int rove_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask,
		  struct ibv_qp_init_attr *init_attr);
int rove_destroy_qp(struct ibv_qp *ibqp);

/* srq.c */
struct ibv_srq *rove_create_srq(struct ibv_pd *pd,
				struct ibv_srq_init_attr *attr);
struct ibv_srq *rove_create_srq_ex(struct ibv_context *context,
				   struct ibv_srq_init_attr_ex *attr);
int rove_get_srq_num(struct ibv_srq *ibsrq, uint32_t *num);
int rove_modify_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr, int mask);
int rove_query_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr);
int rove_destroy_srq(struct ibv_srq *ibsrq);
int rove_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr,
		       struct ibv_recv_wr **bad_wr);

/* xrc.c */
struct ibv_xrcd *rove_open_xrcd(struct ibv_context *context,
				struct ibv_xrcd_init_attr *attr);
int rove_close_xrcd(struct ibv_xrcd *ibxrcd);
struct ibv_qp *rove_open_qp(struct ibv_context *context,
			    struct ibv_qp_open_attr *attr);

/* post.c */
int rove_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr,
		   struct ibv_send_wr **bad_wr);
int rove_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr,
		   struct ibv_recv_wr **bad_wr);

/* wr.c */
void rove_qp_set_ex_ops(struct ibv_qp_ex *qp, uint64_t send_ops);
uint64_t rove_send_ops_of(enum ibv_qp_type type);

/* wakeup.c */
int rove_wakeup(struct ibv_qp *ibqp, uint32_t command);

#endif /* ROVE_H */
