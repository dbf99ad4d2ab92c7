"""The reply of dl3d's method about MPLS labels."""

from dl3.control.replies import Member, Reply


class Label(Reply):
    """A received label, and what is done with it."""

    label: int
    does: str  # 'forward', 'lookup' or 'linux'
    ttl: str  # 'uniform' or 'pipe' (RFC 3443)
    vrf: str | None  # of 'lookup'
    via: str | None
    port: str | None
    interface: str | None = None
    labels: tuple[int, ...] = ()  # in its place, the outermost one first
    members: tuple[Member, ...] = ()  # of several next hops


class Labels(Reply):
    """Method 'labels': one page, and the start of the next."""

    n: int
    labels: tuple[Label, ...]
    next: int | None
