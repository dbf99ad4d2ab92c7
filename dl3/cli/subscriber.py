"""The commands under 'dl3 subscriber', and 'dl3 show subscriber' and 'subscribers'."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType

from dl3.cli.lazy import LazyGroup
from dl3.cli.printing import counted, out, print_json, table
from dl3.cli.show import Interval, Socket, Watch, look, look_command, si
from dl3.cli.show import Json as WatchJson
from dl3.cli.subscriber_jobs import POLL_S
from dl3.control.client import DEFAULT_SOCKET, Client
from dl3.control.subscriber_replies import (
    ColourCount,
    Shaping,
    Subscriber,
    SubscriberDirection,
    SubscriberJob,
    SubscriberPage,
    SubscribersChanged,
    SubscriberUsage,
)
from dl3.model.fault import UsageFault

SUBSCRIBERS, FILES = "Subscribers and profiles", "Files"
PAGE, PATIENCE_S, AGAIN = 1000, 120.0, "try again later"  # while a load of a million takes some seconds
COLOURS = ("green", "yellow", "red")
MS_US = 1000


class SubscriberCommands(LazyGroup):
    """The commands of 'dl3 subscriber'."""

    sources: Mapping[str, tuple[str, str, Mapping[str, Any]]] = {
        **{name: (f"dl3.cli.subscriber:{name}", SUBSCRIBERS, {}) for name in ("add", "set", "remove")},
        "profile": ("dl3.cli.subscriber:profile", SUBSCRIBERS, {"context_settings": {"ignore_unknown_options": True}}),
        "no-profile": ("dl3.cli.subscriber:no_profile", SUBSCRIBERS, {}),
        "list": ("dl3.cli.subscriber:list_subscribers", SUBSCRIBERS, {}),
        **{name: (f"dl3.cli.subscriber_jobs:{name}", FILES, {}) for name in ("load", "export")},
    }


app = typer.Typer(
    cls=SubscriberCommands,
    help="Add, change, remove, list, load and export subscribers of a running dl3d.\n\n"
    "Example: dl3 subscriber add alice up gold down gold address 198.51.100.7 address 2001:db8:1::/56",
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
)


@app.callback()
def options() -> None:
    """Options of 'dl3 subscriber': none."""


Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the subscriber.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
ProfileName = Annotated[str, typer.Argument(metavar="PROFILE", help="Name of the profile.")]
Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="WORDS",
        help="[up PROFILE] [down PROFILE] [parent AGGREGATE] [up_parent AGGREGATE] [address PREFIX]... "
        "[interface NAME]...",
    ),
]
Keys = Annotated[list[str], typer.Argument(metavar="KEYS", help="rate RATE [burst BURST] [KEY VALUE]...")]


def ask_change(client: Client, words: Sequence[str]) -> SubscribersChanged:
    """While dl3d loads a file, it takes no change: waits until that has ended."""
    ends_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            return client.ask(SubscribersChanged, "subscribers.change", changes=[" ".join(words)])
        except UsageFault as fault:
            if not str(fault).endswith(AGAIN) or time.monotonic() > ends_s:
                raise
        while client.ask(SubscriberJob, "subscribers.job").state == "running" and time.monotonic() <= ends_s:
            time.sleep(POLL_S)


def change(socket: Path, words: Sequence[str], as_json: bool) -> None:
    """Apply one change, or say why it was refused."""
    try:
        reply = ask_change(Client(socket), words)
    except UsageFault as fault:
        raise UsageFault(str(fault).removeprefix("changes[0]: ")) from None  # there is no other one
    if as_json:
        print_json(reply.model_dump())
    else:
        out.print(f"applied: {counted(reply.applied, 'change')}", highlight=False)


def add(name: Name, words: Words = None, socket: Socket = DEFAULT_SOCKET, as_json: Json = False) -> None:
    """Add a subscriber: profiles, addresses or prefixes, interfaces; 'number N' if it is to have one.

    Example: dl3 subscriber add alice up gold down gold address 198.51.100.7 address 2001:db8:1::/56
    """
    change(socket, ["add", name, *(words or [])], as_json)


def set(name: Name, words: Words = None, socket: Socket = DEFAULT_SOCKET, as_json: Json = False) -> None:  # noqa: A001
    """Change what is named of a subscriber; 'without PREFIX' and 'without INTERFACE' take one away.

    Tokens that are left stay, and no others are added.

    Example: dl3 subscriber set alice down silver without 198.51.100.7 address 198.51.100.8
    """
    change(socket, ["set", name, *(words or [])], as_json)


def remove(name: Name, socket: Socket = DEFAULT_SOCKET, as_json: Json = False) -> None:
    """Remove a subscriber; its packets are not policed any more.

    Example: dl3 subscriber remove alice
    """
    change(socket, ["remove", name], as_json)


def profile(name: ProfileName, keys: Keys, socket: Socket = DEFAULT_SOCKET, as_json: Json = False) -> None:
    """Add a profile, or change it for all that have it.

    Example: dl3 subscriber profile gold rate 100Mbit/s burst 20ms peak_rate 120Mbit/s yellow dscp:8
    """
    change(socket, ["profile", name, *keys], as_json)


def no_profile(name: ProfileName, socket: Socket = DEFAULT_SOCKET, as_json: Json = False) -> None:
    """Remove a profile that no subscriber has.

    Example: dl3 subscriber no-profile gold
    """
    change(socket, ["no-profile", name], as_json)


def passed(direction: SubscriberDirection) -> int:
    """Packets that were not red."""
    return direction.counts.green.packets + direction.counts.yellow.packets


def list_row(one: Subscriber) -> tuple[object, ...]:
    """A row of the table."""
    where = ", ".join((*one.addresses, *one.interfaces)) or None
    cells = [cell for way in (one.up, one.down) for cell in (way.profile, passed(way), way.counts.red.packets)]
    return (one.number, one.name, where, *cells)


def list_subscribers(
    after: Annotated[int, typer.Option(min=0, metavar="N", help="Start after this number.")] = 0,
    limit: Annotated[int, typer.Option(min=1, max=PAGE, metavar="N", help="Maximum number of rows.")] = 100,
    socket: Socket = DEFAULT_SOCKET,
    as_json: Json = False,
) -> None:
    """List subscribers by number, one page at a time.

    Example: dl3 subscriber list --limit 1000
    """
    page = Client(socket).ask(SubscriberPage, "subscribers.list", after=after, limit=limit)
    if as_json:
        print_json(page.model_dump())
        return
    heads = (">", "name", "~addresses, interfaces", "up", ">packets", ">red", "down", ">packets", ">red")
    shown = table("", heads, [list_row(one) for one in page.subscribers])
    if not page.subscribers:
        out.print("There are no subscribers.")
    else:
        out.print(Group(shown, f"More: --after {page.next}") if page.next is not None else shown)


def shaped(way: str, shaping: Shaping) -> RenderableType:
    """A row for each class of a direction: sent, dropped, and delays."""
    bounds = [f"<{us} us" if us < MS_US else f"<{us / MS_US:.0f} ms" for us in shaping.delay_us]
    heads = (f"{way}, class", ">packets", ">bytes", ">codel", ">limit", ">pool", ">flushed")
    rows, delays = [], []
    for i, one in enumerate(shaping.classes):
        drops = one.dropped
        rows.append((str(i), one.packets, one.bytes, drops.codel, drops.limit, drops.pool, drops.flushed))
        delays.append((str(i), *one.delays))
    columns = (f"{way}, delay", *(f">{bound}" for bound in bounds), ">longer")
    held = f"Held in queues of worker {shaping.worker} now: {counted(shaping.held, 'packet')}"
    return Group(table("", heads, rows), "", table("", columns, delays), "", held)


class ColourRates:
    """Bits per second of each direction and colour between two replies."""

    def __init__(self) -> None:
        self.before: Subscriber | None = None
        self.at_s = 0.0

    def draw(self, now: Subscriber) -> RenderableType:
        """Who it is, then a row for each direction and colour."""
        before, span_s = self.before, time.monotonic() - self.at_s
        self.before, self.at_s = now, time.monotonic()
        rows = []
        for name in ("up", "down"):
            direction: SubscriberDirection = getattr(now, name)
            for colour in COLOURS:
                count: ColourCount = getattr(direction.counts, colour)
                old = getattr(getattr(before, name).counts, colour).bytes if before else None
                rate = "-" if old is None else si(8 * (count.bytes - old) / span_s)
                rows.append((name, direction.profile, colour, count.packets, count.bytes, rate))
        where = [("number", str(now.number)), ("addresses", ", ".join(now.addresses) or None)]
        where.append(("interfaces", ", ".join(now.interfaces) or None))
        where.extend((key, way.parent) for key, way in (("parent", now.down), ("up_parent", now.up)) if way.parent)
        columns = ("", "profile", "colour", ">packets", ">bytes", ">bit/s")
        parts: list[RenderableType] = [table("", ("subscriber", f"~{now.name}"), where), "", table("", columns, rows)]
        for name, way in (("up", now.up), ("down", now.down)):
            parts.extend(("", shaped(name, way.shaping)) if way.shaping else ())
        return Group(*parts)


def subscriber(
    name: Name,
    again: Watch = False,
    interval: Interval = 1.0,
    socket: Socket = DEFAULT_SOCKET,
    as_json: WatchJson = False,
) -> None:
    """One subscriber: addresses, interfaces, profiles, packets and bytes by direction and colour.

    Example: dl3 show subscriber alice --watch
    """
    client, rates = Client(socket), ColourRates()
    look(lambda: client.ask(Subscriber, "subscribers.find", name=name), rates.draw, again, interval, as_json)


@look_command(SubscriberUsage, "subscribers")
def subscribers(reply: SubscriberUsage) -> RenderableType:
    """How many subscribers and profiles there are, prefix lengths in use, memory.

    Example: dl3 show subscribers
    """
    lengths = ", ".join(f"/{n}" for n in (*reply.lengths4, *reply.lengths6)) or None
    rows = [
        ("subscribers", reply.subscribers),
        ("addresses", reply.addresses),
        ("interfaces", reply.interfaces),
        ("prefix lengths", lengths),
        ("bytes", reply.bytes),
        ("changes", reply.changes),
    ]
    profiles = [(use.profile, use.users) for use in reply.profile_list]
    return Group(table("", ("", ">"), rows), "", table("", ("~profile", ">users"), profiles))
