"""Conditions that make a trial INVALID: the generator fell behind, or packet accounting does not balance. Its loss then
counts against no device.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dl3.control.generator import GeneratorPort, Results, StreamResult
from dl3.model.evidence import Stalled
from dl3.trial.account import total
from dl3.trial.passage import Passage
from dl3.trial.stalls import LEAST_OUTSIDE, MOST_SHARE, Counts, late_in, share_of_time, stall_sentences, stalled_of

MOST_LATE = 0.001  # fraction of the frames due
MOST_PACING_ERROR = 0.001
MOST_TSC_OFFSET_NS = 100.0


@dataclass(frozen=True)
class Reason:
    """One sentence. `is_behind`: a lower load may avoid it. `is_stalled`: so may a shorter trial."""

    text: str
    is_behind: bool = False
    is_stalled: bool = False


def pacing_error(asked_pps: float, offered_pps: float) -> float:
    """(offered - asked) / asked; 0 if as fast as possible was requested."""
    return (offered_pps - asked_pps) / asked_pps if asked_pps else 0.0


def sender_reasons(streams: tuple[StreamResult, ...], stalled: Stalled, counts: Counts) -> Iterator[Reason]:
    """Check that the sender offered what was requested: the rate of a trial must be true, whatever stalled."""
    sent, late = total(streams, "sent"), total(streams, "late")
    if not sent:
        is_stalled = share_of_time(stalled, counts) > 1 - LEAST_OUTSIDE
        yield Reason("late: the generator sent nothing", is_behind=True, is_stalled=is_stalled)
        return
    if late > MOST_LATE * (sent + late):
        text = f"late: the generator skipped {late:,} frames ({late / (sent + late):.2%}) that were due"
        yield Reason(text, is_behind=True, is_stalled=late <= late_in(stalled, counts))
        return  # the rate cannot be right in this case
    for stream in streams:
        error = pacing_error(stream.asked_pps, stream.offered_pps)
        if stream.sent > 1 and abs(error) > max(MOST_PACING_ERROR, 2 / stream.sent):
            side = "below" if error < 0 else "above"
            yield Reason(
                f"pacing: stream '{stream.name}' was offered {abs(error):.2%} {side} its rate",
                is_behind=error < 0,
                is_stalled=0 < -error <= share_of_time(stalled, counts),  # a stall at the end: the last frame was late
            )


def sink_reasons(results: Results, stalled: Stalled) -> Iterator[Reason]:
    """Check that the receiver polled in time for every frame, apart from its stalls."""
    ends = {stream.to_port for stream in results.streams}
    missed = sum(port.rx_missed or 0 for port in results.ports if port.name in ends)
    if missed > stalled.frames:
        yield Reason(
            f"sink late: the generator's ports dropped {missed:,} frames that were not polled in time", is_behind=True
        )


def stall_reasons(stalled: Stalled, counts: Counts, goals: Sequence[float], most: float) -> Iterator[Reason]:
    """Check that the stalls of sender and sink cost so little that the trial counts: see dl3/trial/stalls.py."""
    for sentence in stall_sentences(stalled, counts, goals, most):
        yield Reason(sentence, is_behind=True, is_stalled=True)


def account_reasons(streams: tuple[StreamResult, ...]) -> Iterator[Reason]:
    """Check that sent = received + lost, and that the loss counted from sequence gaps is the same."""
    for stream in streams:
        if stream.lost != stream.sent - stream.received or stream.lost < 0:
            yield Reason(
                f"accounting: stream '{stream.name}' sent {stream.sent:,}, received {stream.received:,} and "
                f"lost {stream.lost:,} frames"
            )
        elif stream.lost != stream.lost_by_gaps:
            yield Reason(
                f"accounting: stream '{stream.name}' lost {stream.lost:,} frames, but {stream.lost_by_gaps:,} "
                "by the gaps in its sequence numbers"
            )


def passage_reasons(passage: Passage | None) -> Iterator[Reason]:
    """Check that received + injected + copied = sent + punted + named drops."""
    if not passage:
        return
    if not passage.is_whole:
        yield Reason("accounting: dl3d's counters decreased: it was restarted during the trial")
    elif passage.missing or passage.named != passage.dropped:
        yield Reason(
            f"accounting: dl3d received {passage.received:,}, injected {passage.injected:,} and copied {passage.copied:,} packets,"
            f" sent {passage.sent:,}, punted {passage.punted:,} and dropped {passage.named:,} by name; {passage.missing:,} are missing"
        )


def link_reasons(results: Results) -> Iterator[Reason]:
    """Check that all ports in use still have a link."""
    used = {name for stream in results.streams for name in (stream.from_port, stream.to_port)}
    down: list[GeneratorPort] = [port for port in results.ports if port.name in used and not port.link_up]
    yield from (Reason(f"link: port '{port.name}' of the generator lost its link") for port in down)


def burst_reasons(results: Results, frames: int) -> Iterator[Reason]:
    """Check that a burst had its full length."""
    late = total(results.streams, "late")
    if frames and late:
        yield Reason(f"burst: {late:,} of {frames:,} frames were skipped because the generator was late", True)


@dataclass(frozen=True)
class Judged:
    """What a trial is judged by, besides the counters of dl3gen."""

    passage: Passage | None = None  # of dl3d
    frames: int = 0  # requested number of frames; 0: limited by time
    goals: tuple[float, ...] = ()  # see dl3.trial.order
    most_error: float = MOST_SHARE  # see dl3.trial.stalls
    stalled: Stalled | None = None  # None: only what the ports' own counters tell


def reasons(results: Results, judged: Judged | None = None) -> list[Reason]:
    """All reasons why the trial is INVALID; empty if it is valid. Receiving nothing at all counts as loss."""
    judged = judged or Judged()
    stalled, counts = judged.stalled or stalled_of(results, None, {}, ()), Counts.of(results)
    offset = abs(results.tsc_offset_ns)
    apart = [Reason(f"clock: the TSCs of two workers are {offset:.0f} ns apart")] if offset > MOST_TSC_OFFSET_NS else []
    return [
        *link_reasons(results),
        *sender_reasons(results.streams, stalled, counts),
        *burst_reasons(results, judged.frames),
        *sink_reasons(results, stalled),
        *stall_reasons(stalled, counts, judged.goals, judged.most_error),
        *account_reasons(results.streams),
        *passage_reasons(judged.passage),
        *apart,
    ]
