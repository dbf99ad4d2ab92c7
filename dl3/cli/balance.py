"""'dl3 balance': moves flows between the workers that are handed packets, so that each gets about as many."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from dl3.cli.printing import counted, out, print_json, table
from dl3.cli.show import Socket
from dl3.cli.workers import FEWEST, share_of
from dl3.control.client import DEFAULT_SOCKET, Client
from dl3.control.replies import AnyReply, Worker, Workers
from dl3.model.fault import Fault, UsageFault

EVEN = 0.05  # of the mean: what the busiest worker may have more than the least busy one
PATIENCE_S, POLL_S = 60.0, 0.05


@dataclass(frozen=True)
class Load:
    """Packets that came for each slot of a receive worker within some time."""

    receiver: int
    packets: Mapping[int, int]  # by slot
    owner: Mapping[int, int]  # the worker that gets them, by slot
    workers: tuple[int, ...]  # to which it hands packets

    @classmethod
    def between(cls, before: Worker, after: Worker) -> "Load":
        """From two replies of dl3d. A slot that moves while dl3d replies may be missing in one; then it stays."""
        then, now = _by_slot(before), _by_slot(after)
        packets = {slot: n - then[slot] for slot, n in now.items() if slot in then}
        owner = {slot: hand.worker for hand in after.hands_to for slot in hand.slots if slot in packets}
        return cls(after.worker, packets, owner, tuple(hand.worker for hand in after.hands_to))

    @property
    def total(self) -> int:
        """Of all slots."""
        return sum(self.packets.values())

    def by_worker(self, owner: Mapping[int, int]) -> dict[int, int]:
        """Packets of each worker, if it had the slots that `owner` gives it."""
        sums = dict.fromkeys(self.workers, 0)
        for slot, worker in owner.items():
            sums[worker] += self.packets[slot]
        return sums


def _by_slot(worker: Worker) -> dict[int, int]:
    hands = worker.hands_to
    return {slot: n for hand in hands for slot, n in zip(hand.slots, hand.slot_packets, strict=True)}


def _best(packets: Mapping[int, int], fitting: Sequence[int], gap: int) -> int:
    small = [slot for slot in fitting if 2 * packets[slot] <= gap]
    return max(small, key=lambda slot: packets[slot]) if small else min(fitting, key=lambda slot: packets[slot])


def balanced(load: Load) -> dict[int, int]:
    """The worker of each slot, once as few as possible have moved to make the workers' loads even.

    Again and again a slot of the busiest worker goes to the least busy one: the largest one after which it has not more
    than the other, or else the smallest one that still helps. Each move makes the sum of squares of their loads smaller,
    so it ends.
    """
    owner = dict(load.owner)
    while True:
        sums = load.by_worker(owner)
        busiest, idlest = max(sums, key=lambda w: sums[w]), min(sums, key=lambda w: sums[w])
        gap = sums[busiest] - sums[idlest]
        fitting = [slot for slot, worker in owner.items() if worker == busiest and 0 < load.packets[slot] < gap]
        if gap * len(sums) <= EVEN * load.total or not fitting:
            return owner
        owner[_best(load.packets, fitting, gap)] = idlest


def moves_of(load: Load, owner: Mapping[int, int]) -> dict[int, list[int]]:
    """The slots that are to move, by the worker that gets them."""
    moves: dict[int, list[int]] = {}
    for slot in sorted(owner):
        if owner[slot] != load.owner[slot]:
            moves.setdefault(owner[slot], []).append(slot)
    return moves


def loads(client: Client, seconds: float) -> list[Load]:
    """Of all receive workers, while packets come for so long."""
    before = client.ask(Workers, "workers").workers
    if not any(worker.hands_to for worker in before):
        raise UsageFault("no worker hands packets to others: set 'hands_to' of a worker in dl3d's file")
    time.sleep(seconds)
    after = client.ask(Workers, "workers").workers
    return [Load.between(then, now) for then, now in zip(before, after, strict=True) if now.hands_to]


def move(client: Client, receiver: int, moves: Mapping[int, Sequence[int]]) -> None:
    """Move slots, and wait until it is done; Fault if it takes too long."""
    for to, slots in moves.items():
        client.ask(AnyReply, "workers.move", **{"from": receiver, "to": to, "slots": list(slots)})
    wanted = {(slot, to) for to, slots in moves.items() for slot in slots}
    deadline = time.monotonic() + PATIENCE_S
    while not wanted <= _owned(client, receiver):
        if time.monotonic() > deadline:
            raise Fault(
                f"slots of worker {receiver} have not moved within {PATIENCE_S:.0f} s: a worker that had them does not "
                "process its packets, see 'dl3 show workers'"
            )
        time.sleep(POLL_S)


def _owned(client: Client, receiver: int) -> set[tuple[int, int]]:
    hands = client.ask(Workers, "workers").workers[receiver].hands_to
    return {(slot, hand.worker) for hand in hands for slot in hand.slots}


def print_load(load: Load, owner: Mapping[int, int], seconds: float) -> None:
    """The shares of the workers, and what becomes of them."""
    before, after, moves = load.by_worker(load.owner), load.by_worker(owner), moves_of(load, owner)
    rows = []
    for worker, n in after.items():
        shares = [share_of(packets, load.total) for packets in (before[worker], n)]
        rows.append((worker, before[worker], shares[0], len(moves.get(worker, [])), shares[1]))
    title = f"packets that worker {load.receiver} received within {seconds:g} s, by the worker that gets them"
    out.print(table(title, (">worker", ">packets", ">share", ">slots to it", ">then"), rows))
    biggest = max(load.packets.values(), default=0)
    if biggest * len(load.workers) > load.total:
        share = share_of(biggest, load.total)
        out.print(f"One slot has {share} of the packets: if that is one flow, it stays on one worker.", highlight=False)


def balance(
    seconds: Annotated[
        float, typer.Option(min=0.1, max=3600, metavar="SECONDS", help="How long to count the packets of each slot.")
    ] = 5.0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print what would move.")] = False,
    socket: Socket = DEFAULT_SOCKET,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Move flows from busy to idle workers behind a receive worker (hands_to); each flow keeps its order.

    Counts packets for a while, then moves as few slots (flows by a hash) as make the workers' shares even.

    Example: dl3 balance --seconds 10 --dry-run
    """
    client = Client(socket)
    said = []
    for load in loads(client, seconds):
        owner = balanced(load) if load.total >= FEWEST else load.owner
        moves = moves_of(load, owner)
        said.append(
            {
                "worker": load.receiver,
                "packets": load.total,
                "before": load.by_worker(load.owner),
                "after": load.by_worker(owner),
                "moves": [{"to": to, "slots": slots} for to, slots in moves.items()],
            }
        )
        if not as_json:
            print_load(load, owner, seconds)
        if moves and not dry_run:
            move(client, load.receiver, moves)
        if not as_json:
            out.print(_sentence(load, moves, dry_run), highlight=False)
    if as_json:
        print_json(said)


def _sentence(load: Load, moves: Mapping[int, Sequence[int]], dry_run: bool) -> str:
    n = counted(sum(map(len, moves.values())), "slot")
    if load.total < FEWEST:
        return f"nothing moves: {counted(load.total, 'packet')} are too few, at least {FEWEST:,} are needed"
    if not moves:
        return "nothing moves: no move makes the shares more even"
    return f"{n} would move" if dry_run else f"{n} moved"
