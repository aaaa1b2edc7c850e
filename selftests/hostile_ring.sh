#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# An unprivileged program that writes what it likes to its rings (hostile_ring.c).
# Arguments: seed and seconds of the scribbler.
# timeout: 900
. "$(dirname "$0")/lib.sh"

seed=${1:-$RANDOM$RANDOM} seconds=${2:-15}
[[ -x $bin/hostile_ring ]] || skip_all "no hostile_ring: make selftests"
topo_pair 4200 && links || bail "two links"

hostile() {
	as_nobody timeout -k 5 $(($1 * slow)) "/tmp/hostile_ring.$$" \
		"$LA" "$(gid_index "$LA" $A4)" "$LB" "$(gid_index "$LB" $B4)" "${@:2}"
}
counter() { rdma statistic show link "$1" 2>/dev/null | grep -o "$2 [0-9]*" | cut -d' ' -f2; }

for_nobody hostile_ring || bail "a program of nobody's"
for mode in cases idle mmap scribble; do
	hostile 250 $mode "$seed" "$seconds" > "$tmp/hostile" 2>&1
	take_points $mode "$tmp/hostile"
	t "$mode: nothing is left" wait_for 20 no_objects qp cq mr pd srq
done
t "bad indices were counted" test "$(counter "$LA" bad_ring_index)" -ge 3

# A program with its rings mapped, and everything under it is taken away.
mkfifo "$tmp/go"
hostile 200 hold < "$tmp/go" > "$tmp/hostile" 2>&1 &
pid=$!
exec 9> "$tmp/go"
if wait_for 60 grep -q ready "$tmp/hostile"; then
	t "link delete with rings mapped" timeout 60 rdma link delete "$LA"
	t "the other link too" timeout 60 rdma link delete "$LB"
	t "rmmod with rings mapped" timeout 60 rmmod rove
	LA= LB=
fi
echo go >&9
exec 9>&-
wait $pid
take_points hold "$tmp/hostile"
done_testing
