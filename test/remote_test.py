"""The other machine of a testbed: a real sshd, and a dl3d behind it."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from harness.answers import CORES
from harness.sshd import Sshd
from harness.wire import wait_until
from harness.wired import BUILD, DL3D, TOP

from dl3.bench.compare import Contest, both_open
from dl3.bench.far import FarWatch
from dl3.cli.at import there
from dl3.cli.compare import spec_of
from dl3.control import remote
from dl3.control.remote import Machine
from dl3.dut.dl3d import Dl3d
from dl3.dut.there import dl3d_there
from dl3.lab.links import Flows, streams
from dl3.lab.memif import MemifLab, MemifSettings, memif_lab
from dl3.model.campaign import Setup
from dl3.model.fault import Fault
from dl3.model.stream import Stream
from dl3.model.trial import Trial
from dl3.record.reader import read
from dl3.trial.order import Order, Site
from dl3.trial.run import Runner

SHORT = ("--sizes", "64", "--seconds", "0.2", "--resolution", "0.3", "--max-rate", "20 kpps", "--retries", "20")


@pytest.fixture(scope="module")
def sshd() -> Iterator[Sshd]:
    with Sshd() as made:
        yield made


def _dl3(sshd: Sshd, *words: str, key: str = "ours") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, remote.COMMAND: sshd.command(key)}
    return subprocess.run(
        [TOP / "bin" / "dl3", *words], check=False, capture_output=True, text=True, env=environment, timeout=120
    )


def _lab() -> AbstractContextManager[MemifLab]:
    return memif_lab(MemifSettings(Dl3d(DL3D), build=BUILD, generator_core=CORES[0], dut_cores=(CORES[-1],)))


def _astray() -> tuple[Stream, ...]:
    return tuple(Stream.model_validate(each | {"dst_ip": "192.0.2.1"}) for each in streams(Flows()))


@pytest.mark.long
@pytest.mark.alone
def the_forwarder_on_the_other_machine_is_measured_with_its_account(sshd: Sshd, tmp_path: Path) -> None:
    record = tmp_path / "record.jsonl"
    with _lab() as lab:
        assert lab.dut is not None
        at = f"ssh://root@127.0.0.1:{sshd.machine.port}"
        places = ("--generator", str(lab.generator.path), "--at", at, "--dut", str(lab.dut.path))
        done = _dl3(sshd, "bench", "throughput", *places, *SHORT, "--record", str(record), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["results"][0]["dut"] == "dl3d"
    trial = read(record).trials[-1]
    assert trial.facts["forwarder"]["version"]  # type: ignore[index]  # read from its own socket over ssh
    there = trial.facts["other machine"]
    assert isinstance(there, dict)
    assert there["address"] == "root@127.0.0.1"
    assert there["kernel"] == os.uname().release
    assert there["n_cpus"] == os.cpu_count()


CAMPAIGN = """name: far
title: Far
duts: {name: box, kind: external, options: {generator: GENERATOR, dut: DUT}}
defaults:
  frames: [512, 1024, 1518]
  tests: throughput
  effort: {seconds: 0.2, method: binary, resolution: 0.5, goals: 0.5}
  streams:
    - STREAM
cases: [{key: a, title: A}]
"""


@pytest.mark.long
@pytest.mark.alone
def a_campaign_measures_the_forwarder_on_the_other_machine_with_all_that_happened_there(
    sshd: Sshd, tmp_path: Path
) -> None:
    """Each trial loses frames, so each has evidence; after the first of three jobs, Ctrl-C is sent."""
    file, record, at = tmp_path / "far.yaml", tmp_path / "record.jsonl", f"ssh://root@127.0.0.1:{sshd.machine.port}"
    with _lab() as lab:
        assert lab.dut is not None
        (stream,) = streams(Flows())
        partly_astray = stream | {"dst_ip": {"first": "198.19.255.252", "count": 5}, "flows": 5}  # the last: no route
        text = CAMPAIGN.replace("GENERATOR", str(lab.generator.path)).replace("DUT", str(lab.dut.path))
        file.write_text(text.replace("STREAM", json.dumps(partly_astray)), encoding="utf-8")
        stderr = _stopped_after_a_trial(sshd, record, "bench", "run", str(file), "--at", at, "--record", str(record))
    assert f"continue with: dl3 bench run {file} --at {at} --record {record}" in stderr
    for trial in read(record).trials:
        _is_seen_from_both(trial)


def _stopped_after_a_trial(sshd: Sshd, record: Path, *words: str) -> str:
    """Its output so far."""
    environment = {**os.environ, remote.COMMAND: sshd.command()}
    log = record.with_suffix(".stderr")
    with (
        log.open("w", encoding="utf-8") as stderr,
        subprocess.Popen([TOP / "bin" / "dl3", *words], stderr=stderr, env=environment) as process,
    ):
        try:
            wait_until(
                lambda: (record.exists() and b'{"kind":"trial"' in record.read_bytes()) or process.poll() is not None,
                "a trial is over",
                120,
            )
            process.send_signal(signal.SIGINT)
            process.wait(60)
        finally:
            process.kill()
    assert process.returncode == 130, log.read_text(encoding="utf-8")
    return log.read_text(encoding="utf-8")


@pytest.mark.long
@pytest.mark.alone
def both_devices_of_a_comparison_may_be_on_the_other_machine(
    sshd: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(remote.COMMAND, sshd.command())
    at = f"ssh://root@127.0.0.1:{sshd.machine.port}"
    with _lab() as lab:
        assert lab.dut is not None
        box = f"external:generator={lab.generator.path},dut={lab.dut.path}"
        done = _dl3(sshd, "bench", "compare", box, box, "--at", "ssh://127.0.0.1:1")
        setup = Setup(dut=there(spec_of(box), at))
        with both_open((setup, setup), Contest(("64",), tmp_path / "record.jsonl")) as sides:
            for side in sides:
                _is_seen_from_both(side.run.trial(Order(_astray(), "64", 10_000, 0.2, warm_up_s=0.0)))
    assert done.returncode == 1
    assert "127.0.0.1 cannot be reached" in done.stderr


def _is_seen_from_both(trial: Trial) -> None:
    assert trial.facts["forwarder"]["version"]  # type: ignore[index]
    assert trial.facts["other machine"]["kernel"] == os.uname().release  # type: ignore[index]
    assert trial.evidence is not None
    assert trial.evidence.total("steal ms", CORES[-1], True) is not None
    assert all(gap.is_elsewhere == (gap.program == "dl3d") for gap in trial.evidence.gaps)


@pytest.mark.parametrize(
    ("at", "key", "sentence"),
    [
        ("ssh://root@127.0.0.1:{port}", "host", "cannot be reached"),  # an unknown key
        ("ssh://127.0.0.1:1", "ours", "make sure that 'ssh -p 1 127.0.0.1' works without a password"),
        ("dut.example", "ours", "the other machine must be given as ssh://"),
        ("ssh://root@127.0.0.1:{port}", "ours", "no dl3d at /nowhere/dl3d.sock on root@127.0.0.1"),
    ],
)
def a_machine_that_cannot_be_reached_is_one_sentence(sshd: Sshd, at: str, key: str, sentence: str) -> None:
    at = at.format(port=sshd.machine.port)
    done = _dl3(sshd, "bench", "throughput", "--at", at, "--dut", "/nowhere/dl3d.sock", key=key)
    assert done.returncode in (1, 2)
    assert sentence in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.alone
def both_machines_are_watched_on_one_clock(sshd: Sshd, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other machine is this one, so its clock is the same."""
    monkeypatch.setenv(remote.COMMAND, sshd.command())
    with _lab() as lab:
        assert lab.dut is not None
        with dl3d_there(sshd.machine, lab.dut.path) as client:
            watch = FarWatch.of(sshd.machine, client)
            site = Site(lab.generator, client, far_ahead_ns=watch.clock.ahead_ns)
            trial = Runner(site, watch=watch).run(Order(_astray(), "64", 10_000, 0.2, warm_up_s=0.0))
    assert abs(watch.clock.ahead_ns) <= watch.clock.error_ns
    assert trial.account.lost > 0
    assert trial.evidence is not None
    assert trial.evidence.total("steal ms", CORES[-1], True) is not None
    assert trial.evidence.total("steal ms", CORES[0], False) is not None
    assert all(gap.is_elsewhere == (gap.program == "dl3d") for gap in trial.evidence.gaps)
    assert any("offset between the clocks of both machines" in words for words in trial.evidence.missing)


def a_script_that_fails_there_is_reported(sshd: Sshd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(remote.COMMAND, sshd.command())
    assert remote.run_python(sshd.machine, "import sys; print(sys.argv[1:])", "a b", "$x") == "['a b', '$x']\n"
    with pytest.raises(Fault, match=r"python3 on root@127.0.0.1 failed \(ValueError: no\)"):
        remote.run_python(sshd.machine, "raise ValueError('no')")


def a_name_is_never_taken_for_an_option() -> None:
    assert Machine.parse("ssh://dut:2222").ssh()[-2:] == ["--", "dut"]
