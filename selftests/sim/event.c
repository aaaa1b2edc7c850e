// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * event.c - simulated time: a binary heap of events
 *
 * Events of the same time come out in the order they were added, so that a
 * run depends on the seed alone.
 */
#include "net.h"

static struct event *heap;
static size_t count, room;
static u64 next_seq;

static bool before(const struct event *a, const struct event *b)
{
	return a->at < b->at || (a->at == b->at && a->seq < b->seq);
}

void event_add(u64 at, enum event_type type, u32 epoch, void *arg)
{
	struct event ev = { at, next_seq++, type, epoch, arg };
	size_t i;

	if (count == room) {
		room = room ? room * 2 : 1024;
		heap = realloc(heap, room * sizeof(*heap));
	}
	for (i = count++; i && before(&ev, &heap[(i - 1) / 2]); i = (i - 1) / 2)
		heap[i] = heap[(i - 1) / 2];
	heap[i] = ev;
}

bool event_next(struct event *ev)
{
	struct event last;
	size_t i, child;

	if (!count)
		return false;
	*ev = heap[0];
	last = heap[--count];
	for (i = 0; (child = 2 * i + 1) < count; i = child) {
		if (child + 1 < count && before(&heap[child + 1], &heap[child]))
			child++;
		if (!before(&heap[child], &last))
			break;
		heap[i] = heap[child];
	}
	heap[i] = last;
	return true;
}

bool event_pending(void)
{
	return count;
}

void event_clear(void)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (heap[i].type == EV_PKT)
			train_put(heap[i].arg);
	count = 0;
	next_seq = 0;
}
