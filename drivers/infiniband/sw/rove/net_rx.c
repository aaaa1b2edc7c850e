// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * net_rx.c - from UDP port 4791 to the QP
 *
 * Runs in softirq, in an RCU read-side section.  Everything here is done
 * before anybody is trusted: a packet must be whole, of a link, for a QP that
 * exists, from the QP's peer, with its P_Key and with the right ICRC before
 * the transport sees it.  What is not is counted and dropped without an answer.
 */
#include <linux/inetdevice.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/ktime.h>
#include <linux/udp.h>
#include <net/addrconf.h>
#include "doorbell.h"
#include "net.h"
#include "netns.h"
#include "qp.h"
#include "transport/env.h"

/* The longest IP header that ICRC is computed over: IPv4 with options. */
#define MAX_IP_LEN	60

/* The link that has the destination address among its GIDs. */
static struct rove_dev *find_by_addr(struct rove_net *rnet,
				     const struct sk_buff *skb)
{
	struct net_device *dev;

	if (ip_hdr(skb)->version == 4)
		dev = __ip_dev_find(rnet->net, ip_hdr(skb)->daddr, false);
	else
		dev = ipv6_dev_find(rnet->net, &ipv6_hdr(skb)->daddr, NULL);
	return dev ? rove_net_find_owner(rnet, dev) : NULL;
}

/* The link that a packet came in by. */
static struct rove_dev *find_link(struct rove_net *rnet,
				  const struct sk_buff *skb)
{
	/* Sent to an address of this machine: it came in by the loopback. */
	if (skb->dev->flags & IFF_LOOPBACK)
		return find_by_addr(rnet, skb);
	return rove_net_find_owner(rnet, skb->dev);
}

/* Do the device, VLANs told apart, and the addresses belong to the connection? */
static bool from_peer(const struct rove_qp *qp, const struct sk_buff *skb)
{
	const struct rove_av *av = &qp->av;

	if (skb->dev->ifindex != av->ifindex &&
	    !(skb->dev->flags & IFF_LOOPBACK))
		return false;
	if (ip_hdr(skb)->version == 4)
		return !av->ipv6 &&
		       ip_hdr(skb)->saddr == av->daddr.s6_addr32[3] &&
		       ip_hdr(skb)->daddr == av->saddr.s6_addr32[3];
	return av->ipv6 && ipv6_addr_equal(&ipv6_hdr(skb)->saddr, &av->daddr) &&
	       ipv6_addr_equal(&ipv6_hdr(skb)->daddr, &av->saddr);
}

/* Same key, and not both limited members (10.9.3); ours is a full member. */
static bool pkey_fits(u16 pkey)
{
	return (pkey & 0x7fff) == (ROVE_PKEY_DEFAULT & 0x7fff);
}

static bool icrc_fits(const struct sk_buff *skb, const struct rove_pkt *pkt,
		      u32 ip_len, const u8 *bth, u32 len)
{
	u32 rest = len - pkt->hdr_len - ROVE_ICRC_LEN;
	__le32 icrc;
	u32 crc;

	crc = rove_icrc_headers(skb_network_header(skb), ip_len, bth,
				pkt->hdr_len);
	crc = rove_env_crc32(crc, bth + pkt->hdr_len, rest);
	memcpy(&icrc, bth + pkt->hdr_len + rest, sizeof(icrc));
	return icrc == rove_icrc_final(crc);
}

static void receive(struct rove_dev *rdev, const struct sk_buff *skb)
{
	u32 ip_len = skb_transport_offset(skb) - skb_network_offset(skb);
	u32 len = skb->len - sizeof(struct udphdr);
	u8 *bth = skb->data + sizeof(struct udphdr);
	struct rove_pkt pkt;
	struct rove_qp *qp;

	if (ip_len > MAX_IP_LEN || rove_pkt_parse(&pkt, bth, len)) {
		rove_count(rdev, RX_RUNT);
		return;
	}
	pkt.buf = bth;
	qp = rove_qp_find(rdev, pkt.qpn);
	if (!qp) {
		rove_count(rdev, RX_NO_QP);
		return;
	}
	if (!pkey_fits(pkt.pkey)) {
		rove_count(rdev, RX_BAD_PKEY);
		return;
	}
	if (!icrc_fits(skb, &pkt, ip_len, bth, len)) {
		rove_count(rdev, RX_ICRC);
		return;
	}
	rove_qp_lock(qp);
	if (qp->t.state < ROVE_TQP_RTR) {
		rove_count(rdev, RX_BAD_STATE);
	} else if (!from_peer(qp, skb)) {
		rove_count(rdev, RX_BAD_SOURCE);
	} else {
		rove_count(rdev, RX_PKTS);
		rove_count_add(rdev, RX_BYTES, skb->len);
		rove_tqp_rx(&qp->t, &pkt, ktime_get_ns());
		if (!(pkt.op->flags & ROVE_OPF_REQUEST))
			rove_doorbell_settle(qp);
	}
	rove_qp_unlock(qp);
}

int rove_net_rcv(struct sock *sk, struct sk_buff *skb)
{
	struct rove_dev *rdev = find_link(rove_net(sock_net(sk)), skb);

	if (!rdev)
		goto out;
	/* One piece from here on; the copy of a shared skb is ours. */
	if (skb_linearize(skb) || skb->len < sizeof(struct udphdr)) {
		rove_count(rdev, RX_RUNT);
		goto out;
	}
	receive(rdev, skb);
out:
	consume_skb(skb);
	return 0;
}
