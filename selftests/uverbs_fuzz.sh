#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# System calls on /dev/infiniband/uverbs that are not quite right (uverbs_fuzz.c),
# while checked traffic runs on the same link.  Arguments: seconds, seed.
# timeout: 4000
. "$(dirname "$0")/lib.sh"

seconds=${1:-12} seed=${2:-$RANDOM$RANDOM}
[[ -x $bin/uverbs_fuzz ]] || skip_all "no uverbs_fuzz: make selftests"
topo_pair 4200 && links || bail "two links"
for_nobody uverbs_fuzz || bail "a program of nobody's"

checked_traffic

# Oopses, warnings and reports; not what the driver says of a wrong attribute.
bad_words='BUG:|WARNING:|Oops|general protection|KASAN|UBSAN|lockdep|possible recursive|suspicious RCU|refcount_t|blocked for more|soft lockup|slab|Call Trace|list_add|list_del|leaked'
said=$(dmesg | wc -l)
say "seed $seed"
echo 500 > /proc/self/oom_score_adj
c_points uverbs_fuzz timeout -k 5 $((seconds + 60)) "/tmp/uverbs_fuzz.$$" "$LA" "$(gid_index "$LA" $A4)" "$seconds" "$seed"
clean_log() { ! dmesg | tail -n +$((said + 1)) | grep -aE "$bad_words"; }
t "the kernel has nothing to report" clean_log
left() { rdma res show "$1" > "$tmp/left" && ! grep uverbs_fuzz "$tmp/left"; }
for kind in qp cq mr pd srq ctx; do t "no $kind is left" wait_for 20 left $kind; done
traffic_was_right
t "link delete" timeout 60 rdma link delete "$LA"
t "the other link too" timeout 60 rdma link delete "$LB"
t "rmmod" timeout 60 rmmod rove
LA= LB=
t "still nothing to report" clean_log
done_testing
