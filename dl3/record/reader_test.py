"""Records that were truncated, concatenated or overwritten with garbage."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dl3.model.fault import Fault, UsageFault
from dl3.model.trial import Account, Spread, Throughput, Trial
from dl3.record.journal import append
from dl3.record.reader import mistake, parse, read

NOWHERE = Path("r.jsonl")


def trial(pps: float = 1e6) -> Trial:
    account = Account(
        **dict.fromkeys(("sent", "received", "sent_bytes", "received_bytes"), 5),
        **dict.fromkeys(("lost", "duplicated", "reordered", "corrupted", "late"), 0),
        reordered_per="flow",
        lost_by_place={"unknown": 0},
    )
    times = {"latency": Spread(), "latency_from_sending": Spread(), "jitter_mean": 0, "jitter_max": 0}
    rates = {"asked_pps": pps, "offered_pps": pps, "received_pps": pps, "seconds": 1, "pacing_error": 0}
    names = {"at": "t", "campaign": "c", "test": "throughput", "dut": "dl3d", "frame": "64", "mean_bytes": 64}
    facts = {"name": "Zürich 北京"}
    return Trial.model_validate({**names, **rates, **times, "invalid": (), "account": account, "facts": facts})


def result(pps: float = 1e6) -> Throughput:
    names = {"at": "t", "campaign": "c", "dut": "dl3d", "frame": "imix", "mean_bytes": 209.92, "line_bps": 0}
    terms = {"goal_loss_ratio": 0, "resolution": 0.005, "trial_seconds": 1, "repetitions": 1}
    found = {"pps": pps, "upper_pps": pps, "limited_by": "dut", "n_trials": 1, "n_invalid": 0, "facts": {}}
    return Throughput.model_validate({**names, **terms, **found})


def joined(*entries: Trial | Throughput) -> bytes:
    return b"".join(entry.model_dump_json().encode() + b"\n" for entry in entries)


def reads_what_was_appended(tmp_path: Path) -> None:
    path = tmp_path / "records" / "r.jsonl"
    for entry in (trial(1), result(2), trial(3)):
        append(path, entry)
    found = read(path)
    assert [one.asked_pps for one in found.trials] == [1, 3]
    assert found.results == (result(2),)
    assert found.left_out == ()


@pytest.mark.parametrize(("limited_by", "upper_pps"), [("dut", 2e6), ("generator", None), ("asked", None)])
def takes_the_end_of_an_old_search_for_too_high_only_where_the_device_was_the_limit(
    limited_by: str, upper_pps: float | None
) -> None:
    old = {**result().model_dump(exclude={"ended_pps"}), "upper_pps": 2e6, "limited_by": limited_by}
    (found,) = parse(NOWHERE, json.dumps(old).encode()).results
    assert (found.upper_pps, found.ended_pps) == (upper_pps, 2e6)
    assert parse(NOWHERE, joined(found)).results == (found,)


def keeps_what_was_too_high_for_the_device_where_the_generator_was_the_limit() -> None:
    new = result().model_copy(update={"upper_pps": 3e6, "ended_pps": 2e6, "limited_by": "generator"})
    assert parse(NOWHERE, joined(new)).results == (new,)


def reports_in_one_sentence_that_a_file_was_cut() -> None:
    content = joined(trial(1), trial(2), result(3))
    found = parse(NOWHERE, content[:-9])
    assert len(found.trials) == 2
    size = len(joined(result(3))) - 9
    assert found.left_out == (f"r.jsonl:3: ignored: the line is incomplete, cut off after {size} bytes",)


def begins_a_new_line_behind_one_that_was_cut(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(joined(trial(1))[:-20])
    append(path, trial(2))
    append(path, trial(3))
    found = read(path)
    assert [one.asked_pps for one in found.trials] == [2, 3]
    assert len(found.left_out) == 1
    assert found.left_out[0].startswith(f"{path}:1: ignored: ")


def keeps_a_last_line_that_only_lacks_its_end() -> None:
    found = parse(NOWHERE, joined(trial(1), result(2))[:-1])
    assert (len(found.trials), len(found.results), found.left_out) == (1, 1, ())


def names_broken_lines_by_number() -> None:
    found = parse(NOWHERE, b"{}\n" + joined(trial()) + b'\n{"kind": "trial"}\n\xff\xfe\n' + joined(result()))
    assert (len(found.trials), len(found.results)) == (1, 1)
    assert found.left_out == ("r.jsonl: ignored lines 1, 4, 5; line 1: 'kind' is missing",)


def names_no_more_broken_lines_than_one_can_read() -> None:
    (sentence,) = parse(NOWHERE, b"x\n" * 99).left_out
    assert "ignored lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 89 more; line 1: invalid JSON" in sentence


def finds_nothing_in_an_empty_file() -> None:
    assert parse(NOWHERE, b"") == parse(NOWHERE, b"\n\n")


def reports_when_there_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(UsageFault, match="no such file; expected a record"):
        read(tmp_path / "none")
    with pytest.raises(Fault, match="cannot be read"):
        read(tmp_path)


WHOLE = [joined(trial(n) if n % 2 else result(n)) for n in range(1, 6)]


@given(st.integers(0, sum(map(len, WHOLE))))
def keeps_every_whole_line_wherever_a_file_is_cut(at: int) -> None:
    found = parse(NOWHERE, b"".join(WHOLE)[:at])
    ends = [sum(map(len, WHOLE[:n])) for n in range(1, 6)]
    n_whole = sum(1 for end in ends if end - 1 <= at)
    assert len(found.trials) + len(found.results) == n_whole
    assert len(found.left_out) == (0 if at in (0, *ends, *(end - 1 for end in ends)) else 1)


junk = st.one_of(
    st.binary(max_size=60),
    st.sampled_from([b"[" * 5000, b'{"kind":"trial"}', b"1e999", b'{"kind":"throughput","pps":NaN}', b"\x00", b"null"]),
)


@given(st.lists(st.one_of(st.sampled_from(WHOLE), junk.map(lambda noise: noise.replace(b"\n", b"") + b"\n"))))
@example([b'{"kind": "trial", "kind": "throughput"}\n'])
def keeps_whole_lines_among_any_others(lines: list[bytes]) -> None:
    found = parse(NOWHERE, b"".join(lines))
    assert len(found.trials) + len(found.results) == sum(1 for line in lines if line in WHOLE)
    assert len(found.left_out) == (1 if any(line not in WHOLE and line.strip() for line in lines) else 0)


@given(st.binary(max_size=400))
def survives_any_bytes(content: bytes) -> None:
    parse(NOWHERE, content)


@given(st.integers(0, 4), st.data())
def survives_a_line_with_wrong_bytes(number: int, data: st.DataObject) -> None:
    line = bytearray(WHOLE[number])
    for _ in range(data.draw(st.integers(1, 4))):
        line[data.draw(st.integers(0, len(line) - 1))] = data.draw(st.integers(0, 255))
    found = parse(NOWHERE, WHOLE[0] + bytes(line) + b"\n" + WHOLE[1])
    assert len(found.trials) + len(found.results) >= 2


@pytest.mark.parametrize(
    ("content", "program"),
    [
        (b'{"at":"2026-11-26","name":"dl3d"}\n', "'dl3 bench onecore'"),
        (b'{\n "at": "2026-11-26",\n "base_commit": "1"\n}\n', "'make bench BASE=REV'"),
        (b'{\n "at": "2026-11-26",\n "rows": []\n}\n', "'dl3 bench peers'"),
    ],
)
def names_the_command_that_wrote_another_file_of_ours(content: bytes, program: str, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(content)
    with pytest.raises(UsageFault, match=f"^{tmp_path / 'f'} was written by {program}, which prints its own table; "):
        read(tmp_path / "f")


def reports_what_is_wrong_with_a_line_in_words_of_its_own() -> None:
    lines = (b"x", b"{}", b'{"kind": "x"}', b'{"kind": "trial"}')
    reported = [mistake(line) for line in lines]
    assert reported[:3] == ["invalid JSON", "'kind' is missing", "unknown 'kind'"]
    assert re.fullmatch(r"'trial\.\w+' is missing", reported[3])
