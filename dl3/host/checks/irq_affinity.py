"""No interrupt of a device is handled on the core of a worker."""

from collections.abc import Iterator

from dl3.host.facts.read import Facts
from dl3.host.finding import Finding, Severity
from dl3.host.isolation import named, worker_cpus

N_NAMED = 4


def check(facts: Facts) -> Iterator[Finding]:
    """Effective affinities, and what was counted: what the kernel does, not what was written."""
    cpus = worker_cpus(facts)
    found = [irq for irq in facts.irqs if irq.disturbs(cpus)]
    if found:
        names = ", ".join(f"{irq.number} ({irq.actions})" for irq in found[:N_NAMED])
        more = f" and {len(found) - N_NAMED} more" if len(found) > N_NAMED else ""
        where = frozenset[int]().union(*(irq.effective & cpus for irq in found))
        yield Finding(
            check="irq_affinity",
            severity=Severity.LOSS,
            what=f"interrupts {names}{more} are handled on isolated {named(where)}",
            why="each interrupt stops the worker for some microseconds, and its softirqs for longer",
            source="white paper appendices 6 and 9 (their mask 2 is CPU 1, on every node)",
            remedy="boot with irqaffinity= and isolcpus=managed_irq,domain,... of 'dl3 host plan'; do not use 'killall irqbalance', "
            "which lasts until the next boot only",
        )
