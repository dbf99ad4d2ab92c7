"""What 'dl3 show workers' says of uneven load."""

from typing import Any

from dl3.cli.workers import advice, worker_row
from dl3.control.replies import Worker, Workers

MANY = 1_000_000


def _worker(number: int, empty: float, rx: dict[str, int], hands: dict[int, int] | None = None) -> dict[str, Any]:
    hands_to = [
        {"worker": to, "packets": packets, "waiting": 0, "slots": [to], "slot_packets": [packets]}
        for to, packets in (hands or {}).items()
    ]
    return {
        "worker": number,
        "core": number + 2,
        "numa": 0,
        "queues": [{"port": port, "queue": 0, "rx_packets": packets} for port, packets in rx.items()],
        "hands_to": hands_to,
        "counters": {"handover_packets": sum((hands or {}).values()), "bursts": 10},
        "empty_share": empty,
        "poll_gap": None,
        "cycles_per_packet": None,
        "verdicts": {"forward": 0 if hands else sum(rx.values())},
    }


def _advice(*workers: dict[str, Any]) -> list[str]:
    return advice(Workers.model_validate({"workers": workers}))


def one_busy_queue_beside_idle_workers_is_to_be_handed_over() -> None:
    (said,) = _advice(_worker(0, 0.1, {"left": MANY, "wan": 5}), _worker(1, 0.99, {"right": 10}), _worker(2, 0.9, {}))
    assert said.startswith("Queue left/0 has 100% of all packets, and the workers on cores 3, 4 are idle: ")
    assert said.endswith("workers: [{core: 2, receives: [left/0, wan/0], hands_to: [3, 4]}, ...]")


def even_load_and_idle_workers_need_nothing() -> None:
    assert not _advice(_worker(0, 0.1, {"left": MANY}), _worker(1, 0.1, {"right": MANY}))
    assert not _advice(_worker(0, 0.9, {"left": MANY}), _worker(1, 0.9, {"right": 0}))
    assert not _advice(_worker(0, 0.1, {"left": 99}), _worker(1, 0.9, {"right": 0}))
    assert not _advice(_worker(0, 0.1, {"left": MANY}), _worker(1, 0.2, {"right": 0}))


def one_busy_worker_among_those_that_are_handed_packets_is_named() -> None:
    hands = {1: MANY, 2: 10}
    (said,) = _advice(_worker(0, 0.1, {"left": MANY}, hands), _worker(1, 0.0, {}), _worker(2, 0.9, {}))
    assert said.startswith("Worker 1 gets 100% of what worker 0 hands over, and worker 2 is idle: ")
    assert said.endswith("move flows between them with dl3 balance")
    hands = {1: 8 * MANY, 2: 3 * MANY, 3: 3 * MANY}
    others = (_worker(1, 0.0, {}), _worker(2, 0.9, {}), _worker(3, 0.9, {}))
    assert len(_advice(_worker(0, 0.1, {"left": MANY}, hands), *others)) == 1
    assert not _advice(_worker(0, 0.1, {"left": MANY}, hands | {1: 4 * MANY}), *others)
    assert not _advice(_worker(0, 0.1, {"left": MANY}, {1: MANY, 2: MANY}), _worker(1, 0, {}), _worker(2, 0.9, {}))


def counts_what_a_worker_hands_over_as_its_packets() -> None:
    row = worker_row(Worker.model_validate(_worker(0, 0.1, {"left": 40}, {1: 30, 2: 10})))
    assert row[3:7] == ("left/0", "1 2", 40, 4.0)
