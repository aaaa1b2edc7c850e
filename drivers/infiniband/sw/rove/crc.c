// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * crc.c - the CRC-32 of ICRCs, by the fastest that this kernel has
 *
 * crc32_le() uses the CPU's carry-less multiplication from 6.14 on; before, only the
 * crypto API's "crc32" does, if the CPU has that and a driver for it is there.  Under
 * emulation it may well be the slower one.  So both are timed when the module is
 * loaded, and the log says which one it is.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <crypto/hash.h>
#include <linux/ktime.h>
#include <linux/percpu.h>
#include <linux/slab.h>
#include "crc.h"

#define TRIAL_LEN	4096
#define TRIALS		8

static struct crypto_shash *shash;
/* One a CPU, used with rove_cpu.lock held. */
static struct shash_desc __percpu *descs;
DEFINE_STATIC_KEY_FALSE(rove_crc_use_shash);

/* The state of a "crc32" is the CRC itself, neither complemented nor swapped. */
u32 rove_crc32_shash(u32 crc, const void *buf, size_t len)
{
	struct shash_desc *desc = this_cpu_ptr(descs);
	u32 *state = shash_desc_ctx(desc);

	*state = crc;
	if (crypto_shash_update(desc, buf, len))
		return crc32_le(crc, buf, len);
	return *state;
}

/* Nanoseconds for TRIAL_LEN bytes, the best of some. */
static u64 time_it(u32 (*fn)(u32, const void *, size_t), const void *buf, u32 *crc)
{
	u64 best = U64_MAX;
	int i;

	for (i = 0; i < TRIALS; i++) {
		u64 start;

		local_bh_disable();
		start = ktime_get_ns();
		*crc = fn(~0U, buf, TRIAL_LEN);
		best = min(best, ktime_get_ns() - start);
		local_bh_enable();
	}
	return best;
}

static u32 crc32_lib(u32 crc, const void *buf, size_t len)
{
	return crc32_le(crc, buf, len);
}

static int alloc_shash(void)
{
	int cpu;

	shash = crypto_alloc_shash("crc32", 0, 0);
	if (IS_ERR(shash)) {
		shash = NULL;
		return -ENOENT;
	}
	if (crypto_shash_descsize(shash) != sizeof(u32))
		return -EINVAL;
	descs = __alloc_percpu(sizeof(struct shash_desc) + sizeof(u32),
			       CRYPTO_MINALIGN);
	if (!descs)
		return -ENOMEM;
	for_each_possible_cpu(cpu)
		per_cpu_ptr(descs, cpu)->tfm = shash;
	return 0;
}

static void free_shash(void)
{
	free_percpu(descs);
	descs = NULL;
	if (shash)
		crypto_free_shash(shash);
	shash = NULL;
}

static const char *choose(const void *buf)
{
	u32 lib_crc, shash_crc;
	u64 lib_ns;

	if (alloc_shash())
		return "crc32_le";
	lib_ns = time_it(crc32_lib, buf, &lib_crc);
	if (time_it(rove_crc32_shash, buf, &shash_crc) >= lib_ns ||
	    shash_crc != lib_crc)
		return "crc32_le";
	static_branch_enable(&rove_crc_use_shash);
	return crypto_shash_driver_name(shash);
}

int rove_crc_init(void)
{
	void *buf = kzalloc(TRIAL_LEN, GFP_KERNEL);

	if (!buf)
		return -ENOMEM;
	pr_info("CRC-32: %s\n", choose(buf));
	kfree(buf);
	if (!static_key_enabled(&rove_crc_use_shash))
		free_shash();
	return 0;
}

void rove_crc_exit(void)
{
	free_shash();
}
