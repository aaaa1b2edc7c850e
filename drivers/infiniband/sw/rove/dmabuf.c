// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * dmabuf.c - see dmabuf.h
 */
#include <linux/dma-buf.h>
#include <linux/dma-resv.h>
#include <linux/iosys-map.h>
#include <linux/module.h>
#include <linux/overflow.h>
#include <linux/slab.h>
#include <rdma/uverbs_ioctl.h>
#include "dmabuf.h"
#include "dev.h"
#include "mr.h"
#include "refuse.h"

ROVE_IMPORT_DMA_BUF;

/**
 * struct rove_dmabuf - a buffer, and where it is mapped
 * @buf: referenced, so that it stays when its exporter has closed it
 * @attach: our being attached to it, and its being pinned
 * @map: its memory, as the kernel sees it
 */
struct rove_dmabuf {
	struct dma_buf *buf;
	struct dma_buf_attachment *attach;
	struct iosys_map map;
};

/* One that is pinned is never said to move. */
static const struct dma_buf_attach_ops attach_ops = {
	ROVE_MOVE_NOTIFY
};

static bool has_pins(const struct dma_buf *buf)
{
	return buf->ops->pin;
}

/* Have the memory stay where it is. */
static int hold(struct rove_dmabuf *d, struct ib_device *ibdev)
{
	int err;

	if (!has_pins(d->buf)) {
		d->attach = dma_buf_attach(d->buf, &ibdev->dev);
		return PTR_ERR_OR_ZERO(d->attach);
	}
	d->attach = dma_buf_dynamic_attach(d->buf, &ibdev->dev, &attach_ops, d);
	if (IS_ERR(d->attach))
		return PTR_ERR(d->attach);
	dma_resv_lock(d->buf->resv, NULL);
	err = dma_buf_pin(d->attach);
	dma_resv_unlock(d->buf->resv);
	if (err)
		dma_buf_detach(d->buf, d->attach);
	return err;
}

static void let_go(struct rove_dmabuf *d)
{
	if (has_pins(d->buf)) {
		dma_resv_lock(d->buf->resv, NULL);
		dma_buf_unpin(d->attach);
		dma_resv_unlock(d->buf->resv);
	}
	dma_buf_detach(d->buf, d->attach);
}

void rove_dmabuf_free(struct rove_dmabuf *d)
{
	dma_buf_end_cpu_access(d->buf, DMA_BIDIRECTIONAL);
	rove_dma_buf_vunmap(d->buf, &d->map);
	let_go(d);
	dma_buf_put(d->buf);
	kfree(d);
}

/* May this part of it be used so? */
static int check(struct ib_device *ibdev, const struct dma_buf *buf, u64 offset,
		 u64 length, int access)
{
	u64 end;

	if (check_add_overflow(offset, length, &end) || end > buf->size) {
		rove_refuse(ibdev, "dma-buf of %s: %llu bytes at %llu of %zu",
			    buf->exp_name, length, offset, buf->size);
		return -EINVAL;
	}
	/* Who was given it to read cannot write to it by mmap() either. */
	if (ib_access_writable(access) && !(buf->file->f_mode & FMODE_WRITE)) {
		rove_refuse(ibdev, "dma-buf of %s: access %#x, but its file is read-only",
			    buf->exp_name, access);
		return -EACCES;
	}
	return 0;
}

static struct rove_dmabuf *rove_dmabuf_get(struct ib_device *ibdev, int fd,
					   u64 offset, u64 length, int access)
{
	struct rove_dmabuf *d;
	int err;

	d = kzalloc(sizeof(*d), ROVE_GFP_OBJECT);
	if (!d)
		return ERR_PTR(-ENOMEM);
	d->buf = dma_buf_get(fd);
	if (IS_ERR(d->buf)) {
		err = PTR_ERR(d->buf);
		goto err_free;
	}
	err = check(ibdev, d->buf, offset, length, access);
	if (err)
		goto err_put;
	err = hold(d, ibdev);
	if (err) {
		rove_refuse(ibdev, "dma-buf of %s: it cannot be kept in place: %d",
			    d->buf->exp_name, err);
		goto err_put;
	}
	err = rove_dma_buf_vmap(d->buf, &d->map);
	if (err) {
		rove_refuse(ibdev, "dma-buf of %s: the kernel cannot map it: %d",
			    d->buf->exp_name, err);
		goto err_let_go;
	}
	/* It takes other instructions than copying memory does. */
	if (d->map.is_iomem) {
		rove_refuse(ibdev, "dma-buf of %s: on a device, not in memory",
			    d->buf->exp_name);
		err = -EOPNOTSUPP;
		goto err_unmap;
	}
	err = dma_buf_begin_cpu_access(d->buf, DMA_BIDIRECTIONAL);
	if (!err)
		return d;

err_unmap:
	rove_dma_buf_vunmap(d->buf, &d->map);
err_let_go:
	let_go(d);
err_put:
	dma_buf_put(d->buf);
err_free:
	kfree(d);
	return ERR_PTR(err);
}

struct ib_mr *rove_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset, u64 length,
				      u64 iova, int fd, int access,
				      ROVE_DMAH_ARG struct rove_dmabuf_arg *arg)
{
	struct rove_dmabuf *d;
	struct rove_region *r;
	struct rove_mr *mr;
	int err;

	if (ROVE_HAVE_DMAH)
		return ERR_PTR(-EOPNOTSUPP);
	err = rove_mr_check_access(ibpd->device, access);
	if (!err)
		err = rove_mr_check_range(ibpd->device, iova, length);
	if (err)
		return ERR_PTR(err);
	mr = rove_mr_alloc(ibpd, ROVE_REGION_PAGES, access);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	d = rove_dmabuf_get(ibpd->device, fd, offset, length, access);
	if (IS_ERR(d)) {
		err = PTR_ERR(d);
		goto err_free;
	}
	mr->dmabuf = d;
	r = mr->region;
	r->iova = iova;
	err = rove_region_set_contiguous(r, d->map.vaddr, offset, length);
	if (!err)
		err = rove_mr_publish(mr, true);
	if (!err)
		return &mr->ibmr;

err_free:
	rove_mr_free(mr);
	return ERR_PTR(err);
}
