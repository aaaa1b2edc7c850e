#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Runs rdma-core's own test suite on a device, one line a test:

    pyverbs_run.py FOLDER --dev DEVICE [NAME-PART...]

FOLDER holds rdma-core's tests/, unpacked and as it is.  Two things are put right
from outside, which are about the machine and not about the device: the suite looks
for the name of the netdev at the device's parent, which a software device has
not (here: where ib_core itself tells), and a test that hangs is ended after a minute.

    pass NAME
    skip NAME: reason
    fail NAME: last line of the error       (all of it to standard error)
"""
import os
import signal
import sys
import traceback
import unittest

LIMIT = 60

folder = os.path.abspath(sys.argv[1])
sys.argv[1:] = sys.argv[2:]
sys.path[:0] = [os.path.dirname(folder), folder]

from args_parser import parser  # noqa: E402

parser.parse_args()
wanted = sys.argv[1:]

import tests  # noqa: E402
import tests.base  # noqa: E402


def net_name(dev):
    with open(f"/sys/class/infiniband/{dev}/ports/1/gid_attrs/ndevs/0") as f:
        return f.read().strip()


def get_ip_mac(self, dev, port, idx):
    ip, mac = None, None
    try:
        ip, mac = self.get_ip_mac_address(net_name(dev))
    except (OSError, KeyError, IndexError):
        pass
    self.args.append([dev, port, idx, ip, mac])


base = tests.base.RDMATestCase
base.get_net_name = staticmethod(net_name)
base._get_ip_mac = get_ip_mac


def last_line(err):
    lines = "".join(traceback.format_exception_only(err[0], err[1])).strip().splitlines()
    return lines[-1] if lines else "?"


class Result(unittest.TestResult):
    """What became of each test; of its parts (subTest) the worst counts."""

    def startTest(self, test):
        super().startTest(test)
        self.what = None
        signal.alarm(LIMIT)

    def note(self, what, reason=""):
        if self.what is None or what == "fail" or (what == "skip" and self.what[0] == "pass"):
            self.what = (what, " ".join(str(reason).split()))

    def addSuccess(self, test):
        self.note("pass")

    def addSkip(self, test, reason):
        self.note("skip", reason)

    def addError(self, test, err):
        traceback.print_exception(*err)
        self.note("fail", last_line(err))

    addFailure = addError

    def addSubTest(self, test, subtest, err):
        if err is None:
            self.note("pass")
        elif issubclass(err[0], unittest.SkipTest):
            self.note("skip", err[1])
        else:
            self.addError(test, err)

    def stopTest(self, test):
        signal.alarm(0)
        what, reason = self.what or ("fail", "no result")
        print(what, test.id() + (f": {reason}" if reason else ""), flush=True)
        super().stopTest(test)


def too_long(signum, frame):
    raise TimeoutError(f"did not end in {LIMIT} s")


def every(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from every(test)
        else:
            yield test


signal.signal(signal.SIGALRM, too_long)
loader = unittest.TestLoader()
result = Result()
chosen = [test for test in every(loader.loadTestsFromModule(tests))
          if not wanted or any(part in test.id() for part in wanted)]
unittest.TestSuite(chosen).run(result)
print("ran", result.testsRun, "of", len(chosen), flush=True)
