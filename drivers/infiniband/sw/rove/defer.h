/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * defer.h - QPs that have something to send once the packets at hand are handled
 *
 * Per CPU, a list and a tasklet: it runs after the network receive softirq has
 * worked off its batch, so that a burst of requests gets one acknowledgement.
 */
#ifndef ROVE_DEFER_H
#define ROVE_DEFER_H

struct rove_qp;

/* Have rove_tqp_send() called for @qp soon.  Any context, hard interrupts too. */
void rove_defer(struct rove_qp *qp);

int rove_defer_init(void);
/* No QP is left. */
void rove_defer_exit(void);

#endif /* ROVE_DEFER_H */
