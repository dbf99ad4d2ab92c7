"""Which slots 'dl3 balance' moves, and between which workers."""

from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dl3.cli.balance import EVEN, Load, balanced, moves_of
from dl3.control.replies import Worker

WORKERS = (1, 2, 3)
LOADS = st.dictionaries(st.integers(0, 255), st.integers(0, 1000), min_size=1, max_size=60)


def _load(packets: Mapping[int, int], owner: Mapping[int, int]) -> Load:
    return Load(0, packets, owner, WORKERS)


def _worker(hands: Mapping[int, Mapping[int, int]]) -> Worker:
    """`hands`: packets by slot, by worker."""
    made: dict[str, Any] = {"worker": 0, "core": 2, "numa": 0, "queues": [], "counters": {}, "empty_share": 0.0}
    hands_to = [
        {"worker": to, "packets": 0, "waiting": 0, "slots": list(slots), "slot_packets": list(slots.values())}
        for to, slots in hands.items()
    ]
    rest: dict[str, Any] = {"poll_gap": None, "hands_to": hands_to, "cycles_per_packet": None, "verdicts": {}}
    return Worker.model_validate(made | rest)


def counts_what_came_for_each_slot_even_if_it_has_moved_meanwhile() -> None:
    before = _worker({1: {0: 10, 1: 20}, 2: {2: 5}})
    after = _worker({1: {0: 11}, 2: {1: 25, 2: 5}})
    load = Load.between(before, after)
    assert (load.receiver, load.workers, load.total) == (0, (1, 2), 6)
    assert load.packets == {0: 1, 1: 5, 2: 0}
    assert load.owner == {0: 1, 1: 2, 2: 2}
    assert load.by_worker(load.owner) == {1: 1, 2: 5}
    assert Load.between(_worker({1: {0: 10}, 2: {2: 5}}), after).packets == {0: 1, 2: 0}


def an_idle_worker_gets_slots_of_a_busy_one_and_no_more_than_needed() -> None:
    packets = dict.fromkeys(range(30), 100)
    load = _load(packets, {slot: 1 if slot < 20 else 2 for slot in packets})
    owner = balanced(load)
    assert load.by_worker(owner) == {1: 1000, 2: 1000, 3: 1000}
    (moves,) = moves_of(load, owner).items()
    assert (moves[0], len(moves[1])) == (3, 10)


def a_large_flow_stays_and_others_leave_its_worker() -> None:
    load = _load({0: 5000, 1: 10, 2: 10, 3: 10}, {0: 1, 1: 1, 2: 1, 3: 2})
    owner = balanced(load)
    assert owner[0] == 1
    assert 1 not in (owner[1], owner[2])
    again = _load(load.packets, owner)
    assert not moves_of(again, balanced(again))


def even_shares_are_left_alone() -> None:
    owner = {slot: WORKERS[slot % 3] for slot in range(255)}
    for packets in (dict.fromkeys(owner, 0), dict.fromkeys(owner, 7), {slot: 1000 + slot % 3 for slot in owner}):
        assert not moves_of(_load(packets, owner), balanced(_load(packets, owner)))


@given(packets=LOADS, seed=st.randoms(use_true_random=False))
def no_single_move_is_left_that_makes_shares_more_even(packets: dict[int, int], seed: Any) -> None:
    load = _load(packets, {slot: seed.choice(WORKERS) for slot in packets})
    owner = balanced(load)
    sums = load.by_worker(owner)
    assert owner.keys() == packets.keys()
    assert sum(sums.values()) == load.total
    busiest, idlest = max(sums, key=lambda w: sums[w]), min(sums, key=lambda w: sums[w])
    gap = sums[busiest] - sums[idlest]
    could_move = [slot for slot, worker in owner.items() if worker == busiest and 0 < packets[slot] < gap]
    assert gap * len(WORKERS) <= EVEN * load.total or not could_move
    moved = [slot for slots in moves_of(load, owner).values() for slot in slots]
    assert sorted(moved) == sorted(slot for slot in packets if owner[slot] != load.owner[slot])
