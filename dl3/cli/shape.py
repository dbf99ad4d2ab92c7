"""The command 'dl3 bench shape'."""

import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from dl3.bench.shape import STRICT_SHARE, Invalid, Plan, measure, run_with
from dl3.bench.workplace import BUILD
from dl3.cli import given
from dl3.cli.compare import spec_of
from dl3.cli.place import new_record, say
from dl3.cli.printing import out, print_json, table
from dl3.cli.progress import Bar
from dl3.cli.rfc2544 import Json, RecordFile
from dl3.dut.shaping import EXTERNAL, LEAST_BPS, Subscribers, check_rates, kind_of
from dl3.dut.wired import MOST_BYTES
from dl3.host.root import need_root
from dl3.lab.links import HOSTS
from dl3.model.campaign import DutSpec, Setup, Traffic
from dl3.model.fault import Fault, UsageFault
from dl3.model.shaping import Shaping
from dl3.model.stream import amount
from dl3.record.journal import now

SLOTS = 16_384
MOST_RATES = 32  # two streams each, of the 64 of dl3gen
ALL_BPS = 1e9  # of all subscribers together, if no rate is given
COLUMNS = (
    *(">subscribers", "rate", ">error, mean %", ">low %", ">high %", ">within 1 %", ">Jain", ">burst, bytes"),
    *(">strict p50 us", ">p99 us", ">rest p50 us", ">p99 us", ">INVALID before"),
)
WINDOWS = (">subscribers", ">window, s", ">lowest rate, %", ">highest rate, %")

Device = Annotated[
    str,
    typer.Option(
        metavar="DEVICE",
        help="What shapes: 'dl3d' (over memif, or dl3d:wire=veth), 'tc' (Linux, htb with fq_codel, over veth), or "
        "'external:generator=SOCKET,...' for a device that has these subscribers already.",
    ),
]
Numbers = Annotated[
    str, typer.Option(metavar="N,...", help="Numbers of subscribers, each measured for itself; at most 65024.")
]
Rates = Annotated[
    str,
    typer.Option(
        "--rate",
        metavar="RATE,...",
        help="Rates of subscribers, as 2Mbit/s; equal parts of them get one each. Default: 1 Gbit/s for all together, "
        "at least 64kbit/s each.",
    ),
]
Frame = Annotated[int, typer.Option(min=64, max=MOST_BYTES, metavar="BYTES", help="Frame size, including the FCS.")]
Seconds = Annotated[
    float, typer.Option(min=0.5, max=600, metavar="SECONDS", help="Evaluated part of a trial; queues fill before it.")
]
Overload = Annotated[
    float, typer.Option(min=1.1, max=10, metavar="TIMES", help="What is offered, as a multiple of each rate.")
]
Retries = Annotated[int, typer.Option(min=0, max=100, metavar="N", help="Repetitions of an INVALID trial.")]


def numbers_of(text: str) -> list[int]:
    """Parses --subscribers."""
    found = []
    for word in text.split(","):
        if not (word.isascii() and word.isdigit() and 1 <= int(word) <= HOSTS):
            raise UsageFault(f"--subscribers {text}: '{word}'; expected numbers from 1 to {HOSTS}, like 1,1000,64000")
        found.append(int(word))
    return list(dict.fromkeys(found))


def rates_of(text: str) -> tuple[float, ...]:
    """Parses --rate."""
    if not text:
        return ()
    found = []
    for word in text.split(","):
        unit, bps = amount(word)
        if unit != "bit/s":
            raise UsageFault(f"--rate {text}: '{word}'; expected bits per second, like 2Mbit/s")
        found.append(bps)
    check_rates(text, found)
    if len(found) > MOST_RATES:
        raise UsageFault(f"--rate {text}: {len(found)} rates; expected at most {MOST_RATES}")
    return tuple(found)


def plan_for(number: int, rates: Sequence[float], base: Plan) -> Plan:
    """What is measured with one number of subscribers."""
    if number < len(rates):
        raise UsageFault(f"--subscribers {number}: fewer than the {len(rates)} rates of --rate; each needs one")
    each = tuple(rates) or (max(LEAST_BPS, ALL_BPS // number),)
    return replace(base, subscribers=Subscribers(number, each))


def rate_text(bps: float) -> str:
    """'2 Mbit/s'."""
    for factor, unit in ((1e9, "Gbit/s"), (1e6, "Mbit/s")):
        if bps >= factor:
            return f"{bps / factor:g} {unit}"
    return f"{bps / 1e3:g} kbit/s"


def row(result: Shaping) -> tuple[object, ...]:
    """One number of subscribers."""
    errors = (f"{error * 100:+.3f}" for error in (result.error_mean, result.error_low, result.error_high))
    delays = (
        f"{value / 1e3:,.1f}" for one in result.classes for value in (one.delay.p50, one.delay.p99)
    )  # strict, then the rest
    rates = ", ".join(rate_text(bps) for bps in result.rates_bps)
    rest = (f"{result.within:.1%}", f"{result.jain:.5f}", f"{result.burst_bytes:,}")
    return (f"{result.subscribers:,}", rates, *errors, *rest, *delays, result.n_invalid)


def window_rows(results: Iterable[Shaping]) -> Iterable[tuple[object, ...]]:
    """The windows of all results."""
    for result in results:
        for one in result.windows:
            yield f"{result.subscribers:,}", f"{one.seconds:g}", f"{one.low * 100:,.1f}", f"{one.high * 100:,.1f}"


def show(results: Sequence[Shaping]) -> None:
    """The tables, and what their numbers mean."""
    if not results:
        return
    first = results[0]
    title = (
        f"{first.dut} over {first.wire}, queues: {first.queue or 'unknown'}; frames of {first.frame} bytes, offered "
        f"{first.overload:g} x each rate, {STRICT_SHARE:.0%} of a rate in the strict class (DSCP 46); {first.seconds:g} s"
    )
    out.print(title, markup=False, highlight=False, soft_wrap=True)
    out.print(table("", COLUMNS, [row(result) for result in results]))
    if rows := list(window_rows(results)):
        out.print(table("", WINDOWS, rows))
    for result in results:
        if result.silent:
            say(f"{result.subscribers:,} subscribers: of {result.silent:,} fewer than two frames came")


def one(spec: DutSpec, plan: Plan, place: tuple[str, Path, Bar]) -> Shaping:
    """Open the testbed, and measure."""
    subscribers = plan.subscribers
    setup = Setup(dut=spec)
    if spec.kind == "dl3d":
        setup = setup.model_copy(update={"descriptors": SLOTS, "memory_mib": subscribers.memory_mib})
    with tempfile.TemporaryDirectory(prefix="dl3-shape-") as folder:
        kind = kind_of(spec, subscribers, Path(folder))
        # A device that is configured already has streams of its own.
        traffic = Traffic() if spec.kind == EXTERNAL else Traffic(direction="unidirectional")
        with kind.opened(setup, traffic, BUILD) as bed:
            return measure(run_with(bed, spec.name, place, plan.whole_s), bed, plan)


def all_of(spec: DutSpec, plans: Sequence[Plan], place: tuple[str, Path]) -> tuple[list[Shaping], list[Invalid]]:
    """The results, and why there are no others."""
    found, faults = list[Shaping](), list[Invalid]()
    with Bar() as bar:
        for plan in plans:
            try:
                found.append(one(spec, plan, (*place, bar)))
            except Invalid as fault:
                faults.append(fault)
                say(str(fault))
    return found, faults


def shape(
    device: Device = "dl3d",
    subscribers: Numbers = "1,1000,64000",
    rate: Rates = "",
    frame: Frame = Plan.frame,
    seconds: Seconds = Plan.seconds,
    overload: Overload = Plan.overload,
    retries: Retries = Plan.retries,
    record: RecordFile = None,
    as_json: Json = False,
) -> None:
    """Measure how well a device keeps the rates of subscribers: accuracy, fairness, bursts, delay of two classes.

    Example: dl3 bench shape --device tc --subscribers 1000 --rate 1Mbit/s,4Mbit/s --seconds 5
    """
    spec, base = spec_of(device), Plan(Subscribers(1, (LEAST_BPS,)), frame, seconds, overload=overload, retries=retries)
    rates = rates_of(rate)
    plans = [plan_for(number, rates, base) for number in numbers_of(subscribers)]
    with tempfile.TemporaryDirectory() as folder:
        kind_of(spec, base.subscribers, Path(folder))  # before anything is started
    if spec.kind != EXTERNAL:
        need_root("the lab")
    campaign = now()
    path = given.record(record) or new_record(campaign)
    found, faults = all_of(spec, plans, (campaign, path))
    print_json({"record": str(path), "results": [one.model_dump() for one in found]}) if as_json else show(found)
    say(f"recorded in {path}")
    if faults:
        raise Fault(
            f"{len(faults)} of {len(plans)} numbers of subscribers have no result, because their trials were INVALID"
        )
