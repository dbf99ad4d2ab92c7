"""A virtual machine on cores and memory of the nodes of its network cards, as a value. Pure."""

from typing import Literal

from pydantic import Field

from dl3.host.cpulist import CpuSet
from dl3.host.facts.memory import Node
from dl3.host.facts.read import Facts
from dl3.host.management import refuse_management
from dl3.host.tuning.cores import choose, housekeeping
from dl3.host.tuning.request import Request, places
from dl3.host.tuning.step import VFIO
from dl3.model.fault import UsageFault
from dl3.model.noun import Noun

PAGES_KIB = {"4K": 4, "2M": 2048, "1G": 1 << 20}
NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}"  # of a guest; goes into arguments, XML and paths
DISK = r"/[^,\x00-\x1f]+"


class GuestRequest(Noun):
    """What is asked of a guest. `nics`: PFs or VFs that it gets as a whole."""

    name: str = Field(default="guest", pattern=f"^{NAME}$")
    nics: tuple[str, ...] = ()
    nodes: tuple[int, ...] = ()
    n_cores: int = 2  # on each node
    memory_mib: int = 4096  # on each node
    page: Literal["4K", "2M", "1G"] = "1G"
    disk: str | None = Field(default=None, pattern=f"^{DISK}$")
    is_emulated: bool = False  # without KVM: for the mechanism, rates say nothing


class GuestNode(Noun):
    """A NUMA node of the guest, on a node of the host. `cpus`: of the host, one for each vCPU in order."""

    host_node: int
    cpus: tuple[int, ...]
    memory_mib: int


class Guest(Noun):
    """A guest. `others`: CPUs of the host for the threads of QEMU that are no vCPU. `remarks`: what it still needs."""

    name: str
    nodes: tuple[GuestNode, ...]
    page: Literal["4K", "2M", "1G"]
    nics: tuple[str, ...]
    others: CpuSet
    disk: str | None
    is_emulated: bool
    remarks: tuple[str, ...] = ()

    @property
    def cpus(self) -> tuple[int, ...]:
        """The CPU of the host for each vCPU."""
        return tuple(cpu for node in self.nodes for cpu in node.cpus)

    @property
    def memory_mib(self) -> int:
        """On all nodes."""
        return sum(node.memory_mib for node in self.nodes)

    @property
    def page_kib(self) -> int:
        """Size of a page of its memory."""
        return PAGES_KIB[self.page]


def page_remarks(facts: Facts, request: GuestRequest, node: int) -> list[str]:
    """Too few huge pages on a node."""
    kib = PAGES_KIB[request.page]
    if request.page == "4K":
        return ["memory in pages of 4 KiB: more TLB misses in the guest"]
    pages = next((one.pages_of(kib) for one in facts.nodes if one.number == node), None)
    needed, free = -(-request.memory_mib * 1024 // kib), pages.free if pages else 0
    if free >= needed:
        return []
    return [
        f"node {node} has {free:,} free huge pages of {request.page}, and the guest needs {needed:,}: it will not start"
    ]


def card_remarks(facts: Facts, address: str) -> list[str]:
    """What keeps a card from the guest."""
    nic, found = facts.nic(address), list[str]()
    if nic and nic.driver != VFIO:
        found.append(
            f"{address} has the driver {nic.driver or 'none'}: bind it to {VFIO} first, see 'dl3 host plan --bind'"
        )
    if not facts.system.has_iommu:
        found.append("Linux uses no IOMMU: no card can be given to a guest")
    return found


def check_memory(request: GuestRequest, nodes: tuple[Node, ...]) -> None:
    """UsageFault if the memory does not divide into pages, or a node has less."""
    kib = PAGES_KIB[request.page]
    if request.memory_mib * 1024 % kib:
        raise UsageFault(f"{request.memory_mib:,} MiB are no whole number of pages of {request.page}: round it up")
    for node in nodes:
        if request.memory_mib * 1024 > node.memory_kib:
            raise UsageFault(
                f"node {node.number} has {node.memory_kib // 1024:,} MiB of memory, and the guest asks for "
                f"{request.memory_mib:,} on it: ask for less"
            )


def guest_of(facts: Facts, request: GuestRequest) -> Guest:
    """The guest for a request: vCPUs on the first threads of whole cores, as workers are placed."""
    for address in request.nics:
        refuse_management(facts, address, "giving a guest")
    found = places(facts, Request(nics=request.nics, nodes=request.nodes, n_cores=request.n_cores))
    check_memory(request, tuple(node for node in facts.nodes if node.number in {one.node for one in found}))
    chosen = tuple(choose(facts, one) for one in found)
    isolated = frozenset(cpu for one in chosen for cpu in one.isolated)
    remarks = [remark for one in found for remark in page_remarks(facts, request, one.node)]
    remarks += [remark for address in request.nics for remark in card_remarks(facts, address)]
    if not isolated <= facts.cpus.isolated:
        remarks.append("the cores of the vCPUs are not isolated: see 'dl3 host plan'")
    if request.is_emulated:
        remarks.append("without KVM every instruction is emulated: for the mechanism, no figure")
    nodes = (
        GuestNode(host_node=one.node, cpus=tuple(sorted(one.workers)), memory_mib=request.memory_mib) for one in chosen
    )
    return Guest(
        name=request.name,
        nodes=tuple(nodes),
        page=request.page,
        nics=request.nics,
        others=housekeeping(facts, isolated),
        disk=request.disk,
        is_emulated=request.is_emulated,
        remarks=tuple(dict.fromkeys(remarks)),
    )
