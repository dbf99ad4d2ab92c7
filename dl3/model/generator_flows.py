"""The flows of dl3gen's streams, recomputed independently of its code: tuples, the flow of each frame, expected actions.

The formulas are those of docs/guide/generator.md, applied to whole columns of numpy.
"""

import ipaddress
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

MOST_FLOWS = 1 << 24
FRAMES_AT_ONCE = 1 << 20
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
# Strides of fields in scattered order, as shares of their counts.
SHARES = [(5**0.5 - 1) / 2, *(root**0.5 - int(root**0.5) for root in (2, 3, 7, 11, 13, 17, 19, 23))]
FIELDS = {
    "src_mac": "02:00:00:00:00:01",
    "dst_mac": "02:00:00:00:00:01",
    "src_ip": "198.18.0.1",
    "dst_ip": "198.19.0.1",
    "src_port": 49152,
    "dst_port": 9,
}
ENCAP_FIELDS = (
    "id",
    "inner_src_mac",
    "inner_dst_mac",
)  # of `encap`, after those; "id": the last label, the VNI or the key
FIRST_6 = {"src_ip": "2001:2:0:1::1", "dst_ip": "2001:2:0:2::1"}

U8 = npt.NDArray[np.uint8]
U16 = npt.NDArray[np.uint16]
U32 = npt.NDArray[np.uint32]
U64 = npt.NDArray[np.uint64]
Stream = Mapping[str, Any]


def mixed(words: U64) -> U64:
    """All bits of each word mixed, as in SplitMix64."""
    words = (words ^ words >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ words >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return words ^ words >> np.uint64(31)


def drawn(key: int, numbers: U64) -> U64:
    """A word for each number, by a key."""
    return mixed(mixed(np.array([key], np.uint64)) + numbers * GOLDEN)


def scaled(words: U64, n: int) -> U64:
    """Words of 32 bits to numbers below n."""
    return words * np.uint64(n) >> np.uint64(32)


def flows_of(stream: Stream, numbers: U64) -> U32:
    """The flow of each frame, by its sequence number."""
    n = n_flows(stream)
    if stream.get("distribution", "sequential") == "sequential":
        return (numbers % np.uint64(n)).astype(np.uint32)
    if stream["distribution"] != "uniform":
        raise ValueError("flows by Zipf's law are not computed here")
    words = drawn(stream.get("seed", 1), numbers)
    low = (words & np.uint64(0xFFFFFFFF)) * np.uint64(n) >> np.uint64(32)
    return (((words >> np.uint64(32)) * np.uint64(n) + low) >> np.uint64(32)).astype(np.uint32)


def numbers_up_to(n: int) -> Iterator[U64]:
    """The sequence numbers of n frames, in pieces."""
    for first in range(0, n, FRAMES_AT_ONCE):
        yield np.arange(first, min(first + FRAMES_AT_ONCE, n), dtype=np.uint64)


def frames_per_flow(stream: Stream, n: int) -> U64:
    """How many of the first n frames belong to each flow."""
    counts = np.zeros(n_flows(stream), np.uint64)
    for numbers in numbers_up_to(n):
        counts += np.bincount(flows_of(stream, numbers), minlength=len(counts)).astype(np.uint64)
    return counts


def bytes_per_flow(stream: Stream, n: int, less: int = 4) -> U64:
    """How many bytes of the first n frames belong to each flow; each frame counts `less` bytes less, such as its FCS."""
    sizes = np.array(size_round(stream.get("size", 64)), np.float64) - less
    total = np.zeros(n_flows(stream), np.float64)
    for numbers in numbers_up_to(n):
        weights = sizes[(numbers % np.uint64(len(sizes))).astype(np.int64)]
        total += np.bincount(flows_of(stream, numbers), weights, len(total))
    return total.astype(np.uint64)


def size_round(size: int | list[dict[str, int]]) -> list[int]:
    """The sizes of consecutive frames until they repeat: each size is spread evenly."""
    if isinstance(size, int):
        return [size]
    weights = [int(each["weight"]) for each in size]
    total, owed = sum(weights), [0] * len(weights)
    order = []
    for _ in range(total // math.gcd(*weights)):
        owed = [one + weight for one, weight in zip(owed, weights, strict=True)]
        most = owed.index(max(owed))
        owed[most] -= total
        order.append(int(size[most]["size"]))
    return order


@dataclass(frozen=True)
class Digit:
    """A field with several values."""

    name: str
    count: int
    is_random: bool


def digits(stream: Stream) -> list[Digit]:
    """The fields with several values, in the order of the guide."""
    encap = {**stream.get("encap", {}), "id": encap_id(stream)}
    fields = [(name, stream.get(name)) for name in FIELDS] + [
        (f"encap.{name}", encap.get(name)) for name in ENCAP_FIELDS
    ]
    given = [(name, value) for name, value in fields if isinstance(value, Mapping)]
    found = [Digit(name, value["count"], value.get("random", False)) for name, value in given]
    return [digit for digit in found if digit.count > 1]


def encap_id(stream: Stream) -> Any:
    """The last label, the VNI or the key of a stream's encapsulation as it is written; 0 if there is none."""
    encap = stream.get("encap", {})
    labels = encap.get("labels", [])
    last = labels[-1:] if isinstance(labels, list) else [labels]
    return last[0] if last else encap.get("vni", encap.get("key", 0))


def encap_ids(stream: Stream, flow: U64) -> U64:
    """The last label, the VNI or the key of these flows of a stream."""
    value = encap_id(stream)
    first = value["first"] if isinstance(value, Mapping) else value
    made: U64 = int(first) + offsets(stream, flow).get("encap.id", np.zeros(len(flow), np.uint64))
    return made


def n_flows(stream: Stream) -> int:
    """The number of flows of a stream."""
    return int(stream.get("flows", min(MOST_FLOWS, math.prod(digit.count for digit in digits(stream)))))


def strides(counts: list[int]) -> list[int]:
    """The step of each field in scattered order: together coprime to the number of their combinations."""
    made = [int(count * share) for count, share in zip(counts, SHARES, strict=False)]

    def is_coprime() -> bool:
        whole = 0
        for count, stride in zip(reversed(counts), reversed(made), strict=True):
            whole = whole * count + stride
        return math.gcd(whole, math.prod(counts)) == 1

    while not is_coprime():
        for i, count in enumerate(counts):
            made[i] += 1
            if made[i] < count:
                break
            made[i] = 0
    return made


def offsets(stream: Stream, flow: U64) -> dict[str, U64]:
    """For each field with several values: by how much it exceeds the first value, for each of these flows."""
    counting = [digit for digit in digits(stream) if not digit.is_random]
    scattered = [digit for digit in digits(stream) if digit.is_random]
    made = {}
    left = flow
    for digit in counting:
        made[digit.name] = left % np.uint64(digit.count)
        left = left // np.uint64(digit.count)
    n_counted = math.prod(digit.count for digit in counting)
    n_scattered = math.prod(digit.count for digit in scattered)
    times = flow
    if max(n_counted, n_scattered) <= MOST_FLOWS:
        times = flow + flow // np.uint64(math.lcm(n_counted, n_scattered))
    carry = np.zeros_like(flow)
    for digit, stride in zip(scattered, strides([digit.count for digit in scattered]), strict=True):
        total = times * np.uint64(stride) + carry
        made[digit.name] = total % np.uint64(digit.count)
        carry = total // np.uint64(digit.count)
    return made


@dataclass(frozen=True)
class Tuples:
    """What identifies flows of a stream. Addresses have 4 or 16 bytes."""

    protocol: int
    src: U8
    dst: U8
    src_port: U16
    dst_port: U16


def first_of(stream: Stream, name: str, is_ip6: bool) -> Any:
    """The first value of a field."""
    value = stream.get(name, FIRST_6.get(name, FIELDS[name]) if is_ip6 else FIELDS[name])
    return value["first"] if isinstance(value, Mapping) else value


def tuples(stream: Stream, flow: U64) -> Tuples:
    """The addresses, ports and protocol of these flows of a stream."""
    made, n = offsets(stream, flow), len(flow)
    is_ip6 = any(":" in str(first_of(stream, name, False)) for name in FIRST_6)

    def addresses(name: str) -> U8:
        first = ipaddress.ip_address(first_of(stream, name, is_ip6)).packed
        low = int.from_bytes(first[-4:]) + made.get(name, np.zeros(n, np.uint64))
        whole = np.empty((n, len(first)), np.uint8)
        whole[:] = np.frombuffer(first, np.uint8)
        whole[:, -4:] = low.astype(">u4").view(np.uint8).reshape(n, 4)
        return whole

    def ports(name: str) -> U16:
        low: U64 = int(first_of(stream, name, is_ip6)) + made.get(name, np.zeros(n, np.uint64))
        return low.astype(np.uint16)

    protocol = 6 if stream.get("protocol") == "tcp" else 17
    return Tuples(protocol, addresses("src_ip"), addresses("dst_ip"), ports("src_port"), ports("dst_port"))


@dataclass(frozen=True)
class Actions:
    """The action expected of each flow: places in the stream's lists of ports and DSCPs."""

    port: U8
    dscp: U8


def actions(secret: int, flow: U64, n_ports: int, n_dscps: int) -> Actions:
    """The expected actions of these flows."""
    words = drawn(secret, flow)
    port = scaled(words >> np.uint64(32), n_ports)
    return Actions(port.astype(np.uint8), scaled(words & np.uint64(0xFFFFFFFF), n_dscps).astype(np.uint8))


def expected(stream: Stream, flow: U64, key: str = "expect") -> Actions:
    """The actions that a stream expects of these flows by its secret, or, with key 'alternative', by its other one."""
    expect = stream["expect"]
    secret = expect["secret"] if key == "expect" else expect[key]["secret"]
    return actions(secret, flow, len(expect.get("ports", [stream["to"]])), len(expect.get("dscps", [0])))


def read_counts(data: bytes) -> U64:
    """The file that dl3gen's method flow_counts writes."""
    return np.frombuffer(data, "<u4").astype(np.uint64)
