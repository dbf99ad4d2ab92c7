"""Make VFs, wait for them, configure and bind them; and remove them again."""

import time
from collections.abc import Iterator
from pathlib import PurePosixPath

from dl3.host.change.cards import bind, load_module
from dl3.host.change.root import Root
from dl3.host.facts.devices import PCI
from dl3.host.tree import last_part, number
from dl3.host.tuning.step import VfSettings, VfStep
from dl3.model.fault import Fault

WAIT_S = 10.0
LOOK_S = 0.05
ON_OFF = {True: "on", False: "off"}


def vf_address(root: Root, pf: str, n: int) -> str | None:
    """The PCI address of a VF."""
    return last_part(root.tree.link(f"{PCI}/{pf}/virtfn{n}"))


def wait_for(root: Root, step: VfStep) -> tuple[str, ...]:
    """The addresses of all VFs, as soon as the kernel has made them."""
    end = time.monotonic() + WAIT_S
    while True:
        found = [address for n in range(step.after) if (address := vf_address(root, step.address, n))]
        if len(found) == step.after and all(root.tree.has(f"{PCI}/{one}") for one in found):
            return tuple(found)
        if time.monotonic() > end:
            raise Fault(
                f"{step.address} made {len(found)} of {step.after} VFs in {WAIT_S:.0f} s: the kernel's log says why (dmesg)"
            )
        time.sleep(LOOK_S)


def interface_of(root: Root, pf: str) -> str:
    """The interface of a card."""
    names = root.tree.names(f"{PCI}/{pf}/net")
    if not names:
        raise Fault(f"{pf} has no interface any more, by which its VFs are configured")
    return names[0]


def options_of(values: VfSettings) -> Iterator[tuple[str, str]]:
    """Words of 'ip link set dev PF vf N'."""
    if values.mac:
        yield "mac", values.mac
    if values.vlan is not None:
        yield "vlan", str(values.vlan)
    if values.spoofchk is not None:
        yield "spoofchk", ON_OFF[values.spoofchk]
    if values.trust is not None:
        yield "trust", ON_OFF[values.trust]


def configure(root: Root, step: VfStep) -> None:
    """MAC, VLAN and the rest of each VF, over netlink; one after the other, as not all drivers take several."""
    for n, values in enumerate(step.settings):
        for name, value in options_of(values):
            device = interface_of(root, step.address)
            root.run(("ip", "link", "set", "dev", device, "vf", str(n), name, value))


def set_autoprobe(root: Root, step: VfStep, is_on: bool) -> None:
    """Whether drivers of Linux take VFs as soon as they appear."""
    if step.autoprobe is not None:
        root.poke(f"{PCI}/{step.address}/sriov_drivers_autoprobe", str(int(is_on)))


def make_vfs(root: Root, step: VfStep) -> None:
    """Drivers come last, so that they find the MAC address that is wanted."""
    set_autoprobe(root, step, is_on=False)
    root.poke(f"{PCI}/{step.address}/sriov_numvfs", str(step.after))
    addresses = wait_for(root, step)
    configure(root, step)
    if step.driver:
        load_module(root, step.driver)
        for address in addresses:
            bind(root, address, step.driver, step.driver)
    elif step.autoprobe:
        for address in addresses:
            root.poke("/sys/bus/pci/drivers_probe", address)
    set_autoprobe(root, step, is_on=bool(step.autoprobe))


def holder_of(root: Root, group: str) -> str | None:
    """A process that has an IOMMU group open: the kernel would wait for it."""
    for name in root.tree.names("/proc"):
        if name.isdigit():
            targets = (root.tree.link(f"/proc/{name}/fd/{fd}") for fd in root.tree.names(f"/proc/{name}/fd"))
            if f"/dev/vfio/{group}" in targets:
                comm = (root.read(f"/proc/{name}/comm") or b"?").decode(errors="replace").strip()
                return f"{comm} (pid {name})"
    return None


def refuse_held(root: Root, step: VfStep) -> None:
    """Fault if a program uses one of the VFs."""
    for n in range(step.after):
        address = vf_address(root, step.address, n)
        group = PurePosixPath(root.tree.link(f"{PCI}/{address}/iommu_group") or "").name if address else ""
        holder = holder_of(root, group) if group else None
        if holder:
            raise Fault(f"the VF {address} is in use by {holder}: end it first")


def remove_vfs(root: Root, step: VfStep) -> None:
    """All of them; their settings go with them."""
    refuse_held(root, step)
    if number(root.tree, f"{PCI}/{step.address}/sriov_numvfs") != step.before:
        root.poke(f"{PCI}/{step.address}/sriov_numvfs", str(step.before))
    set_autoprobe(root, step, is_on=bool(step.autoprobe))
