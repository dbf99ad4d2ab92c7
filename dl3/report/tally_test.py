"""One count of the trials of a result, wherever it is shown."""

import pytest
from harness.records import Maker

from dl3.model.trial import Trial
from dl3.report.groups import Groups
from dl3.report.page import page
from dl3.report.results import Record, gather
from dl3.report.tally import Tally, recount, tally
from dl3.report.texts import words_in
from dl3.report.trials_table import group_rows
from dl3.report.words import Language

MAKER = Maker()
LATE = {"invalid": ("late: the generator sent nothing",), "is_behind": True}
SENTENCE = "trials were INVALID because the generator fell behind at rates that it reached in others"
# Two searches for one result: of the first one trial of four was interrupted, of the second two.
TRIALS: list[Trial] = [
    *(MAKER.trial("64", pps) for pps in (9e6, 4e6, 5e6)),
    MAKER.trial("64", 4.5e6, **LATE),
    *(MAKER.trial("64", pps) for pps in (4e6, 5e6)),
    *(MAKER.trial("64", 4.5e6, **LATE) for _ in range(2)),
]
RESULT = MAKER.result(
    "64", 5e6, n_trials=99, noise=(f"interrupted: 1 of 4 {SENTENCE}", f"interrupted: 2 of 4 {SENTENCE}")
)
CEILING = MAKER.trial("64", 14e6, test="ceiling")
RECORDS: list[Record] = [CEILING, *TRIALS[:4], CEILING.model_copy(), *TRIALS[4:], RESULT]


def counts_the_trials_that_are_recorded() -> None:
    groups = Groups(gather(RECORDS))
    assert tally(RESULT, groups) == Tally(8, 3, 3)
    (row,) = [one for one in groups.groups.values() if one.test == "throughput"]
    assert len(list(group_rows(row, groups, words_in(Language.EN)))) - 1 == 8


def counts_the_trials_of_the_result_where_none_is_recorded() -> None:
    groups = Groups(gather([RESULT]))
    assert tally(RESULT, groups) == Tally(99, 0)
    assert recount(RESULT, groups) == RESULT.noise


@pytest.mark.parametrize(
    ("language", "noisy"), [(Language.EN, "3 of 8 trials were INVALID"), (Language.ZH, "8 次试验中有 3 次无效")]
)
def shows_the_same_number_in_the_table_the_lines_and_the_note_on_noise(language: Language, noisy: str) -> None:
    text = page(RECORDS, language, "now")
    assert text.count(noisy) == 1
    assert words_in(language)("count.with_invalid", n=8, invalid=3) in text
    assert "2–5, 7–10" in text
    assert "1 of 4" not in text
