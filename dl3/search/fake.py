"""Simulated trials for the tests of searches."""

from dataclasses import dataclass


@dataclass(frozen=True)
class FakeTrial:
    """Offered load and loss ratio; optionally INVALID."""

    offered_pps: float = 1.0
    loss_ratio: float = 0.0
    invalid: tuple[str, ...] = ()


BROKEN = FakeTrial(invalid=("late: it was",))
