"""What 'dl3 bench peers' does before it measures."""

from pathlib import Path

import pytest

from dl3.bench.contest import rows_named
from dl3.cli import peers
from dl3.model.fault import Fault


@pytest.mark.parametrize("status", [0, 1])
def leaves_standard_output_to_the_result_while_it_builds(
    status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    builder = tmp_path / "tools" / "build-peers"
    builder.parent.mkdir()
    builder.write_text(f"#!/bin/sh\necho building l3fwd\nexit {status}\n")
    builder.chmod(0o755)
    monkeypatch.setattr(peers, "TOP", tmp_path)
    if status:
        with pytest.raises(Fault, match="could not be built"):
            peers.build_peers((), 64)
    else:
        peers.build_peers((), 64)
    assert capfd.readouterr() == ("", "building l3fwd\n")


@pytest.mark.parametrize(
    ("names", "options"),
    [(["xconnect"], []), (["flows-1m"], ["--em"]), (["graph-1-route", "flows-64k"], ["--graph", "--em"])],
)
def builds_the_peers_of_the_rows(
    names: list[str],
    options: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    builder = tmp_path / "tools" / "build-peers"
    builder.parent.mkdir()
    builder.write_text('#!/bin/sh\necho "$@"\n')
    builder.chmod(0o755)
    monkeypatch.setattr(peers, "TOP", tmp_path)
    peers.build_peers(rows_named(names), 64)
    assert capfd.readouterr().err.split() == ["--burst", "64", *options]
