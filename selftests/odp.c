// SPDX-License-Identifier: GPL-2.0
/*
 * odp.c - on-demand paging: pages that were never touched, that go and come back
 * under traffic, that cannot be had (hazard 26)
 *
 *	odp DEV-A GID-INDEX-A DEV-B GID-INDEX-B
 *
 * a asks, b has the paged memory, unless a test says otherwise.
 */
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/fuse.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "pair.h"

#define ODP	(ALL | IBV_ACCESS_ON_DEMAND)
#define LEN	(512 * KB)

static char *near;
static struct ibv_mr *src;	/* of a over near, pinned */

static void *fresh(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		die("mmap");
	return p;
}

static bool zero(const char *p, size_t len)
{
	while (len && !*p) {
		p++;
		len--;
	}
	return !len;
}

static uint64_t counter(struct end *e, const char *name)
{
	return hw_counter(ibv_get_device_name(e->ctx->device), name);
}

/* A line of a file of the kernel's, in KiB. */
static long kib(const char *path, const char *key)
{
	char line[200];
	long v = -1;
	FILE *f = fopen(path, "r");

	while (f && v < 0 && fgets(line, sizeof(line), f))
		if (!strncmp(line, key, strlen(key)))
			v = atol(line + strlen(key));
	if (v < 0)
		die(key);
	fclose(f);
	return v;
}

static long kernel_kib(void)
{
	return kib("/proc/meminfo", "SUnreclaim:");
}

static long locked_kib(void)
{
	return kib("/proc/self/status", "VmPin:");
}

static void forgo(int cap)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct caps[2];

	if (syscall(SYS_capget, &head, caps))
		die("capget");
	caps[0].effective &= ~(1u << cap);
	if (syscall(SYS_capset, &head, caps))
		die("capset");
}

/*
 * Be one to whom RLIMIT_MEMLOCK applies, and may lock what it likes.  Not later:
 * a file descriptor of another's is of no use.
 */
static void be_limited(void)
{
	struct rlimit none = { RLIM_INFINITY, RLIM_INFINITY };

	if (setrlimit(RLIMIT_MEMLOCK, &none))
		die("setrlimit");
	forgo(CAP_IPC_LOCK);
}

/* So many KiB more may be locked; negative: all. */
static void may_lock(long more)
{
	struct rlimit lim = { RLIM_INFINITY, RLIM_INFINITY };

	if (more >= 0)
		lim.rlim_cur = (locked_kib() + more) * KB;
	if (setrlimit(RLIMIT_MEMLOCK, &lim))
		die("setrlimit");
}

static int to(void *there, uint32_t len, uint32_t key)
{
	return rdma(&a, a.qp, IBV_WR_RDMA_WRITE, near, len, src->lkey,
		    (uintptr_t)there, key);
}

static int from(void *there, uint32_t len, uint32_t key)
{
	return rdma(&a, a.qp, IBV_WR_RDMA_READ, near, len, src->lkey,
		    (uintptr_t)there, key);
}

static void t_untouched(void)
{
	uint64_t before = counter(&b, "page_faults");
	char *p = fresh(LEN);
	struct ibv_mr *m = ibv_reg_mr(b.pd, p, LEN, ODP);
	uint64_t *n = (uint64_t *)(p + 8192);

	CHECK(m);
	near[0] = 1;
	CHECK(!from(p, LEN, m->rkey) && zero(near, LEN));
	scramble(near, LEN);
	CHECK(!to(p, LEN, m->rkey) && !memcmp(p, near, LEN));
	munmap(p, LEN);
	CHECK(mmap(p, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
		   -1, 0) == p);
	/* each right after nothing is there */
	CHECK(!rdma(&a, a.qp, IBV_WR_ATOMIC_FETCH_AND_ADD, near, 8, src->lkey,
		    (uintptr_t)n, m->rkey) && *n == 1);
	CHECK(!post_recv(&b, p + 100000, 100000, m->lkey));
	CHECK(!rdma(&a, a.qp, IBV_WR_SEND, near, 100000, src->lkey, 0, 0));
	CHECK(!done(b.cq, NULL) && !memcmp(p + 100000, near, 100000));
	CHECK(counter(&b, "page_faults") > before + 2 * LEN / 4096);
	CHECK(!ibv_dereg_mr(m));
	munmap(p, LEN);
}

/* The same for the requester: what it sends, and where answers go. */
static void t_requester(void)
{
	char *p = fresh(LEN), *q = fresh(LEN);
	struct ibv_mr *mp = ibv_reg_mr(b.pd, p, LEN, ODP);
	struct ibv_mr *mq = ibv_reg_mr(b.pd, q, LEN, ODP);

	CHECK(mp && mq);
	scramble(near, LEN);
	CHECK(!rdma(&b, b.qp, IBV_WR_RDMA_READ, p, LEN, mp->lkey, (uintptr_t)near,
		    src->rkey) && !memcmp(p, near, LEN));
	CHECK(!rdma(&b, b.qp, IBV_WR_RDMA_WRITE, q, LEN, mq->lkey, (uintptr_t)near,
		    src->rkey) && zero(near, LEN));
	madvise(p, LEN, MADV_DONTNEED);
	*(uint64_t *)near = 41;
	CHECK(!rdma(&b, b.qp, IBV_WR_ATOMIC_FETCH_AND_ADD, p + 16, 8, mp->lkey,
		    (uintptr_t)near, src->rkey));
	CHECK(*(uint64_t *)near == 42 && *(uint64_t *)(p + 16) == 41);
	CHECK(!ibv_dereg_mr(mp) && !ibv_dereg_mr(mq));
	munmap(p, LEN);
	munmap(q, LEN);
}

static void t_remapped(void)
{
	uint64_t gone = counter(&b, "page_invalidations");
	char *p = fresh(LEN);
	struct ibv_mr *m = ibv_reg_mr(b.pd, p, LEN, ODP);
	int i;

	CHECK(m);
	for (i = 0; i < 20; i++) {
		scramble(near, LEN);
		CHECK(!to(p, LEN, m->rkey) && !memcmp(p, near, LEN));
		if (i & 1) {
			CHECK(!madvise(p, LEN, MADV_DONTNEED));
		} else {
			CHECK(!munmap(p, LEN));
			CHECK(mmap(p, LEN, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
				   0) == p);
		}
		CHECK(!from(p, LEN, m->rkey) && zero(near, LEN));
	}
	CHECK(counter(&b, "page_invalidations") >= gone + 20 * LEN / 4096);
	CHECK(!ibv_dereg_mr(m));
	munmap(p, LEN);
}

/* What is not there at all ends the request, and does not hang. */
static void t_unmapped(void)
{
	int i;

	for (i = 0; i < 6; i++) {
		char *p = fresh(LEN);
		struct ibv_mr *m = ibv_reg_mr(b.pd, p, LEN, ODP);
		int ret, want = IBV_WC_REM_ACCESS_ERR;

		CHECK(m && !munmap(p + 8192, LEN - 8192));
		switch (i) {
		case 0:
			ret = to(p + 4000, 20000, m->rkey);
			break;
		case 1:
			ret = from(p + 4000, 20000, m->rkey);
			break;
		case 2:
			ret = rdma(&a, a.qp, IBV_WR_ATOMIC_FETCH_AND_ADD, near, 8,
				   src->lkey, (uintptr_t)p + 8192, m->rkey);
			break;
		case 3:
			ret = rdma(&b, b.qp, IBV_WR_RDMA_WRITE, p + 4000, 20000,
				   m->lkey, (uintptr_t)near, src->rkey);
			want = IBV_WC_LOC_PROT_ERR;
			break;
		case 4:
			ret = rdma(&b, b.qp, IBV_WR_RDMA_READ, p + 4000, 20000,
				   m->lkey, (uintptr_t)near, src->rkey);
			want = IBV_WC_LOC_PROT_ERR;
			break;
		default:
			CHECK(!post_recv(&b, p + 4000, 20000, m->lkey));
			ret = rdma(&a, a.qp, IBV_WR_SEND, near, 20000, src->lkey,
				   0, 0);
			want = IBV_WC_REM_OP_ERR;
			CHECK(done(b.cq, NULL) == IBV_WC_LOC_PROT_ERR);
		}
		if (ret != want)
			printf("# case %d: %d, not %d\n", i, ret, want);
		CHECK(ret == want);
		CHECK(!ibv_dereg_mr(m));
		munmap(p, 8192);
		pair_close();
		pair_open();
	}
}

/* Memory that may not be written to can be read, whatever the region says. */
static void t_read_only(void)
{
	char *p = mmap(NULL, LEN, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *m = ibv_reg_mr(b.pd, p, LEN, ODP);

	CHECK(m);
	CHECK(!from(p, LEN, m->rkey) && zero(near, LEN));
	CHECK(to(p, 5000, m->rkey) == IBV_WC_REM_ACCESS_ERR);
	pair_close();
	pair_open();
	/* and after it was made writable */
	CHECK(!mprotect(p, LEN, PROT_READ | PROT_WRITE));
	scramble(near, LEN);
	CHECK(!to(p, LEN, m->rkey) && !memcmp(p, near, LEN));
	CHECK(!mprotect(p, LEN, PROT_READ));
	CHECK(!from(p, LEN, m->rkey) && !memcmp(p, near, LEN));
	CHECK(to(p + 5000, 1, m->rkey) == IBV_WC_REM_ACCESS_ERR);
	CHECK(!ibv_dereg_mr(m));
	munmap(p, LEN);
}

/* Writes go to the parent, and the child keeps what was. */
static void t_fork(void)
{
	char *p = fresh(LEN), *then = malloc(LEN);
	struct ibv_mr *m = ibv_reg_mr(b.pd, p, LEN, ODP);
	int pipes[2], status;
	pid_t pid;
	char c;

	CHECK(m && !pipe(pipes));
	madvise(p, LEN, MADV_DOFORK);	/* libibverbs may have forbidden it */
	scramble(near, LEN);
	CHECK(!to(p, LEN, m->rkey));
	memcpy(then, near, LEN);
	pid = fork();
	if (!pid)
		_exit(read(pipes[0], &c, 1) != 1 || memcmp(p, then, LEN));
	CHECK(pid > 0);
	scramble(near, LEN);
	CHECK(!to(p, LEN, m->rkey) && !memcmp(p, near, LEN));
	CHECK(write(pipes[1], "x", 1) == 1 && waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
	CHECK(!to(p, LEN, m->rkey) && !memcmp(p, near, LEN));
	CHECK(!ibv_dereg_mr(m));
	munmap(p, LEN);
	free(then);
}

static char global[20000] = "something";
static const char constant[20000] = "that is not to be written to";

static void t_implicit(void)
{
	struct ibv_mr *m = ibv_reg_mr(b.pd, NULL, SIZE_MAX, ODP);
	char *heap = fresh(5 * MB), stack[3000];
	struct ibv_mr *big;

	CHECK(m);
	scramble(near, LEN);
	CHECK(!to(global, sizeof(global), m->rkey) && !memcmp(global, near, sizeof(global)));
	CHECK(!to(stack, sizeof(stack), m->rkey) && !memcmp(stack, near, sizeof(stack)));
	CHECK(!from((void *)constant, sizeof(constant), m->rkey) &&
	      !memcmp(constant, near, sizeof(constant)));
	/* over the edges of what is looked after in one piece */
	scramble(near, LEN);
	CHECK(!to(heap + 2 * MB - 5000, LEN, m->rkey) &&
	      !memcmp(heap + 2 * MB - 5000, near, LEN));
	/* a large message, paged at both ends */
	big = ibv_reg_mr(a.pd, NULL, SIZE_MAX, ODP);
	CHECK(big);
	scramble(heap, 2 * MB);
	CHECK(!rdma(&a, a.qp, IBV_WR_RDMA_WRITE, heap, 2 * MB, big->lkey,
		    (uintptr_t)heap + 2 * MB + 4096, m->rkey));
	CHECK(!memcmp(heap, heap + 2 * MB + 4096, 2 * MB));
	CHECK(to((void *)constant, 8, m->rkey) == IBV_WC_REM_ACCESS_ERR);
	pair_close();
	pair_open();
	CHECK(to((void *)8, 8, m->rkey) == IBV_WC_REM_ACCESS_ERR);
	pair_close();
	pair_open();
	CHECK(from((void *)(1ul << 63), 8, m->rkey) == IBV_WC_REM_ACCESS_ERR);
	CHECK(!ibv_dereg_mr(m) && !ibv_dereg_mr(big));
	munmap(heap, 5 * MB);
}

static volatile bool stop;
static atomic_int thefts;	/* that are left to the thief in this operation */
static char *victim;

/*
 * Takes pages away by all means, at random and often within a message, but only so many
 * times.  A page that is gone again when the requester comes back costs another RNR
 * wait, and on a slow machine, where each wait sees several forks, there would be no
 * end to that.  When the thief has had enough the operation must get through.
 */
static void *thief(void *arg)
{
	unsigned int seed = 1;

	(void)arg;
	while (!stop) {
		size_t at = rand_r(&seed) % (LEN / 4096) * 4096;
		size_t n = (1 + rand_r(&seed) % 8) * 4096;

		usleep(1000);
		if (!thefts)
			continue;
		thefts--;
		if (at + n > LEN)
			n = LEN - at;
		switch (rand_r(&seed) % 4) {
		case 0:
			mprotect(victim + at, n, PROT_READ);
			mprotect(victim + at, n, PROT_READ | PROT_WRITE);
			break;
		case 1:
			if (fork() == 0)
				_exit(0);
			wait(NULL);
			break;
		case 2:
			/* in one step: at no time is there nothing */
			mmap(victim + at, n, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
			break;
		default:
			madvise(victim + at, n, MADV_DONTNEED);
		}
	}
	return NULL;
}

/*
 * What is read back is what was written, or was taken away meanwhile.  A page may go
 * and come back between two packets, which carry a kilobyte, but not in the
 * midst of one.
 */
static bool plausible(const char *got, const char *sent)
{
	size_t i, k;

	for (i = 0; i < LEN; i += 1024) {
		if (!memcmp(got + i, sent + i, 1024) || zero(got + i, 1024))
			continue;
		for (k = 0; got[i + k] == sent[i + k]; k++)
			;
		printf("# %zu + %zu: %02hhx, not %02hhx\n", i, k, got[i + k],
		       sent[i + k]);
		return false;
	}
	return true;
}

static void t_traffic(void)
{
	struct ibv_mr *m;
	char *sent = malloc(LEN);
	pthread_t thread;
	int complete = 0, i, w, r;
	bool all = true;
	uint64_t gone;

	victim = fresh(LEN);
	m = ibv_reg_mr(b.pd, victim, LEN, ODP);
	CHECK(m);
	madvise(victim, LEN, MADV_DOFORK);
	gone = counter(&b, "page_invalidations");
	stop = false;
	CHECK(!pthread_create(&thread, NULL, thief, NULL));
	for (i = 0; i < 20 && all; i++) {
		scramble(near, LEN);
		memcpy(sent, near, LEN);
		thefts = 100;
		w = to(victim, LEN, m->rkey);
		/* while it may not be written to, a WRITE may fail */
		if (w == IBV_WC_REM_ACCESS_ERR) {
			pair_close();
			pair_open();
			continue;
		}
		memset(near, 0x5a, LEN);
		thefts = 100;
		r = from(victim, LEN, m->rkey);
		all = !w && !r && plausible(near, sent);
		if (!all)
			printf("# round %d: WRITE %d, READ %d\n", i, w, r);
		complete += all;
	}
	stop = true;
	pthread_join(thread, NULL);
	gone = counter(&b, "page_invalidations") - gone;
	printf("# %d rounds of %d went through, %llu pages were taken away\n", complete,
	       i, (unsigned long long)gone);
	CHECK(all && complete > 0 && gone > 0);
	CHECK(!ibv_dereg_mr(m));
	munmap(victim, LEN);
	free(sent);
}

/* Deregistered while pages are being brought for it. */
static void t_dereg_busy(void)
{
	int i;

	for (i = 0; i < 50; i++) {
		char *p = fresh(LEN);
		struct ibv_mr *m = ibv_reg_mr(b.pd, p, LEN, ODP);
		struct ibv_sge sge = { (uintptr_t)near, LEN, src->lkey };
		struct ibv_send_wr wr = {
			.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED,
		}, *bad;
		int ret;

		CHECK(m);
		wr.wr.rdma.remote_addr = (uintptr_t)p;
		wr.wr.rdma.rkey = m->rkey;
		CHECK(!ibv_post_send(a.qp, &wr, &bad));
		usleep(rand() % 1000);
		CHECK(!ibv_dereg_mr(m));
		munmap(p, LEN);
		ret = done(a.cq, NULL);
		CHECK(ret == IBV_WC_SUCCESS || ret == IBV_WC_REM_ACCESS_ERR);
		pair_close();
		pair_open();
	}
}

static void t_prefetch(void)
{
	uint64_t faults, fetched = counter(&b, "page_prefetches");
	struct ibv_pd *other;
	char *p = fresh(LEN);
	struct ibv_mr *m = ibv_reg_mr(b.pd, p, LEN, ODP);
	struct ibv_sge sge;

	CHECK(m);
	sge = (struct ibv_sge) { (uintptr_t)p, LEN, m->lkey };
	/* nothing is in memory */
	CHECK(!ibv_advise_mr(b.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT,
			     IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1));
	CHECK(counter(&b, "page_prefetches") == fetched);
	CHECK(!ibv_advise_mr(b.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
			     IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1));
	CHECK(counter(&b, "page_prefetches") == fetched + LEN / 4096);
	faults = counter(&b, "page_faults");
	scramble(near, LEN);
	CHECK(!to(p, LEN, m->rkey) && !memcmp(p, near, LEN));
	CHECK(counter(&b, "page_faults") == faults);
	/* what makes no sense */
	sge.length = LEN + 1;
	CHECK(ibv_advise_mr(b.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1) == EFAULT);
	sge.length = LEN;
	CHECK(ibv_advise_mr(a.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1) == ENOENT);
	other = ibv_alloc_pd(b.ctx);
	CHECK(other && ibv_advise_mr(other, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1) == EPERM);
	CHECK(!ibv_dealloc_pd(other));
	sge.lkey ^= 0x100;
	CHECK(ibv_advise_mr(b.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1) == ENOENT);
	CHECK(!ibv_dereg_mr(m));
	m = ibv_reg_mr(b.pd, p, LEN, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ON_DEMAND);
	CHECK(m);
	sge.lkey = m->lkey;
	CHECK(ibv_advise_mr(b.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0, &sge, 1) == EPERM);
	CHECK(!ibv_dereg_mr(m));
	munmap(p, LEN);
}

#define PLACES		4000	/* of which each is in another 2 MiB */

static struct ibv_sge places[PLACES];

/* KiB, of what would be 64 MiB; where others are at work (scale.sh), they take some, too. */
static long plenty(void)
{
	return (getenv("ROVE_BUSY") ? 32 : 8) * KB;
}

static int advise_places(int flags)
{
	return ibv_advise_mr(b.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, flags, places, PLACES);
}

static char *reserve(int prot, uint32_t key)
{
	char *p = mmap(NULL, PLACES * 2 * MB, prot,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int i;

	if (p == MAP_FAILED)
		die("mmap");
	madvise(p, PLACES * 2 * MB, MADV_NOHUGEPAGE);
	for (i = 0; i < PLACES; i++)
		places[i] = (struct ibv_sge) { (uintptr_t)p + i * 2 * MB, 1, key };
	return p;
}

/* A byte of it must not cost 16 KiB of the kernel's memory. */
static void t_idle_advice(void)
{
	struct ibv_mr *m = ibv_reg_mr(b.pd, NULL, SIZE_MAX, ODP);
	long before = kernel_kib(), after[3];
	char *p;

	CHECK(m);
	p = reserve(PROT_NONE, m->lkey);
	CHECK(advise_places(IBV_ADVISE_MR_FLAG_FLUSH) == EFAULT);
	after[0] = kernel_kib();
	CHECK(!munmap(p, PLACES * 2 * MB));
	CHECK(advise_places(IBV_ADVISE_MR_FLAG_FLUSH) == EFAULT);
	after[1] = kernel_kib();
	CHECK(!advise_places(0));
	usleep(500000);
	after[2] = kernel_kib();
	printf("# kernel memory: %+ld, %+ld, %+ld KiB\n", after[0] - before,
	       after[1] - before, after[2] - before);
	CHECK(after[0] < before + plenty() && after[1] < before + plenty() &&
	      after[2] < before + plenty());
	CHECK(!ibv_dereg_mr(m));
}

/* Nor where there is memory, of who may not lock it. */
static void t_limited_advice(void)
{
	long before = kernel_kib(), locked = locked_kib(), after, during;
	struct ibv_mr *m;
	char *p;

	may_lock(1024);
	m = ibv_reg_mr(b.pd, NULL, SIZE_MAX, ODP);
	may_lock(-1);
	CHECK(m);
	p = reserve(PROT_READ | PROT_WRITE, m->lkey);
	CHECK(!advise_places(IBV_ADVISE_MR_FLAG_FLUSH));
	after = kernel_kib();
	during = locked_kib();
	printf("# kernel memory: %+ld KiB, locked: %+ld KiB\n", after - before,
	       during - locked);
	CHECK(after < before + plenty());
	CHECK(during > locked && during <= locked + 1024);
	CHECK(!ibv_dereg_mr(m) && locked_kib() == locked);
	munmap(p, PLACES * 2 * MB);
	/* who may lock what it likes is counted, too */
	m = ibv_reg_mr(b.pd, NULL, SIZE_MAX, ODP);
	CHECK(m);
	p = reserve(PROT_READ | PROT_WRITE, m->lkey);
	CHECK(!advise_places(IBV_ADVISE_MR_FLAG_FLUSH));
	CHECK(locked_kib() > locked + PLACES * 4);
	CHECK(!ibv_dereg_mr(m) && locked_kib() == locked);
	munmap(p, PLACES * 2 * MB);
}

/* Of memory.stat of this process's control group; -1: it is in none, or it does not tell. */
static long group_bytes(const char *what)
{
	char path[300], line[300], group[200] = "";
	FILE *f = fopen("/proc/self/cgroup", "r");
	long v = -1;

	while (f && fgets(line, sizeof(line), f) && sscanf(line, "0::%199s", group) != 1)
		;
	if (f)
		fclose(f);
	if (strlen(group) < 2)
		return -1;
	snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.stat", group);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, what, strlen(what)) && line[strlen(what)] == ' ')
			v = atol(line + strlen(what));
	if (f)
		fclose(f);
	return v;
}

/* The process's control group pays for its page tables, though a worker fills them. */
static void t_group_pays(void)
{
	uint64_t fetched = counter(&b, "page_prefetches");
	long before = group_bytes("pagetables"), tables = 0;
	struct ibv_mr *m;
	char *p;
	int i;

	m = ibv_reg_mr(b.pd, NULL, SIZE_MAX, ODP);
	CHECK(m);
	p = reserve(PROT_READ, m->lkey);
	CHECK(!advise_places(0));
	for (i = 0; i < 3000 && counter(&b, "page_prefetches") < fetched + PLACES; i++)
		usleep(10000);
	tables = kib("/proc/self/status", "VmPTE:");
	printf("# VmPTE is %ld KiB, the group's page tables grew by %ld\n", tables,
	       (group_bytes("pagetables") - before) / (long)KB);
	CHECK(group_bytes("pagetables") > before + (long)(PLACES * 4 * KB * 9 / 10));
	CHECK(!ibv_dereg_mr(m));
	munmap(p, PLACES * 2 * MB);
}

#define PIECES	256
#define PIECE	(256 * KB)	/* across a border of 2 MiB */

/* More of it than can be remembered: what is forgotten comes back. */
static void limited(long more)
{
	char *p = mmap(NULL, (PIECES + 1) * 2 * MB, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	char *back = fresh(PIECE), *first;
	struct ibv_mr *m, *mb = ibv_reg_mr(a.pd, back, PIECE, ALL);
	long locked = locked_kib();
	int i;

	CHECK(p != MAP_FAILED && mb);
	madvise(p, (PIECES + 1) * 2 * MB, MADV_NOHUGEPAGE);
	may_lock(more);
	m = ibv_reg_mr(b.pd, p, (PIECES + 1) * 2 * MB, ODP);
	may_lock(-1);
	CHECK(m);
	first = (char *)(((uintptr_t)p + 2 * MB) & ~(2 * MB - 1)) - PIECE / 2;
	if (first < p)
		first = p;
	scramble(near, LEN);
	for (i = 0; i < PIECES; i++)
		CHECK(!rdma(&a, a.qp, IBV_WR_RDMA_WRITE, near + i * 512, PIECE, src->lkey,
			    (uintptr_t)first + i * 2 * MB, m->rkey));
	CHECK(locked_kib() - locked <= more && (!more || locked_kib() > locked));
	for (i = 0; i < PIECES; i++)
		CHECK(!memcmp(first + i * 2 * MB, near + i * 512, PIECE));
	for (i = 0; i < PIECES; i++) {
		int k = i * 37 % PIECES;

		CHECK(!rdma(&a, a.qp, IBV_WR_RDMA_READ, back, PIECE, mb->lkey,
			    (uintptr_t)first + k * 2 * MB, m->rkey));
		CHECK(!memcmp(back, near + k * 512, PIECE));
	}
	CHECK(locked_kib() - locked <= more);
	CHECK(!ibv_dereg_mr(m) && locked_kib() == locked);
	CHECK(!ibv_dereg_mr(mb));
	munmap(p, (PIECES + 1) * 2 * MB);
	munmap(back, PIECE);
}

static void t_limited(void)
{
	limited(64);
	if (good)
		limited(0);
}

static struct ibv_mr *crowd;

/* Asks for other places, so that what is in use has to make room. */
static void *adviser(void *arg)
{
	int i = 0, err = 0;

	(void)arg;
	while (!stop && !err) {
		err = ibv_advise_mr(b.pd, IBV_ADVISE_MR_ADVICE_PREFETCH,
				    IBV_ADVISE_MR_FLAG_FLUSH, places + i, 50);
		i = (i + 50) % PLACES;
		usleep(1000);
	}
	return (void *)(intptr_t)err;
}

/* Chunks go, and their pages, while there is traffic. */
static void t_crowded(void)
{
	long locked = locked_kib();
	pthread_t thread[2];
	char *p, *sent = malloc(LEN);
	int i, w = 0, r = 0, n;
	bool same = true;
	void *err[2];

	may_lock(0);
	crowd = ibv_reg_mr(b.pd, NULL, SIZE_MAX, ODP);
	may_lock(-1);
	CHECK(crowd);
	p = reserve(PROT_READ | PROT_WRITE, crowd->lkey);
	victim = fresh(LEN);
	stop = false;
	for (i = 0; i < 2; i++)
		CHECK(!pthread_create(&thread[i], NULL, adviser, NULL));
	for (n = 0; n < 10 && !w && !r && same; n++) {
		scramble(near, LEN);
		memcpy(sent, near, LEN);
		w = to(victim, LEN, crowd->rkey);
		same = !memcmp(victim, sent, LEN);
		memset(near, 0x5a, LEN);
		r = from(victim, LEN, crowd->rkey);
		same = same && !memcmp(near, sent, LEN);
		if (n & 1)
			madvise(victim, LEN, MADV_DONTNEED);
	}
	stop = true;
	for (i = 0; i < 2; i++)
		pthread_join(thread[i], &err[i]);
	printf("# after %d: WRITE %d, READ %d, advice %ld, %ld\n", n, w, r,
	       (long)err[0], (long)err[1]);
	CHECK(!w && !r && same && !err[0] && !err[1]);
	CHECK(locked_kib() == locked && !ibv_dereg_mr(crowd));
	munmap(p, PLACES * 2 * MB);
	munmap(victim, LEN);
	free(sent);
}

#define SILENT_LEN	(4 * MB)

static void fuse_reply(int fd, uint64_t unique, int err, const void *data, size_t len)
{
	struct {
		struct fuse_out_header head;
		char data[512];
	} out = { { sizeof(out.head) + (err ? 0 : len), err, unique } };

	if (!err)
		memcpy(out.data, data, len);
	if (write(fd, &out, out.head.len) < 0)
		perror("# /dev/fuse");
}

static bool *silent_asked;	/* a READ has come; the one who serves tells */

/* A file system of one file, that answers everything but READ. */
static void serve_silently(int fd)
{
	static char buf[256 * KB];
	struct fuse_in_header *in = (void *)buf;

	while (read(fd, buf, sizeof(buf)) > 0) {
		struct fuse_init_out init = {
			.major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION,
			.max_readahead = 4096, .max_write = 4096,
		};
		struct fuse_attr attr = {
			.ino = in->nodeid, .nlink = 1, .blksize = 4096,
			.mode = in->nodeid == FUSE_ROOT_ID ? S_IFDIR | 0755 : S_IFREG | 0444,
			.size = in->nodeid == FUSE_ROOT_ID ? 0 : SILENT_LEN,
		};
		struct fuse_attr_out known = { .attr_valid = 1000, .attr = attr };
		struct fuse_entry_out entry = {
			.nodeid = 2, .entry_valid = 1000, .attr_valid = 1000,
			.attr = { .ino = 2, .nlink = 1, .blksize = 4096,
				  .mode = S_IFREG | 0444, .size = SILENT_LEN },
		};
		struct fuse_open_out opened = { .open_flags = FOPEN_KEEP_CACHE };

		switch (in->opcode) {
		case FUSE_INIT:
			fuse_reply(fd, in->unique, 0, &init, sizeof(init));
			break;
		case FUSE_GETATTR:
			fuse_reply(fd, in->unique, 0, &known, sizeof(known));
			break;
		case FUSE_LOOKUP:
			fuse_reply(fd, in->unique, 0, &entry, sizeof(entry));
			break;
		case FUSE_OPEN:
			fuse_reply(fd, in->unique, 0, &opened, sizeof(opened));
			break;
		case FUSE_READ:
			__atomic_store_n(silent_asked, true, __ATOMIC_RELAXED);
			break;
		case FUSE_FORGET:
		case FUSE_BATCH_FORGET:
		case FUSE_INTERRUPT:
			break;
		default:
			fuse_reply(fd, in->unique, -ENOSYS, NULL, 0);
		}
	}
}

static void *serve_silently_here(void *arg)
{
	serve_silently((intptr_t)arg);
	return NULL;
}

/*
 * Memory that nobody ever brings, until the process that is returned is killed: a new one,
 * or @here, who calls.
 */
static pid_t silent_memory(char **p, bool here)
{
	char dir[] = "/tmp/odp.XXXXXX", opts[100], path[100];
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC), file;
	pthread_t thread;
	pid_t pid;

	silent_asked = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (silent_asked == MAP_FAILED || fd < 0 || !mkdtemp(dir))
		return -1;
	snprintf(opts, sizeof(opts), "fd=%d,rootmode=40000,user_id=0,group_id=0", fd);
	if (mount("silent", dir, "fuse", 0, opts))
		return -1;
	pid = here ? getpid() : fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		serve_silently(fd);
		_exit(0);
	}
	if (!here)
		close(fd);
	else if (pthread_create(&thread, NULL, serve_silently_here, (void *)(intptr_t)fd))
		return -1;
	snprintf(path, sizeof(path), "%s/file", dir);
	file = open(path, O_RDONLY);
	umount2(dir, MNT_DETACH);
	rmdir(dir);
	*p = mmap(NULL, SILENT_LEN, PROT_READ, MAP_PRIVATE, file, 0);
	if (file < 0 || *p == MAP_FAILED) {
		perror("# silent file");
		return -1;
	}
	/* Or the process's end would ask, which cannot answer itself. */
	close(file);
	return pid;
}

static bool silence_begins(void)
{
	int i;

	for (i = 0; i < 1000 && !__atomic_load_n(silent_asked, __ATOMIC_RELAXED); i++)
		usleep(10000);
	return i < 1000;
}

static const char *const *devices;	/* the program's arguments: names and GID indices */

static struct {
	pid_t pid;
	int tell, hear;
} stuck;

/*
 * Another process, which asks for more of such memory than there are workers.  It waits
 * for a byte before it does, tells how often it was let, and ends after another byte.
 */
static void start_stuck(const char *dev)
{
	int down[2], up[2], n = -1;
	struct ibv_sge sge;
	struct ibv_mr *m;
	struct end e;
	pid_t daemon;
	char c, *p;

	if (pipe(down) || pipe(up))
		die("pipe");
	stuck.pid = fork();
	stuck.tell = down[1];
	stuck.hear = up[0];
	if (stuck.pid) {
		close(down[0]);
		close(up[1]);
		return;
	}
	close(down[1]);
	close(up[0]);
	if (read(down[0], &c, 1) != 1)
		_exit(0);
	daemon = silent_memory(&p, false);
	if (daemon < 0)
		_exit(1);
	e.ctx = open_device(dev);
	e.pd = ibv_alloc_pd(e.ctx);
	m = ibv_reg_mr(e.pd, p, SILENT_LEN, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ON_DEMAND);
	if (!m)
		_exit(1);
	for (n = 0; n < 300; n++) {
		sge = (struct ibv_sge) { (uintptr_t)p + n * 4096, 1, m->lkey };
		if (ibv_advise_mr(e.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1))
			break;
	}
	if (write(up[1], &n, sizeof(n)) != sizeof(n) || read(down[0], &c, 1) < 0)
		_exit(1);
	kill(daemon, SIGKILL);
	_exit(waitpid(daemon, NULL, 0) != daemon || ibv_dereg_mr(m) || ibv_dealloc_pd(e.pd) ||
	      ibv_close_device(e.ctx));
}

/* A process that waits for its memory for ever is alone in that. */
static void t_stuck(void)
{
	char *p = fresh(LEN), *q = fresh(LEN);
	struct ibv_mr *m = ibv_reg_mr(b.pd, p, LEN, ODP);
	struct ibv_mr *mq = ibv_reg_mr(b.pd, q, LEN, ODP);
	uint64_t fetched = counter(&b, "page_prefetches");
	struct ibv_sge sge = { (uintptr_t)q, LEN, mq ? mq->lkey : 0 };
	int i, n = 0, status, ret;

	CHECK(m && mq);
	CHECK(write(stuck.tell, "x", 1) == 1 && read(stuck.hear, &n, sizeof(n)) == sizeof(n));
	printf("# it was let %d times\n", n);
	scramble(near, LEN);
	ret = to(p, LEN, m->rkey);
	if (!ret)
		ret = ibv_advise_mr(b.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0, &sge, 1);
	for (i = 0; i < 100 && !ret; i++)
		if (counter(&b, "page_prefetches") == fetched + LEN / 4096)
			break;
	printf("# WRITE, and advice: %d, after %d * 20 ms\n", ret, i);
	if (i == 100)
		ret = -1;
	CHECK(write(stuck.tell, "x", 1) == 1 && waitpid(stuck.pid, &status, 0) == stuck.pid);
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
	CHECK(!ret && n > 0 && n < 300 && !memcmp(p, near, LEN));
	CHECK(!ibv_dereg_mr(m) && !ibv_dereg_mr(mq));
	munmap(p, LEN);
	munmap(q, LEN);
}

/* How @own_silence() ends. */
enum { DEREGISTER, DESTROY, KILL, ENDS };

/*
 * A process that asks for pages which it would have to bring itself, for a message or on
 * its own advice, and gets rid of what needs them.  The exit code tells what has failed.
 */
static void own_silence(const char *const *arg, int how)
{
	struct ibv_sge sge;
	struct ibv_mr *m;
	char *p;

	if (silent_memory(&p, true) < 0)
		_exit(2);
	end_open(&a, arg[0], arg[1]);
	end_open(&b, arg[2], arg[3]);
	near = fresh(LEN);
	src = ibv_reg_mr(a.pd, near, LEN, ALL);
	m = ibv_reg_mr(b.pd, p, SILENT_LEN, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ON_DEMAND);
	if (!src || !m)
		_exit(3);
	pair_open();
	sge = (struct ibv_sge) { (uintptr_t)(how == DESTROY ? near : p), 4096,
				 how == DESTROY ? src->lkey : m->lkey };
	if (how == DESTROY) {
		struct ibv_send_wr *bad, wr = {
			.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_READ,
			.wr.rdma = { (uintptr_t)p, m->rkey },
		};

		if (ibv_post_send(a.qp, &wr, &bad))
			_exit(4);
	} else if (ibv_advise_mr(b.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1)) {
		_exit(5);
	}
	if (!silence_begins())
		_exit(6);
	if (how == KILL)
		raise(SIGKILL);
	pair_close();
	_exit(ibv_dereg_mr(m) ? 7 : 0);
}

/* A process that waits for its own memory can let go of it, and can be killed. */
static void t_own_silence(void)
{
	int how, status, i;
	pid_t pid, got;

	for (how = 0; how < ENDS; how++) {
		fflush(stdout);
		pid = fork();
		if (!pid)
			own_silence(devices, how);
		got = 0;
		for (i = 0; i < 3000 && !got; i++) {
			got = waitpid(pid, &status, WNOHANG);
			usleep(10000);
		}
		printf("# %d: ended after %d ms, status %#x\n", how, i * 10, status);
		/* It would be in our way for good. */
		if (!got)
			kill(pid, SIGKILL);
		CHECK(got == pid);
		if (how == KILL)
			CHECK(WIFSIGNALED(status));
		else
			CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
	}
}

#define DESERTED_MAX	64	/* odp.c of the driver */

/* A process that has two regions in a protection domain of ours, and ends when it is told to. */
struct heir {
	pid_t pid;
	int tell;
	struct {
		int err;
		uint32_t key[2];
	} got;
};

static struct heir new_heir(struct ibv_pd *pd, char *p, char *q, size_t len)
{
	int down[2], up[2], i;
	struct heir h = {};
	struct ibv_mr *m;
	char c;

	if (pipe(down) || pipe(up))
		die("pipe");
	fflush(stdout);
	h.pid = fork();
	if (!h.pid) {
		close(down[1]);
		forgo(CAP_SYS_RESOURCE);
		for (i = 0; i < 2 && !h.got.err; i++) {
			m = ibv_reg_mr(pd, i ? q : p, len, IBV_ACCESS_ON_DEMAND |
				       (i ? IBV_ACCESS_LOCAL_WRITE : 0));
			h.got.err = m ? 0 : errno;
			h.got.key[i] = m ? m->lkey : 0;
		}
		_exit(write(up[1], &h.got, sizeof(h.got)) != sizeof(h.got) ||
		      read(down[0], &c, 1) < 0);
	}
	close(down[0]);
	close(up[1]);
	h.tell = down[1];
	if (read(up[0], &h.got, sizeof(h.got)) != sizeof(h.got))
		h.got.err = EIO;
	close(up[0]);
	return h;
}

static bool end_heir(const struct heir *h)
{
	int status;

	close(h->tell);
	return waitpid(h->pid, &status, 0) == h->pid && !status;
}

/* One that ends at once: 0, or why it could not register anything. */
static int bequest(struct ibv_pd *pd, char *p)
{
	struct heir h = new_heir(pd, p, p, LEN);

	return end_heir(&h) ? h.got.err : EIO;
}

static bool soon_room(struct ibv_pd *pd, char *p)
{
	int i, err = EAGAIN;

	for (i = 0; i < 1000 && err == EAGAIN; i++) {
		err = bequest(pd, p);
		if (err)
			usleep(10000);
	}
	return !err;
}

/*
 * Memory of a process that has ended, with pages that never come: nobody would pay for more of it,
 * and a user can have but so many such processes.
 */
static void t_deserted(void)
{
	char *silent, *p = fresh(SILENT_LEN);
	struct end waits, last, many;
	struct ibv_sge sge;
	struct heir h;
	pid_t daemon;
	int n, err;

	daemon = silent_memory(&silent, false);
	CHECK(daemon > 0);
	end_open(&waits, devices[2], devices[3]);
	end_open(&last, devices[2], devices[3]);
	end_open(&many, devices[2], devices[3]);

	h = new_heir(waits.pd, silent, p, SILENT_LEN);
	CHECK(!h.got.err);
	sge = (struct ibv_sge) { (uintptr_t)p, LEN, h.got.key[1] };
	CHECK(!ibv_advise_mr(waits.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
			     IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1));
	sge = (struct ibv_sge) { (uintptr_t)silent, 4096, h.got.key[0] };
	CHECK(!ibv_advise_mr(waits.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1));
	CHECK(silence_begins());
	CHECK(end_heir(&h));
	sge = (struct ibv_sge) { (uintptr_t)p + LEN, LEN, h.got.key[1] };
	err = ibv_advise_mr(waits.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
			    IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1);
	printf("# memory of a process that is no more: %s\n", strerror(err));
	CHECK(err == EFAULT);

	/* The regions go, and the worker still waits. */
	CHECK(!ibv_close_device(waits.ctx));
	CHECK(!bequest(last.pd, p));
	for (n = 0, err = 0; n < 2 * DESERTED_MAX && !err; n += !err)
		err = bequest(many.pd, p);
	printf("# and %d more, then %s\n", n, strerror(err));
	CHECK(n == DESERTED_MAX - 2 && err == EAGAIN);
	CHECK(bequest(last.pd, p) == EAGAIN);
	CHECK(!kill(daemon, SIGKILL) && waitpid(daemon, NULL, 0) == daemon);
	CHECK(soon_room(many.pd, p) && bequest(many.pd, p) == EAGAIN);
	CHECK(!ibv_close_device(last.ctx));
	CHECK(soon_room(many.pd, p) && bequest(many.pd, p) == EAGAIN);
	CHECK(!ibv_close_device(many.ctx));
	munmap(silent, SILENT_LEN);
	munmap(p, SILENT_LEN);
}

/* memfd_secret(): the program's alone, not even the kernel can read it. */
static int secret_file(void)
{
	return syscall(SYS_memfd_secret, O_CLOEXEC);
}

static void t_secret(void)
{
	int fd = secret_file();
	struct ibv_mr *m;
	char *p;

	CHECK(fd >= 0 && !ftruncate(fd, LEN));
	p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(p != MAP_FAILED);
	memset(p, 1, LEN);
	m = ibv_reg_mr(b.pd, p, LEN, ODP);
	CHECK(m);
	CHECK(to(p, 5000, m->rkey) == IBV_WC_REM_ACCESS_ERR);
	pair_close();
	pair_open();
	CHECK(from(p, 5000, m->rkey) == IBV_WC_REM_ACCESS_ERR);
	pair_close();
	pair_open();
	CHECK(p[0] == 1 && p[4999] == 1 && !ibv_dereg_mr(m));
	CHECK(!ibv_reg_mr(b.pd, p, LEN, ALL));
	munmap(p, LEN);
	close(fd);
}

/* userfaultfd(): the program itself brings pages, when it likes. */
static int monitor_open(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC);

	if (fd >= 0 && ioctl(fd, UFFDIO_API, &api))
		die("UFFDIO_API");
	return fd;
}

/* @p's pages come when its monitor likes. */
static int watch(char *p)
{
	struct uffdio_register reg = {
		.range = { (uintptr_t)p, LEN }, .mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	int fd = monitor_open();

	if (fd < 0 || ioctl(fd, UFFDIO_REGISTER, &reg))
		die("UFFDIO_REGISTER");
	return fd;
}

/* The page that is asked for; NULL: none within ten seconds. */
static char *monitor_asked(int fd)
{
	struct pollfd wait = { fd, POLLIN };
	struct uffd_msg msg;

	if (poll(&wait, 1, 10000) != 1 || read(fd, &msg, sizeof(msg)) != sizeof(msg) ||
	    msg.event != UFFD_EVENT_PAGEFAULT)
		return NULL;
	return (char *)(uintptr_t)(msg.arg.pagefault.address & ~4095ull);
}

static void t_monitored(void)
{
	char *p = fresh(LEN), *page, *given = fresh(4096);
	struct ibv_mr *m = ibv_reg_mr(b.pd, p, LEN, ODP);
	struct ibv_sge sge = { (uintptr_t)near, 8192, src->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_READ,
		.send_flags = IBV_SEND_SIGNALED,
	}, *bad;
	int fd = watch(p), i;
	struct ibv_wc wc;

	CHECK(m);
	scramble(given, 4096);
	memset(near, 0, 8192);
	wr.wr.rdma.remote_addr = (uintptr_t)p;
	wr.wr.rdma.rkey = m->rkey;
	CHECK(!ibv_post_send(a.qp, &wr, &bad));
	for (i = 0; i < 2; i++) {
		struct uffdio_copy copy = { .src = (uintptr_t)given, .len = 4096 };

		page = monitor_asked(fd);
		CHECK(page == p || page == p + 4096);
		CHECK(!ibv_poll_cq(a.cq, 1, &wc));
		copy.dst = (uintptr_t)page;
		CHECK(!ioctl(fd, UFFDIO_COPY, &copy));
	}
	CHECK(!done(a.cq, NULL));
	CHECK(!memcmp(near, given, 4096) && !memcmp(near + 4096, given, 4096));

	/* A monitor that goes leaves the page to the kernel. */
	wr.wr.rdma.remote_addr += 8192;
	CHECK(!ibv_post_send(a.qp, &wr, &bad));
	CHECK(monitor_asked(fd) && !ibv_poll_cq(a.cq, 1, &wc));
	CHECK(!close(fd));
	CHECK(!done(a.cq, NULL) && zero(near, 8192));
	CHECK(!ibv_dereg_mr(m));
	munmap(given, 4096);
	munmap(p, LEN);
}

static int reconnect(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	if (ibv_modify_qp(a.qp, &attr, IBV_QP_STATE) || ibv_modify_qp(b.qp, &attr, IBV_QP_STATE))
		return -1;
	connect_qp(&a, a.qp, &b, b.qp->qp_num);
	connect_qp(&b, b.qp, &a, a.qp->qp_num);
	return 0;
}

/* A QP that begins anew does not wait for what it wanted before, nor is it told of that. */
static void t_reset(void)
{
	char *p = fresh(LEN), *q = fresh(LEN);
	struct ibv_mr *m = ibv_reg_mr(b.pd, p, LEN, ODP), *mq = ibv_reg_mr(b.pd, q, LEN, ODP);
	struct ibv_sge mine = { (uintptr_t)near, 4096, src->lkey }, his;
	struct ibv_send_wr wr = {
		.sg_list = &mine, .num_sge = 1, .opcode = IBV_WR_RDMA_READ,
	}, *bad;
	int fd = watch(p), i;

	CHECK(m && mq);
	/* as the responder, and as the requester */
	for (i = 0; i < 2; i++) {
		his = (struct ibv_sge) { (uintptr_t)p + (i + 1) * 8192, 4096, m->lkey };
		if (!i) {
			wr.wr.rdma.remote_addr = his.addr;
			wr.wr.rdma.rkey = m->rkey;
			CHECK(!ibv_post_send(a.qp, &wr, &bad));
		} else {
			wr.sg_list = &his;
			wr.opcode = IBV_WR_RDMA_WRITE;
			wr.wr.rdma.remote_addr = (uintptr_t)near;
			wr.wr.rdma.rkey = src->rkey;
			CHECK(!ibv_post_send(b.qp, &wr, &bad));
		}
		CHECK(monitor_asked(fd) == (char *)(uintptr_t)his.addr);
		CHECK(!reconnect());
		scramble(near, 4096);
		CHECK(!to(q, 4096, mq->rkey) && !memcmp(near, q, 4096));
		CHECK(!rdma(&b, b.qp, IBV_WR_RDMA_WRITE, q + 8192 * (i + 1), 4096, mq->lkey,
			    (uintptr_t)near, src->rkey));
		CHECK(zero(near, 4096));
	}
	CHECK(!close(fd) && !ibv_dereg_mr(m) && !ibv_dereg_mr(mq));
	munmap(p, LEN);
	munmap(q, LEN);
}

/* A READ's answer finds its place while the page of what is to be written next is on its way. */
static void t_aside(void)
{
	char *p = fresh(LEN), *q = fresh(LEN);
	struct ibv_mr *m = ibv_reg_mr(b.pd, p, LEN, ODP), *mq = ibv_reg_mr(b.pd, q, LEN, ODP);
	struct ibv_sge answer = { (uintptr_t)q, 8, mq->lkey };
	struct ibv_sge his = { (uintptr_t)p, 4096, m->lkey };
	struct ibv_send_wr second = {
		.wr_id = 2, .sg_list = &his, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)near + 4096, src->rkey },
	}, first = {
		.wr_id = 1, .next = &second, .sg_list = &answer, .num_sge = 1,
		.opcode = IBV_WR_RDMA_READ, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)near, src->rkey },
	}, *bad;
	int fd = watch(p);
	struct ibv_wc wc;

	CHECK(m && mq);
	scramble(near, 8);
	CHECK(!ibv_post_send(b.qp, &first, &bad));
	CHECK(monitor_asked(fd) == p);
	CHECK(!done(b.cq, &wc) && wc.wr_id == 1 && !memcmp(near, q, 8));

	CHECK(!close(fd));
	CHECK(!done(b.cq, &wc) && wc.wr_id == 2);
	CHECK(!ibv_dereg_mr(m) && !ibv_dereg_mr(mq));
	munmap(p, LEN);
	munmap(q, LEN);
}

#define WAITING	24	/* more than there are workers for a process */

/* QPs go while their pages are on their way, and while nobody has begun with them. */
static void t_waiting(void)
{
	char *p = fresh(LEN);
	struct ibv_mr *m = ibv_reg_mr(b.pd, p, LEN, ODP);
	struct ibv_qp *qp[WAITING];
	int fd = watch(p), i;

	CHECK(m);
	for (i = 0; i < WAITING; i++) {
		struct ibv_sge sge = { (uintptr_t)p + i * 4096, 4096, m->lkey };
		struct ibv_send_wr wr = {
			.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
		}, *bad;

		qp[i] = new_qp(&b);
		connect_qp(&b, qp[i], &a, a.qp->qp_num);
		CHECK(!ibv_post_send(qp[i], &wr, &bad));
	}
	CHECK(monitor_asked(fd));
	for (i = 0; i < WAITING; i++)
		CHECK(!ibv_destroy_qp(qp[i]));
	/* Nobody has been let down who waits rightly. */
	CHECK(!close(fd));
	scramble(near, LEN);
	CHECK(!to(p, LEN, m->rkey) && !memcmp(near, p, LEN));
	CHECK(!ibv_dereg_mr(m));
	munmap(p, LEN);
}

static void t_refused(void)
{
	struct ibv_device_attr_ex attr;

	CHECK(!ibv_query_device_ex(b.ctx, NULL, &attr));
	CHECK(attr.odp_caps.general_caps == (IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT));
	CHECK(!ibv_reg_mr(b.pd, (void *)4096, SIZE_MAX, ODP));
	CHECK(!ibv_reg_mr(b.pd, (void *)(1ul << 62), 4096, ODP));
	CHECK(!ibv_reg_mr(b.pd, near, 0, ODP));
	CHECK(!ibv_reg_mr(b.pd, near, 4096, IBV_ACCESS_REMOTE_WRITE |
			  IBV_ACCESS_ON_DEMAND));
}

int main(int argc, char **argv)
{
	int fd;

	if (argc != 5)
		return 2;
	be_limited();
	devices = (const char *const *)argv + 1;
	start_stuck(argv[1]);
	end_open(&a, argv[1], argv[2]);
	end_open(&b, argv[3], argv[4]);
	near = fresh(LEN);
	src = ibv_reg_mr(a.pd, near, LEN, ALL);
	if (!src)
		die("reg_mr");

	run("memory that was never touched", t_untouched);
	run("the requester's memory", t_requester);
	run("memory that goes and comes back", t_remapped);
	run("memory that is not there", t_unmapped);
	run("memory that may not be written to", t_read_only);
	fd = secret_file();
	if (fd < 0)
		skipped("memory that is the program's alone", "no memfd_secret()");
	else
		run("memory that is the program's alone", t_secret);
	close(fd);
	fd = monitor_open();
	if (fd < 0) {
		skipped("memory that the program brings itself", "no userfaultfd()");
		skipped("an answer and a page for what is behind it", "no userfaultfd()");
		skipped("a queue pair is reset while it waits for such memory", "no userfaultfd()");
		skipped("queue pairs go while they wait for such memory", "no userfaultfd()");
	} else {
		close(fd);
		run("memory that the program brings itself", t_monitored);
		run("an answer and a page for what is behind it", t_aside);
		run("a queue pair is reset while it waits for such memory", t_reset);
		run("queue pairs go while they wait for such memory", t_waiting);
	}
	run("fork", t_fork);
	run("all memory of a process", t_implicit);
	run("pages taken away under traffic", t_traffic);
	run("deregistered while pages are brought", t_dereg_busy);
	run("advice", t_prefetch);
	run("advice about nothing costs nothing", t_idle_advice);
	run("advice costs what may be locked", t_limited_advice);
	if (group_bytes("pagetables") < 0)
		skipped("the control group pays for page tables", "no memory control group");
	else
		run("the control group pays for page tables", t_group_pays);
	run("hardly any locked memory", t_limited);
	run("too many places under traffic", t_crowded);
	if (access("/dev/fuse", F_OK)) {
		skipped("another process waits for its memory for ever", "no FUSE");
		skipped("a process that waits for itself can let go, and be killed", "no FUSE");
		skipped("processes that have ended and left regions", "no FUSE");
	} else {
		run("another process waits for its memory for ever", t_stuck);
		run("a process that waits for itself can let go, and be killed", t_own_silence);
		run("processes that have ended and left regions", t_deserted);
	}
	run("what is refused", t_refused);
	printf("1..%d\n", count);
	return failed > 0;
}
