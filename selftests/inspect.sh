#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What an administrator sees of programs, and what he can hold them to: counters per
# QP, details of objects, tracepoints, cgroup limits, RLIMIT_MEMLOCK.
# timeout: 180
. "$(dirname "$0")/lib.sh"

topo_pair 4200 && links || bail "two links"

port_counter() { rdma -j statistic show link "$LA/1" | grep -o "\"$1\":[0-9]*" | grep -o '[0-9]*$'; }
# the sum over the counters that QPs of the link are bound to
qp_counter() { rdma statistic qp show link "$LA/1" | tr ' ' '\n' | grep -A 1 "^$1\$" | awk '/^[0-9]+$/ { s += $1 } END { print s + 0 }'; }

# A ping-pong that runs until something ends it; $client and $server are the pids.
start() {
	local p=$((port++))
	spawn "$NSA" ibv_rc_pingpong -d "$LA" -g "$(gid_index "$LA" $A4)" -p $p -n 100000000 > "$tmp/server" 2>&1 & server=$!
	wait_for 20 listening "$NSA" $p || return
	spawn "$NSB" ibv_rc_pingpong -d "$LB" -g "$(gid_index "$LB" $B4)" -p $p -n 100000000 $A4 > "$tmp/client" 2>&1 & client=$!
	wait_for 20 moving && wait_for 20 moving
}
stop() { kill -9 $client $server; wait $client $server; } 2> /dev/null
last=0
moving() { local s; s=$(port_counter sent_pkts); ((s > last)); local rc=$?; last=$s; return $rc; }
pp() { both 60 A "ibv_rc_pingpong -d %d -g %g4 -p %p -c -n ${1:-100}"; }

# --- counters -------------------------------------------------------------------

grows() {
	local one two total
	one=$(qp_counter sent_pkts)
	wait_for 10 eval '(($(qp_counter sent_pkts) > one && $(qp_counter rcvd_pkts) > 0))' || return
	two=$(qp_counter sent_pkts) total=$(port_counter sent_pkts)
	echo "sent by the QP: $one, then $two; by the port: $total"
	((total >= two))
}
automatic() {
	rdma statistic qp set link "$LA/1" auto type on && start || return
	grows; local rc=$?
	rdma statistic qp show link "$LA/1"; rdma statistic qp mode
	stop
	# what it counted stays in the port's sum; a counter of nobody's is gone
	local kept; kept=$(port_counter sent_pkts)
	wait_for 10 eval '(($(qp_counter sent_pkts) == 0))' || return
	(($(port_counter sent_pkts) >= kept)) && rdma statistic qp set link "$LA/1" auto off && return $rc
}
t "rdma statistic qp, automatic: a counter for the QPs of a type, part of the port's" automatic
by_hand() {
	start || return
	local qpn rc
	qpn=$(rdma resource show qp link "$LA/1" | sed -n 's/.* lqpn \([0-9]*\) .*comm ibv_rc_ping.*/\1/p' | head -n 1)
	rdma statistic qp bind link "$LA/1" lqpn "$qpn" && grows; rc=$?
	rdma statistic qp show link "$LA/1"
	stop
	return $rc
}
t "rdma statistic qp bind: a counter bound by hand" by_hand

# --- objects ----------------------------------------------------------------------

# details KIND NAME...: a program's objects of the kind are shown, with these
details() {
	local kind=$1 name got; shift
	got=$(rdma resource show $kind -dd) || return
	got=$(grep -E "comm ($shown)" <<< "$got")
	echo "$got"
	[[ $got ]] || return
	for name; do grep -q "drv_$name " <<< "$got " || { echo "no $name"; return 1; }; done
}
start || bail "a ping-pong"
shown=ibv_rc_ping
t "rdma resource show qp -dd: queues, PSNs, retries" details qp sq_depth sq_posted psn_next psn_unacked psn_expected retried mtu
t "rdma resource show cq -dd: how full, armed or not" details cq depth produced consumed armed overrun
t "rdma resource show mr -dd: rights, blocks, users" details mr access block_shift users
t "rdma resource show pd -dd" details pd
t "rdma resource show ctx -dd" details ctx
stop
srqs() {
	local p=$((port++)) pid rc names
	# older kernels do not ask the driver
	[[ $(printf '%s\n' 6.7 "$(uname -r)" | sort -V | head -n 1) != 6.7 ]] || names="depth posted limit"
	rdma resource show srq > /dev/null 2>&1 && [[ $(rdma resource) == *srq* ]] || cannot "this kernel does not track SRQs" || return
	spawn "$NSA" ibv_srq_pingpong -d "$LA" -g "$(gid_index "$LA" $A4)" -p $p > /dev/null 2>&1 & pid=$!
	wait_for 20 listening "$NSA" $p && shown=ibv_srq_ping details srq $names; rc=$?
	kill -9 $pid; wait $pid 2> /dev/null
	return $rc
}
t "rdma resource show srq -dd: how full, its limit" srqs
ids() {
	local pid rc
	spawn "$NSA" rping -s -a $A4 -p 7199 > /dev/null 2>&1 & pid=$!
	wait_for 20 cm_listening "$NSA" 7199 && inns "$NSA" rdma resource show cm_id -dd | grep rping; rc=$?
	kill -9 $pid; wait $pid 2> /dev/null
	return $rc
}
t "rdma resource show cm_id -dd" ids

# --- tracepoints --------------------------------------------------------------------

dir=/sys/kernel/tracing
# Some packet is lost, so that something is sent again.
trace() {
	local e pid rc
	mountpoint -q $dir || mount -t tracefs none $dir || return
	echo > $dir/trace
	echo 1 > $dir/events/rove/enable || return
	netem_first loss 3%
	pp 300 & pid=$!
	# not the last acknowledgment, whose sender has gone
	wait_for 20 grep -q rove_retry: $dir/trace
	netem_off
	wait $pid; rc=$?
	echo 0 > $dir/events/rove/enable
	grep -v '^#' $dir/trace > "$tmp/trace"
	((rc == 0)) || return
	for e in 'rove_wr: .* SEND ' 'rove_complete: .* send status 0 ' 'rove_tx: .* SEND psn ' 'rove_rx: .* length 1024' \
		 'rove_retry: .*, from psn ' 'rove_state: .* RTS'; do
		grep -m 1 "$e" "$tmp/trace" || { echo "no $e"; return 1; }
	done
	echo > $dir/trace; pp 20 || return
	! grep rove_ $dir/trace
}
name="tracepoints: work request, completion, packets sent and received, retry, state; nothing when off"
if [[ -d $dir ]]; then t "$name" trace; else skip "$name" "no tracefs"; fi

# --- limits -------------------------------------------------------------------------

# alone HOW [OPTIONS]: does a server come so far that it listens?  HOW execs it
alone() {
	local how=$1 p=$((port++)) pid rc; shift
	$how ip netns exec "$NSA" ${unprivileged:-} ibv_rc_pingpong -d "$LA" -g "$(gid_index "$LA" $A4)" -p $p "$@" > "$tmp/out" 2>&1 & pid=$!
	wait_for 10 eval "listening '$NSA' $p || gone $pid"
	listening "$NSA" $p; rc=$?
	((rc == 0)) && pinned=$(awk '/^VmPin/ { print $2 }' /proc/$pid/status)
	kill -9 $pid; wait $pid
	cat "$tmp/out"
	return $rc
} 2> /dev/null
refused_alone() { local want=$1; shift; ! alone "$@" && grep -q "$want" "$tmp/out"; }

cgroup() {
	local rc
	new_cgroup rdma || return
	cgroup_points; rc=$?
	cat $cg/rdma.max
	rmdir $cg
	return $rc
}
cgroup_points() {
	echo "$LA hca_handle=0" > $cg/rdma.max && refused_alone "Couldn't get context" in_cgroup &&
	# PD, MR, CQ and QP are more than three
	echo "$LA hca_handle=1 hca_object=3" > $cg/rdma.max && refused_alone "Couldn't create QP" in_cgroup &&
	echo "$LA hca_handle=1 hca_object=20" > $cg/rdma.max && alone in_cgroup || return
	# what has gone is not counted
	cat $cg/rdma.current
	! grep -E "hca_(handle|object)=[1-9]" $cg/rdma.current
}
t "cgroup rdma: hca_handle and hca_object are kept" cgroup

limit() { ulimit -l $lock; exec "$@"; }
logged() { dmesg | tail -n 5 | grep "$1"; }
memlock() {
	local unprivileged="setpriv --bounding-set -ipc_lock --" lock
	lock=64 refused_alone "Couldn't register MR" limit -s 1048576 && logged 'RLIMIT_MEMLOCK is 64 KiB' &&
	# a receive queue of 50,000 and a CQ for it are more than 1 MiB
	lock=1024 refused_alone "Couldn't create" limit -r 50000 &&
	logged 'a queue of [0-9]* KiB: RLIMIT_MEMLOCK is 1024 KiB' &&
	# all in one account
	lock=65536 alone limit -r 50000 -s 1048576 || return
	echo "pinned: $pinned KiB"
	((pinned > 1024 + 2 * 50000 * 32 / 1024))
}
t "RLIMIT_MEMLOCK: regions and queues together; the log says so" memlock
free_of_it() { lock=64 alone limit -s 1048576 -r 50000; }
t "RLIMIT_MEMLOCK: not for who has CAP_IPC_LOCK" free_of_it
given_back() { (ulimit -l 8192; nA setpriv --bounding-set -ipc_lock -- "$bin/limits" churn "$LA"); }
t "RLIMIT_MEMLOCK: what is destroyed is given back" given_back
done_testing
