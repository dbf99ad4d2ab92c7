"""The topology of a lab, drawn from the value that it was built from, with the rate at each place and what was lost there."""

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from dl3.model.lab import VM1, VM2, Hop, LabRun, Topology, Vm
from dl3.report.markup import mark, tag
from dl3.report.plot import Paper, svg
from dl3.report.units import number, percent, significant
from dl3.report.words import Words

PAPER = Paper(width=760, height=304)
GUEST_WIDTH, GUEST_HEIGHT, EDGE = 132.0, 252.0, 6.0
BRIDGE_WIDTH, BRIDGE_HEIGHT, PORT_WIDTH = 296.0, 84.0, 64.0
TOP = 44.0
ROWS = (TOP + 14, TOP + GUEST_HEIGHT - BRIDGE_HEIGHT - 14)  # the upper edges of both bridges
MIDDLE = PAPER.width / 2


def text(words: str, x: float, y: float, class_: str = "", anchor: str = "middle") -> Element:
    """A line of text."""
    return tag("text", words, class_=class_ or None, x=x, y=y, text_anchor=anchor)


def box(x: float, y: float, width: float, height: float, class_: str) -> Element:
    """A rectangle with round corners."""
    return tag("rect", class_=class_, x=x, y=y, width=width, height=height, rx=4)


def rate_text(frames: int, seconds: float, words: Words) -> str:
    """'9,980/s'."""
    return words("lab.rate", rate=significant(frames / seconds) if seconds else "0")


def lost_text(hop: Hop, words: Words) -> str:
    """'120 lost (1.2 %)', with the share of what came to this place."""
    share = percent(hop.lost / hop.came, 1) if hop.came else "0"
    return words("lab.lost", n=number(hop.lost, 0), percent=share)


def arrow(x: float, to: float, y: float) -> list[Element]:
    """A line with its head."""
    back = 7 if to < x else -7
    head = f"{to:.1f},{y:.1f} {to + back:.1f},{y - 4:.1f} {to + back:.1f},{y + 4:.1f}"
    return [
        tag("line", class_="cable", x1=x, x2=to + back, y1=y, y2=y),
        tag("polygon", class_="arrowhead", points=head),
    ]


def lost_at(hop: Hop | None, words: Words, x: float, y: float, anchor: str = "middle") -> Iterator[Element]:
    """What was lost at a place, if anything."""
    if hop and hop.lost:
        yield mark(text(lost_text(hop, words), x, y, "lost", anchor), place=hop.place, value=hop.lost)


def guest(vm: Vm, topology: Topology, hops: dict[str, Hop], words: Words) -> Iterator[Element]:
    """A guest with its program and what was lost in it."""
    x = EDGE if vm.name == VM1 else PAPER.width - EDGE - GUEST_WIDTH
    middle = x + GUEST_WIDTH / 2
    yield box(x, TOP, GUEST_WIDTH, GUEST_HEIGHT, "node")
    yield text(vm.name, middle, TOP + 104, "value")
    yield text(vm.program, middle, TOP + 122)
    yield text(words(f"lab.on.{topology.accelerator}"), middle, TOP + 140, "tick")
    places = (f"{vm.name} tx", f"{vm.name} rx") if vm.name == VM1 else (f"{vm.name} rx", f"{vm.name} tx")
    for place, y in zip(places, (TOP + 40, TOP + GUEST_HEIGHT - 40), strict=True):
        key = "lab.ring.tx" if place.endswith("tx") else "lab.ring.rx"
        yield text(words(key), middle, y, "tick")
        yield from lost_at(hops.get(place) or (hops.get(VM2) if place == f"{VM2} tx" else None), words, middle, y + 15)


def bridge(name: str, row: int, topology: Topology, hops: dict[str, Hop], words: Words) -> Iterator[Element]:
    """A bridge with both of its ports: the one that frames enter is drawn where they come from."""
    y, left = ROWS[row], MIDDLE - BRIDGE_WIDTH / 2
    yield box(left, y, BRIDGE_WIDTH, BRIDGE_HEIGHT, "node")
    yield text(name, MIDDLE, y + 36, "value")
    yield text(words(f"lab.switch.{topology.switch}"), MIDDLE, y + 52, "tick")
    yield from lost_at(hops.get(name), words, MIDDLE, y + 70)
    ports = topology.ports_of(name)
    for port, is_right in zip(ports if row == 0 else reversed(ports), (False, True), strict=True):
        x = left + BRIDGE_WIDTH - PORT_WIDTH if is_right else left
        yield box(x, y, PORT_WIDTH, 24, "port")
        yield text(port, x + PORT_WIDTH / 2, y + 16)
        anchor, edge = ("end", left + BRIDGE_WIDTH - 4) if is_right else ("start", left + 4)
        yield from lost_at(hops.get(port), words, edge, y + BRIDGE_HEIGHT - 6, anchor)


def cables(run: LabRun, hops: dict[str, Hop], words: Words) -> Iterator[Element]:
    """The four ways between guests and bridges, with the rate on each."""
    left, right = MIDDLE - BRIDGE_WIDTH / 2, MIDDLE + BRIDGE_WIDTH / 2
    near, far = EDGE + GUEST_WIDTH, PAPER.width - EDGE - GUEST_WIDTH
    first, second, third, fourth = (
        card.port for vm, n in ((0, 0), (1, 0), (1, 1), (0, 1)) for card in [run.topology.vms[vm].cards[n]]
    )
    ways = (
        (near, left, 0, hops[first].went),
        (right, far, 0, hops[second].went),
        (far, right, 1, hops[third].went),
        (left, near, 1, hops[fourth].went),
    )
    for x, to, row, frames in ways:
        y = ROWS[row] + 12
        yield from arrow(x, to, y)
        yield mark(text(rate_text(frames, run.seconds, words), (x + to) / 2, y - 8, "value"), value=frames)


def drawing(run: LabRun, words: Words) -> Element:
    """The whole picture of one load."""
    topology, hops = run.topology, {hop.place: hop for hop in run.hops}
    parts = [part for vm in topology.vms for part in guest(vm, topology, hops, words)]
    for row, name in enumerate(topology.bridges):
        parts += bridge(name, row, topology, hops, words)
    parts += cables(run, hops, words)
    head = words(
        "lab.heading",
        sent=number(run.sent, 0),
        received=number(run.received, 0),
        lost=number(run.sent - run.received, 0),
    )
    parts.append(text(head, MIDDLE, 20, "axis"))
    return svg(PAPER, words("lab.drawing", lab=topology.lab), parts)
