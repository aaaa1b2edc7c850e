#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# VLANs on top of the linked device: their addresses are GIDs of the link, and
# traffic of such a GID carries the tag, both ways.
# timeout: 300
. "$(dirname "$0")/lib.sh"

topo_pair 4200 || bail "topology"
[[ $FLAT ]] && skip_all "needs a namespace"
V4A=10.78.0.1 V4B=10.78.0.2 V6A=fd78::1 V6B=fd78::2
vlan() {
	inns "$1" ip link add link "$2" name "$2.10" type vlan id 10 && inns "$1" ip link set "$2.10" up &&
	inns "$1" ip addr add "$3/24" dev "$2.10" && inns "$1" ip addr add "$4/64" dev "$2.10" nodad
}
t "a VLAN before the link is there" vlan "$NSA" va $V4A $V6A
links || bail "two links"
t "a VLAN after the link is there" vlan "$NSB" vb $V4B $V6B
for pair in "$LA $V4A" "$LA $V6A" "$LB $V4B" "$LB $V6B"; do
	t "${pair#* } of the VLAN is a GID of ${pair% *}" wait_for "$WAIT" gid_index $pair
done

cap() {
	spawn "$NSB" tcpdump -i vb -nn -e -U -w "$tmp/cap" udp port 4791 or vlan > "$tmp/tcpdump" 2>&1 & dump=$!
	wait_for 20 grep -q 'listening on' "$tmp/tcpdump"
}
# pp SERVER-END ADDRESS-A ADDRESS-B
pp() {
	local ga gb; ga=$(gid_index "$LA" "$2") gb=$(gid_index "$LB" "$3")
	if [[ $1 == A ]]; then
		both 60 A "ibv_rc_pingpong -d %d -g $ga -p %p -c -n 100" "ibv_rc_pingpong -d %d -g $gb -p %p -c -n 100 %s"
	else
		both 60 B "ibv_rc_pingpong -d %d -g $gb -p %p -c -n 100" "ibv_rc_pingpong -d %d -g $ga -p %p -c -n 100 %s"
	fi
}
count() { tcpdump -nn -r "$tmp/cap" "$1" 2>/dev/null | wc -l; }
tagged() {
	end_capture $dump || return
	local with all
	with=$(count 'vlan 10 and udp port 4791') all=$(count 'udp port 4791 or (vlan and udp port 4791)')
	echo "$with of $all RoCE packets carry the tag"
	((with >= 200 && with == all))
}
cap
t "pingpong over the VLAN, IPv4, server A" pp A $V4A $V4B
t "pingpong over the VLAN, IPv6, server B" pp B $V6A $V6B
t "all of it carried the tag" tagged
t "pingpong beside it, without a tag" pp A $A4 $B4

on_vlan() {	# a link on a VLAN device: the log names the parent
	! nA rdma link add rovev type rove netdev va.10 && dmesg | tail -n 5 | grep -q 'va.10.*va'
}
nA rdma link delete "$LA"
[[ $DRIVER_A == rove ]] && t "a link on the VLAN itself is refused with a reason" on_vlan
done_testing
