"""Number formatting."""

import pytest

from dl3.report.units import duration, loss, micros, moment, number, significant


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (14.204, "14.2"), (0.204, "0.204"), (100.04, "100"), (1234.5, "1,230"), (None, "–"), (1e300, "1e+300")],
)
def writes_three_significant_digits(value: float | None, text: str) -> None:
    assert significant(value) == text


@pytest.mark.parametrize(
    ("ratio", "text"), [(0, "0"), (0.5, "50.0000"), (0.000001, "0.0001"), (1e-9, "1.0e-07"), (float("inf"), "–")]
)
def never_writes_loss_as_zero(ratio: float, text: str) -> None:
    assert loss(ratio) == text


def writes_times_with_their_unit() -> None:
    assert [duration(10.0**n) for n in (1, 3, 5, 8, 9)] == ["10 ns", "1 µs", "100 µs", "100 ms", "1 s"]
    assert micros(1234567.0) == "1,234.57"
    assert micros(0) == "–"


def groups_thousands() -> None:
    assert number(1234567.891, 1) == "1,234,567.9"


def writes_no_sign_before_a_zero() -> None:
    assert number(-0.00001, 4) == "0.0000"
    assert number(-0.5, 1) == "-0.5"


def reports_times_in_utc() -> None:
    assert moment("2026-11-22T01:30:00+02:00") == "2026-11-21 23:30:00"
    assert moment("yesterday") == "yesterday"
