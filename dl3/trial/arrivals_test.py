"""Logs of arrivals with known rates, bursts and delays."""

from pathlib import Path

import numpy as np
import pytest

from dl3.trial.arrivals import RECORD, Arrivals, Columns, delay_of, jain, read

BYTES = 1000


def _frames(flow: int, times_ns: list[int], size: int = BYTES) -> Columns:
    made = np.zeros(len(times_ns), RECORD)
    made["at_ns"], made["flow"], made["bytes"] = times_ns, flow, size
    made["delay_ns"] = np.arange(len(times_ns)) * 1000
    return made


def _paced(flow: int, every_ns: int, seconds: float = 2.0) -> Columns:
    return _frames(flow, list(range(0, int(seconds * 1e9), every_ns)))


def _of(parts: list[Columns], rates: list[float], begin_s: float = 0.0, end_s: float = 2.0) -> Arrivals:
    return Arrivals.of(parts, np.array(rates), begin_s, end_s)


def a_paced_subscriber_has_its_rate_and_a_burst_of_one_frame() -> None:
    found = _of([_paced(0, 1_000_000)], [8e6])  # 1000 bytes a millisecond
    assert found.shares() == pytest.approx([1.0])
    assert found.burst().bytes == pytest.approx(BYTES)
    assert [(one.seconds, one.low, one.high) for one in found.windows()] == [
        (0.01, 1.0, 1.0),
        (0.1, 1.0, 1.0),
        (1.0, 1.0, 1.0),
    ]


def the_classes_of_a_subscriber_count_together() -> None:
    other = _frames(0, list(range(1_000_000, 2_000_000_000, 2_000_000)))
    found = _of([_paced(0, 2_000_000), other], [8e6])
    assert found.shares() == pytest.approx([1.0])
    assert found.burst().bytes == pytest.approx(BYTES)


def each_subscriber_is_measured_by_its_own_rate() -> None:
    rates = [8e6, 4e6, 2e6]
    parts = [_paced(0, 1_000_000), _paced(1, 2_000_000), _paced(2, 8_000_000)]
    assert _of(parts, rates).shares() == pytest.approx([1.0, 1.0, 0.5])


def a_burst_is_found_in_the_middle_of_a_paced_stream() -> None:
    times = list(range(0, 1_000_000_000, 1_000_000))
    late = [time if not 500_000_000 <= time < 510_000_000 else 510_000_000 for time in times]
    found = _of([_frames(0, late), _paced(1, 1_000_000)], [8e6, 8e6])
    assert found.burst().bytes == pytest.approx(11 * BYTES)  # ten that waited, and the one that is due
    assert found.burst().at_ns == 510_000_000


def a_subscriber_that_got_nothing_is_unfair() -> None:
    found = _of([_paced(0, 1_000_000), _frames(2, [5])], [8e6, 8e6, 8e6])
    shares = found.shares()
    assert list(shares) == [pytest.approx(1.0), 0.0, 0.0]
    assert jain(shares) == pytest.approx(1 / 3)
    assert found.windows()[0].low == 0.0


def equal_shares_are_fair() -> None:
    assert jain(np.full(1000, 0.7)) == pytest.approx(1.0)
    assert jain(np.zeros(3)) == 0.0


def what_came_outside_of_the_part_does_not_count() -> None:
    found = _of([_frames(0, [0, 1, 2]), _paced(0, 1_000_000)], [8e6], begin_s=0.5, end_s=1.5)
    assert found.at_ns.size == 1000
    assert found.shares() == pytest.approx([1.0])


def nothing_at_all_has_neither_bursts_nor_windows() -> None:
    found = _of([], [8e6])
    assert list(found.shares()) == [0.0]
    assert found.burst().bytes == 0.0
    assert found.windows() == ()
    assert delay_of(_frames(0, [])).n == 0


def delays_are_those_of_the_log() -> None:
    spread = delay_of(_frames(0, list(range(101))))
    assert (spread.n, spread.min, spread.p50, spread.max) == (101, 0.0, 50_000.0, 100_000.0)


def a_file_has_records_of_24_bytes(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(_frames(7, [1, 2]).tobytes())
    assert path.stat().st_size == 48
    assert list(read(path)["flow"]) == [7, 7]
