"""Which other programs use the cores: the first thing to know when a measurement is disturbed."""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
LOOK_S = 0.5
LEAST_SHARE = 0.05  # of a core: less does not spoil a trial
MOST_NAMED = 3
OURS = ("dl3", "dl3d", "dl3gen")  # what is measured, and what measures, wherever it was started
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Busy:
    """A process and the share of one core that it used."""

    name: str
    pid: int
    share: float

    def __str__(self) -> str:
        return f"{self.name} (pid {self.pid}, {self.share:.0%} of a core)"


@dataclass(frozen=True)
class Seen:
    """A process at one moment."""

    name: str
    parent: int
    ticks: int  # of user and system time


def processes(proc: Path = PROC) -> dict[int, Seen]:
    """All processes by pid; one that has just ended is left out."""
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
    """Whether a process is `ancestor` or was started by it or its children."""
    for _ in range(len(seen)):
        if pid == ancestor:
            return True
        if pid not in seen:
            return False
        pid = seen[pid].parent
    return False


def busiest(before: Mapping[int, Seen], after: Mapping[int, Seen], seconds: float, own: int) -> list[Busy]:
    """Who used at least 5 % of a core between two moments, most first; not `own`, its children, dl3d and dl3gen. Pure."""
    found = [
        Busy(now.name, pid, (now.ticks - before[pid].ticks) / TICKS_PER_S / seconds)
        for pid, now in after.items()
        if pid in before and now.name not in OURS and not is_below(pid, own, after)
    ]
    return sorted((one for one in found if one.share >= LEAST_SHARE), key=lambda one: -one.share)


def look(seconds: float = LOOK_S) -> list[Busy]:
    """The same of now; takes that long."""
    before, began_s = processes(), time.monotonic()
    time.sleep(seconds)
    return busiest(before, processes(), time.monotonic() - began_s, os.getpid())


def sentence(found: list[Busy]) -> str:
    """'stress (pid 7, 99% of a core) uses the cores' or what else may be the cause."""
    if not found:
        return (
            "no other program of this machine was seen to use a core: if it is a virtual machine, its host takes them"
        )
    more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    return f"other programs use the cores: {', '.join(map(str, found[:MOST_NAMED]))}{more}"
