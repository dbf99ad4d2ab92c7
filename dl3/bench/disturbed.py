"""Why the stalls of the generator make a result uncertain, in sentences, and by how much."""

from collections.abc import Iterator, Sequence

from dl3.model.trial import Trial
from dl3.trial.accounting import MOST_LATE
from dl3.trial.stalls import by_whom, taker_among


def error_of(trials: Sequence[Trial]) -> float:
    """The largest share of the frames of a counted trial that stalls can have cost; 0 if any valid trial may miss as much."""
    error = max((trial.error_share for trial in trials if not trial.invalid), default=0.0)
    return error if error > MOST_LATE else 0.0


def taker_of(trials: Sequence[Trial]) -> str:
    """The thread that caused most of the stalled time; '' if it is not known for half of it."""
    times: dict[str, float] = {}
    for stalled in (trial.stalled for trial in trials if trial.stalled):
        times[stalled.who] = times.get(stalled.who, 0.0) + stalled.us
    return taker_among(times, sum(times.values()))


def stall_noise(trials: Sequence[Trial], error: float) -> Iterator[str]:
    """Whether trials were shortened because of stalls, and the share of frames that stalls can have cost a result."""
    short = [trial for trial in trials if trial.ordered_s]
    if short:
        longest_us = max((trial.stalled.longest_us for trial in trials if trial.stalled), default=0.0)
        yield (
            f"stalls: {len(short):,} of {len(trials):,} trials were shortened to as little as "
            f"{min(trial.seconds for trial in short) * 1000:,.0f} ms, because the generator stalled for up to "
            f"{longest_us:,.0f} us{by_whom(taker_of(trials))}"
        )
    if error:
        yield f"stall cost: stalls of the generator can have cost up to {error:.2%} of the frames behind the result"
