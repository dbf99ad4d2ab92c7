"""A router with one end of a VXLAN, the kernel alone or dl3d, and a Linux host with the other end.

h0 -- p0 [ br0 + vxlan10 ] p1 -- peer      VNI 10: br0 10.0.5.1, h0 10.0.5.2, peer 10.0.5.11
                         ] p2 -- out       10.0.2.2, routed to VNI 10 by br0
The ends of the VXLAN are on lo; all MTUs are 1500, so packets of 1500 bytes are too long for it.
"""

import contextlib
import socket
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Self

from dl3.lab.namespace import End, Lab
from dl3.lab.tables import ones_sum
from harness.network import FAMILIES, Host, length, network
from harness.router import Dl3dRouter, KernelRouter, Router, port_name
from harness.shell import batch, ping
from harness.wire import Wire, wait_until

LOCAL = {4: "192.0.2.1", 6: "2001:db8:f::1"}
REMOTE = {4: "192.0.2.11", 6: "2001:db8:f::11"}
VNI, UDP_PORT = 10, 4789
SOURCE_PORTS = range(40000, 50000)
OUTER_BYTES = {4: 20 + 8 + 8 + 14, 6: 40 + 8 + 8 + 14}  # from the outer IP header to the inner one
MTU = 1500


@dataclass(frozen=True)
class Outer:
    """What is in front of a frame in VXLAN."""

    tos: int
    ttl: int
    has_df: bool
    source_port: int
    has_checksum: bool
    inner: bytes

    @classmethod
    def of(cls, frame: bytes) -> Self | None:
        """None: it is no whole packet to the UDP port. AssertionError if a length or a sum is wrong."""
        kind, ip = frame[12:14], frame[14:]
        if kind == b"\x08\x00" and ip[9] == socket.IPPROTO_UDP and not struct.unpack("!H", ip[6:8])[0] & 0x3FFF:
            assert ones_sum(ip[:20]) == 0xFFFF
            tos, ttl, has_df, ends = ip[1], ip[8], bool(ip[6] & 0x40), ip[12:20]
            udp = ip[20 : struct.unpack("!H", ip[2:4])[0]]
        elif kind == b"\x86\xdd" and ip[6] == socket.IPPROTO_UDP:
            tos, ttl, has_df, ends = struct.unpack("!H", ip[:2])[0] >> 4 & 0xFF, ip[7], False, ip[8:40]
            udp = ip[40 : 40 + struct.unpack("!H", ip[4:6])[0]]
        else:
            return None
        source, to, n_bytes, checksum = struct.unpack("!4H", udp[:8])
        if to != UDP_PORT:
            return None
        assert n_bytes == len(udp)
        assert udp[8:16] == struct.pack("!II", 0x08000000, VNI << 8)
        assert not checksum or ones_sum(_even(ends + struct.pack("!HH", 17, n_bytes) + udp)) == 0xFFFF
        return cls(tos, ttl, has_df, source, bool(checksum), udp[16:])


def _even(data: bytes) -> bytes:
    return data + bytes(len(data) % 2)


@dataclass(frozen=True)
class Kind:
    """Which router, and what is between it and the other end."""

    router: str
    family: int  # of outer packets
    has_checksum: bool

    def __str__(self) -> str:
        return f"{self.router}, IPv{self.family}{'' if self.has_checksum else ' without checksums'}"

    def device(self, here: str, words: str = "") -> list[str]:
        """The lines of `ip -batch` that make an end of the VXLAN."""
        sums = {4: ("noudpcsum", "udpcsum"), 6: ("udp6zerocsumtx udp6zerocsumrx", "noudp6zerocsumtx noudp6zerocsumrx")}
        ports = f"dstport {UDP_PORT} srcport {SOURCE_PORTS.start} {SOURCE_PORTS.stop}"
        chosen = sums[self.family][self.has_checksum]
        return [f"link add vxlan10 type vxlan id {VNI} local {here} {ports} {chosen} {words}", "link set vxlan10 up"]


class Vteps:
    """The picture above; close() removes it."""

    def __init__(self, kind: Kind) -> None:
        self.kind, self.lab = kind, Lab()
        self.router: Router = Dl3dRouter(self.lab) if kind.router == "dl3d" else KernelRouter(self.lab)
        self.h0 = Host("h0", self.lab.namespace("h0"), 5, 2)
        self.out = Host("out", self.lab.namespace("out"), 2, 2)
        self.peer = Host("peer", self.lab.namespace("peer"), 5, 11, "vxlan10")
        self.wires: dict[str, Wire] = {}
        try:
            self._build()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _build(self) -> None:
        ends = (self.h0.end, self.underlay, self.out.end)
        for link, end in enumerate(ends):
            self.lab.cable(self.router.end(link), end)
        self.router.start(len(ends))
        self._configure_peer()
        for host in (self.h0, self.out):
            lines = [f"address add {host.address(one)}/{length(one)} dev eth0" for one in FAMILIES]
            lines += [f"route add default via {network(one, host.link, 1)}" for one in FAMILIES]
            batch(host.namespace, lines)
        self._configure_router()
        inside = End(self.peer.namespace, "vxlan10", self.peer.mac)
        self.wires = {"h0": self.h0.wire(), "out": self.out.wire(), "outer": Wire(self.underlay), "peer": Wire(inside)}
        for host in (self.h0, self.out):
            for family in FAMILIES:
                self.meet(host, self.peer, family)
        self.router.settle()

    @property
    def underlay(self) -> End:
        """The peer's end of the cable."""
        return End(self.peer.namespace, "eth0", "02:00:00:01:01:02")

    def _configure_peer(self) -> None:
        family = self.kind.family
        lines = self.kind.device(REMOTE[family], f"remote {LOCAL[family]}")
        lines += [f"link set vxlan10 address {self.peer.mac} mtu {MTU}"]
        for one in FAMILIES:
            lines.append(f"address add {network(one, 1, 2)}/{length(one)} dev eth0")
            lines.append(f"address add {REMOTE[one]} dev lo")
            lines.append(f"route add {LOCAL[one]} via {network(one, 1, 1)}")
            lines.append(f"address add {self.peer.address(one)}/{length(one)} dev vxlan10")
            lines.append(f"route add {network(one, 2, 0)}/{length(one)} via {network(one, 5, 1)}")
        batch(self.peer.namespace, lines)

    def _configure_router(self) -> None:
        family = self.kind.family
        lines = [f"link set {port_name(link)} up" for link in range(3)]
        lines += ["link add br0 up type bridge mcast_snooping 0", f"link set {port_name(0)} master br0"]
        for one in FAMILIES:
            lines += [f"address add {network(one, link, 1)}/{length(one)} dev {port_name(link)}" for link in (1, 2)]
            lines.append(f"address add {network(one, 5, 1)}/{length(one)} dev br0")
            lines.append(f"address add {LOCAL[one]} dev lo")
            lines.append(f"route add {REMOTE[one]} via {network(one, 1, 2)}")
        batch(self.router.namespace, [*lines, *self.kind.device(LOCAL[family]), "link set vxlan10 master br0"])
        flood = ("00:00:00:00:00:00", "dev", "vxlan10", "dst", REMOTE[family])
        self.router.namespace.run("bridge", "fdb", "append", *flood)
        shown = ("-d", "link", "show")
        wait_until(lambda: self.router.namespace.ip(*shown).count("state forwarding") == 2, "both ports forwarded")
        self.router.settle()

    def meet(self, source: Host, target: Host, family: int) -> None:
        """They reach each other, and everything between them is known."""
        address = target.address(family)
        what = f"{source.name} reached {target.name} by IPv{family}"
        wait_until(lambda: bool(ping(source.namespace, address, count=1).received), what)

    def port_mac(self, link: int) -> str:
        """MAC address of a port of the router: the underlay's is 1."""
        return self.router.namespace.run("cat", f"/sys/class/net/{port_name(link)}/address").strip()

    @contextlib.contextmanager
    def set_to(self, words: str, usual: str) -> Iterator[None]:
        """The router's device with other settings."""
        batch(self.router.namespace, [f"link set vxlan10 type vxlan {words}"])
        self.router.settle()
        yield
        batch(self.router.namespace, [f"link set vxlan10 type vxlan {usual}"])
        self.router.settle()

    @contextlib.contextmanager
    def counted(self, workers: int = 0, linux: int = 0) -> Iterator[None]:
        """In the block, dl3d's workers forward at least so many packets, and Linux gets so many from them."""
        dl3d = self.router if isinstance(self.router, Dl3dRouter) else None
        before = dl3d.closed_account() if dl3d else None
        yield
        if dl3d and before:
            since = dl3d.closed_account().since(before)
            assert since.sent - since.injected >= workers, since
            assert since.punted >= linux, since

    def drain(self) -> None:
        """Forget what has come out so far."""
        for wire in self.wires.values():
            wire.drain()

    def gather(self, name: str, is_wanted: Callable[[bytes], bool], n: int) -> list[bytes]:
        """The next frames of this kind at one end; wait for so many."""
        found: list[bytes] = []

        def is_out() -> bool:
            found.extend(filter(is_wanted, self.wires[name].drain()))
            return len(found) >= n

        wait_until(is_out, f"{n} frames came out at {name}")
        return found

    def close(self) -> None:
        """Stop the router, remove all namespaces."""
        for wire in self.wires.values():
            wire.close()
        self.router.close()
        self.lab.close()
