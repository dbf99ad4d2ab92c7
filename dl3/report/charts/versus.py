"""Two devices measured in turn: the ratio of their rates, with its interval."""

from dl3.model.results import Versus
from dl3.report.chart import Chart, Drawing, Scene
from dl3.report.groups import Groups
from dl3.report.ratios import Ratio, draw_ratios
from dl3.report.results import Results
from dl3.report.words import Words

WORDS = {
    "en": {
        "versus.title": "Side-by-side comparison, measured in turn",
        "versus.axis": "Ratio; to the right of the dashed line, the first is faster",
        "versus.row": "{dut} / {peer}, {frame}",
        "versus.note": "The two were measured in turn (ABAB), so that changes of the machine affect both alike. The "
        "line is the 95 % confidence interval of the ratio; where it crosses the dashed line, no difference is "
        "established.",
    },
    "zh": {
        "versus.title": "交替测试对比",
        "versus.axis": "比值；虚线右侧表示前者更快",
        "versus.row": "{dut} / {peer}，{frame}",
        "versus.note": "两者交替测试（ABAB），机器状态的变化对双方影响相同。横线为比值的 95% 置信区间；"
        "若跨过虚线，则不能断定哪个更快。",
    },
}


def ratios_of(results: Results, groups: Groups, words: Words) -> list[Ratio]:
    """A row for each result."""
    return [
        Ratio(
            name=words("versus.row", dut=result.dut, peer=result.peer, frame=words.short_frame(result.frame)),
            value=result.ratio,
            low=result.interval[0],
            high=result.interval[1],
            link=groups.link(result),
        )
        for result in results.others
        if isinstance(result, Versus)
    ]


def draw_versus(scene: Scene, words: Words) -> Drawing | None:
    """One row for each frame size."""
    ratios, everything = (
        ratios_of(results, scene.groups, words) for results in (scene.part.results, scene.groups.results)
    )
    title = words("versus.title")
    picture = draw_ratios(title, words("versus.axis"), ratios, everything)
    return Drawing(title, [picture], words("versus.note")) if picture is not None else None


CHART = Chart("versus", 110, WORDS, draw_versus, topic="versus")
