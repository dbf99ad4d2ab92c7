"""The progress bar without a terminal."""

from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from dl3.cli import demo, progress
from dl3.cli.progress import Bar, Pace
from dl3.host.busy import Busy
from dl3.model.fault import Fault
from dl3.model.trial import Trial


def draws_nothing_and_leaves_no_empty_line_where_there_is_no_terminal() -> None:
    file = StringIO()
    with Bar(Console(file=file)) as bar:
        bar.on_left("64", 90.0)
        bar.on_fault("64", Fault("too little"))
        bar.on_left("64", 30.0)
    assert file.getvalue() == "64-byte frames: too little\n"


def _printed(*spoilt: bool, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(progress, "look", lambda: [Busy("stress", 7, 0.99)])
    file = StringIO()
    with Bar(Console(file=file, width=200)) as bar:
        for is_spoilt in spoilt:
            reasons = ("sink late",) if is_spoilt else ()
            bar.on_trial(Trial.model_construct(frame="64", asked_pps=1e6, invalid=reasons))
    return file.getvalue()


@pytest.mark.parametrize(
    "spoilt", [(True,) * 3, (True,) * 9, (False, *(True,) * 5), (True, True, False, *(True,) * 6)], ids=str
)
def reports_once_and_at_once_that_the_machine_is_too_busy(
    spoilt: tuple[bool, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = _printed(*spoilt, monkeypatch=monkeypatch)
    assert printed.count("the machine is too busy to measure") == 1
    assert "stress (pid 7, 99% of a core)" in printed


@pytest.mark.parametrize("spoilt", [(True, True), (True, True, False, True, True, True, True), (False,) * 9], ids=str)
def a_few_invalid_trials_are_nothing_unusual(spoilt: tuple[bool, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    assert "too busy" not in _printed(*spoilt, monkeypatch=monkeypatch)


def a_demo_without_a_result_fails_and_names_who_was_busy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def no_run(*_: object) -> Iterator[None]:
        yield

    monkeypatch.setattr(demo, "run_at", no_run)
    monkeypatch.setattr(demo, "search_all", lambda _: [])
    monkeypatch.setattr(demo, "latency_at", lambda *_: [])
    monkeypatch.setattr(demo, "look", lambda: [Busy("stress", 7, 0.99)])
    with pytest.raises(
        Fault, match=r"no page; other programs use the cores: stress \(pid 7, 99% of a core\); try again"
    ):
        demo.demo(tmp_path / "r.jsonl")


@pytest.mark.parametrize(
    ("steps", "left_s"),
    [
        pytest.param([(100, 0), (50, 50)], 50, id="on time"),
        pytest.param([(100, 0), (50, 100)], 50 * 125 / 75, id="twice as slow"),
        pytest.param([(100, 0), (50, 25)], 50 * 50 / 75, id="twice as fast"),
        pytest.param([(100, 0), (100, 100)], 500, id="no progress: every trial was INVALID"),
        pytest.param([(0, 0), (0, 10)], 0, id="nothing to do"),
    ],
)
def corrects_the_time_left_by_the_pace_so_far(steps: list[tuple[float, float]], left_s: float) -> None:
    pace = Pace()
    assert [pace.corrected(*step) for step in steps][-1] == pytest.approx(left_s)
