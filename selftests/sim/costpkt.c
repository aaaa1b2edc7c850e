// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * costpkt.c - what the transport has the environment do for each packet, for cost.c
 *
 * These are inline functions: here they are built with the kernel's flags, like the
 * transport, and counted.
 */
#include "cost.h"

/* The kernel's CRC-32 is not ours to count. */
static __always_inline u32 uncounted(u32 crc, const void *buf, size_t len)
{
	return crc;
}

/* The @i-th of a burst and of a train: headers, and what its ICRC covers of them. */
void cost_make_packet(struct rove_icrc *icrc, const struct rove_burst *b, u32 i,
		      u32 dest_qpn, u8 *hdr, struct rove_frame *f)
{
	rove_burst_next(b, i, dest_qpn, hdr, f);
	rove_icrc_of_segment(icrc, rove_frame_len(f), i);
	rove_icrc_crc32(icrc, hdr, f->hdr_len, uncounted);
}

/* The @i-th of a train, of @len bytes, has come: false if it is malformed. */
bool cost_take_packet(struct rove_icrc *icrc, struct rove_row *row, struct rove_pkt *pkt,
		      u32 i, const u8 *hdr, u32 len)
{
	if (!rove_row_goes_on(row, pkt, hdr, len)) {
		if (rove_pkt_parse(pkt, hdr, len))
			return false;
		rove_row_begin(row, pkt, hdr, len);
	}
	rove_icrc_of_segment(icrc, len, i);
	rove_icrc_crc32(icrc, hdr, pkt->hdr_len, uncounted);
	return true;
}
