"""A worker that hands what it receives to another one: order, account, refusals, and ports that go.

Several that are handed packets, and flows that move between them: test/workers_moves_test.py.
"""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from harness.answers import CORES
from harness.frames import IP, on
from harness.wire import wait_until
from harness.wired import DL3D, Port, WiredForwarder, config_text, host_mac
from scapy.layers.inet import UDP
from scapy.packet import Raw

from dl3.control.replies import Workers
from dl3.model.fault import Fault

N_FLOWS, N_EACH = 20, 25
PORTS = [
    Port("a", keys={"addresses": ["10.0.1.1/24"]}),
    Port("b", keys={"addresses": ["10.0.2.1/24"]}),
    Port("c", keys={"addresses": ["10.0.3.1/24"]}),
]
RECEIVER, OTHER = CORES[0], CORES[-1]
WORKERS = [{"core": RECEIVER, "receives": ["a/0", "b/0", "c/0"], "hands_to": [OTHER]}, {"core": OTHER}]


@pytest.fixture(scope="module")
def bed() -> Iterator[WiredForwarder]:
    assert RECEIVER != OTHER, "a worker that hands packets to another one needs two cores"
    neighbours = [f"10.0.{index + 1}.2 lladdr {host_mac(index)} dev {port.name}" for index, port in enumerate(PORTS)]
    with WiredForwarder(PORTS, workers=WORKERS, neighbours=neighbours) as made:
        yield made


def _workers(bed: WiredForwarder) -> Workers:
    return Workers.model_validate(bed.dl3d.call("workers"))


def _send(bed: WiredForwarder, name: str, to: str) -> None:
    """Flows of numbered packets in turn."""
    index = [port.name for port in PORTS].index(name)
    for number in range(N_EACH):
        for flow in range(N_FLOWS):
            inside = UDP(sport=1000 + flow, dport=9) / Raw(bytes([flow, number]) + bytes(20))
            bed.wires[name].send(on(index, IP(src="192.0.2.1", dst=to, ttl=64) / inside))


def _received(bed: WiredForwarder, name: str) -> list[tuple[int, int]]:
    """(flow, number) of each packet, in the order in which they came."""
    frames: list[bytes] = []

    def all_came() -> bool:
        frames.extend(bed.wires[name].drain())
        return len(frames) >= N_FLOWS * N_EACH

    wait_until(all_came, f"all packets came out of {name}")
    return [(frame[42], frame[43]) for frame in frames]


def packets_are_received_by_one_worker_and_forwarded_by_another_in_order(bed: WiredForwarder) -> None:
    before = bed.account()
    _send(bed, "a", "10.0.2.2")
    packets = _received(bed, "b")
    assert len(packets) == N_FLOWS * N_EACH
    for flow in range(N_FLOWS):
        assert [number for of, number in packets if of == flow] == list(range(N_EACH))
    account = bed.settle(before.received + len(packets)).since(before)
    assert (account.received, account.sent, account.drops) == (len(packets), len(packets), {})
    receiver, other = _workers(bed).workers
    (hand,) = receiver.hands_to
    assert (hand.worker, hand.waiting, len(hand.slots)) == (1, 0, 256)
    assert len(hand.slot_packets) == 256
    assert hand.packets == sum(hand.slot_packets) == receiver.counters["handover_packets"]
    assert hand.packets == other.counters["taken_packets"]
    assert receiver.verdicts["forward"] == 0
    assert other.verdicts["forward"] >= len(packets)
    assert sum(queue.rx_packets for queue in receiver.queues) == hand.packets
    assert not other.queues


def a_port_is_removed_while_its_packets_are_on_their_way(bed: WiredForwarder) -> None:
    before = bed.account()
    _send(bed, "c", "10.0.2.2")
    bed.dl3d.call("ports.remove", name="c")
    account = bed.settle(before.received).since(before)
    assert account.is_closed
    assert _workers(bed).workers[0].hands_to[0].waiting == 0


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"from": 1, "to": 0, "slots": [0]}, "worker 1 hands no packets to worker 0; expected one of its hands_to"),
        ({"from": 0, "to": 0, "slots": [0]}, "worker 0 hands no packets to worker 0; expected one of its hands_to"),
        ({"from": 0, "to": 1, "slots": [255, 256]}, r"slots\[1\]: expected the number of a slot, 0 to 255"),
        ({"from": 0, "to": 1, "slots": [-1]}, r"slots\[0\]: expected the number of a slot, 0 to 255"),
        ({"from": 0, "to": 1, "slots": ["all"]}, r"slots\[0\]: expected the number of a slot, 0 to 255"),
        ({"from": 0, "to": 1, "slots": []}, "slots"),
        ({"from": 0, "to": 2, "slots": [0]}, "to"),
    ],
)
def slots_move_only_to_workers_that_are_handed_packets(
    bed: WiredForwarder, params: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(Fault, match=sentence):
        bed.dl3d.call("workers.move", **params)
    assert len(_workers(bed).workers[0].hands_to[0].slots) == 256


@pytest.mark.parametrize(
    ("workers", "sentence"),
    [
        ([{"core": RECEIVER, "hands_to": [RECEIVER]}], f"workers[0]: hands_to names its own core {RECEIVER}"),
        ([{"core": RECEIVER, "hands_to": [OTHER]}], f"workers[0]: hands_to names core {OTHER}, but no worker runs"),
        (
            [{"core": RECEIVER, "hands_to": [OTHER, OTHER]}, {"core": OTHER}],
            f"workers[0]: hands_to names core {OTHER} twice",
        ),
        (
            [{"core": RECEIVER}, {"core": OTHER, "receives": []}],
            f"workers[1]: core {OTHER} receives nothing and is handed nothing",
        ),
        ([{"core": RECEIVER, "receives": ["z/0"], "hands_to": [OTHER]}, {"core": OTHER}], 'unknown port "z"'),
        (
            [{"core": RECEIVER, "receives": ["a/0", "a/0"], "hands_to": [OTHER]}, {"core": OTHER}],
            "queue 0 of port a is already bound to workers[0]",
        ),
        ([{"core": 4000, "hands_to": [OTHER]}, {"core": OTHER}], "core 4000 does not exist"),
    ],
)
def bad_hands_are_refused_with_one_sentence(tmp_path: Path, workers: list[dict[str, Any]], sentence: str) -> None:
    file = tmp_path / "f.yaml"
    ports = [Port("a", device="net_null{index}"), Port("b", device="net_null{index}")]
    text = config_text(ports, workers=workers).replace("@SOCKET@", str(tmp_path / "s"))
    file.write_text(text, encoding="utf-8")
    assert yaml.safe_load(text)["workers"] == workers
    done = subprocess.run([str(DL3D), "--check", str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
