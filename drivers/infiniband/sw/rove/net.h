/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * net.h - the way of packets between the transport and the network stack
 *
 *	transport -> rove_net_emit(), rove_net_flush() -> ip_local_out()	net_tx.c
 *	UDP port 4791 -> rove_net_rcv() -> transport				net_rx.c
 */
#ifndef ROVE_NET_H
#define ROVE_NET_H

#include <linux/skbuff.h>

struct rove_burst;
struct rove_flow;
struct rove_origin;
struct rove_qp;
struct sock;

/*
 * skb_shared_info.tskey of what we send, of which nobody is told the time: it stays with an
 * skb as long as that stays on this machine.
 */
#define ROVE_TSKEY	0x65766f72

/* udp_tunnel_sock_cfg.encap_rcv of the sockets on port 4791.  Consumes @skb. */
int rove_net_rcv(struct sock *sk, struct sk_buff *skb);

/*
 * Work off one skb of a QP's backlog: true if there are more.  QP locked, and perhaps
 * unlocked in between.  Softirq.
 */
bool rove_net_backlog(struct rove_qp *qp);

/* The netdev that has an skb's destination address; NULL: none has it any more.  RCU. */
struct net_device *rove_net_dest_dev(struct net *net, const struct sk_buff *skb);

/* How long skbs have waited in backlogs lately, ns; 0: none has. */
u64 rove_net_lag(void);

/* Free what is in its backlog.  Nobody can find the QP any more. */
void rove_net_backlog_purge(struct rove_qp *qp);

/* Module init: how much backlogs may hold on this machine. */
void rove_net_rx_init(void);

/**
 * rove_net_emit() - build a burst's packets
 * @qp: locked
 * @b: the burst
 *
 * They stay in @qp->tx, where more may join them, until rove_net_flush().
 *
 * Return: as rove_env_emit().
 */
int rove_net_emit(struct rove_qp *qp, const struct rove_burst *b);

/* Give the packets built to the stack.  QP locked; rove_qp_unlock() calls it. */
void rove_net_flush(struct rove_qp *qp);

/**
 * rove_net_origin() - what the receiver of a datagram is told of where it came from
 * @qp: the receiver
 * @skb: the packet, or the train that it is of
 * @ifindex: netdev that it came in by; 0: the loopback
 * @len: its bytes behind the UDP header
 * @id: its IPv4 identification
 * @o: filled in
 *
 * Context: within rcu_read_lock().
 */
void rove_net_origin(struct rove_qp *qp, const struct sk_buff *skb, int ifindex,
		     u32 len, u16 id, struct rove_origin *o);

/* Module init and exit: the memory that packets are built in. */
void rove_net_tx_init(void);
void rove_net_tx_exit(void);

/* This CPU sends nothing for now, and gives its part of that memory back.  Softirqs are off. */
void rove_net_tx_idle(void);

/* Forget the cached route; the next packet looks it up.  QP locked. */
void rove_net_forget_route(struct rove_qp *qp);

/* The route to the peer, or NULL: looked up if the cached one is stale.  QP locked. */
struct dst_entry *rove_net_route(struct rove_qp *qp);

/* A QP's account of packets in flight.  NULL: no memory. */
struct rove_flow *rove_flow_create(struct rove_qp *qp);
/* Has the stack freed or orphaned all that were sent?  IP orphans what it receives. */
bool rove_flow_empty(const struct rove_flow *flow);
/* The QP goes away; packets may still hold the account.  May be called once. */
void rove_flow_release(struct rove_flow *flow);
/* Module exit: wait for the last packet whose destructor is our code. */
void rove_flow_wait_all(void);

#endif /* ROVE_NET_H */
