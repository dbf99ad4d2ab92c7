"""The commands 'dl3 bench frame-loss', 'back-to-back', 'recovery', 'reset', 'forwarding' and 'rfc2544'."""

from collections.abc import Callable, Sequence
from typing import Annotated

import typer

from dl3.cli import given
from dl3.cli.place import ONE_WAY, Place, say
from dl3.cli.printing import out, print_json, table
from dl3.cli.rfc2544 import (
    At,
    Dut,
    From,
    Json,
    Lab,
    Name,
    RecordFile,
    Resolution,
    Seconds,
    Sizes,
    Socket,
    Streams,
    Ways,
)
from dl3.cli.rfc_tables import TABLES, unknown_loads
from dl3.cli.tests import Ask, Commands, Made, make_all
from dl3.control.client import DL3GEN
from dl3.model.campaign import Effort, TestName
from dl3.model.fault import Fault

Again = Annotated[
    int,
    typer.Option(
        "--repeat",
        min=1,
        max=1000,
        metavar="N",
        help="Number of repetitions of the whole search, burst, recovery or reset.",
    ),
]
AsRfc = Annotated[
    bool, typer.Option("--rfc", help="Use the durations and repetitions that the RFC requires; takes hours.")
]
Step = Annotated[
    float,
    typer.Option(min=0.1, max=10, metavar="PERCENT", help="Step between two loads, in percent of the maximum rate."),
]
ProcessCommand = Annotated[
    str,
    typer.Option(callback=given.command, metavar="COMMAND", help="Command that restarts the process of the device."),
]
PortCommand = Annotated[
    str,
    typer.Option(
        callback=given.command, metavar="COMMAND", help="Command that sets a port of the device down and up again."
    ),
]

ALL: tuple[TestName, ...] = ("throughput", "latency", "frame loss", "back-to-back", "recovery", "reset")


def heading(text: str) -> None:
    """One line on standard output."""
    out.print(text, markup=False, highlight=False, soft_wrap=True)


def show(made: Made, as_json: bool) -> None:
    """A table for each test with its deviations from the RFC, or JSON; Fault if results are missing."""
    if as_json:
        results = {test: [result.model_dump() for result in found] for test, found in made.results.items()}
        reported = [text.model_dump() for text in made.deviations]
        print_json({"record": str(made.record), "results": results, "deviations": reported})
    else:
        for test, found in made.results.items():
            draw(made.dut, test, found)
        for text in made.deviations:
            heading(f"deviation: {text.en}")
    say(f"recorded in {made.record}")
    if made.n_without_result:
        raise Fault(f"{made.n_without_result} of the tests ended without a result, see above")


def draw(dut: str, test: TestName, found: Sequence[object]) -> None:
    """One table, unless it is empty."""
    title, columns, rows = TABLES[test]
    if found:
        heading(f"{dut}: {title}")
        out.print(table("", columns, rows(found)))
        for text in unknown_loads(found):
            heading(text)


def method(test: TestName, text: str) -> Callable[..., None]:
    """The command of one test."""

    def command(
        generator: Socket = DL3GEN.socket,
        dut: Dut = "",
        dut_name: Name = "",
        lab: Lab = False,
        at: At = "",
        sizes: Sizes = "",
        streams: Streams = None,
        direction: Ways = ONE_WAY,
        seconds: Seconds = 2.0,
        repeat: Again = 1,
        resolution: Resolution = 0.005,
        step: Step = 10.0,
        rfc: AsRfc = False,
        source: From = None,
        record: RecordFile = None,
        as_json: Json = False,
    ) -> None:
        place = Place(generator, dut, dut_name, lab, streams, record, at, direction)
        effort = Effort(seconds=seconds, repetitions=repeat, resolution=resolution, step=step / 100)
        show(make_all(Ask(place, sizes, effort, rfc, source), (test,)), as_json)

    command.__doc__ = text
    return command


frame_loss = method(
    "frame loss",
    """Measure the frame loss at each load, from the maximum downwards, until two loads are lossless (RFC 2544, 26.3).

    Example: dl3 bench frame-loss --lab --sizes 64 --step 5
    """,
)
back_to_back = method(
    "back-to-back",
    """Find the longest burst at the maximum rate without loss (RFC 2544, 26.4; RFC 9004).

    Example: dl3 bench back-to-back --lab --sizes 64,1518 --repeat 50
    """,
)
recovery = method(
    "recovery",
    """Measure how long loss continues after the load drops from 110 % to 50 % of the throughput (RFC 2544, 26.5).

    Example: dl3 bench recovery --sizes 64 --seconds 60 --from throughput.jsonl
    """,
)
forwarding = method(
    "forwarding",
    """Measure forwarding rates of a switch or router at decreasing loads (RFC 2889, 5.1).

    Example: dl3 bench forwarding --lab --sizes 64 --direction bidirectional
    """,
)


def reset(
    generator: Socket = DL3GEN.socket,
    dut: Dut = "",
    dut_name: Name = "",
    lab: Lab = False,
    at: At = "",
    sizes: Sizes = "",
    streams: Streams = None,
    seconds: Seconds = 2.0,
    repeat: Again = 1,
    process_command: ProcessCommand = "",
    port_command: PortCommand = "",
    source: From = None,
    record: RecordFile = None,
    as_json: Json = False,
) -> None:
    """Measure how long forwarding stops after a reset of the process and of a port (RFC 2544, 26.6).

    The lab resets its dl3d over veth; other devices are reset by the commands that you give.

    Example: dl3 bench reset --sizes 64 --process-command 'systemctl restart dl3d'
    """
    place, effort = (
        Place(generator, dut, dut_name, lab, streams, record, at),
        Effort(seconds=seconds, repetitions=repeat),
    )
    commands = Commands(process_command, port_command) if process_command or port_command else None
    show(make_all(Ask(place, sizes, effort, source=source, commands=commands), ("reset",)), as_json)


def rfc2544(
    generator: Socket = DL3GEN.socket,
    dut: Dut = "",
    dut_name: Name = "",
    lab: Lab = False,
    at: At = "",
    sizes: Sizes = "",
    streams: Streams = None,
    direction: Ways = ONE_WAY,
    seconds: Seconds = 2.0,
    repeat: Again = 1,
    resolution: Resolution = 0.005,
    step: Step = 10.0,
    rfc: AsRfc = False,
    process_command: ProcessCommand = "",
    port_command: PortCommand = "",
    record: RecordFile = None,
    as_json: Json = False,
) -> None:
    """Run all six tests of RFC 2544; prints a table for each and writes one record for dl3 report.

    Example: dl3 bench rfc2544 --lab --sizes 64,1518 --seconds 0.5
    """
    place = Place(generator, dut, dut_name, lab, streams, record, at, direction)
    effort = Effort(seconds=seconds, repetitions=repeat, resolution=resolution, step=step / 100)
    commands = Commands(process_command, port_command) if process_command or port_command else None
    tests = ALL if lab or commands else tuple(test for test in ALL if test != "reset")
    if len(tests) < len(ALL):
        say("no reset is tested: specify a command with --process-command or --port-command")
    show(make_all(Ask(place, sizes, effort, rfc, commands=commands), tests), as_json)
