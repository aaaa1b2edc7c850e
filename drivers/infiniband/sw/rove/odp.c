// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * odp.c - see odp.h
 *
 * A region of a range and one of a whole process are the same thing with other bounds:
 * a tree of chunks of 2 MiB, each made when a page in it is first needed, with a
 * notifier of its own and an array of the pages that are there.  Chunks are a cache:
 * there are as many as the process may lock memory for, and then the one that was
 * longest not asked for makes room.
 *
 * Everything that a process can use up, or keep waiting, is its own: struct
 * rove_odp_owner.  A page may come from a file system that never answers, or that lives in
 * the very process whose end waits for the page.  So whoever brings one holds what belongs
 * to the region's memory (struct rove_odp) and to the process, but neither the region nor
 * the QP: these can go meanwhile.
 *
 * Who may take what: who makes a chunk or does away with one holds the owner's lock,
 * in which memory is allocated and the notifier waited for; the notifier never takes it.
 * The notifier and who brings pages hold the chunk's lock, which the notifier
 * may take while memory is reclaimed; inside it rove_odp.lock for writing.  The data
 * path holds a QP's lock and rove_odp.lock for reading.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/hashtable.h>
#include <linux/hmm.h>
#include <linux/magic.h>
#include <linux/memcontrol.h>
#include <linux/mmu_notifier.h>
#include <linux/pagemap.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/semaphore.h>
#include <linux/slab.h>
#include <linux/user_namespace.h>
#include <linux/workqueue.h>
#include <net/netlink.h>
#include <rdma/rdma_netlink.h>
#include <rdma/restrack.h>
#include <rdma/uverbs_ioctl.h>
#include "compat.h"
#include "defer.h"
#include "dev.h"
#include "mr.h"
#include "odp.h"
#include "qp.h"

#define CHUNK_SHIFT	21
#define CHUNK_SIZE	BIT_ULL(CHUNK_SHIFT)
#define CHUNK_PAGES	(CHUNK_SIZE >> PAGE_SHIFT)

/* Of kernel memory, that one takes. */
#define CHUNK_COST	DIV_ROUND_UP(sizeof(struct chunk), PAGE_SIZE)

/*
 * A process has so many whatever it may lock: all that one work request can need at
 * the same time, so that each gets through.
 */
#define CHUNKS_FREE	(2 * ROVE_MAX_SGE)

/* Of a process, at the same time.  Each may wait for as long as it likes. */
#define MISSES_ACTIVE	16
#define ADVICE_ACTIVE	2
#define ADVICE_WAITING	64

/*
 * Processes that have ended and still have regions, or workers that wait for their pages:
 * a user who has so many gets no more, so that they are at most this and what may live at the
 * same time.  RLIMIT_NPROC, which bounds the latter, does not know of them.
 */
#define DESERTED_MAX	64
/* So long one waits for one of them to be gone: jiffies. */
#define DESERTED_WAIT	HZ

/* Most that is brought for one miss. */
#define FAULT_MAX	1048576U
/* How long pages may be taken away before they can be used: jiffies, and at least so often. */
#define BRING_MAX	HZ
#define BRING_ROUNDS	8

#define PAGE_WRITABLE	1UL	/* in an entry of struct chunk.page */

/**
 * struct rove_odp_owner - a process that has regions
 * @node: in @owners
 * @mm: its memory; held
 * @user: who answers for it
 * @regions: how many struct rove_odp; guarded by @owners_lock
 * @reap: frees it when nobody counts it any more
 * @misses: brings what its regions miss
 * @advice: brings what it says that they will
 * @room: for advice that waits
 * @lock: guards what follows, and which chunks its regions have
 * @recent: its chunks, the one that was longest not asked for first
 * @free: chunks that it has not been charged for
 *
 * Not the context: a process can have thousands of them, and a region that the kernel
 * registered for it (RDS) has none.
 */
struct rove_odp_owner {
	struct hlist_node node;
	struct mm_struct *mm;
	kuid_t user;
	u32 regions;
	struct rcu_work reap;
	struct workqueue_struct *misses;
	struct workqueue_struct *advice;
	struct semaphore room;
	struct mutex lock;	/* see above */
	struct list_head recent;
	u32 free;
};

/**
 * struct chunk - a piece of a process
 * @odp: whose
 * @start: where it is in the process
 * @notifier: tells when pages go
 * @recent: in the owner's list
 * @users: who brings pages of it; it cannot go.  The owner's lock
 * @charged: @CHUNK_COST pages to the owner
 * @lock: guards what follows
 * @pages: entries of @page that are not 0
 * @page: kernel address and PAGE_WRITABLE of each, or 0; changed with rove_odp.lock
 *	held, too
 */
struct chunk {
	struct rove_odp *odp;
	u64 start;
	struct mmu_interval_notifier notifier;
	struct list_head recent;
	u32 users;
	bool charged;
	struct mutex lock;	/* see above */
	u32 pages;
	unsigned long page[CHUNK_PAGES];
};

/**
 * struct miss - what the requester, or the responder, of a QP waits for, to read or to write
 * @work: brings it
 * @all: whose; referenced while @busy
 * @odp: where; referenced while @busy
 * @uva: there, in the process
 * @va: first byte
 * @len: bytes
 * @write: to be written to
 * @busy: on its way
 * @err: why it could not be brought, if it could not
 * @key: of the region, for @err
 *
 * Guarded by the QP's lock, but for the worker's use of what stays while @busy.
 */
struct miss {
	struct work_struct work;
	struct rove_misses *all;
	struct rove_odp *odp;
	u64 uva;
	u64 va;
	u32 len;
	bool write;
	bool busy;
	int err;
	u32 key;
};

/* How much a page is wanted. */
enum want {
	MISSED,		/* somebody waits for it */
	ADVISED,	/* somebody will need it */
	IF_PRESENT,	/* so, if it is in memory */
};

/**
 * struct rove_misses - of a QP that has ever missed a page
 * @refs: the QP's, and one for each that is @busy
 * @lock: guards @qp
 * @qp: NULL when it is gone
 * @miss: the requester's and the responder's, of each what it reads and what it writes: an
 *	answer's place is not to wait for the page of what is posted behind the question
 */
struct rove_misses {
	refcount_t refs;
	spinlock_t lock;	/* see above */
	struct rove_qp *qp;
	struct miss miss[4];
};

/* Every process that has regions, by its memory's address.  Read with the lock held, or RCU's. */
static DEFINE_HASHTABLE(owners, 8);
static DEFINE_MUTEX(owners_lock);

static struct kmem_cache *chunk_cache;

/* The last request of a process may be what lets go of its queues: others free these. */
static struct workqueue_struct *reaper;
static atomic_t num_owners = ATOMIC_INIT(0);
static DECLARE_WAIT_QUEUE_HEAD(owners_gone);

static void reap_owner(struct work_struct *work);

/*
 * Who answers for the caller: whoever made the user namespaces around it, and so can be
 * any of their users; but not root, which gives each its own.
 */
static kuid_t answerable(void)
{
	const struct user_namespace *ns;
	kuid_t user = current_uid();

	for (ns = current_user_ns(); ns->parent; ns = ns->parent)
		if (!uid_eq(ns->owner, GLOBAL_ROOT_UID))
			user = ns->owner;
	return user;
}

static struct rove_odp_owner *new_owner(struct mm_struct *mm, kuid_t user)
{
	struct rove_odp_owner *o = kzalloc(sizeof(*o), ROVE_GFP_OBJECT);

	if (!o)
		return NULL;
	o->misses = alloc_workqueue("rove_odp", WQ_UNBOUND, MISSES_ACTIVE);
	if (!o->misses)
		goto err_free;
	o->advice = alloc_workqueue("rove_odp_advice", WQ_UNBOUND, ADVICE_ACTIVE);
	if (!o->advice)
		goto err_misses;
	sema_init(&o->room, ADVICE_WAITING);
	mutex_init(&o->lock);
	INIT_LIST_HEAD(&o->recent);
	INIT_RCU_WORK(&o->reap, reap_owner);
	mmgrab(mm);
	o->mm = mm;
	o->user = user;
	atomic_inc(&num_owners);
	return o;

err_misses:
	destroy_workqueue(o->misses);
err_free:
	kfree(o);
	return NULL;
}

static void free_owner(struct rove_odp_owner *o)
{
	destroy_workqueue(o->advice);
	destroy_workqueue(o->misses);
	mutex_destroy(&o->lock);
	mmdrop(o->mm);
	kfree(o);
	if (atomic_dec_and_test(&num_owners))
		wake_up_all(&owners_gone);
}

static void reap_owner(struct work_struct *work)
{
	free_owner(container_of(to_rcu_work(work), struct rove_odp_owner, reap));
}

/* That of @mm, or @new if there is none, for one more region. */
static struct rove_odp_owner *find_owner(struct mm_struct *mm,
					 struct rove_odp_owner *new)
{
	struct rove_odp_owner *o;

	mutex_lock(&owners_lock);
	hash_for_each_possible(owners, o, node, (unsigned long)mm)
		if (o->mm == mm)
			break;
	if (!o && new) {
		o = new;
		hash_add_rcu(owners, &o->node, (unsigned long)mm);
	}
	if (o)
		o->regions++;
	mutex_unlock(&owners_lock);
	return o;
}

/* So many processes have ended that the user answers for.  Nobody waits for who counts. */
static u32 num_deserted(kuid_t user)
{
	const struct rove_odp_owner *o;
	u32 n = 0;
	int i;

	for (i = 0; i < HASH_SIZE(owners); i++) {
		rcu_read_lock();
		hlist_for_each_entry_rcu(o, &owners[i], node)
			n += uid_eq(o->user, user) && rove_mm_deserted(o->mm);
		rcu_read_unlock();
		cond_resched();
	}
	return n;
}

/* May the user have one more?  Who ends lets go of its memory before its files. */
static bool may_desert(kuid_t user)
{
	unsigned long deadline = jiffies + DESERTED_WAIT;

	while (num_deserted(user) >= DESERTED_MAX) {
		if (capable(CAP_SYS_RESOURCE))
			return true;
		if (time_after(jiffies, deadline) || fatal_signal_pending(current))
			return false;
		schedule_timeout_killable(HZ / 50);
	}
	return true;
}

/*
 * Who calls, or an error.  Others do not wait for its memory: none is allocated with the
 * lock held.
 */
static struct rove_odp_owner *get_owner(const struct ib_device *ibdev)
{
	struct rove_odp_owner *o = find_owner(current->mm, NULL), *new;
	kuid_t user;

	if (o)
		return o;
	user = answerable();
	if (!may_desert(user)) {
		rove_refuse(ibdev,
			    "on-demand region: %u processes of this user's have ended and have some still",
			    DESERTED_MAX);
		return ERR_PTR(-EAGAIN);
	}
	new = new_owner(current->mm, user);
	if (!new)
		return ERR_PTR(-ENOMEM);
	o = find_owner(current->mm, new);
	if (o != new)
		free_owner(new);
	return o;
}

/* What is still on the queues touches nothing that could keep it waiting any more. */
static void put_owner(struct rove_odp_owner *o)
{
	bool last;

	mutex_lock(&owners_lock);
	last = !--o->regions;
	if (last)
		hash_del_rcu(&o->node);
	mutex_unlock(&owners_lock);
	if (last)
		queue_rcu_work(reaper, &o->reap);
}

static void put_odp(struct rove_odp *odp)
{
	if (!refcount_dec_and_test(&odp->refs))
		return;
	xa_destroy(&odp->chunks);
	put_owner(odp->owner);
	kfree(odp);
}

/* With the owner locked, if the region is still there. */
static bool lock_open(struct rove_odp *odp)
{
	mutex_lock(&odp->owner->lock);
	if (!odp->closed)
		return true;
	mutex_unlock(&odp->owner->lock);
	return false;
}

/* Where an address stands in its chunk's array. */
static unsigned long index_in_chunk(u64 uva)
{
	return (uva & (CHUNK_SIZE - 1)) >> PAGE_SHIFT;
}

void *rove_odp_addr(const struct rove_region *r, u64 va, u32 *len, bool write)
{
	u64 uva = va - r->iova + r->odp->start;
	struct chunk *c = xa_load(&r->odp->chunks, uva >> CHUNK_SHIFT);
	u32 off = offset_in_page(uva);
	unsigned long page;

	if (!c)
		return NULL;
	page = c->page[index_in_chunk(uva)];
	if (!page || (write && !(page & PAGE_WRITABLE)))
		return NULL;
	*len = min_t(u32, *len, PAGE_SIZE - off);
	return (void *)(page & ~PAGE_WRITABLE) + off;
}

/*
 * What has been written to pages that go is not to be lost: it was by the kernel's own
 * mapping.  The chunk is locked; before the entries go, as it may sleep.
 */
static void mark_dirty(const struct chunk *c, unsigned long start, unsigned long end)
{
	unsigned long i;

	for (i = start & PAGE_MASK; i < end; i += PAGE_SIZE) {
		unsigned long p = c->page[index_in_chunk(i)];

		if (p & PAGE_WRITABLE)
			folio_mark_dirty(virt_to_folio((void *)(p & ~PAGE_WRITABLE)));
	}
}

/* Nobody copies, until unlock_pages(). */
static void lock_pages(struct rove_odp *odp)
	__acquires(&odp->gate) __acquires(&odp->lock)
{
	spin_lock_bh(&odp->gate);
	write_lock(&odp->lock);
}

static void unlock_pages(struct rove_odp *odp)
	__releases(&odp->lock) __releases(&odp->gate)
{
	write_unlock(&odp->lock);
	spin_unlock_bh(&odp->gate);
}

/* The kernel takes pages away. */
static bool invalidate(struct mmu_interval_notifier *mni,
		       const struct mmu_notifier_range *range,
		       unsigned long seq)
{
	struct chunk *c = container_of(mni, struct chunk, notifier);
	unsigned long start, end, i, n = 0;

	if (!mmu_notifier_range_blockable(range))
		return false;
	mutex_lock(&c->lock);
	mmu_interval_set_seq(mni, seq);
	start = max_t(unsigned long, c->start, range->start);
	end = min_t(unsigned long, c->start + CHUNK_SIZE, range->end);
	mark_dirty(c, start, end);
	lock_pages(c->odp);
	for (i = start & PAGE_MASK; i < end; i += PAGE_SIZE) {
		unsigned long *p = &c->page[index_in_chunk(i)];

		n += !!*p;
		*p = 0;
	}
	unlock_pages(c->odp);
	WRITE_ONCE(c->pages, c->pages - n);
	if (!READ_ONCE(c->odp->closed)) {
		atomic64_add(n, &c->odp->invalidations);
		rove_count_add(c->odp->rdev, PAGES_GONE, n);
	}
	mutex_unlock(&c->lock);
	return true;
}

static const struct mmu_interval_notifier_ops notifier_ops = {
	.invalidate = invalidate,
};

/* As ib_umem_get() does it; the owner is locked. */
static int charge(struct chunk *c)
{
	struct rove_odp_owner *o = c->odp->owner;

	if (o->free < CHUNKS_FREE) {
		o->free++;
		return 0;
	}
	if (atomic64_add_return(CHUNK_COST, &o->mm->pinned_vm) > c->odp->limit) {
		atomic64_sub(CHUNK_COST, &o->mm->pinned_vm);
		return -ENOMEM;
	}
	c->charged = true;
	return 0;
}

static void uncharge(struct chunk *c)
{
	struct rove_odp_owner *o = c->odp->owner;

	if (c->charged)
		atomic64_sub(CHUNK_COST, &o->mm->pinned_vm);
	else
		o->free--;
}

/* The owner is locked, its memory held. */
static struct chunk *new_chunk(struct rove_odp *odp, u64 uva)
{
	struct chunk *c = kmem_cache_zalloc(chunk_cache, ROVE_GFP_OBJECT);
	int err;

	if (!c)
		return ERR_PTR(-ENOMEM);
	c->odp = odp;
	err = charge(c);
	if (err)
		goto err_free;
	c->start = uva & ~(CHUNK_SIZE - 1);
	mutex_init(&c->lock);
	err = mmu_interval_notifier_insert(&c->notifier, odp->owner->mm, c->start,
					   CHUNK_SIZE, &notifier_ops);
	if (err)
		goto err_uncharge;
	err = xa_err(xa_store(&odp->chunks, uva >> CHUNK_SHIFT, c,
			      ROVE_GFP_OBJECT));
	if (err)
		goto err_remove;
	list_add_tail(&c->recent, &odp->owner->recent);
	return c;

err_remove:
	mmu_interval_notifier_remove(&c->notifier);
err_uncharge:
	uncharge(c);
err_free:
	kmem_cache_free(chunk_cache, c);
	return ERR_PTR(err);
}

/* Nobody uses it.  The owner is locked.  Waits for the notifier. */
static void drop_chunk(struct chunk *c)
{
	struct rove_odp *odp = c->odp;

	list_del(&c->recent);
	mutex_lock(&c->lock);
	mark_dirty(c, c->start, c->start + CHUNK_SIZE);
	mutex_unlock(&c->lock);
	xa_erase(&odp->chunks, c->start >> CHUNK_SHIFT);
	/* Who copies has looked it up, and copies, with the lock held. */
	lock_pages(odp);
	unlock_pages(odp);
	mmu_interval_notifier_remove(&c->notifier);
	uncharge(c);
	kmem_cache_free(chunk_cache, c);
}

/* Its region goes, and is closed; its last user frees it.  The owner is locked. */
static void close_chunk(struct chunk *c)
{
	if (!c->users) {
		drop_chunk(c);
		return;
	}
	xa_erase(&c->odp->chunks, c->start >> CHUNK_SHIFT);
	/* Who still counts what goes is done with it after this. */
	mutex_lock(&c->lock);
	mutex_unlock(&c->lock);
}

/* Make room for another; the owner is locked. */
static bool evict_chunk(struct rove_odp_owner *o)
{
	struct chunk *c;

	list_for_each_entry(c, &o->recent, recent) {
		if (!c->users) {
			drop_chunk(c);
			return true;
		}
	}
	return false;
}

/* Is there any memory, so that a chunk is worth while? */
static bool is_mapped(struct mm_struct *mm, u64 uva, u64 len)
{
	bool mapped;

	mmap_read_lock(mm);
	mapped = find_vma_intersection(mm, uva, uva + len);
	mmap_read_unlock(mm);
	return mapped;
}

/*
 * The chunk of a range that is within one, in use until put_chunk().  Sleeps; the owner's
 * memory is held.
 */
static struct chunk *get_chunk(struct rove_odp *odp, u64 uva, u64 len,
			       enum want want)
{
	struct rove_odp_owner *o = odp->owner;
	bool crowded = false;
	struct chunk *c;

	if (!is_mapped(o->mm, uva, len))
		return ERR_PTR(-EFAULT);
	mutex_lock(&o->lock);
	if (odp->closed) {
		c = ERR_PTR(-EFAULT);
		goto unlock;
	}
	c = xa_load(&odp->chunks, uva >> CHUNK_SHIFT);
	if (c) {
		list_move_tail(&c->recent, &o->recent);
	} else {
		c = new_chunk(odp, uva);
		while (c == ERR_PTR(-ENOMEM) && evict_chunk(o)) {
			crowded = true;
			c = new_chunk(odp, uva);
		}
		/*
		 * Advice takes the place of advice: what somebody has waited for must
		 * stay until he has looked again.
		 */
		if (!IS_ERR(c) && crowded && want != MISSED)
			list_move(&c->recent, &o->recent);
	}
	if (!IS_ERR(c))
		c->users++;
unlock:
	mutex_unlock(&o->lock);
	return c;
}

/* One in which nothing was found is of no use, nor one whose region is gone. */
static void put_chunk(struct chunk *c)
{
	struct rove_odp_owner *o = c->odp->owner;

	mutex_lock(&o->lock);
	if (!--c->users && (c->odp->closed || !READ_ONCE(c->pages)))
		drop_chunk(c);
	mutex_unlock(&o->lock);
}

/* Touch pages as the program would: where that gets SIGBUS or SIGSEGV there is an error. */
static int touch(struct mm_struct *mm, u64 uva, u64 end, bool write)
{
	unsigned int flags = FAULT_FLAG_REMOTE | (write ? FAULT_FLAG_WRITE : 0);
	bool unlocked;
	int err = 0;

	mmap_read_lock(mm);
	for (; uva < end && !err; uva += PAGE_SIZE)
		err = rove_mm_deserted(mm) ? -EFAULT : fixup_user_fault(mm, uva, flags, &unlocked);
	mmap_read_unlock(mm);
	return err;
}

/* Of memfd_secret(): the kernel itself has no mapping of it. */
static bool is_secret(struct page *page)
{
	struct address_space *mapping = folio_mapping(page_folio(page));

	return mapping && mapping->host &&
	       mapping->host->i_sb->s_magic == SECRETMEM_MAGIC;
}

static unsigned long num_pages(const struct hmm_range *range)
{
	return (range->end - range->start) >> PAGE_SHIFT;
}

/* A shadow stack is the processor's to write; who pins memory cannot have it, either. */
static void spare_shadow_stacks(struct mm_struct *mm, struct hmm_range *range)
{
	VMA_ITERATOR(vmi, mm, range->start);
	struct vm_area_struct *vma;
	unsigned long uva;

	for_each_vma_range(vmi, vma, range->end) {
		if (!(vma->vm_flags & VM_SHADOW_STACK))
			continue;
		for (uva = max(vma->vm_start, range->start);
		     uva < min(vma->vm_end, range->end); uva += PAGE_SIZE) {
			unsigned long *pfn = &range->hmm_pfns[(uva - range->start) >> PAGE_SHIFT];

			*pfn = (*pfn & ~HMM_PFN_WRITE) | HMM_PFN_ERROR;
		}
	}
}

/*
 * Find out which pages of @range are there.  If that is 0 the chunk is locked, and what
 * has been found holds until it is unlocked.
 */
static int look(struct chunk *c, struct hmm_range *range)
{
	unsigned long deadline = jiffies + BRING_MAX, i;
	int ret;

	for (;;) {
		range->notifier_seq = mmu_interval_read_begin(range->notifier);
		mmap_read_lock(c->odp->owner->mm);
		ret = hmm_range_fault(range);
		if (!ret)
			spare_shadow_stacks(c->odp->owner->mm, range);
		mmap_read_unlock(c->odp->owner->mm);
		if (!ret) {
			mutex_lock(&c->lock);
			if (!mmu_interval_read_retry(range->notifier, range->notifier_seq))
				break;
			mutex_unlock(&c->lock);
			ret = -EBUSY;
		}
		if (ret != -EBUSY || time_after(jiffies, deadline))
			return ret;
	}
	for (i = 0; i < num_pages(range); i++)
		if (range->hmm_pfns[i] & HMM_PFN_VALID &&
		    is_secret(hmm_pfn_to_page(range->hmm_pfns[i])))
			range->hmm_pfns[i] = HMM_PFN_ERROR;
	return 0;
}

/* The first of @n pages that cannot be used yet, or @n. */
static unsigned long first_missing(const unsigned long *pfns, unsigned long n, bool write)
{
	unsigned long want = HMM_PFN_VALID | (write ? HMM_PFN_WRITE : 0), i = 0;

	while (i < n && (pfns[i] & want) == want)
		i++;
	return i;
}

/* The data path may use what is there; how much of it is new.  The chunk is locked. */
static int show(struct chunk *c, const struct hmm_range *range, unsigned long n, bool write)
{
	unsigned long *p = &c->page[index_in_chunk(range->start)];
	unsigned long i, pfn;
	int got = 0;

	lock_pages(c->odp);
	for (i = 0; i < n; i++, p++) {
		pfn = range->hmm_pfns[i];
		if (!(pfn & HMM_PFN_VALID))
			continue;
		got += !*p || (write && !(*p & PAGE_WRITABLE));
		WRITE_ONCE(c->pages, c->pages + !*p);
		*p = (unsigned long)page_address(hmm_pfn_to_page(pfn)) |
		     (*p & PAGE_WRITABLE) |
		     (write && pfn & HMM_PFN_WRITE ? PAGE_WRITABLE : 0);
	}
	unlock_pages(c->odp);
	return got;
}

/*
 * Have what @range says, within the chunk; how many pages of it are new, or an error.
 * -EBUSY: they are taken away as fast as they are brought.
 *
 * hmm_range_fault() is asked for what is there only.  To let it fault would hold
 * the mmap lock while a file system makes up its mind (6.1, 6.12), or go round for
 * ever where that cannot read a page (7.3, which takes each try for progress).
 */
static int fill(struct chunk *c, struct hmm_range *range, bool write, enum want want)
{
	unsigned long n = num_pages(range), i, deadline = 0;
	u32 round;
	int ret;

	for (round = 0;; round++) {
		ret = look(c, range);
		if (ret)
			return ret;
		i = want == IF_PRESENT ? n : first_missing(range->hmm_pfns, n, write);
		if (i == n)
			ret = show(c, range, n, write);
		else if (round && range->hmm_pfns[i] & HMM_PFN_ERROR)
			ret = -EFAULT;	/* being touched has not made it better */
		else if (round >= BRING_ROUNDS && time_after(jiffies, deadline))
			ret = i ? show(c, range, i, write) : -EBUSY;
		else
			ret = -EAGAIN;
		mutex_unlock(&c->lock);
		if (ret != -EAGAIN)
			return ret;
		ret = touch(c->odp->owner->mm, range->start + i * PAGE_SIZE, range->end, write);
		if (ret)
			return ret;
		/* What a file system took to read it does not count. */
		if (!round)
			deadline = jiffies + BRING_MAX;
	}
}

/*
 * Have the pages of a range, which is within one chunk; how many are new, or an error.
 * They are touched as the program would, but for IF_PRESENT.
 */
static int bring(struct rove_odp *odp, u64 uva, u64 len, bool write,
		 enum want want)
{
	struct hmm_range range = {
		.start = uva & PAGE_MASK, .end = PAGE_ALIGN(uva + len),
	};
	struct mm_struct *mm = odp->owner->mm;
	struct mem_cgroup *memcg, *old;
	struct chunk *c;
	int ret;

	if (rove_mm_deserted(mm) || !mmget_not_zero(mm))
		return -EFAULT;
	/* A worker does it, but not at its own expense: chunk, page tables, page cache. */
	memcg = get_mem_cgroup_from_mm(mm);
	old = set_active_memcg(memcg);
	c = get_chunk(odp, uva, len, want);
	ret = PTR_ERR_OR_ZERO(c);
	if (ret)
		goto out;
	range.notifier = &c->notifier;
	range.hmm_pfns = kcalloc(num_pages(&range), sizeof(*range.hmm_pfns), GFP_KERNEL);
	ret = range.hmm_pfns ? fill(c, &range, write, want) : -ENOMEM;
	kfree(range.hmm_pfns);
	put_chunk(c);
out:
	set_active_memcg(old);
	mem_cgroup_put(memcg);
	mmput(mm);
	return ret;
}

/*
 * Have the pages of a part of a region, at least the first: the others are only
 * likely to be needed.  Their number, or an error.  Ends early when the region goes, or
 * who calls is killed.
 */
static int populate(struct rove_odp *odp, u64 uva, u64 len, bool write,
		    enum want want)
{
	int ret, got = 0;
	u64 n;

	while (len) {
		if (READ_ONCE(odp->closed) || fatal_signal_pending(current))
			return got ?: -EINTR;
		n = min(len, CHUNK_SIZE - (uva & (CHUNK_SIZE - 1)));
		ret = bring(odp, uva, n, write, want);
		if (ret < 0 && !got && n > PAGE_SIZE - offset_in_page(uva)) {
			len = PAGE_SIZE - offset_in_page(uva);
			continue;
		}
		if (ret < 0)
			return got ?: ret;
		got += ret;
		uva += n;
		len -= n;
	}
	return got;
}

static void put_misses(struct rove_misses *all)
{
	if (refcount_dec_and_test(&all->refs))
		kfree(all);
}

/* The QP, referenced, if it is still there. */
static struct rove_qp *get_qp(struct rove_misses *all)
{
	struct rove_qp *qp;

	spin_lock_bh(&all->lock);
	qp = all->qp;
	if (qp)
		rove_qp_get(qp);
	spin_unlock_bh(&all->lock);
	return qp;
}

static void bring_missed(struct work_struct *work)
{
	struct miss *m = container_of(work, struct miss, work);
	struct rove_misses *all = m->all;
	struct rove_odp *odp = m->odp;
	struct rove_qp *qp;
	int ret;

	ret = populate(odp, m->uva, m->len, m->write, MISSED);
	if (ret > 0 && lock_open(odp)) {
		atomic64_add(ret, &odp->faults);
		rove_count_add(odp->rdev, PAGE_FAULTS, ret);
		mutex_unlock(&odp->owner->lock);
	}
	put_odp(odp);

	qp = get_qp(all);
	if (qp) {
		rove_qp_lock(qp);
		m->busy = false;
		/* Taken away again, or no memory: that is no error, it asks once more. */
		m->err = ret == -EBUSY || ret == -ENOMEM ? 0 : min(ret, 0);
		/* It looks at its rings, and sends what it may, whoever it serves. */
		if (ret == -ENOMEM)
			rove_qp_want_memory(qp);
		else
			rove_defer(qp);
		rove_qp_unlock(qp);
		rove_qp_put(qp);
	}
	put_misses(all);
}

static struct rove_misses *new_misses(struct rove_qp *qp)
{
	struct rove_misses *all = kzalloc(sizeof(*all), GFP_ATOMIC | __GFP_NOWARN);
	int i;

	if (!all)
		return NULL;
	refcount_set(&all->refs, 1);
	spin_lock_init(&all->lock);
	all->qp = qp;
	for (i = 0; i < ARRAY_SIZE(all->miss); i++)
		INIT_WORK(&all->miss[i].work, bring_missed);
	return all;
}

int rove_odp_fault(struct rove_qp *qp, struct rove_region *r, u64 va, u32 len,
		   bool write, bool responder)
{
	struct miss *m;

	if (!qp->misses)
		qp->misses = new_misses(qp);
	if (!qp->misses) {
		rove_qp_want_memory(qp);
		return -EAGAIN;
	}
	m = &qp->misses->miss[2 * responder + write];
	if (m->busy)
		return -EAGAIN;
	/* In vain before: say so, once. */
	if (m->err && m->key == r->key &&
	    m->va >> PAGE_SHIFT == va >> PAGE_SHIFT) {
		m->err = 0;
		return -EFAULT;
	}
	*m = (struct miss) {
		.work = m->work,
		.all = qp->misses,
		.odp = r->odp,
		.uva = va - r->iova + r->odp->start,
		.va = va,
		.len = min_t(u64, min(len, FAULT_MAX), r->length - (va - r->iova)),
		.write = write,
		.busy = true,
		.key = r->key,
	};
	refcount_inc(&m->odp->refs);
	refcount_inc(&m->all->refs);
	queue_work(m->odp->owner->misses, &m->work);
	return -EAGAIN;
}

struct rove_misses *rove_odp_forget(struct rove_qp *qp)
{
	struct rove_misses *all = qp->misses;

	qp->misses = NULL;
	if (!all)
		return NULL;
	spin_lock_bh(&all->lock);
	all->qp = NULL;
	spin_unlock_bh(&all->lock);
	return all;
}

void rove_odp_cancel(struct rove_misses *all)
{
	int i;

	if (!all)
		return;
	for (i = 0; i < ARRAY_SIZE(all->miss); i++) {
		if (cancel_work(&all->miss[i].work)) {
			put_odp(all->miss[i].odp);
			put_misses(all);
		}
	}
	put_misses(all);
}

struct ib_mr *rove_odp_reg_mr(struct ib_pd *ibpd, u64 start, u64 length,
			      u64 iova, int access)
{
	bool all = length == U64_MAX;
	struct rove_odp *odp;
	struct rove_mr *mr;
	int err;

	/* Of a process all or nothing; a range has no use for the kernel's part. */
	if (all ? start || iova : length > TASK_SIZE || start > TASK_SIZE - length) {
		rove_refuse(ibpd->device,
			    "on-demand region: %llu bytes at %#llx: all from 0, or what a program can have",
			    length, start);
		return ERR_PTR(-EINVAL);
	}
	mr = rove_mr_alloc(ibpd, ROVE_REGION_ODP, access);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	odp = kzalloc(sizeof(*odp), ROVE_GFP_OBJECT);
	if (!odp) {
		err = -ENOMEM;
		goto err_mr;
	}
	odp->owner = get_owner(ibpd->device);
	if (IS_ERR(odp->owner)) {
		err = PTR_ERR(odp->owner);
		goto err_odp;
	}
	odp->rdev = to_rdev(ibpd->device);
	refcount_set(&odp->refs, 1);
	xa_init(&odp->chunks);
	rwlock_init(&odp->lock);
	spin_lock_init(&odp->gate);
	odp->start = start;
	odp->limit = capable(CAP_IPC_LOCK) ? LONG_MAX :
					     rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	mr->region->iova = access & IB_ZERO_BASED ? 0 : iova;
	mr->region->length = length;
	mr->region->odp = odp;
	err = rove_mr_publish(mr, true);
	if (!err)
		return &mr->ibmr;
	goto err_mr;

err_odp:
	kfree(odp);
err_mr:
	rove_mr_free(mr);
	return ERR_PTR(err);
}

void rove_odp_close(struct rove_odp *odp)
{
	struct rove_odp_owner *o = odp->owner;
	unsigned long index = 0;
	struct chunk *c;

	/* One by one: others of the process want the lock, too. */
	do {
		mutex_lock(&o->lock);
		WRITE_ONCE(odp->closed, true);
		c = xa_find(&odp->chunks, &index, ULONG_MAX, XA_PRESENT);
		if (c)
			close_chunk(c);
		mutex_unlock(&o->lock);
	} while (c);
	put_odp(odp);
}

/**
 * struct advice - pages that a program will need
 * @work: brings them, if not the program itself
 * @owner: whose memory it is, and whose queue @work is on
 * @write: to be written to
 * @want: even if they are not in memory?
 * @num: entries of @part
 * @part: where in the process; each @odp referenced
 */
struct advice {
	struct work_struct work;
	struct rove_odp_owner *owner;
	bool write;
	enum want want;
	u32 num;
	struct {
		struct rove_odp *odp;
		u64 uva;
		u32 len;
	} part[];
};

static int follow(struct advice *a)
{
	int ret, err = 0;
	u32 i;

	for (i = 0; i < a->num; i++) {
		struct rove_odp *odp = a->part[i].odp;

		ret = populate(odp, a->part[i].uva, a->part[i].len, a->write,
			       a->want);
		if (ret > 0 && lock_open(odp)) {
			atomic64_add(ret, &odp->prefetches);
			rove_count_add(odp->rdev, PAGE_PREFETCHES, ret);
			mutex_unlock(&odp->owner->lock);
		} else if (ret < 0 && !err) {
			err = ret;
		}
		put_odp(odp);
	}
	kfree(a);
	return err;
}

static void follow_later(struct work_struct *work)
{
	struct advice *a = container_of(work, struct advice, work);
	struct rove_odp_owner *o = a->owner;

	follow(a);
	/* Its queue is flushed before it goes. */
	up(&o->room);
}

/*
 * The process whose memory all of it is about, or NULL: a worker of the one shall not
 * wait for pages of the other, which may never come.
 */
static struct rove_odp_owner *advice_owner(const struct advice *a)
{
	struct rove_odp_owner *o = a->part[0].odp->owner;
	u32 i;

	for (i = 1; i < a->num; i++)
		if (a->part[i].odp->owner != o)
			return NULL;
	return o;
}

static int check_advised(const struct rove_region *r, const struct ib_pd *pd,
			 const struct ib_sge *sge)
{
	if (!r || r->key != sge->lkey)
		return -ENOENT;
	if (r->home != pd)
		return -EPERM;
	if (r->kind != ROVE_REGION_ODP || !sge->length)
		return -EINVAL;
	return rove_region_covers(r, sge->addr, sge->length) ? 0 : -EFAULT;
}

/* The region of an SGE, referenced, or an error. */
static struct rove_region *advised(struct rove_dev *rdev, struct ib_pd *pd,
				   const struct ib_sge *sge)
{
	struct rove_region *r;
	int err;

	rcu_read_lock();
	r = rove_region_find(rdev, sge->lkey);
	err = check_advised(r, pd, sge);
	if (!err && !refcount_inc_not_zero(&r->refs))
		err = -ENOENT;
	rcu_read_unlock();
	return err ? ERR_PTR(err) : r;
}

int rove_advise_mr(struct ib_pd *ibpd, enum ib_uverbs_advise_mr_advice advice,
		   u32 flags, struct ib_sge *sge, u32 num_sge,
		   struct uverbs_attr_bundle *attrs)
{
	struct rove_dev *rdev = to_rdev(ibpd->device);
	struct advice *a;
	int err;

	if (advice != IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH &&
	    advice != IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE &&
	    advice != IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT) {
		rove_refuse(ibpd->device, "advise_mr: advice %d: there are three ways to prefetch, 0 to 2",
			    advice);
		return -EOPNOTSUPP;
	}
	if (!num_sge || flags & ~IB_UVERBS_ADVISE_MR_FLAG_FLUSH)
		return -EINVAL;
	a = kzalloc(struct_size(a, part, num_sge), ROVE_GFP_OBJECT);
	if (!a)
		return -ENOMEM;
	a->write = advice == IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	a->want = advice == IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT ?
		  IF_PRESENT : ADVISED;
	for (; a->num < num_sge; a->num++) {
		struct rove_region *r = advised(rdev, ibpd, &sge[a->num]);

		if (IS_ERR(r)) {
			err = PTR_ERR(r);
			rove_refuse(ibpd->device,
				    "advise_mr: %u bytes at %#llx, lkey %#x: not within an on-demand region of this PD",
				    sge[a->num].length, sge[a->num].addr,
				    sge[a->num].lkey);
			goto err_put;
		}
		refcount_inc(&r->odp->refs);
		a->part[a->num].odp = r->odp;
		a->part[a->num].uva = sge[a->num].addr - r->iova + r->odp->start;
		a->part[a->num].len = sge[a->num].length;
		if (a->write && !(r->access & IB_ACCESS_LOCAL_WRITE)) {
			rove_refuse(ibpd->device,
				    "advise_mr: to prefetch for writing, lkey %#x needs local write",
				    r->key);
			rove_region_unref(r);
			a->num++;
			err = -EPERM;
			goto err_put;
		}
		rove_region_unref(r);
	}
	a->owner = advice_owner(a);
	if (flags & IB_UVERBS_ADVISE_MR_FLAG_FLUSH || !a->owner)
		return follow(a);
	/* Who advises much waits for a moment, but not for ever. */
	err = -EAGAIN;
	if (down_timeout(&a->owner->room, HZ))
		goto err_put;
	INIT_WORK(&a->work, follow_later);
	queue_work(a->owner->advice, &a->work);
	return 0;

err_put:
	while (a->num)
		put_odp(a->part[--a->num].odp);
	kfree(a);
	return err;
}

int rove_fill_stat_mr(struct sk_buff *msg, struct ib_mr *ibmr)
{
	struct rove_odp *odp = NULL;
	struct rove_region *r;
	struct nlattr *table;

	/* rereg_mr replaces a region, but none of this kind. */
	rcu_read_lock();
	r = READ_ONCE(to_rmr(ibmr)->region);
	if (r->kind == ROVE_REGION_ODP)
		odp = r->odp;
	rcu_read_unlock();
	if (!odp)
		return 0;
	table = nla_nest_start(msg, RDMA_NLDEV_ATTR_STAT_HWCOUNTERS);
	if (!table)
		return -EMSGSIZE;
	if (rdma_nl_stat_hwcounter_entry(msg, "page_faults",
					 atomic64_read(&odp->faults)) ||
	    rdma_nl_stat_hwcounter_entry(msg, "page_invalidations",
					 atomic64_read(&odp->invalidations)) ||
	    rdma_nl_stat_hwcounter_entry(msg, "page_prefetch",
					 atomic64_read(&odp->prefetches))) {
		nla_nest_cancel(msg, table);
		return -EMSGSIZE;
	}
	nla_nest_end(msg, table);
	return 0;
}

int rove_odp_init(void)
{
	chunk_cache = kmem_cache_create("rove_odp_chunk", sizeof(struct chunk), 0,
					SLAB_ACCOUNT, NULL);
	if (!chunk_cache)
		return -ENOMEM;
	reaper = alloc_workqueue("rove_odp_reaper", WQ_UNBOUND, 0);
	if (reaper)
		return 0;
	kmem_cache_destroy(chunk_cache);
	return -ENOMEM;
}

void rove_odp_exit(void)
{
	while (!wait_event_timeout(owners_gone, !atomic_read(&num_owners), 10 * HZ))
		pr_info("rove: waiting for pages that somebody does not bring; end the programs that use their memory\n");
	destroy_workqueue(reaper);
	kmem_cache_destroy(chunk_cache);
}
