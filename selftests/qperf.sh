#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# qperf: bandwidth, latency and atomics with verification, over rdma_cm (without it
# qperf knows LIDs only, which Ethernet has not).
# timeout: 300
. "$(dirname "$0")/lib.sh"
command -v qperf > /dev/null || skip_all "no qperf"

topo_pair 4200 && links || bail "two links"

qp() {
	local test=$1 i
	for i in 1 2 3 4 5; do
		both 60 A "qperf -lp %p" "qperf %a4 -lp %p -cm 1 -t 1 $test; rc=\$?; qperf %a4 -lp %p quit; exit \$rc" &&
		cat "$tmp/client" && grep -q '=' "$tmp/client" && return
		# its client may connect before its server listens
		grep -q 'Event rejected' "$tmp/client" "$tmp/server" || return 1
	done
	return 1
}
for test in rc_lat rc_bi_bw rc_bw rc_rdma_read_bw rc_rdma_read_lat rc_rdma_write_bw \
	    rc_rdma_write_lat rc_rdma_write_poll_lat rc_compare_swap_mr rc_fetch_add_mr \
	    ver_rc_compare_swap ver_rc_fetch_add; do
	t "$test" qp $test
done
done_testing
