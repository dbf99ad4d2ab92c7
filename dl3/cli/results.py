"""Formats the results of throughput searches as text."""

from collections.abc import Iterator, Sequence

from dl3.bench.site import Found
from dl3.cli.printing import out, table
from dl3.cli.progress import limit_words, words_for
from dl3.model.trial import Throughput
from dl3.report.by_frame import is_at_least

COLUMNS = (
    "frame",
    ">loss goal",
    ">Mpps",
    ">Gbit/s",
    ">% of line",
    "limited by",
    ">p50 us",
    ">p99 us",
    ">max us",
    ">trials",
)
METHODS = {"mlrsearch": "MLRsearch, RFC 9971", "binary": "binary search"}


def microseconds(*times_ns: float) -> tuple[str, ...]:
    """Times formatted for the table."""
    return tuple(f"{ns / 1000:,.1f}" for ns in times_ns)


def rate(result: Throughput, factor: float) -> str:
    """A number, or a range if the machine was noisy; `factor` converts packets/s to the printed unit."""
    at_least = ">= " if is_at_least(result) else ""
    low, high = result.range_pps or (result.pps, None)
    return f"{at_least}{low * factor:.3f}" + (f" to {high * factor:.3f}" if high else "")


def row(found: Found) -> tuple[object, ...]:
    """One result; times are those of the trial at that rate."""
    result, best = found.result, found.best
    share = f"{result.line_share:.1%}" if result.line_share is not None else None
    bits = result.l1_bps / result.pps if result.pps else 0.0
    rates = (f"{result.goal_loss_ratio:.6g}", rate(result, 1e-6), rate(result, bits / 1e9), share, limit_words(result))
    times = microseconds(best.latency.p50, best.latency.p99, best.latency.max) if best else (None,) * 3
    invalid = f", {result.n_invalid} INVALID" if result.n_invalid else ""
    return (result.frame, *rates, *times, f"{result.n_trials}{invalid}")


def notes(result: Throughput) -> Iterator[str]:
    """Remarks on the row."""
    words = f"{words_for(result.frame)}, loss ratio {result.goal_loss_ratio:.6g}"
    if result.interval_pps:
        low, high = result.interval_pps
        yield (
            f"{words}: {len(result.repeats_pps)} searches, median {result.pps / 1e6:.3f} Mpps, with 95 % confidence "
            f"between {low / 1e6:.3f} and {high / 1e6:.3f}"
        )
    if result.exceed_ratio:
        yield f"{words}: up to {result.exceed_ratio:.0%} of the trial time at that rate may have exceeded it"
    if result.noise and not result.repeats_pps:
        yield f"{words}: one search on a noisy machine; use --repeat 5 to see the spread of five searches"
    yield from (f"{words}: noisy, {reason}" for reason in result.noise)


def show(heading: str, found: Sequence[Found], is_brief: bool = False) -> None:
    """The table and remarks; the brief form only says that the machine was noisy."""
    say(heading)
    out.print(table("", COLUMNS, [row(one) for one in found]))
    if is_brief and any(one.result.noise for one in found):
        say("results are ranges where the machine was noisy: other programs used the two cores")
    for one in found if not is_brief else ():
        for note in notes(one.result):
            say(note)


def say(text: str) -> None:
    """One line on standard output, without markup."""
    out.print(text, markup=False, highlight=False, soft_wrap=True)


def as_plain(found: Found) -> dict[str, object]:
    """A result in machine-readable form, with the remarks that people see."""
    result, best = found.result, found.best
    more = {"l1_bps": result.l1_bps, "line_share": result.line_share, "range_pps": result.range_pps}
    return {**result.model_dump(), **more, "latency": best.latency.model_dump() if best else None}
