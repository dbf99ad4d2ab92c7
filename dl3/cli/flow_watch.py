"""'dl3 flow watch': flows that have ended, as they end."""

import sys
import time
from datetime import datetime
from typing import Annotated

import typer

from dl3.cli.flow import Json, Socket, key_words
from dl3.cli.printing import counted, err
from dl3.control.client import DEFAULT_SOCKET, Client
from dl3.control.flow_replies import EndedFlow, EndedFlows, FlowUsage

PAGE = 1000
REASONS = {"deleted": "deleted", "idle": "idle", "end": "reached its end"}


def line_of(flow: EndedFlow) -> str:
    """'12:00:01 idle: 10.0.0.1 10.1.0.1 udp 5000 53, 12 packets, 1,200 bytes'."""
    at = datetime.fromtimestamp(flow.ended_ms / 1000).strftime("%H:%M:%S")
    counters = f"{counted(flow.packets, 'packet')}, {counted(flow.bytes, 'byte')}"
    return f"{at} {REASONS.get(flow.reason, flow.reason)}: {key_words(flow)}, {counters}"


def print_page(page: EndedFlows, as_json: bool) -> None:
    """A line for each flow; how many were missed goes to standard error."""
    if page.lost:
        err.print(
            f"dl3: {counted(page.lost, 'flow')} ended unseen: too many to be read in time; the key flow.ended_file of dl3d "
            "keeps all",
            highlight=False,
            soft_wrap=True,
        )
    for flow in page.ended:
        typer.echo(flow.model_dump_json() if as_json else line_of(flow))
    sys.stdout.flush()


def watch(
    after: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Start after this sequence number; default: now.")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Stop at the latest one instead of waiting for more.")] = False,
    interval: Annotated[float, typer.Option(min=0.1, max=60, metavar="SECONDS", help="How often to ask.")] = 0.5,
    socket: Socket = DEFAULT_SOCKET,
    as_json: Json = False,
) -> None:
    """Print flows as they end, with reason and final counters, until Ctrl-C; with --json, one line for each.

    Example: dl3 flow watch

    Example: dl3 flow watch --after 0 --once --json
    """
    client = Client(socket)
    if after is None:
        after = client.ask(FlowUsage, "flows").ended.last
    while True:
        page = client.ask(EndedFlows, "flows.ended", after=after, limit=PAGE)
        print_page(page, as_json)
        after = page.next
        if not page.more:
            if once:
                return
            time.sleep(interval)
