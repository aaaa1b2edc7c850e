// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * device.c - a link as ib_core sees it: the table of operations, and the small
 * ones among them
 */
#include <linux/etherdevice.h>
#include <linux/ethtool.h>
#include <linux/if_arp.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <net/addrconf.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rove-abi.h>
#include "dev.h"
#include "av.h"
#include "compat.h"
#include "cq.h"
#include "dm.h"
#include "dmabuf.h"
#include "fastreg.h"
#include "link.h"
#include "mcast.h"
#include "mr.h"
#include "mw.h"
#include "odp.h"
#include "netns.h"
#include "qp.h"
#include "restrack.h"
#include "ring.h"
#include "srq.h"
#include "stats.h"
#include "xrc.h"
#include "transport/wire.h"

bool rove_dev_port_up(const struct rove_dev *rdev)
{
	return netif_running(rdev->ndev) && netif_carrier_ok(rdev->ndev);
}

enum ib_mtu rove_dev_mtu(const struct rove_dev *rdev)
{
	return iboe_get_mtu(READ_ONCE(rdev->ndev->mtu)) ?: IB_MTU_256;
}

static int rove_query_device(struct ib_device *ibdev,
			     struct ib_device_attr *attr,
			     struct ib_udata *udata)
{
	int err = rove_no_request(udata);

	if (err)
		return err;
	*attr = (struct ib_device_attr) {
		.fw_ver = 1,
		.sys_image_guid = ibdev->node_guid,
		.max_mr_size = ROVE_MAX_MR_SIZE,
		.page_size_cap = GENMASK_ULL(31, PAGE_SHIFT),
		.vendor_id = ROVE_VENDOR_ID,
		.max_qp = ROVE_MAX_QP,
		.max_qp_wr = ROVE_MAX_QP_WR,
		.device_cap_flags = IB_DEVICE_RC_RNR_NAK_GEN |
				    IB_DEVICE_MEM_MGT_EXTENSIONS |
				    IB_DEVICE_MEM_WINDOW |
				    ROVE_DEVICE_ATOMIC_WRITE |
				    IB_DEVICE_MEM_WINDOW_TYPE_2B |
				    IB_DEVICE_SYS_IMAGE_GUID |
				    IB_DEVICE_BAD_PKEY_CNTR |
				    IB_DEVICE_BAD_QKEY_CNTR |
				    IB_DEVICE_UD_AV_PORT_ENFORCE |
				    IB_DEVICE_SRQ_RESIZE |
				    IB_DEVICE_XRC |
				    IB_DEVICE_PORT_ACTIVE_EVENT,
		.kernel_cap_flags = IBK_ALLOW_USER_UNREG |
				    IBK_BLOCK_MULTICAST_LOOPBACK,
		.max_send_sge = ROVE_MAX_SGE,
		.max_recv_sge = ROVE_MAX_SGE,
		.max_sge_rd = ROVE_MAX_SGE,
		.max_cq = ROVE_MAX_CQ,
		.max_cqe = ROVE_MAX_CQE,
		.max_mr = ROVE_MAX_MR,
		.max_mw = ROVE_MAX_MW,
		.max_pd = ROVE_MAX_PD,
		.max_qp_rd_atom = ROVE_MAX_RD_ATOMIC,
		.max_qp_init_rd_atom = ROVE_MAX_RD_ATOMIC,
		.max_res_rd_atom = ROVE_MAX_RD_ATOMIC * ROVE_MAX_QP,
		.atomic_cap = IB_ATOMIC_HCA,
		.max_ah = ROVE_MAX_AH,
		.max_mcast_grp = ROVE_MAX_GROUP,
		.max_mcast_qp_attach = ROVE_MAX_GROUP_QPS,
		.max_total_mcast_qp_attach = ROVE_MAX_GROUP * ROVE_MAX_GROUP_QPS,
		.max_srq = ROVE_MAX_SRQ,
		.max_srq_wr = ROVE_MAX_SRQ_WR,
		.max_srq_sge = ROVE_MAX_SGE,
		.max_fast_reg_page_list_len = ROVE_MAX_FASTREG_BLOCKS,
		.max_dm_size = ROVE_MAX_DM_SIZE,
		.max_pkeys = 1,
		/* 4.096 us * 2^15 = 134 ms, when the machine is busy */
		.local_ca_ack_delay = 15,
		.cq_caps.max_cq_moderation_count = U16_MAX,
		.cq_caps.max_cq_moderation_period = U16_MAX,
		.timestamp_mask = U64_MAX,
		.hca_core_clock = USEC_PER_SEC,	/* kHz: nanoseconds */
	};
	if (IS_ENABLED(CONFIG_INFINIBAND_ON_DEMAND_PAGING)) {
		attr->kernel_cap_flags |= IBK_ON_DEMAND_PAGING;
		attr->odp_caps = (struct ib_odp_caps) {
			.general_caps = IB_ODP_SUPPORT | IB_ODP_SUPPORT_IMPLICIT,
			.per_transport_caps.rc_odp_caps =
				IB_ODP_SUPPORT_SEND | IB_ODP_SUPPORT_RECV |
				IB_ODP_SUPPORT_WRITE | IB_ODP_SUPPORT_READ |
				IB_ODP_SUPPORT_ATOMIC | IB_ODP_SUPPORT_SRQ_RECV,
			.per_transport_caps.xrc_odp_caps =
				IB_ODP_SUPPORT_SEND | IB_ODP_SUPPORT_RECV |
				IB_ODP_SUPPORT_WRITE | IB_ODP_SUPPORT_READ |
				IB_ODP_SUPPORT_ATOMIC | IB_ODP_SUPPORT_SRQ_RECV,
			.per_transport_caps.ud_odp_caps = IB_ODP_SUPPORT_SEND,
		};
	}
	return 0;
}

static int rove_modify_device(struct ib_device *ibdev, int mask,
			      struct ib_device_modify *modify)
{
	if (mask & ~IB_DEVICE_MODIFY_NODE_DESC)
		return -EOPNOTSUPP;
	if (mask & IB_DEVICE_MODIFY_NODE_DESC)
		memcpy(ibdev->node_desc, modify->node_desc,
		       sizeof(ibdev->node_desc));
	return 0;
}

static void rove_get_dev_fw_str(struct ib_device *ibdev, char *str)
{
	snprintf(str, IB_FW_VERSION_NAME_MAX, "rove %d",
		 ROVE_UVERBS_ABI_VERSION);
}

int rove_get_request(struct ib_udata *udata, void *req, size_t size)
{
	int ret = copy_struct_from_user(req, size, udata->inbuf, udata->inlen);

	if (!ret && clear_user(udata->outbuf, udata->outlen))
		ret = -EFAULT;
	return ret == -E2BIG ? -EOPNOTSUPP : ret;
}

/* Not ib_get_eth_speed(), which complains in the log, each time, of those that say nothing. */
void rove_dev_update_speed(struct rove_dev *rdev)
{
	struct ethtool_link_ksettings ks = {};
	u32 speed = SPEED_1000;

	ASSERT_RTNL();

	/* One that is being unregistered may have lost what it asks (ipvlan). */
	if (rdev->ndev->reg_state == NETREG_REGISTERED &&
	    !__ethtool_get_link_ksettings(rdev->ndev, &ks) &&
	    ks.base.speed != (u32)SPEED_UNKNOWN)
		speed = ks.base.speed;
	WRITE_ONCE(rdev->speed, speed);
}

/*
 * ib_core asks several times while it registers and unregisters a device, and has others wait
 * meanwhile.  So nobody waits for RTNL here: where it is busy the speed is that of the last time.
 */
static void rove_query_speed(struct rove_dev *rdev, struct ib_port_attr *attr)
{
	static const struct {
		u32 max;	/* Mb/s */
		u8 width;
		u16 speed;
	} rates[] = {
		{ SPEED_1000,	IB_WIDTH_1X, IB_SPEED_SDR },
		{ SPEED_10000,	IB_WIDTH_1X, IB_SPEED_FDR10 },
		{ SPEED_20000,	IB_WIDTH_4X, IB_SPEED_DDR },
		{ SPEED_25000,	IB_WIDTH_1X, IB_SPEED_EDR },
		{ SPEED_40000,	IB_WIDTH_4X, IB_SPEED_FDR10 },
		{ SPEED_50000,	IB_WIDTH_2X, IB_SPEED_EDR },
		{ SPEED_100000,	IB_WIDTH_4X, IB_SPEED_EDR },
		{ SPEED_200000,	IB_WIDTH_4X, IB_SPEED_HDR },
		{ U32_MAX,	IB_WIDTH_4X, IB_SPEED_NDR },
	};
	u32 speed;
	int i = 0;

	if (rtnl_trylock()) {
		rove_dev_update_speed(rdev);
		rtnl_unlock();
	}
	speed = READ_ONCE(rdev->speed);
	while (speed > rates[i].max)
		i++;
	attr->active_width = rates[i].width;
	attr->active_speed = rates[i].speed;
}

static int rove_query_port(struct ib_device *ibdev, u32 port,
			   struct ib_port_attr *attr)
{
	struct rove_dev *rdev = to_rdev(ibdev);
	struct net_device *ndev = rdev->ndev;

	if (port != 1)
		return -EINVAL;

	if (rove_dev_port_up(rdev)) {
		attr->state = IB_PORT_ACTIVE;
		attr->phys_state = IB_PORT_PHYS_STATE_LINK_UP;
	} else {
		attr->state = IB_PORT_DOWN;
		attr->phys_state = netif_running(ndev) ?
				   IB_PORT_PHYS_STATE_POLLING :
				   IB_PORT_PHYS_STATE_DISABLED;
	}
	attr->max_mtu = IB_MTU_4096;
	attr->active_mtu = rove_dev_mtu(rdev);
	attr->phys_mtu = READ_ONCE(ndev->mtu);
	attr->gid_tbl_len = ROVE_GID_TBL_LEN;
	attr->ip_gids = true;
	attr->max_msg_sz = ROVE_MAX_MSG;
	attr->pkey_tbl_len = 1;
	attr->port_cap_flags = IB_PORT_CM_SUP;
	attr->bad_pkey_cntr = rove_counter(rdev, ROVE_CNT_RX_BAD_PKEY);
	attr->qkey_viol_cntr = rove_counter(rdev, ROVE_CNT_RX_BAD_QKEY);
	attr->max_vl_num = 1;
	rove_query_speed(rdev, attr);
	return 0;
}

static int rove_query_pkey(struct ib_device *ibdev, u32 port, u16 index,
			   u16 *pkey)
{
	if (port != 1 || index)
		return -EINVAL;
	*pkey = ROVE_PKEY_DEFAULT;
	return 0;
}

static int rove_get_port_immutable(struct ib_device *ibdev, u32 port,
				   struct ib_port_immutable *immutable)
{
	struct ib_port_attr attr = {};
	int err;

	immutable->core_cap_flags = RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP;
	immutable->max_mad_size = IB_MGMT_MAD_SIZE;
	err = ib_query_port(ibdev, port, &attr);
	if (err)
		return err;
	immutable->pkey_tbl_len = attr.pkey_tbl_len;
	immutable->gid_tbl_len = attr.gid_tbl_len;
	return 0;
}

static enum rdma_link_layer rove_get_link_layer(struct ib_device *ibdev,
						u32 port)
{
	return IB_LINK_LAYER_ETHERNET;
}

static int rove_alloc_ucontext(struct ib_ucontext *ibuc,
			       struct ib_udata *udata)
{
	struct rove_alloc_ucontext_resp resp = {
		.max_inline = ROVE_MAX_INLINE,
		.max_sge = ROVE_MAX_SGE,
	};

	return rove_no_request(udata) ?:
	       ib_copy_to_udata(udata, &resp, min(sizeof(resp), udata->outlen));
}

/* That this exists lets another process import the context; it needs no more. */
static int rove_query_ucontext(struct ib_ucontext *ibuc,
			       struct uverbs_attr_bundle *attrs)
{
	return 0;
}

static void rove_dealloc_ucontext(struct ib_ucontext *ibuc)
{
}

/*
 * That this exists lets a link go while programs have it open.  Their objects
 * are gone when it is called; the rings that they have mapped stay.
 */
static void rove_disassociate_ucontext(struct ib_ucontext *ibuc)
{
}

static int rove_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	struct rove_dev *rdev = to_rdev(ibpd->device);
	struct rove_pd *pd = to_rpd(ibpd);
	int err = rove_no_request(udata);

	if (err)
		return err;
	mutex_init(&pd->lock);
	INIT_LIST_HEAD(&pd->ud_qps);
	return rove_dev_charge(rdev, &rdev->num_pd, ROVE_MAX_PD, "PDs");
}

static int rove_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	mutex_destroy(&to_rpd(ibpd)->lock);
	rove_dev_uncharge(&to_rdev(ibpd->device)->num_pd);
	return 0;
}

/*
 * Before the first client is added, ib_mad with its QP among them: at registration, and
 * when the link has been moved to another namespace.
 */
static int rove_enable_driver(struct ib_device *ibdev)
{
	rove_link_left(to_rdev(ibdev));
	WRITE_ONCE(to_rdev(ibdev)->dying, false);
	return 0;
}

/*
 * Called when nothing of the link is left but itself, or when it was never
 * registered.  The memory goes when the last reference on its struct device
 * does.
 */
static void rove_dealloc_driver(struct ib_device *ibdev)
{
	struct rove_dev *rdev = to_rdev(ibdev);

	rove_link_left(rdev);
	/* It has put its reference, but may not have returned. */
	cancel_work_sync(&rdev->rescan);
	rove_net_del(rdev);
	rove_region_table_destroy(rdev);
	rove_qp_table_destroy(rdev);
	rove_ah_table_destroy(rdev);
	rove_group_table_destroy(rdev);
	rove_xrc_table_destroy(rdev);
	xa_destroy(&rdev->counters);
	free_percpu(rdev->stats);
	netdev_put(rdev->ndev, &rdev->ndev_tracker);
}

static ssize_t parent_show(struct device *device,
			   struct device_attribute *attr, char *buf)
{
	struct rove_dev *rdev =
		rdma_device_to_drv_device(device, struct rove_dev, ibdev);

	return sysfs_emit(buf, "%s\n", netdev_name(rdev->ndev));
}
static DEVICE_ATTR_RO(parent);

static struct attribute *rove_attrs[] = {
	&dev_attr_parent.attr,
	NULL
};

static const struct attribute_group rove_attr_group = {
	.attrs = rove_attrs,
};

/*
 * What is not here ib_core answers with EOPNOTSUPP.  .get_netdev is not needed
 * with ib_device_set_netdev(), nor are .add_gid and .del_gid: the GID table of
 * ib_core is the only one.
 */
static const struct ib_device_ops rove_device_ops = {
	.owner = THIS_MODULE,
	.driver_id = ROVE_DRIVER_ID,
	.uverbs_abi_ver = ROVE_UVERBS_ABI_VERSION,
	.device_group = &rove_attr_group,

	.query_device = rove_query_device,
	.modify_device = rove_modify_device,
	.get_dev_fw_str = rove_get_dev_fw_str,
	.query_port = rove_query_port,
	.query_pkey = rove_query_pkey,
	.get_port_immutable = rove_get_port_immutable,
	.get_link_layer = rove_get_link_layer,
	ROVE_REPORT_PORT_EVENT
	.alloc_hw_port_stats = rove_alloc_hw_port_stats,
	.get_hw_stats = rove_get_hw_stats,
	ROVE_COUNTER_OBJECT
	.counter_alloc_stats = rove_counter_alloc_stats,
	.counter_bind_qp = rove_counter_bind_qp,
	.counter_unbind_qp = rove_counter_unbind_qp,
	.counter_update_stats = rove_counter_update_stats,
	.counter_dealloc = rove_counter_dealloc,
	.fill_res_qp_entry = rove_fill_res_qp,
	.fill_res_cq_entry = rove_fill_res_cq,
	.fill_res_mr_entry = rove_fill_res_mr,
	ROVE_FILL_RES_SRQ(rove_fill_res_srq)

	.alloc_ucontext = rove_alloc_ucontext,
	.query_ucontext = rove_query_ucontext,
	.dealloc_ucontext = rove_dealloc_ucontext,
	.disassociate_ucontext = rove_disassociate_ucontext,
	.mmap = rove_mmap,
	.mmap_free = rove_mmap_free,
	.alloc_pd = rove_alloc_pd,
	.dealloc_pd = rove_dealloc_pd,

	.create_ah = rove_create_ah,
	.create_user_ah = rove_create_ah,
	.query_ah = rove_query_ah,
	.destroy_ah = rove_destroy_ah,

	.attach_mcast = rove_attach_mcast,
	.detach_mcast = rove_detach_mcast,

	.create_cq = rove_create_cq,
	.rove_resize_op = rove_resize_cq,
	.modify_cq = rove_modify_cq,
	.destroy_cq = rove_destroy_cq,
	.poll_cq = rove_poll_cq,
	.peek_cq = rove_peek_cq,
	.req_notify_cq = rove_req_notify_cq,

	.reg_user_mr = rove_reg_user_mr,
	.reg_user_mr_dmabuf = rove_reg_user_mr_dmabuf,
	.rereg_user_mr = rove_rereg_user_mr,
	.get_dma_mr = rove_get_dma_mr,
	.alloc_mr = rove_alloc_mr,
	.map_mr_sg = rove_map_mr_sg,
	.alloc_mw = rove_alloc_mw,
	.dealloc_mw = rove_dealloc_mw,
	.dereg_mr = rove_dereg_mr,
	.advise_mr = rove_advise_mr,
	.alloc_dm = rove_alloc_dm,
	.dealloc_dm = rove_dealloc_dm,
	.reg_dm_mr = rove_reg_dm_mr,
	.fill_stat_mr_entry = rove_fill_stat_mr,

	.create_qp = rove_create_qp,
	.modify_qp = rove_modify_qp,
	.query_qp = rove_query_qp,
	.destroy_qp = rove_destroy_qp,
	.post_send = rove_post_send,
	.post_recv = rove_post_recv,

	.alloc_xrcd = rove_alloc_xrcd,
	.dealloc_xrcd = rove_dealloc_xrcd,

	.create_srq = rove_create_srq,
	.modify_srq = rove_modify_srq,
	.query_srq = rove_query_srq,
	.destroy_srq = rove_destroy_srq,
	.post_srq_recv = rove_post_srq_recv,

	.dealloc_driver = rove_dealloc_driver,
	.enable_driver = rove_enable_driver,

	INIT_RDMA_OBJ_SIZE(ib_ah, rove_ah, ibah),
	INIT_RDMA_OBJ_SIZE(ib_cq, rove_cq, ibcq),
	INIT_RDMA_OBJ_SIZE(ib_mw, rove_mw, ibmw),
	INIT_RDMA_OBJ_SIZE(ib_pd, rove_pd, ibpd),
	INIT_RDMA_OBJ_SIZE(ib_qp, rove_qp, ibqp),
	INIT_RDMA_OBJ_SIZE(ib_srq, rove_srq, ibsrq),
	INIT_RDMA_OBJ_SIZE(ib_ucontext, rove_ucontext, ibuc),
	INIT_RDMA_OBJ_SIZE(ib_xrcd, rove_xrcd, ibxrcd),
};

struct rove_dev *rove_dev_alloc(struct net_device *ndev, struct net *net)
{
	struct rove_dev *rdev;

	rdev = rove_alloc_ib_device(rove_dev, ibdev, net);
	if (!rdev)
		return NULL;
	rdev->stats = alloc_percpu(struct rove_stats);
	if (!rdev->stats)
		goto err_device;
	if (rove_region_table_init(rdev))
		goto err_stats;
	if (rove_qp_table_init(rdev))
		goto err_regions;
	if (rove_group_table_init(rdev))
		goto err_qps;
	rove_ah_table_init(rdev);
	rove_xrc_table_init(rdev);
	rove_link_dev_init(rdev);
	xa_init_flags(&rdev->counters, XA_FLAGS_ALLOC1);
	rdev->ndev = ndev;
	netdev_hold(ndev, &rdev->ndev_tracker, GFP_KERNEL);

	/* from here on ib_dealloc_device() calls rove_dealloc_driver() */
	ib_set_device_ops(&rdev->ibdev, &rove_device_ops);
	return rdev;

err_qps:
	rove_qp_table_destroy(rdev);
err_regions:
	rove_region_table_destroy(rdev);
err_stats:
	free_percpu(rdev->stats);
err_device:
	ib_dealloc_device(&rdev->ibdev);
	return NULL;
}

int rove_dev_register(struct rove_dev *rdev, const char *name)
{
	struct ib_device *ibdev = &rdev->ibdev;
	u8 mac[ETH_ALEN];
	int err;

	strscpy(ibdev->node_desc, "rove", sizeof(ibdev->node_desc));
	ibdev->node_type = RDMA_NODE_IB_CA;
	ibdev->phys_port_cnt = 1;
	ibdev->num_comp_vectors = num_possible_cpus();
	if (rdev->ndev->type == ARPHRD_ETHER)
		ether_addr_copy(mac, rdev->ndev->dev_addr);
	else
		eth_random_addr(mac);
	addrconf_addr_eui48((u8 *)&ibdev->node_guid, mac);
	/* the wake-up calls, and arming a CQ for whoever prefers a call */
	ibdev->uverbs_cmd_mask |= BIT_ULL(IB_USER_VERBS_CMD_POST_SEND) |
				  BIT_ULL(IB_USER_VERBS_CMD_POST_RECV) |
				  BIT_ULL(IB_USER_VERBS_CMD_REQ_NOTIFY_CQ);
	rove_name_by_user(ibdev);
	ibdev->driver_def = rove_dm_defs;

	err = ib_device_set_netdev(ibdev, rdev->ndev, 1);
	if (err)
		return err;
	/*
	 * No DMA device: addresses are kernel addresses, and ib_core lets
	 * segments be as long as they like (hazard 61).
	 */
	return ib_register_device(ibdev, name, NULL);
}
