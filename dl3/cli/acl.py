"""The commands under 'dl3 acl': access lists of a running dl3d."""

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType

from dl3.cli.lazy import LazyGroup
from dl3.cli.printing import counted, err, out, print_json, table
from dl3.control.acl_replies import AclDecision, AclList, Acls, AclsChanged
from dl3.control.client import DEFAULT_SOCKET, Client
from dl3.model.fault import Fault, UsageFault
from dl3.model.files import read_bounded
from dl3.model.flow_text import address

LISTS = "Access lists"
MOST_FILE_BYTES = 900_000  # a request is a line of at most 1 MiB
SECONDS = 120.0  # building a list of many rules takes a while
FLAGS = ("fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr")  # from the lowest bit on
WITH_TYPES = ("icmp", "icmp6", "icmpv6", "1", "58")
WITHOUT_PORTS = ("gre", "esp", "ah", "ospf")
WITH_PORTS = ("tcp", "udp", "sctp", "dccp", "udplite", "6", "17", "132", "33", "136")


class AclCommands(LazyGroup):
    """The commands of 'dl3 acl'."""

    sources: Mapping[str, tuple[str, str, Mapping[str, Any]]] = {
        "show": ("dl3.cli.acl:show", LISTS, {}),
        "check": ("dl3.cli.acl:check", LISTS, {}),
        "set": ("dl3.cli.acl:set_list", LISTS, {}),
        "use": ("dl3.cli.acl:use", LISTS, {}),
    }


app = typer.Typer(
    cls=AclCommands,
    help="Show, check and change access lists of a running dl3d.\n\n"
    "Example: dl3 acl check 10.0.0.1 10.1.0.1 tcp 40000 23 --interface east",
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
)


@app.callback()
def options() -> None:
    """Options of 'dl3 acl': none."""


Socket = Annotated[Path, typer.Option(metavar="PATH", help="Control socket of dl3d.", readable=False)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


class Direction(StrEnum):
    """Directions in which an interface uses a list."""

    incoming = "in"
    outgoing = "out"


def draw_lists(reply: Acls) -> RenderableType:
    """All lists without their rules, and where they are used."""
    if not reply.lists:
        return "There are no access lists."
    heads = ("list", "source", ">rules", "default", ">packets by default", ">build time")
    columns = [(one.name, one.source, one.n_rules, one.default, one.rest.packets, one.build_s) for one in reply.lists]
    lists = table("", heads, [(*column, f"{build_s:.3f} s") for *column, build_s in columns])
    uses = [(one.interface, one.direction, one.list, None if one.exists else "no such interface") for one in reply.use]
    return Group(lists, "", table("", ("interface", "direction", "list", "note"), uses) if uses else "No list is used.")


def draw_rules(one: AclList, after: int) -> RenderableType:
    """A page of the rules of a list."""
    has_red = any(rule.red for rule in one.rules)
    heads = (">", "name", "~rule", ">packets", ">bytes", *((">red packets", ">red bytes") if has_red else ()))
    rows = [
        (n, rule.name, rule.rule, rule.packets, rule.bytes, rule.red) for n, rule in enumerate(one.rules, after + 1)
    ]
    rest = [] if one.next is not None else [(None, "default", one.default, one.rest.packets, one.rest.bytes, None)]
    cells = [(*row, *((red.packets, red.bytes) if red else (None, None))) for *row, red in [*rows, *rest]]
    page = table("", heads, [row[: len(heads)] for row in cells])
    return Group(page, f"More: --after {one.next}") if one.next is not None else page


def show(
    name: Annotated[
        str | None, typer.Argument(metavar="LIST", help="Show the rules of this list.", show_default=False)
    ] = None,
    after: Annotated[int, typer.Option(min=0, metavar="N", help="Start after this rule.")] = 0,
    limit: Annotated[int, typer.Option(min=1, max=1000, metavar="N", help="Maximum number of rules.")] = 100,
    socket: Socket = DEFAULT_SOCKET,
    as_json: Json = False,
) -> None:
    """Access lists and where they are used; or the rules of a list with their counters.

    Lists tc:INTERFACE:in and tc:INTERFACE:out are tc filters of Linux, which only tc changes.

    Example: dl3 acl show

    Example: dl3 acl show edge-in
    """
    page = {"list": name, "after": after, "limit": limit} if name is not None else {}
    reply = Client(socket).ask(Acls, "acls", **page)
    if name is not None and not reply.lists:
        raise UsageFault(f"there is no list '{name}': 'dl3 acl show' lists them")
    if as_json:
        print_json(reply.model_dump(exclude={"lists": {"__all__": {"rules", "next"}}} if name is None else None))
    else:
        out.print(draw_lists(reply) if name is None else draw_rules(reply.lists[0], after))


def flags_of(words: str) -> int:
    """'syn,ack' as a number."""
    names = words.split(",")
    unknown = [name for name in names if name not in FLAGS]
    if unknown:
        raise UsageFault(f"unknown TCP flag '{unknown[0]}': expected {', '.join(FLAGS)}")
    return sum(1 << FLAGS.index(name) for name in set(names))


def port_of(word: str, most: int) -> int:
    """A port, or a type or code."""
    if not (word.isascii() and word.isdigit() and len(word) <= 5 and int(word) <= most):
        raise UsageFault(f"invalid number '{word}': expected 0 to {most}")
    return int(word)


def packet_params(words: Sequence[str], *, is_later: bool = False) -> dict[str, object]:
    """SOURCE DESTINATION PROTOCOL [PORT PORT | TYPE CODE] as the method takes it; a later fragment has no ports."""
    if len(words) < 3:
        raise UsageFault("a packet is SOURCE DESTINATION PROTOCOL, with two ports, or type and code, where it has them")
    src, dst, protocol = words[:3]
    if len(address(src)) != len(address(dst)):
        raise UsageFault("a packet has a source and a destination of the same family")
    names, most = (("icmp_type", "icmp_code"), 255) if protocol in WITH_TYPES else (("src_port", "dst_port"), 65535)
    has_them, what = protocol in WITH_TYPES or protocol in WITH_PORTS, "type and code" if most == 255 else "two ports"
    expected = len(names) if has_them and not is_later else 0
    if not has_them and protocol not in WITHOUT_PORTS and not protocol.isdecimal():
        return {"src": src, "dst": dst, "protocol": protocol}  # dl3d lists the names that there are
    if len(words) != 3 + expected:
        which = f"a later fragment of {protocol}" if has_them and is_later else f"a packet of {protocol}"
        has = f"{what}, after the protocol" if expected else "no ports, type or code"
        raise UsageFault(f"{which} has {has}")
    values = {name: port_of(word, most) for name, word in zip(names, words[3:], strict=False)}
    return {"src": src, "dst": dst, "protocol": protocol, **values}


def draw_decision(reply: AclDecision) -> RenderableType:
    """The rule that decides, and why those before it do not."""
    name = f" '{reply.name}'" if reply.name else ""
    by = f"rule {reply.number}{name}: {reply.rule}" if reply.number is not None else "no rule matches"
    limit = "; what is above police.rate is dropped" if reply.rule and " police.rate " in reply.rule else ""
    verdict = f"{reply.list}: {reply.do}, {by}{limit}"
    if not reply.before:
        return verdict
    rows = [(one.number, one.name, one.differs) for one in reply.before]
    return Group(verdict, "", table("", (">rule", "name", "does not match by"), rows))


def missing_list(client: Client, where: Mapping[str, str | None]) -> str:
    """Why there is no list of this name, or of this interface; "" if there is one."""
    reply, (name, interface, direction) = client.ask(Acls, "acls"), where.values()
    if name is not None:
        is_there = any(one.name == name for one in reply.lists)
        return "" if is_there else f"there is no list '{name}': 'dl3 acl show' lists them"
    if any(use.interface == interface and use.direction == direction for use in reply.use):
        return ""
    return f"interface '{interface}' uses no list in direction {direction}: 'dl3 acl show' shows where lists are used"


def decide(client: Client, where: Mapping[str, str | None], packet: Mapping[str, object]) -> AclDecision:
    """Which rule decides, or why none can be asked."""
    try:
        return client.ask(AclDecision, "acl.check", **where, **packet)
    except UsageFault as fault:
        raise UsageFault(missing_list(client, where) or str(fault)) from fault


def check(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PACKET", help="SOURCE DESTINATION PROTOCOL [PORT PORT | TYPE CODE].", show_default=False
        ),
    ] = None,
    name: Annotated[str | None, typer.Option("--list", metavar="LIST", help="The list.")] = None,
    interface: Annotated[str | None, typer.Option(metavar="INTERFACE", help="Or the interface that uses it.")] = None,
    direction: Annotated[Direction, typer.Option(metavar="in|out", help="Direction.")] = Direction.incoming,
    dscp: Annotated[int | None, typer.Option(min=0, max=63, metavar="N", help="DSCP of the packet.")] = None,
    flags: Annotated[str | None, typer.Option("--tcp-flags", metavar="F,F...", help="TCP flags: syn,ack.")] = None,
    fragment: Annotated[str | None, typer.Option(metavar="WHICH", help="none, first or later.")] = None,
    local: Annotated[bool, typer.Option("--local", help="The packet is for the router itself.")] = False,
    frame: Annotated[str | None, typer.Option(metavar="HEX", help="A frame in hex instead of PACKET.")] = None,
    socket: Socket = DEFAULT_SOCKET,
    as_json: Json = False,
) -> None:
    """Tell which rule decides about a packet, and why those before it do not.

    Example: dl3 acl check 10.0.0.1 10.1.0.1 tcp 40000 23 --interface east

    Example: dl3 acl check 10.0.0.1 10.1.0.1 icmp 8 0 --list edge-in --local
    """
    if bool(words) == (frame is not None):
        raise UsageFault("expected either PACKET or --frame")
    if (name is None) == (interface is None):
        raise UsageFault("expected either --list or --interface")
    where = {"list": name, "interface": interface, "direction": direction.value if interface else None}
    packet = packet_params(words, is_later=fragment == "later") if words else {"frame": frame}
    if flags and words and words[2] not in ("tcp", "6"):
        raise UsageFault(f"--tcp-flags are for tcp, and the packet is {words[2]}")
    more = {"dscp": dscp, "tcp_flags": flags_of(flags) if flags else None, "fragment": fragment, "local": local or None}
    reply = decide(Client(socket), where, {**packet, **more})
    if as_json:
        print_json(reply.model_dump())
    else:
        out.print(draw_decision(reply), highlight=False)


def rules_of(path: Path) -> list[tuple[int, str]]:
    """Line number and text of each rule."""
    try:
        text = read_bounded(path, MOST_FILE_BYTES, "rules of a request").decode()
    except OSError as error:
        raise UsageFault(f"{path} cannot be read: {error.strerror or error}; choose another file") from error
    except UnicodeDecodeError as error:
        raise UsageFault(f"{path} is not a text file in UTF-8; choose another file") from error
    lines = ((n, line.partition("#")[0].strip()) for n, line in enumerate(text.splitlines(), 1))
    return [(n, line) for n, line in lines if line]


def with_line(fault: Fault, path: Path, lines: Sequence[int]) -> str:
    """The message with the line of the file in place of the number of the rule."""
    found = re.match(r"list '[^']*', rules\[(\d+)\]: (.*)", str(fault), re.DOTALL)
    return f"{path}:{lines[int(found[1])]}: {found[2]}" if found and int(found[1]) < len(lines) else str(fault)


def change(client: Client, as_json: bool, done: str, **params: object) -> None:
    """Apply it, and say so."""
    reply = client.ask(AclsChanged, "acl.change", **params)
    if as_json:
        print_json(reply.model_dump())
    else:
        out.print(done, highlight=False)


def check_unused(client: Client, name: str) -> None:
    """A list can be deleted if it exists and no interface uses it."""
    reply = client.ask(Acls, "acls")
    if any(one.name == name and one.source == "tc" for one in reply.lists):
        raise UsageFault(f"list '{name}' is tc filters of Linux: delete them with tc")
    if not any(one.name == name for one in reply.lists):
        raise UsageFault(f"there is no list '{name}': 'dl3 acl show' lists them")
    uses = [f"{use.interface} {use.direction}" for use in reply.use if use.list == name]
    if uses:
        raise UsageFault(f"list '{name}' is in use ({', '.join(uses)}): first 'dl3 acl use {uses[0]}' without a list")


def set_list(
    name: Annotated[str, typer.Argument(metavar="LIST", help="Name of the list.")],
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="Rules, one per line.", dir_okay=False, show_default=False)
    ] = None,
    deny: Annotated[bool, typer.Option("--deny", help="Deny what no rule matches.")] = False,
    delete: Annotated[bool, typer.Option("--delete", help="Delete the list instead.")] = False,
    socket: Socket = DEFAULT_SOCKET,
    as_json: Json = False,
) -> None:
    """Create a list, or replace all of its rules, until the next reload; counters of rules with a name go on.

    Example: dl3 acl set edge-in rules.txt --deny

    Example: dl3 acl set edge-in --delete
    """
    client = Client(socket, SECONDS)
    if delete == (file is not None):
        raise UsageFault("expected either FILE or --delete")
    if file is None:
        check_unused(client, name)
        change(client, as_json, f"deleted: list {name}", lists={name: None})
        return
    rules = rules_of(file)
    wanted = {"rules": [text for _, text in rules], "default": "deny" if deny else "permit"}
    try:
        change(client, as_json, f"set: list {name}, {counted(len(rules), 'rule')}", lists={name: wanted})
    except Fault as fault:
        raise type(fault)(with_line(fault, file, [line for line, _ in rules])) from fault


def use(
    interface: Annotated[str, typer.Argument(metavar="INTERFACE", help="A port or a VLAN interface.")],
    direction: Annotated[Direction, typer.Argument(metavar="in|out", help="Packets that come in, or go out.")],
    name: Annotated[
        str | None, typer.Argument(metavar="LIST", help="Name of the list; none: no list.", show_default=False)
    ] = None,
    socket: Socket = DEFAULT_SOCKET,
    as_json: Json = False,
) -> None:
    """Have an interface use a list, or none, until the next reload.

    Example: dl3 acl use east in edge-in

    Example: dl3 acl use east in
    """
    wanted = {"interface": interface, "direction": direction.value} | ({"list": name} if name else {})
    done = f"{interface} {direction.value}: {f'list {name}' if name else 'no list'}"
    client = Client(socket, SECONDS)
    change(client, as_json, done, use=[wanted])
    if name and any(one.interface == interface and not one.exists for one in client.ask(Acls, "acls").use):
        err.print(f"note: there is no interface '{interface}' yet; 'dl3 show ports' lists them", highlight=False)
