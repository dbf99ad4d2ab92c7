"""irqbalance keeps to isolated CPUs by itself, unless a list of banned CPUs says otherwise."""

from collections.abc import Iterator

from dl3.host.facts.read import Facts
from dl3.host.finding import Finding, Severity


def check(facts: Facts) -> Iterator[Finding]:
    """Its options."""
    options = facts.system.irqbalance_options
    if facts.system.runs("irqbalance") and "IRQBALANCE_BANNED_CPU" in options:
        yield Finding(
            check="irqbalance_bans",
            severity=Severity.LOSS,
            what=f"/etc/default/irqbalance has {' '.join(options.split())}",
            why="with a list of its own irqbalance no longer bans isolated and nohz_full CPUs by itself",
            source="Irqbalance#90, #202, #356",
            remedy="remove IRQBALANCE_BANNED_CPUS and IRQBALANCE_BANNED_CPULIST: isolated CPUs are then banned automatically",
        )
