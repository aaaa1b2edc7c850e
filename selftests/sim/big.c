// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* stub */
#include "sim.h"
bool big_read(struct mr *mr, u64 va, u8 *dst, u32 len) { return false; }
bool big_write(struct mr *mr, u64 va, const u8 *src, u32 len) { return false; }
int big_run(void) { return 0; }
