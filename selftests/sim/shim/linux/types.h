/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * linux/types.h - kernel types for the transport built in user space
 *
 * Only what transport/ uses.  What the kernel's own <linux/types.h> drags in
 * (byte order, limits) is here too, so that a source that compiles in the
 * kernel compiles here without an include more.
 */
#ifndef SIM_LINUX_TYPES_H
#define SIM_LINUX_TYPES_H

#include_next <linux/types.h>

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef unsigned long long u64;
typedef __s8 s8;
typedef __s16 s16;
typedef __s32 s32;
typedef long long s64;

#ifndef __packed
#define __packed	__attribute__((__packed__))
#endif
#ifndef __aligned
#define __aligned(n)	__attribute__((__aligned__(n)))
#endif
#ifndef __must_check
#define __must_check	__attribute__((__warn_unused_result__))
#endif
#ifndef __always_inline
#define __always_inline	inline __attribute__((__always_inline__))
#endif
#ifndef fallthrough
#define fallthrough	__attribute__((__fallthrough__))
#endif
#define noinline	__attribute__((__noinline__))
#define __force
#define __user
#define __iomem

#define U8_MAX		((u8)~0U)
#define U16_MAX		((u16)~0U)
#define U32_MAX		((u32)~0U)
#define S32_MAX		((s32)(U32_MAX >> 1))
#define U64_MAX		((u64)~0ULL)

#include <asm/byteorder.h>

#endif
