"""Replies of dl3d's methods about flows. Fields not declared here are kept unchanged."""

from dl3.control.replies import Reply


class FlowActionReply(Reply):
    """What happens to the packets of a flow."""

    do: str
    via: str | None = None
    dev: str | None = None
    dscp: int | None = None
    mirror: str | None = None
    subscriber: int = 0


class FlowId(Reply):
    """The key of a flow. Protocols without a name are numbers."""

    src: str
    dst: str
    protocol: str | int
    src_port: int
    dst_port: int
    vrf: str | None = None


class Flow(FlowId):
    """A flow. Neither idle_s nor ends_s: it does not end by itself."""

    action: FlowActionReply | None
    idle_s: int | None = None  # its timeout
    ends_s: float | None = None  # left until its end
    idle_for_s: float
    packets: int
    bytes: int


class FoundFlow(Reply):
    """Method 'flows.find'."""

    found: bool
    flow: Flow | None


class FlowPage(Reply):
    """Method 'flows.list': one page, which may be empty, and the start of the next."""

    flows: tuple[Flow, ...]
    next: int | None


class RefusedChange(Reply):
    """A change that was not applied."""

    index: int
    reason: str


class FlowsChanged(Reply):
    """Method 'flows.change'."""

    applied: int
    results: tuple[RefusedChange, ...]


class EndedFlow(FlowId):
    """A flow that has ended, with its final counters."""

    seq: int
    ended_ms: int  # since 1970
    reason: str
    do: str
    subscriber: int = 0
    idle_for_s: float
    packets: int
    bytes: int


class EndedFlows(Reply):
    """Method 'flows.ended'. `lost`: those that left before they were read. `start`: of dl3d, in ms since 1970."""

    start: int = 0
    ended: tuple[EndedFlow, ...]
    next: int
    lost: int
    more: bool


class FlowJobStarted(Reply):
    """Methods 'flows.load' and 'flows.save'."""

    path: str


class FlowJob(Reply):
    """Method 'flows.job': the latest load or save."""

    state: str  # none, running, done, failed
    what: str | None = None
    op: str | None = None
    path: str | None = None
    phase: str | None = None
    done: int = 0
    of: int = 0
    refused: int = 0
    first_refused: int | None = None
    reason: str | None = None
    seconds: float = 0.0


class FlowFamily(Reply):
    """The flows of a family, and what the table did for them."""

    flows: int
    max: int
    ending: int
    lines: int
    moved: int
    refused: int


class EndedUsage(Reply):
    """The stream of ended flows."""

    start: int = 0
    last: int
    written: int = 0
    lost: int = 0
    error: str | None = None


class FlowLearning(Reply):
    """Flows that are learnt, and how many keys were refused by each limit. `lost`: packets of which workers could not tell."""

    on: bool = False
    flows: int = 0
    learnt: int = 0
    timeout_s: int = 0
    rate: int = 0
    per_vrf: int = 0  # 0: any number
    per_interface: int = 0
    over_rate: int = 0
    over_vrf: int = 0
    over_interface: int = 0
    unroutable: int = 0
    invalid: int = 0
    at_limit: int = 0
    full: int = 0
    lost: int = 0


class FlowUsage(Reply):
    """Method 'flows'."""

    ipv4: FlowFamily
    ipv6: FlowFamily
    bytes: int
    actions: int = 0
    nexthops: int = 0
    added: int
    deleted: int
    idle: int
    reached_end: int
    missing: str
    timeouts_s: tuple[int, ...] = ()
    file: str | None = None
    ended_file: str | None = None
    ended: EndedUsage
    learning: FlowLearning = FlowLearning()
    lookup: str = ""
    hash: str = ""
