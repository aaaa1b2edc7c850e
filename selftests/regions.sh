#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Very many memory regions at once, and a very large one: regions.c between the two
# links.  Arguments: how many (100000), how large in GiB (4; 2 on a small guest).
# timeout: 900
. "$(dirname "$0")/lib.sh"

free=$(awk '/^MemAvailable/ { print int($2 / 1048576) }' /proc/meminfo)
topo_pair 4200 && links || bail "two links"
[[ -x $bin/regions ]] || bail "make -C selftests"

c_points regions "$bin/regions" "$LA" "$(gid_index "$LA" $A4)" "$LB" "$(gid_index "$LB" $B4)" \
	"${1:-100000}" "${2:-$((free >= 2 ? 4 : 2))}"
t "nothing is left" wait_for 10 no_objects qp cq mr
done_testing
