"""The command 'dl3 show streams': the counters of dl3gen's latest run."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group, RenderableType

from dl3.cli.printing import table
from dl3.cli.show import Interval, Json, Watch, look
from dl3.control.client import DL3GEN, Client
from dl3.control.generator import Results, StreamResult

Socket = Annotated[Path, typer.Option(metavar="PATH", help="Control socket of dl3gen.", readable=False)]

SENT = ("stream", "from", "to", ">flows", ">requested Mpps", ">offered Mpps", ">sent", ">refused", ">late")
RECEIVED = ("stream", ">received", ">lost", ">duplicated", ">reordered", "per", ">corrupted")
TIMES = ("stream", ">min us", ">mean us", ">p50 us", ">p99 us", ">p99.9 us", ">max us", ">jitter us")


def sent_row(one: StreamResult) -> tuple[object, ...]:
    """How the stream was sent."""
    rates = (f"{one.asked_pps / 1e6:.3f}" if one.asked_pps else "max", f"{one.offered_pps / 1e6:.3f}")
    return (one.name, one.from_port, one.to_port, one.flows, *rates, one.sent, one.refused, one.late)


def received_row(one: StreamResult) -> tuple[object, ...]:
    """How much of the stream was received or lost."""
    order = (one.duplicated, one.reordered, one.reordered_per)
    return (one.name, one.received, one.lost, *order, one.corrupted)


def times_row(one: StreamResult) -> tuple[object, ...]:
    """The latency of the stream, from the time at which a frame was due."""
    spread = one.latency
    times = (spread.min, spread.mean, spread.p50, spread.p99, spread.p99_9, spread.max, one.jitter.mean)
    return (one.name, *(f"{ns / 1000:,.1f}" if spread.n else None for ns in times))


def draw_streams(reply: Results) -> RenderableType:
    """Three tables, and the state of the run."""
    if not reply.run:
        return "dl3gen has not sent anything yet: try 'dl3 bench throughput'"
    head = f"run {reply.run}: {reply.state}, {reply.seconds:,.1f} s"
    parts = [
        table("", columns, [row(one) for one in reply.streams])
        for columns, row in ((SENT, sent_row), (RECEIVED, received_row), (TIMES, times_row))
    ]
    return Group(head, "", parts[0], "", parts[1], "", parts[2])


def streams(
    socket: Socket = DL3GEN.socket, again: Watch = False, interval: Interval = 1.0, as_json: Json = False
) -> None:
    """Streams of the latest run of dl3gen: sent, received, lost, latency.

    Example: dl3 show streams --watch
    """
    client = Client(socket, program=replace(DL3GEN, option="--socket"))
    look(lambda: client.ask(Results, "results"), draw_streams, again, interval, as_json)
