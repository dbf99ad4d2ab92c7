"""Conducts throughput: for each frame size the generator's own ceiling first, then the search below it."""

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
from dl3.search.throughput import Answer, Bounds, Rung, Terms, Undecided, find_throughput, halvings
from dl3.search.throughput import answer as answer_from
from dl3.trial.account import RING_FULL
from dl3.trial.order import Order

LONGEST_CEILING_S = 2.0
CEILING_TRIES = 3
LOWEST_SHARE = 1e-3  # of the upper bound: slower than that is not searched
DEAD_SHARE = 1 / 64  # of the ceiling: a device that is only overloaded lets something through there
NEAR_LINE = 0.995  # a ceiling that comes so close is the line's
STARVED_SHARE = 0.05  # of what the generator has reached: behind even there, it is not its own limit that shows
FULL_SHARE = 0.95  # of the time that was asked: a trial of full length took so long at least
CUT = "time: the search was ended before its answer was as fine as its resolution of {resolution:.2%}"
LIKELY_SHORT_TRIALS = 6  # of MLRsearch, for each goal

Measure = Callable[[float, float], Trial]  # packets/s, seconds


@dataclass(frozen=True)
class Wanted:
    """What is searched for, for which frames. `goals` are loss ratios; that of `search` does not count."""

    frames: tuple[str, ...]
    search: Terms = field(default_factory=Terms)
    max_pps: float = 0.0  # all streams together; 0: no limit
    method: Literal["mlrsearch", "binary"] = "mlrsearch"
    goals: tuple[float, ...] = (0.0,)
    repeats: int = 1  # whole searches
    exceed: float = 0.0  # share of a rate's trial time that may lose more than the goal; MLRsearch alone knows it

    def terms(self, goal: float) -> Terms:
        """Of a binary search."""
        return replace(self.search, goal_loss_ratio=goal)

    def of_rfc9971(self, seconds: float) -> Goals:
        """Of MLRsearch, with final trials of so many seconds."""
        terms = self.search
        return Goals(self.goals, self.exceed, terms.resolution, seconds, terms.repetitions, terms.retries)

    def likely_s(self, run: Run) -> float:
        """About how long all searches with one frame size will take."""
        return self.repeats * self.once_s(run)

    def once_s(self, run: Run) -> float:
        """About how long one of them will take, its ceiling included."""
        if self.method == "binary":
            rates = 1 + halvings(2.0, self.search.resolution)
            return (1 + rates * self.search.repetitions * len(self.goals)) * run.trial_s
        goals = self.of_rfc9971(run.seconds)
        n_trials = len(self.goals) * (goals.n_trials + LIKELY_SHORT_TRIALS)
        return run.trial_s + goals.likely_s + n_trials * run.trial_s_beside


def budget_s(run: Run, wanted: Wanted) -> float:
    """About how long all will take, in seconds."""
    return len(wanted.frames) * wanted.likely_s(run)


def ceiling_of(run: Run, frame: str, longest_s: float = LONGEST_CEILING_S) -> Trial:
    """A trial as fast as can be: what it offered is all that the generator has."""
    seconds = min(run.seconds, longest_s)
    order = Order(run.streams, frame, 0, seconds, "ceiling", warm_up_s=run.warm_up_s)
    for _ in range(CEILING_TRIES):
        trial = run.trial(order)
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


def known_from(run: Run, ceiling: Trial, bounds: Bounds, terms: Terms) -> list[Rung[Trial]]:
    """What ceiling trials say of the upper bound: passed, where it is the generator's; lost; or nothing.

    A device that loses nothing while the generator sends all that it can is not to be measured any further with it.
    To pass takes trials of full length: a ceiling that was shorter does not count then, and is made again.
    """
    if ceiling.invalid or ceiling.offered_pps > bounds.high_pps:
        return []
    if is_good(ceiling, terms) and bounds.high_is != "generator":
        return []
    trials, n_short = [ceiling], int(run.seconds > LONGEST_CEILING_S)
    while is_good(trials[-1], terms) and len(trials) < n_short + terms.repetitions:
        trials.append(ceiling_of(run, ceiling.frame, run.seconds))
    newest = trials[-1]
    if is_good(newest, terms):
        return [Rung(bounds.high_pps, tuple(trials[n_short:]), "passed")]
    return [] if newest.invalid else [Rung(bounds.high_pps, tuple(trials), "lost")]


def is_good(trial: Trial, terms: Terms) -> bool:
    """Valid, and lost no more than the goal allows."""
    return not trial.invalid and trial.loss_ratio <= terms.goal_loss_ratio


def answer_of(search_run: "Search", goal: float, found: Answer[Trial], trials: Sequence[Trial]) -> Throughput:
    """The answer as it is recorded; `trials` are all that its search made."""
    run, wanted, is_binary = search_run.run, search_run.wanted, search_run.wanted.method == "binary"
    full = [trial for trial in trials if trial.seconds > FULL_SHARE * run.seconds]
    passed = [trial.offered_pps for trial in full if is_good(trial, wanted.terms(goal))]
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


@dataclass
class Search:
    """One search with one frame size; `later_s` is what all others will still take."""

    run: Run
    wanted: Wanted
    frame: str
    later_s: float
    ceiling: Trial
    lines: Lines
    trials: list[Trial] = field(default_factory=list)
    cut: list[str] = field(default_factory=list)  # that its time was up before an answer was as fine as wanted

    @property
    def bounds(self) -> Bounds:
        """Where to search."""
        return bounds_of(self.ceiling, self.lines, self.wanted.max_pps)

    def measure(self, pps: float, seconds: float) -> Trial:
        """One trial; a short one has no longer warm-up than itself."""
        run, warm_up_s = self.run, min(self.run.warm_up_s, seconds)
        order = Order(run.streams, self.frame, pps, seconds, "throughput", warm_up_s=warm_up_s)
        self.trials.append(run.trial(order))
        check_starved(self.trials, self.ceiling, self.wanted.search.retries)
        check_dead(self.trials, self.ceiling)
        return self.trials[-1]

    def hear(self, seconds: float) -> None:
        """How long this search will still take."""
        self.run.listener.on_left(self.frame, self.later_s + seconds)

    def search(self) -> list[Found]:
        """An answer for each goal."""
        if self.wanted.method == "binary":
            return [self.halve(i, goal) for i, goal in enumerate(self.wanted.goals)]
        return [self.found(*one, self.trials) for one in zip(self.wanted.goals, self.search_all(), strict=True)]

    def found(self, goal: float, answer: Answer[Trial], trials: Sequence[Trial]) -> Found:
        """As it is recorded, with the trial behind it."""
        return Found(answer_of(self, goal, answer, trials), answer.best)

    def halve(self, i: int, goal: float) -> Found:
        """A binary search for one of the goals."""
        search_run, run, terms = replace(self, trials=[]), self.run, self.wanted.terms(goal)
        each_s, n_goals = terms.repetitions * run.trial_s, len(self.wanted.goals)
        after_s = (n_goals - 1 - i) * self.wanted.once_s(run) / n_goals
        known = known_from(run, self.ceiling, self.bounds, terms)
        measure = lambda pps: search_run.measure(pps, run.seconds)  # noqa: E731
        hear = lambda rates: self.hear(after_s + rates * each_s)  # noqa: E731
        answer = find_throughput(measure, self.bounds, terms, hear, known, run.listener.is_waiting)
        self.trials += search_run.trials
        if answer.ended_pps - answer.pps > terms.resolution * answer.ended_pps and run.listener.is_waiting():
            self.cut.append(CUT.format(resolution=terms.resolution))
        return self.found(goal, answer, search_run.trials)

    def search_all(self) -> Sequence[Answer[Trial]]:
        """All goals at once, by MLRsearch; full speed without loss is the answer to all of them."""
        run, wanted = self.run, self.wanted
        goals = wanted.of_rfc9971(run.seconds)
        terms = replace(wanted.terms(min(goals.loss_ratios)), repetitions=goals.n_trials)
        known = known_from(run, self.ceiling, self.bounds, terms)
        if known and known[0].verdict == "passed":
            return [answer_from(known, self.bounds, terms)] * len(goals.loss_ratios)
        share = run.trial_s / run.seconds
        first = known[0].trials[-1] if known else None
        return find_throughputs(self.measure, self.bounds, goals, lambda left_s: self.hear(left_s * share), first)


def find_once(run: Run, wanted: Wanted, frame: str, later_s: float) -> tuple[list[Found], list[str]]:
    """One whole search: an answer for each goal, and whether the generator or the search was interrupted."""
    run.listener.on_left(frame, later_s + wanted.once_s(run))
    lines = Lines.of(run.site.generator, run.streams)
    search_run = Search(run, wanted, frame, later_s, ceiling_of(run, frame), lines)
    return search_run.search(), [*interruption_reasons(search_run.trials), *search_run.cut]


def find(run: Run, wanted: Wanted, frame: str, later_s: float) -> tuple[Found, ...]:
    """The throughput with one frame size for each goal; `later_s` is what all others will still take.

    Of whole searches again the median is the answer; one that has none is noise. Raises Undecided when none has one.
    """
    before, runs, noise = run.look(), list[list[Found]](), list[str]()
    for n_left in reversed(range(wanted.repeats)):
        try:
            found, interrupted = find_once(run, wanted, frame, later_s + n_left * wanted.once_s(run))
        except Undecided as fault:
            if not runs and not n_left:
                raise
            noise.append(str(fault))
            continue
        runs.append(found)
        noise += interrupted
    noise = [*reasons(before, run.look()), *dict.fromkeys(noise)]
    results = tuple(together(found, noise) for found in zip(*runs, strict=True))
    for one in results:
        run.keep(one.answer)
    return results


def find_all(run: Run, wanted: Wanted) -> Sequence[Found]:
    """One search after the other; a size without an answer is told of and left out."""
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
            run.listener.on_answer(one)
    return results
