"""What a program can do in the sandbox of dl3d.service beyond what dl3d needs; prints what should have been refused."""

import os
import socket
import subprocess
from collections.abc import Callable


def create(path: str) -> None:
    """A file there."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
    os.unlink(path)  # noqa: PTH108 - only if it came to be


def make_node(path: str) -> None:
    """A device node, and open it."""
    os.mknod(path, 0o600 | 0o020000, os.makedev(1, 1))  # /dev/mem
    os.close(os.open(path, os.O_RDONLY))


def load_module() -> None:
    """A module of the kernel."""
    subprocess.run(["modprobe", "dummy"], check=True, capture_output=True)


ATTEMPTS: dict[str, Callable[[], object]] = {
    "write to /etc": lambda: create("/etc/probe"),
    "write to /usr": lambda: create("/usr/probe"),
    "write to /root": lambda: create("/root/probe"),
    "write to /tmp": lambda: create("/tmp/probe"),
    "open /dev/mem": lambda: os.open("/dev/mem", os.O_RDONLY),
    "open /dev/kmsg": lambda: os.open("/dev/kmsg", os.O_RDONLY),
    "make a device node": lambda: make_node("/run/probe"),
    "load a module": load_module,
    "change what core dumps run": lambda: os.close(os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY)),
    "set the name of the machine": lambda: socket.sethostname("probe"),
    "become another user": lambda: os.setuid(1),
}


def main() -> None:
    """One line per attempt that was not refused."""
    for name, attempt in ATTEMPTS.items():
        try:
            attempt()
        except (OSError, subprocess.CalledProcessError):
            continue
        print(name)


if __name__ == "__main__":
    main()
