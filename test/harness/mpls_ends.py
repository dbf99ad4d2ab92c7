"""dl3d with Linux as its control plane, and other ends of its tunnels with labels that are Linux alone. Runs in a guest.

a -- p0 [ dl3d ] p1 -- mid -- far -- b      mid is a router without tunnels; each way has addresses of its own on a and b
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from dl3.lab.namespace import End, Lab, Namespace
from harness.router import SETTINGS, Dl3dRouter
from harness.shell import ask, batch
from harness.wire import wait_until

DEVICE = "net_pcap{index},iface={name}"
MODULES = ("mpls_router", "mpls_iptunnel", "ip_gre", "ipip", "ip6_tunnel", "fou", "fou6")
FAMILIES = (4, 6)
CABLE_MTU = 1500
FOU = "encap fou encap-sport auto encap-dport 6635"
PLAIN6 = f"ip6tnl mode any encaplimit none {FOU} encap-udp6-csum"
PUSHED, POPPED = 100, 200  # the first labels of dl3d's packets and of those to it
CABLES = {  # by the number of their network: who has address 1 and who has 2
    0: ("router", "p0", "a", "a0"),
    1: ("router", "p1", "mid", "m0"),
    2: ("mid", "m1", "far", "f0"),
    3: ("far", "f1", "b", "b0"),
}


def on_cable(family: int, number: int, last: int) -> str:
    """An address of a cable."""
    return f"10.1.{number}.{last}" if family == 4 else f"2001:db8:1:{number}::{last}"


def _alone(address: str) -> str:
    return f"{address}/{128 if ':' in address else 32}"


@dataclass(frozen=True)
class Way:
    """From a to b and back: what the devices of both ends are, and what they add to a packet."""

    name: str
    number: int
    near: str
    far: str
    header: int  # bytes
    outer: int = 4

    @property
    def device(self) -> str:
        """Its name at both ends."""
        return f"t{self.number}"

    @property
    def mtu(self) -> int:
        """Of packets without labels."""
        return CABLE_MTU - self.header

    def host(self, side: str, family: int) -> str:
        """The address of a or b."""
        if side == "a":
            return on_cable(family, 0, 10 + self.number)
        return f"10.2.{self.number}.2" if family == 4 else f"2001:db8:2:{self.number}::2"

    def ends(self) -> tuple[str, str]:
        """The outer addresses: dl3d's, and the other one."""
        return on_cable(self.outer, 1, 1), on_cable(self.outer, 2, 2)


WAYS = {
    way.name: way
    for way in (
        Way("fou", 0, f"ipip mode mplsip {FOU}", f"ipip mode mplsip ttl inherit nopmtudisc {FOU}", 20 + 8 + 4),
        Way("fou6", 1, PLAIN6, PLAIN6, 40 + 8 + 4, 6),
        Way("gre", 2, "gre", "gre", 20 + 4 + 4),
    )
}


def _device(way: Way, at: str) -> Iterator[str]:
    """What makes an end of a way, and the routes that push labels."""
    near, far = way.ends()
    is_near = at == "router"
    words, local, remote = (way.near, near, far) if is_near else (way.far, far, near)
    yield f"link add {way.device} type {words} local {local} remote {remote}"
    yield f"link set {way.device} up"
    for family in FAMILIES:
        to = way.host("b" if is_near else "a", family)
        yield f"route add {_alone(to)} encap mpls {(PUSHED if is_near else POPPED) + way.number} dev {way.device}"


class MplsEnds:
    """All of the picture; close() removes it."""

    def __init__(self) -> None:
        self.lab = Lab()
        self.router = Dl3dRouter(self.lab, DEVICE)
        self.at = {name: self.lab.namespace(name) for name in ("a", "mid", "far", "b")}
        self.at["router"] = self.router.namespace
        try:
            self._lay()
            self._route()
            for way in WAYS.values():
                self._add(way)
            wait_until(self._is_served, "workers serve all devices and labels")
            self.router.settle()
        except BaseException:
            self.close()
            raise

    def __getitem__(self, name: str) -> Namespace:
        return self.at[name]

    def _end(self, name: str, device: str, mac: str) -> End:
        return self.router.end(int(device[1:])) if name == "router" else End(self.at[name], device, mac)

    def _lay(self) -> None:
        for number, (one, device, other, far) in CABLES.items():
            ends = [
                self._end(name, end, f"02:00:00:03:{number:02x}:{last:02x}")
                for last, (name, end) in enumerate(((one, device), (other, far)), 1)
            ]
            self.lab.cable(ends[0], ends[1])
        self.router.start(2)
        for number, (one, device, other, far) in CABLES.items():
            for last, (name, end) in enumerate(((one, device), (other, far)), 1):
                batch(self.at[name], [f"address add {on_cable(4, number, last)}/24 dev {end}"])
                batch(self.at[name], [f"address add {on_cable(6, number, last)}/64 dev {end} nodad"])

    def _route(self) -> None:
        self.router.namespace.run("modprobe", "-a", *MODULES)
        for name in ("mid", "far"):
            self.at[name].run("sysctl", "-qw", *(f"{key}={value}" for key, value in SETTINGS.items()))
        for name in ("router", "far"):
            self.at[name].run("sysctl", "-qw", "net.mpls.platform_labels=1000")
        for family, length in ((4, 24), (6, 64)):
            for name, to, gateway in (("router", 2, (1, 2)), ("far", 1, (2, 1))):
                line = f"route add {on_cable(family, to, 0)}/{length} via {on_cable(family, *gateway)}"
                batch(self.at[name], [line])
        for name in ("router", "far"):
            lines = [f"fou add port 6635 ipproto 137 {option}" for option in ("", "-6")]
            batch(self.at[name], lines)

    def _add(self, way: Way) -> None:
        for family in FAMILIES:
            a, b = way.host("a", family), way.host("b", family)
            batch(self.at["a"], [f"address add {_alone(a)} dev a0 {'nodad' if family == 6 else ''}"])
            batch(self.at["b"], [f"address add {_alone(b)} dev lo"])
            batch(self.at["a"], [f"route add {_alone(b)} via {on_cable(family, 0, 1)} src {a}"])
            batch(self.at["b"], [f"route add {_alone(a)} via {on_cable(family, 3, 1)} src {b}"])
            batch(self.at["far"], [f"route add {_alone(b)} via {on_cable(family, 3, 2)}"])
        for at, label in (("router", POPPED), ("far", PUSHED)):
            batch(self.at[at], _device(way, at))
            self.at[at].run("sysctl", "-qw", f"net.mpls.conf.{way.device}.input=1")
            batch(self.at[at], [f"route add {label + way.number} dev lo"], "-M")

    def _is_served(self) -> bool:
        labels = {one["label"] for one in self.router.call("labels")["labels"] if one["does"] != "linux"}
        wanted = {POPPED + way.number for way in WAYS.values()}
        return labels >= wanted and set(self.counters()) >= {way.device for way in WAYS.values()}

    def counters(self) -> dict[str, tuple[int, int]]:
        """Packets that workers have sent into each tunnel, and taken out of it."""
        listed = self.router.call("tunnels")["tunnels"]
        return {one["name"]: (one["tx_packets"], one["rx_packets"]) for one in listed}

    def learnt_mtu(self, way: Way, family: int) -> int:
        """What a has learnt of the path to b; the cable's MTU if it has learnt nothing."""
        text = ask(self.at["a"], "ip", "route", "get", way.host("b", family))
        found = re.search(r"mtu (\d+)", text)
        return int(found[1]) if found else CABLE_MTU

    def forget(self) -> None:
        """a and the router forget what they have learnt of paths."""
        for name in ("a", "router"):
            for family in ("-4", "-6"):
                self.at[name].ip(family, "route", "flush", "cache")

    def close(self) -> None:
        """Stop the router, remove all namespaces."""
        self.router.close()
        self.lab.close()
