"""'dl3 show labels': what is done with received MPLS labels."""

from typing import Annotated

import typer
from rich.console import Group, RenderableType

from dl3.cli.printing import table
from dl3.cli.pushed import pushed
from dl3.cli.show import Interval, Json, Limit, Socket, Watch, look
from dl3.control.client import DEFAULT_SOCKET, Client
from dl3.control.label_replies import Label, Labels
from dl3.control.replies import Member


def member_words(member: Member) -> str:
    """One next hop of several."""
    labels = pushed(member.labels)
    return f"via {member.via} dev {member.interface or member.port}" + (f" label {labels}" if labels else "")


def way(label: Label) -> str:
    """Where the packets of a label go."""
    if label.does == "linux":
        return "left to Linux"
    if label.does == "lookup":
        return f"looked up in {label.vrf}"
    if label.members:
        return ", ".join(member_words(member) for member in label.members)
    return f"via {label.via} dev {label.interface or label.port}" if label.via else f"dev {label.interface}"


def draw_labels(reply: Labels) -> RenderableType:
    """A page of labels."""
    if not reply.n:
        return "There are no MPLS labels."
    rows = [(str(one.label), way(one), pushed(one.labels), one.ttl) for one in reply.labels]
    page = table("", (">label", "~popped, then", "pushed", "TTL"), rows)
    return Group(page, f"More: --after {reply.next}") if reply.next is not None else page


def labels(
    after: Annotated[int | None, typer.Option(min=0, metavar="LABEL", help="Start after this label.")] = None,
    limit: Limit = 100,
    socket: Socket = DEFAULT_SOCKET,
    again: Watch = False,
    interval: Interval = 1.0,
    as_json: Json = False,
) -> None:
    """Received MPLS labels, one page at a time: where their packets go, and with which labels.

    Example: dl3 show labels
    """
    client, page = Client(socket), {"after": after, "limit": limit}
    given = {key: value for key, value in page.items() if value is not None}
    look(lambda: client.ask(Labels, "labels", **given), draw_labels, again, interval, as_json)
