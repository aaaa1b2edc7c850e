#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Regions in dma-buf buffers: dmabuf.c between the two links, with each exporter that
# the kernel has.
# timeout: 120
. "$(dirname "$0")/lib.sh"

topo_pair 4200 && links || bail "two links"
[[ -x $bin/dmabuf ]] || bail "make -C selftests"

modprobe -q vgem
exporters=()
[[ -e /dev/udmabuf ]] && exporters+=(udmabuf)
[[ -d /sys/module/vgem ]] && exporters+=(vgem)
((${#exporters[@]})) || skip_all "the kernel has neither udmabuf nor vgem"

for e in "${exporters[@]}"; do
	say "exporter: $e"
	c_points dmabuf "$bin/dmabuf" "$LA" "$(gid_index "$LA" $A4)" "$LB" "$(gid_index "$LB" $B4)" "$e"
done
t "nothing is left" wait_for 10 no_objects qp cq mr
done_testing
