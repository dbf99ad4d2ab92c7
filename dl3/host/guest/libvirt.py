"""A guest as XML of libvirt, for those who use it: 'virsh define'."""

from xml.etree.ElementTree import Element, SubElement, indent, tostring

from dl3.host.cores import listed
from dl3.host.guest.guest import Guest

KIB_PER_MIB = 1024


def with_text(parent: Element, name: str, text: str, **attributes: str) -> Element:
    """A child with a text."""
    found = SubElement(parent, name, attributes)
    found.text = text
    return found


def add_pinning(domain: Element, guest: Guest) -> None:
    """Each vCPU on its CPU, all other threads elsewhere, memory on its nodes."""
    tune = SubElement(domain, "cputune")
    for n, cpu in enumerate(guest.cpus):
        SubElement(tune, "vcpupin", vcpu=str(n), cpuset=str(cpu))
    SubElement(tune, "emulatorpin", cpuset=listed(guest.others))
    numa = SubElement(domain, "numatune")
    SubElement(numa, "memory", mode="strict", nodeset=listed(node.host_node for node in guest.nodes))
    for n, node in enumerate(guest.nodes):
        SubElement(numa, "memnode", cellid=str(n), mode="strict", nodeset=str(node.host_node))


def add_memory(domain: Element, guest: Guest) -> None:
    """Huge pages, allocated at once, shared so that vhost-user can use them."""
    backing = SubElement(domain, "memoryBacking")
    if guest.page != "4K":
        SubElement(SubElement(backing, "hugepages"), "page", size=str(guest.page_kib), unit="KiB")
    SubElement(backing, "source", type="memfd")
    SubElement(backing, "access", mode="shared")
    SubElement(backing, "allocation", mode="immediate")


def add_cpu(domain: Element, guest: Guest) -> None:
    """The processor of the host, and the NUMA nodes of the guest."""
    cpu = SubElement(domain, "cpu", mode="maximum" if guest.is_emulated else "host-passthrough")
    per_socket = str(len(guest.nodes[0].cpus))
    SubElement(cpu, "topology", sockets=str(len(guest.nodes)), dies="1", cores=per_socket, threads="1")
    numa, first = SubElement(cpu, "numa"), 0
    for n, node in enumerate(guest.nodes):
        cpus = listed(range(first, first + len(node.cpus)))
        kib = str(node.memory_mib * KIB_PER_MIB)
        SubElement(numa, "cell", id=str(n), cpus=cpus, memory=kib, unit="KiB", memAccess="shared")
        first += len(node.cpus)


def add_devices(domain: Element, guest: Guest) -> None:
    """Network cards, which libvirt binds to vfio-pci itself, and a disk."""
    found = SubElement(domain, "devices")
    if guest.disk:
        disk = SubElement(found, "disk", type="file", device="disk")
        SubElement(disk, "driver", name="qemu", type="qcow2")
        SubElement(disk, "source", file=guest.disk)
        SubElement(disk, "target", dev="vda", bus="virtio")
    for address in guest.nics:
        segment, bus, rest = address.split(":")
        slot, _, function = rest.partition(".")
        host = SubElement(found, "hostdev", mode="subsystem", type="pci", managed="yes")
        place = {"domain": f"0x{segment}", "bus": f"0x{bus}", "slot": f"0x{slot}", "function": f"0x{function}"}
        SubElement(SubElement(host, "source"), "address", place)
    SubElement(found, "memballoon", model="none")


def domain_of(guest: Guest) -> Element:
    """The domain."""
    domain = Element("domain", type="qemu" if guest.is_emulated else "kvm")
    with_text(domain, "name", guest.name)
    with_text(domain, "memory", str(guest.memory_mib), unit="MiB")
    add_memory(domain, guest)
    with_text(domain, "vcpu", str(len(guest.cpus)), placement="static")
    add_pinning(domain, guest)
    with_text(SubElement(domain, "os"), "type", "hvm", arch="x86_64", machine="q35")
    add_cpu(domain, guest)
    add_devices(domain, guest)
    return domain


def libvirt_xml(guest: Guest) -> str:
    """The domain as a text."""
    domain = domain_of(guest)
    indent(domain)
    return tostring(domain, encoding="unicode") + "\n"
