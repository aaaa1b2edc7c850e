// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * rove_moves.c - an exporter of dma-buf buffers that move, as those of graphics
 * drivers do, whose memory a mapping of the kernel's does not hold
 *
 * A buffer that nobody has pinned moves as soon as somebody maps it to look at it.
 * Where it was there is something else then.  ioctl(2) on /dev/rove_moves makes one:
 * its argument is the size, and its number who has it pinned: ROVE_MOVES_PIN, by
 * asking for it; ROVE_MOVES_ATTACH, by being attached to it.
 */
#include <linux/dma-buf.h>
#include <linux/dma-resv.h>
#include <linux/iosys-map.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include "../../drivers/infiniband/sw/rove/compat.h"

ROVE_IMPORT_DMA_BUF;

#define ROVE_MOVES_PIN		_IO('R', 1)
#define ROVE_MOVES_ATTACH	_IO('R', 2)

/* Guarded by the buffer's reservation lock. */
struct moving {
	void *mem, *was;
	size_t size;
	unsigned int pins;
};

static int pin(struct dma_buf_attachment *attach)
{
	struct moving *m = attach->dmabuf->priv;

	m->pins++;
	return 0;
}

static void unpin(struct dma_buf_attachment *attach)
{
	struct moving *m = attach->dmabuf->priv;

	m->pins--;
}

static int attached(struct dma_buf *buf, struct dma_buf_attachment *attach)
{
	dma_resv_lock(buf->resv, NULL);
	((struct moving *)buf->priv)->pins++;
	dma_resv_unlock(buf->resv);
	return 0;
}

static void detached(struct dma_buf *buf, struct dma_buf_attachment *attach)
{
	dma_resv_lock(buf->resv, NULL);
	((struct moving *)buf->priv)->pins--;
	dma_resv_unlock(buf->resv);
}

/* Not for a device. */
static struct sg_table *map_dma_buf(struct dma_buf_attachment *attach,
				    enum dma_data_direction dir)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static void unmap_dma_buf(struct dma_buf_attachment *attach, struct sg_table *sgt,
			  enum dma_data_direction dir)
{
}

static int move(struct moving *m)
{
	void *to;

	if (m->pins || m->was)
		return 0;
	to = vmalloc_user(m->size);
	if (!to)
		return -ENOMEM;
	memcpy(to, m->mem, m->size);
	memset(m->mem, 0xee, m->size);
	m->was = m->mem;
	m->mem = to;
	return 0;
}

static int map_user(struct dma_buf *buf, struct vm_area_struct *vma)
{
	struct moving *m = buf->priv;
	int err;

	dma_resv_lock(buf->resv, NULL);
	err = move(m);
	if (!err)
		err = remap_vmalloc_range(vma, m->mem, vma->vm_pgoff);
	dma_resv_unlock(buf->resv);
	return err;
}

static int map_kernel(struct dma_buf *buf, struct iosys_map *map)
{
	iosys_map_set_vaddr(map, ((struct moving *)buf->priv)->mem);
	return 0;
}

static void release(struct dma_buf *buf)
{
	struct moving *m = buf->priv;

	WARN_ON(m->pins);
	vfree(m->was);
	vfree(m->mem);
	kfree(m);
}

static const struct dma_buf_ops pinned_ops = {
	.pin = pin,
	.unpin = unpin,
	.map_dma_buf = map_dma_buf,
	.unmap_dma_buf = unmap_dma_buf,
	.mmap = map_user,
	.vmap = map_kernel,
	.release = release,
};

static const struct dma_buf_ops attached_ops = {
	.attach = attached,
	.detach = detached,
	.map_dma_buf = map_dma_buf,
	.unmap_dma_buf = unmap_dma_buf,
	.mmap = map_user,
	.vmap = map_kernel,
	.release = release,
};

static long export(struct file *file, unsigned int cmd, unsigned long size)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct dma_buf *buf;
	struct moving *m;
	int fd;

	if (cmd != ROVE_MOVES_PIN && cmd != ROVE_MOVES_ATTACH)
		return -ENOTTY;
	m = kzalloc(sizeof(*m), GFP_KERNEL);
	if (!m)
		return -ENOMEM;
	m->size = PAGE_ALIGN(size);
	m->mem = vmalloc_user(m->size);
	if (!m->mem) {
		kfree(m);
		return -ENOMEM;
	}
	info.ops = cmd == ROVE_MOVES_PIN ? &pinned_ops : &attached_ops;
	info.size = m->size;
	info.flags = O_RDWR;
	info.priv = m;
	buf = dma_buf_export(&info);
	if (IS_ERR(buf)) {
		vfree(m->mem);
		kfree(m);
		return PTR_ERR(buf);
	}
	fd = dma_buf_fd(buf, O_CLOEXEC);
	if (fd < 0)
		dma_buf_put(buf);
	return fd;
}

static const struct file_operations file_ops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = export,
};

static struct miscdevice dev = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "rove_moves",
	.fops = &file_ops,
};
module_misc_device(dev);

MODULE_DESCRIPTION("Buffers that move: a test");
MODULE_LICENSE("Dual BSD/GPL");
