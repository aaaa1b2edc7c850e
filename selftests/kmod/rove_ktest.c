// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * rove_ktest.c - a kernel consumer that tests verbs between two links
 *
 *	insmod rove_ktest.ko dev_a=rovea dev_b=roveb [resident=1 | faults=1]
 *
 * Runs when loaded and says in TAP, in the kernel log, what it found.  Knows
 * nothing of rove: any device whose ports have RoCE v2 GIDs will do.
 *
 * With resident=1 it then stays connected, with work that cannot complete, until
 * the devices go away: whoever removes a link under it must not have to wait.
 *
 * With faults=1 each allocation that making and connecting its objects takes fails
 * once, and nothing else is tested (CONFIG_FAULT_INJECTION; failnth.sh sets it up).
 *
 * One thread does everything but completions (struct op, struct end.log_lock)
 * and the posts that are to come from interrupts.
 */
#include <linux/delay.h>
#include <linux/interrupt.h>
#include <linux/irq_work.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <net/ipv6.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_verbs.h>
#include <rdma/rw.h>

#undef pr_fmt
#define pr_fmt(fmt) "rove_ktest: " fmt

static char *dev_a = "rovea";
module_param(dev_a, charp, 0444);
MODULE_PARM_DESC(dev_a, "RDMA device of one end");
static char *dev_b = "roveb";
module_param(dev_b, charp, 0444);
MODULE_PARM_DESC(dev_b, "RDMA device of the other end");
static bool resident;
module_param(resident, bool, 0444);
MODULE_PARM_DESC(resident, "Stay connected when the tests are done");
static bool faults;
module_param(faults, bool, 0444);
MODULE_PARM_DESC(faults, "Only let allocations fail, one after another");
static int wait_secs = 60;
module_param(wait_secs, int, 0444);
MODULE_PARM_DESC(wait_secs, "How long to wait for a completion");

#define BUF_SIZE	(512 * 1024)
#define DEPTH		128
#define MAX_SGE		4
#define MAX_INLINE	256
#define GUARD		0x5a

struct end;

/**
 * struct op - a work request and what became of it
 * @cqe: how the completion finds it
 * @e: whose it is
 * @seq: how many of this end's sends, or receives, completed before; -1: none yet
 * @wc: its completion
 */
struct op {
	struct ib_cqe cqe;
	struct end *e;
	int seq;
	struct ib_wc wc;
};

/**
 * struct end - one side of a connection
 * @dev: its device
 * @pd: allocated with a global rkey
 * @mr: all memory, every right (atomics are not in the global rkey's)
 * @idle: for fast registration, never registered, or NULL
 * @cq: of both queues
 * @srq: what it receives from, or NULL
 * @qp: the queue pair
 * @gid: source GID
 * @gid_index: its index
 * @src: what is sent from
 * @dst: what is received to
 * @log_lock: guards @sends, @recvs and the ops' results
 * @sends: completed so far
 * @recvs: completed so far
 * @events: mask of QP events seen; atomic bit operations
 * @send: work requests of the send queue
 * @recv: of the receive queue
 */
struct end {
	struct ib_device *dev;
	struct ib_pd *pd;
	struct ib_mr *mr;
	struct ib_mr *idle;
	struct ib_cq *cq;
	struct ib_srq *srq;
	struct ib_qp *qp;
	union ib_gid gid;
	int gid_index;
	u8 *src;
	u8 *dst;
	spinlock_t log_lock;	/* see above */
	int sends;
	int recvs;
	unsigned long events;
	struct op send[DEPTH * 2];
	struct op recv[DEPTH * 2];
};

static struct end *a, *b;
static bool use_srq;		/* both ends receive from SRQs */
static enum ib_poll_context poll_ctx;
static int tests, failures;
static DEFINE_MUTEX(pair_lock);		/* a, b against a device's removal */

static const char *const ctx_name[] = {
	[IB_POLL_DIRECT] = "direct",
	[IB_POLL_SOFTIRQ] = "softirq",
	[IB_POLL_WORKQUEUE] = "workqueue",
};

static void point(bool good, const char *what)
{
	failures += !good;
	pr_info("%sok %d - %s: %s\n", good ? "" : "not ", ++tests,
		ctx_name[poll_ctx], what);
}

/* --- completions --------------------------------------------------------- */

static void log_op(struct op *op, struct ib_wc *wc, int *count)
{
	unsigned long flags;

	spin_lock_irqsave(&op->e->log_lock, flags);
	if (op->seq >= 0)
		pr_info("# a second completion of one work request\n");
	op->seq = *count;
	op->wc = *wc;
	/* Pairs with done_by(): who sees the count sees the rest. */
	smp_store_release(count, *count + 1);
	spin_unlock_irqrestore(&op->e->log_lock, flags);
}

static void send_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct op *op = container_of(wc->wr_cqe, struct op, cqe);

	log_op(op, wc, &op->e->sends);
}

static void recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct op *op = container_of(wc->wr_cqe, struct op, cqe);

	log_op(op, wc, &op->e->recvs);
}

static void qp_event(struct ib_event *ev, void *ctx)
{
	struct end *e = ctx;

	set_bit(ev->event, &e->events);
}

static void poll_direct(struct end *e)
{
	if (e && e->cq && poll_ctx == IB_POLL_DIRECT)
		ib_process_cq_direct(e->cq, -1);
}

static bool done_by(const int *count, int want, int secs)
{
	unsigned long end = jiffies + secs * HZ;

	/* Pairs with log_op(). */
	while (smp_load_acquire(count) < want) {
		if (time_after(jiffies, end))
			return false;
		poll_direct(a);
		poll_direct(b);
		usleep_range(50, 100);
	}
	return true;
}

static bool wait_done(const int *count, int want)
{
	if (done_by(count, want, wait_secs))
		return true;
	pr_info("# %d completions, %d expected\n", *count, want);
	return false;
}

static bool wait_event_bit(struct end *e, enum ib_event_type type)
{
	unsigned long end = jiffies + wait_secs * HZ;

	while (!test_bit(type, &e->events)) {
		if (time_after(jiffies, end)) {
			pr_info("# no event %d\n", type);
			return false;
		}
		usleep_range(100, 200);
	}
	return true;
}

/* --- a connection ----------------------------------------------------------- */

static int find_gid(struct end *e, bool ipv6)
{
	const struct ib_gid_attr *attr;
	int i;

	for (i = 0; i < 32; i++) {
		const struct in6_addr *addr;
		bool fits;

		attr = rdma_get_gid_attr(e->dev, 1, i);
		if (IS_ERR(attr))
			continue;
		addr = (const struct in6_addr *)attr->gid.raw;
		fits = attr->gid_type == IB_GID_TYPE_ROCE_UDP_ENCAP &&
		       ipv6_addr_v4mapped(addr) == !ipv6 &&
		       !(ipv6_addr_type(addr) & IPV6_ADDR_LINKLOCAL);
		e->gid = attr->gid;
		e->gid_index = i;
		rdma_put_gid_attr(attr);
		if (fits)
			return 0;
	}
	pr_info("# %s has no such GID\n", dev_name(&e->dev->dev));
	return -ENOENT;
}

static void end_close(struct end *e)
{
	if (!e)
		return;
	if (e->qp)
		ib_destroy_qp(e->qp);
	if (e->srq)
		ib_destroy_srq(e->srq);
	if (e->cq)
		ib_free_cq(e->cq);
	if (!IS_ERR_OR_NULL(e->idle))
		ib_dereg_mr(e->idle);
	if (e->mr)
		e->dev->ops.dereg_mr(e->mr, NULL);
	if (e->pd)
		ib_dealloc_pd(e->pd);
	kfree(e->src);
	kfree(e->dst);
	kvfree(e);
}

static struct ib_srq *srq_open(struct end *e)
{
	struct ib_srq_init_attr init = {
		.event_handler = qp_event,
		.srq_context = e,
		.attr = { .max_wr = DEPTH, .max_sge = MAX_SGE },
		.srq_type = IB_SRQT_BASIC,
	};

	return ib_create_srq(e->pd, &init);
}

static struct end *end_open(struct ib_device *dev, bool ipv6)
{
	struct ib_qp_init_attr init = {
		.event_handler = qp_event,
		.cap = {
			.max_send_wr = DEPTH,
			.max_recv_wr = DEPTH,
			.max_send_sge = MAX_SGE,
			.max_recv_sge = MAX_SGE,
			.max_inline_data = MAX_INLINE,
		},
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
	};
	struct end *e = kvzalloc(sizeof(*e), GFP_KERNEL);
	int err = -ENOMEM;
	int i;

	if (!e)
		return ERR_PTR(-ENOMEM);
	spin_lock_init(&e->log_lock);
	e->dev = dev;
	e->src = kzalloc(BUF_SIZE, GFP_KERNEL);
	e->dst = kzalloc(BUF_SIZE, GFP_KERNEL);
	if (!e->src || !e->dst)
		goto err;
	for (i = 0; i < DEPTH * 2; i++) {
		e->send[i] = (struct op) { { send_done }, e, -1 };
		e->recv[i] = (struct op) { { recv_done }, e, -1 };
	}
	err = find_gid(e, ipv6);
	if (err)
		goto err;
	e->pd = ib_alloc_pd(dev, IB_PD_UNSAFE_GLOBAL_RKEY);
	if (IS_ERR(e->pd)) {
		err = PTR_ERR(e->pd);
		e->pd = NULL;
		goto err;
	}
	e->mr = dev->ops.get_dma_mr(e->pd, IB_ACCESS_LOCAL_WRITE |
				    IB_ACCESS_REMOTE_READ |
				    IB_ACCESS_REMOTE_WRITE |
				    IB_ACCESS_REMOTE_ATOMIC);
	if (IS_ERR(e->mr)) {
		err = PTR_ERR(e->mr);
		e->mr = NULL;
		goto err;
	}
	e->cq = ib_alloc_cq(dev, e, DEPTH * 2 + 2, 0, poll_ctx);
	if (IS_ERR(e->cq)) {
		err = PTR_ERR(e->cq);
		e->cq = NULL;
		goto err;
	}
	if (use_srq) {
		e->srq = srq_open(e);
		if (IS_ERR(e->srq)) {
			err = PTR_ERR(e->srq);
			e->srq = NULL;
			goto err;
		}
		init.srq = e->srq;
		init.cap.max_recv_wr = 0;
	}
	init.send_cq = e->cq;
	init.recv_cq = e->cq;
	init.qp_context = e;
	e->qp = ib_create_qp(e->pd, &init);
	if (IS_ERR(e->qp)) {
		err = PTR_ERR(e->qp);
		e->qp = NULL;
		goto err;
	}
	return e;
err:
	end_close(e);
	return ERR_PTR(err);
}

static int end_connect(struct end *e, const struct end *peer)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IB_ACCESS_REMOTE_READ |
				   IB_ACCESS_REMOTE_WRITE |
				   IB_ACCESS_REMOTE_ATOMIC,
	};
	int err;

	err = ib_modify_qp(e->qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX |
			   IB_QP_PORT | IB_QP_ACCESS_FLAGS);
	if (err)
		return err;
	attr = (struct ib_qp_attr) {
		.qp_state = IB_QPS_RTR,
		.path_mtu = IB_MTU_1024,
		.dest_qp_num = peer->qp->qp_num,
		.rq_psn = 0xffff00,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 1,
	};
	attr.ah_attr.type = RDMA_AH_ATTR_TYPE_ROCE;
	rdma_ah_set_grh(&attr.ah_attr, NULL, 0, e->gid_index, 64, 0);
	rdma_ah_set_dgid_raw(&attr.ah_attr, (void *)peer->gid.raw);
	rdma_ah_set_port_num(&attr.ah_attr, 1);
	err = ib_modify_qp(e->qp, &attr, IB_QP_STATE | IB_QP_AV |
			   IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN |
			   IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER);
	if (err)
		return err;
	attr = (struct ib_qp_attr) {
		.qp_state = IB_QPS_RTS,
		.timeout = 15,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.sq_psn = 0xffff00,
		.max_rd_atomic = 4,
	};
	return ib_modify_qp(e->qp, &attr, IB_QP_STATE | IB_QP_TIMEOUT |
			    IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_SQ_PSN |
			    IB_QP_MAX_QP_RD_ATOMIC);
}

static void pair_close(void)
{
	mutex_lock(&pair_lock);
	end_close(a);
	end_close(b);
	a = NULL;
	b = NULL;
	mutex_unlock(&pair_lock);
}

static int pair_try(struct ib_device *da, struct ib_device *db, bool ipv6)
{
	int err;

	mutex_lock(&pair_lock);
	a = end_open(da, ipv6);
	if (IS_ERR(a)) {
		err = PTR_ERR(a);
		a = NULL;
		goto err;
	}
	b = end_open(db, ipv6);
	if (IS_ERR(b)) {
		err = PTR_ERR(b);
		b = NULL;
		goto err;
	}
	err = end_connect(a, b) ?: end_connect(b, a);
	if (err)
		goto err;
	mutex_unlock(&pair_lock);
	return 0;
err:
	mutex_unlock(&pair_lock);
	pair_close();
	return err;
}

static bool pair_open(struct ib_device *da, struct ib_device *db, bool ipv6)
{
	int err = pair_try(da, db, ipv6);

	if (err)
		pr_info("# set-up failed: %d\n", err);
	return !err;
}

/* --- work requests ------------------------------------------------------------ */

static u64 dma(struct end *e, void *p)
{
	/* no IOMMU: these are virtual addresses, nothing to be unmapped */
	return ib_dma_map_single(e->dev, p, 1, DMA_BIDIRECTIONAL);
}

/* Cut @len bytes at @p into @n pieces, the second of them empty. */
static int cut(struct end *e, struct ib_sge *sge, int n, u8 *p, u32 len)
{
	u32 left = len;
	int i;

	for (i = 0; i < n; i++) {
		u32 piece = i == n - 1 ? left : i == 1 ? 0 : left / 3;

		sge[i] = (struct ib_sge) {
			.addr = dma(e, p + len - left),
			.length = piece,
			.lkey = e->pd->local_dma_lkey,
		};
		left -= piece;
	}
	return n;
}

static int post_recv(struct end *e, struct op *op, u8 *p, u32 len, int n)
{
	struct ib_sge sge[MAX_SGE];
	struct ib_recv_wr wr = {
		.wr_cqe = &op->cqe,
		.sg_list = sge,
		.num_sge = cut(e, sge, n, p, len),
	};

	op->seq = -1;
	return e->srq ? ib_post_srq_recv(e->srq, &wr, NULL) :
			ib_post_recv(e->qp, &wr, NULL);
}

static int post_send(struct end *e, struct op *op, enum ib_wr_opcode opcode,
		     u8 *p, u32 len, int n, int flags, void *remote)
{
	struct end *peer = e == a ? b : a;
	struct ib_sge sge[MAX_SGE];
	struct ib_rdma_wr wr = {
		.wr = {
			.wr_cqe = &op->cqe,
			.sg_list = sge,
			.num_sge = cut(e, sge, n, p, len),
			.opcode = opcode,
			.send_flags = flags | IB_SEND_SIGNALED,
			.ex.imm_data = cpu_to_be32(0xcafe0000 | len),
		},
		.remote_addr = remote ? dma(peer, remote) : 0,
		.rkey = peer->pd->unsafe_global_rkey,
	};

	op->seq = -1;
	return ib_post_send(e->qp, &wr.wr, NULL);
}

static u8 pattern(u32 i, u32 seed)
{
	return i * 7 + (i >> 8) * 13 + seed;
}

static void fill(u8 *p, u32 len, u32 seed)
{
	u32 i;

	for (i = 0; i < len; i++)
		p[i] = pattern(i, seed);
}

static bool check(const u8 *p, u32 len, u32 seed)
{
	u32 i;

	for (i = 0; i < len; i++) {
		if (p[i] == pattern(i, seed))
			continue;
		pr_info("# byte %u of %u is %#x, not %#x\n", i, len, p[i],
			pattern(i, seed));
		return false;
	}
	if (p[len] == GUARD)
		return true;
	pr_info("# byte %u, behind the end, was written\n", len);
	return false;
}

static bool is_wc(const struct op *op, enum ib_wc_status status,
		  enum ib_wc_opcode opcode, struct end *e)
{
	if (op->seq >= 0 && op->wc.status == status && op->wc.qp == e->qp &&
	    (status || op->wc.opcode == opcode))
		return true;
	pr_info("# completion %d: status %d (%d), opcode %d (%d)\n", op->seq,
		op->wc.status, status, op->wc.opcode, opcode);
	return false;
}

/* --- the tests --------------------------------------------------------------- */

static const u32 sizes[] = { 0, 1, 3, 1000, 1024, 1025, 4096, 70001, BUF_SIZE - 8 };
static u32 seed;

static bool send_one(struct end *e, u32 len, enum ib_wr_opcode opcode, int n,
		     int flags)
{
	struct end *peer = e == a ? b : a;
	bool write = opcode == IB_WR_RDMA_WRITE_WITH_IMM;
	struct op *s = &e->send[0], *r = &peer->recv[0];
	bool imm = write || opcode == IB_WR_SEND_WITH_IMM;
	int sends = e->sends, recvs = peer->recvs;

	fill(e->src, len, ++seed);
	memset(peer->dst, GUARD, BUF_SIZE);
	if (post_recv(peer, r, peer->dst, write ? 0 : len + 8, n) ||
	    post_send(e, s, opcode, e->src, len, n, flags,
		      write ? peer->dst : NULL))
		return false;
	/* with inline data the memory is the caller's again at once */
	if (flags & IB_SEND_INLINE)
		memset(e->src, 0, len);
	if (!wait_done(&peer->recvs, recvs + 1) || !wait_done(&e->sends, sends + 1))
		return false;
	if (!is_wc(s, IB_WC_SUCCESS, write ? IB_WC_RDMA_WRITE : IB_WC_SEND, e) ||
	    !is_wc(r, IB_WC_SUCCESS, write ? IB_WC_RECV_RDMA_WITH_IMM :
					     IB_WC_RECV, peer))
		return false;
	if (r->wc.byte_len != len || !!(r->wc.wc_flags & IB_WC_WITH_IMM) != imm ||
	    (imm && r->wc.ex.imm_data != cpu_to_be32(0xcafe0000 | len))) {
		pr_info("# %u bytes (%u), flags %#x, immediate %#x\n",
			r->wc.byte_len, len, r->wc.wc_flags,
			be32_to_cpu(r->wc.ex.imm_data));
		return false;
	}
	return check(peer->dst, len, seed);
}

static bool sends(enum ib_wr_opcode opcode, int n, int flags, u32 max)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(sizes) && sizes[i] <= max; i++) {
		if (!send_one(a, sizes[i], opcode, n, flags) ||
		    !send_one(b, sizes[i], opcode, n, flags)) {
			pr_info("# at %u bytes\n", sizes[i]);
			return false;
		}
	}
	return true;
}

static bool rdma_one(u32 len, enum ib_wr_opcode opcode)
{
	bool read = opcode == IB_WR_RDMA_READ;
	struct op *s = &a->send[0];
	int sends = a->sends;
	u8 *from = read ? b->src : a->src;
	u8 *to = read ? a->dst : b->dst;

	fill(from, len, ++seed);
	memset(to, GUARD, BUF_SIZE);
	if (post_send(a, s, opcode, read ? to : from, len, 3, 0,
		      read ? from : to) ||
	    !wait_done(&a->sends, sends + 1))
		return false;
	return is_wc(s, IB_WC_SUCCESS, read ? IB_WC_RDMA_READ : IB_WC_RDMA_WRITE,
		     a) && check(to, len, seed);
}

static bool rdmas(enum ib_wr_opcode opcode)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		if (!rdma_one(sizes[i], opcode)) {
			pr_info("# at %u bytes\n", sizes[i]);
			return false;
		}
	}
	return true;
}

static bool atomic_one(enum ib_wr_opcode opcode, u64 compare_add, u64 swap,
		       u64 want)
{
	u64 *target = (u64 *)b->dst, *result = (u64 *)a->dst;
	struct op *s = &a->send[0];
	u64 before = *target;
	struct ib_sge sge = {
		.addr = dma(a, result),
		.length = sizeof(*result),
		.lkey = a->mr->lkey,
	};
	struct ib_atomic_wr wr = {
		.wr = {
			.wr_cqe = &s->cqe,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = opcode,
			.send_flags = IB_SEND_SIGNALED,
		},
		.remote_addr = dma(b, target),
		.compare_add = compare_add,
		.swap = swap,
		.rkey = b->mr->rkey,
	};
	int sends = a->sends;

	*result = ~0ULL;
	s->seq = -1;
	if (ib_post_send(a->qp, &wr.wr, NULL) || !wait_done(&a->sends, sends + 1))
		return false;
	if (*result != before || *target != want) {
		pr_info("# was %#llx, returned %#llx, is %#llx, not %#llx\n",
			before, *result, *target, want);
		return false;
	}
	return is_wc(s, IB_WC_SUCCESS, opcode == IB_WR_ATOMIC_CMP_AND_SWP ?
		     IB_WC_COMP_SWAP : IB_WC_FETCH_ADD, a);
}

static bool atomics(void)
{
	*(u64 *)b->dst = 5;
	return atomic_one(IB_WR_ATOMIC_CMP_AND_SWP, 5, 77, 77) &&
	       atomic_one(IB_WR_ATOMIC_CMP_AND_SWP, 5, 99, 77) &&
	       atomic_one(IB_WR_ATOMIC_FETCH_AND_ADD, 3, 0, 80) &&
	       atomic_one(IB_WR_ATOMIC_FETCH_AND_ADD, -81ULL, 0, -1ULL);
}

/* What 6.1 has no names for. */
#define ATOMIC_WRITE	((enum ib_wr_opcode)15)
#define WC_ATOMIC_WRITE	((enum ib_wc_opcode)9)

static bool atomic_write(void)
{
	u64 *from = (u64 *)a->src, *to = (u64 *)b->dst;
	struct op *s = &a->send[0];
	int i, sends;

	for (i = 0; i < 2; i++) {
		*from = 0x0123456789abcdefULL + i;
		to[0] = 0;
		to[1] = GUARD;
		sends = a->sends;
		if (post_send(a, s, ATOMIC_WRITE, a->src, 8, 1,
			      i ? IB_SEND_INLINE : 0, to) ||
		    !wait_done(&a->sends, sends + 1) ||
		    !is_wc(s, IB_WC_SUCCESS, WC_ATOMIC_WRITE, a))
			return false;
		if (to[0] != *from || to[1] != GUARD) {
			pr_info("# %#llx, %#llx\n", to[0], to[1]);
			return false;
		}
	}
	return true;
}

/* A list in one call; only the last is signalled when @quiet. */
static bool list(int n, bool quiet)
{
	int i, sends = a->sends, recvs = b->recvs;
	struct ib_send_wr *wr;
	struct ib_sge *sge;
	bool good = false;

	wr = kcalloc(n, sizeof(*wr), GFP_KERNEL);
	sge = kcalloc(n, sizeof(*sge), GFP_KERNEL);
	if (!wr || !sge)
		goto out;
	memset(b->dst, GUARD, BUF_SIZE);
	fill(a->src, n * 1500, ++seed);
	for (i = 0; i < n; i++) {
		a->send[i].seq = -1;
		if (post_recv(b, &b->recv[i], b->dst + i * 1500, 1500, 2))
			goto out;
		sge[i] = (struct ib_sge) {
			.addr = dma(a, a->src + i * 1500),
			.length = 1500,
			.lkey = a->pd->local_dma_lkey,
		};
		wr[i] = (struct ib_send_wr) {
			.next = i == n - 1 ? NULL : &wr[i + 1],
			.wr_cqe = &a->send[i].cqe,
			.sg_list = &sge[i],
			.num_sge = 1,
			.opcode = IB_WR_SEND,
			.send_flags = quiet && i < n - 1 ? 0 : IB_SEND_SIGNALED,
		};
	}
	if (ib_post_send(a->qp, wr, NULL) ||
	    !wait_done(&b->recvs, recvs + n) ||
	    !wait_done(&a->sends, sends + (quiet ? 1 : n)) ||
	    !check(b->dst, n * 1500, seed))
		goto out;
	for (i = 0; i < n; i++) {
		int want = quiet ? (i < n - 1 ? -1 : sends) : sends + i;

		if (a->send[i].seq != want || b->recv[i].seq != recvs + i) {
			pr_info("# %d: send completed as %d (%d), receive as %d (%d)\n",
				i, a->send[i].seq, want, b->recv[i].seq,
				recvs + i);
			goto out;
		}
	}
	good = true;
out:
	kfree(wr);
	kfree(sge);
	return good;
}

static bool refused(void)
{
	struct ib_sge sge[MAX_SGE + 1] = {};
	struct ib_send_wr wr[2] = {
		{
			.next = &wr[1],
			.wr_cqe = &a->send[0].cqe,
			.opcode = IB_WR_SEND,
			.send_flags = IB_SEND_SIGNALED,
		}, {
			.wr_cqe = &a->send[1].cqe,
			.opcode = IB_WR_SEND,
			.sg_list = sge,
			.num_sge = MAX_SGE + 1,
		},
	};
	struct ib_recv_wr rwr = {
		.wr_cqe = &a->recv[0].cqe,
		.sg_list = sge,
		.num_sge = MAX_SGE + 1,
	};
	int sends = a->sends, recvs = b->recvs;
	const struct ib_send_wr *bad = NULL;
	const struct ib_recv_wr *rbad = NULL;

	/* all before the bad one are posted */
	a->send[0].seq = -1;
	if (post_recv(b, &b->recv[0], b->dst, 8, 1) ||
	    ib_post_send(a->qp, wr, &bad) != -EINVAL || bad != &wr[1] ||
	    !wait_done(&a->sends, sends + 1) || !wait_done(&b->recvs, recvs + 1))
		return false;
	if (ib_post_recv(a->qp, &rwr, &rbad) != -EINVAL || rbad != &rwr)
		return false;
	wr[1].num_sge = 0;
	wr[1].opcode = 200;
	bad = NULL;
	return ib_post_send(a->qp, &wr[1], &bad) && bad == &wr[1];
}

/* The receive queue takes its depth and no more, and then works. */
static bool full(void)
{
	int i, recvs = b->recvs, sends = a->sends;
	int depth = 0;

	while (depth < DEPTH * 2 &&
	       !post_recv(b, &b->recv[depth], b->dst + depth, 1, 1))
		depth++;
	if (depth < DEPTH || depth == DEPTH * 2) {
		pr_info("# took %d receives\n", depth);
		return false;
	}
	fill(a->src, depth, ++seed);
	memset(b->dst, GUARD, depth + 1);
	for (i = 0; i < depth; i++) {
		if (i >= DEPTH && !wait_done(&a->sends, sends + i - DEPTH + 1))
			return false;
		if (post_send(a, &a->send[i], IB_WR_SEND, a->src + i, 1, 1, 0,
			      NULL))
			return false;
	}
	return wait_done(&b->recvs, recvs + depth) &&
	       wait_done(&a->sends, sends + depth) && check(b->dst, depth, seed);
}

/* Posting from where one may not sleep. */
static int posted;

static void post_some(void)
{
	int i, err;

	for (i = 0; i < 8; i++) {
		err = post_recv(b, &b->recv[i], b->dst + i * 3000, 3000, 2) ?:
		      post_send(a, &a->send[i], IB_WR_SEND, a->src + i * 3000,
				3000, 2, 0, NULL);
		if (err)
			break;
	}
	/* pairs with the acquire in context() */
	smp_store_release(&posted, err ?: 1);
}

static void post_in_irq(struct irq_work *work)
{
	post_some();
}

static void post_in_softirq(struct tasklet_struct *t)
{
	post_some();
}

static DEFINE_SPINLOCK(irqs_off);

static bool context(int which)
{
	int i, sends = a->sends, recvs = b->recvs;
	unsigned long flags;
	struct tasklet_struct tasklet;
	struct irq_work irq;

	fill(a->src, 24000, ++seed);
	memset(b->dst, GUARD, 24001);
	posted = 0;
	switch (which) {
	case 0:
		spin_lock_irqsave(&irqs_off, flags);
		post_some();
		spin_unlock_irqrestore(&irqs_off, flags);
		break;
	case 1:
		tasklet_setup(&tasklet, post_in_softirq);
		tasklet_schedule(&tasklet);
		tasklet_kill(&tasklet);
		break;
	default:
		init_irq_work(&irq, post_in_irq);
		irq_work_queue(&irq);
		irq_work_sync(&irq);
	}
	/* pairs with the release in post_some() */
	if (smp_load_acquire(&posted) != 1 || !wait_done(&b->recvs, recvs + 8) ||
	    !wait_done(&a->sends, sends + 8))
		return false;
	for (i = 0; i < 8; i++)
		if (!is_wc(&a->send[i], IB_WC_SUCCESS, IB_WC_SEND, a) ||
		    !is_wc(&b->recv[i], IB_WC_SUCCESS, IB_WC_RECV, b) ||
		    a->send[i].seq != sends + i || b->recv[i].seq != recvs + i)
			return false;
	return check(b->dst, 24000, seed);
}

static bool qp_state_is(struct end *e, enum ib_qp_state want)
{
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr;
	int err = ib_query_qp(e->qp, &attr, IB_QP_STATE, &init);

	if (!err && attr.qp_state == want)
		return true;
	pr_info("# query_qp: %d, state %d (%d)\n", err, attr.qp_state, want);
	return false;
}

/* A WRITE with a wrong key between good ones; ends the connection. */
static bool bad_rkey(void)
{
	int i, sends = a->sends, recvs = b->recvs;
	struct ib_sge sge = {
		.addr = dma(a, a->src),
		.length = 100,
		.lkey = a->pd->local_dma_lkey,
	};
	struct ib_rdma_wr wr[3];

	for (i = 0; i < 4; i++)
		if (post_recv(b, &b->recv[i], b->dst, 100, 1))
			return false;
	for (i = 0; i < 3; i++) {
		a->send[i].seq = -1;
		wr[i] = (struct ib_rdma_wr) {
			.wr = {
				.next = i == 2 ? NULL : &wr[i + 1].wr,
				.wr_cqe = &a->send[i].cqe,
				.sg_list = &sge,
				.num_sge = 1,
				.opcode = IB_WR_RDMA_WRITE,
				.send_flags = IB_SEND_SIGNALED,
			},
			.remote_addr = dma(b, b->dst),
			.rkey = b->mr->rkey ^ (i == 1 ? 1 : 0),
		};
	}
	if (ib_post_send(a->qp, &wr[0].wr, NULL) ||
	    !wait_done(&a->sends, sends + 3) || !wait_done(&b->recvs, recvs + 4))
		return false;
	for (i = 0; i < 4; i++)
		if (!is_wc(&b->recv[i], IB_WC_WR_FLUSH_ERR, 0, b))
			return false;
	return is_wc(&a->send[0], IB_WC_SUCCESS, IB_WC_RDMA_WRITE, a) &&
	       is_wc(&a->send[1], IB_WC_REM_ACCESS_ERR, 0, a) &&
	       is_wc(&a->send[2], IB_WC_WR_FLUSH_ERR, 0, a) &&
	       a->send[0].seq < a->send[1].seq &&
	       a->send[1].seq < a->send[2].seq &&
	       wait_event_bit(b, IB_EVENT_QP_ACCESS_ERR) &&
	       qp_state_is(a, IB_QPS_ERR) && qp_state_is(b, IB_QPS_ERR);
}

/* What is posted to a dead QP is flushed, from interrupts too. */
static bool flushed(void)
{
	int i, sends = a->sends, recvs = b->recvs;

	posted = 0;
	local_irq_disable();
	post_some();
	local_irq_enable();
	if (posted != 1 || !wait_done(&a->sends, sends + 8) ||
	    !wait_done(&b->recvs, recvs + 8))
		return false;
	for (i = 0; i < 8; i++)
		if (!is_wc(&a->send[i], IB_WC_WR_FLUSH_ERR, 0, a) ||
		    !is_wc(&b->recv[i], IB_WC_WR_FLUSH_ERR, 0, b))
			return false;
	return true;
}

/* Sends that wait for a receive; drained, none is missing. */
static bool drain(void)
{
	int i, sends = a->sends, recvs = a->recvs;

	for (i = 0; i < 16; i++)
		if (post_send(a, &a->send[i], IB_WR_SEND, a->src, 5000, 1, 0,
			      NULL) ||
		    post_recv(a, &a->recv[i], a->dst, 5000, 1))
			return false;
	ib_drain_qp(a->qp);
	if (a->sends != sends + 16 || a->recvs != recvs + 16) {
		pr_info("# drained with %d and %d of 16 completions\n",
			a->sends - sends, a->recvs - recvs);
		return false;
	}
	for (i = 0; i < 16; i++)
		if (!is_wc(&a->send[i], IB_WC_WR_FLUSH_ERR, 0, a) ||
		    !is_wc(&a->recv[i], IB_WC_WR_FLUSH_ERR, 0, a) ||
		    a->send[i].seq != sends + i || a->recv[i].seq != recvs + i)
			return false;
	ib_drain_qp(b->qp);
	return true;
}

/* Work in both directions, and destroyed in the middle of it. */
static bool destroy_busy(void)
{
	int i;

	for (i = 0; i < 32; i++) {
		post_recv(b, &b->recv[i], b->dst, BUF_SIZE / 2, 1);
		post_send(a, &a->send[i], IB_WR_SEND, a->src, BUF_SIZE / 2, 1,
			  0, NULL);
		post_send(b, &b->send[i], IB_WR_RDMA_WRITE, b->src,
			  BUF_SIZE / 2, 1, 0, a->dst);
	}
	ib_destroy_qp(b->qp);
	b->qp = NULL;
	ib_destroy_qp(a->qp);
	a->qp = NULL;
	return true;
}

/* Of a QP that is gone there are no completions, which would lead to it. */
static bool destroy_unpolled(void)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	int i;

	for (i = 0; i < 8; i++)
		if (post_recv(a, &a->recv[i], a->dst, 1000, 1) ||
		    post_recv(b, &b->recv[i], b->dst, 1000, 1))
			return false;
	if (ib_modify_qp(a->qp, &attr, IB_QP_STATE) ||
	    ib_modify_qp(b->qp, &attr, IB_QP_STATE))
		return false;
	ib_destroy_qp(a->qp);
	a->qp = NULL;
	return !ib_process_cq_direct(a->cq, -1) &&
	       ib_process_cq_direct(b->cq, -1) == 8;
}

static DECLARE_COMPLETION(polling);

/* So slowly that there are some left while the QP is being destroyed on another CPU. */
static int poll_slowly(void *arg)
{
	struct end *e = arg;
	struct ib_wc wc;
	int lost = 0;

	complete(&polling);
	while (!kthread_should_stop()) {
		if (ib_poll_cq(e->cq, 1, &wc) > 0)
			lost += !wc.qp;
		usleep_range(20, 40);
	}
	return lost;
}

/* Who polls meanwhile gets completions that lead to the QP, or none. */
static bool destroy_polled(void)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	struct task_struct *poller;
	int i, lost;

	for (i = 0; i < DEPTH; i++)
		if (post_recv(a, &a->recv[i], a->dst, 1000, 1))
			return false;
	if (ib_modify_qp(a->qp, &attr, IB_QP_STATE))
		return false;
	poller = kthread_run(poll_slowly, a, "rove_ktest");
	if (IS_ERR(poller))
		return false;
	wait_for_completion(&polling);
	ib_destroy_qp(a->qp);
	a->qp = NULL;
	lost = kthread_stop(poller);
	if (lost)
		pr_info("# %d completions without a QP\n", lost);
	return !lost;
}

/* --- fast registration ---------------------------------------------------------- */

#define FR_PAGES	16
#define FR_BYTES	(FR_PAGES * fr_page)

/* Of the region, not of the machine; FR_BYTES fit in the buffers. */
static u32 fr_page = PAGE_SIZE;

/* A region over b->dst, its pages in reverse order; the first and last not whole. */
struct fastreg {
	struct ib_mr *mr;
	struct scatterlist sg[FR_PAGES];
};

static u8 *fr_byte(u32 i)
{
	i += 100;
	return b->dst + (FR_PAGES - 1 - i / fr_page) * fr_page + i % fr_page;
}

#define FR_LEN		(FR_BYTES - 300)

/* Map the pages and give the region a new key. */
static bool fr_map(struct fastreg *f)
{
	int i, n;

	sg_init_table(f->sg, FR_PAGES);
	for (i = 0; i < FR_PAGES; i++)
		sg_set_buf(&f->sg[i], b->dst + (FR_PAGES - 1 - i) * fr_page,
			   fr_page);
	f->sg[0].offset += 100;
	f->sg[0].length -= 100;
	f->sg[FR_PAGES - 1].length -= 200;
	n = ib_dma_map_sg(b->dev, f->sg, FR_PAGES, DMA_BIDIRECTIONAL);
	if (n == FR_PAGES)
		n = ib_map_mr_sg(f->mr, f->sg, n, NULL, fr_page);
	ib_update_fast_reg_key(f->mr, ib_inc_rkey(f->mr->rkey));
	if (n == FR_PAGES && f->mr->length == FR_LEN)
		return true;
	pr_info("# %d pages mapped, %llu bytes\n", n, f->mr->length);
	return false;
}

static void fr_wr(struct ib_reg_wr *wr, struct fastreg *f, struct op *op,
		  int flags)
{
	op->seq = -1;
	*wr = (struct ib_reg_wr) {
		.wr = {
			.wr_cqe = &op->cqe,
			.opcode = IB_WR_REG_MR,
			.send_flags = flags,
		},
		.mr = f->mr,
		.key = f->mr->rkey,
		.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ |
			  IB_ACCESS_REMOTE_WRITE,
	};
}

static void inv_wr(struct ib_send_wr *wr, u32 key, struct op *op, int flags)
{
	op->seq = -1;
	*wr = (struct ib_send_wr) {
		.wr_cqe = &op->cqe,
		.opcode = IB_WR_LOCAL_INV,
		.send_flags = flags,
		.ex.invalidate_rkey = key,
	};
}

static bool fr_register(struct fastreg *f)
{
	int sends = b->sends;
	struct ib_reg_wr wr;

	if (!fr_map(f))
		return false;
	fr_wr(&wr, f, &b->send[0], IB_SEND_SIGNALED);
	return !ib_post_send(b->qp, &wr.wr, NULL) &&
	       wait_done(&b->sends, sends + 1) &&
	       is_wc(&b->send[0], IB_WC_SUCCESS, IB_WC_REG_MR, b);
}

/* One RDMA by a to the region of b; its status, or -1. */
static int fr_rdma(struct fastreg *f, u32 key, enum ib_wr_opcode opcode,
		   u32 off, u32 len)
{
	struct ib_sge sge = {
		.addr = dma(a, opcode == IB_WR_RDMA_READ ? a->dst : a->src),
		.length = len,
		.lkey = a->pd->local_dma_lkey,
	};
	struct ib_rdma_wr wr = {
		.wr = {
			.wr_cqe = &a->send[0].cqe,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = opcode,
			.send_flags = IB_SEND_SIGNALED,
		},
		.remote_addr = f->mr->iova + off,
		.rkey = key,
	};
	int sends = a->sends;

	a->send[0].seq = -1;
	if (ib_post_send(a->qp, &wr.wr, NULL) || !wait_done(&a->sends, sends + 1))
		return -1;
	return a->send[0].wc.status;
}

/* WRITE all of it, READ it back. */
static bool fr_use(struct fastreg *f)
{
	u32 i;

	fill(a->src, FR_LEN, ++seed);
	memset(a->dst, GUARD, BUF_SIZE);
	if (fr_rdma(f, f->mr->rkey, IB_WR_RDMA_WRITE, 0, FR_LEN))
		return false;
	for (i = 0; i < FR_LEN; i++) {
		if (*fr_byte(i) != pattern(i, seed)) {
			pr_info("# byte %u of the region is %#x\n", i, *fr_byte(i));
			return false;
		}
	}
	return !fr_rdma(f, f->mr->rkey, IB_WR_RDMA_READ, 0, FR_LEN) &&
	       check(a->dst, FR_LEN, seed);
}

static bool fr_open(struct fastreg *f, bool ipv6, struct ib_device *da,
		    struct ib_device *db)
{
	if (!pair_open(da, db, ipv6))
		return false;
	f->mr = ib_alloc_mr(b->pd, IB_MR_TYPE_MEM_REG, FR_PAGES);
	if (!IS_ERR(f->mr))
		return true;
	pr_info("# alloc_mr: %ld\n", PTR_ERR(f->mr));
	pair_close();
	return false;
}

static bool fr_close(struct fastreg *f)
{
	int err = ib_dereg_mr(f->mr);

	pair_close();
	return !err;
}

/* Registered, used, invalidated, and again with another key. */
static bool fr_cycle(struct fastreg *f)
{
	struct ib_send_wr inv;
	int i, sends;

	for (i = 0; i < 3; i++) {
		if (!fr_register(f) || !fr_use(f))
			return false;
		sends = b->sends;
		inv_wr(&inv, f->mr->rkey, &b->send[0], IB_SEND_SIGNALED);
		if (ib_post_send(b->qp, &inv, NULL) ||
		    !wait_done(&b->sends, sends + 1) ||
		    !is_wc(&b->send[0], IB_WC_SUCCESS, IB_WC_LOCAL_INV, b))
			return false;
	}
	return true;
}

/* The peer invalidates it, with its last word on what it did there. */
static bool fr_remote_inv(struct fastreg *f)
{
	struct ib_send_wr wr;
	int i, sends, recvs;

	for (i = 0; i < 3; i++) {
		if (!fr_register(f) || !fr_use(f))
			return false;
		sends = a->sends;
		recvs = b->recvs;
		wr = (struct ib_send_wr) {
			.wr_cqe = &a->send[0].cqe,
			.opcode = IB_WR_SEND_WITH_INV,
			.send_flags = IB_SEND_SIGNALED,
			.ex.invalidate_rkey = f->mr->rkey,
		};
		a->send[0].seq = -1;
		if (post_recv(b, &b->recv[0], b->dst, 8, 1) ||
		    ib_post_send(a->qp, &wr, NULL) ||
		    !wait_done(&b->recvs, recvs + 1) ||
		    !wait_done(&a->sends, sends + 1) ||
		    !is_wc(&a->send[0], IB_WC_SUCCESS, IB_WC_SEND, a) ||
		    !is_wc(&b->recv[0], IB_WC_SUCCESS, IB_WC_RECV, b))
			return false;
		if (!(b->recv[0].wc.wc_flags & IB_WC_WITH_INVALIDATE) ||
		    b->recv[0].wc.ex.invalidate_rkey != f->mr->rkey)
			return false;
	}
	return true;
}

/*
 * What a storage protocol posts for each request: invalidate, register, tell
 * the peer the key; fenced, and none signalled but the last (hazard 51).
 */
static bool fr_chain(struct fastreg *f)
{
	int i, sends = b->sends, recvs = a->recvs;
	struct ib_send_wr inv, send;
	struct ib_reg_wr reg;
	u32 old;

	if (!fr_register(f))
		return false;
	for (i = 0; i < 50; i++) {
		struct ib_sge sge = {
			.addr = dma(b, b->src),
			.length = 64,
			.lkey = b->pd->local_dma_lkey,
		};
		int flags = i & 1 ? IB_SEND_FENCE : 0;

		old = f->mr->rkey;
		sends = b->sends;
		/* a READ under way, which the fence waits for */
		if (post_send(b, &b->send[3], IB_WR_RDMA_READ, b->src, 5000, 1,
			      0, a->src))
			return false;
		/* the old mapping may be in use until it is invalid */
		inv_wr(&inv, old, &b->send[1], flags);
		if (ib_post_send(b->qp, &inv, NULL))
			return false;
		if (!wait_done(&b->sends, sends + 1))
			return false;
		sends = b->sends;
		if (i % 5 == 0) {
			/* its completion is not asked for: see it done */
			inv_wr(&inv, old, &b->send[1], IB_SEND_SIGNALED);
			if (ib_post_send(b->qp, &inv, NULL) ||
			    !wait_done(&b->sends, sends + 1))
				return false;
			sends = b->sends;
		}
		if (!fr_map(f))
			return false;
		send = (struct ib_send_wr) {
			.wr_cqe = &b->send[2].cqe,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IB_WR_SEND,
			.send_flags = IB_SEND_SIGNALED | flags,
		};
		b->send[2].seq = -1;
		fr_wr(&reg, f, &b->send[0], flags);
		reg.wr.next = &send;
		if (post_recv(a, &a->recv[0], a->dst, 64, 1) ||
		    ib_post_send(b->qp, &reg.wr, NULL) ||
		    !wait_done(&a->recvs, ++recvs))
			return false;
		/* the key holds as soon as the peer hears of it */
		if (fr_rdma(f, f->mr->rkey, IB_WR_RDMA_WRITE, 1, 3000) ||
		    !wait_done(&b->sends, sends + 1) ||
		    !is_wc(&b->send[2], IB_WC_SUCCESS, IB_WC_SEND, b))
			return false;
	}
	return true;
}

/* Its memory may be sent from and received to with its local key. */
static bool fr_local(struct fastreg *f)
{
	int sends = a->sends, recvs = b->recvs;
	struct ib_recv_wr wr;
	struct ib_sge sge;
	u32 i;

	if (!fr_register(f))
		return false;
	sge = (struct ib_sge) {
		.addr = f->mr->iova + 5000,
		.length = 20000,
		.lkey = f->mr->lkey,
	};
	wr = (struct ib_recv_wr) {
		.wr_cqe = &b->recv[0].cqe,
		.sg_list = &sge,
		.num_sge = 1,
	};
	b->recv[0].seq = -1;
	fill(a->src, 20000, ++seed);
	if (ib_post_recv(b->qp, &wr, NULL) ||
	    post_send(a, &a->send[0], IB_WR_SEND, a->src, 20000, 1, 0, NULL) ||
	    !wait_done(&b->recvs, recvs + 1) || !wait_done(&a->sends, sends + 1) ||
	    !is_wc(&b->recv[0], IB_WC_SUCCESS, IB_WC_RECV, b))
		return false;
	for (i = 0; i < 20000; i++)
		if (*fr_byte(5000 + i) != pattern(i, seed))
			return false;
	return true;
}

/* What must fail, each on a connection of its own. */
enum fr_wrong {
	FR_INVALIDATED,		/* a key after LOCAL_INV */
	FR_OLD_KEY,		/* the key of the registration before */
	FR_BEYOND,		/* one byte behind its end */
	FR_OPEN,		/* REG_MR of what is registered */
	FR_INV_OTHER,		/* LOCAL_INV with other low bits */
	FR_INV_DMA,		/* LOCAL_INV of what is no fast registration */
	FR_REMOTE_DMA,		/* the peer's invalidate of such */
	FR_REMOTE_TWICE,	/* the peer's invalidate of what is invalid */
	FR_WRONG_MAX,
};

static bool fr_wrong_local(struct fastreg *f, enum fr_wrong what)
{
	int sends = b->sends;
	struct ib_send_wr inv;
	struct ib_reg_wr reg;
	int err;

	if (what == FR_OPEN) {
		fr_wr(&reg, f, &b->send[0], 0);
		err = ib_post_send(b->qp, &reg.wr, NULL);
	} else {
		inv_wr(&inv, what == FR_INV_OTHER ? f->mr->rkey ^ 1 : b->mr->rkey,
		       &b->send[0], 0);
		err = ib_post_send(b->qp, &inv, NULL);
	}
	return !err && wait_done(&b->sends, sends + 1) &&
	       is_wc(&b->send[0], IB_WC_MW_BIND_ERR, 0, b) &&
	       qp_state_is(b, IB_QPS_ERR);
}

static bool fr_wrong_remote(struct fastreg *f, u32 key, int times)
{
	struct ib_send_wr wr = {
		.wr_cqe = &a->send[0].cqe,
		.opcode = IB_WR_SEND_WITH_INV,
		.send_flags = IB_SEND_SIGNALED,
		.ex.invalidate_rkey = key,
	};
	int sends;

	for (; times; times--) {
		sends = a->sends;
		a->send[0].seq = -1;
		if (post_recv(b, &b->recv[0], b->dst, 8, 1) ||
		    ib_post_send(a->qp, &wr, NULL) ||
		    !wait_done(&a->sends, sends + 1))
			return false;
	}
	return is_wc(&a->send[0], IB_WC_REM_INV_REQ_ERR, 0, a) &&
	       wait_event_bit(b, IB_EVENT_QP_REQ_ERR);
}

static bool fr_wrong(struct fastreg *f, enum fr_wrong what)
{
	u32 key, len = 100, off = 0;
	struct ib_send_wr inv;
	int sends;

	if (!fr_register(f))
		return false;
	key = f->mr->rkey;
	switch (what) {
	case FR_OPEN:
	case FR_INV_OTHER:
	case FR_INV_DMA:
		return fr_wrong_local(f, what);
	case FR_REMOTE_DMA:
		return fr_wrong_remote(f, b->mr->rkey, 1);
	case FR_REMOTE_TWICE:
		return fr_wrong_remote(f, key, 2);
	case FR_BEYOND:
		off = FR_LEN - 99;
		break;
	default:
		sends = b->sends;
		inv_wr(&inv, key, &b->send[0], IB_SEND_SIGNALED);
		if (ib_post_send(b->qp, &inv, NULL) ||
		    !wait_done(&b->sends, sends + 1))
			return false;
		if (what == FR_OLD_KEY && !fr_register(f))
			return false;
	}
	return fr_rdma(f, key, IB_WR_RDMA_WRITE, off, len) ==
	       IB_WC_REM_ACCESS_ERR;
}

/* The verbs' own checks. */
static bool fr_refused(struct fastreg *f)
{
	u32 most = b->dev->attrs.max_fast_reg_page_list_len;
	struct ib_reg_wr reg;
	struct ib_mr *mr;

	mr = ib_alloc_mr(b->pd, IB_MR_TYPE_MEM_REG, most);
	if (IS_ERR(mr) || ib_dereg_mr(mr))
		return false;
	mr = ib_alloc_mr(b->pd, IB_MR_TYPE_MEM_REG, most + 1);
	if (PTR_ERR_OR_ZERO(mr) != -EINVAL)
		return false;
	mr = ib_alloc_mr(b->pd, IB_MR_TYPE_SG_GAPS, 4);
	if (PTR_ERR_OR_ZERO(mr) != -EOPNOTSUPP)
		return false;
	if (!(b->dev->attrs.device_cap_flags & IB_DEVICE_MEM_MGT_EXTENSIONS) ||
	    !fr_map(f))
		return false;
	/* another region's key; rights that no region may have */
	fr_wr(&reg, f, &b->send[0], 0);
	reg.key ^= 0x100;
	if (!ib_post_send(b->qp, &reg.wr, NULL))
		return false;
	fr_wr(&reg, f, &b->send[0], 0);
	reg.access = IB_ACCESS_REMOTE_WRITE;
	return ib_post_send(b->qp, &reg.wr, NULL);
}

/*
 * Pages of a size that is not the machine's: larger ones, and smaller ones, as those
 * of 4 KiB are to a machine whose own have 64 (hazard 60).
 */
static bool fr_sizes(struct fastreg *f)
{
	static const u32 sizes[] = {
		512, PAGE_SIZE / 2, PAGE_SIZE * 4, BUF_SIZE / FR_PAGES,
	};
	bool good = true;
	int i;

	for (i = 0; i < ARRAY_SIZE(sizes) && good; i++) {
		fr_page = sizes[i];
		good = fr_cycle(f);
		if (!good)
			pr_info("# pages of %u bytes\n", fr_page);
	}
	fr_page = PAGE_SIZE;
	return good;
}

static void fastregs(struct ib_device *da, struct ib_device *db, bool ipv6)
{
	static const char *const name[] = {
		[FR_INVALIDATED] = "an invalidated key",
		[FR_OLD_KEY] = "the key of the registration before",
		[FR_BEYOND] = "one byte behind a registration",
		[FR_OPEN] = "REG_MR of what is registered",
		[FR_INV_OTHER] = "LOCAL_INV with other low bits of the key",
		[FR_INV_DMA] = "LOCAL_INV of another sort of region",
		[FR_REMOTE_DMA] = "remote invalidate of another sort of region",
		[FR_REMOTE_TWICE] = "remote invalidate of what is invalid",
	};
	bool (*const tests[])(struct fastreg *f) = {
		fr_cycle, fr_remote_inv, fr_chain, fr_local, fr_refused,
		fr_sizes,
	};
	static const char *const test_name[] = {
		"register, use, LOCAL_INV, again",
		"register, use, SEND with Invalidate, again",
		"LOCAL_INV, REG_MR, SEND, fenced and unsignalled",
		"a registration's local key",
		"what ib_alloc_mr and REG_MR refuse",
		"pages of 512 bytes to 32 KiB",
	};
	struct fastreg f;
	int i;

	for (i = 0; i < ARRAY_SIZE(tests); i++)
		point(fr_open(&f, ipv6, da, db) && tests[i](&f) & fr_close(&f),
		      test_name[i]);
	for (i = 0; i < FR_WRONG_MAX; i++)
		point(fr_open(&f, ipv6, da, db) && fr_wrong(&f, i) & fr_close(&f),
		      name[i]);
}

/* --- as storage targets do it ------------------------------------------------------ */

#define LONG_SEG	300000
#define SHORT_SEG	1001
#define SHORT_SEGS	20
#define RW_LEN		(LONG_SEG + SHORT_SEGS * SHORT_SEG)

/*
 * ib_core makes work requests of a scatter list, by what the device says of itself
 * (hazard 61): a segment of more than 64 KiB stays one, and each request takes as
 * many as a QP may have.
 */
static bool rw(enum dma_data_direction dir)
{
	static struct scatterlist sg[1 + SHORT_SEGS];
	int i, n, sends = a->sends;
	struct rdma_rw_ctx ctx;
	bool good;
	u8 *mine = dir == DMA_TO_DEVICE ? a->src : a->dst;
	u8 *theirs = dir == DMA_TO_DEVICE ? b->dst : b->src;
	u8 *flat;

	flat = kvzalloc(BUF_SIZE, GFP_KERNEL);
	if (!flat)
		return false;
	sg_init_table(sg, ARRAY_SIZE(sg));
	sg_set_buf(&sg[0], mine, LONG_SEG);
	for (i = 0; i < SHORT_SEGS; i++)
		sg_set_buf(&sg[1 + i], mine + LONG_SEG + 2 * i * SHORT_SEG, SHORT_SEG);

	fill(flat, RW_LEN, ++seed);
	if (dir == DMA_TO_DEVICE) {
		sg_copy_from_buffer(sg, ARRAY_SIZE(sg), flat, RW_LEN);
		memset(theirs, GUARD, BUF_SIZE);
	} else {
		memcpy(theirs, flat, RW_LEN);
		memset(mine, GUARD, BUF_SIZE);
	}
	a->send[0].seq = -1;
	n = rdma_rw_ctx_init(&ctx, a->qp, 1, sg, ARRAY_SIZE(sg), 0, dma(b, theirs),
			     b->pd->unsafe_global_rkey, dir);
	good = ib_dma_max_seg_size(a->dev) >= BUF_SIZE &&
	       n == DIV_ROUND_UP(ARRAY_SIZE(sg), MAX_SGE);
	if (!good)
		pr_info("# %d work requests, segments of up to %u bytes\n", n,
			ib_dma_max_seg_size(a->dev));
	if (n > 0) {
		good &= !rdma_rw_ctx_post(&ctx, a->qp, 1, &a->send[0].cqe, NULL) &&
			wait_done(&a->sends, sends + 1) &&
			a->send[0].wc.status == IB_WC_SUCCESS;
		rdma_rw_ctx_destroy(&ctx, a->qp, 1, sg, ARRAY_SIZE(sg), dir);
	}
	if (good && dir == DMA_TO_DEVICE) {
		good = check(theirs, RW_LEN, seed);
	} else if (good) {
		memset(flat, GUARD, BUF_SIZE);
		sg_copy_to_buffer(sg, ARRAY_SIZE(sg), flat, RW_LEN);
		good = check(flat, RW_LEN, seed);
	}
	kvfree(flat);
	return good;
}

/* --- shared receive queues ------------------------------------------------------- */

/* An event once there are fewer than the limit, one for each time it is set. */
static bool srq_limit(void)
{
	struct ib_srq_attr attr = { .srq_limit = 3 };
	int i, recvs = b->recvs, sends = a->sends;

	for (i = 0; i < 4; i++)
		if (post_recv(b, &b->recv[i], b->dst, 8, 1))
			return false;
	if (ib_modify_srq(b->srq, &attr, IB_SRQ_LIMIT))
		return false;
	for (i = 0; i < 2; i++) {
		if (test_bit(IB_EVENT_SRQ_LIMIT_REACHED, &b->events) ||
		    post_send(a, &a->send[i], IB_WR_SEND, a->src, 8, 1, 0, NULL) ||
		    !wait_done(&a->sends, sends + i + 1) ||
		    !wait_done(&b->recvs, recvs + i + 1))
			return false;
	}
	if (!wait_event_bit(b, IB_EVENT_SRQ_LIMIT_REACHED))
		return false;
	clear_bit(IB_EVENT_SRQ_LIMIT_REACHED, &b->events);
	if (ib_query_srq(b->srq, &attr) || attr.srq_limit)
		return false;
	for (; i < 4; i++) {
		if (post_send(a, &a->send[i], IB_WR_SEND, a->src, 8, 1, 0, NULL) ||
		    !wait_done(&a->sends, sends + i + 1) ||
		    !wait_done(&b->recvs, recvs + i + 1))
			return false;
	}
	return !test_bit(IB_EVENT_SRQ_LIMIT_REACHED, &b->events);
}

static bool srq_refused(void)
{
	struct ib_srq_attr attr = { .srq_limit = DEPTH + 1 };
	struct ib_recv_wr wr = { .num_sge = MAX_SGE + 1 };
	int i, err;

	if (ib_post_srq_recv(b->srq, &wr, NULL) != -EINVAL)
		return false;
	wr.num_sge = 0;
	if (ib_post_recv(b->qp, &wr, NULL) != -EINVAL)
		return false;
	if (ib_modify_srq(b->srq, &attr, IB_SRQ_LIMIT) != -EINVAL)
		return false;
	for (i = 0; i < DEPTH; i++)
		if (post_recv(b, &b->recv[i], b->dst, 8, 1))
			return false;
	err = post_recv(b, &b->recv[DEPTH], b->dst, 8, 1);
	if (err != -ENOMEM) {
		pr_info("# one more than it holds: %d\n", err);
		return false;
	}
	return true;
}

static void srqs(struct ib_device *da, struct ib_device *db, bool ipv6)
{
	use_srq = true;
	if (!pair_open(da, db, ipv6)) {
		point(false, "set-up with SRQs");
		use_srq = false;
		return;
	}
	point(sends(IB_WR_SEND, MAX_SGE, 0, BUF_SIZE), "SEND to an SRQ");
	point(sends(IB_WR_RDMA_WRITE_WITH_IMM, 2, 0, BUF_SIZE),
	      "WRITE with immediate to an SRQ");
	point(list(DEPTH, false), "a list to an SRQ");
	point(srq_limit(), "the limit of an SRQ");
	point(srq_refused(), "an SRQ: what is refused, and when it is full");
	pair_close();
	use_srq = false;
}

static void run(struct ib_device *da, struct ib_device *db, bool ipv6)
{
	bool good;
	int i;

	if (!pair_open(da, db, ipv6)) {
		point(false, "set-up");
		return;
	}
	point(sends(IB_WR_SEND, 1, 0, BUF_SIZE), "SEND");
	point(sends(IB_WR_SEND, MAX_SGE, 0, BUF_SIZE), "SEND, several SGEs");
	point(sends(IB_WR_SEND_WITH_IMM, 2, IB_SEND_SOLICITED, BUF_SIZE),
	      "SEND with immediate");
	point(sends(IB_WR_SEND, 3, IB_SEND_INLINE, 4), "SEND inline");
	point(sends(IB_WR_RDMA_WRITE_WITH_IMM, 2, 0, BUF_SIZE),
	      "WRITE with immediate");
	point(rdmas(IB_WR_RDMA_WRITE), "WRITE");
	point(rdmas(IB_WR_RDMA_READ), "READ");
	point(atomics(), "CMP_AND_SWP, FETCH_AND_ADD");
	point(atomic_write(), "ATOMIC WRITE");
	point(rw(DMA_TO_DEVICE), "rdma_rw: a scatter list with a long segment, WRITE");
	point(rw(DMA_FROM_DEVICE), "rdma_rw: a scatter list with a long segment, READ");
	point(list(DEPTH, false), "a list, completions in order");
	point(list(DEPTH, true), "a list, the last one signalled");
	point(refused(), "bad work requests are refused, those before them sent");
	point(full(), "a full receive queue");
	point(context(0), "posted with interrupts off");
	point(context(1), "posted from a softirq");
	point(context(2), "posted from a hard interrupt");
	point(bad_rkey(), "a wrong rkey: error, flush, event, in order");
	point(flushed(), "posted to QPs in the error state");
	pair_close();

	if (!pair_open(da, db, ipv6)) {
		point(false, "set-up for draining");
		return;
	}
	point(drain(), "ib_drain_qp");
	pair_close();

	if (!pair_open(da, db, ipv6)) {
		point(false, "set-up for destroying");
		return;
	}
	point(destroy_busy(), "destroyed while busy");
	pair_close();

	if (poll_ctx == IB_POLL_DIRECT) {
		if (!pair_open(da, db, ipv6)) {
			point(false, "set-up for destroying with completions");
			return;
		}
		point(destroy_unpolled(), "destroyed with completions not taken");
		pair_close();

		for (i = 0, good = true; i < 10 && good; i++) {
			good = pair_open(da, db, ipv6) && destroy_polled();
			pair_close();
		}
		point(good, "destroyed while its completions are taken");
	}

	srqs(da, db, ipv6);
	fastregs(da, db, ipv6);
}

/* --- allocations that fail -------------------------------------------------------- */

#ifdef CONFIG_FAULT_INJECTION
static void fail_nth(int n)
{
	WRITE_ONCE(current->fail_nth, n);
}

/* Has it failed? */
static bool struck(void)
{
	return !READ_ONCE(current->fail_nth);
}
#else
static void fail_nth(int n) { }
static bool struck(void) { return false; }
#endif

/* All that a consumer makes before it posts. */
static int make_all(struct ib_device *da, struct ib_device *db)
{
	struct rdma_ah_attr attr = { .type = RDMA_AH_ATTR_TYPE_ROCE };
	struct ib_ah *ah;
	int err;

	err = pair_try(da, db, false);
	if (err)
		return err;
	b->idle = ib_alloc_mr(b->pd, IB_MR_TYPE_MEM_REG, FR_PAGES);
	if (IS_ERR(b->idle))
		return PTR_ERR(b->idle);
	rdma_ah_set_grh(&attr, NULL, 0, b->gid_index, 64, 0);
	rdma_ah_set_dgid_raw(&attr, a->gid.raw);
	rdma_ah_set_port_num(&attr, 1);
	ah = rdma_create_ah(b->pd, &attr, RDMA_CREATE_AH_SLEEPABLE);
	if (IS_ERR(ah))
		return PTR_ERR(ah);
	rdma_destroy_ah(ah, RDMA_DESTROY_AH_SLEEPABLE);
	return 0;
}

/*
 * Each fails once: the call that met it says so, or gets along without.  What is left
 * over shows when the module goes, and in the kernel's list of leaks.
 */
static bool allocations_fail(struct ib_device *da, struct ib_device *db)
{
	int n, err, ended = 0;
	bool met = true;

	for (n = 1; met; n++) {
		fail_nth(n);
		err = make_all(da, db);
		met = struck();
		fail_nth(0);
		pair_close();
		if (err && (!met || err != -ENOMEM)) {
			pr_info("# allocation %d%s: %d\n", n, met ? "" : ", which is not there", err);
			return false;
		}
		ended += !!err;
		cond_resched();
	}
	pr_info("# %d allocations failed, %d calls ended by it\n", n - 2, ended);
	return ended > 20;
}

static void with_faults(struct ib_device *da, struct ib_device *db)
{
	point(allocations_fail(da, db), "each allocation fails once");
	use_srq = true;
	point(allocations_fail(da, db), "each allocation fails once, with SRQs");
	use_srq = false;
}

/* --- as a client of the RDMA core ------------------------------------------------ */

static struct ib_device *dev_found[2];
static bool looking = true;

/* Called for each device that there is when the client registers. */
static int ktest_add(struct ib_device *dev)
{
	if (looking && !strcmp(dev_name(&dev->dev), dev_a) &&
	    ib_device_try_get(dev))
		dev_found[0] = dev;
	if (looking && !strcmp(dev_name(&dev->dev), dev_b) &&
	    ib_device_try_get(dev))
		dev_found[1] = dev;
	return 0;
}

static void ktest_remove(struct ib_device *dev, void *data)
{
	struct end **e;
	int want;

	mutex_lock(&pair_lock);
	for (e = &a; e; e = e == &a ? &b : NULL) {
		if (!*e || (*e)->dev != dev)
			continue;
		ib_drain_qp((*e)->qp);
		want = e == &a ? 4 : 0;
		pr_info("%sok %d - %s: drained when its device went away\n",
			(*e)->sends == want && (*e)->recvs == want ? "" : "not ",
			++tests, dev_name(&dev->dev));
		end_close(*e);
		*e = NULL;
	}
	mutex_unlock(&pair_lock);
}

static struct ib_client client = {
	.name = "rove_ktest",
	.add = ktest_add,
	.remove = ktest_remove,
};

/* Nobody receives what the other sends: four and four are left to be flushed. */
static bool reside(struct ib_device *da, struct ib_device *db)
{
	int i;

	poll_ctx = IB_POLL_WORKQUEUE;
	if (!pair_open(da, db, false))
		return false;
	for (i = 0; i < 4; i++)
		if (post_send(a, &a->send[i], IB_WR_SEND, a->src, 3000, 1, 0,
			      NULL) ||
		    post_recv(a, &a->recv[i], a->dst, 3000, 1))
			return false;
	/* For those who look at regions and expect a program's memory in each. */
	b->idle = ib_alloc_mr(b->pd, IB_MR_TYPE_MEM_REG, FR_PAGES);
	return !IS_ERR(b->idle);
}

static int __init ktest_init(void)
{
	static const enum ib_poll_context contexts[] = {
		IB_POLL_DIRECT, IB_POLL_SOFTIRQ, IB_POLL_WORKQUEUE,
	};
	struct ib_device *da, *db;
	int err, i;

	err = ib_register_client(&client);
	if (err)
		return err;
	looking = false;
	da = dev_found[0];
	db = dev_found[1];
	if (da && db && faults) {
		poll_ctx = IB_POLL_WORKQUEUE;
		with_faults(da, db);
	} else if (da && db) {
		for (i = 0; i < ARRAY_SIZE(contexts); i++) {
			poll_ctx = contexts[i];
			run(da, db, poll_ctx == IB_POLL_SOFTIRQ);
		}
		/* the same, a link with itself */
		if (da != db)
			run(da, da, false);
		if (resident)
			point(reside(da, db), "stays connected");
	} else {
		poll_ctx = IB_POLL_DIRECT;
		point(false, "both devices are there");
	}
	if (da)
		ib_device_put(da);
	if (db)
		ib_device_put(db);
	pr_info("done: %d of %d failed\n", failures, tests);
	return 0;
}
module_init(ktest_init);

static void __exit ktest_exit(void)
{
	ib_unregister_client(&client);
}
module_exit(ktest_exit);

MODULE_DESCRIPTION("Verbs between two kernel queue pairs: a test");
MODULE_LICENSE("Dual BSD/GPL");
