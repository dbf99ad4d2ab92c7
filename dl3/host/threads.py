"""CPU time of other programs' threads."""

import re
from pathlib import Path

from dl3.host.cores import read_list
from dl3.model.fault import Fault

PROC = Path("/proc")
ALLOWED = re.compile(r"^Cpus_allowed_list:\s+(\S+)$", re.MULTILINE)


def ran_s(pid: int, core: int, proc: Path = PROC) -> float:
    """CPU time in seconds, to the nanosecond, of a program's threads pinned to this core, such as workers."""
    found_ns = list[int]()
    for folder in (proc / str(pid) / "task").glob("*"):
        try:
            allowed = ALLOWED.search((folder / "status").read_text(encoding="ascii", errors="replace"))
            if allowed and read_list(allowed[1]) == (core,):
                found_ns.append(int((folder / "schedstat").read_text(encoding="ascii").split()[0]))
        except (OSError, IndexError):  # the thread has just exited
            continue
    if not found_ns:
        raise Fault(
            f"process {pid} has no thread pinned to core {core}: it has exited, or its workers are on other cores"
        )
    return sum(found_ns) / 1e9
