// SPDX-License-Identifier: GPL-2.0
/*
 * Two ends exchange patterned data by every RC operation and check every byte
 * and every completion.  Plain libibverbs: either end may be any device.
 *
 *	rc_data -d DEV -g GID-INDEX [-p PORT] [-m MTU] [-S MAX-SIZE] [-e]
 *		[-T TIMEOUT] [-t CASE,...] [SERVER]
 *
 * Both ends walk through the same cases in step over a TCP connection; each
 * case runs on a QP of its own, first with the client as the requester, then
 * with the server.  Each end prints one line a case and direction:
 * "ok - NAME", "not ok - NAME: why" or "ok - NAME # SKIP why".
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <getopt.h>
#include <infiniband/verbs.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BUF_SIZE	(8u << 20)
#define SRC		0u			/* what is sent from here ... */
#define DST		(4u << 20)		/* ... arrives here */
#define GUARD		64u
#define DEPTH		128
#define POISON		0xEE

struct end {
	uint32_t qpn, psn, rkey, mw_rkey;
	uint64_t addr;
	union ibv_gid gid;
	uint32_t max_sge, inline_size, mw2, rd_atomic, mtu;
};

/* What is set up once. */
static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_mr *mr;
static struct ibv_comp_channel *channel;
static struct ibv_device_attr dattr;
static struct ibv_port_attr pattr;
static uint8_t *buf;
static int sock, gid_index, use_events;
static int traffic_class, flow_label;
static int opt_timeout = 14;
static uint32_t want_mtu = 1024;
static uint32_t max_size = 1048576;
static bool is_client;

/* What each case has for itself. */
static struct ibv_cq *scq, *rcq;
static struct ibv_qp *qp;
static struct end me, peer;
static int rnr_retry, qp_access;
static uint32_t mtu;
static unsigned int case_no;

/* --- failure and step with the other end ------------------------------- */

static jmp_buf bail;
static char why[256];
static const char *checking;	/* whose data check_span() looks at */
static bool peer_done;		/* its last byte of this case has come */

static void fail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	longjmp(bail, 1);
}

static void die(const char *what)
{
	fprintf(stderr, "rc_data: %s: %s\n", what, strerror(errno));
	exit(2);
}

static void put(const void *p, size_t n)
{
	if (send(sock, p, n, MSG_NOSIGNAL) != (ssize_t)n)
		die("lost the other end");
}

static void get(void *p, size_t n)
{
	if (recv(sock, p, n, MSG_WAITALL) != (ssize_t)n)
		die("lost the other end");
}

/* 'D' length data: a step.  'E' and 'F': the case is over, well or badly. */
static void step_data(const void *mine, void *theirs, uint32_t len)
{
	uint32_t got;
	char c = 'D';

	put(&c, 1);
	put(&len, 4);
	put(mine, len);
	get(&c, 1);
	if (c != 'D') {
		peer_done = true;
		fail("the other end %s", c == 'F' ? "failed" : "is out of step");
	}
	get(&got, 4);
	if (got != len)
		fail("out of step");
	get(theirs, len);
}

static void step(void)
{
	char a = 0, b;

	step_data(&a, &b, 1);
}

/* True when both ends did well. */
static bool end_case(bool well)
{
	char c = well ? 'E' : 'F', junk[4096];
	uint32_t len;

	put(&c, 1);
	if (peer_done)
		return false;
	for (;;) {
		get(&c, 1);
		if (c != 'D')
			return c == 'E';
		get(&len, 4);
		while (len) {
			uint32_t n = len < sizeof(junk) ? len : sizeof(junk);

			get(junk, n);
			len -= n;
		}
	}
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

/* --- data ------------------------------------------------------------------ */

static uint8_t pat(uint32_t seed, uint32_t i)
{
	return i ^ (i >> 8) * 31 ^ (i >> 16) * 17 ^ seed * 101 ^ (seed >> 8) * 7;
}

static void fill(uint32_t off, uint32_t len, uint32_t seed)
{
	for (uint32_t i = 0; i < len; i++)
		buf[off + i] = pat(seed, i);
}

static void poison(void)
{
	memset(buf, POISON, BUF_SIZE);
}

static void check_span(uint32_t off, uint32_t len, uint32_t seed, uint32_t from)
{
	for (uint32_t i = 0; i < len; i++)
		if (buf[off + i] != pat(seed, from + i))
			fail("%s: byte %u of %u is %02x, should be %02x", checking, i, len,
			     buf[off + i], pat(seed, from + i));
}

static void check_poison(uint32_t off, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		if (buf[off + i] != POISON)
			fail("byte %u beyond the message was written", i);
}

/* One message and its surroundings. */
static void check(uint32_t off, uint32_t len, uint32_t seed)
{
	check_span(off, len, seed, 0);
	check_poison(off - GUARD / 2, GUARD / 2);
	check_poison(off + len, GUARD / 2);
}

/* The message sizes that matter, and where the k-th lies in its region. */
#define NSIZES 19
static uint32_t size_of(int k)
{
	const uint32_t s[NSIZES] = { 0, 1, 2, 3, 4, 5, 8, 63, 64, mtu - 1, mtu, mtu + 1,
		2 * mtu - 3, 2 * mtu, 3 * mtu + 1, 65535, 65536, 200001, 1048576 };

	return s[k] <= max_size ? s[k] : max_size - k;
}

static uint32_t slot(int k)
{
	uint32_t off = GUARD;

	for (int i = 0; i < k; i++)
		off += (size_of(i) + 2 * GUARD + 63) & ~63u;
	return off + k % 8;		/* every alignment */
}

/* --- verbs ------------------------------------------------------------------- */

static struct ibv_cq *new_cq(void)
{
	struct ibv_cq *cq = ibv_create_cq(ctx, 2 * DEPTH, NULL, channel, 0);

	if (!cq)
		fail("create_cq: %s", strerror(errno));
	if (use_events && ibv_req_notify_cq(cq, 0))
		fail("req_notify_cq: %s", strerror(errno));
	return cq;
}

static void to_rts(void)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT, .pkey_index = 0, .port_num = 1,
		.qp_access_flags = qp_access,
	};
	int rc;

	rc = ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	if (rc)
		fail("to INIT: %s", strerror(rc));
	a = (struct ibv_qp_attr) {
		.qp_state = IBV_QPS_RTR, .path_mtu = mtu == 256 ? IBV_MTU_256 : mtu == 512 ? IBV_MTU_512 :
			mtu == 1024 ? IBV_MTU_1024 : mtu == 2048 ? IBV_MTU_2048 : IBV_MTU_4096,
		.dest_qp_num = peer.qpn, .rq_psn = peer.psn, .max_dest_rd_atomic = me.rd_atomic,
		.min_rnr_timer = 1,
		.ah_attr = { .is_global = 1, .port_num = 1,
			.grh = { .dgid = peer.gid, .sgid_index = gid_index, .hop_limit = 64,
				.traffic_class = traffic_class, .flow_label = flow_label } },
	};
	rc = ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			   IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	if (rc)
		fail("to RTR: %s", strerror(rc));
	a = (struct ibv_qp_attr) {
		.qp_state = IBV_QPS_RTS, .timeout = opt_timeout, .retry_cnt = 7, .rnr_retry = rnr_retry,
		.sq_psn = me.psn, .max_rd_atomic = me.rd_atomic < peer.rd_atomic ? me.rd_atomic : peer.rd_atomic,
	};
	rc = ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			   IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
	if (rc)
		fail("to RTS: %s", strerror(rc));
}

static void open_qp(void)
{
	struct ibv_qp_init_attr ia = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_inline_data = 64 },
	};

	ia.cap.max_send_sge = ia.cap.max_recv_sge = dattr.max_sge < 4 ? dattr.max_sge : 4;
	scq = new_cq();
	rcq = new_cq();
	ia.send_cq = scq;
	ia.recv_cq = rcq;
	qp = ibv_create_qp(pd, &ia);
	if (!qp)
		fail("create_qp: %s", strerror(errno));
	memset(&me, 0, sizeof(me));
	me.qpn = qp->qp_num;
	/* every second case wraps the PSN */
	me.psn = case_no & 1 ? (0xfffff8 + is_client) & 0xffffff : (case_no * 7919) & 0xffffff;
	me.rkey = mr->rkey;
	me.addr = (uintptr_t)buf;
	me.max_sge = ia.cap.max_send_sge;
	me.inline_size = ia.cap.max_inline_data;
	me.mw2 = !!(dattr.device_cap_flags & (IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B));
	me.rd_atomic = dattr.max_qp_rd_atom < 8 ? dattr.max_qp_rd_atom : 8;
	me.mtu = 128u << pattr.active_mtu;
	if (ibv_query_gid(ctx, 1, gid_index, &me.gid))
		fail("query_gid: %s", strerror(errno));
	step_data(&me, &peer, sizeof(me));
	if (mtu > me.mtu || mtu > peer.mtu)
		fail("MTU %u is more than the port's", mtu);
	to_rts();
	step();
}

static void close_qp(void)
{
	struct ibv_cq *cq;
	void *cookie;

	(void)cookie;
	(void)cq;
	if (qp && ibv_destroy_qp(qp))
		perror("destroy_qp");
	if (scq && ibv_destroy_cq(scq))
		perror("destroy_cq");
	if (rcq && ibv_destroy_cq(rcq))
		perror("destroy_cq");
	qp = NULL;
	scq = rcq = NULL;
}

/* The next completion, within 40 seconds. */
static struct ibv_wc next_wc(struct ibv_cq *cq)
{
	double until = now() + 40;
	struct ibv_wc wc;
	int n;

	for (;;) {
		for (int spin = 0; spin < 1000; spin++) {
			n = ibv_poll_cq(cq, 1, &wc);
			if (n < 0)
				fail("poll_cq failed");
			if (n)
				return wc;
			if (use_events)
				break;
		}
		if (now() > until)
			fail("no completion on the %s queue", cq == scq ? "send" : "receive");
		if (use_events) {
			struct pollfd p = { .fd = channel->fd, .events = POLLIN };
			struct ibv_cq *ev;
			void *cookie;

			if (poll(&p, 1, 1000) > 0) {
				if (ibv_get_cq_event(channel, &ev, &cookie))
					fail("get_cq_event: %s", strerror(errno));
				ibv_ack_cq_events(ev, 1);
				if (ibv_req_notify_cq(ev, 0))
					fail("req_notify_cq: %s", strerror(errno));
			}
		}
	}
}

static struct ibv_wc expect(struct ibv_cq *cq, uint64_t id, enum ibv_wc_status status)
{
	struct ibv_wc wc = next_wc(cq);

	if (wc.status != status)
		fail("completion %llu is '%s', should be '%s'", (unsigned long long)wc.wr_id,
		     ibv_wc_status_str(wc.status), ibv_wc_status_str(status));
	if (wc.wr_id != id)
		fail("completion of %llu, should be of %llu", (unsigned long long)wc.wr_id,
		     (unsigned long long)id);
	if (wc.qp_num != qp->qp_num)
		fail("completion of QP %u, should be of %u", wc.qp_num, qp->qp_num);
	return wc;
}

static struct ibv_wc sent(uint64_t id, enum ibv_wc_opcode op)
{
	struct ibv_wc wc = expect(scq, id, IBV_WC_SUCCESS);

	if (wc.opcode != op)
		fail("completion has opcode %d, should have %d", wc.opcode, op);
	return wc;
}

static struct ibv_wc received(uint64_t id, uint32_t len, enum ibv_wc_opcode op)
{
	struct ibv_wc wc = expect(rcq, id, IBV_WC_SUCCESS);

	if (wc.opcode != op)
		fail("receive completion has opcode %d, should have %d", wc.opcode, op);
	if (wc.byte_len != len)
		fail("received %u bytes, should be %u", wc.byte_len, len);
	return wc;
}

static void nothing_more(void)
{
	struct ibv_wc wc;

	if (ibv_poll_cq(scq, 1, &wc) || ibv_poll_cq(rcq, 1, &wc))
		fail("a completion too many: wr_id %llu, %s", (unsigned long long)wc.wr_id,
		     ibv_wc_status_str(wc.status));
}

static void recv_sg(uint64_t id, struct ibv_sge *sg, int n)
{
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = sg, .num_sge = n }, *bad;
	int rc = ibv_post_recv(qp, &wr, &bad);

	if (rc)
		fail("post_recv: %s", strerror(rc));
}

static struct ibv_sge sge(uint32_t off, uint32_t len)
{
	return (struct ibv_sge) { .addr = (uintptr_t)buf + off, .length = len, .lkey = mr->lkey };
}

static void recv1(uint64_t id, uint32_t off, uint32_t len)
{
	struct ibv_sge sg = sge(off, len);

	recv_sg(id, &sg, 1);
}

static struct ibv_send_wr wr(uint64_t id, enum ibv_wr_opcode op, struct ibv_sge *sg, int n, uint32_t roff)
{
	return (struct ibv_send_wr) {
		.wr_id = id, .opcode = op, .sg_list = sg, .num_sge = n, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = peer.addr + roff, .rkey = peer.rkey },
	};
}

static void post(struct ibv_send_wr *w)
{
	struct ibv_send_wr *bad;
	int rc = ibv_post_send(qp, w, &bad);

	if (rc)
		fail("post_send: %s", strerror(rc));
}

/* Cuts a span into n uneven pieces. */
static void cut(struct ibv_sge *sg, int n, uint32_t off, uint32_t len)
{
	for (int i = 0; i < n; i++) {
		uint32_t part = i == n - 1 ? len : (len / (n - i)) * (i + 1) / (i + 2);

		sg[i] = sge(off, part);
		off += part;
		len -= part;
	}
}

/* --- the cases: one function, told whether it is the requester ---------------- */

static void do_sends(bool req, int pieces, bool imm, bool solicited)
{
	struct ibv_sge sg[4];

	poison();
	if (!req) {
		for (int k = 0; k < NSIZES; k++) {
			cut(sg, pieces, DST + slot(k), size_of(k) + (k & 1));
			recv_sg(k, sg, pieces);
		}
		step();
		for (int k = 0; k < NSIZES; k++) {
			struct ibv_wc wc = received(k, size_of(k), IBV_WC_RECV);

			if (!!(wc.wc_flags & IBV_WC_WITH_IMM) != imm)
				fail("immediate flag is wrong");
			if (imm && ntohl(wc.imm_data) != 0xabcd0000u + k)
				fail("immediate is %08x", ntohl(wc.imm_data));
			check(DST + slot(k), size_of(k), k + 1);
		}
	} else {
		for (int k = 0; k < NSIZES; k++)
			fill(SRC + slot(k), size_of(k), k + 1);
		step();
		for (int k = 0; k < NSIZES; k++) {
			struct ibv_send_wr w;

			/* the pieces of requester and responder differ */
			cut(sg, pieces > 1 ? pieces - 1 : 1, SRC + slot(k), size_of(k));
			w = wr(k, imm ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND, sg, pieces > 1 ? pieces - 1 : 1, 0);
			w.imm_data = htonl(0xabcd0000u + k);
			if (solicited)
				w.send_flags |= IBV_SEND_SOLICITED;
			post(&w);
		}
		for (int k = 0; k < NSIZES; k++)
			sent(k, IBV_WC_SEND);
	}
	step();
	nothing_more();
}

static void c_send(bool req) { do_sends(req, 1, false, false); }
static void c_send_imm(bool req) { do_sends(req, 1, true, true); }
static void c_send_sge(bool req) { do_sends(req, me.max_sge < peer.max_sge ? me.max_sge : peer.max_sge, false, false); }

static void c_send_inline(bool req)
{
	uint32_t max = me.inline_size < peer.inline_size ? me.inline_size : peer.inline_size, n = 0;

	if (!max)
		fail("SKIP no inline data");
	if (max > 64)
		max = 64;
	poison();
	if (!req) {
		for (uint32_t len = 0; len <= max; len += 7, n++)
			recv1(n, DST + slot(15) + n * 256, 128);
		step();
		n = 0;
		for (uint32_t len = 0; len <= max; len += 7, n++) {
			received(n, len, IBV_WC_RECV);
			check(DST + slot(15) + n * 256, len, n);
		}
	} else {
		step();
		for (uint32_t len = 0; len <= max; len += 7, n++) {
			struct ibv_sge sg[3];
			struct ibv_send_wr w;
			int pieces = me.max_sge < 3 ? 1 : 3;

			fill(SRC + 4096, len, n);
			cut(sg, pieces, SRC + 4096, len);
			for (int i = 0; i < pieces; i++)
				sg[i].lkey = 0xdead;		/* not looked at */
			w = wr(n, IBV_WR_SEND, sg, pieces, 0);
			w.send_flags |= IBV_SEND_INLINE;
			post(&w);
			memset(buf + SRC + 4096, 0, 64);	/* ours again at once */
		}
		for (uint32_t i = 0; i < n; i++)
			sent(i, IBV_WC_SEND);
	}
	step();
	nothing_more();
}

static void c_write(bool req)
{
	struct ibv_sge sg[4];

	poison();
	step();
	if (req) {
		for (int k = 0; k < NSIZES; k++) {
			int pieces = k % me.max_sge + 1;
			struct ibv_send_wr w;

			fill(SRC + slot(k), size_of(k), k + 40);
			cut(sg, pieces, SRC + slot(k), size_of(k));
			w = wr(k, IBV_WR_RDMA_WRITE, sg, pieces, DST + slot(k) + k % 5);
			post(&w);
		}
		for (int k = 0; k < NSIZES; k++)
			sent(k, IBV_WC_RDMA_WRITE);
	}
	step();
	if (!req)
		for (int k = 0; k < NSIZES; k++)
			check(DST + slot(k) + k % 5, size_of(k), k + 40);
	nothing_more();
}

static void c_write_inline(bool req)
{
	uint32_t max = me.inline_size < peer.inline_size ? me.inline_size : peer.inline_size, n = 0;

	if (!max)
		fail("SKIP no inline data");
	if (max > 64)
		max = 64;
	poison();
	step();
	for (uint32_t len = 1; len <= max && req; len += 9, n++) {
		struct ibv_sge sg = sge(SRC + 512, len);
		struct ibv_send_wr w = wr(n, IBV_WR_RDMA_WRITE, &sg, 1, DST + 1024 + n * 256);

		fill(SRC + 512, len, n);
		w.send_flags |= IBV_SEND_INLINE;
		post(&w);
	}
	for (uint32_t i = 0; i < n; i++)
		sent(i, IBV_WC_RDMA_WRITE);
	step();
	n = 0;
	for (uint32_t len = 1; len <= max && !req; len += 9, n++)
		check(DST + 1024 + n * 256, len, n);
}

static void c_write_imm(bool req)
{
	poison();
	if (!req) {
		for (int k = 0; k < NSIZES; k++)
			recv_sg(k, NULL, 0);
		step();
		for (int k = 0; k < NSIZES; k++) {
			struct ibv_wc wc = received(k, size_of(k), IBV_WC_RECV_RDMA_WITH_IMM);

			if (!(wc.wc_flags & IBV_WC_WITH_IMM) || ntohl(wc.imm_data) != 77u * k)
				fail("immediate is missing or wrong");
			check(DST + slot(k), size_of(k), k + 80);
		}
	} else {
		step();
		for (int k = 0; k < NSIZES; k++) {
			struct ibv_sge sg = sge(SRC + slot(k), size_of(k));
			struct ibv_send_wr w = wr(k, IBV_WR_RDMA_WRITE_WITH_IMM, &sg, 1, DST + slot(k));

			fill(SRC + slot(k), size_of(k), k + 80);
			w.imm_data = htonl(77u * k);
			post(&w);
		}
		for (int k = 0; k < NSIZES; k++)
			sent(k, IBV_WC_RDMA_WRITE);
	}
	step();
	nothing_more();
}

static void c_read(bool req)
{
	struct ibv_sge sg[4];

	poison();
	if (!req)
		for (int k = 0; k < NSIZES; k++)
			fill(SRC + slot(k), size_of(k), k + 120);
	step();
	if (req) {
		for (int k = 0; k < NSIZES; k++) {
			int pieces = k % me.max_sge + 1;
			struct ibv_send_wr w;

			cut(sg, pieces, DST + slot(k), size_of(k));
			w = wr(k, IBV_WR_RDMA_READ, sg, pieces, SRC + slot(k));
			post(&w);
		}
		for (int k = 0; k < NSIZES; k++) {
			struct ibv_wc wc = sent(k, IBV_WC_RDMA_READ);

			if (wc.byte_len && wc.byte_len != size_of(k))
				fail("READ completion says %u bytes", wc.byte_len);
			check(DST + slot(k), size_of(k), k + 120);
		}
	}
	step();
	nothing_more();
}

/* A fenced SEND forwards what a READ before it fetches. */
static void c_fence(bool req)
{
	enum { N = 8, LEN = 20000, GAP = 32768 };

	poison();
	if (!req) {
		for (int k = 0; k < N; k++) {
			fill(SRC + k * GAP, LEN, k + 7);
			recv1(k, DST + 128 + k * GAP, GAP - 256);
		}
		step();
		for (int k = 0; k < N; k++) {
			received(k, LEN, IBV_WC_RECV);
			check_span(DST + 128 + k * GAP, LEN, k + 7, 0);
		}
	} else {
		step();
		for (int k = 0; k < N; k++) {
			struct ibv_sge sg = sge(DST + 128 + k * GAP, LEN);
			struct ibv_send_wr r = wr(2 * k, IBV_WR_RDMA_READ, &sg, 1, SRC + k * GAP);
			struct ibv_send_wr s = wr(2 * k + 1, IBV_WR_SEND, &sg, 1, 0);

			r.next = &s;
			s.send_flags |= IBV_SEND_FENCE;
			post(&r);
		}
		for (int k = 0; k < N; k++) {
			sent(2 * k, IBV_WC_RDMA_READ);
			sent(2 * k + 1, IBV_WC_SEND);
		}
	}
	step();
	nothing_more();
}

/* Lists of unsignalled writes, the last one signalled, told of by a SEND. */
static void c_list(bool req)
{
	enum { N = 16, LEN = 3000, GAP = 4096, ROUNDS = 6 };

	poison();
	if (!req)
		for (int r = 0; r < ROUNDS; r++)
			recv1(r, SRC, 16);
	step();
	for (int r = 0; r < ROUNDS; r++) {
		uint32_t base = r * N * GAP + 256;

		if (req) {
			struct ibv_send_wr w[N + 1];
			struct ibv_sge sg[N + 1];

			for (int i = 0; i < N; i++) {
				fill(SRC + base + i * GAP, LEN, r * N + i);
				sg[i] = sge(SRC + base + i * GAP, LEN);
				w[i] = wr(i, IBV_WR_RDMA_WRITE, &sg[i], 1, DST + base + i * GAP);
				w[i].send_flags = 0;
				w[i].next = &w[i + 1];
			}
			sg[N] = sge(SRC, 16);
			w[N] = wr(1000 + r, IBV_WR_SEND, &sg[N], 1, 0);
			post(w);
			sent(1000 + r, IBV_WC_SEND);
		} else {
			received(r, 16, IBV_WC_RECV);
			/* what was written before the SEND is there when it is */
			for (int i = 0; i < N; i++)
				check(DST + base + i * GAP, LEN, r * N + i);
		}
	}
	step();
	nothing_more();
}

static uint64_t *word(uint32_t off)
{
	return (uint64_t *)(buf + off);
}

static void c_atomic(bool req)
{
	enum { N = 40 };
	uint32_t at = DST + 4096;

	if (dattr.atomic_cap == IBV_ATOMIC_NONE)
		fail("the device has no atomics");
	poison();
	*word(at) = 1000;
	*word(at + 8) = 0x1122334455667788ull;
	step();
	if (req) {
		for (int i = 0; i < N; i++) {
			struct ibv_sge sg = sge(SRC + 64 + i * 8, 8);
			struct ibv_send_wr w = wr(i, IBV_WR_ATOMIC_FETCH_AND_ADD, &sg, 1, 0);

			w.wr.atomic.remote_addr = peer.addr + at;
			w.wr.atomic.rkey = peer.rkey;
			w.wr.atomic.compare_add = 3 + ((uint64_t)i << 40);
			post(&w);
		}
		uint64_t want = 1000;

		for (int i = 0; i < N; i++) {
			sent(i, IBV_WC_FETCH_ADD);
			if (*word(SRC + 64 + i * 8) != want)
				fail("fetched %llx, should be %llx",
				     (unsigned long long)*word(SRC + 64 + i * 8), (unsigned long long)want);
			want += 3 + ((uint64_t)i << 40);
		}
		/* a swap that matches, then one that does not */
		for (int i = 0; i < 2; i++) {
			struct ibv_sge sg = sge(SRC + 64, 8);
			struct ibv_send_wr w = wr(100 + i, IBV_WR_ATOMIC_CMP_AND_SWP, &sg, 1, 0);

			w.wr.atomic.remote_addr = peer.addr + at + 8;
			w.wr.atomic.rkey = peer.rkey;
			w.wr.atomic.compare_add = 0x1122334455667788ull;
			w.wr.atomic.swap = i ? 1 : 0xfedcba9876543210ull;
			post(&w);
			sent(100 + i, IBV_WC_COMP_SWAP);
			if (*word(SRC + 64) != (i ? 0xfedcba9876543210ull : 0x1122334455667788ull))
				fail("swap %d fetched %llx", i, (unsigned long long)*word(SRC + 64));
		}
	}
	step();
	if (!req) {
		uint64_t want = 1000;

		for (int i = 0; i < N; i++)
			want += 3 + ((uint64_t)i << 40);
		if (*word(at) != want)
			fail("sum is %llx", (unsigned long long)*word(at));
		if (*word(at + 8) != 0xfedcba9876543210ull)
			fail("swap left %llx", (unsigned long long)*word(at + 8));
		check_poison(at - 32, 32);
		check_poison(at + 16, 32);
	}
	nothing_more();
}

/* Type 2 memory window: write through it, invalidate it by a SEND, write again. */
static void c_send_inv(bool req)
{
	struct ibv_mw *mw = NULL;
	struct ibv_sge sg = sge(SRC + 64, 500);
	uint32_t key = 0, theirs;

	if (!me.mw2 || !peer.mw2)
		fail("SKIP no type 2 memory windows");
	poison();
	if (!req) {
		struct ibv_send_wr b = { .wr_id = 5, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED };

		mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
		if (!mw)
			fail("alloc_mw: %s", strerror(errno));
		key = ibv_inc_rkey(mw->rkey);
		b.bind_mw.mw = mw;
		b.bind_mw.rkey = key;
		b.bind_mw.bind_info = (struct ibv_mw_bind_info) {
			.mr = mr, .addr = (uintptr_t)buf + DST, .length = 65536,
			.mw_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ };
		post(&b);
		sent(5, IBV_WC_BIND_MW);
		recv1(1, DST + 100000, 600);
		recv1(2, DST + 200000, 600);
	}
	step_data(&key, &theirs, 4);
	if (req) {
		struct ibv_send_wr w = wr(1, IBV_WR_RDMA_WRITE, &sg, 1, DST + 64);

		fill(SRC + 64, 500, 9);
		w.wr.rdma.rkey = theirs;
		post(&w);
		sent(1, IBV_WC_RDMA_WRITE);
		w = wr(2, IBV_WR_SEND_WITH_INV, &sg, 1, 0);
		w.invalidate_rkey = theirs;
		post(&w);
		sent(2, IBV_WC_SEND);
		w = wr(3, IBV_WR_RDMA_WRITE, &sg, 1, DST + 64);
		w.wr.rdma.rkey = theirs;
		post(&w);
		expect(scq, 3, IBV_WC_REM_ACCESS_ERR);
	} else {
		struct ibv_wc wc = received(1, 500, IBV_WC_RECV);

		if (!(wc.wc_flags & IBV_WC_WITH_INV) || wc.invalidated_rkey != key)
			fail("the completion does not name the invalidated key");
		check(DST + 64, 500, 9);
		check(DST + 100000, 500, 9);
		expect(rcq, 2, IBV_WC_WR_FLUSH_ERR);
	}
	step();
	if (mw) {
		ibv_destroy_qp(qp);
		qp = NULL;
		ibv_dealloc_mw(mw);
	}
}

/*
 * The receive comes late: the sender is told RNR, waits and tries again.  A READ stands
 * behind it, between regions that only READs use: each has let go of them in the end, or
 * the call that takes them away would wait for ever (hazard 20).
 */
static void c_rnr(bool req)
{
	enum { N = 4, LEN = 5000, STEP = 8192 };
	uint32_t from = SRC + 64 + N * STEP, to = DST + 64 + N * STEP;
	struct ibv_mr *reads = ibv_reg_mr(pd, buf, BUF_SIZE, IBV_ACCESS_LOCAL_WRITE |
					  IBV_ACCESS_REMOTE_READ);
	uint32_t rkey;

	if (!reads)
		fail("a region for the READs");
	poison();
	fill(from, LEN, 77);
	step_data(&reads->rkey, &rkey, sizeof(rkey));
	for (int i = 0; i < N; i++) {
		step();
		if (req) {
			struct ibv_sge sg = sge(SRC + 64, LEN), rsg = sge(to + i * STEP, LEN);
			struct ibv_send_wr w = wr(i, IBV_WR_SEND, &sg, 1, 0);
			struct ibv_send_wr r = wr(N + i, IBV_WR_RDMA_READ, &rsg, 1, from);

			fill(SRC + 64, LEN, i);
			rsg.lkey = reads->lkey;
			r.wr.rdma.rkey = rkey;
			w.next = &r;
			post(&w);
			sent(i, IBV_WC_SEND);
			sent(N + i, IBV_WC_RDMA_READ);
			check(to + i * STEP, LEN, 77);
		} else {
			usleep(20000);		/* on purpose too late */
			recv1(i, DST + 64 + i * STEP, LEN);
			received(i, LEN, IBV_WC_RECV);
			check(DST + 64 + i * STEP, LEN, i);
		}
	}
	step();
	nothing_more();
	if (ibv_dereg_mr(reads))
		fail("dereg_mr: %s", strerror(errno));
}

/*
 * Both ends at once: a random mix with up to 32 operations in flight.  Each
 * message has a place of its own, so that memory must look just so at the end.
 */
static void c_mix(bool req)
{
	enum { N = 300, GAP = 6144, WINDOW = 32 };
	uint32_t my_seed = is_client ? 1 : 500, their_seed = is_client ? 500 : 1;
	uint32_t rnd = 12345 + case_no + is_client, acked = 0, n_send = 0, next_recv = 0;
	uint8_t op[N];
	uint16_t len[N];
	struct { uint8_t op[N]; uint16_t len[N]; } mine, theirs;

	(void)req;
	poison();
	*word(BUF_SIZE - 4096) = 0;
	for (int i = 0; i < N; i++) {
		rnd = rnd * 1103515245 + 12345;
		op[i] = (rnd >> 16) % 4;
		len[i] = op[i] == 3 ? 8 : (rnd >> 8) % 5000;
		/* what I send or write lies at SRC, what they READ as well */
		fill(SRC + 64 + i * GAP, 5000, my_seed + i);
	}
	memcpy(mine.op, op, sizeof(op));
	memcpy(mine.len, len, sizeof(len));
	step_data(&mine, &theirs, sizeof(mine));
	/* receives for their SENDs, in their order */
	for (int i = 0, k = 0; i < N; i++)
		if (theirs.op[i] == 0)
			if (k++ < DEPTH)
				recv1(i, DST + 64 + i * GAP, 5120);
	step();
	for (int i = 0; i < N; i++) {
		struct ibv_sge sg = sge(SRC + 64 + i * GAP, len[i]);
		struct ibv_send_wr w = wr(i, IBV_WR_SEND, &sg, 1, DST + 64 + i * GAP);

		switch (op[i]) {
		case 0: n_send++; break;
		case 1: w.opcode = IBV_WR_RDMA_WRITE; break;
		case 2:
			w.opcode = IBV_WR_RDMA_READ;
			sg = sge(DST + 64 + i * GAP + 0, len[i]);
			/* a place in my DST that none of theirs uses */
			if (theirs.op[i] < 2)
				sg = sge(SRC + 64 + (N + 5 + i % 30) * GAP, len[i]);
			w.wr.rdma.remote_addr = peer.addr + SRC + 64 + i * GAP;
			break;
		case 3:
			w.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
			sg = sge(BUF_SIZE - 2048, 8);
			w.wr.atomic.remote_addr = peer.addr + BUF_SIZE - 4096;
			w.wr.atomic.rkey = peer.rkey;
			w.wr.atomic.compare_add = 1;
			break;
		}
		post(&w);
		if (i + 1 - acked >= WINDOW)
			expect(scq, acked++, IBV_WC_SUCCESS);
	}
	while (acked < N)
		expect(scq, acked++, IBV_WC_SUCCESS);
	for (int i = 0; i < N; i++) {
		if (theirs.op[i] == 0 && next_recv < DEPTH) {
			received(i, theirs.len[i], IBV_WC_RECV);
			next_recv++;
		}
	}
	step();
	uint64_t adds = 0;

	for (int i = 0; i < N; i++) {
		uint32_t at = DST + 64 + i * GAP;

		if (theirs.op[i] == 3)
			adds++;
		if (theirs.op[i] < 2) {
			checking = theirs.op[i] ? "their WRITE" : "their SEND";
			check(at, theirs.len[i], their_seed + i);
		} else if (op[i] == 2) {
			checking = "my READ";
			check(at, len[i], their_seed + i);
		}
	}
	if (*word(BUF_SIZE - 4096) != adds)
		fail("%llu adds arrived, should be %llu", (unsigned long long)*word(BUF_SIZE - 4096),
		     (unsigned long long)adds);
	nothing_more();
}

/* --- errors: what fails, what is flushed, and on which end ------------------- */

static void flushed(struct ibv_cq *cq, uint64_t id)
{
	expect(cq, id, IBV_WC_WR_FLUSH_ERR);
}

static void expect_state(enum ibv_qp_state want)
{
	struct ibv_qp_init_attr ia;
	struct ibv_qp_attr a;
	double until = now() + 10;

	do {
		if (ibv_query_qp(qp, &a, IBV_QP_STATE, &ia))
			fail("query_qp: %s", strerror(errno));
	} while (a.qp_state != want && now() < until);
	if (a.qp_state != want)
		fail("QP is in state %d, should be %d", a.qp_state, want);
}

/* A good WRITE, the bad request, two more that must be flushed in order. */
static void bad_request(bool req, struct ibv_send_wr *bad, enum ibv_wc_status status,
			bool responder_fails)
{
	struct ibv_sge sg = sge(SRC + 64, 100);

	poison();
	if (!req) {
		recv1(70, DST + 8192, 64);
		recv1(71, DST + 8192, 64);
	}
	step();
	if (req) {
		struct ibv_send_wr good = wr(10, IBV_WR_RDMA_WRITE, &sg, 1, DST + 64);
		struct ibv_send_wr a = wr(12, IBV_WR_RDMA_WRITE, &sg, 1, DST + 1024);
		struct ibv_send_wr b = wr(13, IBV_WR_SEND, &sg, 1, 0);

		fill(SRC + 64, 100, 3);
		bad->wr_id = 11;
		good.next = bad;
		bad->next = &a;
		a.next = &b;
		post(&good);
		sent(10, IBV_WC_RDMA_WRITE);
		if (status == IBV_WC_REM_OP_ERR) {	/* see c_no_permission() */
			struct ibv_wc wc = next_wc(scq);

			if (wc.wr_id != 11 || (wc.status != IBV_WC_REM_ACCESS_ERR &&
					       wc.status != IBV_WC_REM_INV_REQ_ERR))
				fail("completion %llu is '%s'", (unsigned long long)wc.wr_id,
				     ibv_wc_status_str(wc.status));
		} else {
			expect(scq, 11, status);
		}
		flushed(scq, 12);
		flushed(scq, 13);
		expect_state(IBV_QPS_ERR);
	}
	step();
	if (!req) {
		check(DST + 64, 100, 3);
		check_poison(DST + 1024, 1024);		/* what came after had no effect */
		if (responder_fails) {
			flushed(rcq, 70);
			flushed(rcq, 71);
			expect_state(IBV_QPS_ERR);
		}
	}
	step();
	nothing_more();
}

static void c_bad_rkey(bool req)
{
	struct ibv_sge sg = sge(SRC + 64, 100);
	struct ibv_send_wr w = wr(0, IBV_WR_RDMA_WRITE, &sg, 1, DST + 1024);

	w.wr.rdma.rkey ^= 0x5500;
	bad_request(req, &w, IBV_WC_REM_ACCESS_ERR, true);
}

static void c_bad_read_bounds(bool req)
{
	struct ibv_sge sg = sge(DST + 64, 4096);
	struct ibv_send_wr w = wr(0, IBV_WR_RDMA_READ, &sg, 1, BUF_SIZE - 4095);

	bad_request(req, &w, IBV_WC_REM_ACCESS_ERR, true);
}

static void c_bad_wrap(bool req)
{
	struct ibv_sge sg = sge(SRC + 64, 1024);
	struct ibv_send_wr w = wr(0, IBV_WR_RDMA_WRITE, &sg, 1, 0);

	w.wr.rdma.remote_addr = 0xfffffffffffffc00ull;
	bad_request(req, &w, IBV_WC_REM_ACCESS_ERR, true);
}

static void c_bad_atomic_align(bool req)
{
	struct ibv_sge sg = sge(SRC + 64, 8);
	struct ibv_send_wr w = wr(0, IBV_WR_ATOMIC_FETCH_AND_ADD, &sg, 1, 0);

	w.wr.atomic.remote_addr = peer.addr + DST + 1025;
	w.wr.atomic.rkey = peer.rkey;
	w.wr.atomic.compare_add = 1;
	bad_request(req, &w, IBV_WC_REM_INV_REQ_ERR, true);
}

static void c_bad_lkey(bool req)
{
	struct ibv_sge sg = sge(SRC + 64, 100);
	struct ibv_send_wr w = wr(0, IBV_WR_RDMA_WRITE, &sg, 1, DST + 1024);

	sg.lkey ^= 0x5500;
	bad_request(req, &w, IBV_WC_LOC_PROT_ERR, false);
}

static void c_no_permission(bool req)
{
	struct ibv_sge sg = sge(DST + 64, 100);
	struct ibv_send_wr w = wr(0, IBV_WR_RDMA_READ, &sg, 1, SRC);

	/*
	 * The QP of the responder allows WRITE only, see run_case().  Devices
	 * differ in which NAK they send for that: access error or invalid request.
	 */
	bad_request(req, &w, IBV_WC_REM_OP_ERR, true);
}

static void c_short_receive(bool req)
{
	struct ibv_sge sg = sge(SRC + 64, 3 * mtu);

	poison();
	if (!req) {
		recv1(20, DST + 64, 2 * mtu);
		recv1(21, DST + 64, 64);
	}
	step();
	if (req) {
		struct ibv_send_wr w = wr(1, IBV_WR_SEND, &sg, 1, 0);

		post(&w);
		expect(scq, 1, IBV_WC_REM_INV_REQ_ERR);
	} else {
		expect(rcq, 20, IBV_WC_LOC_LEN_ERR);
		flushed(rcq, 21);
	}
	step();
	nothing_more();
}

static void c_rnr_exhausted(bool req)
{
	struct ibv_sge sg = sge(SRC + 64, 100);

	step();
	if (req) {
		struct ibv_send_wr w = wr(1, IBV_WR_SEND, &sg, 1, 0), x = wr(2, IBV_WR_RDMA_WRITE, &sg, 1, DST);

		w.next = &x;
		post(&w);
		expect(scq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
		flushed(scq, 2);
	}
	step();
	nothing_more();
}

static void c_peer_gone(bool req)
{
	struct ibv_sge sg = sge(SRC + 64, 100);

	if (!req) {
		ibv_destroy_qp(qp);
		qp = NULL;
	}
	step();
	if (req) {
		struct ibv_send_wr w = wr(1, IBV_WR_RDMA_WRITE, &sg, 1, DST), x = wr(2, IBV_WR_RDMA_WRITE, &sg, 1, DST);

		w.next = &x;
		post(&w);
		expect(scq, 1, IBV_WC_RETRY_EXC_ERR);
		flushed(scq, 2);
	}
	step();
}

/* Moving a QP to ERR by hand flushes everything, in order. */
static void c_flush(bool req)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_ERR };

	if (!req)
		for (int i = 0; i < 20; i++)
			recv1(i, DST, 64);
	if (!req) {
		if (ibv_modify_qp(qp, &a, IBV_QP_STATE))
			fail("to ERR: %s", strerror(errno));
		for (int i = 0; i < 20; i++)
			flushed(rcq, i);
		/* posting in ERR is allowed and flushed at once */
		recv1(99, DST, 64);
		flushed(rcq, 99);
	}
	step();
	nothing_more();
}

static const struct {
	const char *name;
	void (*fn)(bool req);
	int access;		/* 0: everything */
	bool rnr0;		/* no RNR retries */
	bool error;		/* not part of the data set */
} cases[] = {
	{ "send", c_send },
	{ "send_imm", c_send_imm },
	{ "send_sge", c_send_sge },
	{ "send_inline", c_send_inline },
	{ "write", c_write },
	{ "write_inline", c_write_inline },
	{ "write_imm", c_write_imm },
	{ "read", c_read },
	{ "fence", c_fence },
	{ "list", c_list },
	{ "atomic", c_atomic },
	{ "rnr", c_rnr },
	{ "mix", c_mix },
	{ "send_inv", c_send_inv, .error = true },
	{ "bad_rkey", c_bad_rkey, .error = true },
	{ "bad_read_bounds", c_bad_read_bounds, .error = true },
	{ "bad_wrap", c_bad_wrap, .error = true },
	{ "bad_atomic_align", c_bad_atomic_align, .error = true },
	{ "bad_lkey", c_bad_lkey, .error = true },
	{ "no_permission", c_no_permission, .access = IBV_ACCESS_REMOTE_WRITE, .error = true },
	{ "short_receive", c_short_receive, .error = true },
	{ "rnr_exhausted", c_rnr_exhausted, .rnr0 = true, .error = true },
	{ "peer_gone", c_peer_gone, .error = true },
	{ "flush", c_flush, .error = true },
};

static int run_case(int c, bool req)
{
	volatile bool well = false;
	bool both;
	char name[64];

	case_no++;
	peer_done = false;
	why[0] = 0;
	rnr_retry = cases[c].rnr0 ? 0 : 7;
	qp_access = cases[c].access ?: IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	snprintf(name, sizeof(name), "%s, requester %s", cases[c].name, req == is_client ? "client" : "server");
	checking = "data";
	if (!setjmp(bail)) {
		open_qp();
		cases[c].fn(req);
		well = true;
	}
	if (!strncmp(why, "SKIP ", 5))
		well = true;
	both = end_case(well);
	close_qp();
	if (!strncmp(why, "SKIP ", 5)) {
		printf("ok - %s # %s\n", name, why);
	} else if (well && both) {
		printf("ok - %s\n", name);
	} else {
		printf("not ok - %s: %s\n", name, why[0] ? why : "the other end failed");
		fflush(stdout);
		return 1;
	}
	fflush(stdout);
	return 0;
}

/* --- set-up ------------------------------------------------------------------------ */

static void open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	for (int i = 0; list && list[i]; i++)
		if (!name || !strcmp(name, ibv_get_device_name(list[i])))
			ctx = ibv_open_device(list[i]);
	if (!ctx)
		die("cannot open the device");
	if (ibv_query_device(ctx, &dattr) || ibv_query_port(ctx, 1, &pattr))
		die("query");
	pd = ibv_alloc_pd(ctx);
	if (use_events)
		channel = ibv_create_comp_channel(ctx);
	if (posix_memalign((void **)&buf, 4096, BUF_SIZE + 4096))
		die("memory");
	buf += 40;		/* no alignment but that of the atomics */
	mr = ibv_reg_mr(pd, buf, BUF_SIZE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND);
	if (!mr)
		mr = ibv_reg_mr(pd, buf, BUF_SIZE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	if (!pd || (use_events && !channel) || !mr)
		die("PD, channel or MR");
}

static void meet(const char *host, const char *port)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_family = AF_UNSPEC, .ai_flags = AI_PASSIVE }, *ai;
	int one = 1, s;

	if (!host)
		hints.ai_family = AF_INET6;
	if (getaddrinfo(host, port, &hints, &ai))
		die("address");
	s = socket(ai->ai_family, SOCK_STREAM, 0);
	if (!host) {
		setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		if (bind(s, ai->ai_addr, ai->ai_addrlen) || listen(s, 1))
			die("listen");
		sock = accept(s, NULL, NULL);
		if (sock < 0)
			die("accept");
		close(s);
	} else {
		if (connect(s, ai->ai_addr, ai->ai_addrlen))
			die("connect");
		sock = s;
	}
	setsockopt(sock, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	freeaddrinfo(ai);
}

static bool chosen(int c, const char *only)
{
	size_t n = strlen(cases[c].name);

	if (!only || !strcmp(only, "all"))
		return true;
	if (!strcmp(only, "data"))
		return !cases[c].error;
	if (!strcmp(only, "errors"))
		return cases[c].error;
	for (const char *p = only; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
		if (!strncmp(p, cases[c].name, n) && (p[n] == 0 || p[n] == ','))
			return true;
	return false;
}

int main(int argc, char **argv)
{
	const char *dev = NULL, *port = "18515", *only = NULL;
	int c, failed = 0;

	while ((c = getopt(argc, argv, "d:g:p:m:t:T:S:c:f:e")) != -1)
		switch (c) {
		case 'd': dev = optarg; break;
		case 'g': gid_index = atoi(optarg); break;
		case 'p': port = optarg; break;
		case 'm': want_mtu = atoi(optarg); break;
		case 't': only = optarg; break;
		case 'T': opt_timeout = atoi(optarg); break;
		case 'S': max_size = atoi(optarg); break;
		case 'c': traffic_class = strtol(optarg, NULL, 0); break;
		case 'f': flow_label = strtol(optarg, NULL, 0); break;
		case 'e': use_events = 1; break;
		default: return 2;
		}
	mtu = want_mtu;
	is_client = optind < argc;
	open_device(dev);
	meet(argv[optind], port);
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (!chosen(i, only))
			continue;
		failed += run_case(i, is_client);
		failed += run_case(i, !is_client);
	}
	if (ibv_dereg_mr(mr) || ibv_dealloc_pd(pd) || (channel && ibv_destroy_comp_channel(channel)) ||
	    ibv_close_device(ctx)) {
		printf("not ok - tear-down: %s\n", strerror(errno));
		failed++;
	}
	return failed > 0;
}
