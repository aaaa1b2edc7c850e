#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Checks each RoCE v2 packet of a capture: ICRC, UDP and IP checksums, lengths,
pad, reserved fields, P_Key, source port.  scapy's RoCE layer dissects, and
computes the ICRC for IPv4; for IPv6, which it leaves out, the same rule is
applied here (annex A17: eight bytes of ones, the fields that change on the way
masked with ones)."""
import argparse
import collections
import logging
import sys
from zlib import crc32

logging.getLogger("scapy").setLevel(logging.ERROR)
from scapy.layers.inet import IP, UDP, in4_chksum
from scapy.layers.inet6 import IPv6, in6_chksum
from scapy.contrib.roce import BTH
from scapy.utils import PcapReader, checksum
from scapy.packet import raw

# opcode of an RC packet: bytes of extended headers behind the BTH
EXT = {0x00: 0, 0x01: 0, 0x02: 0, 0x03: 4, 0x04: 0, 0x05: 4, 0x06: 16, 0x07: 0, 0x08: 0, 0x09: 4,
       0x0a: 16, 0x0b: 20, 0x0c: 16, 0x0d: 4, 0x0e: 0, 0x0f: 4, 0x10: 4, 0x11: 4, 0x12: 12,
       0x13: 28, 0x14: 28, 0x16: 4, 0x17: 4, 0x81: 16}
FULL = {0x00, 0x01, 0x06, 0x07, 0x0d, 0x0e}       # first and middle: exactly one MTU


def icrc(ip):
    """Over the bytes as they were on the wire."""
    data = bytearray(raw(ip))
    if isinstance(ip, IP):
        hlen = ip.ihl * 4
        data[1] = 0xff                      # type of service
        data[8] = 0xff                      # time to live
        data[10:12] = b"\xff\xff"           # header checksum
        length = ip.len
    else:
        hlen = 40
        data[0] |= 0x0f                     # traffic class and flow label
        data[1:4] = b"\xff\xff\xff"
        data[7] = 0xff                      # hop limit
        length = 40 + ip.plen
    data[hlen + 6:hlen + 8] = b"\xff\xff"   # UDP checksum
    data[hlen + 8 + 4] = 0xff               # FECN, BECN, reserved
    return crc32(b"\xff" * 8 + bytes(data[:length - 4])) & 0xffffffff


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--mtu", type=int, default=4096)
    ap.add_argument("--udp-checksum", action="store_true", help="zero is wrong, too")
    ap.add_argument("--tclass", type=lambda v: int(v, 0), help="DSCP and ECN that every packet must have")
    ap.add_argument("--flow", type=lambda v: int(v, 0), help="flow label: in IPv6, and the source port's origin")
    ap.add_argument("pcap")
    args = ap.parse_args()
    bad = []
    seen = collections.Counter()
    ports = collections.defaultdict(set)
    n = 0
    with PcapReader(args.pcap) as packets:
        for n, p in enumerate(packets, 1):
            ip = p.getlayer(IP) or p.getlayer(IPv6)

            def wrong(what):
                bad.append(f"packet {n}: {what}: {ip.summary() if ip else p.summary()}")

            if ip is None or UDP not in ip or BTH not in ip:
                wrong("not dissected as RoCE v2")
                continue
            udp, bth = ip[UDP], ip[BTH]
            wire = raw(ip)
            hlen = ip.ihl * 4 if isinstance(ip, IP) else 40
            total = ip.len if isinstance(ip, IP) else 40 + ip.plen
            datagram = wire[hlen:total]
            if udp.len != len(datagram):
                wrong(f"UDP length {udp.len}, is {len(datagram)}")
            got = int.from_bytes(datagram[-4:], "little")
            if got != icrc(ip):
                wrong(f"ICRC {got:08x}, should be {icrc(ip):08x}")
            if isinstance(ip, IP):
                if int.from_bytes(bth.compute_icrc(None), "little") != got:
                    wrong("ICRC differs from scapy's")
                if checksum(wire[:hlen]) != 0:
                    wrong("IP header checksum")
                if udp.chksum and in4_chksum(17, ip, datagram) not in (0, 0xffff):
                    wrong("UDP checksum")
            elif udp.chksum and in6_chksum(17, ip, datagram) not in (0, 0xffff):
                wrong("UDP checksum")
            if args.udp_checksum and not udp.chksum:
                wrong("no UDP checksum")
            if bth.opcode not in EXT:
                wrong(f"opcode {bth.opcode:#x}")
                continue
            payload = len(datagram) - 8 - 12 - EXT[bth.opcode] - 4
            if payload % 4 or payload < bth.padcount or payload < 0:
                wrong(f"payload {payload}, pad {bth.padcount}")
            if bth.opcode in FULL and payload != args.mtu:
                wrong(f"payload {payload} in a first or middle packet, MTU is {args.mtu}")
            if payload > args.mtu:
                wrong(f"payload {payload}, MTU is {args.mtu}")
            if bth.padcount and any(datagram[-4 - bth.padcount:-4]):
                wrong("pad is not zero")
            if bth.pkey != 0xffff:
                wrong(f"P_Key {bth.pkey:#x}")
            if bth.version or bth.resv6 or bth.resv7:
                wrong("version or reserved bits")
            if args.tclass is not None and (ip.tos if isinstance(ip, IP) else ip.tc) != args.tclass:
                wrong("traffic class")
            if (ip.ttl if isinstance(ip, IP) else ip.hlim) != 64:
                wrong("hop limit")
            if args.flow is not None:
                # the kernel's rdma_flow_label_to_udp_sport()
                if udp.sport != ((args.flow & 0x3fff) ^ (args.flow >> 14 & 0x3f)) | 0xc000:
                    wrong(f"source port {udp.sport} does not follow from the flow label")
                if isinstance(ip, IPv6) and ip.fl != args.flow:
                    wrong("flow label")
            if udp.sport < 0xc000:
                wrong(f"source port {udp.sport}")
            ports[(ip.src, ip.dst, bth.dqpn)].add(udp.sport)
            seen[bth.opcode] += 1
    for flow, used in ports.items():
        if len(used) > 1:
            bad.append(f"flow {flow} uses source ports {sorted(used)}")
    print("\n".join(bad[:20]))
    print(f"{n} packets, {len(bad)} wrong; opcodes " +
          " ".join(f"{op:#04x}:{k}" for op, k in sorted(seen.items())))
    return 1 if bad or n < 100 else 0


sys.exit(main())
