/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * av.h - address vectors: where packets go and how they are marked
 *
 * A connected QP has one.  A UD QP takes that of the address handle that a send
 * work request names, by number: the number may come from a program, which can
 * give any, so it is looked up, and counts only within the QP's protection
 * domain.
 */
#ifndef ROVE_AV_H
#define ROVE_AV_H

#include <linux/in6.h>
#include <rdma/ib_verbs.h>
#include "route.h"

struct rove_dev;

/**
 * struct rove_av - an address vector, ready for the transmit path
 * @ipv6: else IPv4
 * @ifindex: of the netdev that owns the source GID: the link's, or a VLAN's
 *	on top of it
 * @saddr: source address; IPv4 in saddr.s6_addr32[3]
 * @daddr: destination address; likewise
 * @tclass: traffic class: DSCP and ECN
 * @hop_limit: TTL
 * @flow_label: 20 bits; IPv6 sends it, the UDP source port follows from it
 * @attr: as it was set, for query; holds its sgid_attr; must stay last: a UD QP
 *	takes over what is before it
 */
struct rove_av {
	bool ipv6;
	int ifindex;
	struct in6_addr saddr;
	struct in6_addr daddr;
	u8 tclass;
	u8 hop_limit;
	u32 flow_label;
	struct rdma_ah_attr attr;
};

/**
 * struct rove_dest - what the number of an address handle stands for
 * @rcu: freed after a grace period
 * @serial: unlike the number never used again
 * @pd: whose QPs may send there
 * @lock: guards the fields down to @gone
 * @route: found last, for a QP that writes to many in turn
 * @gone: the address handle is destroyed: no route is kept any more
 * @av: constant
 */
struct rove_dest {
	struct rcu_head rcu;
	u64 serial;
	struct ib_pd *pd;
	spinlock_t lock;
	struct rove_route route;
	bool gone;
	struct rove_av av;
};

/**
 * struct rove_ah - an address handle
 * @ibah: what ib_core sees
 * @number: for send work requests; key in rove_dev.ahs
 * @dest: what that table has
 */
struct rove_ah {
	struct ib_ah ibah;
	u32 number;
	struct rove_dest *dest;
};

static inline struct rove_ah *to_rah(struct ib_ah *ibah)
{
	return container_of(ibah, struct rove_ah, ibah);
}

/**
 * rove_av_set() - fill an address vector
 * @rdev: the link
 * @av: zeroed, or set before
 * @attr: checked; must have a GRH with a sgid_attr that ib_core resolved
 *
 * Says in the log, rate-limited, what was wrong.
 * Context: may be atomic.
 * Return: 0, -EINVAL.
 */
int rove_av_set(struct rove_dev *rdev, struct rove_av *av,
		const struct rdma_ah_attr *attr);

/* Drop what an address vector holds; one never set is fine.  Context: any. */
void rove_av_clear(struct rove_av *av);

/* By the number of an address handle, or NULL; within rcu_read_lock(). */
struct rove_dest *rove_ah_find(struct rove_dev *rdev, u32 number);

void rove_ah_table_init(struct rove_dev *rdev);
void rove_ah_table_destroy(struct rove_dev *rdev);

/* ib_device_ops; none sleeps (hazard 56) */
int rove_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init,
		   struct ib_udata *udata);
int rove_query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr);
int rove_destroy_ah(struct ib_ah *ibah, u32 flags);

#endif /* ROVE_AV_H */
