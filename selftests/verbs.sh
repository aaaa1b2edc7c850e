#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What the device tells of itself, CQ moderation, time stamps, parent and thread
# domains, and what is refused: verbs.c between the two links.
# timeout: 120
. "$(dirname "$0")/lib.sh"

topo_pair 4200 && links || bail "two links"
[[ -x $bin/verbs ]] || bail "make -C selftests"

c_points verbs "$bin/verbs" "$LA" "$(gid_index "$LA" $A4)" "$LB" "$(gid_index "$LB" $B4)"
done_testing
