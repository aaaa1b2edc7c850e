/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * dm.h - device memory: memory of the kernel's that programs allocate, map and
 * register
 */
#ifndef ROVE_DM_H
#define ROVE_DM_H

#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>

/* Most that one allocation may have, and what query_device tells. */
#define ROVE_MAX_DM_SIZE	(16U << 20)

extern const struct uapi_definition rove_dm_defs[];

/* ib_device_ops; all sleep. */
struct ib_dm *rove_alloc_dm(struct ib_device *ibdev, struct ib_ucontext *uctx,
			    struct ib_dm_alloc_attr *attr,
			    struct uverbs_attr_bundle *attrs);
int rove_dealloc_dm(struct ib_dm *ibdm, struct uverbs_attr_bundle *attrs);
struct ib_mr *rove_reg_dm_mr(struct ib_pd *ibpd, struct ib_dm *ibdm,
			     struct ib_dm_mr_attr *attr,
			     struct uverbs_attr_bundle *attrs);

#endif /* ROVE_DM_H */
