"""What tables and sentences say of an answer that is a bound."""

import pytest

from dl3.model.answers import Recovery
from dl3.report.other_sentences import other_sentence
from dl3.report.other_tables import recovery_cells
from dl3.report.texts import words_in
from dl3.report.words import Language


def recovery(is_at_most: bool) -> Recovery:
    """Twelve milliseconds."""
    rates = {"mean_bytes": 64.0, "overload_pps": 1.1e6, "recovery_pps": 5e5}
    told = {"at": "1", "campaign": "1", "dut": "dl3d", "frame": "64", "facts": {}, "seconds": (0.012,)}
    return Recovery.model_validate({**rates, **told, "is_at_most": is_at_most})


@pytest.mark.parametrize(("language", "said"), [(Language.EN, "for at most 12"), (Language.ZH, "至多为 12")])
def says_at_most_where_the_generator_left_out_frames(language: Language, said: str) -> None:
    words = words_in(language)
    assert said in other_sentence(recovery(True), words)
    assert recovery_cells(recovery(True), words)[0][-3:] == ("≤ 12.00",) * 3
    assert said not in other_sentence(recovery(False), words)
    assert recovery_cells(recovery(False), words)[0][-3:] == ("12.00",) * 3
