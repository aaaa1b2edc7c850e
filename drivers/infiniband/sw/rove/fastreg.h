/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * fastreg.h - regions that kernel consumers register by a work request
 */
#ifndef ROVE_FASTREG_H
#define ROVE_FASTREG_H

#include <rdma/ib_verbs.h>
#include <rdma/rove-abi.h>

struct rove_qp;

/* Blocks that such a region may have: 8 MiB in pages of 4 KiB. */
#define ROVE_MAX_FASTREG_BLOCKS	2048

/**
 * rove_fastreg_fill() - the ring's form of an IB_WR_REG_MR
 * @wqe: filled in
 * @wr: what was posted
 *
 * Context: any.
 * Return: 0 or -EINVAL.
 */
int rove_fastreg_fill(struct rove_send_wqe *wqe, const struct ib_reg_wr *wr);

/**
 * rove_fastreg_execute() - it is its turn
 * @qp: locked; it holds no region
 * @wqe: as filled in
 *
 * Return: enum rove_wc_status.
 */
u32 rove_fastreg_execute(struct rove_qp *qp, const struct rove_send_wqe *wqe);

/* ib_device_ops */
struct ib_mr *rove_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type, u32 max);
int rove_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int nents,
		   unsigned int *offset);

#endif /* ROVE_FASTREG_H */
