// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory windows.  The kernel allocates them; to bind one is a work request like
 * others.  A key's upper 24 bits are the window's, the lower 8 the program's.
 */
#include <errno.h>
#include <stdlib.h>

#include "wqe.h"

struct ibv_mw *rove_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct ib_uverbs_alloc_mw_resp resp = {};
	struct ibv_alloc_mw cmd = {};
	struct ibv_mw *mw;
	int ret;

	mw = calloc(1, sizeof(*mw));
	if (!mw)
		return NULL;
	ret = ibv_cmd_alloc_mw(pd, type, mw, &cmd, sizeof(cmd), &resp,
			       sizeof(resp));
	if (ret) {
		free(mw);
		errno = ret;
		return NULL;
	}
	return mw;
}

int rove_dealloc_mw(struct ibv_mw *mw)
{
	int ret = ibv_cmd_dealloc_mw(mw);

	if (ret)
		return ret;
	free(mw);
	return 0;
}

/* Of type 1; the window's key changes with each binding. */
int rove_bind_mw(struct ibv_qp *ibqp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct rove_qp *qp = to_rove_qp(ibqp);
	uint32_t rkey = ibv_inc_rkey(mw->rkey);
	struct rove_wq *sq = &qp->sq;
	struct rove_send_wqe *wqe;
	bool wake = false;
	int ret;

	if (qp->datagrams || bind->send_flags & ~(ROVE_WR_FENCE | ROVE_WR_SIGNALED))
		return EINVAL;
	rove_lock(&sq->lock);
	if (!rove_may_send(qp)) {
		ret = EINVAL;
	} else if (rove_wq_full(sq)) {
		ret = rove_no_room(sq);
	} else {
		wqe = rove_ring_slot(&sq->ring, sq->prod);
		rove_wqe_begin(wqe, bind->wr_id, ROVE_WR_BIND_MW,
			       bind->send_flags | qp->always);
		ret = rove_wqe_set_bind(wqe, mw, rkey, &bind->bind_info);
	}
	if (!ret)
		wake = rove_ring_publish(&sq->ring, ++sq->prod);
	rove_unlock(&sq->lock);
	if (ret)
		return ret;

	mw->rkey = rkey;
	return wake ? rove_wakeup(ibqp, IB_USER_VERBS_CMD_POST_SEND) : 0;
}
