"""Guests as a value, as arguments of QEMU, and as XML of libvirt."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from dl3.host.facts.read import read
from dl3.host.fixture import Machine
from dl3.host.guest.guest import Guest, GuestRequest, guest_of
from dl3.host.guest.libvirt import domain_of, libvirt_xml
from dl3.host.guest.qemu import qemu_arguments
from dl3.model.fault import UsageFault

NEAR, FAR = "0000:03:00.0", "0000:83:00.1"


def _machine() -> Machine:
    return Machine(n_nodes=2, n_cores=4, n_threads=2, nics=(NEAR, FAR), nic_nodes=(0, 1), driver="vfio-pci")


def _guest(made: Machine, **values: object) -> Guest:
    return guest_of(read(made.tree()), GuestRequest.model_validate(values))


def has_vcpus_on_whole_cores_of_the_nodes_of_its_cards() -> None:
    guest = _guest(_machine(), nics=(NEAR, FAR), n_cores=2)
    assert [(node.host_node, node.cpus) for node in guest.nodes] == [(0, (1, 2)), (1, (5, 6))]
    assert guest.others == frozenset({0, 3, 4, 7, 8, 11, 12, 15}), "neither vCPUs nor their siblings"
    assert guest.memory_mib == 8192


def is_a_command_of_qemu() -> None:
    words = qemu_arguments(_guest(_machine(), nics=(FAR,), n_cores=2, memory_mib=2048, page="2M", name="dut"), "/run/q")
    text = " ".join(words)
    assert "-smp 2,sockets=1,cores=2,threads=1 -m 2048M" in text
    assert (
        "-object memory-backend-memfd,id=ram0,size=2048M,share=on,prealloc=on,host-nodes=1,policy=bind,hugetlb=on,"
        "hugetlbsize=2M -numa node,nodeid=0,cpus=0-1,memdev=ram0" in text
    )
    assert f"-device vfio-pci,id=nic0,host={FAR}" in text
    assert text.endswith("-qmp unix:/run/q,server=on,wait=off -S")


def is_a_domain_of_libvirt() -> None:
    """The whole output was validated against domain.rng of libvirt 9.0; here, what matters for speed."""
    guest = _guest(_machine(), nics=(NEAR, FAR), disk="/srv/a.qcow2")
    domain = domain_of(guest)
    assert libvirt_xml(guest).startswith('<domain type="kvm">\n  <name>guest</name>\n')
    pins = [(one.get("vcpu"), one.get("cpuset")) for one in domain.iter("vcpupin")]
    assert pins == [("0", "1"), ("1", "2"), ("2", "5"), ("3", "6")]
    assert [one.get("cpuset") for one in domain.iter("emulatorpin")] == ["0,3-4,7-8,11-12,15"]
    assert [(one.get("cellid"), one.get("nodeset")) for one in domain.iter("memnode")] == [("0", "0"), ("1", "1")]
    assert [(one.get("cpus"), one.get("memory")) for one in domain.iter("cell")] == [
        ("0-1", "4194304"),
        ("2-3", "4194304"),
    ]
    assert [one.get("bus") + one.get("function", "") for one in domain.iter("address")] == ["0x030x0", "0x830x1"]  # type: ignore[operator]
    assert [one.get("file") for one in domain.iter("source") if one.get("file")] == ["/srv/a.qcow2"]


@given(st.integers(1, 4), st.integers(2, 6), st.sampled_from((1, 2, 4)), st.data())
def every_vcpu_has_a_core_of_its_own_that_no_other_thread_uses(
    n_nodes: int, n_cores: int, threads: int, data: st.DataObject
) -> None:
    made = Machine(n_nodes=n_nodes, n_cores=n_cores, n_threads=threads, interleaved=data.draw(st.booleans()))
    nodes = data.draw(st.sets(st.integers(0, n_nodes - 1), min_size=1))
    n = data.draw(st.integers(1, n_cores - 1))
    facts = read(made.tree())
    guest = guest_of(facts, GuestRequest(nodes=tuple(sorted(nodes)), n_cores=n))
    siblings = {cpu.number: set(cpu.siblings) for cpu in facts.cpus.online}
    used = [siblings[cpu] for cpu in guest.cpus]
    assert len(set().union(*used)) == sum(map(len, used)), "no core twice"
    assert not guest.others & set().union(*used)
    assert 0 in guest.others
    words = qemu_arguments(guest, "/run/q")
    assert f"{n * len(nodes)},sockets={len(nodes)},cores={n},threads=1" in words
    assert len(list(domain_of(guest).iter("vcpupin"))) == n * len(nodes)


def says_what_it_still_needs() -> None:
    made = _machine()
    made.driver = "ixgbe"
    made.links[f"/sys/bus/pci/devices/{NEAR}/driver"] = "../../../bus/pci/drivers/ixgbe"
    assert [one.partition(":")[0] for one in _guest(made, nics=(NEAR,)).remarks] == [
        "node 0 has 0 free huge pages of 1G, and the guest needs 4",
        "0000",
        "the cores of the vCPUs are not isolated",
    ]
    made = _machine()
    made.isolate("1-2,9-10")
    made.texts["/sys/devices/system/node/node0/hugepages/hugepages-1048576kB/free_hugepages"] = "4\n"
    assert _guest(made, nics=(NEAR,)).remarks == ()


def refuses_the_management_card_and_what_does_not_fit() -> None:
    made = _machine()
    made.default_route(4, "eth0")
    for values, said in (
        ({"nics": (NEAR,)}, "giving a guest 0000:03:00.0 is refused: this machine is managed through it"),
        ({"nodes": (0,), "n_cores": 4}, "workers may have 3: 4 were requested"),
        ({"nodes": (0,), "memory_mib": 1 << 20}, "node 0 has 65,536 MiB of memory"),
        ({"nodes": (0,), "memory_mib": 1500}, "no whole number of pages of 1G"),
    ):
        with pytest.raises(UsageFault, match=said):
            _guest(made, **values)


@pytest.mark.parametrize("values", [{"name": "a,b"}, {"name": "-x"}, {"disk": "/a,b"}, {"disk": "a"}, {"name": "a\nb"}])
def refuses_names_that_would_be_read_as_options(values: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        GuestRequest.model_validate(values)
