// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * trace.c - the tracepoints' bodies; see trace.h
 */
#define CREATE_TRACE_POINTS
#include "trace.h"
