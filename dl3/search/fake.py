"""Trials that are made up, for tests of searches."""

from dataclasses import dataclass


@dataclass(frozen=True)
class FakeTrial:
    """Offered, lost, and perhaps INVALID."""

    offered_pps: float = 1.0
    loss_ratio: float = 0.0
    invalid: tuple[str, ...] = ()


BROKEN = FakeTrial(invalid=("late: it was",))
