"""'dl3 show bridges', 'dl3 show macs' and 'dl3 show groups'."""

from typing import Annotated

import typer
from rich.console import Group, RenderableType

from dl3.cli.printing import counted, table
from dl3.cli.show import Interval, Json, Socket, Watch, look, look_command
from dl3.control.bridge_replies import Bridge, BridgePort, Bridges, Groups, Macs, Snooping, Storm
from dl3.control.client import DEFAULT_SOCKET, Client


def limits(storm: Storm) -> str | None:
    """'broadcast 1,000, unknown 500': the limits that there are."""
    found = [(name, getattr(storm, name)) for name in ("broadcast", "multicast", "unknown")]
    return ", ".join(f"{name} {limit:,}" for name, limit in found if limit is not None) or None


def attributes(port: BridgePort) -> str | None:
    """What differs from the defaults."""
    words = [f"{name} off" for name in ("learning", "flood") if not getattr(port, name)]
    words += [f"{kind} off" for kind in ("broadcast", "multicast") if not getattr(port, f"{kind}_flood")]
    words += [name for name in ("isolated", "hairpin") if getattr(port, name)]
    if port.storm and (own := limits(port.storm)):
        words.append(f"at most {own} frames/s")
    if port.vlans is not None:
        words += [f"PVID {port.pvid}" if port.pvid else "no PVID", counted(port.vlans, "VLAN")]
    return ", ".join(words) or None


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
    return (bridge.name, f"{bridge.ageing_s} s", *macs, *events, snooping(bridge.snooping), limits(bridge.storm))


@look_command(Bridges, "bridges")
def bridges(reply: Bridges) -> RenderableType:
    """Bridges: ports, attributes, MAC addresses, limits, storm control.

    Example: dl3 show bridges
    """
    if not reply.bridges:
        return "There are no bridges."
    columns = ("bridge", ">ageing", ">static", ">learnt", ">at most")
    events = (">moved", ">aged", ">held", ">refused", ">evicted", "~snooping", "~storm control, frames/s")
    first = table("", (*columns, *events), [bridge_row(bridge) for bridge in reply.bridges])
    rows = [
        (bridge.name, port.port, "up" if port.link_up else "down", port.learnt_macs, port.max_macs, attributes(port))
        for bridge in reply.bridges
        for port in bridge.ports
    ]
    second = table("", ("bridge", "port", "link", ">learnt", ">at most", "~attributes"), rows)
    if reply.guarded is None:
        return Group(first, "", second)
    guarded = f"Frames that workers flooded and the guard kept Linux from flooding as well: {reply.guarded:,}"
    return Group(first, "", second, "", guarded)


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
