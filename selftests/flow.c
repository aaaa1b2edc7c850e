// SPDX-License-Identifier: GPL-2.0
/*
 * Checked traffic for as long as wanted, in both directions over one RC QP, for
 * tests that disturb the network meanwhile.  Plain libibverbs.
 *
 *	flow -d DEV -g GID-INDEX [-p PORT] [-m MTU] [-T TIMEOUT] [-r RETRIES]
 *	     [-s MAX-SIZE] [-u UNITS-A-SECOND] [SERVER]
 *
 * Each end sends units of work, numbered from 0:
 *
 *	WRITE		a pattern, to the unit's slot of the peer's memory
 *	SEND		the number, the slot's length and a pattern
 *	FETCH_ADD	1 to the peer's counter: it must yield the number
 *	READ		what the peer has checked so far, and a pattern
 *
 * and checks those that arrive: the SENDs come in order, none lost, none twice
 * (the counter says so for what was executed, the numbers for what was
 * delivered), and each byte of SENDs, WRITEs and READs is right.  A slot is written
 * again only when the peer says that it has checked it.
 *
 * The QPs are told of each other over TCP, which is not needed from then on.
 * SIGTERM to either end stops both in good order.  Progress is printed five times a
 * second, an event of the device's when it comes; at the end how much was moved and
 * the longest time in which no unit was done.
 *
 * Exit status: 0 all is right; 1 an operation failed (which, and how, is
 * printed); 3 a byte or a number is wrong; 2 it did not get started.
 */
#include <errno.h>
#include <getopt.h>
#include <infiniband/verbs.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SLOTS		8u			/* units in flight, at most */
#define MAX_SIZE	65536u
#define FIXED		1024u			/* bytes that READs look at */
#define END		UINT64_MAX		/* in place of a number: the last SEND */

/* What a SEND begins with; the pattern of the number follows. */
struct note {
	uint64_t number;
	uint32_t wlen;				/* bytes WRITTEN to its slot */
	uint32_t slen;				/* of this message */
};

/* What the peer reads, adds to and writes. */
struct shared {
	uint64_t counter;
	uint64_t checked;
	uint8_t fixed[FIXED];
	uint8_t slot[SLOTS][MAX_SIZE];
};

/* The same layout for what arrives from the peer by SEND and READ, and what goes. */
struct memory {
	struct shared shared;
	uint8_t recv[2 * SLOTS][MAX_SIZE];
	uint8_t wsrc[SLOTS][MAX_SIZE];
	uint8_t ssrc[SLOTS][MAX_SIZE];
	uint64_t added[SLOTS];
	struct {
		uint64_t checked;
		uint8_t fixed[FIXED];
	} seen[SLOTS + 1];			/* the last: of a READ by itself */
};

struct end {
	uint32_t qpn, psn, rkey, seed;
	uint64_t addr;
	union ibv_gid gid;
};

enum what { WRITTEN, SENT, ADDED, SEEN, LOOKED, ENDED };

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_mr *mr;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct memory *mem;
static struct end me, peer;
static int gid_index, timeout = 14, retries = 7, sock, rate;
static uint32_t mtu = 1024, max_size = 16384;

static uint64_t posted, done, arrived, peer_checked, bytes;
static bool looking, end_posted, end_done, end_arrived;
static volatile sig_atomic_t stop;
static double longest;

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static void summary(void)
{
	printf("flow: %llu units sent, %llu received, %llu MB, longest pause %.0f ms\n",
	       (unsigned long long)done, (unsigned long long)arrived,
	       (unsigned long long)bytes >> 20, longest * 1000);
	fflush(stdout);
}

static volatile bool fatal;	/* the device has said that it is gone */

/* Who fails and not for want of an answer has lost the device, and is told so about then. */
static void hear_of_it(void)
{
	struct timespec moment = { .tv_nsec = 10 * 1000 * 1000 };

	for (int i = 0; i < 500 && !fatal; i++)
		nanosleep(&moment, NULL);
}

static void __attribute__((noreturn)) leave(int status, const char *fmt, ...)
{
	char why[200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	puts(why);
	if (status == 1 && !strstr(why, "retry counter"))
		hear_of_it();
	summary();
	_exit(status);
}

static void die(const char *what)
{
	fprintf(stderr, "flow: %s: %s\n", what, strerror(errno));
	exit(2);
}

/* --- what is in a unit: both ends can tell ---------------------------------- */

static uint32_t mix(uint32_t x)
{
	x = (x ^ x >> 16) * 0x7feb352d;
	x = (x ^ x >> 15) * 0x846ca68b;
	return x ^ x >> 16;
}

static uint32_t write_len(uint64_t number, uint32_t seed)
{
	return mix(number * 2 + seed) % (max_size + 1);
}

static uint32_t send_len(uint64_t number, uint32_t seed)
{
	return sizeof(struct note) + mix(number * 2 + 1 + seed) % (max_size + 1 - sizeof(struct note));
}

static void fill(void *to, uint32_t len, uint32_t seed)
{
	uint32_t *w = to, i;
	uint8_t *c = to;

	for (i = 0; i < len / 4; i++)
		w[i] = (seed + i) * 2654435761u;
	for (i *= 4; i < len; i++)
		c[i] = seed + i;
}

static void check(const void *at, uint32_t len, uint32_t seed, const char *what, uint64_t number)
{
	const uint32_t *w = at;
	const uint8_t *c = at;
	uint32_t i;

	for (i = 0; i < len / 4; i++)
		if (w[i] != (seed + i) * 2654435761u)
			leave(3, "wrong: %s of unit %llu, word at %u of %u is %08x", what,
			      (unsigned long long)number, i * 4, len, w[i]);
	for (i *= 4; i < len; i++)
		if (c[i] != (uint8_t)(seed + i))
			leave(3, "wrong: %s of unit %llu, byte %u of %u is %02x", what,
			      (unsigned long long)number, i, len, c[i]);
}

/* --- work requests ------------------------------------------------------------- */

static struct ibv_sge sge(void *at, uint32_t len)
{
	return (struct ibv_sge) { (uintptr_t)at, len, mr->lkey };
}

static uint64_t id(uint64_t number, enum what what)
{
	return number << 3 | what;
}

static uint64_t theirs(size_t offset)
{
	return peer.addr + offset;
}

/* What has been polled, of which some is still to be looked at. */
static struct {
	struct ibv_wc wc[16];
	int n, at;
} polled;

static bool take_completions(void)
{
	polled.at = 0;
	polled.n = ibv_poll_cq(cq, 16, polled.wc);
	if (polled.n < 0)
		leave(1, "failed: poll_cq");
	return polled.n;
}

/* A post fails where the connection has: a completion tells why. */
static void __attribute__((noreturn)) cannot_post(const char *what, int err)
{
	double end = now() + 5;

	do {
		for (; polled.at < polled.n; polled.at++) {
			enum ibv_wc_status status = polled.wc[polled.at].status;

			if (status != IBV_WC_SUCCESS)
				leave(1, "failed: %s", ibv_wc_status_str(status));
		}
		take_completions();
	} while (now() < end);
	leave(1, "failed: %s: %s", what, strerror(err));
}

static void post(struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	int err = ibv_post_send(qp, wr, &bad);

	if (err)
		cannot_post("post_send", err);
}

static void post_recv(uint32_t i)
{
	struct ibv_sge sg = sge(mem->recv[i], MAX_SIZE);
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sg, .num_sge = 1 }, *bad;
	int err = ibv_post_recv(qp, &wr, &bad);

	if (err)
		cannot_post("post_recv", err);
}

static void post_unit(uint64_t n)
{
	uint32_t i = n % SLOTS, wlen = write_len(n, me.seed), slen = send_len(n, me.seed);
	struct note *note = (struct note *)mem->ssrc[i];
	struct ibv_sge sg[] = {
		sge(mem->wsrc[i], wlen), sge(note, slen), sge(&mem->added[i], 8),
		sge(&mem->seen[i], 8 + FIXED),
	};
	struct ibv_send_wr wr[4] = {};

	fill(mem->wsrc[i], wlen, n + me.seed);
	*note = (struct note) { n, wlen, slen };
	fill(note + 1, slen - sizeof(*note), n + me.seed);
	memset(&mem->seen[i], 0, sizeof(mem->seen[i]));
	for (int k = 0; k < 4; k++) {
		wr[k].wr_id = id(n, k);
		wr[k].sg_list = &sg[k];
		wr[k].num_sge = 1;
		wr[k].send_flags = IBV_SEND_SIGNALED;
		wr[k].next = k < 3 ? &wr[k + 1] : NULL;
	}
	wr[WRITTEN].opcode = IBV_WR_RDMA_WRITE;
	wr[WRITTEN].wr.rdma.remote_addr = theirs(offsetof(struct shared, slot) + i * MAX_SIZE);
	wr[WRITTEN].wr.rdma.rkey = peer.rkey;
	wr[SENT].opcode = IBV_WR_SEND;
	wr[ADDED].opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	wr[ADDED].wr.atomic.remote_addr = theirs(offsetof(struct shared, counter));
	wr[ADDED].wr.atomic.rkey = peer.rkey;
	wr[ADDED].wr.atomic.compare_add = 1;
	wr[SEEN].opcode = IBV_WR_RDMA_READ;
	wr[SEEN].wr.rdma.remote_addr = theirs(offsetof(struct shared, checked));
	wr[SEEN].wr.rdma.rkey = peer.rkey;
	post(wr);
	bytes += wlen + slen + FIXED;
}

/* Nothing may be sent until the peer has checked more: has it? */
static void post_look(void)
{
	struct ibv_sge sg = sge(&mem->seen[SLOTS], 8 + FIXED);
	struct ibv_send_wr wr = {
		.wr_id = id(0, LOOKED), .sg_list = &sg, .num_sge = 1,
		.opcode = IBV_WR_RDMA_READ, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { theirs(offsetof(struct shared, checked)), peer.rkey },
	};

	looking = true;
	post(&wr);
}

static void post_end(void)
{
	struct note *note = (struct note *)mem->ssrc[posted % SLOTS];
	struct ibv_sge sg = sge(note, sizeof(*note));
	struct ibv_send_wr wr = {
		.wr_id = id(0, ENDED), .sg_list = &sg, .num_sge = 1,
		.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
	};

	*note = (struct note) { END, posted, sizeof(*note) };
	end_posted = true;
	post(&wr);
}

/* --- completions ------------------------------------------------------------------- */

static void on_recv(const struct ibv_wc *wc)
{
	const struct note *note = (struct note *)mem->recv[wc->wr_id];
	uint64_t n = arrived;

	if (wc->byte_len < sizeof(*note) || wc->byte_len != note->slen)
		leave(3, "wrong: %u bytes arrived after unit %llu", wc->byte_len,
		      (unsigned long long)n);
	if (note->number == END) {
		if (note->wlen != (uint32_t)n)
			leave(3, "wrong: the peer sent %u units, %llu arrived", note->wlen,
			      (unsigned long long)n);
		if (__atomic_load_n(&mem->shared.counter, __ATOMIC_ACQUIRE) != n)
			leave(3, "wrong: %llu units, but the counter is %llu",
			      (unsigned long long)n, (unsigned long long)mem->shared.counter);
		end_arrived = true;
		stop = 1;
		return;
	}
	if (note->number != n)
		leave(3, "wrong: unit %llu arrived, should be %llu", (unsigned long long)note->number,
		      (unsigned long long)n);
	if (note->wlen != write_len(n, peer.seed) || note->slen != send_len(n, peer.seed))
		leave(3, "wrong: lengths of unit %llu", (unsigned long long)n);
	check(note + 1, note->slen - sizeof(*note), n + peer.seed, "SEND", n);
	check(mem->shared.slot[n % SLOTS], note->wlen, n + peer.seed, "WRITE", n);
	arrived++;
	post_recv(wc->wr_id);
	__atomic_store_n(&mem->shared.checked, arrived, __ATOMIC_RELEASE);
}

static void on_seen(uint32_t i, uint64_t n)
{
	check(mem->seen[i].fixed, FIXED, peer.seed, "READ", n);
	if (mem->seen[i].checked > posted || mem->seen[i].checked < peer_checked)
		leave(3, "wrong: %llu units checked, of %llu", (unsigned long long)mem->seen[i].checked,
		      (unsigned long long)posted);
	peer_checked = mem->seen[i].checked;
}

static void on_wc(const struct ibv_wc *wc)
{
	uint64_t n = wc->wr_id >> 3;

	if (wc->status != IBV_WC_SUCCESS)
		leave(1, "failed: %s", ibv_wc_status_str(wc->status));
	if (wc->opcode & IBV_WC_RECV) {
		on_recv(wc);
		return;
	}
	switch ((enum what)(wc->wr_id & 7)) {
	case ADDED:
		if (mem->added[n % SLOTS] != n)
			leave(3, "wrong: the counter was %llu at unit %llu",
			      (unsigned long long)mem->added[n % SLOTS], (unsigned long long)n);
		break;
	case SEEN:
		if (n != done)
			leave(3, "wrong: unit %llu is done before unit %llu",
			      (unsigned long long)n, (unsigned long long)done);
		on_seen(n % SLOTS, n);
		done++;
		break;
	case LOOKED:
		on_seen(SLOTS, posted);
		looking = false;
		break;
	case ENDED:
		end_done = true;
		break;
	case WRITTEN:
	case SENT:
		break;
	}
}

static void run(void)
{
	double begin = now(), last = begin, shown = begin, t;
	uint64_t before = 0;
	bool any;

	while (!end_done || !end_arrived) {
		any = take_completions();
		for (; polled.at < polled.n; polled.at++)
			on_wc(&polled.wc[polled.at]);
		t = now();
		if (done != before || end_posted) {
			if (!end_posted && t - last > longest)
				longest = t - last;
			before = done;
			last = t;
		}
		if (t - shown > 0.2) {
			printf("at %llu\n", (unsigned long long)done);
			fflush(stdout);
			shown = t;
		}
		if (stop && !end_posted && done == posted && !looking && peer_checked == posted)
			post_end();
		else if (!stop && posted < peer_checked + SLOTS && posted < done + SLOTS &&
			 (!rate || posted < (t - begin) * rate + 1))
			post_unit(posted++);
		else if (!end_posted && done == posted && !looking && peer_checked < posted)
			post_look();
		else if (!any && sched_yield())
			leave(1, "failed: sched_yield");
	}
}

/* --- set-up ---------------------------------------------------------------------------- */

static void *listen_to_events(void *unused)
{
	struct ibv_async_event ev;

	while (!ibv_get_async_event(ctx, &ev)) {
		printf("event: %s\n", ibv_event_type_str(ev.event_type));
		fflush(stdout);
		fatal = fatal || ev.event_type == IBV_EVENT_DEVICE_FATAL;
		ibv_ack_async_event(&ev);
	}
	return NULL;
}

static void on_term(int sig)
{
	stop = 1;
}

static void open_all(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .cap = { 4 * SLOTS + 2, 2 * SLOTS, 1, 1, 0 },
	};

	for (int i = 0; list && list[i]; i++)
		if (name && !strcmp(name, ibv_get_device_name(list[i])))
			ctx = ibv_open_device(list[i]);
	if (!ctx)
		die("cannot open the device");
	pd = ibv_alloc_pd(ctx);
	cq = ibv_create_cq(ctx, 8 * SLOTS, NULL, NULL, 0);
	if (posix_memalign((void **)&mem, 4096, sizeof(*mem)))
		die("memory");
	memset(mem, 0, sizeof(*mem));
	mr = ibv_reg_mr(pd, mem, sizeof(*mem), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	init.send_cq = init.recv_cq = cq;
	qp = pd && cq ? ibv_create_qp(pd, &init) : NULL;
	if (!mr || !qp)
		die("PD, CQ, MR or QP");
	srand48(time(NULL) ^ getpid());
	me = (struct end) { qp->qp_num, lrand48() & 0xffffff, mr->rkey, lrand48(), (uintptr_t)&mem->shared };
	if (ibv_query_gid(ctx, 1, gid_index, &me.gid))
		die("query_gid");
	fill(mem->shared.fixed, FIXED, me.seed);
}

static void meet(const char *host, const char *port)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE }, *ai;
	int one = 1, s;

	if (getaddrinfo(host, port, &hints, &ai))
		die("address");
	/* without a host: the first, 0.0.0.0, unless there is IPv6, whose :: takes both */
	if (!host && ai->ai_next && ai->ai_next->ai_family == AF_INET6)
		ai = ai->ai_next;
	s = socket(ai->ai_family, SOCK_STREAM, 0);
	if (s < 0)
		die("socket");
	if (host) {
		if (connect(s, ai->ai_addr, ai->ai_addrlen))
			die("connect");
		sock = s;
	} else {
		setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		if (bind(s, ai->ai_addr, ai->ai_addrlen) || listen(s, 1))
			die("listen");
		sock = accept(s, NULL, NULL);
		close(s);
	}
	setsockopt(sock, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

static void swap(void)
{
	if (send(sock, &me, sizeof(me), MSG_NOSIGNAL) != sizeof(me) ||
	    recv(sock, &peer, sizeof(peer), MSG_WAITALL) != sizeof(peer))
		die("lost the other end");
}

/* The last acknowledgment may be lost: stay until the peer has it, if it tells. */
static void part(void)
{
	struct pollfd p = { .fd = sock, .events = POLLIN };
	char c = 0;

	if (send(sock, &c, 1, MSG_NOSIGNAL) == 1)
		poll(&p, 1, 10000);
}

static void connect_qp(void)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT, .port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
		.path_mtu = mtu == 256 ? IBV_MTU_256 : mtu == 512 ? IBV_MTU_512 : mtu == 1024 ? IBV_MTU_1024 :
			    mtu == 2048 ? IBV_MTU_2048 : IBV_MTU_4096,
		.dest_qp_num = peer.qpn, .rq_psn = peer.psn, .max_dest_rd_atomic = 4, .min_rnr_timer = 12,
		.timeout = timeout, .retry_cnt = retries, .rnr_retry = 7, .sq_psn = me.psn, .max_rd_atomic = 4,
		.ah_attr = { .is_global = 1, .port_num = 1,
			.grh = { .dgid = peer.gid, .sgid_index = gid_index, .hop_limit = 64 } },
	};

	errno = ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	if (errno)
		die("to INIT");
	for (uint32_t i = 0; i < 2 * SLOTS; i++)
		post_recv(i);
	a.qp_state = IBV_QPS_RTR;
	errno = ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			      IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	if (errno)
		die("to RTR");
	a.qp_state = IBV_QPS_RTS;
	errno = ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			      IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
	if (errno)
		die("to RTS");
}

int main(int argc, char **argv)
{
	struct sigaction sa = { .sa_handler = on_term };
	const char *dev = NULL, *port = "18516";
	struct end first;
	pthread_t thread;
	int c;

	while ((c = getopt(argc, argv, "d:g:p:m:T:r:s:u:")) != -1)
		switch (c) {
		case 'd': dev = optarg; break;
		case 'g': gid_index = atoi(optarg); break;
		case 'p': port = optarg; break;
		case 'm': mtu = atoi(optarg); break;
		case 'T': timeout = atoi(optarg); break;
		case 'r': retries = atoi(optarg); break;
		case 's': max_size = atoi(optarg); break;
		case 'u': rate = atoi(optarg); break;
		default: return 2;
		}
	if (max_size < sizeof(struct note) || max_size > MAX_SIZE)
		return 2;
	open_all(dev);
	meet(argv[optind], port);
	swap();
	connect_qp();
	/* nobody sends before both can receive */
	first = peer;
	swap();
	if (memcmp(&first, &peer, sizeof(peer)))
		die("out of step");
	sigaction(SIGTERM, &sa, NULL);
	if (pthread_create(&thread, NULL, listen_to_events, NULL))
		die("thread");
	run();
	part();
	summary();
	return 0;
}
