// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory regions: programs' memory, dma-buf, nothing at all.  The kernel does it all.
 */
#include <errno.h>
#include <stdlib.h>

#include "uverbs.h"

struct ibv_mr *rove_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
			   uint64_t iova, int access)
{
	struct ib_uverbs_reg_mr_resp resp = {};
	struct ibv_reg_mr cmd = {};
	struct verbs_mr *vmr;
	int ret;

	vmr = calloc(1, sizeof(*vmr));
	if (!vmr)
		return NULL;

	ret = ibv_cmd_reg_mr(pd, addr, length, iova, access, vmr,
			     &cmd, sizeof(cmd), &resp, sizeof(resp));
	if (ret) {
		free(vmr);
		errno = ret;
		return NULL;
	}
	return &vmr->ibv_mr;
}

int rove_rereg_mr(struct verbs_mr *vmr, int flags, struct ibv_pd *pd,
		  void *addr, size_t length, int access)
{
	struct ib_uverbs_rereg_mr_resp resp = {};
	struct ibv_rereg_mr cmd = {};

	return ibv_cmd_rereg_mr(vmr, flags, addr, length, (uintptr_t)addr,
				access, pd, &cmd, sizeof(cmd),
				&resp, sizeof(resp));
}

int rove_dereg_mr(struct verbs_mr *vmr)
{
	int ret = ibv_cmd_dereg_mr(vmr);

	if (ret)
		return ret;
	free(vmr);
	return 0;
}

struct ibv_mr *rove_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset,
				  size_t length, uint64_t iova, int fd, int access)
{
	uint64_t len = length;
	uint32_t flags = access;
	struct ib_uverbs_attr *mr;
	struct verbs_mr *vmr;
	struct rove_call call;
	int ret;

	vmr = calloc(1, sizeof(*vmr));
	if (!vmr)
		return NULL;
	rove_call_init(&call, UVERBS_OBJECT_MR, UVERBS_METHOD_REG_DMABUF_MR);
	mr = rove_call_object(&call, UVERBS_ATTR_REG_DMABUF_MR_HANDLE, 0);
	rove_call_out(&call, UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY,
		      &vmr->ibv_mr.lkey, sizeof(vmr->ibv_mr.lkey));
	rove_call_out(&call, UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY,
		      &vmr->ibv_mr.rkey, sizeof(vmr->ibv_mr.rkey));
	rove_call_object(&call, UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE, pd->handle);
	rove_call_in(&call, UVERBS_ATTR_REG_DMABUF_MR_OFFSET, &offset, sizeof(offset));
	rove_call_in(&call, UVERBS_ATTR_REG_DMABUF_MR_LENGTH, &len, sizeof(len));
	rove_call_in(&call, UVERBS_ATTR_REG_DMABUF_MR_IOVA, &iova, sizeof(iova));
	rove_call_in(&call, UVERBS_ATTR_REG_DMABUF_MR_FD, &fd, sizeof(fd));
	rove_call_in(&call, UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS, &flags,
		     sizeof(flags));
	ret = rove_call_make(pd->context, &call);
	if (ret) {
		free(vmr);
		errno = ret;
		return NULL;
	}
	vmr->ibv_mr.handle = mr->data;
	vmr->ibv_mr.context = pd->context;
	vmr->ibv_mr.pd = pd;
	vmr->mr_type = IBV_MR_TYPE_DMABUF_MR;
	return &vmr->ibv_mr;
}

/* A region that discards what is written to it, and of which zeros are read. */
struct ibv_mr *rove_alloc_null_mr(struct ibv_pd *pd)
{
	struct ib_uverbs_reg_mr_resp resp = {};
	struct {
		struct ibv_reg_mr core;
		struct rove_reg_mr_req own;
	} cmd = { .own.flags = ROVE_MR_NULL };
	struct verbs_mr *vmr;
	int ret;

	vmr = calloc(1, sizeof(*vmr));
	if (!vmr)
		return NULL;
	ret = ibv_cmd_reg_mr(pd, NULL, 0, 0, IBV_ACCESS_LOCAL_WRITE, vmr,
			     &cmd.core, sizeof(cmd), &resp, sizeof(resp));
	if (ret) {
		free(vmr);
		errno = ret;
		return NULL;
	}
	/* No memory that a fork() could copy. */
	vmr->mr_type = IBV_MR_TYPE_NULL_MR;
	vmr->ibv_mr.context = pd->context;
	vmr->ibv_mr.pd = pd;
	vmr->ibv_mr.addr = NULL;
	vmr->ibv_mr.length = SIZE_MAX;
	return &vmr->ibv_mr;
}

struct ibv_mr *rove_import_mr(struct ibv_pd *pd, uint32_t handle)
{
	struct verbs_mr *vmr = calloc(1, sizeof(*vmr));
	int ret;

	if (!vmr)
		return NULL;
	ret = ibv_cmd_query_mr(pd, vmr, handle);
	if (!ret)
		return &vmr->ibv_mr;
	free(vmr);
	errno = ret;
	return NULL;
}

void rove_unimport_mr(struct ibv_mr *mr)
{
	free(container_of(mr, struct verbs_mr, ibv_mr));
}
