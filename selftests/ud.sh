#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# UD by the distribution's programs: ibv_ud_pingpong and perftest over IPv4 and
# IPv6, polling and with events, one receiver and many, with rdma_cm and without.
# With "core" only the first few, with "rxe" these with rdma_rxe as the peer.
# timeout: 600
[[ $1 == rxe ]] && DRIVER_A=rxe && set -- core
. "$(dirname "$0")/lib.sh"

topo_pair 4200 && links || bail "two links"

# pp SERVER-END GID OPTIONS...
pp() {
	local side=$1 gid=$2; shift 2
	both 60 "$side" "ibv_ud_pingpong -c -d %d -g $gid -p %p $*"
}

# perftest's CQ is too small for its latency test with events, and rdma_rxe stops for good
# when that happens.
overrun() {
	local before full
	[[ $DRIVER_A == rxe ]] || return
	full=$(dmesg | grep -c 'rxe_cq_post: queue full')
	before=$(cat "$tmp/full" 2> /dev/null || echo 0)
	echo $full > "$tmp/full"
	((full > before))
}

# pt SERVER-END PROGRAM OPTIONS...; -6: over IPv6
pt() {
	local side=$1 prog=$2 gid="-x %g4" opts; shift 2
	opts="$*"
	[[ $opts == *-6* ]] && { gid="-x %g6"; opts=${opts//-6/}; }
	lucky overrun measured 60 "$side" "$prog -c UD -F -d %d $gid -p %p $opts"
}

for side in A B; do
	for gid in %g4 %g6; do
		t "ibv_ud_pingpong, server $side, IPv${gid#%g}" pp $side $gid -n 100
		t "ibv_ud_pingpong -e, server $side, IPv${gid#%g}" pp $side $gid -n 500 -e
	done
	t "ib_send_bw, server $side" pt $side ib_send_bw -n 1000
	t "ib_send_lat -e, server $side" pt $side ib_send_lat -n 200 -e
done
[[ $1 == core ]] && done_testing
for size in 1 2 3 1024 4095 4096; do
	t "ibv_ud_pingpong of $size bytes" pp A %g4 -e -s $size -n 50
done
t "ib_send_bw, all sizes" pt A ib_send_bw -a -n 100
t "ib_send_bw, IPv6" pt A ib_send_bw -6 -n 1000
t "ib_send_bw, both directions" pt A ib_send_bw -b -n 500
t "ib_send_bw, events" pt A ib_send_bw -e -n 500
t "ib_send_bw, lists of 16" pt A ib_send_bw -l 16 -s 64 -n 1600
t "ib_send_bw, inline" pt A ib_send_bw -I 64 -s 64 -n 1000
t "ib_send_bw, 4 QPs" pt A ib_send_bw -q 4 -n 500
t "ib_send_lat, all sizes" pt A ib_send_lat -a -n 20 -e
t "ib_send_lat, IPv6" pt A ib_send_lat -6 -n 100 -e
t "ib_send_lat, inline" pt A ib_send_lat -I 64 -s 32 -n 100 -e
done_testing
