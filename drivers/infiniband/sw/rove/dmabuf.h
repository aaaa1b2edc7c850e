/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * dmabuf.h - regions in buffers of other drivers' (dma-buf)
 *
 * Without DMA the kernel's own mapping of such a buffer is what is needed.  But it
 * keeps nothing in place: a graphics driver moves its buffers all the same, or
 * swaps them out, unless they are pinned or, if it knows no pins, attached to.
 */
#ifndef ROVE_DMABUF_H
#define ROVE_DMABUF_H

#include <rdma/ib_verbs.h>
#include "compat.h"

struct rove_dmabuf;

/* ib_device_ops; sleeps. */
struct ib_mr *rove_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset, u64 length,
				      u64 iova, int fd, int access,
				      ROVE_DMAH_ARG struct rove_dmabuf_arg *arg);

/* When nobody can find or holds the region.  Sleeps. */
void rove_dmabuf_free(struct rove_dmabuf *d);

#endif /* ROVE_DMABUF_H */
