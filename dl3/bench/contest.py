"""Compares dl3d with its peers: both programs of a row run alternately on one core, each suspended while the other
runs.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dl3.bench.acls import ROW_OF_RULES
from dl3.bench.bridges import ROW_OF_IO, ROW_OF_NORMAL, ROW_OF_STATIC
from dl3.bench.ceilings import ROW_OF_CEILING, ROW_OF_FLOWGEN_CEILING
from dl3.bench.contestants import contestant
from dl3.bench.flows import ROW_OF_EXACT_MATCH, ROW_OF_WHITE_PAPER
from dl3.bench.generators import ROW_OF_FLOWGEN, ROW_OF_FLOWS, ROW_OF_MOST_FLOWS, ROW_OF_SINK
from dl3.bench.measure import trial_of
from dl3.bench.norow import NoRow
from dl3.bench.one_worker import ROW_OF_HANDOVER, ROW_OF_MPLS_DECAP, ROW_OF_MPLS_ENCAP, ROW_OF_MPLS_SWAP, ROW_OF_VRFS
from dl3.bench.shapers import ROW_OF_POLICE, ROW_OF_SHAPE
from dl3.bench.sides import Contestant, Entry, PairSettings, Running
from dl3.bench.space import space_for
from dl3.bench.taps import ROW_OF_MIRROR, ROW_OF_ZERO_LOSS
from dl3.bench.twocores import ROW_OF_MEMIF, ROW_OF_VHOST
from dl3.bench.vxlan_routes import ROW_OF_DECAP
from dl3.bench.vxlans import BOTH_WAYS, OUT_ONLY, ROW_OF_BRIDGE, ROW_OF_VXLAN_ENCAP
from dl3.bench.workplace import BUILD, Workplace
from dl3.model.comparison import Comparison, Pair
from dl3.model.fault import Fault, UsageFault
from dl3.model.sample import Sample
from dl3.record.facts import Facts, collect
from dl3.record.journal import append

QUIET_SHARE = 0.97  # of the core; samples with less were disturbed by other programs
RETAKES = 2
PAIRS_PER_START = 5
ROW_OF_ALIKE = "l3fwd links the same DPDK drivers as dl3d; in other rows it loads all of them as plugins"


@dataclass(frozen=True)
class Row:
    """A comparison by name."""

    name: str
    ours: Entry
    peer: Entry
    note: str = ""  # a remark on this row
    most_starts: int = 1000  # of both programs, where a start takes long


PORTABLE = "dl3d as built for testpmd"
PORTABLE_GENERATOR = "dl3gen as built for testpmd"
FLOWS, EXACT_MATCH, RULES = "dl3d with flows", "l3fwd exact match", "dl3d with access lists"
BRIDGE, OVS = "dl3d with a bridge", "Open vSwitch"
WORKER = "worker of dl3d"
VXLAN, OVS_VXLAN = "dl3d with VXLAN", "Open vSwitch with VXLAN"
VXLAN_ROUTE, OVS_VXLAN_ROUTE = "dl3d with VXLAN that is routed", "Open vSwitch with VXLAN that is routed"
MOST_STARTS = 2  # with 33,554,432 flows, or 1,000,000 MAC addresses

ROWS = (
    Row("ipv4-1-route", Entry("dl3d", "one", 1), Entry("l3fwd", "one")),
    Row("ipv4-1m-routes", Entry("dl3d", "1m", 256), Entry("l3fwd", "1m")),
    Row("ipv4-1-route-alike", Entry("dl3d", "one", 1), Entry("l3fwd linked alike", "one"), note=ROW_OF_ALIKE),
    Row("ipv4-1m-routes-alike", Entry("dl3d", "1m", 256), Entry("l3fwd linked alike", "1m"), note=ROW_OF_ALIKE),
    Row("ipv4-1m-routes-1-hop", Entry("dl3d", "1m", 1), Entry("l3fwd", "1m")),
    Row("ipv4-1m-routes-4096-hops", Entry("dl3d", "1m", 4096), Entry("l3fwd", "1m")),
    Row(
        "ipv4-1m-routes-half-load",
        Entry("dl3d", "1m", 256, is_half_load=True),
        Entry("l3fwd", "1m", is_half_load=True),
    ),
    Row("ipv6-1-route", Entry("dl3d", "v6-1", 1), Entry("l3fwd", "v6-1")),
    Row("ipv6-200k-routes", Entry("dl3d", "v6-200k", 256), Entry("l3fwd", "v6-200k")),
    Row("flows-64k", Entry(FLOWS, flows="64k"), Entry(EXACT_MATCH, flows="64k"), note=ROW_OF_EXACT_MATCH),
    Row("flows-1m", Entry(FLOWS, flows="1m"), Entry(EXACT_MATCH, flows="1m"), note=ROW_OF_EXACT_MATCH),
    Row(
        "flows-33m",
        Entry(FLOWS, flows="33m"),
        Entry(EXACT_MATCH, flows="33m-white-paper"),
        note=ROW_OF_WHITE_PAPER,
        most_starts=MOST_STARTS,
    ),
    Row("acl-1k", Entry(RULES, rules=1000), Entry("l3fwd access lists", rules=1000), note=ROW_OF_RULES),
    Row("acl-10k", Entry(RULES, rules=10_000), Entry("l3fwd access lists", rules=10_000), note=ROW_OF_RULES),
    Row("bridge-4k-macs", Entry(BRIDGE, macs="4k"), Entry(OVS, mode="normal", macs="4k"), note=ROW_OF_NORMAL),
    Row("bridge-4k-macs-static", Entry(BRIDGE, macs="4k"), Entry(OVS, mode="static", macs="4k"), note=ROW_OF_STATIC),
    Row("bridge-4k-macs-io", Entry(BRIDGE, macs="4k"), Entry("testpmd io both ways", macs="4k"), note=ROW_OF_IO),
    Row(
        "bridge-1m-macs",
        Entry(BRIDGE, macs="1m"),
        Entry(OVS, mode="normal", macs="1m"),
        note=ROW_OF_NORMAL,
        most_starts=MOST_STARTS,
    ),
    Row(
        "bridge-1m-macs-static",
        Entry(BRIDGE, macs="1m"),
        Entry(OVS, mode="static", macs="1m"),
        note=ROW_OF_STATIC,
        most_starts=MOST_STARTS,
    ),
    Row(
        "vxlan-bridge",
        Entry(VXLAN, mode=BOTH_WAYS, macs="4k"),
        Entry(OVS_VXLAN, mode=BOTH_WAYS, macs="4k"),
        note=ROW_OF_BRIDGE,
    ),
    Row(
        "vxlan-encap",
        Entry(VXLAN, mode=OUT_ONLY, macs="4k"),
        Entry(OVS_VXLAN, mode=OUT_ONLY, macs="4k"),
        note=ROW_OF_VXLAN_ENCAP,
    ),
    Row("vxlan-decap-route", Entry(VXLAN_ROUTE, n_hops=1), Entry(OVS_VXLAN_ROUTE), note=ROW_OF_DECAP),
    Row("xconnect", Entry(PORTABLE, mode="xconnect"), Entry("testpmd io")),
    Row("xconnect-mac", Entry(PORTABLE, mode="xconnect-mac"), Entry("testpmd macswap")),
    Row("self-1m-over-1", Entry("dl3d", "1m", 256), Entry("dl3d", "one", 1)),
    Row(
        "mirror-ipv4-1-route",
        Entry("dl3d with TAP interfaces", "one", 1),
        Entry("dl3d", "one", 1),
        note=ROW_OF_MIRROR,
    ),
    Row(
        "mirror-ipv4-1m-routes",
        Entry("dl3d with TAP interfaces", "1m", 256),
        Entry("dl3d", "1m", 256),
        note=ROW_OF_MIRROR,
    ),
    Row(
        "mirror-zero-loss",
        Entry("dl3d with TAP interfaces", "one", 1, is_zero_loss=True),
        Entry("dl3d", "one", 1, is_zero_loss=True),
        note=ROW_OF_ZERO_LOSS,
    ),
    Row(
        "vlans-16-vrfs",
        Entry(WORKER, mode="vlans-16-vrfs"),
        Entry(WORKER, mode="vlans-1-vrf"),
        note=ROW_OF_VRFS,
    ),
    Row(
        "pipeline-handover",
        Entry(WORKER, mode="handover"),
        Entry(WORKER, mode="vlans-1-vrf"),
        note=ROW_OF_HANDOVER,
    ),
    Row("mpls-swap", Entry(WORKER, mode="mpls-swap"), Entry(WORKER, mode="ipv4"), note=ROW_OF_MPLS_SWAP),
    Row("mpls-udp-encap", Entry(WORKER, mode="mpls-udp-encap"), Entry(WORKER, mode="ipv4"), note=ROW_OF_MPLS_ENCAP),
    Row("mpls-udp-decap", Entry(WORKER, mode="mpls-udp-decap"), Entry(WORKER, mode="ipv4"), note=ROW_OF_MPLS_DECAP),
    Row(
        "police-1m",
        Entry("policing", mode="dl3d"),
        Entry("policing", mode="rte_meter"),
        note=ROW_OF_POLICE,
        most_starts=MOST_STARTS,
    ),
    Row(
        "shape-64k-active",
        Entry("shaper of dl3d"),
        Entry("rte_sched"),
        note=ROW_OF_SHAPE,
        most_starts=MOST_STARTS,
    ),
    Row(
        "generator-multi-flow",
        Entry(PORTABLE_GENERATOR, mode="flows"),
        Entry("testpmd", mode="flows"),
        note=ROW_OF_FLOWS,
    ),
    Row(
        "generator-flowgen",
        Entry(PORTABLE_GENERATOR, mode="flows"),
        Entry("testpmd", mode="flowgen"),
        note=ROW_OF_FLOWGEN,
    ),
    Row(
        "generator-16m-flows",
        Entry("dl3gen", mode="16m-flows"),
        Entry("dl3gen", mode="1-flow"),
        note=ROW_OF_MOST_FLOWS,
    ),
    Row("sink", Entry(PORTABLE_GENERATOR, mode="sink"), Entry("testpmd", mode="sink"), note=ROW_OF_SINK),
    Row("generator-memif", Entry("dl3gen over memif"), Entry("testpmd over memif", mode="flows"), note=ROW_OF_CEILING),
    Row(
        "generator-memif-flowgen",
        Entry("dl3gen over memif"),
        Entry("testpmd over memif", mode="flowgen"),
        note=ROW_OF_FLOWGEN_CEILING,
    ),
    Row("memif-2-core", Entry("dl3d over memif"), Entry("l3fwd over memif"), note=ROW_OF_MEMIF),
    Row("vhost-io", Entry("dl3d over vhost"), Entry("testpmd over vhost"), note=ROW_OF_VHOST),
)

# Not part of the standard list: the cost of rte_graph, for the architecture decision records, and the most flows with
# equal keys on both sides.
EXTRA_ROWS = (
    Row("graph-1-route", Entry("dl3d", "one", 1), Entry("l3fwd-graph", "one")),
    Row(
        "flows-33m-random",
        Entry(FLOWS, flows="33m"),
        Entry(EXACT_MATCH, flows="33m"),
        note=ROW_OF_EXACT_MATCH,
        most_starts=MOST_STARTS,
    ),
    Row(
        "flows-33m-white-paper",
        Entry(FLOWS, flows="33m-white-paper"),
        Entry(EXACT_MATCH, flows="33m-white-paper"),
        note=ROW_OF_WHITE_PAPER,
        most_starts=MOST_STARTS,
    ),
)


def rows_named(names: Sequence[str]) -> tuple[Row, ...]:
    """The named rows, or all of ROWS if none are named."""
    known = {row.name: row for row in (*ROWS, *EXTRA_ROWS)}
    for name in names:
        if name not in known:
            raise UsageFault(f"unknown row '{name}'; expected one of {', '.join(known)}")
    return tuple(known[name] for name in names) or ROWS


@dataclass(frozen=True)
class Effort:
    """Number and duration of samples."""

    starts: int = 5  # of both programs
    seconds: float = 0.5  # of one sample
    record: Path = BUILD / "records" / "peers.jsonl"


Sides = tuple[Contestant, Contestant]  # ours, the peer's


def sides_of(row: Row, terms: PairSettings, place: Workplace) -> Sides:
    """Both sides of a row, not started."""
    return contestant(row.ours, terms, place), contestant(row.peer, terms, place)


def turn(runner: Running, seconds: float) -> Sample:
    """One sample of a suspended program, which is suspended again afterwards.

    A disturbed sample is repeated; of all attempts the one with the largest share of the core counts, regardless of its
    rate.
    """
    tries: list[Sample] = []
    runner.resume()
    while len(tries) <= RETAKES and not (tries and tries[-1].core_share >= QUIET_SHARE):
        tries.append(runner.measure(seconds))
    runner.pause()
    return max(tries, key=lambda sample: sample.core_share)


def check_equal(row: Row, ours: Contestant, peer: Contestant) -> None:
    """Reject a comparison of programs compiled for different processors."""
    if ours.march != peer.march:
        raise Fault(
            f"{row.name}: {row.ours.program} was built with -march={ours.march}, {row.peer.program} with "
            f"-march={peer.march}: build both alike (meson configure build -Dmarch=..., tools/build-peers)"
        )


def take_pair(ours: Running, peer: Running, is_ours_first: bool, seconds: float) -> Pair:
    """One sample of each side."""
    if is_ours_first:
        return turn(ours, seconds), turn(peer, seconds)
    theirs = turn(peer, seconds)
    return turn(ours, seconds), theirs


def take_start(
    sides: Sides, is_ours_first: bool, place: Workplace, seconds: float, n_pairs: int = PAIRS_PER_START
) -> list[Pair]:
    """The pairs of one start of both programs; the side measured first alternates."""
    first, second = sides[:: 1 if is_ours_first else -1]
    with first.started(place) as one:
        one.pause()
        with second.started(place) as other:
            other.pause()
            ours, peer = (one, other) if is_ours_first else (other, one)
            turns = [is_ours_first is (n % 2 == 0) for n in range(n_pairs)]
            return [take_pair(ours, peer, ours_first, seconds) for ours_first in turns]


def run_row(row: Row, terms: PairSettings, place: Workplace, effort: Effort) -> tuple[list[Pair], int]:
    """All pairs of a row, from starts that alternate the side started first, and how many starts were repeated.

    Both programs are started several times: their memory layout differs between starts, and with it the CPU's
    mispredictions, by more than the difference to be measured. Several samples per start also average out variations of
    the machine. A start that cannot be compared is repeated, in total at most as often as there are starts.
    """
    pairs, done, again = list[Pair](), 0, 0
    starts = min(effort.starts, row.most_starts)
    while done < starts:
        try:
            pairs += take_start(sides_of(row, terms, place), done % 2 == 0, place, effort.seconds)
            done += 1
        except NoRow:
            if again == starts:
                raise
            again += 1
    return pairs, again


def record_pairs(sides: Sides, pairs: Sequence[Pair], facts: Facts, path: Path) -> None:
    """One line per sample, in the order of the pairs."""
    for pair in pairs:
        for side, sample in zip(sides, pair, strict=True):
            append(path, trial_of(side.job, sample, facts))


@dataclass(frozen=True)
class Found:
    """A measured row, or the reason why there is none."""

    row: Row
    march: str  # "" if there is none
    comparison: Comparison | None
    reason: str = ""


def take_row(row: Row, terms: PairSettings, place: Workplace, effort: Effort) -> Found:
    """Measure one row and record its samples."""
    try:
        with space_for(row.name, (row.ours, row.peer), terms):
            sides = sides_of(row, terms, place)
            check_equal(row, *sides)
            pairs, again = run_row(row, terms, place, effort)
    except NoRow as reason:
        return Found(row, "", None, str(reason))
    record_pairs(sides, pairs, collect(BUILD), effort.record)
    said = (row.note, f"restarts because nothing could be compared: {again}" if again else "")
    comparison = Comparison.of(row.name, pairs).model_copy(update={"note": "; ".join(filter(None, said))})
    return Found(row, sides[0].march, comparison)


def run_rows(
    rows: Sequence[Row], terms: PairSettings, place: Workplace, effort: Effort, report: Callable[[Found], None]
) -> list[Found]:
    """All rows in sequence; `report` is called with each one."""
    done = []
    for row in rows:
        done.append(take_row(row, terms, place, effort))
        report(done[-1])
    return done
