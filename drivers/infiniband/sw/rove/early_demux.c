// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * early_demux.c - see early_demux.h
 */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/jhash.h>
#include <linux/slab.h>
#include <linux/udp.h>
#include <net/inet_dscp.h>
#include <net/inet_ecn.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/xfrm.h>
#include "compat.h"
#include "early_demux.h"
#include "netns.h"
#include "route.h"

/**
 * struct in_key - what an input route is chosen by, besides a mark; without holes
 * @saddr: source address; IPv4 in saddr.s6_addr32[3]
 * @daddr: destination address; likewise
 * @class: DSCP; of IPv6 the flow label, too
 * @version: of IP
 * @ifindex: of the device that the packet came in by
 * @sport: UDP source port; the destination's is ours
 */
struct in_key {
	struct in6_addr saddr;
	struct in6_addr daddr;
	__be32 class;
	u32 version;
	u32 ifindex;
	u32 sport;
};

/**
 * struct rove_in_route - an input route
 * @rcu: freed after a grace period
 * @key: what it was chosen by
 * @route: it
 *
 * Never changes.
 */
struct rove_in_route {
	struct rcu_head rcu;
	struct in_key key;
	struct rove_route route;
};

static bool allowed(const struct net *net)
{
	return READ_ONCE(net->ipv4.sysctl_ip_early_demux) &&
	       READ_ONCE(net->ipv4.sysctl_udp_early_demux);
}

/* False: not for our port, or its route may be chosen by something else as well. */
static bool get_key(const struct sk_buff *skb, struct in_key *key)
{
	const struct ipv6hdr *ip6 = ipv6_hdr(skb);
	const struct iphdr *ip = ip_hdr(skb);
	const struct udphdr *udp;
	struct udphdr buf;

	if (skb->mark || skb->pkt_type != PACKET_HOST ||
	    (ip->version == 4 && ip_is_fragment(ip)))
		return false;
	/* By which of a VRF's devices it came, and whether out of IPsec, has a say. */
	if (netif_is_l3_master(skb->dev) || secpath_exists(skb))
		return false;
	udp = rove_net_udp(skb, &buf);
	if (!udp)
		return false;
	*key = (struct in_key) {
		.version = ip->version,
		.ifindex = skb->dev->ifindex,
		.sport = (__force u32)udp->source,
	};
	if (ip->version == 6) {
		key->saddr = ip6->saddr;
		key->daddr = ip6->daddr;
		key->class = ip6_flowinfo(ip6) & ~htonl(INET_ECN_MASK << 20);
		return true;
	}
	key->saddr.s6_addr32[3] = ip->saddr;
	key->daddr.s6_addr32[3] = ip->daddr;
	key->class = htonl(ip->tos & INET_DSCP_MASK);
	/* Options may have a say. */
	return ip->ihl == sizeof(*ip) / 4;
}

/* Where the route of such a packet is, if anywhere: each place is one route's. */
static struct rove_in_route __rcu **place(struct rove_net *rnet, const struct in_key *key)
{
	u32 hash = jhash2((const u32 *)key, sizeof(*key) / sizeof(u32), 0);

	return &rnet->in_route[hash & (ARRAY_SIZE(rnet->in_route) - 1)];
}

/* Is it for such a packet, and for now? */
static bool fits(const struct rove_in_route *r, const struct in_key *key)
{
	return r && !memcmp(&r->key, key, sizeof(*key)) && rove_route_good(&r->route);
}

unsigned int rove_early_demux(void *priv, struct sk_buff *skb,
			      const struct nf_hook_state *state)
{
	const struct rove_in_route *r;
	struct in_key key;

	if (skb_dst(skb) || !get_key(skb, &key) || !allowed(state->net))
		return NF_ACCEPT;
	r = rcu_dereference(*place(rove_net(state->net), &key));
	if (fits(r, &key))
		skb_dst_set_noref(skb, r->route.dst);
	return NF_ACCEPT;
}

/* Two may do so at once. */
static void replace(struct rove_in_route __rcu **at, struct rove_in_route *by)
{
	struct rove_in_route *old = unrcu_pointer(xchg(at, RCU_INITIALIZER(by)));

	if (!old)
		return;
	dst_release(old->route.dst);
	kfree_rcu(old, rcu);
}

void rove_early_demux_forget(struct rove_net *rnet)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(rnet->in_route); i++)
		replace(&rnet->in_route[i], NULL);
}

void rove_early_demux_learn(struct rove_net *rnet, const struct sk_buff *skb)
{
	struct dst_entry *dst = skb_dst(skb);
	struct rove_in_route __rcu **at;
	struct rove_in_route *old, *r;
	struct in_key key;

	/* One that this packet alone holds is on no list by which it could be taken back. */
	if (!dst || !skb_dst_is_noref(skb) || !get_key(skb, &key) || !allowed(rnet->net))
		return;
	at = place(rnet, &key);
	old = rcu_dereference(*at);
	if (likely(fits(old, &key) && old->route.dst == dst))
		return;
	/* Not for each packet where two have one place. */
	if (old && time_in_range(jiffies, old->route.since, old->route.since))
		return;
	r = kzalloc(sizeof(*r), GFP_ATOMIC | __GFP_NOWARN);
	if (!r)
		return;
	if (!dst_hold_safe(dst)) {
		kfree(r);
		return;
	}
	r->key = key;
	rove_route_set(&r->route, dst, key.version == 6);
	replace(at, r);
}
