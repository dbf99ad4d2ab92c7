"""Files of flows: made from text, as an example, and shown."""

import sys
import time
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, TextColumn

from dl3.cli.given import writable
from dl3.cli.printing import counted, err, out, print_json, table
from dl3.model.fault import Fault, UsageFault
from dl3.model.flow_file import MOST_MS, NEVER_SAVED, FlowWriter, read_flow_file
from dl3.model.flow_records import RecordMaker, SavedFlow, saved_flows
from dl3.model.flow_text import PROTOCOL_WORDS, action_text, address_text, key_text, parse_settings
from dl3.model.white_paper import MOST_EACH_WAY, white_paper_flows

BATCH = 50_000  # lines of text that become records at once
MOST_MISTAKES = 20  # that are printed
MOST_LINE = 1000  # characters
EXAMPLE = """\
# Flows, one per line:
#   SOURCE DESTINATION PROTOCOL [SOURCE-PORT DESTINATION-PORT | IDENTIFIER] [vrf NAME] ACTION [idle SECONDS | ends SECONDS]
# PROTOCOL: tcp, udp, sctp, dccp, udplite (with ports), icmp, icmpv6 (with identifier), gre, esp, or a number
# ACTION:
#   route                         forward by route
#   via ADDRESS dev INTERFACE     forward to this next hop
#   dev INTERFACE                 forward to the peer of the interface
#   drop, punt                    discard, or hand over to Linux
#   dscp 0..63, mirror INTERFACE  set the DSCP, send a copy (with route and next hops)
#   subscriber NUMBER             a mark for other programs
# Without idle or ends, a flow stays until it is deleted. 'idle' takes one of the timeouts of the key flow.timeouts.
10.0.0.1 10.1.0.1 tcp 40000 443 via 10.9.0.2 dev east dscp 46 idle 300
10.0.0.1 10.1.0.1 udp 5000 53 route idle 30
10.0.0.2 10.1.0.1 icmp 7 drop
10.0.0.3 10.1.0.1 gre via 10.9.0.2 dev east mirror west
2001:db8::1 2001:db8:1::1 tcp 40000 443 punt ends 3600
2001:db8::2 2001:db8:1::1 udp 5000 4500 route subscriber 12
"""


class Mistakes:
    """Prints mistakes of a file, the first of them."""

    def __init__(self, path: Path) -> None:
        self.path, self.n = path, 0

    def add(self, line: int, what: object) -> None:
        """One sentence."""
        self.n += 1
        if self.n <= MOST_MISTAKES:
            err.print(f"{self.path}:{line}: {what}", markup=False, highlight=False, soft_wrap=True)

    def refuse(self) -> None:
        """UsageFault if there was one."""
        if self.n:
            more = f" (the first {MOST_MISTAKES} are shown)" if self.n > MOST_MISTAKES else ""
            raise UsageFault(f"{self.path}: {counted(self.n, 'mistake')}{more}; nothing was written")


def lines_of(path: Path, progress: Progress) -> Iterator[tuple[int, str]]:
    """Number and text of each line, while a terminal shows how much was read."""
    task = progress.add_task(f"reads {path.name}", total=path.stat().st_size or None)
    n_read = 0
    with path.open(encoding="utf-8", errors="surrogateescape") as file:
        for number, line in enumerate(file, 1):
            n_read += len(line)
            if number % BATCH == 0:
                progress.update(task, completed=n_read)
            yield number, line


def bar() -> Progress:
    """On a terminal only."""
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        console=err,
        transient=True,
        disable=not err.is_terminal,
    )


def timeouts_of(text: str) -> list[int]:
    """'30,300': up to 8 numbers of seconds."""
    words = [word.strip() for word in text.split(",")] if text else []
    numbers = [int(word) for word in words if word.isascii() and word.isdigit() and len(word) <= 6]
    is_valid = len(numbers) == len(words) == len(set(numbers)) and len(words) <= 8
    if not is_valid or any(not 0 < seconds <= MOST_MS // 1000 for seconds in numbers):
        raise UsageFault(
            f"--timeouts {text}: expected up to 8 different numbers of seconds, as flow.timeouts of dl3d, like 30,300"
        )
    return numbers


def convert(path: Path, writer: FlowWriter, maker: RecordMaker) -> None:
    """All lines become records of the file; UsageFault if some cannot."""
    mistakes = Mistakes(path)
    with bar() as progress:
        for number, line in lines_of(path, progress):
            words = line.partition("#")[0].split()
            if not words:
                continue
            if len(line) > MOST_LINE:
                mistakes.add(number, f"the line has more than {MOST_LINE} characters")
                continue
            try:
                maker.add(words)
            except UsageFault as fault:
                mistakes.add(number, fault)
            if number % BATCH == 0:
                writer.add(maker.take())
    mistakes.refuse()
    writer.add(maker.take())


Output = Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="File of flows to write.", dir_okay=False)]


def import_text(
    text: Annotated[
        Path,
        typer.Argument(metavar="TEXT", help="Flows as text; see 'dl3 flow example text'.", exists=True, dir_okay=False),
    ],
    output: Output,
    timeouts: Annotated[
        str,
        typer.Option(
            metavar="S,S...", help="The key flow.timeouts of dl3d, if the text has 'idle'.", show_default=False
        ),
    ] = "",
) -> None:
    """Make a file of flows for 'dl3 flow load' from text, one flow per line.

    Example: dl3 flow import flows.txt --output flows --timeouts 30,300
    """
    writable("--output", output, is_replaced=True)
    maker = RecordMaker(timeouts_of(timeouts))
    try:
        with FlowWriter(output) as writer:
            convert(text, writer, maker)
            writer.finish(maker.actions(), NEVER_SAVED)
    except OSError as error:
        raise Fault(f"{error.filename or output}: {error.strerror or error}") from error
    out.print(f"written: {counted(writer.n_flows, 'flow')} to {output}", highlight=False, soft_wrap=True)


class Kind(StrEnum):
    """Examples."""

    text = "text"
    white_paper = "white-paper"


def white_paper(output: Path, each_way: int, actions: tuple[str, str]) -> int:
    """Write the flows of the white paper; returns how many."""
    maker = RecordMaker()
    numbers = [maker.numbers_of(parse_settings(action.split())) for action in actions]
    if any(vrf or life for vrf, life, _, _ in numbers):
        raise UsageFault("expected actions only, without vrf, idle and ends")
    with FlowWriter(output) as writer, bar() as progress:
        task = progress.add_task(f"writes {output.name}", total=2 * each_way)
        for some in white_paper_flows(each_way):
            some["action"] = [numbers[n][2] for n in (0, 1)] * (len(some) // 2)
            writer.add(some)
            progress.update(task, completed=writer.n_flows)
        writer.finish(maker.actions(), NEVER_SAVED)
    return writer.n_flows


def example(
    kind: Annotated[Kind, typer.Argument(metavar="KIND", help="text, or white-paper.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="File of flows to write (white-paper).")
    ] = None,
    flows: Annotated[
        int, typer.Option(min=1, max=MOST_EACH_WAY, metavar="N", help="Flows in each direction (white-paper).")
    ] = 20_000,
    first: Annotated[str, typer.Option("--to-101", metavar="ACTION", help="Action of flows to 101.0.0.0/8.")] = "route",
    second: Annotated[
        str, typer.Option("--to-201", metavar="ACTION", help="Action of flows to 201.0.0.0/8.")
    ] = "route",
) -> None:
    """Print an example of flows as text, or make a file with the flows of the DPDK white paper of China Telecom.

    Those are UDP from port 11 of 100.10.0.1 to port 101 of 101.c.b.a and 201.c.b.a, in turn; a counts first.

    Example: dl3 flow example text > flows.txt

    Example: dl3 flow example white-paper --flows 16777216 --to-101 'dev east' --to-201 'dev west' --output flows
    """
    if kind is Kind.text:
        sys.stdout.write(EXAMPLE)
        return
    if output is None:
        raise UsageFault("white-paper: a file of flows is binary; name it with --output FILE")
    writable("--output", output, is_replaced=True)
    try:
        n_flows = white_paper(output, flows, (first, second))
    except OSError as error:
        raise Fault(f"{error.filename or output}: {error.strerror or error}") from error
    out.print(f"written: {counted(n_flows, 'flow')} to {output}", highlight=False, soft_wrap=True)


def saved_row(flow: SavedFlow) -> tuple[object, ...]:
    """A row of the table."""
    ends = f"timeout {flow.timeout}" if flow.timeout else None
    if flow.ends_s is not None:
        ends = f"in {flow.ends_s:,.0f} s"
    idle = f"{flow.idle_for_s:,.1f} s" if flow.idle_for_s is not None else None
    vrf = f" vrf {flow.vrf}" if flow.vrf else ""
    return (key_text(flow.key) + vrf, action_text(flow.action), flow.packets, flow.bytes, idle, ends)


def saved_json(flow: SavedFlow) -> dict[str, object]:
    """As of the method flows.list, with the number of the timeout."""
    key, action = flow.key, flow.action
    return {
        "src": address_text(key.src),
        "dst": address_text(key.dst),
        "protocol": PROTOCOL_WORDS.get(key.protocol, key.protocol),
        "src_port": key.src_port,
        "dst_port": key.dst_port,
        "vrf": flow.vrf or None,
        "action": {
            name: value for name, value in vars(action).items() if value is not None and (value or name == "dscp")
        },
        "timeout": flow.timeout or None,
        "ends_s": flow.ends_s,
        "idle_for_s": flow.idle_for_s,
        "packets": flow.packets,
        "bytes": flow.bytes,
    }


def show_file(path: Path, after: int, limit: int, as_json: bool) -> None:
    """Some flows of a file, which is checked whole."""
    try:
        file = read_flow_file(path)
    except OSError as error:
        raise UsageFault(f"{path}: {error.strerror or error}") from error
    flows = saved_flows(file, after, limit)
    n_all, end = len(file.flows), after + len(flows)
    if as_json:
        following = end if end < n_all else None
        print_json(
            {"flows": [saved_json(flow) for flow in flows], "next": following, "saved_ms": file.saved_ms or None}
        )
        return
    at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(file.saved_ms / 1000))
    origin = "not saved by dl3d" if file.saved_ms == NEVER_SAVED else f"saved {at}"
    out.print(f"{path}: {counted(n_all, 'flow')}, {origin}", highlight=False, soft_wrap=True)
    if flows:
        out.print(table("", ("~flow", "~action", ">packets", ">bytes", ">idle for", "~ends"), map(saved_row, flows)))
    if end < n_all:
        out.print(f"More: --after {end}")
