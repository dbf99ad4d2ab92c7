"""One step: its present state, doing it, and putting back what was there."""

from dataclasses import dataclass
from enum import Enum, auto

from dl3.host.change.cards import bind, driver_of, has_override, load_module
from dl3.host.change.root import Root
from dl3.host.change.vfs import make_vfs
from dl3.host.cpulist import cpus_of, cpus_of_mask
from dl3.host.facts.devices import PCI
from dl3.host.tree import number
from dl3.host.tuning.names import GRUB
from dl3.host.tuning.step import HEAD, AnyStep, DriverStep, FileStep, LiveStep, VfStep
from dl3.model.fault import Fault

MANY = 1 << 16  # more CPUs than there are
# GRUB's menu gets the words from a variable until a boot has shown that they work (see trial_boot.py).
TRIAL_TEXT = f'{HEAD}GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX \\$dl3_words"\n'


class State(Enum):
    """Of what a step changes."""

    BEFORE = auto()
    AFTER = auto()
    PARTLY = auto()  # ours, but interrupted, or on trial
    OTHER = auto()  # somebody else changed it


@dataclass(frozen=True)
class Thens:
    """Commands that bring a file into effect, by name."""

    release: str

    def command(self, name: str) -> tuple[str, ...]:
        """The command."""
        return {
            "update-grub": ("update-grub",),
            "kernel-install": ("kernel-install", "add", self.release, f"/boot/vmlinuz-{self.release}"),
            "nmcli-reload": ("nmcli", "general", "reload", "conf"),
        }[name]


def is_same(path: str, one: str, other: str) -> bool:
    """Whether two values of a file of the kernel mean the same."""
    if one == other:
        return True
    if path.endswith("rps_cpus"):
        return cpus_of_mask(one) == cpus_of_mask(other)
    if path.endswith("_affinity_list"):
        return cpus_of(one, MANY) == cpus_of(other, MANY)
    return False


def live_value(root: Root, path: str) -> str | None:
    """The present value of a file of the kernel."""
    data = root.read(path)
    return None if data is None else data.decode("ascii", errors="replace").strip()


def live_state(root: Root, step: LiveStep) -> State:
    """A value. The kernel may have found fewer huge pages than were asked for: those are ours, too."""
    now = live_value(root, step.path)
    if now is None:
        return State.OTHER
    if is_same(step.path, now, step.after):
        return State.AFTER
    if is_same(step.path, now, step.before):
        return State.BEFORE
    is_number = step.path.endswith("nr_hugepages") and now.isdigit()
    return State.AFTER if is_number and int(step.before) < int(now) < int(step.after) else State.OTHER


def driver_state(root: Root, step: DriverStep) -> State:
    """A driver. Binding takes several writes: an override, unbinding, and looking for a driver again."""
    now, is_ours = driver_of(root, step.address), has_override(root, step.address)
    if now == step.after:
        return State.AFTER if is_ours else State.PARTLY
    if now not in (step.before, None):
        return State.OTHER
    return State.BEFORE if now == step.before and not is_ours else State.PARTLY


def vf_state(root: Root, step: VfStep) -> State:
    """The number of VFs."""
    now = number(root.tree, f"{PCI}/{step.address}/sriov_numvfs")
    return {step.after: State.AFTER, step.before: State.BEFORE}.get(-1 if now is None else now, State.OTHER)


def state(root: Root, step: AnyStep) -> State:
    """The present state of what a step changes."""
    if isinstance(step, VfStep):
        return vf_state(root, step)
    if isinstance(step, LiveStep):
        return live_state(root, step)
    if isinstance(step, DriverStep):
        return driver_state(root, step)
    now, after = root.read(step.path), step.after.encode()
    before = None if step.before is None else step.before.encode()
    if now == after:
        return State.AFTER
    if step.path == GRUB and now == TRIAL_TEXT.encode():
        return State.PARTLY
    return State.BEFORE if now == before else State.OTHER


def do_file(root: Root, step: FileStep, thens: Thens) -> None:
    """Write the file, then bring it into effect."""
    root.make_folders(step.path)
    if state(root, step) != State.AFTER:
        root.replace(step.path, step.after.encode())
    if step.then:
        root.run(thens.command(step.then))


def do_live(root: Root, step: LiveStep) -> None:
    """Write the value."""
    if state(root, step) == State.AFTER:
        return
    try:
        root.poke(step.path, step.after)
    except Fault:
        if not step.is_optional:
            raise


def do(root: Root, step: AnyStep, thens: Thens) -> None:
    """Make the change. Doing it again changes nothing."""
    if isinstance(step, FileStep):
        do_file(root, step, thens)
    elif isinstance(step, LiveStep):
        do_live(root, step)
    elif state(root, step) == State.AFTER:
        return
    elif isinstance(step, VfStep):
        make_vfs(root, step)
    else:
        load_module(root, step.after)
        bind(root, step.address, step.after, step.after)
