"""Measured figures next to published ones: which of them answer the same question."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dl3.model.trial import Throughput
from dl3.report.published import Published, published_for, same
from dl3.report.results import Part, Results, Series, frame_order


@dataclass(frozen=True)
class Beside:
    """The figures of one case."""

    results: Results
    published: tuple[Published, ...]

    @property
    def values(self) -> tuple[str, ...]:
        """The values that the sources varied, each once."""
        return tuple(dict.fromkeys(label_of(row, self.published) for row in self.published))

    @property
    def frames(self) -> tuple[str, ...]:
        """All frame sizes, in order."""
        found = {search.frame: frame_order(search) for search in self.results.searches}
        for row in self.published:
            found.setdefault(row.frame, (not row.frame.isdigit(), row.mean_bytes, row.frame))
        return tuple(sorted(found, key=lambda frame: found[frame]))

    def series_like(self, value: str) -> Series | None:
        """The measured series with the same value."""
        for one in self.results.series:
            if same(value, (text for _, text in one.parameters)):
                return one
        return None

    def measured(self, row: Published) -> Throughput | None:
        """The result measured with the same value and frame size."""
        like = self.series_like(row.value)
        found = (s for s in self.results.searches if s.frame == row.frame and self.results.series_of(s) == like)
        return next(found, None) if like else None


def label_of(row: Published, rows: Sequence[Published]) -> str:
    """The value; with the device if several devices had the same value."""
    duts = {other.dut for other in rows if other.value == row.value}
    return f"{row.value}, {row.dut}" if len(duts) > 1 else row.value or row.dut


def beside(part: Part) -> Beside | None:
    """The figures of a case that has published ones; of several goals, the one with the least loss, as published."""
    found = published_for(part.case.published) if part.case else ()
    searches = part.results.searches
    least = min((one.goal_loss_ratio for one in searches), default=0.0)
    strictest = tuple(one for one in searches if one.goal_loss_ratio == least)
    return Beside(replace(part.results, searches=strictest), found) if found else None
