"""Combines the counters of the generator's streams."""

from collections import Counter
from collections.abc import Iterator, Sequence

from dl3.control.generator import Jitter, Latency, Results, StreamResult
from dl3.model.trial import Account, Spread
from dl3.trial.passage import NO_MBUF, RX_MISSED, WIRE, Passage

RING_FULL = "dut rx ring full"
PUNTED = "punted to Linux"
GENERATOR_MISSED = "generator rx missed"
WIRE_TO_DUT = "wire to the dut"
WIRE_FROM_DUT = "wire from the dut"
UNKNOWN = "unknown"
MOST = 0.5  # fraction of the frames lost at a place: a cause that explains more than this is the reason
SHARES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99_9": 0.999, "p99_99": 0.9999, "p99_999": 0.99999}


def total(streams: Sequence[StreamResult], field: str) -> int:
    """Sum of a counter over all streams."""
    return sum(getattr(stream, field) for stream in streams)


def places(results: Results, passage: Passage | None) -> dict[str, int]:
    """Lost frames by place, where known. The values add up to all lost frames."""
    left = max(0, total(results.streams, "lost"))
    found: Counter[str] = Counter()
    for place, frames in [*seen_by_generator(results, passage), *(seen_by_dut(results, passage) if passage else ())]:
        taken = min(max(frames, 0), left)
        found[place] += taken
        left -= taken
    found[UNKNOWN] = left
    return {place: frames for place, frames in found.items() if frames}


def ring_full(results: Results, passage: Passage | None, place: str, frames: int) -> tuple[str, int]:
    """The place of frames lost for lack of room in a device: the full ring, or missing buffers to refill it.

    The place is the buffers if the device counted that itself, or if they were missing for long enough that most of
    these frames may have arrived in that time. A worker that is too slow may also find no buffer for a moment, but that
    is not the cause of the loss.
    """
    if not passage:
        return place, frames
    meanwhile = passage.starved_s * sum(stream.offered_pps for stream in results.streams)
    is_starved = passage.no_mbuf > 0 or meanwhile > MOST * frames
    return (NO_MBUF if is_starved else place), frames


def seen_by_generator(results: Results, passage: Passage | None) -> Iterator[tuple[str, int]]:
    """Places counted by the generator."""
    yield ring_full(results, passage, RING_FULL, total(results.streams, "refused"))
    yield "corrupted", total(results.streams, "corrupted")
    yield "misdirected", sum(port.misdirected for port in results.ports)
    yield "too old", total(results.streams, "too_old")


def seen_by_dut(results: Results, passage: Passage) -> Iterator[tuple[str, int]]:
    """Places reported by dl3d, then Linux behind it, dl3gen's own ports, and the wires between the two programs."""
    for place, frames in passage.lost.items():
        yield ring_full(results, passage, place, frames) if place == RX_MISSED else (place, frames)
    yield PUNTED, passage.punted - passage.injected
    missed = sum(port.rx_missed or 0 for port in results.ports)
    yield GENERATOR_MISSED, missed
    offered = total(results.streams, "sent") - total(results.streams, "refused")
    on_the_wire = offered - passage.received - sum(passage.lost.get(name, 0) for name in WIRE)
    yield ring_full(results, passage, WIRE_TO_DUT, on_the_wire)
    yield WIRE_FROM_DUT, passage.sent - missed - sum(port.rx_packets for port in results.ports)


def account_of(results: Results, passage: Passage | None) -> Account:
    """Packet accounting over all streams."""
    streams = results.streams
    sums = (
        "sent",
        "received",
        "lost",
        "duplicated",
        "reordered",
        "corrupted",
        "late",
        "busy",
        "sent_bytes",
        "received_bytes",
    )
    return Account(
        **{field: total(streams, field) for field in sums},
        reordered_per=" and ".join(sorted({stream.reordered_per for stream in streams})),
        lost_by_place=places(results, passage),
    )


def percentile(buckets: Sequence[tuple[float, float, int]], share: float) -> float:
    """The midpoint of the bucket that contains this quantile; buckets in ascending order."""
    rank, below = share * sum(count for _, _, count in buckets), 0
    for low, high, count in buckets:
        below += count
        if below >= rank:
            return (low + high) / 2
    return 0.0


def merged(parts: Sequence[Latency]) -> Spread:
    """Merge latency distributions; the percentiles of several are computed from their histograms."""
    filled = [part for part in parts if part.n]
    if len(filled) <= 1:
        return Spread.model_validate(filled[0].model_dump(exclude={"histogram"})) if filled else Spread()
    counts: Counter[tuple[float, float]] = Counter()
    for part in filled:
        counts.update({(low, high): count for low, high, count in part.histogram})
    buckets = [(low, high, count) for (low, high), count in sorted(counts.items())]
    n = sum(part.n for part in filled)
    low, high = min(part.min for part in filled), max(part.max for part in filled)
    return Spread(
        n=n,
        min=low,
        max=high,
        mean=sum(part.mean * part.n for part in filled) / n,
        **{name: min(max(percentile(buckets, share), low), high) for name, share in SHARES.items()},
    )


def last_lost_s(streams: Sequence[StreamResult]) -> float | None:
    """Due time of the last lost frame, relative to the first frame; exact to one frame if none was late.

    For a stream without a rate, the achieved rate is used.
    """
    rates = [(stream.last_lost, stream.asked_pps or stream.offered_pps) for stream in streams]
    return max((number / pps for number, pps in rates if number is not None and pps), default=None)


def jitter_of(parts: Sequence[Jitter]) -> tuple[float, float]:
    """Mean and maximum over all streams, in nanoseconds."""
    n = sum(part.n for part in parts)
    return sum(part.mean * part.n for part in parts) / n if n else 0.0, max((part.max for part in parts), default=0.0)
