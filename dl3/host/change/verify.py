"""Compare an applied plan with the machine: what was wanted, what is in place, and what is in effect. Reads only."""

from collections.abc import Iterator

from dl3.host.change import journal as journals
from dl3.host.change.cards import driver_of
from dl3.host.change.journal import Journal, TrialBoot
from dl3.host.change.root import Root
from dl3.host.change.steps import State, live_value, state
from dl3.host.cpulist import CpuSet, cpus_of
from dl3.host.facts.devices import PCI
from dl3.host.facts.read import Facts
from dl3.host.isolation import asked, named
from dl3.host.tree import number
from dl3.host.tuning.plan import Tuning
from dl3.host.tuning.step import DriverStep, FileStep, LiveStep, VfStep, target
from dl3.model.noun import Noun


class Row(Noun):
    """One comparison. `waits`: it differs only because the machine was not booted since."""

    what: str
    wanted: str
    found: str
    is_met: bool
    waits: bool = False


def trial_row(trial: TrialBoot) -> Row:
    """The boot that tries the kernel parameters."""
    found = trial.said or "not booted since"
    return Row(what="trial boot", wanted="passed", found=found, is_met=False, waits=not trial.said)


def step_rows(root: Root, journal: Journal) -> Iterator[Row]:
    """Each step that was made and not undone: what it wrote is still there."""
    made = journal.numbers - (journal.tuning.held if journal.waits else frozenset())
    if journal.trial and journal.trial.state != "kept":
        made -= journal.tuning.tried
        yield trial_row(journal.trial)
    boot = journals.boot_of(root)
    for step in (one for one in (journal.tuning.steps[n] for n in sorted(made)) if not journal.is_over(one, boot)):
        is_met = state(root, step) == State.AFTER
        if isinstance(step, FileStep):
            there = "other contents" if root.read(step.path) is not None else "no file"
            yield Row(what=step.path, wanted="as planned", found="as planned" if is_met else there, is_met=is_met)
        elif isinstance(step, LiveStep):
            found = live_value(root, step.path) or "no such file"
            yield Row(what=step.path, wanted=step.after, found=found, is_met=is_met or step.is_optional)
        elif isinstance(step, DriverStep):
            found = driver_of(root, step.address) or "no driver"
            yield Row(what=f"driver of {target(step)}", wanted=step.after, found=found, is_met=is_met)
        elif isinstance(step, VfStep):
            found = str(number(root.tree, f"{PCI}/{step.address}/sriov_numvfs") or 0)
            yield Row(what=f"VFs of {target(step)}", wanted=str(step.after), found=found, is_met=is_met)


def set_row(what: str, wanted: frozenset[int], found: CpuSet | None, waits: bool) -> Row:
    """A set of CPUs."""
    is_met = wanted == (found or frozenset())
    return Row(what=what, wanted=named(wanted), found=named(found), is_met=is_met, waits=not is_met and waits)


def parameter_rows(tuning: Tuning, facts: Facts, waits: bool) -> Iterator[Row]:
    """Effects of the kernel parameters, by what the kernel did with them."""
    words = dict(word.split("=", 1) for word in tuning.parameters)
    found = {"isolcpus": facts.cpus.isolated, "nohz_full": facts.cpus.nohz_full, "rcu_nocbs": asked(facts, "rcu_nocbs")}
    for key, cpus in found.items():
        if key in words:
            yield set_row(f"{key}: in effect", cpus_of(words[key], facts.cpus.last) or frozenset(), cpus, waits)
    if "iommu" in words:
        is_met, now = facts.system.has_iommu, "in use" if facts.system.has_iommu else "not in use"
        yield Row(what="IOMMU", wanted="in use", found=now, is_met=is_met, waits=not is_met and waits)


def page_rows(tuning: Tuning, facts: Facts, waits: bool) -> Iterator[Row]:
    """Huge pages on each node."""
    for node, mib in tuning.memory_mib.items():
        has = sum(pages.total_mib for one in facts.nodes if one.number == node for pages in one.pages)
        what = f"huge pages of node {node}"
        is_met = has >= mib
        yield Row(what=what, wanted=f"{mib:,} MiB", found=f"{has:,} MiB", is_met=is_met, waits=not is_met and waits)


def trial_rows(tuning: Tuning, facts: Facts) -> Iterator[Row]:
    """What the kernel did with its parameters: on this depends whether they stay."""
    yield from parameter_rows(tuning, facts, waits=False)
    if any(word.startswith("hugepages=") for word in tuning.parameters):
        yield from page_rows(tuning, facts, waits=False)


def effect_rows(journal: Journal, facts: Facts) -> Iterator[Row]:
    """Effects on the machine as a whole."""
    tuning, has_failed = journal.tuning, bool(journal.trial and journal.trial.said)
    waits = not has_failed and any(word not in facts.kernel.words for word in tuning.parameters)
    yield from parameter_rows(tuning, facts, waits)
    busy = [irq for irq in facts.irqs if irq.disturbs(tuning.isolated)]
    found = ", ".join(f"{irq.number} ({irq.actions})" for irq in busy) or "none"
    yield Row(
        what="interrupts on cores of workers", wanted="none", found=found, is_met=not busy, waits=bool(busy) and waits
    )
    yield from page_rows(tuning, facts, waits)


def verify(root: Root, journal: Journal, facts: Facts) -> tuple[Row, ...]:
    """All comparisons."""
    return (*step_rows(root, journal), *effect_rows(journal, facts))
