"""Replies of dl3d's methods about bridges."""

from dl3.control.replies import Reply


class Storm(Reply):
    """Limits of storm control for each port, in frames per second; None: no limit."""

    broadcast: int | None
    multicast: int | None
    unknown: int | None


class Member(Reply):
    """What is in a bridge, and how many MAC addresses were learnt behind it."""

    learning: bool
    flood: bool
    isolated: bool
    learnt_macs: int
    broadcast_flood: bool = True
    multicast_flood: bool = True
    pvid: int | None = None  # None: there is none, or the bridge does not filter by VLAN
    vlans: int | None = None  # how many it has; None: the bridge does not filter by VLAN


class BridgePort(Member):
    """A port of a bridge."""

    port: str
    link_up: bool
    hairpin: bool
    max_macs: int | None  # None: no limit of its own
    storm: Storm | None = None  # its own limits; None of each: as the bridge says


class BridgeVxlan(Member):
    """A VXLAN device of a bridge."""

    device: str
    vni: int | None
    flood_remotes: int  # remote ends that get its floods
    learning_remotes: bool  # the remote end is learnt with an address


class Snooping(Reply):
    """How workers forward to groups; without a querier, they flood packets to them."""

    ip4_querier: bool
    ip6_querier: bool
    groups: int


class Bridge(Reply):
    """A bridge, and what happened to its MAC addresses since it was added."""

    name: str
    ageing_s: int
    max_macs: int | None  # None, here and below: Linux decides
    static_macs: int
    learnt_macs: int
    filters_vlans: bool = False
    added: int
    moved: int
    aged: int | None
    held: int | None  # times that an address was held, because it moved too often
    refused: int  # because of a limit
    evicted: int | None  # to make room for those of other ports
    snooping: Snooping | None = None  # None: the bridge does not snoop, or frames to groups are Linux's
    storm: Storm
    pvid: int | None = None  # of the bridge itself; None: there is none, or it does not filter by VLAN
    vlans: int | None = None  # how many it has itself; None: likewise
    ports: tuple[BridgePort, ...]
    vxlans: tuple[BridgeVxlan, ...] = ()


class Bridges(Reply):
    """Method 'bridges'."""

    bridges: tuple[Bridge, ...]
    guarded: int | None = None  # frames that Linux did not flood as well; None: it has no guard


class Mac(Reply):
    """A MAC address of a bridge."""

    mac: str
    bridge: str | None
    vlan: int | None = None  # None: the bridge does not filter by VLAN
    port: str | None
    kind: str  # static, learnt, held, or linux
    idle_s: int | None  # since its latest frame; None: static, or of Linux, and workers have seen none


class Macs(Reply):
    """Method 'macs': one page, and the start of the next."""

    macs: tuple[Mac, ...]
    next: int | None


class Group(Reply):
    """A group of a bridge that snoops, and where frames to it go."""

    group: str
    bridge: str
    vlan: int | None = None  # None: the bridge does not filter by VLAN
    ports: tuple[str, ...]
    linux: bool  # Linux gets the frame itself, too


class Groups(Reply):
    """Method 'groups': one page, and the start of the next."""

    groups: tuple[Group, ...]
    next: int | None
