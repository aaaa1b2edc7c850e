/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * link.h - how links come and go: `rdma link add` and `delete`, the netdev's
 * events, and what is done before programs lose their objects
 */
#ifndef ROVE_LINK_H
#define ROVE_LINK_H

struct rove_dev;
struct rove_net;

/**
 * rove_link_init() - accept links
 *
 * Context: module init; may sleep.
 * Return: 0 or an error, and nothing is registered.
 */
int rove_link_init(void);

/**
 * rove_link_exit() - accept no more links and take all down
 *
 * Programs may be running on them.  None is left when it returns.
 *
 * Context: module exit; may sleep.
 */
void rove_link_exit(void);

/**
 * rove_link_dev_init() - this part's of a new link
 * @rdev: the link, known to nobody yet
 */
void rove_link_dev_init(struct rove_dev *rdev);

/**
 * rove_link_left() - ib_core is done with what a link was, if it was
 * @rdev: the link, which is about to be freed, or to come back in another namespace
 */
void rove_link_left(struct rove_dev *rdev);

/**
 * rove_link_unregister_all() - take all links of a dying namespace down
 * @rnet: the namespace's part; nobody can add a link to it any more
 *
 * Context: may sleep; no RTNL held.
 */
void rove_link_unregister_all(struct rove_net *rnet);

#endif /* ROVE_LINK_H */
