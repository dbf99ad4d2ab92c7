"""A router of tunnels between two hosts, Linux alone or dl3d with it: the same packets go in, one by one, on one side.

h0 -- p0 [ router ] p1 -- h1      all remote ends of tunnels are behind h1
"""

import json
import struct
from collections.abc import Callable, Collection
from typing import Any

from dl3.lab.namespace import End, Lab, Namespace
from harness.frames import IP, UDP, IPv6, Packet, Raw
from harness.router import Dl3dRouter, KernelRouter, Router, port_name
from harness.shell import batch
from harness.wire import Wire, wait_until

DEVICE = "net_pcap{index},iface={name}"
HOST_MAC = "02:00:00:01:{:02x}:02"
HOSTS = [{4: f"10.1.{side}.2", 6: f"2001:db8:1:{side}::2"} for side in range(2)]
OWN = [{4: f"10.1.{side}.1", 6: f"2001:db8:1:{side}::1"} for side in range(2)]
MARK = b"the mark"
TYPES = {4: 0x0800, 6: 0x86DD}  # by the first four bits; others are of labels below 262144


def packet(
    source: str, to: str, ttl: int = 64, tos: int = 0, payload: bytes = b"some bytes of data", **more: Any
) -> Packet:
    """A UDP packet."""
    if ":" in to:
        return IPv6(src=source, dst=to, hlim=ttl, tc=tos) / UDP(sport=1024, dport=53) / Raw(payload)
    return IP(src=source, dst=to, ttl=ttl, tos=tos, **more) / UDP(sport=1024, dport=53) / Raw(payload)


def comparable(sent: bytes | None) -> bytes | None:
    """What must be equal of a frame: all but what each sender chooses (IPv4 id, flow label, UDP source port), and sums of it."""
    if sent is None:
        return None
    found = bytearray(sent)
    if found[12:14] == b"\x88\x47":
        return sent
    if found[12:14] == b"\x08\x00":
        found[18:20] = found[24:26] = b"\0\0"
        l4, protocol = 34, found[23]
    else:
        found[15:18] = bytes([found[15] & 0xF0, 0, 0])
        l4, protocol = 54, found[20]
    if protocol == 17:
        found[l4 : l4 + 2] = b"\0\0"
        found[l4 + 6 : l4 + 8] = b"\1\1" if any(found[l4 + 6 : l4 + 8]) else b"\0\0"
    return bytes(found)


class Tunnelled:
    """Router and hosts; close() removes everything."""

    def __init__(self, kind: str, devices: Collection[str], configure: Callable[[Namespace], None]) -> None:
        self.lab, self.devices = Lab(), devices
        self.router: Router = Dl3dRouter(self.lab, DEVICE) if kind == "dl3d" else KernelRouter(self.lab)
        hosts = [self.lab.namespace(f"h{side}", silent=True) for side in range(2)]
        ends = [End(host, "eth0", HOST_MAC.format(side)) for side, host in enumerate(hosts)]
        for side, end in enumerate(ends):
            self.lab.cable(self.router.end(side), end)
        self.router.start(2)
        self.wires = [Wire(end) for end in ends]
        self.macs = [self._mac(port_name(side)) for side in range(2)]
        self._configure()
        configure(self.router.namespace)
        self.settle()

    def _mac(self, device: str) -> bytes:
        (link,) = json.loads(self.router.namespace.ip("-json", "link", "show", "dev", device))
        return bytes.fromhex(link["address"].replace(":", ""))

    def _configure(self) -> None:
        router = self.router.namespace
        for side in range(2):
            device = port_name(side)
            for family, length in ((4, 24), (6, 64)):
                batch(
                    router, [f"address add {OWN[side][family]}/{length} dev {device} {'nodad' if family == 6 else ''}"]
                )
                far = HOSTS[side][family]
                batch(router, [f"neighbour replace {far} lladdr {HOST_MAC.format(side)} dev {device} nud permanent"])
        batch(router, [f"route add 192.0.2.0/24 via {HOSTS[1][4]}", f"route add 2001:db8:2::/64 via {HOSTS[1][6]}"])

    def settle(self) -> None:
        """Wait until workers have all devices and ports."""
        if isinstance(self.router, Dl3dRouter):
            router = self.router
            wait_until(lambda: _served(router) >= set(self.devices), "workers serve all devices")
        self.router.settle()

    def account(self) -> str:
        """Where packets went, for messages."""
        return str(self.router.account()) if isinstance(self.router, Dl3dRouter) else "in the kernel"

    def _send(self, side: int, inside: bytes) -> None:
        """Workers do not keep the order of packets of tunnels and others that they receive at once."""
        before = self._received()
        source = bytes.fromhex(HOST_MAC.format(side).replace(":", ""))
        self.wires[side].send(self.macs[side] + source + struct.pack("!H", TYPES.get(inside[0] >> 4, 0x8847)) + inside)
        if isinstance(self.router, Dl3dRouter):
            wait_until(lambda: self._received() > before, f"{inside.hex()} has been received")

    def _received(self) -> int:
        return self.router.account().received if isinstance(self.router, Dl3dRouter) else 0

    def pass_through(self, side: int, packets: list[bytes]) -> list[bytes | None]:
        """For each packet from a side, what leaves on the other one; None: nothing."""
        other = 1 - side
        mark = bytes(packet(HOSTS[side][4], HOSTS[other][4], payload=MARK))
        found: list[bytes | None] = []
        self.wires[other].drain()
        for one in packets:
            self._send(side, one)
            got: list[bytes] = []
            for n_marks in (1, 2):  # Linux takes packets out of tunnels after what it has received with them
                self._send(side, mark)
                while sum(MARK in left for left in got) < n_marks:
                    left = self.wires[other].receive(60.0)
                    assert left, f"the mark after {one.hex()} is lost: {self.account()}"
                    if left[6:12] == self.macs[other] and not _is_noise(left):
                        got.append(left[:6] + bytes(6) + left[12:])
            got = [left for left in got if MARK not in left]
            assert len(got) <= 1, one.hex()
            found.append(got[0] if got else None)
        return found

    def rx_packets(self) -> dict[str, int]:
        """What Linux's own devices have received."""
        links = json.loads(self.router.namespace.ip("-json", "-statistics", "link"))
        return {link["ifname"]: link["stats64"]["rx"]["packets"] for link in links if link["ifname"] in self.devices}

    def close(self) -> None:
        """Stop the router, remove all namespaces."""
        for wire in self.wires:
            wire.close()
        self.router.close()
        self.lab.close()


def _is_noise(left: bytes) -> bool:
    """Linux solicits routers and reports groups on its devices: to groups, alone or in a tunnel."""
    is_known = left[12:14] in (b"\x08\x00", b"\x86\xdd", b"\x88\x47")
    return not is_known or any(kind in left for kind in (b"\xff\x02" + bytes(11), b"\xff\x02" + bytes(13)))


def _served(router: Dl3dRouter) -> set[str]:
    return {tunnel["name"] for tunnel in router.call("tunnels")["tunnels"]}


def compared(pair: tuple[Tunnelled, Tunnelled], side: int, named: list[tuple[str, bytes]]) -> list[bytes | None]:
    """What leaves the kernel, for each named packet from a side: the same as leaves the workers."""
    packets = [one for _, one in named]
    wanted, found = (router.pass_through(side, packets) for router in pair)
    wrong = [
        (name, f"{name}: in {one.hex()}\nkernel {a.hex() if a else None}\ndl3d   {b.hex() if b else None}")
        for (name, one), a, b in zip(named, wanted, found, strict=True)
        if comparable(a) != comparable(b)
    ]
    names, details = [name for name, _ in wrong], [detail for _, detail in wrong]
    assert not wrong, f"{len(wrong)} of {len(wanted)} differ: {names}\n" + "\n".join(details[:12])
    return wanted


def check_sent(kernel: Tunnelled, workers: Tunnelled, named: list[tuple[str, bytes]]) -> None:
    """Workers send all of these packets of h0, each named by its device, as the kernel does."""
    assert isinstance(workers.router, Dl3dRouter)
    before = workers.router.closed_account()
    wanted = compared((kernel, workers), 0, named)
    after = workers.router.closed_account()
    assert all(wanted), [name for (name, _), one in zip(named, wanted, strict=True) if one is None]
    by_workers = (after.sent - after.injected) - (before.sent - before.injected)
    assert by_workers >= 2 * len(named), "workers sent them and the marks, not Linux"
    counted = {tunnel["name"]: tunnel["tx_packets"] for tunnel in workers.router.call("tunnels")["tunnels"]}
    assert all(counted[name] >= sum(one == name for one, _ in named) for name in workers.devices), counted


def check_taken(kernel: Tunnelled, workers: Tunnelled, named: list[tuple[str, bytes]]) -> None:
    """Workers take these packets of h1 out of tunnels, or refuse them, as the kernel does."""
    assert isinstance(workers.router, Dl3dRouter)
    seen, before = workers.rx_packets(), workers.router.closed_account()
    wanted = compared((kernel, workers), 1, named)
    after = workers.router.closed_account()
    assert sum(one is not None for one in wanted) > len(named) // 2
    by_workers = (after.sent - after.injected) - (before.sent - before.injected)
    assert by_workers >= sum(one is not None for one in wanted) + len(named), "workers forwarded them, not Linux"
    assert workers.rx_packets() == seen, "Linux has not received what workers took out"
    counted = {tunnel["name"]: tunnel["rx_packets"] for tunnel in workers.router.call("tunnels")["tunnels"]}
    assert all(counted[name] >= 2 for name in workers.devices), counted
