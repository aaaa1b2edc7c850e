/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * restrack.h - driver details of objects, as `rdma resource show ... -dd` prints them
 */
#ifndef ROVE_RESTRACK_H
#define ROVE_RESTRACK_H

#include <rdma/ib_verbs.h>

/* ib_device_ops; may sleep; the object is referenced by ib_core */
int rove_fill_res_qp(struct sk_buff *msg, struct ib_qp *ibqp);
int rove_fill_res_cq(struct sk_buff *msg, struct ib_cq *ibcq);
int rove_fill_res_mr(struct sk_buff *msg, struct ib_mr *ibmr);
int rove_fill_res_srq(struct sk_buff *msg, struct ib_srq *ibsrq);

#endif /* ROVE_RESTRACK_H */
