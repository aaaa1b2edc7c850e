#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Two namespaces, as containers have them, joined by each kind of network device,
# with a link on it: verbs, rdma_cm, perftest, every byte checked, MTU 1500 and
# 9000, and from the one to the other with a connection open.
#
#	wires.sh [KIND...]
# timeout: 900
. "$(dirname "$0")/lib.sh"
. "$here/flow.sh"

BIG=9000
da=va db=vb		# what has the addresses
wire=

# --- the kinds: each makes va in $NSA and vb in $NSB -------------------------------

veth_pair() {	# DEV NS DEV NS
	ip link add "$1" mtu $BIG netns "$2" type veth peer name "$3" mtu $BIG netns "$4"
}
make_veth() { veth_pair va "$NSA" vb "$NSB"; }
on_parent() {	# KIND OPTIONS...: two on one device, whose other end is up
	local dev ns kind=$1; shift
	ip link add pa mtu $BIG type veth peer name pb mtu $BIG && ip link set pa up && ip link set pb up || return
	for dev in va vb; do
		ns=$NSA; [[ $dev == va ]] || ns=$NSB
		ip link add link pa name $dev netns "$ns" type "$@" "$kind" || return
	done
}
make_macvlan() { modprobe -q macvlan; on_parent bridge macvlan mode; }
make_ipvlan() { modprobe -q ipvlan; on_parent l2 ipvlan mode; }
make_ipvlan_l3() { modprobe -q ipvlan; on_parent l3 ipvlan mode; }
make_bridge() {
	veth_pair xa "$NSA" xb "$NSB" &&
	nA ip link add va type bridge forward_delay 0 && nA ip link set xa master va up &&
	nB ip link add vb type bridge forward_delay 0 && nB ip link set xb master vb up
}
make_bond() {
	modprobe -q bonding
	local i
	nA ip link add va type bond mode active-backup miimon 50 && nB ip link add vb type bond mode active-backup miimon 50 || return
	for i in 0 1; do
		veth_pair xa$i "$NSA" xb$i "$NSB" && nA ip link set xa$i master va && nB ip link set xb$i master vb || return
	done
}
make_vlan() {
	veth_pair va "$NSA" vb "$NSB" && nA ip link set va up && nB ip link set vb up &&
	nA ip link add link va name va.7 type vlan id 7 && nB ip link add link vb name vb.7 type vlan id 7 && da=va.7 db=vb.7
}
make_tuntap() {
	modprobe -q tun; mkdir -p /dev/net; [[ -e /dev/net/tun ]] || mknod /dev/net/tun c 10 200
	"$bin/tunwire" "$1" "$NSA" va "$NSB" vb & wire=$!
	wait_for 10 nA ip link show va && wait_for 10 nB ip link show vb
}
make_tun() { make_tuntap tun; }
make_tap() { make_tuntap tap; }
tunnel_end() {	# NS DEV LOCAL REMOTE KIND
	inns "$1" ip addr add "$3/24" dev "x${2#v}" && inns "$1" ip link set "x${2#v}" up &&
	inns "$1" ip link add "$2" type "$5" local "$3" remote "$4"
}
make_over() {
	modprobe -q "$2"
	veth_pair xa "$NSA" xb "$NSB" && tunnel_end "$NSA" va 10.70.0.1 10.70.0.2 "$1" && tunnel_end "$NSB" vb 10.70.0.2 10.70.0.1 "$1"
}
make_gre() { make_over gre ip_gre; }
make_ipip() { make_over ipip ipip; }
in_vrf() {	# NS DEV
	inns "$1" ip link add vrf1 type vrf table 77 && inns "$1" ip link set "$2" master vrf1 && inns "$1" ip link set vrf1 up &&
	# a socket that listens for all is not for a VRF's otherwise
	inns "$1" sysctl -qw net.ipv4.udp_l3mdev_accept=1
}
make_vrf() { modprobe -q vrf; make_veth && in_vrf "$NSA" va && in_vrf "$NSB" vb; }

# --- what is done on each ---------------------------------------------------------------

set_up() {
	make_namespaces
	da=va db=vb
	"make_$1" && set_end "$NSA" $da 1500 $A4 $A6 && set_end "$NSB" $db 1500 $B4 $B6 &&
	set_mtus 1500
}
undo() {
	topo_del
	[[ $wire ]] && { kill $wire; wait $wire; } 2>/dev/null
	ip link del pa 2>/dev/null
	wire=
}
extra_cleanup() { undo; }

pp() { both 60 "$1" "ibv_rc_pingpong -d %d -g %g$2 -p %p -c -n 100"; }
ping_pong() { pp A 4 && pp B "$1"; }
rping_v() {
	READY=cm_listening both 60 "$1" "rping -s -a %a$2 -p %p -V -C 10 -S 4000" "rping -c -a %a$2 -p %p -V -C 10 -S 4000"
}
rpings() { rping_v A 4 && rping_v B 6; }
perf() { both 60 B "ib_write_bw -F -d %d -x %g4 -p %p -s 65536 -n 200"; }
set_mtus() {
	local ns dev
	for dev in va $da; do nA ip link set $dev mtu "$1" || return; done
	for dev in vb $db; do nB ip link set $dev mtu "$1" || return; done
}
mtu_is() { on "$1" ibv_devinfo -d "$1" | grep -qE "active_mtu:[[:space:]]*$2 "; }
grow() { set_mtus $BIG && wait_for 10 mtu_is "$LA" 4096 && moves && set_mtus 1500 && wait_for 10 mtu_is "$LA" 1024; }
big() { set_mtus $BIG && wait_for 10 mtu_is "$LB" 4096; }

vrf_data() {	# LINK IPv4 IPv6: the other end
	"$bin/scale" $LA "$(gid_index $LA $A4)" $1 "$(gid_index $1 $2)" cycles 20 &&
	"$bin/scale" $LA "$(gid_index $LA $A6)" $1 "$(gid_index $1 $3)" cycles 20
}

try() {
	local kind=$1 v6=6 cm=1 mtu=1
	case $kind in
	tun) cm= ;;
	gre|ipip) cm= mtu= ;;
	esac
	[[ $kind != ipip ]] || v6=4		# it carries IPv4 only
	if ! set_up "$kind" > "$tmp/set_up" 2>&1; then
		lacks "$kind" "cannot be made here: $(tail -n 1 "$tmp/set_up")"
		undo
		return
	fi
	if ! links > "$tmp/set_up" 2>&1; then
		not_ok "$kind: two links"
		sed 's/^/#   /' "$tmp/set_up"
		undo
		return
	fi
	# the programs' own sockets would have to be put in it, too
	if [[ $kind == vrf ]]; then
		t "vrf: IPv4 and IPv6, one process, every byte" vrf_data $LB $B4 $B6
		t "vrf: within one machine" vrf_data $LA $A4 $A6
		undo
		return
	fi
	t "$kind: ibv_rc_pingpong -c" ping_pong $v6
	if [[ $cm ]]; then
		t "$kind: rping, validated, IPv4 and IPv6" rpings
	fi
	t "$kind: ib_write_bw" perf
	rc_data "$kind" A "-g %g4 -T 17 -t send,write,read,mix"
	if [[ $mtu ]]; then
		goes_on "$kind: MTU 1500, 9000, 1500 with a connection open" -4 grow
		t "$kind: MTU 9000" big
		rc_data "$kind, MTU 9000" B "-g %g4 -m 4096 -T 17 -t send,mix"
	fi
	undo
}

# No IPv4 address anywhere; pingpong's set-up by IPv4 runs where both links are seen.
v6_links() {
	make_namespaces
	make_veth && nA ip link set va up && nB ip link set vb up &&
	nA ip addr add $A6/64 dev va nodad && nB ip addr add $B6/64 dev vb nodad &&
	link_add "$NSA" rovea rove va && link_add "$NSB" roveb rove vb &&
	wait_for "$WAIT" gid_index rovea $A6 && wait_for "$WAIT" gid_index roveb $B6 && wait_for "$WAIT" port_active roveb
}
v6_data() {
	both 60 A "$bin/rc_data -d %d -g %g6 -p %p -t send,mix" "$bin/rc_data -d %d -g %g6 -p %p -t send,mix %a6"
}
v6_pp() {
	local srv
	ibv_rc_pingpong -d $LA -g "$(gid_index $LA $A6)" -p 18790 -c -n 100 & srv=$!
	wait_for 20 listening "" 18790 &&
	ibv_rc_pingpong -d $LB -g "$(gid_index $LB $B6)" -p 18790 -c -n 100 127.0.0.1 && wait $srv
}
try_v6only() {
	t "IPv6 only: two links" v6_links || { undo; return; }
	NSA=rove-a-$$ NSB=rove-b-$$ LA=rovea LB=roveb
	t "IPv6 only: ibv_rc_pingpong -c" v6_pp
	t "IPv6 only: rping, validated" rping_v A 6
	t "IPv6 only: every byte" v6_data
	undo
}

(($#)) || set -- v6only veth macvlan ipvlan ipvlan_l3 bridge bond vlan tap tun gre ipip vrf
for kind; do
	if [[ $kind == v6only ]]; then try_v6only; else try "$kind"; fi
done
done_testing
