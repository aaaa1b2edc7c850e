// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * stats.c - a link's counters as ib_core wants them: names, and sums over CPUs
 */
#include "stats.h"
#include "dev.h"

static const struct rdma_stat_desc rove_counter_descs[] = {
#define X(sym, str) [ROVE_CNT_##sym].name = str,
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

u64 rove_counter(struct rove_dev *rdev, enum rove_counter counter)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(rdev->stats, cpu)->cnt[counter]);
	return sum;
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
