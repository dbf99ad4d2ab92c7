"""Labs as a whole: the losses add up, a short queue moves them, and nothing is left when they are killed."""

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
KVM_REPORT = "kvm-report"
PATIENCE_S = 3000.0  # only ends what hangs
GUESTS = ("--emulated", "--seconds", "2")
PROGRAMS = ("--vms", "0", "--seconds", "1")
KVM_PROGRAMS = (*PROGRAMS, "--switch", "dl3d")


def _lab(lab: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dl3", "lab", lab, *words]
    return subprocess.run(command, cwd=TOP, env=ENV, capture_output=True, text=True, timeout=PATIENCE_S)


def _runs(record: Path) -> list[LabRun]:
    return [entry for _, entry in read(record).lines if isinstance(entry, LabRun)]


def _measured(folder: Path, lab: str, *words: str) -> list[LabRun]:
    """The record of the lab; each lost frame is named, and the losses add up."""
    record = folder / "lab.jsonl"
    done = _lab(lab, *words, "--record", str(record))
    assert done.returncode == 0, done.stderr
    assert not Place(lab).has_any()
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
    runs = _measured(tmp_path, KVM_REPORT, *GUESTS, *options, "--rates", "500,5000,50000")
    assert [run.asked_pps for run in runs] == [500, 5000, 50000]
    assert all(run.topology.is_emulated and run.received for run in runs)


@pytest.mark.parametrize("generator", ["dl3gen", "pktgen"])
def names_each_lost_frame_between_vrouters(tmp_path: Path, generator: str) -> None:
    words = (*GUESTS, "--generator", generator, "--rates", "500,5000")
    runs = _measured(tmp_path, "contrail", *words)
    assert all(run.topology.is_emulated and run.received for run in runs)


@pytest.mark.parametrize("switch", ["ovs", "dl3d"])
def names_each_lost_frame_through_a_guest_with_one_link(tmp_path: Path, switch: str) -> None:
    words = (*GUESTS, "--switch", switch, "--path", "one-link", "--rates", "500,5000")
    runs = _measured(tmp_path, "white-paper-vswitch", *words)
    assert all(run.topology.is_emulated and run.received for run in runs)


@pytest.mark.parametrize("forwarder", ["l2fwd", "testpmd", "dl3d"])
def names_each_lost_frame_without_guests(tmp_path: Path, forwarder: str) -> None:
    words = (*KVM_PROGRAMS, "--forwarder", forwarder, "--rates", "1000,100000,1000000")
    runs = _measured(tmp_path, KVM_REPORT, *words)
    assert len(runs) == 3
    assert all(run.received for run in runs)


@pytest.mark.parametrize(
    ("lab", "n"), [("contrail", 1), ("white-paper-vswitch", 6), ("kernel-notes", 4), ("router-on-a-laptop", 1)]
)
def measures_each_topology_without_guests(tmp_path: Path, lab: str, n: int) -> None:
    vms = () if lab in ("kernel-notes", "router-on-a-laptop") else ("--vms", "0")
    runs = _measured(tmp_path, lab, *vms, "--seconds", "1", "--rates", "1000", "--size", "102")
    assert len(runs) == n
    assert all(run.received and run.frame == "102" for run in runs)


@pytest.mark.parametrize("place", ["vnet1", "vnet3"])
def loses_at_the_queue_that_is_short(tmp_path: Path, place: str) -> None:
    """VM1's card sends up to 256 frames at once, which do not fit."""
    (run,) = _measured(tmp_path, KVM_REPORT, *GUESTS, "--short-queue", place, "--rates", "50000")
    switch = {hop.place: hop.lost for hop in run.hops if hop.place.startswith(("vnet", "br"))}
    assert max(switch, key=lambda name: switch[name]) == place
    assert switch[place]


def goes_step_by_step(tmp_path: Path) -> None:
    record, words = str(tmp_path / "lab.jsonl"), ("--vms", "0", "--switch", "dl3d")
    try:
        assert _lab(KVM_REPORT, "up", *words).returncode == 0
        again = _lab(KVM_REPORT, "up", *words)
        assert again.returncode == 2
        assert again.stderr.startswith("dl3: the lab kvm-report is up: use 'dl3 lab kvm-report measure'")
        for size in ("64", "128"):
            load = ("--rates", "1000", "--seconds", "1", "--size", size, "--record", record)
            assert _lab(KVM_REPORT, "measure", *load).returncode == 0
        said = _lab(KVM_REPORT, "report", "--record", record)
        assert "Where frames" in said.stdout or Path(record).with_suffix(".html").exists()
        assert [run.frame for run in _runs(Path(record))] == ["64", "128"]
    finally:
        assert _lab(KVM_REPORT, "down").returncode == 0
    assert not Place(KVM_REPORT).has_any()
    down = _lab(KVM_REPORT, "measure")
    assert down.stderr == "dl3: the lab kvm-report is not up: run 'dl3 lab kvm-report up' first\n"


def _left(lab: str) -> dict[str, object]:
    """What a lab may leave on this machine."""
    links = json.loads(subprocess.run(["ip", "-json", "link"], capture_output=True, check=True).stdout)
    own, name = r"vnet\d|br\d|left|right", Place(lab).name
    return {
        "processes": Place(lab).processes(),
        "links": sorted(link["ifname"] for link in links if re.match(own, link["ifname"])),
        "namespaces": Place(lab).namespaces(),
        "files": sorted(str(path) for folder in ("/run", "/tmp") for path in Path(folder).glob(f"{name}*")),
        "drafts": sorted(str(path) for path in CACHE.glob("dl3/guest/making-*")),
        "pages": read_number(NUMBER),
    }


KILLED = {  # thirty times in all
    "kvm-report guests": (KVM_REPORT, GUESTS, 6),
    "kvm-report programs": (KVM_REPORT, KVM_PROGRAMS, 4),
    "contrail guests": ("contrail", GUESTS, 3),
    "contrail programs": ("contrail", PROGRAMS, 4),
    "vswitch guest": ("white-paper-vswitch", (*GUESTS, "--path", "one-link"), 4),
    "vswitch programs": ("white-paper-vswitch", PROGRAMS, 3),
    "kernel-notes": ("kernel-notes", ("--seconds", "1"), 3),
    "router-on-a-laptop": ("router-on-a-laptop", ("--seconds", "1"), 3),
}


@pytest.mark.parametrize(
    ("name", "seed"), [(name, seed) for name, (_, _, n) in KILLED.items() for seed in range(n)], ids=str
)
def leaves_nothing_when_it_is_killed(tmp_path: Path, name: str, seed: int) -> None:
    """By Ctrl-C nothing is left at once; what is left after SIGKILL is removed by the next command."""
    lab, options, _ = KILLED[name]
    draw = random.Random(f"{seed} {name}")
    before = _left(lab)
    how = (signal.SIGINT, signal.SIGKILL, signal.SIGTERM)[seed % 3]
    stop_at = draw.randrange(1, 300)
    log = tmp_path / "log"
    command = [sys.executable, "-m", "dl3", "lab", lab, *options, "--record", str(tmp_path / "r.jsonl")]
    with log.open("wb") as out, subprocess.Popen(command, cwd=TOP, env=ENV, stdout=out, stderr=out) as running:
        wait_until(lambda: Place(lab).has_any() or running.poll() is not None, "the lab had begun", PATIENCE_S)
        looks = iter(range(stop_at))
        wait_until(lambda: next(looks, None) is None or running.poll() is not None, "a moment had come", PATIENCE_S)
        running.send_signal(how)
        running.wait(PATIENCE_S)
    if how == signal.SIGKILL:
        assert _lab(lab, "down").returncode == 0
    assert _left(lab) == before, log.read_text()
