"""The flow table of a dl3d in the lab has exactly the flows that dl3gen sends."""

from ipaddress import IPv4Address
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dl3.dut import flow_table
from dl3.dut.dl3d import Dl3d, for_traffic
from dl3.dut.flow_table import FlowTable, table_for
from dl3.lab.endpoint import Endpoint
from dl3.lab.links import ENDS, Links
from dl3.model.campaign import Traffic
from dl3.model.fault import Fault, UsageFault
from dl3.model.flow_file import read_flow_file
from dl3.model.flow_records import saved_action
from dl3.model.traffic import streams_for

HOSTS = 65_024


def _keys(path: Path) -> list[tuple[str, str, int, int, str]]:
    """Addresses, ports and output interface of the flows of a file."""
    file = read_flow_file(path)
    devices = [saved_action(action).dev for action in file.actions]
    return [
        (
            str(IPv4Address(int(flow["src4"]))),
            str(IPv4Address(int(flow["dst4"]))),
            int(flow["src_port"]),
            int(flow["dst_port"]),
            devices[int(flow["action"])],
        )
        for flow in file.flows
    ]


def has_a_flow_per_address_then_per_port_each_way(tmp_path: Path) -> None:
    table = table_for(Traffic(direction="unidirectional", flows=HOSTS + 2), tmp_path)
    keys = _keys(table.path)
    assert table.number == len(keys) == 2 * (HOSTS + 2)
    assert keys[0] == ("198.18.0.1", "198.19.0.1", 1024, 4791, "right")
    assert keys[1] == ("198.18.0.1", "198.19.0.2", 1024, 4791, "right")
    assert keys[HOSTS + 1] == ("198.18.0.1", "198.19.0.2", 1025, 4791, "right")
    assert keys[HOSTS + 2] == ("198.19.0.1", "198.18.0.1", 1024, 4791, "left")
    assert len(set(keys)) == len(keys)


def has_the_flows_that_the_streams_of_the_white_paper_send(tmp_path: Path) -> None:
    traffic = Traffic(flows=300, addresses="white-paper")
    table = table_for(traffic, tmp_path)
    assert table.number == 600
    assert table.path.name == "white-paper-300.1.flows"
    sent = set()
    for stream in streams_for(traffic, ENDS):
        fields: Any = stream.written()
        first, count = int(IPv4Address(fields["dst_ip"]["first"])), fields["dst_ip"]["count"]
        ports = fields["src_port"], fields["dst_port"]
        sent |= {(fields["src_ip"], str(IPv4Address(first + i)), *ports, stream.to) for i in range(count)}
    assert set(_keys(table.path)) == sent
    assert len(sent) == 600


def reports_in_one_sentence_that_there_is_no_space(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Fault, match="the file of flows cannot be written: "):
        table_for(Traffic(flows=3), tmp_path / "file" / "tables")


def names_the_generator_as_next_hop(tmp_path: Path) -> None:
    file = read_flow_file(table_for(Traffic(), tmp_path).path)
    made = [saved_action(action) for action in file.actions]
    assert [(a.do, a.via, a.dev) for a in made] == [("via", "10.0.1.2", "left"), ("via", "10.0.2.2", "right")]


def keeps_the_file(tmp_path: Path) -> None:
    before = table_for(Traffic(flows=5), tmp_path).path.stat().st_mtime_ns
    again = table_for(Traffic(flows=5), tmp_path)
    assert again.path.stat().st_mtime_ns == before
    assert again.number == 10


@pytest.mark.parametrize("traffic", [Traffic(family="ipv6"), Traffic(streams=({"from": "left"},))])
def refuses_traffic_that_is_not_known(traffic: Traffic, tmp_path: Path) -> None:
    with pytest.raises(UsageFault, match="only made for IPv4 traffic"):
        table_for(traffic, tmp_path)


def routes_the_frames_of_the_white_paper_to_where_its_flows_lead(tmp_path: Path) -> None:
    endpoint = Endpoint(Links(tmp_path, 10), cores=(1,), burst=32, memory_mib=256)
    traffic = Traffic(flows=3, addresses="white-paper")
    dut = for_traffic(Dl3d(Path("dl3d")), {"lookup": "route"}, traffic, tmp_path)
    routes = ["101.0.0.0/8 via 10.0.2.2 dev right", "201.0.0.0/8 via 10.0.1.2 dev left"]
    assert dut.file(endpoint)["routes"][-2:] == routes


def configures_the_table_only_if_the_option_says_so(tmp_path: Path) -> None:
    endpoint = Endpoint(Links(tmp_path, 10), cores=(1,), burst=32, memory_mib=256)
    plain = for_traffic(Dl3d(Path("dl3d")), {"lookup": "route"}, Traffic(flows=3), tmp_path)
    assert "flow" not in plain.file(endpoint)
    dut = for_traffic(Dl3d(Path("dl3d")), {"lookup": "flow"}, Traffic(flows=3), tmp_path)
    path = tmp_path / "tables" / "lab-3.1.flows"
    assert dut.file(endpoint)["flow"] == {"ipv4": 6, "missing": "drop", "file": str(path)}
    with pytest.raises(UsageFault, match="not possible with 'mode: xconnect'"):
        for_traffic(Dl3d(Path("dl3d"), mode="xconnect"), {"lookup": "flow"}, Traffic(), tmp_path)


def _answers(monkeypatch: pytest.MonkeyPatch, states: list[str], flows: list[int]) -> Any:
    """A client whose replies are these, in turn."""

    def ask(_kind: type, method: str) -> object:
        if method == "flows":
            return SimpleNamespace(ipv4=SimpleNamespace(flows=flows.pop(0)))
        return SimpleNamespace(state=states.pop(0), reason="it is damaged", done=1)

    client = SimpleNamespace(path=Path("x"), ask=ask)
    monkeypatch.setattr(flow_table, "Client", lambda *_: client)
    return client


def waits_until_all_flows_are_loaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    flows = [0, 4, 6]
    client = _answers(monkeypatch, ["running", "running"], flows)
    FlowTable(tmp_path, 6).wait(client)
    assert not flows


def tells_why_flows_cannot_be_loaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    client = _answers(monkeypatch, ["failed"], [0])
    with pytest.raises(Fault, match="dl3d cannot load the flows: it is damaged"):
        FlowTable(tmp_path, 6).wait(client)
