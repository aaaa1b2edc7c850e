#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A kernel consumer (kmod/rove_ktest.c): two kernel QPs between two links and on
# one link, every operation, every poll context, posts from interrupts; and then
# the links go away under it.
# timeout: 600
. "$(dirname "$0")/lib.sh"

[[ -f $ktest ]] || skip_all "no rove_ktest.ko: make modules ROVE_TEST_MODULES=1"
extra_cleanup() { rmmod rove_ktest 2>/dev/null; }

topo_pair 1500 && links || bail "two links"

t "the module loads" timeout 500 insmod "$ktest" dev_a="$LA" dev_b="$LB" resident=1
ktest_points
t "its QPs are in rdma res" eval 'rdma res show qp | grep -q rove_ktest'
# One that has no memory of a program's, and none at all yet (hazard 60).
looked_at() { rdma res show mr -dd | grep "dev $LB.*rove_ktest" && rdma statistic show mr; }
t "its fast-registration MR in rdma res and rdma statistic" looked_at
t "link delete under a kernel consumer" timeout 60 rdma link delete "$LA"
ktest_points "$LA: drained when its device went away"
t "ip link del under a kernel consumer" timeout 60 ip -n "$NSB" link del vb
t "its link goes" wait_for 30 eval '[[ ! -e /sys/class/infiniband/$LB ]]'
ktest_points "$LB: drained when its device went away"
t "the module unloads" timeout 60 rmmod rove_ktest
ktest_points
t "rove unloads" timeout 60 rmmod rove
LA= LB=
done_testing
