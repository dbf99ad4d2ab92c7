"""The management set: the interfaces and network cards through which the machine is reached. Nothing of it is changed.

It begins with the devices of all default routes (all tables, both families) and of the routes to the peers of remote
sessions, and includes everything below: members of bonds, bridges and VRFs, devices of VLANs, the PF of a VF, and all
functions in the same IOMMU group.
"""

from ipaddress import ip_address, ip_network

from dl3.host.facts.network import Route, Session
from dl3.host.facts.read import Facts
from dl3.model.fault import UsageFault

UNREADABLE = "the routes of this machine cannot be read, so any interface may be the one that it is managed through"
WITHOUT_INTERFACE = (None, "vfio-pci", "uio_pci_generic", "igb_uio", "pci-stub")  # drivers
Reasons = dict[str, str]


def name_of_default(route: Route) -> str:
    """'the IPv4 default route, table main'."""
    return f"the IPv{route.family} default route, table {route.table}"


def best_in_each_table(routes: tuple[Route, ...], address: str) -> list[Route]:
    """The longest matching routes of each table: which of them Linux uses depends on rules and metrics."""
    one, best = ip_address(address), dict[str, list[tuple[int, Route]]]()
    for route in routes:
        network = ip_network(route.destination)
        if one in network:
            best.setdefault(route.table, []).append((network.prefixlen, route))
    longest = {table: max(length for length, _ in found) for table, found in best.items()}
    return [route for table, found in best.items() for length, route in found if length == longest[table]]


def session_devices(routes: tuple[Route, ...], session: Session) -> Reasons:
    """Interfaces of the routes to a session's peer, and of its local address."""
    kind = (
        "an ssh"
        if session.what == "ssh"
        else f"a {session.what}"
        if session.what.startswith("'")
        else f"an {session.what}"
    )
    if session.device:
        return {session.device: f"the link-local peer of {kind} session"}
    found: Reasons = {}
    for end, what in ((session.peer, "peer"), (session.local, "local address")):
        for route in best_in_each_table(routes, end) if end else ():
            reason = f"the route to the {what} of {kind} session, table {route.table}"
            found |= {device: reason for device in route.devices if device not in found}
    return found


def interfaces(facts: Facts) -> Reasons:
    """The interfaces of the management set, each with the reason. Pure."""
    if facts.network.routes is None:
        return {one.name: UNREADABLE for one in facts.interfaces}
    found: Reasons = {}
    for route in facts.network.routes:
        if ip_network(route.destination).prefixlen == 0 and not route.is_local:
            found |= {device: f"it has {name_of_default(route)}" for device in route.devices if device not in found}
    for session in (one for one in facts.network.sessions if one.is_here):
        devices = session_devices(facts.network.routes, session)
        found |= {device: f"it has {reason}" for device, reason in devices.items() if device not in found}
    todo = [*found]
    while todo:
        upper = todo.pop()
        one = facts.interface(upper)
        for lower in one.lower if one else ():
            if lower not in found:
                root = found[upper].removeprefix("it has ")
                found[lower] = root if root.startswith("it is below") else f"it is below {upper}, which has {root}"
                todo.append(lower)
    return found


def cards_elsewhere(facts: Facts) -> Reasons:
    """Cards whose interface is in another network namespace, if sessions come from there."""
    if all(session.is_here for session in facts.network.sessions):
        return {}
    why = "its interface is in another network namespace, in which there is a remote session"
    held = (nic for nic in facts.nics if nic.driver not in WITHOUT_INTERFACE and not facts.names_of(nic.address))
    return {nic.address: why for nic in held}


def cards(facts: Facts) -> Reasons:
    """The PCI functions of the management set, each with the reason. Pure."""
    reasons, found = interfaces(facts), cards_elsewhere(facts)
    for one in facts.interfaces:
        if one.pci and one.name in reasons:
            found.setdefault(one.pci, f"{one.name}: {reasons[one.name]}")
    todo = [*found]
    while todo:
        address = todo.pop()
        nic = facts.nic(address)
        near = {nic.physfn: f"it is the PF of the VF {address}"} if nic and nic.physfn else {}
        for group in facts.groups:
            if address in group.members:
                same = f"it is in IOMMU group {group.name} with {address}"
                near |= {member: same for member in group.members if facts.nic(member) and member not in near}
        for other, why in near.items():
            if other not in found:
                found[other] = f"{why} ({found[address]})"
                todo.append(other)
    return found


def refuse_management(facts: Facts, address: str, what: str) -> None:
    """UsageFault if a network card belongs to the management set. There is no option to override it."""
    reason = cards(facts).get(address)
    if reason:
        raise UsageFault(
            f"{what} {address} is refused: this machine is managed through it ({reason}); use another card, or move the "
            "management to another one first"
        )
