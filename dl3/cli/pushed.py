"""How the MPLS labels are written that packets to a next hop get."""

from collections.abc import Sequence

from dl3.control.replies import NextHop, Route


def pushed(labels: Sequence[int], ttl: int | None = None) -> str | None:
    """'100/200 ttl 9': MPLS labels in front of a packet, the outermost one first, as in a route."""
    if not labels:
        return None
    return "/".join(str(label) for label in labels) + (f" ttl {ttl}" if ttl else "")


def with_labels(hop: Route | NextHop) -> str | None:
    """The address of a next hop, and the labels that its packets get."""
    labels = pushed(hop.labels, hop.label_ttl)
    return f"{hop.via or ''} label {labels}".lstrip() if labels else hop.via
