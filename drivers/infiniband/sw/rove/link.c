// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * link.c - how links come and go
 *
 * A link comes by `rdma link add` and goes by `rdma link delete`, with its
 * netdev, with the netdev's namespace or with the module.  All ways out lead
 * through ib_unregister_device(), which calls rove_dev_remove() below before any
 * program loses its objects, and .dealloc_driver (device.c) when all are gone.
 *
 * Netdev events come under RTNL, which ib_unregister_device() must not be called
 * with: a netdev that goes away has its link unregistered by a work item, and
 * waits for it since the link holds a reference.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/if_arp.h>
#include <linux/if_vlan.h>
#include <linux/inetdevice.h>
#include <linux/rtnetlink.h>
#include <linux/wait_bit.h>
#include <net/addrconf.h>
#include <net/if_inet6.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_netlink.h>
#include <rdma/rove-abi.h>
#include "link.h"
#include "dev.h"
#include "mcast.h"
#include "netns.h"
#include "qp.h"

static int rove_link_check(struct net_device *ndev)
{
	if (is_vlan_dev(ndev)) {
		/* ib_core would give it no GIDs for its addresses. */
		pr_err("%s is a VLAN: add the link on %s, which takes the VLAN's addresses along\n",
		       ndev->name, vlan_dev_real_dev(ndev)->name);
		return -EOPNOTSUPP;
	}
	if (ndev->type == ARPHRD_LOOPBACK) {
		pr_err("%s: a link needs an Ethernet device; one on any of them reaches this machine's own addresses, too\n",
		       ndev->name);
		return -EOPNOTSUPP;
	}
	switch (ndev->type) {
	case ARPHRD_ETHER:
		if (ndev->addr_len == ETH_ALEN)
			return 0;
		break;
	case ARPHRD_NONE:	/* tun, WireGuard */
	case ARPHRD_TUNNEL:
	case ARPHRD_IPGRE:
		pr_info("%s has no Ethernet address: verbs work on it, but rdma_cm does not look there for a link\n",
			ndev->name);
		return 0;
	}
	pr_err("%s is not an Ethernet device (type %u)\n", ndev->name,
	       ndev->type);
	return -EOPNOTSUPP;
}

/* The netdev's namespace, referenced; NULL: it is going away. */
static struct net *rove_link_get_net(struct net_device *ndev)
{
	struct net *net;

	rtnl_lock();
	net = maybe_get_net(dev_net(ndev));
	rtnl_unlock();
	return net;
}

static int rove_link_make(const char *name, struct net_device *ndev, struct net *net)
{
	struct rove_dev *rdev;
	int err;

	rdev = rove_dev_alloc(ndev, net);
	if (!rdev)
		return -ENOMEM;

	err = rove_net_add(rdev, net);
	if (err)
		goto err_dealloc;
	err = rove_dev_register(rdev, name);
	if (err) {
		pr_err("%s: ib_core refused %s: error %d\n", ndev->name, name,
		       err);
		goto err_dealloc;
	}
	return 0;

err_dealloc:
	ib_dealloc_device(&rdev->ibdev);
	return err;
}

static int rove_link_new(const char *name, struct net_device *ndev)
{
	struct net *net;
	int err;

	err = rove_link_check(ndev);
	if (err)
		return err;
	/* Asked once: the netdev may move meanwhile, and then there is no link. */
	net = rove_link_get_net(ndev);
	if (!net)
		return -ENODEV;
	err = rove_link_make(name, ndev, net);
	put_net(net);
	return err;
}

static struct rdma_link_ops rove_link_ops = {
	.type = "rove",
	.newlink = rove_link_new,
};

/* Tells the consumers when the port's state is not what they were told last. */
static void rove_link_update_port(struct rove_dev *rdev)
{
	struct ib_event event = {
		.device = &rdev->ibdev,
		.element.port_num = 1,
	};
	bool active = rove_dev_port_up(rdev);

	ASSERT_RTNL();

	if (active == rdev->port_active)
		return;
	rdev->port_active = active;
	event.event = active ? IB_EVENT_PORT_ACTIVE : IB_EVENT_PORT_ERR;
	ib_dispatch_event(&event);
}

/* It may be the netdev that hears multicast for a link, or have been. */
static void rove_link_listener_changed(struct net_device *ndev)
{
	struct rove_net *rnet = rove_net(dev_net(ndev));
	struct rove_dev *rdev;
	int bucket;

	if (!rnet)
		return;
	rcu_read_lock();
	hash_for_each_rcu(rnet->links, bucket, rdev, node) {
		if (rdev->ndev == ndev ||
		    netdev_has_upper_dev_all_rcu(rdev->ndev, ndev))
			rove_groups_listener_changed(rdev);
	}
	rcu_read_unlock();
}

/*
 * Addresses and VLANs are ib_core's business, the MTU and the name are looked
 * up when somebody asks.  A link that is not registered yet, or not registered
 * for a moment since it moves to another namespace, learns what it missed in
 * rove_dev_add().
 */
static int rove_link_event(struct notifier_block *nb, unsigned long what,
			   void *info)
{
	struct net_device *ndev = netdev_notifier_info_to_dev(info);
	struct rove_dev *rdev;

	ASSERT_RTNL();

	switch (what) {
	case NETDEV_UP:
	case NETDEV_CHANGEMTU:
	case NETDEV_CHANGEUPPER:
	case NETDEV_UNREGISTER:
		rove_link_listener_changed(ndev);
		break;
	}

	rcu_read_lock();
	rdev = rove_net_find(rove_net(dev_net(ndev)), ndev->ifindex);
	if (rdev && what == NETDEV_UNREGISTER)
		rdev->ndev_gone = true;
	if (rdev && !ib_device_try_get(&rdev->ibdev))
		rdev = NULL;
	rcu_read_unlock();
	if (!rdev)
		return NOTIFY_DONE;

	switch (what) {
	case NETDEV_UP:
	case NETDEV_DOWN:
	case NETDEV_CHANGE:
		rove_link_update_port(rdev);
		break;
	case NETDEV_UNREGISTER:
		ib_unregister_device_queued(&rdev->ibdev);
		break;
	}
	ib_device_put(&rdev->ibdev);
	return NOTIFY_OK;
}

static struct notifier_block rove_link_notifier = {
	.notifier_call = rove_link_event,
};

/*
 * ib_core looks after the addresses of Ethernet devices.  Those of others it takes
 * when it is asked to look at all devices anew, and keeps them as GIDs until the link
 * goes: one whose address is gone has no route, and RTR fails with it.
 */
static void rove_link_rescan(struct work_struct *work)
{
	struct rove_dev *rdev = container_of(work, struct rove_dev, rescan);

	rdma_roce_rescan_device(&rdev->ibdev);
	ib_device_put(&rdev->ibdev);
}

/* Any context: addresses come by themselves, too. */
static void rove_link_new_address(struct net_device *ndev)
{
	struct rove_dev *rdev;

	if (ndev->type == ARPHRD_ETHER)
		return;
	rcu_read_lock();
	rdev = rove_net_find(rove_net(dev_net(ndev)), ndev->ifindex);
	if (rdev)
		rove_dev_schedule(rdev, &rdev->rescan);
	rcu_read_unlock();
}

static int rove_link_inet_event(struct notifier_block *nb, unsigned long what,
				void *info)
{
	const struct in_ifaddr *ifa = info;

	if (what == NETDEV_UP)
		rove_link_new_address(ifa->ifa_dev->dev);
	return NOTIFY_DONE;
}

static int rove_link_inet6_event(struct notifier_block *nb, unsigned long what,
				 void *info)
{
	const struct inet6_ifaddr *ifa = info;

	if (what == NETDEV_UP)
		rove_link_new_address(ifa->idev->dev);
	return NOTIFY_DONE;
}

static struct notifier_block rove_link_inet_notifier = {
	.notifier_call = rove_link_inet_event,
};

static struct notifier_block rove_link_inet6_notifier = {
	.notifier_call = rove_link_inet6_event,
};

void rove_link_dev_init(struct rove_dev *rdev)
{
	INIT_WORK(&rdev->rescan, rove_link_rescan);
}

static int rove_dev_add(struct ib_device *ibdev)
{
	struct rove_dev *rdev;
	bool gone;

	if (ibdev->ops.driver_id != ROVE_DRIVER_ID)
		return -EOPNOTSUPP;
	rdev = to_rdev(ibdev);

	rtnl_lock();
	gone = rdev->ndev_gone;
	if (!gone)
		rove_link_update_port(rdev);
	rtnl_unlock();

	if (gone)
		ib_unregister_device_queued(ibdev);
	return 0;
}

/* Links that are being unregistered, or moved to another namespace. */
static atomic_t rove_leaving = ATOMIC_INIT(0);

void rove_link_left(struct rove_dev *rdev)
{
	if (rdev->dying && atomic_dec_and_test(&rove_leaving))
		wake_up_var(&rove_leaving);
}

/*
 * In shared mode ib_core shows each device in all namespaces.  Who unregisters it takes what
 * a namespace sees out of a list, and deletes it afterwards: a namespace that ends in
 * between finds nothing to wait for, and the uevent goes to a socket that it has freed (as
 * of Linux 7.3, for any driver).  So it waits here, as a "subsystem": when ib_core has
 * looked, and the socket is there.  A link that cannot go holds it up no longer than that.
 */
static void __net_exit rove_link_exit_nets(struct list_head *nets)
{
	wait_var_event_timeout(&rove_leaving, !atomic_read_acquire(&rove_leaving), 10 * HZ);
}

static struct pernet_operations rove_link_net_ops = {
	.exit_batch = rove_link_exit_nets,
};

static void rove_dev_remove(struct ib_device *ibdev, void *client_data)
{
	atomic_inc(&rove_leaving);
	rove_qp_flush_all(to_rdev(ibdev));
}

/*
 * ib_core has no call to a driver whose device is about to be unregistered.
 * But it removes its clients in reverse order of registration, and ib_uverbs,
 * whose symbols this module uses, was there before: at the time of
 * rove_dev_remove() programs have all their objects still, and see their work
 * flushed rather than hang.
 */
static struct ib_client rove_client = {
	.name = "rove",
	.add = rove_dev_add,
	.remove = rove_dev_remove,
	.no_kverbs_req = 1,
};

int rove_link_init(void)
{
	int err;

	err = register_pernet_subsys(&rove_link_net_ops);
	if (err)
		return err;
	err = ib_register_client(&rove_client);
	if (err)
		goto err_net;
	err = register_netdevice_notifier(&rove_link_notifier);
	if (err)
		goto err_client;
	register_inetaddr_notifier(&rove_link_inet_notifier);
	register_inet6addr_notifier(&rove_link_inet6_notifier);
	rdma_link_register(&rove_link_ops);
	return 0;

err_client:
	ib_unregister_client(&rove_client);
err_net:
	unregister_pernet_subsys(&rove_link_net_ops);
	return err;
}

void rove_link_exit(void)
{
	/* waits for a `link add` under way */
	rdma_link_unregister(&rove_link_ops);
	/* and this for links being taken down by others */
	ib_unregister_driver(ROVE_DRIVER_ID);
	unregister_inet6addr_notifier(&rove_link_inet6_notifier);
	unregister_inetaddr_notifier(&rove_link_inet_notifier);
	unregister_netdevice_notifier(&rove_link_notifier);
	ib_unregister_client(&rove_client);
	unregister_pernet_subsys(&rove_link_net_ops);
}

/* Some link that nobody is unregistering yet, referenced, or NULL. */
static struct rove_dev *rove_link_get_any(struct rove_net *rnet)
{
	struct rove_dev *rdev;
	int bucket;

	rcu_read_lock();
	hash_for_each_rcu(rnet->links, bucket, rdev, node) {
		if (ib_device_try_get(&rdev->ibdev)) {
			rcu_read_unlock();
			return rdev;
		}
	}
	rcu_read_unlock();
	return NULL;
}

void rove_link_unregister_all(struct rove_net *rnet)
{
	struct rove_dev *rdev;

	while ((rdev = rove_link_get_any(rnet)))
		ib_unregister_device_and_put(&rdev->ibdev);
}
