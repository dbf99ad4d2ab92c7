"""Loads in the form that dl3gen's method takes."""

from typing import Any

import pytest

from dl3.model.stream import Stream
from dl3.trial.order import Order, Surplus

EAST = Stream.model_validate({"from": "left", "to": "right", "rate": "3 Mpps", "id": 7, "frames": 5})
WEST = Stream.model_validate({"name": "west", "from": "right", "to": "left", "rate": "1 Mpps"})


def shares_a_burst_out_as_the_rates_are() -> None:
    written = Order((EAST, WEST), "64", 1e6, 1.0, frames=1000).written()
    assert [(stream["rate"], stream["frames"]) for stream in written] == [(750_000.0, 750), (250_000.0, 250)]


def sends_a_burst_as_fast_as_can_be() -> None:
    (written,) = Order((EAST,), "64", 0.0, 1.0, frames=10).written()
    assert (written["rate"], written["frames"]) == ("max", 10)


def a_surplus_ends_after_its_time_and_the_rest_goes_on() -> None:
    order = Order((EAST, WEST), "64", 500_000.0, 3.0, surplus=Surplus(600_000.0, 2.0))
    written: list[dict[str, Any]] = order.written()
    assert order.asked_pps == 1_100_000
    assert [stream.get("frames") for stream in written] == [None, None, 900_000, 300_000]
    assert [stream["rate"] for stream in written] == [375_000, 125_000, 450_000, 150_000]
    for more in written[2:]:
        assert more["frames"] / more["rate"] == pytest.approx(2.0)
    assert [stream.get("name") for stream in written] == [None, "west", "stream0-more", "west-more"]
    assert all("id" not in stream for stream in written)
