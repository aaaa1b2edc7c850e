// SPDX-License-Identifier: GPL-2.0
/*
 * mad.c - management datagrams by /dev/infiniband/umad*, as a manager of whatever class
 * would: QP1 carries them, and the kernel's MAD layer sends again, gives up, and cuts to
 * pieces what is long (RMPP)
 *
 *	mad UMAD-A GID-INDEX-A GID-A UMAD-B GID-INDEX-B GID-B
 *
 * A asks, B answers.  The class is a vendor's of the second range, which is nobody's here.
 * Between IPv4 addresses there are no answers: the kernel's MAD layer takes the bytes before
 * a datagram for an InfiniBand header, whatever they are, and finds that the answer is for
 * somebody else (rcv_has_same_gid(); so with every driver).
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <rdma/ib_user_mad.h>

#include "points.h"

#define CLASS		0x3a
#define OUI		0x00525645
#define GET		0x01
#define GET_RESP	0x81
#define QP1_QKEY	0x80010000
#define LONG		20000
#define RMPP_VERSION	1
#define RMPP_ACTIVE	1

/* IBTA vol. 1, 13.4.2, 13.6.2.1, 16.5: the header of such a class. */
struct vendor_mad {
	uint8_t base_version;
	uint8_t mgmt_class;
	uint8_t class_version;
	uint8_t method;
	uint16_t status;
	uint16_t class_specific;
	uint64_t tid;
	uint16_t attr_id;
	uint16_t resv;
	uint32_t attr_mod;
	uint8_t rmpp_version;
	uint8_t rmpp_type;
	uint8_t rmpp_flags;
	uint8_t rmpp_status;
	uint32_t rmpp_seg;
	uint32_t rmpp_len;
	uint8_t reserved;
	uint8_t oui[3];
	uint8_t data[];
} __attribute__((packed));

#define MAD_LEN		256
#define ROOM		(MAD_LEN - sizeof(struct vendor_mad))
#define PATIENCE	10000	/* ms for an answer: more than a debug kernel takes */

struct port {
	int fd;
	uint32_t agent;
	int gid_index;
	uint8_t gid[16];
	bool ipv4;
};

/* A datagram as the device takes and gives it. */
struct mad {
	struct ib_user_mad_hdr hdr;
	union {
		struct vendor_mad mad;
		uint8_t bytes[sizeof(struct vendor_mad) + LONG + MAD_LEN];
	};
};

static struct port a, b;
static uint32_t tid;

static void port_open(struct port *p, char **arg)
{
	struct ib_user_mad_reg_req2 req = {
		.qpn = 1, .mgmt_class = CLASS, .mgmt_class_version = 1, .oui = OUI,
		.rmpp_version = RMPP_VERSION,
		.method_mask = { 1ull << GET },
	};
	struct in_addr v4;

	p->fd = open(arg[0], O_RDWR);
	if (p->fd < 0 || ioctl(p->fd, IB_USER_MAD_REGISTER_AGENT2, &req))
		die(arg[0]);
	p->agent = req.id;
	p->gid_index = atoi(arg[1]);
	if (inet_pton(AF_INET, arg[2], &v4) == 1) {
		memset(p->gid + 10, 0xff, 2);
		memcpy(p->gid + 12, &v4, 4);
		p->ipv4 = true;
	} else if (inet_pton(AF_INET6, arg[2], p->gid) != 1) {
		die(arg[2]);
	}
}

static void ask(struct mad *m, struct port *from, struct port *to, uint32_t timeout_ms,
		uint32_t retries)
{
	memset(m, 0, sizeof(*m));
	m->hdr = (struct ib_user_mad_hdr) {
		.id = from->agent,
		.timeout_ms = timeout_ms,
		.retries = retries,
		.qpn = htonl(1),
		.qkey = htonl(QP1_QKEY),
		.grh_present = 1,
		.gid_index = from->gid_index,
		.hop_limit = 64,
	};
	memcpy(m->hdr.gid, to->gid, 16);
	m->mad.base_version = 1;
	m->mad.mgmt_class = CLASS;
	m->mad.class_version = 1;
	m->mad.method = GET;
	/* the half that goes first is the kernel's */
	m->mad.tid = (uint64_t)htonl(++tid) << 32;
	m->mad.attr_id = htons(0x11);
	m->mad.rmpp_version = RMPP_VERSION;
	memcpy(m->mad.oui, "\x52\x56\x45", 3);
}

static bool put(struct port *p, struct mad *m, size_t data_len)
{
	size_t len = sizeof(m->hdr) + sizeof(m->mad) + data_len;

	return write(p->fd, m, len) == (ssize_t)len;
}

/* The next datagram, or -1: none within @ms.  Its bytes, with its own headers. */
static ssize_t get(struct port *p, struct mad *m, int ms)
{
	struct pollfd pfd = { .fd = p->fd, .events = POLLIN };
	ssize_t n;

	if (poll(&pfd, 1, ms) != 1)
		return -1;
	n = read(p->fd, m, sizeof(*m));
	return n < 0 ? -1 : n - (ssize_t)sizeof(m->hdr);
}

/* Answer @m, which has come to @p. */
static bool answer(struct port *p, struct mad *m, size_t data_len, bool rmpp)
{
	m->hdr.id = p->agent;
	m->hdr.gid_index = p->gid_index;
	m->hdr.timeout_ms = rmpp ? PATIENCE : 0;
	m->hdr.retries = 0;
	m->mad.method = GET_RESP;
	if (rmpp)
		m->mad.rmpp_flags = RMPP_ACTIVE;
	return put(p, m, data_len);
}

/* One datagram with data of chance, from @from to @to, where it is @got. */
static void send_one(struct port *from, struct port *to, uint32_t timeout_ms,
		     struct mad *req, struct mad *got)
{
	size_t k;

	ask(req, from, to, timeout_ms, 0);
	for (k = 0; k < ROOM; k++)
		req->mad.data[k] = rand();
	CHECK(put(from, req, ROOM));
	CHECK(get(to, got, 20000) == MAD_LEN);
	CHECK(got->mad.method == GET && !memcmp(got->mad.data, req->mad.data, ROOM));
	CHECK(got->hdr.grh_present && !memcmp(got->hdr.gid, from->gid, 16));
	CHECK(got->hdr.qpn == htonl(1) && got->hdr.gid_index == to->gid_index);
}

static void t_sent(void)
{
	static struct mad req, got;
	int i;

	for (i = 0; i < 400 && good; i++)
		send_one(i & 1 ? &b : &a, i & 1 ? &a : &b, 0, &req, &got);
}

static void t_asked(void)
{
	static struct mad req, got, resp;
	int i;

	for (i = 0; i < 200; i++) {
		send_one(&a, &b, PATIENCE, &req, &got);
		CHECK(good);
		got.mad.data[0] ^= 0xff;
		CHECK(answer(&b, &got, ROOM, false));
		CHECK(get(&a, &resp, 20000) == MAD_LEN);
		CHECK(!resp.hdr.status && resp.hdr.id == a.agent &&
		      resp.mad.method == GET_RESP);
		CHECK(resp.mad.tid >> 32 == req.mad.tid >> 32);
		req.mad.data[0] ^= 0xff;
		CHECK(!memcmp(resp.mad.data, req.mad.data, ROOM));
	}
}

static void t_silence(void)
{
	static struct mad req, got, back;
	int i;

	ask(&req, &a, &b, 300, 2);
	CHECK(put(&a, &req, ROOM));
	for (i = 0; i < 3; i++)
		CHECK(get(&b, &got, 20000) == MAD_LEN);
	CHECK(get(&a, &back, 20000) >= 0);
	CHECK(back.hdr.status == ETIMEDOUT && back.mad.tid >> 32 == req.mad.tid >> 32);
	CHECK(get(&b, &got, 500) == -1);
}

static void t_nobody(void)
{
	static struct mad req, back;

	ask(&req, &a, &b, 300, 0);
	req.hdr.qpn = htonl(0xfffff0);
	CHECK(put(&a, &req, ROOM));
	CHECK(get(&a, &back, 20000) >= 0 && back.hdr.status == ETIMEDOUT);
}

static void t_long(void)
{
	static struct mad req, got, resp;
	static uint8_t data[LONG];
	int i;
	size_t k;

	for (i = 0; i < 10; i++) {
		ask(&req, &a, &b, PATIENCE, 0);
		CHECK(put(&a, &req, ROOM));
		CHECK(get(&b, &got, 20000) == MAD_LEN);
		for (k = 0; k < LONG; k++)
			data[k] = rand();
		memcpy(got.mad.data, data, LONG);
		CHECK(answer(&b, &got, LONG, true));
		CHECK(get(&a, &resp, 20000) >= (ssize_t)(LONG + sizeof(resp.mad)));
		CHECK(!resp.hdr.status && !memcmp(resp.mad.data, data, LONG));
	}
}

static void t(void (*test)(void), const char *name, const char *addr)
{
	good = true;
	test();
	outcome(good, "%s, %s", name, addr);
}

int main(int argc, char **argv)
{
	if (argc != 7)
		return 2;
	port_open(&a, argv + 1);
	port_open(&b, argv + 4);

	t(t_sent, "datagrams both ways", argv[3]);
	t(t_silence, "a request that nobody answers is sent again, and given up", argv[3]);
	t(t_nobody, "a QP that nobody has", argv[3]);
	if (!a.ipv4) {
		t(t_asked, "requests and their answers", argv[3]);
		t(t_long, "an answer of many datagrams (RMPP)", argv[3]);
	}
	printf("1..%d\n", count);
	return failed > 0;
}
