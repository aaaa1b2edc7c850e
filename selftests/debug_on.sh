#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What a debug kernel has switched off finds nothing: lockdep goes with the first report, whoever
# it is about, kmemleak when it has no memory.  debugcheck runs this before and after the others.
# timeout: 120
# expects: leaks
. "$(dirname "$0")/lib.sh"

[[ -e /proc/lockdep_stats && -e $kmemleak ]] || bail "no debug kernel"
t "lockdep is on" grep -q 'debug_locks: *1$' /proc/lockdep_stats
t "kmemleak is on" no_leaks
sed 's/^/# /' "$kmemleak"
# What a task of the kernel's has lost by itself is no failure of the test that is just running.
echo scan=off > "$kmemleak"
done_testing
