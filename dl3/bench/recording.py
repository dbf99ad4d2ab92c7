"""The recorded part of an interrupted job, replayed so that the job continues where it stopped."""

import json
from collections import deque
from collections.abc import Iterable

from dl3.model.campaign import Skipped
from dl3.model.noun import Noun
from dl3.model.trial import Trial
from dl3.record.reader import Record
from dl3.trial.order import Order

NEAR_SHARE = 0.1  # of the trial duration: permitted deviation from the ordered duration
NEAR_S = 0.05  # minimum of this deviation
NOT_SAID_TWICE = {"at", "facts", "noise"}  # fields of a result that depend on the time it was produced


def text_of(noun: Noun) -> str:
    """The parts of a result that are identical if the same trials are evaluated again."""
    return noun.model_dump_json(exclude=NOT_SAID_TWICE)


def plain(value: object) -> object:
    """As read back from a record: lists for tuples."""
    return json.loads(json.dumps(value))


class Recording:
    """Trials in order, and results that need not be written again."""

    def __init__(self, trials: Iterable[Trial] = (), results: Iterable[Noun] = ()) -> None:
        self._trials = deque(trials)
        self._results = {text_of(result) for result in results}

    def take(self, order: Order) -> Trial | None:
        """The recorded trial for this order; None from the first mismatch on."""
        if not self._trials:
            return None
        trial = self._trials.popleft()
        if is_for(trial, order):
            return trial
        self._trials.clear()
        return None

    def has(self, noun: Noun) -> bool:
        """Whether the result is already in the record."""
        return text_of(noun) in self._results


def took_as_ordered(trial: Trial, order: Order) -> bool:
    """Whether the trial had the ordered duration; always true for a number of frames."""
    return bool(order.frames) or abs(trial.seconds - order.seconds) <= max(NEAR_S, NEAR_SHARE * order.seconds)


def is_for(trial: Trial, order: Order) -> bool:
    """Whether a trial matches the order: same test, streams, rates, sizes, and number of frames or duration."""
    same = (trial.test, trial.frame, trial.asked_pps, trial.load) == (
        order.test,
        order.frame,
        order.asked_pps,
        order.load,
    )
    return same and took_as_ordered(trial, order) and plain(trial.streams) == plain(order.written())


def tape_of(record: Record, job: str) -> Recording:
    """The recorded part of a job since it was last skipped: a job without a result is retried, not replayed."""
    results: Iterable[Noun] = (*record.results, *record.others)
    trials: list[Trial] = []
    for _, entry in record.lines:
        if isinstance(entry, Trial) and entry.job == job:
            trials.append(entry)
        elif isinstance(entry, Skipped) and entry.job == job:
            trials.clear()
    return Recording(trials, [result for result in results if getattr(result, "job", "") == job])
