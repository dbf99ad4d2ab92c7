"""Which CPUs are set aside for workers: what the command line asks for, and what the kernel did."""

from dl3.host.cores import listed
from dl3.host.cpulist import cpus_of
from dl3.host.facts.read import Facts

KEYS = ("isolcpus", "nohz_full", "rcu_nocbs")


def asked(facts: Facts, key: str) -> frozenset[int] | None:
    """The CPUs of a parameter of the running kernel; None if it has none, or one that the kernel does not understand."""
    value = facts.kernel.value(key)
    return cpus_of(value, facts.cpus.last) if value else None


def worker_cpus(facts: Facts) -> frozenset[int]:
    """CPUs that are isolated now."""
    return facts.cpus.isolated or facts.cpus.nohz_full or frozenset()


def named(cpus: frozenset[int] | None) -> str:
    """'CPUs 2-5', 'CPU 2', 'no CPU'."""
    if not cpus:
        return "no CPU"
    return f"CPU{'s' if len(cpus) > 1 else ''} {listed(cpus)}"
