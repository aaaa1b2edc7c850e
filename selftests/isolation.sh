#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Programs do not reach each other's keys, rings and connections, nor learn anything
# of the kernel's memory, by what it shares or by what it sends (isolation.c).
# make debugcheck's "poison" boots with slub_debug=P page_poison=1
# init_on_alloc=0, so that memory nobody has initialised shows.
# timeout: 300
. "$(dirname "$0")/lib.sh"

[[ -x $bin/isolation ]] || skip_all "no isolation: make selftests"
topo_pair 4200 && links || bail "two links"
command -v tcpdump > /dev/null || bail "tcpdump"


# What went over the wire: headers, and payload that the program has made of 0x11,
# zeroes and 0x77; what pads it is zero.  Poison of slab and pages, and words that look like addresses of
# the kernel's, came from memory that was not to be sent.
search() {
	/usr/bin/python3 -c '
import re, struct, sys
data, n, at, found, padded = open(sys.argv[1], "rb").read(), 0, 24, 0, 0
while at + 16 <= len(data):
    length = struct.unpack("=I", data[at + 8:at + 12])[0]
    packet = data[at + 16:at + 16 + length]
    at += 16 + length
    n += 1
    # in UDP to port 4791: what follows the headers of Ethernet, IP and UDP
    if packet[12:14] != b"\x08\x00" or packet[23] != 17:
        continue
    body = packet[42:]
    pad = body[1] >> 4 & 3
    if body[len(body) - 4 - pad:-4].strip(b"\0"):
        found += 1
        print("packet %d is padded with %s" % (n, body[-4 - pad:-4].hex()))
    padded += pad > 0
    for m in re.finditer(rb"(?s)([\x5a\x6b\xa5\xbb\xcc\xaa\x6a])\1{5}|.{2}(?:..[\x80-\xff]\xff\xff)|[\x80-\xff]\x88\xff\xff", body):
        if m.group(0).strip(b"\xff") == b"":
            continue
        found += 1
        print("packet %d, byte %d: %s" % (n, m.start(), m.group(0).hex()))
print("%d packets searched, %d with padding" % (n, padded))
sys.exit(found > 0 or n < 100 or padded < 20)' "$1"
}

# What has been asked for at boot is there.
poisoned() {
	local how
	for how in $(grep -oE '(slub_debug|page_poison|init_on_alloc)=[^ ]*' /proc/cmdline); do
		echo "$how"
		case $how in
		slub_debug=*) [[ $(< /sys/kernel/slab/kmalloc-64/poison) == 1 ]] || return ;;
		page_poison=1) grep -q CONFIG_PAGE_POISONING=y "$tmp/config" || return ;;
		esac
	done
}
zcat /proc/config.gz > "$tmp/config" 2>/dev/null || cat "/boot/config-$(uname -r)" > "$tmp/config" 2>/dev/null
grep -qE '(slub_debug|page_poison|init_on_alloc)=' /proc/cmdline && t "memory is poisoned as asked for at boot" poisoned
say "$(sed 's/^#* *//' "$tmp/t.out" | tr '\n' ' ')"
for_nobody isolation || bail "a program of nobody's"
# each packet by itself: a super-packet hides the padding of all but the last
nA ethtool -K va gso off tx-udp-segmentation off > /dev/null && nB ethtool -K vb gso off tx-udp-segmentation off > /dev/null ||
	bail "ethtool"
spawn "$NSA" tcpdump -q --immediate-mode -U -B 65536 -s 9000 -w "$tmp/pcap" -i va udp port 4791 2> "$tmp/tcpdump" & pid=$!
wait_for 20 grep -q listening "$tmp/tcpdump"
c_points "isolation" as_nobody timeout -k 5 $((200 * slow)) \
	"/tmp/isolation.$$" "$LA" "$(gid_index "$LA" $A4)" "$LB" "$(gid_index "$LB" $B4)"
kill $pid; wait $pid
say "$(grep -E "captured|filter|dropped" "$tmp/tcpdump" | tr "\n" " ")"
t "packets hold nothing of the kernel's" search "$tmp/pcap"

# What only an administrator may do.
refused() { ! "$@" 2> "$tmp/why" && grep -qiE 'not permitted|permission' "$tmp/why"; }
t "rdma link add, by nobody" refused as_nobody rdma link add mine type rove netdev lo
t "rdma link delete, by nobody" refused as_nobody rdma link delete "$LA"
t "rdma dev set, by nobody" refused as_nobody rdma dev set "$LA" name mine
t "rdma system set, by nobody" refused as_nobody rdma system set netns exclusive
t "rdma statistic mode, by nobody" refused as_nobody rdma statistic qp set link "$LA/1" auto type on
# By itself in hex, or in decimal: 2^64 - 2^47 and more.
no_addresses() {
	local rc
	spawn "$NSA" setpriv --reuid=65534 --regid=65534 --clear-groups timeout 60 ibv_srq_pingpong -d "$LA" -g "$(gid_index "$LA" $A4)" -p 18700 > "$tmp/held" & pid=$!
	wait_for 30 listening "$NSA" 18700 && shows_none; rc=$?
	kill $pid
	wait $pid
	return $rc
}
shows_none() {
	local what
	for what in "resource show "{qp,cq,mr,pd,ctx,srq}" -dd" "statistic show mr" "statistic show link $LA"; do
		as_nobody rdma $what > "$tmp/shown" && grep -q "$LA" "$tmp/shown" || { echo "nothing: rdma $what"; return 1; }
		! grep -E 'ffff[0-9a-f]{12}|1844[67][0-9]{15}' "$tmp/shown" || return
	done
}
t "rdma resource shows no address" no_addresses
t "nothing is left" wait_for 20 no_objects qp cq mr pd srq
done_testing
