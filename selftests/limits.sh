#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# query_device_ex is the truth, and a link costs what is used of it: limits.c.
#	limits.sh many		as many objects as there may be; takes memory and time
# timeout: 600
. "$(dirname "$0")/lib.sh"

topo_pair 4200 || bail "two devices"
memory() { awk '/^(Slab|VmallocUsed|Percpu):/ { s += $2 } END { print s }' /proc/meminfo; }
before=$(memory)
links || bail "two links"
after=$(memory)
[[ -x $bin/limits ]] || bail "make -C selftests"

# most of it ib_core's, for 1,024 GIDs in sysfs; on a debug kernel all of that has red zones
cost() { echo "two links: $((after - before)) KiB"; ((after - before < 8192 * slow)); }
[[ $1 == many ]] || t "two links with limits of a million objects: under $((8 * slow)) MiB" cost
ulimit -l unlimited
c_points limits inns "$NSA" "$bin/limits" all "$LA" "$(gid_index "$LA" $A4)" $1
done_testing
