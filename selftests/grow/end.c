// SPDX-License-Identifier: GPL-2.0
/*
 * end.c - see end.h
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "end.h"

void die(const char *fmt, ...)
{
	int err = errno;
	va_list ap;

	fprintf(stderr, "%s: ", program_invocation_short_name);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, " (errno: %s)\n", strerror(err));
	exit(1);
}

double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = NULL;
	int i;

	for (i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			ctx = ibv_open_device(list[i]);
	if (list)
		ibv_free_device_list(list);
	return ctx;
}

void end_open(struct end *e, const char *spec)
{
	const char *comma = strchr(spec, ',');
	char name[64];

	if (!comma)
		die("%s: wanted DEVICE,GID-INDEX", spec);
	snprintf(name, sizeof(name), "%.*s", (int)(comma - spec), spec);
	e->gid_index = atoi(comma + 1);
	e->ctx = open_device(name);
	if (!e->ctx)
		die("cannot open %s", name);
	if (ibv_query_gid(e->ctx, 1, e->gid_index, &e->gid))
		die("%s has no GID %d", name, e->gid_index);
	e->pd = ibv_alloc_pd(e->ctx);
	if (!e->pd)
		die("alloc_pd");
}

struct ibv_cq *end_cq(struct end *e, uint32_t n)
{
	struct ibv_cq *cq = ibv_create_cq(e->ctx, n, NULL, NULL, 0);

	if (!cq)
		die("create_cq of %u entries", n);
	return cq;
}

struct ibv_qp *end_qp(struct end *e, struct ibv_cq *scq, struct ibv_cq *rcq,
		      uint32_t send_wr, uint32_t recv_wr)
{
	struct ibv_qp_init_attr init = {
		.send_cq = scq,
		.recv_cq = rcq,
		.cap = {
			.max_send_wr = send_wr,
			.max_recv_wr = recv_wr,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ,
	};
	struct ibv_qp *qp = ibv_create_qp(e->pd, &init);

	if (!qp)
		die("create_qp");
	errno = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
			      IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	if (errno)
		die("modify_qp to INIT");
	return qp;
}

void end_connect(struct end *e, struct ibv_qp *qp, uint32_t qpn,
		 const union ibv_gid *gid, uint8_t reads)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_4096,
		.dest_qp_num = qpn,
		.max_dest_rd_atomic = reads,
		.min_rnr_timer = 12,
		.ah_attr = {
			.is_global = 1,
			.port_num = 1,
			.grh = {
				.dgid = *gid,
				.sgid_index = e->gid_index,
				.hop_limit = 64,
			},
		},
		/* what follows is for RTS; as perftest has it */
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = reads,
	};

	errno = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV |
			      IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			      IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
			      IBV_QP_MIN_RNR_TIMER);
	if (errno)
		die("modify_qp to RTR");
	attr.qp_state = IBV_QPS_RTS;
	errno = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT |
			      IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			      IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
	if (errno)
		die("modify_qp to RTS");
}

struct ibv_mr *end_reg(struct end *e, void *buf, size_t len)
{
	struct ibv_mr *mr = ibv_reg_mr(e->pd, buf, len,
				       IBV_ACCESS_LOCAL_WRITE |
				       IBV_ACCESS_REMOTE_WRITE |
				       IBV_ACCESS_REMOTE_READ);

	if (!mr)
		die("reg_mr of %zu bytes", len);
	return mr;
}

static uint64_t parse_number(const char *s, char **end)
{
	uint64_t v = strtoull(s, end, 0);

	switch (**end) {
	case 'g':
		v <<= 10;
		/* fall through */
	case 'm':
		v <<= 10;
		/* fall through */
	case 'k':
		v <<= 10;
		(*end)++;
	}
	return v;
}

unsigned int parse_list(const char *s, uint64_t *v, unsigned int max)
{
	unsigned int n = 0;
	char *end;

	do {
		if (n == max)
			die("%s: more than %u numbers", s, max);
		v[n] = parse_number(s, &end);
		if (!v[n] || (n && v[n] <= v[n - 1]) || (*end && *end != ','))
			die("not an ascending list of numbers: %s", s);
		n++;
		s = end + 1;
	} while (*end);
	return n;
}
