#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# An unprivileged program writes to every byte that it shares with the kernel
# while others move checked data (scribbler.c).
# Arguments: seconds (15), seed.
# timeout: 9000
. "$(dirname "$0")/lib.sh"

seconds=${1:-15} seed=${2:-$RANDOM$RANDOM}
[[ -x $bin/scribbler ]] || skip_all "no scribbler: make selftests"
topo_pair 4200 && links || bail "two links"
ulimit -c 0

qps() { rdma resource show qp 2>/dev/null | grep -c 'type R\?[CU]'; }

for_nobody scribbler || bail "a program of nobody's"
before=$(qps)
c_points "scribbler" as_nobody timeout -k 5 $(((seconds + 180) * slow)) \
	"/tmp/scribbler.$$" "$LA" "$(gid_index "$LA" $A4)" "$LB" "$(gid_index "$LB" $B4)" "$seconds" "$seed"
nothing_left() { no_objects qp cq mr pd srq ctx && (($(qps) <= before)); }
t "nothing is left of them" wait_for 30 nothing_left
t "the links can be taken away" eval 'timeout 60 rdma link delete $LA && timeout 60 rdma link delete $LB'
LA= LB=
t "and the module" wait_for 30 rmmod rove
done_testing
