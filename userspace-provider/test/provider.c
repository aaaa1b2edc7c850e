// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The provider against a fake kernel (fake.c): what it writes into rings, what
 * it reads out of them, when it calls.  No device, no root.  TAP on stdout.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake.h"

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static unsigned int num, failed;
static bool good;

#define CHECK(cond)							\
	do {								\
		if (!(cond)) {						\
			printf("# %s:%d: %s\n", __FILE__, __LINE__, #cond); \
			good = false;					\
		}							\
	} while (0)

/* A QP with both CQs in one, in state RTS unless said otherwise. */
struct pair {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct rove_qp *rqp;
	struct fake_ring sq, rq, ring;
};

static struct ibv_qp *make_qp_attr(struct ibv_cq *cq, uint32_t mask,
				   uint64_t ops, int sig_all)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
		.sq_sig_all = sig_all, .pd = pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | mask,
		.send_ops_flags = ops,
	};

	return fake_ops->create_qp_ex(ctx, &attr);
}

static struct pair make_pair(void)
{
	struct pair p = {};

	p.cq = fake_ops->create_cq(ctx, 8, NULL, 0);
	p.ring = fake_cq;
	p.qp = make_qp_attr(p.cq, IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
			    rove_send_ops_of(IBV_QPT_RC), 0);
	assert(p.cq && p.qp);
	p.rqp = to_rove_qp(p.qp);
	p.sq = fake_sq;
	p.rq = fake_rq;
	p.rqp->state = IBV_QPS_RTS;
	return p;
}

static void drop_pair(struct pair *p)
{
	CHECK(!fake_ops->destroy_qp(p->qp));
	CHECK(!fake_ops->destroy_cq(p->cq));
}

static void add_cqe(struct fake_ring *ring, uint32_t qpn, uint64_t wr_id)
{
	struct rove_cqe *cqe = fake_slot(ring, ring->hdr->prod);

	*cqe = (struct rove_cqe){
		.wr_id = wr_id, .qp_num = qpn, .timestamp = wr_id * 10,
		.byte_len = 5, .opcode = IBV_WC_RECV,
		.wc_flags = IBV_WC_WITH_IMM, .imm_data = 0x01020304,
	};
	ring->hdr->prod++;
}

static int send_n(struct pair *p, unsigned int n, struct ibv_send_wr **bad)
{
	struct ibv_send_wr wr[64] = {};
	unsigned int i;
	int ret;

	for (i = 0; i < n; i++) {
		wr[i].wr_id = i;
		wr[i].opcode = IBV_WR_SEND;
		wr[i].next = i + 1 < n ? &wr[i + 1] : NULL;
	}
	ret = fake_ops->post_send(p->qp, wr, bad);
	if (ret)	/* as an index, for wr[] goes away */
		*bad = (void *)(*bad - wr);
	return ret;
}

/* ------------------------------------------------------------------------ */
static void t_registration(void)
{
	CHECK(!strcmp(fake_device->name, "rove"));
	CHECK(fake_device->match_min_abi_version == 1);
	CHECK(fake_device->match_max_abi_version == 1);
	CHECK(fake_device->match_table[0].u.driver_id == 0x726f7665);
	CHECK(fake_device->match_table[1].kind == 0);
}

static void t_device(void)
{
	struct ibv_device_attr_ex attr;
	struct ibv_values_ex values = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };

	CHECK(!fake_ops->query_device_ex(ctx, NULL, &attr, sizeof(attr)));
	CHECK(!strcmp(attr.orig_attr.fw_ver, "1.2.3"));
	CHECK(attr.hca_core_clock == 1000000);
	CHECK(attr.completion_timestamp_mask == UINT64_MAX);
	/* ibv_query_device() passes the old, short structure. */
	memset(&attr, 0x5a, sizeof(attr));
	CHECK(!fake_ops->query_device_ex(ctx, NULL, &attr,
					 sizeof(attr.orig_attr)));
	CHECK(attr.hca_core_clock == 0x5a5a5a5a5a5a5a5aULL);
	CHECK(!fake_ops->query_rt_values(ctx, &values));
	CHECK(values.raw_clock.tv_nsec > 0);
}

static void spoil_depth(struct rove_ring_info *i) { i->depth = 6; }
static void spoil_zero(struct rove_ring_info *i) { i->depth = 0; }
static void spoil_stride(struct rove_ring_info *i) { i->stride = 56; }
static void spoil_odd(struct rove_ring_info *i) { i->stride += 4; }
static void spoil_size(struct rove_ring_info *i) { i->mmap_size = 256; }
static void spoil_huge(struct rove_ring_info *i)
{
	i->depth = 1U << 31;
	i->stride = 1U << 31;
}

static void t_layout(void)
{
	static void (*const spoil[])(struct rove_ring_info *) = {
		spoil_depth, spoil_zero, spoil_stride, spoil_odd, spoil_size,
		spoil_huge,
	};
	struct ibv_cq *cq = fake_ops->create_cq(ctx, 8, NULL, 0);
	int live = fake_live;
	unsigned int i;

	for (i = 0; i < sizeof(spoil) / sizeof(spoil[0]); i++) {
		fake_spoil = spoil[i];
		errno = 0;
		CHECK(!fake_ops->create_cq(ctx, 8, NULL, 0) && errno == EPROTO);
		errno = 0;
		CHECK(!make_qp_attr(cq, 0, 0, 0) && errno == EPROTO);
	}
	fake_spoil = NULL;
	CHECK(fake_live == live);
	/* A slot too small for the inline data that the kernel granted. */
	fake_cap.max_inline_data = 129;
	CHECK(!make_qp_attr(cq, 0, 0, 0) && errno == EPROTO);
	fake_cap.max_inline_data = 100;
	CHECK(fake_live == live);
	fake_ops->destroy_cq(cq);
}

static void t_unsupported(void)
{
	struct ibv_cq *cq = fake_ops->create_cq(ctx, 8, NULL, 0);
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .pd = pd,
	};
	struct ibv_cq_init_attr_ex cqa = { .cqe = 8 };

	attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
	attr.create_flags = IBV_QP_CREATE_SCATTER_FCS;
	CHECK(!fake_ops->create_qp_ex(ctx, &attr) && errno == EOPNOTSUPP);
	attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_MAX_TSO_HEADER;
	CHECK(!fake_ops->create_qp_ex(ctx, &attr) && errno == EOPNOTSUPP);
	attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	attr.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_TSO;
	CHECK(!fake_ops->create_qp_ex(ctx, &attr) && errno == EOPNOTSUPP);
	attr.comp_mask = 0;
	CHECK(!fake_ops->create_qp_ex(ctx, &attr) && errno == EINVAL);

	cqa.wc_flags = IBV_WC_EX_WITH_FLOW_TAG;
	CHECK(!fake_ops->create_cq_ex(ctx, &cqa) && errno == EOPNOTSUPP);
	cqa.wc_flags = IBV_WC_EX_WITH_TM_INFO;
	CHECK(!fake_ops->create_cq_ex(ctx, &cqa) && errno == EOPNOTSUPP);
	cqa.wc_flags = 0;
	cqa.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
	cqa.flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
	CHECK(!fake_ops->create_cq_ex(ctx, &cqa) && errno == EOPNOTSUPP);
	CHECK(!fake_ops->create_cq(ctx, 0, NULL, 0) && errno == EINVAL);
	fake_ops->destroy_cq(cq);
}

static void t_states(void)
{
	static const struct {
		enum ibv_qp_state state;
		int send, recv;
	} want[] = {
		{ IBV_QPS_RESET, EINVAL, EINVAL }, { IBV_QPS_INIT, EINVAL, 0 },
		{ IBV_QPS_RTR, EINVAL, 0 }, { IBV_QPS_RTS, 0, 0 },
		{ IBV_QPS_SQD, 0, 0 }, { IBV_QPS_SQE, 0, 0 },
		{ IBV_QPS_ERR, 0, 0 },
	};
	struct pair p = make_pair();
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;
	struct ibv_recv_wr rwr = {}, *rbad;
	struct ibv_qp_attr attr = {};
	unsigned int i;

	for (i = 0; i < 7; i++) {
		attr.qp_state = want[i].state;
		CHECK(!fake_ops->modify_qp(p.qp, &attr, IBV_QP_STATE));
		CHECK(p.rqp->state == want[i].state);
		/* What another thread has seen of it before is of no account. */
		p.qp->state = i ? want[i - 1].state : IBV_QPS_ERR;
		bad = NULL;
		rbad = NULL;
		CHECK(fake_ops->post_send(p.qp, &wr, &bad) == want[i].send);
		CHECK(bad == (want[i].send ? &wr : NULL));
		CHECK(fake_ops->post_recv(p.qp, &rwr, &rbad) == want[i].recv);
		CHECK(rbad == (want[i].recv ? &rwr : NULL));
	}
	attr.qp_state = IBV_QPS_RTS;
	fake_modify_errno = EINVAL;
	CHECK(fake_ops->modify_qp(p.qp, &attr, IBV_QP_STATE) == EINVAL);
	CHECK(p.rqp->state == IBV_QPS_ERR);
	fake_modify_errno = 0;
	drop_pair(&p);
}

/* Windows are bound by who may be asked to write to them: a datagram's QP is not. */
static void t_bind(void)
{
	struct ibv_mw mw = { .pd = pd, .type = IBV_MW_TYPE_1, .rkey = 0x100 };
	struct ibv_mw_bind bind = {};
	struct pair p = make_pair();

	CHECK(!fake_ops->bind_mw(p.qp, &mw, &bind) && mw.rkey == 0x101);
	CHECK(p.sq.hdr->prod == 1);
	bind.send_flags = IBV_SEND_INLINE;
	CHECK(fake_ops->bind_mw(p.qp, &mw, &bind) == EINVAL);
	bind.send_flags = 0;
	p.rqp->datagrams = true;
	CHECK(fake_ops->bind_mw(p.qp, &mw, &bind) == EINVAL && mw.rkey == 0x101);
	CHECK(p.sq.hdr->prod == 1);
	drop_pair(&p);
}

static void t_wqe(void)
{
	struct pair p = make_pair();
	struct ibv_sge sge[2] = { { 0x1000, 8, 3 }, { 0x2000, 9, 4 } };
	struct ibv_send_wr wr = {}, *bad;
	struct ibv_recv_wr rwr = { .wr_id = 99, .sg_list = sge, .num_sge = 2 };
	struct ibv_recv_wr *rbad;
	struct rove_send_wqe *wqe;
	struct rove_recv_wqe *rwqe;

	wr.wr_id = 0x1122334455667788ULL;
	wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	wr.send_flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_FENCE;
	wr.imm_data = 0xaabbccdd;
	wr.wr.rdma.remote_addr = 0x123456789abcULL;
	wr.wr.rdma.rkey = 0x55;
	wr.sg_list = sge;
	wr.num_sge = 2;
	CHECK(!fake_ops->post_send(p.qp, &wr, &bad));
	wqe = fake_slot(&p.sq, 0);
	CHECK(p.sq.hdr->prod == 1);
	CHECK(wqe->wr_id == wr.wr_id && wqe->opcode == 1 && wqe->flags == 7);
	CHECK(wqe->num_sge == 2 && wqe->inline_len == 0);
	CHECK(wqe->imm_data == 0xaabbccdd && wqe->rkey == 0x55);
	CHECK(wqe->remote_addr == 0x123456789abcULL);
	CHECK(!memcmp(wqe->sge, sge, sizeof(sge)));

	wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
	wr.num_sge = 1;
	wr.wr.atomic.remote_addr = 64;
	wr.wr.atomic.rkey = 65;
	wr.wr.atomic.compare_add = 66;
	wr.wr.atomic.swap = 67;
	CHECK(!fake_ops->post_send(p.qp, &wr, &bad));
	wqe = fake_slot(&p.sq, 1);
	CHECK(wqe->opcode == 5 && wqe->remote_addr == 64 && wqe->rkey == 65);
	CHECK(wqe->compare_add == 66 && wqe->swap == 67);

	wr.opcode = IBV_WR_SEND_WITH_INV;
	wr.invalidate_rkey = 0x77;
	CHECK(!fake_ops->post_send(p.qp, &wr, &bad));
	wqe = fake_slot(&p.sq, 2);
	CHECK(wqe->opcode == 9 && wqe->invalidate_rkey == 0x77);

	/* What must be refused. */
	wr.opcode = IBV_WR_BIND_MW;
	wr.bind_mw.mw = &(struct ibv_mw){ .pd = pd, .type = IBV_MW_TYPE_1 };
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){};
	CHECK(fake_ops->post_send(p.qp, &wr, &bad) == EINVAL && bad == &wr);
	wr.opcode = IBV_WR_TSO;
	CHECK(fake_ops->post_send(p.qp, &wr, &bad) == EINVAL);
	wr.opcode = 200;
	CHECK(fake_ops->post_send(p.qp, &wr, &bad) == EINVAL);
	wr.opcode = IBV_WR_SEND;
	wr.num_sge = 5;
	CHECK(fake_ops->post_send(p.qp, &wr, &bad) == EINVAL);
	wr.num_sge = -1;
	CHECK(fake_ops->post_send(p.qp, &wr, &bad) == EINVAL);
	wr.num_sge = 1;
	wr.send_flags = IBV_SEND_IP_CSUM;
	CHECK(fake_ops->post_send(p.qp, &wr, &bad) == EINVAL);
	wr.opcode = IBV_WR_RDMA_READ;
	wr.send_flags = IBV_SEND_INLINE;
	CHECK(fake_ops->post_send(p.qp, &wr, &bad) == EINVAL);
	CHECK(p.sq.hdr->prod == 3);

	CHECK(!fake_ops->post_recv(p.qp, &rwr, &rbad));
	rwqe = fake_slot(&p.rq, 0);
	CHECK(p.rq.hdr->prod == 1 && rwqe->wr_id == 99 && rwqe->num_sge == 2);
	CHECK(!memcmp(rwqe->sge, sge, sizeof(sge)));
	rwr.num_sge = 5;
	CHECK(fake_ops->post_recv(p.qp, &rwr, &rbad) == EINVAL && rbad == &rwr);
	drop_pair(&p);
}

static void t_inline(void)
{
	struct pair p = make_pair();
	char data[200];
	struct ibv_sge sge[3];
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_INLINE,
		.sg_list = sge, .num_sge = 3,
	}, *bad;
	struct rove_send_wqe *wqe = fake_slot(&p.sq, 0);
	unsigned int i;

	for (i = 0; i < sizeof(data); i++)
		data[i] = i * 7;
	sge[0] = (struct ibv_sge){ .addr = (uintptr_t)data, .length = 50 };
	sge[1] = (struct ibv_sge){ .addr = 0, .length = 0 };
	sge[2] = (struct ibv_sge){ .addr = (uintptr_t)data + 50, .length = 50 };
	CHECK(!fake_ops->post_send(p.qp, &wr, &bad));
	CHECK(wqe->flags == ROVE_WR_INLINE && wqe->num_sge == 0);
	CHECK(wqe->inline_len == 100 && !memcmp(wqe->sge, data, 100));

	sge[2].length = 51;
	CHECK(fake_ops->post_send(p.qp, &wr, &bad) == EINVAL);
	/* Lengths whose 32-bit sum is small. */
	sge[2].length = UINT32_MAX - 20;
	CHECK(fake_ops->post_send(p.qp, &wr, &bad) == EINVAL);
	CHECK(p.sq.hdr->prod == 1);
	drop_pair(&p);
}

static void t_full(void)
{
	struct pair p;
	struct ibv_send_wr *bad;

	fake_cap.max_send_wr = 5;
	p = make_pair();
	fake_cap.max_send_wr = 8;
	CHECK(send_n(&p, 7, &bad) == ENOMEM && (uintptr_t)bad == 5);
	CHECK(p.sq.hdr->prod == 5);
	CHECK(send_n(&p, 1, &bad) == ENOMEM && (uintptr_t)bad == 0);
	p.sq.hdr->cons = 2;
	CHECK(send_n(&p, 3, &bad) == ENOMEM && (uintptr_t)bad == 2);
	CHECK(p.sq.hdr->prod == 7);
	/* An index that the kernel cannot have written. */
	p.sq.hdr->cons = 8;
	CHECK(send_n(&p, 1, &bad) == ENOMEM);
	p.sq.hdr->cons = 7;
	CHECK(!send_n(&p, 5, &bad));
	drop_pair(&p);

	/* A QP without a send queue. */
	fake_sq_depth = 0;
	p = make_pair();
	fake_sq_depth = 8;
	CHECK(send_n(&p, 1, &bad) == EINVAL);
	drop_pair(&p);
}

static void t_wrap(void)
{
	struct pair p = make_pair();
	struct ibv_send_wr *bad;
	struct rove_send_wqe *wqe;
	uint32_t at = UINT32_MAX - 2;

	p.sq.hdr->prod = p.sq.hdr->cons = at;
	p.rqp->sq.prod = p.rqp->sq.cons = at;
	CHECK(send_n(&p, 9, &bad) == ENOMEM && (uintptr_t)bad == 8);
	CHECK(p.sq.hdr->prod == 5);
	wqe = fake_slot(&p.sq, 4);
	CHECK(wqe->wr_id == 7);
	wqe = fake_slot(&p.sq, at);
	CHECK(wqe->wr_id == 0);
	p.sq.hdr->cons = 1;
	CHECK(!send_n(&p, 4, &bad));
	CHECK(p.sq.hdr->prod == 9);
	drop_pair(&p);
}

static void t_bad_in_list(void)
{
	struct pair p = make_pair();
	struct ibv_send_wr wr[3] = {}, *bad;
	struct ibv_recv_wr rwr[3] = {}, *rbad;
	int i;

	for (i = 0; i < 3; i++) {
		wr[i].opcode = IBV_WR_SEND;
		wr[i].next = i < 2 ? &wr[i + 1] : NULL;
		rwr[i].next = i < 2 ? &rwr[i + 1] : NULL;
	}
	wr[1].num_sge = 100;
	rwr[2].num_sge = 100;
	p.sq.hdr->flags = ROVE_RING_NEED_WAKEUP;
	fake_writes = 0;
	CHECK(fake_ops->post_send(p.qp, wr, &bad) == EINVAL && bad == &wr[1]);
	CHECK(p.sq.hdr->prod == 1 && fake_writes == 1);
	CHECK(fake_ops->post_recv(p.qp, rwr, &rbad) == EINVAL &&
	      rbad == &rwr[2]);
	CHECK(p.rq.hdr->prod == 2 && fake_writes == 1);
	/* A list that begins badly hands over nothing and wakes nobody. */
	wr[0].num_sge = 100;
	CHECK(fake_ops->post_send(p.qp, wr, &bad) == EINVAL && bad == &wr[0]);
	CHECK(p.sq.hdr->prod == 1 && fake_writes == 1);
	drop_pair(&p);
}

static void t_wakeup(void)
{
	struct pair p = make_pair();
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		__u64 response;
		__u32 qp_handle, wr_count, sge_count, wqe_size;
	} msg;
	struct ibv_recv_wr rwr = {}, *rbad;
	struct ibv_send_wr *bad;

	fake_writes = fake_ioctls = 0;
	CHECK(!send_n(&p, 1, &bad) && !fake_writes);
	p.sq.hdr->flags = ROVE_RING_NEED_WAKEUP;
	CHECK(!send_n(&p, 3, &bad) && fake_writes == 1);
	memcpy(&msg, fake_last_write, sizeof(msg));
	CHECK(msg.hdr.command == IB_USER_VERBS_CMD_POST_SEND);
	CHECK(msg.hdr.in_words == 8 && msg.hdr.out_words == 1);
	CHECK(msg.qp_handle == p.qp->handle && !msg.wr_count && !msg.sge_count);
	CHECK(msg.wqe_size == sizeof(struct ib_uverbs_send_wr));

	CHECK(!fake_ops->post_recv(p.qp, &rwr, &rbad) && fake_writes == 1);
	p.rq.hdr->flags = ROVE_RING_NEED_WAKEUP;
	CHECK(!fake_ops->post_recv(p.qp, &rwr, &rbad) && fake_writes == 2);
	memcpy(&msg, fake_last_write, sizeof(msg));
	CHECK(msg.hdr.command == IB_USER_VERBS_CMD_POST_RECV);
	CHECK(msg.wqe_size == sizeof(struct ib_uverbs_recv_wr));

	/* The device is gone. */
	fake_write_errno = EIO;
	fake_write_errno_count = 100;
	errno = 1234;
	CHECK(send_n(&p, 1, &bad) == EIO && (uintptr_t)bad == 0);
	CHECK(errno == 1234);
	/* A shortage that passes. */
	fake_write_errno = ENOMEM;
	fake_write_errno_count = 2;
	CHECK(!send_n(&p, 1, &bad) && fake_writes == 6);
	/* Credentials changed: from then on by ioctl. */
	fake_write_errno = EACCES;
	fake_write_errno_count = 1;
	CHECK(!send_n(&p, 1, &bad) && fake_writes == 7 && fake_ioctls == 1);
	CHECK(!send_n(&p, 1, &bad) && fake_writes == 7 && fake_ioctls == 2);
	to_rove_ctx(ctx)->wakeup_by_ioctl = false;
	fake_write_errno = 0;
	drop_pair(&p);
}

static void t_sig_all(void)
{
	struct pair p = make_pair();
	struct rove_send_wqe *wqe;
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;

	fake_ops->destroy_qp(p.qp);
	p.qp = make_qp_attr(p.cq, 0, 0, 1);
	to_rove_qp(p.qp)->state = IBV_QPS_RTS;
	CHECK(!(to_rove_qp(p.qp)->vqp.comp_mask & VERBS_QP_EX));
	CHECK(!fake_ops->post_send(p.qp, &wr, &bad));
	wqe = fake_slot(&fake_sq, 0);
	CHECK(wqe->flags == ROVE_WR_SIGNALED);
	drop_pair(&p);
}

static void t_wr_api(void)
{
	struct pair p = make_pair();
	struct ibv_qp_ex *qpx = &p.rqp->vqp.qp_ex;
	struct ibv_sge sge[2] = { { 1, 2, 3 }, { 4, 5, 6 } };
	struct ibv_data_buf buf[2] = { { "hello ", 6 }, { "world", 5 } };
	struct rove_send_wqe *wqe;
	char big[101] = "";

	CHECK(p.rqp->vqp.comp_mask & VERBS_QP_EX);
	CHECK(qpx->wr_bind_mw && !qpx->wr_send_tso && !qpx->wr_set_ud_addr);

	qpx->wr_start(qpx);
	qpx->wr_id = 1;
	qpx->wr_flags = IBV_SEND_SIGNALED;
	qpx->wr_send_imm(qpx, 0x11);
	qpx->wr_set_inline_data_list(qpx, 2, buf);
	qpx->wr_id = 2;
	qpx->wr_flags = 0;
	qpx->wr_rdma_write(qpx, 7, 8);
	qpx->wr_set_sge_list(qpx, 2, sge);
	qpx->wr_rdma_read(qpx, 9, 10);
	qpx->wr_set_sge(qpx, 11, 12, 13);
	qpx->wr_atomic_cmp_swp(qpx, 14, 16, 17, 18);
	qpx->wr_set_sge(qpx, 11, 12, 8);
	qpx->wr_atomic_fetch_add(qpx, 19, 24, 21);
	qpx->wr_rdma_write_imm(qpx, 22, 23, 0x24);
	qpx->wr_send_inv(qpx, 25);
	CHECK(p.sq.hdr->prod == 0);
	CHECK(!qpx->wr_complete(qpx));
	CHECK(p.sq.hdr->prod == 7);
	wqe = fake_slot(&p.sq, 0);
	CHECK(wqe->wr_id == 1 && wqe->opcode == ROVE_WR_SEND_WITH_IMM);
	CHECK(wqe->flags == (ROVE_WR_SIGNALED | ROVE_WR_INLINE));
	CHECK(wqe->imm_data == 0x11 && wqe->inline_len == 11);
	CHECK(!memcmp(wqe->sge, "hello world", 11));
	wqe = fake_slot(&p.sq, 1);
	CHECK(wqe->wr_id == 2 && !wqe->flags && !wqe->inline_len);
	CHECK(wqe->num_sge == 2 && !memcmp(wqe->sge, sge, sizeof(sge)));
	CHECK(wqe->rkey == 7 && wqe->remote_addr == 8);
	wqe = fake_slot(&p.sq, 2);
	CHECK(wqe->opcode == ROVE_WR_RDMA_READ && wqe->num_sge == 1);
	CHECK(wqe->sge[0].lkey == 11 && wqe->sge[0].addr == 12 &&
	      wqe->sge[0].length == 13);
	wqe = fake_slot(&p.sq, 3);
	CHECK(wqe->rkey == 14 && wqe->remote_addr == 16);
	CHECK(wqe->compare_add == 17 && wqe->swap == 18);
	wqe = fake_slot(&p.sq, 4);
	CHECK(wqe->compare_add == 21 && wqe->num_sge == 0);
	wqe = fake_slot(&p.sq, 5);
	CHECK(wqe->imm_data == 0x24 && wqe->rkey == 22);
	wqe = fake_slot(&p.sq, 6);
	CHECK(wqe->invalidate_rkey == 25);

	/* Aborted: as if nothing had been. */
	p.sq.hdr->cons = 7;
	qpx->wr_start(qpx);
	qpx->wr_send(qpx);
	qpx->wr_send(qpx);
	qpx->wr_abort(qpx);
	CHECK(p.sq.hdr->prod == 7 && p.rqp->sq.prod == 7);
	qpx->wr_start(qpx);
	CHECK(!qpx->wr_complete(qpx) && p.sq.hdr->prod == 7);

	/* One error undoes all, and setters after it do nothing. */
	qpx->wr_start(qpx);
	qpx->wr_send(qpx);
	qpx->wr_set_sge_list(qpx, 5, sge);
	qpx->wr_send(qpx);
	qpx->wr_set_inline_data(qpx, big, sizeof(big));
	CHECK(qpx->wr_complete(qpx) == EINVAL && p.rqp->sq.prod == 7);
	qpx->wr_start(qpx);
	qpx->wr_send(qpx);
	qpx->wr_set_inline_data(qpx, big, sizeof(big));
	CHECK(qpx->wr_complete(qpx) == EINVAL && p.rqp->sq.prod == 7);
	qpx->wr_start(qpx);
	qpx->wr_rdma_read(qpx, 1, 1);
	qpx->wr_set_inline_data(qpx, big, 1);
	CHECK(qpx->wr_complete(qpx) == EINVAL && p.rqp->sq.prod == 7);
	qpx->wr_start(qpx);
	for (int i = 0; i < 9; i++)
		qpx->wr_send(qpx);
	qpx->wr_set_sge(qpx, 1, 1, 1);
	CHECK(qpx->wr_complete(qpx) == ENOMEM && p.rqp->sq.prod == 7);
	p.rqp->state = IBV_QPS_INIT;
	qpx->wr_start(qpx);
	qpx->wr_send(qpx);
	CHECK(qpx->wr_complete(qpx) == EINVAL && p.sq.hdr->prod == 7);

	/* The lock is free, and the wake-up is made once. */
	p.rqp->state = IBV_QPS_RTS;
	p.sq.hdr->flags = ROVE_RING_NEED_WAKEUP;
	fake_writes = 0;
	qpx->wr_start(qpx);
	qpx->wr_send(qpx);
	qpx->wr_send(qpx);
	CHECK(!qpx->wr_complete(qpx) && fake_writes == 1);
	drop_pair(&p);
}

/* A libibverbs that keeps what it knows of a QP further back than the headers say. */
static void t_grown(void)
{
	static const size_t growth[] = { 8, 16, ROVE_QP_GROWTH, ROVE_QP_GROWTH + 8, -8 };
	struct ibv_cq *cq = fake_ops->create_cq(ctx, 8, NULL, 0);
	struct rove_qp *rqp;
	struct ibv_qp *qp;
	unsigned int i;
	int live = fake_live;

	for (i = 0; i < 5; i++) {
		fake_growth = growth[i];
		qp = make_qp_attr(cq, IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, IBV_QP_EX_WITH_SEND, 0);
		CHECK(!qp == (i > 2) && (qp || errno == EPROTO));
		if (!qp)
			continue;
		rqp = to_rove_qp(qp);
		CHECK(ibv_qp_to_qp_ex(qp) == &rqp->vqp.qp_ex);
		CHECK(!rqp->vqp.comp_mask && !rqp->owner);
		CHECK(!fake_ops->destroy_qp(qp));
	}
	fake_growth = 0;
	CHECK(fake_live == live);
	CHECK(!fake_ops->destroy_cq(cq));
}

static void t_poll(void)
{
	struct pair p = make_pair();
	struct rove_cq *cq = to_rove_cq(p.cq);
	struct rove_cqe *cqe;
	struct ibv_wc wc[16];
	uint32_t at = UINT32_MAX - 3;
	int i;

	CHECK(fake_ops->poll_cq(p.cq, 4, wc) == 0);
	p.ring.hdr->prod = p.ring.hdr->cons = at;
	cq->prod = cq->cons = at;
	for (i = 0; i < 8; i++)
		add_cqe(&p.ring, 17, i);
	cqe = fake_slot(&p.ring, at);
	cqe->status = 0xdeadbeef;
	cqe->wc_flags = 0xffffffff;
	CHECK(fake_ops->poll_cq(p.cq, 3, wc) == 3);
	CHECK(wc[0].wr_id == 0 && wc[2].wr_id == 2);
	CHECK(wc[0].status == IBV_WC_GENERAL_ERR && wc[1].status == 0);
	CHECK(wc[0].wc_flags == (IBV_WC_GRH | IBV_WC_WITH_IMM |
				 IBV_WC_WITH_INV));
	CHECK(wc[1].qp_num == 17 && wc[1].byte_len == 5);
	CHECK(wc[1].opcode == IBV_WC_RECV && wc[1].imm_data == 0x01020304);
	CHECK(p.ring.hdr->cons == at + 3);
	/* More arrive: a poll for all gets all. */
	add_cqe(&p.ring, 17, 8);
	CHECK(fake_ops->poll_cq(p.cq, 16, wc) == 6 && wc[5].wr_id == 8);
	CHECK(p.ring.hdr->cons == p.ring.hdr->prod);
	CHECK(fake_ops->poll_cq(p.cq, 16, wc) == 0);
	/* Nonsense in the ring. */
	p.ring.hdr->prod += 9;
	CHECK(fake_ops->poll_cq(p.cq, 16, wc) == -1);
	p.ring.hdr->prod -= 10;
	CHECK(fake_ops->poll_cq(p.cq, 16, wc) == -1);
	p.ring.hdr->prod++;
	CHECK(fake_ops->poll_cq(p.cq, 16, wc) == 0);
	CHECK(fake_ops->poll_cq(p.cq, 0, wc) == 0);
	drop_pair(&p);
}

static unsigned int yields(struct pair *p, struct ibv_cq_ex *cq, int polls)
{
	struct ibv_poll_cq_attr none = {};
	struct ibv_wc wc;

	fake_yields = 0;
	while (polls--)
		if (cq)
			CHECK(cq->start_poll(cq, &none) == ENOENT);
		else
			CHECK(fake_ops->poll_cq(p->cq, 1, &wc) == 0);
	return fake_yields;
}

/* Whoever polls in vain lets others run, often if they have a use for it. */
static void t_poll_vain(void)
{
	struct pair p = make_pair();
	struct ibv_cq_init_attr_ex attr = { .cqe = 8 };
	struct ibv_cq_ex *ex = rove_create_cq_ex(ctx, &attr);
	struct ibv_wc wc;
	int i, n;

	for (i = n = 0; i < 100; i++) {
		add_cqe(&p.ring, 17, i);
		CHECK(fake_ops->poll_cq(p.cq, 1, &wc) == 1);
		n += yields(&p, NULL, 500);
	}
	CHECK(n == 0 && yields(&p, NULL, 200000) == 0);
	p.ring.hdr->flags = fake_cq.hdr->flags = ROVE_RING_LOCAL_PEER;
	/* Each limit's worth doubles it: 9, not 100. */
	fake_others_us = 0;
	n = yields(&p, NULL, 400000);
	CHECK(n > 0 && n < 50);
	fake_others_us = 2000;
	CHECK(yields(&p, NULL, 400000) > 25);
	CHECK(yields(&p, ex, 40000) > 2);
	fake_others_us = -1;
	CHECK(!rove_destroy_cq(ibv_cq_ex_to_cq(ex)));
	drop_pair(&p);
}

static void t_poll_ex(void)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 8, .wc_flags = IBV_WC_STANDARD_FLAGS |
				      IBV_WC_EX_WITH_COMPLETION_TIMESTAMP,
	};
	struct ibv_poll_cq_attr none = {}, unknown = { .comp_mask = 1 };
	struct ibv_cq_ex *cq = fake_ops->create_cq_ex(ctx, &attr);
	struct fake_ring ring = fake_cq;
	int i;

	/* The kernel stamps completions only when told to. */
	CHECK(fake_cq_wc_flags == IBV_WC_EX_WITH_COMPLETION_TIMESTAMP);
	CHECK(cq->start_poll(cq, &unknown) == EINVAL);
	CHECK(cq->start_poll(cq, &none) == ENOENT);
	CHECK(cq->start_poll(cq, &none) == ENOENT);	/* unlocked */
	for (i = 0; i < 3; i++)
		add_cqe(&ring, 20 + i, i);
	CHECK(!cq->start_poll(cq, &none));
	CHECK(cq->wr_id == 0 && cq->status == IBV_WC_SUCCESS);
	CHECK(cq->read_opcode(cq) == IBV_WC_RECV);
	CHECK(cq->read_qp_num(cq) == 20 && cq->read_byte_len(cq) == 5);
	CHECK(cq->read_imm_data(cq) == 0x01020304);
	CHECK(cq->read_wc_flags(cq) == IBV_WC_WITH_IMM);
	CHECK(!cq->read_vendor_err(cq) && !cq->read_slid(cq) &&
	      !cq->read_sl(cq) && !cq->read_dlid_path_bits(cq) &&
	      !cq->read_src_qp(cq));
	CHECK(!cq->next_poll(cq) && cq->wr_id == 1);
	CHECK(cq->read_completion_ts(cq) == 10 && cq->read_qp_num(cq) == 21);
	CHECK(ring.hdr->cons == 2);
	cq->end_poll(cq);
	CHECK(!cq->start_poll(cq, &none) && cq->wr_id == 2);
	CHECK(cq->next_poll(cq) == ENOENT);
	CHECK(ring.hdr->cons == 3);
	add_cqe(&ring, 23, 3);
	CHECK(!cq->next_poll(cq) && cq->wr_id == 3);
	cq->end_poll(cq);
	CHECK(ring.hdr->cons == 4);

	/* A slot is the kernel's as soon as its completion is the current one. */
	for (i = 4; i < 12; i++)
		add_cqe(&ring, 20, i);
	CHECK(!cq->start_poll(cq, &none));
	for (i = 4; i < 99; i++) {
		CHECK(cq->wr_id == (uint64_t)i);
		CHECK(ring.hdr->prod - ring.hdr->cons == 7);
		add_cqe(&ring, 24, ring.hdr->prod);
		CHECK(cq->wr_id == (uint64_t)i && cq->read_qp_num(cq) == (i < 12 ? 20 : 24));
		CHECK(!cq->next_poll(cq));
	}
	cq->end_poll(cq);
	CHECK(ring.hdr->cons == 100);
	while (!cq->start_poll(cq, &none))
		cq->end_poll(cq);
	CHECK(ring.hdr->cons == ring.hdr->prod);
	ring.hdr->prod += 100;
	CHECK(cq->start_poll(cq, &none) == EIO);
	CHECK(!fake_ops->destroy_cq(ibv_cq_ex_to_cq(cq)));

	/* Only what was asked for. */
	attr.wc_flags = IBV_WC_EX_WITH_IMM;
	cq = fake_ops->create_cq_ex(ctx, &attr);
	CHECK(!fake_cq_wc_flags);
	CHECK(cq->read_imm_data && !cq->read_byte_len && !cq->read_completion_ts);
	CHECK(!fake_ops->destroy_cq(ibv_cq_ex_to_cq(cq)));
}

static void t_forget(void)
{
	struct pair p = make_pair();
	struct rove_cq *cq = to_rove_cq(p.cq);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	struct ibv_send_wr *bad;
	uint32_t at = UINT32_MAX - 3, own = p.qp->qp_num;
	struct ibv_wc wc[8];
	int i;

	p.ring.hdr->prod = p.ring.hdr->cons = at;
	cq->prod = cq->cons = at;
	for (i = 0; i < 8; i++)
		add_cqe(&p.ring, i == 0 || i == 3 || i == 6 || i == 7 ?
			own : 5, i);
	CHECK(fake_ops->poll_cq(p.cq, 1, wc) == 1 && wc[0].wr_id == 0);
	CHECK(!send_n(&p, 3, &bad));
	p.sq.hdr->cons = 3;
	CHECK(!fake_ops->modify_qp(p.qp, &attr, IBV_QP_STATE));
	CHECK(p.rqp->sq.prod == 0 && p.rqp->sq.cons == 0);
	CHECK(p.ring.hdr->prod == at + 8 && p.ring.hdr->cons == at + 4);
	CHECK(fake_ops->poll_cq(p.cq, 8, wc) == 4);
	CHECK(wc[0].wr_id == 1 && wc[1].wr_id == 2 && wc[2].wr_id == 4 &&
	      wc[3].wr_id == 5);
	/* From the beginning again. */
	p.rqp->state = IBV_QPS_RTS;
	CHECK(!send_n(&p, 8, &bad) && p.sq.hdr->prod == 8);

	for (i = 0; i < 3; i++)
		add_cqe(&p.ring, i == 1 ? 5 : own, 20 + i);
	CHECK(!fake_ops->destroy_qp(p.qp));
	CHECK(fake_ops->poll_cq(p.cq, 8, wc) == 1 && wc[0].wr_id == 21);
	CHECK(!fake_ops->destroy_cq(p.cq));
}

static void t_arm(void)
{
	struct pair p = make_pair();
	__u32 *arm = &p.ring.hdr->arm;

	fake_writes = 0;
	CHECK(!fake_ops->req_notify_cq(p.cq, 1) && *arm == ROVE_CQ_ARM_SOLICITED);
	CHECK(!fake_ops->req_notify_cq(p.cq, 0) && *arm == ROVE_CQ_ARM_NEXT);
	CHECK(!fake_ops->req_notify_cq(p.cq, 1) && *arm == ROVE_CQ_ARM_NEXT);
	*arm = ROVE_CQ_ARM_NONE;
	CHECK(!fake_ops->req_notify_cq(p.cq, 0) && *arm == ROVE_CQ_ARM_NEXT);
	*arm = 12345;
	CHECK(!fake_ops->req_notify_cq(p.cq, 1) && *arm == ROVE_CQ_ARM_SOLICITED);
	CHECK(!fake_writes);
	drop_pair(&p);
}

static void spoil_offset(struct rove_ring_info *i) { i->mmap_offset += 8; }

static void t_resize(void)
{
	struct pair p = make_pair();
	struct ibv_wc wc[16];
	int i;

	for (i = 0; i < 6; i++)
		add_cqe(&p.ring, 17, i);
	CHECK(fake_ops->poll_cq(p.cq, 2, wc) == 2);
	CHECK(!fake_ops->req_notify_cq(p.cq, 0));
	CHECK(!fake_ops->resize_cq(p.cq, 16) && p.cq->cqe == 16);
	CHECK(fake_cq.hdr != p.ring.hdr && fake_cq.info.depth == 16);
	CHECK(fake_cq.hdr->arm == ROVE_CQ_ARM_NEXT);
	add_cqe(&fake_cq, 17, 6);
	CHECK(fake_ops->poll_cq(p.cq, 16, wc) == 5);
	CHECK(wc[0].wr_id == 2 && wc[4].wr_id == 6);
	CHECK(fake_cq.hdr->cons == 5);
	CHECK(fake_ops->resize_cq(p.cq, 0) == EINVAL);
	/* Refused by the kernel: nothing changes. */
	for (i = 0; i < 5; i++)
		add_cqe(&fake_cq, 17, 10 + i);
	CHECK(fake_ops->resize_cq(p.cq, 4) == EINVAL);
	CHECK(fake_ops->poll_cq(p.cq, 1, wc) == 1 && wc[0].wr_id == 10);
	/* The new ring cannot be mapped: the CQ says so, and recovers. */
	fake_spoil = spoil_offset;
	CHECK(fake_ops->resize_cq(p.cq, 8) == EINVAL);
	fake_spoil = NULL;
	CHECK(fake_ops->poll_cq(p.cq, 1, wc) == -1);
	CHECK(fake_ops->req_notify_cq(p.cq, 0) == EIO);
	CHECK(!fake_ops->resize_cq(p.cq, 8));
	CHECK(fake_ops->poll_cq(p.cq, 16, wc) == 4 && wc[0].wr_id == 11);
	drop_pair(&p);
}

static void t_domains(void)
{
	struct ibv_td_init_attr tda = {};
	struct ibv_td *td = fake_ops->alloc_td(ctx, &tda);
	struct ibv_parent_domain_init_attr pda = { .pd = pd, .td = td };
	struct ibv_pd *parent = fake_ops->alloc_parent_domain(ctx, &pda);
	struct ibv_cq_init_attr_ex cqa = {
		.cqe = 8, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
		.parent_domain = parent,
	};
	struct ibv_cq_ex *cq = fake_ops->create_cq_ex(ctx, &cqa);
	struct ibv_qp_init_attr attr = {
		.send_cq = ibv_cq_ex_to_cq(cq), .recv_cq = ibv_cq_ex_to_cq(cq),
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp = fake_ops->create_qp(parent, &attr);

	CHECK(parent->handle == pd->handle);
	CHECK(attr.cap.max_inline_data == 100);
	CHECK(to_rove_cq_ex(cq)->lock.single_threaded);
	CHECK(to_rove_qp(qp)->sq.lock.single_threaded);
	CHECK(fake_ops->dealloc_pd(pd) == EBUSY);
	CHECK(fake_ops->dealloc_td(td) == EBUSY);
	CHECK(!fake_ops->destroy_qp(qp));
	CHECK(!fake_ops->destroy_cq(ibv_cq_ex_to_cq(cq)));
	CHECK(!fake_ops->dealloc_pd(parent));
	CHECK(!fake_ops->dealloc_td(td));
	pda.comp_mask = 1 << 2;
	pda.td = NULL;
	CHECK(!fake_ops->alloc_parent_domain(ctx, &pda) && errno == EOPNOTSUPP);
	/* Not a parent domain. */
	cqa.parent_domain = pd;
	CHECK(!fake_ops->create_cq_ex(ctx, &cqa) && errno == EINVAL);
}

static int given, given_back;

static void *give(struct ibv_pd *of, void *context, size_t size, size_t alignment,
		  uint64_t type)
{
	void *p = NULL;

	(void)of;
	CHECK(type >> 32 == ROVE_DRIVER_ID);
	if ((uint32_t)type == ROVE_RESOURCE_SRQ)
		return NULL;
	if ((uint32_t)type == ROVE_RESOURCE_CQ)
		return IBV_ALLOCATOR_USE_DEFAULT;
	if (context == ctx && !posix_memalign(&p, alignment, size)) {
		given++;
		memset(p, 0xa5, size);
	}
	return p;
}

static void take_back(struct ibv_pd *of, void *context, void *p, uint64_t type)
{
	(void)of;
	if (context == ctx && type == ROVE_RESOURCE_TYPE(ROVE_RESOURCE_QP))
		given_back++;
	free(p);
}

static void t_allocator(void)
{
	struct ibv_parent_domain_init_attr pda = {
		.pd = pd, .comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
				       IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
		.alloc = give, .pd_context = ctx,
	};
	struct ibv_srq_init_attr srqa = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_cq_init_attr_ex cqa = { .cqe = 8, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD };
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC };
	struct ibv_pd *parent;
	struct ibv_cq_ex *cq;
	struct ibv_qp *qp;

	/* Memory that nobody takes back? */
	CHECK(!fake_ops->alloc_parent_domain(ctx, &pda) && errno == EINVAL);
	pda.free = take_back;
	parent = fake_ops->alloc_parent_domain(ctx, &pda);
	CHECK(parent);
	cqa.parent_domain = parent;
	cq = fake_ops->create_cq_ex(ctx, &cqa);
	CHECK(cq && !to_rove_cq_ex(cq)->owner && !given);
	attr.send_cq = attr.recv_cq = ibv_cq_ex_to_cq(cq);
	qp = fake_ops->create_qp(parent, &attr);
	CHECK(qp && given == 1 && to_rove_qp(qp)->owner == to_rove_pd(parent));
	CHECK(!to_rove_qp(qp)->sq.lock.single_threaded && !to_rove_qp(qp)->wr_err);
	CHECK(!fake_ops->create_srq(parent, &srqa) && errno == ENOMEM);
	CHECK(fake_ops->dealloc_pd(parent) == EBUSY);
	CHECK(!fake_ops->destroy_qp(qp) && given_back == 1);
	/* Refused, or it cannot be mapped: taken back. */
	fake_spoil = spoil_offset;
	CHECK(!fake_ops->create_qp(parent, &attr) && given == 2 && given_back == 2);
	fake_spoil = NULL;
	CHECK(!fake_ops->destroy_cq(ibv_cq_ex_to_cq(cq)));
	CHECK(!fake_ops->dealloc_pd(parent));
}

static void t_mr_ah(void)
{
	struct ibv_ah_attr aha = {};
	struct ibv_mr *mr;
	struct ibv_ah *ah;

	CHECK(!fake_ops->reg_mr(pd, NULL, 0, 0, 0) && errno == EINVAL);
	mr = fake_ops->reg_mr(pd, (void *)4096, 10, 4096, 0);
	CHECK(mr);
	CHECK(!fake_ops->rereg_mr((struct verbs_mr *)mr, 0, pd, (void *)8192,
				  10, 0));
	CHECK(!fake_ops->dereg_mr((struct verbs_mr *)mr));
	ah = fake_ops->create_ah(pd, &aha);
	CHECK(ah && !fake_ops->destroy_ah(ah));
}

static void t_other_memory(void)
{
	struct ibv_alloc_dm_attr dma = { .length = 100 };
	struct ibv_mr *null = fake_ops->alloc_null_mr(pd);
	struct ibv_mr *mr = fake_ops->reg_dmabuf_mr(pd, 4096, 1ULL << 33, 1ULL << 40, 5, 7);
	struct ibv_dm *dm = fake_ops->alloc_dm(ctx, &dma);
	char buf[8] = "dm data";

	CHECK(null && null->length == SIZE_MAX && !null->addr && null->pd == pd);
	CHECK(((struct verbs_mr *)null)->mr_type == IBV_MR_TYPE_NULL_MR);
	CHECK(!fake_ops->dereg_mr((struct verbs_mr *)null));
	CHECK(mr && mr->lkey == 0xabcd && mr->rkey == 0xabcd && mr->handle == 44);
	CHECK(((struct verbs_mr *)mr)->mr_type == IBV_MR_TYPE_DMABUF_MR);
	CHECK(!fake_ops->dereg_mr((struct verbs_mr *)mr));
	CHECK(!fake_ops->reg_dmabuf_mr(pd, 4096, 1ULL << 33, 1ULL << 40, 6, 7) &&
	      errno == EBADF);
	CHECK(dm && dm->comp_mask == IBV_DM_MASK_HANDLE && dm->handle == 66);
	CHECK(!dm->memcpy_to_dm(dm, 92, buf, 8));
	CHECK(dm->memcpy_to_dm(dm, 96, buf, 8) == EFAULT);
	CHECK(dm->memcpy_to_dm(dm, -4ULL, buf, 8) == EFAULT);
	CHECK(!fake_ops->free_dm(dm));
}

static void t_import(void)
{
	struct ibv_alloc_dm_attr dma = { .length = 100 };
	struct ibv_dm *dm = fake_ops->alloc_dm(ctx, &dma), *its;
	struct verbs_context *vctx = fake_device->import_context(NULL, dup(ctx->cmd_fd));
	char buf[8] = "dm data", back[8];
	struct ibv_parent_domain_init_attr pda = {};
	struct ibv_pd *its_pd, *parent;
	struct ibv_context *other;
	struct ibv_mr *mr;
	int live = fake_live;

	CHECK(dm && vctx);
	other = &vctx->context;
	CHECK(other->num_comp_vectors == 3);
	its_pd = fake_ops->import_pd(other, pd->handle);
	CHECK(its_pd && its_pd->handle == pd->handle && its_pd->context == other);
	mr = fake_ops->import_mr(its_pd, 55);
	CHECK(mr && mr->handle == 55);
	CHECK(!fake_ops->import_mr(its_pd, 56) && errno == ENOENT);
	its = fake_ops->import_dm(other, dm->handle);
	CHECK(its && its->handle == dm->handle);
	CHECK(!dm->memcpy_to_dm(dm, 0, buf, 8) && !its->memcpy_from_dm(back, its, 0, 8));
	CHECK(!strcmp(buf, back));
	CHECK(its->memcpy_from_dm(back, its, 96, 8) == EFAULT);
	CHECK(!fake_ops->import_dm(other, 67) && errno == ENOENT);
	fake_ops->unimport_dm(its);
	fake_ops->unimport_mr(mr);
	/* A parent domain around it may outlive it. */
	pda.pd = its_pd;
	parent = fake_ops->alloc_parent_domain(other, &pda);
	CHECK(parent && fake_ops->dealloc_pd(its_pd) == EBUSY);
	fake_ops->unimport_pd(its_pd);
	CHECK(!fake_ops->dealloc_pd(parent));
	fake_ops->free_context(other);
	CHECK(fake_live == live);
	CHECK(!fake_ops->free_dm(dm));
}

/*
 * Two threads post, a third is the kernel and moves each request to the CQ, a
 * fourth polls: all arrive, whole, each poster's in order.
 */
#define PER_THREAD 100000

static void *poster(void *arg)
{
	static unsigned int who;
	uint64_t id = (uint64_t)__atomic_fetch_add(&who, 1, __ATOMIC_RELAXED) << 32;
	struct pair *p = arg;
	struct ibv_send_wr wr[3] = {}, *bad, *from;
	uint32_t i = 0;
	int k, ret;

	while (i < PER_THREAD) {
		for (k = 0; k < 3; k++) {
			wr[k].wr_id = id + i + k;
			wr[k].opcode = IBV_WR_RDMA_READ;
			wr[k].wr.rdma.remote_addr = ~wr[k].wr_id;
			wr[k].next = k < 2 && i + k + 1 < PER_THREAD ?
				     &wr[k + 1] : NULL;
		}
		for (from = wr; ; from = bad) {
			ret = fake_ops->post_send(p->qp, from, &bad);
			if (!ret)
				break;
			assert(ret == ENOMEM);
			sched_yield();
		}
		i += 3;
	}
	return NULL;
}

static void *kernel(void *arg)
{
	struct pair *p = arg;
	uint32_t cons = 0, prod = 0, done = 0;

	while (done < 2 * PER_THREAD) {
		struct rove_send_wqe *wqe = fake_slot(&p->sq, cons);

		if (rove_index_load(&p->sq.hdr->prod) == cons ||
		    prod - rove_index_load(&p->ring.hdr->cons) >=
		    p->ring.info.depth) {
			sched_yield();
			continue;
		}
		assert(wqe->remote_addr == ~wqe->wr_id);
		*(struct rove_cqe *)fake_slot(&p->ring, prod) =
			(struct rove_cqe){ .wr_id = wqe->wr_id,
					   .timestamp = wqe->remote_addr };
		rove_index_store(&p->sq.hdr->cons, ++cons);
		rove_index_store(&p->ring.hdr->prod, ++prod);
		done++;
	}
	return NULL;
}

static void t_threads(void)
{
	struct pair p = make_pair();
	uint32_t next[2] = {}, done = 0;
	pthread_t t[3];
	struct ibv_wc wc[5];
	int i, n;

	for (i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, i ? poster : kernel, &p);
	while (done < 2 * PER_THREAD) {
		n = fake_ops->poll_cq(p.cq, 5, wc);
		if (!n)
			sched_yield();
		for (i = 0; i < n; i++) {
			uint32_t who = wc[i].wr_id >> 32;

			if (who > 1 || (uint32_t)wc[i].wr_id != next[who]) {
				CHECK(!"order");
				exit(1);
			}
			next[who]++;
		}
		if (n < 0) {
			CHECK(!"poll");
			exit(1);
		}
		done += n;
	}
	for (i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	CHECK(next[0] == PER_THREAD && next[1] == PER_THREAD);
	drop_pair(&p);
}

static int post_srq(struct ibv_srq *srq, uint64_t wr_id)
{
	struct ibv_recv_wr wr = { .wr_id = wr_id }, *bad;

	return fake_ops->post_srq_recv(srq, &wr, &bad);
}

/* The slot at @index is that of this work request. */
static bool srq_slot(uint32_t index, uint64_t wr_id)
{
	struct rove_recv_wqe *wqe = fake_slot(&fake_srq, index);

	return wqe->wr_id == wr_id && !wqe->num_sge;
}

/* No system call is ever made, and a resize keeps what was not taken. */
static void t_srq(void)
{
	struct ibv_srq_init_attr init = { .attr = { 8, 2, 0 } };
	struct ibv_srq *srq = fake_ops->create_srq(pd, &init);
	struct ibv_srq_attr attr = { .max_wr = 16 };
	unsigned int writes = fake_writes;
	int i;

	CHECK(srq);
	if (!srq)
		return;
	for (i = 0; i < 8; i++)
		CHECK(!post_srq(srq, i));
	CHECK(post_srq(srq, 8) == ENOMEM);
	CHECK(fake_srq.hdr->prod == 8 && srq_slot(7, 7));
	fake_srq.hdr->cons = 3;
	CHECK(!post_srq(srq, 8));
	CHECK(fake_srq.hdr->prod == 9);
	attr.max_wr = 4;
	CHECK(fake_ops->modify_srq(srq, &attr, IBV_SRQ_MAX_WR) == EINVAL);
	CHECK(!post_srq(srq, 9));
	attr.max_wr = 16;
	CHECK(!fake_ops->modify_srq(srq, &attr, IBV_SRQ_MAX_WR));
	CHECK(fake_srq.hdr->prod == 7 && srq_slot(0, 3) && srq_slot(6, 9));
	for (i = 0; i < 9; i++)
		CHECK(!post_srq(srq, 10 + i));
	CHECK(post_srq(srq, 19) == ENOMEM);
	CHECK(fake_srq.hdr->prod == 16 && srq_slot(7, 10) && srq_slot(15, 18));
	CHECK(!fake_ops->modify_srq(srq, &attr, IBV_SRQ_LIMIT));
	CHECK(!fake_ops->query_srq(srq, &attr) && attr.max_wr == 16);
	CHECK(fake_writes == writes);
	CHECK(!fake_ops->destroy_srq(srq));
}

static void t_xrc(void)
{
	struct ibv_xrcd_init_attr xa = { .oflags = O_CREAT };
	struct ibv_xrcd *xrcd = fake_ops->open_xrcd(ctx, &xa);
	struct ibv_cq *cq = fake_ops->create_cq(ctx, 8, NULL, 0);
	struct ibv_srq_init_attr_ex sa = {
		.attr = { 8, 1, 0 }, .srq_type = IBV_SRQT_XRC, .pd = pd,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD,
		.cq = cq, .srq_context = &sa,
	};
	struct ibv_qp_open_attr qa = { .qp_num = 99, .qp_type = IBV_QPT_XRC_RECV };
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_XRC_SEND, .comp_mask = IBV_QP_INIT_ATTR_PD,
	};
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	uint32_t num;

	CHECK(xrcd && cq);
	sa.xrcd = xrcd;
	/* the CQ is not in the mask */
	CHECK(!fake_ops->create_srq_ex(ctx, &sa) && errno == EINVAL);
	sa.comp_mask |= IBV_SRQ_INIT_ATTR_CQ;
	srq = fake_ops->create_srq_ex(ctx, &sa);
	CHECK(srq && !fake_ops->get_srq_num(srq, &num) && num == 0x1234);
	CHECK(srq->srq_context == &sa && srq->pd == pd);
	CHECK(!post_srq(srq, 1) && fake_srq.hdr->prod == 1);
	/* It receives nothing, and holds no CQ for that. */
	attr.send_cq = cq;
	attr.recv_cq = cq;
	attr.pd = pd;
	qp = fake_ops->create_qp_ex(ctx, &attr);
	CHECK(qp && qp->send_cq == cq && !qp->recv_cq);
	CHECK(!fake_ops->destroy_qp(qp));
	/* As librdmacm makes a target: it has the domain from the QP. */
	attr.qp_type = IBV_QPT_XRC_RECV;
	attr.comp_mask |= IBV_QP_INIT_ATTR_XRCD;
	attr.xrcd = xrcd;
	qp = fake_ops->create_qp_ex(ctx, &attr);
	CHECK(qp && qp->pd == pd && !qp->send_cq && !qp->recv_cq);
	CHECK(!fake_ops->destroy_qp(qp));
	qp = fake_ops->open_qp(ctx, &qa);
	CHECK(qp && qp->qp_num == 99);
	CHECK(!fake_ops->destroy_qp(qp));
	qa.qp_num = 98;
	CHECK(!fake_ops->open_qp(ctx, &qa) && errno == EINVAL);
	CHECK(!fake_ops->destroy_srq(srq) && !fake_ops->destroy_cq(cq));
	CHECK(!fake_ops->close_xrcd(xrcd));
	xa.oflags = O_TRUNC;
	CHECK(!fake_ops->open_xrcd(ctx, &xa) && errno == EINVAL);
}

static void run(const char *name, void (*test)(void))
{
	good = true;
	test();
	printf("%sok %u - %s\n", good ? "" : "not ", ++num, name);
	fflush(stdout);
	failed += !good;
}

int main(void)
{
	printf("TAP version 13\n");
	run("registers by driver number", t_registration);
	ctx = fake_open();
	pd = ctx ? fake_ops->alloc_pd(ctx) : NULL;
	if (!pd) {
		printf("Bail out! the device does not open\n");
		return 1;
	}
	run("device attributes and clock", t_device);
	run("a ring whose layout is wrong is refused", t_layout);
	run("what is not there is refused", t_unsupported);
	run("posting by QP state", t_states);
	run("ibv_bind_mw()", t_bind);
	run("work requests as they stand in the ring", t_wqe);
	run("inline payload", t_inline);
	run("full queue", t_full);
	run("indices wrap at 2^32", t_wrap);
	run("bad request in a list", t_bad_in_list);
	run("wake-up call", t_wakeup);
	run("sq_sig_all", t_sig_all);
	run("ibv_wr_*()", t_wr_api);
	run("a libibverbs newer than the headers", t_grown);
	run("ibv_poll_cq()", t_poll);
	run("ibv_poll_cq(), in vain", t_poll_vain);
	run("ibv_start_poll()", t_poll_ex);
	run("completions of a QP that is gone", t_forget);
	run("arming", t_arm);
	run("resize", t_resize);
	run("shared receive queue", t_srq);
	run("thread and parent domains", t_domains);
	run("parent domains with an allocator", t_allocator);
	run("regions and address handles", t_mr_ah);
	run("dma-buf, null and device memory", t_other_memory);
	run("objects of another process", t_import);
	run("XRC", t_xrc);
	run("threads", t_threads);

	fake_ops->dealloc_pd(pd);
	good = !fake_live;
	printf("%sok %u - nothing left over\n", good ? "" : "not ", ++num);
	failed += !good;
	fake_ops->free_context(ctx);
	printf("1..%u\n", num);
	return failed != 0;
}
