"""Pinning a real QEMU, which emulates: its threads are where the value says, and the guest runs."""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dl3.host.guest.guest import Guest, GuestNode
from dl3.host.guest.qemu import qemu_arguments
from dl3.host.guest.qmp import ask, monitor, pin
from dl3.model.fault import UsageFault

USABLE = sorted(os.sched_getaffinity(0))
LONGEST_S = 60.0


def _guest(n: int = 2) -> Guest:
    """As many vCPUs as asked, on the last CPU; all other threads on the first."""
    node = GuestNode(host_node=0, cpus=(USABLE[-1],) * n, memory_mib=128)
    return Guest(
        name="test", nodes=(node,), page="4K", nics=(), others=frozenset(USABLE[:1]), disk=None, is_emulated=True
    )


@contextmanager
def _running(guest: Guest, socket: Path) -> Iterator[subprocess.Popen[bytes]]:
    words = list(qemu_arguments(guest, str(socket)))
    words[words.index("stdio")] = "none"
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        try:
            end = time.monotonic() + LONGEST_S
            while not _listens(socket):
                assert process.poll() is None, process.stderr and process.stderr.read().decode()
                assert time.monotonic() < end
                time.sleep(0.02)
            yield process
        finally:
            process.kill()


def _listens(socket: Path) -> bool:
    try:
        with monitor(socket):
            return True
    except UsageFault:
        return False


@pytest.mark.long
def qemu_takes_the_arguments_and_its_threads_are_pinned(tmp_path: Path) -> None:
    """Costs some seconds: QEMU emulates."""
    guest, socket = _guest(), tmp_path / "q"
    with _running(guest, socket) as process:
        with monitor(socket) as file:
            assert ask(file, "query-status")["status"] == "prelaunch"
        pinned = pin(socket, guest)
        assert [(one.vcpu, one.cpu) for one in pinned] == [(0, USABLE[-1]), (1, USABLE[-1])]
        threads = {one.thread for one in pinned}
        for task in Path(f"/proc/{process.pid}/task").iterdir():
            wanted = {USABLE[-1]} if int(task.name) in threads else {USABLE[0]}
            assert os.sched_getaffinity(int(task.name)) == wanted
        with monitor(socket) as file:
            assert ask(file, "query-status")["status"] == "running"
            (backend,) = ask(file, "query-memdev")
        assert (backend["host-nodes"], backend["policy"], backend["prealloc"]) == ([0], "bind", True)


@pytest.mark.long
def a_guest_with_other_vcpus_is_not_pinned(tmp_path: Path) -> None:
    with (
        _running(_guest(), tmp_path / "q"),
        pytest.raises(UsageFault, match="has 2 vCPUs, and the guest as requested has 3"),
    ):
        pin(tmp_path / "q", _guest(3))


def a_socket_without_qemu_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageFault, match=r"no QEMU listens at .*/q \(No such file or directory\)"):
        pin(tmp_path / "q", _guest())
