#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# UD through libibverbs (datagrams.c), and multicast: mckey, perftest -g, several
# receivers of a group on both ends, the netdev's membership.
# timeout: 300
. "$(dirname "$0")/lib.sh"

topo_pair 4200 && links || bail "two links"

# datagrams NAME ADDRESS GROUP: its cases as test points of ours
datagrams() {
	nA timeout 60 "$bin/datagrams" "$LA" "$(gid_index "$LA" "$2")" "$3" > "$tmp/out"
	take_points "$1" "$tmp/out" "$1: "
}
datagrams IPv4 $A4 ::ffff:239.77.0.1
t "nothing is left of who attached and never detached" wait_for 10 no_objects qp cq pd
datagrams IPv6 $A6 ff1e::77:1
# 64 members of 64 that travelled as one, 2,048 copies, twice
counted() { (($(< "/sys/class/infiniband/$LA/ports/1/hw_counters/drop_multicast_excess") == $1)); }
t "copies that were too many have been counted" wait_for 10 counted $((2 * 2048))

member() { inns "$1" ip maddr show dev "$2" | grep -q "$3"; }
not() { ! "$@"; }

# Two receivers on the one end and one beside the sender.  rdma_cm joins by IPv4
# only (the kernel's ENOTSUPP for RoCE v2 and IPv6).
mckey_() {	# [COMMAND], done when all have joined
	local group=239.77.0.2 mac=01:00:5e:4d:00:02 pids=() rc=0 pid
	spawn "$NSB" timeout 40 stdbuf -oL mckey -b $B4 -m $group > "$tmp/r1" 2>&1 & pids+=($!)
	spawn "$NSB" timeout 40 stdbuf -oL mckey -b $B4 -m $group > "$tmp/r2" 2>&1 & pids+=($!)
	spawn "$NSA" timeout 40 stdbuf -oL mckey -b $A4 -m $group > "$tmp/r3" 2>&1 & pids+=($!)
	wait_for 20 member "$NSA" va $mac && wait_for 20 member "$NSB" vb $mac || return
	wait_for 20 eval '(($(cat "$tmp"/r[123] | grep -c "joined dgid") == 3))' && "${@:-:}" || return
	nA timeout 40 mckey -b $A4 -m $group -s || return
	for pid in "${pids[@]}"; do wait $pid || rc=1; done
	((rc)) && tail "$tmp"/r?
	return $rc
}
t "mckey: three receivers, one of them beside the sender" mckey_
t "the netdev has left, end A" wait_for 10 not member "$NSA" va 01:00:5e:4d:00:02
t "the netdev has left, end B" wait_for 10 not member "$NSB" vb 01:00:5e:4d:00:02

# joined MAC FAMILY ADDRESS [NETDEV]: is B's netdev a member, and does its IP know why?
# (A kernel without IGMP does not tell.)
joined() {
	local groups
	groups=$(inns "$NSB" ip maddr show dev "${4:-vb}")
	grep -q "link *$1" <<< "$groups" || return
	[[ $2 == inet && ! -e /proc/net/igmp ]] || grep -q "$2 *$3\b" <<< "$groups"
}
# perft GID-INDEX GROUP MAC FAMILY ADDRESS: all that is sent arrives; the receiver has
# the netdev join for as long as it runs, which is for some seconds the second time
perft() {
	local send="ib_send_bw -c UD -F -d %d -x $1 -p %p -s 1024 -g -M $2" watch rc; shift 2
	both 60 B "$send -n 200" && not member "$NSB" vb "$1" || return
	wait_for 20 joined "$@" & watch=$!
	both 60 B "$send -D $((3 * slow)) -f 1"; rc=$?
	wait $watch && ((rc == 0)) && not member "$NSB" vb "$1"
}
t "ib_send_bw -g, IPv4" perft %g4 0:0:0:0:0:0:0:0:0:0:255:255:239:77:0:3 01:00:5e:4d:00:03 inet 239.77.0.3
t "ib_send_bw -g, IPv6" perft %g6 255:30:0:0:0:0:0:0:0:0:0:0:0:119:0:3 33:33:00:77:00:03 inet6 ff1e::77:3

# --- the netdev that hears the link's packets is another one than before ------------------

# stays GROUP COMMAND...: with a member of the group on B
stays() {
	local group=$1 pid rc; shift
	spawn "$NSB" timeout 120 "$bin/datagrams" "$LB" "$(gid_index "$LB" $B4)" "$group" stay & pid=$!
	"$@"; rc=$?
	kill $pid && wait $pid 2>/dev/null
	return $rc
}
bridge() { nB ip link add br0 type bridge forward_delay 0 && nB ip link set br0 up; }
into() { nB ip link set vb master br0 && wait_for 10 member "$NSB" br0 "$1"; }	# rdma_cm stays on vb
out() { nB ip link set vb nomaster && wait_for 10 member "$NSB" vb "$1" && wait_for 10 not member "$NSB" br0 "$1"; }
# into a bridge, out of it, and out of it as it is deleted
in_and_out() {	# MAC FAMILY ADDRESS
	wait_for 20 joined "$@" && into $1 && joined "$@" br0 && wait_for 10 not member "$NSB" vb "$1" &&
	out $1 && joined "$@" && into $1 && nB ip link del br0 && wait_for 10 joined "$@"
}
# IPv6 leaves a device whose MTU is less than 1280, and begins anew when it has grown
narrow_and_wide() {	# MAC FAMILY ADDRESS
	wait_for 20 joined "$@" && nB ip link set vb mtu 1000 && wait_for 10 not member "$NSB" vb "$1" &&
	nB ip link set vb mtu 4200 && wait_for 10 joined "$@"
}
bridge || bail "a bridge"
t "the netdev becomes a bridge's port: the three receivers hear all" mckey_ into 01:00:5e:4d:00:02
t "the bridge has left, too" wait_for 10 not member "$NSB" br0 01:00:5e:4d:00:02
nB ip link set vb nomaster
t "into a bridge and out, IPv4" stays ::ffff:239.77.0.4 in_and_out 01:00:5e:4d:00:04 inet 239.77.0.4
bridge
t "into a bridge and out, IPv6" stays ff1e::77:4 in_and_out 33:33:00:77:00:04 inet6 ff1e::77:4
t "an MTU too small for IPv6, and back" stays ff1e::77:5 narrow_and_wide 33:33:00:77:00:05 inet6 ff1e::77:5
t "the netdev has left all" wait_for 10 eval '! nB ip maddr show dev vb | grep -E "77:00|4d:00"'
done_testing
