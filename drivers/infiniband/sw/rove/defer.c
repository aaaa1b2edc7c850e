// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * defer.c - see defer.h
 */
#include <linux/interrupt.h>
#include <linux/ktime.h>
#include <linux/llist.h>
#include <linux/percpu.h>
#include "compat.h"
#include "defer.h"
#include "doorbell.h"
#include "net.h"
#include "qp.h"

/* How long a CPU may be kept in one go: much less than a tick. */
#define DEFER_BUDGET_NS	(500 * NSEC_PER_USEC)
/*
 * Then programs have their turn for this long.  Softirqs that go on and on are
 * handed to ksoftirqd, which would have to share the CPU with a program that spins for
 * its completions, a tick for the one and a tick for the other.
 */
#define DEFER_REST_NS	(50 * NSEC_PER_USEC)

/**
 * struct rove_deferred - one CPU's part
 * @list: QPs, each referenced; added to from any context and CPU
 * @todo: taken from @list, not yet worked off; the task's own
 * @task: works the list off
 * @kick: has another CPU schedule @task here
 * @rest: schedules @task when programs have had their turn
 */
struct rove_deferred {
	struct llist_head list;
	struct llist_node *todo;
	struct tasklet_struct task;
	call_single_data_t kick;
	struct hrtimer rest;
};

static DEFINE_PER_CPU(struct rove_deferred, rove_deferred);

/* Is there nothing to do?  Otherwise @todo is the first. */
static bool task_empty(struct rove_deferred *d)
{
	if (!d->todo)
		d->todo = llist_reverse_order(llist_del_all(&d->list));
	return !d->todo;
}

static void look_after(struct rove_qp *qp)
{
	bool more;

	rove_qp_lock(qp);
	qp->deferring = true;
	more = rove_net_backlog(qp);
	qp->deferring = false;
	/* It may have moved since it was put in the list. */
	if (rove_at_home(qp))
		rove_doorbell_run(qp);
	else
		more = true;
	rove_qp_unlock(qp);
	/* Others come first. */
	if (more)
		rove_defer(qp);
}

static void run_deferred(struct tasklet_struct *task)
{
	struct rove_deferred *d = container_of(task, struct rove_deferred, task);
	u64 end = ktime_get_ns() + DEFER_BUDGET_NS;

	while (!task_empty(d)) {
		struct rove_qp *qp = llist_entry(d->todo, struct rove_qp,
						 defer_node);

		d->todo = d->todo->next;
		/* From here on it may be queued again. */
		clear_bit_unlock(0, &qp->defer_queued);
		smp_mb__after_atomic();
		look_after(qp);
		rove_qp_put(qp);
		if (ktime_get_ns() >= end) {
			hrtimer_start(&d->rest, ns_to_ktime(DEFER_REST_NS),
				      HRTIMER_MODE_REL_PINNED);
			return;
		}
	}
}

static enum hrtimer_restart rested(struct hrtimer *timer)
{
	struct rove_deferred *d = container_of(timer, struct rove_deferred, rest);

	tasklet_schedule(&d->task);
	return HRTIMER_NORESTART;
}

static void kicked(void *arg)
{
	struct rove_deferred *d = arg;

	tasklet_schedule(&d->task);
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
	if (!cpu_online(cpu))
		cpu = this_cpu;
	d = per_cpu_ptr(&rove_deferred, cpu);
	first = llist_add(&qp->defer_node, &d->list);
	if (cpu == this_cpu)
		tasklet_schedule(&d->task);
	else if (first)
		/* If the call is busy it has yet to look at the list. */
		smp_call_function_single_async(cpu, &d->kick);
	put_cpu();
}

/*
 * UC does not learn when its packets have arrived: after so long nothing is on its
 * way through this machine any more.
 */
#define SETTLE_NS	(10 * NSEC_PER_MSEC)

bool rove_may_move(const struct rove_qp *qp)
{
	if (!rove_tqp_idle(&qp->t))
		return false;
	return qp->t.service != ROVE_SVC_UC ||
	       ktime_get_ns() - qp->t.req.left_at > SETTLE_NS;
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
		tasklet_setup(&d->task, run_deferred);
		INIT_CSD(&d->kick, kicked, d);
		rove_hrtimer_setup(&d->rest, rested, CLOCK_MONOTONIC,
				   HRTIMER_MODE_REL_PINNED);
	}
	return 0;
}

void rove_defer_exit(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		struct rove_deferred *d = per_cpu_ptr(&rove_deferred, cpu);

		hrtimer_cancel(&d->rest);
		tasklet_kill(&d->task);
	}
}
