"""Each network card is alone in its IOMMU group."""

from collections.abc import Iterator

from dl3.host.facts.read import Facts
from dl3.host.finding import Finding, Severity
from dl3.host.management import cards


def check(facts: Facts) -> Iterator[Finding]:
    """Groups with more than one member."""
    managed = cards(facts)
    for group in facts.groups:
        free = [one for one in group.members if facts.nic(one) and one not in managed]
        others = [one for one in group.members if one not in free]
        if free and others:
            yield Finding(
                check="iommu_groups",
                severity=Severity.SPEED,
                what=f"{', '.join(free)} shares IOMMU group {group.name} with {', '.join(others)}",
                why="VFIO gives a group away as a whole: all its members need a driver of VFIO, or none",
                source="Linux, vfio; ndn-dpdk#63",
                remedy="move the card to a slot with a root port of its own, or enable ACS in the BIOS",
            )
