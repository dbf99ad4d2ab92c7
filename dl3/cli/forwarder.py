"""The commands that run dl3d and change its state."""

import os
import shutil
from pathlib import Path
from typing import Annotated

import typer

from dl3.cli.printing import out, print_json, table
from dl3.cli.pushed import pushed
from dl3.control.client import DEFAULT_SOCKET, Client
from dl3.control.replies import Decision, Member, Opinion, Reloaded, TunnelWay
from dl3.model.fault import Fault

DEFAULT_FILE = "/etc/dl3/dl3d.yaml"  # of dl3d itself
BUILT = Path(__file__).resolve().parent.parent.parent / "build" / "src" / "dl3d"
RELOAD_SECONDS = 60.0  # it may have to read millions of routes

Socket = Annotated[Path, typer.Option(metavar="PATH", help="Control socket of dl3d.", readable=False)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def program() -> str:
    """The dl3d of this build, else the installed one."""
    found = str(BUILT) if BUILT.exists() else shutil.which("dl3d")
    if not found:
        raise Fault(f"dl3d not found, neither at {BUILT} nor on the PATH: run 'make' first")
    return found


def run(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE",
            help="Configuration file (YAML); dl3d --example prints one.",
            show_default=DEFAULT_FILE,
        ),
    ] = None,
) -> None:
    """Start dl3d with a configuration file; all other arguments are passed on. Exits with the status of dl3d.

    Example: dl3 run router.yaml

    Example: dl3 run router.yaml -- --log-level=8
    """
    path = program()
    os.execv(path, [path, *(words or ())])  # noqa: S606 - no shell is wanted


def by_linux(said: Opinion) -> str:
    """What Linux would do, on one line."""
    if said.agrees is None or said.error:
        return said.error or "no reply"
    words = [said.type or "route", *(("to", said.prefix) if said.prefix else ())]
    words += ["via", said.via] if said.via else []
    words += ["dev", said.interface] if said.interface else []
    words += [f"(table {said.table}, metric {said.metric})"] if said.prefix else []
    return " ".join(words)


def next_hops(decision: Decision) -> list[tuple[str, object]]:
    """Where the packet may go: one next hop, or those of a group."""
    if not decision.members:
        interface = decision.interface or decision.port
        behind = [("port", decision.port)] if decision.port and decision.port != interface else []
        labels = [("labels", pushed(decision.labels, decision.label_ttl))] if decision.labels else []
        return [("via", decision.via), ("interface", interface), *behind, *labels]
    return [("one of", member_words(m)) for m in decision.members]


def member_words(member: Member) -> str:
    """One next hop of several."""
    labels = pushed(member.labels, member.label_ttl)
    return f"via {member.via} dev {member.interface}{f' label {labels}' if labels else ''} weight {member.weight}"


def of_tunnel(way: TunnelWay) -> list[tuple[str, object]]:
    """The ends of a tunnel, and how packets come to the other one."""
    via = [member_words(m) for m in way.members] or [f"via {way.via}" if way.via else "on link"]
    dev = f" dev {way.interface}" if way.interface else ""
    reached = [("tunnel by", f"{words}{'' if way.members else dev}") for words in via]
    return [
        ("tunnel from", way.local),
        ("tunnel to", f"{way.remote}, by route {way.prefix}" if way.prefix else f"{way.remote}, which has no route"),
        *(reached if way.verdict == "forward" else [("tunnel by", way.verdict)]),
        *([("outer MACs", f"to {way.mac}, from {way.source_mac}")] if way.mac else []),
        *([("outer VLANs", ", ".join(way.vlans))] if way.vlans else []),
    ]


def agreement(decision: Decision) -> list[tuple[str, object]]:
    """The workers' decision next to that of Linux."""
    rows: list[tuple[str, object]] = (
        [] if decision.workers_agree else [("workers", "use another next hop: please report this")]
    )
    said = decision.linux
    if said:
        rows.append(("Linux", by_linux(said)))
    if said and said.agrees is not None:
        rows.append(("Linux agrees", said.differs or said.agrees))
    return rows


def route(
    address: Annotated[str, typer.Argument(metavar="ADDRESS", help="An IPv4 or IPv6 address.")],
    vrf: Annotated[
        str | None, typer.Option(metavar="VRF", help="Name of a VRF device; default: the main table.")
    ] = None,
    socket: Socket = DEFAULT_SOCKET,
    as_json: Json = False,
) -> None:
    """Explain the forwarding decision for an address: prefix, next hop, neighbour, port, and whether Linux agrees.

    Example: dl3 show route 203.0.113.7
    """
    decision = Client(socket).ask(Decision, "route", address=address, vrf=vrf)
    if as_json:
        print_json(decision.model_dump(by_alias=True))
        return
    verdict = f"{decision.verdict}: {decision.text}"
    macs = f"to {decision.mac}, from {decision.source_mac}" if decision.mac else None
    rows: list[tuple[str, object]] = [
        ("address", decision.address),
        ("VRF", decision.vrf),
        ("prefix", decision.prefix),
        ("route", decision.route_kind),
        *next_hops(decision),
        *(of_tunnel(decision.tunnel) if decision.tunnel else [("MACs", macs)]),
        *([("VLANs", ", ".join(decision.vlans))] if decision.vlans else []),
        ("MTU", decision.mtu),
        ("verdict", verdict),
        *([("punted to Linux as", decision.punt_class)] if decision.punt_class else []),
        *agreement(decision),
    ]
    out.print(table("", ("", "~forwarding decision"), rows))


def reload(socket: Socket = DEFAULT_SOCKET, as_json: Json = False) -> None:
    """Reload the configuration file of dl3d; an invalid file changes nothing.

    Example: dl3 reload
    """
    done = Client(socket, RELOAD_SECONDS).ask(Reloaded, "reload")
    if as_json:
        print_json(done.model_dump())
        return
    out.print(f"reloaded: {done.routes4:,} IPv4 and {done.routes6:,} IPv6 routes", highlight=False)
