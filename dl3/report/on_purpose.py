"""Loads above the throughput that a test asks for: loss there is what it measures, and no fault."""

import math
from collections.abc import Sequence

from dl3.model.campaign import Job
from dl3.model.results import Forwarding, FrameLoss, Recovery
from dl3.model.trial import Throughput, Trial, wire_of
from dl3.report.results import Measured, Other, Results
from dl3.report.words import Words
from dl3.search.recovery import OVERLOAD, RELIEF

TESTS = ("throughput", "ceiling", "proof", "frame loss", "forwarding", "back-to-back", "recovery")
LEAST = 1.005  # times the throughput: below, a search repeats its own result
COARSE = 1.05  # from here on one decimal is enough

Key = tuple[str, ...]


def setting_of(job: Job | None, key: str) -> str:
    """What a throughput depends on beside device and frame: jobs of several tests have it in common."""
    return f"{job.setup.model_dump_json()} {job.traffic.model_dump_json()}" if job else key


class Throughputs:
    """The throughputs of a report, each for all tests that start from it."""

    def __init__(self, results: Results) -> None:
        self.results = results
        self.settings: dict[str, str] = {}
        self.found: dict[Key, Throughput] = {}
        for search in results.searches:
            key = self.key_of(search)
            if key not in self.found or search.goal_loss_ratio < self.found[key].goal_loss_ratio:
                self.found[key] = search
        self.recoveries = {(one.job, *self.key_of(one)): one for one in results.others if isinstance(one, Recovery)}

    def key_of(self, record: Measured) -> Key:
        """What the throughput of a record depends on."""
        if record.job not in self.settings:
            self.settings[record.job] = setting_of(self.results.jobs.get(record.job), record.job)
        return record.campaign, self.settings[record.job], record.dut, record.frame, wire_of(record.facts)

    def times(self, record: Measured, pps: float) -> float | None:
        """A load in multiples of the throughput; None where it is not above it, or where that is not known."""
        search = self.found.get(self.key_of(record))
        return above(pps / search.pps) if search and search.pps > 0 else None

    def of_trial(self, trial: Trial) -> float | None:
        """The same of a trial, if its test asks for it and frames were lost."""
        if trial.test not in TESTS or not trial.account.lost:
            return None
        if trial.test != "recovery":
            return self.times(trial, trial.offered_pps)
        result = self.recoveries.get((trial.job, *self.key_of(trial)))
        return of_recovery(result) if result else OVERLOAD

    def of_result(self, result: Other) -> Sequence[float | None]:
        """The same of each row of a result."""
        if isinstance(result, FrameLoss):
            return [self.times(result, at.pps) if at.loss_ratio > 0 else None for at in result.points]
        if isinstance(result, Forwarding):
            return [self.times(result, max((at.pps for at in result.points), default=0.0))]
        return [of_recovery(result) if isinstance(result, Recovery) else None]


def above(ratio: float) -> float | None:
    """A ratio that is one of an overload."""
    return ratio if LEAST <= ratio < math.inf else None


def of_recovery(result: Recovery) -> float | None:
    """Its overload by the throughput, of which the load falls to a known share."""
    return above(result.overload_pps / (result.recovery_pps / RELIEF)) if result.recovery_pps > 0 else None


def times_text(ratio: float) -> str:
    """'1.4'; of what is hardly above 1 more digits."""
    return f"{ratio:.1f}" if ratio >= COARSE else f"{ratio:.3f}".rstrip("0")


def purpose_text(ratio: float | None, words: Words) -> str:
    """'offered 1.4 x the throughput, on purpose'; '' where it was not."""
    return "" if ratio is None else words("purpose", times=times_text(ratio))


def beside(text: str, ratio: float | None, words: Words) -> str:
    """A text with that behind it."""
    return text if ratio is None else words("purpose.beside", text=text, purpose=purpose_text(ratio, words))
