/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * counters.h - what is counted
 *
 * A port's counters, as `rdma statistic` shows them.  The names are those of
 * other RoCE drivers where they count the same thing.
 */
#ifndef ROVE_COUNTERS_H
#define ROVE_COUNTERS_H

/* X(symbol, name) */
#define ROVE_COUNTERS(X)					\
	X(TX_PKTS,		"sent_pkts")			\
	X(RX_PKTS,		"rcvd_pkts")			\
	X(TX_SKBS,		"sent_super_packets")		\
	X(RX_SKBS,		"rcvd_super_packets")		\
	X(TX_BYTES,		"sent_bytes")			\
	X(RX_BYTES,		"rcvd_bytes")			\
	X(RX_RUNT,		"drop_malformed")		\
	X(RX_ICRC,		"rx_icrc_encapsulated")		\
	X(RX_NO_QP,		"drop_unknown_qp")		\
	X(RX_BAD_SOURCE,	"drop_wrong_source")		\
	X(RX_BAD_PKEY,		"drop_wrong_pkey")		\
	X(RX_BAD_STATE,		"drop_qp_state")		\
	X(RX_BAD_SERVICE,	"drop_wrong_service")		\
	X(RX_BACKLOG,		"drop_backlog_full")		\
	X(RX_MCAST_EXCESS,	"drop_multicast_excess")	\
	X(RX_UNEXPECTED,	"drop_unexpected_response")	\
	X(DUP_REQUEST,		"duplicate_request")		\
	X(UC_RX_DROPPED,	"uc_rx_dropped_messages")	\
	X(OUT_OF_SEQ,		"out_of_sequence")		\
	X(SEQ_NAK_TX,		"sent_seq_nak")			\
	X(SEQ_NAK_RX,		"packet_seq_err")		\
	X(RNR_NAK_TX,		"sent_rnr_nak")			\
	X(RNR_NAK_RX,		"rcvd_rnr_err")			\
	X(NAK_TX,		"sent_err_nak")			\
	X(NAK_RX,		"rcvd_err_nak")			\
	X(IMPLIED_NAK,		"implied_nak_seq_err")		\
	X(ACK_TX,		"ack_sent")			\
	X(TIMEOUT,		"local_ack_timeout_err")	\
	X(RETRY_EXC,		"retry_exceeded_err")		\
	X(RNR_EXC,		"retry_rnr_exceeded_err")	\
	X(RETRANS,		"retransmitted_bursts")		\
	X(PROBE,		"loss_probes")			\
	X(TX_BACKPRESSURE,	"send_backpressure")		\
	X(TX_ERR,		"send_err")			\
	X(SQ_POLL,		"sq_ring_polls")		\
	X(SQ_WAKEUP,		"sq_wakeup_calls")		\
	X(BAD_RING,		"bad_ring_index")		\
	X(CQ_OVERRUN,		"cq_overrun")			\
	X(RDMA_WRITE_RX,	"rx_write_requests")		\
	X(RDMA_READ_RX,		"rx_read_requests")		\
	X(RDMA_ATOMIC_RX,	"rx_atomic_requests")		\
	X(SEND_RX,		"rx_send_requests")		\
	X(UD_TX,		"sent_datagrams")		\
	X(UD_RX,		"rcvd_datagrams")		\
	X(UD_TX_TOO_LONG,	"unsent_datagram_too_long")	\
	X(UD_RX_TOO_LONG,	"drop_datagram_too_long")	\
	X(UD_RX_NO_WQE,		"drop_datagram_no_recv")	\
	X(RX_BAD_QKEY,		"drop_wrong_qkey")		\
	X(PAGE_FAULTS,		"page_faults")			\
	X(PAGE_PREFETCHES,	"page_prefetches")		\
	X(PAGES_GONE,		"page_invalidations")		\
	X(PAGE_NAK_TX,		"sent_page_nak")		\
	X(PAGE_WAIT,		"page_waits")

enum rove_counter {
#define X(sym, name) ROVE_CNT_##sym,
	ROVE_COUNTERS(X)
#undef X
	ROVE_CNT_MAX,
};

#endif /* ROVE_COUNTERS_H */
