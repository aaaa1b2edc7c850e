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

static struct rove_dm *to_rdm(struct ib_dm *ibdm)
{
	return container_of(ibdm, struct rove_dm, ibdm);
}

static int tell(struct uverbs_attr_bundle *attrs, u16 attr,
		const struct rove_dm *dm, u32 length)
{
	const struct rove_dm_info info = {
		.mmap_offset = rove_ring_mem_offset(dm->mem),
		.mmap_size = PAGE_ALIGN(length),
		.length = length,
	};

	return uverbs_copy_to(attrs, attr, &info, sizeof(info));
}

struct ib_dm *rove_alloc_dm(struct ib_device *ibdev, struct ib_ucontext *uctx,
			    struct ib_dm_alloc_attr *attr,
			    struct uverbs_attr_bundle *attrs)
{
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
	dm = kzalloc(sizeof(*dm), ROVE_GFP_OBJECT);
	if (!dm)
		return ERR_PTR(-ENOMEM);
	dm->mem = rove_ring_mem_alloc(uctx, PAGE_ALIGN(attr->length));
	if (IS_ERR(dm->mem)) {
		err = PTR_ERR(dm->mem);
		goto err_free;
	}
	err = tell(attrs, ROVE_ATTR_ALLOC_DM_RESP, dm, attr->length);
	if (!err)
		return &dm->ibdm;
	rove_ring_mem_put(dm->mem);
err_free:
	kfree(dm);
	return ERR_PTR(err);
}

int rove_dealloc_dm(struct ib_dm *ibdm, struct uverbs_attr_bundle *attrs)
{
	struct rove_dm *dm = to_rdm(ibdm);

	rove_ring_mem_put(dm->mem);
	kfree(dm);
	return 0;
}

/* ib_core has seen that it is zero based and within @ibdm.  It may have no bytes. */
struct ib_mr *rove_reg_dm_mr(struct ib_pd *ibpd, struct ib_dm *ibdm,
			     struct ib_dm_mr_attr *attr,
			     struct uverbs_attr_bundle *attrs)
{
	struct rove_dm *dm = to_rdm(ibdm);
	struct rove_mr *mr;
	int err;

	if (attr->access_flags & IB_ACCESS_ON_DEMAND) {
		rove_refuse(ibpd->device,
			    "memory region: device memory is never paged, on demand or otherwise");
		return ERR_PTR(-EINVAL);
	}
	err = rove_mr_check_access(ibpd->device, attr->access_flags);
	if (err)
		return ERR_PTR(err);
	mr = rove_mr_alloc(ibpd, ROVE_REGION_PAGES, attr->access_flags);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	err = rove_region_set_contiguous(mr->region, rove_ring_mem_addr(dm->mem),
					 attr->offset, attr->length);
	if (!err)
		err = rove_mr_publish(mr, true);
	if (!err)
		return &mr->ibmr;
	rove_mr_free(mr);
	return ERR_PTR(err);
}

/* For who was given the context's file descriptor, and imports the memory. */
static int UVERBS_HANDLER(ROVE_METHOD_DM_QUERY)(struct uverbs_attr_bundle *attrs)
{
	struct ib_dm *ibdm = uverbs_attr_get_obj(attrs, ROVE_ATTR_QUERY_DM_HANDLE);

	return tell(attrs, ROVE_ATTR_QUERY_DM_RESP, to_rdm(ibdm), ibdm->length);
}

DECLARE_UVERBS_NAMED_METHOD(
	ROVE_METHOD_DM_QUERY,
	UVERBS_ATTR_IDR(ROVE_ATTR_QUERY_DM_HANDLE, UVERBS_OBJECT_DM,
			UVERBS_ACCESS_READ, UA_MANDATORY),
	UVERBS_ATTR_PTR_OUT(ROVE_ATTR_QUERY_DM_RESP,
			    UVERBS_ATTR_STRUCT(struct rove_dm_info, length),
			    UA_MANDATORY));

DECLARE_UVERBS_GLOBAL_METHODS(UVERBS_OBJECT_DM,
			      &UVERBS_METHOD(ROVE_METHOD_DM_QUERY));

ADD_UVERBS_ATTRIBUTES_SIMPLE(
	rove_dm_alloc, UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC,
	UVERBS_ATTR_PTR_OUT(ROVE_ATTR_ALLOC_DM_RESP,
			    UVERBS_ATTR_STRUCT(struct rove_dm_info, length),
			    UA_MANDATORY));

const struct uapi_definition rove_dm_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DM, &rove_dm_alloc),
	UAPI_DEF_CHAIN_OBJ_TREE_NAMED(UVERBS_OBJECT_DM),
	{},
};
