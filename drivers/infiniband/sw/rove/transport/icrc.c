// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * icrc.c - see icrc.h
 */
#include <linux/string.h>
#include "icrc.h"

/* Header offsets, in bytes. */
enum {
	IP4_TOS = 1, IP4_TTL = 8, IP4_CSUM = 10,
	IP6_PRIO_FLOW = 0, IP6_HOPS = 7,
	UDP_CSUM = 6,
};

const u32 rove_icrc_id_step[16] = {
	0x9b73ead4, 0x76e5393d, 0x76b998ae, 0x7600db88,
	0x77725dc4, 0x7597515c, 0x705d486c, 0x7bc97a0c,
	0xfaec1f2b, 0x23d7d324, 0x4ad14d7b, 0x98dc71c5,
	0xe7b70ef8, 0x1961f082, 0x3fbd0a37, 0x7204ff5d,
};

void rove_icrc_begin(struct rove_icrc *c, const void *ip, u32 ip_len)
{
	u8 *p = c->buf + ROVE_ICRC_ONES;

	c->ip_len = ip_len;
	c->seg_len = 0;
	c->known = false;
	memset(c->buf, 0xff, ROVE_ICRC_ONES);
	memcpy(p, ip, ip_len + ROVE_ICRC_UDP_LEN);
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

static void put16(u8 *p, u32 v)
{
	p[0] = v >> 8;
	p[1] = v;
}

void rove_icrc_relay(struct rove_icrc *c, u32 len, u16 id)
{
	u8 *p = c->buf + ROVE_ICRC_ONES;

	c->seg_len = len;
	c->id = id;
	c->known = false;
	len += ROVE_ICRC_UDP_LEN;
	if (rove_icrc_is_ip4(c)) {
		put16(p + ROVE_ICRC_IP4_LEN, c->ip_len + len);
		put16(p + ROVE_ICRC_IP4_ID, id);
	} else {
		/* Extension headers count as payload. */
		put16(p + ROVE_ICRC_IP6_PAYLOAD_LEN, c->ip_len - ROVE_ICRC_IP6_LEN + len);
	}
	put16(p + c->ip_len + ROVE_ICRC_UDP_DGRAM_LEN, len);
}
