/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * fetch.h - copies of work requests, out of rings that a program can write to
 *
 * Whatever it writes while we read: each byte is read once, only the copy is looked at, and
 * no length that it gives makes the copy leave the slot or the room for it.
 * selftests/fuzz/ring.c holds this to it.
 */
#ifndef ROVE_FETCH_H
#define ROVE_FETCH_H

#include <linux/minmax.h>
#include <linux/string.h>
#include "ring.h"
#include "transport/tqp.h"

/**
 * rove_take_send() - copy the next send work request out of a ring
 * @r: not empty; its lock is held
 * @w: behind @w->wqe there is as much room as in a slot of the ring; nothing in it has
 *	been checked
 *
 * The slot is not the program's again before hdr->cons says so.
 */
static inline void rove_take_send(struct rove_ring *r, struct rove_swqe *w)
{
	const struct rove_send_wqe *slot = rove_ring_slot(r, r->cons++);
	u32 room = r->stride - sizeof(*slot), len;

	/* Lengths first.  The program may be writing to it; it is judged afterwards. */
	data_race(memcpy(&w->wqe, slot, sizeof(*slot)));
	barrier();	/* the compiler is not to read the slot again, either */
	len = w->wqe.flags & ROVE_WR_INLINE ? w->wqe.inline_len :
	      w->wqe.num_sge * sizeof(struct rove_sge);
	/* likewise */
	data_race(memcpy(w->wqe.sge, slot->sge, min(len, room)));
	barrier();
}

/**
 * rove_take_recv() - copy the next receive work request out of a ring
 * @r: not empty; its lock is held
 * @w: filled in as rove_env_rq_fetch() says
 * @max_sge: that the ring's slots and @w->sge have room for
 */
static inline void rove_take_recv(struct rove_ring *r, struct rove_rwqe *w,
				  u32 max_sge)
{
	const struct rove_recv_wqe *slot = rove_ring_slot(r, r->cons++);
	u32 i;

	w->wr_id = READ_ONCE(slot->wr_id);
	w->num_sge = READ_ONCE(slot->num_sge);
	w->length = 0;
	if (likely(w->num_sge <= max_sge)) {
		/* The program may be writing to it; the keys decide. */
		data_race(memcpy(w->sge, slot->sge,
				 w->num_sge * sizeof(*w->sge)));
		barrier();
		for (i = 0; i < w->num_sge; i++)
			w->length += w->sge[i].length;
	}
	/* The program may use the slot again once it sees this. */
	smp_store_release(&r->hdr->cons, r->cons);
}

#endif /* ROVE_FETCH_H */
