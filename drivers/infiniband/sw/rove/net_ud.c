// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * net_ud.c - what datagrams need of the network: a way to go for each, and where
 * one came from
 */
#include <linux/if_vlan.h>
#include <linux/inetdevice.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <net/addrconf.h>
#include <net/dst.h>
#include <net/ip.h>
#include <rdma/ib_addr.h>
#include "data.h"
#include "net.h"
#include "netns.h"
#include "qp.h"
#include "transport/env.h"

/*
 * The route that this or another QP has found, while it is good: look-ups are dear for
 * one that writes to many in turn.  Of several paths all take the same.
 */
static void take_route(struct rove_qp *qp, struct rove_dest *dest)
{
	struct dst_entry *stale = NULL;
	unsigned long flags;

	rove_net_forget_route(qp);
	spin_lock_irqsave(&dest->lock, flags);
	if (!dest->gone && rove_route_good(&dest->route)) {
		qp->route = dest->route;
		dst_hold(qp->route.dst);
	}
	spin_unlock_irqrestore(&dest->lock, flags);
	if (qp->route.dst || !rove_net_route(qp))
		return;
	spin_lock_irqsave(&dest->lock, flags);
	if (!dest->gone) {
		stale = dest->route.dst;
		dest->route = qp->route;
		dst_hold(qp->route.dst);
	}
	spin_unlock_irqrestore(&dest->lock, flags);
	dst_release(stale);
}

/*
 * A UD QP's address vector, route and headers are those of the datagrams being
 * built; only programs that write to many in turn pay for the change.
 */
static void change_dest(struct rove_qp *qp, struct rove_dest *dest)
{
	/* What was built goes where it was meant to.  That takes time: no page waits for it. */
	rove_data_release(qp);
	rove_net_flush(qp);
	memcpy(&qp->av, &dest->av, offsetof(struct rove_av, attr));
	/* One flow for each QP, if the program does not say otherwise. */
	qp->sport = htons(rdma_flow_label_to_udp_sport(dest->av.flow_label ?:
						       qp->t.qpn));
	qp->dest = dest->serial;
	take_route(qp, dest);
}

int rove_env_dest(struct rove_tqp *t, u32 ah)
{
	struct rove_qp *qp = tqp_to_rqp(t);
	struct rove_dest *dest;

	rcu_read_lock();
	dest = rove_ah_find(qp->rdev, ah);
	if (dest && dest->pd == qp->ibqp.pd && dest->serial != qp->dest)
		change_dest(qp, dest);
	rcu_read_unlock();
	if (!dest || dest->pd != qp->ibqp.pd)
		return -EINVAL;
	return ib_mtu_enum_to_int(rove_dev_mtu(qp->rdev));
}

/* The netdev that a packet was meant for; NULL when it has gone meanwhile. */
static const struct net_device *found_by(struct net *net, const struct sk_buff *skb,
					 int ifindex)
{
	if (ifindex)
		return dev_get_by_index_rcu(net, ifindex);
	/* by the loopback */
	return rove_net_dest_dev(net, skb);
}

static u16 vlan_of(struct net *net, const struct sk_buff *skb, int ifindex)
{
	const struct net_device *dev = found_by(net, skb, ifindex);

	return dev && is_vlan_dev(dev) ? vlan_dev_vlan_id(dev) : ROVE_NO_VLAN;
}

/*
 * The headers are those of the packet as it was on the wire, without what stood
 * between IP and UDP: who reads them looks for either of two fixed layouts, and tells
 * them apart by IPv4's checksum.
 */
void rove_net_origin(struct rove_qp *qp, const struct sk_buff *skb, int ifindex,
		     u32 len, u16 id, struct rove_origin *o)
{
	u8 tclass;

	len += sizeof(struct udphdr);
	if (ip_hdr(skb)->version == 4) {
		struct iphdr *h = (void *)o->grh + ROVE_GRH_LEN - sizeof(*h);

		memset(o->grh, 0, ROVE_GRH_LEN - sizeof(*h));
		memcpy(h, ip_hdr(skb), sizeof(*h));
		h->ihl = sizeof(*h) / 4;
		h->tot_len = htons(sizeof(*h) + len);
		h->id = htons(id);
		ip_send_check(h);
		tclass = h->tos;
		o->network_hdr_type = ROVE_NETWORK_IPV4;
	} else {
		struct ipv6hdr *h = (void *)o->grh;

		BUILD_BUG_ON(sizeof(*h) != ROVE_GRH_LEN);
		memcpy(h, ipv6_hdr(skb), sizeof(*h));
		h->payload_len = htons(len);
		h->nexthdr = IPPROTO_UDP;
		tclass = ipv6_get_dsfield(h);
		o->network_hdr_type = ROVE_NETWORK_IPV6;
	}
	o->sl = tclass >> 5;
	/* Programs are not told. */
	o->vlan_id = qp->user ? ROVE_NO_VLAN :
				vlan_of(qp->rdev->rnet->net, skb, ifindex);
}
