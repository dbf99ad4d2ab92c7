"""Each frame of each flow is judged by dl3gen: its port, its DSCP, and how often dl3d says that it has come."""

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness.flow_witness import (
    IP4,
    IP4_TCP,
    IP6_TCP,
    PATIENCE_S,
    SHORT_LIVED,
    Saved,
    Witness,
    number_of,
    read_saved,
    stream,
    witness,
    write_file,
)
from harness.wire import wait_until

from dl3.control.generator import Results
from dl3.model.generator_flows import U64, Stream, expected, frames_per_flow, n_flows

FCS = 4
EVERY = 5
BRIEF_FLOWS = 1000
MOST_TURNS = 20


def _all_flows(given: Stream) -> U64:
    return np.arange(n_flows(given), dtype=np.uint64)


def _check_actions(streams: Sequence[Stream], results: Results) -> None:
    """No frame has a wrong action, or is on a wrong port."""
    for each, reported in zip(streams, results.streams, strict=True):
        assert (reported.corrupted, reported.duplicated, reported.too_old) == (0, 0, 0), (each, reported)
        assert reported.expect
        assert reported.expect.wrong == 0, (each, reported.expect)
        assert reported.expect.checked == reported.received > 0
    assert sum(port.misdirected + port.foreign for port in results.ports) == 0


def _run(made: Witness, streams: Sequence[Stream], frames: int, **more: Any) -> list[U64]:
    """Send so many frames, judge, and return what was received of each flow: just what was sent, if no ring was full."""
    made.start(streams, **more)
    wait_until(lambda: made.has_sent(frames), f"{frames:,} frames of each stream were sent", PATIENCE_S)
    results = made.finish()
    _check_actions(streams, results)
    counts = []
    for each, reported in zip(streams, results.streams, strict=True):
        assert reported.lost == reported.refused, (each, more)
        received = made.received(reported)
        sent = frames_per_flow({**each, **more}, reported.sent)
        assert (received <= sent).all(), (each, more)
        assert int((sent - received).sum()) == reported.refused, (each, more)
        counts.append(received)
    return counts


def _run_in_turn(made: Witness, streams: Sequence[Stream], rate: str) -> list[U64]:
    """Send each flow in turn until dl3gen has received all of them: again if some frames found a full ring."""
    received = [np.zeros(n_flows(each), np.uint64) for each in streams]
    for _ in range(MOST_TURNS):
        more = _run(made, streams, max(n_flows(each) for each in streams), rate=rate)
        received = [one + other for one, other in zip(received, more, strict=True)]
        if missed := sum(int((each == 0).sum()) for each in received):
            print(f"{missed:,} flows without a frame")
        else:
            return received
    raise AssertionError(f"{missed:,} flows have had no frame in {MOST_TURNS} turns")


def _check_saved(streams: Sequence[Stream], saved: Saved, received: Sequence[U64]) -> None:
    """Entry by entry."""
    packets = np.concatenate(list(received))
    sizes = np.concatenate([np.full(n_flows(each), each["size"] - FCS, np.uint64) for each in streams])
    assert (saved.packets == packets).all(), streams
    assert (saved.bytes == packets * sizes).all(), streams


def _check_each_frame(folder: Path, streams: Sequence[Stream], frames: int, rate: str) -> None:
    with witness(folder, streams) as made:
        assert write_file(folder / "flows", streams) == sum(n_flows(each) for each in streams)
        seed = secrets.randbits(32)
        print(f"seed {seed}, streams {streams}")
        loaded = made.job("flows.load", path=str(folder / "flows"))
        in_turn = _run_in_turn(made, streams, rate)
        scattered = _run(made, streams, frames, rate=rate, distribution="uniform", seed=seed)
        stored = made.job("flows.save", path=str(folder / "saved"))
        longest_ms = made.most_cpu_ms()
        saved = read_saved(folder / "saved", streams)
    _check_saved(streams, saved, [one + other for one, other in zip(in_turn, scattered, strict=True)])
    wanted = np.concatenate([number_of(expected(each, _all_flows(each))) for each in streams])
    assert (saved.action == wanted).all()
    print(f"loaded in {loaded['seconds']:.1f} s, saved in {stored['seconds']:.1f} s; longest turn {longest_ms:.1f} ms")


def each_frame_of_each_flow_is_counted_and_has_its_action(tmp_path: Path) -> None:
    """131,072 flows of both families, each of which is sent a few times."""
    streams = [stream(0, IP4, 65_536), stream(1, IP6_TCP, 65_536)]
    _check_each_frame(tmp_path, streams, 150_000, "100 kpps")


@pytest.mark.long
@pytest.mark.alone  # a core for each program, and 12 GB of memory
def each_frame_of_33_million_flows_is_counted_and_has_its_action(tmp_path: Path) -> None:
    """All flows that two streams can have: files of 2 GB, 67 million frames."""
    streams = [stream(0, IP4, 1 << 24), stream(1, IP4_TCP, 1 << 24)]
    _check_each_frame(tmp_path, streams, 1 << 24, "500 kpps")


@dataclass
class Churn:
    """Flows change, and some end, as fast as dl3d applies it; what has come of it."""

    made: Witness
    turns: int = 0
    changes: int = 0
    seconds: float = 0.0
    ended: int = 0  # flows
    packets: int = 0  # of these
    after: int = 0

    def load(self, name: str, op: str) -> None:
        """Apply a file."""
        job = self.made.job("flows.load", path=str(self.made.folder / name), op=op)
        self.changes, self.seconds = self.changes + job["done"], self.seconds + job["seconds"]

    def read_ended(self) -> None:
        """The final counters of the flows that have ended since the last time; none is missed."""
        more = True
        while more:
            page = self.made.dl3d.call("flows.ended", after=self.after, limit=2000)
            assert page["lost"] == 0
            self.ended, self.after = self.ended + len(page["ended"]), page["next"]
            self.packets += sum(int(row["packets"]) for row in page["ended"])
            more = page["more"]

    def has_read_all(self) -> bool:
        """Whether the final counters of all short-lived flows were read: workers must have passed them first."""
        self.read_ended()
        return self.ended == self.turns * BRIEF_FLOWS

    def turn(self) -> None:
        """Give a fifth of the flows their other action, and back; delete the short-lived ones and add them again."""
        self.turns += 1
        self.load("other", "replace")
        self.load("brief", "delete")
        self.load("first", "replace")
        self.load("brief", "replace")
        self.read_ended()


def _write_files(folder: Path, lasting: Sequence[Stream], brief: Stream) -> None:
    write_file(folder / "flows", [*lasting, brief])
    write_file(folder / "first", lasting, every=EVERY)
    write_file(folder / "other", lasting, "alternative", EVERY)
    write_file(folder / "brief", [brief])


@pytest.mark.parametrize(
    ("flows", "changes", "frames", "rate"),
    [
        pytest.param(65_536, 1_000_000, 200_000, "100 kpps", id="short"),
        pytest.param(
            1 << 21, 60_000_000, 2_000_000, "300 kpps", id="long", marks=[pytest.mark.long, pytest.mark.alone]
        ),
    ],
)
def flows_that_change_have_the_old_or_the_new_action(
    tmp_path: Path, flows: int, changes: int, frames: int, rate: str
) -> None:
    """A fifth of the flows changes all the time, and others end and begin: in the long one a million times a second
    for a minute, or more slowly for longer.
    """
    lasting = [stream(i, fields, flows, EVERY) for i, fields in enumerate((IP4, IP4_TCP))]
    brief = stream(2, SHORT_LIVED, BRIEF_FLOWS)
    streams = [*lasting, brief]
    seed = secrets.randbits(32)
    print(f"seed {seed}, streams {streams}")
    with witness(tmp_path, streams) as made:
        _write_files(tmp_path, lasting, brief)
        made.job("flows.load", path=str(tmp_path / "flows"))
        churn = Churn(made)
        made.start(streams, rate=rate, distribution="uniform", seed=seed)
        start_s = time.monotonic()
        while churn.changes < changes or not made.has_sent(frames):
            churn.turn()
            assert time.monotonic() - start_s < PATIENCE_S, (
                f"{churn.changes:,} changes, {made.dl3gen.results().streams}"
            )
        results = made.finish()
        received = [made.received(reported) for reported in results.streams]
        made.job("flows.save", path=str(tmp_path / "saved"))
        wait_until(churn.has_read_all, "all that had ended were read")
        saved, missing, longest_ms = read_saved(tmp_path / "saved", streams), made.missing(), made.most_cpu_ms()
    _check_actions(streams, results)
    *kept, short_lived = results.streams
    assert [each.lost for each in kept] == [each.refused for each in kept]
    assert short_lived.lost == short_lived.refused + missing
    _check_saved(lasting, saved.first(2 * flows), received[:2])
    live = int(saved.packets[2 * flows :].sum())
    assert live + churn.packets == short_lived.received
    assert (saved.packets[2 * flows :] <= received[2]).all()
    assert churn.packets > 0
    assert missing > 0
    assert all(each.expect and each.expect.alternative > 0 for each in kept)
    rate_of_changes = churn.changes / max(churn.seconds, 1e-3)
    print(
        f"{churn.changes:,} changes, {rate_of_changes:,.0f} per second; {churn.ended:,} flows ended, {missing:,} missing;"
        f" frames received in {results.seconds:.0f} s: {sum(each.received for each in results.streams):,};"
        f" longest turn {longest_ms:.1f} ms"
    )
