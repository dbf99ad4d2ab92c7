"""Tests are sentences: public functions with an underscore in a test file, written there and not imported.

Those marked `long` run on demand: --long adds them, so does -m with that word, and a test named with :: always runs.
Those marked `timing` measure time, which a machine with other work can spoil: three tries at most, and each is told.
tools/run-tests runs those marked `timing` or `alone` one by one (--turn alone), after all others (--turn beside).
"""

import contextlib
import inspect
import signal

import hypothesis
import pytest
from _pytest.runner import runtestprotocol

TRIES = 3
FAILED_TRY = "failed try"  # a property of reports: those of pytest-xdist's workers reach the process that prints
ALONE = ("timing", "alone")


def pytest_pycollect_makeitem(
    collector: pytest.Module | pytest.Class, name: str, obj: object
) -> list[pytest.Item] | None:
    """Leave out what a test file only imports."""
    is_import = inspect.isfunction(obj) and obj.__module__ != collector.module.__name__ and not name.startswith("_")
    return [] if is_import else None


def pytest_configure() -> None:
    """Let programs that tests start end by SIGINT: a shell that runs us in the background ignores it, for them too.

    Hypothesis measures no time either: an example that took long was on a busy machine.
    """
    hypothesis.settings.register_profile(
        "untimed", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
    )
    hypothesis.settings.load_profile("untimed")
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let all tests run, or a part of them."""
    parser.addoption("--long", action="store_true", help="run the long tests, too")
    parser.addoption(
        "--turn", choices=["beside", "alone"], help="run the tests that may run beside others, or the rest"
    )


def _is_left_out(config: pytest.Config, item: pytest.Item) -> bool:
    """It is for another turn, or long and nobody asked for it."""
    is_asked = config.option.long or "long" in config.option.markexpr or any("::" in arg for arg in config.args)
    if item.get_closest_marker("long") and not is_asked:
        return True
    turn = "alone" if any(map(item.get_closest_marker, ALONE)) else "beside"
    return config.option.turn not in (None, turn)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is not to run now."""
    if left_out := [item for item in items if _is_left_out(config, item)]:
        config.hook.pytest_deselected(items=left_out)
        others = set(left_out)
        items[:] = [item for item in items if item not in others]


def _failed_try(item: pytest.Item, number: int, reports: list[pytest.TestReport]) -> str:
    """A line about it, which is printed now; the caller sees to it that it is printed again at the end."""
    why = next(report.longreprtext for report in reports if report.failed).splitlines()[-1:]
    words = f"try {number} of {TRIES} failed: {item.nodeid}: {''.join(why)}"
    reporter = item.config.pluginmanager.get_plugin("terminalreporter")
    if reporter:
        reporter.ensure_newline()
        reporter.write_line(words)
    return words


def _clear_fixtures(item: pytest.Item) -> None:
    """Take all fixtures down, those of the module and the session, too; a try that failed may have spoilt any."""
    with contextlib.suppress(Exception, pytest.fail.Exception):
        item.session._setupstate.teardown_exact(None)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Try a test of timing again when it fails; the last try is the one that counts."""
    if not item.get_closest_marker("timing"):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    failed = []
    for number in range(1, TRIES + 1):
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        if not any(report.failed for report in reports):
            break
        failed.append((FAILED_TRY, _failed_try(item, number, reports)))
        if number < TRIES:
            _clear_fixtures(item)
    reports[0].user_properties.extend(failed)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How often a test of timing failed, whatever came of it."""
    reports = [one for some in terminalreporter.stats.values() for one in some if isinstance(one, pytest.TestReport)]
    if tries := [words for report in reports for name, words in report.user_properties if name == FAILED_TRY]:
        terminalreporter.section(f"failed tries of tests of timing: {len(tries)}")
        for words in tries:
            terminalreporter.write_line(str(words))
