// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * net_tx.c - a burst becomes packets, and these go to the stack
 *
 * All packets of a burst are built before the first is sent, so that a burst is
 * sent whole or not at all and the transport's state follows the wire.  What
 * the stack then drops is lost like on any wire: the transport recovers.
 *
 * The IP header is ours, not udp_tunnel_xmit_skb()'s, which chooses the IP
 * identification after us: the ICRC covers it.
 */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <linux/wait.h>
#include <net/ip.h>
#include <net/ip6_checksum.h>
#include <net/ip6_fib.h>
#include <net/ip6_route.h>
#include <net/ipv6.h>
#include <net/route.h>
#include <net/udp.h>
#include "compat.h"
#include "data.h"
#include "defer.h"
#include "net.h"
#include "netns.h"
#include "qp.h"
#include "transport/env.h"

/* Packets that one QP may have in qdiscs and devices; more have to wait. */
#define FLOW_MAX	512
/* It may go on when they are down to this. */
#define FLOW_RESUME	(FLOW_MAX / 2)

/* When no packet can be built for want of memory, try again after this. */
#define NO_MEMORY_NS	NSEC_PER_MSEC

/**
 * struct rove_flow - a QP's account of packets in flight
 * @refs: one for the QP, one for each packet
 * @qp: NULL once the QP is gone; RCU
 * @blocked: bit 0: the transport waits for room
 */
struct rove_flow {
	refcount_t refs;
	struct rove_qp __rcu *qp;
	unsigned long blocked;
};

/* Flows alive; the module's text must outlive them. */
static atomic_t flows = ATOMIC_INIT(0);
static DECLARE_WAIT_QUEUE_HEAD(flows_gone);

struct rove_flow *rove_flow_create(struct rove_qp *qp)
{
	struct rove_flow *flow = kzalloc(sizeof(*flow), GFP_KERNEL);

	if (!flow)
		return NULL;
	refcount_set(&flow->refs, 1);
	RCU_INIT_POINTER(flow->qp, qp);
	atomic_inc(&flows);
	return flow;
}

static void flow_put(struct rove_flow *flow)
{
	if (!refcount_dec_and_test(&flow->refs))
		return;
	kfree(flow);
	if (atomic_dec_and_test(&flows))
		wake_up_all(&flows_gone);
}

void rove_flow_release(struct rove_flow *flow)
{
	RCU_INIT_POINTER(flow->qp, NULL);
	/* A destructor that still saw the QP is done with it after this. */
	synchronize_rcu_expedited();
	flow_put(flow);
}

void rove_flow_wait_all(void)
{
	while (!wait_event_timeout(flows_gone, !atomic_read(&flows), 10 * HZ))
		pr_info("rove: waiting for the network stack to free our packets; delete queueing disciplines that hold them\n");
	/* The last destructor may still be on its way out. */
	synchronize_rcu();
}

/* The stack has freed or orphaned a packet.  Any context; QP may be locked. */
static void packet_gone(struct sk_buff *skb)
{
	struct rove_flow *flow = skb_shinfo(skb)->destructor_arg;
	struct rove_qp *qp;

	/* Also keeps the module's text: see rove_flow_wait_all(). */
	rcu_read_lock();
	if (test_bit(0, &flow->blocked) &&
	    refcount_read(&flow->refs) <= FLOW_RESUME &&
	    test_and_clear_bit(0, &flow->blocked)) {
		qp = rcu_dereference(flow->qp);
		if (qp)
			rove_defer(qp);
	}
	flow_put(flow);
	rcu_read_unlock();
}

static bool flow_has_room(struct rove_flow *flow, u32 n)
{
	if (likely(refcount_read(&flow->refs) + n <= FLOW_MAX))
		return true;
	set_bit(0, &flow->blocked);
	/* Pairs with the atomic in packet_gone(): it may have been the last. */
	smp_mb__after_atomic();
	return refcount_read(&flow->refs) <= FLOW_RESUME;
}

void rove_net_forget_route(struct rove_qp *qp)
{
	dst_release(qp->dst);
	qp->dst = NULL;
}

static struct dst_entry *route4(struct rove_qp *qp)
{
	struct flowi4 fl4 = {
		.flowi4_oif = qp->av.ifindex,
		.flowi4_proto = IPPROTO_UDP,
		rove_flowi4_dscp(qp->av.tclass),
		.saddr = qp->av.saddr.s6_addr32[3],
		.daddr = qp->av.daddr.s6_addr32[3],
		.fl4_sport = qp->sport,
		.fl4_dport = htons(ROVE_UDP_PORT),
	};
	struct rtable *rt = ip_route_output_key(qp->rdev->rnet->net, &fl4);

	return IS_ERR(rt) ? NULL : &rt->dst;
}

static struct dst_entry *route6(struct rove_qp *qp)
{
	struct flowi6 fl6 = {
		.flowi6_oif = qp->av.ifindex,
		.flowi6_proto = IPPROTO_UDP,
		.flowlabel = ip6_make_flowinfo(qp->av.tclass,
					       htonl(qp->av.flow_label)),
		.saddr = qp->av.saddr,
		.daddr = qp->av.daddr,
		.fl6_sport = qp->sport,
		.fl6_dport = htons(ROVE_UDP_PORT),
	};
	struct rove_net *rnet = qp->rdev->rnet;
	struct dst_entry *dst;

	if (!rnet->sk6)
		return NULL;
	dst = rove_ip6_lookup(rnet->net, rnet->sk6->sk, &fl6, NULL);
	return IS_ERR(dst) ? NULL : dst;
}

/* The route to the peer; cached in the QP, looked up again when stale. */
static struct dst_entry *route(struct rove_qp *qp)
{
	if (likely(qp->dst && dst_check(qp->dst, qp->dst_cookie)))
		return qp->dst;
	rove_net_forget_route(qp);
	if (qp->av.ipv6) {
		qp->dst = route6(qp);
		if (qp->dst)
			qp->dst_cookie = rt6_get_cookie(dst_rt6_info(qp->dst));
	} else {
		qp->dst = route4(qp);
		qp->dst_cookie = 0;
	}
	return qp->dst;
}

static u32 ip_len(const struct rove_qp *qp)
{
	return qp->av.ipv6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr);
}

static void put_ip_header(struct rove_qp *qp, void *ip, u32 udp_len)
{
	const struct rove_av *av = &qp->av;

	if (av->ipv6) {
		struct ipv6hdr *h = ip;

		ip6_flow_hdr(h, av->tclass, htonl(av->flow_label));
		h->payload_len = htons(udp_len);
		h->nexthdr = IPPROTO_UDP;
		h->hop_limit = av->hop_limit;
		h->saddr = av->saddr;
		h->daddr = av->daddr;
	} else {
		struct iphdr *h = ip;

		*h = (struct iphdr) {
			.version = 4,
			.ihl = sizeof(*h) / 4,
			.tos = av->tclass,
			.tot_len = htons(sizeof(*h) + udp_len),
			.id = htons(qp->ip_id++),
			.frag_off = htons(IP_DF),
			.ttl = av->hop_limit,
			.protocol = IPPROTO_UDP,
			.saddr = av->saddr.s6_addr32[3],
			.daddr = av->daddr.s6_addr32[3],
		};
	}
}

/* Build packet @i; NULL: no memory; ERR_PTR(-EFAULT): payload unreadable. */
static struct sk_buff *build(struct rove_qp *qp, const struct rove_burst *b,
			     u32 i, struct rove_source *src)
{
	struct dst_entry *dst = qp->dst;
	u32 headroom = LL_RESERVED_SPACE(dst->dev) + dst->header_len;
	u8 hdr[ROVE_MAX_HDR];
	struct rove_frame f;
	struct udphdr *udp;
	struct sk_buff *skb;
	u32 len, crc;
	__le32 icrc;
	void *p;

	rove_burst_frame(b, i, qp->t.dest_qpn, hdr, &f);
	len = sizeof(*udp) + rove_frame_len(&f);
	skb = alloc_skb(headroom + ip_len(qp) + len, GFP_ATOMIC | __GFP_NOWARN);
	if (!skb)
		return NULL;
	skb_reserve(skb, headroom);
	skb_reset_network_header(skb);
	put_ip_header(qp, skb_put(skb, ip_len(qp)), len);
	skb_set_transport_header(skb, ip_len(qp));
	udp = skb_put(skb, sizeof(*udp));
	udp->source = qp->sport;
	udp->dest = htons(ROVE_UDP_PORT);
	udp->len = htons(len);
	udp->check = 0;
	p = skb_put_data(skb, hdr, f.hdr_len);
	crc = rove_icrc_headers(skb_network_header(skb), ip_len(qp), p, f.hdr_len);
	p = skb_put(skb, f.payload_len + f.pad);
	if (f.payload_len && rove_source_read(src, p, f.payload_len)) {
		kfree_skb(skb);
		return ERR_PTR(-EFAULT);
	}
	memset(p + f.payload_len, 0, f.pad);
	icrc = rove_icrc_final(rove_env_crc32(crc, p, f.payload_len + f.pad));
	skb_put_data(skb, &icrc, sizeof(icrc));

	if (qp->av.ipv6)
		udp6_set_csum(false, skb, &qp->av.saddr, &qp->av.daddr, len);
	else
		udp_set_csum(false, skb, qp->av.saddr.s6_addr32[3],
			     qp->av.daddr.s6_addr32[3], len);
	skb->protocol = qp->av.ipv6 ? htons(ETH_P_IPV6) : htons(ETH_P_IP);
	skb->priority = rt_tos2priority(qp->av.tclass);
	skb->dev = dst->dev;
	skb_dst_set(skb, dst_clone(dst));
	skb_shinfo(skb)->destructor_arg = qp->flow;
	skb->destructor = packet_gone;
	refcount_inc(&qp->flow->refs);
	return skb;
}

static void transmit(struct rove_qp *qp, struct sk_buff *skb)
{
	struct net *net = qp->rdev->rnet->net;
	int ret;

	rove_count(qp->rdev, TX_PKTS);
	rove_count_add(qp->rdev, TX_BYTES, skb->len);
	if (qp->av.ipv6)
		ret = ip6_local_out(net, qp->rdev->rnet->sk6->sk, skb);
	else
		ret = ip_local_out(net, qp->rdev->rnet->sk4->sk, skb);
	if (unlikely(net_xmit_eval(ret)))
		rove_count(qp->rdev, TX_ERR);
}

int rove_net_emit(struct rove_qp *qp, const struct rove_burst *b)
{
	struct rove_source src;
	struct sk_buff_head q;
	struct sk_buff *skb;
	u16 ip_id = qp->ip_id;
	int ret = 0;
	u32 i;

	if (!flow_has_room(qp->flow, b->npkts)) {
		rove_count(qp->rdev, TX_BACKPRESSURE);
		return -EAGAIN;
	}
	if (!route(qp)) {
		/* As if the first router had dropped it. */
		rove_count(qp->rdev, TX_ERR);
		return 0;
	}
	if (b->length)
		rove_source_init(&src, qp, b);
	__skb_queue_head_init(&q);
	for (i = 0; i < b->npkts; i++) {
		skb = build(qp, b, i, &src);
		if (IS_ERR_OR_NULL(skb)) {
			ret = skb ? PTR_ERR(skb) : -ENOMEM;
			break;
		}
		__skb_queue_tail(&q, skb);
	}
	if (b->length)
		rove_source_done(&src);
	if (unlikely(ret)) {
		__skb_queue_purge(&q);
		qp->ip_id = ip_id;
		if (ret == -EFAULT)
			return ret;
		/* Nothing that the network has lost: no retry is spent on it. */
		rove_count(qp->rdev, TX_BACKPRESSURE);
		qp->no_memory = true;
		if (!qp->dead)
			hrtimer_start(&qp->timer, ns_to_ktime(NO_MEMORY_NS),
				      HRTIMER_MODE_REL_SOFT);
		return -EAGAIN;
	}
	while ((skb = __skb_dequeue(&q)))
		transmit(qp, skb);
	return 0;
}
