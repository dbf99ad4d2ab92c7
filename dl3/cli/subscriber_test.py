"""What 'dl3 subscriber' and 'dl3 show subscriber' ask dl3d, and what they print."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from dl3.cli.main import app
from dl3.control import client
from dl3.model.fault import UsageFault

COUNTS = {
    "green": {"packets": 1200, "bytes": 9},
    "yellow": {"packets": 34, "bytes": 8},
    "red": {"packets": 5, "bytes": 7},
}
ALICE: dict[str, Any] = {
    "name": "alice",
    "number": 17,
    "of_file": False,
    "addresses": ["198.51.100.7/32", "2001:db8:1::/56"],
    "interfaces": ["east.100"],
    "up": {"profile": "gold", "counts": COUNTS},
    "down": {"profile": None, "counts": COUNTS},
}


def _asked(monkeypatch: pytest.MonkeyPatch, reply: Any, *words: str) -> tuple[Result, list[Any]]:
    """What was printed, and the methods with their parameters."""
    asked: list[Any] = []

    def exchange(_path: Path, question: bytes, _timeout_s: float) -> bytes:
        given = json.loads(question)
        asked.append((given["method"], given["params"]))
        return json.dumps({"jsonrpc": "2.0", "id": 1, "result": reply}).encode()

    monkeypatch.setattr(client, "exchange", exchange)
    return CliRunner().invoke(app, [*words, "--socket", "/nowhere"]), asked


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("add alice up gold address 198.51.100.7", "add alice up gold address 198.51.100.7"),
        ("add alice", "add alice"),
        ("set alice without 198.51.100.7", "set alice without 198.51.100.7"),
        ("remove alice", "remove alice"),
        ("profile gold rate 1Mbit/s overhead -4", "profile gold rate 1Mbit/s overhead -4"),
        ("no-profile gold", "no-profile gold"),
    ],
)
def changes_are_passed_on_as_text(monkeypatch: pytest.MonkeyPatch, words: str, text: str) -> None:
    given = words.split()
    asked: list[Any] = []

    def exchange(_path: Path, question: bytes, _timeout_s: float) -> bytes:
        asked.append(json.loads(question))
        return b'{"jsonrpc": "2.0", "id": 1, "result": {"applied": 1}}'

    monkeypatch.setattr(client, "exchange", exchange)
    done = CliRunner().invoke(app, ["subscriber", given[0], "--socket", "/nowhere", *given[1:]])
    assert done.exit_code == 0, done.output
    assert [(one["method"], one["params"]) for one in asked] == [("subscribers.change", {"changes": [text]})]


class Dl3d:
    """Answers requests in turn: each is a result, or the sentence of an error. The last one is repeated."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **answers: list[Any]) -> None:
        self.asked: list[tuple[str, Any]] = []
        self.answers = {name.replace("_", "."): list(given) for name, given in answers.items()}
        monkeypatch.setattr(client, "exchange", self.exchange)

    def exchange(self, _path: Path, question: bytes, _timeout_s: float) -> bytes:
        given = json.loads(question)
        self.asked.append((given["method"], given["params"]))
        left = self.answers[given["method"]]
        answer = left.pop(0) if len(left) > 1 else left[0]
        kind = {"error": {"code": -32000, "message": answer}} if isinstance(answer, str) else {"result": answer}
        return json.dumps({"jsonrpc": "2.0", "id": 1, **kind}).encode()


def _run(*words: str) -> Result:
    return CliRunner().invoke(app, ["subscriber", *words, "--socket", "/nowhere"])


RUNNING = {"state": "running", "what": "load", "path": "/c", "phase": "reading", "done": 5}
DONE = {**RUNNING, "state": "done", "phase": None, "subscribers": 1048576, "seconds": 1.234}


def a_file_is_named_by_its_whole_path_and_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(Path.cwd() / "customers")
    jobs = [RUNNING | {"path": path}, DONE | {"path": path}]
    dl3d = Dl3d(monkeypatch, subscribers_load=[{"path": path}], subscribers_job=jobs)
    assert _run("load", "customers").stdout == "loaded in 1.23 s: 1,048,576 subscribers\n"
    assert dl3d.asked == [("subscribers.load", {"path": path}), *[("subscribers.job", {})] * 2]
    dl3d = Dl3d(monkeypatch, subscribers_export=[{"path": "/c"}], subscribers_job=[DONE])
    assert _run("export", "/c", "--overwrite").stdout == "exported in 1.23 s: 1,048,576 subscribers\n"
    assert dl3d.asked[0] == ("subscribers.export", {"path": "/c", "overwrite": True})


@pytest.mark.parametrize(
    ("job", "sentence"),
    [
        ({"state": "failed", "reason": "/c:7: no"}, "/c:7: no"),
        ({"path": "/d"}, "dl3d has begun another load or export meanwhile"),
    ],
)
def a_job_that_failed_says_why(monkeypatch: pytest.MonkeyPatch, job: dict[str, Any], sentence: str) -> None:
    Dl3d(monkeypatch, subscribers_load=[{"path": "/c"}], subscribers_job=[DONE | job])
    done = _run("load", "/c")
    assert done.exit_code != 0
    assert sentence in str(done.output) + str(done.exception)


def a_change_waits_for_the_end_of_a_load(monkeypatch: pytest.MonkeyPatch) -> None:
    busy = "loading /c is not finished; try again later"
    dl3d = Dl3d(monkeypatch, subscribers_change=[busy, {"applied": 1}], subscribers_job=[RUNNING, DONE])
    assert _run("remove", "alice").exit_code == 0
    change = ("subscribers.change", {"changes": ["remove alice"]})
    assert dl3d.asked == [change, ("subscribers.job", {}), ("subscribers.job", {}), change]


def a_page_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    reply = {"subscribers": [ALICE], "next": 17}
    done, asked = _asked(monkeypatch, reply, "subscriber", "list", "--limit", "1")
    assert asked == [("subscribers.list", {"after": 0, "limit": 1})]
    assert "alice" in done.stdout
    assert "1,234" in done.stdout
    assert done.stdout.endswith("More: --after 17\n")
    done, _ = _asked(monkeypatch, {"subscribers": [], "next": None}, "subscriber", "list")
    assert done.stdout == "There are no subscribers.\n"


def one_is_shown_by_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    done, asked = _asked(monkeypatch, ALICE, "show", "subscriber", "alice")
    assert asked == [("subscribers.find", {"name": "alice"})]
    rows = [line.split() for line in done.stdout.splitlines()]
    assert ["up", "gold", "yellow", "34", "8", "-"] in rows
    assert ["number", "17"] in rows


def the_only_change_has_no_number_when_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    said = "there is no subscriber 'carol'; nothing was changed"

    def exchange(_path: Path, _question: bytes, _timeout_s: float) -> bytes:
        error = {"code": client.METHOD_COMPLAINED, "message": f"changes[0]: {said}"}
        return json.dumps({"jsonrpc": "2.0", "id": 1, "error": error}).encode()

    monkeypatch.setattr(client, "exchange", exchange)
    with pytest.raises(UsageFault) as fault:
        CliRunner().invoke(app, ["subscriber", "remove", "carol", "--socket", "/nowhere"], catch_exceptions=False)
    assert str(fault.value) == said


def watching_has_the_interval_of_other_commands() -> None:
    shown = CliRunner().invoke(app, ["show", "subscriber", "--help"]).stdout
    assert "--interval SECONDS" in shown
    assert "--watch" not in CliRunner().invoke(app, ["subscriber", "add", "--help"]).stdout


def the_table_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    usage = {"subscribers": 2, "profiles": 1, "addresses": 3, "interfaces": 0, "bytes": 99, "lengths4": [32]}
    usage |= {"lengths6": [64, 56], "batches": 1, "changes": 4}
    use = {"profile": "gold rate 1Mbit/s burst 15180B", "users": 3}
    done, asked = _asked(monkeypatch, {**usage, "profile_list": [use]}, "show", "subscribers")
    assert asked == [("subscribers", {})]
    assert "/32, /64, /56" in done.stdout
    assert "gold rate 1Mbit/s burst 15180B" in done.stdout
