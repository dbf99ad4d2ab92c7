"""Apply a plan.

The journal is on disk before the first change. Each step compares before it changes something; if what it finds is not
what the plan says, nothing at all is done. An apply that fails or was killed is undone. Steps that may cut off the
machine come last; what would repeat them at the next boot is only written by confirm(). Kernel parameters are tried in
one boot first.
"""

import os
import sys
from pathlib import Path, PurePosixPath

from dl3.host.change import journal as journals
from dl3.host.change import trial_boot as trials
from dl3.host.change.cards import driver_of
from dl3.host.change.journal import Journal, TrialBoot
from dl3.host.change.root import Root
from dl3.host.change.steps import State, do, live_value, state
from dl3.host.change.undo import TIMER, Left, alone, disarm, recover, thens_of, undo_all
from dl3.host.facts.devices import PCI
from dl3.host.facts.read import Facts, read
from dl3.host.management import interfaces, refuse_management
from dl3.host.tree import number
from dl3.host.tuning.names import DRIVERS, UNMANAGED
from dl3.host.tuning.plan import INTERFACE, Tuning
from dl3.host.tuning.step import AnyStep, DriverStep, FileStep, LiveStep, VfStep, target
from dl3.model.fault import Fault, UsageFault

CONFIRM_SECONDS = 120


def found_instead(root: Root, step: AnyStep) -> str:
    """What is there, for a message."""
    if isinstance(step, LiveStep):
        return f"'{live_value(root, step.path)}' instead of '{step.before}'"
    if isinstance(step, DriverStep):
        return f"the driver {driver_of(root, step.address)} instead of {step.before}"
    if isinstance(step, VfStep):
        return f"{number(root.tree, f'{PCI}/{step.address}/sriov_numvfs') or 0} VFs instead of {step.before}"
    return "a file with other contents" if root.read(step.path) is not None else "no file"


def nearest_folder(root: Root, path: str) -> Path:
    """The folder of a file, or the nearest one that exists."""
    folders = (root.place(str(one)) for one in PurePosixPath(path).parents if one.name)
    return next((folder for folder in folders if folder.exists()), root.folder)


def check_writable(root: Root, tuning: Tuning, trial: TrialBoot | None) -> None:
    """Fault if a file could not be written."""
    steps = (step.path for step in tuning.steps if isinstance(step, FileStep))
    for path in (journals.PATH, *steps, *(trial.paths if trial else ())):
        folder = nearest_folder(root, path)
        if not os.access(folder, os.W_OK):
            raise Fault(f"{folder} is read-only, so {path} cannot be written: nothing is changed; remount it writable")


def refuse_without_systemd(facts: Facts) -> None:
    """What needs confirmation is only changed where a timer outlives all processes of dl3."""
    why = "there is no systemd-run" if "systemd-run" not in facts.system.programs else "systemd is not running"
    if not facts.system.runs_systemd or "systemd-run" not in facts.system.programs:
        raise UsageFault(
            f"drivers and VFs are only changed where systemd can undo it, and {why}: change them yourself, from a console"
        )


def check_management(step: AnyStep, facts: Facts) -> None:
    """Refuse a step that would touch what the machine is managed through, now or after a boot."""
    if isinstance(step, DriverStep | VfStep):
        refuse_management(facts, step.address, "binding" if isinstance(step, DriverStep) else "making VFs of")
        refuse_without_systemd(facts)
    elif isinstance(step, FileStep) and step.path.startswith(DRIVERS):
        refuse_management(facts, step.path.removeprefix(DRIVERS), "binding")
    elif isinstance(step, FileStep) and step.path == UNMANAGED:
        managed = interfaces(facts)
        for name in INTERFACE.findall(step.after):
            if name in managed:
                raise UsageFault(
                    f"taking {name} from NetworkManager is refused: this machine is managed through it ({managed[name]})"
                )


def check(root: Root, tuning: Tuning, facts: Facts) -> TrialBoot | None:
    """Refuse what is not for this machine as it is now, before anything is changed. Returns the trial that it needs."""
    if tuning.facts_digest != facts.digest():
        raise UsageFault(
            "this plan was made for another machine (processors, memory or network cards differ): make one here with "
            "'dl3 host plan'"
        )
    for step in tuning.steps:
        check_management(step, facts)
        if state(root, step) != State.BEFORE:
            raise UsageFault(
                f"{target(step)} has {found_instead(root, step)}: it changed since the plan was made, so nothing is done; "
                "make a new plan"
            )
    trial = trials.new_trial(root, tuning, facts)
    check_writable(root, tuning, trial)
    return trial


def arm(root: Root) -> None:
    """Let systemd undo what needs confirmation, even if all processes of dl3 are killed."""
    disarm(root)  # one of an earlier plan, if it could not be stopped then
    when = (f"--on-active={CONFIRM_SECONDS}", "--timer-property=AccuracySec=1s", f"--unit={TIMER}", "--collect")
    environment = (f"--setenv=PYTHONPATH={trials.TOP}", "--setenv=PYTHONDONTWRITEBYTECODE=1")
    command = (
        *("systemd-run", *when, *environment),
        *(
            sys.executable,
            "-m",
            "dl3",
            "host",
            "undo",
            "--unconfirmed",
        ),
    )
    root.run(command)


def do_all(root: Root, journal: Journal) -> None:
    """All steps in order, except those that `confirm` makes, and those that a boot tries before they stay."""
    tuning, thens, is_armed = journal.tuning, thens_of(root), False
    if journal.trial:
        trials.watch(root, journal.trial)
    for n in tuning.order:
        if n in tuning.held:
            continue
        if n in tuning.unconfirmed and not is_armed:
            arm(root)
            is_armed = True
        if n in tuning.tried:
            trials.prepare(root, journal, thens)
        else:
            do(root, tuning.steps[n], thens)
    if journal.trial:
        trials.arm(root, journal)


def refuse_second(root: Root) -> None:
    """UsageFault if a plan is applied, or could not be undone."""
    left = recover(root)
    journal = journals.read(root)
    if journal and journal.state == "applied":
        raise UsageFault("a plan is applied already: undo it first with 'dl3 host undo'")
    if journal:
        said = "; ".join(str(one) for one in left or ())
        raise UsageFault(f"an earlier plan is not undone completely ({said}): run 'dl3 host undo' first")


def failed(error: Exception, left: tuple[Left, ...]) -> Fault:
    """Why an apply failed, and what is left of it."""
    said = "; ".join(str(one) for one in left) or "everything is as before"
    again = "" if all(one.is_final for one in left) else "; run 'dl3 host undo' to try again"
    return Fault(f"{error}; {said}{again}")


def apply(root: Root, tuning: Tuning) -> Journal:
    """Apply a plan. If a step fails, those before it are undone, and a Fault says so."""
    with alone(root):
        refuse_second(root)
        trial = check(root, tuning, read(root.tree))
        journal = journals.new_journal(root, tuning, trial)
        journals.write(root, journal)
        try:
            do_all(root, journal)
        except (Fault, OSError) as error:
            raise failed(error, undo_all(root, journal)) from error
        journal = journal.model_copy(update={"state": "applied"})
        journals.write(root, journal)
        return journal
