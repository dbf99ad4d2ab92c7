"""NetworkManager leaves the network cards of the forwarder alone."""

from collections.abc import Iterator

from dl3.host.facts.read import Facts
from dl3.host.finding import Finding, Severity
from dl3.host.management import cards
from dl3.host.tuning.names import UNMANAGED


def check(facts: Facts) -> Iterator[Finding]:
    """Interfaces of cards that are not for management."""
    if not facts.system.runs("NetworkManager"):
        return
    told = facts.system.own_file(UNMANAGED) or ""
    managed = cards(facts)
    free = [
        one.name
        for one in facts.interfaces
        if one.pci and one.pci not in managed and f"interface-name:{one.name}" not in told
    ]
    if free:
        yield Finding(
            check="network_manager",
            severity=Severity.SPEED,
            what=f"NetworkManager manages {', '.join(free)}",
            why="it configures interfaces that the forwarder takes, and resets the number of VFs when a connection ends",
            source="NetworkManager, settings-sriov; white paper appendix 2 (which switches NetworkManager off for all)",
            remedy="declare only these interfaces unmanaged, as 'dl3 host plan' does; the management interface keeps its manager",
        )
