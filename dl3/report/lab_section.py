"""A lab on the page: where the report's frames were lost, and for each load a drawing and the table of places."""

from collections.abc import Callable, Sequence
from xml.etree.ElementTree import Element

from dl3.model.lab import Hop, LabRun, Topology
from dl3.report.chart import Drawing
from dl3.report.figure import figure
from dl3.report.grid import Column, Row, grid
from dl3.report.lab_beside import beside
from dl3.report.lab_drawing import drawing
from dl3.report.lab_story import SOURCE, story
from dl3.report.markup import tag
from dl3.report.results import Results
from dl3.report.units import MICRO, NOTHING, loss, micros, number, percent
from dl3.report.words import Words

HOPS = (
    Column("place"),
    Column("came", "frames", True),
    Column("went", "frames", True),
    Column("lost", "frames", True),
    Column("lost_share", "%", True),
    Column("counter"),
)


def counters(hop: Hop, words: Words) -> str:
    """Which counters name the loss."""
    found = [f"{name} {n:,}" for name, n in hop.named.items() if n]
    found += [words("lab.unnamed", n=f"{hop.unnamed:,}")] if hop.unnamed else []
    return words("list.comma").join(found) or NOTHING


def place_text(key: str, topology: Topology, words: Words) -> str:
    """What a place is, with its name."""
    place = next(one for one in topology.places() if one.key == key)
    program = topology.station(place.of).program if place.kind == "inside" else ""
    kind = "to_port" if place.kind == "out" and place.to not in [one.name for one in topology.stations] else place.kind
    return words(f"lab.place.{kind}", of=place.of, to=place.to, program=program)


def hop_row(hop: Hop, run: LabRun, words: Words) -> Row:
    """One place."""
    frames = (number(value, 0) for value in (hop.came, hop.went, hop.lost))
    share = loss(hop.lost / hop.came) if hop.came else NOTHING
    return Row(
        [place_text(hop.place, run.topology, words), *frames, share, counters(hop, words)],
        "worse" if hop.lost else None,
    )


def hops_table(n: int, run: LabRun, words: Words) -> Element:
    """All places of a load, and their sum."""
    lost = sum(hop.lost for hop in run.hops)
    frames = (number(value, 0) for value in (run.sent, run.received, lost))
    share = loss(lost / run.sent) if run.sent else NOTHING
    whole = Row([words("lab.segment.whole"), *frames, share, NOTHING])
    return grid(f"hops-{n}", HOPS, [*(hop_row(hop, run, words) for hop in run.hops), whole], words)


def way_of(topology: Topology) -> list[str]:
    """Stations and nodes in the order in which a frame passes them."""
    found = [topology.sender.name]
    for leg in topology.legs:
        found += [leg.node, *([leg.to] if leg.to else [])]
    return found


def way_text(run: LabRun, words: Words, *more: str) -> str:
    """The way of a frame, what the nodes on it are, and more about it."""
    switch = words("list.comma").join((words(f"lab.switch.{run.topology.switch}"), *more))
    return words("lab.way", way=" – ".join(way_of(run.topology)), switch=switch)


def load_title(run: LabRun, words: Words) -> str:
    """The load of a run, with the way that its frames took."""
    rate, seconds = f"{run.asked_pps:,.0f}", f"{run.seconds:g}"
    return words("lab.load", way=way_text(run, words), rate=rate, size=run.frame, seconds=seconds)


def latency(run: LabRun, words: Words) -> str:
    """The median time of the whole way."""
    ends = {"sender": run.topology.sender.name, "receiver": run.topology.receiver.name}
    return words("lab.latency", **ends, value=f"{micros(run.p50_ns)} {MICRO}")


def remarks(run: LabRun, words: Words) -> str:
    """What belongs to a load besides its table."""
    found = [words("lab.late", n=f"{run.late:,}")] if run.late else []
    found += [latency(run, words)] if run.p50_ns else []
    found += [words("lab.short", place=run.topology.short_queue)] if run.topology.short_queue else []
    return " ".join([words("lab.sum"), *found])


def lab_section(results: Results, words: Words, numbered: Callable[[], int]) -> list[Element]:
    """Everything of the labs in the records; `numbered` gives the number of the next figure."""
    runs = results.labs
    if not runs:
        return []
    pieces = [tag("p", words("lab.emulated"), class_="remark")] if any(run.topology.is_emulated for run in runs) else []
    if own := [run for run in runs if run.topology.lab == SOURCE]:
        pieces += story(own, words)
    pieces += beside(runs, words)
    for n, run in enumerate(runs, 1):
        shown = Drawing(load_title(run, words), [drawing(run, words)], words("lab.note"))
        pieces += [figure(numbered(), f"lab-{n}", shown, words), hops_table(n, run, words)]
        pieces.append(tag("p", remarks(run, words), class_="note"))
    return pieces


def what_of(topology: Topology, words: Words) -> str:
    """What was measured: a program behind a switch, or the switch."""
    switch = words(f"lab.switch.{topology.switch}")
    return words("lab.behind", program=topology.program, switch=switch) if topology.middle else switch


def whats(runs: Sequence[LabRun], words: Words) -> str:
    """What was measured in all of them; of several topologies the switches."""
    found = dict.fromkeys(what_of(run.topology, words) for run in runs)
    switches = dict.fromkeys(words(f"lab.switch.{run.topology.switch}") for run in runs)
    return "; ".join(found if len(found) == 1 else switches)


def lab_sentences(results: Results, words: Words) -> list[str]:
    """The result of the highest load of each topology."""
    highest: dict[str, LabRun] = {}
    for run in results.labs:
        key = run.topology.model_dump_json()
        highest[key] = max(highest.get(key, run), run, key=lambda one: one.asked_pps)
    return [lab_sentence(run, len(highest) == 1, words) for run in highest.values()]


def lab_sentence(run: LabRun, is_only: bool, words: Words) -> str:
    """The result of a load; beside other topologies, with its way."""
    on = words(f"lab.on.{run.topology.accelerator}")
    what = words("lab.way", way=what_of(run.topology, words), switch=on) if is_only else way_text(run, words, on)
    worst = max(run.hops, key=lambda hop: hop.lost)
    lost = run.sent - run.received
    names = {
        "what": what,
        "sent": f"{run.sent:,}",
        "lost": f"{lost:,}",
    }
    if lost <= 0:
        return words("lab.says_none", **names)
    place = place_text(worst.place, run.topology, words)
    return words(
        "lab.says", **names, percent=percent(lost / run.sent), place=place, share=percent(worst.lost / lost, 0)
    )
