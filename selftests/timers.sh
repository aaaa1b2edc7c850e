#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A program that has very many timers expire at once, each of which sends (timers.c), keeps
# softirqs off no longer than others who have much to send.
# timeout: 120
. "$(dirname "$0")/lib.sh"

topo_pair 4200 && links || bail "two links"
[[ -x $bin/timers ]] || bail "make -C selftests"
ulimit -l unlimited
tracing=/sys/kernel/tracing
[[ -e $tracing/events/irq/softirq_entry ]] || skip_all "a kernel without tracepoints"
extra_cleanup() { echo 0 > $tracing/events/irq/enable; echo 0 > $tracing/events/irq/filter; : > $tracing/trace; }

# the longest that timers ran in one go, ms
longest() {
	awk '{ cpu = $0; sub(/^[^[]*\[/, "", cpu); cpu += 0
	       match($0, / [0-9]+\.[0-9]+: /); at = substr($0, RSTART) + 0 }
	     / softirq_entry: / { since[cpu] = at }
	     / softirq_exit: / && cpu in since { if (at - since[cpu] > most) most = at - since[cpu]; delete since[cpu]; n++ }
	     END { if (!n) exit 1; printf "%d\n", most * 1000 }' $tracing/trace
}
in_pieces() {
	local most took i
	# softirqs are late where the machine has no time for the guest: the best of three
	for ((i = 0; i < 3; i++)); do
		: > $tracing/trace
		"$bin/timers" "$LA" "$(gid_index "$LA" $A4)" "$LB" "$(gid_index "$LB" $B4)" || return
		took=$(longest) || { echo "nothing was traced"; return 1; }
		echo "timers ran for $took ms at most"
		[[ $most ]] && ((took >= most)) || most=$took
	done
	((most < 30 * slow))
}
for when in entry exit; do
	echo 'vec == 8' > $tracing/events/irq/softirq_$when/filter || bail "a filter"
	echo 1 > $tracing/events/irq/softirq_$when/enable
done
t "many timers that expire at once leave time to others" in_pieces
t "nothing is left" wait_for 20 no_objects qp cq mr
done_testing
