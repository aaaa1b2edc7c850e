/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * train.h - packets that cross the network stack as one super-packet
 *
 * UDP segmentation (and its inverse, GRO) lets packets of the same flow share one
 * buffer if all are of one length but the last, which may be shorter: the
 * middle of a message, or many small messages in a row.  An environment that sends
 * fills a train with the transport's packets as long as they fit and opens another
 * when one does not; an environment that receives takes a train apart.
 */
#ifndef ROVE_TRAIN_H
#define ROVE_TRAIN_H

#include <linux/types.h>

/* Packets of one train; what the stack's GRO merges at most. */
#define ROVE_TRAIN_PKTS		64
/*
 * Bytes of one train, counted like @len: with an IPv6 and a link-layer header it
 * is still below the 64 KiB where devices stop taking it whole.
 */
#define ROVE_TRAIN_BYTES	65400

/**
 * struct rove_train - a super-packet that is being filled
 * @seg_len: bytes of each packet but the last, from the BTH to the ICRC
 * @len: bytes so far
 * @npkts: packets so far; 0: no train is open
 */
struct rove_train {
	u32 seg_len;
	u32 len;
	u32 npkts;
};

/**
 * rove_train_takes() - does the next packet fit?
 * @tr: the train
 * @len: the packet's bytes from the BTH to the end of the ICRC
 *
 * Return: false: close the train and open another.
 */
static inline bool rove_train_takes(const struct rove_train *tr, u32 len)
{
	return tr->npkts && tr->npkts < ROVE_TRAIN_PKTS && len <= tr->seg_len &&
	       tr->len == tr->npkts * tr->seg_len &&
	       tr->len + len <= ROVE_TRAIN_BYTES;
}

/* Add a packet of @len bytes that fits, or that is the first. */
static inline void rove_train_add(struct rove_train *tr, u32 len)
{
	if (!tr->npkts)
		tr->seg_len = len;
	tr->len += len;
	tr->npkts++;
}

#endif /* ROVE_TRAIN_H */
