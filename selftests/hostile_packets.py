#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Raw packets to UDP port 4791 of a link with checked traffic on it (hazards 35
to 42).  Runs on the peer's machine, hence with the peer's address: nothing is
wrong with a packet here but what the case says.

    hostile_packets.py LINK SOURCE DESTINATION DESTINATION6 INFO ROUNDS PID [core] [SEED]

LINK is the device attacked; INFO is what hostile_ring's traffic mode has
printed, ROUNDS the file where it counts, PID its process; core: RC alone, and no
floods.  Prints TAP."""
import contextlib
import ctypes
import json
import logging
import os
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import time
from zlib import crc32

logging.getLogger("scapy").setLevel(logging.ERROR)
from scapy.contrib.roce import BTH
from scapy.layers.inet import IP, UDP
from scapy.packet import Raw, raw

LINK, SRC, DST, DST6, INFO, ROUNDS, PID = sys.argv[1:8]
PORT = 4791
FAR = 0x400000                  # a PSN this far off is nobody's
# opcode: length of its extended headers, has payload (IBTA table 38)
REQUESTS = {0: (0, 1), 1: (0, 1), 2: (0, 1), 3: (4, 1), 4: (0, 1), 5: (4, 1), 6: (16, 1), 7: (0, 1),
            8: (0, 1), 9: (4, 1), 10: (16, 1), 11: (20, 1), 12: (16, 0), 19: (28, 0), 20: (28, 0),
            22: (4, 1), 23: (4, 1), 29: (16, 1)}
RESPONSES = {13: (4, 1), 14: (0, 1), 15: (4, 1), 16: (4, 1), 17: (4, 0), 18: (12, 0)}

core = sys.argv[8:9] == ["core"]
given = sys.argv[9 if core else 8:]
seed = int(given[0]) if given else random.randrange(1 << 30)
rnd = random.Random(seed)
raw_sock = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
raw6_sock = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_UDP)
count = failed = 0
ip_id = 1


def ok(good, what, more=""):
    global count, failed
    count += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {count} - {what}")
    if more and not good:
        print(f"#   {more}")
    sys.stdout.flush()
    return good


# --- packets ---------------------------------------------------------------

def ip_header(length, src=SRC, options=b"", frag=0, ident=None):
    """The kernel fills in length and checksum, as it would be on the wire."""
    global ip_id
    ip_id = ip_id % 65535 + 1
    hlen = 20 + len(options)
    return struct.pack("!BBHHHBBH4s4s", 0x40 | hlen // 4, 0, hlen + length, ident or ip_id, frag, 64, 17, 0,
                       socket.inet_aton(src), socket.inet_aton(DST)) + options


def icrc(ip, udp, bth):
    ip = bytearray(ip)
    ip[1] = ip[8] = ip[10] = ip[11] = 0xff
    udp = udp[:6] + b"\xff\xff"
    bth = bth[:4] + b"\xff" + bth[5:]
    return struct.pack("<I", crc32(b"\xff" * 8 + bytes(ip) + udp + bth))


def bth_header(opcode, qpn, psn, pkey=0xffff, pad=0, ackreq=0, flags=0):
    return struct.pack("!BBHII", opcode, 0x40 | pad << 4 | flags, pkey, qpn & 0xffffff,
                       ackreq << 31 | psn & 0xffffff)


def packet(opcode, qpn, psn, rest=b"", src=SRC, options=b"", flip=0, cut=None, **kw):
    """IP to ICRC.  @flip is xored to the ICRC, @cut the length of the UDP payload."""
    bth = bth_header(opcode, qpn, psn, **kw) + rest
    length = 8 + len(bth) + 4
    udp = struct.pack("!HHHH", 0xc123, PORT, length, 0)
    ip = ip_header(length, src, options)
    crc = bytes(b ^ flip for b in icrc(ip, udp, bth))
    body = bth + crc
    if cut is not None:
        body = body[:cut]
        udp = struct.pack("!HHHH", 0xc123, PORT, 8 + cut, 0)
    return ip + udp + body


def reth(va, rkey, length):
    return struct.pack("!QII", va, rkey, length)


class V6(bytes):
    """From the UDP header on, without a checksum, which the ICRC stands in for."""


def packet6(opcode, qpn, psn, rest=b"", flip=0):
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as s:
        s.connect((DST6, PORT))
        src = s.getsockname()[0]
    bth = bth_header(opcode, qpn, psn) + rest
    length = 8 + len(bth) + 4
    udp = struct.pack("!HHHH", 0xc123, PORT, length, 0)
    ip = b"\x6f\xff\xff\xff" + struct.pack("!HBB", length, 17, 0xff) + \
        socket.inet_pton(socket.AF_INET6, src) + socket.inet_pton(socket.AF_INET6, DST6)
    crc = crc32(b"\xff" * 8 + ip + udp[:6] + b"\xff\xff" + bth[:4] + b"\xff" + bth[5:])
    return V6(udp + bth + struct.pack("<I", crc ^ flip))


class Cut(bytes):
    """What is behind the UDP header comes in 14 pieces, each on a page of its own."""


def send_cut(p):
    step = -(-len(p) // 14)
    pages, hose = os.pipe2(os.O_DIRECT)
    with cutter() as s:
        s.sendto(p[:step], socket.MSG_MORE, (DST, PORT))
        for at in range(step, len(p), step):
            os.write(hose, p[at:at + step])
            more = 4 if at + step < len(p) else 0           # SPLICE_F_MORE
            os.splice(pages, s.fileno(), step, flags=more)
    os.close(pages)
    os.close(hose)


def cutter():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.IPPROTO_IP, 10, 2)                  # IP_MTU_DISCOVER: DF, and ID 0
    s.bind((SRC, 0xc123))
    return s


def of_a_socket(opcode, q, psn, rest, i=0, **kw):
    """BTH to ICRC, which the kernel sends from cutter(), as the @i-th of a train."""
    bth = bth_header(opcode, q, psn, **kw) + rest
    length = 8 + len(bth) + 4
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + length, i, 0x4000, 64, 17, 0,
                     socket.inet_aton(SRC), socket.inet_aton(DST))
    return bth + icrc(ip, struct.pack("!HHHH", 0xc123, PORT, length, 0), bth)


def in_one_train(packets, times=1, by6=False):
    """UDP payloads, of one length but for the last, as the kernel makes a train of them."""
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) if by6 else cutter() as s:
        s.setsockopt(17, 103, len(packets[0]))          # UDP_SEGMENT
        for _ in range(times):
            s.sendto(b"".join(packets), (DST6 if by6 else DST, PORT))


def send(packets):
    for p in packets:
        if isinstance(p, Cut):
            send_cut(p)
        elif isinstance(p, V6):
            raw6_sock.sendto(p, (DST6, 0))
        else:
            raw_sock.sendto(p, (DST, 0))


# --- what became of them ------------------------------------------------------

DROPS = ["drop_malformed", "rx_icrc_encapsulated", "drop_unknown_qp", "drop_wrong_source", "drop_wrong_pkey",
         "drop_qp_state", "drop_unexpected_response", "drop_wrong_service", "drop_wrong_qkey"]


def counters():
    out = subprocess.run(["rdma", "-j", "statistic", "show", "link", LINK + "/1"],
                         stdout=subprocess.PIPE, text=True).stdout
    try:
        return json.loads(out)[0]
    except (ValueError, IndexError):
        return {k: int(v) for k, v in re.findall(r"(\w+) (\d+)", out)}


def rise(before, names):
    """By how much counters have risen; several joined with + count together."""
    now = counters()
    return {n: sum(now.get(k, 0) - before.get(k, 0) for k in n.split("+")) for n in names}


def qp_state(qpn):
    out = subprocess.run(["rdma", "res", "show", "qp", "link", LINK + "/1", "lqpn", str(qpn)],
                         stdout=subprocess.PIPE, text=True).stdout
    m = re.search(r"state (\w+)", out)
    return m.group(1) if m else None


def wait_for(what, seconds=20):
    end = time.monotonic() + seconds
    while not what():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def rounds():
    with open(ROUNDS, "rb") as f:
        b = f.read(8)
    return struct.unpack("<Q", b)[0] if len(b) == 8 else 0


def alive():
    before = rounds()
    return wait_for(lambda: rounds() >= before + 3, 40)


def case(name, packets, want, least=False, live=True):
    """Send, and see the counters named rise by so much.  @want: {names: number}, as rise() has them."""
    before = counters()
    send(packets)
    now = {}

    def risen():
        now.update(rise(before, want))
        return all(now[n] >= want[n] for n in want)

    good = wait_for(risen)
    running = not live or alive()
    good = good and risen() and (least or now == want)
    ok(good and running, name, f"counted {now}, wanted {want}; traffic {'runs' if running else 'has stopped'}")


# --- the connection attacked ------------------------------------------------------

info = open(INFO).read()
peer_qpn, qpn = map(int, re.search(r"^# ready (\d+) (\d+)", info, re.M).groups())
rkey, addr = map(int, re.search(r"^# rkey (\d+) (\d+)", info, re.M).groups())
idle = [int(m[1]) for m in re.findall(r"^# idle (\d+) (\d+)", info, re.M)]
other = {name: int(q) for name, q in re.findall(r"^# service (\w+) (\d+)", info, re.M)}
known = {qpn, peer_qpn} | {int(m) for pair in re.findall(r"^# idle (\d+) (\d+)", info, re.M) for m in pair}
print(f"# seed {seed}")

# our ICRC is scapy's
mine = packet(4, 17, 5, b"abcdefgh")
theirs = IP(src=SRC, dst=DST, ttl=64, id=struct.unpack("!H", mine[4:6])[0], flags=0) / \
    UDP(sport=0xc123, dport=PORT, chksum=0) / BTH(opcode=4, migreq=1, dqpn=17, psn=5, pkey=0xffff) / Raw(b"abcdefgh")
ok(raw(theirs)[-4:] == mine[-4:], "the ICRC used here is scapy's", f"{raw(theirs).hex()} {mine.hex()}")


def full(opcode, psn=None, **kw):
    """A well-formed packet of a valid opcode."""
    ext, payload = (REQUESTS | RESPONSES)[opcode]
    kw.setdefault("rest", bytes(ext) + bytes(64 * payload))
    return packet(opcode, kw.pop("qpn", qpn), FAR if psn is None else psn, **kw)


case("an answer to nothing: what is well-formed arrives", [full(17)], {"drop_unexpected_response": 1})
case("wrong ICRC", [full(op, flip=1 << (i % 8)) for i, op in enumerate([4, 10, 12, 17, 20] * 4)],
     {"rx_icrc_encapsulated": 20})

one = [packet(10, qpn, FAR, reth(addr, rkey, 64) + bytes(64), cut=n) for n in range(81)]
bad = sum(1 for n in range(81) if n < 32 or n % 4)
case("cut at every length", one, {"drop_malformed": bad, "rx_icrc_encapsulated": 81 - bad})
for op in (4, 12, 17, 18, 19):
    ext = (REQUESTS | RESPONSES)[op][0]
    case(f"opcode {op} cut, with an ICRC that is right for it",
         [packet(op, qpn, FAR, bytes(n)) for n in range(0, ext)], {"drop_malformed": ext})

# opcodes of all services: UC has RC's without answers, UD two, XRC RC's with one header more
UC = {0x20 | op: v for op, v in REQUESTS.items() if op < 12}
UD = {0x64: (8, 1), 0x65: (12, 1)}
XRC = {0xa0 | op: (v[0] + 4, v[1]) for op, v in REQUESTS.items()} | \
    {0xa0 | op: v for op, v in RESPONSES.items()}
FOREIGN = UC | UD | XRC
# RC and XRC answer what is reserved as well
reserved = [op for op in range(32) if op not in REQUESTS | RESPONSES]
valid = set(REQUESTS) | set(RESPONSES) | set(FOREIGN) | {svc | op for svc in (0, 0xa0) for op in reserved}
case("every opcode that does not exist", [packet(op, qpn, FAR, bytes(64)) for op in range(256) if op not in valid],
     {"drop_malformed": 256 - len(valid)})
case("every opcode of another service", [packet(op, qpn, 0, bytes(ext) + bytes(64 * payload))
                                         for op, (ext, payload) in FOREIGN.items()],
     {"drop_wrong_service": len(FOREIGN)})
case("every request far ahead", [full(op) for op in REQUESTS], {"out_of_sequence": len(REQUESTS)}, least=True)
case("every request far behind", [full(op, psn=FAR * 3) for op in REQUESTS],
     {"duplicate_request": len(REQUESTS)}, least=True)
case("every reserved opcode far ahead", [packet(op, qpn, FAR, bytes(64)) for op in reserved], {"out_of_sequence": len(reserved)},
     least=True)
case("every response far ahead", [full(op) for op in RESPONSES], {"drop_unexpected_response": len(RESPONSES)}, least=True)
case("every response far behind", [full(op, psn=FAR * 3) for op in RESPONSES],
     {"drop_unexpected_response": len(RESPONSES)}, least=True)
case("every NAK there is, of a PSN never sent",
     [packet(17, qpn, FAR, struct.pack("!I", s << 24)) for s in range(256)], {"drop_unexpected_response": 256}, least=True)
case("another transport version", [full(4, flags=v) for v in range(1, 16)], {"drop_malformed": 15})
qpns = [0, qpn ^ 1, qpn ^ 0x800000, 0xffffff]
case("queue pairs that do not exist", [full(4, qpn=q) for q in qpns], {"drop_unknown_qp": len(qpns)})
case("wrong P_Key", [full(4, pkey=k) for k in (0, 0x8000, 0x1234, 0x7ffe, 0xfffe)], {"drop_wrong_pkey": 5})
case("wrong source address", [full(op, src="10.77.0.99") for op in REQUESTS], {"drop_wrong_source": len(REQUESTS)})
case("pad longer than the payload",
     [packet(4, qpn, FAR, bytes(n), pad=p) for n in (0, 1, 2) for p in range(n + 1, 4)], {"drop_malformed": 6})
case("pad that does not fit", [packet(4, qpn, FAR, bytes(n), pad=p) for n in range(4, 8) for p in range(4) if n % 4],
     {"drop_malformed": 12})
case("pad where there is no payload", [packet(12, qpn, FAR, reth(addr, rkey, 64) + bytes(p), pad=p) for p in (1, 2, 3)],
     {"drop_malformed": 3})
case("IPv6: a wrong source, a wrong ICRC, no such queue pair",
     [packet6(4, qpn, FAR, bytes(64), flip=f) for f in (0, 1)] + [packet6(0x64, 1, FAR, bytes(264), flip=1)] * 3 +
     [packet6(4, 0x123456, FAR, bytes(64))] * 4,
     {"drop_wrong_source": 2, "rx_icrc_encapsulated": 3, "drop_unknown_qp": 4})
case("IPv4 options", [full(17, options=b"\x01" * n) for n in (4, 20, 40)], {"drop_unexpected_response": 3}, least=True)


# --- what a peer can do to its own connection -----------------------------------------

def single(name, state, packets, want=None):
    """To an idle connection, which expects PSN 0."""
    target = idle.pop()
    before = counters()
    send([p(target) for p in packets])
    good = wait_for(lambda: qp_state(target) == state, 20)
    if want:
        good = wait_for(lambda: counters().get(want, 0) > before.get(want, 0)) and good
    if good and state == "RTS":             # it stays so
        good = alive() and qp_state(target) == state
    running = alive()
    ok(good and running, name, f"QP in {qp_state(target)}, wanted {state}; traffic {'runs' if running else 'has stopped'}")


def write(va, key, length, payload, op=10, psn=0):
    return lambda q: packet(op, q, psn, reth(va, key, length) + bytes(payload), ackreq=1)


def read(va, key, length, psn=0):
    return lambda q: packet(12, q, psn, reth(va, key, length))


single("RETH says more than there is", "ERR", [write(addr, rkey, 100, 64)], "sent_err_nak")
single("RETH says less than there is", "ERR", [write(addr, rkey, 60, 64)], "sent_err_nak")
single("a WRITE with a wrong rkey", "ERR", [write(addr, rkey ^ 1, 64, 64)], "sent_err_nak")
single("a WRITE whose address wraps", "ERR", [write(0xfffffffffffffc00, rkey, 0x400, 0x400)], "sent_err_nak")
single("a WRITE of 4 GiB", "ERR", [write(addr, rkey, 0xffffffff, 1024, op=6)], "sent_err_nak")
single("a READ of 4 GiB", "ERR", [read(addr, rkey, 0xffffffff)], "sent_err_nak")
single("a READ whose address wraps", "ERR", [read(0xfffffffffffffff0, rkey, 0x20)], "sent_err_nak")
single("WRITE and READ of nothing with any rkey", "RTS",
       [write(0xfffffffffffffff0, 0xdeadbeef, 0, 0), read(3, 0, 0, psn=1)], "rx_read_requests")
single("a SEND that nobody receives", "RTS", [lambda q: packet(4, q, 0, bytes(64))], "sent_rnr_nak")
single("a message's middle without its beginning", "ERR", [lambda q: packet(1, q, 0, bytes(1024))], "sent_err_nak")
single("a first packet shorter than the MTU", "ERR", [write(addr, rkey, 2000, 1000, op=6)], "sent_err_nak")
single("FLUSH, which is not supported", "ERR", [lambda q: packet(28, q, 0, bytes(4) + reth(addr, rkey, 64), ackreq=1)],
       "sent_err_nak")
single("an atomic at an odd address", "ERR", [lambda q: packet(20, q, 0, struct.pack("!QIQQ", addr + 1, rkey, 1, 0))],
       "sent_err_nak")
single("an atomic with a wrong rkey", "ERR", [lambda q: packet(19, q, 0, struct.pack("!QIQQ", addr, rkey ^ 1, 1, 0))],
       "sent_err_nak")

# --- under it: fragments, and plain garbage ---------------------------------------------

def fragments(p, at, drop=None, overlap=0):
    ip, body = p[:20], p[20:]
    ident = struct.unpack("!H", ip[4:6])[0]
    parts = [ip_header(at, ident=ident, frag=0x2000) + body[:at],
             ip_header(len(body) - at + overlap, ident=ident, frag=(at - overlap) // 8) + body[at - overlap:]]
    return [f for i, f in enumerate(parts) if i != drop]


case("fragments", fragments(full(17), 16) + fragments(full(14), 8) + fragments(full(16), 48),
     {"drop_unexpected_response": 3, "rx_icrc_encapsulated": 0})
def cut(n):
    """A response to nothing."""
    return Cut(of_a_socket(14, qpn, FAR, bytes(n)))


case("cut to 14 pages each", [cut(n) for n in (256, 1000, 1024)],
     {"drop_unexpected_response": 3, "rx_icrc_encapsulated": 0})
FAIL = os.environ.get("FAILSLAB")
if FAIL:
    def fail(per_cent):
        for name, value in (("ignore-gfp-wait", "Y"), ("verbose", "0"), ("interval", "1"), ("times", "-1"),
                            ("probability", str(per_cent))):
            with open(os.path.join(FAIL, name), "w") as f:
                f.write(value)

    # debug objects want 16 allocations in a row, and are switched off if they find none for long
    fail(10)
    case("cut to pieces, and no memory to put a tenth of them together", [cut(1000)] * 100,
         {"drop_unexpected_response": 1}, least=True, live=False)
    fail(0)
    ok(alive(), "and the traffic goes on")
case("fragments that overlap or miss", fragments(full(14), 16, drop=1) +
     fragments(full(14), 16, drop=0) + fragments(full(14), 32, overlap=16),
     {"drop_unexpected_response": 0, "rx_icrc_encapsulated": 0})


def garbage(n):
    data = bytearray(rnd.randbytes(n))
    kind = rnd.randrange(4)
    if kind and n >= 12:            # something right, so that it gets further
        data[0] = rnd.choice(sorted(valid))
        data[1] &= 0xf0
        if kind > 1:
            data[2:4] = b"\xff\xff"
            data[4:8] = struct.pack("!I", qpn)
    return bytes(data)


def garbage_packet(n):
    body = garbage(n)
    return ip_header(8 + n) + struct.pack("!HHHH", 0xc123, PORT, 8 + n, 0) + body


ALL = "+".join(DROPS)
case("3000 times 48 bytes of garbage", [garbage_packet(48) for _ in range(3000)], {ALL: 2900}, least=True)
case("1000 times garbage of any length", [garbage_packet(rnd.randrange(1, 1400)) for _ in range(1000)], {ALL: 950}, least=True)
before = counters()
with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as s:
    for _ in range(1000):
        s.sendto(garbage(rnd.randrange(1, 200)), (DST6, PORT))
ok(wait_for(lambda: rise(before, [ALL])[ALL] >= 900) and alive(),
   "1000 times garbage from an unprivileged IPv6 socket")
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    for _ in range(2000):
        s.sendto(b"", (DST, PORT))
ok(alive(), "2000 empty datagrams")


def finish():
    ok(qp_state(qpn) == "RTS", "the connection attacked is as it was", str(qp_state(qpn)))
    print(f"1..{count}")
    sys.exit(failed > 0)


if core:
    finish()

# --- the other services ------------------------------------------------------------------

QKEY = 0x11223344
ANSWER = 20 + 8 + 12 + 4 + 4    # an acknowledge with its IP header


class Listener:
    """What DST sends to RoCE's port; of @but's, the connection with traffic on it, nothing."""
    def __init__(self, but=None, v6=False):
        self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x86dd if v6 else 0x0800))
        self.but = but
        if but is not None:
            # in BPF: the word of the BTH that has the QP's number, without its first byte
            code = b"".join(struct.pack("HBBI", *i) for i in (
                (0x20, 0, 0, 32), (0x54, 0, 0, 0xffffff), (0x15, 0, 1, but),
                (6, 0, 0, 0), (6, 0, 0, 65535)))
            buf = ctypes.create_string_buffer(code)
            self.sock.setsockopt(socket.SOL_SOCKET, 26, struct.pack("HP", 5, ctypes.addressof(buf)))
        self.sock.setsockopt(socket.SOL_SOCKET, 33, 1 << 25)    # SO_RCVBUFFORCE: room for all
        self.sock.settimeout(0.3)

    def heard(self):
        """The packets until there is silence."""
        got = []
        end = time.monotonic() + 20
        while time.monotonic() < end:
            try:
                p = self.sock.recv(65535)
            except (TimeoutError, socket.timeout):
                break
            if p[0] >> 4 == 6:
                ours, at = p[6] == 17 and p[8:24] == socket.inet_pton(socket.AF_INET6, DST6), 40
            else:
                ours, at = p[9] == 17 and p[12:16] == socket.inet_aton(DST), 20
            # what came before the filter was there
            if ours and p[at + 2:at + 4] == struct.pack("!H", PORT) and int.from_bytes(p[at + 13:at + 16], "big") != self.but:
                got.append(p)
        lost = struct.unpack("II", self.sock.getsockopt(263, 6, 8))[1]      # PACKET_STATISTICS
        self.sock.close()
        return got + [b""] * lost


def deth(qkey, src=0x77):
    return struct.pack("!II", qkey, src)


def heads(op, ext):
    """Extended headers: empty ones, and two that are wrong.  A UD QP looks at the Q_Key
    first, an XRC target at the SRQ's number, which once is none."""
    key = struct.pack("!I", QKEY if op in UD else other["xrc_srq"]) if op in UD | XRC else b""
    keys = [key, key, key if op in UD else b""]
    return [k + fill[len(k):] for k, fill in zip(keys, (bytes(ext), rnd.randbytes(ext), b"\xff" * ext))]


def wrong_in_every_way(qps, ops):
    """Well-formed packets of @ops, then each with one thing wrong.  What may be the last
    packet that a QP takes is the last that it gets, when @qps has more than one."""
    qps = list(qps)
    for op, (ext, payload) in ops.items():
        zero, some, ones = heads(op, ext)
        for wrong in (some + bytes(64 * payload), ones + bytes(64 * payload),
                      zero + bytes(1024 * payload), zero + bytes(1028 * payload), zero):
            q = qps.pop() if len(qps) > 1 else qps[0]
            body = zero + bytes(64 * payload)
            yield packet(op, q, 0, body, flip=1)
            yield packet(op, q, 0, body, pkey=0x1234)
            yield packet(op, q, 0, body, flags=3)
            yield packet(op, q, 0, body, src="10.77.0.99")
            yield packet(op, q, FAR, wrong)
            yield packet(op, q, 0, wrong)


def silent(name, packets, want=None, never=()):
    """Takes them all without an answer, and counts none as @never."""
    packets = list(packets)
    ear, before = Listener(peer_qpn), counters()
    send(packets)
    heard, rose = ear.heard(), rise(before, [*(want or {}), *never])
    ok(not heard and alive() and all(rose[k] >= v for k, v in (want or {}).items()) and
       not any(rose[k] for k in never), name,
       f"{len(heard)} answers to {len(packets)} packets; counted {rose}, "
       f"wanted {want}, never {never}")


ud, uc = other["ud"], other["uc"]
shared = [int(q) for q in re.findall(r"^# service srq (\d+)", info, re.M)]
silent("UD: every header wrong in every way", wrong_in_every_way([ud], UD),
       {"drop_malformed": 10, "rx_icrc_encapsulated": 10, "rcvd_datagrams": 4},
       ["drop_wrong_qkey", "drop_qp_state"])
silent("UD: wrong Q_Keys", [packet(0x64, ud, i, deth(QKEY ^ 1 << i) + bytes(8)) for i in range(32)], {"drop_wrong_qkey": 32})
silent("UD: longer than the receive", [packet(0x64, ud, i, deth(QKEY) + bytes(n)) for i, n in enumerate((2012, 2048, 4000))],
       {"drop_datagram_too_long": 3})
silent("UD: more than there are receives", [packet(0x64, ud, i, deth(QKEY) + bytes(8)) for i in range(64)],
       {"rcvd_datagrams": 1, "drop_datagram_no_recv": 32})
silent("UD: what other services say", [packet(op, ud, 0, bytes(80)) for op in valid if op & 0xe0 != 0x60],
       {"drop_wrong_service": 30})
silent("UC: every header wrong in every way", wrong_in_every_way([uc], UC),
       {"uc_rx_dropped_messages": 5}, ["drop_qp_state"])
silent("UC: what other services say", [packet(op, uc, 0, bytes(80)) for op in valid if op & 0xe0 != 0x20],
       {"drop_wrong_service": 30})
unready = [int(q) for q in re.findall(r"^# service unready (\d+)", info, re.M)]
silent("queue pairs in RESET and in INIT: every opcode", [packet(op, q, 0, bytes(ext) + bytes(64 * payload), ackreq=1)
       for q in unready for op, (ext, payload) in (REQUESTS | RESPONSES).items()],
       {"drop_qp_state": 2 * len(REQUESTS | RESPONSES)})
# rdma_cm listens on the GSI; its Q_Key is known to all
gsi = [packet(0x64, 1, i, deth(0x80010000, 1) + rnd.randbytes(256)) for i in range(200)] + \
      [packet(0x64, 1, i, deth(0x80010000, 1) + bytes([1, rnd.choice((3, 4, 7, 33)), 2, rnd.randrange(256)]) + rnd.randbytes(252))
       for i in range(500)] + \
      [packet(0x64, 1, i, deth(0x80010000, 1) + rnd.randbytes(4 * n)) for i, n in enumerate(range(0, 80))]
send(gsi)
ok(alive(), "QP 1: garbage for rdma_cm and the MAD layer")
send(wrong_in_every_way([1], UD))
ok(alive(), "QP 1: every header wrong in every way")


def cm_mad(attribute):
    return struct.pack("!BBBBHHQHHI", 1, 7, 2, 3, 0, 0, rnd.getrandbits(64), attribute, 0, 0) + rnd.randbytes(232)


# ib_cm may answer what it takes for a request: REJ is as long as REQ
asked = [packet(0x64, 1, i, deth(0x80010000, 1) + cm_mad(0x10 + i % 14)) for i in range(280)]
ear = Listener(peer_qpn)
send(asked)
heard = ear.heard()
ok(alive() and len(heard) <= len(asked) and all(0 < len(p) <= len(asked[0]) for p in heard),
   f"QP 1: {len(asked)} messages of the connection manager's get {len(heard)} answers, none longer than they",
   str([len(p) for p in heard][:10]))

# --- what it costs, and what comes back -----------------------------------------------------

def few_answers(name, qps, ops):
    """To each packet an acknowledge at most; @qps are as many as wrong_in_every_way() wants."""
    ear, before = Listener(peer_qpn), counters()
    sent = list(wrong_in_every_way(qps, ops))
    send(sent)
    heard = ear.heard()
    ok(len(qps) > 5 * len(ops) and alive(), f"{name}: a queue pair for each", str(len(qps)))
    late = rise(before, ["drop_qp_state"])["drop_qp_state"]
    ok(not late, f"{name}: none was dead when its packets came", f"{late} packets")
    # of six packets, two are such that they may have one
    ok(0 < len(heard) <= len(sent) // 3 and all(len(p) <= ANSWER for p in heard) and alive(),
       f"{name}: every header wrong in every way: {len(heard)} answers to {len(sent)} packets, none above {ANSWER} bytes",
       str([len(p) for p in heard if len(p) > ANSWER]))
    each_is_counted(name, before, len(sent) // 6)


def each_is_counted(name, before, n):
    """Of wrong_in_every_way()'s packets: those that were wrong in one way, @n of each."""
    rose = rise(before, ["rx_icrc_encapsulated", "drop_wrong_pkey", "drop_malformed", "drop_wrong_source"])
    ok(all(v >= n for v in rose.values()), f"{name}: each that was dropped is counted, by cause", str(rose))


few_answers("RC with an SRQ", shared, REQUESTS)
few_answers("XRC", [int(q) for q in re.findall(r"^# service xrc (\d+)", info, re.M)],
            {op: XRC[op] for op in XRC if op & 0x1f in REQUESTS})
target = idle.pop()
ear = Listener(peer_qpn)
send([packet(op, target, FAR, bytes(ext) + bytes(64 * pay), ackreq=1) for op, (ext, pay) in REQUESTS.items()] * 50)
heard = ear.heard()
ok(len(heard) <= 2 and all(len(p) <= ANSWER for p in heard),
   f"{50 * len(REQUESTS)} packets far ahead: {len(heard)} NAKs", str(len(heard)))
silent("RC: every response wrong in every way", wrong_in_every_way([target], RESPONSES),
       {"drop_unexpected_response": 5 * len(RESPONSES)}, ["drop_qp_state"])
ok(alive() and qp_state(target) == "RTS", "traffic runs, and that QP is as it was", str(qp_state(target)))

# Who has asked, and waits.  An answer that shows that another was lost has it ask once more.
waiting = {}
for kind, q in re.findall(r"^# waiting (\S+) (\d+)", info, re.M):
    waiting.setdefault(kind, []).append(int(q))
for kind, qps in waiting.items():
    answers = {op: XRC[op] for op in XRC if op & 0x1f in RESPONSES} if kind == "XRC-READ" else RESPONSES
    ear, before = Listener(peer_qpn), counters()
    sent = list(wrong_in_every_way(qps, answers))
    send(sent)
    heard = ear.heard()
    ok(len(heard) <= len(sent) // 3 and alive(),
       f"who waits for {kind}'s answer: every response wrong in every way", f"{len(heard)} packets for {len(sent)}")
    each_is_counted(f"who waits for {kind}'s answer", before, len(sent) // 6)


# A program that answers at once has its acknowledgments wait for that, and share its packet.
# Then comes a message, and with it, in one train, what ends the connection.
def answer(sock, psn):
    """Its length, with what shares its train."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        try:
            p = sock.recv(65535)
        except (TimeoutError, socket.timeout):
            continue
        if p[9] == 17 and p[12:16] == socket.inet_aton(DST) and p[28] == 4 and \
           int.from_bytes(p[33:36], "big") == 0xabcd and int.from_bytes(p[37:40], "big") == psn:
            return len(p)
    return 0


echo = other["echo"]
ear = Listener(peer_qpn)
alone = 20 + 8 + 12 + 64 + 4
turns = in_a_row = most = 0
end = time.monotonic() + 90             # where others run as well it may take long
wanted = 5
while time.monotonic() < end:
    psn = turns
    send([packet(4, echo, psn, bytes(64), ackreq=1)])
    length = answer(ear.sock, psn)
    if not length:
        break
    turns += 1
    in_a_row = in_a_row + 1 if length > alone else 0
    most = max(most, in_a_row)
    if time.monotonic() > end - 60:
        # a kernel so slow that more are rare, or any
        wanted = 2 if time.monotonic() < end - 30 else 1
    if in_a_row >= wanted:
        break                   # and this one is not acknowledged
    send([packet(17, echo, psn, struct.pack("!I", 31 << 24 | psn + 1))])
in_one_train([of_a_socket(4, echo, turns, bytes(64), ackreq=1),
              of_a_socket(17, echo, turns - 1, struct.pack("!I", 0x63 << 24 | turns), i=1)])
ok(in_a_row >= wanted and wait_for(lambda: qp_state(echo) == "ERR") and alive(),
   "a NAK behind a message whose acknowledgment waits ends the connection",
   f"{turns} turns, {most} in a row with the acknowledgment, {qp_state(echo)}")

FLOOD = 4000


def mem_available():
    with open("/proc/meminfo") as f:
        return int(re.search(r"MemAvailable: *(\d+)", f.read())[1])


def busy():
    """Seconds that all CPUs have spent on anything: programs, interrupts, threads of the kernel."""
    with open("/proc/stat") as f:
        t = f.readline().split()[1:]
    return sum(int(t[i]) for i in (0, 1, 2, 5, 6)) / os.sysconf("SC_CLK_TCK")


def cost(packets):
    """Seconds a packet, and what came back; not counted is what listening took."""
    ear = Listener(v6=isinstance(packets[0], V6))
    start = busy()
    send(packets)
    listening = time.process_time()
    heard = ear.heard()
    return (busy() - start - (time.process_time() - listening)) / len(packets), heard


def flood(p):
    return [p] * FLOOD


body = bytes(1024)
plain = bytearray(packet(4, qpn, FAR, body))
plain[22:24] = struct.pack("!H", 9)             # nobody listens there
# a packet, and what counts it
floods = {
    "no such QP": (packet(4, 0x123456, FAR, body), "drop_unknown_qp"),
    "a wrong ICRC": (packet(4, qpn, FAR, body, flip=1), "rx_icrc_encapsulated"),
    "a wrong source": (packet(4, qpn, FAR, body, src="10.77.0.99"), "drop_wrong_source"),
    "a PSN far ahead": (packet(4, qpn, FAR, body), "out_of_sequence"),
    "a PSN far behind": (packet(4, qpn, FAR * 3, body), "duplicate_request"),
    "an unknown opcode": (packet(0xff, qpn, FAR, body), "drop_malformed"),
    "another service": (packet(0x24, qpn, FAR, body), "drop_wrong_service"),
    "no such QP, IPv6": (packet6(4, 0x123456, FAR, body), "drop_unknown_qp"),
    "a wrong ICRC, IPv6": (packet6(0x64, 1, FAR, body, flip=1), "rx_icrc_encapsulated"),
    "a wrong source, IPv6": (packet6(4, qpn, FAR, body), "drop_wrong_source"),
    "a wrong Q_Key for QP 1": (packet(0x64, 1, FAR, deth(1, 1) + bytes(256)), "drop_wrong_qkey"),
    "garbage for QP 1": (packet(0x64, 1, FAR, deth(0x80010000, 1) + b"\1\7\2" + bytes(253)),
                         "rcvd_datagrams+drop_datagram_no_recv"),
}


# The traffic holds its breath: all that is heard now is an answer, and all time the flood's.
os.kill(int(PID), signal.SIGSTOP)
Listener().heard()
# nor has any QP left its work undone, and keeps a CPU at it
idle_for = time.monotonic()
start = busy()
time.sleep(1)
took = (busy() - start) / (time.monotonic() - idle_for)
ok(took < 0.5, "with nothing to do, nothing is done", f"{took:.2f} of a CPU")
base = min(cost(flood(bytes(plain)))[0] for _ in range(3))
print(f"# a datagram of 1 KiB to a port where nobody listens: {base * 1e6:.1f} us, sent and dropped")
before_mem = mem_available()
for name, (p, counter) in floods.items():
    before = counters()
    runs = [cost(flood(p)) for _ in range(2)]
    took = min(t for t, _ in runs)
    heard = runs[0][1] + runs[1][1]
    # one NAK till what is due has come; a repeated request may be acknowledged each time
    most = {"a PSN far ahead": 2, "a PSN far behind": 2 * FLOOD}.get(name, 0)
    print(f"# {name}: {took * 1e6:.1f} us, {len(heard)} answers to {2 * FLOOD}")
    ok(len(heard) <= most and all(len(h) <= ANSWER for h in heard),
       f"a flood with {name} gets no more answers than it may",
       f"{len(heard)} answers, {most} allowed")
    ok(took < 4 * base + 100e-6, f"a flood with {name} costs little more than any datagram",
       f"{took * 1e6:.1f} us, {base * 1e6:.1f}")
    # a CPU's queue of packets has its own limit
    rose = rise(before, [counter])[counter]
    ok(0.9 * 2 * FLOOD <= rose <= 2 * FLOOD, f"a flood with {name} is counted as that",
       f"{rose} of {2 * FLOOD}: {counter}")
ok(before_mem - mem_available() < 16384, "no memory is kept of it", f"{before_mem} {mem_available()} KiB")

# What one CPU receives for another that has no time waits in a backlog: see net_rx.c
TRAINS, BACKLOG_BYTES = 500, 8 << 20


@contextlib.contextmanager
def no_time_for(cpu):
    """Nobody but interrupts has time on that CPU."""
    hog = subprocess.Popen(["taskset", "-c", str(cpu), "chrt", "-f", "50", sys.executable, "-c",
                            "import os\nos.write(1, b'.')\nwhile True: pass"], stdout=subprocess.PIPE)
    hog.stdout.read(1)
    try:
        yield
    finally:
        hog.kill()
        hog.wait()


cpus = sorted(os.sched_getaffinity(0))
if len(cpus) > 1:
    os.sched_setaffinity(0, cpus[:1])
    before, before_mem = counters(), mem_available()

    def risen(name):
        return rise(before, [name])[name]

    def train(q):
        """Each a thousand bytes of UDP, sixty at once."""
        return [packet(4, q, FAR, bytes(984), flip=1)[28:]] * 60

    with no_time_for(cpus[1]):
        in_one_train(train(target), TRAINS)
        kept = before_mem - mem_available() >> 10
    full = risen("drop_backlog_full")
    print(f"# {TRAINS} trains of 60 KB: {full} found the backlog full; {kept} MiB held")
    ok(full >= TRAINS - 2 * BACKLOG_BYTES // 60000,
       "trains for a CPU that has no time: the backlog's bytes are bounded", f"{full} of {TRAINS} dropped")
    ok(wait_for(lambda: risen("rx_icrc_encapsulated") == 60 * (TRAINS - full)),
       "trains for a CPU that has no time: the others are looked at", f"{risen('rx_icrc_encapsulated')} wrong ICRCs")

    # over IPv6 A is not its peer
    before = counters()
    with no_time_for(cpus[1]):
        in_one_train(train(target), TRAINS, by6=True)
        rose = rise(before, ["drop_wrong_source", "drop_backlog_full", "rx_icrc_encapsulated"])
    ok(rose == {"drop_wrong_source": 60 * TRAINS, "drop_backlog_full": 0, "rx_icrc_encapsulated": 0},
       "a stranger's trains for a CPU that has no time: none is kept, or summed", str(rose))

    # behind a packet for nobody, in its train, one for a QP that has others waiting
    late = idle.pop()
    before = counters()
    with no_time_for(cpus[1]):
        in_one_train(train(late))
        in_one_train([of_a_socket(10, q, 0, reth(0, 0, 0), i) for i, q in enumerate([0x123456, late])])
        seen = wait_for(lambda: risen("drop_unknown_qp"), 5)
        early = risen("rx_write_requests")
    ok(seen and early == 0 and wait_for(lambda: risen("rx_write_requests") == 1) and risen("rx_icrc_encapsulated") == 60,
       "a packet of a train waits for what its queue pair has waiting", f"{early} of {risen('rx_write_requests')} at once")

    # as many queue pairs as take all that there is, if each may have its most
    with open("/proc/meminfo") as f:
        takers = int(re.search(r"MemTotal: *(\d+)", f.read())[1]) * 1024 // 16 // BACKLOG_BYTES + 2
    takers = shared[:min(takers, 34)]
    before = counters()
    refused = []
    with no_time_for(cpus[1]):
        for q in takers:
            was = risen("drop_backlog_full")
            in_one_train(train(q))
            if risen("drop_backlog_full") > was:
                refused.append(q)
            in_one_train(train(q), 2 * BACKLOG_BYTES // 60000)
    print(f"# {len(takers)} queue pairs with all that they may have waiting: {risen('drop_backlog_full')} trains refused")
    ok(len(takers) > 5 and not refused, "whoever else has much waiting: who has nothing may have some",
       f"{len(refused)} of {len(takers)} refused")
    os.sched_setaffinity(0, cpus)
else:
    for what in ("trains", "a stranger's trains", "a packet behind another's", "many queue pairs' trains"):
        count += 1
        print(f"ok {count} - {what} for a CPU that has no time # SKIP one CPU")
os.kill(int(PID), signal.SIGCONT)
ok(alive(), "traffic runs on")
for name, (p, _) in floods.items():
    send(flood(p))
    ok(alive(), f"traffic is right during a flood with {name}")
finish()
