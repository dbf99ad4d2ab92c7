"""Drivers of network cards."""

from dl3.host.change.root import Root
from dl3.host.facts.devices import PCI
from dl3.host.tree import last_part
from dl3.model.fault import Fault

DRIVERS = "/sys/bus/pci/drivers"


def driver_of(root: Root, address: str) -> str | None:
    """The present driver of a card."""
    return last_part(root.tree.link(f"{PCI}/{address}/driver"))


def has_override(root: Root, address: str) -> bool:
    """Whether only one driver may take a card."""
    return (root.read(f"{PCI}/{address}/driver_override") or b"").strip() not in (b"", b"(null)")


def bind(root: Root, address: str, driver: str | None, override: str) -> None:
    """Give a card to a driver. Other cards of the same kind are not affected, unlike with new_id."""
    at, now = f"{PCI}/{address}", driver_of(root, address)
    root.poke(f"{at}/driver_override", override)
    if now not in (driver, None):
        root.poke(f"{at}/driver/unbind", address)
    if driver not in (now, None):
        root.poke("/sys/bus/pci/drivers_probe", address)
    if driver_of(root, address) != driver:
        raise Fault(f"{address} did not get the driver {driver}: the kernel's log says why (dmesg)")


def load_module(root: Root, driver: str) -> None:
    """Load the module of a driver."""
    if not root.tree.has(f"{DRIVERS}/{driver}"):
        root.run(("modprobe", driver))
