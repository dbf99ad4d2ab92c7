"""'dl3 show bridges', 'dl3 show macs' and 'dl3 show groups'."""

from typing import Annotated

import typer
from rich.console import Group, RenderableType

from dl3.cli.printing import counted, table
from dl3.cli.show import Interval, Json, Socket, Watch, look, look_command
from dl3.control.bridge_replies import Bridge, BridgePort, Bridges, BridgeVxlan, Groups, Macs, Member, Snooping, Storm
from dl3.control.client import DEFAULT_SOCKET, Client


def limits(storm: Storm) -> str | None:
    """'broadcast 1,000, unknown 500': the limits that there are."""
    found = [(name, getattr(storm, name)) for name in ("broadcast", "multicast", "unknown")]
    return ", ".join(f"{name} {limit:,}" for name, limit in found if limit is not None) or None


def vlans_of(one: Member | Bridge) -> list[str]:
    """'PVID 1', '4 VLANs'; empty: the bridge does not filter by VLAN."""
    if one.vlans is None:
        return []
    return [f"PVID {one.pvid}" if one.pvid else "no PVID", counted(one.vlans, "VLAN")]


def attributes(one: Member) -> list[str]:
    """What differs from the defaults."""
    words = [f"{name} off" for name in ("learning", "flood") if not getattr(one, name)]
    words += [f"{kind} off" for kind in ("broadcast", "multicast") if not getattr(one, f"{kind}_flood")]
    return [*words, *(["isolated"] if one.isolated else [])]


def port_row(bridge: Bridge, port: BridgePort) -> tuple[object, ...]:
    """A port of a bridge."""
    words = [*attributes(port), *(["hairpin"] if port.hairpin else [])]
    if port.storm and (own := limits(port.storm)):
        words.append(f"at most {own} frames/s")
    words += vlans_of(port)
    link = "up" if port.link_up else "down"
    return (bridge.name, port.port, link, port.learnt_macs, port.max_macs, ", ".join(words) or None)


def vxlan_row(bridge: Bridge, vxlan: BridgeVxlan) -> tuple[object, ...]:
    """A VXLAN device of a bridge."""
    words = [*attributes(vxlan), *([] if vxlan.learning_remotes else ["learns no remote ends"]), *vlans_of(vxlan)]
    vni = None if vxlan.vni is None else str(vxlan.vni)
    return (bridge.name, vxlan.device, vni, vxlan.flood_remotes, vxlan.learnt_macs, ", ".join(words) or None)


def snooping(how: Snooping | None) -> str | None:
    """'4 groups, querier of IPv4': how workers forward to groups."""
    if how is None:
        return None
    families = [name for name, has in (("IPv4", how.ip4_querier), ("IPv6", how.ip6_querier)) if has]
    return f"{counted(how.groups, 'group')}, {'querier of ' + ' and '.join(families) if families else 'no querier'}"


def bridge_row(bridge: Bridge) -> tuple[object, ...]:
    """A bridge without its ports."""
    macs = (bridge.static_macs, bridge.learnt_macs, bridge.max_macs)
    events = (bridge.moved, bridge.aged, bridge.held, bridge.refused, bridge.evicted)
    more = (", ".join(vlans_of(bridge)) or None, snooping(bridge.snooping), limits(bridge.storm))
    return (bridge.name, f"{bridge.ageing_s} s", *macs, *events, *more)


@look_command(Bridges, "bridges")
def bridges(reply: Bridges) -> RenderableType:
    """Bridges: ports, attributes, MAC addresses, limits, storm control.

    Example: dl3 show bridges
    """
    if not reply.bridges:
        return "There are no bridges."
    columns = ("bridge", ">ageing", ">static", ">learnt", ">at most")
    events = (">moved", ">aged", ">held", ">refused", ">evicted")
    more = ("~own VLANs", "~snooping", "~storm control, frames/s")
    parts: list[RenderableType] = [
        table("", (*columns, *events, *more), [bridge_row(bridge) for bridge in reply.bridges])
    ]
    ports = [port_row(bridge, port) for bridge in reply.bridges for port in bridge.ports]
    if ports:
        parts += ["", table("", ("bridge", "port", "link", ">learnt", ">at most", "~attributes"), ports)]
    vxlans = [vxlan_row(bridge, vxlan) for bridge in reply.bridges for vxlan in bridge.vxlans]
    if vxlans:
        parts += ["", table("", ("bridge", "VXLAN", ">VNI", ">flooded to", ">learnt", "~attributes"), vxlans)]
    if reply.guarded is not None:
        guarded = f"Frames that workers flooded and the guard kept Linux from flooding as well: {reply.guarded:,}"
        parts += ["", guarded]
    return Group(*parts)


def draw_macs(reply: Macs) -> RenderableType:
    """A page of addresses."""
    rows = [
        (
            one.mac,
            one.bridge,
            None if one.vlan is None else str(one.vlan),
            one.port,
            one.kind,
            None if one.idle_s is None else f"{one.idle_s} s",
        )
        for one in reply.macs
    ]
    page = table("", ("MAC", "bridge", ">VLAN", "port", "kind", ">idle"), rows)
    return Group(page, f"More: --after {reply.next}") if reply.next is not None else page


def macs(
    bridge: Annotated[str | None, typer.Option(metavar="NAME", help="Only those of this bridge.")] = None,
    port: Annotated[str | None, typer.Option(metavar="NAME", help="Only those behind this port.")] = None,
    after: Annotated[int | None, typer.Option(min=0, metavar="N", help="Where the last page ended.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=5000, metavar="N", help="Maximum number of rows.")] = 100,
    socket: Socket = DEFAULT_SOCKET,
    again: Watch = False,
    interval: Interval = 1.0,
    as_json: Json = False,
) -> None:
    """MAC addresses of bridges, one page at a time; "held" ones move too often.

    Example: dl3 show macs --bridge br0 --port left
    """
    client, page = Client(socket), {"bridge": bridge, "port": port, "after": after, "limit": limit}
    given = {key: value for key, value in page.items() if value is not None}
    look(lambda: client.ask(Macs, "macs", **given), draw_macs, again, interval, as_json)


def draw_groups(reply: Groups) -> RenderableType:
    """A page of groups."""
    rows = [
        (
            one.group,
            one.bridge,
            None if one.vlan is None else str(one.vlan),
            ", ".join((*one.ports, *(["Linux"] if one.linux else []))) or None,
        )
        for one in reply.groups
    ]
    page = table("", ("group", "bridge", ">VLAN", "~goes to"), rows)
    return Group(page, f"More: --after {reply.next}") if reply.next is not None else page


def groups(
    bridge: Annotated[str | None, typer.Option(metavar="NAME", help="Only those of this bridge.")] = None,
    after: Annotated[int | None, typer.Option(min=0, metavar="N", help="Where the last page ended.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=5000, metavar="N", help="Maximum number of rows.")] = 100,
    socket: Socket = DEFAULT_SOCKET,
    again: Watch = False,
    interval: Interval = 1.0,
    as_json: Json = False,
) -> None:
    """Groups of Linux's bridges that snoop, and where workers send frames to them; one page at a time.

    Example: dl3 show groups --bridge br0
    """
    client, page = Client(socket), {"bridge": bridge, "after": after, "limit": limit}
    given = {key: value for key, value in page.items() if value is not None}
    look(lambda: client.ask(Groups, "groups", **given), draw_groups, again, interval, as_json)
