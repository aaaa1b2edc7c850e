// SPDX-License-Identifier: GPL-2.0
/*
 * sqd.c - a send queue that drains, and what may be changed meanwhile
 *
 *	sqd DEV-A GID-INDEX-A DEV-B GID-INDEX-B
 *
 * Plain libibverbs.  IBTA 10.3.1.6 (SQD), hazards 22 and 54.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#include "pair.h"

#define WRITES	40
#define CHUNK	(32 * KB)
#define READS	16
#define READERS	100

static char *mem_a, *mem_b;
static struct ibv_mr *mr_a, *mr_b;

static bool post(struct end *e, enum ibv_wr_opcode op, uint64_t local, uint64_t remote,
		 uint32_t len, uint64_t id)
{
	struct ibv_mr *mine = e == &a ? mr_a : mr_b, *other = e == &a ? mr_b : mr_a;
	struct ibv_sge sge = { local, len, mine->lkey };
	struct ibv_send_wr wr = {
		.wr_id = id, .opcode = op, .sg_list = &sge, .num_sge = 1,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { remote, other->rkey },
	}, *bad;

	return !ibv_post_send(e->qp, &wr, &bad);
}

static int modify(struct end *e, enum ibv_qp_state state, int notify, int resources)
{
	struct ibv_qp_attr attr = { .qp_state = state, .en_sqd_async_notify = notify,
				    .max_dest_rd_atomic = resources };

	return ibv_modify_qp(e->qp, &attr, IBV_QP_STATE |
			     (notify >= 0 ? IBV_QP_EN_SQD_ASYNC_NOTIFY : 0) |
			     (resources ? IBV_QP_MAX_DEST_RD_ATOMIC : 0));
}

/* A's next event, -1: none within @ms. */
static int event(int ms)
{
	struct pollfd p = { .fd = a.ctx->async_fd, .events = POLLIN };
	struct ibv_async_event ev;
	int type;

	if (poll(&p, 1, ms) != 1 || ibv_get_async_event(a.ctx, &ev))
		return -1;
	type = ev.element.qp == a.qp ? (int)ev.event_type : -1;
	ibv_ack_async_event(&ev);
	return type;
}

/* Completions in order from *@next on; false: one has failed, or is not the next. */
static bool taken(uint64_t *next)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(a.cq, 1, &wc) > 0)
		if (wc.status || wc.wr_id != (*next)++)
			return false;
	return true;
}

static void drain(int notify)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	uint64_t next = 0, before;
	struct ibv_wc wc;
	int i;

	memset(mem_b, 0, MB);
	for (i = 0; i < WRITES / 2; i++)
		CHECK(post(&a, IBV_WR_RDMA_WRITE, (uintptr_t)mem_a, (uintptr_t)mem_b, CHUNK, i));
	CHECK(!modify(&a, IBV_QPS_SQD, notify, 0));
	/* who does not ask again is told all the same */
	CHECK(!modify(&a, IBV_QPS_SQD, -1, 0));
	for (; i < WRITES; i++)
		CHECK(post(&a, IBV_WR_RDMA_WRITE, (uintptr_t)mem_a + CHUNK,
			   (uintptr_t)mem_b + CHUNK, CHUNK, i));
	if (notify)
		CHECK(event(20000) == IBV_EVENT_SQ_DRAINED);
	do {
		CHECK(!ibv_query_qp(a.qp, &attr, IBV_QP_STATE, &init));
		CHECK(attr.qp_state == IBV_QPS_SQD);
	} while (attr.sq_draining);
	/* What had begun is done, and what was posted in SQD has not begun. */
	CHECK(taken(&next) && next <= WRITES / 2);
	before = next;
	CHECK(event(100) == -1);
	CHECK(taken(&next) && next == before);
	for (i = 0; i < (int)CHUNK; i++)
		CHECK(!mem_b[CHUNK + i]);
	printf("# %d posted before, of them %d begun\n", WRITES / 2, (int)before);
	CHECK(!modify(&a, IBV_QPS_RTS, -1, 0));
	while (next < WRITES)
		CHECK(done(a.cq, &wc) == IBV_WC_SUCCESS && wc.wr_id == next++);
	CHECK(!memcmp(mem_a, mem_b, 2 * CHUNK));
}

static void t_event(void)
{
	drain(1);
	drain(1);
}

static void t_no_event(void)
{
	drain(0);
}

static atomic_int begin;
static bool posted;

/* All READs, a moment after A has begun to change its resources. */
static void *reader(void *unused)
{
	int i;

	while (!atomic_load(&begin))
		;
	posted = true;
	for (i = 0; i < READS; i++)
		posted = posted && post(&b, IBV_WR_RDMA_READ, (uintptr_t)mem_b + i * CHUNK,
					(uintptr_t)mem_a + i * CHUNK, CHUNK - i, i);
	return NULL;
}

/*
 * The peer's first READs come while A changes what it keeps for them; once one has been
 * answered, which may be asked for again, that is refused.
 */
static void t_resources(void)
{
	static const int resources[] = { 4, 16, 5, 9 };
	int i, n, err, changed = 0;
	pthread_t thread;
	struct ibv_wc wc;

	for (n = 0; n < READERS; n++) {
		memset(mem_b, 0, READS * CHUNK);
		atomic_store(&begin, 0);
		CHECK(!modify(&a, IBV_QPS_SQD, -1, 0));
		CHECK(!pthread_create(&thread, NULL, reader, NULL));
		atomic_store(&begin, 1);
		for (i = 0; !(err = modify(&a, IBV_QPS_SQD, -1, resources[i % 4])); i++)
			changed++;
		CHECK(!pthread_join(thread, NULL) && posted);
		CHECK(err == EBUSY);
		for (i = 0; i < READS; i++) {
			CHECK(done(b.cq, &wc) == IBV_WC_SUCCESS && wc.wr_id == (uint64_t)i);
			CHECK(!memcmp(mem_a + i * CHUNK, mem_b + i * CHUNK, CHUNK - i));
		}
		CHECK(modify(&a, IBV_QPS_SQD, -1, 4) == EBUSY);
		CHECK(!modify(&a, IBV_QPS_RTS, -1, 0));
		pair_close();
		pair_open();
	}
	printf("# changed %d times on %d connections\n", changed, READERS);
	CHECK(changed > 0);
}

static int set_timeout(int timeout)
{
	struct ibv_qp_attr attr = { .timeout = timeout };

	return ibv_modify_qp(a.qp, &attr, IBV_QP_TIMEOUT);
}

/* What nobody answers waits for ever, until there is a time for it; the rest is flushed. */
static void t_timeout(void)
{
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	struct ibv_wc wc;

	CHECK(!modify(&a, IBV_QPS_SQD, -1, 0) && !set_timeout(0));
	CHECK(!modify(&a, IBV_QPS_RTS, -1, 0) && !ibv_modify_qp(b.qp, &reset, IBV_QP_STATE));
	CHECK(post(&a, IBV_WR_RDMA_WRITE, (uintptr_t)mem_a, (uintptr_t)mem_b, CHUNK, 0));
	usleep(500000);
	CHECK(!ibv_poll_cq(a.cq, 1, &wc));
	CHECK(!modify(&a, IBV_QPS_SQD, -1, 0));
	CHECK(post(&a, IBV_WR_RDMA_WRITE, (uintptr_t)mem_a, (uintptr_t)mem_b, CHUNK, 1));
	CHECK(!set_timeout(10));
	CHECK(done(a.cq, &wc) == IBV_WC_RETRY_EXC_ERR && !wc.wr_id);
	CHECK(done(a.cq, &wc) == IBV_WC_WR_FLUSH_ERR && wc.wr_id == 1);
}

/* The path alone, as uverbs has it: it adds the port. */
static void t_path(void)
{
	struct ibv_qp_attr attr = attr_to(&b.gid, a.gid_index, b.qp->qp_num), is;
	struct ibv_qp_init_attr init;

	attr.ah_attr.grh.traffic_class = 0x20;
	CHECK(!modify(&a, IBV_QPS_SQD, -1, 0));
	CHECK(!ibv_modify_qp(a.qp, &attr, IBV_QP_AV));
	CHECK(!ibv_query_qp(a.qp, &is, IBV_QP_AV, &init));
	CHECK(is.qp_state == IBV_QPS_SQD && is.ah_attr.grh.traffic_class == 0x20);
	CHECK(!modify(&a, IBV_QPS_RTS, -1, 0));
	memset(mem_b, 0, CHUNK);
	CHECK(!rdma(&a, a.qp, IBV_WR_RDMA_WRITE, mem_a, CHUNK, mr_a->lkey, (uintptr_t)mem_b,
		    mr_b->rkey));
	/* UC is done when it has sent, so what comes behind says that it is there */
	CHECK(!post_recv(&b, mem_b + CHUNK, 0, mr_b->lkey));
	CHECK(!rdma(&a, a.qp, IBV_WR_SEND, mem_a, 0, mr_a->lkey, 0, 0));
	CHECK(!done(b.cq, NULL) && !memcmp(mem_a, mem_b, CHUNK));
}

int main(int argc, char **argv)
{
	uint32_t i;

	if (argc != 5)
		return 2;
	end_open(&a, argv[1], argv[2]);
	end_open(&b, argv[3], argv[4]);
	mem_a = malloc(MB);
	mem_b = malloc(MB);
	if (!mem_a || !mem_b)
		die("malloc");
	for (i = 0; i < MB; i++)
		mem_a[i] = 1 + i % 251;
	mr_a = ibv_reg_mr(a.pd, mem_a, MB, ALL);
	mr_b = ibv_reg_mr(b.pd, mem_b, MB, ALL);
	if (!mr_a || !mr_b)
		die("reg_mr");
	run("SQD: what had begun is done, then the event; what is posted then waits for RTS",
	    t_event);
	run("SQD: no event where none was asked for", t_no_event);
	run("responder resources changed while READs come, until one has been answered", t_resources);
	run("SQD: another timeout counts for what is under way", t_timeout);
	run("SQD: another path", t_path);
	pair_type = IBV_QPT_UC;
	run("SQD: another path of an unreliable connection", t_path);
	printf("1..%d\n", count);
	return failed > 0;
}
