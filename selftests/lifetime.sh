#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# How objects come, change and go (lifetime.c): thousands of each, sizes, every
# transition, failing copies, timers and stuck packets at destroy; nothing is
# left of them.  Argument: how many of each (2000).
# timeout: 900
# expects: leaks
. "$(dirname "$0")/lib.sh"

n=${1:-2000}
[[ -x $bin/lifetime ]] || skip_all "no lifetime: make selftests"
topo_pair 1500 && links || bail "two links"

life() {	# SECONDS MODE [NUMBER]: the program's test points as ours
	timeout -k 5 "$1" "$bin/lifetime" "$LA" "$(gid_index "$LA" $A4)" "$LB" "$(gid_index "$LB" $B4)" "${@:2}" > "$tmp/life" 2>&1
	take_points "$2" "$tmp/life" "$2: "
}
no_res() { no_objects qp cq mr pd cm_id ctx; }
no_memory() { (($(mapped) <= at_first)); }
unreclaimable() { sed -n 's/^SUnreclaim: *\([0-9]*\).*/\1/p' /proc/meminfo; }
nothing_left() { wait_for 20 no_res && wait_for 20 no_memory; }
# less than half a kilobyte for each object made
small() {
	local now
	[[ -e $kmemleak ]] && { no_leaks; return; }
	now=$(unreclaimable)
	echo "$1 to $now KiB"
	((now - $1 < n * 7 / 2))
}

at_first=$(mapped)		# those of QP 1
counted() {
	local pid rc
	spawn "$NSA" ibv_rc_pingpong -d "$LA" -g "$(gid_index "$LA" $A4)" -p 18700 > "$tmp/held" & pid=$!
	wait_for 20 listening "$NSA" 18700 && ! no_memory; rc=$?
	kill $pid; wait $pid
	return $rc
}
t "a program's rings are seen" counted
t "nothing is left of it" nothing_left
life 200 loop "$n"
before=$(unreclaimable)
life 200 loop "$n"
t "nothing is left of them" nothing_left
t "no slab memory is lost" eval 'wait_for 20 small "$before" || { small "$before"; false; }'
life 60 create
life 120 modify
life 60 query
life 120 fault 100
t "nothing is left of what failed" nothing_left
life 120 timers 30
life 60 last 500
nA tc qdisc replace dev va root netem delay 10s && nB tc qdisc replace dev vb root netem delay 10s
life 120 stuck 8
netem_off
# netem lets go of who sent a packet, a token bucket does not
if nA tc qdisc replace dev va root tbf rate 64kbit burst 4kb limit 4mb &&
   nB tc qdisc replace dev vb root tbf rate 64kbit burst 4kb limit 4mb; then
	life 120 stuck 8
	t "nothing is left of the queue pairs" nothing_left
	t "link delete while packets are held" timeout 30 rdma link delete "$LA"
	t "the other, too" timeout 30 rdma link delete "$LB"
	LA= LB=
	going() { [[ $(< /sys/module/rove/initstate) == going ]]; }
	rmmod rove & pid=$!
	t "rmmod waits for the packets" eval 'wait_for 30 going && ! wait_for 2 gone $pid'
	netem_off
	wait_for 60 gone $pid && wait $pid; rc=$?
	t "and ends when they are gone" eval '((rc == 0)) && [[ ! -e /sys/module/rove ]]'
else
	t "nothing is left of the queue pairs" nothing_left
	lacks "packets in a token bucket" "this kernel has none"
fi
done_testing
