/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * refuse.h - to say in the log why a request is refused
 *
 * A program gets a bare EINVAL; this is for the person who then asks why.  Each place
 * that says something is limited to a few lines in five seconds.
 */
#ifndef ROVE_REFUSE_H
#define ROVE_REFUSE_H

#include <linux/printk.h>
#include <linux/sched.h>
#include <rdma/ib_verbs.h>

struct rove_qp;

/**
 * rove_warn() - ibdev_warn_ratelimited(), but beside `rdma dev set ... name`, too
 * @dev: the struct ib_device
 * @fmt: what is the matter
 *
 * dev_name() is freed when the device is renamed, its own name is written over.
 *
 * Context: any.
 */
#define rove_warn(dev, fmt, ...)					\
	pr_warn_ratelimited("%s: " fmt, (dev)->name, ##__VA_ARGS__)

/**
 * rove_refuse() - say what was wrong with a request
 * @dev: the struct ib_device
 * @fmt: which verb, which attribute, and what would have been right
 *
 * Context: any; @current is the one who asked.
 */
#define rove_refuse(dev, fmt, ...)					\
	rove_warn(dev, "%s[%d]: " fmt "\n", current->comm,		\
		  task_pid_nr(current), ##__VA_ARGS__)

/**
 * rove_exceeds() - is an attribute larger than allowed?  Says so in the log
 * @dev: the struct ib_device
 * @what: verb and attribute, a string
 * @value: what was asked for
 * @most: what is allowed
 */
#define rove_exceeds(dev, what, value, most)				\
({									\
	u64 value_ = value, most_ = most;				\
									\
	if (value_ > most_)						\
		rove_refuse(dev, what " %llu, at most %llu", value_, most_); \
	value_ > most_;							\
})

/* As the standard calls a QP's state. */
const char *rove_state_name(enum ib_qp_state state);

/**
 * rove_refuse_transition() - say why ib_modify_qp_is_ok() has said no
 * @qp: the QP
 * @from: its state
 * @to: the one it was to have
 * @mask: enum ib_qp_attr_mask: what came along
 *
 * Context: QP locked.
 */
void rove_refuse_transition(struct rove_qp *qp, enum ib_qp_state from,
			    enum ib_qp_state to, int mask);

#endif /* ROVE_REFUSE_H */
