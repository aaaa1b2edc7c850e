// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Address handles.
 */
#include <errno.h>
#include <stdlib.h>

#include "rove.h"

ROVE_RESP(rove_ah_resp, ib_uverbs_create_ah_resp, rove_create_ah_resp);

struct ibv_ah *rove_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	union rove_ah_resp resp = {};
	struct rove_ah *ah;
	int ret;

	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return NULL;

	ret = ibv_cmd_create_ah(pd, &ah->ah, attr, &resp.core, sizeof(resp));
	if (ret) {
		free(ah);
		errno = ret;
		return NULL;
	}
	ah->number = resp.own.ah;
	return &ah->ah;
}

int rove_destroy_ah(struct ibv_ah *ibah)
{
	int ret = ibv_cmd_destroy_ah(ibah);

	if (ret)
		return ret;
	free(to_rove_ah(ibah));
	return 0;
}
