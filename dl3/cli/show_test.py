"""Cells of 'dl3 show' that no table of the system tests has."""

import pytest

from dl3.cli.show import UNCOUNTED, lost
from dl3.control.replies import Port


@pytest.mark.parametrize(
    ("missed", "errors", "cell"),
    [(0, 0, 0), (5, 2, 7), (5, None, 5), (0, None, 0), (None, 0, UNCOUNTED), (None, None, UNCOUNTED), (None, 2, 2)],
)
def losses_that_are_not_counted_are_not_0(missed: int | None, errors: int | None, cell: int | str) -> None:
    counted = dict.fromkeys(("port", "mtu", "rx_queues", "rx_packets", "rx_bytes", "tx_packets", "tx_bytes"), 0)
    losses = {"rx_missed": missed, "rx_no_mbuf": None, "rx_errors": errors, "tx_errors": 0}
    port = Port.model_validate({**counted, **losses, "name": "a", "device": "", "mac": "", "link_up": True})
    assert lost(port) == cell
