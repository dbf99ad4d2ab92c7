"""The tables of throughput, latency, loss and trials on each page, with the notes below them."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from xml.etree.ElementTree import Element

from dl3.model.trial import Throughput, Trial, wire_of
from dl3.report.by_frame import ends_of, is_at_least, layer1_bps
from dl3.report.chart import Scene
from dl3.report.grid import Column, Row, grid
from dl3.report.groups import Groups
from dl3.report.markup import tag
from dl3.report.names import short_loss, table_names
from dl3.report.on_purpose import times_text
from dl3.report.places import losses
from dl3.report.proofs import ceiling_share, share_text
from dl3.report.reasons import noise_text, reason_text
from dl3.report.results import Results
from dl3.report.tally import recount, tally
from dl3.report.units import MICRO, NOTHING, gbps, loss, micros, moment, mpps, number, percent
from dl3.report.words import Words, is_size

MANY = 30  # INVALID trials shown without unfolding
N_REASONS = 8
RESULTS = (
    Column("device"),
    Column("frame"),
    Column("mean", "bytes", True, is_optional=True),
    Column("goal", is_optional=True),
    Column("mpps", "Mpps", True),
    Column("interval", "Mpps", True, is_optional=True),
    Column("conditional", "Mpps", True, is_optional=True),
    Column("gbps", "Gbit/s", True),
    Column("share", "%", True, is_optional=True),
    Column("upper", "Mpps", True, is_optional=True),
    Column("limit"),
    Column("of_ceiling", "%", True, is_optional=True),
    Column("trials", "", True),
    Column("lines"),
)
LATENCY = (
    Column("device"),
    Column("frame"),
    Column("load", "%", True),
    Column("offered", "Mpps", True),
    Column("min", MICRO, True),
    Column("mean_latency", MICRO, True),
    Column("p50", MICRO, True),
    Column("p90", MICRO, True),
    Column("p99", MICRO, True),
    Column("p99_9", MICRO, True),
    Column("p99_99", MICRO, True),
    Column("max", MICRO, True),
    Column("jitter", MICRO, True),
    Column("ratio", "%", True),
    Column("lines"),
)
INVALID = (
    Column("at"),
    Column("device"),
    Column("test"),
    Column("frame"),
    Column("asked", "Mpps", True),
    Column("reasons"),
    Column("lines"),
)
LOSS = (
    Column("place"),
    Column("lost", "frames", True),
    Column("share_of_loss", "%", True),
    Column("n_trials", "", True),
    Column("lowest", "Mpps", True),
)


def note(text: str) -> Element:
    """A sentence below a table."""
    return tag("p", text, class_="note")


def bound(search: Throughput, value: str, words: Words) -> str:
    """The value, with ≥ if the device was not the limit."""
    return words("at_least", value=value) if is_at_least(search) and value != NOTHING else value


def goal_cell(search: Throughput, results: Results, words: Words) -> str:
    """The goal, if the searches have different ones."""
    is_alike = all(one.goal_loss_ratio == 0 for one in results.searches)
    if is_alike:
        return NOTHING
    ratio = search.goal_loss_ratio
    return words("goal.none") if ratio == 0 else words("goal.cell", loss=short_loss(ratio))


def rate_cell(search: Throughput, shown: Callable[[float], str], words: Words) -> str:
    """The display form of the rate in packets/s; a range if the machine was too noisy for one number."""
    return bound(search, "–".join(ends_of(search, shown)), words)


def interval_cell(search: Throughput) -> str:
    """The 95 % interval of the result."""
    if search.interval_pps is None:
        return NOTHING
    low, high = search.interval_pps
    return f"{mpps(low)}–{mpps(high)}"


def result_row(search: Throughput, series: str, scene: Scene, words: Words) -> Row:
    """The result of one search."""
    share, line, of_ceiling = search.line_share, search.line_bps, ceiling_share(search, scene.groups.results)
    found = tally(search, scene.groups)
    counted = "count.with_invalid" if found.n_invalid else "count.trials"
    cells = (
        series,
        words.short_frame(search.frame),
        NOTHING if is_size(search.frame) else number(search.mean_bytes, 1),
        goal_cell(search, scene.part.results, words),
        rate_cell(search, mpps, words),
        interval_cell(search),
        bound(search, mpps(search.conditional_pps), words) if search.goal_loss_ratio > 0 else NOTHING,
        rate_cell(search, lambda pps: gbps(layer1_bps(search, pps)), words),
        NOTHING if share is None else rate_cell(search, lambda pps: percent(layer1_bps(search, pps) / line), words),
        mpps(search.too_high_pps),
        words(f"limit.{search.limited_by}"),
        share_text(of_ceiling, words),
        words(counted, n=found.n, invalid=found.n_invalid),
        scene.groups.lines(search),
    )
    return Row(cells, "noisy" if search.noise else None, scene.groups.link(search))


def names_without_result(without_result: Iterable[tuple[str, str]], words: Words) -> list[str]:
    """Device and frame size of each search without a result."""
    return [words("note.search", dut=dut, frame=words.frame(frame)) for dut, frame in without_result]


def result_notes(searches: Sequence[Throughput], results: Results, words: Words) -> list[Element]:
    """The notes for tables of these searches; `results` are all of the page."""
    shares = [ceiling_share(one, results) for one in searches]
    found = {
        "note.upper": any(one.too_high_pps is not None for one in searches),
        "note.at_least": any(is_at_least(one) for one in searches),
        "note.no_line_rate": any(one.line_share is None for one in searches),
        "note.interval": any(one.interval_pps is not None for one in searches),
        "note.conditional": any(one.conditional_pps is not None and one.goal_loss_ratio > 0 for one in searches),
        "note.exceed": any(one.exceed_ratio > 0 for one in searches),
        "note.counts": True,
        "note.short_proof": any(share.is_at_most for share in shares if share),
    }
    exceed = percent(max((one.exceed_ratio for one in searches), default=0), 0)
    return [note(words(key, exceed=exceed)) for key, is_wanted in found.items() if is_wanted]


def noise_notes(results: Results, groups: Groups, words: Words) -> list[Element]:
    """Which results a noisy machine gave, and why it was noisy: one sentence for each device and reason."""
    frames: dict[tuple[str, str], list[str]] = {}
    wires = {(one.dut, wire_of(one.facts)) for one in results.searches}
    for one in results.searches:
        if one.noise:
            is_of_many = sum(dut == one.dut for dut, _ in wires) > 1
            wire = words("series.wire", wire=words.name("wire", wire_of(one.facts))) if is_of_many else ""
            frames.setdefault((one.dut + wire, noise_text(recount(one, groups), words)), []).append(
                words.frame(one.frame)
            )
    comma = words("list.comma")
    return [
        note(words("note.noisy", dut=dut, frame=comma.join(dict.fromkeys(found)), why=why))
        for (dut, why), found in frames.items()
    ]


def results_table(scene: Scene, prefix: str, words: Words) -> list[Element]:
    """The results of the searches, and what limited each."""
    results = scene.part.results
    without_result = results.without_result
    missing = [
        note(words("note.no_result", searches=words("list.comma").join(names_without_result(without_result, words))))
    ]
    if not results.searches:
        return missing if without_result else []
    names = table_names(results.series, words)
    rows = [result_row(search, names[results.series_of(search)], scene, words) for search in results.searches]
    table = grid(f"{prefix}results", RESULTS, rows, words)
    is_case = scene.part.case is not None  # notes for all cases are above them
    standing = [] if is_case else result_notes(results.searches, scene.groups.results, words)
    return [table, *standing, *noise_notes(results, scene.groups, words), *(missing if without_result else [])]


def latency_row(trial: Trial, name: str, scene: Scene, words: Words) -> Row:
    """One latency trial."""
    of = trial.latency
    figures = (of.min, of.mean, of.p50, of.p90, of.p99, of.p99_9, of.p99_99, of.max, trial.jitter_mean)
    head = (name, words.short_frame(trial.frame), percent(trial.load, 1), mpps(trial.offered_pps))
    cells = (*head, *(micros(value) for value in figures), loss(trial.loss_ratio), scene.groups.lines(trial))
    return Row(cells, link=scene.groups.link(trial))


def latency_table(scene: Scene, prefix: str, words: Words) -> list[Element]:
    """All valid latency trials."""
    results = scene.part.results
    names = table_names((results.series_of(trial) for trial in results.latencies), words)
    rows = [latency_row(trial, names[results.series_of(trial)], scene, words) for trial in results.latencies]
    return [grid(f"{prefix}latency", LATENCY, rows, words), note(words("note.latency"))] if rows else []


def invalid_row(trial: Trial, groups: Groups, words: Words) -> Row:
    """One INVALID trial with its reasons."""
    reasons = tag("ul", *(tag("li", reason_text(reason, words)) for reason in trial.invalid))
    frame, test = words.short_frame(trial.frame), words(f"test.{trial.test}")
    asked = mpps(trial.asked_pps or None)
    cells = (moment(trial.at), trial.dut, test, frame, asked, reasons, groups.lines(trial))
    return Row(cells, "invalid", groups.link(trial))


def reason_counts(results: Results, words: Words) -> str:
    """How often each kind of reason made a trial INVALID."""
    found = Counter(reason.partition(": ")[0] for trial in results.invalid for reason in trial.invalid)
    listed = (words("invalid.reason", name=words.name("reason", name), n=n) for name, n in found.most_common(N_REASONS))
    return words("invalid.counts", n=len(results.invalid), listed=words("list.comma").join(listed))


def invalid_table(groups: Groups, words: Words) -> list[Element]:
    """All INVALID trials, or a note that there are none."""
    results = groups.results
    if not results.invalid:
        return [note(words("note.no_invalid", n=len(results.trials)))] if results.trials else []
    rows = [invalid_row(trial, groups, words) for trial in results.invalid]
    if len(rows) > MANY:
        table = tag("details", tag("summary", words("invalid.all", n=len(rows))), grid("invalid", INVALID, rows, words))
        return [note(words("note.invalid")), note(reason_counts(results, words)), table]
    return [grid("invalid", INVALID, rows, words), note(words("note.invalid"))]


def purpose_notes(groups: Groups, words: Words) -> list[Element]:
    """How much of all loss was at loads above the throughput, which the tests ask for."""
    valid = groups.results.valid
    found = [(trial.account.lost, times) for trial in valid if (times := groups.throughputs.of_trial(trial))]
    if not found:
        return []
    n_lost, n_all = sum(n for n, _ in found), sum(trial.account.lost for trial in valid)
    most = times_text(max(times for _, times in found))
    return [note(words("note.purpose", lost=f"{n_lost:,}", share=percent(n_lost / n_all), times=most))]


def loss_table(groups: Groups, words: Words) -> list[Element]:
    """Where frames were lost, and the accounting: sent = received + lost."""
    valid, places = groups.results.valid, losses(groups.results.valid)
    sums = {key: f"{sum(getattr(t.account, key) for t in valid):,}" for key in ("sent", "received", "lost")}
    if not places:
        return [note(words("note.no_loss", n=len(valid)))] if valid else []
    n_all = sum(place.n_lost for place in places)
    rows = [
        Row(
            (
                words.place(place.name),
                f"{place.n_lost:,}",
                percent(place.n_lost / n_all),
                f"{place.n_trials:,}",
                mpps(place.lowest_pps),
            )
        )
        for place in places
    ]
    return [
        grid("loss", LOSS, rows, words),
        note(words("note.loss", n=len(valid), **sums)),
        *purpose_notes(groups, words),
    ]
