"""The configuration file of dl3d."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from dl3.dut.dl3d import Dl3d
from dl3.lab.endpoint import Endpoint
from dl3.lab.links import Flows, Links, generator_file, streams
from dl3.lab.vhost import Vhost


def names_each_side_as_the_others_next_hop(tmp_path: Path) -> None:
    endpoint = Endpoint(Links(tmp_path, 10), cores=(1,), burst=32, memory_mib=256)
    file = Dl3d(Path("dl3d"), routes=("203.0.113.0/24 dev left",)).file(endpoint)
    given = generator_file(endpoint.links, (0,), 32, streams(Flows()))
    for number, port in enumerate(given["ports"]):
        assert f"lladdr {port['mac']} dev {port['name']}" in file["neighbours"][number]
    assert given["streams"][0]["dst_mac"] == file["ports"][0]["mac"]
    assert file["routes"] == [
        "198.18.0.0/16 via 10.0.1.2 dev left",
        "198.19.0.0/16 via 10.0.2.2 dev right",
        "2001:2:0:1::/64 via 2001:db8:1::2 dev left",
        "2001:2:0:2::/64 via 2001:db8:2::2 dev right",
        "203.0.113.0/24 dev left",
    ]


def is_a_bridge_whose_ports_have_no_address(tmp_path: Path) -> None:
    endpoint = Endpoint(Vhost(tmp_path, 256), cores=(1,), burst=32, memory_mib=256)
    file = Dl3d(Path("dl3d"), mode="bridge").file(endpoint)
    left, right = (tmp_path / name for name in ("left", "right"))
    assert [port["device"] for port in file["ports"]] == [
        f"net_vhost0,iface={left},queues=1",
        f"net_vhost1,iface={right},queues=1",
    ]
    assert not {"mac", "addresses", "mode"} & {key for port in file["ports"] for key in port}
    sent = generator_file(endpoint.links, (0,), 32, streams(Flows(is_both_ways=True)))["streams"]
    assert file["bridges"] == [
        {
            "name": "br0",
            "ports": ["left", "right"],
            "macs": [{"mac": stream["dst_mac"], "port": stream["to"]} for stream in sent],
        }
    ]
    assert "routes" not in file


def names_dpdk_once(tmp_path: Path) -> None:
    endpoint = Endpoint(Links(tmp_path, 10), cores=(1,), burst=32, memory_mib=256)
    says: dict[str, Any] = {"version": "0.1.0", "dpdk": "DPDK 22.11.11", "workers": []}
    device: Any = SimpleNamespace(client=SimpleNamespace(ask=lambda kind, _method: kind.model_validate(says)))
    assert Dl3d(Path("dl3d")).about(endpoint, device)["version"] == "dl3d 0.1.0, DPDK 22.11.11"


def configures_idling_of_dl3d_only_where_it_is_requested(tmp_path: Path) -> None:
    endpoint = Endpoint(Links(tmp_path, 10), cores=(1,), burst=32, memory_mib=256)
    assert "idle" not in Dl3d(Path("dl3d")).file(endpoint)
    assert Dl3d(Path("dl3d"), idle="sleep").file(endpoint)["idle"] == "sleep"


def notes_what_dl3d_does_without_frames(tmp_path: Path) -> None:
    endpoint = Endpoint(Links(tmp_path, 10), cores=(1,), burst=32, memory_mib=256)
    worker = {"worker": 0, "core": 3, "numa": 0, "queues": (), "counters": {}, "empty_share": 0.0, "idle": "sleep"}
    worker["woken_by"] = "frames"
    worker |= {"poll_gap": None, "cycles_per_packet": None, "verdicts": {}}
    says = {"version": "0.1.0", "dpdk": "DPDK 22.11.11", "workers": [worker, worker]}
    device: Any = SimpleNamespace(client=SimpleNamespace(ask=lambda kind, _method: kind.model_validate(says)))
    about = Dl3d(Path("dl3d")).about(endpoint, device)
    assert (about["idle"], about["woken_by"]) == ("sleep", "frames")
