"""Tables of the results of the RFC 2544 tests, as printed by the command."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import fmean
from typing import Any

from dl3.bench.site import Found
from dl3.cli.results import COLUMNS, row
from dl3.cli.rfc2544 import LATENCY_COLUMNS, latency_row
from dl3.model.campaign import TestName
from dl3.model.results import BackToBack, Forwarding, FrameLoss, OverLoads, Recovery, Reset
from dl3.model.trial import Throughput
from dl3.report.units import percents

Rows = Iterable[Sequence[object]]


def mpps(pps: float) -> str:
    """Formatted for the table."""
    return f"{pps / 1e6:.3f}"


def milliseconds(seconds: Sequence[float]) -> tuple[str, str]:
    """Mean, minimum and maximum."""
    low, high = min(seconds) * 1000, max(seconds) * 1000
    return f"{fmean(seconds) * 1000:,.3f}", f"{low:,.3f} to {high:,.3f}" if len(seconds) > 1 else "-"


def throughput_rows(results: Sequence[Throughput]) -> Rows:
    """One row for each frame size and goal."""
    return (row(Found(result, None)) for result in results)


def loss_rows(results: Sequence[FrameLoss]) -> Rows:
    """One row for each load."""
    for result in results:
        for point in result.points:
            yield result.frame, f"{point.share:.0%}", mpps(point.pps), f"{point.loss_ratio:.4%}"


def unknown_loads(results: Sequence[object]) -> Iterator[str]:
    """A sentence for each result over loads some of which have no valid trial."""
    for result in results:
        if isinstance(result, OverLoads) and (shares := result.invalid_shares):
            head = f"frames of {result.frame}: loads without a valid trial: {len(shares)}"
            yield f"{head} (at {percents(shares)} % of the highest rate); their loss is unknown, see the report for the reasons"


def burst_rows(results: Sequence[BackToBack]) -> Rows:
    """One row for each frame size."""
    for result in results:
        at_least = ">= " if result.is_at_least else ""
        spread = f"{min(result.bursts):,} to {max(result.bursts):,}" if len(result.bursts) > 1 else "-"
        times = (f"{result.implied_buffer_s * 1e6:,.1f}", f"{result.corrected_buffer_s * 1e6:,.1f}")
        yield result.frame, f"{at_least}{result.frames:,.0f}", spread, mpps(result.burst_pps), *times


def recovery_rows(results: Sequence[Recovery]) -> Rows:
    """One row for each frame size."""
    for result in results:
        mean, spread = milliseconds(result.seconds)
        at_most = "<= " if result.is_at_most else ""
        yield result.frame, mpps(result.overload_pps), mpps(result.recovery_pps), f"{at_most}{mean}", spread


def reset_rows(results: Sequence[Reset]) -> Rows:
    """One row for each kind."""
    for result in results:
        by_frames = fmean(result.lost) / result.offered_pps * 1000
        lost = f"{fmean(result.lost):,.0f}"
        rest = (*milliseconds(result.seconds), lost, f"{by_frames:,.3f}")
        yield result.frame, result.what, mpps(result.offered_pps), *rest


def forwarding_rows(results: Sequence[Forwarding]) -> Rows:
    """One row for each frame size."""
    for result in results:
        yield result.frame, mpps(result.at_most_offered_pps), mpps(result.most_pps), mpps(result.most_at_pps)


# Heading, columns and rows of each test.
TABLES: dict[TestName, tuple[str, tuple[str, ...], Callable[[Any], Rows]]] = {
    "throughput": (
        "throughput (RFC 2544, 26.1, RFC 9971); Gbit/s with preamble and gap",
        COLUMNS,
        throughput_rows,
    ),
    "latency": (
        "latency (26.2), from the time at which a frame was due",
        LATENCY_COLUMNS,
        lambda trials: (latency_row(trial) for trial in trials),
    ),
    "frame loss": ("frame loss rate (26.3)", ("frame", ">load", ">Mpps", ">lost"), loss_rows),
    "back-to-back": (
        "back-to-back frames (26.4, RFC 9004)",
        ("frame", ">longest burst", ">spread", ">at Mpps", ">buffer us", ">corrected us"),
        burst_rows,
    ),
    "recovery": (
        "system recovery (26.5), from the drop of the load to the last lost frame",
        ("frame", ">from Mpps", ">to Mpps", ">ms", ">spread"),
        recovery_rows,
    ),
    "reset": (
        "reset (26.6), from the last frame before to the first frame after it, and by lost frames",
        ("frame", "of", ">at Mpps", ">ms", ">spread", ">lost", ">ms by lost"),
        reset_rows,
    ),
    "forwarding": (
        "forwarding rates (RFC 2889, 5.1): at the maximum offered load, and the highest",
        ("frame", ">FRMOL Mpps", ">MFR Mpps", ">MFR at Mpps"),
        forwarding_rows,
    ),
}
