"""Conditions that make a trial INVALID: the generator fell behind, or packet accounting does not balance. Its loss then
counts against no device.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from dl3.control.generator import GeneratorPort, Results, StreamResult
from dl3.trial.account import total
from dl3.trial.passage import TX_REFUSED, Passage

MOST_LATE = 0.001  # fraction of the frames due
MOST_PACING_ERROR = 0.001
MOST_TSC_OFFSET_NS = 100.0
MOST_SINK_LOSS = 0.001  # fraction of the frames sent, if the device itself lost more than the sink


@dataclass(frozen=True)
class Reason:
    """One sentence. `is_behind`: a lower load may avoid it."""

    text: str
    is_behind: bool = False


def pacing_error(asked_pps: float, offered_pps: float) -> float:
    """(offered - asked) / asked; 0 if as fast as possible was requested."""
    return (offered_pps - asked_pps) / asked_pps if asked_pps else 0.0


def sender_reasons(streams: tuple[StreamResult, ...]) -> Iterator[Reason]:
    """Check that the sender offered what was requested."""
    sent, late = total(streams, "sent"), total(streams, "late")
    if not sent:
        yield Reason("late: the generator sent nothing", is_behind=True)
        return
    if late > MOST_LATE * (sent + late):
        yield Reason(
            f"late: the generator skipped {late:,} frames ({late / (sent + late):.2%}) that were due", is_behind=True
        )
        return  # the rate cannot be right in this case
    for stream in streams:
        error = pacing_error(stream.asked_pps, stream.offered_pps)
        if stream.sent > 1 and abs(error) > max(MOST_PACING_ERROR, 2 / stream.sent):
            side = "below" if error < 0 else "above"
            yield Reason(
                f"pacing: stream '{stream.name}' was offered {abs(error):.2%} {side} its rate",
                is_behind=error < 0,
            )


def suspect_loss(results: Results, passage: Passage | None) -> int:
    """Lost frames that late polling by the sink may have caused. dl3d never waits for the sink, other devices may."""
    certain = total(results.streams, "corrupted")
    if passage:
        certain += total(results.streams, "refused")
        certain += sum(packets for name, packets in passage.lost.items() if name != TX_REFUSED)
    return max(0, total(results.streams, "lost") - certain)


def sink_reasons(results: Results, passage: Passage | None) -> Iterator[Reason]:
    """Check that the receiver polled in time for every frame."""
    ends = {stream.to_port for stream in results.streams}
    ports = [port for port in results.ports if port.name in ends]
    missed, pauses = sum(port.rx_missed or 0 for port in ports), sum(port.late_polls for port in ports)
    if missed:
        yield Reason(
            f"sink late: the generator's ports dropped {missed:,} frames that were not polled in time", is_behind=True
        )
    suspect, lost = suspect_loss(results, passage), total(results.streams, "lost")
    is_small = suspect <= MOST_SINK_LOSS * total(results.streams, "sent") and suspect < lost - suspect
    if pauses and suspect and not is_small and not missed:
        longest = max(port.longest_gap_us for port in ports)
        yield Reason(
            f"sink late: {suspect:,} frames are missing, and the generator stalled {pauses:,} times for longer than its "
            f"ring can buffer, up to {longest:,.0f} us",
            is_behind=True,
        )


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
    """Check that received + injected = sent + punted + named drops."""
    if not passage:
        return
    if not passage.is_whole:
        yield Reason("accounting: dl3d's counters decreased: it was restarted during the trial")
    elif passage.missing or passage.named != passage.dropped:
        yield Reason(
            f"accounting: dl3d received {passage.received:,} and injected {passage.injected:,} packets, sent {passage.sent:,},"
            f" punted {passage.punted:,} and dropped {passage.named:,} by name; {passage.missing:,} are missing"
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


def reasons(results: Results, passage: Passage | None, frames: int = 0) -> list[Reason]:
    """All reasons why the trial is INVALID; empty if it is valid. Receiving nothing at all counts as loss.

    `frames` is the requested number of frames, or 0 if the trial was limited by time.
    """
    offset = abs(results.tsc_offset_ns)
    apart = [Reason(f"clock: the TSCs of two workers are {offset:.0f} ns apart")] if offset > MOST_TSC_OFFSET_NS else []
    return [
        *link_reasons(results),
        *sender_reasons(results.streams),
        *burst_reasons(results, frames),
        *sink_reasons(results, passage),
        *account_reasons(results.streams),
        *passage_reasons(passage),
        *apart,
    ]
