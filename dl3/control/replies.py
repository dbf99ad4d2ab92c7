"""Replies of dl3d's methods. Fields not declared here are kept unchanged."""

from pydantic import BaseModel, ConfigDict, Field, RootModel


class Reply(BaseModel):
    """Base class of all replies."""

    model_config = ConfigDict(frozen=True, extra="allow")


class ErrorReply(Reply):
    """The error of a failed method."""

    code: int
    message: str


class Response(Reply):
    """A JSON-RPC 2.0 response."""

    jsonrpc: str
    result: object = None
    error: ErrorReply | None = None


class AnyReply(RootModel[object]):
    """A result of any type, unparsed."""


class VhostQueue(Reply):
    """A queue of a vhost-user port: what the peer's driver has enabled, and the slots of its rings."""

    queue: int
    receives: bool
    sends: bool
    rx_slots: int
    tx_slots: int


class Vhost(Reply):
    """The socket of a vhost-user port, and its peer."""

    socket: str
    mode: str
    state: str
    connections: int
    features: tuple[str, ...]
    queues: tuple[VhostQueue, ...]
    remark: str | None


class Port(Reply):
    """A port and its counters, in packets and in bytes without FCS."""

    port: int
    name: str
    device: str
    mac: str
    mtu: int
    link_up: bool
    device_present: bool = True  # False: the device has vanished
    device_losses: int = 0  # times that it has vanished
    device_resets: int = 0  # times that it was reset
    rx_queues: int
    rx_packets: int
    rx_bytes: int
    tx_packets: int
    tx_bytes: int
    rx_missed: int | None  # this and the next three: None if the device does not count them
    rx_no_mbuf: int | None
    rx_errors: int | None
    tx_errors: int | None
    rx_descriptors: int = 0  # per receive queue
    speed_mbps: int | None = None  # None: not reported by the device
    addresses: tuple[str, ...] = ()
    vhost: Vhost | None = None


class Ports(Reply):
    """Method 'ports'."""

    ports: tuple[Port, ...]


class WorkerQueue(Reply):
    """A receive queue that a worker polls."""

    port: str
    queue: int
    rx_packets: int = 0


class WorkerHand(Reply):
    """What a worker hands to another one; `waiting`: packets on their way now; `slot_packets`: those that came for each
    of its slots since the start, also while another worker had the slot.
    """

    worker: int
    packets: int
    waiting: int
    slots: tuple[int, ...]
    slot_packets: tuple[int, ...]


class PollGap(Reply):
    """The longest time between two polls of a worker, and the time since it ended."""

    longest_us: float
    ago_s: float


class Worker(Reply):
    """A worker. Counters are named as in schema/counters.toml, steps as in src/datapath/steps.h; cycles are TSC cycles."""

    worker: int
    core: int
    numa: int
    idle: str = "poll"
    woken_by: str | None = None
    queues: tuple[WorkerQueue, ...]
    hands_to: tuple[WorkerHand, ...] = ()
    counters: dict[str, int]
    counter_lists: dict[str, tuple[int, ...]] = {}
    empty_share: float
    asleep_share: float = 0.0
    poll_gap: PollGap | None
    cycles_per_packet: dict[str, float] | None
    verdicts: dict[str, int]


class Workers(Reply):
    """Method 'workers'."""

    workers: tuple[Worker, ...]
    tsc_hz: float = 0.0


class Verdict(Reply):
    """A verdict, and the number of packets that received it."""

    name: str
    packets: int  # dropped or forwarded
    handed: int = 0  # punted to Linux
    step: str
    text: str


class Wire(Reply):
    """Losses in the devices, before a worker could receive the packets. None: no count, and not every device counts."""

    rx_missed: int | None
    rx_no_mbuf: int | None  # times a device found no free buffer; not a packet count
    rx_errors: int | None
    starved_loops: int = 0  # polls in which a worker found no free buffer, independent of the devices' counters


class Drops(Reply):
    """Method 'drops': accounting of all packets."""

    received: int
    injected: int
    copied: int = 0  # frames made in addition to those received, such as fragments
    sent: int
    punted: int
    dropped: int
    held: int = 0  # in queues of subscribers
    in_flight: int
    verdicts: tuple[Verdict, ...]
    wire: Wire


class Route(Reply):
    """A route."""

    prefix: str
    kind: str
    via: str | None
    port: str | None
    interface: str | None = None  # the VLAN's name in Linux, otherwise the port's
    protocol: str | None = None  # as printed by ip(8); None: Linux is not the control plane
    metric: int | None = None
    labels: tuple[int, ...] = ()  # MPLS labels in front of its packets, the outermost one first
    label_ttl: int | None = None  # None: that of the packet


class Routes(Reply):
    """Method 'routes': one page, and the start of the next."""

    routes: tuple[Route, ...]
    next: str | None


class NextHop(Reply):
    """A next hop."""

    id: int
    kind: str
    via: str | None
    port: str | None
    interface: str | None = None
    mac: str | None
    mtu: int | None
    verdict: str
    routes: int
    packets: int
    labels: tuple[int, ...] = ()
    label_ttl: int | None = None


class NextHops(Reply):
    """Method 'nexthops': one page, and the start of the next."""

    nexthops: tuple[NextHop, ...]
    next: int | None


class Neighbour(Reply):
    """A neighbour with a known MAC address."""

    address: str
    interface: str | None
    vrf: str | None
    mac: str


class Neighbours(Reply):
    """Method 'neighbours': one page, and the start of the next."""

    neighbours: tuple[Neighbour, ...]
    next: int | None


class Status(Reply):
    """Method 'status'. All fields are kept unchanged."""


class Member(Reply):
    """A member of a next-hop group."""

    via: str | None
    port: str | None = None
    interface: str | None
    weight: int
    labels: tuple[int, ...] = ()
    label_ttl: int | None = None


class Opinion(Reply):
    """The result of Linux's own lookup of the address, and whether the workers agree with it."""

    agrees: bool | None  # None: the lookup failed, see error
    differs: str | None = None
    error: str | None = None
    prefix: str | None = None
    table: int | None = None
    metric: int | None = None
    type: str | None = None
    via: str | None = None
    interface: str | None = None


class TunnelWay(Reply):
    """The tunnel that a route leads into: its ends, and the forwarding decision for the other one."""

    local: str
    remote: str
    prefix: str | None
    verdict: str
    via: str | None
    interface: str | None
    members: tuple[Member, ...] = ()
    mac: str | None
    source_mac: str | None
    vlans: tuple[str, ...] = ()


class Decision(Reply):
    """Method 'route': the forwarding decision for a destination address."""

    address: str
    vrf: str | None = None
    found: bool
    prefix: str | None
    route_kind: str | None = None
    via: str | None = None
    port: str | None = None
    interface: str | None = None
    members: tuple[Member, ...] = ()
    labels: tuple[int, ...] = ()
    label_ttl: int | None = None
    nexthop: int | None = None
    mac: str | None
    source_mac: str | None = None
    vlans: tuple[str, ...] = ()
    mtu: int | None = None
    tunnel: TunnelWay | None = None
    verdict: str
    punt_class: str | None = Field(default=None, alias="class")
    text: str
    workers_agree: bool = True
    linux: Opinion | None = None


class Added(Reply):
    """Method 'ports.add'."""

    added: Port


class Removed(Reply):
    """Method 'ports.remove'."""

    removed: str
    routes_without_next_hop: int
    routes_with_fewer_next_hops: int


class Reloaded(Reply):
    """Method 'reload'."""

    reloads: int
    routes4: int
    routes6: int
