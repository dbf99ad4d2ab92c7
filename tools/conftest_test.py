"""What conftest.py makes of long tests and of tests of timing, shown on tests that are made for it."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parent.parent
COUNTED = """
import pathlib, pytest
FILE = pathlib.Path(__file__).with_name("count")
def count():
    n = int(FILE.read_text()) + 1 if FILE.exists() else 1
    FILE.write_text(str(n))
    return n
"""
FAILS = """
@pytest.mark.{mark}
def it_passes_at_last():
    assert count() > {n_failures}
"""
BROKEN_FIXTURE = """
@pytest.fixture(scope="module")
def made():
    return count()
@pytest.mark.timing
def it_has_the_second_one(made):
    assert made == 2
def the_next_has_it_too(made):
    assert made == 2
"""
LONG = """
@pytest.mark.long
def it_is_long():
    pass
def it_is_short():
    pass
"""
TURNS = """
@pytest.mark.timing
def it_measures():
    pass
@pytest.mark.timing
@pytest.mark.long
def it_measures_for_long():
    pass
@pytest.mark.alone
def it_wants_the_machine():
    pass
def it_is_modest():
    pass
"""


def _pytest(folder: Path, tests: str, *args: str) -> subprocess.CompletedProcess[str]:
    for name in ("conftest.py", "pyproject.toml"):
        shutil.copy(TOP / name, folder)
    (folder / "it_test.py").write_text(COUNTED + tests, encoding="utf-8")
    words = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *(args or ["it_test.py"])]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True)


def _n_runs(folder: Path) -> int:
    return int((folder / "count").read_text())


@pytest.mark.parametrize(("n_failures", "n_tries", "status"), [(0, 1, 0), (2, 3, 0), (3, 3, 1)])
def a_test_of_timing_is_tried_three_times_at_most(tmp_path: Path, n_failures: int, n_tries: int, status: int) -> None:
    done = _pytest(tmp_path, FAILS.format(mark="timing", n_failures=n_failures))
    assert (done.returncode, _n_runs(tmp_path)) == (status, n_tries), done.stdout
    n_reported = min(n_failures, 3)
    assert done.stdout.count(" of 3 failed: it_test.py::it_passes_at_last: ") == 2 * n_reported, (
        "at once and at the end"
    )
    assert (f" failed tries of tests of timing: {n_reported} " in done.stdout) == bool(n_reported)
    assert ("1 failed in" if status else "1 passed in") in done.stdout


def no_other_test_is_tried_again(tmp_path: Path) -> None:
    done = _pytest(tmp_path, FAILS.format(mark="long", n_failures=1), "--long", "it_test.py")
    assert (done.returncode, _n_runs(tmp_path)) == (1, 1)
    assert "tries" not in done.stdout


def each_try_has_fixtures_of_its_own_even_those_of_the_module(tmp_path: Path) -> None:
    done = _pytest(tmp_path, BROKEN_FIXTURE)
    assert (done.returncode, _n_runs(tmp_path)) == (0, 2), done.stdout


@pytest.mark.parametrize(
    ("args", "passed"),
    [
        (["it_test.py"], "1 passed, 1 deselected"),
        (["--long", "it_test.py"], "2 passed"),
        (["-m", "long", "it_test.py"], "1 passed, 1 deselected"),
        (["it_test.py::it_is_long"], "1 passed"),
    ],
    ids=["", "all", "alone", "by name"],
)
def a_long_test_runs_on_demand(tmp_path: Path, args: list[str], passed: str) -> None:
    done = _pytest(tmp_path, LONG, *args, "-v")
    assert f" {passed} in " in done.stdout
    assert ("::it_is_long PASSED" in done.stdout) == (args != ["it_test.py"]), done.stdout


def an_unknown_mark_is_an_error(tmp_path: Path) -> None:
    assert "'slow' not found in `markers`" in _pytest(tmp_path, FAILS.format(mark="slow", n_failures=0)).stdout


@pytest.mark.parametrize(
    ("args", "names"),
    [
        ([], {"it_measures", "it_wants_the_machine", "it_is_modest"}),
        (["--turn", "alone"], {"it_measures", "it_wants_the_machine"}),
        (["--turn", "beside"], {"it_is_modest"}),
        (["--turn", "alone", "--long"], {"it_measures", "it_measures_for_long", "it_wants_the_machine"}),
        (["-m", "timing"], {"it_measures"}),
        (["-m", "timing and long"], {"it_measures_for_long"}),
    ],
    ids=lambda words: " ".join(sorted(words)),
)
def each_test_has_its_turn(tmp_path: Path, args: list[str], names: set[str]) -> None:
    done = _pytest(tmp_path, TURNS, *args, "it_test.py", "-v")
    assert set(re.findall(r"::(\w+) PASSED", done.stdout)) == names, done.stdout


def a_worker_s_failed_tries_are_reported_too(tmp_path: Path) -> None:
    done = _pytest(tmp_path, FAILS.format(mark="timing", n_failures=2), "it_test.py", "--numprocesses", "1")
    assert (done.returncode, _n_runs(tmp_path)) == (0, 3), done.stdout
    assert " failed tries of tests of timing: 2 " in done.stdout
    assert done.stdout.count(" of 3 failed: it_test.py::it_passes_at_last: ") == 2, "at the end"
