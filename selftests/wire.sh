#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What goes over the wire, judged by tools not written here: wire_check.py has
# scapy dissect every captured packet and recomputes its ICRC, tshark dissects
# all of it and must find nothing malformed.  "core": IPv4, MTU 1024 alone.
# timeout: 600
. "$(dirname "$0")/lib.sh"

topo_pair 4200 || bail "topology"
# single packets with final checksums
for end in A B; do
	dev=v${end,,}
	n$end ethtool -K "$dev" tx-udp-segmentation off tx off > /dev/null 2>&1
done
links || bail "two links"

capture() {
	spawn "$NSB" tcpdump -i vb -U -s 0 -B 65536 -w "$1" udp port 4791 > "$tmp/tcpdump" 2>&1 &
	dump=$!
	wait_for 20 grep -q 'listening on' "$tmp/tcpdump"
}
stop() {
	end_capture $dump
	cat "$tmp/tcpdump"
	grep -q '^0 packets dropped by kernel' "$tmp/tcpdump"
}
# a traffic class and a flow label to be found again in the headers
tclass=0x68 flow=0xabcde
traffic() {
	local cmd="$bin/rc_data -d %d -p %p -g $2 -m $3 -S 9001 -t $cases -c $tclass -f $flow"
	both 200 "$1" "$cmd"
}

# What tshark guesses to find in a payload of random bytes is no concern of ours.
guesses=()
for proto in smc smb_direct rpcordma nvme-rdma lnet iser infiniband.eoib infiniband_sdp fcoib drbd; do
	guesses+=(--disable-protocol $proto)
done
# malformed, or with an expert's error or warning; and all of it is RoCE
tshark_clean() {
	tshark -n -r "$1" "${guesses[@]}" -T fields -e frame.number -e infiniband.bth.opcode \
		-e _ws.malformed -e _ws.expert.severity -e _ws.expert.message > "$tmp/fields" 2>/dev/null
	awk -F '\t' '
		{ n++; if ($2 != "") bth++ }
		$3 != "" || $4 >= 6291456 { if (bad++ < 10) print }
		END { print n " packets, " bth " dissected as RoCE, " bad + 0 " with errors"; exit !(n > 100 && n == bth && !bad) }' "$tmp/fields"
}

cases=send,send_imm,write,write_imm,read,atomic,rnr,bad_rkey
runs=("A %g4 1024" "B %g6 1024" "A %g4 4096")
[[ $1 != core ]] || runs=("${runs[@]:0:1}")
for run in "${runs[@]}"; do
	set -- $run
	name="IPv${2#%g}, MTU $3"
	cap=$tmp/cap-${2#%g}-$3.pcap
	capture "$cap" || bail "tcpdump"
	[[ $3 == 4096 ]] && cases=send,write,read,atomic
	t "$name: traffic" traffic "$1" "$2" "$3"
	t "$name: captured without loss" stop
	t "$name: scapy: every ICRC and header right" /usr/bin/python3 "$here/wire_check.py" --udp-checksum --mtu "$3" --tclass $tclass --flow $flow "$cap"
	tail -n 3 "$tmp/t.out" | sed 's/^/# /'
	t "$name: tshark: nothing malformed" tshark_clean "$cap"
	[[ -d /run/share ]] && ((T_FAILED)) && cp "$cap" /run/share/
done
done_testing
