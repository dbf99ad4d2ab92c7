"""The command line: help, exit statuses, JSON."""

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dl3.cli.main import app

TOP = Path(__file__).resolve().parent.parent.parent
METHODS = [
    *([], ["show"], ["bench"], ["port"], ["port", "add"], ["port", "remove"]),
    *(
        ["run"],
        ["route"],
        ["reload"],
        ["balance"],
        ["verify"],
        ["trace"],
        ["call"],
        ["report"],
        ["explain"],
        ["host"],
        ["completion"],
        ["version"],
    ),
    *(
        ["show", "status"],
        ["show", "neighbours"],
        ["show", "ports"],
        ["show", "workers"],
        ["show", "drops"],
        ["show", "routes"],
        ["show", "nexthops"],
        ["show", "labels"],
        ["show", "tunnels"],
        ["show", "streams"],
        ["show", "route"],
        ["show", "taps"],
        ["show", "classes"],
        ["show", "mirror"],
        ["show", "unsupported"],
    ),
    *(["host", name] for name in ("plan", "verify", "record", "apply", "confirm", "undo")),
    *(["bench", "throughput"], ["bench", "latency"], ["bench", "proof"]),
    *(["bench", "onecore"], ["bench", "peers"], ["bench", "restart"], ["bench", "plugin"], ["bench", "tables"]),
]
NEXT_HOP = {
    "id": 1,
    "kind": "via",
    "via": "10.0.0.1",
    "port": "out",
    "interface": "out",
    "mac": "02:00:00:00:00:01",
    "mtu": 1500,
    "verdict": "forward",
    "routes": 7,
    "packets": 11,
    "labels": [],
    "tunnels": [],
    "label_ttl": None,
}


def dl3(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "dl3", *words], cwd=TOP, capture_output=True, text=True, timeout=120)


def _reply_once(path: Path, result: object) -> threading.Thread:
    """A dl3d that replies to one request."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()

    def serve() -> None:
        with listener, listener.accept()[0] as peer:
            peer.makefile("rb").readline()
            peer.sendall(json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}).encode() + b"\n")

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize("method", METHODS, ids=" ".join)
def explains_each_method_with_an_example(method: list[str]) -> None:
    done = CliRunner().invoke(app, [*method, "--help"], prog_name="dl3")
    assert done.exit_code == 0
    examples = [text for text in done.stdout.split("\n\n") if "Example: dl3 " in text]
    assert examples
    for example in examples:
        lines = example.splitlines()
        assert all(line.endswith(" \\") for line in lines[:-1]), "it can be pasted into a shell"


@pytest.mark.parametrize("group", [[], ["show"], ["bench"], ["host"]], ids=str)
def summaries_are_whole_at_80_columns(group: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    done = CliRunner().invoke(app, [*group, "-h"], prog_name="dl3")
    assert done.exit_code == 0
    assert "..." not in done.stdout.replace("[ARGS]...", "")
    assert max(len(line) for line in done.stdout.splitlines()) <= 80


def show_imports_nothing_of_benches_and_reports(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from dl3.cli.main import app\n"
        "try:\n"
        "    app(['show', 'ports', '--socket', sys.argv[1]], prog_name='dl3')\n"
        "finally:\n"
        "    print(*sorted(sys.modules))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "none")], cwd=TOP, capture_output=True, text=True
    )
    imported = done.stdout.split()
    assert "dl3.cli.show" in imported
    heavy = (
        "dl3.bench",
        "dl3.report",
        "dl3.campaign",
        "dl3.search",
        "dl3.trial",
        "dl3.dut",
        "plotly",
        "scipy",
        "MLRsearch",
    )
    assert not [name for name in imported if name.startswith(heavy)]


def the_version_is_an_option_too() -> None:
    assert dl3("--version").stdout == f"dl3 {dl3('version').stdout}"


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def completes_commands_in_a_shell(shell: str) -> None:
    script = dl3("completion", shell)
    assert (script.returncode, "_dl3_completion" in script.stdout) == (0, True)
    words = {"_DL3_COMPLETE": f"complete_{shell}", "COMP_WORDS": "dl3 show n", "COMP_CWORD": "2"}
    words |= {"_TYPER_COMPLETE_ARGS": "dl3 show n"}
    command = [sys.executable, "-m", "dl3"]
    done = subprocess.run(command, cwd=TOP, env=os.environ | words, capture_output=True, text=True, timeout=120)
    assert "nexthops" in done.stdout
    assert "neighbours" in done.stdout
    assert "ports" not in done.stdout


def calls_any_method_and_prints_its_result(tmp_path: Path) -> None:
    thread = _reply_once(tmp_path / "s", {"a": [1, None, "ä"]})
    done = dl3("call", "some.method", '{"limit": 5}', "--socket", str(tmp_path / "s"))
    thread.join()
    assert (done.returncode, json.loads(done.stdout)) == (0, {"a": [1, None, "ä"]})


@pytest.mark.parametrize("params", ["5", "{", "[]"])
def refuses_parameters_that_are_not_an_object(params: str) -> None:
    done = dl3("call", "routes", params)
    assert done.returncode == 2
    assert "JSON" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def leaves_with_1_and_a_sentence_when_no_dl3d_is_there(tmp_path: Path) -> None:
    done = dl3("show", "ports", "--socket", str(tmp_path / "none"))
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("dl3: cannot connect to dl3d at ")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "words",
    [["show", "listener"], ["bench", "peers", "--rows", "ipv5"], ["bench", "tables", "--routes", "2m"], ["route"]],
)
def leaves_with_2_when_asked_for_what_cannot_be(words: list[str]) -> None:
    assert dl3(*words).returncode == 2


@pytest.mark.parametrize("interval", ["inf", "nan", "1e300", "0"])
def refuses_to_look_again_at_the_end_of_time(interval: str) -> None:
    done = dl3("show", "ports", "--watch", "--interval", interval)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert "'--interval'" in done.stderr


@pytest.mark.parametrize("words", [("version",), ("show", "nexthops"), ("show", "nexthops", "--json")], ids=" ".join)
def reports_that_what_it_found_could_not_be_written(words: tuple[str, ...], tmp_path: Path) -> None:
    if words[0] == "show":
        _reply_once(tmp_path / "s", {"nexthops": [NEXT_HOP], "next": None})
        words = (*words, "--socket", str(tmp_path / "s"))
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "dl3", *words]
        done = subprocess.run(command, cwd=TOP, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120)
    assert done.returncode == 1
    assert done.stderr == (
        "dl3: output is incomplete: No space left on device; free some space, or redirect standard output\n"
    )


@pytest.mark.parametrize("closed", [">&-", "<&- >&-"])
@pytest.mark.parametrize(
    "words", [("version",), ("bench", "campaigns"), ("bench", "campaigns", "--json")], ids=" ".join
)
def reports_that_standard_output_is_closed(words: tuple[str, ...], closed: str) -> None:
    command = " ".join([shlex.quote(sys.executable), "-m", "dl3", *words, closed])
    done = subprocess.run(["sh", "-c", command], cwd=TOP, stderr=subprocess.PIPE, text=True, timeout=120)
    assert done.returncode == 1
    assert done.stderr == ("dl3: standard output is closed: redirect it, for example to /dev/null\n")


def needs_no_standard_output_and_no_other_stream_for_what_it_writes_elsewhere(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("name: mine\ntitle: Mine\nduts: dl3d\ncases:\n  - {key: a, title: A, frames: 64, tests: latency}\n")
    command = f"{shlex.quote(sys.executable)} -m dl3 bench run {file} --check <&- 2>&-"
    done = subprocess.run(["sh", "-c", command], cwd=TOP, stdout=subprocess.PIPE, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, f"{file}: 1 case, valid\n")


@pytest.mark.parametrize("option", [(), ("--json",)])
def verify_does_not_report_a_difference_when_its_result_cannot_be_written(
    option: tuple[str, ...], tmp_path: Path
) -> None:
    _reply_once(tmp_path / "s", {"compared": 1, "differences": 0, "listed": []})
    command = [sys.executable, "-m", "dl3", "verify", *option, "--socket", str(tmp_path / "s")]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, cwd=TOP, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120)
    assert done.returncode == 2
    assert done.stderr == (
        "dl3: output is incomplete: No space left on device; free some space, or redirect standard output\n"
    )


def prints_json_for_programs(tmp_path: Path) -> None:
    reply = {"nexthops": [NEXT_HOP], "next": None}
    thread = _reply_once(tmp_path / "s", reply)
    done = dl3("show", "nexthops", "--json", "--socket", str(tmp_path / "s"))
    thread.join(5)
    assert done.returncode == 0
    assert json.loads(done.stdout) == reply


def prints_a_table_for_people(tmp_path: Path) -> None:
    thread = _reply_once(tmp_path / "s", {"nexthops": [NEXT_HOP], "next": 1})
    done = dl3("show", "nexthops", "--socket", str(tmp_path / "s"))
    thread.join(5)
    assert "02:00:00:00:00:01" in done.stdout
    assert "1,500" in done.stdout
    assert "More: --after 1" in done.stdout


def explains_a_decision(tmp_path: Path) -> None:
    reply = {
        "address": "10.0.0.9",
        "found": True,
        "prefix": "10.0.0.0/8",
        "via": "10.0.0.1",
        "port": "out",
        "mac": None,
        "verdict": "neighbour_unresolved",
        "text": "MAC address of the next hop is not resolved",
    }
    thread = _reply_once(tmp_path / "s", reply)
    done = dl3("route", "10.0.0.9", "--socket", str(tmp_path / "s"))
    thread.join(5)
    assert "10.0.0.0/8" in done.stdout
    assert "neighbour_unresolved: MAC address of the next hop is not resolved" in done.stdout


def reports_what_each_step_of_a_worker_costs(tmp_path: Path) -> None:
    worker = {
        "worker": 0,
        "core": 3,
        "numa": 0,
        "idle": "sleep",
        "woken_by": "frames",
        "queues": [{"port": "left", "queue": 0}],
        "counters": {"bursts": 10},
        "empty_share": 0.25,
        "asleep_share": 0.125,
        "poll_gap": {"longest_us": 1234.5, "ago_s": 9.0},
        "cycles_per_packet": {"rx": 10.0, "parse": 2.5, "untag": 0.0},
        "verdicts": {"forward": 300, "runt": 20},
    }
    thread = _reply_once(tmp_path / "s", {"workers": [worker]})
    done = dl3("show", "workers", "--socket", str(tmp_path / "s"))
    thread.join(5)
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert lines[1] == "0 3 0 left/0 320 32.00 25.0% 12.5% frames 1,234 us, 9 s ago"
    assert lines[-1] == "0 10.00 2.50 12.50"  # without the step that never ran


def ctrl_c_while_modules_are_imported_exits_with_130(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text(
        "import time\nprint('importing', flush=True)\ntime.sleep(60)\n", encoding="utf-8"
    )
    environment = os.environ | {"PYTHONPATH": f"{tmp_path}:{TOP}"}
    words = ("env", "--default-signal=INT", sys.executable, "-m", "dl3", "show", "ports")
    with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "importing\n"
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
    assert (process.returncode, stderr) == (130, "")
