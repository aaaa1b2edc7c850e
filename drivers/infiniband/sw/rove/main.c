// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * main.c - the module: what is set up in which order, and nothing else
 */
#include <linux/module.h>
#include <rdma/rdma_netlink.h>
#include "crc.h"
#include "defer.h"
#include "link.h"
#include "net.h"
#include "netns.h"
#include "odp.h"

static int __init rove_init(void)
{
	int err;

	err = rove_crc_init();
	if (err)
		return err;
	rove_net_rx_init();
	rove_net_tx_init();
	err = rove_defer_init();
	if (err)
		goto err_crc;
	err = rove_odp_init();
	if (err)
		goto err_defer;
	err = rove_netns_init();
	if (err)
		goto err_odp;
	err = rove_link_init();
	if (err)
		goto err_netns;
	return 0;

err_netns:
	rove_netns_exit();
err_odp:
	rove_odp_exit();
err_defer:
	rove_defer_exit();
err_crc:
	rove_crc_exit();
	return err;
}

static void __exit rove_exit(void)
{
	rove_link_exit();
	rove_netns_exit();
	rove_flow_wait_all();
	rove_net_tx_exit();
	rove_odp_exit();
	rove_defer_exit();
	/* for structures that RCU still has to free */
	rcu_barrier();
	rove_crc_exit();
}

module_init(rove_init);
module_exit(rove_exit);

MODULE_DESCRIPTION("Software RoCE v2 over any Ethernet device");
MODULE_AUTHOR("The rove developers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_ALIAS_RDMA_LINK("rove");
