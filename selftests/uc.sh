#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Unreliable connections: ibv_uc_pingpong, which validates every byte, perftest
# -c UC, both with rdma_rxe as the peer too; and what is lost is lost: no retry, no
# answer, the QP goes on, and no part of a message is taken for a message (uc.c).
# "core": the programs alone, and no rdma_rxe.
# timeout: 600
. "$(dirname "$0")/lib.sh"

# pp SERVER-END GID OPTIONS...
pp() {
	local side=$1 gid=$2; shift 2
	both 60 "$side" "ibv_uc_pingpong -d %d -g $gid -p %p -c $*"
}
pt() {
	local side=$1 prog=$2; shift 2
	both 120 "$side" "$prog -F -d %d -x %g4 -p %p -c UC $*"
}

topo_pair 4200 && links || bail "two links"
for side in A B; do
	for gid in %g4 %g6; do
		t "ibv_uc_pingpong, server $side, IPv${gid#%g}" pp $side $gid -s 4096 -n 300
		t "ibv_uc_pingpong, server $side, IPv${gid#%g}, events" pp $side $gid -s 9999 -m 1024 -n 100 -e
	done
done
for mtu in 256 512 1024 2048 4096; do
	t "ibv_uc_pingpong, MTU $mtu, 64 KiB messages" pp A %g4 -m $mtu -s 65536 -n 30
done
for size in 1 2 3 4 5 255 257 1023 1025; do
	t "ibv_uc_pingpong, $size byte messages" pp B %g4 -m 1024 -s $size -n 20
done
t "ib_write_bw -c UC" pt A ib_write_bw -s 65536 -n 200
t "ib_write_bw -c UC, 4 QPs, both directions" pt B ib_write_bw -s 4096 -n 200 -q 4 -b
t "ib_send_bw -c UC" pt A ib_send_bw -s 4096 -n 200
t "ib_send_bw -c UC, events" pt B ib_send_bw -s 1024 -n 200 -e
t "ib_send_lat -c UC" pt A ib_send_lat -s 64 -n 300
t "ib_write_lat -c UC" pt B ib_write_lat -s 64 -n 300
t "ib_send_lat -c UC, inline" pt A ib_send_lat -s 64 -n 300 -I 64
[[ $1 == core ]] && done_testing

counter() { cat "/sys/class/infiniband/$1/ports/1/hw_counters/$2"; }
# The sender learns nothing: it is done as soon as it would be without loss.
lossy() {
	local before=$(counter $LA uc_rx_dropped_messages)
	netem_first loss 5% || return
	pt A ib_write_bw -s 65536 -m 1024 -n 300 || return
	(($(counter $LA uc_rx_dropped_messages) > before))
}
# With messages that are looked at; what must arrive: all, or some; [write]
lossy_sends() {
	local before=$(counter $LA uc_rx_dropped_messages)
	"$bin/uc" $LB "$(gid_index $LB $B4)" $LA "$(gid_index $LA $A4)" "$@" || return
	[[ $1 == all ]] || (($(counter $LA uc_rx_dropped_messages) > before))
}
no_answers() {
	local dev c
	for dev in $LA $LB; do
		for c in ack_sent sent_rnr_nak sent_seq_nak sent_err_nak retransmitted_bursts local_ack_timeout_err; do
			echo "$dev $c $(counter $dev $c)"
			(($(counter $dev $c) == 0)) || return
		done
	done
}
t "SENDs: all arrive, whole and in order" lossy_sends all
t "WRITEs with immediate data: all arrive, whole and in order" lossy_sends all write
t "ib_write_bw on a network that drops" lossy
t "SENDs on a network that drops: what has lost a packet is dropped whole" lossy_sends some
t "WRITEs with immediate data: none that has lost a packet completes" lossy_sends some write
netem_off
t "nothing was acknowledged, refused or sent again in all this" no_answers
topo_del
DRIVER_A=rxe
topo_pair 4200 && links || bail "a link of each"
for side in A B; do
	t "with rdma_rxe, server $side: ibv_uc_pingpong" pp $side %g4 -s 4096 -n 200
	t "with rdma_rxe, server $side: ibv_uc_pingpong, events, IPv6" pp $side %g6 -s 9999 -m 1024 -n 100 -e
	t "with rdma_rxe, server $side: ib_write_bw -c UC" pt $side ib_write_bw -s 65536 -n 100
	t "with rdma_rxe, server $side: ib_send_lat -c UC" pt $side ib_send_lat -s 64 -n 100
done
done_testing
