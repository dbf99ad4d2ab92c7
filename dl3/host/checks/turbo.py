"""Turbo, which is a decision and not a fault."""

from collections.abc import Iterator

from dl3.host.facts.read import Facts
from dl3.host.finding import Finding, Severity


def check(facts: Facts) -> Iterator[Finding]:
    """Whether it is on."""
    if facts.cpus.turbo:
        yield Finding(
            check="turbo",
            severity=Severity.NOTE,
            what="turbo is on",
            why="cores are faster, but their frequency depends on temperature and on how many cores are busy, so that "
            "measurements vary",
            source="white paper, BIOS tables",
            remedy="leave it on in production; for measurements, 'dl3 host plan --no-turbo' switches it off",
        )
