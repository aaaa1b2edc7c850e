// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Protection domains, and the thread and parent domains by which a program
 * says that its queues need no locks.
 */
#include <errno.h>
#include <stdlib.h>

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

int rove_dealloc_pd(struct ibv_pd *ibpd)
{
	struct rove_pd *pd = to_rove_pd(ibpd);
	int ret;

	if (__atomic_load_n(&pd->users, __ATOMIC_ACQUIRE))
		return EBUSY;

	if (pd->real) {
		/* A parent domain is ours alone: the kernel knows none. */
		__atomic_fetch_sub(&pd->real->users, 1, __ATOMIC_RELEASE);
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
	return &pd->pd;
}

void rove_unimport_pd(struct ibv_pd *ibpd)
{
	free(to_rove_pd(ibpd));
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

	if (!attr->pd) {
		errno = EINVAL;
		return NULL;
	}
	/* Queues are the kernel's memory: no use for the program's allocator. */
	if (attr->comp_mask) {
		errno = EOPNOTSUPP;
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
	return &pd->pd;
}
