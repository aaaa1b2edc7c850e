// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The device: how libibverbs finds it, opens it and asks about it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "rove.h"

ROVE_RESP(rove_get_context_resp, ib_uverbs_get_context_resp,
	  rove_alloc_ucontext_resp);

static int rove_query_device_ex(struct ibv_context *context,
				const struct ibv_query_device_ex_input *input,
				struct ibv_device_attr_ex *attr,
				size_t attr_size)
{
	struct ib_uverbs_ex_query_device_resp resp = {};
	size_t resp_size = sizeof(resp);
	uint64_t ver;
	int ret;

	ret = ibv_cmd_query_device_any(context, input, attr, attr_size,
				       &resp, &resp_size);
	if (ret)
		return ret;

	ver = resp.base.fw_ver;
	snprintf(attr->orig_attr.fw_ver, sizeof(attr->orig_attr.fw_ver),
		 "%u.%u.%u", (unsigned int)(ver >> 32),
		 (unsigned int)(ver >> 16) & 0xffff,
		 (unsigned int)ver & 0xffff);

	/* CQEs are stamped in nanoseconds of a 64-bit clock. */
	if (attr_size >= offsetof(struct ibv_device_attr_ex, hca_core_clock) +
			 sizeof(attr->hca_core_clock)) {
		attr->completion_timestamp_mask = UINT64_MAX;
		attr->hca_core_clock = 1000 * 1000;	/* kHz */
	}
	/* Any rate that the attribute can say, in kb/s. */
	if (attr_size >= offsetof(struct ibv_device_attr_ex, packet_pacing_caps) +
			 sizeof(attr->packet_pacing_caps)) {
		attr->packet_pacing_caps.qp_rate_limit_min = 1;
		attr->packet_pacing_caps.qp_rate_limit_max = UINT32_MAX;
		attr->packet_pacing_caps.supported_qpts =
			1 << IBV_QPT_RC | 1 << IBV_QPT_UC | 1 << IBV_QPT_UD |
			1 << IBV_QPT_XRC_SEND;
	}
	return 0;
}

static int rove_query_port(struct ibv_context *context, uint8_t port,
			   struct ibv_port_attr *attr)
{
	struct ibv_query_port cmd = {};

	return ibv_cmd_query_port(context, port, attr, &cmd, sizeof(cmd));
}

/* The clock of ibv_wc_read_completion_ts(), in its unit. */
static int rove_query_rt_values(struct ibv_context *context,
				struct ibv_values_ex *values)
{
	struct timespec now;

	(void)context;
	if (values->comp_mask & ~(uint32_t)IBV_VALUES_MASK_RAW_CLOCK)
		return EINVAL;
	if (values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK) {
		if (clock_gettime(CLOCK_MONOTONIC, &now))
			return errno;
		values->raw_clock.tv_sec = 0;
		values->raw_clock.tv_nsec =
			now.tv_sec * 1000000000ULL + now.tv_nsec;
	}
	return 0;
}

static void rove_free_context(struct ibv_context *context)
{
	struct rove_context *ctx = to_rove_ctx(context);

	verbs_uninit_context(&ctx->vctx);
	free(ctx);
}

/* What is NULL here is answered by libibverbs with EOPNOTSUPP. */
static const struct verbs_context_ops rove_context_ops = {
	.advise_mr = ibv_cmd_advise_mr,
	.alloc_dm = rove_alloc_dm,
	.alloc_mw = rove_alloc_mw,
	.alloc_null_mr = rove_alloc_null_mr,
	.alloc_parent_domain = rove_alloc_parent_domain,
	.alloc_pd = rove_alloc_pd,
	.alloc_td = rove_alloc_td,
	.bind_mw = rove_bind_mw,
	.attach_mcast = ibv_cmd_attach_mcast,
	.close_xrcd = rove_close_xrcd,
	.create_ah = rove_create_ah,
	.create_cq = rove_create_cq,
	.create_cq_ex = rove_create_cq_ex,
	.create_qp = rove_create_qp,
	.create_qp_ex = rove_create_qp_ex,
	.create_srq = rove_create_srq,
	.create_srq_ex = rove_create_srq_ex,
	.dealloc_mw = rove_dealloc_mw,
	.dealloc_pd = rove_dealloc_pd,
	.dealloc_td = rove_dealloc_td,
	.dereg_mr = rove_dereg_mr,
	.destroy_ah = rove_destroy_ah,
	.destroy_cq = rove_destroy_cq,
	.destroy_qp = rove_destroy_qp,
	.destroy_srq = rove_destroy_srq,
	.detach_mcast = ibv_cmd_detach_mcast,
	.free_context = rove_free_context,
	.free_dm = rove_free_dm,
	.get_srq_num = rove_get_srq_num,
	.import_dm = rove_import_dm,
	.import_mr = rove_import_mr,
	.import_pd = rove_import_pd,
	.modify_cq = rove_modify_cq,
	.modify_qp = rove_modify_qp,
	.modify_qp_rate_limit = rove_modify_qp_rate_limit,
	.modify_srq = rove_modify_srq,
	.open_qp = rove_open_qp,
	.open_xrcd = rove_open_xrcd,
	.poll_cq = rove_poll_cq,
	.post_recv = rove_post_recv,
	.post_send = rove_post_send,
	.post_srq_recv = rove_post_srq_recv,
	.query_device_ex = rove_query_device_ex,
	.query_port = rove_query_port,
	.query_qp = rove_query_qp,
	.query_rt_values = rove_query_rt_values,
	.query_srq = rove_query_srq,
	.reg_dm_mr = rove_reg_dm_mr,
	.reg_dmabuf_mr = rove_reg_dmabuf_mr,
	.reg_mr = rove_reg_mr,
	.req_notify_cq = rove_req_notify_cq,
	.rereg_mr = rove_rereg_mr,
	.resize_cq = rove_resize_cq,
	.unimport_dm = rove_unimport_dm,
	.unimport_mr = rove_unimport_mr,
	.unimport_pd = rove_unimport_pd,
};

/* @ret: what the kernel said to opening or importing @ctx. */
static struct verbs_context *opened(struct rove_context *ctx, int ret)
{
	if (ret) {
		verbs_uninit_context(&ctx->vctx);
		free(ctx);
		errno = ret;
		return NULL;
	}

	verbs_set_ops(&ctx->vctx, &rove_context_ops);
	return &ctx->vctx;
}

static struct verbs_context *rove_alloc_context(struct ibv_device *device,
						int cmd_fd, void *private_data)
{
	union rove_get_context_resp resp = {};
	struct ibv_get_context cmd = {};
	struct rove_context *ctx;
	int ret;

	(void)private_data;
	ctx = verbs_init_and_alloc_context(device, cmd_fd, ctx, vctx,
					   ROVE_DRIVER_ID);
	if (!ctx)
		return NULL;

	ret = rove_cmd_get_context(&ctx->vctx, &cmd, sizeof(cmd),
				   &resp.core, sizeof(resp));
	return opened(ctx, ret);
}

/* A context that another process has opened, and whose descriptor we were given. */
static struct verbs_context *rove_import_context(struct ibv_device *device,
						 int cmd_fd)
{
	struct rove_context *ctx;
	int ret;

	ctx = verbs_init_and_alloc_context(device, cmd_fd, ctx, vctx,
					   ROVE_DRIVER_ID);
	if (!ctx)
		return NULL;

	ret = ibv_cmd_query_context(&ctx->vctx.context, NULL);
	return opened(ctx, ret);
}

static struct verbs_device *rove_alloc_device(struct verbs_sysfs_dev *sysfs)
{
	(void)sysfs;
	return calloc(1, sizeof(struct verbs_device));
}

static void rove_uninit_device(struct verbs_device *device)
{
	free(device);
}

/*
 * By the driver's number only: a match by name would take any device that
 * somebody called rove-something away from its own provider.
 */
static const struct verbs_match_ent rove_match_table[] = {
	VERBS_DRIVER_ID(ROVE_DRIVER_ID),
	{},
};

static const struct verbs_device_ops rove_device_ops = {
	.name = "rove",
	.match_min_abi_version = ROVE_UVERBS_ABI_VERSION,
	.match_max_abi_version = ROVE_UVERBS_ABI_VERSION,
	.match_table = rove_match_table,
	.alloc_device = rove_alloc_device,
	.uninit_device = rove_uninit_device,
	.alloc_context = rove_alloc_context,
	.import_context = rove_import_context,
};
PROVIDER_DRIVER(rove, rove_device_ops);
