"""Tables of the whole report: generator self-test, jobs without a result, and causes of loss."""

from xml.etree.ElementTree import Element

from dl3.model.results import Proof, ProofPoint
from dl3.report.explain import explain
from dl3.report.fold import grouped, names_list
from dl3.report.grid import Column, Row, grid
from dl3.report.groups import Groups, span
from dl3.report.markup import tag
from dl3.report.names import job_name
from dl3.report.on_purpose import beside
from dl3.report.proofs import best_share, ceiling_text, is_of, is_short, points_of, share_text
from dl3.report.results import Results, tester_of
from dl3.report.sentences import sentence_text
from dl3.report.units import MICRO, micros, moment, mpps, percent
from dl3.report.words import Words
from dl3.report.worst import worst

PROOF = (
    Column("at"),
    Column("wire"),
    Column("frame"),
    Column("ceiling", "Mpps", True),
    Column("pacing", "%", True),
    Column("floor", MICRO, True),
    Column("p50", MICRO, True),
    Column("jitter", MICRO, True),
    Column("best_share", "%", True),
    Column("best_delay", MICRO, True),
    Column("reasons", is_optional=True),
    Column("line"),
)
SKIPPED = (Column("at"), Column("job"), Column("reason"), Column("line"))


def best_delay(proof: Proof, point: ProofPoint, results: Results) -> float | None:
    """The latency that the fastest device added to the generator's own median latency."""
    same = [one for one in results.latencies if one.frame == point.frame and is_of(tester_of(one), proof, results)]
    medians = [trial.latency.p50 for trial in same if trial.latency.n]
    return max(min(medians) - point.latency_p50_ns, 0) if medians else None


def proof_table(results: Results, words: Words) -> list[Element]:
    """The capability of the generator itself, and how close the results come to it."""
    rows = [
        Row(
            (
                moment(proof.at),
                words.name("wire", proof.wire),
                words.short_frame(point.frame),
                ceiling_text(proof, point, results, words),
                percent(point.pacing_error, 4),
                micros(point.latency_min_ns),
                micros(point.latency_p50_ns),
                micros(point.jitter_mean_ns),
                share_text(best_share(proof, point, results), words),
                micros(best_delay(proof, point, results)),
                words("list.semicolon").join(sentence_text(reason, words) for reason in point.invalid),
                results.line(proof),
            ),
            "invalid" if point.invalid else None,
        )
        for proof, point in points_of(results)
    ]
    if not rows:
        return []
    is_any_short = any(is_short(proof, point, results) for proof, point in points_of(results))
    notes = ["note.proof", *(["note.short_proof"] if is_any_short else [])]
    return [grid("proof", PROOF, rows, words), *(tag("p", words(key), class_="note") for key in notes)]


def skipped_table(results: Results, words: Words) -> list[Element]:
    """Jobs that were planned and gave no result; those with the same reason together."""
    rows = []
    for one in grouped(((results.line(skip), skip) for skip in results.skipped), lambda skip: skip.reason):
        same = [skip for skip in results.skipped if skip.reason == one.of.reason]
        names = [job_name(skip.job, results, words) for skip in same]
        reason = sentence_text(one.of.reason, words)
        rows.append(Row((moment(same[0].at), names_list(names, words), reason, span(one.names))))
    return [grid("skipped", SKIPPED, rows, words)] if rows else []


def explained(groups: Groups, words: Words) -> list[Element]:
    """The worst trials with loss, each with its sentences."""
    pieces: list[Element] = []
    last: list[str] = []
    for trial in worst(groups.results):
        names = {"dut": trial.dut, "frame": words.frame(trial.frame), "mpps": mpps(trial.offered_pps)}
        text = words("explained.trial", **names, lost=f"{trial.account.lost:,}", sent=f"{trial.account.sent:,}")
        text = beside(text, groups.throughputs.of_trial(trial), words)
        line = tag("a", words("explained.line", line=groups.results.line(trial)), href=groups.link(trial))
        sentences = explain(trial, words)
        at = len(pieces) - 1 if pieces and sentences == last else len(pieces)  # before the equal list of the last one
        pieces.insert(at, tag("h3", text, tag("small", line)))
        if sentences != last:
            pieces.append(tag("ul", *(tag("li", one) for one in sentences), class_="plain"))
        last = sentences
    return pieces
