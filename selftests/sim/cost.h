/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * cost.h - what cost.c asks of costpkt.c
 */
#ifndef COST_H
#define COST_H

#include "icrc.h"
#include "packet.h"

void cost_make_packet(struct rove_icrc *icrc, const struct rove_burst *b, u32 i,
		      u32 dest_qpn, u8 *hdr, struct rove_frame *f);
bool cost_take_packet(struct rove_icrc *icrc, struct rove_row *row, struct rove_pkt *pkt,
		      u32 i, const u8 *hdr, u32 len);

#endif /* COST_H */
