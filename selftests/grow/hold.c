// SPDX-License-Identifier: GPL-2.0
/*
 * hold.c - make many objects that nobody uses, and say what they cost
 *
 *	hold -d DEVICE,GID-INDEX KIND COUNT
 *
 *	qp		RC QPs of 128 send and 128 receive requests, in RTS
 *	cq:ENTRIES	completion queues
 *	mr:BYTES[:PAGES] memory regions; PAGES is 4k (the default), thp (transparent
 *			huge pages) or huge (hugetlbfs)
 *	process		processes with a context, a PD, an MR, a CQ and a QP each
 *
 * Prints seconds and bytes an object when they are there, waits until its
 * standard input is closed, and prints how long they took to go.
 *
 * The kernel's bytes are what has gone from the free memory and has not become the
 * programs' own or page cache: more than any counter of slab or vmalloc knows.
 */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "end.h"

#define PAGE		4096UL
#define HUGE		(2UL << 20)
/* Regions lie behind each other in so much memory at most, then above. */
#define MR_MEMORY	(1UL << 30)
/* Made and destroyed before anything is counted: the caches' first slabs. */
#define WARM_UP		8

/* --- what memory is used for ---------------------------------------------- */

static const char *const fields[] = {
	"MemFree", "AnonPages", "Buffers", "Cached", "SwapCached",
	"Slab", "VmallocUsed", "PageTables", "Percpu",
};

enum {
	FREE, ANON, BUFFERS, CACHED, SWAPCACHED,
	SLAB, VMALLOC, TABLES, PERCPU,
	NUM_FIELDS
};

struct usage {
	long v[NUM_FIELDS];	/* bytes */
};

static void read_usage(struct usage *u)
{
	FILE *f = fopen("/proc/meminfo", "r");
	char line[256], name[64];
	unsigned int i;
	long kb;

	if (!f)
		die("/proc/meminfo");
	while (fgets(line, sizeof(line), f))
		for (i = 0; i < NUM_FIELDS; i++)
			if (sscanf(line, "%63[^:]: %ld", name, &kb) == 2 &&
			    !strcmp(name, fields[i]))
				u->v[i] = kb * 1024;
	fclose(f);
}

static void print_usage(const struct usage *from, const struct usage *to, long n)
{
	struct usage d;
	unsigned int i;

	for (i = 0; i < NUM_FIELDS; i++)
		d.v[i] = to->v[i] - from->v[i];
	printf(" kernel=%ld slab=%ld vmalloc=%ld pagetables=%ld percpu=%ld user=%ld",
	       (-d.v[FREE] - d.v[ANON] - d.v[BUFFERS] - d.v[CACHED] -
		d.v[SWAPCACHED]) / n,
	       d.v[SLAB] / n, d.v[VMALLOC] / n, d.v[TABLES] / n,
	       d.v[PERCPU] / n, d.v[ANON] / n);
}

/* --- kinds of objects ------------------------------------------------------ */

/**
 * struct kind - how to make and destroy objects of a kind
 * @name: on the command line, before any colon
 * @prepare: what all of them share, or NULL
 * @make: object @i
 * @destroy: likewise
 */
struct kind {
	const char *name;
	void (*prepare)(long count);
	void *(*make)(long i);
	int (*destroy)(void *obj);
};

static const char *spec;
static uint64_t size;		/* entries, bytes */
static const char *pages = "4k";
static struct end end;
static struct ibv_cq *cq;
static uint8_t *memory;
static uint64_t memory_size;
static int gate[2];		/* the children live until it is closed */

static void open_once(long count)
{
	end_open(&end, spec);
}

static void prepare_qp(long count)
{
	end_open(&end, spec);
	cq = end_cq(&end, 16);
}

static void *make_qp(long i)
{
	struct ibv_qp *qp = end_qp(&end, cq, cq, 128, 128);

	/* To itself: an idle QP does not care. */
	end_connect(&end, qp, qp->qp_num, &end.gid, 1);
	return qp;
}

static int destroy_qp(void *obj)
{
	return ibv_destroy_qp(obj);
}

static void *make_cq(long i)
{
	return end_cq(&end, size);
}

static int destroy_cq(void *obj)
{
	return ibv_destroy_cq(obj);
}

static void prepare_mr(long count)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS;

	end_open(&end, spec);
	memory_size = size > MR_MEMORY ? size : MR_MEMORY / size * size;
	if (memory_size > count * size)
		memory_size = count * size;
	if (!strcmp(pages, "huge"))
		flags |= MAP_HUGETLB;
	memory_size = (memory_size + HUGE - 1) & ~(HUGE - 1);
	/* The kernel aligns what is long enough for huge pages to them. */
	memory = mmap(NULL, memory_size, PROT_READ | PROT_WRITE, flags, -1, 0);
	if (memory == MAP_FAILED)
		die("%lu bytes of memory", memory_size);
	if (!(flags & MAP_HUGETLB) &&
	    madvise(memory, memory_size, strcmp(pages, "4k") ? MADV_HUGEPAGE :
							       MADV_NOHUGEPAGE))
		die("madvise");
	memset(memory, 1, memory_size);
}

static void *make_mr(long i)
{
	uint64_t room = memory_size / size;

	return end_reg(&end, memory + i % room * size, size);
}

static int destroy_mr(void *obj)
{
	return ibv_dereg_mr(obj);
}

static void prepare_process(long count)
{
	if (pipe(gate))
		die("pipe");
}

/* Returns when the child has all its objects. */
static void *make_process(long i)
{
	static long pid;
	int ready[2];
	char c = 0;

	if (pipe(ready))
		die("pipe");
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid) {
		close(gate[1]);
		close(ready[0]);
		prepare_qp(1);
		make_qp(0);
		size = PAGE;
		prepare_mr(1);
		make_mr(0);
		if (write(ready[1], &c, 1) != 1)
			_exit(1);
		close(ready[1]);
		_exit(read(gate[0], &c, 1));
	}
	close(ready[1]);
	if (read(ready[0], &c, 1) != 1)
		die("process %ld", i);
	close(ready[0]);
	return (void *)pid;
}

static int destroy_process(void *obj)
{
	int status;

	close(gate[1]);
	return waitpid((pid_t)(long)obj, &status, 0) < 0 || status;
}

static const struct kind kinds[] = {
	{ "qp", prepare_qp, make_qp, destroy_qp },
	{ "cq", open_once, make_cq, destroy_cq },
	{ "mr", prepare_mr, make_mr, destroy_mr },
	{ "process", prepare_process, make_process, destroy_process },
};

/* --------------------------------------------------------------------------- */

static void make_all(const struct kind *k, void **objs, long n)
{
	long i;

	for (i = 0; i < n; i++)
		objs[i] = k->make(i);
}

static void destroy_all(const struct kind *k, void **objs, long n)
{
	long i;

	for (i = 0; i < n; i++)
		if (k->destroy(objs[i]))
			die("object %ld does not go", i);
}

/* "NAME", "NAME:NUMBER" or "NAME:NUMBER:PAGES" */
static const struct kind *parse_kind(const char *arg)
{
	char *s = strdup(arg);
	char *name = strsep(&s, ":");
	unsigned int i;

	if (s)
		parse_list(strsep(&s, ":"), &size, 1);
	if (s)
		pages = s;
	for (i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strcmp(kinds[i].name, name))
			return &kinds[i];
	die("no such kind: %s", name);
}

static void hold(const struct kind *k, const char *name, long n)
{
	void **objs = calloc(n, sizeof(*objs));
	struct usage before, after;
	double t0, time;
	char c;

	if (!objs)
		die("calloc");
	memset(objs, 0, n * sizeof(*objs));
	if (k->prepare)
		k->prepare(n);
	if (k->make != make_process) {
		make_all(k, objs, n < WARM_UP ? n : WARM_UP);
		destroy_all(k, objs, n < WARM_UP ? n : WARM_UP);
	}
	sleep(1);	/* what is due by RCU and the like */
	read_usage(&before);
	t0 = now();
	make_all(k, objs, n);
	time = now() - t0;
	sleep(1);
	read_usage(&after);
	printf("what=hold kind=%s count=%ld seconds=%.6f", name, n, time);
	print_usage(&before, &after, n);
	printf("\n");
	fflush(stdout);

	while (read(STDIN_FILENO, &c, 1) > 0)
		;
	t0 = now();
	destroy_all(k, objs, n);
	printf("what=gone kind=%s count=%ld seconds=%.6f\n", name, n,
	       now() - t0);
}

static void usage(void)
{
	fprintf(stderr, "usage: hold -d DEVICE,GID-INDEX qp|cq:ENTRIES|mr:BYTES[:4k|:thp|:huge]|process COUNT\n");
	exit(2);
}

int main(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "d:")) != -1) {
		if (c != 'd')
			usage();
		spec = optarg;
	}
	if (!spec || argc - optind != 2 || atol(argv[optind + 1]) <= 0)
		usage();
	hold(parse_kind(argv[optind]), argv[optind], atol(argv[optind + 1]));
	return 0;
}
