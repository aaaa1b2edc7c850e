#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Programs that take turns: acknowledgments that wait for the answer (turns.c).
# timeout: 120
. "$(dirname "$0")/lib.sh"

topo_pair 4200 && links || bail "two links"
[[ -x $bin/turns ]] || bail "make -C selftests"

c_points turns "$bin/turns" "$LA" "$(gid_index "$LA" $A4)" "$LB" "$(gid_index "$LB" $B4)"
t "nothing is left" wait_for 20 no_objects qp cq mr
done_testing
