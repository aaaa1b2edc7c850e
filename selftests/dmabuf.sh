#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Regions in dma-buf buffers: dmabuf.c between the two links, with each exporter that
# the kernel has.  Which ones Debian's kernels must have is known.
# timeout: 120
. "$(dirname "$0")/lib.sh"

topo_pair 4200 && links || bail "two links"
[[ -x $bin/dmabuf ]] || bail "make -C selftests"

modprobe -q vgem
exporters=()
[[ -e /dev/udmabuf ]] && exporters+=(udmabuf)
[[ -d /sys/module/vgem ]] && exporters+=(vgem)
moves=$here/../build/$(uname -r)/selftests/kmod/rove_moves.ko
if [[ -f $moves ]]; then
	insmod "$moves" || bail "rove_moves.ko"
	exporters+=(moves-pin moves-attach)
else
	skip "buffers that move" "no rove_moves.ko: make modules ROVE_TEST_MODULES=1"
fi
extra_cleanup() { rmmod rove_moves 2>/dev/null; }

# udmabuf is not in 6.1's; a kernel of our own has what it was built with
required=()
case $(uname -r) in
6.1.*-amd64) required=(vgem) ;;
*-amd64) required=(udmabuf vgem) ;;
esac
has() { [[ " ${exporters[*]} " == *" $1 "* ]]; }
for e in "${required[@]}"; do t "the kernel has $e" has "$e"; done
((${#exporters[@]} + T_COUNT)) || skip_all "the kernel has no exporter"

for e in "${exporters[@]}"; do
	say "exporter: $e"
	c_points dmabuf "$bin/dmabuf" "$LA" "$(gid_index "$LA" $A4)" "$LB" "$(gid_index "$LB" $B4)" "$e"
done
t "nothing is left" wait_for 10 no_objects qp cq mr
done_testing
