"""The runner, with programs that forward nothing but maintain the same counters."""

import sys
import time
from pathlib import Path

import pytest

from dl3.bench.onecore import Job, environment, fill_in, started
from dl3.bench.workplace import Workplace
from dl3.model.fault import Fault, UsageFault

# Counts a million packets per second of its own CPU time; exits at the end of its input.
COUNTING = """
import os, select, sys, time
path, sent = os.environ["ONECORE_STATS"], 200_000
while not select.select([sys.stdin], [], [], 0)[0]:
    sent += 50_000
    now = time.monotonic_ns()
    with open(path + ".new", "w") as file:
        file.write(f"{now:020} {now:020} 2000000000 {sent} {sent}")
    os.replace(path + ".new", path)
    time.sleep(0.05)
"""


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    return Workplace(tmp_path, tmp_path / "onecore.so")


def job(text: str) -> Job:
    return Job("counting", (sys.executable, "-c", text), Path("some.table"))


def adds_nothing_but_the_environment() -> None:
    plain = environment(job(""), Path("folder/stats"))
    assert plain == {
        "ONECORE_TABLE": "some.table",
        "ONECORE_STATS": "folder/stats",
        "ONECORE_SOURCE": "0",
        "ONECORE_MAC": "02:00:00:00:00:01",
        "RUNTIME_DIRECTORY": "folder",
    }
    half = Job("half", ("true",), Path("t"), max_burst=32)
    assert environment(half, Path("s"))["ONECORE_BURST"] == "32"
    paced = Job("paced", ("true",), Path("t"), ring=4096)
    assert environment(paced, Path("s"))["ONECORE_RING"] == "4096"


def fills_in_places() -> None:
    assert fill_in(["-d", "{plugin}", "--x={config}", "{other}"], {"plugin": "/p", "config": "/c"}) == (
        *("-d", "/p", "--x=/c"),
        "{other}",
    )


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (Job("none", ("/none",), Path("t")), "program /none not found"),
        (Job("core", ("true",), Path("t"), core=9999), "CPU core 9999 does not exist here"),
    ],
)
def reports_which_program_or_core_is_not_there(wrong: Job, words: str, place: Workplace) -> None:
    with pytest.raises(UsageFault, match=words), started(wrong, place):
        pass


def measures_a_program_that_counts(place: Workplace) -> None:
    with started(job(COUNTING), place) as runner:
        sample = runner.measure(0.4)
    assert 0 < sample.sent_pps < 1.1e6
    assert runner.process.returncode is not None


def stops_and_goes_on(place: Workplace) -> None:
    with started(job(COUNTING), place) as runner:
        runner.pause()
        time.sleep(0.1)
        before = runner.read()
        time.sleep(0.2)
        assert runner.read() == before
        runner.resume()
        assert runner.measure(0.2).sent_pps > 0


def ends_a_program_that_is_stopped(place: Workplace) -> None:
    with started(job(COUNTING), place) as runner:
        runner.pause()
    assert runner.process.returncode is not None


def shows_the_last_words_of_a_program_that_leaves(place: Workplace) -> None:
    with (
        pytest.raises(Fault, match=r"counting exited with status 3(.|\n)*no such port"),
        started(job("import sys; print('no such port'); sys.exit(3)"), place),
    ):
        pass
