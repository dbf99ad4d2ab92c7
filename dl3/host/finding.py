"""Findings: what is wrong with a machine, why it matters, and what to do about it."""

from collections.abc import Callable, Iterator
from enum import StrEnum
from importlib import import_module
from pkgutil import iter_modules

import dl3.host.checks
from dl3.host.facts.read import Facts
from dl3.model.noun import Noun

WHITE_PAPER = "white paper"


class Severity(StrEnum):
    """The worst first."""

    BLOCKER = "blocker"  # what was configured has no effect, or dl3d does not start
    LOSS = "loss"  # workers are interrupted long enough to lose frames
    SPEED = "speed"  # fewer frames per second
    NOTE = "note"  # nothing to do, or only by hand


class Finding(Noun):
    """One result of a check."""

    check: str
    severity: Severity
    what: str
    why: str
    source: str
    remedy: str

    @property
    def is_fault(self) -> bool:
        """Whether there is something to do; notes are for reading."""
        return self.severity != Severity.NOTE


Check = Callable[[Facts], Iterator[Finding]]
RANKS = {severity: n for n, severity in enumerate(Severity)}


def checks() -> dict[str, Check]:
    """All checks by the name of their file."""
    names = sorted(one.name for one in iter_modules(dl3.host.checks.__path__) if not one.name.endswith("_test"))
    return {name: import_module(f"{dl3.host.checks.__name__}.{name}").check for name in names}


def findings_of(facts: Facts) -> tuple[Finding, ...]:
    """All findings, the worst first."""
    found = [finding for check in checks().values() for finding in check(facts)]
    return tuple(sorted(found, key=lambda one: (RANKS[one.severity], one.check)))
