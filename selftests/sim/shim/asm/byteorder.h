/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* asm/byteorder.h - byte order, by the compiler's builtins */
#ifndef SIM_ASM_BYTEORDER_H
#define SIM_ASM_BYTEORDER_H

#include <linux/types.h>

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define __LITTLE_ENDIAN	1234
#define sim_be(bits, x)	__builtin_bswap##bits(x)
#define sim_le(bits, x)	((__u##bits)(x))
#else
#define __BIG_ENDIAN	4321
#define sim_be(bits, x)	((__u##bits)(x))
#define sim_le(bits, x)	__builtin_bswap##bits(x)
#endif

#define cpu_to_be16(x)	((__be16)sim_be(16, (__u16)(x)))
#define cpu_to_be32(x)	((__be32)sim_be(32, (__u32)(x)))
#define cpu_to_be64(x)	((__be64)sim_be(64, (__u64)(x)))
#define be16_to_cpu(x)	((__u16)sim_be(16, (__u16)(x)))
#define be32_to_cpu(x)	((__u32)sim_be(32, (__u32)(x)))
#define be64_to_cpu(x)	((__u64)sim_be(64, (__u64)(x)))
#define cpu_to_le32(x)	((__le32)sim_le(32, (__u32)(x)))
#define le32_to_cpu(x)	((__u32)sim_le(32, (__u32)(x)))
#define cpu_to_le64(x)	((__le64)sim_le(64, (__u64)(x)))
#define le64_to_cpu(x)	((__u64)sim_le(64, (__u64)(x)))

#define htons(x)	cpu_to_be16(x)
#define htonl(x)	cpu_to_be32(x)
#define ntohs(x)	be16_to_cpu(x)
#define ntohl(x)	be32_to_cpu(x)

#endif
