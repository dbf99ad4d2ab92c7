"""Reply of dl3d's method 'trace'. Fields not declared here are kept unchanged."""

from pydantic import Field

from dl3.control.replies import Reply


class TraceRule(Reply):
    """A rule that judged the packet; number 0: none matched. police: "tokens" or "red", None without a policer."""

    list: str | None
    source: str
    direction: str
    local: bool
    number: int
    name: str | None
    rule: str | None
    do: str
    police: str | None
    step: str


class TraceAction(Reply):
    """What a flow says."""

    do: str
    via: str | None = None
    dev: str | None = None
    dscp: int | None = None
    mirror: str | None = None


class TraceFlow(Reply):
    """The flow of the packet."""

    number: int
    gives_hop: bool
    action: TraceAction | None


class TraceRoute(Reply):
    """The longest prefix that matched."""

    prefix: str | None
    kind: str | None
    workers_agree: bool


class TraceTunnel(Reply):
    """The ends of the tunnel that a next hop leads into."""

    local: str
    remote: str


class TraceOuter(Reply):
    """The packet that carried the traced one in a tunnel, as the first steps saw it."""

    family: int
    interface: str | None
    vrf: str | None
    vlans: tuple[str, ...]
    ttl: int
    prefix: str | None


class TraceHop(Reply):
    """The next hop, of a group the member that this packet takes; members: of the group, 0 if it is none."""

    id: int
    members: int
    kind: str
    via: str | None
    port: str | None
    interface: str | None
    mac: str | None
    source_mac: str | None
    mtu: int | None
    vlans: tuple[str, ...]
    labels: tuple[int, ...] = ()  # that are pushed, the outermost one first
    tunnel: TraceTunnel | None = None


class TraceBridge(Reply):
    """Behind which port the destination is; None: not known."""

    to: str | None


class TraceEnd(Reply):
    """Where the packet, a copy or a fragment goes; frame: index in `frames`."""

    do: str
    port: str | None
    step: str
    verdict: str
    punt_class: str | None = Field(default=None, alias="class")
    text: str
    frame: int


class Trace(Reply):
    """Method 'trace': what the steps did. None: the packet did not come so far."""

    port: str
    cut_to: int | None
    steps: tuple[str, ...]
    bridge: TraceBridge | None
    outer: TraceOuter | None = None  # the steps before decap are of this packet, and all else is of what was in it
    family: int | None
    interface: str | None
    vrf: str | None
    vlans: tuple[str, ...]
    ttl: int | None
    for_linux: bool
    flow: TraceFlow | None
    route: TraceRoute | None
    next_hop: TraceHop | None
    dscp: int | None
    mirror: str | None
    fragmented: bool
    rules: tuple[TraceRule, ...]
    ends: tuple[TraceEnd, ...]
    frames: tuple[str, ...]
