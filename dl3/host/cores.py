"""The processors that we may use; their numbers have holes where SMT siblings are off."""

import os
from collections.abc import Iterable
from pathlib import Path

ONLINE = Path("/sys/devices/system/cpu/online")


def may_use(core: int) -> bool:
    """Whether there is such a one, even where we keep away from it ourselves."""
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {core})
    except OSError:
        return False
    os.sched_setaffinity(0, before)
    return True


def read_list(text: str) -> tuple[int, ...]:
    """The numbers of a list as the kernel writes it: '0-3,8'."""
    ends = [[int(end) for end in run.split("-")] for run in text.strip().split(",") if run]
    return tuple(core for run in ends for core in range(run[0], run[-1] + 1))


def usable() -> tuple[int, ...]:
    """Their numbers, in order: isolated ones, too, which programs only get by asking."""
    return tuple(core for core in read_list(ONLINE.read_text()) if may_use(core))


def listed(cores: Iterable[int]) -> str:
    """As the kernel lists them: '0-3,8'."""
    runs: list[list[int]] = []
    for core in sorted(cores):
        if runs and core == runs[-1][-1] + 1:
            runs[-1].append(core)
        else:
            runs.append([core])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
