"""The lab of the KVM report as a whole: the losses add up, a short queue moves them, and nothing is left when it is killed."""

import json
import os
import random
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from harness.wire import wait_until
from harness.wired import TOP

from dl3.host.hugepages import NUMBER, read_number
from dl3.lab.kept import Place
from dl3.model.lab import LabRun
from dl3.record.reader import read

pytestmark = [pytest.mark.long, pytest.mark.alone]  # guests without KVM boot slowly; there is one lab of this name

CACHE = TOP / "build" / "cache"
ENV = os.environ | {"XDG_CACHE_HOME": str(CACHE)}
PLACE = Place("kvm-report")
PATIENCE_S = 3000.0  # only ends what hangs
GUESTS = ("--emulated", "--seconds", "2")
PROGRAMS = ("--vms", "0", "--switch", "dl3d", "--seconds", "1")


def _lab(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dl3", "lab", "kvm-report", *words]
    return subprocess.run(command, cwd=TOP, env=ENV, capture_output=True, text=True, timeout=PATIENCE_S)


def _runs(record: Path) -> list[LabRun]:
    return [entry for _, entry in read(record).lines if isinstance(entry, LabRun)]


def _measured(folder: Path, *words: str) -> list[LabRun]:
    """The record of the lab; each lost frame is named, and the losses add up."""
    record = folder / "lab.jsonl"
    done = _lab(*words, "--record", str(record))
    assert done.returncode == 0, done.stderr
    assert not PLACE.has_any()
    assert "Where frames are lost" in record.with_suffix(".html").read_text(encoding="utf-8")
    runs = _runs(record)
    for run in runs:
        assert run.is_chain
        assert sum(hop.lost for hop in run.hops) == run.sent - run.received
        assert [hop for hop in run.hops if hop.unnamed] == []
    return runs


@pytest.mark.parametrize(
    "options",
    [
        ("--forwarder", "l2fwd"),
        ("--forwarder", "testpmd", "--switch", "dl3d"),
        ("--forwarder", "dl3d", "--generator", "pktgen"),
    ],
    ids=" ".join,
)
def names_each_lost_frame_at_three_loads(tmp_path: Path, options: tuple[str, ...]) -> None:
    runs = _measured(tmp_path, *GUESTS, *options, "--rates", "500,5000,50000")
    assert [run.asked_pps for run in runs] == [500, 5000, 50000]
    assert all(run.topology.is_emulated and run.received for run in runs)


@pytest.mark.parametrize("forwarder", ["l2fwd", "testpmd", "dl3d"])
def names_each_lost_frame_without_guests(tmp_path: Path, forwarder: str) -> None:
    runs = _measured(tmp_path, *PROGRAMS, "--forwarder", forwarder, "--rates", "1000,100000,1000000")
    assert len(runs) == 3
    assert all(run.received for run in runs)


@pytest.mark.parametrize("place", ["vnet1", "vnet3"])
def loses_at_the_queue_that_is_short(tmp_path: Path, place: str) -> None:
    """VM1's card sends up to 256 frames at once, which do not fit."""
    (run,) = _measured(tmp_path, *GUESTS, "--short-queue", place, "--rates", "50000")
    switch = {hop.place: hop.lost for hop in run.hops if hop.place.startswith(("vnet", "br"))}
    assert max(switch, key=lambda name: switch[name]) == place
    assert switch[place]


def goes_step_by_step(tmp_path: Path) -> None:
    record = str(tmp_path / "lab.jsonl")
    try:
        assert _lab("up", *PROGRAMS).returncode == 0
        again = _lab("up", *PROGRAMS)
        assert again.returncode == 2
        assert again.stderr.startswith("dl3: the lab kvm-report is up: use 'dl3 lab kvm-report measure'")
        for _ in range(2):
            assert _lab("measure", "--rates", "1000", "--seconds", "1", "--record", record).returncode == 0
        assert "Where frames" in _lab("report", "--record", record).stdout or Path(record).with_suffix(".html").exists()
        assert len(_runs(Path(record))) == 2
    finally:
        assert _lab("down").returncode == 0
    assert not PLACE.has_any()
    assert _lab("measure").stderr == "dl3: the lab kvm-report is not up: run 'dl3 lab kvm-report up' first\n"


def _left() -> dict[str, object]:
    """What a lab may leave on this machine."""
    links = json.loads(subprocess.run(["ip", "-json", "link"], capture_output=True, check=True).stdout)
    return {
        "processes": PLACE.processes(),
        "links": sorted(link["ifname"] for link in links if re.match(r"vnet|br\d", link["ifname"])),
        "namespaces": sorted(path.name for path in Path("/run/netns").glob("dl3-lab-*")),
        "files": sorted(str(path) for path in Path("/run").glob("dl3-lab-*")),
        "drafts": sorted(str(path) for path in CACHE.glob("dl3/guest/making-*")),
        "pages": read_number(NUMBER),
    }


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("options", [GUESTS, PROGRAMS], ids=["guests", "programs"])
def leaves_nothing_when_it_is_killed(tmp_path: Path, options: tuple[str, ...], seed: int) -> None:
    """By Ctrl-C nothing is left at once; what is left after SIGKILL is removed by the next command."""
    draw = random.Random(f"{seed} {options}")
    before = _left()
    how = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)[seed % 3]
    stop_at = draw.randrange(1, 300)
    log = tmp_path / "log"
    command = [sys.executable, "-m", "dl3", "lab", "kvm-report", *options, "--record", str(tmp_path / "r.jsonl")]
    with log.open("wb") as out, subprocess.Popen(command, cwd=TOP, env=ENV, stdout=out, stderr=out) as lab:
        wait_until(lambda: PLACE.has_any() or lab.poll() is not None, "the lab had begun", PATIENCE_S)
        looks = iter(range(stop_at))
        wait_until(lambda: next(looks, None) is None or lab.poll() is not None, "a moment had come", PATIENCE_S)
        lab.send_signal(how)
        lab.wait(PATIENCE_S)
    if how == signal.SIGKILL:
        assert _lab("down").returncode == 0
    assert _left() == before, log.read_text()
