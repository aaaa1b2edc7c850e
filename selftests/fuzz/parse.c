// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * parse.c - any bytes for a packet; any burst for the headers that are built
 *
 * What is accepted adds up to its length; what is built is accepted, and says what was
 * meant.  The buffer ends where the parser may not read on.
 */
#include "sim.h"

#define MUST(c) do { if (!(c)) { fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #c); abort(); } } while (0)

static void parse(const u8 *data, u32 len)
{
	u32 head = min(len, (u32)ROVE_MAX_HDR), pad;
	u8 *buf = malloc(head);
	struct rove_pkt pkt;

	memcpy(buf, data, head);
	memset(&pkt, 0x5a, sizeof(pkt));
	if (!rove_pkt_parse(&pkt, buf, len)) {
		pad = (buf[1] & ROVE_BTH_PAD_MASK) >> ROVE_BTH_PAD_SHIFT;
		MUST(pkt.op == &rove_opcodes[buf[0]] && pkt.opcode == buf[0]);
		MUST(pkt.op->flags & ROVE_OPF_VALID && pkt.hdr_len <= ROVE_MAX_HDR);
		MUST(pkt.hdr_len + pkt.payload_len + pad + ROVE_ICRC_LEN == len);
		MUST(!((pkt.payload_len + pad) & 3));
		MUST(pkt.op->flags & ROVE_OPF_PAYLOAD || !pkt.payload_len);
		MUST(pkt.qpn <= ROVE_PSN_MASK && pkt.psn <= ROVE_PSN_MASK);
		if (pkt.op->flags & ROVE_OPF_XRCETH)
			MUST(pkt.srqn <= ROVE_PSN_MASK);
		if (pkt.op->flags & ROVE_OPF_DETH)
			MUST(pkt.src_qpn <= ROVE_PSN_MASK);
		if (pkt.op->flags & ROVE_OPF_AETH)
			MUST(pkt.msn <= ROVE_PSN_MASK);
	}
	free(buf);
}

struct wish {
	u8 kind, service, opcode, bits;
	u16 npkts, tail;
	u32 psn, srqn, rkey, dma_len, msn;
	u64 va, swap, compare;
} __packed;

/* Which services have which bursts: what the engine can ask for. */
static bool sensible(u8 kind, u8 service, u8 opcode)
{
	if (kind == ROVE_BURST_DATAGRAM)
		return service == 0 && opcode != ROVE_WR_SEND_WITH_INV;
	if (service == ROVE_SVC_UC)
		return kind <= ROVE_BURST_WRITE && opcode != ROVE_WR_SEND_WITH_INV;
	return true;
}

static void build(const u8 *data, u32 len)
{
	static const u8 services[] = { ROVE_SVC_RC, ROVE_SVC_UC, ROVE_SVC_XRC };
	struct rove_swqe w = {};
	struct rove_burst b = {};
	struct rove_row row = {};
	struct rove_pkt in_row;
	struct wish x;
	bool payload;
	u32 i, total = 0;

	if (len < sizeof(x))
		return;
	memcpy(&x, data, sizeof(x));
	b.kind = x.kind % (ROVE_BURST_DATAGRAM + 1);
	b.service = b.kind == ROVE_BURST_DATAGRAM ? 0 : services[x.service % 3];
	w.wqe.opcode = x.opcode % 10;
	if (!sensible(b.kind, b.service, w.wqe.opcode))
		return;
	payload = b.kind == ROVE_BURST_SEND || b.kind == ROVE_BURST_WRITE ||
		  b.kind == ROVE_BURST_READ_RESPONSE;
	b.mtu = 256 << x.bits % 5;
	b.first = !payload || x.bits & 8;
	b.last = !payload || x.bits & 16;
	b.solicited = x.bits & 32;
	b.ackreq = x.bits & 64;
	b.npkts = payload ? 1 + x.npkts % 64 : 1;
	b.length = payload ? (b.npkts - 1) * b.mtu + (b.last ? x.tail % (b.mtu + 1) : b.mtu) : 0;
	if (b.npkts > 1 && b.length <= (b.npkts - 1) * b.mtu)
		b.length++;
	if (b.kind == ROVE_BURST_ATOMIC_WRITE)
		b.length = 8;
	if (b.kind == ROVE_BURST_DATAGRAM)
		b.length = x.tail % (b.mtu + 1);
	b.psn = x.psn & ROVE_PSN_MASK;
	b.va = x.va;
	b.rkey = x.rkey;
	b.dma_len = b.kind == ROVE_BURST_DATAGRAM ? x.dma_len & ROVE_PSN_MASK : x.dma_len;
	b.syndrome = x.bits;
	b.msn = x.msn & ROVE_PSN_MASK;
	b.atomic_orig = x.swap;
	b.wqe = &w;
	w.wqe.srqn = x.srqn;
	w.wqe.imm_data = x.rkey;
	w.wqe.compare_add = x.compare;
	w.wqe.swap = x.swap;
	for (i = 0; i < b.npkts; i++) {
		static u8 packet[ROVE_MAX_HDR + 4096 + 8];
		static struct rove_frame next;
		static u8 hdr[ROVE_MAX_HDR];
		struct rove_frame f;
		struct rove_pkt pkt;

		memset(packet, 0, sizeof(packet));
		rove_burst_frame(&b, i, x.srqn & ROVE_PSN_MASK, packet, &f);
		rove_burst_next(&b, i, x.srqn & ROVE_PSN_MASK, hdr, &next);
		MUST(!memcmp(hdr, packet, f.hdr_len) && !memcmp(&next, &f, sizeof(f)));
		MUST(f.payload_len <= b.mtu && f.offset == total);
		MUST(!rove_pkt_parse(&pkt, packet, rove_frame_len(&f)));
		MUST(pkt.hdr_len == f.hdr_len && pkt.payload_len == f.payload_len);
		MUST(pkt.psn == psn_add(b.psn, i) && pkt.qpn == (x.srqn & ROVE_PSN_MASK));
		MUST(pkt.ackreq == (b.ackreq && i == b.npkts - 1));
		if (b.kind != ROVE_BURST_DATAGRAM)
			MUST((pkt.opcode & ROVE_SVC_MASK) == b.service);
		if (pkt.op->flags & (ROVE_OPF_RETH | ROVE_OPF_ATOMICETH))
			MUST(pkt.va == b.va && pkt.rkey == b.rkey);
		if (pkt.op->flags & ROVE_OPF_RETH)
			MUST(pkt.dma_len == b.dma_len);
		if (pkt.op->flags & ROVE_OPF_AETH)
			MUST(pkt.syndrome == b.syndrome && pkt.msn == b.msn);
		if (pkt.op->flags & ROVE_OPF_XRCETH)
			MUST(pkt.srqn == (x.srqn & ROVE_PSN_MASK));
		if (pkt.op->flags & ROVE_OPF_IMM)
			MUST(pkt.imm == w.wqe.imm_data);
		total += f.payload_len;
		if (rove_row_goes_on(&row, &in_row, packet, rove_frame_len(&f)))
			MUST(in_row.psn == pkt.psn && in_row.op == pkt.op && !pkt.ackreq);
		else
			MUST(i < 2 || i == b.npkts - 1 || !pkt.psn || pkt.hdr_len > 12);
		in_row = pkt;
		rove_row_begin(&row, &pkt, packet, rove_frame_len(&f));
	}
	MUST(total == b.length);
}

/*
 * Headers of any shape do not leave the buffer, and a packet of a train has the ICRC of one
 * that comes alone.
 */
static void icrc(const u8 *data, u32 len)
{
	u8 ip[ROVE_MAX_IP_HDR + 8] = {}, bth[ROVE_MAX_HDR] = {};
	struct rove_icrc c, alone;
	u32 ip_len, i, seg;
	u16 id = len;

	memcpy(ip, data, min(len, (u32)sizeof(ip)));
	ip[0] = ip[0] & 1 ? 0x60 : 0x40 | (5 + (ip[0] >> 4) % 11);
	ip_len = ip[0] == 0x60 ? 40 : (ip[0] & 15) * 4;
	rove_icrc_begin(&c, ip, ip_len);
	for (i = 0; i < len; i++) {
		id += data[i] & 3;
		seg = 16 + (data[i] & 0xc0);
		bth[4] = data[i] & 0x20;
		rove_icrc_of_segment(&c, seg, id);
		rove_icrc_begin(&alone, ip, ip_len);
		rove_icrc_of_segment(&alone, seg, id);
		MUST(rove_icrc_crc32(&c, bth, 12 + 4 * (ip[1] % 9), crc32) ==
		     rove_icrc_crc32(&alone, bth, 12 + 4 * (ip[1] % 9), crc32));
	}
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t len)
{
	if (!len)
		return 0;
	switch (data[0] % 3) {
	case 0:
		parse(data + 1, len - 1);
		break;
	case 1:
		build(data + 1, len - 1);
		break;
	case 2:
		icrc(data + 1, len - 1);
		break;
	}
	return 0;
}
