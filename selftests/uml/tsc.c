// SPDX-License-Identifier: GPL-2.0
/*
 * gettimeofday() from the time stamp counter, for programs in User-mode Linux.
 *
 * There it is a system call of 10 to 15 us, and perftest, which calibrates the
 * counter with it, gives up.  As a library (LD_PRELOAD) this replaces it; the
 * counter's rate comes in UML_TSC_MHZ.  As a program, run on the host, it
 * prints that rate.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <x86intrin.h>

static uint64_t now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

#ifdef PROGRAM

int main(void)
{
	const struct timespec wait = { .tv_nsec = 200 * 1000 * 1000 };
	uint64_t ns = now_ns(CLOCK_MONOTONIC_RAW), ticks = __rdtsc();

	nanosleep(&wait, NULL);
	ticks = __rdtsc() - ticks;
	ns = now_ns(CLOCK_MONOTONIC_RAW) - ns;
	printf("%.3f\n", ticks * 1000.0 / ns);
	return 0;
}

#else

static uint64_t start_ns, start_ticks;
static double ticks_per_ns;

__attribute__((constructor)) static void start(void)
{
	const char *mhz = getenv("UML_TSC_MHZ");

	ticks_per_ns = mhz ? atof(mhz) / 1000 : 0;
	start_ns = now_ns(CLOCK_REALTIME);
	start_ticks = __rdtsc();
}

int gettimeofday(struct timeval *restrict tv, void *restrict tz)
{
	uint64_t ns = ticks_per_ns > 0 ? start_ns + (__rdtsc() - start_ticks) / ticks_per_ns :
					 now_ns(CLOCK_REALTIME);

	tv->tv_sec = ns / 1000000000;
	tv->tv_usec = ns % 1000000000 / 1000;
	return 0;
}

#endif
