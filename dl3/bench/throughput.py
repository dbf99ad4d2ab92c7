"""Conducts throughput: for each frame size the generator's own ceiling first, then the search below it."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from dl3.bench.site import Course, Found, Lines
from dl3.model.fault import Fault
from dl3.model.trial import Limit, Throughput, Trial
from dl3.record.journal import now
from dl3.search.throughput import Answer, Bounds, Rung, Terms, Undecided, find_throughput, halvings
from dl3.trial.account import RING_FULL
from dl3.trial.order import Order

LONGEST_CEILING_S = 2.0
CEILING_TRIES = 3
LOWEST_SHARE = 1e-3  # of the upper bound: slower than that is not searched
DEAD_SHARE = 1 / 64  # of the ceiling: a device that is only overloaded lets something through there
NEAR_LINE = 0.995  # a ceiling that comes so close is the line's
STARVED_SHARE = 0.05  # of what the generator has reached: behind even there, it is not its own limit that shows


@dataclass(frozen=True)
class Wanted:
    """What is searched for, for which frames."""

    frames: tuple[str, ...]
    search: Terms = field(default_factory=Terms)
    max_pps: float = 0.0  # all streams together; 0: no limit

    @property
    def likely_trials(self) -> int:
        """Of one frame size: the ceiling, the upper bound, halvings of the last factor of two."""
        return 1 + (1 + halvings(2.0, self.search.resolution)) * self.search.repetitions


def budget_s(course: Course, wanted: Wanted) -> float:
    """About how long all will take, in seconds."""
    return len(wanted.frames) * wanted.likely_trials * course.trial_s


def ceiling_of(course: Course, frame: str) -> Trial:
    """A trial as fast as can be: what it offered is all that the generator has."""
    seconds = min(course.seconds, LONGEST_CEILING_S)
    order = Order(course.streams, frame, 0, seconds, "ceiling", warm_up_s=course.warm_up_s)
    for _ in range(CEILING_TRIES):
        trial = course.run(order)
        if trial.account.sent:
            return trial
    raise Fault(f"no answer for frames of {frame}: dl3gen sent nothing as fast as it can; {trial.invalid[0]}")


def bounds_of(ceiling: Trial, lines: Lines, max_pps: float) -> Bounds:
    """From next to nothing up to what the generator, the line or the person sets."""
    line_pps = lines.most_pps(ceiling.mean_bytes)
    candidates: list[tuple[float, Limit]] = [(max_pps, "asked"), (line_pps, "line")]
    if not line_pps or ceiling.offered_pps < line_pps * NEAR_LINE:
        candidates.append((ceiling.offered_pps, "generator"))
    high_pps, high_is = min((pps, limit) for pps, limit in candidates if pps)
    return Bounds(high_pps * LOWEST_SHARE, high_pps, high_is)


def known_from(course: Course, ceiling: Trial, bounds: Bounds, terms: Terms) -> list[Rung[Trial]]:
    """What ceiling trials say of the upper bound: passed, where it is the generator's; lost; or nothing.

    A device that loses nothing while the generator sends all that it can is not to be measured any further with it.
    """
    if ceiling.invalid or ceiling.offered_pps > bounds.high_pps:
        return []
    trials = [ceiling]
    while is_good(trials[-1], terms) and bounds.high_is == "generator" and len(trials) < terms.repetitions:
        trials.append(ceiling_of(course, ceiling.frame))
    newest = trials[-1]
    if is_good(newest, terms):
        return [Rung(bounds.high_pps, tuple(trials), "passed")] if bounds.high_is == "generator" else []
    return [] if newest.invalid else [Rung(bounds.high_pps, tuple(trials), "lost")]


def is_good(trial: Trial, terms: Terms) -> bool:
    """Valid, and lost no more than the goal allows."""
    return not trial.invalid and trial.loss_ratio <= terms.goal_loss_ratio


def answer_of(course: Course, wanted: Wanted, ceiling: Trial, found: Answer[Trial], lines: Lines) -> Throughput:
    """The answer as it is recorded."""
    return Throughput(
        at=now(),
        campaign=course.site.campaign,
        dut=course.site.dut_name,
        frame=ceiling.frame,
        mean_bytes=ceiling.mean_bytes,
        pps=found.pps,
        upper_pps=found.upper_pps,
        limited_by=found.limited_by,
        goal_loss_ratio=wanted.search.goal_loss_ratio,
        resolution=wanted.search.resolution,
        trial_seconds=course.seconds,
        repetitions=wanted.search.repetitions,
        n_trials=found.n_trials,
        n_invalid=found.n_invalid,
        line_bps=lines.total_bps,
        job=course.job,
        facts=dict(course.site.facts),
    )


def handed_over_pps(trial: Trial) -> float:
    """What was offered without what a full ring refused, which costs the generator far less."""
    refused = trial.account.lost_by_place.get(RING_FULL, 0)
    return trial.offered_pps * (1 - refused / trial.account.sent)


def check_starved(trials: Sequence[Trial], ceiling: Trial, retries: int) -> None:
    """Give up when the generator was behind in all trials, also far below what it has reached: its core is shared."""
    reached_pps = handed_over_pps(ceiling)
    low = [trial for trial in trials if trial.asked_pps < STARVED_SHARE * reached_pps]
    if len(low) > retries and all(trial.is_behind for trial in trials):
        raise Undecided(
            f"no answer: the generator fell behind {len(trials)} times, even at {trials[-1].asked_pps / 1e6:.3f} Mpps, "
            f"though it has reached {reached_pps / 1e6:.3f}: give it a core that nothing else uses"
        )


def check_dead(trials: Sequence[Trial], ceiling: Trial) -> None:
    """Give up when nothing ever came back, also far below what was offered at first: no rate will mend that."""
    if any(trial.account.received for trial in (ceiling, *trials)):
        return
    newest = trials[-1]
    if newest.account.sent and newest.asked_pps < DEAD_SHARE * ceiling.offered_pps:
        places = newest.account.lost_by_place
        place = max(places, key=lambda name: places[name], default="unknown")
        where = "" if place == "unknown" else f" (most: {place})"
        raise Undecided(
            f"no answer: of {newest.account.sent:,} frames at {newest.asked_pps / 1e6:.3f} Mpps none came back{where}: "
            "look at cables, dst_mac, the device's routes, and the streams' 'to'"
        )


def find(course: Course, wanted: Wanted, frame: str, later_s: float) -> Found:
    """The throughput with one frame size; `later_s` is what all others will still take."""
    left_s = wanted.likely_trials * course.trial_s
    course.audience.heard_left(frame, later_s + left_s)
    ceiling = ceiling_of(course, frame)
    lines = Lines.of(course.site.generator, course.streams)
    trials: list[Trial] = []

    def measure(pps: float) -> Trial:
        order = Order(course.streams, frame, pps, course.seconds, "throughput", warm_up_s=course.warm_up_s)
        trials.append(course.run(order))
        check_starved(trials, ceiling, wanted.search.retries)
        check_dead(trials, ceiling)
        return trials[-1]

    def hear(rates: int) -> None:
        left_s = rates * wanted.search.repetitions * course.trial_s
        course.audience.heard_left(frame, later_s + left_s)

    bounds = bounds_of(ceiling, lines, wanted.max_pps)
    known = known_from(course, ceiling, bounds, wanted.search)
    found = find_throughput(measure, bounds, wanted.search, hear, known)
    answer = answer_of(course, wanted, ceiling, found, lines)
    course.keep(answer)
    return Found(answer, found.best)


def find_all(course: Course, wanted: Wanted) -> Sequence[Found]:
    """One search after the other; a size without an answer is told of and left out."""
    results = []
    each_s = wanted.likely_trials * course.trial_s
    for i, frame in enumerate(wanted.frames):
        try:
            found = find(course, wanted, frame, each_s * (len(wanted.frames) - i - 1))
        except Undecided as fault:
            course.audience.heard_fault(frame, fault)
            continue
        results.append(found)
        course.audience.heard_answer(found)
    return results
