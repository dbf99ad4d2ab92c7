"""Records what the machine does to some cores and programs over an interval, using the kernel's trace ring.

watch.py begin --cores 0,1 [--program dl3d=PID]... [--owner PID]
    starts the ring and prints a state, one line of JSON, with the first reading, 'before'
watch.py end STATE
    stops it and prints the state with the second reading and the ring, see dl3.host.seen; STATE may omit
    'before', which on a machine with many cores can exceed the maximum length of an argument

Uses only Python's standard library, so that it runs on any machine with 'python3 -I -'. Nothing runs in between.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import ctypes
import json
import os
import re
import sys
import time
import zlib
from pathlib import Path
from typing import Any

TRACING = Path("/sys/kernel/tracing")
RING_KIB = 2048  # per core: about 25,000 switches or 60,000 interrupts
STALE_S = 2 * 3600  # trials are hardly ever longer: an older instance started from another machine is orphaned
NAME = re.compile(r"dl3-(\d+)-\d+-(\d+)")  # instance name: start time in s, creator's pid, owner's pid or 0
NEW_MOUNTS, PRIVATE = 0x20000, 0x44000  # CLONE_NEWNS, MS_REC | MS_PRIVATE
SWITCHES, FAULTS = "sched/sched_switch", "exceptions/page_fault_user"
EVENTS = (
    "irq/irq_handler_entry",
    "irq/irq_handler_exit",
    "irq/softirq_entry",
    "irq/softirq_exit",
    *(
        f"irq_vectors/{name}_{end}"
        for name in ("local_timer", "reschedule", "call_function", "call_function_single", "irq_work")
        for end in ("entry", "exit")
    ),
    "power/cpu_frequency",
)


def text_of(path: str | Path) -> str:
    """Contents of a kernel file; '' if it does not exist or its process has just exited."""
    try:
        return Path(path).read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""


def per_core(text: str, cores: list[int]) -> dict[str, dict[str, int]]:
    """Counters of /proc/interrupts or /proc/softirqs, by core and name."""
    lines = text.splitlines()
    columns = [word[3:] for word in lines[0].split()] if lines else []
    found: dict[str, dict[str, int]] = {str(core): {} for core in cores}
    for line in lines[1:]:
        key, _, rest = line.partition(":")
        words = rest.split()
        name = " ".join(words[len(columns) :]) or key.strip()
        for column, count in zip(columns, words[: len(columns)]):  # noqa: B905
            if column in found and count.isdigit() and count != "0":
                found[column][name] = found[column].get(name, 0) + int(count)
    return found


def steal_ms(cores: list[int]) -> dict[str, float]:
    """Steal time by core, at clock tick resolution."""
    rows = {line.split()[0]: line.split() for line in text_of("/proc/stat").splitlines() if line.startswith("cpu")}
    tick_ms = 1000 / os.sysconf("SC_CLK_TCK")
    return {str(core): int(rows[f"cpu{core}"][8]) * tick_ms for core in cores if len(rows.get(f"cpu{core}", ())) > 8}


def mhz(cores: list[int]) -> dict[str, float]:
    """Frequency of each core; empty without cpufreq."""
    found = {}
    for core in cores:
        khz = text_of(f"/sys/devices/system/cpu/cpu{core}/cpufreq/scaling_cur_freq").strip()
        if khz.isdigit():
            found[str(core)] = int(khz) / 1000
    return found


def thread(folder: Path) -> dict[str, Any]:
    """Scheduling counters of a thread."""
    status = dict(line.split(":\t", 1) for line in text_of(folder / "status").splitlines() if ":\t" in line)
    faults = text_of(folder / "stat").rpartition(")")[2].split()
    times = [int(word) for word in text_of(folder / "schedstat").split()]
    return {
        "name": status.get("Name", ""),
        "cores": status.get("Cpus_allowed_list", ""),
        "involuntary switches": int(status.get("nonvoluntary_ctxt_switches", 0)),
        "page faults": int(faults[7]) + int(faults[9]) if len(faults) > 9 else 0,
        "ran ms": times[0] / 1e6 if times else 0.0,
        "waited ms": times[1] / 1e6 if len(times) > 1 else 0.0,
    }


def threads(pid: int) -> dict[str, dict[str, Any]]:
    """All threads of a program."""
    folder = Path(f"/proc/{pid}/task")
    try:
        return {one.name: thread(one) for one in folder.iterdir()}
    except OSError:
        return {}


def reading(cores: list[int], programs: dict[str, int]) -> dict[str, Any]:
    """All counters now."""
    return {
        "steal ms": steal_ms(cores),
        "interrupts": per_core(text_of("/proc/interrupts"), cores),
        "softirqs": per_core(text_of("/proc/softirqs"), cores),
        "MHz": mhz(cores),
        "programs": {name: threads(pid) for name, pid in programs.items()},
    }


def enter_tracing() -> str:
    """Mount tracefs for this process only, unless it is mounted already; returns the error or ''."""
    if (TRACING / "instances").is_dir():
        return ""
    if not TRACING.is_dir():
        return "this kernel has no tracefs"
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(NEW_MOUNTS) or libc.mount(b"none", b"/", None, PRIVATE, None):
        return f"a private mount cannot be made ({os.strerror(ctypes.get_errno())}): run as root"
    if libc.mount(b"tracefs", bytes(TRACING), b"tracefs", 0, None):
        return f"tracefs cannot be mounted ({os.strerror(ctypes.get_errno())}): run as root"
    return ""


def ring_name(owner: int) -> str:
    """Name of our own tracing instance. The time is rounded down, because instances from the future are swept."""
    return f"dl3-{int(time.monotonic())}-{os.getpid()}-{owner}"


def lives(pid: int) -> bool:
    """Whether a process exists and has not exited; zombies do not count."""
    return text_of(f"/proc/{pid}/stat").rpartition(")")[2].split()[:1] not in ([], ["Z"], ["X"])


def is_stale(name: str) -> bool:
    """Whether an instance is orphaned: its owner has exited, or it has no owner here and is too old for a trial."""
    found = NAME.fullmatch(name)
    if not found:
        return False  # not created by dl3
    begun_s, owner = int(found[1]), int(found[2])
    if owner:
        return not lives(owner)
    return not 0 <= time.monotonic() - begun_s < STALE_S


def sweep() -> None:
    """Remove orphaned instances, which would keep tracing all switches. Others may do so at the same time."""
    for old in (TRACING / "instances").iterdir():
        if is_stale(old.name):
            with contextlib.suppress(OSError):
                old.rmdir()


def pinned(programs: dict[str, dict[str, dict[str, Any]]], cores: list[int]) -> list[str]:
    """Threads pinned to one of the cores."""
    words = {str(core) for core in cores}
    return [tid for threads in programs.values() for tid, one in threads.items() if one["cores"] in words]


def switch_on(ring: Path, workers: list[str]) -> None:
    """Enable all events that this kernel has; page faults only for these threads, because others may have very many."""
    events = ring / "events"
    for event in (SWITCHES, *(one for one in EVENTS if (events / one).is_dir())):
        (events / event / "enable").write_text("1")
    if workers and (events / FAULTS).is_dir():
        (events / FAULTS / "filter").write_text(" || ".join(f"common_pid == {tid}" for tid in workers))
        (events / FAULTS / "enable").write_text("1")


def start_ring(cores: list[int], name: str, workers: list[str]) -> str:
    """Create our own tracing instance on these cores; returns the error or ''."""
    problem = enter_tracing()
    if problem:
        return problem
    try:
        sweep()
        ring = TRACING / "instances" / name
        ring.mkdir()
        (ring / "tracing_on").write_text("0")
        (ring / "trace_clock").write_text("mono")
        masks = [
            sum(1 << core % 32 for core in cores if core // 32 == word) for word in range(max(cores) // 32, -1, -1)
        ]
        (ring / "tracing_cpumask").write_text(",".join(f"{mask:08x}" for mask in masks))
        for core in cores:
            (ring / f"per_cpu/cpu{core}/buffer_size_kb").write_text(str(RING_KIB))
        switch_on(ring, workers)
        (ring / "tracing_on").write_text("1")
    except OSError as error:
        return f"tracefs cannot be used ({error.strerror})"
    return ""


def stop_ring(cores: list[int], name: str) -> tuple[str, int, str]:
    """Contents of the ring, number of older events it dropped, and the error or ''."""
    problem = enter_tracing()
    if problem:
        return "", 0, problem
    ring = TRACING / "instances" / name
    try:
        (ring / "tracing_on").write_text("0")
        text = (ring / "trace").read_text(encoding="ascii", errors="replace")
    except OSError as error:
        return "", 0, f"its ring cannot be read ({error.strerror})"
    stats = [text_of(ring / f"per_cpu/cpu{core}/stats") for core in cores]
    lost = sum(int(n) for stat in stats for n in re.findall(r"^overrun: (\d+)", stat, re.MULTILINE))
    with contextlib.suppress(OSError):  # busy if somebody reads it: it no longer traces, and sweep() removes it later
        ring.rmdir()
    return text, lost, ""


def begin(cores: list[int], programs: dict[str, int], owner: int = 0) -> dict[str, Any]:
    """Read the counters first and start the ring last, so that it does not record our own activity."""
    state: dict[str, Any] = {"cores": cores, "programs": programs, "ring": ring_name(owner)}
    state["before"] = before = reading(cores, programs)
    state["problem"] = start_ring(cores, str(state["ring"]), pinned(before["programs"], cores))
    state["start_ns"] = time.monotonic_ns()
    return state


def end(state: dict[str, Any]) -> dict[str, Any]:
    """Everything recorded since begin()."""
    cores, programs = state["cores"], state["programs"]
    end_ns = time.monotonic_ns()
    text, lost, problem = stop_ring(cores, state["ring"])
    ring = base64.b64encode(zlib.compress(text.encode(), 1)).decode()
    more = {"after": reading(cores, programs), "end_ns": end_ns, "trace": ring, "n_forgotten": lost}
    return {**state, **more, "problem": state["problem"] or problem}


def numbers(text: str) -> list[int]:
    """Parse '0,3' into a list."""
    return [int(word) for word in text.split(",")]


def main() -> None:
    """Command line entry point."""
    parser = argparse.ArgumentParser(description="see the head of this file")
    methods = parser.add_subparsers(dest="method", required=True)
    starting = methods.add_parser("begin")
    starting.add_argument("--cores", required=True, type=numbers)
    starting.add_argument("--program", action="append", default=[], type=lambda text: text.split("="))
    starting.add_argument("--owner", type=int, default=0, help="process that will end it, if on this machine")
    methods.add_parser("end").add_argument("state", type=json.loads)
    given = parser.parse_args()
    if given.method == "begin":
        made = begin(given.cores, {name: int(pid) for name, pid in given.program}, given.owner)
    else:
        made = end(given.state)
    json.dump(made, sys.stdout)


if __name__ == "__main__":
    main()
