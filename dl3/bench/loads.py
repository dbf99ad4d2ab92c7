"""Trials at fractions of the highest load."""

from dataclasses import dataclass
from typing import Any

from dl3.bench.site import Run
from dl3.bench.testbed import Most
from dl3.model.results import LossPoint
from dl3.model.trial import Test, Trial
from dl3.search.frame_loss import Tried
from dl3.trial.order import LOSSLESS, Order

WHOLE = 1.0
DIGITS = 6  # of a fraction
RETRIES = 1  # per load: a generator that fell behind mostly does so again, and a lower load follows


@dataclass
class Loads:
    """Runs them from the highest load down, and estimates the remaining time."""

    run: Run
    frame: str
    test: Test
    most: Most
    step: float

    def at(self, share: float) -> Trial:
        """One trial."""
        run = self.run
        run.listener.on_left(self.frame, share / self.step * run.trial_s)
        pps = self.most.asked_pps if share == WHOLE else self.most.pps * share
        goals = LOSSLESS if self.test == "frame loss" else ()
        return run.trial(
            Order(run.streams, self.frame, pps, run.seconds, self.test, warm_up_s=run.warm_up_s, goals=goals)
        )


def reported_of(tried: Tried[Trial]) -> dict[str, Any]:
    """The loads, as fields of a result."""
    points = [
        LossPoint(share=round(share, DIGITS), pps=trial.offered_pps, loss_ratio=trial.loss_ratio)
        for share, trial in tried.points
    ]
    return {"points": points, "invalid_shares": [round(share, DIGITS) for share in tried.invalid_shares]}
