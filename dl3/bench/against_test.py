"""The comparison with another commit: rows, starts, verdicts."""

import json
from pathlib import Path

import pytest

from dl3.bench.against import LEAST_RATIO, NAMES, Outcome, Verdict, entries_named, renamed, take_pairs, write
from dl3.bench.norow import NoRow
from dl3.bench.onecore import Job
from dl3.bench.sides import Contestant
from dl3.bench.workplace import Workplace
from dl3.model.comparison import Pair
from dl3.model.fault import Fault, UsageFault
from dl3.model.sample import Sample
from dl3.record.facts import Facts

FACTS = Facts(
    cpu_model="",
    n_cpus=2,
    caches={},
    numa_nodes={},
    kernel="",
    kernel_command_line="",
    huge_pages_2m=0,
    huge_pages_2m_free=0,
    memory_mib=0,
    dpdk="",
    compiler="",
    build_flags="",
    network_devices=[],
)


def sample(mpps: float, share: float = 1.0) -> Sample:
    return Sample(0.5, share, mpps * 1e6, mpps * 1e6, 100.0)


def pair(now: float, base: float) -> Pair:
    return sample(now), sample(base)


def outcome(*rows: Verdict, missing: dict[str, str] | None = None) -> Outcome:
    return Outcome(
        at="2024-01-01T00:00:00Z",
        base="HEAD~1",
        base_commit="0" * 40,
        pairs=3,
        seconds_per_sample=0.5,
        core=0,
        burst=64,
        facts=FACTS,
        rows=rows,
        missing=missing or {},
    )


def takes_the_median_of_the_ratios_and_not_the_ratio_of_the_medians() -> None:
    row = Verdict.of("row", [pair(10, 10), pair(30, 20), pair(9, 30)])
    assert (row.now_mpps, row.base_mpps) == (10, 20)
    assert (row.ratio, row.low, row.high) == (1.0, 0.3, 1.5)
    assert (row.n_pairs, row.passed) == (3, True)


@pytest.mark.parametrize(("ratio", "passes"), [(LEAST_RATIO, True), (0.9799, False), (1.2, True)])
def passes_a_row_from_the_least_ratio_on(ratio: float, passes: bool) -> None:
    assert Verdict.of("row", [pair(10 * ratio, 10)]).passed is passes


def passes_when_every_row_was_measured_and_is_fast_enough() -> None:
    good, bad = Verdict.of("good", [pair(10, 10)]), Verdict.of("bad", [pair(9, 10)])
    assert outcome(good).passed
    assert not outcome(good, bad).passed
    assert not outcome(good, missing={"memif-2-core": "it needs a second core"}).passed


def has_the_rows_of_forwarding_by_default() -> None:
    assert tuple(entries_named([])) == NAMES
    assert entries_named(["xconnect-mac"])["xconnect-mac"].mode == "xconnect-mac"


def takes_each_row_once_and_memif_by_its_short_name() -> None:
    assert tuple(entries_named(["memif", "xconnect", "memif-2-core"])) == ("memif-2-core", "xconnect")


@pytest.mark.parametrize("name", ["ipv5", "sink", "generator-memif"])
def names_the_rows_when_one_is_unknown_or_not_of_dl3d(name: str) -> None:
    with pytest.raises(UsageFault, match=f"unknown row '{name}'; expected one of ipv4-1-route, "):
        entries_named([name])


def starts_both_programs_anew_for_each_pair_beginning_with_the_other_side() -> None:
    seen, reported = list[bool](), list[int]()

    def start(is_ours_first: bool) -> list[Pair]:
        seen.append(is_ours_first)
        return [pair(1, 1)]

    assert len(take_pairs(start, 3, reported.append)) == 3
    assert seen == [True, False, True]
    assert reported == [1, 1, 1]


def repeats_a_start_that_compares_nothing_but_not_forever() -> None:
    left = iter([True, False, True, False])

    def start(_: bool) -> list[Pair]:
        if next(left, True):
            raise NoRow("too little was offered")
        return [pair(1, 1)]

    assert len(take_pairs(start, 2, lambda _: None)) == 2
    with pytest.raises(NoRow, match="too little was offered"):
        take_pairs(start, 2, lambda _: None)


def starts_both_programs_by_paths_of_the_same_length(tmp_path: Path) -> None:
    place = Workplace(tmp_path, tmp_path / "onecore.so")
    sides = [Contestant(Job("x", (str(tmp_path / name), "file"), Path("t")), "native") for name in ("a", "longer")]
    links = [Path(renamed(side, place).job.command[0]) for side in sides]
    assert [link.readlink().name for link in links] == ["a", "longer"]
    assert len(str(links[0])) == len(str(links[1]))


def writes_the_verdict_beside_the_rows(tmp_path: Path) -> None:
    path = tmp_path / "build" / "bench-against.json"
    write(path, outcome(Verdict.of("row", [pair(9, 10)])))
    found = json.loads(path.read_text(encoding="utf-8"))
    assert (found["passed"], found["rows"][0]["ratio"], found["least_ratio"]) == (False, 0.9, 0.98)


def reports_which_file_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Fault, match="cannot be written"):
        write(tmp_path / "file" / "x.json", outcome())
