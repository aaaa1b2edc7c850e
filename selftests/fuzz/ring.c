// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * ring.c - rings, their indices and what stands in them, while somebody scribbles
 *
 * The ring and the copies are allocations of their exact size.  After each read the
 * bytes decide whether and where the ring changes, so that what is read twice is not the
 * same twice.
 */
#include <stdio.h>
#include <stdlib.h>
#include "fetch.h"
#undef memcpy

#define MUST(c) do { if (!(c)) { fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #c); abort(); } } while (0)

static const u8 *input, *end;
static u8 *ring;
static size_t ring_size;

static u32 take(u32 n)
{
	u32 v = 0;

	while (n-- && input < end)
		v = v << 8 | *input++;
	return v;
}

void scribble(void)
{
	static const u32 worst[] = { 0, 1, 2, 0x7fffffff, 0x80000000, 0xffffffff };
	u32 what = take(1), at, v;

	if (!(what & 1) || !ring)
		return;
	/* The producer index, the first words of the slots, or anywhere. */
	if (what & 2)
		at = 0;
	else if (what & 4)
		at = ROVE_RING_SLOTS + take(1) * 4;
	else
		at = take(2) * 4;
	v = what & 8 ? worst[(what >> 4) % ARRAY_SIZE(worst)] : take(4);
	if (at + 4 <= ring_size)
		memcpy(ring + at, &v, 4);
}

/* The indices a program could see of us: ours alone decides. */
static void check_index(const struct rove_ring *r, u32 before, int n)
{
	MUST(r->cons - before <= 1);
	MUST(n <= (int)r->depth);
}

/* Is there one to take?  Until there is, the program scribbles; false: no more input. */
static bool next(struct rove_ring *r, u32 *before, int *n)
{
	while (input < end) {
		*before = r->cons;
		*n = rove_ring_avail(r);
		check_index(r, *before, *n);
		if (*n)
			return *n > 0;
		scribble();
	}
	return false;
}

static void sends(struct rove_ring *r)
{
	size_t room = r->stride - sizeof(struct rove_send_wqe);
	struct rove_swqe *w;
	u32 before;
	int n;

	while (next(r, &before, &n)) {
		w = malloc(sizeof(*w) + room);
		memset(w, 0, sizeof(*w) + room);
		rove_take_send(r, w);
		check_index(r, before, n);
		free(w);
	}
}

static void recvs(struct rove_ring *r, u32 max_sge)
{
	struct rove_rwqe w;
	u32 before, i;
	u64 sum;
	int n;

	while (next(r, &before, &n)) {
		w.sge = malloc(max_sge * sizeof(*w.sge) + !max_sge);
		rove_take_recv(r, &w, max_sge);
		check_index(r, before, n);
		/* The length is that of the copy, whatever stands in the slot by now. */
		for (i = 0, sum = 0; w.num_sge <= max_sge && i < w.num_sge; i++)
			sum += w.sge[i].length;
		MUST(w.length == sum);
		free(w.sge);
	}
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t len)
{
	struct rove_ring r = {};
	u32 sges, kind;

	input = data;
	end = data + len;
	kind = take(1);
	sges = take(1) % 17;
	r.depth = 1 << take(1) % 6;
	r.stride = (kind & 1 ? sizeof(struct rove_send_wqe) : sizeof(struct rove_recv_wqe)) +
		   sges * sizeof(struct rove_sge);
	r.cons = take(4);
	ring_size = ROVE_RING_SLOTS + (size_t)r.depth * r.stride;
	ring = calloc(1, ring_size);
	r.hdr = (void *)ring;
	r.slots = ring + ROVE_RING_SLOTS;
	r.hdr->prod = r.cons + take(1) % (r.depth + 2);
	for (u32 i = 0; i < r.depth; i++) {
		u8 *slot = rove_ring_slot(&r, i);

		for (u32 k = 0; k < min(r.stride, 24U) && input < end; k++)
			slot[k] = take(1);
	}
	if (kind & 1)
		sends(&r);
	else
		recvs(&r, sges);
	free(ring);
	ring = NULL;
	return 0;
}
