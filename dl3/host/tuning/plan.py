"""The tuning of a machine, computed from its facts. Pure: nothing is touched."""

import re
from pathlib import Path

from pydantic import ConfigDict, ValidationError

from dl3.host.facts.boot import KERNEL_FILE
from dl3.host.facts.read import Facts
from dl3.host.tuning.cores import NodeCores, choose
from dl3.host.tuning.memory import Load, needed_mib
from dl3.host.tuning.names import DRIVERS, GRUB, MODULES, UNMANAGED
from dl3.host.tuning.parameters import iommu, isolation, pages, parameter_steps
from dl3.host.tuning.request import Place, Request, places
from dl3.host.tuning.settings import (
    frequency,
    huge_pages,
    idle_states,
    interrupts,
    merging,
    setting_steps,
    steering,
    sysctls,
)
from dl3.host.tuning.step import HEAD, VFIO, DriverStep, FileStep, LiveStep, Step, VfStep
from dl3.model.fault import UsageFault
from dl3.model.noun import Noun

BIFURCATED = ("mlx4_core", "mlx5_core", "mana")
GIB = 1 << 20
DRIVER_SOURCE = "DPDK, Linux guide: linux_drivers; driverctl(8); white paper appendix 7 (by new_id, which takes all cards of a kind)"
INTERFACE = re.compile(r"interface-name:([^\s;]+)")


class Tuning(Noun):
    """A plan. `remarks`: what is not planned, and why."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: int = 1
    facts_digest: str
    request: Request
    cores: tuple[NodeCores, ...]
    memory_mib: dict[int, int]  # by node, of dl3d
    parameters: tuple[str, ...]
    steps: tuple[Step, ...]
    remarks: tuple[str, ...] = ()

    @property
    def isolated(self) -> frozenset[int]:
        """All cores of workers, with all their threads."""
        return frozenset(cpu for one in self.cores for cpu in one.isolated)

    @property
    def tried(self) -> frozenset[int]:
        """Numbers of the steps with kernel parameters, of which there is one at most: a boot tries them before they stay."""
        paths = (GRUB, KERNEL_FILE)
        return frozenset(n for n, step in enumerate(self.steps) if isinstance(step, FileStep) and step.path in paths)

    @property
    def tried_step(self) -> FileStep:
        """That step, if there is one."""
        return next(step for step in (self.steps[n] for n in sorted(self.tried)) if isinstance(step, FileStep))

    @property
    def held(self) -> frozenset[int]:
        """Numbers of the steps that would change a driver again at the next boot: they wait for a confirmation."""
        paths = {f"{DRIVERS}{step.address}" for step in self.steps if isinstance(step, DriverStep)}
        return frozenset(n for n, step in enumerate(self.steps) if isinstance(step, FileStep) and step.path in paths)

    @property
    def unconfirmed(self) -> frozenset[int]:
        """Numbers of the steps that may cut off the machine: they are undone unless they are confirmed."""
        drivers = frozenset(n for n, step in enumerate(self.steps) if isinstance(step, DriverStep | VfStep))
        names = {n for n, step in enumerate(self.steps) if isinstance(step, FileStep) and step.path == UNMANAGED}
        return drivers | names | self.held if drivers else drivers

    @property
    def order(self) -> tuple[int, ...]:
        """Numbers of the steps as they are made: those that need confirmation come last."""
        rank = {n: (n in self.unconfirmed) + (n in self.held) for n in range(len(self.steps))}
        return tuple(sorted(rank, key=lambda n: (rank[n], n)))

    @property
    def needs_reboot(self) -> bool:
        """Whether some of it waits for a reboot."""
        return any(step.needs_reboot for step in self.steps)


def unmanaged_step(facts: Facts, names: tuple[str, ...]) -> list[FileStep]:
    """Interfaces that NetworkManager leaves alone."""
    before = facts.system.own_file(UNMANAGED)
    names = tuple(sorted({*names, *INTERFACE.findall(before or "")}))  # a card that is bound has none any more
    if not names or not (facts.system.runs("NetworkManager") or before):
        return []
    devices = ";".join(f"interface-name:{name}" for name in names)
    after = f"{HEAD}[keyfile]\nunmanaged-devices+={devices}\n"
    why = "NetworkManager configures interfaces that the forwarder takes"
    step = FileStep(
        path=UNMANAGED,
        before=before,
        after=after,
        then="nmcli-reload",
        why=why,
        source="NetworkManager.conf(5); white paper appendix 2 (which switches it off)",
    )
    return [] if before == after else [step]


def card_steps(facts: Facts, address: str) -> tuple[list[FileStep | DriverStep], list[str]]:
    """One card to vfio-pci, which takes it only where the IOMMU is in use."""
    steps: list[FileStep | DriverStep] = []
    remarks: list[str] = []
    nic, path = facts.nic(address), f"{DRIVERS}{address}"
    before = facts.system.own_file(path)
    if "driverctl" not in facts.system.programs:
        remarks.append(f"{address} gets its driver until the next boot only: install driverctl")
    elif before != f"{VFIO}\n":
        why = "the card has this driver after each boot"
        steps.append(FileStep(path=path, before=before, after=f"{VFIO}\n", why=why, source=DRIVER_SOURCE))
    if not facts.system.has_iommu:
        remarks.append(f"{address} is not bound now, but after the boot that switches the IOMMU on")
    elif nic and nic.driver != VFIO:
        steps.append(DriverStep(address=address, before=nic.driver, why="DPDK takes the card", source=DRIVER_SOURCE))
    return steps, remarks


def driver_steps(facts: Facts, addresses: tuple[str, ...]) -> tuple[list[FileStep | DriverStep], list[str]]:
    """Cards to vfio-pci, now and after each boot."""
    steps: list[FileStep | DriverStep] = []
    remarks: list[str] = []
    text = f"{HEAD}{VFIO}\n"
    kept = [nic.address for nic in facts.nics if nic.address in addresses and nic.driver in BIFURCATED]
    remarks += [f"{address} keeps its driver: DPDK works beside it" for address in kept]
    addresses = tuple(address for address in addresses if address not in kept)
    if facts.cpus.is_virtual and not facts.system.has_iommu:
        remarks += [
            f"{one} is not bound: this virtual machine has no IOMMU, without which vfio-pci is unsafe"
            for one in addresses
        ]
        return [], remarks
    if addresses and facts.system.own_file(MODULES) != text:
        before = facts.system.own_file(MODULES)
        steps.append(
            FileStep(path=MODULES, before=before, after=text, why="the module of the driver", source=DRIVER_SOURCE)
        )
    for address in addresses:
        more, remark = card_steps(facts, address)
        steps += more
        remarks += remark
    return steps, remarks


def memory_of(found: tuple[Place, ...]) -> dict[int, int]:
    """What dl3d needs on each node: one port at least, so that virtual devices have memory, too."""
    return needed_mib({one.node: Load(n_ports=max(1, len(one.nics)), n_workers=one.n_cores) for one in found})


def gib_pages(facts: Facts, request: Request, mib: dict[int, int]) -> dict[int, int]:
    """Pages of 1 GiB by node, if they are requested and the CPU has them."""
    if request.page != "1G":
        return {}
    if not any(node.pages_of(GIB) for node in facts.nodes):
        raise UsageFault("this CPU has no huge pages of 1 GiB: leave out --page, then pages of 2 MiB are used")
    return {node: -(-n // 1024) for node, n in mib.items()}


def plan(facts: Facts, request: Request) -> Tuning:
    """The tuning for a request."""
    found = places(facts, request)
    cores = tuple(choose(facts, one) for one in found)
    isolated = frozenset(cpu for one in cores for cpu in one.isolated)
    addresses = tuple(address for one in found for address in one.nics)
    mib = memory_of(found)
    gib = gib_pages(facts, request, mib)
    words = (*isolation(facts, isolated), *iommu(facts, request.binds), *pages(gib))
    kernel, remarks = parameter_steps(facts, words)
    settings = [
        *(*sysctls(facts), *merging(facts), *frequency(facts, request.no_turbo), *idle_states(facts, isolated)),
        *(*(() if gib else huge_pages(facts, mib)), *interrupts(facts, isolated), *steering(facts, isolated)),
    ]
    names = tuple(name for address in addresses for name in facts.names_of(address))
    steps: list[FileStep | LiveStep | DriverStep] = [*kernel, *setting_steps(facts, settings)]
    if request.binds:
        bound, more = driver_steps(facts, addresses)
        steps += bound
        remarks += more
    steps = [*unmanaged_step(facts, names), *steps]
    return Tuning(
        facts_digest=facts.digest(),
        request=request,
        cores=cores,
        memory_mib=mib,
        parameters=words,
        steps=tuple(steps),
        remarks=tuple(remarks),
    )


def sentence(error: ValidationError) -> str:
    """The first fault in a plan."""
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"] if part not in ("file", "live", "driver", "vfs"))
    return f"{place or 'the file'}: {first['msg'].removeprefix('Value error, ')}"


def load(path: Path) -> Tuning:
    """A plan that was saved. One that was edited into something else is refused."""
    try:
        tuning = Tuning.model_validate_json(path.read_bytes())
    except OSError as error:
        raise UsageFault(f"cannot read {path}: {error.strerror}") from error
    except ValidationError as error:
        raise UsageFault(f"{path} is no plan of 'dl3 host plan' ({sentence(error)}): make it again") from error
    if tuning.version != 1:
        raise UsageFault(f"{path} is a plan of another version: make it again with 'dl3 host plan'")
    return tuning
