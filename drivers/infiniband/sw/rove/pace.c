// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * pace.c - a rate limit per QP; see pace.h
 */
#include <linux/ktime.h>
#include <linux/math64.h>
#include "defer.h"
#include "doorbell.h"
#include "pace.h"
#include "qp.h"
#include "transport/packet.h"

/* A timer that comes late may be made up for by this much. */
#define SLACK_NS	NSEC_PER_MSEC
/* Ethernet, IP, UDP, BTH, ICRC; the rate is the wire's, as hardware's is. */
#define OVERHEAD_V4	(14 + 20 + 8 + 12 + 4)
#define OVERHEAD_V6	(14 + 40 + 8 + 12 + 4)

static enum hrtimer_restart resume(struct hrtimer *timer)
{
	struct rove_qp *qp = container_of(timer, struct rove_qp, pace.timer);

	rove_qp_lock(qp);
	if (!qp->dead) {
		if (rove_at_home(qp) && !rove_timers_late(ktime_get_ns()))
			rove_doorbell_run(qp);
		else
			rove_defer(qp);
	}
	rove_qp_unlock(qp);
	return HRTIMER_NORESTART;
}

void rove_pace_init(struct rove_qp *qp)
{
	rove_hrtimer_setup(&qp->pace.timer, resume, CLOCK_MONOTONIC,
			   HRTIMER_MODE_ABS_SOFT);
}

void rove_pace_stop(struct rove_qp *qp)
{
	hrtimer_cancel(&qp->pace.timer);
}

void rove_pace_set(struct rove_qp *qp, u32 kbps)
{
	struct rove_pace *p = &qp->pace;

	/* What waits by the old rate need not wait for all of that. */
	p->next = 0;
	p->kbps = kbps;
	qp->t.paced = kbps;
	if (hrtimer_is_queued(&p->timer) && !qp->dead)
		hrtimer_start(&p->timer, 0, HRTIMER_MODE_ABS_SOFT);
}

bool rove_pace_wait(struct rove_qp *qp, const struct rove_burst *b)
{
	struct rove_pace *p = &qp->pace;

	if (b->kind == ROVE_BURST_ACK || ktime_get_ns() >= p->next)
		return false;
	if (!hrtimer_is_queued(&p->timer) && !qp->dead)
		hrtimer_start(&p->timer, ns_to_ktime(p->next),
			      HRTIMER_MODE_ABS_SOFT);
	return true;
}

void rove_pace_sent(struct rove_qp *qp, const struct rove_burst *b)
{
	u32 bytes = b->length +
		    b->npkts * (qp->av.ipv6 ? OVERHEAD_V6 : OVERHEAD_V4);
	struct rove_pace *p = &qp->pace;
	u64 now = ktime_get_ns();

	if (b->kind == ROVE_BURST_ACK)
		return;
	/* 8 bits a byte, 10^6 ns in the second of 10^3 bits */
	p->next = max(p->next, now - SLACK_NS) +
		  div_u64(bytes * 8ULL * NSEC_PER_MSEC, p->kbps);
}
