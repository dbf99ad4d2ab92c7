"""Kernel same-page merging is off."""

from collections.abc import Iterator

from dl3.host.facts.read import Facts
from dl3.host.facts.system import KSM
from dl3.host.finding import Finding, Severity


def check(facts: Facts) -> Iterator[Finding]:
    """The switch, and the services that turn it on again."""
    services = [name for name in ("ksm", "ksmtuned") if facts.system.runs(name)]
    if facts.system.setting(KSM) == "1" or services:
        by = f", and the service {' and '.join(services)} is enabled" if services else ""
        state = "on" if facts.system.setting(KSM) == "1" else "off now"
        yield Finding(
            check="ksm",
            severity=Severity.LOSS,
            what=f"kernel same-page merging (KSM) is {state}{by}",
            why="it scans and remaps the memory of virtual machines, which stops their threads and flushes TLBs",
            source="white paper table 6-3 and appendix 2 (where conversion made 'kvm' of ksm)",
            remedy="'dl3 host plan' sets it to 0; disable ksm and ksmtuned with 'systemctl disable --now ksm ksmtuned'",
        )
