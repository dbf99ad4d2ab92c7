"""What a reader in a hurry sees: the title, one sentence, and the numbers that stand out."""

from collections.abc import Sequence
from xml.etree.ElementTree import Element

from dl3.model.trial import Throughput
from dl3.report.by_frame import is_at_least
from dl3.report.markup import tag
from dl3.report.names import goal_text, series_names
from dl3.report.results import LatencyCase, LoadPoint, Results, frames_of, latency_cases, series_of
from dl3.report.units import MICRO, gbps, loss, micros, moment, mpps, percent, significant
from dl3.report.words import Words

USUAL_LOAD = 50.0  # percent of the throughput
N_TILES = 4


def joined(names: Sequence[str], words: Words) -> str:
    """Names as a list in a sentence."""
    if len(names) < 2:
        return "".join(names)
    return words("list.and", first=words("list.comma").join(names[:-1]), last=names[-1])


def title(results: Results, words: Words) -> str:
    """What was measured."""
    if not results.records:
        return words("title.empty")
    has_throughput, has_latency = bool(results.searches), bool(results.latencies)
    both = "both" if has_latency else "throughput"
    kind = both if has_throughput else "latency" if has_latency else "trials"
    return words(f"title.{kind}", duts=joined(results.duts, words))


def when(results: Results, words: Words) -> str:
    """From the first record to the last; one day is named once."""
    found = results.moments()
    if not found:
        return ""
    first, last = moment(found[0]), moment(found[-1])
    day, _, clock = first.partition(" ")
    if clock and last.startswith(f"{day} "):
        return words("when.day", day=day, first=clock, last=last.partition(" ")[2])
    return words("when.days", first=first, last=last)


def rate(search: Throughput, words: Words) -> str:
    """'at least 14.2 Mpps'."""
    value = f"{significant(search.pps / 1e6)} Mpps"
    return words("at_least.words", value=value) if is_at_least(search) else value


def goal(search: Throughput, words: Words) -> str:
    """'without loss'."""
    ratio = search.goal_loss_ratio
    return words("result.goal.zero") if ratio == 0 else words("result.goal.some", loss=loss(ratio))


def throughput_sentence(search: Throughput, words: Words) -> str:
    """The answer of one search."""
    names = {"dut": search.dut, "frame": words.frame(search.frame), "goal": goal(search, words)}
    if search.pps <= 0:
        return words("result.none", **names)
    share, limit = search.line_share, f"result.limit.{search.limited_by}"
    return words(
        "result.one",
        **names,
        rate=rate(search, words),
        l1=f"{significant(search.l1_bps / 1e9)} Gbit/s",
        share="" if share is None else words("result.share", percent=percent(share, 1)),
        limit=words(limit) if is_at_least(search) else "",
    )


def compared(searches: Sequence[Throughput], results: Results, words: Words) -> str:
    """The answers of several searches with the same frames."""
    names = series_names(results, words)
    items = [words("result.item", series=names[series_of(one)], rate=rate(one, words)) for one in searches]
    goals = dict.fromkeys(goal(one, words) for one in searches)
    listed = words("list.comma").join(items)
    return words("result.compared", frame=words.frame(searches[0].frame), goal=joined(list(goals), words), list=listed)


def load_text(case: LatencyCase, point: LoadPoint, words: Words) -> str:
    """The load of a latency trial."""
    return words("load.share", percent=f"{point.x:g}") if case.is_share else words("load.rate", mpps=f"{point.x:.3g}")


def usual(case: LatencyCase) -> LoadPoint:
    """The load nearest to half of the throughput; the middle one where shares are not known."""
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
    """The answers for the smallest frames."""
    first = frames_of(results.searches)[:1]
    return [search for search in results.searches if search.frame in first]


def sentence(results: Results, words: Words) -> str:
    """The result in one sentence."""
    found = smallest(results)
    if len(found) > 1:
        return compared(found, results, words)
    if found:
        return throughput_sentence(found[0], words)
    cases = [case for case in latency_cases(results) if case.points]
    if cases:
        return latency_sentence(cases[0], words)
    if results.trials:
        return words("result.trials", n=len(results.trials), invalid=len(results.invalid))
    return words("result.empty")


def tile(value: str, unit: str, text: str) -> Element:
    """A number that stands out, and what it is."""
    return tag("li", tag("strong", value, tag("small", f" {unit}") if unit else None), tag("span", text))


def throughput_tile(search: Throughput, text: str, words: Words, in_gbps: bool = False) -> Element:
    """The tile of an answer, in Mpps or in Gbit/s on layer 1."""
    value, unit = (gbps(search.l1_bps), "Gbit/s") if in_gbps else (mpps(search.pps), "Mpps")
    return tile(words("at_least", value=value) if is_at_least(search) else value, unit, text)


def throughput_tiles(results: Results, words: Words) -> list[Element]:
    """With one series the smallest frame's rate and the greatest bit rate; else each series' rate for the smallest."""
    found = smallest(results)
    if len(found) > 1:
        names = series_names(results, words)
        named = [(one, {"series": names[series_of(one)], "frame": words.frame(one.frame)}) for one in found]
        return [throughput_tile(one, words("tile.series", **values), words) for one, values in named]
    tiles = []
    for one in found:
        text = {"goal": goal_text(one.goal_loss_ratio, words)}
        tiles.append(throughput_tile(one, words("tile.throughput", frame=words.frame(one.frame), **text), words))
        best = max(results.searches, key=lambda search: search.l1_bps)
        frame = words.frame(best.frame)
        tiles.append(throughput_tile(best, words("tile.throughput", frame=frame, **text), words, in_gbps=True))
    return tiles


def tiles(results: Results, words: Words) -> Element | None:
    """The numbers at the top, at most four."""
    found = throughput_tiles(results, words)[: N_TILES - 1]
    for case in latency_cases(results)[: max(N_TILES - 1 - len(found), 0)]:
        if case.points:
            point = usual(case)
            text = words("tile.latency", load=load_text(case, point, words), frame=words.frame(case.frame))
            found.append(tile(micros(dict(point.values)["p50"]), MICRO, text))
    if results.trials:
        n_invalid = len(results.invalid)
        found.append(tile(f"{len(results.trials) - n_invalid:,}", "", words("tile.trials", n=n_invalid)))
    return tag("ul", *found, class_="tiles") if found else None
