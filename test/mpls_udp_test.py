"""Two routers with a tunnel of MPLS over UDP between them, from the file of routes: packets of hosts behind them go both
ways, and 'dl3 show' and 'dl3 trace' tell how. One of MPLS over GRE beside it."""

import struct
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from harness.frames import ip4, ip6, on
from harness.wired import Port, WiredForwarder, host_mac, port_mac
from scapy.contrib.mpls import MPLS
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import GRE, Ether
from typer.testing import CliRunner

from dl3.cli.main import app
from dl3.model.fault import Fault

ENDS = ("10.0.2.1", "10.0.2.2")
ENDS6 = ("2001:db8:2::1", "2001:db8:2::2")


def _ports(which: int) -> list[Port]:
    return [
        Port("host", keys={"addresses": [f"10.5{which}.1.1/24", f"2001:db8:5{which}::1/64"]}),
        Port("net", keys={"addresses": [f"{ENDS[which]}/24", f"{ENDS6[which]}/64"]}),
    ]


def _routes(which: int) -> list[str]:
    """Of router 0 or 1: hosts behind the other one are reached by labels that it pops."""
    here, there = which, 1 - which
    return [
        f"10.1{here}.0.0/16 via 10.5{here}.1.2 dev host",
        f"10.1{there}.0.0/16 encap mpls-udp label 10{there}/200 remote {ENDS[there]}",
        f"10.2{here}.0.0/16 via 10.5{here}.1.2 dev host",
        f"10.2{there}.0.0/16 encap gre label 10{there} remote {ENDS[there]} key 7",
        f"2001:db8:1{here}::/48 via 2001:db8:5{here}::2 dev host",
        f"2001:db8:1{there}::/48 encap mpls-udp label 10{there} remote {ENDS6[there]}",
        f"mpls 10{here} pop",
        "mpls 200 pop",
        f"mpls 30{here} encap mpls-udp label 10{there} remote {ENDS[there]}",
    ]


def _neighbours(which: int) -> list[str]:
    return [
        f"10.5{which}.1.2 lladdr {host_mac(0)} dev host",
        f"2001:db8:5{which}::2 lladdr {host_mac(0)} dev host",
        f"{ENDS[1 - which]} lladdr {port_mac(1)} dev net",
        f"{ENDS6[1 - which]} lladdr {port_mac(1)} dev net",
    ]


@pytest.fixture(scope="module")
def routers() -> Iterator[list[WiredForwarder]]:
    with ExitStack() as stack:
        yield [
            stack.enter_context(WiredForwarder(_ports(i), routes=_routes(i), neighbours=_neighbours(i))) for i in (0, 1)
        ]


def _dl3(router: WiredForwarder, *words: str) -> str:
    done = CliRunner().invoke(app, [*words, "--socket", str(router.dl3d.socket)], terminal_width=200)
    assert done.exit_code == 0, (done.stdout, done.exception)
    return done.stdout


def _carried(sender: WiredForwarder, frame: bytes) -> bytes:
    """What a router sends to the other one for a frame of its host, as it arrives there: both have the same MACs."""
    sender.wires["host"].send(frame)
    sent = sender.wires["net"].receive(60.0)
    assert sent is not None
    sender.settle(0)
    return sent


def _delivered(receiver: WiredForwarder, outer: bytes) -> bytes:
    receiver.wires["net"].send(outer)
    left = receiver.wires["host"].receive(60.0)
    assert left is not None
    receiver.settle(0)
    return left


KINDS = {
    "10.1{}.3.4": (UDP, [100, 200]),
    "10.2{}.3.4": (GRE, [100]),
    "2001:db8:1{}::9": (UDP, [100]),
}


@pytest.mark.parametrize("to", KINDS)
@pytest.mark.parametrize("sender", [0, 1])
def a_packet_comes_out_at_the_other_end(routers: list[WiredForwarder], sender: int, to: str) -> None:
    carrier, labels = KINDS[to]
    other = 1 - sender
    make, kind = (ip6, IPv6) if ":" in to else (ip4, IP)
    frame = on(0, make(to.format(other)))
    outer = Ether(_carried(routers[sender], frame))
    assert type(outer[kind].payload) is carrier or type(outer.payload.payload) is carrier
    found = [layer for layer in outer.iterpayloads() if type(layer) is MPLS]
    assert [layer.label for layer in found] == [labels[0] + other, *labels[1:]]
    assert {layer.ttl for layer in found} == {63}
    if carrier is UDP:
        assert outer[UDP].dport == 6635
        assert outer[UDP].sport >= 49152
        assert bool(outer[UDP].chksum) == (kind is IPv6)
    else:
        assert (outer[GRE].proto, outer[GRE].key) == (0x8847, 7)
    left = Ether(_delivered(routers[other], bytes(outer)))
    ttl = left[kind].ttl if kind is IP else left[kind].hlim
    assert ttl == 62
    assert bytes(left[kind].payload) == bytes(Ether(frame)[kind].payload)


def _labelled(label: int, to: str) -> bytes:
    frame = on(0, ip4(to))
    return frame[:12] + b"\x88\x47" + struct.pack("!I", label << 12 | 1 << 8 | 9) + frame[14:]


def labels_are_swapped_into_the_tunnel(routers: list[WiredForwarder]) -> None:
    outer = _carried(routers[0], _labelled(300, "10.11.0.5"))
    assert (Ether(outer)[MPLS].label, Ether(outer)[MPLS].ttl) == (101, 8)
    assert Ether(_delivered(routers[1], outer))[IP].ttl == 7


def the_way_is_shown(routers: list[WiredForwarder]) -> None:
    text = _dl3(routers[0], "show", "route", "10.11.3.4")
    for words in ("101/200", f"mpls-udp-{ENDS[1]}", f"{ENDS[1]}, by route 10.0.2.0/24", "dev net", port_mac(1)):
        assert words in text, text
    tunnels = routers[0].dl3d.call("tunnels")["tunnels"]
    assert {one["name"] for one in tunnels} == {f"mpls-udp-{ENDS[1]}", f"mpls-udp-{ENDS6[1]}", f"gre-{ENDS[1]}"}
    assert f"mpls-udp-{ENDS[1]}" in _dl3(routers[0], "show", "tunnels")


MISTAKES = {
    "mpls 3 pop": "label 3 is reserved (RFC 3032, 2.1)",
    "mpls 1048576 pop": 'invalid label "1048576"',
    f"10.99.0.0/16 encap mpls-udp label 5 remote {ENDS[1]}": "label 5 is reserved (RFC 3032, 2.1) and cannot be pushed",
    f"10.99.0.0/16 encap mpls-udp label 1048576 remote {ENDS[1]}": 'invalid label "1048576"',
    f"10.99.0.0/16 encap mpls-udp label 16 remote {ENDS[0]}": "is an address of the router itself",
    "10.99.0.0/16 encap mpls-udp label 16 remote 203.0.113.9": "is the remote end of a tunnel and has no route to a port",
    f"10.99.0.0/16 encap mpls-udp label 16 remote {ENDS[1]} checksum on": "is the remote end of a tunnel with the same ends",
}


@pytest.mark.parametrize("line", MISTAKES)
def a_mistake_at_a_reload_is_one_sentence_and_changes_nothing(routers: list[WiredForwarder], line: str) -> None:
    file, before = routers[0].dl3d.file, [routers[0].dl3d.call(method) for method in ("tunnels", "labels")]
    text = file.read_text()
    file.write_text(text.replace("routes:\n", f"routes:\n- 10.98.0.0/16 encap gre remote {ENDS[1]} key 9\n- {line}\n"))
    try:
        with pytest.raises(Fault) as refused:
            routers[0].dl3d.call("reload")
    finally:
        file.write_text(text)
    assert MISTAKES[line] in str(refused.value)
    assert "\n" not in str(refused.value)
    assert [routers[0].dl3d.call(method) for method in ("tunnels", "labels")] == before


def both_ends_are_traced(routers: list[WiredForwarder]) -> None:
    frame = on(0, ip4("10.11.3.4"))
    into = _dl3(routers[0], "trace", "--hex", frame.hex(), "-i", "host")
    assert f"MPLS labels pushed: 101/200; in a packet from {ENDS[0]} to {ENDS[1]}" in into, into
    assert f"into tunnel mpls-udp-{ENDS[1]}" in into, into
    outer = _carried(routers[0], frame)
    out_of = _dl3(routers[1], "trace", "--hex", outer.hex(), "-i", "net")
    assert f"taken out of tunnel mpls-udp-{ENDS[0]}: IPv4, VRF main, TTL 63" in out_of, out_of
    assert "longest prefix 10.0.2.2/32 (local)" in out_of, out_of
    assert "longest prefix 10.11.0.0/16" in out_of, out_of
    assert "please report" not in out_of, out_of
    assert "verdict: sent by port host" in out_of, out_of
    unknown = bytearray(outer)
    unknown[42:46] = struct.pack("!I", 999 << 12 | 63)
    assert "verdict: dropped as mpls_unknown" in _dl3(routers[1], "trace", "--hex", unknown.hex(), "-i", "net")
