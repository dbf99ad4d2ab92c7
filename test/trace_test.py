"""'dl3 trace' on a running dl3d: what it tells is what happens to the same frame, and nothing else changes."""

import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
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
RANDOM_FRAMES = 160
SHORTEST = 18  # that Linux sends and receives, with a tag


@pytest.fixture(scope="module")
def wired() -> Iterator[WiredForwarder]:
    routes = ROUTES + MORE_ROUTES
    with WiredForwarder(PORTS, routes=routes, neighbours=NEIGHBOURS, acl=ACL, flow={"ipv4": 1000}) as made:
        made.dl3d.call("flows.change", changes=[{"op": "add", **KEY, **flow} for flow in FLOWS])
        yield made


def _asked(wired: WiredForwarder, frame: bytes, port: str = "a") -> dict[str, Any]:
    """What the trace tells; the account stays as it is."""
    before = wired.account()
    found: dict[str, Any] = wired.dl3d.call("trace", port=port, frame=frame.hex())
    assert wired.account() == before
    return found


def _sent_by(trace: dict[str, Any]) -> Counter[tuple[str, str]]:
    """The frames that are sent, with their ports."""
    return Counter((end["port"], trace["frames"][end["frame"]]) for end in trace["ends"] if end["do"] == "send")


def _drops(trace: dict[str, Any]) -> dict[str, int]:
    return dict(Counter(str(end["verdict"]) for end in trace["ends"] if end["do"] == "drop"))


def _happens(wired: WiredForwarder, frame: bytes, n_sent: int) -> tuple[Account, Counter[tuple[str, str]]]:
    """What happens to the frame, and what comes out."""
    before = wired.account()
    wired.wires["a"].send(frame)
    account = wired.settle(before.received + 1).since(before)
    out: Counter[tuple[str, str]] = Counter()

    def has_come() -> bool:
        out.update((name, got.hex()) for name, wire in wired.wires.items() for got in wire.drain())
        return out.total() >= n_sent

    wait_until(has_come, f"{n_sent} frames came out")
    return account, out


def _expect_as_told(wired: WiredForwarder, frame: bytes) -> dict[str, Any]:
    """The frame meets what the trace told of it."""
    trace = _asked(wired, frame)
    sent = _sent_by(trace)
    account, out = _happens(wired, frame, sent.total())
    told = trace["account"]
    assert (account.drops, out) == (_drops(trace), sent), frame.hex()
    assert (account.received, account.copied, account.sent, account.dropped) == (
        told["received"],
        told["copied"],
        told["sent"],
        told["dropped"],
    )
    return trace


def every_verdict_is_told_beforehand(wired: WiredForwarder) -> None:
    found = set()
    for row in ROWS:
        if row.verdict != REFUSED:
            trace = _expect_as_told(wired, row.frame)
            assert {end["verdict"] for end in trace["ends"]} == {row.verdict}
            found.add(row.verdict)
    assert found == {row.verdict for row in ROWS} - {REFUSED}


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
    whole: Counter[str] = Counter()
    for _ in range(RANDOM_FRAMES):
        trace = _expect_as_told(wired, _random_frame(dice))
        whole.update(end["verdict"] for end in trace["ends"])
    assert {"forward", "ttl_expired", "acl_denied", "flow_dropped", "mtu_exceeded"} <= set(whole), whole


def flows_and_rules_count_no_traced_packet(wired: WiredForwarder) -> None:
    key = KEY | {"dst": "10.2.3.1"}
    frame = on(0, ip4("10.2.3.1"))
    before = wired.dl3d.call("flows.find", **key)["packets"]
    rules = wired.dl3d.call("acls", list="edge")["lists"][0]["rules"]
    trace = _asked(wired, frame)
    assert trace["flow"]["action"] == {"do": "via", "via": "10.0.3.2", "dev": "c", "dscp": 46}
    assert (trace["dscp"], trace["route"], trace["next_hop"]["interface"]) == (46, None, "c")
    _asked(wired, on(0, ip4("10.2.7.1")))
    assert wired.dl3d.call("flows.find", **key)["packets"] == before
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
    _, out = _happens(wired, frame, 1)
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


def packets_for_linux_and_vlans_of_vrfs_are_traced() -> None:
    with WiredForwarder([Port("a"), Port("b")], linux={}) as wired:
        taps = wired.dl3d.taps
        for index, port in enumerate("ab"):
            taps.ip("addr", "add", f"10.0.{index + 1}.1/24", "dev", port)
            taps.ip(
                "neigh", "replace", f"10.0.{index + 1}.2", "lladdr", host_mac(index), "dev", port, "nud", "permanent"
            )
        taps.ip("link", "add", "blue", "type", "vrf", "table", "100")
        taps.ip("link", "set", "blue", "up")
        taps.ip("link", "add", "link", "a", "name", "a.10", "type", "vlan", "id", "10")
        taps.ip("link", "set", "a.10", "master", "blue", "up")
        taps.ip("addr", "add", "10.9.0.1/24", "dev", "a.10")
        tagged = Ether(on(0, IP(src="10.9.0.2", dst="10.9.0.1") / TCP(dport=179)))
        frame = bytes(tagged)[:12] + bytes.fromhex("8100000a") + bytes(tagged)[12:]
        wait_until(
            lambda: wired.dl3d.call("trace", port="a", frame=frame.hex())["vrf"] == "blue", "workers knew the interface"
        )
        wait_until(
            lambda: wired.dl3d.call("route", address="10.9.0.1", vrf="blue")["verdict"] == "local", "the address"
        )
        trace = wired.dl3d.call("trace", port="a", frame=frame.hex())
        (end,) = trace["ends"]
        assert (trace["interface"], trace["vlans"]) == ("a.10", ["802.1Q 10"])
        assert (end["do"], end["verdict"], end["class"]) == ("punt", "local", "routing")
        assert trace["frames"] == [frame.hex()]
        assert wired.account().received == 0
