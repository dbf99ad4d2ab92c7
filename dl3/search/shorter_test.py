"""How long trials are beside stalls, how many there are, and which one counts: pure."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from dl3.search.shorter import MOST_TRIES, SHORTEST_S, WANTED, Lengths, chosen, shorter_s


@dataclass(frozen=True)
class Made:
    """A trial that stalls disturbed, or did not."""

    seconds: float
    n_stalls: float = 0
    invalid: tuple[str, ...] = ()
    is_stalled: bool = False
    loss_ratio: float = 0.0
    received_pps: float = 1e6
    asked_pps: float = 1e6


@dataclass
class Machine:
    """Stalls at fixed times; a trial that one of them touches is disturbed if it took more than 1 % of it."""

    period_s: float = 0.2
    stall_s: float = 0.01
    now_s: float = 0.05
    lengths: list[float] = field(default_factory=list)
    change: Callable[[Made], Made] = field(default=lambda made: made)

    def trial(self, seconds: float) -> Made:
        begin_s, end_s = self.now_s, self.now_s + seconds
        self.lengths.append(seconds)
        self.now_s += seconds + 0.437  # what happens between trials
        hits = [
            n
            for n in range(int(begin_s / self.period_s), int(end_s / self.period_s) + 1)
            if self.hits(n, begin_s, end_s)
        ]
        is_bad = len(hits) * self.stall_s > 0.01 * seconds
        made = Made(seconds, len(hits), ("stalls: x",) if is_bad else (), is_bad)
        return self.change(made)

    def hits(self, n: int, begin_s: float, end_s: float) -> bool:
        at_s = n * self.period_s
        return at_s + self.stall_s > begin_s and at_s < end_s


@pytest.mark.parametrize(
    ("ordered_s", "n", "observed_s", "wanted"),
    [
        (1.0, 5, 1.0, 0.05),  # a quarter of the time between two stalls
        (1.0, 1, 1.0, 0.25),
        (60.0, 300, 60.0, 0.05),
        (1.0, 100, 1.0, SHORTEST_S),
        (0.1, 1, 0.1, 0.025),
        (1.0, 0, 1.0, 0.25),
        (0.015, 1, 0.015, 0.015),  # never longer than ordered
    ],
)
def trials_fit_between_two_stalls(ordered_s: float, n: int, observed_s: float, wanted: float) -> None:
    assert shorter_s(ordered_s, n, observed_s) == wanted


def is_one_whole_trial_on_a_quiet_machine() -> None:
    machine, lengths = Machine(period_s=1e9), Lengths()
    assert [lengths.measure(machine.trial, 1.0).seconds for _ in range(3)] == [1.0] * 3
    assert machine.lengths == [1.0] * 3


def becomes_shorter_until_enough_trials_are_not_disturbed() -> None:
    machine, lengths = Machine(), Lengths()
    made = lengths.measure(machine.trial, 1.0)
    assert made.invalid == ()
    assert made.seconds in machine.lengths[1:]
    assert machine.lengths[:2] == [1.0, 0.05]
    assert all(SHORTEST_S <= seconds <= 0.1 for seconds in machine.lengths[1:])
    assert WANTED <= len(machine.lengths) - 1 <= MOST_TRIES


def begins_with_the_short_length_next_time_until_no_stall_comes() -> None:
    machine, lengths = Machine(), Lengths()
    lengths.measure(machine.trial, 1.0)
    lengths.is_short = True
    n = len(machine.lengths)
    machine.period_s = 1e9  # quiet from now on
    lengths.measure(machine.trial, 1.0)
    assert 1.0 not in machine.lengths[n:]
    assert len(machine.lengths) - n == WANTED
    assert lengths.measure(machine.trial, 1.0).seconds == 1.0


def gives_up_where_the_shortest_trials_are_disturbed_too() -> None:
    machine, lengths = Machine(period_s=0.005, stall_s=0.002), Lengths()
    made = lengths.measure(machine.trial, 1.0)
    assert made.is_stalled
    assert machine.lengths[-1] == SHORTEST_S
    assert len(machine.lengths) <= 1 + MOST_TRIES


@pytest.mark.parametrize("length", [1.0, 0.05])
def other_reasons_are_not_cured_by_shorter_trials(length: float) -> None:
    late = lambda made: Made(made.seconds, 1, ("late: x",)) if made.seconds == length else made  # noqa: E731
    machine = Machine(change=late)
    made = Lengths().measure(machine.trial, 1.0)
    assert made.invalid == ("late: x",)
    assert machine.lengths[-1] == length


def one_certain_loss_is_enough() -> None:
    machine = Machine(change=lambda made: made if made.invalid else Made(made.seconds, loss_ratio=0.3))
    made = Lengths().measure(machine.trial, 1.0, (0.0, 0.005))
    assert made.loss_ratio == 0.3
    assert len(machine.lengths) <= 4


def the_worst_stands_for_a_requested_rate_and_the_median_for_a_flood() -> None:
    losses = [Made(0.05, loss_ratio=ratio) for ratio in (0.0, 0.002, 0.001)]
    assert chosen(losses).loss_ratio == 0.002
    rates = [Made(0.05, asked_pps=0.0, received_pps=pps) for pps in (7e6, 5e6, 6e6)]
    assert chosen(rates).received_pps == 6e6
