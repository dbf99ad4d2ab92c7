"""The command 'dl3 bench proof'."""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dl3.bench.proof import LOOP, loop_of, prove
from dl3.bench.site import ProgressListener, Run, facts_of, frames_for, streams_of
from dl3.bench.stability import watch_of_bed
from dl3.bench.workplace import BUILD
from dl3.cli import given
from dl3.cli.place import REPLY_TIMEOUT_S, new_record
from dl3.cli.printing import err, out, print_json, table
from dl3.cli.progress import Bar, words_for
from dl3.cli.results import microseconds, say
from dl3.control.client import DL3GEN, Client
from dl3.dut.beds import open_bed
from dl3.host.noise import Watch
from dl3.host.root import need_root
from dl3.model.campaign import DutSpec, Setup, Traffic
from dl3.model.fault import Fault
from dl3.model.results import Proof, ProofPoint
from dl3.record.journal import now
from dl3.trial.order import Site
from dl3.trial.run import Runner

FILE = "ports of the file"
RING = 16_384  # as in the lab of the other commands
COLUMNS = ("frame", ">Mpps", ">pacing error", ">min us", ">p50 us", ">jitter us", "valid")


class Wire(StrEnum):
    """Kinds of ports that support a loop."""

    MEMIF = "memif"
    VETH = "veth"


Socket = Annotated[
    Path,
    typer.Option(
        "--generator",
        metavar="PATH",
        help="Control socket of dl3gen; its two ports are connected to each other.",
        readable=False,
    ),
]
Lab = Annotated[bool, typer.Option("--lab", help="Start dl3gen and testpmd as a loopback, on cores 0 and 1.")]
WireOption = Annotated[Wire, typer.Option("--wire", help="Type of the ports in the lab.")]
Sizes = Annotated[
    str,
    typer.Option(
        callback=given.sizes,
        metavar="SIZES",
        help="Frame sizes including the FCS, and frame size mixes (imix, classic), separated by commas.",
    ),
]
Seconds = Annotated[float, typer.Option(min=0.1, max=86400, metavar="SECONDS", help="Duration of one trial.")]
RecordFile = Annotated[
    Path | None,
    typer.Option(
        "--record",
        callback=given.record,
        metavar="FILE",
        help="File to which one JSON line per trial and proof is appended.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@contextmanager
def looped_lab(wire: Wire) -> Iterator[tuple[Site, str, Watch]]:
    """dl3gen with testpmd as a loop."""
    setup = Setup(dut=DutSpec(name=LOOP, kind="testpmd"), descriptors=RING)
    with open_bed(loop_of(setup, wire.value), Traffic(direction="unidirectional"), BUILD) as bed:
        facts = {**facts_of(bed.generator, None, BUILD), **bed.facts}
        yield Site(bed.generator, None, LOOP, now(), facts), bed.wire, watch_of_bed(bed, BUILD)


@contextmanager
def looped_site(socket: Path, wire: Wire | None) -> Iterator[tuple[Site, str, Watch]]:
    """The lab, or a dl3gen that is already running."""
    if wire:
        need_root("the lab")
        with looped_lab(wire) as found:
            yield found
        return
    generator = Client(socket, REPLY_TIMEOUT_S, DL3GEN)
    yield Site(generator, None, LOOP, now(), facts_of(generator, None, BUILD)), FILE, Watch()


def row(point: ProofPoint) -> tuple[object, ...]:
    """One frame size."""
    times = microseconds(point.latency_min_ns, point.latency_p50_ns, point.jitter_mean_ns)
    return (point.frame, f"{point.ceiling_pps / 1e6:.3f}", f"{point.pacing_error:+.4%}", *times, not point.invalid)


def show(proof: Proof) -> None:
    """The table, and why a point is not valid."""
    say(f"dl3gen by itself over {proof.wire}: ceiling, pacing at half of it, latency and jitter at a tenth")
    out.print(table("", COLUMNS, [row(point) for point in proof.points]))
    for point in proof.points:
        for reason in point.invalid:
            say(f"{words_for(point.frame)}: {reason}")
    for reason in proof.noise:
        say(f"noisy, {reason}")


def proof(
    generator: Socket = DL3GEN.socket,
    lab: Lab = False,
    wire: WireOption = Wire.MEMIF,
    sizes: Sizes = "",
    seconds: Seconds = 1.0,
    record: RecordFile = None,
    as_json: Json = False,
) -> None:
    """Measure dl3gen itself: maximum rate, pacing error, minimum latency.

    Its two ports are connected by a cable, or in the lab by a minimal forwarder.

    Example: dl3 bench proof --lab --sizes 64,1518
    """
    bar = Bar()
    if lab:
        given.refuse_beyond_lab(sizes)
    listener: ProgressListener = bar
    with looped_site(generator, wire if lab else None) as (site, kind, watch), bar:
        path, streams = record or new_record(site.campaign), streams_of(site.generator, None)
        run = Run(Runner(site), streams, path, seconds, listener=listener, look=watch.look)
        frames = given.frames_of(sizes) or frames_for(run.streams, run.site.generator)
        found = prove(run, frames, kind)
    print_json({"record": str(path), **found.model_dump()}) if as_json else show(found)
    err.print(f"recorded in {path}", highlight=False, soft_wrap=True)
    if any(point.invalid for point in found.points):
        raise Fault("some points are not valid, see above: give dl3gen dedicated cores, or a faster loop")
