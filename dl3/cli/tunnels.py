"""'dl3 show tunnels': tunnels, and what went through them."""

from rich.console import RenderableType

from dl3.cli.printing import table
from dl3.cli.show import look_command
from dl3.control.tunnel_replies import Tunnel, Tunnels


def way(tunnel: Tunnel) -> str | None:
    """How the other end is reached; None: there are many, or none."""
    if tunnel.port is None:
        return tunnel.verdict
    return f"via {tunnel.via} dev {tunnel.port}" if tunnel.via else f"dev {tunnel.port}"


def name_of(number: int | None) -> str | None:
    """A number that is none to add up."""
    return None if number is None else str(number)


@look_command(Tunnels, "tunnels")
def tunnels(reply: Tunnels) -> RenderableType:
    """Tunnels: their ends, the way to the other end, and packets and bytes without what the tunnel adds.

    Example: dl3 show tunnels
    """
    if not reply.tunnels:
        return "There are no tunnels."
    rows = [
        (
            *(t.name, t.kind, t.local, t.remote, name_of(t.key), name_of(t.dport), way(t)),
            *(t.tx_packets, t.tx_bytes, t.rx_packets, t.rx_bytes),
        )
        for t in reply.tunnels
    ]
    counts = (">sent", ">bytes", ">received", ">bytes")
    return table("", ("tunnel", "kind", "local", "remote", ">key or VNI", ">port", "~way", *counts), rows)
