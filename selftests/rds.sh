#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# RDS over RDMA (rds_rdma): rds.c on the two links.
# timeout: 200
. "$(dirname "$0")/ulp.sh"

need_modules rds rds_rdma
# RDS takes its rds_trans_sem with rdma_cm's handler_mutex held and the other way round: the report
# ends lockdep for all tests to come.  And its list of connections is found corrupt when it
# reconnects after its device has gone.
[[ ! -e /proc/lockdep ]] || skip_all "this kernel's checks stop at faults of RDS's own"
extra_cleanup() { topo_del; modprobe -q -r rds_rdma rds; } > /dev/null 2>&1
topo_pair 4200 && links || bail "two links"
before=$(packets)
c_points rds timeout 100 "$bin/rds" $A4 $B4 "$size"
n=$(($(packets) - before))
t "over the wire" test $n -ge $((size * 250))
t "rdma link delete" timeout 60 rdma link delete "$LA"
t "rds_rdma can be unloaded" wait_for 30 modprobe -r rds_rdma
done_testing
