"""Linux schedules sessions first, then the threads of each ("autogroup"). A worker is a thread that never sleeps, and
Linux 6.18 was seen to leave a core to such a thread's session for a minute, while everything else on that core stood
still, such as a forwarder's main thread or a kernel worker. Autogroup scheduling is therefore turned off while a lab
runs.

The next lab restores the setting, at its end, for one that was killed. To keep it off permanently after that, remove
the note in /run/dl3-sessions. A program in a CPU cgroup of its own, for example in a container, is still scheduled by
that group.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from dl3.host.loans import folder_of_boot
from dl3.model.fault import Fault

SWITCH = Path("/proc/sys/kernel/sched_autogroup_enabled")
MARK = "was-on"


def _folder() -> Path:
    """A folder for this boot; the kernel resets the setting at boot."""
    return folder_of_boot("dl3-sessions", "a note for the next lab would not be safe there")


def _turn_off(switch: Path, mark: Path) -> None:
    if switch.read_text(encoding="ascii").strip() == "0":
        return
    mark.touch()
    try:
        switch.write_text("0\n", encoding="ascii")
    except OSError:  # the file may be read-only
        mark.unlink()


def _give_back(descriptor: int, switch: Path, mark: Path) -> None:
    """Restore the setting when the last lab ends."""
    with suppress(OSError):  # another lab is still running
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if mark.exists():
            switch.write_text("1\n", encoding="ascii")
            mark.unlink()


@contextmanager
def _switched_off(folder: Path, switch: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        _turn_off(switch, folder / MARK)
        yield
    finally:
        _give_back(descriptor, switch, folder / MARK)
        os.close(descriptor)


@contextmanager
def weighed_alone(switch: Path = SWITCH) -> Iterator[None]:
    """Turn off autogroup scheduling; no effect without permission."""
    with ExitStack() as ends:
        if os.access(switch, os.W_OK):
            with suppress(OSError, Fault):  # there is no safe place for the note
                ends.enter_context(_switched_off(_folder(), switch))
        yield
