"""A bridge in a VRF: the router is the kernel, then dl3d. Runs in a guest.

x -- p0 [ br0 router ] p3 -- out     br0 and p3 are in VRF red
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from harness.bridged import BRIDGE, BRIDGED, ROUTED, BridgedRouter, addresses
from harness.network import FAMILIES, Host, length, network
from harness.router import port_name
from harness.shell import batch, ping
from harness.wire import wait_until

DEVICE = "net_pcap{index},iface={name}"  # see tagged.py
MANY = 5


@dataclass
class Bed:
    """The router and two hosts."""

    routed: BridgedRouter
    x: Host
    out: Host

    def forwarded(self) -> int:
        """Packets forwarded by workers, once all are accounted for; 0 with the kernel."""
        if not self.routed.dl3d:
            return 0
        account = self.routed.dl3d.closed_account()
        return account.sent - account.injected

    def reaches(self, family: int) -> bool:
        """Whether the host on the bridge reaches the other one."""
        return ping(self.x.namespace, self.out.address(family), "-W", "2", count=1).received == 1


@pytest.fixture(scope="module", params=["kernel", "dl3d"])
def bed(request: pytest.FixtureRequest) -> Iterator[Bed]:
    made = BridgedRouter(request.param, DEVICE)
    x, out = (Host(name, made.lab.namespace(name), link, 2) for name, link in (("x", BRIDGE), ("out", ROUTED)))
    far = made.lab.namespace("far", silent=True)
    made.lab.cable(made.router.end(0), x.end)
    for link in BRIDGED[1:]:
        made.lab.cable(made.router.end(link), Host("", far, BRIDGE, 9, f"e{link}").end)
    made.lab.cable(made.router.end(ROUTED), out.end)
    for host in (x, out):
        for family in FAMILIES:
            lines = [f"address add {host.address(family)}/{length(family)} dev eth0"]
            lines.append(f"route add default via {network(family, host.link, 1)} dev eth0")
            batch(host.namespace, lines)
    made.start()
    yield Bed(made, x, out)
    made.router.check()
    made.close()


@pytest.mark.parametrize("family", FAMILIES)
def a_bridge_in_a_vrf_is_routed_in_it(bed: Bed, family: int) -> None:
    name = port_name(ROUTED)
    bed.routed.ip("link add red type vrf table 1001", "link set red up", "link set br0 master red", *addresses())
    assert not bed.reaches(family)  # it is in the main table
    bed.routed.ip(f"link set {name} master red", *addresses())
    wait_until(lambda: bed.reaches(family), "they met")
    wait_until(lambda: bed.routed.knows(bed.x.mac) == port_name(0), "it was known")
    before = bed.forwarded()
    assert ping(bed.x.namespace, bed.out.address(family), count=MANY).received == MANY
    assert not bed.routed.dl3d or bed.forwarded() - before >= 2 * MANY
    bed.routed.ip("link set br0 nomaster", f"link set {name} nomaster", "link delete red", *addresses())
    wait_until(lambda: bed.reaches(family), "they met again")
