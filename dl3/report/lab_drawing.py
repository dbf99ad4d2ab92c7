"""The topology of a lab, drawn from the value that it was built from, with the rate at each place and what was lost there."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from dl3.model.lab import Hop, LabRun, Leg, Place, Station, Topology
from dl3.report.markup import mark, tag
from dl3.report.plot import Paper, svg
from dl3.report.units import number, percent, significant
from dl3.report.words import Words

WIDTH, HEIGHT = 760.0, 304.0
GUEST_WIDTH, EDGE = 144.0, 6.0
GUEST_HEIGHTS = (140.0, 252.0)  # beside one way, and beside two
NODE_WIDTH, NODE_HEIGHT, PORT_WIDTH, PORT_HEIGHT = 296.0, 84.0, 72.0, 24.0
GAP = 66.0  # between nodes that follow each other
TOP = 44.0
ROWS = (TOP + 14, TOP + GUEST_HEIGHTS[1] - NODE_HEIGHT - 14)  # the upper edges of the nodes of both ways
MIDDLE = WIDTH / 2
NEAR, FAR = EDGE + GUEST_WIDTH, WIDTH - EDGE - GUEST_WIDTH


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


@dataclass(frozen=True)
class Row:
    """The legs from one station to the next, and the places on them."""

    number: int  # 0: to the right; 1: back, to the left
    legs: Sequence[Leg]
    places: Sequence[Place]  # three for each leg

    @property
    def width(self) -> float:
        """Of a node."""
        n = len(self.legs)
        return NODE_WIDTH if n == 1 else (FAR - NEAR - GAP * (n + 1)) / n

    def left(self, n: int) -> float:
        """The left edge of a node, counted in the order of the way."""
        at = n if self.number == 0 else len(self.legs) - 1 - n
        gap = (FAR - NEAR - self.width * len(self.legs)) / (len(self.legs) + 1)
        return NEAR + gap + at * (self.width + gap)

    def side(self, n: int, is_entry: bool) -> float:
        """Where a node is entered, or left."""
        return self.left(n) + (0.0 if is_entry == (self.number == 0) else self.width)


def rows_of(topology: Topology) -> list[Row]:
    """One way, or two: there and back."""
    places = [one for one in topology.places() if one.kind in ("in", "node", "out")]
    ends = [n for n, leg in enumerate(topology.legs, 1) if leg.to]
    begins = [0, *ends[:-1]]
    return [
        Row(number, topology.legs[begin:end], places[3 * begin : 3 * end])
        for number, (begin, end) in enumerate(zip(begins, ends, strict=True))
    ]


def station(one: Station, is_right: bool, topology: Topology, hops: dict[str, Hop], words: Words) -> Iterator[Element]:
    """A station with its program and what was lost in it."""
    x = FAR if is_right else EDGE
    middle = x + GUEST_WIDTH / 2
    on = topology.accelerator if one.is_guest else "none"
    is_receiver = one.name == topology.receiver.name and (is_right or len(rows_of(topology)) > 1)
    is_low = len(rows_of(topology)) == 1
    height = GUEST_HEIGHTS[0] if is_low else GUEST_HEIGHTS[1]
    name_y = TOP + (84 if is_low else 104)
    yield box(x, TOP, GUEST_WIDTH, height, "node")
    for n, (line, class_) in enumerate(((one.name, "value"), (one.program, ""), (words(f"lab.on.{on}"), "tick"))):
        yield text(line, middle, name_y + 18 * n, class_)
    tx, rx = ("lab.ring.tx", (f"{one.name} tx", one.name)), ("lab.ring.rx", (f"{one.name} rx",))
    has_tx = not is_right or one in topology.middle
    has_rx = is_right or is_receiver
    ends = [(rx, has_rx), (tx, has_tx)] if is_right else [(tx, has_tx), (rx, has_rx)]
    for ((key, places), is_there), y in zip(ends, (TOP + 32 if is_low else TOP + 40, TOP + height - 40), strict=True):
        if is_there:
            yield text(words(key), middle, y, "tick")
            yield from lost_at(next((hops[name] for name in places if name in hops), None), words, middle, y + 15)


def box_of(row: Row, n: int, topology: Topology) -> tuple[float, float]:
    """Upper edge and height of a node: one that both ways pass is as high as both."""
    if row.legs[n].node in [
        leg.node for other in rows_of(topology) if other.number != row.number for leg in other.legs
    ]:
        return ROWS[0], ROWS[1] + NODE_HEIGHT - ROWS[0]
    return ROWS[row.number], NODE_HEIGHT


def node(row: Row, n: int, topology: Topology, hops: dict[str, Hop], words: Words) -> Iterator[Element]:
    """A node with both of its ports: the one that frames enter is drawn where they come from."""
    y, left, width = ROWS[row.number], row.left(n), row.width
    first, middle, second = row.places[3 * n : 3 * n + 3]
    top, height = box_of(row, n, topology)
    if top == y:  # else it has been drawn
        yield box(left, top, width, height, "node")
    if height == NODE_HEIGHT or row.number == 0:
        centre = top + height / 2
        yield text(middle.of, left + width / 2, centre - 6 if len(row.legs) == 1 else y + 44, "value")
        if len(row.legs) == 1:
            yield text(words(f"lab.switch.{topology.switch}"), left + width / 2, centre + 10, "tick")
    yield from lost_at(hops.get(middle.key), words, left + width / 2, y + (70 if len(row.legs) == 1 else 58))
    port_width = min(PORT_WIDTH, width / 2)
    for place, is_entry in ((first, True), (second, False)):
        is_left = row.side(n, is_entry) == left
        x = left if is_left else left + width - port_width
        yield box(x, y, port_width, PORT_HEIGHT, "port")
        yield text(place.of, x + port_width / 2, y + 16)
        low = y + NODE_HEIGHT - (6 if len(row.legs) == 1 or not is_entry else 18)
        edge, anchor = (left + 4, "start") if is_left else (left + width - 4, "end")
        yield from lost_at(hops.get(place.key), words, edge, low, anchor)


def cables(row: Row, run: LabRun, hops: dict[str, Hop], words: Words) -> Iterator[Element]:
    """The ways between stations and nodes, with the rate on each: what enters a node, and at last what leaves one."""
    y = ROWS[row.number] + 12
    label_y = TOP - 6 if len(row.legs) > 1 else y - 8  # above everything, where cables are short
    begin, end = (NEAR, FAR) if row.number == 0 else (FAR, NEAR)
    n = len(row.legs)
    points = [begin, *(row.side(i // 2, i % 2 == 0) for i in range(2 * n)), end]
    frames = [*(hops[row.places[3 * i].key].went for i in range(n)), hops[row.places[-1].key].went]
    for i, rate in enumerate(frames):
        x, to = points[2 * i], points[2 * i + 1]
        yield from arrow(x, to, y)
        yield mark(text(rate_text(rate, run.seconds, words), (x + to) / 2, label_y, "value"), value=rate)


def drawing(run: LabRun, words: Words) -> Element:
    """The whole picture of one load."""
    topology, hops = run.topology, {hop.place: hop for hop in run.hops}
    rows = rows_of(topology)
    right = topology.station(rows[0].legs[-1].to)
    parts = [*station(topology.sender, False, topology, hops, words), *station(right, True, topology, hops, words)]
    for row in rows:
        for n in range(len(row.legs)):
            parts += node(row, n, topology, hops, words)
        parts += cables(row, run, hops, words)
    head = words(
        "lab.heading",
        sent=number(run.sent, 0),
        received=number(run.received, 0),
        lost=number(run.sent - run.received, 0),
    )
    parts.append(text(head, MIDDLE, 20, "axis"))
    paper = Paper(WIDTH, HEIGHT if len(rows) > 1 else HEIGHT - GUEST_HEIGHTS[1] + GUEST_HEIGHTS[0])
    return svg(paper, words("lab.drawing", lab=topology.lab), parts)
