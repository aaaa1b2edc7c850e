#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Writes what the whole guest has spent so far, ten times a second.

    sample.py FILE [DEVICE...]

One line a sample, tab-separated: time [s]; CPU time [s] as user, kernel
(interrupts included) and idle; context switches; packets and bytes sent by the
devices; system calls of the programs that a hist trigger on sys_enter counts,
when there is one.  table.py takes from these the part of each run in which data
flowed.
"""

import os
import sys
import time

CALLS = "/sys/kernel/tracing/events/raw_syscalls/sys_enter/hist"
PERIOD = 0.1
TICK = os.sysconf("SC_CLK_TCK")


def cpu_and_switches():
    with open("/proc/stat") as f:
        text = f.read()
    user, nice, system, idle, iowait, irq, softirq = map(int, text.split(None, 8)[1:8])
    switches = text[text.index("\nctxt ") + 6:].split(None, 1)[0]
    return (user + nice) / TICK, (system + irq + softirq) / TICK, (idle + iowait) / TICK, switches


def counter(device, name):
    with open(f"/sys/class/net/{device}/statistics/{name}") as f:
        return int(f.read())


def calls():
    try:
        with open(CALLS) as f:
            text = f.read()
    except OSError:
        return 0
    return sum(int(part.split(None, 1)[0]) for part in text.split("    Hits:")[1:])


def main():
    path, devices = sys.argv[1], sys.argv[2:]
    with open(path, "w", buffering=1) as out:
        while True:
            out.write("\t".join(map(str, (
                "%.6f" % time.time(), *cpu_and_switches(),
                sum(counter(d, "tx_packets") for d in devices),
                sum(counter(d, "tx_bytes") for d in devices), calls()))) + "\n")
            time.sleep(PERIOD)


main()
