// SPDX-License-Identifier: GPL-2.0
/*
 * rds.c - RDS sockets on two addresses, by the InfiniBand transport: datagrams of
 * every size both ways, and RDMA into and out of the peer's memory.  (rds-ping and
 * rds-stress are no longer packaged.)
 *
 *	rds ADDRESS ADDRESS [MIB]	how much in the largest test
 */
#include <arpa/inet.h>
#include <linux/rds.h>
#include <poll.h>
#include <sys/socket.h>

#include "points.h"

#define PORT	4000
#define LIMIT	20000		/* ms, for one message to come */
#define RDMA	(1 << 20)	/* RDS's limit is 1 MiB an operation */

static struct sockaddr_in addr[2];
static int sock[2];
static unsigned char *from, *to;
static unsigned int seed = 1;

static void fill(unsigned char *p, size_t len)
{
	while (len--)
		*p++ = rand_r(&seed) >> 7;
}

static int open_socket(const struct sockaddr_in *a)
{
	int s = socket(PF_RDS, SOCK_SEQPACKET, 0), transport = RDS_TRANS_IB;

	if (s < 0)
		die("RDS socket");
	if (setsockopt(s, SOL_RDS, SO_RDS_TRANSPORT, &transport, sizeof(transport)))
		die("SO_RDS_TRANSPORT");
	if (bind(s, (const struct sockaddr *)a, sizeof(*a)))
		die("bind");
	return s;
}

static bool wait_in(int s)
{
	struct pollfd p = { .fd = s, .events = POLLIN };

	return poll(&p, 1, LIMIT) == 1;
}

/* A datagram from @me to the other, with the ancillary data of @cmsg. */
static bool send_msg(int me, const void *data, size_t len, void *cmsg, size_t cmsg_len)
{
	struct iovec iov = { (void *)data, len };
	struct msghdr m = {
		.msg_name = &addr[!me], .msg_namelen = sizeof(addr[0]),
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = cmsg, .msg_controllen = cmsg_len,
	};

	for (;;) {
		struct pollfd p = { .fd = sock[me], .events = POLLOUT };

		if (sendmsg(sock[me], &m, MSG_DONTWAIT) == (ssize_t)len)
			return true;
		/* ENOBUFS: the peer is congested */
		if ((errno != EAGAIN && errno != ENOBUFS) || poll(&p, 1, LIMIT) != 1)
			return false;
	}
}

static bool receive(int me, size_t len)
{
	memset(to, 0, len);
	return wait_in(sock[me]) && recv(sock[me], to, len + 1, 0) == (ssize_t)len &&
	       !memcmp(from, to, len);
}

static void sizes(int me)
{
	static const size_t len[] = { 0, 1, 7, 63, 4095, 4096, 4097, 65535, 65536, 200001, 1 << 20 };
	size_t i;

	for (i = 0; i < sizeof(len) / sizeof(len[0]); i++) {
		fill(from, len[i]);
		CHECK(send_msg(me, from, len[i], NULL, 0));
		CHECK(receive(!me, len[i]));
	}
}

/* Many at once: what is sent has to wait for what is received. */
static void stream(size_t total)
{
	size_t sent = 0, got = 0, len = 60000;
	struct pollfd p;

	fill(from, len);
	while (got < total) {
		while (sent < total && sent - got < 8 * len) {
			*(size_t *)from = sent;
			CHECK(send_msg(0, from, len, NULL, 0));
			sent += len;
		}
		p = (struct pollfd){ .fd = sock[1], .events = POLLIN };
		CHECK(poll(&p, 1, LIMIT) == 1);
		CHECK(recv(sock[1], to, len + 1, 0) == (ssize_t)len);
		CHECK(*(size_t *)to == got);	/* in order */
		*(size_t *)from = got;
		CHECK(!memcmp(from, to, len));
		got += len;
	}
}

/* The first ancillary data of a kind in a message of @len bytes */
static bool get_cmsg(int me, size_t len, int type, void *data, size_t size)
{
	union {
		struct cmsghdr head;
		char space[512];
	} ctl;
	char byte[8];
	struct iovec iov = { byte, sizeof(byte) };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &ctl, .msg_controllen = sizeof(ctl),
	};
	struct cmsghdr *c;

	if (!wait_in(sock[me]) || recvmsg(sock[me], &m, MSG_DONTWAIT) != (ssize_t)len)
		return false;
	for (c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
		if (c->cmsg_level == SOL_RDS && c->cmsg_type == type) {
			memcpy(data, CMSG_DATA(c), size);
			return true;
		}
	return false;
}

#define CMSG_HEAD(type, len) { .cmsg_len = CMSG_LEN(len), .cmsg_level = SOL_RDS, .cmsg_type = (type) }

/*
 * End 1 opens memory and tells end 0, in a message; end 0 writes to it, or reads.
 * Neither address is that of a page.
 */
static void rdma(bool writes)
{
	size_t len = RDMA - 8192;
	rds_rdma_cookie_t mine = 0, cookie = 0;
	struct {
		struct cmsghdr head;
		struct rds_get_mr_args args;
	} map = {
		CMSG_HEAD(RDS_CMSG_RDMA_MAP, sizeof(map.args)),
		{
			.vec = { (uintptr_t)to + 40, len },
			.cookie_addr = (uintptr_t)&mine,
			.flags = RDS_RDMA_READWRITE,
		},
	};
	struct rds_iovec local = { (uintptr_t)from + 8, len };
	struct {
		struct cmsghdr head;
		struct rds_rdma_args args;
	} op = {
		CMSG_HEAD(RDS_CMSG_RDMA_ARGS, sizeof(op.args)),
		{
			.remote_vec = { 0, len },
			.local_vec_addr = (uintptr_t)&local, .nr_local = 1,
			.flags = (writes ? RDS_RDMA_READWRITE : 0) | RDS_RDMA_NOTIFY_ME,
			.user_token = 77,
		},
	};
	struct rds_free_mr_args release = { .flags = RDS_RDMA_INVALIDATE };
	struct rds_rdma_notify done = {};

	fill(writes ? from + 8 : to + 40, len);
	memset(writes ? to + 40 : from + 8, 0, len);
	CHECK(send_msg(1, "open", 4, &map, sizeof(map)));
	CHECK(get_cmsg(0, 4, RDS_CMSG_RDMA_DEST, &cookie, sizeof(cookie)));
	op.args.cookie = cookie;
	CHECK(send_msg(0, "done", 4, &op, sizeof(op)));
	CHECK(get_cmsg(0, 0, RDS_CMSG_RDMA_STATUS, &done, sizeof(done)));
	CHECK(done.user_token == 77);
	CHECK(done.status == RDS_RDMA_SUCCESS);
	CHECK(wait_in(sock[1]));
	CHECK(recv(sock[1], &mine, sizeof(mine), 0) == 4);
	CHECK(!memcmp(from + 8, to + 40, len));
	release.cookie = cookie;
	CHECK(!setsockopt(sock[1], SOL_RDS, RDS_FREE_MR, &release, sizeof(release)));
}

int main(int argc, char **argv)
{
	size_t mib = argc > 3 ? atoi(argv[3]) : 1;
	int i, big = 4 << 20;

	if (argc < 3)
		return 2;
	from = aligned_alloc(4096, RDMA + 4096);
	to = aligned_alloc(4096, RDMA + 4096);
	if (!from || !to)
		die("memory");
	for (i = 0; i < 2; i++) {
		addr[i] = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(PORT + i) };
		if (inet_pton(AF_INET, argv[1 + i], &addr[i].sin_addr) != 1)
			die(argv[1 + i]);
		sock[i] = open_socket(&addr[i]);
		setsockopt(sock[i], SOL_SOCKET, SO_SNDBUFFORCE, &big, sizeof(big));
		setsockopt(sock[i], SOL_SOCKET, SO_RCVBUFFORCE, &big, sizeof(big));
	}
	good = true; sizes(0); point("datagrams of many sizes");
	good = true; sizes(1); point("and back");
	good = true; stream(mib << 20); point("a stream of them, in order");
	good = true; rdma(true); point("RDMA write");
	good = true; rdma(false); point("RDMA read");
	good = true; rdma(true); point("RDMA write again");
	printf("1..%d\n", count);
	return failed > 0;
}
