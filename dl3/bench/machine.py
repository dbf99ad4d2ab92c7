"""Reads the machine properties that campaigns depend on; the only place that does."""

import os
import platform
import re
from collections.abc import Iterable
from pathlib import Path
from shutil import which

from dl3.campaign.machine import Machine
from dl3.dut.beds import missing
from dl3.host.hugepages import available_pages
from dl3.model.campaign import DutSpec
from dl3.model.fault import Fault
from dl3.record.machine import cpu_model, numa_nodes, text_of

PCI = Path("/sys/bus/pci/devices")
PAGES_1G = Path("/sys/kernel/mm/hugepages/hugepages-1048576kB/free_hugepages")
VIRTIO = "0x1af4"
PAGE_MIB = 2


def nics() -> list[Path]:
    """Ports of physical NICs on the PCI bus, without a guest's virtio devices."""
    devices = [path for path in sorted(PCI.glob("*")) if text_of(path / "class").startswith("0x02")]
    return [path for path in devices if text_of(path / "vendor") != VIRTIO]


def virtual_functions() -> int:
    """Total number of virtual functions that the NICs support."""
    return sum(int(text_of(path / "sriov_totalvfs") or 0) for path in nics())


def host_os() -> str:
    """'Debian GNU/Linux 12 (bookworm), kernel 6.1.0'."""
    found = re.search(r'^PRETTY_NAME="?([^"\n]*)', text_of("/etc/os-release"), re.MULTILINE)
    return f"{found[1] if found else platform.system()}, kernel {platform.release()}"


def server() -> str:
    """Vendor and product name, or the kernel's architecture name."""
    names = [text_of(f"/sys/class/dmi/id/{name}") for name in ("sys_vendor", "product_name")]
    return " ".join(name for name in names if name) or f"{platform.machine()} machine"


def free_mib() -> int:
    """Memory available for huge pages, including free huge pages."""
    free = int(text_of("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages") or 0)
    return (available_pages(text_of("/proc/meminfo")) + free) * PAGE_MIB


def has_kvm() -> bool:
    """Whether guests can use KVM."""
    return os.access("/dev/kvm", os.R_OK | os.W_OK)


def reason_of(spec: DutSpec) -> str:
    """Why a device cannot be started here; '' if it can."""
    try:
        return missing(spec)
    except Fault as fault:
        return str(fault)


def read_machine(duts: Iterable[DutSpec]) -> Machine:
    """The current properties."""
    reasons = {dut.name: reason_of(dut) for dut in duts}
    return Machine(
        n_cores=len(os.sched_getaffinity(0)),
        n_numa_nodes=max(1, len(numa_nodes())),
        n_nics=len(nics()),
        n_virtual_functions=virtual_functions(),
        page_1g_free=int(text_of(PAGES_1G) or 0),
        available_mib=free_mib(),
        has_kvm=has_kvm(),
        has_vms=has_kvm() and which("qemu-system-x86_64") is not None,
        cpu_model=cpu_model(),
        server=server(),
        host_os=host_os(),
        missing={name: why for name, why in reasons.items() if why},
    )
