"""Plans for many machines, compared with golden.txt, which was checked by eye.

Where a file of hwloc's tests is named, CPU numbers, packages, cores, threads and offline CPUs are those of that file,
rebuilt from its facts; unless it says otherwise, so are nodes, addresses of network cards and their nodes. Core ids that
begin again within a package are counted on. All else (memory, devices, files of Linux) comes from Machine.

To make the file again after a change: build/venv/bin/python -m dl3.host.tuning.golden_test
"""

from collections.abc import Callable, Iterator
from pathlib import Path

from dl3.host.cores import listed
from dl3.host.facts.read import read
from dl3.host.fixture import RELEASE, Machine, Where, applied
from dl3.host.tuning.plan import Tuning, plan
from dl3.host.tuning.request import Request
from dl3.host.tuning.step import DriverStep, FileStep, LiveStep, target

GOLDEN = Path(__file__).parent / "golden.txt"
NICS = ("0000:03:00.0", "0000:03:00.1")
FAR = "0000:83:00.0"
DEEP = (("POLL", 0), ("C1", 2), ("C6", 133), ("C8", 200))
BIND = Request(binds=True)
INTEL = "Intel(R) Xeon(R) CPU"
HWLOC = "hwloc 3b37b02, tests/hwloc/"
Case = tuple[str, str, Machine, Request]  # name, origin


def _managed(made: Machine, device: str = "eth1") -> Machine:
    made.default_route(4, device)
    return made


def _changed(made: Machine, **texts: str) -> Machine:
    made.texts |= {path.replace("__", "/"): text for path, text in texts.items()}
    return made


def _virtual(made: Machine) -> Machine:
    made.texts["/proc/cpuinfo"] = "model name\t: QEMU Virtual CPU\nflags\t\t: fpu hypervisor\n"
    return made


def _without(made: Machine, *paths: str) -> Machine:
    for path in paths:
        del made.texts[path]
    return made


def _systemd_boot() -> Machine:
    made = _without(Machine(n_cores=8), "/boot/grub/grub.cfg")
    made.texts |= {
        "/efi/loader/loader.conf": "",
        "/usr/bin/kernel-install": "",
        "/etc/kernel/cmdline": "root=/dev/sda2 ro\n",
    }
    return made


def _rhel() -> Machine:
    made = _without(Machine(n_cores=8, n_threads=2), "/usr/sbin/update-grub")
    made.texts["/usr/sbin/grubby"] = ""
    return made


def _alternating(n_packages: int, cores: tuple[int, ...]) -> Callable[[int], Where]:
    """CPU numbers go round the packages, and over all cores before the second threads. `cores`: their ids, in order."""
    return lambda cpu: (cpu % n_packages, cpu % n_packages, cores[cpu // n_packages % len(cores)])


def _blocks(n_cores: int, n_cpus: int, n_node_cores: int | None = None) -> Callable[[int], Where]:
    """CPU numbers go package by package, then over the second threads. Nodes may be smaller than packages."""

    def where(cpu: int) -> Where:
        core = cpu % n_cpus
        return core // (n_node_cores or n_cores), core // n_cores, core % n_cores

    return where


HASWELL = (*range(6), *range(8, 14))
SKYLAKE = (0, 4, 1, 3, 2, 11, 8, 10, 9, 20, 16, 19, 17, 18, 24, 27, 25, 26)
CASCADE = (0, 4, 1, 3, 2, 12, 8, 11, 9, 10, 16, 20, 17, 19, 18, 28, 24, 27, 25, 26)
WESTMERE = (0, 1, 2, 8, 9, 16, 17, 18, 24, 25)
SPARSE = (0, 1, 2, 33, 34, 45, 72, 73)


def _hwloc_cpus() -> Iterator[Case]:
    """Processors of hwloc's recorded CPUID: numbers, packages, cores and threads are facts; nodes and cards are ours."""
    xeon, x86 = "Intel(R) Xeon(R) ", "x86/"
    yield (
        "2 x E5-2680 v3, Hyper-Threading off",
        f"{x86}Intel-Haswell-2xXeon-E5-2680v3",
        Machine(
            n_nodes=2, n_cores=12, where=_alternating(2, HASWELL), nics=NICS, governor="powersave", idle_states=DEEP
        ),
        BIND,
    )
    yield (
        "2 x E5-2650, card on node 1, four cores",
        f"{x86}Intel-SandyBridge-2xXeon-E5-2650",
        Machine(
            n_nodes=2,
            n_cores=8,
            n_threads=2,
            where=_alternating(2, tuple(range(8))),
            nics=(FAR,),
            nic_nodes=(1,),
            model=f"{xeon}CPU E5-2650 0 @ 2.00GHz",
        ),
        Request(n_cores=4),
    )
    for name, cores, model in (("Skylake-2xXeon6140", SKYLAKE, "6140"), ("CascadeLake-2xXeon6230", CASCADE, "6230")):
        made = Machine(
            n_nodes=2,
            n_cores=len(cores),
            n_threads=2,
            where=_alternating(2, cores),
            nics=NICS,
            nic_nodes=(0, 1),
            model=f"{xeon}Gold {model} CPU",
        )
        yield f"2 x Gold {model}, cards on both nodes", f"{x86}Intel-{name}", made, Request(n_cores=2, binds=True)


def _hwloc_cpus_in_blocks() -> Iterator[Case]:
    """The same, where numbers go package by package."""
    epyc, x86 = "AMD EPYC ", "x86/"
    yield (
        "2 x Max 9460, card on node 1, pages of 1 GiB",
        f"{x86}Intel-SapphireRapids-2xXeonMax9460",
        Machine(
            n_nodes=2,
            n_cores=40,
            n_threads=2,
            where=_blocks(40, 80),
            nics=(FAR,),
            nic_nodes=(1,),
            model="Intel (R) Xeon (R) CPU Max 9460",
        ),
        Request(page="1G", binds=True),
    )
    yield (
        "2 x EPYC 7451, a node for six cores, cards on nodes 1 and 3",
        f"{x86}AMD-17h-Zen-2xEpyc-7451",
        Machine(
            n_nodes=8,
            n_cores=6,
            n_threads=2,
            where=_blocks(24, 48, 6),
            nics=NICS,
            nic_nodes=(1, 3),
            model=f"{epyc}7451 24-Core Processor",
        ),
        Request(),
    )
    genoa = Machine(
        n_nodes=2,
        n_cores=96,
        n_threads=2,
        where=_blocks(96, 192),
        nics=(FAR,),
        nic_nodes=(1,),
        model=f"{epyc}9654 96-Core Processor",
        has_iommu=False,
    )
    yield "2 x EPYC 9654, no IOMMU", f"{x86}AMD-19h-Zen4-2xEpyc-9654", genoa, Request(n_cores=8, binds=True)


def _hwloc_machines() -> Iterator[Case]:
    """Machines of hwloc's recorded /sys, or its XML of whole machines: nodes and network cards are facts, too."""
    four = tuple(f"0000:0{bus}:00.{n}" for bus in (2, 3) for n in (0, 1))
    yield (
        "PowerEdge R910, 4 x E7-4870, firmware names no node of the cards",
        "linux/40intel64-2g2n4c+pcilocality",
        Machine(
            n_nodes=4,
            n_cores=10,
            where=_alternating(4, WESTMERE),
            nics=four,
            nic_nodes=(-1,) * 4,
            driver="bnx2",
            model=f"{INTEL} E7- 4870  @ 2.40GHz",
        ),
        Request(),
    )
    yield (
        "ProLiant SL390s G7, 2 x 6 cores, two ports on node 0",
        "xml/24em64t-2n6c2t-pci",
        Machine(
            n_nodes=2,
            n_cores=6,
            n_threads=2,
            where=_alternating(2, (0, 8, 2, 10, 1, 9)),
            nics=("0000:04:00.0", "0000:04:00.1"),
            driver="igb",
            model="unknown",
        ),
        BIND,
    )
    eight = tuple(f"0000:{bus:02x}:00.{n}" for bus in (0x02, 0x32, 0x62, 0x92) for n in (0, 1))
    yield (
        "IBM x3950 M2, 16 packages on 4 nodes, two ports on each",
        "xml/96em64t-4n4d3ca2co-pci",
        Machine(
            n_nodes=4,
            n_cores=24,
            where=lambda cpu: (
                cpu // 24,
                (1, 0)[cpu % 4] if cpu < 24 and cpu % 4 < 2 else cpu // 24 * 4 + cpu % 4,
                cpu % 24 // 4,
            ),
            nics=eight,
            nic_nodes=(0, 0, 1, 1, 2, 2, 3, 3),
            driver="bnx2",
            model="unknown",
        ),
        Request(),
    )


def _hwloc_machines_with_more() -> Iterator[Case]:
    """The same, with management, VFs, offline CPUs."""
    made = Machine(
        n_nodes=2,
        n_cores=8,
        where=_blocks(8, 16),
        nics=("0000:02:00.0", "0000:02:00.3"),
        driver="igb",
        model=f"{INTEL} E5-2680 0 @ 2.70GHz",
    )
    yield (
        "DCS8000Z, 2 x E5-2680, ports on node 0, one for management",
        "linux/32em64t-2n8c+dax+nvme+mic+dimms",
        _managed(made),
        BIND,
    )
    yield (
        "2 x 8 cores, four ports with 12 VFs, one other port for management",
        "xml/16intel64-manyVFs",
        _many_vfs(),
        Request(),
    )
    offline = Machine(
        n_cores=8,
        n_threads=2,
        where=lambda cpu: (0, cpu % 4, cpu // 4 % 2),
        offline=(2, 5, 13, 14),
        model="Intel(R) Xeon(TM) CPU 2.60GHz",
        has_1g=False,
    )
    yield "4 x Xeon 2.60 GHz, four CPUs offline, cores cut in half", "linux/16em64t-4s2c2t-offlines", offline, Request()


def _hwloc_machines_with_holes() -> Iterator[Case]:
    """The same, without CPU 0, with gaps in the numbers of nodes, without threads."""
    no_zero = Machine(
        n_nodes=2,
        n_cores=12,
        where=_alternating(2, HASWELL),
        offline=(0, 1, 2, 3, 21, 22, 23),
        no_nodes=(0,),
        nic_nodes=(1,),
    )
    yield "2 x E5-2680 v3, CPU 0 and node 0 offline", "linux/offline-cpu0-node0", no_zero, Request(n_cores=2)
    sparse = Machine(
        n_nodes=8,
        n_cores=6,
        where=lambda cpu: (SPARSE[cpu // 6], cpu // 12, cpu % 12),
        nic_nodes=(33,),
        model="AMD Engineering Sample",
    )
    yield "4 packages, node numbers with gaps, card on node 33", "linux/48amd64-4pa2n6c-sparse", sparse, Request()
    spark = Machine(
        n_cores=20,
        where=lambda cpu: (0, 36, cpu),
        model="unknown",
        governor=None,
        has_1g=False,
        driver="mlx5_core",
        nics=NICS,
    )
    yield "NVIDIA DGX Spark (GB10), cards that keep their driver", "linux/nvidia-dgx-gb10", spark, BIND


def _many_vfs() -> Machine:
    """Four ports with VFs on two nodes, and two ports of another kind; the first one is for management."""
    pfs = ("0000:0b:00.0", "0000:0c:00.0", "0000:88:00.0", "0000:89:00.0")
    made = Machine(
        n_nodes=2, n_cores=8, where=_blocks(8, 16), nics=("0000:02:00.0", "0000:02:00.1"), driver="igb", model="unknown"
    )
    made.driver = "enic"
    for n, (pf, n_vfs) in enumerate(zip(pfs, (3, 4, 5, 0), strict=True)):
        made.nic(pf, n // 2, f"eth{n + 4}")
        made.texts[f"/sys/bus/pci/devices/{pf}/sriov_numvfs"] = f"{n_vfs}\n"
        for vf in range(1, n_vfs + 1):
            made.nic(f"{pf[:-1]}{vf}", n // 2, f"eth{n + 4}v{vf}", physfn=pf)
    return _managed(made, "eth0")


def _synthetic() -> Iterator[tuple[str, Machine, Request]]:
    """Made up: shapes that matter, of no machine in particular."""
    white = Machine(
        n_nodes=2, n_cores=8, n_threads=2, nics=(FAR,), nic_nodes=(1,), model=f"{INTEL} E5-2650 v2 @ 2.60GHz"
    )
    yield (
        "2 nodes of 8 cores with 2 threads, as the white paper's, card on node 1, four cores",
        white,
        Request(n_cores=4),
    )
    large = Machine(n_nodes=2, n_cores=32, n_threads=2, nics=(*NICS, FAR), nic_nodes=(0, 0, 1))
    yield "2 nodes of 32 cores, cards on both, pages of 1 GiB", large, Request(page="1G", binds=True)
    quarter = Machine(
        n_nodes=4, n_cores=24, n_threads=2, nics=(FAR,), nic_nodes=(2,), model="AMD EPYC", has_iommu=False
    )
    yield "4 nodes of 24 cores, AMD, card on node 2, no IOMMU", quarter, BIND
    yield "virtual machine of four CPUs without IOMMU", _virtual(Machine(governor=None, has_iommu=False)), BIND
    yield "two cores", Machine(n_cores=2), Request()
    yield "eight cores, threads beside each other", Machine(n_cores=8, n_threads=2, interleaved=False), Request()
    holes = Machine(n_cores=8, n_threads=2, offline=(1, 2, 3, 9), nics=NICS)
    yield "eight cores, some of them offline", holes, Request()
    yield "four nodes of eight cores, firmware names no node", Machine(n_nodes=4, n_cores=8, nic_nodes=(-1,)), Request()
    old = _changed(Machine(n_cores=4), **{f"__boot__config-{RELEASE}": "CONFIG_RCU_NOCB_CPU=y\n"})
    yield "kernel without NO_HZ_FULL", old, Request()
    yield "one port of a card for management", _managed(Machine(n_cores=8, nics=NICS)), BIND
    yield "systemd-boot", _systemd_boot(), Request()
    yield "RHEL", _rhel(), Request()
    yield "node without a card", _managed(Machine(n_nodes=2, n_cores=4), "eth0"), Request(nodes=(1,), n_cores=2)


def _cases() -> Iterator[Case]:
    """All of them, with what is known of where they come from."""
    for name, file, made, request in (*_hwloc_cpus(), *_hwloc_cpus_in_blocks()):
        yield name, f"{HWLOC}{file}; nodes and network cards are made up", made, request
    for name, file, made, request in (
        *_hwloc_machines(),
        *_hwloc_machines_with_more(),
        *_hwloc_machines_with_holes(),
    ):
        yield name, f"{HWLOC}{file}", made, request
    for name, made, request in _synthetic():
        yield name, "made up", made, request


def _lines(name: str, origin: str, tuning: Tuning) -> Iterator[str]:
    yield f"== {name}"
    yield f"origin: {origin}"
    for one in tuning.cores:
        mib = tuning.memory_mib[one.node]
        yield f"node {one.node}: isolated {listed(one.isolated)}, workers {listed(one.workers)}, {mib} MiB"
    yield f"parameters: {' '.join(tuning.parameters)}"
    repeated = dict[str, int]()
    for step in tuning.steps:
        if isinstance(step, FileStep):
            said = f"file {step.path}{f', then {step.then}' if step.then else ''}"
        elif isinstance(step, DriverStep):
            said = f"driver {step.address}: {step.before} -> {step.after}"
        elif isinstance(step, LiveStep):
            path = step.path if "/node/" in step.path else "".join("N" if one.isdigit() else one for one in step.path)
            said = f"live {path}: {step.before} -> {step.after}"
        repeated[said] = repeated.get(said, 0) + 1
    yield from (f"{said}{f'  x {n}' if n > 1 else ''}" for said, n in repeated.items())
    yield from (f"not planned: {remark}" for remark in tuning.remarks)
    yield ""


def _text() -> str:
    return "\n".join(
        line
        for name, origin, made, request in _cases()
        for line in _lines(name, origin, plan(read(made.tree()), request))
    )


def plans_are_as_they_were_checked() -> None:
    assert _text() == GOLDEN.read_text(encoding="utf-8")


def nothing_is_left_to_do_after_any_of_them() -> None:
    names = []
    for name, _, made, request in _cases():
        again = plan(read(applied(made.tree(), plan(read(made.tree()), request))), request)
        assert [target(step) for step in again.steps] == [], name
        names.append(name)
    assert len(names) >= 12


if __name__ == "__main__":
    GOLDEN.write_text(_text(), encoding="utf-8")
