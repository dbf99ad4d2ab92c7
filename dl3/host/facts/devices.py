"""Network cards, network interfaces and interrupts."""

import re

from dl3.host.cpulist import CpuSet, cpus_of_mask
from dl3.host.facts.cpus import list_in
from dl3.host.tree import Tree, last_part, number, word
from dl3.model.noun import Noun

PCI = "/sys/bus/pci/devices"
NET = "/sys/class/net"
PCI_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
NETWORK_CLASS = "0x02"


class Nic(Noun):
    """A PCI function that is a network device."""

    address: str
    vendor: str = ""
    device: str = ""
    node: int = -1  # -1: unknown
    driver: str | None = None
    iommu_group: str | None = None
    physfn: str | None = None  # the PF of a VF
    vfs_total: int = 0
    vfs: int = 0
    autoprobe: bool | None = None  # whether drivers take new VFs at once; None: not for this card
    link_speed: str | None = None  # of PCI Express
    link_speed_max: str | None = None
    link_width: int | None = None
    link_width_max: int | None = None


class Queue(Noun):
    """A receive queue, and the CPUs that process its packets besides the interrupted one."""

    name: str
    mask: str
    rps: CpuSet


class Interface(Noun):
    """A network interface of Linux."""

    name: str
    pci: str | None = None
    kind: str | None = None  # bridge, bond, vlan, ...
    master: str | None = None
    lower: tuple[str, ...] = ()
    is_up: bool = False
    queues: tuple[Queue, ...] = ()

    @property
    def rps(self) -> frozenset[int]:
        """CPUs to which receive packet steering sends its packets."""
        return frozenset(cpu for queue in self.queues for cpu in queue.rps)


class Irq(Noun):
    """An interrupt that a driver uses."""

    number: int
    actions: str
    affinity: CpuSet
    effective: CpuSet
    counts: tuple[int, ...] | None = None  # of this boot, by CPU; None: unknown

    def disturbs(self, cpus: frozenset[int]) -> bool:
        """Whether it is handled on one of these CPUs. The kernel gives each queue of a device an interrupt on CPUs that
        may not be changed: one that has only these belongs to a queue that they alone would use, and is silent until then.
        """
        is_silent = self.counts is not None and not any(self.counts[cpu : cpu + 1] != (0,) for cpu in self.affinity)
        return bool(self.effective & cpus) and not (is_silent and self.affinity <= cpus)


class Group(Noun):
    """An IOMMU group."""

    name: str
    members: tuple[str, ...]  # PCI addresses


def nic_at(tree: Tree, address: str) -> Nic:
    """One network card."""
    at = f"{PCI}/{address}"
    node = number(tree, f"{at}/numa_node")
    return Nic(
        address=address,
        vendor=(word(tree, f"{at}/vendor") or "").removeprefix("0x"),
        device=(word(tree, f"{at}/device") or "").removeprefix("0x"),
        node=-1 if node is None else node,
        driver=last_part(tree.link(f"{at}/driver")),
        iommu_group=last_part(tree.link(f"{at}/iommu_group")),
        physfn=last_part(tree.link(f"{at}/physfn")),
        vfs_total=number(tree, f"{at}/sriov_totalvfs") or 0,
        vfs=number(tree, f"{at}/sriov_numvfs") or 0,
        autoprobe={0: False, 1: True}.get(number(tree, f"{at}/sriov_drivers_autoprobe") or 0)
        if tree.has(f"{at}/sriov_drivers_autoprobe")
        else None,
        link_speed=word(tree, f"{at}/current_link_speed"),
        link_speed_max=word(tree, f"{at}/max_link_speed"),
        link_width=number(tree, f"{at}/current_link_width"),
        link_width_max=number(tree, f"{at}/max_link_width"),
    )


def read_nics(tree: Tree) -> tuple[Nic, ...]:
    """All network cards on PCI."""
    found = (name for name in tree.names(PCI) if (word(tree, f"{PCI}/{name}/class") or "").startswith(NETWORK_CLASS))
    return tuple(nic_at(tree, name) for name in found)


def pci_of(tree: Tree, name: str) -> str | None:
    """The PCI function below an interface; virtio has a device of its own between them."""
    device = last_part(tree.link(f"{NET}/{name}/device"))
    if device and device.startswith("virtio"):
        addresses = PCI_ADDRESS.findall(tree.link(f"/sys/bus/virtio/devices/{device}") or "")
        return addresses[-1] if addresses else None
    return device if device and PCI_ADDRESS.fullmatch(device) else None


def interface_at(tree: Tree, name: str) -> Interface:
    """One interface."""
    at = f"{NET}/{name}"
    kind = re.search(r"^DEVTYPE=(.+)$", tree.text(f"{at}/uevent") or "", re.MULTILINE)
    names = [queue for queue in tree.names(f"{at}/queues") if queue.startswith("rx-")]
    masks = [(queue, word(tree, f"{at}/queues/{queue}/rps_cpus") or "0") for queue in names]
    return Interface(
        name=name,
        pci=pci_of(tree, name),
        kind=kind[1] if kind else None,
        master=last_part(tree.link(f"{at}/master")),
        lower=tuple(one.removeprefix("lower_") for one in tree.names(at) if one.startswith("lower_")),
        is_up=word(tree, f"{at}/operstate") in ("up", "unknown"),
        queues=tuple(Queue(name=queue, mask=mask, rps=cpus_of_mask(mask)) for queue, mask in masks),
    )


def read_interfaces(tree: Tree) -> tuple[Interface, ...]:
    """All interfaces of the namespace; files like bonding_masters are none."""
    return tuple(interface_at(tree, name) for name in tree.names(NET) if tree.has(f"{NET}/{name}/ifindex"))


def counts_in(text: str | None) -> tuple[int, ...] | None:
    """How often an interrupt was handled by each CPU that is possible."""
    counts = (text or "").split(",")
    return tuple(int(one) for one in counts) if all(one.isdecimal() for one in counts) else None


def read_irqs(tree: Tree) -> tuple[Irq, ...]:
    """All interrupts with a handler and an affinity, by number."""
    found = []
    for name in tree.names("/sys/kernel/irq"):
        actions = word(tree, f"/sys/kernel/irq/{name}/actions")
        affinity = list_in(tree, f"/proc/irq/{name}/smp_affinity_list")
        if not actions or not affinity:
            continue
        effective = list_in(tree, f"/proc/irq/{name}/effective_affinity_list")
        counts = counts_in(word(tree, f"/sys/kernel/irq/{name}/per_cpu_count"))
        found.append(
            Irq(number=int(name), actions=actions, affinity=affinity, effective=effective or affinity, counts=counts)
        )
    return tuple(sorted(found, key=lambda irq: irq.number))


def read_groups(tree: Tree, nics: tuple[Nic, ...]) -> tuple[Group, ...]:
    """The IOMMU groups of network cards, with all their members."""
    names = sorted({nic.iommu_group for nic in nics if nic.iommu_group})
    return tuple(Group(name=one, members=tree.names(f"/sys/kernel/iommu_groups/{one}/devices")) for one in names)
