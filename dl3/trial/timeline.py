"""When frames were lost, in a form that fits into a record."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from dl3.control.generator import RunTimeline
from dl3.model.evidence import Loss, Timeline

MOST_BUCKETS = 512
MOST_LOSSES = 200


def merged(counts: Sequence[int], width: int) -> tuple[int, ...]:
    """Each `width` of them together."""
    return tuple(sum(counts[i : i + width]) for i in range(0, len(counts), width))


def losses(line: RunTimeline) -> Iterator[Loss]:
    """Buckets next to each other in which frames were lost, in the order of time."""
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
    """No more than MOST_BUCKETS, of the whole run; the largest losses as finely as they are known."""
    width = -(-len(line.sent) // MOST_BUCKETS) or 1
    largest = sorted(losses(line), key=lambda loss: loss.frames, reverse=True)[:MOST_LOSSES]
    return Timeline(
        start_ns=line.start_ns,
        bucket_ns=line.bucket_ns * width,
        sent=merged(line.sent, width),
        received=merged(line.received, width),
        losses=tuple(sorted(largest, key=lambda loss: loss.at_ns)),
    )
