#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# SMC-R, version 2: TCP programs whose sockets the kernel carries over RDMA.  It
# falls back to TCP without a word, so what counts are the links' packets.
# timeout: 200
. "$(dirname "$0")/ulp.sh"

need_modules smc
extra_cleanup() { topo_del; modprobe -q -r smc; } > /dev/null 2>&1
topo_pair 4200 && links || bail "two links"
smc() { LD_PRELOAD=$bin/smc_socket.so exec "$@"; }

# Sends what it reads back to whoever connects, then the checksums of both ways.
cat > "$tmp/echo.py" <<'PY'
import hashlib, os, socket, sys, threading
role, addr, port, mib = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
if role == "server":
    with socket.create_server((addr, port)) as l:
        s = l.accept()[0]
        while True:
            d = s.recv(1 << 16)
            if not d:
                break
            s.sendall(d)
        s.close()
else:
    s = socket.create_connection((addr, port), 20)
    s.settimeout(60)
    data = os.urandom(mib << 20)
    def send():
        s.sendall(data)
        s.shutdown(socket.SHUT_WR)
    t = threading.Thread(target=send)
    t.start()
    got = bytearray()
    while True:
        d = s.recv(1 << 16)
        if not d:
            break
        got += d
    t.join()
    print(len(got), "bytes back")
    sys.exit(hashlib.sha256(got).digest() != hashlib.sha256(data).digest())
PY
echoed() {
	local pid
	smc timeout 60 /usr/bin/python3 "$tmp/echo.py" server $B4 7001 0 & pid=$!
	wait_for 20 listening "" 7001 || return
	(smc timeout 60 /usr/bin/python3 "$tmp/echo.py" client $B4 7001 "$size") && wait $pid
}
iperf() {
	local pid
	smc timeout 60 iperf3 -s -1 -B $B4 -p 7002 > "$tmp/server" 2>&1 & pid=$!
	wait_for 20 listening "" 7002 || return
	(smc timeout 60 iperf3 -c $B4 -p 7002 -n 4M) && wait $pid
}
# The server's first message may come before the client waits for it, as both are on one
# machine: the client drops it (smc_llc_event_handler()), and the connection is TCP's.
by_tcp() { grep -q 'packets, not' "$tmp/lucky.by_tcp"; }
setup() { /usr/bin/python3 "$here/smc_setup.py" "$@"; }
t "user-defined EID" setup ueid ROVE.TEST || done_testing
# newer kernels find out by themselves which link is whose
if [[ $(uname -r) == 6.1.* ]]; then
	t "smc_pnet: which link is whose" eval 'setup pnet NETA va "$LA" && setup pnet NETB vb "$LB"' || done_testing
fi
t "$size MiB there and back, over the wire" lucky by_tcp crossed $((size * 2)) echoed
t "SMC's QPs" eval 'rdma res show qp | grep smc'
t "iperf3" lucky by_tcp crossed 4 iperf
done_testing
