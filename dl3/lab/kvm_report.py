"""The lab of the KVM report: VM1 generates, VM2 forwards, and a switch is between them. Pure."""

from typing import cast

from dl3.lab.kind import Kind, Settings, guest
from dl3.model.lab import VM1, VM2, Accelerator, Card, Leg, Switch, Topology

NAME = "kvm-report"
QUEUES = ("vnet1", VM2, "vnet3")  # those that can be shortened


def topology_of(settings: Settings, accelerator: Accelerator) -> Topology:
    """Frames go VM1, vnet0, br0, vnet1, VM2, vnet2, br1, vnet3, VM1."""
    cards = [Card(port=f"vnet{n}", mac=f"02:00:00:00:02:{n + 1:02x}") for n in range(4)]
    return Topology(
        lab=NAME,
        switch=cast(Switch, settings.switch or "linux"),
        accelerator=accelerator,
        stations=(
            guest(VM1, settings.generator, settings, accelerator, cards[0], cards[3]),
            guest(VM2, settings.forwarder, settings, accelerator, cards[1], cards[2]),
        ),
        legs=(
            Leg(enters="vnet0", node="br0", leaves="vnet1", to=VM2),
            Leg(enters="vnet2", node="br1", leaves="vnet3", to=VM1),
        ),
        stream={"dst_mac": cards[1].mac},
        short_queue=settings.short_queue,
    )


KVM_REPORT = Kind(NAME, lambda settings, accelerator: (topology_of(settings, accelerator),), n_guests=2)
