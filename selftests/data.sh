#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Every RC operation with every byte and completion checked (rc_data), each end
# as server and as client; arguments: MTUs (default 1024 4096).
# timeout: 900
. "$(dirname "$0")/lib.sh"

topo_pair 4200 && links || bail "two links"

for mtu in ${*:-1024 4096}; do
	rc_data "MTU $mtu, server A, IPv4" A "-g %g4 -m $mtu -t all"
	rc_data "MTU $mtu, server B, IPv6, events" B "-g %g6 -m $mtu -t data -e"
done
rc_data "MTU 256, server B, IPv4" B "-g %g4 -m 256 -t data"
done_testing
