#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What goes wrong with a network, under checked traffic (flow.c): the connection
# goes on, with no byte wrong, lost or doubled, or it fails with the error and the
# event that stand here.  Both programs run in the initial namespace and talk
# about set-up there, so that only RDMA feels the fault.
#
#	faults.sh [core]	core: a few
# timeout: 700
. "$(dirname "$0")/lib.sh"
. "$here/flow.sh"

RETRY="failed: transport retry counter exceeded"
FLUSH="failed: Work Request Flushed Error"
# On a slow kernel the one end may be gone for longer than the other retries.
LATER=$FLUSH
((slow == 1)) || LATER="($FLUSH|$RETRY)"
set_up() { "$@" && links; }
two_ends() { set_up topo_pair 4200; }

# --- the port goes and comes ------------------------------------------------------

port_is() { [[ $(< "/sys/class/infiniband/$1/ports/1/state") == *$2 ]]; }
down_up() {
	nA ip link set va down && wait_for 10 port_is "$LA" DOWN && still && nA ip link set va up &&
	wait_for 10 port_is "$LA" ACTIVE
}
down_up_v6() {	# the kernel takes IPv6 addresses off a device that is down
	down_up && nA ip addr add $A6/64 dev va nodad
}
both_told() {
	told "$tmp/flow.a" error active && told "$tmp/flow.b" error active
}
told_five_times() { told "$tmp/flow.a" error active error active error active error active error active; }
flaps() {
	local i
	for ((i = 0; i < 5; i++)); do
		nM ip link set dev ma down && wait_for 10 port_is "$LA" DOWN &&
		nM ip link set dev ma up && wait_for 10 port_is "$LA" ACTIVE || return
	done
}

# --- addresses ------------------------------------------------------------------------

addr_away() { nA ip addr del $A4/24 dev va && wait_for 10 eval '! gid_index "$LA" $A4' && still; }
addr_back() { addr_away && nA ip addr add $A4/24 dev va; }
addr_of() { wait_for 10 gid_index "$LA" $A4; }	# and it is a GID again

# --- MTU -----------------------------------------------------------------------------

mtu() { nA ip link set va mtu "$1" && nB ip link set vb mtu "$1"; }
mtu_fits() { mtu 1500 && moves && mtu 9000 && moves && mtu 4200; }
mtu_small() { nA ip link set va mtu 1000 && still; }
mtu_back() { mtu_small && nA ip link set va mtu 4200; }
# A is told by ICMP that the path to B is narrower than it is, and believes it: what is said
# to be too big is a datagram of a socket that it has.
narrow() {	# -4|-6 MTU
	nA /usr/bin/python3 - "$1" $(addresses "$1") "$2" <<'EOF' || return
import socket, struct, sys
version, us, them, mtu = sys.argv[1], *sys.argv[2:4], int(sys.argv[4])
family = socket.AF_INET if version == "-4" else socket.AF_INET6
a, b = socket.inet_pton(family, us), socket.inet_pton(family, them)
sent = socket.socket(family, socket.SOCK_DGRAM)
sent.connect((them, 4791))
udp = struct.pack("!4H", sent.getsockname()[1], 4791, 8, 0)
if version == "-4":	# 3, 4: fragmentation needed
    quoted = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 28, 0, 0x4000, 64, 17, 0, a, b) + udp
    checksum = 0xffff - (0x0304 + mtu + sum(struct.unpack("!14H", quoted))) % 0xffff
    packet = struct.pack("!BBHHH", 3, 4, checksum, 0, mtu) + quoted
    raw = socket.socket(family, socket.SOCK_RAW, socket.IPPROTO_ICMP)
else:			# 2: packet too big; the kernel puts the checksum
    packet = struct.pack("!BBHIIHBB16s16s", 2, 0, 0, mtu, 6 << 28, 8, 17, 64, a, b) + udp
    raw = socket.socket(family, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
raw.sendto(packet, (us, 0))
EOF
	wait_for 10 believed "$@"
}
fragments() { nA awk '$1 == "Ip6FragCreates" { print $2 }' /proc/net/snmp6; }
believed() { local to; read -r _ to <<< "$(addresses "$1")"; nA ip "$1" route get "$to" | grep -q "mtu $2"; }

# --- a bond --------------------------------------------------------------------------

# A's end is a bond of two cables to a bridge.
topo_bond() {
	local p
	modprobe -q bonding
	make_namespaces
	NSM=$(new_ns m)
	nM ip link add br0 type bridge forward_delay 0 mcast_snooping 0 && nM ip link set dev br0 up || return
	for p in a0 a1 b; do
		nM ip link add m$p mtu 4200 type veth peer name x$p mtu 4200 && nM ip link set dev m$p master br0 up || return
	done
	nM ip link set dev xb netns "$NSB" name vb && nA ip link add va type bond mode active-backup miimon 50 || return
	for p in xa0 xa1; do
		nM ip link set dev $p netns "$NSA" && nA ip link set $p master va || return
	done
	set_end "$NSA" va 4200 $A4 $A6 && set_end "$NSB" vb 4200 $B4 $B6
}
active() { nA cat /sys/class/net/va/bonding/active_slave; }
other_than() { [[ $(active) == xa? && $(active) != "$1" ]]; }
failover() {
	local i now
	for ((i = 0; i < 3; i++)); do
		now=$(active)
		nM ip link set dev "m${now#x}" down && wait_for 10 other_than "$now" && moves &&
		nM ip link set dev "m${now#x}" up || return
	done
}
link_on_slave() {
	rdma link delete "$LA" && link_add "$NSA" "$LA" rove "$(active)" && wait_for 10 gid_index "$LA" $A4
}

# --- CPUs --------------------------------------------------------------------------------

cpu1=/sys/devices/system/cpu/cpu1/online
unplug() {
	local i
	for ((i = 0; i < 3; i++)); do
		echo 0 > $cpu1 && moves && echo 1 > $cpu1 && moves || return
	done
}
extra_cleanup() { [[ ! -e $cpu1 ]] || echo 1 > $cpu1; }

# --- now -----------------------------------------------------------------------------------

two_ends || bail "two links"
goes_on "ICMP says that 600 bytes fit, path MTU 1024" -4 'narrow -4 600'
goes_on "ICMPv6 says that 1280 bytes fit, path MTU 4096" -6 'narrow -6 1280' -m 4096
t "  and its packets go whole" eval '(($(fragments) == 0))'
nA ip route flush cache; nA ip -6 route flush cache	# it would believe so for ten minutes
goes_on "the netdev goes down and up" -4 down_up
t "  and both ends are told: port error, port active" both_told
goes_on "the address is removed and given back" -4 addr_back
t "  and is a GID again" addr_of
goes_on "MTU 1000 with a path MTU of 1024, and back" -4 mtu_back
nA ip addr add $A4/32 dev lo && nA ip addr add $A6/128 dev lo nodad || bail "addresses on lo"
t "lo has the address, too, and both ends are here, IPv4" "$bin/scale" $LA "$(gid_index $LA $A4)" $LA "$(gid_index $LA $A4)" cycles 5
t "the same over IPv6" "$bin/scale" $LA "$(gid_index $LA $A6)" $LA "$(gid_index $LA $A6)" cycles 5
nA ip addr del $A4/32 dev lo; nA ip addr del $A6/128 dev lo
[[ $1 == core ]] && done_testing
if [[ -e $cpu1 ]]; then
	goes_on "a CPU is taken away and given back, three times" -4 unplug
else
	skip "a CPU is taken away" "one CPU, or one that stays"
fi
topo_del
if topo_bond; then
	links || bail "links on a bond"
	goes_on "the bond's cable is pulled, three times" -4 failover
	t "a link on the bond's active slave, which has the bond's address" link_on_slave &&
		goes_on "with that link the bond's cable is pulled, three times" -4 failover
else
	lacks "a bond" "no bonding in this kernel"
fi
topo_del

two_ends || bail "two links"
goes_on "the netdev goes down and up, its IPv6 address is given back" -6 down_up_v6
goes_on "MTU 4200, 1500, 9000, 4200 with a path MTU of 1024" -4 mtu_fits
fails "MTU 1000 with a path MTU of 1024, for good" -4 mtu_small "$RETRY" "$RETRY"
nA ip link set va mtu 4200
fails "the address is removed for good" -4 addr_away "$RETRY" "$RETRY"
nA ip addr add $A4/24 dev va; wait_for 10 gid_index "$LA" $A4
fails "the peer's program is killed" -4 'kill -9 $flow_b' "$RETRY" ""
fails "the peer's link is deleted" -4 'rdma link delete $LB' "$RETRY" "$FLUSH"
topo_del
# the other end of the cable goes, too
two_ends || bail "two links"
fails "the namespace of one end is deleted" -4 'ip netns del $NSA' "$FLUSH" "$LATER"
topo_del
# a veth's other end goes with it
two_ends || bail "two links"
fails "the netdev is deleted" -4 'nA ip link del va' "$FLUSH" "$LATER"
topo_del
two_ends || bail "two links"
fails "the module is unloaded" -4 'rmmod rove' "$LATER" "$LATER"
topo_del
set_up topo_hop 4200 || bail "two links and a hop"
goes_on "the carrier flaps five times" -4 flaps
t "  and its end is told each time" told_five_times
goes_on "a tenth of all packets is lost, and some overtake others" -4 \
	'netem_hop loss 10% delay 1ms 1ms && moves && moves && netem_off'
done_testing
