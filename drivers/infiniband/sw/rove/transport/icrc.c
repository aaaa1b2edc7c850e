// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * icrc.c - the invariant CRC of RoCE v2 packets (annex A17.3.3)
 *
 * It covers everything from the IP header to the pad, preceded by eight bytes of
 * ones in place of the local route header, with the fields that routers may change taken
 * as ones.
 */
#include <linux/string.h>
#include <linux/types.h>
#include "env.h"
#include "packet.h"

/* Header offsets, in bytes. */
enum {
	IP4_TOS = 1, IP4_LEN = 2, IP4_ID = 4, IP4_TTL = 8, IP4_CSUM = 10,
	IP6_PRIO_FLOW = 0, IP6_PAYLOAD_LEN = 4, IP6_HOPS = 7, IP6_LEN = 40,
	UDP_DGRAM_LEN = 4, UDP_CSUM = 6, UDP_LEN = 8,
	BTH_RESV8A = 4,
	LRH_LEN = 8,
};

static void put16(u8 *p, u32 v)
{
	p[0] = v >> 8;
	p[1] = v;
}

void rove_icrc_begin(struct rove_icrc *c, const void *ip, u32 ip_len)
{
	u8 *p = c->buf + LRH_LEN;

	c->ip_len = ip_len;
	memset(c->buf, 0xff, LRH_LEN);
	memcpy(p, ip, ip_len + UDP_LEN);
	if (p[0] >> 4 == 4) {
		p[IP4_TOS] = 0xff;
		p[IP4_TTL] = 0xff;
		memset(p + IP4_CSUM, 0xff, 2);
	} else {
		/* Traffic class and flow label; the version counts. */
		p[IP6_PRIO_FLOW] |= 0x0f;
		memset(p + IP6_PRIO_FLOW + 1, 0xff, 3);
		p[IP6_HOPS] = 0xff;
	}
	memset(p + ip_len + UDP_CSUM, 0xff, 2);
}

void rove_icrc_of_segment(struct rove_icrc *c, u32 len, u16 id)
{
	u8 *p = c->buf + LRH_LEN;

	if (p[0] >> 4 == 4) {
		put16(p + IP4_LEN, c->ip_len + UDP_LEN + len);
		put16(p + IP4_ID, id);
	} else {
		/* Extension headers count as payload. */
		put16(p + IP6_PAYLOAD_LEN, c->ip_len - IP6_LEN + UDP_LEN + len);
	}
	put16(p + c->ip_len + UDP_DGRAM_LEN, UDP_LEN + len);
}

u32 rove_icrc_headers(struct rove_icrc *c, const void *bth, u32 hdr_len)
{
	u8 *p = c->buf + LRH_LEN + c->ip_len + UDP_LEN;

	rove_copy_headers(p, bth, hdr_len);
	p[BTH_RESV8A] = 0xff;
	p += hdr_len;
	return rove_env_crc32(~0U, c->buf, p - c->buf);
}
