"""Policing and shaping of subscribers on one core, without packets: dl3d's own beside DPDK's libraries."""

from pathlib import Path

from dl3.bench.onecore import Job
from dl3.bench.sides import MAKER, Contestant, Entry, PairSettings, march_of_build, march_of_distribution
from dl3.bench.workplace import BUILD, Workplace, built

SUBSCRIBERS = 1 << 20
SCHED_MIB = 512  # of EAL memory: 65,536 pipes with queues of 64 packets

ROW_OF_POLICE = (
    "1,048,576 subscribers, each packet of a random one, bursts of 64: dl3d finds it by its address, polices and counts; "
    "rte_meter (srTCM, blind to colours) gets its number and only colours; neither has packets"
)
ROW_OF_SHAPE = (
    "64,000 active subscribers below 64 aggregates, four packets each in one class, what leaves comes in again, all are "
    "always due: dl3d with 1,048,576 configured and FQ-CoDel, in virtual time; rte_sched of the distribution with 65,536 "
    "pipes, which is what its queues of 64 packets let it hold in 512 MiB, without drops, in real time; neither has frames"
)


def make_police(entry: Entry, terms: PairSettings, place: Workplace) -> Contestant:  # noqa: ARG001
    """`entry.mode`: dl3d or rte_meter, whose functions are compiled with ours."""
    program = built(BUILD / "src" / "qos" / "qos_bench", "make")
    command = (str(program), str(SUBSCRIBERS), entry.mode)
    return Contestant(Job(entry.program, command, Path(), terms.core), march_of_build("."))


def make_shaper(folder: str, entry: Entry, terms: PairSettings, place: Workplace) -> Contestant:  # noqa: ARG001
    """dl3d's shaper of one of our builds."""
    program = built(BUILD / folder / "src" / "qos" / "shape_bench", MAKER)
    return Contestant(Job(entry.program, (str(program), "dl3d"), Path(), terms.core), march_of_build(folder))


def make_sched(folder: str, entry: Entry, terms: PairSettings, place: Workplace) -> Contestant:
    """rte_sched, which the distribution has compiled; only what calls it is of our build."""
    program = built(BUILD / folder / "src" / "qos" / "sched_bench", MAKER)
    command = (
        *(str(program), "--no-pci", "--no-telemetry", "--in-memory", "-m", str(SCHED_MIB)),
        *("--lcores", f"0@{terms.core}", "--file-prefix", f"dl3-peer{place.next_number()}"),
    )
    return Contestant(Job(entry.program, command, Path(), terms.core), march_of_distribution())
