"""The verbs 'dl3 bench throughput' and 'dl3 bench latency'."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from dl3.bench.latency import LOADS, measure_latency, newest
from dl3.bench.site import Course, Found, frames_for
from dl3.bench.throughput import Wanted, budget_s, find_all
from dl3.cli.place import Place, course_at
from dl3.cli.printing import err, out, print_json, table
from dl3.cli.progress import Bar, span
from dl3.control.client import DL3GEN
from dl3.model.fault import Fault, UsageFault
from dl3.model.stream import amount
from dl3.model.trial import Throughput, Trial
from dl3.record.reader import read
from dl3.search.throughput import Terms

Socket = Annotated[Path, typer.Option("--generator", help="dl3gen's control socket.")]
Dut = Annotated[str, typer.Option(help="Socket of the dl3d that is tested, to check its account; 'none' for others.")]
Name = Annotated[str, typer.Option("--dut-name", help="What is tested, as reports call it.")]
Lab = Annotated[bool, typer.Option("--lab", help="Start dl3gen and dl3d over memif for the time, on cores 0 and 1.")]
At = Annotated[str, typer.Option(help="The other machine, on which the tested dl3d runs: ssh://admin@192.0.2.7.")]
Sizes = Annotated[str, typer.Option(help="Frame sizes with FCS, and mixes, with commas.")]
Streams = Annotated[Path | None, typer.Option(help="A YAML list of streams instead of those of dl3gen's file.")]
Goal = Annotated[float, typer.Option(min=0, max=0.5, help="Loss ratio that still passes.")]
Resolution = Annotated[float, typer.Option(min=0.0001, max=0.5, help="Of the answer, relative.")]
Seconds = Annotated[float, typer.Option(min=0.1, max=86400, help="Of one trial; RFC 2544 wants 60.")]
Repeat = Annotated[int, typer.Option(min=1, max=100, help="Trials that all have to pass at a rate.")]
Retries = Annotated[int, typer.Option(min=0, max=1000, help="Of INVALID trials, at each rate.")]
MaxRate = Annotated[str, typer.Option(help="Search no higher, all streams together: '1.5 Mpps'.")]
RecordFile = Annotated[Path | None, typer.Option("--record", help="File that gets a JSON line per trial and answer.")]
Loads = Annotated[str, typer.Option(help="Percent of the throughput, with commas.")]
From = Annotated[Path | None, typer.Option("--from", help="Take the throughput from this record; else find it first.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]

THROUGHPUT_COLUMNS = (
    "frame",
    ">Mpps",
    ">Gbit/s",
    ">% of line",
    "limited by",
    ">p50 us",
    ">p99 us",
    ">max us",
    ">trials",
)
LATENCY_COLUMNS = ("frame", ">load", ">Mpps", ">min us", ">p50 us", ">p99 us", ">p99.9 us", ">max us", ">lost", "valid")
PERCENTS = ",".join(f"{load * 100:g}" for load in LOADS)


def microseconds(*times_ns: float) -> tuple[str, ...]:
    """Times as they are printed."""
    return tuple(f"{ns / 1000:,.1f}" for ns in times_ns)


def throughput_row(found: Found) -> tuple[object, ...]:
    """One answer; times are those of the trial at that rate."""
    answer, best = found.answer, found.best
    at_least = ">= " if answer.limited_by == "generator" else ""
    share = f"{answer.line_share:.1%}" if answer.line_share is not None else None
    rates = (f"{at_least}{answer.pps / 1e6:.3f}", f"{answer.l1_bps / 1e9:.3f}", share, answer.limited_by)
    times = microseconds(best.latency.p50, best.latency.p99, best.latency.max) if best else (None,) * 3
    invalid = f", {answer.n_invalid} INVALID" if answer.n_invalid else ""
    return (answer.frame, *rates, *times, f"{answer.n_trials}{invalid}")


def as_plain(found: Found) -> dict[str, object]:
    """An answer with what people see beside it, for programs."""
    answer, best = found.answer, found.best
    more = {"l1_bps": answer.l1_bps, "line_share": answer.line_share}
    return {**answer.model_dump(), **more, "latency": best.latency.model_dump() if best else None}


def latency_row(trial: Trial) -> tuple[object, ...]:
    """One trial."""
    spread, load = trial.latency, f"{trial.load or 0:.0%}"
    times = microseconds(spread.min, spread.p50, spread.p99, spread.p99_9, spread.max)
    return (trial.frame, load, f"{trial.offered_pps / 1e6:.3f}", *times, trial.account.lost, not trial.invalid)


def pps_of(text: str) -> float:
    """Packets per second as a person writes them; 0 without any."""
    unit, value = amount(text)
    if text and (unit != "pps" or value <= 0):
        raise UsageFault(f"--max-rate {text}: a rate like '1.5 Mpps' or '800 kpps' is wanted")
    return value if text else 0.0


def loads_of(text: str) -> tuple[float, ...]:
    """Shares as a person writes them in percent."""
    try:
        loads = tuple(float(word) / 100 for word in text.split(",") if word.strip())
    except ValueError:
        loads = ()
    if not loads or not all(0 < load <= 1 for load in loads):
        raise UsageFault(f"--loads {text}: percents of the throughput are wanted, like 10,50,90")
    return loads


def frames_of(text: str, course: Course) -> tuple[str, ...]:
    """Those that were named, else all that the streams can have."""
    return tuple(word.strip() for word in text.split(",") if word.strip()) or frames_for(course.streams)


def heading(text: str) -> None:
    """What a table is about."""
    out.print(text, markup=False, highlight=False, soft_wrap=True)


def search(course: Course, bar: Bar, wanted: Wanted) -> Sequence[Found]:
    """Find the throughput of all frames, and say beforehand how long it will take."""
    err.print(f"about {span(budget_s(course, wanted))}; record: {course.record}", highlight=False, soft_wrap=True)
    try:
        with bar:
            return find_all(course, wanted)
    except KeyboardInterrupt:
        err.print(f"stopped; the trials so far are in {course.record}", highlight=False, soft_wrap=True)
        raise


def finish(bar: Bar, course: Course) -> None:
    """Where the record is, and the exit code."""
    err.print(f"recorded in {course.record}", highlight=False, soft_wrap=True)
    if bar.n_without_answer:
        raise Fault(f"{bar.n_without_answer} of the searches ended without an answer, see above")


def throughput(
    generator: Socket = DL3GEN.socket,
    dut: Dut = "",
    dut_name: Name = "",
    lab: Lab = False,
    at: At = "",
    sizes: Sizes = "",
    streams: Streams = None,
    goal: Goal = 0.0,
    resolution: Resolution = 0.005,
    seconds: Seconds = 2.0,
    repeat: Repeat = 1,
    retries: Retries = 3,
    max_rate: MaxRate = "",
    record: RecordFile = None,
    as_json: Json = False,
) -> None:
    """Find the highest rate without loss (RFC 2544, 26.1), for each frame size.

    Example: dl3 bench throughput --lab --sizes 64,imix --seconds 0.2
    """
    terms, max_pps, bar = Terms(goal, resolution, repeat, retries), pps_of(max_rate), Bar()
    with course_at(Place(generator, dut, dut_name, lab, streams, record, at), seconds, bar) as course:
        found = search(course, bar, Wanted(frames_of(sizes, course), terms, max_pps, goals=(goal,)))
    if as_json:
        print_json({"record": str(course.record), "answers": [as_plain(one) for one in found]})
    elif found:
        heading(f"throughput of {course.site.dut_name}; Gbit/s with preamble and gap, latency at that rate")
        out.print(table("", THROUGHPUT_COLUMNS, [throughput_row(one) for one in found]))
    finish(bar, course)


def known_answers(course: Course, source: Path, sizes: str) -> list[Throughput]:
    """Those of a record, for this device."""
    record = read(source)
    for sentence in record.left_out:
        err.print(sentence, markup=False, highlight=False, soft_wrap=True)
    frames = frames_of(sizes, course) if sizes else tuple(dict.fromkeys(answer.frame for answer in record.answers))
    found = newest(record.answers, course.site.dut_name, frames)
    if not found:
        if not record.answers:
            raise UsageFault(
                f"{source} has no throughput in it: name a record that 'dl3 bench throughput' has finished"
            )
        raise UsageFault(f"{source} has no throughput of {course.site.dut_name}: name the device with --dut-name")
    return found


def latency(
    generator: Socket = DL3GEN.socket,
    dut: Dut = "",
    dut_name: Name = "",
    lab: Lab = False,
    at: At = "",
    sizes: Sizes = "",
    streams: Streams = None,
    loads: Loads = PERCENTS,
    source: From = None,
    seconds: Seconds = 2.0,
    record: RecordFile = None,
    as_json: Json = False,
) -> None:
    """Measure latency at shares of the throughput, which is found first when no record has it.

    Example: dl3 bench latency --lab --sizes 64 --loads 10,50,90
    """
    shares, bar = loads_of(loads), Bar()
    with course_at(Place(generator, dut, dut_name, lab, streams, record, at), seconds, bar) as course:
        if source:
            answers = known_answers(course, source, sizes)
        else:
            answers = [one.answer for one in search(course, bar, Wanted(frames_of(sizes, course)))]
        with bar:
            trials = measure_latency(course, answers, shares)
    show_latency(course, trials, as_json)
    finish(bar, course)


def show_latency(course: Course, trials: Sequence[Trial], as_json: bool) -> None:
    """The table, or JSON."""
    if as_json:
        print_json({"record": str(course.record), "trials": [trial.model_dump() for trial in trials]})
        return
    heading(f"latency of {course.site.dut_name}, from the time at which a frame was due")
    out.print(table("", LATENCY_COLUMNS, [latency_row(trial) for trial in trials]))
