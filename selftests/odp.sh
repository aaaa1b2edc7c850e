#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# On-demand paging, explicit and implicit: odp.c between the two
# links.
# timeout: 240
. "$(dirname "$0")/lib.sh"

topo_pair 4200 && links || bail "two links"
[[ -x $bin/odp ]] || bail "make -C selftests"

modprobe -q fuse
# In a control group of its own, which is to pay for what workers do.
in_group() ("$@")
if new_cgroup memory; then
	in_group() (in_cgroup "$@")
	extra_cleanup() { rmdir $cg; }
fi
c_points odp in_group "$bin/odp" "$LA" "$(gid_index "$LA" $A4)" "$LB" "$(gid_index "$LB" $B4)"
t "nothing is left" wait_for 10 no_objects qp cq mr
done_testing
