#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Unmodified perftest, RC: ib_{write,read,send,atomic}_{bw,lat} over message
# sizes, path MTUs, events, both directions, many QPs, post lists and inline.
# "core": only the first few; "all": all sizes, programs and options.
# timeout: 1500
. "$(dirname "$0")/lib.sh"

topo_pair 4200 && links || bail "two links"

# pt SERVER-END PROGRAM OPTIONS...: it must end well and print a figure.
pt() {
	local side=$1 prog=$2 opts gid=%g4; shift 2
	opts="$*"
	[[ $opts == *-6* ]] && { gid=%g6; opts=${opts//-6/}; }
	measured 240 "$side" "$prog -F -d %d -x $gid -p %p $opts"
}

# case: name | program | options
run() {
	local name prog opts side
	while IFS='|' read -r name prog opts; do
		name=${name%"${name##*[![:space:]]}"}
		[[ $name && $name != \#* ]] || continue
		for side in ${SIDES:-A}; do
			t "${prog// /} $name, server $side" pt $side $prog $opts
		done
	done
}

SIDES="A B" run <<'TABLE'
64 KiB       | ib_write_bw  | -s 65536 -n 100
64 KiB       | ib_read_bw   | -s 65536 -n 100
64 KiB       | ib_send_bw   | -s 65536 -n 100
8 bytes      | ib_atomic_bw | -A FETCH_AND_ADD -n 200
8 bytes      | ib_write_lat | -s 8 -n 200
8 bytes      | ib_read_lat  | -s 8 -n 200
8 bytes      | ib_send_lat  | -s 8 -n 200
8 bytes      | ib_atomic_lat| -A CMP_AND_SWAP -n 200
TABLE
[[ $1 == core ]] && done_testing
[[ $1 == all ]] || {
	run <<-'TABLE'
	all sizes            | ib_send_bw    | -a -n 10
	over IPv6            | ib_read_bw    | -6 -s 65536 -n 100
	events               | ib_send_lat   | -s 64 -n 100 -e
	both directions      | ib_write_bw   | -s 16384 -n 100 -b
	8 QPs, both ways     | ib_send_bw    | -s 8192 -n 50 -q 8 -b
	lists of 16          | ib_write_bw   | -s 2048 -n 320 -l 16
	inline               | ib_write_lat  | -s 32 -n 100 -I 32
	CMP_AND_SWAP, events | ib_atomic_bw  | -A CMP_AND_SWAP -n 200 -e
	MTU 256              | ib_read_bw    | -m 256 -s 65536 -n 50
	MTU 2048             | ib_send_bw    | -m 2048 -s 65536 -n 50
	paged on demand      | ib_write_bw   | --odp -s 65536 -n 100
	paged on demand      | ib_read_bw    | --odp -s 65536 -n 100
	paged on demand      | ib_send_bw    | --odp -s 65536 -n 100
	TABLE
	done_testing
}

run <<'TABLE'
all sizes            | ib_write_bw   | -a -n 20
all sizes            | ib_read_bw    | -a -n 20
all sizes            | ib_send_bw    | -a -n 20
all sizes            | ib_write_lat  | -a -n 10
all sizes            | ib_read_lat   | -a -n 10
all sizes            | ib_send_lat   | -a -n 10
over IPv6            | ib_write_bw   | -6 -s 65536 -n 100
over IPv6            | ib_read_bw    | -6 -s 65536 -n 100
over IPv6            | ib_send_bw    | -6 -s 65536 -n 100
over IPv6            | ib_atomic_bw  | -6 -n 100
events               | ib_read_bw    | -s 4096 -n 200 -e
events               | ib_send_bw    | -s 4096 -n 200 -e
events               | ib_atomic_bw  | -n 200 -e
events               | ib_send_lat   | -s 64 -n 100 -e
events               | ib_read_lat   | -s 64 -n 100 -e
both directions      | ib_write_bw   | -s 16384 -n 100 -b
both directions      | ib_read_bw    | -s 16384 -n 100 -b
both directions      | ib_send_bw    | -s 16384 -n 100 -b
both directions      | ib_atomic_bw  | -n 100 -b
8 QPs                | ib_write_bw   | -s 8192 -n 50 -q 8
8 QPs                | ib_read_bw    | -s 8192 -n 50 -q 8
8 QPs                | ib_send_bw    | -s 8192 -n 50 -q 8
8 QPs                | ib_atomic_bw  | -n 50 -q 8
8 QPs, both ways     | ib_write_bw   | -s 8192 -n 50 -q 8 -b
lists of 16          | ib_write_bw   | -s 2048 -n 320 -l 16
lists of 16          | ib_read_bw    | -s 2048 -n 320 -l 16
lists of 16          | ib_send_bw    | -s 2048 -n 320 -l 16
inline               | ib_write_bw   | -s 64 -n 500 -I 64
inline               | ib_send_bw    | -s 64 -n 500 -I 64
inline               | ib_write_lat  | -s 32 -n 100 -I 32
inline               | ib_send_lat   | -s 32 -n 100 -I 32
2 bytes              | ib_write_bw   | -s 2 -n 500
CMP_AND_SWAP         | ib_atomic_bw  | -A CMP_AND_SWAP -n 200
TABLE
for mtu in 256 512 1024 2048 4096; do
	run <<-TABLE
	MTU $mtu | ib_write_bw | -m $mtu -s 65536 -n 50
	MTU $mtu | ib_read_bw | -m $mtu -s 65536 -n 50
	MTU $mtu | ib_send_bw | -m $mtu -s 65536 -n 50
	MTU $mtu | ib_send_lat | -m $mtu -s 8192 -n 50
	TABLE
done
done_testing
