// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * ring.c - queues in shared memory: allocation and mapping
 *
 * The pages come from vmalloc, so that a large ring does not need contiguous
 * memory, and are inserted into a mapping one by one, which then holds a
 * reference on each.  A program's count against its RLIMIT_MEMLOCK, together
 * with the memory that it has registered.
 */
#include <linux/capability.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/sizes.h>
#include <linux/vmalloc.h>
#include "ring.h"
#include "compat.h"
#include "dev.h"
#include "refuse.h"

/**
 * struct rove_ring_mem - the memory of a ring
 * @entry: its place in the context's mmap offsets; @entry.ucontext is NULL when
 *	it is not mapped (kernel consumer).  Counts @vaddr's users: the ring,
 *	and each mmap() under way (hazard 7).
 * @vaddr: where the kernel sees it
 * @mm: whose pinned memory it counts as, or NULL; held
 * @npages: so many
 */
struct rove_ring_mem {
	struct rdma_user_mmap_entry entry;
	void *vaddr;
	struct mm_struct *mm;
	unsigned long npages;
};

/* As ib_umem_get() does it. */
static int rove_ring_mem_charge(struct rove_ring_mem *mem, struct ib_device *ibdev)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	struct mm_struct *mm = current->mm;
	unsigned long pinned;

	pinned = atomic64_add_return(mem->npages, &mm->pinned_vm);
	if (pinned > limit && !capable(CAP_IPC_LOCK)) {
		atomic64_sub(mem->npages, &mm->pinned_vm);
		rove_refuse(ibdev,
			    "a queue of %lu KiB: RLIMIT_MEMLOCK is %lu KiB, %lu KiB of it in use",
			    mem->npages << (PAGE_SHIFT - 10),
			    limit << (PAGE_SHIFT - 10),
			    (pinned - mem->npages) << (PAGE_SHIFT - 10));
		return -ENOMEM;
	}
	mmgrab(mm);
	mem->mm = mm;
	return 0;
}

static void rove_ring_mem_free(struct rove_ring_mem *mem)
{
	if (mem->mm) {
		atomic64_sub(mem->npages, &mem->mm->pinned_vm);
		mmdrop(mem->mm);
	}
	vfree(mem->vaddr);
	kfree(mem);
}

struct rove_ring_mem *rove_ring_mem_alloc(struct ib_ucontext *uctx, size_t size)
{
	struct rove_ring_mem *mem;
	int err;

	mem = kzalloc(sizeof(*mem), ROVE_GFP_OBJECT);
	if (!mem)
		return ERR_PTR(-ENOMEM);
	mem->npages = size >> PAGE_SHIFT;
	err = uctx ? rove_ring_mem_charge(mem, uctx->device) : 0;
	if (err)
		goto err_free;
	mem->vaddr = __vmalloc(size, rove_vmalloc_flags(ROVE_GFP_OBJECT) | __GFP_ZERO);
	if (!mem->vaddr) {
		err = -ENOMEM;
		goto err_free;
	}
	if (!uctx)
		return mem;
	err = rdma_user_mmap_entry_insert(uctx, &mem->entry, size);
	if (!err)
		return mem;
err_free:
	rove_ring_mem_free(mem);
	return ERR_PTR(err);
}

void rove_ring_mem_put(struct rove_ring_mem *mem)
{
	if (mem->entry.ucontext)
		rdma_user_mmap_entry_remove(&mem->entry);
	else
		rove_ring_mem_free(mem);
}

void *rove_ring_mem_addr(const struct rove_ring_mem *mem)
{
	return mem->vaddr;
}

u64 rove_ring_mem_offset(struct rove_ring_mem *mem)
{
	return rdma_user_mmap_get_offset(&mem->entry);
}

int rove_ring_alloc(struct rove_ring *r, struct ib_ucontext *uctx, u32 depth,
		    u32 stride, struct rove_ring_info *info)
{
	struct rove_ring_mem *mem;
	u64 size;

	BUILD_BUG_ON(sizeof(struct rove_ring_hdr) > ROVE_RING_SLOTS);

	if (!depth || depth > BIT(31))
		return -EINVAL;
	depth = roundup_pow_of_two(depth);
	size = PAGE_ALIGN(ROVE_RING_SLOTS + (u64)depth * stride);
	if (size > SZ_2G) {
		if (uctx)
			rove_refuse(uctx->device,
				    "a queue of %u entries of %u bytes: at most 2 GiB",
				    depth, stride);
		return -EINVAL;
	}

	mem = rove_ring_mem_alloc(uctx, size);
	if (IS_ERR(mem))
		return PTR_ERR(mem);
	if (uctx) {
		info->mmap_offset = rove_ring_mem_offset(mem);
		info->mmap_size = size;
		info->depth = depth;
		info->stride = stride;
		info->rsvd = 0;
	}

	r->mem = mem;
	r->hdr = mem->vaddr;
	r->slots = mem->vaddr + ROVE_RING_SLOTS;
	r->depth = depth;
	r->stride = stride;
	r->prod = 0;
	r->cons = 0;
	return 0;
}

void rove_ring_free(struct rove_ring *r)
{
	struct rove_ring_mem *mem = r->mem;

	if (!mem)
		return;
	memset(r, 0, sizeof(*r));
	rove_ring_mem_put(mem);
}

void rove_mmap_free(struct rdma_user_mmap_entry *entry)
{
	rove_ring_mem_free(container_of(entry, struct rove_ring_mem, entry));
}

int rove_mmap(struct ib_ucontext *uctx, struct vm_area_struct *vma)
{
	struct rdma_user_mmap_entry *entry;
	struct rove_ring_mem *mem;
	unsigned long off;
	int err = 0;

	if (vma->vm_flags & VM_EXEC)
		return -EPERM;
	/* refuses private mappings, a wrong offset and a wrong size */
	entry = rdma_user_mmap_entry_get(uctx, vma);
	if (!entry)
		return -EINVAL;
	mem = container_of(entry, struct rove_ring_mem, entry);

	/*
	 * VM_DONTCOPY is not set: a child that never touches RDMA must not
	 * crash in the exit handlers of a library that does.  The vm_ops that
	 * ib_uverbs has set stay: they are not ours and do nothing but refuse
	 * faults, while without any the mapping would count as anonymous.
	 */
	rove_vm_flags_mod(vma, VM_DONTEXPAND | VM_DONTDUMP, VM_MAYEXEC);
	for (off = 0; off < entry->npages * PAGE_SIZE && !err; off += PAGE_SIZE) {
		err = vm_insert_page(vma, vma->vm_start + off,
				     vmalloc_to_page(mem->vaddr + off));
		cond_resched();
	}

	rdma_user_mmap_entry_put(entry);
	return err;
}

/* Of a ring that may hold a million, so many with a lock held. */
#define MOVE_MAX	256

bool rove_ring_move_some(const struct rove_ring *from, struct rove_ring *to, u32 base,
			 u32 cons, u32 end, u32 *at)
{
	int i;

	if ((s32)(*at - cons) < 0)
		*at = cons;
	for (i = 0; i < MOVE_MAX && *at != end; i++, ++*at)
		/* One that is being written to is copied as it is, and judged later. */
		data_race(memcpy(rove_ring_slot(to, *at - base),
				 rove_ring_slot(from, *at), from->stride));
	return (s32)(end - *at) > 0;
}
