// SPDX-License-Identifier: GPL-2.0
/*
 * Commands of one test guest that run in another, over TCP.
 *
 *	far ADDRESS PORT			the server: serves until it is killed
 *	far ADDRESS PORT COMMAND ARGUMENT...	runs the command there
 *
 * Output comes back as it is made, the exit status at the end; a client that
 * is killed takes its command along.  Whoever reaches the port is root here: for
 * guests that live as long as a test only.
 *
 * The client sends a number, then as many words with their lengths, the first
 * being the directory.  The server sends pieces: a descriptor (1, 2), a length, the bytes; at
 * last 0 and the exit status.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS 1024

static void die(const char *what)
{
	fprintf(stderr, "far: %s: %s\n", what, strerror(errno));
	exit(125);
}

static void put(int s, const void *p, size_t n)
{
	for (ssize_t k; n; n -= k, p += k) {
		k = send(s, p, n, MSG_NOSIGNAL);
		if (k <= 0)
			die("lost the other end");
	}
}

static void get(int s, void *p, size_t n)
{
	if (n && recv(s, p, n, MSG_WAITALL) != (ssize_t)n)
		die("lost the other end");
}

static void put_u32(int s, uint32_t n)
{
	put(s, &n, sizeof(n));
}

static uint32_t get_u32(int s)
{
	uint32_t n;

	get(s, &n, sizeof(n));
	return n;
}

static void put_word(int s, const char *w)
{
	put_u32(s, strlen(w));
	put(s, w, strlen(w));
}

static char *get_word(int s)
{
	uint32_t n = get_u32(s);
	char *w = malloc(n + 1ul);

	if (!w)
		die("memory");
	get(s, w, n);
	w[n] = 0;
	return w;
}

/* --- the client --------------------------------------------------------------- */

static int ask(int s, char **argv, int argc)
{
	char buf[65536], *cwd = getcwd(NULL, 0);

	put_u32(s, argc + 1);
	put_word(s, cwd ?: "/");
	for (int i = 0; i < argc; i++)
		put_word(s, argv[i]);
	for (;;) {
		uint32_t fd = get_u32(s), n = get_u32(s);

		if (!fd)
			return n;
		if (n > sizeof(buf))
			die("nonsense");
		get(s, buf, n);
		for (uint32_t done = 0; done < n;) {
			ssize_t k = write(fd, buf + done, n - done);

			if (k <= 0)
				break;
			done += k;
		}
	}
}

/* --- the server, a process for each command ---------------------------------------- */

static pid_t start(int s, int out, int err)
{
	uint32_t n = get_u32(s);
	char *word[WORDS + 1] = {};
	pid_t pid;

	if (n < 2 || n > WORDS)
		die("nonsense");
	for (uint32_t i = 0; i < n; i++)
		word[i] = get_word(s);
	pid = fork();
	if (pid)
		return pid;
	setpgid(0, 0);
	dup2(out, 1);
	dup2(err, 2);
	if (chdir(word[0]))
		die(word[0]);
	execvp(word[1], word + 1);
	fprintf(stderr, "far: %s: %s\n", word[1], strerror(errno));
	_exit(127);
}

/* Hands on what @from has.  0 when it has come to its end. */
static int hand_on(int s, int from, uint32_t as)
{
	char buf[65536];
	ssize_t n = read(from, buf, sizeof(buf));

	if (n <= 0)
		return 0;
	put_u32(s, as);
	put_u32(s, n);
	put(s, buf, n);
	return 1;
}

static void serve(int s)
{
	int out[2], err[2], status = 0;
	struct pollfd p[3];
	pid_t pid;

	if (pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC))
		die("pipe");
	pid = start(s, out[1], err[1]);
	close(out[1]);
	close(err[1]);
	p[0] = (struct pollfd) { .fd = s, .events = POLLIN };
	p[1] = (struct pollfd) { .fd = out[0], .events = POLLIN };
	p[2] = (struct pollfd) { .fd = err[0], .events = POLLIN };
	while (p[1].fd >= 0 || p[2].fd >= 0) {
		/* what it left behind may hold the pipes: it is over when it has ended */
		int over = waitpid(pid, &status, WNOHANG) == pid;

		poll(p, 3, over ? 0 : 100);
		if (p[0].revents) {	/* the client has nothing more to say: it is gone */
			kill(-pid, SIGTERM);
			sleep(2);
			kill(-pid, SIGKILL);
			exit(0);
		}
		for (int i = 1; i < 3; i++)
			if (p[i].revents && !hand_on(s, p[i].fd, i))
				p[i].fd = -1;
		if (over && !p[1].revents && !p[2].revents)
			goto ended;
	}
	waitpid(pid, &status, 0);
ended:
	put_u32(s, 0);
	put_u32(s, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	exit(0);
}

int main(int argc, char **argv)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *ai;
	int s, one = 1;

	if (argc < 3 || getaddrinfo(argv[1], argv[2], &hints, &ai))
		return 125;
	s = socket(ai->ai_family, SOCK_STREAM, 0);
	if (argc > 3) {
		if (connect(s, ai->ai_addr, ai->ai_addrlen))
			die("connect");
		setsockopt(s, SOL_TCP, TCP_NODELAY, &one, sizeof(one));
		return ask(s, argv + 3, argc - 3);
	}
	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(s, ai->ai_addr, ai->ai_addrlen) || listen(s, 64))
		die("listen");
	signal(SIGCHLD, SIG_IGN);
	for (;;) {
		int c = accept4(s, NULL, NULL, SOCK_CLOEXEC);

		if (c < 0)
			continue;
		if (!fork()) {
			close(s);
			setsockopt(c, SOL_TCP, TCP_NODELAY, &one, sizeof(one));
			signal(SIGCHLD, SIG_DFL);
			serve(c);
		}
		close(c);
	}
}
