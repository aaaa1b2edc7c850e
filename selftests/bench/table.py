#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Turns what bench/measure left into the table, results.json and plot data.

    table.py DIR                 of the guests in DIR: vm, vm4, uml
    table.py --ratio DIR CASE SIZE MTU
                                 rove's median over rdma_rxe's, of one folder

The goals stand here, beside the rows that they belong to.
"""

import collections
import glob
import json
import math
import os
import statistics
import sys

NAMES = {"rove": "rove", "rxe": "rdma_rxe", "siw": "siw", "tcp": "TCP", "bound": "bound"}
GIB = 2 ** 30
# The crypto API's name for the same function.
SAME_CRC = {"crc32-generic": "crc32_le", "crc32-lib": "crc32_le"}

Run = collections.namedtuple("Run", "round peer mtu case size ok figure begin end")
Sample = collections.namedtuple("Sample", "time user kernel idle switches packets bytes calls")


def tsv(path):
    try:
        with open(path) as f:
            return [line.rstrip("\n").split("\t") for line in f if line.endswith("\n")]
    except FileNotFoundError:
        return []


class Part:
    """The runs of one suite in one guest."""

    def __init__(self, path):
        self.path = path
        self.meta = dict(tsv(f"{path}/meta.tsv"))
        self.runs = [Run(int(n), peer, int(mtu), case, int(size), verdict == "ok",
                         float(figure) if verdict == "ok" else None, float(begin), float(end))
                     for n, peer, mtu, case, size, verdict, figure, begin, end in tsv(f"{path}/runs.tsv")]
        self.samples = [Sample(*map(float, s)) for s in tsv(f"{path}/samples.tsv") if len(s) == 8]
        self.peers = self.meta["peers"].split()

    def good(self, peer, case, size, mtu=4096):
        return [r for r in self.runs if r.ok and (r.peer, r.case, r.size, r.mtu) == (peer, case, size, mtu)]

    def repeated(self):
        """How many runs gave no figure, by peer and case."""
        count = collections.Counter()
        for r in self.runs:
            if not r.ok:
                count[NAMES[r.peer], label(r.case, r.size, r.mtu)] += 1
        return count

    def spent(self, run):
        """What the guest spent while data flowed in this run, as one Sample of
        differences, or None.  The first and last interval are left out: the
        flow began or ended in them."""
        inside = [s for s in self.samples if run.begin <= s.time <= run.end]
        steps = [b.bytes - a.bytes for a, b in zip(inside, inside[1:])]
        if not steps:
            return None
        best = first = None
        for i, step in enumerate(steps + [0]):
            if step > max(steps) / 10:
                first = i if first is None else first
            elif first is not None:
                if best is None or i - first > best[1] - best[0]:
                    best = first, i
                first = None
        if best is None or best[1] - best[0] < 4:
            return None
        a, b = inside[best[0] + 1], inside[best[1] - 1]
        return Sample(*(y - x for x, y in zip(a, b)))

    def costs(self, peer, case, size, cost):
        """cost(what was spent, messages) of each run"""
        out = []
        for run in self.good(peer, case, size):
            spent = self.spent(run)
            if spent:
                out.append(cost(spent, run.figure / size * spent.time))
        return out

    def latencies(self, peer):
        """One sorted list a round."""
        out = []
        for path in sorted(glob.glob(f"{self.path}/latency-{peer}-*")):
            with open(path) as f:
                out.append([float(line) for line in f])
        return out


def percentile(values, p):
    return values[min(len(values) - 1, int(p / 100 * len(values)))]


def modes(values):
    """Splits sorted latencies in two where their logarithms fall apart best:
    [(median, share), ...], one entry when there is no such place."""
    logs = [math.log(v) for v in values]
    n, total, left, best = len(logs), sum(logs), 0, (0, 0)
    for i in range(1, n):
        left += logs[i - 1]
        # between-class variance
        apart = (left / i - (total - left) / (n - i)) ** 2 * i * (n - i)
        best = max(best, (apart, i))
    cut = best[1]
    low, high = values[:cut], values[cut:]
    if min(len(low), len(high)) < n / 100 or statistics.median(high) < 5 * statistics.median(low):
        return [(statistics.median(values), 1)]
    return [(statistics.median(v), len(v) / n) for v in (low, high)]


# --- rows ---------------------------------------------------------------------

class Goal:
    """What rove is to reach: "ratio" to rdma_rxe, or the "value" itself."""

    def __init__(self, of, text, reached):
        self.of, self.text, self.reached = of, text, reached


def at_least(limit):
    return Goal("ratio", f">= {limit:g}", lambda x: x >= limit)


def at_most(limit):
    return Goal("ratio", f"<= {limit:.2g}", lambda x: x <= limit)


def value_at_least(limit):
    return Goal("value", f">= {limit:.1f}", lambda x: x >= limit)


def value_under(limit):
    return Goal("value", f"< {limit:g}", lambda x: x < limit)


NONE = Goal("value", "none", lambda x: x < 0.0005)


class Row:
    """values: peer -> one figure a round"""

    section = None

    def __init__(self, text, unit, values, goal=None):
        self.text, self.unit, self.goal = text, unit, goal
        self.values = {peer: v for peer, v in values.items() if v}

    def median(self, peer):
        return statistics.median(self.values[peer]) if peer in self.values else None

    @property
    def ratio(self):
        rove, rxe = self.median("rove"), self.median("rxe")
        return rove / rxe if rove is not None and rxe else None

    @property
    def reached(self):
        if not self.goal:
            return None
        figure = self.ratio if self.goal.of == "ratio" else self.median("rove")
        return None if figure is None else self.goal.reached(figure)

    def as_json(self):
        return {"section": self.section, "row": self.text.strip(), "unit": self.unit, "ratio": self.ratio,
                "goal": self.goal and {"of": self.goal.of, "is": self.goal.text}, "reached": self.reached,
                "peers": {NAMES[p]: {"median": self.median(p), "min": min(v), "max": max(v), "rounds": v}
                          for p, v in self.values.items()}}


def size_text(size):
    for unit, name in ((2 ** 20, "MiB"), (2 ** 10, "KiB")):
        if size >= unit:
            return f"{size // unit} {name}"
    return f"{size} B"


def label(case, size, mtu=None):
    verb, _, kind = case.partition("_")
    name = {"latency": "WRITE", "pingpong": "ibv_rc_pingpong"}.get(verb, verb.upper())
    kind = {"events": " -e", "list": " -l 32"}.get(kind, "")
    return f"{name} {size_text(size)}{kind}" + (f", MTU {mtu}" if mtu else "")


def figures(part, case, size, mtu, scale):
    return {p: [r.figure * scale for r in part.good(p, case, size, mtu)] for p in part.peers}


def bandwidth(part, case, size, mtu, goal):
    return Row(label(case, size), "MB/s", figures(part, case, size, mtu, 1e-6), goal)


def rate(part, case, size, goal):
    return Row(label(case, size), "1000/s", figures(part, case, size, 4096, 1 / size / 1000), goal)


def beside(part, scale, case, size, mtu):
    """(rove's figure, that of the run of @scale which followed), so that both stood under the same load."""
    ours, pairs = None, []
    for r in part.runs:
        if (r.case, r.size, r.mtu) != (case + "_beside", size, mtu):
            continue
        if r.peer == "rove":
            ours = r.figure
        elif r.peer == scale and ours and r.ok:
            pairs.append((ours, r.figure))
    return pairs


def against(part, scale, mtu, goal):
    return Row(f"WRITE 64 KiB / {NAMES[scale]}, MTU {mtu}", "",
               {"rove": [ours / whole for ours, whole in beside(part, scale, "write", 65536, mtu)]}, goal)


def cost(part, text, unit, case, size, of, goal=None):
    return Row(text, unit, {p: part.costs(p, case, size, of) for p in part.peers}, goal)


def calls_each(spent, messages):
    return spent.calls / messages


def full_rows(part):
    for mtu, goal in ((4096, 3), (1024, 5)):
        yield f"Bandwidth, path MTU {mtu}"
        for case, size in (("write", 65536), ("write", 1048576), ("send", 65536), ("send", 1048576), ("read", 65536)):
            yield bandwidth(part, case, size, mtu, at_least(goal))
    yield "Bandwidth against TCP's on the same pair"
    yield against(part, "tcp", 4096, value_at_least(1.0))
    yield against(part, "tcp", 1024, value_at_least(0.8))
    yield "Bandwidth against the bound: one copy and one CRC an end, the fewest walks, nothing else"
    yield against(part, "bound", 4096, value_at_least(0.8))
    yield against(part, "bound", 1024, value_at_least(0.8))
    yield "Messages a second, one QP"
    yield rate(part, "write", 64, at_least(5))
    yield rate(part, "send", 64, at_least(5))

    yield "Latency"
    rounds = {p: part.latencies(p) for p in part.peers}

    def latency(text, p, goal=None):
        return Row(text, "us", {peer: [percentile(v, p) for v in lists] for peer, lists in rounds.items()}, goal)
    median = latency("WRITE 8 B, median", 50, at_most(0.5))
    tail = latency("WRITE 8 B, 99 %", 99)
    if "rxe" in tail.values and tail.median("rxe") > 10 * median.median("rxe"):
        tail.goal = at_most(0.1)
    yield latency("WRITE 8 B, least", 0)
    yield median
    yield tail
    yield Row("ibv_rc_pingpong -e -s 64", "us",
              figures(part, "pingpong_events", 64, 4096, 1), at_most(0.6))
    yield Row("TCP's, asleep as well / -e -s 64", "",
              {"rove": [tcp / ours for ours, tcp in beside(part, "tcp", "pingpong_events", 64, 4096)]},
              value_at_least(0.8))

    yield "CPU seconds, both ends, user and kernel"
    # a GiB is as many messages of 64 KiB
    for case, size, messages, what in (("write", 65536, GIB / 65536, "a GiB, WRITE 64 KiB"),
                                       ("send_events", 65536, GIB / 65536, "a GiB, SEND 64 KiB -e"),
                                       ("write", 64, 1e6, "a million WRITE 64 B"),
                                       ("send", 64, 1e6, "a million SEND 64 B"),
                                       ("send_events", 64, 1e6, "a million SEND 64 B -e")):
        goal = at_most(1 / 3) if (case, size) == ("write", 65536) else None
        yield cost(part, what, "s", case, size, lambda s, n: (s.user + s.kernel) / n * messages, goal)
        yield cost(part, "  of it in the kernel", "s", case, size, lambda s, n: s.kernel / n * messages)
    yield "What a message costs, both ends"
    for case, size in (("write", 65536), ("send", 64)):
        yield cost(part, f"walks through the stack, {label(case, size)}", "", case, size,
                   lambda s, n: s.packets / n)
        yield cost(part, f"context switches, {label(case, size)}", "", case, size,
                   lambda s, n: s.switches / n)
    yield cost(part, "system calls, SEND 64 B", "", "send_calls", 64, calls_each, value_under(0.05))


def calls_rows(part):
    yield f"System calls a message with {part.meta['cpus']} CPUs, of which some are idle"
    for case in ("send", "write"):
        yield cost(part, label(case, 64), "", case + "_calls", 64, calls_each, NONE)


def native_rows(part):
    for mtu, goal in ((4096, 2.5), (1024, 5)):
        yield f"Native bandwidth, one CPU, path MTU {mtu}"
        for case in ("write", "send", "read"):
            yield bandwidth(part, case, 65536, mtu, at_least(goal))
    yield "Native messages a second, one CPU"
    for case in ("write_list", "send_list"):
        yield rate(part, case, 64, at_least(4))


def slice_rows(part):
    yield "A slice: to catch a collapse, not to judge"
    yield bandwidth(part, "write", 65536, 4096, None)
    yield rate(part, "write", 64, None)
    yield rate(part, "send", 64, None)


ROWS = {"full": full_rows, "calls": calls_rows, "native": native_rows, "slice": slice_rows}


# --- output ---------------------------------------------------------------------

def number(x):
    if x is None:
        return "-"
    for limit, digits in ((100, 0), (10, 1), (1, 2)):
        if abs(x) >= limit:
            return f"{x:.{digits}f}"
    return f"{x:.3f}"


def with_range(row, peer):
    if peer not in row.values:
        return "-"
    v = row.values[peer]
    text = number(row.median(peer))
    return text if len(v) == 1 else f"{text} ({number(min(v))}..{number(max(v))})"


def header(part):
    meta = part.meta
    yield (f"Linux {meta['kernel']}, {meta['cpus']} CPU{'s'[meta['cpus'] == '1':]}, {meta['virtualisation']} "
           f"on {meta['host_cpu']}; rove {meta['commit']}; median of {meta['rounds']} (range)")
    crcs = [(NAMES[p], meta[f"crc_{p}"]) for p in part.peers if f"crc_{p}" in meta]
    same = len({SAME_CRC.get(crc, crc) for _, crc in crcs}) == 1
    yield ("CRC-32: " + ", ".join(f"{crc} in {name}" for name, crc in crcs)
           + (" (the same code)" if same else ": NOT THE SAME, the ratios are not fair")
           + ("; " + meta["crc_note"] if "crc_note" in meta else ""))


def table(part, rows):
    width = 20
    out = ["", *header(part)]
    columns = "".join(f"{NAMES[p]:>{width}}" for p in part.peers)
    out.append(f"{'':<40}{columns}{'rove/rxe':>10}  goal")
    for row in rows:
        if isinstance(row, str):
            out.append(row)
            continue
        unit = f" [{row.unit}]" if row.unit else ""
        cells = "".join(f"{with_range(row, p):>{width}}" for p in part.peers)
        verdict = ""
        if row.goal:
            verdict = f"  {row.goal.text:<8}" + {True: "reached", False: "MISSED", None: "no figure"}[row.reached]
        of_value = row.goal and row.goal.of == "value"
        ratio = "" if of_value or row.ratio is None else number(row.ratio)
        out.append(f"  {row.text + unit:<38}{cells}{ratio:>10}{verdict}")
    return out


def footnotes(parts):
    yield ""
    repeats = collections.Counter()
    for part in parts:
        repeats += part.repeated()
    yield (f"{sum(repeats.values())} runs gave no figure (0.00, inf, an error) and were repeated"
           + "".join(f"; {name} {what}: {n}" for (name, what), n in sorted(repeats.items())) + ".")
    if "full" in (p.meta["suite"] for p in parts):
        yield ("Latency is half a round trip.  TCP: qperf tcp_bw, which sleeps and whose small writes leave together; "
               "sockperf --nonblocked, 14 bytes.")
        for part in parts:
            for mtu in (4096, 1024):
                found = [bound / 1e6 for _, bound in beside(part, "bound", "write", 65536, mtu)]
                if found:
                    yield (f"Bound, 64 KiB, MTU {mtu}: {number(statistics.median(found))} MB/s "
                           "(selftests/kmod/rove_bound.c).")
        yield "Walks: packets that the two devices were given, acknowledgments too; a super-packet counts once."
    for part in parts:
        if part.meta["suite"] == "full":
            for peer in part.peers:
                pooled = sorted(v for one in part.latencies(peer) for v in one)
                found = modes(pooled) if pooled else []
                if len(found) > 1:
                    yield (f"{NAMES[peer]}'s latency has two modes: "
                           + ", ".join(f"{number(m)} us ({share:.0%})" for m, share in found) + ".")
        yield ("siw sends no CRC." if "siw" in part.peers else
               f"siw: not in kernel {part.meta['kernel']}.")


def plot_data(part, out):
    """bandwidth.dat: size, then median, least and most of each peer;
    latency.dat: a block a peer, 1/(1 - p) and latency."""
    peers = [p for p in part.peers if part.good(p, "write", 65536)]
    sizes = sorted({r.size for r in part.runs if r.case == "write" and r.mtu == 4096})
    with open(f"{out}/bandwidth.dat", "w") as f:
        print("size", *(f"{NAMES[p]} least most" for p in peers), file=f)
        for size in sizes:
            cells = []
            for p in peers:
                v = [r.figure / 1e6 for r in part.good(p, "write", size)]
                cells += [statistics.median(v), min(v), max(v)] if v else ["nan"] * 3
            print(size, *cells, file=f)
    with open(f"{out}/latency.dat", "w") as f:
        for p in peers:
            pooled = sorted(v for one in part.latencies(p) for v in one)
            if not pooled:
                continue
            print(f'"{NAMES[p]}"', file=f)
            n = len(pooled)
            # the far tail point by point, the rest thinned out
            for i in sorted({int(n - n / 1.02 ** k) for k in range(2000) if n / 1.02 ** k >= 1}):
                print(n / (n - i), pooled[i], file=f)
            print("\n", file=f)


def main():
    if sys.argv[1] == "--ratio":
        path, case, size, mtu = sys.argv[2:]
        row = bandwidth(Part(path), case, int(size), int(mtu), None)
        if row.ratio is None:
            sys.exit("no figures")
        print(f"{row.ratio:.2f}")
        return
    out = sys.argv[1]
    parts = [Part(p) for p in (f"{out}/{name}" for name in ("vm", "vm4", "uml"))
             if os.path.exists(f"{p}/runs.tsv")]
    text, result = [], []
    for part in parts:
        rows = list(ROWS[part.meta["suite"]](part))
        for row in rows:
            if isinstance(row, Row):
                row.section = section
            else:
                section = row
        text += table(part, rows)
        result.append({**part.meta, "rows": [r.as_json() for r in rows if isinstance(r, Row)],
                       "repeated": [{"peer": p, "case": c, "runs": n} for (p, c), n in part.repeated().items()],
                       "runs": [r._asdict() for r in part.runs]})
        if part.meta["suite"] == "full":
            plot_data(part, out)
    text += footnotes(parts)
    with open(f"{out}/results.json", "w") as f:
        json.dump({"parts": result}, f, indent=1)
    with open(f"{out}/table.txt", "w") as f:
        f.write("\n".join(text[1:]) + "\n")
    print("\n".join(text))


main()
