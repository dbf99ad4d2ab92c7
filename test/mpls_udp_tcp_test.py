"""TCP between hosts of two dl3d with MPLS over UDP between them: whole at the other end, and sound on the way."""

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest
from harness.captures import RunningCapture, read_strictly
from harness.tcp import carry
from harness.wire import wait_until
from harness.wired import DL3D, Port, config_text, host_mac, port_mac, settled

from dl3.lab.forwarder import Forwarder
from dl3.lab.namespace import End, Lab, Namespace

SHORT, WHOLE = 1 << 20, 100_000_000  # bytes
UNDERLAY_MTU = 1600  # hosts have 1500
NET_MACS = ("02:00:00:00:02:01", "02:00:00:00:02:02")
ENDS = {4: ("192.0.2.1", "192.0.2.2"), 6: ("2001:db8::1", "2001:db8::2")}
CAPTURED = 500
PATIENCE_S = 600.0
READY_S = 300.0
# What is below the labels in each case, and what carries them.
PROTOCOLS = {4: "eth:ethertype:ip:udp:mpls:ip:tcp", 6: "eth:ethertype:ipv6:udp:mpls:ipv6:tcp"}


def address(family: int, side: int, last: int) -> str:
    """Of host 2 or of the router, which is 1."""
    return f"10.1.{side}.{last}" if family == 4 else f"2001:db8:1{side}::{last}"


def _length(family: int) -> int:
    return 24 if family == 4 else 64


def _text(side: int) -> str:
    """IPv4 in labels over IPv4, and IPv6 over IPv6."""
    other, routes, neighbours = 1 - side, [f"mpls {100 + side} pop"], []
    addresses = {"host": list[str](), "net": list[str]()}
    for family, ends in ENDS.items():
        far, length = address(family, other, 0), _length(family)
        addresses["host"].append(f"{address(family, side, 1)}/{length}")
        addresses["net"].append(f"{ends[side]}/{length}")
        routes.append(f"{far}/{length} encap mpls-udp label {100 + other} remote {ends[other]}")
        neighbours.append(f"{address(family, side, 2)} lladdr {host_mac(side)} dev host")
        neighbours.append(f"{ends[other]} lladdr {NET_MACS[other]} dev net")
    ports = [
        Port("host", keys={"addresses": addresses["host"]}),
        Port("net", mtu=UNDERLAY_MTU, keys={"addresses": addresses["net"]}),
    ]
    return config_text(ports, routes=routes, neighbours=neighbours)


def _settle_in(host: Namespace, side: int) -> None:
    """Addresses, and a way to the other host."""
    for family in ENDS:
        gateway, far = address(family, side, 1), address(family, 1 - side, 0)
        flag = ["nodad"] if family == 6 else []
        host.ip("address", "add", f"{address(family, side, 2)}/{_length(family)}", "dev", "eth0", *flag)
        host.ip("neighbour", "replace", gateway, "lladdr", port_mac(side), "dev", "eth0", "nud", "permanent")
        host.ip("route", "add", f"{far}/{_length(family)}", "via", gateway)


def _is_up(dl3d: Forwarder) -> bool:
    return all(port["link_up"] for port in dl3d.call("ports")["ports"])


@pytest.fixture(scope="module")
def sites() -> Iterator[tuple[list[Forwarder], list[Namespace]]]:
    with Lab() as lab, ExitStack() as stack:
        middles = [lab.namespace(f"dl3d{side}", silent=True) for side in range(2)]
        hosts = [lab.namespace(f"host{side}") for side in range(2)]
        net = [End(middle, "net", mac) for middle, mac in zip(middles, NET_MACS, strict=True)]
        lab.cable(net[0], net[1], UNDERLAY_MTU)
        for side, (middle, host) in enumerate(zip(middles, hosts, strict=True)):
            lab.cable(End(middle, "host", port_mac(side)), End(host, "eth0", host_mac(side)))
            _settle_in(host, side)
        made = [stack.enter_context(Forwarder(DL3D, _text(side), middles[side])) for side in range(2)]
        for dl3d in made:
            dl3d.wait_ready(READY_S)
            wait_until(partial(_is_up, dl3d), "both ports were up")
        yield made, hosts


def _tunnelled(dl3d: Forwarder, column: str) -> int:
    return sum(int(tunnel[column]) for tunnel in dl3d.call("tunnels")["tunnels"])


@pytest.mark.parametrize("family", ENDS)
@pytest.mark.parametrize("n_bytes", [SHORT, pytest.param(WHOLE, marks=pytest.mark.long)])
def bytes_arrive_whole(sites: tuple[list[Forwarder], list[Namespace]], n_bytes: int, family: int) -> None:
    routers, hosts = sites
    before = _tunnelled(routers[0], "tx_packets"), _tunnelled(routers[1], "rx_packets")
    carry(hosts[0], hosts[1], address(family, 1, 2), n_bytes, PATIENCE_S)
    for dl3d in routers:
        settled(dl3d, n_bytes // 1500)
    assert _tunnelled(routers[0], "tx_packets") - before[0] >= n_bytes // 1500
    assert _tunnelled(routers[1], "rx_packets") - before[1] >= n_bytes // 1500


@pytest.mark.parametrize("family", ENDS)
def tshark_has_nothing_to_say(sites: tuple[list[Forwarder], list[Namespace]], family: int, tmp_path: Path) -> None:
    routers, hosts = sites
    words = ["-i", "net", "-c", str(CAPTURED)]
    with RunningCapture(routers[0].socket, tmp_path / "net.pcapng", *words) as capture:
        carry(hosts[0], hosts[1], address(family, 1, 2), SHORT)
        capture.wait()
    stacks = read_strictly(capture.file)
    assert sum(n for stack, n in stacks.items() if stack.startswith(PROTOCOLS[family])) == CAPTURED, stacks
