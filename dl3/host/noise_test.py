"""Snapshots of a machine, and what counts as noise."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dl3.host.noise import Look, Watch, frequencies, probe, reasons, stolen_ticks

STAT = """\
cpu  10 0 10 80 0 0 0 4 0 0
cpu0 5 0 5 40 0 0 0 1 3 0
cpu1 5 0 5 40 0 0 0 3 3 0
intr 12345
"""


def reads_what_was_stolen_of_each_core() -> None:
    assert stolen_ticks(STAT) == {0: (1, 51), 1: (3, 53)}
    assert stolen_ticks("") == {}
    assert stolen_ticks("cpu0 1 2 3\ncpux 1 2 3 4 5 6 7 8 9") == {}


def reads_frequencies_where_there_are_some(tmp_path: Path) -> None:
    for core, text in ((0, "2600000\n"), (3, "nonsense")):
        folder = tmp_path / f"cpu{core}" / "cpufreq"
        folder.mkdir(parents=True)
        (folder / "scaling_cur_freq").write_text(text)
    assert frequencies(tmp_path) == {0: 2600}
    assert frequencies(tmp_path / "none") == {}


QUIET = Look({0: (5, 1000), 1: (0, 1000)}, {0: 2600}, {0: 0.999, 1: 1.0}, {0: 20.0, 1: 137.0}, 80.0)


@pytest.mark.parametrize(
    ("after", "wanted"),
    [
        (Look({0: (10, 2000), 1: (5, 2000)}, {0: 2560}, {0: 0.98}, {0: 138.0}, 159.0), ()),
        (Look(), ()),
        (Look({0: (5, 2000), 1: (6, 2000)}), ("steal: the hypervisor took 0.6% of core 1",)),
        (Look(shares={1: 0.5}, pauses_us={1: 4000.0}), ("share: a probe received only 50.0% of core 1",)),
        (Look(shares={1: 0.99}, pauses_us={1: 4000.0}), ("stalls: a probe was preempted on core 1 for 4,000 us",)),
        (Look(mhz={0: 2000.0}), ("frequency: core 0 went from 2,600 to 2,000 MHz",)),
        (
            Look(round_trip_ns=450.0),
            ("distance: a cache line took 80 ns before and 450 ns after from core to core and back",),
        ),
    ],
)
def reports_what_is_beyond_the_limits(after: Look, wanted: tuple[str, ...]) -> None:
    assert reasons(QUIET, after) == wanted


def finds_itself_noisy_before_and_after() -> None:
    assert reasons(Look(shares={0: 0.9}), QUIET) == ("share: a probe received only 90.0% of core 0",)


def stands_on_the_core_that_it_probes_and_goes_back() -> None:
    allowed = os.sched_getaffinity(0)
    found = probe(max(allowed), 0.01)
    assert found
    assert 0 < found[0] <= 1.01
    assert found[1] > 0
    assert os.sched_getaffinity(0) == allowed
    assert probe(4095, 0.01) is None
    assert os.sched_getaffinity(0) == allowed


def finds_other_threads_that_use_the_core() -> None:
    core = max(os.sched_getaffinity(0))
    pid = os.fork()
    if pid == 0:
        os.sched_setaffinity(0, {core})
        while True:
            pass
    try:
        found = probe(core, 0.3)
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
    assert found
    assert found[0] < 0.9
    assert found[1] > 1000


def looks_while_the_measured_programs_stand_still() -> None:
    events: list[str] = []

    @contextmanager
    def aside() -> Iterator[None]:
        events.append("freeze")
        yield
        events.append("thaw")

    def distance() -> float:
        events.append("measure")
        return 90.0

    core = max(os.sched_getaffinity(0))
    seen = Watch((core,), distance, aside).look()
    assert events == ["freeze", "measure", "thaw"]
    assert (set(seen.shares), set(seen.stolen), seen.round_trip_ns) == ({core}, {core}, 90)


def probes_no_core_that_it_was_not_given() -> None:
    seen = Watch().look()
    assert (seen.shares, seen.round_trip_ns) == ({}, None)
    assert len(seen.stolen) >= 1
