/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * srq.h - shared receive queues
 *
 * A ring like a QP's receive ring, that several QPs take work requests from.
 * Posting is the same too: a program writes to the ring and makes no system call.
 *
 * Locks: @resize_lock, a QP's, then the SRQ's, then @post_lock.
 *
 * Lifetime: ib_core keeps an SRQ for as long as a QP uses it; for XRC see xrc.c.
 */
#ifndef ROVE_SRQ_H
#define ROVE_SRQ_H

#include <linux/mutex.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>
#include "ring.h"
#include "transport/tqp.h"

/**
 * struct rove_srq - a shared receive queue
 * @ibsrq: what ib_core sees
 * @lock: guards all below; softirqs off
 * @ring: receive ring; the kernel consumes
 * @post_lock: kernel consumers' posts to @ring, and what it is replaced by; they post
 *	in hard interrupts, too
 * @resize_lock: one replaces @ring at a time
 * @max_sge: of a work request; constant
 * @user: the ring belongs to a program; constant
 * @limit: an event is wanted once there are fewer work requests; 0: none is
 * @broken: its producer index was impossible once, or an XRC SRQ is going away: nothing
 *	is taken any more
 * @holders: XRC: target QPs that hold it
 * @events: bits of enum rove_srq_event that are due; atomic
 * @event_work: tells the consumer of them; it may sleep
 */
struct rove_srq {
	struct ib_srq ibsrq;
	spinlock_t lock;
	struct rove_ring ring;
	spinlock_t post_lock;
	struct mutex resize_lock;
	u32 max_sge;
	bool user;
	u32 limit;
	bool broken;
	struct list_head holders;
	unsigned long events;
	struct work_struct event_work;
};

/* Bits of &rove_srq.events */
enum rove_srq_event {
	ROVE_SRQ_LIMIT_REACHED,
	ROVE_SRQ_ERR,
};

static inline struct rove_srq *to_rsrq(struct ib_srq *ibsrq)
{
	return container_of(ibsrq, struct rove_srq, ibsrq);
}

/**
 * rove_srq_fetch() - take the next work request for a QP
 * @srq: the SRQ
 * @w: filled in
 * @room: SGEs that @w->sge has room for
 *
 * Context: the QP is locked.
 * Return: as rove_env_rq_fetch().
 */
int rove_srq_fetch(struct rove_srq *srq, struct rove_rwqe *w, u32 room);

/* ib_device_ops; all but post_srq_recv may sleep */
int rove_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init,
		    struct ib_udata *udata);
int rove_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr,
		    enum ib_srq_attr_mask mask, struct ib_udata *udata);
int rove_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr);
int rove_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata);
int rove_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
		       const struct ib_recv_wr **bad_wr);

#endif /* ROVE_SRQ_H */
