// SPDX-License-Identifier: GPL-2.0
/*
 * failnth.c - every allocation and every copy of a verb fails, one after another
 *
 *	failnth SECONDS DEV-A GID-INDEX-A DEV-B GID-INDEX-B [NETDEV]
 *
 * /proc/thread-self/fail-nth makes the nth fault site that this thread passes
 * fail (CONFIG_FAULT_INJECTION; failslab, fail_page_alloc and fail_usercopy must be
 * set up to take part).  How many a verb passes is found first; then each fails, or
 * as many as SECONDS are enough for: a link makes thousands of files in sysfs
 * alike.  A call that met a failure either says so, with an errno
 * that stands for want of memory, or has got along without; then it works the
 * next time.  What leaks, warns or crashes shows in the kernel's log (failnth.sh).
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/udmabuf.h>
#include <net/if.h>
#include <rdma/rdma_netlink.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "pair.h"

#define MOST	(1 << 20)	/* sites that a verb may have */

static int fail_nth;
static int limit;	/* milliseconds for one verb */
static char *netdev;

static void arm(int n)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%d", n);

	/* What is still armed may meet this copy; then it is spent. */
	if (pwrite(fail_nth, text, len, 0) != len &&
	    (errno != EFAULT || pwrite(fail_nth, text, len, 0) != len))
		die("fail-nth");
}

/* Has the failure that was armed happened?  It is disarmed now. */
static bool struck(void)
{
	char text[16] = "";
	bool met = pread(fail_nth, text, sizeof(text) - 1, 0) < 1;

	/* That very read has met it. */
	if (met && errno != EFAULT)
		die("fail-nth");
	arm(0);
	return !met && atoi(text) == 0;
}

struct verb {
	const char *name;
	void *(*call)(void);		/* NULL: failed, errno says why */
	int (*undo)(void *made);
	int also[2];			/* other errnos that are answers */
	int misses;			/* that it may meet no failure, though there are more */
};

enum outcome { WRONG, PAST, HIT };

static int failures;

/* One call whose @n-th site fails.  PAST: it has fewer, and works. */
static enum outcome call_with(const struct verb *v, int n)
{
	enum outcome out;
	int misses, err;
	void *made;

	for (misses = 0;; misses++) {
		arm(n);
		errno = 0;
		made = v->call();
		err = errno;
		out = struck() ? HIT : PAST;
		if (made && v->undo && v->undo(made)) {
			printf("# site %d: cannot be undone (errno %d)\n", n, errno);
			return WRONG;
		}
		if (out == HIT || !made || misses == v->misses)
			break;
	}
	failures += !made;
	if (!made && (out == PAST || !err ||
		      (err != ENOMEM && err != EFAULT &&
		       err != v->also[0] && err != v->also[1]))) {
		printf("# site %d%s: errno %d\n", n, out == HIT ? "" : ", not there", err);
		return WRONG;
	}
	return out;
}

/* How many sites it passes: doubled until there are fewer, then halved.  -1: wrong. */
static int count_sites(const struct verb *v)
{
	enum outcome out = HIT;
	int lo = 0, hi, n;

	for (hi = 1; hi < MOST && (out = call_with(v, hi)) == HIT; hi *= 2)
		lo = hi;
	while (out != WRONG && hi - lo > 1) {
		n = (lo + hi) / 2;
		out = call_with(v, n);
		*(out == HIT ? &lo : &hi) = n;
	}
	return out == WRONG || hi >= MOST ? -1 : lo;
}

/*
 * The site after @n: all of them if there is time to try so many, else some at both
 * ends, and ever fewer between.
 */
static int next_site(int n, int all, int tries)
{
	int dense = tries / 12 + 1, step = n / dense, last = all - dense - n;

	if (all <= tries || n <= dense || last <= 0)
		return n + 1;
	return n + (step < last ? step : last);
}

/* Who uses a PD or a CQ: a call that failed must not be left among them. */
static int users(void)
{
	FILE *f = popen("rdma resource show pd; rdma resource show cq", "r");
	char word[64];
	int n, sum = 0;

	if (!f)
		die("popen");
	while (fscanf(f, "%63s", word) == 1)
		if (!strcmp(word, "users") && fscanf(f, "%d", &n) == 1)
			sum += n;
	if (pclose(f))
		die("rdma resource show");
	return sum;
}

static void one_by_one(const struct verb *v)
{
	int n, all, tries, used, slack, tried = 0;
	enum outcome out = HIT;
	uint64_t start;
	void *made;

	failures = 0;
	/* what is allocated once and for all, is allocated now */
	start = now_ms();
	made = v->call();
	good = made && (!v->undo || !v->undo(made));
	if (!good)
		printf("# %s: fails anyway (errno %d)\n", v->name, errno);
	tries = limit / (int)(now_ms() - start + 1);
	used = users();
	all = good ? count_sites(v) : -1;
	for (n = 1; n <= all; n = next_site(n, all, tries)) {
		out = call_with(v, n);
		if (out != HIT)
			break;
		tried++;
	}
	printf("# %s: %d sites, %d of them failed, %d calls ended by it\n", v->name, all,
	       tried, failures);
	/* how many there are may differ a little from call to call, or more */
	slack = (v->misses ? all / 2 : all / 10) + 3;
	good = all > 0 && (n > all || (out == PAST && n > all - slack));
	used = users() - used;
	if (used) {
		printf("# %d users of a PD or CQ are left\n", used);
		good = false;
	}
	point(v->name);
}

/* --- the verbs ------------------------------------------------------------------ */

static struct ibv_device *device;
static uint32_t dev_index;	/* for netlink */
static char *buf;
static struct ibv_mr *mr, *b_mr, *moving, *odp;
static struct ibv_cq *cq;
static struct ibv_srq *srq;
static struct ibv_qp *ud, *uc, *xrc_target, *counted;
static struct ibv_ah *ah;
static struct ibv_mw *window;
static int shared_buffer;	/* a dma-buf of 64 KiB */
static struct ibv_xrcd *xrcd;
static struct ibv_dm *dm;

/* For functions that return 0 or an errno: anything but NULL is success. */
static void *result(int err)
{
	errno = err < 0 ? errno : err;
	return err ? NULL : buf;
}

static void *do_open(void) { return ibv_open_device(device); }
static int un_open(void *p) { return ibv_close_device(p); }

static void *do_pd(void) { return ibv_alloc_pd(a.ctx); }
static int un_pd(void *p) { return ibv_dealloc_pd(p); }

static void *do_mr(void) { return ibv_reg_mr(a.pd, buf, 3 * 4096, ALL); }
static void *do_big_mr(void) { return ibv_reg_mr(a.pd, buf, 4 * MB, ALL); }
/* The kernel brings in each page as it pins it. */
static void *do_fresh_mr(void)
{
	madvise(buf + 3 * MB, MB, MADV_DONTNEED);
	return ibv_reg_mr(a.pd, buf + 3 * MB, 40 * 4096, ALL);
}
static void *do_odp_mr(void)
{
	return ibv_reg_mr(a.pd, buf, MB, ALL | IBV_ACCESS_ON_DEMAND);
}
static void *do_implicit_mr(void)
{
	return ibv_reg_mr(a.pd, NULL, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
}
static int un_mr(void *p) { return ibv_dereg_mr(p); }

/* ERR_CMD: the region is as it was and can be tried again. */
static void *do_rereg(void)
{
	static int flip;

	if (!moving)
		moving = ibv_reg_mr(a.pd, buf, 64 * KB, ALL);
	if (!moving || ibv_rereg_mr(moving, IBV_REREG_MR_CHANGE_TRANSLATION, a.pd,
				    buf + (++flip & 1) * 4096, 64 * KB, 0))
		return NULL;
	return moving;
}

static void *do_mw(void) { return ibv_alloc_mw(a.pd, IBV_MW_TYPE_2); }
static int un_mw(void *p) { return ibv_dealloc_mw(p); }

static void *do_dm(void)
{
	struct ibv_alloc_dm_attr attr = { .length = 4096 };

	return ibv_alloc_dm(a.ctx, &attr);
}
static int un_dm(void *p) { return ibv_free_dm(p); }
static void *do_dm_mr(void)
{
	return ibv_reg_dm_mr(a.pd, dm, 0, 4096, ALL | IBV_ACCESS_ZERO_BASED);
}
static void *do_dmabuf_mr(void)
{
	return ibv_reg_dmabuf_mr(a.pd, 0, 64 * KB, 0, shared_buffer, ALL);
}
static void *do_null_mr(void) { return ibv_alloc_null_mr(a.pd); }

static void *do_channel(void) { return ibv_create_comp_channel(a.ctx); }
static int un_channel(void *p) { return ibv_destroy_comp_channel(p); }

static void *do_cq(void) { return ibv_create_cq(a.ctx, 300, NULL, NULL, 0); }
static void *do_cq_ex(void)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 100, .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
	};
	struct ibv_cq_ex *ex;

	attr.wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
	ex = ibv_create_cq_ex(a.ctx, &attr);
	return ex ? ibv_cq_ex_to_cq(ex) : NULL;
}
static int un_cq(void *p) { return ibv_destroy_cq(p); }
static void *do_modify_cq(void)
{
	static int flip;
	struct ibv_modify_cq_attr attr = {
		.attr_mask = IBV_CQ_ATTR_MODERATE, .moderate = { ++flip & 1 ? 4 : 8, 50 },
	};

	return result(ibv_modify_cq(cq, &attr));
}
static void *do_resize_cq(void)
{
	static int flip;

	return result(ibv_resize_cq(cq, ++flip & 1 ? 500 : 1000));
}

/* By the same process: what another would be handed. */
static void *do_import_mr(void) { return ibv_import_mr(a.pd, mr->handle); }
static int un_import_mr(void *p) { ibv_unimport_mr(p); return 0; }
static void *do_import_dm(void) { return ibv_import_dm(a.ctx, dm->handle); }
static int un_import_dm(void *p) { ibv_unimport_dm(p); return 0; }

static void *do_srq(void)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 100, .max_sge = 4 } };

	return ibv_create_srq(a.pd, &init);
}
static int un_srq(void *p) { return ibv_destroy_srq(p); }
static void *do_resize_srq(void)
{
	static int flip;
	struct ibv_srq_attr attr = { .max_wr = ++flip & 1 ? 200 : 400 };

	return result(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR));
}

static void *make_qp(enum ibv_qp_type type, struct ibv_srq *s)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .srq = s,
		.cap = { 100, s ? 0 : 100, 4, s ? 0 : 4, 64 }, .qp_type = type,
	};

	return ibv_create_qp(a.pd, &init);
}
static void *do_rc(void) { return make_qp(IBV_QPT_RC, NULL); }
static void *do_rc_srq(void) { return make_qp(IBV_QPT_RC, srq); }
static void *do_uc(void) { return make_qp(IBV_QPT_UC, NULL); }
static void *do_ud(void) { return make_qp(IBV_QPT_UD, NULL); }
static void *do_xrc_initiator(void)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_XRC_SEND, .comp_mask = IBV_QP_INIT_ATTR_PD,
		.send_cq = cq, .cap = { 100, 0, 4, 0, 64 }, .pd = a.pd,
	};

	return ibv_create_qp_ex(a.ctx, &init);
}
static int un_qp(void *p) { return ibv_destroy_qp(p); }

static void *do_xrcd(void)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1, .oflags = O_CREAT,
	};

	return ibv_open_xrcd(a.ctx, &attr);
}
static int un_xrcd(void *p) { return ibv_close_xrcd(p); }

static void *do_xrc_srq(void)
{
	struct ibv_srq_init_attr_ex init = {
		.attr = { .max_wr = 100, .max_sge = 4 }, .srq_type = IBV_SRQT_XRC,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.pd = a.pd, .xrcd = xrcd, .cq = cq,
	};

	return ibv_create_srq_ex(a.ctx, &init);
}
static void *do_xrc_target(void)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = xrcd,
	};

	return ibv_create_qp_ex(a.ctx, &init);
}
static void *do_open_qp(void)
{
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
			     IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = xrc_target->qp_num, .xrcd = xrcd, .qp_type = IBV_QPT_XRC_RECV,
	};

	return ibv_open_qp(a.ctx, &attr);
}

static struct ibv_ah_attr to_b(void)
{
	return (struct ibv_ah_attr) {
		.is_global = 1, .port_num = 1,
		.grh = { .dgid = b.gid, .sgid_index = a.gid_index, .hop_limit = 64 },
	};
}
static void *do_ah(void)
{
	struct ibv_ah_attr attr = to_b();

	return ibv_create_ah(a.pd, &attr);
}
static int un_ah(void *p) { return ibv_destroy_ah(p); }

static const union ibv_gid group = { .raw = { 0xff, 0x0e, [15] = 77 } };

static void *do_attach(void) { return result(ibv_attach_mcast(ud, &group, 0)); }
static int un_attach(void *p) { return ibv_detach_mcast(ud, &group, 0); }

/* A failed transition leaves the QP where it was. */
static void *do_modify(void)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .path_mtu = IBV_MTU_1024,
		.dest_qp_num = b.qp->qp_num, .max_dest_rd_atomic = 16, .max_rd_atomic = 16,
		.min_rnr_timer = 12, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7,
		.ah_attr = to_b(),
	};
	struct ibv_qp *qp = a.qp;
	int err;

	err = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
			    IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	attr.qp_state = IBV_QPS_RTR;
	if (!err)
		err = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV |
				    IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	attr.qp_state = IBV_QPS_RTS;
	if (!err)
		err = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT |
				    IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				    IBV_QP_MAX_QP_RD_ATOMIC);
	attr.qp_state = IBV_QPS_RESET;
	if (err && ibv_modify_qp(qp, &attr, IBV_QP_STATE))
		die("to RESET");
	return result(err);
}
static int un_modify(void *p)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	return ibv_modify_qp(a.qp, &attr, IBV_QP_STATE);
}

/*
 * The call that sends: what it cannot build for want of memory is sent by a timer
 * later, so that the caller is told of nothing but success.  There may be no receive
 * for what can be lost: it is not asked for then.
 */
static void *send_with(struct ibv_qp *qp, uint32_t len)
{
	static uint32_t round;
	struct ibv_sge sge = { (uintptr_t)buf, len, mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};
	char *to = buf + 2 * MB;
	bool lost = qp->qp_type != IBV_QPT_RC;
	int err;

	if (qp == ud) {
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = 0xfffffe;		/* nobody's */
		wr.wr.ud.remote_qkey = 1;
	}
	/* After traffic the kernel looks at the ring for some time without being called. */
	usleep(50000);
	memset(buf, ++round, len);
	memset(to, 0, len);
	if (!lost && post_recv(&b, to, len, b_mr->lkey))
		die("post_recv");
	err = ibv_post_send(qp, &wr, &bad);
	if (err || done(qp->send_cq, NULL) ||
	    (!lost && (done(b.cq, NULL) || memcmp(buf, to, len)))) {
		errno = EIO;
		return NULL;
	}
	return buf;
}

static void *do_post(void) { return send_with(a.qp, 40000); }
static void *do_post_uc(void) { return send_with(uc, 40000); }
static void *do_post_ud(void) { return send_with(ud, 1000); }

/* As one work request of the send queue; the window is bound anew each time. */
static void *do_bind(void)
{
	struct ibv_mw_bind bind = {
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = { .mr = mr, .addr = (uintptr_t)buf, .length = 4096,
			       .mw_access_flags = IBV_ACCESS_REMOTE_WRITE },
	};

	usleep(50000);
	if (ibv_bind_mw(a.qp, window, &bind) || done(a.cq, NULL)) {
		errno = EIO;
		return NULL;
	}
	return buf;
}

static void *do_advise(void)
{
	struct ibv_sge sge;

	if (!odp)
		odp = ibv_reg_mr(a.pd, buf + MB, MB, ALL | IBV_ACCESS_ON_DEMAND);
	if (!odp)
		return NULL;
	madvise(buf + MB, MB, MADV_DONTNEED);
	sge = (struct ibv_sge) { (uintptr_t)buf + MB, MB, odp->lkey };
	return result(ibv_advise_mr(a.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
				    IB_UVERBS_ADVISE_MR_FLAG_FLUSH, &sge, 1));
}

/* --- a link, by netlink ------------------------------------------------------------ */

struct request {
	struct nlmsghdr n;
	char room[256];
};

static struct request request(int command, int flags)
{
	return (struct request) { .n = {
		.nlmsg_len = NLMSG_LENGTH(0),
		.nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command),
		.nlmsg_flags = NLM_F_REQUEST | flags,
	} };
}

static void put(struct nlmsghdr *n, int type, const void *data, int len)
{
	struct nlattr *at = (void *)n + NLMSG_ALIGN(n->nlmsg_len);

	at->nla_type = type;
	at->nla_len = NLA_HDRLEN + len;
	memcpy((void *)at + NLA_HDRLEN, data, len);
	n->nlmsg_len = NLMSG_ALIGN(n->nlmsg_len) + NLA_ALIGN(at->nla_len);
}

/* Returns what the kernel answers: 0 or an errno. */
static int ask(struct nlmsghdr *n)
{
	static int fd = -1;
	struct {
		struct nlmsghdr h;
		struct nlmsgerr e;
		char more[4096];
	} answer;

	if (fd < 0)
		fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_RDMA);
	if (send(fd, n, n->nlmsg_len, 0) < 0)
		return errno;
	if (recv(fd, &answer, sizeof(answer), MSG_DONTWAIT) < 0)
		return ENOMEM;		/* it had none for the answer */
	return answer.h.nlmsg_type == NLMSG_ERROR ? -answer.e.error : 0;
}

static bool remake_counted(void)
{
	if (counted && ibv_destroy_qp(counted))
		return false;
	counted = do_uc();
	return counted;
}

/* A counter for a QP alone: like `rdma statistic qp bind`. */
static void *do_count(void)
{
	/* the answer is the acknowledgment */
	struct request m = request(RDMA_NLDEV_CMD_STAT_SET, 0);
	const uint32_t mode = RDMA_COUNTER_MODE_MANUAL, res = RDMA_NLDEV_ATTR_RES_QP;
	const uint32_t port = 1;
	int err;

	put(&m.n, RDMA_NLDEV_ATTR_DEV_INDEX, &dev_index, sizeof(dev_index));
	put(&m.n, RDMA_NLDEV_ATTR_PORT_INDEX, &port, sizeof(port));
	put(&m.n, RDMA_NLDEV_ATTR_STAT_MODE, &mode, sizeof(mode));
	put(&m.n, RDMA_NLDEV_ATTR_STAT_RES, &res, sizeof(res));
	put(&m.n, RDMA_NLDEV_ATTR_RES_LQPN, &counted->qp_num, sizeof(counted->qp_num));
	err = ask(&m.n);
	/* it may have been bound, and the answer failed */
	if (err && !remake_counted())
		die("a QP to be counted");
	return result(err);
}

static void find_index(void)
{
	char cmd[128];
	FILE *f;

	snprintf(cmd, sizeof(cmd), "rdma dev show %s", ibv_get_device_name(device));
	f = popen(cmd, "r");
	if (!f || fscanf(f, "%u", &dev_index) != 1 || pclose(f))
		die("rdma dev show");
}

static int un_count(void *p) { return !remake_counted(); }

static bool exists(void)
{
	return !access("/sys/class/infiniband/faulty", F_OK);
}

static void *do_link(void)
{
	struct request m = request(RDMA_NLDEV_CMD_NEWLINK, NLM_F_ACK);
	bool there;
	int err;

	put(&m.n, RDMA_NLDEV_ATTR_DEV_NAME, "faulty", 7);
	put(&m.n, RDMA_NLDEV_ATTR_LINK_TYPE, "rove", 5);
	put(&m.n, RDMA_NLDEV_ATTR_NDEV_NAME, netdev, strlen(netdev) + 1);
	err = ask(&m.n);
	/* the answer may have been what failed */
	/* still armed, it may fail to see what is there: once */
	there = exists() || exists();
	errno = err;
	return there ? buf : NULL;
}

static int un_link(void *p)
{
	/* ib_core may still be looking at the addresses of the netdev */
	return system("rdma link delete faulty") || exists();
}

/* From a driver that lends memory of ours to others; false where there is none. */
static bool make_buffer(void)
{
	struct udmabuf_create c = { .flags = UDMABUF_FLAGS_CLOEXEC, .size = 64 * KB };
	int dev = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);

	if (dev < 0)
		return false;
	c.memfd = memfd_create("failnth", MFD_ALLOW_SEALING);
	if ((int)c.memfd < 0 || ftruncate(c.memfd, c.size) ||
	    fcntl(c.memfd, F_ADD_SEALS, F_SEAL_SHRINK))
		die("memfd");
	shared_buffer = ioctl(dev, UDMABUF_CREATE, &c);
	if (shared_buffer < 0)
		die("UDMABUF_CREATE");
	close(c.memfd);
	close(dev);
	return true;
}

static void undo(const char *name, int (*un)(void *), void *made)
{
	if (!un(made))
		return;
	printf("# %s: errno %d\n", name, errno);
	good = false;
}

/* ------------------------------------------------------------------------------- */

int main(int argc, char **argv)
{
	static const struct verb verbs[] = {
		{ "open_device", do_open, un_open, { ENOENT } },
		{ "alloc_pd", do_pd, un_pd },
		{ "reg_mr of 3 pages", do_mr, un_mr },
		{ "reg_mr of memory that is not there yet", do_fresh_mr, un_mr },
		{ "reg_mr of 4 MiB", do_big_mr, un_mr },
		{ "reg_mr on demand", do_odp_mr, un_mr },
		{ "reg_mr, implicit", do_implicit_mr, un_mr },
		{ "rereg_mr", do_rereg, NULL },
		{ "alloc_mw", do_mw, un_mw },
		{ "alloc_dm", do_dm, un_dm },
		{ "reg_dm_mr", do_dm_mr, un_mr },
		{ "reg_dmabuf_mr", do_dmabuf_mr, un_mr },
		{ "alloc_null_mr", do_null_mr, un_mr },
		{ "import_mr", do_import_mr, un_import_mr },
		{ "import_dm", do_import_dm, un_import_dm },
		{ "create_comp_channel", do_channel, un_channel, { ENFILE } },
		{ "create_cq", do_cq, un_cq },
		{ "create_cq_ex", do_cq_ex, un_cq },
		{ "modify_cq", do_modify_cq, NULL },
		/* to one of two sizes, which have not as many */
		{ "resize_cq", do_resize_cq, NULL, .misses = 2 },
		{ "create_srq", do_srq, un_srq },
		{ "modify_srq, resized", do_resize_srq, NULL, .misses = 2 },
		{ "create_qp RC", do_rc, un_qp },
		{ "create_qp RC with SRQ", do_rc_srq, un_qp },
		{ "create_qp UC", do_uc, un_qp },
		{ "create_qp UD", do_ud, un_qp },
		{ "create_qp XRC, initiator", do_xrc_initiator, un_qp },
		{ "open_xrcd", do_xrcd, un_xrcd },
		{ "create_srq XRC", do_xrc_srq, un_srq },
		/*
		 * Not an XRC target: ib_core leaves the XRCD in use for ever where its own
		 * part of that fails (create_xrc_qp_user()), and warns at the end.
		 */
		{ "open_qp", do_open_qp, un_qp },
		{ "create_ah", do_ah, un_ah, { ENOBUFS } },
		{ "attach_mcast", do_attach, un_attach },
		{ "advise_mr", do_advise, NULL },
		/* there is no call when the kernel looks at the ring just then */
		{ "post_send", do_post, NULL, .misses = 20 },
		{ "post_send UC", do_post_uc, NULL, .misses = 20 },
		{ "post_send UD", do_post_ud, NULL, .misses = 20 },
		{ "bind_mw", do_bind, NULL, .misses = 20 },
		{ "modify_qp, RESET to RTS", do_modify, un_modify },
		/* whoever cannot be told which it is */
		{ "rdma statistic qp bind", do_count, un_count, { EMSGSIZE, ENOBUFS } },
		/* ENFILE: no memory for the inode of a socket */
		{ "rdma link add", do_link, un_link, { ENOBUFS, ENFILE } },
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	bool no_buffer;
	unsigned int i;

	if (argc < 6) {
		fprintf(stderr, "usage: %s SECONDS DEV GID DEV GID [NETDEV]\n", *argv);
		return 2;
	}
	limit = atoi(argv[1]) * 1000;
	netdev = argc > 6 ? argv[6] : NULL;
	fail_nth = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	if (fail_nth < 0) {
		printf("1..0 # SKIP this kernel does not fail on purpose\n");
		return 0;
	}
	end_open(&a, argv[2], argv[3]);
	end_open(&b, argv[4], argv[5]);
	device = a.ctx->device;
	buf = mmap(NULL, 4 * MB, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	mr = ibv_reg_mr(a.pd, buf, 4 * MB, ALL | IBV_ACCESS_MW_BIND);
	b_mr = ibv_reg_mr(b.pd, buf, 4 * MB, ALL);
	cq = do_cq();
	srq = do_srq();
	xrcd = do_xrcd();
	dm = do_dm();
	window = ibv_alloc_mw(a.pd, IBV_MW_TYPE_1);
	ah = do_ah();
	no_buffer = !make_buffer();
	find_index();
	if (!window || !ah)
		die("window, address handle");
	if (!mr || !b_mr || !cq || !srq || !xrcd || !dm)
		die("objects");
	ud = do_ud();
	xrc_target = do_xrc_target();
	if (!ud || !xrc_target)
		die("QPs");
	attr.qp_state = IBV_QPS_INIT;
	attr.port_num = 1;
	if (ibv_modify_qp(ud, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
			  IBV_QP_PORT | IBV_QP_QKEY))
		die("UD QP to INIT");
	attr.qp_state = IBV_QPS_RTR;
	if (ibv_modify_qp(ud, &attr, IBV_QP_STATE))
		die("UD QP to RTR");
	attr.qp_state = IBV_QPS_RTS;
	if (ibv_modify_qp(ud, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN))
		die("UD QP to RTS");
	pair_open();
	uc = do_uc();
	if (!uc || !remake_counted())
		die("UC QP");
	connect_qp(&a, uc, &b, 0xfffffe);	/* nobody's */
	for (i = 0; i < sizeof(verbs) / sizeof(*verbs); i++) {
		if (verbs[i].call == do_link && !netdev)
			continue;
		if (verbs[i].call == do_dmabuf_mr && no_buffer) {
			skipped(verbs[i].name, "no udmabuf");
			continue;
		}
		if (verbs[i].call == do_modify) {
			attr.qp_state = IBV_QPS_RESET;
			if (ibv_modify_qp(a.qp, &attr, IBV_QP_STATE))
				die("to RESET");
		}
		one_by_one(&verbs[i]);
	}
	/* What a call that failed has left in use cannot be destroyed. */
	good = true;
	pair_close();
	undo("UD QP", un_qp, ud);
	undo("UC QP", un_qp, uc);
	undo("counted QP", un_qp, counted);
	undo("AH", un_ah, ah);
	undo("MW", un_mw, window);
	undo("XRC target", un_qp, xrc_target);
	undo("SRQ", un_srq, srq);
	undo("XRCD", un_xrcd, xrcd);
	undo("CQ", un_cq, cq);
	undo("MR", un_mr, mr);
	undo("b's MR", un_mr, b_mr);
	undo("on-demand MR", un_mr, odp);
	undo("moving MR", un_mr, moving);
	undo("DM", un_dm, dm);
	undo("PD", un_pd, a.pd);
	undo("b's PD", un_pd, b.pd);
	point("all can be destroyed");
	printf("1..%d\n", count);
	return failed > 0;
}
