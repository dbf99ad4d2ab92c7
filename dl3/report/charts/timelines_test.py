"""Loss over time next to machine activity."""

from harness.campaigns import lossy
from harness.records import Maker, scene

from dl3.report.charts.timelines import CHART
from dl3.report.texts import words_in
from dl3.report.words import Language

EN = words_in(Language.EN)


def draws_loss_gaps_and_events_on_one_axis() -> None:
    drawing = CHART.draw(scene([lossy(Maker())]), EN)
    assert drawing
    rects = [rect.attrib for rect in drawing.pictures[0].iter("rect")]
    assert [(bar["data-bucket"], bar["data-value"]) for bar in rects if bar["class"] == "loss"] == [
        ("121", "21000"),
        ("122", "9000"),
    ]
    gap = next(bar for bar in rects if bar["class"] == "gap")
    loss = next(bar for bar in rects if bar["class"] == "loss")
    assert abs(float(gap["x"]) - float(loss["x"])) < 5, "the pause stands where the loss is"
    assert gap["data-row"] == "dl3d worker 0, core 1"
    assert len([bar for bar in rects if bar["class"] == "event"]) == 3


def reports_linux_messages_in_the_words_of_the_page() -> None:
    for language, reported in (
        (Language.EN, "1,200 netlink messages from Linux"),
        (Language.ZH, "来自 Linux 的 1,200 条 netlink 消息"),
    ):
        drawing = CHART.draw(scene([lossy(Maker())]), words_in(language))
        assert drawing
        assert any(reported in "".join(one.itertext()) for one in drawing.pictures[0].iter())


def draws_nothing_without_a_result() -> None:
    assert CHART.draw(scene([Maker().trial("64", 1e6)]), EN) is None
