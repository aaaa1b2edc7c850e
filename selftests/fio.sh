#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# fio's rdma engine, client and server: WRITE, READ and SEND.
# timeout: 200
. "$(dirname "$0")/lib.sh"
command -v fio > /dev/null || skip_all "no fio"

topo_pair 4200 && links || bail "two links"
READY=cm_listening

# rw says who is the server (read) and who the client (write), verb what is done
run() {
	local verb=$1 all="--ioengine=rdma --thread --bs=64k --size=16m --port=%p" depth=8
	# fio lets a connection die of the first SEND that finds no receive posted
	[[ $verb == send ]] && depth=256
	both 90 A "cd /tmp; fio --name=server $all --iodepth=$depth --rw=read" \
		"cd /tmp; fio --name=client $all --iodepth=8 --hostname=%a4 --verb=$verb --rw=write" || return
	cat "$tmp/client"
	grep -q 'err= 0' "$tmp/client" && grep -q 'err= 0' "$tmp/server" &&
	grep -q 'io=16.0MiB' "$tmp/client"
}
t "WRITE" run write
t "READ" run read
t "SEND" run send
done_testing
