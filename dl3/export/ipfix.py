"""IPFIX (RFC 7011): messages of flow records, their templates, and how packets were sampled (RFC 5477)."""

import struct
from collections.abc import Iterable, Iterator

from dl3.export.flows import Flow
from dl3.export.reasons import FORWARDED

VERSION = 10
TEMPLATES, OPTIONS_TEMPLATES = 2, 3
IP4_FLOWS, IP6_FLOWS, SAMPLING = 256, 257, 258
MESSAGE_BYTES = 1400
HEAD_BYTES, SET_HEAD_BYTES = 16, 4
MASK = 0xFFFFFFFF
RANDOM = 3  # selectorAlgorithm: random n-out-of-N
FRAMES, DROPS = 1, 2  # observation domains: each has a sampling of its own, which so is that of all of its flows

# Information elements and their lengths.
FIELDS = (
    *((7, 2), (11, 2), (4, 1), (5, 1), (6, 1), (58, 2), (10, 4), (89, 1)),  # ports to forwardingStatus
    *((1, 8), (2, 8), (152, 8), (153, 8), (136, 1)),  # octets to flowEndReason
)
AFTER_ADDRESSES = struct.Struct("!HHBBBHIBQQQQB")
ADDRESSES = {IP4_FLOWS: ((8, 4), (12, 4)), IP6_FLOWS: ((27, 16), (28, 16))}
# observationDomainId, its scope; selectorAlgorithm, samplingPacketInterval and -Space.
SAMPLING_FIELDS = ((149, 4), (304, 2), (305, 4), (306, 4))
SAMPLING_RECORD = struct.Struct("!IHII")


def set_of(number: int, body: bytes) -> bytes:
    """A set."""
    return struct.pack("!HH", number, SET_HEAD_BYTES + len(body)) + body


def template(number: int, fields: Iterable[tuple[int, int]]) -> bytes:
    """A template record."""
    listed = tuple(fields)
    return struct.pack("!HH", number, len(listed)) + b"".join(struct.pack("!HH", *field) for field in listed)


def templates() -> bytes:
    """The sets that describe all others."""
    flows = b"".join(template(number, (*ends, *FIELDS)) for number, ends in ADDRESSES.items())
    scope = struct.pack("!HHH", SAMPLING, len(SAMPLING_FIELDS), 1)
    options = scope + b"".join(struct.pack("!HH", *field) for field in SAMPLING_FIELDS)
    return set_of(TEMPLATES, flows) + set_of(OPTIONS_TEMPLATES, options)


def flow_record(flow: Flow) -> bytes:
    """A flow. Its counts are those of the samples."""
    key = flow.key
    rest = AFTER_ADDRESSES.pack(
        *(key.src_port, key.dst_port, key.protocol, key.tos, flow.tcp_flags, key.vlan, key.port, key.status),
        *(flow.bytes, flow.packets, flow.first_ms, flow.last_ms, flow.end),
    )
    return key.src + key.dst + rest


class Domain:
    """Makes the messages of an observation domain."""

    def __init__(self, number: int, sample: int) -> None:
        self._number, self._sample = number, sample
        self._records = 0  # sent before: the sequence number
        self._waiting: dict[int, list[bytes]] = {}
        self._bytes = 0

    def described(self, now_s: float) -> bytes:
        """A message of templates, and of how packets are sampled. Send it at the start, and again and again."""
        sampling = SAMPLING_RECORD.pack(self._number, RANDOM, 1, self._sample - 1)
        message = self._message(templates() + set_of(SAMPLING, sampling), now_s)
        self._records += 1
        return message

    def add(self, flow: Flow, now_s: float) -> Iterator[bytes]:
        """A flow. Messages that are full."""
        made = flow_record(flow)
        if self._bytes + len(made) > MESSAGE_BYTES - HEAD_BYTES - 2 * SET_HEAD_BYTES:
            yield from self.rest(now_s)
        number = IP4_FLOWS if len(flow.key.src) == 4 else IP6_FLOWS
        self._waiting.setdefault(number, []).append(made)
        self._bytes += len(made)

    def rest(self, now_s: float) -> Iterator[bytes]:
        """The message that is not full."""
        if not self._waiting:
            return
        body = b"".join(set_of(number, b"".join(records)) for number, records in self._waiting.items())
        yield self._message(body, now_s)
        self._records += sum(map(len, self._waiting.values()))
        self._waiting, self._bytes = {}, 0

    def _message(self, body: bytes, now_s: float) -> bytes:
        length = HEAD_BYTES + len(body)
        return struct.pack("!HHIII", VERSION, length, int(now_s) & MASK, self._records & MASK, self._number) + body


class Messages:
    """Makes the messages of both domains."""

    def __init__(self, sample: int, sample_drops: int) -> None:
        self._domains = {FRAMES: Domain(FRAMES, sample), DROPS: Domain(DROPS, sample_drops)}

    def described(self, now_s: float) -> Iterator[bytes]:
        """What precedes all flows."""
        for domain in self._domains.values():
            yield domain.described(now_s)

    def add(self, flow: Flow, now_s: float) -> Iterator[bytes]:
        """A flow. Messages that are full."""
        return self._domains[FRAMES if flow.key.status == FORWARDED else DROPS].add(flow, now_s)

    def rest(self, now_s: float) -> Iterator[bytes]:
        """Those that are not full."""
        for domain in self._domains.values():
            yield from domain.rest(now_s)
