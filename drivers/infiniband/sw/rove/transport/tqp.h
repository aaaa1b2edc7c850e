/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * tqp.h - a queue pair as the transport sees it
 *
 * struct rove_tqp holds the protocol state of one QP and nothing of the
 * machine it runs on.  Every function below is called with the environment's
 * lock of that QP held (in the kernel: rove_qp.lock, softirqs off), and calls
 * back into env.h with it held; none sleeps.  @now is in nanoseconds of a
 * monotonic clock.
 *
 *	requester.c	work requests to packets; acknowledgments to completions
 *	responder.c	requests to memory; acknowledgments, READ responses
 *	ud.c		datagrams, either way
 *	tqp.c		states, errors, flush, timer
 */
#ifndef ROVE_TQP_H
#define ROVE_TQP_H

#include <linux/types.h>
#include <rdma/rove-abi.h>
#include "packet.h"
#include "psn.h"

/* QP states; the order is that of enum ib_qp_state. */
enum rove_tqp_state {
	ROVE_TQP_RESET,
	ROVE_TQP_INIT,
	ROVE_TQP_RTR,
	ROVE_TQP_RTS,
	ROVE_TQP_SQD,
	ROVE_TQP_SQE,
	ROVE_TQP_ERR,
};

/* Unsolicited events, enum ib_event_type in the kernel. */
enum rove_tqp_event {
	ROVE_EVENT_QP_FATAL,
	ROVE_EVENT_QP_REQ_ERR,
	ROVE_EVENT_QP_ACCESS_ERR,
	ROVE_EVENT_COMM_EST,
	ROVE_EVENT_SQ_DRAINED,
	ROVE_EVENT_LAST_WQE,
	ROVE_EVENT_MAX,
};

/* Remote access rights a QP or a region grants, enum ib_access_flags. */
enum rove_access {
	ROVE_ACCESS_LOCAL_WRITE		= 1 << 0,
	ROVE_ACCESS_REMOTE_WRITE	= 1 << 1,
	ROVE_ACCESS_REMOTE_READ		= 1 << 2,
	ROVE_ACCESS_REMOTE_ATOMIC	= 1 << 3,
};

/* Work for kernel consumers only: not in rove-abi.h. */
#define ROVE_WR_REG_MR		32	/* IB_WR_REG_MR */
#define ROVE_WC_REG_MR		127	/* IB_WC_REG_MR, whose number changes */

#define ROVE_MAX_MSG		0x80000000U
#define ROVE_NO_DEADLINE	U64_MAX

#define ROVE_RNR_RETRY_INFINITE	7

/* Most resources that max_rd_atomic and max_dest_rd_atomic may ask for. */
#define ROVE_MAX_RD_ATOMIC	128

/**
 * struct rove_swqe - the kernel's private copy of a send work request
 * @first_psn: PSN of the first packet, once @started
 * @npkts: packets of the request, or of the response to a READ; 0: it is local
 * @length: payload bytes
 * @status: enum ib_wc_status; not 0: the request failed locally and completes
 *	in error when its turn comes
 * @started: it has PSNs; if local, it is done, and waits for those before it
 * @wqe: what the program posted, copied once; SGEs or inline bytes follow
 */
struct rove_swqe {
	u32 first_psn;
	u32 npkts;
	u32 length;
	u8 status;
	bool started;
	struct rove_send_wqe wqe;
};

/**
 * struct rove_requester - the sending half
 * @ring: private copies, @depth of @stride bytes; slot i is i & (depth - 1)
 * @depth: slots, a power of two
 * @stride: sizeof(struct rove_swqe) and room for the SGEs or inline bytes
 * @fetched: next slot to copy a work request into
 * @cur: slot that is being sent; @fetched when there is none
 * @done: oldest slot that is not complete
 * @psn_next: PSN of the next packet to send (goes back for a retry)
 * @psn_una: oldest PSN not acknowledged
 * @psn_top: one past the highest PSN ever sent
 * @psn_ackreq: @psn_next when AckReq was last set; spaces the requests
 * @ssn: of the last request started
 * @lsn: highest SSN that the peer's credits cover
 * @lsn_valid: the peer counts credits
 * @budget: what may still be sent in this run of the requester
 * @window: packets that may be unacknowledged at most
 * @cwnd: packets that may be now: grows with what is acknowledged, fast up to
 *	@ssthresh, slowly above; shrinks when packets are lost
 * @ssthresh: what the network has last taken without loss or a long queue
 * @grown: packets acknowledged since @cwnd last grew slowly
 * @step: packets that it grows by then
 * @rtt_psn: the round trip that is measured ends when all before it has arrived
 * @rtt_since: when it began, 0: none is measured
 * @rtt: the slowest of late, in nanoseconds
 * @rtt_min: the fastest, of the time before @rtt_anew and since
 * @rtt_next: the fastest since @rtt_anew
 * @rtt_anew: when it was begun to look for the fastest anew
 * @rtt_again: all that is measured was sent before, and the answer may be to that
 * @progress_at: when something was acknowledged last; 0: what was sent is sent again
 * @rd_outstanding: READs and atomics sent and not answered
 * @rd_full: there were as many as there may be, and not a quarter of these is answered since
 * @read_piece: size of the pieces in which a READ is asked for again, 0: none was yet
 * @retried: of retry_cnt, used up since there was progress
 * @rnr_retried: RNR NAKs since then, ROVE_RNR_RETRY_INFINITE at most
 * @rnr_probe: after an RNR NAK, or a wait for memory: one message alone, until there is
 *	progress
 * @page_waits: waits in a row for memory for a response
 * @went_back: a gap has already caused a retry; cleared by progress
 * @drained: SQ_DRAINED was reported
 * @probing: the oldest packet was sent again, or of a READ the oldest piece, which ends at
 *	@probe_psn, to find out what has been lost
 * @probe_put_off: it was to be sent, and this machine is late; cleared by progress and retry
 * @lost: some was: that has arrived, and what is behind it seems not to have
 * @probe_psn: see @probing
 * @probe_top: what had been sent by then was before this
 * @probe_wait: how long the peer may be silent before that
 * @rto_put_off: likewise, the timeout
 * @rto_deadline: when unacknowledged packets count as lost
 * @probe_deadline: when one is sent to find out whether they are
 * @alarm: the earlier of the two
 * @rnr_deadline: until when nothing is sent, after an RNR NAK or for want of memory
 */
struct rove_requester {
	void *ring;
	u32 depth;
	u32 stride;
	u32 fetched;
	u32 cur;
	u32 done;
	u32 psn_next;
	u32 psn_una;
	u32 psn_top;
	u32 psn_ackreq;
	u32 ssn;
	u32 lsn;
	bool lsn_valid;
	int budget;
	u32 window;
	u32 cwnd;
	u32 ssthresh;
	u32 grown;
	u32 step;
	u32 rtt_psn;
	u32 probe_psn;
	u32 probe_top;
	u64 rtt_since;
	u64 rtt;
	u64 rtt_min;
	u64 rtt_next;
	u64 rtt_anew;
	u64 probe_wait;
	u64 progress_at;
	u32 rd_outstanding;
	u32 read_piece;
	u8 retried;
	u8 rnr_retried;
	u8 page_waits;
	bool rtt_again;
	bool rd_full;
	bool rnr_probe;
	bool went_back;
	bool drained;
	bool probing;
	bool probe_put_off;
	bool rto_put_off;
	bool lost;
	u64 rto_deadline;
	u64 probe_deadline;
	u64 alarm;
	u64 rnr_deadline;
};

/**
 * struct rove_rwqe - the kernel's private copy of a receive work request
 * @wr_id: the program's
 * @num_sge: entries in use
 * @length: sum of their lengths
 * @sge: where the message goes
 */
struct rove_rwqe {
	u64 wr_id;
	u32 num_sge;
	u64 length;
	struct rove_sge *sge;
};

/**
 * struct rove_resource - responder resource: a READ or atomic executed
 * @kind: ROVE_BURST_READ_RESPONSE, ROVE_BURST_ATOMIC_ACK or ROVE_BURST_ATOMIC_WRITE_ACK
 * @psn: of the request
 * @npkts: packets of the response
 * @va: READ: source
 * @rkey: READ: its key
 * @length: READ: bytes
 * @msn: message sequence number after it
 * @srqn: XRC: the SRQ whose protection domain it is answered from
 * @atomic_orig: atomic: value before it, kept for duplicates
 */
struct rove_resource {
	enum rove_burst_kind kind;
	u32 psn;
	u32 npkts;
	u64 va;
	u32 rkey;
	u32 length;
	u32 msn;
	u32 srqn;
	u64 atomic_orig;
};

/**
 * struct rove_reply - a response that is being sent
 * @res: what is answered; @res.psn, @va and @length are those of the (possibly
 *	partial) request
 * @sent: packets of it already sent
 * @again: it has been sent before and the request came again
 */
struct rove_reply {
	struct rove_resource res;
	u32 sent;
	bool again;
};

/**
 * struct rove_responder - the receiving half
 * @epsn: PSN expected next
 * @msn: messages completed, 24 bits
 * @srqn: XRC: the SRQ that the message is for
 * @in_msg: a message has begun and not ended
 * @skipping: UC: the rest of a message that is dropped, and counted, may follow
 * @msg_write: it is an RDMA WRITE, else a SEND
 * @have_rwqe: @rwqe holds the receive work request in use
 * @rwqe: see @have_rwqe
 * @va: WRITE: where its next byte goes
 * @rkey: WRITE: key
 * @left: WRITE: bytes still to come
 * @received: SEND: bytes placed so far
 * @msg_len: WRITE: length announced, for the completion
 * @nak_sent: a sequence NAK or RNR NAK is out; silent until @epsn comes
 * @page_naks: RNR NAKs in a row for memory that was on its way
 * @ack_due: an acknowledgment is wanted
 * @ack_held: it waits for what the program posts, as rove_env_hold_ack() has said
 * @never_hold: none may
 * @nak: syndrome of a NAK to be sent when earlier replies are out, or 0
 * @nak_psn: its PSN
 * @fatal: after @nak the QP goes to the error state with this event
 *	(enum rove_tqp_event), or -1
 * @comm_est: COMM_EST was reported
 * @res: last READs and atomics, @max_res of them; res_next is overwritten next
 * @res_next: see @res
 * @res_count: entries of @res in use
 * @res_last: how many of @res have come since the last SEND or WRITE
 * @max_res: max_dest_rd_atomic
 * @replies: FIFO of responses to send, capacity @max_res
 * @reply_head: oldest
 * @reply_count: entries in use
 */
struct rove_responder {
	u32 epsn;
	u32 msn;
	u32 srqn;
	bool in_msg;
	bool skipping;
	bool msg_write;
	bool have_rwqe;
	struct rove_rwqe rwqe;
	u64 va;
	u32 rkey;
	u32 left;
	u32 received;
	u32 msg_len;
	bool nak_sent;
	u8 page_naks;
	bool ack_due;
	bool ack_held;
	bool never_hold;
	u8 nak;
	u32 nak_psn;
	int fatal;
	bool comm_est;
	struct rove_resource *res;
	u32 res_next;
	u32 res_count;
	u32 res_last;
	u32 max_res;
	struct rove_reply *replies;
	u32 reply_head;
	u32 reply_count;
};

/**
 * struct rove_tqp - one queue pair
 * @qpn: local number, for completions
 * @dest_qpn: the peer's; UD: of the datagram at hand
 * @qkey: UD: the key that a datagram must have to be received
 * @mtu: path MTU in bytes, 256 to 4096
 * @state: enum rove_tqp_state
 * @service: enum rove_service, by the type of the QP; what another service's
 *	packets say is not for it (9.6.1.1)
 * @access: remote rights the QP grants, enum rove_access
 * @retry_cnt: as set by modify_qp, 0 to 7
 * @rnr_retry: likewise; ROVE_RNR_RETRY_INFINITE means for ever
 * @min_rnr_timer: timer code sent in RNR NAKs
 * @timeout: local ACK timeout code, 4.096 us * 2^timeout; 0 means never
 * @max_rd_atomic: READs and atomics the requester may have outstanding
 * @max_sge_send: most SGEs of a send work request
 * @max_sge_recv: most SGEs of a receive work request
 * @max_inline: most inline bytes
 * @target: XRC: it receives requests, else it sends them
 * @srq: receive work requests come from a queue that other QPs use, too
 * @sq_sig_all: every send completes with an entry
 * @paced: the environment holds packets back to keep a rate; may change at any time
 * @timer: deadline last given to rove_env_arm_timer()
 * @req: sending half
 * @resp: receiving half
 */
struct rove_tqp {
	u32 qpn;
	u32 dest_qpn;
	u32 qkey;
	u32 mtu;
	enum rove_tqp_state state;
	u8 service;
	u32 access;
	u8 retry_cnt;
	u8 rnr_retry;
	u8 min_rnr_timer;
	u8 timeout;
	u32 max_rd_atomic;
	u32 max_sge_send;
	u32 max_sge_recv;
	u32 max_inline;
	bool target;
	bool srq;
	bool sq_sig_all;
	bool paced;
	u64 timer;
	struct rove_requester req;
	struct rove_responder resp;
};

/* Slot @i of the requester's private ring. */
static inline struct rove_swqe *rove_swqe(const struct rove_requester *req, u32 i)
{
	return req->ring + (size_t)(i & (req->depth - 1)) * req->stride;
}

/**
 * rove_tqp_reset() - the state of a new QP, or of one back in RESET
 * @t: the QP.  The buffers req.ring, resp.rwqe.sge, resp.res and resp.replies
 *	with their sizes, the limits max_*, @qpn, @service, @target, @srq and @sq_sig_all stay as
 *	the environment has set them; all else is cleared.
 *
 * The environment resets its queues' indices itself.
 */
void rove_tqp_reset(struct rove_tqp *t);

/**
 * rove_tqp_start_responder() - INIT to RTR
 * @t: the QP; @dest_qpn, @mtu, @access, @min_rnr_timer and resp.max_res are set
 * @psn: rq_psn, the first PSN expected
 */
void rove_tqp_start_responder(struct rove_tqp *t, u32 psn);

/**
 * rove_tqp_start_requester() - RTR to RTS
 * @t: the QP; @timeout, @retry_cnt, @rnr_retry and @max_rd_atomic are set
 * @psn: sq_psn, the first PSN sent
 */
void rove_tqp_start_requester(struct rove_tqp *t, u32 psn);

/**
 * rove_tqp_drain() - RTS to SQD
 * @t: the QP
 *
 * Work requests already begun are completed, no other is; then (perhaps at
 * once) ROVE_EVENT_SQ_DRAINED is reported (IBTA 10.3.1.5).
 */
void rove_tqp_drain(struct rove_tqp *t);

/**
 * rove_tqp_resume() - SQD to RTS
 * @t: the QP
 * @now: time
 */
void rove_tqp_resume(struct rove_tqp *t, u64 now);

/**
 * rove_tqp_retime() - another timeout was set, in SQD
 * @t: the QP; @timeout is the new one
 * @now: time, from which on it counts for what is not acknowledged
 */
void rove_tqp_retime(struct rove_tqp *t, u64 now);

/**
 * rove_tqp_error() - to the error state, from any but RESET
 * @t: the QP
 *
 * Every work request that is not complete, sent or not, completes with
 * IB_WC_WR_FLUSH_ERR (10.3.1.6): the first of them here, the others and later posts by
 * rove_tqp_flush().  Of a shared
 * receive queue only what the QP has taken: ROVE_EVENT_LAST_WQE says that it is done.
 */
void rove_tqp_error(struct rove_tqp *t);

/**
 * rove_tqp_bad_ring() - the send queue's ring makes no sense: that ends the QP
 * @t: the QP
 */
void rove_tqp_bad_ring(struct rove_tqp *t);

/**
 * rove_tqp_flush() - work was posted to a QP in the error state
 * @t: the QP
 *
 * Handles ROVE_FLUSH_MAX of each queue a call, and asks for another if there may be more.
 */
void rove_tqp_flush(struct rove_tqp *t);

/**
 * rove_tqp_send() - work was posted, or room to send has come back
 * @t: the QP
 * @now: time
 *
 * Sends what the window, the credits and the environment allow, replies
 * first; but an acknowledgment that was held for what is posted goes behind it.
 */
void rove_tqp_send(struct rove_tqp *t, u64 now);

/**
 * rove_tqp_answer() - send what the responder owes, now
 * @t: the QP, which is about to leave the states that answer
 *
 * A completion is there before its acknowledgment is sent; who ends the QP upon it
 * must not leave the peer without one, to try again until it gives up.
 */
void rove_tqp_answer(struct rove_tqp *t);

/**
 * rove_tqp_waits() - will the transport look at the send queue again by itself?
 * @t: the QP, not in the error state
 *
 * True when a work request that has been fetched cannot be sent yet, or none may
 * be fetched: the packet, timer, room or change of state that ends the wait
 * lets the requester run.  Otherwise work posted from now on has to be told by
 * rove_tqp_send().
 */
bool rove_tqp_waits(const struct rove_tqp *t);

/* Is all that it has sent acknowledged? */
static inline bool rove_tqp_acked(const struct rove_tqp *t)
{
	return t->req.psn_una == t->req.psn_next;
}

/**
 * rove_tqp_idle() - is nothing of it under way?
 * @t: the QP
 *
 * True when all that is acknowledged has been, and it owes no response.  What it sends
 * next can overtake no request of its own; but perhaps a response, or what UC has sent.
 */
static inline bool rove_tqp_idle(const struct rove_tqp *t)
{
	return rove_tqp_acked(t) && !t->resp.reply_count;
}

/**
 * rove_tqp_rx() - a packet for this QP has arrived
 * @t: the QP
 * @pkt: parsed; the ICRC was right, addresses and P_Key belong to this QP
 * @now: time
 *
 * Never fails: what is wrong with a packet is answered, or counted and
 * dropped.  What is owed is sent here only if the packet ends the QP, and otherwise by
 * rove_tqp_send(), which the environment calls soon after rove_env_defer_send().
 */
void rove_tqp_rx(struct rove_tqp *t, const struct rove_pkt *pkt, u64 now);

/**
 * rove_tqp_timer() - the time given to rove_env_arm_timer() has come
 * @t: the QP
 * @now: time
 */
void rove_tqp_timer(struct rove_tqp *t, u64 now);

/**
 * rove_tqp_max_res() - size the responder resources
 * @t: the QP, not yet in RTR
 * @n: max_dest_rd_atomic; the buffers must have room for it
 */
void rove_tqp_max_res(struct rove_tqp *t, u32 n);

/* RNR NAK timer code (table 46) to nanoseconds. */
u64 rove_rnr_delay(u8 code);

#endif /* ROVE_TQP_H */
