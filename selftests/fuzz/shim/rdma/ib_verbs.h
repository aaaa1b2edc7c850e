/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * rdma/ib_verbs.h - what ring.h and fetch.h use of the kernel, in user space
 *
 * A ring is shared with somebody who writes to it at any moment, that is, between any two
 * reads of it: the fuzzer does so after each.
 */
#ifndef FUZZ_IB_VERBS_H
#define FUZZ_IB_VERBS_H

#include <linux/kernel.h>

typedef struct { int dummy; } spinlock_t;
struct ib_ucontext;
struct ib_recv_wr;
struct vm_area_struct;
struct rdma_user_mmap_entry;

void scribble(void);

static inline void *scribbled_memcpy(void *to, const void *from, size_t len)
{
	memcpy(to, from, len);
	scribble();
	return to;
}
#define memcpy(to, from, len)	scribbled_memcpy(to, from, len)

#define data_race(x)	(x)
#define barrier()	__asm__ __volatile__("" ::: "memory")

#undef READ_ONCE
#define READ_ONCE(x) ({						\
	__typeof__(x) __v = *(const volatile __typeof__(x) *)&(x);	\
	scribble();						\
	__v; })
#define smp_load_acquire(p)	READ_ONCE(*(p))
#define smp_store_release(p, v) \
	do { *(volatile __typeof__(*(p)) *)(p) = (v); scribble(); } while (0)

#endif
