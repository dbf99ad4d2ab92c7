"""Other port configurations: cross-connects, jumbo frames, several workers."""

from collections.abc import Iterator

import pytest
from harness.frames import forwarded, ip4, ip6, on
from harness.wired import JUMBO_OPTIONS, Port, WiredForwarder, host_mac, port_mac


def _exchange(wired: WiredForwarder, source: str, frame: bytes, target: str) -> bytes | None:
    """Send one frame, wait for the accounting to balance, and return what came out at `target`."""
    before = wired.account().received
    wired.wires[source].send(frame)
    wired.settle(before + 1)
    return wired.wires[target].receive(60.0)


@pytest.fixture(scope="module")
def crossed() -> Iterator[WiredForwarder]:
    """a and b are cross-connected unchanged, c and d with rewritten MACs; d has a peer configured, c has none."""
    tied = {"mode": "xconnect"}
    ports = [
        Port("a", keys=tied | {"to": "b"}),
        Port("b", keys=tied | {"to": "a"}),
        Port("c", keys=tied | {"to": "d", "mac": "update"}),
        Port("d", keys=tied | {"to": "c", "mac": "update", "peer": host_mac(3)}),
    ]
    with WiredForwarder(ports) as made:
        yield made


FRAMES = [
    on(0, ip4("10.2.0.1", ttl=1)),
    on(0, ip6("2001:db8::1"), dst="ff:ff:ff:ff:ff:ff"),
    on(0, ip4("10.2.0.1", payload=1472)),
    on(0, ip4("10.2.0.1", payload=472, flags="MF", id=7)),
    on(0, ip4("10.2.0.1", frag=60, id=7)),
    bytes.fromhex("0180c200000002000000010188cc") + bytes(46),
    bytes.fromhex("020000000101020000000002810000050800") + bytes(46),
]


@pytest.mark.parametrize("frame", FRAMES, ids=lambda frame: f"{len(frame)}_bytes")
def a_plain_crossconnect_changes_no_byte(crossed: WiredForwarder, frame: bytes) -> None:
    assert _exchange(crossed, "a", frame, "b") == frame
    assert _exchange(crossed, "b", frame, "a") == frame


def a_crossconnect_rewrites_macs_when_configured(crossed: WiredForwarder) -> None:
    frame = on(2, ip4("10.2.0.1", ttl=1))
    to_d = bytes.fromhex((host_mac(3) + port_mac(3)).replace(":", ""))
    to_c = bytes.fromhex(("02:00:00:00:00:02" + port_mac(2)).replace(":", ""))
    assert _exchange(crossed, "c", frame, "d") == to_d + frame[12:]
    assert _exchange(crossed, "d", frame, "c") == to_c + frame[12:]


@pytest.fixture(scope="module", params=[JUMBO_OPTIONS, "framesz=12288,blocksz=12288"])
def jumbo(request: pytest.FixtureRequest) -> Iterator[WiredForwarder]:
    """Two ports with an MTU of 9000; their buffers just fit it, or have the size that dl3d recommends."""
    device = "net_af_packet{index},iface={name}," + request.param
    ports = [Port(name, mtu=9000, device=device) for name in ("a", "b")]
    routes = ["10.2.0.0/16 via 10.0.2.2 dev b", "2001:db8:22::/48 via 2001:db8:2::2 dev b"]
    neighbours = [f"{address} lladdr {host_mac(1)} dev b" for address in ("10.0.2.2", "2001:db8:2::2")]
    with WiredForwarder(ports, routes=routes, neighbours=neighbours) as made:
        yield made


@pytest.mark.parametrize("length", [1500, 2000, 2048, 4096, 8999, 9000])
def a_jumbo_frame_is_forwarded_whole(jumbo: WiredForwarder, length: int) -> None:
    for frame in (on(0, ip4("10.2.0.1", payload=length - 28)), on(0, ip6("2001:db8:22::1", payload=length - 48))):
        assert len(frame) == length + 14
        assert _exchange(jumbo, "a", frame, "b") == forwarded(frame, 1)


def fragments_are_forwarded_one_by_one(jumbo: WiredForwarder) -> None:
    for fields in ({"flags": "MF"}, {"frag": 60}):
        frame = on(0, ip4("10.2.0.1", payload=472, id=8, **fields))
        assert _exchange(jumbo, "a", frame, "b") == forwarded(frame, 1)


def a_priority_tag_is_removed(jumbo: WiredForwarder) -> None:
    frame = on(0, ip4("10.2.0.1"))
    tagged = frame[:12] + bytes.fromhex("8100e000") + frame[12:]
    assert _exchange(jumbo, "a", tagged, "b") == forwarded(frame, 1)
