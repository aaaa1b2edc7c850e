#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A slice of make bench, against a collapse: far less than what rove is to reach
# beside rdma_rxe, and far more than a broken data path gives.
# timeout: 400
. "$(dirname "$0")/lib.sh"

modprobe -n rdma_rxe 2>/dev/null || skip_all "no rdma_rxe to compare with"
"$here/bench/measure" slice "${ROUNDS:-2}" "$tmp/slice" > "$tmp/measure" 2>&1 ||
	{ sed 's/^/# /' "$tmp/measure"; bail "measuring"; }
sed 's/^/# /' "$tmp/measure"

# over FACTOR CASE SIZE
over() {
	local ratio
	ratio=$(/usr/bin/python3 "$here/bench/table.py" --ratio "$tmp/slice" "$2" "$3" 4096) || return
	echo "$ratio times rdma_rxe's"
	awk -v r="$ratio" -v f="$1" 'BEGIN { exit !(r > f) }'
}

t "WRITE 64 KiB: more than 1.2 times rdma_rxe's bandwidth" over 1.2 write 65536
sed 's/^/# /' "$tmp/t.out"
t "WRITE 64 B: more than 1.5 times rdma_rxe's messages a second" over 1.5 write 64
sed 's/^/# /' "$tmp/t.out"
t "SEND 64 B: more than 1.5 times rdma_rxe's messages a second" over 1.5 send 64
sed 's/^/# /' "$tmp/t.out"
done_testing
