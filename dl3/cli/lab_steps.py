"""The steps of 'dl3 lab': up, measure, report, down, or all of them."""

import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from typer import Context

from dl3.bench.workplace import BUILD
from dl3.cli import given
from dl3.cli.place import say
from dl3.cli.printing import out, table
from dl3.cli.report import report as write_report
from dl3.host.root import need_root
from dl3.lab.accelerator import accelerator
from dl3.lab.guest import PACKAGES
from dl3.lab.guest_image import cache_folder, need_packages
from dl3.lab.kept import Place, alone
from dl3.lab.kind import Kind, Settings
from dl3.labs.laptop import LAPTOP, first_commands
from dl3.labs.registry import LABS
from dl3.labs.running import Lab, commands, down, keep, kept, settle_killed
from dl3.model.fault import UsageFault
from dl3.model.lab import Accelerator, LabRun, Topology
from dl3.record.facts import collect
from dl3.record.journal import append, now
from dl3.report.lab_section import HOPS, hop_row, load_title
from dl3.report.texts import words_in
from dl3.report.words import Language

NEWEST = "dl3-lab-{lab}-*.jsonl"
MOST_PPS = 100_000_000


class Action(StrEnum):
    """What is done with a lab."""

    ALL = "all"
    UP = "up"
    MEASURE = "measure"
    REPORT = "report"
    DOWN = "down"


LOADS, PAGE = (Action.ALL, Action.MEASURE), (Action.ALL, Action.REPORT)
# The steps in which an option has an effect; those that are not here build the lab.
BUILDS = (Action.ALL, Action.UP)
USED: Mapping[str, tuple[Action, ...]] = {
    "rates": LOADS,
    "seconds": LOADS,
    "size": LOADS,
    "record": (*LOADS, Action.REPORT),
    "output": PAGE,
    "lang": PAGE,
}


def need_used(context: Context, action: Action) -> None:
    """UsageFault for an option that has no effect in this step."""
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        steps = USED.get(parameter.name or "", BUILDS)
        if parameter.name != "action" and source is not None and source.name == "COMMANDLINE" and action not in steps:
            where = " and ".join(f"'{step}'" for step in steps if step != Action.ALL)
            raise UsageFault(f"{parameter.opts[0]} has no effect with '{action}': it belongs to {where}")


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
    """What is asked for, of which lab, and with how many guests."""

    kind: Kind
    settings: Settings
    n_vms: int = 0
    is_emulated: bool = False

    @property
    def place(self) -> Place:
        """Where the lab is."""
        return Place(self.kind.name)


@dataclass(frozen=True)
class Files:
    """The record and the page."""

    record: Path | None
    output: Path | None
    language: Language


def need_guests(asked: Asked) -> None:
    """UsageFault for a number of guests that the lab has not."""
    kind, n = asked.kind, asked.n_vms
    if n not in (0, kind.n_guests):
        raise UsageFault(
            f"--vms {n}: the lab {kind.name} has {kind.n_guests} guests, or 0: then programs of this machine are in "
            "their place"
            if kind.n_guests > 1
            else f"--vms {n}: the lab {kind.name} has 1 guest, or 0: then a program of this machine is in its place"
        )
    if n == 0 and asked.settings.generator == "pktgen":
        raise UsageFault("--vms 0 needs dl3gen: pktgen is in the kernel of a guest; omit --generator pktgen")


def records_folder() -> Path:
    """Where records go."""
    return BUILD / "records" if BUILD.is_dir() else Path.cwd()


def new_record(lab: str, campaign: str) -> Path:
    """The record of this command."""
    return records_folder() / NEWEST.format(lab=lab).replace("*", campaign[:19].replace(":", ""))


def newest_record(lab: str) -> Path:
    """The record of the latest command; UsageFault if there is none."""
    found = sorted(records_folder().glob(NEWEST.format(lab=lab)), key=lambda path: path.stat().st_mtime)
    if not found:
        raise UsageFault(f"the lab {lab} has no record yet: run 'dl3 lab {lab}' first, or name one with --record")
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


def topologies_of(asked: Asked) -> tuple[Topology, ...]:
    """One after the other."""
    return asked.kind.topologies(asked.settings, guests_on(asked.n_vms, asked.is_emulated))


def print_qemu(asked: Asked) -> None:
    """The commands that would start the guests."""
    if asked.n_vms == 0:
        raise UsageFault("--print-qemu needs guests: omit --vms 0")
    for topology in topologies_of(asked):
        for words in commands(topology, asked.place, cache_folder()).values():
            out.print(shlex.join(words), highlight=False, soft_wrap=True, markup=False)


@contextmanager
def brought_up(asked: Asked, topology: Topology, stays: bool = False) -> Iterator[Lab]:
    """The lab, up. It is taken down at the end, unless it stays; after an error in any case."""
    lab = Lab(asked.place, topology, asked.settings, say)
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
    out.print(f"sent {run.sent:,}, arrived {run.received:,}, lost {run.sent - run.received:,} ({on})", highlight=False)


def measure_all(lab: Lab, asked: Asked, campaign: str, record: Path) -> None:
    """Every load, each recorded and printed at once."""
    topology = lab.topology
    facts = {**collect(BUILD).model_dump(), "lab": topology.model_dump(), "kvm": topology.accelerator == "kvm"}
    loads = asked.kind.loads_for(asked.settings, topology)
    seconds = asked.kind.seconds_for(asked.settings, topology)
    for n, load in enumerate(loads, 1):
        say(f"load {n} of {len(loads)}: {load.pps:,} frames/s of {load.frame_bytes} bytes for {seconds:g} s")
        run = lab.measure(load, seconds, campaign, facts)
        append(record, run)
        show(run)


def measure_each(asked: Asked, record: Path) -> None:
    """Each topology of the lab, one after the other."""
    found, campaign = topologies_of(asked), now()
    for n, topology in enumerate(found, 1):
        if len(found) > 1:
            say(f"topology {n} of {len(found)}: {topology.switch}, {' - '.join(leg.node for leg in topology.legs)}")
        with brought_up(asked, topology) as lab:
            measure_all(lab, asked, campaign, record)


def stay_up(asked: Asked) -> None:
    """The first topology, until 'down'."""
    topology, name = topologies_of(asked)[0], asked.kind.name
    with brought_up(asked, topology, stays=True) as lab:
        keep(lab)
    say(f"the lab {name} is up: 'dl3 lab {name} measure', then 'down'")
    for command, what in first_commands(asked.place) if asked.kind is LAPTOP else ():
        out.print(f"    {command}\n        {what}", highlight=False, soft_wrap=True, markup=False)


def act(action: Action, asked: Asked, record: Path) -> None:
    """All but the report, alone with the lab."""
    need_root("the lab")
    place = asked.place
    with alone(place):
        if action == Action.DOWN:
            say(f"the lab {place.lab} is removed" if place.has_any() else f"the lab {place.lab} is not up")
            down(place)
        elif action == Action.MEASURE:
            measure_all(kept(place, say), asked, now(), record)
        else:
            settle_killed(place, say)
            if action == Action.UP:
                stay_up(asked)
            else:
                measure_each(asked, record)


def carry_out(action: Action, asked: Asked, files: Files) -> None:
    """One step, or all."""
    name = asked.kind.name
    if action == Action.REPORT:
        write_report([files.record or newest_record(name)], files.output, files.language)
        return
    path = given.record(files.record) or new_record(name, now())
    if files.output:
        given.output(files.output)  # before anything is started
    act(action, asked, path)
    if action == Action.ALL:
        write_report([path], files.output, files.language)


def asked_of(name: str, n_vms: int, is_emulated: bool, **settings: object) -> Asked:
    """What the options of a command say."""
    return Asked(LABS[name], Settings.model_validate(settings), n_vms, is_emulated)
