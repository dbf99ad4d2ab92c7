"""The tables of a report, each with the notes under it."""

from collections.abc import Iterable
from xml.etree.ElementTree import Element

from dl3.model.trial import Throughput, Trial
from dl3.report.by_frame import is_at_least
from dl3.report.grid import Column, Row, grid
from dl3.report.markup import tag
from dl3.report.names import series_names
from dl3.report.reasons import reason_text
from dl3.report.results import Results, losses, series_of
from dl3.report.units import MICRO, NOTHING, gbps, loss, micros, moment, mpps, number, percent
from dl3.report.words import Words

RESULTS = (
    Column("device"),
    Column("frame"),
    Column("mean", "bytes", True),
    Column("mpps", "Mpps", True),
    Column("gbps", "Gbit/s", True),
    Column("share", "%", True),
    Column("upper", "Mpps", True),
    Column("limit"),
    Column("trials", "", True),
)
LATENCY = (
    Column("device"),
    Column("frame"),
    Column("load", "%", True),
    Column("offered", "Mpps", True),
    Column("p50", MICRO, True),
    Column("p99", MICRO, True),
    Column("p99_9", MICRO, True),
    Column("max", MICRO, True),
    Column("jitter", MICRO, True),
    Column("ratio", "%", True),
)
INVALID = (
    Column("at"),
    Column("device"),
    Column("test"),
    Column("frame"),
    Column("asked", "Mpps", True),
    Column("reasons"),
)
LOSS = (
    Column("place"),
    Column("lost", "frames", True),
    Column("share_of_loss", "%", True),
    Column("n_trials", "", True),
    Column("lowest", "Mpps", True),
)
TRIALS = (
    Column("at"),
    Column("device"),
    Column("test"),
    Column("frame"),
    Column("offered", "Mpps", True),
    Column("received", "Mpps", True),
    Column("frames_sent", "frames", True),
    Column("lost", "frames", True),
    Column("ratio", "%", True),
    Column("verdict"),
)


def note(text: str) -> Element:
    """A sentence under a table."""
    return tag("p", text, class_="note")


def bound(search: Throughput, value: str, words: Words) -> str:
    """The value, with ≥ where the device was not the limit."""
    return words("at_least", value=value) if is_at_least(search) and value != NOTHING else value


def result_row(search: Throughput, series: str, words: Words) -> Row:
    """The answer of one search."""
    share = search.line_share
    counted = "count.with_invalid" if search.n_invalid else "count.trials"
    is_open = search.upper_pps > search.pps
    return Row(
        (
            series,
            words.short_frame(search.frame),
            number(search.mean_bytes, 0 if search.mean_bytes % 1 == 0 else 1),
            bound(search, mpps(search.pps), words),
            bound(search, gbps(search.l1_bps), words),
            words("no_line_rate") if share is None else bound(search, percent(share), words),
            mpps(search.upper_pps) if is_open else NOTHING,
            words(f"limit.{search.limited_by}"),
            words(counted, n=search.n_trials, invalid=search.n_invalid),
        )
    )


def unanswered_names(unanswered: Iterable[tuple[str, str]], words: Words) -> list[str]:
    """Device and frame size of each search without an answer."""
    return [words("note.search", dut=dut, frame=words.frame(frame)) for dut, frame in unanswered]


def results_table(results: Results, words: Words) -> list[Element]:
    """What the searches answered, and what limited each."""
    unanswered = results.unanswered
    missing = [note(words("note.no_answer", searches=words("list.comma").join(unanswered_names(unanswered, words))))]
    if not results.searches:
        return missing if unanswered else []
    names = series_names(results, words)
    rows = [result_row(search, names[series_of(search)], words) for search in results.searches]
    notes = [note(words("note.upper"))] if any(s.upper_pps > s.pps for s in results.searches) else []
    if any(is_at_least(search) for search in results.searches):
        notes.append(note(words("note.at_least")))
    if any(search.line_share is None for search in results.searches):
        notes.append(note(words("note.no_line_rate")))
    return [grid("results", RESULTS, rows, words), *notes, *(missing if unanswered else [])]


def latency_row(trial: Trial, words: Words) -> Row:
    """One latency trial."""
    figures = (trial.latency.p50, trial.latency.p99, trial.latency.p99_9, trial.latency.max, trial.jitter_mean)
    head = (trial.dut, words.short_frame(trial.frame), percent(trial.load, 1), mpps(trial.offered_pps))
    return Row((*head, *(micros(value) for value in figures), loss(trial.loss_ratio)))


def latency_table(results: Results, words: Words) -> list[Element]:
    """All valid latency trials."""
    rows = [latency_row(trial, words) for trial in results.latencies]
    return [grid("latency", LATENCY, rows, words), note(words("note.latency"))] if rows else []


def invalid_row(trial: Trial, words: Words) -> Row:
    """One INVALID trial with its reasons."""
    reasons = tag("ul", *(tag("li", reason_text(reason, words)) for reason in trial.invalid))
    frame, test = words.short_frame(trial.frame), words(f"test.{trial.test}")
    return Row((moment(trial.at), trial.dut, test, frame, mpps(trial.asked_pps or None), reasons), "invalid")


def invalid_table(results: Results, words: Words) -> list[Element]:
    """All INVALID trials, or that there are none."""
    if not results.invalid:
        return [note(words("note.no_invalid", n=len(results.trials)))] if results.trials else []
    rows = [invalid_row(trial, words) for trial in results.invalid]
    return [grid("invalid", INVALID, rows, words), note(words("note.invalid"))]


def loss_table(results: Results, words: Words) -> list[Element]:
    """Where frames were lost, and the law that was checked: sent = received + lost."""
    valid, places = results.valid, losses(results.valid)
    sums = {key: f"{sum(getattr(t.account, key) for t in valid):,}" for key in ("sent", "received", "lost")}
    if not places:
        return [note(words("note.no_loss", n=len(valid)))] if valid else []
    n_all = sum(place.n_lost for place in places)
    rows = [
        Row(
            (
                words.name("place", place.name),
                f"{place.n_lost:,}",
                percent(place.n_lost / n_all),
                f"{place.n_trials:,}",
                mpps(place.lowest_pps),
            )
        )
        for place in places
    ]
    return [grid("loss", LOSS, rows, words), note(words("note.loss", n=len(valid), **sums))]


def trial_row(trial: Trial, words: Words) -> Row:
    """One trial, valid or not; of an INVALID one no loss ratio is told."""
    verdict, class_ = ("verdict.invalid", "invalid") if trial.invalid else ("verdict.valid", None)
    return Row(
        (
            moment(trial.at),
            trial.dut,
            words(f"test.{trial.test}"),
            words.short_frame(trial.frame),
            mpps(trial.offered_pps),
            mpps(trial.received_pps),
            f"{trial.account.sent:,}",
            f"{trial.account.lost:,}",
            NOTHING if trial.invalid else loss(trial.loss_ratio),
            words(verdict),
        ),
        class_,
    )


def trials_table(results: Results, words: Words) -> list[Element]:
    """All trials in the order of their times."""
    rows = [trial_row(trial, words) for trial in results.trials]
    return [grid("trials", TRIALS, rows, words)] if rows else []
