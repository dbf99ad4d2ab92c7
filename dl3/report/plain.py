"""A machine-readable report: all figures as CSV or JSON."""

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict

from dl3.model.results import OverLoads
from dl3.report.compare import Change, Comparison
from dl3.report.grid import plain
from dl3.report.groups import test_of
from dl3.report.measures import Figure, figures
from dl3.report.results import Results

COLUMNS = (
    "campaign",
    "case",
    "dut",
    "parameters",
    "test",
    "frame",
    "at",
    "name",
    "unit",
    "value",
    "low",
    "high",
    "basis",
    "is_at_least",
    "is_noisy",
    "job",
    "lines",
    "wire",
)


def as_csv(results: Results) -> str:
    """One row for each figure: its context, value, range, and the lines of the record behind it."""
    made = io.StringIO()
    writer = csv.writer(made, lineterminator="\n")
    writer.writerow(COLUMNS)
    for figure in figures(results):
        cells = asdict(figure)
        writer.writerow([cells[key] if isinstance(cells[key], float) else plain(str(cells[key])) for key in COLUMNS])
    return made.getvalue()


def figure_as_json(figure: Figure | None) -> dict[str, object] | None:
    """A figure with its context."""
    return asdict(figure) if figure else None


def change_as_json(change: Change) -> dict[str, object]:
    """A figure before and after."""
    both = {"before": figure_as_json(change.old), "after": figure_as_json(change.new)}
    return {"verdict": change.verdict, "is_judged": change.is_judged, "ratio": change.ratio, **both}


def comparison_as_json(comparison: Comparison) -> dict[str, object]:
    """What changed."""
    return {
        "before": comparison.old_name,
        "after": comparison.new_name,
        "is_worse": comparison.is_worse,
        "counts": dict(comparison.counts()),
        "changes": [change_as_json(change) for change in comparison.changes],
    }


def cases_as_json(results: Results) -> list[dict[str, object]]:
    """The outcome of each case of a campaign."""
    with_result = {one.job for one in (*results.searches, *results.others, *results.latencies)}
    return [
        {
            "case": case.key,
            "jobs": len(case.jobs),
            "with_result": sum(job.key in with_result for job in case.jobs),
            "reason": case.reason.en if case.reason else None,
        }
        for plan in results.plans
        for case in plan.cases
    ]


def invalid_loads_as_json(results: Results) -> list[dict[str, object]]:
    """For results over loads: the loads without a valid trial, as shares of the highest."""
    return [
        {"dut": one.dut, "frame": one.frame, "test": test_of(one), "job": one.job, "shares": list(one.invalid_shares)}
        for one in results.others
        if isinstance(one, OverLoads) and one.invalid_shares
    ]


def as_json(results: Results, left_out: Sequence[str]) -> dict[str, object]:
    """Everything that was measured, and what could not be read."""
    return {
        "figures": [asdict(figure) for figure in figures(results)],
        "cases": cases_as_json(results),
        "skipped": [{"job": one.job, "reason": one.reason} for one in results.skipped],
        "trials": len(results.trials),
        "invalid": len(results.invalid),
        "invalid_loads": invalid_loads_as_json(results),
        "left_out": list(left_out),
    }
