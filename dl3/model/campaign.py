"""A campaign: devices under test x parameters x tests, what of it this machine cannot do, and the plan in time."""

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from dl3.model.noun import Noun

TestName = Literal[
    "throughput",  # RFC 2544, 26.1, or RFC 9971
    "latency",  # 26.2, at shares of the throughput
    "frame loss",  # 26.3
    "back-to-back",  # 26.4, RFC 9004
    "recovery",  # 26.5
    "reset",  # 26.6
    "forwarding",  # RFC 2889
]
Direction = Literal["unidirectional", "bidirectional", "meshed"]
# What a case may need of a machine beyond two cores and huge pages of 2 MiB.
Need = Literal["two NUMA nodes", "a NIC", "SR-IOV", "huge pages of 1 GiB", "ports of VMs", "KVM"]


MOST_FRAME_BYTES = 9622  # with FCS, as src/gen/stream.h has it


class Text(Noun):
    """What people read, in both languages."""

    en: str
    zh: str


class DutSpec(Noun):
    """A device under test by name; `kind` is one that dl3.dut knows. All else depends on the kind."""

    name: str
    kind: str
    options: dict[str, object] = Field(default_factory=dict)


class Setup(Noun):
    """All that a bed is built from. A new value of any field means that the DUT is started again."""

    dut: DutSpec
    cores: int = 1  # that the DUT forwards with
    dut_cores: tuple[int, ...] = ()  # which; empty: chosen
    generator_cores: tuple[int, ...] = ()
    memory_mib: int = 256  # of huge pages, for the DUT
    page_kib: int = 2048  # 4, 2048 or 1048576
    channels: int = 0  # memory channels that EAL is told (-n); 0: not told
    routes: str = "one"  # a table of ours, see 'dl3 bench tables'
    burst: int = 64  # frames that the DUT takes at a time
    descriptors: int = 2048  # of each queue, or slots of a ring


class Ability(Noun):
    """What a kind of device can be told."""

    honours: frozenset[str]  # fields of Setup and of Traffic; all others stay at their defaults
    choices: Mapping[str, tuple[str, ...]]  # its options, each with its values, the first being the default; (): any
    resets_over: frozenset[str] = frozenset()  # wires over which its process or its port can be reset
    most_bytes: int = MOST_FRAME_BYTES  # of a frame that its wires carry, with FCS


class Traffic(Noun):
    """What is sent; its frame size and its load are set for each trial."""

    direction: Direction = "bidirectional"
    flows: int = 1  # of each direction, to 16,777,216
    distribution: Literal["uniform", "sequential", "zipf"] = "uniform"
    family: Literal["ipv4", "ipv6"] = "ipv4"
    streams: tuple[dict[str, object], ...] = ()  # a person's own instead of all that


class Effort(Noun):
    """How thoroughly it is measured. Budgets shorten this, and say so."""

    seconds: float = 2.0  # of one trial; RFC 2544 wants 60
    repetitions: int = 1  # whole searches, bursts, recoveries, resets
    resolution: float = 0.005  # of a search, relative
    method: Literal["binary", "mlrsearch"] = "mlrsearch"
    goals: tuple[float, ...] = (0.0,)  # loss ratios
    exceed: float = 0.0  # share of a rate's trial time that may lose more than a goal (RFC 9971); MLRsearch alone
    loads: tuple[float, ...] = (0.1, 0.5, 0.9)  # of the throughput, for latency
    step: float = 0.1  # of the most, between two loads of frame loss and of forwarding rates


class Job(Noun):
    """One test with one frame size on one bed. `key` is the same in each run of the same campaign."""

    key: str  # 'case|dut|parameters|traffic|test|frame'
    case: str
    parameters: dict[str, str]  # those that the case varies, as people read them: {'huge pages': '4 GiB'}
    setup: Setup
    traffic: Traffic
    test: TestName
    frame: str  # '64', 'imix'
    effort: Effort


class LeftOut(Noun):
    """A device, or values of a case's parameters, that this machine cannot do, while others of the case can be done."""

    dut: str
    parameters: dict[str, str]
    reason: Text


class Case(Noun):
    """A question with its jobs; without jobs it is not applicable here, for `reason`."""

    key: str  # '1.1'
    title: Text
    jobs: tuple[Job, ...] = ()
    reason: Text | None = None
    left_out: tuple[LeftOut, ...] = ()
    published: tuple[str, ...] = ()  # cases of the published results that are drawn beside it: 'white-paper 1.1'


class Plan(Noun):
    """What will be measured, and how long that is thought to take. The first line of a campaign's record.

    Where a budget made jobs shorter on the way, or longer again, a plan with them follows; the last one holds.
    """

    kind: Literal["plan"] = "plan"
    at: str
    campaign: str  # groups all records of it
    name: str
    title: Text
    source: str  # the campaign as it was written, whole
    cases: tuple[Case, ...]
    seconds: float  # promised; when this plan takes the place of another: for what was left
    budget_seconds: float = 0.0  # 0: none
    shortened: tuple[Text, ...] = ()  # what the budget took away, a sentence each
    deviations: tuple[Text, ...] = ()  # from the RFCs and from the published method, a sentence each
    facts: dict[str, object] = Field(default_factory=dict)


class Finished(Noun):
    """A job that gave all its answers: it is not made again."""

    kind: Literal["finished"] = "finished"
    at: str
    campaign: str
    job: str
    seconds: float  # that it took, its share of the bed's start left out
    planned_seconds: float
    is_rest: bool = False  # it was cut short once: `seconds` is what was left of it, and says nothing of its pace


class Skipped(Noun):
    """A job that was planned and gave no answer; a campaign that is gone on with tries it again."""

    kind: Literal["skipped"] = "skipped"
    at: str
    campaign: str
    job: str
    reason: str


def key_by_hand(dut: str, test: TestName, frame: str) -> str:
    """As a job's key is made, of a test that no campaign but a person asked for."""
    return f"|{dut}||{test}|{frame}"
