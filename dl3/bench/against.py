"""Compares dl3d of this tree with that of another commit, alternating on one core, as contest.py does with peers."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from dl3.bench.base import Base, run
from dl3.bench.contest import PORTABLE, Row, check_equal, rows_named, take_start
from dl3.bench.contestants import make_dl3d
from dl3.bench.norow import NoRow
from dl3.bench.sides import Contestant, Entry, PairSettings
from dl3.bench.twocores import make_memif_dl3d
from dl3.bench.workplace import BUILD, Workplace
from dl3.model.comparison import Comparison, Pair
from dl3.model.fault import Fault, UsageFault
from dl3.record.facts import Facts

LEAST_RATIO = 0.98
PAIRS_PER_START = 1  # memory layout differs between starts and changes the rate by more than 2 %
OVER_MEMIF = "dl3d over memif"
OUR_PROGRAMS = ("dl3d", PORTABLE, OVER_MEMIF)
NAMES = (
    *("ipv4-1-route", "ipv4-1m-routes", "ipv6-1-route", "ipv6-200k-routes"),
    *("xconnect", "xconnect-mac", "memif-2-core"),
)
SHORT_NAMES = {"memif": "memif-2-core"}


def entries_named(names: Sequence[str]) -> dict[str, Entry]:
    """Our side of the named rows, or of all rows if none are named; no duplicates."""
    wanted = [SHORT_NAMES.get(name, name) for name in names]
    for name in wanted:
        if name not in NAMES:
            raise UsageFault(f"unknown row '{name}'; expected one of {', '.join(NAMES)}")
    return {row.name: row.ours for row in rows_named(wanted or NAMES)}


class Verdict(BaseModel):
    """One row: the median rates, and the ratios of its pairs."""

    model_config = ConfigDict(frozen=True)

    row: str
    now_mpps: float
    base_mpps: float
    ratio: float  # median of the pairs' ratios
    low: float
    high: float
    n_pairs: int
    core_share: float  # smallest of all samples
    passed: bool

    @classmethod
    def of(cls, row: str, pairs: Sequence[Pair]) -> "Verdict":
        """Build the row from these (now, base) pairs."""
        found = Comparison.of(row, pairs)
        return cls(
            row=row,
            now_mpps=found.ours,
            base_mpps=found.peer,
            ratio=found.middle,
            low=found.low,
            high=found.high,
            n_pairs=found.n_pairs,
            core_share=found.core_share,
            passed=found.middle >= LEAST_RATIO,
        )


class Outcome(BaseModel):
    """All rows, with the conditions they depend on."""

    model_config = ConfigDict(frozen=True)

    at: str
    base: str
    base_commit: str
    least_ratio: float = LEAST_RATIO
    pairs: int
    seconds_per_sample: float
    core: int
    burst: int
    facts: Facts
    base_idle: str = ""  # default `idle` of the base's dl3d; this tree's is facts.default_idle
    rows: tuple[Verdict, ...]
    missing: dict[str, str]  # rows that could not be measured here, with the reason

    @property
    def passed(self) -> bool:
        """Every row was measured and is fast enough."""
        return not self.missing and all(row.passed for row in self.rows)


@dataclass(frozen=True)
class Effort:
    """Number and duration of samples."""

    pairs: int = 15
    seconds: float = 0.5


@dataclass(frozen=True)
class Listener:
    """Receives the progress of the comparison."""

    pair_taken: Callable[[str, int], None]  # name of the row, and the number of new pairs
    row_done: Callable[[str, "Verdict | str"], None]  # or the reason why there is none


def check_readable(base: Base, row: str, core: int, config: str) -> None:
    """Both programs must accept the same configuration: Fault if the other commit's dl3d rejects it."""
    try:
        run(["taskset", "--cpu-list", str(core), base.dl3d, "--check", config])
    except Fault as fault:
        raise Fault(
            f"{row}: dl3d of {base.revision} does not accept the configuration of this tree: {fault}"
        ) from fault


def side_of(folder: str, entry: Entry, terms: PairSettings, place: Workplace) -> Contestant:
    """dl3d of one of the two builds; `folder` is below build/. Rows over memif use today's dl3gen."""
    if entry.program == OVER_MEMIF:
        return make_memif_dl3d(folder, entry, terms)
    return make_dl3d(folder, entry, terms, place)


def renamed(side: Contestant, place: Workplace) -> Contestant:
    """Started through a link in the workplace: a longer path of one program would shift its stack and its rate."""
    link = place.folder / f"dl3d-{place.next_number():06}"
    link.symlink_to(side.job.command[0])
    return replace(side, job=replace(side.job, command=(str(link), *side.job.command[1:])))


def sides_of(base: Base, entry: Entry, terms: PairSettings, place: Workplace) -> tuple[Contestant, Contestant]:
    """The current side and the base, not started; their configurations differ only in the control socket."""
    folders = (".", f"{base.name}/{base.build.name}")
    now, before = (renamed(side_of(folder, entry, terms, place), place) for folder in folders)
    return now, before


def take_pairs(start: Callable[[bool], list[Pair]], n_pairs: int, pair_taken: Callable[[int], None]) -> list[Pair]:
    """All pairs of a row, each from one start of both programs; the side started first alternates.

    A start that cannot be compared is repeated, in total at most as often as there are pairs.
    """
    pairs, again = list[Pair](), 0
    while len(pairs) < n_pairs:
        try:
            pairs += start(len(pairs) % 2 == 0)
        except NoRow:
            if again == n_pairs:
                raise
            again += 1
            continue
        pair_taken(1)
    return pairs


def take_row(
    base: Base, row: Row, terms: PairSettings, place: Workplace, effort: Effort, pair_taken: Callable[[int], None]
) -> Verdict:
    """Measure one row."""
    now, before = sides_of(base, row.ours, terms, place)
    check_equal(row, now, before)
    if row.ours.program != OVER_MEMIF:
        check_readable(base, row.name, terms.core, before.job.command[-1])

    def start(is_ours_first: bool) -> list[Pair]:
        sides = sides_of(base, row.ours, terms, place)
        return take_start(sides, is_ours_first, place, effort.seconds, PAIRS_PER_START)

    return Verdict.of(row.name, take_pairs(start, effort.pairs, pair_taken))


def run_rows(
    base: Base, entries: dict[str, Entry], terms: PairSettings, place: Workplace, effort: Effort, listener: Listener
) -> tuple[list[Verdict], dict[str, str]]:
    """All rows in sequence, and the reasons for those that could not be measured."""
    verdicts, missing = list[Verdict](), dict[str, str]()
    for name, entry in entries.items():
        row = Row(name, entry, Entry(f"dl3d of {base.short}"))
        try:
            verdicts.append(take_row(base, row, terms, place, effort, partial(listener.pair_taken, name)))
            listener.row_done(name, verdicts[-1])
        except NoRow as reason:
            missing[name] = str(reason)
            listener.row_done(name, str(reason))
    return verdicts, missing


def write(path: Path, outcome: Outcome) -> None:
    """Write the file atomically."""
    draft = path.with_suffix(".draft")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(
            json.dumps(outcome.model_dump() | {"passed": outcome.passed}, indent=1) + "\n", encoding="utf-8"
        )
        draft.replace(path)
    except OSError as error:
        raise Fault(f"{path} cannot be written: {error.strerror}") from error


OUTPUT = BUILD / "bench-against.json"
