"""Streams across the links, and the configuration files of both sides."""

from pathlib import Path

import pytest

from dl3.lab.links import Flows, Links, addresses_and_ports, streams

LINKS = Links(Path("/private"), 14)


def gives_both_ends_of_a_link_one_socket_and_other_roles() -> None:
    server, client = LINKS.device(1, "server"), LINKS.device(1, "client")
    assert server == "net_memif1,role=server,id=0,socket=/private/right.memif,socket-abstract=no,rsize=14"
    assert client == server.replace("server", "client")


def lets_only_the_client_do_without_copying() -> None:
    links = Links(Path("/private"), 14, is_zero_copy=True)
    assert links.devices("server") == LINKS.devices("server")
    assert all(device.endswith(",zero-copy=yes") for device in links.devices("client"))


@pytest.mark.parametrize("number", [1, 2, 1000, 65_024, 65_025, 1_000_000, 1 << 24])
def makes_as_many_flows_as_are_wanted(number: int) -> None:
    hosts, ports = addresses_and_ports(number)
    assert hosts * ports >= number
    assert hosts <= 65_024
    assert 1024 + ports <= 65_536


def sends_one_stream_each_way() -> None:
    east, west = streams(Flows(is_both_ways=True))
    assert (east["from"], east["to"], west["from"], west["to"]) == ("left", "right", "right", "left")
    assert east["dst_ip"]["first"] == west["src_ip"] == "198.19.0.1"
    assert streams(Flows()) == [east]
