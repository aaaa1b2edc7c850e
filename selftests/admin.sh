#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What an administrator has in hand: firewall rules on either end and on a bridge
# in between that neither end controls, connection tracking, routes, rate limits,
# shaping, priorities, captures.
#	admin.sh [rules|fails|limits]...	everything, or these parts only
#
# timeout: 300
. "$(dirname "$0")/lib.sh"
wanted() { [[ -z $parts || " $parts " == *" $1 "* ]]; }
parts=$*
places=("A:inet output" "A:inet input" "B:inet output" "B:inet input" "M:bridge forward")
modprobe -q nf_tables; command -v nft > /dev/null || skip_all "no nft (Debian: nftables)"

nft() { inns "$1" /usr/sbin/nft "${@:2}"; }
bridge_of_ends() {
	topo_hop 4200 && links && pin_neighbours
}
ct_loaded() { grep -q '^nf_conntrack ' /proc/modules; }

counter() { rdma -j statistic show link "$1/1" | grep -o "\"$2\":[0-9]*" | grep -o '[0-9]*$'; }
# Has B received more from A, and A more from B, since they were last asked?
moving() {
	local a b rc
	a=$(counter "$LA" rcvd_pkts) b=$(counter "$LB" rcvd_pkts)
	((a > last_a && b > last_b)); rc=$?
	last_a=$a last_b=$b
	return $rc
}
last_a=0 last_b=0
# Nothing reaches one of the ends, for longer than that is kept from its CPU.
stalled() {
	local a b
	a=$(counter "$LA" rcvd_pkts) b=$(counter "$LB" rcvd_pkts)
	read -rt $slow <> <(:) || :
	(($(counter "$LA" rcvd_pkts) == a || $(counter "$LB" rcvd_pkts) == b))
}

# Traffic for as long as wanted; a lost packet is asked for again for 8 s and more
# (-u 18: 1 s, -q 7 times).  stream [6]: over IPv6
stream() {
	local p=$((port++)) a=A${1:-4} b=B${1:-4} args
	args="-F -u 18 -s 65536 --run_infinitely -p $p"
	spawn "$NSA" ib_write_bw -d "$LA" -x "$(gid_index "$LA" ${!a})" $args > "$tmp/stream-a" 2>&1 & server=$!
	wait_for 20 listening "$NSA" $p || return
	spawn "$NSB" ib_write_bw -d "$LB" -x "$(gid_index "$LB" ${!b})" $args $A4 > "$tmp/stream-b" 2>&1 & client=$!
	wait_for 20 moving && wait_for 20 moving
}
stop() { kill -9 $client $server; wait $client $server; } 2> /dev/null
alive() { kill -0 $client && kill -0 $server; }

# rule NAMESPACE FAMILY HOOK: RoCE is dropped there
rule() {
	nft "$1" -f - <<-NFT
		table $2 rove {
			chain c {
				type filter hook $3 priority 0
				udp dport 4791 counter drop
			}
		}
	NFT
}
unrule() { nft "$1" delete table $2 rove; }
dropped() { nft "$1" list ruleset | grep -q 'packets [1-9].*drop'; }

# The stream stands still under a rule, and goes on when another accepts it first.
survives() {
	alive || { cat "$tmp"/stream-*; return 1; }
	rule "$@" || return
	wait_for 5 dropped "$1" && wait_for 5 stalled &&
	nft "$1" insert rule $2 rove c udp dport 4791 counter accept &&
	wait_for 20 moving && wait_for 20 moving && alive; local rc=$?
	nft "$1" list table $2 rove
	unrule "$1" $2
	((rc == 0)) && return
	cat "$tmp"/stream-*
	return 1
}
# A rule that stays ends the connection, and with the status that says why.
fails() {
	local p=$((port++)) rc
	spawn "$NSA" ibv_rc_pingpong -d "$LA" -g "$(gid_index "$LA" $A4)" -p $p -n 100000000 > "$tmp/server" 2>&1 & server=$!
	wait_for 20 listening "$NSA" $p || return
	spawn "$NSB" ibv_rc_pingpong -d "$LB" -g "$(gid_index "$LB" $B4)" -p $p -n 100000000 $A4 > "$tmp/client" 2>&1 & client=$!
	wait_for 20 moving && rule "$@" || { stop; return 1; }
	# One is enough: the other may have nothing under way, and wait for ever.
	wait_for 20 eval '! alive'; rc=$?
	stop
	unrule "$1" $2
	cat "$tmp/server" "$tmp/client"
	((rc == 0)) && grep -hq 'status retry counter exceeded\|transport retry counter exceeded' "$tmp/server" "$tmp/client"
}

# Tracked as any UDP that nobody answers from where it went: each direction is a flow of its
# own, "new" for ever (a source port each, A17.9.2), so "established" alone lets nothing in.
# stateful [6]: over IPv6
stateful() {
	local gid=%g${1:-4} rc got flows
	nft "$NSA" -f - <<-'NFT' || return
		table inet rove {
			chain c {
				type filter hook input priority 0
				udp dport 4791 ct state established counter
				udp dport 4791 ct state new counter accept
				udp dport 4791 counter drop
			}
		}
	NFT
	both 60 A "ibv_rc_pingpong -d %d -g $gid -p %p -c"; rc=$?
	got=$(nft "$NSA" list ruleset) flows=$(nA cat /proc/sys/net/netfilter/nf_conntrack_count)
	unrule "$NSA" inet
	echo "$got"; echo "$flows flows"
	((rc == 0 && flows > 0)) && grep -q 'counter packets [1-9][0-9]*.* accept' <<< "$got" &&
	grep -q 'established counter packets 0 ' <<< "$got" &&
	grep -q 'counter packets 0 bytes 0 drop' <<< "$got"
}

# --- rules ----------------------------------------------------------------------

name_of() {
	case $1 in
	M*) echo "on a bridge in between" ;;
	*) echo "at end ${1%%:*}, ${1##* }" ;;
	esac
}
# A neighbour that nobody is: what is sent there arrives nowhere.
rerouted() {
	nB ip neigh replace 10.77.0.99 lladdr 02:00:00:00:00:99 dev vb nud permanent &&
	nB ip route replace $A4/32 via 10.77.0.99 dev vb onlink src $B4 || return
	wait_for 5 stalled; local rc=$?
	nB ip route del $A4/32
	((rc == 0)) && wait_for 20 moving && wait_for 20 moving && alive
}
# Likewise for a UD QP that writes by turns through two address handles.
rerouted_ud() {
	local n
	coproc "$bin/ah_routes" "$LB" "$(gid_index "$LB" $B4)" "$LA" "$(gid_index "$LA" $A4)"
	arrive() { echo >&"${COPROC[1]}"; read -rt 20 n <&"${COPROC[0]}"; echo "$n, should be $1"; ((n == $1)); }
	arrive 8 && arrive 8 &&
	nB ip route replace $A4/32 via 10.77.0.99 dev vb onlink src $B4 && arrive 0; local rc=$?
	nB ip route del $A4/32
	((rc == 0)) && arrive 8
}
# What comes from the peer is routed nowhere, though all before it was for this machine.  (The
# rule has to come before the one that says what is.)  barred [6]: over IPv6
barred() {
	local a=A${1:-4} ip="ip -${1:-4} rule" rc
	nB $ip add pref 5 lookup local && nB $ip del pref 0 &&
	nB $ip add pref 1 iif vb from ${!a} blackhole && wait_for 5 stalled; rc=$?
	nB $ip add pref 0 lookup local && nB $ip del pref 1 && nB $ip del pref 5 || return
	((rc == 0)) && wait_for 20 moving && wait_for 20 moving && alive
}
# Programs send nothing to the port; what rove sends belongs to no program's socket.
owned() {
	local rc
	nft "$NSB" -f - <<-'NFT' || return
		table inet rove {
			chain c {
				type filter hook output priority 0
				udp dport 4791 meta skuid >= 0 counter drop
			}
		}
	NFT
	! nB bash -c "echo forged > /dev/udp/$A4/4791" && dropped "$NSB" && moving && wait_for 20 moving && alive
	rc=$?
	nft "$NSB" list table inet rove
	unrule "$NSB" inet
	return $rc
}
# A veth pair hands checksums on unfinished, unless told that it cannot.
capture() {
	nB ethtool -K vb tx-checksum-ip-generic off > /dev/null
	nM timeout 20 tcpdump -c 200 -n -i ma -w "$tmp/pcap" udp port 4791
	nB ethtool -K vb tx-checksum-ip-generic on > /dev/null
	tcpdump -n -vv -r "$tmp/pcap" > "$tmp/packets" 2> /dev/null
	head -n 4 "$tmp/packets"
	# B's are as on a wire: none longer than the MTU, and with checksums that are right
	(($(grep -c "$B4.*4791: .*udp sum ok" "$tmp/packets") > 50)) && ! grep "$B4\..* > .*bad udp" "$tmp/packets" &&
	awk '{ for (i = 1; i < NF; i++) if ($i == "length" && $(i + 1) + 0 > 4200) exit 1 }' "$tmp/packets"
}

if wanted rules; then
	modprobe -q -r rove nft_ct nf_conntrack_netlink nf_conntrack
	bridge_of_ends || bail "two links and a bridge"
	if ct_loaded; then
		skip "ct state: rove loaded first" "nf_conntrack is there before, and does not go"
	else
		t "ct state: rove loaded first" stateful
	fi
	topo_del
	modprobe -r rove && ct_loaded || bail "nf_conntrack without rove"
	bridge_of_ends || bail "two links and a bridge"
	t "ct state: nf_conntrack loaded first" stateful
	t "ct state, IPv6" stateful 6
	stream || bail "a stream of WRITEs"
	for what in "${places[@]}"; do
		ns=NS${what%%:*}
		t "a drop rule $(name_of "$what"): all stands still; an accept rule, and all goes on" survives "${!ns}" ${what#*:}
	done
	t "a rule by owner: programs' packets to the port are dropped, rove's are not" owned
	t "a route that changes: the next packet takes it" rerouted
	t "a route that changes: datagrams of two address handles, too" rerouted_ud
	t "a rule that bars the peer: what it sends is let in no more, until the rule goes" barred
	t "tcpdump on the bridge sees the packets as on a wire" capture
	stop
	stream 6 || bail "a stream of WRITEs over IPv6"
	for what in "A:inet output" "M:bridge forward"; do
		ns=NS${what%%:*}
		t "IPv6, a drop rule $(name_of "$what"): all stands still; an accept rule, and all goes on" survives "${!ns}" ${what#*:}
	done
	t "IPv6: a rule that bars the peer" barred 6
	stop
else
	bridge_of_ends || bail "two links and a bridge"
fi

if wanted fails; then
	for what in "${places[@]}"; do
		ns=NS${what%%:*}
		t "a drop rule that stays $(name_of "$what"): retry exceeded" fails "${!ns}" ${what#*:}
	done
fi

# --- limits -----------------------------------------------------------------------

# MiB a second of N writes of 64 KiB from B to A
bw() {
	local args="-F -d %d -x %g4 -p %p -s 65536 -n $1 -u 18 ${2:-}"
	both 120 A "ib_write_bw $args" || return
	awk '$1 == 65536 { print $4 }' "$tmp/client"
}
between() { echo "MiB/s: $1, to be within $2 and $3"; awk -v g="$1" -v a="$2" -v b="$3" 'BEGIN { exit !(g > a && g < b) }'; }
# nft's bucket holds a second's worth, which goes through at once: 4 MB of 20
limited() {
	nft "$NSM" -f - <<-'NFT' || return
		table bridge rove {
			chain c {
				type filter hook forward priority 0
				udp dport 4791 limit rate over 4 mbytes/second counter drop
			}
		}
	NFT
	local got; got=$(bw 320)
	nft "$NSM" list ruleset | grep packets; unrule "$NSM" bridge
	between "$got" 0.3 5.5
}
# 40 Mbit/s are 4.77 MiB/s, headers and all.  A queue in between overflows before
# the sender knows of it.
shaped_to="40 Mbit/s, and at least 80 % of it are used" least=3.82
((slow == 1)) || shaped_to="40 Mbit/s" least=-1		# a slow kernel takes its time besides
shaped() {	# WHERE DEVICE LATENCY
	local got
	$1 tc qdisc replace dev $2 root tbf rate 40mbit burst 64k latency $3 || return
	got=$(bw 160)
	$1 tc -s qdisc show dev $2; $1 tc qdisc del dev $2 root
	rdma statistic show link "$LB/1"
	between "$got" $least 4.9
}

# Does traffic class 184, DSCP EF, land in band 1, and other traffic in band 3?
prio() {
	local v=$1 what=$2 rc	# how u32 names the byte
	nB tc qdisc replace dev vb root handle 1: prio bands 3 priomap 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 &&
	nB tc filter add dev vb parent 1: protocol $what 0xb8 0xfc flowid 1:1 &&
	lands_in 3 "-x %g$v" && lands_in 1 "-x %g$v --tclass=184"; rc=$?
	nB tc qdisc del dev vb root
	return $rc
}
lands_in() {	# BAND OPTIONS
	local sent
	sent=$(bytes_in 1:$1)
	both 60 A "ib_write_bw -F -d %d -p %p -n 50 $2" || return
	nB tc -s class show dev vb
	(($(bytes_in 1:$1) - sent > 50 * 65536))
}
bytes_in() { nB tc -s class show dev vb | grep -A 1 "class prio $1 " | sed -n 's/ *Sent \([0-9]*\) .*/\1/p'; }
# the stack's own idea of it, without a filter: skb->priority from the ToS
by_tos() {
	local rc
	nB tc qdisc replace dev vb root handle 1: prio bands 3 && lands_in 1 "-x %g4 --tclass=16"; rc=$?
	nB tc qdisc del dev vb root
	return $rc
}

if wanted limits; then
	t "tc tbf on a bridge port that neither end controls: $shaped_to" shaped nM ma 400ms
	t "priority by DSCP, IPv6" prio 6 "ipv6 u32 match ip6 priority"
	t "nft limit on a bridge that neither end controls: 4 MB/s are not exceeded" limited
	t "tc tbf on the link's own device: $shaped_to" shaped nB vb 400ms
	t "priority by DSCP, IPv4: traffic class 184 is EF, and lands in the band for it" prio 4 "ip u32 match ip dsfield"
	t "priority by ToS: minimum delay is the first band of the kernel's priomap" by_tos
fi
done_testing
