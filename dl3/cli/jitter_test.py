"""dl3 host jitter."""

import json
import os

import pytest
from typer.testing import CliRunner

from dl3.cli.jitter import cores_from, notes
from dl3.cli.main import app
from dl3.host.jitter.gaps import CoreGap, CoreGaps, Jitter
from dl3.model.fault import UsageFault

CORE = max(os.sched_getaffinity(0))


def prints_cores_and_causes_for_programs() -> None:
    words = ["host", "jitter", "--cores", str(CORE), "--seconds", "0.2", "--json"]
    done = CliRunner().invoke(app, words, prog_name="dl3")
    found = json.loads(done.stdout)
    (core,) = found["cores"]
    assert core["core"] == CORE
    assert core["seconds"] >= 0.2
    assert done.exit_code == (1 if core["lost"]["2048"] else 0)
    assert sum(cause["n"] for cause in found["causes"]) == core["gaps"]


def prints_a_table() -> None:
    done = CliRunner().invoke(app, ["host", "jitter", "--cores", str(CORE), "--seconds", "0.1"], prog_name="dl3")
    assert done.stdout.split()[:5] == ["core", "seconds", "gaps", "longest,", "us"]
    assert done.exit_code in (0, 1)


@pytest.mark.parametrize(("text", "said"), [("4000-4001", "has no core 4000-4001"), ("x", "'x' is no list of cores")])
def refuses_cores_that_do_not_exist(text: str, said: str) -> None:
    with pytest.raises(UsageFault, match=said):
        cores_from(text)


def never_measures_nothing_by_default() -> None:
    assert cores_from(None)


def says_what_a_reader_must_know() -> None:
    gaps = (CoreGap(core=1, at_ns=9, us=7),)
    jitter = Jitter(
        least_us=5, cores=(CoreGaps(core=1, seconds=1, n=3, gaps=gaps),), stolen_ms={1: 40.0}, missing=("frequency",)
    )
    assert [one.split(":")[0] for one in notes(jitter)] == [
        "core 1",
        "gaps of unknown cause",
        "only the first 1 of 3 gaps are counted as lost frames",
        "not available",
    ]
