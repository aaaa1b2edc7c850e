// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * driver.c - runs a fuzz target without libFuzzer
 *
 *	NAME [-s SECONDS] [-r SEED] FILE|FOLDER...
 *
 * All files first, then changes of them that chance makes, for so many seconds.  What
 * crashes is left in the file  NAME.crash.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MAX_LEN		4096
#define MAX_FILES	16384

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static struct { uint8_t *data; size_t len; } input[MAX_FILES];
static unsigned int inputs;
static uint64_t seed = 1;
static char crash[512];

static uint64_t rnd(void)
{
	uint64_t z = seed += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	return z ^ z >> 31;
}

static void read_file(const char *path)
{
	FILE *f = fopen(path, "r");

	if (!f || inputs == MAX_FILES)
		return;
	input[inputs].data = malloc(MAX_LEN);
	input[inputs].len = fread(input[inputs].data, 1, MAX_LEN, f);
	inputs++;
	fclose(f);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static void read_path(const char *path)
{
	struct dirent **list;
	int i, n = scandir(path, &list, NULL, by_name);
	char name[4096];

	if (n < 0)
		read_file(path);
	for (i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "%s/%s", path, list[i]->d_name);
		if (list[i]->d_name[0] != '.')
			read_file(name);
		free(list[i]);
	}
	if (n >= 0)
		free(list);
}

/* Kept before it is tried: whatever ends the program, it is there. */
static void try(const uint8_t *data, size_t len)
{
	static int fd = -1;

	if (fd < 0)
		fd = open(crash, O_RDWR | O_CREAT | O_TRUNC, 0644);
	if (fd < 0 || pwrite(fd, data, len, 0) != (ssize_t)len || ftruncate(fd, len))
		exit(2);
	LLVMFuzzerTestOneInput(data, len);
}

static void mutate(void)
{
	static uint8_t buf[MAX_LEN];
	unsigned int pick = rnd() % inputs, n = 1 + rnd() % 8;
	size_t len = input[pick].len, at, k;

	memcpy(buf, input[pick].data, len);
	while (n--) {
		at = len ? rnd() % len : 0;
		switch (rnd() % 5) {
		case 0:		/* a byte */
			if (len)
				buf[at] = rnd();
			break;
		case 1:		/* a bit */
			if (len)
				buf[at] ^= 1 << rnd() % 8;
			break;
		case 2:		/* cut */
			len = at;
			break;
		case 3:		/* go on at random */
			for (k = rnd() % 64; k-- && len < MAX_LEN; )
				buf[len++] = rnd();
			break;
		case 4:		/* go on like another */
			pick = rnd() % inputs;
			k = input[pick].len;
			if (at + k > MAX_LEN)
				k = MAX_LEN - at;
			memcpy(buf + at, input[pick].data, k);
			len = at + k > len ? at + k : len;
			break;
		}
	}
	try(buf, len);
}

int main(int argc, char **argv)
{
	unsigned long seconds = 0, runs;
	struct timespec now, end;
	unsigned int i;

	snprintf(crash, sizeof(crash), "%s.crash", argv[0]);
	for (i = 1; i < (unsigned int)argc; i++) {
		if (!strcmp(argv[i], "-s") && argv[i + 1])
			seconds = atoi(argv[++i]);
		else if (!strcmp(argv[i], "-r") && argv[i + 1])
			seed = strtoull(argv[++i], NULL, 0);
		else
			read_path(argv[i]);
	}
	if (!inputs) {
		fprintf(stderr, "%s: no input\n", argv[0]);
		return 2;
	}
	/* Processor time: the machine may be busy. */
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	end.tv_sec += seconds;
	for (runs = 0; runs < inputs; runs++)
		try(input[runs].data, input[runs].len);
	for (;; runs++) {
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
		if (!seconds || now.tv_sec > end.tv_sec ||
		    (now.tv_sec == end.tv_sec && now.tv_nsec > end.tv_nsec))
			break;
		mutate();
	}
	unlink(crash);
	printf("%u files, %lu runs\n", inputs, runs);
	return 0;
}
