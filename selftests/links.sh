#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Links come and go: `rdma link add` and `delete`, netdevs of all kinds, VLANs,
# namespaces, the port taken by somebody else, IPv6 off.
# timeout: 400
. "$(dirname "$0")/lib.sh"

modprobe rove || bail "modprobe rove"
LA=
refused() { ! "$@"; }
says() { dmesg | tail -n 4 | grep -q "$1" || { dmesg | tail -n 4; return 1; }; }
port_free() { [[ -z $(inns "${1:-}" ss -Huln "sport = :4791") ]]; }

# --- which netdevs -----------------------------------------------------------

on_device() {	# KIND ARGS...
	local kind=$1; shift
	ip link add rdev0 "$@" type "$kind" && ip link set rdev0 up &&
	rdma link add rove0 type rove netdev rdev0 && [[ $(< /sys/class/infiniband/rove0/parent) == rdev0 ]] &&
	ibv_devinfo -v -d rove0 && rdma link delete rove0 && no_links
	local rc=$?
	ip link del rdev0
	return $rc
}
on_child() {	# KIND: on top of a dummy
	ip link add base0 type dummy && ip link set base0 up && on_device "$1" link base0
	local rc=$?
	ip link del base0
	return $rc
}
on_tap() {
	ip tuntap add rdev0 mode tap && ip link set rdev0 up && rdma link add rove0 type rove netdev rdev0 && rdma link delete rove0
	local rc=$?
	ip link del rdev0
	return $rc
}
vlan_refused() {
	ip link add base0 type dummy && ip link add link base0 name base0.7 type vlan id 7
	refused rdma link add rove0 type rove netdev base0.7 && says "base0.7 is a VLAN: add the link on base0"
	local rc=$?
	ip link del base0
	return $rc
}
on_tun() {	# ib_core does not tell of its addresses
	ip tuntap add tun7 mode tun && ip link set tun7 up && ip addr add 10.99.6.1/24 dev tun7 &&
	rdma link add rove0 type rove netdev tun7 && says "tun7 has no Ethernet address" && wait_for 10 gid_index rove0 10.99.6.1 &&
	ip addr add 10.99.6.2/24 dev tun7 && wait_for 10 gid_index rove0 10.99.6.2 &&
	{ [[ ! -e /proc/net/if_inet6 ]] || { ip addr add fd99:6::1/64 dev tun7 && wait_for 10 gid_index rove0 fd99:6::1; }; } &&
	ip link del tun7 && wait_for 10 no_links
	local rc=$?
	ip link del tun7 2>/dev/null
	return $rc
}
other_refused() {
	ip link add nl7 type nlmon || cannot "no nlmon" || return
	refused rdma link add rove0 type rove netdev nl7 && says "nl7 is not an Ethernet"
	local rc=$?
	ip link del nl7
	return $rc
}
lo_refused() { refused rdma link add rove0 type rove netdev lo && says "lo: "; }

for kind in dummy bridge bond veth; do
	modprobe -q $kind
	t "a link on a $kind" on_device $kind
done
for kind in macvlan; do modprobe -q $kind; t "a link on a $kind" on_child $kind; done
modprobe -q tun
t "a link on a tap" on_tap
t "a link on a VLAN is refused, and the log names the parent" vlan_refused
t "a link on a tun, and addresses that come later" on_tun
t "a link on what carries no IP is refused" other_refused
t "a link on the loopback is refused" lo_refused

# --- names, twice, loops -------------------------------------------------------

twice() {
	ip link add d0 type dummy && ip link add d1 type dummy && rdma link add rove0 type rove netdev d0 &&
	refused rdma link add rove1 type rove netdev d0 && says "d0 has a link already" &&
	refused rdma link add rove0 type rove netdev d1 &&
	rdma link add rove1 type rove netdev d1 && rdma link delete rove0 && ! port_free &&
	rdma link add rove2 type rove netdev d0 && rdma link delete rove1 && rdma link delete rove2 && port_free
	local rc=$?
	ip link del d0; ip link del d1
	return $rc
}
loop() {
	local i
	ip link add d0 type dummy
	for i in {1..20}; do
		rdma link add rove0 type rove netdev d0 && rdma link delete rove0 || break
	done
	no_links && port_free
	local rc=$?
	ip link del d0
	return $rc
}
race() {	# add and delete against each other and against the netdev
	local i
	for i in {1..8}; do
		ip link add d0 type dummy
		rdma link add rove0 type rove netdev d0 &
		rdma link delete rove0 &
		rdma link add rove1 type rove netdev d0 &
		ip link del d0 &
		wait
	done > /dev/null 2>&1
	wait_for 20 no_links && wait_for 20 port_free
}
renamed() {
	ip link add d0 type dummy && rdma link add rove0 type rove netdev d0 && ip link set d0 name d9 &&
	[[ $(< /sys/class/infiniband/rove0/parent) == d9 ]] && rdma link show rove0/1 | grep -q "netdev d9" &&
	rdma link delete rove0
	local rc=$?
	ip link del d9
	return $rc
}
t "one link a netdev, one netdev a name" twice
t "add and delete 20 times" loop
t "add, delete and ip link del at once" race
t "a renamed netdev" renamed

# --- VLANs on top ------------------------------------------------------------------

vlan_gids() {
	ip link add d0 type dummy && ip link set d0 up && rdma link add rove0 type rove netdev d0 &&
	ip link add link d0 name d0.7 type vlan id 7 && ip link set d0.7 up && ip addr add 10.99.7.1/24 dev d0.7 &&
	wait_for 20 gid_index rove0 10.99.7.1 &&
	[[ $(< /sys/class/infiniband/rove0/ports/1/gid_attrs/ndevs/$(gid_index rove0 10.99.7.1)) == d0.7 ]]
	local rc=$?
	rdma link delete rove0; ip link del d0
	return $rc
}
t "addresses of a VLAN on top are GIDs" vlan_gids

# The address is that of a netdev above the link's, and packets come by that.
upper_traffic() {	# KIND ARGS...
	local kind=$1 ns srv; shift
	ns=$(new_ns u) && ip link add d0 type veth peer name p0 && ip link set p0 netns "$ns" &&
	ip -n "$ns" addr add 10.99.5.2/24 dev p0 && ip -n "$ns" link set p0 up &&
	ip link add up0 type "$kind" "$@" && ip link set d0 down && ip link set d0 master up0 && ip link set d0 up && ip link set up0 up &&
	ip addr add 10.99.5.1/24 dev up0 &&
	rdma link add rove0 type rove netdev d0 && inns "$ns" rdma link add rove1 type rove netdev p0 &&
	wait_for 20 gid_index rove0 10.99.5.1 && wait_for 20 gid_index rove1 10.99.5.2 && {
		timeout 60 ibv_rc_pingpong -d rove0 -g "$(gid_index rove0 10.99.5.1)" -p 18710 -n 50 -c & srv=$!
		wait_for 20 listening "" 18710
		timeout 60 ibv_rc_pingpong -d rove1 -g "$(gid_index rove1 10.99.5.2)" -p 18710 -n 50 -c 127.0.0.1 && wait $srv
	}
	local rc=$?
	rdma link delete rove0; rdma link delete rove1; ip link del d0; ip link del up0; ip netns del "$ns"
	return $rc
}
t "the address of a bridge above the link" upper_traffic bridge forward_delay 0
t "the address of a bond above the link" upper_traffic bond mode active-backup miimon 100

# --- the port is taken, IPv6 is off ---------------------------------------------------

port_taken() {
	modprobe rdma_rxe || cannot "no rdma_rxe" || return
	ip link add d0 type dummy
	ip link add d1 type dummy
	# a newer rdma_rxe takes it with its first link only
	rdma link add rxe0 type rxe netdev d1 && refused rdma link add rove0 type rove netdev d0 &&
	says "port 4791 is taken.*rdma_rxe" && [[ ! -d /sys/class/infiniband/rove0 ]]
	local rc=$?
	rdma link delete rxe0; modprobe -r rdma_rxe
	((rc)) || rdma link add rove0 type rove netdev d0 || rc=1
	rdma link delete rove0; ip link del d0; ip link del d1
	return $rc
}
no_ipv6() {
	sysctl -qw net.ipv6.conf.all.disable_ipv6=1
	ip link add d0 type dummy && ip link set d0 up && ip addr add 10.99.8.1/24 dev d0 &&
	rdma link add rove0 type rove netdev d0 && wait_for 20 gid_index rove0 10.99.8.1
	local rc=$?
	rdma link delete rove0; ip link del d0
	sysctl -qw net.ipv6.conf.all.disable_ipv6=0
	return $rc
}
t "port 4791 taken by rdma_rxe is said in the log" port_taken
t "a link with IPv6 switched off" no_ipv6

# --- namespaces --------------------------------------------------------------------------

ns_link() {	# a link in a namespace that dies, with its netdev
	local ns
	ns=$(new_ns x) && ip link add d0 type "$1" && ip link set d0 netns "$ns" && inns "$ns" ip link set d0 up &&
	inns "$ns" rdma link add rove0 type rove netdev d0 && ! port_free "$ns" && port_free && ip netns del "$ns" &&
	wait_for 30 no_links
}
ns_move() {	# the netdev moves out: the link goes
	local ns
	ns=$(new_ns x) && ip link add d0 type dummy && rdma link add rove0 type rove netdev d0 && ip link set d0 netns "$ns" &&
	wait_for 30 no_links && wait_for 10 port_free && inns "$ns" rdma link add rove0 type rove netdev d0 &&
	inns "$ns" rdma link delete rove0 && ip netns del "$ns"
}
ns_exclusive() {	# the ib_device is moved to the namespace of its netdev
	local ns
	# possible only while there is no other namespace
	wait_for 20 rdma system set netns exclusive && ns=$(new_ns x) && ip link add d0 type dummy &&
	ip link set d0 netns "$ns" && inns "$ns" ip link set d0 up && inns "$ns" ip addr add 10.99.9.1/24 dev d0 &&
	inns "$ns" rdma link add rove0 type rove netdev d0 && to_netns rove0 "$ns" &&
	inns "$ns" rdma link | grep -q rove0 && ! rdma link | grep -q rove0 &&
	inns "$ns" ibv_devinfo -v -d rove0 | grep -q 10.99.9.1
	local rc=$?
	ip netns del "$ns"
	wait_for 30 no_links || rc=1
	wait_for 30 rdma system set netns shared || rc=1
	return $rc
}
t "a namespace dies with a link in it" ns_link dummy
t "a namespace dies with a link on a veth in it" ns_link veth
t "a netdev moves to another namespace" ns_move
t "exclusive mode: rdma dev set moves a link to its netdev's namespace" ns_exclusive
done_testing
