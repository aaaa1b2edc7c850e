/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* linux/log2.h - what transport/ uses of it, in user space */
#ifndef SIM_LINUX_LOG2_H
#define SIM_LINUX_LOG2_H

#include <linux/kernel.h>

#endif
