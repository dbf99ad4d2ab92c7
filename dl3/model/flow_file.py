"""The file of flows (docs/internals/flow.md), read and written as numpy records."""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, cast

import google_crc32c
import numpy as np
import numpy.typing as npt

from dl3.model.fault import Fault, UsageFault

RECORD_BYTES = 64
MAGIC, VERSION = b"DL3FLOWS", 1
MOST_FLOWS, MOST_ACTIONS = (1 << 26) - 1, 1 << 22
MOST_MS = 4 * 86400 * 1000  # longest timeout, and latest end
IS_IPV6, LIFE_BITS, FIXED_END = 0x10, 0x0F, 9  # of `kind`; lives: 0 endless, 1 to 8 idle timeouts, 9 fixed end
KEEP_DSCP = 64
BY_ROUTE, VIA, DROP, PUNT, OF_VRF = 0, 1, 2, 3, 0x80  # what is done; the last one: the record is that of a VRF
SLICE = 1 << 16  # records that are read or written at a time

Records = npt.NDArray[np.void]


def layout(*fields: tuple[str, str, int]) -> np.dtype[np.void]:
    """A record of 64 bytes with these fields: name, type, offset."""
    names, formats, offsets = ([field[n] for field in fields] for n in range(3))
    words: Any = {"names": names, "formats": formats, "offsets": offsets, "itemsize": RECORD_BYTES}
    made: np.dtype[np.void] = np.dtype(words)
    return made


HEADER = layout(
    ("magic", "V8", 0),
    ("version", "<u4", 8),
    ("n_actions", "<u4", 12),
    ("n_flows", "<u8", 16),
    ("saved_ms", "<u8", 24),  # since 1970
    ("records_crc", "<u4", 32),
    ("zero", "V24", 36),
    ("header_crc", "<u4", 60),
)
FLOW = layout(
    ("src", "16u1", 0),
    ("dst", "16u1", 16),
    ("src4", ">u4", 0),  # the same bytes, of an IPv4 flow
    ("dst4", ">u4", 16),
    ("src_port", ">u2", 32),  # of ICMP: the identifier
    ("dst_port", ">u2", 34),
    ("vrf", "<u2", 36),
    ("proto", "u1", 38),
    ("kind", "u1", 39),
    ("action", "<u4", 40),  # the number of its record in this file
    ("time_ms", "<u4", 44),
    ("packets", "<u8", 48),
    ("bytes", "<u8", 56),
)
ACTION = layout(
    ("do", "u1", 0),
    ("dscp", "u1", 1),
    ("via_family", "u1", 2),
    ("subscriber", "<u4", 4),  # of a VRF: its number in this file
    ("via", "16u1", 8),
    ("dev", "S16", 24),  # of a VRF: its name
    ("mirror", "S16", 40),
)


def content(records: Records) -> npt.NDArray[np.uint8]:
    """The bytes of records."""
    if records.dtype.itemsize != RECORD_BYTES:
        raise ValueError("these are not records of a file: numpy has packed them when it joined arrays")
    return np.ascontiguousarray(records).view(np.uint8)


def crc32c(crc: int, records: Records) -> int:
    """The CRC32C of what came before, continued; begins with 0."""
    return int(google_crc32c.extend(crc, cast(bytes, content(records))))  # it accepts arrays, too


def slices(records: Records) -> Iterator[tuple[int, Records]]:
    """Number of the first record, and some records, of all of them."""
    for first in range(0, len(records), SLICE):
        yield first, records[first : first + SLICE]


@dataclass(frozen=True)
class FlowFile:
    """The contents of a file. The records of flows are mapped, not in memory."""

    flows: Records
    actions: Records
    saved_ms: int


def read_flow_file(path: Path) -> FlowFile:
    """Read and check all of it; UsageFault if it is not a valid file, OSError as from open(2)."""
    size = path.stat().st_size
    if size < RECORD_BYTES or size % RECORD_BYTES:
        raise UsageFault(f"{path} is not a file of flows: its size is not a multiple of {RECORD_BYTES} bytes")
    records = np.memmap(path, dtype=HEADER, mode="r")
    header = records[0]
    n_flows, n_actions = int(header["n_flows"]), int(header["n_actions"])
    check_header(path, records[:1], size)
    flows = records[1 : 1 + n_flows].view(FLOW)
    actions = records[1 + n_flows :].view(ACTION)
    crc = 0
    for first, some in slices(flows):
        check_flows(path, first, some, n_actions)
        crc = crc32c(crc, some)
    if crc32c(crc, actions) != header["records_crc"]:
        raise UsageFault(f"{path} is damaged: the checksum of its records differs; save it again")
    return FlowFile(flows, actions, int(header["saved_ms"]))


def check_header(path: Path, header: Records, size: int) -> None:
    """UsageFault if something in it is wrong."""
    one = header[0]
    if one["magic"].tobytes() != MAGIC:
        raise UsageFault(f"{path} is not a file of flows")
    if google_crc32c.value(header.tobytes()[:60]) != one["header_crc"]:
        raise UsageFault(f"{path} is damaged: the checksum of its header differs; save it again")
    if one["version"] != VERSION:
        raise UsageFault(f"{path} has version {one['version']}: expected {VERSION}; use the dl3 that wrote it")
    expected = RECORD_BYTES * (1 + int(one["n_flows"]) + int(one["n_actions"]))
    if size != expected:
        raise UsageFault(f"{path} has {size:,} bytes, its header says {expected:,}; save it again")
    if one["n_flows"] > MOST_FLOWS or one["n_actions"] > MOST_ACTIONS or any(one["zero"].tobytes()):
        raise UsageFault(f"{path}: invalid header")


def check_flows(path: Path, first: int, flows: Records, n_actions: int) -> None:
    """UsageFault names the first flow that is wrong, from 1 on. `first`: number of the first of these, from 0 on."""
    kind = flows["kind"]
    is_ipv4 = (kind & IS_IPV6) == 0
    is_padded = flows["src"][:, 4:].any(axis=1) | flows["dst"][:, 4:].any(axis=1)
    is_wrong = (kind & ~np.uint8(IS_IPV6 | LIFE_BITS)) != 0
    is_wrong |= ((kind & LIFE_BITS) > FIXED_END) | (flows["time_ms"] > MOST_MS)
    is_wrong |= (flows["action"] >= n_actions) | (is_ipv4 & is_padded)
    if is_wrong.any():
        raise UsageFault(f"{path}: flow {first + int(is_wrong.argmax()) + 1:,} is invalid")


NEVER_SAVED = 0  # as the time of saving: times of flows begin when the file is loaded


class FlowWriter:
    """Writes a file of flows beside its name, and renames it when it is complete; otherwise nothing remains of it."""

    def __init__(self, path: Path) -> None:
        self.path, self.beside = path, path.with_name(f".{path.name}.{os.getpid()}")
        self.n_flows = self._crc = 0
        try:
            self._file = self.beside.open("xb")
        except OSError as error:
            raise Fault(f"{path} cannot be written: {error.strerror or error}") from error
        self._file.write(bytes(RECORD_BYTES))

    def add(self, flows: Records) -> None:
        """More flows."""
        if self.n_flows + len(flows) > MOST_FLOWS:
            raise Fault(f"more than {MOST_FLOWS:,} flows do not fit into a file: make several")
        for _, some in slices(flows):
            self._crc = crc32c(self._crc, some)
            self._file.write(content(some).data)
        self.n_flows += len(flows)

    def finish(self, actions: Records, saved_ms: int) -> None:
        """Complete the file."""
        header = np.zeros(1, dtype=HEADER)
        header["magic"], header["version"] = np.void(MAGIC), VERSION
        header["n_flows"], header["n_actions"], header["saved_ms"] = self.n_flows, len(actions), saved_ms
        header["records_crc"] = crc32c(self._crc, actions)
        header["header_crc"] = google_crc32c.value(header.tobytes()[:60])
        self._file.write(actions.tobytes())
        self._file.seek(0)
        self._file.write(header.tobytes())
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self.beside.replace(self.path)

    def __enter__(self) -> "FlowWriter":
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _fault: BaseException | None, _trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):
            self._file.close()
        self.beside.unlink(missing_ok=True)
