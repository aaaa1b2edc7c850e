// SPDX-License-Identifier: GPL-2.0
/*
 * objects.c - memory regions, completion queues and address handles: what they
 * must do, what they must refuse and with which errno
 *
 *	objects DEV-A GID-INDEX-A DEV-B GID-INDEX-B
 *
 * Plain libibverbs; a QP on each device, connected to each other, shows that the
 * bytes of a region are where they should be.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "points.h"

#define DEPTH	64
#define MB	(1UL << 20)
#define RW	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
		 IBV_ACCESS_REMOTE_READ)

struct end {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *chan;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	union ibv_gid gid;
	int gid_index;
};

static struct end a, b;

static void run(const char *name, void (*fn)(void))
{
	good = true;
	fn();
	point(name);
}

static void open_end(struct end *e, const char *name, const char *gid)
{
	struct ibv_qp_init_attr init = {
		.cap = { DEPTH, DEPTH, 4, 4, 64 },
		.qp_type = IBV_QPT_RC,
	};

	e->ctx = open_device(name);
	e->gid_index = atoi(gid);
	if (ibv_query_gid(e->ctx, 1, e->gid_index, &e->gid))
		die("query_gid");
	e->pd = ibv_alloc_pd(e->ctx);
	e->chan = ibv_create_comp_channel(e->ctx);
	if (!e->pd || !e->chan)
		die("alloc_pd");
	e->cq = ibv_create_cq(e->ctx, DEPTH * 2, NULL, e->chan, 0);
	if (!e->cq)
		die("create_cq");
	init.send_cq = e->cq;
	init.recv_cq = e->cq;
	e->qp = ibv_create_qp(e->pd, &init);
	if (!e->qp)
		die("create_qp");
}

static void connect_end(struct end *e, struct end *peer)
{
	must(!to_rts_as(e->qp, attr_to(&peer->gid, e->gid_index, peer->qp->qp_num)), "to RTS");
}

static int post(enum ibv_wr_opcode op, void *mine, uint32_t len, uint32_t lkey,
		uint64_t theirs, uint32_t rkey, uint64_t id)
{
	struct ibv_sge sge = { (uintptr_t)mine, len, lkey };
	struct ibv_send_wr wr = {
		.wr_id = id, .sg_list = &sge, .num_sge = len ? 1 : 0, .opcode = op,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { theirs, rkey },
	}, *bad;

	return ibv_post_send(a.qp, &wr, &bad);
}

static int done(struct ibv_cq *cq, struct ibv_wc *wc)
{
	int i, n = 0;

	for (i = 0; i < 20000 && !n; i++) {
		n = ibv_poll_cq(cq, 1, wc);
		if (!n)
			usleep(500);
	}
	return n == 1 ? (int)wc->status : -1;
}

/* WRITE @len bytes from @src to @theirs, READ them back into @dst: equal? */
static bool round_trip(char *src, uint32_t skey, char *dst, uint32_t dkey, uint32_t len,
		       uint64_t theirs, uint32_t rkey, const char *there)
{
	struct ibv_wc wc;
	uint32_t i;

	for (i = 0; i < len; i++)
		src[i] = rand();
	memset(dst, 0x5a, len);
	if (post(IBV_WR_RDMA_WRITE, src, len, skey, theirs, rkey, 1) ||
	    done(a.cq, &wc) != IBV_WC_SUCCESS || memcmp(there, src, len))
		return false;
	return !post(IBV_WR_RDMA_READ, dst, len, dkey, theirs, rkey, 2) &&
	       done(a.cq, &wc) == IBV_WC_SUCCESS && !memcmp(dst, src, len);
}

static void any_region(char *near, char *far, size_t len, uint64_t iova)
{
	struct ibv_mr *src = ibv_reg_mr(a.pd, near, len, RW);
	char *back = malloc(len);
	struct ibv_mr *dst = ibv_reg_mr(a.pd, back, len, RW);
	struct ibv_mr *mr = ibv_reg_mr_iova(b.pd, far, len, iova, RW);

	CHECK(src && dst && mr);
	CHECK(mr->lkey == mr->rkey);
	CHECK(round_trip(near, src->lkey, back, dst->lkey, len, iova, mr->rkey, far));
	/* a piece of it, from and to odd places */
	if (len > 30)
		CHECK(round_trip(near + 3, src->lkey, back + 5, dst->lkey, len - 23,
				 iova + 17, mr->rkey, far + 17));
	CHECK(!ibv_dereg_mr(mr) && !ibv_dereg_mr(src) && !ibv_dereg_mr(dst));
	free(back);
}

static void t_offsets(void)
{
	static const size_t off[] = { 0, 1, 7, 4095, 4096, 5000 };
	static const size_t len[] = { 1, 100, 4096, 4097, 70000, 300000 };
	char *near = malloc(MB), *far = malloc(MB);
	size_t i, k;

	for (i = 0; i < 6; i++) {
		for (k = 0; k < 6 && good; k++)
			any_region(near + off[i], far + off[5 - i], len[k],
				   (uintptr_t)(far + off[5 - i]));
	}
	free(near);
	free(far);
}

static void t_iova(void)
{
	char *near = malloc(MB), *far = malloc(MB);
	uint64_t in_page = (uintptr_t)far & 4095;

	any_region(near, far, 200000, in_page);
	any_region(near, far, 200000, 0x7000000000000000ull + in_page);
	any_region(near, far, 8192, 0ull - 16384 + in_page);
	free(near);
	free(far);
}

static void t_huge(void)
{
	char *near, *far;
	int thp;

	for (thp = 0; thp < 2; thp++) {
		far = mmap(NULL, 8 * MB, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | (thp ? 0 : MAP_HUGETLB), -1, 0);
		if (far == MAP_FAILED)	/* objects.sh says so */
			continue;
		if (thp)
			madvise(far, 8 * MB, MADV_HUGEPAGE);
		near = malloc(5 * MB);
		any_region(near, far + 12345, 5 * MB, (uintptr_t)far + 12345);
		munmap(far, 8 * MB);
		free(near);
	}
}

/* Pages that somebody holds pinned, on the whole machine. */
static long pinned(void)
{
	FILE *f = fopen("/proc/sys/vm/stat_refresh", "w");
	long n, sum = 0;
	char name[64];

	if (f && (fputs("1", f) < 0 || fclose(f)))
		return -1;
	f = fopen("/proc/vmstat", "r");
	if (!f)
		return -1;
	while (fscanf(f, "%63s %ld", name, &n) == 2)
		sum += !strcmp(name, "nr_foll_pin_acquired") ? n :
		       !strcmp(name, "nr_foll_pin_released") ? -n : 0;
	fclose(f);
	return sum;
}

/* What has been pinned before the page that cannot be is let go of. */
static void t_mr_hole(void)
{
	char *p = mmap(NULL, 8 * MB, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	struct ibv_mr *mr = ibv_reg_mr(a.pd, p, 4 * MB, RW);
	long before = pinned();
	int page;

	CHECK(mr && before >= 1024);
	for (page = 2047; page > 0; page /= 2) {
		munmap(p + page * 4096, 4096);
		FAILS(ibv_reg_mr(a.pd, p, 8 * MB, RW), EFAULT);
	}
	if (pinned() != before)
		printf("# %ld pages pinned before, %ld now\n", before, pinned());
	CHECK(pinned() == before);
	CHECK(!ibv_dereg_mr(mr));
	CHECK(pinned() == before - 1024);
	munmap(p, 8 * MB);
}

static void t_mr_refused(void)
{
	static char buf[8192];
	char *ro = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;

	FAILS(ibv_reg_mr(a.pd, buf, 0, RW), EINVAL);
	FAILS(ibv_reg_mr(a.pd, buf, 4096, IBV_ACCESS_REMOTE_WRITE), EINVAL);
	FAILS(ibv_reg_mr(a.pd, buf, 4096, IBV_ACCESS_REMOTE_ATOMIC), EINVAL);
	FAILS(ibv_reg_mr(a.pd, (void *)0x1000, 4096, RW), EFAULT);
	CHECK(!ibv_reg_mr(a.pd, buf, 1ul << 50, RW));
	CHECK(!ibv_reg_mr(a.pd, (void *)~4095ul, 8192, RW));
	CHECK(!ibv_reg_mr(a.pd, ro, 4096, RW));
	mr = ibv_reg_mr(a.pd, ro, 4096, IBV_ACCESS_REMOTE_READ);
	CHECK(mr && !ibv_dereg_mr(mr));
	mr = ibv_reg_mr(a.pd, buf, 4096, RW | IBV_ACCESS_RELAXED_ORDERING | IBV_ACCESS_HUGETLB);
	CHECK(mr && !ibv_dereg_mr(mr));
	munmap(ro, 4096);
}

/* Keys are random: no two alike, no counting up (hazard 11). */
static void t_mr_keys(void)
{
	static struct ibv_mr *mr[500];
	static char buf[4096];
	int i, k, close = 0;

	for (i = 0; i < 500; i++) {
		mr[i] = ibv_reg_mr(a.pd, buf, 4096, RW);
		CHECK(mr[i]);
		for (k = 0; k < i; k++)
			CHECK(mr[i]->rkey >> 8 != mr[k]->rkey >> 8);
		if (i && mr[i]->rkey - mr[i - 1]->rkey + 512 < 1024)
			close++;
	}
	CHECK(close < 5);
	for (i = 0; i < 500; i++)
		CHECK(!ibv_dereg_mr(mr[i]));
}

static void t_cq_refused(void)
{
	struct ibv_device_attr attr;

	CHECK(!ibv_query_device(a.ctx, &attr));
	FAILS(ibv_create_cq(a.ctx, 0, NULL, NULL, 0), EINVAL);
	FAILS(ibv_create_cq(a.ctx, attr.max_cqe + 1, NULL, NULL, 0), EINVAL);
	FAILS(ibv_create_cq(a.ctx, 10, NULL, NULL, a.ctx->num_comp_vectors), EINVAL);
	FAILS(ibv_create_cq(a.ctx, 10, NULL, NULL, -1), EINVAL);
	CHECK(ibv_resize_cq(a.cq, 0) == EINVAL);
	CHECK(ibv_resize_cq(a.cq, attr.max_cqe + 1) == EINVAL);
	CHECK(ibv_destroy_cq(a.cq) == EBUSY);
}

static void t_cq_sizes(void)
{
	int size[] = { 1, 2, 3, 100, 4096, 100000, 0 };
	struct ibv_device_attr attr;
	struct ibv_cq *cq;
	size_t i;

	CHECK(!ibv_query_device(a.ctx, &attr));
	size[6] = attr.max_cqe;
	for (i = 0; i < sizeof(size) / sizeof(size[0]); i++) {
		cq = ibv_create_cq(a.ctx, size[i], NULL, NULL, 0);
		CHECK(cq && cq->cqe >= size[i]);
		CHECK(!ibv_destroy_cq(cq));
	}
	for (i = 0; i < 3000; i++) {
		cq = ibv_create_cq(a.ctx, 100, NULL, NULL, 0);
		CHECK(cq && !ibv_destroy_cq(cq));
	}
}

/* Not a completion is lost, repeated or out of order, whatever the CQ's size. */
static void t_cq_resize(void)
{
	static const int size[] = { 500, 130, 4000, 128, 64, 1000, 128 };
	struct ibv_wc wc;
	uint64_t next = 100, seen = 100;
	size_t i;
	int k;

	for (i = 0; i < sizeof(size) / sizeof(size[0]); i++) {
		for (k = 0; k < 40; k++)
			CHECK(!post(IBV_WR_RDMA_WRITE, NULL, 0, 0, 0, 0, next++));
		/* some are there before, some come while it happens */
		for (k = 0; k < 5; k++, seen++)
			CHECK(done(a.cq, &wc) == IBV_WC_SUCCESS && wc.wr_id == seen);
		CHECK(!ibv_resize_cq(a.cq, size[i]));
		CHECK(a.cq->cqe >= size[i]);
		for (; seen < next; seen++)
			CHECK(done(a.cq, &wc) == IBV_WC_SUCCESS && wc.wr_id == seen);
		CHECK(ibv_poll_cq(a.cq, 1, &wc) == 0);
	}
}

/*
 * Too small for what is in it: refused, and the old one still works.  A receive's
 * completion is there before its sender's: with all of these, all of those are.
 */
static void t_cq_resize_small(void)
{
	struct ibv_recv_wr recv = {}, *bad;
	struct ibv_wc wc;
	int k;

	for (k = 0; k < 30; k++) {
		recv.wr_id = k;
		CHECK(!ibv_post_recv(b.qp, &recv, &bad));
	}
	for (k = 0; k < 30; k++)
		CHECK(!post(IBV_WR_SEND, NULL, 0, 0, 0, 0, k));
	for (k = 0; k < 30; k++)
		CHECK(done(a.cq, &wc) == IBV_WC_SUCCESS && wc.wr_id == (uint64_t)k);
	CHECK(ibv_resize_cq(b.cq, 4) == EINVAL);
	for (k = 0; k < 30; k++)
		CHECK(ibv_poll_cq(b.cq, 1, &wc) == 1 && wc.status == IBV_WC_SUCCESS &&
		      wc.wr_id == (uint64_t)k);
}

/* An armed CQ stays armed. */
static void t_cq_resize_armed(void)
{
	struct pollfd p = { .fd = a.chan->fd, .events = POLLIN };
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *x;

	CHECK(!ibv_req_notify_cq(a.cq, 0));
	CHECK(!ibv_resize_cq(a.cq, 300));
	CHECK(!post(IBV_WR_RDMA_WRITE, NULL, 0, 0, 0, 0, 7));
	CHECK(poll(&p, 1, 10000) == 1);
	CHECK(!ibv_get_cq_event(a.chan, &cq, &x) && cq == a.cq);
	ibv_ack_cq_events(cq, 1);
	CHECK(done(a.cq, &wc) == IBV_WC_SUCCESS && wc.wr_id == 7);
	/* and once fired does not fire again */
	CHECK(!post(IBV_WR_RDMA_WRITE, NULL, 0, 0, 0, 0, 8));
	CHECK(done(a.cq, &wc) == IBV_WC_SUCCESS && wc.wr_id == 8);
	CHECK(poll(&p, 1, 200) == 0);
}

static void t_timestamps(void)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 16,
		.wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP,
	};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(a.ctx, &attr);

	CHECK(cq);
	CHECK(!ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
}

/* The child of a program with rings and regions runs and ends in peace. */
static void t_fork(void)
{
	struct ibv_wc wc;
	int status;
	pid_t pid;

	pid = fork();
	if (!pid)
		_exit(ibv_poll_cq(a.cq, 1, &wc) ? 1 : 0);
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	CHECK(!post(IBV_WR_RDMA_WRITE, NULL, 0, 0, 0, 0, 9));
	CHECK(done(a.cq, &wc) == IBV_WC_SUCCESS && wc.wr_id == 9);
}

static void t_ah(void)
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = 1,
		.grh = { .dgid = b.gid, .sgid_index = a.gid_index, .hop_limit = 1 },
	};
	struct ibv_ah *ah = ibv_create_ah(a.pd, &attr);

	CHECK(ah && !ibv_destroy_ah(ah));
	attr.is_global = 0;
	CHECK(!ibv_create_ah(a.pd, &attr));
	attr.is_global = 1;
	attr.port_num = 2;
	CHECK(!ibv_create_ah(a.pd, &attr));
	attr.port_num = 1;
	attr.grh.sgid_index = 250;
	CHECK(!ibv_create_ah(a.pd, &attr));
}

/* Hazard 54: more than what is flushed in one go. */
static void t_flush(void)
{
	enum { N = 65536 };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_cq *cq = ibv_create_cq(a.ctx, N, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {
		.cap = { 1, N, 1, 1, 0 }, .qp_type = IBV_QPT_RC,
		.send_cq = cq, .recv_cq = cq,
	};
	struct ibv_qp *qp = cq ? ibv_create_qp(a.pd, &init) : NULL;
	struct ibv_recv_wr wr = {}, *bad;
	int left = N, wrong = 0, n;
	struct ibv_wc wc[64];
	time_t end;

	CHECK(qp);
	CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			     IBV_QP_ACCESS_FLAGS));
	for (n = 0; n < N; n++)
		CHECK(!ibv_post_recv(qp, &wr, &bad));
	attr.qp_state = IBV_QPS_ERR;
	CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	for (end = time(NULL) + 30; left && time(NULL) < end; left -= n) {
		n = ibv_poll_cq(cq, 64, wc);
		CHECK(n >= 0);
		for (int i = 0; i < n; i++)
			wrong += wc[i].status != IBV_WC_WR_FLUSH_ERR;
	}
	if (left || wrong)
		printf("# %d not flushed, %d wrong\n", left, wrong);
	CHECK(!left && !wrong);
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq));
}

static void t_busy(void)
{
	CHECK(ibv_dealloc_pd(a.pd) == EBUSY);
}

int main(int argc, char **argv)
{
	if (argc != 5)
		return 2;
	open_end(&a, argv[1], argv[2]);
	open_end(&b, argv[3], argv[4]);
	connect_end(&a, &b);
	connect_end(&b, &a);

	run("regions at any page offset and of any length", t_offsets);
	run("regions with an IOVA of their own", t_iova);
	run("regions in huge pages", t_huge);
	run("regions that are refused", t_mr_refused);
	run("regions with a hole: what was pinned is let go of", t_mr_hole);
	run("keys are random", t_mr_keys);
	run("CQs that are refused", t_cq_refused);
	run("CQs of all sizes, 3000 of them", t_cq_sizes);
	run("resizing a CQ under traffic loses nothing", t_cq_resize);
	run("resizing a CQ below its content is refused", t_cq_resize_small);
	run("an armed CQ stays armed when resized", t_cq_resize_armed);
	run("a CQ with time stamps", t_timestamps);
	run("fork", t_fork);
	run("address handles", t_ah);
	run("65,536 receives are all flushed", t_flush);
	run("a PD in use is not freed", t_busy);
	printf("1..%d\n", count);
	return failed > 0;
}
