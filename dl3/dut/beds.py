"""The door of this room: opens a bed for any kind of device under test."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from dl3.dut import dl3d, external, grout, l3fwd, linux, ovs, testpmd
from dl3.dut.bed import Bed
from dl3.dut.kind import Kind
from dl3.model.campaign import Ability, DutSpec, Setup, Traffic
from dl3.model.fault import Fault, UsageFault

KINDS: dict[str, Kind] = {
    kind.name: kind for kind in (dl3d.KIND, l3fwd.KIND, testpmd.KIND, ovs.KIND, grout.KIND, linux.KIND, external.KIND)
}


def abilities() -> Mapping[str, Ability]:
    """What each kind can be told, by its name."""
    return {name: kind.ability for name, kind in KINDS.items()}


def kind_of(spec: DutSpec) -> Kind:
    """The kind that is named, or a error."""
    if spec.kind not in KINDS:
        raise UsageFault(f"the device {spec.name} is of the kind '{spec.kind}'; there are {', '.join(KINDS)}")
    return KINDS[spec.kind]


def missing(spec: DutSpec) -> str:
    """'', or one sentence: what is not installed here, and how to install it."""
    return kind_of(spec).missing(spec.options)


def open_bed(setup: Setup, traffic: Traffic, build: Path) -> AbstractContextManager[Bed]:
    """A device that runs and forwards, with dl3gen of `build` on its wires, until the context ends.

    Fault, in one sentence, when it does not start or does not forward; the call itself refuses what is not installed or
    cannot be set up so.
    """
    kind = kind_of(setup.dut)
    if reason := kind.missing(setup.dut.options):
        raise Fault(reason)
    return kind.opened(setup, traffic, build)
