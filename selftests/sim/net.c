// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * net.c - the wire: real IP packets on an unreliable network
 *
 * Packets are built byte by byte as the kernel would send them, because the
 * ICRC covers most of the IP header too.  A receiver does what a stack and a
 * driver do before the transport: lengths, ICRC, QP, source.
 */
#include "sim.h"

#define ETH_HDR_MAX	(60 + 8)	/* IPv4 with options, UDP */

/*
 * @flip says whether a bit was flipped, and whether where the ICRC must notice:
 * such a packet must never reach the transport, and the others always must.
 */
struct packet {
	u32 refs;
	u32 len;
	u32 ip_len;
	u32 bth_len;		/* set on arrival */
	struct sim_qp *from;
	struct sim_qp *to;
	bool injected;		/* may be malformed */
	enum { FLIP_NONE, FLIP_HARMLESS, FLIP_COVERED } flip;
	struct packet *next_free;
	u8 data[];
};

#ifndef __SANITIZE_ADDRESS__
#define POOL_SMALL	256
#define POOL_LARGE	(ETH_HDR_MAX + ROVE_MAX_HDR + 4096 + ROVE_ICRC_LEN)
static struct packet *pool[2];
#endif

const char *opcode_name(u8 opcode)
{
	static const char *const name[] = {
		[ROVE_OP_SEND_FIRST] = "SEND_FIRST",
		[ROVE_OP_SEND_MIDDLE] = "SEND_MIDDLE",
		[ROVE_OP_SEND_LAST] = "SEND_LAST",
		[ROVE_OP_SEND_LAST_IMM] = "SEND_LAST_IMM",
		[ROVE_OP_SEND_ONLY] = "SEND_ONLY",
		[ROVE_OP_SEND_ONLY_IMM] = "SEND_ONLY_IMM",
		[ROVE_OP_WRITE_FIRST] = "WRITE_FIRST",
		[ROVE_OP_WRITE_MIDDLE] = "WRITE_MIDDLE",
		[ROVE_OP_WRITE_LAST] = "WRITE_LAST",
		[ROVE_OP_WRITE_LAST_IMM] = "WRITE_LAST_IMM",
		[ROVE_OP_WRITE_ONLY] = "WRITE_ONLY",
		[ROVE_OP_WRITE_ONLY_IMM] = "WRITE_ONLY_IMM",
		[ROVE_OP_READ_REQUEST] = "READ_REQUEST",
		[ROVE_OP_READ_RESP_FIRST] = "READ_RESP_FIRST",
		[ROVE_OP_READ_RESP_MIDDLE] = "READ_RESP_MIDDLE",
		[ROVE_OP_READ_RESP_LAST] = "READ_RESP_LAST",
		[ROVE_OP_READ_RESP_ONLY] = "READ_RESP_ONLY",
		[ROVE_OP_ACKNOWLEDGE] = "ACK",
		[ROVE_OP_ATOMIC_ACK] = "ATOMIC_ACK",
		[ROVE_OP_COMPARE_SWAP] = "COMPARE_SWAP",
		[ROVE_OP_FETCH_ADD] = "FETCH_ADD",
		[ROVE_OP_SEND_LAST_INV] = "SEND_LAST_INV",
		[ROVE_OP_SEND_ONLY_INV] = "SEND_ONLY_INV",
	};

	return opcode < ARRAY_SIZE(name) && name[opcode] ? name[opcode] : "?";
}

/* Under ASan each packet is an allocation of its exact size. */
static struct packet *packet_new(u32 len)
{
	struct packet *p;
#ifdef __SANITIZE_ADDRESS__
	p = malloc(sizeof(*p) + len);
#else
	struct packet **free_list = &pool[len > POOL_SMALL];

	p = *free_list;
	if (p)
		*free_list = p->next_free;
	else
		p = malloc(sizeof(*p) + (len > POOL_SMALL ? POOL_LARGE : POOL_SMALL));
#endif
	p->refs = 1;
	p->len = len;
	p->flip = FLIP_NONE;
	p->injected = false;
	return p;
}

static void packet_put(struct packet *p)
{
	if (--p->refs)
		return;
#ifdef __SANITIZE_ADDRESS__
	free(p);
#else
	p->next_free = pool[p->len > POOL_SMALL];
	pool[p->len > POOL_SMALL] = p;
#endif
}

void net_discard(struct packet *p)
{
	packet_put(p);
}

static void put16(u8 *p, u16 v)
{
	p[0] = v >> 8;
	p[1] = v;
}

static u16 get16(const u8 *p)
{
	return p[0] << 8 | p[1];
}

/* Fields that the ICRC leaves out get noise: a mask too small is noticed. */
static void build_ip(struct sim_qp *qp, struct packet *p, u32 bth_len)
{
	u8 *ip = p->data, *udp;
	u64 noise = rnd();

	if (qp->v6) {
		p->ip_len = 40;
		memset(ip, 0, 8);
		ip[0] = 0x60 | (noise & 0xf);
		ip[1] = noise >> 8;
		put16(ip + 2, noise >> 16);
		put16(ip + 4, 8 + bth_len);
		ip[6] = 17;
		ip[7] = qp->ttl;
		memcpy(ip + 8, qp->addr, 16);
		memcpy(ip + 24, qp->peer->addr, 16);
	} else {
		p->ip_len = 20 + qp->ip_options;
		ip[0] = 0x40 | p->ip_len / 4;
		ip[1] = qp->tos;
		put16(ip + 2, p->len);
		put16(ip + 4, qp->ip_id++);
		put16(ip + 6, 0x4000);
		ip[8] = qp->ttl;
		ip[9] = 17;
		put16(ip + 10, noise >> 16);
		memcpy(ip + 12, qp->addr, 4);
		memcpy(ip + 16, qp->peer->addr, 4);
		memset(ip + 20, 1, qp->ip_options);	/* no-operation */
	}
	udp = ip + p->ip_len;
	put16(udp, qp->sport);
	put16(udp + 2, ROVE_UDP_PORT);
	put16(udp + 4, 8 + bth_len);
	put16(udp + 6, noise >> 32);
}

/* Payload of a request, from SGEs or inline; the keys have been checked. */
static void gather(struct sim_qp *qp, const struct rove_burst *b, u32 offset,
		   u8 *dst, u32 len)
{
	const struct rove_send_wqe *wqe = &b->wqe->wqe;
	u32 i;

	if (wqe->flags & ROVE_WR_INLINE) {
		memcpy(dst, (const u8 *)wqe->sge + offset, len);
		return;
	}
	for (i = 0; len; i++) {
		const struct rove_sge *sge = &wqe->sge[i];
		u32 n;

		if (offset >= sge->length) {
			offset -= sge->length;
			continue;
		}
		n = min(len, sge->length - offset);
		if (!big_read(mr_find(qp, sge->lkey), sge->addr + offset, dst, n))
			memcpy(dst, mr_range(qp, sge->lkey, sge->addr + offset,
					     n, 0), n);
		dst += n;
		len -= n;
		offset = 0;
	}
}

static void payload(struct sim_qp *qp, const struct rove_burst *b, u32 offset,
		    u8 *dst, u32 len)
{
	u64 va = b->va + b->offset + offset;

	if (!len)
		return;
	if (b->kind != ROVE_BURST_READ_RESPONSE)
		gather(qp, b, b->offset + offset, dst, len);
	else if (!big_read(mr_find(qp, b->rkey), va, dst, len))
		memcpy(dst, mr_range(qp, b->rkey, va, len,
				     ROVE_ACCESS_REMOTE_READ), len);
}

/* Is this bit one that routers may change, so that no ICRC covers it? */
static bool is_variant(const struct packet *p, u32 byte, u32 bit)
{
	if (byte >= p->ip_len + 8)
		return byte == p->ip_len + 8 + 4;	/* BTH: FECN, BECN, reserved */
	if (byte >= p->ip_len)
		return byte >= p->ip_len + 6;		/* UDP checksum */
	if (p->data[0] >> 4 == 6)
		return (byte == 0 && bit < 4) || (byte > 0 && byte < 4) || byte == 7;
	return byte == 1 || byte == 8 || byte == 10 || byte == 11;
}

static void flip_bit(struct packet *p)
{
	u32 bit = below(p->len * 8);

	p->flip = is_variant(p, bit / 8, bit % 8) ? FLIP_HARMLESS : FLIP_COVERED;
	p->data[bit / 8] ^= 1 << bit % 8;
	stats.corrupted++;
	trace(p->from, "  flip byte %u bit %u%s", bit / 8, bit % 8,
	      p->flip == FLIP_HARMLESS ? " (variant)" : "");
}

/* What routers do. */
static void remark(struct packet *p)
{
	u8 *ip = p->data;

	if (ip[0] >> 4 == 6) {
		ip[0] ^= rnd() & 0xf;
		ip[1] ^= rnd();
		ip[7]--;
	} else {
		ip[1] ^= rnd();
		ip[8]--;
		put16(ip + 10, rnd());
	}
	p->data[p->ip_len + 8 + 4] ^= 0x40;	/* BECN */
}

static u64 arrival(struct sim_qp *qp)
{
	u64 at = sim.now + 1000 + below(4000);

	if (chance(sim.sc->reorder)) {
		stats.reordered++;
		return at + below(200000);
	}
	if (chance(sim.sc->slow))
		at += below(20 * NS_PER_MS);
	/* The path of one QP keeps order otherwise. */
	qp->last_arrival = max(qp->last_arrival + 1, at);
	return qp->last_arrival;
}

static void transmit(struct sim_qp *qp, struct packet *p)
{
	p->from = qp;
	p->to = qp->peer;
	stats.pkts++;
	if (qp->blackhole || chance(sim.sc->drop) ||
	    (qp->on_packet && qp->on_packet(qp, p->data + p->ip_len + 8))) {
		trace(qp, "  lost");
		stats.dropped++;
		packet_put(p);
		return;
	}
	if (chance(sim.sc->corrupt))
		flip_bit(p);
	else if (chance(sim.sc->remark))
		remark(p);
	while (chance(sim.sc->dup)) {
		stats.dupped++;
		p->refs++;
		event_add(arrival(qp), EV_PKT, 0, p);
	}
	if (chance(sim.sc->ghost)) {
		stats.dupped++;
		p->refs++;
		event_add(sim.now + below(NS_PER_S / 2), EV_PKT, 0, p);
	}
	event_add(arrival(qp), EV_PKT, 0, p);
}

/* Add the ICRC to a packet of @len bytes from the BTH on. */
static void seal(struct packet *p, u32 hdr_len, u32 len)
{
	u8 *bth = p->data + p->ip_len + 8;
	__le32 icrc;
	u32 crc;

	if (sim.sc->no_icrc)
		return;
	crc = rove_icrc_headers(p->data, p->ip_len, bth, hdr_len);
	crc = rove_env_crc32(crc, bth + hdr_len, len - hdr_len - ROVE_ICRC_LEN);
	icrc = rove_icrc_final(crc);
	memcpy(bth + len - ROVE_ICRC_LEN, &icrc, ROVE_ICRC_LEN);
}

/* A packet that a wicked peer sends: anything, with a right ICRC. */
void net_inject(struct sim_qp *from, const u8 *bth, u32 len)
{
	struct packet *p;

	p = packet_new((from->v6 ? 40 : 20 + from->ip_options) + 8 + len);
	build_ip(from, p, len);
	memcpy(p->data + p->ip_len + 8, bth, len);
	seal(p, 12, len);
	p->from = from;
	p->to = from->peer;
	p->injected = true;
	event_add(sim.now, EV_PKT, 0, p);
}

void net_send(struct sim_qp *qp, const struct rove_burst *b)
{
	u32 i;

	for (i = 0; i < b->npkts; i++) {
		u8 hdr[ROVE_MAX_HDR];
		struct rove_frame f;
		struct packet *p;
		u32 len;
		u8 *bth;

		rove_burst_frame(b, i, qp->t.dest_qpn, hdr, &f);
		if (f.hdr_len > ROVE_MAX_HDR || f.payload_len > qp->t.mtu ||
		    f.pad > 3 || (f.payload_len + f.pad) & 3 ||
		    f.offset + f.payload_len > b->length)
			sim_fail(qp, "frame: %u header, %u payload, %u pad, offset %u of %u",
				 f.hdr_len, f.payload_len, f.pad, f.offset, b->length);
		len = rove_frame_len(&f);
		p = packet_new((qp->v6 ? 40 : 20 + qp->ip_options) + 8 + len);
		build_ip(qp, p, len);
		bth = p->data + p->ip_len + 8;
		memcpy(bth, hdr, f.hdr_len);
		payload(qp, b, f.offset, bth + f.hdr_len, f.payload_len);
		memset(bth + f.hdr_len + f.payload_len, 0, f.pad);
		seal(p, f.hdr_len, len);
		trace(qp, "tx %s psn %06x len %u%s%s", opcode_name(bth[0]),
		      psn_add(b->psn, i), f.payload_len,
		      bth[8] & 0x80 ? " ackreq" : "",
		      bth[0] == ROVE_OP_ACKNOWLEDGE && b->syndrome & 0x60 ? " nak" : "");
		transmit(qp, p);
	}
}

/* What the IP and UDP layers would check; the checksums are left to the ICRC. */
static bool parse_ip(struct packet *p)
{
	const u8 *ip = p->data;
	u32 total, udp_len;

	if (p->len < 28)
		return false;
	if (ip[0] >> 4 == 4) {
		p->ip_len = (ip[0] & 0xf) * 4;
		total = get16(ip + 2);
		if (p->ip_len < 20 || ip[9] != 17)
			return false;
	} else if (ip[0] >> 4 == 6) {
		if (p->len < 48 || ip[6] != 17)
			return false;
		p->ip_len = 40;
		total = 40 + get16(ip + 4);
	} else {
		return false;
	}
	if (total > p->len || total < p->ip_len + 8)
		return false;
	udp_len = get16(ip + p->ip_len + 4);
	if (get16(ip + p->ip_len + 2) != ROVE_UDP_PORT || udp_len < 8 ||
	    p->ip_len + udp_len > total)
		return false;
	p->bth_len = udp_len - 8;
	return true;
}

static bool icrc_ok(const struct packet *p, const struct rove_pkt *pkt)
{
	const u8 *bth = p->data + p->ip_len + 8;
	__le32 icrc, want;
	u32 crc;

	if (sim.sc->no_icrc)
		return true;
	crc = rove_icrc_headers(p->data, p->ip_len, bth, pkt->hdr_len);
	crc = rove_env_crc32(crc, bth + pkt->hdr_len,
			     p->bth_len - pkt->hdr_len - ROVE_ICRC_LEN);
	want = rove_icrc_final(crc);
	memcpy(&icrc, bth + p->bth_len - ROVE_ICRC_LEN, ROVE_ICRC_LEN);
	return icrc == want;
}

const u8 *net_payload(const struct rove_pkt *pkt)
{
	const struct packet *p = pkt->buf;

	return p->data + p->ip_len + 8 + pkt->hdr_len;
}

/*
 * An RNR NAK forbids its PSN for a while: see check_rnr() in env.c.  One that
 * comes while an earlier READ or atomic may be unanswered is another matter: it
 * can show that the answer was lost, and the requester goes back first.  Copies
 * do not prolong the wait.
 */
static void note_rnr_nak(struct sim_qp *qp, const struct rove_pkt *pkt)
{
	u64 i;

	if ((pkt->syndrome & ROVE_AETH_KIND) != ROVE_AETH_RNR_NAK ||
	    (qp->rnr_armed && pkt->psn == qp->rnr_psn))
		return;
	qp->rnr_armed = true;
	qp->rnr_psn = pkt->psn;
	qp->rnr_until = sim.now + rove_rnr_delay(pkt->syndrome & ROVE_AETH_VALUE);
	for (i = qp->done; i < qp->posted; i++)
		if (is_rd(wr_at(qp, i)->op))
			qp->rnr_until = 0;
}

void net_deliver(struct packet *p)
{
	struct sim_qp *qp = p->to;
	struct rove_pkt pkt;
	bool ok;

	memset(&pkt, 0x5a, sizeof(pkt));	/* nothing may rely on zeroes */
	ok = parse_ip(p) &&
	     !rove_pkt_parse(&pkt, p->data + p->ip_len + 8, p->bth_len) &&
	     icrc_ok(p, &pkt);
	if (!p->injected && ok != (p->flip != FLIP_COVERED))
		sim_fail(qp, ok ? "a corrupted packet was accepted" :
			 "a good packet was refused");
	if (!ok || pkt.qpn != qp->t.qpn || pkt.pkey != ROVE_PKEY_DEFAULT)
		goto out;
	pkt.buf = p;
	trace(qp, "rx %s psn %06x len %u", opcode_name(pkt.opcode), pkt.psn,
	      pkt.payload_len);
	if (pkt.opcode == ROVE_OP_ACKNOWLEDGE)
		note_rnr_nak(qp, &pkt);
	rove_tqp_rx(&qp->t, &pkt, sim.now);
out:
	packet_put(p);
}
