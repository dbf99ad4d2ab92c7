"""Entry point of this package: opens a testbed for any kind of device under test."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from dl3.dut import dl3d, external, grout, l3fwd, linux, ovs, testpmd, vrouters
from dl3.dut.bed import Bed
from dl3.dut.kind import Kind
from dl3.model.campaign import Ability, DutSpec, Setup, Traffic
from dl3.model.fault import Fault, UsageFault

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        dl3d.KIND,
        vrouters.KIND,
        l3fwd.KIND,
        testpmd.KIND,
        ovs.KIND,
        grout.KIND,
        linux.KIND,
        external.KIND,
    )
}


def abilities() -> Mapping[str, Ability]:
    """What can be configured on each kind, by name."""
    return {name: kind.ability for name, kind in KINDS.items()}


def kind_of(spec: DutSpec) -> Kind:
    """The kind of a device; UsageFault if it does not exist."""
    if spec.kind not in KINDS:
        raise UsageFault(f"unknown device kind '{spec.kind}'; supported: {', '.join(KINDS)}")
    return KINDS[spec.kind]


def missing(spec: DutSpec) -> str:
    """'', or one sentence: what is not installed here, and how to install it."""
    return kind_of(spec).missing(spec.options)


def open_bed(setup: Setup, traffic: Traffic, build: Path) -> AbstractContextManager[Bed]:
    """A running, forwarding device with dl3gen from `build` on its wires, inside the context.

    The call itself raises a Fault if something is not installed or cannot be set up like this; entering the context
    raises one if the device does not start or does not forward.
    """
    kind = kind_of(setup.dut)
    if reason := kind.missing(setup.dut.options):
        raise Fault(reason)
    return kind.opened(setup, traffic, build)
