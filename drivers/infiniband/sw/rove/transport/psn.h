/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * psn.h - arithmetic on 24-bit packet, message and send sequence numbers
 *
 * They live in the low 24 bits of a u32 and wrap (IBTA vol. 1, 9.7.2).
 * Comparisons hold while the two numbers are less than 2^23 apart.
 */
#ifndef ROVE_PSN_H
#define ROVE_PSN_H

#include <linux/types.h>

#define ROVE_PSN_MASK	0xffffffU

/* @psn + @n, wrapped. */
static inline u32 psn_add(u32 psn, u32 n)
{
	return (psn + n) & ROVE_PSN_MASK;
}

/* Signed distance from @b to @a: positive when @a comes after @b. */
static inline s32 psn_diff(u32 a, u32 b)
{
	return (s32)((a - b) << 8) >> 8;
}

#endif /* ROVE_PSN_H */
