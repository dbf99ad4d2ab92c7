"""Fits jobs into a time budget: fewer repetitions, shorter trials, coarser resolution, fewer frame sizes, fewer latency
loads.

In this order, each no more than necessary. Cases and parameter values are never removed.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from dl3.campaign.duration import Pace, total_s
from dl3.model.campaign import Effort, Job, Text
from dl3.model.fault import UsageFault

FLOOR_S = 0.2  # minimum trial duration; in shorter trials a stall of the machine is too large a share
RESERVE = 0.3  # fraction of a budget kept for repeating INVALID trials, up to half of them on virtual cores
LEAST_RESERVE = 0.15  # a budget that leaves less is rejected
RESOLUTIONS = (0.01, 0.02, 0.05)
N_FRAMES_KEPT = 2  # the smallest and the largest

Jobs = Sequence[Job]


@dataclass(frozen=True)
class Fitted:
    """The remaining jobs, and what was reduced."""

    jobs: tuple[Job, ...]
    shortened: tuple[Text, ...] = ()


def changed(jobs: Jobs, change: Callable[[Effort], dict[str, object]]) -> tuple[Job, ...]:
    """All jobs with modified efforts; unmodified jobs are kept as they are."""
    made = []
    for job in jobs:
        fields = {name: value for name, value in change(job.effort).items() if getattr(job.effort, name) != value}
        effort = job.effort.model_copy(update=fields)
        made.append(job.model_copy(update={"effort": effort}) if fields else job)
    return tuple(made)


def with_repetitions(jobs: Jobs, most: int) -> tuple[Job, ...]:
    """Limit the number of repetitions."""
    return changed(jobs, lambda effort: {"repetitions": min(effort.repetitions, most)})


def with_seconds(jobs: Jobs, most: float) -> tuple[Job, ...]:
    """Limit the trial duration, rounded down to hundredths."""
    cap = max(int(most * 100) / 100, FLOOR_S)
    return changed(jobs, lambda effort: {"seconds": min(effort.seconds, cap)})


def with_resolution(jobs: Jobs, least: float) -> tuple[Job, ...]:
    """Limit how fine the resolution is."""
    return changed(jobs, lambda effort: {"resolution": max(effort.resolution, least)})


def with_loads(jobs: Jobs, most: int) -> tuple[Job, ...]:
    """Keep only the highest loads of a latency test."""
    return changed(jobs, lambda effort: {"loads": tuple(sorted(sorted(effort.loads)[-most:]))})


def group_of(job: Job) -> str:
    """The case, device and parameter values of a job: its key without test and frame."""
    return job.key.rsplit("|", 2)[0]


def by_size(frames: Sequence[str]) -> list[str]:
    """Sizes in ascending order. Mixes go after the smallest size; frames are removed from the middle."""
    sizes = sorted((frame for frame in frames if frame.isdigit()), key=int)
    mixes = [frame for frame in frames if not frame.isdigit()]
    return [*sizes[:1], *mixes, *sizes[1:]]


def thinned(frames: Sequence[str]) -> list[str]:
    """Remove one frame between the smallest and the largest: sizes before mixes."""
    inner = [frame for frame in by_size(frames)[1:-1] if frame.isdigit()] or by_size(frames)[1:-1]
    gone = inner[len(inner) // 2]
    return [frame for frame in frames if frame != gone]


def with_frames(jobs: Jobs, most: int) -> tuple[Job, ...]:
    """Limit the number of frame sizes per case, device and parameter values."""
    kept: dict[str, list[str]] = {}
    for job in jobs:
        frames = kept.setdefault(group_of(job), [])
        if job.frame not in frames:
            frames.append(job.frame)
    for name, frames in kept.items():
        while len(frames) > max(most, N_FRAMES_KEPT):
            frames = thinned(frames)
        kept[name] = frames
    return tuple(job for job in jobs if job.frame in kept[group_of(job)])


def most_frames(jobs: Jobs) -> int:
    """The largest number of frame sizes of any case, device and parameter values."""
    found: dict[str, set[str]] = {}
    for job in jobs:
        found.setdefault(group_of(job), set()).add(job.frame)
    return max((len(frames) for frames in found.values()), default=0)


def steps(jobs: Jobs) -> Iterator[tuple[Job, ...]]:
    """Successively shorter versions of the jobs; trials have the minimum duration from the second kind of step on."""
    for n in range(max((job.effort.repetitions for job in jobs), default=1) - 1, 0, -1):
        yield (jobs := with_repetitions(jobs, n))
    yield (jobs := with_seconds(jobs, FLOOR_S))
    for resolution in RESOLUTIONS:
        yield (jobs := with_resolution(jobs, resolution))
    for n in range(most_frames(jobs) - 1, N_FRAMES_KEPT - 1, -1):
        yield (jobs := with_frames(jobs, n))
    for n in range(max((len(job.effort.loads) for job in jobs), default=1) - 1, 0, -1):
        yield (jobs := with_loads(jobs, n))


def lengthened(short: Jobs, jobs: Jobs, fits: Callable[[Jobs], bool]) -> tuple[Job, ...]:
    """The shortened jobs with the longest trials that fit, at most their original duration."""
    before = {job.key: job.effort.seconds for job in jobs}

    def capped(cap: float) -> tuple[Job, ...]:
        restored = [
            job.model_copy(update={"effort": job.effort.model_copy(update={"seconds": before[job.key]})})
            for job in short
        ]
        return with_seconds(restored, cap)

    low, high = FLOOR_S, max((job.effort.seconds for job in jobs), default=FLOOR_S)
    if fits(capped(high)):
        return capped(high)
    while high - low > 0.01:
        middle = (low + high) / 2
        low, high = (middle, high) if fits(capped(middle)) else (low, middle)
    return capped(low)


def shortest(jobs: Jobs) -> tuple[Job, ...]:
    """The jobs with all permitted reductions."""
    least = tuple(jobs)
    for step in steps(jobs):
        least = step
    return least


def span(seconds: float) -> str:
    """A duration such as '95s' or '1h2m5s', as accepted by --budget; rounded up to a second."""
    whole = math.ceil(seconds)
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    return "".join(f"{n}{unit}" for n, unit in ((hours, "h"), (minutes, "m"), (rest, "s")) if n)


def fitted(jobs: Jobs, budget_s: float, pace: Pace | None = None, n_proofs: int = 0) -> Fitted:
    """Fit jobs into the budget, with as much reserve as possible; otherwise UsageFault with the minimum budget."""

    def fits(some: Jobs) -> bool:
        return total_s(some, pace, n_proofs) <= budget_s * (1 - RESERVE)

    if fits(jobs):
        return Fitted(tuple(jobs))
    for short in steps(jobs):
        if fits(short):
            made = lengthened(short, jobs, fits)
            return Fitted(made, tuple(what_was_shortened(jobs, made)))
    least = shortest(jobs)
    least_s = total_s(least, pace, n_proofs) / (1 - LEAST_RESERVE)
    if least_s <= budget_s:
        return Fitted(least, tuple(what_was_shortened(jobs, least)))
    n = len({job.case for job in jobs})
    n_cases = "1 case" if n == 1 else f"{n} cases"
    raise UsageFault(
        f"the time budget of {span(budget_s)} is too short for {n_jobs(len(jobs))} ({n_cases}): minimum {span(least_s)}; "
        "increase it, or use a smaller campaign"
    )


def said(values: Sequence[object]) -> Text:
    """'5' or '1 to 3'."""
    low, high = min(values), max(values)  # type: ignore[type-var]
    both = f"{low:g}", f"{high:g}"
    return Text(en=" to ".join(dict.fromkeys(both)), zh=" 至 ".join(dict.fromkeys(both)))


def differing(before: Jobs, after: Jobs, name: str) -> tuple[int, Text, Text] | None:
    """The number of jobs whose effort differs in one field, with its old and new values; None if there are none."""
    old = {job.key: getattr(job.effort, name) for job in before}
    pairs = [(old[job.key], new) for job in after if old[job.key] != (new := getattr(job.effort, name))]
    if not pairs:
        return None
    return len(pairs), said([pair[0] for pair in pairs]), said([pair[1] for pair in pairs])


def frames_gone(before: Jobs, after: Jobs) -> Text | None:
    """The frame sizes that were removed, and from how many jobs."""
    kept = {job.key for job in after}
    gone = [job for job in before if job.key not in kept]
    if not gone:
        return None
    names = ", ".join(by_size(list(dict.fromkeys(job.frame for job in gone))))
    cases = ", ".join(dict.fromkeys(job.case for job in gone))
    return Text(
        en=f"frames of {names} left out in {n_jobs(len(gone))} of the cases {cases}",
        zh=f"用例 {cases} 的 {len(gone)} 项测试不再测帧长 {names}",
    )


def n_jobs(n: int) -> str:
    """'1 job' or 'N jobs'."""
    return "1 job" if n == 1 else f"{n} jobs"


def what_was_shortened(before: Jobs, after: Jobs) -> Iterator[Text]:
    """One sentence per kind of reduction."""
    if found := differing(before, after, "repetitions"):
        n, old, new = found
        yield Text(
            en=f"repetitions: {new.en} instead of {old.en}, in {n_jobs(n)}",
            zh=f"{n} 项测试的重复次数由 {old.zh} 减为 {new.zh}",
        )
    if found := differing(before, after, "seconds"):
        n, old, new = found
        yield Text(
            en=f"trials of {new.en} s instead of {old.en} s, in {n_jobs(n)}",
            zh=f"{n} 项测试的单次时长由 {old.zh} 秒减为 {new.zh} 秒",
        )
    if found := differing(before, after, "resolution"):
        n, old, new = found
        yield Text(
            en=f"resolution {new.en} instead of {old.en}, in {n_jobs(n)}",
            zh=f"{n} 项测试的分辨率由 {old.zh} 放宽为 {new.zh}",
        )
    if gone := frames_gone(before, after):
        yield gone
    old_loads = {job.key: job.effort.loads for job in before}
    n = sum(1 for job in after if old_loads[job.key] != job.effort.loads and job.test == "latency")
    if n:
        yield Text(en=f"fewer loads of latency, in {n_jobs(n)}", zh=f"{n} 项时延测试减少了负载点")
