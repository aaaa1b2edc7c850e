/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * doorbell.h - how posted work is noticed
 */
#ifndef ROVE_DOORBELL_H
#define ROVE_DOORBELL_H

struct rove_qp;

/* The wake-up call of a program, or a kernel consumer's post.  Task context. */
void rove_doorbell_wakeup(struct rove_qp *qp);

/*
 * Give the transport its turn: replies, acknowledgments, posted work; or flush,
 * in the error state.  QP locked.
 */
void rove_doorbell_run(struct rove_qp *qp);

/*
 * Make NEED_WAKEUP say whether anybody will look at the send ring again.  To be called
 * after the requester has run.  QP locked.
 */
void rove_doorbell_settle(struct rove_qp *qp);

/*
 * A message has come at @now: is an answer likely to be posted soon?  If so, the
 * transport gets its turn then, or after a time.  QP locked.
 */
bool rove_doorbell_expects(struct rove_qp *qp, u64 now);

/* Back to the state of a new QP.  QP locked. */
void rove_doorbell_reset(struct rove_qp *qp);

/* The QP is in the error state: from now on every post is to be told.  QP locked. */
void rove_doorbell_error(struct rove_qp *qp);

/* Set-up and tear-down of the window's timer. */
void rove_doorbell_init(struct rove_qp *qp);
void rove_doorbell_stop(struct rove_qp *qp);

#endif /* ROVE_DOORBELL_H */
