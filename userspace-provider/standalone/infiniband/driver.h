/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The private interface between libibverbs and its providers, number 34
 * (rdma-core v38 to v56), as far as this provider uses it.
 *
 * Distributions do not install rdma-core's driver.h and kern-abi.h, so the
 * stand-alone build has this instead.  It is a description of a binary
 * interface: what we do not touch has a size but no name.  The assertions at
 * the end pin every offset that matters.  Inside an rdma-core tree this file
 * is not seen, and the real <infiniband/driver.h> is found.
 */
#ifndef ROVE_STANDALONE_DRIVER_H
#define ROVE_STANDALONE_DRIVER_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#define IBVERBS_PABI_VERSION 34

#define container_of(ptr, type, member)	\
	((type *)((char *)(ptr) - offsetof(type, member)))

/* Commands: libibverbs fills them in, we only provide the room. */
#define ROVE_CMD(name, payload)			\
	struct name {				\
		struct ib_uverbs_cmd_hdr hdr;	\
		struct payload core_payload;	\
	}
#define ROVE_CMD_EX(name, payload)			\
	struct name {					\
		struct ib_uverbs_cmd_hdr hdr;		\
		struct ib_uverbs_ex_cmd_hdr ex_hdr;	\
		struct payload core_payload;		\
	}

ROVE_CMD(ibv_alloc_mw, ib_uverbs_alloc_mw);
ROVE_CMD(ibv_alloc_pd, ib_uverbs_alloc_pd);
ROVE_CMD(ibv_create_qp, ib_uverbs_create_qp);
ROVE_CMD(ibv_get_context, ib_uverbs_get_context);
ROVE_CMD(ibv_create_xsrq, ib_uverbs_create_xsrq);
ROVE_CMD(ibv_modify_qp, ib_uverbs_modify_qp);
ROVE_CMD(ibv_modify_srq, ib_uverbs_modify_srq);
ROVE_CMD(ibv_open_qp, ib_uverbs_open_qp);
ROVE_CMD(ibv_open_xrcd, ib_uverbs_open_xrcd);
ROVE_CMD(ibv_query_port, ib_uverbs_query_port);
ROVE_CMD(ibv_query_qp, ib_uverbs_query_qp);
ROVE_CMD(ibv_query_srq, ib_uverbs_query_srq);
ROVE_CMD(ibv_reg_mr, ib_uverbs_reg_mr);
ROVE_CMD(ibv_rereg_mr, ib_uverbs_rereg_mr);
ROVE_CMD(ibv_resize_cq, ib_uverbs_resize_cq);
ROVE_CMD_EX(ibv_create_cq_ex, ib_uverbs_ex_create_cq);
ROVE_CMD_EX(ibv_modify_cq, ib_uverbs_ex_modify_cq);
ROVE_CMD_EX(ibv_modify_qp_ex, ib_uverbs_ex_modify_qp);

/* Objects that begin with the public one. */
enum ibv_mr_type {
	IBV_MR_TYPE_MR,
	IBV_MR_TYPE_NULL_MR,
	IBV_MR_TYPE_IMPORTED_MR,
	IBV_MR_TYPE_DMABUF_MR,
};

struct verbs_mr {
	struct ibv_mr ibv_mr;
	enum ibv_mr_type mr_type;
	int access;
};

struct verbs_dm {
	struct ibv_dm dm;
	uint32_t handle;
};

struct ibv_command_buffer;

struct verbs_qp {
	union {
		struct ibv_qp qp;
		struct ibv_qp_ex qp_ex;
	};
	uint32_t comp_mask;
	void *xrcd;
};

enum { VERBS_QP_EX = 1 << 1 };		/* in verbs_qp.comp_mask */

struct verbs_cq {
	union {
		struct ibv_cq cq;
		struct ibv_cq_ex cq_ex;
	};
};

struct verbs_xrcd {
	struct ibv_xrcd xrcd;
	uint32_t comp_mask;
	uint32_t handle;
};

struct verbs_srq {
	struct ibv_srq srq;
	enum ibv_srq_type srq_type;
	struct verbs_xrcd *xrcd;
	struct ibv_cq *cq;
	uint32_t srq_num;
};

/* How libibverbs finds out which devices are ours. */
struct verbs_sysfs_dev;

enum { VERBS_MATCH_DRIVER_ID = 3 };	/* in verbs_match_ent.kind; 0 ends */

struct verbs_match_ent {
	void *driver_data;
	union {
		const char *modalias;
		uint64_t driver_id;
	} u;
	uint16_t vendor;
	uint16_t device;
	uint8_t kind;
};

#define VERBS_DRIVER_ID(id)	\
	{ .u.driver_id = (id), .kind = VERBS_MATCH_DRIVER_ID }

struct verbs_device_ops {
	const char *name;
	uint32_t match_min_abi_version;
	uint32_t match_max_abi_version;
	const struct verbs_match_ent *match_table;
	const struct verbs_device_ops **static_providers;
	bool (*match_device)(struct verbs_sysfs_dev *sysfs);
	struct verbs_context *(*alloc_context)(struct ibv_device *device,
					       int cmd_fd, void *private_data);
	struct verbs_context *(*import_context)(struct ibv_device *device,
						int cmd_fd);
	struct verbs_device *(*alloc_device)(struct verbs_sysfs_dev *sysfs);
	void (*uninit_device)(struct verbs_device *device);
};

struct verbs_device {
	struct ibv_device device;
	const struct verbs_device_ops *ops;
	int refcount;
	void *entry[2];
	struct verbs_sysfs_dev *sysfs;
	uint64_t core_support;
};

/* 76 operations in alphabetical order; the gaps are those we leave NULL. */
struct verbs_context_ops {
	int (*advise_mr)(struct ibv_pd *pd, enum ibv_advise_mr_advice advice,
			 uint32_t flags, struct ibv_sge *sge, uint32_t num);
	struct ibv_dm *(*alloc_dm)(struct ibv_context *context,
				   struct ibv_alloc_dm_attr *attr);
	struct ibv_mw *(*alloc_mw)(struct ibv_pd *pd, enum ibv_mw_type type);
	struct ibv_mr *(*alloc_null_mr)(struct ibv_pd *pd);
	struct ibv_pd *(*alloc_parent_domain)(struct ibv_context *context,
				struct ibv_parent_domain_init_attr *attr);
	struct ibv_pd *(*alloc_pd)(struct ibv_context *context);
	struct ibv_td *(*alloc_td)(struct ibv_context *context,
				   struct ibv_td_init_attr *attr);
	void *gap7[2];
	int (*attach_mcast)(struct ibv_qp *qp, const union ibv_gid *gid,
			    uint16_t lid);
	int (*bind_mw)(struct ibv_qp *qp, struct ibv_mw *mw,
		       struct ibv_mw_bind *bind);
	int (*close_xrcd)(struct ibv_xrcd *xrcd);
	void *gap12[1];
	struct ibv_ah *(*create_ah)(struct ibv_pd *pd, struct ibv_ah_attr *attr);
	void *gap14[1];
	struct ibv_cq *(*create_cq)(struct ibv_context *context, int cqe,
				    struct ibv_comp_channel *channel,
				    int comp_vector);
	struct ibv_cq_ex *(*create_cq_ex)(struct ibv_context *context,
					  struct ibv_cq_init_attr_ex *attr);
	void *gap17[2];
	struct ibv_qp *(*create_qp)(struct ibv_pd *pd,
				    struct ibv_qp_init_attr *attr);
	struct ibv_qp *(*create_qp_ex)(struct ibv_context *context,
				       struct ibv_qp_init_attr_ex *attr);
	void *gap21[1];
	struct ibv_srq *(*create_srq)(struct ibv_pd *pd,
				      struct ibv_srq_init_attr *attr);
	struct ibv_srq *(*create_srq_ex)(struct ibv_context *context,
					 struct ibv_srq_init_attr_ex *attr);
	void *gap24[1];
	int (*dealloc_mw)(struct ibv_mw *mw);
	int (*dealloc_pd)(struct ibv_pd *pd);
	int (*dealloc_td)(struct ibv_td *td);
	int (*dereg_mr)(struct verbs_mr *mr);
	int (*destroy_ah)(struct ibv_ah *ah);
	void *gap30[1];
	int (*destroy_cq)(struct ibv_cq *cq);
	void *gap32[2];
	int (*destroy_qp)(struct ibv_qp *qp);
	void *gap35[1];
	int (*destroy_srq)(struct ibv_srq *srq);
	void *gap37[1];
	int (*detach_mcast)(struct ibv_qp *qp, const union ibv_gid *gid,
			    uint16_t lid);
	void (*free_context)(struct ibv_context *context);
	int (*free_dm)(struct ibv_dm *dm);
	int (*get_srq_num)(struct ibv_srq *srq, uint32_t *num);
	struct ibv_dm *(*import_dm)(struct ibv_context *context, uint32_t handle);
	struct ibv_mr *(*import_mr)(struct ibv_pd *pd, uint32_t handle);
	struct ibv_pd *(*import_pd)(struct ibv_context *context, uint32_t handle);
	int (*modify_cq)(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
	void *gap46[1];
	int (*modify_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
	int (*modify_qp_rate_limit)(struct ibv_qp *qp,
				    struct ibv_qp_rate_limit_attr *attr);
	int (*modify_srq)(struct ibv_srq *srq, struct ibv_srq_attr *attr,
			  int mask);
	void *gap50[1];
	struct ibv_qp *(*open_qp)(struct ibv_context *context,
				  struct ibv_qp_open_attr *attr);
	struct ibv_xrcd *(*open_xrcd)(struct ibv_context *context,
				      struct ibv_xrcd_init_attr *attr);
	int (*poll_cq)(struct ibv_cq *cq, int num, struct ibv_wc *wc);
	int (*post_recv)(struct ibv_qp *qp, struct ibv_recv_wr *wr,
			 struct ibv_recv_wr **bad_wr);
	int (*post_send)(struct ibv_qp *qp, struct ibv_send_wr *wr,
			 struct ibv_send_wr **bad_wr);
	void *gap56[1];
	int (*post_srq_recv)(struct ibv_srq *srq, struct ibv_recv_wr *wr,
			     struct ibv_recv_wr **bad_wr);
	int (*query_device_ex)(struct ibv_context *context,
			       const struct ibv_query_device_ex_input *input,
			       struct ibv_device_attr_ex *attr, size_t size);
	void *gap59[1];
	int (*query_port)(struct ibv_context *context, uint8_t port,
			  struct ibv_port_attr *attr);
	int (*query_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
			struct ibv_qp_init_attr *init_attr);
	void *gap62[1];
	int (*query_rt_values)(struct ibv_context *context,
			       struct ibv_values_ex *values);
	int (*query_srq)(struct ibv_srq *srq, struct ibv_srq_attr *attr);
	void *gap65[1];
	struct ibv_mr *(*reg_dm_mr)(struct ibv_pd *pd, struct ibv_dm *dm,
				    uint64_t offset, size_t length,
				    unsigned int access);
	struct ibv_mr *(*reg_dmabuf_mr)(struct ibv_pd *pd, uint64_t offset,
					size_t length, uint64_t iova, int fd,
					int access);
	struct ibv_mr *(*reg_mr)(struct ibv_pd *pd, void *addr, size_t length,
				 uint64_t iova, int access);
	int (*req_notify_cq)(struct ibv_cq *cq, int solicited_only);
	int (*rereg_mr)(struct verbs_mr *mr, int flags, struct ibv_pd *pd,
			void *addr, size_t length, int access);
	int (*resize_cq)(struct ibv_cq *cq, int cqe);
	void *gap72[1];
	void (*unimport_dm)(struct ibv_dm *dm);
	void (*unimport_mr)(struct ibv_mr *mr);
	void (*unimport_pd)(struct ibv_pd *pd);
};

/* What libibverbs exports under the version IBVERBS_PRIVATE_34. */
void verbs_register_driver_34(const struct verbs_device_ops *ops);
void *_verbs_init_and_alloc_context(struct ibv_device *device, int cmd_fd,
				    size_t size, struct verbs_context *offset,
				    uint32_t driver_id);
void verbs_uninit_context(struct verbs_context *context);
void verbs_set_ops(struct verbs_context *context,
		   const struct verbs_context_ops *ops);

int ibv_cmd_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid,
			 uint16_t lid);
int ibv_cmd_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid,
			 uint16_t lid);
int ibv_cmd_get_context(struct verbs_context *context,
			struct ibv_get_context *cmd, size_t cmd_size,
			struct ib_uverbs_get_context_resp *resp,
			size_t resp_size);
int ibv_cmd_query_context(struct ibv_context *context,
			  struct ibv_command_buffer *driver);
int ibv_cmd_query_device_any(struct ibv_context *context,
			     const struct ibv_query_device_ex_input *input,
			     struct ibv_device_attr_ex *attr, size_t attr_size,
			     struct ib_uverbs_ex_query_device_resp *resp,
			     size_t *resp_size);
int ibv_cmd_query_port(struct ibv_context *context, uint8_t port,
		       struct ibv_port_attr *attr,
		       struct ibv_query_port *cmd, size_t cmd_size);
int ibv_cmd_alloc_pd(struct ibv_context *context, struct ibv_pd *pd,
		     struct ibv_alloc_pd *cmd, size_t cmd_size,
		     struct ib_uverbs_alloc_pd_resp *resp, size_t resp_size);
int ibv_cmd_dealloc_pd(struct ibv_pd *pd);
int ibv_cmd_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
		   int access, struct verbs_mr *mr,
		   struct ibv_reg_mr *cmd, size_t cmd_size,
		   struct ib_uverbs_reg_mr_resp *resp, size_t resp_size);
int ibv_cmd_rereg_mr(struct verbs_mr *mr, uint32_t flags, void *addr,
		     size_t length, uint64_t iova, int access,
		     struct ibv_pd *pd, struct ibv_rereg_mr *cmd,
		     size_t cmd_size, struct ib_uverbs_rereg_mr_resp *resp,
		     size_t resp_size);
int ibv_cmd_query_mr(struct ibv_pd *pd, struct verbs_mr *mr, uint32_t handle);
int ibv_cmd_dereg_mr(struct verbs_mr *mr);
int ibv_cmd_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice,
		      uint32_t flags, struct ibv_sge *sge, uint32_t num);
int ibv_cmd_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type,
		     struct ibv_mw *mw, struct ibv_alloc_mw *cmd,
		     size_t cmd_size, struct ib_uverbs_alloc_mw_resp *resp,
		     size_t resp_size);
int ibv_cmd_dealloc_mw(struct ibv_mw *mw);
int ibv_cmd_free_dm(struct verbs_dm *dm);
int ibv_cmd_reg_dm_mr(struct ibv_pd *pd, struct verbs_dm *dm, uint64_t offset,
		      size_t length, unsigned int access, struct verbs_mr *mr,
		      struct ibv_command_buffer *link);
int ibv_cmd_create_ah(struct ibv_pd *pd, struct ibv_ah *ah,
		      struct ibv_ah_attr *attr,
		      struct ib_uverbs_create_ah_resp *resp, size_t resp_size);
int ibv_cmd_destroy_ah(struct ibv_ah *ah);
int ibv_cmd_create_cq_ex(struct ibv_context *context,
			 const struct ibv_cq_init_attr_ex *attr,
			 struct verbs_cq *cq,
			 struct ibv_create_cq_ex *cmd, size_t cmd_size,
			 struct ib_uverbs_ex_create_cq_resp *resp,
			 size_t resp_size, uint32_t cmd_flags);
int ibv_cmd_resize_cq(struct ibv_cq *cq, int cqe,
		      struct ibv_resize_cq *cmd, size_t cmd_size,
		      struct ib_uverbs_resize_cq_resp *resp, size_t resp_size);
int ibv_cmd_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr,
		      struct ibv_modify_cq *cmd, size_t cmd_size);
int ibv_cmd_destroy_cq(struct ibv_cq *cq);
int ibv_cmd_open_xrcd(struct ibv_context *context, struct verbs_xrcd *xrcd,
		      int xrcd_size, struct ibv_xrcd_init_attr *attr,
		      struct ibv_open_xrcd *cmd, size_t cmd_size,
		      struct ib_uverbs_open_xrcd_resp *resp, size_t resp_size);
int ibv_cmd_close_xrcd(struct verbs_xrcd *xrcd);
int ibv_cmd_open_qp(struct ibv_context *context, struct verbs_qp *qp,
		    int qp_size, struct ibv_qp_open_attr *attr,
		    struct ibv_open_qp *cmd, size_t cmd_size,
		    struct ib_uverbs_create_qp_resp *resp, size_t resp_size);
int ibv_cmd_create_srq_ex(struct ibv_context *context, struct verbs_srq *srq,
			  struct ibv_srq_init_attr_ex *attr,
			  struct ibv_create_xsrq *cmd, size_t cmd_size,
			  struct ib_uverbs_create_srq_resp *resp,
			  size_t resp_size);
int ibv_cmd_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask,
		       struct ibv_modify_srq *cmd, size_t cmd_size);
int ibv_cmd_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr,
		      struct ibv_query_srq *cmd, size_t cmd_size);
int ibv_cmd_destroy_srq(struct ibv_srq *srq);
int ibv_cmd_create_qp_ex(struct ibv_context *context, struct verbs_qp *qp,
			 struct ibv_qp_init_attr_ex *attr,
			 struct ibv_create_qp *cmd, size_t cmd_size,
			 struct ib_uverbs_create_qp_resp *resp,
			 size_t resp_size);
int ibv_cmd_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		      struct ibv_modify_qp *cmd, size_t cmd_size);
int ibv_cmd_modify_qp_ex(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
			 struct ibv_modify_qp_ex *cmd, size_t cmd_size,
			 struct ib_uverbs_ex_modify_qp_resp *resp,
			 size_t resp_size);
int ibv_cmd_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		     struct ibv_qp_init_attr *init_attr,
		     struct ibv_query_qp *cmd, size_t cmd_size);
int ibv_cmd_destroy_qp(struct ibv_qp *qp);

#define verbs_init_and_alloc_context(device, fd, ptr, member, id)	\
	((__typeof__(ptr))_verbs_init_and_alloc_context(device, fd,	\
		sizeof(*(ptr)),						\
		(struct verbs_context *)offsetof(__typeof__(*(ptr)), member), \
		id))

/* The library calls nothing in us by name: loading it registers it. */
#define PROVIDER_DRIVER(name, ops)					\
	static __attribute__((constructor)) void name##_register(void)	\
	{								\
		verbs_register_driver_34(&(ops));			\
	}

/* Where the interface is laid out, on machines with 8-byte pointers. */
#ifdef __LP64__
static_assert(sizeof(struct verbs_device_ops) == 72, "verbs_device_ops");
static_assert(sizeof(struct verbs_device) == 712, "verbs_device");
static_assert(offsetof(struct verbs_device, sysfs) == 696, "verbs_device");
static_assert(sizeof(struct verbs_match_ent) == 24, "verbs_match_ent");
static_assert(offsetof(struct verbs_match_ent, kind) == 20, "verbs_match_ent");
static_assert(sizeof(struct verbs_mr) == sizeof(struct ibv_mr) + 8, "verbs_mr");
static_assert(offsetof(struct verbs_qp, comp_mask) == sizeof(struct ibv_qp_ex),
	      "verbs_qp");
#endif
static_assert(sizeof(struct verbs_context_ops) == 76 * sizeof(void *),
	      "verbs_context_ops");
#define ROVE_SLOT(op, n)						\
	static_assert(offsetof(struct verbs_context_ops, op) ==		\
		      (n) * sizeof(void *), "verbs_context_ops." #op)
ROVE_SLOT(advise_mr, 0);
ROVE_SLOT(alloc_dm, 1);
ROVE_SLOT(alloc_mw, 2);
ROVE_SLOT(alloc_null_mr, 3);
ROVE_SLOT(alloc_parent_domain, 4);
ROVE_SLOT(bind_mw, 10);
ROVE_SLOT(close_xrcd, 11);
ROVE_SLOT(create_ah, 13);
ROVE_SLOT(create_cq, 15);
ROVE_SLOT(create_qp, 19);
ROVE_SLOT(create_srq, 22);
ROVE_SLOT(create_srq_ex, 23);
ROVE_SLOT(dealloc_mw, 25);
ROVE_SLOT(dealloc_pd, 26);
ROVE_SLOT(destroy_cq, 31);
ROVE_SLOT(destroy_qp, 34);
ROVE_SLOT(destroy_srq, 36);
ROVE_SLOT(free_context, 39);
ROVE_SLOT(free_dm, 40);
ROVE_SLOT(reg_dm_mr, 66);
ROVE_SLOT(modify_cq, 45);
ROVE_SLOT(get_srq_num, 41);
ROVE_SLOT(import_dm, 42);
ROVE_SLOT(import_pd, 44);
ROVE_SLOT(modify_qp, 47);
ROVE_SLOT(modify_qp_rate_limit, 48);
ROVE_SLOT(modify_srq, 49);
ROVE_SLOT(open_qp, 51);
ROVE_SLOT(open_xrcd, 52);
ROVE_SLOT(poll_cq, 53);
ROVE_SLOT(post_srq_recv, 57);
ROVE_SLOT(query_device_ex, 58);
ROVE_SLOT(query_port, 60);
ROVE_SLOT(query_rt_values, 63);
ROVE_SLOT(query_srq, 64);
ROVE_SLOT(reg_dmabuf_mr, 67);
ROVE_SLOT(reg_mr, 68);
ROVE_SLOT(resize_cq, 71);
ROVE_SLOT(unimport_dm, 73);
ROVE_SLOT(unimport_pd, 75);
#undef ROVE_SLOT

#endif /* ROVE_STANDALONE_DRIVER_H */
