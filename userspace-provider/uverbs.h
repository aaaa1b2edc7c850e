/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Calls of the uverbs ioctl interface, which is public, for what libibverbs' own
 * functions cannot do for us: attributes of our own, and functions that changed
 * under one number of the private interface (ibv_cmd_reg_dmabuf_mr() between v44
 * and v56).
 */
#ifndef ROVE_UVERBS_H
#define ROVE_UVERBS_H

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

#include <rdma/rdma_user_ioctl.h>

#include "rove.h"

#define ROVE_CALL_ATTRS	10

/* One call: attributes are added, then it is made. */
struct rove_call {
	struct ib_uverbs_ioctl_hdr hdr;
	struct ib_uverbs_attr attrs[ROVE_CALL_ATTRS];
};

static inline void rove_call_init(struct rove_call *call, uint16_t object,
				  uint16_t method)
{
	memset(call, 0, sizeof(*call));
	call->hdr.object_id = object;
	call->hdr.method_id = method;
	call->hdr.driver_id = ROVE_DRIVER_ID;
}

static inline struct ib_uverbs_attr *rove_call_attr(struct rove_call *call,
						    uint16_t id)
{
	struct ib_uverbs_attr *attr = &call->attrs[call->hdr.num_attrs++];

	assert(call->hdr.num_attrs <= ROVE_CALL_ATTRS);
	attr->attr_id = id;
	attr->flags = UVERBS_ATTR_F_MANDATORY;
	return attr;
}

/* An object, or room for the handle of a new one; the answer is in .data. */
static inline struct ib_uverbs_attr *rove_call_object(struct rove_call *call,
						      uint16_t id, uint32_t handle)
{
	struct ib_uverbs_attr *attr = rove_call_attr(call, id);

	attr->data = handle;
	return attr;
}

/* A value of at most 8 bytes. */
static inline void rove_call_in(struct rove_call *call, uint16_t id,
				const void *value, uint16_t len)
{
	struct ib_uverbs_attr *attr = rove_call_attr(call, id);

	attr->len = len;
	memcpy(&attr->data, value, len);
}

static inline void rove_call_out(struct rove_call *call, uint16_t id, void *to,
				 uint16_t len)
{
	struct ib_uverbs_attr *attr = rove_call_attr(call, id);

	attr->len = len;
	attr->data = (uintptr_t)to;
}

/* 0 or an errno. */
static inline int rove_call_make(struct ibv_context *context,
				 struct rove_call *call)
{
	call->hdr.length = sizeof(call->hdr) +
			   call->hdr.num_attrs * sizeof(call->attrs[0]);
	return ioctl(context->cmd_fd, RDMA_VERBS_IOCTL, &call->hdr) ? errno : 0;
}

#endif /* ROVE_UVERBS_H */
