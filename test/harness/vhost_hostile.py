"""A driver of a vhost-user device that keeps to nothing: what it sends and writes follows from a seed."""

import array
import contextlib
import os
import socket
import struct
from pathlib import Path
from random import Random

from harness.vhost_driver import (
    AVAIL_AT,
    BUFFER,
    BUFFERS_AT,
    GUEST,
    NEEDS_REPLY,
    RING,
    SET_FEATURES,
    SET_MEM_TABLE,
    SET_OWNER,
    SET_PROTOCOL_FEATURES,
    SET_VRING_ADDR,
    SET_VRING_BASE,
    SET_VRING_CALL,
    SET_VRING_ENABLE,
    SET_VRING_ERR,
    SET_VRING_KICK,
    SET_VRING_NUM,
    SLOTS,
    USED_AT,
    USER,
    VERSION,
    VhostDriver,
)

QUEUES = 2
MORE = 32 << 20  # 256 descriptors of 16 MiB have 4 GiB
RESET_OWNER, SET_LOG_BASE, GET_VRING_BASE, SEND_RARP, SET_MTU, SET_STATUS = 4, 6, 11, 19, 20, 39
EVENTS = (SET_VRING_KICK, SET_VRING_CALL, SET_VRING_ERR)
NUMBERS = (SET_VRING_NUM, SET_VRING_BASE, GET_VRING_BASE, SET_VRING_ENABLE)
WHOLE = 2**64
LENGTHS = (0, 1, 11, 12, 13, 60, 1514, 2048, 65535, 1 << 20, 1 << 24, 2**31, 2**32 - 1)
SIZES = (SLOTS, 32, 64, 1024, 4096, 0, 1, 7, 32768, 65536, 2**32 - 1)


class HostileDriver(VhostDriver):
    """A guest that has set up its device as others do, with any features, and then does what `rng` says."""

    def __init__(self, path: Path, rng: Random) -> None:
        self._rng = rng
        super().__init__(path, QUEUES, rng.getrandbits(64), MORE)
        self._memory_bytes = 2 * QUEUES * RING + MORE
        self._socket.setblocking(False)

    def misbehave(self, steps: int) -> None:
        """Write to the rings and send messages until the device ends the connection, at most `steps` times."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for _ in range(steps):
                self._rng.choices((self._scribble, self._speak, self._restart), (14, 5, 1))[0]()
                with contextlib.suppress(BlockingIOError):
                    while self._socket.recv(4096):
                        pass

    # Rings

    def _put(self, at: int, form: str, *values: int) -> None:
        self.memory[at : at + struct.calcsize(form)] = struct.pack(form, *values)

    def _address(self) -> int:
        """Of a buffer, mostly one of its own."""
        end = GUEST + self._memory_bytes
        own = GUEST + self._rng.randrange(2 * QUEUES) * RING + BUFFERS_AT + self._rng.randrange(SLOTS) * BUFFER
        others = (end - 1, end - 12, end - 100, end, 0, GUEST - 1, WHOLE - 1, self._rng.getrandbits(64), GUEST)
        return own if self._rng.random() < 0.7 else self._rng.choice(others)

    def _descriptor(self, ring: int, slot: int, address: int, length: int, following: int | None) -> None:
        flags = (2 if ring % 2 == 0 else 0) | (following is not None)
        self._put(ring * RING + slot % SLOTS * 16, "=QIHH", address, length, flags, (following or 0) % SLOTS)

    def _any_descriptor(self, ring: int) -> None:
        rng = self._rng
        row = (self._address() % WHOLE, rng.choice(LENGTHS), rng.getrandbits(3), rng.choice((0, 1, 255, 256, 65535)))
        self._put(ring * RING + rng.randrange(SLOTS) * 16, "=QIHH", *row)

    def _loop(self, ring: int) -> None:
        first, n = self._rng.randrange(SLOTS), self._rng.choice((1, 2, 200, 256))
        for i in range(n):
            self._descriptor(ring, first + i, self._address() % WHOLE, self._rng.choice((0, 1, 4)), first + (i + 1) % n)

    def _split_header(self, ring: int) -> None:
        """Spread a header over more than two buffers, of which the second ends the memory."""
        first, end = self._rng.randrange(SLOTS), GUEST + self._memory_bytes
        rows = ((GUEST + BUFFERS_AT, 1), (end - 1, 1), (GUEST + BUFFERS_AT, BUFFER))
        for i, (address, length) in enumerate(rows):
            self._descriptor(ring, first + i, address, length, first + i + 1 if i < len(rows) - 1 else None)

    def _wrap(self, ring: int) -> None:
        """A frame whose length is 4 GiB and 100 bytes."""
        each = 2**32 // (SLOTS - 1) + 1
        for i in range(SLOTS):
            last = i == SLOTS - 1
            length = 2**32 + 100 - each * (SLOTS - 1) if last else each
            self._descriptor(ring, i, GUEST, length % 2**32, None if last else i + 1)

    def _any_entries(self, ring: int) -> None:
        slots = [self._rng.choice((0, self._rng.randrange(SLOTS), 256, 65535)) for _ in range(SLOTS)]
        self._put(ring * RING + AVAIL_AT + 4, f"={SLOTS}H", *slots)

    def _jump(self, ring: int) -> None:
        by = self._rng.choice((1, 2, 31, 33, 255, 256, 257, 4096, 32768, 65535))
        at = (ring * RING + AVAIL_AT) // 2 + 1
        self.rings[ring].words[at] = (self.rings[ring].words[at] + by) % 65536

    def _any_used(self, ring: int) -> None:
        self._put(ring * RING + USED_AT + 2, "=H", self._rng.getrandbits(16))

    def _any_flags(self, ring: int) -> None:
        self._put(ring * RING + AVAIL_AT, "=H", self._rng.getrandbits(16))

    def _offer(self, ring: int) -> None:
        if ring % 2:
            self.rings[ring].offer(self._rng.randbytes(self._rng.choice((1, 13, 60, 1514, 2000))))

    def _scribble(self) -> None:
        rare, often = (self._wrap, self._any_used, self._any_flags), (self._jump, self._any_descriptor)
        chains = (self._loop, self._split_header, self._any_entries, self._offer)
        self._rng.choice((*rare, *often, *often, *often, *chains, *chains))(self._rng.randrange(2 * QUEUES))

    # Messages

    def _restart(self) -> None:
        """Stop a ring and set it up again, mostly with all that it needs."""
        ring = self._rng.choice(self.rings)
        number = struct.pack("=II", ring.number, 0)
        rows = (
            (SET_VRING_NUM, struct.pack("=II", ring.number, SLOTS)),
            (SET_VRING_BASE, number),
            (SET_VRING_ADDR, ring.addresses()),
            (SET_VRING_CALL, number),
            (SET_VRING_KICK, number),
        )
        self.tell(GET_VRING_BASE, number)
        for request, payload in rows:
            if self._rng.random() < 0.9:
                event = os.eventfd(0, os.EFD_NONBLOCK) if request in EVENTS else -1
                try:
                    self.tell(request, payload, files=[event] if event >= 0 else ())
                finally:
                    if event >= 0:
                        os.close(event)

    def _speak(self) -> None:
        """Send a message, of which mostly nothing or one part is wrong."""
        rng = self._rng
        usual = (SET_OWNER, SET_FEATURES, SET_PROTOCOL_FEATURES, SET_MEM_TABLE, SET_VRING_ADDR, *NUMBERS, *EVENTS)
        rest = (RESET_OWNER, SET_LOG_BASE, SEND_RARP, SET_MTU, SET_STATUS, *range(45))
        request = rng.choice(usual) if rng.random() < 0.9 else rng.choice(rest)
        if request == SET_MEM_TABLE:
            payload, files = self._any_memory()
        elif request in EVENTS:
            payload, files = self._any_event()
        else:
            payload, files = self._any_payload(request), []
        flags = VERSION | (NEEDS_REPLY if rng.random() < 0.5 else 0)
        size = len(payload) if rng.random() < 0.98 else rng.choice((0, 4, len(payload) // 2))
        message = struct.pack("=III", request, flags, size) + payload[:size]
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))] if files else []
        try:
            self._socket.sendmsg([message], rights)
        finally:
            for file in files:
                os.close(file)

    def _ring_number(self) -> int:
        usual = self._rng.randrange(2 * QUEUES)
        return usual if self._rng.random() < 0.85 else self._rng.choice((4, 5, 255, 256, 2**32 - 1))

    def _any_payload(self, request: int) -> bytes:
        rng = self._rng
        if request == SET_VRING_ADDR:
            ring = rng.randrange(2 * QUEUES)
            at = USER + ring * RING
            places = [at, at + USED_AT, at + AVAIL_AT]
            if rng.random() < 0.5:
                places[rng.randrange(3)] = (USER + rng.choice((1, 8, RING, self._memory_bytes - 64, -16))) % WHOLE
            return struct.pack("=IIQQQQ", ring, rng.choice((0, 0, 0, 1)), *places, rng.getrandbits(64))
        if request in NUMBERS:
            value = rng.choice(SIZES) if request == SET_VRING_NUM else rng.choice((0, 1, 300, 65535, 65536))
            return struct.pack("=II", self._ring_number(), value)
        if request in (SET_FEATURES, SET_PROTOCOL_FEATURES):
            one = 1 << rng.randrange(64)
            return struct.pack("=Q", rng.choice((self.features, self.features ^ one, self.offered, 9, 0)))
        if request in (SET_OWNER, RESET_OWNER):
            return b""
        return rng.choice((rng.randbytes(8), rng.randbytes(16), bytes(40), struct.pack("=Q", 1500), b""))

    def _any_memory(self) -> tuple[bytes, list[int]]:
        rng = self._rng
        rows = [[GUEST, self._memory_bytes, USER, 0]]
        if rng.random() < 0.3:
            rows.append([0, 4096, rng.choice((USER - 4096, USER, USER + self._memory_bytes)), 0])
        if rng.random() < 0.4:
            row, place = rng.choice(rows), rng.randrange(4)
            row[place] = rng.choice((0, 4096, row[place] // 2, 1 << 40, 1 << 63, WHOLE - 1))
        n = len(rows) if rng.random() < 0.9 else rng.choice((0, 1, 8, 9, 2**32 - 1))
        payload = struct.pack("=II", n, 0) + b"".join(struct.pack("=QQQQ", *row) for row in rows)
        return payload, [self._any_file(0.05) for _ in rows]

    def _any_file(self, wrong: float) -> int:
        """A file for memory, mostly the one with the rings."""
        rng = self._rng
        if rng.random() >= wrong:
            return os.dup(self.file)
        if rng.random() < 0.5:
            return os.open("/dev/null", os.O_RDWR)
        return os.open(f"/proc/self/fd/{self.file}", os.O_RDONLY)

    def _any_event(self) -> tuple[bytes, list[int]]:
        rng = self._rng
        value = self._ring_number() | (1 << 8 if rng.random() < 0.2 else 0)
        has_file = not value >> 8 & 1 or rng.random() < 0.05
        file = [self._any_file(0) if rng.random() < 0.02 else os.eventfd(0, os.EFD_NONBLOCK)] if has_file else []
        return struct.pack("=Q", value % 2**32), file
