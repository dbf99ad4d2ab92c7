"""The highlighted figures at the top of a page."""

from xml.etree.ElementTree import Element

from dl3.model.trial import Throughput
from dl3.report.by_frame import ends_of, is_at_least, layer1_bps
from dl3.report.latencies import latency_cases
from dl3.report.markup import tag
from dl3.report.names import goal_text, series_names, short_loss
from dl3.report.plan_tables import is_run
from dl3.report.results import Results
from dl3.report.summary import load_text, smallest, usual
from dl3.report.units import MICRO, gbps, micros, mpps
from dl3.report.words import Words

N_TILES = 4


def tile(value: str, unit: str, text: str) -> Element:
    """A highlighted figure with its caption."""
    return tag("li", tag("strong", value, tag("small", f" {unit}") if unit else None), tag("span", text))


def throughput_tile(search: Throughput, text: str, words: Words, in_gbps: bool = False) -> Element:
    """The tile of a result, in Mpps or in Gbit/s at layer 1."""
    unit = "Gbit/s" if in_gbps else "Mpps"
    ends = ends_of(search, lambda pps: gbps(layer1_bps(search, pps)) if in_gbps else mpps(pps))
    value = "–".join(ends)
    return tile(words("at_least", value=value) if is_at_least(search) else value, unit, text)


def throughput_tiles(results: Results, words: Words) -> list[Element]:
    """With one series: the rate of the smallest frames and the highest bit rate; else the rate of each series."""
    found = smallest(results)
    if len(found) > 1:
        names = series_names(results, words)
        named = [(one, {"series": names[results.series_of(one)], "frame": words.frame(one.frame)}) for one in found]
        return [throughput_tile(one, words("tile.series", **values), words) for one, values in named]
    tiles = []
    for one in found:
        text = {"goal": goal_text(one.goal_loss_ratio, words)}
        tiles.append(throughput_tile(one, words("tile.throughput", frame=words.frame(one.frame), **text), words))
        best = max(results.searches, key=lambda search: search.l1_bps)
        frame = words.frame(best.frame)
        tiles.append(throughput_tile(best, words("tile.throughput", frame=frame, **text), words, in_gbps=True))
    return tiles


def plan_tiles(results: Results, words: Words) -> list[Element]:
    """Cases of campaigns: how many were run, how many are not applicable here."""
    cases = [case for plan in results.plans for case in plan.cases]
    if not cases:
        return []
    n_run, n_absent = sum(is_run(case, results) for case in cases), sum(not case.jobs for case in cases)
    run = tile(f"{n_run:,}", "", words("tile.run", cases=len(cases)))
    return [run, tile(f"{n_absent:,}", "", words("tile.absent"))]


def lab_tiles(results: Results, words: Words) -> list[Element]:
    """The loss at each load of a lab."""
    found = []
    for run in results.labs:
        on = words("list.comma") + words(f"lab.on.{run.topology.accelerator}")
        says = words("tile.lab", sent=f"{run.sent:,}", rate=f"{run.asked_pps:,.0f}", on=on)
        found.append(tile(short_loss((run.sent - run.received) / run.sent if run.sent else 0.0), "%", says))
    return found


def throughput_or_plan(results: Results, words: Words) -> list[Element]:
    """The results that the tiles summarise."""
    if not results.plans:
        return throughput_tiles(results, words)[: N_TILES - 1]
    best = max(smallest(results), key=lambda search: search.pps, default=None)
    found = plan_tiles(results, words)
    if best is None:
        return found
    text = words("tile.throughput", frame=words.frame(best.frame), goal=goal_text(best.goal_loss_ratio, words))
    return [*found, throughput_tile(best, text, words)]


def tiles(results: Results, words: Words) -> Element | None:
    """The figures at the top, at most four."""
    found = [*throughput_or_plan(results, words), *lab_tiles(results, words)][:N_TILES]
    for case in latency_cases(results)[: max(N_TILES - 1 - len(found), 0)]:
        if case.points:
            point = usual(case)
            text = words("tile.latency", load=load_text(case, point, words), frame=words.frame(case.frame))
            found.append(tile(micros(dict(point.values)["p50"]), MICRO, text))
    if results.trials:
        n_invalid = len(results.invalid)
        n_valid = len(results.valid) if results.measured else len(results.trials) - n_invalid
        found.append(tile(f"{n_valid:,}", "", words("tile.trials", n=n_invalid)))
    return tag("ul", *found, class_="tiles") if found else None
