"""Replies of dl3d about Linux as its control plane. Fields not declared here are kept unchanged."""

from dl3.control.replies import Reply


class Tap(Reply):
    """The TAP interface of a port, an interface in Linux."""

    port: str
    name: str
    ifindex: int  # 0: the interface no longer exists
    carrier: bool
    adopted: bool  # it existed before dl3d started
    held: bool  # it persists after dl3d exits
    punted: int  # packets passed to Linux
    injected: int  # packets sent by Linux


class PuntClass(Reply):
    """A class of packets for Linux, with its rate limit; packets above the limit are dropped or forwarded."""

    name: str
    rate_pps: int
    burst: int
    overflow: str
    punted: int
    over_limit: int
    refused: int  # the TAP interface's queue was full, or the interface is down
    ring_full: int
    text: str


class Taps(Reply):
    """Method 'taps'."""

    namespace: str
    namespace_is_own: bool
    keep: bool
    taps: tuple[Tap, ...]
    classes: tuple[PuntClass, ...]


class Interface(Reply):
    """A port or a VLAN on a port, as mirrored from the kernel."""

    interface: int
    name: str | None
    port: str | None
    vrf: str | None
    mtu: int
    mac: str
    vlans: tuple[str, ...]
    up: bool
    all_to_linux: bool
    ip4_to_linux: bool
    ip6_to_linux: bool


class Burst(Reply):
    """A burst of consecutive netlink messages."""

    at_ns: int  # CLOCK_MONOTONIC, end of the burst
    us: float
    messages: int


class Mirror(Reply):
    """Method 'mirror'. The numbers of routes, neighbours and next hops are those of Linux."""

    state: str  # 'dumping', 'following' or 'incomplete'
    messages: int
    ignored: int
    malformed: int
    overruns: int
    dumps: int
    dumps_restarted: int
    dumps_partial: int
    last_dump_s: float
    routes4: int
    routes6: int
    neighbours: int
    nexthops: int
    control_bytes: int
    audited: int
    drifted: int
    drift_lasting: int  # of these, those that outlasted a dump of all tables
    managed: int
    receive_buffer_bytes: int
    interfaces: tuple[Interface, ...]
    vrfs: tuple[str, ...]
    bursts: tuple[Burst, ...] = ()  # the latest bursts, oldest first


class UnsupportedThing(Reply):
    """A kernel object that the datapath does not support."""

    what: str
    where: str
    effect: str
    alike: int


class Unsupported(Reply):
    """Method 'unsupported': the first of all objects found."""

    found: int
    unsupported: tuple[UnsupportedThing, ...]


class Verification(Reply):
    """Method 'verify': the first of all differences found."""

    compared: int
    macs: int = 0  # MAC addresses of bridges
    differences: int
    listed: tuple[str, ...]
