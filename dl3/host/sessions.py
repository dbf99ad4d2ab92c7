"""Linux weighs sessions first, then the threads of each ("autogroup"). A worker is a thread that never sleeps, and Linux
6.18 was seen to leave a core to the session of one for a minute: whatever else wanted that core, a forwarder's main
thread or a worker of the kernel's, stood still. So Linux weighs threads alone for as long as a lab runs.

What a killed lab left the next one puts back at its end. Who wants it off for good after such a lab removes the note in
/run/dl3-sessions. A program in a CPU cgroup of its own, in a container for instance, is weighed by that all the same.
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
    """Of this boot: the kernel starts with its own choice."""
    return folder_of_boot("dl3-sessions", "a note for the next lab would not be safe there")


def _turn_off(switch: Path, mark: Path) -> None:
    if switch.read_text(encoding="ascii").strip() == "0":
        return
    mark.touch()
    try:
        switch.write_text("0\n", encoding="ascii")
    except OSError:  # it may be there to be read only
        mark.unlink()


def _give_back(descriptor: int, switch: Path, mark: Path) -> None:
    """The last of the labs does."""
    with suppress(OSError):  # another one lives
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
    """Programs started meanwhile get processor time by thread; without effect where that is not ours to say."""
    with ExitStack() as ends:
        if os.access(switch, os.W_OK):
            with suppress(OSError, Fault):  # no safe place for the note
                ends.enter_context(_switched_off(_folder(), switch))
        yield
