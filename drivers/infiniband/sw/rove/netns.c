// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * netns.c - network namespaces: UDP sockets on port 4791 and the table of links
 *
 * The sockets exist only to own the port and to be called for its packets;
 * nothing is sent through them.  They belong to the netdevs' namespace, which
 * need not be the one where the ib_device is seen.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/netfilter_ipv4.h>
#include <linux/netfilter_ipv6.h>
#include <linux/rtnetlink.h>
#include <linux/udp.h>
#include <linux/wait_bit.h>
#include <net/netns/generic.h>
#include <net/udp_tunnel.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_verbs.h>
#include "netns.h"
#include "compat.h"
#include "dev.h"
#include "early_demux.h"
#include "link.h"
#include "net.h"

static unsigned int rove_net_id;

struct rove_net *rove_net(struct net *net)
{
	return net_generic(net, rove_net_id);
}

struct rove_dev *rove_net_find(struct rove_net *rnet, int ifindex)
{
	struct rove_dev *rdev;

	/* A namespace's loopback device is announced before we are told of it. */
	if (!rnet)
		return NULL;
	hash_for_each_possible_rcu(rnet->links, rdev, node, ifindex) {
		if (rdev->ndev->ifindex == ifindex)
			return rdev;
	}
	return NULL;
}

struct rove_dev *rove_net_find_owner(struct rove_net *rnet,
				     struct net_device *dev)
{
	struct rove_dev *rdev = rove_net_find(rnet, dev->ifindex);
	int bucket;

	if (rdev)
		return rdev;
	if (is_vlan_dev(dev)) {
		rdev = rove_net_find(rnet, vlan_dev_real_dev(dev)->ifindex);
		if (rdev)
			return rdev;
	}
	hash_for_each_rcu(rnet->links, bucket, rdev, node) {
		if (netdev_has_upper_dev_all_rcu(rdev->ndev, dev))
			return rdev;
	}
	return NULL;
}

struct rove_dev *rove_net_find_gid(struct rove_net *rnet, const union ib_gid *gid)
{
	const struct ib_gid_attr *attr;
	struct rove_dev *rdev;
	int bucket;

	hash_for_each_rcu(rnet->links, bucket, rdev, node) {
		/* It may not have its table yet, or no longer. */
		if (!ib_device_try_get(&rdev->ibdev))
			continue;
		attr = rdma_find_gid(&rdev->ibdev, gid,
				     IB_GID_TYPE_ROCE_UDP_ENCAP, NULL);
		if (!IS_ERR(attr))
			rdma_put_gid_attr(attr);
		ib_device_put(&rdev->ibdev);
		if (!IS_ERR(attr))
			return rdev;
	}
	return NULL;
}

const struct udphdr *rove_net_udp(const struct sk_buff *skb, struct udphdr *buf)
{
	u8 proto = ip_hdr(skb)->version == 4 ? ip_hdr(skb)->protocol :
					       ipv6_hdr(skb)->nexthdr;
	const struct udphdr *udp;

	if (proto != IPPROTO_UDP)
		return NULL;
	udp = skb_header_pointer(skb, skb_transport_offset(skb), sizeof(*buf), buf);
	return udp && udp->dest == htons(ROCE_V2_UDP_DPORT) ? udp : NULL;
}

/*
 * Let super-packets through to us whole.  UDP would take them apart before it
 * calls an encap_rcv, which would cost most of what they save; it does not when they
 * look as if they had come out of a tunnel.  A hook that accepts leaves firewalls,
 * connection tracking and all else in charge.
 */
static unsigned int rove_keep_whole(void *priv, struct sk_buff *skb,
				    const struct nf_hook_state *state)
{
	struct udphdr buf;

	if (!skb_is_gso(skb) || !(skb_shinfo(skb)->gso_type & SKB_GSO_UDP_L4))
		return NF_ACCEPT;
	if (!rove_net_udp(skb, &buf))
		return NF_ACCEPT;
	/* A capture may share what is changed here. */
	if (skb_unclone(skb, GFP_ATOMIC))
		return NF_ACCEPT;
	skb_shinfo(skb)->gso_type |= SKB_GSO_UDP_TUNNEL_CSUM;
	return NF_ACCEPT;
}

static const struct nf_hook_ops rove_hooks[] = {
	{
		.hook = rove_early_demux,
		.pf = NFPROTO_IPV4,
		.hooknum = NF_INET_PRE_ROUTING,
		.priority = NF_IP_PRI_LAST,
	},
	{
		.hook = rove_early_demux,
		.pf = NFPROTO_IPV6,
		.hooknum = NF_INET_PRE_ROUTING,
		.priority = NF_IP6_PRI_LAST,
	},
	{
		.hook = rove_keep_whole,
		.pf = NFPROTO_IPV4,
		.hooknum = NF_INET_LOCAL_IN,
		.priority = NF_IP_PRI_LAST,
	},
	{
		.hook = rove_keep_whole,
		.pf = NFPROTO_IPV6,
		.hooknum = NF_INET_LOCAL_IN,
		.priority = NF_IP6_PRI_LAST,
	},
};

static int set_option(struct socket *sock, int level, int name, int value)
{
	return sock->ops->setsockopt(sock, level, name, KERNEL_SOCKPTR(&value),
				     sizeof(value));
}

static int set_options(struct socket *sock, bool ipv4)
{
	/* Accept super-packets, and have NAPI merge what comes in single. */
	int err = set_option(sock, SOL_UDP, UDP_GRO, 1);

	/*
	 * The path MTU is the two programs' agreement.  What ICMP says of it, which the
	 * kernel believes whoever quotes a UDP datagram, stops no connection.
	 */
	if (!err)
		err = ipv4 ? set_option(sock, SOL_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE) :
			     set_option(sock, SOL_IPV6, IPV6_MTU_DISCOVER,
					IPV6_PMTUDISC_PROBE);
	return err;
}

static struct socket *rove_open_socket(struct net *net, u16 family)
{
	struct udp_tunnel_sock_cfg tunnel = {
		.encap_type = 1,
		.encap_rcv = rove_net_rcv,
	};
	struct udp_port_cfg port = {
		.family = family,
		.local_udp_port = htons(ROCE_V2_UDP_DPORT),
		.ipv6_v6only = family == AF_INET6,
	};
	struct socket *sock;
	int err;

	err = udp_sock_create(net, &port, &sock);
	if (err)
		return ERR_PTR(err);
	err = set_options(sock, family == AF_INET);
	if (err) {
		sock_release(sock);
		return ERR_PTR(err);
	}
	rove_tunnel_setup(net, sock, &tunnel);
	/* Tunnels do not want to hear themselves, members of a group do. */
	if (family == AF_INET)
		err = set_option(sock, SOL_IP, IP_MULTICAST_LOOP, 1);
	if (err) {
		rove_tunnel_release(sock);
		return ERR_PTR(err);
	}
	return sock;
}

static void rove_close_sockets(struct rove_net *rnet)
{
	if (rnet->hooked)
		nf_unregister_net_hooks(rnet->net, rove_hooks,
					ARRAY_SIZE(rove_hooks));
	rnet->hooked = false;
	if (rnet->sk6)
		rove_tunnel_release(rnet->sk6);
	if (rnet->sk4)
		rove_tunnel_release(rnet->sk4);
	rnet->sk6 = NULL;
	rnet->sk4 = NULL;
}

static int rove_open_sockets(struct rove_net *rnet, const char *ifname)
{
	struct socket *sock;
	int err;

	sock = rove_open_socket(rnet->net, AF_INET);
	if (IS_ERR(sock)) {
		err = PTR_ERR(sock);
		goto err;
	}
	rnet->sk4 = sock;

	sock = rove_open_socket(rnet->net, AF_INET6);
	if (IS_ERR(sock)) {
		err = PTR_ERR(sock);
		/* a kernel without IPv6, or ipv6.disable=1 (hazard 31) */
		if (err != -EAFNOSUPPORT && err != -EPFNOSUPPORT)
			goto err;
		sock = NULL;
	}
	rnet->sk6 = sock;
	err = nf_register_net_hooks(rnet->net, rove_hooks,
				    ARRAY_SIZE(rove_hooks));
	if (err)
		goto err;
	rnet->hooked = true;
	return 0;

err:
	rove_close_sockets(rnet);
	if (err == -EADDRINUSE)
		pr_err("%s: UDP port %d is taken in this network namespace, most likely by rdma_rxe: rmmod rdma_rxe, and try again\n",
		       ifname, ROCE_V2_UDP_DPORT);
	else
		pr_err("%s: cannot open UDP port %d: error %d\n", ifname,
		       ROCE_V2_UDP_DPORT, err);
	return err;
}

/* From here on netdev events find the link. */
static int rove_net_enter(struct rove_net *rnet, struct rove_dev *rdev)
{
	struct net_device *ndev = rdev->ndev;

	ASSERT_RTNL();

	/* It may have been unregistered, or moved, since it was looked up. */
	if (ndev->reg_state != NETREG_REGISTERED ||
	    !net_eq(dev_net(ndev), rnet->net))
		return -ENODEV;
	if (rove_net_find(rnet, ndev->ifindex)) {
		pr_err("%s has a link already\n", ndev->name);
		return -EEXIST;
	}
	rdev->rnet = rnet;
	rdev->port_active = rove_dev_port_up(rdev);
	hash_add_rcu(rnet->links, &rdev->node, ndev->ifindex);
	rdev->linked = true;
	return 0;
}

int rove_net_add(struct rove_dev *rdev, struct net *net)
{
	struct rove_net *rnet = rove_net(net);
	int err = 0;

	mutex_lock(&rnet->lock);
	if (hash_empty(rnet->links))
		err = rove_open_sockets(rnet, rdev->ndev->name);
	if (err)
		goto unlock;

	rtnl_lock();
	rove_dev_update_speed(rdev);
	rcu_read_lock();
	err = rove_net_enter(rnet, rdev);
	rcu_read_unlock();
	rtnl_unlock();

	if (!err)
		atomic_inc(&rnet->present);
	else if (hash_empty(rnet->links))
		rove_close_sockets(rnet);
unlock:
	mutex_unlock(&rnet->lock);
	return err;
}

void rove_net_del(struct rove_dev *rdev)
{
	struct rove_net *rnet = rdev->rnet;
	bool last;

	if (!rdev->linked)
		return;

	mutex_lock(&rnet->lock);
	hash_del_rcu(&rdev->node);
	rdev->linked = false;
	last = hash_empty(rnet->links);
	if (last)
		rove_close_sockets(rnet);
	/* A receive path may have found the link, or the socket, before. */
	synchronize_net();
	if (last)
		rove_early_demux_forget(rnet);
	mutex_unlock(&rnet->lock);
	/* From here on @rnet may be freed: only its address is used. */
	if (atomic_dec_and_test(&rnet->present))
		wake_up_var(&rnet->present);
}

static int __net_init rove_netns_init_net(struct net *net)
{
	struct rove_net *rnet = rove_net(net);

	rnet->net = net;
	mutex_init(&rnet->lock);
	hash_init(rnet->links);
	return 0;
}

/*
 * @rnet is freed next, so links that another thread is taking down are waited
 * for, and one is looked for again if it was between two namespaces of ib_core
 * (not registered, but about to be).
 */
static void __net_exit rove_netns_exit_net(struct net *net)
{
	struct rove_net *rnet = rove_net(net);

	do {
		rove_link_unregister_all(rnet);
	} while (!wait_var_event_timeout(&rnet->present,
					 !atomic_read_acquire(&rnet->present), HZ / 10));
	mutex_destroy(&rnet->lock);
}

static struct pernet_operations rove_netns_ops = {
	.init = rove_netns_init_net,
	.exit = rove_netns_exit_net,
	.id = &rove_net_id,
	.size = sizeof(struct rove_net),
};

/**
 * rove_netns_init() - watch namespaces
 *
 * As a "device" rather than a "subsystem", so that a dying namespace still has
 * its netdevs when its links are taken down.
 *
 * Context: module init; may sleep.
 * Return: 0 or an error.
 */
int rove_netns_init(void)
{
	return register_pernet_device(&rove_netns_ops);
}

/**
 * rove_netns_exit() - forget all namespaces
 *
 * Context: module exit, when there are no links; may sleep.
 */
void rove_netns_exit(void)
{
	unregister_pernet_device(&rove_netns_ops);
}
