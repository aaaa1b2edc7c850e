// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * stats.c - a link's counters as ib_core wants them: names, and sums over CPUs
 */
#include <rdma/ib_verbs.h>
#include <rdma/rdma_counter.h>
#include "dev.h"
#include "qp.h"
#include "stats.h"

static const struct rdma_stat_desc rove_counter_descs[] = {
#define X(sym, str)	[ROVE_CNT_##sym].name = str,
	ROVE_COUNTERS(X)
#undef X
};

struct rdma_hw_stats *rove_alloc_hw_port_stats(struct ib_device *ibdev,
					       u32 port)
{
	BUILD_BUG_ON(ARRAY_SIZE(rove_counter_descs) != ROVE_CNT_MAX);

	return rdma_alloc_hw_stats_struct(rove_counter_descs, ROVE_CNT_MAX,
					  RDMA_HW_STATS_DEFAULT_LIFESPAN);
}

static u64 sum(const struct rove_stats __percpu *stats,
	       enum rove_counter counter)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(stats, cpu)->cnt[counter]);
	return sum;
}

u64 rove_counter(struct rove_dev *rdev, enum rove_counter counter)
{
	return sum(rdev->stats, counter);
}

int rove_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats,
		      u32 port, int index)
{
	int i;

	if (!port || !stats)
		return -EINVAL;

	for (i = 0; i < ROVE_CNT_MAX; i++)
		stats->value[i] = rove_counter(to_rdev(ibdev), i);
	return ROVE_CNT_MAX;
}

/**
 * struct rove_qp_counter - counters that QPs are bound to
 * @stats: likewise kept per CPU
 *
 * In rove_dev.counters by rdma_counter.id.
 */
struct rove_qp_counter {
	struct rove_stats __percpu *stats;
};

struct rdma_hw_stats *rove_counter_alloc_stats(struct rdma_counter *counter)
{
	return rove_alloc_hw_port_stats(counter->device, counter->port);
}

static struct rove_qp_counter *new_counter(struct rove_dev *rdev, u32 *id)
{
	struct rove_qp_counter *c = kzalloc(sizeof(*c), ROVE_GFP_OBJECT);

	if (!c)
		return NULL;
	c->stats = alloc_percpu_gfp(struct rove_stats, ROVE_GFP_OBJECT);
	if (c->stats && !xa_alloc(&rdev->counters, id, c, xa_limit_31b,
				  ROVE_GFP_OBJECT))
		return c;
	free_percpu(c->stats);
	kfree(c);
	return NULL;
}

static void count_in(struct rove_qp *qp, struct rove_stats __percpu *stats)
{
	rove_qp_lock(qp);
	qp->stats = stats;
	rove_qp_unlock(qp);
}

int rove_counter_bind_qp(struct rdma_counter *counter, struct ib_qp *ibqp
			 ROVE_COUNTER_PORT)
{
	struct rove_dev *rdev = to_rdev(ibqp->device);
	struct rove_qp_counter *c;

	/* An id tells that there are others bound already. */
	c = counter->id ? xa_load(&rdev->counters, counter->id) :
			  new_counter(rdev, &counter->id);
	if (!c)
		return -ENOMEM;
	count_in(to_rqp(ibqp), c->stats);
	ibqp->counter = counter;
	return 0;
}

int rove_counter_unbind_qp(struct ib_qp *ibqp ROVE_COUNTER_PORT)
{
	count_in(to_rqp(ibqp), to_rdev(ibqp->device)->stats);
	ibqp->counter = NULL;
	return 0;
}

int rove_counter_update_stats(struct rdma_counter *counter)
{
	struct rove_qp_counter *c = xa_load(&to_rdev(counter->device)->counters,
					    counter->id);
	int i;

	if (!c)
		return -EINVAL;
	for (i = 0; i < ROVE_CNT_MAX; i++)
		counter->stats->value[i] = sum(c->stats, i);
	return 0;
}

/*
 * No QP is bound any more, and who counts has the QP locked: none does.  Some kernels still
 * let others read it, with the lock held.
 */
int rove_counter_dealloc(struct rdma_counter *counter)
{
	struct rove_qp_counter *c;

	mutex_lock(&counter->lock);
	c = xa_erase(&to_rdev(counter->device)->counters, counter->id);
	mutex_unlock(&counter->lock);
	if (c) {
		free_percpu(c->stats);
		kfree(c);
	}
	return 0;
}
