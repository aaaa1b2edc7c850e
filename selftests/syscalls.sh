#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Posting costs no system call: 20,000 messages of ib_write_bw -s 64, both ends
# under strace, make fewer than 1,000 system calls beyond set-up.  Who polls in vain lets
# others have its CPU: that goes by time, not by messages, and does not count.
# timeout: 600
. "$(dirname "$0")/lib.sh"

topo_pair 4200 && links || bail "two links"

# calls PROGRAM COUNT OPTIONS: the sum over both ends, in $tmp/sum; sched_yield() is not
# among them
calls() {
	local n=$2 end
	rm -f "$tmp"/strace-*
	both 280 A "strace -f -c -o $tmp/strace-s $1 -F -d %d -x %g4 -p %p -n $n $3" \
		"strace -f -c -o $tmp/strace-c $1 -F -d %d -x %g4 -p %p -n $n $3 %s" || return
	local sum=0
	for end in s c; do
		sum=$((sum + $(awk '/usecs.call/ { col = index($0, "calls") + 4 }
			{ n = split(substr($0, 1, col), f, " ") }
			$NF == "sched_yield" { yields = f[n] }
			$NF == "total" { print f[n] - yields }' "$tmp/strace-$end")))
	done
	echo "$sum" > "$tmp/sum"
}

few() {		# PROGRAM COUNT LIMIT OPTIONS
	local base many
	calls "$1" 200 "$4" || return
	base=$(< "$tmp/sum")
	calls "$1" "$2" "$4" || return
	many=$(< "$tmp/sum")
	echo "$1 $4: $many system calls for $2 messages, $base for 200: $((many - base)) beyond set-up"
	cp "$tmp/strace-c" "$tmp/worst"
	((many - base < $3)) || { head -8 "$tmp/strace-c"; head -8 "$tmp/strace-s"; return 1; }
}

most=$((1000 * slow))
t "ib_write_bw -s 64: 20,000 messages, < $most system calls" few ib_write_bw 20000 $most "-s 64"
grep beyond "$tmp/t.out" | sed 's/^/# /'
[[ $1 == core ]] && done_testing
t "ib_send_bw -s 64: 20,000 messages, < $most system calls" few ib_send_bw 20000 $most "-s 64"
grep beyond "$tmp/t.out" | sed 's/^/# /'
t "ib_read_bw -s 64: 20,000 messages, < $most system calls" few ib_read_bw 20000 $most "-s 64"
grep beyond "$tmp/t.out" | sed 's/^/# /'

share_cpu() {
	local opts="-F -d %d -x %g4 -p %p -s 64 -n 500" end n
	both 120 A "taskset -c 0 strace -f -c -e trace=sched_yield -o $tmp/strace-s ib_send_lat $opts" \
		"taskset -c 0 strace -f -c -e trace=sched_yield -o $tmp/strace-c ib_send_lat $opts %s" || return
	for end in s c; do
		n=$(awk '$NF == "sched_yield" { print $4 }' "$tmp/strace-$end")
		echo "$end: ${n:-0} times"
		((n > 100 / slow)) || return	# where the kernel is slow, its tick comes first more often
	done
}
t "two programs that poll on one CPU let each other run" share_cpu
done_testing
