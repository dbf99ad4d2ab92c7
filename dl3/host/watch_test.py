"""Preemptions of a core are recorded with name and duration; missing evidence is reported."""

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dl3.host import watch
from dl3.host.diagnosis import evidence_of
from dl3.host.seen import Seen
from dl3.host.watching import SOURCE, MachineWatch, run_here
from dl3.model.evidence import Evidence
from dl3.model.fault import Fault

TOP = Path(__file__).resolve().parents[2]
NOBODY = 2**22  # the kernel assigns no pid this high
CORE = max(os.sched_getaffinity(0))
LOOP = "import os, sys, time; os.sched_setaffinity(0, {int(sys.argv[1])}); print(flush=True)\n"
WORKER = LOOP + "while True: pass"
THIEF = (
    LOOP
    + "open('/proc/self/comm', 'w').write('thief'); os.nice(-10)\n"  # its time slice is not interrupted
    + "for _ in sys.stdin:\n"
    + " end = time.thread_time() + 0.002\n"
    + " while time.thread_time() < end: pass\n"
    + " print(flush=True)"
)
BURSTS = 3
LONGEST_S = 60.0


@contextmanager
def running(code: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process on the core."""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", code, str(CORE)], stdin=pipe, stdout=pipe) as process:
        try:
            report(process)
            yield process
        finally:
            process.kill()


def report(process: subprocess.Popen[bytes]) -> None:
    """Wait for the next line of output."""
    assert process.stdout is not None
    assert select.select([process.stdout], [], [], LONGEST_S)[0]
    assert process.stdout.readline()


def steal(thief: subprocess.Popen[bytes]) -> None:
    """Let it preempt the worker until it has run for 2 ms."""
    assert thief.stdin is not None
    thief.stdin.write(b"\n")
    thief.stdin.flush()
    report(thief)


def watched() -> Evidence:
    """Evidence of a worker that a thief preempts several times."""
    with running(WORKER) as worker, running(THIEF) as thief:
        watching = MachineWatch()
        watching.start([CORE], {"worker": worker.pid})
        for _ in range(BURSTS):
            steal(thief)
        return watching.stop()


@pytest.mark.alone  # no more than two programs on the core
def names_who_took_a_core_and_for_how_long() -> None:
    seen = watched()
    stolen = [event for event in seen.events if event.what == "switch" and event.who == "thief"]
    assert len(stolen) >= BURSTS
    assert sum(event.us for event in stolen) >= BURSTS * 1_900
    assert {event.core for event in stolen} == {CORE}
    assert [event.at_ns for event in seen.events] == sorted(event.at_ns for event in seen.events)
    assert not [event for event in seen.events if event.what == "switch" and event.who.startswith("worker")]
    assert seen.totals[f"switches core {CORE}"] >= len(stolen)
    assert seen.totals[f"involuntary switches worker core {CORE}"] >= 1
    assert seen.totals[f"waited ms worker core {CORE}"] > 0
    assert seen.totals[f"interrupts core {CORE}"] > 0
    assert "page faults worker" in seen.totals


def instances() -> list[str]:
    """All tracing instances, listed by a process that may mount."""
    code = (
        f"import runpy; w = runpy.run_path({str(SOURCE)!r}); w['enter_tracing']()\n"
        "print(*(one.name for one in (w['TRACING'] / 'instances').iterdir()))"
    )
    return run_here(code).split()


def leaves_nothing_behind() -> None:
    watching = MachineWatch()
    watching.start([CORE], {})
    name = watching._state["ring"]
    assert name in instances()
    watching.stop()
    assert name not in instances()


def is_ended_by_the_next_one_when_its_owner_was_killed() -> None:
    code = (
        "from dl3.host.watching import MachineWatch\n"
        f"watching = MachineWatch(); watching.start([{CORE}], {{}})\n"
        "print(watching._state['ring'], flush=True); input()"
    )
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", code], cwd=TOP, stdin=pipe, stdout=pipe, text=True) as owner:
        assert owner.stdout is not None
        name = owner.stdout.readline().strip()
        assert name in instances()
        owner.kill()
        os.waitid(os.P_PID, owner.pid, os.WEXITED | os.WNOWAIT)  # do not reap it, so that it remains as a zombie
        watching = MachineWatch()
        watching.start([CORE], {})
        left = instances()
        watching.stop()
    assert name not in left


def is_never_swept_away_by_who_begins_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    for now_s in (7.0, 7.4, 7.6, 7.999):
        monkeypatch.setattr(time, "monotonic", lambda now_s=now_s: now_s)
        assert not watch.is_stale(watch.ring_name(0))
        assert not watch.is_stale(watch.ring_name(os.getpid()))


@pytest.fixture
def rings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in place of the kernel's instances."""
    monkeypatch.setattr(watch, "TRACING", tmp_path)
    (tmp_path / "instances").mkdir()
    return tmp_path / "instances"


def sweeps_away_what_nobody_will_end(rings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: 100_000.5)
    kept = {f"dl3-5-9-{os.getpid()}", f"dl3-{100_000 - watch.STALE_S + 1}-9-0", "dl3-100000-9-0"}
    foreign = {"dl3-foo", "dl3-7", "dl3-x-9-0", "perf"}
    left = {f"dl3-99999-9-{NOBODY}", f"dl3-{100_000 - watch.STALE_S}-9-0", "dl3-100001-9-0"}
    for name in kept | foreign | left:
        (rings / name).mkdir()
    watch.sweep()
    assert {one.name for one in rings.iterdir()} == kept | foreign


def leaves_alone_what_somebody_reads(rings: Path) -> None:
    busy, free = rings / f"dl3-1-8-{NOBODY}", rings / f"dl3-1-9-{NOBODY}"
    (busy / "held").mkdir(parents=True)
    free.mkdir()
    watch.sweep()
    assert list(rings.iterdir()) == [busy]


def keeps_what_a_ring_held_that_cannot_be_removed(rings: Path) -> None:
    ring = rings / "dl3-1-9-0"
    (ring / "per_cpu/cpu0").mkdir(parents=True)
    (ring / "trace").write_text("a line")
    (ring / "per_cpu/cpu0/stats").write_text("entries: 1\noverrun: 4\n")
    assert watch.stop_ring([0], ring.name) == ("a line", 4, "")
    assert (ring / "tracing_on").read_text() == "0"


def reports_why_a_ring_cannot_be_read_at_the_end_alone(rings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = {"cores": [CORE], "programs": {}, "ring": "dl3-1-9-0", "problem": ""}
    assert watch.end(state)["problem"] == "its ring cannot be read (No such file or directory)"
    assert watch.end(state | {"problem": "none from the start"})["problem"] == "none from the start"
    monkeypatch.setattr(watch, "TRACING", rings / "none")
    assert watch.end(state)["problem"] == "this kernel has no tracefs"


def gives_all_other_evidence_when_its_ring_was_taken_away() -> None:
    watching = MachineWatch()
    watching.start([CORE], {})
    name = watching._state["ring"]
    run_here(
        f"import runpy; w = runpy.run_path({str(SOURCE)!r}); w['enter_tracing']()\n"
        f"(w['TRACING'] / 'instances' / {name!r}).rmdir()"
    )
    found = watching.stop()
    assert any("its ring cannot be read (No such" in why for why in found.missing)
    assert f"interrupts core {CORE}" in found.totals


def reports_what_is_missing_without_tracefs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "TRACING", tmp_path / "none")
    state = watch.begin([CORE], {"me": os.getpid()})
    reported = Seen.model_validate_json(json.dumps(watch.end(state)))
    found = evidence_of(reported)
    assert (
        "threads that took a core, for how long, and times of interrupts: this kernel has no tracefs" in found.missing
    )
    assert (found.events, f"switches core {CORE}" in found.totals) == ((), False)
    assert f"interrupts core {CORE}" in found.totals


def reports_when_a_program_has_gone() -> None:
    watching = MachineWatch()
    watching.start([CORE], {"dl3d": 2**22 - 1})
    assert "threads of dl3d: it is no longer running" in watching.stop().missing


def fails_when_the_script_fails() -> None:
    with pytest.raises(Fault, match=r"the machine cannot be observed: .*argument --cores"):
        MachineWatch().start([], {})


@pytest.mark.usefixtures("rings")
def hands_over_little_however_many_cores_there_are() -> None:
    asked: list[str] = []

    def run(_source: str, method: str, *words: str) -> str:
        asked.extend(words)
        if method == "end":
            return json.dumps(watch.end(json.loads(words[0])))
        state = watch.begin([0], {})
        state["before"]["interrupts"]["0"] |= {f"device {i}": 1 for i in range(10_000)}
        return json.dumps(state)

    watching = MachineWatch(run)
    watching.start([0], {})
    assert "interrupts core 0" in watching.stop().totals
    assert max(len(word) for word in asked) < 1_000


@pytest.mark.parametrize(
    ("reply", "sentence"),
    [
        (Fault("the other machine is gone: look there"), "the other machine is gone: look there"),
        ("no JSON", "the observations of the machine cannot be parsed: Invalid JSON"),
        ("{}", "the observations of the machine cannot be parsed: Field required"),
    ],
)
def ends_a_trial_without_evidence_of_a_machine_that_returns_none(reply: str | Fault, sentence: str) -> None:
    def run(_source: str, method: str, *_words: str) -> str:
        if method == "begin":
            return "{}"
        if isinstance(reply, Fault):
            raise reply
        return reply

    watching = MachineWatch(run)
    watching.start([0], {})
    (missing,) = watching.stop().missing
    assert missing.startswith(sentence)
