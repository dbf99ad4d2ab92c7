"""Loss over time, in a compact form for records."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from dl3.control.generator import RunTimeline
from dl3.model.evidence import Loss, Timeline

MOST_BUCKETS = 512
MOST_LOSSES = 200


def merged(counts: Sequence[int], width: int) -> tuple[int, ...]:
    """Sum groups of `width` adjacent counts."""
    return tuple(sum(counts[i : i + width]) for i in range(0, len(counts), width))


def losses(line: RunTimeline) -> Iterator[Loss]:
    """Runs of adjacent buckets with loss, in time order."""
    lost = [sent - received for sent, received in zip(line.sent, line.received, strict=True)]
    for is_loss, places in groupby(range(len(lost)), key=lambda i: lost[i] > 0):
        run = list(places)
        if is_loss:
            yield Loss(
                at_ns=line.start_ns + (run[-1] + 1) * line.bucket_ns,
                us=len(run) * line.bucket_ns / 1e3,
                frames=sum(lost[i] for i in run),
            )


def compact(line: RunTimeline) -> Timeline:
    """The whole run in at most MOST_BUCKETS buckets; the largest losses at full resolution."""
    width = -(-len(line.sent) // MOST_BUCKETS) or 1
    largest = sorted(losses(line), key=lambda loss: loss.frames, reverse=True)[:MOST_LOSSES]
    return Timeline(
        start_ns=line.start_ns,
        bucket_ns=line.bucket_ns * width,
        sent=merged(line.sent, width),
        received=merged(line.received, width),
        losses=tuple(sorted(largest, key=lambda loss: loss.at_ns)),
    )
