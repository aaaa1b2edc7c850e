#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Traffic in network namespaces: shared mode (the default), where a program of
# any namespace may use a link of another, and exclusive mode, where a link is
# seen in its netdev's namespace only.
# timeout: 400
. "$(dirname "$0")/lib.sh"

topo_pair 4200 && links || bail "two links"
[[ $NSA && $NSB ]] || skip_all "needs a driver that works in namespaces"

pp() { both 60 "$1" "ibv_rc_pingpong -d %d -g %g4 -p %p -c -s 4096 -n 100"; }
# both programs in the initial namespace, or each in the other's
from_outside() {
	local a=$1 b=$2 sp pid
	sp=$((port++))
	spawn "$a" timeout 60 ibv_rc_pingpong -d "$LA" -g "$(gid_index "$LA" $A4)" -p $sp -c -n 100 > "$tmp/s" 2>&1 & pid=$!
	wait_for 20 listening "$a" $sp
	inns "$b" timeout 60 ibv_rc_pingpong -d "$LB" -g "$(gid_index "$LB" $B4)" -p $sp -c -n 100 "$3" > "$tmp/c" 2>&1 || { cat "$tmp/c" "$tmp/s"; return 1; }
	wait $pid
}
seen_by_all() { local ns; for ns in "" "$NSA" "$NSB"; do inns "$ns" rdma link | grep -q "$LA" || return; done; }

t "shared: both links are seen in every namespace" seen_by_all
t "shared: two namespaces, server A" pp A
t "shared: two namespaces, server B" pp B
port=$((port + 20))
t "shared: both programs in the initial namespace" from_outside "" "" 127.0.0.1
port=$((port + 20))
t "shared: each program in the other's namespace" from_outside "$NSB" "$NSA" $B4
t "shared: the link is deleted from inside" nA rdma link delete "$LA"
add_again() { link_add "$NSA" "$LA" "$DRIVER_A" va && wait_for "$WAIT" gid_index "$LA" $A4 && wait_for "$WAIT" port_active "$LA"; }
t "shared: and added again under the same name" add_again
t "shared: traffic over it" pp A
topo_del

exclusive() { wait_for "$WAIT" rdma system set netns exclusive; }
extra_cleanup() { topo_del; wait_for 10 rdma system set netns shared; }
t "exclusive mode" exclusive || done_testing
topo_pair 4200 || bail "topology"

# the index by the namespace's own sysfs
xgid() {
	inns "$1" bash -c "$(declare -f gid_index gid_of is_far); declare -A GID_OF=([x]=y); gid_index $2 $3"
}
x_link() {	# NS NAME DEV
	link_add "$1" "$2" rove "$3" || return
	to_netns "$2" "$1" || return
	wait_for 20 eval "inns $1 rdma link | grep -q $2"
}
x_hidden() { ! inns "$1" rdma link | grep -q "$2"; }
# A tool that asks for the link by its name: at home only.
x_own() {	# COMMAND...
	nA "$@" && ! nB "$@"
}
# B, with the device's own node before it
x_node() {
	local node
	node=$(grep -lx rovea /sys/class/infiniband_verbs/*/ibdev) node=${node%/ibdev} node=/dev/infiniband/${node##*/}
	[[ -c $node ]] && nA bash -c ": <> $node" && ! nB bash -c ": <> $node" 2> "$tmp/why" &&
		grep -q 'Permission denied\|not permitted' "$tmp/why"
}
x_pp() {
	local ga gb pid
	wait_for "$WAIT" xgid "$NSA" rovea $A4 && wait_for "$WAIT" xgid "$NSB" roveb $B4 || return
	ga=$(xgid "$NSA" rovea $A4) gb=$(xgid "$NSB" roveb $B4)
	spawn "$NSA" timeout 60 ibv_rc_pingpong -d rovea -g "$ga" -p 18999 -c -n 100 > "$tmp/s" 2>&1 & pid=$!
	wait_for 20 listening "$NSA" 18999
	nB timeout 60 ibv_rc_pingpong -d roveb -g "$gb" -p 18999 -c -n 100 $A4 > "$tmp/c" 2>&1 || { cat "$tmp/c" "$tmp/s"; return 1; }
	wait $pid
}
x_rping() {	# needs the link's QP 1, which has moved, too
	local pid
	spawn "$NSA" timeout 60 rping -s -a $A4 -p 7199 -C 10 -V > "$tmp/s" 2>&1 & pid=$!
	wait_for 20 eval "inns '$NSA' rdma resource show cm_id | grep -q 'LISTEN.*:7199'"
	nB timeout 60 rping -c -a $A4 -p 7199 -C 10 -V > "$tmp/c" 2>&1 ||
		{ cat "$tmp/c" "$tmp/s"; kill $pid; return 1; }
	wait $pid
}
t "exclusive: link A belongs to its netdev's namespace" x_link "$NSA" rovea va
t "exclusive: link B belongs to its netdev's namespace" x_link "$NSB" roveb vb
t "exclusive: B does not see A's" x_hidden "$NSB" rovea
t "exclusive: the initial namespace sees neither" x_hidden "" rove
t "exclusive: B cannot read its counters, A can" x_own rdma statistic show link rovea/1
t "exclusive: B cannot open it, A can" x_own ibv_devinfo -d rovea
t "exclusive: B may not open its node, A may" x_node
t "exclusive: B's sysfs does not have it, A's has" x_own test -e /sys/class/infiniband/rovea
x_no_objects() { nA rdma resource show qp | grep -q "link rovea" && ! nB rdma resource show qp | grep "link rovea"; }
t "exclusive: B does not see its queue pairs, A does" x_no_objects
x_refused() { ! nB rdma "$@" && nA rdma link | grep -q rovea; }
t "exclusive: B cannot rename it" x_refused dev set rovea name mine
t "exclusive: B cannot delete it" x_refused link delete rovea
t "exclusive: traffic between the two" x_pp
t "exclusive: rdma_cm between the two" x_rping
# the veth dies with its namespace, and so does the peer's end
x_death() { ip netns del "$NSB" && NSB='' && wait_for 30 eval '! nA ip link show va'; }
t "exclusive: delete from inside" nA rdma link delete rovea
t "exclusive: a namespace dies with its link" x_death
topo_del
t "back to shared mode" wait_for "$WAIT" rdma system set netns shared
done_testing
