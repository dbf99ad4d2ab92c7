"""The reply of dl3d's method about tunnels."""

from dl3.control.replies import Reply


class Tunnel(Reply):
    """A tunnel, the way to its other end, and what went through it."""

    name: str | None
    kind: str  # ipip, udp, gre, gretap, vxlan
    local: str
    remote: str | None  # None, here and below: VXLAN, which has many
    key: int | None  # of GRE; VXLAN: VNI
    dport: int | None  # of UDP
    via: str | None
    port: str | None
    verdict: str | None
    tx_packets: int
    tx_bytes: int
    rx_packets: int
    rx_bytes: int


class Tunnels(Reply):
    """Method 'tunnels': the first ones of `n`."""

    n: int
    tunnels: tuple[Tunnel, ...]
