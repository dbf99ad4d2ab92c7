"""The commands under 'dl3 show': the state of the forwarder, once or repeatedly."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Group, RenderableType

from dl3.cli.lazy import LazyGroup
from dl3.cli.printing import out, print_json, table
from dl3.cli.pushed import with_labels
from dl3.cli.vhost import draw_vhost
from dl3.cli.watching import watch
from dl3.cli.workers import draw_workers
from dl3.control.client import DEFAULT_SOCKET, Client
from dl3.control.replies import Drops, Neighbours, NextHops, Port, Ports, Reply, Routes, Status, Workers
from dl3.model.fault import UsageFault

UNCOUNTED = "not counted by this device"
FORWARDING, LINUX, GENERATOR = "Forwarding", "Linux as control plane", "Generator"


class Shown(LazyGroup):
    """The commands of 'dl3 show'."""

    sources: Mapping[str, tuple[str, str, Mapping[str, Any]]] = {
        **{name: (f"dl3.cli.show:{name}", FORWARDING, {}) for name in ("status", "ports", "workers", "drops")},
        **{name: (f"dl3.cli.show:{name}", FORWARDING, {}) for name in ("routes", "nexthops", "neighbours")},
        "route": ("dl3.cli.forwarder:route", FORWARDING, {}),
        "labels": ("dl3.cli.labels:labels", FORWARDING, {}),
        "tunnels": ("dl3.cli.tunnels:tunnels", FORWARDING, {}),
        "flows": ("dl3.cli.flow_usage:flows", FORWARDING, {}),
        **{name: (f"dl3.cli.bridge:{name}", FORWARDING, {}) for name in ("bridges", "macs", "groups")},
        **{name: (f"dl3.cli.subscriber:{name}", FORWARDING, {}) for name in ("subscriber", "subscribers")},
        **{name: (f"dl3.cli.linux:{name}", LINUX, {}) for name in ("taps", "classes", "mirror", "unsupported")},
        "streams": ("dl3.cli.streams:streams", GENERATOR, {}),
    }


app = typer.Typer(
    cls=Shown,
    help="Show the state and counters of the forwarder and of the generator.\n\nExample: dl3 show drops --watch",
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
)


@app.callback()
def options() -> None:
    """Options of 'dl3 show': none."""


Socket = Annotated[Path, typer.Option(metavar="PATH", help="Control socket of dl3d.", readable=False)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON; with --watch, one line per update.")]
Watch = Annotated[bool, typer.Option("--watch", help="Repeat until Ctrl-C.")]
Interval = Annotated[float, typer.Option(min=0.1, max=86400, metavar="SECONDS", help="Interval of --watch.")]
Vrf = Annotated[str | None, typer.Option(metavar="VRF", help="Name of a VRF device; default: the main table.")]
Limit = Annotated[int, typer.Option(min=1, max=10_000, metavar="N", help="Maximum number of rows.")]

Kind = TypeVar("Kind", bound=Reply)


class Rates:
    """Packets and bits per second between two snapshots of the ports."""

    def __init__(self) -> None:
        self.ports: tuple[Port, ...] = ()
        self.at_s = 0.0

    def of(self, reply: Ports) -> list[tuple[str, str, str, str]]:
        """(packets/s in, bit/s in, packets/s out, bit/s out) of each port; dashes in the first snapshot."""
        now_s, before, span_s = time.monotonic(), self.ports, time.monotonic() - self.at_s
        self.ports, self.at_s = reply.ports, now_s
        if len(before) != len(reply.ports):
            return [("-",) * 4] * len(reply.ports)
        found = []
        for a, b in zip(before, reply.ports, strict=True):
            pps = (b.rx_packets - a.rx_packets) / span_s, (b.tx_packets - a.tx_packets) / span_s
            bps = 8 * (b.rx_bytes - a.rx_bytes) / span_s, 8 * (b.tx_bytes - a.tx_bytes) / span_s
            found.append((f"{pps[0]:,.0f}", si(bps[0]), f"{pps[1]:,.0f}", si(bps[1])))
        return found


def si(bps: float) -> str:
    """'1.23 G': bit/s with three or four digits."""
    for unit in ("", "k", "M"):
        if bps < 1000:
            return f"{bps:.3g} {unit}".rstrip()
        bps /= 1000
    return f"{bps:,.4g} G"


def speed(mbps: int | None) -> str | None:
    """'10 Gbit/s'."""
    if mbps is None:
        return None
    return f"{mbps / 1000:g} Gbit/s" if mbps >= 1000 else f"{mbps} Mbit/s"


def draw_ports(reply: Ports, rates: Rates) -> RenderableType:
    """The properties of each port, then its counters and rates."""
    rows = [
        (
            p.name,
            link_word(p),
            speed(p.speed_mbps),
            p.mtu,
            p.mac,
            p.device,
            ", ".join(p.addresses) or None,
        )
        for p in reply.ports
    ]
    ports_of = table("", ("port", "link", "speed", ">MTU", "MAC", "~device", "~addresses"), rows)
    columns = (">packets in", ">bytes in", ">packets out", ">bytes out", ">wire loss")
    counted = [
        (p.name, p.rx_packets, p.rx_bytes, p.tx_packets, p.tx_bytes, lost(p), *rate)
        for p, rate in zip(reply.ports, rates.of(reply), strict=True)
    ]
    per_second = (">packets/s in", ">bit/s in", ">packets/s out", ">bit/s out")
    return Group(ports_of, "", table("", ("port", *columns, *per_second), counted))


def link_word(port: Port) -> str:
    """The state of the link; a device that has vanished has none."""
    if not port.device_present:
        return "no device"
    return "up" if port.link_up else "down"


def lost(port: Port) -> int | str:
    """Frames that the device lost before a worker could receive them, as far as it counts them."""
    counted = sum(n or 0 for n in (port.rx_missed, port.rx_no_mbuf, port.rx_errors))
    return UNCOUNTED if port.rx_missed is None and not counted else counted


def draw_routes(reply: Routes) -> RenderableType:
    """A page of routes."""
    rows = [(r.prefix, r.kind, with_labels(r), r.interface or r.port, r.protocol, r.metric) for r in reply.routes]
    page = table("", ("prefix", "kind", "via", "interface", "protocol", ">metric"), rows)
    return Group(page, f"More: --after {reply.next}") if reply.next is not None else page


def draw_nexthops(reply: NextHops) -> RenderableType:
    """A page of next hops."""
    rows = [
        (h.id, h.kind, with_labels(h), h.interface or h.port, h.mac, h.mtu, h.verdict, h.routes, h.packets)
        for h in reply.nexthops
    ]
    page = table("", (">id", "kind", "via", "interface", "MAC", ">MTU", "packets are", ">routes", ">packets"), rows)
    return Group(page, f"More: --after {reply.next}") if reply.next is not None else page


def show(ask: Callable[[], Kind], draw: Callable[[Kind], RenderableType], as_json: bool) -> None:
    """Once."""
    reply = ask()
    if as_json:
        print_json(reply.model_dump())
    else:
        out.print(draw(reply))


def print_lines(ask: Callable[[], Kind], interval_s: float) -> None:
    """A line of JSON each time, until Ctrl-C."""
    while True:
        typer.echo(ask().model_dump_json())
        sys.stdout.flush()
        time.sleep(interval_s)


def look(
    ask: Callable[[], Kind], draw: Callable[[Kind], RenderableType], again: bool, interval_s: float, as_json: bool
) -> None:
    """Once, or until Ctrl-C."""
    if again and as_json:
        print_lines(ask, interval_s)
    elif again:
        watch(lambda: draw(ask()), interval_s)
    else:
        show(ask, draw, as_json)


def look_command(reply: type[Kind], method: str) -> Callable[[Callable[[Kind], RenderableType]], Callable[..., None]]:
    """Make a command from a function that draws the reply to a method without parameters; its docstring is the help."""

    def command_of(draw: Callable[[Kind], RenderableType]) -> Callable[..., None]:
        def command(
            socket: Socket = DEFAULT_SOCKET, again: Watch = False, interval: Interval = 1.0, as_json: Json = False
        ) -> None:
            client = Client(socket)
            look(lambda: client.ask(reply, method), draw, again, interval, as_json)

        command.__name__, command.__doc__ = draw.__name__, draw.__doc__
        return command

    return command_of


def ports_named(reply: Ports, name: str | None) -> Ports:
    """Those with this name: one; all of them without a name."""
    found = tuple(port for port in reply.ports if name in (None, port.name))
    if not found:
        raise UsageFault(f"unknown port '{name}'; expected one of {', '.join(port.name for port in reply.ports)}")
    return Ports(ports=found)


def ports(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Only this port, and its vhost-user peer.")
    ] = None,
    socket: Socket = DEFAULT_SOCKET,
    again: Watch = False,
    interval: Interval = 1.0,
    as_json: Json = False,
) -> None:
    """Ports: link, speed, MTU, MAC, device, addresses, packets, bytes, rates with --watch.

    Example: dl3 show ports --watch

    Example: dl3 show ports vm1
    """
    client, rates = Client(socket), Rates()

    def draw(reply: Ports) -> RenderableType:
        drawn = draw_ports(reply, rates)
        vhosts = [draw_vhost(port.name, port.vhost) for port in reply.ports if name and port.vhost]
        return Group(drawn, "", *vhosts) if vhosts else drawn

    look(lambda: ports_named(client.ask(Ports, "ports"), name), draw, again, interval, as_json)


@look_command(Workers, "workers")
def workers(reply: Workers) -> RenderableType:
    """Workers: core, queues, packets, idle state, cycles per pipeline stage; proposes hands_to where load is uneven.

    Example: dl3 show workers --json
    """
    return draw_workers(reply)


@look_command(Drops, "drops")
def drops(reply: Drops) -> RenderableType:
    """Packet accounting: received, sent, punted, and each drop reason.

    Example: dl3 show drops --watch
    """
    dropped = [verdict for verdict in reply.verdicts if verdict.name != "forward" and verdict.packets]
    rows = [(verdict.name, verdict.packets, verdict.step, verdict.text) for verdict in dropped]
    handed = [(v.name, v.handed, v.step, v.text) for v in reply.verdicts if v.handed]
    fields = ("received", "injected", "copied", "sent", "punted", "dropped", "held", "in_flight")
    sums = [(field.replace("_", " "), getattr(reply, field)) for field in fields]
    account = table("", ("packet accounting", ">packets"), sums)
    wire = sum(n or 0 for n in (reply.wire.rx_missed, reply.wire.rx_no_mbuf, reply.wire.rx_errors))
    lines: list[RenderableType] = [account, ""]
    lines.append(table("", ("dropped as", ">packets", "step", "~meaning"), rows) if rows else "Nothing was dropped.")
    if handed:
        lines += ["", table("", ("punted to Linux as", ">packets", "step", "~meaning"), handed)]
    if wire:
        lines.append(f"\nLost on the wire, before a worker could receive it: {wire:,}")
    if reply.wire.rx_missed is None:
        lines.append("\nLost on the wire: not counted by every device (dl3 show ports)")
    return Group(*lines)


def routes(
    family: Annotated[int, typer.Option(min=4, max=6, metavar="4|6", help="Address family.")] = 4,
    after: Annotated[str | None, typer.Option(metavar="PREFIX", help="Start after this prefix.")] = None,
    limit: Limit = 100,
    vrf: Vrf = None,
    socket: Socket = DEFAULT_SOCKET,
    again: Watch = False,
    interval: Interval = 1.0,
    as_json: Json = False,
) -> None:
    """Routes in order of address, one page at a time.

    Example: dl3 show routes --family 6 --limit 1000
    """
    client = Client(socket)
    page = {"family": family, "after": after, "limit": limit, "vrf": vrf}
    look(lambda: client.ask(Routes, "routes", **page), draw_routes, again, interval, as_json)


def nexthops(
    after: Annotated[int | None, typer.Option(metavar="ID", help="Start after this id.")] = None,
    limit: Limit = 100,
    vrf: Vrf = None,
    socket: Socket = DEFAULT_SOCKET,
    again: Watch = False,
    interval: Interval = 1.0,
    as_json: Json = False,
) -> None:
    """Next hops: address, interface, MAC, state, number of routes, packets.

    Example: dl3 show nexthops
    """
    client, page = Client(socket), {"after": after, "limit": limit, "vrf": vrf}
    look(lambda: client.ask(NextHops, "nexthops", **page), draw_nexthops, again, interval, as_json)


def draw_neighbours(reply: Neighbours) -> RenderableType:
    """A page of neighbours."""
    rows = [(one.address, one.interface, one.vrf, one.mac) for one in reply.neighbours]
    page = table("", ("address", "interface", "VRF", "MAC"), rows)
    return Group(page, f"More: --after {reply.next}") if reply.next is not None else page


def neighbours(
    after: Annotated[int | None, typer.Option(metavar="ID", help="Start after this id.")] = None,
    limit: Limit = 100,
    vrf: Vrf = None,
    socket: Socket = DEFAULT_SOCKET,
    again: Watch = False,
    interval: Interval = 1.0,
    as_json: Json = False,
) -> None:
    """Neighbours whose MAC addresses are known, with interface and VRF.

    Example: dl3 show neighbours --vrf blue
    """
    client, page = Client(socket), {"after": after, "limit": limit, "vrf": vrf}
    look(lambda: client.ask(Neighbours, "neighbours", **page), draw_neighbours, again, interval, as_json)


def flat(value: object, name: str = "") -> Iterator[tuple[str, object]]:
    """('memory.mbufs', 4096), ... of nested objects."""
    if isinstance(value, dict):
        for key, below in value.items():
            yield from flat(below, f"{name}.{key}" if name else key)
    else:
        yield name, value


@look_command(Status, "status")
def status(reply: Status) -> RenderableType:
    """Version, process, configuration file, uptime, memory, table sizes, packet accounting.

    Example: dl3 show status --json
    """
    rows = [(name, str(value) if name == "pid" else value) for name, value in flat(reply.model_dump())]
    return table("", ("", "~"), rows)
