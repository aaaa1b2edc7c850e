#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The RC set on a network that drops, repeats and reorders: netem on a second
# hop, where single packets pass, and once on the first hop, where it may drop
# super-packets whole.  Data and completions must not change.
# timeout: 1500
. "$(dirname "$0")/lib.sh"

topo_hop 4200 && links && pin_neighbours || bail "two links"

# The last acknowledgment may be the one that is lost: the end that has all it
# waits for leaves, and the other one asks a QP that is gone.  That is the
# program's doing; such a run is repeated.
patient() {
	local try out
	for try in 1 2 3; do
		out=$("$@" 2>&1) && return
		echo "$out"
		grep -qE '^(client|server) \(0\)' <<< "$out" && grep -qE 'retry counter exceeded|status 12' <<< "$out" || return
		port=$((port + 1))
	done
	return 1
}

pt() {	# SERVER-END PROGRAM OPTIONS...
	local side=$1 prog=$2; shift 2
	both 240 "$side" "$prog -F -d %d -x %g4 -p %p $*"
}
pp() { both 240 "$1" "ibv_rc_pingpong -d %d -g %g4 -p %p -c ${*:2}"; }

rc_set() {
	local what=$1
	RC_DATA_LIMIT=400 rc_data "$what, MTU 1024, server A" A "-g %g4 -m 1024 -T 13 -t data"
	[[ $2 == short ]] && return
	RC_DATA_LIMIT=400 rc_data "$what, MTU 4096, server B, IPv6" B "-g %g6 -m 4096 -T 13 -t data"
	t "$what: ibv_rc_pingpong, server A" patient pp A -s 4096 -n 300
	t "$what: ibv_rc_pingpong -e, server B" patient pp B -s 20000 -n 100 -e
	t "$what: ib_write_bw" patient pt A ib_write_bw -s 65536 -n 100 -u 13
	t "$what: ib_read_bw" patient pt A ib_read_bw -s 65536 -n 100 -u 13
	t "$what: ib_send_bw" patient pt B ib_send_bw -s 65536 -n 100 -u 13
	t "$what: ib_atomic_bw" patient pt A ib_atomic_bw -n 200 -u 13
	t "$what: ib_send_lat" patient pt A ib_send_lat -s 64 -n 200 -u 13
}

what=${1:-all}
t "1 % loss, second hop" netem_hop loss 1% limit 20000
rc_set "1 % loss"
netem_off
t "duplicates, second hop" netem_hop duplicate 5% limit 20000
rc_set "duplicates" short
t "reordering, second hop" netem_hop delay 1ms reorder 80% limit 20000
rc_set "reordering" short
[[ $what == core ]] && done_testing
t "all three, second hop" netem_hop delay 500us reorder 90% duplicate 2% loss 1% limit 20000
rc_set "loss, duplicates and reordering"
netem_off
t "1 % loss, first hop" netem_first loss 1% limit 20000
rc_set "1 % loss on the first hop" short
netem_off
done_testing
