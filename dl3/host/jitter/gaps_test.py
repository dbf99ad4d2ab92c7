"""Gaps as lost frames, and their causes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dl3.host.jitter.gaps import CoreGap, CoreGaps, Jitter, causes_of, frames_lost, named, overlap_ns, with_causes
from dl3.model.evidence import Event


@pytest.mark.parametrize(
    ("us", "small", "large"),
    [(5.0, 0, 0), (8.6, 0, 0), (8.7, 1, 0), (137.6, 1919, 0), (138.0, 1925, 5), (1000, 14752, 12832)],
)
def a_gap_loses_the_frames_that_a_ring_does_not_hold(us: float, small: int, large: int) -> None:
    assert (frames_lost(us, 128), frames_lost(us, 2048)) == (small, large)


def _gap(end_us: float, us: float, core: int = 2) -> CoreGap:
    return CoreGap(core=core, at_ns=int(end_us * 1000), us=us)


def _event(end_us: float, us: float, who: str, what: str = "switch") -> Event:
    return Event.model_validate({"what": what, "at_ns": int(end_us * 1000), "us": us, "core": 2, "who": who})


def the_event_that_took_most_of_it_is_the_cause() -> None:
    (gap,) = with_causes([_gap(1000, 500)], [_event(990, 450, "hog"), _event(530, 20, "softirq", "interrupt")])
    assert (gap.cause, gap.kind) == ("hog", "switch")


def an_event_beside_it_or_much_shorter_is_no_cause() -> None:
    events = [_event(499, 400, "before"), _event(1900, 800, "after"), _event(700, 20, "short", "interrupt")]
    (gap,) = with_causes([_gap(1000, 500)], events)
    assert (gap.cause, gap.kind) == ("unknown", "")


def several_threads_in_turn_explain_it_together() -> None:
    events = [_event(600 + 100 * n, 90 + n, f"thread{n}") for n in range(4)]
    assert with_causes([_gap(1000, 500)], events)[0].cause == "thread3"


numbers = st.floats(1, 300).map(lambda one: round(one, 1))


@given(
    st.lists(st.tuples(st.integers(0, 3000), numbers), max_size=12),
    st.lists(st.tuples(st.integers(0, 3000), numbers), max_size=12),
)
def finds_the_same_as_when_every_event_is_compared(
    gaps: list[tuple[int, float]], events: list[tuple[int, float]]
) -> None:
    """Events of a core do not overlap, as threads take turns; neither do gaps."""
    clean_gaps, clean_events, end = list[CoreGap](), list[Event](), 0.0
    for at, us in sorted(gaps):
        if at - us >= end:
            clean_gaps.append(_gap(at, us))
            end = at
    end = 0.0
    for n, (at, us) in enumerate(sorted(events)):
        if at - us >= end:
            clean_events.append(_event(at, us, f"e{n}"))
            end = at
    wanted = [named(gap, [one for one in clean_events if overlap_ns(gap, one) >= 0]) for gap in clean_gaps]
    assert list(with_causes(clean_gaps, clean_events)) == wanted


def causes_are_added_up_on_each_core() -> None:
    gaps = with_causes(
        [_gap(1000, 200), _gap(2000, 300), _gap(3000, 10)], [_event(1000, 200, "a"), _event(2000, 300, "a")]
    )
    jitter = Jitter(least_us=5, cores=(CoreGaps(core=2, seconds=1, n=3, gaps=gaps), CoreGaps(core=3, seconds=1, n=0)))
    first, second = causes_of(jitter)
    assert (first.who, first.n, first.longest_us, first.total_us) == ("a", 2, 300, 500)
    assert first.lost == {128: frames_lost(200, 128) + frames_lost(300, 128), 2048: 928 + 2416}
    assert (second.who, second.n, second.lost) == ("unknown", 1, {128: 20, 2048: 0})
    assert jitter.lost(2048) == first.lost[2048]
