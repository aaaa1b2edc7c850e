/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * defer.h - QPs that have something to do once the packets at hand are handled:
 * to work off their backlog, to acknowledge, to send
 *
 * Per CPU, a list and a tasklet: it runs after the network receive softirq has
 * worked off its batch, so that a burst of requests gets one acknowledgment.
 *
 * Where that goes on and on, softirqs are left to ksoftirqd, and that has to share the
 * CPU with a program that spins for its completions, some milliseconds for the one
 * and some for the other.  So a CPU that is kept busy by us does it in a thread of its
 * own ("rove/0"), which the scheduler prefers.
 *
 * A QP has a home, the CPU where that is done.  As long as anything of it is under
 * way it sends from there alone, since what two CPUs send may overtake each
 * other; when it is idle it moves to where it is used next (TCP's skb->ooo_okay is
 * the model).
 */
#ifndef ROVE_DEFER_H
#define ROVE_DEFER_H

struct rove_qp;

/* Have @qp looked after soon, at its home.  Any context, hard interrupts too. */
void rove_defer(struct rove_qp *qp);

/*
 * Has a timer to leave what it has to do to rove_defer()?  All that have expired by now run
 * in one go, with softirqs off, and each may send: a program can have very many of them
 * expire at once.  From a soft hrtimer, at @now, ns.
 */
bool rove_timers_late(u64 now);

/*
 * May the QP send from this CPU?  Makes it its home if it can.  QP locked.
 */
bool rove_at_home(struct rove_qp *qp);

/* Would nothing overtake what it has sent if it sent from another CPU?  QP locked. */
bool rove_may_move(const struct rove_qp *qp);

/*
 * May a QP that a request has come to, on the CPU that is its home, answer from another one?
 * The responses that it has sent before have left the stack, or the queue of this CPU is all
 * that they can still be in (lo, netem and tunnels let go of them early).  One that is
 * overtaken there is asked for again from here, and so behind it: nothing comes twice that was
 * read at different times.  Not on UC, where nobody would ask.  QP locked.
 */
bool rove_may_leave(const struct rove_qp *qp);

int rove_defer_init(void);
/* No QP is left. */
void rove_defer_exit(void);

#endif /* ROVE_DEFER_H */
