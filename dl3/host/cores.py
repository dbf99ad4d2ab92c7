"""The processors that we may use; their numbers have holes where SMT siblings are off."""

import os
from collections.abc import Iterable


def usable() -> tuple[int, ...]:
    """Their numbers, in order."""
    return tuple(sorted(os.sched_getaffinity(0)))


def listed(cores: Iterable[int]) -> str:
    """As the kernel lists them: '0-3,8'."""
    runs: list[list[int]] = []
    for core in sorted(cores):
        if runs and core == runs[-1][-1] + 1:
            runs[-1].append(core)
        else:
            runs.append([core])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


def may_use(core: int) -> bool:
    """Whether there is such a one, even where we keep away from it ourselves."""
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {core})
    except OSError:
        return False
    os.sched_setaffinity(0, before)
    return True
