"""All facts of a machine as one value."""

import hashlib
import json

from dl3.host.facts.boot import Boot, read_boot
from dl3.host.facts.cpus import Cpus, read_cpus
from dl3.host.facts.devices import Group, Interface, Irq, Nic, read_groups, read_interfaces, read_irqs, read_nics
from dl3.host.facts.kernel import Kernel, read_kernel
from dl3.host.facts.memory import Node, read_nodes
from dl3.host.facts.network import Network, read_network
from dl3.host.facts.system import System, read_system
from dl3.host.tree import Tree
from dl3.model.noun import Noun

KIB_PER_GIB = 1 << 20


class Facts(Noun):
    """What Linux says about a machine at one time."""

    cpus: Cpus
    nodes: tuple[Node, ...]
    nics: tuple[Nic, ...] = ()
    groups: tuple[Group, ...] = ()
    interfaces: tuple[Interface, ...] = ()
    irqs: tuple[Irq, ...] = ()
    kernel: Kernel
    boot: Boot
    system: System
    network: Network

    def nic(self, address: str) -> Nic | None:
        """The network card at a PCI address."""
        return next((one for one in self.nics if one.address == address), None)

    def interface(self, name: str) -> Interface | None:
        """The interface with this name."""
        return next((one for one in self.interfaces if one.name == name), None)

    def names_of(self, address: str) -> tuple[str, ...]:
        """The interfaces of a network card."""
        return tuple(one.name for one in self.interfaces if one.pci == address)

    def node_of(self, nic: Nic) -> int:
        """The node of a network card; where the firmware does not say, the first one."""
        return nic.node if nic.node in self.cpus.nodes else self.cpus.nodes[0]

    def digest(self) -> str:
        """What distinguishes the machine from others: processors, memory and cards. It is the same for a record of the
        machine, and does not change with settings.
        """
        parts = {
            "cpus": [(one.number, one.is_online, one.node, one.siblings) for one in self.cpus.cpus],
            "model": self.cpus.model,
            "memory_gib": [(one.number, round(one.memory_kib / KIB_PER_GIB)) for one in self.nodes],
            "nics": [(one.address, one.vendor, one.device) for one in self.nics if not one.physfn],
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


def read(tree: Tree) -> Facts:
    """Read everything. Changes nothing."""
    nics = read_nics(tree)
    return Facts(
        cpus=read_cpus(tree),
        nodes=read_nodes(tree),
        nics=nics,
        groups=read_groups(tree, nics),
        interfaces=read_interfaces(tree),
        irqs=read_irqs(tree),
        kernel=read_kernel(tree),
        boot=read_boot(tree),
        system=read_system(tree),
        network=read_network(tree),
    )
