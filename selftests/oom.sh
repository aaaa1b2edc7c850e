#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Memory runs out under checked traffic.  What is to happen: a queue pair that does not
# fit into a control group is refused with ENOMEM, and nobody is killed for it (though the
# program may be, when a page of its own is wanted just then); a program that the OOM
# killer ends leaves nothing; whoever is not in that group does not notice; and when all
# of the machine's memory is wanted, connections go on.
# timeout: 300
# expects: oom-killer
. "$(dirname "$0")/lib.sh"

[[ -x $bin/scale && -x $bin/hostile_ring ]] || skip_all "no programs: make selftests"
new_cgroup memory || skip_all "no memory control groups"
topo_pair 4200 && links || bail "two links"
ends() { echo "$LA" "$(gid_index "$LA" $A4)" "$LB" "$(gid_index "$LB" $B4)"; }

echo $((40 << 20)) > $cg/memory.max && echo 0 > $cg/memory.swap.max 2>/dev/null
extra_cleanup() { echo 1 > $cg/cgroup.kill; wait_for 10 rmdir $cg; }
oom_kills() { awk '/^oom_kill / { print $2 }' /proc/vmstat; }
killed() { awk '/^oom_kill / { print $2 }' $cg/memory.events; }
nothing_of() {	# PROGRAM
	local kind
	for kind in qp cq mr pd ctx; do ! rdma resource show $kind | grep -q "comm $1" || return; done
}

checked_traffic
rounds() { od -An -t u8 "$tmp/rounds" 2>/dev/null | tr -d ' '; }
goes_on() { local r; r=$(rounds); wait_for 60 eval "(($(rounds) >= 0)) && (( \$(rounds) > $r + 20 ))" && ! gone $traffic; }

refused() {
	local try
	for try in 1 2 3 4 5; do
		# the page that scale's last words go to: at nobody's cost
		echo > "$tmp/many"
		(in_cgroup "$bin/scale" $(ends) many 4096) >> "$tmp/many" 2>&1; cat "$tmp/many"
		grep -q "Cannot allocate memory" "$tmp/many" && return
		# killed: what for?  The last report has who asked for memory.
		dmesg | tac | sed '/invoked oom-killer/q' | tac | sed '/Memory cgroup stats/q' > "$tmp/report"
		grep -q 'scale invoked' "$tmp/report" && ! grep -F '[rove]' "$tmp/report" || return
	done
	return 1
}
t "4096 queue pairs do not fit: refused, nobody killed for them" refused
t "nothing is left of those that did" wait_for 30 nothing_of scale
t "traffic beside it goes on" goes_on

# A program with connections that eats memory till it is killed.
eater() {
	local before=$(killed)
	in_cgroup /usr/bin/python3 -c '
import subprocess, sys, os
held = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
os.wait4(-1, os.WNOHANG)
hog = []
while True: hog.append(bytearray(1 << 20))' timeout 60 "$bin/scale" $(ends) cycles 100000 &
	wait_for 60 eval '(($(killed) > before))'
	local rc=$?
	echo 1 > $cg/cgroup.kill
	wait $!
	return $rc
}
t "a program with connections is killed for want of memory" eater
t "nothing is left of it" wait_for 30 nothing_of scale
t "traffic beside it still goes on" goes_on

# All of the machine's: caches and whoever is largest go; who is to die first is named.
pressure() {
	local was=$(oom_kills)
	(echo 1000 > /proc/self/oom_score_adj; exec timeout -s KILL $((60 * slow)) /usr/bin/python3 -c '
hog = []
while True: hog.append(bytearray(b"x" * (1 << 20)))') &
	wait $!
	# so does timeout end it: who has killed counts
	(($? == 137 && $(oom_kills) > was))
}
echo -1000 > /proc/$traffic/oom_score_adj
t "all memory is wanted, and the largest is killed" pressure
t "traffic beside it goes on, every byte right" goes_on
traffic_was_right
done_testing
