"""Two routers with the same overlays, dl3d and the kernel alone: the same frames go in, the same have to come out.

p0, p1 [ br0 + vx10 ]    br0 has 10.0.50.1 and 2001:db8:a50::1       p4 -- out, 10.0.4.2
p2, p3 [ br1 + vx20 ]    vx30 is in no bridge, and has 10.0.30.1     p5, p6 -- all that leads to remote ends
"""

import contextlib
import json
import subprocess
from dataclasses import dataclass, field
from typing import Any

from dl3.lab.namespace import End, Lab
from harness.overlay_frames import MAGIC
from harness.overlay_marks import Marks, number_of
from harness.router import DEVICE, Dl3dRouter, KernelRouter, Router, port_name
from harness.shell import batch
from harness.wire import Wire, wait_until
from harness.wired import Account

BRIDGED, OUT, UNDER = (0, 1, 2, 3), 4, (5, 6)
N_LINKS = 7
PORTS = [port_name(link) for link in BRIDGED]
BRIDGES = {"br0": "02:00:00:00:05:01", "br1": "02:00:00:00:05:02"}
DEVICES = {"vx10": "02:00:00:00:10:01", "vx20": "02:00:00:00:20:01", "vx30": "02:00:00:00:30:01"}
LOCAL = {4: "192.0.2.1", 6: "2001:db8:f::1"}
N_ENDS = 5  # the last one has no route
ENDS = {4: [f"192.0.2.{11 + i}" for i in range(N_ENDS)], 6: [f"2001:db8:f::{11 + i}" for i in range(N_ENDS)]}
FAR_MAC = "02:00:00:03:00:{:02x}"  # at the other end of a cable
NOWHERE = ("10.0.0.0/8", "203.0.113.0/24")  # Linux limits errors about routes that it does not have
QUIET = (
    "net.ipv4.conf.all.send_redirects=0",
    "net.ipv4.conf.default.send_redirects=0",
    "net.ipv4.ip_local_port_range=32768 49151",
    "net.ipv4.icmp_msgs_per_sec=1000000",
    "net.ipv4.icmp_msgs_burst=1000000",
)


def gateway(family: int, link: int) -> str:
    """The next hop behind an underlay port."""
    return f"10.0.{link}.2" if family == 4 else f"2001:db8:a{link}::2"


def host_mac(host: int) -> str:
    """MAC address of a host, wherever it is."""
    return f"02:00:00:00:06:{host:02x}"


def _lines(n_hosts: int) -> list[str]:
    """Of `ip -batch`: all but VXLAN devices."""
    lines = ["link set lo up", *(f"route add blackhole {prefix}" for prefix in NOWHERE)]
    for bridge, mac in BRIDGES.items():
        lines += [f"link add {bridge} type bridge mcast_snooping 0", f"link set {bridge} address {mac} up"]
    for link in range(N_LINKS):
        lines.append(f"link set {port_name(link)} up")
    for name in PORTS:
        lines.append(f"link set {name} master {'br0' if name in PORTS[:2] else 'br1'}")
    for family, bits in ((4, 24), (6, 64)):
        flags = "nodad" if family == 6 else ""
        lines.append(f"address add {LOCAL[family]}/{32 if family == 4 else 128} dev lo {flags}")
        for link, name in ((OUT, "p4"), (5, "p5"), (6, "p6")):
            own = gateway(family, link)[:-1] + "1"
            lines.append(f"address add {own}/{bits} dev {name} {flags}")
            lines.append(
                f"neigh replace {gateway(family, link)} lladdr {FAR_MAC.format(link)} dev {name} nud permanent"
            )
        own = "10.0.50.1" if family == 4 else "2001:db8:a50::1"
        lines.append(f"address add {own}/{bits} dev br0 {flags}")
        for i, end in enumerate(ENDS[family][:-1]):
            lines.append(f"route add {end} via {gateway(family, UNDER[i % 2])}")
        for host in range(n_hosts):
            lines.append(
                f"neigh replace {host_address(family, 50, host)} lladdr {host_mac(host)} dev br0 nud permanent"
            )
    return lines


def host_address(family: int, net: int, host: int) -> str:
    """Of a host behind br0 (50) or vx30 (30)."""
    return f"10.0.{net}.{100 + host}" if family == 4 else f"2001:db8:a{net}::{100 + host}"


@dataclass
class Side:
    """One of both."""

    router: Router
    lab: Lab
    wires: list[Wire]
    marks: Marks
    got: list[list[bytes]] = field(default_factory=lambda: [[] for _ in range(N_LINKS)])

    @classmethod
    def build(cls, kind: str, n_hosts: int) -> "Side":
        """Without VXLAN devices."""
        lab = Lab()
        try:
            router: Router = Dl3dRouter(lab, DEVICE) if kind == "dl3d" else KernelRouter(lab)
            far = lab.namespace("far", silent=True)
            ends = [End(far, f"e{link}", FAR_MAC.format(link)) for link in range(N_LINKS)]
            for link, end in enumerate(ends):
                lab.cable(router.end(link), end)
            if isinstance(router, Dl3dRouter):
                router.start_privately(N_LINKS)
            else:
                router.start(N_LINKS)
            filters = [f"net.ipv4.conf.{port_name(link)}.rp_filter=0" for link in range(N_LINKS)]
            router.namespace.run("sysctl", "-qw", *QUIET, *filters)
            batch(router.namespace, _lines(n_hosts))
        except BaseException:
            lab.close()
            raise
        return cls(router, lab, [Wire(end) for end in ends], Marks(2 if kind == "dl3d" else 1))

    def run(self, program: str, line: str) -> bool:
        """One line of `ip` or `bridge`; whether Linux took it."""
        words = [program, "-n", self.router.namespace.name, *line.split()]
        return subprocess.run(words, capture_output=True, timeout=60).returncode == 0

    def show(self, program: str, *words: str) -> Any:
        """What one of them lists."""
        command = [program, "-n", self.router.namespace.name, "-json", "-details", *words]
        return json.loads(subprocess.run(command, capture_output=True, check=True, timeout=60).stdout or "[]")

    def send(self, link: int, frame: bytes) -> bool:
        """Whether the cable took it: not if its other end is down, or the frame too long."""
        try:
            self.wires[link].send(frame)
        except OSError:
            return False
        return True

    def collect(self) -> list[list[bytes]]:
        """What has come out of each port since begin()."""
        for link, wire in enumerate(self.wires):
            frames: list[bytes] = []
            with contextlib.suppress(OSError):  # told once after an end was down
                frames = wire.drain()
            self.got[link] = sorted(self.got[link] + [one for one in map(self.marks.comparable, frames) if one])
        return self.got

    def states(self) -> dict[str, Any]:
        """Of all devices: whether they forward."""
        rows = self.show("ip", "link", "show")
        found = {}
        for row in rows:
            port = row.get("linkinfo", {}).get("info_slave_data", {})
            found[row["ifname"]] = (row.get("master"), port.get("state"), "UP" in row["flags"], row["mtu"])
        return found

    def addresses(self) -> list[str]:
        """Where Linux has MAC addresses of hosts."""
        keys = ("mac", "ifname", "master", "flags", "dst", "port", "vni", "state")
        rows = self.show("bridge", "fdb", "show")
        rows = [row for row in rows if row["mac"].startswith(("00", "02:00:00:00:06"))]
        return sorted(str([row.get(key) for key in keys]) for row in rows)

    def close(self) -> None:
        """Stop it."""
        for wire in self.wires:
            wire.close()
        self.router.close()
        self.lab.close()


def _differing(ours: list[list[bytes]], theirs: list[list[bytes]]) -> list[str]:
    """What came out of only one of both."""
    rows = []
    for link, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        left = list(other)
        for frame in one:
            if frame in left:
                left.remove(frame)
            else:
                rows.append(f"only dl3d, p{link}, {number_of(frame)}: {frame.hex()}")
        rows += [f"only the kernel, p{link}, {number_of(frame)}: {frame.hex()}" for frame in left]
    return rows


@dataclass
class Overlaid:
    """dl3d, and the kernel alone."""

    sides: tuple[Side, Side]
    done: list[str] = field(default_factory=list)  # for messages
    sent: dict[int, str] = field(default_factory=dict)

    @classmethod
    def build(cls, n_hosts: int) -> "Overlaid":
        """Both; close them."""
        kernel = Side.build("kernel", n_hosts)
        try:
            return cls((Side.build("dl3d", n_hosts), kernel))
        except BaseException:
            kernel.close()
            raise

    def close(self) -> None:
        """Stop both."""
        for side in self.sides:
            side.close()

    @property
    def dl3d(self) -> Dl3dRouter:
        """The one that is."""
        router = self.sides[0].router
        assert isinstance(router, Dl3dRouter)
        return router

    def run(self, program: str, line: str) -> bool:
        """A line of `ip` or `bridge` on both, which take it or not; whether they did."""
        ours, theirs = (side.run(program, line) for side in self.sides)
        self.done.append(f"{program} {line}{'' if theirs else ' (refused)'}")
        assert ours == theirs, self.done[-1]
        return theirs

    def batch(self, lines: list[str]) -> None:
        """Lines of `ip -batch` for both, of which the same ones fail."""
        ours, theirs = (batch(side.router.namespace, lines, may_fail=True) for side in self.sides)
        assert ours == theirs, (lines, ours, theirs)

    def settle(self) -> None:
        """Wait until ports forward again, both Linuxes have the same addresses, and workers what Linux has."""
        found: list[Any] = []

        def is_same() -> bool:
            found[:] = [(side.states(), side.addresses()) for side in self.sides]
            is_up = all(row[1] in (None, "forwarding") for row in found[1][0].values() if row[2])
            return is_up and {**found[0][0], "lo": 0} == {**found[1][0], "lo": 0} and found[0][1] == found[1][1]

        try:
            wait_until(is_same, "both Linuxes had the same addresses")
        except AssertionError as error:
            ours, theirs = (set(addresses) | {str(states)} for states, addresses in found)
            raise AssertionError(f"dl3d {ours - theirs}, the kernel {theirs - ours}; {self.done[-20:]}") from error
        self.dl3d.settle()

    def send(self, frames: list[tuple[int, bytes]]) -> Account:
        """Send frames, each on its link, on both; the same ones come out at the same ports. Where they went."""
        before = self.dl3d.account()
        n_sent = []
        for side in self.sides:
            side.got = [[] for _ in side.wires]
            n_sent.append(sum([side.send(link, frame) for link, frame in frames]))
        self.sent = {number_of(frame): f"on p{link}: {frame.hex()}" for link, frame in frames if MAGIC in frame}

        def is_same() -> bool:
            ours, theirs = (side.collect() for side in self.sides)
            account = self.dl3d.account()
            return ours == theirs and account.is_closed and account.received >= before.received + n_sent[0]

        try:
            wait_until(is_same, "the same frames had come out of both")
        except AssertionError as error:
            raise AssertionError(self._explain()) from error
        for side in self.sides:
            assert not side.marks.wrong, f"{side.router.name}: {side.marks.wrong[:3]}; {self.done[-20:]}"
        return self.dl3d.account().since(before)

    def _explain(self) -> str:
        ours, theirs = (side.got for side in self.sides)
        rows = _differing(ours, theirs)
        numbers = {int(row.split(", ")[2].split(":")[0]) for row in rows}
        sent = [f"{number} {self.sent.get(number, 'earlier')}" for number in sorted(numbers)]
        left = [
            f"{row['what']}, {row['where']}: {row['effect']}" for row in self.dl3d.call("unsupported")["unsupported"]
        ]
        what = "\n".join([*rows[:12], *sent[:6], *self.done[-20:], *left])
        return f"{len(rows)} differ:\n{what}\n{self.dl3d.account()}"
