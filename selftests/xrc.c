// SPDX-License-Identifier: GPL-2.0
/*
 * xrc.c - XRC between processes that share a domain by a file, and what a peer
 * must not get: SRQs of other domains, numbers that are none, memory of others
 *
 *	xrc DEV-A GID-INDEX-A DEV-B GID-INDEX-B FILE
 *
 * a sends (XRC_SEND QP), b's target QP receives.  FILE is created.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "pair.h"

#define LEN	(64 * KB)
#define SGES	32	/* as many as there may be */

static const char *file;
static struct ibv_xrcd *xrcd;		/* of b, by FILE */
static struct ibv_qp *ini, *tgt;
static struct ibv_mr *near_mr, *far_mr;
static char *near, *far;

/* --- objects ------------------------------------------------------------------------ */

static struct ibv_xrcd *domain(struct ibv_context *ctx, int fd, int flags)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = fd,
		.oflags = flags,
	};

	return ibv_open_xrcd(ctx, &attr);
}

static struct ibv_srq *xrc_srq_of(struct ibv_pd *pd, struct ibv_xrcd *in, struct ibv_cq *cq,
				  uint32_t max_sge)
{
	struct ibv_srq_init_attr_ex init = {
		.attr = { .max_wr = DEPTH, .max_sge = max_sge },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = pd,
		.xrcd = in,
		.cq = cq,
	};

	return ibv_create_srq_ex(pd->context, &init);
}

static struct ibv_srq *xrc_srq(struct ibv_pd *pd, struct ibv_xrcd *in, struct ibv_cq *cq)
{
	return xrc_srq_of(pd, in, cq, 1);
}

static uint32_t number(struct ibv_srq *srq)
{
	uint32_t num = 0;

	if (!srq || ibv_get_srq_num(srq, &num))
		die("srq");
	return num;
}

static int post_srq(struct ibv_srq *srq, void *to, uint32_t len, uint32_t lkey)
{
	struct ibv_sge sge = { (uintptr_t)to, len, lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_srq_recv(srq, &wr, &bad);
}

static struct ibv_qp *xrc_send_qp(void)
{
	/* a CQ that it has no use for may go before it */
	struct ibv_cq *unused = ibv_create_cq(a.ctx, DEPTH, NULL, NULL, 0);
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_XRC_SEND,
		.send_cq = a.cq,
		.recv_cq = unused,
		.cap = { .max_send_wr = DEPTH, .max_send_sge = 1, .max_inline_data = 64 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = a.pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE |
				  IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_WRITE,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(a.ctx, &init);

	if (!unused || !qp || ibv_destroy_cq(unused))
		die("XRC_SEND QP");
	return qp;
}

static struct ibv_srq *given;	/* with the next XRC_RECV QP, which needs none */

static struct ibv_qp *xrc_recv_qp(struct ibv_xrcd *in)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = in,
		.srq = given,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(b.ctx, &init);

	if (!qp)
		die("XRC_RECV QP");
	return qp;
}

static void conn_open(void)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(b.cq, 1, &wc) > 0)
		;
	a.cq = ibv_create_cq(a.ctx, DEPTH * 4, NULL, NULL, 0);
	if (!a.cq)
		die("create_cq");
	ini = xrc_send_qp();
	tgt = xrc_recv_qp(xrcd);
	connect_qp(&a, ini, &b, tgt->qp_num);
	connect_qp(&b, tgt, &a, ini->qp_num);
}

static void conn_close(void)
{
	if (ibv_destroy_qp(ini) || (tgt && ibv_destroy_qp(tgt)) || ibv_destroy_cq(a.cq))
		die("destroy");
}

static void xrun(const char *name, void (*fn)(void))
{
	good = true;
	conn_open();
	fn();
	conn_close();
	point(name);
}

/* One request for an SRQ; the status of its completion, or -1. */
static int request(enum ibv_wr_opcode op, uint32_t srqn, uint32_t len, uint64_t theirs,
		   uint32_t rkey)
{
	struct ibv_sge sge = { (uintptr_t)near, len, near_mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = op,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { theirs, rkey },
		.qp_type.xrc.remote_srqn = srqn,
	}, *bad;

	return ibv_post_send(ini, &wr, &bad) ? -1 : done(a.cq, NULL);
}

static int send_to(uint32_t srqn, uint32_t len)
{
	return request(IBV_WR_SEND, srqn, len, 0, 0);
}

/* --- another process ------------------------------------------------------------------ */

/* What the two tell each other. */
struct word {
	uint32_t srqn, rkey;
	uint64_t addr;
	int state;
	char text[64];
};

static bool tell(int fd, const struct word *w)
{
	return write(fd, w, sizeof(*w)) == sizeof(*w);
}

static bool hear(int fd, struct word *w)
{
	return read(fd, w, sizeof(*w)) == sizeof(*w);
}

/* It has opened the domain by its file and the QP by its number; nothing is inherited. */
static int other(const char *dev, const char *sock, const char *qpn)
{
	int fd = atoi(sock), i;
	char *buf = aligned_alloc(4096, LEN);
	struct ibv_qp_open_attr oa = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
			     IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = atoi(qpn),
		.qp_type = IBV_QPT_XRC_RECV,
	};
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_xrcd *in, *alone;
	struct ibv_srq *srq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	struct word w = {};
	struct ibv_wc wc;

	b.ctx = open_device(dev);
	b.pd = ibv_alloc_pd(b.ctx);
	b.cq = ibv_create_cq(b.ctx, DEPTH, NULL, NULL, 0);
	in = domain(b.ctx, open(file, O_RDONLY), 0);
	alone = domain(b.ctx, -1, O_CREAT);
	mr = ibv_reg_mr(b.pd, buf, LEN, ALL);
	if (!b.pd || !b.cq || !in || !alone || !mr)
		die("the other process");
	/* not by way of another domain, nor one that is not there */
	oa.xrcd = alone;
	if (ibv_open_qp(b.ctx, &oa))
		return 3;
	oa.xrcd = in;
	oa.qp_num ^= 1 << 23;
	if (ibv_open_qp(b.ctx, &oa))
		return 4;
	oa.qp_num ^= 1 << 23;
	qp = ibv_open_qp(b.ctx, &oa);
	if (!qp || ibv_query_qp(qp, &attr, IBV_QP_STATE, &init))
		return 5;
	w.state = attr.qp_state;
	srq = xrc_srq(b.pd, in, b.cq);
	w.srqn = number(srq);
	w.rkey = mr->rkey;
	w.addr = (uintptr_t)buf + 32 * KB;
	for (i = 0; i < 2; i++)
		if (post_srq(srq, buf, LEN / 2, mr->lkey))
			return 6;
	strcpy(buf + 48 * KB, "from the other process");
	if (!tell(fd, &w))
		return 7;
	/* a message each time; the second when its maker has let go of QP and domain */
	for (i = 0; i < 2; i++) {
		if (done(b.cq, &wc) || wc.opcode != IBV_WC_RECV || wc.byte_len != 64)
			return 8;
		memcpy(w.text, buf, 64);
		if (!tell(fd, &w))
			return 9;
	}
	/* what was written by the peer in between */
	if (!hear(fd, &w) || memcmp(buf + 32 * KB, w.text, 64))
		return 10;
	if (ibv_destroy_qp(qp) || ibv_destroy_srq(srq) || ibv_close_xrcd(in) ||
	    ibv_close_xrcd(alone))
		return 11;
	return ibv_dereg_mr(mr) || ibv_destroy_cq(b.cq) || ibv_dealloc_pd(b.pd) ? 12 : 0;
}

static void t_processes(void)
{
	struct ibv_qp_open_attr oa = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
			     IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = tgt->qp_num,
		.qp_type = IBV_QPT_XRC_RECV,
	};
	int sv[2], status, fd;
	char sock[16], qpn[16];
	struct word w;
	pid_t pid;

	CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sv));
	snprintf(sock, sizeof(sock), "%d", sv[1]);
	snprintf(qpn, sizeof(qpn), "%u", tgt->qp_num);
	pid = fork();
	if (!pid) {
		close(sv[0]);
		execl("/proc/self/exe", "xrc", "other", ibv_get_device_name(b.ctx->device),
		      sock, qpn, file, NULL);
		_exit(127);
	}
	close(sv[1]);
	CHECK(pid > 0 && hear(sv[0], &w));
	CHECK(w.state == IBV_QPS_RTS);
	scramble(near, 64);
	CHECK(!send_to(w.srqn, 64));
	CHECK(hear(sv[0], &w) && !memcmp(w.text, near, 64));
	/* RDMA: the memory is the SRQ's owner's */
	CHECK(!request(IBV_WR_RDMA_WRITE, w.srqn, 64, w.addr, w.rkey));
	memset(near, 0, 64);
	CHECK(!request(IBV_WR_RDMA_READ, w.srqn, 32, w.addr + 16 * KB, w.rkey));
	CHECK(!strcmp(near, "from the other process"));
	/* the QP is alive for as long as anybody has it open, and the domain too */
	CHECK(!ibv_destroy_qp(tgt));
	tgt = NULL;
	CHECK(!ibv_close_xrcd(xrcd));
	CHECK(!request(IBV_WR_RDMA_READ, w.srqn, 64, w.addr, w.rkey));
	CHECK(!memcmp(near, w.text, 64));
	CHECK(!send_to(w.srqn, 64));
	CHECK(hear(sv[0], &w) && !memcmp(w.text, near, 64));
	/* it writes no more: what it was given first is what it still has */
	CHECK(tell(sv[0], &w));
	CHECK(waitpid(pid, &status, 0) == pid);
	if (status)
		printf("# the other process: %#x\n", status);
	CHECK(!status);
	close(sv[0]);
	/* gone with its last user */
	fd = open(file, O_RDONLY);
	xrcd = domain(b.ctx, fd, O_CREAT);
	close(fd);
	CHECK(xrcd);
	oa.xrcd = xrcd;
	CHECK(!ibv_open_qp(b.ctx, &oa));
}

/* --- what the peer may ask ------------------------------------------------------------ */

static void t_domains(void)
{
	int fd = open(file, O_RDONLY);
	struct ibv_xrcd *same = domain(b.ctx, fd, 0), *excl;
	struct ibv_xrcd *alone = domain(b.ctx, -1, O_CREAT);
	struct ibv_srq *s1 = xrc_srq(b.pd, same, b.cq), *s2 = xrc_srq(b.pd, alone, b.cq);

	CHECK(same && alone && s1 && s2);
	excl = domain(b.ctx, fd, O_CREAT | O_EXCL);
	CHECK(!excl);
	CHECK(!post_srq(s1, far, LEN, far_mr->lkey));
	CHECK(!post_srq(s2, far, LEN, far_mr->lkey));
	/* one domain, opened twice: the QP finds the SRQ */
	CHECK(!send_to(number(s1), 64) && !done(b.cq, NULL));
	/* another domain: it does not */
	CHECK(send_to(number(s2), 64) == IBV_WC_REM_INV_REQ_ERR);
	CHECK(ibv_close_xrcd(alone) == EBUSY);
	CHECK(!ibv_destroy_srq(s1) && !ibv_destroy_srq(s2));
	CHECK(!ibv_close_xrcd(same) && !ibv_close_xrcd(alone));
	close(fd);
}

static void t_numbers(void)
{
	struct ibv_srq_init_attr basic = { .attr = { DEPTH, 1, 0 } };
	struct ibv_srq *plain = ibv_create_srq(b.pd, &basic);
	struct ibv_srq *srq = xrc_srq(b.pd, xrcd, b.cq);
	uint32_t num = number(srq), i;
	const uint32_t bad[] = { 0, num + 1, num ^ (1 << 23), 0xffffff };

	CHECK(plain && ibv_get_srq_num(plain, &i));
	CHECK(!post_srq(srq, far, LEN, far_mr->lkey));
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CHECK(send_to(bad[i], 64) == IBV_WC_REM_INV_REQ_ERR);
		conn_close();
		conn_open();
	}
	/* destroyed: the number means nothing, and is not given to the next at once */
	CHECK(!ibv_destroy_srq(srq));
	CHECK(send_to(num, 64) == IBV_WC_REM_INV_REQ_ERR);
	srq = xrc_srq(b.pd, xrcd, b.cq);
	CHECK(number(srq) != num);
	CHECK(!ibv_destroy_srq(srq) && !ibv_destroy_srq(plain));
}

/*
 * An SRQ named when the QP is made means nothing: each request names its own, which may have
 * more SGEs.
 */
static void t_given(void)
{
	struct ibv_srq *small = xrc_srq_of(b.pd, xrcd, b.cq, 0);
	struct ibv_srq *large = xrc_srq_of(b.pd, xrcd, b.cq, SGES);
	struct ibv_sge sge[SGES];
	struct ibv_recv_wr wr = { .sg_list = sge, .num_sge = SGES }, *bad;
	int i, k;

	CHECK(small && large);
	conn_close();
	given = small;
	conn_open();
	given = NULL;
	for (k = 0; k < 20; k++) {
		scramble(near, SGES * 64);
		memset(far, 0, SGES * 128);
		for (i = 0; i < SGES; i++)
			sge[i] = (struct ibv_sge){ (uintptr_t)far + 128 * i, 64, far_mr->lkey };
		CHECK(!ibv_post_srq_recv(large, &wr, &bad));
		CHECK(!send_to(number(large), SGES * 64) && !done(b.cq, NULL));
		for (i = 0; i < SGES; i++)
			CHECK(!memcmp(far + 128 * i, near + 64 * i, 64));
	}
	/* nor is it held for that */
	CHECK(!ibv_destroy_srq(small));
	conn_close();
	CHECK(!ibv_destroy_srq(large));
	conn_open();
}

/* The domain that counts is the SRQ's: by the wrong SRQ no memory can be had. */
static void t_memory(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(b.ctx);
	struct ibv_mr *theirs = ibv_reg_mr(pd, far, LEN, ALL);
	struct ibv_srq *s1 = xrc_srq(b.pd, xrcd, b.cq), *s2 = xrc_srq(pd, xrcd, b.cq);
	uint64_t at = (uintptr_t)far;
	struct ibv_wc wc;

	CHECK(pd && theirs && s1 && s2);
	CHECK(!request(IBV_WR_RDMA_READ, number(s1), 64, at, far_mr->rkey));
	CHECK(!request(IBV_WR_RDMA_READ, number(s2), 64, at, theirs->rkey));
	CHECK(request(IBV_WR_RDMA_READ, number(s1), 64, at, theirs->rkey) ==
	      IBV_WC_REM_ACCESS_ERR);
	conn_close();
	CHECK(ibv_destroy_srq(s1) == 0 && ibv_destroy_srq(s2) == 0);
	conn_open();
	s1 = xrc_srq(b.pd, xrcd, b.cq);
	s2 = xrc_srq(pd, xrcd, b.cq);
	CHECK(request(IBV_WR_RDMA_WRITE, number(s2), 64, at, far_mr->rkey) ==
	      IBV_WC_REM_ACCESS_ERR);
	CHECK(!ibv_destroy_srq(s1) && !ibv_destroy_srq(s2));
	conn_close();
	conn_open();
	/* a receive with another domain's key fails, and says so to both */
	s1 = xrc_srq(b.pd, xrcd, b.cq);
	CHECK(!post_srq(s1, far, LEN, theirs->lkey));
	CHECK(send_to(number(s1), 64) == IBV_WC_REM_OP_ERR);
	CHECK(done(b.cq, &wc) == IBV_WC_LOC_PROT_ERR);
	CHECK(!ibv_destroy_srq(s1) && !ibv_dereg_mr(theirs) && !ibv_dealloc_pd(pd));
}

static void t_atomic_write(void)
{
	struct ibv_srq *srq = xrc_srq(b.pd, xrcd, b.cq);
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(ini);
	uint64_t value = 0x1122334455667788, *there = (uint64_t *)far;
	struct ibv_qp_init_attr_ex room = {
		.qp_type = IBV_QPT_XRC_SEND,
		.cap = { .max_send_wr = DEPTH },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_ATOMIC_WRITE,
	};
	struct ibv_qp *small;
	struct ibv_wc wc;
	int i;

	CHECK(qp && srq);
	/* it brings its eight bytes along, wherever a program has no use for more */
	room.pd = a.pd;
	room.send_cq = a.cq;
	small = ibv_create_qp_ex(a.ctx, &room);
	CHECK(small && room.cap.max_inline_data >= sizeof(value) && !ibv_destroy_qp(small));
	for (i = 0; i < 20; i++) {
		value += i;
		there[i] = there[i + 1] = 0;
		ibv_wr_start(qp);
		qp->wr_id = i;
		qp->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_atomic_write(qp, far_mr->rkey, (uintptr_t)&there[i], &value);
		ibv_wr_set_xrc_srqn(qp, number(srq));
		CHECK(!ibv_wr_complete(qp));
		CHECK(!done(a.cq, &wc) && wc.opcode == IBV_WC_ATOMIC_WRITE);
		CHECK(there[i] == value && !there[i + 1]);
	}
	/* to an address that is none for it */
	ibv_wr_start(qp);
	ibv_wr_atomic_write(qp, far_mr->rkey, (uintptr_t)far + 4, &value);
	ibv_wr_set_xrc_srqn(qp, number(srq));
	CHECK(!ibv_wr_complete(qp));
	CHECK(done(a.cq, NULL) == IBV_WC_REM_INV_REQ_ERR);
	CHECK(!ibv_destroy_srq(srq));
}

/* --- an SRQ that goes under traffic ---------------------------------------------------- */

static volatile bool stop;

static void *feed(void *arg)
{
	struct ibv_srq *srq = arg;
	struct ibv_wc wc[16];

	while (!stop) {
		post_srq(srq, far, 4096, far_mr->lkey);
		ibv_poll_cq(b.cq, 16, wc);
	}
	return NULL;
}

static void t_destroyed(void)
{
	int round, i, ret, ended = 0;
	struct ibv_srq *srq;
	pthread_t thread;
	struct ibv_wc wc;
	uint32_t num;

	for (round = 0; round < 20; round++) {
		srq = xrc_srq(b.pd, xrcd, b.cq);
		num = number(srq);
		stop = false;
		CHECK(!pthread_create(&thread, NULL, feed, srq));
		/* a window of requests all the time, the SRQ destroyed in the midst of it */
		for (i = 0; i < 200; i++) {
			struct ibv_sge sge = { (uintptr_t)near, 3000, near_mr->lkey };
			struct ibv_send_wr wr = {
				.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
				.send_flags = IBV_SEND_SIGNALED,
				.qp_type.xrc.remote_srqn = num,
			}, *bad;

			if (i == 60 + round * 5) {
				stop = true;
				pthread_join(thread, NULL);
				CHECK(!ibv_destroy_srq(srq));
			}
			CHECK(!ibv_post_send(ini, &wr, &bad));
			if (i >= 8) {
				ret = done(a.cq, &wc);
				CHECK(ret >= 0);
				if (ret)
					break;
			}
		}
		if (!stop) {
			stop = true;
			pthread_join(thread, NULL);
			CHECK(!ibv_destroy_srq(srq));
		}
		/* between two messages, or in the midst of one */
		ended += ret == IBV_WC_REM_INV_REQ_ERR || ret == IBV_WC_REM_OP_ERR;
		conn_close();
		conn_open();
	}
	CHECK(ended == 20);
}

int main(int argc, char **argv)
{
	int fd;

	if (argc == 6 && !strcmp(argv[1], "other")) {
		file = argv[5];
		return other(argv[2], argv[3], argv[4]);
	}
	if (argc != 6)
		return 2;
	end_open(&a, argv[1], argv[2]);
	end_open(&b, argv[3], argv[4]);
	file = argv[5];
	near = aligned_alloc(4096, LEN);
	far = aligned_alloc(4096, LEN);
	b.cq = ibv_create_cq(b.ctx, DEPTH * 4, NULL, NULL, 0);	/* of the SRQs */
	near_mr = ibv_reg_mr(a.pd, near, LEN, ALL);
	far_mr = ibv_reg_mr(b.pd, far, LEN, ALL);
	fd = open(file, O_RDONLY | O_CREAT, 0600);
	xrcd = domain(b.ctx, fd, O_CREAT);
	close(fd);
	if (!near_mr || !far_mr || !xrcd || !b.cq)
		die("set-up");

	xrun("a domain shared by a file; another process opens the QP, and keeps it", t_processes);
	xrun("an SRQ of another domain is not found", t_domains);
	xrun("numbers that are no SRQ's", t_numbers);
	xrun("an SRQ named when the QP is made, and receives of 32 SGEs in another", t_given);
	xrun("memory is that of the SRQ's protection domain", t_memory);
	xrun("ATOMIC WRITE", t_atomic_write);
	xrun("an SRQ destroyed under traffic, 20 times", t_destroyed);
	printf("1..%d\n", count);
	return failed != 0;
}
