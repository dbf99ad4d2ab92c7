"""A progress bar with the remaining time. It is drawn between trials only, since a trial may need every core."""

import time

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from dl3.bench.site import Found, ProgressListener
from dl3.cli.printing import err
from dl3.host.busy import look, sentence
from dl3.model.fault import Fault
from dl3.model.trial import Throughput, Trial
from dl3.report.texts import words_in
from dl3.report.words import Language

MINUTE_S = 60
MOST_AT_FIRST, MOST_IN_A_ROW = 3, 5  # INVALID trials before the machine is called too busy
BUSY = (
    "{n} consecutive trials are INVALID: the machine is too busy to measure; {who}. Stop them, use other cores, or expect a "
    "longer run time and results given as intervals"
)


def span(seconds: float) -> str:
    """An approximate duration."""
    if seconds < MINUTE_S:
        return f"{seconds:.0f} s"
    return f"{seconds / MINUTE_S:.0f} min"


def words_for(frame: str) -> str:
    """'64-byte frames' or 'imix frames'."""
    return f"{frame}-byte frames" if frame.isdigit() else f"{frame} frames"


def limit_words(result: Throughput) -> str:
    """What limited a rate, as in the report: 'the device'."""
    return words_in(Language.EN)(f"limit.{result.limited_by}")


class Pace:
    """Corrects estimates of the time left by how long the work took so far, compared with how long was estimated."""

    PRIOR = 0.25  # share of the first estimate that counts as done on time, so that early deviations weigh little

    def __init__(self) -> None:
        self._first_s = 0.0

    def corrected(self, seconds: float, done_s: float) -> float:
        """The time left, if `seconds` are estimated and `done_s` have passed since the begin."""
        self._first_s = self._first_s or done_s + seconds
        prior_s = self.PRIOR * self._first_s
        estimated_s = max(0.0, self._first_s - seconds)  # of what is done
        return seconds * (done_s + prior_s) / (estimated_s + prior_s) if prior_s else seconds


class Bar(ProgressListener):
    """Draws the bar, and prints what cannot wait for the table at the end."""

    is_paced = True  # whether estimates are corrected by the pace so far

    def __init__(self, console: Console = err) -> None:
        doing, left = (TextColumn(words, markup=False) for words in ("{task.description}", "{task.fields[left]}"))
        columns = (doing, BarColumn(), left)
        self._progress = Progress(*columns, console=console, transient=True, auto_refresh=False)
        self._task = TaskID(0)
        self._began_s = time.monotonic()
        self._pace = Pace()
        self.n_without_result = 0
        self._n_heard = self._n_spoilt = 0  # the latter: in a row
        self._is_reported = False

    def __enter__(self) -> "Bar":
        self._began_s = time.monotonic()
        if self._progress.console.is_interactive:  # otherwise it would leave an empty line behind
            self._progress.start()
        self._task = self._progress.add_task("begins", total=1, left="")
        return self

    def __exit__(self, *_: object) -> None:
        if self._progress.console.is_interactive:
            self._progress.stop()

    def on_left(self, frame: str, seconds: float) -> None:
        """Draw it once."""
        done_s = time.monotonic() - self._began_s
        if self.is_paced:
            seconds = self._pace.corrected(seconds, done_s)
        left = f"about {span(seconds)} left"
        self._progress.update(
            self._task, description=self.words(frame), completed=done_s, total=done_s + seconds, left=left, refresh=True
        )

    def words(self, frame: str) -> str:
        """The current activity."""
        return words_for(frame)

    def on_trial(self, trial: Trial) -> None:
        """An INVALID trial is reported with its reason; it will be repeated."""
        for reason in trial.invalid:
            at = f"{trial.asked_pps / 1e6:.3f} Mpps" if trial.asked_pps else "full speed"
            self._say(f"INVALID, {words_for(trial.frame)} at {at}: {reason}")
        self.judge_machine(trial)

    def judge_machine(self, trial: Trial) -> None:
        """Warn once that the machine is too busy, after the first trials or several in a row were INVALID."""
        self._n_heard += 1
        self._n_spoilt = self._n_spoilt + 1 if trial.invalid else 0
        is_too_busy = self._n_spoilt == MOST_IN_A_ROW or self._n_spoilt == self._n_heard == MOST_AT_FIRST
        if is_too_busy and not self._is_reported:
            self._is_reported = True
            self._say(BUSY.format(n=self._n_spoilt, who=sentence(look())))

    def on_result(self, found: Found) -> None:
        """One line."""
        result = found.result
        goal = f", loss ratio up to {result.goal_loss_ratio:.6g}" if result.goal_loss_ratio else ""
        self._say(f"{words_for(result.frame)}{goal}: {result.pps / 1e6:.3f} Mpps, limited by {limit_words(result)}")

    def on_fault(self, frame: str, fault: Fault) -> None:
        """One line, and the exit status."""
        self.n_without_result += 1
        self._say(f"{words_for(frame)}: {fault}")

    def _say(self, text: str) -> None:
        self._progress.console.print(text, markup=False, highlight=False, soft_wrap=True)
