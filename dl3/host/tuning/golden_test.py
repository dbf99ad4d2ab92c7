"""Plans for machines whose topology is public, compared with golden.txt, which was checked by eye.

To make the file again after a change: build/venv/bin/python -m dl3.host.tuning.golden_test
"""

from collections.abc import Iterator
from pathlib import Path

from dl3.host.cores import listed
from dl3.host.facts.read import read
from dl3.host.fixture import RELEASE, Machine, applied
from dl3.host.tuning.plan import Tuning, plan
from dl3.host.tuning.request import Request
from dl3.host.tuning.step import DriverStep, FileStep, target

GOLDEN = Path(__file__).parent / "golden.txt"
NICS = ("0000:03:00.0", "0000:03:00.1")
FAR = "0000:83:00.0"
DEEP = (("POLL", 0), ("C1", 2), ("C6", 133), ("C8", 200))
BIND = Request(binds=True)
Case = tuple[str, Machine, Request]


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


def _cases() -> Iterator[Case]:
    """Name, machine and request. Topologies: vendors' data sheets and public listings of lscpu."""
    xeon, epyc = "Intel(R) Xeon(R) ", "AMD EPYC "
    haswell = Machine(n_nodes=2, n_cores=12, n_threads=2, nics=NICS, governor="powersave", idle_states=DEEP)
    yield "2 x E5-2680 v3, two ports on node 0", haswell, BIND
    white = Machine(
        n_nodes=2, n_cores=8, n_threads=2, nics=(FAR,), nic_nodes=(1,), model=f"{xeon}CPU E5-2650 v2 @ 2.60GHz"
    )
    yield "2 x E5-2650 v2, card on node 1, four cores", white, Request(n_cores=4)
    off = Machine(n_nodes=2, n_cores=12, n_threads=2, offline=tuple(range(24, 48)), nics=NICS)
    yield "2 x E5-2680 v3, Hyper-Threading off", off, Request()
    sapphire = Machine(
        n_nodes=2, n_cores=32, n_threads=2, nics=(*NICS, FAR), nic_nodes=(0, 0, 1), model=f"{xeon}Platinum 8462Y+"
    )
    yield "2 x Platinum 8462Y+, cards on both nodes, pages of 1 GiB", sapphire, Request(page="1G", binds=True)
    genoa = f"{epyc}9654 96-Core Processor"
    yield "EPYC 9654, NPS1", Machine(n_cores=96, n_threads=2, nics=NICS, model=genoa), Request(n_cores=8)
    quarter = Machine(n_nodes=4, n_cores=24, n_threads=2, nics=(FAR,), nic_nodes=(2,), model=genoa, has_iommu=False)
    yield "EPYC 9654, NPS4, card on node 2, no IOMMU", quarter, BIND
    naples = Machine(
        n_nodes=4, n_cores=6, n_threads=2, interleaved=True, nics=NICS, nic_nodes=(1, 3), model=f"{epyc}7451"
    )
    yield "EPYC 7451, cards on nodes 1 and 3", naples, Request()
    grace = Machine(n_cores=20, model="unknown", governor=None, has_1g=False, driver="mlx5_core", nics=NICS)
    yield "GB10, one node, no threads, mlx5", grace, BIND
    yield "virtual machine of four CPUs without IOMMU", _virtual(Machine(governor=None, has_iommu=False)), BIND
    yield "two cores", Machine(n_cores=2), Request()
    yield (
        "desktop of eight cores, threads beside each other",
        Machine(n_cores=8, n_threads=2, interleaved=False),
        Request(),
    )
    holes = Machine(n_cores=8, n_threads=2, offline=(1, 2, 3, 9), nics=NICS)
    yield "eight cores, some of them offline", holes, Request()
    yield "four nodes of eight cores, firmware names no node", Machine(n_nodes=4, n_cores=8, nic_nodes=(-1,)), Request()
    old = _changed(Machine(n_cores=4), **{f"__boot__config-{RELEASE}": "CONFIG_RCU_NOCB_CPU=y\n"})
    yield "kernel without NO_HZ_FULL", old, Request()
    yield "one port of a card for management", _managed(Machine(n_cores=8, nics=NICS)), BIND
    yield "systemd-boot", _systemd_boot(), Request()
    yield "RHEL", _rhel(), Request()
    yield "node without a card", _managed(Machine(n_nodes=2, n_cores=4), "eth0"), Request(nodes=(1,), n_cores=2)


def _lines(name: str, tuning: Tuning) -> Iterator[str]:
    yield f"== {name}"
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
        else:
            path = step.path if "/node/" in step.path else "".join("N" if one.isdigit() else one for one in step.path)
            said = f"live {path}: {step.before} -> {step.after}"
        repeated[said] = repeated.get(said, 0) + 1
    yield from (f"{said}{f'  x {n}' if n > 1 else ''}" for said, n in repeated.items())
    yield from (f"not planned: {remark}" for remark in tuning.remarks)
    yield ""


def _text() -> str:
    return "\n".join(
        line for name, made, request in _cases() for line in _lines(name, plan(read(made.tree()), request))
    )


def plans_are_as_they_were_checked() -> None:
    assert _text() == GOLDEN.read_text(encoding="utf-8")


def nothing_is_left_to_do_after_any_of_them() -> None:
    names = []
    for name, made, request in _cases():
        again = plan(read(applied(made.tree(), plan(read(made.tree()), request))), request)
        assert [target(step) for step in again.steps] == [], name
        names.append(name)
    assert len(names) >= 12


if __name__ == "__main__":
    GOLDEN.write_text(_text(), encoding="utf-8")
