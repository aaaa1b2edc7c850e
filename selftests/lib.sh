# SPDX-License-Identifier: GPL-2.0
# Sourced by the shell tests: TAP output, the network they run on, one trap that
# takes all of it away again, and waiting by polling a condition.
#
# Two ends, A and B, with one RDMA link each:
#
#	 namespace $NSA                               namespace $NSB
#	+--------------------+                       +--------------------+
#	| $LA  ($DRIVER_A)   |      topo_pair        |   ($DRIVER_B)  $LB |
#	|  va  10.77.0.1/24 -|-----------------------|- 10.77.0.2/24  vb  |
#	|      fd77::1/64    |                       |  fd77::2/64        |
#	+---------|----------+                       +---------|----------+
#	          |         +------- $NSM ----------+          |
#	          '---------|- ma --- br0 ---- mb  -|----------'
#	                    +-----------------------+
#	                 topo_hop: a bridge in between; netem sits on ma and mb,
#	                 where only single packets come by (segmentation is off
#	                 on va and vb)
#
# DRIVER_A and DRIVER_B are rove unless set (DRIVER sets both).  rdma_rxe works
# in the initial namespace only, so an end with rxe stays there ($NSA or $NSB is
# empty), and with rxe at both ends, or with ONE_NS set, policy routes force the
# packets over the wire ("flat").
#
# In a guest that is one of two (vm/run --far) A is here, in the initial namespace,
# and B in the other guest: $NSB is "@far".  Commands for B go there (vm/far.c), and
# topo_pair sets up the devices between the two.  Tests that use nA, nB, both, on and
# the like run there unchanged.

# Links and the module go, memory is used up: nothing for a machine that has other work.
[[ $ROVE_GUEST ]] || { echo "$0 is for a guest:  selftests/vm/run -k 6.12 $0" >&2; exit 2; }

DRIVER_A=${DRIVER_A:-${DRIVER:-rove}}
DRIVER_B=${DRIVER_B:-${DRIVER:-rove}}
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
bin=$here/../build/selftests
tmp=$(mktemp -d)
port=18500
T_COUNT=0 T_FAILED=0
NSA= NSB= NSM= LA= LB= FLAT=
A4=10.77.0.1 B4=10.77.0.2 A6=fd77::1 B6=fd77::2
WAIT=${WAIT:-20}
slow=${ROVE_SLOW:-1}		# as many times longer may everything take (vm/run --slow)
# also before the kernel says that a netdev is still in use, which fails the test
((slow == 1)) || sysctl -qw net.core.netdev_unregister_timeout_secs=$((10 * slow))

# --- TAP --------------------------------------------------------------------

say() { echo "# $*"; }
ok() { echo "ok $((++T_COUNT)) - $*"; }
skip() { echo "ok $((++T_COUNT)) - $1 # SKIP ${2:-}"; }
not_ok() { echo "not ok $((++T_COUNT)) - $*"; ((++T_FAILED)); return 1; }
skip_all() { echo "1..0 # SKIP $*"; exit 0; }

# t NAME COMMAND...: one test point; skipped where the command says that it "cannot".
t() {
	local name=$1 rc; shift
	rm -f "$tmp/t.skip"
	("$@") > "$tmp/t.out" 2>&1; rc=$?
	if ((rc == 0)); then
		ok "$name"
	elif ((rc == SKIPPED)) && [[ -e $tmp/t.skip ]]; then	# programs fail with this number, too
		skip "$name" "$(< "$tmp/t.skip")"
	else
		not_ok "$name"; say "exit code $rc of: $*"; tail -n 30 "$tmp/t.out" | sed 's/^/#   /'
	fi
	return $rc
}

# cannot WHY: what is to be tested has no means here; "|| return" to hand it on
SKIPPED=4
cannot() { echo "$*" > "$tmp/t.skip"; return $SKIPPED; }

done_testing() {
	echo "1..$T_COUNT"
	exit $((T_FAILED > 0))
}

bail() { not_ok "$1"; say "set-up failed, the rest of this test did not run"; done_testing; }

# --- waiting ------------------------------------------------------------------

# wait_for SECONDS COMMAND...: until the command succeeds
wait_for() {
	local end=$((SECONDS + $1 * slow)); shift
	until "$@" > /dev/null 2>&1; do
		((SECONDS < end)) || { echo "waited in vain for: $*" >&2; return 1; }
		read -rt 0.05 <> <(:) || :
	done
}

# stretch COMMAND...: into $args; a timeout is longer on a slow kernel
stretch() {
	local i
	args=("$@")
	[[ $1 == timeout ]] || return 0
	for ((i = 1; i < $#; i++)); do
		if [[ ${args[i]} =~ ^[0-9.]+$ && ${args[i - 1]} != -[ks] ]]; then
			args[i]=$(awk "BEGIN { print ${args[i]} * $slow }")
			return
		fi
	done
	return 0
}
((slow == 1)) || timeout() { local args; stretch timeout "$@"; command "${args[@]}"; }

gone() { ! kill -0 "$1" 2>/dev/null; }
# end_capture PID: of a tcpdump that need not be this shell's child
end_capture() { kill -INT "$1"; wait_for 20 gone "$1"; }

# --- both ends ------------------------------------------------------------------

prefix_of() {	# NAMESPACE: what takes a command there
	case $1 in
	"") prefix=() ;;
	@far) prefix=("$bin/far" $ROVE_FAR) ;;
	*) prefix=(ip netns exec "$1") ;;
	esac
}
inns() {
	local prefix args
	prefix_of "$1"; shift
	((${#prefix[@]})) || { "$@"; return; }
	stretch "$@"
	"${prefix[@]}" "${args[@]}"
}
# for the background: $! is the program itself
spawn() { local prefix args; prefix_of "$1"; shift; stretch "$@"; exec "${prefix[@]}" "${args[@]}"; }
nA() { inns "$NSA" "$@"; }
nB() { inns "$NSB" "$@"; }
nM() { inns "$NSM" "$@"; }
# on LINK COMMAND...: in the initial namespace of the machine where the link is
is_far() { [[ $NSB == @far && $1 == "$LB" ]]; }
on() { if is_far "$1"; then shift; nB "$@"; else shift; "$@"; fi; }

# Take links, devices and namespaces away; a new topo_... may follow.
topo_del() {
	local ns v
	[[ $LA ]] && rdma link delete "$LA" 2>/dev/null
	[[ $LB ]] && on "$LB" rdma link delete "$LB" 2>/dev/null
	# it keeps UDP port 4791 of the initial namespace for as long as it is loaded
	[[ $DRIVER_A == rxe ]] && modprobe -q -r rdma_rxe
	[[ $DRIVER_B == rxe ]] && on "$LB" modprobe -q -r rdma_rxe
	[[ $ROVE_FAR ]] || nA ip link del va 2>/dev/null
	for ns in $NSA $NSB $NSM; do ip netns del "$ns" 2>/dev/null; done
	if [[ $FLAT ]]; then
		for v in -4 -6; do
			ip $v rule add pref 0 lookup local
			for ns in 5 6 10 11 12 100; do ip $v rule del pref $ns; done
		done 2>/dev/null
	fi
	NSA= NSB= NSM= LA= LB= FLAT=
}

cleanup() {
	local job
	trap - EXIT
	for job in $(jobs -p); do kill -9 "$job" 2>/dev/null; done
	wait 2>/dev/null
	if declare -F extra_cleanup > /dev/null; then extra_cleanup; fi
	not_for_nobody
	topo_del
	rm -rf "$tmp"
}
trap cleanup EXIT
trap 'exit 143' TERM INT

new_ns() {
	local ns="rove-$1-$$"
	ip netns add "$ns" && ip -n "$ns" link set lo up && inns "$ns" sysctl -qw \
		net.ipv6.conf.all.accept_dad=0 net.ipv6.conf.default.accept_dad=0 && echo "$ns"
}

need_driver() {
	local d
	# the other guest's is topo_wire's matter: here it would take the UDP port
	for d in "$DRIVER_A" ${ROVE_FAR:-"$DRIVER_B"}; do
		case $d in
		rxe) modprobe rdma_rxe || skip_all "no rdma_rxe" ;;
		rove) modprobe rove || bail "modprobe rove" ;;
		esac
	done
	sysctl -qw net.ipv6.conf.all.accept_dad=0 net.ipv6.conf.default.accept_dad=0
}

make_namespaces() {
	need_driver
	[[ $ROVE_FAR ]] && { NSB=@far; return; }
	[[ $DRIVER_A == rxe || ${ONE_NS:-} ]] || NSA=$(new_ns a) || bail "namespace a"
	[[ $DRIVER_B == rxe || ${ONE_NS:-} ]] || NSB=$(new_ns b) || bail "namespace b"
	[[ $NSA || $NSB ]] || FLAT=1
}

# set_end NS DEV MTU V4 V6
set_end() {
	inns "$1" ip link set "$2" mtu "$3" up &&
	inns "$1" ip addr add "$4/24" dev "$2" &&
	inns "$1" ip addr add "$5/64" dev "$2" nodad
}

# Two addresses of one namespace talk over lo; make them take the wire.
flatten() {
	local v
	sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.{va,vb}.rp_filter=0 \
		net.ipv4.conf.{va,vb}.accept_local=1 net.ipv4.conf.{va,vb}.arp_ignore=1
	for v in -4 -6; do
		ip $v rule add pref 100 lookup local
		ip $v rule del pref 0
	done
	ip rule add pref 10 from $A4 to $B4 lookup 1001
	ip rule add pref 11 from $B4 to $A4 lookup 1002
	ip -6 rule add pref 10 from $A6 to $B6 lookup 1001
	ip -6 rule add pref 11 from $B6 to $A6 lookup 1002
	# whoever names no source of its own talks to B from A
	ip rule add pref 12 iif lo to $B4 lookup 1001
	# IPv4: incoming packets for a local address must still find it
	ip rule add pref 5 iif va lookup local; ip rule add pref 6 iif vb lookup local
	ip -6 rule add pref 5 iif va lookup local; ip -6 rule add pref 6 iif vb lookup local
	flat_routes
}

# They go when a device is set down.
flat_routes() {
	local am bm
	ip route replace $B4/32 dev va src $A4 table 1001; ip route replace $A4/32 dev vb src $B4 table 1002
	ip -6 route replace $B6/128 dev va src $A6 table 1001; ip -6 route replace $A6/128 dev vb src $B6 table 1002
	am=$(< /sys/class/net/va/address); bm=$(< /sys/class/net/vb/address)
	ip neigh replace $B4 lladdr "$bm" dev va nud permanent; ip neigh replace $A4 lladdr "$am" dev vb nud permanent
	ip -6 neigh replace $B6 lladdr "$bm" dev va nud permanent; ip -6 neigh replace $A6 lladdr "$am" dev vb nud permanent
}

# The two guests' devices, called va and vb for as long as these live.
reset_wire() {	# NS NAME
	inns "$1" bash -c "ip link set wire name $2 2>/dev/null; ip link set $2 down; ip addr flush dev $2
		tc qdisc del dev $2 root 2>/dev/null; sysctl -qw net.ipv6.conf.$2.accept_dad=0 2>/dev/null; true"
}
topo_wire() {
	local mtu=$1
	wait_for 120 nB true && nB modprobe "${DRIVER_B/#rxe/rdma_rxe}" || return
	reset_wire "" va && reset_wire @far vb && set_end "$NSA" va "$mtu" $A4 $A6 && set_end "$NSB" vb "$mtu" $B4 $B6
}

# topo_pair [MTU]: the netdevs', unless $MTU says otherwise
topo_pair() {
	local mtu=${MTU:-${1:-4200}}
	make_namespaces
	[[ $ROVE_FAR ]] && { topo_wire "$mtu"; return; }
	ip link add va type veth peer name vb || return
	[[ $NSA ]] && ip link set va netns "$NSA"
	[[ $NSB ]] && ip link set vb netns "$NSB"
	set_end "$NSA" va "$mtu" $A4 $A6 && set_end "$NSB" vb "$mtu" $B4 $B6 || return
	[[ $FLAT ]] && flatten
	return 0
}

# topo_hop [MTU]
topo_hop() {
	local mtu=${1:-4200}
	[[ $ROVE_FAR ]] && skip_all "needs a hop between the ends"
	make_namespaces
	NSM=$(new_ns m) || bail "namespace m"
	ip link add va type veth peer name ma && ip link set dev ma netns "$NSM" || return
	ip link add vb type veth peer name mb && ip link set dev mb netns "$NSM" || return
	[[ $NSA ]] && ip link set va netns "$NSA"
	[[ $NSB ]] && ip link set vb netns "$NSB"
	nM ip link add br0 type bridge forward_delay 0 mcast_snooping 0
	local p
	for p in ma mb; do nM ip link set dev $p mtu "$mtu" master br0 up; done
	nM ip link set br0 mtu "$mtu" up
	nA ethtool -K va tx-udp-segmentation off generic-segmentation-offload off > /dev/null 2>&1
	nB ethtool -K vb tx-udp-segmentation off generic-segmentation-offload off > /dev/null 2>&1
	set_end "$NSA" va "$mtu" $A4 $A6 && set_end "$NSB" vb "$mtu" $B4 $B6 || return
	[[ $FLAT ]] && flatten
	return 0
}

# The ends know each other's MAC for good: modify_qp resolves it, and ib_core
# gives that one second, which a lost neighbour solicitation uses up.
pin_neighbours() {
	local ma mb
	ma=$(nA cat /sys/class/net/va/address) mb=$(nB cat /sys/class/net/vb/address)
	nA ip neigh replace $B4 lladdr "$mb" dev va nud permanent &&
	nA ip neigh replace $B6 lladdr "$mb" dev va nud permanent &&
	nB ip neigh replace $A4 lladdr "$ma" dev vb nud permanent &&
	nB ip neigh replace $A6 lladdr "$ma" dev vb nud permanent
}

# netem_hop ARGS...: on both directions of the second hop;  none: take it off
netem_hop() { nM tc qdisc replace dev ma root netem "$@" && nM tc qdisc replace dev mb root netem "$@"; }
# netem_first ARGS...: on the devices of the links themselves
netem_first() { nA tc qdisc replace dev va root netem "$@" && nB tc qdisc replace dev vb root netem "$@"; }
netem_off() {
	nA tc qdisc del dev va root 2>/dev/null; nB tc qdisc del dev vb root 2>/dev/null
	[[ $NSM ]] && { nM tc qdisc del dev ma root 2>/dev/null; nM tc qdisc del dev mb root 2>/dev/null; }
	return 0
}

# --- RDMA links -------------------------------------------------------------------

link_add() { inns "$1" rdma link add "$2" type "$3" netdev "$4"; }	# NS NAME DRIVER DEV
# to_netns LINK NS, made there: an older ib_core has it in the initial namespace
to_netns() { inns "$2" rdma link | grep -q "$1" || rdma dev set "$1" netns "$2"; }
port_active() { [[ $(on "$1" cat "/sys/class/infiniband/$1/ports/1/state" 2>/dev/null) == *ACTIVE* ]]; }

no_links() { [[ ! -d /sys/class/infiniband || -z $(ls /sys/class/infiniband) ]]; }

# links: one on each end, and wait until they can be used
links() {
	LA=${DRIVER_A}a; link_add "$NSA" "$LA" "$DRIVER_A" va || return
	LB=${DRIVER_B}b; link_add "$NSB" "$LB" "$DRIVER_B" vb || return
	wait_for "$WAIT" port_active "$LA" && wait_for "$WAIT" port_active "$LB" &&
	wait_for "$WAIT" gid_index "$LA" $A4 && wait_for "$WAIT" gid_index "$LB" $B4 &&
	wait_for "$WAIT" gid_index "$LA" $A6 && wait_for "$WAIT" gid_index "$LB" $B6
}

# gid_of ADDRESS: as sysfs writes it
gid_of() {
	/usr/bin/python3 -c '
import sys, ipaddress as i
a = i.ip_address(sys.argv[1])
print(i.ip_address("::ffff:" + str(a)).exploded if a.version == 4 else a.exploded)' "$1"
}

declare -A GID_OF=([$A4]=0000:0000:0000:0000:0000:ffff:0a4d:0001 [$B4]=0000:0000:0000:0000:0000:ffff:0a4d:0002
	[$A6]=fd77:0000:0000:0000:0000:0000:0000:0001 [$B6]=fd77:0000:0000:0000:0000:0000:0000:0002)
# gid_index DEV ADDRESS: the index of its RoCE v2 GID
gid_index() {
	local want=${GID_OF[$2]:-} i gid type dir=/sys/class/infiniband/$1/ports/1
	[[ $want ]] || { want=$(gid_of "$2"); GID_OF[$2]=$want; }
	if is_far "$1"; then
		nB bash -c "$(declare -f gid_index is_far); declare -A GID_OF=([$2]=$want); gid_index $1 $2"
		return
	fi
	for i in {0..63}; do
		{ read -r gid < "$dir/gids/$i"; } 2>/dev/null || return 1
		[[ $gid == "$want" ]] || continue
		{ read -r type < "$dir/gid_attrs/types/$i"; } 2>/dev/null || continue
		if [[ $type == "RoCE v2" ]]; then
			echo $i
			return 0
		fi
	done
	return 1
}

# no_objects KIND...: programs have none on our links (ib_core and rdma_cm keep theirs)
no_objects() {
	local kind
	for kind; do
		rdma resource show "$kind" > "$tmp/objects" || return
		! grep -E "(link|dev) ($DRIVER_A|$DRIVER_B)" "$tmp/objects" | grep -v 'comm \[' || return
	done
}

# --- a server and a client ------------------------------------------------------------

ends_of() { head -n 4 "$1"; echo ...; tail -n 10 "$1"; }
listening() { inns "$1" ss -Hltn "sport = :$2" | grep -q .; }
# likewise, for a listener of rdma_cm's
cm_listening() { inns "$1" rdma resource show cm_id | grep -q "LISTEN.*:$2 "; }

# both SECONDS A|B SERVER-COMMAND [CLIENT-COMMAND]
# Runs the server on the end named, the client on the other, by default the server's command
# with the server's address behind it; in the commands
# %d is the device, %g4 and %g6 the GID index, %p the TCP port, %s the server's
# address (IPv4) for a TCP connection, %a4 and %a6 its link's, %c4 and %c6 the
# client's link's.  The client starts when the server listens, as $READY
# (listening, cm_listening) sees it.  Output: $tmp/server, $tmp/client.
both_once() {
	local limit=$1 side=$2 srv=$3 cli=${4:-$3 %s} sns cns sdev cdev saddr caddr pid rc src p=$((port++))
	local s4 s6 c4 c6 sa4 sa6 ca4 ca6
	if [[ $side == A ]]; then
		sns=$NSA cns=$NSB sdev=$LA cdev=$LB saddr=$A4 sa4=$A4 sa6=$A6 ca4=$B4 ca6=$B6
		s4=$(gid_index "$LA" $A4) s6=$(gid_index "$LA" $A6) c4=$(gid_index "$LB" $B4) c6=$(gid_index "$LB" $B6)
	else
		sns=$NSB cns=$NSA sdev=$LB cdev=$LA saddr=$B4 sa4=$B4 sa6=$B6 ca4=$A4 ca6=$A6
		s4=$(gid_index "$LB" $B4) s6=$(gid_index "$LB" $B6) c4=$(gid_index "$LA" $A4) c6=$(gid_index "$LA" $A6)
	fi
	[[ $FLAT ]] && saddr=127.0.0.1
	srv=${srv//%a4/$sa4} srv=${srv//%a6/$sa6} cli=${cli//%a4/$sa4} cli=${cli//%a6/$sa6}
	srv=${srv//%c4/$ca4} srv=${srv//%c6/$ca6} cli=${cli//%c4/$ca4} cli=${cli//%c6/$ca6}
	srv=${srv//%d/$sdev} srv=${srv//%g4/$s4} srv=${srv//%g6/$s6} srv=${srv//%p/$p}
	cli=${cli//%d/$cdev} cli=${cli//%g4/$c4} cli=${cli//%g6/$c6} cli=${cli//%p/$p} cli=${cli//%s/$saddr}
	: > "$tmp/client"
	spawn "$sns" timeout -k 5 "$limit" bash -c "$srv" > "$tmp/server" 2>&1 &
	pid=$!
	if ! wait_for 30 eval "${READY:-listening} '$sns' $p || gone $pid" || gone $pid; then
		echo "server does not listen: $srv"; cat "$tmp/server"
		kill $pid 2>/dev/null; wait $pid; return 1
	fi
	inns "$cns" timeout -k 5 "$limit" bash -c "$cli" > "$tmp/client" 2>&1
	rc=$?
	# when the client has failed the server may wait for ever
	if ((rc)); then kill $pid 2>/dev/null; fi
	wait $pid; src=$?
	if ((rc || src)); then
		echo "client ($rc): $cli"; ends_of "$tmp/client"
		echo "server ($src): $srv"; ends_of "$tmp/server"
		return 1
	fi
}

# perftest measures the CPU's clock first, and gives up, or divides by nothing, when a busy
# machine makes it doubt the result: then once more.
doubtful() { grep -qs 'Correlation coefficient' "$tmp/client" "$tmp/server"; }
both() { lucky doubtful both_once "$@"; }

# lucky EXCUSE COMMAND...: up to five times, or more on a slow kernel, where the command EXCUSE
# says that the failure is no fault of ours; what it has printed last is in $tmp/lucky.EXCUSE
lucky() {
	local excuse=$1 try; shift
	for ((try = 1; ; try++)); do
		"$@" > "$tmp/lucky.$excuse" && return
		((try < 5 * slow)) && $excuse || break
	done
	cat "$tmp/lucky.$excuse"
	return 1
}
# as both, for perftest: there is a figure as well
measured() { lucky doubtful measured_once "$@"; }
measured_once() {
	both_once "$@" || return
	grep -A3 '#bytes' "$tmp/client" | grep -qE '^ [0-9]+ +[0-9]+ +[0-9.]+' || { cat "$tmp/client"; return 1; }
}

# rc_data NAME SERVER-END OPTIONS: its cases as test points of ours; a failure
# on either end counts
rc_data() {
	local name=$1 side=$2 opts=$3 line rc
	both "${RC_DATA_LIMIT:-300}" "$side" "$bin/rc_data -d %d -p %p $opts" > "$tmp/both"
	rc=$?
	while IFS= read -r line; do
		case $line in
		"ok - "*) ok "$name: ${line#ok - }" ;;
		"not ok - "*)
			not_ok "$name: ${line#not ok - }"
			grep -F "${line%%:*}" "$tmp/server" | sed 's/^/#   server: /' ;;
		esac
	done < "$tmp/client"
	if ((rc)) && ! grep -q '^not ok' "$tmp/client"; then
		not_ok "$name: runs to its end"
		sed 's/^/#   /' "$tmp/both"
	fi
	return 0
}

# On a debug kernel: has rove lost memory?  Counting it is of no use there, since KASAN keeps
# what is freed for a time.  Twice, for what is fresh may be referenced from a stack only;
# and not before all is 5 s old, since nothing younger is reported.  User-mode Linux 7.3
# loses the task of a program that has ended now and then, whatever it did, and its credentials:
# not counted.
kmemleak=/sys/kernel/debug/kmemleak
no_leaks() {
	local now=$SECONDS
	wait_for 10 eval '((SECONDS > now + 5))'
	echo scan > $kmemleak && echo scan > $kmemleak || return
	! awk -v RS='unreferenced object' '
		NR > 1 && !/copy_process|prepare_exec_creds|alloc_task_exec_state|__sys_setuid/ { print; lost = 1 }
		END { exit !lost }' $kmemleak
}

# for_nobody PROGRAM: a copy of one of ours, and of the provider, that a user without
# rights can read, wherever the tree is; as_nobody COMMAND...: be that user.
for_nobody() {
	local lib=$here/../userspace-provider/librove-rdmav34.so
	[[ $provider_was ]] || provider_was=$(< /etc/libibverbs.d/rove.driver)
	nobodys+=("/tmp/$1.$$")
	install -m 755 "$bin/$1" "/tmp/$1.$$" && install -m 755 "$lib" "/tmp/librove$$-rdmav34.so" &&
	echo "driver /tmp/librove$$" > /etc/libibverbs.d/rove.driver && chmod 666 /dev/infiniband/uverbs*
}
provider_was= nobodys=()
not_for_nobody() {
	[[ $provider_was ]] || return
	echo "$provider_was" > /etc/libibverbs.d/rove.driver
	rm -f "/tmp/librove$$-rdmav34.so" "${nobodys[@]}"
}
as_nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }

# Checked traffic between the links ($traffic: its process), while something else
# happens to them: hostile_ring.c's, which counts its rounds in $tmp/rounds and ends
# when descriptor 9 is closed.
checked_traffic() {
	mkfifo "$tmp/go"
	"$bin/hostile_ring" "$LA" "$(gid_index "$LA" $A4)" "$LB" "$(gid_index "$LB" $B4)" traffic "$tmp/rounds" \
		< "$tmp/go" > "$tmp/traffic" 2>&1 &
	traffic=$!
	exec 9> "$tmp/go"
	wait_for 60 eval 'grep -q ready "$tmp/traffic" && [[ -s $tmp/rounds ]]' || { cat "$tmp/traffic"; bail "traffic"; }
}
traffic_was_right() {
	exec 9>&-
	wait $traffic
	t "traffic was right to the end" eval "(($? == 0)) || { cat $tmp/traffic; false; }"
}

# take_points NAME FILE [PREFIX]: what a program of ours has printed, as points of this test.
# It ends with how many they are, unless something that is no test of its own has failed.
# A program says first why a point fails; here, as everywhere in a script, that comes after it.
take_points() {
	local name=$1 line n=0 ended= why=
	while IFS= read -r line; do
		case $line in
		"ok "*) ok "$3${line#ok * - }" ;;
		"not ok "*) not_ok "$3${line#not ok * - }" ;;
		"1..$n") ((n)) && ended=1; continue ;;
		"1..0 # SKIP "*) ended=1; skip "$name" "${line#*SKIP }"; continue ;;
		*) why+="# ${line#\# }"$'\n'; continue ;;
		esac
		((++n))
		echo -n "$why"
		why=
	done < "$2"
	echo -n "$why"
	[[ $ended ]] || not_ok "$name runs to its end"
	return 0
}
# c_points NAME COMMAND...: likewise, of a program that is run now
c_points() {
	local rc failed=$T_FAILED
	"${@:2}" > "$tmp/points"; rc=$?
	take_points "$1" "$tmp/points"
	((rc == 0 || T_FAILED > failed)) || not_ok "$1 ends well: exit code $rc"
}

# lacks WHAT WHY: a distribution's kernel has it, so that it cannot be made is a failure there
lacks() {
	case $(uname -r) in
	*-amd64) not_ok "$1: $2" ;;
	*) skip "$1" "$2" ;;
	esac
}

# how many rings and the like of rove's are mapped into the kernel
mapped() { grep -cE 'rove_|alloc_queues' /proc/vmallocinfo; }

# new_cgroup CONTROLLER: a control group of the test's own, $cg
new_cgroup() {
	local root=/sys/fs/cgroup
	[[ -e $root/cgroup.controllers ]] || mount -t cgroup2 none $root || cannot "no cgroup v2" || return
	grep -qw "$1" $root/cgroup.controllers || cannot "no $1 controller" || return
	cg=$root/rove-$$
	echo "+$1" > $root/cgroup.subtree_control && mkdir $cg
}
# in_cgroup COMMAND...: instead of this shell
in_cgroup() { echo $BASHPID > $cg/cgroup.procs && exec "$@"; }

# ktest_points [WHAT]: what the kernel consumer has said since the last call, as points of this
# test, WHAT among them.  (The log is empty when a test starts.)
ktest=$here/../build/$(uname -r)/selftests/kmod/rove_ktest.ko
ktest_said=0
ktest_points() {
	local line all="$tmp/ktest" wanted=$1
	dmesg | sed -n 's/^.*rove_ktest: //p' > "$all"
	while IFS= read -r line; do
		case $line in
		"ok "*) ok "${line#ok * - }" ;;
		"not ok "*) not_ok "${line#not ok * - }" ;;
		"#"*) echo "$line" ;;
		esac
		[[ $wanted && $line == *"ok "*"$wanted"* ]] && wanted=
	done < <(tail -n +$((ktest_said + 1)) "$all")
	ktest_said=$(wc -l < "$all")
	[[ -z $wanted ]] || not_ok "the kernel consumer says: $wanted"
}
