"""No other tool changes the same settings."""

from collections.abc import Iterator

from dl3.host.facts.read import Facts
from dl3.host.finding import Finding, Severity


def check(facts: Facts) -> Iterator[Finding]:
    """tuned and its profile."""
    profile = facts.system.tuned_profile
    if not facts.system.runs("tuned") or not profile:
        return
    isolates = profile.startswith(("cpu-partitioning", "realtime"))
    why = "it sets governor, sysctls and interrupt affinity again whenever it starts, and takes back what it set when it stops"
    if isolates and not facts.cpus.isolated:
        why += "; this profile sets no isolcpus= by itself, and no CPU is isolated"
    yield Finding(
        check="tuned",
        severity=Severity.LOSS if isolates and not facts.cpus.isolated else Severity.SPEED,
        what=f"tuned is active with the profile {profile}",
        why=why,
        source="redhat-performance/tuned#98, #381, #416",
        remedy="use either tuned or 'dl3 host': 'tuned-adm off' and 'systemctl disable --now tuned' before 'dl3 host apply'",
    )
