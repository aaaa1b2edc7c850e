// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * defer.c - see defer.h
 */
#include <linux/interrupt.h>
#include <linux/jiffies.h>
#include <linux/kernel_stat.h>
#include <linux/ktime.h>
#include <linux/llist.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/smpboot.h>
#include "compat.h"
#include "defer.h"
#include "doorbell.h"
#include "net.h"
#include "qp.h"

/* How long softirqs may be kept off in one go: much less than a tick. */
#define DEFER_BUDGET_NS	(500 * NSEC_PER_USEC)
/* How often it is decided whether the tasklet or the thread works. */
#define DEFER_PERIOD_NS	NSEC_PER_MSEC
/*
 * The thread comes before a program that spins for its completions, but leaves others a tenth of
 * its CPU: the kernel's own threads of that CPU can go to no other, and RCU may wait for them.
 * (With a thirtieth bulk is 3 to 9 % faster in an emulated guest, but what a program does
 * meanwhile takes too long: perftest cannot tell the CPU's frequency, and says 0.00 MB/s.)
 */
#define DEFER_NICE	(-10)
/* There no tasklet can be scheduled on another CPU, but its thread can be woken. */
#define ALWAYS_THREADED	IS_ENABLED(CONFIG_PREEMPT_RT)

/**
 * struct rove_deferred - one CPU's part
 * @list: QPs, each referenced; added to from any context and CPU
 * @todo: taken from @list, not yet worked off; of who works
 * @since: when the current period began, ns
 * @busy: of it spent at work, ns
 * @threaded: the thread works, not the tasklet; changed by who works
 * @usable: there is a thread, and it is not parked
 * @thread: works while there is much
 * @task: works while there is little to do
 * @kick: has another CPU schedule @task here
 * @kicked: bit 0: @kick is under way, and of no other's use
 * @timers: which run of this CPU's timers it is, of all that there have been
 * @timers_since: when the first of ours in it came, ns
 *
 * Both work with softirqs off on this CPU, so never at the same time.  (While it was away
 * another may have taken the tasklet over: that is waited for.)
 */
struct rove_deferred {
	struct llist_head list;
	struct llist_node *todo;
	u64 since;
	u64 busy;
	bool threaded;
	bool usable;
	struct task_struct *thread;
	struct tasklet_struct task;
	call_single_data_t kick;
	unsigned long kicked;
	unsigned int timers;
	u64 timers_since;
};

static DEFINE_PER_CPU(struct rove_deferred, rove_deferred);

/* Is there nothing to do?  Otherwise @todo is the first. */
static bool task_empty(struct rove_deferred *d)
{
	if (!d->todo)
		d->todo = llist_reverse_order(llist_del_all(&d->list));
	return !d->todo;
}

/* True: it has sent what this machine is to receive. */
static bool look_after(struct rove_qp *qp)
{
	bool more, sent;

	rove_qp_lock(qp);
	qp->no_caller = true;
	qp->deferring = true;
	more = rove_net_backlog(qp);
	qp->deferring = false;
	if (unlikely(qp->timer_due))
		rove_qp_timer_due(qp, ktime_get_ns());
	/* It may have moved since it was put in the list. */
	if (rove_at_home(qp))
		rove_doorbell_run(qp);
	else
		more = true;
	sent = qp->local_peer && !skb_queue_empty(&qp->tx);
	rove_qp_unlock(qp);
	/* Others come first. */
	if (more)
		rove_defer(qp);
	return sent;
}

/*
 * The tasklet is for what comes now and then, the thread for what goes on and on:
 * more than a quarter of the time, and until it is less than an eighth.
 */
static void choose(struct rove_deferred *d, u64 spent, u64 now)
{
	u64 period = now - d->since;

	d->busy += spent;
	if (period < DEFER_PERIOD_NS)
		return;
	/* Another CPU's tasklet that was taken over must not work beside its thread. */
	WRITE_ONCE(d->threaded, d->usable && d == this_cpu_ptr(&rove_deferred) &&
		   (ALWAYS_THREADED ||
		    d->busy > (d->threaded ? period / 8 : period / 4)));
	d->since = now;
	d->busy = 0;
}

/* Softirqs are off.  True: there is more to do. */
static bool work(struct rove_deferred *d)
{
	u64 begin = ktime_get_ns(), now = begin;
	bool sent = false;

	/*
	 * What was sent is better received now, while it is in the CPU's cache, than when
	 * much more has been sent.
	 */
	while (!task_empty(d) && now < begin + DEFER_BUDGET_NS && !sent) {
		struct rove_qp *qp = llist_entry(d->todo, struct rove_qp,
						 defer_node);

		d->todo = d->todo->next;
		clear_bit_unlock(0, &qp->defer_queued);
		/* From here on it may be queued again: look after that. */
		smp_mb__after_atomic();
		sent = look_after(qp);
		rove_qp_put(qp);
		now = ktime_get_ns();
	}
	choose(d, now - begin, now);
	/* Pairs with rove_defer(): it sees who works, or we see what it adds. */
	smp_mb();
	return !task_empty(d);
}

/* Have it done.  On the CPU that @d is of. */
static void go_on(struct rove_deferred *d)
{
	if (READ_ONCE(d->threaded))
		wake_up_process(d->thread);
	else
		tasklet_schedule(&d->task);
}

static void run_tasklet(struct tasklet_struct *task)
{
	struct rove_deferred *d = container_of(task, struct rove_deferred, task);

	if (d->threaded || work(d))
		go_on(d);
}

static int thread_should_run(unsigned int cpu)
{
	struct rove_deferred *d = per_cpu_ptr(&rove_deferred, cpu);

	return d->threaded && (d->todo || !llist_empty(&d->list));
}

static void run_thread(unsigned int cpu)
{
	struct rove_deferred *d = per_cpu_ptr(&rove_deferred, cpu);

	local_bh_disable();
	if (work(d))
		go_on(d);
	local_bh_enable();
	cond_resched();
}

static void thread_unpark(unsigned int cpu)
{
	struct rove_deferred *d = per_cpu_ptr(&rove_deferred, cpu);

	/* Who has taken the tasklet over while the CPU was away may be at work still. */
	tasklet_disable(&d->task);
	WRITE_ONCE(d->usable, true);
	WRITE_ONCE(d->threaded, ALWAYS_THREADED);
	tasklet_enable(&d->task);
}

static void thread_setup(unsigned int cpu)
{
	set_user_nice(current, DEFER_NICE);
	thread_unpark(cpu);
}

/* The CPU is about to go; its tasklets go to another. */
static void thread_park(unsigned int cpu)
{
	struct rove_deferred *d = per_cpu_ptr(&rove_deferred, cpu);

	local_bh_disable();
	WRITE_ONCE(d->usable, false);
	WRITE_ONCE(d->threaded, false);
	/* Pairs with rove_defer(), as in work(). */
	smp_mb();
	tasklet_schedule(&d->task);
	rove_net_tx_idle();
	local_bh_enable();
}

static struct smp_hotplug_thread threads = {
	.store = &rove_deferred.thread,
	.thread_should_run = thread_should_run,
	.thread_fn = run_thread,
	.setup = thread_setup,
	.park = thread_park,
	.unpark = thread_unpark,
	.thread_comm = "rove/%u",
};

static void kicked(void *arg)
{
	struct rove_deferred *d = arg;

	clear_bit(0, &d->kicked);
	/* Who found it set has added to the list what is looked at from here on. */
	smp_mb__after_atomic();
	go_on(d);
}

/* Can work be given to @cpu, of which @d is? */
static bool takes_work(const struct rove_deferred *d, int cpu)
{
	return cpu_online(cpu) && (!ALWAYS_THREADED || READ_ONCE(d->threaded));
}

void rove_defer(struct rove_qp *qp)
{
	struct rove_deferred *d;
	int this_cpu, cpu;
	bool first;

	if (test_and_set_bit(0, &qp->defer_queued))
		return;
	rove_qp_get(qp);
	this_cpu = get_cpu();
	cpu = READ_ONCE(qp->cpu);
	d = per_cpu_ptr(&rove_deferred, cpu);
	if (!takes_work(d, cpu)) {
		cpu = this_cpu;
		d = per_cpu_ptr(&rove_deferred, cpu);
	}
	first = llist_add(&qp->defer_node, &d->list);
	if (cpu == this_cpu)
		go_on(d);
	else if (first && READ_ONCE(d->threaded))
		wake_up_process(d->thread);
	else if (first && !test_and_set_bit(0, &d->kicked))
		/* That two find the list empty is no excuse: one at a time may call. */
		smp_call_function_single_async(cpu, &d->kick);
	put_cpu();
}

bool rove_timers_late(u64 now)
{
	struct rove_deferred *d = this_cpu_ptr(&rove_deferred);
	unsigned int timers = kstat_softirqs_cpu(HRTIMER_SOFTIRQ, smp_processor_id());

	if (d->timers != timers) {
		d->timers = timers;
		d->timers_since = now;
	}
	return now - d->timers_since > DEFER_BUDGET_NS;
}

/*
 * After so long nothing is on its way through this machine any more, of which nobody says
 * that it has arrived.
 */
#define SETTLE_MS	10

bool rove_may_move(const struct rove_qp *qp)
{
	return rove_tqp_idle(&qp->t) &&
	       time_after(jiffies, qp->unacked_at + msecs_to_jiffies(SETTLE_MS));
}

bool rove_may_leave(const struct rove_qp *qp)
{
	return rove_tqp_idle(&qp->t) && qp->local_peer &&
	       (qp->t.service == ROVE_SVC_RC || qp->t.service == ROVE_SVC_XRC) &&
	       /* One that is being destroyed has given its account back. */
	       !qp->dead && rove_flow_empty(qp->flow);
}

bool rove_at_home(struct rove_qp *qp)
{
	int cpu = smp_processor_id();

	if (qp->cpu != cpu && (rove_may_move(qp) || !cpu_online(qp->cpu)))
		WRITE_ONCE(qp->cpu, cpu);
	return qp->cpu == cpu;
}

int rove_defer_init(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		struct rove_deferred *d = per_cpu_ptr(&rove_deferred, cpu);

		init_llist_head(&d->list);
		tasklet_setup(&d->task, run_tasklet);
		INIT_CSD(&d->kick, kicked, d);
	}
	return smpboot_register_percpu_thread(&threads);
}

void rove_defer_exit(void)
{
	int cpu;

	/* A tasklet that comes late has nothing to do, and no thread to wake. */
	for_each_possible_cpu(cpu) {
		struct rove_deferred *d = per_cpu_ptr(&rove_deferred, cpu);

		WRITE_ONCE(d->usable, false);
		WRITE_ONCE(d->threaded, false);
	}
	smpboot_unregister_percpu_thread(&threads);
	for_each_possible_cpu(cpu)
		tasklet_kill(&per_cpu_ptr(&rove_deferred, cpu)->task);
}
