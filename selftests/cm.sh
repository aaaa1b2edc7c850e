#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The connection manager, by rdma_cm's own programs and others that use it:
# rping, ucmatose, udaddy, cmtime, rstream, riostream, rcopy, perftest -R, qperf.
# With "core" only the first few, with "rxe" these with rdma_rxe as the peer, with
# "all" also what takes minutes.
# timeout: 900
[[ $1 == rxe ]] && DRIVER_A=rxe && set -- core
. "$(dirname "$0")/lib.sh"

topo_pair 4200 && links || bail "two links"
declare -A addr=([A4]=$A4 [A6]=$A6 [B4]=$B4 [B6]=$B6)

# Is somebody on this end listening with rdma_cm on this port?
cm_listens() { inns "$1" rdma resource show cm_id 2>/dev/null | grep -q "state LISTEN.*src-addr.*:$2 "; }
listens() { cm_listens "$@" || listening "$@"; }

# pair SERVER-END VERSION PORT SERVER CLIENT: run both; %s is the server's
# address, %c the client's, %p the port.  The client starts when the server listens, as
# $READY (listens, takes_requests) sees it.
pair() {
	local side=$1 v=$2 p=$3 srv=$4 cli=$5 other sns cns pid rc src
	[[ $side == A ]] && { other=B sns=$NSA cns=$NSB; } || { other=A sns=$NSB cns=$NSA; }
	srv=${srv//%s/${addr[$side$v]}} srv=${srv//%p/$p}
	cli=${cli//%s/${addr[$side$v]}} cli=${cli//%c/${addr[$other$v]}} cli=${cli//%p/$p}
	spawn "$sns" timeout -k 5 ${LIMIT:-60} $srv > "$tmp/server" 2>&1 &
	pid=$!
	wait_for 20 eval "${READY:-listens} '$sns' $p $pid || gone $pid"
	inns "$cns" timeout -k 5 ${LIMIT:-60} $cli > "$tmp/client" 2>&1
	rc=$?
	((rc)) && kill $pid 2>/dev/null
	wait $pid; src=$?
	((rc || src)) || return 0
	echo "client ($rc): $cli"; tail -n 15 "$tmp/client"
	echo "server ($src): $srv"; tail -n 15 "$tmp/server"
	return 1
}

for v in 4 6; do
	for side in A B; do
		t "rping, IPv$v, server $side, data validated" pair $side $v 7174 \
			"rping -s -a %s -p %p -V -C 20 -S 4000" "rping -c -a %s -p %p -V -C 20 -S 4000"
	done
	t "ucmatose, IPv$v" pair B $v 7471 "ucmatose -b %s -c 5" "ucmatose -s %s -c 5"
	t "udaddy, IPv$v" pair B $v 7174 "udaddy -b %s -c 5" "udaddy -s %s -b %c -c 5"
done
[[ $1 == core ]] && done_testing

for c in RC XRC; do
	opt=$(tr RCX rcx <<< "${c:0:1}")
	t "rdma_xserver, $c" pair B 4 7471 "rdma_xserver -p %p -c $opt" "rdma_xclient -s %s -p %p -c $opt"
done

# A server that goes on is ended when its clients are done.  rping's event
# thread may find its channel closed already: that is no failure of ours.
persistent() {
	local i pid
	spawn "$NSB" timeout -k 5 60 rping -s -P -a $B4 -p 7175 -V -S 1000 > "$tmp/server" 2>&1 &
	pid=$!
	wait_for 20 cm_listens "$NSB" 7175
	for i in 1 2 3 4; do
		nA timeout -k 5 30 rping -c -a $B4 -p 7175 -V -C 10 -S 1000 > "$tmp/client" 2>&1 && continue
		[[ $(grep -v DISCONNECT "$tmp/client") == "rdma_get_cm_event: Bad file descriptor" ]] && continue
		cat "$tmp/client" "$tmp/server"; kill $pid
		return 1
	done
	kill $pid
}
t "rping -P, one client after another" persistent

# streams VERSION PORT SIZES PROGRAM OPTIONS...: on both ends.  The programs return 0
# even when the peer has gone: what counts is a line of results for each size, and no
# complaint.
streams() {
	local v=$1 p=$2 sizes=$3 end; shift 3
	pair B "$v" "$p" "$* -b %s -p %p" "$* -s %s -p %p" || return
	for end in client server; do
		cat "$tmp/$end"
		(($(grep -cE '^(custom|[0-9]+[km]?_(lat|bw)) ' "$tmp/$end") == sizes)) || return
		! grep -qiE 'r(send|recv|poll)|verification|error' "$tmp/$end" || return
	done
}

# With -T a whoever is told together of the last message and of the peer's shutdown gives up
# with POLLHUP, 16, and leaves the message: another try.  The slower the machine, the likelier.
hung_up() { grep -q '(16): rstream' "$tmp/lucky.hung_up"; }
async_streams() { lucky hung_up streams "$@"; }

# Without -T b, and riostream always, they spin: on one CPU each message costs ticks.
# All sizes of rstream (four, for latency and for bandwidth) begin with 200,000 messages
# of 64 bytes, one after the other.
for v in 4 6; do
	[[ $1 == all ]] && LIMIT=240 t "rstream -T b, all its sizes, IPv$v" streams $v 7301 8 rstream -T b
	t "rstream -T b, IPv$v" streams $v 7301 1 rstream -T b -S 65536 -I 50 -C 10
	t "rstream, IPv$v" streams $v 7302 1 rstream -S 4096 -I 50 -C 10
	t "riostream, IPv$v" streams $v 7303 1 riostream -S 4096 -I 50 -C 10
	t "rstream -T a, IPv$v" async_streams $v 7306 1 rstream -T a -S 4096 -I 10 -C 5
	t "rstream -T r, IPv$v" streams $v 7307 1 rstream -T r -S 4096 -I 10 -C 5
	t "rstream -T n, IPv$v" streams $v 7308 1 rstream -T n -S 4096 -I 50 -C 10
	t "riostream -T b, IPv$v" streams $v 7309 1 riostream -T b -S 65536 -I 50 -C 10
	t "riostream -T n, IPv$v" streams $v 7310 1 riostream -T n -S 4096 -I 50 -C 10
done
t "riostream -T a" async_streams 4 7311 1 riostream -T a -S 4096 -I 10 -C 5
t "riostream -T b, verified" streams 4 7312 1 riostream -T b -T v -S 65537 -I 20 -C 4

verified() {
	local size
	for size in 1 63 64 65 4095 4097 65535 65537 1000000; do
		streams 4 7304 1 rstream -T b -T v -S $size -I 5 -C 4 || return
	done
}
t "rstream over many sizes, verified" verified

# Connections that A has asked for and B has granted.  An answer that came twice counts
# once, unless its connection was gone by then.
made() {
	local dir=/sys/class/infiniband/$LA/ports/1
	echo $(($(< "$dir/cm_rx_msgs/rep") - $(< "$dir/cm_rx_duplicates/rep")))
}

# With -T f rstream uses plain sockets; it is librspreload that makes RDMA of them.
forking() {
	local lib before=$(made)
	lib=$(compgen -G "/usr/lib*/rsocket/librspreload.so.1" || compgen -G "/usr/lib/*/rsocket/librspreload.so.1") ||
		cannot "no librspreload" || return
	streams 4 7305 1 env "LD_PRELOAD=$lib" RDMAV_FORK_SAFE=1 rstream -T f -S 64 -I 50 -C 1 &&
	(($(made) == before + 1))
}
t "rstream, forking server" forking

# Its server goes on.  An event that is an error is printed, and that is all.
connections() {
	local pid rc before=$(made)
	spawn "$NSB" timeout -k 5 100 cmtime -b $B4 > "$tmp/server" 2>&1 &
	pid=$!
	wait_for 20 eval 'rdma resource show cm_id | grep -q "cmtime.*LISTEN\|LISTEN.*cmtime"'
	nA timeout -k 5 90 cmtime -s $B4 -c "$1" > "$tmp/client" 2>&1; rc=$?
	kill $pid; wait $pid
	cat "$tmp/client" "$tmp/server"
	echo "$(($(made) - before)) connections"
	((rc == 0 && $(made) >= before + $1)) && ! grep -qi error "$tmp/client" "$tmp/server"
}
t "cmtime, 1000 connections" connections 1000

copy() {
	local pid rc
	head -c 3000000 /dev/urandom > "$tmp/from"
	rm -f "$tmp/to"
	spawn "$NSB" timeout -k 5 60 rcopy > "$tmp/server" 2>&1 &
	pid=$!
	wait_for 20 cm_listens "$NSB" 7427
	nA timeout -k 5 60 rcopy "$tmp/from" "$B4:$tmp/to" || { kill $pid; return 1; }
	cmp "$tmp/from" "$tmp/to"; rc=$?
	kill $pid
	return $rc
}
t "rcopy of 3 MB" copy

# perf SERVER-END PROGRAM: the server listens by rdma_cm, and crashes if a client comes
# before it has come to wait for one
perf() {
	local side=$1 srv cli p=$((port++)); shift
	[[ $side == A ]] && { srv=$LA cli=$LB; } || { srv=$LB cli=$LA; }
	READY=takes_requests pair "$side" 4 $p "$* -R -F -d $srv -p %p" "$* -R -F -d $cli -p %p %s"
}
# takes_requests END PORT PID: PID's child listens, and waits for an event
takes_requests() {
	cm_listens "$1" "$2" && pgrep -P "$3" | sed 's|.*|/proc/&/stack|' | xargs grep -q ucma_get_event
}

t "ib_write_bw -R" perf A ib_write_bw -n 200
t "ib_send_lat -R" perf B ib_send_lat -n 100
t "ib_read_bw -R" perf B ib_read_bw -n 100
t "ib_atomic_bw -R" perf A ib_atomic_bw -n 100
t "ib_send_bw -R -c UD" perf A ib_send_bw -c UD -n 200
t "ib_send_lat -R -c UD" perf A ib_send_lat -c UD -n 100 -e

# A server of its own for each: qperf's crashes now and then in what follows a test
# (in libibverbs, by a NULL of its own).
qperf_() {
	local pid rc
	spawn "$NSB" timeout -k 5 100 qperf > "$tmp/server" 2>&1 &
	pid=$!
	wait_for 20 listening "$NSB" 19765
	nA timeout -k 5 90 qperf -t 1 "$@"
	rc=$?
	kill $pid; wait $pid
	return $rc
}
for test in rc_bw rc_lat rc_rdma_write_bw rc_rdma_read_bw; do
	t "qperf -cm1 $test" qperf_ -cm1 $B4 $test
done
t "nothing is left" wait_for 20 no_objects qp cq mr pd srq cm_id
done_testing
