#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Malformed and forged packets against a live connection (hostile_packets.py).
# Arguments: [core] [seed]; core is RC, and no floods.
# timeout: 600
. "$(dirname "$0")/lib.sh"

[[ -x $bin/hostile_ring ]] || skip_all "no hostile_ring: make selftests"
/usr/bin/python3 -c 'import scapy.contrib.roce' 2>/dev/null || skip_all "no scapy"
topo_pair 4200 && links || bail "two links"
# the checksum of an empty UDP field, rates: nothing of the stack shall help
nB sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.vb.rp_filter=0
# what B would answer to the sender who is not there, A hears
nB ip neigh replace 10.77.0.99 lladdr "$(nA cat /sys/class/net/va/address)" dev vb nud permanent

# ip netns exec mounts a /sys of its own
if [[ -d /sys/kernel/debug/failslab ]]; then
	export FAILSLAB=$tmp/failslab
	mkdir "$FAILSLAB" && mount --bind /sys/kernel/debug/failslab "$FAILSLAB" || bail "failslab"
fi
# who spins at a real-time priority shall have all of a CPU
declare -A pace
knobs=(/proc/sys/kernel/sched_rt_runtime_us /sys/kernel/debug/sched/fair_server/cpu*/runtime)
for f in "${knobs[@]}"; do
	[[ -f $f ]] || continue
	pace[$f]=$(< "$f")
	[[ $f == *_us ]] && echo -1 > "$f" || echo 0 > "$f"
done
extra_cleanup() {
	[[ ! $FAILSLAB ]] || umount "$FAILSLAB"
	# the bound after what it bounds, else it is refused
	for f in "${knobs[@]:1}" "$knobs"; do
		[[ ! ${pace[$f]} ]] || echo "${pace[$f]}" > "$f"
	done
}

checked_traffic

nA timeout -k 5 500 /usr/bin/python3 "$here/hostile_packets.py" "$LB" $A4 $B4 $B6 \
	"$tmp/traffic" "$tmp/rounds" $traffic "$@" \
	> "$tmp/attack" 2> "$tmp/attack.err"
kill -CONT $traffic
take_points "the attack" "$tmp/attack"
sed 's/^/#   /' "$tmp/attack.err"

traffic_was_right
sed -n '/rounds/p' "$tmp/traffic"

modprobe -q tun
if [[ -c /dev/net/tun ]]; then
	t "a frame that says that it is 60,000 packets" timeout 100 /usr/bin/python3 "$here/crumbs.py" rovec
else
	lacks "a frame that says that it is 60,000 packets" "no tap devices"
fi
done_testing
