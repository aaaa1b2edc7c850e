/* SPDX-License-Identifier: GPL-2.0 */
/*
 * points.h - for test programs: test points that print TAP, and the device under
 * test.  lib.sh's c_points takes over what they print.
 */
#ifndef POINTS_H
#define POINTS_H

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/verbs.h>

static int count, failed;
static bool good;

/* Ends a test that does not hold. */
#define CHECK(x) do {							\
	if (!(x)) {							\
		printf("# line %d: not so: %s (errno %d)\n", __LINE__, #x, errno); \
		good = false;						\
		return;							\
	}								\
} while (0)
/* @x yields NULL and @err */
#define FAILS(x, err) do {						\
	errno = 0;							\
	CHECK(!(x));							\
	CHECK(errno == (err));						\
} while (0)

/* A test point, named like printf() does. */
__attribute__((format(printf, 2, 3)))
static inline void outcome(bool holds, const char *name, ...)
{
	va_list args;

	failed += !holds;
	printf("%sok %d - ", holds ? "" : "not ", ++count);
	va_start(args, name);
	vprintf(name, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
}

/* What has become of the test that began with @good set. */
static inline void point(const char *name)
{
	outcome(good, "%s", name);
}

#define note(...) do { printf("# " __VA_ARGS__); fflush(stdout); } while (0)

static inline void skipped(const char *name, const char *why)
{
	printf("ok %d - %s # SKIP %s\n", ++count, name, why);
}

static inline void die(const char *what)
{
	printf("Bail out! %s: %s\n", what, strerror(errno));
	exit(1);
}

/* For what is no test of its own. */
static inline void must(bool holds, const char *what)
{
	if (!holds)
		die(what);
}

static inline uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ULL + ts.tv_nsec / 1000000;
}

static inline struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = NULL;
	int i;

	for (i = 0; list && list[i] && !ctx; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			ctx = ibv_open_device(list[i]);
	if (!ctx)
		die(name);
	ibv_free_device_list(list);
	return ctx;
}

/* One of the port's counters, as "rdma statistic" shows it. */
static inline uint64_t hw_counter(const char *dev, const char *name)
{
	unsigned long long v = 0;
	char path[200];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/hw_counters/%s", dev, name);
	/* the kernel looks at the device only now and then */
	usleep(20000);
	f = fopen(path, "r");
	if (!f || fscanf(f, "%llu", &v) != 1)
		die(path);
	fclose(f);
	return v;
}

/* A UD QP that has just been made, or reset. */
static inline void ud_to_init(struct ibv_qp *qp, uint32_t qkey)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = qkey };

	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
			  IBV_QP_PORT | IBV_QP_QKEY))
		die("INIT");
}

/* Likewise, ready to send and to receive. */
static inline void ud_to_rts(struct ibv_qp *qp, uint32_t qkey)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR };

	ud_to_init(qp, qkey);
	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE))
		die("RTR");
	attr.qp_state = IBV_QPS_RTS;
	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN))
		die("RTS");
}

/* What a connected QP is told of QP @qpn at @gid; a test changes what it cares about. */
static inline struct ibv_qp_attr attr_to(const union ibv_gid *gid, int gid_index, uint32_t qpn)
{
	return (struct ibv_qp_attr) {
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = qpn,
		.max_dest_rd_atomic = 4,
		.max_rd_atomic = 4,
		.min_rnr_timer = 12,
		.timeout = 17,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = {
			.is_global = 1,
			.port_num = 1,
			.grh = { .dgid = *gid, .sgid_index = gid_index, .hop_limit = 64 },
		},
	};
}

/* From RESET to RTS; 0 or an errno. */
static inline int to_rts_as(struct ibv_qp *qp, struct ibv_qp_attr attr)
{
	bool acked = qp->qp_type != IBV_QPT_UC;
	int err;

	attr.qp_state = IBV_QPS_INIT;
	err = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			    IBV_QP_ACCESS_FLAGS);
	attr.qp_state = IBV_QPS_RTR;
	if (!err)
		err = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | (acked ?
				    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0));
	attr.qp_state = IBV_QPS_RTS;
	if (!err)
		err = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | (acked ?
				    IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				    IBV_QP_MAX_QP_RD_ATOMIC : 0));
	return err;
}

#endif /* POINTS_H */
