// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * av.c - address vectors and address handles
 *
 * An address vector is written once and then only read; it keeps the GID entry
 * that its source address came from.
 */
#include <linux/netdevice.h>
#include <net/dst.h>
#include <net/ipv6.h>
#include <rdma/ib_cache.h>
#include <rdma/rove-abi.h>
#include "av.h"
#include "dev.h"
#include "qp.h"

/* Of the netdev that has the address: the link's own, a VLAN's on top of it. */
static int rove_gid_ifindex(const struct ib_gid_attr *sgid_attr)
{
	struct net_device *ndev;
	int ifindex = 0;

	rcu_read_lock();
	ndev = rcu_dereference(sgid_attr->ndev);
	if (ndev)
		ifindex = ndev->ifindex;
	rcu_read_unlock();
	return ifindex;
}

static int rove_av_check(struct rove_dev *rdev, const struct rdma_ah_attr *attr)
{
	const struct ib_global_route *grh = rdma_ah_read_grh(attr);
	struct ib_device *ibdev = &rdev->ibdev;
	const struct in6_addr *saddr, *daddr;

	if (attr->type != RDMA_AH_ATTR_TYPE_ROCE ||
	    rdma_ah_get_port_num(attr) != 1) {
		rove_refuse(ibdev, "address vector: not of RoCE, or not of port 1");
		return -EINVAL;
	}
	if (!(rdma_ah_get_ah_flags(attr) & IB_AH_GRH) || !grh->sgid_attr) {
		rove_refuse(ibdev,
			    "address vector without a GRH: RoCE needs is_global and a source GID index");
		return -EINVAL;
	}
	if (grh->sgid_attr->gid_type != IB_GID_TYPE_ROCE_UDP_ENCAP) {
		rove_refuse(ibdev, "source GID %d is of RoCE v1: take one of type \"RoCE v2\"",
			    grh->sgid_index);
		return -EINVAL;
	}

	saddr = (const struct in6_addr *)grh->sgid_attr->gid.raw;
	daddr = (const struct in6_addr *)grh->dgid.raw;
	if (ipv6_addr_v4mapped(saddr) != ipv6_addr_v4mapped(daddr)) {
		rove_refuse(ibdev,
			    "source GID %d (%pI6c) and destination %pI6c: one is IPv4, the other IPv6",
			    grh->sgid_index, saddr, daddr);
		return -EINVAL;
	}
	if (ipv6_addr_any(daddr) || ipv6_addr_any(saddr)) {
		rove_refuse(ibdev, "source GID %d (%pI6c) and destination %pI6c: one is not set",
			    grh->sgid_index, saddr, daddr);
		return -EINVAL;
	}
	return 0;
}

int rove_av_set(struct rove_dev *rdev, struct rove_av *av,
		const struct rdma_ah_attr *attr)
{
	const struct ib_global_route *grh = rdma_ah_read_grh(attr);
	int err, ifindex;

	err = rove_av_check(rdev, attr);
	if (err)
		return err;
	ifindex = rove_gid_ifindex(grh->sgid_attr);
	if (!ifindex) {
		rove_refuse(&rdev->ibdev, "source GID %d: its netdev is gone",
			    grh->sgid_index);
		return -EINVAL;
	}

	rove_av_clear(av);
	av->ifindex = ifindex;
	memcpy(&av->saddr, grh->sgid_attr->gid.raw, sizeof(av->saddr));
	memcpy(&av->daddr, grh->dgid.raw, sizeof(av->daddr));
	av->ipv6 = !ipv6_addr_v4mapped(&av->daddr);
	av->tclass = grh->traffic_class;
	av->hop_limit = grh->hop_limit ?: IPV6_DEFAULT_HOPLIMIT;
	av->flow_label = grh->flow_label & 0xfffff;
	rdma_copy_ah_attr(&av->attr, attr);
	return 0;
}

void rove_av_clear(struct rove_av *av)
{
	rdma_destroy_ah_attr(&av->attr);
	memset(av, 0, sizeof(*av));
}

void rove_ah_table_init(struct rove_dev *rdev)
{
	/* Address handles come and go in any context (hazard 56). */
	xa_init_flags(&rdev->ahs, XA_FLAGS_ALLOC1 | XA_FLAGS_LOCK_IRQ);
}

void rove_ah_table_destroy(struct rove_dev *rdev)
{
	xa_destroy(&rdev->ahs);
}

struct rove_dest *rove_ah_find(struct rove_dev *rdev, u32 number)
{
	return xa_load(&rdev->ahs, number);
}

/* Numbers go round, so that one is not used again soon. */
static int publish(struct rove_dev *rdev, struct rove_ah *ah)
{
	static atomic64_t serial = ATOMIC64_INIT(0);
	unsigned long flags;
	int err;

	ah->dest->serial = atomic64_inc_return(&serial);
	xa_lock_irqsave(&rdev->ahs, flags);
	err = __xa_alloc_cyclic(&rdev->ahs, &ah->number, ah->dest, xa_limit_31b,
				&rdev->next_ah, GFP_ATOMIC);
	xa_unlock_irqrestore(&rdev->ahs, flags);
	return min(err, 0);
}

/* Who finds it still gets no route from it, nor leaves one. */
static void forget_route(struct rove_dest *dest)
{
	unsigned long flags;

	spin_lock_irqsave(&dest->lock, flags);
	dest->gone = true;
	spin_unlock_irqrestore(&dest->lock, flags);
	dst_release(dest->route.dst);
}

int rove_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init,
		   struct ib_udata *udata)
{
	gfp_t gfp = init->flags & RDMA_CREATE_AH_SLEEPABLE ? ROVE_GFP_OBJECT :
							     GFP_ATOMIC;
	struct rove_dev *rdev = to_rdev(ibah->device);
	struct rove_create_ah_resp resp = {};
	struct rove_ah *ah = to_rah(ibah);
	int err;

	err = rove_no_request(udata);
	if (err)
		return err;
	err = rove_dev_charge(rdev, &rdev->num_ah, ROVE_MAX_AH, "address handles");
	if (err)
		return err;
	ah->dest = kzalloc(sizeof(*ah->dest), gfp);
	if (!ah->dest) {
		err = -ENOMEM;
		goto err_uncharge;
	}
	err = rove_av_set(rdev, &ah->dest->av, init->ah_attr);
	if (err)
		goto err_free;
	ah->dest->pd = ibah->pd;
	spin_lock_init(&ah->dest->lock);
	err = publish(rdev, ah);
	if (err)
		goto err_clear;
	if (udata) {
		resp.ah = ah->number;
		err = ib_copy_to_udata(udata, &resp,
				       min(sizeof(resp), udata->outlen));
		if (err)
			goto err_withdraw;
	}
	return 0;

err_withdraw:
	xa_erase_irq(&rdev->ahs, ah->number);
	forget_route(ah->dest);
err_clear:
	rdma_destroy_ah_attr(&ah->dest->av.attr);
err_free:
	kfree_rcu(ah->dest, rcu);
err_uncharge:
	rove_dev_uncharge(&rdev->num_ah);
	return err;
}

int rove_query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr)
{
	*attr = to_rah(ibah)->dest->av.attr;
	attr->grh.sgid_attr = NULL;	/* no reference for the caller */
	return 0;
}

int rove_destroy_ah(struct ib_ah *ibah, u32 flags)
{
	struct rove_dev *rdev = to_rdev(ibah->device);
	struct rove_ah *ah = to_rah(ibah);
	unsigned long irq;

	if (ibah->uobject)
		rove_pd_send_rest(ibah->pd);
	xa_lock_irqsave(&rdev->ahs, irq);
	__xa_erase(&rdev->ahs, ah->number);
	xa_unlock_irqrestore(&rdev->ahs, irq);
	forget_route(ah->dest);
	/* Who sends there now has no use for this part of it. */
	rdma_destroy_ah_attr(&ah->dest->av.attr);
	kfree_rcu(ah->dest, rcu);
	rove_dev_uncharge(&rdev->num_ah);
	return 0;
}
