"""Two ports in a bond, or under another unsupported master: the router is the kernel, then dl3d. Runs in a guest.

near -- p0 [ router ] p1 == eth1 far      p1 and p2 are bond0 there, eth1 and eth2 are bond0 here
                    [ router ] p2 == eth2

Addresses and routes are on the bond: 10.2.0.0/24, and 10.9.0.0/16 behind far. near is 10.1.0.2.
"""

import contextlib
import json
from collections.abc import Iterator

import pytest
from harness.frames import Ether, ip4
from harness.network import Host
from harness.probes import arrives
from harness.router import Dl3dRouter, KernelRouter, Router, port_name
from harness.shell import batch, ping
from harness.wire import wait_until

from dl3.lab.namespace import Lab, Namespace

DEVICE = "net_pcap{index},iface={name}"  # see tagged.py
MASTER = "interface in a bridge, bond or similar device"
BONDED = (1, 2)
MOMENT_S = 0.5
LACP = "802.3ad lacp_rate fast"
PATIENCE_S = 30.0  # LACP sends at most once per second
READY = 0x3C  # LACP: aggregated, in sync, collecting, distributing (IEEE 802.1AX, 6.4.2.3)
BEHIND = {4: "10.9.0.1", 6: "2001:db8:9::1"}


def address(network: int, number: int, family: int) -> str:
    """The address without its prefix length."""
    return f"10.{network}.0.{number}" if family == 4 else f"2001:db8:{network}::{number}"


def own(network: int, number: int, device: str) -> list[str]:
    """Lines for `ip -batch` that assign a device its addresses."""
    lengths = {4: 24, 6: 64}
    return [f"address add {address(network, number, family)}/{lengths[family]} dev {device}" for family in lengths]


class Bonded:
    """Router and hosts; close() removes everything."""

    def __init__(self, kind: str) -> None:
        self.lab = Lab()
        self.router: Router = Dl3dRouter(self.lab, DEVICE) if kind == "dl3d" else KernelRouter(self.lab)
        self.near, self.far = self.lab.namespace("near"), self.lab.namespace("far")
        self.lab.cable(self.router.end(0), self.host(0).end)
        for link in BONDED:
            self.lab.cable(self.router.end(link), self.host(link).end)
        self.router.start(1 + len(BONDED))
        self.ip(*own(1, 1, port_name(0)))
        batch(self.near, [*own(1, 2, "eth0"), *(f"route add default via {address(1, 1, family)}" for family in (4, 6))])
        batch(self.far, [f"address add {BEHIND[4]}/32 dev lo", f"address add {BEHIND[6]}/128 dev lo"])

    def host(self, link: int) -> Host:
        """The far end of a port's cable."""
        return Host("far" if link else "near", self.far if link else self.near, link, 2, f"eth{link}")

    def ip(self, *lines: str) -> None:
        """Run lines of `ip -batch` in the router's namespace; returns once they apply to packets."""
        batch(self.router.namespace, lines)
        self.router.settle()

    @contextlib.contextmanager
    def bond(self, mode: str = "active-backup") -> Iterator[None]:
        """Both ends of the two cables in bonds, with addresses and routes."""
        ends: list[tuple[Namespace, int, str]] = [(self.far, 2, "eth"), (self.router.namespace, 1, "p")]
        for namespace, number, prefix in ends:
            batch(namespace, [f"link add bond0 type bond mode {mode} miimon 100"])
            for link in BONDED:
                batch(namespace, [f"link set {prefix}{link} down", f"link set {prefix}{link} master bond0"])
            batch(namespace, ["link set bond0 up", *own(2, number, "bond0")])
        batch(self.far, [f"route add default via {address(2, 1, family)}" for family in (4, 6)])
        self.ip(*(f"route add {BEHIND[family]} via {address(2, 2, family)}" for family in (4, 6)))
        try:
            yield
        finally:
            for namespace, _, prefix in ends:
                batch(namespace, ["link delete bond0"])
                for link in BONDED:
                    batch(namespace, [f"address flush dev {prefix}{link} scope global", f"link set {prefix}{link} up"])
            self.router.settle()

    def prefer(self, link: int) -> None:
        """Make an active-backup bond switch to another port, at both ends."""
        batch(self.far, [f"link set bond0 type bond active_slave eth{link}"])
        self.ip(f"link set bond0 type bond active_slave p{link}")

    def forwarded(self) -> int:
        """Packets forwarded by workers, once all are accounted for; 0 with the kernel."""
        if not isinstance(self.router, Dl3dRouter):
            return 0
        account = self.router.closed_account()  # Linux sends LACP packets at any time
        return account.sent - account.injected

    def names(self, links: set[int]) -> bool:
        """Whether dl3d reports that exactly these ports are left to Linux; always true with the kernel."""
        if not isinstance(self.router, Dl3dRouter):
            return True
        rows = self.router.call("unsupported")["unsupported"]
        named = [(row["what"], row["where"]) for row in rows if not row["what"].startswith("route ")]
        return sorted(named) == [(MASTER, port_name(link)) for link in sorted(links)]

    def agree(self) -> bool:
        """Whether each end of the two cables is ready and sees by LACP that its peer is."""
        for namespace in (self.far, self.router.namespace):
            for port in json.loads(namespace.ip("-json", "-details", "link", "show", "master", "bond0")):
                reported = port["linkinfo"]["info_slave_data"]
                states = (reported["ad_actor_oper_port_state"], reported["ad_partner_oper_port_state"])
                if any(state & READY != READY for state in states):
                    return False
        return True

    def mac(self) -> str:
        """The MAC address of the router's bond, which its ports share."""
        link: dict[str, str] = json.loads(self.router.namespace.ip("-json", "link", "show", "bond0"))[0]
        return link["address"]

    def close(self) -> None:
        """Stop the router, remove all namespaces."""
        self.router.close()
        self.lab.close()


@pytest.fixture(scope="module", params=["kernel", "dl3d"])
def bonded(request: pytest.FixtureRequest) -> Iterator[Bonded]:
    with contextlib.closing(Bonded(request.param)) as made:
        yield made
        made.router.check()


def _cross(source: Namespace, target: str) -> None:
    wait_until(lambda: ping(source, target, count=1).received == 1, f"{target} answers")
    pings = ping(source, target, count=1)
    assert pings.received == pings.sent, pings.text


def a_bond_agrees_with_its_neighbour_by_lacp(bonded: Bonded) -> None:
    with bonded.bond(LACP):
        assert bonded.names({1, 2})
        before = bonded.forwarded()
        wait_until(bonded.agree, "both sides agreed by LACP", PATIENCE_S)
        for family in (4, 6):
            _cross(bonded.near, BEHIND[family])
        assert bonded.forwarded() == before, "workers do not forward what a bond must"
    assert bonded.names(set())


def _comes_in_by(bonded: Bonded, link: int, seconds: float) -> bool:
    """Whether a packet for near that arrives on this port of the bond is delivered in time."""
    source, target = bonded.host(link), address(1, 2, 4)
    frame = bytes(Ether(src=source.mac, dst=bonded.mac()) / ip4(target, src=address(2, 2, 4)))
    return arrives(source, frame, bonded.host(0), target, seconds)


def what_comes_in_by_the_port_that_waits_is_dropped_as_linux_does(bonded: Bonded) -> None:
    with bonded.bond():
        assert bonded.names({1, 2})
        before = bonded.forwarded()
        for active in (1, 2):
            bonded.prefer(active)
            _cross(bonded.near, BEHIND[4])
            assert _comes_in_by(bonded, active, PATIENCE_S)
            assert not _comes_in_by(bonded, 3 - active, MOMENT_S)
        assert bonded.forwarded() == before


def a_vlan_on_a_bond_is_linuxs(bonded: Bonded) -> None:
    with bonded.bond():
        for namespace, number in ((bonded.far, 2), (bonded.router.namespace, 1)):
            batch(namespace, ["link add link bond0 name bond0.5 up type vlan id 5", *own(5, number, "bond0.5")])
        bonded.router.settle()
        before = bonded.forwarded()
        for family in (4, 6):
            _cross(bonded.near, address(5, 2, family))
        assert bonded.forwarded() == before


def a_port_that_leaves_its_bond_is_forwarded_by_workers_again(bonded: Bonded) -> None:
    with bonded.bond():
        bonded.prefer(2)
        for namespace, number, device in ((bonded.far, 2, "eth1"), (bonded.router.namespace, 1, "p1")):
            batch(namespace, [f"link set {device} nomaster", f"link set {device} up", *own(3, number, device)])
        bonded.router.settle()
        assert bonded.names({2})
        for family in (4, 6):
            _cross(bonded.near, BEHIND[family])
        before = bonded.forwarded()
        for family in (4, 6):
            bonded.ip(f"route replace {BEHIND[family]} via {address(3, 2, family)}")
            batch(bonded.far, [f"route replace default via {address(3, 1, family)}"])
            _cross(bonded.near, BEHIND[family])
        assert bonded.forwarded() - before >= 4 * isinstance(bonded.router, Dl3dRouter), "workers forward both ways"
    assert bonded.names(set())


def a_port_under_an_unknown_master_is_named(bonded: Bonded) -> None:
    bonded.ip("link add team0 type team", "link set p1 down", "link set p1 master team0")
    assert bonded.names({1})
    bonded.ip("link delete team0", "link set p1 up")
    assert bonded.names(set())
