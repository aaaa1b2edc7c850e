/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * net.h - packets and super-packets, as net.c and path.c share them
 *
 * A packet is always kept as it would be alone on the wire.  A super-packet is
 * a row of them, so that splitting and merging are moves; but what a receiver
 * may know of it is the first one's IP and UDP header and what follows the UDP
 * header of each.
 */
#ifndef SIM_NET_H
#define SIM_NET_H

#include "sim.h"

/* The kernel's limits, on purpose not train.h's. */
#define NET_MAX_SEGS	64	/* UDP_MAX_SEGMENTS, UDP_GRO_CNT_MAX */
#define NET_MAX_IP	65535	/* IP total length */
#define NET_LINK_HDR	22	/* Ethernet and two VLAN tags */

/*
 * @flip says whether a bit was flipped, and whether where the ICRC must notice:
 * such a packet must never reach the transport, and the others always must.
 */
struct packet {
	u32 refs;
	u32 len;
	u32 ip_len;
	struct sim_qp *from;
	struct sim_qp *to;
	bool injected;		/* may be malformed */
	enum { FLIP_NONE, FLIP_HARMLESS, FLIP_COVERED } flip;
	struct packet *next_free;
	u8 data[];
};

/* One packet or a super-packet; its packets may be shared with copies. */
struct train {
	u32 npkts;
	struct train *next;
	struct packet *pkt[NET_MAX_SEGS];
};

static inline void put16(u8 *p, u16 v)
{
	p[0] = v >> 8;
	p[1] = v;
}

static inline u16 get16(const u8 *p)
{
	return p[0] << 8 | p[1];
}

static inline bool is_ip4(const struct packet *p)
{
	return p->data[0] >> 4 == 4;
}

static inline u16 ip_id(const struct packet *p)
{
	return get16(p->data + 4);
}

/* What follows the UDP header. */
static inline u8 *packet_bth(struct packet *p)
{
	return p->data + p->ip_len + 8;
}

static inline u32 packet_bth_len(const struct packet *p)
{
	return p->len - p->ip_len - 8;
}

/* Bytes after the UDP header of the whole. */
static inline u32 train_len(const struct train *tr)
{
	return (tr->npkts - 1) * packet_bth_len(tr->pkt[0]) +
	       packet_bth_len(tr->pkt[tr->npkts - 1]);
}

void packet_put(struct packet *p);
struct train *train_new(struct packet *p);
void train_put(struct train *tr);

void path_send(struct sim_qp *from, struct train *tr);

#endif /* SIM_NET_H */
