"""Access lists in a running dl3d: from the file, by RPC, over reloads, with mistakes, and ICMP errors about what they reject."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from harness.frames import ICMP, IP, Ether, Packet, ip4, ip6, on
from harness.wire import wait_until
from harness.wired import Port, WiredForwarder, config_text, host_mac

from dl3.model.fault import Fault

PORTS = [Port(name, keys={"addresses": [f"10.0.{i}.1/24"]}) for i, name in enumerate("ab", 1)]
SETTINGS: dict[str, Any] = {
    "routes": ["10.2.0.0/16 via 10.0.2.2 dev b"],
    "neighbours": [f"10.0.{i + 1}.2 lladdr {host_mac(i)} dev {port.name}" for i, port in enumerate(PORTS)],
}
NO_DNS = {"name": "no-dns", "do": "deny", "protocol": "udp", "to": "10.2.1.0/24", "to_port": 53}
ACL: dict[str, Any] = {
    "lists": {"edge": [NO_DNS, "permit udp name rest"], "out": ["deny to 10.2.9.0/24"]},
    "use": [
        {"interface": "a", "direction": "in", "list": "edge"},
        {"interface": "b", "direction": "out", "list": "out"},
    ],
}
DENIED, PERMITTED = ip4("10.2.1.1"), ip4("10.2.2.1")


@pytest.fixture
def wired() -> Iterator[WiredForwarder]:
    with WiredForwarder(PORTS, acl=ACL, **SETTINGS) as made:
        yield made


def _drops(wired: WiredForwarder, packet: Packet) -> dict[str, int]:
    """What becomes of a packet from a."""
    before = wired.account()
    wired.wires["a"].send(on(0, packet))
    return dict(wired.settle(before.received + 1).since(before).drops)


def _counted(wired: WiredForwarder, name: str = "edge") -> dict[str, int]:
    (found,) = wired.dl3d.call("acls", list=name)["lists"]
    return {rule["name"]: rule["packets"] for rule in found["rules"]}


def _reload(wired: WiredForwarder, acl: dict[str, Any]) -> None:
    text = config_text(PORTS, acl=acl, **SETTINGS).replace("@SOCKET@", str(wired.dl3d.socket))
    wired.dl3d.file.write_text(text.replace("@FOLDER@", str(wired.dl3d.folder)))
    wired.dl3d.call("reload")


def the_lists_of_the_file_are_in_force(wired: WiredForwarder) -> None:
    assert _drops(wired, DENIED) == {"acl_denied": 1}
    assert _drops(wired, PERMITTED) == {}
    assert _drops(wired, ip4("10.2.9.1")) == {"acl_denied": 1}
    assert _counted(wired) == {"no-dns": 1, "rest": 2}
    assert _drops(wired, ip4("10.0.1.1")) == {"local": 1}  # not judged


def a_change_is_in_force_at_once_and_lost_at_the_next_reload(wired: WiredForwarder) -> None:
    assert _drops(wired, DENIED) == {"acl_denied": 1}
    wired.dl3d.call("acl.change", lists={"edge": ["deny udp to 10.2.2.0/24", NO_DNS | {"do": "permit"}]})
    assert _drops(wired, DENIED) == {}
    assert _drops(wired, PERMITTED) == {"acl_denied": 1}
    assert _counted(wired)["no-dns"] == 2
    wired.dl3d.call("acl.change", use=[{"interface": "a", "direction": "in"}])
    assert _drops(wired, PERMITTED) == {}
    wired.dl3d.call("reload")
    assert _drops(wired, DENIED) == {"acl_denied": 1}
    assert _counted(wired)["no-dns"] == 3


def a_reload_keeps_counters_by_name(wired: WiredForwarder) -> None:
    assert _drops(wired, DENIED) == {"acl_denied": 1}
    _reload(wired, ACL | {"lists": ACL["lists"] | {"edge": ["permit sctp name first", NO_DNS]}})
    assert _drops(wired, DENIED) == {"acl_denied": 1}
    assert _counted(wired) == {"first": 0, "no-dns": 2}


def rules_come_from_a_file_of_their_own(wired: WiredForwarder) -> None:
    file = wired.dl3d.folder / "edge.acl"
    file.write_text("# rules\n\npermit udp to 10.2.1.1 name one\ndeny udp from any to 10.2.1.0/24 port 53 # the rest\n")
    _reload(wired, ACL | {"lists": ACL["lists"] | {"edge": {"file": str(file), "default": "deny"}}})
    assert _drops(wired, DENIED) == {}
    assert _drops(wired, ip4("10.2.1.2")) == {"acl_denied": 1}
    assert _drops(wired, PERMITTED) == {"acl_denied": 1}
    file.write_text("permit udp\ndeny tpc from any\n")
    with pytest.raises(Fault, match=r"edge\.acl:2: unknown key 'tpc' of a rule"):
        wired.dl3d.call("reload")
    assert _drops(wired, DENIED) == {}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({}, 'expected parameters "lists"'),
        ({"lists": {"edge": ["deny tcp port 99999"]}}, r"list 'edge', rules\[0\]: invalid to_port \"99999\""),
        ({"lists": {"edge": [{"do": "deny", "proto": "tcp"}]}}, "unknown key 'proto' of a rule"),
        ({"lists": {"edge": None}}, "interface 'a' uses list 'edge', which does not exist"),
        (
            {"lists": {"edge": ["deny"]}, "use": [{"interface": "a", "direction": "up", "list": "edge"}]},
            "expected in or out",
        ),
        ({"lists": {"edge": ["deny name x", "deny udp name x"]}}, "two rules have the name 'x'"),
    ],
)
def a_mistake_changes_nothing(wired: WiredForwarder, change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(Fault, match=sentence) as caught:
        wired.dl3d.call("acl.change", **change)
    assert "\n" not in str(caught.value)
    assert _drops(wired, DENIED) == {"acl_denied": 1}
    assert _drops(wired, PERMITTED) == {}


def a_check_names_the_rule_and_why_others_differ(wired: WiredForwarder) -> None:
    packet = {"src": "10.0.1.2", "dst": "10.2.1.1", "protocol": "udp", "src_port": 1024, "dst_port": 53}
    found = wired.dl3d.call("acl.check", interface="a", direction="in", **packet)
    assert (found["do"], found["number"], found["name"], found["before"]) == ("deny", 1, "no-dns", [])
    found = wired.dl3d.call("acl.check", list="edge", frame=bytes(on(0, PERMITTED)).hex())
    assert (found["do"], found["name"]) == ("permit", "rest")
    assert found["before"] == [{"number": 1, "name": "no-dns", "differs": "to"}]
    found = wired.dl3d.call("acl.check", list="edge", frame=bytes(on(0, ip6("2001:db8::1"))).hex())
    assert found["before"][0]["differs"] == "family"
    with pytest.raises(Fault, match="two addresses of one family"):
        wired.dl3d.call("acl.check", list="edge", src="10.0.0.1", dst="::1")
    assert _counted(wired) == {"no-dns": 0, "rest": 0}  # checks do not count


SENT, BURST = 300, 200
LIMIT = {"rate": "1 packets/s", "burst": f"{BURST} packets"}


def _passed(wired: WiredForwarder, packet: Packet) -> int:
    """How many of SENT packets pass; the counters of the rule `slow` and the account say so alike."""
    before, rule = wired.account(), _rule(wired)
    for _ in range(SENT):
        wired.wires["a"].send(on(0, packet))
    drops = wired.settle(before.received + SENT).since(before).drops
    now = _rule(wired)
    assert now["packets"] - rule["packets"] == SENT
    assert now["red"]["packets"] - rule["red"]["packets"] == drops.get("police_red", 0)
    return SENT - drops.get("police_red", 0)


def _rule(wired: WiredForwarder) -> dict[str, Any]:
    (found,) = [rule for rule in wired.dl3d.call("acls", list="edge")["lists"][0]["rules"] if rule["name"] == "slow"]
    return dict(found)


def a_rule_has_a_rate_which_no_change_fills_up(wired: WiredForwarder) -> None:
    slow = {"name": "slow", "do": "permit", "protocol": "udp", "police": LIMIT}
    with pytest.raises(Fault, match=r"rules\[0\]: invalid police.rate \"fast\": expected 8 kbit/s to 400 Gbit/s"):
        wired.dl3d.call("acl.change", lists={"edge": [slow | {"police": {"rate": "fast"}}]})
    shared = [{**slow, "name": f"s{rate}", "police": {"rate": f"{rate} Mbit/s", "bucket": "x"}} for rate in (1, 2)]
    with pytest.raises(Fault, match=r"police.bucket 'x'.*have different rates or bursts; .*nothing was changed"):
        wired.dl3d.call("acl.change", lists={"edge": shared})
    began = time.monotonic()
    wired.dl3d.call("acl.change", lists={"edge": [slow]})
    passed = _passed(wired, PERMITTED)
    assert passed >= BURST
    wired.dl3d.call("acl.change", lists={"edge": ["deny tcp", slow | {"police": LIMIT | {"burst": "2000 packets"}}]})
    passed += _passed(wired, PERMITTED)
    _reload(wired, ACL | {"lists": ACL["lists"] | {"edge": ["deny esp", slow]}})
    passed += _passed(wired, PERMITTED)
    assert passed <= BURST + time.monotonic() - began + 1, "the rate, and one burst in all"
    found = wired.dl3d.call("acl.check", list="edge", src="10.0.1.2", dst="10.2.2.1", protocol="udp")
    assert found["rule"] == f"permit udp police.rate 1packets/s police.burst {BURST}packets"


def linux_sends_icmp_about_rejected_packets_and_does_not_forward_them() -> None:
    acl = {
        "lists": {"edge": ["reject udp to 10.2.1.0/24 name no"]},
        "use": [{"interface": "a", "direction": "in", "list": "edge"}],
    }
    with WiredForwarder([Port("a"), Port("b")], linux={}, acl=acl) as wired:
        taps = wired.dl3d.taps
        for i, port in enumerate("ab"):
            taps.ip("addr", "add", f"10.0.{i + 1}.1/24", "dev", port)
            taps.ip("neigh", "replace", f"10.0.{i + 1}.2", "lladdr", host_mac(i), "dev", port, "nud", "permanent")
        taps.ip("route", "add", "10.2.0.0/16", "via", "10.0.2.2")
        wait_until(lambda: "via" in str(wired.dl3d.call("route", address="10.2.1.1")), "the route was there")
        wired.wires["b"].drain()
        wired.wires["a"].send(on(0, DENIED))
        found: list[Packet] = []

        def is_answered() -> bool:
            found.extend(Ether(frame) for frame in wired.wires["a"].drain())
            return any(ICMP in frame for frame in found)

        wait_until(is_answered, "the sender got an ICMP error")
        (answer,) = (frame for frame in found if ICMP in frame)
        assert (answer[ICMP].type, answer[ICMP].code) == (3, 13)
        assert (answer[IP].src, answer[IP].dst) == ("10.0.1.1", "10.0.1.2")
        assert bytes(answer[ICMP].payload)[:20] == bytes(DENIED)[:20]
        assert not any(bytes(DENIED)[12:20] in frame for frame in wired.wires["b"].drain())
