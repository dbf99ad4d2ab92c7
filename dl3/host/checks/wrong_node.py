"""Isolated cores are on the node of the network cards."""

from collections.abc import Iterator

from dl3.host.facts.read import Facts
from dl3.host.finding import Finding, Severity
from dl3.host.isolation import worker_cpus
from dl3.host.management import cards


def check(facts: Facts) -> Iterator[Finding]:
    """Each card that is not for management."""
    cpus, managed = worker_cpus(facts), cards(facts)
    nodes = {cpu.node for cpu in facts.cpus.online if cpu.number in cpus}
    for nic in facts.nics:
        is_free = nic.address not in managed and not nic.physfn
        if cpus and is_free and nic.node >= 0 and nic.node not in nodes:
            yield Finding(
                check="wrong_node",
                severity=Severity.SPEED,
                what=f"network card {nic.address} is on node {nic.node}, which has no isolated CPU",
                why="each descriptor and each frame crosses the link between sockets",
                source="white paper §3.2.2 (cores of one node); DPDK, Linux guide: NUMA",
                remedy=f"isolate cores of node {nic.node}, or move the card to a slot of another node",
            )
