"""A guest as arguments of QEMU. It starts stopped: pin its vCPUs over QMP, which also lets it go on."""

from collections.abc import Iterator

from dl3.host.guest.guest import Guest, GuestNode

PROGRAM = "qemu-system-x86_64"


def memory(guest: Guest, n: int, node: GuestNode) -> str:
    """Memory of one node of the host, allocated at once, and shared so that vhost-user can use it."""
    huge = "" if guest.page == "4K" else f",hugetlb=on,hugetlbsize={guest.page}"
    placed = f",host-nodes={node.host_node},policy=bind"
    return f"memory-backend-memfd,id=ram{n},size={node.memory_mib}M,share=on,prealloc=on{placed}{huge}"


def numa(guest: Guest) -> Iterator[str]:
    """Memory and NUMA nodes; vCPUs are numbered node by node."""
    first = 0
    for n, node in enumerate(guest.nodes):
        last = first + len(node.cpus) - 1
        yield from ("-object", memory(guest, n, node))
        yield from ("-numa", f"node,nodeid={n},cpus={first}{f'-{last}' if last > first else ''},memdev=ram{n}")
        first = last + 1


def devices(guest: Guest) -> Iterator[str]:
    """Network cards, and a disk."""
    for n, address in enumerate(guest.nics):
        yield from ("-device", f"vfio-pci,id=nic{n},host={address}")
    if guest.disk:
        yield from ("-drive", f"file={guest.disk},if=virtio,format=qcow2")


def qemu_arguments(guest: Guest, qmp: str) -> tuple[str, ...]:
    """The command. `qmp`: path of the control socket."""
    machine, cpu = ("q35", "max") if guest.is_emulated else ("q35,accel=kvm", "host")
    n, per_socket = len(guest.cpus), len(guest.nodes[0].cpus)
    return (
        *(PROGRAM, "-name", f"{guest.name},debug-threads=on", "-machine", machine, "-cpu", cpu),
        *(("-accel", "tcg,thread=multi") if guest.is_emulated else ("-overcommit", "cpu-pm=on")),
        *("-smp", f"{n},sockets={len(guest.nodes)},cores={per_socket},threads=1", "-m", f"{guest.memory_mib}M"),
        *numa(guest),
        *devices(guest),
        *("-nodefaults", "-display", "none", "-serial", "stdio", "-qmp", f"unix:{qmp},server=on,wait=off", "-S"),
    )
