#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What the device tells of itself, CQ moderation, time stamps, parent and thread
# domains, and what is refused: verbs.c between the two links.
# timeout: 120
. "$(dirname "$0")/lib.sh"

topo_pair 4200 && links || bail "two links"
[[ -x $bin/verbs ]] || bail "make -C selftests"

"$bin/verbs" "$LA" "$(gid_index "$LA" $A4)" "$LB" "$(gid_index "$LB" $B4)" > "$tmp/verbs"
while IFS= read -r line; do
	case $line in
	"ok "*) ok "${line#ok * - }" ;;
	"not ok "*) not_ok "${line#not ok * - }" ;;
	"1.."*) ended=1 ;;
	*) echo "$line" ;;
	esac
done < "$tmp/verbs"
[[ ${ended:-} ]] || not_ok "verbs runs to its end"
done_testing
