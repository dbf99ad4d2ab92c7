"""A vhost-user peer that breaks every rule of the protocol and of its rings: test/device/hostile.c."""

import json
import subprocess
from pathlib import Path

import pytest
from harness.vhost import VhostBed
from harness.wire import wait_until
from harness.wired import BUILD

from dl3.control.generator import StreamResult

HOSTILE = BUILD / "test" / "device" / "hostile"
SECONDS, LONG_SECONDS = 2, 300
SEED = 1
# Slow enough that the rings between the guests hold what comes while one of the programs has no core.
RATE = "500 pps"
NEIGHBOURS = [f"10.0.9.{n} lladdr 02:00:00:00:09:0{n} dev evil" for n in (2, 3)]
# What hostile does with the socket if dl3d is in that mode.
ROLES = {"server": "connect", "client": "listen"}


def _stream(bed: VhostBed) -> StreamResult:
    (stream,) = bed.guests.results().streams
    return stream


def _halt(bed: VhostBed) -> StreamResult:
    bed.guests.call("halt")
    bed.guests.finish(stragglers_s=0, timeout_s=120)
    wait_until(lambda: _stream(bed).received >= _stream(bed).sent, "all frames had arrived")
    return _stream(bed)


def _state(bed: VhostBed) -> str:
    vhost = bed.port("evil").vhost
    assert vhost
    return vhost.state


def _run_beside_others(folder: Path, mode: str, seconds: int) -> dict[str, int]:
    """What the hostile peer has done; meanwhile two guests exchange frames, and lose none."""
    path = folder / "evil.sock"
    evil = {"name": "evil", "addresses": ["10.0.9.1/24"], "vhost": {"socket": str(path), "mode": mode, "queues": 4}}
    with VhostBed(more=[evil], neighbours=NEIGHBOURS) as bed:
        bed.wait_connected()
        bed.send(10**6, RATE)
        command = [str(HOSTILE), str(path), ROLES[mode], str(SEED), str(seconds), bed.port("evil").mac]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=2 * seconds + 120)
        assert done.returncode == 0, (done, bed.dl3d.stderr)
        counts: dict[str, int] = json.loads(done.stdout)
        result = _halt(bed)
        assert (result.lost, result.corrupted, result.duplicated) == (0, 0, 0), (result, counts)
        wait_until(lambda: _state(bed) == "waiting", "it was gone")
        account = bed.wait_balanced()
        assert bed.dl3d.stop() == 0, bed.dl3d.stderr
    return counts | {"received": account.received - result.sent, "sent": account.sent - result.sent}


def a_hostile_peer_harms_no_other(tmp_path: Path, is_long: bool) -> None:
    """Takes some seconds, in which the peer does what it can."""
    counts = _run_beside_others(tmp_path, "server", LONG_SECONDS if is_long else SECONDS)
    assert all(counts.values()), counts


@pytest.mark.long  # dl3d connects once in a second
def a_hostile_peer_that_listens_harms_no_other(tmp_path: Path) -> None:
    counts = _run_beside_others(tmp_path, "client", LONG_SECONDS)
    assert all(counts.values()), counts
