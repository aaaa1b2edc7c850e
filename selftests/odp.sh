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
cg=/sys/fs/cgroup/rove-odp
[[ -e /sys/fs/cgroup/cgroup.controllers ]] || mount -t cgroup2 none /sys/fs/cgroup 2>/dev/null
extra_cleanup() { rmdir $cg 2>/dev/null; }
echo +memory 2>/dev/null > /sys/fs/cgroup/cgroup.subtree_control && mkdir $cg
in_group() (	# COMMAND...
	[[ ! -d $cg ]] || echo $BASHPID > $cg/cgroup.procs
	exec "$@"
)
c_points odp in_group "$bin/odp" "$LA" "$(gid_index "$LA" $A4)" "$LB" "$(gid_index "$LB" $B4)"
t "nothing is left" wait_for 10 no_objects qp cq mr
done_testing
