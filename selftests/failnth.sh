#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Every allocation and copy of every verb fails once, or some of those of a verb that has
# thousands (failnth.c); likewise those of a kernel consumer (kmod/rove_ktest.c); then one in
# so many of all that the data path makes.  For a kernel with fault injection (make
# debugcheck).
#
#	failnth.sh [SECONDS [no-link]]	for each verb; not for rdma link add, a call of which takes two
# expects: leaks
# timeout: 1800
. "$(dirname "$0")/lib.sh"

debug=/sys/kernel/debug
[[ -e /proc/thread-self/fail-nth && -d $debug/failslab ]] || skip_all "this kernel does not fail on purpose"
[[ -x $bin/failnth ]] || skip_all "no failnth: make selftests"

# what takes part, and says nothing of it
for where in failslab fail_page_alloc fail_usercopy; do
	for set in ignore-gfp-wait:N ignore-gfp-highmem:N min-order:0 verbose:0; do
		[[ -e $debug/$where/${set%:*} ]] && echo "${set#*:}" > "$debug/$where/${set%:*}"
	done
done
random_faults() {	# PER-CENT: of the atomic allocations
	echo Y > $debug/failslab/ignore-gfp-wait
	echo 1 > $debug/failslab/interval; echo -1 > $debug/failslab/times
	echo "$1" > $debug/failslab/probability
}
extra_cleanup() { echo 0 > $debug/failslab/probability; rmmod rove_ktest 2>/dev/null; }
# TCP, by which the two find each other, is to have its memory.
connected() { nB ss -Htn state established "dport = :$port" | grep -q .; }

topo_pair 4200 && links || bail "two links"
netdev=faulty0; [[ $2 != no-link ]] || netdev=
ip link add faulty0 type dummy && ip link set faulty0 up && ip addr add 10.78.0.1/24 dev faulty0 || bail "a netdev"
at_first=$(mapped)
[[ ! -e $kmemleak ]] || echo clear > $kmemleak
c_points "failnth" timeout 1400 "$bin/failnth" "${1:-400}" "$LA" "$(gid_index "$LA" $A4)" "$LB" "$(gid_index "$LB" $B4)" $netdev
nothing_left() { no_objects qp cq mr pd srq ctx && (($(mapped) <= at_first)); }
t "nothing is left of what failed" wait_for 30 nothing_left
if [[ -f $ktest ]]; then
	t "a kernel consumer" insmod "$ktest" dev_a="$LA" dev_b="$LB" faults=1
	ktest_points
	t "it can go" rmmod rove_ktest
else
	skip "a kernel consumer" "no rove_ktest.ko: make modules ROVE_TEST_MODULES=1"
fi
(wait_for 60 connected && random_faults 3 && : > "$tmp/faulty") &
rc_data "3 % of all atomic allocations fail" A "-g %g4 -m 1024 -t data"
t "they did so once the two had met" test -e "$tmp/faulty"
echo 0 > $debug/failslab/probability
ip link del faulty0
rdma link delete "$LA"; rdma link delete "$LB"; LA= LB=
# before rmmod: who has allocated is looked up when it is asked for
if [[ -e $kmemleak ]]; then
	t "nothing has leaked" no_leaks
	sed 's/^/# /' "$kmemleak"
fi
t "the module can go" wait_for 30 rmmod rove
done_testing
