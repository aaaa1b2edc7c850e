#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Memory regions, completion queues, address handles: objects.c between the two
# links.
# timeout: 240
. "$(dirname "$0")/lib.sh"

topo_pair 4200 && links || bail "two links"
[[ -x $bin/objects ]] || bail "make -C selftests"

echo 16 > /proc/sys/vm/nr_hugepages
[[ $(< /proc/sys/vm/nr_hugepages) == 16 ]] || lacks "regions in huge pages that are set aside" "there are none"
c_points objects "$bin/objects" "$LA" "$(gid_index "$LA" $A4)" "$LB" "$(gid_index "$LB" $B4)"
t "nothing is left" wait_for 10 no_objects qp cq mr
done_testing
