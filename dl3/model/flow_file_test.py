"""The file of flows: what is written can be read, and each damaged byte is noticed."""

import struct
from pathlib import Path

import numpy as np
import pytest

from dl3.model.fault import UsageFault
from dl3.model.flow_file import ACTION, FLOW, IS_IPV6, RECORD_BYTES, VIA, FlowWriter, Records, read_flow_file


def _flows(n: int) -> Records:
    flows = np.zeros(n, dtype=FLOW)
    flows["src4"] = 0x64010203 + np.arange(n)
    flows["dst4"], flows["src_port"], flows["dst_port"], flows["proto"] = 0x0A000001, 258, 53, 17
    flows["packets"], flows["bytes"] = np.arange(n), np.arange(n) * 60
    return flows


def _actions() -> Records:
    actions = np.zeros(2, dtype=ACTION)
    actions["dscp"] = 64
    actions[1]["do"], actions[1]["via_family"], actions[1]["dev"] = VIA, 4, b"east"
    actions[1]["via"][:4] = (10, 0, 0, 2)
    return actions


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with FlowWriter(tmp_path / "flows") as writer:
        writer.add(_flows(2))
        writer.add(_flows(1))
        writer.finish(_actions(), 1_700_000_000_000)
    return tmp_path / "flows"


def bytes_are_those_of_the_documentation(path: Path) -> None:
    content = path.read_bytes()
    assert list(path.parent.iterdir()) == [path]
    assert len(content) == 6 * RECORD_BYTES
    assert struct.unpack_from("<8sIIQQ", content) == (b"DL3FLOWS", 1, 2, 3, 1_700_000_000_000)
    flow, action = content[128:192], content[320:384]
    assert flow[:4] == bytes((100, 1, 2, 4))
    assert flow[16:20] == bytes((10, 0, 0, 1))
    assert struct.unpack_from(">HH", flow, 32) == (258, 53)
    assert struct.unpack_from("<HBBIIQQ", flow, 36) == (0, 17, 0, 0, 0, 1, 60)
    assert action[:3] == bytes((1, 64, 4))
    assert (action[8:12], action[24:40]) == (bytes((10, 0, 0, 2)), b"east".ljust(16, b"\0"))


def what_is_written_can_be_read(path: Path) -> None:
    found = read_flow_file(path)
    assert (found.flows == np.concatenate([_flows(2), _flows(1)])).all()
    assert (found.actions == _actions()).all()
    assert found.saved_ms == 1_700_000_000_000


def a_change_of_any_byte_is_noticed(path: Path) -> None:
    content = path.read_bytes()
    for at in range(len(content)):
        path.write_bytes(content[:at] + bytes((content[at] ^ 0x10,)) + content[at + 1 :])
        with pytest.raises(UsageFault):
            read_flow_file(path)


@pytest.mark.parametrize("n", [0, 63, 64, 128, 383, 448])
def a_wrong_size_is_noticed(path: Path, n: int) -> None:
    path.write_bytes(path.read_bytes().ljust(n, b"\0")[:n])
    with pytest.raises(UsageFault, match=r"not a file of flows|header says"):
        read_flow_file(path)


@pytest.mark.parametrize(
    ("field", "value"),
    [("kind", 10), ("kind", 0x20), ("action", 2), ("time_ms", 345_600_001), ("src", [1] * 16), ("dst", [1] * 16)],
)
def the_first_invalid_flow_is_named(tmp_path: Path, field: str, value: object) -> None:
    flows = _flows(70_000)
    flows[field][[66_000, 69_000]] = value
    with FlowWriter(tmp_path / "flows") as writer:
        writer.add(flows)
        writer.finish(_actions(), 0)
    with pytest.raises(UsageFault, match="flow 66,001 is invalid"):
        read_flow_file(tmp_path / "flows")


def addresses_of_ipv6_flows_have_16_bytes(tmp_path: Path) -> None:
    flows = _flows(1)
    flows["kind"], flows["src"], flows["dst"] = IS_IPV6 | 8, range(16), range(16, 32)
    with FlowWriter(tmp_path / "flows") as writer:
        writer.add(flows)
        writer.finish(_actions(), 0)
    assert read_flow_file(tmp_path / "flows").flows[0]["dst"].tolist() == list(range(16, 32))


def nothing_remains_of_a_file_that_is_not_complete(tmp_path: Path) -> None:
    with FlowWriter(tmp_path / "flows") as writer:
        writer.add(_flows(1))
    assert not list(tmp_path.iterdir())
