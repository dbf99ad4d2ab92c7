"""A router whose ports p0 to p2 are in a bridge with addresses, and p3 is routed.

x0, x1, x2 -- p0, p1, p2 [ br0 router ] p3 -- out     br0 has 10.0.5.1/24 and 2001:db8:a5::1/64, p3 10.0.3.1/24, ...
"""

from typing import Any

from dl3.lab.namespace import Lab
from harness.network import FAMILIES, length, network
from harness.router import DEVICE, Dl3dRouter, KernelRouter, Router, port_name
from harness.shell import batch
from harness.wire import wait_until

BRIDGED, ROUTED, N_LINKS = (0, 1, 2), 3, 4
BRIDGE = 5  # the number of its network
BRIDGE_MAC = "02:00:00:00:05:01"


def settings() -> list[str]:
    """The lines of `ip -batch` that make the bridge."""
    lines = ["link add br0 type bridge", f"link set br0 address {BRIDGE_MAC} up"]
    for link in BRIDGED:
        lines += [f"link set {port_name(link)} master br0", f"link set {port_name(link)} up"]
    lines.append(f"link set {port_name(ROUTED)} up")
    return lines + addresses()


def addresses() -> list[str]:
    """The lines that give the router its addresses."""
    lines = []
    for family in FAMILIES:
        lines.append(f"address replace {network(family, BRIDGE, 1)}/{length(family)} dev br0")
        lines.append(f"address replace {network(family, ROUTED, 1)}/{length(family)} dev {port_name(ROUTED)}")
    return lines


class BridgedRouter:
    """The router, of one of both kinds, and its lab; cables are laid between the two steps. Close it."""

    def __init__(self, kind: str, device: str = DEVICE) -> None:
        self.lab = Lab()
        try:
            self.router: Router = Dl3dRouter(self.lab, device) if kind == "dl3d" else KernelRouter(self.lab)
        except BaseException:
            self.lab.close()
            raise

    def start(self) -> None:
        """Once all cables are laid."""
        self.router.start(N_LINKS)
        batch(self.router.namespace, settings())
        shown = ("-d", "link", "show")
        wait_until(
            lambda: self.router.namespace.ip(*shown).count("state forwarding") == len(BRIDGED), "all ports forwarded"
        )
        wait_until(self.is_served, "workers served all ports")
        self.router.settle()

    @property
    def dl3d(self) -> Dl3dRouter | None:
        """The router if it is dl3d."""
        return self.router if isinstance(self.router, Dl3dRouter) else None

    def ip(self, *lines: str) -> None:
        """Run lines of `ip -batch` in the router's namespace; returns once they apply to packets."""
        batch(self.router.namespace, lines)
        self.router.settle()

    def is_served(self) -> bool:
        """Whether workers serve all ports of the bridge."""
        if not self.dl3d:
            return True
        bridges = self.dl3d.call("bridges")["bridges"]
        return bool(bridges) and len(bridges[0]["ports"]) == len(BRIDGED)

    def knows(self, mac: str) -> str | None:
        """The port behind which workers, or the kernel alone, have an address."""
        if self.dl3d:
            rows: list[dict[str, Any]] = self.dl3d.call("macs", limit=1000)["macs"]
            return next((str(row["port"]) for row in rows if row["mac"] == mac), None)
        shown = self.router.namespace.run("bridge", "fdb", "show", "br", "br0").splitlines()
        found = [line.split() for line in shown if line.startswith(mac) and "permanent" not in line]
        return found[0][found[0].index("dev") + 1] if found else None

    def close(self) -> None:
        """Stop the router, remove all namespaces."""
        self.router.close()
        self.lab.close()
