// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The wake-up call: uverbs' POST_SEND or POST_RECV with no work request in
 * it.  What is to be done stands in the ring; the kernel does it in this
 * thread.
 *
 * write(2) is the shortest way in, but the kernel refuses it (EACCES) to a
 * process that changed its credentials since it opened the device.  Such a
 * process calls the same command through ioctl(2).
 */
#include <assert.h>
#include <errno.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "rove.h"

/* The body of both commands is alike; neither carries a work request here. */
struct wakeup_body {
	__aligned_u64 response;
	__u32 qp_handle;
	__u32 wr_count;
	__u32 sge_count;
	__u32 wqe_size;
};

static_assert(sizeof(struct wakeup_body) == sizeof(struct ib_uverbs_post_send),
	      "POST_SEND");
static_assert(sizeof(struct wakeup_body) == sizeof(struct ib_uverbs_post_recv),
	      "POST_RECV");
static_assert(offsetof(struct ib_uverbs_post_send, wqe_size) == 20 &&
	      offsetof(struct ib_uverbs_post_recv, wqe_size) == 20, "wqe_size");
static_assert(sizeof(struct ib_uverbs_post_send_resp) == 4 &&
	      sizeof(struct ib_uverbs_post_recv_resp) == 4, "answer");

struct wakeup_write {
	struct ib_uverbs_cmd_hdr hdr;
	struct wakeup_body body;
};

#define NUM_ATTRS 3

union wakeup_ioctl {
	struct ib_uverbs_ioctl_hdr hdr;
	struct {
		unsigned char room[sizeof(struct ib_uverbs_ioctl_hdr)];
		struct ib_uverbs_attr attrs[NUM_ATTRS];
	};
};

static int call_write(int cmd_fd, uint32_t command,
		      const struct wakeup_body *body)
{
	struct wakeup_write msg = {
		.hdr = {
			.command = command,
			.in_words = sizeof(msg) / 4,
			.out_words = sizeof(struct ib_uverbs_post_send_resp) / 4,
		},
		.body = *body,
	};
	ssize_t ret = write(cmd_fd, &msg, sizeof(msg));

	if (likely(ret == sizeof(msg)))
		return 0;
	return ret < 0 ? errno : EIO;
}

static int call_ioctl(int cmd_fd, uint32_t command,
		      const struct wakeup_body *body)
{
	union wakeup_ioctl msg = {
		.hdr = {
			.length = sizeof(msg),
			.object_id = UVERBS_OBJECT_DEVICE,
			.method_id = UVERBS_METHOD_INVOKE_WRITE,
			.num_attrs = NUM_ATTRS,
			.driver_id = ROVE_DRIVER_ID,
		},
	};

	msg.attrs[0] = (struct ib_uverbs_attr){
		.attr_id = UVERBS_ATTR_WRITE_CMD,
		.len = sizeof(uint64_t),
		.flags = UVERBS_ATTR_F_MANDATORY,
		.data = command,
	};
	msg.attrs[1] = (struct ib_uverbs_attr){
		.attr_id = UVERBS_ATTR_CORE_IN,
		.len = sizeof(*body),
		.flags = UVERBS_ATTR_F_MANDATORY,
		.data = (uintptr_t)body,
	};
	msg.attrs[2] = (struct ib_uverbs_attr){
		.attr_id = UVERBS_ATTR_CORE_OUT,
		.len = sizeof(struct ib_uverbs_post_send_resp),
		.flags = UVERBS_ATTR_F_MANDATORY,
		.data = body->response,
	};
	return ioctl(cmd_fd, RDMA_VERBS_IOCTL, &msg) ? errno : 0;
}

/**
 * rove_wakeup - has the kernel look at a ring now
 * @ibqp: whose ring
 * @command: IB_USER_VERBS_CMD_POST_SEND or IB_USER_VERBS_CMD_POST_RECV
 *
 * Called without locks.  EIO when the device is gone.
 */
int rove_wakeup(struct ibv_qp *ibqp, uint32_t command)
{
	struct rove_context *ctx = to_rove_ctx(ibqp->context);
	int cmd_fd = ibqp->context->cmd_fd;
	int saved = errno;
	uint32_t answer = 0;
	struct wakeup_body body = {
		.response = (uintptr_t)&answer,
		.qp_handle = ibqp->handle,
		.wqe_size = command == IB_USER_VERBS_CMD_POST_SEND ?
			    sizeof(struct ib_uverbs_send_wr) :
			    sizeof(struct ib_uverbs_recv_wr),
	};
	int tries = 3;
	int ret;

	do {
		if (!__atomic_load_n(&ctx->wakeup_by_ioctl, __ATOMIC_RELAXED)) {
			ret = call_write(cmd_fd, command, &body);
			if (ret == EACCES)
				__atomic_store_n(&ctx->wakeup_by_ioctl, true,
						 __ATOMIC_RELAXED);
		} else {
			ret = EACCES;
		}
		if (ret == EACCES)
			ret = call_ioctl(cmd_fd, command, &body);
		/*
		 * The requests are in the ring already.  To report a passing
		 * shortage would have the program post them twice.  EFAULT is
		 * one, too: the pages of @body cannot be had just now.
		 */
	} while (unlikely(ret == ENOMEM || ret == EINTR || ret == EAGAIN ||
			  ret == EFAULT) && --tries);

	errno = saved;
	return ret;
}
