// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * cq.c - completion queues
 *
 * A program polls and arms its CQ in shared memory and never comes here but to
 * create, resize and destroy it.  A kernel consumer does all through here; its
 * ring is the same, only not mapped.
 */
#include <linux/ktime.h>
#include <linux/sched.h>
#include "cq.h"
#include "dev.h"
#include "qp.h"

/*
 * Completions that the consumer has not taken yet; more than the ring holds if
 * a program has written nonsense.
 */
static u32 rove_cq_used(struct rove_cq *cq)
{
	struct rove_ring *r = &cq->ring;

	lockdep_assert_held(&cq->lock);
	if (cq->user)
		/*
		 * Pairs with the release by which the program gives slots back:
		 * they may be written over after this.
		 */
		r->cons = smp_load_acquire(&r->hdr->cons);
	return r->prod - r->cons;
}

/*
 * Slots that may be filled, as many as @n or all there are.  A program that polls has just
 * written its index, and that cache line is only fetched when what is known of it runs out.
 */
static u32 rove_cq_room(struct rove_cq *cq, u32 n)
{
	const struct rove_ring *r = &cq->ring;
	u32 used = r->prod - r->cons;

	if (used > r->depth || n > r->depth - used)
		used = rove_cq_used(cq);
	return used > r->depth ? 0 : min(n, r->depth - used);
}

static void rove_cq_disarm(struct rove_cq *cq)
{
	if (cq->user)
		WRITE_ONCE(cq->ring.hdr->arm, ROVE_CQ_ARM_NONE);
	else
		cq->armed = ROVE_CQ_ARM_NONE;
}

/*
 * Moderation: is the event to wait, for more completions or for its time?  A full
 * ring waits for nothing.
 */
static bool rove_cq_hold_event(struct rove_cq *cq, u32 n)
{
	cq->held += n;
	if ((cq->mod_count && cq->held >= cq->mod_count) ||
	    rove_cq_used(cq) >= cq->ring.depth) {
		cq->held = 0;
		/* should it run already, it finds nothing held */
		hrtimer_try_to_cancel(&cq->mod_timer);
		return false;
	}
	if (cq->mod_period && !hrtimer_is_queued(&cq->mod_timer))
		hrtimer_start(&cq->mod_timer,
			      ns_to_ktime(cq->mod_period * NSEC_PER_USEC),
			      HRTIMER_MODE_REL_SOFT);
	return true;
}

static u32 rove_cq_arm(const struct rove_cq *cq)
{
	return cq->user ? READ_ONCE(cq->ring.hdr->arm) : cq->armed;
}

bool rove_cq_armed(struct rove_cq *cq)
{
	unsigned long flags;
	u32 arm;

	spin_lock_irqsave(&cq->lock, flags);
	arm = rove_cq_arm(cq);
	spin_unlock_irqrestore(&cq->lock, flags);
	return arm != ROVE_CQ_ARM_NONE;
}

/* Does the consumer want to know of the @n that have just been added? */
static bool rove_cq_wants_event(struct rove_cq *cq, u32 n, bool solicited)
{
	u32 arm = rove_cq_arm(cq);

	if (arm != ROVE_CQ_ARM_NEXT &&
	    !(arm == ROVE_CQ_ARM_SOLICITED && solicited))
		return false;
	if (unlikely(cq->mod_count | cq->mod_period) &&
	    rove_cq_hold_event(cq, n))
		return false;
	rove_cq_disarm(cq);
	return true;
}

static int rove_cq_add_locked(struct rove_cq *cq, const struct rove_cqe *cqe,
			      u32 n, bool solicited)
{
	struct rove_ring *r = &cq->ring;
	u64 now = cq->timestamps ? ktime_get_ns() : 0;
	u32 room = rove_cq_room(cq, n);
	int due = 0;
	u32 i;

	if (unlikely(cq->overrun))
		return -ENOSPC;
	if (unlikely(n > room)) {
		cq->overrun = true;
		cq->overrun_event = true;
		rove_count(to_rdev(cq->ibcq.device), CQ_OVERRUN);
		n = room;
	}
	for (i = 0; i < n; i++) {
		struct rove_cqe *slot = rove_ring_slot(r, r->prod++);

		*slot = cqe[i];
		slot->timestamp = now;
	}
	/* pairs with the consumer's acquire: the slots are written by then */
	smp_store_release(&r->hdr->prod, r->prod);

	/*
	 * Pairs with the barrier of a program between arming and looking at
	 * @prod once more: one of the two sees what the other has written.
	 */
	smp_mb();
	if (n && rove_cq_wants_event(cq, n, solicited)) {
		cq->event_due = true;
		due = 1;
	}
	return unlikely(cq->overrun) ? -ENOSPC : due;
}

void rove_cq_local_peer(struct rove_cq *cq)
{
	unsigned long flags;

	spin_lock_irqsave(&cq->lock, flags);
	cq->local_peer = true;
	if (cq->user)
		WRITE_ONCE(cq->ring.hdr->flags, ROVE_RING_LOCAL_PEER);
	spin_unlock_irqrestore(&cq->lock, flags);
}

int rove_cq_add(struct rove_cq *cq, const struct rove_cqe *cqe, u32 n,
		bool solicited)
{
	unsigned long flags;
	int ret;

	spin_lock_irqsave(&cq->lock, flags);
	ret = rove_cq_add_locked(cq, cqe, n, solicited);
	spin_unlock_irqrestore(&cq->lock, flags);
	return ret;
}

void rove_cq_notify(struct rove_cq *cq)
{
	struct ib_cq *ibcq = &cq->ibcq;
	struct ib_event event = {
		.device = ibcq->device,
		.event = IB_EVENT_CQ_ERR,
		.element.cq = ibcq,
	};
	unsigned long flags;
	bool completion, overrun;

	spin_lock_irqsave(&cq->lock, flags);
	completion = cq->event_due;
	overrun = cq->overrun_event;
	cq->event_due = false;
	cq->overrun_event = false;
	spin_unlock_irqrestore(&cq->lock, flags);

	if (overrun) {
		rove_warn(ibcq->device,
			  "completion queue of %d entries overrun: completions are lost\n",
			  ibcq->cqe);
		if (ibcq->event_handler)
			ibcq->event_handler(&event, ibcq->cq_context);
	}
	if (completion && ibcq->comp_handler)
		ibcq->comp_handler(ibcq, ibcq->cq_context);
}

/* The event that is being held back, if any, is due. */
static void rove_cq_release_event(struct rove_cq *cq)
{
	unsigned long flags;

	spin_lock_irqsave(&cq->lock, flags);
	if (cq->held) {
		cq->held = 0;
		rove_cq_disarm(cq);
		cq->event_due = true;
	}
	spin_unlock_irqrestore(&cq->lock, flags);
	rove_cq_notify(cq);
}

static enum hrtimer_restart rove_cq_mod_timer(struct hrtimer *timer)
{
	rove_cq_release_event(container_of(timer, struct rove_cq, mod_timer));
	return HRTIMER_NORESTART;
}

/* No event is held back any more, unless something is added meanwhile. */
static void rove_cq_settle(struct rove_cq *cq)
{
	hrtimer_cancel(&cq->mod_timer);
	rove_cq_release_event(cq);
}

static int rove_cq_check_size(struct ib_device *ibdev, unsigned int cqe)
{
	if (cqe && cqe <= ROVE_MAX_CQE)
		return 0;
	rove_refuse(ibdev, "CQ of %u entries, 1 to %u are allowed", cqe,
		    ROVE_MAX_CQE);
	return -EINVAL;
}

/* For programs also tells them where the ring is. */
static int rove_cq_alloc_ring(struct rove_ring *r, u32 depth,
			      struct ib_udata *udata)
{
	struct rove_ucontext *uctx =
		rdma_udata_to_drv_context(udata, struct rove_ucontext, ibuc);
	struct rove_create_cq_resp resp = {};
	int err;

	if (!udata)
		return rove_ring_alloc(r, NULL, depth, sizeof(struct rove_cqe),
				       NULL);
	if (udata->outlen < sizeof(resp))
		return -EINVAL;
	err = rove_no_request(udata);
	if (err)
		return err;

	err = rove_ring_alloc(r, &uctx->ibuc, depth, sizeof(struct rove_cqe),
			      &resp.cq);
	if (err)
		return err;
	err = ib_copy_to_udata(udata, &resp, sizeof(resp));
	if (err)
		rove_ring_free(r);
	return err;
}

/**
 * rove_create_cq() - ib_device_ops.create_cq
 * @ibcq: allocated and zeroed by ib_core
 * @attr: size, vector and flags
 * @arg: what ib_core of this kernel gives; see compat.h
 *
 * Context: may sleep.
 * Return: 0; -EINVAL: size or vector; -EOPNOTSUPP: flags; -ENOMEM; -EFAULT.
 */
int rove_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		   struct rove_cq_arg *arg)
{
	struct ib_udata *udata = rove_cq_udata(arg);
	struct rove_dev *rdev = to_rdev(ibcq->device);
	struct rove_cq *cq = to_rcq(ibcq);
	int err;

	if (attr->flags & ~IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION) {
		rove_refuse(ibcq->device, "create_cq: flags %#x, at most %#x",
			    attr->flags, IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION);
		return -EOPNOTSUPP;
	}
	if (attr->comp_vector < 0 ||
	    attr->comp_vector >= ibcq->device->num_comp_vectors) {
		rove_refuse(ibcq->device, "create_cq: comp_vector %d, there are %d",
			    attr->comp_vector, ibcq->device->num_comp_vectors);
		return -EINVAL;
	}
	err = rove_cq_check_size(ibcq->device, attr->cqe);
	if (err)
		return err;

	err = rove_dev_charge(rdev, &rdev->num_cq, ROVE_MAX_CQ, "CQs");
	if (err)
		return err;
	err = rove_cq_alloc_ring(&cq->ring, attr->cqe, udata);
	if (err) {
		rove_dev_uncharge(&rdev->num_cq);
		return err;
	}
	spin_lock_init(&cq->lock);
	mutex_init(&cq->resizing);
	cq->user = udata;
	cq->timestamps = attr->flags & IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION;
	rove_hrtimer_setup(&cq->mod_timer, rove_cq_mod_timer, CLOCK_MONOTONIC,
			   HRTIMER_MODE_REL_SOFT);
	ibcq->cqe = cq->ring.depth;
	return 0;
}

/**
 * rove_modify_cq() - ib_device_ops.modify_cq: moderation
 * @ibcq: the CQ
 * @count: send an event when so many completions have come; 0: whatever their
 *	number
 * @period: or so many microseconds after the first; 0: whatever the time.
 *	Both 0: no moderation
 *
 * Context: may sleep.
 * Return: 0.
 */
int rove_modify_cq(struct ib_cq *ibcq, u16 count, u16 period)
{
	struct rove_cq *cq = to_rcq(ibcq);
	unsigned long flags;

	spin_lock_irqsave(&cq->lock, flags);
	cq->mod_count = count;
	cq->mod_period = period;
	spin_unlock_irqrestore(&cq->lock, flags);

	/* What waits, waits by rules that are no more. */
	rove_cq_settle(cq);
	return 0;
}

int rove_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct rove_cq *cq = to_rcq(ibcq);
	struct rove_ring ring;
	unsigned long flags;

	/* Nobody adds to it any more, nor starts the timer. */
	hrtimer_cancel(&cq->mod_timer);
	spin_lock_irqsave(&cq->lock, flags);
	ring = rove_ring_detach(&cq->ring);
	spin_unlock_irqrestore(&cq->lock, flags);
	rove_ring_free(&ring);
	rove_dev_uncharge(&to_rdev(ibcq->device)->num_cq);
	return 0;
}

/*
 * Move some of what nobody has taken yet to @to (rove_ring_move_some()).  When all is
 * there @to becomes the CQ's ring, and the old one @to.  1: there is more.
 */
static int rove_cq_move_some(struct rove_cq *cq, struct rove_ring *to, u32 base, u32 *at)
{
	struct rove_ring *from = &cq->ring;
	u32 used = rove_cq_used(cq), cons = from->prod - used;

	if (used > from->depth || used > to->depth)
		return -EINVAL;
	if (rove_ring_move_some(from, to, base, cons, from->prod, at))
		return 1;
	to->prod = from->prod - base;
	to->cons = cons - base;
	WRITE_ONCE(to->hdr->cons, to->cons);
	to->hdr->arm = READ_ONCE(from->hdr->arm);
	to->hdr->flags = cq->local_peer ? ROVE_RING_LOCAL_PEER : 0;
	/* the program reads it once the command has returned */
	smp_store_release(&to->hdr->prod, to->prod);
	swap(*from, *to);
	cq->ibcq.cqe = from->depth;
	return 0;
}

static int rove_cq_move_all(struct rove_cq *cq, struct rove_ring *to)
{
	unsigned long flags;
	u32 base, at;
	int ret;

	/* What two moved at once would be in neither's order. */
	mutex_lock(&cq->resizing);
	spin_lock_irqsave(&cq->lock, flags);
	base = cq->ring.prod - rove_cq_used(cq);
	spin_unlock_irqrestore(&cq->lock, flags);
	at = base;
	do {
		spin_lock_irqsave(&cq->lock, flags);
		ret = rove_cq_move_some(cq, to, base, &at);
		spin_unlock_irqrestore(&cq->lock, flags);
		cond_resched();
	} while (ret > 0);
	mutex_unlock(&cq->resizing);
	return ret;
}

/*
 * The program learns of the new ring before it is in use, since that is what can
 * fail; until then the old one is untouched (hazards 8 and 9).
 */
int rove_resize_cq(struct ib_cq *ibcq, rove_resize_arg cqe,
		   struct ib_udata *udata)
{
	struct rove_cq *cq = to_rcq(ibcq);
	struct rove_ring ring = {};
	int err;

	err = rove_cq_check_size(ibcq->device, cqe);
	if (err)
		return err;
	err = rove_cq_alloc_ring(&ring, cqe, udata);
	if (err)
		return err;

	err = rove_cq_move_all(cq, &ring);
	if (err)
		rove_refuse(ibcq->device, "resize_cq: there are more completions in it than %u",
			    cqe);

	rove_ring_free(&ring);
	return err;
}

/* NULL when the QP is gone.  Else its consumer is here, and keeps it. */
static struct ib_qp *rove_cq_ibqp(struct rove_cq *cq, u32 qpn)
{
	struct rove_qp *qp;

	rcu_read_lock();
	qp = rove_qp_find(to_rdev(cq->ibcq.device), qpn);
	rcu_read_unlock();
	return qp ? &qp->ibqp : NULL;
}

/* All but the QP, which the caller knows. */
static void rove_cqe_to_wc(const struct rove_cqe *cqe, struct ib_wc *wc)
{
	memset(wc, 0, sizeof(*wc));
	wc->wr_id = cqe->wr_id;
	wc->status = cqe->status;
	wc->opcode = cqe->opcode == ROVE_WC_REG_MR ? IB_WC_REG_MR : cqe->opcode;
	wc->vendor_err = cqe->vendor_err;
	wc->byte_len = cqe->byte_len;
	wc->src_qp = cqe->src_qp;
	wc->pkey_index = cqe->pkey_index;
	wc->port_num = 1;
	if (cqe->wc_flags & ROVE_WC_WITH_GRH) {
		wc->wc_flags |= IB_WC_GRH | IB_WC_WITH_NETWORK_HDR_TYPE;
		wc->sl = cqe->sl;
		wc->network_hdr_type = cqe->network_hdr_type;
		if (cqe->vlan_id != ROVE_NO_VLAN) {
			wc->wc_flags |= IB_WC_WITH_VLAN;
			wc->vlan_id = cqe->vlan_id;
		}
	}
	if (cqe->wc_flags & ROVE_WC_WITH_IMM) {
		wc->wc_flags |= IB_WC_WITH_IMM;
		wc->ex.imm_data = cqe->imm_data;
	}
	if (cqe->wc_flags & ROVE_WC_WITH_INV) {
		wc->wc_flags |= IB_WC_WITH_INVALIDATE;
		wc->ex.invalidate_rkey = cqe->invalidated_rkey;
	}
}

int rove_poll_cq(struct ib_cq *ibcq, int num, struct ib_wc *wc)
{
	struct rove_cq *cq = to_rcq(ibcq);
	struct rove_ring *r = &cq->ring;
	struct ib_qp *qp = NULL;
	unsigned long flags;
	u32 qpn = 0;
	int n;

	if (cq->user)
		return -EOPNOTSUPP;

	spin_lock_irqsave(&cq->lock, flags);
	for (n = 0; n < num && r->cons != r->prod; n++, r->cons++) {
		const struct rove_cqe *cqe = rove_ring_slot(r, r->cons);

		/* One that goes has its completions forgotten first, by this lock. */
		if (!n || cqe->qp_num != qpn) {
			qpn = cqe->qp_num;
			qp = rove_cq_ibqp(cq, qpn);
		}
		rove_cqe_to_wc(cqe, &wc[n]);
		wc[n].qp = qp;
	}
	spin_unlock_irqrestore(&cq->lock, flags);
	return n;
}

void rove_cq_forget(struct rove_cq *cq, u32 qpn)
{
	struct rove_ring *r = &cq->ring;
	unsigned long flags;
	u32 from, to;

	spin_lock_irqsave(&cq->lock, flags);
	for (from = to = r->cons; from != r->prod; from++) {
		const struct rove_cqe *cqe = rove_ring_slot(r, from);

		if (cqe->qp_num == qpn)
			continue;
		if (to != from)
			*(struct rove_cqe *)rove_ring_slot(r, to) = *cqe;
		to++;
	}
	r->prod = to;
	spin_unlock_irqrestore(&cq->lock, flags);
	rove_cq_settle(cq);
}

int rove_peek_cq(struct ib_cq *ibcq, int wc_cnt)
{
	struct rove_cq *cq = to_rcq(ibcq);
	unsigned long flags;
	u32 used;

	spin_lock_irqsave(&cq->lock, flags);
	used = min(rove_cq_used(cq), cq->ring.depth);
	spin_unlock_irqrestore(&cq->lock, flags);
	return min_t(u32, used, wc_cnt);
}

int rove_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags notify)
{
	bool next = (notify & IB_CQ_SOLICITED_MASK) == IB_CQ_NEXT_COMP;
	struct rove_cq *cq = to_rcq(ibcq);
	unsigned long flags;
	int missed = 0;
	u8 arm;

	spin_lock_irqsave(&cq->lock, flags);
	/* asking for less does not take back what was asked for before */
	arm = rove_cq_arm(cq);
	arm = next || arm == ROVE_CQ_ARM_NEXT ? ROVE_CQ_ARM_NEXT :
						ROVE_CQ_ARM_SOLICITED;
	if (cq->user)
		WRITE_ONCE(cq->ring.hdr->arm, arm);
	else
		cq->armed = arm;
	if (notify & IB_CQ_REPORT_MISSED_EVENTS)
		missed = rove_cq_used(cq) != 0;
	spin_unlock_irqrestore(&cq->lock, flags);
	return missed;
}
