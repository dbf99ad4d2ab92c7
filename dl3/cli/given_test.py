"""Options that are refused before anybody is sought."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from dl3.cli import given
from dl3.cli.main import app
from dl3.model.answers import FrameLoss
from dl3.model.campaign import Skipped
from dl3.model.fault import UsageFault
from dl3.record.journal import append


def reads_sizes_and_mixes_each_once() -> None:
    assert given.frames_of(" 64,1518 ,imix,,64") == ("64", "1518", "imix")
    assert given.frames_of("") == ()


@pytest.mark.parametrize("text", ["63", "64,9623", "-64", "64;128", "64.5", "0x40", "\uff16\uff14"])
def refuses_sizes_that_no_frame_has(text: str) -> None:
    with pytest.raises(UsageFault, match=f"^--sizes {text}: frames of 64 to 9622 bytes"):
        given.frames_of(text)


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


VERBS = ("throughput", "latency", "frame-loss", "reset", "rfc2544", "proof", "compare dl3d l3fwd", "onecore true")


@pytest.mark.parametrize("verb", VERBS)
def adds_no_line_to_a_file_of_anything_else(verb: str, tmp_path: Path) -> None:
    mine, folder = tmp_path / "router.yaml", tmp_path / "folder"
    mine.write_text("ports: []\n")
    folder.mkdir()
    for path in (mine, folder):
        done = CliRunner().invoke(app, ["bench", *verb.split(), "--record", str(path)])
        assert isinstance(done.exception, UsageFault)
        assert str(done.exception) == f"--record {path} is no record: name another file, or none for a new one"
    assert mine.read_text() == "ports: []\n"


@pytest.mark.parametrize("verb", VERBS[:-1])
def judges_sizes_before_it_looks_for_a_generator(verb: str) -> None:
    done = CliRunner().invoke(app, ["bench", *verb.split(), "--sizes", "63"])
    assert "--sizes 63: frames of 64 to 9622 bytes" in str(done.exception)


def seeks_no_throughput_in_a_file_that_is_not_there(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["bench", "latency", "--lab", "--from", str(tmp_path / "none")])
    assert str(done.exception) == f"there is no record {tmp_path / 'none'}: name a file that 'dl3 bench' wrote"
