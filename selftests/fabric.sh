#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# libfabric: fi_pingpong, which compares what it gets (-c), with the verbs provider's
# connected endpoints and with reliable datagrams on top of them.  With "core" one of
# the two ends as the server.
# timeout: 200
. "$(dirname "$0")/lib.sh"
command -v fi_pingpong > /dev/null || skip_all "no fi_pingpong (Debian: libfabric-bin)"

topo_pair 4200 && links || bail "two links"

pp() {
	local side=$1 opts=$2 dom= dev="-d %d"; shift 2
	# two ends in one namespace: the client's device follows from the address
	[[ $FLAT ]] && dev=
	[[ $opts == *ofi_rxm* ]] && dom="FI_UNIVERSE_SIZE=16"
	both 60 "$side" "$dom fi_pingpong -c $opts -d %d -B %p" "$dom fi_pingpong -c $opts $dev -P %p %a4" &&
	cat "$tmp/client" && grep -q MB/sec "$tmp/client"
}
sides="A B"; [[ $1 == core ]] && sides=A
for side in $sides; do
	t "server $side: verbs, connected, all sizes" pp $side "-p verbs -e msg -I 20 -S all"
	t "server $side: verbs, connected, 1 MiB" pp $side "-p verbs -e msg -I 10 -S 1048576"
	t "server $side: verbs;ofi_rxm, all sizes" pp $side "-p 'verbs;ofi_rxm' -e rdm -I 20 -S all"
done
done_testing
