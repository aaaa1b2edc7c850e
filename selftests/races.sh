#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Who looks while others change: links renamed, deleted and added, their netdevs down,
# up and gone, addresses and MTU changed, while tools read everything that there is to
# read and programs come and go.  Nothing crashes,
# hangs or stays; what the kernel says fails the test.  Argument: seconds (20).
# timeout: 4000
. "$(dirname "$0")/lib.sh"

seconds=${1:-20}
# One that goes while its link comes waits for all of the link's coming and going, and all this
# keeps them from their CPU: for minutes, where it goes on for long on a slow kernel.  One that
# is held for good is found at the end.
sysctl -qw net.core.netdev_unregister_timeout_secs=$((slow > 1 && seconds > 60 ? 900 : 30 * slow)) 2> /dev/null
topo_pair 4200 && links || bail "two links"
ip link add rd0 type dummy && ip link set rd0 up && ip addr add 10.79.0.1/24 dev rd0 || bail "a third netdev"
ip link add rd1 type dummy && rdma link add sixth type rove netdev rd1 || bail "a link that stays"
# Tracepoints tell the name, too.
tracefs=/sys/kernel/tracing
traced() { [[ ! -d $tracefs ]] || echo "$1" > $tracefs/events/rove/enable; }
traced 1 || bail "tracepoints"

# loop COMMAND...: again and again until the time is over, whatever it says
running=()
loop() {
	(
		trap - EXIT
		end=$((SECONDS + seconds))
		n=0
		while ((SECONDS < end)); do eval "$1" > /dev/null 2>&1; ((n++)); done
		echo "$n x $1" >> "$tmp/loops"
	) &
	running+=($!)
}
# came NAME WHAT COMMAND...: it is killed, when it has said WHAT or at any time before; in an emulated
# guest it goes before the others, or it would come to nothing
came() {
	local out="$tmp/came.$1" what=$2 pid
	nice -n $((slow > 1 ? 0 : -15)) stdbuf -oL "${@:3}" > "$out" & pid=$!
	wait_for $((RANDOM % 2 ? 2 : 30 / slow)) eval 'gone $pid || grep -q "$what" "$out"'
	kill -9 $pid; wait $pid
	grep -q "$what" "$out" && echo "$1 came" >> "$tmp/done"
}
readers() {
	loop 'rdma link; rdma dev; rdma resource show qp; rdma resource show mr; rdma resource show cq; rdma resource show cm_id'
	loop 'rdma statistic show; rdma statistic show mr; rdma resource'
	loop 'ibv_devinfo -v'
	loop 'find -L /sys/class/infiniband/ -maxdepth 5 -type f -readable -exec cat {} +'
}
writers() {
	loop 'rdma link add third type rove netdev rd0 && echo added >> $tmp/done; rdma dev set third name fourth; rdma dev set fourth name third; rdma link delete third'
	loop 'rdma dev set sixth name seventh && echo renamed >> $tmp/done; rdma dev set seventh name sixth'
	loop 'ip link set rd0 down; ip link set rd0 up; ip link set rd0 mtu 9000; ip link set rd0 mtu 1500'
	loop 'ip addr add 10.79.1.1/24 dev rd0; ip -6 addr add fd79::1/64 dev rd0 nodad; ip addr flush dev rd0 scope global'
	loop 'ip link del rd0; ip link add rd0 type dummy; ip link set rd0 up; ip addr add 10.79.0.1/24 dev rd0'
	loop 'ip netns add rove-r; ip link add rv0 netns rove-r type dummy; rdma link add fifth type rove netdev rv0; ip netns exec rove-r rdma link add fifth type rove netdev rv0; ip netns del rove-r'
}
programs() {
	loop 'came rping-server "server ping" ip netns exec $NSA rping -s -v -a $A4 & wait_for 3 cm_listening $NSA 7174; came rping "ping data" ip netns exec $NSB rping -c -v -a $A4 -C 1000; wait'
	loop 'came pingpong "local address" ibv_rc_pingpong -d third'
	loop 'came objects "^ok" $bin/objects $LA $(gid_index $LA $A4) $LB $(gid_index $LB $B4)'
}
traffic() { both $((seconds + 120)) A "ib_write_bw -F -d %d -x %g4 -p %p -D $((seconds + 2))"; }
all_ended() { local p; for p in "${running[@]}"; do gone "$p" || return 1; done; }
gone_links() {
	local name
	for name in third fourth sixth seventh; do rdma link delete $name; done
	! rdma link | grep -qE 'third|fourth|fifth|sixth|seventh'
}

readers; writers; programs
t "traffic meanwhile" traffic
t "everybody ends" wait_for 90 all_ended
say "$(tr '\n' ';' < "$tmp/loops")"
# where its netdev stays; a slow kernel seldom gets so far with the one whose netdev goes
happened() {
	grep -q renamed "$tmp/done" && { ((slow > 1)) || { grep -q added "$tmp/done" && grep -q ' came$' "$tmp/done"; }; }
}
if ((slow == 1)); then what="links were added and renamed, programs came and were killed"; else what="links were renamed"; fi
t "$what" happened
say "$(sort "$tmp/done" | uniq -c | tr '\n' ';')"
ip netns del rove-r 2>/dev/null
traced 0
t "no link is left" wait_for 20 gone_links
t "no object is left" wait_for 30 no_objects qp cq mr pd srq ctx
t "no multicast group, no netdev is held" timeout 30 ip link del rd0
rdma link delete "$LA"; rdma link delete "$LB"; LA= LB=
t "the module can go" wait_for 30 rmmod rove
done_testing
