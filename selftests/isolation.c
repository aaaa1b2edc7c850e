// SPDX-License-Identifier: GPL-2.0
/*
 * isolation.c - what a program can reach of another's, and learn of the kernel's
 *
 *	isolation DEV-A GID-INDEX-A DEV-B GID-INDEX-B
 *
 * Run by a user without rights.  A child is the other program: it has a region, a
 * window, a connection, an address handle, and tells their keys and numbers; and
 * still none of it can be reached from here.  Keys and numbers are not to be guessed,
 * dead ones stay dead, and the memory that the kernel shares holds nothing that it
 * was not meant to hold: no address of the kernel's, nothing of who had the memory
 * before (a kernel that poisons memory makes that visible; see isolation.sh).  Nor do
 * the answers to commands, which pass an ioctl() of our own.
 */
#include <fcntl.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#include "rove.h"		/* the provider's: the number of an address handle */
#undef container_of
#include "pair.h"

#define KEYS	4096
#define PATTERN	0x11		/* all payload here is made of it */

/* What the other program tells. */
static struct secrets {
	volatile int ready, stop;
	uint32_t lkey, rkey, mw_rkey, qpn, ah;
	uint64_t addr;
	char memory[4096] __attribute__((aligned(4096)));	/* what its region is of */
} *other;

static char *mine;
static struct ibv_mr *a_mr, *b_mr;

static struct ibv_ah *ah_to(struct end *e, struct end *peer, struct ibv_pd *pd)
{
	struct ibv_ah_attr attr = {
		.is_global = 1, .port_num = 1,
		.grh = { .dgid = peer->gid, .sgid_index = e->gid_index, .hop_limit = 64 },
	};

	return ibv_create_ah(pd, &attr);
}

static void other_run(char **argv)
{
	struct ibv_mw_bind bind = { .send_flags = IBV_SEND_SIGNALED };
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	struct ibv_ah *ah;

	end_open(&a, argv[1], argv[2]);
	end_open(&b, argv[3], argv[4]);
	pair_open();
	memset(other->memory, 0x77, sizeof(other->memory));
	/* on the device that this program's packets arrive at */
	mr = ibv_reg_mr(b.pd, other->memory, 4096, ALL | IBV_ACCESS_MW_BIND);
	mw = ibv_alloc_mw(b.pd, IBV_MW_TYPE_1);
	ah = ah_to(&a, &b, a.pd);
	if (!mr || !mw || !ah)
		die("other");
	other->rkey = mr->rkey;
	bind.bind_info = (struct ibv_mw_bind_info) {
		mr, (uintptr_t)mr->addr, 4096, ALL & ~IBV_ACCESS_LOCAL_WRITE
	};
	if (ibv_bind_mw(b.qp, mw, &bind) || done(b.cq, NULL))
		die("bind_mw");
	other->mw_rkey = mw->rkey;
	mr = ibv_reg_mr(a.pd, other->memory, 4096, ALL);
	if (!mr)
		die("other");
	other->lkey = mr->lkey;
	other->addr = (uintptr_t)mr->addr;
	other->qpn = b.qp->qp_num;
	other->ah = to_rove_ah(ah)->number;
	other->ready = 1;
	while (!other->stop)
		usleep(1000);
	_exit(0);
}

static bool untouched(void)
{
	int i;

	for (i = 0; i < 4096; i++)
		if (other->memory[i] != 0x77)
			return false;
	return true;
}

/* --- another's keys and numbers ------------------------------------------------ */

static void local_key(void)
{
	CHECK(rdma(&a, a.qp, IBV_WR_RDMA_WRITE, (void *)(uintptr_t)other->addr, 64,
		   other->lkey, (uintptr_t)mine, b_mr->rkey) == IBV_WC_LOC_PROT_ERR);
}

static void remote_write(void)
{
	CHECK(rdma(&a, a.qp, IBV_WR_RDMA_WRITE, mine, 64, a_mr->lkey, other->addr,
		   other->rkey) == IBV_WC_REM_ACCESS_ERR);
	CHECK(untouched());
}

static void remote_read(void)
{
	memset(mine, PATTERN, 64);
	CHECK(rdma(&a, a.qp, IBV_WR_RDMA_READ, mine, 64, a_mr->lkey, other->addr,
		   other->rkey) == IBV_WC_REM_ACCESS_ERR);
	CHECK(mine[0] == PATTERN && mine[63] == PATTERN);
}

static void remote_window(void)
{
	CHECK(rdma(&a, a.qp, IBV_WR_RDMA_WRITE, mine, 64, a_mr->lkey, other->addr,
		   other->mw_rkey) == IBV_WC_REM_ACCESS_ERR);
	CHECK(untouched());
}

static void remote_atomic(void)
{
	CHECK(rdma(&a, a.qp, IBV_WR_ATOMIC_FETCH_AND_ADD, mine, 8, a_mr->lkey,
		   other->addr, other->rkey) == IBV_WC_REM_ACCESS_ERR);
	CHECK(untouched());
}

static void receive_into(void)
{
	struct ibv_sge sge = { (uintptr_t)mine, 64, a_mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};

	CHECK(!post_recv(&b, (void *)(uintptr_t)other->addr, 64, other->rkey));
	CHECK(!ibv_post_send(a.qp, &wr, &bad));
	CHECK(done(b.cq, NULL) == IBV_WC_LOC_PROT_ERR);
	CHECK(done(a.cq, NULL) == IBV_WC_REM_OP_ERR);
	CHECK(untouched());
}

/*
 * A QP of mine that claims to be the peer of another's, and knows all but the packet
 * number that is next: that, the number of the QP and the key are all that RoCE
 * has to tell friend from foe.
 */
static void their_connection(void)
{
	struct ibv_qp *qp = new_qp(&a);

	first_psn = 0x400000;
	connect_qp(&a, qp, &b, other->qpn);
	first_psn = 0;
	CHECK(rdma(&a, qp, IBV_WR_RDMA_WRITE, mine, 64, a_mr->lkey, other->addr,
		   other->rkey) != IBV_WC_SUCCESS);
	CHECK(!ibv_destroy_qp(qp));
	CHECK(untouched());
}

static void their_ah(void)
{
	struct ibv_qp_init_attr init = {
		.send_cq = a.cq, .recv_cq = a.cq,
		.cap = { 4, 4, 1, 1, 0 }, .qp_type = IBV_QPT_UD,
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 1 };
	struct ibv_sge sge = { (uintptr_t)mine, 64, a_mr->lkey };
	struct ibv_ah *ah = ah_to(&a, &b, a.pd);
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.ud = { .ah = ah, .remote_qpn = 2, .remote_qkey = 1 },
	};
	struct ibv_qp *qp = ibv_create_qp(a.pd, &init);

	CHECK(qp && ah);
	CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
			     IBV_QP_PORT | IBV_QP_QKEY));
	attr.qp_state = IBV_QPS_RTR;
	CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	attr.qp_state = IBV_QPS_RTS;
	CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
	CHECK(!ibv_post_send(qp, &wr, &bad));
	CHECK(done(a.cq, NULL) == IBV_WC_SUCCESS);
	to_rove_ah(ah)->number = other->ah;
	CHECK(!ibv_post_send(qp, &wr, &bad));
	CHECK(done(a.cq, NULL) == IBV_WC_LOC_QP_OP_ERR);
	CHECK(!ibv_destroy_qp(qp));
	CHECK(!ibv_destroy_ah(ah));
}

/* --- dead ones ---------------------------------------------------------------------- */

static void dead_keys(void)
{
	struct ibv_mr *mr = ibv_reg_mr(b.pd, mine, 4096, ALL);
	uint32_t rkey;
	int i;

	CHECK(mr);
	rkey = mr->rkey;
	CHECK(rdma(&a, a.qp, IBV_WR_RDMA_WRITE, mine + 8192, 64, a_mr->lkey,
		   (uintptr_t)mine, rkey) == IBV_WC_SUCCESS);
	CHECK(!ibv_dereg_mr(mr));
	/* the same memory again, many times: never under the key that was */
	for (i = 0; i < 1000; i++) {
		mr = ibv_reg_mr(b.pd, mine, 4096, ALL);
		CHECK(mr && mr->rkey != rkey);
		CHECK(!ibv_dereg_mr(mr));
	}
	CHECK(rdma(&a, a.qp, IBV_WR_RDMA_WRITE, mine + 8192, 64, a_mr->lkey,
		   (uintptr_t)mine, rkey) == IBV_WC_REM_ACCESS_ERR);
}

/* --- not to be guessed ---------------------------------------------------------------- */

/*
 * Of @n numbers of @bits bits: no step from one to the next stands out, each bit is
 * set in about half, and few are near the one before.
 */
static bool random_looking(const uint32_t *v, int n, int bits, int shift)
{
	int i, bit, ones, near = 0, same_step = 0;

	for (bit = shift; bit < shift + bits; bit++) {
		for (ones = i = 0; i < n; i++)
			ones += v[i] >> bit & 1;
		/* six standard deviations of a fair coin */
		if ((ones - n / 2) * (ones - n / 2) > 36 * n / 4) {
			printf("# bit %d: %d of %d\n", bit, ones, n);
			return false;
		}
	}
	for (i = 2; i < n; i++) {
		near += (uint32_t)(v[i] - v[i - 1] + (256u << shift)) < 512u << shift;
		same_step += v[i] - v[i - 1] == v[i - 1] - v[i - 2];
	}
	printf("# of %d: %d near the one before, %d by the same step\n", n, near, same_step);
	return near < 8 && same_step < 4;
}

static uint32_t numbers[KEYS];

static void keys(void)
{
	struct ibv_mr *mr;
	int i;

	for (i = 0; i < KEYS; i++) {
		mr = ibv_reg_mr(a.pd, mine, 4096, ALL);
		CHECK(mr);
		numbers[i] = mr->rkey;
		CHECK(!ibv_dereg_mr(mr));
	}
	CHECK(random_looking(numbers, KEYS, 32, 0));
}

static void window_keys(void)
{
	struct ibv_mw *mw;
	int i;

	for (i = 0; i < KEYS; i++) {
		mw = ibv_alloc_mw(a.pd, IBV_MW_TYPE_2);
		CHECK(mw);
		numbers[i] = mw->rkey;
		CHECK(!ibv_dealloc_mw(mw));
	}
	CHECK(random_looking(numbers, KEYS, 24, 8));
}

static void qpns(void)
{
	struct ibv_qp *qp;
	int i;

	for (i = 0; i < KEYS / 4; i++) {
		qp = new_qp(&a);
		numbers[i] = qp->qp_num;
		CHECK(!ibv_destroy_qp(qp));
	}
	CHECK(random_looking(numbers, KEYS / 4, 24, 0));
}

/* --- capabilities, limits --------------------------------------------------------------- */

/* Since 6.5 a Q_Key with its highest bit set takes a privilege; older ones may have it. */
static bool qkeys_checked(void)
{
	int major = 0, minor = 0;
	struct utsname u;

	return uname(&u) || sscanf(u.release, "%d.%d", &major, &minor) != 2 ||
	       major > 6 || (major == 6 && minor >= 5);
}

static void privileges(void)
{
	struct ibv_qp_init_attr init = {
		.send_cq = a.cq, .recv_cq = a.cq,
		.cap = { 4, 4, 1, 1, 0 }, .qp_type = IBV_QPT_RAW_PACKET,
	};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 0x80010000,
	};
	struct ibv_qp *qp;
	int err;

	CHECK(getuid());
	CHECK(!ibv_create_qp(a.pd, &init));
	CHECK(errno == EPERM || errno == EOPNOTSUPP);
	/* the GSI's */
	init.qp_type = 1;
	CHECK(!ibv_create_qp(a.pd, &init));
	init.qp_type = IBV_QPT_UD;
	qp = ibv_create_qp(a.pd, &init);
	CHECK(qp);
	err = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
			    IBV_QP_PORT | IBV_QP_QKEY);
	printf("# privileged Q_Key: errno %d\n", err);
	CHECK(err == EPERM || (!err && !qkeys_checked()));
	CHECK(!ibv_destroy_qp(qp));
}

static void locked_memory(void)
{
	struct rlimit was, lim = { 64 * KB, 64 * KB };
	struct ibv_mr *mr;
	char *p = mmap(NULL, MB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(!getrlimit(RLIMIT_MEMLOCK, &was));
	lim.rlim_max = was.rlim_max;
	CHECK(!setrlimit(RLIMIT_MEMLOCK, &lim));
	mr = ibv_reg_mr(a.pd, p, MB, ALL);
	CHECK(!mr && errno == ENOMEM);
	CHECK(!setrlimit(RLIMIT_MEMLOCK, &was));
	mr = ibv_reg_mr(a.pd, p, MB, ALL);
	CHECK(mr);
	CHECK(!ibv_dereg_mr(mr));
	munmap(p, MB);
}

/* Rights to write cannot be had on what may only be read. */
static void read_only(void)
{
	char *p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;
	char zero[4096] = "";

	CHECK(!ibv_reg_mr(a.pd, p, 4096, ALL));
	CHECK(errno == EFAULT);
	mr = ibv_reg_mr(b.pd, p, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			IBV_ACCESS_ON_DEMAND);
	if (mr) {
		CHECK(rdma(&a, a.qp, IBV_WR_RDMA_WRITE, mine, 64, a_mr->lkey,
			   (uintptr_t)p, mr->rkey) == IBV_WC_REM_ACCESS_ERR);
		CHECK(!ibv_dereg_mr(mr));
	}
	CHECK(!memcmp(p, zero, sizeof(zero)));
	munmap(p, 4096);
}

/* --- what the shared memory holds ------------------------------------------------------- */

/* Of a word: could it be an address in a kernel, or what a kernel poisons with? */
static const char *suspicious(uint64_t w)
{
	static const uint8_t poison[] = { 0x5a, 0x6b, 0xa5, 0xbb, 0xcc, 0xaa, 0x6a };
	unsigned int i;

	/*
	 * All ones, or an errno: small negative numbers are no addresses.  Nor is a small
	 * number, a handle, before a key, of which one in 2^17 looks like an address's half.
	 */
	if (w >> 47 == 0x1ffff && (int64_t)w <= -4096 && (uint32_t)w >= 0x10000)
		return "a kernel address";
	for (i = 0; i < sizeof(poison); i++)
		if ((uint32_t)w == poison[i] * 0x01010101u || w >> 32 == poison[i] * 0x01010101u)
			return "poison";
	return NULL;
}

/*
 * libibverbs's ioctl() is this one, too.  What differs in the memory that a command's
 * attributes point to is the kernel's answer.
 */
#define ATTRS	32		/* of a command; the verbs here have fewer */
#define BYTES	1024

static struct {
	unsigned int commands, words, found;
} answers;

/* Attributes of up to eight bytes may be no pointers: nothing is read then. */
static size_t peek(const struct ib_uverbs_attr *at, void *buf)
{
	struct iovec near = { buf, BYTES };
	struct iovec far = { (void *)(uintptr_t)at->data, at->len < BYTES ? at->len : BYTES };
	ssize_t n = far.iov_len ? process_vm_readv(getpid(), &near, 1, &far, 1, 0) : 0;

	return n > 0 ? n : 0;
}

static void look_at(const struct ib_uverbs_ioctl_hdr *h, const struct ib_uverbs_attr *at,
		    const uint32_t *before, const uint32_t *after, size_t len)
{
	const char *what;
	uint64_t w;
	size_t i;

	for (i = 0; i < len / 4; i++) {
		if (before[i] == after[i])
			continue;
		answers.words++;
		/* addresses are aligned, poison may be in half a word */
		w = i & 1 ? (uint64_t)after[i] << 32 | after[i - 1] : after[i];
		what = suspicious(w);
		if (what && answers.found++ < 5)
			printf("# object %#x, method %u, attribute %#x: %s %#llx before byte %zu\n",
			       h->object_id, h->method_id, at->attr_id, what,
			       (unsigned long long)w, i * 4 + 4);
	}
}

int ioctl(int fd, unsigned long request, ...)
{
	static uint32_t before[ATTRS][BYTES / 4], after[BYTES / 4];
	struct ib_uverbs_ioctl_hdr *h;
	unsigned int i, n = 0;
	size_t len[ATTRS];
	va_list ap;
	int ret;

	va_start(ap, request);
	h = va_arg(ap, void *);
	va_end(ap);
	if (request == RDMA_VERBS_IOCTL)
		n = h->num_attrs < ATTRS ? h->num_attrs : ATTRS;
	for (i = 0; i < n; i++)
		len[i] = peek(&h->attrs[i], before[i]);
	ret = syscall(SYS_ioctl, fd, request, h);
	answers.commands += n > 0;
	for (i = 0; i < n; i++)
		if (len[i] && peek(&h->attrs[i], after) == len[i])
			look_at(h, &h->attrs[i], before[i], after, len[i]);
	return ret;
}

/* All that there is to ask and to make, beyond what was until now. */
static void asked(void)
{
	struct ibv_srq_init_attr sinit = { .attr = { .max_wr = 10, .max_sge = 1 } };
	struct ibv_qp_init_attr init = {
		.cap = { 10, 10, 1, 1, 0 }, .qp_type = IBV_QPT_UD,
	}, init2;
	struct ibv_xrcd_init_attr xinit = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1, .oflags = O_CREAT,
	};
	struct ibv_alloc_dm_attr dattr = { .length = 4096 };
	struct ibv_device_attr_ex dev;
	struct ibv_port_attr port;
	struct ibv_gid_entry gids[16];
	struct ibv_srq_attr sattr;
	struct ibv_qp_attr attr;
	struct ibv_context *ctx = ibv_open_device(a.ctx->device);
	struct ibv_pd *pd = ctx ? ibv_alloc_pd(ctx) : NULL;
	struct ibv_cq *cq = ctx ? ibv_create_cq(ctx, 10, NULL, NULL, 0) : NULL;
	struct ibv_srq *srq = pd ? ibv_create_srq(pd, &sinit) : NULL;
	struct ibv_xrcd *xrcd = ctx ? ibv_open_xrcd(ctx, &xinit) : NULL;
	struct ibv_mw *mw = pd ? ibv_alloc_mw(pd, IBV_MW_TYPE_2) : NULL;
	struct ibv_dm *dm = ctx ? ibv_alloc_dm(ctx, &dattr) : NULL;
	struct ibv_mr *mr, *mr2;
	struct ibv_qp *qp;
	struct ibv_ah *ah;
	__be16 pkey;

	CHECK(ctx && pd && cq && srq && xrcd && mw && dm);
	init.send_cq = init.recv_cq = cq;
	qp = ibv_create_qp(pd, &init);
	ah = ah_to(&a, &b, a.pd);
	mr = ibv_reg_mr(pd, mine, 4096, ALL);
	mr2 = ibv_reg_dm_mr(pd, dm, 0, 4096, ALL | IBV_ACCESS_ZERO_BASED);
	CHECK(qp && ah && mr && mr2);
	CHECK(!ibv_query_device_ex(ctx, NULL, &dev) && !ibv_query_port(ctx, 1, &port));
	CHECK(ibv_query_gid_table(ctx, gids, 16, 0) > 0 && !ibv_query_pkey(ctx, 1, 0, &pkey));
	CHECK(!ibv_query_qp(a.qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_CAP, &init2));
	CHECK(!ibv_query_qp(qp, &attr, IBV_QP_STATE, &init2) && !ibv_query_srq(srq, &sattr));
	CHECK(!ibv_resize_cq(cq, 500));
	sattr.max_wr = 500;
	CHECK(!ibv_modify_srq(srq, &sattr, IBV_SRQ_MAX_WR));
	CHECK(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, pd, mine + 4096, 4096, 0));
	CHECK(!ibv_dereg_mr(mr2) && !ibv_dereg_mr(mr) && !ibv_destroy_ah(ah) &&
	      !ibv_destroy_qp(qp) && !ibv_free_dm(dm) && !ibv_dealloc_mw(mw) &&
	      !ibv_close_xrcd(xrcd) && !ibv_destroy_srq(srq) && !ibv_destroy_cq(cq) &&
	      !ibv_dealloc_pd(pd) && !ibv_close_device(ctx));
	printf("# %u commands, %u words of answers\n", answers.commands, answers.words);
	CHECK(answers.commands > 20000 && answers.words > 20000);
	CHECK(!answers.found);
}

static int search(const char *when)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long from, to, i;
	int found = 0, maps = 0;
	char line[512];
	const char *what;

	while (f && fgets(line, sizeof(line), f)) {
		if (!strstr(line, "uverbs") || sscanf(line, "%lx-%lx", &from, &to) != 2)
			continue;
		maps++;
		for (i = from; i < to; i += 8) {
			what = suspicious(*(uint64_t *)i);
			if (!what)
				continue;
			if (found++ < 5)
				printf("# %s: %s %#llx at byte %lu of %s", when, what,
				       (unsigned long long)*(uint64_t *)i, i - from, line);
		}
	}
	if (f)
		fclose(f);
	return maps ? found : -1;
}

static void fresh(void)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 300, .max_sge = 2 } };
	struct ibv_srq *srq = ibv_create_srq(a.pd, &init);
	struct ibv_alloc_dm_attr dattr = { .length = 8192 };
	struct ibv_dm *dm = ibv_alloc_dm(a.ctx, &dattr);
	uint64_t words[1024] = { 0 };
	unsigned int i;

	CHECK(srq);
	CHECK(search("fresh") == 0);
	if (dm) {
		CHECK(!ibv_memcpy_from_dm(words, dm, 0, sizeof(words)));
		for (i = 0; i < 1024; i++)
			CHECK(!words[i]);
		CHECK(!ibv_free_dm(dm));
	}
	CHECK(!ibv_destroy_srq(srq));
}

/* The completions of all that can be done, errors last; of any length, so that packets are padded. */
static void used(void)
{
	static const enum ibv_wr_opcode ops[] = {
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD,
	};
	struct ibv_sge sge = { (uintptr_t)mine, 3000, a_mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND_WITH_IMM,
		.send_flags = IBV_SEND_SIGNALED,
	};
	unsigned int i;

	for (i = 0; i < 30; i++)
		CHECK(!rdma(&a, a.qp, ops[i % 3], mine, i % 3 == 2 ? 8 : 5000 - i,
			    a_mr->lkey, (uintptr_t)mine + 8192, b_mr->rkey));
	for (i = 0; i < 10; i++) {
		CHECK(!post_recv(&b, mine + 8192, 8192, b_mr->lkey));
		sge.length = 3000 - i;
		CHECK(!ibv_post_send(a.qp, &wr, &bad));
		CHECK(!done(b.cq, NULL) && !done(a.cq, NULL));
	}
	CHECK(!post_recv(&a, mine, 64, a_mr->lkey) && !post_recv(&b, mine, 64, b_mr->lkey));
	CHECK(rdma(&a, a.qp, IBV_WR_RDMA_WRITE, mine, 64, a_mr->lkey, 0, 12345));
	CHECK(done(a.cq, NULL) > 0);
	CHECK(search("used") == 0);
}

int main(int argc, char **argv)
{
	pid_t pid;

	if (argc < 5) {
		fprintf(stderr, "usage: %s DEV GID DEV GID\n", *argv);
		return 2;
	}
	other = mmap(NULL, sizeof(*other), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	fflush(stdout);
	pid = fork();
	if (!pid)
		other_run(argv);
	end_open(&a, argv[1], argv[2]);
	end_open(&b, argv[3], argv[4]);
	mine = mmap(NULL, 64 * KB, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(mine, PATTERN, 64 * KB);
	a_mr = ibv_reg_mr(a.pd, mine, 64 * KB, ALL);
	b_mr = ibv_reg_mr(b.pd, mine, 64 * KB, ALL);
	if (!a_mr || !b_mr)
		die("reg_mr");
	while (!other->ready)
		if (waitpid(pid, NULL, WNOHANG) || usleep(1000))
			die("the other program");

	run("another's lkey is nobody's here", local_key);
	run("another's rkey cannot be written to", remote_write);
	run("nor read from", remote_read);
	run("nor counted up", remote_atomic);
	run("nor written to through its window", remote_window);
	run("another's key cannot be received into", receive_into);
	run("another's connection takes no packet with a number that is not due", their_connection);
	run("another's address handle cannot be sent to", their_ah);
	run("a key is not used again", dead_keys);
	run("keys of regions cannot be guessed", keys);
	run("keys of windows cannot be guessed", window_keys);
	run("numbers of queue pairs cannot be guessed", qpns);
	run("what takes privileges is refused", privileges);
	run("RLIMIT_MEMLOCK counts", locked_memory);
	run("read-only memory stays so", read_only);
	run("fresh shared memory holds nothing", fresh);
	run("used shared memory holds nothing of the kernel's", used);

	run("answers to commands hold nothing of the kernel's", asked);

	other->stop = 1;
	waitpid(pid, NULL, 0);
	printf("1..%d\n", count);
	return failed > 0;
}
