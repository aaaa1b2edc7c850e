#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# All ways of taking a link down while programs run on it: they must end by
# themselves, with an error, and leave nothing behind.  With
# "core" either polling or waiting for events, by turns, else both.
# timeout: 400
. "$(dirname "$0")/lib.sh"

# with_load COMMAND...: the program on the link that goes must end by itself, with
# an error.  Its peer may have nothing outstanding, and then waits for ever.
sent() { rdma statistic show link "$LA" | grep -o 'sent_pkts [0-9]*' | cut -d' ' -f2; }
with_load() {
	local srv cli n
	n=$(sent)
	# in the initial namespace, whoever's the link is: the netdev's may go away
	stdbuf -oL ibv_rc_pingpong -d "$LA" -g "$(gid_index "$LA" $A4)" -p 18700 -n 100000000 $load > "$tmp/s" 2>&1 & srv=$!
	wait_for 20 listening "" 18700
	stdbuf -oL ibv_rc_pingpong -d "$LB" -g "$(gid_index "$LB" $B4)" -p 18700 -n 100000000 $load 127.0.0.1 > "$tmp/c" 2>&1 & cli=$!
	wait_for 20 grep -q "remote address" "$tmp/c" || { cat "$tmp/s" "$tmp/c"; return 1; }
	wait_for 20 eval '(($(sent) > n + 100)) || gone $srv' || { echo "stands still"; kill -9 $srv $cli; return 1; }
	gone $srv && { echo "server ended at once"; cat "$tmp/s"; return 1; }
	"$@" || { echo "failed: $*"; kill -9 $srv $cli; return 1; }
	wait_for 40 gone $srv || { echo "hangs"; cat "$tmp/s" "$tmp/c" /proc/$srv/stack; kill -9 $srv $cli; return 1; }
	kill -9 $cli 2>/dev/null
	wait $srv && { echo "no error"; return 1; }
	cat "$tmp/s" "$tmp/c"
	grep -qE "Flushed|poll CQ failed|Failed status|cq_event|Couldn.t post" "$tmp/s"
}
rmmod_rove() { rmmod rove && no_links; }
set_up() { topo_pair 4200 && links; }
tear_down() {
	rdma link delete "$LA"; rdma link delete "$LB"; nA ip link del va
	ip netns del "$NSA"; ip netns del "$NSB"; NSA='' NSB='' LA='' LB=''
	wait_for 20 no_links
} 2>/dev/null
slice=$1 turn=0
under_load() {	# NAME COMMAND
	local name=$1 cmd=$2 loads=("-s 65536" "-s 65536 -e")
	[[ $slice == core ]] && loads=("${loads[$((turn++ % 2))]}")
	for load in "${loads[@]}"; do
		set_up || { not_ok "$name: set-up"; tear_down; return; }
		t "$name, pingpong $load" with_load eval "$cmd"
		# without a module there is nothing to look at
		[[ $name == rmmod ]] || t "$name, no objects left" wait_for 10 no_objects qp mr
		tear_down || not_ok "$name: links are left"
	done
}
under_load "rdma link delete" 'rdma link delete $LA'
under_load "ip link del" 'nA ip link del va'
under_load "a namespace is deleted" 'ip netns del $NSA'
under_load "rmmod" rmmod_rove

set_up
killed() {
	local pid
	ibv_rc_pingpong -d "$LA" -g "$(gid_index "$LA" $A4)" -p 18701 & pid=$!
	wait_for 20 eval '! no_objects qp && ! no_objects mr' || return
	kill -9 $pid
	wait $pid
	no_objects qp mr
}
t "a killed program: no objects left" killed
done_testing
