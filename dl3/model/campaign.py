"""A campaign: devices under test x parameters x tests, the cases this machine cannot run, and the time plan."""

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
# Of flows: addresses of the network behind each port, then source ports; or those of dl3/model/white_paper.py.
Addresses = Literal["networks", "white-paper"]
# Requirements of a case beyond two cores and 2 MiB huge pages.
Need = Literal["two NUMA nodes", "a NIC", "SR-IOV", "huge pages of 1 GiB", "ports of VMs", "KVM"]


MOST_FRAME_BYTES = 9622  # including the FCS; same value as in src/gen/stream.h


class Text(Noun):
    """Text shown to the user, in both languages."""

    en: str
    zh: str


class DutSpec(Noun):
    """A named device under test. `kind` is one of the kinds in dl3.dut; the options depend on the kind."""

    name: str
    kind: str
    options: dict[str, object] = Field(default_factory=dict)

    @property
    def has_flow_table(self) -> bool:
        """Whether it has a flow for each flow of the traffic."""
        return self.options.get("lookup") == "flow"


class Setup(Noun):
    """Everything a testbed is built from. If any field changes, the DUT is restarted."""

    dut: DutSpec
    cores: int = 1  # number of cores the DUT forwards with
    dut_cores: tuple[int, ...] = ()  # core numbers; empty: chosen automatically
    generator_cores: tuple[int, ...] = ()
    memory_mib: int = 256  # huge page memory of the DUT
    page_kib: int = 2048  # 4, 2048 or 1048576
    channels: int = 0  # memory channels passed to EAL (-n); 0: option omitted
    routes: str = "one"  # a built-in routing table, see 'dl3 bench tables'
    burst: int = 64  # maximum burst size of the DUT, in frames
    descriptors: int = 2048  # per queue, or slots of a ring


class Ability(Noun):
    """What can be configured on a kind of device."""

    honours: frozenset[str]  # supported fields of Setup and Traffic; all others keep their defaults
    choices: Mapping[str, tuple[str, ...]]  # options and their values, the default first; (): any value
    resets_over: frozenset[str] = frozenset()  # wires over which its process or port can be reset
    most_bytes: int = MOST_FRAME_BYTES  # largest frame that its wires carry, including the FCS
    most_in_mode: Mapping[str, int] = Field(default_factory=dict)  # less, with the option 'mode'; and no mixes


class Traffic(Noun):
    """The traffic to send; frame size and load are set per trial."""

    direction: Direction = "bidirectional"
    flows: int = 1  # per direction, at most 16,777,216
    distribution: Literal["uniform", "sequential", "zipf"] = "uniform"
    family: Literal["ipv4", "ipv6"] = "ipv4"
    addresses: Addresses = "networks"
    streams: tuple[dict[str, object], ...] = ()  # user-defined streams; they replace the fields above


class Effort(Noun):
    """How thorough the measurement is. Time budgets reduce it, and the report says so."""

    seconds: float = 2.0  # of one trial; RFC 2544 requires 60
    repetitions: int = 1  # number of searches, bursts, recoveries or resets
    resolution: float = 0.005  # relative resolution of a search
    method: Literal["binary", "mlrsearch"] = "mlrsearch"
    goals: tuple[float, ...] = (0.0,)  # loss ratios
    exceed: float = 0.0  # share of a rate's trial time allowed to exceed the goal (RFC 9971); MLRsearch only
    loads: tuple[float, ...] = (0.1, 0.5, 0.9)  # fractions of the throughput, for latency
    rates: tuple[float, ...] = ()  # frames/s of all streams, which a frame loss test offers besides its loads
    step: float = 0.1  # between two loads of frame loss and forwarding rate tests, as a fraction of the maximum


class Job(Noun):
    """One test with one frame size on one testbed. `key` is stable across runs of the same campaign."""

    key: str  # 'case|dut|parameters|traffic|test|frame'
    case: str
    parameters: dict[str, str]  # the ones that the case varies, for display: {'huge pages': '4 GiB'}
    setup: Setup
    traffic: Traffic
    test: TestName
    frame: str  # '64', 'imix'
    effort: Effort


class LeftOut(Noun):
    """A device or parameter values that this machine cannot run, while it can run other parts of the case."""

    dut: str
    parameters: dict[str, str]
    reason: Text
    instead: dict[str, str] = Field(default_factory=dict)  # values that are measured in their place, as the case allows


class Case(Noun):
    """A question and the jobs that answer it. A case without jobs does not apply to this machine; `reason` says why."""

    key: str  # '1.1'
    title: Text
    jobs: tuple[Job, ...] = ()
    reason: Text | None = None
    left_out: tuple[LeftOut, ...] = ()
    published: tuple[str, ...] = ()  # published cases plotted next to it: 'white-paper 1.1'


class Plan(Noun):
    """What will be measured, and the estimated duration. The first line of a campaign's record.

    When the budget shortens or lengthens jobs during the run, another plan follows; the last one is valid.
    """

    kind: Literal["plan"] = "plan"
    at: str
    campaign: str  # common to all records of the campaign
    name: str
    title: Text
    source: str  # the complete campaign file
    cases: tuple[Case, ...]
    seconds: float  # estimated duration; in a plan that replaces another: of the remaining jobs
    budget_seconds: float = 0.0  # 0: none
    shortened: tuple[Text, ...] = ()  # what the budget reduced, one sentence each
    deviations: tuple[Text, ...] = ()  # from the RFCs and from the published method, one sentence each
    facts: dict[str, object] = Field(default_factory=dict)


class Finished(Noun):
    """A job that produced all its results and is not run again."""

    kind: Literal["finished"] = "finished"
    at: str
    campaign: str
    job: str
    seconds: float  # duration, without its share of the time to start the testbed
    planned_seconds: float
    is_rest: bool = False  # interrupted before: `seconds` covers only the remainder and says nothing about speed


class Skipped(Noun):
    """A planned job that produced no result; it is retried when the campaign is resumed."""

    kind: Literal["skipped"] = "skipped"
    at: str
    campaign: str
    job: str
    reason: str


def key_by_hand(dut: str, test: TestName, frame: str) -> str:
    """The job key of a test started by hand rather than by a campaign."""
    return f"|{dut}||{test}|{frame}"
