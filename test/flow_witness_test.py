"""Each frame of each flow is judged by dl3gen: its port, its DSCP, and how often dl3d says that it has come."""

import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness.flow_witness import (
    IP4,
    IP4_TCP,
    IP6_TCP,
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


def _all_flows(given: Stream) -> U64:
    return np.arange(n_flows(given), dtype=np.uint64)


def _check_run(streams: Sequence[Stream], results: Results) -> None:
    """Nothing is lost in dl3d, and no frame has a wrong action."""
    for each, reported in zip(streams, results.streams, strict=True):
        assert reported.lost == reported.refused, (each, reported)
        assert (reported.corrupted, reported.duplicated, reported.too_old) == (0, 0, 0), (each, reported)
        assert reported.expect
        assert reported.expect.wrong == 0, (each, reported.expect)
        assert reported.expect.checked == reported.received > 0
    assert sum(port.misdirected + port.foreign for port in results.ports) == 0


def _run(made: Witness, streams: Sequence[Stream], **more: Any) -> list[U64]:
    """Send, judge, and return what was received of each flow: just what was sent, if no ring was full."""
    made.start(streams, **more)
    results = made.finish()
    _check_run(streams, results)
    counts = []
    for each, reported in zip(streams, results.streams, strict=True):
        received = made.received(reported)
        sent = frames_per_flow({**each, **more}, reported.sent)
        assert (received <= sent).all(), (each, more)
        assert int((sent - received).sum()) == reported.refused, (each, more)
        counts.append(received)
    return counts


def _check_saved(streams: Sequence[Stream], saved: Saved, received: Sequence[U64]) -> None:
    """Entry by entry."""
    packets = np.concatenate(list(received))
    sizes = np.concatenate([np.full(n_flows(each), each["size"] - FCS, np.uint64) for each in streams])
    assert (saved.packets == packets).all(), streams
    assert (saved.bytes == packets * sizes).all(), streams


def _check_each_frame(folder: Path, streams: Sequence[Stream], frames: int, rate: str) -> None:
    with witness(folder, streams) as made:
        assert write_file(folder / "flows", streams) == sum(n_flows(each) for each in streams)
        loaded = made.job("flows.load", path=str(folder / "flows"))
        in_turn = _run(made, streams, frames=max(n_flows(each) for each in streams), rate=rate)
        seed = secrets.randbits(32)
        scattered = _run(made, streams, frames=frames, rate=rate, distribution="uniform", seed=seed)
        stored = made.job("flows.save", path=str(folder / "saved"))
        saved = read_saved(folder / "saved", streams)
    _check_saved(streams, saved, [one + other for one, other in zip(in_turn, scattered, strict=True)])
    wanted = np.concatenate([number_of(expected(each, _all_flows(each))) for each in streams])
    assert (saved.action == wanted).all()
    print(f"seed {seed}; loaded in {loaded['seconds']} s, saved in {stored['seconds']} s")


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


def _ended_packets(made: Witness) -> int:
    """The final counters of all flows that have ended."""
    packets, page = 0, made.dl3d.call("flows.ended")
    while page["flows"]:
        assert page["lost"] == 0
        packets += sum(int(row["packets"]) for row in page["flows"])
        page = made.dl3d.call("flows.ended", after=page["next"])
    return packets


def _churn(made: Witness, folder: Path) -> tuple[int, float]:
    """Give a fifth of the flows their other action, and back, until dl3gen has ended; the changes, and their seconds."""
    n, seconds = 0, 0.0
    while made.dl3gen.results().state == "sending":
        for name in ("other", "first"):
            job = made.job("flows.load", path=str(folder / name), op="replace")
            n, seconds = n + job["done"], seconds + job["seconds"]
    return n, seconds


@pytest.mark.parametrize(
    ("flows", "frames", "rate"),
    [
        pytest.param(65_536, 300_000, "100 kpps", id="short"),
        pytest.param(1 << 21, 18_000_000, "300 kpps", id="long", marks=[pytest.mark.long, pytest.mark.alone]),
    ],
)
def flows_that_change_have_the_old_or_the_new_action(tmp_path: Path, flows: int, frames: int, rate: str) -> None:
    """A fifth of the flows changes all the time; the long one does so for a minute."""
    streams = [stream(0, IP4, flows, EVERY), stream(1, IP4_TCP, flows, EVERY)]
    with witness(tmp_path, streams) as made:
        write_file(tmp_path / "flows", streams)
        n_changed = write_file(tmp_path / "first", streams, every=EVERY)
        assert write_file(tmp_path / "other", streams, "alternative", EVERY) == n_changed
        made.job("flows.load", path=str(tmp_path / "flows"))
        made.start(streams, frames=frames, rate=rate, distribution="uniform", seed=secrets.randbits(32))
        changes, seconds = _churn(made, tmp_path)
        results = made.finish()
        _check_run(streams, results)
        received = [made.received(reported) for reported in results.streams]
        wait_until(lambda: made.dl3d.call("flows")["ipv4"]["flows"] == 2 * flows, "all flows were there")
        made.job("flows.save", path=str(tmp_path / "saved"))
        ended = _ended_packets(made)
        saved = read_saved(tmp_path / "saved", streams)
    _check_saved(streams, saved, received)
    assert int(saved.packets.sum()) + ended == sum(reported.received for reported in results.streams)
    assert sum(reported.expect.alternative for reported in results.streams if reported.expect) > 0, streams
    print(f"{changes:,} changes, {changes / max(seconds, 1e-3):,.0f} per second")
