"""A guest as arguments of QEMU: Debian's kernel on this machine's files, with network cards on TAP interfaces or on
vhost-user sockets. Pure.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from dl3.model.lab import Accelerator, Station, Topology

PROGRAM = "qemu-system-x86_64"
PACKAGES = {PROGRAM: "qemu-system-x86"}
SHARED = "memory-backend-memfd,share=on"
# Forwarders keep or invent the destination MAC address; without this filter a card takes frames for any.
ALL_FRAMES = ("ctrl_rx=off",)
ACCELERATORS: dict[Accelerator, tuple[str, ...]] = {
    "none": (),
    "kvm": ("-accel", "kvm", "-cpu", "host"),
    "tcg": ("-accel", "tcg,thread=multi", "-cpu", "max"),
}


def memory(backend: str, mib: int) -> list[str]:
    """Memory; with a `backend` that another process can share it."""
    shared = ("-object", f"{backend},id=ram,size={mib}M", "-machine", "memory-backend=ram") if backend else ()
    return ["-m", str(mib), *shared]


def boot(image: Path, top: Path, script: Path, words: Mapping[str, str]) -> list[str]:
    """Boot the image of dl3.lab.guest_image and run a script; `words` are variables of that script."""
    given = {"script": str(script), "modules": f"{image}/kernel", "top": str(top), **words}
    # On a busy machine an emulated timer comes late, and the kernel's check of it would end the guest.
    line = " ".join(
        ("console=ttyS0 quiet panic=-1 no_timer_check", *(f"guest.{key}={value}" for key, value in given.items()))
    )
    return [
        *("-kernel", str(image / "vmlinuz"), "-initrd", str(image / "initrd"), "-append", line),
        *("-virtfs", "local,path=/,mount_tag=root,security_model=none,readonly=on,multidevs=remap"),
    ]


def command(accelerator: Accelerator, n_cpus: int, rest: Sequence[str], serial: str = "stdio") -> list[str]:
    """QEMU without defaults; the console is at `serial`."""
    return [
        *(PROGRAM, *ACCELERATORS[accelerator], "-smp", str(n_cpus)),
        *("-nodefaults", "-no-reboot", "-display", "none", "-serial", serial),
        *rest,
    ]


def card(number: int, mac: str, options: Sequence[str] = ()) -> list[str]:
    """A network card, whose other end is the netdev `n` with this number."""
    # Without KVM, QEMU 7.2 crashes when vhost-user starts on a card with MSI-X.
    return ["-device", ",".join((f"virtio-net-pci,netdev=n{number},mac={mac},vectors=0", *options))]


def vhost_end(number: int, socket: Path, queues: int = 1) -> list[str]:
    """The other end of a card: a vhost-user socket that QEMU creates."""
    return [
        *("-chardev", f"socket,id=c{number},path={socket},server=on,wait=off"),
        *("-netdev", f"vhost-user,id=n{number},chardev=c{number},queues={queues}"),
    ]


def tap_end(number: int, name: str) -> list[str]:
    """The other end of a card: a TAP interface that exists."""
    return ["-netdev", f"tap,id=n{number},ifname={name},script=no,downscript=no"]


def cards_of(topology: Topology, vm: Station, folder: Path) -> list[str]:
    """The cards of a guest of a lab."""
    found = []
    for number, one in enumerate(vm.cards):
        is_tap = topology.wire == "tap"
        end = tap_end(number, one.port) if is_tap else vhost_end(number, folder / f"{one.port}.sock")
        found += [*end, *card(number, one.mac, ALL_FRAMES if is_tap else ())]
    return found


def lab_command(topology: Topology, vm: Station, folder: Path, booted: Sequence[str]) -> list[str]:
    """A guest of a lab: its console goes to a file, its second serial line and QMP are sockets in `folder`."""
    rest = [
        *("-serial", f"unix:{folder}/{vm.name}.serial,server=on,wait=off"),
        *("-qmp", f"unix:{folder}/{vm.name}.qmp,server=on,wait=off"),
        *("-name", vm.name),
        *memory("" if topology.wire == "tap" else SHARED, vm.memory_mib),
        *booted,
        *cards_of(topology, vm, folder),
    ]
    return command(topology.accelerator, vm.n_cpus, rest, serial=f"file:{folder}/{vm.name}.console")
