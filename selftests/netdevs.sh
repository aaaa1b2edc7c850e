#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Every kind of Ethernet netdev can carry a link: GIDs of its addresses, port
# state of its carrier, active MTU of its MTU, traffic of the link to itself,
# and the link goes when the device does.
# timeout: 400
. "$(dirname "$0")/lib.sh"

need_driver
DRV=$DRIVER_A X=${DRIVER_A}x
active() { wait_for "$WAIT" port_active $X; }
mtu_is() { ibv_devinfo -d $X | grep -qE "active_mtu:[[:space:]]*$1 "; }
no_link() { [[ ! -e /sys/class/infiniband/$X ]]; }

# use DEV: what every kind must do
use() {
	local dev=$1 g pid
	ip addr add 10.79.0.1/24 dev "$dev" && ip link set "$dev" up && rdma link add $X type $DRV netdev "$dev" || return
	wait_for "$WAIT" gid_index $X 10.79.0.1 || { echo "no GID"; return 1; }
	[[ $2 == nocarrier ]] && { ! port_active $X; return; }
	active || { echo "port is not active"; return 1; }
	ip link set "$dev" mtu 1500 && wait_for "$WAIT" mtu_is 1024 || { echo "MTU 1500"; return 1; }
	ip link set "$dev" mtu 1000 && wait_for "$WAIT" mtu_is 512 || { echo "MTU 1000"; return 1; }
	g=$(gid_index $X 10.79.0.1)
	timeout 60 ibv_rc_pingpong -d $X -g "$g" -m 512 -p 18777 -c -n 50 > "$tmp/s" 2>&1 & pid=$!
	wait_for 20 listening "" 18777
	timeout 60 ibv_rc_pingpong -d $X -g "$g" -m 512 -p 18777 -c -n 50 127.0.0.1 > "$tmp/c" 2>&1 || { cat "$tmp/s" "$tmp/c"; return 1; }
	wait $pid || { cat "$tmp/s"; return 1; }
	ip link set "$dev" down
	wait_for "$WAIT" eval '! port_active $X' || { echo "port stays active"; return 1; }
	ip link set "$dev" up; active
}
extra_cleanup() {
	rdma link delete $X
	ip link del br7; ip link del bond7; ip link del mv7; ip link del tap7; ip link del du7; ip link del ve7
} 2>/dev/null

with_del() { use "$@" && ip link del "$1" && wait_for "$WAIT" no_link; }
with_delete() { use "$@" && rdma link delete $X && no_link; }

on_veth() { ip link add ve7 type veth peer name ve8 && ip link set ve8 up && with_del ve7; }
on_dummy() { ip link add du7 type dummy && with_del du7; }
on_bridge() {
	ip link add br7 type bridge forward_delay 0 && ip link add ve7 type veth peer name ve8 &&
	ip link set ve8 master br7 up && ip link set ve7 up && with_del br7
}
on_bond() {
	ip link add bond7 type bond mode active-backup miimon 100 && ip link add ve7 type veth peer name ve8 &&
	ip link set ve8 up && ip link set ve7 master bond7 && ip link set bond7 up && with_del bond7
}
on_macvlan() {
	ip link add ve7 type veth peer name ve8 && ip link set ve7 up && ip link set ve8 up &&
	ip link add link ve7 name mv7 type macvlan mode bridge && with_del mv7
}
on_tap() { modprobe -q tun; ip tuntap add tap7 mode tap && with_del tap7 nocarrier; }
on_virtio() {
	modprobe virtio_net || cannot "no virtio_net" || return
	wait_for 10 test -e /sys/class/net/eth1 || cannot "no virtio NIC" || return
	ip link set eth1 up; with_delete eth0
	local rc=$?
	ip addr flush dev eth0; ip link set eth0 mtu 1500 down; ip link set eth1 down
	return $rc
}
for kind in dummy veth bridge bond macvlan tap virtio; do
	t "a link on a $kind" on_$kind
	extra_cleanup
done
done_testing
