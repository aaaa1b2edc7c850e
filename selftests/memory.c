// SPDX-License-Identifier: GPL-2.0
/*
 * memory.c - memory windows and regions that change: what they must do, and what
 * they must refuse (hazards 6, 21, 27, 53)
 *
 *	memory DEV-A GID-INDEX-A DEV-B GID-INDEX-B
 *
 * b has the windows, a uses them.
 */
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "pair.h"

#define LEN	(64 * KB)

static char *mem, *near;
static struct ibv_mr *mr, *src;	/* of b over mem, of a over near */

#define BINDABLE	(ALL | IBV_ACCESS_MW_BIND)

/* --- windows ------------------------------------------------------------------- */

/* Post a BIND_MW on @e's QP; the status of its completion, -1: none, -2: refused. */
static int bind_on(struct ibv_mw *mw, uint32_t rkey, struct ibv_mr *of, uint64_t addr,
		   uint64_t len, unsigned int access)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_BIND_MW,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_mw = { mw, rkey, { of, addr, len, access } },
	}, *bad;
	struct ibv_mw_bind one = {
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = { of, addr, len, access },
	};

	if (mw->type == IBV_MW_TYPE_1 ? ibv_bind_mw(b.qp, mw, &one) :
					ibv_post_send(b.qp, &wr, &bad))
		return -2;
	return done(b.cq, NULL);
}

static int invalidate(uint32_t key)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_LOCAL_INV,
		.send_flags = IBV_SEND_SIGNALED,
		.invalidate_rkey = key,
	}, *bad;

	return ibv_post_send(b.qp, &wr, &bad) ? -1 : done(b.cq, NULL);
}

static int send_inv(uint32_t key)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_SEND_WITH_INV,
		.send_flags = IBV_SEND_SIGNALED,
		.invalidate_rkey = key,
	}, *bad;

	if (post_recv(&b, NULL, 0, 0) || ibv_post_send(a.qp, &wr, &bad))
		return -1;
	return done(a.cq, NULL);
}

static int use(enum ibv_wr_opcode op, uint64_t addr, uint32_t len, uint32_t key)
{
	return rdma(&a, a.qp, op, near, len, src->lkey, addr, key);
}

/* WRITE to a window, READ it back. */
static bool works(uint64_t addr, char *there, uint32_t len, uint32_t key)
{
	scramble(near, len);
	if (use(IBV_WR_RDMA_WRITE, addr, len, key) || memcmp(near, there, len))
		return false;
	scramble(there, len);
	return !use(IBV_WR_RDMA_READ, addr, len, key) && !memcmp(near, there, len);
}

static void t_type1(void)
{
	struct ibv_mw *mw = ibv_alloc_mw(b.pd, IBV_MW_TYPE_1);
	uint32_t old;

	CHECK(mw);
	CHECK(!bind_on(mw, 0, mr, (uintptr_t)mem + 100, 9000, ALL));
	CHECK(works((uintptr_t)mem + 100, mem + 100, 9000, mw->rkey));
	old = mw->rkey;
	CHECK(!bind_on(mw, 0, mr, (uintptr_t)mem + 20000, 500, ALL));
	CHECK(mw->rkey != old && mw->rkey >> 8 == old >> 8);
	CHECK(works((uintptr_t)mem + 20000, mem + 20000, 500, mw->rkey));
	CHECK(use(IBV_WR_RDMA_WRITE, (uintptr_t)mem + 20000, 500, old) ==
	      IBV_WC_REM_ACCESS_ERR);
	CHECK(!ibv_dealloc_mw(mw));
}

static void t_type1_unbind(void)
{
	struct ibv_mw *mw = ibv_alloc_mw(b.pd, IBV_MW_TYPE_1);

	CHECK(mw && !bind_on(mw, 0, mr, (uintptr_t)mem, 500, ALL));
	CHECK(!bind_on(mw, 0, mr, (uintptr_t)mem, 0, 0));
	CHECK(use(IBV_WR_RDMA_READ, (uintptr_t)mem, 8, mw->rkey) ==
	      IBV_WC_REM_ACCESS_ERR);
	CHECK(!ibv_dealloc_mw(mw));
}

/* A parent domain is the same domain; for type 1 libibverbs thinks otherwise. */
static void t_parent(void)
{
	struct ibv_parent_domain_init_attr attr = { .pd = b.pd };
	struct ibv_pd *parent = ibv_alloc_parent_domain(b.ctx, &attr);
	struct ibv_mw *mw = ibv_alloc_mw(b.pd, IBV_MW_TYPE_2);
	struct ibv_mr *of;
	uint32_t key;

	CHECK(parent && mw);
	key = ibv_inc_rkey(mw->rkey);
	of = ibv_reg_mr(parent, mem, 9000, BINDABLE);
	CHECK(of && !bind_on(mw, key, of, (uintptr_t)mem + 100, 4000, ALL));
	CHECK(works((uintptr_t)mem + 100, mem + 100, 4000, key));
	CHECK(!ibv_dealloc_mw(mw) && !ibv_dereg_mr(of) && !ibv_dealloc_pd(parent));
}

static void t_type2(void)
{
	struct ibv_mw *mw = ibv_alloc_mw(b.pd, IBV_MW_TYPE_2);
	uint32_t key;
	int i;

	CHECK(mw);
	key = mw->rkey;
	for (i = 0; i < 300; i++) {	/* the low 8 bits come round */
		key = ibv_inc_rkey(key);
		CHECK(!bind_on(mw, key, mr, (uintptr_t)mem + i, 4000, ALL));
		CHECK(works((uintptr_t)mem + i, mem + i, 4000, key));
		if (i & 1)
			CHECK(!send_inv(key) && !done(b.cq, NULL));
		else
			CHECK(!invalidate(key));
	}
	CHECK(use(IBV_WR_RDMA_READ, (uintptr_t)mem + i, 8, key) ==
	      IBV_WC_REM_ACCESS_ERR);
	CHECK(!ibv_dealloc_mw(mw));
}

static void t_zero_based(void)
{
	struct ibv_mw *mw = ibv_alloc_mw(b.pd, IBV_MW_TYPE_2);
	uint32_t key;

	CHECK(mw);
	key = ibv_inc_rkey(mw->rkey);
	CHECK(!bind_on(mw, key, mr, (uintptr_t)mem + 5000, 3000,
		       ALL | IBV_ACCESS_ZERO_BASED));
	CHECK(works(0, mem + 5000, 3000, key));
	CHECK(works(2999, mem + 7999, 1, key));
	CHECK(use(IBV_WR_RDMA_READ, 2999, 2, key) == IBV_WC_REM_ACCESS_ERR);
	CHECK(!ibv_dealloc_mw(mw));
}

static void t_beyond(void)
{
	static const struct { int64_t off; uint32_t len; } bad[] = {
		{ -1, 8 }, { 993, 8 }, { 1000, 1 }, { -1000, 3000 },
	};
	uint32_t i, key;

	for (i = 0; i < 4; i++) {
		struct ibv_mw *mw = ibv_alloc_mw(b.pd, IBV_MW_TYPE_2);

		CHECK(mw);
		key = ibv_inc_rkey(mw->rkey);
		CHECK(!bind_on(mw, key, mr, (uintptr_t)mem + 8192, 1000, ALL));
		CHECK(use(IBV_WR_RDMA_WRITE, (uintptr_t)mem + 8192 + bad[i].off,
			  bad[i].len, key) == IBV_WC_REM_ACCESS_ERR);
		CHECK(!ibv_dealloc_mw(mw));
		pair_close();
		pair_open();
	}
}

static void t_rights(void)
{
	struct ibv_mw *mw = ibv_alloc_mw(b.pd, IBV_MW_TYPE_2);
	uint32_t key = ibv_inc_rkey(mw->rkey);

	CHECK(!bind_on(mw, key, mr, (uintptr_t)mem, 100, IBV_ACCESS_REMOTE_READ));
	CHECK(!use(IBV_WR_RDMA_READ, (uintptr_t)mem, 100, key));
	CHECK(use(IBV_WR_RDMA_WRITE, (uintptr_t)mem, 100, key) ==
	      IBV_WC_REM_ACCESS_ERR);
	CHECK(!ibv_dealloc_mw(mw));
}

/* A window's key is none for local memory. */
static void t_no_lkey(void)
{
	struct ibv_mw *mw = ibv_alloc_mw(b.pd, IBV_MW_TYPE_2);
	uint32_t key = ibv_inc_rkey(mw->rkey);

	CHECK(!bind_on(mw, key, mr, (uintptr_t)mem, 100, ALL));
	CHECK(rdma(&b, b.qp, IBV_WR_RDMA_WRITE, mem, 100, key, (uintptr_t)near,
		   src->rkey) == IBV_WC_LOC_PROT_ERR);
	CHECK(!ibv_dealloc_mw(mw));
}

/* Each of these binds must fail, and its QP with it (hazards 6, 53). */
static void t_refused(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(b.ctx);
	struct ibv_mr *other = ibv_reg_mr(pd, mem, LEN, BINDABLE);
	struct ibv_mr *plain = ibv_reg_mr(b.pd, mem, LEN, ALL);
	struct ibv_mr *ro = ibv_reg_mr(b.pd, mem, LEN, IBV_ACCESS_REMOTE_READ |
				       IBV_ACCESS_MW_BIND);
	struct ibv_mr fake = *other;
	uint64_t at = (uintptr_t)mem;
	unsigned int i, type;

	CHECK(other && plain && ro);
	fake.pd = b.pd;		/* the library does not see it */
	const struct {
		struct ibv_mr *mr;
		uint64_t addr, len;
		unsigned int access;
	} bad[] = {
		{ &fake, at, 100, ALL },
		{ plain, at, 100, ALL },
		{ ro, at, 100, IBV_ACCESS_REMOTE_WRITE },
		{ ro, at, 100, IBV_ACCESS_REMOTE_ATOMIC },
		{ mr, at, LEN + 1, ALL },
		{ mr, at - 1, 100, ALL },
		{ mr, at + LEN, 1, ALL },
		{ mr, at + 100, -100ul, ALL },
		{ mr, -1024ul, 1024, ALL },
		{ mr, at, 100, ALL | IBV_ACCESS_ON_DEMAND },
	};

	for (type = IBV_MW_TYPE_1; type <= IBV_MW_TYPE_2; type++) {
		for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
			struct ibv_mw *mw = ibv_alloc_mw(b.pd, type);
			int ret;

			CHECK(mw);
			ret = bind_on(mw, ibv_inc_rkey(mw->rkey), bad[i].mr,
				      bad[i].addr, bad[i].len, bad[i].access);
			if (ret != IBV_WC_MW_BIND_ERR)
				printf("# type %u, case %u: %d\n", type, i, ret);
			CHECK(ret == IBV_WC_MW_BIND_ERR);
			CHECK(!ibv_dealloc_mw(mw));
			pair_close();
			pair_open();
		}
	}
	CHECK(!ibv_dereg_mr(other) && !ibv_dereg_mr(plain) && !ibv_dereg_mr(ro));
	CHECK(!ibv_dealloc_pd(pd));
}

/* Type 2: bound once only; keys of another window are refused at once. */
static void t_type2_refused(void)
{
	struct ibv_mw *mw = ibv_alloc_mw(b.pd, IBV_MW_TYPE_2);
	uint32_t key = ibv_inc_rkey(mw->rkey);

	CHECK(bind_on(mw, key ^ 0x100, mr, (uintptr_t)mem, 100, ALL) == -2);
	CHECK(!bind_on(mw, key, mr, (uintptr_t)mem, 100, ALL));
	CHECK(bind_on(mw, ibv_inc_rkey(key), mr, (uintptr_t)mem, 100, ALL) ==
	      IBV_WC_MW_BIND_ERR);
	CHECK(!ibv_dealloc_mw(mw));
}

static void t_invalidate_refused(void)
{
	struct ibv_mw *mw = ibv_alloc_mw(b.pd, IBV_MW_TYPE_2);
	struct ibv_mw *one = ibv_alloc_mw(b.pd, IBV_MW_TYPE_1);
	uint32_t key = ibv_inc_rkey(mw->rkey);
	unsigned int i;

	for (i = 0; i < 8; i++) {
		CHECK(!bind_on(mw, key, mr, (uintptr_t)mem, 100, ALL));
		CHECK(!bind_on(one, 0, mr, (uintptr_t)mem, 100, ALL));
		const uint32_t bad[] = { key ^ 1, one->rkey, mr->rkey, 0 };

		if (i < 4)
			CHECK(invalidate(bad[i]) == IBV_WC_MW_BIND_ERR);
		else
			CHECK(send_inv(bad[i - 4]) == IBV_WC_REM_INV_REQ_ERR);
		CHECK(!ibv_dealloc_mw(mw));
		mw = ibv_alloc_mw(b.pd, IBV_MW_TYPE_2);
		key = ibv_inc_rkey(mw->rkey);
		pair_close();
		pair_open();
	}
	CHECK(!ibv_dealloc_mw(mw) && !ibv_dealloc_mw(one));
}

/* Type 2B belongs to its QP, even when that is gone (hazard 21). */
static void t_other_qp(void)
{
	struct ibv_mw *mw = ibv_alloc_mw(b.pd, IBV_MW_TYPE_2);
	uint32_t key = ibv_inc_rkey(mw->rkey);
	struct ibv_qp *qa, *qb;
	int i;

	CHECK(!bind_on(mw, key, mr, (uintptr_t)mem, 100, ALL));
	CHECK(!use(IBV_WR_RDMA_READ, (uintptr_t)mem, 100, key));
	for (i = 0; i < 2; i++) {
		qa = new_qp(&a);
		qb = new_qp(&b);
		connect_qp(&a, qa, &b, qb->qp_num);
		connect_qp(&b, qb, &a, qa->qp_num);
		CHECK(rdma(&a, qa, IBV_WR_RDMA_READ, near, 100, src->lkey,
			   (uintptr_t)mem, key) == IBV_WC_REM_ACCESS_ERR);
		CHECK(!ibv_destroy_qp(qa) && !ibv_destroy_qp(qb));
		if (!i) {
			pair_close();
			pair_open();
		}
	}
	CHECK(!ibv_dealloc_mw(mw));
}

/* What a window is bound to stays. */
static void t_busy(void)
{
	struct ibv_mr *m = ibv_reg_mr(b.pd, mem, LEN, BINDABLE);
	struct ibv_mw *mw = ibv_alloc_mw(b.pd, IBV_MW_TYPE_2);
	uint32_t key = ibv_inc_rkey(mw->rkey);

	CHECK(!bind_on(mw, key, m, (uintptr_t)mem, 100, ALL));
	CHECK(ibv_dereg_mr(m) == EBUSY);
	CHECK(ibv_rereg_mr(m, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ALL));
	CHECK(works((uintptr_t)mem, mem, 100, key));
	CHECK(!invalidate(key));
	CHECK(!ibv_dereg_mr(m) && !ibv_dealloc_mw(mw));
}

/* A program that ends with windows bound. */
static void t_killed(void)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		execl("/proc/self/exe", "memory", "leave",
		      ibv_get_device_name(a.ctx->device), "now", NULL);
		_exit(127);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
}

/* --- regions that change -------------------------------------------------------- */

/* Every combination of what may change. */
static void t_rereg(void)
{
	char *one = aligned_alloc(4096, LEN), *two = aligned_alloc(4096, LEN);
	struct ibv_pd *pd = ibv_alloc_pd(b.ctx);
	int flags;

	for (flags = 1; flags < 8; flags++) {
		struct ibv_mr *m = ibv_reg_mr(b.pd, one, LEN, IBV_ACCESS_REMOTE_READ);
		bool moved = flags & IBV_REREG_MR_CHANGE_TRANSLATION;
		char *now = moved ? two + 100 : one;
		int ret;

		CHECK(m);
		ret = ibv_rereg_mr(m, flags, flags & IBV_REREG_MR_CHANGE_PD ? pd : NULL,
				   moved ? now : NULL, moved ? 5000 : 0,
				   flags & IBV_REREG_MR_CHANGE_ACCESS ? ALL : 0);
		CHECK(!ret);
		CHECK(m->pd == (flags & IBV_REREG_MR_CHANGE_PD ? pd : b.pd));
		if (moved)
			CHECK(m->addr == now && m->length == 5000);
		scramble(now, 5000);
		ret = use(IBV_WR_RDMA_READ, (uintptr_t)now, 5000, m->rkey);
		if (flags & IBV_REREG_MR_CHANGE_PD) {
			CHECK(ret == IBV_WC_REM_ACCESS_ERR);
		} else {
			CHECK(!ret && !memcmp(near, now, 5000));
			ret = use(IBV_WR_RDMA_WRITE, (uintptr_t)now, 5000, m->rkey);
			CHECK(ret == (flags & IBV_REREG_MR_CHANGE_ACCESS ?
				      IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR));
		}
		CHECK(!ibv_dereg_mr(m));
		pair_close();
		pair_open();
	}
	CHECK(!ibv_dealloc_pd(pd));
	free(one);
	free(two);
}

/* What fails leaves the region as it was (hazard 27). */
static void t_rereg_fails(void)
{
	char *ro = mmap(NULL, LEN, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *m = ibv_reg_mr(b.pd, mem, LEN, ALL);
	struct ibv_mr *r = ibv_reg_mr(b.pd, ro, LEN, IBV_ACCESS_REMOTE_READ);

	CHECK(m && r);
	CHECK(ibv_rereg_mr(m, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, (void *)4096, 8192, 0));
	CHECK(works((uintptr_t)mem, mem, LEN, m->rkey));
	CHECK(ibv_rereg_mr(m, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			   IBV_ACCESS_REMOTE_WRITE));
	CHECK(works((uintptr_t)mem, mem, LEN, m->rkey));
	CHECK(ibv_rereg_mr(m, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, mem, 0, 0));
	CHECK(works((uintptr_t)mem, mem, LEN, m->rkey));
	/* rights that its memory does not give */
	CHECK(ibv_rereg_mr(r, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ALL));
	CHECK(!use(IBV_WR_RDMA_READ, (uintptr_t)ro, LEN, r->rkey));
	CHECK(!ibv_dereg_mr(m) && !ibv_dereg_mr(r));
	munmap(ro, LEN);
}

static volatile bool stop;
static int reregs;
static bool bound;	/* now and then: then it cannot be done */

static void *rereg_thread(void *arg)
{
	struct ibv_mr *m = arg;

	for (; !stop; reregs++) {
		int ret = reregs & 1 ?
			ibv_rereg_mr(m, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				     reregs & 2 ? BINDABLE : BINDABLE & ~IBV_ACCESS_REMOTE_ATOMIC) :
			ibv_rereg_mr(m, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, mem,
				     LEN, 0);

		if (ret && !(bound && errno == EBUSY)) {
			printf("# rereg_mr: %d, errno %d\n", ret, errno);
			stop = true;
			return (void *)1;
		}
	}
	return NULL;
}

/* No access fails while its region is replaced by its like. */
static void t_rereg_traffic(void)
{
	struct ibv_mr *m = ibv_reg_mr(b.pd, mem, LEN, ALL);
	void *ret = (void *)2;
	pthread_t thread;
	bool all = true;
	int i;

	CHECK(m);
	stop = false;
	reregs = 0;
	CHECK(!pthread_create(&thread, NULL, rereg_thread, m));
	for (i = 0; (i < 500 || reregs < 100) && all && !stop; i++)
		all = works((uintptr_t)mem, mem, LEN, m->rkey);
	stop = true;
	CHECK(!pthread_join(thread, &ret) && !ret);
	CHECK(all);
	printf("# %d round trips, %d times registered anew\n", i, reregs);
	CHECK(!ibv_dereg_mr(m));
}

/* Nor does a bind: it finds the one or the other. */
static void t_rereg_bind(void)
{
	struct ibv_mw *mw = ibv_alloc_mw(b.pd, IBV_MW_TYPE_1);
	struct ibv_mr *m = ibv_reg_mr(b.pd, mem, LEN, BINDABLE);
	void *ret = (void *)2;
	pthread_t thread;
	int status = 0, i;

	CHECK(m && mw);
	stop = false;
	reregs = 0;
	bound = true;
	CHECK(!pthread_create(&thread, NULL, rereg_thread, m));
	for (i = 0; (i < 500 || reregs < 100) && !status && !stop; i++)
		status = bind_on(mw, 0, m, (uintptr_t)mem, i & 1 ? 0 : 100,
				 i & 1 ? 0 : IBV_ACCESS_REMOTE_READ);
	stop = true;
	CHECK(!pthread_join(thread, &ret) && !ret);
	bound = false;
	printf("# status %d; %d binds, %d times registered anew or refused\n", status, i, reregs);
	CHECK(!status);
	CHECK(!ibv_dealloc_mw(mw) && !ibv_dereg_mr(m));
}

/* Who names a region of another domain to bind a window to it hinders nobody. */
static void t_foreign_bind(void)
{
	struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_SQE };
	struct ibv_mw *mw = ibv_alloc_mw(b.pd, IBV_MW_TYPE_2);
	struct ibv_pd *pd = ibv_alloc_pd(b.ctx);
	struct ibv_mr *theirs = ibv_reg_mr(pd, mem, LEN, BINDABLE);
	int status = IBV_WC_MW_BIND_ERR, i;
	void *ret = (void *)2;
	struct ibv_mr fake;
	pthread_t thread;

	CHECK(theirs && mw);
	fake = *theirs;
	fake.pd = b.pd;
	/* on UC a bad request ends no connection */
	pair_close();
	pair_type = IBV_QPT_UC;
	pair_open();
	stop = false;
	reregs = 0;
	CHECK(!pthread_create(&thread, NULL, rereg_thread, theirs));
	for (i = 0; (i < 5000 || reregs < 5000) && status == IBV_WC_MW_BIND_ERR && !stop; i++) {
		status = bind_on(mw, ibv_inc_rkey(mw->rkey), &fake, (uintptr_t)mem, 100, ALL);
		if (ibv_modify_qp(b.qp, &rts, IBV_QP_STATE | IBV_QP_CUR_STATE))
			status = -3;
	}
	stop = true;
	CHECK(!pthread_join(thread, &ret) && !ret);
	printf("# status %d; %d binds refused, %d times registered anew\n", status, i, reregs);
	CHECK(status == IBV_WC_MW_BIND_ERR);
	CHECK(!ibv_dealloc_mw(mw) && !ibv_dereg_mr(theirs) && !ibv_dealloc_pd(pd));
	pair_type = IBV_QPT_RC;
}

/* --- a region of nothing -------------------------------------------------------- */

static void t_null(void)
{
	struct ibv_mr *null = ibv_alloc_null_mr(b.pd);
	const uint64_t far = 1ull << 63;
	struct ibv_sge to[3];
	struct ibv_recv_wr rwr = { .sg_list = to, .num_sge = 3 }, *rbad;
	struct ibv_send_wr swr = { .sg_list = to, .num_sge = 3, .opcode = IBV_WR_SEND,
				   .send_flags = IBV_SEND_SIGNALED }, *sbad;
	struct ibv_wc wc;
	int i;

	CHECK(null);
	to[0] = (struct ibv_sge){ (uintptr_t)mem, 10000, mr->lkey };
	to[1] = (struct ibv_sge){ far, 20001, null->lkey };
	to[2] = (struct ibv_sge){ (uintptr_t)mem + 10000, 5000, mr->lkey };

	/* of what is received there nothing is left: the rest is where it belongs */
	scramble(near, 35001);
	CHECK(!ibv_post_recv(b.qp, &rwr, &rbad));
	CHECK(!use(IBV_WR_SEND, 0, 35001, 0));
	CHECK(!done(b.cq, &wc) && wc.byte_len == 35001);
	CHECK(!memcmp(mem, near, 10000) && !memcmp(mem + 10000, near + 30001, 5000));

	/* what is sent from there is zero, whatever was received there */
	memset(near, 0xaa, 35001);
	CHECK(!post_recv(&a, near, 35001, src->lkey));
	CHECK(!ibv_post_send(b.qp, &swr, &sbad));
	CHECK(!done(a.cq, &wc) && wc.byte_len == 35001);
	CHECK(!memcmp(mem, near, 10000) && !memcmp(mem + 10000, near + 30001, 5000));
	for (i = 10000; i < 30001; i++)
		CHECK(!near[i]);

	/* so is a READ into it, which is one all the same */
	CHECK(!done(b.cq, NULL));
	CHECK(!rdma(&b, b.qp, IBV_WR_RDMA_READ, (void *)far, 20000, null->lkey,
		    (uintptr_t)near, src->rkey));
	CHECK(ibv_rereg_mr(null, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ALL));
	CHECK(!ibv_dereg_mr(null));
}

/* It is for local use, up to the end of all addresses, and by its own domain. */
static void t_null_refused(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(b.ctx);
	struct ibv_mr *null = ibv_alloc_null_mr(b.pd), *other = ibv_alloc_null_mr(pd);

	CHECK(null && other);
	CHECK(use(IBV_WR_RDMA_WRITE, 0, 8, null->lkey) == IBV_WC_REM_ACCESS_ERR);
	pair_close();
	pair_open();
	CHECK(use(IBV_WR_RDMA_READ, 0, 8, null->lkey) == IBV_WC_REM_ACCESS_ERR);
	pair_close();
	pair_open();
	CHECK(rdma(&b, b.qp, IBV_WR_RDMA_WRITE, (void *)-8ul, 16, null->lkey,
		   (uintptr_t)near, src->rkey) == IBV_WC_LOC_PROT_ERR);
	pair_close();
	pair_open();
	CHECK(rdma(&b, b.qp, IBV_WR_RDMA_WRITE, NULL, 16, other->lkey,
		   (uintptr_t)near, src->rkey) == IBV_WC_LOC_PROT_ERR);
	CHECK(!ibv_dereg_mr(null) && !ibv_dereg_mr(other) && !ibv_dealloc_pd(pd));
}

/* --- objects of another process --------------------------------------------------- */

/* What the other process is told.  The memory of the region begins with @text. */
struct told {
	int fd;
	char gid[8];
	uint32_t pd, mr, dm, lkey, rkey;
	uint64_t addr, length;
	char text[32];
};

static int import(const char *hex)
{
	struct told t;
	struct ibv_pd *pd;
	struct ibv_mr *m;
	struct ibv_dm *dm;
	char *buf = aligned_alloc(4096, LEN);
	size_t i;

	for (i = 0; i < sizeof(t); i++)
		sscanf(hex + 2 * i, "%2hhx", (unsigned char *)&t + i);
	a.ctx = ibv_import_device(t.fd);
	if (!a.ctx)
		die("import_device");
	pd = ibv_import_pd(a.ctx, t.pd);
	m = pd ? ibv_import_mr(pd, t.mr) : NULL;
	dm = ibv_import_dm(a.ctx, t.dm);
	if (!m || !dm)
		die("import");
	if (m->lkey != t.lkey || m->rkey != t.rkey || m->length != t.length)
		return 4;
	if (ibv_import_mr(pd, 0x123456) || ibv_import_dm(a.ctx, 0x123456))
		return 5;

	/* device memory: the same bytes */
	if (ibv_memcpy_from_dm(buf, dm, 0, 32) || memcmp(buf, t.text, 32) ||
	    ibv_memcpy_to_dm(dm, 1024, t.text, 32))
		return 6;
	if (!ibv_memcpy_to_dm(dm, 4096, t.text, 32))
		return 7;	/* it ends there */

	/* queues of ours in the domain of the other, memory of both */
	a.pd = pd;
	a.gid_index = atoi(t.gid);
	if (ibv_query_gid(a.ctx, 1, a.gid_index, &a.gid))
		return 8;
	b = a;
	pair_open();
	src = ibv_reg_mr(pd, buf, LEN, ALL);
	if (!src || rdma(&a, a.qp, IBV_WR_RDMA_READ, buf, 32, src->lkey, t.addr, m->rkey) ||
	    memcmp(buf, t.text, 32))
		return 9;
	if (rdma(&a, a.qp, IBV_WR_RDMA_WRITE, buf, 32, src->lkey, t.addr + 100, m->rkey))
		return 10;
	pair_close();
	if (ibv_dereg_mr(src))
		return 11;
	ibv_unimport_mr(m);
	ibv_unimport_dm(dm);
	ibv_unimport_pd(pd);
	return ibv_close_device(a.ctx) ? 12 : 0;
}

static void t_import(void)
{
	struct ibv_alloc_dm_attr attr = { .length = 4096 };
	struct ibv_dm *dm = ibv_alloc_dm(b.ctx, &attr);
	struct told t = { .fd = dup(b.ctx->cmd_fd), .text = "what the other process sees" };
	char hex[2 * sizeof(t) + 1], back[32];
	int status;
	pid_t pid;
	size_t i;

	CHECK(dm && t.fd >= 0 && !ibv_memcpy_to_dm(dm, 0, t.text, 32));
	memset(mem, 0, LEN);
	memcpy(mem, t.text, 32);
	snprintf(t.gid, sizeof(t.gid), "%d", b.gid_index);
	t.pd = b.pd->handle;
	t.mr = mr->handle;
	t.dm = dm->handle;
	t.lkey = mr->lkey;
	t.rkey = mr->rkey;
	t.addr = (uintptr_t)mem;
	t.length = LEN;
	for (i = 0; i < sizeof(t); i++)
		sprintf(hex + 2 * i, "%02x", ((unsigned char *)&t)[i]);
	pid = fork();
	if (!pid) {
		execl("/proc/self/exe", "memory", "import", hex, NULL);
		_exit(127);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	if (status)
		printf("# the other process: %#x\n", status);
	CHECK(!status);
	close(t.fd);
	/* it has written to both, and taken away nothing of ours */
	CHECK(!memcmp(mem + 100, t.text, 32));
	CHECK(!ibv_memcpy_from_dm(back, dm, 1024, 32) && !memcmp(back, t.text, 32));
	CHECK(works((uintptr_t)mem, mem, LEN, mr->rkey));
	CHECK(!ibv_free_dm(dm));
}

/* For t_killed(): windows that nobody deallocates. */
static int leave(const char *dev)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	static char buf[8192];
	int i, k;

	for (i = 0; list && list[i]; i++) {
		if (strcmp(ibv_get_device_name(list[i]), dev))
			continue;
		end_open(&a, dev, "1");
		end_open(&b, dev, "1");
		pair_open();
		for (k = 0; k < 10; k++) {
			struct ibv_mw *mw = ibv_alloc_mw(b.pd, k & 1 ? IBV_MW_TYPE_1 :
								 IBV_MW_TYPE_2);
			struct ibv_mr *m = ibv_reg_mr(b.pd, buf, 8192, BINDABLE);

			if (!mw || !m || bind_on(mw, ibv_inc_rkey(mw->rkey), m,
						 (uintptr_t)buf, 100, ALL))
				return 4;
		}
		_exit(0);
	}
	return 5;
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "leave"))
		return leave(argv[2]);
	if (argc == 3 && !strcmp(argv[1], "import"))
		return import(argv[2]);
	if (argc != 5)
		return 2;
	end_open(&a, argv[1], argv[2]);
	end_open(&b, argv[3], argv[4]);
	mem = aligned_alloc(4096, LEN);
	near = aligned_alloc(4096, LEN);
	mr = ibv_reg_mr(b.pd, mem, LEN, BINDABLE);
	src = ibv_reg_mr(a.pd, near, LEN, ALL);
	if (!mr || !src)
		die("reg_mr");

	run("a window of type 1, bound again and again", t_type1);
	run("a window of type 1, bound to nothing", t_type1_unbind);
	run("a window over a region that was registered in a parent domain", t_parent);
	run("a window of type 2: 300 times bound and invalidated", t_type2);
	run("a window that begins at zero", t_zero_based);
	run("accesses beyond a window", t_beyond);
	run("a window has its own rights", t_rights);
	run("a window's key is none for local memory", t_no_lkey);
	run("binds that are refused", t_refused);
	run("a window of type 2 is bound once, with its own key", t_type2_refused);
	run("keys that cannot be invalidated", t_invalidate_refused);
	run("a window of type 2 serves one QP", t_other_qp);
	run("a region stays while a window is bound to it", t_busy);
	run("a program that leaves windows behind", t_killed);
	run("a region of nothing: discards what it is given, yields zeros", t_null);
	run("a region of nothing is for local use, in its domain", t_null_refused);
	run("PD, MR and DM imported by another process", t_import);
	run("rereg_mr, all combinations of flags", t_rereg);
	run("rereg_mr fails and leaves the region as it was", t_rereg_fails);
	run("rereg_mr under traffic", t_rereg_traffic);
	run("rereg_mr while windows are bound", t_rereg_bind);
	run("rereg_mr while a stranger names the region for his windows", t_foreign_bind);
	printf("1..%d\n", count);
	return failed > 0;
}
