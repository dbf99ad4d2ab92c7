"""Every result as plain figures, each with its range: the basis of CSV, JSON and comparisons."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import median

from dl3.model.results import BackToBack, Forwarding, FrameLoss, LossPoint, Recovery, Reset
from dl3.model.trial import Throughput, Trial, wire_of
from dl3.report.by_frame import is_at_least
from dl3.report.groups import Groups, test_of
from dl3.report.results import Measured, Other, Results, question

HIGHEST_RATE = "highest forwarding rate"
USUAL_SPREAD = 0.03  # of a figure that has neither an interval nor repetitions
LEAST = {"ns": 1000.0, "s": 1e-4, "ratio": 1e-3}  # by unit: smaller differences do not count


@dataclass(frozen=True)
class Figure:
    """One measured figure."""

    campaign: str
    case: str
    dut: str
    parameters: str
    test: str
    frame: str
    at: str  # the rest of the question: a goal, a load, what was reset
    name: str
    unit: str
    value: float
    low: float
    high: float
    basis: str  # of low and high: 'interval', 'repetitions', 'spread'
    is_better_high: bool
    is_at_least: bool = False  # something other than the device ended the search, or the longest burst passed
    is_noisy: bool = False
    is_judged: bool = True  # whether it can make a comparison end with 'worse'
    job: str = ""
    lines: str = ""
    wire: str = ""  # '' if unknown
    load_pps: float = 0.0  # the highest load of its test, if the figure depends on it

    @property
    def variant(self) -> str:
        """The other conditions: the parameters of its case, or the wire if there are none."""
        is_of_case = bool(self.job or self.parameters)
        return self.parameters if is_of_case or not self.wire else f"wire={self.wire}"

    @property
    def question(self) -> tuple[str, ...]:
        """The key by which two campaigns are compared."""
        who = self.job or f"{self.dut}|{self.variant}"
        return who, self.test, self.frame, self.at, self.name


@dataclass(frozen=True)
class Value:
    """A figure without its context."""

    name: str
    unit: str
    value: float
    low: float
    high: float
    basis: str
    is_better_high: bool
    at: str = ""
    is_judged: bool = True
    is_at_least: bool = False
    load_pps: float = 0.0


def around(value: float, name: str, unit: str, is_better_high: bool, at: str = "", judged: bool = True) -> Value:
    """A figure that was measured once: plus or minus half of the usual spread."""
    half = half_of(value, unit)
    return Value(name, unit, value, max(0.0, value - half), value + half, "spread", is_better_high, at, judged)


def half_of(value: float, unit: str) -> float:
    """By how much a figure may deviate and still count as unchanged."""
    return max(abs(value) * USUAL_SPREAD, LEAST.get(unit, 0.0)) / 2


def repeated(values: Sequence[float], name: str, unit: str, is_better_high: bool, at: str = "") -> list[Value]:
    """The mean of repetitions with minimum and maximum."""
    if not values:
        return []
    mean = sum(values) / len(values)
    if len(values) == 1:
        return [around(mean, name, unit, is_better_high, at)]
    half = LEAST.get(unit, 0.0) / 2
    low, high = max(0.0, min(*values, mean - half)), max(*values, mean + half)
    return [Value(name, unit, mean, low, high, "repetitions", is_better_high, at)]


def throughput_values(result: Throughput) -> list[Value]:
    """The rate, with a range no narrower than the resolution of the search, and the conditional throughput."""
    at = f"loss <= {result.goal_loss_ratio:g}"
    low, high, basis = result.pps * (1 - USUAL_SPREAD / 2), result.pps * (1 + USUAL_SPREAD / 2), "spread"
    if result.interval_pps is not None:
        (low, high), basis = result.interval_pps, "interval"
    elif len(result.repeats_pps) > 1:
        low, high, basis = min(result.repeats_pps), max(result.repeats_pps), "repetitions"
    high = max(high, result.pps * (1 + result.resolution))
    found = [Value("throughput", "packet/s", result.pps, low, high, basis, True, at)]
    if result.conditional_pps is not None:
        found.append(around(result.conditional_pps, "conditional throughput", "packet/s", True, at, judged=False))
    return found


def highest(points: Sequence[LossPoint]) -> LossPoint | None:
    """The highest load measured."""
    return max(points, key=lambda point: point.pps, default=None)


def loss_values(result: FrameLoss) -> list[Value]:
    """Loss at the highest load, and the highest load without loss, a lower bound if no higher load was measured."""
    worst = highest(result.points)
    if worst is None:
        return []
    clean_pps = max((point.pps for point in result.points if point.loss_ratio == 0), default=0.0)
    found = [replace(around(worst.loss_ratio, "loss ratio at the highest load", "ratio", False), load_pps=worst.pps)]
    if not clean_pps:
        return found
    best = around(clean_pps, "highest load without loss", "packet/s", True)
    best = replace(best, is_at_least=clean_pps == worst.pps)
    next_pps = min((point.pps for point in result.points if point.pps > clean_pps), default=0.0)
    return [*found, replace(best, high=max(best.high, next_pps))]  # the true value is below the next step


def forwarding_values(result: Forwarding) -> list[Value]:
    """Both rates; lower bounds if the device forwarded everything that could be offered."""
    most = around(result.at_most_offered_pps, "forwarding rate at the highest load", "packet/s", True)
    best = around(result.most_pps, HIGHEST_RATE, "packet/s", True)
    top = highest(result.points)
    if top is None:
        return [most, best]
    is_all = top.loss_ratio <= LEAST["ratio"]
    return [replace(one, is_at_least=is_all, load_pps=top.pps) for one in (most, best)]


def other_values(result: Other) -> list[Value]:
    """The figures of all tests except throughput and latency."""
    if isinstance(result, FrameLoss):
        return loss_values(result)
    if isinstance(result, BackToBack):
        bursts = repeated(result.bursts or (result.frames,), "longest burst without loss", "frames", True)
        return [*bursts, around(result.corrected_buffer_s, "corrected buffer time", "s", True, judged=False)]
    if isinstance(result, Recovery):
        return repeated(result.seconds, "recovery time", "s", False)
    if isinstance(result, Reset):
        return repeated(result.seconds, "time out of service", "s", False, result.what)
    if isinstance(result, Forwarding):
        return forwarding_values(result)
    low, high = result.interval
    return [Value("ratio", "", result.ratio, low, high, "interval", True, f"{result.test} against {result.peer}")]


def latency_values(trials: Sequence[Trial]) -> list[Value]:
    """Medians over the trials at one load; only the median latency is judged, since the tails have too few frames."""
    load = trials[0].load
    at = f"load {load:.0%}" if load is not None else f"{trials[0].asked_pps:.0f} packet/s"
    found = []
    for name in ("min", "mean", "p50", "p90", "p99", "p99_9", "p99_99", "p99_999", "max"):
        values = [getattr(trial.latency, name) for trial in trials]
        middle = median(values)
        half = half_of(middle, "ns")
        low, high = min(*values, middle - half), max(*values, middle + half)
        basis = "repetitions" if len(values) > 1 else "spread"
        label = f"latency {name.replace('_', '.')}"
        found.append(Value(label, "ns", middle, low, high, basis, False, at, name == "p50"))
    jitter = median(trial.jitter_mean for trial in trials)
    return [*found, around(jitter, "mean jitter", "ns", False, at, judged=False)]


def is_bound(record: Measured) -> bool:
    """Whether all figures of a result are lower bounds."""
    return (
        record.is_at_least if isinstance(record, BackToBack) else isinstance(record, Throughput) and is_at_least(record)
    )


def figure_of(record: Measured, value: Value, groups: Groups) -> Figure:
    """A figure with its context."""
    results = groups.results
    job = results.jobs.get(record.job)
    parameters = job.parameters.items() if job else ()
    return Figure(
        **vars(replace(value, is_at_least=value.is_at_least or is_bound(record))),
        campaign=record.campaign,
        case=job.case if job else "",
        dut=record.dut,
        parameters=", ".join(f"{key}={text}" for key, text in parameters),
        test=test_of(record),
        frame=record.frame,
        is_noisy=bool(getattr(record, "noise", ())),
        job=record.job,
        lines=groups.lines(record),
        wire=wire_of(record.facts),
    )


def latency_groups(results: Results) -> Iterable[list[Trial]]:
    """Latency trials of the same question."""
    found: dict[tuple[object, ...], list[Trial]] = {}
    for trial in results.latencies:
        if trial.latency.n > 0:
            load = trial.load if trial.load is not None else trial.asked_pps
            found.setdefault((*question(trial), load), []).append(trial)
    return found.values()


def figures(results: Results) -> list[Figure]:
    """All figures of all results."""
    groups = Groups(results)
    found = [figure_of(one, value, groups) for one in results.searches for value in throughput_values(one)]
    found += [figure_of(one, value, groups) for one in results.others for value in other_values(one)]
    for trials in latency_groups(results):
        found += [figure_of(trials[0], value, groups) for value in latency_values(trials)]
    return found
