"""Loss explained on a live system: the thread that takes a worker's core is named, and the command reports it."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness.answers import CORES
from harness.busy import busy
from harness.wired import BUILD, DL3D, TOP

from dl3.dut.dl3d import Dl3d
from dl3.host.watching import MachineWatch
from dl3.lab.links import Flows, streams
from dl3.lab.memif import MemifLab, MemifSettings, memif_lab
from dl3.model.stream import Stream
from dl3.model.trial import Trial
from dl3.record.journal import append
from dl3.report.explain import Finding, findings
from dl3.trial.order import Order, Site
from dl3.trial.run import Runner

pytestmark = pytest.mark.alone  # huge pages, and a core for each program

THIEF = (
    "import os, sys\nos.sched_setaffinity(0, {int(sys.argv[1])})\n"
    "open('/proc/self/comm', 'w').write('thief')\nprint(flush=True)\nwhile True: pass"
)
RING_BITS = 11
EAGER_PPS = 1_000_000.0  # a ring of 2048 holds 2 ms of this rate, less than the time slice of a busy thread
CALM_PPS = 20_000.0
ATTEMPTS = 10  # on a machine whose cores are shared


@pytest.fixture(scope="module")
def lab() -> Iterator[MemifLab]:
    """dl3gen on the first core, dl3d on the last one."""
    assert len(CORES) > 1, "dl3gen and dl3d want a core each"
    terms = MemifSettings(Dl3d(DL3D), build=BUILD, generator_core=CORES[0], dut_cores=(CORES[-1],), ring_bits=RING_BITS)
    with memif_lab(terms) as made:
        yield made


def _trial(lab: MemifLab, pps: float, catch_up: int) -> Trial:
    """A watched trial; after a pause the generator sends at most this many frames at once."""
    given = Stream.model_validate(streams(Flows())[0] | {"catch_up": catch_up})
    site = Site(lab.generator, lab.dut, facts={"lab": lab.facts()})
    return Runner(site, watch=MachineWatch()).run(Order((given,), "64", pps, 0.4, warm_up_s=0.0))


def _stolen(made: Trial) -> list[Finding]:
    """The finding on the pause that the thief caused in dl3d."""
    return [one for one in findings(made) if one.values.get("who") == "thief" and one.values["program"] == "dl3d"]


@pytest.mark.timing
def names_the_program_that_took_the_core(lab: MemifLab, tmp_path: Path) -> None:
    with busy(CORES[-1], THIEF):
        for _ in range(ATTEMPTS):
            made = _trial(lab, EAGER_PPS, 64)
            if _stolen(made):
                break
    (found,) = _stolen(made)
    values = found.values
    assert (found.topic, found.key, values["core"], values["worker"]) == ("time", "taken.ring", CORES[-1], 0)
    assert values["ring"] == 1 << RING_BITS
    assert 0 < found.frames <= made.account.lost
    assert float(values["us"]) >= float(values["taken_us"]) * 0.9 > 500
    assert made.evidence is not None
    assert made.evidence.totals[f"involuntary switches dl3d core {CORES[-1]}"] > 0
    append(tmp_path / "r.jsonl", made)
    command = [sys.executable, "-m", "dl3", "explain", str(tmp_path / "r.jsonl"), "--trial", "1"]
    text = subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=True).stdout
    assert f"Core {CORES[-1]} was taken from dl3d's worker 0" in text
    assert "by thief" in text
    assert "or move thief away) or deepen the ring." in text
    reported = json.loads(
        subprocess.run([*command, "--json"], cwd=TOP, capture_output=True, text=True, check=True).stdout
    )
    assert reported["lost"] == made.account.lost
    assert sum(one["frames"] for one in reported["findings"] if one["topic"] == "place") == made.account.lost


def reports_the_headroom_of_a_trial_without_loss(lab: MemifLab) -> None:
    for _ in range(ATTEMPTS):
        made = _trial(lab, CALM_PPS, 1 << RING_BITS)
        if made.account.lost == 0:
            break
    # Whether a generator on a shared core kept its rate is a separate question.
    first, *limits = findings(made.model_copy(update={"invalid": (), "is_behind": False}))
    assert first.key == "headroom.none_lost", made.account
    worker = next(one for one in limits if one.key == "headroom.worker")
    assert worker.values["core"] == CORES[-1]
    assert 0 < float(worker.values["fill"]) < 1
    assert float(worker.values["limit"]) * 1e6 > CALM_PPS
    assert made.evidence is not None
    (work,) = made.evidence.work
    assert work.packets == made.account.sent
    assert made.evidence.ring_frames == 1 << RING_BITS
