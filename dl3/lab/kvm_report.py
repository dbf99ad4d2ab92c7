"""The lab of the KVM report: VM1 generates, VM2 forwards, and a switch is between them. Its topology as a value. Pure."""

from pathlib import Path
from typing import Any, Literal

from dl3.model.lab import QUEUES, VM1, VM2, Accelerator, Card, Switch, Topology, Vm
from dl3.model.noun import Noun

LAB = "kvm-report"
Generator = Literal["dl3gen", "pktgen"]
Forwarder = Literal["l2fwd", "testpmd", "dl3d"]
MEMORY_MIB = 1280
PAGES = 256  # of 2 MiB, in a guest
SHORT_RING = 64  # descriptors of a guest's card
# Frames per second. An emulated guest needs about 20 us for a frame, so the last one is too much on purpose.
RATES: dict[Accelerator, tuple[int, ...]] = {
    "tcg": (2_000, 10_000, 50_000),
    "kvm": (100_000, 300_000, 1_000_000),
    "none": (100_000, 300_000, 1_000_000),
}
SECONDS: dict[Accelerator, float] = {"tcg": 5.0, "kvm": 10.0, "none": 10.0}  # the report counted for 10 s


class Settings(Noun):
    """What was asked for."""

    switch: Switch = "linux"
    generator: Generator = "dl3gen"
    forwarder: Forwarder = "l2fwd"
    n_cpus: int = 2
    short_queue: str = ""
    frame_bytes: int = 64
    rates_pps: tuple[int, ...] = ()  # empty: those of the accelerator
    seconds: float = 0.0  # of each load; 0: as the accelerator

    def rates(self, accelerator: Accelerator) -> tuple[int, ...]:
        """The loads."""
        return self.rates_pps or RATES[accelerator]

    def seconds_on(self, accelerator: Accelerator) -> float:
        """Of each load."""
        return self.seconds or SECONDS[accelerator]


def mac(number: int) -> str:
    """MAC address of a card of a guest."""
    return f"02:00:00:00:02:{number + 1:02x}"


def topology_of(settings: Settings, accelerator: Accelerator) -> Topology:
    """Frames go VM1, vnet0, br0, vnet1, VM2, vnet2, br1, vnet3, VM1."""
    cards = [Card(port=f"vnet{n}", mac=mac(n), bridge="br0" if n < 2 else "br1") for n in range(4)]
    guest = {"n_cpus": settings.n_cpus, "memory_mib": MEMORY_MIB}
    return Topology(
        lab=LAB,
        switch=settings.switch,
        accelerator=accelerator,
        vms=(
            Vm(name=VM1, program=settings.generator, cards=(cards[0], cards[3]), **guest),
            Vm(name=VM2, program=settings.forwarder, cards=(cards[1], cards[2]), **guest),
        ),
        bridges=("br0", "br1"),
        short_queue=settings.short_queue,
    )


def ring_keys(topology: Topology, vm: str) -> dict[str, int]:
    """Rings of a guest's cards that are shorter than usual. Linux's queue towards a guest is that of its TAP interface,
    dl3d's is the guest's receive ring.
    """
    if topology.short_queue not in QUEUES:
        return {}
    if topology.short_queue == VM2:
        return {"tx_descriptors": SHORT_RING} if vm == VM2 else {}
    short = VM2 if topology.short_queue == "vnet1" else VM1
    return {"rx_descriptors": SHORT_RING} if topology.switch == "dl3d" and vm == short else {}


def devices_of(vm: Vm, folder: Path) -> list[str]:
    """The cards of a guest for a program of this machine in its place: the other ends of the same sockets."""
    where = "path={folder}/{port}.sock,server=1,queues=1,queue_size=256,mac={mac}"
    return [
        f"net_virtio_user{n},{where.format(folder=folder, port=card.port, mac=card.mac)}"
        for n, card in enumerate(vm.cards)
    ]


def start_options(topology: Topology, vm: Vm, binary: Path) -> dict[str, Any]:
    """What the agent of a guest is given to start its program."""
    if vm.program == "pktgen":
        return {}
    if vm.program == "l2fwd":
        return {"binary": str(binary)}  # its rings are compiled in
    return {"binary": str(binary), "keys": ring_keys(topology, vm.name)}
