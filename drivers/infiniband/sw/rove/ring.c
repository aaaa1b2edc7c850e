// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * ring.c - queues in shared memory: allocation and mapping
 *
 * The pages come from vmalloc, so that a large ring does not need contiguous
 * memory, and are inserted into a mapping one by one, which then holds a
 * reference on each.
 */
#include <linux/log2.h>
#include <linux/slab.h>
#include <linux/sizes.h>
#include <linux/vmalloc.h>
#include "ring.h"
#include "compat.h"

/**
 * struct rove_ring_mem - the memory of a ring
 * @entry: its place in the context's mmap offsets; @entry.ucontext is NULL when
 *	it is not mapped (kernel consumer).  Counts @vaddr's users: the ring,
 *	and each mmap() under way (hazard 7).
 * @vaddr: where the kernel sees it
 */
struct rove_ring_mem {
	struct rdma_user_mmap_entry entry;
	void *vaddr;
};

static void rove_ring_mem_free(struct rove_ring_mem *mem)
{
	vfree(mem->vaddr);
	kfree(mem);
}

struct rove_ring_mem *rove_ring_mem_alloc(struct ib_ucontext *uctx, size_t size)
{
	struct rove_ring_mem *mem;
	int err;

	mem = kzalloc(sizeof(*mem), GFP_KERNEL);
	if (!mem)
		return ERR_PTR(-ENOMEM);
	/* More than there is gets ENOMEM; nobody is killed to make room. */
	mem->vaddr = __vmalloc(size, GFP_KERNEL_ACCOUNT | __GFP_ZERO |
			       __GFP_NOWARN | __GFP_RETRY_MAYFAIL);
	if (!mem->vaddr) {
		kfree(mem);
		return ERR_PTR(-ENOMEM);
	}
	if (!uctx)
		return mem;
	err = rdma_user_mmap_entry_insert(uctx, &mem->entry, size);
	if (!err)
		return mem;
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
	if (size > SZ_2G)
		return -EINVAL;

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
	for (off = 0; off < entry->npages * PAGE_SIZE && !err; off += PAGE_SIZE)
		err = vm_insert_page(vma, vma->vm_start + off,
				     vmalloc_to_page(mem->vaddr + off));

	rdma_user_mmap_entry_put(entry);
	return err;
}
