#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# ibv_rc_pingpong -c, which validates every byte: polling and with completion
# events, each end as the server, IPv4 and IPv6, every path MTU; and its other ways to
# have memory, to post and to be told of completions.
#
#	rc_pingpong.sh [core|plain]	core: not every MTU and size; plain: nor the other ways,
#					which rdma_rxe has not
# timeout: 600
. "$(dirname "$0")/lib.sh"

topo_pair 4200 && links || bail "two links"

# pp SERVER-END GID OPTIONS...
pp() {
	local side=$1 gid=$2; shift 2
	both 60 "$side" "ibv_rc_pingpong -d %d -g $gid -p %p -c $*"
}

for side in A B; do
	for gid in %g4 %g6; do
		t "server $side, IPv${gid#%g}, polling" pp $side $gid -s 4096 -n 200
		t "server $side, IPv${gid#%g}, events" pp $side $gid -s 4096 -n 200 -e
	done
done
[[ $1 == plain ]] && done_testing
t "paged on demand" pp A %g4 -o -s 65536 -n 50
t "paged on demand, implicit region, prefetched, events" pp B %g6 -O -P -s 65536 -n 50 -e
t "completion timestamps" pp A %g4 -t -n 100
t "device memory" pp A %g4 -j -s 4096 -n 100
t "posted by ibv_wr_*()" pp B %g4 -N -s 9999 -n 100
[[ $1 == core ]] && done_testing
for mtu in 256 512 1024 2048 4096; do
	t "MTU $mtu, 64 KiB messages" pp A %g4 -m $mtu -s 65536 -n 50
	t "MTU $mtu, 9999 byte messages over IPv6, events" pp B %g6 -m $mtu -s 9999 -n 50 -e
done
for size in 1 2 3 4 5 63 255 256 257 1023 1024 1025 4095 4096 4097; do
	t "$size byte messages" pp A %g4 -m 1024 -s $size -n 20
done
t "1 MiB messages" pp A %g4 -m 4096 -s 1048576 -n 10
done_testing
