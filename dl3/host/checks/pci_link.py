"""Network cards run at the speed and width that they and their slot support."""

from collections.abc import Iterator

from dl3.host.facts.read import Facts
from dl3.host.finding import Finding, Severity


def check(facts: Facts) -> Iterator[Finding]:
    """PCI Express links."""
    for nic in facts.nics:
        is_slow = nic.link_speed and nic.link_speed_max and nic.link_speed != nic.link_speed_max
        is_narrow = nic.link_width and nic.link_width_max and nic.link_width < nic.link_width_max
        if not nic.physfn and (is_slow or is_narrow):
            yield Finding(
                check="pci_link",
                severity=Severity.SPEED,
                what=f"{nic.address} runs at {nic.link_speed} x{nic.link_width} and supports {nic.link_speed_max} "
                f"x{nic.link_width_max}",
                why="the slot may carry less than the ports of the card: 10 Gbit/s of small frames need about 14 Gbit/s of PCIe",
                source="Intel, Performance Tuning for DPDK",
                remedy="move the card to a wider or faster slot, or check the BIOS setting of the slot",
            )
