/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * stats.h - a link's counters, kept per CPU
 *
 * The list is transport/counters.h; `rdma statistic show` prints it.
 */
#ifndef ROVE_STATS_H
#define ROVE_STATS_H

#include <rdma/ib_verbs.h>
#include "transport/counters.h"

struct rove_dev;

/**
 * struct rove_stats - counters of one CPU
 * @cnt: by enum rove_counter; only ever added to, with this_cpu_add()
 */
struct rove_stats {
	u64 cnt[ROVE_CNT_MAX];
};

#define rove_count_add(rdev, sym, n) \
	this_cpu_add((rdev)->stats->cnt[ROVE_CNT_##sym], n)
#define rove_count(rdev, sym)	rove_count_add(rdev, sym, 1)

/* One counter, summed over CPUs. */
u64 rove_counter(struct rove_dev *rdev, enum rove_counter counter);

/* ib_device_ops.alloc_hw_port_stats and .get_hw_stats; may sleep */
struct rdma_hw_stats *rove_alloc_hw_port_stats(struct ib_device *ibdev,
					       u32 port);
int rove_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats,
		      u32 port, int index);

#endif /* ROVE_STATS_H */
