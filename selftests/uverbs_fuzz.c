// SPDX-License-Identifier: GPL-2.0
/*
 * uverbs_fuzz.c - what else could have been asked of /dev/infiniband/uverbs
 *
 *	uverbs_fuzz DEVICE GID_INDEX SECONDS SEED [WRONG]
 *
 * A program of ordinary verbs, over and over, each time a process of its own, as root and
 * as nobody.  Its system calls on the device go through here: before a right one is
 * made, wrong ones like it are: ioctls with fields, attributes, lengths, flags and pointers
 * changed, what the pointers lead to changed; commands by write(), the right ones and
 * ones of any bytes; mmap() of any offset, length and rights.  What such a call answers is
 * no matter.  WRONG of a thousand calls are changed (300).
 *
 * It ends with the first process after which the kernel has something to report, and
 * names its seed. With that as SEED and CALLS=FILE in the environment, all calls
 * of that process are in the file, with what they answered.
 *
 * The caller looks at what the kernel has to say and whether everything is gone.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rdma/rdma_user_ioctl_cmds.h>

#include "points.h"

#define NOBODY		65534
#define LIFE		8	/* seconds that one process has */
#define MAX_ATTRS	64
#define ROOM		8192

static uint64_t seed;
static unsigned int wrong = 300;
static int device = -1;		/* the one whose calls are changed */
static uint8_t *room;		/* memory that ends where nothing is mapped */
static uint64_t *calls;		/* made wrong, by all processes: those of root, of nobody */
static FILE *said;		/* where the calls are written down, if wanted */

static uint32_t rnd(void)
{
	uint64_t z = seed += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return (z ^ z >> 31) >> 16;
}

static uint32_t below(uint32_t n)
{
	return n ? rnd() % n : 0;
}

static bool chance(unsigned int thousandths)
{
	return below(1000) < thousandths;
}

static uint64_t odd_number(void)
{
	static const uint64_t odd[] = {
		0, 1, 2, 3, 7, 8, 16, 255, 256, 4095, 4096, 65535, 65536,
		0x7fffffff, 0x80000000, 0xffffffff, 0x100000000, 0x7fffffffffffffff,
		0xffffffffffffffff, 0xfffffffffffff000, 0xffff888000000000,
		0xffffffff81000000,
	};

	if (below(2))
		return odd[below(sizeof(odd) / sizeof(odd[0]))];
	return (uint64_t)rnd() << 32 >> below(64) | below(64);
}

static void spoil_bytes(uint8_t *p, size_t len)
{
	unsigned int n = 1 + below(4);

	while (n-- && len) {
		size_t at = below(len);
		uint64_t v = odd_number();

		switch (below(4)) {
		case 0:
			p[at] ^= 1 << below(8);
			break;
		case 1:
			p[at] = v;
			break;
		case 2:
			at &= ~3;
			memcpy(p + at, &v, len - at < 4 ? len - at : 4);
			break;
		case 3:
			at &= ~7;
			memcpy(p + at, &v, len - at < 8 ? len - at : 8);
			break;
		}
	}
}

/* @len bytes like those at @from, in memory that ends with them. */
static void *like(const void *from, size_t len)
{
	uint8_t *to;

	if (len > ROOM)
		return NULL;
	to = room + ROOM - len;
	/* By system call: what is there may be no memory at all. */
	memset(to, 0, len);
	if (from) {
		int fd[2];

		if (pipe(fd))
			return NULL;
		if (len && len <= 4096 && syscall(SYS_write, fd[1], from, len) > 0)
			len = read(fd[0], to, len);
		close(fd[0]);
		close(fd[1]);
	}
	return to;
}

static void show(const char *fmt, ...)
{
	va_list ap;

	if (!said)
		return;
	va_start(ap, fmt);
	vfprintf(said, fmt, ap);
	va_end(ap);
	fflush(said);
}

static void show_words(const void *p, size_t len)
{
	uint32_t words[32];
	size_t i, n = len / 4 < 32 ? len / 4 : 32;

	memcpy(words, p, n * 4);
	for (i = 0; i < n; i++)
		show(" %x", words[i]);
}

/* A call of the C library's that goes to the kernel, and what it answers. */
#define CALL(...) ({							\
	long ret_ = syscall(__VA_ARGS__);				\
									\
	show(" = %ld%s%s\n", ret_, ret_ < 0 ? " " : "",			\
	     ret_ < 0 ? strerrorname_np(errno) : "");			\
	ret_;								\
})

/* ---- ioctl ---- */

static void show_ioctl(const char *kind, const struct ib_uverbs_ioctl_hdr *h)
{
	const struct ib_uverbs_attr *a = h->attrs;
	unsigned int i;

	if (!said)
		return;
	show("%s ioctl object %#x method %#x length %u driver %#x", kind, h->object_id,
	     h->method_id, h->length, h->driver_id);
	for (i = 0; i < h->num_attrs && i < MAX_ATTRS; i++)
		show(" [%#x len %u flags %#x %#x: %#llx]", a[i].attr_id, a[i].len, a[i].flags,
		     a[i].attr_data.reserved, (unsigned long long)a[i].data);
}

static void spoil_attr(struct ib_uverbs_attr *a)
{
	void *p;

	switch (below(8)) {
	case 0:
		a->attr_id = below(4) ? a->attr_id ^ 1u << below(16) : below(32);
		break;
	case 1:
		a->len = below(2) ? odd_number() : a->len + below(9) - 4;
		break;
	case 2:
		a->flags = odd_number();
		break;
	case 3:
		a->attr_data.reserved = odd_number();
		break;
	case 4:
		a->data = odd_number();
		break;
	case 5:
		if (a->len <= sizeof(a->data))
			spoil_bytes((uint8_t *)&a->data, sizeof(a->data));
		break;
	default:
		p = a->len > sizeof(a->data) ? like((void *)(uintptr_t)a->data, a->len) : NULL;
		if (p) {
			spoil_bytes(p, a->len);
			a->data = (uintptr_t)p;
		}
		break;
	}
}

static void wrong_ioctl(int fd, unsigned long req, const struct ib_uverbs_ioctl_hdr *right)
{
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attrs[MAX_ATTRS];
	} c = {};
	unsigned int n = right->num_attrs, i, k;

	if (n > MAX_ATTRS - 1)
		return;
	memcpy(&c, right, sizeof(c.hdr) + n * sizeof(c.attrs[0]));
	for (i = 1 + below(3); i--; ) {
		switch (below(10)) {
		case 0:
			spoil_bytes((uint8_t *)&c.hdr, sizeof(c.hdr));
			break;
		case 1:
			c.hdr.method_id = below(16) | (below(8) ? 0 : 1 << 12);
			break;
		case 2:
			c.hdr.object_id = below(24);
			break;
		case 3:		/* one twice, or in the wrong place */
			k = n ? below(n) : 0;
			c.attrs[n] = c.attrs[k];
			if (below(2) && n < MAX_ATTRS - 1) {
				c.hdr.num_attrs = ++n;
				c.hdr.length = sizeof(c.hdr) + n * sizeof(c.attrs[0]);
			}
			break;
		case 4:		/* one left out */
			if (!n)
				break;
			k = below(n);
			memmove(&c.attrs[k], &c.attrs[k + 1], (n - k) * sizeof(c.attrs[0]));
			c.hdr.num_attrs = --n;
			c.hdr.length = sizeof(c.hdr) + n * sizeof(c.attrs[0]);
			break;
		default:
			if (n)
				spoil_attr(&c.attrs[below(n)]);
			break;
		}
	}
	++calls[!!geteuid()];
	show_ioctl("wrong", &c.hdr);
	CALL(SYS_ioctl, fd, req, &c);
}

/* Takes the place of the C library's, for libibverbs too. */
int ioctl(int fd, unsigned long req, ...)
{
	va_list ap;
	void *arg;
	int saved = errno;

	va_start(ap, req);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (fd == device && device >= 0 && req == RDMA_VERBS_IOCTL) {
		while (chance(wrong))
			wrong_ioctl(fd, req, arg);
		if (chance(wrong / 10)) {
			++calls[!!geteuid()];
			show("wrong ioctl of any number");
			CALL(SYS_ioctl, fd, below(2) ? req ^ 1 << below(32) : req,
			     below(2) ? (void *)(uintptr_t)odd_number() : NULL);
		}
		errno = saved;
		show_ioctl("right", arg);
		return CALL(SYS_ioctl, fd, req, arg);
	}
	return syscall(SYS_ioctl, fd, req, arg);
}

/* ---- write ---- */

struct cmd {
	uint32_t command;
	uint16_t in_words;
	uint16_t out_words;
	uint32_t body[64];
};

static void any_write(int fd)
{
	struct cmd c;
	unsigned int words = below(40), i;
	bool ex = below(3) == 0;

	memset(&c, 0, sizeof(c));
	c.command = below(64) | (ex ? 0x80000000 : 0);
	c.in_words = ex ? below(16) : words + 2;
	c.out_words = below(32);
	for (i = 0; i < 64; i++)
		c.body[i] = below(3) ? below(8) : odd_number();
	/* Where the answer goes. */
	if (below(8)) {
		uint64_t to = (uintptr_t)room;

		memcpy(c.body, &to, 8);
	}
	if (ex) {
		c.body[2] = below(16);		/* provider words in and out */
		c.body[3] = 0;
		words = (c.in_words + (c.body[2] & 0xffff)) * 2 + 4;
	}
	++calls[!!geteuid()];
	if (words > 64)
		return;
	show("wrong write");
	show_words(&c, 8 + words * 4);
	CALL(SYS_write, fd, &c, 8 + words * 4);
}

ssize_t write(int fd, const void *buf, size_t len)
{
	int saved = errno;
	uint8_t *p;

	if (fd == device && device >= 0) {
		while (chance(wrong)) {
			p = like(buf, len);
			if (!p)
				break;
			spoil_bytes(p, len);
			++calls[!!geteuid()];
			show("wrong write");
			show_words(p, len);
			CALL(SYS_write, fd, p, below(8) ? len : below(len + 64));
		}
		errno = saved;
		show("right write");
		show_words(buf, len);
		return CALL(SYS_write, fd, buf, len);
	}
	return syscall(SYS_write, fd, buf, len);
}

/* ---- mmap ---- */

static void any_mmap(int fd)
{
	size_t len = below(8) ? 4096ul << below(6) : odd_number() & 0xffffff;
	int prot = below(8), flags = below(4) ? MAP_SHARED : MAP_PRIVATE;
	uint64_t off = below(2) ? (uint64_t)below(64) << 12 : (uint64_t)below(64) << (12 + below(40));
	volatile uint8_t *p;

	++calls[!!geteuid()];
	p = mmap(NULL, len, prot, flags, fd, off & ~4095ull);
	show("mmap offset %#llx length %#zx prot %d flags %d = %s\n",
	     (unsigned long long)off & ~4095ull, len, prot, flags,
	     p == MAP_FAILED ? strerrorname_np(errno) : "ok");
	if (p == MAP_FAILED)
		return;
	if (prot & PROT_READ)
		(void)p[below(len)];
	if (prot & PROT_WRITE)
		p[below(len)] = rnd();
	if (below(2))
		mprotect((void *)p, len, below(8));
	if (below(2))
		madvise((void *)p, len, below(26));
	/* A piece of it, perhaps: the rest goes with the process. */
	munmap((void *)p, below(2) ? len : 4096);
}

/* ---- the program ---- */

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_srq *srq;
static uint8_t memory[16384] __attribute__((aligned(4096)));

static void connect_to_itself(int gid_index)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = 15,
		.qkey = 1,
	};
	bool ud = qp->qp_type == IBV_QPT_UD, rc = qp->qp_type == IBV_QPT_RC;

	ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
		      (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
	a.qp_state = IBV_QPS_RTR;
	a.path_mtu = IBV_MTU_1024;
	a.dest_qp_num = qp->qp_num;
	a.max_dest_rd_atomic = 4;
	a.min_rnr_timer = 1;
	a.ah_attr.is_global = 1;
	a.ah_attr.port_num = 1;
	a.ah_attr.grh.sgid_index = gid_index;
	a.ah_attr.grh.hop_limit = 1;
	ibv_query_gid(ctx, 1, gid_index, &a.ah_attr.grh.dgid);
	ibv_modify_qp(qp, &a, IBV_QP_STATE |
		      (ud ? 0 : IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN) |
		      (rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0));
	a.qp_state = IBV_QPS_RTS;
	a.timeout = 8;
	a.retry_cnt = 1;
	a.rnr_retry = 1;
	a.max_rd_atomic = 4;
	ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN |
		      (rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		       IBV_QP_MAX_QP_RD_ATOMIC : 0));
}

static void work(struct ibv_mr *mr)
{
	struct ibv_sge sge = { (uintptr_t)memory, 64, mr ? mr->lkey : 1 };
	struct ibv_recv_wr recv = { .sg_list = &sge, .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr send = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
				    .send_flags = IBV_SEND_SIGNALED }, *bad;
	struct ibv_wc wc[8];
	unsigned int i;

	send.wr.rdma.remote_addr = (uintptr_t)memory + 4096;
	send.wr.rdma.rkey = mr ? mr->rkey : 1;
	if (qp->qp_type == IBV_QPT_UD)
		send.opcode = IBV_WR_SEND;
	for (i = 0; i < 8; i++) {
		if (qp->qp_type != IBV_QPT_UD)
			ibv_post_send(qp, &send, &bad);
		if (srq)
			ibv_post_srq_recv(srq, &recv, &bad_recv);
		else
			ibv_post_recv(qp, &recv, &bad_recv);
		ibv_poll_cq(cq, 8, wc);
	}
	ibv_req_notify_cq(cq, 0);
}

/* One life: whatever fails, goes on with what is there. */
static void live(int gid_index)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD };
	struct ibv_comp_channel *ch = ibv_create_comp_channel(ctx);
	struct ibv_srq_init_attr srq_init = { .attr = { 16, 2, 0 } };
	struct ibv_srq_attr srq_attr = { .max_wr = 64, .srq_limit = 4 };
	struct ibv_qp_init_attr init = { .cap = { 16, 16, 2, 2, 64 } };
	struct ibv_alloc_dm_attr dm_attr = { .length = 4096 };
	struct ibv_xrcd_init_attr xrcd_attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1, .oflags = O_CREAT,
	};
	struct ibv_ah_attr ah_attr = { .is_global = 1, .port_num = 1 };
	struct ibv_device_attr_ex dev;
	struct ibv_port_attr port;
	struct ibv_qp_attr attr;
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	struct ibv_dm *dm;
	struct ibv_xrcd *xrcd;
	struct ibv_ah *ah;
	union ibv_gid gid = {};
	unsigned int i;

	ibv_query_device_ex(ctx, NULL, &dev);
	ibv_query_port(ctx, 1, &port);
	pd = ibv_alloc_pd(ctx);
	cq = ibv_create_cq(ctx, 64, NULL, ch, 0);
	if (!pd || !cq)
		return;
	mr = ibv_reg_mr(pd, memory, sizeof(memory), 15 | (below(4) ? 0 : IBV_ACCESS_ON_DEMAND));
	if (mr)
		ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 7);
	mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	dm = ibv_alloc_dm(ctx, &dm_attr);
	xrcd = ibv_open_xrcd(ctx, &xrcd_attr);
	srq = below(2) ? ibv_create_srq(pd, &srq_init) : NULL;
	if (srq)
		ibv_modify_srq(srq, &srq_attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT);
	init.send_cq = cq;
	init.recv_cq = cq;
	init.srq = srq;
	init.qp_type = types[below(4)];
	if (init.qp_type == IBV_QPT_UC)
		init.srq = NULL;
	qp = ibv_create_qp(pd, &init);
	ah_attr.grh.sgid_index = gid_index;
	ibv_query_gid(ctx, 1, gid_index, &ah_attr.grh.dgid);
	ah = ibv_create_ah(pd, &ah_attr);
	if (qp) {
		connect_to_itself(gid_index);
		work(mr);
		ibv_query_qp(qp, &attr, IBV_QP_STATE | IBV_QP_CAP, &init);
		gid.raw[0] = 0xff;
		gid.raw[1] = 0x0e;
		gid.raw[15] = below(255);
		ibv_attach_mcast(qp, &gid, 0);
		ibv_detach_mcast(qp, &gid, 0);
	}
	ibv_resize_cq(cq, 200);
	for (i = 0; i < 4; i++) {
		any_write(device);
		any_mmap(device);
	}
	/* In the right order, in another, or not at all. */
	for (i = 0; i < 12; i++) {
		switch (below(3) ? i : below(12)) {
		case 0: if (ah) ibv_destroy_ah(ah); ah = NULL; break;
		case 1: if (qp) ibv_destroy_qp(qp); qp = NULL; break;
		case 2: if (srq) ibv_destroy_srq(srq); srq = NULL; break;
		case 3: if (mw) ibv_dealloc_mw(mw); mw = NULL; break;
		case 4: if (mr) ibv_dereg_mr(mr); mr = NULL; break;
		case 5: if (dm) ibv_free_dm(dm); dm = NULL; break;
		case 6: if (xrcd) ibv_close_xrcd(xrcd); xrcd = NULL; break;
		case 7: if (cq && !qp) ibv_destroy_cq(cq); cq = qp ? cq : NULL; break;
		}
	}
}

static void forget(int sig)
{
	_exit(0);
}

/* Has the kernel said something that should not be? */
static bool reported(void)
{
	static const char *const words[] = {
		"BUG:", "WARNING:", "Oops", "KASAN", "UBSAN", "refcount_t", "Call Trace",
	};
	static char log[1 << 20];
	int len = klogctl(3, log, sizeof(log) - 1);
	unsigned int i;

	log[len > 0 ? len : 0] = 0;
	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strstr(log, words[i]))
			return true;
	return false;
}

int main(int argc, char **argv)
{
	unsigned int n, seconds, late = 0;
	struct timespec now, end;
	uint64_t first;

	if (argc < 5)
		return 2;
	seconds = atoi(argv[3]);
	first = strtoull(argv[4], NULL, 0);
	if (argc > 5)
		wrong = atoi(argv[5]);
	room = mmap(NULL, ROOM + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	calls = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (room == MAP_FAILED || calls == MAP_FAILED)
		die("mmap");
	munmap(room + ROOM, 4096);
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += seconds;
	if (reported())
		die("the kernel's log has reports in it");
	for (n = 0; ; n++) {
		pid_t pid;
		int status, i;

		clock_gettime(CLOCK_MONOTONIC, &now);
		if (now.tv_sec >= end.tv_sec)
			break;
		pid = fork();
		if (pid < 0)
			die("fork");
		if (!pid) {
			seed = first + n;
			/* It may have written into itself. */
			signal(SIGSEGV, forget);
			signal(SIGBUS, forget);
			signal(SIGABRT, forget);
			freopen("/dev/null", "w", stdout);
			freopen("/dev/null", "w", stderr);
			if (n & 1 && (setgid(NOBODY) || setuid(NOBODY)))
				_exit(1);
			if (getenv("CALLS"))
				said = fopen(getenv("CALLS"), "w");
			ctx = open_device(argv[1]);
			device = ctx->cmd_fd;
			live(atoi(argv[2]));
			_exit(0);
		}
		/* Nothing that is asked wrongly may take for ever. */
		for (i = 0; i < LIFE * 100 && waitpid(pid, &status, WNOHANG) == 0; i++)
			poll(NULL, 0, 10);
		if (i < LIFE * 100) {
			if (!reported())
				continue;
			printf("# seed %llu: the kernel reports something\n",
			       (unsigned long long)(first + n));
			n++;
			break;
		}
		late++;
		printf("# seed %llu takes more than %u s\n", (unsigned long long)(first + n), LIFE);
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
	}
	printf("# seeds %llu to %llu, %llu calls made wrong by root, %llu by nobody\n",
	       (unsigned long long)first, (unsigned long long)(first + n - 1),
	       (unsigned long long)calls[0], (unsigned long long)calls[1]);
	good = calls[0] > n && calls[1] > n;
	point("wrong calls were made, by either");
	good = !late;
	point("none takes long");
	printf("1..%d\n", count);
	return failed > 0;
}
