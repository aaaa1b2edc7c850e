#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# rove against rdma_rxe: each as server and as client, validated data, MTU 1024
# and 4096; pingpong and perftest between them.
# timeout: 900
DRIVER_A=rxe DRIVER_B=${DRIVER_B:-rove}
. "$(dirname "$0")/lib.sh"

topo_pair 4200 && links || bail "a link of each"

pt() {
	local side=$1 prog=$2; shift 2
	both 240 "$side" "$prog -F -d %d -x %g4 -p %p $*"
}
pp() {
	local side=$1 gid=$2; shift 2
	both 60 "$side" "ibv_rc_pingpong -d %d -g $gid -p %p -c $*"
}

# rdma_rxe sends from any CPU, overtakes itself on two of them, and is told to go back;
# READs that it asks for again may end without their data (with rdma_rxe at both ends,
# too, where netem reorders).  What tells rove's data from wrong data keeps to one CPU.
cpus=$(taskset -pc $$) cpus=${cpus##* }
checked() {
	taskset -pc 0 $$ > /dev/null
	rc_data "$@"
	taskset -pc "$cpus" $$ > /dev/null
}

declare -A who=([A]=$DRIVER_A [B]=$DRIVER_B)
mtus="1024 4096"; [[ $1 == core ]] && mtus=1024
for mtu in $mtus; do
	for side in A B; do
		checked "MTU $mtu, server ${who[$side]}, IPv4" $side "-g %g4 -m $mtu -t data"
		t "MTU $mtu, server ${who[$side]}: ibv_rc_pingpong" pp $side %g4 -m $mtu -s 65536 -n 50
		t "MTU $mtu, server ${who[$side]}: ibv_rc_pingpong -e, IPv6" pp $side %g6 -m $mtu -s 9999 -n 50 -e
	done
done
[[ $1 == core ]] && done_testing
for side in A B; do
	checked "MTU 1024, server ${who[$side]}, IPv6" $side \
		"-g %g6 -m 1024 -t send,write,read,atomic"
	for prog in ib_write_bw ib_read_bw ib_send_bw; do
		t "server ${who[$side]}: $prog" pt $side $prog -s 65536 -n 50
	done
	t "server ${who[$side]}: ib_atomic_bw" pt $side ib_atomic_bw -n 100
	t "server ${who[$side]}: ib_write_lat" pt $side ib_write_lat -s 8 -n 100
	t "server ${who[$side]}: ib_send_lat" pt $side ib_send_lat -s 8 -n 100
	t "server ${who[$side]}: ib_read_lat" pt $side ib_read_lat -s 8 -n 100
done
done_testing
