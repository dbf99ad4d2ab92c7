"""Runs the throughput test: for each frame size first the generator's own ceiling, then the search below it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from dl3.bench.site import Found, Lines, Run
from dl3.bench.stability import interruption_reasons, together
from dl3.host.noise import reasons
from dl3.model.fault import Fault
from dl3.model.trial import Limit, Throughput, Trial
from dl3.record.journal import now
from dl3.search.mlr import Goals, find_throughputs
from dl3.search.throughput import (
    Bounds,
    Rung,
    SearchResult,
    SearchSettings,
    Undecided,
    find_throughput,
    halvings,
    search_result,
)
from dl3.trial.account import RING_FULL
from dl3.trial.order import Order

LONGEST_CEILING_S = 2.0
CEILING_TRIES = 3
LOWEST_SHARE = 1e-3  # of the upper bound: lower limit of the search
DEAD_SHARE = 1 / 64  # of the ceiling: a device that is merely overloaded forwards some frames at this load
NEAR_LINE = 0.995  # a ceiling this close to the line rate counts as the line rate
STARVED_SHARE = 0.05  # of the rate the generator has reached: if it is behind even here, it is not at its own limit
FULL_SHARE = 0.95  # of the requested duration: minimum for a full-length trial
CUT = "time: the search was ended before it reached its resolution of {resolution:.2%}"
LIKELY_SHORT_TRIALS = 6  # of MLRsearch, per goal

Measure = Callable[[float, float], Trial]  # packets/s, seconds


@dataclass(frozen=True)
class Wanted:
    """What to search for, and with which frames. `goals` are loss ratios; the goal in `search` is not used."""

    frames: tuple[str, ...]
    search: SearchSettings = field(default_factory=SearchSettings)
    max_pps: float = 0.0  # sum over all streams; 0: no limit
    method: Literal["mlrsearch", "binary"] = "mlrsearch"
    goals: tuple[float, ...] = (0.0,)
    repeats: int = 1  # number of whole searches
    exceed: float = 0.0  # share of a rate's trial time allowed to exceed the goal; MLRsearch only

    def settings(self, goal: float) -> SearchSettings:
        """The settings of a binary search."""
        return replace(self.search, goal_loss_ratio=goal)

    def of_rfc9971(self, seconds: float) -> Goals:
        """The settings of MLRsearch, with final trials of this duration."""
        settings = self.search
        return Goals(self.goals, self.exceed, settings.resolution, seconds, settings.repetitions, settings.retries)

    def likely_s(self, run: Run) -> float:
        """Estimated time for all searches with one frame size."""
        return self.repeats * self.once_s(run)

    def once_s(self, run: Run) -> float:
        """Estimated time for one of them, including the ceiling."""
        if self.method == "binary":
            rates = 1 + halvings(2.0, self.search.resolution)
            return (1 + rates * self.search.repetitions * len(self.goals)) * run.trial_s
        goals = self.of_rfc9971(run.seconds)
        n_trials = len(self.goals) * (goals.n_trials + LIKELY_SHORT_TRIALS)
        return run.trial_s + goals.likely_s + n_trials * run.trial_s_beside


def budget_s(run: Run, wanted: Wanted) -> float:
    """Estimated total time in seconds."""
    return len(wanted.frames) * wanted.likely_s(run)


def ceiling_of(run: Run, frame: str, longest_s: float = LONGEST_CEILING_S) -> Trial:
    """A trial at maximum rate: its offered load is the generator's ceiling."""
    seconds = min(run.seconds, longest_s)
    order = Order(run.streams, frame, 0, seconds, "ceiling", warm_up_s=run.warm_up_s)
    for _ in range(CEILING_TRIES):
        trial = run.trial(order)
        if trial.account.sent:
            return trial
    raise Fault(f"no result for frames of {frame}: dl3gen sent nothing at its maximum rate; {trial.invalid[0]}")


def bounds_of(ceiling: Trial, lines: Lines, max_pps: float) -> Bounds:
    """The search range: from nearly zero up to the limit of the generator, the line or the user."""
    line_pps = lines.most_pps(ceiling.mean_bytes)
    candidates: list[tuple[float, Limit]] = [(max_pps, "asked"), (line_pps, "line")]
    if not line_pps or ceiling.offered_pps < line_pps * NEAR_LINE:
        candidates.append((ceiling.offered_pps, "generator"))
    high_pps, high_is = min((pps, limit) for pps, limit in candidates if pps)
    return Bounds(high_pps * LOWEST_SHARE, high_pps, high_is)


def known_from(run: Run, ceiling: Trial, bounds: Bounds, settings: SearchSettings) -> list[Rung[Trial]]:
    """What ceiling trials show about the upper bound: passed, if the generator is the limit; lost; or nothing.

    A device that loses nothing at the generator's maximum rate cannot be measured any further with it. Only full-length
    trials can pass: a shorter ceiling trial does not count in that case and is repeated.
    """
    if ceiling.invalid or ceiling.offered_pps > bounds.high_pps:
        return []
    if is_good(ceiling, settings) and bounds.high_is != "generator":
        return []
    trials, n_short = [ceiling], int(run.seconds > LONGEST_CEILING_S)
    while is_good(trials[-1], settings) and len(trials) < n_short + settings.repetitions:
        trials.append(ceiling_of(run, ceiling.frame, run.seconds))
    newest = trials[-1]
    if is_good(newest, settings):
        return [Rung(bounds.high_pps, tuple(trials[n_short:]), "passed")]
    return [] if newest.invalid else [Rung(bounds.high_pps, tuple(trials), "lost")]


def is_good(trial: Trial, settings: SearchSettings) -> bool:
    """Valid, and lost no more than the goal allows."""
    return not trial.invalid and trial.loss_ratio <= settings.goal_loss_ratio


def result_of(search_run: "Search", goal: float, found: SearchResult[Trial], trials: Sequence[Trial]) -> Throughput:
    """The result to record; `trials` are all trials of its search."""
    run, wanted, is_binary = search_run.run, search_run.wanted, search_run.wanted.method == "binary"
    full = [trial for trial in trials if trial.seconds > FULL_SHARE * run.seconds]
    passed = [trial.offered_pps for trial in full if is_good(trial, wanted.settings(goal))]
    return Throughput(
        at=now(),
        campaign=run.site.campaign,
        dut=run.site.dut_name,
        frame=search_run.frame,
        mean_bytes=search_run.ceiling.mean_bytes,
        pps=found.pps,
        upper_pps=found.upper_pps,
        ended_pps=found.ended_pps,
        limited_by=found.limited_by,
        goal_loss_ratio=goal,
        resolution=wanted.search.resolution,
        trial_seconds=run.seconds,
        repetitions=wanted.search.repetitions if is_binary else wanted.of_rfc9971(run.seconds).n_trials,
        n_trials=found.n_trials,
        n_invalid=found.n_invalid,
        line_bps=search_run.lines.total_bps,
        job=run.job,
        method=wanted.method,
        exceed_ratio=0.0 if is_binary else wanted.exceed,
        conditional_pps=found.conditional_pps,
        passed_pps=max((found.pps, *passed)),
        search_seconds=sum(trial.seconds for trial in trials),
        facts=dict(run.site.facts),
    )


def handed_over_pps(trial: Trial) -> float:
    """Offered load without frames refused by a full ring, which cost the generator far less."""
    refused = trial.account.lost_by_place.get(RING_FULL, 0)
    return trial.offered_pps * (1 - refused / trial.account.sent)


def check_starved(trials: Sequence[Trial], ceiling: Trial, retries: int) -> None:
    """Give up if the generator was behind in all trials, even far below its ceiling: its core is shared."""
    reached_pps = handed_over_pps(ceiling)
    low = [trial for trial in trials if trial.asked_pps < STARVED_SHARE * reached_pps]
    if len(low) > retries and all(trial.is_behind for trial in trials):
        raise Undecided(
            f"no result: the generator fell behind {len(trials)} times, even at {trials[-1].asked_pps / 1e6:.3f} Mpps, "
            f"though it has reached {reached_pps / 1e6:.3f}: give it a core that nothing else uses"
        )


def check_dead(trials: Sequence[Trial], ceiling: Trial) -> None:
    """Give up if no frame was ever received, even far below the first offered load: no rate would change that."""
    if any(trial.account.received for trial in (ceiling, *trials)):
        return
    newest = trials[-1]
    if newest.account.sent and newest.asked_pps < DEAD_SHARE * ceiling.offered_pps:
        places = newest.account.lost_by_place
        place = max(places, key=lambda name: places[name], default="unknown")
        where = "" if place == "unknown" else f" (most: {place})"
        raise Undecided(
            f"no result: none of {newest.account.sent:,} frames at {newest.asked_pps / 1e6:.3f} Mpps came back{where}: "
            "check cables, dst_mac, the device's routes, and the streams' 'to'"
        )


@dataclass
class Search:
    """One search with one frame size; `later_s` is the estimated time of all later ones."""

    run: Run
    wanted: Wanted
    frame: str
    later_s: float
    ceiling: Trial
    lines: Lines
    trials: list[Trial] = field(default_factory=list)
    all_trials: list[Trial] = field(default_factory=list)  # of all goals and repeated searches with this frame size
    cut: list[str] = field(default_factory=list)  # reasons why the search ended early, before it reached its resolution

    @property
    def bounds(self) -> Bounds:
        """The search range."""
        return bounds_of(self.ceiling, self.lines, self.wanted.max_pps)

    def measure(self, pps: float, seconds: float) -> Trial:
        """One trial; its warm-up is no longer than the trial itself."""
        run, warm_up_s = self.run, min(self.run.warm_up_s, seconds)
        order = Order(run.streams, self.frame, pps, seconds, "throughput", warm_up_s=warm_up_s)
        self.trials.append(run.trial(order))
        self.all_trials.append(self.trials[-1])
        check_starved(self.trials, self.ceiling, self.wanted.search.retries)
        check_dead(self.trials, self.ceiling)
        return self.trials[-1]

    def report(self, seconds: float) -> None:
        """Report the estimated time that this search still takes."""
        self.run.listener.on_left(self.frame, self.later_s + seconds)

    def search(self) -> list[Found]:
        """One result per goal."""
        if self.wanted.method == "binary":
            return [self.halve(i, goal) for i, goal in enumerate(self.wanted.goals)]
        return [self.found(*one, self.trials) for one in zip(self.wanted.goals, self.search_all(), strict=True)]

    def found(self, goal: float, result: SearchResult[Trial], trials: Sequence[Trial]) -> Found:
        """The result to record, with its best trial."""
        return Found(result_of(self, goal, result, trials), result.best)

    def halve(self, i: int, goal: float) -> Found:
        """A binary search for one of the goals."""
        search_run, run, settings = replace(self, trials=[]), self.run, self.wanted.settings(goal)
        each_s, n_goals = settings.repetitions * run.trial_s, len(self.wanted.goals)
        after_s = (n_goals - 1 - i) * self.wanted.once_s(run) / n_goals
        known = known_from(run, self.ceiling, self.bounds, settings)
        measure = lambda pps: search_run.measure(pps, run.seconds)  # noqa: E731
        report = lambda rates: self.report(after_s + rates * each_s)  # noqa: E731
        result = find_throughput(measure, self.bounds, settings, report, known, run.listener.is_waiting)
        self.trials += search_run.trials
        if result.ended_pps - result.pps > settings.resolution * result.ended_pps and run.listener.is_waiting():
            self.cut.append(CUT.format(resolution=settings.resolution))
        return self.found(goal, result, search_run.trials)

    def search_all(self) -> Sequence[SearchResult[Trial]]:
        """All goals at once with MLRsearch; if full speed is lossless, it is the result for all of them."""
        run, wanted = self.run, self.wanted
        goals = wanted.of_rfc9971(run.seconds)
        settings = replace(wanted.settings(min(goals.loss_ratios)), repetitions=goals.n_trials)
        known = known_from(run, self.ceiling, self.bounds, settings)
        if known and known[0].verdict == "passed":
            return [search_result(known, self.bounds, settings)] * len(goals.loss_ratios)
        share = run.trial_s / run.seconds
        first = known[0].trials[-1] if known else None
        return find_throughputs(self.measure, self.bounds, goals, lambda left_s: self.report(left_s * share), first)


def find_once(
    run: Run, wanted: Wanted, frame: str, later_s: float, trials: list[Trial]
) -> tuple[list[Found], list[str]]:
    """One whole search: a result per goal, and reasons if the generator or the search was interrupted.

    Its trials are appended to `trials`, even if it has no result.
    """
    run.listener.on_left(frame, later_s + wanted.once_s(run))
    lines = Lines.of(run.site.generator, run.streams)
    search_run = Search(run, wanted, frame, later_s, ceiling_of(run, frame), lines, all_trials=trials)
    return search_run.search(), [*interruption_reasons(search_run.trials), *search_run.cut]


def counted(found: Found, trials: Sequence[Trial]) -> Found:
    """The result with the number of these trials, counted as in the report (dl3.report.tally).

    The ceiling is a measurement of its own and does not count, unless it was the only one: the generator was the limit,
    and no other rate was tried.
    """
    if not trials:
        return found
    counts = {"n_trials": len(trials), "n_invalid": sum(1 for trial in trials if trial.invalid)}
    return Found(found.result.model_copy(update=counts), found.best)


def find(run: Run, wanted: Wanted, frame: str, later_s: float) -> tuple[Found, ...]:
    """The throughput with one frame size for each goal; `later_s` is the estimated time of all later searches.

    With repeated searches the median is the result; a search without a result counts as noise. Raises Undecided if no
    search has one.
    """
    before, runs, noise, trials = run.look(), list[list[Found]](), list[str](), list[Trial]()
    for n_left in reversed(range(wanted.repeats)):
        try:
            found, interrupted = find_once(run, wanted, frame, later_s + n_left * wanted.once_s(run), trials)
        except Undecided as fault:
            if not runs and not n_left:
                raise
            noise.append(str(fault))
            continue
        runs.append(found)
        noise += interrupted
    noise = [*reasons(before, run.look()), *dict.fromkeys(noise)]
    results = tuple(counted(together(found, noise), trials) for found in zip(*runs, strict=True))
    for one in results:
        run.keep(one.result)
    return results


def find_all(run: Run, wanted: Wanted) -> Sequence[Found]:
    """One search after another; a size without a result is reported and skipped."""
    results: list[Found] = []
    each_s = wanted.likely_s(run)
    for i, frame in enumerate(wanted.frames):
        try:
            found = find(run, wanted, frame, each_s * (len(wanted.frames) - i - 1))
        except Undecided as fault:
            run.listener.on_fault(frame, fault)
            continue
        results += found
        for one in found:
            run.listener.on_result(one)
    return results
