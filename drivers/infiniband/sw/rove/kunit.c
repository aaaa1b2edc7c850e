// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * kunit.c - tests of what only the kernel's build of rove has
 *
 * The transport is tested natively (selftests/sim); this is about the ground that it
 * stands on here: which CRC-32 was chosen, where a region's address lies, what a ring's
 * indices mean.  Built into rove.ko with the test modules, on kernels with KUnit.
 */
#include <kunit/test.h>
#include <linux/random.h>
#include <linux/slab.h>
#include "crc.h"
#include "region.h"
#include "ring.h"

#define CRC_MAX		1200	/* the crypto API's begins at 256 */

/* As it is defined: bit by bit (IEEE 802.3, reflected). */
static u32 crc_by_definition(u32 crc, const u8 *p, size_t len)
{
	int bit;

	while (len--) {
		crc ^= *p++;
		for (bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return crc;
}

static u32 crc_of_rove(u32 crc, const void *p, size_t len)
{
	local_bh_disable();
	crc = rove_crc32(crc, p, len);
	local_bh_enable();
	return crc;
}

/* Every length at every alignment that a payload may have. */
static void crc_right(struct kunit *test)
{
	u8 *buf = kunit_kmalloc(test, CRC_MAX + 8, GFP_KERNEL);
	size_t at, len;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	get_random_bytes(buf, CRC_MAX + 8);
	for (at = 0; at < 8; at++) {
		for (len = 0; len <= CRC_MAX; len += len < 300 ? 1 : 75)
			KUNIT_EXPECT_EQ_MSG(test, crc_of_rove(~0U, buf + at, len),
					    crc_by_definition(~0U, buf + at, len),
					    "%zu bytes at %zu", len, at);
	}
}

/* Whatever the pieces that it comes in, on both sides of where the chosen one takes over. */
static void crc_in_pieces(struct kunit *test)
{
	u8 *buf = kunit_kmalloc(test, CRC_MAX, GFP_KERNEL);
	u32 whole;
	size_t cut;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	get_random_bytes(buf, CRC_MAX);
	whole = crc_by_definition(~0U, buf, CRC_MAX);
	for (cut = 0; cut <= CRC_MAX; cut++)
		KUNIT_EXPECT_EQ_MSG(test, whole,
				    crc_of_rove(crc_of_rove(~0U, buf, cut), buf + cut,
						CRC_MAX - cut),
				    "cut at %zu", cut);
}

#define BLOCKS	3

/* An address in each byte of a region that neither begins nor ends where its blocks do. */
static void region_addresses(struct kunit *test)
{
	void *blocks[BLOCKS] = { (void *)0x30000, (void *)0x10000, (void *)0x70000 };
	const u32 shift = 8, offset = 17, length = BLOCKS * 256 - 17 - 5;
	struct rove_region r = {
		.kind = ROVE_REGION_PAGES,
		.shift = shift,
		.iova = U64_MAX - length + 1,	/* up to the last address there is */
		.length = length,
		.offset = offset,
		.blocks = blocks,
	};
	u32 i;

	for (i = 0; i < length; i++) {
		u32 at = offset + i, len = length - i;
		void *addr = rove_region_addr(&r, r.iova + i, &len, true);

		KUNIT_EXPECT_PTR_EQ(test, addr, blocks[at >> shift] + at % 256);
		KUNIT_EXPECT_EQ(test, len, min(length - i, 256 - at % 256));
	}
}

static void region_bounds(struct kunit *test)
{
	struct rove_region r = { .iova = 0x1000, .length = 100 };

	KUNIT_EXPECT_TRUE(test, rove_region_covers(&r, 0x1000, 100));
	KUNIT_EXPECT_TRUE(test, rove_region_covers(&r, 0x1063, 1));
	KUNIT_EXPECT_FALSE(test, rove_region_covers(&r, 0x0fff, 1));
	KUNIT_EXPECT_FALSE(test, rove_region_covers(&r, 0x1000, 101));
	KUNIT_EXPECT_FALSE(test, rove_region_covers(&r, 0x1064, 1));
	KUNIT_EXPECT_FALSE(test, rove_region_covers(&r, 0x1001, U64_MAX));
	KUNIT_EXPECT_FALSE(test, rove_region_covers(&r, U64_MAX, 2));

	r = (struct rove_region) { .iova = U64_MAX - 99, .length = 100 };
	KUNIT_EXPECT_TRUE(test, rove_region_covers(&r, U64_MAX, 1));
	KUNIT_EXPECT_FALSE(test, rove_region_covers(&r, U64_MAX, 2));
	KUNIT_EXPECT_FALSE(test, rove_region_covers(&r, 0, 1));
}

/* What a producer index may say, also where the indices wrap. */
static void ring_indices(struct kunit *test)
{
	static const u32 starts[] = { 0, 5, U32_MAX - 3, U32_MAX };
	struct rove_ring r;
	int i;

	KUNIT_ASSERT_EQ(test, rove_ring_alloc(&r, NULL, 5, 16, NULL), 0);
	KUNIT_EXPECT_EQ(test, r.depth, 8);
	for (i = 0; i < ARRAY_SIZE(starts); i++) {
		r.cons = starts[i];
		r.hdr->prod = r.cons;
		KUNIT_EXPECT_EQ(test, rove_ring_avail(&r), 0);
		r.hdr->prod = r.cons + 8;
		KUNIT_EXPECT_EQ(test, rove_ring_avail(&r), 8);
		r.hdr->prod = r.cons + 9;
		KUNIT_EXPECT_EQ(test, rove_ring_avail(&r), -EINVAL);
		r.hdr->prod = r.cons - 1;
		KUNIT_EXPECT_EQ(test, rove_ring_avail(&r), -EINVAL);
		KUNIT_EXPECT_PTR_EQ(test, rove_ring_slot(&r, r.cons + 8),
				    rove_ring_slot(&r, r.cons));
	}
	rove_ring_free(&r);
}

/* A resized ring's slots: in order, and none of those that were taken meanwhile. */
static void ring_moves(struct kunit *test)
{
	const u32 base = U32_MAX - 700, n = 2000, taken = 500;
	struct rove_ring from, to;
	u32 at = base, cons = base, i;

	KUNIT_ASSERT_EQ(test, rove_ring_alloc(&from, NULL, 2048, 16, NULL), 0);
	if (rove_ring_alloc(&to, NULL, 4096, 16, NULL)) {
		rove_ring_free(&from);
		KUNIT_FAIL(test, "no memory");
		return;
	}
	for (i = 0; i < n; i++)
		*(u32 *)rove_ring_slot(&from, base + i) = i + 1;
	while (rove_ring_move_some(&from, &to, base, cons, base + n, &at))
		cons = base + taken;
	for (i = taken; i < n; i++)
		KUNIT_EXPECT_EQ(test, *(u32 *)rove_ring_slot(&to, i), i + 1);
	KUNIT_EXPECT_EQ(test, *(u32 *)rove_ring_slot(&to, n), 0);
	rove_ring_free(&to);
	rove_ring_free(&from);
}

static struct kunit_case rove_cases[] = {
	KUNIT_CASE(crc_right),
	KUNIT_CASE(crc_in_pieces),
	KUNIT_CASE(region_addresses),
	KUNIT_CASE(region_bounds),
	KUNIT_CASE(ring_indices),
	KUNIT_CASE(ring_moves),
	{}
};

static struct kunit_suite rove_suite = {
	.name = "rove",
	.test_cases = rove_cases,
};

kunit_test_suite(rove_suite);
