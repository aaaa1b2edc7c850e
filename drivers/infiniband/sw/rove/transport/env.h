/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * env.h - what the transport asks of the world around it
 *
 * Bound at link time: the kernel module (../env.c and the files it names) is
 * one environment, the simulator (selftests/sim) another.  All functions are called with
 * the QP's lock held and must not sleep nor call back into the transport for
 * the same QP.
 */
#ifndef ROVE_ENV_H
#define ROVE_ENV_H

#include "counters.h"
#include "tqp.h"

/* ---- queues ---- */

/**
 * rove_env_sq_fetch() - take the next work request from the send queue
 * @t: the QP
 * @w: @w->wqe and what follows it are filled with a private copy; the content is
 *	the program's and unchecked
 *
 * Return: 1; 0 when the queue is empty; -EINVAL when its producer index is
 * impossible.
 */
int rove_env_sq_fetch(struct rove_tqp *t, struct rove_swqe *w);

/* Is there a work request that rove_env_sq_fetch() would return?  A hint. */
bool rove_env_sq_pending(struct rove_tqp *t);

/* The slot fetched longest ago from the send queue may be used again. */
void rove_env_sq_release(struct rove_tqp *t);

/**
 * rove_env_rq_fetch() - take the next receive work request
 * @t: the QP
 * @w: filled in, with at most @t->max_sge_recv SGEs, copied; none when
 *	@w->num_sge says that there are more
 *
 * Of a shared queue, other QPs take too.
 *
 * Return: 1; 0 when the queue is empty; -EINVAL when its producer index is
 * impossible.
 */
int rove_env_rq_fetch(struct rove_tqp *t, struct rove_rwqe *w);

/* Receive work requests posted and not fetched; ROVE_NO_CREDITS: not counted. */
u32 rove_env_rq_credits(struct rove_tqp *t);
#define ROVE_NO_CREDITS		U32_MAX

/**
 * rove_env_srq() - XRC: choose an SRQ
 * @t: the QP
 * @srqn: number that the peer has given
 *
 * It stays chosen until another is: receives are fetched from it, and keys are those of its
 * protection domain.
 *
 * Return: 0; -EINVAL: the QP's XRC domain has no such SRQ.
 */
int rove_env_srq(struct rove_tqp *t, u32 srqn);

/* Choose its protection domain alone, until rove_env_srq() is called. */
int rove_env_srq_domain(struct rove_tqp *t, u32 srqn);

/**
 * rove_env_complete() - add a completion
 * @t: the QP
 * @cqe: all but @qp_num and @timestamp, which the environment fills in
 * @recv: for the receive queue's CQ, else the send queue's
 * @solicited: it counts as solicited (any error does)
 *
 * The QP is the same after it: what a completion queue that is full has for
 * consequences comes when the call into the transport is over.
 */
void rove_env_complete(struct rove_tqp *t, struct rove_cqe *cqe, bool recv,
		       bool solicited);

/* ---- packets ---- */

/**
 * rove_env_dest() - UD: where the next packets go
 * @t: the QP
 * @ah: number of an address handle, from a work request
 *
 * Return: the longest message that may go there, in bytes; -EINVAL when there is
 * no such address handle, or it is not this QP's to use.
 */
int rove_env_dest(struct rove_tqp *t, u32 ah);

/**
 * rove_env_emit() - build and send the packets of a burst
 * @t: the QP
 * @b: the burst
 *
 * The payload is read now; nothing of @b is kept.
 *
 * Return: 0 when all packets are on their way.  Otherwise nothing was sent: -EAGAIN for want
 * of room, -EINPROGRESS because payload is on its way to memory (the environment calls
 * rove_tqp_send() when there is some, or it is there); -EFAULT when the payload may not
 * be read with its keys.
 */
int rove_env_emit(struct rove_tqp *t, const struct rove_burst *b);

/*
 * Ask for a call of rove_tqp_send() once the packets now at hand are handled; in the
 * error state of rove_tqp_flush().
 */
void rove_env_defer_send(struct rove_tqp *t);

/**
 * rove_env_hold_ack() - may an acknowledgment wait for what the program answers?
 * @t: the QP, in RTS
 * @now: time
 *
 * Asked about a message that has come whole when no other acknowledgment is due.  The
 * peer's completion is late by that wait, if the program answers nothing.
 *
 * Return: true: the environment calls rove_tqp_send() when the program posts, or has not
 * for long.
 */
bool rove_env_hold_ack(struct rove_tqp *t, u64 now);

/* ---- memory, by key ---- */

/**
 * rove_env_check_rkey() - may the peer access this?
 * @t: the QP
 * @rkey: remote key
 * @va: start
 * @len: bytes, not 0
 * @access: one of enum rove_access's remote rights
 *
 * The QP's own rights are checked by the transport.
 *
 * Return: 0 or -EFAULT.
 */
int rove_env_check_rkey(struct rove_tqp *t, u32 rkey, u64 va, u32 len,
			u32 access);

/**
 * rove_env_write() - place a packet's payload at a remote key (RDMA WRITE)
 * @t: the QP
 * @rkey: remote key; REMOTE_WRITE is checked for these bytes
 * @va: where
 * @pkt: its whole payload is placed
 *
 * Return: 0; -EFAULT; -EAGAIN when memory is on its way: the peer is to send the
 * packet once more.
 */
int rove_env_write(struct rove_tqp *t, u32 rkey, u64 va,
		   const struct rove_pkt *pkt);

/**
 * rove_env_scatter() - place bytes in local SGEs (SEND, READ response)
 * @t: the QP
 * @sge: the list; LOCAL_WRITE is checked for the bytes placed
 * @num_sge: its length
 * @offset: first byte, counted over the whole list
 * @pkt: its whole payload is placed, unless @data
 * @data: NULL, or the bytes to place (atomic result)
 * @len: how many bytes @data has
 *
 * The caller has seen that the list is long enough.
 *
 * Return: 0; -EFAULT; -EAGAIN when memory is on its way, and the same is to be
 * placed later.  What was placed before stays.
 */
int rove_env_scatter(struct rove_tqp *t, const struct rove_sge *sge,
		     u32 num_sge, u32 offset, const struct rove_pkt *pkt,
		     const void *data, u32 len);

/**
 * rove_env_atomic() - execute an atomic on 8 bytes at a remote key
 * @t: the QP
 * @rkey: remote key; REMOTE_ATOMIC is checked
 * @va: where, a multiple of 8
 * @cmp_swap: compare and swap, else fetch and add
 * @compare: CMP_AND_SWP
 * @swap_add: value written or added
 * @orig: the value before
 *
 * Atomic against all other atomics of the device and against the host's CPUs.
 *
 * Return: 0; -EFAULT; -EAGAIN as with rove_env_write(), nothing was done.
 */
int rove_env_atomic(struct rove_tqp *t, u32 rkey, u64 va, bool cmp_swap,
		    u64 compare, u64 swap_add, u64 *orig);

/**
 * rove_env_atomic_write() - store 8 bytes at a remote key, all at once
 * @t: the QP
 * @rkey: remote key; REMOTE_WRITE is checked
 * @va: where, a multiple of 8
 * @pkt: its payload of 8 bytes is stored
 *
 * Return: 0; -EFAULT; -EAGAIN as with rove_env_write(), nothing was done.
 */
int rove_env_atomic_write(struct rove_tqp *t, u32 rkey, u64 va,
			  const struct rove_pkt *pkt);

/**
 * rove_env_invalidate() - invalidate a key for the peer (SEND with Invalidate)
 * @t: the QP
 * @key: rkey from the peer
 *
 * Return: 0; -EINVAL when the key may not be invalidated from this QP.
 */
int rove_env_invalidate(struct rove_tqp *t, u32 key);

/**
 * rove_env_local() - execute work that no packet is sent for
 * @t: the QP
 * @wqe: LOCAL_INV, BIND_MW or REG_MR, copied and unchecked
 *
 * Return: enum rove_wc_status.
 */
u32 rove_env_local(struct rove_tqp *t, const struct rove_send_wqe *wqe);

/* ---- the rest ---- */

/* Call rove_tqp_timer() at @deadline; replaces an earlier call. */
void rove_env_arm_timer(struct rove_tqp *t, u64 deadline);

/**
 * rove_env_lag() - how long has waited what arrived here and is handled now?
 * @t: the QP
 *
 * For so long silence is no sign of a loss: it may be the answer that waits or, where the
 * peer is on this machine, the request.
 *
 * Return: ns; 0 when nothing waits.
 */
u64 rove_env_lag(struct rove_tqp *t);

/* Report an asynchronous event of the QP. */
void rove_env_event(struct rove_tqp *t, enum rove_tqp_event event);

/* The transport has put the QP into the error state itself, or its send queue (SQE). */
void rove_env_state_changed(struct rove_tqp *t);

/* Add one to a counter. */
void rove_env_count(struct rove_tqp *t, enum rove_counter counter);

#endif /* ROVE_ENV_H */
