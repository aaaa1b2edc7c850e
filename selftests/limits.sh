#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# query_device_ex is the truth, and a link costs what is used of it: limits.c.
#	limits.sh many		as many objects as there may be: takes 16 GiB
# timeout: 600
. "$(dirname "$0")/lib.sh"

topo_pair 4200 || bail "two devices"
memory() { awk '/^(Slab|VmallocUsed|Percpu):/ { s += $2 } END { print s }' /proc/meminfo; }
before=$(memory)
links || bail "two links"
after=$(memory)
[[ -x $bin/limits ]] || bail "make -C selftests"

# most of it ib_core's, for 1,024 GIDs in sysfs; on a debug kernel all of that has red zones
cost() { echo "two links: $((after - before)) KiB"; ((after - before < 8192 * slow)); }
[[ $1 == many ]] || t "two links with limits of a million objects: under $((8 * slow)) MiB" cost
ulimit -l unlimited
[[ $1 != many ]] || sysctl -qw vm.max_map_count=$((1 << 24))	# each queue is mapped

# What packets are written to: pages that the stack's helper takes for rove, as it does for TCP.
tracing=/sys/kernel/tracing
pages() {
	awk '{ cpu = $0; sub(/^[^[]*\[/, "", cpu); cpu += 0 }
	     / rove_take: / { page[cpu] = "" }
	     / mm_page_alloc: / { page[cpu] = pfn() }
	     / rove_taken: .*\[rove\]/ && page[cpu] { held[page[cpu]] = 1; n++ }
	     / mm_page_free: / { delete held[pfn()] }
	     END { print n + 0, length(held) }
	     function pfn() { match($0, /pfn=0x[0-9a-f]+/); return substr($0, RSTART, RLENGTH) }' $tracing/trace
}
none_kept() { [[ $(pages) == *" 0" ]]; }
extra_cleanup() { [[ ! -e $tracing/kprobe_events ]] || { echo 0 > $tracing/events/enable; : > $tracing/kprobe_events; }; }
given_back() {
	local e events="kprobes/rove_take kprobes/rove_taken kmem/mm_page_alloc kmem/mm_page_free" taken kept
	printf '%s\n' 'p:rove_take skb_page_frag_refill' 'r:rove_taken skb_page_frag_refill' > $tracing/kprobe_events || return
	for e in $events; do
		[[ $e != kmem/* ]] || echo 'order == 3' > $tracing/events/$e/filter
		echo 1 > $tracing/events/$e/enable || return
	done
	both 120 A "ib_write_bw -F -d %d -x %g4 -p %p -s 65536 -n 2000" || return
	read -r taken kept < <(pages)
	echo "$taken pages, $kept kept"
	((taken)) || return
	wait_for 10 none_kept || { echo "still: $(pages)"; return 1; }
	extra_cleanup
}
if [[ $1 == many ]]; then :
elif [[ -e $tracing/kprobe_events ]]; then t "who has sent and sends nothing more keeps no memory for it" given_back
else skip "memory to send from" "a kernel without kprobes"; fi

c_points limits inns "$NSA" "$bin/limits" all "$LA" "$(gid_index "$LA" $A4)" $1
done_testing
