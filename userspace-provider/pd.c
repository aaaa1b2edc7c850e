// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Protection domains, and the thread and parent domains by which a program
 * says that its queues need no locks, and where the provider's part of them is to lie.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rove.h"

struct ibv_pd *rove_alloc_pd(struct ibv_context *context)
{
	struct ib_uverbs_alloc_pd_resp resp = {};
	struct ibv_alloc_pd cmd = {};
	struct rove_pd *pd;
	int ret;

	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;

	ret = ibv_cmd_alloc_pd(context, &pd->pd, &cmd, sizeof(cmd),
			       &resp, sizeof(resp));
	if (ret) {
		free(pd);
		errno = ret;
		return NULL;
	}
	return &pd->pd;
}

/* Who imported it may forget it before those around it. */
static void put_pd(struct rove_pd *pd)
{
	if (!__atomic_sub_fetch(&pd->users, 1, __ATOMIC_ACQ_REL) && pd->imported)
		free(pd);
}

int rove_dealloc_pd(struct ibv_pd *ibpd)
{
	struct rove_pd *pd = to_rove_pd(ibpd);
	int ret;

	if (__atomic_load_n(&pd->users, __ATOMIC_ACQUIRE) > pd->imported)
		return EBUSY;

	if (pd->real) {
		/* A parent domain is ours alone: the kernel knows none. */
		put_pd(pd->real);
		if (pd->td)
			__atomic_fetch_sub(&pd->td->users, 1, __ATOMIC_RELEASE);
	} else {
		ret = ibv_cmd_dealloc_pd(ibpd);
		if (ret)
			return ret;
	}
	free(pd);
	return 0;
}

/* The domain of another process that has the context open, too. */
struct ibv_pd *rove_import_pd(struct ibv_context *context, uint32_t handle)
{
	struct rove_pd *pd = calloc(1, sizeof(*pd));

	if (!pd)
		return NULL;
	pd->pd.context = context;
	pd->pd.handle = handle;
	pd->imported = true;
	pd->users = 1;
	return &pd->pd;
}

void rove_unimport_pd(struct ibv_pd *ibpd)
{
	put_pd(to_rove_pd(ibpd));
}

struct ibv_td *rove_alloc_td(struct ibv_context *context,
			     struct ibv_td_init_attr *attr)
{
	struct rove_td *td;

	if (attr->comp_mask) {
		errno = EOPNOTSUPP;
		return NULL;
	}

	td = calloc(1, sizeof(*td));
	if (!td)
		return NULL;
	td->td.context = context;
	return &td->td;
}

int rove_dealloc_td(struct ibv_td *ibtd)
{
	struct rove_td *td = container_of(ibtd, struct rove_td, td);

	if (__atomic_load_n(&td->users, __ATOMIC_ACQUIRE))
		return EBUSY;
	free(td);
	return 0;
}

struct ibv_pd *rove_alloc_parent_domain(struct ibv_context *context,
				struct ibv_parent_domain_init_attr *attr)
{
	struct rove_pd *pd, *real;
	bool allocators = attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;

	if (attr->comp_mask & ~(uint32_t)(IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
					  IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (!attr->pd || (allocators && (!attr->alloc || !attr->free))) {
		errno = EINVAL;
		return NULL;
	}

	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;

	real = to_rove_pd(attr->pd);
	if (real->real)
		real = real->real;
	pd->pd.context = context;
	pd->pd.handle = real->pd.handle;
	pd->real = real;
	__atomic_fetch_add(&real->users, 1, __ATOMIC_RELAXED);
	if (attr->td) {
		pd->td = container_of(attr->td, struct rove_td, td);
		__atomic_fetch_add(&pd->td->users, 1, __ATOMIC_RELAXED);
	}
	if (allocators) {
		pd->alloc = attr->alloc;
		pd->free = attr->free;
		if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)
			pd->alloc_context = attr->pd_context;
	}
	return &pd->pd;
}

/**
 * rove_object_alloc - zeroed memory for the provider's part of a queue
 * @ibpd: the domain that it is created in, or NULL
 * @size: bytes
 * @type: what it is
 * @owner: set to the domain whose allocator gave the memory, or NULL
 *
 * The ring is the kernel's memory, wherever this lies.  NULL with errno when there is none.
 */
void *rove_object_alloc(struct ibv_pd *ibpd, size_t size, enum rove_resource type,
			struct rove_pd **owner)
{
	struct rove_pd *pd = ibpd ? to_rove_pd(ibpd) : NULL;
	void *object;

	*owner = NULL;
	if (!pd || !pd->alloc)
		return calloc(1, size);
	__atomic_fetch_add(&pd->users, 1, __ATOMIC_RELAXED);
	object = pd->alloc(ibpd, pd->alloc_context, size, ROVE_OBJECT_ALIGN,
			   ROVE_RESOURCE_TYPE(type));
	if (object && object != IBV_ALLOCATOR_USE_DEFAULT) {
		*owner = pd;
		return memset(object, 0, size);
	}
	put_pd(pd);
	if (object)
		return calloc(1, size);
	errno = ENOMEM;
	return NULL;
}

/* Gives it back to where it came from. */
void rove_object_free(struct rove_pd *owner, void *object, enum rove_resource type)
{
	if (!owner) {
		free(object);
		return;
	}
	owner->free(&owner->pd, owner->alloc_context, object, ROVE_RESOURCE_TYPE(type));
	put_pd(owner);
}
