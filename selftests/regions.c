// SPDX-License-Identifier: GPL-2.0
/*
 * regions.c - very many memory regions, and very large ones: that each is found by its
 * key and ends where it ends, and what they cost
 *
 *	regions DEV-A GID-INDEX-A DEV-B GID-INDEX-B NUMBER MEGABYTES
 *
 * The large one is one piece of memory mapped again and again, so that it costs
 * little.
 */
#include <sys/mman.h>
#include <time.h>

#include "pair.h"

#define PIECE	(32 * MB)
#define CHUNK	(256 * KB)

static unsigned int number, megabytes;
static char *near;
static struct ibv_mr *src;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* KiB of kernel memory that is not given back for the asking. */
static long kernel_memory(void)
{
	FILE *f = fopen("/proc/meminfo", "r");
	long sum = 0, n;
	char line[128];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "SUnreclaim: %ld", &n) == 1 ||
		    sscanf(line, "VmallocUsed: %ld", &n) == 1)
			sum += n;
	if (f)
		fclose(f);
	return sum;
}

static int use(enum ibv_wr_opcode op, uint64_t addr, uint32_t len, uint32_t key)
{
	return rdma(&a, a.qp, op, near, len, src->lkey, addr, key);
}

static int by_key(const void *x, const void *y)
{
	uint32_t k = *(const uint32_t *)x, l = *(const uint32_t *)y;

	return k < l ? -1 : k > l;
}

/* All alive at once.  A page each, of a few: keys are what there are many of. */
static void t_many(void)
{
	struct ibv_mr **mr = calloc(number, sizeof(*mr));
	uint32_t *keys = calloc(number, sizeof(*keys)), i, k;
	char *mem = aligned_alloc(4096, 256 * 4096);
	long before, during, after = 0;
	double start, made, gone;

	CHECK(mr && keys && mem);
	memset(mem, 0, 256 * 4096);
	before = kernel_memory();
	start = now();
	for (i = 0; i < number; i++) {
		mr[i] = ibv_reg_mr(b.pd, mem + i % 256 * 4096, 4096, ALL);
		CHECK(mr[i]);
		keys[i] = mr[i]->rkey;
	}
	made = now() - start;
	during = kernel_memory();
	qsort(keys, number, sizeof(*keys), by_key);
	for (i = 1; i < number; i++)
		CHECK(keys[i] >> 8 != keys[i - 1] >> 8);
	/* each of some hundred is itself */
	for (k = 0; k < 500; k++) {
		i = (uint64_t)rand() * number / ((uint64_t)RAND_MAX + 1);
		scramble(near, 4096);
		CHECK(!use(IBV_WR_RDMA_WRITE, (uintptr_t)mr[i]->addr, 4096, mr[i]->rkey));
		CHECK(!memcmp(near, mr[i]->addr, 4096));
	}
	i = number / 2;
	CHECK(use(IBV_WR_RDMA_WRITE, (uintptr_t)mr[i]->addr + 1, 4096, mr[i]->rkey) ==
	      IBV_WC_REM_ACCESS_ERR);
	pair_close();
	pair_open();
	k = mr[i]->rkey;
	start = now();
	for (i = 0; i < number; i++)
		CHECK(!ibv_dereg_mr(mr[i]));
	gone = now() - start;
	CHECK(use(IBV_WR_RDMA_READ, (uintptr_t)mem, 8, k) == IBV_WC_REM_ACCESS_ERR);
	/* what RCU still has is freed in a while */
	for (i = 0; i < 100; i++) {
		after = kernel_memory();
		if (after - before < (during - before) / 20 + 512)
			break;
		usleep(100000);
	}
	printf("# %u regions: %.0f a second made, %.0f a second gone, %ld bytes of the kernel's each; %ld KiB before, %ld during, %ld after\n",
	       number, number / made, number / gone, (during - before) * 1024 / number,
	       before, during, after);
	/* KASAN keeps what was freed for a while; there kmemleak is asked (regions.sh) */
	CHECK(after - before < (during - before) / 20 + 512 ||
	      !access("/sys/kernel/debug/kmemleak", F_OK));
	free(mem);
	free(keys);
	free(mr);
}

static void t_large(void)
{
	uint64_t len = (uint64_t)megabytes * MB, off;
	int fd = memfd_create("large", 0), i;
	struct ibv_mr *mr;
	double start;
	char *mem;

	CHECK(fd >= 0 && !ftruncate(fd, PIECE));
	mem = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(mem != MAP_FAILED);
	for (off = 0; off < len; off += PIECE)
		CHECK(mmap(mem + off, PIECE, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_FIXED, fd, 0) == mem + off);
	start = now();
	mr = ibv_reg_mr(b.pd, mem, len, ALL);
	CHECK(mr);
	start = now() - start;
	printf("# %u MiB in pages of 4 KiB: registered in %.2f s, %.2f GiB/s\n", megabytes, start,
	       megabytes / 1024.0 / start);
	/* its ends, where 32 bits of it end, and places in between */
	for (i = 0; i < 12; i++) {
		off = i == 0 ? 0 : i == 1 ? len - CHUNK : i == 2 ? len / 2 - CHUNK / 2 - 77 :
		      ((uint64_t)rand() << 20 ^ rand()) % (len - CHUNK);
		scramble(near, CHUNK);
		CHECK(!use(IBV_WR_RDMA_WRITE, (uintptr_t)mem + off, CHUNK, mr->rkey));
		CHECK(!memcmp(near, mem + off, CHUNK));
		scramble(mem + off, CHUNK);
		CHECK(!use(IBV_WR_RDMA_READ, (uintptr_t)mem + off, CHUNK, mr->rkey));
		CHECK(!memcmp(near, mem + off, CHUNK));
	}
	CHECK(use(IBV_WR_RDMA_WRITE, (uintptr_t)mem + len - 8, 9, mr->rkey) ==
	      IBV_WC_REM_ACCESS_ERR);
	CHECK(!ibv_dereg_mr(mr));
	munmap(mem, len);
	close(fd);
}

/* The hint changes nothing but that it is taken. */
static void t_relaxed(void)
{
	struct ibv_mr *mr = ibv_reg_mr(b.pd, near, CHUNK, ALL | IBV_ACCESS_RELAXED_ORDERING);
	char *mem = aligned_alloc(4096, CHUNK);
	struct ibv_mr *far = ibv_reg_mr(b.pd, mem, CHUNK, ALL | IBV_ACCESS_RELAXED_ORDERING);

	CHECK(mr && far);
	scramble(near, CHUNK);
	CHECK(!use(IBV_WR_RDMA_WRITE, (uintptr_t)mem, CHUNK, far->rkey));
	CHECK(!memcmp(near, mem, CHUNK));
	CHECK(!ibv_dereg_mr(mr) && !ibv_dereg_mr(far));
	free(mem);
}

int main(int argc, char **argv)
{
	if (argc != 7)
		return 2;
	end_open(&a, argv[1], argv[2]);
	end_open(&b, argv[3], argv[4]);
	number = atoi(argv[5]);
	megabytes = atoi(argv[6]);
	near = aligned_alloc(4096, CHUNK);
	src = ibv_reg_mr(a.pd, near, CHUNK, ALL);
	if (!src || !number || !megabytes)
		die("set-up");

	run("relaxed ordering is accepted", t_relaxed);
	run("very many regions at once", t_many);
	run("a very large region", t_large);
	printf("1..%d\n", count);
	return failed != 0;
}
