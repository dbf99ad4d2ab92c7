"""The commands 'dl3 export'."""

import re
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any

import typer

from dl3.cli.lazy import LazyGroup
from dl3.cli.printing import counted, err, print_json
from dl3.control.capture import capturing
from dl3.control.client import DEFAULT_SOCKET, Client
from dl3.export.exporter import Collector, Exporter, Format, IpfixFormat, SflowFormat, Tally
from dl3.export.flows import Flows
from dl3.export.ipfix import Messages
from dl3.model.fault import UsageFault

SFLOW_PORT, IPFIX_PORT = 6343, 4739
LARGEST_PORT = 65535
HEADER_BYTES = 128
MOST_FLOWS = 65536
PLACE = re.compile(r"(?:\[(?P<in_brackets>[^\]]+)\]|(?P<host>[^:\[\]]+))(?::(?P<port>\d{1,5}))?\Z")


class ExportCommands(LazyGroup):
    """The commands of 'dl3 export'."""

    sources: Mapping[str, tuple[str, str, Mapping[str, Any]]] = {
        name: (f"dl3.cli.export:{name}", "Formats", {}) for name in ("sflow", "ipfix")
    }


app = typer.Typer(
    cls=ExportCommands,
    help="Tell a collector which packets pass and which are dropped, by samples of the workers.\n\n"
    "Example: dl3 export sflow 192.0.2.10 --sample 1000",
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
)


@app.callback()
def options() -> None:
    """Options of 'dl3 export': none."""


Where = Annotated[
    str, typer.Argument(metavar="COLLECTOR", help="Address or name, with :PORT if it is another than the usual one.")
]
Sampling = Annotated[
    int, typer.Option("--sample", min=1, max=10**9, metavar="N", help="One of N received frames, at random.")
]
DropSampling = Annotated[
    int, typer.Option("--sample-drops", min=1, max=10**9, metavar="N", help="One of N dropped packets, at random.")
]
Socket = Annotated[Path, typer.Option(metavar="PATH", help="Control socket of dl3d.", readable=False)]
Json = Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")]


def collector_of(text: str, usual_port: int) -> Collector:
    """'192.0.2.10', 'host:6343', '[2001:db8::1]:6343' or '2001:db8::1'."""
    found = PLACE.match(text)
    if found is None:
        try:
            return Collector(str(ip_address(text)), usual_port)
        except ValueError:
            raise UsageFault(f"'{text}' is no collector: expected ADDRESS or ADDRESS:PORT") from None
    port = int(found["port"] or usual_port)
    if not 1 <= port <= LARGEST_PORT:
        raise UsageFault(f"'{text}' is no collector: the port is not within 1 to {LARGEST_PORT}")
    return Collector(found["in_brackets"] or found["host"], port)


def report(tally: Tally, as_json: bool) -> None:
    """The summary."""
    if as_json:
        print_json(vars(tally))
        return
    lost = f"; missed {counted(tally.missed, 'sample')}: sample fewer frames" if tally.missed else ""
    refused = f"; {counted(tally.unsent, 'datagram')} could not be sent" if tally.unsent else ""
    done = f"{counted(tally.samples, 'frame')} and {counted(tally.drops, 'dropped packet')}"
    err.print(
        f"dl3: sampled {done}, sent {counted(tally.datagrams, 'datagram')}{lost}{refused}",
        highlight=False,
        soft_wrap=True,
    )


def run(socket: Path, made: Format, collector: Collector, samples: tuple[int, int], as_json: bool) -> None:
    """Export until Ctrl-C, or dl3d ends."""
    settings = {"snap": HEADER_BYTES, "sample": samples[0], "sample_drops": samples[1]}

    def began() -> None:
        err.print(f"dl3: exporting to {collector.name}", highlight=False, soft_wrap=True)

    exporter = Exporter(Client(socket), made, collector, began)
    try:
        with capturing(socket, **settings) as stream:
            try:
                exporter.follow(stream)
            except KeyboardInterrupt:
                stream.end()
                exporter.follow(stream)
            finally:
                exporter.finish()
                report(exporter.tally, as_json)
    finally:
        collector.close()


def sflow(
    collector: Where,
    sample: Sampling = 1000,
    sample_drops: DropSampling = 1,
    counters: Annotated[
        float, typer.Option(min=1, max=3600, metavar="SECONDS", help="How often to send the counters of the ports.")
    ] = 20.0,
    agent: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Own address in the datagrams; default: that of the interface used."),
    ] = None,
    socket: Socket = DEFAULT_SOCKET,
    as_json: Json = False,
) -> None:
    """Send sFlow version 5 until Ctrl-C: sampled frames, drops with their reasons, and counters of the ports.

    The number of an interface is that of the port in 'dl3 show ports' + 1. Exit status: 0 ended by Ctrl-C, 1 failed, 2 usage error.

    Example: dl3 export sflow 192.0.2.10:6343 --sample 1000 --agent 198.51.100.1
    """
    to = collector_of(collector, SFLOW_PORT)
    try:
        own = ip_address(agent) if agent is not None else to.own_address
    except ValueError:
        raise UsageFault(f"--agent {agent}: expected an IPv4 or IPv6 address") from None
    run(socket, SflowFormat(own, sample, counters), to, (sample, sample_drops), as_json)


def ipfix(
    collector: Where,
    sample: Sampling = 1000,
    sample_drops: DropSampling = 1,
    active: Annotated[
        float, typer.Option(min=1, max=3600, metavar="SECONDS", help="Tell of a flow at least so often.")
    ] = 60.0,
    idle: Annotated[
        float, typer.Option(min=1, max=3600, metavar="SECONDS", help="A flow ends after so long without a packet.")
    ] = 15.0,
    socket: Socket = DEFAULT_SOCKET,
    as_json: Json = False,
) -> None:
    """Send IPFIX over UDP until Ctrl-C: flows of sampled packets, with the forwarding status of dropped ones.

    Counts are those of the samples; the collector multiplies them by N, of which options records tell it. Exit status: 0 ended by
    Ctrl-C, 1 failed, 2 usage error.

    Example: dl3 export ipfix 192.0.2.10:4739 --sample 1000 --active 60
    """
    to = collector_of(collector, IPFIX_PORT)
    made = IpfixFormat(Flows(active, idle, MOST_FLOWS), Messages(sample, sample_drops))
    run(socket, made, to, (sample, sample_drops), as_json)
