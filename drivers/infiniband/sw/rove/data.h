/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * data.h - bytes between packets and memory regions
 */
#ifndef ROVE_DATA_H
#define ROVE_DATA_H

#include <linux/types.h>
#include <linux/uio.h>

struct rove_burst;
struct rove_qp;

/* Pieces that a received packet's payload may lie in. */
#define ROVE_MAX_PIECES	6

/**
 * struct rove_payload - where the payload of a received packet lies;
 *	&rove_pkt.buf points to it
 * @n: pieces
 * @piece: each of contiguous bytes
 */
struct rove_payload {
	u32 n;
	struct kvec piece[ROVE_MAX_PIECES];
};

/**
 * struct rove_source - where the payload of a burst is read, piece by piece
 * @qp: its QP, locked
 * @b: the burst
 * @sge: SGE in use
 * @va: what to find next
 * @left: bytes of this SGE from there on
 * @from: found: kernel address of the next byte to read, if @ready
 * @ready: bytes that lie there, in the region that @qp holds
 */
struct rove_source {
	struct rove_qp *qp;
	const struct rove_burst *b;
	u32 sge;
	u64 va;
	u32 left;
	const u8 *from;
	u32 ready;
};

/* Start reading at the burst's first payload byte. */
void rove_source_init(struct rove_source *src, struct rove_qp *qp,
		      const struct rove_burst *b);

/**
 * rove_source_read() - copy the next bytes
 * @src: initialised
 * @dst: where to
 * @len: how many; the caller never asks for more than the burst has
 *
 * Return: 0; -EFAULT when a key, its domain, its rights or its bounds do not fit;
 * -EAGAIN when a page is missing, which is on its way.
 */
int rove_source_read(struct rove_source *src, void *dst, u32 len);

/* Let go of the region that the QP holds, if any.  QP locked. */
void rove_data_release(struct rove_qp *qp);

#endif /* ROVE_DATA_H */
