// SPDX-License-Identifier: GPL-2.0
/*
 * errors.c - a refused request is explained in the kernel's log: which attribute,
 * and what is allowed
 *
 *	errors DEV GID-INDEX
 *
 * Plain libibverbs, and /dev/kmsg.  What ib_core refuses itself is not here.
 */
#include <fcntl.h>
#include <stdint.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "points.h"

static struct ibv_context *ctx;
static struct ibv_device_attr dev;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static union ibv_gid gid;
static int gid_index;
static int kmsg;

/* What has been logged since the last call is nothing to us. */
static void log_begin(void)
{
	lseek(kmsg, 0, SEEK_END);
}

/* Lines of the link's that have been logged since, and have @want in them. */
static int log_lines(const char *want)
{
	char line[8192];
	ssize_t len;
	int n = 0;

	for (;;) {
		len = read(kmsg, line, sizeof(line) - 1);
		if (len < 0 && errno == EPIPE)
			continue;
		if (len <= 0)
			return n;
		line[len] = 0;
		if (strstr(line, ctx->device->name) && strstr(line, want))
			n++;
		else if (strstr(line, ctx->device->name))
			printf("# logged: %s", strchr(line, ';') ?: line);
	}
}

/* @x fails with @err, and the log says @... of it, as printf() has it */
#define EXPLAINED(x, err, ...) do {					\
	char want[256];							\
	int said = 0;							\
									\
	snprintf(want, sizeof(want), __VA_ARGS__);			\
	log_begin();							\
	errno = 0;							\
	if (x)								\
		said = -1;						\
	else if (errno != (err))					\
		said = -2;						\
	else								\
		said = log_lines(want);					\
	if (said != 1) {						\
		printf("# line %d: %s: %s: %s (errno %d)\n", __LINE__, #x, \
		       said == -1 ? "not refused" :			\
		       said == -2 ? "refused, but wrongly" : "not logged", \
		       want, errno);					\
		good = false;						\
	}								\
} while (0)

static struct ibv_qp *create_qp(enum ibv_qp_type type, int send_wr, int recv_wr,
				int send_sge, int recv_sge, int inl)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = type,
		.cap = { send_wr, recv_wr, send_sge, recv_sge, inl },
	};

	return ibv_create_qp(pd, &init);
}

static bool modify(struct ibv_qp *qp, struct ibv_qp_attr attr, int mask)
{
	int err = ibv_modify_qp(qp, &attr, mask);

	if (err)
		errno = err;
	return !err;
}

#define INIT	(IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define RTR	(IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |	\
		 IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define RTS	(IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | \
		 IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC)

static struct ibv_qp_attr attr_for(enum ibv_qp_state state)
{
	return (struct ibv_qp_attr) {
		.qp_state = state, .port_num = 1, .path_mtu = IBV_MTU_1024,
		.dest_qp_num = 17, .max_dest_rd_atomic = 1, .max_rd_atomic = 1,
		.min_rnr_timer = 12, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7,
		.ah_attr = { .is_global = 1, .port_num = 1,
			     .grh = { .dgid = gid, .sgid_index = gid_index, .hop_limit = 64 } },
	};
}

static void t_create(void)
{
	struct ibv_srq_init_attr srq = { .attr = { dev.max_srq_wr + 1, 1, 0 } };

	EXPLAINED(create_qp(IBV_QPT_RC, dev.max_qp_wr + 1, 1, 1, 1, 0), EINVAL,
		  "max_send_wr %d, at most %d", dev.max_qp_wr + 1, dev.max_qp_wr);
	EXPLAINED(create_qp(IBV_QPT_RC, 1, dev.max_qp_wr + 1, 1, 1, 0), EINVAL,
		  "max_recv_wr %d, at most %d", dev.max_qp_wr + 1, dev.max_qp_wr);
	EXPLAINED(create_qp(IBV_QPT_RC, 1, 1, dev.max_sge + 1, 1, 0), EINVAL,
		  "max_send_sge %d, at most %d", dev.max_sge + 1, dev.max_sge);
	EXPLAINED(create_qp(IBV_QPT_RC, 1, 1, 1, dev.max_sge + 1, 0), EINVAL,
		  "max_recv_sge %d, at most %d", dev.max_sge + 1, dev.max_sge);
	EXPLAINED(create_qp(IBV_QPT_RC, 1, 1, 1, 1, 1 << 20), EINVAL,
		  "max_inline_data %d, at most ", 1 << 20);
	EXPLAINED(ibv_create_cq(ctx, dev.max_cqe + 1, NULL, NULL, 0), EINVAL,
		  "CQ of %d entries, 1 to %d", dev.max_cqe + 1, dev.max_cqe);
	EXPLAINED(ibv_create_srq(pd, &srq), EINVAL,
		  "SRQ of %d work requests (1 to %d)", dev.max_srq_wr + 1, dev.max_srq_wr);
	srq.attr.max_wr = 16;
	srq.attr.max_sge = dev.max_srq_sge + 1;
	EXPLAINED(ibv_create_srq(pd, &srq), EINVAL,
		  "%d SGEs (at most %d)", dev.max_srq_sge + 1, dev.max_srq_sge);
}

/* ib_core takes privileged users' word that they know how much they lock. */
static void t_locked(void)
{
	static char big[1 << 20];
	struct rlimit before, low;

	CHECK(!getrlimit(RLIMIT_MEMLOCK, &before));
	low = before;
	low.rlim_cur = 256 << 10;
	CHECK(!setrlimit(RLIMIT_MEMLOCK, &low) && !seteuid(65534));
	EXPLAINED(ibv_reg_mr(pd, big, sizeof(big), 0), ENOMEM,
		  "no memory to pin %zu bytes; RLIMIT_MEMLOCK is 256 KiB", sizeof(big));
	EXPLAINED(ibv_create_cq(ctx, 32768, NULL, NULL, 0), ENOMEM, "RLIMIT_MEMLOCK is 256 KiB");
	CHECK(!seteuid(0) && !setrlimit(RLIMIT_MEMLOCK, &before));
}

static void t_memory(void)
{
	static char page[8192] __attribute__((aligned(4096)));
	struct ibv_mr *paged = ibv_reg_mr(pd, page, sizeof(page), IBV_ACCESS_ON_DEMAND);

	EXPLAINED(ibv_reg_mr_iova(pd, page, sizeof(page), UINT64_MAX - 4095, 0), EINVAL,
		  "8192 bytes at 0xfffffffffffff000, at least 1 byte");
	EXPLAINED(ibv_reg_mr(pd, page, 1UL << 48, IBV_ACCESS_ON_DEMAND), EINVAL,
		  "on-demand region: %lu bytes at", 1UL << 48);
	EXPLAINED(!ibv_rereg_mr(paged, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0), EOPNOTSUPP,
		  "rereg_mr: only for memory that was registered by its address");
	CHECK(paged && !ibv_dereg_mr(paged));
}

static bool advise(struct ibv_mr *mr, enum ib_uverbs_advise_mr_advice advice, unsigned int len)
{
	struct ibv_sge sge = { (uintptr_t)mr->addr, len, mr->lkey };
	int err = ibv_advise_mr(pd, advice, IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1);

	if (err)
		errno = err;
	return !err;
}

static void t_advice(void)
{
	static char page[4096] __attribute__((aligned(4096)));
	struct ibv_alloc_dm_attr space = { .length = 4096 };
	struct ibv_mr *pinned = ibv_reg_mr(pd, page, sizeof(page), 0);
	struct ibv_mr *paged = ibv_reg_mr(pd, page, sizeof(page), IBV_ACCESS_ON_DEMAND);
	struct ibv_dm *dm = ibv_alloc_dm(ctx, &space);

	CHECK(pinned && paged && dm);
	EXPLAINED(advise(pinned, IBV_ADVISE_MR_ADVICE_PREFETCH, 1), EINVAL,
		  "lkey %#x: not within an on-demand region of this PD", pinned->lkey);
	EXPLAINED(advise(paged, IBV_ADVISE_MR_ADVICE_PREFETCH, 4097), EFAULT,
		  "4097 bytes at %#lx, lkey %#x: not within", (unsigned long)page, paged->lkey);
	EXPLAINED(advise(paged, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 1), EPERM,
		  "lkey %#x needs local write", paged->lkey);
	EXPLAINED(advise(paged, 3, 1), EOPNOTSUPP, "advise_mr: advice 3");
	EXPLAINED(ibv_reg_dm_mr(pd, dm, 0, 4096, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_ON_DEMAND),
		  EINVAL, "device memory is never paged");
	space.log_align_req = 13;
	EXPLAINED(ibv_alloc_dm(ctx, &space), EINVAL, "alloc_dm: 4096 bytes (1 to ");
	CHECK(!ibv_dereg_mr(pinned) && !ibv_dereg_mr(paged) && !ibv_free_dm(dm));
}

static void t_modify(void)
{
	struct ibv_qp *qp = create_qp(IBV_QPT_RC, 4, 4, 1, 1, 0);
	struct ibv_qp *ud = create_qp(IBV_QPT_UD, 4, 4, 1, 1, 0);
	struct ibv_qp_attr attr = attr_for(IBV_QPS_INIT);

	CHECK(qp && ud);
	attr.port_num = 2;
	/* ib_core looks at the port before it asks the driver */
	CHECK(!modify(qp, attr, INIT));
	attr = attr_for(IBV_QPS_INIT);
	attr.pkey_index = 1;
	CHECK(!modify(qp, attr, INIT));
	attr.pkey_index = 0;
	EXPLAINED(modify(qp, attr, INIT & ~IBV_QP_ACCESS_FLAGS), EINVAL,
		  "RESET to INIT: missing: ACCESS_FLAGS; not allowed here: none");
	EXPLAINED(modify(qp, attr, INIT | IBV_QP_QKEY | IBV_QP_SQ_PSN), EINVAL,
		  "RESET to INIT: missing: none; not allowed here: QKEY SQ_PSN");
	EXPLAINED(modify(ud, attr, INIT), EINVAL,
		  "RESET to INIT: missing: QKEY; not allowed here: ACCESS_FLAGS");
	attr.qp_access_flags = IBV_ACCESS_REMOTE_READ | 1 << 8;	/* FLUSH_GLOBAL */
	EXPLAINED(modify(qp, attr, INIT), EOPNOTSUPP,
		  "qp_access_flags 0x104, 0x100 is not known");
	attr = attr_for(IBV_QPS_RTS);
	EXPLAINED(modify(qp, attr, RTS), EINVAL, "there is no way from RESET to RTS");
	CHECK(modify(qp, attr_for(IBV_QPS_INIT), INIT));

	attr = attr_for(IBV_QPS_RTR);
	EXPLAINED(modify(qp, attr, RTR & ~(IBV_QP_RQ_PSN | IBV_QP_MIN_RNR_TIMER)), EINVAL,
		  "INIT to RTR: missing: RQ_PSN MIN_RNR_TIMER; not allowed here: none");
	attr.path_mtu = IBV_MTU_4096;
	EXPLAINED(modify(qp, attr, RTR), EINVAL,
		  "path_mtu 4096 does not fit va's MTU of 1500, which allows 256 to 1024");
	attr = attr_for(IBV_QPS_RTR);
	attr.max_dest_rd_atomic = dev.max_qp_rd_atom + 1;
	/* the number is 8 bits wide, and ib_core looks at it, too, on some kernels */
	if (dev.max_qp_rd_atom < 255)
		EXPLAINED(modify(qp, attr, RTR), EINVAL, "max_dest_rd_atomic %d, at most %d",
			  dev.max_qp_rd_atom + 1, dev.max_qp_rd_atom);
	attr = attr_for(IBV_QPS_RTR);
	attr.dest_qp_num = 1 << 24;
	EXPLAINED(modify(qp, attr, RTR), EINVAL, "dest_qp_num %d, at most %d", 1 << 24,
		  (1 << 24) - 1);
	attr = attr_for(IBV_QPS_RTR);
	attr.min_rnr_timer = 32;
	EXPLAINED(modify(qp, attr, RTR), EINVAL, "min_rnr_timer 32, at most 31");
	CHECK(modify(qp, attr_for(IBV_QPS_RTR), RTR));

	attr = attr_for(IBV_QPS_RTS);
	attr.timeout = 32;
	EXPLAINED(modify(qp, attr, RTS), EINVAL, "timeout 32, at most 31");
	attr = attr_for(IBV_QPS_RTS);
	attr.retry_cnt = 8;
	EXPLAINED(modify(qp, attr, RTS), EINVAL, "retry_cnt 8, at most 7");
	attr = attr_for(IBV_QPS_RTS);
	attr.rnr_retry = 8;
	EXPLAINED(modify(qp, attr, RTS), EINVAL, "rnr_retry 8, at most 7");
	attr = attr_for(IBV_QPS_RTS);
	attr.path_mig_state = IBV_MIG_REARM;
	EXPLAINED(modify(qp, attr, RTS | IBV_QP_PATH_MIG_STATE), EOPNOTSUPP,
		  "there is no alternate path");
	attr = attr_for(IBV_QPS_RTS);
	attr.cur_qp_state = IBV_QPS_INIT;
	EXPLAINED(modify(qp, attr, RTS | IBV_QP_CUR_STATE), EINVAL,
		  "cur_qp_state INIT, but the QP is in RTR");
	CHECK(modify(qp, attr_for(IBV_QPS_RTS), RTS));
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_qp(ud));
}

static bool change_srq(struct ibv_srq *srq, unsigned int max_wr, unsigned int limit, int mask)
{
	struct ibv_srq_attr attr = { .max_wr = max_wr, .srq_limit = limit };
	int err = ibv_modify_srq(srq, &attr, mask);

	if (err)
		errno = err;
	return !err;
}

static bool resize(struct ibv_cq *which, int cqe)
{
	int err = ibv_resize_cq(which, cqe);

	if (err)
		errno = err;
	return !err;
}

static void t_change(void)
{
	struct ibv_srq_init_attr init = { .attr = { 16, 1, 0 } };
	struct ibv_cq *full = ibv_create_cq(ctx, 16, NULL, NULL, 0);
	struct ibv_srq *srq = ibv_create_srq(pd, &init);
	struct ibv_qp_init_attr of_qp = {
		.send_cq = full, .recv_cq = full, .qp_type = IBV_QPT_RC,
		.cap = { 4, 4, 1, 1, 0 },
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &of_qp);
	struct ibv_recv_wr recv = {}, *bad;
	struct ibv_wc wc;
	int i;

	CHECK(srq && full && qp);
	EXPLAINED(change_srq(srq, 0, 17, IBV_SRQ_LIMIT), EINVAL, "srq_limit 17, at most 16");
	EXPLAINED(change_srq(srq, 8, 9, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), EINVAL,
		  "srq_limit 9, at most max_wr: 8");
	for (i = 0; i < 5; i++)
		CHECK(!ibv_post_srq_recv(srq, &recv, &bad));
	EXPLAINED(change_srq(srq, 4, 0, IBV_SRQ_MAX_WR), EINVAL,
		  "max_wr 4 is less than the limit, or than what is posted");
	EXPLAINED(resize(cq, dev.max_cqe + 1), EINVAL, "CQ of %d entries", dev.max_cqe + 1);
	/* four completions, which come together, and one of them taken */
	CHECK(modify(qp, attr_for(IBV_QPS_INIT), INIT));
	for (i = 0; i < 4; i++)
		CHECK(!ibv_post_recv(qp, &recv, &bad));
	CHECK(modify(qp, attr_for(IBV_QPS_ERR), IBV_QP_STATE));
	while (!ibv_poll_cq(full, 1, &wc))
		;
	EXPLAINED(resize(full, 2), EINVAL, "there are more completions in it than 2");
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_srq(srq) && !ibv_destroy_cq(full));
}

/* As many QPs as may be in a multicast group, and another. */
static void t_group(void)
{
	static struct ibv_qp *qp[4096];
	union ibv_gid group = { .raw = { [10] = 0xff, 0xff, 239, 7, 7, 7 } };
	int i, most = dev.max_mcast_qp_attach;

	CHECK(most < 4096);
	for (i = 0; i <= most; i++)
		CHECK(qp[i] = create_qp(IBV_QPT_UD, 1, 1, 1, 1, 0));
	for (i = 0; i < most; i++)
		CHECK(!ibv_attach_mcast(qp[i], &group, 0));
	EXPLAINED(!(errno = ibv_attach_mcast(qp[most], &group, 0)), ENOMEM,
		  "attach_mcast: there are %d QPs in ::ffff:239.7.7.7", most);
	for (i = 0; i < most; i++)
		CHECK(!ibv_detach_mcast(qp[i], &group, 0));
	for (i = 0; i <= most; i++)
		CHECK(!ibv_destroy_qp(qp[i]));
}

/* A program that asks again and again does not fill the disk. */
static void t_rate(void)
{
	int i, n;

	log_begin();
	for (i = 0; i < 500; i++)
		CHECK(!create_qp(IBV_QPT_RC, dev.max_qp_wr + 1, 1, 1, 1, 0));
	n = log_lines("max_send_wr");
	printf("# 500 refusals, %d lines\n", n);
	CHECK(n > 0 && n <= 20);
}

static void run(const char *name, void (*fn)(void))
{
	good = true;
	fn();
	point(name);
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	kmsg = open("/dev/kmsg", O_RDONLY | O_NONBLOCK);
	if (kmsg < 0)
		die("/dev/kmsg");
	ctx = open_device(argv[1]);
	gid_index = atoi(argv[2]);
	pd = ibv_alloc_pd(ctx);
	cq = ibv_create_cq(ctx, 16, NULL, NULL, 0);
	if (!pd || !cq || ibv_query_gid(ctx, 1, gid_index, &gid) || ibv_query_device(ctx, &dev))
		die(argv[1]);

	run("the log says why a queue is refused", t_create);
	run("the log says why a memory region is refused", t_memory);
	run("the log says why advice, or device memory's registration, is refused", t_advice);
	run("the log says which attribute of a transition is missing, wrong, or too much", t_modify);
	run("the log says why an SRQ's limit, or a new size of an SRQ or CQ, is refused", t_change);
	run("the log says that a multicast group is full", t_group);
	run("the log says how much memory may be locked, and how much is", t_locked);
	run("500 refusals are a few lines", t_rate);
	printf("1..%d\n", count);
	return failed > 0;
}
