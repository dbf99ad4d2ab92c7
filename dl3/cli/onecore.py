"""The methods under 'dl3 bench'."""

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
from dl3.cli import campaign, compare, given, idle, peers, proof, rfc, rfc2544
from dl3.cli.printing import err, out, print_json, table
from dl3.cli.show import draw_steps
from dl3.control.client import Client
from dl3.control.replies import Workers
from dl3.control.workers import idle_of
from dl3.host.hugepages import reserved
from dl3.lab.tables import TableFiles
from dl3.model.fault import UsageFault
from dl3.model.sample import Sample, middle

app = typer.Typer(
    help="Measure forwarders: how fast, how late, and what a packet costs.\n\nExample: dl3 bench throughput --lab",
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
)

app.command()(campaign.run)
app.command()(campaign.campaigns)
app.command("compare")(compare.compare_two)
app.command()(peers.peers)
app.command()(rfc2544.throughput)
app.command()(rfc2544.latency)
app.command()(proof.proof)
app.command()(idle.idle)
app.command("frame-loss")(rfc.frame_loss)
app.command("back-to-back")(rfc.back_to_back)
app.command("recovery")(rfc.recovery)
app.command("reset")(rfc.reset)
app.command("forwarding")(rfc.forwarding)
app.command("rfc2544")(rfc.rfc2544)

RECORD = BUILD / "records" / "onecore.jsonl"
MOST_DESCRIPTORS = 1 << 20
RING_HELP = "Descriptors of a ring in which frames arrive: seeks the zero-loss rate. COMMAND pins its workers itself."

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Core = Annotated[int, typer.Option(min=0, callback=given.core, help="The processor to measure on.")]
Routes = Annotated[str, typer.Option(help="A table of ours: one, 10k, 1m, v6-1 or v6-200k.")]
Record = Annotated[Path, typer.Option(callback=given.record, help="File that gets a JSON line per sample.")]
Hops = Annotated[int, typer.Option(min=1, max=16384, help="Next hops in dl3d's routes.")]


@app.command()
def plugin(as_json: Json = False) -> None:
    """Print the path of the one-core plugin, for the EAL option -d of any DPDK program.

    Example: dl3 bench plugin
    """
    path = str(built(PLUGIN, "make"))
    print_json({"plugin": path}) if as_json else typer.echo(path)


@app.command()
def tables(routes: Routes = "1m", hops: Hops = 256, as_json: Json = False) -> None:
    """Make a table of destinations with its routes and print the paths of the files.

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
        f"  {sample.cycles_per_packet:6.1f} cycles per packet  (had {sample.core_share:.0%} of the core)",
        highlight=False,
        soft_wrap=True,
    )


def tell_steps(place: Workplace) -> None:
    """What workers do without frames and where their cycles went, when it is dl3d that runs."""
    for socket in place.folder.glob("*.sock"):
        workers = Client(socket).ask(Workers, "workers")
        err.print(f"dl3d's workers without frames: {idle_of(workers).get('idle', '')}", highlight=False)
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
    """What to measure, and with what."""

    command: list[str]
    files: TableFiles
    table: Path | None
    settings: Settings
    max_burst: int | None
    ring: int | None
    pages: int


def places(case: Case, place: Workplace) -> dict[str, str]:
    """What {plugin} and {config} in a command stand for."""
    named = {"plugin": str(place.plugin)}
    if any("{config}" in word for word in case.command):
        named["config"] = str(write_config(case.settings, case.files, place))
    return named


def take(case: Case, plan: Plan, record: Path) -> Sequence[Sample]:
    """Set up the workplace and the huge pages, measure, put all back."""
    if case.table and not case.table.exists():
        raise UsageFault(f"there is no table {case.table}")
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

        def hear(sample: Sample) -> None:
            tell(sample)
            if next(left) == 0:
                tell_steps(place)

        return measure(job, place, plan, hear, record)


@app.command(context_settings={"ignore_unknown_options": True})
def onecore(
    command: Annotated[list[str], typer.Argument(help="A DPDK program; {plugin} and {config} are filled in.")],
    table: Annotated[Path | None, typer.Option(help="A file of destinations instead of a table of ours.")] = None,
    routes: Routes = "one",
    hops: Hops = 256,
    core: Core = 0,
    seconds: Annotated[float, typer.Option(min=0.1, max=86400, help="Seconds of one sample.")] = 3.0,
    samples: Annotated[int, typer.Option(min=1, help="How many samples.")] = 3,
    burst: Annotated[int | None, typer.Option(min=1, help="Frames that a poll gets at most.")] = None,
    ring: Annotated[int | None, typer.Option(min=1, max=MOST_DESCRIPTORS, help=RING_HELP)] = None,
    pages: Annotated[int, typer.Option(min=0, help="2 MiB pages to have free; reserved for the time.")] = 512,
    record: Record = RECORD,
    as_json: Json = False,
) -> None:
    """Measure any DPDK program on one core: its port 0 receives real frames, made by a plugin, port 1 swallows them.

    {plugin} in the command stands for the plugin's path, {config} for a file for dl3d with the routes.

    Example: dl3 bench onecore --routes 1m -- build/src/dl3d {config}

    \b
    Example: dl3 bench onecore -- dpdk-testpmd --no-pci --in-memory -m 512 \\
      -d {plugin} --vdev net_null0 --vdev net_null1,no-rx=1 --lcores 0@0,1@0 \\
      -- --nb-cores=1 --forward-mode=macswap --auto-start
    """
    settings = Settings(core=core, n_hops=hops)
    case = Case(command, TableFiles(routes, TABLES), table, settings, burst, ring, pages)
    show(take(case, Plan(samples, seconds), record), as_json)
