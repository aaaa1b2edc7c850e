#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Shared receive queues: ibv_srq_pingpong, which validates every byte over 16 QPs,
# perftest --use-srq, both with rdma_rxe as the peer too; then what no program of
# the distribution looks at: limit, resize, flush, hostile rings.  "core": the programs
# alone, and no rdma_rxe.
# timeout: 600
. "$(dirname "$0")/lib.sh"

# pp SERVER-END GID OPTIONS...
pp() {
	local side=$1 gid=$2; shift 2
	both 60 "$side" "ibv_srq_pingpong -d %d -g $gid -p %p -c $*"
}
pt() {
	local side=$1 prog=$2; shift 2
	both 120 "$side" "$prog -F -d %d -x %g4 -p %p --use-srq $*"
}

topo_pair 4200 && links || bail "two links"
for gid in %g4 %g6; do
	t "ibv_srq_pingpong, 16 QPs, IPv${gid#%g}" pp A $gid -s 4096 -n 400
	t "ibv_srq_pingpong, 16 QPs, IPv${gid#%g}, events" pp B $gid -s 4096 -n 400 -e
done
t "ibv_srq_pingpong, 32 KiB messages in packets of 1024" pp A %g4 -s 32768 -m 1024 -n 200 -q 4
t "ibv_srq_pingpong, few receives: RNR" pp A %g4 -s 2048 -n 400 -r 20
t "ib_send_bw --use-srq" pt A ib_send_bw -s 4096 -n 500
t "ib_send_bw --use-srq, 8 QPs" pt B ib_send_bw -s 4096 -n 200 -q 8
t "ib_send_lat --use-srq" pt A ib_send_lat -s 64 -n 500
[[ $1 == core ]] && done_testing

[[ -x $bin/srq ]] || bail "make -C selftests"
c_points srq "$bin/srq" "$LA" "$(gid_index "$LA" $A4)" "$LB" "$(gid_index "$LB" $B4)"
t "nothing is left" wait_for 10 no_objects qp cq srq

topo_del
DRIVER_A=rxe
topo_pair 4200 && links || bail "a link of each"
for side in A B; do
	t "with rdma_rxe, server $side: ibv_srq_pingpong" pp $side %g4 -s 4096 -n 200
	t "with rdma_rxe, server $side: ibv_srq_pingpong, events, IPv6" pp $side %g6 -s 9999 -m 1024 -n 100 -e
	t "with rdma_rxe, server $side: ib_send_bw --use-srq" pt $side ib_send_bw -s 4096 -n 200
done
done_testing
