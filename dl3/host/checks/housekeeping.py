"""Linux keeps a core of its own on each node."""

from collections.abc import Iterator

from dl3.host.facts.read import Facts
from dl3.host.finding import Finding, Severity


def check(facts: Facts) -> Iterator[Finding]:
    """CPU 0 and the first core of each node."""
    isolated = facts.cpus.isolated
    if 0 in isolated:
        yield Finding(
            check="housekeeping",
            severity=Severity.LOSS,
            what="CPU 0 is isolated",
            why="timekeeping, many interrupts and kernel threads stay on CPU 0 whatever is configured",
            source="DPDK, Linux guide: enable_func; Linux, timers/no_hz",
            remedy="isolate other cores; 'dl3 host plan' never takes CPU 0",
        )
    for node in facts.cpus.nodes:
        cores = facts.cpus.cores_of(node)
        if isolated and all(set(core) <= isolated for core in cores):
            yield Finding(
                check="housekeeping",
                severity=Severity.LOSS,
                what=f"all cores of node {node} are isolated",
                why="interrupts and kernel threads of the node's devices and memory then run on a remote node or on a worker's core",
                source="Red Hat, Network Functions Virtualization guide: first core of each node kept",
                remedy=f"leave the first core of node {node} to Linux",
            )
