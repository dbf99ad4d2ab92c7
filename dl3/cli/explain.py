"""The command 'dl3 explain': why packets of a trial were lost, or how far the device is from its limit."""

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from dl3.cli.given import RECORDS
from dl3.cli.printing import err, out, print_json
from dl3.cli.report import results_of
from dl3.model.fault import UsageFault
from dl3.model.trial import Trial
from dl3.record.journal import OF_TRIALS
from dl3.record.reader import Record, read
from dl3.report.explain import findings, plain, sentence
from dl3.report.on_purpose import Throughputs, beside
from dl3.report.places import RESET
from dl3.report.texts import words_in
from dl3.report.words import Language, Words
from dl3.report.worst import worst

WORST = "The trial with the most loss at a load within the device's throughput, else at any load; the default."


def newest() -> Path:
    """The newest record of trials, in the build or in the current folder."""
    found = [path for folder in (RECORDS, Path.cwd()) for path in folder.glob("*.jsonl") if has_trials(path)]
    if not found:
        raise UsageFault(f"no record in {RECORDS} or here: specify a record written by 'dl3 bench'")
    return max(found, key=lambda path: path.stat().st_mtime)


def has_trials(path: Path) -> bool:
    """Whether a file begins as a record of trials; one-core samples are stored in the same folder."""
    with suppress(OSError), path.open("rb") as file:
        return file.read(len(OF_TRIALS)) == OF_TRIALS
    return False


def trials_of(record: Record) -> dict[int, Trial]:
    """All trials by line."""
    found = {number: entry for number, entry in record.lines if isinstance(entry, Trial)}
    if not found:
        raise UsageFault(f"no trial in {record.path}: specify a record written by 'dl3 bench'")
    return found


def at_line(record: Record, line: int) -> Trial:
    """The trial on a line."""
    trials = trials_of(record)
    if line not in trials:
        nearest = min(trials, key=lambda number: abs(number - line))
        raise UsageFault(f"line {line} of {record.path} is not a trial; the nearest one is on line {nearest}")
    return trials[line]


def choose(record: Record) -> Trial:
    """The worst trial with loss; without loss, the one at the highest load.

    Trials of resets, of the ceiling and INVALID ones, in this order, are used only if there are no others.
    """
    trials = list(trials_of(record).values())
    results = results_of([record])
    lossy = worst(results)
    if lossy:
        return lossy[0]
    steady = [trial for trial in results.valid if trial.test != RESET]
    valid = results.valid or [trial for trial in trials if not trial.invalid]
    return max(steady or valid or trials, key=lambda trial: (trial.evidence is not None, trial.offered_pps))


def times_of(record: Record, trial: Trial) -> float | None:
    """The load of a trial in multiples of the throughput, where its test goes above on purpose and it lost packets."""
    return Throughputs(results_of([record])).of_trial(trial)


def line_of(record: Record, trial: Trial) -> int:
    """The line of a trial."""
    return next(number for number, entry in record.lines if entry is trial)


def heading(record: Record, trial: Trial, times: float | None, words: Words) -> str:
    """Which trial it is, and what it lost; `times`: its load in multiples of the throughput, if above on purpose."""
    account = trial.account
    numbers = {"lost": account.lost, "sent": account.sent, "ratio": trial.loss_ratio}
    lost = words("explain.heading.lost", **numbers) if account.lost else words("explain.heading.none")
    lost = beside(lost, times, words)
    where = {"record": record.path, "line": line_of(record, trial)}
    load = {"mpps": trial.offered_pps / 1e6, "seconds": trial.seconds}
    return words("explain.heading", **where, dut=trial.dut, frame=words.frame(trial.frame), **load, lost=lost)


def for_programs(record: Record, trial: Trial, language: Language) -> dict[str, object]:
    """The output of --json."""
    names = {"record": str(record.path), "line": line_of(record, trial), "dut": trial.dut, "frame": trial.frame}
    counts = {"offered_pps": trial.offered_pps, "sent": trial.account.sent, "lost": trial.account.lost}
    times = times_of(record, trial)
    words = words_in(language)
    return {
        **names,
        **counts,
        "times_throughput": times,
        "findings": [plain(finding, words) for finding in findings(trial)],
    }


def explain(
    record: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="Record written by 'dl3 bench'; default: the newest one.")
    ] = None,
    line: Annotated[
        int | None, typer.Option("--trial", min=1, metavar="LINE", help="Line of the record that holds the trial.")
    ] = None,
    is_worst: Annotated[bool, typer.Option("--worst", help=WORST)] = False,
    lang: Annotated[Language, typer.Option(help="Language of the output.")] = Language.EN,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Explain where and why a trial lost packets; for a trial without loss, the next bottleneck and its rate.

    Example: dl3 explain build/records/throughput.jsonl --trial 12
    """
    if line is not None and is_worst:
        raise UsageFault("--trial and --worst are mutually exclusive: specify a line, or let dl3 find the worst trial")
    found = read(record or newest())
    for text in found.left_out:
        err.print(f"dl3: {text}", markup=False, highlight=False, soft_wrap=True)
    trial = at_line(found, line) if line is not None else choose(found)
    if as_json:
        print_json(for_programs(found, trial, lang))
        return
    words = words_in(lang)
    out.print(heading(found, trial, times_of(found, trial), words), markup=False, highlight=False, soft_wrap=True)
    for finding in findings(trial):
        out.print(f"- {sentence(finding, words)}", markup=False, highlight=False, soft_wrap=True)
