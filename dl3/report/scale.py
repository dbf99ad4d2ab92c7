"""Maps values to positions, and chooses the round values labelled on an axis."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

N_TICKS = 5
MANY_DECADES = 7
FAR = 4.0  # times as high as a value that can still be read beside it


@dataclass(frozen=True)
class Linear:
    """`low` at `start`, `top` at `end`."""

    top: float
    start: float
    end: float
    low: float = 0.0

    def at(self, value: float) -> float:
        """The position of a value."""
        share = (value - self.low) / (self.top - self.low)
        return self.start + (self.end - self.start) * min(max(share, 0.0), 1.0)


@dataclass(frozen=True)
class Log:
    """`low` at `start`, `high` at `end`, each decade equally long."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """The position of a value; values that are too small map to the low end."""
        share = math.log10(max(value, self.low) / self.low) / math.log10(self.high / self.low)
        return self.start + (self.end - self.start) * min(share, 1.0)


@dataclass(frozen=True)
class Axis:
    """Its name, and its labelled values."""

    name: str
    ticks: Sequence[tuple[float, str]]
    is_log: bool = False

    def scale(self, start: float, end: float) -> Linear | Log:
        """Its values between two positions."""
        low, high = self.ticks[0][0], self.ticks[-1][0]
        return Log(low, high, start, end) if self.is_log else Linear(high, start, end, low)


def round_step(rough: float) -> float:
    """The smallest of 1, 2, 2.5, 5 x 10^n that is not below."""
    power = 10.0 ** math.floor(math.log10(rough))
    return next(factor * power for factor in (1, 2, 2.5, 5, 10, 20) if factor * power >= rough * 0.999)


def linear_ticks(top: float) -> tuple[float, ...]:
    """Round values from 0 to the first that is not below `top`, or to 1 if all are 0."""
    top = max(top, 1e-9) if top > 0 else 1.0
    step = round_step(top / N_TICKS)
    return tuple(step * i for i in range(max(math.ceil(top / step - 1e-9), 1) + 1))


def log_ticks(low: float, high: float) -> tuple[float, ...]:
    """Powers of ten around the values, at least one decade; thinned out if there are many."""
    first = math.floor(math.log10(low) + 1e-9)
    last = max(math.ceil(math.log10(high) - 1e-9), first + 1)
    step = (last - first) // MANY_DECADES + 1
    return tuple(10.0**n for n in range(first, last + step, step))


def linear_axis(name: str, top: float) -> Axis:
    """From 0 to a round value that is not below `top`."""
    return Axis(name, [(tick, f"{tick:,.10g}") for tick in linear_ticks(top)])


def shared_top(own: float, tops: Iterable[float]) -> float:
    """What the axis of one of several charts reaches: the highest of all, as far as its own values can still be read.

    Charts whose values are less than a quarter of that have the axis of the highest among themselves.
    """
    top = math.inf
    for one in sorted(tops, reverse=True):
        if one < top / FAR:
            top = one
        if own >= top / FAR:
            return max(top, own)
    return own


def log_axis(name: str, low: float, high: float, written: Callable[[float], str]) -> Axis:
    """Decades around the values."""
    return Axis(name, [(tick, written(tick)) for tick in log_ticks(low, high)], is_log=True)
