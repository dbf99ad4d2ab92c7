"""All trials, grouped by question: the link targets of the figures on the page."""

from xml.etree.ElementTree import Element

from dl3.model.trial import Trial
from dl3.report.grid import Column, Row, csv_text, tools
from dl3.report.groups import Group, Groups, anchor_of, span
from dl3.report.markup import add, tag
from dl3.report.on_purpose import beside
from dl3.report.stalls import beside_trial
from dl3.report.units import NOTHING, loss, moment, mpps
from dl3.report.words import Words

MOST = 2000  # trials for which the page embeds a CSV file; beyond that, use the record
MANY = 400  # trials beyond which they are not printed, since the record has them
COLUMNS = (
    Column("line"),
    Column("at"),
    Column("offered", "Mpps", True),
    Column("received", "Mpps", True),
    Column("frames_sent", "frames", True),
    Column("lost", "frames", True),
    Column("ratio", "%", True),
    Column("p50", "µs", True),
    Column("verdict"),
)
IN_FILE = (Column("device"), Column("test"), Column("frame"), Column("job"), *COLUMNS)


def cells(trial: Trial, groups: Groups, words: Words) -> tuple[str, ...]:
    """One trial, valid or not; of an INVALID one no loss ratio is told."""
    results, times = groups.results, groups.throughputs.of_trial(trial)
    verdict = words("verdict.invalid") if trial.invalid else beside(words("verdict.valid"), times, words)
    return (
        results.line(trial),
        moment(trial.at),
        mpps(trial.offered_pps),
        mpps(trial.received_pps),
        f"{trial.account.sent:,}",
        f"{trial.account.lost:,}",
        NOTHING if trial.invalid else loss(trial.loss_ratio),
        NOTHING if trial.invalid or not trial.latency.n else f"{trial.latency.p50 / 1e3:,.2f}",
        beside_trial(verdict, trial, words),
    )


def row(trial: Trial, groups: Groups, words: Words) -> Element:
    """A row that can be led to."""
    found = (tag("td", cell) for cell in cells(trial, groups, words))
    return tag("tr", *found, id=anchor_of(groups.results.line(trial)), class_="invalid" if trial.invalid else None)


def group_rows(group: Group, groups: Groups, words: Words) -> Element:
    """The trials of one question under their heading."""
    results = groups.results
    frame, test = words.frame(group.frame), words.name("test", group.test)
    text = words("trials.group", dut=group.dut, test=test, frame=frame)
    lines = words("trials.lines", lines=span([results.line(trial) for trial in group.trials]))
    job = tag("small", group.job) if group.job else None
    head = tag("tr", tag("th", text, tag("small", lines), job, colspan=len(COLUMNS), scope="rowgroup"))
    return add(tag("tbody", head, id=group.anchor), [row(trial, groups, words) for trial in group.trials])


def file_row(trial: Trial, groups: Groups, words: Words) -> Row:
    """A row of the CSV file, which has no headings of groups."""
    head = (trial.dut, words.name("test", trial.test), trial.frame, trial.job)
    return Row((*head, *cells(trial, groups, words)))


def trials_table(groups: Groups, words: Words) -> list[Element]:
    """All trials."""
    results = groups.results
    if not results.trials:
        return []
    heads = [
        tag("th", words(f"table.{one.key}"), tag("small", words.name("unit", one.unit)) if one.unit else None)
        for one in COLUMNS
    ]
    bodies = [group_rows(group, groups, words) for group in groups.groups.values()]
    class_ = "trials many" if len(results.trials) > MANY else "trials"
    table = tag("table", tag("thead", tag("tr", *heads)), *bodies, class_=class_, id="trials")
    text = csv_text(IN_FILE, (file_row(trial, groups, words) for trial in results.trials), words)
    note = tag("p", words("note.trials"), class_="note")
    printed = tag("p", words("note.not_printed", n=f"{len(results.trials):,}"), class_="note on-paper")
    is_many = len(results.trials) > MANY
    more = tools("trials", text, words) if len(results.trials) <= MOST else None
    block = tag("div", tag("div", table, class_="table"), more, class_="block")
    return [note, *([printed] if is_many else []), block]
