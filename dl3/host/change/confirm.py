"""Keep what would be undone otherwise: changes of drivers and VFs on request, kernel parameters after their trial boot."""

from enum import Enum, auto

from dl3.host.change import journal as journals
from dl3.host.change import trial_boot as trials
from dl3.host.change.cards import driver_of
from dl3.host.change.journal import Journal, TrialBoot
from dl3.host.change.root import Root
from dl3.host.change.steps import State, do, state
from dl3.host.change.undo import alone, disarm, recover, revert, thens_of
from dl3.host.change.verify import trial_rows
from dl3.host.facts.devices import PCI
from dl3.host.facts.kernel import read_kernel
from dl3.host.facts.read import Facts, read
from dl3.host.tree import number
from dl3.host.tuning.step import DriverStep, VfStep
from dl3.model.fault import Fault

NO_BOOT = "the boot with the new kernel parameters did not come up"
NOT_TAKEN = "the bootloader did not try the new kernel parameters: another entry was chosen, or it cannot write to its own folder"


class Settled(Enum):
    """What became of a trial boot."""

    NOTHING = auto()  # there is none
    WAITS = auto()  # it comes with the next boot
    KEPT = auto()
    FAILED = auto()
    RECOVERED = auto()  # an apply or undo was interrupted, and is undone


def found_now(root: Root, step: DriverStep | VfStep) -> str:
    """What a card has instead of what was applied."""
    if isinstance(step, DriverStep):
        return f"the driver {driver_of(root, step.address)} instead of {step.after}"
    return f"{number(root.tree, f'{PCI}/{step.address}/sriov_numvfs') or 0} VFs instead of {step.after}"


def refuse_changed(root: Root, journal: Journal) -> None:
    """Fault if what waits for a confirmation is not in place any more."""
    for step in journal.tuning.steps:
        if isinstance(step, DriverStep | VfStep) and state(root, step) != State.AFTER:
            raise Fault(
                f"{step.address} has {found_now(root, step)}, perhaps after a boot: nothing is confirmed; run "
                "'dl3 host undo', then apply the plan again"
            )


def keep_drivers(root: Root, journal: Journal) -> Journal:
    """Drivers and VFs, also over a boot."""
    for n in journal.tuning.order:
        if n in journal.tuning.held:
            do(root, journal.tuning.steps[n], thens_of(root))
    journal = journal.model_copy(update={"is_confirmed": True})
    journals.write(root, journal)
    disarm(root)
    return journal


def confirm(root: Root) -> bool:
    """Keep what would be undone by itself, also over a boot. False if nothing waits for it."""
    with alone(root):
        if recover(root) is not None:
            raise Fault("an interrupted apply was found and undone: apply the plan again")
        journal = journals.read(root)
        if not journal:
            return False
        trial = journal.trial if journal.trial and journal.trial.state == "armed" else None
        is_trial = trial is not None and trials.is_running(trial, read_kernel(root.tree))
        if journal.waits:
            refuse_changed(root, journal)
        if is_trial:
            journal = trials.keep(root, journal, thens_of(root))
        if not journal.waits:
            return is_trial
        keep_drivers(root, journal)
        return True


def fail(root: Root, journal: Journal, said: str) -> Settled:
    """Back to the parameters before."""
    revert(root, trials.with_state(journal, "failed", said), "failing")
    return Settled.FAILED


def judge(root: Root, journal: Journal, trial: TrialBoot, facts: Facts) -> Settled:
    """Keep the parameters, or go back."""
    if trials.is_running(trial, facts.kernel):
        differing = [row for row in trial_rows(journal.tuning, facts) if not row.is_met]
        if not differing:
            trials.keep(root, journal, thens_of(root))
            return Settled.KEPT
        said = "; ".join(f"{row.what}: {row.wanted} wanted, {row.found} found" for row in differing)
        return fail(root, journal, f"the trial boot differed from the plan ({said})")
    if journals.boot_of(root) == trial.boot:
        return Settled.WAITS
    return fail(root, journal, NOT_TAKEN if trials.is_marked(root, trial) else NO_BOOT)


def settle(root: Root) -> Settled:
    """What is done after a boot while a trial is pending. A boot that used words which do not stay is followed by another."""
    with alone(root):
        left, facts = recover(root), read(root.tree)
        journal = journals.read(root)
        trial = journal.trial if journal else None
        found = Settled.NOTHING if left is None else Settled.RECOVERED
        if journal and trial and trial.state == "armed" and left is None:
            found = judge(root, journal, trial, facts)
        used = facts.kernel.value(trials.WORD) is not None
        if used and found in (Settled.FAILED, Settled.RECOVERED):
            root.run(("systemctl", "reboot"))
        return found
