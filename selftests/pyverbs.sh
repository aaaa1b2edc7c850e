#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# rdma-core's own test suite (pyverbs), as the distribution ships it, on one link.
# Every test is a point here.  One that is skipped must stand, with the reason, in
# pyverbs.expected; a test that fails, or is skipped without standing there,
# has failed.
#
#	pyverbs.sh [PART-OF-A-TEST-NAME...]
#
# timeout: 600
. "$(dirname "$0")/lib.sh"

suite=/usr/share/doc/rdma-core/tests
[[ -d $suite ]] || skip_all "no $suite (Debian: rdma-core)"
/usr/bin/python3 -c 'import pyverbs' 2>/dev/null || skip_all "no python3-pyverbs"

topo_pair 4200 && links || bail "two links"

[[ ! -e /proc/sys/vm/nr_hugepages ]] || echo 32 > /proc/sys/vm/nr_hugepages || bail "huge pages"
mkdir "$tmp/tests" && cp "$suite"/* "$tmp/tests/" && gunzip -f "$tmp"/tests/*.gz || bail "the suite unpacked"

# What is skipped on rdma_rxe is its own affair.
expected=$here/pyverbs.expected
[[ $DRIVER_A == rove ]] || expected=/dev/null

nA timeout 580 /usr/bin/python3 "$here/pyverbs_run.py" "$tmp/tests" --dev "$LA" "$@" > "$tmp/results" 2> "$tmp/errors"

declare -A n=([pass]=0 [skip]=0 [fail]=0) reason
while read -r name why; do
	[[ $name == "#"* || ! $name ]] || reason[$name]=$why
done < "$expected"
if [[ ! -e /proc/sys/vm/nr_hugepages ]]; then	# User-mode Linux
	for name in test_odp.OdpTestCase.test_odp_rc_huge_traffic test_odp.OdpTestCase.test_odp_rc_huge_user_addr_traffic \
		test_parent_domain.ParentDomainTrafficTest.test_huge_page_traffic; do
		reason[tests.$name]="this kernel has no huge pages"
	done
fi

while read -r what name why; do
	name=${name%:}
	case $what in
	pass)
		ok "$name"
		[[ ${reason[$name]} ]] && say "it passes: take it from pyverbs.expected (${reason[$name]})" ;;
	skip)
		if [[ ${reason[$name]} || $expected == /dev/null ]]; then
			skip "$name" "${reason[$name]:-$why}"
		else
			not_ok "$name: skipped, which is not expected: $why"
		fi ;;
	fail) not_ok "$name: $why" ;;
	ran) all="$name $why"; say "ran $all"; continue ;;
	*) continue ;;
	esac
	((n[$what]++))
done < "$tmp/results"
[[ $all ]] || not_ok "the suite comes to its end (after: $(tail -n 1 "$tmp/results"))"
# Whoever ships a suite that finds nothing to do must hear of it.
total=$((n[pass] + n[skip] + n[fail]))
if [[ ! $* && $DRIVER_A == rove ]]; then
	t "all tests of the suite were run, each with a result" [ "$all" = "$total of $total" ]
	t "at least 130 of them pass" [ "${n[pass]}" -ge 130 ]
fi
((T_FAILED)) && tail -n 200 "$tmp/errors" | sed 's/^/#   /'
say "${n[pass]} pass, ${n[skip]} are skipped, ${n[fail]} fail"
done_testing
