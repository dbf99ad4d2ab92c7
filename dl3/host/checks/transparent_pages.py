"""khugepaged does not work for everybody."""

from collections.abc import Iterator

from dl3.host.facts.read import Facts
from dl3.host.finding import Finding, Severity

ENABLED = "/sys/kernel/mm/transparent_hugepage/enabled"


def check(facts: Facts) -> Iterator[Finding]:
    """Transparent huge pages."""
    if "[always]" in (facts.system.setting(ENABLED) or ""):
        yield Finding(
            check="transparent_pages",
            severity=Severity.NOTE,
            what="transparent huge pages are used for all programs",
            why="compaction for them can stop threads for milliseconds; dl3d's own memory is in reserved pages and not affected",
            source="Red Hat, tuned profile cpu-partitioning",
            remedy=f"write madvise to {ENABLED} if other programs on this machine are sensitive",
        )
