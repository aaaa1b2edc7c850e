/* SPDX-License-Identifier: GPL-2.0 */
/*
 * end.h - an open device and its RC queue pairs
 *
 * Whatever goes wrong ends the program: nobody wants figures of half a set-up.
 */
#ifndef GROW_END_H
#define GROW_END_H

#include <infiniband/verbs.h>
#include <stdint.h>

/**
 * struct end - one device, opened
 * @ctx: the context
 * @pd: its protection domain
 * @gid: the GID that its QPs use
 * @gid_index: which one that is
 */
struct end {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	union ibv_gid gid;
	int gid_index;
};

/* Say what went wrong, with errno, and exit. */
void die(const char *fmt, ...)
	__attribute__((noreturn, format(printf, 1, 2)));

/* Seconds of a monotonic clock that all processes share. */
double now(void);

/* Open what @spec names: "DEVICE,GID-INDEX". */
void end_open(struct end *e, const char *spec);

/* A CQ of @n entries. */
struct ibv_cq *end_cq(struct end *e, uint32_t n);

/* An RC QP of one SGE, in INIT, every send signalled. */
struct ibv_qp *end_qp(struct end *e, struct ibv_cq *scq, struct ibv_cq *rcq,
		      uint32_t send_wr, uint32_t recv_wr);

/* From INIT to RTS, connected to QP @qpn at @gid; up to @reads READs at once. */
void end_connect(struct end *e, struct ibv_qp *qp, uint32_t qpn,
		 const union ibv_gid *gid, uint8_t reads);

/* Register memory for everything that these programs do. */
struct ibv_mr *end_reg(struct end *e, void *buf, size_t len);

/**
 * parse_list() - read "1,16,4k,1g"
 * @s: the list; numbers ascend
 * @v: filled in
 * @max: room in @v
 *
 * Return: how many.
 */
unsigned int parse_list(const char *s, uint64_t *v, unsigned int max);

#endif /* GROW_END_H */
