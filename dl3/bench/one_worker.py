"""One worker of dl3d without devices (src/datapath/worker_bench.c): frames of 16 VLANs in some VRFs, or handed over."""

from pathlib import Path

from dl3.bench.onecore import Job
from dl3.bench.sides import Contestant, Entry, PairSettings, march_of_build
from dl3.bench.workplace import BUILD, Workplace, built

ROW_OF_VRFS = (
    "both one worker of dl3d without devices, and the same frames, which have the tags of 16 VLANs in turns: one with each "
    "VLAN in a VRF of its own, the other with all of them in one VRF; the ratio is to be above 1 / 1.3"
)
ROW_OF_HANDOVER = (
    "both one worker of dl3d without devices, and the same frames: one hands them to three workers, which are not there (its "
    "rings are emptied at once), the other forwards them itself; the ratio says how many times more a worker can receive "
    "when others forward, and is not reached when they share its caches"
)


def make_worker(entry: Entry, terms: PairSettings, place: Workplace) -> Contestant:  # noqa: ARG001
    """The worker; its frames and its table are built in."""
    program = built(BUILD / "src" / "datapath" / "worker_bench", "make")
    command = (str(program), str(entry.n_vrfs))
    return Contestant(Job(entry.program, command, Path(), terms.core), march_of_build("."))
