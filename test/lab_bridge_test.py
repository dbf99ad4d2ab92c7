"""The bridges of a lab with programs at its TAP interfaces in place of guests: what is lost is counted at its place."""

import fcntl
import os
import struct
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from harness.wire import wait_until

from dl3.lab.command import run
from dl3.lab.kind import Settings
from dl3.lab.kvm_report import topology_of
from dl3.lab.namespace import Namespace
from dl3.lab.stations import SwitchCounts
from dl3.lab.switches import SHORT_QUEUE, lay_linux, read_linux

TUNSETIFF, IFF_TAP_NO_PI = 0x400454CA, 0x1002
LONG_QUEUE = 1000  # Linux's default
FRAMES = 3000
FRAME = bytes.fromhex("020000000202 020000000201 0800") + bytes(46)


@contextmanager
def _bridges(short_queue: str) -> Iterator[Namespace]:
    namespace = Namespace(f"dl3-{os.getpid()}-lab", silent=True)
    try:
        lay_linux(topology_of(Settings(short_queue=short_queue), "tcg"), namespace)
        yield namespace
    finally:
        run(["ip", "netns", "delete", namespace.name])


def _taken(namespace: Namespace, ends: ExitStack) -> dict[str, int]:
    """All TAP interfaces, as QEMU takes them."""
    found = {}
    with namespace.entered():
        for name in ("vnet0", "vnet1", "vnet2", "vnet3"):
            found[name] = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
            ends.callback(os.close, found[name])
            fcntl.ioctl(found[name], TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP_NO_PI))
    return found


def _are_up(namespace: Namespace) -> bool:
    """Whether the bridges forward at all of their ports."""
    links = namespace.run("bridge", "link", "show")
    return links.count("state forwarding") == 4


def _read_all(tap: int) -> int:
    n = 0
    while True:
        try:
            os.read(tap, 2048)
        except BlockingIOError:
            return n
        n += 1


@pytest.mark.parametrize(("short_queue", "fit"), [("", LONG_QUEUE), ("vnet1", SHORT_QUEUE), ("vnet3", LONG_QUEUE)])
def a_frame_that_finds_the_queue_full_is_counted_there(short_queue: str, fit: int) -> None:
    with _bridges(short_queue) as namespace, ExitStack() as ends:
        taps = _taken(namespace, ends)
        wait_until(lambda: _are_up(namespace), "the bridges forwarded")
        _read_all(taps["vnet1"])
        before = read_linux(namespace)
        for _ in range(FRAMES):
            os.write(taps["vnet0"], FRAME)

        def since() -> SwitchCounts:
            return read_linux(namespace).since(before)

        assert since().ports["vnet0"].received == FRAMES
        n = _read_all(taps["vnet1"])
        out = since().ports["vnet1"]
        assert n == fit
        assert (out.sent, out.lost_out) == (fit, {"tx_dropped": FRAMES - fit})
        assert since().ports["vnet2"] == since().ports["vnet3"]  # the way back has a bridge of its own
