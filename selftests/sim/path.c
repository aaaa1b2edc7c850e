// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * path.c - what lies between two hosts: qdiscs, devices, wires, routers, GRO
 *
 *	path_send()	split, lose, corrupt, remark, repeat, delay
 *	path_arrive()	merge with what came just before
 *
 * A super-packet may come through whole, as between two ends of a veth, or be
 * split, by a device or before a wire; what netem loses is always one of
 * either.  What arrives may be merged by the rules of the kernel's GRO.
 */
#include "net.h"

/* How long GRO keeps a packet: one poll of a device. */
#define GRO_NS		4000

/* Flows that GRO keeps a packet of. */
static struct train *held[MAX_QPS];
static u32 nheld;
static bool polling;

/* ---- what happens to packets ---- */

/* Is this bit one that routers may change, so that no ICRC covers it? */
static bool is_variant(const struct packet *p, u32 byte, u32 bit)
{
	if (byte >= p->ip_len + 8)
		return byte == p->ip_len + 8 + 4;	/* BTH: FECN, BECN, reserved */
	if (byte >= p->ip_len)
		return byte >= p->ip_len + 6;		/* UDP checksum */
	if (!is_ip4(p))
		return (byte == 0 && bit < 4) || (byte > 0 && byte < 4) || byte == 7;
	return byte == 1 || byte == 8 || byte == 10 || byte == 11;
}

/* Flip a bit from byte @from on: within a super-packet there are no headers. */
static void flip_bit(struct packet *p, u32 from)
{
	u32 bit = from * 8 + below((p->len - from) * 8);

	p->flip = is_variant(p, bit / 8, bit % 8) ? FLIP_HARMLESS : FLIP_COVERED;
	p->data[bit / 8] ^= 1 << bit % 8;
	stats.corrupted++;
	trace(p->from, "  flip byte %u bit %u%s", bit / 8, bit % 8,
	      p->flip == FLIP_HARMLESS ? " (variant)" : "");
}

/* What routers do. */
static void remark(struct packet *p)
{
	u8 *ip = p->data;

	if (is_ip4(p)) {
		ip[1] ^= rnd();
		ip[8]--;
		put16(ip + 10, rnd());
	} else {
		ip[0] ^= rnd() & 0xf;
		ip[1] ^= rnd();
		ip[7]--;
	}
	packet_bth(p)[4] ^= 0x40;	/* BECN */
}

static void damage(struct train *tr)
{
	u32 i;

	for (i = 0; i < tr->npkts; i++) {
		struct packet *p = tr->pkt[i];

		if (chance(sim.sc->corrupt))
			flip_bit(p, tr->npkts > 1 ? p->ip_len + 8 : 0);
		else if (chance(sim.sc->remark))
			remark(p);
	}
}

/* ---- the way ---- */

static u64 arrival(struct sim_qp *qp)
{
	u64 at = sim.now + 1000 + below(4000);

	if (chance(sim.sc->reorder)) {
		stats.reordered++;
		return at + below(200000);
	}
	if (chance(sim.sc->slow))
		at += below(20 * NS_PER_MS);
	/* The path of one QP keeps order otherwise. */
	qp->last_arrival = max(qp->last_arrival + 1, at);
	return qp->last_arrival;
}

static void repeat(const struct train *tr, u64 at)
{
	struct train *copy = train_new(NULL);
	u32 i;

	memcpy(copy, tr, sizeof(*tr));
	for (i = 0; i < tr->npkts; i++)
		tr->pkt[i]->refs++;
	stats.dupped++;
	event_add(at, EV_PKT, 0, copy);
}

/* One buffer, from here on lost or not as a whole. */
static void travel(struct sim_qp *qp, struct train *tr)
{
	if (qp->blackhole || chance(sim.sc->drop) ||
	    (qp->on_packet && qp->on_packet(qp, packet_bth(tr->pkt[0])))) {
		trace(qp, "  lost: %u", tr->npkts);
		stats.dropped++;
		train_put(tr);
		return;
	}
	damage(tr);
	while (chance(sim.sc->dup))
		repeat(tr, arrival(qp));
	if (chance(sim.sc->ghost))
		repeat(tr, sim.now + below(NS_PER_S / 2));
	event_add(arrival(qp), EV_PKT, 0, tr);
}

/* Take the first @n packets of a super-packet off. */
static struct train *split_off(struct train *tr, u32 n)
{
	struct train *head = train_new(NULL);

	head->npkts = n;
	memcpy(head->pkt, tr->pkt, n * sizeof(tr->pkt[0]));
	tr->npkts -= n;
	memmove(tr->pkt, tr->pkt + n, tr->npkts * sizeof(tr->pkt[0]));
	return head;
}

void path_send(struct sim_qp *from, struct train *tr)
{
	/* Who looks at single packets gets single packets. */
	bool apart = from->on_packet || rnd() & 1;

	if (tr->npkts == 1) {
		travel(from, tr);
		return;
	}
	if (!from->on_packet && !chance(from->split)) {
		stats.whole++;
		travel(from, tr);
		return;
	}
	stats.split++;
	trace(from, "  split: %u%s", tr->npkts, apart ? " into single ones" : "");
	while (tr->npkts > 1)
		travel(from, split_off(tr, apart ? 1 : between(1, tr->npkts - 1)));
	travel(from, tr);
}

/* ---- GRO ---- */

static bool same_flow(const struct packet *a, const struct packet *b)
{
	u32 addr = is_ip4(a) ? 12 : 8, len = is_ip4(a) ? 8 : 32;

	return is_ip4(a) == is_ip4(b) &&
	       !memcmp(a->data + addr, b->data + addr, len) &&
	       !memcmp(a->data + a->ip_len, b->data + b->ip_len, 4);
}

/* How the IDs of a super-packet's packets go on: 0 or 1; -1: it is but one. */
static int id_step(const struct train *tr)
{
	if (tr->npkts == 1)
		return -1;
	return (u16)(ip_id(tr->pkt[1]) - ip_id(tr->pkt[0]));
}

static bool ids_fit(const struct train *a, const struct train *b)
{
	int step_a = id_step(a), step_b = id_step(b);
	u16 gap = ip_id(b->pkt[0]) - ip_id(a->pkt[a->npkts - 1]);

	if (!is_ip4(a->pkt[0]))
		return true;
	return gap <= 1 && (step_a < 0 || step_a == gap) &&
	       (step_b < 0 || step_b == gap);
}

/* Can more be added behind it? */
static bool is_open(const struct train *tr)
{
	return tr->npkts < NET_MAX_SEGS &&
	       tr->pkt[tr->npkts - 1]->len == tr->pkt[0]->len;
}

/* Only what a device has found to be whole, and without IP options. */
static bool gro_able(const struct train *tr)
{
	const struct packet *p = tr->pkt[0];

	return (tr->npkts > 1 || p->flip == FLIP_NONE) &&
	       (p->data[0] == 0x45 || !is_ip4(p));
}

static bool merge(struct train *a, struct train *b)
{
	u32 len = packet_bth_len(a->pkt[0]), i;

	if (!is_open(a) || a->npkts + b->npkts > NET_MAX_SEGS ||
	    packet_bth_len(b->pkt[0]) > len ||
	    (b->npkts > 1 && packet_bth_len(b->pkt[0]) != len) ||
	    a->pkt[0]->ip_len + 8 + train_len(a) + train_len(b) > NET_MAX_IP ||
	    !ids_fit(a, b))
		return false;
	for (i = 0; i < b->npkts; i++) {
		a->pkt[a->npkts++] = b->pkt[i];
		b->pkt[i]->refs++;
	}
	train_put(b);
	stats.merged++;
	return true;
}

static void release(u32 i)
{
	struct train *tr = held[i];

	nheld--;
	memmove(held + i, held + i + 1, (nheld - i) * sizeof(held[0]));
	net_receive(tr);
}

void path_arrive(struct train *tr)
{
	bool able = tr->pkt[0]->to->gro && gro_able(tr);
	u32 i;

	for (i = 0; i < nheld && !same_flow(held[i]->pkt[0], tr->pkt[0]); i++)
		;
	if (i < nheld) {
		bool merged = able && merge(held[i], tr);

		if (merged && is_open(held[i]))
			return;
		/* Nothing overtakes it. */
		release(i);
		if (merged)
			return;
	}
	if (!able || !is_open(tr)) {
		net_receive(tr);
		return;
	}
	if (nheld == ARRAY_SIZE(held))
		release(0);
	held[nheld++] = tr;
	if (!polling) {
		polling = true;
		event_add(sim.now + below(GRO_NS), EV_GRO, 0, NULL);
	}
}

/* The device's poll is over. */
void path_poll(void)
{
	polling = false;
	while (nheld)
		release(0);
}

void path_clear(void)
{
	polling = false;
	while (nheld)
		train_put(held[--nheld]);
}
