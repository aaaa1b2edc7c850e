/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * pace.h - a rate limit per QP (IBV_QP_RATE_LIMIT), kept by pacing
 *
 * What a QP sends, but for acknowledgments, has to wait until the time that
 * the packets before it take at its rate is over.
 */
#ifndef ROVE_PACE_H
#define ROVE_PACE_H

#include <linux/hrtimer.h>
#include <linux/types.h>

struct rove_qp;
struct rove_burst;

/**
 * struct rove_pace - a QP's pace; guarded by its lock
 * @kbps: thousand bits a second, 0: no limit
 * @next: CLOCK_MONOTONIC nanoseconds, when more may be sent
 * @timer: wakes the transport at @next
 */
struct rove_pace {
	u32 kbps;
	u64 next;
	struct hrtimer timer;
};

/* A new QP's.  rove_pace_stop(): it is dead; waits for the timer. */
void rove_pace_init(struct rove_qp *qp);
void rove_pace_stop(struct rove_qp *qp);

/* From now on; 0 takes the limit away.  QP locked. */
void rove_pace_set(struct rove_qp *qp, u32 kbps);

/**
 * rove_pace_wait() - is it too early to send?
 * @qp: locked, and with a limit
 * @b: what is to be sent
 *
 * Return: true: not now; the transport will be told when.
 */
bool rove_pace_wait(struct rove_qp *qp, const struct rove_burst *b);

/* @b has been sent.  QP locked, and with a limit. */
void rove_pace_sent(struct rove_qp *qp, const struct rove_burst *b);

#endif /* ROVE_PACE_H */
