// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * vectors.c - parser, framer, ICRC and tables against what others have made
 *
 * vectors.inc holds packets built by scapy.  The two packets in captured[] are
 * from scapy's own regression tests (test/contrib/roce.uts, "RoCE CNP captured
 * on ConnectX-4 Lx" and the UC example): network adapters computed their ICRCs.
 * The tables are written out from IBTA vol. 1.
 */
#include "engine.h"
#include "sim.h"

struct vector {
	const char *name;
	u8 opcode;
	u8 ip_len;
	bool solicited;
	bool ackreq;
	u32 qpn;
	u32 psn;
	u32 payload_len;
	u32 pad;
	u64 va;
	u32 rkey;
	u32 dma_len;
	u64 swap_add;
	u64 compare;
	u8 syndrome;
	u32 msn;
	u64 atomic_orig;
	u32 imm;
	u32 inv_rkey;
	const char *hex;
};

static const struct vector vectors[] = {
#include "vectors.inc"
};

static const char *const captured[] = {
	"45c2003c718c4000401191610a0011010a00120100" "0012b7002800008100ffff40"
	"000118000000000000000000000000000000000000000082fd002a",
	"4501004004784000" "4011b4d5c0a80007c0a80007c00012b7002caca2"
	"2460ffff000000d300cf1710"
	"4630818be28935d90e9a95505401be885e500000" "78f353f3",
};

static int checks;

#define CHECK(cond, ...) do {		\
	checks++;			\
	if (!(cond))			\
		sim_fail(NULL, __VA_ARGS__);	\
} while (0)

/* An allocation of exact size, so that ASan sees a byte too many read. */
static u8 *from_hex(const char *hex, u32 *len)
{
	u8 *buf;
	u32 i;

	*len = strlen(hex) / 2;
	buf = malloc(*len);
	for (i = 0; i < *len; i++)
		sscanf(hex + 2 * i, "%2hhx", &buf[i]);
	return buf;
}

static __le32 icrc(const u8 *ip, u32 ip_len, u32 len)
{
	const u8 *bth = ip + ip_len + 8;
	struct rove_icrc headers;

	rove_icrc_begin(&headers, ip, ip_len);
	return icrc_of(&headers, bth, len - ip_len - 8);
}

static void check_parse(const struct vector *v, const u8 *bth, u32 len)
{
	struct rove_pkt p;
	u16 f;

	memset(&p, 0xee, sizeof(p));
	CHECK(!rove_pkt_parse(&p, bth, len), "%s: refused", v->name);
	f = p.op->flags;
	CHECK(p.opcode == v->opcode && p.solicited == v->solicited &&
	      p.ackreq == v->ackreq && p.pkey == 0xffff && p.qpn == v->qpn &&
	      p.psn == v->psn && p.payload_len == v->payload_len &&
	      p.hdr_len + v->payload_len + v->pad + 4 == len,
	      "%s: BTH parsed wrong", v->name);
	CHECK(!(f & (ROVE_OPF_RETH | ROVE_OPF_ATOMICETH)) ||
	      (p.va == v->va && p.rkey == v->rkey), "%s: address", v->name);
	CHECK(!(f & ROVE_OPF_RETH) || p.dma_len == v->dma_len, "%s: RETH", v->name);
	CHECK(!(f & ROVE_OPF_ATOMICETH) ||
	      (p.swap_add == v->swap_add && p.compare == v->compare),
	      "%s: AtomicETH", v->name);
	CHECK(!(f & ROVE_OPF_AETH) ||
	      (p.syndrome == v->syndrome && p.msn == v->msn), "%s: AETH", v->name);
	CHECK(!(f & ROVE_OPF_ATOMICACK) || p.atomic_orig == v->atomic_orig,
	      "%s: AtomicAckETH", v->name);
	CHECK(!(f & ROVE_OPF_IMM) || p.imm == cpu_to_be32(v->imm),
	      "%s: immediate data", v->name);
	CHECK(!(f & ROVE_OPF_INV) || p.inv_rkey == v->inv_rkey, "%s: IETH", v->name);
	CHECK(!(f & ROVE_OPF_DETH) ||
	      (p.qkey == v->rkey && p.src_qpn == v->dma_len), "%s: DETH", v->name);
}

static u8 wr_opcode(const struct vector *v)
{
	switch (v->opcode) {
	case ROVE_OP_SEND_LAST_IMM:
	case ROVE_OP_SEND_ONLY_IMM:
	case ROVE_OP_UD_SEND_ONLY_IMM:
		return ROVE_WR_SEND_WITH_IMM;
	case ROVE_OP_SEND_LAST_INV:
	case ROVE_OP_SEND_ONLY_INV:
		return ROVE_WR_SEND_WITH_INV;
	case ROVE_OP_WRITE_LAST_IMM:
	case ROVE_OP_WRITE_ONLY_IMM:
		return ROVE_WR_RDMA_WRITE_WITH_IMM;
	case ROVE_OP_COMPARE_SWAP:
		return ROVE_WR_ATOMIC_CMP_AND_SWP;
	case ROVE_OP_FETCH_ADD:
		return ROVE_WR_ATOMIC_FETCH_AND_ADD;
	default:
		return rove_opcodes[v->opcode].flags & ROVE_OPF_SEND ?
			ROVE_WR_SEND : ROVE_WR_RDMA_WRITE;
	}
}

static enum rove_burst_kind kind(const struct vector *v)
{
	u16 f = rove_opcodes[v->opcode].flags;

	if (f & ROVE_OPF_DETH)
		return ROVE_BURST_DATAGRAM;
	if (f & ROVE_OPF_SEND)
		return ROVE_BURST_SEND;
	if (f & ROVE_OPF_WRITE)
		return ROVE_BURST_WRITE;
	if (f & ROVE_OPF_READ)
		return f & ROVE_OPF_REQUEST ? ROVE_BURST_READ_REQUEST :
					      ROVE_BURST_READ_RESPONSE;
	if (f & ROVE_OPF_ATOMIC)
		return f & ROVE_OPF_REQUEST ? ROVE_BURST_ATOMIC :
					      ROVE_BURST_ATOMIC_ACK;
	return ROVE_BURST_ACK;
}

/* Frame the same packet, as packet @i of a burst of @n. */
static void check_frame_of(const struct vector *v, const u8 *bth, u32 i, u32 n)
{
	u16 f = rove_opcodes[v->opcode].flags;
	struct rove_swqe *w = calloc(1, sizeof(*w));
	u32 mtu = v->payload_len ? v->payload_len : 256;
	struct rove_burst b = {
		.kind = kind(v),
		.first = i || f & ROVE_OPF_FIRST,
		.last = i + 1 < n || f & ROVE_OPF_LAST,
		.solicited = v->solicited,
		.ackreq = v->ackreq,
		.psn = psn_add(v->psn, -i),
		.npkts = n,
		.mtu = mtu,
		.length = (n - 1) * mtu + v->payload_len,
		.wqe = w,
		.va = v->va,
		.rkey = v->rkey,
		.dma_len = v->dma_len,
		.syndrome = v->syndrome,
		.msn = v->msn,
		.atomic_orig = v->atomic_orig,
	};
	u8 *hdr = malloc(ROVE_MAX_HDR), want[2];
	struct rove_frame fr;
	u32 qpn = v->qpn;

	w->wqe.opcode = wr_opcode(v);
	w->wqe.swap = v->swap_add;
	w->wqe.compare_add = v->opcode == ROVE_OP_COMPARE_SWAP ? v->compare :
								 v->swap_add;
	if (f & ROVE_OPF_IMM)
		w->wqe.imm_data = cpu_to_be32(v->imm);
	else
		w->wqe.invalidate_rkey = v->inv_rkey;
	rove_burst_frame(&b, i, qpn, hdr, &fr);
	CHECK(fr.hdr_len == rove_opcodes[v->opcode].hdr_len &&
	      fr.payload_len == v->payload_len && fr.pad == v->pad &&
	      fr.offset == i * mtu, "%s: framed with wrong lengths", v->name);
	/* SE and AckReq stand in the last packet only. */
	want[0] = bth[1];
	want[1] = bth[8];
	if (!(f & ROVE_OPF_LAST))
		want[0] &= ~ROVE_BTH_SE;
	if (i + 1 < n)
		want[1] &= 0x7f;
	CHECK(hdr[0] == bth[0] && hdr[1] == want[0] && !memcmp(hdr + 2, bth + 2, 6) &&
	      hdr[8] == want[1] && !memcmp(hdr + 9, bth + 9, fr.hdr_len - 9),
	      "%s: framed wrong as packet %u of %u", v->name, i, n);
	free(w);
	free(hdr);
}

static void check_frame(const struct vector *v, const u8 *bth)
{
	u16 f = rove_opcodes[v->opcode].flags;

	check_frame_of(v, bth, 0, 1);
	if (!(f & ROVE_OPF_PAYLOAD) || !v->payload_len)
		return;
	/* The same packet further back in a burst, and before the last. */
	if (!(f & ROVE_OPF_FIRST))
		check_frame_of(v, bth, 3, 4);
	if (!(f & ROVE_OPF_LAST) && !v->pad)
		check_frame_of(v, bth, f & ROVE_OPF_FIRST ? 0 : 2, 5);
}

static bool is_variant(const u8 *ip, u32 ip_len, u32 byte, u32 bit)
{
	if (byte >= ip_len)
		return byte == ip_len + 6 || byte == ip_len + 7 || byte == ip_len + 12;
	if (ip_len == 40 && ip[0] >> 4 == 6)
		return (byte == 0 && bit < 4) || (byte && byte < 4) || byte == 7;
	return byte == 1 || byte == 8 || byte == 10 || byte == 11;
}

/* Each bit of the packet is covered by the ICRC, or must not be. */
static void check_bits(const struct vector *v, u8 *ip, u32 len)
{
	__le32 good = icrc(ip, v->ip_len, len);
	u32 i;

	for (i = 0; i < (len - 4) * 8; i++) {
		if (i / 8 == 0 && i % 8 >= 4)
			continue;	/* the IP version: another header altogether */
		ip[i / 8] ^= 1 << i % 8;
		CHECK((icrc(ip, v->ip_len, len) == good) ==
		      is_variant(ip, v->ip_len, i / 8, i % 8),
		      "%s: ICRC and bit %u of byte %u", v->name, i % 8, i / 8);
		ip[i / 8] ^= 1 << i % 8;
	}
}

static void put_be16(u8 *p, u16 v)
{
	p[0] = v >> 8;
	p[1] = v;
}

/*
 * A packet of a train has the ICRC of one that came alone with these lengths and this
 * identification.
 */
static void check_segments(const struct vector *v, u8 *ip)
{
	u32 hdr_len = rove_opcodes[v->opcode].hdr_len, ip_len = v->ip_len, i;
	bool v4 = ip[0] >> 4 == 4;
	struct rove_icrc train;

	rove_icrc_begin(&train, ip, ip_len);
	/* One by one, all around; by two; with jumps; and repeated ones. */
	for (i = 0; i < 0x20100; i += !v4 ? 0x1111 : i < 0x10100 ? 1 : i < 0x10200 ? 2 : 0x36) {
		u32 udp_len = 8 + 64 + 4 * ((i + 100) >> 9 & 7);
		const u8 *bth = ip + ip_len + 8;
		u16 id = i < 0x1ff00 ? i : i / 0x80;
		struct rove_icrc alone;

		if (v4) {
			put_be16(ip + 2, ip_len + udp_len);
			put_be16(ip + 4, id);
		} else {
			put_be16(ip + 4, ip_len - 40 + udp_len);
		}
		put_be16(ip + ip_len + 4, udp_len);
		rove_icrc_begin(&alone, ip, ip_len);
		/*
		 * Those before it are not looked at.  From an even one: all other steps
		 * of the table are rarer, and would be left out.
		 */
		if ((i & 63) == 33) {
			rove_icrc_of_segment(&train, udp_len - 8, id + 7);
			rove_icrc_of_segment(&train, udp_len - 8, id - 1);
		}
		rove_icrc_of_segment(&train, udp_len - 8, id);
		CHECK(rove_icrc_crc32(&train, bth, hdr_len, crc32) ==
		      rove_icrc_crc32(&alone, bth, hdr_len, crc32),
		      "%s: ICRC in a train, identification %u", v->name, id);
	}
}

/* Every way to cut a packet short, and noise, is refused or consistent. */
static void check_short(const struct vector *v, const u8 *bth, u32 len)
{
	u32 n;

	for (n = 0; n < len; n++) {
		u8 *part = malloc(n ? n : 1);
		struct rove_pkt p;
		u32 pad;

		memcpy(part, bth, n);
		if (!rove_pkt_parse(&p, part, n)) {
			pad = part[1] >> 4 & 3;
			CHECK(p.hdr_len + p.payload_len + pad + 4 == n &&
			      p.payload_len <= n, "%s cut to %u", v->name, n);
		}
		free(part);
	}
}

static void check_noise(void)
{
	u32 i;

	for (i = 0; i < 200000; i++) {
		u32 n = below(80);
		u8 *buf = malloc(n ? n : 1);
		struct rove_pkt p;

		fill(buf, n, rnd());
		if (n > 1) {
			buf[0] &= 0x7f;
			buf[1] &= 0xf0;
		}
		if (!rove_pkt_parse(&p, buf, n))
			CHECK(p.hdr_len + p.payload_len + 4 <= n &&
			      !((p.payload_len + (buf[1] >> 4 & 3)) & 3) &&
			      p.hdr_len <= ROVE_MAX_HDR && !(p.psn >> 24) &&
			      !(p.qpn >> 24), "noise of %u bytes", n);
		free(buf);
	}
}

/* The BTH's last word; now and then with AckReq, or a bit that is reserved. */
static void put_apsn(u8 *bth, u32 psn)
{
	bth[8] = below(8) ? 0 : rnd() & 0x81;
	put_be16(bth + 9, psn >> 8);
	bth[11] = psn;
}

/*
 * What goes on with a row is what parsing it says: the one before but for the PSN; and such
 * a packet does, if it asks for nothing.  The two differ in a few bits.
 */
static void check_row(void)
{
	u32 i, rows = 0;

	for (i = 0; i < 400000; i++) {
		u32 len = 16 + below(2) * 4, next_len = below(8) ? len : 16 + below(2) * 4;
		struct rove_pkt first, next, was;
		u8 bth[ROVE_MAX_HDR] = {};
		struct rove_row row;
		u32 psn = below(4) ? below(1 << 24) : ROVE_PSN_MASK;
		bool same, went;

		memset(&first, 0x5a, sizeof(first));
		memset(&next, 0x5a, sizeof(next));
		bth[0] = below(ROVE_OP_WRITE_ONLY_IMM);
		bth[7] = below(4);
		put_apsn(bth, psn);
		if (rove_pkt_parse(&first, bth, len))
			continue;
		rove_row_begin(&row, &first, bth, len);
		was = first;
		psn = below(8) ? psn_add(psn, 1) : psn;
		put_apsn(bth, psn);
		same = below(2);
		if (!same)
			bth[below(2) ? below(8) : 12 + below(4)] ^= 1 << below(8);
		went = rove_row_goes_on(&row, &first, bth, next_len);
		rows += went;
		if (!went) {
			CHECK(!memcmp(&first, &was, sizeof(first)), "what does not go on is left");
			CHECK(!same || next_len != len || was.ackreq || bth[8] ||
			      was.hdr_len != 12 || psn != was.psn + 1, "a row goes on");
			continue;
		}
		CHECK(psn == psn_add(was.psn, 1) && !rove_pkt_parse(&next, bth, next_len) &&
		      !memcmp(&first, &next, sizeof(first)), "a row's packet is another one");
	}
	CHECK(rows > 1000, "%u rows go on", rows);
}

static void check_psn(void)
{
	static const struct { u32 a, b; s32 diff; } t[] = {
		{ 0, 0, 0 }, { 1, 0, 1 }, { 0, 1, -1 },
		{ 0, 0xffffff, 1 }, { 0xffffff, 0, -1 },
		{ 5, 0xfffff0, 21 }, { 0xfffff0, 5, -21 },
		{ 0x7fffff, 0, 0x7fffff }, { 0, 0x7fffff, -0x7fffff },
		{ 0x800001, 0, -0x7fffff }, { 0, 0x800001, 0x7fffff },
		{ 0x123456, 0x923455, -0x7fffff },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(t); i++)
		CHECK(psn_diff(t[i].a, t[i].b) == t[i].diff, "psn_diff(%x, %x) is %d",
		      t[i].a, t[i].b, psn_diff(t[i].a, t[i].b));
	for (i = 0; i < 100000; i++) {
		u32 a = rnd() & ROVE_PSN_MASK, n = below(0x7fffff);

		CHECK(!(psn_add(a, n) >> 24), "psn_add(%x, %x) does not wrap", a, n);
		CHECK(psn_diff(psn_add(a, n), a) == (s32)n &&
		      psn_diff(a, psn_add(a, n)) == -(s32)n, "psn %x + %x", a, n);
		CHECK(psn_add(psn_add(a, n), -n) == a, "psn %x + %x - %x", a, n, n);
	}
}

/* Tables 45 (timers, in 10 us) and 46 (credits). */
static void check_tables(void)
{
	static const u32 timer[32] = {
		65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256,
		384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288,
		16384, 24576, 32768, 49152,
	};
	static const u32 credits[31] = {
		0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384,
		512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384,
		24576, 32768,
	};
	u32 i, n;

	for (i = 0; i < 32; i++)
		CHECK(rove_rnr_delay(i) == timer[i] * 10000ULL, "RNR timer %u", i);
	for (i = 0; i < 31; i++)
		CHECK(rove_credits_decode(i) == credits[i], "credit code %u", i);
	CHECK(rove_credits_encode(ROVE_NO_CREDITS) == 31, "no credits");
	/* The largest code that does not promise more than there is. */
	for (n = 0; n < 70000; n++) {
		for (i = 30; credits[i] > n; i--)
			;
		CHECK(rove_credits_encode(n) == i, "code of %u credits", n);
	}
}

/*
 * Bytes from the BTH to the payload, by IBTA table 38 and annex A14; 0: no such opcode.
 * A reliable service answers what is reserved, too, or FLUSH: it has a BTH at least.
 */
static void check_opcodes(void)
{
	static const u8 rc[32] = {
		12, 12, 12, 16, 12, 16, 28, 12, 12, 16, 28, 32, 28, 16, 12, 16,
		16, 16, 24, 40, 40, 12, 16, 16, 12, 12, 12, 12, 12, 28, 12, 12,
	};
	u32 i;

	for (i = 0; i < 256; i++) {
		const struct rove_opcode_info *op = &rove_opcodes[i];
		u32 svc = i & 0xe0, base = i & 0x1f, want = 0;

		if (svc == 0)
			want = rc[base];
		else if (svc == 0x20)
			want = base < 12 ? rc[base] : 0;
		else if (svc == 0x60)
			want = base == 4 ? 20 : base == 5 ? 24 : 0;
		else if (svc == 0xa0)
			/* Requests have an XRCETH, what answers them has not. */
			want = rc[base] + (base >= 13 && base <= 18 ? 0 : 4);
		CHECK(!(op->flags & ROVE_OPF_VALID) == !want &&
		      (!want || op->hdr_len == want), "opcode %02x: %u bytes, not %u",
		      i, op->hdr_len, want);
	}
}

int vectors_run(void)
{
	__le32 got, want;
	u32 i, len;
	u8 *ip;

	checks = 0;
	CHECK(~crc32(~0U, "123456789", 9) == 0xcbf43926, "CRC-32");
	for (i = 0; i < ARRAY_SIZE(captured); i++) {
		ip = from_hex(captured[i], &len);
		got = icrc(ip, 20, len);
		memcpy(&want, ip + len - 4, 4);
		CHECK(got == want, "ICRC of captured packet %u", i);
		free(ip);
	}
	for (i = 0; i < ARRAY_SIZE(vectors); i++) {
		const struct vector *v = &vectors[i];
		u8 *bth;

		ip = from_hex(v->hex, &len);
		bth = ip + v->ip_len + 8;
		memcpy(&want, ip + len - 4, 4);
		CHECK(icrc(ip, v->ip_len, len) ==
		      want, "%s: ICRC", v->name);
		check_parse(v, bth, len - v->ip_len - 8);
		check_short(v, bth, len - v->ip_len - 8);
		check_frame(v, bth);
		check_bits(v, ip, len);
		check_segments(v, ip);
		free(ip);
	}
	check_noise();
	check_row();
	check_psn();
	check_tables();
	check_opcodes();
	return checks;
}
