#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Management datagrams from user space (mad.c): QP1 as ib_umad sees it, over IPv4 and
# IPv6.  With "rxe", with rdma_rxe as the peer.
# timeout: 180
[[ $1 == rxe ]] && DRIVER_A=rxe
. "$(dirname "$0")/lib.sh"

[[ -x $bin/mad ]] || bail "make -C selftests"
topo_pair 4200 && links || bail "two links"
modprobe ib_umad || bail "ib_umad"

# umad_of LINK: its device
umad_of() {
	local f
	for f in /sys/class/infiniband_mad/umad*; do
		[[ $(cat "$f/ibdev") == "$1" ]] && { echo "/dev/infiniband/${f##*/}"; return; }
	done
	return 1
}
wait_for 10 umad_of "$LA" && wait_for 10 umad_of "$LB" || bail "umad devices"
c_points "IPv4" "$bin/mad" "$(umad_of "$LA")" "$(gid_index "$LA" $A4)" $A4 "$(umad_of "$LB")" "$(gid_index "$LB" $B4)" $B4
c_points "IPv6" "$bin/mad" "$(umad_of "$LA")" "$(gid_index "$LA" $A6)" $A6 "$(umad_of "$LB")" "$(gid_index "$LB" $B6)" $B6
done_testing
