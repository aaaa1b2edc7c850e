// SPDX-License-Identifier: GPL-2.0
/*
 * datagrams - UD through libibverbs, one process and one link: network header,
 * Q_Keys, address handles from completions, errors, multicast
 *
 *	datagrams DEVICE GID_INDEX [MULTICAST_GID [stay]]
 *
 * The link's own address is the peer's.  Prints TAP; or, told to stay, is a member of the
 * group until killed.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>

#include "points.h"

#define QKEY	0x11111111U
#define DEPTH	64
#define SIZE	2048

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static int gid_index;
static union ibv_gid gid;

static bool check(bool good, const char *fmt, ...)
{
	va_list ap;

	if (good)
		return true;
	printf("# ");
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	return false;
}

/* One end: a QP with CQs and memory of its own. */
struct end {
	struct ibv_qp *qp;
	struct ibv_cq *scq, *rcq;
	struct ibv_mr *mr;
	uint8_t *buf;		/* received here, DEPTH times SIZE, then sent from */
	unsigned int posted;
};

static struct end *end_new(uint32_t qkey, uint32_t create_flags)
{
	struct end *e = calloc(1, sizeof(*e));
	struct ibv_qp_init_attr_ex init = {
		.cap = { DEPTH, DEPTH, 2, 2, 64 },
		.qp_type = IBV_QPT_UD,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
		.pd = pd,
		.create_flags = create_flags,
	};

	e->scq = ibv_create_cq(ctx, DEPTH, NULL, NULL, 0);
	e->rcq = ibv_create_cq(ctx, DEPTH, NULL, NULL, 0);
	e->buf = aligned_alloc(4096, (DEPTH + 1) * SIZE);
	e->mr = ibv_reg_mr(pd, e->buf, (DEPTH + 1) * SIZE, IBV_ACCESS_LOCAL_WRITE);
	init.send_cq = e->scq;
	init.recv_cq = e->rcq;
	e->qp = ibv_create_qp_ex(ctx, &init);
	if (!e->scq || !e->rcq || !e->mr || !e->qp)
		die("an end");
	ud_to_rts(e->qp, qkey);
	return e;
}

static void end_free(struct end *e)
{
	if (ibv_destroy_qp(e->qp))
		die("destroy_qp");
	ibv_destroy_cq(e->scq);
	ibv_destroy_cq(e->rcq);
	ibv_dereg_mr(e->mr);
	free(e->buf);
	free(e);
}

static void post_recv(struct end *e, uint32_t len)
{
	unsigned int i = e->posted++ % DEPTH;
	struct ibv_sge sge = { (uintptr_t)e->buf + i * SIZE, len, e->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

	memset(e->buf + i * SIZE, 0xee, SIZE);
	if (ibv_post_recv(e->qp, &wr, &bad))
		die("post_recv");
}

static int post_send(struct end *e, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey,
		     uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)e->buf + DEPTH * SIZE, len, e->mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND_WITH_IMM,
		.send_flags = IBV_SEND_SIGNALED, .imm_data = htonl(len),
		.wr.ud = { .ah = ah, .remote_qpn = qpn, .remote_qkey = qkey },
	}, *bad;

	return ibv_post_send(e->qp, &wr, &bad);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

/* Up to @n completions within @seconds, 0: those that are there. */
static int poll_some(struct ibv_cq *cq, struct ibv_wc *wc, int n, double seconds)
{
	double end = now() + seconds;
	int have = 0;

	do {
		int ret = ibv_poll_cq(cq, n - have, wc + have);

		if (ret < 0)
			die("poll_cq");
		have += ret;
	} while (have < n && now() < end);
	return have;
}

static struct ibv_ah *make_ah(const union ibv_gid *dgid)
{
	struct ibv_ah_attr attr = {
		.is_global = 1, .port_num = 1,
		.grh = { .dgid = *dgid, .sgid_index = gid_index,
			 .traffic_class = 0x68 },
	};

	return ibv_create_ah(pd, &attr);
}

static bool is_ipv4(void)
{
	return IN6_IS_ADDR_V4MAPPED((struct in6_addr *)gid.raw);
}

/* Where hardware has it, too: RoCE v2, over IPv4 or IPv6. */
static uint8_t packet_type(void)
{
	return is_ipv4() ? 0xa : 0x9;
}

/* The 40 bytes: an IPv6 header, or an IPv4 one at their end. */
static bool grh_good(const uint8_t *h, uint32_t udp_payload)
{
	static const uint8_t zero[20];
	const uint8_t *ip = h + 20;
	uint32_t sum = 0;
	int i;

	if (!is_ipv4())
		return check(h[0] >> 4 == 6 && h[6] == IPPROTO_UDP &&
			     (h[4] << 8 | h[5]) == (int)udp_payload + 8 &&
			     ((h[0] & 15) << 4 | h[1] >> 4) == 0x68 &&
			     !memcmp(h + 8, gid.raw, 16) && !memcmp(h + 24, gid.raw, 16),
			     "IPv6 header");
	for (i = 0; i < 20; i += 2)
		sum += ip[i] << 8 | ip[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	return check(!memcmp(h, zero, 20), "20 zeros") &&
	       check(ip[0] == 0x45 && ip[1] == 0x68 && ip[9] == IPPROTO_UDP &&
		     (ip[2] << 8 | ip[3]) == (int)udp_payload + 28 &&
		     !memcmp(ip + 12, gid.raw + 12, 4) &&
		     !memcmp(ip + 16, gid.raw + 12, 4), "IPv4 header") &&
	       check(sum == 0xffff, "IPv4 checksum %x", sum);
}

static void test_message(struct end *a, struct end *b, struct ibv_ah *ah)
{
	static const uint32_t lengths[] = { 0, 1, 2, 3, 4, 255, 1000, 1024 };
	bool good = true;
	struct ibv_wc wc;
	unsigned int i, k;

	for (i = 0; i < sizeof(lengths) / sizeof(*lengths) && good; i++) {
		uint32_t len = lengths[i];
		uint8_t *got;

		for (k = 0; k < len; k++)
			a->buf[DEPTH * SIZE + k] = i * 31 + k;
		post_recv(b, 40 + len);
		if (post_send(a, ah, b->qp->qp_num, QKEY, len))
			die("post_send");
		good &= check(poll_some(a->scq, &wc, 1, 5) == 1 && !wc.status, "send");
		good &= check(poll_some(b->rcq, &wc, 1, 5) == 1 && !wc.status, "receive");
		if (!good)
			break;
		got = b->buf + wc.wr_id * SIZE;
		good &= check(wc.byte_len == 40 + len && wc.wc_flags ==
			      (IBV_WC_GRH | IBV_WC_WITH_IMM) &&
			      wc.src_qp == a->qp->qp_num && wc.sl == packet_type() &&
			      !wc.pkey_index && wc.imm_data == htonl(len) &&
			      wc.qp_num == b->qp->qp_num,
			      "completion: %u bytes, flags %x, from %x, sl %u", wc.byte_len,
			      wc.wc_flags, wc.src_qp, wc.sl);
		/* BTH, DETH, immediate data, payload and pad, ICRC */
		good &= grh_good(got, 12 + 8 + 4 + ((len + 3) & ~3U) + 4);
		good &= check(!memcmp(got + 40, a->buf + DEPTH * SIZE, len) &&
			      got[40 + len] == 0xee, "%u bytes differ", len);
	}
	outcome(good, "payload, network header and completion");
}

static void test_reply(struct end *a, struct end *b, struct ibv_ah *ah)
{
	struct ibv_ah_attr attr = {};
	struct ibv_grh *grh;
	struct ibv_ah *back;
	struct ibv_wc wc;
	bool good;

	post_recv(b, 200);
	post_recv(a, 200);
	post_send(a, ah, b->qp->qp_num, QKEY, 10);
	poll_some(a->scq, &wc, 1, 5);
	good = check(poll_some(b->rcq, &wc, 1, 5) == 1, "there");
	grh = (void *)(b->buf + wc.wr_id * SIZE);
	good = good && check(!ibv_init_ah_from_wc(ctx, 1, &wc, grh, &attr) &&
			     !memcmp(attr.grh.dgid.raw, gid.raw, 16) &&
			     attr.grh.sgid_index == gid_index,
			     "ibv_init_ah_from_wc: index %u, not %d", attr.grh.sgid_index,
			     gid_index);
	back = ibv_create_ah_from_wc(pd, &wc, grh, 1);
	good = good && check(back, "ibv_create_ah_from_wc: %s", strerror(errno));
	if (back) {
		post_send(b, back, wc.src_qp, QKEY, 10);
		good &= check(poll_some(b->scq, &wc, 1, 5) == 1 && !wc.status, "sent back");
		good &= check(poll_some(a->rcq, &wc, 1, 5) == 1 &&
			      wc.src_qp == b->qp->qp_num, "and back");
		ibv_destroy_ah(back);
	}
	outcome(good, "an address handle made from a completion leads back");
}

static void test_ex(struct end *b, struct ibv_ah *ah)
{
	struct ibv_cq *cq = ibv_create_cq(ctx, DEPTH, NULL, NULL, 0);
	struct ibv_qp_init_attr_ex init = {
		.cap = { DEPTH, 0, 2, 0, 64 }, .qp_type = IBV_QPT_UD, .pd = pd,
		.send_cq = cq, .recv_cq = cq, .sq_sig_all = 1,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM,
	};
	struct end e = { .qp = ibv_create_qp_ex(ctx, &init) };
	struct ibv_qp_ex *qpx;
	struct ibv_wc wc[2];
	bool good;

	if (!e.qp)
		die("create_qp_ex");
	ud_to_rts(e.qp, QKEY);
	qpx = ibv_qp_to_qp_ex(e.qp);
	post_recv(b, 100);
	post_recv(b, 100);
	ibv_wr_start(qpx);
	ibv_wr_send(qpx);
	ibv_wr_set_ud_addr(qpx, ah, b->qp->qp_num, QKEY);
	ibv_wr_set_inline_data(qpx, "hello", 5);
	ibv_wr_send_imm(qpx, htonl(7));
	ibv_wr_set_inline_data(qpx, "again", 5);
	ibv_wr_set_ud_addr(qpx, ah, b->qp->qp_num, QKEY | 0x80000000);
	good = check(!ibv_wr_complete(qpx), "ibv_wr_complete");
	good &= check(poll_some(cq, wc, 2, 5) == 2 && !wc[0].status && !wc[1].status, "sent");
	good &= check(poll_some(b->rcq, wc, 2, 5) == 2, "received") &&
		check(!memcmp(b->buf + wc[0].wr_id * SIZE + 40, "hello", 5) &&
		      !memcmp(b->buf + wc[1].wr_id * SIZE + 40, "again", 5) &&
		      wc[1].wc_flags & IBV_WC_WITH_IMM && wc[1].imm_data == htonl(7),
		      "what was received");
	init.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE;
	good &= check(!ibv_create_qp_ex(ctx, &init) && errno == EOPNOTSUPP,
		      "UD with RDMA WRITE");
	ibv_destroy_qp(e.qp);
	ibv_destroy_cq(cq);
	outcome(good, "ibv_wr_set_ud_addr");
}

static void test_qkey(struct end *a, struct end *b, struct ibv_ah *ah)
{
	struct ibv_wc wc[4];
	bool good;

	post_recv(b, 100);
	post_send(a, ah, b->qp->qp_num, QKEY + 1, 8);
	post_send(a, ah, b->qp->qp_num, QKEY, 9);
	good = check(poll_some(a->scq, wc, 2, 5) == 2 && !wc[0].status, "sends");
	good &= check(poll_some(b->rcq, wc, 2, 0.2) == 1 && wc[0].byte_len == 49,
		      "the wrong one got in");
	/* High bit: the sender's own, whatever else is said. */
	post_recv(b, 100);
	post_send(a, ah, b->qp->qp_num, 0x80000000U, 8);
	good &= check(poll_some(a->scq, wc, 1, 5) == 1 &&
		      poll_some(b->rcq, wc, 1, 5) == 1, "the sender's own Q_Key");
	outcome(good, "Q_Keys");
}

/* Hazard 41. */
static void test_too_long(struct end *a, struct end *b, struct ibv_ah *ah)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	struct ibv_wc wc[4];
	bool good;

	post_recv(b, 40 + 100);
	post_send(a, ah, b->qp->qp_num, QKEY, 101);
	post_send(a, ah, b->qp->qp_num, QKEY, 1000);
	post_send(a, ah, b->qp->qp_num, QKEY, 100);
	good = check(poll_some(a->scq, wc, 3, 5) == 3, "sends");
	good &= check(poll_some(b->rcq, wc, 2, 0.2) == 1 && !wc[0].status &&
		      wc[0].byte_len == 140, "what fits");
	good &= check(!ibv_query_qp(b->qp, &attr, IBV_QP_STATE, &init) &&
		      attr.qp_state == IBV_QPS_RTS, "the QP's state");
	outcome(good, "a message longer than the buffer is dropped");
}

static void test_sqe(struct end *a, struct end *b, struct ibv_ah *ah)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_SQE };
	struct ibv_sge sge = { (uintptr_t)a->buf, 8, a->mr->lkey ^ 1 };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
		.wr.ud = { ah, b->qp->qp_num, QKEY },
	}, *bad;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr have;
	struct ibv_wc wc[4];
	bool good;

	ibv_post_send(a->qp, &wr, &bad);
	post_send(a, ah, b->qp->qp_num, QKEY, 8);
	good = check(poll_some(a->scq, wc, 2, 5) == 2 &&
		     wc[0].status == IBV_WC_LOC_PROT_ERR &&
		     wc[1].status == IBV_WC_WR_FLUSH_ERR, "a bad key, then a flush");
	good &= check(!ibv_query_qp(a->qp, &have, IBV_QP_STATE, &init) &&
		      have.qp_state == IBV_QPS_SQE, "state %d", have.qp_state);
	good &= check(!ibv_modify_qp(a->qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE),
		      "SQE to RTS");
	post_recv(b, 100);
	post_send(a, ah, b->qp->qp_num, QKEY, 8);
	good &= check(poll_some(a->scq, wc, 1, 5) == 1 && !wc[0].status &&
		      poll_some(b->rcq, wc, 1, 5) == 1, "afterwards");
	outcome(good, "a bad request: SQE, and back to RTS");
}

/* More than are flushed in one go, by another CPU: none of them is sent in RTS. */
static void test_deep_sqe(struct end *a, struct end *b, struct ibv_ah *ah)
{
	enum { N = 4096, ROUNDS = 20 };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_SQE };
	struct ibv_cq *cq = ibv_create_cq(ctx, N, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {
		.cap = { N, 1, 1, 1, 0 }, .qp_type = IBV_QPT_UD,
		.send_cq = cq, .recv_cq = cq,
	};
	struct ibv_qp *qp = cq ? ibv_create_qp(pd, &init) : NULL;
	struct ibv_sge sge = { (uintptr_t)a->buf, 8, a->mr->lkey }, first = sge;
	struct ibv_send_wr wr[N], *bad;
	int i, round, n, flushed, wrong = 0;
	cpu_set_t before, one;
	struct ibv_wc wc;

	if (!qp)
		die("a deep QP");
	ud_to_rts(qp, QKEY);
	for (i = 0; i < N; i++)
		wr[i] = (struct ibv_send_wr){
			.next = i + 1 < N ? &wr[i + 1] : NULL,
			.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.ud = { ah, b->qp->qp_num, QKEY },
		};
	if (sched_getaffinity(0, sizeof(before), &before))
		die("sched_getaffinity");
	for (round = 0; round < ROUNDS && !wrong; round++) {
		for (i = 0; i < 2; i++) {
			CPU_ZERO(&one);
			CPU_SET(i, &one);
			/* one CPU alone will do, too */
			sched_setaffinity(0, sizeof(one), &one);
			/* on the first a good one; its CPU handles the others, too */
			first.lkey = a->mr->lkey ^ i;
			wr[0].sg_list = &first;
			wr[0].next = i ? &wr[1] : NULL;
			if (ibv_post_send(qp, wr, &bad))
				die("post_send");
			if (poll_some(cq, &wc, 1, 5) != 1)
				die("poll_cq");
			wrong += wc.status != (i ? IBV_WC_LOC_PROT_ERR : IBV_WC_SUCCESS);
		}
		wrong += !!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE);
		for (n = flushed = 0; n < N - 1 && poll_some(cq, &wc, 1, 5) == 1; n++)
			flushed += wc.status == IBV_WC_WR_FLUSH_ERR;
		if (flushed != N - 1)
			check(false, "round %d: %d of %d flushed, %d completions", round,
			      flushed, N - 1, n);
		wrong += flushed != N - 1;
	}
	sched_setaffinity(0, sizeof(before), &before);
	if (ibv_destroy_qp(qp) || ibv_destroy_cq(cq))
		die("destroy");
	outcome(!wrong, "a bad request before 4,095: all are flushed, though RTS comes at once");
}

/* Only addresses of one's own protection domain. */
static void test_foreign_ah(struct end *a, struct end *b)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_SQE };
	struct ibv_pd *mine = pd;
	struct ibv_ah *ah;
	struct ibv_wc wc;
	bool good;

	pd = ibv_alloc_pd(ctx);
	ah = make_ah(&gid);
	post_send(a, ah, b->qp->qp_num, QKEY, 8);
	good = check(poll_some(a->scq, &wc, 1, 5) == 1 &&
		     wc.status == IBV_WC_LOC_QP_OP_ERR, "status %d", wc.status);
	ibv_destroy_ah(ah);
	ibv_dealloc_pd(pd);
	pd = mine;
	if (ibv_modify_qp(a->qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE))
		good = check(false, "back to RTS");
	outcome(good, "an address handle of another protection domain");
}

/* Posts that come while others wait for their time are sent, with nobody to call for them. */
static void test_paced(struct end *a, struct end *b, struct ibv_ah *ah)
{
	struct ibv_qp_rate_limit_attr limit = { .rate_limit = 10000 };
	struct ibv_wc wc[DEPTH];
	struct timespec begin, end;
	bool good = true;
	int round, i, n;
	double took;

	if (ibv_modify_qp_rate_limit(a->qp, &limit))
		die("a rate limit");
	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (round = 0; round < 10 && good; round++) {
		for (i = 0; i < 24; i++) {
			post_recv(b, 40 + 1000);
			if (post_send(a, ah, b->qp->qp_num, QKEY, 1000))
				die("post_send");
			/* some at once, some while those are on their way, some after all */
			if (i % 8 == 3)
				poll_some(b->rcq, wc, 4, 0.05);
		}
		n = poll_some(a->scq, wc, 24, 5);
		good = check(n == 24, "round %d: %d of 24 are complete", round, n);
		while (ibv_poll_cq(b->rcq, DEPTH, wc) > 0)
			;
	}
	/* The first of all goes at once. */
	clock_gettime(CLOCK_MONOTONIC, &end);
	took = end.tv_sec - begin.tv_sec + (end.tv_nsec - begin.tv_nsec) / 1e9;
	good = good && check(took > 239 * 1000 * 8 / 10e6, "240 kB at 10 Mbit/s in %.3f s", took);
	limit.rate_limit = 0;
	ibv_modify_qp_rate_limit(a->qp, &limit);
	outcome(good, "a rate limit");
}

/* mckey does so: what it has posted and not waited for comes all the same. */
static void test_gone(struct end *b)
{
	enum { N = 20 };
	struct ibv_wc wc[N];
	bool good = true;
	int round, i;

	for (round = 0; round < 50 && good; round++) {
		struct end *a = end_new(QKEY, 0);
		struct ibv_ah *ah = make_ah(&gid);

		for (i = 0; i < N; i++)
			post_recv(b, 100);
		for (i = 0; i < N; i++)
			if (post_send(a, ah, b->qp->qp_num, QKEY, 8))
				die("post_send");
		if (ibv_destroy_ah(ah))
			die("destroy_ah");
		end_free(a);
		i = poll_some(b->rcq, wc, N, 5);
		good = check(i == N, "round %d: %d of %d came", round, i, N);
	}
	outcome(good, "what was posted before its address handle and QP went");
}

/* Each member of the group gets it, and who does not want its own does not. */
static void test_multicast(const union ibv_gid *group)
{
	struct end *e[4];
	struct ibv_ah *ah = make_ah(group);
	struct ibv_wc wc[DEPTH];
	bool good = true;
	unsigned int i, k, round;

	if (!ah)
		die("an address handle for the group");
	for (i = 0; i < 4; i++)
		e[i] = end_new(QKEY, i == 3 ? IBV_QP_CREATE_BLOCK_SELF_MCAST_LB : 0);
	for (i = 0; i < 4; i++)
		if (ibv_attach_mcast(e[i]->qp, group, 0))
			die("ibv_attach_mcast");
	good &= check(!ibv_attach_mcast(e[0]->qp, group, 0), "again");
	for (round = 0; round < 50 && good; round++) {
		struct end *from = e[round % 4];
		unsigned int n = round < 8 ? 1 : 10;

		for (i = 0; i < 4; i++)
			for (k = 0; k < n; k++)
				post_recv(e[i], 200);
		for (k = 0; k < n; k++)
			post_send(from, ah, 0xffffff, QKEY, 20 + k);
		good &= check(poll_some(from->scq, wc, n, 5) == (int)n, "round %u: sends", round);
		for (k = 0; k < n; k++)
			good &= check(!wc[k].status, "round %u: status %d", round, wc[k].status);
		for (i = 0; i < 4; i++) {
			bool own = from == e[3] && i == 3;
			int want = own ? 0 : n;
			int have = poll_some(e[i]->rcq, wc, n, own ? 0.1 : 5);

			good &= check(have == want, "round %u: %d copies of %d at %u", round,
				      have, want, i);
			for (k = 0; (int)k < have; k++)
				good &= check(!wc[k].status && wc[k].byte_len == 60 + k &&
					      wc[k].src_qp == from->qp->qp_num,
					      "round %u: copy %u at %u", round, k, i);
			/* Those not used are taken back. */
			if (own) {
				struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

				ibv_modify_qp(e[i]->qp, &attr, IBV_QP_STATE);
				ud_to_rts(e[i]->qp, QKEY);
			}
		}
	}
	outcome(good, "each member of a multicast group gets its copy");

	/* One leaves. */
	good = check(!ibv_detach_mcast(e[1]->qp, group, 0), "leave");
	good &= check(ibv_detach_mcast(e[1]->qp, group, 0), "leave twice");
	for (i = 0; i < 3; i++)
		post_recv(e[i], 200);
	post_send(e[0], ah, 0xffffff, QKEY, 20);
	good &= check(poll_some(e[0]->rcq, wc, 1, 5) == 1 &&
		      poll_some(e[2]->rcq, wc, 1, 5) == 1 &&
		      poll_some(e[1]->rcq, wc, 1, 0.1) == 0, "who has left");
	good &= check(ibv_destroy_qp(e[0]->qp) == EBUSY, "a member was destroyed");

	/* The kernel takes a LID for part of a group's name; Ethernet knows none. */
	good &= check(!ibv_attach_mcast(e[2]->qp, group, 0xc001), "by another LID");
	for (k = 0; k < 2; k++) {
		post_recv(e[2], 200);
		post_recv(e[2], 200);
		post_send(e[0], ah, 0xffffff, QKEY, 20);
		good &= check(poll_some(e[0]->scq, wc, 1, 5) == 1 &&
			      poll_some(e[2]->rcq, wc, 2, 0.1) == 1, "copies for two LIDs");
		if (!k)
			good &= check(!ibv_detach_mcast(e[2]->qp, group, 0xc001) &&
				      ibv_detach_mcast(e[2]->qp, group, 0xc001), "leave by LID");
	}
	for (i = 0; i < 4; i++) {
		if (i != 1)
			good &= check(!ibv_detach_mcast(e[i]->qp, group, 0), "detach");
		end_free(e[i]);
	}
	ibv_destroy_ah(ah);
	outcome(good, "who has left gets none, who is in is not destroyed");

	/* Left to the end of the program, which mcast.sh looks behind. */
	e[0] = end_new(QKEY, 0);
	good = check(!ibv_attach_mcast(e[0]->qp, group, 0) &&
		     !ibv_attach_mcast(e[0]->qp, group, 1) &&
		     !ibv_detach_mcast(e[0]->qp, group, 0), "two LIDs");
	outcome(good, "a queue pair is left in a group");
}

/* How a member of a group meets what comes. */
enum meets { TAKES, OTHER_QKEY, NO_RECEIVE, TOO_SHORT, NOT_READY, WAYS };

static void meet(struct end *e, enum meets how)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	if (ibv_modify_qp(e->qp, &attr, IBV_QP_STATE))
		die("RESET");
	if (how == NOT_READY)
		ud_to_init(e->qp, QKEY);
	else
		ud_to_rts(e->qp, how == OTHER_QKEY ? QKEY + 1 : QKEY);
	if (how != NO_RECEIVE)
		post_recv(e, how == TOO_SHORT ? 40 + 99 : 200);
}

/* Packet buffers that the kernel has in use, whoever's they are. */
static long packet_buffers(void)
{
	FILE *f = fopen("/sys/kernel/slab/skbuff_head_cache/shrink", "w");
	char line[400];
	long n = -1;

	/* Has KASAN give back what it keeps of freed ones. */
	if (f) {
		fputs("1", f);
		fclose(f);
	}
	f = fopen("/proc/slabinfo", "r");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "skbuff_head_cache %ld", &n) == 1)
			break;
	if (n < 0)
		die("/proc/slabinfo");
	fclose(f);
	return n;
}

/*
 * Hazard 33: the members of a group read one packet in turn.  Those that refuse it stand
 * in every place of the row, the last one among them, which may be the one that frees
 * it: the others still get every byte, they get nothing, and no packet is left over.
 */
static void test_refusing(const union ibv_gid *group)
{
	enum { MEMBERS = 4, LEN = 100, MANY = 250, ONCE = 16 };
	struct end *from = end_new(QKEY, 0), *e[MEMBERS];
	struct ibv_ah *ah = make_ah(group);
	uint8_t *sent = from->buf + DEPTH * SIZE;
	unsigned int i, k, how, who;
	struct ibv_wc wc[DEPTH];
	long before, left;
	bool good = true;

	if (!ah)
		die("an address handle for the group");
	for (i = 0; i < MEMBERS; i++) {
		e[i] = end_new(QKEY, 0);
		if (ibv_attach_mcast(e[i]->qp, group, 0))
			die("ibv_attach_mcast");
	}
	/* who: a bit for each member that refuses, up to all of them */
	for (how = OTHER_QKEY; how < WAYS; how++) {
		for (who = 1; who < 1U << MEMBERS && good; who++) {
			for (i = 0; i < MEMBERS; i++)
				meet(e[i], who >> i & 1 ? how : TAKES);
			for (k = 0; k < LEN; k++)
				sent[k] = how * 61 + who * 7 + k;
			post_send(from, ah, 0xffffff, QKEY, LEN);
			good = check(poll_some(from->scq, wc, 1, 5) == 1 && !wc[0].status, "sent");
			for (i = 0; i < MEMBERS; i++) {
				bool takes = !(who >> i & 1);
				int have = poll_some(e[i]->rcq, wc, 1, takes ? 5 : 0.005);
				const uint8_t *got;

				good &= check(have == takes, "refusal %u by %x: %d copies at %u",
					      how, who, have, i);
				if (!good || !takes)
					continue;
				got = e[i]->buf + wc[0].wr_id * SIZE + 40;
				good &= check(!wc[0].status && wc[0].byte_len == 40 + LEN &&
					      !memcmp(got, sent, LEN) && got[LEN] == 0xee,
					      "refusal %u by %x: bytes at %u", how, who, i);
			}
		}
	}
	outcome(good, "members that refuse a packet leave it to the others");

	/* all in the same way, and the last one in each */
	before = packet_buffers();
	for (how = OTHER_QKEY; how < WAYS; how++) {
		for (who = 0; who < 2; who++) {
			for (i = 0; i < MEMBERS; i++)
				meet(e[i], who && i < MEMBERS - 1 ? NO_RECEIVE : how);
			for (i = 0; i < MANY; i++) {
				for (k = 0; k < ONCE; k++)
					post_send(from, ah, 0xffffff, QKEY, LEN);
				if (poll_some(from->scq, wc, ONCE, 5) != ONCE)
					die("sends that no member takes");
			}
		}
	}
	left = packet_buffers() - before;
	outcome(check(left < 2000, "%ld are left over", left),
		"none of 32,000 packets that all members refuse is left over");

	for (i = 0; i < MEMBERS; i++) {
		if (ibv_detach_mcast(e[i]->qp, group, 0))
			die("ibv_detach_mcast");
		end_free(e[i]);
	}
	ibv_destroy_ah(ah);
	end_free(from);
}

#define TURNS	200

struct member {
	struct end *e;
	const union ibv_gid *group;
	pthread_barrier_t *together;
	int wrong;
};

/* In with the others, out with the others; between the two main() has a look. */
static void *in_and_out(void *p)
{
	struct member *m = p;
	int i;

	for (i = 0; i < TURNS; i++) {
		pthread_barrier_wait(m->together);
		m->wrong += !!ibv_attach_mcast(m->e->qp, m->group, 0);
		pthread_barrier_wait(m->together);
		pthread_barrier_wait(m->together);
		m->wrong += !!ibv_detach_mcast(m->e->qp, m->group, 0);
	}
	return NULL;
}

/*
 * The first two members of a group come at once, and leave at once: both get what is
 * sent while they are in, for the netdev is in the group before either is told so.
 */
static void test_at_once(const union ibv_gid *group)
{
	struct end *from = end_new(QKEY, 0);
	struct ibv_ah *ah = make_ah(group);
	pthread_barrier_t together;
	struct member m[2];
	struct ibv_wc wc;
	pthread_t t[2];
	bool good = true;
	int i, k;

	if (!ah || pthread_barrier_init(&together, NULL, 3))
		die("a group");
	for (k = 0; k < 2; k++) {
		m[k] = (struct member) { end_new(QKEY, 0), group, &together };
		if (pthread_create(&t[k], NULL, in_and_out, &m[k]))
			die("pthread_create");
	}
	for (i = 0; i < TURNS; i++) {
		pthread_barrier_wait(&together);
		for (k = 0; k < 2; k++)
			post_recv(m[k].e, 200);
		pthread_barrier_wait(&together);
		post_send(from, ah, 0xffffff, QKEY, 20);
		good &= check(poll_some(from->scq, &wc, 1, 5) == 1, "turn %d: sent", i);
		for (k = 0; k < 2; k++)
			good &= check(poll_some(m[k].e->rcq, &wc, 1, good ? 5 : 0.1) == 1,
				      "turn %d: member %d gets it", i, k);
		pthread_barrier_wait(&together);
	}
	for (k = 0; k < 2; k++) {
		pthread_join(t[k], NULL);
		good &= check(!m[k].wrong, "member %d: %d calls failed", k, m[k].wrong);
		end_free(m[k].e);
	}
	pthread_barrier_destroy(&together);
	ibv_destroy_ah(ah);
	end_free(from);
	outcome(good, "a group's first two members come and leave at once");
}

/*
 * What one packet from the network can have this machine copy is bounded: 64 datagrams that
 * travel as one, for 64 members.  What is too much concerns no packet after it.
 */
static void test_copies(const union ibv_gid *group)
{
	enum { MEMBERS = 64, LEN = 16, MOST = 2048 };
	struct end *from = end_new(QKEY, 0), *e[MEMBERS];
	struct ibv_sge sge = { (uintptr_t)from->buf, LEN, from->mr->lkey };
	struct ibv_send_wr wr[DEPTH], *bad;
	struct ibv_ah *ah = make_ah(group);
	struct ibv_wc wc[DEPTH];
	int i, k, have = 0, next = 0;

	for (i = 0; i < MEMBERS; i++) {
		e[i] = end_new(QKEY, 0);
		must(!ibv_attach_mcast(e[i]->qp, group, 0), "ibv_attach_mcast");
		for (k = 0; k < DEPTH; k++)
			post_recv(e[i], 40 + LEN);
	}
	for (k = 0; k < DEPTH; k++)
		wr[k] = (struct ibv_send_wr) {
			.next = k + 1 < DEPTH ? &wr[k + 1] : NULL,
			.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.ud = { .ah = ah, .remote_qpn = 0xffffff, .remote_qkey = QKEY },
		};
	must(!ibv_post_send(from->qp, wr, &bad), "post_send");
	must(poll_some(from->scq, wc, DEPTH, 5) == DEPTH, "sends");
	for (i = 0; i < MEMBERS; i++)
		have += poll_some(e[i]->rcq, wc, DEPTH, i ? 0.01 : 1);
	for (i = 0; i < MEMBERS; i++)
		post_recv(e[i], 40 + LEN);
	post_send(from, ah, 0xffffff, QKEY, LEN);
	for (i = 0; i < MEMBERS; i++)
		next += poll_some(e[i]->rcq, wc, 1, 5);
	outcome(check(have == MOST && next == MEMBERS, "%d copies, of the next %d", have, next),
		"one packet makes %d copies at most", MOST);
	for (i = 0; i < MEMBERS; i++) {
		must(!ibv_detach_mcast(e[i]->qp, group, 0), "ibv_detach_mcast");
		end_free(e[i]);
	}
	ibv_destroy_ah(ah);
	end_free(from);
}

static void stay(const union ibv_gid *group)
{
	if (ibv_attach_mcast(end_new(QKEY, 0)->qp, group, 0))
		die("ibv_attach_mcast");
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct end *a, *b;
	union ibv_gid group;
	struct ibv_ah *ah;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc < 3)
		return 2;
	for (; *list; list++)
		if (!strcmp(ibv_get_device_name(*list), argv[1]))
			ctx = ibv_open_device(*list);
	gid_index = atoi(argv[2]);
	if (!ctx || ibv_query_gid(ctx, 1, gid_index, &gid))
		die(argv[1]);
	pd = ibv_alloc_pd(ctx);
	if (argc > 3 && inet_pton(AF_INET6, argv[3], group.raw) != 1)
		return 2;
	if (argc > 4)
		stay(&group);
	ah = make_ah(&gid);
	if (!pd || !ah)
		die("an address handle");
	a = end_new(QKEY, 0);
	b = end_new(QKEY, 0);
	test_message(a, b, ah);
	test_reply(a, b, ah);
	test_ex(b, ah);
	test_qkey(a, b, ah);
	test_too_long(a, b, ah);
	test_sqe(a, b, ah);
	test_deep_sqe(a, b, ah);
	test_foreign_ah(a, b);
	test_paced(a, b, ah);
	test_gone(b);
	if (argc > 3) {
		test_at_once(&group);
		test_refusing(&group);
		test_copies(&group);
		test_multicast(&group);
	}
	ibv_destroy_ah(ah);
	end_free(a);
	end_free(b);
	ibv_dealloc_pd(pd);
	ibv_close_device(ctx);
	printf("1..%d\n", count);
	return failed != 0;
}
