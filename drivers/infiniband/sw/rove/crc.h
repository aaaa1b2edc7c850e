/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * crc.h - which CRC-32 the ICRC is made with
 */
#ifndef ROVE_CRC_H
#define ROVE_CRC_H

#include <linux/crc32.h>
#include <linux/jump_label.h>

/* Below this the crypto API's way to the CPU's instruction is the longer one. */
#define ROVE_CRC_SHASH_MIN	256

/* For rove_crc32() alone: by the crypto API, where that was found to be faster. */
DECLARE_STATIC_KEY_FALSE(rove_crc_use_shash);
u32 rove_crc32_shash(u32 crc, const void *buf, size_t len);

/**
 * rove_crc32() - CRC-32 (IEEE 802.3, reflected), no final complement
 * @crc: state so far
 * @buf: bytes
 * @len: how many
 *
 * Context: softirqs off.
 */
static __always_inline u32 rove_crc32(u32 crc, const void *buf, size_t len)
{
	if (static_branch_unlikely(&rove_crc_use_shash) && len >= ROVE_CRC_SHASH_MIN)
		return rove_crc32_shash(crc, buf, len);
	return crc32_le(crc, buf, len);
}

/* Module init: find the fastest, and say which it is.  May sleep; -ENOMEM. */
int rove_crc_init(void);
/* Module exit: no packet is left to be made or checked. */
void rove_crc_exit(void);

#endif /* ROVE_CRC_H */
