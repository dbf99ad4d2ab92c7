"""The commands under 'dl3 port': add and remove ports of a running dl3d."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from dl3.cli.lazy import LazyGroup
from dl3.cli.printing import out, print_json
from dl3.control.client import DEFAULT_SOCKET, Client
from dl3.control.replies import Added, Removed

PORTS = "Ports"
SECONDS = 60.0  # a device may take a while to start

Socket = Annotated[Path, typer.Option(metavar="PATH", help="Control socket of dl3d.", readable=False)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the port.")]


class PortCommands(LazyGroup):
    """The commands of 'dl3 port'."""

    sources: Mapping[str, tuple[str, str, Mapping[str, Any]]] = {
        "add": ("dl3.cli.ports:add", PORTS, {}),
        "remove": ("dl3.cli.ports:remove", PORTS, {}),
    }


app = typer.Typer(
    cls=PortCommands,
    help="Add and remove ports while dl3d forwards on the others.\n\nExample: dl3 port add c net_af_packet2,iface=eth2",
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
)


@app.callback()
def options() -> None:
    """Options of 'dl3 port': none."""


def add(
    name: Name,
    device: Annotated[str, typer.Argument(metavar="DEVICE", help="PCI address or DPDK device string.")],
    mtu: Annotated[int | None, typer.Option(min=68, max=9600, metavar="BYTES", help="MTU; default: 1500.")] = None,
    mac: Annotated[str | None, typer.Option(metavar="MAC", help="MAC address; default: the device's own.")] = None,
    address: Annotated[
        list[str] | None,
        typer.Option(metavar="ADDRESS/LENGTH", help="An own address; not with Linux as control plane."),
    ] = None,
    queues: Annotated[int | None, typer.Option(min=1, max=64, metavar="N", help="Receive queues.")] = None,
    socket: Socket = DEFAULT_SOCKET,
    as_json: Json = False,
) -> None:
    """Add a port until the next reload; the configuration file needs it, too, to keep it after that.

    Example: dl3 port add c net_af_packet2,iface=eth2

    Example: dl3 port add wan 0000:03:00.1 --mtu 9000
    """
    keys = {"mtu": mtu, "mac": mac, "addresses": address or None, "queues": queues}
    done = Client(socket, SECONDS).ask(Added, "ports.add", name=name, device=device, **keys)
    if as_json:
        print_json(done.model_dump())
        return
    out.print(f"added: port {done.added.name} ({done.added.mac}, MTU {done.added.mtu})", highlight=False)


def lost(done: Removed) -> str:
    """'; routes without a next hop: 3'."""
    parts = []
    if done.routes_without_next_hop:
        parts.append(f"routes without a next hop: {done.routes_without_next_hop:,}")
    if done.routes_with_fewer_next_hops:
        parts.append(f"routes with fewer next hops: {done.routes_with_fewer_next_hops:,}")
    return "".join(f"; {part}" for part in parts)


def remove(name: Name, socket: Socket = DEFAULT_SOCKET, as_json: Json = False) -> None:
    """Remove a port, and its TAP interface; next hops over it become unresolved.

    Example: dl3 port remove c
    """
    done = Client(socket, SECONDS).ask(Removed, "ports.remove", name=name)
    if as_json:
        print_json(done.model_dump())
        return
    out.print(f"removed: port {done.removed}{lost(done)}", highlight=False)
