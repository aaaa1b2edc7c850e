/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * packet.h - packets as the transport sees them: parsed, or about to be built
 *
 * In: rove_pkt_parse() turns the bytes after the UDP header into a struct rove_pkt, or
 * refuses them; most of a long message's are like the one before (struct rove_row).
 * Out: the transport describes a run of packets of one message as a struct rove_burst,
 * and the environment asks rove_burst_frame() for each packet's headers while it lays
 * out buffers as it likes (one by one, or as one segmentation super-packet).
 */
#ifndef ROVE_PACKET_H
#define ROVE_PACKET_H

#include <asm/byteorder.h>
#include <linux/compiler.h>
#include <linux/string.h>
#include <linux/types.h>
#include "psn.h"
#include "wire.h"

struct rove_swqe;

/**
 * struct rove_origin - where a datagram came from, as its receiver is told
 * @grh: its IPv6 header, or 20 bytes of zeros and its IPv4 header (annex A17)
 * @sl: service level: the priority that its DSCP stands for
 * @network_hdr_type: enum rove_network_hdr
 * @vlan_id: of the VLAN it came by, or ROVE_NO_VLAN
 */
struct rove_origin {
	u8 grh[ROVE_GRH_LEN];
	u8 sl;
	u8 network_hdr_type;
	u16 vlan_id;
};

/**
 * struct rove_pkt - a received packet, checked and in host byte order
 * @opcode: enum rove_opcode, with the service bits
 * @op: its row of rove_opcodes[]; never one without ROVE_OPF_VALID
 * @solicited: solicited event bit
 * @ackreq: acknowledge request bit
 * @pkey: partition key
 * @qpn: destination QP
 * @psn: packet sequence number
 * @hdr_len: offset of the payload from the BTH
 * @payload_len: payload bytes, without pad and ICRC
 * @va: RETH, AtomicETH: remote address
 * @rkey: RETH, AtomicETH: remote key
 * @dma_len: RETH: length of the whole message
 * @swap_add: AtomicETH
 * @compare: AtomicETH
 * @syndrome: AETH
 * @msn: AETH
 * @atomic_orig: AtomicAckETH: value before the operation
 * @imm: ImmDt, as on the wire
 * @inv_rkey: IETH
 * @srqn: XRCETH: number of an SRQ
 * @qkey: DETH
 * @src_qpn: DETH
 * @origin: UD: filled in by the environment before rove_tqp_rx()
 * @buf: the environment's handle on the bytes, for its copy functions
 */
struct rove_pkt {
	u8 opcode;
	bool solicited;
	bool ackreq;
	const struct rove_opcode_info *op;
	u16 pkey;
	u32 qpn;
	u32 psn;
	u32 hdr_len;
	u32 payload_len;
	u64 va;
	u32 rkey;
	u32 dma_len;
	u64 swap_add;
	u64 compare;
	u8 syndrome;
	u32 msn;
	u64 atomic_orig;
	__be32 imm;
	u32 inv_rkey;
	u32 srqn;
	u32 qkey;
	u32 src_qpn;
	const struct rove_origin *origin;
	void *buf;
};

/**
 * rove_pkt_parse() - read and check a packet's headers
 * @pkt: filled in, but for @origin and @buf
 * @bth: the bytes that follow the UDP header; at least min(@len, ROVE_MAX_HDR)
 *	of them must be readable
 * @len: bytes from the BTH to the end of the ICRC
 *
 * Checks the opcode, the transport version and that headers, pad and ICRC fit
 * into @len; not the ICRC and nothing that depends on a QP (IBTA 9.6.1).
 *
 * Return: 0, or -EBADMSG.
 */
int rove_pkt_parse(struct rove_pkt *pkt, const u8 *bth, u32 len);

/**
 * struct rove_row - packets in a row that differ in nothing but their PSN
 * @len: bytes of each from the BTH to the end of the ICRC; 0: there is no row
 * @head: the BTH of each but for its last word, as on the wire
 *
 * The middle of a message, or short messages: what was found of one holds for the next.
 */
struct rove_row {
	u32 len;
	u32 head[2];
};

/**
 * rove_row_begin() - a packet that others may follow in a row
 * @row: filled in
 * @pkt: what rove_pkt_parse() has made of it
 * @bth: as there
 * @len: as there
 */
static inline void rove_row_begin(struct rove_row *row, const struct rove_pkt *pkt,
				  const u8 *bth, u32 len)
{
	row->len = pkt->hdr_len == sizeof(struct rove_bth) && !pkt->ackreq ? len : 0;
	memcpy(row->head, bth, sizeof(row->head));
}

/**
 * rove_row_goes_on() - is a packet the next one of a row?
 * @row: the row
 * @pkt: the packet before it; then this one, as rove_pkt_parse() would have it
 * @bth: the bytes that follow the UDP header; those of a BTH must be readable
 * @len: bytes from the BTH to the end of the ICRC
 *
 * Return: false: it is another sort of packet, and @pkt is as it was.
 */
static __always_inline bool rove_row_goes_on(const struct rove_row *row, struct rove_pkt *pkt,
					     const u8 *bth, u32 len)
{
	const struct rove_bth *h = (const void *)bth;
	u32 head[2], apsn;
	__be32 word;

	if (len != row->len)
		return false;
	/* Who sends it may write to it: one look, at a word that need not be aligned. */
	memcpy(&word, &h->apsn, sizeof(word));
	OPTIMIZER_HIDE_VAR(word);
	apsn = be32_to_cpu(word);
	memcpy(head, bth, sizeof(head));
	if (head[0] != row->head[0] || head[1] != row->head[1] || apsn != pkt->psn + 1 ||
	    apsn > ROVE_PSN_MASK)
		return false;
	pkt->psn = apsn;
	return true;
}

/* The sorts of messages. */
enum rove_burst_kind {
	ROVE_BURST_SEND,
	ROVE_BURST_WRITE,
	ROVE_BURST_READ_REQUEST,
	ROVE_BURST_ATOMIC,
	ROVE_BURST_READ_RESPONSE,
	ROVE_BURST_ATOMIC_ACK,
	ROVE_BURST_ATOMIC_WRITE,
	ROVE_BURST_ATOMIC_WRITE_ACK,
	ROVE_BURST_ACK,
	ROVE_BURST_DATAGRAM,
};

/**
 * struct rove_burst - consecutive packets of one message, to be built and sent
 * @kind: what message
 * @service: enum rove_service
 * @first: the first packet here is the message's first
 * @last: the last packet here is the message's last
 * @solicited: set SE in the last packet
 * @ackreq: set AckReq in the last packet here
 * @psn: of the first packet
 * @npkts: number of packets, at least 1
 * @mtu: payload bytes of each packet but the message's last
 * @offset: first payload byte, counted from the message's beginning
 * @length: payload bytes in this burst
 * @wqe: SEND, WRITE, ATOMIC, ATOMIC_WRITE, READ_REQUEST, DATAGRAM: the work request; its
 *	SGEs or inline bytes are the payload
 * @va: RETH and AtomicETH of the first packet; READ_RESPONSE: where the
 *	payload is read, at @va + @offset
 * @rkey: likewise; DATAGRAM: its Q_Key
 * @dma_len: RETH; DATAGRAM: number of the QP that sends it
 * @syndrome: AETH
 * @msn: AETH
 * @atomic_orig: ATOMIC_ACK
 */
struct rove_burst {
	enum rove_burst_kind kind;
	u8 service;
	bool first;
	bool last;
	bool solicited;
	bool ackreq;
	u32 psn;
	u32 npkts;
	u32 mtu;
	u32 offset;
	u32 length;
	const struct rove_swqe *wqe;
	u64 va;
	u32 rkey;
	u32 dma_len;
	u8 syndrome;
	u32 msn;
	u64 atomic_orig;
};

/**
 * struct rove_frame - one packet of a burst
 * @hdr_len: bytes of BTH and extended headers
 * @offset: of its payload within the burst
 * @payload_len: payload bytes
 * @pad: zero bytes between payload and ICRC, 0 to 3
 */
struct rove_frame {
	u32 hdr_len;
	u32 offset;
	u32 payload_len;
	u32 pad;
};

/* Bytes from the BTH to the end of the ICRC. */
static inline u32 rove_frame_len(const struct rove_frame *f)
{
	return f->hdr_len + f->payload_len + f->pad + ROVE_ICRC_LEN;
}

/**
 * rove_burst_frame() - headers of one packet of a burst
 * @b: the burst
 * @i: which packet, below @b->npkts
 * @dest_qpn: destination QP
 * @hdr: ROVE_MAX_HDR bytes; BTH and extended headers are written here
 * @f: filled in
 */
void rove_burst_frame(const struct rove_burst *b, u32 i, u32 dest_qpn, u8 *hdr,
		      struct rove_frame *f);

/**
 * rove_burst_next() - headers of a burst's packets, one after the other
 * @b: the burst
 * @i: which packet
 * @dest_qpn: destination QP
 * @hdr: unless @i is 0 those of packet @i - 1; those of packet @i are written here
 * @f: likewise
 */
static inline void rove_burst_next(const struct rove_burst *b, u32 i, u32 dest_qpn,
				   u8 *hdr, struct rove_frame *f)
{
	struct rove_bth *bth = (void *)hdr;

	if (i < 2 || i == b->npkts - 1) {
		rove_burst_frame(b, i, dest_qpn, hdr, f);
		return;
	}
	/* In the middle of a message nothing else is different. */
	f->offset += b->mtu;
	bth->apsn = cpu_to_be32(psn_add(b->psn, i));
}

#endif /* ROVE_PACKET_H */
