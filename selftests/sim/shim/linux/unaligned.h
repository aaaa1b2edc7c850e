/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* linux/unaligned.h - loads and stores at any address */
#ifndef SIM_LINUX_UNALIGNED_H
#define SIM_LINUX_UNALIGNED_H

#include <linux/types.h>

#define SIM_UNALIGNED(order, bits)					\
static inline u##bits get_unaligned_##order##bits(const void *p)	\
{									\
	__##order##bits v;						\
	memcpy(&v, p, sizeof(v));					\
	return order##bits##_to_cpu(v);					\
}									\
static inline void put_unaligned_##order##bits(u##bits x, void *p)	\
{									\
	__##order##bits v = cpu_to_##order##bits(x);			\
	memcpy(p, &v, sizeof(v));					\
}

SIM_UNALIGNED(be, 16)
SIM_UNALIGNED(be, 32)
SIM_UNALIGNED(be, 64)
SIM_UNALIGNED(le, 32)
SIM_UNALIGNED(le, 64)

#endif
