"""Streams as written by users."""

from typing import Any

import pytest

from dl3.model.fault import UsageFault
from dl3.model.stream import Stream, shares


def stream(**keys: Any) -> Stream:
    return Stream.model_validate(keys)


def keeps_all_that_was_written_but_size_rate_and_number() -> None:
    written = {"from": "a", "to": "b", "vlan": 5, "rate": "1 Mpps", "size": 128, "frames": 9}
    made = Stream.model_validate(written).at("64", 1234.5678)
    assert made.written() == {"from": "a", "to": "b", "vlan": 5, "rate": 1234.567, "size": 64}
    assert made.at("imix", 0).written()["size"] == "imix"
    assert made.at("imix", 0).written()["rate"] == "max"


def replays_a_capture_with_the_sizes_that_it_has() -> None:
    replay = stream(name="r", pcap="x.pcap", stamp=True, loops=3, rate="x2")
    assert replay.at("capture", 5e5).written() == {"name": "r", "pcap": "x.pcap", "stamp": True, "rate": 5e5}
    for one, frame in ((replay, "64"), (stream(name="r"), "capture")):
        with pytest.raises(UsageFault, match=f"stream r: frames of '{frame}' were requested, but captured frames"):
            one.at(frame, 1)


@pytest.mark.parametrize(
    ("rates", "wanted"),
    [
        (["1 Mpps", "500 kpps"], [2 / 3, 1 / 3]),
        (["9 Gbit/s l2", "9 Gbit/s l2"], [0.5, 0.5]),
        (["10 %", "30 %"], [0.25, 0.75]),
        ([None, "max"], [0.5, 0.5]),
        (["0 pps", "0 pps"], [0.5, 0.5]),
        (["5 pps"], [1.0]),
        (["0.1 Tbit/s", "300Gbit/s"], [0.25, 0.75]),
        (["1.2.3 pps", ". pps"], [0.5, 0.5]),  # rejected by dl3gen
    ],
)
def shares_frames_out_as_the_rates_are(rates: list[str | None], wanted: list[float]) -> None:
    assert shares([stream(rate=rate) for rate in rates]) == pytest.approx(wanted)


def refuses_rates_that_cannot_be_compared() -> None:
    with pytest.raises(UsageFault, match="different units"):
        shares([stream(rate="10 %"), stream(rate="1 Mpps")])


@pytest.mark.parametrize(
    ("keys", "bytes_"),
    [
        ({}, 64),
        ({"vlan": 7}, 68),
        ({"protocol": "tcp"}, 68),
        ({"dst_ip": {"first": "198.19.0.1", "count": 9}}, 64),
        ({"dst_ip": {"first": "2001:db8::1", "count": 9}}, 84),
        ({"src_ip": "2001:db8::1", "protocol": "tcp", "vlan": 1}, 92),
        ({"encap": {"type": "mpls", "labels": 16}}, 68),
        ({"encap": {"type": "mpls", "labels": [1, {"first": 2, "count": 3}]}, "vlan": 1}, 76),
        ({"encap": {"type": "mpls-udp", "labels": [1], "src_ip": "192.0.2.1", "dst_ip": "192.0.2.2"}}, 96),
        ({"encap": {"type": "gre", "key": 0, "src_ip": "2001:db8::1", "dst_ip": "2001:db8::2"}}, 112),
        ({"encap": {"type": "gretap", "src_ip": "192.0.2.1", "dst_ip": "192.0.2.2"}}, 102),
        ({"encap": {"type": "vxlan", "vni": 5, "src_ip": "192.0.2.1", "dst_ip": "192.0.2.2"}, "protocol": "tcp"}, 118),
        ({"encap": "vxlan"}, 64),
    ],
)
def computes_the_smallest_frame(keys: dict[str, Any], bytes_: int) -> None:
    assert stream(**keys).smallest_bytes() == bytes_
