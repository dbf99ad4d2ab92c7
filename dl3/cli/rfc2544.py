"""The commands 'dl3 bench throughput' and 'dl3 bench latency'."""

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from math import inf
from pathlib import Path
from typing import Annotated

import typer

from dl3.bench.latency import LOADS, measure_latency, newest
from dl3.bench.site import Found, Run, frames_for
from dl3.bench.throughput import Wanted, budget_s, find_all
from dl3.cli import given
from dl3.cli.place import ONE_WAY, Place, device_of, fit_for, run_at
from dl3.cli.printing import err, out, print_json, table
from dl3.cli.progress import Bar, span
from dl3.cli.results import METHODS, as_plain, microseconds, say, show
from dl3.control.client import DL3GEN
from dl3.model.campaign import Direction
from dl3.model.fault import Fault, UsageFault
from dl3.model.stream import amount
from dl3.model.trial import Throughput, Trial, wire_of
from dl3.record.reader import read
from dl3.search.throughput import SearchSettings


class Search(StrEnum):
    """The search method for the throughput."""

    MLRSEARCH = "mlrsearch"
    BINARY = "binary"


Socket = Annotated[Path, typer.Option("--generator", metavar="PATH", help="Control socket of dl3gen.", readable=False)]
Dut = Annotated[
    str,
    typer.Option(
        metavar="PATH", help="Control socket of the tested dl3d, for packet accounting; 'none' for other devices."
    ),
]
Name = Annotated[str, typer.Option("--dut-name", metavar="NAME", help="Name of the device under test in reports.")]
Lab = Annotated[bool, typer.Option("--lab", help="Start dl3gen and dl3d, connected by memif, on cores 0 and 1.")]
At = Annotated[
    str,
    typer.Option(
        callback=given.machine, metavar="URL", help="Machine that runs the tested dl3d: ssh://admin@192.0.2.7."
    ),
]
Sizes = Annotated[
    str,
    typer.Option(
        callback=given.sizes,
        metavar="SIZES",
        help="Frame sizes including the FCS, and frame size mixes (imix, classic), separated by commas.",
    ),
]
Ways = Annotated[
    Direction,
    typer.Option(
        "--direction", help="Traffic direction with --lab. With --streams, the ports are taken from the file."
    ),
]
Streams = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="YAML list of streams to use instead of those in the file of dl3gen."),
]
Method = Annotated[
    Search, typer.Option(help="mlrsearch (RFC 9971, all goals in one search) or binary (one search per goal).")
]
Goals = Annotated[
    str,
    typer.Option(
        metavar="RATIOS", help="Accepted loss ratios (RFC 9971: Goal Loss Ratio), separated by commas: '0,0.005'."
    ),
]
Exceed = Annotated[
    float,
    typer.Option(
        min=0,
        max=0.9,
        metavar="SHARE",
        help="Maximum share of the trial time at a load in which the loss ratio may exceed the goal (RFC 9971: Goal Exceed "
        "Ratio); for noisy machines.",
    ),
]
Resolution = Annotated[
    float,
    typer.Option(
        min=0.0001,
        max=0.5,
        metavar="SHARE",
        help="The search stops when its interval is narrower than this share of the rate (RFC 9971: Goal Width).",
    ),
]
Seconds = Annotated[
    float,
    typer.Option(
        min=0.1,
        max=86400,
        metavar="SECONDS",
        help="Duration of a full-length trial (RFC 9971: Goal Final Trial Duration); RFC 2544 requires 60.",
    ),
]
Trials = Annotated[
    int,
    typer.Option(
        min=1,
        max=100,
        metavar="N",
        help="Minimum number of full-length trials at each load (RFC 9971: Goal Duration Sum / Goal Final Trial Duration).",
    ),
]
Repeat = Annotated[
    int, typer.Option(min=1, max=100, metavar="N", help="Number of searches; the result is their median.")
]
Retries = Annotated[
    int, typer.Option(min=0, max=1000, metavar="N", help="Maximum number of times that an INVALID trial is repeated.")
]
MaxRate = Annotated[
    str,
    typer.Option(metavar="RATE", help="Maximum load, aggregated over all streams (RFC 9971: Max Load): '1.5 Mpps'."),
]
RecordFile = Annotated[
    Path | None,
    typer.Option(
        "--record",
        callback=given.record,
        metavar="FILE",
        help="File to which one JSON line per trial and result is appended.",
    ),
]
Loads = Annotated[str, typer.Option(metavar="PERCENT", help="Loads in percent of the throughput, separated by commas.")]
From = Annotated[
    Path | None,
    typer.Option(
        "--from",
        callback=given.source,
        metavar="FILE",
        help="Take the throughput from this record instead of measuring it.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]

LATENCY_COLUMNS = ("frame", ">load", ">Mpps", ">min us", ">p50 us", ">p99 us", ">p99.9 us", ">max us", ">lost", "valid")
MOST_GOAL = 0.5
PERCENTS = ",".join(f"{load * 100:g}" for load in LOADS)


def latency_row(trial: Trial) -> tuple[object, ...]:
    """One trial."""
    spread, load = trial.latency, f"{trial.load or 0:.0%}"
    times = microseconds(spread.min, spread.p50, spread.p99, spread.p99_9, spread.max)
    return (trial.frame, load, f"{trial.offered_pps / 1e6:.3f}", *times, trial.account.lost, not trial.invalid)


def pps_of(text: str) -> float:
    """Parses packets per second; 0 if none."""
    unit, value = amount(text)
    if text and (unit != "pps" or not 0 < value < inf):
        raise UsageFault(f"--max-rate {text}: expected a rate like '1.5 Mpps' or '800 kpps'")
    return value if text else 0.0


def goals_of(text: str) -> tuple[float, ...]:
    """Parses loss ratios."""
    try:
        goals = tuple(float(word) for word in text.split(",") if word.strip())
    except ValueError:
        goals = ()
    if not goals or len(set(goals)) < len(goals) or not all(0 <= goal <= MOST_GOAL for goal in goals):
        raise UsageFault(f"--goals {text}: expected loss ratios 0..{MOST_GOAL} without duplicates, like 0,0.005")
    return goals


def exceed_of(exceed: float, method: Search) -> float:
    """The exceed ratio, if the search method has one."""
    if exceed and method != Search.MLRSEARCH:
        raise UsageFault(f"--exceed {exceed:g} applies to RFC 9971 only: omit it, or use --method mlrsearch")
    return exceed


def loads_of(text: str) -> tuple[float, ...]:
    """Parses percentages as shares."""
    try:
        loads = tuple(float(word) / 100 for word in text.split(",") if word.strip())
    except ValueError:
        loads = ()
    if not loads or not all(0 < load <= 1 for load in loads):
        raise UsageFault(f"--loads {text}: expected percentages of the throughput, like 10,50,90")
    return loads


def frames_of(text: str, run: Run) -> tuple[str, ...]:
    """Those that were given, else all that the streams support."""
    return given.frames_of(text) or frames_for(run.streams, run.site.generator)


def search(run: Run, bar: Bar, wanted: Wanted) -> Sequence[Found]:
    """Find the throughput of all frame sizes, and estimate the duration beforehand."""
    err.print(f"about {span(budget_s(run, wanted))}; record: {run.record}", highlight=False, soft_wrap=True)
    try:
        with bar:
            return find_all(run, wanted)
    except KeyboardInterrupt:
        err.print(f"stopped; the trials so far are in {run.record}", highlight=False, soft_wrap=True)
        raise


def finish(bar: Bar, run: Run) -> None:
    """Print where the record is, and the exit status."""
    err.print(f"recorded in {run.record}", highlight=False, soft_wrap=True)
    if bar.n_without_result:
        raise Fault(f"{bar.n_without_result} of the searches ended without a result, see above")


def throughput(
    generator: Socket = DL3GEN.socket,
    dut: Dut = "",
    dut_name: Name = "",
    lab: Lab = False,
    at: At = "",
    sizes: Sizes = "",
    streams: Streams = None,
    direction: Ways = ONE_WAY,
    method: Method = Search.MLRSEARCH,
    goals: Goals = "0",
    exceed: Exceed = 0.0,
    resolution: Resolution = 0.005,
    seconds: Seconds = 2.0,
    trials: Trials = 1,
    repeat: Repeat = 1,
    retries: Retries = 3,
    max_rate: MaxRate = "",
    record: RecordFile = None,
    as_json: Json = False,
) -> None:
    """Find the highest rate without loss, or within each accepted loss ratio of --goals (RFC 2544, 26.1; RFC 9971).

    Example: dl3 bench throughput --lab --sizes 64,imix --goals 0,0.005
    """
    settings = SearchSettings(resolution=resolution, repetitions=trials, retries=retries)
    wanted = Wanted((), settings, pps_of(max_rate), method.value, goals_of(goals), repeat, exceed_of(exceed, method))
    place = Place(generator, dut, dut_name, lab, streams, record, at, direction)
    print_throughput(place, wanted, sizes, seconds, as_json)


def print_throughput(place: Place, wanted: Wanted, sizes: str, seconds: float, as_json: bool) -> None:
    """Search, then print the table or JSON."""
    bar = Bar()
    with run_at(fit_for(sizes, place), seconds, bar) as run:
        found = search(run, bar, replace(wanted, frames=frames_of(sizes, run)))
    if as_json:
        print_json({"record": str(run.record), "results": [as_plain(one) for one in found]})
    elif found:
        how = f"throughput of {device_of(run.site)} by {METHODS[wanted.method]}"
        show(f"{how}; Gbit/s with preamble and gap, latency at that rate", found)
    finish(bar, run)


def known_results(run: Run, source: Path, sizes: str) -> list[Throughput]:
    """The throughputs in a record, for this device."""
    record = read(source)
    for sentence in record.left_out:
        err.print(sentence, markup=False, highlight=False, soft_wrap=True)
    frames = frames_of(sizes, run) if sizes else tuple(dict.fromkeys(result.frame for result in record.results))
    wire = wire_of(run.site.facts)
    found = newest(record.results, run.site.dut_name, frames, wire)
    of = f"{run.site.dut_name} over {wire}" if wire else run.site.dut_name
    if not found:
        raise UsageFault(f"{source} has no throughput of {of}: specify the device with --dut-name")
    if missing := [frame for frame in frames if sizes and frame not in {one.frame for one in found}]:
        raise UsageFault(f"{source} has no throughput of {of} with frames of {', '.join(missing)}: omit them")
    return found


def latency(
    generator: Socket = DL3GEN.socket,
    dut: Dut = "",
    dut_name: Name = "",
    lab: Lab = False,
    at: At = "",
    sizes: Sizes = "",
    streams: Streams = None,
    direction: Ways = ONE_WAY,
    loads: Loads = PERCENTS,
    source: From = None,
    seconds: Seconds = 2.0,
    record: RecordFile = None,
    as_json: Json = False,
) -> None:
    """Measure latency at percentages of the throughput, which is measured first if no record has it.

    Example: dl3 bench latency --lab --sizes 64 --loads 10,50,90
    """
    shares, bar = loads_of(loads), Bar()
    place = fit_for(sizes, Place(generator, dut, dut_name, lab, streams, record, at, direction))
    with run_at(place, seconds, bar) as run:
        if source:
            results = known_results(run, source, sizes)
        else:
            results = [one.result for one in search(run, bar, Wanted(frames_of(sizes, run)))]
        with bar:
            trials = measure_latency(run, results, shares)
    show_latency(run, trials, as_json)
    finish(bar, run)


def show_latency(run: Run, trials: Sequence[Trial], as_json: bool) -> None:
    """The table, or JSON."""
    if as_json:
        print_json({"record": str(run.record), "trials": [trial.model_dump() for trial in trials]})
        return
    say(f"latency of {device_of(run.site)}, from the time at which a frame was due")
    out.print(table("", LATENCY_COLUMNS, [latency_row(trial) for trial in trials]))
