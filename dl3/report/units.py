"""Number formatting. The unit is in the heading or after the number, never in both."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime

NOTHING = "–"  # in place of a missing number
MICRO = "µs"
LEAST = 0.000099  # percent; the smallest value visible with four decimals
NAMED = 20  # entries of a list that are shown
HUGE = 1e15  # larger values are shown as a power of ten


def number(value: float | None, decimals: int) -> str:
    """Fixed decimals with thousands separators; a dash for an unknown value."""
    if value is None or not math.isfinite(value):
        return NOTHING
    return f"{round(value, decimals) + 0.0:,.{decimals}f}" if abs(value) < HUGE else f"{value:.{decimals}e}"


def significant(value: float | None) -> str:
    """Three significant digits, for labels in charts."""
    if value is None or not math.isfinite(value):
        return NOTHING
    if value == 0 or abs(value) >= HUGE:
        return number(value, 0)
    digits = 2 - math.floor(math.log10(abs(value)))
    return number(round(value, digits), max(0, min(digits, 6)))


def mpps(pps: float | None) -> str:
    """Million frames per second, to the thousand."""
    return number(None if pps is None else pps / 1e6, 3)


def gbps(bps: float | None) -> str:
    """Gbit/s, to the Mbit/s."""
    return number(None if bps is None else bps / 1e9, 3)


def percent(share: float | None, decimals: int = 2) -> str:
    """A share as a percentage, without the sign."""
    return number(None if share is None else share * 100, decimals)


def percents(shares: Sequence[float]) -> str:
    """Shares as percentages, without the sign; only the first of many."""
    named = [number(share * 100, 1).removesuffix(".0") for share in shares[:NAMED]]
    return ", ".join([*named, "…"] if len(shares) > NAMED else named)


def loss(ratio: float | None) -> str:
    """A loss ratio in percent: exact zero is a plain 0, and a value above zero never looks like it."""
    if ratio is None or not math.isfinite(ratio):
        return NOTHING
    if ratio == 0:
        return "0"
    value = ratio * 100
    return number(value, 4) if value >= LEAST else f"{value:.1e}"


def micros(nanoseconds: float | None) -> str:
    """Microseconds to a hundredth; a dash for 0, which means that nothing was received."""
    return number(nanoseconds / 1e3, 2) if nanoseconds else NOTHING


def duration(nanoseconds: float) -> str:
    """A round time with its own unit, for axes: 100 ns, 10 µs, 1 ms."""
    for unit, size in (("s", 1e9), ("ms", 1e6), (MICRO, 1e3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:g} {unit}"
    return f"{nanoseconds:g} ns"


def seconds_between(first: str, last: str) -> float | None:
    """From one time of a record to another; None if either is invalid, or they are in the wrong order."""
    try:
        seconds = (datetime.fromisoformat(last) - datetime.fromisoformat(first)).total_seconds()
    except (ValueError, TypeError, OverflowError):
        return None
    return seconds if seconds >= 0 else None


def moment(at: str) -> str:
    """A time of a record to the second in UTC; unchanged if it is invalid."""
    try:
        found = datetime.fromisoformat(at)
        return (found.astimezone(UTC) if found.tzinfo else found).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError):
        return at
