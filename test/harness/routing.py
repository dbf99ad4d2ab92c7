"""A router with FRR between two BIRD neighbours: BGP with BFD, OSPF and OSPFv3 on both cables, both families.

    n0 -- p0 [ router: FRR ] p1 -- n1       pN has 10.0.N.1/24 and 2001:db8:aN::1/64, nN the .2; BFD at 300 ms x 3

Each neighbour announces a network behind it (20.N.0.0/16, 2001:db8:2N::/48) by BGP, and its loopback address,
LOOPBACK, by OSPF.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Self

from dl3.lab.daemons import Bird, Frr
from dl3.lab.namespace import End, Lab, Namespace
from harness.router import port_name

N_NEIGHBOURS = 2
OSPF_DEAD_S = 8.0  # also in OSPFD and BIRD below; the BGP hold time is 9 s
LOOPBACK = {4: "10.9.9.1{}", 6: "2001:db8:99::1{}"}

ZEBRA = "ip nht resolve-via-default"
BGPD = """
router bgp 65000
 bgp router-id 10.9.9.100
 no bgp ebgp-requires-policy
 timers bgp 3 9
 neighbor n peer-group
 neighbor n timers connect 1
{bfd} neighbor 10.0.0.2 remote-as 65001
 neighbor 10.0.0.2 peer-group n
 neighbor 10.0.1.2 remote-as 65002
 neighbor 10.0.1.2 peer-group n
 neighbor 2001:db8:a0::2 remote-as 65001
 neighbor 2001:db8:a0::2 peer-group n
 neighbor 2001:db8:a1::2 remote-as 65002
 neighbor 2001:db8:a1::2 peer-group n
 address-family ipv4 unicast
  no neighbor 2001:db8:a0::2 activate
  no neighbor 2001:db8:a1::2 activate
 exit-address-family
 address-family ipv6 unicast
  neighbor 2001:db8:a0::2 activate
  neighbor 2001:db8:a1::2 activate
 exit-address-family
"""
OSPFD = """
interface p0
 ip ospf area 0
 ip ospf hello-interval 1
 ip ospf dead-interval 8
 ip ospf network point-to-point
interface p1
 ip ospf area 0
 ip ospf hello-interval 1
 ip ospf dead-interval 8
 ip ospf network point-to-point
router ospf
 ospf router-id 10.9.9.100
"""
OSPF6D = (
    OSPFD.replace("ip ospf area", "ipv6 ospf6 area")
    .replace("ip ospf", "ipv6 ospf6")
    .replace("router ospf\n ospf router-id", "router ospf6\n ospf6 router-id")
)
BIRD = """
router id 10.9.9.1{n};
protocol device {{ scan time 1; }}
protocol direct {{ ipv4; ipv6; interface "lo"; }}
protocol kernel {{ ipv4 {{ export all; import none; }}; }}
protocol kernel {{ ipv6 {{ export all; import none; }}; }}
protocol bfd {{ interface "*" {{ interval 300 ms; multiplier 3; }}; }}
protocol static s4 {{ ipv4; route 20.{n}.0.0/16 blackhole; {include4} }}
protocol static s6 {{ ipv6; route 2001:db8:2{n}::/48 blackhole; }}
template bgp up {{
  local as {asn}; neighbor as 65000; bfd {bfd}; hold time 9; keepalive time 3;
  connect delay time 1; connect retry time 1; error wait time 1, 2;
}}
protocol bgp b4 from up {{ neighbor 10.0.{n}.1; ipv4 {{ import all; export where source = RTS_STATIC; }}; }}
protocol bgp b6 from up {{ neighbor 2001:db8:a{n}::1; ipv6 {{ import all; export where source = RTS_STATIC; }}; }}
protocol ospf v2 o4 {{ ipv4 {{ import all; export none; }}; area 0 {{
  interface "eth0" {{ type pointopoint; hello 1; dead 8; }}; interface "lo" {{ stub; }}; }}; }}
protocol ospf v3 o6 {{ ipv6 {{ import all; export where source = RTS_DEVICE; }}; area 0 {{
  interface "eth0" {{ type pointopoint; hello 1; dead 8; }}; }}; }}
"""


@dataclass(frozen=True)
class Session:
    """One session as reported by FRR: whether it is up, and a mark that changes when it goes down or comes up.

    The mark is between two values: that of OSPFv3 is a time, in whole seconds of FRR, some time before it is read here.
    """

    up: bool
    least: float
    most: float

    @classmethod
    def counted(cls, up: bool, changes: int) -> "Session":
        """The mark is a number of changes."""
        return cls(up, changes, changes)

    def is_same(self, before: "Session") -> bool:
        """Whether it may have been up since then."""
        return self.up and before.up and self.least <= before.most and before.least <= self.most


def seconds_of(clock: str) -> int:
    """00:01:02 in seconds."""
    hours, minutes, seconds = (int(part) for part in clock.split(":"))
    return 3600 * hours + 60 * minutes + seconds


class Place(Protocol):
    """The interface of a router: where `ip` and daemons run, and where cables end."""

    @property
    def namespace(self) -> Namespace:
        """Where daemons of the router run."""

    def end(self, link: int) -> End:
        """The end of the cable of port p0, p1..."""


class Routing:
    """Neighbours around a router whose cables are not connected yet."""

    def __init__(self, lab: Lab, router: Place) -> None:
        self.router = router
        self.neighbours = [self._neighbour(lab, number) for number in range(N_NEIGHBOURS)]
        self.birds: list[Bird] = []
        self._n_sessions = 0
        self.frr: Frr | None = None

    def _neighbour(self, lab: Lab, number: int) -> Namespace:
        made = lab.namespace(f"n{number}")
        lab.cable(self.router.end(number), End(made, "eth0", f"02:00:00:01:{number:02x}:02"))
        for device, address in (
            ("eth0", f"10.0.{number}.2/24"),
            ("eth0", f"2001:db8:a{number}::2/64"),
            ("lo", LOOPBACK[4].format(number) + "/32"),
            ("lo", LOOPBACK[6].format(number) + "/128"),
        ):
            made.ip("address", "add", address, "dev", device)
        return made

    def start(self, routes: str = "", has_bfd: bool = True) -> None:
        """The router runs: addresses on its ports, all daemons. n0 also announces `routes`."""
        self._n_sessions = 12 if has_bfd else 8
        for number in range(N_NEIGHBOURS):
            for address in (f"10.0.{number}.1/24", f"2001:db8:a{number}::1/64"):
                self.router.namespace.ip("address", "add", address, "dev", port_name(number))
        bgpd = BGPD.replace("{bfd}", " neighbor n bfd\n" if has_bfd else "")
        self.frr = Frr(
            self.router.namespace, {"zebra": ZEBRA, "bgpd": bgpd, "ospfd": OSPFD, "ospf6d": OSPF6D, "bfdd": ""}
        )
        for number, namespace in enumerate(self.neighbours):
            include = '\ninclude "@FOLDER@/routes.conf";\n' if not number and routes else ""
            text = BIRD.format(n=number, bfd="on" if has_bfd else "off", asn=65001 + number, include4=include)
            self.birds.append(Bird(namespace, text, {"routes.conf": routes} if include else None))

    def show(self, words: str) -> Any:
        """FRR's reply to a show command."""
        assert self.frr
        return self.frr.show(words)

    def sessions(self) -> Mapping[str, Session]:
        """All sessions: BGP by neighbour address, BFD, OSPF and OSPFv3 by interface."""
        found = {}
        for family in ("ipv4", "ipv6"):
            for peer, reported in self.show(f"bgp {family} unicast summary").get("peers", {}).items():
                up = reported["state"] == "Established" and reported["pfxRcd"] > 0
                found[f"bgp {peer}"] = Session.counted(up, reported["connectionsDropped"])
        for peer in self.show("bfd peers counters"):
            up = peer["session-up"] > peer["session-down"]
            found[f"bfd {peer['peer']}"] = Session.counted(up, peer["session-down"])
        for neighbour, reported in self.show("ip ospf neighbor detail")["neighbors"].items():
            up = "Full" in reported[0]["nbrState"]
            found[f"ospf {neighbour}"] = Session.counted(up, reported[0]["stateChangeCounter"])
        begin_s = time.monotonic()
        neighbours = self.show("ipv6 ospf6 neighbor")["neighbors"]
        end_s = time.monotonic()
        for reported in neighbours:
            seconds = seconds_of(reported["duration"])
            up = reported["state"] == "Full"
            found[f"ospf6 {reported['interfaceName']}"] = Session(up, begin_s - seconds - 1, end_s - seconds)
        return found

    def are_up(self) -> bool:
        """Four sessions of BGP and of BFD, two of OSPF and of OSPFv3."""
        found = self.sessions()
        return len(found) == self._n_sessions and all(session.up for session in found.values())

    def flapped(self, before: Mapping[str, Session]) -> list[str]:
        """Sessions that have changed."""
        now = self.sessions()
        return [name for name, session in before.items() if name not in now or not now[name].is_same(session)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop all daemons."""
        for daemons in (*self.birds, *([self.frr] if self.frr else [])):
            daemons.close()
