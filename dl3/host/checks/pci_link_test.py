"""PCI Express links."""

import pytest

from dl3.host.checks.pci_link import check
from dl3.host.fixture import Machine, found


@pytest.mark.parametrize(
    ("speed", "width", "n_found"), [("8.0 GT/s PCIe", 8, 0), ("5.0 GT/s PCIe", 8, 1), ("8.0 GT/s PCIe", 4, 1)]
)
def names_a_card_in_a_slow_or_narrow_slot(speed: str, width: int, n_found: int) -> None:
    made, at = Machine(), "/sys/bus/pci/devices/0000:03:00.0"
    made.texts |= {f"{at}/current_link_speed": f"{speed}\n", f"{at}/max_link_speed": "8.0 GT/s PCIe\n"}
    made.texts |= {f"{at}/current_link_width": f"{width}\n", f"{at}/max_link_width": "8\n"}
    said = f"0000:03:00.0 runs at {speed} x{width} and supports 8.0 GT/s PCIe x8"
    assert found(check, made) == [("speed", said)] * n_found
