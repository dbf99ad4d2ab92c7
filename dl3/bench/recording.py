"""What a record has of a job that was cut short: played again, so that the job goes on where it was."""

import json
from collections import deque
from collections.abc import Iterable

from dl3.model.campaign import Skipped
from dl3.model.noun import Noun
from dl3.model.trial import Trial
from dl3.record.reader import Record
from dl3.trial.order import Order

NEAR_SHARE = 0.1  # of a trial's time: by so much it may take longer or shorter than was ordered
NEAR_S = 0.05  # and by so much at least
NOT_SAID_TWICE = {"at", "facts", "noise"}  # what an answer has of the moment in which it was given


def text_of(noun: Noun) -> str:
    """All that is the same when the same trials are judged again."""
    return noun.model_dump_json(exclude=NOT_SAID_TWICE)


def plain(value: object) -> object:
    """As a record gives it back: lists for tuples."""
    return json.loads(json.dumps(value))


class Recording:
    """Trials in their order, and answers that need not be written a second time."""

    def __init__(self, trials: Iterable[Trial] = (), answers: Iterable[Noun] = ()) -> None:
        self._trials = deque(trials)
        self._answers = {text_of(answer) for answer in answers}

    def take(self, order: Order) -> Trial | None:
        """The trial that was made for this order, None from the first one on that was made for another."""
        if not self._trials:
            return None
        trial = self._trials.popleft()
        if is_for(trial, order):
            return trial
        self._trials.clear()
        return None

    def has(self, noun: Noun) -> bool:
        """Whether that answer is in the record."""
        return text_of(noun) in self._answers


def took_as_ordered(trial: Trial, order: Order) -> bool:
    """Whether it took the time that was ordered; of a number of frames none was."""
    return bool(order.frames) or abs(trial.seconds - order.seconds) <= max(NEAR_S, NEAR_SHARE * order.seconds)


def is_for(trial: Trial, order: Order) -> bool:
    """Whether a trial is what was ordered: the same test, streams, rates, sizes and numbers of frames, or time."""
    same = (trial.test, trial.frame, trial.asked_pps, trial.load) == (
        order.test,
        order.frame,
        order.asked_pps,
        order.load,
    )
    return same and took_as_ordered(trial, order) and plain(trial.streams) == plain(order.written())


def tape_of(record: Record, job: str) -> Recording:
    """What a record has of a job since it was last left out: what had no answer is tried again, not played again."""
    answers: Iterable[Noun] = (*record.answers, *record.others)
    trials: list[Trial] = []
    for _, entry in record.lines:
        if isinstance(entry, Trial) and entry.job == job:
            trials.append(entry)
        elif isinstance(entry, Skipped) and entry.job == job:
            trials.clear()
    return Recording(trials, [answer for answer in answers if getattr(answer, "job", "") == job])
