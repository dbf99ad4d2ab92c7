"""The methods under 'dl3 show': what the forwarder says about itself, once or again and again."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from rich.console import Group, RenderableType

from dl3.cli.printing import out, print_json, table
from dl3.cli.watching import watch
from dl3.control.client import DEFAULT_SOCKET, Client
from dl3.control.replies import Drops, NextHops, Port, Ports, Reply, Routes, Worker, Workers

app = typer.Typer(
    help="What the forwarder says about itself.\n\nExample: dl3 show drops --watch",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Socket = Annotated[Path, typer.Option(help="dl3d's control socket.", readable=False)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON; with --watch one line each time.")]
Watch = Annotated[bool, typer.Option("--watch", help="Show it again and again, until Ctrl-C.")]
Interval = Annotated[float, typer.Option(min=0.1, max=86400, help="Seconds between two looks of --watch.")]
Vrf = Annotated[str | None, typer.Option(help="Name of a VRF device; default: the main table.")]
Limit = Annotated[int, typer.Option(min=1, max=10_000, help="At most so many.")]

Kind = TypeVar("Kind", bound=Reply)


class Rates:
    """Packets per second between two looks at ports."""

    def __init__(self) -> None:
        self.ports: tuple[Port, ...] = ()
        self.at_s = 0.0

    def of(self, reply: Ports) -> list[tuple[str, str]]:
        """(received, sent) in packets per second, per port; dashes at the first look."""
        now_s, before, span_s = time.monotonic(), self.ports, time.monotonic() - self.at_s
        self.ports, self.at_s = reply.ports, now_s
        if len(before) != len(reply.ports):
            return [("-", "-")] * len(reply.ports)
        return [
            (
                f"{(b.rx_packets - a.rx_packets) / span_s:,.0f}",
                f"{(b.tx_packets - a.tx_packets) / span_s:,.0f}",
            )
            for a, b in zip(before, reply.ports, strict=True)
        ]


def draw_ports(reply: Ports, rates: Rates) -> RenderableType:
    """Ports with their counters."""
    columns = ("port", "~device", "MAC", "link", ">received", ">packets/s in", ">sent", ">packets/s out", ">wire loss")
    rows = [
        (p.name, p.device, p.mac, "up" if p.link_up else "down", p.rx_packets, rx, p.tx_packets, tx, lost(p))
        for p, (rx, tx) in zip(reply.ports, rates.of(reply), strict=True)
    ]
    return table("", columns, rows)


def lost(port: Port) -> int:
    """Frames that the device lost before a worker could receive them."""
    return port.rx_missed + port.rx_no_mbuf + port.rx_errors


def worker_row(worker: Worker) -> tuple[object, ...]:
    """Where it runs and how busy it is."""
    queues = " ".join(f"{queue.port}/{queue.queue}" for queue in worker.queues)
    packets, bursts = sum(worker.verdicts.values()), worker.counters.get("bursts", 0)
    per_burst = packets / bursts if bursts else None
    gap = f"{worker.poll_gap.longest_us:,.0f} us, {worker.poll_gap.ago_s:,.0f} s ago" if worker.poll_gap else None
    asleep = f"{worker.asleep_share:.1%}" if worker.idle == "sleep" else None
    rest = (f"{worker.empty_share:.1%}", asleep, worker.woken_by, gap)
    return (worker.worker, worker.core, worker.numa, queues, packets, per_burst, *rest)


def draw_steps(reply: Workers) -> RenderableType | None:
    """What each step of the walk costs, once some bursts were timed."""
    timed = [(worker.worker, worker.cycles_per_packet) for worker in reply.workers if worker.cycles_per_packet]
    if not timed:
        return None
    steps = list(timed[0][1])
    rows = [(worker, *(cycles.get(step) for step in steps), sum(cycles.values())) for worker, cycles in timed]
    names = (">worker", *(f">{step}" for step in steps), ">all")
    return table("TSC cycles per packet, by step, in every 64th burst (the clock adds some)", names, rows)


def draw_routes(reply: Routes) -> RenderableType:
    """A page of routes."""
    rows = [(route.prefix, route.kind, route.via, route.interface or route.port) for route in reply.routes]
    page = table("", ("prefix", "kind", "via", "interface"), rows)
    return Group(page, f"More: --after {reply.next}") if reply.next is not None else page


def draw_nexthops(reply: NextHops) -> RenderableType:
    """A page of next hops."""
    rows = [
        (h.id, h.kind, h.via, h.interface or h.port, h.mac, h.mtu, h.verdict, h.routes, h.packets)
        for h in reply.nexthops
    ]
    page = table("", (">id", "kind", "via", "interface", "MAC", ">MTU", "packets to it", ">routes", ">packets"), rows)
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
    """Make a command of what draws the reply to a method without parameters; its docstring becomes the help."""

    def command_of(draw: Callable[[Kind], RenderableType]) -> Callable[..., None]:
        def command(
            socket: Socket = DEFAULT_SOCKET, again: Watch = False, interval: Interval = 1.0, as_json: Json = False
        ) -> None:
            client = Client(socket)
            look(lambda: client.ask(reply, method), draw, again, interval, as_json)

        command.__name__, command.__doc__ = draw.__name__, draw.__doc__
        return command

    return command_of


@app.command()
def ports(
    socket: Socket = DEFAULT_SOCKET, again: Watch = False, interval: Interval = 1.0, as_json: Json = False
) -> None:
    """Each port: device, MAC, link, counters.

    Example: dl3 show ports --watch
    """
    client, rates = Client(socket), Rates()
    look(lambda: client.ask(Ports, "ports"), lambda reply: draw_ports(reply, rates), again, interval, as_json)


@app.command()
@look_command(Workers, "workers")
def workers(reply: Workers) -> RenderableType:
    """Each worker: core, queues, rounds, packets.

    Example: dl3 show workers --json
    """
    columns = (
        ">worker",
        ">core",
        ">NUMA",
        "~queues",
        ">packets",
        ">per burst",
        ">empty polls",
        ">asleep",
        "woken by",
        ">longest gap",
    )
    listing = table("", columns, [worker_row(worker) for worker in reply.workers])
    steps = draw_steps(reply)
    return Group(listing, "", steps) if steps else listing


@app.command()
@look_command(Drops, "drops")
def drops(reply: Drops) -> RenderableType:
    """The account of all packets: received, sent, and each named drop with what it means.

    Example: dl3 show drops --watch
    """
    dropped = [verdict for verdict in reply.verdicts if verdict.name != "forward" and verdict.packets]
    rows = [(verdict.name, verdict.packets, verdict.step, verdict.text) for verdict in dropped]
    handed = [(v.name, v.handed, v.step, v.text) for v in reply.verdicts if v.handed]
    sums = (("received", reply.received), ("injected", reply.injected), ("sent", reply.sent), ("punted", reply.punted))
    account = table(
        "", ("the account", ">packets"), [*sums, ("dropped", reply.dropped), ("in flight", reply.in_flight)]
    )
    wire = sum((reply.wire.rx_missed, reply.wire.rx_no_mbuf, reply.wire.rx_errors))
    lines: list[RenderableType] = [account, ""]
    lines.append(table("", ("dropped as", ">packets", "step", "~meaning"), rows) if rows else "Nothing was dropped.")
    if handed:
        lines += ["", table("", ("handed over for Linux as", ">packets", "step", "~meaning"), handed)]
    if wire:
        lines.append(f"\nLost on the wire, before a worker could receive it: {wire:,}")
    return Group(*lines)


@app.command()
def routes(
    family: Annotated[int, typer.Option(min=4, max=6, help="4 or 6.")] = 4,
    after: Annotated[str | None, typer.Option(help="Begin behind this prefix.")] = None,
    limit: Limit = 100,
    vrf: Vrf = None,
    socket: Socket = DEFAULT_SOCKET,
    again: Watch = False,
    interval: Interval = 1.0,
    as_json: Json = False,
) -> None:
    """Routes in order of address, a page at a time.

    Example: dl3 show routes --family 6 --limit 1000
    """
    client = Client(socket)
    page = {"family": family, "after": after, "limit": limit, "vrf": vrf}
    look(lambda: client.ask(Routes, "routes", **page), draw_routes, again, interval, as_json)


@app.command()
def nexthops(
    after: Annotated[int | None, typer.Option(help="Begin behind this id.")] = None,
    limit: Limit = 100,
    vrf: Vrf = None,
    socket: Socket = DEFAULT_SOCKET,
    again: Watch = False,
    interval: Interval = 1.0,
    as_json: Json = False,
) -> None:
    """Next hops: where they are, whether they are resolved, how many routes use them.

    Example: dl3 show nexthops
    """
    client, page = Client(socket), {"after": after, "limit": limit, "vrf": vrf}
    look(lambda: client.ask(NextHops, "nexthops", **page), draw_nexthops, again, interval, as_json)
