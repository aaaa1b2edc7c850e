// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * refuse.c - to say why a transition of a QP is refused; see refuse.h
 */
#include <linux/bits.h>
#include "qp.h"
#include "refuse.h"

const char *rove_state_name(enum ib_qp_state state)
{
	static const char * const names[] = {
		[IB_QPS_RESET] = "RESET",
		[IB_QPS_INIT] = "INIT",
		[IB_QPS_RTR] = "RTR",
		[IB_QPS_RTS] = "RTS",
		[IB_QPS_SQD] = "SQD",
		[IB_QPS_SQE] = "SQE",
		[IB_QPS_ERR] = "ERR",
	};

	return state < ARRAY_SIZE(names) ? names[state] : "none that there is";
}

/* The bits of @mask by name, as in ibv_modify_qp(3). */
static const char *attr_names(int mask, char *buf, size_t size)
{
	static const char * const names[] = {
		"STATE", "CUR_STATE", "EN_SQD_ASYNC_NOTIFY", "ACCESS_FLAGS",
		"PKEY_INDEX", "PORT", "QKEY", "AV", "PATH_MTU", "TIMEOUT",
		"RETRY_CNT", "RNR_RETRY", "RQ_PSN", "MAX_QP_RD_ATOMIC",
		"ALT_PATH", "MIN_RNR_TIMER", "SQ_PSN", "MAX_DEST_RD_ATOMIC",
		"PATH_MIG_STATE", "CAP", "DEST_QPN",
	};
	size_t len = 0;
	int i;

	strscpy(buf, "none", size);
	for (i = 0; i < ARRAY_SIZE(names); i++)
		if (mask & BIT(i))
			len += scnprintf(buf + len, size - len, "%s%s",
					 len ? " " : "", names[i]);
	return buf;
}

/* What a transition cannot do without (table 91); the other ones need nothing. */
static int needed(enum ib_qp_type type, enum ib_qp_state from, enum ib_qp_state to)
{
	bool datagrams = type == IB_QPT_UD || type == IB_QPT_GSI;
	bool requester = type == IB_QPT_RC || type == IB_QPT_XRC_INI;
	bool responder = type == IB_QPT_RC || type == IB_QPT_XRC_TGT;

	if (from == IB_QPS_RESET && to == IB_QPS_INIT)
		return IB_QP_PKEY_INDEX | (type == IB_QPT_GSI ? 0 : IB_QP_PORT) |
		       (datagrams ? IB_QP_QKEY : IB_QP_ACCESS_FLAGS);
	if (from == IB_QPS_INIT && to == IB_QPS_RTR && !datagrams)
		return IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN |
		       (responder ? IB_QP_MAX_DEST_RD_ATOMIC |
				    IB_QP_MIN_RNR_TIMER : 0);
	if (from == IB_QPS_RTR && to == IB_QPS_RTS)
		return IB_QP_SQ_PSN |
		       (requester || responder ? IB_QP_TIMEOUT : 0) |
		       (requester ? IB_QP_RETRY_CNT | IB_QP_RNR_RETRY |
				    IB_QP_MAX_QP_RD_ATOMIC : 0);
	return 0;
}

void rove_refuse_transition(struct rove_qp *qp, enum ib_qp_state from,
			    enum ib_qp_state to, int mask)
{
	struct ib_device *ibdev = qp->ibqp.device;
	enum ib_qp_type type = qp->ibqp.qp_type;
	int need = needed(type, from, to), extra = 0, i;
	char lacking[200], wrong[200];

	if (!ib_modify_qp_is_ok(from, to, type, need)) {
		rove_refuse(ibdev, "modify_qp: there is no way from %s to %s",
			    rove_state_name(from), rove_state_name(to));
		return;
	}
	for (i = 1; i <= IB_QP_DEST_QPN; i <<= 1)
		if (mask & i && !ib_modify_qp_is_ok(from, to, type, need | i))
			extra |= i;
	rove_refuse(ibdev, "modify_qp: %s to %s: missing: %s; not allowed here: %s",
		    rove_state_name(from), rove_state_name(to),
		    attr_names(need & ~mask, lacking, sizeof(lacking)),
		    attr_names(extra, wrong, sizeof(wrong)));
}
