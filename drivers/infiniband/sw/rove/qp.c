// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qp.c - create, modify, query, destroy; the table of QPs
 *
 * The data path of a QP is elsewhere: post.c, doorbell.c, net_rx.c and the
 * transport.
 */
#include <linux/interrupt.h>
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <rdma/ib_addr.h>
#include "compat.h"
#include "data.h"
#include "defer.h"
#include "doorbell.h"
#include "mr.h"
#include "net.h"
#include "odp.h"
#include "qp.h"
#include "refuse.h"
#include "srq.h"
#include "xrc.h"
#include "trace.h"
#include "transport/env.h"

/* QPNs 0 and 1 are the special QPs'. */
#define GSI_QPN		1
#define FIRST_QPN	2
/*
 * What a requester may have unacknowledged: so many bytes, and packets within these limits.
 */
#define WINDOW_BYTES	(2U << 20)
#define WINDOW_MIN	512U
#define WINDOW_MAX	1024U

static const struct rhashtable_params qp_table = {
	.key_len = sizeof_field(struct rove_qp, t.qpn),
	.key_offset = offsetof(struct rove_qp, t.qpn),
	.head_offset = offsetof(struct rove_qp, node),
	.automatic_shrinking = true,
};

int rove_qp_table_init(struct rove_dev *rdev)
{
	spin_lock_init(&rdev->qp_lock);
	INIT_LIST_HEAD(&rdev->qp_list);
	return rhashtable_init(&rdev->qps, &qp_table);
}

void rove_qp_table_destroy(struct rove_dev *rdev)
{
	rhashtable_destroy(&rdev->qps);
}

struct rove_qp *rove_qp_find(struct rove_dev *rdev, u32 qpn)
{
	return rhashtable_lookup(&rdev->qps, &qpn, qp_table);
}

/*
 * Give the QP a number that nobody can guess from another's, and make it
 * visible.  Everything else about it must be in place.  There is one GSI QP.
 */
static int publish(struct rove_qp *qp)
{
	struct rove_dev *rdev = qp->rdev;
	bool gsi = qp->ibqp.qp_type == IB_QPT_GSI;
	struct rove_qp *old;
	int ret = 0;

	do {
		do {
			qp->t.qpn = gsi ? GSI_QPN : get_random_u32() & ROVE_PSN_MASK;
		} while (!gsi && (qp->t.qpn < FIRST_QPN ||
				  qp->t.qpn == ROVE_MULTICAST_QPN));
		old = rhashtable_lookup_get_insert_fast(&rdev->qps, &qp->node,
							qp_table);
		if (IS_ERR(old))
			return PTR_ERR(old);
		if (old && gsi)
			return -EBUSY;
	} while (old);
	qp->ibqp.qp_num = qp->t.qpn;

	spin_lock_bh(&rdev->qp_lock);
	if (rdev->dying)
		ret = -EIO;
	else
		list_add_tail(&qp->list, &rdev->qp_list);
	spin_unlock_bh(&rdev->qp_lock);
	if (ret)
		rhashtable_remove_fast(&rdev->qps, &qp->node, qp_table);
	return ret;
}

static void withdraw(struct rove_qp *qp)
{
	spin_lock_bh(&qp->rdev->qp_lock);
	list_del(&qp->list);
	spin_unlock_bh(&qp->rdev->qp_lock);
	rhashtable_remove_fast(&qp->rdev->qps, &qp->node, qp_table);
}

/*
 * Have what is posted to a QP in this state sent, or flushed, where only a part is in one
 * go: somebody waits for all of it.  No more than the rings hold, though the program may go on
 * posting.
 */
static void run_rest(struct rove_qp *qp, enum rove_tqp_state state)
{
	u32 left = qp->sq.depth + qp->rq.depth;
	u32 n;

	do {
		u32 taken;

		rove_qp_lock(qp);
		taken = qp->t.req.fetched + qp->rq.cons;
		if (qp->t.state == state)
			rove_doorbell_run(qp);
		n = qp->t.req.fetched + qp->rq.cons - taken;
		rove_qp_unlock(qp);
		left -= min(left, n);
		cond_resched();
	} while (n && left);
}

/*
 * A datagram is as good as sent when it is posted: programs (mckey) destroy the
 * address handle and the QP without having waited for a completion.
 */
void rove_pd_send_rest(struct ib_pd *ibpd)
{
	/* A kernel thread, where something of the kernel's had the file last. */
	bool ends = current->flags & (PF_EXITING | PF_KTHREAD) || fatal_signal_pending(current) ||
		    READ_ONCE(to_rdev(ibpd->device)->dying);
	struct rove_pd *pd = to_rpd(ibpd);
	struct rove_qp *qp;

	mutex_lock(&pd->lock);
	/* A million address handles may go at once, and somebody waits for that. */
	if (ends && pd->rest_sent)
		goto unlock;
	list_for_each_entry(qp, &pd->ud_qps, ud_node) {
		/* What is posted at the same time is none of what was before. */
		if (data_race(qp->t.state == ROVE_TQP_RTS &&
			      (rove_env_sq_pending(&qp->t) ||
			       qp->t.req.fetched != qp->t.req.done)))
			run_rest(qp, ROVE_TQP_RTS);
	}
	pd->rest_sent = ends;
unlock:
	mutex_unlock(&pd->lock);
}

/* Kernel consumers wait for their completions, and may not sleep everywhere. */
static bool sends_datagrams(const struct rove_qp *qp)
{
	return qp->user && qp->t.service == ROVE_SVC_UD && qp->sq.depth;
}

static void join_pd(struct rove_qp *qp)
{
	struct rove_pd *pd = to_rpd(qp->ibqp.pd);

	if (!sends_datagrams(qp))
		return;
	mutex_lock(&pd->lock);
	list_add(&qp->ud_node, &pd->ud_qps);
	mutex_unlock(&pd->lock);
}

static void leave_pd(struct rove_qp *qp)
{
	struct rove_pd *pd = to_rpd(qp->ibqp.pd);

	if (!sends_datagrams(qp))
		return;
	mutex_lock(&pd->lock);
	list_del(&qp->ud_node);
	mutex_unlock(&pd->lock);
	run_rest(qp, ROVE_TQP_RTS);
}

static void send_events(struct work_struct *work)
{
	static const enum ib_event_type types[ROVE_EVENT_MAX] = {
		[ROVE_EVENT_QP_FATAL] = IB_EVENT_QP_FATAL,
		[ROVE_EVENT_QP_REQ_ERR] = IB_EVENT_QP_REQ_ERR,
		[ROVE_EVENT_QP_ACCESS_ERR] = IB_EVENT_QP_ACCESS_ERR,
		[ROVE_EVENT_COMM_EST] = IB_EVENT_COMM_EST,
		[ROVE_EVENT_SQ_DRAINED] = IB_EVENT_SQ_DRAINED,
		[ROVE_EVENT_LAST_WQE] = IB_EVENT_QP_LAST_WQE_REACHED,
	};
	struct rove_qp *qp = container_of(work, struct rove_qp, event_work);
	int i;

	for (i = 0; i < ROVE_EVENT_MAX; i++) {
		struct ib_event ev = {
			.device = qp->ibqp.device,
			.element.qp = &qp->ibqp,
			.event = types[i],
		};

		if (test_and_clear_bit(i, &qp->events) && qp->ibqp.event_handler)
			qp->ibqp.event_handler(&ev, qp->ibqp.qp_context);
	}
}

DEFINE_PER_CPU(struct rove_cpu, rove_cpu) = {
	.lock = INIT_LOCAL_LOCK(lock),
};

#define NOTIFY	(BIT(ROVE_QP_NOTIFY_SEND_CQ) | BIT(ROVE_QP_NOTIFY_RECV_CQ))

void rove_qp_unlock(struct rove_qp *qp)
{
	bool may_notify = qp->no_caller || in_serving_softirq();
	unsigned long deferred;
	int i;

	qp->no_caller = false;
	rove_env_flush_cqes(qp);
	if (unlikely(__test_and_clear_bit(ROVE_QP_CQ_OVERRUN, &qp->deferred)) &&
	    qp->t.state >= ROVE_TQP_INIT && qp->t.state != ROVE_TQP_ERR) {
		__set_bit(ROVE_QP_EVENT + ROVE_EVENT_QP_FATAL, &qp->deferred);
		rove_tqp_error(&qp->t);
		rove_env_flush_cqes(qp);
	}
	/* Who invalidates a region waits for those who hold it. */
	rove_data_release(qp);
	rove_net_flush(qp);
	deferred = qp->deferred;
	qp->deferred = 0;
	if (deferred & NOTIFY && !qp->user && !may_notify) {
		/*
		 * Never call a kernel consumer's handler from within its own
		 * call: defer.c tells it.
		 */
		qp->deferred = deferred & NOTIFY;
		deferred &= ~NOTIFY;
		rove_defer(qp);
	}
	if (unlikely(deferred >> ROVE_QP_EVENT) && !qp->dead) {
		for (i = 0; i < ROVE_EVENT_MAX; i++)
			if (deferred & BIT(ROVE_QP_EVENT + i))
				set_bit(i, &qp->events);
		schedule_work(&qp->event_work);
	}
	__acquire(&qp->lock);
	local_unlock_nested_bh(&rove_cpu.lock);
	spin_unlock_bh(&qp->lock);
	if (test_bit(ROVE_QP_NOTIFY_SEND_CQ, &deferred))
		rove_cq_notify(to_rcq(qp->ibqp.send_cq));
	if (test_bit(ROVE_QP_NOTIFY_RECV_CQ, &deferred))
		rove_cq_notify(to_rcq(qp->ibqp.recv_cq));
}

/* So long is a moment. */
#define NO_MEMORY_NS	NSEC_PER_MSEC

void rove_qp_want_memory(struct rove_qp *qp)
{
	qp->no_memory = true;
	if (!qp->dead)
		hrtimer_start(&qp->timer, ns_to_ktime(NO_MEMORY_NS),
			      HRTIMER_MODE_REL_SOFT);
}

void rove_qp_timer_due(struct rove_qp *qp, u64 now)
{
	qp->timer_due = false;
	if (qp->dead)
		return;
	/* What it sends may be the beginning: the rest comes from there. */
	rove_at_home(qp);
	rove_tqp_timer(&qp->t, now);
	if (qp->no_memory) {
		qp->no_memory = false;
		rove_defer(qp);
	}
	rove_doorbell_settle(qp);
}

static enum hrtimer_restart transport_timer(struct hrtimer *timer)
{
	struct rove_qp *qp = container_of(timer, struct rove_qp, timer);
	u64 now = ktime_get_ns();

	rove_qp_lock(qp);
	qp->timer_due = rove_timers_late(now) && !qp->dead;
	if (qp->timer_due)
		rove_defer(qp);
	else
		rove_qp_timer_due(qp, now);
	rove_qp_unlock(qp);
	return HRTIMER_NORESTART;
}

/* The transport service of a type of QP; -1: there is none. */
static int service_of(enum ib_qp_type type)
{
	switch (type) {
	case IB_QPT_RC:
		return ROVE_SVC_RC;
	case IB_QPT_UC:
		return ROVE_SVC_UC;
	case IB_QPT_XRC_INI:
	case IB_QPT_XRC_TGT:
		return ROVE_SVC_XRC;
	case IB_QPT_UD:
	case IB_QPT_GSI:
		return ROVE_SVC_UD;
	default:
		return -1;
	}
}

static int check_init(struct ib_device *ibdev,
		      const struct ib_qp_init_attr *init, bool user)
{
	u32 flags = init->qp_type == IB_QPT_UD ?
		    IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK : 0;
	const struct ib_qp_cap *cap = &init->cap;

	if (service_of(init->qp_type) < 0 ||
	    (user && init->qp_type == IB_QPT_GSI)) {
		rove_refuse(ibdev, "create_qp: type %d: there are RC, UC, UD and XRC QPs",
			    init->qp_type);
		return -EOPNOTSUPP;
	}
	if (init->create_flags & ~flags) {
		rove_refuse(ibdev, "create_qp: create_flags %#x, at most %#x for this type",
			    init->create_flags, flags);
		return -EOPNOTSUPP;
	}
	/* A target gets all from its domain; ib_core gives no program's data for it. */
	if (init->qp_type == IB_QPT_XRC_TGT)
		return init->xrcd ? 0 : -EINVAL;
	/* A kernel consumer has no way to name an SRQ. */
	if (init->qp_type == IB_QPT_XRC_INI && !user)
		return -EOPNOTSUPP;
	if (!init->send_cq || (!init->recv_cq && init->qp_type != IB_QPT_XRC_INI)) {
		rove_refuse(ibdev, "create_qp: a send CQ and a receive CQ are needed");
		return -EINVAL;
	}
	if (init->srq && init->srq->srq_type != IB_SRQT_BASIC) {
		rove_refuse(ibdev, "create_qp: srq: a work request names an XRC SRQ, not a QP");
		return -EINVAL;
	}
	if (rove_exceeds(ibdev, "create_qp: max_send_wr", cap->max_send_wr,
			 ROVE_MAX_QP_WR) ||
	    rove_exceeds(ibdev, "create_qp: max_send_sge", cap->max_send_sge,
			 ROVE_MAX_SGE) ||
	    rove_exceeds(ibdev, "create_qp: max_inline_data", cap->max_inline_data,
			 ROVE_MAX_INLINE))
		return -EINVAL;
	/* With an SRQ they may be anything. */
	if (!init->srq &&
	    (rove_exceeds(ibdev, "create_qp: max_recv_wr", cap->max_recv_wr,
			  ROVE_MAX_QP_WR) ||
	     rove_exceeds(ibdev, "create_qp: max_recv_sge", cap->max_recv_sge,
			  ROVE_MAX_SGE)))
		return -EINVAL;
	return 0;
}

static int alloc_queues(struct rove_qp *qp, struct ib_ucontext *uctx,
			struct ib_qp_cap *cap, struct rove_create_qp_resp *resp)
{
	struct rove_tqp *t = &qp->t;
	u32 room;
	int ret;

	/* It sends nothing; what a program asks for it nobody has checked. */
	if (t->target)
		*cap = (struct ib_qp_cap) {};
	if (cap->max_send_wr) {
		/* An ATOMIC WRITE brings its bytes along, asked for or not. */
		room = max3((u32)(cap->max_send_sge * sizeof(struct rove_sge)),
			    (u32)ALIGN(cap->max_inline_data, 16), 16U);
		ret = rove_ring_alloc(&qp->sq, uctx, cap->max_send_wr,
				      sizeof(struct rove_send_wqe) + room,
				      uctx ? &resp->sq : NULL);
		if (ret)
			return ret;
		/* A datagram is done with before the next one. */
		t->req.depth = t->service == ROVE_SVC_UD ? 1 : qp->sq.depth;
		t->req.stride = ALIGN(sizeof(struct rove_swqe) + room, 64);
		t->req.ring = kvzalloc_node(array_size(t->req.depth,
						       t->req.stride),
					    ROVE_GFP_OBJECT, NUMA_NO_NODE);
		if (!t->req.ring)
			return -ENOMEM;
		cap->max_send_wr = qp->sq.depth;
		cap->max_inline_data = room;
		if (cap->max_inline_data > ROVE_MAX_INLINE)
			cap->max_inline_data = ROVE_MAX_INLINE;
	}
	if (t->srq || t->service == ROVE_SVC_XRC) {
		cap->max_recv_wr = 0;
		cap->max_recv_sge = qp->srq ? qp->srq->max_sge :
				    t->target ? ROVE_MAX_SGE : 0;
	}
	if (cap->max_recv_wr) {
		ret = rove_ring_alloc(&qp->rq, uctx, cap->max_recv_wr,
				      sizeof(struct rove_recv_wqe) +
				      cap->max_recv_sge * sizeof(struct rove_sge),
				      uctx ? &resp->rq : NULL);
		if (ret)
			return ret;
		cap->max_recv_wr = qp->rq.depth;
	}
	if (cap->max_recv_wr || t->srq) {
		t->resp.rwqe.sge = kcalloc(max(cap->max_recv_sge, 1U),
					   sizeof(struct rove_sge),
					   ROVE_GFP_OBJECT);
		if (!t->resp.rwqe.sge)
			return -ENOMEM;
	}
	t->max_sge_send = cap->max_send_sge;
	t->max_sge_recv = cap->max_recv_sge;
	t->max_inline = cap->max_inline_data;
	qp->cap = *cap;
	return 0;
}

/* Whatever is there of a QP that nobody can see (any more). */
static void free_queues(struct rove_qp *qp)
{
	struct rove_tqp *t = &qp->t;
	struct rove_ring sq, rq;

	spin_lock_bh(&qp->lock);
	sq = rove_ring_detach(&qp->sq);
	rq = rove_ring_detach(&qp->rq);
	spin_unlock_bh(&qp->lock);
	rove_ring_free(&sq);
	rove_ring_free(&rq);
	kvfree(t->req.ring);
	kfree(t->resp.rwqe.sge);
	kfree(t->resp.res);
	kfree(t->resp.replies);
	if (qp->flow)
		rove_flow_release(qp->flow);
	rove_net_forget_route(qp);
	rove_av_clear(&qp->av);
}

/*
 * Nobody can find the QP any more.  Waits for who has found it by its number, or by a
 * packet whose destructor might take a reference: none may be taken after that.
 */
static void wait_unused(struct rove_qp *qp)
{
	rove_flow_release(qp->flow);
	qp->flow = NULL;
	rove_qp_put(qp);
	wait_for_completion(&qp->released);
	rove_net_backlog_purge(qp);
}

static void reset(struct rove_qp *qp)
{
	rove_xrc_let_go(qp);
	rove_tqp_reset(&qp->t);
	if (qp->sq.depth) {
		qp->sq.cons = 0;
		WRITE_ONCE(qp->sq.hdr->prod, 0);
		WRITE_ONCE(qp->sq.hdr->cons, 0);
	}
	if (qp->rq.depth) {
		qp->rq.cons = 0;
		WRITE_ONCE(qp->rq.hdr->prod, 0);
		WRITE_ONCE(qp->rq.hdr->cons, 0);
	}
	rove_doorbell_reset(qp);
}

/* What a program asks for beyond what ib_core knows; it may be nothing. */
static int get_request(struct rove_dev *rdev, const struct ib_qp_init_attr *init,
		       struct ib_udata *udata, struct rove_create_qp_req *req)
{
	u32 known = init->qp_type == IB_QPT_UD ? ROVE_QP_NO_OWN_MULTICAST : 0;
	int ret;

	ret = rove_get_request(udata, req, sizeof(*req));
	if (ret)
		return ret;
	if (req->flags & ~known || req->rsvd) {
		rove_refuse(&rdev->ibdev,
			    "create_qp: the provider asks for flags %#x, at most %#x for this type",
			    req->flags, known);
		return -EOPNOTSUPP;
	}
	return 0;
}

int rove_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init,
		   struct ib_udata *udata)
{
	struct rove_dev *rdev = to_rdev(ibqp->device);
	struct rove_create_qp_resp resp = {};
	struct rove_create_qp_req req = {};
	struct rove_qp *qp = to_rqp(ibqp);
	struct ib_ucontext *uctx = NULL;
	static atomic64_t serial;
	int ret;

	ret = check_init(ibqp->device, init, udata);
	if (ret)
		return ret;
	if (udata) {
		if (udata->outlen < sizeof(resp))
			return -EINVAL;
		uctx = &rdma_udata_to_drv_context(udata, struct rove_ucontext,
						  ibuc)->ibuc;
		ret = get_request(rdev, init, udata, &req);
		if (ret)
			return ret;
	}
	ret = rove_dev_charge(rdev, &rdev->num_qp, ROVE_MAX_QP, "QPs");
	if (ret)
		return ret;

	qp->rdev = rdev;
	qp->serial = atomic64_inc_return(&serial);
	qp->stats = rdev->stats;
	qp->user = udata;
	qp->unacked_at = jiffies - HZ;
	spin_lock_init(&qp->lock);
	spin_lock_init(&qp->sq_post_lock);
	spin_lock_init(&qp->rq_post_lock);
	skb_queue_head_init(&qp->backlog);
	__skb_queue_head_init(&qp->tx);
	refcount_set(&qp->refs, 1);
	init_completion(&qp->released);
	INIT_WORK(&qp->event_work, send_events);
	rove_hrtimer_setup(&qp->timer, transport_timer, CLOCK_MONOTONIC,
			   HRTIMER_MODE_ABS_SOFT);
	rove_pace_init(qp);
	rove_doorbell_init(qp);
	qp->t.service = service_of(init->qp_type);
	qp->t.target = init->qp_type == IB_QPT_XRC_TGT;
	/* A target takes from those that requests name, whatever is named here. */
	qp->srq = init->srq && !qp->t.target ? to_rsrq(init->srq) : NULL;
	qp->t.srq = qp->srq || qp->t.target;
	INIT_LIST_HEAD(&qp->srq_holder);
	qp->xrcd = init->xrcd;
	qp->pd = ibqp->pd;
	qp->t.sq_sig_all = init->sq_sig_type == IB_SIGNAL_ALL_WR;
	qp->no_own_multicast = req.flags & ROVE_QP_NO_OWN_MULTICAST ||
			       init->create_flags &
			       IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK;
	qp->attr.path_mtu = IB_MTU_256;
	qp->ip_id = get_random_u32();

	qp->flow = rove_flow_create(qp);
	ret = qp->flow ? alloc_queues(qp, uctx, &init->cap, &resp) : -ENOMEM;
	if (ret)
		goto err_free;
	reset(qp);
	if (udata) {
		ret = ib_copy_to_udata(udata, &resp, sizeof(resp));
		if (ret)
			goto err_free;
	}
	/* Last, for once it is visible others may hold it. */
	ret = publish(qp);
	if (!ret) {
		join_pd(qp);
		return 0;
	}

	/* A packet may have found it all the same. */
	wait_unused(qp);

err_free:
	free_queues(qp);
	rove_dev_uncharge(&rdev->num_qp);
	return ret;
}

int rove_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct rove_qp *qp = to_rqp(ibqp);
	struct rove_misses *misses;

	leave_pd(qp);
	rove_qp_lock(qp);
	rove_tqp_answer(&qp->t);
	qp->dead = true;
	qp->t.state = ROVE_TQP_RESET;
	rove_xrc_let_go(qp);
	misses = rove_odp_forget(qp);
	rove_qp_unlock(qp);
	rove_odp_cancel(misses);
	/* Its completions go before its number: who polls looks for that. */
	if (!qp->user && ibqp->send_cq) {
		rove_cq_forget(to_rcq(ibqp->send_cq), qp->t.qpn);
		if (ibqp->recv_cq != ibqp->send_cq)
			rove_cq_forget(to_rcq(ibqp->recv_cq), qp->t.qpn);
	}
	withdraw(qp);
	hrtimer_cancel(&qp->timer);
	rove_pace_stop(qp);
	rove_doorbell_stop(qp);
	cancel_work_sync(&qp->event_work);
	wait_unused(qp);
	free_queues(qp);
	rove_dev_uncharge(&qp->rdev->num_qp);
	return 0;
}

void rove_qp_flush_all(struct rove_dev *rdev)
{
	struct rove_qp *qp;
	LIST_HEAD(done);

	spin_lock_bh(&rdev->qp_lock);
	rdev->dying = true;
	while (!list_empty(&rdev->qp_list)) {
		qp = list_first_entry(&rdev->qp_list, struct rove_qp, list);
		/* Listed, so not yet waited for: the reference is good. */
		rove_qp_get(qp);
		list_move_tail(&qp->list, &done);
		spin_unlock_bh(&rdev->qp_lock);
		rove_qp_lock(qp);
		/*
		 * The GSI is to tell the peers that their connections end; ib_mad
		 * destroys it.
		 */
		if (qp->t.state != ROVE_TQP_RESET && qp->t.qpn != GSI_QPN)
			rove_tqp_error(&qp->t);
		rove_qp_unlock(qp);
		/* It may be destroyed next. */
		run_rest(qp, ROVE_TQP_ERR);
		rove_qp_put(qp);
		spin_lock_bh(&rdev->qp_lock);
	}
	list_splice(&done, &rdev->qp_list);
	spin_unlock_bh(&rdev->qp_lock);
}

/* Values, that is; ib_modify_qp_is_ok() has looked at which there are. */
static int check_attr(struct rove_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	struct ib_device *ibdev = qp->ibqp.device;
	struct rove_dev *rdev = qp->rdev;
	enum ib_mtu fits = rove_dev_mtu(rdev);
	/* Not all rights mean something to a QP, but programs give it those of their regions. */
	int unknown = attr->qp_access_flags & ~(ROVE_MR_ACCESS | IB_ACCESS_ON_DEMAND);

#define CHECK(bit, field, most)						\
	(mask & (bit) &&						\
	 rove_exceeds(ibdev, "modify_qp: " #field, attr->field, most))
	if (CHECK(IB_QP_PKEY_INDEX, pkey_index, 0) ||
	    CHECK(IB_QP_TIMEOUT, timeout, 31) ||
	    CHECK(IB_QP_RETRY_CNT, retry_cnt, 7) ||
	    CHECK(IB_QP_RNR_RETRY, rnr_retry, 7) ||
	    CHECK(IB_QP_MIN_RNR_TIMER, min_rnr_timer, 31) ||
	    CHECK(IB_QP_MAX_QP_RD_ATOMIC, max_rd_atomic, ROVE_MAX_RD_ATOMIC) ||
	    CHECK(IB_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic,
		  ROVE_MAX_RD_ATOMIC) ||
	    CHECK(IB_QP_DEST_QPN, dest_qp_num, ROVE_PSN_MASK))
		return -EINVAL;
#undef CHECK
	if (mask & IB_QP_ACCESS_FLAGS && unknown) {
		rove_refuse(ibdev, "modify_qp: qp_access_flags %#x, %#x is not known",
			    attr->qp_access_flags, unknown);
		return -EOPNOTSUPP;
	}
	if (mask & IB_QP_PORT && attr->port_num != 1) {
		rove_refuse(ibdev, "modify_qp: port_num %u, there is port 1",
			    attr->port_num);
		return -EINVAL;
	}
	if (mask & IB_QP_PATH_MTU && (attr->path_mtu < IB_MTU_256 ||
				      attr->path_mtu > fits)) {
		rove_refuse(ibdev,
			    "modify_qp: path_mtu %d does not fit %s's MTU of %u, which allows 256 to %d",
			    ib_mtu_enum_to_int(attr->path_mtu),
			    netdev_name(rdev->ndev), rdev->ndev->mtu,
			    ib_mtu_enum_to_int(fits));
		return -EINVAL;
	}
	return 0;
}

/* Memory for max_dest_rd_atomic responder resources. */
struct resources {
	struct rove_resource *res;
	struct rove_reply *replies;
};

static int alloc_resources(struct resources *r, u32 n)
{
	r->res = kcalloc(n, sizeof(*r->res), ROVE_GFP_OBJECT);
	r->replies = kcalloc(n, sizeof(*r->replies), ROVE_GFP_OBJECT);
	if (r->res && r->replies)
		return 0;
	kfree(r->res);
	kfree(r->replies);
	*r = (struct resources) {};
	return -ENOMEM;
}

/* Take the attributes over that are not about state.  QP locked. */
static void set_attr(struct rove_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	struct ib_qp_attr *a = &qp->attr;
	struct rove_tqp *t = &qp->t;

#define TAKE(bit, field) do { if (mask & (bit)) a->field = attr->field; } while (0)
	TAKE(IB_QP_ACCESS_FLAGS, qp_access_flags);
	TAKE(IB_QP_PKEY_INDEX, pkey_index);
	TAKE(IB_QP_PORT, port_num);
	TAKE(IB_QP_PATH_MTU, path_mtu);
	TAKE(IB_QP_TIMEOUT, timeout);
	TAKE(IB_QP_RETRY_CNT, retry_cnt);
	TAKE(IB_QP_RNR_RETRY, rnr_retry);
	TAKE(IB_QP_RQ_PSN, rq_psn);
	TAKE(IB_QP_SQ_PSN, sq_psn);
	TAKE(IB_QP_MAX_QP_RD_ATOMIC, max_rd_atomic);
	TAKE(IB_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
	TAKE(IB_QP_MIN_RNR_TIMER, min_rnr_timer);
	TAKE(IB_QP_DEST_QPN, dest_qp_num);
	TAKE(IB_QP_QKEY, qkey);
#undef TAKE
	t->access = a->qp_access_flags;
	t->mtu = ib_mtu_enum_to_int(a->path_mtu);
	/* In use from RTS on, and the path MTU is given before. */
	t->req.window = clamp(WINDOW_BYTES / t->mtu, WINDOW_MIN, WINDOW_MAX);
	t->timeout = a->timeout;
	t->retry_cnt = a->retry_cnt;
	t->rnr_retry = a->rnr_retry;
	t->max_rd_atomic = a->max_rd_atomic;
	t->min_rnr_timer = a->min_rnr_timer;
	t->dest_qpn = a->dest_qp_num;
	t->qkey = a->qkey;
	if (mask & (IB_QP_AV | IB_QP_DEST_QPN)) {
		rove_net_forget_route(qp);
		qp->sport = htons(rdma_get_udp_sport(qp->av.flow_label,
						     t->qpn, t->dest_qpn));
	}
}

/* QP locked. */
static void change_state(struct rove_qp *qp, enum ib_qp_state to, bool notify)
{
	struct rove_tqp *t = &qp->t;
	enum rove_tqp_state from = t->state;

	switch (to) {
	case IB_QPS_RESET:
		rove_tqp_answer(t);
		reset(qp);
		qp->attr = (struct ib_qp_attr) { .path_mtu = IB_MTU_256 };
		rove_pace_set(qp, 0);
		break;
	case IB_QPS_INIT:
		t->state = ROVE_TQP_INIT;
		break;
	case IB_QPS_RTR:
		rove_tqp_start_responder(t, qp->attr.rq_psn);
		break;
	case IB_QPS_RTS:
		if (from == ROVE_TQP_RTR)
			rove_tqp_start_requester(t, qp->attr.sq_psn);
		else if (from == ROVE_TQP_SQD || from == ROVE_TQP_SQE)
			rove_tqp_resume(t, ktime_get_ns());
		rove_doorbell_run(qp);
		break;
	case IB_QPS_SQD:
		if (from != ROVE_TQP_RTS)
			break;
		/* Whether to tell is a parameter of this transition alone. */
		qp->attr.en_sqd_async_notify = notify;
		rove_tqp_drain(t);
		break;
	default:
		rove_tqp_answer(t);
		rove_tqp_error(t);
		return;		/* which has told */
	}
	trace_rove_state(qp);
}

int rove_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		   struct ib_udata *udata)
{
	struct rove_qp *qp = to_rqp(ibqp);
	struct resources r = {};
	struct rove_av av = {};
	enum ib_qp_state from, to;
	struct rove_misses *misses = NULL;
	bool rate_limit;
	int ret;

	ret = rove_no_request(udata);
	if (ret)
		return ret;

	/* ib_core's table knows it for raw packet QPs only. */
	rate_limit = mask & IB_QP_RATE_LIMIT;
	mask &= ~IB_QP_RATE_LIMIT;

	/* There is one path, and migration has always happened. */
	if (mask & ~IB_QP_ATTR_STANDARD_BITS || mask & IB_QP_ALT_PATH ||
	    (mask & IB_QP_PATH_MIG_STATE &&
	     attr->path_mig_state != IB_MIG_MIGRATED)) {
		rove_refuse(ibqp->device,
			    "modify_qp: attributes %#x: there is no alternate path, nor anything beyond %#x",
			    mask, IB_QP_ATTR_STANDARD_BITS);
		return -EOPNOTSUPP;
	}
	ret = check_attr(qp, attr, mask);
	if (ret)
		return ret;
	if (mask & IB_QP_AV) {
		ret = rove_av_set(qp->rdev, &av, &attr->ah_attr);
		if (ret)
			return ret;
	}
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC) {
		ret = alloc_resources(&r, attr->max_dest_rd_atomic);
		if (ret)
			goto out;
	}

	/* What was posted before is flushed, not sent (10.3.1.7). */
	if (mask & IB_QP_STATE && attr->qp_state == IB_QPS_RTS)
		run_rest(qp, ROVE_TQP_SQE);
	rove_qp_lock(qp);
	from = (enum ib_qp_state)qp->t.state;
	to = mask & IB_QP_STATE ? attr->qp_state : from;
	/* uverbs adds it to an address vector; ib_core's table lacks it for UC. */
	if (ibqp->qp_type == IB_QPT_UC && from == IB_QPS_SQD && mask & IB_QP_AV)
		mask &= ~IB_QP_PORT;
	ret = -EINVAL;
	if (mask & IB_QP_CUR_STATE && attr->cur_qp_state != from) {
		rove_refuse(ibqp->device, "modify_qp: cur_qp_state %s, but the QP is in %s",
			    rove_state_name(attr->cur_qp_state),
			    rove_state_name(from));
		goto unlock;
	}
	if (!ib_modify_qp_is_ok(from, to, ibqp->qp_type, mask)) {
		rove_refuse_transition(qp, from, to, mask);
		goto unlock;
	}
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC) {
		/* What was executed may be asked for again. */
		if (qp->t.resp.res_count) {
			rove_refuse(ibqp->device,
				    "modify_qp: max_dest_rd_atomic cannot change after READs and atomics were executed");
			ret = -EBUSY;
			goto unlock;
		}
		swap(qp->t.resp.res, r.res);
		swap(qp->t.resp.replies, r.replies);
		rove_tqp_max_res(&qp->t, attr->max_dest_rd_atomic);
	}
	if (mask & IB_QP_AV)
		swap(qp->av, av);
	set_attr(qp, attr, mask);
	if (mask & IB_QP_TIMEOUT && from == IB_QPS_SQD)
		rove_tqp_retime(&qp->t, ktime_get_ns());
	if (rate_limit) {
		qp->attr.rate_limit = attr->rate_limit;
		rove_pace_set(qp, attr->rate_limit);
	}
	if (mask & IB_QP_STATE)
		change_state(qp, to, attr->en_sqd_async_notify &&
			     mask & IB_QP_EN_SQD_ASYNC_NOTIFY);
	/* After its last answers, which may want pages, too. */
	if (mask & IB_QP_STATE && to == IB_QPS_RESET)
		misses = rove_odp_forget(qp);
	ret = 0;
unlock:
	rove_qp_unlock(qp);
out:
	rove_odp_cancel(misses);
	kfree(r.res);
	kfree(r.replies);
	rove_av_clear(&av);
	return ret;
}

int rove_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		  struct ib_qp_init_attr *init)
{
	struct rove_qp *qp = to_rqp(ibqp);

	rove_qp_lock(qp);
	*attr = qp->attr;
	attr->qp_state = (enum ib_qp_state)qp->t.state;
	attr->cur_qp_state = attr->qp_state;
	attr->cap = qp->cap;
	attr->rq_psn = qp->t.resp.epsn;
	attr->sq_psn = qp->t.req.psn_next;
	attr->path_mig_state = IB_MIG_MIGRATED;
	attr->sq_draining = qp->t.state == ROVE_TQP_SQD && !qp->t.req.drained;
	attr->ah_attr = qp->av.attr;
	attr->ah_attr.grh.sgid_attr = NULL;	/* no reference for the caller */
	rove_qp_unlock(qp);

	init->event_handler = ibqp->event_handler;
	init->qp_context = ibqp->qp_context;
	init->send_cq = ibqp->send_cq;
	init->recv_cq = ibqp->recv_cq;
	init->srq = ibqp->srq;
	init->cap = attr->cap;
	init->sq_sig_type = qp->t.sq_sig_all ? IB_SIGNAL_ALL_WR :
					       IB_SIGNAL_REQ_WR;
	init->qp_type = ibqp->qp_type;
	init->create_flags = qp->no_own_multicast ?
			     IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK : 0;
	return 0;
}
