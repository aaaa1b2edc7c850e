#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# XRC: ibv_xsrq_pingpong, where a server's clients share one SRQ, and perftest -c XRC;
# xrc.c: processes that share a domain and a QP, hostile requests.  "core": the programs alone.
# timeout: 600
. "$(dirname "$0")/lib.sh"

# xp SERVER-END GID OPTIONS...
xp() {
	local side=$1 gid=$2; shift 2
	both 60 "$side" "ibv_xsrq_pingpong -d %d -g $gid -p %p $*"
}
pt() {
	local side=$1 prog=$2; shift 2
	both 120 "$side" "$prog -F -d %d -x %g4 -p %p -c XRC $*"
}

topo_pair 4200 && links || bail "two links"
for gid in %g4 %g6; do
	t "ibv_xsrq_pingpong, IPv${gid#%g}" xp A $gid -s 4096 -n 200
	t "ibv_xsrq_pingpong, IPv${gid#%g}, events" xp B $gid -s 4096 -n 200 -e
done
t "ibv_xsrq_pingpong, 32 KiB in packets of 1024" xp A %g4 -s 32768 -m 1024 -n 100
t "ib_send_bw -c XRC" pt A ib_send_bw -s 4096 -n 300
t "ib_send_bw -c XRC, 4 QPs" pt B ib_send_bw -s 4096 -n 200 -q 4
t "ib_write_bw -c XRC" pt A ib_write_bw -s 65536 -n 200
t "ib_read_bw -c XRC" pt A ib_read_bw -s 65536 -n 200
t "ib_atomic_bw -c XRC" pt B ib_atomic_bw -n 200
t "ib_send_lat -c XRC" pt A ib_send_lat -s 64 -n 200
t "ib_write_lat -c XRC" pt B ib_write_lat -s 64 -n 200
[[ $1 == core ]] && done_testing
# several clients of one server, which share its SRQ
clients() {
	local i=3 pids=() rc=0 p
	spawn "$NSA" timeout 60 ibv_xsrq_pingpong -d $LA -g "$(gid_index $LA $A4)" -p 18999 -c $i -n 100 > "$tmp/server" 2>&1 &
	p=$!
	wait_for 20 listening "$NSA" 18999 || return
	for ((; i; i--)); do
		spawn "$NSB" timeout 60 ibv_xsrq_pingpong -d $LB -g "$(gid_index $LB $B4)" -p 18999 -n 100 $A4 > "$tmp/client$i" 2>&1 &
		pids+=($!)
	done
	for i in $p "${pids[@]}"; do wait $i || rc=1; done
	((rc == 0)) || cat "$tmp/server" "$tmp"/client*
	return $rc
}
t "ibv_xsrq_pingpong, three clients" clients
c_points xrc "$bin/xrc" "$LA" "$(gid_index "$LA" $A4)" "$LB" "$(gid_index "$LB" $B4)" "$tmp/xrcd"
t "nothing is left" wait_for 10 no_objects qp srq
done_testing
