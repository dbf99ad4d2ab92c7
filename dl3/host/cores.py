"""The processors available to this process. Numbers may have gaps, for example if SMT siblings are off."""

import os
from collections.abc import Iterable
from pathlib import Path

ONLINE = Path("/sys/devices/system/cpu/online")


def may_use(core: int) -> bool:
    """Whether the processor exists and is allowed, even if our own affinity mask excludes it."""
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {core})
    except OSError:
        return False
    os.sched_setaffinity(0, before)
    return True


def read_list(text: str) -> tuple[int, ...]:
    """Parse a CPU list in the kernel's format: '0-3,8'."""
    ends = [[int(end) for end in run.split("-")] for run in text.strip().split(",") if run]
    return tuple(core for run in ends for core in range(run[0], run[-1] + 1))


def usable() -> tuple[int, ...]:
    """Usable processors in ascending order, including isolated ones, which are used only on request."""
    return tuple(core for core in read_list(ONLINE.read_text()) if may_use(core))


def listed(cores: Iterable[int]) -> str:
    """Format a CPU list like the kernel: '0-3,8'."""
    runs: list[list[int]] = []
    for core in sorted(cores):
        if runs and core == runs[-1][-1] + 1:
            runs[-1].append(core)
        else:
            runs.append([core])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
