// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * scenario.c - a scenario of the simulator, decided by the fuzzer's bytes
 */
#include "sim.h"

/* Each run makes a world of some MiB: the memory of the last but few is used again. */
const char *__asan_default_options(void)
{
	return "quarantine_size_mb=4:malloc_context_size=8";
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t len)
{
	sim_by_input(strcmp(TARGET, "engine") ? TARGET : "swarm", data, len);
	return 0;
}
