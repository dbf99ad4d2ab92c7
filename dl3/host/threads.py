"""What the kernel gave to threads of other programs."""

import re
from pathlib import Path

from dl3.host.cores import read_list
from dl3.model.fault import Fault

PROC = Path("/proc")
ALLOWED = re.compile(r"^Cpus_allowed_list:\s+(\S+)$", re.MULTILINE)


def ran_s(pid: int, core: int, proc: Path = PROC) -> float:
    """Processor time, to the nanosecond, of a program's threads that keep to this one core, as workers do."""
    found_ns = list[int]()
    for folder in (proc / str(pid) / "task").glob("*"):
        try:
            allowed = ALLOWED.search((folder / "status").read_text(encoding="ascii", errors="replace"))
            if allowed and read_list(allowed[1]) == (core,):
                found_ns.append(int((folder / "schedstat").read_text(encoding="ascii").split()[0]))
        except (OSError, IndexError):  # it has just left
            continue
    if not found_ns:
        raise Fault(f"process {pid} has no thread that keeps to core {core}: it has left, or its workers are elsewhere")
    return sum(found_ns) / 1e9
