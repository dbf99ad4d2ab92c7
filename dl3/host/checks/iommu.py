"""The IOMMU is in use, so that network cards can be given to a program safely."""

from collections.abc import Iterator

from dl3.host.facts.read import Facts
from dl3.host.finding import Finding, Severity
from dl3.host.management import cards

NOIOMMU = "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode"


def check(facts: Facts) -> Iterator[Finding]:
    """Needed as soon as there is a card for the forwarder."""
    free = [nic for nic in facts.nics if nic.address not in cards(facts)]
    if facts.system.setting(NOIOMMU) == "Y":
        yield Finding(
            check="iommu",
            severity=Severity.NOTE,
            what="VFIO runs without an IOMMU (enable_unsafe_noiommu_mode)",
            why="the network card can write to all memory, and the kernel is tainted; dl3d also needs CAP_SYS_RAWIO",
            source="Linux, vfio; sriov-network-device-plugin#272",
            remedy="enable the IOMMU where there is one",
        )
    elif free and not facts.system.has_iommu:
        virtual = "give the virtual machine an IOMMU, or use net_af_packet, net_af_xdp or virtio-user"
        yield Finding(
            check="iommu",
            severity=Severity.BLOCKER,
            what="Linux uses no IOMMU",
            why="vfio-pci does not give a network card to a program without one",
            source="white paper appendix 7; DPDK, Linux guide: linux_drivers",
            remedy=virtual
            if facts.cpus.is_virtual
            else "enable VT-d or AMD-Vi in the BIOS and boot with intel_iommu=on iommu=pt",
        )
