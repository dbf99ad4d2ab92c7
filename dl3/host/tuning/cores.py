"""The cores of workers: whole ones, near the network cards, never CPU 0, never the first core of a node."""

from dl3.host.cpulist import CpuSet
from dl3.host.facts.read import Facts
from dl3.host.tuning.request import Place
from dl3.model.fault import UsageFault
from dl3.model.noun import Noun


class NodeCores(Noun):
    """The cores of workers on one node. `workers` are their first threads: the others stay idle."""

    node: int
    isolated: CpuSet
    workers: CpuSet


def free_cores(facts: Facts, node: int) -> tuple[tuple[int, ...], ...]:
    """Cores of a node that workers may have; the first one stays with Linux."""
    return tuple(core for core in facts.cpus.cores_of(node)[1:] if 0 not in core)


def choose(facts: Facts, place: Place) -> NodeCores:
    """The first cores after that of Linux."""
    free = free_cores(facts, place.node)
    if place.n_cores > len(free):
        n_cores = len(facts.cpus.cores_of(place.node))
        raise UsageFault(
            f"node {place.node} has {n_cores} {'core' if n_cores == 1 else 'cores'}, of which workers may have {len(free)}: "
            f"{place.n_cores} were requested, and the first core of a node and that of CPU 0 stay with Linux"
        )
    cores = free[: place.n_cores]
    return NodeCores(
        node=place.node,
        isolated=frozenset(cpu for core in cores for cpu in core),
        workers=frozenset(core[0] for core in cores),
    )


def housekeeping(facts: Facts, isolated: frozenset[int]) -> frozenset[int]:
    """CPUs that stay with Linux."""
    return frozenset(cpu.number for cpu in facts.cpus.online) - isolated
