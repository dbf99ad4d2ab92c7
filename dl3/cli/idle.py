"""The command 'dl3 bench idle'."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Annotated

import typer

from dl3.bench.idle import FRAME, MODES, STEP_SHARE, Mode, Plan, Side, measure, reader_of
from dl3.bench.site import ProgressListener, Run, facts_of, streams_of
from dl3.bench.stability import watch_of
from dl3.bench.workplace import BUILD, built
from dl3.bench.workplace import DL3D as DL3D_PROGRAM
from dl3.campaign.parameters import MOST_DESCRIPTORS
from dl3.cli import given
from dl3.cli.place import new_record, say
from dl3.cli.printing import out, print_json, table
from dl3.cli.progress import Bar, span
from dl3.dut.dl3d import Dl3d
from dl3.lab.memif import MemifSettings, memif_lab
from dl3.lab.pair import Pair
from dl3.model.fault import Fault, UsageFault
from dl3.model.results import Idle, IdleMode
from dl3.record.journal import now
from dl3.trial.order import Site
from dl3.trial.run import Runner

COLUMNS = (
    *("idle", "woken by", ">dl3d, % of a core", ">asleep, %", ">dl3gen, % of a core", ">p50 us", ">p99.9 us"),
    *(">Mpps without loss", ">steps with loss", ">frames lost"),
)
NOT_KNOWN = "-"

Lab = Annotated[bool, typer.Option("--lab", help="Start dl3gen and dl3d, connected by memif, on cores 0 and 1.")]
Rounds = Annotated[
    int,
    typer.Option(min=1, max=100, metavar="N", help="Number of rounds (idle CPU, latency, throughput) in each mode."),
]
Seconds = Annotated[
    float,
    typer.Option(
        min=0.1, max=3600, metavar="SECONDS", help="Duration of one idle measurement and of one latency trial."
    ),
]
SearchSeconds = Annotated[
    float, typer.Option(min=0.05, max=3600, metavar="SECONDS", help="Duration of one trial of the throughput search.")
]
Steps = Annotated[
    int,
    typer.Option(
        min=1, max=1000, metavar="N", help="Number of load steps, from idle to almost the throughput, in each mode."
    ),
]
StepSeconds = Annotated[float, typer.Option(min=0.01, max=60, metavar="SECONDS", help="Duration of one load step.")]
Slots = Annotated[
    int,
    typer.Option(
        "--descriptors", min=64, max=MOST_DESCRIPTORS, metavar="SLOTS", help="Slots of each ring, as a power of two."
    ),
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
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def ring_bits_of(slots: int) -> int:
    """Checks the slots of a memif ring."""
    if slots & (slots - 1):
        raise UsageFault(f"--descriptors {slots}: the number of slots of a memif ring is a power of two, like 2048")
    return slots.bit_length() - 1


def side_of(lab: Pair, idle: Mode, run: tuple[str, Path, ProgressListener]) -> Side:
    """Measure everything on a lab."""
    (campaign, record, listener), generator = run, lab.generator
    facts = {**facts_of(generator, lab.dut, BUILD), "lab": lab.facts()}
    site = Site(generator, lab.dut, f"dl3d (idle: {idle})", campaign, facts)
    look = watch_of(lab, lab.cores, lab.tester.build).look
    streams = streams_of(generator, None)
    return Side(idle, lab, Run(Runner(site), streams, record, 1.0, listener=listener, look=look), reader_of(lab))


@contextmanager
def both_open(slots: int, run: tuple[str, Path, ProgressListener]) -> Iterator[list[Side]]:
    """A lab for each mode; all are idle except the one being measured."""
    bits, program = ring_bits_of(slots), built(DL3D_PROGRAM, "make")
    with ExitStack() as stack:
        sides = []
        for idle in MODES:
            terms = MemifSettings(Dl3d(program, idle=idle), ring_bits=bits, generator_idle=idle)
            lab = stack.enter_context(memif_lab(terms))
            sides.append(side_of(lab, idle, run))
            lab.freeze()
        yield sides


def middle(values: Sequence[float], factor: float, digits: int) -> str:
    """The median of all rounds, formatted."""
    return f"{median(values) * factor:,.{digits}f}" if values else NOT_KNOWN


def row(mode: IdleMode) -> tuple[object, ...]:
    """One mode."""
    shares = (middle(values, 100, 1) for values in (mode.dl3d_shares, mode.asleep_shares, mode.dl3gen_shares))
    times = (middle(values, 1e-3, 1) for values in (mode.p50_ns, mode.p99_9_ns))
    rate = f"{'>= ' if mode.is_at_least else ''}{middle(mode.pps, 1e-6, 3)}"
    n_lossy = sum(1 for lost in mode.steps_lost if lost)
    steps = f"{n_lossy} of {len(mode.steps_lost)}"
    return (mode.idle, mode.woken_by or NOT_KNOWN, *shares, *times, rate, steps, sum(mode.steps_lost))


def noise_in_short(reasons: Sequence[str]) -> Iterator[str]:
    """The first of each kind, and how many more there are: each search has its own."""
    kinds: dict[str, list[str]] = {}
    for reason in reasons:
        kinds.setdefault(reason.partition(":")[0], []).append(reason)
    for said in kinds.values():
        yield said[0] if len(said) == 1 else f"{said[0]}; {len(said) - 1} more like it"


def show(result: Idle, slots: int) -> None:
    """The table, and the conditions of its numbers."""
    step = f"{result.step_pps / 1e6:.3f} Mpps ({STEP_SHARE:.0%} of the lower throughput) for {result.step_seconds:g} s"
    title = (
        f"dl3d over memif, rings of {slots:,}, frames of {FRAME} bytes; medians of rounds: cores without traffic, "
        f"latency at {result.latency_pps:,.0f} packets/s; steps after {result.quiet_seconds:g} s without frames: {step}"
    )
    out.print(title, markup=False, highlight=False, soft_wrap=True)
    out.print(table("", COLUMNS, [row(mode) for mode in result.modes]))
    for mode in result.modes:
        for n, what in ((mode.invalid_latencies, "latency trials"), (mode.invalid_steps, "steps")):
            if n:
                say(f"idle: {mode.idle}: {n} {what} remained INVALID and are omitted")
    for sentence in noise_in_short(result.noise):
        say(f"noisy, {sentence}")


def idle(
    lab: Lab = False,
    rounds: Rounds = 3,
    seconds: Seconds = 5.0,
    search_seconds: SearchSeconds = 0.2,
    steps: Steps = 10,
    step_seconds: StepSeconds = 0.2,
    descriptors: Slots = 2048,
    record: RecordFile = None,
    as_json: Json = False,
) -> None:
    """Compare the idle modes of dl3d, poll and sleep: CPU share, latency, throughput, sudden load.

    Example: dl3 bench idle --lab --rounds 1
    """
    if not lab:
        raise UsageFault("idle modes are compared in a separate lab: use --lab")
    plan, bar, campaign = Plan(rounds, seconds, search_seconds, steps, step_seconds), Bar(), now()
    path = record or new_record(campaign)
    with both_open(descriptors, (campaign, path, bar)) as sides:
        say(f"about {span(plan.left_s(sides[0].run, rounds, steps))}; record: {path}")
        with bar:
            result = measure(sides, plan)
    print_json({"record": str(path), **result.model_dump()}) if as_json else show(result, descriptors)
    say(f"recorded in {path}")
    if not result.step_pps:
        raise Fault(
            "no load steps were run, because in one of the modes no rate passed without loss: check its trials, and measure "
            "again on a quiet machine"
        )
