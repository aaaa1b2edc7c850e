/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * trace.h - tracepoints rove:*, for `trace-cmd record -e rove` and the like
 *
 *	rove_wr		a work request was taken from a send queue
 *	rove_complete	a work request has completed
 *	rove_tx		packets of a message were built
 *	rove_rx		a packet has reached its QP
 *	rove_retry	something had to be, or will be sent again
 *	rove_state	a QP has changed its state
 *
 * All are hit with the QP locked.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM rove

#if !defined(ROVE_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define ROVE_TRACE_H

#include <linux/tracepoint.h>
#include <rdma/ib_verbs.h>
#include "dev.h"
#include "qp.h"
#include "transport/packet.h"

#define ROVE_TRACE_QP							\
	__array(char, dev, IB_DEVICE_NAME_MAX)				\
	__field(u32, qpn)

#define ROVE_TRACE_QP_ASSIGN(qp)					\
	do {								\
		/* dev_name() is freed when the device is renamed. */	\
		strscpy(__entry->dev, (qp)->ibqp.device->name,		\
			IB_DEVICE_NAME_MAX);				\
		__entry->qpn = (qp)->t.qpn;				\
	} while (0)

#define rove_show_wr(opcode)						\
	__print_symbolic(opcode,					\
		{ ROVE_WR_RDMA_WRITE,		"WRITE" },		\
		{ ROVE_WR_RDMA_WRITE_WITH_IMM,	"WRITE_IMM" },		\
		{ ROVE_WR_SEND,			"SEND" },		\
		{ ROVE_WR_SEND_WITH_IMM,	"SEND_IMM" },		\
		{ ROVE_WR_RDMA_READ,		"READ" },		\
		{ ROVE_WR_ATOMIC_CMP_AND_SWP,	"CMP_SWP" },		\
		{ ROVE_WR_ATOMIC_FETCH_AND_ADD,	"FETCH_ADD" },		\
		{ ROVE_WR_LOCAL_INV,		"LOCAL_INV" },		\
		{ ROVE_WR_BIND_MW,		"BIND_MW" },		\
		{ ROVE_WR_SEND_WITH_INV,	"SEND_INV" },		\
		{ ROVE_WR_ATOMIC_WRITE,		"ATOMIC_WRITE" },	\
		{ ROVE_WR_REG_MR,		"REG_MR" })

#define rove_show_burst(kind)						\
	__print_symbolic(kind,						\
		{ ROVE_BURST_SEND,		"SEND" },		\
		{ ROVE_BURST_WRITE,		"WRITE" },		\
		{ ROVE_BURST_READ_REQUEST,	"READ_REQUEST" },	\
		{ ROVE_BURST_ATOMIC,		"ATOMIC" },		\
		{ ROVE_BURST_READ_RESPONSE,	"READ_RESPONSE" },	\
		{ ROVE_BURST_ATOMIC_ACK,	"ATOMIC_ACK" },		\
		{ ROVE_BURST_ACK,		"ACK" },		\
		{ ROVE_BURST_DATAGRAM,		"DATAGRAM" },		\
		{ ROVE_BURST_ATOMIC_WRITE,	"ATOMIC_WRITE" },	\
		{ ROVE_BURST_ATOMIC_WRITE_ACK,	"ATOMIC_WRITE_ACK" })

#define rove_show_retry(counter)					\
	__print_symbolic(counter,					\
		{ ROVE_CNT_TIMEOUT,		"timeout" },		\
		{ ROVE_CNT_SEQ_NAK_RX,		"sequence NAK" },	\
		{ ROVE_CNT_IMPLIED_NAK,		"implied NAK" },	\
		{ ROVE_CNT_RNR_NAK_RX,		"RNR NAK" },		\
		{ ROVE_CNT_RETRANS,		"sent again" },		\
		{ ROVE_CNT_PROBE,		"probe" },		\
		{ ROVE_CNT_RETRY_EXC,		"retries exceeded" },	\
		{ ROVE_CNT_RNR_EXC,		"RNR retries exceeded" })

#define rove_show_state(state)						\
	__print_symbolic(state,						\
		{ ROVE_TQP_RESET,		"RESET" },		\
		{ ROVE_TQP_INIT,		"INIT" },		\
		{ ROVE_TQP_RTR,			"RTR" },		\
		{ ROVE_TQP_RTS,			"RTS" },		\
		{ ROVE_TQP_SQD,			"SQD" },		\
		{ ROVE_TQP_SQE,			"SQE" },		\
		{ ROVE_TQP_ERR,			"ERR" })

TRACE_EVENT(rove_wr,
	TP_PROTO(const struct rove_qp *qp, const struct rove_send_wqe *wqe),
	TP_ARGS(qp, wqe),
	TP_STRUCT__entry(
		ROVE_TRACE_QP
		__field(u64, wr_id)
		__field(u8, opcode)
		__field(u8, flags)
		__field(u16, num_sge)
		__field(u32, inline_len)
	),
	TP_fast_assign(
		ROVE_TRACE_QP_ASSIGN(qp);
		__entry->wr_id = wqe->wr_id;
		__entry->opcode = wqe->opcode;
		__entry->flags = wqe->flags;
		__entry->num_sge = wqe->num_sge;
		__entry->inline_len = wqe->inline_len;
	),
	TP_printk("%s qp %#x wr_id %#llx %s flags %#x sges %u inline %u",
		  __entry->dev, __entry->qpn, __entry->wr_id,
		  rove_show_wr(__entry->opcode), __entry->flags,
		  __entry->num_sge, __entry->inline_len)
);

TRACE_EVENT(rove_complete,
	TP_PROTO(const struct rove_qp *qp, const struct rove_cqe *cqe, bool recv),
	TP_ARGS(qp, cqe, recv),
	TP_STRUCT__entry(
		ROVE_TRACE_QP
		__field(u64, wr_id)
		__field(u32, status)
		__field(u32, byte_len)
		__field(bool, recv)
	),
	TP_fast_assign(
		ROVE_TRACE_QP_ASSIGN(qp);
		__entry->wr_id = cqe->wr_id;
		__entry->status = cqe->status;
		__entry->byte_len = cqe->byte_len;
		__entry->recv = recv;
	),
	TP_printk("%s qp %#x wr_id %#llx %s status %u length %u",
		  __entry->dev, __entry->qpn, __entry->wr_id,
		  __entry->recv ? "receive" : "send", __entry->status,
		  __entry->byte_len)
);

TRACE_EVENT(rove_tx,
	TP_PROTO(const struct rove_qp *qp, const struct rove_burst *b, int ret),
	TP_ARGS(qp, b, ret),
	TP_STRUCT__entry(
		ROVE_TRACE_QP
		__field(u32, dest_qpn)
		__field(u8, kind)
		__field(u32, psn)
		__field(u32, npkts)
		__field(u32, length)
		__field(int, ret)
	),
	TP_fast_assign(
		ROVE_TRACE_QP_ASSIGN(qp);
		__entry->dest_qpn = qp->t.dest_qpn;
		__entry->kind = b->kind;
		__entry->psn = b->psn;
		__entry->npkts = b->npkts;
		__entry->length = b->length;
		__entry->ret = ret;
	),
	TP_printk("%s qp %#x to %#x %s psn %u packets %u length %u result %d",
		  __entry->dev, __entry->qpn, __entry->dest_qpn,
		  rove_show_burst(__entry->kind), __entry->psn,
		  __entry->npkts, __entry->length, __entry->ret)
);

TRACE_EVENT(rove_rx,
	TP_PROTO(const struct rove_qp *qp, const struct rove_pkt *pkt),
	TP_ARGS(qp, pkt),
	TP_STRUCT__entry(
		ROVE_TRACE_QP
		__field(u8, opcode)
		__field(u32, psn)
		__field(u32, length)
	),
	TP_fast_assign(
		ROVE_TRACE_QP_ASSIGN(qp);
		__entry->opcode = pkt->opcode;
		__entry->psn = pkt->psn;
		__entry->length = pkt->payload_len;
	),
	TP_printk("%s qp %#x opcode %#x psn %u length %u",
		  __entry->dev, __entry->qpn, __entry->opcode, __entry->psn,
		  __entry->length)
);

TRACE_EVENT(rove_retry,
	TP_PROTO(const struct rove_qp *qp, enum rove_counter why),
	TP_ARGS(qp, why),
	TP_STRUCT__entry(
		ROVE_TRACE_QP
		__field(u32, why)
		__field(u32, psn_una)
		__field(u8, retried)
		__field(u8, rnr_retried)
	),
	TP_fast_assign(
		ROVE_TRACE_QP_ASSIGN(qp);
		__entry->why = why;
		__entry->psn_una = qp->t.req.psn_una;
		__entry->retried = qp->t.req.retried;
		__entry->rnr_retried = qp->t.req.rnr_retried;
	),
	TP_printk("%s qp %#x %s, from psn %u, without progress: %u retries, %u after RNR",
		  __entry->dev, __entry->qpn, rove_show_retry(__entry->why),
		  __entry->psn_una, __entry->retried, __entry->rnr_retried)
);

TRACE_EVENT(rove_state,
	TP_PROTO(const struct rove_qp *qp),
	TP_ARGS(qp),
	TP_STRUCT__entry(
		ROVE_TRACE_QP
		__field(u8, state)
	),
	TP_fast_assign(
		ROVE_TRACE_QP_ASSIGN(qp);
		__entry->state = qp->t.state;
	),
	TP_printk("%s qp %#x %s", __entry->dev, __entry->qpn,
		  rove_show_state(__entry->state))
);

#endif /* ROVE_TRACE_H */

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
