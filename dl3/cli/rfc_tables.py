"""Tables of the results of the RFC 2544 tests, as printed by the command."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import fmean
from typing import Any

from dl3.bench.site import Found
from dl3.cli.answers import COLUMNS, row
from dl3.cli.rfc2544 import LATENCY_COLUMNS, latency_row
from dl3.model.answers import BackToBack, Forwarding, FrameLoss, OverLoads, Recovery, Reset
from dl3.model.campaign import TestName
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


def throughput_rows(answers: Sequence[Throughput]) -> Rows:
    """One row for each frame size and goal."""
    return (row(Found(answer, None)) for answer in answers)


def loss_rows(answers: Sequence[FrameLoss]) -> Rows:
    """One row for each load."""
    for answer in answers:
        for point in answer.points:
            yield answer.frame, f"{point.share:.0%}", mpps(point.pps), f"{point.loss_ratio:.4%}"


def unknown_loads(answers: Sequence[object]) -> Iterator[str]:
    """A sentence for each result over loads some of which have no valid trial."""
    for answer in answers:
        if isinstance(answer, OverLoads) and (shares := answer.invalid_shares):
            head = f"frames of {answer.frame}: loads without a valid trial: {len(shares)}"
            yield f"{head} (at {percents(shares)} % of the highest rate); their loss is unknown, see the report for the reasons"


def burst_rows(answers: Sequence[BackToBack]) -> Rows:
    """One row for each frame size."""
    for answer in answers:
        at_least = ">= " if answer.is_at_least else ""
        spread = f"{min(answer.bursts):,} to {max(answer.bursts):,}" if len(answer.bursts) > 1 else "-"
        times = (f"{answer.implied_buffer_s * 1e6:,.1f}", f"{answer.corrected_buffer_s * 1e6:,.1f}")
        yield answer.frame, f"{at_least}{answer.frames:,.0f}", spread, mpps(answer.burst_pps), *times


def recovery_rows(answers: Sequence[Recovery]) -> Rows:
    """One row for each frame size."""
    for answer in answers:
        mean, spread = milliseconds(answer.seconds)
        at_most = "<= " if answer.is_at_most else ""
        yield answer.frame, mpps(answer.overload_pps), mpps(answer.recovery_pps), f"{at_most}{mean}", spread


def reset_rows(answers: Sequence[Reset]) -> Rows:
    """One row for each kind."""
    for answer in answers:
        by_frames = fmean(answer.lost) / answer.offered_pps * 1000
        lost = f"{fmean(answer.lost):,.0f}"
        rest = (*milliseconds(answer.seconds), lost, f"{by_frames:,.3f}")
        yield answer.frame, answer.what, mpps(answer.offered_pps), *rest


def forwarding_rows(answers: Sequence[Forwarding]) -> Rows:
    """One row for each frame size."""
    for answer in answers:
        yield answer.frame, mpps(answer.at_most_offered_pps), mpps(answer.most_pps), mpps(answer.most_at_pps)


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
