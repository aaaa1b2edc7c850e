// SPDX-License-Identifier: GPL-2.0
/*
 * smc_socket.c - LD_PRELOAD: a program's TCP sockets become SMC sockets, as
 * smc_run of the smc-tools (which not every distribution has) does it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netinet/in.h>
#include <sys/socket.h>

#ifndef AF_SMC
#define AF_SMC 43
#endif

int socket(int domain, int type, int protocol)
{
	static int (*next)(int, int, int);

	if (!next)
		next = dlsym(RTLD_NEXT, "socket");
	if ((domain == AF_INET || domain == AF_INET6) &&
	    (type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK)) == SOCK_STREAM &&
	    (protocol == 0 || protocol == IPPROTO_TCP))
		return next(AF_SMC, type, domain == AF_INET6);
	return next(domain, type, protocol);
}
