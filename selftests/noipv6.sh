#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A kernel without IPv6 (ipv6.disable=1, or built so): links and traffic over
# IPv4.
# timeout: 120
. "$(dirname "$0")/lib.sh"

[[ -e /proc/net/if_inet6 ]] && skip_all "IPv6 is there (vm/run --kopt ipv6.disable=1)"

# lib.sh's set-up wants both
v4_links() {
	modprobe rove && ip netns add rove-a-$$ && ip netns add rove-b-$$ && NSA=rove-a-$$ NSB=rove-b-$$ || return
	ip link add va mtu 4200 netns $NSA type veth peer name vb mtu 4200 netns $NSB &&
	nA ip addr add $A4/24 dev va && nB ip addr add $B4/24 dev vb && nA ip link set va up && nB ip link set vb up &&
	link_add $NSA rovea rove va && link_add $NSB roveb rove vb && LA=rovea LB=roveb &&
	wait_for "$WAIT" gid_index $LA $A4 && wait_for "$WAIT" gid_index $LB $B4 && wait_for "$WAIT" port_active $LA
}
pp() { both 60 "$1" "ibv_rc_pingpong -d %d -g %g4 -p %p -c -n 100"; }
rping_v() { READY=cm_listening both 60 A "rping -s -a %a4 -p %p -V -C 10 -S 4000" "rping -c -a %a4 -p %p -V -C 10 -S 4000"; }
ud() { both 60 A "ibv_ud_pingpong -c -d %d -g %g4 -p %p -n 100"; }
v4_links || bail "two links"
t "ibv_rc_pingpong -c, server A" pp A
t "ibv_rc_pingpong -c, server B" pp B
t "rping, validated" rping_v
t "ibv_ud_pingpong" ud
t "links go" eval 'rdma link delete $LA && rdma link delete $LB'
done_testing
