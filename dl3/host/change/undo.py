"""Undo an applied plan, or the part of it that was not confirmed, and finish what was interrupted.

A step that cannot be put back stays in the journal with all that is needed, and the next undo tries it again.
"""

from contextlib import AbstractContextManager
from typing import Literal

from dl3.host import loans
from dl3.host.change import journal as journals
from dl3.host.change import trial_boot as trials
from dl3.host.change.cards import bind
from dl3.host.change.journal import Journal, Saved
from dl3.host.change.root import Root
from dl3.host.change.steps import State, Thens, state
from dl3.host.change.vfs import remove_vfs
from dl3.host.facts.boot import program
from dl3.host.tree import word
from dl3.host.tuning.step import AnyStep, DriverStep, FileStep, LiveStep, VfStep, target
from dl3.model.fault import Fault
from dl3.model.noun import Noun

TIMER = "dl3-host-undo"
SETTLE_SECONDS = 10


class Left(Noun):
    """A step that was not put back. `is_final`: somebody else changed it, so that it is not tried again."""

    target: str
    why: str
    is_final: bool

    def __str__(self) -> str:
        return f"{self.target} {self.why}"


def alone(root: Root) -> AbstractContextManager[None]:
    """Nobody else applies or undoes meanwhile."""
    run = root.place("/run")
    return loans.alone(run if run.is_dir() else root.folder)


def thens_of(root: Root) -> Thens:
    """Commands for the running kernel."""
    return Thens(word(root.tree, "/proc/sys/kernel/osrelease") or "unknown")


def restore_file(root: Root, step: FileStep, saved: Saved, thens: Thens) -> None:
    """A file as it was, and its folders."""
    if state(root, step) in (State.AFTER, State.PARTLY):
        if saved.content is None:
            root.remove(step.path)
        else:
            root.replace(step.path, saved.data, saved.owner)
    root.remove_folders(saved.folders)
    if step.then:
        root.run(thens.command(step.then))


def restore_driver(root: Root, step: DriverStep) -> None:
    """The driver as it was, and then its interfaces, which udev renames."""
    bind(root, step.address, step.before, "")
    if step.before and program(root.tree, "udevadm"):
        root.run(("udevadm", "settle", f"--timeout={SETTLE_SECONDS}"))


def restore_card(root: Root, step: DriverStep | VfStep, now: State) -> None:
    """The driver, or no VFs."""
    if isinstance(step, VfStep):
        remove_vfs(root, step)
    elif now != State.BEFORE:
        restore_driver(root, step)


def restore(root: Root, step: AnyStep, journal: Journal, thens: Thens) -> Left | None:
    """Put one step back. What others changed since is left."""
    if isinstance(step, FileStep) and not root.missing_folders(step.path):
        root.remove_new(step.path)
    if step in (journal.tuning.steps[n] for n in journal.tuning.tried):
        trials.disarm(root, journal)
    now = state(root, step)
    if now == State.OTHER:
        if isinstance(step, LiveStep) and step.is_optional and root.read(step.path) is None:
            return None  # an interrupt that its driver has freed
        return Left(target=target(step), why="was changed since and is left as it is", is_final=True)
    if isinstance(step, FileStep):
        restore_file(root, step, journal.saved_file(step.path), thens)
    elif isinstance(step, LiveStep) and now == State.AFTER:
        root.poke(step.path, step.before)
    elif isinstance(step, DriverStep | VfStep):
        restore_card(root, step, now)
    return None


def try_restore(root: Root, step: AnyStep, journal: Journal, thens: Thens) -> Left | None:
    """The same; a failure is what is left, and what a boot has ended needs nothing."""
    if journal.is_over(step, journals.boot_of(root)):
        return None
    try:
        return restore(root, step, journal, thens)
    except (Fault, OSError) as error:
        return Left(target=target(step), why=f"could not be put back: {error}", is_final=False)


def put_back(root: Root, journal: Journal, numbers: frozenset[int]) -> tuple[Journal, tuple[Left, ...]]:
    """Some steps, the last one first. Returns the journal without them, and what is left of them."""
    thens, found, undone = thens_of(root), list[Left](), set(journal.undone)
    for n in reversed(journal.tuning.order):
        if n not in numbers or n in undone:
            continue
        left = try_restore(root, journal.tuning.steps[n], journal, thens)
        found += [left] if left else []
        if not left or left.is_final:
            undone.add(n)
    return journal.model_copy(update={"undone": tuple(sorted(undone))}), tuple(found)


def close(root: Root, journal: Journal) -> None:
    """Keep the journal as long as it has steps that are in place."""
    if not journal.tuning.tried & journal.numbers:
        trials.unwatch(root, journal)
    if journal.numbers:
        journals.write(root, journal)
    else:
        journals.remove(root, journal.folders)


def disarm(root: Root) -> None:
    """Stop the timer. One that does not stop finds nothing to undo."""
    try:
        root.run(("systemctl", "stop", f"{TIMER}.timer"))
    except Fault:
        return


def undo_all(root: Root, journal: Journal) -> tuple[Left, ...]:
    """All steps. May be interrupted and called again. Returns what is left."""
    had_timer = journal.waits
    journal = journal.model_copy(update={"state": "undoing"})
    journals.write(root, journal)
    journal, left = put_back(root, journal, journal.numbers)
    close(root, journal)
    if had_timer:
        disarm(root)
    return left


def revert(root: Root, journal: Journal, state: Literal["reverting", "failing"]) -> tuple[Left, ...]:
    """The steps that were not confirmed, or those of a trial that failed. The others stay applied."""
    journal = journal.model_copy(update={"state": state})
    journals.write(root, journal)
    numbers = journal.tuning.unconfirmed if state == "reverting" else journal.tuning.tried
    journal, left = put_back(root, journal, numbers)
    is_done = all(one.is_final for one in left)
    close(root, journal.model_copy(update={"state": "applied" if is_done else state}))
    return left


def open_journal(root: Root) -> Journal | None:
    """The journal. What a killed process left of writing it is removed."""
    if not root.missing_folders(journals.PATH):
        root.remove_new(journals.PATH)
    journal = journals.read(root)
    if not journal and not root.missing_folders(journals.PATH):
        root.remove_folders((journals.FOLDER,))
    return journal


def recover(root: Root) -> tuple[Left, ...] | None:
    """Finish what was interrupted: an apply and an undo by undoing. None if nothing was, or parameters were being kept."""
    journal = open_journal(root)
    if not journal:
        return None
    if journal.state == "applied":
        if journal.trial and journal.trial.state == "keeping":
            trials.keep(root, journal, thens_of(root))
        return None
    if journal.state == "reverting" or journal.state == "failing":
        return revert(root, journal, journal.state)
    return undo_all(root, journal)


def undo(root: Root, forgets: bool = False) -> tuple[Left, ...] | None:
    """Put back what the applied plan has changed. None if none is applied. `forgets`: what is left is given up."""
    with alone(root):
        journal = open_journal(root)
        if not journal:
            return None
        left = undo_all(root, journal)
        if forgets and journals.read(root):
            journals.remove(root, journal.folders)
        return left


def undo_unconfirmed(root: Root) -> tuple[Left, ...] | None:
    """Put back what needs confirmation and did not get it. None if there is nothing."""
    with alone(root):
        journal = open_journal(root)
        if not journal:
            return None
        if journal.state != "applied":
            return recover(root)
        return revert(root, journal, "reverting") if journal.waits else None
