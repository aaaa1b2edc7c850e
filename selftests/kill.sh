#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# perftest at full speed, and then: the client is killed, the server is killed,
# a link is deleted, a netdev goes, the module goes.  The survivor ends, nothing
# is left in `rdma res`, the links still work or are gone.
# timeout: 1200
. "$(dirname "$0")/lib.sh"

bytes() { nA cat /sys/class/net/va/statistics/{rx,tx}_bytes | { read -r a; read -r b; echo $((a + b)); }; }
moved() { (($(bytes) > $1)); }
objects() {	# what programs hold: lines with a pid
	local kind n=0
	for kind in qp cq mr pd ctx; do n=$((n + $(rdma resource show $kind 2>/dev/null | grep -c 'comm ib_'))); done
	echo $n
}
none_left() { (($(objects) == 0)); }
ready() { topo_pair 4200 && links; }

# storm PROGRAM WHAT...: start it, wait for traffic, do WHAT, everybody ends
storm() { lucky ended_early storm_ "$@"; }
ended_early() { doubtful && grep -q '^one has ended' "$tmp/lucky.ended_early"; }
storm_() {
	local prog=$1 base addr=$A4; shift
	[[ $FLAT ]] && addr=127.0.0.1
	srv= cli=
	base=$(bytes)
	local p=$((port++))
	spawn "$NSA" $prog -F -d "$LA" -x "$(gid_index "$LA" $A4)" -p $p -s 65536 -D 60 > "$tmp/server" 2>&1 & srv=$!
	wait_for 30 listening "$NSA" $p || { cat "$tmp/server"; return 1; }
	spawn "$NSB" $prog -F -d "$LB" -x "$(gid_index "$LB" $B4)" -p $p -s 65536 -D 60 "$addr" > "$tmp/client" 2>&1 & cli=$!
	wait_for 40 moved $((base + 300000)) || { cat "$tmp/server" "$tmp/client"; return 1; }
	none_left && { echo "rdma res shows nothing under load"; rdma resource; kill -9 $srv $cli; return 1; }
	gone $srv || gone $cli && { echo "one has ended"; cat "$tmp/server" "$tmp/client"; kill -9 $srv $cli 2>/dev/null; return 1; }
	"$@" || { echo "failed: $*"; kill -9 $srv $cli; return 1; }
	# a passive end has nothing outstanding and may wait for its peer for ever
	local noticed="gone $cli || gone $srv"
	[[ $1 != k_server ]] || noticed="gone $cli"
	wait_for 60 eval "$noticed" || { echo "nobody has noticed"; kill -9 $srv $cli 2>/dev/null; return 1; }
	if [[ $1 == k_server ]]; then ! wait $cli || { echo "the client has not failed"; cat "$tmp/client"; return 1; }; fi
	wait_for 5 eval "gone $cli && gone $srv" 2>/dev/null || kill -9 $srv $cli 2>/dev/null
	wait_for 30 eval "gone $cli && gone $srv" || { echo "cannot be killed"; cat /proc/$srv/stack /proc/$cli/stack; return 1; }
	wait $srv $cli 2>/dev/null
	wait_for 20 none_left || { echo "left behind:"; rdma resource show qp; rdma resource show mr; return 1; }
	return 0
}
still_works() { both 60 A "ibv_rc_pingpong -d %d -g %g4 -p %p -c -n 50"; }
k_client() { kill -9 $cli; }
k_server() { kill -9 $srv; }
k_both() { kill -9 $srv $cli; }

killed() {
	ready || bail "two links"
	for prog in $progs; do
		t "$prog: the client is killed" storm $prog k_client
		port=$((port + 10))
		t "$prog: the server is killed" storm $prog k_server
		port=$((port + 10))
	done
	t "ib_write_bw: both are killed" storm ib_write_bw k_both
	t "the links still work" still_works
	topo_del
}

progs="ib_write_bw ib_read_bw" ways=('rdma link delete $LA' 'rdma link delete $LB' 'nA ip link del va' 'rmmod rove')
killed
[[ $DRIVER_A == rove ]] || done_testing
for what in "${ways[@]}"; do
	port=$((port + 10))
	ready || { not_ok "$what: two links"; continue; }
	t "ib_write_bw: $what" storm ib_write_bw eval "$what"
	topo_del
done
done_testing
