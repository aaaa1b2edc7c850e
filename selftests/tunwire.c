// SPDX-License-Identifier: GPL-2.0
/*
 * A cable between two tun or tap devices, one in each of two network namespaces.
 *
 *	tunwire tun|tap NAMESPACE DEVICE NAMESPACE DEVICE
 *
 * The devices live as long as the program.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static void die(const char *what)
{
	fprintf(stderr, "tunwire: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int open_end(const char *kind, const char *ns, const char *dev)
{
	struct ifreq ifr = { .ifr_flags = IFF_NO_PI };
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "/run/netns/%s", ns);
	fd = open(path, O_RDONLY);
	if (fd < 0 || setns(fd, CLONE_NEWNET))
		die(path);
	close(fd);
	ifr.ifr_flags |= strcmp(kind, "tap") ? IFF_TUN : IFF_TAP;
	strncpy(ifr.ifr_name, dev, IFNAMSIZ - 1);
	fd = open("/dev/net/tun", O_RDWR);
	if (fd < 0 || ioctl(fd, TUNSETIFF, &ifr))
		die(dev);
	return fd;
}

int main(int argc, char **argv)
{
	static char buf[1 << 16];
	struct pollfd p[2];

	if (argc != 6)
		return 2;
	for (int i = 0; i < 2; i++)
		p[i] = (struct pollfd) { open_end(argv[1], argv[2 + 2 * i], argv[3 + 2 * i]), POLLIN };
	for (;;) {
		if (poll(p, 2, -1) < 0)
			die("poll");
		for (int i = 0; i < 2; i++) {
			ssize_t n = p[i].revents & POLLIN ? read(p[i].fd, buf, sizeof(buf)) : 0;

			/* what does not fit, or finds the device down, is lost */
			if (n > 0 && write(p[!i].fd, buf, n) < 0 && errno == EBADFD)
				die("write");
		}
	}
}
