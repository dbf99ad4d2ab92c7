"""'dl3 show tunnels': tunnels, and what went through them."""

from rich.console import RenderableType

from dl3.cli.printing import table
from dl3.cli.show import look_command
from dl3.control.tunnel_replies import Tunnel, Tunnels


def way(tunnel: Tunnel) -> str:
    """How the other end is reached."""
    if tunnel.port is None:
        return tunnel.verdict
    return f"via {tunnel.via} dev {tunnel.port}" if tunnel.via else f"dev {tunnel.port}"


def distinction(tunnel: Tunnel) -> str:
    """What tells it apart from others with the same ends: a number that is none to add up."""
    number = tunnel.key if tunnel.dport is None else tunnel.dport
    return "" if number is None else str(number)


@look_command(Tunnels, "tunnels")
def tunnels(reply: Tunnels) -> RenderableType:
    """Tunnels: their ends, the way to the other end, and packets and bytes without what the tunnel adds.

    Example: dl3 show tunnels
    """
    if not reply.tunnels:
        return "There are no tunnels."
    rows = [
        (
            *(t.name, t.local, t.remote, distinction(t), way(t)),
            *(t.tx_packets, t.tx_bytes, t.rx_packets, t.rx_bytes),
        )
        for t in reply.tunnels
    ]
    counts = (">sent", ">bytes", ">received", ">bytes")
    return table("", ("tunnel", "local", "remote", ">key or port", "~way", *counts), rows)
