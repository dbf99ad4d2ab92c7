"""Pin the vCPUs of a running QEMU. Their threads are named by QMP: their order in /proc is not that of the vCPUs."""

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedRWPair
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from dl3.host.guest.guest import Guest
from dl3.model.fault import Fault, UsageFault

SECONDS = 10.0
Monitor = BufferedRWPair


class Vcpu(BaseModel):
    """A vCPU of a running guest."""

    index: int = Field(alias="cpu-index")
    thread: int = Field(alias="thread-id")


class Pinned(BaseModel):
    """A vCPU with the CPU of the host that it has now."""

    vcpu: int
    thread: int
    cpu: int


@contextmanager
def monitor(path: Path) -> Iterator[Monitor]:
    """A connection to QMP that takes commands."""
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(SECONDS)
        try:
            line.connect(str(path))
        except OSError as error:
            raise UsageFault(
                f"no QEMU listens at {path} ({error.strerror}): start it with -qmp unix:{path},server=on"
            ) from error
        with line.makefile("rwb") as file:
            if b'"QMP"' not in answer_line(file):
                raise UsageFault(f"{path} is no control socket of QEMU: use that of -qmp, not of -monitor")
            ask(file, "qmp_capabilities")
            yield file


def answer_line(file: Monitor) -> bytes:
    """The next line."""
    try:
        found = file.readline()
    except OSError as error:
        raise Fault("QEMU does not answer: is it stopped by a debugger?") from error
    if not found:
        raise Fault("QEMU has closed its control socket: it has ended")
    return found


def ask(file: Monitor, command: str) -> Any:
    """The result of a command. Events in between are left out."""
    file.write(json.dumps({"execute": command}).encode() + b"\n")
    file.flush()
    while True:
        try:
            said = json.loads(answer_line(file))
        except ValueError as error:
            raise Fault(f"QEMU's answer to {command} is not JSON") from error
        if "return" in said:
            return said["return"]
        if "error" in said:
            raise Fault(f"QEMU refuses {command}: {said['error'].get('desc', 'no reason given')}")


def vcpus(file: Monitor) -> list[Vcpu]:
    """All vCPUs in order."""
    try:
        found = [Vcpu.model_validate(one) for one in ask(file, "query-cpus-fast")]
    except (ValidationError, TypeError) as error:
        raise Fault("QEMU's answer to query-cpus-fast is not understood: its version is too old") from error
    return sorted(found, key=lambda one: one.index)


def pin_threads(pid: int, found: list[Vcpu], guest: Guest) -> list[Pinned]:
    """All threads of QEMU to the other CPUs, then each vCPU to its own."""
    own = {one.thread: cpu for one, cpu in zip(found, guest.cpus, strict=True)}
    for task in Path(f"/proc/{pid}/task").iterdir():
        thread = int(task.name)
        try:
            os.sched_setaffinity(thread, {own[thread]} if thread in own else guest.others)
        except ProcessLookupError:
            continue  # a helper thread that has ended
        except OSError as error:
            raise Fault(
                f"thread {thread} of QEMU cannot be pinned: {error.strerror}; run as the user of QEMU or as root"
            ) from error
    return [Pinned(vcpu=one.index, thread=one.thread, cpu=min(os.sched_getaffinity(one.thread))) for one in found]


def process_of(thread: int) -> int:
    """The process of a thread."""
    try:
        text = Path(f"/proc/{thread}/status").read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise Fault(f"thread {thread} of QEMU is not on this machine: use the control socket here") from error
    return int(next(line.split()[1] for line in text.splitlines() if line.startswith("Tgid:")))


def pin(path: Path, guest: Guest) -> list[Pinned]:
    """Pin a guest, then let it run if it waits."""
    with monitor(path) as file:
        found = vcpus(file)
        if len(found) != len(guest.cpus):
            raise UsageFault(
                f"QEMU at {path} has {len(found)} vCPUs, and the guest as requested has {len(guest.cpus)}: give the same options"
            )
        pinned = pin_threads(process_of(found[0].thread), found, guest)
        if ask(file, "query-status").get("status") in ("prelaunch", "paused"):
            ask(file, "cont")
    return pinned
