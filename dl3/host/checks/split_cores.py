"""All threads of a core are isolated, or none."""

from collections.abc import Iterator

from dl3.host.facts.read import Facts
from dl3.host.finding import Finding, Severity
from dl3.host.isolation import named, worker_cpus


def check(facts: Facts) -> Iterator[Finding]:
    """Siblings of isolated CPUs."""
    cpus = worker_cpus(facts)
    split = facts.cpus.siblings_of(cpus) - cpus
    if cpus and split:
        yield Finding(
            check="split_cores",
            severity=Severity.LOSS,
            what=f"the core of an isolated CPU also has {named(split)}, not isolated",
            why="threads of one core share its execution units and caches: other programs there take up to half the speed of "
            "the worker",
            source="white paper §3.2.2 (its list 16-23,40-47 has whole cores); intel-cmt-cat#219",
            remedy="isolate whole cores with all their threads; 'dl3 host plan' does",
        )
