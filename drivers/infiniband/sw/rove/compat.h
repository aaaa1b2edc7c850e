/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * compat.h - what differs between the kernels that rove is built for
 *
 * The only file that looks at LINUX_VERSION_CODE.
 */
#ifndef ROVE_COMPAT_H
#define ROVE_COMPAT_H

#include <linux/dma-buf.h>
#include <linux/hrtimer.h>
#include <linux/local_lock.h>
#include <linux/mm.h>
#include <linux/rcupdate.h>
#include <linux/version.h>
#include <net/inet_dscp.h>
#include <net/ip6_route.h>
#include <net/udp_tunnel.h>
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>

#ifndef CONFIG_64BIT
#error "rove needs a 64-bit kernel: it stores eight bytes at once (ATOMIC WRITE)"
#endif

/* create_cq was given the whole attribute bundle in 6.11. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
#define rove_cq_arg uverbs_attr_bundle
static inline struct ib_udata *rove_cq_udata(struct uverbs_attr_bundle *attrs)
{
	return attrs ? &attrs->driver_udata : NULL;
}
#else
#define rove_cq_arg ib_udata
static inline struct ib_udata *rove_cq_udata(struct ib_udata *udata)
{
	return udata;
}
#endif

/* Only programs' CQs are resized by 7.2, which renamed the operation. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 2, 0)
#define rove_resize_op	resize_user_cq
#define rove_resize_arg	unsigned int
#else
#define rove_resize_op	resize_cq
#define rove_resize_arg	int
#endif

/* A DMA handle, which reg_user_mr is given since 6.17, is for real DMA only. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 17, 0)
#define ROVE_DMAH_ARG	struct ib_dmah *dmah,
#define ROVE_HAVE_DMAH	(dmah)
#else
#define ROVE_DMAH_ARG
#define ROVE_HAVE_DMAH	false
#endif

/*
 * dma_buf_vmap() locks the buffer itself until 6.2; the name of the namespace of
 * its symbols is a string since 6.13; what reg_user_mr_dmabuf is given grew in 6.12.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 2, 0)
#define rove_dma_buf_vmap	dma_buf_vmap_unlocked
#define rove_dma_buf_vunmap	dma_buf_vunmap_unlocked
#else
#define rove_dma_buf_vmap	dma_buf_vmap
#define rove_dma_buf_vunmap	dma_buf_vunmap
#endif
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
#define ROVE_IMPORT_DMA_BUF	MODULE_IMPORT_NS("DMA_BUF")
#else
#define ROVE_IMPORT_DMA_BUF	MODULE_IMPORT_NS(DMA_BUF)
#endif
/* What a buffer's user is told when it moves was renamed, and need not be there in 7.2. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 2, 0)
#define ROVE_MOVE_NOTIFY
#else
static inline void rove_moved(struct dma_buf_attachment *attach)
{
}

#define ROVE_MOVE_NOTIFY	.move_notify = rove_moved,
#endif
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
#define rove_dmabuf_arg		uverbs_attr_bundle
#else
#define rove_dmabuf_arg		ib_udata
#endif

/*
 * __vmalloc() complains of flags that it does not know since some kernel before 7.0, and of
 * __GFP_RETRY_MAYFAIL until 7.2: a try or two then have to do.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 18, 0) && LINUX_VERSION_CODE < KERNEL_VERSION(7, 2, 0)
#define rove_vmalloc_flags(gfp)	(((gfp) & ~__GFP_RETRY_MAYFAIL) | __GFP_NORETRY)
#else
#define rove_vmalloc_flags(gfp)	(gfp)
#endif

/* x86 has user shadow stacks since 6.6. */
#ifndef VM_SHADOW_STACK
#define VM_SHADOW_STACK	VM_NONE
#endif

/* An address is one of several things that 7.2 can pin. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 2, 0)
#define rove_umem_get	ib_umem_get_va
#else
#define rove_umem_get	ib_umem_get
#endif

/*
 * Since 7.2 an ib_device can be born in its netdev's namespace, which it is in
 * exclusive mode; before, `rdma dev set` has to move it there.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 2, 0)
#define rove_alloc_ib_device(drv_struct, member, net) \
	ib_alloc_device_with_net(drv_struct, member, net)
#else
#define rove_alloc_ib_device(drv_struct, member, net) \
	ib_alloc_device(drv_struct, member)
#endif

/* Keeps udev from giving the link another name than the one asked for. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
static inline void rove_name_by_user(struct ib_device *ibdev)
{
	ib_mark_name_assigned_by_user(ibdev);
}
#else
static inline void rove_name_by_user(struct ib_device *ibdev)
{
}
#endif

/*
 * Since 6.14 ib_core tells consumers of the port's state by itself, unless a bond is
 * involved; link.c does it always.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 14, 0)
static inline void rove_port_event_told(struct ib_device *ibdev,
					struct net_device *ndev,
					unsigned long event)
{
}

#define ROVE_REPORT_PORT_EVENT	.report_port_event = rove_port_event_told,
#else
#define ROVE_REPORT_PORT_EVENT
#endif

/* vm_flags became read-only in 6.3. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
static inline void rove_vm_flags_mod(struct vm_area_struct *vma,
				     unsigned long set, unsigned long clear)
{
	vm_flags_mod(vma, set, clear);
}
#else
static inline void rove_vm_flags_mod(struct vm_area_struct *vma,
				     unsigned long set, unsigned long clear)
{
	vma->vm_flags = (vma->vm_flags | set) & ~clear;
}
#endif

/* UDP tunnels came to be known by their struct sock, one function after the other. */
#define rove_sock_for(fn, sock)						\
	_Generic(&(fn), rove_setup_by_sock *: (sock)->sk,		\
		 rove_release_by_sock *: (sock)->sk, default: (sock))
typedef void rove_setup_by_sock(struct net *net, struct sock *sk,
				struct udp_tunnel_sock_cfg *cfg);
typedef void rove_release_by_sock(struct sock *sk);

static inline void rove_tunnel_setup(struct net *net, struct socket *sock,
				     struct udp_tunnel_sock_cfg *cfg)
{
	setup_udp_tunnel_sock(net, rove_sock_for(setup_udp_tunnel_sock, sock), cfg);
}

static inline void rove_tunnel_release(struct socket *sock)
{
	udp_tunnel_sock_release(rove_sock_for(udp_tunnel_sock_release, sock));
}

/*
 * Counters that QPs are bound to became objects of the driver's, and know of ports,
 * in 6.15.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 15, 0)
#include <rdma/rdma_counter.h>
#define ROVE_COUNTER_PORT	, u32 port
static inline void rove_counter_init(struct rdma_counter *counter)
{
}

#define ROVE_COUNTER_OBJECT			\
	.counter_init = rove_counter_init,	\
	.size_rdma_counter = sizeof(struct rdma_counter),
#else
#define ROVE_COUNTER_PORT
#define ROVE_COUNTER_OBJECT
#endif

/* SRQs are tracked since 6.7. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 7, 0)
#define ROVE_FILL_RES_SRQ(fn)	.fill_res_srq_entry = fn,
#else
#define ROVE_FILL_RES_SRQ(fn)
#endif

/* hrtimer_init() became hrtimer_setup() in 6.13. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
#define rove_hrtimer_setup(timer, fn, clock, mode) \
	hrtimer_setup(timer, fn, clock, mode)
#else
#define rove_hrtimer_setup(timer, fn, clock, mode)	\
	do {						\
		hrtimer_init(timer, clock, mode);	\
		(timer)->function = (fn);		\
	} while (0)
#endif

/* del_timer_sync() got its new name in 6.2, and loses the old one in 6.15. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 2, 0)
#define rove_timer_delete_sync(timer)	timer_delete_sync(timer)
#else
#define rove_timer_delete_sync(timer)	del_timer_sync(timer)
#endif

/* The route behind a struct dst_entry: a cast until 6.10. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 10, 0)
#ifndef dst_rt6_info
#define dst_rt6_info(dst)	((struct rt6_info *)(dst))
#endif
#endif

/* DSCP got a type of its own in 6.18, and a macro, for it lies deeper. */
#ifdef flowi4_dscp
#define rove_flowi4_dscp(tclass) \
	.flowi4_dscp = inet_dsfield_to_dscp(tclass)
#else
#define rove_flowi4_dscp(tclass) \
	.flowi4_tos = (tclass) & INET_DSCP_MASK
#endif

/* Where IPv6 can no longer be a module it is called without detour. */
#if __has_include(<net/ipv6_stubs.h>)
#include <net/ipv6_stubs.h>
#define rove_ip6_lookup	ipv6_stub->ipv6_dst_lookup_flow
#else
#include <net/ipv6.h>
#define rove_ip6_lookup	ip6_dst_lookup_flow
#endif

/*
 * Up to 6.17 softirqs that are off keep others of the same CPU away even on PREEMPT_RT; 6.11
 * has brought what takes their place.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 11, 0)
#define local_lock_nested_bh(lock)	((void)(lock))
#define local_unlock_nested_bh(lock)	((void)(lock))
#endif

/* IB_UVERBS_DEVICE_ATOMIC_WRITE, which 6.1 does not know but hands on. */
#define ROVE_DEVICE_ATOMIC_WRITE	BIT_ULL(40)

/*
 * Nobody runs in this memory any more, though somebody holds it: what is brought there now is
 * at nobody's expense, and the OOM killer does not find it.  A kernel without control
 * groups for memory does not tell.
 */
static inline bool rove_mm_deserted(struct mm_struct *mm)
{
#ifdef CONFIG_MEMCG
	return !rcu_access_pointer(mm->owner);
#else
	return false;
#endif
}

#endif /* ROVE_COMPAT_H */
