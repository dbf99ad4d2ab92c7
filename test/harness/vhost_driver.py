"""The driver of a vhost-user device, with split rings that its memory shares: a guest that tests can lead step by step.

Source: QEMU's docs/interop/vhost-user.rst; Virtual I/O Device 1.1, 2.6 (split virtqueues) and 5.1.6 (network).
"""

import array
import dataclasses
import fcntl
import mmap
import os
import select
import socket
import struct
import termios
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

SLOTS = 256
HEADER = 12  # of each frame: struct virtio_net_hdr_v1
BUFFER = 2048
AVAIL_AT, USED_AT, BUFFERS_AT = SLOTS * 16, SLOTS * 16 + 4096, SLOTS * 16 + 8192
RING = BUFFERS_AT + SLOTS * BUFFER
GUEST, USER = 0x10000, 0x7F0000000000  # where the memory is for the guest and for its hypervisor
# Of a descriptor: another one follows, the device writes to its buffer, it is a table of descriptors.
NEXT, WRITE, TABLE = 1, 2, 4

GET_FEATURES, SET_FEATURES, SET_OWNER, SET_MEM_TABLE = 1, 2, 3, 5
SET_VRING_NUM, SET_VRING_ADDR, SET_VRING_BASE, SET_VRING_KICK, SET_VRING_CALL, SET_VRING_ERR = 8, 9, 10, 12, 13, 14
SET_PROTOCOL_FEATURES, SET_VRING_ENABLE = 16, 18
VERSION, NEEDS_REPLY = 1, 8
MULTIQUEUE, PROTOCOL, VERSION_1 = 1 << 22, 1 << 30, 1 << 32
USUAL = MULTIQUEUE | PROTOCOL | VERSION_1
# What the driver may leave to the device, and the device to the driver.
CHECKSUM, TSO4, TSO6 = 1 << 0, 1 << 11, 1 << 12
GUEST_CHECKSUM, GUEST_TSO4, GUEST_TSO6, MERGEABLE = 1 << 1, 1 << 7, 1 << 8, 1 << 15
LEAVES, TAKES = CHECKSUM | TSO4 | TSO6, GUEST_CHECKSUM | GUEST_TSO4 | GUEST_TSO6 | MERGEABLE
PROTOCOL_MULTIQUEUE, PROTOCOL_ACK = 1 << 0, 1 << 3


@dataclass(frozen=True)
class Header:
    """What precedes a frame: struct virtio_net_hdr_v1, little-endian."""

    flags: int = 0
    gso_type: int = 0
    hdr_len: int = 0
    gso_size: int = 0
    csum_start: int = 0
    csum_offset: int = 0
    buffers: int = 0

    def packed(self) -> bytes:
        """Its bytes."""
        return struct.pack("<BBHHHHH", *dataclasses.astuple(self))


NEEDS_CHECKSUM = 1
GSO_TCP4, GSO_UDP, GSO_TCP6, GSO_UDP_L4, GSO_ECN = 1, 3, 4, 5, 0x80


class Vring:
    """One ring. Even numbers receive: all their buffers are the device's until it has filled them."""

    def __init__(self, memory: mmap.mmap, number: int) -> None:
        self.number = number
        self._memory, self._at = memory, number * RING
        self.words = memoryview(memory).cast("H")  # stores at once; struct.pack_into writes zeros first
        self._available = self._seen = 0
        if number % 2 == 0:
            for slot in range(SLOTS):
                self._give(slot, BUFFER, WRITE)

    def _buffer(self, slot: int) -> int:
        return self._at + BUFFERS_AT + slot * BUFFER

    def _give(self, slot: int, length: int, flags: int, at: int | None = None) -> None:
        """Make the buffer of a slot, or what begins `at`, available to the device: the index is written last."""
        self.describe(slot, GUEST + (self._buffer(slot) if at is None else at), length, flags)
        self.expose(slot)

    def describe(self, slot: int, address: int, length: int, flags: int, following: int = 0) -> None:
        """Write the descriptor of a slot: where the guest has the buffer, and which slot follows in a chain."""
        descriptor = struct.pack("=QIHH", address, length, flags, following)
        self._memory[self._at + slot * 16 : self._at + slot * 16 + 16] = descriptor

    def expose(self, slot: int) -> None:
        """Make the chain that begins in a slot available to the device, whether there is such a slot or not."""
        self.words[(self._at + AVAIL_AT) // 2 + 2 + self._available % SLOTS] = slot
        self.jump(1)

    def jump(self, by: int) -> None:
        """Move the index of what is available, whatever the entries in front of it hold."""
        self._available = (self._available + by) % 65536
        self.words[(self._at + AVAIL_AT) // 2 + 1] = self._available

    @property
    def used(self) -> int:
        """How many buffers the device has returned, modulo 65536."""
        return self.words[(self._at + USED_AT) // 2 + 1]

    @property
    def is_idle(self) -> bool:
        """Whether the device has returned all buffers."""
        return self._available == self.used

    def _returned(self) -> Iterator[bytes]:
        while self._seen != self.used:
            slot, length = struct.unpack_from("=II", self._memory, self._at + USED_AT + 4 + self._seen % SLOTS * 8)
            yield self._memory[self._buffer(slot) : self._buffer(slot) + length]
            self._give(slot, BUFFER, WRITE)
            self._seen = (self._seen + 1) % 65536

    def take(self) -> list[bytes]:
        """What has arrived since the last time, without its headers."""
        return [piece[HEADER:] for piece in self._returned()]

    def take_whole(self) -> list[tuple[Header, bytes]]:
        """The same with their headers, and put together from as many buffers as these say."""
        pieces = list(self._returned())
        frames = []
        while pieces:
            header = Header(*struct.unpack_from("<BBHHHHH", pieces[0]))
            n = max(header.buffers, 1)  # without mergeable buffers it says nothing
            frames.append((header, b"".join(pieces[:n])[HEADER:]))
            del pieces[:n]
        return frames

    def offer_long(self, frame: bytes, header: Header) -> None:
        """Hand a frame of any length and its header to the device. The ring must be idle."""
        assert self.is_idle
        at = self._buffer(0)
        self._memory[at : at + HEADER + len(frame)] = header.packed() + frame
        self._give(self._available % SLOTS, HEADER + len(frame), 0, at)

    def offer(self, frame: bytes) -> bool:
        """Hand a frame to the device, if the ring has space."""
        if (self._available - self.used) % 65536 == SLOTS:
            return False
        slot = self._available % SLOTS
        at = self._buffer(slot)
        self._memory[at : at + HEADER + len(frame)] = bytes(HEADER) + frame
        self._give(slot, HEADER + len(frame), 0)
        return True

    def addresses(self) -> bytes:
        """The payload of SET_VRING_ADDR."""
        at = USER + self._at
        return struct.pack("=IIQQQQ", self.number, 0, at, at + USED_AT, at + AVAIL_AT, 0)


class VhostDriver:
    """A driver with `queues` pairs of rings, connected to the socket at which dl3d listens; all are enabled.

    `features`: further ones that it negotiates; those that are not offered are left out. It shares `memory`, the pages of
    `file`, which has `more` bytes than its rings need.
    """

    def __init__(self, path: Path, queues: int, features: int = 0, more: int = 0) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(60)
        self._socket.connect(str(path))
        self.file = os.memfd_create("guest")
        os.ftruncate(self.file, 2 * queues * RING + more)
        self.memory = mmap.mmap(self.file, 2 * queues * RING + more)
        self.rings = [Vring(self.memory, number) for number in range(2 * queues)]
        self._negotiate(USUAL | features)
        for ring in self.rings:
            self._set_up(ring)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()
        for ring in self.rings:
            ring.words.release()
        self.memory.close()
        os.close(self.file)

    def tell(self, request: int, payload: bytes, flags: int = VERSION, files: Sequence[int] = ()) -> None:
        """Send a message, with files or none."""
        self.send(struct.pack("=III", request, flags, len(payload)) + payload, files)

    def send(self, message: bytes, files: Sequence[int] = ()) -> None:
        """Send bytes that may be no message."""
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))] if files else []
        self._socket.sendmsg([message], rights)

    def share(self, *regions: tuple[int, int]) -> None:
        """Tell where memory is: the place of each region in the file, and its bytes."""
        rows = b"".join(struct.pack("=QQQQ", GUEST + at, n, USER + at, at) for at, n in regions)
        self.tell(SET_MEM_TABLE, struct.pack("=II", len(regions), 0) + rows, files=[self.file] * len(regions))

    def _answer(self) -> int:
        reply = self._socket.recv(20, socket.MSG_WAITALL)
        return int(struct.unpack("=IIIQ", reply)[3])

    def _negotiate(self, wanted: int) -> None:
        self.tell(GET_FEATURES, b"")
        self.offered = self._answer()
        self.features = wanted & self.offered
        assert self.features & USUAL == USUAL
        self.tell(SET_OWNER, b"")
        self.tell(SET_PROTOCOL_FEATURES, struct.pack("=Q", PROTOCOL_MULTIQUEUE | PROTOCOL_ACK))
        self.tell(SET_FEATURES, struct.pack("=Q", self.features))
        self.share((0, len(self.memory)))

    def _set_up(self, ring: Vring) -> None:
        self.tell(SET_VRING_NUM, struct.pack("=II", ring.number, SLOTS))
        self.tell(SET_VRING_BASE, struct.pack("=II", ring.number, 0))
        self.tell(SET_VRING_ADDR, ring.addresses())
        for request in (SET_VRING_CALL, SET_VRING_KICK):
            event = os.eventfd(0, os.EFD_NONBLOCK)
            self.tell(request, struct.pack("=Q", ring.number), files=[event])
            os.close(event)
        self.enable(ring.number, True)

    def enable(self, number: int, is_enabled: bool) -> None:
        """Enable or disable a ring; returns once the device has acknowledged it."""
        self.tell(SET_VRING_ENABLE, struct.pack("=II", number, is_enabled), VERSION | NEEDS_REPLY)
        assert self._answer() == 0

    def signal_by_its_memory(self, request: int) -> None:
        """Give the first ring a file for its events that is no eventfd."""
        self.tell(request, struct.pack("=Q", 0), files=[self.file])

    def set_features_late(self) -> None:
        """Send a message whose end follows once the device has read its beginning."""
        self._socket.sendall(struct.pack("=III", SET_PROTOCOL_FEATURES, VERSION, 8))
        while struct.unpack("=i", fcntl.ioctl(self._socket, termios.TIOCOUTQ, bytes(4)))[0]:
            time.sleep(0)
        self._socket.sendall(struct.pack("=Q", PROTOCOL_MULTIQUEUE | PROTOCOL_ACK))

    def take_memory_away(self, kept: int = 0) -> None:
        """Shorten the file whose pages are the memory. Use nothing behind what is kept after this."""
        os.ftruncate(self.file, kept)

    @property
    def has_ended(self) -> bool:
        """Whether the device has ended the connection."""
        if not select.select([self._socket], [], [], 0)[0]:
            return False
        try:
            return self._socket.recv(1) == b""
        except ConnectionResetError:
            return True
