/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * net.h - the way of packets between the transport and the network stack
 *
 *	transport -> rove_net_emit() -> ip_local_out()		net_tx.c
 *	UDP port 4791 -> rove_net_rcv() -> transport		net_rx.c
 */
#ifndef ROVE_NET_H
#define ROVE_NET_H

#include <linux/skbuff.h>

struct rove_burst;
struct rove_flow;
struct rove_qp;
struct sock;

/* udp_tunnel_sock_cfg.encap_rcv of the sockets on port 4791.  Consumes @skb. */
int rove_net_rcv(struct sock *sk, struct sk_buff *skb);

/**
 * rove_net_emit() - build a burst's packets and give them to the stack
 * @qp: locked
 * @b: the burst
 *
 * Return: as rove_env_emit().
 */
int rove_net_emit(struct rove_qp *qp, const struct rove_burst *b);

/* Forget the cached route; the next packet looks it up.  QP locked. */
void rove_net_forget_route(struct rove_qp *qp);

/* A QP's account of packets in flight.  NULL: no memory. */
struct rove_flow *rove_flow_create(struct rove_qp *qp);
/* The QP goes away; packets may still hold the account.  May be called once. */
void rove_flow_release(struct rove_flow *flow);
/* Module exit: wait for the last packet whose destructor is our code. */
void rove_flow_wait_all(void);

#endif /* ROVE_NET_H */
