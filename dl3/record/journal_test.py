"""Records have one line per trial and can be read back."""

from pathlib import Path

import pytest

from dl3.model.fault import Fault
from dl3.record.facts import collect, default_idle, last_march
from dl3.record.journal import SampleRecord, append, now
from dl3.record.machine import number_in


def trial(name: str) -> SampleRecord:
    return SampleRecord(
        at=now(),
        name=name,
        command=["testpmd", "-d", "x"],
        environment={"ONECORE_TABLE": "one"},
        core=0,
        seconds=1.0,
        core_share=1.0,
        received_pps=2.0,
        sent_pps=2.0,
        cycles_per_packet=3.0,
        facts=collect(Path("/nonexistent")),
    )


def appends_a_line_per_trial(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "r.jsonl"
    append(path, trial("first"))
    append(path, trial("second"))
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [SampleRecord.model_validate_json(line).name for line in lines] == ["first", "second"]


def reports_when_it_cannot_write(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Fault, match="cannot be written"):
        append(tmp_path / "file" / "r.jsonl", trial("x"))


def finds_the_facts_of_this_machine() -> None:
    facts = collect(Path("/nonexistent"))
    assert facts.n_cpus > 0
    assert facts.memory_mib > 0
    assert facts.kernel
    assert facts.build_flags == ""


def detects_which_drivers_are_within(tmp_path: Path) -> None:
    (tmp_path / "build.ninja").write_text(" LINK_ARGS = /usr/lib/librte_net_null.a /x/librte_net_memif.a -lrte_eal\n")
    assert collect(tmp_path).drivers_within == ["net_memif", "net_null"]
    assert collect(Path("/nonexistent")).drivers_within == []


@pytest.mark.parametrize(
    ("example", "idle"),
    [
        ("burst: 64\nidle: sleep    # or poll\n", "sleep"),
        ("#  idle: sleep\nidle: poll\n", "poll"),
        ("burst: 64\n", "poll"),
    ],
)
def reports_what_dl3d_does_without_frames(example: str, idle: str, tmp_path: Path) -> None:
    program = tmp_path / "dl3d"
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{example}END\n")
    program.chmod(0o755)
    assert default_idle(program) == idle
    assert default_idle(Path("/nonexistent")) == ""


def takes_the_last_march() -> None:
    assert last_march("-O3 -march=corei7 -I/x -march=native") == "native"
    assert last_march("-O3") == "default"


def reads_numbers_of_meminfo() -> None:
    assert number_in("MemTotal: 24 kB\nHugePages_Free:     7\n", "HugePages_Free") == 7
    assert number_in("", "HugePages_Free") == 0
