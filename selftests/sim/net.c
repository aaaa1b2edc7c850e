// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * net.c - a host's stack: real IP packets out, super-packets of them, and in
 *
 * Packets are built byte by byte as the kernel would send them, because the
 * ICRC covers most of the IP header too.  What one engine call sends is filled into
 * super-packets by train.h's rule, and leaves when the call is over.  A receiver
 * takes them apart and does what a stack and a driver do before the transport:
 * lengths, ICRC, QP, source.
 */
#include "net.h"

#define ETH_HDR_MAX	(60 + 8)	/* IPv4 with options, UDP */

u32 net_unsent;

#ifndef __SANITIZE_ADDRESS__
#define POOL_SMALL	256
#define POOL_LARGE	(ETH_HDR_MAX + ROVE_MAX_HDR + 4096 + ROVE_ICRC_LEN)
static struct packet *pool[2];
static struct train *train_pool;
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
		[ROVE_OP_ATOMIC_WRITE] = "ATOMIC_WRITE",
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

void packet_put(struct packet *p)
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

/* A train of @p alone, or an empty one. */
struct train *train_new(struct packet *p)
{
	struct train *tr;
#ifdef __SANITIZE_ADDRESS__
	tr = malloc(sizeof(*tr));
#else
	tr = train_pool;
	if (tr)
		train_pool = tr->next;
	else
		tr = malloc(sizeof(*tr));
#endif
	tr->next = NULL;
	tr->npkts = !!p;
	tr->pkt[0] = p;
	return tr;
}

void train_put(struct train *tr)
{
	u32 i;

	for (i = 0; i < tr->npkts; i++)
		packet_put(tr->pkt[i]);
#ifdef __SANITIZE_ADDRESS__
	free(tr);
#else
	tr->next = train_pool;
	train_pool = tr;
#endif
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
		put16(ip + 4, qp->same_id ? qp->ip_id : qp->ip_id++);
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

/* Slicing by 8. */
u32 crc32(u32 crc, const void *buf, size_t len)
{
	static u32 table[8][256];
	const u8 *p = buf;
	u32 i, j;

	if (unlikely(!table[0][1])) {
		for (i = 0; i < 256; i++) {
			u32 c = i;

			for (j = 0; j < 8; j++)
				c = c >> 1 ^ (c & 1 ? 0xedb88320 : 0);
			table[0][i] = c;
		}
		for (i = 0; i < 256; i++)
			for (j = 1; j < 8; j++)
				table[j][i] = table[j - 1][i] >> 8 ^
					      table[0][table[j - 1][i] & 0xff];
	}
	for (; len >= 8; len -= 8, p += 8) {
		__le32 a, b;
		u32 x, y;

		memcpy(&a, p, 4);
		memcpy(&b, p + 4, 4);
		x = le32_to_cpu(a) ^ crc;
		y = le32_to_cpu(b);
		crc = table[7][x & 0xff] ^ table[6][x >> 8 & 0xff] ^
		      table[5][x >> 16 & 0xff] ^ table[4][x >> 24] ^
		      table[3][y & 0xff] ^ table[2][y >> 8 & 0xff] ^
		      table[1][y >> 16 & 0xff] ^ table[0][y >> 24];
	}
	while (len--)
		crc = crc >> 8 ^ table[0][(crc ^ *p++) & 0xff];
	return crc;
}

/* The ICRC of a packet of @len bytes at @bth, which end with it. */
__le32 icrc_of(struct rove_icrc *headers, const u8 *bth, u32 len)
{
	return rove_icrc_final(rove_icrc_crc32(headers, bth, len - ROVE_ICRC_LEN, crc32));
}

/* Add the ICRC to a packet of @len bytes from the BTH on. */
static void seal(struct packet *p, u32 len)
{
	u8 *bth = p->data + p->ip_len + 8;
	struct rove_icrc headers;
	__le32 icrc;

	if (sim.sc->no_icrc)
		return;
	rove_icrc_begin(&headers, p->data, p->ip_len);
	icrc = icrc_of(&headers, bth, len);
	memcpy(bth + len - ROVE_ICRC_LEN, &icrc, ROVE_ICRC_LEN);
}

/* A packet of any bytes, with a right ICRC in place of the last four. */
static struct packet *build_raw(struct sim_qp *from, const u8 *bth, u32 len)
{
	struct packet *p;

	p = packet_new((from->v6 ? 40 : 20 + from->ip_options) + 8 + len);
	build_ip(from, p, len);
	memcpy(p->data + p->ip_len + 8, bth, len);
	if (len >= sizeof(struct rove_bth) + ROVE_ICRC_LEN)
		seal(p, len);
	p->from = from;
	p->to = from->peer;
	return p;
}

/* What a wicked peer sends; nothing happens to it on its way. */
void net_inject(struct sim_qp *from, const u8 *bth, u32 len)
{
	struct packet *p = build_raw(from, bth, len);

	p->injected = true;
	event_add(sim.now, EV_PKT, 0, train_new(p));
}

/* What an honest peer sends that is not rove. */
void net_put(struct sim_qp *from, const u8 *bth, u32 len)
{
	stats.pkts++;
	trace(from, "tx %s psn %06x", opcode_name(bth[0]),
	      bth[9] << 16 | bth[10] << 8 | bth[11]);
	path_send(from, train_new(build_raw(from, bth, len)));
}

/*
 * Would a stack take this as the next packet of a super-packet?  Its own rules
 * (udp_send_skb(), __udp_gso_segment(), netif_skb_features()), not train.h's.
 */
static void check_fit(struct sim_qp *qp, const struct train *tr,
		      const struct packet *p)
{
	u32 seg = packet_bth_len(tr->pkt[0]);

	if (tr->npkts == NET_MAX_SEGS)
		sim_fail(qp, "a super-packet of more than %u packets", NET_MAX_SEGS);
	if (packet_bth_len(tr->pkt[tr->npkts - 1]) != seg)
		sim_fail(qp, "a super-packet goes on after a shorter packet");
	if (packet_bth_len(p) > seg)
		sim_fail(qp, "a super-packet's packets get longer: %u, %u", seg,
			 packet_bth_len(p));
	if (NET_LINK_HDR + p->ip_len + 8 + train_len(tr) + packet_bth_len(p) > NET_MAX_IP)
		sim_fail(qp, "a super-packet of %u bytes and %u more",
			 train_len(tr), packet_bth_len(p));
}

/* A packet joins the super-packet that is being filled, or begins another. */
static void append(struct sim_qp *qp, struct packet *p)
{
	struct train *tr = qp->out_last;

	if (!qp->same_id && rove_train_takes(&qp->fill, packet_bth_len(p))) {
		if (!tr)
			sim_fail(qp, "an open super-packet that is not there");
		check_fit(qp, tr, p);
		tr->pkt[tr->npkts++] = p;
	} else {
		tr = train_new(p);
		if (qp->out)
			qp->out_last->next = tr;
		else
			qp->out = tr;
		net_unsent += !qp->out_last;
		qp->out_last = tr;
		qp->fill = (struct rove_train) {};
	}
	rove_train_add(&qp->fill, packet_bth_len(p));
}

/* The engine call is over: everything leaves. */
void net_flush(struct sim_qp *qp)
{
	struct train *tr;

	if (!qp->out)
		return;
	while ((tr = qp->out)) {
		qp->out = tr->next;
		stats.trains++;
		if (qp->on_train)
			qp->on_train(qp, tr->npkts);
		if (tr->npkts > 1)
			trace(qp, "super-packet of %u", tr->npkts);
		path_send(qp, tr);
	}
	qp->out_last = NULL;
	qp->fill = (struct rove_train) {};
	net_unsent--;
}

/* A round has failed in the middle of a call. */
void net_discard(struct sim_qp *qp)
{
	struct train *tr;

	while ((tr = qp->out)) {
		qp->out = tr->next;
		train_put(tr);
	}
	net_unsent = 0;
}

/* @hdr, @frame: of the packet before. */
static struct packet *build(struct sim_qp *qp, const struct rove_burst *b, u32 i, u8 *hdr,
			    struct rove_frame *frame)
{
	struct rove_frame f;
	struct packet *p;
	u32 len;
	u8 *bth;

	rove_burst_next(b, i, qp->t.dest_qpn, hdr, frame);
	f = *frame;
	if (f.hdr_len > ROVE_MAX_HDR || f.payload_len > qp->t.mtu ||
	    f.pad > 3 || (f.payload_len + f.pad) & 3 ||
	    f.offset + f.payload_len > b->length)
		sim_fail(qp, "frame: %u header, %u payload, %u pad, offset %u of %u",
			 f.hdr_len, f.payload_len, f.pad, f.offset, b->length);
	len = rove_frame_len(&f);
	p = packet_new((qp->v6 ? 40 : 20 + qp->ip_options) + 8 + len);
	p->from = qp;
	p->to = qp->peer;
	build_ip(qp, p, len);
	bth = packet_bth(p);
	memcpy(bth, hdr, f.hdr_len);
	payload(qp, b, f.offset, bth + f.hdr_len, f.payload_len);
	memset(bth + f.hdr_len + f.payload_len, 0, f.pad);
	seal(p, len);
	trace(qp, "tx %s psn %06x len %u%s%s", opcode_name(bth[0]),
	      psn_add(b->psn, i), f.payload_len,
	      bth[8] & 0x80 ? " ackreq" : "",
	      bth[0] == ROVE_OP_ACKNOWLEDGE && b->syndrome & 0x60 ? " nak" : "");
	return p;
}

void net_send(struct sim_qp *qp, const struct rove_burst *b)
{
	u8 hdr[ROVE_MAX_HDR];
	struct rove_frame f;
	u32 i;

	stats.pkts += b->npkts;
	for (i = 0; i < b->npkts; i++)
		append(qp, build(qp, b, i, hdr, &f));
}

/* What the IP and UDP layers would check; the checksums are left to the ICRC. */
static bool parse_ip(struct packet *p, u32 *bth_len)
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
	*bth_len = udp_len - 8;
	return true;
}

static bool icrc_ok(struct rove_icrc *headers, const struct rove_pkt *pkt, u32 len)
{
	const u8 *bth = pkt->buf;
	__le32 icrc;

	memcpy(&icrc, bth + len - ROVE_ICRC_LEN, ROVE_ICRC_LEN);
	return icrc == icrc_of(headers, bth, len);
}

/*
 * Packet @i of a super-packet, under the headers that it had or will have alone:
 * only the first one's are left, with the lengths of the whole.  Segmentation
 * counts IDs up; a sender that gives all its packets one ID is merged, too.
 */
static bool segment_ok(const struct train *tr, u32 i,
		       const struct rove_pkt *pkt, u32 len)
{
	const struct packet *first = tr->pkt[0];
	u32 ip_len = first->ip_len, all = 8 + train_len(tr);
	struct rove_icrc headers;
	u8 ip[ETH_HDR_MAX];

	memcpy(ip, first->data, ip_len + 8);
	if (is_ip4(first))
		put16(ip + 2, ip_len + all);
	else
		put16(ip + 4, all);
	put16(ip + ip_len + 4, all);
	rove_icrc_begin(&headers, ip, ip_len);
	rove_icrc_of_segment(&headers, len, ip_id(first) + i);
	if (icrc_ok(&headers, pkt, len))
		return true;
	rove_icrc_of_segment(&headers, len, ip_id(first));
	return i && icrc_ok(&headers, pkt, len);
}

static bool single_ok(const struct packet *p, const struct rove_pkt *pkt, u32 len)
{
	struct rove_icrc headers;

	rove_icrc_begin(&headers, p->data, p->ip_len);
	return icrc_ok(&headers, pkt, len);
}

const u8 *net_payload(const struct rove_pkt *pkt)
{
	return (const u8 *)pkt->buf + pkt->hdr_len;
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
		if (is_answered(wr_at(qp, i)->op))
			qp->rnr_until = 0;
}

/* Read a packet's headers, if they are not those of the one before it. */
static bool read_headers(struct rove_row *row, struct rove_pkt *pkt, u8 *bth, u32 len)
{
	if (!rove_row_goes_on(row, pkt, bth, len)) {
		row->len = 0;
		memset(pkt, 0x5a, sizeof(*pkt));	/* nothing may rely on zeroes */
		if (rove_pkt_parse(pkt, bth, len))
			return false;
		rove_row_begin(row, pkt, bth, len);
	}
	pkt->buf = bth;
	return true;
}

/* Parse and check packet @i; false: it was dropped. */
static bool accept(struct train *tr, u32 i, struct rove_row *row, struct rove_pkt *pkt)
{
	struct packet *p = tr->pkt[i];
	u32 len;
	bool ok;

	if (tr->npkts > 1) {
		/* Where it ends follows from where all end. */
		len = min(packet_bth_len(tr->pkt[0]),
			  train_len(tr) - i * packet_bth_len(tr->pkt[0]));
		ok = len == packet_bth_len(p);
	} else {
		ok = parse_ip(p, &len);
	}
	ok = ok && read_headers(row, pkt, packet_bth(p), len) &&
	     (sim.sc->no_icrc ||
	      (tr->npkts > 1 ? segment_ok(tr, i, pkt, len) :
			       single_ok(p, pkt, len)));
	if (!p->injected && ok != (p->flip != FLIP_COVERED))
		sim_fail(p->to, ok ? "a corrupted packet was accepted" :
			 "a good packet was refused");
	return ok && pkt->pkey == ROVE_PKEY_DEFAULT;
}

static struct sim_qp *find_qp(u32 qpn)
{
	u32 i = qpn % MAX_QPS;

	return i < sim.nqps && sim.qp[i]->t.qpn == qpn ? sim.qp[i] : NULL;
}

/* The packets at hand are handled: an ACK that is due may go with the rest. */
static void leave(struct sim_qp *qp)
{
	env_check(qp);
	if (qp->ack_owed && rnd() & 1)
		env_run_deferred(qp);
	net_flush(qp);
	env_check(qp);
}

const struct rove_origin sim_origin = {
	.grh = "from where nobody has come from so far",
	.sl = 5,
	.network_hdr_type = ROVE_NETWORK_IPV6,
	.vlan_id = 77,
};

/* As long as packets are for one QP they are one call: its lock is kept. */
void net_receive(struct train *tr)
{
	struct sim_qp *qp = NULL;
	struct rove_row row = {};
	struct rove_pkt pkt;
	bool mixed = false;
	u32 i;

	for (i = 0; i < tr->npkts; i++) {
		struct sim_qp *to;

		if (!accept(tr, i, &row, &pkt))
			continue;
		to = find_qp(pkt.qpn);
		if (!to)
			continue;
		if (qp && qp != to) {
			mixed = true;
			leave(qp);
		}
		qp = to;
		trace(qp, "rx %s psn %06x len %u", opcode_name(pkt.opcode),
		      pkt.psn, pkt.payload_len);
		if (pkt.opcode == ROVE_OP_ACKNOWLEDGE)
			note_rnr_nak(qp, &pkt);
		pkt.origin = &sim_origin;
		if (qp->gbn)
			gbn_rx(qp, pkt.buf, pkt.hdr_len + pkt.payload_len +
			       (-pkt.payload_len & 3) + ROVE_ICRC_LEN);
		else
			rove_tqp_rx(&qp->t, &pkt, sim.now);
	}
	if (qp)
		leave(qp);
	stats.mixed += mixed;
	train_put(tr);
}
