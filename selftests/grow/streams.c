// SPDX-License-Identifier: GPL-2.0
/*
 * streams.c - messages a second over many queue pairs at once
 *
 *	streams -a DEVICE,GID-INDEX -b DEVICE,GID-INDEX [options]
 *
 *	-o OP,...	write, send, read (write)
 *	-s SIZE,...	bytes a message (64)
 *	-q N,...	QPs that stream; as many as the last are made (1)
 *	-m N,...	regions that WRITE and READ choose from at random (1 for each QP)
 *	-p N		processes; each has QPs of its own (1)
 *	-n N		messages in flight a QP, but not over 64 MiB (16)
 *	-t SECONDS	how long it is measured (1) ...
 *	-l N		... and until that many a QP, on average, are complete (0)
 *	-r N		rounds; each goes through all combinations (1)
 *
 * Each process holds both ends: QPs on device a, whose peers are on device b.
 * Plain libibverbs, any device.  One line for each combination and round.
 *
 * A QP begins with one message and posts two for each that completes until it has
 * N in flight, so all QPs get what the devices give them.  It is measured from when
 * N a QP, on average, have completed: before, batches are small, and with many QPs
 * that takes longest.  The rate and fairness are those of what completes from then
 * on until posting ends.  What the devices' own counters and the network's input
 * queues counted, from the first post to the last completion, is printed beside
 * the number of all messages (all=).
 */
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "end.h"

#define MAX_LIST	32
#define MAX_PROCS	64
#define MAX_COUNTERS	256
/* QPs that share a CQ: rdma_rxe's hold 32,767 entries. */
#define CQ_GROUP	512
#define BATCH		64
#define READS		16	/* as perftest has it */
#define IN_FLIGHT	(64UL << 20)
#define HUGE		(2UL << 20)
/* When nothing completes for so long, something is broken. */
#define STUCK		120.0

struct list {
	uint64_t v[MAX_LIST];
	unsigned int n;
};

/**
 * struct pair - two connected QPs
 * @a: sends
 * @b: receives
 * @flying: messages posted and not completed
 * @done: messages completed since it is measured
 */
struct pair {
	struct ibv_qp *a;
	struct ibv_qp *b;
	uint32_t flying;
	uint64_t done;
};

/* What is measured in one go. */
struct task {
	enum ibv_wr_opcode op;
	uint64_t size;
	uint64_t qps;
	uint64_t mrs;
};

/*
 * What a process tells of it: of what completed between start and end the number, and
 * over its QPs the least and the sum of squares; and the number of all.
 */
struct answer {
	double start;
	double end;
	uint64_t messages;
	uint64_t all;
	uint64_t min;
	double squares;
};

static const struct {
	const char *name;
	enum ibv_wr_opcode op;
} ops[] = {
	{ "write", IBV_WR_RDMA_WRITE },
	{ "send", IBV_WR_SEND },
	{ "read", IBV_WR_RDMA_READ },
};

static const char *spec_a, *spec_b;
static enum ibv_wr_opcode op_list[MAX_LIST];
static unsigned int num_ops;
static struct list sizes = { { 64 }, 1 }, qps = { { 1 }, 1 }, mrs;
static unsigned int procs = 1, rounds = 1;
static uint32_t depth = 16;
static uint64_t least;
static double seconds = 1;
static bool sends;

/* Of this process. */
static struct end a, b;
static struct pair *pairs;
static unsigned int num_pairs, num_cqs;
static struct ibv_cq **scq, **rcq;
static struct ibv_mr *mr_a, *mr_b, **targets;
static uint64_t slot;
static uint32_t seed;

/* --- set-up -------------------------------------------------------------- */

static void *memory(size_t len)
{
	void *p = aligned_alloc(HUGE, (len + HUGE - 1) & ~(HUGE - 1));

	if (!p)
		die("%zu bytes of memory", len);
	memset(p, 1, len);
	return p;
}

/* Register @n regions of a slot each; say how long each takes as they add up. */
static void make_targets(void)
{
	uint64_t n = mrs.v[mrs.n - 1], i, from = 0;
	uint8_t *buf = memory(n * slot);
	double t0 = now();
	unsigned int step;

	targets = calloc(n, sizeof(*targets));
	if (!targets)
		die("calloc");
	for (step = 0; step < mrs.n; step++) {
		for (i = from; i < mrs.v[step]; i++)
			targets[i] = end_reg(&b, buf + i * slot, slot);
		printf("what=reg from=%lu to=%lu seconds=%.6f\n", from, i,
		       now() - t0);
		from = i;
		t0 = now();
	}
}

static void post_recv(struct pair *p)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)mr_b->addr + (p - pairs) * slot,
		.length = slot,
		.lkey = mr_b->lkey,
	};
	struct ibv_recv_wr wr = {
		.wr_id = p - pairs,
		.sg_list = &sge,
		.num_sge = 1,
	}, *bad;

	errno = ibv_post_recv(p->b, &wr, &bad);
	if (errno)
		die("post_recv");
}

static void make_pair(unsigned int i)
{
	struct pair *p = &pairs[i];
	struct ibv_cq *sc = scq[i / CQ_GROUP], *rc = rcq[i / CQ_GROUP];
	uint32_t n;

	p->a = end_qp(&a, sc, sc, depth, 1);
	p->b = end_qp(&b, rc, rc, 1, 2 * depth);
	end_connect(&a, p->a, p->b->qp_num, &b.gid, READS);
	end_connect(&b, p->b, p->a->qp_num, &a.gid, READS);
	/* Twice as many as may come: they are posted again after they came. */
	for (n = 0; sends && n < 2 * depth; n++)
		post_recv(p);
}

static void set_up(void)
{
	unsigned int i;

	slot = sizes.v[sizes.n - 1];
	end_open(&a, spec_a);
	end_open(&b, spec_b);
	mr_a = end_reg(&a, memory(num_pairs * slot), num_pairs * slot);
	if (mrs.n)
		make_targets();
	if (!mrs.n || sends)
		mr_b = end_reg(&b, memory(num_pairs * slot), num_pairs * slot);

	num_cqs = (num_pairs + CQ_GROUP - 1) / CQ_GROUP;
	scq = calloc(num_cqs, sizeof(*scq));
	rcq = calloc(num_cqs, sizeof(*rcq));
	pairs = calloc(num_pairs, sizeof(*pairs));
	if (!scq || !rcq || !pairs)
		die("calloc");
	for (i = 0; i < num_cqs; i++) {
		uint32_t n = num_pairs < CQ_GROUP ? num_pairs : CQ_GROUP;

		scq[i] = end_cq(&a, n * depth);
		rcq[i] = end_cq(&b, 2 * n * depth);
	}
	for (i = 0; i < num_pairs; i++)
		make_pair(i);
}

/* The processes that are not the first would only print the same. */
static void tear_down(void)
{
	double t0 = now();
	unsigned int i;

	for (i = 0; i < num_pairs; i++)
		if (ibv_destroy_qp(pairs[i].a) || ibv_destroy_qp(pairs[i].b))
			die("destroy_qp");
	printf("what=destroy qps=%u seconds=%.6f\n", 2 * num_pairs, now() - t0);
}

/* --- streaming ----------------------------------------------------------- */

static uint32_t chance(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 17;
	seed ^= seed << 5;
	return seed;
}

static void post(struct pair *p, const struct task *t)
{
	uint64_t i = p - pairs;
	const struct ibv_mr *to = t->mrs ? targets[chance() % t->mrs] : mr_b;
	struct ibv_sge sge = {
		.addr = (uintptr_t)mr_a->addr + i * slot,
		.length = t->size,
		.lkey = mr_a->lkey,
	};
	struct ibv_send_wr wr = {
		.wr_id = i,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = t->op,
	}, *bad;

	if (t->op != IBV_WR_SEND) {
		wr.wr.rdma.remote_addr = (uintptr_t)to->addr +
					 (t->mrs ? 0 : i * slot);
		wr.wr.rdma.rkey = to->rkey;
	}
	errno = ibv_post_send(p->a, &wr, &bad);
	if (errno)
		die("post_send");
	p->flying++;
}

static int poll(struct ibv_cq *cq, struct ibv_wc *wc)
{
	int i, n = ibv_poll_cq(cq, BATCH, wc);

	if (n < 0)
		die("poll_cq");
	for (i = 0; i < n; i++)
		if (wc[i].status)
			die("QP pair %lu: %s", wc[i].wr_id,
			    ibv_wc_status_str(wc[i].status));
	return n;
}

/* Receives first: a send completes after its receive has. */
static void poll_receives(void)
{
	struct ibv_wc wc[BATCH];
	unsigned int i;
	int j, n;

	for (i = 0; i < num_cqs; i++)
		while ((n = poll(rcq[i], wc)))
			for (j = 0; j < n; j++)
				post_recv(&pairs[wc[j].wr_id]);
}

/* Number of completions; keeps up to @most in flight a QP, or as few as come. */
static unsigned int poll_sends(const struct task *t, uint32_t most)
{
	struct ibv_wc wc[BATCH];
	unsigned int i, sum = 0;
	int j, n;

	for (i = 0; i < num_cqs; i++) {
		n = poll(scq[i], wc);
		for (j = 0; j < n; j++) {
			struct pair *p = &pairs[wc[j].wr_id];

			p->flying--;
			p->done++;
			if (p->flying < most)
				post(p, t);
			if (p->flying < most)
				post(p, t);
		}
		sum += n;
	}
	return sum;
}

static void judge(const struct task *t, struct answer *ans)
{
	unsigned int i;

	ans->squares = 0;
	ans->min = UINT64_MAX;
	for (i = 0; i < t->qps; i++) {
		uint64_t n = pairs[i].done;

		if (n < ans->min)
			ans->min = n;
		ans->squares += (double)n * n;
	}
}

/*
 * Until @number messages have completed and it is @until; keep up to @most in flight
 * a QP.  Returns the number, and in @last the time of the last completion.
 */
static uint64_t go_on(const struct task *t, uint32_t most, uint64_t number,
		      double until, double *last)
{
	uint64_t done = 0;
	unsigned int n;

	*last = now();
	while (done < number || *last < until) {
		if (t->op == IBV_WR_SEND)
			poll_receives();
		n = poll_sends(t, most);
		done += n;
		if (n)
			*last = now();
		else if (now() - *last > STUCK)
			die("nothing completes");
	}
	return done;
}

static void stream(const struct task *t, struct answer *ans)
{
	uint32_t most = depth;
	uint64_t flying = 0;
	double last;
	unsigned int i;

	if (most > IN_FLIGHT / t->size)
		most = IN_FLIGHT / t->size ?: 1;
	for (i = 0; i < t->qps; i++)
		post(&pairs[i], t);
	ans->all = go_on(t, most, most * t->qps, 0, &ans->start);
	for (i = 0; i < t->qps; i++)
		pairs[i].done = 0;
	ans->messages = go_on(t, most, least * t->qps, ans->start + seconds,
			      &ans->end);
	judge(t, ans);
	for (i = 0; i < t->qps; i++)
		flying += pairs[i].flying;
	ans->all += ans->messages + go_on(t, 0, flying, 0, &last);
}

/* --- counters -------------------------------------------------------------- */

/* What is counted, by name; the same in the same place each time. */
struct counters {
	unsigned int n;
	struct {
		char name[64];
		uint64_t v;
	} c[MAX_COUNTERS];
};

static void add_counter(struct counters *c, const char *name, uint64_t v)
{
	if (c->n == MAX_COUNTERS)
		die("too many counters");
	snprintf(c->c[c->n].name, sizeof(c->c->name), "%.63s", name);
	c->c[c->n++].v = v;
}

/* Packets that the input queues of the CPUs have dropped. */
static void read_softnet(struct counters *c)
{
	FILE *f = fopen("/proc/net/softnet_stat", "r");
	unsigned int dropped;
	uint64_t sum = 0;
	char line[512];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%*x %x", &dropped) == 1)
			sum += dropped;
	if (f)
		fclose(f);
	add_counter(c, "backlog_dropped", sum);
}

static void read_device(struct counters *c, const char *spec)
{
	char path[512];
	struct dirent *e;
	uint64_t v;
	FILE *f;
	DIR *d;
	int len;

	len = snprintf(path, sizeof(path),
		       "/sys/class/infiniband/%.*s/ports/1/hw_counters/",
		       (int)strcspn(spec, ","), spec);
	d = opendir(path);
	while (d && (e = readdir(d))) {
		snprintf(path + len, sizeof(path) - len, "%s", e->d_name);
		f = fopen(path, "r");
		if (f && fscanf(f, "%lu", &v) == 1)
			add_counter(c, e->d_name, v);
		if (f)
			fclose(f);
	}
	if (d)
		closedir(d);
}

static void read_counters(struct counters *c)
{
	c->n = 0;
	read_softnet(c);
	read_device(c, spec_a);
	read_device(c, spec_b);
}

/* What has changed; what both devices have of a name is one figure. */
static void print_counters(const struct counters *from,
			   const struct counters *to)
{
	unsigned int i, j;

	for (i = 0; i < to->n; i++) {
		const char *name = to->c[i].name;
		uint64_t v = 0;

		for (j = 0; j < to->n; j++) {
			if (strcmp(to->c[j].name, name))
				continue;
			if (j < i)
				break;
			v += to->c[j].v - from->c[j].v;
		}
		if (j == to->n && v)
			printf(" %s=%lu", name, v);
	}
	printf("\n");
}

/* --- processes ----------------------------------------------------------- */

/*
 * A child does what its socket says until that is closed.  One that fails takes its
 * end with it, which ends the parent and so all others.
 */
static void child(int sock, unsigned int number)
{
	struct answer ans;
	struct task t;
	char ready = 0;

	seed = 2463534242u + number;
	set_up();
	fflush(stdout);
	if (write(sock, &ready, 1) != 1)
		exit(1);
	while (read(sock, &t, sizeof(t)) == sizeof(t)) {
		stream(&t, &ans);
		if (write(sock, &ans, sizeof(ans)) != sizeof(ans))
			exit(1);
	}
	if (!number)
		tear_down();
	exit(0);
}

static int spawn(unsigned int number, const int *earlier)
{
	unsigned int i;
	int sv[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sv))
		die("socketpair");
	switch (fork()) {
	case -1:
		die("fork");
	case 0:
		for (i = 0; i < number; i++)
			close(earlier[i]);
		close(sv[0]);
		child(sv[1], number);
	}
	close(sv[1]);
	return sv[0];
}

static const char *op_name(enum ibv_wr_opcode op)
{
	unsigned int i = 0;

	while (ops[i].op != op)
		i++;
	return ops[i].name;
}

static void run(const int *socks, const struct task *t, unsigned int round)
{
	struct answer all = { .min = UINT64_MAX }, one;
	static struct counters before, after;
	unsigned int i;

	read_counters(&before);
	for (i = 0; i < procs; i++)
		if (write(socks[i], t, sizeof(*t)) != sizeof(*t))
			die("lost process %u", i);
	for (i = 0; i < procs; i++) {
		if (read(socks[i], &one, sizeof(one)) != sizeof(one))
			die("lost process %u", i);
		if (!i || one.start < all.start)
			all.start = one.start;
		if (one.end > all.end)
			all.end = one.end;
		if (one.min < all.min)
			all.min = one.min;
		all.messages += one.messages;
		all.all += one.all;
		all.squares += one.squares;
	}
	read_counters(&after);
	printf("what=stream op=%s size=%lu qps=%lu procs=%u mrs=%lu round=%u seconds=%.6f messages=%lu all=%lu min=%lu jain=%.4f",
	       op_name(t->op), t->size, t->qps * procs, procs, t->mrs, round,
	       all.end - all.start, all.messages, all.all, all.min,
	       all.squares ? (double)all.messages * all.messages /
			     (t->qps * procs * all.squares) : 0);
	print_counters(&before, &after);
	fflush(stdout);
}

static void run_all(const int *socks, unsigned int round)
{
	unsigned int o, s, m, q;

	for (o = 0; o < num_ops; o++)
		for (s = 0; s < sizes.n; s++)
			for (m = 0; m < (mrs.n ?: 1); m++)
				for (q = 0; q < qps.n; q++) {
					struct task t = {
						.op = op_list[o],
						.size = sizes.v[s],
						.qps = qps.v[q],
						.mrs = mrs.n ? mrs.v[m] : 0,
					};

					run(socks, &t, round);
				}
}

/* --- options ------------------------------------------------------------- */

static void usage(void)
{
	fprintf(stderr, "usage: streams -a DEVICE,GID-INDEX -b DEVICE,GID-INDEX [-o write,send,read] [-s SIZE,...] [-q QPS,...] [-m MRS,...] [-p PROCESSES] [-n DEPTH] [-t SECONDS] [-l LEAST] [-r ROUNDS]\n");
	exit(2);
}

static void parse_ops(char *s)
{
	unsigned int i;
	char *word;

	while ((word = strsep(&s, ","))) {
		for (i = 0; i < sizeof(ops) / sizeof(*ops); i++)
			if (!strcmp(word, ops[i].name))
				break;
		if (i == sizeof(ops) / sizeof(*ops) || num_ops == MAX_LIST)
			usage();
		op_list[num_ops++] = ops[i].op;
		sends |= ops[i].op == IBV_WR_SEND;
	}
}

static void parse(int argc, char **argv)
{
	char write_only[] = "write";
	int c;

	while ((c = getopt(argc, argv, "a:b:o:s:q:m:p:n:t:l:r:")) != -1) {
		switch (c) {
		case 'a':
			spec_a = optarg;
			break;
		case 'b':
			spec_b = optarg;
			break;
		case 'o':
			parse_ops(optarg);
			break;
		case 's':
			sizes.n = parse_list(optarg, sizes.v, MAX_LIST);
			break;
		case 'q':
			qps.n = parse_list(optarg, qps.v, MAX_LIST);
			break;
		case 'm':
			mrs.n = parse_list(optarg, mrs.v, MAX_LIST);
			break;
		case 'p':
			procs = atoi(optarg);
			break;
		case 'n':
			depth = atoi(optarg);
			break;
		case 't':
			seconds = atof(optarg);
			break;
		case 'l':
			least = atoi(optarg);
			break;
		case 'r':
			rounds = atoi(optarg);
			break;
		default:
			usage();
		}
	}
	if (!num_ops)
		parse_ops(write_only);
	if (!spec_a || !spec_b || optind != argc || !procs ||
	    procs > MAX_PROCS || !depth || !rounds || seconds <= 0)
		usage();
	num_pairs = qps.v[qps.n - 1];
}

int main(int argc, char **argv)
{
	unsigned int i, round;
	int socks[MAX_PROCS];
	int status;
	char ready;
	double t0;

	parse(argc, argv);
	t0 = now();
	for (i = 0; i < procs; i++)
		socks[i] = spawn(i, socks);
	for (i = 0; i < procs; i++)
		if (read(socks[i], &ready, 1) != 1)
			die("process %u could not be set up", i);
	printf("what=setup qps=%u procs=%u seconds=%.6f\n",
	       2 * num_pairs * procs, procs, now() - t0);
	for (round = 0; round < rounds; round++)
		run_all(socks, round);
	fflush(stdout);
	for (i = 0; i < procs; i++)
		close(socks[i]);
	for (i = 0; i < procs; i++)
		if (wait(&status) < 0 || status)
			die("a process failed at its end");
	return 0;
}
