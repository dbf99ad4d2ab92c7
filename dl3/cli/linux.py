"""The commands about Linux as control plane: TAP interfaces, punt classes, the kernel mirror, and verification."""

from typing import Annotated

import typer
from rich.console import Group, RenderableType

from dl3.cli.forwarder import Json
from dl3.cli.outlet import judging
from dl3.cli.printing import counted, err, out, print_json, table
from dl3.cli.show import Socket, look_command
from dl3.control.client import DEFAULT_SOCKET, Client
from dl3.control.linux import Interface, Mirror, PuntClass, Tap, Taps, Unsupported, Verification

VERIFY_SECONDS = 600.0  # it may have to compare millions of routes
DIFFERENT = 1


def tap_row(tap: Tap) -> tuple[object, ...]:
    """One TAP interface; one that is gone is listed by its port's name."""
    index = tap.ifindex or None
    name = tap.name or tap.port
    return (name, index, "up" if tap.carrier else "down", tap.adopted, tap.held, tap.punted, tap.injected)


@look_command(Taps, "taps")
def taps(reply: Taps) -> RenderableType:
    """TAP interfaces of the ports: namespace, name, index, carrier, packets to and from Linux.

    Example: dl3 show taps
    """
    whose = "owned by dl3d" if reply.namespace_is_own else "not owned by dl3d: its settings are not changed"
    stays = "kept when dl3d stops" if reply.keep else "removed when dl3d stops"
    head = f"namespace {reply.namespace} ({whose}); {stays}"
    columns = ("tap", ">index", "carrier", "adopted", "held", ">packets to Linux", ">packets from Linux")
    parts: list[RenderableType] = [head, "", table("", columns, [tap_row(tap) for tap in reply.taps])]
    gone = [tap.port for tap in reply.taps if not tap.ifindex]
    if gone:
        parts.append(f"\nGone from Linux: {', '.join(gone)}; 'dl3 reload' creates them again")
    return Group(*parts)


def class_row(one: PuntClass) -> tuple[object, ...]:
    """One class: its limit, and the counters of its packets."""
    limit = (one.rate_pps, one.burst, one.overflow)
    return (one.name, *limit, one.punted, one.over_limit, one.refused, one.ring_full, one.text)


@look_command(Taps, "taps")
def classes(reply: Taps) -> RenderableType:
    """Classes of punted packets in order of priority: limits and counters.

    Example: dl3 show classes --watch
    """
    columns = ("class", ">packets/s", ">burst", "when exceeded", ">to Linux", ">over limit", ">refused", ">ring full")
    return table("", (*columns, "~description"), [class_row(one) for one in reply.classes])


def interface_row(one: Interface) -> tuple[object, ...]:
    """One interface, and which of its traffic Linux forwards."""
    families = [name for name, is_so in (("IPv4", one.ip4_to_linux), ("IPv6", one.ip6_to_linux)) if is_so]
    by_linux = "all" if one.all_to_linux else ", ".join(families) or "nothing"
    state = "up" if one.up else "down"
    return (one.name, one.port, ", ".join(one.vlans) or None, one.vrf, one.mtu, one.mac, state, by_linux)


@look_command(Mirror, "mirror")
def mirror(reply: Mirror) -> RenderableType:
    """Mirror of the kernel state: sync state, table sizes, netlink overruns; interfaces with their VRFs.

    Example: dl3 show mirror --watch
    """
    rows = [
        ("state", reply.state),
        ("IPv4 routes of Linux", reply.routes4),
        ("IPv6 routes of Linux", reply.routes6),
        ("neighbours", reply.neighbours),
        ("kept alive for dl3d", reply.managed),
        ("next-hop objects", reply.nexthops),
        ("VRFs", ", ".join(reply.vrfs) or "none"),
        ("memory", f"{reply.control_bytes / 2**20:,.1f} MiB"),
        ("messages processed", reply.messages),
        ("messages ignored", reply.ignored),
        ("malformed", reply.malformed),
        ("overruns", reply.overruns),
        ("dumps", f"{reply.dumps:,}, restarted {reply.dumps_restarted:,}, the last one took {reply.last_dump_s:.3f} s"),
        ("partial dumps", reply.dumps_partial),
        ("background audit", f"{reply.audited:,} routes checked, {reply.drifted:,} different"),
        ("different after a dump", reply.drift_lasting),
    ]
    columns = ("interface", "port", "VLANs", "VRF", ">MTU", "MAC", "state", "~forwarded by Linux")
    return Group(
        table("", ("kernel mirror", ""), rows), "", table("", columns, [interface_row(one) for one in reply.interfaces])
    )


@look_command(Unsupported, "unsupported")
def unsupported(reply: Unsupported) -> RenderableType:
    """Linux configuration that workers do not support, and how the affected packets are handled.

    Example: dl3 show unsupported
    """
    if not reply.found:
        return "Workers support everything that is configured in Linux."
    rows = [(one.what, one.where, one.alike, one.effect) for one in reply.unsupported]
    listing = table("", ("~what", "~where", ">count", "~handling of affected packets"), rows)
    more = reply.found - len(rows)
    return Group(listing, f"\nand {more:,} more") if more else listing


def verify(
    sample: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Compare this many randomly chosen routes; default: all.")
    ] = None,
    limit: Annotated[
        int, typer.Option(min=1, max=1000, metavar="N", help="Maximum number of differences to list.")
    ] = 100,
    socket: Socket = DEFAULT_SOCKET,
    as_json: Json = False,
) -> None:
    """Compare the tables of Linux and workers, bridges and labels included.

    Exits with status 0 (equal), 1 (different) or 2 (not compared).

    Example: dl3 verify --sample 1000
    """
    client = Client(socket, VERIFY_SECONDS)
    with judging():
        with err.status("comparing the tables of Linux with those of the workers"):
            reply = client.ask(Verification, "verify", sample=sample, limit=limit)
        if as_json:
            print_json(reply.model_dump())
        else:
            say(reply)
    if reply.differences:
        raise typer.Exit(DIFFERENT)


def say(reply: Verification) -> None:
    """The differences, then the total."""
    for difference in reply.listed:
        out.print(difference, markup=False, highlight=False, soft_wrap=True)
    if reply.differences > len(reply.listed):
        out.print(f"and {reply.differences - len(reply.listed):,} more", highlight=False)
    found = counted(reply.differences, "difference") if reply.differences else "no difference"
    macs = f" and {reply.macs:,} MAC address{'' if reply.macs == 1 else 'es'} of bridges" if reply.macs else ""
    out.print(f"compared {counted(reply.compared, 'route')}{macs}: {found}", highlight=False)
