// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * mcast.c - see mcast.h
 *
 * IP itself joins for us, so that it accepts the group's packets, the device's
 * filter lets them through, and routers and switches are told (IGMP, MLD).
 */
#include <linux/igmp.h>
#include <linux/inetdevice.h>
#include <linux/rtnetlink.h>
#include <net/addrconf.h>
#include "dev.h"
#include "mcast.h"
#include "netns.h"
#include "qp.h"

static const struct rhashtable_params group_table = {
	.key_len = sizeof_field(struct rove_group, addr),
	.key_offset = offsetof(struct rove_group, addr),
	.head_offset = offsetof(struct rove_group, node),
	.automatic_shrinking = true,
};

int rove_group_table_init(struct rove_dev *rdev)
{
	mutex_init(&rdev->group_lock);
	return rhashtable_init(&rdev->groups, &group_table);
}

void rove_group_table_destroy(struct rove_dev *rdev)
{
	rhashtable_destroy(&rdev->groups);
	mutex_destroy(&rdev->group_lock);
}

struct rove_group *rove_group_find(struct rove_dev *rdev,
				   const struct in6_addr *addr)
{
	return rhashtable_lookup(&rdev->groups, addr, group_table);
}

/*
 * The netdev whose IP hears what the link's netdev receives: a bridge or a bond
 * takes its packets, a VRF does not.
 */
static struct net_device *listener(struct rove_dev *rdev)
{
	struct net_device *dev = rdev->ndev, *upper;

	ASSERT_RTNL();

	while ((upper = netdev_master_upper_dev_get(dev)) &&
	       !netif_is_l3_master(upper))
		dev = upper;
	return dev;
}

static int join(struct rove_dev *rdev, struct rove_group *g)
{
	struct in_device *in_dev;
	struct net_device *dev;
	int err = 0;

	rtnl_lock();
	dev = listener(rdev);
	if (dev->reg_state != NETREG_REGISTERED) {
		err = -ENODEV;
	} else if (ipv6_addr_v4mapped(&g->addr)) {
		in_dev = __in_dev_get_rtnl(dev);
		if (in_dev)
			ip_mc_inc_group(in_dev, g->addr.s6_addr32[3]);
		else
			err = -ENODEV;
	} else if (!rdev->rnet->sk6) {
		err = -EAFNOSUPPORT;
	} else {
		err = ipv6_dev_mc_inc(dev, &g->addr);
	}
	g->ifindex = dev->ifindex;
	rtnl_unlock();
	if (err)
		ibdev_warn_ratelimited(&rdev->ibdev,
				       "%s cannot join multicast group %pI6c: error %d\n",
				       netdev_name(rdev->ndev), &g->addr, err);
	return err;
}

/* The netdev, or its being a member, may be gone: then there is nothing to leave. */
static void leave(struct rove_dev *rdev, const struct rove_group *g)
{
	struct in_device *in_dev;
	struct net_device *dev;

	rtnl_lock();
	dev = __dev_get_by_index(rdev->rnet->net, g->ifindex);
	if (!dev)
		goto unlock;
	if (ipv6_addr_v4mapped(&g->addr)) {
		in_dev = __in_dev_get_rtnl(dev);
		if (in_dev)
			ip_mc_dec_group(in_dev, g->addr.s6_addr32[3]);
	} else {
		ipv6_dev_mc_dec(dev, &g->addr);
	}
unlock:
	rtnl_unlock();
}

static struct rove_member *find_member(struct rove_group *g, struct rove_qp *qp)
{
	struct rove_member *m;

	list_for_each_entry(m, &g->members, list)
		if (m->qp == qp)
			return m;
	return NULL;
}

/* A group of which the netdev is a member, and which nobody knows of yet. */
static struct rove_group *create_group(struct rove_dev *rdev,
				       const struct in6_addr *addr)
{
	struct rove_group *g;
	int err;

	err = rove_dev_charge(rdev, &rdev->num_group, ROVE_MAX_GROUP,
			      "multicast groups");
	if (err)
		return ERR_PTR(err);
	g = kzalloc(sizeof(*g), GFP_KERNEL);
	if (!g) {
		rove_dev_uncharge(&rdev->num_group);
		return ERR_PTR(-ENOMEM);
	}
	g->addr = *addr;
	INIT_LIST_HEAD(&g->members);
	err = join(rdev, g);
	if (err) {
		rove_dev_uncharge(&rdev->num_group);
		kfree(g);
		return ERR_PTR(err);
	}
	return g;
}

/* Nobody knows of it (any more). */
static void destroy_group(struct rove_dev *rdev, struct rove_group *g)
{
	leave(rdev, g);
	rove_dev_uncharge(&rdev->num_group);
	kfree_rcu(g, rcu);
}

static int attach(struct rove_qp *qp, const struct in6_addr *addr)
{
	struct rove_dev *rdev = qp->rdev;
	struct rove_member *m;
	struct rove_group *g;
	int err = 0;

	lockdep_assert_held(&rdev->group_lock);

	g = rhashtable_lookup_fast(&rdev->groups, addr, group_table);
	m = g ? find_member(g, qp) : NULL;
	if (m) {
		m->times++;
		return 0;
	}
	if (g && g->num >= ROVE_MAX_GROUP_QPS) {
		rove_refuse(&rdev->ibdev,
			    "attach_mcast: there are %d QPs in %pI6c, as many as there may be",
			    ROVE_MAX_GROUP_QPS, addr);
		return -ENOMEM;
	}
	m = kzalloc(sizeof(*m), ROVE_GFP_OBJECT);
	if (!m)
		return -ENOMEM;
	m->qp = qp;
	m->times = 1;
	if (g) {
		list_add_tail_rcu(&m->list, &g->members);
		g->num++;
		return 0;
	}

	g = create_group(rdev, addr);
	if (IS_ERR(g)) {
		kfree(m);
		return PTR_ERR(g);
	}
	list_add_tail(&m->list, &g->members);
	g->num = 1;
	err = rhashtable_insert_fast(&rdev->groups, &g->node, group_table);
	if (err) {
		destroy_group(rdev, g);
		kfree(m);
	}
	return err;
}

int rove_attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	struct rove_qp *qp = to_rqp(ibqp);
	int err;

	mutex_lock(&qp->rdev->group_lock);
	err = attach(qp, (const struct in6_addr *)gid->raw);
	mutex_unlock(&qp->rdev->group_lock);
	return err;
}

static int detach(struct rove_qp *qp, const struct in6_addr *addr)
{
	struct rove_dev *rdev = qp->rdev;
	struct rove_member *m;
	struct rove_group *g;

	lockdep_assert_held(&rdev->group_lock);

	g = rhashtable_lookup_fast(&rdev->groups, addr, group_table);
	m = g ? find_member(g, qp) : NULL;
	if (!m)
		return -EINVAL;
	if (--m->times)
		return 0;
	list_del_rcu(&m->list);
	kfree_rcu(m, rcu);
	if (--g->num)
		return 0;
	rhashtable_remove_fast(&rdev->groups, &g->node, group_table);
	destroy_group(rdev, g);
	return 0;
}

int rove_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	struct rove_qp *qp = to_rqp(ibqp);
	int err;

	mutex_lock(&qp->rdev->group_lock);
	err = detach(qp, (const struct in6_addr *)gid->raw);
	mutex_unlock(&qp->rdev->group_lock);
	return err;
}
