"""Devices that shape subscribers: dl3d with its shaper, Linux with htb and fq_codel, or one that is configured already."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Address
from pathlib import Path

from dl3.dut import dl3d, external, linux
from dl3.dut.kind import Kind
from dl3.dut.linux import FAIR_QUEUE, PLAIN_QUEUE, Linux
from dl3.lab.links import ENDS, NAMES
from dl3.model.campaign import DutSpec
from dl3.model.fault import UsageFault

DL3D, TC, EXTERNAL = "dl3d", "tc", "external"
DEVICES = (DL3D, TC, EXTERNAL)
LEAST_BPS, MOST_BPS = 64_000.0, 400e9
FIRST = ENDS[1].first_ip4
MTU_BYTES = 1538  # a frame of 1500 bytes of IP, with preamble and gap
BURST_S, LIMIT_S, LIMIT_FRAMES = 0.001, 0.2, 10  # dl3d's defaults
LEAST_HELD, MOST_HELD, HELD_EACH = 1 << 14, 1 << 18, 32
HELD_BYTES = 2560  # of packet memory for a packet that waits
OWN_MIB = 256
QUEUES = {FAIR_QUEUE: "fq_codel flows 16", PLAIN_QUEUE: "bfifo limit {limit}"}  # 16 as dl3d has them
FCS_BYTES = 4  # which Linux does not count


@dataclass(frozen=True)
class Block:
    """Subscribers one after the other, with the same rate."""

    first: int
    number: int
    bps: float


@dataclass(frozen=True)
class Subscribers:
    """Each has one address, one after the other; equal parts of them have the rates. At least one for each rate."""

    number: int
    rates_bps: tuple[float, ...]

    def blocks(self) -> list[Block]:
        """The parts."""
        edges = [self.number * i // len(self.rates_bps) for i in range(len(self.rates_bps) + 1)]
        return [Block(edges[i], edges[i + 1] - edges[i], bps) for i, bps in enumerate(self.rates_bps)]

    def each(self) -> Iterator[tuple[int, int, float]]:
        """Number of the subscriber, of its block, and its rate."""
        for place, block in enumerate(self.blocks()):
            for number in range(block.first, block.first + block.number):
                yield number, place, block.bps

    @property
    def held_packets(self) -> int:
        """How many packets of all may wait."""
        return min(max(LEAST_HELD, HELD_EACH * self.number), MOST_HELD)

    @property
    def memory_mib(self) -> int:
        """Memory of dl3d for packets."""
        return OWN_MIB + (self.held_packets * HELD_BYTES >> 20)

    @property
    def bridged_us(self) -> float:
        """The longest stall of a shaper after which it still sends all that the rates allow: the burst bridges it."""
        return min(burst_bytes(bps) * 8e6 / bps for bps in self.rates_bps)


def burst_bytes(bps: float) -> int:
    """What may leave at once after a pause: dl3d's default, and the same for Linux."""
    return max(2 * MTU_BYTES, round(bps / 8 * BURST_S))


def address(number: int, first: str = FIRST) -> str:
    """Of a subscriber."""
    return str(IPv4Address(first) + number)


def qos_keys(subscribers: Subscribers, folder: Path) -> dict[str, object]:
    """The key `qos` of dl3d's configuration, and the file that it names."""
    path = folder / "subscribers"
    path.write_text(
        "".join(f"s{n} number {n + 1} down p{place} address {address(n)}\n" for n, place, _ in subscribers.each()),
        encoding="ascii",
    )
    profiles = [f"p{i} shape {bps:.0f}bit/s" for i, bps in enumerate(subscribers.rates_bps)]
    return {"qos": {"held_packets": subscribers.held_packets, "profiles": profiles, "file": str(path)}}


def filter_lines(subscribers: Subscribers) -> Iterator[str]:
    """Filters that find the class in two steps, by the last two bytes of the destination: 64,000 in a list would not do."""
    head = f"filter add dev {NAMES[1]} parent 1: protocol ip prio 1"
    network = IPv4Address(int(IPv4Address(FIRST)) & 0xFFFF0000)
    yield f"{head} handle 1: u32 divisor 256"
    thirds = dict.fromkeys(int(IPv4Address(address(n))) >> 8 & 255 for n in range(subscribers.number))
    for third in thirds:
        yield f"{head} handle {third + 2:x}: u32 divisor 256"
        part = network + (third << 8)
        yield f"{head} u32 ht 1:{third:x}: match ip dst {part}/24 hashkey mask 0x000000ff at 16 link {third + 2:x}:"
    yield f"{head} u32 ht 800:: match ip dst {network}/16 hashkey mask 0x0000ff00 at 16 link 1:"
    for n in range(subscribers.number):
        last = int(IPv4Address(address(n)))
        place = f"{(last >> 8 & 255) + 2:x}:{last & 255:x}:"
        yield f"{head} u32 ht {place} match ip dst {address(n)}/32 flowid 1:{n + 1:x}"


def tc_lines(subscribers: Subscribers, queue: str) -> Iterator[str]:
    """What `tc -batch` is told: a class for each subscriber below one for all, and a queue in each."""
    port, words = NAMES[1], f"overhead {FCS_BYTES} linklayer ethernet"
    yield f"qdisc add dev {port} root handle 1: htb default 0"
    yield f"class add dev {port} parent 1: classid 1:ffff htb rate 400gbit quantum 60000 {words}"
    for n, _, bps in subscribers.each():
        rate, burst = f"{bps:.0f}bit", burst_bytes(bps)
        bucket = f"rate {rate} ceil {rate} burst {burst} cburst {burst} quantum 1518"
        yield f"class add dev {port} parent 1:ffff classid 1:{n + 1:x} htb {bucket} {words}"
        limit = max(LIMIT_FRAMES * MTU_BYTES, round(bps / 8 * LIMIT_S))
        yield f"qdisc add dev {port} parent 1:{n + 1:x} handle {n + 2:x}: {QUEUES[queue].format(limit=limit)}"
    yield from filter_lines(subscribers)


def kind_of(spec: DutSpec, subscribers: Subscribers, folder: Path) -> Kind:
    """A kind of device with these subscribers; `folder` is for its files. UsageFault if there is no such device."""
    if spec.kind == DL3D:
        keys = qos_keys(subscribers, folder)
        return replace(dl3d.KIND, for_traffic=lambda dut, *_: replace(dut, more=keys))
    if spec.kind == TC:
        return replace(linux.KIND, for_traffic=lambda *_: Linux(shaper=lambda queue: tc_lines(subscribers, queue)))
    if spec.kind == EXTERNAL:
        return external.KIND
    raise UsageFault(f"--device {spec.name}: expected one of {', '.join(DEVICES)}")


def queue_of(facts: Mapping[str, object]) -> str:
    """What a device queues with, from the facts of its testbed."""
    about = facts.get("dut")
    found = about.get("configuration") if isinstance(about, Mapping) else None
    if not isinstance(found, Mapping):
        return ""
    return FAIR_QUEUE if "qos" in found else str(found.get("queue", ""))


def check_rates(text: str, rates_bps: Sequence[float]) -> None:
    """UsageFault for a rate that cannot be shaped."""
    for bps in rates_bps:
        if not LEAST_BPS <= bps <= MOST_BPS:
            raise UsageFault(f"--rate {text}: {bps:g} bit/s; a subscriber is shaped to 64kbit/s to 400Gbit/s")
