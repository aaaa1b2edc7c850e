// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * early_demux.c - see early_demux.h
 */
#include <linux/hash.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/jiffies.h>
#include <linux/slab.h>
#include <linux/udp.h>
#include <net/dsfield.h>
#include <net/dst_metadata.h>
#include <net/ip.h>
#include <net/ip6_fib.h>
#include <net/ipv6.h>
#include <rdma/ib_verbs.h>
#include "compat.h"
#include "early_demux.h"
#include "netns.h"

/**
 * struct rove_in_route - an input route, and what it was chosen by
 * @rcu: freed after a grace period
 * @dst: the route, referenced
 * @cookie: tells whether @dst is still good
 * @since: when it was learned, jiffies
 * @ifindex: of the device that the packet came in by
 * @ipv6: else IPv4
 * @tclass: traffic class
 * @saddr: source address; IPv4 in saddr.s6_addr32[3]
 * @daddr: destination address; likewise
 *
 * Never changes.
 */
struct rove_in_route {
	struct rcu_head rcu;
	struct dst_entry *dst;
	u32 cookie;
	unsigned long since;
	int ifindex;
	bool ipv6;
	u8 tclass;
	struct in6_addr saddr;
	struct in6_addr daddr;
};

/* Are its device, addresses and traffic class all that its route may be chosen by? */
static bool is_plain(const struct sk_buff *skb)
{
	if (skb->mark || skb->pkt_type != PACKET_HOST)
		return false;
	if (ip_hdr(skb)->version == 4)
		return ip_hdr(skb)->ihl == sizeof(struct iphdr) / 4 &&
		       ip_hdr(skb)->protocol == IPPROTO_UDP &&
		       !ip_is_fragment(ip_hdr(skb));
	return ipv6_hdr(skb)->nexthdr == IPPROTO_UDP;
}

static bool is_ours(const struct sk_buff *skb)
{
	struct udphdr buf, *udp;

	udp = skb_header_pointer(skb, skb_transport_offset(skb), sizeof(buf), &buf);
	return udp && udp->dest == htons(ROCE_V2_UDP_DPORT);
}

static bool fits(const struct rove_in_route *r, const struct sk_buff *skb)
{
	if (r->ifindex != skb->dev->ifindex)
		return false;
	if (ip_hdr(skb)->version == 4)
		return !r->ipv6 && r->tclass == ip_hdr(skb)->tos &&
		       r->saddr.s6_addr32[3] == ip_hdr(skb)->saddr &&
		       r->daddr.s6_addr32[3] == ip_hdr(skb)->daddr;
	return r->ipv6 && r->tclass == ipv6_get_dsfield(ipv6_hdr(skb)) &&
	       ipv6_addr_equal(&r->saddr, &ipv6_hdr(skb)->saddr) &&
	       ipv6_addr_equal(&r->daddr, &ipv6_hdr(skb)->daddr);
}

/* Where the route of such a packet is, if anywhere: each place is one route's. */
static struct rove_in_route __rcu **place(struct rove_net *rnet,
					  const struct sk_buff *skb)
{
	u32 key = skb->dev->ifindex;

	if (ip_hdr(skb)->version == 4)
		key ^= (__force u32)(ip_hdr(skb)->saddr ^ swab32(ip_hdr(skb)->daddr));
	else
		key ^= ipv6_addr_hash(&ipv6_hdr(skb)->saddr) ^
		       swab32(ipv6_addr_hash(&ipv6_hdr(skb)->daddr));
	return &rnet->in_route[hash_32(key, ROVE_IN_ROUTE_BITS)];
}

unsigned int rove_early_demux(void *priv, struct sk_buff *skb,
			      const struct nf_hook_state *state)
{
	const struct rove_in_route *r;
	struct dst_entry *dst;

	if (!is_plain(skb) || !is_ours(skb) || skb_valid_dst(skb) ||
	    !READ_ONCE(state->net->ipv4.sysctl_ip_early_demux))
		return NF_ACCEPT;
	r = rcu_dereference(*place(rove_net(state->net), skb));
	if (!r || !fits(r, skb))
		return NF_ACCEPT;
	dst = dst_check(r->dst, r->cookie);
	if (dst)
		skb_dst_set_noref(skb, dst);
	return NF_ACCEPT;
}

/* Two may do so at once. */
static void replace(struct rove_in_route __rcu **at, struct rove_in_route *by)
{
	struct rove_in_route *old = unrcu_pointer(xchg(at, RCU_INITIALIZER(by)));

	if (!old)
		return;
	dst_release(old->dst);
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
	struct rove_in_route __rcu **at = place(rnet, skb);
	struct rove_in_route *old = rcu_dereference(*at);
	struct dst_entry *dst = skb_dst(skb);
	struct rove_in_route *r;

	if (likely(old && old->dst == dst && fits(old, skb)))
		return;
	/* Not for each packet where two have one place. */
	if (!dst || (old && !time_after(jiffies, old->since)) || !is_plain(skb))
		return;
	r = kzalloc(sizeof(*r), GFP_ATOMIC | __GFP_NOWARN);
	if (!r)
		return;
	if (!dst_hold_safe(dst)) {
		kfree(r);
		return;
	}
	r->dst = dst;
	r->since = jiffies;
	r->ifindex = skb->dev->ifindex;
	r->ipv6 = ip_hdr(skb)->version == 6;
	if (r->ipv6) {
		r->cookie = rt6_get_cookie(dst_rt6_info(dst));
		r->tclass = ipv6_get_dsfield(ipv6_hdr(skb));
		r->saddr = ipv6_hdr(skb)->saddr;
		r->daddr = ipv6_hdr(skb)->daddr;
	} else {
		r->tclass = ip_hdr(skb)->tos;
		r->saddr.s6_addr32[3] = ip_hdr(skb)->saddr;
		r->daddr.s6_addr32[3] = ip_hdr(skb)->daddr;
	}
	replace(at, r);
}
