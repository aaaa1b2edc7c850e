#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The counters of `rdma statistic` tell what happens, and `rdma res` who is there.
# timeout: 400
. "$(dirname "$0")/lib.sh"

# the module is loaded anew, and finds no large pages at first
large_pages() { sysctl -qw net.core.high_order_alloc_disable=$((! $1)); }
extra_cleanup() { large_pages 1; }
rmmod rove 2> /dev/null
[[ $DRIVER_A == rove ]] && large_pages 0
topo_pair 4200 && links || bail "two links"

snap() { rdma statistic show link "$1/1" | sed 's/^link [^ ]* //' | xargs -n 2 | sort > "$tmp/$2"; }
pp() { both 60 A "ibv_rc_pingpong -d %d -g %g4 -p %p -c -n 200"; }
# grown FILE1 FILE2 REGEX: the sum of the counters that match grew
grown() {
	local a b
	a=$(awk -v r="$3" '$1 ~ r { s += $2 } END { print s + 0 }' "$tmp/$1")
	b=$(awk -v r="$3" '$1 ~ r { s += $2 } END { print s + 0 }' "$tmp/$2")
	echo "$3: $a -> $b"
	((b > a)) || { diff "$tmp/$1" "$tmp/$2"; return 1; }
}
snap "$LA" 1
t "traffic" pp
snap "$LA" 2
sed 's/^/# /' "$tmp/2"
t "something was counted as sent" grown 1 2 'sent|tx'
t "something was counted as received" grown 1 2 'rcvd|rx|recv'

explained() {
	local name all
	all=$(awk '{ print $1 }' "$tmp/2")
	for name in ${all:?}; do
		grep -qE "^\.B (.*, )?$name(,|\$)" "$here/../userspace-provider/man/rove.7" || { echo "$name"; return 1; }
	done
}
[[ $DRIVER_A != rove ]] || t "rove(7) explains each counter" explained

value() { awk -v n="$2" '$1 == n { print $2 }' "$tmp/$1"; }
# by FILE1 FILE2 COUNTER: how much it grew
by() { echo $(($(value "$2" "$3") - $(value "$1" "$3"))); }
# 200 messages of 4 KiB each way, path MTU 1024: 4 packets each, and acknowledgments
exact() {
	local n c
	for c in sent_pkts rcvd_pkts sent_bytes rcvd_bytes rx_send_requests ack_sent out_of_sequence packet_seq_err; do
		echo "$c: $(by 1 2 $c)"
	done
	(($(by 1 2 rx_send_requests) == 200 && $(by 1 2 ack_sent) >= 1 && $(by 1 2 ack_sent) <= 250)) || return
	for n in sent rcvd; do
		(($(by 1 2 ${n}_pkts) > 800 && $(by 1 2 ${n}_pkts) <= 1100)) &&
		(($(by 1 2 ${n}_bytes) > 200 * 4096 && $(by 1 2 ${n}_bytes) < 200 * 4096 + 1100 * 80)) || return
	done
	(($(by 1 2 out_of_sequence) == 0 && $(by 1 2 packet_seq_err) == 0 && $(by 1 2 implied_nak_seq_err) == 0))
}
[[ $DRIVER_A == rove ]] && t "each message and packet, and no loss, for there was none" exact

seen() { say "$(tail -n 1 "$tmp/t.out")"; }
# trains OPERATOR N: packets in a super-packet
trains() {
	local pkts skbs
	snap "$LB" t1
	both 60 A "ib_write_bw -F -d %d -x %g4 -p %p -s 65536 -m 4096 -n 100" || return
	snap "$LB" t2
	pkts=$(by t1 t2 sent_pkts) skbs=$(by t1 t2 sent_super_packets)
	echo "$pkts packets in $skbs super-packets"
	((pkts >= 1600 && pkts $1 $2 * skbs))
}
if [[ $DRIVER_A == rove ]]; then
	t "without large pages each packet goes by itself" trains == 1
	seen
	large_pages 1
	t "when there are some again many go together" trains '>' 4
	seen
fi

# A super-packet lost costs the burst that it was of, and what had been sent behind it.
dropped_by() { inns "$1" tc -s qdisc show dev "$2" | sed -nE 's/.*dropped ([0-9]+),.*/\1/p'; }
lossy() {
	local lost again seq
	snap "$LA" A1; snap "$LB" B1
	netem_first loss 3% &&
	both 60 A "ib_write_bw -F -d %d -x %g4 -p %p -s 65536 -m 1024 -n 300 -b"; local rc=$?
	lost=$(($(dropped_by "$NSA" va) + $(dropped_by "$NSB" vb)))
	netem_off
	((rc == 0)) || return
	snap "$LA" A2; snap "$LB" B2
	again=$(($(by A1 A2 retransmitted_bursts) + $(by B1 B2 retransmitted_bursts)))
	seq=$(($(by A1 A2 sent_seq_nak) + $(by B1 B2 sent_seq_nak)))
	echo "$lost super-packets lost, $again bursts sent again, $seq sequence NAKs"
	((lost > 5 && seq > 0 && seq <= lost + again && again > 0 && again <= 8 * lost))
}
if [[ $DRIVER_A == rove ]]; then
	t "what is lost is sent again, and at most eight bursts for one" lossy
	seen
fi

# datagrams that are no RoCE, and RoCE with a wrong ICRC, to port 4791
garbage() {
	nB /usr/bin/python3 - "$A4" <<-'PY'
	import socket, sys, os
	s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
	for n in (0, 1, 11, 12, 15, 16, 17, 40, 1000):
	    s.sendto(os.urandom(n), (sys.argv[1], 4791))
	for op in range(256):
	    bth = bytes([op, 0, 0xff, 0xff, 0, 0, 0, 17, 0x80, 0, 0, 0])
	    s.sendto(bth + os.urandom(32), (sys.argv[1], 4791))
	PY
}
snap "$LA" before
t "datagrams that are no RoCE" garbage
dropped() {
	local c n=0
	snap "$LA" after
	for c in drop_malformed rx_icrc_encapsulated drop_unknown_qp; do
		echo "$c: $(by before after $c)"
		n=$((n + $(by before after $c)))
	done
	((n == 9 + 256))
}
[[ $DRIVER_A == rove ]] && t "each is counted, by cause" wait_for 10 dropped
t "traffic goes on" pp

res() { rdma resource show qp link "$LA/1" | grep -q ibv_rc_pingpong; }
holding() {
	spawn "$NSA" ibv_rc_pingpong -d "$LA" -g "$(gid_index "$LA" $A4)" -p 18950 > /dev/null 2>&1 & local pid=$!
	wait_for 20 listening "$NSA" 18950 && rdma resource show qp link "$LA/1" && res &&
	rdma resource show cq dev "$LA" | grep -q ibv_rc && rdma resource show mr dev "$LA" | grep -q ibv_rc &&
	rdma resource show pd dev "$LA" | grep -q ibv_rc && rdma resource show ctx dev "$LA" | grep -q ibv_rc
	local rc=$?
	kill -9 $pid; wait $pid 2>/dev/null
	((rc)) || wait_for 10 eval '! res'
}
[[ $DRIVER_A == rove ]] && t "rdma res shows a program's QP, CQ, MR, PD and context, and no longer when it is killed" holding

# Pages are counted for a region that is paged on demand, and nothing is shown for any
# other.  pages OPTIONS...: of ibv_rc_pingpong
pages() {
	spawn "$NSA" ibv_rc_pingpong -d "$LA" -g "$(gid_index "$LA" $A4)" -p 18951 "$@" > /dev/null 2>&1 & local pid=$!
	wait_for 20 listening "$NSA" 18951
	rdma statistic show mr | tee "$tmp/pages"
	kill -9 $pid; wait $pid 2>/dev/null
	grep -q "dev $LA mrn" "$tmp/pages"
}
if [[ $DRIVER_A == rove ]]; then
	t "rdma statistic shows no pages of a pinned region" eval 'pages && ! grep -q page_ "$tmp/pages"'
	t "rdma statistic shows those of one that is paged on demand" eval 'pages -o && grep -q "page_faults.*page_prefetch" "$tmp/pages"'
fi
done_testing
