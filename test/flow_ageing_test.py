"""Idle flows end within a second of their timeout while a worker forwards, and the control loop is never busy for long."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness.flow_witness import (
    IP4,
    IP4_TCP,
    LONGEST_TURN_MS,
    PATIENCE_S,
    SHORT_LIVED,
    Witness,
    actions,
    records,
    stream,
    witness,
    write_file,
)

from dl3.model.flow_file import FlowWriter
from dl3.model.generator_flows import Stream, n_flows

LATEST_S = 1.0
SAMPLE_EVERY_S = 0.02
ENDLESS_FLOWS = 65_536
PART_FLOWS = 1 << 20
RATE_OF_FLOWS = 1_000_000  # a second; a table ends about two million
RATE = "100 kpps"


@dataclass
class Curve:
    """A number that only grows, as it was some time between two moments."""

    before: list[float] = field(default_factory=list)
    after: list[float] = field(default_factory=list)
    value: list[int] = field(default_factory=list)

    def add(self, before: float, value: int) -> None:
        """It was read between `before` and now."""
        self.before.append(before)
        self.after.append(time.monotonic())
        self.value.append(value)

    def at_least(self, moment: float) -> int:
        """It was that much, at this moment."""
        n = np.searchsorted(self.after, moment, "right")
        return self.value[n - 1] if n else 0

    def at_most(self, moment: float) -> int:
        """It was not more, at this moment."""
        n = np.searchsorted(self.before, moment)
        return self.value[min(int(n), len(self.value) - 1)]


def _write_parts(folder: Path, streams: Sequence[Stream]) -> list[Path]:
    """Files with all flows of the streams."""
    paths: list[Path] = []
    for each in streams:
        for first in range(0, n_flows(each), PART_FLOWS):
            paths.append(folder / f"part{len(paths)}")
            with FlowWriter(paths[-1]) as writer:
                end = min(first + PART_FLOWS, n_flows(each))
                writer.add(records(each, np.arange(first, end, dtype=np.uint64)))
                writer.finish(actions(), 0)
    return paths


@dataclass
class Watch:
    """How many flows were added, and how many have ended, by time."""

    made: Witness
    timeout_s: int
    added: Curve = field(default_factory=Curve)
    ended: Curve = field(default_factory=Curve)
    loaded: int = 0  # from files that are finished
    seconds: float = 0.0  # that it took

    def sample(self) -> dict[str, Any]:
        """Read both; the job that loads."""
        before = time.monotonic()
        job: dict[str, Any] = self.made.dl3d.call("flows.job")
        self.added.add(before, self.loaded + int(job["done"]))
        before = time.monotonic()
        self.ended.add(before, int(self.made.dl3d.call("flows")["idle"]))
        return job

    def load(self, path: Path) -> None:
        """Load a file, not faster than at RATE_OF_FLOWS."""
        self.added.add(time.monotonic(), self.loaded)
        start_s = time.monotonic()
        self.made.dl3d.call("flows.load", path=str(path))
        job = self.sample()
        while job["state"] == "running" or time.monotonic() - start_s < job["done"] / RATE_OF_FLOWS:
            time.sleep(SAMPLE_EVERY_S)
            job = self.sample()
        assert (job["state"], job["refused"]) == ("done", 0), job
        self.loaded, self.seconds = self.loaded + job["done"], self.seconds + job["seconds"]

    def until(self, flows: int) -> None:
        """Sample until so many have ended."""
        deadline = time.monotonic() + PATIENCE_S
        while not self.ended.value or self.ended.value[-1] < flows:
            assert time.monotonic() < deadline, f"{self.ended.value[-1]:,} of {flows:,} flows have ended"
            job = self.sample()
            self.added.value[-1] -= int(job["done"])  # it is part of `loaded`
            time.sleep(SAMPLE_EVERY_S)

    def lateness(self) -> list[float]:
        """By how much the flows that were seen to have ended at each sample exceed their timeout, at most."""
        ended = np.array(self.ended.value)
        still_less = np.searchsorted(self.added.value, ended) - 1  # the last sample of fewer added ones
        is_new = np.flatnonzero(np.diff(ended)) + 1
        added = np.array(self.added.before)[still_less]
        late: list[float] = (np.array(self.ended.after) - added - self.timeout_s)[is_new].tolist()
        return late

    def check(self) -> None:
        """None ended early, and none late."""
        for before, after, value in zip(self.ended.before, self.ended.after, self.ended.value, strict=True):
            assert value <= self.added.at_most(after - self.timeout_s), "flows ended before their timeout"
            assert value >= self.added.at_least(before - self.timeout_s - LATEST_S), "flows ended too late"


@pytest.mark.timing  # measures when flows end
@pytest.mark.parametrize(
    ("flows", "timeout_s"),
    [
        pytest.param(1 << 16, 2, id="short"),
        pytest.param(1 << 24, 40, id="long", marks=[pytest.mark.long]),
    ],
)
def idle_flows_end_within_a_second_of_their_timeout(tmp_path: Path, flows: int, timeout_s: int) -> None:
    """131,072 or 33,554,432 flows are added, a million a second, and end after 2 or 40 s; others have packets."""
    idle = [stream(0, IP4, flows) | {"life": 1}, stream(1, IP4_TCP, flows) | {"life": 1}]
    endless = stream(2, SHORT_LIVED, ENDLESS_FLOWS)
    with witness(tmp_path, [*idle, endless], timeouts=[timeout_s]) as made:
        write_file(tmp_path / "endless", [endless])
        parts = _write_parts(tmp_path, idle)
        made.job("flows.load", path=str(tmp_path / "endless"))
        made.start([endless], rate=RATE, distribution="uniform")
        watch = Watch(made, timeout_s)
        for part in parts:
            watch.load(part)
        watch.until(sum(n_flows(each) for each in idle))
        results = made.finish()
        longest_ms, used = made.most_cpu_ms(), made.dl3d.call("flows")
    late = watch.lateness()
    print(
        f"loaded in {watch.seconds:.1f} s; {len(late)} samples, late by at most {np.quantile(late, 0.5):.2f} s (half),"
        f" {np.quantile(late, 0.9):.2f} s (9 of 10), {max(late):.2f} s (all);"
        f" longest turn of the control loop {longest_ms:.1f} ms of CPU"
    )
    watch.check()
    assert used["ipv4"]["flows"] == ENDLESS_FLOWS
    (reported,) = results.streams
    assert reported.lost == reported.refused
    assert reported.received > 0
    assert longest_ms < LONGEST_TURN_MS
