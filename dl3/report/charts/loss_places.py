"""Where frames were lost: one bar for each location, over all valid trials."""

import math
from collections.abc import Sequence
from xml.etree.ElementTree import Element

from dl3.report.chart import Chart, Drawing, Scene
from dl3.report.markup import mark, tag
from dl3.report.places import Place, losses
from dl3.report.plot import Paper, svg
from dl3.report.units import percent
from dl3.report.words import Words

WORDS = {
    "en": {
        "loss_places.title": "Loss by location",
        "loss_places.note": "Share of all frames lost in valid trials. A search deliberately exceeds the throughput "
        "to find the limit, so loss is expected here.",
    },
    "zh": {
        "loss_places.title": "丢包位置分布",
        "loss_places.note": "占全部有效试验中丢失帧数的比例。搜索会有意超过吞吐量以确定上限，丢包由此产生。",
    },
}
ROW = 30
LEFT = 250
N_SHOWN = 12


def draw_place(place: Place, n_all: int, row: int, words: Words) -> list[Element]:
    """Name, bar and share of one location."""
    y = row * ROW + 6
    share = place.n_lost / n_all
    name = words.place(place.name)
    width = max((Paper.width - LEFT - 90) * share, 1.0)
    bar = tag("rect", tag("title", f"{name}: {place.n_lost:,}"), class_="bar c0", x=LEFT, y=y, width=width, height=18)
    mark(bar, place=place.name, value=place.n_lost)
    short = name if len(name) <= 34 else name[:33] + "…"
    return [
        tag("text", short, class_="legend", x=LEFT - 12, y=y + 13, text_anchor="end"),
        bar,
        tag("text", f"{percent(share)} %", class_="legend", x=LEFT + width + 8, y=y + 13),
    ]


def picture_of(places: Sequence[Place], words: Words) -> Element:
    """The bars, the longest on top."""
    n_all = sum(place.n_lost for place in places)
    shown = places[:N_SHOWN]
    parts = [part for row, place in enumerate(shown) for part in draw_place(place, n_all, row, words)]
    parts.append(tag("line", class_="floor", x1=LEFT, x2=LEFT, y1=0, y2=len(shown) * ROW))
    return svg(Paper(height=math.ceil(len(shown) * ROW)), words("loss_places.title"), parts)


def draw_losses(scene: Scene, words: Words) -> Drawing | None:
    """The chart; None if nothing was lost."""
    places = losses(scene.part.results.valid)
    if not places:
        return None
    return Drawing(words("loss_places.title"), [picture_of(places, words)], words("loss_places.note"))


CHART = Chart("loss_places", 50, WORDS, draw_losses, topic="loss", is_for_cases=False)
