"""VFs of a network card as a plan of their own. Pure."""

from dl3.host.facts.devices import Nic
from dl3.host.facts.read import Facts
from dl3.host.management import cards, refuse_management
from dl3.host.tuning.plan import Tuning
from dl3.host.tuning.request import Request
from dl3.host.tuning.step import VFIO, VfSettings, VfStep
from dl3.model.fault import UsageFault

SOURCE = "white paper cases 2.1 to 2.7; Linux, PCI/pci-iov-howto; sriov-cni#114, #1019"


def use_of(facts: Facts, vf: Nic) -> str | None:
    """Why a VF must not vanish; None if nothing is known."""
    managed = cards(facts)
    if vf.address in managed:
        return f"this machine is managed through it ({managed[vf.address]})"
    names = facts.names_of(vf.address)
    up = [name for name in names if (one := facts.interface(name)) and (one.is_up or one.master)]
    if up:
        return f"its interface {up[0]} is up or part of another one"
    if vf.driver == VFIO:
        return f"it has the driver {VFIO}, so that a guest or another program may use it"
    return "its interface is in another network namespace" if vf.driver and not names else None


def refuse_existing(facts: Facts, pf: Nic) -> None:
    """The kernel changes the number of VFs only from and to 0, and all of them vanish with that."""
    if not pf.vfs:
        return
    for vf in (one for one in facts.nics if one.physfn == pf.address):
        use = use_of(facts, vf)
        if use:
            raise UsageFault(f"the VF {vf.address} of {pf.address} is in use: {use}; nothing is planned")
    said = "1 VF" if pf.vfs == 1 else f"{pf.vfs} VFs"
    raise UsageFault(
        f"{pf.address} has {said} already, and a new number removes them with their settings: remove them first, by "
        "'dl3 host undo' if a plan made them, or by writing 0 to its sriov_numvfs"
    )


def pf_of(facts: Facts, address: str, n: int) -> Nic:
    """The card, if it can have these VFs."""
    pf = facts.nic(address)
    if not pf:
        known = ", ".join(one.address for one in facts.nics if not one.physfn) or "none"
        raise UsageFault(f"{address} is no network card of this machine: its cards are {known}")
    refuse_management(facts, address, "making VFs of")
    if pf.physfn:
        raise UsageFault(f"{address} is a VF itself: its card is {pf.physfn}")
    if not pf.vfs_total:
        raise UsageFault(f"{address} has no SR-IOV: it lacks it, or the BIOS or its firmware has switched it off")
    if n > pf.vfs_total:
        raise UsageFault(f"{address} has at most {pf.vfs_total} VFs: {n} were requested")
    refuse_existing(facts, pf)
    return pf


def remarks_of(facts: Facts, pf: Nic, binds: bool) -> list[str]:
    """What the VFs still need."""
    found = ["VFs are gone after a boot: make and apply the plan again then"]
    up = [one for name in facts.names_of(pf.address) if (one := facts.interface(name)) and one.is_up]
    if not up:
        found.append(f"VFs pass no frames while {pf.address} is down: set it up with 'ip link set dev NAME up'")
    if binds and not facts.system.has_iommu:
        found.append(f"the VFs are not bound to {VFIO}: Linux uses no IOMMU")
    return found


def plan_vfs(facts: Facts, address: str, settings: tuple[VfSettings, ...], binds: bool) -> Tuning:
    """As many VFs as there are settings."""
    pf = pf_of(facts, address, len(settings))
    if any(one != VfSettings() for one in settings) and not facts.names_of(address):
        raise UsageFault(
            f"{address} has no interface of Linux, by which its VFs are configured: leave out --mac, --vlan, --spoofchk and "
            "--trust, or give it to its own driver"
        )
    step = VfStep(
        address=address,
        before=0,
        after=len(settings),
        autoprobe=pf.autoprobe,
        settings=settings,
        driver="vfio-pci" if binds and facts.system.has_iommu else "",
        why="virtual functions for guests or for dl3d",
        source=SOURCE,
    )
    return Tuning(
        facts_digest=facts.digest(),
        request=Request(),
        cores=(),
        memory_mib={},
        parameters=(),
        steps=(step,),
        remarks=tuple(remarks_of(facts, pf, binds)),
    )
