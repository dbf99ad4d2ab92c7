"""'dl3 trace' on a running dl3d: what it tells is what happens to the same frame, and nothing else changes."""

import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from harness.captures import started, wait_for_none
from harness.frames import TCP, UDP, Ether, Raw, ip4, ip6, on
from harness.wire import wait_until
from harness.wired import Account, Port, WiredForwarder, host_mac
from scapy.layers.inet import IP
from scapy.utils import wrpcap
from typer.testing import CliRunner
from verdicts_test import NEIGHBOURS, PORTS, ROUTES, ROWS

from dl3.cli.main import app

ACL = {
    "lists": {
        "edge": [
            "deny udp to 10.2.7.0/24 name seven",
            "permit to 10.2.8.0/24 mark 10",
            "deny fragment later",
            "permit to 10.2.9.0/24 mirror b",
        ]
    },
    "use": [{"interface": "a", "direction": "in", "list": "edge"}],
}
MORE_ROUTES = ["10.24.0.0/16 nexthop via 10.0.2.2 dev b nexthop via 10.0.3.2 dev c weight 2"]
KEY = {"src": "10.0.1.2", "protocol": "udp", "src_port": 1024, "dst_port": 53}
FLOWS = [
    {"dst": "10.2.3.1", "action": {"do": "via", "via": "10.0.3.2", "dev": "c", "dscp": 46}},
    {"dst": "10.2.3.2", "action": {"do": "drop"}},
    {"dst": "10.2.3.3", "action": {"do": "route", "mirror": "b"}},
]
DESTINATIONS = (
    "10.2.0.1",
    "10.2.7.1",
    "10.2.8.1",
    "10.2.9.1",
    "10.2.3.1",
    "10.2.3.2",
    "10.2.3.3",
    "10.3.0.1",
    "10.24.1.1",
)
REFUSED = "tx_refused"  # only the device knows
RANDOM_FRAMES = 300
SHORTEST = 18  # that Linux sends and receives, with a tag


@pytest.fixture(scope="module")
def wired() -> Iterator[WiredForwarder]:
    routes = ROUTES + MORE_ROUTES
    with WiredForwarder(PORTS, routes=routes, neighbours=NEIGHBOURS, acl=ACL, flow={"ipv4": 1000}) as made:
        made.dl3d.call("flows.change", changes=[{"op": "add", **KEY, **flow} for flow in FLOWS])
        yield made


def _asked(wired: WiredForwarder, frame: bytes, port: str = "a") -> dict[str, Any]:
    """What the trace tells."""
    found: dict[str, Any] = wired.dl3d.call("trace", port=port, frame=frame.hex())
    return found


def _sent_by(trace: dict[str, Any]) -> Counter[tuple[str, str]]:
    """The frames that are sent, with their ports."""
    return Counter((end["port"], trace["frames"][end["frame"]]) for end in trace["ends"] if end["do"] == "send")


def _happens(wired: WiredForwarder, frames: list[bytes], n_sent: int) -> tuple[Account, Counter[tuple[str, str]]]:
    """What happens to the frames, and what comes out."""
    before = wired.account()
    for frame in frames:
        wired.wires["a"].send(frame)
    account = wired.settle(before.received + len(frames)).since(before)
    out: Counter[tuple[str, str]] = Counter()

    def has_come() -> bool:
        out.update((name, got.hex()) for name, wire in wired.wires.items() for got in wire.drain())
        return out.total() >= n_sent

    wait_until(has_come, f"{n_sent} frames came out")
    return account, out


def _expect_as_told(wired: WiredForwarder, frames: list[bytes]) -> list[dict[str, Any]]:
    """The frames meet what traces told of them, and traces change no counter."""
    before = wired.account()
    traces = [_asked(wired, frame) for frame in frames]
    assert wired.account() == before
    sent = sum((_sent_by(trace) for trace in traces), Counter())
    drops = Counter(end["verdict"] for trace in traces for end in trace["ends"] if end["do"] == "drop")
    account, out = _happens(wired, frames, sent.total())
    assert out == sent
    assert account.drops == drops
    for key in ("received", "copied", "sent", "punted", "dropped"):
        assert getattr(account, key) == sum(trace["account"][key] for trace in traces), key
    return traces


def every_verdict_is_told_beforehand(wired: WiredForwarder) -> None:
    rows = [row for row in ROWS if row.verdict != REFUSED]
    for row, trace in zip(rows, _expect_as_told(wired, [row.frame for row in rows]), strict=True):
        assert {end["verdict"] for end in trace["ends"]} == {row.verdict}, row.name


def _random_frame(dice: random.Random) -> bytes:
    fields = {"ttl": dice.choice((64, 64, 2, 1)), "tos": dice.randrange(256), "id": dice.randrange(65536)}
    flags = dice.choice((0, 0, 0, "DF", "MF"))
    payload = dice.choice((18, 100, 1300, 1400))
    if dice.randrange(4):
        packet = ip4(dice.choice(DESTINATIONS), payload=payload, flags=flags, frag=dice.choice((0, 0, 0, 9)), **fields)
    else:
        packet = ip6("2001:db8:22::1", payload=payload, hlim=fields["ttl"], tc=fields["tos"])
    frame = bytearray(on(0, packet))
    if dice.randrange(3) == 0:
        for _ in range(dice.randrange(1, 4)):
            frame[dice.randrange(12, 60)] ^= 1 << dice.randrange(8)
    if dice.randrange(6) == 0:
        del frame[dice.randrange(SHORTEST, len(frame)) :]
    return bytes(frame)


def random_frames_meet_what_was_told(wired: WiredForwarder) -> None:
    dice = random.Random(32)
    traces = _expect_as_told(wired, [_random_frame(dice) for _ in range(RANDOM_FRAMES)])
    found = {end["verdict"] for trace in traces for end in trace["ends"]}
    assert {"forward", "ttl_expired", "acl_denied", "flow_dropped", "mtu_exceeded", "ip4_checksum"} <= found
    assert any(trace["fragmented"] for trace in traces)


def flows_and_rules_count_no_traced_packet(wired: WiredForwarder) -> None:
    key = KEY | {"dst": "10.2.3.1"}
    frame = on(0, ip4("10.2.3.1"))
    before = wired.dl3d.call("flows.find", **key)["flow"]["packets"]
    rules = wired.dl3d.call("acls", list="edge")["lists"][0]["rules"]
    trace = _asked(wired, frame)
    assert trace["flow"]["action"] == {"do": "via", "via": "10.0.3.2", "dev": "c", "dscp": 46}
    assert (trace["dscp"], trace["route"], trace["next_hop"]["interface"]) == (46, None, "c")
    _asked(wired, on(0, ip4("10.2.7.1")))
    assert wired.dl3d.call("flows.find", **key)["flow"]["packets"] == before
    assert wired.dl3d.call("acls", list="edge")["lists"][0]["rules"] == rules


def _dl3(wired: WiredForwarder, *words: str) -> str:
    """What the command prints."""
    done = CliRunner().invoke(app, ["trace", *words, "--socket", str(wired.dl3d.socket)], terminal_width=200)
    assert done.exit_code == 0, (done.stdout, done.exception)
    return done.stdout


def a_packet_in_words_is_traced(wired: WiredForwarder) -> None:
    text = _dl3(wired, "udp 10.0.1.2:1000 > 10.2.0.1:53 length 60 ttl 9")
    lines = [line.rstrip() for line in text.splitlines()]
    assert lines[0] == "10.0.1.2:1000 > 10.2.0.1:53 udp, 74 bytes, received on port a"
    steps = dict(line.split(maxsplit=1) for line in lines[3 : lines.index("", 3)])
    assert steps["parse"] == "IPv4 on interface a, VRF main, TTL 9"
    assert steps["lookup"] == "longest prefix 10.2.0.0/16 (via)"
    assert steps["acl_in"] == "list edge (in), no rule matches, default permit"
    assert steps["check"] == f"next hop 10.0.2.2 dev b, MAC {host_mac(1)}; MTU 1500"
    assert steps["rewrite"].startswith("TTL 9 becomes 8; MAC ")
    assert "verdict: sent by port b" in lines
    dump = lines[lines.index("74 bytes by b:") + 1 :]
    frame = on(0, IP(src="10.0.1.2", dst="10.2.0.1", ttl=9, id=0) / UDP(sport=1000, dport=53) / Raw(bytes(32)))
    _, out = _happens(wired, [frame], 1)
    ((_, sent),) = out
    assert "".join(word for line in dump for word in line.split()[1:]) == sent


def reasons_are_told_in_words(wired: WiredForwarder) -> None:
    assert "list edge (in), rule 1 seven: deny udp to 10.2.7.0/24" in _dl3(wired, "udp 10.0.1.2 > 10.2.7.1")
    expired = _dl3(wired, "tcp 10.0.1.2 > 10.2.0.1 ttl 1", "-i", "a")
    assert "verdict: dropped as ttl_expired: " in expired
    assert ", the one of 2 that this flow takes, MAC " in _dl3(wired, "udp 10.0.1.2 > 10.24.0.1")
    assert "verdict: dropped as runt: shorter than its headers indicate" in _dl3(wired, "--hex", "00:01", "-i", "a")


def files_are_traced_frame_by_frame(wired: WiredForwarder, tmp_path: Path) -> None:
    frames = [on(0, ip4(dst)) for dst in ("10.2.0.1", "192.0.2.1", "10.2.0.2")]
    wrpcap(str(tmp_path / "x.pcap"), [Ether(frame) for frame in frames])
    words = ["--pcap", str(tmp_path / "x.pcap"), "-i", "a"]
    found = json.loads(_dl3(wired, *words, "--json"))["traces"]
    assert [trace["frame"] for trace in found] == [frame.hex() for frame in frames]
    assert [trace["ends"][0]["verdict"] for trace in found] == ["forward", "no_route", "forward"]
    assert _dl3(wired, *words, "-c", "2").count("verdict: ") == 2


def frames_are_traced_as_they_are_received(wired: WiredForwarder) -> None:
    """Of those that match, only what came from the wire, whatever becomes of it."""
    lost, other = on(0, ip4("192.0.2.1")), on(0, ip4("10.2.0.1") / Raw(b"x"))
    words = ["trace", "--live", "--socket", str(wired.dl3d.socket), "-i", "a", "--json", "-c", "3", "dst", "192.0.2.1"]
    with started(*words) as process:
        while process.poll() is None:  # nothing says when it captures
            _happens(wired, [lost, other], 1)
        printed, told = process.communicate()
    wait_for_none(wired.dl3d.socket)
    assert (process.returncode, told) == (0, "")
    traces = json.loads(printed)["traces"]
    assert [(trace["port"], trace["frame"], trace["ends"][0]["verdict"]) for trace in traces] == [
        ("a", lost.hex(), "no_route")
    ] * 3
    refused = CliRunner().invoke(app, ["trace", "--live", "--hex", "00", "--socket", str(wired.dl3d.socket)])
    assert "leave out --hex, --pcap and --mac" in str(refused.exception)


def jumbo_frames_and_hostile_words_are_survived(wired: WiredForwarder) -> None:
    long = on(0, ip4("10.2.0.1", payload=9160))
    assert {end["verdict"] for end in _asked(wired, long)["ends"]} <= {
        "ip4_length",
        "frame_cut",
        "mtu_exceeded",
        "forward",
    }
    dice = random.Random(7)
    for _ in range(200):
        _asked(wired, dice.randbytes(dice.choice((1, 13, 14, 17, 60, 300))))


def packets_for_linux_are_traced() -> None:
    with WiredForwarder([Port("a"), Port("b")], linux={}) as wired:
        wired.dl3d.taps.ip("addr", "add", "10.0.1.1/24", "dev", "a")
        wait_until(
            lambda: wired.dl3d.call("route", address="10.0.1.1")["verdict"] == "local", "workers knew the address"
        )
        plain = on(0, IP(src="10.0.1.2", dst="10.0.1.1") / TCP(dport=179))
        frames = [plain, plain[:12] + bytes.fromhex("8100000a") + plain[12:]]
        for frame, verdict, punt_class in zip(frames, ("local", "vlan_unknown"), ("routing", "other"), strict=True):
            trace = _asked(wired, frame)
            (end,) = trace["ends"]
            assert (end["do"], end["verdict"], end["class"]) == ("punt", verdict, punt_class)
            assert trace["frames"] == [frame.hex()]
        assert wired.account().received == 0
        account, _ = _happens(wired, frames, 0)
        assert (account.received, account.punted, account.dropped) == (2, 2, 0)
