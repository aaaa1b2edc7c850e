// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * rove_bound.c - what no RoCE in software can beat on a pair of devices
 *
 * Moves payload from one buffer to another by the same steps that each such
 * driver must take, and by no others: copied once into packets of the sizes of RDMA
 * WRITE's, with a CRC taken of all that the ICRC covers; one walk down and one walk up
 * the stack for as many packets as can share a buffer (transport/train.h); there one CRC
 * more, compared, and one copy.  Sender and receiver have a CPU each and share a
 * kernel, so there are no acknowledgments, no queues, no programs.
 *
 *	modprobe rove_bound src=10.1.0.2 dst=10.1.0.1 mtu=4096 message=65536 seconds=3
 *	cat /sys/module/rove_bound/parameters/bytes_per_second
 *
 * Measures while it is loaded.  The CRC-32 is crc32_le().
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/completion.h>
#include <linux/crc32.h>
#include <linux/inet.h>
#include <linux/ip.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/netfilter_ipv4.h>
#include <linux/udp.h>
#include <net/ip.h>
#include <net/route.h>
#include <net/udp.h>
#include <net/udp_tunnel.h>
#include "../../drivers/infiniband/sw/rove/compat.h"
#include "../../drivers/infiniband/sw/rove/transport/train.h"

#define PORT		4792
#define ORDER		4	/* of the pages that hold a super-packet */
#define SLOTS		8	/* super-packets under way at most */
#define MESSAGE_MAX	65536
/* What RoCE v2 puts around the payload: a BTH, in a message's first packet a RETH, too. */
#define BTH_LEN		12
#define RETH_LEN	16
#define CRC_LEN		4
/* What the ICRC covers before them: IPv4, UDP, and eight bytes of ones. */
#define PSEUDO_LEN	36

static char *src = "";
module_param(src, charp, 0444);
static char *dst = "";
module_param(dst, charp, 0444);
static unsigned int mtu = 4096;
module_param(mtu, uint, 0444);
static unsigned int message = MESSAGE_MAX;
module_param(message, uint, 0444);
static unsigned int seconds = 3;
module_param(seconds, uint, 0444);
static unsigned long bytes_per_second;
module_param(bytes_per_second, ulong, 0444);

static struct {
	__be32 saddr;
	__be32 daddr;
	u8 *from;
	u8 *to;
	struct page *slot[SLOTS];
	struct sk_buff_head queue;
	u64 received;
	u64 bad;
	struct completion sent;
} bound;

static const u8 pseudo[PSEUDO_LEN];

static u32 icrc(const u8 *p, u32 len)
{
	return crc32_le(crc32_le(~0, pseudo, PSEUDO_LEN), p, len);
}

static u32 hdr_len(u32 offset)
{
	return offset ? BTH_LEN : BTH_LEN + RETH_LEN;
}

/* A packet of @len bytes with what is at @offset of the message; says so itself. */
static void put_packet(u8 *p, u32 offset, u32 len)
{
	u32 hdr = hdr_len(offset), crc;

	memset(p, 0, hdr);
	memcpy(p, &offset, sizeof(offset));
	memcpy(p + hdr, bound.from + offset, len - hdr - CRC_LEN);
	crc = icrc(p, len - CRC_LEN);
	memcpy(p + len - CRC_LEN, &crc, CRC_LEN);
}

/* As many packets as fit, from @offset of a message on; where the next begins. */
static u32 fill_train(struct rove_train *tr, u8 *p, u32 offset)
{
	for (;;) {
		u32 n = min(mtu, message - offset);
		u32 len = hdr_len(offset) + n + CRC_LEN;

		if (tr->npkts && !rove_train_takes(tr, len))
			return offset;
		put_packet(p + tr->len, offset, len);
		rove_train_add(tr, len);
		offset = (offset + n) % message;
	}
}

/* A super-packet with the messages from @*offset on, which moves. */
static int send_train(struct page *page, u32 *offset)
{
	struct flowi4 fl4 = { .saddr = bound.saddr, .daddr = bound.daddr,
			      .flowi4_proto = IPPROTO_UDP };
	struct rove_train tr = {};
	struct sk_buff *skb;
	struct rtable *rt;
	struct udphdr *udp;
	struct iphdr *ip;
	u32 len;

	rt = ip_route_output_key(&init_net, &fl4);
	if (IS_ERR(rt))
		return PTR_ERR(rt);
	skb = alloc_skb(LL_RESERVED_SPACE(rt->dst.dev) + 128, GFP_KERNEL);
	if (!skb) {
		ip_rt_put(rt);
		return -ENOMEM;
	}
	*offset = fill_train(&tr, page_address(page), *offset);
	len = tr.len;

	skb_reserve(skb, LL_RESERVED_SPACE(rt->dst.dev));
	skb_reset_network_header(skb);
	ip = skb_put_zero(skb, sizeof(*ip));
	skb_set_transport_header(skb, skb->len);
	udp = skb_put_zero(skb, sizeof(*udp));
	get_page(page);
	skb_fill_page_desc(skb, 0, page, 0, len);
	skb->len += len;
	skb->data_len += len;
	skb->truesize += len;
	*ip = (struct iphdr) {
		.version = 4, .ihl = 5, .ttl = 64, .protocol = IPPROTO_UDP,
		.frag_off = htons(IP_DF), .tot_len = htons(skb->len),
		.saddr = bound.saddr, .daddr = bound.daddr,
	};
	len += sizeof(*udp);
	udp->source = htons(PORT);
	udp->dest = htons(PORT);
	udp->len = htons(len);
	udp_set_csum(false, skb, ip->saddr, ip->daddr, len);
	if (tr.npkts > 1) {
		skb_shinfo(skb)->gso_type = SKB_GSO_UDP_L4;
		skb_shinfo(skb)->gso_size = tr.seg_len;
		skb_shinfo(skb)->gso_segs = tr.npkts;
	}
	skb->protocol = htons(ETH_P_IP);
	skb->dev = rt->dst.dev;
	skb_dst_set(skb, &rt->dst);
	ip_local_out(&init_net, NULL, skb);
	return 0;
}

static int sender(void *unused)
{
	u64 end = ktime_get_ns() + (u64)seconds * NSEC_PER_SEC;
	unsigned int i = 0;
	u32 offset = 0;
	int ret = 0;

	while (ktime_get_ns() < end) {
		struct page *page = bound.slot[i++ % SLOTS];

		/* Its last super-packet has been worked off? */
		while (page_ref_count(page) > 1 && ktime_get_ns() < end)
			cond_resched();
		if (page_ref_count(page) > 1)
			break;
		local_bh_disable();
		ret = send_train(page, &offset);
		local_bh_enable();
		if (ret < 0)
			break;
		cond_resched();
	}
	complete(&bound.sent);
	while (!kthread_should_stop())
		schedule_timeout_interruptible(1);
	return ret;
}

static void work_off(struct sk_buff *skb)
{
	u8 *p = skb_frag_address(&skb_shinfo(skb)->frags[0]);
	u32 left = skb->len - sizeof(struct udphdr);
	u32 seg = skb_is_gso(skb) ? skb_shinfo(skb)->gso_size : left;

	while (left > BTH_LEN + CRC_LEN) {
		u32 len = min(seg, left), offset, n;
		u32 crc = icrc(p, len - CRC_LEN);

		memcpy(&offset, p, sizeof(offset));
		n = len - hdr_len(offset) - CRC_LEN;
		if (memcmp(p + len - CRC_LEN, &crc, CRC_LEN) || offset + n > message) {
			bound.bad++;
		} else {
			memcpy(bound.to + offset, p + hdr_len(offset), n);
			bound.received += n;
		}
		p += len;
		left -= len;
	}
}

static int receiver(void *unused)
{
	while (!kthread_should_stop()) {
		struct sk_buff *skb = NULL;

		if (!skb_queue_empty_lockless(&bound.queue))
			skb = skb_dequeue(&bound.queue);
		if (skb) {
			work_off(skb);
			consume_skb(skb);
		}
		cond_resched();
	}
	return 0;
}

static int take(struct sock *sk, struct sk_buff *skb)
{
	if (skb_shinfo(skb)->nr_frags != 1) {
		bound.bad++;
		kfree_skb(skb);
		return 0;
	}
	skb_orphan(skb);
	skb_dst_drop(skb);
	skb_queue_tail(&bound.queue, skb);
	return 0;
}

/* As rove does: let super-packets reach the socket whole. */
static unsigned int keep_whole(void *priv, struct sk_buff *skb,
			       const struct nf_hook_state *state)
{
	if (skb_is_gso(skb) && ip_hdr(skb)->protocol == IPPROTO_UDP &&
	    udp_hdr(skb)->dest == htons(PORT))
		skb_shinfo(skb)->gso_type |= SKB_GSO_UDP_TUNNEL_CSUM;
	return NF_ACCEPT;
}

static const struct nf_hook_ops hook = {
	.hook = keep_whole,
	.pf = NFPROTO_IPV4,
	.hooknum = NF_INET_LOCAL_IN,
	.priority = NF_IP_PRI_LAST,
};

static struct task_struct *run(int (*fn)(void *), const char *name, int cpu)
{
	struct task_struct *task = kthread_create(fn, NULL, "%s", name);

	if (!IS_ERR(task)) {
		kthread_bind(task, cpu);
		wake_up_process(task);
	}
	return task;
}

static int measure(void)
{
	int last = cpumask_last(cpu_online_mask), ret;
	struct task_struct *rx, *tx;
	u64 begin;

	rx = run(receiver, "bound_rx", last);
	if (IS_ERR(rx))
		return PTR_ERR(rx);
	begin = ktime_get_ns();
	tx = run(sender, "bound_tx", cpumask_first(cpu_online_mask));
	if (IS_ERR(tx)) {
		kthread_stop(rx);
		return PTR_ERR(tx);
	}
	wait_for_completion(&bound.sent);
	bytes_per_second = div64_u64(bound.received * NSEC_PER_SEC,
				     ktime_get_ns() - begin);
	ret = kthread_stop(tx);
	kthread_stop(rx);
	skb_queue_purge(&bound.queue);
	if (!ret && (bound.bad || !bound.received)) {
		pr_err("%llu bytes received, %llu packets bad\n",
		       bound.received, bound.bad);
		ret = -EIO;
	}
	return ret;
}

static struct socket *open_socket(void)
{
	struct udp_tunnel_sock_cfg tunnel = { .encap_type = 1, .encap_rcv = take };
	struct udp_port_cfg port = {
		.family = AF_INET,
		.local_udp_port = htons(PORT),
		.use_udp_checksums = 1,
	};
	struct socket *sock;
	int one = 1;
	int err = udp_sock_create(&init_net, &port, &sock);

	if (err)
		return ERR_PTR(err);
	err = sock->ops->setsockopt(sock, SOL_UDP, UDP_GRO,
				    KERNEL_SOCKPTR(&one), sizeof(one));
	if (err) {
		sock_release(sock);
		return ERR_PTR(err);
	}
	rove_tunnel_setup(&init_net, sock, &tunnel);
	return sock;
}

static int alloc_memory(void)
{
	int i;

	bound.from = kvzalloc(message, GFP_KERNEL);
	bound.to = kvzalloc(message, GFP_KERNEL);
	if (!bound.from || !bound.to)
		return -ENOMEM;
	for (i = 0; i < SLOTS; i++) {
		bound.slot[i] = alloc_pages(GFP_KERNEL | __GFP_COMP, ORDER);
		if (!bound.slot[i])
			return -ENOMEM;
	}
	return 0;
}

static void free_memory(void)
{
	int i;

	for (i = 0; i < SLOTS; i++)
		if (bound.slot[i])
			put_page(bound.slot[i]);
	kvfree(bound.from);
	kvfree(bound.to);
}

static int __init bound_init(void)
{
	struct socket *sock;
	int err = -EINVAL;

	if (!in4_pton(src, -1, (u8 *)&bound.saddr, -1, NULL) ||
	    !in4_pton(dst, -1, (u8 *)&bound.daddr, -1, NULL) ||
	    mtu < 256 || mtu > 4096 || !message || message > MESSAGE_MAX || !seconds)
		return err;
	skb_queue_head_init(&bound.queue);
	init_completion(&bound.sent);
	err = alloc_memory();
	if (err)
		goto memory;
	sock = open_socket();
	if (IS_ERR(sock)) {
		err = PTR_ERR(sock);
		goto memory;
	}
	err = nf_register_net_hook(&init_net, &hook);
	if (!err) {
		err = measure();
		nf_unregister_net_hook(&init_net, &hook);
	}
	rove_tunnel_release(sock);
memory:
	free_memory();
	return err;
}

static void __exit bound_exit(void)
{
}

module_init(bound_init);
module_exit(bound_exit);
MODULE_DESCRIPTION("Bound for RDMA over UDP in software");
MODULE_LICENSE("Dual BSD/GPL");
