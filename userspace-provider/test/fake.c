// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fake.h"

const struct verbs_device_ops *fake_device;
const struct verbs_context_ops *fake_ops;
struct fake_ring fake_sq, fake_rq, fake_cq, fake_srq;
uint32_t fake_sq_depth = 8, fake_rq_depth = 8, fake_cq_depth = 8;
struct ibv_qp_cap fake_cap = {
	.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 4,
	.max_recv_sge = 4, .max_inline_data = 100,
};
void (*fake_spoil)(struct rove_ring_info *info);
size_t fake_growth;
unsigned int fake_writes, fake_ioctls;
int fake_write_errno, fake_write_errno_count;
unsigned char fake_last_write[64];
int fake_modify_errno;
unsigned int fake_yields;
int fake_others_us = -1;
int fake_live;
uint64_t fake_cq_wc_flags;

static int fd = -1;
static uint64_t fd_end;

static void make_ring(struct fake_ring *ring, uint32_t depth, uint32_t stride)
{
	uint64_t size = ROVE_RING_SLOTS + (uint64_t)depth * stride;

	size = (size + 4095) & ~4095ULL;
	ring->info = (struct rove_ring_info){
		.mmap_offset = fd_end,
		.mmap_size = size,
		.depth = depth,
		.stride = stride,
	};
	fd_end += size;
	assert(!ftruncate(fd, fd_end));
	ring->hdr = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			 ring->info.mmap_offset);
	assert(ring->hdr != MAP_FAILED);
	ring->slots = (char *)ring->hdr + ROVE_RING_SLOTS;
}

static struct rove_ring_info spoiled(struct rove_ring_info info)
{
	if (fake_spoil)
		fake_spoil(&info);
	return info;
}

struct ibv_context *fake_open(void)
{
	struct verbs_context *vctx;

	fd = memfd_create("rove-test", 0);
	assert(fd >= 0);
	vctx = fake_device->alloc_context(NULL, fd, NULL);
	return vctx ? &vctx->context : NULL;
}

/* --- libibverbs --- */
void verbs_register_driver_34(const struct verbs_device_ops *ops)
{
	fake_device = ops;
}

void *_verbs_init_and_alloc_context(struct ibv_device *device, int cmd_fd,
				    size_t size, struct verbs_context *offset,
				    uint32_t driver_id)
{
	char *mem = calloc(1, size);
	struct verbs_context *vctx = (void *)(mem + (uintptr_t)offset);

	assert(driver_id == ROVE_DRIVER_ID);
	vctx->context.device = device;
	vctx->context.cmd_fd = cmd_fd;
	return mem;
}

void verbs_uninit_context(struct verbs_context *context)
{
	close(context->context.cmd_fd);
}

void verbs_set_ops(struct verbs_context *context,
		   const struct verbs_context_ops *ops)
{
	(void)context;
	fake_ops = ops;
}

int ibv_cmd_get_context(struct verbs_context *context,
			struct ibv_get_context *cmd, size_t cmd_size,
			struct ib_uverbs_get_context_resp *resp,
			size_t resp_size)
{
	(void)context;
	(void)resp;
	assert(cmd_size == sizeof(*cmd));
	assert(resp_size == sizeof(*resp) +
	       sizeof(struct rove_alloc_ucontext_resp));
	return 0;
}

int ibv_cmd_query_context(struct ibv_context *context,
			  struct ibv_command_buffer *driver)
{
	assert(!driver);
	context->num_comp_vectors = 3;
	return 0;
}

int ibv_cmd_query_device_any(struct ibv_context *context,
			     const struct ibv_query_device_ex_input *input,
			     struct ibv_device_attr_ex *attr, size_t attr_size,
			     struct ib_uverbs_ex_query_device_resp *resp,
			     size_t *resp_size)
{
	(void)context;
	(void)input;
	assert(*resp_size == sizeof(*resp));
	memset(attr, 0, attr_size);
	resp->base.fw_ver = 0x0000000100020003ULL;
	return 0;
}

int ibv_cmd_query_port(struct ibv_context *context, uint8_t port,
		       struct ibv_port_attr *attr,
		       struct ibv_query_port *cmd, size_t cmd_size)
{
	(void)context;
	(void)port;
	(void)attr;
	assert(cmd_size == sizeof(*cmd));
	return 0;
}

int ibv_cmd_alloc_pd(struct ibv_context *context, struct ibv_pd *pd,
		     struct ibv_alloc_pd *cmd, size_t cmd_size,
		     struct ib_uverbs_alloc_pd_resp *resp, size_t resp_size)
{
	assert(cmd_size == sizeof(*cmd) && resp_size == sizeof(*resp));
	pd->context = context;
	pd->handle = 77;
	fake_live++;
	return 0;
}

int ibv_cmd_dealloc_pd(struct ibv_pd *pd)
{
	assert(pd->handle == 77);
	fake_live--;
	return 0;
}

int ibv_cmd_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
		   int access, struct verbs_mr *mr,
		   struct ibv_reg_mr *cmd, size_t cmd_size,
		   struct ib_uverbs_reg_mr_resp *resp, size_t resp_size)
{
	struct rove_reg_mr_req *own = (void *)(cmd + 1);

	(void)pd;
	(void)addr;
	(void)iova;
	(void)access;
	assert(resp_size == sizeof(*resp));
	mr->mr_type = IBV_MR_TYPE_MR;
	if (cmd_size == sizeof(*cmd) + sizeof(*own))
		assert(own->flags == ROVE_MR_NULL && !own->rsvd);
	else if (assert(cmd_size == sizeof(*cmd)), !length)
		return EINVAL;
	fake_live++;
	return 0;
}

int ibv_cmd_query_mr(struct ibv_pd *pd, struct verbs_mr *mr, uint32_t handle)
{
	if (handle != 55)
		return ENOENT;
	mr->ibv_mr.context = pd->context;
	mr->ibv_mr.pd = pd;
	mr->ibv_mr.handle = handle;
	return 0;
}

int ibv_cmd_rereg_mr(struct verbs_mr *mr, uint32_t flags, void *addr,
		     size_t length, uint64_t iova, int access,
		     struct ibv_pd *pd, struct ibv_rereg_mr *cmd,
		     size_t cmd_size, struct ib_uverbs_rereg_mr_resp *resp,
		     size_t resp_size)
{
	(void)mr;
	(void)flags;
	(void)length;
	(void)access;
	(void)pd;
	assert(iova == (uintptr_t)addr);
	assert(cmd_size == sizeof(*cmd) && resp_size == sizeof(*resp));
	return 0;
}

int ibv_cmd_dereg_mr(struct verbs_mr *mr)
{
	(void)mr;
	fake_live--;
	return 0;
}

int ibv_cmd_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice,
		      uint32_t flags, struct ibv_sge *sge, uint32_t num)
{
	(void)pd;
	(void)advice;
	(void)flags;
	(void)sge;
	(void)num;
	return 0;
}

int ibv_cmd_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type,
		     struct ibv_mw *mw, struct ibv_alloc_mw *cmd,
		     size_t cmd_size, struct ib_uverbs_alloc_mw_resp *resp,
		     size_t resp_size)
{
	(void)cmd;
	(void)cmd_size;
	(void)resp;
	(void)resp_size;
	mw->context = pd->context;
	mw->pd = pd;
	mw->type = type;
	mw->rkey = 0x12345600;
	fake_live++;
	return 0;
}

int ibv_cmd_free_dm(struct verbs_dm *dm)
{
	assert(dm->handle == 66);
	fake_live--;
	return 0;
}

int ibv_cmd_reg_dm_mr(struct ibv_pd *pd, struct verbs_dm *dm, uint64_t offset,
		      size_t length, unsigned int access, struct verbs_mr *mr,
		      struct ibv_command_buffer *link)
{
	(void)pd;
	(void)dm;
	(void)offset;
	(void)length;
	(void)access;
	(void)mr;
	(void)link;
	return EOPNOTSUPP;
}

int ibv_cmd_dealloc_mw(struct ibv_mw *mw)
{
	(void)mw;
	fake_live--;
	return 0;
}

int ibv_cmd_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid,
			 uint16_t lid)
{
	(void)qp;
	(void)gid;
	(void)lid;
	return 0;
}

int ibv_cmd_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid,
			 uint16_t lid)
{
	(void)qp;
	(void)gid;
	(void)lid;
	return 0;
}

int ibv_cmd_create_ah(struct ibv_pd *pd, struct ibv_ah *ah,
		      struct ibv_ah_attr *attr,
		      struct ib_uverbs_create_ah_resp *resp, size_t resp_size)
{
	(void)pd;
	(void)ah;
	(void)attr;
	assert(resp_size == sizeof(*resp) + sizeof(struct rove_create_ah_resp));
	((struct rove_create_ah_resp *)(resp + 1))->ah = 77;
	fake_live++;
	return 0;
}

int ibv_cmd_destroy_ah(struct ibv_ah *ah)
{
	(void)ah;
	fake_live--;
	return 0;
}

int ibv_cmd_create_cq_ex(struct ibv_context *context,
			 const struct ibv_cq_init_attr_ex *attr,
			 struct verbs_cq *cq,
			 struct ibv_create_cq_ex *cmd, size_t cmd_size,
			 struct ib_uverbs_ex_create_cq_resp *resp,
			 size_t resp_size, uint32_t cmd_flags)
{
	struct rove_create_cq_resp *own = (void *)((char *)resp + sizeof(*resp));

	assert(!attr->comp_mask && !cmd_flags);
	fake_cq_wc_flags = attr->wc_flags;
	assert(cmd_size == sizeof(*cmd));
	assert(resp_size == sizeof(*resp) + sizeof(*own));
	make_ring(&fake_cq, fake_cq_depth, sizeof(struct rove_cqe));
	own->cq = spoiled(fake_cq.info);
	cq->cq.context = context;
	cq->cq.cqe = fake_cq_depth;
	fake_live++;
	return 0;
}

/* As the module does it: what was not polled moves to index 0 of a new ring. */
int ibv_cmd_resize_cq(struct ibv_cq *cq, int cqe,
		      struct ibv_resize_cq *cmd, size_t cmd_size,
		      struct ib_uverbs_resize_cq_resp *resp, size_t resp_size)
{
	struct rove_create_cq_resp *own = (void *)((char *)resp + sizeof(*resp));
	struct fake_ring old = fake_cq;
	uint32_t i, n = old.hdr->prod - old.hdr->cons;
	uint32_t depth = 1;

	assert(cmd_size == sizeof(*cmd));
	assert(resp_size == sizeof(*resp) + sizeof(*own));
	if (n > (uint32_t)cqe)
		return EINVAL;
	while (depth < (uint32_t)cqe)
		depth *= 2;
	make_ring(&fake_cq, depth, sizeof(struct rove_cqe));
	for (i = 0; i < n; i++)
		memcpy(fake_slot(&fake_cq, i),
		       fake_slot(&old, old.hdr->cons + i),
		       sizeof(struct rove_cqe));
	fake_cq.hdr->prod = n;
	fake_cq.hdr->arm = old.hdr->arm;
	own->cq = spoiled(fake_cq.info);
	cq->cqe = depth;
	return 0;
}

int ibv_cmd_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr,
		      struct ibv_modify_cq *cmd, size_t cmd_size)
{
	(void)cq;
	(void)attr;
	assert(cmd_size == sizeof(*cmd));
	return 0;
}

int ibv_cmd_destroy_cq(struct ibv_cq *cq)
{
	(void)cq;
	fake_live--;
	return 0;
}

int ibv_cmd_create_srq_ex(struct ibv_context *context, struct verbs_srq *srq,
			  struct ibv_srq_init_attr_ex *attr,
			  struct ibv_create_xsrq *cmd, size_t cmd_size,
			  struct ib_uverbs_create_srq_resp *resp,
			  size_t resp_size)
{
	struct rove_create_srq_resp *own = (void *)((char *)resp + sizeof(*resp));

	assert(attr->pd && cmd_size == sizeof(*cmd));
	if (attr->srq_type == IBV_SRQT_XRC) {
		assert(attr->cq && attr->xrcd);
		srq->srq_num = 0x1234;
	} else {
		assert(attr->srq_type == IBV_SRQT_BASIC);
	}
	srq->srq_type = attr->srq_type;
	assert(resp_size == sizeof(*resp) + sizeof(*own));
	make_ring(&fake_srq, attr->attr.max_wr, sizeof(struct rove_recv_wqe) +
		  attr->attr.max_sge * sizeof(struct rove_sge));
	own->rq = spoiled(fake_srq.info);
	srq->srq.context = context;
	srq->srq.pd = attr->pd;
	fake_live++;
	return 0;
}

/* As the module does it: what was not taken moves to index 0 of a new ring. */
int ibv_cmd_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask,
		       struct ibv_modify_srq *cmd, size_t cmd_size)
{
	struct rove_modify_srq *own = (void *)((char *)cmd + sizeof(*cmd));
	struct fake_ring old = fake_srq;
	uint32_t i, n = old.hdr->prod - old.hdr->cons;
	struct rove_ring_info info;

	(void)srq;
	if (!(mask & IBV_SRQ_MAX_WR)) {
		assert(cmd_size == sizeof(*cmd));
		return 0;
	}
	assert(cmd_size == sizeof(*cmd) + sizeof(*own));
	if (n > attr->max_wr)
		return EINVAL;
	make_ring(&fake_srq, attr->max_wr, old.info.stride);
	for (i = 0; i < n; i++)
		memcpy(fake_slot(&fake_srq, i),
		       fake_slot(&old, old.hdr->cons + i), old.info.stride);
	fake_srq.hdr->prod = n;
	info = spoiled(fake_srq.info);
	memcpy((void *)(uintptr_t)own->ring_info, &info, sizeof(info));
	return 0;
}

int ibv_cmd_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr,
		      struct ibv_query_srq *cmd, size_t cmd_size)
{
	(void)srq;
	assert(cmd_size == sizeof(*cmd));
	attr->max_wr = fake_srq.info.depth;
	return 0;
}

int ibv_cmd_destroy_srq(struct ibv_srq *srq)
{
	(void)srq;
	fake_live--;
	return 0;
}

int ibv_cmd_open_xrcd(struct ibv_context *context, struct verbs_xrcd *xrcd,
		      int xrcd_size, struct ibv_xrcd_init_attr *attr,
		      struct ibv_open_xrcd *cmd, size_t cmd_size,
		      struct ib_uverbs_open_xrcd_resp *resp, size_t resp_size)
{
	assert(xrcd_size == sizeof(*xrcd));
	assert(cmd_size == sizeof(*cmd) && resp_size == sizeof(*resp));
	if (attr->oflags & ~(O_CREAT | O_EXCL))
		return EINVAL;
	xrcd->xrcd.context = context;
	xrcd->handle = 88;
	fake_live++;
	return 0;
}

int ibv_cmd_close_xrcd(struct verbs_xrcd *xrcd)
{
	assert(xrcd->handle == 88);
	fake_live--;
	return 0;
}

int ibv_cmd_open_qp(struct ibv_context *context, struct verbs_qp *qp,
		    int qp_size, struct ibv_qp_open_attr *attr,
		    struct ibv_open_qp *cmd, size_t cmd_size,
		    struct ib_uverbs_create_qp_resp *resp, size_t resp_size)
{
	assert(qp_size == sizeof(*qp));
	assert(cmd_size == sizeof(*cmd) && resp_size == sizeof(*resp));
	if (attr->qp_num != 99)
		return EINVAL;
	qp->qp.context = context;
	qp->qp.qp_type = attr->qp_type;
	qp->qp.qp_num = attr->qp_num;
	fake_live++;
	return 0;
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	struct verbs_qp *vqp = (struct verbs_qp *)qp;
	uint32_t *mask = (uint32_t *)((char *)&vqp->comp_mask + fake_growth);

	return *mask & VERBS_QP_EX ? &vqp->qp_ex : NULL;
}

int ibv_cmd_create_qp_ex(struct ibv_context *context, struct verbs_qp *qp,
			 struct ibv_qp_init_attr_ex *attr,
			 struct ibv_create_qp *cmd, size_t cmd_size,
			 struct ib_uverbs_create_qp_resp *resp,
			 size_t resp_size)
{
	struct rove_create_qp_resp *own = (void *)((char *)resp + sizeof(*resp));
	bool target = attr->qp_type == IBV_QPT_XRC_RECV;
	static uint32_t qpn = 16;

	assert(attr->comp_mask == (target ? IBV_QP_INIT_ATTR_XRCD : IBV_QP_INIT_ATTR_PD));
	assert(target ? attr->xrcd != NULL : attr->pd != NULL);
	assert(cmd_size == sizeof(*cmd) + sizeof(struct rove_create_qp_req));
	assert(resp_size == sizeof(*resp) + sizeof(*own));
	attr->cap = fake_cap;
	if (fake_sq_depth && !target) {
		make_ring(&fake_sq, fake_sq_depth, sizeof(struct rove_send_wqe) +
			  128);
		own->sq = spoiled(fake_sq.info);
	}
	if (fake_rq_depth && !target) {
		make_ring(&fake_rq, fake_rq_depth,
			  sizeof(struct rove_recv_wqe) + 64);
		own->rq = fake_rq.info;
	}
	qp->qp.context = context;
	qp->qp.pd = attr->pd;
	qp->qp.send_cq = attr->send_cq;
	qp->qp.recv_cq = attr->recv_cq;
	qp->qp.qp_type = attr->qp_type;
	qp->qp.qp_num = ++qpn;
	qp->qp.handle = 1000 + qpn;
	qp->qp.state = IBV_QPS_RESET;
	fake_live++;
	return 0;
}

int ibv_cmd_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		      struct ibv_modify_qp *cmd, size_t cmd_size)
{
	(void)qp;
	assert(cmd_size == sizeof(*cmd));
	if (fake_modify_errno)
		return fake_modify_errno;
	if ((mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_RESET) {
		fake_sq.hdr->prod = fake_sq.hdr->cons = 0;
		fake_rq.hdr->prod = fake_rq.hdr->cons = 0;
	}
	return 0;
}

int ibv_cmd_modify_qp_ex(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
			 struct ibv_modify_qp_ex *cmd, size_t cmd_size,
			 struct ib_uverbs_ex_modify_qp_resp *resp,
			 size_t resp_size)
{
	(void)qp;
	(void)attr;
	assert(mask & IBV_QP_RATE_LIMIT);
	assert(cmd_size == sizeof(*cmd) && resp_size == sizeof(*resp));
	return 0;
}

int ibv_cmd_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		     struct ibv_qp_init_attr *init_attr,
		     struct ibv_query_qp *cmd, size_t cmd_size)
{
	(void)qp;
	(void)attr;
	(void)mask;
	(void)init_attr;
	assert(cmd_size == sizeof(*cmd));
	return 0;
}

int ibv_cmd_destroy_qp(struct ibv_qp *qp)
{
	(void)qp;
	fake_live--;
	return 0;
}

/* --- system calls, by the linker's --wrap --- */
int __real_sched_yield(void);
int __wrap_sched_yield(void);
int __wrap_sched_yield(void)
{
	fake_yields++;
	if (fake_others_us < 0)
		return __real_sched_yield();
	if (fake_others_us)
		usleep(fake_others_us);
	return 0;
}

ssize_t __wrap_write(int file, const void *buf, size_t len);
ssize_t __wrap_write(int file, const void *buf, size_t len)
{
	assert(file == fd && len <= sizeof(fake_last_write));
	fake_writes++;
	memcpy(fake_last_write, buf, len);
	if (fake_write_errno && fake_write_errno_count) {
		fake_write_errno_count--;
		errno = fake_write_errno;
		return -1;
	}
	return len;
}

/* The command file, or a duplicate of it. */
static bool is_ours(int file)
{
	struct stat a, b;

	return !fstat(file, &a) && !fstat(fd, &b) && a.st_ino == b.st_ino &&
	       a.st_dev == b.st_dev;
}

static struct ib_uverbs_attr *attr_of(struct ib_uverbs_ioctl_hdr *hdr,
				      uint16_t id, uint16_t len)
{
	unsigned int i;

	for (i = 0; i < hdr->num_attrs; i++) {
		if (hdr->attrs[i].attr_id != id)
			continue;
		assert(hdr->attrs[i].len == len);
		assert(hdr->attrs[i].flags == UVERBS_ATTR_F_MANDATORY);
		return &hdr->attrs[i];
	}
	assert(!"attribute");
	return NULL;
}

/* One page, whatever it is: handle 66. */
static int dm_call(struct ib_uverbs_ioctl_hdr *hdr)
{
	static struct rove_dm_info dm;
	struct ib_uverbs_attr *resp;

	if (hdr->method_id == UVERBS_METHOD_DM_ALLOC) {
		dm = (struct rove_dm_info){
			.mmap_offset = fd_end,
			.mmap_size = 4096,
			.length = attr_of(hdr, UVERBS_ATTR_ALLOC_DM_LENGTH, 8)->data,
		};
		fd_end += 4096;
		assert(!ftruncate(fd, fd_end));
		attr_of(hdr, UVERBS_ATTR_ALLOC_DM_ALIGNMENT, 4);
		attr_of(hdr, UVERBS_ATTR_ALLOC_DM_HANDLE, 0)->data = 66;
		resp = attr_of(hdr, ROVE_ATTR_ALLOC_DM_RESP, sizeof(dm));
		fake_live++;
	} else {
		assert(hdr->method_id == ROVE_METHOD_DM_QUERY);
		if (attr_of(hdr, ROVE_ATTR_QUERY_DM_HANDLE, 0)->data != 66) {
			errno = ENOENT;
			return -1;
		}
		resp = attr_of(hdr, ROVE_ATTR_QUERY_DM_RESP, sizeof(dm));
	}
	memcpy((void *)(uintptr_t)resp->data, &dm, sizeof(dm));
	return 0;
}

static int reg_dmabuf_mr(struct ib_uverbs_ioctl_hdr *hdr)
{
	struct ib_uverbs_attr *a;
	uint32_t key = 0xabcd;

	assert(hdr->method_id == UVERBS_METHOD_REG_DMABUF_MR && hdr->num_attrs == 9);
	assert(attr_of(hdr, UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE, 0)->data == 77);
	assert(attr_of(hdr, UVERBS_ATTR_REG_DMABUF_MR_OFFSET, 8)->data == 4096);
	assert(attr_of(hdr, UVERBS_ATTR_REG_DMABUF_MR_LENGTH, 8)->data == 1ULL << 33);
	assert(attr_of(hdr, UVERBS_ATTR_REG_DMABUF_MR_IOVA, 8)->data == 1ULL << 40);
	assert(attr_of(hdr, UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS, 4)->data == 7);
	if (attr_of(hdr, UVERBS_ATTR_REG_DMABUF_MR_FD, 4)->data != 5) {
		errno = EBADF;
		return -1;
	}
	a = attr_of(hdr, UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, sizeof(key));
	memcpy((void *)(uintptr_t)a->data, &key, sizeof(key));
	a = attr_of(hdr, UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY, sizeof(key));
	memcpy((void *)(uintptr_t)a->data, &key, sizeof(key));
	attr_of(hdr, UVERBS_ATTR_REG_DMABUF_MR_HANDLE, 0)->data = 44;
	fake_live++;
	return 0;
}

int __wrap_ioctl(int file, unsigned long request, void *arg);
int __wrap_ioctl(int file, unsigned long request, void *arg)
{
	struct ib_uverbs_ioctl_hdr *hdr = arg;

	assert(is_ours(file) && request == RDMA_VERBS_IOCTL);
	assert(hdr->length == sizeof(*hdr) + hdr->num_attrs * sizeof(hdr->attrs[0]));
	assert(hdr->driver_id == ROVE_DRIVER_ID);
	switch (hdr->object_id) {
	case UVERBS_OBJECT_DM:
		return dm_call(hdr);
	case UVERBS_OBJECT_MR:
		return reg_dmabuf_mr(hdr);
	}
	assert(hdr->num_attrs == 3);
	assert(hdr->attrs[0].attr_id == UVERBS_ATTR_WRITE_CMD &&
	       hdr->attrs[0].data == IB_USER_VERBS_CMD_POST_SEND);
	assert(hdr->attrs[1].len == sizeof(struct ib_uverbs_post_send));
	fake_ioctls++;
	return 0;
}
