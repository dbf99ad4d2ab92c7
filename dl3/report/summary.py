"""The summary: the title, and the result in a sentence or two."""

from collections.abc import Callable, Sequence
from functools import partial

from dl3.model.campaign import Plan
from dl3.model.trial import Throughput
from dl3.report.by_frame import ends_of, is_at_least, layer1_bps
from dl3.report.compare import Comparison
from dl3.report.comparison_table import comparison_text
from dl3.report.lab_section import lab_sentences, whats
from dl3.report.latencies import LatencyCase, LoadPoint, latency_cases
from dl3.report.names import series_names, short_loss
from dl3.report.other_sentences import other_sentence
from dl3.report.plan_tables import is_partly, is_run, said, with_result
from dl3.report.results import Results, frames_of
from dl3.report.shaped import shaping_sentences
from dl3.report.units import MICRO, micros, moment, percent, significant
from dl3.report.words import Words

USUAL_LOAD = 50.0  # percent of the throughput
N_SERIES = 6  # in one sentence


def joined(names: Sequence[str], words: Words) -> str:
    """Names as a list in a sentence."""
    if len(names) < 2:
        return "".join(names)
    return words("list.and", first=words("list.comma").join(names[:-1]), last=names[-1])


def title(results: Results, words: Words) -> str:
    """What was measured."""
    if results.plans:
        return joined([said(plan.title, words) for plan in results.plans], words)
    if results.labs and not results.measured:
        return words("title.lab", lab=results.labs[-1].topology.lab, what=whats(results.labs, words))
    if not results.measured:
        return words("title.proof" if results.proofs else "title.empty")
    if results.shapings and not (results.searches or results.latencies or results.others):
        return words("title.shaping", duts=joined(results.duts, words))
    has_throughput, has_latency = bool(results.searches), bool(results.latencies)
    both = "both" if has_latency else "throughput"
    kind = both if has_throughput else "latency" if has_latency else "tests" if results.others else "trials"
    return words(f"title.{kind}", duts=joined(results.duts, words))


def when(results: Results, words: Words) -> str:
    """From the first record to the last; a single day is named once."""
    found = results.moments()
    if not found:
        return ""
    first, last = moment(found[0]), moment(found[-1])
    day, _, clock = first.partition(" ")
    if clock and last.startswith(f"{day} "):
        return words("when.day", day=day, first=clock, last=last.partition(" ")[2])
    return words("when.days", first=first, last=last)


def rate(search: Throughput, words: Words) -> str:
    """'at least 14.2 Mpps'; a range if the machine was too noisy for one number."""
    if found := search.range_pps:
        low, high = (significant(pps / 1e6) for pps in found)
        return words("rate.range_or_more" if is_at_least(search) else "rate.range", low=low, high=high)
    value = f"{significant(search.pps / 1e6)} Mpps"
    return words("at_least.words" if is_at_least(search) else "exactly.words", value=value)


def spanned(search: Throughput, shown: Callable[[float], str], words: Words) -> str:
    """The display form of the rate in packets/s, or of both ends of its range."""
    low, *high = ends_of(search, shown)
    return words("fact.range", low=low, high=high[0]) if high else low


def goal(search: Throughput, words: Words) -> str:
    """'without loss'."""
    ratio = search.goal_loss_ratio
    return words("result.goal.zero") if ratio == 0 else words("result.goal.some", loss=short_loss(ratio))


def throughput_sentence(search: Throughput, words: Words) -> str:
    """The result of one search."""
    names = {"dut": search.dut, "frame": words.frame(search.frame), "goal": goal(search, words)}
    if search.pps <= 0:
        return words("result.none", **names)
    share, limit = search.line_share, f"result.limit.{search.limited_by}"
    line, bps = search.line_bps, partial(layer1_bps, search)
    shares = "" if share is None else spanned(search, lambda pps: percent(bps(pps) / line, 1), words)
    return words(
        "result.one",
        **names,
        rate=rate(search, words),
        l1=f"{spanned(search, lambda pps: significant(bps(pps) / 1e9), words)} Gbit/s",
        share=shares and words("result.share", percent=shares),
        limit=words(limit) if is_at_least(search) else "",
    )


def compared(searches: Sequence[Throughput], results: Results, words: Words) -> str:
    """The results of several searches with the same frames."""
    names = series_names(results, words)
    items = [words("result.item", series=names[results.series_of(one)], rate=rate(one, words)) for one in searches]
    goals = dict.fromkeys(goal(one, words) for one in searches)
    listed = words("list.comma").join(items).replace("） ", "）")  # a full-width bracket includes its own space
    return words("result.compared", frame=words.frame(searches[0].frame), goal=joined(list(goals), words), list=listed)


def load_text(case: LatencyCase, point: LoadPoint, words: Words) -> str:
    """The load of a latency trial."""
    return words("load.share", percent=f"{point.x:g}") if case.is_share else words("load.rate", mpps=f"{point.x:.3g}")


def usual(case: LatencyCase) -> LoadPoint:
    """The load nearest to half of the throughput; the middle one if shares are unknown."""
    if not case.is_share:
        return case.points[len(case.points) // 2]
    return min(case.points, key=lambda point: abs(point.x - USUAL_LOAD))


def latency_sentence(case: LatencyCase, words: Words) -> str:
    """The latency at a usual load."""
    point = usual(case)
    values = {name: f"{micros(value)} {MICRO}" for name, value in point.values}
    frame = words.frame(case.frame)
    return words("result.latency", dut=case.dut, frame=frame, load=load_text(case, point, words), **values)


def smallest(results: Results) -> list[Throughput]:
    """The results for the smallest frames; those with zero loss if there are several goals."""
    first = frames_of(results.searches)[:1]
    found = [search for search in results.searches if search.frame in first]
    strictest = min((search.goal_loss_ratio for search in found), default=0.0)
    return [search for search in found if search.goal_loss_ratio == strictest]


def plan_sentence(plan: Plan, results: Results, words: Words) -> str:
    """How much of a campaign was run."""
    run = [case for case in plan.cases if is_run(case, results)]
    n_partly = sum(is_partly(case, results) for case in run)
    n_absent = sum(not case.jobs for case in plan.cases)
    n_jobs = sum(len(case.jobs) for case in plan.cases)
    n_with_result = sum(with_result(case, results) for case in run)
    numbers = {"cases": len(plan.cases), "jobs": n_jobs, "with_result": n_with_result}
    if len(run) == len(plan.cases) and not n_partly:
        return words("result.plan_all", **numbers)
    partly = words("result.partly", n=n_partly) if n_partly else ""
    key = "result.plan" if n_absent else "result.plan_some"
    return words(key, **numbers, run=len(run), partly=partly, absent=n_absent)


def best_sentence(results: Results, words: Words) -> str:
    """The highest rate with the smallest frames, and the case it belongs to."""
    best = max(smallest(results), key=lambda search: search.pps)
    if best.pps <= 0:
        return throughput_sentence(best, words)
    job = results.jobs.get(best.job)
    case = words("result.in_case", case=job.case) if job else ""
    says = {"dut": best.dut, "frame": words.frame(best.frame), "rate": rate(best, words), "goal": goal(best, words)}
    return words("result.best", **says, case=case)


def found_sentence(results: Results, words: Words) -> str:
    """The result of measurements outside of a campaign's plan."""
    found = smallest(results)
    if len(found) > N_SERIES:
        return best_sentence(results, words)
    if len(found) > 1:
        return compared(found, results, words)
    if found:
        return throughput_sentence(found[0], words)
    cases = [case for case in latency_cases(results) if case.points]
    if cases:
        return latency_sentence(cases[0], words)
    if results.others:
        return other_sentence(results.others[0], words)
    if results.trials:
        return words("result.trials", n=len(results.trials), invalid=len(results.invalid))
    return words("result.proof" if results.proofs else "result.empty", n=len(results.proofs))


def sentences(results: Results, words: Words, comparison: Comparison | None = None) -> list[str]:
    """What was found, the most important first."""
    found = [comparison_text(comparison, words)] if comparison else []
    found += [plan_sentence(plan, results, words) for plan in results.plans]
    if results.plans:
        return [*found, best_sentence(results, words)] if results.searches else found
    found += lab_sentences(results, words)
    if results.labs and not results.measured:
        return found
    shaped = shaping_sentences(results, words)[:N_SERIES]
    if shaped and not (results.searches or results.latencies or results.others):
        return [*found, *shaped]
    return [*found, found_sentence(results, words)]
