"""What 'dl3 show ports NAME' prints of a vhost-user port."""

from rich.console import Group, RenderableType

from dl3.cli.printing import table
from dl3.control.replies import Vhost, VhostQueue

STATES = {"waiting": "waiting for its peer", "starting": "peer connected, its driver is not", "connected": "connected"}


def served(queue: VhostQueue) -> str:
    """The directions that the guest has enabled."""
    return {(True, True): "both ways", (True, False): "only in", (False, True): "only out"}.get(
        (queue.receives, queue.sends), "off"
    )


def draw_vhost(name: str, vhost: Vhost) -> RenderableType:
    """The socket and what was negotiated, then each queue, then what the user has to do."""
    columns = ("port", "~socket", "mode", "state", ">connections", "~features")
    features = ", ".join(vhost.features) or None
    state = STATES.get(vhost.state, vhost.state)
    head = table("", columns, [(name, vhost.socket, vhost.mode, state, vhost.connections, features)])
    rows = [(q.queue, served(q), q.rx_slots or None, q.tx_slots or None) for q in vhost.queues]
    queues = table("", (">queue", "enabled", ">ring in", ">ring out"), rows)
    parts: list[RenderableType] = [head, "", queues]
    if vhost.remark:
        parts += ["", f"{name}: {vhost.remark}"]
    return Group(*parts)
