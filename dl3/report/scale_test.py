"""Axes have round labels that span all data."""

from hypothesis import given
from hypothesis import strategies as st

from dl3.report.scale import Linear, Log, linear_axis, linear_ticks, log_ticks

VALUES = st.floats(1e-3, 1e18)


@given(VALUES)
def ends_a_linear_axis_at_or_above_the_highest_value(top: float) -> None:
    ticks = linear_ticks(top)
    assert ticks[0] == 0
    assert ticks[-1] >= top * (1 - 1e-6)
    assert 2 <= len(ticks) <= 7


@given(VALUES, VALUES)
def ends_a_logarithmic_axis_around_all_values(one: float, other: float) -> None:
    low, high = sorted((one, other))
    ticks = log_ticks(low, high)
    assert ticks[0] <= low * (1 + 1e-6)
    assert ticks[-1] >= high * (1 - 1e-6)
    assert 2 <= len(ticks) <= 9


@given(VALUES, VALUES)
def keeps_the_order_of_values(one: float, other: float) -> None:
    low, high = sorted((one, other))
    for scale in (Linear(1e18, 0, 100), Log(1e-3, 1e18, 0, 100)):
        assert 0 <= scale.at(low) <= scale.at(high) <= 100


def writes_an_axis_as_people_do() -> None:
    assert [text for _, text in linear_axis("frames", 4.1e6).ticks] == ["0", "1,000,000", "2,000,000", *MILLIONS]
    assert [text for _, text in linear_axis("ms", 0.7).ticks] == ["0", "0.2", "0.4", "0.6", "0.8"]
    assert [text for _, text in linear_axis("ms", 0.0).ticks] == ["0", "0.2", "0.4", "0.6", "0.8", "1"]


MILLIONS = ("3,000,000", "4,000,000", "5,000,000")


def starts_and_ends_where_requested() -> None:
    assert [Linear(10, 200, 0).at(value) for value in (0, 5, 10)] == [200, 100, 0]
    assert [round(Log(1, 100, 200, 0).at(value)) for value in (1, 10, 100)] == [200, 100, 0]
