"""Latency over load: medians of repeated trials, one chart for each device and frame size."""

from harness.records import Maker, scene, spread

from dl3.report.charts.latency_load import CHART
from dl3.report.texts import words_in
from dl3.report.words import Language

EN = words_in(Language.EN)
MAKER = Maker()


def draws_the_median_of_repeated_trials() -> None:
    trials = [
        MAKER.trial("64", 1e6, test="latency", load=0.5, latency=spread(10, base).model_dump())
        for base in (1000.0, 9000.0, 2000.0)
    ]
    drawing = CHART.draw(scene(trials), EN)
    assert drawing
    dots = [dot.attrib for dot in drawing.pictures[0].iter("circle")]
    assert [(dot["data-x"], dot["data-value"]) for dot in dots if "data-x" in dot] == [("50.0", "2000.0")]


def leaves_out_invalid_trials_and_those_that_received_nothing() -> None:
    bad = MAKER.trial("64", 1e6, test="latency", load=0.5, invalid=("late: 9 frames",))
    empty = MAKER.trial("64", 1e6, test="latency", load=0.5, latency=spread(0, 0.0).model_dump())
    assert CHART.draw(scene([bad, empty]), EN) is None


def shows_offered_load_where_no_share_is_known() -> None:
    drawing = CHART.draw(scene([MAKER.trial("64", 2e6, test="latency")]), EN)
    assert drawing
    assert "Offered load, Mpps" in [text.text for text in drawing.pictures[0].iter("text")]


def draws_one_picture_for_each_frame_size() -> None:
    trials = [MAKER.trial(frame, 1e6, test="latency", load=0.5) for frame in ("1518", "64")]
    drawing = CHART.draw(scene(trials), EN)
    assert drawing
    assert [picture.get("aria-label") for picture in drawing.pictures] == [
        "dl3d, 64-byte frames",
        "dl3d, 1518-byte frames",
    ]
