// SPDX-License-Identifier: GPL-2.0
/*
 * limits.c - query_device_ex is the truth: what it promises is granted, and one more is
 * refused
 *
 *	limits all DEV GID-INDEX [many]
 *	limits churn DEV		queues and regions come and go, under RLIMIT_MEMLOCK
 *
 * Plain libibverbs.  "many": as many objects as there may be, of the kinds for which
 * there is memory.
 */
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "points.h"

static struct ibv_context *ctx;
static struct ibv_device_attr_ex ex;
static struct ibv_device_attr *dev = &ex.orig_attr;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static union ibv_gid gid;
static int gid_index;

static void run(const char *name, void (*fn)(void))
{
	good = true;
	fn();
	point(name);
}

static struct ibv_qp *new_qp(enum ibv_qp_type type, uint32_t send_wr, uint32_t recv_wr,
			     uint32_t send_sge, uint32_t recv_sge)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = type, .sq_sig_all = 1,
		.cap = { send_wr, recv_wr, send_sge, recv_sge, 0 },
	};

	return ibv_create_qp(pd, &init);
}

/* To itself.  @reads: READs and atomics at a time, each way; 0 or an errno. */
static int connect_qp(struct ibv_qp *qp, int reads)
{
	struct ibv_qp_attr attr = attr_to(&gid, gid_index, qp->qp_num);

	attr.max_dest_rd_atomic = reads;
	attr.max_rd_atomic = reads;
	return to_rts_as(qp, attr);
}

/* As Linux 6.12 has them; P_Keys are told by the port, where both have one. */
static void t_rxe(void)
{
	CHECK(dev->max_mr_size == UINT64_MAX);
	CHECK((dev->page_size_cap & 0xfffff000) == 0xfffff000);
	CHECK(dev->max_qp >= (1 << 20) - 16 && dev->max_qp_wr >= 1 << 20);
	CHECK(dev->max_sge >= 32 && dev->max_sge_rd >= 32);
	CHECK(dev->max_cq >= 1 << 20 && dev->max_cqe >= 32767);
	CHECK(dev->max_mr >= (1 << 19) - 1 && dev->max_mw >= (1 << 19) - 1);
	CHECK(dev->max_pd >= 1 << 20 && dev->max_ah >= 32767);
	CHECK(dev->max_qp_rd_atom >= 128 && dev->max_qp_init_rd_atom >= 128);
	CHECK(dev->max_res_rd_atom >= 0x3f000);
	CHECK(dev->max_mcast_grp >= 8192 && dev->max_mcast_qp_attach >= 56);
	CHECK(dev->max_total_mcast_qp_attach >= 0x70000);
	CHECK(dev->max_srq >= (1 << 20) - 0x20001 && dev->max_srq_wr >= 1 << 20);
	CHECK(dev->max_srq_sge >= 27);
	CHECK(dev->atomic_cap == IBV_ATOMIC_HCA && dev->local_ca_ack_delay <= 15);
	CHECK(dev->device_cap_flags & IBV_DEVICE_BAD_PKEY_CNTR);
	CHECK(dev->device_cap_flags & IBV_DEVICE_BAD_QKEY_CNTR);
	CHECK(dev->device_cap_flags & IBV_DEVICE_UD_AV_PORT_ENFORCE);
}

static void t_queues(void)
{
	struct ibv_srq_init_attr srq = { .attr = { dev->max_srq_wr, 1, 0 } };
	struct ibv_srq *s;
	struct ibv_qp *qp;
	struct ibv_cq *c;

	c = ibv_create_cq(ctx, dev->max_cqe, NULL, NULL, 0);
	CHECK(c && c->cqe >= dev->max_cqe && !ibv_destroy_cq(c));
	FAILS(ibv_create_cq(ctx, dev->max_cqe + 1, NULL, NULL, 0), EINVAL);

	qp = new_qp(IBV_QPT_RC, dev->max_qp_wr, 1, 1, 1);
	CHECK(qp && !ibv_destroy_qp(qp));
	FAILS(new_qp(IBV_QPT_RC, dev->max_qp_wr + 1, 1, 1, 1), EINVAL);
	qp = new_qp(IBV_QPT_RC, 1, dev->max_qp_wr, 1, 1);
	CHECK(qp && !ibv_destroy_qp(qp));
	FAILS(new_qp(IBV_QPT_RC, 1, dev->max_qp_wr + 1, 1, 1), EINVAL);

	s = ibv_create_srq(pd, &srq);
	CHECK(s && !ibv_destroy_srq(s));
	srq.attr.max_wr = dev->max_srq_wr + 1;
	FAILS(ibv_create_srq(pd, &srq), EINVAL);
	srq.attr = (struct ibv_srq_attr) { 16, dev->max_srq_sge, 0 };
	s = ibv_create_srq(pd, &srq);
	CHECK(s && !ibv_destroy_srq(s));
	srq.attr.max_sge = dev->max_srq_sge + 1;
	FAILS(ibv_create_srq(pd, &srq), EINVAL);
}

/* Gathered, scattered, and scattered by a READ. */
static void t_sges(void)
{
	int n = dev->max_sge, i, got;
	static uint32_t from[256], to[256];
	struct ibv_sge sge[256], rsge[256];
	struct ibv_recv_wr rwr = { .sg_list = rsge, .num_sge = n }, *bad_r;
	struct ibv_send_wr swr = { .sg_list = sge, .num_sge = n, .opcode = IBV_WR_SEND }, *bad_s;
	struct ibv_mr *fm = ibv_reg_mr(pd, from, sizeof(from),
				       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	struct ibv_mr *tm = ibv_reg_mr(pd, to, sizeof(to), IBV_ACCESS_LOCAL_WRITE);
	struct ibv_qp *qp = new_qp(IBV_QPT_RC, 4, 4, n, n);
	struct ibv_wc wc;

	FAILS(new_qp(IBV_QPT_RC, 4, 4, n + 1, 1), EINVAL);
	FAILS(new_qp(IBV_QPT_RC, 4, 4, 1, n + 1), EINVAL);
	CHECK(n <= 256 && qp && fm && tm && !connect_qp(qp, 1));
	for (i = 0; i < n; i++) {
		from[i] = i + 1;
		sge[i] = (struct ibv_sge) { (uintptr_t)&from[i], 4, fm->lkey };
		rsge[i] = (struct ibv_sge) { (uintptr_t)&to[n - 1 - i], 4, tm->lkey };
	}
	CHECK(!ibv_post_recv(qp, &rwr, &bad_r) && !ibv_post_send(qp, &swr, &bad_s));
	for (got = 0; got < 2; ) {
		i = ibv_poll_cq(cq, 1, &wc);
		CHECK(i >= 0 && (!i || !wc.status));
		got += i;
	}
	for (i = 0; i < n; i++)
		CHECK(to[i] == (uint32_t)(n - i));

	memset(to, 0, sizeof(to));
	swr.sg_list = rsge;
	swr.num_sge = dev->max_sge_rd;
	swr.opcode = IBV_WR_RDMA_READ;
	swr.wr.rdma.remote_addr = (uintptr_t)from;
	swr.wr.rdma.rkey = fm->rkey;
	CHECK(!ibv_post_send(qp, &swr, &bad_s));
	do
		i = ibv_poll_cq(cq, 1, &wc);
	while (!i);
	CHECK(i == 1 && !wc.status);
	for (i = 0; i < dev->max_sge_rd; i++)
		CHECK(to[n - 1 - i] == (uint32_t)(i + 1));
	swr.num_sge = n + 1;
	CHECK(ibv_post_send(qp, &swr, &bad_s));
	CHECK(!ibv_destroy_qp(qp) && !ibv_dereg_mr(fm) && !ibv_dereg_mr(tm));
}

static void t_reads(void)
{
	struct ibv_qp *qp = new_qp(IBV_QPT_RC, 4, 4, 1, 1);

	CHECK(qp && !connect_qp(qp, dev->max_qp_rd_atom) && !ibv_destroy_qp(qp));
	qp = new_qp(IBV_QPT_RC, 4, 4, 1, 1);
	CHECK(dev->max_qp_rd_atom == dev->max_qp_init_rd_atom);
	CHECK(dev->max_qp_rd_atom > 254 || connect_qp(qp, dev->max_qp_rd_atom + 1) == EINVAL);
	CHECK(!ibv_destroy_qp(qp));
	CHECK((long)dev->max_res_rd_atom == (long)dev->max_qp_rd_atom * dev->max_qp);
}

/* All of a process is a region of that size; memory in one piece, as far as there is. */
static void t_regions(void)
{
	int rc_odp = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE |
		     IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC;
	size_t half = 1ul << 46;
	struct ibv_mr *mr;
	void *p;

	CHECK(ex.odp_caps.general_caps == (IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT));
	CHECK((ex.odp_caps.per_transport_caps.rc_odp_caps & rc_odp) == (uint32_t)rc_odp);
	mr = ibv_reg_mr(pd, NULL, SIZE_MAX, IBV_ACCESS_ON_DEMAND | IBV_ACCESS_LOCAL_WRITE);
	CHECK(mr && mr->length == dev->max_mr_size && !ibv_dereg_mr(mr));
	p = mmap(NULL, half, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p != MAP_FAILED) {
		mr = ibv_reg_mr(pd, p, half, IBV_ACCESS_ON_DEMAND | IBV_ACCESS_LOCAL_WRITE);
		CHECK(mr && !ibv_dereg_mr(mr) && !munmap(p, half));
	} else {
		skipped("a region of 2^46 bytes", "there are not so many addresses");
	}
	FAILS(ibv_reg_mr_iova(pd, &ex, sizeof(ex), UINT64_MAX - sizeof(ex) + 2, 0), EINVAL);
}

static void t_device_memory(void)
{
	struct ibv_alloc_dm_attr attr = { .length = ex.max_dm_size };
	struct ibv_dm *dm = ibv_alloc_dm(ctx, &attr);

	CHECK(dm && !ibv_free_dm(dm));
	attr.length++;
	FAILS(ibv_alloc_dm(ctx, &attr), EINVAL);
}

static void t_port(void)
{
	struct ibv_port_attr port, none;
	uint16_t pkey;
	union ibv_gid g;

	CHECK(dev->phys_port_cnt == 1 && ex.phys_port_cnt_ex == 1);
	CHECK(!ibv_query_port(ctx, 1, &port) && ibv_query_port(ctx, 2, &none));
	CHECK(dev->max_pkeys == port.pkey_tbl_len);
	CHECK(!ibv_query_pkey(ctx, 1, 0, &pkey) && pkey == 0xffff);
	CHECK(ibv_query_pkey(ctx, 1, port.pkey_tbl_len, &pkey));
	CHECK(!ibv_query_gid(ctx, 1, port.gid_tbl_len - 1, &g));
	CHECK(ibv_query_gid(ctx, 1, port.gid_tbl_len, &g));
}

static void t_members(void)
{
	union ibv_gid group = { .raw = { [10] = 0xff, [11] = 0xff, [12] = 239, [13] = 7, [15] = 1 } };
	struct ibv_qp **qp = calloc(dev->max_mcast_qp_attach + 1, sizeof(*qp));
	int i, n = dev->max_mcast_qp_attach;

	CHECK(qp);
	for (i = 0; i <= n; i++) {
		qp[i] = new_qp(IBV_QPT_UD, 1, 1, 1, 1);
		CHECK(qp[i]);
		CHECK(ibv_attach_mcast(qp[i], &group, 0) == (i < n ? 0 : ENOMEM));
	}
	for (i = 0; i <= n; i++) {
		CHECK(i == n || !ibv_detach_mcast(qp[i], &group, 0));
		CHECK(!ibv_destroy_qp(qp[i]));
	}
	free(qp);
	CHECK(dev->max_total_mcast_qp_attach == dev->max_mcast_grp * dev->max_mcast_qp_attach);
}

static void t_groups(void)
{
	union ibv_gid group = { .raw = { [10] = 0xff, [11] = 0xff, [12] = 239, [13] = 8 } };
	struct ibv_qp *qp = new_qp(IBV_QPT_UD, 1, 1, 1, 1);
	int i, n = dev->max_mcast_grp;

	CHECK(qp);
	for (i = 0; i <= n; i++) {
		group.raw[14] = i >> 8;
		group.raw[15] = i;
		CHECK(ibv_attach_mcast(qp, &group, 0) == (i < n ? 0 : ENOMEM));
	}
	for (i = 0; i < n; i++) {
		group.raw[14] = i >> 8;
		group.raw[15] = i;
		CHECK(!ibv_detach_mcast(qp, &group, 0));
	}
	CHECK(!ibv_destroy_qp(qp));
}

/* KiB of the kernel's own memory */
static long kernel_memory(void)
{
	static const char * const what[] = { "Slab:", "VmallocUsed:", "Percpu:", "KernelStack:" };
	char line[128];
	long sum = 0, kb;
	FILE *f = fopen("/proc/meminfo", "r");
	unsigned int i;

	if (!f)
		die("meminfo");
	while (fgets(line, sizeof(line), f))
		for (i = 0; i < sizeof(what) / sizeof(*what); i++)
			if (!strncmp(line, what[i], strlen(what[i])) &&
			    sscanf(line + strlen(what[i]), "%ld", &kb) == 1)
				sum += kb;
	fclose(f);
	return sum;
}

/* KiB that a QP of this depth costs */
static long qp_cost(int depth)
{
	struct ibv_qp *qp[64];
	long before = kernel_memory(), cost;
	int i;

	for (i = 0; i < 64; i++) {
		qp[i] = new_qp(IBV_QPT_RC, depth, depth, 1, 1);
		if (!qp[i])
			die("create_qp");
	}
	cost = (kernel_memory() - before) / 64;
	for (i = 0; i < 64; i++)
		if (ibv_destroy_qp(qp[i]))
			die("destroy_qp");
	return cost;
}

static void t_grows(void)
{
	long small, large;

	qp_cost(16);	/* slabs that are kept */
	small = qp_cost(16);
	large = qp_cost(1024);
	printf("# a QP of depth 16: %ld KiB; of depth 1024: %ld KiB\n", small, large);
	CHECK(small < 64);
	CHECK(large > 2 * 1024 * 32 / 1024 && large < 1024);
}

/* KiB that are to be had */
static long available(void)
{
	char line[128];
	long kb = 0;
	FILE *f = fopen("/proc/meminfo", "r");

	while (f && fgets(line, sizeof(line), f) && sscanf(line, "MemAvailable: %ld", &kb) != 1)
		;
	if (f)
		fclose(f);
	return kb;
}

static void *make_pd(void) { return ibv_alloc_pd(ctx); }
static void *make_mw(void) { return ibv_alloc_mw(pd, IBV_MW_TYPE_1); }
static void *make_cq(void) { return ibv_create_cq(ctx, 1, NULL, NULL, 0); }
static void *make_qp(void) { return new_qp(IBV_QPT_RC, 1, 1, 1, 1); }
static void *make_mr(void)
{
	static char page[4096];

	return ibv_reg_mr(pd, page, sizeof(page), 0);
}

static void *make_ah(void)
{
	struct ibv_ah_attr attr = {
		.is_global = 1, .port_num = 1,
		.grh = { .dgid = gid, .sgid_index = gid_index, .hop_limit = 64 },
	};

	return ibv_create_ah(pd, &attr);
}

static void *make_srq(void)
{
	struct ibv_srq_init_attr init = { .attr = { 1, 1, 0 } };

	return ibv_create_srq(pd, &init);
}

static int free_pd(void *p) { return ibv_dealloc_pd(p); }
static int free_mw(void *p) { return ibv_dealloc_mw(p); }
static int free_cq(void *p) { return ibv_destroy_cq(p); }
static int free_qp(void *p) { return ibv_destroy_qp(p); }
static int free_mr(void *p) { return ibv_dereg_mr(p); }
static int free_ah(void *p) { return ibv_destroy_ah(p); }
static int free_srq(void *p) { return ibv_destroy_srq(p); }

/* All that there may be of a kind; the objects before the first are counted, too. */
static void many(const char *kind, int max, void *(*make)(void), int (*unmake)(void *))
{
	char name[128];
	long before = available(), each;
	void **obj = calloc(max + 1, sizeof(*obj));
	int i, err = 0;

	snprintf(name, sizeof(name), "%d %s, and not one more", max, kind);
	good = obj;
	for (i = 0; good && i < 4096; i++)
		good = (obj[i] = make());
	each = (before - available()) / 4096 + 1;
	if (good && each * max > available() * 9 / 10) {
		printf("# %ld KiB for each of the %s\n", each, kind);
		skipped(name, "for want of memory");
	} else {
		for (; good && i <= max; i++) {
			obj[i] = make();
			err = errno;
			if (!obj[i])
				break;
		}
		printf("# %d made, then %s; %ld KiB for each\n", i, strerror(err), each);
		/* the kernel, and this program, have some */
		good = good && err == ENOMEM && i <= max && i > max - 32;
		point(name);
	}
	while (i--)
		if (obj[i] && unmake(obj[i]))
			die("destroy");
	free(obj);
}

/* 4 MiB of queue and 4 MiB of region: more would be refused. */
static int churn(void)
{
	size_t len = 3 << 20;
	void *buf = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int i;

	for (i = 0; i < 50; i++) {
		struct ibv_cq *c = ibv_create_cq(ctx, 65536, NULL, NULL, 0);
		struct ibv_mr *mr = ibv_reg_mr(pd, buf, len, IBV_ACCESS_LOCAL_WRITE);

		if (!c || !mr) {
			printf("round %d: %s\n", i, strerror(errno));
			return 1;
		}
		if (ibv_create_cq(ctx, 65536, NULL, NULL, 0)) {
			printf("round %d: twice as much as there may be\n", i);
			return 1;
		}
		if (ibv_dereg_mr(mr) || ibv_destroy_cq(c))
			return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	ctx = open_device(argv[2]);
	pd = ibv_alloc_pd(ctx);
	if (!pd || ibv_query_device_ex(ctx, NULL, &ex))
		die(argv[2]);
	if (!strcmp(argv[1], "churn"))
		return churn();
	if (argc < 4)
		return 2;
	gid_index = atoi(argv[3]);
	cq = ibv_create_cq(ctx, 1024, NULL, NULL, 0);
	if (!cq || ibv_query_gid(ctx, 1, gid_index, &gid))
		die(argv[2]);

	if (argc == 4) {
		run("limits are at least rdma_rxe's", t_rxe);
		run("max_qp_wr, max_cqe, max_srq_wr, max_srq_sge: granted, and not one more", t_queues);
		run("max_sge, max_sge_rd: gathered and scattered, and not one more", t_sges);
		run("max_qp_rd_atom, max_qp_init_rd_atom: granted, and not one more", t_reads);
		run("max_mr_size: on demand, all addresses; no wrap", t_regions);
		run("max_dm_size: granted, and not one more byte", t_device_memory);
		run("one port, its P_Key, its GID table", t_port);
		run("max_mcast_qp_attach: granted, and not one more", t_members);
		run("memory grows with use, not with limits", t_grows);
	} else {
		run("max_mcast_grp: granted, and not one more", t_groups);
		many("PDs", dev->max_pd, make_pd, free_pd);
		many("address handles", dev->max_ah, make_ah, free_ah);
		many("memory windows", dev->max_mw, make_mw, free_mw);
		many("memory regions", dev->max_mr, make_mr, free_mr);
		many("CQs", dev->max_cq, make_cq, free_cq);
		many("SRQs", dev->max_srq, make_srq, free_srq);
		many("QPs", dev->max_qp, make_qp, free_qp);
	}
	printf("1..%d\n", count);
	return failed > 0;
}
