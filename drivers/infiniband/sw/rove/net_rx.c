// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * net_rx.c - from UDP port 4791 to the QP
 *
 * Runs in softirq, in an RCU read-side section.  An skb is one packet or, as
 * the peer's stack sent it or NAPI merged it, a train of up to 64 (transport/train.h);
 * its packets are taken one by one, the QP locked once for those in a row.
 *
 * If another CPU has the QP locked, or is to do the work, the skb goes to the QP's
 * backlog, and that CPU takes it from there (defer.c).
 *
 * Everything here is done before anybody is trusted: a packet must be whole,
 * of a link, for a QP that exists, with its P_Key, from the QP's peer and with
 * the right ICRC before the transport sees it.  What is not is counted and
 * dropped without an answer; a stranger's packet is neither kept nor summed.
 *
 * The payload stays where it is in the skb.  Its CRC is taken right before it is
 * copied to its place, so the copy finds it in the CPU's cache.
 */
#include <linux/inetdevice.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/udp.h>
#include <net/addrconf.h>
#include "crc.h"
#include "data.h"
#include "defer.h"
#include "doorbell.h"
#include "early_demux.h"
#include "mcast.h"
#include "net.h"
#include "netns.h"
#include "qp.h"
#include "trace.h"
#include "transport/env.h"
#include "transport/icrc.h"

/*
 * A QP's backlog: a window's worth of packets that are not even trains, and the memory
 * of two such of the largest packets.
 */
#define BACKLOG_MAX	1024
#define BACKLOG_BYTES	(8L << 20)
/* Those of all QPs; less if the machine is small. */
#define BACKLOGS_BYTES	(256UL << 20)
/* A QP has this part of what is left of it: however many are full, there is some left. */
#define BACKLOG_SHARE	4
/* They hold so much. */
static atomic_long_t backlogs = ATOMIC_LONG_INIT(0);
static long backlogs_max __read_mostly;

/* For who joins with many QPs and is sent trains: softirqs have to end. */
#define COPIES_MAX	2048

/**
 * struct lag - how long what this CPU takes from them has waited lately
 * @most: jiffies
 * @at: when it last took something, jiffies
 */
struct lag {
	unsigned long most;
	unsigned long at;
};

static DEFINE_PER_CPU(struct lag, lag);

/*
 * So many bytes keep a CPU busy for longer than it takes to call another one, and for
 * the other one to wake a program that sleeps.
 */
#define SPREAD_BYTES	12288

/**
 * struct rx_cb - what is remembered of an skb in a backlog
 * @ifindex: of the device it came in by; 0: the loopback
 * @pos: offset of the first packet that is left
 * @id: its place in the train
 * @since: when it was put there, jiffies
 */
struct rx_cb {
	int ifindex;
	u32 pos;
	u32 id;
	unsigned long since;
};

#define RX_CB(skb)	((struct rx_cb *)(skb)->cb)

/* Not a datagram that was fragmented: that is one packet. */
static bool is_train(const struct sk_buff *skb)
{
	return skb_is_gso(skb) && skb_shinfo(skb)->gso_type & SKB_GSO_UDP_L4;
}

/* Are its packets more than any stack makes one of?  A tap's owner may have cut it so small. */
static bool is_crumbs(const struct sk_buff *skb)
{
	return is_train(skb) && skb->len - sizeof(struct udphdr) >
				skb_shinfo(skb)->gso_size * UDP_MAX_SEGMENTS;
}

/* Has it met no device that adds checksums, or has GRO put it together? */
static bool is_unsummed(const struct sk_buff *skb)
{
	return skb->ip_summed == CHECKSUM_PARTIAL;
}

/* Have we sent it, and over no wire? */
static bool from_this_machine(const struct sk_buff *skb)
{
	return is_unsummed(skb) && skb_shinfo(skb)->tskey == ROVE_TSKEY;
}

/* IPv4 mapped into IPv6, as GIDs are. */
static void dest_addr(const struct sk_buff *skb, struct in6_addr *addr)
{
	if (ip_hdr(skb)->version == 4)
		ipv6_addr_set_v4mapped(ip_hdr(skb)->daddr, addr);
	else
		*addr = ipv6_hdr(skb)->daddr;
}

struct net_device *rove_net_dest_dev(struct net *net, const struct sk_buff *skb)
{
	if (ip_hdr(skb)->version == 4)
		return __ip_dev_find(net, ip_hdr(skb)->daddr, false);
	return ipv6_dev_find(net, &ipv6_hdr(skb)->daddr, NULL);
}

/*
 * The link that has the destination address among its GIDs.  A second device may have
 * the address, too, and be the one that IP finds: lo has those of a load balancer.
 */
static struct rove_dev *find_by_addr(struct rove_net *rnet,
				     const struct sk_buff *skb)
{
	struct net_device *dev = rove_net_dest_dev(rnet->net, skb);
	struct rove_dev *rdev = NULL;
	struct in6_addr addr;

	dest_addr(skb, &addr);
	if (dev)
		rdev = rove_net_find_owner(rnet, dev);
	return rdev ?: rove_net_find_gid(rnet, (union ib_gid *)&addr);
}

/* The device that a packet came in by, which a VRF shows as itself. */
static struct net_device *in_dev(struct rove_net *rnet, const struct sk_buff *skb)
{
	struct net_device *dev;

	if (likely(!netif_is_l3_master(skb->dev)))
		return skb->dev;
	dev = dev_get_by_index_rcu(rnet->net, ip_hdr(skb)->version == 4 ?
					      inet_sdif(skb) : inet6_sdif(skb));
	return dev ?: skb->dev;
}

/* The way of what is sent to an address of this machine: the loopback's, or a VRF's own. */
static bool is_within_machine(const struct net_device *dev)
{
	return dev->flags & IFF_LOOPBACK || netif_is_l3_master(dev);
}

/* The link that a packet came in by. */
static struct rove_dev *find_link(struct rove_net *rnet, struct net_device *dev,
				  const struct sk_buff *skb)
{
	if (is_within_machine(dev))
		return find_by_addr(rnet, skb);
	return rove_net_find_owner(rnet, dev);
}

/* Do the device, VLANs told apart, and the addresses belong to the connection? */
static bool from_peer(const struct rove_qp *qp, const struct sk_buff *skb)
{
	const struct rove_av *av = &qp->av;

	/* Datagrams come from anywhere. */
	if (qp->t.service == ROVE_SVC_UD)
		return true;
	if (RX_CB(skb)->ifindex && RX_CB(skb)->ifindex != av->ifindex)
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

/**
 * struct rx - an skb being worked off
 * @rdev: the link it came in by
 * @skb: starts with the UDP header
 * @seq: walks over its pieces
 * @block: contiguous bytes not yet taken
 * @left: their number
 * @pos: offset of what follows them
 * @qp: QP of the packet before this one, locked; or NULL
 * @of: QP whose backlog this was the first of; or NULL
 * @known: the addresses fit @qp
 * @behind: the packet at hand, and the rest, are to go to @qp's backlog
 * @same_id: the train's packets had the same IPv4 identification, not one counted up
 * @connected: there was a packet for a connected QP, from its peer and right
 * @requests: packets that ended a message
 * @copies: datagrams delivered to members of groups
 * @first_id: IPv4 identification of the first
 * @now: time
 * @icrc: the headers, those of the packet at hand once made so
 * @pkt: the packet at hand
 * @row: what may follow it without being looked at, if @qp has taken it
 */
struct rx {
	struct rove_dev *rdev;
	struct sk_buff *skb;
	struct skb_seq_state seq;
	const u8 *block;
	u32 left;
	u32 pos;
	struct rove_qp *qp;
	const struct rove_qp *of;
	bool known;
	bool behind;
	bool same_id;
	bool connected;
	u16 first_id;
	u32 requests;
	u32 copies;
	u64 now;
	struct rove_icrc icrc;
	struct rove_pkt pkt;
	struct rove_row row;
};

/* Start, or start again, at offset @pos of the skb. */
static void seek(struct rx *rx, u32 pos)
{
	skb_prepare_seq_read(rx->skb, pos, rx->skb->len, &rx->seq);
	rx->block = NULL;
	rx->left = 0;
	rx->pos = 0;
}

/* Take the next @len bytes: false if they lie in too many pieces. */
static __always_inline bool take(struct rx *rx, u32 len, struct rove_payload *pl)
{
	pl->n = 0;
	while (len) {
		struct kvec *piece = &pl->piece[pl->n];

		if (!rx->left) {
			rx->left = skb_seq_read(rx->pos, &rx->block, &rx->seq);
			if (!rx->left)
				return false;
			rx->pos += rx->left;
		}
		if (pl->n++ == ROVE_MAX_PIECES)
			return false;
		piece->iov_base = (void *)rx->block;
		piece->iov_len = min(len, rx->left);
		rx->block += piece->iov_len;
		rx->left -= piece->iov_len;
		len -= piece->iov_len;
	}
	return true;
}

/* Copy @len bytes from offset @pos. */
static void peek(const struct rove_payload *pl, u32 pos, void *to, u32 len)
{
	u32 i;

	for (i = 0; len && i < pl->n; i++) {
		const struct kvec *piece = &pl->piece[i];
		u32 n;

		if (pos >= piece->iov_len) {
			pos -= piece->iov_len;
			continue;
		}
		n = min_t(u32, len, piece->iov_len - pos);
		memcpy(to, piece->iov_base + pos, n);
		to += n;
		len -= n;
		pos = 0;
	}
}

/* Leave out @skip bytes at the front, and all behind @len more. */
static void crop(struct rove_payload *pl, u32 skip, u32 len)
{
	u32 i, n = 0;

	for (i = 0; len && i < pl->n; i++) {
		struct kvec piece = pl->piece[i];

		if (skip >= piece.iov_len) {
			skip -= piece.iov_len;
			continue;
		}
		piece.iov_base += skip;
		piece.iov_len = min_t(u32, piece.iov_len - skip, len);
		len -= piece.iov_len;
		skip = 0;
		pl->piece[n++] = piece;
	}
	pl->n = n;
}

/* Take the headers off the front, and off the end the ICRC, which is returned. */
static __always_inline __le32 take_icrc(struct rove_payload *pl, u32 hdr_len, u32 len)
{
	struct kvec *piece = &pl->piece[0];
	u32 body = len - hdr_len - ROVE_ICRC_LEN;
	__le32 icrc;

	if (likely(pl->n == 1)) {
		memcpy(&icrc, piece->iov_base + len - ROVE_ICRC_LEN, sizeof(icrc));
		piece->iov_base += hdr_len;
		piece->iov_len = body;
		pl->n = !!body;
	} else {
		peek(pl, len - ROVE_ICRC_LEN, &icrc, sizeof(icrc));
		crop(pl, hdr_len, body);
	}
	return icrc;
}

/*
 * Is the ICRC right if the packet had this IPv4 identification on the wire?  At @bth there
 * are @row bytes in a row: all that it covers, or the headers, and @pl follows.
 */
static __always_inline bool icrc_fits(struct rx *rx, const u8 *bth, u32 row,
				      const struct rove_payload *pl, __le32 icrc)
{
	u32 crc = rove_icrc_crc32(&rx->icrc, bth, row, rove_crc32);
	u32 i;

	for (i = 0; row == rx->pkt.hdr_len && i < pl->n; i++)
		crc = rove_crc32(crc, pl->piece[i].iov_base, pl->piece[i].iov_len);
	return icrc == rove_icrc_final(crc);
}

static void let_go(struct rx *rx)
{
	if (rx->qp) {
		rove_doorbell_settle(rx->qp);
		rove_qp_unlock(rx->qp);
	}
	rx->qp = NULL;
}

static void use_qp(struct rx *rx, struct rove_qp *qp)
{
	rx->qp = qp;
	rx->known = from_peer(qp, rx->skb);
}

/* Lock the packet's QP, unless it is: false if there is none. */
static bool lock_qp(struct rx *rx, u32 qpn)
{
	struct rove_qp *qp;

	if (rx->qp && rx->qp->t.qpn == qpn)
		return true;
	let_go(rx);
	qp = rove_qp_find(rx->rdev, qpn);
	if (!qp)
		return false;
	rove_qp_lock(qp);
	use_qp(rx, qp);
	/* What waits there came before. */
	rx->behind = qp != rx->of && rx->known && !skb_queue_empty_lockless(&qp->backlog);
	return true;
}

/* The packet at hand, the train's @id-th, is a datagram for the QP locked. */
static noinline void receive_datagram(struct rx *rx, u32 len, u32 id)
{
	struct rove_origin origin;

	rove_net_origin(rx->qp, rx->skb, RX_CB(rx->skb)->ifindex, len,
			rx->first_id + (rx->same_id ? 0 : id), &origin);
	rx->pkt.origin = &origin;
	rove_tqp_rx(&rx->qp->t, &rx->pkt, rx->now);
}

/* The packet at hand, the train's @id-th, as it was on the wire. */
static __always_inline void to_segment(struct rx *rx, u32 len, u32 id)
{
	rove_icrc_of_segment(&rx->icrc, len, rx->first_id + (rx->same_id ? 0 : id));
}

/* Merged from packets that all had the same identification, or no longer? */
static noinline bool icrc_fits_otherwise(struct rx *rx, const u8 *bth, u32 row,
					 const struct rove_payload *pl, u32 len, u32 id,
					 __le32 icrc)
{
	if (!id || !is_train(rx->skb))
		return false;
	rx->same_id = !rx->same_id;
	to_segment(rx, len, id);
	if (icrc_fits(rx, bth, row, pl, icrc))
		return true;
	rx->same_id = !rx->same_id;
	return false;
}

/*
 * Is the packet's ICRC right?  @pl is cropped to payload and pad.
 */
static __always_inline bool icrc_right(struct rx *rx, const u8 *bth, struct rove_payload *pl,
				       u32 len, u32 id)
{
	u32 row = pl->n == 1 ? len - ROVE_ICRC_LEN : rx->pkt.hdr_len;
	__le32 icrc = take_icrc(pl, rx->pkt.hdr_len, len);

	if (is_train(rx->skb))
		to_segment(rx, len, id);
	return likely(icrc_fits(rx, bth, row, pl, icrc)) ||
	       icrc_fits_otherwise(rx, bth, row, pl, len, id, icrc);
}

/*
 * A packet for each QP of a group.  They read the same skb one after the other, and
 * leave it as it is (hazard 33).  No QP is locked.
 */
static noinline void receive_multicast(struct rx *rx, const u8 *bth, struct rove_payload *pl,
				       u32 len, u32 id)
{
	struct rove_pkt *pkt = &rx->pkt;
	const struct sk_buff *skb = rx->skb;
	const struct rove_member *m;
	const struct rove_group *g;
	struct in6_addr addr;
	bool right;

	dest_addr(skb, &addr);
	g = rove_group_find(rx->rdev, &addr);
	if (!g || !(pkt->op->flags & ROVE_OPF_DETH)) {
		rove_count(rx->rdev, RX_NO_QP);
		return;
	}
	/* which the CRC's state wants */
	local_lock_nested_bh(&rove_cpu.lock);
	right = icrc_right(rx, bth, pl, len, id);
	local_unlock_nested_bh(&rove_cpu.lock);
	if (!right) {
		rove_count(rx->rdev, RX_ICRC);
		return;
	}
	crop(pl, 0, pkt->payload_len);
	pkt->buf = pl;
	rove_count(rx->rdev, RX_PKTS);
	list_for_each_entry_rcu(m, &g->members, list) {
		if (m->qp->no_own_multicast && skb->pkt_type == PACKET_LOOPBACK &&
		    m->qp->t.qpn == pkt->src_qpn)
			continue;
		if (rx->copies++ >= COPIES_MAX) {
			rove_count(rx->rdev, RX_MCAST_EXCESS);
			continue;
		}
		rove_qp_lock(m->qp);
		rx->qp = m->qp;
		receive_datagram(rx, len, id);
		let_go(rx);
	}
}

/* Read and check the packet, and lock its QP: false if it is not for a QP from its peer. */
static noinline bool admit(struct rx *rx, struct rove_payload *pl, const u8 *bth, u32 len, u32 id)
{
	struct rove_pkt *pkt = &rx->pkt;

	rx->row.len = 0;
	if (rove_pkt_parse(pkt, bth, len)) {
		rove_count(rx->rdev, RX_RUNT);
		return false;
	}
	if (!pkey_fits(pkt->pkey)) {
		rove_count(rx->rdev, RX_BAD_PKEY);
		return false;
	}
	if (!lock_qp(rx, pkt->qpn)) {
		if (pkt->qpn == ROVE_MULTICAST_QPN)
			receive_multicast(rx, bth, pl, len, id);
		else
			rove_count(rx->rdev, RX_NO_QP);
		return false;
	}
	if (unlikely(rx->behind))
		return false;
	if (rx->qp->t.state < ROVE_TQP_RTR) {
		rove_qp_count(rx->qp, RX_BAD_STATE);
		return false;
	}
	if (!rx->known) {
		rove_qp_count(rx->qp, RX_BAD_SOURCE);
		return false;
	}
	rove_row_begin(&rx->row, pkt, bth, len);
	return true;
}

/* One packet of @len bytes, lying in @pl; @id is its place in the train. */
static __always_inline void receive(struct rx *rx, struct rove_payload *pl, u32 len, u32 id)
{
	u8 buf[ROVE_MAX_HDR] __aligned(4) __uninitialized;
	struct rove_pkt *pkt = &rx->pkt;
	const u8 *bth = pl->piece[0].iov_base;

	if (pl->piece[0].iov_len < min_t(u32, len, ROVE_MAX_HDR)) {
		peek(pl, 0, buf, ROVE_MAX_HDR);
		bth = buf;
	}
	if (!rove_row_goes_on(&rx->row, pkt, bth, len) && !admit(rx, pl, bth, len, id))
		return;
	if (!icrc_right(rx, bth, pl, len, id)) {
		rove_qp_count(rx->qp, RX_ICRC);
		return;
	}
	/* There is a pad. */
	if (unlikely(pkt->hdr_len + pkt->payload_len + ROVE_ICRC_LEN != len))
		crop(pl, 0, pkt->payload_len);
	pkt->buf = pl;
	rove_qp_count(rx->qp, RX_PKTS);
	trace_rove_rx(rx->qp, pkt);
	rx->requests += (pkt->op->flags & (ROVE_OPF_REQUEST | ROVE_OPF_LAST)) ==
			(ROVE_OPF_REQUEST | ROVE_OPF_LAST);
	if (unlikely(pkt->op->flags & ROVE_OPF_DETH))
		receive_datagram(rx, len, id);
	else
		rove_tqp_rx(&rx->qp->t, pkt, rx->now);
	rx->connected |= rx->qp->t.service != ROVE_SVC_UD;
	/* A stranger's packet does not come so far. */
	rx->qp->local_peer = from_this_machine(rx->skb);
}

/* The next packet of the train, in as few pieces as it needs. */
static bool next(struct rx *rx, u32 pos, u32 len, struct rove_payload *pl)
{
	if (likely(take(rx, len, pl)))
		return true;
	/* Hacked to pieces: put them together.  QPs point nowhere into it. */
	skb_abort_seq_read(&rx->seq);
	/* Or it would be unmapped once more. */
	rx->seq.frag_data = NULL;
	if (skb_linearize(rx->skb))
		return false;
	seek(rx, pos);
	return take(rx, len, pl);
}

/*
 * False: the backlog is full.  Nobody is charged for what waits there, and a program may
 * have many QPs and send to them itself: who has little there comes before who has much.
 */
static bool put_off(struct rove_qp *qp, struct sk_buff *skb)
{
	long share = (backlogs_max - atomic_long_read(&backlogs)) / BACKLOG_SHARE;
	u32 size = skb->truesize;

	if (skb_queue_len_lockless(&qp->backlog) >= BACKLOG_MAX ||
	    atomic_read(&qp->backlog_bytes) > min(share, BACKLOG_BYTES))
		return false;
	atomic_add(size, &qp->backlog_bytes);
	atomic_long_add(size, &backlogs);
	/* It leaves the RCU read-side section that these depend on. */
	skb_orphan(skb);
	skb_dst_drop(skb);
	skb->dev = NULL;
	RX_CB(skb)->since = jiffies;
	skb_queue_tail(&qp->backlog, skb);
	return true;
}

/* The train's rest, from offset @pos on, begins with a packet for the QP locked. */
static noinline void put_off_rest(struct rx *rx, u32 pos, u32 id)
{
	struct sk_buff *rest = skb_clone(rx->skb, GFP_ATOMIC | __GFP_NOWARN);

	if (rest) {
		RX_CB(rest)->pos = pos;
		RX_CB(rest)->id = id;
		if (put_off(rx->qp, rest)) {
			rove_defer(rx->qp);
			return;
		}
		kfree_skb(rest);
	}
	rove_qp_count(rx->qp, RX_BACKLOG);
}

/* Take the skb apart.  @rx->qp may be locked already; afterwards none is. */
static void work_off(struct rx *rx)
{
	struct sk_buff *skb = rx->skb;
	u32 pos = RX_CB(skb)->pos, id = RX_CB(skb)->id;
	u32 seg = is_train(skb) ? skb_shinfo(skb)->gso_size : skb->len;

	rx->now = ktime_get_ns();
	rx->first_id = ntohs(ip_hdr(skb)->id);
	rove_icrc_begin(&rx->icrc, skb_network_header(skb),
			skb_transport_offset(skb) - skb_network_offset(skb));
	seek(rx, pos);
	for (; pos < skb->len; id++) {
		u32 len = min(seg, skb->len - pos);
		struct rove_payload pl __uninitialized;

		if (!next(rx, pos, len, &pl)) {
			rove_count(rx->rdev, RX_RUNT);
			break;
		}
		receive(rx, &pl, len, id);
		if (unlikely(rx->behind)) {
			put_off_rest(rx, pos, id);
			break;
		}
		pos += len;
	}
	skb_abort_seq_read(&rx->seq);
	if (rx->qp && rx->connected) {
		if (rx->requests > 1 || skb->len >= SPREAD_BYTES)
			rx->qp->stream = 8;
		else if (rx->requests && rx->qp->stream)
			rx->qp->stream--;
	}
}

/* The QP of the (first) packet, or NULL. */
static struct rove_qp *find_qp(struct rove_dev *rdev, const struct sk_buff *skb)
{
	struct rove_bth buf;
	const struct rove_bth *bth = skb_header_pointer(skb, sizeof(struct udphdr),
							sizeof(buf), &buf);

	return bth ? rove_qp_find(rdev, be32_to_cpu(bth->qpn) & ROVE_PSN_MASK) :
		     NULL;
}

/*
 * Is it worth another CPU?  A train that this machine has sent, or that it will
 * send as the answer to a READ: let the sender and the receiver, which run on one
 * CPU otherwise, run at the same time; or one that GRO has put together.  What comes from
 * a wire in single packets has been spread by the device.
 */
static bool worth_spreading(const struct rove_qp *qp, const struct sk_buff *skb)
{
	const struct rove_opcode_info *op;
	struct rove_reth reth_buf, *reth;
	struct rove_bth bth_buf, *bth;
	u32 bytes = skb->len;

	if (!is_unsummed(skb) || num_online_cpus() == 1)
		return false;
	bth = skb_header_pointer(skb, sizeof(struct udphdr), sizeof(bth_buf), &bth_buf);
	if (!bth)
		return false;
	op = &rove_opcodes[bth->opcode];
	if (op->flags & ROVE_OPF_READ && op->flags & ROVE_OPF_RETH) {
		reth = skb_header_pointer(skb, sizeof(struct udphdr) + op->hdr_len - sizeof(*reth),
					  sizeof(reth_buf), &reth_buf);
		bytes = reth ? be32_to_cpu(reth->len) : 0;
		if (is_train(skb))
			bytes *= max(skb_shinfo(skb)->gso_segs, 1);
	}
	if (READ_ONCE(qp->stream) && op->flags & (ROVE_OPF_SEND | ROVE_OPF_WRITE) &&
	    qp->t.service != ROVE_SVC_UD)
		return true;
	return bytes >= SPREAD_BYTES;
}

static int neighbour_cpu(void)
{
	unsigned int cpu = cpumask_next(smp_processor_id(), cpu_online_mask);

	return cpu < nr_cpu_ids ? cpu : cpumask_first(cpu_online_mask);
}

/*
 * Lock the QP to work the skb off here and now.  False: it has to go to the backlog,
 * because it is not the first, because somebody else has the lock, or because
 * another CPU is the place for it.
 */
static bool lock_here(struct rove_qp *qp, const struct sk_buff *skb, bool known)
{
	bool spread = known && worth_spreading(qp, skb);
	bool settled;

	if (!skb_queue_empty_lockless(&qp->backlog) || !rove_qp_trylock(qp))
		return false;
	/* In the middle of a train, for another QP's packet. */
	if (unlikely(qp->deferring)) {
		rove_qp_unlock(qp);
		return false;
	}
	settled = qp->cpu == smp_processor_id();
	/* What comes from elsewhere is refused, and does not choose the CPU. */
	if (known && rove_at_home(qp) && spread &&
	    (rove_may_move(qp) || (settled && rove_may_leave(qp))))
		WRITE_ONCE(qp->cpu, neighbour_cpu());
	if (!spread || qp->cpu == smp_processor_id())
		return true;
	rove_qp_unlock(qp);
	return false;
}

void rove_net_rx_init(void)
{
	backlogs_max = min(BACKLOGS_BYTES, totalram_pages() * (PAGE_SIZE / 16));
}

int rove_net_rcv(struct sock *sk, struct sk_buff *skb)
{
	u32 ip_len = skb_transport_offset(skb) - skb_network_offset(skb);
	struct rove_net *rnet = rove_net(sock_net(sk));
	struct net_device *dev = in_dev(rnet, skb);
	struct rx rx = {
		.rdev = find_link(rnet, dev, skb),
		.skb = skb,
	};
	/* The stack may loop what is sent straight back: no further QP can be locked. */
	bool nested = this_cpu_read(rove_cpu.sender) == current;
	struct rove_qp *qp;

	if (!rx.rdev)
		goto drop;
	if (ip_len > ROVE_MAX_IP_HDR || skb->len <= sizeof(struct udphdr) || is_crumbs(skb)) {
		rove_count(rx.rdev, RX_RUNT);
		goto drop;
	}
	rove_count(rx.rdev, RX_SKBS);
	rove_count_add(rx.rdev, RX_BYTES, skb->len);
	*RX_CB(skb) = (struct rx_cb) {
		.ifindex = is_within_machine(dev) ? 0 : dev->ifindex,
		.pos = sizeof(struct udphdr),
	};
	qp = find_qp(rx.rdev, skb);
	if (qp) {
		/* Not locked yet: while the path changes it does not matter which one counts. */
		bool known = data_race(from_peer(qp, skb));

		if (nested || !lock_here(qp, skb, known)) {
			if (known && put_off(qp, skb)) {
				rove_defer(qp);
				return 0;
			}
			if (known)
				rove_count(rx.rdev, RX_BACKLOG);
			else
				rove_count(rx.rdev, RX_BAD_SOURCE);
			goto drop;
		}
		use_qp(&rx, qp);
	} else if (nested) {
		rove_count(rx.rdev, RX_BACKLOG);
		goto drop;
	}
	work_off(&rx);
	let_go(&rx);
	/* The program is awake by now.  What comes by the loopback has its route. */
	if (rx.connected && RX_CB(skb)->ifindex)
		rove_early_demux_learn(rnet, skb);
	consume_skb(skb);
	return 0;
drop:
	kfree_skb(skb);
	return 0;
}

static struct sk_buff *take_off(struct rove_qp *qp)
{
	struct sk_buff *skb = skb_dequeue(&qp->backlog);

	if (skb) {
		atomic_sub(skb->truesize, &qp->backlog_bytes);
		atomic_long_sub(skb->truesize, &backlogs);
	}
	return skb;
}

void rove_net_backlog_purge(struct rove_qp *qp)
{
	struct sk_buff *skb;

	while ((skb = take_off(qp)))
		kfree_skb(skb);
}

/* It counts for as long as it was.  A CPU that is hung, or gone, tells of none. */
static unsigned long lag_of(const struct lag *l)
{
	unsigned long most = READ_ONCE(l->most);

	return jiffies - READ_ONCE(l->at) <= most ? most : 0;
}

/* The longest of late counts: the next may be of another QP. */
static void note_lag(unsigned long waited)
{
	struct lag *l = this_cpu_ptr(&lag);
	unsigned long most = lag_of(l);

	/* One tick may have been a moment. */
	waited -= !!waited;
	most -= DIV_ROUND_UP(most, 8);
	WRITE_ONCE(l->most, max(waited, most));
	WRITE_ONCE(l->at, jiffies);
}

u64 rove_net_lag(void)
{
	unsigned long most = 0;
	int cpu;

	for_each_online_cpu(cpu)
		most = max(most, lag_of(per_cpu_ptr(&lag, cpu)));
	return jiffies_to_nsecs(most);
}

bool rove_net_backlog(struct rove_qp *qp)
{
	struct rx rx = { .rdev = qp->rdev, .of = qp };

	rx.skb = take_off(qp);
	if (!rx.skb)
		return false;
	note_lag(jiffies - RX_CB(rx.skb)->since);
	rcu_read_lock();
	use_qp(&rx, qp);
	work_off(&rx);
	if (unlikely(rx.qp != qp)) {
		/* The train had packets of another, too. */
		let_go(&rx);
		rove_qp_lock(qp);
	}
	rcu_read_unlock();
	consume_skb(rx.skb);
	return !skb_queue_empty_lockless(&qp->backlog);
}
