"""Measure gaps on several cores at once, with the kernel's trace ring beside it."""

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pydantic import BaseModel, ValidationError

from dl3.host.diagnosis import Diagnosis
from dl3.host.jitter.gaps import CoreGap, CoreGaps, Jitter, with_causes
from dl3.host.seen import Seen, missing
from dl3.host.watching import MachineWatch
from dl3.model.evidence import Event
from dl3.model.fault import Fault

SPIN = Path(__file__).with_name("spin.py")


class Spun(BaseModel):
    """The output of spin.py."""

    start_ns: int
    end_ns: int
    n: int
    gaps: list[tuple[int, int]]


@contextmanager
def spinner(core: int, seconds: float, least_us: float) -> Iterator[subprocess.Popen[str]]:
    """A process on the core that waits for a line; it is killed at the end."""
    command = (sys.executable, "-I", str(SPIN), str(core), str(seconds), str(least_us))
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            if not process.stdout or process.stdout.readline() != "ready\n":
                said = process.stderr.read().strip() if process.stderr else ""
                why = said.splitlines()[-1] if said else "no output"
                raise Fault(
                    f"cannot measure on core {core} ({why}): choose cores that this program may use, see taskset -p $$"
                )
            yield process
        finally:
            process.kill()


def events_by_core(seen: Seen) -> Mapping[int, list[Event]]:
    """All events of the trace ring, also short ones."""
    workers = {core: thread for core, (_, thread) in seen.workers().items()}
    diagnosis = Diagnosis(seen.start_ns, workers, {})
    diagnosis.read(seen.lines(), seen.end_ns)
    found: dict[int, list[Event]] = {core: [] for core in seen.cores}
    for event in diagnosis.events:
        found.setdefault(event.core, []).append(event)
    return found


def spin_all(processes: Mapping[int, subprocess.Popen[str]]) -> dict[int, Spun]:
    """Let all of them spin at the same time."""
    for process in processes.values():
        if process.stdin:
            process.stdin.write("go\n")
            process.stdin.flush()
    found = {}
    for core, process in processes.items():
        try:
            found[core] = Spun.model_validate_json(process.stdout.readline() if process.stdout else "")
        except ValidationError as error:
            raise Fault(f"the measurement on core {core} was killed: repeat it") from error
    return found


def seen_by(watch: MachineWatch) -> tuple[Seen | None, tuple[str, ...]]:
    """What the kernel recorded, and what is missing."""
    try:
        seen = watch.seen()
    except Fault as fault:
        return None, (str(fault),)
    return seen, tuple(missing(seen))


def stolen_ms(seen: Seen) -> dict[int, float]:
    """Time that the hypervisor took, by core."""
    pairs = ((core, ms - seen.before.steal_ms.get(core, ms)) for core, ms in seen.after.steal_ms.items())
    return {core: ms for core, ms in pairs if ms > 0}


def measure(cores: Sequence[int], seconds: float, least_us: float) -> Jitter:
    """Gaps of at least this length on these cores."""
    with ExitStack() as stack:
        processes = {core: stack.enter_context(spinner(core, seconds, least_us)) for core in cores}
        watch = MachineWatch()
        watch.start(cores, {f"spin {core}": process.pid for core, process in processes.items()})
        try:
            spun = spin_all(processes)
        finally:
            seen, lacks = seen_by(watch)
    events = events_by_core(seen) if seen else {}
    found = []
    for core, one in spun.items():
        gaps = [CoreGap(core=core, at_ns=at_ns, us=ns / 1000) for at_ns, ns in one.gaps]
        seconds_spun = (one.end_ns - one.start_ns) / 1e9
        found.append(CoreGaps(core=core, seconds=seconds_spun, n=one.n, gaps=with_causes(gaps, events.get(core, ()))))
    return Jitter(least_us=least_us, cores=tuple(found), stolen_ms=stolen_ms(seen) if seen else {}, missing=lacks)
