/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * xrc.h - extended reliable connections (IBTA vol. 1, annex A14)
 */
#ifndef ROVE_XRC_H
#define ROVE_XRC_H

#include <rdma/ib_verbs.h>

struct rove_cqe;
struct rove_dev;
struct rove_qp;
struct rove_srq;

struct rove_xrcd {
	struct ib_xrcd ibxrcd;
};

/* ib_device_ops; uverbs knows which program may use which domain */
int rove_alloc_xrcd(struct ib_xrcd *xrcd, struct ib_udata *udata);
int rove_dealloc_xrcd(struct ib_xrcd *xrcd, struct ib_udata *udata);

void rove_xrc_table_init(struct rove_dev *rdev);
void rove_xrc_table_destroy(struct rove_dev *rdev);

/* Give an XRC SRQ a number; from now on it can be found.  0, -ENOMEM or -EBUSY. */
int rove_xrc_publish(struct rove_srq *srq);

/* It can no longer be found, nobody holds it any more.  May sleep. */
void rove_xrc_withdraw(struct rove_srq *srq);

/* The SRQ that a target QP holds, if any, is not its business any more.  QP locked. */
void rove_xrc_let_go(struct rove_qp *qp);

/* A receive is complete: as rove_cq_add(), and announced.  QP locked. */
int rove_xrc_complete(struct rove_qp *qp, const struct rove_cqe *cqe,
		      bool solicited);

#endif /* ROVE_XRC_H */
