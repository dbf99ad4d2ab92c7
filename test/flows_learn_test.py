"""Flows that a running dl3d learns from packets."""

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
from harness.frames import Packet, forwarded, ip4, ip6, on
from harness.wire import wait_until
from harness.wired import Port, WiredForwarder, config_text, host_mac

PORTS = [Port(name, keys={"addresses": [f"10.0.{i}.1/24"]}) for i, name in enumerate("abc", 1)]
ROUTE = "10.2.0.0/16 via 10.0.{0}.2 dev {1}"
NEIGHBOURS = [f"10.0.{i + 1}.2 lladdr {host_mac(i)} dev {port.name}" for i, port in enumerate(PORTS)]
FLOW: dict[str, Any] = {"ipv4": 10000, "ipv6": 100, "timeouts": [300, 1]}
BY_B = {"do": "via", "via": "10.0.2.2", "dev": "b"}


def _text(to: int = 2, **flow: Any) -> str:
    return config_text(PORTS, flow=FLOW | flow, routes=[ROUTE.format(to, PORTS[to - 1].name)], neighbours=NEIGHBOURS)


class Learner:
    """A forwarder that learns flows, and what tests do with it."""

    def __init__(self, wired: WiredForwarder) -> None:
        self.wired, self.dl3d = wired, wired.dl3d

    def send(self, *packets: Packet) -> None:
        """Send packets, and wait until they are accounted for."""
        before = self.wired.account()
        for packet in packets:
            self.wired.wires["a"].send(on(0, packet))
        self.wired.settle(before.received + len(packets))

    def out(self, packet: Packet) -> tuple[str, bytes]:
        """The port on which a packet is sent, and its frame."""
        for wire in self.wired.wires.values():
            wire.drain()
        self.send(packet)
        return self.wired.only_frame()

    def learning(self, key: str) -> int:
        """A number of method 'flows'."""
        return int(self.dl3d.call("flows")["learning"][key])

    def wait_for(self, key: str, number: int) -> None:
        """Wait until it has this value."""
        wait_until(lambda: self.learning(key) == number, f"{key} was {number}")

    def found(self, dst: str) -> dict[str, Any] | None:
        """The flow of the packets that ip4() makes."""
        key = {"src": "10.0.1.2", "dst": dst, "protocol": "udp", "src_port": 1024, "dst_port": 53}
        flow: dict[str, Any] | None = self.dl3d.call("flows.find", **key)["flow"]
        return flow

    def reload(self, to: int = 2, **flow: Any) -> None:
        """Reload a file with other keys, or with the route by another port."""
        text = _text(to, **flow).replace("@SOCKET@", str(self.dl3d.socket))
        self.dl3d.file.write_text(text.replace("@FOLDER@", str(self.dl3d.folder)))
        self.dl3d.call("reload")


@contextlib.contextmanager
def _learner(**flow: Any) -> Iterator[Learner]:
    routes = [ROUTE.format(2, "b")]
    with WiredForwarder(PORTS, flow=FLOW | flow, routes=routes, neighbours=NEIGHBOURS) as wired:
        yield Learner(wired)


def the_second_packet_has_a_flow() -> None:
    packet = ip4("10.2.0.1")
    with _learner(learn={"timeout": 300}) as learner:
        assert learner.out(packet) == ("b", forwarded(on(0, packet), 1))
        learner.wait_for("learnt", 1)
        found = learner.found("10.2.0.1")
        assert found is not None
        assert (found["action"], found["idle_s"], found["packets"]) == (BY_B, 300, 0)
        assert learner.out(packet) == ("b", forwarded(on(0, packet), 1))
        found = learner.found("10.2.0.1")
        assert found is not None
        assert found["packets"] == 1
        learner.send(ip4("10.99.0.1"), ip4("10.2.0.2", ttl=1), ip6("2001:db8:9::1"))
        learner.send(ip4("10.2.0.3"))
        learner.wait_for("learnt", 2)
        assert learner.found("10.2.0.3") is not None
        assert learner.dl3d.call("flows")["ipv6"]["flows"] == 0


def a_learnt_flow_keeps_its_next_hop() -> None:
    with _learner(learn={"timeout": 300}) as learner:
        learner.send(ip4("10.2.0.1"))
        learner.wait_for("learnt", 1)
        learner.reload(to=3, learn={"timeout": 300})
        assert learner.out(ip4("10.2.0.1"))[0] == "b"
        assert learner.out(ip4("10.2.0.2"))[0] == "c"
        learner.wait_for("learnt", 2)
        learner.reload(to=2)
        assert learner.out(ip4("10.2.0.2"))[0] == "c"
        assert learner.out(ip4("10.2.0.3"))[0] == "b"
        assert learner.dl3d.call("flows")["learning"]["on"] is False
        assert learner.found("10.2.0.3") is None


def an_interface_may_have_so_many_until_they_are_idle() -> None:
    with _learner(timeouts=[300, 3], learn={"timeout": 3, "per_interface": 3}) as learner:
        learner.send(*(ip4(f"10.2.1.{i}") for i in range(5)))
        learner.wait_for("learnt", 3)
        wait_until(lambda: learner.learning("over_interface") + learner.learning("at_limit") == 2, "two were refused")
        learner.wait_for("flows", 0)
        assert {row["reason"] for row in learner.dl3d.call("flows.ended")["ended"]} == {"idle"}
        learner.send(ip4("10.2.1.9"))
        learner.wait_for("learnt", 4)


def what_is_dropped_for_want_of_a_flow_gets_one() -> None:
    with _learner(missing="drop", learn={"timeout": 300}) as learner:
        learner.send(ip4("10.2.0.1"))
        assert learner.wired.account().drops == {"flow_missing": 1}
        learner.wait_for("learnt", 1)
        assert learner.out(ip4("10.2.0.1"))[0] == "b"


@pytest.mark.long
@pytest.mark.parametrize("rate", [1, 1000000])
def a_flood_leaves_known_flows_and_the_loop_alone(rate: int) -> None:
    """12,000 keys into a table of 5,000 flows."""
    n = 12000
    with _learner(ipv4=5000, learn={"timeout": 300, "rate": rate}) as learner:
        learner.send(ip4("10.2.0.1"))
        learner.wait_for("learnt", 1)
        for first in range(0, n, 500):
            learner.send(*(ip4(f"10.2.{64 + (i >> 8)}.{i & 255}") for i in range(first, first + 500)))
            learner.send(ip4("10.2.0.1"))
        found = learner.found("10.2.0.1")
        assert found is not None
        assert found["packets"] == n // 500
        wait_until(lambda: learner.learning("over_rate" if rate == 1 else "full") > 0, "some keys were refused")
        usage = learner.dl3d.call("flows")
        assert usage["learning"]["flows"] <= usage["ipv4"]["max"]
