"""Tables and sentences of a result that is a bound."""

import pytest

from dl3.model.results import FrameLoss, LossPoint, Recovery
from dl3.report.other_sentences import other_sentence
from dl3.report.other_tables import recovery_cells
from dl3.report.page import page
from dl3.report.plain import as_json
from dl3.report.results import gather
from dl3.report.texts import words_in
from dl3.report.units import percents
from dl3.report.words import Language


def recovery(is_at_most: bool) -> Recovery:
    """Twelve milliseconds."""
    rates = {"mean_bytes": 64.0, "overload_pps": 1.1e6, "recovery_pps": 5e5}
    reported = {"at": "1", "campaign": "1", "dut": "dl3d", "frame": "64", "facts": {}, "seconds": (0.012,)}
    return Recovery.model_validate({**rates, **reported, "is_at_most": is_at_most})


@pytest.mark.parametrize(("language", "said"), [(Language.EN, "for at most 12"), (Language.ZH, "至多为 12")])
def reports_at_most_where_the_generator_left_out_frames(language: Language, said: str) -> None:
    words = words_in(language)
    assert said in other_sentence(recovery(True), words)
    assert recovery_cells(recovery(True), words)[0][-3:] == ("≤ 12.00",) * 3
    assert said not in other_sentence(recovery(False), words)
    assert recovery_cells(recovery(False), words)[0][-3:] == ("12.00",) * 3


def losses(*invalid_shares: float) -> FrameLoss:
    """Loads down from 70 % of 20 Mpps; older records list none that are INVALID."""
    points = [LossPoint(share=share, pps=20e6 * share, loss_ratio=0.1) for share in (0.7, 0.6)]
    reported = {
        "at": "1",
        "campaign": "1",
        "dut": "box",
        "frame": "64",
        "mean_bytes": 64.0,
        "facts": {},
        "points": points,
    }
    more = {"invalid_shares": invalid_shares} if invalid_shares else {}
    return FrameLoss.model_validate({**reported, "trial_seconds": 1.0, **more})


@pytest.mark.parametrize(
    ("language", "note", "says"),
    [
        (
            Language.EN,
            "Offered loads without a valid trial for box with 64-byte frames: 2 (100, 90 % of the highest rate).",
            "the highest offered load with a valid trial",
        ),
        (Language.ZH, "box（64 字节帧）没有有效试验的负载：2 个（最高速率的 100, 90%）", "有效试验的最高负载"),
    ],
)
def names_the_loads_without_a_valid_trial(language: Language, note: str, says: str) -> None:
    shown = page([losses(1.0, 0.9)], language, "now")
    assert note in shown
    assert says in shown
    whole = page([losses()], language, "now")
    assert note.split(":")[0].split("：")[0] not in whole
    assert says not in whole


def names_the_loads_without_a_valid_trial_for_programs() -> None:
    reported = as_json(gather([losses(1.0, 0.9), losses().model_copy(update={"frame": "512"})]), ())
    found = {"dut": "box", "frame": "64", "test": "frame loss", "job": "", "shares": [1.0, 0.9]}
    assert reported["invalid_loads"] == [found]


def names_the_first_of_many_loads() -> None:
    assert percents([0.9, 0.855]) == "90, 85.5"
    assert percents([1 - n / 100 for n in range(30)]).endswith("82, 81, …")
