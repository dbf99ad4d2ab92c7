"""The command 'dl3 bench compare'."""

from collections.abc import Sequence
from dataclasses import replace
from statistics import median
from typing import Annotated, get_args

import typer

from dl3.bench.compare import Contest, Test, compare
from dl3.campaign.parameters import MOST_DESCRIPTORS
from dl3.cli import given
from dl3.cli.at import At, there
from dl3.cli.place import new_record, say
from dl3.cli.printing import out, print_json, table
from dl3.cli.progress import Bar
from dl3.cli.rfc2544 import Json, RecordFile, Sizes
from dl3.dut import external
from dl3.dut.beds import kind_of
from dl3.host.root import need_root
from dl3.model.campaign import Direction, DutSpec, Setup, Traffic
from dl3.model.fault import UsageFault
from dl3.model.results import Versus
from dl3.record.journal import now

SMALLEST = "64"
COLUMNS = ("frame", ">ours, Mpps", ">peer, Mpps", ">ratio", ">from", ">to", ">pairs")
Device = Annotated[str, typer.Argument(help="Kind of device, with options: testpmd:mode=mac,wire=veth")]
Pairs = Annotated[int, typer.Option(min=2, max=1000, metavar="N", help="Number of measurements of each device.")]
Measure = Annotated[str, typer.Option("--test", help="'forwarding' (at the maximum offered load) or 'throughput'.")]
Seconds = Annotated[float, typer.Option(min=0.1, max=86400, metavar="SECONDS", help="Duration of one trial.")]
Ways = Annotated[Direction, typer.Option("--direction", help="Direction of the streams.")]
Flows = Annotated[int, typer.Option(min=1, max=1 << 24, metavar="FLOWS", help="Number of flows in each direction.")]
Memory = Annotated[int, typer.Option(min=64, metavar="MIB", help="Huge-page memory of each device.")]
SLOTS_HELP = (
    "Descriptors of a queue, or slots of a ring; default: 16384, or 2048 if it cannot be set for one of the two."
)
Slots = Annotated[
    int | None, typer.Option("--descriptors", min=64, max=MOST_DESCRIPTORS, metavar="SLOTS", help=SLOTS_HELP)
]
Routes = Annotated[
    str,
    typer.Option(metavar="TABLE", help="Built-in table in addition to connected routes: one, 10k, 1m, v6-1, v6-200k."),
]


def spec_of(text: str) -> DutSpec:
    """Parses a device: KIND or KIND:OPTION=VALUE,..."""
    kind, _, rest = text.partition(":")
    options: dict[str, object] = {}
    for word in (word for word in rest.split(",") if word):
        name, sign, value = word.partition("=")
        if not sign:
            raise UsageFault(f"'{text}': invalid option '{word}' after ':': expected OPTION=VALUE")
        options[name] = value
    return DutSpec(name=text, kind=kind, options=options)


def alike(setups: Sequence[Setup], slots: int | None) -> list[Setup]:
    """Both with the same descriptors: those requested, else the maximum, if both support the option."""
    if slots is None and all("descriptors" in kind_of(setup.dut).ability.honours for setup in setups):
        slots = MOST_DESCRIPTORS
    return [setup.model_copy(update={"descriptors": slots}) if slots else setup for setup in setups]


def frames_for(setups: Sequence[Setup], sizes: str) -> tuple[str, ...]:
    """The requested frame sizes; rejected if the links of a lab do not carry them."""
    if any(kind_of(setup.dut).name != external.KIND.name for setup in setups):
        given.refuse_beyond_lab(sizes)
    return given.frames_of(sizes) or (SMALLEST,)


def test_of(text: str) -> Test:
    """Parses the name of a test."""
    for test in get_args(Test):
        if text == test:
            return test  # type: ignore[no-any-return]
    raise UsageFault(f"--test {text}: expected one of {', '.join(get_args(Test))}")


def row(result: Versus) -> tuple[object, ...]:
    """One frame size."""
    rates = (f"{median(values) / 1e6:.3f}" for values in (result.ours_pps, result.peer_pps))
    low, high = result.interval
    return (result.frame, *rates, f"{result.ratio:.3f}", f"{low:.3f}", f"{high:.3f}", len(result.ours_pps))


def idle_words(result: Versus) -> str:
    """The idle modes of the dl3d workers among the two; '' if neither is dl3d."""
    both = ((result.dut, result.facts.get("dut")), (result.peer, result.facts.get("peer")))
    return ", ".join(f"{name}: {facts['idle']}" for name, facts in both if isinstance(facts, dict) and "idle" in facts)


def measure(setups: Sequence[Setup], contest: Contest) -> list[Versus]:
    """With a progress bar, and one line for each frame size."""
    with Bar() as bar:
        heard = replace(contest, listener=bar)
        return compare((setups[0], setups[1]), heard, lambda result: say(f"{result.frame}: {result.ratio:.3f}"))


def show(results: Sequence[Versus], contest: Contest, as_json: bool) -> None:
    """The table, and why the machine was noisy, or JSON."""
    if as_json:
        print_json({"record": str(contest.record), "results": [result.model_dump() for result in results]})
        return
    first = results[0]
    title = f"{first.test} of {first.dut} / {first.peer}: medians, their ratio and its 95 % confidence interval"
    out.print(title, markup=False, highlight=False, soft_wrap=True)
    out.print(table("", COLUMNS, [row(result) for result in results]))
    if words := idle_words(first):
        out.print(f"idle mode of workers: {words}", markup=False, highlight=False, soft_wrap=True)
    for reason in dict.fromkeys(reason for result in results for reason in result.noise):
        out.print(f"noisy: {reason}", markup=False, highlight=False, soft_wrap=True)
    say(f"recorded in {contest.record}")


def compare_two(
    ours: Device,
    peer: Device,
    sizes: Sizes = SMALLEST,
    pairs: Pairs = 5,
    test: Measure = "forwarding",
    seconds: Seconds = 1.0,
    direction: Ways = "bidirectional",
    flows: Flows = 1,
    memory: Memory = 256,
    slots: Slots = None,
    routes: Routes = "one",
    at: At = "",
    record: RecordFile = None,
    as_json: Json = False,
) -> None:
    """Compare two devices on the same cores, measured alternately, and print the ratio of their rates.

    Both devices run with a dl3gen of their own; one is stopped while the other is measured. Kinds: dl3d, l3fwd, testpmd,
    ovs, linux, grout, external. An external device is not started here; it may be on another machine (--at).

    \b
    Example: dl3 bench compare dl3d l3fwd --sizes 64,512
    Example: dl3 bench compare external:streams=a.yaml external:streams=b.yaml --at ssh://admin@192.0.2.7
    """
    duts = [there(spec_of(text), at) for text in (ours, peer)]
    if any(dut.kind != "external" for dut in duts):
        need_root("a device that is started here")
    setups = alike([Setup(dut=dut, memory_mib=memory, routes=routes) for dut in duts], slots)
    traffic, path = Traffic(direction=direction, flows=flows), record or new_record(now())
    contest = Contest(frames_for(setups, sizes), path, test_of(test), pairs, seconds, traffic=traffic)
    show(measure(setups, contest), contest, as_json)
