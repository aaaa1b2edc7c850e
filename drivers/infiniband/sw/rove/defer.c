// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * defer.c - see defer.h
 */
#include <linux/interrupt.h>
#include <linux/ktime.h>
#include <linux/llist.h>
#include <linux/percpu.h>
#include "defer.h"
#include "doorbell.h"
#include "qp.h"

/* How long a CPU may be kept in one go: much less than a tick. */
#define DEFER_BUDGET_NS	(500 * NSEC_PER_USEC)

/**
 * struct rove_deferred - one CPU's part
 * @list: QPs, each referenced; added to from any context on this CPU
 * @todo: taken from @list, not yet worked off; the task's own
 * @task: works the list off
 */
struct rove_deferred {
	struct llist_head list;
	struct llist_node *todo;
	struct tasklet_struct task;
};

static DEFINE_PER_CPU(struct rove_deferred, rove_deferred);

/* Is there nothing to do?  Otherwise @todo is the first. */
static bool task_empty(struct rove_deferred *d)
{
	if (!d->todo)
		d->todo = llist_reverse_order(llist_del_all(&d->list));
	return !d->todo;
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
		rove_qp_lock(qp);
		rove_doorbell_run(qp);
		rove_qp_unlock(qp);
		rove_qp_put(qp);
		if (ktime_get_ns() >= end) {
			/* Others want softirq time, too. */
			tasklet_schedule(&d->task);
			return;
		}
	}
}

void rove_defer(struct rove_qp *qp)
{
	struct rove_deferred *d;

	if (test_and_set_bit(0, &qp->defer_queued))
		return;
	rove_qp_get(qp);
	d = get_cpu_ptr(&rove_deferred);
	llist_add(&qp->defer_node, &d->list);
	tasklet_schedule(&d->task);
	put_cpu_ptr(&rove_deferred);
}

int rove_defer_init(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		struct rove_deferred *d = per_cpu_ptr(&rove_deferred, cpu);

		init_llist_head(&d->list);
		tasklet_setup(&d->task, run_deferred);
	}
	return 0;
}

void rove_defer_exit(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		tasklet_kill(&per_cpu_ptr(&rove_deferred, cpu)->task);
}
