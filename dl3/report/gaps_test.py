"""What a chart does not show is named below it, with the reason."""

import re

import pytest
from harness.campaigns import AT, others, white_paper
from harness.records import Maker

from dl3.model.campaign import Plan, Skipped
from dl3.model.results import FrameLoss
from dl3.model.trial import Throughput, Trial
from dl3.report.page import page
from dl3.report.results import Record
from dl3.report.texts import words_in
from dl3.report.words import Language

MAKER = Maker()
LATE = "late: the generator sent nothing"
EN = words_in(Language.EN)


def under(chart: str, text: str) -> list[str]:
    """The sentences below a chart."""
    found = re.search(rf'<figure id="chart-{chart}".*?</figure>', text, re.DOTALL)
    assert found, chart
    *_, last = re.split(r"</div>", found[0])
    return re.findall(r"<li>(.*?)</li>", last)


def skip(frame: str, test: str = "throughput", reason: str = "no result: the box is off") -> Skipped:
    return Skipped(at="t", campaign=MAKER.campaign, job=f"|dl3d||{test}|{frame}", reason=reason)


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (skip("512"), "dl3d, throughput, 512-byte frames: no result: the box is off."),
        (
            MAKER.trial("512", 1e6, invalid=(LATE,)),
            "dl3d, throughput, 512-byte frames: no result, because all 1 trials are INVALID, the last one because of: "
            "generator late: the generator sent nothing.",
        ),
        (MAKER.trial("512", 1e6), "dl3d, throughput, 512-byte frames: no result, because the test was broken off."),
        (Maker(dut="l3fwd").result("512", 1e6), "dl3d, 512-byte frames; l3fwd, 64-byte frames: not measured."),
    ],
)
def a_missing_bar_has_its_reason(record: Record, said: str) -> None:
    text = page([MAKER.result("64", 5e6), record], Language.EN, AT)
    assert under("throughput_mpps", text) == [said]
    assert under("throughput_gbps", text) == ["the same points as in figure 1, for the reasons given there."]


def a_test_that_failed_hides_no_other_that_was_not_tried() -> None:
    records = [*others(MAKER, "64"), *others(MAKER, "512"), *others(Maker(dut="l3fwd"), "64")]
    failed = Skipped(at="t", campaign=MAKER.campaign, job="|l3fwd||throughput|512", reason="no result: off")
    assert under("recovery", page([*records, failed], Language.EN, AT)) == ["l3fwd, 512-byte frames: not measured."]


def a_complete_chart_has_no_note() -> None:
    text = page([MAKER.result("64", 5e6), MAKER.result("512", 5e6), skip("64", "recovery")], Language.EN, AT)
    assert EN("gap.head") not in text


@pytest.mark.parametrize(
    ("language", "said"),
    [
        (
            Language.EN,
            "dl3d, 64-byte frames at 90 % load: only INVALID trials, the last one because of: generator late",
        ),
        (Language.ZH, "dl3d，64 字节帧，负载 90%：只有无效试验，最后一次的原因为：发生器发送不及时"),
    ],
)
def a_missing_load_of_latency_has_its_reason(language: Language, said: str) -> None:
    trials = [
        MAKER.trial("64", 1e6, test="latency", load=0.5),
        MAKER.trial("64", 1e6, test="latency", load=0.5, invalid=(LATE,)),
        MAKER.trial("64", 2e6, test="latency", load=0.9, invalid=(LATE,)),
    ]
    (found,) = under("latency_load", page(trials, language, AT))
    assert found.startswith(said)


def a_missing_load_of_frame_loss_has_its_reason() -> None:
    result = next(one for one in others(MAKER, "64") if isinstance(one, FrameLoss))
    bad = MAKER.trial("64", 2e7, test="frame loss", invalid=(LATE,))
    text = page([bad, result.model_copy(update={"invalid_shares": (1.0, 0.9)})], Language.EN, AT)
    (found,) = under("frame_loss", text)
    assert found.startswith("dl3d, 64-byte frames at 100, 90 % load: only INVALID trials, the last one because of: ")


@pytest.mark.parametrize(("budget_s", "why"), [(600.0, "gap.budget"), (0.0, "gap.not_reached")])
def a_job_of_a_campaign_that_was_not_reached_is_named(budget_s: float, why: str) -> None:
    records = white_paper()
    plan = next(one for one in records if isinstance(one, Plan))
    case = next(case for case in plan.cases if case.key == "1.1")
    left = case.jobs[-1]
    kept = [one for one in records if not (isinstance(one, Trial | Throughput) and one.job == left.key)]
    changed = plan.model_copy(update={"budget_seconds": budget_s})
    text = page([changed if one is plan else one for one in kept], Language.EN, AT)
    (found,) = under("case-1-1-published", text)
    assert found.endswith(f": {EN(why)}.")
    assert "dl3d" in found
