"""Options that are refused before any connection is made."""

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from dl3.cli import given, onecore, peers, place
from dl3.cli.main import app
from dl3.dut import wired
from dl3.model.campaign import Skipped
from dl3.model.fault import UsageFault
from dl3.model.results import FrameLoss
from dl3.model.stream import MIXES
from dl3.record.journal import append


def reads_sizes_and_mixes_each_once() -> None:
    assert given.frames_of(" 64,1518 ,imix,,64") == ("64", "1518", "imix")
    assert given.frames_of("") == ()


@pytest.mark.parametrize("text", ["63", "64,9623", "-64", "64;128", "64.5", "0x40", "\uff16\uff14"])
def refuses_sizes_that_no_frame_has(text: str) -> None:
    with pytest.raises(UsageFault, match=f"^--sizes {text}: invalid size .*: expected frame sizes 64..9622"):
        given.frames_of(text)


@pytest.mark.parametrize("word", ["imx", "IMIX", "imix2", "jumbo"])
def refuses_an_unknown_mix(word: str) -> None:
    with pytest.raises(UsageFault, match=f"^--sizes 64,{word}: invalid size '{word}': expected .* or imix, classic; "):
        given.frames_of(f"64,{word}")


def has_the_mixes_of_dl3gen() -> None:
    rows = (Path(given.__file__).parents[2] / "src" / "gen" / "read_size.c").read_text()
    assert tuple(re.findall(r'^\t\{"(\w+)"', rows, re.MULTILINE)) == MIXES


def _options_of_sockets(command: Any) -> Iterator[Any]:
    for name in command.list_commands(None) if hasattr(command, "list_commands") else ():
        yield from _options_of_sockets(command.get_command(None, name))
    for option in command.params:
        if option.name in ("socket", "generator") and option.type_descriptor.annotation is Path:
            yield option.type_descriptor.parameter_info


def leaves_it_to_the_socket_who_may_use_it() -> None:
    found = list(_options_of_sockets(typer.main.get_command(app)))
    assert len(found) > 10
    assert not any(option.readable for option in found)


@pytest.fixture
def _nothing_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*_: object, **__: object) -> None:
        raise AssertionError("something was started")

    for module, name in ((place, "memif_lab"), (wired, "reserved"), (peers, "build_peers"), (onecore, "workplace")):
        monkeypatch.setattr(module, name, start)


REFUSED = {
    "throughput --lab --sizes 64,imx": "--sizes 64,imx: ",
    "throughput --lab --sizes 9000": "the lab does not support '9000', only frames of 64 to 1518 bytes and mixes",
    "throughput --lab --sizes capture": "the lab does not support 'capture'",
    "throughput --lab --goals 0,x": "--goals 0,x: ",
    "throughput --lab --goals 0.6": "--goals 0.6: ",
    "throughput --lab --max-rate fast": "--max-rate fast: ",
    "throughput --lab --method binary --exceed 0.5": "--exceed 0.5 ",
    "throughput --lab --direction both": "'both' is not one of",
    "throughput --lab --seconds 0": "greater than or equal to 0.1",
    "throughput --lab --resolution 2": "less than or equal to 0.5",
    "throughput --lab --streams /nowhere": "/nowhere cannot be read",
    "throughput --lab --record /dev/null/r.jsonl": "cannot be written: /dev/null is not a folder",
    "latency --lab --loads 10,200": "--loads 10,200: ",
    "latency --lab --sizes 1519": "the lab does not support '1519'",
    "frame-loss --lab --sizes imx": "--sizes imx: ",
    "frame-loss --lab --sizes 1519": "the lab does not support '1519'",
    "frame-loss --lab --step 0": "greater than or equal to 0.1",
    "back-to-back --lab --repeat 0": "greater than or equal to 1",
    "reset --process-command no-such-program": "program 'no-such-program' not found",
    'reset --port-command "\'"': "No closing quotation; close its quotes",
    "proof --lab --sizes imx": "--sizes imx: ",
    "proof --lab --sizes 1519": "the lab does not support '1519'",
    "peers --rows ''": "--rows is empty",
    "peers --rows ,": "--rows is empty",
    "compare dl3d linux --sizes imx": "--sizes imx: ",
    "compare dl3d linux --sizes 1519": "the lab does not support '1519'",
    "compare dl3d linx": "unknown device kind 'linx'",
    "compare dl3d linux:speed=fast --descriptors 2048": "has no option 'speed'",
    "compare dl3d dl3d:mode=fast": "option mode is 'fast'",
    "compare dl3d dl3d --routes 2k": "unknown route table '2k'",
    "compare dl3d dl3d --descriptors 1000": "a ring has a power of two",
    "compare dl3d dl3d --test speed": "--test speed: ",
    "compare dl3d dl3d --flows 0": "greater than or equal to 1",
    "compare dl3d external:port=1 --descriptors 2048": "has no option 'port'",
    "peers --rows ipv5": "unknown row 'ipv5'",
    "peers --core 4095": "--core 4095: not available; use one of 0",
    "peers --output /dev/null/bench.json": "--output /dev/null/bench.json cannot be written",
    "onecore --routes 2k true": "unknown route table '2k'",
    "onecore --core 4095 true": "--core 4095: ",
    "run smoke --budget soon": "--budget 'soon': ",
    "run smoke --at ssh://box": "--at ssh://box: dl3 starts 'dl3d' itself, and only on this machine",
    "compare external linux --at ssh://box": "--at ssh://box: dl3 starts 'linux' itself",
    "compare external linx --at ssh://box": "unknown device kind 'linx'",
    "compare external external:at=ssh://box --at ssh://dut": "already names its machine",
    "compare external external --at dut": "--at dut: the other machine must be given as",
    "compare external external:at=dut": "the option 'at' of 'external:at=dut': dut: the other machine must be given as",
    "throughput --at dut": "--at dut: the other machine must be given as",
}


@pytest.mark.usefixtures("_nothing_is_started")
@pytest.mark.parametrize("words", REFUSED)
def refuses_it_before_anything_is_started(words: str) -> None:
    done = CliRunner().invoke(app, ["bench", *shlex.split(words)])
    assert REFUSED[words] in f"{done.exception} {done.stderr}"


def goes_on_with_records_of_any_kind(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    assert given.record(None) is None
    assert given.record(path) == path
    for content in (b"", b'{"ki', b'{"kind":"trial","at"'):
        path.write_bytes(content)
        assert given.record(path) == path
    path.unlink()
    append(path, Skipped(at="now", campaign="c", job="j", reason="r"))
    assert given.record(path) == path
    path.unlink()
    loss = {"at": "now", "campaign": "c", "dut": "d", "frame": "64", "mean_bytes": 64, "facts": {}}
    append(path, FrameLoss.model_validate({**loss, "points": (), "trial_seconds": 1}))
    assert given.record(path) == path


METHODS = ("throughput", "latency", "frame-loss", "reset", "rfc2544", "proof", "compare dl3d l3fwd", "onecore true")


@pytest.mark.parametrize("method", METHODS)
def adds_no_line_to_a_file_of_anything_else(method: str, tmp_path: Path) -> None:
    mine, folder = tmp_path / "router.yaml", tmp_path / "folder"
    mine.write_text("ports: []\n")
    folder.mkdir()
    for path in (mine, folder):
        done = CliRunner().invoke(app, ["bench", *method.split(), "--record", str(path)])
        assert isinstance(done.exception, UsageFault)
        assert str(done.exception) == f"--record {path} is not a record: choose another file, or omit it for a new one"
    assert mine.read_text() == "ports: []\n"


@pytest.mark.usefixtures("_nothing_is_started")
@pytest.mark.parametrize("method", [*METHODS, "idle --lab", "run smoke", "run smoke --dry-run"])
def refuses_a_record_in_a_folder_that_does_not_exist(method: str, tmp_path: Path) -> None:
    folder = tmp_path / "none"
    done = CliRunner().invoke(app, ["bench", *method.split(), "--record", str(folder / "r.jsonl")])
    assert isinstance(done.exception, UsageFault)
    wanted = f"--record {folder / 'r.jsonl'}: the folder {folder} does not exist: create it, or choose another file"
    assert str(done.exception) == wanted
    assert not folder.exists()


def creates_the_default_folder_of_records(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(given, "RECORDS", tmp_path / "build" / "records")
    path = tmp_path / "build" / "records" / "r.jsonl"
    assert given.record(path) == path
    monkeypatch.chdir(tmp_path)
    assert given.record(Path("build/records/r.jsonl"))
    assert given.record(Path("r.jsonl"))


@pytest.mark.parametrize("method", METHODS[:-1])
def judges_sizes_before_it_looks_for_a_generator(method: str) -> None:
    done = CliRunner().invoke(app, ["bench", *method.split(), "--sizes", "63"])
    assert "--sizes 63: invalid size '63': expected frame sizes 64..9622" in str(done.exception)


@pytest.mark.usefixtures("_nothing_is_started")
def seeks_no_throughput_in_a_record_that_has_none(tmp_path: Path) -> None:
    append(tmp_path / "r.jsonl", Skipped(at="now", campaign="c", job="j", reason="r"))
    for method in ("latency", "frame-loss"):
        done = CliRunner().invoke(app, ["bench", method, "--lab", "--from", str(tmp_path / "r.jsonl")])
        assert str(done.exception).startswith(f"{tmp_path / 'r.jsonl'} contains no throughput")


def seeks_no_throughput_in_a_file_that_is_not_there(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["bench", "latency", "--lab", "--from", str(tmp_path / "none")])
    assert str(done.exception) == f"{tmp_path / 'none'}: no such file; expected a record written by 'dl3 bench'"


def takes_the_processors_that_are_there_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with SMT siblings off."""
    monkeypatch.setattr(given, "usable", lambda: (0, 2, 4, 6))
    assert given.core(4) == 4
    with pytest.raises(UsageFault, match=r"^--core 1: not available; use one of 0,2,4,6$"):
        given.core(1)


def refuses_a_folder_that_may_not_be_searched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def exists(_path: Path) -> bool:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "exists", exists)
    with pytest.raises(UsageFault, match=r"^--output .*/b\.json cannot be written: Permission denied; choose another"):
        given.output(tmp_path / "b.json")


def asks_for_the_folder_of_what_is_replaced_and_for_the_file_of_what_is_continued(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Root may write anything, so the permissions are faked."""
    path, closed = tmp_path / "b.json", set[Path]()
    path.touch()
    monkeypatch.setattr(os, "access", lambda there, _mode: there not in closed)
    closed.add(path)
    assert given.output(path) == path
    with pytest.raises(UsageFault, match=f"{path} is not writable"):
        given.record(path)
    closed.clear()
    closed.add(tmp_path)
    assert given.record(path) == path
    with pytest.raises(UsageFault, match=f"^--output {path} cannot be written: {tmp_path} is not writable; "):
        given.output(path)
