"""Charts of one kind have the same axes on the whole page."""

import re
from dataclasses import replace

import pytest
from harness.campaigns import every_test, lossy, others, timeline, white_paper
from harness.records import Maker, scene

from dl3.model.trial import Trial
from dl3.report.charts import charts
from dl3.report.page import page
from dl3.report.scale import shared_top
from dl3.report.texts import words_in
from dl3.report.words import Language

EN = words_in(Language.EN)
FAST, SLOW = Maker(ceiling_pps=9e6), Maker(dut="l3fwd", ceiling_pps=1e6)


def latency(maker: Maker, load: float) -> Trial:
    return maker.trial("64", maker.ceiling_pps * load, test="latency", load=load)


def labels(picture: object) -> list[str]:
    """What is written at the axes."""
    return [text.text for text in picture.iter("text") if text.get("class") == "tick"]  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["frame_loss", "forwarding", "latency_load", "latency_percentiles"])
def two_devices_have_the_same_axes(name: str) -> None:
    slow = latency(SLOW, 0.5)
    slow = slow.model_copy(update={"latency": slow.latency.model_copy(update={"max": 9e9, "p99_9": 8e9})})
    records = [*others(FAST, "64"), *others(SLOW, "64"), latency(FAST, 1.0), slow]
    chart = next(one for one in charts() if one.name == name)
    drawing = chart.draw(scene(records), EN)
    assert drawing
    first, second = drawing.pictures
    assert labels(first) == labels(second)


def timelines_have_the_same_axes() -> None:
    small = lossy(replace(FAST, dut="l3fwd")).model_copy(update={"timeline": timeline({3: 5})})
    chart = next(one for one in charts() if one.name == "timelines")
    drawing = chart.draw(scene([*every_test(FAST, []), small]), EN)
    assert drawing
    numbers = [[text for text in labels(one) if re.fullmatch(r"[\d,.]+", text)] for one in drawing.pictures]
    assert len(numbers) == 2
    assert numbers[0] == numbers[1]
    assert [rect for rect in drawing.pictures[1].iter("rect") if rect.get("class") == "loss"], "5 frames can be seen"


def all_cases_of_a_campaign_have_the_same_axes() -> None:
    text = page(white_paper(), Language.EN, "now")
    found = re.findall(r'<figure id="chart-case-[^"]*-published".*?</figure>', text, re.DOTALL)
    assert len(found) > 5
    tops = [max(float(one) for one in re.findall(r'text-anchor="end">([\d.]+)<', shown)) for shown in found]
    assert len(set(tops)) < len(tops) / 2


def a_chart_has_an_axis_of_its_own_group_where_it_could_not_be_read() -> None:
    tops = (100.0, 30.0, 20.0, 6.0, 1.0)
    assert [shared_top(own, tops) for own in tops] == [100.0, 100.0, 20.0, 20.0, 1.0]
    assert shared_top(0.0, []) == 0.0
