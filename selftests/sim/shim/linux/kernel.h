/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * linux/kernel.h - macros of the kernel that the transport uses
 *
 * A warning that the kernel would print once is a failed assertion here.
 */
#ifndef SIM_LINUX_KERNEL_H
#define SIM_LINUX_KERNEL_H

#include <linux/types.h>

#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define BIT(n)		(1UL << (n))
#define DIV_ROUND_UP(n, d)	(((n) + (d) - 1) / (d))
#define DIV_ROUND_UP_ULL(n, d)	DIV_ROUND_UP((u64)(n), d)
#define round_up(x, y)	((((x) - 1) | ((__typeof__(x))((y) - 1))) + 1)
#define container_of(p, type, member)					\
	((type *)((char *)(p) - offsetof(type, member)))

#define min(a, b) ({				\
	__typeof__(a) __a = (a);		\
	__typeof__(b) __b = (b);		\
	(void)(&__a == &__b);			\
	__a < __b ? __a : __b; })
#define max(a, b) ({				\
	__typeof__(a) __a = (a);		\
	__typeof__(b) __b = (b);		\
	(void)(&__a == &__b);			\
	__a > __b ? __a : __b; })
#define min_t(t, a, b)	min((t)(a), (t)(b))
#define max_t(t, a, b)	max((t)(a), (t)(b))
#define min3(a, b, c)	min(min(a, b), c)
#define clamp(v, lo, hi)	min(max(v, lo), hi)
#define swap(a, b) \
	do { __typeof__(a) __t = (a); (a) = (b); (b) = __t; } while (0)

#define READ_ONCE(x)	(*(const volatile __typeof__(x) *)&(x))
#define OPTIMIZER_HIDE_VAR(v)	__asm__("" : "=r" (v) : "0" (v))
#define WRITE_ONCE(x, v)	(*(volatile __typeof__(x) *)&(x) = (v))

#define check_add_overflow(a, b, d)	__builtin_add_overflow(a, b, d)
#define check_sub_overflow(a, b, d)	__builtin_sub_overflow(a, b, d)
#define check_mul_overflow(a, b, d)	__builtin_mul_overflow(a, b, d)

static inline u64 div_u64(u64 a, u32 b)
{
	return a / b;
}

#define static_assert	_Static_assert
#define BUILD_BUG_ON(c)	_Static_assert(!(c), #c)

void sim_warn(const char *file, int line, const char *what);
#define WARN_ON(c) ({						\
	bool __c = !!(c);					\
	if (unlikely(__c))					\
		sim_warn(__FILE__, __LINE__, #c);		\
	__c; })
#define WARN_ON_ONCE(c)		WARN_ON(c)
#define WARN_ONCE(c, ...)	WARN_ON(c)

#define ilog2(n)		(63 - __builtin_clzll(n))
#define is_power_of_2(n)	((n) && !((n) & ((n) - 1)))

#endif
