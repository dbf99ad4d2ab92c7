"""What was lost at published loads, beside what was lost there."""

from xml.etree.ElementTree import Element

import pytest
from harness.campaigns import contrail

from dl3.model.results import LossPoint
from dl3.report.chart import Scene
from dl3.report.groups import Groups
from dl3.report.losses_beside import at_load, losses_section, lossless_up_to
from dl3.report.results import gather, parts
from dl3.report.texts import words_in
from dl3.report.words import Language


def _section(losing_pps: float, key: str = "6.1", language: Language = Language.EN) -> list[Element]:
    results = gather(contrail(losing_pps))
    part = next(one for one in parts(results) if one.case and one.case.key == key)
    return losses_section(Scene(part, Groups(results)), "case-", words_in(language))


def _sentences(section: list[Element]) -> list[str]:
    return ["".join(one.itertext()) for one in section if one.tag == "p"]


def _cells(section: list[Element], column: str) -> list[str]:
    cells = (cell for piece in section for cell in piece.iter("td") if cell.attrib["data-col"] == column)
    return ["".join(cell.itertext()) for cell in cells]


def a_device_that_loses_nothing_at_the_published_loads_is_reported_with_the_published_loss() -> None:
    section = _section(3.6e6)
    first, second = _sentences(section)
    assert first == (
        "vrouters loses no 64-byte frame at the published loads, 0.780 to 0.908 Mpps, nor above them, up to 3.200 Mpps. "
        "The published loss is 1.4314 to 17.8501 %."
    )
    assert "1468-byte frame at the published loads, 0.651 to 0.747 Mpps" in second
    assert _cells(section, "published_offered")[:3] == ["0.780", "0.893", "0.908"]
    assert _cells(section, "published_loss")[:3] == ["6.6127", "1.4314", "17.8501"]
    assert _cells(section, "offered")[:3] == ["0.780", "0.893", "0.908"]
    assert set(_cells(section, "ratio")) == {"0"}


def a_device_that_loses_there_is_reported_too() -> None:
    section = _section(0.85e6)
    assert _sentences(section)[0].startswith(
        "vrouters loses 64-byte frames at the published loads, 0.780 to 0.908 Mpps"
    )
    assert [cell == "0" for cell in _cells(section, "ratio")[:3]] == [True, False, False]


@pytest.mark.parametrize("losing_pps", [3.6e6, 0.85e6])
def the_same_is_said_in_chinese(losing_pps: float) -> None:
    first, _ = _sentences(_section(losing_pps, language=Language.ZH))
    assert "公开的丢包率为 1.4314% 至 17.8501%" in first


def a_case_without_published_loss_has_no_such_section() -> None:
    assert not _section(3.6e6, "6.1-both")


def a_load_that_was_not_offered_is_shown_by_the_next_one_above() -> None:
    points = [
        LossPoint(share=1.0, pps=pps, loss_ratio=ratio) for pps, ratio in ((1e6, 0), (2e6, 0), (3e6, 0.1), (4e6, 0))
    ]
    near, above = at_load(points, 1.01e6), at_load(points, 1.5e6)
    assert near is not None
    assert above is not None
    assert (near.pps, above.pps) == (1e6, 2e6)
    assert at_load(points, 5e6) is None
    assert lossless_up_to(points, 1e6) == 2e6
    assert lossless_up_to(points, 3e6) == 0
