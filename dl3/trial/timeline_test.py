"""Loss over time, as stored in records."""

from hypothesis import given
from hypothesis import strategies as st

from dl3.control.generator import RunTimeline
from dl3.trial.timeline import MOST_BUCKETS, MOST_LOSSES, compact, losses

COUNTS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=2000)


def line(*pairs: tuple[int, int]) -> RunTimeline:
    """Buckets of 10 us: sent and received."""
    sent, received = zip(*pairs, strict=True)
    return RunTimeline(start_ns=1_000_000, bucket_ns=10_000, sent=sent, received=received)


def reports_losses_one_after_the_other_as_one() -> None:
    found = list(losses(line((5, 5), (5, 3), (5, 0), (5, 5), (5, 4))))
    assert [(loss.at_ns, loss.us, loss.frames) for loss in found] == [(1_030_000, 20.0, 7), (1_050_000, 10.0, 1)]
    assert not list(losses(line((5, 5), (0, 0))))


@given(COUNTS)
def loses_no_frame_however_long_it_is(pairs: list[tuple[int, int]]) -> None:
    pairs = [(max(pair), min(pair)) for pair in pairs]
    made = compact(line(*pairs))
    assert len(made.sent) == len(made.received) <= MOST_BUCKETS
    assert sum(made.sent) == sum(sent for sent, _ in pairs)
    assert sum(made.received) == sum(received for _, received in pairs)
    assert made.bucket_ns * len(made.sent) >= 10_000 * len(pairs)
    if len(made.losses) < MOST_LOSSES:
        assert sum(loss.frames for loss in made.losses) == sum(made.sent) - sum(made.received)


def keeps_the_largest_losses_in_the_order_of_time() -> None:
    pairs = [(2, 1), (1, 1)] * MOST_LOSSES + [(9, 0), (1, 1)] + [(2, 1), (1, 1)] * MOST_LOSSES + [(7, 0)]
    kept = compact(line(*pairs)).losses
    assert len(kept) == MOST_LOSSES
    assert sorted(loss.frames for loss in kept)[-2:] == [7, 9]
    assert [loss.at_ns for loss in kept] == sorted(loss.at_ns for loss in kept)


def keeps_a_short_run_as_it_is() -> None:
    made = compact(line((3, 3), (4, 2)))
    assert (made.start_ns, made.bucket_ns, made.sent, made.received) == (1_000_000, 10_000, (3, 4), (3, 2))
