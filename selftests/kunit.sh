#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The tests that are built into rove.ko on a kernel with KUnit (drivers/.../kunit.c).
# timeout: 120
. "$(dirname "$0")/lib.sh"

results=/sys/kernel/debug/kunit/rove/results
ran() { modprobe rove && wait_for "$WAIT" grep -qE "^(not )?ok 1 rove$" $results; }
t "they ran" ran || bail "KUnit"
while read -r verdict; do
	name=${verdict##*ok * }
	t "$name" eval '[[ $verdict == ok* ]] || { cat $results; false; }'
done < <(grep -E '^ +(not )?ok [0-9]+ ' $results)
done_testing
