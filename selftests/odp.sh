#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# On-demand paging, explicit and implicit: odp.c between the two
# links.
# timeout: 240
. "$(dirname "$0")/lib.sh"

topo_pair 4200 && links || bail "two links"
[[ -x $bin/odp ]] || bail "make -C selftests"

modprobe -q fuse
c_points odp "$bin/odp" "$LA" "$(gid_index "$LA" $A4)" "$LB" "$(gid_index "$LB" $B4)"
t "nothing is left" wait_for 10 no_objects qp cq mr
done_testing
