#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# UCX: ucx_perftest over RC and UD, with IPv4 and IPv6 GIDs, eager and rendezvous
# messages, one-sided operations and atomics.  UCX_TLS leaves it no other way.
#
#	ucx.sh [core]
#
# timeout: 400
. "$(dirname "$0")/lib.sh"
command -v ucx_perftest > /dev/null || skip_all "no ucx_perftest (Debian: ucx-utils)"

topo_pair 4200 && links || bail "two links"

# Without this UCX drops what it gets on an IPv4 GID of rdma_rxe, which hands
# it the IP header where UCX looks for the GID.
env=
[[ $DRIVER_A$DRIVER_B == *rxe* ]] && env="UCX_UD_VERBS_ETH_DGID_CHECK=n"

# ucx GID-INDEX TRANSPORT TEST SIZE COUNT [OPTIONS]
ucx() {
	local gid=$1 tls=$2 test=$3 size=$4 n=$5; shift 5
	local cmd="UCX_NET_DEVICES=%d:1 UCX_TLS=$tls,self UCX_IB_GID_INDEX=$gid $env ucx_perftest -f"
	both 60 A "$cmd -p %p" "$cmd %s -p %p -t $test -s $size -n $n -w 5 $*"
}
# uct TRANSPORT TEST SIZE COUNT [OPTIONS]: below UCX's protocols, on the verbs
uct() {
	local tls=$1 test=$2 size=$3 n=$4; shift 4
	local cmd="UCX_IB_GID_INDEX=%g4 $env ucx_perftest -f -d %d:1 -x $tls"
	both 60 A "$cmd -p %p" "$cmd %s -p %p -t $test -s $size -n $n -w 5 $*"
}

for gid in %g4 %g6; do
	ip=IPv${gid#%g}
	for tls in rc_v ud_v; do
		t "$tls, $ip: tag_lat 8" ucx $gid $tls tag_lat 8 200
		t "$tls, $ip: tag_bw 64 KiB" ucx $gid $tls tag_bw 65536 50
		[[ $1 == core ]] && continue
		t "$tls, $ip: tag_bw 4 MiB, rendezvous" ucx $gid $tls tag_bw 4194304 5
		t "$tls, $ip: stream_bw 1000" ucx $gid $tls stream_bw 1000 200
		t "$tls, $ip: ucp_am_bw 10000" ucx $gid $tls ucp_am_bw 10000 50
	done
	t "rc_v, $ip: ucp_put_bw 64 KiB" ucx $gid rc_v ucp_put_bw 65536 50
	t "rc_v, $ip: ucp_get 64 KiB" ucx $gid rc_v ucp_get 65536 50
	t "rc_v, $ip: ucp_fadd" ucx $gid rc_v ucp_fadd 8 50
	t "rc_v, $ip: ucp_cswap" ucx $gid rc_v ucp_cswap 8 50
done
if [[ $1 != core ]]; then
	t "rc_verbs: put_lat short" uct rc_verbs put_lat 8 200
	t "rc_verbs: put_bw zcopy" uct rc_verbs put_bw 65536 50 -D zcopy
	t "rc_verbs: get zcopy" uct rc_verbs get 65536 50 -D zcopy
	t "rc_verbs: am_bw bcopy" uct rc_verbs am_bw 4000 100 -D bcopy
	t "rc_verbs: fadd" uct rc_verbs fadd 8 50
	t "ud_verbs: am_lat short" uct ud_verbs am_lat 8 200
	t "ud_verbs: am_bw bcopy" uct ud_verbs am_bw 3000 100 -D bcopy
fi
done_testing
