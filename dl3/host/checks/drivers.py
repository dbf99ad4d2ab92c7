"""Network cards for the forwarder have a driver that DPDK can use."""

from collections.abc import Iterator

from dl3.host.facts.read import Facts
from dl3.host.finding import Finding, Severity
from dl3.host.management import cards

BIFURCATED = ("mlx4_core", "mlx5_core", "mana")  # DPDK works beside them
FOR_DPDK = ("vfio-pci", "igb_uio", "uio_pci_generic")


def check(facts: Facts) -> Iterator[Finding]:
    """The driver of each card that is not for management."""
    managed = cards(facts)
    free = [nic for nic in facts.nics if nic.address not in managed]
    if any(nic.driver in (*BIFURCATED, *FOR_DPDK) for nic in free):
        return
    if free:
        names = ", ".join(f"{nic.address} ({nic.driver or 'no driver'})" for nic in free)
        yield Finding(
            check="drivers",
            severity=Severity.SPEED,
            what=f"no network card has a driver for DPDK: {names}",
            why="with the driver of Linux only net_af_packet and net_af_xdp can use a card, at a fraction of the speed",
            source="white paper appendix 7; DPDK, Linux guide: linux_drivers",
            remedy="'dl3 host plan --nic ADDRESS' binds cards to vfio-pci by driver_override; do not write to new_id, as the white "
            "paper does: it takes every card of the same kind and fails the second time",
        )
