"""The commands that measure with dl3gen, against a fake dl3gen on a real socket."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pydantic import RootModel
from rich.console import Console
from typer.testing import CliRunner, Result

from dl3.bench import far
from dl3.bench.site import ProgressListener
from dl3.campaign.streams import read_streams
from dl3.cli import place, rfc2544
from dl3.cli.main import app
from dl3.cli.place import NOBODY, Place, run_at
from dl3.cli.progress import Bar, span
from dl3.cli.rfc2544 import Search, exceed_of, goals_of, loads_of, pps_of
from dl3.control.client import DL3GEN, Program
from dl3.control.generator import Results
from dl3.host.noise import Look, Watch
from dl3.lab.links import streams
from dl3.lab.memif import MemifSettings
from dl3.model.fault import Fault, UsageFault
from dl3.record.reader import read
from dl3.trial.fake import MIX_BYTES, FakeGenerator
from dl3.trial.run import Runner

Anything = RootModel[dict[str, Any]]


@pytest.fixture(autouse=True)
def _no_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(far, "Runner", partial(Runner, sleep=lambda _: None))


@pytest.fixture(autouse=True)
def _quiet_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Results are numbers, regardless of the load of this machine; results_test.py covers ranges on noisy ones."""
    monkeypatch.setattr(Watch, "look", lambda _: Look())


class Serving(FakeGenerator):
    """Also replies to 'status'."""

    def reply_status(self, _params: dict[str, Any]) -> dict[str, Any]:
        """Hardly anything."""
        return {"version": "0.1.0", "pid": 7, "workers": 1}

    def reply_workers(self, _params: dict[str, Any]) -> dict[str, Any]:
        """As a dl3d without any."""
        return {"workers": []}


@contextmanager
def serving(path: Path, generator: FakeGenerator) -> Iterator[Path]:
    """One request per connection, as dl3gen's clients do."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def serve() -> None:
            while True:
                try:
                    peer, _ = listener.accept()
                except OSError:
                    return
                with peer, peer.makefile("rb") as stream:
                    question = json.loads(stream.readline())
                    try:
                        found = generator.ask(Anything, question["method"], **question["params"]).root
                        response = {"jsonrpc": "2.0", "id": 1, "result": found}
                    except UsageFault as fault:
                        error = {"code": -32000, "message": str(fault)}
                        response = {"jsonrpc": "2.0", "id": 1, "error": error}
                    peer.sendall(json.dumps(response).encode() + b"\n")

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield path
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(5)


def dl3(folder: Path, generator: FakeGenerator, *words: str) -> Result:
    """The command, without the last step from faults to exit statuses."""
    with serving(folder / "s", generator) as path:
        place_of_all = ["--generator", str(path), "--dut", NOBODY, "--record", str(folder / "r.jsonl")]
        return CliRunner().invoke(app, ["bench", *words, *place_of_all, "--seconds", "0.1"])


def finds_the_throughput_and_prints_a_table(tmp_path: Path) -> None:
    done = dl3(tmp_path, Serving(line_bps=10e9), "throughput", "--sizes", "64,1518", "--dut-name", "box")
    assert done.exit_code == 0
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines[1][:6] == ["frame", "loss", "goal", "Mpps", "Gbit/s", "%"]
    assert lines[2][:10] == ["64", "0", "7.270", "4.885", "48.9%", "the", "device", "4.0", "4.0", "4.0"]
    assert lines[3][:8] == ["1518", "0", "0.813", "10.000", "100.0%", "the", "line", "rate"]
    record = read(tmp_path / "r.jsonl")
    assert [result.dut for result in record.results] == ["box", "box"]
    assert record.results[0].facts["generator"] == {"version": "0.1.0", "workers": 1}


@pytest.mark.parametrize("method", ["mlrsearch", pytest.param("binary", marks=pytest.mark.long)])
def finds_several_goals_in_one_run(tmp_path: Path, method: str) -> None:
    words = [
        "--sizes",
        "64",
        "--goals",
        "0,0.01",
        "--method",
        method,
        "--repeat",
        "2",
        "--resolution",
        "0.002",
        "--json",
    ]
    found = json.loads(dl3(tmp_path, Serving(), "throughput", *words).stdout)
    strict, loose = found["results"]
    assert strict["pps"] <= 7.3e6 < strict["upper_pps"] <= loose["pps"] <= 7.3e6 / 0.99 < loose["upper_pps"]
    assert [one["goal_loss_ratio"] for one in found["results"]] == [0, 0.01]
    assert {one["method"] for one in found["results"]} == {method}
    assert {len(one["repeats_pps"]) for one in found["results"]} == {2}


@pytest.mark.parametrize("text", ["", "x", "0,0", "-1", "0.6", "1"])
def reports_which_goals_it_needs(text: str) -> None:
    with pytest.raises(UsageFault, match=f"--goals {text}: expected loss ratios 0..0.5 without duplicates"):
        goals_of(text)


def halves_with_no_exceed_ratio() -> None:
    with pytest.raises(UsageFault, match=r"--exceed 0\.5 applies to RFC 9971 only: omit it"):
        exceed_of(0.5, Search.BINARY)
    assert exceed_of(0.5, Search.MLRSEARCH) == 0.5


def prints_json_for_programs_that_plan(tmp_path: Path) -> None:
    done = dl3(tmp_path, Serving(), "throughput", "--sizes", "imix", "--max-rate", "2 Mpps", "--json")
    found = json.loads(done.stdout)
    assert found["record"] == str(tmp_path / "r.jsonl")
    assert [(a["frame"], a["pps"], a["limited_by"]) for a in found["results"]] == [("imix", 2e6, "asked")]


def writes_at_least_where_the_generator_is_the_limit(tmp_path: Path) -> None:
    done = dl3(tmp_path, Serving(device_pps=9e9), "throughput", "--sizes", "64")
    assert ">= 20.000" in done.stdout
    assert "generator" in done.stdout


def leaves_with_a_fault_when_a_search_has_no_result(tmp_path: Path) -> None:
    generator = Serving(spoil=lambda results: results.update(tsc_offset_ns=900.0))
    done = dl3(tmp_path, generator, "throughput", "--sizes", "64")
    assert isinstance(done.exception, Fault)
    assert not isinstance(done.exception, UsageFault)
    assert "1 of the searches ended without a result" in str(done.exception)
    assert "the TSCs of two workers are 900 ns apart" in done.stderr


def passes_on_what_an_older_dl3gen_reports_of_a_mix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(MIX_BYTES, "classic")
    done = dl3(tmp_path, Serving(), "throughput", "--sizes", "classic")
    assert isinstance(done.exception, UsageFault)
    assert "'size' is neither a number nor a mix" in str(done.exception)


def measures_latency_at_the_throughput_of_a_record(tmp_path: Path) -> None:
    dl3(tmp_path, Serving(), "throughput", "--sizes", "64,imix")
    (tmp_path / "s").unlink()
    n_before = len(read(tmp_path / "r.jsonl").trials)
    words = ["--from", str(tmp_path / "r.jsonl"), "--dut-name", "device", "--sizes", "imix", "--loads", "50"]
    done = dl3(tmp_path, Serving(), "latency", *words)
    assert done.exit_code == 0
    assert [line.split()[:3] for line in done.stdout.splitlines()[2:]] == [["imix", "50%", "3.635"]]
    assert len(read(tmp_path / "r.jsonl").trials) == n_before + 1


def finds_the_throughput_first_where_no_record_has_it(tmp_path: Path) -> None:
    done = dl3(tmp_path, Serving(), "latency", "--sizes", "64")
    assert [line.split()[1] for line in done.stdout.splitlines()[2:]] == ["10%", "50%", "90%"]


def refuses_a_size_that_the_record_does_not_have(tmp_path: Path) -> None:
    dl3(tmp_path, Serving(), "throughput", "--sizes", "64")
    (tmp_path / "s").unlink()
    done = dl3(tmp_path, Serving(), "latency", "--from", str(tmp_path / "r.jsonl"), "--sizes", "64,128,imix")
    assert isinstance(done.exception, UsageFault)
    assert "has no throughput of device with frames of 128, imix: omit them" in str(done.exception)


def reports_that_there_is_no_share_of_nothing(tmp_path: Path) -> None:
    dl3(tmp_path, Serving(), "throughput", "--sizes", "64")
    (tmp_path / "s").unlink()
    (found,) = read(tmp_path / "r.jsonl").results
    (tmp_path / "zero.jsonl").write_text(found.model_copy(update={"pps": 0.0}).model_dump_json())
    done = dl3(tmp_path, Serving(), "latency", "--from", str(tmp_path / "zero.jsonl"))
    assert isinstance(done.exception, Fault)
    assert "64-byte frames: device has no throughput, so no share of it can be offered" in done.stderr


def reports_a_record_without_data_of_the_device(tmp_path: Path) -> None:
    (tmp_path / "old.jsonl").write_text("{")
    done = dl3(tmp_path, Serving(), "latency", "--from", str(tmp_path / "old.jsonl"))
    assert "contains no throughput: specify a complete record" in str(done.exception)
    assert "ignored: the line is incomplete" in done.stderr


def shows_what_the_newest_run_has_counted(tmp_path: Path) -> None:
    generator = Serving(device_pps=9e5, newest={})
    with serving(tmp_path / "s", generator) as path:
        none = CliRunner().invoke(app, ["show", "streams", "--socket", str(path)])
        generator.newest = {**EMPTY}
        idle = CliRunner().invoke(app, ["show", "streams", "--socket", str(path)])
        generator.reply_send({"streams": [{"from": "left", "to": "right", "rate": 1e6, "size": 64}], "seconds": 1.0})
        busy = CliRunner().invoke(app, ["show", "streams", "--socket", str(path)])
        text = CliRunner().invoke(app, ["show", "streams", "--json", "--socket", str(path)])
    assert isinstance(none.exception, Fault)
    assert "has not sent anything yet" in idle.stdout
    rows = [" ".join(line.split()) for line in busy.stdout.splitlines()]
    assert "stream0 left right 1 1.000 1.000 1,000,000 0 0" in rows
    assert "stream0 900,000 100,000 0 0 flow 0" in rows
    assert "stream0 4.0 4.0 4.0 4.0 4.0 4.0 0.0" in rows
    assert Results.model_validate_json(text.stdout).streams[0].lost == 100_000


EMPTY = dict.fromkeys(("run", "seconds", "tsc_hz", "tsc_offset_ns"), 0) | {
    "state": "idle",
    **dict.fromkeys(("streams", "ports", "workers"), ()),
}


@pytest.mark.parametrize(("text", "pps"), [("", 0), ("1.5 Mpps", 1.5e6), ("800kpps", 8e5), ("1000", 1000)])
def reads_rates(text: str, pps: float) -> None:
    assert pps_of(text) == pps


@pytest.mark.parametrize("text", ["fast", "-1", "0 pps", "5 Gbit/s", "50 %", "1.2.3 Mpps", "1e400", "1e400 Mpps"])
def refuses_what_is_no_rate_of_packets(text: str) -> None:
    with pytest.raises(UsageFault, match="a rate like"):
        pps_of(text)


@pytest.mark.parametrize("text", ["", "x", "0", "101", "10;20"])
def refuses_what_is_no_share(text: str) -> None:
    with pytest.raises(UsageFault, match="percentages of the throughput"):
        loads_of(text)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("5", "expected a list of streams"),
        ("[]", "expected a list of streams"),
        ("[5]", "expected a list of streams"),
        ("- {from: [a]}", "'from' of a stream: Input should be a valid string"),
        ("a: [", "is not valid YAML"),
        ("\xff", "is not text: byte 0 is not UTF-8"),
        ('- from: a\n  to: "\\udc00"\n', "the text contains half of a surrogate pair"),
        ("[" * 5000, "is nested too deeply: expected a list of streams"),
    ],
)
def rejects_a_file_of_streams_in_a_sentence(text: str, error: str, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(text.encode("latin-1"))
    with pytest.raises(UsageFault, match=error) as found:
        read_streams(tmp_path / "f")
    assert "\n" not in str(found.value)


def reads_a_list_of_streams_or_a_whole_file(tmp_path: Path) -> None:
    (tmp_path / "list").write_text("- {from: a, to: b, vlan: 5}\n")
    (tmp_path / "file").write_text("ports: []\nstreams: [{from: a, to: b, vlan: 5}]\n")
    assert read_streams(tmp_path / "list") == read_streams(tmp_path / "file")
    assert read_streams(tmp_path / "list")[0].written() == {"from": "a", "to": "b", "vlan": 5}


def takes_addresses_and_names_of_streams_as_they_are_written(tmp_path: Path) -> None:
    written = "- {from: yes, to: 2026-13-01, dst_mac: 12:34:56:00:00:01, vlan: 010, rate: 1e3, stamp: true, ttl: 64}"
    (tmp_path / "f").write_text(written)
    macs = {"dst_mac": "12:34:56:00:00:01", "vlan": 10}
    names = {"from": "yes", "to": "2026-13-01"}
    assert read_streams(tmp_path / "f")[0].written() == {**names, **macs, "rate": 1000.0, "stamp": True, "ttl": 64}


def reports_which_dl3d_it_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(place, "DL3D", Program("dl3d", "", "", tmp_path / "none"))
    monkeypatch.setattr(place, "say", lambda text: print(text))
    with serving(tmp_path / "s", Serving()) as path:
        here = Place(path, "", "", is_lab=False, streams=None, record=tmp_path / "r")
        with run_at(here, 1.0, ProgressListener()) as run:
            assert (run.site.dut, run.site.dut_name) == (None, "device")
        monkeypatch.setattr(place, "DL3D", Program("dl3d", "", "", path))
        with run_at(here, 1.0, ProgressListener()) as run:
            assert run.site.dut
            assert run.site.dut_name == "dl3d"
    reported = capsys.readouterr().out
    assert "warning: no dl3d at" in reported
    assert "its packet accounting is checked too" in reported


@pytest.mark.parametrize("method", ["throughput", "latency", "frame-loss", "rfc2544"])
def refuses_a_direction_where_streams_specify_it(method: str, tmp_path: Path) -> None:
    done = dl3(tmp_path, Serving(), method, "--sizes", "64", "--direction", "bidirectional")
    wanted = "--direction bidirectional applies to the lab's own streams, but those of dl3gen's file are sent"
    assert wanted in str(done.exception)
    assert not (tmp_path / "r.jsonl").exists()


@pytest.mark.parametrize(("direction", "ways"), [("unidirectional", 1), ("bidirectional", 2), ("meshed", 2)])
def sends_the_streams_of_the_lab_to_their_configured_ports(
    direction: Any, ways: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[MemifSettings] = []

    def lab(terms: MemifSettings) -> AbstractContextManager[object]:
        given.append(terms)
        raise Fault("enough")

    monkeypatch.setattr(place, "memif_lab", lab)
    monkeypatch.setattr(place, "built", lambda program, _maker: program)
    here = Place(tmp_path, "", "", True, None, tmp_path / "r", direction=direction)
    with pytest.raises(Fault, match="enough"), run_at(here, 1.0, ProgressListener()):
        pass
    assert len(streams(given[0].flows)) == ways


def fails_when_the_dl3d_that_was_named_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(Fault, match=r"cannot connect to dl3d at .* or specify its socket with --dut$"):
        place.tested(str(tmp_path / "none"))


def reports_how_to_start_a_generator(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["bench", "throughput", "--generator", str(tmp_path / "none"), "--dut", NOBODY])
    assert "cannot connect to dl3gen at" in str(done.exception)
    assert DL3GEN.start in str(done.exception)


def reports_the_time_that_is_left() -> None:
    console = Console(force_terminal=True, width=100, color_system=None)
    with console.capture() as capture, Bar(console) as bar:
        bar.on_left("64", 30)
        bar.on_left("imix", 600)
    assert "64-byte frames" in capture.get()
    assert "about 30 s left" in capture.get()
    assert "about 10 min left" in capture.get()
    assert span(59.4) == "59 s"
    assert rfc2544.PERCENTS == "10,50,90"
