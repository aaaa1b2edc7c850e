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

void rove_icrc_begin(struct rove_icrc *c, const void *ip, u32 ip_len)
{
	u8 *p = c->buf + ROVE_ICRC_ONES;

	c->ip_len = ip_len;
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
