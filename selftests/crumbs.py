#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""
A frame that says of itself that it is very many packets.

	crumbs.py LINK

Makes a tap device with a virtio-net header and a link on it, and writes UDP frames as a guest
may, to a QP that is not there: first a super-packet of three, all of which rove has to see, then
one of as many as it has bytes, behind a checksum that is said to start near its end, once as
it is and once as if it had come out of a tunnel, where the tap knows of these: one malformed
packet.  Prints what the link has counted.
"""
import fcntl
import os
import re
import struct
import subprocess
import sys
import time

TUNSETIFF, IFF_TAP, IFF_NO_PI, IFF_VNET_HDR = 0x400454ca, 2, 0x1000, 0x4000
TUNSETVNETHDRSZ, TUNNEL_HDR = 0x400454d8, 24
NEEDS_CSUM, GSO_UDP_L4, GSO_UDP_TUNNEL_IPV4 = 1, 5, 0x20
HEADERS = 14 + 20 + 8

link = sys.argv[1]


def run(cmd):
    return subprocess.run(cmd.split(), check=True, capture_output=True, text=True).stdout


def ip_sum(header):
    s = sum(struct.unpack("!10H", header))
    s = (s & 0xffff) + (s >> 16)
    return ~(s + (s >> 16)) & 0xffff


def frame(payload, gso_size, csum_start, tunnel=False):
    def ip(check):
        return struct.pack("!BBHHHBBH4B4B", 0x45, 0, 28 + len(payload), 1, 0, 64, 17, check,
                           10, 79, 0, 2, 10, 79, 0, 1)

    eth = mac + bytes.fromhex("020000000002") + b"\x08\x00"
    udp = struct.pack("!HHHH", 49152, 4791, 8 + len(payload), 0)
    gso_type = GSO_UDP_L4 | (GSO_UDP_TUNNEL_IPV4 if tunnel else 0)
    vnet = struct.pack("<BBHHHH", NEEDS_CSUM, gso_type, HEADERS, gso_size, csum_start, 6)
    if tunnel:                  # where the outer UDP header is, and what is in the tunnel
        vnet += struct.pack("<10xHH", 34, HEADERS)
    return vnet + eth + ip(ip_sum(ip(0))) + udp + payload


def counted():
    words = run(f"rdma statistic show link {link}").split()
    return {name: int(words[words.index(name) + 1]) for name in ("drop_unknown_qp", "drop_malformed")}


def settled(before, enough):
    """What was counted since, when it is so much, or will not be."""
    deadline = time.monotonic() + 20
    while True:
        now = sum(counted().values()) - sum(before.values())
        if now >= enough or time.monotonic() >= deadline:
            return now
        time.sleep(0.2)


fd = os.open("/dev/net/tun", os.O_RDWR)
fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", b"tap7", IFF_TAP | IFF_NO_PI | IFF_VNET_HDR))
run("ip addr add 10.79.0.1/24 dev tap7")
run("ip link set tap7 up")
with open("/sys/class/net/tap7/address") as f:
    mac = bytes.fromhex(f.read().replace(":", ""))
run(f"rdma link add {link} type rove netdev tap7")

# SEND Only to QP 0x123456
packet = struct.pack("!BBHII", 4, 0x40, 0xffff, 0x123456, 1).ljust(1000, b"\x5a")
before = counted()
try:
    os.write(fd, frame(3 * packet, 1000, 34))
except OSError:
    if tuple(map(int, re.findall(r"\d+", os.uname().release)[:2])) >= (6, 2):
        raise
    print("no tap of this kernel takes a super-packet of UDP")
    run(f"rdma link delete {link}")
    sys.exit(0)
few = settled(before, 3)
good = few == 3
print(f"of three packets {few} were seen")
for tunnel in False, True:
    if tunnel:
        fcntl.ioctl(fd, TUNSETVNETHDRSZ, struct.pack("i", TUNNEL_HDR))
    before = counted()
    try:
        os.write(fd, frame(b"\x5a" * 60000, 1, HEADERS + 60000 - 136, tunnel))
    except OSError as e:        # a kernel that looks more closely
        print(f"refused: {e.strerror}")
        continue
    many = settled(before, 1)
    print(f"of 60,000 {many} were seen")
    good = good and many == 1
run(f"rdma link delete {link}")
sys.exit(not good)
