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
	IP4_TOS = 1, IP4_TTL = 8, IP4_CSUM = 10, IP4_MAX = 60,
	IP6_PRIO_FLOW = 0, IP6_HOPS = 7, IP6_LEN = 40,
	UDP_CSUM = 6, UDP_LEN = 8,
	BTH_RESV8A = 4,
};

u32 rove_icrc_headers(const void *ip, u32 ip_len, const void *bth, u32 hdr_len)
{
	u8 buf[8 + IP4_MAX + UDP_LEN + ROVE_MAX_HDR];
	u8 *p = buf + 8;

	memset(buf, 0xff, 8);
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
	p += ip_len;
	memset(p + UDP_CSUM, 0xff, 2);
	p += UDP_LEN;
	memcpy(p, bth, hdr_len);
	p[BTH_RESV8A] = 0xff;
	p += hdr_len;
	return rove_env_crc32(~0U, buf, p - buf);
}
