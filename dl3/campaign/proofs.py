"""Selects the tester self-tests at the start of a campaign: one per kind of wire that supports a loopback."""

from collections.abc import Iterable, Mapping, Sequence

from dl3.model.campaign import DutSpec, Job
from dl3.model.noun import Noun

WIRES: Mapping[str, str] = {"linux": "veth", "ovs": "vhost", "external": "ports of the file"}  # by kind of device
OTHER_WIRE = "memif"
LOOPED = ("memif", "veth", "vhost")
MOST_S = 0.5  # maximum duration of a self-test trial


class Wanted(Noun):
    """A self-test over one kind of wire, on the testbed of the first job that uses it."""

    wire: str
    first: Job
    frames: tuple[str, ...]
    seconds: float  # of one trial


def wire_of(dut: DutSpec) -> str:
    """The kind of wire between the device and dl3gen."""
    return str(dut.options.get("wire") or WIRES.get(dut.kind, OTHER_WIRE))


def proofs_of(jobs: Iterable[Job]) -> Sequence[Wanted]:
    """The self-tests required by these jobs, in job order."""
    by_wire: dict[str, list[Job]] = {}
    for job in jobs:
        if (wire := wire_of(job.setup.dut)) in LOOPED:
            by_wire.setdefault(wire, []).append(job)
    return [
        Wanted(
            wire=wire,
            first=some[0],
            frames=tuple(dict.fromkeys(job.frame for job in some)),
            seconds=min(MOST_S, *(job.effort.seconds for job in some)),
        )
        for wire, some in by_wire.items()
    ]


def n_proofs(jobs: Iterable[Job]) -> int:
    """Number of self-tests: wires times frame sizes."""
    return sum(len(wanted.frames) for wanted in proofs_of(jobs))
