"""What 'dl3 trace' asks dl3d, and how it tells the reply."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from scapy.utils import wrpcap
from typer.testing import CliRunner, Result

from dl3.cli.main import app
from dl3.control import client
from dl3.model.fault import Fault, UsageFault

PORT: dict[str, Any] = {
    "port": 0,
    "name": "left",
    "device": "x",
    "mac": "02:00:00:00:00:01",
    "mtu": 1500,
    "link_up": True,
    "rx_queues": 1,
    **dict.fromkeys(("rx_packets", "rx_bytes", "tx_packets", "tx_bytes"), 0),
    **dict.fromkeys(("rx_missed", "rx_no_mbuf", "rx_errors", "tx_errors")),
}
HOP: dict[str, Any] = {
    "id": 9,
    "members": 2,
    "kind": "via",
    "via": "10.0.2.2",
    "port": "right",
    "interface": "right.10",
    "mac": "02:00:00:00:01:02",
    "source_mac": "02:00:00:00:00:02",
    "mtu": 1500,
    "vlans": ["802.1Q 10"],
    "labels": [],
    "tunnel": None,
}
RULE: dict[str, Any] = {
    "list": "edge",
    "source": "acl",
    "direction": "in",
    "local": False,
    "number": 2,
    "name": "dns",
    "rule": "permit udp police.rate 1Mbit/s",
    "do": "permit",
    "police": "tokens",
    "step": "acl_in",
}
SENT: dict[str, Any] = {
    "do": "send",
    "port": "right",
    "step": "send",
    "verdict": "forward",
    "class": None,
    "text": "accepted by the device of the output port",
    "frame": 0,
}
TRACE: dict[str, Any] = {
    "port": "left",
    "cut_to": None,
    "steps": ["parse", "match", "lookup", "acl_in", "check", "rewrite", "encap", "send"],
    "bridge": None,
    "outer": None,
    "family": 4,
    "interface": "left",
    "vrf": "main",
    "vlans": [],
    "ttl": 64,
    "for_linux": False,
    "flow": None,
    "route": {"prefix": "203.0.113.0/24", "kind": "group", "workers_agree": True},
    "next_hop": HOP,
    "dscp": None,
    "mirror": None,
    "fragmented": False,
    "rules": [RULE],
    "ends": [SENT],
    "frames": [bytes(range(20)).hex()],
}
PACKET = "udp 10.0.0.1:1000 > 203.0.113.7:53"


def _asked(monkeypatch: pytest.MonkeyPatch, *words: str, **replies: Any) -> tuple[Result, Sequence[Any]]:
    """What was printed, and the methods with their parameters."""
    asked: list[Any] = []
    known = {"ports": {"ports": [PORT, PORT | {"name": "right", "mac": "02:00:00:00:00:02"}]}, "trace": TRACE} | replies

    def exchange(_path: Path, question: bytes, _timeout_s: float) -> bytes:
        given = json.loads(question)
        asked.append((given["method"], given["params"]))
        return json.dumps({"jsonrpc": "2.0", "id": 1, "result": known[given["method"]]}).encode()

    monkeypatch.setattr(client, "exchange", exchange)
    return CliRunner().invoke(app, ["trace", *words, "--socket", "/nowhere"]), asked


def each_step_is_told_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    done, asked = _asked(monkeypatch, PACKET, "-i", "left")
    assert [method for method, _ in asked] == ["ports", "trace"]
    frame = Ether(bytes.fromhex(asked[1][1]["frame"]))
    assert (asked[1][1]["port"], frame.dst) == ("left", PORT["mac"])
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    assert lines[0] == "10.0.0.1:1000 > 203.0.113.7:53 udp, 60 bytes, received on port left"
    assert [line.split(maxsplit=1) for line in lines[3:11]] == [
        ["parse", "IPv4 on interface left, VRF main, TTL 64"],
        ["match", "the packet has no flow"],
        ["lookup", "longest prefix 203.0.113.0/24 (group, 2 next hops)"],
        ["acl_in", "list edge (in), rule 2 dns: permit udp police.rate 1Mbit/s; its policer has tokens now"],
        [
            "check",
            "next hop 10.0.2.2 dev right.10, the one of 2 that this flow takes, MAC 02:00:00:00:01:02; MTU 1500",
        ],
        ["rewrite", "TTL 64 becomes 63; MAC 02:00:00:00:00:02 > 02:00:00:00:01:02"],
        ["encap", "VLAN tags written: 802.1Q 10"],
        ["send", "sent by port right"],
    ]
    assert lines[12:] == [
        "verdict: sent by port right",
        "",
        "20 bytes by right:",
        "  0000  00 01 02 03 04 05 06 07  08 09 0a 0b 0c 0d 0e 0f",
        "  0010  10 11 12 13",
    ]


def a_tunnel_is_told_at_both_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = {"local": "192.0.2.1", "remote": "192.0.2.9"}
    hop = TRACE["next_hop"] | {"labels": [100], "tunnel": ends, "interface": "mpls-udp-192.0.2.9"}
    outer = {"family": 6, "interface": "left", "vrf": "main", "vlans": [], "ttl": 9, "prefix": "2001:db8::1/128"}
    taken = {"outer": outer, "interface": "gre-192.0.2.7", "steps": ["parse", "lookup", "decap", "lookup", "encap"]}
    trace = TRACE | {"next_hop": hop} | taken
    text = _asked(monkeypatch, "--hex", "00", "-i", "left", trace=trace)[0].stdout
    assert "IPv6 on interface left, VRF main, TTL 9" in text
    assert "longest prefix 2001:db8::1/128 (local)" in text
    assert "taken out of tunnel gre-192.0.2.7: IPv4" in text
    assert "MPLS labels pushed: 100; in a packet from 192.0.2.1 to 192.0.2.9" in text


def labels_that_are_pushed_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    hop = TRACE["next_hop"] | {"labels": [100, 200]}
    done, _ = _asked(monkeypatch, PACKET, "-i", "left", trace=TRACE | {"next_hop": hop})
    assert "MPLS labels pushed: 100/200; VLAN tags written: 802.1Q 10" in done.stdout


def a_stopped_packet_has_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    end = SENT | {"do": "drop", "port": "left", "step": "acl_in", "verdict": "acl_denied", "text": "denied by a list"}
    rule = RULE | {"number": 0, "name": None, "rule": None, "do": "deny", "police": None}
    reply = TRACE | {"steps": ["parse", "lookup", "acl_in"], "rules": [rule], "ends": [end]}
    done, _ = _asked(monkeypatch, PACKET, "-i", "left", trace=reply)
    assert "list edge (in), no rule matches, default deny; dropped as acl_denied: denied by a list" in done.stdout
    assert done.stdout.splitlines()[-1] == "verdict: dropped as acl_denied: denied by a list"


def a_punted_packet_has_its_class(monkeypatch: pytest.MonkeyPatch) -> None:
    end = SENT | {"do": "punt", "port": "left", "step": "check", "verdict": "local", "class": "host", "text": "for us"}
    done, _ = _asked(monkeypatch, PACKET, "-i", "left", trace=TRACE | {"ends": [end], "next_hop": None})
    assert done.stdout.splitlines()[-1] == "verdict: left to Linux (class host) as local: for us"


def the_port_is_that_to_which_the_source_is_routed(monkeypatch: pytest.MonkeyPatch) -> None:
    decision = {"address": "10.0.0.1", "found": True, "prefix": None, "mac": None, "verdict": "forward", "text": ""}
    _, asked = _asked(monkeypatch, PACKET, route=decision | {"port": "right"})
    assert asked[1] == ("route", {"address": "10.0.0.1"})
    assert (asked[2][1]["port"], asked[2][1]["frame"][:12]) == ("right", "020000000002")
    done, _ = _asked(monkeypatch, PACKET, route=decision | {"port": None})
    assert isinstance(done.exception, UsageFault)
    assert "no route leads to 10.0.0.1" in str(done.exception)


def json_has_the_frame_and_the_reply(monkeypatch: pytest.MonkeyPatch) -> None:
    done, _ = _asked(monkeypatch, "--hex", "02 00:ff", "-i", "left", "--json")
    assert json.loads(done.stdout) == {"traces": [{"frame": "0200ff", **TRACE}]}


def copies_of_a_flood_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    reply = TRACE | {"ends": [SENT, SENT | {"port": "up"}, SENT | {"port": "up", "frame": 0}]}
    done, _ = _asked(monkeypatch, PACKET, "-i", "left", trace=reply)
    assert "verdict: sent by port right; sent by port up, 2 frames" in done.stdout
    assert "20 bytes by right, up, up:" in done.stdout


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "expected one of PACKET, --hex and --pcap"),
        ([PACKET, "--hex", "00"], "expected one of PACKET, --hex and --pcap"),
        (["--hex", "0", "-i", "left"], "--hex: expected the bytes of a frame in hex"),
        (["--hex", "", "-i", "left"], "--hex: expected a frame of 1 to 9,216 bytes, not 0"),
        (["--hex", "00" * 9217, "-i", "left"], "not 9,217"),
        (["--hex", "00", "-i", "up"], "there is no port 'up'"),
        (["--hex", "00"], "with -i PORT"),
        (["--hex", "00", "--mac", "02:00:00:00:00:01"], "--mac is for a PACKET"),
        ([PACKET, "-i", "left", "--mac", "02:00"], "invalid MAC address '02:00'"),
        (["--pcap", "/nowhere/x", "-i", "left"], "/nowhere/x cannot be read: No such file or directory"),
        (["--pcap", "/dev/zero", "-i", "left"], "is a device"),
        (["udp 10.0.0.1"], "is no packet"),
    ],
)
def bad_input_gets_one_sentence(monkeypatch: pytest.MonkeyPatch, words: list[str], sentence: str) -> None:
    done, asked = _asked(monkeypatch, *words)
    assert isinstance(done.exception, Fault)
    assert sentence in str(done.exception)
    assert all(method == "ports" for method, _ in asked)


def a_frame_that_was_captured_in_part_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    wrpcap(str(tmp_path / "x.pcap"), [Raw(bytes(60))], linktype=1, snaplen=20)
    data = bytearray((tmp_path / "x.pcap").read_bytes())
    data[36:40] = (99).to_bytes(4, "little")
    (tmp_path / "x.pcap").write_bytes(data)
    done, _ = _asked(monkeypatch, "--pcap", str(tmp_path / "x.pcap"), "-i", "left")
    assert "packet 1 of" in str(done.exception)
    assert "of 99 bytes: capture whole frames" in str(done.exception)
