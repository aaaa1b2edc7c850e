// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * net_tx.c - bursts become packets, and these go to the stack
 *
 * While the QP is locked its packets collect in rove_qp.tx; rove_qp_unlock()
 * sends them.  Packets of one length in a row, of one message or of many small
 * ones, share one skb (transport/train.h): one walk through the stack for up to 64
 * of them, and a device that cannot segment UDP leaves it to the stack at the
 * bottom.  Each carries the ICRC of what it will be on the wire.
 *
 * A burst is added whole or not at all, so the transport's state follows the
 * wire.  What the stack then drops is lost like on any wire: the transport
 * recovers.
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
#include <net/xfrm.h>
#include "compat.h"
#include "crc.h"
#include "data.h"
#include "defer.h"
#include "net.h"
#include "netns.h"
#include "qp.h"
#include "transport/env.h"

/* Buffers that one QP may have in qdiscs and devices; more have to wait. */
#define FLOW_MAX	128
/* It may go on when they are down to this. */
#define FLOW_RESUME	(FLOW_MAX / 2)

/*
 * Room behind the headers in each skb: an acknowledgment or a small message
 * needs no page, and the allocation is still one of the stack's smallest.
 */
#define SMALL		128

/**
 * struct tx_cb - what an skb in rove_qp.tx is
 * @seg_len: UDP payload of each packet in it but the last
 * @npkts: packets
 */
struct tx_cb {
	u32 seg_len;
	u32 npkts;
};

#define TX_CB(skb)	((struct tx_cb *)(skb)->cb)

/**
 * struct rove_flow - a QP's account of packets in flight
 * @refs: one for the QP, one for each skb
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
	struct rove_flow *flow = kzalloc(sizeof(*flow), ROVE_GFP_OBJECT);

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

bool rove_flow_empty(const struct rove_flow *flow)
{
	return refcount_read(&flow->refs) == 1;
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

/* The stack has freed or orphaned an skb.  Any context; QP may be locked. */
static void skb_gone(struct sk_buff *skb)
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
	if (skb->sk)
		sock_put(skb->sk);
	flow_put(flow);
	rcu_read_unlock();
}

static bool flow_has_room(struct rove_flow *flow)
{
	if (likely(refcount_read(&flow->refs) < FLOW_MAX))
		return true;
	set_bit(0, &flow->blocked);
	/*
	 * What is freed from here on finds the bit set, but for skbs whose skb_gone() has
	 * looked already: at most one a CPU, and there are more.  Or it is few by now.
	 */
	smp_mb__after_atomic();
	return refcount_read(&flow->refs) <= FLOW_RESUME;
}

void rove_net_forget_route(struct rove_qp *qp)
{
	dst_release(qp->route.dst);
	qp->route.dst = NULL;
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

struct dst_entry *rove_net_route(struct rove_qp *qp)
{
	struct rove_route *r = &qp->route;

	if (likely(rove_route_good(r)))
		return r->dst;
	rove_net_forget_route(qp);
	rove_route_set(r, qp->av.ipv6 ? route6(qp) : route4(qp), qp->av.ipv6);
	return r->dst;
}

static u32 ip_len(const struct rove_qp *qp)
{
	return qp->av.ipv6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr);
}

/* Lengths and checksum are filled in when the skb is complete. */
static void put_headers(struct rove_qp *qp, struct sk_buff *skb)
{
	const struct rove_av *av = &qp->av;
	struct udphdr *udp;

	skb_reset_network_header(skb);
	if (av->ipv6) {
		struct ipv6hdr *h = skb_put(skb, sizeof(*h));

		ip6_flow_hdr(h, av->tclass, htonl(av->flow_label));
		h->nexthdr = IPPROTO_UDP;
		h->hop_limit = av->hop_limit;
		h->saddr = av->saddr;
		h->daddr = av->daddr;
		skb->protocol = htons(ETH_P_IPV6);
	} else {
		struct iphdr *h = skb_put(skb, sizeof(*h));

		*h = (struct iphdr) {
			.version = 4,
			.ihl = sizeof(*h) / 4,
			.tos = av->tclass,
			.id = htons(qp->ip_id),
			.frag_off = htons(IP_DF),
			.ttl = av->hop_limit,
			.protocol = IPPROTO_UDP,
			.saddr = av->saddr.s6_addr32[3],
			.daddr = av->daddr.s6_addr32[3],
		};
		skb->protocol = htons(ETH_P_IP);
	}
	skb_set_transport_header(skb, skb->len);
	udp = skb_put(skb, sizeof(*udp));
	udp->source = qp->sport;
	udp->dest = htons(ROVE_UDP_PORT);
	udp->check = 0;
	rove_icrc_begin(&qp->icrc, skb_network_header(skb), ip_len(qp));
}

/*
 * What is in an IPsec tunnel may go in fragments.  Nothing else may: the ICRC covers
 * IPv4's DF bit, and IPv6's fragments get lost where much is lost.
 */
static bool in_tunnel(const struct dst_entry *dst)
{
	const struct xfrm_state *x = dst_xfrm(dst);

	return x && x->props.mode == XFRM_MODE_TUNNEL;
}

/*
 * What ICMP says of the path MTU does not count (see set_options() of netns.c).  IPv4 asks the
 * socket that it is given, IPv6 the skb's, which is there for this alone: where the
 * route is one that ICMP has made.
 */
static void ignore_icmp(struct rove_qp *qp, struct sk_buff *skb, const struct dst_entry *dst)
{
	skb->ignore_df = in_tunnel(dst);
	if (!qp->av.ipv6 || !(dst_rt6_info(dst)->rt6i_flags & RTF_CACHE))
		return;
	skb->sk = qp->rdev->rnet->sk6->sk;
	sock_hold(skb->sk);
}

/* An skb with headers and @room bytes behind them, the last of @qp->tx. */
static struct sk_buff *open_skb(struct rove_qp *qp, u32 room)
{
	struct dst_entry *dst = qp->route.dst;
	u32 headroom = LL_RESERVED_SPACE(dst->dev) + dst->header_len;
	struct sk_buff *skb;

	skb = alloc_skb(headroom + ip_len(qp) + sizeof(struct udphdr) + room,
			GFP_ATOMIC | __GFP_NOWARN);
	if (!skb)
		return NULL;
	skb_reserve(skb, headroom);
	put_headers(qp, skb);
	skb->priority = rt_tos2priority(qp->av.tclass);
	skb->dev = dst->dev;
	ignore_icmp(qp, skb, dst);
	skb_dst_set(skb, dst_clone(dst));
	skb_shinfo(skb)->tskey = ROVE_TSKEY;
	skb_shinfo(skb)->destructor_arg = qp->flow;
	skb->destructor = skb_gone;
	refcount_inc(&qp->flow->refs);
	__skb_queue_tail(&qp->tx, skb);
	qp->train = (struct rove_train) {};
	return skb;
}

/* What skb_page_frag_refill() gives, if it can. */
#define LARGE		32768

/* A CPU that has begun no new one for so long, or for twice that, has no use for them. */
#define PAGES_KEPT	HZ

/**
 * struct tx_pages - memory that packets are written to when they are not small
 * @pf: kept, so that a page need be neither allocated nor cleared when it comes back;
 *	the first that has is used, for it may still be in the CPU's cache
 * @cur: in use
 * @used: one was begun since @idle ran last
 * @idle: gives them back
 *
 * Shared by all QPs that send on this CPU, by rove_cpu.lock; @idle runs there as well.
 */
struct tx_pages {
	struct page_frag pf[96];
	unsigned int cur;
	bool used;
	struct timer_list idle;
};

static DEFINE_PER_CPU(struct tx_pages, tx_pages);

/* Our references to all of them; the stack may have some still. */
static void put_pages(struct tx_pages *tp)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(tp->pf); i++) {
		if (tp->pf[i].page)
			put_page(tp->pf[i].page);
		tp->pf[i].page = NULL;
	}
}

static void pages_idle(struct timer_list *timer)
{
	struct tx_pages *tp = container_of(timer, struct tx_pages, idle);

	/* Its CPU has gone, after rove_net_tx_idle(), or is back and at it. */
	if (tp != this_cpu_ptr(&tx_pages))
		return;
	local_lock_nested_bh(&rove_cpu.lock);
	if (tp->used)
		mod_timer(timer, jiffies + PAGES_KEPT);
	else
		put_pages(tp);
	tp->used = false;
	local_unlock_nested_bh(&rove_cpu.lock);
}

void rove_net_tx_idle(void)
{
	local_lock_nested_bh(&rove_cpu.lock);
	put_pages(this_cpu_ptr(&tx_pages));
	local_unlock_nested_bh(&rove_cpu.lock);
}

void rove_net_tx_init(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		timer_setup(&per_cpu(tx_pages, cpu).idle, pages_idle, TIMER_PINNED);
}

void rove_net_tx_exit(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		struct tx_pages *tp = per_cpu_ptr(&tx_pages, cpu);

		rove_timer_delete_sync(&tp->idle);
		put_pages(tp);
	}
}

static struct page_frag *cur_pages(void)
{
	struct tx_pages *tp = this_cpu_ptr(&tx_pages);

	return &tp->pf[tp->cur];
}

/* Have @len bytes in one piece at the current page's offset. */
static struct page_frag *refill(u32 len)
{
	struct tx_pages *tp = this_cpu_ptr(&tx_pages);
	struct page_frag *pf = &tp->pf[tp->cur];
	unsigned int i;

	if (likely(pf->page && pf->offset + len <= pf->size))
		return pf;
	for (i = 0; i < ARRAY_SIZE(tp->pf) - 1; i++)
		if (!tp->pf[i].page || page_ref_count(tp->pf[i].page) == 1)
			break;
	tp->cur = i;
	tp->used = true;
	if (!timer_pending(&tp->idle))
		mod_timer(&tp->idle, jiffies + PAGES_KEPT);
	pf = &tp->pf[i];
	/* There were no large ones, and there may be again. */
	if (pf->page && pf->size < LARGE) {
		put_page(pf->page);
		pf->page = NULL;
	}
	if (!skb_page_frag_refill(len, pf, GFP_ATOMIC | __GFP_NOWARN) ||
	    pf->size - pf->offset < len)
		return NULL;
	return pf;
}

/* Where @len more bytes of @skb may be written, in one piece; NULL: nowhere. */
static void *skb_room(struct sk_buff *skb, u32 len)
{
	int n = skb_shinfo(skb)->nr_frags;
	struct page_frag *pf;

	if (!n && skb_tailroom(skb) >= len)
		return skb_tail_pointer(skb);
	pf = refill(len);
	if (!pf)
		return NULL;
	if (n == MAX_SKB_FRAGS &&
	    !skb_can_coalesce(skb, n, pf->page, pf->offset))
		return NULL;
	return page_address(pf->page) + pf->offset;
}

/* They are written. */
static void skb_commit(struct sk_buff *skb, u32 len)
{
	int n = skb_shinfo(skb)->nr_frags;
	struct page_frag *pf;

	if (!n && skb_tailroom(skb) >= len) {
		skb_put(skb, len);
		return;
	}
	pf = cur_pages();
	if (skb_can_coalesce(skb, n, pf->page, pf->offset)) {
		skb_frag_size_add(&skb_shinfo(skb)->frags[n - 1], len);
	} else {
		get_page(pf->page);
		skb_fill_page_desc(skb, n, pf->page, pf->offset, len);
	}
	pf->offset += len;
	skb->len += len;
	skb->data_len += len;
	skb->truesize += len;
}

/* BTH and extended headers: most packets of a long message have a BTH alone. */
static __always_inline void copy_headers(void *to, const void *from, u32 hdr_len)
{
	if (likely(hdr_len == sizeof(struct rove_bth)))
		memcpy(to, from, sizeof(struct rove_bth));
	else
		memcpy(to, from, hdr_len);
}

/* Where a packet of @len bytes may be written: in the last of @qp->tx, or in a new one. */
static void *packet_room(struct rove_qp *qp, u32 len)
{
	void *start = NULL;
	struct sk_buff *skb;

	if (rove_train_takes(&qp->train, len))
		start = skb_room(skb_peek_tail(&qp->tx), len);
	if (likely(start))
		return start;
	skb = open_skb(qp, SMALL);
	if (!skb)
		return NULL;
	start = skb_room(skb, len);
	if (likely(start))
		return start;
	/* No large pages: in one piece, like any other packet. */
	__skb_unlink(skb, &qp->tx);
	kfree_skb(skb);
	skb = open_skb(qp, len);
	return skb ? skb_tail_pointer(skb) : NULL;
}

static int add_packet(struct rove_qp *qp, const u8 *hdr, const struct rove_frame *f,
		      struct rove_source *src)
{
	u32 len = rove_frame_len(f), n = f->hdr_len + f->payload_len + f->pad;
	void *start = packet_room(qp, len);
	struct sk_buff *skb;
	__le32 icrc;

	if (!start)
		return -ENOMEM;
	copy_headers(start, hdr, f->hdr_len);
	if (f->payload_len) {
		int ret = rove_source_read(src, start + f->hdr_len, f->payload_len);

		if (unlikely(ret))
			return ret;
	}
	if (f->pad)
		memset(start + n - f->pad, 0, f->pad);
	rove_icrc_of_segment(&qp->icrc, len, qp->ip_id);
	icrc = rove_icrc_final(rove_icrc_crc32(&qp->icrc, start, n, rove_crc32));
	memcpy(start + n, &icrc, sizeof(icrc));

	skb = skb_peek_tail(&qp->tx);
	skb_commit(skb, len);
	rove_train_add(&qp->train, len);
	TX_CB(skb)->seg_len = qp->train.seg_len;
	TX_CB(skb)->npkts = qp->train.npkts;
	qp->ip_id++;
	return 0;
}

/* The skb gets what depends on all its packets: lengths, checksum, segment size. */
static void finish(struct rove_qp *qp, struct sk_buff *skb)
{
	u32 len = skb->len - ip_len(qp);
	struct tx_cb cb = *TX_CB(skb);
	struct udphdr *udp = udp_hdr(skb);

	/* The stack's from here on. */
	memset(skb->cb, 0, sizeof(skb->cb));
	if (qp->av.ipv6)
		ipv6_hdr(skb)->payload_len = htons(len);
	else
		ip_hdr(skb)->tot_len = htons(skb->len);
	udp->len = htons(len);
	/* A checksum is what GRO and some middle boxes ask for; hardware adds it. */
	if (qp->av.ipv6)
		udp6_set_csum(false, skb, &qp->av.saddr, &qp->av.daddr, len);
	else
		udp_set_csum(false, skb, qp->av.saddr.s6_addr32[3],
			     qp->av.daddr.s6_addr32[3], len);
	if (cb.npkts > 1) {
		skb_shinfo(skb)->gso_type = SKB_GSO_UDP_L4;
		skb_shinfo(skb)->gso_size = cb.seg_len;
		skb_shinfo(skb)->gso_segs = cb.npkts;
	}
	rove_qp_count_add(qp, TX_PKTS, cb.npkts);
	rove_qp_count_add(qp, TX_BYTES, skb->len);
	rove_qp_count(qp, TX_SKBS);
}

void rove_net_flush(struct rove_qp *qp)
{
	struct rove_net *rnet = qp->rdev->rnet;
	struct sk_buff *skb;
	int ret;

	this_cpu_write(rove_cpu.sender, current);
	while ((skb = __skb_dequeue(&qp->tx))) {
		finish(qp, skb);
		if (qp->av.ipv6)
			ret = ip6_local_out(rnet->net, rnet->sk6->sk, skb);
		else
			ret = ip_local_out(rnet->net, rnet->sk4->sk, skb);
		if (unlikely(net_xmit_eval(ret)))
			rove_qp_count(qp, TX_ERR);
	}
	this_cpu_write(rove_cpu.sender, NULL);
	qp->train = (struct rove_train) {};
}

/* Where @qp->tx ended when a burst began. */
struct mark {
	struct sk_buff *last;
	u32 len;
	struct rove_train train;
	u16 ip_id;
};

static struct mark set_mark(struct rove_qp *qp)
{
	struct sk_buff *last = skb_peek_tail(&qp->tx);

	return (struct mark) {
		.last = last,
		.len = last ? last->len : 0,
		.train = qp->train,
		.ip_id = qp->ip_id,
	};
}

static void back_to_mark(struct rove_qp *qp, const struct mark *m)
{
	while (skb_peek_tail(&qp->tx) != m->last)
		kfree_skb(__skb_dequeue_tail(&qp->tx));
	if (m->last) {
		/* Ours alone: this cannot fail. */
		WARN_ON(pskb_trim(m->last, m->len));
		TX_CB(m->last)->npkts = m->train.npkts;
	}
	qp->train = m->train;
	qp->ip_id = m->ip_id;
}

int rove_net_emit(struct rove_qp *qp, const struct rove_burst *b)
{
	u8 hdr[ROVE_MAX_HDR] __aligned(4) __uninitialized;
	struct rove_frame f __uninitialized;
	struct rove_source src;
	struct mark mark;
	int ret = 0;
	u32 i;

	if (!flow_has_room(qp->flow)) {
		rove_qp_count(qp, TX_BACKPRESSURE);
		return -EAGAIN;
	}
	/* What a train is of, it has in common: among that the route. */
	if (!qp->train.npkts && !rove_net_route(qp)) {
		/* As if the first router had dropped it. */
		rove_qp_count(qp, TX_ERR);
		return 0;
	}
	mark = set_mark(qp);
	if (b->length)
		rove_source_init(&src, qp, b);
	for (i = 0; i < b->npkts && !ret; i++) {
		rove_burst_next(b, i, qp->t.dest_qpn, hdr, &f);
		ret = add_packet(qp, hdr, &f, &src);
	}
	if (likely(!ret))
		return 0;
	back_to_mark(qp, &mark);
	if (ret == -EFAULT)
		return ret;
	/* Who brings it lets us run. */
	if (ret == -EAGAIN)
		return -EINPROGRESS;
	/* Nothing that the network has lost: no retry is spent on it. */
	rove_qp_count(qp, TX_BACKPRESSURE);
	rove_qp_want_memory(qp);
	return -EAGAIN;
}
