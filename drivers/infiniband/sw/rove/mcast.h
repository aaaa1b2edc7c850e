/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * mcast.h - multicast groups: the QPs that have attached to each, and what the
 * netdev lets through for them
 *
 * The receive path finds a group and walks over its QPs under RCU.  Attaching and
 * detaching exclude each other; a group is known once the netdev has accepted its
 * address, not before.
 */
#ifndef ROVE_MCAST_H
#define ROVE_MCAST_H

#include <linux/in6.h>
#include <linux/list.h>
#include <linux/rhashtable.h>
#include <rdma/ib_verbs.h>

struct in_device;
struct inet6_dev;
struct rove_dev;
struct rove_qp;

/**
 * struct rove_group - a multicast group with at least one QP
 * @node: in rove_dev.groups; RCU
 * @addr: its address; IPv4 mapped into IPv6, as GIDs are
 * @members: struct rove_member; RCU
 * @num: of them
 * @list: in rove_dev.group_list
 * @in_dev: IPv4 of the netdev that has joined, referenced; or NULL
 * @in6_dev: the same of IPv6
 * @rcu: freed after a grace period
 */
struct rove_group {
	struct rhash_head node;
	struct in6_addr addr;
	struct list_head members;
	u32 num;
	struct list_head list;
	struct in_device *in_dev;
	struct inet6_dev *in6_dev;
	struct rcu_head rcu;
};

/**
 * struct rove_member - a QP in a group
 * @list: in rove_group.members
 * @qp: it is detached before it is destroyed
 * @times: that it has attached. To ib_core a group is an address and a LID, which Ethernet
 *	has not, so that one QP may attach to one address often; each time counts as a use of
 *	the QP, which cannot be destroyed before as many detaches have succeeded.
 * @rcu: freed after a grace period
 */
struct rove_member {
	struct list_head list;
	struct rove_qp *qp;
	u32 times;
	struct rcu_head rcu;
};

/* The group of this address, or NULL; within rcu_read_lock(). */
struct rove_group *rove_group_find(struct rove_dev *rdev,
				   const struct in6_addr *addr);

/*
 * Another netdev than before may be what hears the link's packets, or the same has got
 * its IP anew: follow with all groups, soon.  Context: any, the link registered or not.
 */
void rove_groups_listener_changed(struct rove_dev *rdev);

int rove_group_table_init(struct rove_dev *rdev);
void rove_group_table_destroy(struct rove_dev *rdev);

/* ib_device_ops; may sleep, take RTNL */
int rove_attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid);
int rove_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid);

#endif /* ROVE_MCAST_H */
