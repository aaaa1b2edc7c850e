#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# ibv_devinfo -v, ibstat and ibstatus tell the truth about the link: state, MTU, GIDs.
# timeout: 120
. "$(dirname "$0")/lib.sh"

topo_pair 4200 && links || bail "two links"

has() { ibv_devinfo -v -d "$LA" > "$tmp/info" && grep -qE "$1" "$tmp/info" || { cat "$tmp/info"; return 1; }; }
set_mtu() { nA ip link set va mtu "$1" && wait_for "$WAIT" has "active_mtu:[[:space:]]*$2 "; }
state_is() { wait_for "$WAIT" has "state:[[:space:]]*$1"; }
guid() { < "/sys/class/infiniband/$LA/node_guid" tr -d :; }
stat_has() { ibstat "$LA" "${@:2}" | tee "$tmp/info" | grep -q "^[[:space:]]*$1$" || { cat "$tmp/info"; return 1; }; }
peer_down() { nB ip link set vb down && state_is PORT_DOWN; }
peer_up() { nB ip link set vb up && state_is PORT_ACTIVE; }
addr_del() { nA ip addr del 10.78.0.1/24 dev va && wait_for "$WAIT" eval '! gid_index $LA 10.78.0.1'; }
addr_add() { nA ip addr add 10.78.0.1/24 dev va && wait_for "$WAIT" gid_index "$LA" 10.78.0.1; }

t "ibv_devinfo -v runs" has "hca_id:[[:space:]]*$LA"
t "port is active, Ethernet" has "link_layer:[[:space:]]*Ethernet"
t "transport is InfiniBand" has "transport:[[:space:]]*InfiniBand"
t "ibstat: the node's GUID" stat_has "Node GUID: 0x$(guid)"
t "ibstat: the port is active, Ethernet" eval 'stat_has "State: Active" 1 && stat_has "Link layer: Ethernet" 1'
t "ibstatus: the default GID" eval 'ibstatus "$LA" | grep -q "default gid:.*fe80:"'
t "a GID of the IPv4 address" gid_index "$LA" $A4
t "a GID of the IPv6 address" gid_index "$LA" $A6
t "a GID of the link-local address" has "GID.*fe80:"
t "a new address becomes a GID" addr_add
t "a deleted address is no GID any more" addr_del
t "active MTU 4096 at netdev MTU 4200" set_mtu 4200 4096
t "active MTU 1024 at netdev MTU 1500" set_mtu 1500 1024
t "active MTU 512 at netdev MTU 1000" set_mtu 1000 512
t "active MTU 4096 at netdev MTU 9000" set_mtu 9000 4096
t "port down when the carrier goes" peer_down
t "ibstat: the port is down" stat_has "State: Down" 1
t "port up when the carrier is back" peer_up
done_testing
