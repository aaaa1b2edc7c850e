/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * mw.h - memory windows of type 1 and type 2B
 */
#ifndef ROVE_MW_H
#define ROVE_MW_H

#include <rdma/ib_verbs.h>
#include <rdma/rove-abi.h>
#include "region.h"

struct rove_qp;

/**
 * struct rove_mw - a memory window
 * @ibmw: what ib_core sees
 * @region: what its key stands for; bound to nothing it is closed
 */
struct rove_mw {
	struct ib_mw ibmw;
	struct rove_region *region;
};

/**
 * rove_mw_bind() - execute a BIND_MW
 * @qp: locked; it holds no region
 * @wqe: as posted, unchecked
 *
 * Return: enum rove_wc_status.
 */
u32 rove_mw_bind(struct rove_qp *qp, const struct rove_send_wqe *wqe);

/* ib_device_ops; both sleep. */
int rove_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata);
int rove_dealloc_mw(struct ib_mw *ibmw);

#endif /* ROVE_MW_H */
