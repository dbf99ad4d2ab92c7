"""What the machine counted on the workers' cores while frames of a trial were lost. Pure."""

import re
from collections.abc import Iterator, Mapping

from dl3.model.evidence import OF_THE_OTHER
from dl3.model.trial import Trial
from dl3.report.explain.finding import Finding, Value
from dl3.report.places import RESET, places_of

# The format of dl3/host/seen.py; only the cores of workers have this counter.
OF_A_WORKER = re.compile(rf"involuntary switches (\w+) core (\d+)( {OF_THE_OTHER})?")


def core_finding(totals: Mapping[str, float], worker: re.Match[str]) -> Finding:
    """The counters of one core; the scheduler's own switch count is used if switches were not traced."""
    program, core, where = worker[1], worker[2], worker[3] or ""

    def total(what: str) -> float:
        return totals.get(f"{what} core {core}{where}", 0.0)

    values: dict[str, Value] = {
        "program": program,
        "core": int(core),
        "switches": totals.get(f"switches core {core}{where}", totals[worker[0]]),
        "interrupts": total("interrupts"),
        "softirqs": total("softirqs"),
        "steal_ms": total("steal ms"),
        "faults": totals.get(f"page faults {program}{where}", 0.0),
    }
    if f"MHz core {core}{where}" not in totals:
        return Finding("counters", "counters", values)
    return Finding("counters", "counters.mhz", {**values, "before": total("MHz before"), "mhz": total("MHz")})


def counter_findings(trial: Trial) -> Iterator[Finding]:
    """One finding per worker core and one for Linux; none if a deliberate reset explains all loss."""
    if not trial.evidence or not places_of(trial).keys() - {RESET}:
        return
    totals = trial.evidence.totals
    yield from (core_finding(totals, worker) for name in totals if (worker := OF_A_WORKER.fullmatch(name)))
    if messages := totals.get("netlink messages"):
        yield Finding("counters", "counters.linux", {"messages": messages})
