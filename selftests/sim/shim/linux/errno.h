/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* linux/errno.h - the real one; the C library gets here too */
#include_next <linux/errno.h>
