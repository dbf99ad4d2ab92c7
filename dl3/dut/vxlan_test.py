"""Frames in VXLAN for devices that are measured with it, and how both kinds are set up."""

from pathlib import Path

import pytest

from dl3.dut import dl3d, linux, vxlan
from dl3.lab.endpoint import Endpoint
from dl3.lab.links import ENDS, Links
from dl3.model.campaign import Traffic
from dl3.model.fault import UsageFault
from dl3.model.traffic import streams_for

STREAMS = streams_for(Traffic(flows=20), ENDS)


def puts_what_comes_from_the_underlay_into_vxlan() -> None:
    east, west = vxlan.carried({"mode": "vxlan"}, STREAMS)
    assert east == STREAMS[0]
    written = west.at("64", 1000).written()
    assert written["encap"] == {
        "type": "vxlan",
        "vni": 100,
        "src_ip": "192.0.2.2",
        "dst_ip": "192.0.2.1",
        "inner_src_mac": east.written()["dst_mac"],
        "inner_dst_mac": east.written()["src_mac"],
    }
    assert written["size"] == 64 + 50
    assert {key: value for key, value in west.written().items() if key != "encap"} == STREAMS[1].written()
    assert vxlan.carried({"mode": "bridge"}, STREAMS) == STREAMS


def takes_no_mixes() -> None:
    _, west = vxlan.carried({"mode": "vxlan"}, STREAMS)
    with pytest.raises(UsageFault, match="frames of 'imix' cannot be sent in VXLAN: take sizes, such as 64"):
        west.at("imix", 1000)


def gives_dl3d_a_bridge_of_hosts_and_a_remote_end(tmp_path: Path) -> None:
    endpoint = Endpoint(Links(tmp_path, 10), cores=(1,), burst=32, memory_mib=256)
    file = dl3d.Dl3d(Path("dl3d"), mode="vxlan").file(endpoint)
    hosts, underlay = file["ports"]
    east, west = vxlan.carried({"mode": "vxlan"}, STREAMS)
    assert not {"mac", "addresses"} & set(hosts)
    assert (underlay["mac"], underlay["addresses"]) == (west.written()["dst_mac"], ["192.0.2.1/24"])
    assert file["neighbours"] == [f"192.0.2.2 lladdr {west.written()['src_mac']} dev right"]
    (bridge,) = file["bridges"]
    assert (bridge["ports"], bridge["vxlan"]["vni"]) == (["left"], 100)
    assert "routes" not in file
    assert east.sender == "left"


def gives_linux_the_same() -> None:
    told = linux.Linux(mode="vxlan").configuration()
    assert any("vxlan id 100 local 192.0.2.1 remote 192.0.2.2 dstport 4789" in line for line in told["ip"])
    assert [line.split()[2:5] for line in told["bridge"]] == [
        ["02:00:00:00:00:11", "dev", "left"],
        ["02:00:00:00:00:01", "dev", "vxlan0"],
        ["02:00:00:00:00:01", "dev", "vxlan0"],
    ]
