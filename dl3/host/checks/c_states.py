"""Cores wake up before a ring is full."""

from collections.abc import Iterator

from dl3.host.facts.read import Facts
from dl3.host.finding import Finding, Severity

RING_US = 137  # 2,048 descriptors at 14.88 Mpps


def check(facts: Facts) -> Iterator[Finding]:
    """The wakeup latency of each enabled idle state."""
    slow = [one for one in facts.cpus.idle_states if not one.is_disabled and one.latency_us > RING_US]
    if slow:
        names = ", ".join(f"{one.name} ({one.latency_us} us)" for one in slow)
        yield Finding(
            check="c_states",
            severity=Severity.LOSS,
            what=f"idle states with a long wakeup are enabled: {names}",
            why=f"a worker that sleeps (idle: sleep) wakes up after a ring of 2,048 descriptors is full at 14.88 Mpps, {RING_US} us",
            source="white paper, BIOS tables (C-states); Intel, Performance Tuning for DPDK",
            remedy="'dl3 host plan' disables these states on the cores of workers; the shallow ones stay",
        )
