"""What dl3d answers to each method; fields that are not named here are kept as they came."""

from pydantic import BaseModel, ConfigDict, Field, RootModel


class Reply(BaseModel):
    """Common to all."""

    model_config = ConfigDict(frozen=True, extra="allow")


class Complaint(Reply):
    """Why a method failed."""

    code: int
    message: str


class Answer(Reply):
    """The envelope of JSON-RPC 2.0."""

    jsonrpc: str
    result: object = None
    error: Complaint | None = None


class AnyReply(RootModel[object]):
    """A result as it came."""


class Port(Reply):
    """One port and its counters, in packets and bytes without FCS."""

    port: int
    name: str
    device: str
    mac: str
    mtu: int
    link_up: bool
    rx_queues: int
    rx_packets: int
    rx_bytes: int
    tx_packets: int
    tx_bytes: int
    rx_missed: int
    rx_no_mbuf: int
    rx_errors: int
    tx_errors: int
    rx_descriptors: int = 0  # of each receive queue
    speed_mbps: int | None = None  # None: the device does not report one
    addresses: tuple[str, ...] = ()


class Ports(Reply):
    """Method 'ports'."""

    ports: tuple[Port, ...]


class WorkerQueue(Reply):
    """A receive queue that a worker polls."""

    port: str
    queue: int
    rx_packets: int = 0


class PollGap(Reply):
    """The longest time between two polls of a worker, and how long ago it ended."""

    longest_us: float
    ago_s: float


class Worker(Reply):
    """One worker; counters and steps have the names of schema/counters.toml, cycles are those of the TSC."""

    worker: int
    core: int
    numa: int
    idle: str = "poll"
    woken_by: str | None = None
    queues: tuple[WorkerQueue, ...]
    counters: dict[str, int]
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
    """One way for a packet to leave the walk, and how many did."""

    name: str
    packets: int  # dropped, or forwarded
    handed: int = 0  # handed over for Linux
    step: str
    text: str


class Wire(Reply):
    """What devices lost before a worker could receive it."""

    rx_missed: int
    rx_no_mbuf: int  # times that a device found no buffer, of those that count it; no packets
    rx_errors: int
    starved_loops: int = 0  # looks at which a worker found none, whatever its devices count


class Drops(Reply):
    """Method 'drops': the account of all packets."""

    received: int
    injected: int
    sent: int
    punted: int
    dropped: int
    in_flight: int
    verdicts: tuple[Verdict, ...]
    wire: Wire


class Route(Reply):
    """One route."""

    prefix: str
    kind: str
    via: str | None
    port: str | None
    interface: str | None = None  # a VLAN's name in Linux, else the port's
    protocol: str | None = None  # as the tool ip prints it; None: Linux is not the control plane
    metric: int | None = None


class Routes(Reply):
    """Method 'routes': a page, and where the next one begins."""

    routes: tuple[Route, ...]
    next: str | None


class NextHop(Reply):
    """One next hop."""

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


class NextHops(Reply):
    """Method 'nexthops': a page, and where the next one begins."""

    nexthops: tuple[NextHop, ...]
    next: int | None


class Neighbour(Reply):
    """A neighbour whose MAC address is known."""

    address: str
    interface: str | None
    vrf: str | None
    mac: str


class Neighbours(Reply):
    """Method 'neighbours': a page, and where the next one begins."""

    neighbours: tuple[Neighbour, ...]
    next: int | None


class Status(Reply):
    """Method 'status': all its fields are kept as they came."""


class Member(Reply):
    """One of the next hops of a group."""

    via: str | None
    interface: str | None
    weight: int


class Opinion(Reply):
    """What Linux itself answers for the address, and whether workers do the same."""

    agrees: bool | None  # null: it could not be asked, see error
    differs: str | None = None
    error: str | None = None
    prefix: str | None = None
    table: int | None = None
    metric: int | None = None
    type: str | None = None
    via: str | None = None
    interface: str | None = None


class Decision(Reply):
    """Method 'route': what would become of a packet to an address."""

    address: str
    vrf: str | None = None
    found: bool
    prefix: str | None
    route_kind: str | None = None
    via: str | None = None
    port: str | None = None
    interface: str | None = None
    members: tuple[Member, ...] = ()
    nexthop: int | None = None
    mac: str | None
    source_mac: str | None = None
    vlans: tuple[str, ...] = ()
    mtu: int | None = None
    verdict: str
    punt_class: str | None = Field(default=None, alias="class")
    text: str
    workers_agree: bool = True
    linux: Opinion | None = None


class Reloaded(Reply):
    """Method 'reload'."""

    reloads: int
    routes4: int
    routes6: int
