// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * sim.c - options, scenarios, rounds and verdicts
 *
 *	sim [--scenario NAME] [--seed N|random] [--rounds N] [--scale PERCENT]
 *	    [--seconds N] [--first-failure] [-v]
 *
 * A scenario is run in rounds of their own seeds: a few connections with
 * random limits, some ten thousand work requests, then silence, then a look
 * at all memory.  A failure prints the command that repeats its round.
 */
#include <stdarg.h>
#include <sys/time.h>
#include <time.h>

#include "sim.h"

#define ROUND_MSGS	10000
#define HANG_NS		(60 * NS_PER_S)
#define HANG_EVENTS	20000000

struct sim sim;
u32 scale = 100;
static u32 time_limit;	/* of a scenario, in seconds; 0: none */
struct stats stats;

#define PCT(x)	((u32)((x) * 10000))
static const struct scenario scenarios[] = {
	{ .name = "vectors", .run = vectors_run },
	{ .name = "directed", .run = directed_run, .max_len = 10000 },
	{ .name = "by-hand", .run = byhand_run, .max_len = 4096 },
	{ .name = "datagrams", .run = datagram_run, .max_len = 4096 },
	{ .name = "responder", .run = rogue_run, .max_len = 4096,
	  .paging = PCT(2), .absent = PCT(2), .eagain = PCT(5), .gone = PCT(2) },
	{ .name = "requester", .run = rogue_run, .max_len = 4096,
	  .paging = PCT(2), .absent = PCT(2), .eagain = PCT(5), .gone = PCT(2) },
	{ .name = "clean", .msgs = 100000, .max_len = 20000, .remark = PCT(5) },
	{ .name = "backpressure", .msgs = 60000, .max_len = 20000,
	  .eagain = PCT(20), .drain = PCT(0.2) },
	{ .name = "paging", .msgs = 60000, .max_len = 20000, .paging = PCT(3), .absent = PCT(3),
	  .drop = PCT(0.2) },
	{ .name = "ipv4", .msgs = 20000, .max_len = 20000, .ip = 4,
	  .corrupt = PCT(1), .remark = PCT(20) },
	{ .name = "ipv6", .msgs = 20000, .max_len = 20000, .ip = 6,
	  .corrupt = PCT(1), .remark = PCT(20) },
	{ .name = "loss", .msgs = 150000, .max_len = 20000, .drop = PCT(2) },
	{ .name = "heavy-loss", .msgs = 30000, .max_len = 8000, .drop = PCT(20) },
	{ .name = "dup", .msgs = 100000, .max_len = 20000, .dup = PCT(5) },
	{ .name = "ghosts", .msgs = 100000, .max_len = 20000, .ghost = PCT(5),
	  .drop = PCT(0.5) },
	{ .name = "reorder", .msgs = 100000, .max_len = 20000, .reorder = PCT(3) },
	{ .name = "corrupt", .msgs = 100000, .max_len = 20000, .corrupt = PCT(2) },
	{ .name = "delay", .msgs = 60000, .max_len = 20000, .slow = PCT(0.05),
	  .reorder = PCT(0.5) },
	{ .name = "trains", .msgs = 60000, .max_len = 60000, .bulk = true },
	{ .name = "trains-loss", .msgs = 60000, .max_len = 60000, .bulk = true,
	  .drop = PCT(2), .dup = PCT(1), .ghost = PCT(0.2), .reorder = PCT(1),
	  .corrupt = PCT(0.2), .remark = PCT(2), .eagain = PCT(2) },
	{ .name = "trains-same-id", .msgs = 30000, .max_len = 60000, .ip = 4,
	  .bulk = true, .same_id = true, .drop = PCT(1), .corrupt = PCT(0.5) },
	{ .name = "rnr", .msgs = 100000, .max_len = 8000, .rnr = true,
	  .starve = PCT(2), .drop = PCT(0.5) },
	{ .name = "wrap", .msgs = 60000, .max_len = 20000, .wrap = true,
	  .drop = PCT(1), .dup = PCT(1), .reorder = PCT(1) },
	{ .name = "drain", .msgs = 60000, .max_len = 20000, .drain = PCT(2),
	  .drop = PCT(1), .eagain = PCT(2) },
	{ .name = "all", .msgs = 900000, .max_len = 20000, .drop = PCT(1),
	  .dup = PCT(1), .ghost = PCT(0.2), .reorder = PCT(1), .corrupt = PCT(1),
	  .slow = PCT(0.01), .eagain = PCT(1), .paging = PCT(0.1), .absent = PCT(0.1),
	  .drain = PCT(0.1), .starve = PCT(0.5), .rnr = true, .remark = PCT(5) },
	{ .name = "big", .msgs = 2000, .max_len = 1000000, .drop = PCT(0.1),
	  .reorder = PCT(0.1) },
	{ .name = "retries", .msgs = 40000, .max_len = 8000, .drop = PCT(10),
	  .finite = true, .rnr = true, .starve = PCT(5) },
	{ .name = "errors", .msgs = 150000, .max_len = 8000, .bad = PCT(0.5),
	  .eagain = PCT(1), .rnr = true },
	{ .name = "errors-loss", .msgs = 100000, .max_len = 8000, .bad = PCT(0.5),
	  .drop = PCT(2), .dup = PCT(2), .ghost = PCT(1), .reorder = PCT(2),
	  .corrupt = PCT(1), .drain = PCT(1), .rnr = true, .finite = true },
	{ .name = "uc", .run = uc_run, .max_len = 24000, .eagain = PCT(5),
	  .remark = PCT(5) },
	{ .name = "uc-loss", .run = uc_run, .max_len = 12000, .slow = PCT(0.1) },
	{ .name = "uc-chaos", .run = uc_run, .max_len = 12000, .drop = PCT(2),
	  .dup = PCT(3), .ghost = PCT(1), .reorder = PCT(3), .corrupt = PCT(1),
	  .eagain = PCT(2) },
	{ .name = "ud", .run = uc_run, .max_len = 4096, .eagain = PCT(5),
	  .remark = PCT(5) },
	{ .name = "ud-loss", .run = uc_run, .max_len = 4096, .slow = PCT(0.1) },
	{ .name = "ud-chaos", .run = uc_run, .max_len = 4096, .drop = PCT(2),
	  .dup = PCT(3), .ghost = PCT(1), .reorder = PCT(3), .corrupt = PCT(1),
	  .eagain = PCT(2) },
	{ .name = "swarm", .msgs = 500000, .swarm = true },
	{ .name = "go-back-n", .msgs = 40000, .max_len = 20000, .gbn = PCT(100),
	  .remark = PCT(5) },
	{ .name = "go-back-n-loss", .msgs = 100000, .max_len = 20000,
	  .gbn = PCT(100), .drop = PCT(3), .dup = PCT(2), .ghost = PCT(0.5),
	  .reorder = PCT(2), .corrupt = PCT(1), .slow = PCT(0.01),
	  .eagain = PCT(1), .paging = PCT(0.1), .absent = PCT(0.1), .drain = PCT(0.1),
	  .starve = PCT(0.5), .rnr = true },
	{ .name = "giant", .run = big_run, .drop = 20, .reorder = 20,
	  .no_icrc = true, .max_len = 4096 },
	{ .name = "giant-psn", .run = big_psn_run, .drop = 20, .reorder = 20,
	  .no_icrc = true, .max_len = 4096, .by_name = true },
};

/* ---- messages ---- */

static const char *program = "sim";

static void where(const struct sim_qp *qp)
{
	printf("# %12llu ns", sim.now);
	if (qp)
		printf(" qp %u (%06x)", qp->idx, qp->t.qpn);
	printf(": ");
}

void sim_trace(const struct sim_qp *qp, const char *fmt, ...)
{
	va_list ap;

	where(qp);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
}

void sim_fail(const struct sim_qp *qp, const char *fmt, ...)
{
	va_list ap;

	where(qp);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	if (sim.input_end)
		abort();	/* the fuzzer keeps the input */
	printf("\n# replay: %s --scenario %s --seed %llu --rounds 1 -v\n",
	       program, sim.sc->name, sim.seed);
	fflush(stdout);
	longjmp(sim.fail, 1);
}

/* ---- running ---- */

static void dispatch(const struct event *ev)
{
	struct sim_qp *qp = ev->arg;

	if (ev->type == EV_PKT) {
		path_arrive(ev->arg);
		return;
	}
	if (ev->type == EV_GRO) {
		path_poll();
		return;
	}
	if (ev->epoch != qp->epoch)
		return;
	switch (ev->type) {
	case EV_TIMER:
		if (ev->at != qp->timer_ev)
			return;
		qp->timer_ev = ROVE_NO_DEADLINE;
		if (qp->timer_at == ROVE_NO_DEADLINE)
			return;
		if (sim.now < qp->timer_at) {
			rove_env_arm_timer(&qp->t, qp->timer_at);
			return;
		}
		qp->timer_at = ROVE_NO_DEADLINE;
		tqp_timer(qp);
		env_check(qp);
		if (qp->timer_at <= sim.now && !qp->gbn)
			sim_fail(qp, "a timer for what is past");
		break;
	case EV_ACK:
		if (!qp->ack_owed)
			break;
		env_run_deferred(qp);
		net_flush(qp);
		/* A timer that fires while it is moved comes too early. */
		if (!below(64))
			tqp_timer(qp);
		break;
	case EV_SEND:
		qp->send_owed = false;
		tqp_send(qp);
		break;
	case EV_USER:
		qp->user_owed = false;
		user_run(qp);
		break;
	case EV_RESUME:
		if (qp->t.state != ROVE_TQP_SQD)
			break;
		trace(qp, "resumes");
		qp->draining = false;
		qp->drained = false;
		/* SQD is where this may be changed. */
		if (qp->t.max_rd_atomic && rnd() & 1)
			qp->t.max_rd_atomic = between(1, qp->peer->t.resp.max_res);
		rove_tqp_resume(&qp->t, sim.now);
		net_flush(qp);
		env_schedule_user(qp, 1000);
		break;
	case EV_RTS:
		user_ready(qp);
		break;
	case EV_RECYCLE:
		user_recycle(qp);
		break;
	case EV_PKT:
	case EV_GRO:
		break;
	}
}

/* Until @done, or no event is left.  No progress for @limit ns is a hang. */
void sim_run_until(bool (*done)(void), u64 limit)
{
	struct event ev;

	sim.last_progress = sim.now;
	sim.events_since = 0;
	while (!done || !done()) {
		if (net_unsent)
			sim_fail(NULL, "packets were left behind in a call");
		if (!event_next(&ev)) {
			if (done)
				sim_fail(NULL, "deadlock: nothing is going to happen");
			return;
		}
		/* The machine stood still meanwhile: what is late happens now. */
		if (chance(sim.sc->jump)) {
			u64 pause = rnd() >> (34 + below(20));

			trace(NULL, "the clock jumps %llu ns", pause);
			sim.now += pause;
			sim.last_progress += pause;
		}
		sim.now = max(sim.now, ev.at);
		stats.events++;
		if (sim.now - sim.last_progress > limit ||
		    ++sim.events_since > HANG_EVENTS)
			sim_fail(NULL, "hang: no completion since %llu ns, %llu events",
				 sim.last_progress, sim.events_since);
		dispatch(&ev);
	}
}

static bool all_done(void)
{
	u32 i;

	if (sim.quota)
		return false;
	for (i = 0; i < sim.nqps; i++) {
		const struct sim_qp *qp = sim.qp[i];

		if (qp->posted != qp->done || qp->dead || qp->draining ||
		    qp->t.state != ROVE_TQP_RTS ||
		    qp->last_signaled != qp->posted ||
		    qp->recv_seq != qp->peer->r_done)
			return false;
	}
	return true;
}

void sim_end_round(void)
{
	event_clear();
	path_clear();
	while (sim.nqps)
		user_free(sim.qp[--sim.nqps]);
	mr_clear();
	user_free_srqs();
}

static void run_round(u64 quota)
{
	u32 pairs, i;
	u64 timeouts;

	sim.quota = quota;
	if (sim.sc->swarm) {
		sim.sc = swarm_draw(sim.sc);
		if (sim.sc->run) {
			sim.sc->run();
			return;
		}
		if (sim.sc->unreliable) {
			unreliable_round(sim.sc->unreliable, between(1, 3), quota);
			return;
		}
	}
	pairs = between(1, 5);
	sim.posting = true;
	for (i = 0; i < pairs; i++) {
		struct sim_qp *qp = user_new_pair();

		user_connect(qp);
		user_start(qp);
		user_start(qp->peer);
	}
	sim_run_until(all_done, HANG_NS);

	/* Nothing is owed: what timers and packets are left must come to rest. */
	sim.stopped = true;
	timeouts = stats.counter[ROVE_CNT_TIMEOUT];
	sim_run_until(NULL, HANG_NS);
	if (stats.counter[ROVE_CNT_TIMEOUT] != timeouts)
		sim_fail(NULL, "a timeout after all was complete");
	model_round_end();
}

/* What must happen, and what must not where nothing is lost. */
static const char *check_stats(const struct scenario *sc, u32 rounds)
{
	const u64 *c = stats.counter;

	if (sc->swarm)
		return NULL;
	if (!sc->run && c[ROVE_CNT_RETRANS] > stats.pkts / 2)
		return "more sent again than for the first time";
	if (sc->bulk && rounds > 2 && !stats.merged)
		return "nothing was merged";
	if (sc->bulk && rounds > 2 && !sc->same_id &&
	    (!stats.split || !stats.whole || stats.pkts < 2 * stats.trains))
		return "no super-packets to speak of";
	if (!sc->run && rounds > 50 && !stats.mixed)
		return "nothing was merged of several QPs";
	if (sc->drop || sc->corrupt || sc->reorder || sc->slow || sc->bad || sc->run)
		return NULL;
	if (c[ROVE_CNT_TIMEOUT])
		return "timeouts without loss";
	if (!sc->rnr && c[ROVE_CNT_RETRANS])
		return "retransmissions without loss";
	if (c[ROVE_CNT_OUT_OF_SEQ] || c[ROVE_CNT_SEQ_NAK_TX])
		return "sequence errors without loss";
	/* A last packet that did not ask for an acknowledgment is sent again. */
	if (!sc->rnr && !sc->dup && c[ROVE_CNT_DUP_REQUEST] > stats.pkts / 20)
		return "repeated requests without loss";
	if (!sc->rnr && c[ROVE_CNT_RNR_NAK_TX])
		return "RNR NAKs with receives posted";
	return NULL;
}

static double wall(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec * 1e-9;
}

/* One round, or all of a scenario that is not random; false when it failed. */
static bool try_round(const struct scenario *sc, u64 seed, u64 quota, int *checks)
{
	bool verbose = sim.verbose;

	memset(&sim, 0, sizeof(sim));
	sim.verbose = verbose;
	sim.sc = sc;
	sim.seed = seed;
	sim.rng = mix(seed) ^ mix(sc->name[0] * 256 + sc->name[1]);
	sim.now = NS_PER_S;
	if (setjmp(sim.fail))
		return false;
	if (sc->run)
		*checks = sc->run();
	else
		run_round(quota);
	return true;
}

/* One round that a string of bytes decides; it does not come back when that fails. */
void sim_by_input(const char *scenario, const u8 *input, size_t len)
{
	static const u8 nothing[1];
	const struct scenario *sc = scenarios;

	while (strcmp(sc->name, scenario))
		sc++;
	memset(&stats, 0, sizeof(stats));
	memset(&sim, 0, sizeof(sim));
	sim.sc = sc;
	sim.now = NS_PER_S;
	sim.input = len ? input : nothing;
	sim.input_end = sim.input + max(len, (size_t)1);
	if (sc->run)
		sc->run();
	else
		run_round(1 + len / 4);
	sim_end_round();
}

static bool run_scenario(const struct scenario *sc, u64 seed, u32 rounds, u32 num)
{
	u64 msgs = (u64)sc->msgs * scale / 100;
	double start = wall(), seconds;
	const char *bad = NULL;
	bool ok = true;
	int checks = 0;
	u32 r;

	memset(&stats, 0, sizeof(stats));
	if (!rounds)
		rounds = sc->run ? 1 : max(1U, (u32)(msgs / ROUND_MSGS));
	for (r = 0; r < rounds && ok; r++) {
		ok = try_round(sc, seed + r, min(msgs, (u64)ROUND_MSGS), &checks);
		sim_end_round();
		/* Who runs for hours may be stopped, and go on behind that. */
		if (ok && r % 1000 == 999) {
			printf("# seeds %llu to %llu are done, %llu messages\n", seed,
			       seed + r, stats.wrs);
			fflush(stdout);
		}
		if (time_limit && wall() - start > time_limit)
			rounds = r + 1;
	}
	seconds = wall() - start;
	if (rounds > 1)
		printf("# seeds %llu to %llu\n", seed, seed + r - 1);
	if (ok)
		bad = check_stats(sc, rounds);
	printf("%sok %u - %s", ok && !bad ? "" : "not ", num, sc->name);
	if (sc->run)
		printf(": %d checks", checks);
	else
		printf(": %llu messages, %.0f/s", stats.wrs, stats.wrs / seconds);
	printf("\n");
	if (bad)
		printf("# %s\n", bad);
	printf("# %.1f s; packets %llu, lost %llu, repeated %llu, reordered %llu, corrupted %llu; receives %llu, broken connections %llu, drains %llu\n",
	       seconds, stats.pkts, stats.dropped, stats.dupped, stats.reordered,
	       stats.corrupted, stats.recvs, stats.errors, stats.drains);
	printf("# sent in %llu super-packets: %llu arrived whole, %llu were split, %llu times they were merged, %llu had packets for several QPs\n",
	       stats.trains, stats.whole, stats.split, stats.merged, stats.mixed);
	printf("# timeouts %llu, retransmitted %llu, sequence NAKs %llu, RNR NAKs %llu, duplicates %llu, acks %llu\n",
	       stats.counter[ROVE_CNT_TIMEOUT], stats.counter[ROVE_CNT_RETRANS],
	       stats.counter[ROVE_CNT_SEQ_NAK_TX], stats.counter[ROVE_CNT_RNR_NAK_TX],
	       stats.counter[ROVE_CNT_DUP_REQUEST], stats.counter[ROVE_CNT_ACK_TX]);
	fflush(stdout);
	return ok && !bad;
}

static void usage(void)
{
	u32 i;

	printf("usage: %s [--scenario NAME] [--seed N|random] [--rounds N] [--scale PERCENT] [--seconds N] [--first-failure] [-v]\nscenarios:",
	       program);
	for (i = 0; i < ARRAY_SIZE(scenarios); i++)
		printf(" %s", scenarios[i].name);
	printf("\n");
	exit(2);
}

int main(int argc, char **argv)
{
	u32 rounds = 0, i, n = 0, failed = 0;
	const char *only = NULL;
	bool first_failure = false;
	u64 seed = 1, total = 0;
	double start = wall();

	program = argv[0];
	for (i = 1; i < (u32)argc; i++) {
		const char *arg = argv[i], *val = argv[i + 1];

		if (!strcmp(arg, "-v")) {
			sim.verbose = true;
			continue;
		}
		if (!strcmp(arg, "--first-failure")) {
			first_failure = true;
			continue;
		}
		if (!val)
			usage();
		i++;
		if (!strcmp(arg, "--scenario"))
			only = val;
		else if (!strcmp(arg, "--rounds"))
			rounds = atoi(val);
		else if (!strcmp(arg, "--scale"))
			scale = atoi(val);
		else if (!strcmp(arg, "--seconds"))
			time_limit = atoi(val);
		else if (!strcmp(arg, "--seed") && !strcmp(val, "random"))
			seed = mix(time(NULL)) >> 16;
		else if (!strcmp(arg, "--seed"))
			seed = strtoull(val, NULL, 0);
		else
			usage();
	}
	setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	printf("TAP version 13\n# seed %llu\n", seed);
	for (i = 0; i < ARRAY_SIZE(scenarios); i++) {
		if (only ? strcmp(only, scenarios[i].name) : scenarios[i].by_name)
			continue;
		if (!run_scenario(&scenarios[i], seed, rounds, ++n))
			failed++;
		if (failed && first_failure)
			break;
		total += stats.wrs;
	}
	if (!n)
		usage();
	printf("1..%u\n# %llu messages in %.1f s, %u of %u scenarios failed\n", n,
	       total, wall() - start, failed, n);
	return failed != 0;
}
