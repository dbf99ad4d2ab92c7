"""The commands under 'dl3 flow': change, find and list flows of a running dl3d."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType

from dl3.cli.lazy import LazyGroup
from dl3.cli.printing import counted, out, print_json, table
from dl3.control.client import DEFAULT_SOCKET, Client
from dl3.control.flow_replies import Flow, FlowActionReply, FlowId, FlowPage, FlowsChanged, FoundFlow
from dl3.model.fault import Fault, UsageFault
from dl3.model.flow_text import (
    MAIN_VRF,
    PROTOCOL_WORDS,
    FlowAction,
    FlowKey,
    FlowSettings,
    action_text,
    address_text,
    parse_key,
    parse_settings,
)

FLOWS, FILES = "Flows", "Files"
PAGE = 1000  # flows that dl3d returns at once


class FlowCommands(LazyGroup):
    """The commands of 'dl3 flow'."""

    sources: Mapping[str, tuple[str, str, Mapping[str, Any]]] = {
        **{name: (f"dl3.cli.flow:{name}", FLOWS, {}) for name in ("add", "change", "delete", "find")},
        "list": ("dl3.cli.flow:list_flows", FLOWS, {}),
        "watch": ("dl3.cli.flow_watch:watch", FLOWS, {}),
        "load": ("dl3.cli.flow_jobs:load", FILES, {}),
        "save": ("dl3.cli.flow_jobs:save", FILES, {}),
        "import": ("dl3.cli.flow_files:import_text", FILES, {}),
        "example": ("dl3.cli.flow_files:example", FILES, {}),
    }


app = typer.Typer(
    cls=FlowCommands,
    help="Add, change, delete, list, load and save flows of a running dl3d, and make files of flows.\n\n"
    "Example: dl3 flow add 10.0.0.1 10.1.0.1 udp 5000 53 via 10.9.0.2 dev east idle 30",
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
)


@app.callback()
def options() -> None:
    """Options of 'dl3 flow': none."""


Socket = Annotated[Path, typer.Option(metavar="PATH", help="Control socket of dl3d.", readable=False)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Words = Annotated[
    list[str],
    typer.Argument(
        metavar="FLOW", help="SOURCE DESTINATION PROTOCOL [PORT PORT | IDENTIFIER] [vrf NAME] ACTION [idle S | ends S]."
    ),
]
Key = Annotated[
    list[str],
    typer.Argument(metavar="FLOW", help="SOURCE DESTINATION PROTOCOL [PORT PORT | IDENTIFIER] [vrf NAME]."),
]


def key_params(key: FlowKey, vrf: str) -> dict[str, object]:
    """The key of a flow as dl3d's methods take it."""
    found: dict[str, object] = {"src": address_text(key.src), "dst": address_text(key.dst)}
    found["protocol"] = PROTOCOL_WORDS.get(key.protocol, key.protocol)
    found |= {"src_port": key.src_port, "dst_port": key.dst_port}
    return found | ({"vrf": vrf} if vrf else {})


def action_params(action: FlowAction) -> dict[str, object]:
    """An action as dl3d's methods take it."""
    named = {"via": action.via, "dev": action.dev, "mirror": action.mirror, "subscriber": action.subscriber}
    found = {name: value for name, value in named.items() if value}
    return {"do": action.do, **found} | ({"dscp": action.dscp} if action.dscp is not None else {})


def change_params(op: str, words: Sequence[str]) -> dict[str, object]:
    """A change with an action."""
    key, n_words = parse_key(words)
    settings: FlowSettings = parse_settings(words[n_words:])
    life = {"idle_s": settings.idle_s, "ends_s": settings.ends_s}
    lasts = {name: seconds for name, seconds in life.items() if seconds}
    return {"op": op, **key_params(key, settings.vrf), "action": action_params(settings.action), **lasts}


def only_key(words: Sequence[str]) -> dict[str, object]:
    """A key without an action."""
    key, n_words = parse_key(words)
    rest = words[n_words:]
    if rest and (rest[0] != "vrf" or len(rest) != 2):
        raise UsageFault(f"unexpected '{' '.join(rest)}' after the flow: expected nothing, or 'vrf NAME'")
    return key_params(key, rest[1] if rest else "")


def change_one(client: Client, change: Mapping[str, object], done: str, as_json: bool) -> None:
    """Apply one change, or say why it was refused."""
    reply = client.ask(FlowsChanged, "flows.change", changes=[change])
    if reply.results:
        raise Fault(reply.results[0].reason.removeprefix("changes[0]: "))
    if as_json:
        print_json(reply.model_dump())
    else:
        out.print(f"{done}: {counted(reply.applied, 'flow')}", highlight=False)


def add(words: Words, socket: Socket = DEFAULT_SOCKET, as_json: Json = False) -> None:
    """Add a flow.

    ACTION: route, 'via ADDRESS dev INTERFACE', 'dev INTERFACE', drop or punt; with route and next hops also 'dscp N'
    and 'mirror INTERFACE'; with all of them 'subscriber N'.

    Example: dl3 flow add 10.0.0.1 10.1.0.1 udp 5000 53 via 10.9.0.2 dev east dscp 46 idle 30

    Example: dl3 flow add 2001:db8::1 2001:db8::2 icmpv6 7 drop
    """
    change_one(Client(socket), change_params("add", words), "added", as_json)


def change(words: Words, socket: Socket = DEFAULT_SOCKET, as_json: Json = False) -> None:
    """Replace the action of a flow, whose counters go on; add it if there is none.

    Example: dl3 flow change 10.0.0.1 10.1.0.1 udp 5000 53 drop
    """
    change_one(Client(socket), change_params("replace", words), "changed", as_json)


def delete(words: Key, socket: Socket = DEFAULT_SOCKET, as_json: Json = False) -> None:
    """Delete a flow.

    Example: dl3 flow delete 10.0.0.1 10.1.0.1 udp 5000 53
    """
    change_one(Client(socket), {"op": "delete", **only_key(words)}, "deleted", as_json)


def action_words(action: FlowActionReply | None) -> str | None:
    """'via 10.9.0.2 dev east dscp 46'."""
    if action is None:
        return None
    found = FlowAction(
        action.do, action.via or "", action.dev or "", action.dscp, action.mirror or "", action.subscriber
    )
    return action_text(found)


def key_words(flow: FlowId) -> str:
    """'10.0.0.1 10.1.0.1 udp 5000 53 vrf red', as 'dl3 flow find' takes it."""
    words = [flow.src, flow.dst, str(flow.protocol)]
    if flow.protocol in ("icmp", "icmpv6"):
        words.append(str(flow.src_port))
    elif flow.protocol in ("tcp", "udp", "sctp", "dccp", "udplite"):
        words += [str(flow.src_port), str(flow.dst_port)]
    return " ".join(words + (["vrf", flow.vrf] if flow.vrf and flow.vrf != MAIN_VRF else []))


def ends_words(flow: Flow) -> str | None:
    """'idle 30 s', 'in 12 s'."""
    if flow.idle_s is not None:
        return f"idle {flow.idle_s:g} s"
    return f"in {flow.ends_s:,.0f} s" if flow.ends_s is not None else None


def flow_row(flow: Flow) -> tuple[object, ...]:
    """A row of the table."""
    cells = (flow.packets, flow.bytes, f"{flow.idle_for_s:,.1f} s", ends_words(flow))
    return (key_words(flow), action_words(flow.action), *cells)


def flows_table(flows: Sequence[Flow]) -> RenderableType:
    """One row for each."""
    return table(
        "", ("~flow", "~action", ">packets", ">bytes", ">idle for", "~ends"), [flow_row(flow) for flow in flows]
    )


def find(words: Key, socket: Socket = DEFAULT_SOCKET, as_json: Json = False) -> None:
    """Show a flow: action, counters, age. Exits with status 1 if there is no such flow.

    Example: dl3 flow find 10.0.0.1 10.1.0.1 udp 5000 53
    """
    reply = Client(socket).ask(FoundFlow, "flows.find", **only_key(words))
    if as_json:
        print_json(reply.model_dump(exclude_unset=True))
    if reply.flow is None:
        if as_json:
            raise typer.Exit(1)
        raise Fault("there is no such flow: 'dl3 flow list' lists those that exist")
    if not as_json:
        out.print(flows_table([reply.flow]))


def pages(client: Client, after: int | None, limit: int, vrf: str | None) -> FlowPage:
    """Up to `limit` flows, from as many pages as it takes."""
    found: list[Flow] = []
    while True:
        page = client.ask(FlowPage, "flows.list", after=after, limit=min(limit - len(found), PAGE), vrf=vrf)
        found += page.flows
        if page.next is None or len(found) >= limit:
            return FlowPage(flows=tuple(found), next=page.next)
        after = page.next


def list_flows(
    after: Annotated[int | None, typer.Option(min=0, metavar="N", help="Start after this number.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1_000_000, metavar="N", help="Maximum number of rows.")] = 100,
    vrf: Annotated[str | None, typer.Option(metavar="VRF", help="Only flows of this VRF device.")] = None,
    file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Show a file of flows instead.", exists=True, dir_okay=False)
    ] = None,
    socket: Socket = DEFAULT_SOCKET,
    as_json: Json = False,
) -> None:
    """List flows with action, counters and age, one page at a time; or those of a file.

    They are in no particular order.

    Example: dl3 flow list --limit 1000

    Example: dl3 flow list --file /var/lib/dl3/flows
    """
    if file is not None:
        from dl3.cli.flow_files import show_file

        show_file(file, after or 0, limit, as_json)
        return
    page = pages(Client(socket), after, limit, vrf)
    if as_json:
        print_json(page.model_dump(exclude_unset=True))
    elif page.flows:
        shown = flows_table(page.flows)
        out.print(Group(shown, f"More: --after {page.next}") if page.next is not None else shown)
    else:
        out.print("There are no flows.")
