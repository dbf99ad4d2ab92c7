"""CPU time of other programs' threads."""

import re
from dataclasses import dataclass
from pathlib import Path

from dl3.host.cores import read_list
from dl3.model.fault import Fault

PROC = Path("/proc")
ALLOWED = re.compile(r"^Cpus_allowed_list:\s+(\S+)$", re.MULTILINE)


@dataclass(frozen=True)
class CpuTime:
    """How long threads had their core and, ready to run, waited for it while others had it."""

    ran_s: float
    waited_s: float

    def share_since(self, before: "CpuTime") -> float:
        """The share of the core, 0 to 1, that they got of what they wanted; time asleep does not count."""
        ran, waited = self.ran_s - before.ran_s, self.waited_s - before.waited_s
        return ran / (ran + waited) if ran + waited > 0 else 1.0


def cpu_time(pid: int, core: int, proc: Path = PROC) -> CpuTime:
    """CPU time, to the nanosecond, of a program's threads pinned to this core, such as workers."""
    found_ns = list[tuple[int, int]]()
    for folder in (proc / str(pid) / "task").glob("*"):
        try:
            allowed = ALLOWED.search((folder / "status").read_text(encoding="ascii", errors="replace"))
            if allowed and read_list(allowed[1]) == (core,):
                ran, waited, _ = (folder / "schedstat").read_text(encoding="ascii").split()
                found_ns.append((int(ran), int(waited)))
        except (OSError, ValueError):  # the thread has just exited
            continue
    if not found_ns:
        raise Fault(
            f"process {pid} has no thread pinned to core {core}: it has exited, or its workers are on other cores"
        )
    return CpuTime(sum(ran for ran, _ in found_ns) / 1e9, sum(waited for _, waited in found_ns) / 1e9)
