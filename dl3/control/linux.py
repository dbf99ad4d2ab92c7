"""What dl3d answers about Linux as its control plane; fields that are not named here are kept as they came."""

from dl3.control.replies import Reply


class Tap(Reply):
    """A port's TAP interface: an interface in Linux."""

    port: str
    name: str
    ifindex: int  # 0: gone
    carrier: bool
    adopted: bool  # it was there before dl3d started
    held: bool  # it outlasts dl3d
    punted: int  # packets that Linux got
    injected: int  # packets that Linux sent


class PuntClass(Reply):
    """One class of packets for Linux, with its limit; those over it are dropped, or forwarded."""

    name: str
    rate_pps: int
    burst: int
    overflow: str
    punted: int
    over_limit: int
    refused: int  # the TAP interface's queue was full, or it is set down
    ring_full: int
    text: str


class Taps(Reply):
    """Method 'TAP interfaces'."""

    namespace: str
    namespace_is_own: bool
    keep: bool
    taps: tuple[Tap, ...]
    classes: tuple[PuntClass, ...]


class Interface(Reply):
    """A port or a VLAN on one, as the mirror has it."""

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
    """Messages of Linux that came one upon the other."""

    at_ns: int  # CLOCK_MONOTONIC, of its end
    us: float
    messages: int


class Mirror(Reply):
    """Method 'mirror'; numbers of routes, neighbours and next hops are those of Linux."""

    state: str  # 'dumping' or 'following'
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
    managed: int
    receive_buffer_bytes: int
    interfaces: tuple[Interface, ...]
    vrfs: tuple[str, ...]
    bursts: tuple[Burst, ...] = ()  # the newest ones, oldest first


class UnsupportedThing(Reply):
    """One thing in Linux that workers cannot express."""

    what: str
    where: str
    effect: str
    alike: int


class Unsupported(Reply):
    """Method 'unsupported': the first ones of all that were found."""

    found: int
    unsupported: tuple[UnsupportedThing, ...]


class Verification(Reply):
    """Method 'verify': the first differences of all that were found."""

    compared: int
    differences: int
    listed: tuple[str, ...]
