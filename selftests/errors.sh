#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A refused request is explained in the log: errors.c, and `rdma link add`.
# timeout: 120
. "$(dirname "$0")/lib.sh"

topo_pair 1500 && links || bail "two links"
[[ -x $bin/errors ]] || bail "make -C selftests"

c_points errors inns "$NSA" "$bin/errors" "$LA" "$(gid_index "$LA" $A4)"

# said WHAT COMMAND...: it fails, and the log says WHAT
said() {
	local want=$1; shift
	echo "rove-test: $*" > /dev/kmsg
	! "$@" || return
	dmesg | tac | sed '/rove-test: /q' | grep -F "$want" || { dmesg | tail -n 5; return 1; }
}
nA ip link add link va name va.7 type vlan id 7
t "link add on a VLAN: on its parent, says the log" said "va.7 is a VLAN: add the link on va" link_add "$NSA" rove9 rove va.7
t "on the loopback: it needs an Ethernet device" said "lo: a link needs an Ethernet device" link_add "$NSA" rove9 rove lo
t "a second time: there is one" said "va has a link already" link_add "$NSA" rove9 rove va
done_testing
