// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Device memory: memory of the kernel's, mapped here for the copy functions.
 */
#define _FILE_OFFSET_BITS 64

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include <rdma/rdma_user_ioctl.h>

#include "rove.h"

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
		 uint32_t *handle, struct rove_alloc_dm_resp *resp)
{
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attrs[4];
	} cmd = {
		.hdr = {
			.length = sizeof(cmd),
			.object_id = UVERBS_OBJECT_DM,
			.method_id = UVERBS_METHOD_DM_ALLOC,
			.num_attrs = 4,
			.driver_id = ROVE_DRIVER_ID,
		},
	};
	uint64_t length = attr->length;

	cmd.attrs[0] = (struct ib_uverbs_attr) {
		.attr_id = UVERBS_ATTR_ALLOC_DM_HANDLE,
		.flags = UVERBS_ATTR_F_MANDATORY,
	};
	cmd.attrs[1] = (struct ib_uverbs_attr) {
		.attr_id = UVERBS_ATTR_ALLOC_DM_LENGTH,
		.flags = UVERBS_ATTR_F_MANDATORY,
		.len = sizeof(length),
		.data = length,
	};
	cmd.attrs[2] = (struct ib_uverbs_attr) {
		.attr_id = UVERBS_ATTR_ALLOC_DM_ALIGNMENT,
		.flags = UVERBS_ATTR_F_MANDATORY,
		.len = sizeof(attr->log_align_req),
	};
	memcpy(&cmd.attrs[2].data, &attr->log_align_req,
	       sizeof(attr->log_align_req));
	cmd.attrs[3] = (struct ib_uverbs_attr) {
		.attr_id = ROVE_ATTR_ALLOC_DM_RESP,
		.flags = UVERBS_ATTR_F_MANDATORY,
		.len = sizeof(*resp),
		.data = (uintptr_t)resp,
	};
	if (ioctl(context->cmd_fd, RDMA_VERBS_IOCTL, &cmd.hdr))
		return errno;
	*handle = cmd.attrs[0].data;
	return 0;
}

struct ibv_dm *rove_alloc_dm(struct ibv_context *context,
			     struct ibv_alloc_dm_attr *attr)
{
	struct rove_alloc_dm_resp resp = {};
	struct rove_dm *dm;
	int ret;

	if (attr->comp_mask) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	dm = calloc(1, sizeof(*dm));
	if (!dm)
		return NULL;
	dm->vdm.dm.context = context;
	dm->vdm.dm.memcpy_to_dm = copy_to_dm;
	dm->vdm.dm.memcpy_from_dm = copy_from_dm;
	dm->length = attr->length;

	ret = alloc(context, attr, &dm->vdm.handle, &resp);
	if (ret)
		goto err_free;
	/* ibv_import_dm() of another process finds it here */
	dm->vdm.dm.handle = dm->vdm.handle;
	dm->map_size = resp.mmap_size;
	dm->map = mmap(NULL, dm->map_size, PROT_READ | PROT_WRITE, MAP_SHARED,
		       context->cmd_fd, (off_t)resp.mmap_offset);
	if (dm->map != MAP_FAILED)
		return &dm->vdm.dm;
	ret = errno;
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
