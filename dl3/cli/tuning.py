"""The commands of 'dl3 host' that plan and change: plan, apply, confirm, verify, undo."""

import re
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import RenderableType

from dl3.cli.host import Json, Recorded, tree_of
from dl3.cli.outlet import judging
from dl3.cli.printing import counted, out, print_json, table
from dl3.host.change import apply as changes
from dl3.host.change import confirm as confirms
from dl3.host.change import journal as journals
from dl3.host.change.confirm import Settled
from dl3.host.change.root import root_at
from dl3.host.change.undo import Left, undo_unconfirmed
from dl3.host.change.undo import undo as changes_undo
from dl3.host.change.verify import verify
from dl3.host.cores import listed
from dl3.host.facts.read import read
from dl3.host.root import need_root
from dl3.host.tuning.plan import Tuning, load
from dl3.host.tuning.plan import plan as make_plan
from dl3.host.tuning.request import Request
from dl3.host.tuning.step import AnyStep, DriverStep, LiveStep, VfStep
from dl3.model.fault import Fault, UsageFault

DIFFERENT = 1
THIS = Path("/")
CPU = re.compile(r"/cpu\d+")

Nics = Annotated[
    list[str] | None,
    typer.Option(
        "--nic", metavar="ADDRESS", help="PCI address of a network card; may be repeated. Default: all that are free."
    ),
]
Nodes = Annotated[
    list[int] | None,
    typer.Option("--node", min=0, metavar="N", help="NUMA node, for devices that are not on PCI; may be repeated."),
]
Cores = Annotated[
    int | None,
    typer.Option("--cores", min=1, metavar="N", help="Cores for workers on each node; default: one per network card."),
]
Page = Annotated[Literal["2M", "1G"], typer.Option("--page", help="Size of huge pages; 1G needs a reboot.")]
Binds = Annotated[bool, typer.Option("--bind", help="Also give the network cards to vfio-pci.")]
NoTurbo = Annotated[bool, typer.Option("--no-turbo", help="Also switch turbo off, for repeatable measurements.")]
Output = Annotated[Path | None, typer.Option("--output", metavar="FILE", help="Save the plan for 'dl3 host apply'.")]
Root = Annotated[
    Path,
    typer.Option(
        "--root", metavar="FOLDER", help="Change the files below a folder instead of this machine, to try it out."
    ),
]


def change_of(step: AnyStep) -> tuple[str, str, str]:
    """(what, before, after)."""
    if isinstance(step, VfStep):
        said = [one.model_dump(exclude_none=True) for one in step.settings]
        each = "\n".join(
            f"{n}: {' '.join(f'{k} {v}' for k, v in one.items())}".rstrip(": ") for n, one in enumerate(said) if one
        )
        return f"VFs of {step.address}", str(step.before), f"{step.after}\n{each}".strip()
    if isinstance(step, DriverStep):
        return f"driver of {step.address}", step.before or "none", step.after
    if isinstance(step, LiveStep):
        return step.path, step.before, step.after
    after = "\n".join(line for line in step.after.splitlines() if not line.startswith("#"))
    return step.path, "none" if step.before is None else "replaced", after


def step_table(tuning: Tuning) -> RenderableType:
    """All steps; the same one for several CPUs is one row."""
    alike: dict[tuple[str, ...], int] = {}
    for step in tuning.steps:
        what, before, after = change_of(step)
        when = "after a reboot" if step.needs_reboot else "at once"
        row = (step.kind, CPU.sub("/cpu*", what), before, after, when, step.why, step.source)
        alike[row] = alike.get(row, 0) + 1
    rows = [(row[0], f"{row[1]} ({n} files)" if n > 1 else row[1], *row[2:]) for row, n in alike.items()]
    return table("", ("step", "~what", "~before", "~after", "in effect", "~why", "~source"), rows)


def show_plan(tuning: Tuning) -> None:
    """The cores, then what changes."""
    for one in tuning.cores:
        mib = tuning.memory_mib.get(one.node, 0)
        out.print(
            f"node {one.node}: CPUs {listed(one.isolated)} are isolated; workers: {listed(one.workers)}; dl3d needs {mib:,} MiB "
            "of huge pages",
            highlight=False,
            soft_wrap=True,
        )
    if tuning.parameters:
        out.print(f"kernel parameters: {' '.join(tuning.parameters)}\n", highlight=False, soft_wrap=True)
    if tuning.steps:
        out.print(step_table(tuning))
    for remark in tuning.remarks:
        out.print(f"not planned: {remark}", highlight=False, soft_wrap=True)
    said = f"{counted(len(tuning.steps), 'step')}, nothing is changed yet" if tuning.steps else "nothing to change"
    out.print(said, highlight=False)


def save(tuning: Tuning, path: Path) -> None:
    """Save a plan; a file that exists is replaced."""
    try:
        path.write_text(tuning.model_dump_json(indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise Fault(f"cannot write {path}: {error.strerror}") from error


def deliver(tuning: Tuning, output: Path | None, as_json: bool) -> None:
    """Save a plan if a file was named, and print it."""
    if output:
        save(tuning, output)
    if as_json:
        print_json(tuning.model_dump(mode="json"))
    else:
        show_plan(tuning)


def plan(
    nic: Nics = None,
    node: Nodes = None,
    cores: Cores = None,
    page: Page = "2M",
    bind: Binds = False,
    no_turbo: NoTurbo = False,
    output: Output = None,
    recorded: Recorded = None,
    as_json: Json = False,
) -> None:
    """Plan the tuning of this machine, or of a recorded one, and print it. Changes nothing.

    The cores are whole cores with all their threads, on the nodes of the network cards, never CPU 0 and never the first
    core of a node. The interfaces through which the machine is managed are left alone.

    Example: dl3 host plan --nic 0000:03:00.0 --cores 4 --output plan.json
    """
    request = Request(
        nics=tuple(nic or ()), nodes=tuple(node or ()), n_cores=cores, page=page, binds=bind, no_turbo=no_turbo
    )
    tuning = make_plan(read(tree_of(recorded)), request)
    deliver(tuning, output, as_json)


def apply(
    file: Annotated[Path, typer.Argument(metavar="PLAN", help="A plan saved by 'dl3 host plan --output'.")],
    root: Root = THIS,
    as_json: Json = False,
) -> None:
    """Apply a plan. If a step fails, those before it are undone.

    Nothing is done if the plan is for another machine, or if what it changes is not as it was when the plan was made.
    Changes of drivers are undone after 120 seconds, or by a boot, unless 'dl3 host confirm' keeps them.

    Example: dl3 host apply plan.json
    """
    tuning = load(file)
    if root == THIS:
        need_root("dl3 host apply")
    journal = changes.apply(root_at(root), tuning)
    if as_json:
        print_json({"steps": len(tuning.steps), "needs_reboot": tuning.needs_reboot, "is_confirmed": not journal.waits})
        return
    out.print(f"{counted(len(tuning.steps), 'step')} applied", highlight=False)
    if journal.waits:
        said = f"drivers and VFs change back in {changes.CONFIRM_SECONDS} seconds unless you run 'dl3 host confirm'"
        out.print(said, highlight=False)
    if tuning.needs_reboot:
        after = (
            ""
            if journal.trial and journal.trial.unit_paths
            else "; run 'dl3 host confirm' then, as there is no systemd"
        )
        said = "reboot: the next boot tries the kernel parameters, and keeps them if they have the wanted effect"
        out.print(f"{said}{after}", highlight=False, soft_wrap=True)


SETTLED = {
    Settled.NOTHING: "no trial boot is pending",
    Settled.WAITS: "the trial boot is still to come: reboot",
    Settled.KEPT: "the kernel parameters have the wanted effect and stay",
    Settled.RECOVERED: "an apply or undo was interrupted, and is undone",
}


def confirm(
    booted: Annotated[
        bool,
        typer.Option(
            "--booted", help="What a unit of systemd runs after a boot: judge the trial boot of kernel parameters."
        ),
    ] = False,
    root: Root = THIS,
    as_json: Json = False,
) -> None:
    """Keep changes of drivers, which are undone after 120 seconds otherwise.

    In a trial boot, keep its kernel parameters, too, whatever their effect; systemd keeps them by itself if they have the
    wanted one.

    Example: dl3 host confirm
    """
    if root == THIS:
        need_root("dl3 host confirm")
    if booted:
        settled = confirms.settle(root_at(root))
        if as_json:
            print_json({"trial": settled.name.lower()})
        else:
            journal = journals.read(root_at(root))
            said = journal.trial.said if journal and journal.trial else ""
            text = SETTLED.get(settled) or f"{said}: the kernel parameters are those before"
            out.print(text, highlight=False, soft_wrap=True)
        return
    is_kept = confirms.confirm(root_at(root))
    if as_json:
        print_json({"confirmed": is_kept})
    else:
        out.print("the changes stay" if is_kept else "nothing waits to be confirmed")


def verify_machine(root: Root = THIS, as_json: Json = False) -> None:
    """Compare the applied plan with what is in effect. Exits with status 0 (equal), 1 (different) or 2 (not compared).

    Example: dl3 host verify
    """
    with judging():
        at = root_at(root)
        journal = journals.read(at)
        if not journal:
            raise UsageFault("no plan is applied: there is nothing to compare")
        if journal.state != "applied":
            raise UsageFault(
                "an apply or undo was interrupted, or failed: run 'dl3 host undo', which puts back the rest"
            )
        rows = verify(at, journal, read(at.tree))
        if as_json:
            print_json([row.model_dump(mode="json") for row in rows])
        else:
            words = {True: "yes", False: "no"}
            shown = [(r.what, r.wanted, r.found, "after a reboot" if r.waits else words[r.is_met]) for r in rows]
            out.print(table("", ("~what", "~wanted", "~found", "met"), shown))
    if any(not row.is_met for row in rows):
        raise typer.Exit(DIFFERENT)


def said_of(left: tuple[Left, ...] | None, given_up: bool) -> str:
    """The last line of undo."""
    if left is None:
        return "nothing to undo"
    n_failed = sum(not one.is_final for one in left)
    if n_failed and not given_up:
        again = "is" if n_failed == 1 else "are"
        return f"{counted(n_failed, 'step')} {again} still in place: remove the cause, then run 'dl3 host undo' again"
    return "everything else is as before" if left else "everything is as before"


def undo(
    unconfirmed: Annotated[
        bool,
        typer.Option(
            "--unconfirmed", help="Only what 'dl3 host confirm' would have kept: what the timer of apply does."
        ),
    ] = False,
    forget: Annotated[
        bool, typer.Option("--forget", help="Give up what cannot be put back, so that another plan can be applied.")
    ] = False,
    root: Root = THIS,
    as_json: Json = False,
) -> None:
    """Put back what the applied plan changed, byte for byte. What others changed since is named and left.

    Exits with status 1 if something is left. Steps that could not be put back are tried again by the next undo.

    Example: dl3 host undo
    """
    with judging():
        if unconfirmed and forget:
            raise UsageFault("--unconfirmed and --forget exclude each other: leave out one of them")
        if root == THIS:
            need_root("dl3 host undo")
        left = undo_unconfirmed(root_at(root)) if unconfirmed else changes_undo(root_at(root), forget)
        if as_json:
            print_json({"undone": left is not None, "left": [one.model_dump(mode="json") for one in left or ()]})
        else:
            for one in left or ():
                out.print(str(one), highlight=False, soft_wrap=True)
            out.print(said_of(left, forget), soft_wrap=True)
    if left:
        raise typer.Exit(DIFFERENT)
