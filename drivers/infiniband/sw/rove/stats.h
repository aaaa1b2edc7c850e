/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * stats.h - a link's counters, kept per CPU
 *
 * The list is transport/counters.h; `rdma statistic show` prints it.
 */
#ifndef ROVE_STATS_H
#define ROVE_STATS_H

#include <rdma/ib_verbs.h>
#include "compat.h"
#include "transport/counters.h"

struct rdma_counter;
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
/*
 * What happens to a QP is counted where its @stats points: to the link's counters,
 * or to those that the QP is bound to.  ib_core adds the latter to the former.
 * QP locked.
 */
#define rove_qp_count_add(qp, sym, n) \
	this_cpu_add((qp)->stats->cnt[ROVE_CNT_##sym], n)
#define rove_qp_count(qp, sym)	rove_qp_count_add(qp, sym, 1)

/* ib_device_ops.alloc_hw_port_stats and .get_hw_stats; may sleep */
struct rdma_hw_stats *rove_alloc_hw_port_stats(struct ib_device *ibdev,
					       u32 port);
int rove_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats,
		      u32 port, int index);

/*
 * ib_device_ops: counters that QPs are bound to, by hand or automatically
 * (`rdma statistic qp`).  All sleep.
 */
struct rdma_hw_stats *rove_counter_alloc_stats(struct rdma_counter *counter);
int rove_counter_bind_qp(struct rdma_counter *counter, struct ib_qp *ibqp
			 ROVE_COUNTER_PORT);
int rove_counter_unbind_qp(struct ib_qp *ibqp ROVE_COUNTER_PORT);
int rove_counter_update_stats(struct rdma_counter *counter);
int rove_counter_dealloc(struct rdma_counter *counter);

#endif /* ROVE_STATS_H */
