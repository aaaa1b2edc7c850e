/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * icrc.h - the invariant CRC of RoCE v2 packets (annex A17.3.3)
 *
 * It covers everything from the IP header to the pad, preceded by eight bytes of
 * ones in place of the local route header, with the fields that routers may change taken
 * as ones.  The CRC-32 itself is a function of the environment's, which is given.
 *
 * It is linear, and that saves most of what is not payload.  Of a train's packets IP and UDP
 * headers differ in the IPv4 identification alone, which counts up: what that changes is
 * known without going over them again.  And the BTH's byte that counts as ones is zeros: what
 * that changes is added before, so that packets can be gone over as they lie there.
 */
#ifndef ROVE_ICRC_H
#define ROVE_ICRC_H

#include <asm/byteorder.h>
#include <linux/log2.h>
#include <linux/types.h>
#include "packet.h"

/* The longest IP header that an ICRC is computed over: IPv4 with options. */
#define ROVE_MAX_IP_HDR	60

/* Bytes of ones before it. */
#define ROVE_ICRC_ONES	8

/* Offsets in the headers, in bytes. */
enum {
	ROVE_ICRC_IP4_LEN = 2, ROVE_ICRC_IP4_ID = 4, ROVE_ICRC_IP4_HDR = 20,
	ROVE_ICRC_IP6_PAYLOAD_LEN = 4, ROVE_ICRC_IP6_LEN = 40,
	ROVE_ICRC_UDP_DGRAM_LEN = 4, ROVE_ICRC_UDP_LEN = 8,
	ROVE_ICRC_BTH_RESV8A = 4,
};

/**
 * struct rove_icrc - headers of the packets of one skb, as the ICRC covers them
 * @ip_len: bytes of the IP header
 * @seg_len: those of the packet that they were made for last; 0: none
 * @id: its IPv4 identification
 * @known: @crc is right
 * @crc: the CRC-32, begun with ~0, over ones, IP and UDP header
 * @buf: these; while @known what depends on @id may be an earlier packet's
 */
struct rove_icrc {
	u32 ip_len;
	u32 seg_len;
	u16 id;
	bool known;
	u32 crc;
	u8 buf[ROVE_ICRC_ONES + ROVE_MAX_IP_HDR + ROVE_ICRC_UDP_LEN] __aligned(8);
};

/*
 * What the CRC-32 over an IPv4 header without options and UDP's changes by when the
 * identification's lowest n + 1 bits do: by the CRC-32, begun with 0, of these bits and
 * the 22 bytes of zeros that follow.
 */
extern const u32 rove_icrc_id_step[16];

/*
 * A CRC-32 that is to go on with a BTH whose fifth byte is zeros, and is changed by this, comes
 * to what it would if that were ones.
 */
#define ROVE_ICRC_RESV8A_ONES	0x0f6a70d9

/**
 * rove_icrc_begin() - take over the headers of a packet or of a train
 * @c: filled in
 * @ip: IPv4 header with options, or IPv6 header; the UDP header follows it
 * @ip_len: its length in bytes, at most ROVE_MAX_IP_HDR
 */
void rove_icrc_begin(struct rove_icrc *c, const void *ip, u32 ip_len);

static __always_inline bool rove_icrc_is_ip4(const struct rove_icrc *c)
{
	return c->buf[ROVE_ICRC_ONES] >> 4 == 4;
}

/* rove_icrc_of_segment() where more has changed. */
void rove_icrc_relay(struct rove_icrc *c, u32 len, u16 id);

/**
 * rove_icrc_of_segment() - make them those of one of the train's packets
 * @c: begun
 * @len: the packet's bytes from the BTH to the end of the ICRC
 * @id: its IPv4 identification on the wire; ignored for IPv6
 */
static __always_inline void rove_icrc_of_segment(struct rove_icrc *c, u32 len, u16 id)
{
	if (len != c->seg_len || !c->known) {
		rove_icrc_relay(c, len, id);
	} else if (id == (u16)(c->id + 1) && c->ip_len == ROVE_ICRC_IP4_HDR) {
		c->crc ^= rove_icrc_id_step[ilog2(id ^ c->id)];
		c->id = id;
	} else if (id != c->id && rove_icrc_is_ip4(c)) {
		rove_icrc_relay(c, len, id);
	}
}

/**
 * rove_icrc_crc32() - the CRC-32 of a packet, or of its first bytes
 * @c: begun
 * @bth: BTH, and what follows it
 * @len: bytes there, at least those of the BTH
 * @crc32: goes on from a CRC-32 with so many bytes
 *
 * Return: the CRC-32, begun with ~0, of what the ICRC covers up to there.
 */
static __always_inline u32 rove_icrc_crc32(struct rove_icrc *c, const u8 *bth, u32 len,
					   u32 (*crc32)(u32 crc, const void *buf, size_t len))
{
	u8 masked[ROVE_ICRC_BTH_RESV8A + 1];

	if (!c->known) {
		c->crc = crc32(~0U, c->buf, ROVE_ICRC_ONES + c->ip_len + ROVE_ICRC_UDP_LEN);
		c->known = true;
	}
	if (likely(!bth[ROVE_ICRC_BTH_RESV8A]))
		return crc32(c->crc ^ ROVE_ICRC_RESV8A_ONES, bth, len);
	memcpy(masked, bth, sizeof(masked));
	masked[ROVE_ICRC_BTH_RESV8A] = 0xff;
	return crc32(crc32(c->crc, masked, sizeof(masked)), bth + sizeof(masked),
		     len - sizeof(masked));
}

/* What is stored behind the pad, of the CRC-32 (begun with ~0) over all of that. */
static inline __le32 rove_icrc_final(u32 crc)
{
	return cpu_to_le32(~crc);
}

#endif /* ROVE_ICRC_H */
