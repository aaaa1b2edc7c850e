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

static void join_again(struct work_struct *work);

int rove_group_table_init(struct rove_dev *rdev)
{
	mutex_init(&rdev->group_lock);
	INIT_LIST_HEAD(&rdev->group_list);
	INIT_WORK(&rdev->join_again, join_again);
	return rhashtable_init(&rdev->groups, &group_table);
}

void rove_group_table_destroy(struct rove_dev *rdev)
{
	/* It has put its reference, but may not have returned. */
	cancel_work_sync(&rdev->join_again);
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

static void leave(struct rove_group *g)
{
	ASSERT_RTNL();

	if (g->in_dev) {
		ip_mc_dec_group(g->in_dev, g->addr.s6_addr32[3]);
		in_dev_put(g->in_dev);
	}
	if (g->in6_dev) {
		/* One that the netdev has lost has left its groups. */
		if (__in6_dev_get(g->in6_dev->dev) == g->in6_dev)
			ipv6_dev_mc_dec(g->in6_dev->dev, &g->addr);
		in6_dev_put(g->in6_dev);
	}
	g->in_dev = NULL;
	g->in6_dev = NULL;
}

/* Is @dev's IP what has joined? */
static bool has_joined(const struct rove_group *g, const struct net_device *dev)
{
	return (g->in_dev && g->in_dev == __in_dev_get_rtnl(dev)) ||
	       (g->in6_dev && g->in6_dev == __in6_dev_get(dev));
}

static int join4(struct rove_group *g, struct net_device *dev)
{
	struct in_device *in_dev = __in_dev_get_rtnl(dev);

	if (!in_dev)
		return -ENODEV;
	ip_mc_inc_group(in_dev, g->addr.s6_addr32[3]);
	in_dev_hold(in_dev);
	g->in_dev = in_dev;
	return 0;
}

static int join6(struct rove_group *g, struct net_device *dev)
{
	struct inet6_dev *in6_dev = __in6_dev_get(dev);
	int err;

	if (!in6_dev)
		return -ENODEV;
	err = ipv6_dev_mc_inc(dev, &g->addr);
	if (err)
		return err;
	in6_dev_hold(in6_dev);
	g->in6_dev = in6_dev;
	return 0;
}

/* Be a member on the netdev that is the listener now, and nowhere else. */
static int join(struct rove_dev *rdev, struct rove_group *g)
{
	struct net_device *dev;
	int err = 0;

	lockdep_assert_held(&rdev->group_lock);

	rtnl_lock();
	dev = listener(rdev);
	if (dev->reg_state == NETREG_REGISTERED && has_joined(g, dev))
		goto unlock;
	leave(g);
	if (dev->reg_state != NETREG_REGISTERED)
		err = -ENODEV;
	else if (ipv6_addr_v4mapped(&g->addr))
		err = join4(g, dev);
	else if (rdev->rnet->sk6)
		err = join6(g, dev);
	else
		err = -EAFNOSUPPORT;
unlock:
	rtnl_unlock();
	if (err)
		rove_warn(&rdev->ibdev, "%s does not get multicast group %pI6c: error %d\n",
			  netdev_name(rdev->ndev), &g->addr, err);
	return err;
}

static void join_again(struct work_struct *work)
{
	struct rove_dev *rdev = container_of(work, struct rove_dev, join_again);
	struct rove_group *g;

	mutex_lock(&rdev->group_lock);
	list_for_each_entry(g, &rdev->group_list, list)
		join(rdev, g);
	mutex_unlock(&rdev->group_lock);
	ib_device_put(&rdev->ibdev);
}

/* By a work item: group_lock is not to be taken within RTNL. */
void rove_groups_listener_changed(struct rove_dev *rdev)
{
	if (atomic_read(&rdev->num_group))
		rove_dev_schedule(rdev, &rdev->join_again);
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
	g = kzalloc(sizeof(*g), ROVE_GFP_OBJECT);
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
	list_add(&g->list, &rdev->group_list);
	return g;
}

/* Nobody knows of it (any more). */
static void destroy_group(struct rove_dev *rdev, struct rove_group *g)
{
	list_del(&g->list);
	rtnl_lock();
	leave(g);
	rtnl_unlock();
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
