// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * input.c - a string of bytes decides what otherwise a seed does
 *
 * For fuzzers: a byte or two a decision, so that a change of the string is a change of
 * what happens and not of everything after it.  When the string is used up nothing
 * new is begun, and the seed decides how the rest ends.
 */
#include "sim.h"

static u32 take(void)
{
	u8 v = *sim.input++;

	if (sim.input == sim.input_end) {
		sim.input = NULL;
		sim.quota = 0;
	}
	return v;
}

u64 input_rnd(void)
{
	return mix(take());
}

u32 input_below(u32 n)
{
	u32 v = 0, room;

	if (n <= 1)
		return 0;
	for (room = 1; room && room < n && sim.input; room <<= 8)
		v = v << 8 | take();
	return v % n;
}

bool input_chance(u32 ppm)
{
	return take() < max(ppm >> 13, 1U);
}
