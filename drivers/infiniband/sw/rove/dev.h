/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * dev.h - a link: an ib_device on top of a netdev (device.c)
 *
 * Born by `rdma link add` (link.c), known to the receive path through its
 * namespace's table (netns.h) and gone by `rdma link delete`, with its netdev, with its
 * namespace or with the module.
 */
#ifndef ROVE_DEV_H
#define ROVE_DEV_H

#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/rhashtable.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>
#include "refuse.h"
#include "stats.h"

struct rove_net;

/**
 * struct rove_dev - one link
 * @ibdev: what ib_core sees; must stay first (ib_alloc_device)
 * @ndev: the netdev it is bound to; referenced until .dealloc_driver
 * @ndev_tracker: that reference's, for kernels that say who keeps a netdev from going
 * @rnet: the netdev's namespace; holds the UDP sockets
 * @node: in @rnet's table of links, by ifindex; RCU
 * @linked: @node is in that table; set by rove_net_add()
 * @ndev_gone: NETDEV_UNREGISTER was seen; under RTNL
 * @port_active: state of the port last reported by an event; under RTNL
 * @speed: of the netdev, Mb/s; rove_dev_update_speed()
 * @rescan: has ib_core look for new addresses; holds a reference on @ibdev while it
 *	is queued; link.c
 * @qps: every QP by number; RCU lookup; qp.c
 * @regions: what keys stand for, by key >> 8; RCU lookup; region.c
 * @ahs: every address handle by number; RCU lookup; av.c
 * @next_ah: where to look for a free number; guarded by @ahs's lock
 * @groups: multicast groups by address; RCU lookup; mcast.c
 * @group_lock: guards them against other writers; RTNL nests inside
 * @group_list: the same groups
 * @join_again: has them follow the link's netdev into a bridge or a bond, and out; holds
 *	a reference on @ibdev while it is queued
 * @srqs: XRC SRQs by number; RCU lookup; xrc.c
 * @next_srq: where to look for a free number; xrc.c
 * @qp_lock: guards @qp_list
 * @qp_list: every QP, for tear-down
 * @num_qp: objects alive, against the limits that query_device tells
 * @num_cq: likewise
 * @num_mr: likewise
 * @num_mw: likewise
 * @num_pd: likewise
 * @num_ah: likewise
 * @num_group: likewise
 * @num_srq: likewise
 * @stats: per-CPU counters
 * @counters: those that QPs can be bound to; stats.c
 * @dying: no new QP; set before tear-down flushes the old ones, and cleared
 *	when the ib_device comes back in another namespace (device.c)
 */
struct rove_dev {
	struct ib_device ibdev;
	struct net_device *ndev;
	netdevice_tracker ndev_tracker;
	struct rove_net *rnet;
	struct hlist_node node;
	bool linked;
	bool ndev_gone;
	bool port_active;
	u32 speed;
	struct work_struct rescan;
	struct rhashtable qps;
	struct rhashtable regions;
	struct xarray ahs;
	u32 next_ah;
	struct rhashtable groups;
	struct mutex group_lock;
	struct list_head group_list;
	struct work_struct join_again;
	struct xarray srqs;
	u32 next_srq;
	spinlock_t qp_lock;
	struct list_head qp_list;
	atomic_t num_qp;
	atomic_t num_cq;
	atomic_t num_mr;
	atomic_t num_mw;
	atomic_t num_pd;
	atomic_t num_ah;
	atomic_t num_group;
	atomic_t num_srq;
	struct rove_stats __percpu *stats;
	struct xarray counters;
	bool dying;
};

static inline struct rove_dev *to_rdev(struct ib_device *ibdev)
{
	return container_of(ibdev, struct rove_dev, ibdev);
}

/**
 * struct rove_pd - a protection domain
 * @ibpd: what ib_core sees
 * @lock: guards all below; taken outside any QP's lock
 * @ud_qps: the datagram QPs that programs have in it, through &rove_qp.ud_node
 * @rest_sent: who holds it is about to end, and what its programs had posted was sent
 */
struct rove_pd {
	struct ib_pd ibpd;
	struct mutex lock;
	struct list_head ud_qps;
	bool rest_sent;
};

static inline struct rove_pd *to_rpd(struct ib_pd *ibpd)
{
	return container_of(ibpd, struct rove_pd, ibpd);
}

struct rove_ucontext {
	struct ib_ucontext ibuc;
};

/*
 * Memory for what a program creates: charged to its control group, and where there is
 * none the program gets ENOMEM; nobody is killed to make room.
 */
#define ROVE_GFP_OBJECT		(GFP_KERNEL_ACCOUNT | __GFP_NOWARN | __GFP_RETRY_MAYFAIL)

/* Limits: what query_device tells, and what is enforced. */
#define ROVE_MAX_QP		1048576
#define ROVE_MAX_CQ		1048576
#define ROVE_MAX_MR		1048576
#define ROVE_MAX_MW		1048576
#define ROVE_MAX_PD		1048576
#define ROVE_MAX_AH		1048576
#define ROVE_MAX_SRQ		1048576
#define ROVE_MAX_SRQ_WR		1048576
#define ROVE_MAX_GROUP		8192
#define ROVE_MAX_GROUP_QPS	256
#define ROVE_MAX_QP_WR		1048576
#define ROVE_MAX_SGE		32
#define ROVE_MAX_INLINE		1024
#define ROVE_MAX_CQE		131072U
/* A process is a region (on demand); others are as large as its memory. */
#define ROVE_MAX_MR_SIZE	U64_MAX
#define ROVE_GID_TBL_LEN	1024
/* No OUI of anybody's; rdma_rxe says the same. */
#define ROVE_VENDOR_ID		0xffffff

/**
 * rove_dev_charge() - count an object against its limit
 * @rdev: the link
 * @num: one of the num_* of @rdev
 * @max: its ROVE_MAX_*
 * @what: what they are, for the log
 *
 * Return: 0, or -ENOMEM when there are as many as there may be.
 */
static inline int rove_dev_charge(struct rove_dev *rdev, atomic_t *num, int max,
				  const char *what)
{
	if (likely(atomic_add_unless(num, 1, max)))
		return 0;
	rove_refuse(&rdev->ibdev, "there are %d %s, as many as there may be", max, what);
	return -ENOMEM;
}

static inline void rove_dev_uncharge(atomic_t *num)
{
	atomic_dec(num);
}

/**
 * rove_dev_alloc() - a link that nobody knows yet
 * @ndev: its netdev; a reference is taken
 * @net: the namespace that it is born in, where the kernel lets it
 *
 * ib_dealloc_device() frees it and, by .dealloc_driver, all that it holds.
 *
 * Context: may sleep.
 * Return: the link, or NULL for want of memory.
 */
struct rove_dev *rove_dev_alloc(struct net_device *ndev, struct net *net);

/**
 * rove_dev_register() - hand a link to ib_core
 * @rdev: in its namespace's table already
 * @name: of the ib_device
 *
 * Context: may sleep; no RTNL.  Another thread may have unregistered and freed
 * the link before this returns: the caller holds a reference on the device if it
 * looks at it again.
 * Return: 0 or an error, the link then still belongs to the caller.
 */
int rove_dev_register(struct rove_dev *rdev, const char *name);

/**
 * rove_get_request() - what a provider asks for beyond what ib_core knows
 * @udata: of a program's command; what there is to answer is zeroed, for a newer provider
 *	has room for more than comes
 * @req: filled in; what an older provider does not know of is zero
 * @size: of @req
 *
 * Context: may sleep.
 * Return: 0; -EFAULT; -EOPNOTSUPP for a request of a newer provider that is not zero
 * beyond @size, and so would not be met.
 */
int rove_get_request(struct ib_udata *udata, void *req, size_t size);

/* For commands that ask nothing of the driver.  @udata: NULL from a kernel consumer. */
static inline int rove_no_request(struct ib_udata *udata)
{
	return udata ? rove_get_request(udata, NULL, 0) : 0;
}

/* The largest path MTU that fits the netdev.  Any context. */
enum ib_mtu rove_dev_mtu(const struct rove_dev *rdev);

/* Ask the netdev for its speed; 1 Gb/s, if it says nothing.  RTNL. */
void rove_dev_update_speed(struct rove_dev *rdev);

/* Is the netdev up and does it have a carrier?  Any context. */
bool rove_dev_port_up(const struct rove_dev *rdev);

/*
 * Have a work item of the link's run, if the link is registered.  It puts the reference
 * on the ib_device that it is given, last of all.  Any context.
 */
static inline void rove_dev_schedule(struct rove_dev *rdev, struct work_struct *work)
{
	if (ib_device_try_get(&rdev->ibdev) && !schedule_work(work))
		ib_device_put(&rdev->ibdev);
}

#endif /* ROVE_DEV_H */
