#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Time and scale (scale.c): 10,000 connections one after another, 4,096 queue pairs
# at once; and everything at once for as many minutes as are named.  At
# the end there is as much memory as there was.
# Arguments: cycles (10000), queue pairs (4096), minutes of the soak (0).
# timeout: 7200
# expects: leaks
. "$(dirname "$0")/lib.sh"

cycles=${1:-10000} qps=${2:-4096} minutes=${3:-0}
[[ -x $bin/scale ]] || skip_all "no scale: make selftests"
topo_pair 4200 && links || bail "two links"
ends() { echo "$LA" "$(gid_index "$LA" $A4)" "$LB" "$(gid_index "$LB" $B4)"; }

# KiB of slab that cannot be given back, vmalloc, per-CPU and page tables; caches empty
memory() {
	echo 3 > /proc/sys/vm/drop_caches
	awk '/^(SUnreclaim|VmallocUsed|Percpu|PageTables|KernelStack):/ { sum += $2 } END { print sum }' /proc/meminfo
}
# KiB that the kernel has taken as pages, and that are in no account; a debug kernel's stacks are
# in pools of 16 KiB
pages() {
	echo 3 > /proc/sys/vm/drop_caches
	cat /proc/meminfo /proc/zoneinfo /sys/kernel/debug/stackdepot/stats 2> /dev/null |
		awk '/^MemTotal:/ { sum += $2 }
		/^(MemFree|Buffers|Cached|SwapCached|AnonPages|Slab|KernelStack|(Sec)?PageTables|VmallocUsed|Percpu):/ { sum -= $2 }
		$1 == "count:" { sum -= $2 * 4 }	# free, of a CPU
		$1 == "pools:" { sum -= $2 * 16 }
		END { print sum }'
}
settled() { local a b; a=$(memory); sleep 0.3; b=$(memory); ((a - b < 64 && b - a < 64)); }	# RCU has freed
# Since "remember": not one ring more, 1 MiB + 5 bytes for each of $1 connections, and of pages
# 2 MiB + $2 KiB.
as_before() {
	wait_for 30 settled
	local now=$(memory) now_pages=$(pages)
	echo "before: $mem KiB, $taken in pages, $ring mappings"
	echo "now: $now KiB, $now_pages in pages, $(mapped) mappings"
	(($(mapped) <= ring && now_pages - taken < 2048 + $2)) || return
	[[ -e $kmemleak ]] && { no_leaks; return; }
	((now - mem < 1024 + $1 * 5 / 1024))
}
seen() { say "$(tr '\n' ' ' < "$tmp/t.out")"; }
remember() { wait_for 30 settled; mem=$(memory) taken=$(pages) ring=$(mapped); }

# The first half also fills what rove keeps to send from (net_tx.c).
c_points "the first half" timeout 3000 "$bin/scale" $(ends) cycles $((cycles / 2))
remember
c_points "the second" timeout 3000 "$bin/scale" $(ends) cycles $((cycles - cycles / 2))
t "memory after $cycles connections" as_before $((cycles / 2)) "$cycles"	# half a page each
seen
c_points "$((qps / 4)) queue pairs" timeout 3000 "$bin/scale" $(ends) many $((qps / 4))
remember
c_points "$qps queue pairs" timeout 3000 "$bin/scale" $(ends) many "$qps"
t "memory after $qps queue pairs" as_before "$qps" $((qps * 2))
seen

# Everything at once: each program again and again, until the time is over.
soak() {
	local end=$((SECONDS + minutes * 60)) pids=() p rc=0 prog
	again() { while ((SECONDS < end)); do "$@" > "$tmp/soak.$BASHPID" 2>&1 || { echo "failed: $*"; tail -n 20 "$tmp/soak.$BASHPID"; return 1; }; done; }
	again timeout 900 "$bin/scale" $(ends) cycles 500 & pids+=($!)
	again timeout 900 "$bin/scale" $(ends) many 256 & pids+=($!)
	again timeout 900 "$bin/memory" $(ends) & pids+=($!)
	again env ROVE_BUSY=1 timeout 900 "$bin/odp" $(ends) & pids+=($!)
	again timeout 900 "$bin/srq" $(ends) & pids+=($!)
	again as_nobody timeout 900 "/tmp/scribbler.$$" $(ends) 20 & pids+=($!)
	for prog in "ib_write_bw -s 65536" "ib_read_bw -s 65536" "ib_send_bw -s 4096" "ib_send_bw -c UD -s 1024"; do
		port=$((port + 100))
		(tmp=$tmp/$port
		mkdir "$tmp"
		while ((SECONDS < end)); do
			both 900 A "$prog -F -d %d -x %g4 -p %p -D 10" || exit 1
		done) & pids+=($!)
	done
	for p in "${pids[@]}"; do wait "$p" || rc=1; done
	return $rc
}
if ((minutes)); then
	for_nobody scribbler || bail "a program of nobody's"
	remember
	t "everything at once for $minutes minutes" soak
	t "no object is left" wait_for 30 no_objects qp cq mr pd srq ctx
	t "memory after the soak" as_before $((minutes * 10000)) 8192
	seen
fi
done_testing
