"""Streams of a traffic definition."""

from typing import Any

import pytest

from dl3.model.campaign import Traffic
from dl3.model.fault import UsageFault
from dl3.model.traffic import End, pairs_of, streams_for

ENDS = tuple(
    End(port=f"p{i}", mac=f"02:00:00:00:00:1{i}", gateway_mac=f"02:00:00:00:00:0{i}", first_ip4=f"198.18.{i}.1")
    for i in range(4)
)


@pytest.mark.parametrize(
    ("direction", "n", "wanted"),
    [
        ("unidirectional", 2, {(0, 1)}),
        ("unidirectional", 4, {(0, 1), (2, 3)}),
        ("bidirectional", 2, {(0, 1), (1, 0)}),
        ("bidirectional", 4, {(0, 1), (1, 0), (2, 3), (3, 2)}),
        ("meshed", 2, {(0, 1), (1, 0)}),
        ("meshed", 3, {(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)}),
    ],
)
def determines_who_sends_to_whom(direction: Any, n: int, wanted: set[tuple[int, int]]) -> None:
    pairs = pairs_of(direction, n)
    assert set(pairs) == wanted
    assert len(pairs) == len(wanted)


@pytest.mark.parametrize(("direction", "n"), [("bidirectional", 3), ("unidirectional", 1), ("meshed", 1)])
def refuses_ends_that_have_no_partner(direction: Any, n: int) -> None:
    with pytest.raises(UsageFault, match="expected an even number of ports"):
        pairs_of(direction, n)


def sends_from_each_end_to_the_gateway_on_its_wire() -> None:
    east, west = (one.written() for one in streams_for(Traffic(), ENDS[:2]))
    assert (east["name"], east["from"], east["to"], west["from"], west["to"]) == ("east", "p0", "p1", "p1", "p0")
    assert (east["dst_mac"], east["src_mac"]) == (ENDS[0].gateway_mac, ENDS[0].mac)
    assert east["dst_ip"] == {"first": "198.18.1.1", "count": 1}
    assert west["src_ip"] == "198.18.1.1"


@pytest.mark.parametrize("flows", [1, 2, 1000, 65_024, 65_025, 1_000_000, 16_777_216])
@pytest.mark.parametrize("distribution", ["uniform", "sequential"])
def has_fields_for_all_flows(flows: int, distribution: Any) -> None:
    (east,) = streams_for(Traffic(direction="unidirectional", flows=flows, distribution=distribution), ENDS[:2])
    written: Any = east.written()
    hosts, ports = written["dst_ip"]["count"], written["src_port"]["count"]
    assert written["flows"] == flows <= hosts * ports < flows + hosts
    assert written.get("distribution") == (distribution if flows > 1 else None)


def sends_the_flows_of_the_white_paper_to_either_side() -> None:
    ends = [
        one.model_copy(update={"first_of_white_paper": f"{n}.0.0.0"})
        for one, n in zip(ENDS[:2], (201, 101), strict=True)
    ]
    made = streams_for(Traffic(flows=16_777_216, addresses="white-paper"), ends)
    east, west = (one.written() for one in made)
    assert (east["src_ip"], east["src_port"], east["dst_port"], east["from"]) == ("100.10.0.1", 11, 101, "p0")
    assert east["dst_ip"] == {"first": "101.0.0.0", "count": 16_777_216}
    assert west["dst_ip"] == {"first": "201.0.0.0", "count": 16_777_216}
    assert east["flows"] == west["flows"] == 16_777_216
    with pytest.raises(UsageFault, match="ipv4 of the white-paper between p0 and p1: this testbed has no such"):
        streams_for(Traffic(addresses="white-paper"), ENDS[:2])
    with pytest.raises(UsageFault, match="ipv6 of the white-paper"):
        streams_for(Traffic(addresses="white-paper", family="ipv6"), ends)


def takes_the_flows_of_each_stream_in_an_order_of_its_own() -> None:
    east, west = (one.written() for one in streams_for(Traffic(flows=9, distribution="zipf"), ENDS[:2]))
    assert (east["seed"], west["seed"], east["distribution"]) == (1, 2, "zipf")


def takes_a_person_s_own_streams_as_they_are() -> None:
    own = {"from": "a", "to": "b", "vlan": 7}
    (made,) = streams_for(Traffic(streams=(own,)), ENDS)
    assert made.written() == own


def reports_that_a_bed_has_no_such_addresses() -> None:
    with pytest.raises(UsageFault, match="ipv6 between p0 and p1"):
        streams_for(Traffic(family="ipv6"), ENDS[:2])
