// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Taking completions: ibv_poll_cq(), and ibv_start_poll() and its kin.
 *
 * The kernel's producer index is read when what is known of it runs out, our
 * consumer index is written once a call, so that a CQE costs one cache line.
 * What stands in a CQE is handed out, never used to find anything.
 */
#include <errno.h>
#include <sched.h>
#include <time.h>

#include "rove.h"

const uint64_t rove_cq_wc_flags = IBV_WC_STANDARD_FLAGS |
				  IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
				  IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;

/*
 * At least @want CQEs that may be looked at, or all there are, or -1: the CQ
 * lost its ring, or the index in it is impossible (somebody scribbled).
 */
static inline int ready(struct rove_cq *cq, uint32_t want)
{
	uint32_t n = cq->prod - cq->cons;
	uint32_t prod;

	if (n >= want)
		return n;
	if (unlikely(!cq->ring.hdr))
		return -1;
	prod = rove_index_load(&cq->ring.hdr->prod);
	n = prod - cq->cons;
	if (unlikely(n > cq->ring.depth))
		return -1;
	cq->prod = prod;
	return n;
}

static inline void publish(struct rove_cq *cq)
{
	rove_index_store(&cq->ring.hdr->cons, cq->cons);
}

static inline enum ibv_wc_status to_status(uint32_t status)
{
	return likely(status <= IBV_WC_GENERAL_ERR) ? status :
						      IBV_WC_GENERAL_ERR;
}

static inline unsigned int to_wc_flags(uint32_t flags)
{
	return flags & (IBV_WC_GRH | IBV_WC_WITH_IMM | IBV_WC_WITH_INV);
}

/*
 * A datagram's receiver is to be told whether its GRH is an IPv4 or an IPv6 header
 * (annex A17.4.5.1), for which struct ibv_wc has no field.  Hardware tells it in the
 * service level, which Ethernet has no other use for, and UCX looks for it there:
 * bit 3: over UDP; bits 2 to 0: 1: IPv6, 2: IPv4.
 */
static inline uint8_t packet_type(const struct rove_cqe *cqe)
{
	if (!(cqe->wc_flags & ROVE_WC_WITH_GRH))
		return 0;
	return cqe->network_hdr_type == ROVE_NETWORK_IPV4 ? 0xa : 0x9;
}

/*
 * Where the peer is on this machine, who polls in vain for long may keep from its
 * CPU what it waits for: the peer's program, or the kernel's thread that
 * sends.  The scheduler would have them take turns of milliseconds.  So it lets others
 * run first now and then; seldom, if nobody has used that.
 */
#define VAIN_MIN	4000
#define VAIN_MAX	(16 * VAIN_MIN)

static __thread struct {
	uint32_t limit;		/* polls in vain before others may run */
	uint32_t count;		/* of them */
	uint64_t half;		/* when it was half of them, ns */
} vain = { .limit = VAIN_MIN };

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now = {};

	clock_gettime(clock, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

static void let_others_run(void)
{
	uint64_t begin = clock_ns(CLOCK_MONOTONIC);
	uint64_t polled = 2 * (begin - vain.half);

	sched_yield();
	if (clock_ns(CLOCK_MONOTONIC) - begin > polled / 8)
		vain.limit = VAIN_MIN;
	else if (vain.limit < VAIN_MAX)
		vain.limit *= 2;
	vain.count = 0;
}

/* Are there others to be considered?  Locked, and there is a ring. */
static inline bool has_local_peer(struct rove_cq *cq)
{
	return __atomic_load_n(&cq->ring.hdr->flags, __ATOMIC_RELAXED) &
	       ROVE_RING_LOCAL_PEER;
}

static void polled_in_vain(void)
{
	vain.count++;
	if (vain.count == vain.limit / 2)
		vain.half = clock_ns(CLOCK_MONOTONIC);
	else if (vain.count >= vain.limit)
		let_others_run();
}

int rove_poll_cq(struct ibv_cq *ibcq, int num, struct ibv_wc *wc)
{
	struct rove_cq *cq = to_rove_cq(ibcq);
	bool in_vain = false;
	int i, n;

	if (unlikely(num <= 0))
		return num ? -1 : 0;

	rove_lock(&cq->lock);
	n = ready(cq, num);
	if (n <= 0) {
		in_vain = !n && has_local_peer(cq);
		goto unlock;
	}
	if (n > num)
		n = num;

	for (i = 0; i < n; i++, wc++) {
		const struct rove_cqe *cqe = rove_ring_slot(&cq->ring,
							    cq->cons + i);

		wc->wr_id = cqe->wr_id;
		wc->status = to_status(cqe->status);
		wc->opcode = cqe->opcode;
		wc->vendor_err = cqe->vendor_err;
		wc->byte_len = cqe->byte_len;
		wc->imm_data = cqe->imm_data;
		wc->qp_num = cqe->qp_num;
		wc->src_qp = cqe->src_qp;
		wc->wc_flags = to_wc_flags(cqe->wc_flags);
		wc->pkey_index = cqe->pkey_index;
		wc->slid = 0;
		wc->sl = packet_type(cqe);
		wc->dlid_path_bits = 0;
	}
	cq->cons += n;
	publish(cq);
	vain.count = 0;
unlock:
	rove_unlock(&cq->lock);
	if (in_vain)
		polled_in_vain();
	return n;
}

/*
 * Makes the next CQE the current one: a copy of it, since the kernel has the slot back at
 * once.  What a program posts within its session may complete there and then, and
 * a CQ that is as large as all that is outstanding has room for it.
 */
static inline int take(struct rove_cq *cq)
{
	int n = ready(cq, 1);

	if (unlikely(n <= 0))
		return n ? EIO : ENOENT;
	cq->cur = *(const struct rove_cqe *)rove_ring_slot(&cq->ring, cq->cons++);
	publish(cq);
	cq->vcq.cq_ex.wr_id = cq->cur.wr_id;
	cq->vcq.cq_ex.status = to_status(cq->cur.status);
	return 0;
}

static int start_poll(struct ibv_cq_ex *ibcq, struct ibv_poll_cq_attr *attr)
{
	struct rove_cq *cq = to_rove_cq_ex(ibcq);
	bool in_vain;
	int ret;

	if (unlikely(attr->comp_mask))
		return EINVAL;

	rove_lock(&cq->lock);
	ret = take(cq);
	if (!ret) {
		vain.count = 0;
		return 0;
	}
	in_vain = ret == ENOENT && has_local_peer(cq);
	rove_unlock(&cq->lock);
	if (in_vain)
		polled_in_vain();
	return ret;
}

static int next_poll(struct ibv_cq_ex *ibcq)
{
	return take(to_rove_cq_ex(ibcq));
}

static void end_poll(struct ibv_cq_ex *ibcq)
{
	rove_unlock(&to_rove_cq_ex(ibcq)->lock);
}

static inline const struct rove_cqe *cur(struct ibv_cq_ex *ibcq)
{
	return &to_rove_cq_ex(ibcq)->cur;
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *ibcq)
{
	return cur(ibcq)->opcode;
}

static uint32_t read_vendor_err(struct ibv_cq_ex *ibcq)
{
	return cur(ibcq)->vendor_err;
}

static unsigned int read_wc_flags(struct ibv_cq_ex *ibcq)
{
	return to_wc_flags(cur(ibcq)->wc_flags);
}

static uint32_t read_byte_len(struct ibv_cq_ex *ibcq)
{
	return cur(ibcq)->byte_len;
}

/* Immediate data or the invalidated key, which share their place. */
static __be32 read_imm_data(struct ibv_cq_ex *ibcq)
{
	return cur(ibcq)->imm_data;
}

static uint32_t read_qp_num(struct ibv_cq_ex *ibcq)
{
	return cur(ibcq)->qp_num;
}

static uint32_t read_src_qp(struct ibv_cq_ex *ibcq)
{
	return cur(ibcq)->src_qp;
}

static uint64_t read_completion_ts(struct ibv_cq_ex *ibcq)
{
	return cur(ibcq)->timestamp;
}

/*
 * The stamp is of the monotonic clock; what the wall clock is ahead of it now it
 * was ahead then, unless somebody has set it in between.
 */
static uint64_t read_completion_wallclock(struct ibv_cq_ex *ibcq)
{
	return cur(ibcq)->timestamp - clock_ns(CLOCK_MONOTONIC) +
	       clock_ns(CLOCK_REALTIME);
}

static uint8_t read_sl(struct ibv_cq_ex *ibcq)
{
	return packet_type(cur(ibcq));
}

/* Ethernet has no LIDs. */
static uint32_t read_slid(struct ibv_cq_ex *ibcq)
{
	(void)ibcq;
	return 0;
}

static uint8_t read_zero(struct ibv_cq_ex *ibcq)
{
	(void)ibcq;
	return 0;
}

/**
 * rove_cq_set_ex_ops - makes a CQ pollable by ibv_start_poll()
 * @cq: new
 * @wc_flags: what the program wants to read; within rove_cq_wc_flags
 */
void rove_cq_set_ex_ops(struct ibv_cq_ex *cq, uint64_t wc_flags)
{
	cq->start_poll = start_poll;
	cq->next_poll = next_poll;
	cq->end_poll = end_poll;
	cq->read_opcode = read_opcode;
	cq->read_vendor_err = read_vendor_err;
	cq->read_wc_flags = read_wc_flags;
	if (wc_flags & IBV_WC_EX_WITH_BYTE_LEN)
		cq->read_byte_len = read_byte_len;
	if (wc_flags & IBV_WC_EX_WITH_IMM)
		cq->read_imm_data = read_imm_data;
	if (wc_flags & IBV_WC_EX_WITH_QP_NUM)
		cq->read_qp_num = read_qp_num;
	if (wc_flags & IBV_WC_EX_WITH_SRC_QP)
		cq->read_src_qp = read_src_qp;
	if (wc_flags & IBV_WC_EX_WITH_SLID)
		cq->read_slid = read_slid;
	if (wc_flags & IBV_WC_EX_WITH_SL)
		cq->read_sl = read_sl;
	if (wc_flags & IBV_WC_EX_WITH_DLID_PATH_BITS)
		cq->read_dlid_path_bits = read_zero;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
		cq->read_completion_ts = read_completion_ts;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
		cq->read_completion_wallclock_ns = read_completion_wallclock;
}
