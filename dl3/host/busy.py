"""Finds other programs that use the cores, the most likely cause of a disturbed measurement."""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
LOOK_S = 0.5
LEAST_SHARE = 0.05  # of a core; smaller shares do not affect a trial
MOST_NAMED = 3
OURS = ("dl3", "dl3d", "dl3gen")  # the measured and the measuring programs, wherever they were started
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Busy:
    """A process and the fraction of a core that it used."""

    name: str
    pid: int
    share: float

    def __str__(self) -> str:
        return f"{self.name} (pid {self.pid}, {self.share:.0%} of a core)"


@dataclass(frozen=True)
class Seen:
    """A snapshot of a process."""

    name: str
    parent: int
    ticks: int  # user and system time


def processes(proc: Path = PROC) -> dict[int, Seen]:
    """All processes by pid; a process that exits meanwhile is skipped."""
    found = {}
    for folder in proc.glob("[0-9]*"):
        try:
            text = (folder / "stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        name, _, rest = text.partition("(")[2].rpartition(")")
        words = rest.split()
        if len(words) > 12:
            found[int(folder.name)] = Seen(name, int(words[1]), int(words[11]) + int(words[12]))
    return found


def is_below(pid: int, ancestor: int, seen: Mapping[int, Seen]) -> bool:
    """Whether a process is `ancestor` or one of its descendants."""
    for _ in range(len(seen)):
        if pid == ancestor:
            return True
        if pid not in seen:
            return False
        pid = seen[pid].parent
    return False


def busiest(before: Mapping[int, Seen], after: Mapping[int, Seen], seconds: float, own: int) -> list[Busy]:
    """Processes that used at least 5 % of a core between two snapshots, busiest first, without `own`, its children,
    dl3d and dl3gen. Pure.
    """
    found = [
        Busy(now.name, pid, (now.ticks - before[pid].ticks) / TICKS_PER_S / seconds)
        for pid, now in after.items()
        if pid in before and now.name not in OURS and not is_below(pid, own, after)
    ]
    return sorted((one for one in found if one.share >= LEAST_SHARE), key=lambda one: -one.share)


def look(seconds: float = LOOK_S) -> list[Busy]:
    """The busiest processes now; takes `seconds`."""
    before, began_s = processes(), time.monotonic()
    time.sleep(seconds)
    return busiest(before, processes(), time.monotonic() - began_s, os.getpid())


def sentence(found: list[Busy]) -> str:
    """'other programs use the cores: stress (pid 7, 99% of a core)', or another possible cause."""
    if not found:
        return "no other program on this machine used a core: if it is a virtual machine, the hypervisor may have taken them"
    more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    return f"other programs use the cores: {', '.join(map(str, found[:MOST_NAMED]))}{more}"
