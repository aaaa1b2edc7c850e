#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What the smc-tools would do, which not every distribution has.

    smc_setup.py ueid ID                  smcd ueid add ID: a user-defined EID, of at
                                          most 32 characters.  SMC-R version 2 wants one.
    smc_setup.py pnet NAME NETDEV LINK    smc_pnet -a NAME: which link serves which
                                          netdev.  6.1 cannot find that out by itself.
"""
import os
import socket
import struct
import sys

NETLINK_GENERIC = 16
NLMSG_ERROR, NLM_F_REQUEST, NLM_F_ACK = 2, 1, 4
GENL_ID_CTRL, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_ID, CTRL_ATTR_FAMILY_NAME = 16, 3, 1, 2
SMC_NETLINK_ADD_UEID, SMC_NLA_EID_TABLE_ENTRY = 10, 1
SMC_PNETID_ADD, SMC_PNETID_NAME, SMC_PNETID_ETHNAME, SMC_PNETID_IBNAME, SMC_PNETID_IBPORT = 2, 1, 2, 3, 4

nl = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_GENERIC)
nl.bind((0, 0))


def attr(kind, data):
    return struct.pack("HH", 4 + len(data), kind) + data + bytes(-len(data) % 4)


def text(kind, s):
    return attr(kind, s.encode() + b"\0")


def call(family, command, attrs):
    """The first answer; an error is raised."""
    body = struct.pack("BBH", command, 1, 0) + attrs
    nl.send(struct.pack("IHHII", 16 + len(body), family, NLM_F_REQUEST | NLM_F_ACK, 1, 0) + body)
    answer = nl.recv(65536)
    if struct.unpack_from("H", answer, 4)[0] == NLMSG_ERROR:
        err = -struct.unpack_from("i", answer, 16)[0]
        if err:
            sys.exit(f"{' '.join(sys.argv)}: {os.strerror(err)}")
    return answer


def family(name):
    answer = call(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, text(CTRL_ATTR_FAMILY_NAME, name))
    nl.recv(65536)                      # the acknowledgment
    at = 20
    while at < len(answer):
        length, kind = struct.unpack_from("HH", answer, at)
        if kind == CTRL_ATTR_FAMILY_ID:
            return struct.unpack_from("H", answer, at + 4)[0]
        at += (length + 3) & ~3
    sys.exit(f"no netlink family {name}")


def main(what, name, netdev="", link=""):
    if what == "ueid":
        call(family("SMC_GEN_NETLINK"), SMC_NETLINK_ADD_UEID, text(SMC_NLA_EID_TABLE_ENTRY, name.ljust(32)))
    elif what == "pnet":
        call(family("SMC_PNETID"), SMC_PNETID_ADD,
             text(SMC_PNETID_NAME, name) + text(SMC_PNETID_ETHNAME, netdev) +
             text(SMC_PNETID_IBNAME, link) + attr(SMC_PNETID_IBPORT, b"\1"))
    else:
        sys.exit(__doc__)


main(*sys.argv[1:])
