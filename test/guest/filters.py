"""tc filters: random packets fare alike with the kernel and with dl3d, where the same filters judge. Runs in a guest.

h0 -- p0 [ router ] p1 -- h1      packets go from h0 to networks behind h1
"""

import contextlib
import random
import re
import socket
import struct
import time
from collections.abc import Collection, Iterator, Sequence

from harness.router import Dl3dRouter, KernelRouter, Router, port_name, router_mac
from harness.wire import Wire, wait_until

from dl3.lab.namespace import End, Lab

DEVICE = "net_pcap{index},iface={name}"
HOST_MACS = ["02:00:00:01:00:02", "02:00:00:01:01:02"]
N_PACKETS, SHARE = 1200, 40
UDP, TCP, ICMP, ICMP6 = 17, 6, 1, 58
MARKER = 253  # a protocol for experiments
MARKED = "10.9.200.1"  # the first filter of each side lets it pass
NAMES = {UDP: "udp", TCP: "tcp"}


def mac(text: str) -> bytes:
    """A MAC address as bytes."""
    return bytes.fromhex(text.replace(":", ""))


def address(dice: random.Random, family: int, role: str) -> str:
    """One of few, so that filters match often."""
    if role == "src":
        return f"192.0.2.{dice.randrange(8)}" if family == 4 else f"2001:db8:5::{dice.randrange(8):x}"
    return f"10.9.{dice.randrange(4)}.{dice.randrange(4)}" if family == 4 else f"2001:db8:9:{dice.randrange(4)}::1"


def transport(dice: random.Random, protocol: int, number: int) -> bytes:
    """A header and the packet's number. Routers do not look at checksums of the transport."""
    tail, ports = struct.pack("!4sI", b"tcmi", number), (dice.randrange(50, 60), dice.randrange(50, 60))
    if protocol == UDP:
        return struct.pack("!HHHH", *ports, 8 + len(tail), 0) + tail
    if protocol == TCP:
        return struct.pack("!HHIIBBHHH", *ports, 1, 0, 0x50, dice.choice((2, 16, 18, 4)), 99, 0, 0) + tail
    if protocol in {ICMP, ICMP6}:
        kinds = (8, 13) if protocol == ICMP else (128, 129)
        return struct.pack("!BBHI", dice.choice(kinds), dice.randrange(2), 0, 0) + tail
    return tail


def checksum(header: bytes) -> int:
    """Of an IPv4 header."""
    total: int = sum(struct.unpack(f"!{len(header) // 2}H", header))
    total = (total & 0xFFFF) + (total >> 16)
    return ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF


def packet(dice: random.Random, number: int, family: int, protocol: int) -> bytes:
    """A frame from h0, which may be a first or a later fragment."""
    data, tos = transport(dice, protocol, number), dice.randrange(8) << 5 | dice.randrange(4)
    src, dst = address(dice, family, "src"), MARKED if protocol == MARKER else address(dice, family, "dst")
    ether = mac(router_mac(0)) + mac(HOST_MACS[0])
    if family == 6:
        head = struct.pack("!IHBB", 6 << 28 | tos << 20, len(data), protocol, 64)
        addresses = socket.inet_pton(socket.AF_INET6, src) + socket.inet_pton(socket.AF_INET6, dst)
        return ether + b"\x86\xdd" + head + addresses + data
    fragment = dice.choice((0,) * 8 + (0x2000, 100)) if protocol != MARKER else 0
    data += bytes(len(data) % 8)
    words = (0x45, tos, 20 + len(data), number & 0xFFFF, fragment, 64, protocol)
    head = struct.pack("!BBHHHBBH", *words, 0) + socket.inet_aton(src) + socket.inet_aton(dst)
    return ether + b"\x08\x00" + head[:10] + struct.pack("!H", checksum(head)) + head[12:] + data


def packets(seed: int) -> list[bytes]:
    """Random packets, and a marker after each share of them."""
    dice, made = random.Random(seed), []
    for number in range(N_PACKETS):
        family = dice.choice((4, 6))
        protocol = dice.choice((UDP, UDP, TCP, ICMP if family == 4 else ICMP6, 132))
        made.append(packet(dice, number, family, protocol))
        if number % SHARE == SHARE - 1:
            made.append(packet(dice, N_PACKETS + number, 4, MARKER))
    return made


def action(dice: random.Random, family: int) -> str:
    """What a filter does."""
    if dice.random() < 0.3:
        field = "ip dsfield" if family == 4 else "ip6 traffic_class"
        mark = f"action pedit ex munge {field} set {dice.randrange(1, 64) << 2} retain 0xfc"
        return mark + (" pipe action csum ip" if family == 4 else " pipe action pass")
    return f"action {dice.choice(('drop', 'drop', 'pass'))}"


def flower(dice: random.Random, family: int) -> str:
    """Its keys."""
    keys = []
    protocol = dice.choice((UDP, TCP, 0))
    if protocol:
        keys.append(f"ip_proto {NAMES[protocol]}")
        low = dice.randrange(50, 58)
        keys.append(dice.choice((f"dst_port {low}", f"src_port {low}", f"dst_port {low}-{low + 2}", "")))
    keys.append(dice.choice((f"dst_ip {address(dice, family, 'dst')}", f"src_ip {address(dice, family, 'src')}", "")))
    if dice.random() < 0.3:
        keys.append(f"ip_tos {dice.randrange(8) << 5:#x}/0xfc")
    return "flower " + " ".join(filter(None, keys))


def u32(dice: random.Random, family: int) -> str:
    """Its keys."""
    name, bits = ("ip", dice.choice((24, 31, 32))) if family == 4 else ("ip6", dice.choice((64, 127, 128)))
    role = dice.choice(("src", "dst"))
    keys = [f"match {name} {role} {address(dice, family, role)}/{bits}"]
    if family == 4 and dice.random() < 0.5:
        port = f"match ip dport {dice.randrange(50, 60)} 0xffff match u16 0 0x3fff at 6"
        keys.append(f"match ip protocol {dice.choice((UDP, TCP))} 0xff {port}")
    return "u32 " + " ".join(keys)


def filters(seed: int) -> list[str]:
    """Commands of tc -batch: some filters on the way in and out, none of which drops all."""
    dice, lines = random.Random(seed), []
    for device, side in ((port_name(0), "ingress"), (port_name(1), "egress")):
        lines.append(f"qdisc add dev {device} clsact")
        lines.append(f"filter add dev {device} {side} pref 1 protocol ip u32 match ip dst {MARKED}/32 action pass")
        for priority in range(2, 14):
            family = dice.choice((4, 6))
            what = dice.choice((flower, u32))(dice, family)
            kind = "ip" if family == 4 else "ipv6"
            lines.append(
                f"filter add dev {device} {side} pref {priority} protocol {kind} {what} {action(dice, family)}"
            )
        lines.append(f"filter add dev {device} {side} pref 99 protocol all matchall action pass")
    return lines


class Filtered:
    """Router and the two ends."""

    def __init__(self, kind: str) -> None:
        self.lab = Lab()
        self.router: Router = Dl3dRouter(self.lab, DEVICE) if kind == "dl3d" else KernelRouter(self.lab)
        ends = [End(self.lab.namespace(f"h{side}", silent=True), "eth0", HOST_MACS[side]) for side in range(2)]
        for side, end in enumerate(ends):
            self.lab.cable(self.router.end(side), end)
        self.router.start(2)
        for side in range(2):
            for address_ in (f"10.1.{side}.1/24", f"2001:db8:1:{side}::1/64"):
                self.router.namespace.ip("address", "add", address_, "dev", port_name(side), "nodad")
        for via in ("10.1.1.2", "2001:db8:1:1::2"):
            words = f"neighbour replace {via} lladdr {HOST_MACS[1]} dev {port_name(1)} nud permanent"
            self.router.namespace.ip(*words.split())
        self.router.namespace.ip("route", "add", "10.9.0.0/16", "via", "10.1.1.2")
        self.router.namespace.ip("-6", "route", "add", "2001:db8:9::/48", "via", "2001:db8:1:1::2")
        self.router.settle()
        self.near, self.far = Wire(ends[0]), Wire(ends[1])
        found = re.search(r"link/ether (\S+)", self.router.namespace.ip("link", "show", port_name(0)))
        assert found, "the port has a MAC address, which may be that of its device"
        self.gate = mac(found[1])

    def tc(self, lines: Sequence[str]) -> None:
        """Change filters; workers judge by them afterwards if they can."""
        for line in lines:
            self.router.namespace.run("tc", *line.split())
        self.router.settle()

    def named(self) -> list[dict[str, str]]:
        """What dl3d leaves to Linux."""
        assert isinstance(self.router, Dl3dRouter)
        found: list[dict[str, str]] = self.router.call("unsupported")["unsupported"]
        return found

    def fates(self, frames: Sequence[bytes], expected: Collection[int] = ()) -> dict[int, int]:
        """By the number of each packet that arrived, those expected included: its DSCP and ECN."""
        self.far.drain()
        found: dict[int, int] = {}
        for frame in frames:
            self.near.send(self.gate + frame[6:])
            if frame[12:14] == b"\x08\x00" and frame[23] == MARKER:
                number = int.from_bytes(frame[38:42])
                wait_until(lambda n=number: n in self._take(found), f"marker {number} arrives")  # type: ignore[misc]
        wait_until(lambda: set(expected) <= self._take(found).keys(), "what the kernel lets pass arrives")
        if isinstance(self.router, Dl3dRouter):
            self.router.closed_account()
        return self._take(found)

    def _take(self, found: dict[int, int]) -> dict[int, int]:
        for frame in self.far.drain():
            at = frame.find(b"tcmi")
            if at < 0:
                continue
            word = int.from_bytes(frame[14:18])
            tos = frame[15] if frame[12:14] == b"\x08\x00" else word >> 20 & 0xFF
            found[int.from_bytes(frame[at + 4 : at + 8])] = tos
        return found

    def close(self) -> None:
        """Stop the router, remove all namespaces."""
        self.near.close()
        self.far.close()
        self.router.close()
        self.lab.close()


@contextlib.contextmanager
def filtered(kind: str) -> Iterator[Filtered]:
    """Whatever happens, it is removed."""
    with contextlib.closing(Filtered(kind)) as made:
        yield made
        made.router.check()


STRANGE = "filter add dev p0 ingress pref 50 protocol ip flower ip_ttl 9 action drop"


def the_kernel_and_dl3d_judge_random_packets_alike() -> None:
    seeds = [random.SystemRandom().randrange(1 << 30) for _ in range(2)]
    fates: dict[str, list[dict[int, int]]] = {"kernel": [], "dl3d": []}
    for kind, found in fates.items():
        with filtered(kind) as made:
            for number, seed in enumerate(seeds):
                if number:
                    made.tc([f"qdisc delete dev {port_name(side)} clsact" for side in range(2)])
                made.tc(filters(seed))
                if kind == "dl3d":
                    wait_until(lambda made=made: not made.named(), "workers have the filters")  # type: ignore[misc]
                found.append(made.fates(packets(seed), fates["kernel"][number] if kind == "dl3d" else ()))
                if isinstance(made.router, Dl3dRouter):
                    drops = made.router.closed_account().drops
                    print(f"seed {seed}: {len(found[-1])} arrive; workers dropped {drops}")
                    assert drops.get("tc_dropped", 0) > 0, "workers judge, not Linux"
    for seed, kernel, dl3d in zip(seeds, fates["kernel"], fates["dl3d"], strict=True):
        wrong = {n: (kernel.get(n), dl3d.get(n)) for n in kernel | dl3d if kernel.get(n) != dl3d.get(n)}
        lines = "\n".join(filters(seed))
        assert not wrong, f"seed {seed}: number: (kernel, dl3d): {wrong}\n{lines}"
        assert 0 < len(kernel) < N_PACKETS, "some are dropped, some are not"


def what_is_not_understood_is_named_and_left_to_linux() -> None:
    frames = packets(1)
    with filtered("dl3d") as made:
        lines = filters(1)
        made.tc([*lines, STRANGE])
        wait_until(lambda: "filter flower pref 50 handle 0x1" in [row["what"] for row in made.named()], "it is named")
        rows = made.named()
        print(f"show unsupported: {rows}")
        assert rows[0]["where"] == "dev p0 ingress"
        assert "ip_ttl" in rows[0]["effect"]
        before = made.router.account().drops if isinstance(made.router, Dl3dRouter) else {}
        by_linux = made.fates(frames)
        assert isinstance(made.router, Dl3dRouter)
        assert made.router.closed_account().drops.get("tc_dropped", 0) == before.get("tc_dropped", 0)
        made.tc(["filter delete dev p0 ingress pref 50"])
        wait_until(lambda: not made.named(), "workers judge again")
        assert made.fates(frames, by_linux) == by_linux


RATE, BURST, MOST_BYTES = 1000, 40_000, 64  # bytes a second, bytes, no frame is longer
N_POLICED = 2400
POLICED = [
    # device, side, bytes of a packet that Linux does not count there, filters
    ("p0", "ingress", 14, ["matchall action police rate 8kbit burst 40000 conform-exceed drop/ok"]),
    ("p1", "egress", 0, ["matchall action police rate 8kbit burst 40000 drop"]),
    ("p1", "egress", -24, ["matchall action police rate 8kbit burst 40000 overhead 24 drop"]),
    # Two filters with one bucket.
    (
        "p0",
        "ingress",
        14,
        [
            "u32 match ip dst 10.9.0.0/23 action police rate 8kbit burst 40000 conform-exceed drop/pipe index 7",
            "u32 match ip dst 10.9.0.0/16 action police index 7",
        ],
    ),
]


def _policed_frames() -> list[bytes]:
    """Frames of one length, and a marker after each share of them."""
    dice, made = random.Random(9), []
    for number in range(N_POLICED):
        frame = packet(dice, number, 4, UDP)
        while frame[20:22] != bytes(2):  # Linux gets short fragments
            frame = packet(dice, number, 4, UDP)
        made.append(frame)
        if number % SHARE == SHARE - 1:
            made.append(packet(dice, N_POLICED + number, 4, MARKER))
    return made


def the_kernel_and_dl3d_police_alike() -> None:
    frames = _policed_frames()
    length = len(frames[0])
    assert length < MOST_BYTES
    for kind in ("kernel", "dl3d"):
        with filtered(kind) as made:
            for device, side, uncounted, policers in POLICED:
                start = f"filter add dev {device} {side} protocol ip pref"
                marker = f"{start} 1 u32 match ip dst {MARKED}/32 action pass"
                lines = [f"{start} {number} {text}" for number, text in enumerate(policers, 2)]
                made.tc([f"qdisc add dev {device} clsact", marker, *lines])
                if isinstance(made.router, Dl3dRouter):
                    wait_until(lambda made=made: not made.named(), "workers have the filters")  # type: ignore[misc]
                    before = made.router.closed_account().drops.get("police_red", 0)
                began = time.monotonic()
                passed = sum(number < N_POLICED for number in made.fates(frames))
                most = BURST + RATE * (time.monotonic() - began) + MOST_BYTES
                print(f"{kind} {device} {side}: {passed} of {N_POLICED} pass, {(length - uncounted) * passed} bytes")
                assert BURST - MOST_BYTES <= passed * (length - uncounted) <= most, (kind, device, side, policers)
                if isinstance(made.router, Dl3dRouter):
                    red = made.router.closed_account().drops.get("police_red", 0) - before
                    assert red == N_POLICED - passed, "workers police, not Linux"
                made.tc([f"qdisc delete dev {device} clsact"])
