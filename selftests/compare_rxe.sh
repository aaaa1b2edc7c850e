#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What the tests of README's table say of rdma_rxe: the same scripts, in the same VM,
# with DRIVER=rxe at both ends.  No test of its own: it prints a table.
#	compare_rxe.sh [SCRIPT...]	"script with arguments" each; default: all below
#
# A point that is about rove's own counters or commands may fail for no fault of
# rdma_rxe's; the lines behind the table tell which did not pass.
# timeout: 3000
[[ $ROVE_GUEST ]] || { echo "$0 is for a guest:  selftests/vm/run -k 6.12 $0" >&2; exit 2; }
here=$(dirname "$(readlink -f "$0")")
out=${OUT:-/run/share}/rxe
mkdir -p "$out" || exit

tests=("data.sh 1024" "data.sh 4096" "rc_pingpong.sh" "perftest.sh" "ud.sh" "cm.sh" "qperf.sh" "sqd.sh" "mcast.sh" "mad.sh"
	"srq.sh" "uc.sh" "xrc.sh" "syscalls.sh core" "pyverbs.sh" "ucx.sh" "mpi.sh" "fabric.sh" "fio.sh"
	"verbs.sh" "memory.sh" "odp.sh" "objects.sh" "loss.sh" "wire.sh" "vlan.sh" "netns.sh"
	"statistic.sh" "admin.sh rules" "admin.sh fails" "admin.sh limits" "devinfo.sh" "netdevs.sh" "dmabuf.sh" "teardown.sh core" "faults.sh" "inspect.sh" "limits.sh" "errors.sh" "kill.sh"
	"nvme.sh" "iser.sh" "nfs.sh" "smc.sh" "regions.sh 2000 1" "rds.sh" "srp.sh" "kernel_qp.sh")
(($#)) && tests=("$@")

export DRIVER=rxe
modprobe -q crc32_generic	# it asks for that too late on 6.1 and 6.12
printf '| %-22s | %6s | %6s | %7s |\n' test passed failed skipped
for what in "${tests[@]}"; do
	file=$here/${what%% *} log=$out/${what//[ \/]/_}
	limit=$(sed -n 's/^# timeout: //p' "$file" | head -n 1)
	timeout -k 10 "${limit:-180}" "$file" ${what#"${what%% *}"} > "$log" 2>&1; rc=$?
	pass=$(grep -c '^ok' "$log") skip=$(grep -c '^ok.*# SKIP\|^1\.\.0 # SKIP' "$log") fail=$(grep -c '^not ok' "$log")
	skipped=$(grep -c '^ok.*# SKIP' "$log")
	((rc == 124 || rc == 137)) && fail="$fail+" # and did not come to an end
	printf '| %-22s | %6s | %6s | %7s |\n' "$what" $((pass - skipped)) "$fail" "$skip"
	modprobe -q -r rdma_rxe
done
grep -H '^not ok\|SKIP\|^Bail' "$out"/* | sed "s|^$out/|# |"
