"""Frames in VXLAN for the comparison with Open vSwitch, and how both programs are set up for them."""

from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.layers.vxlan import VXLAN

from dl3.bench import bridges, macs, vxlans
from dl3.bench.bridges import Learnt
from dl3.bench.macs import MacSet, addresses, the_frame
from dl3.bench.onecore import environment
from dl3.bench.sides import Entry, PairSettings
from dl3.bench.vxlans import BOTH_WAYS, OUT_ONLY, Begun, make_vxlan_dl3d, outer_headers, port_words, underlay_words
from dl3.bench.workplace import Workplace
from dl3.lab.tables import ones_sum

FEW = {"few": MacSet(24, 6)}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workplace:
    """A program and a table in a folder of the test, and a set of few addresses."""
    program = tmp_path / "src" / "dl3d"
    program.parent.mkdir()
    program.touch()
    for module in (bridges, macs, vxlans):
        monkeypatch.setattr(module, "MAC_SETS", FEW)
    for module in (macs, vxlans):
        monkeypatch.setattr(module, "TABLES", tmp_path / "tables")
    monkeypatch.setattr(vxlans, "BUILD", tmp_path)
    monkeypatch.setattr(vxlans, "march_of_build", lambda _: "corei7")
    addresses.cache_clear()
    return Workplace(tmp_path, tmp_path / "onecore.so")


def puts_frames_into_valid_outer_headers() -> None:
    outer = outer_headers()
    assert len(outer) == 50
    assert ones_sum(outer[14:34]) == 0xFFFF
    whole = Ether(outer + the_frame())
    assert (whole[IP].len, whole[UDP].len, whole[UDP].chksum) == (100, 80, 0)
    assert (whole[UDP].dport, whole[VXLAN].vni, int(whole[VXLAN].flags)) == (4789, 100, 8)
    assert whole[VXLAN].payload[IP].src == "198.18.0.1"


@pytest.mark.parametrize("mode", [BOTH_WAYS, OUT_ONLY])
def ends_the_way_back_where_frames_only_go_out(mode: str, place: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    job = make_vxlan_dl3d(".", Entry("dl3d with VXLAN", mode=mode, macs="few"), PairSettings(), place).job
    told = environment(job, Path("s"))
    assert Path(told["ONECORE_OUTER"]).read_bytes() == outer_headers()
    assert ("ONECORE_BACK_UNTIL" in told) is (mode == OUT_ONLY)
    assert told["ONECORE_BACK"] == "1"
    begun = cast(Begun, job.begin)
    assert not begun()  # it does not run
    assert not list(place.folder.glob("*.known"))
    monkeypatch.setattr(Learnt, "__call__", lambda _: True)
    assert begun()
    assert len(list(place.folder.glob("*.known"))) == (mode == OUT_ONLY)


def gives_dl3d_a_bridge_whose_hosts_are_behind_a_port_and_a_remote_end(place: Workplace) -> None:
    job = make_vxlan_dl3d(".", Entry("dl3d with VXLAN", mode=BOTH_WAYS, macs="few"), PairSettings(), place).job
    whole: Any = yaml.safe_load(Path(job.command[1]).read_text(encoding="utf-8"))
    (bridge,) = whole["bridges"]
    assert bridge["ports"] == ["left", "third"]
    assert bridge["vxlan"] == {"vni": 100, "local": "192.0.2.1", "remotes": ["192.0.2.2"], "udp_checksum": "off"}
    assert [port.get("addresses") for port in whole["ports"]] == [None, ["192.0.2.1/24"], None]


def gives_open_vswitch_the_same_devices_and_remote_end() -> None:
    words = port_words(PairSettings())
    assert [word for word in words if word.startswith("options:dpdk-devargs")] == [
        f"options:dpdk-devargs=net_null{i}" for i in range(3)
    ]
    assert words[words.index("right") - 1] == "underlay"
    assert {"options:key=100", "options:csum=false", "options:remote_ip=192.0.2.2"} <= set(words)
    assert 'other_config:hwaddr="02:00:00:00:02:01"' in underlay_words()
