"""The commands 'dl3 bench onecore', 'plugin' and 'tables': measures a program on one core, without devices."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from dl3.bench.forwarder import Settings, write_config
from dl3.bench.measure import Plan, measure, step_aside
from dl3.bench.onecore import Job, fill_in
from dl3.bench.workplace import BUILD, PLUGIN, TABLES, Workplace, built, workplace
from dl3.cli import given
from dl3.cli.printing import err, out, print_json, table
from dl3.cli.workers import draw_steps
from dl3.control.client import Client
from dl3.control.replies import Workers
from dl3.control.workers import idle_of
from dl3.host.hugepages import reserved
from dl3.lab.tables import TableFiles
from dl3.model.fault import UsageFault
from dl3.model.sample import Sample, middle

RECORD = BUILD / "records" / "onecore.jsonl"
MOST_DESCRIPTORS = 1 << 20
RING_HELP = "Descriptors of a ring in which frames arrive: seeks the zero-loss rate. COMMAND pins its workers itself."

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Core = Annotated[int, typer.Option(min=0, callback=given.core, metavar="CORE", help="CPU core to measure on.")]
Routes = Annotated[str, typer.Option(metavar="TABLE", help="Built-in table: one, 10k, 1m, v6-1 or v6-200k.")]
Record = Annotated[
    Path,
    typer.Option(callback=given.record, metavar="FILE", help="File to which one JSON line per sample is appended."),
]
Hops = Annotated[int, typer.Option(min=1, max=16384, metavar="N", help="Number of next hops in the routes of dl3d.")]


def plugin(as_json: Json = False) -> None:
    """Print the path of the one-core plugin, for the EAL option -d.

    Example: dl3 bench plugin
    """
    path = str(built(PLUGIN, "make"))
    print_json({"plugin": path}) if as_json else typer.echo(path)


def tables(routes: Routes = "1m", hops: Hops = 256, as_json: Json = False) -> None:
    """Write a table of destinations and its routes, and print the paths of the files.

    Example: dl3 bench tables --routes 1m
    """
    files = TableFiles(routes, TABLES)
    made = {
        "table": str(files.destinations()),
        "dl3d_routes": str(files.dl3d_routes(hops, "out")),
        "l3fwd_rules": str(files.l3fwd_rules()),
    }
    if as_json:
        print_json(made)
        return
    out.print(table("", ("file", "~path"), made.items()))


def tell(sample: Sample) -> None:
    """One line per sample, as it is taken."""
    err.print(
        f"  received {sample.received_pps / 1e6:7.2f}  sent {sample.sent_mpps:7.2f} Mpps"
        f"  {sample.cycles_per_packet:6.1f} cycles per packet  (got {sample.core_share:.0%} of the core)",
        highlight=False,
        soft_wrap=True,
    )


def tell_steps(place: Workplace) -> None:
    """The idle mode of the workers and the cycles per step, if the program is dl3d."""
    for socket in place.folder.glob("*.sock"):
        workers = Client(socket).ask(Workers, "workers")
        err.print(f"idle mode of dl3d's workers: {idle_of(workers).get('idle', '')}", highlight=False)
        steps = draw_steps(workers)
        if steps:
            err.print(steps)


def show(samples: Sequence[Sample], as_json: bool) -> None:
    """The medians, or all samples as JSON."""
    best = middle(samples)
    if as_json:
        print_json({"samples": [vars(sample) for sample in samples], "median": vars(best)})
        return
    out.print(
        f"median: {best.sent_mpps:.2f} Mpps sent, {best.cycles_per_packet:.1f} TSC cycles per packet", highlight=False
    )


@dataclass(frozen=True)
class Case:
    """What to measure, and with which settings."""

    command: list[str]
    files: TableFiles
    table: Path | None
    settings: Settings
    max_burst: int | None
    ring: int | None
    pages: int


def places(case: Case, place: Workplace) -> dict[str, str]:
    """The values of {plugin} and {config} in a command."""
    named = {"plugin": str(place.plugin)}
    if any("{config}" in word for word in case.command):
        named["config"] = str(write_config(case.settings, case.files, place))
    return named


def take(case: Case, plan: Plan, record: Path) -> Sequence[Sample]:
    """Set up the workspace and huge pages, measure, and restore everything."""
    if case.table and not case.table.exists():
        raise UsageFault(f"unknown table {case.table}")
    with ExitStack() as stack:
        place = stack.enter_context(workplace())
        table = case.table or case.files.destinations()
        command = fill_in(case.command, places(case, place))
        stack.enter_context(reserved(case.pages))
        step_aside(case.settings.core)
        job = Job(
            Path(command[0]).name,
            command,
            table,
            core=case.settings.core,
            max_burst=case.max_burst,
            ring=case.ring,
        )
        left = iter(range(plan.samples - 1, -1, -1))

        def report(sample: Sample) -> None:
            tell(sample)
            if next(left) == 0:
                tell_steps(place)

        return measure(job, place, plan, report, record)


def onecore(
    command: Annotated[
        list[str],
        typer.Argument(metavar="COMMAND", help="A DPDK program and its arguments; {plugin} and {config} are replaced."),
    ],
    table: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File of destinations to use instead of a built-in table.")
    ] = None,
    routes: Routes = "one",
    hops: Hops = 256,
    core: Core = 0,
    seconds: Annotated[
        float, typer.Option(min=0.1, max=86400, metavar="SECONDS", help="Duration of one sample.")
    ] = 3.0,
    samples: Annotated[int, typer.Option(min=1, metavar="N", help="Number of samples.")] = 3,
    burst: Annotated[
        int | None, typer.Option(min=1, metavar="FRAMES", help="Maximum number of frames per poll.")
    ] = None,
    ring: Annotated[
        int | None, typer.Option(min=1, max=MOST_DESCRIPTORS, metavar="DESCRIPTORS", help=RING_HELP)
    ] = None,
    pages: Annotated[
        int, typer.Option(min=0, metavar="PAGES", help="Number of 2 MiB huge pages to reserve during the measurement.")
    ] = 512,
    record: Record = RECORD,
    as_json: Json = False,
) -> None:
    """Measure a DPDK program on one core: a plugin generates frames on port 0 and discards them on port 1.

    In the command, {plugin} is replaced by the path of the plugin, {config} by a configuration file for dl3d with the routes.

    Example: dl3 bench onecore --routes 1m -- build/src/dl3d {config}

    \b
    Example: dl3 bench onecore -- dpdk-testpmd --no-pci --in-memory -m 512 \\
      -d {plugin} --vdev net_null0 --vdev net_null1,no-rx=1 --lcores 0@0,1@0 \\
      -- --nb-cores=1 --forward-mode=macswap --auto-start
    """
    case = Case(command, TableFiles(routes, TABLES), table, Settings(core=core, n_hops=hops), burst, ring, pages)
    show(take(case, Plan(samples, seconds), record), as_json)
