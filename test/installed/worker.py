"""Stops one worker of dl3d as a debugger does, until the process has ended: worker.py PID."""

import ctypes
import os
import sys
from pathlib import Path

SEIZE, INTERRUPT = 0x4206, 0x4207  # ptrace(2)
ANY_THREAD = 0x40000000  # __WALL


def worker_of(pid: int) -> int:
    """Its first worker thread."""
    tasks = sorted(Path(f"/proc/{pid}/task").iterdir(), key=lambda task: int(task.name))
    names = ("rte-worker", "dpdk-worker")  # of DPDK before and since 23.11
    return next(int(task.name) for task in tasks if (task / "comm").read_text().startswith(names))


def main() -> None:
    """The tracer also has to wait for the end of the thread: until then, the process has not ended for anybody."""
    thread = worker_of(int(sys.argv[1]))
    ptrace = ctypes.CDLL(None, use_errno=True).ptrace
    for request in (SEIZE, INTERRUPT):
        if ptrace(request, thread, None, None) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    while True:
        _, status = os.waitpid(thread, ANY_THREAD)
        if os.WIFEXITED(status) or os.WIFSIGNALED(status):
            return
        print("stopped", flush=True)


if __name__ == "__main__":
    main()
