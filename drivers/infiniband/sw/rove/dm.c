// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * dm.c - see dm.h
 *
 * The memory is like that of a ring: zeroed, charged to the program's control
 * group, and alive until the last mapping of it is gone.
 */
#include <linux/slab.h>
#include <rdma/rove-abi.h>
#include "dev.h"
#include "dm.h"
#include "mr.h"
#include "ring.h"

#define UVERBS_MODULE_NAME rove
#include <rdma/uverbs_named_ioctl.h>

/**
 * struct rove_dm - device memory
 * @ibdm: what ib_core sees
 * @mem: the memory
 */
struct rove_dm {
	struct ib_dm ibdm;
	struct rove_ring_mem *mem;
};

struct ib_dm *rove_alloc_dm(struct ib_device *ibdev, struct ib_ucontext *uctx,
			    struct ib_dm_alloc_attr *attr,
			    struct uverbs_attr_bundle *attrs)
{
	struct rove_alloc_dm_resp resp = {};
	struct rove_dm *dm;
	int err;

	if (!attr->length || attr->length > ROVE_MAX_DM_SIZE ||
	    attr->alignment > PAGE_SHIFT) {
		rove_refuse(ibdev,
			    "alloc_dm: %llu bytes (1 to %llu), aligned to 2^%u (at most %u)",
			    attr->length, (u64)ROVE_MAX_DM_SIZE, attr->alignment,
			    PAGE_SHIFT);
		return ERR_PTR(-EINVAL);
	}
	dm = kzalloc(sizeof(*dm), GFP_KERNEL_ACCOUNT);
	if (!dm)
		return ERR_PTR(-ENOMEM);
	resp.mmap_size = PAGE_ALIGN(attr->length);
	dm->mem = rove_ring_mem_alloc(uctx, resp.mmap_size);
	if (IS_ERR(dm->mem)) {
		err = PTR_ERR(dm->mem);
		goto err_free;
	}
	resp.mmap_offset = rove_ring_mem_offset(dm->mem);
	err = uverbs_copy_to(attrs, ROVE_ATTR_ALLOC_DM_RESP, &resp, sizeof(resp));
	if (!err)
		return &dm->ibdm;
	rove_ring_mem_put(dm->mem);
err_free:
	kfree(dm);
	return ERR_PTR(err);
}

int rove_dealloc_dm(struct ib_dm *ibdm, struct uverbs_attr_bundle *attrs)
{
	struct rove_dm *dm = container_of(ibdm, struct rove_dm, ibdm);

	rove_ring_mem_put(dm->mem);
	kfree(dm);
	return 0;
}

/* ib_core has seen that it is zero based and within @ibdm.  It may have no bytes. */
struct ib_mr *rove_reg_dm_mr(struct ib_pd *ibpd, struct ib_dm *ibdm,
			     struct ib_dm_mr_attr *attr,
			     struct uverbs_attr_bundle *attrs)
{
	struct rove_dm *dm = container_of(ibdm, struct rove_dm, ibdm);
	struct rove_region *r;
	struct rove_mr *mr;
	int err;

	if (attr->access_flags & IB_ACCESS_ON_DEMAND)
		return ERR_PTR(-EINVAL);
	err = rove_mr_check_access(ibpd->device, attr->access_flags);
	if (err)
		return ERR_PTR(err);
	mr = rove_mr_alloc(ibpd, ROVE_REGION_PAGES, attr->access_flags);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	/* One block, however large: to the kernel it is contiguous. */
	r = mr->region;
	r->shift = 63;
	r->length = attr->length;
	r->offset = attr->offset;
	r->blocks = kvmalloc(sizeof(*r->blocks), GFP_KERNEL_ACCOUNT);
	if (!r->blocks) {
		err = -ENOMEM;
		goto err_free;
	}
	r->blocks[0] = rove_ring_mem_addr(dm->mem);
	err = rove_mr_publish(mr, true);
	if (!err)
		return &mr->ibmr;
err_free:
	rove_mr_free(mr);
	return ERR_PTR(err);
}

ADD_UVERBS_ATTRIBUTES_SIMPLE(
	rove_dm_alloc, UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC,
	UVERBS_ATTR_PTR_OUT(ROVE_ATTR_ALLOC_DM_RESP,
			    UVERBS_ATTR_STRUCT(struct rove_alloc_dm_resp, rsvd),
			    UA_MANDATORY));

const struct uapi_definition rove_dm_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DM, &rove_dm_alloc),
	{},
};
