"""MPLS from the file of routes: push, swap, pop, as 'dl3 show' and 'dl3 trace' tell it, and sentences for mistakes."""

import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness.frames import forwarded, ip4, ip6, on
from harness.wired import DL3D, Port, WiredForwarder, config_text, host_mac, port_mac
from typer.testing import CliRunner

from dl3.cli.main import app

PORTS = [
    Port("a", keys={"addresses": ["10.0.1.1/24", "2001:db8:1::1/64"]}),
    Port("b", keys={"addresses": ["10.0.2.1/24", "2001:db8:2::1/64"]}),
]
ROUTES = [
    "10.2.0.0/16 via 10.0.2.2 dev b",
    "10.60.0.0/16 via 10.0.2.2 dev b label 100/200",
    "10.61.0.0/16 via 10.0.2.2 dev b label 100 ttl 9",
    "2001:db8:60::/48 via 2001:db8:2::2 dev b label 2",
    "mpls 300 via 10.0.2.2 dev b label 400/500/600",
    "mpls 301 pipe via 10.0.2.2 dev b",
    "mpls 302 pop",
    "mpls 303 nexthop via 10.0.2.2 dev b label 400 nexthop via 10.0.2.2 dev b label 401",
]
NEIGHBOURS = [f"{address} lladdr {host_mac(1)} dev b" for address in ("10.0.2.2", "2001:db8:2::2")]
MPLS = b"\x88\x47"


@pytest.fixture(scope="module")
def wired() -> Iterator[WiredForwarder]:
    with WiredForwarder(PORTS, routes=ROUTES, neighbours=NEIGHBOURS) as made:
        yield made


def _labels(*entries: tuple[int, int]) -> bytes:
    """A stack of (label, TTL)."""
    return b"".join(
        struct.pack("!I", label << 12 | (i + 1 == len(entries)) << 8 | ttl) for i, (label, ttl) in enumerate(entries)
    )


def _under(stack: bytes, frame: bytes) -> bytes:
    """The packet of a frame below labels."""
    return frame[:12] + MPLS + stack + frame[14:]


def _to_b(frame: bytes) -> bytes:
    """With the MAC addresses of the way to b's neighbour."""
    return bytes.fromhex((host_mac(1) + port_mac(1)).replace(":", "")) + frame[12:]


PLAIN, FAR = on(0, ip4("10.2.0.1")), on(0, ip4("10.9.0.1"))
ROWS = {
    "pushes two": (on(0, ip4("10.60.0.1")), _labels((100, 63), (200, 63)), None),
    "pushes one with its own TTL": (on(0, ip4("10.61.0.1")), _labels((100, 9)), None),
    "pushes explicit null": (on(0, ip6("2001:db8:60::1")), _labels((2, 63)), None),
    "swaps for three": (_under(_labels((300, 7)), FAR), _labels((400, 6), (500, 6), (600, 6)), FAR),
    "pops to a neighbour": (_under(_labels((301, 7)), PLAIN), b"", forwarded(PLAIN, 1)),
    "pops and looks up": (_under(_labels((302, 33)), PLAIN), b"", forwarded(on(0, ip4("10.2.0.1", ttl=33)), 1)),
    "pops explicit null": (_under(_labels((0, 5)), PLAIN), b"", forwarded(on(0, ip4("10.2.0.1", ttl=5)), 1)),
}


@pytest.mark.parametrize("name", ROWS)
def a_frame_leaves_with_the_labels_of_its_way(wired: WiredForwarder, name: str) -> None:
    frame, stack, inner = ROWS[name]
    packet = inner or forwarded(frame, 1)
    wired.wires["a"].send(frame)
    assert wired.wires["b"].receive(60.0) == (_to_b(_under(stack, packet)) if stack else packet)
    wired.settle(0)


def _dl3(wired: WiredForwarder, *words: str) -> str:
    done = CliRunner().invoke(app, [*words, "--socket", str(wired.dl3d.socket)], terminal_width=200)
    assert done.exit_code == 0, (done.stdout, done.exception)
    return done.stdout


def labels_are_shown(wired: WiredForwarder) -> None:
    text = _dl3(wired, "show", "labels")
    for words in ("400/500/600", "looked up in main", "pipe", "label 400, via 10.0.2.2 dev b label 401"):
        assert words in text, text
    assert wired.dl3d.call("status")["labels"] == 6
    assert "More: --after 300" in _dl3(wired, "show", "labels", "--limit", "3")
    assert "100/200" in _dl3(wired, "show", "route", "10.60.1.2")
    assert "10.0.2.2 label 100 ttl 9" in _dl3(wired, "show", "routes")


def frames_with_labels_are_traced(wired: WiredForwarder) -> None:
    popped = _dl3(wired, "trace", "--hex", _under(_labels((302, 33)), PLAIN).hex(), "-i", "a")
    assert "unlabel" in popped, popped
    assert "verdict: sent by port b" in popped
    assert "verdict: sent by port b" in _dl3(wired, "trace", "--hex", _under(_labels((300, 9)), FAR).hex(), "-i", "a")
    unknown = _dl3(wired, "trace", "--hex", _under(_labels((999, 9)), FAR).hex(), "-i", "a")
    assert "verdict: dropped as mpls_unknown" in unknown, unknown


@pytest.mark.parametrize(
    ("route", "sentence"),
    [
        ("mpls 3 pop", "label 3 is reserved (RFC 3032, 2.1): expected a number from 16 to 1048575"),
        ("mpls 1048576 pop", 'invalid label "1048576": expected a number from 16 to 1048575'),
        ("10.9.0.0/16 via 10.0.2.2 dev b label 16/17/18/19", 'more than 3 labels in "16/17/18/19"; remove some'),
    ],
)
def mistakes_are_named_with_their_line(tmp_path: Path, route: str, sentence: str) -> None:
    file = tmp_path / "dl3d.yaml"
    text = config_text(PORTS, routes=[*ROUTES, route], neighbours=NEIGHBOURS)
    file.write_text(text.replace("@SOCKET@", str(tmp_path / "s")).replace("@FOLDER@", str(tmp_path)))
    done = subprocess.run([DL3D, "--check", file], capture_output=True, text=True, timeout=120)
    assert done.returncode != 0
    line = next(i for i, found in enumerate(file.read_text().splitlines(), 1) if found.strip().endswith(route))
    assert sentence in done.stderr, done.stderr
    assert f"{file}:{line}: " in done.stderr, done.stderr
