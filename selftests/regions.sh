#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Very many memory regions at once, and a very large one: regions.c between the two
# links.  Arguments: how many (100000), how large in GiB (4; 2 on a small guest).  User-mode
# Linux maps each page of a program in the host, which allows 65,530: 128 MiB there.
# timeout: 900
# expects: leaks
. "$(dirname "$0")/lib.sh"

free=$(awk '/^MemAvailable/ { print int($2 / 1048576) }' /proc/meminfo)
large=$((${2:-$((free >= 2 ? 4 : 2))} * 1024))
! grep -q 'User Mode Linux' /proc/cpuinfo || large=128
topo_pair 4200 && links || bail "two links"
[[ -x $bin/regions ]] || bail "make -C selftests"

[[ ! -e $kmemleak ]] || echo clear > $kmemleak
c_points regions "$bin/regions" "$LA" "$(gid_index "$LA" $A4)" "$LB" "$(gid_index "$LB" $B4)" \
	"${1:-100000}" "$large"
t "nothing is left" wait_for 10 no_objects qp cq mr
[[ ! -e $kmemleak ]] || t "nothing has leaked" no_leaks
done_testing
