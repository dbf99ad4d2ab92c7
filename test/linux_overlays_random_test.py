"""Overlays at random: dl3d forwards as the kernel alone, whatever is changed. DL3_SEED chooses other frames and changes."""

import os
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from harness.overlaid import Overlaid
from harness.overlay_frames import Dice
from harness.overlay_world import N_HOSTS, World

SEED = int(os.environ.get("DL3_SEED", "1"))
BURST = 60  # frames
CHANGES, BURSTS = 6, 2
LONG_CHANGES, LONG_BURSTS = 220, 8


@pytest.fixture(scope="module")
def both() -> Iterator[Overlaid]:
    made = Overlaid.build(N_HOSTS)
    yield made
    made.close()


@dataclass
class Count:
    """Frames that were sent, and those that Linux did not get, from remote ends and from others."""

    sent: int = 0
    ours: int = 0
    ours_from_ends: int = 0


def _burst(world: World, count: Count, is_remote: bool) -> None:
    both = world.both
    since = both.send([world.frame(is_remote) for _ in range(BURST)])
    count.sent += BURST
    ours = max(since.received - since.punted, 0)
    count.ours += ours
    count.ours_from_ends += ours if is_remote else 0


def _run(both: Overlaid, dice: Dice, n_changes: int, n_bursts: int) -> Count:
    world, count = World(both, dice), Count()
    world.begin()
    for step in range(n_changes + 1):
        both.done.append(f"seed {dice.first}, step {step}: {world.change() if step else 'the beginning'}")
        both.settle()
        both.send(world.greet())
        both.settle()
        for _ in range(n_bursts):
            for is_remote in (False, True):
                _burst(world, count, is_remote)
        both.send([world.long_frame()])
    assert both.dl3d.account().is_closed
    return count


def _expect(both: Overlaid, count: Count, n_sent: int) -> None:
    """Enough of it was done by workers."""
    in_overlays = both.sides[0].marks.n_of_workers
    assert count.sent >= n_sent
    assert count.ours > n_sent // 3, (count, in_overlays)
    assert count.ours_from_ends > n_sent // 10, (count, in_overlays)
    assert in_overlays > n_sent // 40, (count, in_overlays)


def overlays_of_dl3d_and_of_the_kernel_send_the_same(both: Overlaid) -> None:
    n_sent = 2 * BURST * BURSTS * (CHANGES + 1)
    _expect(both, _run(both, Dice(SEED), CHANGES, BURSTS), n_sent)


@pytest.mark.long
def so_they_do_across_many_changes(both: Overlaid) -> None:
    _expect(both, _run(both, Dice(SEED + 1000), LONG_CHANGES, LONG_BURSTS), 100_000)
