"""Workers have cores of their own."""

from collections.abc import Iterator

from dl3.host.facts.read import Facts
from dl3.host.finding import Finding, Severity

LEAST_CORES = 2


def check(facts: Facts) -> Iterator[Finding]:
    """Whether any core is isolated."""
    n_cores = sum(len(facts.cpus.cores_of(node)) for node in facts.cpus.nodes)
    if n_cores < LEAST_CORES:
        yield Finding(
            check="no_isolation",
            severity=Severity.LOSS,
            what="this machine has one core",
            why="Linux and a worker share it, and frames are lost whenever Linux runs",
            source="white paper §3.2.2",
            remedy="use a machine with at least two cores; isolation needs one for Linux on each node",
        )
    elif not facts.cpus.isolated:
        yield Finding(
            check="no_isolation",
            severity=Severity.LOSS,
            what="no CPU is isolated",
            why="any thread may run on the core of a worker; at 14.88 Mpps (10 Gbit/s, frames of 64 bytes) a ring of 2,048 "
            "descriptors is full after 138 us",
            source="white paper §3.2.1 and §3.2.2; Red Hat, tuned profile cpu-partitioning (which sets no isolcpus= itself)",
            remedy="'dl3 host plan' chooses the cores and prints the kernel parameters",
        )
