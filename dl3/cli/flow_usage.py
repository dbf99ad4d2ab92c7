"""'dl3 show flows': use of the flow table, and how it changes."""

import time

from rich.console import Group, RenderableType

from dl3.cli.printing import table
from dl3.cli.show import Interval, Json, Socket, Watch, look
from dl3.control.client import DEFAULT_SOCKET, Client
from dl3.control.flow_replies import FlowFamily, FlowLearning, FlowUsage

EVENTS = {
    "added": "added",
    "deleted": "deleted",
    "idle": "ended when idle",
    "reached_end": "reached their end",
}


class FlowRates:
    """Changes per second between two snapshots."""

    def __init__(self) -> None:
        self._before: FlowUsage | None = None
        self._at_s = 0.0

    def of(self, now: FlowUsage) -> dict[str, float | None]:
        """Of each event; None in the first snapshot, and after a restart of dl3d."""
        before, span_s = self._before, time.monotonic() - self._at_s
        self._before, self._at_s = now, time.monotonic()
        counts = {name: (getattr(before, name), getattr(now, name)) for name in EVENTS} if before else {}
        if not counts or not span_s or any(was > is_now for was, is_now in counts.values()):
            return dict.fromkeys(EVENTS)
        return {name: (is_now - was) / span_s for name, (was, is_now) in counts.items()}


def family_row(name: str, family: FlowFamily) -> tuple[object, ...]:
    """How full it is, and what that costs."""
    share = f"{family.flows / family.max:.1%}" if family.max else None
    return (name, family.flows, family.max, share, family.ending, family.moved, family.refused)


def mebibytes(n_bytes: int) -> str:
    """'1,760 MiB'."""
    return f"{n_bytes / (1 << 20):,.0f} MiB"


def settings_rows(usage: FlowUsage) -> list[tuple[str, object]]:
    """What holds for the whole table."""
    timeouts = ", ".join(f"{seconds} s" for seconds in usage.timeouts_s) or None
    missing = {"route": "forwarded by route", "drop": "dropped"}.get(usage.missing, usage.missing)
    rows: list[tuple[str, object]] = [
        ("memory when full", mebibytes(usage.bytes)),
        ("different actions", usage.actions),
        ("next hops of actions", usage.nexthops),
        ("packets without a flow", missing),
        ("idle timeouts", timeouts),
        ("file", usage.file),
        ("file of ended flows", usage.ended_file),
    ]
    if usage.ended_file:
        rows += [("ended flows written", usage.ended.written), ("ended flows lost", usage.ended.lost)]
    if usage.ended.error:
        rows.append(("error of that file", usage.ended.error))
    return [*rows, ("lookup, hash", f"{usage.lookup}, {usage.hash}")]


def learning_rows(learning: FlowLearning) -> list[tuple[str, object, object]]:
    """Flows that were learnt and keys that were refused, beside what limits them."""
    return [
        ("flows at present", learning.flows, f"{learning.timeout_s} s idle" if learning.on else "off"),
        ("learnt", learning.learnt, None),
        ("refused: rate", learning.over_rate, f"{learning.rate:,} per second"),
        ("refused: flows of the VRF", learning.over_vrf, learning.per_vrf or None),
        ("refused: flows of the input interface", learning.over_interface, learning.per_interface or None),
        ("refused: no route", learning.unroutable, None),
        ("refused: no space in the table", learning.full, None),
        ("refused: no flow can have the key", learning.invalid, None),
        ("packets while a limit was reached", learning.at_limit, None),
        ("packets that workers could not report", learning.lost, None),
    ]


def draw_flows(usage: FlowUsage, rates: FlowRates) -> RenderableType:
    """The table by family, then events with their rates, then settings."""
    columns = ("family", ">flows", ">space for", ">used", ">ending", ">moved", ">refused")
    families = [("IPv4", usage.ipv4), ("IPv6", usage.ipv6)]
    rows = [family_row(name, family) for name, family in families if family.max]
    per_second = rates.of(usage)
    events = [
        (word, getattr(usage, name), None if (rate := per_second[name]) is None else f"{rate:,.0f}")
        for name, word in EVENTS.items()
    ]
    learning = usage.learning
    parts = [
        table("", columns, rows),
        table("", ("flows", ">since start", ">per second"), events),
        table("", ("table", "~"), settings_rows(usage)),
    ]
    if learning.on or learning.learnt:
        parts.append(table("", ("learning", ">number", ">limit"), learning_rows(learning)))
    return Group(*[part for each in parts for part in ("", each)][1:])


def flows(
    socket: Socket = DEFAULT_SOCKET, again: Watch = False, interval: Interval = 1.0, as_json: Json = False
) -> None:
    """Flow table: use, memory, entries moved, refused and ended flows, rates with --watch.

    Example: dl3 show flows --watch
    """
    client, rates = Client(socket), FlowRates()
    look(lambda: client.ask(FlowUsage, "flows"), lambda usage: draw_flows(usage, rates), again, interval, as_json)
