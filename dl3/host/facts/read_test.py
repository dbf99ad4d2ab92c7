"""Facts from trees that tests make up."""

from dl3.host.facts.boot import Loader
from dl3.host.facts.read import read
from dl3.host.fixture import Machine
from dl3.host.sockets import address_of, hex_of
from dl3.host.tree import StoredTree


def finds_cores_with_their_threads_in_both_orders_of_numbers() -> None:
    far = read(Machine(n_nodes=2, n_cores=2, n_threads=2).tree()).cpus
    assert [far.cores_of(node) for node in far.nodes] == [((0, 4), (1, 5)), ((2, 6), (3, 7))]
    near = read(Machine(n_nodes=2, n_cores=2, n_threads=2, interleaved=False).tree()).cpus
    assert [near.cores_of(node) for node in near.nodes] == [((0, 1), (2, 3)), ((4, 5), (6, 7))]
    assert near.siblings_of(frozenset({2, 7})) == {2, 3, 6, 7}


def a_processor_that_is_offline_belongs_to_no_core() -> None:
    cpus = read(Machine(n_cores=4, n_threads=2, offline=(1, 5, 6)).tree()).cpus
    assert cpus.cores_of(0) == ((0, 4), (2,), (3, 7))
    assert [cpu.number for cpu in cpus.cpus if not cpu.is_online] == [1, 5, 6]
    assert cpus.last == 7


def reads_memory_and_pages_of_each_node() -> None:
    made = Machine(n_nodes=2)
    made.texts["/sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages"] = "512\n"
    first, second = read(made.tree()).nodes
    assert (first.memory_kib, first.pages[0].total, second.pages[0].total_mib) == (65536 * 1024, 0, 1024)
    assert second.pages_of(1 << 20)
    assert not read(Machine(has_1g=False).tree()).nodes[0].pages_of(1 << 20)


def a_kernel_without_nodes_has_one() -> None:
    texts = {"/proc/meminfo": "MemTotal:  1024 kB\nMemFree: 5 kB\n", "/sys/devices/system/cpu/online": "0-1\n"}
    texts["/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"] = "3\n"
    found = read(StoredTree(texts))
    assert [(node.number, node.memory_kib, node.pages[0].total) for node in found.nodes] == [(0, 1024, 3)]
    assert [(cpu.number, cpu.siblings) for cpu in found.cpus.online] == [(0, (0,)), (1, (1,))]


def finds_the_network_card_below_an_interface_also_behind_virtio() -> None:
    made = Machine(nics=("0000:03:00.0",))
    made.nic("0000:00:05.0", -1, "ens5")
    made.links["/sys/class/net/ens5/device"] = "../../../virtio2"
    made.links["/sys/bus/virtio/devices/virtio2"] = "../../../devices/pci0000:00/0000:00:05.0/virtio2"
    found = read(made.tree())
    assert [(one.name, one.pci) for one in found.interfaces] == [("ens5", "0000:00:05.0"), ("eth0", "0000:03:00.0")]
    assert [nic.address for nic in found.nics] == ["0000:00:05.0", "0000:03:00.0"]
    assert found.node_of(found.nics[0]) == 0, "where the firmware does not say"


def reads_what_the_kernel_said_of_its_command_line() -> None:
    made = Machine()
    made.texts["/proc/cmdline"] = 'ro isolCPUs=2-3 dyndbg="file x.c +p" nohz_full=1 nohz_full=2-3 -- --token x\n'
    made.texts["/dl3-outputs/kernel-log"] = (
        'Unknown kernel command line parameters "isolCPUs=2-3", will be passed to user space.\nusb 1-1: SerialNumber: 9\n'
    )
    kernel = read(made.tree()).kernel
    assert kernel.unknown_words == ("isolCPUs=2-3",)
    assert kernel.words == ("ro", "isolCPUs=2-3", "dyndbg=file x.c +p", "nohz_full=1", "nohz_full=2-3")
    assert (kernel.value("nohz_full"), kernel.values("nohz_full"), kernel.value("x")) == ("2-3", ("1", "2-3"), None)
    assert len(kernel.log) == 1
    assert not kernel.lacks("CONFIG_NO_HZ_FULL")


def a_kernel_whose_configuration_is_not_found_lacks_nothing() -> None:
    made = Machine()
    del made.texts["/boot/config-6.1.0-18-amd64"]
    assert read(made.tree()).kernel.options is None
    assert not read(made.tree()).kernel.lacks("CONFIG_NO_HZ_FULL")


def finds_the_bootloader_and_where_parameters_come_from() -> None:
    made = Machine()
    made.texts["/etc/default/grub.d/50-cloudimg-settings.cfg"] = 'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX isolcpus=1"\n'
    boot = read(made.tree()).boot
    assert boot.loader == Loader.GRUB
    assert [(one.path, one.words) for one in boot.sources] == [
        ("/etc/default/grub", ("quiet",)),
        ("/etc/default/grub.d/50-cloudimg-settings.cfg", ("isolcpus=1",)),
    ]
    del made.texts["/usr/sbin/update-grub"]
    made.texts["/usr/sbin/grubby"] = ""
    assert read(made.tree()).boot.loader == Loader.GRUBBY
    made.texts["/run/ostree-booted"] = ""
    assert read(made.tree()).boot.loader == Loader.UNKNOWN
    systemd = {"/efi/loader/loader.conf": "", "/usr/bin/kernel-install": "", "/etc/kernel/cmdline": "root=x ro\n"}
    assert read(StoredTree(systemd)).boot.loader == Loader.SYSTEMD_BOOT
    assert read(StoredTree(systemd)).boot.sources[0].words == ("root=x", "ro")


def a_masked_service_is_not_enabled() -> None:
    made = Machine()
    made.texts["/etc/systemd/system/multi-user.target.wants/tuned.service"] = ""
    assert read(made.tree()).system.runs("tuned")
    made.links["/etc/systemd/system/tuned.service"] = "/dev/null"
    assert not read(made.tree()).system.runs("tuned")
    made.links["/run/systemd/units/invocation:tuned.service"] = "0123"
    assert read(made.tree()).system.runs("tuned")


def keeps_the_routes_that_matter_of_a_full_table() -> None:
    made = Machine(nics=("0000:03:00.0", "0000:04:00.0"))
    made.session("192.0.2.9", "198.51.100.1")
    made.default_route(6, "eth0", table="100")
    for n in range(50):
        made.route(4, f"10.{n}.0.0/16", "eth1")
    made.route(4, "192.0.2.0/24", "eth1")
    made.routes[4].append({"type": "blackhole", "dst": "default"})
    made.routes[4].append({"dst": "default", "table": "7", "nexthops": [{"dev": "eth0"}, {"dev": "eth1"}]})
    routes = read(made.tree()).network.routes
    assert routes
    assert [(one.destination, one.table, one.devices) for one in routes] == [
        ("192.0.2.0/24", "main", ("eth1",)),
        ("0.0.0.0/0", "7", ("eth0", "eth1")),
        ("::/0", "100", ("eth0",)),
    ]


def reads_addresses_as_the_kernel_prints_them() -> None:
    assert str(address_of("0100007F")) == "127.0.0.1"
    mapped = address_of("0000000000000000FFFF000001020304")
    assert str(mapped) == "4.3.2.1"
    long = "B80D0120000000000000000001000000"
    assert str(address_of(long)) == "2001:db8::1"
    assert hex_of(address_of(long)) == long


def the_digest_is_of_the_machine_and_not_of_its_settings() -> None:
    made = Machine(n_threads=2)
    before = read(made.tree()).digest()
    made.texts["/proc/cmdline"] = "isolcpus=1\n"
    made.links["/sys/bus/pci/devices/0000:03:00.0/driver"] = "../vfio-pci"
    assert read(made.tree()).digest() == before
    others = (Machine(n_threads=1), Machine(n_threads=2, offline=(3,)), Machine(n_threads=2, nics=("0000:04:00.0",)))
    assert before not in [read(other.tree()).digest() for other in others]
