"""TCP between two Linux guests with each combination of offloads at both ends, bridged and routed by dl3d."""

import json
import os
import re
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml
from harness.guest import make_guest
from harness.vhost import guest_mac
from harness.vhost_guests import PATIENCE_S, Card, vhost_guest
from harness.wire import wait_until
from harness.wired import DL3D, TOP, Account

from dl3.control.replies import Ports
from dl3.lab.forwarder import Forwarder

pytestmark = pytest.mark.long  # guests without KVM boot slowly and compute slowly

BYTES, BLOCK = 100_000_000, 1 << 20
# A card: whether its driver may leave and takes checksums, and TSO. Of one without checksums, Linux does no TSO.
STATES = ((False, False), (False, True), (True, False), (True, True))
N = len(STATES)
MOST_OF_A_FRAME = 1514

# A namespace for each card: all of them may be in the same network.
CARD = """
until [ -e /sys/class/net/eth{i} ]; do /tmp/bin/busybox sleep 0.1; done
ip netns add n{i}
ip link set eth{i} netns n{i}
ip -n n{i} link set lo up
ip -n n{i} link set eth{i} up
"""
SERVE = "ip netns exec n{i} python3 test/harness/guest_tcp.py serve eth{i} &\n"
SEND = "ip netns exec n{i} python3 test/harness/guest_tcp.py send eth{i} {n} {addresses} || exit 9\n"


def _options(state: tuple[bool, bool]) -> list[str]:
    checksum, tso = ("on" if on else "off" for on in state)
    names = ("host_tso4", "host_tso6", "guest_tso4", "guest_tso6")
    return [f"csum={checksum}", f"guest_csum={checksum}", *(f"{name}={tso}" for name in names)]


class _Bed:
    """The cards of both guests, numbered from 0: those of the first, then those of the second."""

    def __init__(self, folder: Path, is_routed: bool) -> None:
        self.folder, self.is_routed = folder, is_routed

    def name(self, number: int) -> str:
        return f"vm{number // N + 1}-{number % N}"

    def addresses(self, number: int) -> tuple[str, str]:
        if self.is_routed:
            return f"10.0.{number + 1}.2", f"2001:db8:{number + 1}::2"
        return f"10.0.0.{number + 1}", f"2001:db8::{number + 1}"

    def text(self) -> str:
        """dl3d's file."""
        ports: list[dict[str, Any]] = []
        neighbours = []
        for number in range(2 * N):
            socket = {"socket": f"{self.folder}/{self.name(number)}.sock", "offloads": "on"}
            ports.append({"name": self.name(number), "vhost": socket})
            if self.is_routed:
                ports[-1]["addresses"] = [f"10.0.{number + 1}.1/24", f"2001:db8:{number + 1}::1/64"]
                neighbours += [
                    f"{ip} lladdr {guest_mac(number)} dev {self.name(number)}" for ip in self.addresses(number)
                ]
        bridge = {"name": "br0", "ports": [port["name"] for port in ports]}
        whole = {
            "ports": ports,
            "workers": [{"core": core} for core in sorted(os.sched_getaffinity(0))[:2]],
            "memory": {"hugepages": "never"},
            "control": {"socket": "@SOCKET@"},
        } | ({"neighbours": neighbours} if self.is_routed else {"bridges": [bridge]})
        return yaml.safe_dump(whole, sort_keys=False)

    def cards(self, guest: int) -> list[Card]:
        numbers = range(guest * N, guest * N + N)
        return [
            Card(self.folder / f"{self.name(k)}.sock", guest_mac(k), options=_options(STATES[k % N])) for k in numbers
        ]

    def up(self, guest: int, macs: dict[str, str]) -> str:
        """The script that gives the cards of a guest their addresses."""
        text = f"cd {TOP}\nmodprobe virtio_net\n"
        for i in range(N):
            number = guest * N + i
            words = f"ip -n n{i}"
            text += CARD.format(i=i)
            text += "".join(
                f"{words} address add {ip}/{64 if ':' in ip else 24} dev eth{i} nodad\n"
                for ip in self.addresses(number)
            )
            if self.is_routed:
                for gateway in (f"10.0.{number + 1}.1", f"2001:db8:{number + 1}::1"):
                    text += f"{words} neighbour replace {gateway} lladdr {macs[self.name(number)]} dev eth{i}\n"
                    text += f"{words} route add default via {gateway}\n"
        return text

    def targets(self, card: int) -> list[str]:
        """An address of each card of the second guest, in turn of either family."""
        return [self.addresses(N + j)[(card + j) % 2] for j in range(N)]


def _judge(sender: tuple[bool, bool], receiver: tuple[bool, bool], result: dict[str, Any]) -> None:
    """Compare a result with what these two cards leave and take."""
    assert result["is_equal"], result
    assert result["is_watched_equal"], result
    assert result["bad"] == 0, result
    there, back = result["receiver_saw"], result["sender_saw"]
    assert {*there, *back} <= {"whole", "open", "other", "longest"}, result
    is_open = sender[0] and receiver[0]
    assert ("open" in there) == ("open" in back) == is_open, result
    assert is_open or there["whole"] > BLOCK / MOST_OF_A_FRAME, result
    assert (there["longest"] > MOST_OF_A_FRAME) == (sender == receiver == (True, True)), result


@pytest.mark.parametrize("card", range(N), ids=["leaves_none", "leaves_none_of_tso", "leaves_checksums", "leaves_all"])
@pytest.mark.parametrize("is_routed", [False, True], ids=["bridged", "routed"])
def tcp_arrives_whole_with_all_offloads(tmp_path: Path, is_routed: bool, card: int) -> None:
    """From a card of the first guest to each of the second: 100 MB, and 1 MB whose frames are looked at one by one."""
    make_guest()
    bed = _Bed(tmp_path, is_routed)
    with ExitStack() as ends:
        dl3d = ends.enter_context(Forwarder(DL3D, bed.text()))
        dl3d.wait_ready()
        macs = {port.name: port.mac for port in Ports.model_validate(dl3d.call("ports")).ports}
        scripts = (
            bed.up(0, macs) + SEND.format(i=card, n=BYTES, addresses=" ".join(bed.targets(card))),
            bed.up(1, macs) + "".join(SERVE.format(i=i) for i in range(N)) + "wait\n",
        )
        guests = [ends.enter_context(vhost_guest(tmp_path, f"vm{i + 1}", scripts[i], bed.cards(i))) for i in range(2)]
        wait_until(guests[0].has_left, "the first guest had done its work", PATIENCE_S)
        said = "\n".join(f"{guest.state()}:\n{guest.text()}" for guest in guests)
        results = [json.loads(line) for line in re.findall(r"^result (.*)$", guests[0].text(), re.MULTILINE)]
        assert [result["to"] for result in results] == bed.targets(card), said
        wait_until(lambda: Account.of(dl3d.call("drops")).is_closed, "the account balanced")
        account = Account.of(dl3d.call("drops"))
    for receiver, result in zip(STATES, results, strict=True):
        _judge(STATES[card], receiver, result)
    print(f"{account}; seconds: {[result['seconds'] for result in results]}")
    # TCP makes good what full rings have no place for; guests greet groups, and a port takes a moment to come up.
    assert account.drops.keys() <= {"tx_refused", "port_down", "bridge_same_port", "mac_group"}
