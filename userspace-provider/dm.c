// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Device memory: memory of the kernel's, mapped here for the copy functions.
 */
#define _FILE_OFFSET_BITS 64

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "uverbs.h"

/**
 * struct rove_dm - device memory
 * @vdm: what libibverbs knows of it
 * @map: where it is mapped
 * @map_size: bytes mapped
 * @length: bytes that the program may use
 */
struct rove_dm {
	struct verbs_dm vdm;
	char *map;
	size_t map_size;
	uint64_t length;
};

static struct rove_dm *to_rove_dm(struct ibv_dm *dm)
{
	return container_of(dm, struct rove_dm, vdm.dm);
}

/* As with memory on a device: whole words only, and none outside. */
static bool in_range(const struct rove_dm *dm, uint64_t offset, size_t length)
{
	return !(offset % 4) && !(length % 4) && offset <= dm->length &&
	       length <= dm->length - offset;
}

static int copy_to_dm(struct ibv_dm *ibdm, uint64_t offset, const void *from,
		      size_t length)
{
	struct rove_dm *dm = to_rove_dm(ibdm);

	if (!in_range(dm, offset, length))
		return EFAULT;
	memcpy(dm->map + offset, from, length);
	return 0;
}

static int copy_from_dm(void *to, struct ibv_dm *ibdm, uint64_t offset,
			size_t length)
{
	struct rove_dm *dm = to_rove_dm(ibdm);

	if (!in_range(dm, offset, length))
		return EFAULT;
	memcpy(to, dm->map + offset, length);
	return 0;
}

/* DM_ALLOC with our attribute; libibverbs has no room for one in its call. */
static int alloc(struct ibv_context *context, const struct ibv_alloc_dm_attr *attr,
		 uint32_t *handle, struct rove_dm_info *info)
{
	uint64_t length = attr->length;
	struct ib_uverbs_attr *dm;
	struct rove_call call;
	int ret;

	rove_call_init(&call, UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC);
	dm = rove_call_object(&call, UVERBS_ATTR_ALLOC_DM_HANDLE, 0);
	rove_call_in(&call, UVERBS_ATTR_ALLOC_DM_LENGTH, &length, sizeof(length));
	rove_call_in(&call, UVERBS_ATTR_ALLOC_DM_ALIGNMENT, &attr->log_align_req,
		     sizeof(attr->log_align_req));
	rove_call_out(&call, ROVE_ATTR_ALLOC_DM_RESP, info, sizeof(*info));
	ret = rove_call_make(context, &call);
	*handle = dm->data;
	return ret;
}

/* One that the kernel has, under dm->vdm.handle: 0 or an errno. */
static int set_up(struct rove_dm *dm, struct ibv_context *context,
		  const struct rove_dm_info *info)
{
	dm->vdm.dm.context = context;
	dm->vdm.dm.memcpy_to_dm = copy_to_dm;
	dm->vdm.dm.memcpy_from_dm = copy_from_dm;
	/* what a program passes on to who is to import it */
	dm->vdm.dm.handle = dm->vdm.handle;
	dm->vdm.dm.comp_mask = IBV_DM_MASK_HANDLE;
	dm->length = info->length;
	dm->map_size = info->mmap_size;
	dm->map = mmap(NULL, dm->map_size, PROT_READ | PROT_WRITE, MAP_SHARED,
		       context->cmd_fd, (off_t)info->mmap_offset);
	return dm->map == MAP_FAILED ? errno : 0;
}

struct ibv_dm *rove_alloc_dm(struct ibv_context *context,
			     struct ibv_alloc_dm_attr *attr)
{
	struct rove_dm_info info = {};
	struct rove_dm *dm;
	int ret;

	if (attr->comp_mask) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	dm = calloc(1, sizeof(*dm));
	if (!dm)
		return NULL;
	ret = alloc(context, attr, &dm->vdm.handle, &info);
	if (ret)
		goto err_free;
	ret = set_up(dm, context, &info);
	if (!ret)
		return &dm->vdm.dm;
	ibv_cmd_free_dm(&dm->vdm);
err_free:
	free(dm);
	errno = ret;
	return NULL;
}

int rove_free_dm(struct ibv_dm *ibdm)
{
	struct rove_dm *dm = to_rove_dm(ibdm);
	int ret = ibv_cmd_free_dm(&dm->vdm);

	if (ret)
		return ret;
	munmap(dm->map, dm->map_size);
	free(dm);
	return 0;
}

struct ibv_dm *rove_import_dm(struct ibv_context *context, uint32_t handle)
{
	struct rove_dm_info info = {};
	struct rove_call call;
	struct rove_dm *dm;
	int ret;

	dm = calloc(1, sizeof(*dm));
	if (!dm)
		return NULL;
	dm->vdm.handle = handle;
	rove_call_init(&call, UVERBS_OBJECT_DM, ROVE_METHOD_DM_QUERY);
	rove_call_object(&call, ROVE_ATTR_QUERY_DM_HANDLE, handle);
	rove_call_out(&call, ROVE_ATTR_QUERY_DM_RESP, &info, sizeof(info));
	ret = rove_call_make(context, &call);
	if (!ret)
		ret = set_up(dm, context, &info);
	if (!ret)
		return &dm->vdm.dm;
	free(dm);
	errno = ret;
	return NULL;
}

void rove_unimport_dm(struct ibv_dm *ibdm)
{
	struct rove_dm *dm = to_rove_dm(ibdm);

	munmap(dm->map, dm->map_size);
	free(dm);
}

struct ibv_mr *rove_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *ibdm,
			      uint64_t offset, size_t length, unsigned int access)
{
	struct verbs_mr *vmr = calloc(1, sizeof(*vmr));
	int ret;

	if (!vmr)
		return NULL;
	ret = ibv_cmd_reg_dm_mr(pd, &to_rove_dm(ibdm)->vdm, offset, length, access,
				vmr, NULL);
	if (ret) {
		free(vmr);
		errno = ret;
		return NULL;
	}
	return &vmr->ibv_mr;
}
