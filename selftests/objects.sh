#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Memory regions, completion queues, address handles: objects.c between the two
# links.
# timeout: 240
. "$(dirname "$0")/lib.sh"

topo_pair 4200 && links || bail "two links"
[[ -x $bin/objects ]] || bail "make -C selftests"

echo 16 > /proc/sys/vm/nr_hugepages
"$bin/objects" "$LA" "$(gid_index "$LA" $A4)" "$LB" "$(gid_index "$LB" $B4)" > "$tmp/objects"
while IFS= read -r line; do
	case $line in
	"ok "*) ok "${line#ok * - }" ;;
	"not ok "*) not_ok "${line#not ok * - }" ;;
	"1.."*) ended=1 ;;
	*) echo "$line" ;;
	esac
done < "$tmp/objects"
[[ ${ended:-} ]] || not_ok "objects runs to its end"
t "nothing is left" wait_for 10 no_objects qp cq mr
done_testing
