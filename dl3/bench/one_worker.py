"""One worker of dl3d without devices (src/datapath/worker_bench.c): what a step costs, beside another one."""

from pathlib import Path

from dl3.bench.onecore import Job
from dl3.bench.sides import Contestant, Entry, PairSettings, march_of_build
from dl3.bench.workplace import BUILD, Workplace, built

BOTH = "both one worker of dl3d without devices"
ROW_OF_VRFS = (
    f"{BOTH}, and the same frames, which have the tags of 16 VLANs in turns: one with each VLAN in a VRF of its own, the "
    "other with all of them in one VRF; the ratio is to be above 1 / 1.3"
)
ROW_OF_HANDOVER = (
    f"{BOTH}, and the same frames: one hands them to three workers, which are not there (its rings are emptied at once), "
    "the other forwards them itself; the ratio says how many times more a worker can receive when others forward, and is "
    "not reached when they share its caches"
)
ROUTED = "the other routes the same IPv4 packets without labels; the ratio says what labels and tunnel cost"
ROW_OF_MPLS_SWAP = f"{BOTH}: one swaps the MPLS label of each packet, {ROUTED}"
ROW_OF_MPLS_ENCAP = f"{BOTH}: one sends each packet with an MPLS label in UDP (RFC 7510), {ROUTED}"
ROW_OF_MPLS_DECAP = f"{BOTH}: one takes each packet out of MPLS over UDP, pops its label and routes it, {ROUTED}"


def make_worker(entry: Entry, terms: PairSettings, place: Workplace) -> Contestant:  # noqa: ARG001
    """The worker, whose mode is a task of that program; its frames and its table are built in."""
    program = built(BUILD / "src" / "datapath" / "worker_bench", "make")
    return Contestant(Job(entry.program, (str(program), entry.mode), Path(), terms.core), march_of_build("."))
