"""The group 'dl3 lab': the topologies of the source reports, each with one command."""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import typer

from dl3.bench.workplace import BUILD
from dl3.cli import given
from dl3.cli.lazy import CONTEXT
from dl3.cli.place import say
from dl3.cli.printing import out, table
from dl3.cli.report import report as write_report
from dl3.host.root import need_root
from dl3.lab.accelerator import accelerator
from dl3.lab.guest import PACKAGES
from dl3.lab.guest_image import cache_folder, need_packages
from dl3.lab.kept import Place, alone
from dl3.lab.kvm_report import LAB, Settings, topology_of
from dl3.lab.running import Lab, commands, down, keep, kept, settle_killed
from dl3.model.fault import UsageFault
from dl3.model.lab import QUEUES, Accelerator, LabRun
from dl3.record.facts import collect
from dl3.record.journal import append, now
from dl3.report.lab_section import HOPS, hop_row, load_title
from dl3.report.texts import words_in
from dl3.report.words import Language

NEWEST = "dl3-lab-{lab}-*.jsonl"
MOST_PPS = 100_000_000
app = typer.Typer(
    help="Repeat the source reports on this machine.\n\nExample: dl3 lab kvm-report",
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
    context_settings=CONTEXT,
)


@app.callback()
def options() -> None:
    """Options of 'dl3 lab': none."""


class Action(StrEnum):
    """What is done with a lab."""

    ALL = "all"
    UP = "up"
    MEASURE = "measure"
    REPORT = "report"
    DOWN = "down"


def rates_of(text: str) -> tuple[int, ...]:
    """The loads in frames per second."""
    words = [word.strip() for word in text.split(",")] if text else []
    for word in words:
        is_number = word.isascii() and word.isdigit() and len(word) <= len(str(MOST_PPS))
        if not (is_number and 1 <= int(word) <= MOST_PPS):
            raise UsageFault(
                f"--rates {text}: invalid rate '{word}': expected frames per second, like 2000,10000,50000"
            )
    return tuple(dict.fromkeys(map(int, words)))


@dataclass(frozen=True)
class Asked:
    """What is asked for, and with how many guests."""

    settings: Settings
    n_vms: int
    is_emulated: bool


def checked(asked: Asked) -> Asked:
    """The same; UsageFault for what does not go together."""
    settings, n_vms = asked.settings, asked.n_vms
    if n_vms not in (0, 2):
        raise UsageFault(
            f"--vms {n_vms}: the lab {LAB} has 2 guests, or 0: then programs of this machine are in their place"
        )
    if n_vms == 0 and settings.switch == "linux":
        raise UsageFault("--vms 0 needs --switch dl3d: programs in place of guests use vhost-user")
    if n_vms == 0 and settings.generator == "pktgen":
        raise UsageFault("--vms 0 needs dl3gen: pktgen is in the kernel of a guest; omit --generator pktgen")
    if settings.short_queue not in ("", *QUEUES):
        raise UsageFault(f"--short-queue {settings.short_queue}: no such queue: expected {', '.join(QUEUES)}")
    if settings.generator == "pktgen" and settings.short_queue == "vnet3" and settings.switch == "dl3d":
        raise UsageFault(
            "--short-queue vnet3 with --switch dl3d is the receive ring of dl3gen: omit --generator pktgen"
        )
    return asked


def records_folder() -> Path:
    """Where records go."""
    return BUILD / "records" if BUILD.is_dir() else Path.cwd()


def new_record(campaign: str) -> Path:
    """The record of this command."""
    return records_folder() / NEWEST.format(lab=LAB).replace("*", campaign[:19].replace(":", ""))


def newest_record() -> Path:
    """The record of the latest command; UsageFault if there is none."""
    found = sorted(records_folder().glob(NEWEST.format(lab=LAB)), key=lambda path: path.stat().st_mtime)
    if not found:
        raise UsageFault(f"the lab {LAB} has no record yet: run 'dl3 lab {LAB}' first, or name one with --record")
    return found[-1]


def guests_on(n_vms: int, is_emulated: bool) -> Accelerator:
    """What the guests run on; the user is told if it is not KVM."""
    if n_vms == 0:
        return "none"
    need_packages(PACKAGES)
    found, why = accelerator(is_emulated)
    if why:
        say(why)
    return found


def print_qemu(settings: Settings, found: Accelerator) -> None:
    """The commands that would start the guests."""
    for words in commands(topology_of(settings, found), Place(LAB), cache_folder()).values():
        out.print(shlex.join(words), highlight=False, soft_wrap=True, markup=False)


@contextmanager
def brought_up(asked: Asked, stays: bool = False) -> Iterator[Lab]:
    """The lab, up, after what a killed command has left is removed. It is taken down at the end, unless it stays; after an
    error in any case.
    """
    place = Place(LAB)
    settle_killed(place, say)
    topology = topology_of(asked.settings, guests_on(asked.n_vms, asked.is_emulated))
    lab = Lab(place, topology, asked.settings, say)
    is_kept = False
    try:
        lab.up(stays)
        yield lab
        is_kept = stays
    finally:
        if not is_kept:
            down(lab.place)


def show(run: LabRun) -> None:
    """The table of places of one load."""
    words = words_in(Language.EN)
    columns = [
        f"{'>' if column.is_number else '~' if column.key == 'counter' else ''}{words(f'table.{column.key}')}"
        for column in HOPS
    ]
    say("")
    out.print(table(load_title(run, words), columns, [hop_row(hop, run, words).cells for hop in run.hops]))
    on = words(f"lab.on.{run.topology.accelerator}")
    out.print(
        f"sent {run.sent:,}, came back {run.received:,}, lost {run.sent - run.received:,} ({on})", highlight=False
    )


def measure_all(lab: Lab, settings: Settings, record: Path) -> None:
    """Every load, each recorded and printed at once."""
    campaign = now()
    facts = {**collect(BUILD).model_dump(), "lab": lab.topology.model_dump(), "kvm": not lab.topology.is_emulated}
    on = lab.topology.accelerator
    rates, seconds = settings.rates(on), settings.seconds_on(on)
    for n, pps in enumerate(rates, 1):
        say(f"load {n} of {len(rates)}: {pps:,} frames/s for {seconds:g} s")
        run = lab.measure(pps, seconds, campaign, facts)
        append(record, run)
        show(run)


def measure_kept(asked: Settings, record: Path) -> None:
    """Measure the lab that is up, with its own programs and the loads that are asked for."""
    lab = kept(Place(LAB), say)
    measure_all(lab, asked, record)


def act(action: Action, asked: Asked, record: Path) -> None:
    """All but the report, alone with the lab."""
    need_root("the lab")
    with alone(Place(LAB)):
        if action == Action.DOWN:
            say(f"the lab {LAB} is removed" if Place(LAB).has_any() else f"the lab {LAB} is not up")
            down(Place(LAB))
        elif action == Action.MEASURE:
            measure_kept(asked.settings, record)
        elif action == Action.UP:
            with brought_up(asked, stays=True) as lab:
                keep(lab)
            say(f"the lab {LAB} is up: 'dl3 lab {LAB} measure', then 'down'")
        else:
            with brought_up(asked) as lab:
                measure_all(lab, asked.settings, record)


def carry_out(action: Action, asked: Asked, record: Path | None, output: Path | None, lang: Language) -> None:
    """One step, or all."""
    if action == Action.REPORT:
        write_report([record or newest_record()], output, lang)
        return
    path = given.record(record) or new_record(now())
    if output and action == Action.ALL:
        given.output(output)  # before anything is started
    act(action, asked, path)
    if action == Action.ALL:
        write_report([path], output, lang)


Switches = Annotated[
    Literal["linux", "dl3d"],
    typer.Option("--switch", help="Linux bridges with TAP interfaces, or dl3d with vhost-user."),
]
Generators = Annotated[Literal["dl3gen", "pktgen"], typer.Option("--generator", help="What sends in VM1.")]
Forwarders = Annotated[Literal["l2fwd", "testpmd", "dl3d"], typer.Option("--forwarder", help="What forwards in VM2.")]
Short = Annotated[str, typer.Option("--short-queue", metavar="PLACE", help=f"Shorten a queue: {', '.join(QUEUES)}.")]
Vms = Annotated[int, typer.Option("--vms", metavar="N", help="2 guests, or 0: programs in their place.")]
Cores = Annotated[int, typer.Option("--cores", min=2, max=64, metavar="N", help="CPUs of each guest.")]
Seconds = Annotated[
    float, typer.Option("--seconds", min=0, max=3600, metavar="S", help="Of each load; 0: 10, emulated 5.")
]
Rates = Annotated[str, typer.Option("--rates", metavar="PPS,...", help="Loads, in frames per second.")]
Size = Annotated[int, typer.Option("--size", min=64, max=1518, metavar="BYTES", help="Frame size, including FCS.")]
Emulated = Annotated[bool, typer.Option("--emulated", help="Do not use KVM.")]
Print = Annotated[bool, typer.Option("--print-qemu", help="Only print the commands that start the guests.")]
Record = Annotated[Path | None, typer.Option("--record", metavar="FILE", help="The record.")]
Output = Annotated[Path | None, typer.Option("--output", metavar="FILE", help="The page.")]
Lang = Annotated[Language, typer.Option("--lang", help="Language of the page.")]


@app.command(LAB)
def kvm_report(
    action: Annotated[
        Action, typer.Argument(metavar="[up|measure|report|down]", help="One step; default: all.")
    ] = Action.ALL,
    switch: Switches = "linux",
    generator: Generators = "dl3gen",
    forwarder: Forwarders = "l2fwd",
    short_queue: Short = "",
    vms: Vms = 2,
    cores: Cores = 2,
    seconds: Seconds = 0.0,
    rates: Rates = "",
    size: Size = 64,
    emulated: Emulated = False,
    qemu: Print = False,
    record: Record = None,
    output: Output = None,
    lang: Lang = Language.EN,
) -> None:
    """VM1 generates, VM2 forwards, and each lost frame is named at its place.

    Starts two guests, measures three loads, writes a report, and removes everything. The steps up, measure, report and down do
    the same one by one. Guests use KVM where it works and are emulated elsewhere.

    Example: dl3 lab kvm-report --switch dl3d --forwarder testpmd
    """
    programs = {"switch": switch, "generator": generator, "forwarder": forwarder, "short_queue": short_queue}
    loads = {"n_cpus": cores, "frame_bytes": size, "rates_pps": rates_of(rates), "seconds": seconds}
    asked = checked(Asked(Settings.model_validate(programs | loads), vms, emulated))
    if qemu:
        print_qemu(asked.settings, guests_on(2, emulated))
    else:
        carry_out(action, asked, record, output, lang)
