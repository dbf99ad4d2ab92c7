"""Machine properties that a campaign depends on, and the reasons why a case or a value cannot be measured."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from dl3.model.campaign import DutSpec, Need, Text
from dl3.model.flow_memory import table_mib
from dl3.model.noun import Noun

GENERATOR_MIB = 512  # huge page memory besides the DUT's
GIB_KIB = 1 << 20
BED_PORTS = 2


class Machine(Noun):
    """Read once when a campaign is planned."""

    n_cores: int
    n_numa_nodes: int = 1
    n_nics: int = 0  # ports of physical NICs
    n_virtual_functions: int = 0  # virtual functions that its NICs support
    page_1g_free: int = 0
    available_mib: int = 0  # memory available for huge pages
    has_kvm: bool = False
    has_vms: bool = False  # QEMU and KVM are available
    cpu_model: str = ""
    server: str = ""
    host_os: str = ""
    missing: dict[str, str] = Field(default_factory=dict)  # devices (by name) that cannot be started, with the reason


def sentence(en: str, zh: str) -> Text:
    """A reason in both languages."""
    return Text(en=f"not applicable here: {en}", zh=f"此处不适用：{zh}")


def nodes(machine: Machine) -> Text | None:
    """Check for two NUMA nodes."""
    n = machine.n_numa_nodes
    return (
        None
        if n >= 2
        else sentence(f"two NUMA nodes are needed, this machine has {n}", f"需要两个 NUMA 节点，本机有 {n} 个")
    )


def nic(machine: Machine) -> Text | None:
    """Check for a NIC with two ports."""
    n = machine.n_nics
    if n >= BED_PORTS:
        return None
    return sentence(
        f"a NIC with two ports is needed, this machine has {n or 'none'}", f"需要有两个端口的网卡，本机有 {n} 个"
    )


def sriov(machine: Machine) -> Text | None:
    """Check for virtual functions."""
    if machine.n_virtual_functions:
        return None
    return sentence("a NIC with SR-IOV is needed, this machine has none", "需要支持 SR-IOV 的网卡，本机没有")


def pages_1g(machine: Machine) -> Text | None:
    """Check for free huge pages of 1 GiB."""
    if machine.page_1g_free:
        return None
    return sentence(
        "huge pages of 1 GiB are needed, none is free: reserve some at boot (hugepagesz=1G hugepages=8)",
        "需要 1 GiB 大页，目前没有空闲的：请在启动时预留（hugepagesz=1G hugepages=8）",
    )


def vms(machine: Machine) -> Text | None:
    """Check for VMs that are fast enough to be measured."""
    if machine.has_vms:
        return None
    return sentence("ports of VMs need qemu and KVM, this machine lacks them", "虚拟机端口需要 qemu 和 KVM，本机不具备")


def kvm(machine: Machine) -> Text | None:
    """Check for KVM support of the processor."""
    return None if machine.has_kvm else sentence("KVM is needed, this machine has none", "需要 KVM，本机没有")


NEEDS = {
    "two NUMA nodes": nodes,
    "a NIC": nic,
    "SR-IOV": sriov,
    "huge pages of 1 GiB": pages_1g,
    "ports of VMs": vms,
    "KVM": kvm,
}


def lacks(machine: Machine, needs: Sequence[Need]) -> Text | None:
    """The first requirement that the machine does not meet."""
    return next((reason for need in needs if (reason := NEEDS[need](machine))), None)


def cores_lacking(machine: Machine, fields: Mapping[str, Any]) -> Text | None:
    """Check that there are enough cores for DUT and generator, and that the given ones exist."""
    named = {*fields.get("dut_cores", ()), *fields.get("generator_cores", ())}
    if named and max(named) >= machine.n_cores:
        return sentence(
            f"processor {max(named)} is needed, this machine has 0 to {machine.n_cores - 1}",
            f"需要 {max(named)} 号处理器核，本机只有 0 到 {machine.n_cores - 1} 号",
        )
    n_dut, n_generator = fields.get("cores", 1), len(fields.get("generator_cores", ())) or 1
    if n_dut + n_generator > machine.n_cores:
        return sentence(
            f"{n_dut} cores forward and {n_generator} generates, this machine has {machine.n_cores}",
            f"需要 {n_dut} 个转发核和 {n_generator} 个发生器核，本机只有 {machine.n_cores} 个",
        )
    return None


def table_of(fields: Mapping[str, Any], dut: DutSpec) -> int:
    """MiB of its flow table, 0 if it has none."""
    return table_mib(fields.get("flows", 1), fields.get("cores", 1)) if dut.has_flow_table else 0


def memory_lacking(machine: Machine, fields: Mapping[str, Any], dut: DutSpec) -> Text | None:
    """Check that there is enough memory for the huge pages of both programs, and for a flow table."""
    wanted, table = fields.get("memory_mib", 0), table_of(fields, dut)
    if fields.get("page_kib") == GIB_KIB:
        free = machine.page_1g_free
        if free * 1024 >= max(wanted, 1):
            return None
        return sentence(
            f"{-(-wanted // 1024)} huge pages of 1 GiB are needed, {free} are free",
            f"需要 {-(-wanted // 1024)} 个 1 GiB 大页，空闲 {free} 个",
        )
    if table and wanted + GENERATOR_MIB + table > machine.available_mib:
        return sentence(
            f"{table:,} MiB for a flow table and {wanted + GENERATOR_MIB:,} MiB of huge pages are needed, memory is left "
            f"for {machine.available_mib:,}",
            f"流表需要 {table:,} MiB，大页需要 {wanted + GENERATOR_MIB:,} MiB，内存只够 {machine.available_mib:,} MiB",
        )
    if wanted and wanted + GENERATOR_MIB > machine.available_mib:
        return sentence(
            f"{wanted + GENERATOR_MIB:,} MiB of huge pages are needed, memory is left for {machine.available_mib:,}",
            f"需要 {wanted + GENERATOR_MIB:,} MiB 大页，内存只够 {machine.available_mib:,} MiB",
        )
    return None


def values_lacking(machine: Machine, fields: Mapping[str, Any], dut: DutSpec) -> Text | None:
    """Why these values cannot be measured here with this device; None if they can."""
    if (n := fields.get("ports", BED_PORTS)) > BED_PORTS:
        return sentence(
            f"{n} ports are needed, but dl3gen and a device are connected by {BED_PORTS}",
            f"需要 {n} 个端口，dl3gen 与被测设备之间有 {BED_PORTS} 个",
        )
    if name := fields.get("unset"):
        return sentence(
            f"'{name}' is not set up by dl3: set it up by hand and measure it as an external device",
            f"dl3 不会自动设置“{name}”：请手工设置，并作为外部设备（external）测试",
        )
    if lcores := fields.get("apart"):
        return sentence(
            f"lcores {lcores} receive and forward on different cores, but dl3 only sets up "
            "devices that forward a packet on the core that received it",
            f"lcores {lcores} 把接收与转发分在不同的核上，而 dl3 设置的设备都在接收数据包的核上转发它",
        )
    return cores_lacking(machine, fields) or memory_lacking(machine, fields, dut)


def replaced(reason: Text, values: Mapping[str, str]) -> Text:
    """The reason, and what is measured in place of it."""
    return Text(
        en=f"{reason.en}; measured instead: {', '.join(f'{name} {value}' for name, value in values.items())}",
        zh=f"{reason.zh}；改为测量 {'、'.join(f'{name} {value}' for name, value in values.items())}",
    )


def dut_lacking(machine: Machine, dut: DutSpec) -> Text | None:
    """Why this device cannot be started here; None if it can."""
    why = machine.missing.get(dut.name)
    return sentence(why, why) if why else None
