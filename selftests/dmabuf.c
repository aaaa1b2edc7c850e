// SPDX-License-Identifier: GPL-2.0
/*
 * dmabuf.c - regions in buffers of another driver's: what is written there is what
 * its other users see, and the reverse; what must be refused; who goes first
 *
 *	dmabuf DEV-A GID-INDEX-A DEV-B GID-INDEX-B udmabuf|vgem|moves-pin|moves-attach
 *
 * b's memory is the buffer, a's is memory of this process.
 */
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <linux/types.h>
#include <linux/udmabuf.h>

#include "pair.h"

#define LEN	(256 * KB)
#define IOVA	0x700000000000ul

/* What vgem is told, which no header says that linux-libc-dev has. */
struct drm_version {
	int major, minor, patch;
	size_t name_len;
	char *name;
	size_t date_len;
	char *date;
	size_t desc_len;
	char *desc;
};
struct drm_gem_close {
	__u32 handle, pad;
};
struct drm_prime_handle {
	__u32 handle, flags;
	__s32 fd;
};
struct drm_mode_create_dumb {
	__u32 height, width, bpp, flags, handle, pitch;
	__u64 size;
};
#define DRM_IOCTL_VERSION		_IOWR('d', 0x00, struct drm_version)
#define DRM_IOCTL_GEM_CLOSE		_IOW('d', 0x09, struct drm_gem_close)
#define DRM_IOCTL_PRIME_HANDLE_TO_FD	_IOWR('d', 0x2d, struct drm_prime_handle)
#define DRM_IOCTL_MODE_CREATE_DUMB	_IOWR('d', 0xb2, struct drm_mode_create_dumb)
#define ROVE_MOVES_PIN			_IO('R', 1)	/* kmod/rove_moves.c */
#define ROVE_MOVES_ATTACH		_IO('R', 2)
#define DRM_CLOEXEC			O_CLOEXEC
#define DRM_RDWR			O_RDWR

static const char *exporter;
static int dev = -1;

static char *near;
static struct ibv_mr *src;	/* of a over near */

/* --- exporters -------------------------------------------------------------------- */

static int udmabuf(size_t len)
{
	int fd = memfd_create("dmabuf", MFD_ALLOW_SEALING);
	struct udmabuf_create c = { .memfd = fd, .flags = UDMABUF_FLAGS_CLOEXEC, .size = len };
	int buf;

	if (fd < 0 || ftruncate(fd, len) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK))
		die("memfd");
	buf = ioctl(dev, UDMABUF_CREATE, &c);
	close(fd);
	return buf;
}

static int vgem(size_t len, uint32_t flags)
{
	struct drm_mode_create_dumb c = { .height = len / 4096, .width = 1024, .bpp = 32 };
	struct drm_prime_handle p = { .flags = flags };
	struct drm_gem_close g = {};

	if (ioctl(dev, DRM_IOCTL_MODE_CREATE_DUMB, &c))
		die("CREATE_DUMB");
	p.handle = g.handle = c.handle;
	if (ioctl(dev, DRM_IOCTL_PRIME_HANDLE_TO_FD, &p))
		die("PRIME_HANDLE_TO_FD");
	/* the buffer holds the memory by itself */
	ioctl(dev, DRM_IOCTL_GEM_CLOSE, &g);
	return p.fd;
}

static bool is_vgem(int fd)
{
	char name[16] = "";
	struct drm_version v = { .name = name, .name_len = sizeof(name) - 1 };

	return !ioctl(fd, DRM_IOCTL_VERSION, &v) && !strcmp(name, "vgem");
}

static void exporter_open(void)
{
	char path[32];
	int i;

	dev = -1;
	if (!strcmp(exporter, "udmabuf")) {
		dev = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
	} else if (!strncmp(exporter, "moves", 5)) {
		dev = open("/dev/rove_moves", O_RDWR | O_CLOEXEC);
	} else {
		for (i = 0; i < 16 && dev < 0; i++) {
			snprintf(path, sizeof(path), "/dev/dri/card%d", i);
			dev = open(path, O_RDWR | O_CLOEXEC);
			if (dev >= 0 && !is_vgem(dev)) {
				close(dev);
				dev = -1;
			}
		}
	}
	if (dev < 0)
		die(exporter);
}

/* A buffer of @len bytes: its file descriptor. */
static int export(size_t len)
{
	int fd;

	if (!strcmp(exporter, "udmabuf"))
		fd = udmabuf(len);
	else if (!strcmp(exporter, "vgem"))
		fd = vgem(len, DRM_RDWR | DRM_CLOEXEC);
	else
		fd = ioctl(dev, strcmp(exporter, "moves-pin") ? ROVE_MOVES_ATTACH :
							       ROVE_MOVES_PIN, len);
	if (fd < 0)
		die("no buffer");
	return fd;
}

/* How its other users see it. */
static char *map(int fd, size_t len)
{
	char *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		die("mmap of the buffer");
	return p;
}

/* How many there are in the kernel; -1: it does not tell. */
static int buffers(void)
{
	FILE *f = fopen("/sys/kernel/debug/dma_buf/bufinfo", "r");
	int n = -1, bytes;
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Total %d objects, %d bytes", &n, &bytes) == 2)
			break;
	if (f)
		fclose(f);
	return n;
}

/* Closing is deferred: until there are no more than @n. */
static bool back_to(int n)
{
	int i;

	for (i = 0; i < 200 && buffers() > n; i++)
		usleep(10000);
	return buffers() == n;
}

static int use(enum ibv_wr_opcode op, uint64_t addr, uint32_t len, uint32_t key)
{
	return rdma(&a, a.qp, op, near, len, src->lkey, addr, key);
}

/* --- tests ------------------------------------------------------------------------ */

/* WRITE is seen by the buffer's other users, and READ sees what they wrote. */
static void t_data(void)
{
	static const struct { uint64_t off; uint32_t len; } part[] = {
		{ 0, LEN }, { 0, 1 }, { LEN - 1, 1 }, { 4095, 2 }, { 12345, 200001 },
	};
	int fd = export(LEN);
	struct ibv_mr *m = ibv_reg_dmabuf_mr(b.pd, 0, LEN, IOVA, fd, ALL);
	char *p = map(fd, LEN);		/* which moves it, if nobody has it pinned */
	unsigned int i;

	CHECK(m);
	for (i = 0; i < sizeof(part) / sizeof(part[0]); i++) {
		char *there = p + part[i].off;

		scramble(near, part[i].len);
		CHECK(!use(IBV_WR_RDMA_WRITE, IOVA + part[i].off, part[i].len, m->rkey));
		CHECK(!memcmp(near, there, part[i].len));
		scramble(there, part[i].len);
		CHECK(!use(IBV_WR_RDMA_READ, IOVA + part[i].off, part[i].len, m->rkey));
		CHECK(!memcmp(near, there, part[i].len));
	}
	CHECK(!ibv_dereg_mr(m));
	munmap(p, LEN);
	close(fd);
}

/* Received into, and sent from; by the local key. */
static void t_messages(void)
{
	int fd = export(LEN);
	char *p = map(fd, LEN);
	struct ibv_mr *m = ibv_reg_dmabuf_mr(b.pd, 0, LEN, IOVA, fd, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge sge = { IOVA + 100, 100000, m ? m->lkey : 0 };
	struct ibv_recv_wr rwr = { .sg_list = &sge, .num_sge = 1 }, *rbad;
	struct ibv_send_wr swr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
				   .send_flags = IBV_SEND_SIGNALED }, *sbad;
	struct ibv_wc wc;

	CHECK(m && !ibv_post_recv(b.qp, &rwr, &rbad));
	scramble(near, 100000);
	CHECK(!use(IBV_WR_SEND, 0, 100000, 0));
	CHECK(!done(b.cq, &wc) && wc.byte_len == 100000);
	CHECK(!memcmp(near, p + 100, 100000));

	scramble(p, LEN);
	CHECK(!post_recv(&a, near, 100000, src->lkey));
	CHECK(!ibv_post_send(b.qp, &swr, &sbad));
	CHECK(!done(a.cq, &wc) && wc.byte_len == 100000);
	CHECK(!memcmp(near, p + 100, 100000));
	CHECK(!ibv_dereg_mr(m));
	munmap(p, LEN);
	close(fd);
}

static void t_atomics(void)
{
	int fd = export(LEN), i;
	char *p = map(fd, LEN);
	struct ibv_mr *m = ibv_reg_dmabuf_mr(b.pd, 0, LEN, IOVA, fd, ALL);
	uint64_t *word = (uint64_t *)(p + 4096);

	CHECK(m);
	*word = 7;
	for (i = 0; i < 10; i++) {
		CHECK(!use(IBV_WR_ATOMIC_FETCH_AND_ADD, IOVA + 4096, 8, m->rkey));
		CHECK(*(uint64_t *)near == 7u + i && *word == 8u + i);
	}
	CHECK(!ibv_dereg_mr(m));
	munmap(p, LEN);
	close(fd);
}

/* A region in the middle of a buffer ends where it ends. */
static void t_bounds(void)
{
	static const struct { int64_t off; uint32_t len; } bad[] = {
		{ -1, 1 }, { -4096, 8192 }, { 10000, 1 }, { 9999, 2 }, { 0, 10001 },
	};
	int fd = export(LEN);
	char *p = map(fd, LEN), *all = malloc(LEN);
	uint64_t at = IOVA + 0x123;
	struct ibv_mr *m = ibv_reg_dmabuf_mr(b.pd, 0x5123, 10000, at, fd, ALL);
	unsigned int i;

	CHECK(m && m->length == 10000);
	scramble(near, 10000);
	CHECK(!use(IBV_WR_RDMA_WRITE, at, 10000, m->rkey));
	CHECK(!memcmp(near, p + 0x5123, 10000));
	memcpy(all, p, LEN);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		pair_close();
		pair_open();
		CHECK(use(IBV_WR_RDMA_WRITE, at + bad[i].off, bad[i].len, m->rkey) ==
		      IBV_WC_REM_ACCESS_ERR);
		pair_close();
		pair_open();
		CHECK(use(IBV_WR_RDMA_READ, at + bad[i].off, bad[i].len, m->rkey) ==
		      IBV_WC_REM_ACCESS_ERR);
	}
	CHECK(!memcmp(all, p, LEN));
	CHECK(!ibv_dereg_mr(m));
	free(all);
	munmap(p, LEN);
	close(fd);
}

static void t_rights(void)
{
	int fd = export(LEN);
	struct ibv_mr *m = ibv_reg_dmabuf_mr(b.pd, 0, LEN, IOVA, fd, IBV_ACCESS_REMOTE_READ);

	CHECK(m && !use(IBV_WR_RDMA_READ, IOVA, LEN, m->rkey));
	CHECK(use(IBV_WR_RDMA_WRITE, IOVA, 8, m->rkey) == IBV_WC_REM_ACCESS_ERR);
	CHECK(!ibv_dereg_mr(m));
	close(fd);
}

static void t_refused(void)
{
	int n = buffers(), fd = export(LEN), plain = memfd_create("plain", 0);
	struct ibv_mr *m;

	CHECK(!ftruncate(plain, LEN));
	FAILS(ibv_reg_dmabuf_mr(b.pd, 0, LEN + 1, IOVA, fd, ALL), EINVAL);
	FAILS(ibv_reg_dmabuf_mr(b.pd, LEN, 1, IOVA, fd, ALL), EINVAL);
	FAILS(ibv_reg_dmabuf_mr(b.pd, 4096, LEN, IOVA, fd, ALL), EINVAL);
	FAILS(ibv_reg_dmabuf_mr(b.pd, -4096ul, 8192, IOVA, fd, ALL), EINVAL);
	FAILS(ibv_reg_dmabuf_mr(b.pd, 4096, -4096ul, IOVA, fd, ALL), EINVAL);
	FAILS(ibv_reg_dmabuf_mr(b.pd, 0, 0, IOVA, fd, ALL), EINVAL);
	FAILS(ibv_reg_dmabuf_mr(b.pd, 0, LEN, -4096ul, fd, ALL), EINVAL);
	FAILS(ibv_reg_dmabuf_mr(b.pd, 0, LEN, IOVA + 1, fd, ALL), EINVAL);
	FAILS(ibv_reg_dmabuf_mr(b.pd, 0, LEN, IOVA, fd, IBV_ACCESS_REMOTE_WRITE), EINVAL);
	FAILS(ibv_reg_dmabuf_mr(b.pd, 0, LEN, IOVA, fd, ALL | IBV_ACCESS_ON_DEMAND), EINVAL);
	FAILS(ibv_reg_dmabuf_mr(b.pd, 0, LEN, IOVA, plain, ALL), EINVAL);
	FAILS(ibv_reg_dmabuf_mr(b.pd, 0, LEN, IOVA, 9999, ALL), EBADF);
	FAILS(ibv_reg_dmabuf_mr(b.pd, 0, LEN, IOVA, -1, ALL), EBADF);
	/* told again by an address it cannot be: it has none */
	m = ibv_reg_dmabuf_mr(b.pd, 0, LEN, IOVA, fd, ALL);
	CHECK(m && ibv_rereg_mr(m, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, near, LEN, 0));
	CHECK(!use(IBV_WR_RDMA_WRITE, IOVA, LEN, m->rkey));
	CHECK(!ibv_dereg_mr(m));
	close(plain);
	close(fd);
	CHECK(back_to(n));
}

/* Who may only read the buffer cannot have the peer write to it. */
static void t_read_only(void)
{
	int fd = vgem(LEN, DRM_CLOEXEC);
	struct ibv_mr *m;

	CHECK(mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
	FAILS(ibv_reg_dmabuf_mr(b.pd, 0, LEN, IOVA, fd, ALL), EACCES);
	FAILS(ibv_reg_dmabuf_mr(b.pd, 0, LEN, IOVA, fd, IBV_ACCESS_LOCAL_WRITE), EACCES);
	m = ibv_reg_dmabuf_mr(b.pd, 0, LEN, IOVA, fd, IBV_ACCESS_REMOTE_READ);
	CHECK(m && !use(IBV_WR_RDMA_READ, IOVA, LEN, m->rkey));
	CHECK(!ibv_dereg_mr(m));
	close(fd);
}

/* Everybody else has let go of the buffer: the region still has its memory. */
static void t_exporter_gone(void)
{
	int n = buffers(), fd = export(LEN), other;
	char *p = map(fd, LEN), *copy = malloc(LEN);
	struct ibv_mr *m = ibv_reg_dmabuf_mr(b.pd, 0, LEN, IOVA, fd, ALL);

	CHECK(m);
	scramble(p, LEN);
	memcpy(copy, p, LEN);
	munmap(p, LEN);
	close(fd);
	close(dev);
	exporter_open();
	/* whoever is given memory now does not get this */
	other = export(LEN);
	p = map(other, LEN);
	memset(p, 0xff, LEN);
	CHECK(!use(IBV_WR_RDMA_READ, IOVA, LEN, m->rkey) && !memcmp(near, copy, LEN));
	scramble(near, LEN);
	memcpy(copy, near, LEN);
	CHECK(!use(IBV_WR_RDMA_WRITE, IOVA, LEN, m->rkey));
	memset(near, 0, LEN);
	CHECK(!use(IBV_WR_RDMA_READ, IOVA, LEN, m->rkey) && !memcmp(near, copy, LEN));
	CHECK(!ibv_dereg_mr(m));
	CHECK(use(IBV_WR_RDMA_READ, IOVA, LEN, m->rkey) == IBV_WC_REM_ACCESS_ERR);
	munmap(p, LEN);
	close(other);
	free(copy);
	CHECK(back_to(n));
}

/* One buffer, many regions: each has its own life. */
static void t_many(void)
{
	int n = buffers(), fd = export(LEN), i;
	char *p = map(fd, LEN);
	struct ibv_mr *m[64];

	for (i = 0; i < 64; i++) {
		m[i] = ibv_reg_dmabuf_mr(b.pd, i * 4096, 4096, IOVA, fd, ALL);
		CHECK(m[i]);
	}
	for (i = 0; i < 64; i++) {
		scramble(near, 4096);
		CHECK(!use(IBV_WR_RDMA_WRITE, IOVA, 4096, m[i]->rkey));
		CHECK(!memcmp(near, p + i * 4096, 4096));
		CHECK(!ibv_dereg_mr(m[i]));
	}
	munmap(p, LEN);
	close(fd);
	CHECK(back_to(n));
}

/* A program that ends with such regions. */
static void t_killed(void)
{
	int n = buffers(), status;
	pid_t pid = fork();

	if (!pid) {
		execl("/proc/self/exe", "dmabuf", "leave",
		      ibv_get_device_name(a.ctx->device), exporter, NULL);
		_exit(127);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
	CHECK(back_to(n));
}

static int leave(const char *name)
{
	struct ibv_context *ctx = open_device(name);
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	int i;

	exporter_open();
	for (i = 0; i < 10; i++)
		if (!ibv_reg_dmabuf_mr(pd, 0, LEN, IOVA, export(LEN), ALL))
			return 4;
	_exit(0);
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "leave")) {
		exporter = argv[3];
		return leave(argv[2]);
	}
	if (argc != 6)
		return 2;
	end_open(&a, argv[1], argv[2]);
	end_open(&b, argv[3], argv[4]);
	exporter = argv[5];
	exporter_open();
	near = aligned_alloc(4096, LEN);
	src = ibv_reg_mr(a.pd, near, LEN, ALL);
	if (!src)
		die("reg_mr");
	if (buffers() < 0)
		printf("# this kernel does not tell how many buffers there are\n");

	run("WRITE and READ meet the buffer's other users", t_data);
	run("SEND from a buffer, and into one", t_messages);
	run("atomics", t_atomics);
	run("a region in the middle of a buffer, and what is beyond", t_bounds);
	run("a region has its own rights", t_rights);
	run("what cannot be registered", t_refused);
	if (!strcmp(exporter, "vgem"))
		run("a buffer that may only be read", t_read_only);
	run("everybody else has closed the buffer", t_exporter_gone);
	run("64 regions of one buffer", t_many);
	run("a program that leaves such regions behind", t_killed);
	printf("1..%d\n", count);
	return failed != 0;
}
