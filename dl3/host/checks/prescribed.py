"""What the white paper prescribes and dl3 does not apply, because it costs security or the connection to the machine."""

from collections.abc import Iterator

from dl3.host.facts.read import Facts
from dl3.host.finding import Finding, Severity

PAPER = "white paper §3.2.2 and appendix 2"
# (what is prescribed, by whom, why it is not applied)
ROWS = (
    ("selinux=0", PAPER, "SELinux costs nothing on the path of a packet in user space, and protects the machine"),
    (
        "firewalld off",
        PAPER,
        "packets that workers forward do not pass the firewall of Linux; management does, and needs it",
    ),
    ("auditd off", PAPER, "auditing costs time in system calls only, and workers make none per packet"),
    (
        "NetworkManager off",
        PAPER,
        "it may own the management interface; only interfaces of the forwarder are declared unmanaged",
    ),
    (
        "killall irqbalance",
        "white paper appendices 6 and 9",
        "it is back after a reboot; irqaffinity= and isolcpus=managed_irq are permanent",
    ),
    (
        "intel_pstate=disable",
        "Red Hat, tuned profile cpu-partitioning",
        "the governor 'performance' does the same and can be undone while running",
    ),
    (
        "mitigations=off",
        "tuning guides of several vendors",
        "workers make no system calls per packet, so the gain is small, and all other programs would be exposed",
    ),
)


def check(facts: Facts) -> Iterator[Finding]:
    """A fixed list, the same for all machines."""
    del facts
    for prescribed, source, why in ROWS:
        yield Finding(
            check="prescribed",
            severity=Severity.NOTE,
            what=f"prescribed, not applied: {prescribed}",
            why=why,
            source=source,
            remedy="nothing",
        )
