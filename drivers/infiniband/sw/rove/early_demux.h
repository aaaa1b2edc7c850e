/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * early_demux.h - input routes, remembered
 *
 * IP looks a route up for each packet that comes in, also for those that are for this
 * machine, unless a protocol knows it from the packet before: TCP does, and UDP for
 * sockets that have a peer.  Ours have none, but connected QPs do.
 */
#ifndef ROVE_EARLY_DEMUX_H
#define ROVE_EARLY_DEMUX_H

#include <linux/netfilter.h>
#include <linux/skbuff.h>

struct rove_net;

/**
 * rove_early_demux() - netfilter hook: give a packet the route of one like it
 * @priv: not used
 * @skb: an IPv4 or IPv6 packet that has just come in
 * @state: of the hook, the last one before the route is looked up
 *
 * One that came from the peer of a connected QP, less than a second ago, and is the same in
 * all that routes are chosen by: device, addresses, source port, DSCP, flow label, and no
 * mark.  The kernel says whether a route, rule or address has changed since.  Sysctls
 * net.ipv4.ip_early_demux and net.ipv4.udp_early_demux forbid it.
 *
 * Context: softirq, within rcu_read_lock().
 * Return: NF_ACCEPT.
 */
unsigned int rove_early_demux(void *priv, struct sk_buff *skb,
			      const struct nf_hook_state *state);

/*
 * Remember the route of a packet, which the kernel has let in, of a connected QP's peer, with
 * a right ICRC.  Not for the loopback, where packets have their routes.
 * Context: softirq, within rcu_read_lock().
 */
void rove_early_demux_learn(struct rove_net *rnet, const struct sk_buff *skb);

/* Forget all.  Nobody can be in one of the two above any more, nor come there. */
void rove_early_demux_forget(struct rove_net *rnet);

#endif /* ROVE_EARLY_DEMUX_H */
