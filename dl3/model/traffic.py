"""Builds the streams of a traffic definition between given generator ports."""

from collections.abc import Sequence

from dl3.model.campaign import Direction, Traffic
from dl3.model.fault import UsageFault
from dl3.model.noun import Noun
from dl3.model.stream import Stream
from dl3.model.white_paper import DST_PORT, SOURCE_TEXT, SRC_PORT

HOSTS = 65_024  # number of addresses that a stream iterates over in one network
FIRST_PORT = 1024
STAMP_PORT = 4791
CATCH_UP = 16_384  # frames, one ring of the testbed: hypervisors preempt virtual cores for up to a few ms
NUMBER_OF_PAIR = 2


class End(Noun):
    """A generator port and the addresses behind it, as seen by the device under test."""

    port: str  # port name in dl3gen's configuration file
    mac: str
    gateway_mac: str  # of the device port on the same wire: the next hop of frames sent here
    first_ip4: str = ""  # first of HOSTS addresses that the device reaches through this port
    first_ip6: str = ""
    first_of_white_paper: str = ""  # first destination of the white paper's flows to this port


def pairs_of(direction: Direction, n: int) -> list[tuple[int, int]]:
    """Sender and receiver pairs among `n` ends (RFC 2285, 3.2 and 3.3).

    Either pairwise, from even to odd end or in both directions, or full mesh; with two ends meshed equals
    bidirectional.
    """
    if n < NUMBER_OF_PAIR or (direction != "meshed" and n % NUMBER_OF_PAIR):
        raise UsageFault(f"{direction} traffic between {n} ports: expected an even number of ports, at least two")
    if direction == "meshed":
        return [(i, j) for i in range(n) for j in range(n) if i != j]
    there = [(i, i + 1) for i in range(0, n, NUMBER_OF_PAIR)]
    return there if direction == "unidirectional" else [pair for i, j in there for pair in ((i, j), (j, i))]


def name_of(start: int, end: int, n: int) -> str:
    """Name of a stream: 'east' and 'west' between two ends."""
    return ("east", "west")[start] if n == NUMBER_OF_PAIR else f"{start}-to-{end}"


def flows_of(traffic: Traffic, first: str) -> dict[str, object]:
    """The fields that define the flows, destination addresses first, then source ports, and the order of the flows."""
    order: dict[str, object] = {"distribution": traffic.distribution} if traffic.flows > 1 else {}
    if traffic.addresses == "white-paper":
        destinations = {"first": first, "count": traffic.flows}
        return order | {"dst_ip": destinations, "src_port": SRC_PORT, "dst_port": DST_PORT, "flows": traffic.flows}
    hosts = min(traffic.flows, HOSTS)
    ports = -(-traffic.flows // hosts)
    return order | {
        "dst_ip": {"first": first, "count": hosts},
        "src_port": {"first": FIRST_PORT, "count": ports},
        "dst_port": STAMP_PORT,
        "flows": traffic.flows,
    }


def between(traffic: Traffic, start: End, end: End) -> tuple[str, str]:
    """Source and first destination of the flows from one end to another; '' if the testbed has none."""
    if traffic.addresses == "white-paper":
        return SOURCE_TEXT, end.first_of_white_paper if traffic.family == "ipv4" else ""
    return (start.first_ip6, end.first_ip6) if traffic.family == "ipv6" else (start.first_ip4, end.first_ip4)


def stream_between(traffic: Traffic, start: End, end: End, name: str) -> Stream:
    """The stream of one direction. All streams get the same rate, so that they share the load equally."""
    source, destination = between(traffic, start, end)
    if not source or not destination:
        scheme = "" if traffic.addresses == "networks" else f" of the {traffic.addresses}"
        raise UsageFault(
            f"{traffic.family}{scheme} between {start.port} and {end.port}: this testbed has no such addresses"
        )
    head = {"name": name, "from": start.port, "to": end.port, "src_mac": start.mac, "dst_mac": start.gateway_mac}
    tail = {"src_ip": source, "catch_up": CATCH_UP, "rate": "1 Mpps"}
    return Stream.model_validate({**head, **tail, **flows_of(traffic, destination)})


def streams_for(traffic: Traffic, ends: Sequence[End]) -> tuple[Stream, ...]:
    """The streams of a traffic definition between these ends, or the user's own, which dl3gen validates."""
    if traffic.streams:
        return tuple(Stream.model_validate(written) for written in traffic.streams)
    pairs = pairs_of(traffic.direction, len(ends))
    made = [stream_between(traffic, ends[i], ends[j], name_of(i, j, len(ends))) for i, j in pairs]
    if traffic.flows == 1 or traffic.distribution == "sequential":
        return tuple(made)
    # Each stream has its own order of flows, the same on every run.
    return tuple(Stream.model_validate({**one.written(), "seed": seed}) for seed, one in enumerate(made, 1))
