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
from dl3.model.fault import AbsentFault

PAGE = 1000
REASONS = {"deleted": "deleted", "idle": "idle", "end": "reached its end"}


def line_of(flow: EndedFlow) -> str:
    """'12:00:01 idle: 10.0.0.1 10.1.0.1 udp 5000 53, 12 packets, 1,200 bytes'."""
    at = datetime.fromtimestamp(flow.ended_ms / 1000).strftime("%H:%M:%S")
    counters = f"{counted(flow.packets, 'packet')}, {counted(flow.bytes, 'byte')}"
    return f"{at} {REASONS.get(flow.reason, flow.reason)}: {key_words(flow)}, {counters}"


def say(text: str) -> None:
    """A line on standard error, where it does not mix with flows."""
    err.print(f"dl3: {text}", highlight=False, soft_wrap=True)


def print_page(page: EndedFlows, as_json: bool) -> None:
    """A line for each flow; how many were missed goes to standard error."""
    if page.lost:
        say(
            f"{counted(page.lost, 'flow')} ended unseen: too many to be read in time; the key flow.ended_file of dl3d "
            "keeps all"
        )
    for flow in page.ended:
        typer.echo(flow.model_dump_json() if as_json else line_of(flow))
    sys.stdout.flush()


class EndedReader:
    """Reads the flows that end, page by page, also of a dl3d that was restarted."""

    def __init__(self, client: Client, after: int | None) -> None:
        self.client, self.start = client, 0
        self.after = after
        if after is None:
            ended = client.ask(FlowUsage, "flows").ended
            self.start, self.after = ended.start, ended.last

    def ask(self) -> EndedFlows:
        """The next page. If dl3d was restarted, its first one."""
        page = self.client.ask(EndedFlows, "flows.ended", after=self.after, start=self.start or None, limit=PAGE)
        if self.start and page.start != self.start:
            say(
                "dl3d was restarted: sequence numbers begin anew; flows that ended before and were not read are only "
                "in the file of the key flow.ended_file"
            )
        self.start, self.after = page.start, page.next
        return page

    def wait(self, interval: float) -> EndedFlows:
        """The same; waits while dl3d is restarted."""
        is_waiting = False
        while True:
            try:
                return self.ask()
            except AbsentFault as fault:
                if not self.start:
                    raise
                if not is_waiting:
                    say(f"waiting for dl3d: {fault}")
                is_waiting = True
                time.sleep(interval)


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
    reader = EndedReader(Client(socket), after)
    while True:
        page = reader.ask() if once else reader.wait(interval)
        print_page(page, as_json)
        if not page.more:
            if once:
                return
            time.sleep(interval)
