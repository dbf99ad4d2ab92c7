"""Drivers of network cards."""

import pytest

from dl3.host.checks.drivers import check
from dl3.host.fixture import Machine, found


@pytest.mark.parametrize(("driver", "is_fine"), [("ixgbe", False), ("vfio-pci", True), ("mlx5_core", True)])
def one_card_at_least_has_a_driver_for_dpdk(driver: str, is_fine: bool) -> None:
    said = [("speed", f"no network card has a driver for DPDK: 0000:03:00.0 ({driver})")]
    assert found(check, Machine(driver=driver)) == ([] if is_fine else said)


def the_management_card_needs_none() -> None:
    made = Machine()
    made.default_route(4, "eth0")
    assert found(check, made) == []
