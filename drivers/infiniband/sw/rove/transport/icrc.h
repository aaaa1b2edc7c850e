/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * icrc.h - the invariant CRC of RoCE v2 packets (annex A17.3.3)
 *
 * It covers everything from the IP header to the pad, preceded by eight bytes of
 * ones in place of the local route header, with the fields that routers may change taken
 * as ones.  The transport only lays out what is covered before the payload: the CRC-32 of it,
 * and of payload and pad, is the environment's, which then stores rove_icrc_final().
 */
#ifndef ROVE_ICRC_H
#define ROVE_ICRC_H

#include <asm/byteorder.h>
#include <linux/types.h>
#include "packet.h"

/* The longest IP header that an ICRC is computed over: IPv4 with options. */
#define ROVE_MAX_IP_HDR	60

/* Bytes of ones before it. */
#define ROVE_ICRC_ONES	8

/* Offsets in the headers, in bytes. */
enum {
	ROVE_ICRC_IP4_LEN = 2, ROVE_ICRC_IP4_ID = 4,
	ROVE_ICRC_IP6_PAYLOAD_LEN = 4, ROVE_ICRC_IP6_LEN = 40,
	ROVE_ICRC_UDP_DGRAM_LEN = 4, ROVE_ICRC_UDP_LEN = 8,
	ROVE_ICRC_BTH_RESV8A = 4,
};

/**
 * struct rove_icrc - headers of the packets of one skb, as the ICRC covers them
 * @ip_len: bytes of the IP header
 * @buf: ones, IP and UDP header, and room for BTH and extended headers
 */
struct rove_icrc {
	u32 ip_len;
	u8 buf[ROVE_ICRC_ONES + ROVE_MAX_IP_HDR + ROVE_ICRC_UDP_LEN +
	       ROVE_MAX_HDR] __aligned(8);
};

/**
 * rove_icrc_begin() - take over the headers of a packet or of a train
 * @c: filled in
 * @ip: IPv4 header with options, or IPv6 header; the UDP header follows it
 * @ip_len: its length in bytes, at most ROVE_MAX_IP_HDR
 */
void rove_icrc_begin(struct rove_icrc *c, const void *ip, u32 ip_len);

static inline void rove_icrc_put16(u8 *p, u32 v)
{
	p[0] = v >> 8;
	p[1] = v;
}

/**
 * rove_icrc_of_segment() - make them those of one of the train's packets
 * @c: begun
 * @len: the packet's bytes from the BTH to the end of the ICRC
 * @id: its IPv4 identification on the wire; ignored for IPv6
 */
static __always_inline void rove_icrc_of_segment(struct rove_icrc *c, u32 len, u16 id)
{
	u8 *p = c->buf + ROVE_ICRC_ONES;

	len += ROVE_ICRC_UDP_LEN;
	if (p[0] >> 4 == 4) {
		rove_icrc_put16(p + ROVE_ICRC_IP4_LEN, c->ip_len + len);
		rove_icrc_put16(p + ROVE_ICRC_IP4_ID, id);
	} else {
		/* Extension headers count as payload. */
		rove_icrc_put16(p + ROVE_ICRC_IP6_PAYLOAD_LEN,
				c->ip_len - ROVE_ICRC_IP6_LEN + len);
	}
	rove_icrc_put16(p + c->ip_len + ROVE_ICRC_UDP_DGRAM_LEN, len);
}

/**
 * rove_icrc_headers() - complete them with the packet's own
 * @c: begun
 * @bth: BTH and extended headers
 * @hdr_len: their length
 *
 * Return: how many bytes of @c->buf the ICRC covers before the payload.
 */
static __always_inline u32 rove_icrc_headers(struct rove_icrc *c, const void *bth, u32 hdr_len)
{
	u32 n = ROVE_ICRC_ONES + c->ip_len + ROVE_ICRC_UDP_LEN;

	rove_copy_headers(c->buf + n, bth, hdr_len);
	c->buf[n + ROVE_ICRC_BTH_RESV8A] = 0xff;
	return n + hdr_len;
}

/* What is stored behind the pad, of the CRC-32 (begun with ~0) over all of that. */
static inline __le32 rove_icrc_final(u32 crc)
{
	return cpu_to_le32(~crc);
}

#endif /* ROVE_ICRC_H */
