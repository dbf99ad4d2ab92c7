"""What only hands can set: the BIOS."""

from collections.abc import Iterator

from dl3.host.facts.read import Facts
from dl3.host.finding import Finding, Severity

# (row, what the sources say about it)
ROWS = (
    ("Power profile: maximum performance", "white paper, BIOS tables"),
    (
        "C-states and package C-states: off, or none deeper than C1",
        "white paper, BIOS tables; Linux shows the states of the CPU alone",
    ),
    ("Turbo: off for measurements, on in production", "white paper, BIOS tables"),
    (
        "Hyper-Threading: either; whole cores are isolated",
        "white paper: disabled in table 5-3, recommended in table 6-2: a contradiction; measure",
    ),
    ("VT-d or AMD-Vi, and SR-IOV: on", "white paper, BIOS tables"),
    ("NUMA: on, no node interleaving", "white paper says Auto, the Contrail report disable: a contradiction; measure"),
    (
        "Hardware prefetchers",
        "white paper says Enable, the Contrail report Disable: a contradiction; measure",
    ),
    ("Memory: one DIMM in each channel at least", "Intel, Performance Tuning for DPDK; 'dmidecode -t memory'"),
    ("Patrol scrub, SMI sources, USB legacy emulation: off", "OpenShift, hwlatdetect; SMIs cannot be seen by Linux"),
)


def check(facts: Facts) -> Iterator[Finding]:
    """A list, except in virtual machines, where it is the host's."""
    if facts.cpus.is_virtual:
        yield Finding(
            check="firmware",
            severity=Severity.NOTE,
            what="this is a virtual machine",
            why="the host decides on frequency, idle states, and whether its cores belong to this machine alone",
            source="Red Hat, Virtualization Tuning and Optimization Guide: CPU pinning",
            remedy="pin virtual CPUs to isolated cores of the host, and run 'dl3 host' there",
        )
        return
    for row, source in ROWS:
        yield Finding(
            check="firmware",
            severity=Severity.NOTE,
            what=f"BIOS: {row}",
            why="Linux does not show it, or only a part of it",
            source=source,
            remedy="set it by hand, once",
        )
