// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * frame.c - headers: bytes to struct rove_pkt, struct rove_burst to bytes
 */
#include <linux/build_bug.h>
#include <linux/compiler.h>
#include <linux/errno.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <asm/byteorder.h>
#include "packet.h"
#include "tqp.h"

int rove_pkt_parse(struct rove_pkt *pkt, const u8 *buf, u32 len)
{
	const struct rove_bth *bth = (const void *)buf;
	const struct rove_opcode_info *op;
	const u8 *ext = buf + sizeof(*bth);
	u8 opcode, flags;
	u32 pad, apsn;

	if (len < sizeof(*bth) + ROVE_ICRC_LEN)
		return -EBADMSG;
	/* Who has sent it may be able to change it still: what is checked is what is used. */
	opcode = READ_ONCE(bth->opcode);
	flags = READ_ONCE(bth->flags);
	op = &rove_opcodes[opcode];
	pad = (flags & ROVE_BTH_PAD_MASK) >> ROVE_BTH_PAD_SHIFT;
	if (!(op->flags & ROVE_OPF_VALID) || flags & ROVE_BTH_TVER_MASK ||
	    len < op->hdr_len + pad + ROVE_ICRC_LEN)
		return -EBADMSG;

	pkt->opcode = opcode;
	pkt->op = op;
	pkt->solicited = flags & ROVE_BTH_SE;
	pkt->pkey = be16_to_cpu(bth->pkey);
	pkt->qpn = be32_to_cpu(bth->qpn) & ROVE_PSN_MASK;
	apsn = be32_to_cpu(bth->apsn);
	pkt->ackreq = apsn & ROVE_BTH_ACKREQ;
	pkt->psn = apsn & ROVE_PSN_MASK;
	pkt->hdr_len = op->hdr_len;
	pkt->payload_len = len - op->hdr_len - pad - ROVE_ICRC_LEN;
	/* Only payload is padded, and only to a multiple of four (9.2.4). */
	if (op->flags & ROVE_OPF_PAYLOAD ? (pkt->payload_len + pad) & 3 :
	    pkt->payload_len + pad)
		return -EBADMSG;

	/* Most packets of a long message. */
	if (op->hdr_len == sizeof(*bth))
		return 0;
	if (op->flags & ROVE_OPF_XRCETH) {
		const struct rove_xrceth *xrc = (const void *)ext;

		pkt->srqn = be32_to_cpu(xrc->srqn) & ROVE_PSN_MASK;
		ext += sizeof(*xrc);
	}
	if (op->flags & ROVE_OPF_RETH) {
		const struct rove_reth *reth = (const void *)ext;

		pkt->va = be64_to_cpu(reth->va);
		pkt->rkey = be32_to_cpu(reth->rkey);
		pkt->dma_len = be32_to_cpu(reth->len);
		ext += sizeof(*reth);
	}
	if (op->flags & ROVE_OPF_ATOMICETH) {
		const struct rove_atomiceth *at = (const void *)ext;

		pkt->va = be64_to_cpu(at->va);
		pkt->rkey = be32_to_cpu(at->rkey);
		pkt->swap_add = be64_to_cpu(at->swap_add);
		pkt->compare = be64_to_cpu(at->compare);
	}
	if (op->flags & ROVE_OPF_AETH) {
		u32 smsn = be32_to_cpu(((const struct rove_aeth *)ext)->smsn);

		pkt->syndrome = smsn >> 24;
		pkt->msn = smsn & ROVE_PSN_MASK;
		ext += sizeof(struct rove_aeth);
	}
	if (op->flags & ROVE_OPF_ATOMICACK) {
		__be64 orig;

		memcpy(&orig, ext, sizeof(orig));
		pkt->atomic_orig = be64_to_cpu(orig);
	}
	if (op->flags & ROVE_OPF_DETH) {
		const struct rove_deth *deth = (const void *)ext;

		pkt->qkey = be32_to_cpu(deth->qkey);
		pkt->src_qpn = be32_to_cpu(deth->src_qpn) & ROVE_PSN_MASK;
		ext += sizeof(*deth);
	}
	if (op->flags & ROVE_OPF_IMM) {
		memcpy(&pkt->imm, ext, sizeof(pkt->imm));
	} else if (op->flags & ROVE_OPF_INV) {
		__be32 key;

		memcpy(&key, ext, sizeof(key));
		pkt->inv_rkey = be32_to_cpu(key);
	}
	return 0;
}

/* Opcodes of a message's packets, by their place in it. */
static u8 send_opcode(const struct rove_send_wqe *wqe, bool first, bool last)
{
	if (!last)
		return first ? ROVE_OP_SEND_FIRST : ROVE_OP_SEND_MIDDLE;
	switch (wqe->opcode) {
	case ROVE_WR_SEND_WITH_IMM:
		return first ? ROVE_OP_SEND_ONLY_IMM : ROVE_OP_SEND_LAST_IMM;
	case ROVE_WR_SEND_WITH_INV:
		return first ? ROVE_OP_SEND_ONLY_INV : ROVE_OP_SEND_LAST_INV;
	default:
		return first ? ROVE_OP_SEND_ONLY : ROVE_OP_SEND_LAST;
	}
}

static u8 write_opcode(const struct rove_send_wqe *wqe, bool first, bool last)
{
	if (!last)
		return first ? ROVE_OP_WRITE_FIRST : ROVE_OP_WRITE_MIDDLE;
	if (wqe->opcode == ROVE_WR_RDMA_WRITE_WITH_IMM)
		return first ? ROVE_OP_WRITE_ONLY_IMM : ROVE_OP_WRITE_LAST_IMM;
	return first ? ROVE_OP_WRITE_ONLY : ROVE_OP_WRITE_LAST;
}

static u8 read_opcode(bool first, bool last)
{
	if (!last)
		return first ? ROVE_OP_READ_RESP_FIRST : ROVE_OP_READ_RESP_MIDDLE;
	return first ? ROVE_OP_READ_RESP_ONLY : ROVE_OP_READ_RESP_LAST;
}

static u8 burst_opcode(const struct rove_burst *b, bool first, bool last)
{
	switch (b->kind) {
	case ROVE_BURST_SEND:
		return send_opcode(&b->wqe->wqe, first, last);
	case ROVE_BURST_WRITE:
		return write_opcode(&b->wqe->wqe, first, last);
	case ROVE_BURST_READ_REQUEST:
		return ROVE_OP_READ_REQUEST;
	case ROVE_BURST_ATOMIC:
		return b->wqe->wqe.opcode == ROVE_WR_ATOMIC_CMP_AND_SWP ?
			ROVE_OP_COMPARE_SWAP : ROVE_OP_FETCH_ADD;
	case ROVE_BURST_READ_RESPONSE:
		return read_opcode(first, last);
	case ROVE_BURST_ATOMIC_ACK:
		return ROVE_OP_ATOMIC_ACK;
	case ROVE_BURST_ATOMIC_WRITE:
		return ROVE_OP_ATOMIC_WRITE;
	case ROVE_BURST_ATOMIC_WRITE_ACK:
		return ROVE_OP_READ_RESP_ONLY;
	case ROVE_BURST_DATAGRAM:
		return ROVE_SVC_UD | send_opcode(&b->wqe->wqe, true, true);
	case ROVE_BURST_ACK:
		break;
	}
	return ROVE_OP_ACKNOWLEDGE;
}

void rove_burst_frame(const struct rove_burst *b, u32 i, u32 dest_qpn, u8 *hdr,
		      struct rove_frame *f)
{
	bool last_here = i == b->npkts - 1;
	u8 opcode = b->service | burst_opcode(b, b->first && !i,
					      b->last && last_here);
	u32 flags = rove_opcodes[opcode].flags;
	struct rove_bth *bth = (void *)hdr;
	u8 *ext = hdr + sizeof(*bth);

	BUILD_BUG_ON(sizeof(struct rove_bth) != 12);
	BUILD_BUG_ON(sizeof(struct rove_reth) != 16);
	BUILD_BUG_ON(sizeof(struct rove_atomiceth) != 28);
	BUILD_BUG_ON(sizeof(struct rove_bth) + sizeof(struct rove_xrceth) +
		     sizeof(struct rove_atomiceth) > ROVE_MAX_HDR);

	f->offset = i * b->mtu;
	f->payload_len = last_here ? b->length - f->offset : b->mtu;
	f->pad = -f->payload_len & 3;
	f->hdr_len = rove_opcodes[opcode].hdr_len;

	bth->opcode = opcode;
	bth->flags = ROVE_BTH_MIG | f->pad << ROVE_BTH_PAD_SHIFT;
	if (b->solicited && b->last && last_here)
		bth->flags |= ROVE_BTH_SE;
	bth->pkey = cpu_to_be16(ROVE_PKEY_DEFAULT);
	bth->qpn = cpu_to_be32(dest_qpn);
	bth->apsn = cpu_to_be32(psn_add(b->psn, i) |
				(b->ackreq && last_here ? ROVE_BTH_ACKREQ : 0));

	if (f->hdr_len == sizeof(*bth))
		return;
	if (flags & ROVE_OPF_XRCETH) {
		((struct rove_xrceth *)ext)->srqn =
			cpu_to_be32(b->wqe->wqe.srqn & ROVE_PSN_MASK);
		ext += sizeof(struct rove_xrceth);
	}
	if (flags & ROVE_OPF_RETH) {
		struct rove_reth *reth = (void *)ext;

		reth->va = cpu_to_be64(b->va);
		reth->rkey = cpu_to_be32(b->rkey);
		reth->len = cpu_to_be32(b->dma_len);
		ext += sizeof(*reth);
	}
	if (flags & ROVE_OPF_ATOMICETH) {
		struct rove_atomiceth *at = (void *)ext;
		const struct rove_send_wqe *wqe = &b->wqe->wqe;
		bool cas = wqe->opcode == ROVE_WR_ATOMIC_CMP_AND_SWP;

		at->va = cpu_to_be64(b->va);
		at->rkey = cpu_to_be32(b->rkey);
		at->swap_add = cpu_to_be64(cas ? wqe->swap : wqe->compare_add);
		at->compare = cpu_to_be64(cas ? wqe->compare_add : 0);
	}
	if (flags & ROVE_OPF_AETH) {
		((struct rove_aeth *)ext)->smsn =
			cpu_to_be32((u32)b->syndrome << 24 | b->msn);
		ext += sizeof(struct rove_aeth);
	}
	if (flags & ROVE_OPF_ATOMICACK) {
		__be64 orig = cpu_to_be64(b->atomic_orig);

		memcpy(ext, &orig, sizeof(orig));
	}
	if (flags & ROVE_OPF_DETH) {
		struct rove_deth *deth = (void *)ext;

		deth->qkey = cpu_to_be32(b->rkey);
		deth->src_qpn = cpu_to_be32(b->dma_len);
		ext += sizeof(*deth);
	}
	if (flags & ROVE_OPF_IMM) {
		memcpy(ext, &b->wqe->wqe.imm_data, sizeof(__be32));
	} else if (flags & ROVE_OPF_INV) {
		__be32 key = cpu_to_be32(b->wqe->wqe.invalidate_rkey);

		memcpy(ext, &key, sizeof(key));
	}
}
