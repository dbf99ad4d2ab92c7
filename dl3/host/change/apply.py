"""Apply a plan, undo it, and finish what was interrupted.

The journal is on disk before the first change. Each step compares before it changes something; if what it finds is not
what the plan says, nothing at all is done. An apply that fails or was killed is undone.
"""

import base64
import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from dl3.host.change import journal as journals
from dl3.host.change.journal import Journal, Saved
from dl3.host.change.root import Owner, Root
from dl3.host.change.steps import AnyStep, State, Thens, bind, do, driver_of, live_value, state
from dl3.host.facts.read import Facts, read
from dl3.host.management import interfaces, refuse_management
from dl3.host.tree import word
from dl3.host.tuning.names import DRIVERS, UNMANAGED
from dl3.host.tuning.plan import INTERFACE, Tuning
from dl3.host.tuning.step import DriverStep, FileStep, LiveStep, target
from dl3.model.fault import Fault, UsageFault

CONFIRM_SECONDS = 120
TIMER = "dl3-host-undo"
TOP = Path(__file__).resolve().parents[3]


@contextmanager
def alone(root: Root) -> Iterator[None]:
    """Nobody else applies or undoes meanwhile."""
    folder = root.place("/run") if root.place("/run").is_dir() else root.folder
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def found_instead(root: Root, step: AnyStep) -> str:
    """What is there, for a message."""
    if isinstance(step, LiveStep):
        return f"'{live_value(root, step.path)}' instead of '{step.before}'"
    if isinstance(step, DriverStep):
        return f"the driver {driver_of(root, step.address)} instead of {step.before}"
    return "a file with other contents" if root.read(step.path) is not None else "no file"


def nearest_folder(root: Root, path: str) -> Path:
    """The folder of a file, or the nearest one that exists."""
    folders = (root.place(str(one)) for one in PurePosixPath(path).parents if one.name)
    return next((folder for folder in folders if folder.exists()), root.folder)


def check_writable(root: Root, tuning: Tuning) -> None:
    """Fault if a file could not be written."""
    for path in (journals.PATH, *(step.path for step in tuning.steps if isinstance(step, FileStep))):
        folder = nearest_folder(root, path)
        if not os.access(folder, os.W_OK):
            raise Fault(f"{folder} is read-only, so {path} cannot be written: nothing is changed; remount it writable")


def check_management(step: AnyStep, facts: Facts) -> None:
    """Refuse a step that would touch what the machine is managed through, now or after a boot."""
    if isinstance(step, DriverStep):
        refuse_management(facts, step.address, "binding")
        if "systemd-run" not in facts.system.programs:
            raise UsageFault("drivers are only changed where systemd can undo it: there is no systemd-run")
    elif isinstance(step, FileStep) and step.path.startswith(f"{DRIVERS}/"):
        refuse_management(facts, PurePosixPath(step.path).name, "binding")
    elif isinstance(step, FileStep) and step.path == UNMANAGED:
        managed = interfaces(facts)
        for name in INTERFACE.findall(step.after):
            if name in managed:
                raise UsageFault(
                    f"taking {name} from NetworkManager is refused: this machine is managed through it ({managed[name]})"
                )


def check(root: Root, tuning: Tuning, facts: Facts) -> None:
    """Refuse what is not for this machine as it is now, before anything is changed."""
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
    check_writable(root, tuning)


def arm(root: Root) -> None:
    """Let systemd undo everything unless it is confirmed, even if all processes of dl3 are killed."""
    command = ("systemd-run", f"--on-active={CONFIRM_SECONDS}", f"--unit={TIMER}", f"--setenv=PYTHONPATH={TOP}")
    root.run((*command, sys.executable, "-m", "dl3", "host", "undo", "--unconfirmed"))


def apply(root: Root, tuning: Tuning) -> Journal:
    """Apply a plan. If a step fails, those before it are undone, and a Fault says so."""
    with alone(root):
        recover(root)
        facts = read(root.tree)
        if journals.read(root):
            raise UsageFault("a plan is applied already: undo it first with 'dl3 host undo'")
        check(root, tuning, facts)
        journal = journals.new_journal(root, tuning)
        journals.write(root, journal)
        try:
            do_all(root, tuning, thens_of(root))
        except (Fault, OSError) as error:
            left = undo_all(root, journal)
            raise Fault(f"{error}; {'; '.join(left) or 'everything is as before'}") from error
        journal = journal.model_copy(update={"state": "applied"})
        journals.write(root, journal)
        return journal


def thens_of(root: Root) -> Thens:
    """Commands for the running kernel."""
    return Thens(word(root.tree, "/proc/sys/kernel/osrelease") or "unknown")


def do_all(root: Root, tuning: Tuning, thens: Thens) -> None:
    """All steps in order."""
    is_armed = False
    for step in tuning.steps:
        if isinstance(step, DriverStep) and not is_armed:
            arm(root)
            is_armed = True
        do(root, step, thens)


def restore_file(root: Root, step: FileStep, saved: Saved, thens: Thens) -> None:
    """A file as it was, and its folders."""
    if state(root, step) == State.AFTER:
        if saved.content is None:
            root.remove(step.path)
        else:
            owner = Owner(saved.mode, saved.uid, saved.gid)
            root.replace(step.path, base64.b64decode(saved.content), owner)
    root.remove_folders(saved.folders)
    if step.then:
        root.run(thens.command(step.then))


def restore(root: Root, step: AnyStep, journal: Journal, thens: Thens) -> str | None:
    """Put one step back. What others changed since is left, and returned as a sentence."""
    if isinstance(step, FileStep) and not root.missing_folders(step.path):
        root.remove_new(step.path)
    if state(root, step) == State.OTHER:
        return f"{target(step)} was changed since and is left as it is"
    if isinstance(step, FileStep):
        restore_file(root, step, journal.saved_file(step.path), thens)
    elif state(root, step) == State.AFTER and isinstance(step, LiveStep):
        root.poke(step.path, step.before)
    elif state(root, step) != State.BEFORE and isinstance(step, DriverStep):
        bind(root, step.address, step.before, "")
    return None


def undo_all(root: Root, journal: Journal) -> tuple[str, ...]:
    """All steps, the last one first. May be interrupted and called again. Returns what is left."""
    journals.write(root, journal.model_copy(update={"state": "undoing"}))
    thens, left = thens_of(root), list[str]()
    for step in reversed(journal.tuning.steps):
        try:
            said = restore(root, step, journal, thens)
        except (Fault, OSError) as error:
            said = f"{target(step)} could not be put back: {error}"
        left += [said] if said else []
    journals.remove(root, journal.folders)
    return tuple(left)


def recover(root: Root) -> tuple[str, ...] | None:
    """Undo what was interrupted. None if nothing was."""
    if not root.missing_folders(journals.PATH):
        root.remove_new(journals.PATH)
    journal = journals.read(root)
    if not journal and not root.missing_folders(journals.PATH):
        root.remove_folders((journals.FOLDER,))
    if not journal or journal.state == "applied":
        return None
    return undo_all(root, journal)


def undo(root: Root, only_unconfirmed: bool = False) -> tuple[str, ...] | None:
    """Put back what the applied plan has changed. None if none is applied, or it was confirmed."""
    with alone(root):
        recovered = recover(root)
        journal = journals.read(root)
        if not journal:
            return recovered
        if only_unconfirmed and journal.is_confirmed:
            return None
        return undo_all(root, journal)


def confirm(root: Root) -> bool:
    """Keep what would be undone by itself. False if nothing waits for it."""
    with alone(root):
        if recover(root) is not None:
            raise Fault("an interrupted apply was found and undone: apply the plan again")
        journal = journals.read(root)
        if not journal or journal.is_confirmed:
            return False
        journals.write(root, journal.model_copy(update={"is_confirmed": True}))
        root.run(("systemctl", "stop", f"{TIMER}.timer"))
        return True
