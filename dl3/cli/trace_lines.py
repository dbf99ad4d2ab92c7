"""What a trace says, step by step, in words."""

from collections.abc import Callable, Iterator, Mapping

from rich.console import Group, RenderableType
from rich.text import Text

from dl3.cli.printing import counted, table
from dl3.cli.pushed import pushed
from dl3.control.trace_replies import Trace, TraceEnd, TraceRoute, TraceRule

LINE_BYTES = 16


def of_input(trace: Trace) -> str:
    """What parse found."""
    if trace.family is None:
        return ""
    tags = f" ({', '.join(trace.vlans)})" if trace.vlans else ""
    left = "; Linux forwards what comes in here" if trace.for_linux else ""
    return (
        f"IPv{trace.family} on interface {trace.interface or trace.port}{tags}, VRF {trace.vrf}, TTL {trace.ttl}{left}"
    )


def of_flow(trace: Trace) -> str:
    """The flow that match found."""
    if not trace.flow:
        return "the packet has no flow"
    action = trace.flow.action
    if not action:
        return f"flow {trace.flow.number}"
    words = {"route": "by route", "via": "to a next hop", "drop": "drop", "punt": "left to Linux"}.get(
        action.do, action.do
    )
    via = f" {action.via}" if action.via else ""
    dev = f" dev {action.dev}" if action.dev else ""
    return f"flow {trace.flow.number}: {words}{via}{dev}"


def of_lookup(trace: Trace) -> str:
    """The longest prefix."""
    if trace.flow and trace.flow.gives_hop:
        return "not looked up: the flow gives the next hop"
    if not trace.route or not trace.route.prefix:
        return "no route"
    strange = "" if trace.route.workers_agree else "; workers use another next hop: please report this"
    members = f", {trace.next_hop.members} next hops" if trace.next_hop and trace.next_hop.members else ""
    return f"longest prefix {trace.route.prefix} ({trace.route.kind}{members}){strange}"


def of_rule(rule: TraceRule) -> str:
    """'list edge (in), rule 2 dns: permit udp; its policer has tokens now'."""
    name = f" {rule.name}" if rule.name else ""
    which = f"rule {rule.number}{name}: {rule.rule}" if rule.number else f"no rule matches, default {rule.do}"
    if not rule.number and rule.local:
        which = "no rule with 'local' matches, so nothing stops a packet for the router itself"
    says = {"tokens": "; its policer has tokens now", "red": "; its policer has no tokens for it now"}
    kind = "tc filters" if rule.source == "tc" else f"list {rule.list}"
    return f"{kind} ({rule.direction}), {which}{says.get(rule.police or '', '')}"


def of_hop(trace: Trace) -> str:
    """The next hop with its MTU."""
    hop = trace.next_hop
    if not hop or not hop.interface:
        return ""
    which = f", the one of {hop.members} that this flow takes" if hop.members else ""
    if hop.tunnel:
        return f"into tunnel {hop.interface}{which}, whose other end is {hop.tunnel.remote}; MTU {hop.mtu}"
    to = f"next hop {hop.via}" if hop.via else "the destination itself is the next hop"
    mac = f", MAC {hop.mac}" if hop.mac else ", MAC address not known"
    long = "; longer than that, to be fragmented" if trace.fragmented else ""
    return f"{to} dev {hop.interface}{which}{mac}; MTU {hop.mtu}{long}"


def of_rewrite(trace: Trace) -> str:
    """TTL and MAC addresses."""
    ttl = f"TTL {trace.ttl} becomes {trace.ttl - 1}" if trace.ttl else "TTL decreased"
    hop = trace.next_hop
    return f"{ttl}; MAC {hop.source_mac} > {hop.mac}" if hop and hop.mac else ttl


def of_bridge(trace: Trace) -> str:
    """Where the destination is."""
    if not trace.bridge:
        return "handed to the step parse"
    if trace.bridge.to:
        return f"the destination is behind port {trace.bridge.to}"
    return "a group, or an address that is not known: to be flooded"


def of_encap(trace: Trace) -> str:
    """Tags of the output interface, and labels."""
    hop = trace.next_hop
    tags = f"VLAN tags written: {', '.join(hop.vlans)}" if hop and hop.vlans else ""
    labels = f"MPLS labels pushed: {pushed(hop.labels)}" if hop and hop.labels else ""
    tunnel = f"in a packet from {hop.tunnel.local} to {hop.tunnel.remote}" if hop and hop.tunnel else ""
    return "; ".join(words for words in (labels, tunnel, tags) if words) or "header of the next hop written"


def of_decap(trace: Trace) -> str:
    """What was in a tunnel."""
    if trace.interface:
        return f"taken out of tunnel {trace.interface}: IPv{trace.family}, VRF {trace.vrf}, TTL {trace.ttl}"
    return "a tunnel may end here"


def carrying(trace: Trace) -> Trace:
    """The trace up to the step decap: of the packet that carried the other one."""
    outer = trace.outer
    if not outer:
        return trace
    route = TraceRoute(prefix=outer.prefix, kind="local", workers_agree=True)
    nothing = {"flow": None, "next_hop": None, "ends": (), "for_linux": False}
    found = {name: getattr(outer, name) for name in ("family", "interface", "vrf", "vlans", "ttl")}
    return trace.model_copy(update={**nothing, **found, "route": route})


DECISIONS: Mapping[str, Callable[[Trace], str]] = {
    "xconnect": lambda _: "cross-connected to another port",
    "bridge": of_bridge,
    "parse": of_input,
    "discovery": lambda _: "neighbour discovery is left to Linux here; this is none",
    "match": of_flow,
    "lookup": of_lookup,
    "acl_in": lambda _: "the input interface has no list",
    "flow": lambda trace: "as its flow says" if trace.flow else "a packet without a flow may pass",
    "source": lambda _: "the source is no address of the router",
    "rpf": lambda _: "the route to the source allows this interface",
    "check": of_hop,
    "bridge_out": lambda _: "the bridge knows the port of the next hop",
    "acl_out": lambda _: "the output interface has no list",
    "subscriber": lambda _: "the profiles of its subscribers, if it has any, let it pass",
    "redirect": lambda _: "no redirect is sent for it",
    "mirror": lambda trace: f"a copy goes to {trace.mirror}",
    "mark": lambda trace: f"DSCP becomes {trace.dscp}",
    "rewrite": of_rewrite,
    "trim": lambda _: "bytes after the packet cut off",
    "unlabel": lambda _: "TTL and type of the packet below its MPLS labels, which are removed",
    "untag": lambda _: "received VLAN tags or labels removed",
    "fragment": lambda _: "fragmented",
    "encap": of_encap,
    "decap": of_decap,
    "shape": lambda _: "goes through a queue of its subscriber",
}
# These found something also about a packet that they stop.
FOUND_ANYWAY = ("bridge", "parse", "match", "lookup", "check", "mirror", "mark", "rewrite", "encap", "decap")


def of_end(end: TraceEnd) -> str:
    """'sent by port right', 'dropped: no_route, no route to the destination'."""
    if end.do == "send":
        return f"sent by port {end.port}"
    reason = f"{end.verdict}: {end.text}"
    return f"dropped as {reason}" if end.do == "drop" else f"left to Linux (class {end.punt_class}) as {reason}"


def together(words: Iterator[str]) -> Iterator[str]:
    """Each once, with how often."""
    found: dict[str, int] = {}
    for word in words:
        found[word] = found.get(word, 0) + 1
    return (f"{word}, {counted(n, 'frame')}" if n > 1 else word for word, n in found.items())


def decisions(trace: Trace, step: str, is_stopped: bool) -> Iterator[str]:
    """What a step found, and the rules that judged the packet there."""
    rules = [of_rule(rule) for rule in trace.rules if rule.step == step]
    found = DECISIONS[step](trace) if step in DECISIONS else ""
    if found and (step in FOUND_ANYWAY or not (is_stopped or rules)):
        yield found
    yield from rules


def steps(trace: Trace) -> Iterator[tuple[str, str]]:
    """Each step, what it decided, and what left there."""
    of = carrying(trace)
    for step in trace.steps:
        of = trace if step == "decap" else of
        ends = [end for end in of.ends if end.step == step]
        found = decisions(of, step, any(end.do != "send" for end in ends))
        yield step, "; ".join([*found, *together(of_end(end) for end in ends)]) or "passes"


def hexdump(frame: bytes) -> Iterator[str]:
    """Sixteen bytes in a line."""
    for at in range(0, len(frame), LINE_BYTES):
        line = frame[at : at + LINE_BYTES]
        yield f"  {at:04x}  {line[:8].hex(' '):23}  {line[8:].hex(' ')}".rstrip()


def sent(trace: Trace) -> Iterator[str]:
    """The bytes of each frame that would be sent."""
    for index, hexed in enumerate(trace.frames):
        ports = [end.port or "-" for end in trace.ends if end.frame == index and end.do == "send"]
        if ports:
            frame = bytes.fromhex(hexed)
            yield f"{counted(len(frame), 'byte')} by {', '.join(ports)}:"
            yield from hexdump(frame)


def verdict(trace: Trace) -> str:
    """All that happens in the end."""
    return "; ".join(together(of_end(end) for end in trace.ends)) or "nothing is sent"


def draw(heading: str, trace: Trace) -> RenderableType:
    """The whole trace."""
    cut = f", of which the device receives {trace.cut_to:,}" if trace.cut_to is not None else ""
    lines = list(sent(trace))
    dump: list[RenderableType] = ["", Text("\n".join(lines))] if lines else []
    return Group(
        Text(f"{heading}{cut}, received on port {trace.port}"),
        "",
        table("", ("step", "~what it decides"), list(steps(trace))),
        "",
        Text(f"verdict: {verdict(trace)}"),
        *dump,
    )
