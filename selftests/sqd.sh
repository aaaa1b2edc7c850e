#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A send queue that drains, and what may be changed meanwhile: sqd.c.
# timeout: 120
. "$(dirname "$0")/lib.sh"

topo_pair 4200 && links || bail "two links"
[[ -x $bin/sqd ]] || bail "make -C selftests"

c_points sqd "$bin/sqd" "$LA" "$(gid_index "$LA" $A4)" "$LB" "$(gid_index "$LB" $B4)"
t "nothing is left" wait_for 20 no_objects qp cq mr
done_testing
