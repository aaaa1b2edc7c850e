// SPDX-License-Identifier: GPL-2.0
/*
 * scribbler.c - a program that writes to every byte it shares with the kernel
 *
 *	scribbler DEV-A GID-INDEX-A DEV-B GID-INDEX-B SECONDS [SEED]
 *
 * It knows nothing of what it maps: each writable mapping of an RDMA device in
 * /proc/self/maps is written all over by a thread, with random words, with values
 * that programmers get wrong, and with what stands elsewhere in the mappings, while
 * the program goes on to post, poll, arm, resize and destroy: queue pairs of every
 * service, shared receive queues, memory windows, address handles, memory paged
 * on demand.  It lives for half a second or until it falls over what it has written;
 * then the next one comes.
 *
 * Meanwhile two processes move checked data over the same links.  Not one byte
 * of theirs may be wrong, and their queue pairs live to the end.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "pair.h"

#define BUF		(64 * KB)
#define LIFE_MS		500
#define MAPPINGS	64
#define VICTIMS		2
#define PATIENCE_MS	60000

/* xorshift64: each thread has its own */
static uint64_t next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* --- who must not notice --------------------------------------------------- */

struct victim {
	volatile uint64_t rounds;
	volatile int stop, bad;
};

static struct victim *victims;
static volatile uint64_t *words;	/* that scribblers have written to */
static char **args;

static void both_open(void)
{
	end_open(&a, args[1], args[2]);
	end_open(&b, args[3], args[4]);
	pair_open();
}

static bool right(struct ibv_cq *cq)
{
	uint64_t end = now_ms() + PATIENCE_MS;
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(cq, 1, &wc)) && now_ms() < end)
		usleep(100);
	if (n == 1 && wc.status == IBV_WC_SUCCESS)
		return true;
	printf("# victim: poll %d, status %d\n", n, n == 1 ? (int)wc.status : -1);
	return false;
}

/* SEND, WRITE and READ by turns; the whole buffer is looked at each time. */
static bool one_round(uint32_t round, uint32_t *from, struct ibv_mr *from_mr,
		      uint32_t *to, struct ibv_mr *to_mr)
{
	static const enum ibv_wr_opcode ops[] = {
		IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
	};
	enum ibv_wr_opcode op = ops[round % 3];
	bool read = op == IBV_WR_RDMA_READ;
	uint32_t len = 4 + (round * 2654435761u >> 8) % (BUF / 4 - 1) * 4;
	struct ibv_sge sge = {
		(uintptr_t)(read ? to : from), len, read ? to_mr->lkey : from_mr->lkey
	};
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = op,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma.remote_addr = (uintptr_t)(read ? from : to),
		.wr.rdma.rkey = read ? from_mr->rkey : to_mr->rkey,
	};
	struct end *e = read ? &b : &a;
	uint32_t i;

	for (i = 0; i < BUF / 4; i++) {
		from[i] = i * 77 + round;
		to[i] = ~round;
	}
	if (op == IBV_WR_SEND && (post_recv(&b, to, BUF, to_mr->lkey) ||
				  ibv_post_send(e->qp, &wr, &bad) || !right(b.cq)))
		return false;
	if (op != IBV_WR_SEND && ibv_post_send(e->qp, &wr, &bad))
		return false;
	if (!right(e->cq))
		return false;
	for (i = 0; i < BUF / 4; i++)
		if (from[i] != i * 77 + round ||
		    to[i] != (i < len / 4 ? i * 77 + round : ~round)) {
			printf("# victim: round %u, op %d, %u bytes: word %u\n",
			       round, op, len, i);
			return false;
		}
	return true;
}

static bool still_rts(struct end *e)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	return !ibv_query_qp(e->qp, &attr, IBV_QP_STATE, &init) &&
	       attr.qp_state == IBV_QPS_RTS;
}

static void victim_run(struct victim *v)
{
	uint32_t *from, *to;
	struct ibv_mr *from_mr, *to_mr;
	uint32_t round;

	both_open();
	from = aligned_alloc(4096, BUF);
	to = aligned_alloc(4096, BUF);
	from_mr = ibv_reg_mr(a.pd, from, BUF, ALL);
	to_mr = ibv_reg_mr(b.pd, to, BUF, ALL);
	if (!from_mr || !to_mr)
		die("reg_mr");
	for (round = 1; !v->stop; round++) {
		if (!one_round(round, from, from_mr, to, to_mr)) {
			v->bad = 1;
			break;
		}
		v->rounds = round;
	}
	if (!still_rts(&a) || !still_rts(&b))
		v->bad = 1;
	_exit(v->bad);
}

/* --- the scribbler ----------------------------------------------------------- */

static struct mapping {
	char *start;
	size_t len;
} maps[MAPPINGS];
static volatile int n_maps;
static pthread_mutex_t maps_lock = PTHREAD_MUTEX_INITIALIZER;

/* Whatever of a device is mapped and may be written to. */
static void find_maps(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long from, to;
	char line[512], mode[8];

	n_maps = 0;
	while (f && fgets(line, sizeof(line), f) && n_maps < MAPPINGS)
		if (strstr(line, "uverbs") &&
		    sscanf(line, "%lx-%lx %7s", &from, &to, mode) == 3 &&
		    mode[1] == 'w')
			maps[n_maps++] = (struct mapping) { (char *)from, to - from };
	if (f)
		fclose(f);
}

static volatile uint64_t *some_word(uint64_t *rnd)
{
	struct mapping *m = &maps[next(rnd) % n_maps];
	uint64_t dice = next(rnd);

	/* one in 64 in the control words, one in 4 in the slots that come first */
	if (dice % 64 == 0)
		return (void *)(m->start + (dice >> 8) % 4 * 64);
	if (dice % 4 == 1)
		return (void *)(m->start + 256 + ((dice >> 8) % 1024 & ~7));
	return (void *)(m->start + ((dice >> 8) % m->len & ~7));
}

static void scribble(uint64_t *rnd)
{
	static const uint64_t nasty[] = {
		0, 1, 2, 3, 4, 8, 15, 16, 32, 33, 63, 64, 65, 255, 256, 1023, 1024, 1025,
		4095, 4096, 65535, 65536, 0x7fffffff, 0x80000000, 0x80000001,
		0xfffffc00, 0xffffffff, 0x100000000, 0x7fffffffffffffff,
		0x8000000000000000, 0xfffffffffffffc00, 0xffffffffffffffff,
		0xffff888000000000, 0xffffffff81000000, 0x60000000, 0xdead000000000100,
	};
	volatile uint64_t *w = some_word(rnd);
	uint64_t dice = next(rnd);
	uint64_t value = nasty[(dice >> 8) % (sizeof(nasty) / sizeof(*nasty))];

	switch (dice & 15) {
	case 0 ... 2:
		*w = value;
		break;
	case 3 ... 5:
		*(volatile uint32_t *)w = value;
		break;
	case 6:
		((volatile uint16_t *)w)[(dice >> 32) & 3] = value;
		break;
	case 7:
		((volatile uint8_t *)w)[(dice >> 32) & 7] = value;
		break;
	case 8:
		*w = next(rnd);
		break;
	case 9:
		*w ^= 1ull << ((dice >> 32) & 63);
		break;
	case 10:
		*(volatile uint32_t *)w += (int)((dice >> 32) % 5) - 2;
		break;
	case 11 ... 13:
		/* real keys and addresses, in places of others' */
		*w = *some_word(rnd);
		break;
	case 14:
		((volatile uint32_t *)w)[dice >> 32 & 1] = *some_word(rnd) >> 32;
		break;
	default:
		memset((char *)w, value, 8);
	}
}

static void *scribbler(void *arg)
{
	uint64_t rnd = (uintptr_t)arg;
	int i;

	for (;;) {
		pthread_mutex_lock(&maps_lock);
		for (i = 0; n_maps && i < 32; i++)
			scribble(&rnd);
		*words += i;
		pthread_mutex_unlock(&maps_lock);
	}
	return NULL;
}

/* --- what it has to scribble on ------------------------------------------------ */

static struct {
	struct end *e;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_srq *srq;
	struct ibv_mr *mr, *odp;
	struct ibv_mw *mw;
	struct ibv_ah *ah;
	char *buf;
} side[2];

static uint64_t rnd;

static struct ibv_qp *any_qp(int i, enum ibv_qp_type type, bool srq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = side[i].cq,
		.recv_cq = side[i].cq,
		.srq = srq ? side[i].srq : NULL,
		.cap = { 16 << next(&rnd) % 4, 16, 1 + next(&rnd) % 8, 4, next(&rnd) % 256 },
		.qp_type = type,
	};

	return ibv_create_qp(side[i].e->pd, &init);
}

static void to_rts(int i, struct ibv_qp *peer)
{
	struct ibv_qp_attr attr = attr_to(&side[!i].e->gid, side[i].e->gid_index, peer->qp_num);
	struct ibv_qp *qp = side[i].qp;

	attr.min_rnr_timer = 1;
	attr.timeout = 10;
	attr.retry_cnt = 3;
	attr.rnr_retry = 3;
	if (qp->qp_type == IBV_QPT_UD)
		ud_to_rts(qp, 0x1234);
	else
		must(!to_rts_as(qp, attr), "to RTS");
}

static void side_open(int i, enum ibv_qp_type type, bool srq)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 32, .max_sge = 4 } };
	struct end *e = side[i].e;

	side[i].cq = ibv_create_cq(e->ctx, 64, NULL, NULL, 0);
	side[i].srq = ibv_create_srq(e->pd, &init);
	side[i].qp = side[i].cq && side[i].srq ? any_qp(i, type, srq) : NULL;
	if (!side[i].qp)
		die("create_qp");
}

static void post_some(int i, uint32_t dest_qpn)
{
	static const enum ibv_wr_opcode ops[] = {
		IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
		IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM,
		IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD,
		IBV_WR_BIND_MW, IBV_WR_LOCAL_INV, IBV_WR_SEND_WITH_INV,
	};
	struct ibv_mr *mine = next(&rnd) % 4 ? side[i].mr : side[i].odp;
	struct ibv_mr *theirs = next(&rnd) % 4 ? side[!i].mr : side[!i].odp;
	uint32_t dice = next(&rnd);
	bool ud = side[i].qp->qp_type == IBV_QPT_UD;
	struct ibv_sge sge = {
		(uintptr_t)mine->addr + dice % KB * 8, ud ? dice % 1024 : dice % (16 * KB),
		mine->lkey
	};
	/* mostly what does not end the connection at once */
	enum ibv_wr_opcode op = ops[dice >> 16 & 7 ? (dice >> 20) % 3 : (dice >> 20) % 10];
	struct ibv_send_wr *bad, wr = {
		.wr_id = dice, .sg_list = &sge, .num_sge = 1, .opcode = ud ? IBV_WR_SEND : op,
		.send_flags = IBV_SEND_SIGNALED | (dice >> 28 & 1 ? IBV_SEND_FENCE : 0),
	};
	struct ibv_recv_wr rwr = { .sg_list = &sge, .num_sge = 1 }, *rbad;

	if (ud) {
		wr.wr.ud.ah = side[i].ah;
		wr.wr.ud.remote_qpn = dest_qpn;
		wr.wr.ud.remote_qkey = 0x1234;
	} else if (op >= IBV_WR_ATOMIC_CMP_AND_SWP && op <= IBV_WR_ATOMIC_FETCH_AND_ADD) {
		sge.length = 8;
		wr.wr.atomic.remote_addr = (uintptr_t)theirs->addr;
		wr.wr.atomic.rkey = theirs->rkey;
	} else if (op == IBV_WR_BIND_MW) {
		wr.bind_mw.mw = side[i].mw;
		wr.bind_mw.rkey = ibv_inc_rkey(side[i].mw->rkey);
		wr.bind_mw.bind_info = (struct ibv_mw_bind_info) {
			mine, (uintptr_t)mine->addr, 4096, IBV_ACCESS_REMOTE_READ
		};
	} else if (op == IBV_WR_LOCAL_INV || op == IBV_WR_SEND_WITH_INV) {
		wr.invalidate_rkey = side[op == IBV_WR_LOCAL_INV ? i : !i].mw->rkey;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)theirs->addr + dice % 4096;
		wr.wr.rdma.rkey = theirs->rkey;
	}
	ibv_post_send(side[i].qp, &wr, &bad);
	sge.length = 16 * KB;
	if (side[i].qp->srq)
		ibv_post_srq_recv(side[i].srq, &rwr, &rbad);
	else
		ibv_post_recv(side[i].qp, &rwr, &rbad);
}

/* Something that a program does now and then. */
static void odd_job(int i)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_srq_attr sattr = { .max_wr = 16 << next(&rnd) % 5, .srq_limit = 4 };

	switch (next(&rnd) % 8) {
	case 0:
		ibv_req_notify_cq(side[i].cq, 0);
		break;
	case 1:
		/* the mapping moves: nobody may write to the old one */
		pthread_mutex_lock(&maps_lock);
		ibv_resize_cq(side[i].cq, 32 << next(&rnd) % 4);
		find_maps();
		pthread_mutex_unlock(&maps_lock);
		break;
	case 2:
		pthread_mutex_lock(&maps_lock);
		ibv_modify_srq(side[i].srq, &sattr, IBV_SRQ_MAX_WR);
		find_maps();
		pthread_mutex_unlock(&maps_lock);
		break;
	case 3:
		ibv_modify_srq(side[i].srq, &sattr, IBV_SRQ_LIMIT);
		break;
	case 4:
		ibv_query_qp(side[i].qp, &attr, IBV_QP_STATE, &init);
		break;
	case 5:
		madvise(side[i].odp->addr, 4096, MADV_DONTNEED);
		break;
	case 6:
		if (next(&rnd) % 8 == 0)
			ibv_modify_qp(side[i].qp, &attr, IBV_QP_STATE);
		break;
	}
}

static void memory_open(int i)
{
	struct ibv_ah_attr ah = {
		.is_global = 1, .port_num = 1,
		.grh = { .dgid = side[!i].e->gid, .sgid_index = side[i].e->gid_index,
			 .hop_limit = 64 },
	};
	struct end *e = side[i].e;

	side[i].buf = mmap(NULL, 2 * BUF, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	side[i].mr = ibv_reg_mr(e->pd, side[i].buf, BUF, ALL | IBV_ACCESS_MW_BIND);
	side[i].odp = ibv_reg_mr(e->pd, side[i].buf + BUF, BUF, ALL | IBV_ACCESS_ON_DEMAND);
	side[i].mw = ibv_alloc_mw(e->pd, IBV_MW_TYPE_2);
	side[i].ah = ibv_create_ah(e->pd, &ah);
	if (!side[i].odp)
		side[i].odp = side[i].mr;
	if (!side[i].mr || !side[i].mw || !side[i].ah)
		die("memory");
}

/* Lives until it falls over its own feet, or for half a second with memory to write to. */
static void hostile_run(uint64_t seed)
{
	static const enum ibv_qp_type types[] = {
		IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD,
	};
	enum ibv_qp_type type;
	struct ibv_wc wc[8];
	pthread_t thread;
	uint64_t end = UINT64_MAX;
	bool srq;
	int i, j;

	rnd = seed * 0x9e3779b97f4a7c15 | 1;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	end_open(&a, args[1], args[2]);
	end_open(&b, args[3], args[4]);
	side[0].e = &a;
	side[1].e = &b;
	for (i = 0; i < 2; i++)
		memory_open(i);
	pthread_create(&thread, NULL, scribbler, (void *)(uintptr_t)next(&rnd));
	while (now_ms() < end) {
		type = types[next(&rnd) % 4];
		srq = next(&rnd) % 3 == 0;
		for (i = 0; i < 2; i++)
			side_open(i, type, srq);
		for (i = 0; i < 2; i++)
			to_rts(i, side[!i].qp);
		pthread_mutex_lock(&maps_lock);
		find_maps();
		pthread_mutex_unlock(&maps_lock);
		if (end == UINT64_MAX)
			end = now_ms() + LIFE_MS;
		for (j = 0; j < 200 && now_ms() < end; j++) {
			i = next(&rnd) % 2;
			post_some(i, side[!i].qp->qp_num);
			ibv_poll_cq(side[i].cq, 8, wc);
			if (next(&rnd) % 16 == 0)
				odd_job(i);
		}
		pthread_mutex_lock(&maps_lock);
		n_maps = 0;
		pthread_mutex_unlock(&maps_lock);
		for (i = 0; i < 2; i++) {
			ibv_destroy_qp(side[i].qp);
			ibv_destroy_srq(side[i].srq);
			ibv_destroy_cq(side[i].cq);
		}
	}
	_exit(0);	/* all the rest is the kernel's to clear away */
}

/* --- everybody together ------------------------------------------------------- */

static pid_t start(void (*fn)(uint64_t), uint64_t arg)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid) {
		fn(arg);
		_exit(1);
	}
	return pid;
}

static void victim_start(uint64_t i)
{
	victim_run(&victims[i]);
}

static void progress(const char *what)
{
	uint64_t end = now_ms() + PATIENCE_MS, at[VICTIMS];
	int i;

	for (i = 0; i < VICTIMS; i++)
		at[i] = victims[i].rounds;
	good = true;
	for (i = 0; i < VICTIMS; i++) {
		while (victims[i].rounds < at[i] + 3 && !victims[i].bad && now_ms() < end)
			usleep(1000);
		good &= !victims[i].bad && victims[i].rounds >= at[i] + 3;
	}
	point(what);
}

/* How many queues of both links the kernel has ended for what stood in their rings. */
static uint64_t queues_ended(void)
{
	return hw_counter(args[1], "bad_ring_index") + hw_counter(args[3], "bad_ring_index");
}

int main(int argc, char **argv)
{
	uint64_t seed, end, ended;
	int lives = 0, fell = 0, odd = 0, status, i;
	pid_t pid[VICTIMS], child;

	if (argc < 6) {
		fprintf(stderr, "usage: %s DEV GID DEV GID SECONDS [SEED]\n", *argv);
		return 2;
	}
	args = argv;
	seed = argc > 6 ? strtoull(argv[6], NULL, 0) : now_ms();
	printf("# user %d, seed %llu\n", (int)getuid(), (unsigned long long)seed);
	victims = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	words = (void *)(victims + VICTIMS);
	ended = queues_ended();
	for (i = 0; i < VICTIMS; i++)
		pid[i] = start(victim_start, i);
	progress("two processes move checked data");

	for (end = now_ms() + atoi(argv[5]) * 1000ull; now_ms() < end; lives++) {
		child = start(hostile_run, seed + lives);
		waitpid(child, &status, 0);
		fell += WIFSIGNALED(status);
		odd += WIFEXITED(status) && WEXITSTATUS(status);
		for (i = 0; i < VICTIMS; i++)
			if (victims[i].bad)
				end = 0;
	}
	printf("# %d scribblers, %d fell over what they had written, %d gave up\n",
	       lives, fell, odd);
	good = lives > 2 && odd < lives / 2;
	point("scribblers came and went");
	ended = queues_ended() - ended;
	printf("# %llu words written, %llu queues ended for it\n",
	       (unsigned long long)*words, (unsigned long long)ended);
	good = *words && ended;
	point("they have written, and queues were ended for it");
	progress("the two are as before");

	for (i = 0; i < VICTIMS; i++) {
		victims[i].stop = 1;
		waitpid(pid[i], &status, 0);
		printf("# %llu rounds\n", (unsigned long long)victims[i].rounds);
		good = !victims[i].bad && WIFEXITED(status) && !WEXITSTATUS(status);
		point("every byte was right, and the queue pairs live");
	}
	printf("1..%d\n", count);
	return failed > 0;
}
