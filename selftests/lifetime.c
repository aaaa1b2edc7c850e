// SPDX-License-Identifier: GPL-2.0
/*
 * lifetime.c - how queue pairs and what they are made of come, change and go
 *
 *	lifetime DEV-A GID-INDEX-A DEV-B GID-INDEX-B MODE [NUMBER]
 *
 * MODE: loop    create and destroy NUMBER of each object
 *       create  sizes that are refused, and what is granted
 *       modify  every transition with every attribute, against IBTA table 91
 *       query   query_qp tells what was set
 *       fault   the answer to a create command cannot be written
 *       timers  queue pairs destroyed while a timer of theirs runs
 *       stuck   queue pairs destroyed while the network holds their packets
 *       last    the receiver's is destroyed as soon as its completion is there
 *
 * Plain libibverbs, and uverbs' write(2) commands for "fault".  Prints TAP.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rdma/ib_user_verbs.h>
#include <rdma/rove-abi.h>

#include "points.h"

#define BUF		(256 * 1024)
#define MTU		IBV_MTU_1024
/* A destroy that waits for the network or for a timer takes longer. */
#define PROMPT_MS	5000

struct end {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	union ibv_gid gid;
	int gid_index;
	char *buf;
};

static struct end A, B;
static void end_open(struct end *e, const char *name, int gid_index)
{
	e->ctx = open_device(name);
	e->gid_index = gid_index;
	must(!ibv_query_gid(e->ctx, 1, gid_index, &e->gid), "query_gid");
	e->buf = mmap(NULL, BUF, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	e->pd = ibv_alloc_pd(e->ctx);
	must(e->pd, "alloc_pd");
	e->mr = ibv_reg_mr(e->pd, e->buf, BUF, IBV_ACCESS_LOCAL_WRITE |
			   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
	e->cq = ibv_create_cq(e->ctx, 256, NULL, NULL, 0);
	must(e->mr && e->cq, "reg_mr, create_cq");
}

static struct ibv_qp *create_qp(struct end *e, int depth)
{
	struct ibv_qp_init_attr init = {
		.send_cq = e->cq,
		.recv_cq = e->cq,
		.cap = {
			.max_send_wr = depth,
			.max_recv_wr = depth,
			.max_send_sge = 2,
			.max_recv_sge = 2,
			.max_inline_data = 64,
		},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};

	return ibv_create_qp(e->pd, &init);
}

/* --- attributes ------------------------------------------------------------- */

#define M_INIT	(IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define M_RTR	(IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | \
		 IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | \
		 IBV_QP_MIN_RNR_TIMER)
#define M_RTS	(IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | \
		 IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC)

/* Right for every transition. */
static struct ibv_qp_attr good_attr(const struct end *e, const struct end *peer,
				    uint32_t dest)
{
	return (struct ibv_qp_attr) {
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_WRITE,
		.path_mtu = MTU,
		.dest_qp_num = dest,
		.rq_psn = 0x123456,
		.sq_psn = 0xabcdef,
		.max_dest_rd_atomic = 3,
		.max_rd_atomic = 5,
		.min_rnr_timer = 7,
		.timeout = 9,
		.retry_cnt = 6,
		.rnr_retry = 5,
		.ah_attr = {
			.is_global = 1,
			.port_num = 1,
			.grh = {
				.dgid = peer->gid,
				.sgid_index = e->gid_index,
				.hop_limit = 61,
				.traffic_class = 0x20,
				.flow_label = 0x54321,
			},
		},
	};
}

static int modify(struct end *e, struct end *peer, struct ibv_qp *qp, int to,
		  int mask)
{
	struct ibv_qp_attr attr = good_attr(e, peer, qp->qp_num);

	attr.qp_state = to;
	return ibv_modify_qp(qp, &attr, mask | IBV_QP_STATE);
}

static int state_of(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	return ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) ? -1 :
	       (int)attr.qp_state;
}

static void bring_to(struct end *e, struct end *peer, struct ibv_qp *qp, int state)
{
	int err = modify(e, peer, qp, IBV_QPS_RESET, 0);

	if (!err && state != IBV_QPS_RESET)
		err = modify(e, peer, qp, IBV_QPS_INIT, M_INIT);
	if (!err && (state == IBV_QPS_RTR || state == IBV_QPS_RTS ||
		     state == IBV_QPS_SQD))
		err = modify(e, peer, qp, IBV_QPS_RTR, M_RTR);
	if (!err && (state == IBV_QPS_RTS || state == IBV_QPS_SQD))
		err = modify(e, peer, qp, IBV_QPS_RTS, M_RTS);
	if (!err && (state == IBV_QPS_SQD || state == IBV_QPS_ERR))
		err = modify(e, peer, qp, state, 0);
	errno = err;
	must(!err, "modify_qp on the way");
}

/* --- loops -------------------------------------------------------------------- */

static void run_loop(int n)
{
	struct ibv_ah_attr ah = good_attr(&A, &B, 0).ah_attr;
	struct ibv_comp_channel *chan;
	struct ibv_cq *cq;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_ah *h;
	struct ibv_qp *qp;
	int i;

	for (i = 0; i < n && (pd = ibv_alloc_pd(A.ctx)); i++)
		if (ibv_dealloc_pd(pd))
			break;
	outcome(i == n, "protection domains");
	for (i = 0; i < n; i++) {
		mr = ibv_reg_mr(A.pd, A.buf + i % 4096, 1 + i % 65536,
				IBV_ACCESS_LOCAL_WRITE);
		if (!mr || ibv_dereg_mr(mr))
			break;
	}
	outcome(i == n, "memory regions");
	for (i = 0; i < n; i++) {
		chan = ibv_create_comp_channel(A.ctx);
		cq = ibv_create_cq(A.ctx, 1 + i % 1000, NULL, chan, 0);
		if (!chan || !cq || (i % 3 == 0 && ibv_resize_cq(cq, 2000)) ||
		    ibv_destroy_cq(cq) || ibv_destroy_comp_channel(chan))
			break;
	}
	outcome(i == n, "completion queues, resized, with channels");
	for (i = 0; i < n && (h = ibv_create_ah(A.pd, &ah)); i++)
		if (ibv_destroy_ah(h))
			break;
	outcome(i == n, "address handles");
	for (i = 0; i < n && (qp = create_qp(&A, 1 + i % 200)); i++)
		if (ibv_destroy_qp(qp))
			break;
	outcome(i == n, "queue pairs");
	for (i = 0; i < n / 4 && (qp = create_qp(&A, 16)); i++) {
		bring_to(&A, &B, qp, IBV_QPS_SQD);
		bring_to(&A, &B, qp, IBV_QPS_RTS);
		if (ibv_destroy_qp(qp))
			break;
	}
	outcome(i == n / 4, "queue pairs through all states");
	for (i = 0; i < n / 20; i++) {
		struct ibv_context *ctx = ibv_open_device(A.ctx->device);

		if (!ctx || ibv_close_device(ctx))
			break;
	}
	outcome(i == n / 20, "contexts");
}

/* --- sizes ----------------------------------------------------------------------- */

static bool refused(struct ibv_qp_cap cap, enum ibv_qp_type type, int want)
{
	struct ibv_qp_init_attr init = {
		.send_cq = A.cq, .recv_cq = A.cq, .cap = cap, .qp_type = type,
	};
	struct ibv_qp *qp = ibv_create_qp(A.pd, &init);

	if (!qp && (errno == want || (want == EOPNOTSUPP && errno == EINVAL)))
		return true;
	note("create_qp: %s\n", qp ? "worked" : strerror(errno));
	if (qp)
		ibv_destroy_qp(qp);
	return false;
}

static bool granted(struct ibv_qp_cap cap)
{
	struct ibv_qp_init_attr init = {
		.send_cq = A.cq, .recv_cq = A.cq, .cap = cap,
		.qp_type = IBV_QPT_RC,
	}, told;
	struct ibv_qp *qp = ibv_create_qp(A.pd, &init);
	struct ibv_qp_attr attr;
	bool good;

	if (!qp) {
		note("create_qp: %s\n", strerror(errno));
		return false;
	}
	good = !ibv_query_qp(qp, &attr, IBV_QP_CAP, &told) &&
	       init.cap.max_send_wr >= cap.max_send_wr &&
	       init.cap.max_recv_wr >= cap.max_recv_wr &&
	       init.cap.max_send_sge >= cap.max_send_sge &&
	       init.cap.max_recv_sge >= cap.max_recv_sge &&
	       init.cap.max_inline_data >= cap.max_inline_data &&
	       !memcmp(&told.cap, &init.cap, sizeof(cap)) &&
	       !memcmp(&attr.cap, &init.cap, sizeof(cap));
	return !ibv_destroy_qp(qp) && good;
}

static void run_create(void)
{
	struct ibv_device_attr d;
	struct ibv_cq *cq;

	must(!ibv_query_device(A.ctx, &d), "query_device");
	outcome(granted((struct ibv_qp_cap) { 1, 1, 1, 1, 0 }), "the smallest QP");
	outcome(granted((struct ibv_qp_cap) { 0, 0, 0, 0, 0 }), "a QP without queues");
	outcome(granted((struct ibv_qp_cap) { 16, 0, 1, 0, 0 }), "a QP that does not receive");
	outcome(granted((struct ibv_qp_cap) { 0, 16, 0, 1, 0 }), "a QP that does not send");
	outcome(granted((struct ibv_qp_cap) { 16, 16, 0, 0, 0 }), "a QP without SGEs");
	outcome(granted((struct ibv_qp_cap) { 3, 5, 7, 9, 1000 }), "odd numbers");
	outcome(granted((struct ibv_qp_cap) { d.max_qp_wr, 1, 1, 1, 0 }) &&
		granted((struct ibv_qp_cap) { 1, d.max_qp_wr, 1, 1, 0 }),
		"as deep as query_device says");
	outcome(granted((struct ibv_qp_cap) { 1, 1, d.max_sge, d.max_sge, 0 }),
		"as many SGEs as query_device says");
	outcome(refused((struct ibv_qp_cap) { d.max_qp_wr + 1, 1, 1, 1, 0 }, IBV_QPT_RC, EINVAL) &&
		refused((struct ibv_qp_cap) { 1, d.max_qp_wr + 1, 1, 1, 0 }, IBV_QPT_RC, EINVAL) &&
		refused((struct ibv_qp_cap) { -1, 1, 1, 1, 0 }, IBV_QPT_RC, EINVAL) &&
		refused((struct ibv_qp_cap) { 1, 0x80000000, 1, 1, 0 }, IBV_QPT_RC, EINVAL),
		"too deep: EINVAL");
	outcome(refused((struct ibv_qp_cap) { 1, 1, d.max_sge + 1, 1, 0 }, IBV_QPT_RC, EINVAL) &&
		refused((struct ibv_qp_cap) { 1, 1, 1, d.max_sge + 1, 0 }, IBV_QPT_RC, EINVAL) &&
		refused((struct ibv_qp_cap) { 1, 1, -1, 1, 0 }, IBV_QPT_RC, EINVAL) &&
		refused((struct ibv_qp_cap) { 1, 1, 0x10000001, 0x10000001, 0 }, IBV_QPT_RC, EINVAL),
		"too many SGEs: EINVAL");
	outcome(refused((struct ibv_qp_cap) { 1, 1, 1, 1, 65536 }, IBV_QPT_RC, EINVAL) &&
		refused((struct ibv_qp_cap) { 1, 1, 1, 1, -16 }, IBV_QPT_RC, EINVAL),
		"too much inline data: EINVAL");
	outcome(refused((struct ibv_qp_cap) { 1, 1, 1, 1, 0 }, 99, EOPNOTSUPP),
		"a type nobody knows");
	cq = ibv_create_cq(A.ctx, 0, NULL, NULL, 0);
	outcome(!cq && errno == EINVAL, "a CQ of nothing: EINVAL");
	cq = ibv_create_cq(A.ctx, d.max_cqe + 1, NULL, NULL, 0);
	outcome(!cq && errno == EINVAL, "too large a CQ: EINVAL");
	cq = ibv_create_cq(A.ctx, 16, NULL, NULL, 1000);
	outcome(!cq && errno == EINVAL, "no such completion vector: EINVAL");
	cq = ibv_create_cq(A.ctx, d.max_cqe, NULL, NULL, 0);
	outcome(cq && !ibv_destroy_cq(cq), "as large a CQ as query_device says");
	outcome(ibv_dealloc_pd(A.pd) == EBUSY, "a PD in use: EBUSY");
}

/* --- transitions -------------------------------------------------------------------- */

/* IBTA vol. 1 table 91, RC: required and optional attributes. */
struct transition {
	int from, to;
	int required, optional;
};

#define ALL_SET	(IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER)
static const struct transition table[] = {
	{ IBV_QPS_RESET, IBV_QPS_RESET, 0, 0 },
	{ IBV_QPS_RESET, IBV_QPS_INIT, M_INIT, 0 },
	{ IBV_QPS_INIT, IBV_QPS_INIT, 0, M_INIT },
	{ IBV_QPS_INIT, IBV_QPS_RTR, M_RTR, IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX },
	{ IBV_QPS_RTR, IBV_QPS_RTS, M_RTS, ALL_SET },
	{ IBV_QPS_RTS, IBV_QPS_RTS, 0, ALL_SET },
	{ IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
	{ IBV_QPS_SQD, IBV_QPS_RTS, 0, ALL_SET },
	{ IBV_QPS_SQD, IBV_QPS_SQD, 0, IBV_QP_PORT | IBV_QP_AV | IBV_QP_TIMEOUT |
	  IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC |
	  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX |
	  IBV_QP_MIN_RNR_TIMER },
};

/* Everything that there is but what rove does not have: path migration. */
static const int bits[] = {
	IBV_QP_CUR_STATE, IBV_QP_EN_SQD_ASYNC_NOTIFY, IBV_QP_ACCESS_FLAGS,
	IBV_QP_PKEY_INDEX, IBV_QP_PORT, IBV_QP_QKEY, IBV_QP_AV, IBV_QP_PATH_MTU,
	IBV_QP_TIMEOUT, IBV_QP_RETRY_CNT, IBV_QP_RNR_RETRY, IBV_QP_RQ_PSN,
	IBV_QP_MAX_QP_RD_ATOMIC, IBV_QP_MIN_RNR_TIMER, IBV_QP_SQ_PSN,
	IBV_QP_MAX_DEST_RD_ATOMIC, IBV_QP_CAP, IBV_QP_DEST_QPN,
};

#define NBITS (sizeof(bits) / sizeof(*bits))
static const int states[] = {
	IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD,
	IBV_QPS_ERR,
};

#define NSTATES (sizeof(states) / sizeof(*states))
static const char *const name[] = {
	"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR",
};

static const struct transition *find(int from, int to)
{
	static struct transition t;
	unsigned int i;

	for (i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (table[i].from == from && table[i].to == to)
			return &table[i];
	/* from anywhere, but from RESET to ERR */
	t = (struct transition) { from, to, 0, 0 };
	if (to == IBV_QPS_RESET || (to == IBV_QPS_ERR && from != IBV_QPS_RESET))
		return &t;
	return NULL;
}

static bool attempt(struct ibv_qp *qp, int from, int to, int mask, bool legal)
{
	struct ibv_qp_attr attr = good_attr(&A, &B, qp->qp_num);
	int err, after;

	attr.qp_state = to;
	attr.cur_qp_state = from;
	err = ibv_modify_qp(qp, &attr, mask | IBV_QP_STATE);
	after = state_of(qp);
	if (legal ? !err && after == to : err == EINVAL && after == from) {
		if (legal)
			bring_to(&A, &B, qp, from);
		return true;
	}
	note("%s to %s with %#x is %slegal: error %d, state %s\n", name[from],
	     name[to], mask, legal ? "" : "not ", err,
	     after < 0 ? "?" : name[after]);
	bring_to(&A, &B, qp, from);
	return false;
}

static void transition(struct ibv_qp *qp, int from, int to)
{
	const struct transition *t = find(from, to);
	bool good = true;
	char what[64];
	unsigned int i;

	bring_to(&A, &B, qp, from);
	if (!t) {
		good = attempt(qp, from, to, 0, false) &
		       attempt(qp, from, to, M_INIT, false) &
		       attempt(qp, from, to, M_RTR, false) &
		       attempt(qp, from, to, M_RTS, false);
	} else {
		good = attempt(qp, from, to, t->required, true) &
		       attempt(qp, from, to, t->required | t->optional, true);
		for (i = 0; i < NBITS; i++) {
			if (bits[i] & t->required)
				good &= attempt(qp, from, to,
						t->required & ~bits[i], false);
			else
				good &= attempt(qp, from, to,
						t->required | bits[i],
						bits[i] & t->optional);
		}
	}
	snprintf(what, sizeof(what), "%s to %s is %s", name[from], name[to],
		 t ? "legal, with the right attributes" : "refused");
	outcome(good, "%s", what);
}

struct value {
	const char *what;
	int at, mask;
	void (*spoil)(struct ibv_qp_attr *attr);
};

static void v_timeout(struct ibv_qp_attr *a) { a->timeout = 32; }
static void v_retry(struct ibv_qp_attr *a) { a->retry_cnt = 8; }
static void v_rnr(struct ibv_qp_attr *a) { a->rnr_retry = 8; }
static void v_min_rnr(struct ibv_qp_attr *a) { a->min_rnr_timer = 32; }
static void v_rd(struct ibv_qp_attr *a) { a->max_rd_atomic = 255; }
static void v_dest_rd(struct ibv_qp_attr *a) { a->max_dest_rd_atomic = 255; }
static void v_mtu0(struct ibv_qp_attr *a) { a->path_mtu = 0; }
static void v_mtu6(struct ibv_qp_attr *a) { a->path_mtu = 6; }
static void v_mtu5(struct ibv_qp_attr *a) { a->path_mtu = IBV_MTU_4096; }
static void v_qpn(struct ibv_qp_attr *a) { a->dest_qp_num = 1 << 24; }
static void v_pkey(struct ibv_qp_attr *a) { a->pkey_index = 1; }
static void v_port0(struct ibv_qp_attr *a) { a->port_num = 0; }
static void v_port2(struct ibv_qp_attr *a) { a->port_num = 2; }
static void v_grh(struct ibv_qp_attr *a) { a->ah_attr.is_global = 0; }
static void v_ahport(struct ibv_qp_attr *a) { a->ah_attr.port_num = 2; }
static void v_dgid(struct ibv_qp_attr *a) { memset(&a->ah_attr.grh.dgid, 0, 16); }
static void v_sgid(struct ibv_qp_attr *a) { a->ah_attr.grh.sgid_index = 200; }
static void v_cur(struct ibv_qp_attr *a) { a->cur_qp_state = IBV_QPS_INIT; }
static void v_family(struct ibv_qp_attr *a)
{
	memset(&a->ah_attr.grh.dgid, 0, 16);
	a->ah_attr.grh.dgid.raw[0] = 0xfd;
	a->ah_attr.grh.dgid.raw[15] = 2;
}

static const struct value values[] = {
	{ "pkey_index 1", IBV_QPS_INIT, M_INIT, v_pkey },
	{ "port 0", IBV_QPS_INIT, M_INIT, v_port0 },
	{ "port 2", IBV_QPS_INIT, M_INIT, v_port2 },
	{ "path_mtu 0", IBV_QPS_RTR, M_RTR, v_mtu0 },
	{ "path_mtu 6", IBV_QPS_RTR, M_RTR, v_mtu6 },
	{ "path_mtu 4096 on a netdev of 1500", IBV_QPS_RTR, M_RTR, v_mtu5 },
	{ "dest_qp_num 2^24", IBV_QPS_RTR, M_RTR, v_qpn },
	{ "max_dest_rd_atomic 255", IBV_QPS_RTR, M_RTR, v_dest_rd },
	{ "min_rnr_timer 32", IBV_QPS_RTR, M_RTR, v_min_rnr },
	{ "no GRH", IBV_QPS_RTR, M_RTR, v_grh },
	{ "an address on port 2", IBV_QPS_RTR, M_RTR, v_ahport },
	{ "no destination", IBV_QPS_RTR, M_RTR, v_dgid },
	{ "a source GID that is not there", IBV_QPS_RTR, M_RTR, v_sgid },
	{ "from IPv4 to IPv6", IBV_QPS_RTR, M_RTR, v_family },
	{ "timeout 32", IBV_QPS_RTS, M_RTS, v_timeout },
	{ "retry_cnt 8", IBV_QPS_RTS, M_RTS, v_retry },
	{ "rnr_retry 8", IBV_QPS_RTS, M_RTS, v_rnr },
	{ "max_rd_atomic 255", IBV_QPS_RTS, M_RTS, v_rd },
	{ "a wrong current state", IBV_QPS_RTS, M_RTS | IBV_QP_CUR_STATE, v_cur },
};

static void run_modify(void)
{
	struct ibv_qp *qp = create_qp(&A, 16);
	struct ibv_qp_attr attr;
	unsigned int i, j;
	char what[96];
	int err, from;

	must(qp, "create_qp");
	for (i = 0; i < NSTATES; i++)
		for (j = 0; j < NSTATES; j++)
			transition(qp, states[i], states[j]);
	for (i = 0; i < sizeof(values) / sizeof(*values); i++) {
		const struct value *v = &values[i];

		from = v->at - 1;
		bring_to(&A, &B, qp, from);
		attr = good_attr(&A, &B, qp->qp_num);
		attr.qp_state = v->at;
		v->spoil(&attr);
		err = ibv_modify_qp(qp, &attr, v->mask | IBV_QP_STATE);
		if (err != EINVAL || state_of(qp) != from)
			note("error %d, state %d\n", err, state_of(qp));
		snprintf(what, sizeof(what), "%s: refused", v->what);
		/* which error a GID index gets is for the RDMA core to say */
		outcome((v->spoil == v_sgid ? err : err == EINVAL) &&
			state_of(qp) == from, "%s", what);
		/* nothing of it has stayed */
		if (modify(&A, &B, qp, v->at, v->mask & ~IBV_QP_CUR_STATE))
			outcome(false, "and right after that, done right");
	}
	bring_to(&A, &B, qp, IBV_QPS_RTS);
	err = modify(&A, &B, qp, IBV_QPS_SQE, 0);
	outcome(err == EINVAL, "RTS to SQE is refused");
	err = modify(&A, &B, qp, 7, 0);
	outcome(err == EINVAL, "a state that does not exist is refused");
	ibv_destroy_qp(qp);
}

static void run_query(void)
{
	struct ibv_qp *qp = create_qp(&A, 16);
	struct ibv_qp_attr want, is;
	struct ibv_qp_init_attr init;

	must(qp, "create_qp");
	want = good_attr(&A, &B, qp->qp_num);
	outcome(state_of(qp) == IBV_QPS_RESET, "a new QP is in RESET");
	bring_to(&A, &B, qp, IBV_QPS_RTS);
	memset(&is, 0xa5, sizeof(is));
	memset(&init, 0xa5, sizeof(init));
	must(!ibv_query_qp(qp, &is, -1 & 0x1fffff, &init), "query_qp");
	outcome(is.qp_state == IBV_QPS_RTS && is.cur_qp_state == IBV_QPS_RTS, "state");
	outcome(is.path_mtu == want.path_mtu, "path MTU");
	outcome(is.rq_psn == want.rq_psn && is.sq_psn == want.sq_psn, "PSNs");
	outcome(is.dest_qp_num == want.dest_qp_num, "destination");
	outcome(is.qp_access_flags == want.qp_access_flags, "access flags");
	outcome(is.max_rd_atomic == want.max_rd_atomic &&
		is.max_dest_rd_atomic == want.max_dest_rd_atomic, "READs and atomics");
	outcome(is.timeout == want.timeout && is.retry_cnt == want.retry_cnt &&
		is.rnr_retry == want.rnr_retry &&
		is.min_rnr_timer == want.min_rnr_timer, "timers and retries");
	outcome(is.port_num == 1 && is.pkey_index == 0 && !is.sq_draining, "port, P_Key");
	/* the RDMA core takes the hop limit from the route, if there is one */
	outcome(is.ah_attr.is_global && is.ah_attr.port_num == 1 &&
		!memcmp(&is.ah_attr.grh.dgid, &want.ah_attr.grh.dgid, 16) &&
		is.ah_attr.grh.sgid_index == want.ah_attr.grh.sgid_index &&
		is.ah_attr.grh.traffic_class == want.ah_attr.grh.traffic_class &&
		is.ah_attr.grh.flow_label == want.ah_attr.grh.flow_label &&
		is.ah_attr.grh.hop_limit, "address vector");
	outcome(init.qp_type == IBV_QPT_RC && init.sq_sig_all == 1 &&
		init.send_cq == A.cq && init.recv_cq == A.cq && !init.srq,
		"what it was created with");
	outcome(init.cap.max_send_wr >= 16 && init.cap.max_recv_wr >= 16 &&
		init.cap.max_send_sge >= 2 && init.cap.max_inline_data >= 64,
		"capacities");
	modify(&A, &B, qp, IBV_QPS_SQD, 0);
	must(!ibv_query_qp(qp, &is, IBV_QP_STATE, &init), "query_qp");
	outcome(is.qp_state == IBV_QPS_SQD && !is.sq_draining, "an idle SQD is drained");
	ibv_destroy_qp(qp);
}

/* --- answers that cannot be written ---------------------------------------------------- */

#define CORE_QP		sizeof(struct ib_uverbs_create_qp_resp)
#define CORE_CQ		sizeof(struct ib_uverbs_create_cq_resp)
#define CORE_CTX	sizeof(struct ib_uverbs_get_context_resp)

static char *pages;
static size_t page;

/*
 * Where an answer whose first @core bytes are the RDMA core's goes: 0: nothing
 * of it can be written, 1: the driver's part cannot, 2: the core's part cannot.
 */
static void *answer(int where, size_t core)
{
	mprotect(pages, page, where == 1 ? PROT_READ | PROT_WRITE : PROT_READ);
	mprotect(pages + page, page, where == 2 ? PROT_READ | PROT_WRITE : PROT_NONE);
	return pages + page - core;
}

static int command(int fd, int number, void *cmd, size_t len, size_t out)
{
	struct ib_uverbs_cmd_hdr *hdr = cmd;

	*hdr = (struct ib_uverbs_cmd_hdr) { number, len / 4, out / 4 };
	return write(fd, cmd, len) == (ssize_t)len ? 0 : errno;
}

static int fault_cq(int where)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_create_cq cq;
	} cmd = { .cq = { .cqe = 100, .comp_channel = -1 } };

	cmd.cq.response = (uintptr_t)answer(where, CORE_CQ);
	return command(A.ctx->cmd_fd, IB_USER_VERBS_CMD_CREATE_CQ, &cmd,
		       sizeof(cmd), CORE_CQ + sizeof(struct rove_create_cq_resp));
}

static int fault_qp(int where)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_create_qp qp;
	} cmd = {
		.qp = {
			.pd_handle = A.pd->handle,
			.send_cq_handle = A.cq->handle,
			.recv_cq_handle = A.cq->handle,
			.max_send_wr = 16,
			.max_recv_wr = 16,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.qp_type = IBV_QPT_RC,
		},
	};

	cmd.qp.response = (uintptr_t)answer(where, CORE_QP);
	return command(A.ctx->cmd_fd, IB_USER_VERBS_CMD_CREATE_QP, &cmd,
		       sizeof(cmd), CORE_QP + sizeof(struct rove_create_qp_resp));
}

static int fault_resize(int where)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_resize_cq cq;
	} cmd = { .cq = { .cq_handle = A.cq->handle, .cqe = 100 } };
	size_t core = sizeof(struct ib_uverbs_resize_cq_resp);

	cmd.cq.response = (uintptr_t)answer(where, core);
	return command(A.ctx->cmd_fd, IB_USER_VERBS_CMD_RESIZE_CQ, &cmd,
		       sizeof(cmd), core + sizeof(struct rove_create_cq_resp));
}

static int fault_context(int where)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_get_context ctx;
	} cmd = {};
	char path[80];
	int fd, ret;

	snprintf(path, sizeof(path), "/dev/infiniband/%s", A.ctx->device->dev_name);
	fd = open(path, O_RDWR | O_CLOEXEC);
	must(fd >= 0, path);
	cmd.ctx.response = (uintptr_t)answer(where, CORE_CTX);
	ret = command(fd, IB_USER_VERBS_CMD_GET_CONTEXT, &cmd, sizeof(cmd),
		      CORE_CTX + sizeof(struct rove_alloc_ucontext_resp));
	close(fd);
	return ret;
}

static void fault(const char *what, int (*call)(int where), bool core_too, int n)
{
	static const char *const part[] = {
		"nothing can be written", "the driver's part cannot be written",
		"the core's part cannot be written",
	};
	char name[128];
	int where, i, err = EFAULT;

	for (where = 0; where < (core_too ? 3 : 2); where++) {
		for (i = 0; i < n && err == EFAULT; i++)
			err = call(where);
		if (err != EFAULT)
			note("%s\n", strerror(err));
		snprintf(name, sizeof(name), "%s: %s", what, part[where]);
		outcome(err == EFAULT, "%s", name);
		err = EFAULT;
	}
}

static void run_fault(int n)
{
	page = sysconf(_SC_PAGESIZE);
	pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(pages != MAP_FAILED, "mmap");
	memset(pages, 0, 2 * page);
	fault("create_cq", fault_cq, true, n);
	fault("create_qp", fault_qp, true, n);
	fault("get_context", fault_context, true, n / 4);
	/* once the driver has resized there is no way back: not tested */
	fault("resize_cq", fault_resize, false, n);
	outcome(!ibv_resize_cq(A.cq, 500), "and then it works");
}

/* --- destroyed in the middle of something ------------------------------------------------ */

static void pair(void)
{
	A.qp = create_qp(&A, 64);
	B.qp = create_qp(&B, 64);
	must(A.qp && B.qp, "create_qp");
}

static void connect_to(struct end *e, struct end *peer, uint32_t dest, int timeout,
		       int min_rnr_timer)
{
	struct ibv_qp_attr attr = good_attr(e, peer, dest);
	int err;

	attr.timeout = timeout;
	attr.min_rnr_timer = min_rnr_timer;
	attr.rq_psn = 0;
	attr.sq_psn = 0;
	attr.rnr_retry = 7;
	attr.retry_cnt = 7;
	attr.qp_state = IBV_QPS_INIT;
	err = ibv_modify_qp(e->qp, &attr, M_INIT | IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTR;
	err = err ?: ibv_modify_qp(e->qp, &attr, M_RTR | IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	err = err ?: ibv_modify_qp(e->qp, &attr, M_RTS | IBV_QP_STATE);
	errno = err;
	must(!err, "connect");
}

static void post(struct end *e, struct end *peer, enum ibv_wr_opcode op, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)e->buf, len, e->mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = op,
		.wr.rdma = { (uintptr_t)peer->buf, peer->mr->rkey },
	}, *bad;

	must(!ibv_post_send(e->qp, &wr, &bad), "post_send");
}

/* Milliseconds it took. */
static int destroy(struct end *e)
{
	uint64_t start = now_ms();
	struct ibv_wc wc[16];

	must(!ibv_destroy_qp(e->qp), "destroy_qp");
	while (ibv_poll_cq(e->cq, 16, wc) > 0)
		;
	return now_ms() - start;
}

static int larger(int a, int b)
{
	return a > b ? a : b;
}

static void timers(const char *what, int n, int timeout, int rnr,
		   enum ibv_wr_opcode op, bool peer_first)
{
	int i, j, worst = 0;
	char name[128];

	for (i = 0; i < n; i++) {
		pair();
		connect_to(&A, &B, B.qp->qp_num, timeout, rnr);
		connect_to(&B, &A, A.qp->qp_num, timeout, rnr);
		if (peer_first)
			worst = larger(worst, destroy(&B));
		for (j = 0; j < 20; j++)
			post(&A, &B, op, 5000);
		usleep(rand() % 6000);
		worst = larger(worst, destroy(&A));
		if (!peer_first)
			worst = larger(worst, destroy(&B));
	}
	note("the slowest destroy took %d ms\n", worst);
	snprintf(name, sizeof(name), "destroyed %s", what);
	outcome(worst < PROMPT_MS, "%s", name);
}

static void run_timers(int n)
{
	timers("while the peer is not ready, 10 us", n, 14, 1, IBV_WR_SEND, false);
	timers("while the peer is not ready, 655 ms", n, 14, 0, IBV_WR_SEND, false);
	timers("while it retries what nobody answers, 4 us", n, 1, 1, IBV_WR_RDMA_WRITE, true);
	timers("while it retries what nobody answers, 4 ms", n, 10, 1, IBV_WR_RDMA_READ, true);
	timers("while READs are answered", n, 14, 1, IBV_WR_RDMA_READ, false);
	timers("while WRITEs arrive", n, 14, 1, IBV_WR_RDMA_WRITE, false);
}

/* The qdisc is somebody else's to have set up. */
static void run_stuck(int n)
{
	int i, j, worst = 0;

	for (i = 0; i < n; i++) {
		pair();
		connect_to(&A, &B, B.qp->qp_num, 10, 1);
		connect_to(&B, &A, A.qp->qp_num, 10, 1);
		for (j = 0; j < 32; j++) {
			post(&A, &B, IBV_WR_RDMA_WRITE, 60000);
			post(&B, &A, j & 1 ? IBV_WR_SEND : IBV_WR_RDMA_READ, 60000);
		}
		usleep(rand() % 20000);
		worst = larger(worst, destroy(&A));
		worst = larger(worst, destroy(&B));
	}
	note("the slowest destroy took %d ms\n", worst);
	outcome(worst < PROMPT_MS, "destroyed while the network holds packets");
}

static void *end_upon_message(void *unused)
{
	struct ibv_wc wc;

	while (!ibv_poll_cq(B.cq, 1, &wc))
		;
	destroy(&B);
	return NULL;
}

/*
 * As programs do that have got their last message: the sender, who has nobody left
 * to try again with, is to get its acknowledgment.
 */
static void run_last(int n)
{
	struct ibv_sge sge = { (uintptr_t)B.buf, 64, B.mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;
	struct ibv_wc wc;
	pthread_t thread;
	int i, lost = 0;

	for (i = 0; i < n; i++) {
		pair();
		connect_to(&A, &B, B.qp->qp_num, 10, 1);
		connect_to(&B, &A, A.qp->qp_num, 10, 1);
		must(!ibv_post_recv(B.qp, &wr, &bad), "post_recv");
		must(!pthread_create(&thread, NULL, end_upon_message, NULL),
		     "thread");
		post(&A, &B, IBV_WR_SEND, 64);
		while (!ibv_poll_cq(A.cq, 1, &wc))
			;
		lost += wc.status != IBV_WC_SUCCESS;
		pthread_join(thread, NULL);
		destroy(&A);
	}
	note("%d of %d senders were left alone\n", lost, n);
	outcome(!lost, "destroyed upon the last message, which is acknowledged");
}

int main(int argc, char **argv)
{
	const char *mode;
	int n;

	if (argc < 6) {
		fprintf(stderr, "usage: %s DEV GID DEV GID MODE [NUMBER]\n", *argv);
		return 2;
	}
	mode = argv[5];
	n = argc > 6 ? atoi(argv[6]) : 100;
	setvbuf(stdout, NULL, _IOLBF, 0);
	end_open(&A, argv[1], atoi(argv[2]));
	end_open(&B, argv[3], atoi(argv[4]));
	if (!strcmp(mode, "loop"))
		run_loop(n);
	else if (!strcmp(mode, "create"))
		run_create();
	else if (!strcmp(mode, "modify"))
		run_modify();
	else if (!strcmp(mode, "query"))
		run_query();
	else if (!strcmp(mode, "fault"))
		run_fault(n);
	else if (!strcmp(mode, "timers"))
		run_timers(n);
	else if (!strcmp(mode, "last"))
		run_last(n);
	else
		run_stuck(n);
	printf("1..%d\n", count);
	return failed > 0;
}
