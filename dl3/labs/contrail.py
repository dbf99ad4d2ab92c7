"""The lab of the OpenContrail vRouter report: VM1 sends to VM2 by MPLS over UDP between two vRouters, which are dl3d. Pure."""

from dl3.lab.kind import EMULATED, LONG_RING, Kind, Load, Settings, guest, routed
from dl3.lab.links import GENERATOR_MACS, NAMES
from dl3.model.lab import RING, VM1, VM2, Accelerator, Card, Leg, Station, Topology
from dl3.report.published import rows_for

NAME = "contrail"
VROUTERS = ("vrouter1", "vrouter2")
UNDERLAYS = ("underlay1", "underlay2")
PORTS = {"src_port": 9, "dst_port": {"first": 9, "count": 16}, "flows": 16}  # of the report's pktgen


def topology_of(settings: Settings, accelerator: Accelerator) -> Topology:
    """VM1, vRouter 1, the underlay, vRouter 2, VM2. Without guests, one dl3gen is both."""
    first, second = (Card(port=port, mac=mac) for port, mac in zip(NAMES, GENERATOR_MACS, strict=True))
    if accelerator == "none":
        receiver = Station(name=VM2, program=settings.generator, cards=(second,), part_of=VM1)
    else:
        receiver = guest(VM2, "testpmd", settings, accelerator, second)
    return Topology(
        lab=NAME,
        switch="vrouters",
        accelerator=accelerator,
        stations=(guest(VM1, settings.generator, settings, accelerator, first), receiver),
        legs=(
            Leg(enters=NAMES[0], node=VROUTERS[0], leaves=UNDERLAYS[0]),
            Leg(enters=UNDERLAYS[1], node=VROUTERS[1], leaves=NAMES[1], to=VM2),
        ),
        stream=routed() | PORTS,
        ring=LONG_RING if accelerator == "none" else RING,
    )


def published_loads() -> tuple[Load, ...]:
    """The loads that the report lists, the lowest of a size first."""
    rows = {(int(row.frame), int(row.figure)) for row in rows_for("vrouter 6.1") if row.metric == "offered rate"}
    return tuple(Load(frame_bytes=size, pps=pps) for size, pps in sorted(rows))


CONTRAIL = Kind(
    NAME,
    lambda settings, accelerator: (topology_of(settings, accelerator),),
    n_guests=2,
    loads={"tcg": EMULATED, "kvm": published_loads(), "none": published_loads()},
)
