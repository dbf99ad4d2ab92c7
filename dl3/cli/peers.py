"""The command 'dl3 bench peers'."""

import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from dl3.bench.contest import Effort, Found, Row, rows_named, run_rows
from dl3.bench.measure import step_aside
from dl3.bench.report import Outcome, outcome, write
from dl3.bench.sides import PairSettings
from dl3.bench.space import pages_of
from dl3.bench.workplace import BUILD, TOP, workplace
from dl3.cli import given
from dl3.cli.printing import err, out, print_json, table
from dl3.host.hugepages import reserved
from dl3.host.root import need_root
from dl3.model.comparison import Comparison
from dl3.model.fault import Fault, UsageFault
from dl3.record.facts import collect

STDERR = 2  # standard output is for the result
OPTIONAL_PEERS = {"l3fwd-graph": "--graph", "l3fwd exact match": "--em"}  # with the option of build-peers
OUTPUT = BUILD / "bench.json"

HEADING = "Mpps of one core; ratio of the medians; low, middle, high: ratios of pairs; TSC cycles per packet"
RATIOS = (">ratio", ">low", ">middle", ">high")
COLUMNS = ("row", ">ours", ">peer", *RATIOS, ">pairs", ">cycles", ">peer's", ">share of core", "-march")


def build_peers(rows: tuple[Row, ...], burst: int) -> None:
    """Build whatever is missing."""
    programs = {row.peer.program for row in rows}
    options = [option for program, option in OPTIONAL_PEERS.items() if program in programs]
    command = [str(TOP / "tools" / "build-peers"), "--burst", str(burst), *options]
    if subprocess.run(command, check=False, stdout=STDERR).returncode:
        raise Fault("the peers could not be built")


def cells(row: Comparison, march: str) -> tuple[str, ...]:
    """A row as text."""
    rates = (f"{row.ours:.2f}", f"{row.peer:.2f}")
    ratios = tuple(f"{ratio:.3f}" for ratio in (row.ratio, row.low, row.middle, row.high))
    cycles = (f"{row.ours_cycles:.1f}", f"{row.peer_cycles:.1f}")
    return (row.name, *rates, *ratios, str(row.n_pairs), *cycles, f"{row.core_share:.0%}", march)


def show(result: Outcome) -> None:
    """The conditions, then the rows."""
    facts = result.facts
    out.print(f"{facts.cpu_model}, kernel {facts.kernel}, DPDK {facts.dpdk}, {facts.compiler}", highlight=False)
    out.print(
        f"both programs: core {result.core}, {result.memory_mib} MiB in 2 MiB pages, bursts of {result.burst}, "
        f"{result.descriptors} descriptors; {result.starts} starts of {result.pairs_per_start} pairs, "
        f"{result.seconds_per_sample:g} s a sample; built into dl3d and dl3gen, plugins in the others: "
        f"{', '.join(facts.drivers_within) or 'nothing'}; idle mode of dl3d's workers: {facts.default_idle}",
        highlight=False,
    )
    rows = (cells(row, result.marches[row.name]) for row in result.rows)
    out.print(table(HEADING, COLUMNS, rows))
    notes = [f"{row.name}: {row.note}" for row in result.rows if row.note]
    for line in (*notes, *result.missing.values()):
        out.print(line, highlight=False, soft_wrap=True)


def in_a_line(found: Found) -> str:
    """A row as soon as it is complete."""
    if not (row := found.comparison):
        return found.reason
    return f"{row.name}: {row.ours:.2f} / {row.peer:.2f} Mpps = {row.ratio:.3f} (pairs {row.middle:.3f})"


def chosen(names: list[str] | None) -> tuple[Row, ...]:
    """Rows by name; names may be joined by commas."""
    found = [name for joined in names or [] for name in joined.split(",") if name]
    if names and not found:
        raise UsageFault("--rows is empty: name rows, or omit it for the default ones")
    return rows_named(found)


def contest(rows: tuple[Row, ...], terms: PairSettings, effort: Effort) -> Outcome:
    """Run all rows with a progress bar."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with ExitStack() as stack:
        place = stack.enter_context(workplace())
        stack.enter_context(reserved(pages_of(terms)))
        step_aside(terms.core)
        bar = stack.enter_context(Progress(*columns, console=err, transient=True))
        task = bar.add_task(rows[0].name, total=len(rows))

        def report(found: Found) -> None:
            err.print(in_a_line(found), highlight=False, soft_wrap=True)
            following = rows[rows.index(found.row) + 1 :]
            bar.update(task, advance=1, description=following[0].name if following else "done")

        return outcome(terms, effort, collect(BUILD), run_rows(rows, terms, place, effort, report))


def peers(
    starts: Annotated[
        int,
        typer.Option(min=1, metavar="N", help="How often both programs are started; five pairs of samples each time."),
    ] = 5,
    rows: Annotated[
        list[str] | None, typer.Option(metavar="ROWS", help="Only these rows, separated by commas.")
    ] = None,
    output: Annotated[Path, typer.Option(callback=given.output, metavar="FILE", help="JSON file to write.")] = OUTPUT,
    seconds: Annotated[
        float, typer.Option(min=0.1, max=86400, metavar="SECONDS", help="Duration of one sample.")
    ] = 0.5,
    core: Annotated[int, typer.Option(min=0, callback=given.core, metavar="CORE", help="CPU core to measure on.")] = 0,
    burst: Annotated[
        int, typer.Option(min=4, max=64, metavar="FRAMES", help="Burst size of both programs, in frames.")
    ] = 64,
    memory: Annotated[int, typer.Option(min=64, metavar="MIB", help="EAL memory of each program.")] = 1024,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compare dl3d with l3fwd, testpmd and Open vSwitch alternately on one core, with equal memory, burst, descriptors
    and -march.

    Example: dl3 bench peers --rows ipv4-1-route,ipv4-1m-routes
    """
    picked = chosen(rows)
    need_root("a measurement on one core")
    build_peers(picked, burst)
    result = contest(picked, PairSettings(core=core, burst=burst, memory_mib=memory), Effort(starts, seconds))
    write(output, result)
    if as_json:
        print_json(result.model_dump())
        return
    show(result)
    out.print(f"written to {output}", highlight=False, soft_wrap=True)
