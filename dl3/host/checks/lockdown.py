"""What a locked-down kernel refuses."""

from collections.abc import Iterator

from dl3.host.facts.read import Facts
from dl3.host.finding import Finding, Severity


def check(facts: Facts) -> Iterator[Finding]:
    """Secure boot switches it on."""
    if facts.kernel.lockdown in ("integrity", "confidentiality"):
        yield Finding(
            check="lockdown",
            severity=Severity.NOTE,
            what=f"the kernel is locked down ({facts.kernel.lockdown})",
            why="igb_uio, uio_pci_generic and VFIO without an IOMMU are refused; only vfio-pci with an IOMMU works",
            source="kernel_lockdown(7); pf-bb-config#1",
            remedy="nothing, if the IOMMU is in use",
        )
