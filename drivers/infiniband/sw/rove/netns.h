/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * netns.h - what rove keeps in each network namespace: the UDP sockets on port
 * 4791, opened with the first link and closed with the last, and the table of
 * links by which the receive path finds its device
 */
#ifndef ROVE_NETNS_H
#define ROVE_NETNS_H

#include <linux/hashtable.h>
#include <linux/mutex.h>
#include <net/net_namespace.h>

struct rove_dev;
struct sk_buff;
struct udphdr;
struct rove_in_route;
union ib_gid;

#define ROVE_LINK_HASH_BITS	4
#define ROVE_IN_ROUTE_BITS	8

/**
 * struct rove_net - a namespace's part
 * @net: the namespace
 * @lock: guards all below against other writers; may sleep; RTNL nests inside
 * @present: links in @links and those that are leaving; who takes one down is done with all of
 *	this when it no longer counts, and the death of the namespace waits for it to be 0
 * @sk4: UDP socket for IPv4, or NULL
 * @sk6: UDP socket for IPv6, or NULL (also where IPv6 is off)
 * @hooked: the netfilter hooks are in place
 * @in_route: where packets came from, and their routes; early_demux.c
 * @links: links by ifindex of their netdev; read under RCU
 */
struct rove_net {
	struct net *net;
	struct mutex lock;
	atomic_t present;
	struct socket *sk4;
	struct socket *sk6;
	bool hooked;
	struct rove_in_route __rcu *in_route[1 << ROVE_IN_ROUTE_BITS];
	DECLARE_HASHTABLE(links, ROVE_LINK_HASH_BITS);
};

/*
 * The part of this namespace; NULL while the namespace is being born.  Context:
 * any, while it lives.
 */
struct rove_net *rove_net(struct net *net);

/**
 * rove_net_add() - enter a link in its namespace's table
 * @rdev: the link
 * @net: the namespace, held: it does not begin to go before the link counts
 *
 * Opens the sockets for the first.  Says in the log what was wrong.
 *
 * Context: may sleep; takes RTNL.
 * Return: 0; -EEXIST: the netdev has a link; -ENODEV: the netdev is going away, or is in
 * another namespace now;
 * -EADDRINUSE: UDP port 4791 is taken; or what opening a socket ends with.
 */
int rove_net_add(struct rove_dev *rdev, struct net *net);

/**
 * rove_net_del() - take a link out of the table, if it is in it
 * @rdev: the link
 *
 * Closes the sockets after the last.  No receive path sees the link any more
 * when it returns.
 *
 * Context: may sleep; no RTNL held.
 */
void rove_net_del(struct rove_dev *rdev);

/* The link on this netdev, under rcu_read_lock(); NULL if there is none. */
struct rove_dev *rove_net_find(struct rove_net *rnet, int ifindex);

/**
 * rove_net_find_owner() - the link whose GIDs a netdev's addresses are
 * @rnet: the namespace's part
 * @dev: a netdev of it
 *
 * That is the netdev's own link, or one on a netdev below it: a VLAN's parent, a
 * bond's slave, a bridge's port, as ib_core has it.
 *
 * Context: under rcu_read_lock().
 * Return: the link, or NULL.
 */
struct rove_dev *rove_net_find_owner(struct rove_net *rnet,
				     struct net_device *dev);

/**
 * rove_net_find_gid() - the link that has an address among its GIDs
 * @rnet: the namespace's part
 * @gid: the address
 *
 * Context: under rcu_read_lock(); walks over tables.
 * Return: the link, the first if there are several, or NULL.
 */
struct rove_dev *rove_net_find_gid(struct rove_net *rnet, const union ib_gid *gid);

/**
 * rove_net_udp() - the UDP header of a packet for RoCE's port
 * @skb: an IPv4 or IPv6 packet at a netfilter hook, its headers checked by IP
 * @buf: where the header is copied if it is in pieces
 *
 * Context: any.
 * Return: the header, or NULL: another protocol, another port, or cut short.
 */
const struct udphdr *rove_net_udp(const struct sk_buff *skb, struct udphdr *buf);

int rove_netns_init(void);
void rove_netns_exit(void);

#endif /* ROVE_NETNS_H */
