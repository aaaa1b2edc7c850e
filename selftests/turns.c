// SPDX-License-Identifier: GPL-2.0
/*
 * turns.c - programs that take turns: one asks, the other answers
 *
 *	turns DEV-A GID-INDEX-A DEV-B GID-INDEX-B
 *
 * Where each message has been answered soon its acknowledgment waits for the next answer, to
 * share a super-packet with it.  It may not wait for ever, nor be forgotten.  And one that
 * takes turns with itself: it posts a few messages, and waits for them.
 */
#include <sched.h>
#include <time.h>

#include "pair.h"

#define SIZE	64
#define LEARN	64	/* turns after which it is known that they are taken */
#define RELEARN	256	/* likewise where that has proved wrong before, many times */

static char *mem;
static struct ibv_mr *mr[2];

static struct {
	int sends, recvs;
} seen[2];

static void look(void)
{
	struct end *e[2] = { &a, &b };
	struct ibv_wc wc;
	int i;

	for (i = 0; i < 2; i++) {
		if (!e[i]->cq || ibv_poll_cq(e[i]->cq, 1, &wc) != 1)
			continue;
		CHECK(wc.status == IBV_WC_SUCCESS);
		*(wc.opcode == IBV_WC_RECV ? &seen[i].recvs : &seen[i].sends) += 1;
	}
}

/* Until @n have been seen: false if that takes too long. */
static bool wait_for(const int *count, int n)
{
	uint64_t end = now_ms() + 30000;

	while (good && *count < n && now_ms() < end)
		look();
	return *count >= n;
}

static void say(int i)
{
	struct end *e = i ? &b : &a;
	struct ibv_sge sge = { (uintptr_t)mem, SIZE, mr[i]->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	}, *bad;

	CHECK(!post_recv(i ? &a : &b, mem + SIZE, SIZE, mr[!i]->lkey));
	CHECK(!ibv_post_send(e->qp, &wr, &bad));
}

static void ask(void)
{
	say(0);
	CHECK(wait_for(&seen[1].recvs, seen[1].recvs + 1));
}

static void take_turns(int n)
{
	while (good && n--) {
		ask();
		say(1);
		CHECK(wait_for(&seen[0].recvs, seen[0].recvs + 1));
	}
}

/* All that was asked has been acknowledged. */
static bool acknowledged(void)
{
	return wait_for(&seen[0].sends, seen[1].recvs);
}

/* Both ends' counters. */
static uint64_t counted(const char *name)
{
	return hw_counter(ibv_get_device_name(a.ctx->device), name) +
	       hw_counter(ibv_get_device_name(b.ctx->device), name);
}

/* What is sent again is acknowledged in the end, whatever was forgotten. */
static uint64_t again(void)
{
	return counted("loss_probes") + counted("duplicate_request") +
	       counted("retransmitted_bursts");
}

static void t_shared(void)
{
	const char *slow = getenv("ROVE_SLOW");
	int try, buffers, shared = 0, messages = 100;

	/*
	 * Not always: who is kept from its CPU answers late, and has to learn anew, for longer
	 * than at first.
	 */
	for (try = 0; good && try < 50 && shared < 3; try++) {
		take_turns(RELEARN);
		buffers = -counted("sent_super_packets");
		take_turns(messages / 2);
		buffers += counted("sent_super_packets");
		shared += buffers < messages * 3 / 2;
	}
	printf("# in %d of %d tries most of %d messages shared\n", shared, try, messages);
	/* On a slow kernel it is always late. */
	CHECK((slow && atoi(slow) > 1) || shared == 3);
	CHECK(acknowledged() && wait_for(&seen[1].sends, seen[0].recvs));
}

static void t_unanswered(void)
{
	uint64_t start, before, least = UINT64_MAX;
	int try, once = 0;

	/* A machine that is busy is late for some, which are then sent again. */
	for (try = 0; good && try < 50 && once < 5; try++) {
		take_turns(LEARN);
		before = again();
		start = now_ms();
		ask();
		CHECK(acknowledged());
		start = now_ms() - start;
		least = start < least ? start : least;
		once += again() == before;
	}
	printf("# acknowledged within %d ms; %d of %d sent once\n", (int)least, once, try);
	CHECK(least < 50 && once == 5);
}

/* The answer fails where it is posted, and takes the QP with it. */
static void t_failing(void)
{
	struct ibv_sge sge = { (uintptr_t)mem, SIZE, mr[1]->lkey ^ 0x100 };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;
	struct ibv_wc wc;
	int n;

	take_turns(LEARN);
	ask();
	CHECK(!ibv_post_send(b.qp, &wr, &bad));
	do {
		CHECK(done(b.cq, &wc) >= 0);
	} while (wc.status == IBV_WC_SUCCESS);
	CHECK(wc.status == IBV_WC_LOC_PROT_ERR);
	for (n = seen[0].sends; n < seen[1].recvs; n++)
		CHECK(done(a.cq, NULL) == IBV_WC_SUCCESS);
}

/* Both ask at once, and ask again when they have the other's message and their own is there. */
static void t_both(void)
{
	uint64_t before = again(), start = now_ms();
	int i;

	for (i = 1; good && i <= 500; i++) {
		say(0);
		say(1);
		CHECK(wait_for(&seen[0].recvs, i) && wait_for(&seen[1].recvs, i) &&
		      wait_for(&seen[0].sends, i) && wait_for(&seen[1].sends, i));
	}
	printf("# 500 rounds in %d ms\n", (int)(now_ms() - start));
	/* a busy machine sends some of them again */
	CHECK(again() < before + 100);
}

/*
 * Who may not answer any more acknowledges all the same; nothing is sent again for it, but
 * where this machine was kept from it for some milliseconds.
 */
static void t_drained(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD };
	uint64_t before, after;
	int tries = 5;

	do {
		take_turns(LEARN);
		before = again();
		ask();
		CHECK(!ibv_modify_qp(b.qp, &attr, IBV_QP_STATE));
		CHECK(acknowledged());
		after = again();
		memset(seen, 0, sizeof(seen));
		pair_close();
		pair_open();
	} while (after > before && --tries);
	CHECK(tries);
}

static void t_gone(void)
{
	take_turns(LEARN);
	ask();
	CHECK(!ibv_destroy_qp(b.qp));
	CHECK(acknowledged());
	b.qp = new_qp(&b);
}

/* All of @n WRITEs, no more than @most of them at a time; each lot waited for if @wait. */
static void write_all(int n, int most, bool wait)
{
	struct ibv_sge sge = { (uintptr_t)mem, SIZE, mr[0]->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)mem + SIZE, mr[1]->rkey },
	}, *bad;
	int posted = 0, first = seen[0].sends;

	while (good && posted < n) {
		int under_way = posted - (seen[0].sends - first);

		while (posted < n && under_way++ < most) {
			CHECK(!ibv_post_send(a.qp, &wr, &bad));
			posted++;
		}
		CHECK(wait_for(&seen[0].sends, wait ? first + posted : seen[0].sends + 1));
	}
	CHECK(wait_for(&seen[0].sends, first + n));
}

/*
 * Both ends on one CPU: nothing is under way when the program posts.  After it has streamed,
 * a timer looks for posts; who posts two and waits would have to wait for that each time, and
 * makes a call instead.  (That the timer looks as well, where two messages take longer than
 * it waits, does no harm.)
 */
static void t_few(void)
{
	cpu_set_t before, one;
	uint64_t looks, calls;
	int n = 500;

	CHECK(!sched_getaffinity(0, sizeof(before), &before));
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	CHECK(!sched_setaffinity(0, sizeof(one), &one));
	write_all(20000, DEPTH, false);
	looks = counted("sq_ring_polls");
	calls = counted("sq_wakeup_calls");
	write_all(2 * n, 2, true);
	looks = counted("sq_ring_polls") - looks;
	calls = counted("sq_wakeup_calls") - calls;
	CHECK(!sched_setaffinity(0, sizeof(before), &before));
	printf("# %d times two messages, %d calls, %d looks of a timer\n",
	       n, (int)calls, (int)looks);
	CHECK((int)calls > n / 2);
}

static void run_anew(const char *name, void (*fn)(void))
{
	memset(seen, 0, sizeof(seen));
	run(name, fn);
}

int main(int argc, char **argv)
{
	if (argc != 5)
		return 2;
	end_open(&a, argv[1], argv[2]);
	end_open(&b, argv[3], argv[4]);
	mem = calloc(2, SIZE);
	mr[0] = mem ? ibv_reg_mr(a.pd, mem, 2 * SIZE, ALL) : NULL;
	mr[1] = mem ? ibv_reg_mr(b.pd, mem, 2 * SIZE, ALL) : NULL;
	if (!mr[0] || !mr[1])
		die("memory");
	run_anew("turns: an acknowledgment and an answer share a buffer", t_shared);
	run_anew("turns: no answer: the acknowledgment comes all the same, and soon", t_unanswered);
	run_anew("turns: likewise where no answer may be sent", t_drained);
	run_anew("turns: likewise where the answer fails", t_failing);
	run_anew("turns: likewise where the QP goes", t_gone);
	run_anew("both at once", t_both);
	run_anew("two at a time, each waited for: by calls, not when a timer looks", t_few);
	printf("1..%d\n", count);
	return failed > 0;
}
