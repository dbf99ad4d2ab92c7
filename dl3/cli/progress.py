"""A bar with the time that is left. It is drawn between trials only: during one there may be no core to spare."""

import time

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from dl3.bench.site import Audience, Found
from dl3.cli.printing import err
from dl3.model.fault import Fault
from dl3.model.trial import Throughput, Trial
from dl3.report.texts import words_in
from dl3.report.words import Language

MINUTE_S = 60


def span(seconds: float) -> str:
    """About how long, as people say it."""
    if seconds < MINUTE_S:
        return f"{seconds:.0f} s"
    return f"{seconds / MINUTE_S:.0f} min"


def words_for(frame: str) -> str:
    """'64-byte frames' or 'imix frames'."""
    return f"{frame}-byte frames" if frame.isdigit() else f"{frame} frames"


def limit_words(answer: Throughput) -> str:
    """What kept a rate from being higher, in the words of the report: 'the device'."""
    return words_in(Language.EN)(f"limit.{answer.limited_by}")


class Bar(Audience):
    """Draws the bar, and says what cannot wait for the table at the end."""

    def __init__(self, console: Console = err) -> None:
        doing, left = (TextColumn(words, markup=False) for words in ("{task.description}", "{task.fields[left]}"))
        columns = (doing, BarColumn(), left)
        self._progress = Progress(*columns, console=console, transient=True, auto_refresh=False)
        self._task = TaskID(0)
        self._began_s = time.monotonic()
        self.n_without_answer = 0

    def __enter__(self) -> "Bar":
        self._began_s = time.monotonic()
        if self._progress.console.is_interactive:  # elsewhere it would leave an empty line behind
            self._progress.start()
        self._task = self._progress.add_task("begins", total=1, left="")
        return self

    def __exit__(self, *_: object) -> None:
        if self._progress.console.is_interactive:
            self._progress.stop()

    def heard_left(self, frame: str, seconds: float) -> None:
        """Draw it once."""
        done_s = time.monotonic() - self._began_s
        left = f"about {span(seconds)} left"
        self._progress.update(
            self._task, description=self.words(frame), completed=done_s, total=done_s + seconds, left=left, refresh=True
        )

    def words(self, frame: str) -> str:
        """What is being done."""
        return words_for(frame)

    def heard_trial(self, trial: Trial) -> None:
        """An INVALID trial is told of with its reason; it will be repeated."""
        for reason in trial.invalid:
            at = f"{trial.asked_pps / 1e6:.3f} Mpps" if trial.asked_pps else "full speed"
            self._say(f"INVALID, {words_for(trial.frame)} at {at}: {reason}")

    def heard_answer(self, found: Found) -> None:
        """One line."""
        answer = found.answer
        goal = f", loss ratio up to {answer.goal_loss_ratio:.6g}" if answer.goal_loss_ratio else ""
        self._say(f"{words_for(answer.frame)}{goal}: {answer.pps / 1e6:.3f} Mpps, limited by {limit_words(answer)}")

    def heard_fault(self, frame: str, fault: Fault) -> None:
        """One line, and the exit code."""
        self.n_without_answer += 1
        self._say(f"{words_for(frame)}: {fault}")

    def _say(self, text: str) -> None:
        self._progress.console.print(text, markup=False, highlight=False, soft_wrap=True)
