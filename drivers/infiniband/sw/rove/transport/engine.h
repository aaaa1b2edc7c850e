/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * engine.h - what requester.c, responder.c, ud.c and tqp.c call of each other
 */
#ifndef ROVE_ENGINE_H
#define ROVE_ENGINE_H

#include <linux/minmax.h>
#include "tqp.h"

/* Packets of one burst at most. */
#define ROVE_BURST_PKTS		64

/*
 * Bytes sent before received packets get their turn again, so that the peer can
 * begin to work meanwhile: two super-packets' worth.  A packet counts as some more
 * for its headers.
 */
#define ROVE_RUN_BUDGET		(120 * 1024)
#define ROVE_PACKET_COST	512

/*
 * PSNs that one READ request may claim.  A longer READ is asked for in pieces:
 * ROVE_MAX_RD_ATOMIC of them at once must fit the PSN comparison's 2^23.
 */
#define ROVE_READ_CHUNK		16384U

/* Packets of the smallest piece in which a READ is asked for again: a power of two. */
#define ROVE_READ_PIECE		64U

/*
 * Packets that an acknowledgment is worth while more follow: those of so many messages, but
 * not fewer than so many packets.
 */
#define ROVE_ACK_MESSAGES	16
#define ROVE_ACK_SPACING	64

/* Packets that may be unacknowledged at first, and however much is lost. */
#define ROVE_FIRST_CWND		128U
#define ROVE_MIN_CWND		4U
/* Packets more that may be, for each window that arrives without loss or queue. */
#define ROVE_CWND_STEP		8

/* An answer that takes so much longer than the fastest has waited in a queue. */
#define ROVE_QUEUE_NS		25000000ULL
/* How old the fastest is at least when it is forgotten; at most twice that. */
#define ROVE_RTT_MIN_NS		10000000000ULL
/*
 * Silence for two round trips, and for what a busy peer may take in addition: a tick;
 * and before one has been measured.
 */
#define ROVE_PROBE_NS		4000000ULL
#define ROVE_FIRST_PROBE_NS	100000000ULL

/* Not even an impatient ACK timeout is shorter: it would fire without loss. */
#define ROVE_MIN_RTO_NS		1000000ULL

/* How long a READ or atomic waits for memory for its response; how often that doubles. */
#define ROVE_PAGE_WAIT_NS	200000ULL
#define ROVE_PAGE_WAITS		8

/* Send queue entries and receive queue entries flushed in one go at most. */
#define ROVE_FLUSH_MAX		1024
/* No local work request begins behind so many that are not complete. */
#define ROVE_LOCALS_MAX		4096

/* Packets that a burst may have, given the budget. */
static inline u32 rove_burst_pkts(const struct rove_tqp *t)
{
	return min((u32)ROVE_BURST_PKTS, (u32)ROVE_RUN_BUDGET / t->mtu);
}

/* What a burst takes of it. */
static inline u32 rove_burst_cost(const struct rove_burst *b)
{
	return b->length + b->npkts * ROVE_PACKET_COST;
}

static inline u32 rove_npkts(const struct rove_tqp *t, u32 length)
{
	return length ? (length - 1) / t->mtu + 1 : 1;
}

/* Requester: send what may be sent. */
void rove_req_run(struct rove_tqp *t, u64 now);
/* Requester: a response packet has come. */
void rove_req_rx(struct rove_tqp *t, const struct rove_pkt *pkt, u64 now);
/* Requester: look at its deadlines. */
void rove_req_timer(struct rove_tqp *t, u64 now);
/* Requester: the timeout has changed. */
void rove_req_retime(struct rove_tqp *t, u64 now);
/* Requester: everything not complete completes with a flush error. */
void rove_req_flush(struct rove_tqp *t);
/* Requester: if draining is over, say so, once. */
void rove_req_check_drained(struct rove_tqp *t);

/* Responder: a request packet has come. */
void rove_resp_rx(struct rove_tqp *t, const struct rove_pkt *pkt, u64 now);
/* UC: a packet has come. */
void rove_uc_rx(struct rove_tqp *t, const struct rove_pkt *pkt);
/*
 * A receive queue entry for what has come, in @t->resp.rwqe.  1; 0: there is none;
 * -EINVAL: it, or the ring, is the program's nonsense.
 */
int rove_next_rwqe(struct rove_tqp *t);
/* Responder: send replies, NAK or ACK that are due. */
void rove_resp_run(struct rove_tqp *t);
/* Responder: all receive work requests complete with a flush error. */
void rove_resp_flush(struct rove_tqp *t);

/* UD: send what may be sent. */
void rove_ud_run(struct rove_tqp *t);
/* UD: a datagram has come. */
void rove_ud_rx(struct rove_tqp *t, const struct rove_pkt *pkt);

/* AETH credit code (table 47) to credits and back. */
u32 rove_credits_decode(u8 code);
u8 rove_credits_encode(u32 credits);

#endif /* ROVE_ENGINE_H */
