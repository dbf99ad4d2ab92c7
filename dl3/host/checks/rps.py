"""Receive packet steering does not send packets of Linux to the cores of workers."""

from collections.abc import Iterator

from dl3.host.facts.read import Facts
from dl3.host.finding import Finding, Severity
from dl3.host.isolation import named, worker_cpus

FLOWS = "/proc/sys/net/core/rps_sock_flow_entries"


def check(facts: Facts) -> Iterator[Finding]:
    """The masks of all receive queues."""
    cpus = worker_cpus(facts)
    for one in facts.interfaces:
        if one.rps & cpus:
            yield Finding(
                check="rps",
                severity=Severity.LOSS,
                what=f"receive packet steering (RPS) of {one.name} includes isolated {named(one.rps & cpus)}",
                why="packets of Linux are processed in softirqs on the core of a worker",
                source="Linux, networking/scaling; Red Hat, tuned profile cpu-partitioning",
                remedy=f"write a mask without these CPUs to /sys/class/net/{one.name}/queues/rx-*/rps_cpus; 'dl3 host plan' does",
            )
    if cpus and facts.system.setting(FLOWS) not in (None, "0"):
        yield Finding(
            check="rps",
            severity=Severity.SPEED,
            what=f"net.core.rps_sock_flow_entries is {facts.system.setting(FLOWS)}",
            why="receive flow steering (RFS) follows threads of the control plane and may choose cores of workers",
            source="Linux, networking/scaling",
            remedy="set it to 0 unless a program on this machine needs it",
        )
